"""The step `convert`: counts what the served form of a snapshot does to its pages, and makes XHTML of them.

Links, error pages and forms are treated when a page is served, so they are only counted here (fields 39 to 47). XHTML
is made where conf/tidy.conf is there, or a person asked for the step (fields 35 to 38, 48 to 52); the pages stay as
they are.

A derived form is what a tool with certain settings made of a body; it is in `refs/forms/<name>` of a domain, XHTML in
`refs/forms/xhtml`. In its tree, `<xx>/<blob>/<settings>/` has the files of a form, and `settings/<settings>` what the
settings are. `xx` are the first two hex digits of the body's blob. Main is never touched, and a body that did not
change has its form already.

HTML Tidy (https://www.html-tidy.org) is a separate process for many pages, with limits. A page comes back as XHTML with
Tidy's messages, or with the reason why there is none. A page at which Tidy hangs or dies is lost alone: the others of
its process go to a new one.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Generic, Self, TypeVar
from xml.parsers import expat

from agent.steps.context import Clock, StepContext, StepResult, pages_of
from webarcfs.archive.catalogue.record import CrawlPart, FieldNumber
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import ErrorPageMark, LeavingRule
from webarcfs.archive.git.repository import FORMS, RefUpdate, Repository
from webarcfs.archive.git.writing import FastImport
from webarcfs.archive.index.database import CaptureRow
from webarcfs.archive.index.links import Figures, Question, ask, figures, figures_of
from webarcfs.archive.model.errors import Busy, NotFound, SettingsError, TookTooLong, UsageError, WebarcError
from webarcfs.archive.system import locks
from webarcfs.content import text
from webarcfs.content.outlinks import bare, based_resolver
from webarcfs.content.references import Rewritten, Use
from webarcfs.content.rewriting import assembly, html_references
from webarcfs.content.text import decode_charset, decoder
from webarcfs.warc.http_response import LONGEST_OF_ARC, content_type_in

# == page facts, pure =================================================================================================


#: Counts up when the same bytes get other facts.
_VERSION = 1
_FORM = re.compile(rb"<form\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Whether a page shows itself as an error page; its forms that lead to the archive's search, and other ones."""

    is_error: bool = False
    searches: int = 0
    other_forms: int = 0

    def as_bytes(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(asdict(self)).encode()


def parsed(content: bytes) -> PageFacts:
    """Return the inverse of `as_bytes`."""
    fields: dict[str, Any] = json.loads(content)
    return PageFacts(**fields)


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides about pages that were captured at a time: marks of error pages, and rules of forms."""

    marks: tuple[str, ...]
    forms: tuple[LeavingRule, ...]

    @property
    def settings(self) -> str:
        """All that the facts of a page depend on, as text."""
        forms = [[rule.match, rule.does] for rule in self.forms]
        return json.dumps([_VERSION, list(self.marks), forms], ensure_ascii=False)


def rules_of(marks: Iterable[ErrorPageMark], rules: Iterable[LeavingRule], captured: datetime | None) -> Rules:
    """Return what holds for pages that were captured then."""
    return Rules(
        tuple(mark.contains for mark in marks if holds(mark.since, mark.until, captured)),
        tuple(rule for rule in rules if rule.on == "form" and holds(rule.since, rule.until, captured)),
    )


def holds(since: datetime | None, until: datetime | None, captured: datetime | None) -> bool:
    """Return whether a span of captures, open at both ends, has one."""
    if captured is None:
        return True
    return (since is None or captured >= since) and (until is None or captured <= until)


def facts_of(body: bytes, url: str, charset: str, rules: Rules) -> PageFacts:
    """Return the facts of a page."""
    is_error = any(_contains(body, mark, charset) for mark in rules.marks)
    if not _FORM.search(body):
        return PageFacts(is_error)
    targets = _forms(body, url, charset)
    searches = sum(_leads_to_search(rules.forms, target) for target in targets)
    return PageFacts(is_error, searches, len(targets) - searches)


def _contains(body: bytes, mark: str, charset: str) -> bool:
    try:
        return mark.encode(charset, "strict") in body
    except (UnicodeEncodeError, LookupError):
        return False


def _forms(body: bytes, url: str, charset: str) -> list[str]:
    """Return where the forms of a page are sent, as URLs, else as written."""
    references = html_references.of_html(body, charset)
    resolve = based_resolver(url, charset, references.base or "")
    targets: list[str] = []

    def note(use: Use, written: str) -> Rewritten | None:
        if use is Use.FORM:
            targets.append((resolve(bare(written)) if written.strip() else url) or written)
        return None

    for _ in assembly.pieces(body, references, note):
        pass
    return targets


def _leads_to_search(rules: Sequence[LeavingRule], url: str) -> bool:
    rule = next((rule for rule in rules if _pattern(rule.match).search(url)), None)
    return rule is not None and rule.does == "search"


@lru_cache(maxsize=1_000)
def _pattern(match: str) -> re.Pattern[str]:
    return re.compile(".*?".join(map(re.escape, match.split("*"))), re.IGNORECASE | re.DOTALL)


# == tidy =============================================================================================================


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
class TidyMessage:
    """What Tidy says about a place in a page. A warning was repaired, an error was not."""

    line: int
    column: int
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Tidied:
    """A page as XHTML, or the reason in `failed`; Tidy's messages, and how many warnings and errors there were."""

    xhtml: bytes = b""
    failed: str = ""
    messages: tuple[TidyMessage, ...] = ()
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
        """What identifies these settings: 12 hex digits."""
        return settings_id(self.settings)


def settings_id(settings: str) -> str:
    """Return the 12 hex digits by which settings of a derived form are known."""
    return hashlib.sha256(settings.encode()).hexdigest()[:12]


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
        stderr = _run([program, "-config", str(settings), "-errors", "-quiet", os.devnull]).stderr
        faults = [
            line.partition(": ")[2] for line in stderr.decode("utf-8", "replace").splitlines() if "Config: " in line
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
        for limit, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, _FILE), (resource.RLIMIT_CORE, 0)):
            try:
                resource.prlimit(batch.process.pid, limit, (most, most))
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
        last = None
        for number in range(batch.at, len(batch.items)):
            if not (batch.folder / f"{number}.said").exists():
                break
            last = number
        return last

    @staticmethod
    def _result(batch: _Batch[T], number: int) -> Tidied:
        output, xhtml = (_read(batch.folder / f"{number}.{ending}") for ending in ("said", "xhtml"))
        messages, counts = _messages(output)
        failed = "" if xhtml else "nothing came of it"
        if counts.get("error"):
            xhtml, failed = b"", next(message.text for message in messages if message.level == "error")
        if xhtml and (fault := _fault(xhtml)):
            xhtml, failed = b"", f"what came of it is no XML: {fault}"
        return Tidied(xhtml, failed, messages, counts.get("warning", 0), counts.get("error", 0))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _messages(output: bytes) -> tuple[tuple[TidyMessage, ...], dict[str, int]]:
    """Return the first messages, errors before warnings where there are too many, and the counts by level."""
    counts: dict[str, int] = {}
    kept: list[TidyMessage] = []
    for match in _MESSAGE.finditer(output):
        level = match[3].decode("ascii", "replace").lower()
        counts[level] = counts.get(level, 0) + 1
        if len(kept) < MOST_MESSAGES or level == "error":
            kept.append(TidyMessage(int(match[1]), int(match[2]), level, match[4].decode("utf-8", "replace")))
    if len(kept) > MOST_MESSAGES:
        kept.sort(key=lambda message: message.level != "error")
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


