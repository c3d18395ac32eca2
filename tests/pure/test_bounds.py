"""How much a mount keeps: by the memory that it can use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import MODULES
from webarcfs.vfs import content
from webarcfs.web import limits as web_limits

pytestmark = pytest.mark.pure

_GIB = 1 << 30


@pytest.mark.parametrize(
    ("memory", "inodes"),
    [(_GIB // 4, content.LEAST), (_GIB, 55_924), (6 * _GIB, 335_544), (8 * _GIB, 447_392), (1024 * _GIB, content.MOST)],
)
def test_inodes_are_as_many_as_a_sixteenth_of_the_memory_holds(memory: int, inodes: int) -> None:
    assert content.inodes_in(memory) == inodes


def test_a_control_group_may_leave_less_than_the_machine_has(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("1:name=systemd:/x\n0::/system.slice/webarc-mount.service\n")
    machine = content.memory(tmp_path, own)
    group = tmp_path / "system.slice/webarc-mount.service"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    assert content.memory(tmp_path, own) == machine
    (group.parent / "memory.max").write_text("2000000\n")
    assert content.memory(tmp_path, own) == 2_000_000
    (group / "memory.max").write_text("1000000\n")
    assert content.memory(tmp_path, own) == 1_000_000
    own.unlink()
    assert content.memory(tmp_path, own) == machine


@pytest.mark.large
def test_a_process_that_is_limited_takes_less() -> None:
    """`ulimit -v`: in a process of its own, since what is lowered is not raised again."""
    code = (
        "import resource; from webarcfs.vfs import content; resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))"
    )
    command = [sys.executable, "-c", f"{code}; print(content.memory())"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == str(1 << 31)


def test_each_bound_of_the_reading_room_is_read_somewhere() -> None:
    """A bound that nobody reads promises an administrator what does not hold."""
    servers = ("webarcfs.room.", "webarcfs.web.", "webarcfs.api.")
    source = "\n".join(path.read_text("utf-8") for name, path in MODULES.items() if name.startswith(servers))
    unread = [name for name in vars(web_limits) if name.isupper() and f"limits.{name}" not in source]
    assert unread == []
