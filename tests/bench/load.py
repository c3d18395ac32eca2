"""Asks a web server for many paths, from a process of its own: `python -m tests.bench.load PORT CLIENTS` with the paths
on stdin, one a line.

Each client keeps its connection, and takes the next path when it has an answer. Prints seconds, and those of each
answer, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PIECE = 1 << 18
#: What a slow reader takes at a time, in bytes, and its pause in seconds.
_SMALL, _PAUSE = 1 << 14, 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """What a load took: seconds as a whole, those of each answer, the numbers of answers by status, and bytes."""

    seconds: float
    times: list[float]
    statuses: dict[str, int]
    size: int

    def percentile(self, share: float) -> float:
        """The time of an answer, in ms, that this share of answers did not exceed."""
        return 1000 * sorted(self.times)[min(int(len(self.times) * share), len(self.times) - 1)]


def put(port: int, paths: Sequence[str], clients: int, *, pages: bool = True) -> Load:
    """Ask for the paths with so many clients at a time. Raises CalledProcessError for an answer that is not whole."""
    command = [sys.executable, "-m", "tests.bench.load", str(port), str(clients), *(["--pages"] if pages else [])]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, input="\n".join(paths), stdout=subprocess.PIPE, text=True, check=True)
    return Load(**json.loads(done.stdout))


class Connection:
    """A connection that is kept, for one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._bytes = b""

    async def ask(self, path: str) -> tuple[str, bytes]:
        """Return status and body of a path. Raises ConnectionError."""
        if self._socket is not None:
            try:
                return await self._ask(path)
            except ConnectionError:  # the server closed it between two requests
                self.close()
        await self.open()
        return await self._ask(path)

    async def open(self, buffer: int = 0) -> socket.socket:
        """Connect, with so many bytes of buffer for what comes (0: as usual); return the socket."""
        found = socket.socket()
        if buffer:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        found.setblocking(False)
        await asyncio.get_running_loop().sock_connect(found, ("127.0.0.1", self._port))
        self._socket, self._bytes = found, b""
        return found

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def send(self, path: str) -> None:
        """Ask, and take no answer."""
        assert self._socket is not None
        asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAccept: text/html\r\n\r\n"
        await asyncio.get_running_loop().sock_sendall(self._socket, asked.encode())

    async def _ask(self, path: str) -> tuple[str, bytes]:
        await self.send(path)
        head = (await self._until(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "chunked" in fields.get("transfer-encoding", "").lower():
            body = await self._chunks()
        else:
            body = await self._exactly(int(fields["content-length"]))
        if fields.get("connection", "").lower() == "close":
            self.close()
        return first.split(" ")[1], body

    async def _chunks(self) -> bytes:
        parts = []
        while size := int((await self._until(b"\r\n")).partition(b";")[0], 16):
            parts.append((await self._exactly(size + 2))[:-2])
        await self._until(b"\r\n")
        return b"".join(parts)

    async def _until(self, end: bytes) -> bytes:
        while (at := self._bytes.find(end)) < 0:
            self._bytes += await self._read()
        found, self._bytes = self._bytes[:at], self._bytes[at + len(end) :]
        return found

    async def _exactly(self, size: int) -> bytes:
        parts, left = [self._bytes], size - len(self._bytes)
        while left > 0:
            parts.append(await self._read())
            left -= len(parts[-1])
        whole = b"".join(parts)
        self._bytes = whole[size:]
        return whole[:size]

    async def _read(self) -> bytes:
        assert self._socket is not None
        # pywb sends a page in parts, and without this would wait up to 40 ms for an acknowledgement (tcp(7)).
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        found = await asyncio.get_running_loop().sock_recv(self._socket, _PIECE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if not found:
            raise ConnectionResetError
        return found


@dataclass(slots=True)
class _Told:
    times: list[float]
    statuses: Counter[str]
    size: int = 0


async def _client(port: int, paths: Iterator[str], told: _Told, *, pages: bool) -> None:
    connection = Connection(port)
    for path in paths:
        begun = time.perf_counter()
        status, body = await connection.ask(path)
        told.times.append(time.perf_counter() - begun)
        told.statuses[status] += 1
        told.size += len(body)
        if pages and not (status == "200" and body[-20:].rstrip().endswith(b"</html>")):
            raise SystemExit(f"{path}: {status}, {len(body)} bytes that end in {body[-40:]!r}")
    connection.close()


async def _load(port: int, clients: int, paths: Sequence[str], *, pages: bool) -> Load:
    left, told = iter(paths), _Told([], Counter())
    begun = time.perf_counter()
    await asyncio.gather(*(_client(port, left, told, pages=pages) for _ in range(clients)))
    return Load(time.perf_counter() - begun, told.times, told.statuses, told.size)


# -- slow readers ------------------------------------------------------------------------------------------------------


@contextmanager
def slow_readers(port: int, streams: Sequence[str], others: Sequence[str]) -> Iterator[None]:
    """Readers, in a process of their own, while the block runs: one for each of `streams`, who is always in the midst
    of it, and as many who ask for `others` and think.
    """
    command = [sys.executable, "-m", "tests.bench.load", str(port), str(len(streams)), "--slow"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join([*streams, *others]))
        process.stdin.close()
        assert process.stdout.readline() == "reading\n"
        try:
            yield
            assert process.poll() is None, "the readers have ended"
        finally:
            process.terminate()


async def _read_slowly(port: int, count: int, paths: Sequence[str]) -> None:
    others = itertools.cycle(paths[count:])
    tasks = [asyncio.ensure_future(_in_a_stream(port, each)) for each in paths[:count]]
    tasks += [asyncio.ensure_future(_thinking(port, others)) for _ in range(count)]
    await asyncio.sleep(1)
    print("reading", flush=True)
    await asyncio.gather(*tasks)


async def _in_a_stream(port: int, path: str) -> None:
    """Take a piece of an answer, wait, and take the next one; then the same again."""
    while True:
        connection = Connection(port)
        taken = await connection.open(_SMALL)
        await connection.send(path)
        while await asyncio.get_running_loop().sock_recv(taken, _SMALL):
            await asyncio.sleep(_PAUSE)
        connection.close()


async def _thinking(port: int, paths: Iterator[str]) -> None:
    connection = Connection(port)
    while True:
        await connection.ask(next(paths))
        await asyncio.sleep(_PAUSE)


def main() -> None:
    """Read the command line and the paths, ask, and print what that took."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.load", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("clients", type=int)
    parser.add_argument("--pages", action="store_true", help="each answer must be a whole page")
    parser.add_argument("--slow", action="store_true", help="read slowly until SIGTERM; CLIENTS are of each kind")
    given = parser.parse_args()
    paths = sys.stdin.read().split("\n")
    if given.slow:
        asyncio.run(_read_slowly(given.port, given.clients, paths))
        return
    load = asyncio.run(_load(given.port, given.clients, paths, pages=given.pages))
    print(json.dumps({name: getattr(load, name) for name in Load.__slots__}))


if __name__ == "__main__":
    main()