# == derived forms ====================================================================================================


#: Forms that are lost by a kill at most.
_AT_ONCE = 5_000
_TRIES = 20


class Forms:
    """The forms of one name and settings, on one domain."""

    def __init__(self, archive: Archive, domain: str, name: str, settings: str) -> None:
        self._archive, self._domain = archive, domain
        self._store = Repository(archive.repository(domain))
        self._ref = f"{FORMS}{name}"
        self._settings = settings
        self._id = settings_id(settings)
        self._folders: dict[str, dict[str, str]] = {}
        self._tree = self._store.ref(self._ref)

    def files(self, blob: str) -> dict[str, str]:
        """Return the files of the form of a body, by name; none if there is no form yet."""
        folder = self._folder(blob[:2]).get(blob)
        entry = self._store.find(folder, self._id) if folder is not None else None
        return {file.name: file.oid for file in self._store.entries(entry.oid)} if entry is not None else {}

    def read(self, oid: str) -> bytes:
        """Return the bytes of a file."""
        return self._store.read(oid)

    def size(self, oid: str) -> int:
        """Return the bytes of a file."""
        return self._store.size(oid)

    def read_again(self) -> None:
        """Take over what was written since."""
        self._tree = self._store.ref(self._ref)
        self._folders.clear()

    def writing(self) -> FormsWriter:
        """Return a writer of forms; a context manager."""
        return FormsWriter(self._archive, self._domain, self._ref, self._settings)

    def _folder(self, name: str) -> dict[str, str]:
        """Return the bodies with forms whose names begin so, with their folders."""
        if name not in self._folders:
            entry = self._store.find(self._tree, name) if self._tree is not None else None
            self._folders[name] = {child.name: child.oid for child in self._store.each(entry.oid)} if entry else {}
        return self._folders[name]


