"""The step `convert`: counts what the served form of a snapshot does to its pages, and makes XHTML of them.

Links, error pages and forms are treated when a page is served, so they are only counted here (fields 39 to 47). XHTML
is made by HTML Tidy where conf/tidy.conf is there, or a person asked for the step (fields 35 to 38, 48 to 52): it is a
derived form of each page, `refs/forms/xhtml`; the pages stay as they are. What did not change has its form already.
"""

from __future__ import annotations

import gzip
import html
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from agent.converting import pagefacts
from agent.converting.derived_forms import Forms
from agent.converting.pagefacts import PageFacts, Rules
from agent.converting.tidy import LARGEST, Converter, Message, Tidied, Tidy, converter
from agent.indexing import bodies
from agent.steps.context import Clock, StepContext, StepResult, pages_of
from webarcfs.archive.catalogue.record import Part
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index import links_query
from webarcfs.archive.index.captures import CaptureRow
from webarcfs.archive.index.links_query import Figures, Question
from webarcfs.archive.model.errors import NotFound, TookTooLong, UsageError, WebarcError
from webarcfs.content import text
from webarcfs.content.text import decode_charset, decoder

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
    rules = pagefacts.rules_of(step.publication.error_page, step.publication.rule, step.record.date)
    with step.report() as folder, _Report(folder) as report:
        if tool is not None:
            (folder / "tidy.conf").write_text(tool.own, "utf-8")
        for part in step.record.parts:
            _count(step, part, rules, counts)
            if tool is not None:
                _Xhtml(step, part, tool, counts, report).make()
    found, remark = _links(step)
    texts = {
        **found,
        35: clock.begun,
        36: step.person,
        38: clock.told,
        43: remark,
        44: str(counts.errors),
        46: str(counts.searches),
        47: f"{counts.other_forms} other forms lead to a notice" if counts.other_forms else "",
        **(_texts(step, counts, tool) if tool is not None else dict.fromkeys((37, 48, 49, 50, 51, 52), "")),
    }
    return StepResult(texts, f"{counts.failed} pages were not converted" if counts.failed else "")


def _texts(step: StepContext, counts: _Counts, tool: Converter) -> dict[int, str]:
    said = [f"{counts.fresh} pages were converted now, {counts.warnings} warnings"]
    said += [f"{counts.failed} are listed in {LIST}"] if counts.failed else []
    whole = step.record.text(22)
    return {
        37: str(int(whole) - counts.saved) if whole.isdecimal() else "",
        48: tool.version,
        49: f"settings {tool.id}" + (f": {'; '.join(tool.own.split(chr(10)))}"[:500] if tool.own.strip() else ""),
        50: str(counts.converted),
        51: str(counts.failed),
        52: "; ".join(said),
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


def _count(step: StepContext, part: Part, rules: Rules, counts: _Counts) -> None:
    """Count pages, error pages and forms; each body is read once ever for the same rules."""
    known = Forms(step.archive, part.tag.domain, FACTS, rules.settings)
    store = Repository(step.archive.repository(part.tag.domain))
    facts: dict[str, PageFacts] = {}
    with known.writing() as writer:
        for number, row in enumerate(pages_of(step.archive, part), 1):
            step.must_go_on()
            files = known.files(row.blob)
            if FACTS_FILE in files:
                oid = files[FACTS_FILE]
                found = facts.get(oid) or pagefacts.parsed(known.read(oid))
                if len(facts) < 10_000:
                    facts[oid] = found
            else:
                body = store.read(row.blob) if row.size <= LARGEST else b""
                found = pagefacts.facts_of(body, row.url, _charset(store, row, body), rules)
                writer.put(row.blob, {FACTS_FILE: found.as_bytes()})
            counts.pages += 1
            counts.errors += found.is_error or row.status >= 400
            counts.searches += found.searches
            counts.other_forms += found.other_forms
            if number % 1_000 == 0:
                step.progress(f"count {part.tag.domain}", number, number)


def _links(step: StepContext) -> tuple[dict[int, str], str]:
    """Return fields 39 to 42, and a remark; empty texts where links are not kept."""
    total = [0, 0, 0, 0]
    mails = 0
    try:
        for part in step.record.parts:
            found = _figures(step, part)
            each = (found.total, found.external, found.external_targets, found.internal)
            total = [a + b for a, b in zip(total, each, strict=True)]
            mails += found.mails
    except (NotFound, TookTooLong) as error:
        return dict.fromkeys((39, 40, 41, 42), ""), f"links were not counted: {error}"
    remark = f"{mails} links to mail addresses lead to a notice, too" if mails else ""
    return {39 + place: str(number) for place, number in enumerate(total)}, remark


def _figures(step: StepContext, part: Part) -> Figures:
    """Return the counts of links on a domain: of the pages that the publication saw."""
    if not part.seen:
        return links_query.figures(step.archive, part.tag, _LINKS_SECONDS)
    paths = {row.path for row in pages_of(step.archive, part)}
    links = links_query.ask(step.archive, Question(at=part.tag), _LINKS_SECONDS)
    return links_query.figures_of(each for each in links if each.path in paths)


class _Xhtml:
    """Makes the XHTML of a record's pages on one domain."""

    def __init__(self, step: StepContext, part: Part, tool: Converter, counts: _Counts, report: _Report) -> None:
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
                said = json.dumps(_said(result), ensure_ascii=False).encode()
                writer.put(row.blob, {SAID: said} | ({PAGE: result.xhtml} if result.xhtml else {}))
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
    messages = [[each.line, each.column, each.level, each.text] for each in result.messages]
    told = {"warnings": result.warnings, "errors": result.errors, "messages": messages}
    return told | ({"failed": result.failed} if result.failed else {})


def _charset(store: Repository, row: CaptureRow, body: bytes) -> str:
    """Return the charset of a page, by its head as sent and its bytes."""
    try:
        sent = bodies.content_type(store, row.head)
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
        open_text = self._stack.enter_context
        self._page: IO[str] = open_text((self._folder / REPORT).open("w", encoding="utf-8"))
        self._list: IO[str] = open_text((self._folder / LIST).open("w", encoding="utf-8"))
        self._table: IO[str] = open_text(gzip.open(self._folder / TABLE, "wt", encoding="utf-8", compresslevel=1))
        self._page.write('<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Conversion</title>\n')
        self._page.write("<h1>Conversion to XHTML</h1>\n<p>A warning was mended, an error was not.</p>\n<table>\n")
        self._page.write("<tr><th>page<th>line<th>column<th>kind<th>message\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._page.write("</table>\n")
        if self._lines > _MOST_LINES:
            self._page.write(f"<p>and {self._lines - _MOST_LINES} more in {TABLE}</p>\n")
        self._stack.close()

    def add(self, url: str, result: Tidied) -> None:
        """Add a page that was converted, or could not be."""
        messages = [asdict(each) for each in result.messages]
        row = {"url": url, "converted": not result.failed, "failed": result.failed, "messages": messages}
        self._table.write(json.dumps(row, ensure_ascii=False) + "\n")
        shown = result.messages or ((Message(0, 0, "error", result.failed),) if result.failed else ())
        for each in shown:
            self._lines += 1
            if self._lines <= _MOST_LINES:
                cells = (url, str(each.line), str(each.column), each.level, each.text)
                self._page.write("<tr><td>" + "<td>".join(map(html.escape, cells)) + "\n")

    def list(self, url: str, why: str) -> None:
        """Add a page to the list of those that are to be tried again."""
        self._list.write(f"{url}\t{why}\n")
