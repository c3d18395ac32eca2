"""`webarc query --mount`: the archive behind a mount, and paths that are there (DESIGN.md section 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.recover import catch_up
from tests.mount.conftest import Mounter
from tests.store.test_webarc import webarc
from tests.support import archives
from webarcfs.archive.directory import Archive

pytestmark = pytest.mark.mount


def test_paths_of_an_answer_are_there(archive: Archive, mount: Mounter) -> None:
    archives.publish(archive, pages={"a b/x.html": b"old", "gone.html": b"gone"})
    archives.publish(archive, pages={"a b/x.html": b"new", "gone.html": None})
    catch_up(archive)
    mounted = mount(archive)
    answer = webarc("query", "--mount", str(mounted.point / "www.example.org"), "", "--order-by", "crawlTime, path",
                    "--format", "paths")  # fmt: skip
    bodies = [(Path(line) / "data.html").read_bytes() for line in answer.stdout.splitlines()]
    assert bodies == [b"old", b"gone", b"new"], answer