class FormsWriter:
    """Writes forms, thousands at a time: after a kill those that were written are there."""

    def __init__(self, archive: Archive, domain: str, ref: str, settings: str) -> None:
        self._archive, self._domain, self._ref = archive, domain, ref
        self._store = Repository(archive.repository(domain))
        self._id = settings_id(settings)
        self._said = settings.encode()
        self._stack = ExitStack()
        self._importer: FastImport | None = None
        self._placed: list[tuple[str, str]] = []
        self._removed: list[str] = []
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._stack.close()

    def put(self, blob: str, files: Mapping[str, bytes]) -> None:
        """Write the form of a body, in place of the one that is there."""
        if self._importer is None:
            self._importer = self._stack.enter_context(self._store.importer(None))
        folder = f"{blob[:2]}/{blob}/{self._id}"
        self._removed.append(folder)
        for name, content in files.items():
            path = f"{folder}/{name}"
            self._placed.append((path, self._importer.store(path, len(content), [content])))
        self._count += 1
        if self._count >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Make what was put durable and visible."""
        if self._importer is None:
            return
        path = f"settings/{self._id}"
        self._placed.append((path, self._importer.store(path, len(self._said), [self._said])))
        self._importer.finish()
        for _ in range(_TRIES):
            if self._moved(self._placed):
                break
        else:
            raise Busy(f"{self._domain}: its forms are being written by other processes all the time")
        self._stack.close()
        self._stack, self._importer = ExitStack(), None
        self._placed, self._removed, self._count = [], [], 0

    def _moved(self, placed: Iterable[tuple[str, str]]) -> bool:
        """Put the files into the tree as it is now; return whether nobody else did so meanwhile."""
        old = self._store.ref(self._ref)
        with self._store.rewriting(old) as rewriting:
            for folder in self._removed:
                rewriting.remove(folder)
            for path, oid in placed:
                rewriting.put(path, oid)
            tree = rewriting.finish()
            with locks.Turnstile(self._archive.lock(self._domain)).exclusive():
                if self._store.ref(self._ref) != old:
                    return False
                self._store.update_refs([RefUpdate(self._ref, tree, old)])
        return True


# == converting =======================================================================================================

#: The counts of links, in the order in which they are made.
_OF_LINKS = (
    FieldNumber.LINKS,
    FieldNumber.EXTERNAL_LINKS_REPLACED,
    FieldNumber.EXTERNAL_LINKS,
    FieldNumber.INTERNAL_LINKS,
)
#: What a conversion sets, and what is empty without one.
_OF_CONVERSION = (
    FieldNumber.BYTES_CONVERTED,
    FieldNumber.CONVERTER,
    FieldNumber.CONVERTER_PARAMETERS,
    FieldNumber.FILES_CONVERTED,
    FieldNumber.FILES_NOT_CONVERTED,
    FieldNumber.CONVERSION_REMARKS,
)
XHTML, FACTS = "xhtml", "facts"
PAGE, SAID, FACTS_FILE = "page.xhtml", "tidy.json", "facts.json"
#: Names in the report.
REPORT, LIST, TABLE = "conversion.html", "notconverted.txt", "conversion.jsonl.gz"
#: Seconds for the count of links.
_LINKS_SECONDS = 600.0
#: Lines of the report that people read; the table has all.
_MOST_LINES = 20_000


@dataclass
class _Counts:
    """What a conversion counted, over all domains."""

    pages: int = 0
    errors: int = 0
    searches: int = 0
    other_forms: int = 0
    converted: int = 0
    failed: int = 0
    fresh: int = 0
    warnings: int = 0
    saved: int = 0  # bytes of pages that have a form, less those of the forms


def convert(step: StepContext) -> StepResult:
    """Count the served form of a snapshot, and make the XHTML of its pages. Raises Interrupted, UsageError."""
    clock, counts = Clock(), _Counts()
    tool = _tool(step)
    rules = rules_of(step.publication.error_page, step.publication.rule, step.record.date)
    with step.report() as folder, _Report(folder) as report:
        if tool is not None:
            (folder / "tidy.conf").write_text(tool.own, "utf-8")
        for part in step.record.parts:
            _count(step, part, rules, counts)
            if tool is not None:
                _Xhtml(step, part, tool, counts, report).make()
    link_texts, remark = _links(step)
    forms = f"{counts.other_forms} other forms lead to a notice" if counts.other_forms else ""
    texts: dict[int, str] = {
        **link_texts,
        FieldNumber.CONVERSION_DATE: clock.begun,
        FieldNumber.CONVERSION_PERSON: step.person,
        FieldNumber.CONVERSION_DURATION: clock.told,
        FieldNumber.LINK_REMARKS: remark,
        FieldNumber.ERROR_PAGES: str(counts.errors),
        FieldNumber.SEARCH_LINKS: str(counts.searches),
        FieldNumber.SEARCH_LINK_REMARKS: forms,
        **(_texts(step, counts, tool) if tool is not None else dict.fromkeys(_OF_CONVERSION, "")),
    }
    return StepResult(texts, f"{counts.failed} pages were not converted" if counts.failed else "")


def _texts(step: StepContext, counts: _Counts, tool: Converter) -> dict[int, str]:
    remarks = [f"{counts.fresh} pages were converted now, {counts.warnings} warnings"]
    remarks += [f"{counts.failed} are listed in {LIST}"] if counts.failed else []
    whole = step.record.text(FieldNumber.BYTES)
    return {
        FieldNumber.BYTES_CONVERTED: str(int(whole) - counts.saved) if whole.isdecimal() else "",
        FieldNumber.CONVERTER: tool.version,
        FieldNumber.CONVERTER_PARAMETERS: f"settings {tool.id}"
        + (f": {'; '.join(tool.own.split(chr(10)))}"[:500] if tool.own.strip() else ""),
        FieldNumber.FILES_CONVERTED: str(counts.converted),
        FieldNumber.FILES_NOT_CONVERTED: str(counts.failed),
        FieldNumber.CONVERSION_REMARKS: "; ".join(remarks),
    }


def _tool(step: StepContext) -> Converter | None:
    """Return the converter, where XHTML is wanted: set up, or asked for by a person and there."""
    wanted = step.archive.converter_settings.exists()
    if not wanted and not step.asked.by:
        return None
    try:
        return converter(step.archive.converter_settings)
    except UsageError:
        if wanted:
            raise
        return None


def _count(step: StepContext, part: CrawlPart, rules: Rules, counts: _Counts) -> None:
    """Count pages, error pages and forms; each body is read once ever for the same rules."""
    forms = Forms(step.archive, part.tag.domain, FACTS, rules.settings)
    store = Repository(step.archive.repository(part.tag.domain))
    facts: dict[str, PageFacts] = {}
    with forms.writing() as writer:
        for number, row in enumerate(pages_of(step.archive, part), 1):
            step.must_go_on()
            files = forms.files(row.blob)
            if FACTS_FILE in files:
                oid = files[FACTS_FILE]
                page_facts = facts.get(oid) or parsed(forms.read(oid))
                if len(facts) < 10_000:
                    facts[oid] = page_facts
            else:
                body = store.read(row.blob) if row.size <= LARGEST else b""
                page_facts = facts_of(body, row.url, _charset(store, row, body), rules)
                writer.put(row.blob, {FACTS_FILE: page_facts.as_bytes()})
            counts.pages += 1
            counts.errors += page_facts.is_error or row.status >= 400
            counts.searches += page_facts.searches
            counts.other_forms += page_facts.other_forms
            if number % 1_000 == 0:
                step.progress(f"count {part.tag.domain}", number, number)


def _links(step: StepContext) -> tuple[dict[int, str], str]:
    """Return fields 39 to 42, and a remark; empty texts where links are not kept."""
    total = [0, 0, 0, 0]
    mails = 0
    try:
        for part in step.record.parts:
            part_figures = _figures(step, part)
            numbers = (part_figures.total, part_figures.external, part_figures.external_targets, part_figures.internal)
            total = [a + b for a, b in zip(total, numbers, strict=True)]
            mails += part_figures.mails
    except (NotFound, TookTooLong) as error:
        return dict.fromkeys(_OF_LINKS, ""), f"links were not counted: {error}"
    remark = f"{mails} links to mail addresses lead to a notice, too" if mails else ""
    return dict(zip(_OF_LINKS, map(str, total), strict=True)), remark


def _figures(step: StepContext, part: CrawlPart) -> Figures:
    """Return the counts of links on a domain: of the pages that the publication saw."""
    if not part.seen:
        return figures(step.archive, part.tag, _LINKS_SECONDS)
    paths = {row.path for row in pages_of(step.archive, part)}
    links = ask(step.archive, Question(at=part.tag), _LINKS_SECONDS)
    return figures_of(link for link in links if link.path in paths)


class _Xhtml:
    """Makes the XHTML of a record's pages on one domain."""

    def __init__(self, step: StepContext, part: CrawlPart, tool: Converter, counts: _Counts, report: _Report) -> None:
        self._step, self._part, self._tool = step, part, tool
        self._counts, self._report = counts, report
        self._forms = Forms(step.archive, part.tag.domain, XHTML, tool.settings)
        self._store = Repository(step.archive.repository(part.tag.domain))
        self._asked: set[str] = set()

    def make(self) -> None:
        """Convert what has no form yet, then count all."""
        with self._forms.writing() as writer, Tidy[CaptureRow](self._tool, self._step.scratch) as tidy:
            for number, (row, result) in enumerate(tidy.converted(self._missing()), 1):
                self._step.must_go_on()
                content = json.dumps(_said(result), ensure_ascii=False).encode()
                writer.put(row.blob, {SAID: content} | ({PAGE: result.xhtml} if result.xhtml else {}))
                self._counts.fresh += 1
                self._counts.warnings += result.warnings
                self._report.add(row.url, result)
                if number % 100 == 0:
                    self._step.progress(f"convert {self._part.tag.domain}", number, self._counts.pages)
        self._forms.read_again()
        for row in pages_of(self._step.archive, self._part):
            self._step.must_go_on()
            files = self._forms.files(row.blob)
            if PAGE in files:
                self._counts.converted += 1
                self._counts.saved += row.size - self._forms.size(files[PAGE])
            else:
                self._counts.failed += 1
                self._report.list(row.url, self._why(files))

    def _missing(self) -> Iterator[tuple[CaptureRow, bytes | None]]:
        """Yield the pages that have no form, or failed before and are tried again, as UTF-8; each body once."""
        again = self._step.asked.again
        for row in pages_of(self._step.archive, self._part):
            if row.blob in self._asked:
                continue
            files = self._forms.files(row.blob)
            if SAID not in files or (again and PAGE not in files):
                self._asked.add(row.blob)
                yield row, self._as_utf8(row) if row.size <= LARGEST else None

    def _as_utf8(self, row: CaptureRow) -> bytes:
        body = self._store.read(row.blob)
        return decoder(_charset(self._store, row, body)).decode(body, True).encode("utf-8", "replace")

    def _why(self, files: dict[str, str]) -> str:
        return str(json.loads(self._forms.read(files[SAID])).get("failed", "")) if SAID in files else ""


