"""A reading room with pywb as its engine, under two names, as a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.rooms import Served
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive

PROGRAM = ROOT / ".venv-pywb" / "bin" / "wayback"


@dataclass
class PywbRoom:
    """Where it is: `names` are for a browser, `origin` and `replay` are the two origins."""

    archive: Archive
    room: Served
    names: dict[str, str]
    origin: str
    replay: str
    process: int


@contextmanager
def pywb_room(archive: Archive, *more: str) -> Iterator[PywbRoom]:
    """Serve an archive while the block runs; `more` are further options of `webarc serve`."""
    if not PROGRAM.exists():
        pytest.skip("needs `make pywb`")
    ports = _free(), _free()
    origin, replay = f"http://room.test:{ports[0]}", f"http://replay.test:{ports[1]}"
    command = [
        sys.executable, "-P", "-c", "from webarcfs.commands.cli import main; main()", "serve",
        "--archive", str(archive.root), "--listen", f"127.0.0.1:{ports[0]}",
        "--replay-listen", f"127.0.0.1:{ports[1]}", "--origin", origin,
        "--replay-origin", replay, "--engine", "pywb", "--workers", "1", *(more or ("--access-log", "off")),
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert b"reading room" in server.stdout.readline()
        names = {"room.test": "127.0.0.1", "replay.test": "127.0.0.1"}
        yield PywbRoom(archive, Served(*ports), names, origin, replay, server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(120)
        if server.stdout is not None:
            server.stdout.close()


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
