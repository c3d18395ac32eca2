"""Reads the results of batches in a second process, so that a crawl uses two cores: one parses pages, one decides.

The two processes exchange marshalled tuples: several times cheaper than pickle, and they run no code. The reading
process keeps no state but the position of the response that it is reading (`ReadMarks`). It ends when its input ends,
however its parent died. It sends the results of a batch once all are read, so that the job never waits for a page to be
parsed. Small batches are read in the job's own process while that is fast: a small crawl starts no other.

A response whose parsing kills the process, also by the kernel's time limit, is tried once more, then read without its
links. The kernel measures the processor's time: an answer may take half a minute of it. A crawl with an answer read
without its links is incomplete, since it cannot say what is no longer linked. A job that must stop waits two seconds
for the answers under way; the next run reads them from the WARCs.

`ReadMarks` writes the position into a file beside the WARC, so that a response that kills its reader is identified.
Each line is the position of a response in the WARC. The last line is the response being read; each line before it marks
the death of a reader. A line is written with one system call and never synced: a page may kill a process, but it does
not cause a power failure.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from agent.crawl import wget
from agent.crawl.frontier import FrontierUrl, UrlOutcome
from agent.crawl.wget import Batch, FetchResult, Killed, Limits
from webarcfs.archive.model.errors import CrawlFailed
from webarcfs.archive.system import clocks
from webarcfs.content.outlinks import Link
from webarcfs.content.reference_table import LinkPurpose, NamedAs
from webarcfs.warc import http_response

# == read marks =======================================================================================================


#: Deaths of readers after which a response is read without its links: the first one may have been killed by chance.
MOST_DEATHS = 2
_LINE = 20


def path_of(warc: Path) -> Path:
    """Return the file of the batch with this WARC."""
    return warc.with_suffix(".reading")


def size(warc: Path) -> int:
    """Return the size of the file; 0 if no reader of this batch has died and none is running."""
    try:
        return path_of(warc).stat().st_size
    except FileNotFoundError:
        return 0


def forget(warc: Path, known: int) -> None:
    """Truncate the file to the size `known`: its reader was ended on purpose, no response is at fault."""
    with suppress(FileNotFoundError):
        if known:
            os.truncate(path_of(warc), known)
        else:
            path_of(warc).unlink()


def deaths(warc: Path) -> int:
    """Return how many readers died on the response in the last line."""
    lines = path_of(warc).read_bytes().splitlines()
    return lines.count(lines[-1]) if lines else 0


class ReadMarks:
    """The file of a batch that is being read. Call `done` at the end."""

    def __init__(self, warc: Path) -> None:
        self._path = path_of(warc)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        lines = os.read(self._fd, os.fstat(self._fd).st_size).decode("ascii", "replace").splitlines()
        counts = Counter(int(line) for line in lines if line.isascii() and line.isdecimal() and len(line) < _LINE)
        self.deadly = frozenset(position for position, count in counts.items() if count >= MOST_DEATHS)
        self._at = len(lines) * _LINE

    def begin(self, position: int) -> None:
        """Record that the response at `position` is being read from now on."""
        os.pwrite(self._fd, b"%019d\n" % position, self._at)

    def done(self) -> None:
        """Remove the file: the batch was read."""
        os.close(self._fd)
        self._path.unlink(missing_ok=True)


# == result reader ====================================================================================================


#: Batches of up to this many URLs are first tried in the job's own process.
_FEW = 40
#: Limits of that try: CPU seconds, and bytes of one response. Beyond them the other process reads the whole batch.
_MOMENT = 0.2
_LARGE = 1 << 20
#: CPU seconds for one response, after which the kernel ends the process (SIGPROF): the largest page takes a few. One
#: second is added for every `_SLOWEST` bytes.
_LONGEST_ANSWER = 30
_SLOWEST = 1 << 20
#: Bytes of results that the process keeps in memory; more of them are in an unnamed file.
_IN_MEMORY = 32 << 20
#: Links after which a part of the results is written. This bounds the memory of both processes.
_MOST_LINKS = 200_000
_LENGTH = 4
_SETTLED = tuple(field.name for field in fields(UrlOutcome))
# Not dataclasses.astuple, which copies every value deeply.
_values_of_settled = attrgetter(*_SETTLED)
_values_of_row = attrgetter(*(field.name for field in fields(FrontierUrl)))
_values_of_limits = attrgetter(*(field.name for field in fields(Limits)))
_KINDS = {str(kind.value): kind for kind in LinkPurpose}
_NAMES = {str(named.value): named for named in NamedAs}
# Each member's value: asked for by name, it takes Python 3.11 several times as long.
_VALUES_OF_KINDS = {kind: value for value, kind in _KINDS.items()}
_VALUES_OF_NAMES = {named: value for value, named in _NAMES.items()}
#: A link as it is sent.
_SentLink = tuple[str, str, str]
#: Received links that are kept, and their longest URL: pages of a site share most of their links.
_MOST_KNOWN, _LONGEST_KNOWN = 50_000, 512


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """A batch whose wget has ended: its URLs, its files, and whether wget was killed."""

    number: int
    domain: str
    rows: list[FrontierUrl]
    warc: Path
    log: Path
    killed: Killed | None = None


class _TakesLong(Exception):
    """A batch takes too long to read in the job's own process."""