def _said(result: Tidied) -> dict[str, object]:
    messages = [[message.line, message.column, message.level, message.text] for message in result.messages]
    fields = {"warnings": result.warnings, "errors": result.errors, "messages": messages}
    return fields | ({"failed": result.failed} if result.failed else {})


def _charset(store: Repository, row: CaptureRow, body: bytes) -> str:
    """Return the charset of a page, by its head as sent and its bytes."""
    try:
        sent = content_type_in(store.read_short(row.head, LONGEST_OF_ARC))
    except WebarcError:
        sent = ""
    return decode_charset(body[: text.SAMPLE], sent)


class _Report:
    """The report of a conversion: a page for people, a table for programs, and the list of pages to try again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._lines = 0

    def __enter__(self) -> Self:
        enter = self._stack.enter_context
        self._page: IO[str] = enter((self._folder / REPORT).open("w", encoding="utf-8"))
        self._list: IO[str] = enter((self._folder / LIST).open("w", encoding="utf-8"))
        self._table: IO[str] = enter(gzip.open(self._folder / TABLE, "wt", encoding="utf-8", compresslevel=1))
        self._page.write('<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Conversion</title>\n')
        self._page.write("<h1>Conversion to XHTML</h1>\n<p>A warning was repaired, an error was not.</p>\n<table>\n")
        self._page.write("<tr><th>page<th>line<th>column<th>kind<th>message\n")
        return self

    def __exit__(self, *exc: object) -> None:
        self._page.write("</table>\n")
        if self._lines > _MOST_LINES:
            self._page.write(f"<p>and {self._lines - _MOST_LINES} more in {TABLE}</p>\n")
        self._stack.close()

    def add(self, url: str, result: Tidied) -> None:
        """Add a page that was converted, or could not be."""
        messages = [asdict(message) for message in result.messages]
        row = {"url": url, "converted": not result.failed, "failed": result.failed, "messages": messages}
        self._table.write(json.dumps(row, ensure_ascii=False) + "\n")
        shown = result.messages or ((TidyMessage(0, 0, "error", result.failed),) if result.failed else ())
        for message in shown:
            self._lines += 1
            if self._lines <= _MOST_LINES:
                cells = (url, str(message.line), str(message.column), message.level, message.text)
                self._page.write("<tr><td>" + "<td>".join(map(html.escape, cells)) + "\n")

    def list(self, url: str, why: str) -> None:
        """Add a page to the list of those that are to be tried again."""
        self._list.write(f"{url}\t{why}\n")
