"""Reads the answers of batches in a second process, so that a crawl has both cores: one parses pages, one decides.

What goes between the two are marshalled tuples, which is several times cheaper than pickle and runs no code. The
process holds nothing and writes nothing; it ends when its input does, however its parent died. Batches of few pages
are read in this process: a small crawl starts no other.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from agent import answers, clock
from agent.answers import Answer, Batch, Killed, Limits
from agent.elements import Kind
from agent.frontier import Row, Settled
from agent.links import Link
from webarcfs.archive.errors import CrawlFailed

#: Batches of up to this many URLs are read here.
_FEW = 40
#: So many links are sent at once at most: what bounds the memory of both processes.
_MOST_LINKS = 200_000
_LENGTH = 4
_SETTLED = tuple(field.name for field in fields(Settled))
# Not dataclasses.astuple, which copies every value deeply.
_values_of_settled = attrgetter(*_SETTLED)
_values_of_row = attrgetter(*(field.name for field in fields(Row)))
_values_of_limits = attrgetter(*(field.name for field in fields(Limits)))
_KINDS = {str(kind.value): kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch whose wget has ended: the URLs it was given, its files, and whether it was killed."""

    number: int
    domain: str
    rows: list[Row]
    warc: Path
    log: Path
    killed: Killed | None = None


class Reader:
    """Reads batches in the order in which they are given. Close it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: deque[Ended] = deque()
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = False  # the first of the queue is with the process

    def give(self, batch: Ended) -> None:
        """Have a batch read, after those that were given before."""
        self._queue.append(batch)
        self._send()

    @property
    def backlog(self) -> int:
        """How many batches were given whose answers were not taken."""
        return len(self._queue)

    def next(self, others: Iterable[int], seconds: float) -> Ended | None:
        """The first of the batches, if its answers can be had now; waits for them, or one of the descriptors `others`,
        at most `seconds`.
        """
        if self._queue and not self._sent:
            return self._queue[0]
        poll = select.poll()
        mine = self._out.fileno() if self._sent else -1
        for fd in (mine, *others):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(seconds * 1000)}
        return self._queue[0] if mine in ready else None

    def answers(self, rows: Iterable[Row]) -> Generator[Answer, None, None]:
        """The answers of the first batch, which is taken by that; the next one is read meanwhile.

        `rows` are its URLs as they are in the frontier by now. Close what this returns: if it was not drawn to its end,
        what is left of it must not be taken for another batch's.
        """
        batch = self._queue.popleft()
        if not self._sent:
            self._send()
            yield from _read(replace(batch, rows=list(rows)), self._limits, clock.OFFSET)
            return
        known = {row.id: row for row in rows}
        last = False
        try:
            while not last:
                last, found = self._receive(batch)
                if last:
                    self._sent = False
                    self._send()
                yield from (_answer(known[each[0][0]], each) for each in found if each[0][0] in known)
        finally:
            if not last:
                self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process, self._sent = None, False

    def _send(self) -> None:
        """Send the first batch, if it is none of few URLs. One at a time: nobody waits for a pipe that is full."""
        if not self._queue or self._sent or len(self._queue[0].rows) <= _FEW:
            return
        batch = self._queue[0]
        killed = None if batch.killed is None else (int(batch.killed.status), batch.killed.note)
        rows, limits = list(map(_values_of_row, batch.rows)), _values_of_limits(self._limits)
        task = (rows, str(batch.warc), str(batch.log), killed, limits, clock.OFFSET)
        if self._process is None:
            self._process = _started()
        assert self._process.stdin is not None
        try:
            _write(self._process.stdin, task)
        except BrokenPipeError:
            raise self._died(batch) from None
        self._sent = True

    def _receive(self, batch: Ended) -> tuple[bool, list[Any]]:
        found = _frame(self._out)
        if found is None:
            raise self._died(batch)
        last, answers_ = found
        return bool(last), answers_

    @property
    def _out(self) -> IO[bytes]:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    def _died(self, batch: Ended) -> CrawlFailed:
        assert self._process is not None
        code = self._process.wait()
        return CrawlFailed(f"the process that reads answers ended with {code} at {batch.warc}")


def _answer(row: Row, record: tuple[Any, ...]) -> Answer:
    settled, target, pairs, robots = record
    links = tuple([Link(url, _KINDS[kind]) for url, kind in pairs])
    return Answer(row, Settled(**dict(zip(_SETTLED, settled, strict=True))), target, links, robots)


def _started() -> subprocess.Popen[bytes]:
    # As this process finds its modules: `agent` may be imported from a checkout.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "agent.reader"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _read(batch: Ended, limits: Limits, offset: float) -> Iterator[Answer]:
    """The answers of a batch; `offset` makes of seconds since boot the time of the process that waits by it."""
    try:
        log = batch.log.read_text("utf-8", "replace")
    except FileNotFoundError:
        log = ""
    return answers.answers(Batch(batch.rows, batch.warc, log, batch.killed), limits, offset + clock.since_boot())


def _write(file: IO[bytes], value: Any) -> None:
    data = marshal.dumps(value)
    file.write(len(data).to_bytes(_LENGTH, "big"))
    file.write(data)
    file.flush()


def _frame(file: IO[bytes]) -> Any:
    """The next value; None at the end."""
    size = int.from_bytes(file.read(_LENGTH), "big")
    data = file.read(size)
    return marshal.loads(data) if size and len(data) == size else None  # noqa: S302 # from our own process


def _serve(given: IO[bytes], out: IO[bytes]) -> None:
    """Answer tasks until there are no more."""
    while (task := _frame(given)) is not None:
        rows, warc, log, killed, limits, offset = task
        batch = Ended(0, "", [Row(*row) for row in rows], Path(warc), Path(log), Killed(*killed) if killed else None)
        found: list[tuple[object, ...]] = []
        links = 0
        for answer in _read(batch, Limits(*limits), offset):
            links += len(answer.links)
            pairs = [(link.url, link.kind.value) for link in answer.links]
            settled = tuple(map(_plain, _values_of_settled(answer.settled)))
            found.append((settled, answer.target, pairs, answer.robots))
            if links > _MOST_LINKS:
                _write(out, (False, found))
                found, links = [], 0
        _write(out, (True, found))


def _plain(value: object) -> object:
    """Marshal takes the built-in types only, no enumerations of them."""
    return int(value) if isinstance(value, int) else value


if __name__ == "__main__":
    # A signal to all of a terminal or of a service is for the agent, which then still wants answers.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):  # the agent is gone
        _serve(sys.stdin.buffer, sys.stdout.buffer)
