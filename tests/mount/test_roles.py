"""What README says of pages and resources: the commands that leave resources out, on a mount of a real crawl."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.crawl.test_roles import FONTS, FRAMES, SITE, STYLES, again, serve
from tests.support.mounts import Mounted, run
from tests.support.site import Site
from webarcfs.archive.config import directory

pytestmark = pytest.mark.mount
README = Path(__file__).parents[2] / "README.md"


def test_readmes_commands_leave_resources_out(tmp_path: Path) -> None:
    """S-role-1, S-role-2."""
    archive = directory.create(tmp_path / "archive")
    with Site() as site:
        serve(site)
        again(archive, site)
    mount = Mounted(archive.root, tmp_path / "web")
    try:
        assert {path.name for path in mount.point.iterdir()} >= {SITE, STYLES, FONTS, FRAMES}  # all alike
        assert os.getxattr(mount / f"{SITE}/index.html", "user.webarc.role") == b"page"
        assert os.getxattr(mount / f"{FRAMES}/f.html/data.html", "user.webarc.role") == b"resource"
        lines = README.read_text("utf-8").partition('<a id="pages-and-resources"></a>')[2].splitlines()
        commands = [line.strip() for line in lines[:12] if re.match(r"    (?:grep|find|ls)", line)]
        assert len(commands) == 3
        for command in commands:
            text = command.replace("~/web", shlex.quote(str(mount.point)))
            done = run("bash", "-c", text)
            assert SITE in done.stdout and not any(host in done.stdout for host in (STYLES, FONTS, FRAMES)), done
        assert _count(mount / ".search/zebra") == 1
        assert _count(mount / ".search/zebra role:any") == 2
        assert _count(mount / ".query/role = 'resource'") == 3
        assert _count(mount / f".query/domain = '{FRAMES}'") == 1
    finally:
        mount.clear()


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())
