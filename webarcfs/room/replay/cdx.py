"""Answers of `/cdx`: the rows that a question asks for, in a stream of flat memory, in the question's form. Pure.

The archive is read by the caller: `read` yields all captures that a reader may see with a urlkey inside a range, by
(urlkey, captured) ascending, or descending; captures with the same two always in the same order. It may yield others,
too.
An answer that is too long for the time that the caller has is ended by its `read`, by an error: rows that just stop
would look complete.

    question = parse_question(query)            CdxQuestion, or CdxFault for 400
    answer(question, read)                      text in pieces, for MEDIA_TYPES[question.output]
    pywb_rows(question, read)                   the same for `/cdx/pywb`, where pywb is the engine

The Wayback Machine's availability API is here, too: the memento that is closest to a time, as JSON.
`/wayback/available?url=…&timestamp=…` is asked by many scripts and add-ons. Without a timestamp it is the newest
memento; without any memento the answer is 200 with none in it.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice

from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.room.replay.cdx_question import (
    NOTHING,
    UNKNOWN,
    CdxFault,
    CdxField,
    CdxQuestion,
    CdxSort,
    Collapse,
    MatchType,
    Output,
    ResumeKey,
    SurtRange,
    parse_question,
    value_of,
)
from webarcfs.room.replay.memento import in_force, nearest, uri_m
from webarcfs.room.replay.replay_url import (
    LAST_SECOND,
    Modifier,
    Refused,
    archived_url,
    digits_of,
    seconds_of,
    span_end,
)

# == cdx, pure ========================================================================================================


#: Reads the captures of a range: ascending, or (True) descending.
Read = Callable[[SurtRange, bool], Iterable[VisibleCapture]]

#: Types of answers.
MEDIA_TYPES = {Output.TEXT: "text/plain", Output.JSON: "application/json", Output.CDXJ: "text/x-cdxj"}
#: Most rows for pywb, which asks for prefixes to compare URLs that differ in a session's name.
MOST_FOR_PYWB = 1_000
_AT_ONCE = 500
#: CDXJ has pywb's names.
_CDXJ_NAMES = {
    CdxField.ORIGINAL: "url",
    CdxField.MIMETYPE: "mime",
    CdxField.STATUSCODE: "status",
    CdxField.DIGEST: "digest",
    CdxField.LENGTH: "length",
    CdxField.DUPECOUNT: "dupecount",
}


def answer(question: CdxQuestion, read: Read) -> Iterator[str]:
    """Return the answer in pieces. Where the URLs have no captures, it is about their host with or without `www.`."""
    if question.counts_pages:
        pages = number_of_pages(question, read)
        if not pages and (other := _elsewhere(question, read)) is not None:
            pages = number_of_pages(other, read)
        yield f"{pages}\n"
        return
    selected_rows = rows(question, read)
    begin = list(islice(selected_rows, 1))
    if not begin and (other := _elsewhere(question, read)) is not None:
        question, selected_rows = other, rows(other, read)
    selected_rows = chain(begin, selected_rows)
    write = {Output.TEXT: _as_text, Output.JSON: _as_json, Output.CDXJ: _as_cdxj}
    lines = write[question.output](question, selected_rows)
    while piece := "".join(islice(lines, _AT_ONCE)):
        yield piece


def _elsewhere(question: CdxQuestion, read: Read) -> CdxQuestion | None:
    """Return the same question about the host with `www.`, or without, if the URLs of this one have no captures."""
    captures = (
        capture for part in question.ranges for capture in read(part, False) if part.low <= capture.surt < part.high
    )
    return question.at_other_host() if next(captures, None) is None else None


@dataclass(frozen=True, slots=True)
class Row:
    """A capture, read after `skipped` others with the same urlkey and time.

    `duplicates` are the rows of its URL above it that have its digest, where that was asked for.
    """

    capture: VisibleCapture
    skipped: int
    duplicates: int = 0

    def value(self, field: CdxField) -> str:
        """Return the value of a column."""
        return str(self.duplicates) if field is CdxField.DUPECOUNT else value_of(self.capture, field)


def rows(question: CdxQuestion, read: Read) -> Iterator[Row | ResumeKey]:
    """Yield the rows of a page, and then, where it was asked for and there is more, the key of the next one."""
    selected_rows = _shown(question, read)
    if question.counts_duplicates:
        selected_rows = _counted(_above(question, read), selected_rows)
    if question.sort is CdxSort.CLOSEST:
        yield from _closest(question, selected_rows)
    elif question.is_from_end:
        yield from reversed(list(islice(selected_rows, question.limit)))
    elif question.is_last:
        yield from deque(selected_rows, question.limit)
    else:
        if question.page is not None:
            begin = question.page * question.rows_of_page
            selected_rows = islice(selected_rows, begin, begin + question.rows_of_page)
        page = islice(selected_rows, question.offset, None)
        yield from islice(page, question.limit)
        if question.shows_resume_key and (following := next(page, None)) is not None:
            yield ResumeKey(following.capture.surt, following.capture.captured, following.skipped)


def number_of_pages(question: CdxQuestion, read: Read) -> int:
    """Return how many pages the rows of a question fill."""
    return -(-sum(1 for _ in _shown(question, read)) // question.rows_of_page)


def _shown(question: CdxQuestion, read: Read) -> Iterator[Row]:
    return _collapsed(question, _kept(question, _read(question, read)))


def _above(question: CdxQuestion, read: Read) -> Iterator[Row]:
    """Yield the rows of the URL at which a page resumes that the pages before it had."""
    resume = question.resume
    if resume is None:
        return
    here = SurtRange(resume.surt, resume.surt + "\0")
    for row in _shown(replace(question, resume=None, ranges=(here,)), read):
        if (row.capture.captured, row.skipped) == (resume.since, resume.skipped):
            return
        yield row


def _counted(above: Iterable[Row], rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that were found, each with the number of those of its URL before it that have its digest."""
    for surt, group in groupby(rows, lambda row: row.capture.surt):
        digests = Counter(row.value(CdxField.DIGEST) for row in above if row.capture.surt == surt)
        for row in group:
            digest = row.value(CdxField.DIGEST)
            yield replace(row, duplicates=digests[digest])
            digests[digest] += 1