class ResultReader:
    """Reads batches in the order in which they are given, small batches first. Close it after use."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._few: deque[EndedBatch] = deque()
        self._here: tuple[EndedBatch, list[FetchResult]] | None = None  # a small batch and its results
        self._queue: deque[EndedBatch] = deque()  # for the process
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = False  # whether the process has the first batch of the queue
        self._marks = 0  # size of that batch's file of marks when it was sent
        self._links: dict[_SentLink, Link] = {}

    def give(self, batch: EndedBatch) -> None:
        """Queue a batch for reading."""
        is_small = len(batch.rows) <= _FEW and not size(batch.warc)
        (self._few if is_small else self._queue).append(batch)
        self._send()

    @property
    def backlog(self) -> int:
        """The number of given batches whose results were not taken yet."""
        return len(self._few) + len(self._queue) + (self._here is not None)

    def next(self, others: Iterable[int], seconds: float) -> EndedBatch | None:
        """Return a batch whose results are ready; None after `seconds`, or once a descriptor in `others` is ready."""
        if self._here is None and self._few:
            self._try_here(self._few.popleft())
        poll = select.poll()
        mine = self._out.fileno() if self._sent else -1
        for fd in (mine, *others):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(0 if self._here or self._few else seconds * 1000)}
        if mine in ready:
            if self._out.peek(1):
                return self._queue[0]
            self._send_again(self._queue[0])
        return self._here[0] if self._here is not None else None

    def answers(self, batch: EndedBatch, rows: Iterable[FrontierUrl]) -> Generator[FetchResult, None, None]:
        """Yield the results of the batch that `next` returned, and remove it from the backlog.

        `rows` are its URLs in their current state in the frontier. The process reads the next batch meanwhile. Close
        the generator: if it is closed before its end, the rest must not be mistaken for results of the next batch.
        """
        rows_by_id = {row.id: row for row in rows}
        if self._here is not None and self._here[0] is batch:
            _, fetch_results = self._here
            self._here = None
            yield from (
                replace(fetch_result, row=rows_by_id[fetch_result.row.id])
                for fetch_result in fetch_results
                if fetch_result.row.id in rows_by_id
            )
            return
        self._queue.popleft()
        last = False
        try:
            while not last:
                last, records = self._receive(batch)
                if last:
                    self._sent = False
                    self._send()
                yield from (
                    _answer(rows_by_id[record[0][0]], record, self._received_links(record[2]))
                    for record in records
                    if record[0][0] in rows_by_id
                )
        finally:
            if not last:
                self._end()

    def close(self) -> None:
        """End the process, and remove its mark: the response that it was reading is not at fault."""
        is_busy = self._sent and self._process is not None and self._process.poll() is None
        self._end()
        if is_busy and self._queue:
            forget(self._queue[0].warc, self._marks)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process, self._sent = None, False

    def _try_here(self, batch: EndedBatch) -> None:
        fetch_results = _read_here(batch, self._limits)
        if fetch_results is not None:
            self._here = (batch, fetch_results)
        else:
            self._queue.append(batch)
            self._send()

    def _send(self) -> None:
        """Send the first batch of the queue to the process. One at a time, so that no write blocks on a full pipe."""
        if not self._queue or self._sent:
            return
        batch = self._queue[0]
        killed = (
            None if batch.killed is None else (int(batch.killed.status), str(batch.killed.note), batch.killed.drained)
        )
        rows, limits = list(map(_values_of_row, batch.rows)), _values_of_limits(self._limits)
        task = (rows, str(batch.warc), str(batch.log), killed, limits, clocks.OFFSET)
        if self._process is None:
            self._process = _started()
        assert self._process.stdin is not None
        self._marks = size(batch.warc)
        with contextlib.suppress(BrokenPipeError):  # `next` notices that the process has ended
            _write(self._process.stdin, task)
        self._sent = True

    def _send_again(self, batch: EndedBatch) -> None:
        """Restart the process after its death. Raises CrawlFailed if no response of the batch can be the cause."""
        assert self._process is not None
        was_killed = self._process.wait() < 0 and size(batch.warc) > self._marks
        if not was_killed or deaths(batch.warc) > MOST_DEATHS:
            raise self._died(batch)
        self._end()
        self._send()

    def _receive(self, batch: EndedBatch) -> tuple[bool, list[Any]]:
        frame = _frame(self._out)
        if frame is None:
            raise self._died(batch)
        last, records = frame
        return bool(last), records

    def _received_links(self, sent: list[_SentLink]) -> tuple[Link, ...]:
        """Return the links of a page, which the process has sent; those of the pages before are not made again."""
        known = self._links
        if len(known) > _MOST_KNOWN:
            known.clear()
        links = []
        for sent_link in sent:
            link = known.get(sent_link)
            if link is None:
                url, kind, named = sent_link
                link = Link(url, _KINDS[kind], _NAMES[named])
                if len(url) <= _LONGEST_KNOWN:
                    known[sent_link] = link
            links.append(link)
        return tuple(links)

    @property
    def _out(self) -> io.BufferedReader:
        assert self._process is not None
        assert isinstance(self._process.stdout, io.BufferedReader)
        return self._process.stdout

    def _died(self, batch: EndedBatch) -> CrawlFailed:
        assert self._process is not None
        code = self._process.wait()
        return CrawlFailed(f"the process that reads answers ended with {code} at {batch.warc}")


def _answer(row: FrontierUrl, record: tuple[Any, ...], links: tuple[Link, ...]) -> FetchResult:
    settled, target, _, *rest = record
    return FetchResult(row, UrlOutcome(**dict(zip(_SETTLED, settled, strict=True))), target, links, *rest)


def _started() -> subprocess.Popen[bytes]:
    # The same module path as this process: `agent` may be imported from a checkout.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "agent.crawl.resultreader"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _read(
    batch: EndedBatch, limits: Limits, offset: float, marks: ReadMarks, begin: Callable[[http_response.Response], None]
) -> Iterator[FetchResult]:
    """Yield the results of a batch. `offset` converts seconds since boot to the clock of the job's process."""
    try:
        log = batch.log.read_text("utf-8", "replace")
    except FileNotFoundError:
        log = ""
    read = Batch(batch.rows, batch.warc, log, batch.killed, marks.deadly)

    def marked(response: http_response.Response) -> None:
        begin(response)
        marks.begin(response.offset)

    return wget.answers(read, limits, offset + clocks.since_boot(), marked)


