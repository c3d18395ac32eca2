"""The servers that are measured: `webarc serve` and pywb, each with what its processes take."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive

_PYWB = Path(__file__).parents[2] / ".venv-pywb" / "bin"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: the ports of its pages and of its replay, and the processes that answer."""

    port: int
    replay: int
    pids: tuple[int, ...]

    @property
    def processor(self) -> float:
        """Seconds of the processor that its processes have taken."""
        return sum(_ticks(pid) for pid in self.pids) / _TICKS

    @property
    def memory(self) -> float:
        """The most memory of one of them that is no file (RssAnon), in MiB."""
        return max(_anonymous(pid) for pid in self.pids) / 1024


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _anonymous(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


@contextmanager
def room(archive: Archive, workers: int = 1) -> Iterator[Server]:
    """`webarc serve` with its own listener for replay, and an access log."""
    port, replay = _free_port(), _free_port()
    command = [
        sys.executable, "-c", "from webarcfs.commands.cli import main; main()", "serve", "--archive", str(archive.root),
        "--listen", f"127.0.0.1:{port}", "--replay-listen", f"127.0.0.1:{replay}", "--workers", str(workers),
        "--access-log", os.devnull,
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "is at" in process.stdout.readline(), "webarc serve did not start"
            pids = tuple(
                pid for pid in _children(process.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
            )
            assert len(pids) == workers, pids
            yield Server(port, replay, pids)
        finally:
            process.terminate()


@contextmanager
def pywb(warc: Path) -> Iterator[Server]:
    """pywb with a collection `pages` of a WARC, as its manual says: `wb-manager init`, `wb-manager add`, `wayback`."""
    with tempfile.TemporaryDirectory(prefix="bench-pywb-") as folder:
        for words in (["init", "pages"], ["add", "pages", str(warc)]):
            subprocess.run([_PYWB / "wb-manager", *words], cwd=folder, check=True, capture_output=True)
        port = _free_port()
        command = [str(_PYWB / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                eventually(lambda: _answers(port), 60)
                yield Server(port, port, (process.pid, *_children(process.pid)))
            finally:
                process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