def _read(question: CdxQuestion, read: Read) -> Iterator[Row]:
    """Yield the captures that were not before the resume key."""
    resume, descending = question.resume, question.is_descending
    before: tuple[str, int] | None = None
    skipped = 0
    for surt_range in question.surt_ranges():
        for capture in read(surt_range, descending):
            if not surt_range.low <= capture.surt < surt_range.high:
                continue
            key = (capture.surt, capture.captured)
            skipped = skipped + 1 if key == before else 0
            before = key
            if resume is not None:
                start = (resume.surt, resume.since)
                is_done = key > start if descending else key < start
                if is_done or (key == start and skipped < resume.skipped):
                    continue
            yield Row(capture, skipped)


def _kept(question: CdxQuestion, captures: Iterable[Row]) -> Iterator[Row]:
    """Yield what is inside from and to, and what the filters keep."""
    for row in captures:
        if question.since <= row.capture.captured <= question.until and all(
            condition.keeps(value_of(row.capture, condition.field)) for condition in question.filters
        ):
            yield row


def _collapsed(question: CdxQuestion, captures: Iterator[Row]) -> Iterator[Row]:
    for collapse in question.collapses:
        # The last rows are read backwards, but are to be the first of their neighbours all the same.
        captures = _last_of_each(collapse, captures) if question.is_from_end else _first_of_each(collapse, captures)
    return captures


def _key(collapse: Collapse) -> Callable[[Row], str]:
    return lambda row: value_of(row.capture, collapse.field)[: collapse.length]


def _first_of_each(collapse: Collapse, captures: Iterable[Row]) -> Iterator[Row]:
    return (next(group) for _, group in groupby(captures, _key(collapse)))


def _last_of_each(collapse: Collapse, captures: Iterable[Row]) -> Iterator[Row]:
    return (deque(group, 1)[0] for _, group in groupby(captures, _key(collapse)))


def _closest(question: CdxQuestion, captures: Iterable[Row]) -> list[Row]:
    """Return the rows nearest to `closest`, of two that are equally near the one that was read first."""
    time = LAST_SECOND if question.closest is None else question.closest
    most = question.limit + question.offset
    rows = heapq.nsmallest(most, captures, key=lambda row: abs(row.capture.captured - time))
    return rows[question.offset :]


def _as_text(question: CdxQuestion, rows: Iterable[Row | ResumeKey]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, ResumeKey):
            yield f"\n{row}\n"
        else:
            yield " ".join(map(row.value, question.fields)) + "\n"


def _as_json(question: CdxQuestion, rows: Iterable[Row | ResumeKey]) -> Iterator[str]:
    """Write the first row with the names of the columns; nothing but `[]` where nothing was found.

    Behind the last page there is nothing at all: so programs know that they have all of them.
    """
    is_first = True
    for row in rows:
        if is_first:
            yield f"[{json.dumps([str(field) for field in question.fields])}"
            is_first = False
        if isinstance(row, ResumeKey):
            yield f",\n[],\n{json.dumps([str(row)])}"
        else:
            yield f",\n{json.dumps(list(map(row.value, question.fields)))}"
    if not is_first:
        yield "]\n"
    elif not question.page:
        yield "[]\n"


def _as_cdxj(question: CdxQuestion, rows: Iterable[Row | ResumeKey]) -> Iterator[str]:
    names = [(name, field) for field, name in _CDXJ_NAMES.items() if field in question.fields]
    for row in rows:
        if isinstance(row, ResumeKey):
            yield f"\n{row}\n"
        else:
            yield _cdxj_line(row.capture, {name: _as_exported(field, row.value(field)) for name, field in names})