def _read_here(batch: EndedBatch, limits: Limits) -> list[FetchResult] | None:
    """Return the results of a batch; None if reading it exceeds `_MOMENT` or `_LARGE`."""
    begun = time.thread_time()

    def begin(response: http_response.Response) -> None:
        if response.size > _LARGE or time.thread_time() - begun > _MOMENT:
            raise _TakesLong

    marks = ReadMarks(batch.warc)
    try:
        return list(_read(batch, limits, clocks.OFFSET, marks, begin))
    except _TakesLong:
        return None
    finally:
        marks.done()


def _write(file: IO[bytes], value: Any) -> None:
    data = marshal.dumps(value)
    file.write(len(data).to_bytes(_LENGTH, "big"))
    file.write(data)
    file.flush()


def _frame(file: IO[bytes]) -> Any:
    """Return the next value; None at the end of the file."""
    length = int.from_bytes(file.read(_LENGTH), "big")
    data = file.read(length)
    return marshal.loads(data) if length and len(data) == length else None  # noqa: S302 # from our own process


def _serve(given: IO[bytes], out: IO[bytes]) -> None:
    """Read tasks and write their results until the input ends."""
    while (task := _frame(given)) is not None:
        rows, warc, log, killed, limits, offset = task
        batch = EndedBatch(
            0, "", [FrontierUrl(*row) for row in rows], Path(warc), Path(log), Killed(*killed) if killed else None
        )
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(batch.warc.parent)) as all_answers:
            _read_all(batch, Limits(*limits), offset, all_answers)
            all_answers.seek(0)
            shutil.copyfileobj(all_answers, out)
        out.flush()


def _read_all(batch: EndedBatch, limits: Limits, offset: float, out: IO[bytes]) -> None:
    """Write the results of a batch. A timer limits the CPU time of each response; its expiry ends the process."""
    answers: list[tuple[object, ...]] = []
    links = 0
    marks = ReadMarks(batch.warc)

    def begin(response: http_response.Response) -> None:
        seconds = _LONGEST_ANSWER + response.size / _SLOWEST
        signal.setitimer(signal.ITIMER_PROF, 0 if response.offset in marks.deadly else seconds)

    try:
        for answer in _read(batch, limits, offset, marks, begin):
            links += len(answer.links)
            found = [(url, _VALUES_OF_KINDS[kind], _VALUES_OF_NAMES[named]) for url, kind, named in answer.links]
            settled = tuple(map(_plain, _values_of_settled(answer.settled)))
            rest = (answer.forward, answer.robots, answer.hsts, answer.sets_cookie, answer.lists)
            answers.append((settled, answer.target, found, *rest))
            if links > _MOST_LINKS:
                _write(out, (False, answers))
                answers, links = [], 0
        _write(out, (True, answers))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    marks.done()


def _plain(value: object) -> object:
    """Return `value` as a built-in type: marshal does not accept enumerations."""
    return int(value) if isinstance(value, int) else str(value) if isinstance(value, str) else value


if __name__ == "__main__":
    # A signal to the whole terminal or service is for the agent, which still needs the results.
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # it ends the process, whatever disposition was inherited
    with contextlib.suppress(BrokenPipeError):  # the agent has ended
        _serve(sys.stdin.buffer, sys.stdout.buffer)
