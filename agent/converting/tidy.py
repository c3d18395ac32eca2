"""HTML Tidy (https://www.html-tidy.org) as a separate process for many pages, with limits: pages in, XHTML out.

A page comes back as XHTML with Tidy's messages, or with the reason why there is none. One at which Tidy hangs or dies
costs that page alone: the others of its process go to a new one.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar
from xml.parsers import expat

from webarcfs.archive.model.errors import SettingsError, UsageError, WebarcError

T = TypeVar("T")
PROGRAM = "tidy"
#: Options that conf/tidy.conf may change. What browsers show must stay, so nothing is dropped or merged.
DEFAULTS = """\
wrap: 0
tidy-mark: no
drop-empty-elements: no
drop-empty-paras: no
merge-divs: no
merge-spans: no
merge-emphasis: no
join-styles: no
fix-backslash: no
literal-attributes: yes
preserve-entities: no
custom-tags: blocklevel
show-info: no
show-errors: 1000
"""
#: Options that nothing changes: the result is XHTML in UTF-8 that any reader of XML takes. Output is forced, since a
#: process would write none any more after its first page with an error; that of such pages is thrown away.
_FIXED = ("-quiet", "-utf8", "-asxhtml", "--gnu-emacs", "yes", "--numeric-entities", "yes", "--force-output", "yes",
          "--write-back", "no", "--output-bom", "no")  # fmt: skip
#: Bytes of a page that is converted, pages and bytes of a process, processes at a time.
LARGEST, _PAGES, _BYTES = 8 << 20, 100, 4 << 20
PROCESSES = min(2, os.cpu_count() or 1)
#: Bounds of a process: bytes of memory and of a file; seconds in which a page must have ended.
_MEMORY, _FILE, PATIENCE = 1 << 30, 128 << 20, 20.0
#: Messages of a page that are kept; all are counted.
MOST_MESSAGES = 200
#: Tidy reads no settings but ours, and speaks English.
_ENVIRONMENT = {"PATH": os.defpath, "HOME": "/nonexistent", "LC_ALL": "C"}
_MESSAGE = re.compile(rb"[^:\n]*:(\d+):(\d+): (\w+): ([^\n]*)")
_BETWEEN_LOOKS = 0.05


@dataclass(frozen=True, slots=True)
class Message:
    """What Tidy says about a place in a page. A warning was mended, an error was not."""

    line: int
    column: int
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Tidied:
    """A page as XHTML, or the reason in `failed`; Tidy's messages, and how many warnings and errors there were."""

    xhtml: bytes = b""
    failed: str = ""
    messages: tuple[Message, ...] = ()
    warnings: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Converter:
    """The installed Tidy with the settings of an archive. `settings` says all that its results depend on."""

    program: str
    version: str
    own: str

    @property
    def settings(self) -> str:
        """The tool, its version and its settings, as text."""
        return f"{self.version}\n{' '.join(_FIXED)}\n{DEFAULTS}{self.own}"

    @property
    def id(self) -> str:
        """What tells these settings from others: 12 hex digits."""
        return settings_id(self.settings)


def settings_id(text: str) -> str:
    """Return the 12 hex digits by which settings of a derived form are known."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def converter(settings: Path) -> Converter:
    """Return the installed Tidy. Raises UsageError without one, SettingsError if it refuses the settings."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError("pages are converted by HTML Tidy, which is not here; on Debian: apt-get install tidy")
    try:
        own = settings.read_text("utf-8-sig")
    except FileNotFoundError:
        own = ""
    except UnicodeDecodeError as error:
        raise SettingsError(str(settings), [f"not UTF-8 at byte {error.start}"]) from None
    if own:
        said = _run([program, "-config", str(settings), "-errors", "-quiet", os.devnull]).stderr
        faults = [
            line.partition(": ")[2] for line in said.decode("utf-8", "replace").splitlines() if "Config: " in line
        ]
        if faults:
            raise SettingsError(str(settings), faults)
    version = _run([program, "-version"]).stdout.decode("utf-8", "replace").strip()
    return Converter(program, version, own)


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False, env=_ENVIRONMENT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WebarcError(f"{command[0]} does not answer: {error}") from None


@dataclass
class _Batch(Generic[T]):
    """Pages of one process, in their order, each in a file of its number; `at` is the first that has not ended."""

    folder: Path
    items: list[T]
    process: subprocess.Popen[bytes] | None = None
    at: int = 0
    results: dict[int, Tidied] = field(default_factory=dict)