def _as_exported(field: CdxField, value: str) -> str:
    return f"sha1:{value}" if field is CdxField.DIGEST else value


def _cdxj_line(capture: VisibleCapture, fields: dict[str, str]) -> str:
    return f"{capture.surt} {digits_of(capture.captured)} {json.dumps(fields)}\n"


def pywb_rows(question: CdxQuestion, read: Read) -> Iterator[str]:
    """Yield CDXJ lines for pywb: of each URL what is in force at `closest`, the present without it.

    An exact URL has two rows where it is a redirect and has a document behind it; the redirect comes first. A prefix
    has 1,000 rows at most. `filename` names the record at `/record/` (`warc_record` makes it; offset and length are of
    a file with one record).
    """
    time = question.closest if question.closest is not None else question.until
    all_captures = (
        capture
        for part in question.surt_ranges()
        for capture in read(part, False)
        if part.low <= capture.surt < part.high
    )
    versions = (capture for capture in all_captures if not capture.is_revisit)
    by_url = (tuple(group) for _, group in groupby(versions, lambda capture: capture.surt))
    lines = (line for captures in by_url for line in _pywb_lines(question, captures, time))
    return islice(lines, MOST_FOR_PYWB)


def _pywb_lines(question: CdxQuestion, captures: tuple[VisibleCapture, ...], time: int) -> Iterator[str]:
    now = [capture for capture in captures if capture.since <= time < capture.until]
    documents = [capture for capture in now if not capture.is_redirect]
    url = question.url if question.match is MatchType.EXACT else (documents or now or captures)[0].url
    first = in_force(captures, url, time)
    if first is None:
        return
    yield _pywb_line(first)
    if first.is_redirect and documents:
        yield _pywb_line(max(documents, key=lambda capture: capture.since))


def _pywb_line(capture: VisibleCapture) -> str:
    fields = {
        "url": capture.url,
        "mime": UNKNOWN if capture.is_redirect else value_of(capture, CdxField.MIMETYPE),
        "status": value_of(capture, CdxField.STATUSCODE),
        "digest": _as_exported(CdxField.DIGEST, value_of(capture, CdxField.DIGEST)),
        "length": NOTHING,
        "offset": "0",
        "filename": record_name(capture.captured, capture.url),
    }
    return _cdxj_line(capture, fields)


@dataclass(frozen=True, slots=True)
class RecordName:
    """What `/record/<name>` asks for: the capture that is in force at a time (seconds) at a canonical URL."""

    seconds: int
    url: str


def record_name(seconds: int, url: str) -> str:
    """Return the name of a record below `/record/`: 14 digits, a slash, the URL in base64url without padding."""
    return f"{digits_of(seconds)}/{base64.urlsafe_b64encode(url.encode()).decode().rstrip('=')}"


def parse_record_name(name: str) -> RecordName | None:
    """Return what a name below `/record/` asks for; None for any other text."""
    digits, _, text = name.partition("/")
    if len(digits) != 14 or not (digits.isascii() and digits.isdecimal()) or span_end(digits) != digits:
        return None
    try:
        url = archived_url(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        return None
    return None if isinstance(url, Refused) else RecordName(seconds_of(digits), url)


# == availability, pure ===============================================================================================


def parse_availability(query: bytes) -> CdxQuestion | CdxFault:
    """Return what is asked, as a question of CDX: `url`, and `timestamp` as its `closest`."""
    urls = [part for part in query.split(b"&") if part.startswith(b"url=")]
    times = [b"closest=" + part[10:] for part in query.split(b"&") if part.startswith(b"timestamp=")]
    parsed = parse_question(b"&".join((*urls, *times, b"matchType=exact")))
    return (
        CdxFault("timestamp", parsed.what) if isinstance(parsed, CdxFault) and parsed.parameter == "closest" else parsed
    )


def availability(base: str, question: CdxQuestion, url: str, captures: Iterable[VisibleCapture]) -> str:
    """Return the answer. `captures` are all that a reader may see of `url`, sorted by `captured`.

    `url` is what was asked for, or the same at its host with or without `www.`.
    """
    time = LAST_SECOND if question.closest is None else question.closest
    capture = nearest(captures, url, time)
    closest: dict[str, str | bool] = {}
    if capture is not None:
        closest |= {"status": str(capture.status), "available": True, "url": uri_m(base, capture, Modifier.FRAME)}
        closest |= {"timestamp": digits_of(capture.captured)}
    asked = {} if question.closest is None else {"timestamp": digits_of(question.closest)}
    snapshots = {"closest": closest} if closest else {}
    return json.dumps({"url": question.url, "archived_snapshots": snapshots, **asked}) + "\n"
