"""kill -9 of a mount within the maker's minute: what was confirmed last is there after a remount, and it is final.

`MINUTE_KILLS` says how often each mount is killed (SEMANTICS.md, S-settle-6, S-durable-1).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash.maker import content
from tests.mount.conftest import Mounter, archive, folder, mount, pytest_generate_tests
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config.directory import Archive

__all__ = ["archive", "folder", "mount", "pytest_generate_tests"]
KILLS = int(os.environ.get("MINUTE_KILLS", "3"))
pytestmark = [pytest.mark.mount, pytest.mark.timeout(max(1200, KILLS * 60))]

MAKERS = 3
#: Name → its bytes; None: it is not there.
State = dict[str, bytes | None]


def _after(state: State, operation: str, name: str, other: str) -> State:
    """The names and their bytes when a step is done."""
    match operation:
        case "write":
            return {**state, name: content(name, int(other))}
        case "rename":
            return {**state, name: None, other: state.get(name)}
        case _:
            return {**state, name: None}


def possible(manifest: Path) -> list[State]:
    """What a maker's files may be: as after the last step that was done, or after the one that had begun."""
    state: State = {}
    begun: list[str] | None = None
    for line in manifest.read_text("utf-8").splitlines():
        word, *step = line.split("\t")
        begun = step if word == "begin" else None
        if word == "done":
            state = _after(state, *step)
    states = [state]
    if begun is not None:
        states.append(_after(state, *begun))
        if begun[0] == "write":  # it was cut, and nothing was confirmed of it; or it was empty, and is
            states.append({**state, begun[1]: b""})
            states.append({**state, begun[1]: None if state.get(begun[1]) is None else state[begun[1]]})
    return [{name: data for name, data in each.items() if data is not None} for each in states]


def change_and_kill(mounted: Mounted, folder: Path, manifests: list[Path], chance: random.Random) -> None:
    """Makers change their files; at a random moment the mount is killed."""
    makers = [
        subprocess.Popen([sys.executable, "-m", "tests.crash.maker", folder, manifest, manifest.name])
        for manifest in manifests
    ]
    try:
        eventually(lambda: all(path.exists() and path.read_text().count("done") > 5 for path in manifests), PATIENCE)
        time.sleep(chance.uniform(0, 0.5))  # the moment, not a bound on anything
        os.kill(mounted.pid, signal.SIGKILL)
        for maker in makers:
            assert maker.wait(PATIENCE) == 0
    finally:
        for maker in makers:
            maker.kill()
            maker.wait()
        mounted.clear()


def files_of(folder: Path, manifest: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(f"{manifest.name}-*")}


def test_what_was_confirmed_last_survives_kill_9(archive: Archive, mount: Mounter, tmp_path: Path) -> None:
    """Whatever was written, renamed or removed before; and nobody can change it any more."""
    archive.settings.write_text("[mount]\nsettle = 3600\n", "utf-8")
    archives.publish(archive, pages={"a.html": b"page"})
    chance = random.Random(KILLS)
    every: dict[Path, dict[str, bytes]] = {}
    for number in range(KILLS):
        mounted = mount(archive)
        manifests = [tmp_path / f"m{number}x{maker}" for maker in range(MAKERS)]
        change_and_kill(mounted, mounted / DOMAIN / "a.html", manifests, chance)
        mounted = mount(archive)
        place = mounted / DOMAIN / "a.html"
        for manifest in manifests:
            every[manifest] = files_of(place, manifest)
            assert every[manifest] in possible(manifest), manifest.read_text("utf-8")[-500:]
            for name in every[manifest]:
                with pytest.raises(PermissionError):
                    (place / name).unlink()
        assert run(UMOUNT, mounted.point).returncode == 0
    place = mount(archive) / DOMAIN / "a.html"
    assert all(files_of(place, manifest) == files for manifest, files in every.items())
    assert archives.store_of(archive).check() == []