class Tidy(Generic[T]):
    """Converts pages, in files of a folder that is removed at the end. A context manager, for one thread."""

    def __init__(self, how: Converter, folder: Path, patience: float = PATIENCE) -> None:
        self._how, self._folder, self._patience = how, folder, patience
        self._running: deque[_Batch[T]] = deque()
        self._number = 0

    def __enter__(self) -> Tidy[T]:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        (self._folder / "defaults.conf").write_text(DEFAULTS, "utf-8")
        (self._folder / "own.conf").write_text(self._how.own, "utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        for batch in self._running:
            if batch.process is not None:
                _end(batch.process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def converted(self, pages: Iterable[tuple[T, bytes | None]]) -> Iterator[tuple[T, Tidied]]:
        """Yield each item with its page as XHTML, in order; the pages are UTF-8, None for one that is too large."""
        batch, size = self._new(), 0
        for item, page in pages:
            is_small = page is not None and len(page) <= LARGEST
            if not is_small:
                batch.results[len(batch.items)] = Tidied(failed=f"it has more than {LARGEST} bytes")
            written = page if is_small and page is not None else b""  # the number of a large one stays
            (batch.folder / f"{len(batch.items)}.html").write_bytes(written)
            batch.items.append(item)
            size += len(written)
            if len(batch.items) >= _PAGES or size >= _BYTES:
                yield from self._begun(batch)
                batch, size = self._new(), 0
        if batch.items:
            yield from self._begun(batch)
        while self._running:
            yield from self._ended(self._running.popleft())

    def _new(self) -> _Batch[T]:
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        return _Batch(folder, [])

    def _begun(self, batch: _Batch[T]) -> Iterator[tuple[T, Tidied]]:
        self._start(batch)
        self._running.append(batch)
        if len(self._running) > PROCESSES - 1 or PROCESSES == 1:
            yield from self._ended(self._running.popleft())

    def _start(self, batch: _Batch[T]) -> None:
        """Start a process for the pages of a batch that have not ended."""
        command = [self._how.program, "-config", "../defaults.conf", "-config", "../own.conf", *_FIXED]
        for number in range(batch.at, len(batch.items)):
            command += ["-f", f"{number}.said", "-o", f"{number}.xhtml", f"{number}.html"]
        try:
            batch.process = subprocess.Popen(
                command, cwd=batch.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=_ENVIRONMENT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise WebarcError(f"{self._how.program} cannot be started: {error}") from None
        for what, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, _FILE), (resource.RLIMIT_CORE, 0)):
            try:
                resource.prlimit(batch.process.pid, what, (most, most))
            except (ProcessLookupError, PermissionError):
                break  # it has ended

    def _ended(self, batch: _Batch[T]) -> Iterator[tuple[T, Tidied]]:
        """Wait for the end of a batch, through as many processes as it takes; yield its results."""
        while batch.at < len(batch.items):
            how = self._waited(batch)
            last = self._begun_last(batch)
            if how and last is None:
                raise WebarcError(f"{self._how.program} {how} before it read a page; is it whole?")
            end = len(batch.items) if not how else last or 0
            for number in range(batch.at, end):
                batch.results.setdefault(number, self._result(batch, number))
            batch.at = end
            if how:
                batch.results.setdefault(end, Tidied(failed=f"Tidy {how}"))
                batch.at += 1
                if batch.at < len(batch.items):
                    self._start(batch)
        for number, item in enumerate(batch.items):
            yield item, batch.results[number]
        shutil.rmtree(batch.folder, ignore_errors=True)

    def _waited(self, batch: _Batch[T]) -> str:
        """Wait for a process; return how it went wrong: empty if it did not."""
        process = batch.process
        assert process is not None
        seen, since = self._begun_last(batch), time.monotonic()
        while True:
            try:
                code = process.wait(_BETWEEN_LOOKS)
            except subprocess.TimeoutExpired:
                now_at = self._begun_last(batch)
                if now_at != seen:
                    seen, since = now_at, time.monotonic()
                elif time.monotonic() - since > self._patience:
                    _end(process)
                    return f"took more than {self._patience:g} s"
                continue
            if code < 0:
                return f"died of {signal.Signals(-code).name}"
            return "" if code <= 2 else f"ended with {code}"  # 1: warnings, 2: errors

    @staticmethod
    def _begun_last(batch: _Batch[T]) -> int | None:
        """Return the last page that the process has begun; None before the first."""
        found = None
        for number in range(batch.at, len(batch.items)):
            if not (batch.folder / f"{number}.said").exists():
                break
            found = number
        return found

    @staticmethod
    def _result(batch: _Batch[T], number: int) -> Tidied:
        said, xhtml = (_read(batch.folder / f"{number}.{ending}") for ending in ("said", "xhtml"))
        messages, counts = _messages(said)
        failed = "" if xhtml else "nothing came of it"
        if counts.get("error"):
            xhtml, failed = b"", next(each.text for each in messages if each.level == "error")
        if xhtml and (fault := _fault(xhtml)):
            xhtml, failed = b"", f"what came of it is no XML: {fault}"
        return Tidied(xhtml, failed, messages, counts.get("warning", 0), counts.get("error", 0))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _messages(said: bytes) -> tuple[tuple[Message, ...], dict[str, int]]:
    """Return the first messages, errors before warnings where there are too many, and the counts by level."""
    counts: dict[str, int] = {}
    kept: list[Message] = []
    for match in _MESSAGE.finditer(said):
        level = match[3].decode("ascii", "replace").lower()
        counts[level] = counts.get(level, 0) + 1
        if len(kept) < MOST_MESSAGES or level == "error":
            kept.append(Message(int(match[1]), int(match[2]), level, match[4].decode("utf-8", "replace")))
    if len(kept) > MOST_MESSAGES:
        kept.sort(key=lambda each: each.level != "error")
        kept = kept[:MOST_MESSAGES]
    return tuple(kept), counts


def _fault(xhtml: bytes) -> str:
    """Return why a text is no well-formed XML; empty if it is."""
    try:
        expat.ParserCreate("utf-8").Parse(xhtml, True)
    except expat.ExpatError as error:
        return str(error)
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
