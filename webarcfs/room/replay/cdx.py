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

A question is in the dialect of the Wayback Machine's CDX server, and a capture is a row of it.

    url         a URL; `e.org/a*` and `e.org/*` are prefixes, `*.e.org` and `*.e.org/*` a domain with its subdomains
    matchType   exact, prefix, host, domain
    from, to    1 to 14 digits: the begin and the end of the spans that they name; both inclusive
    sort        default (by urlkey, then time), reverse, closest (to `closest`, which implies it; without it, to now)
    filter      `[!]field:expression` (the whole value), `[!]=field:value`, `[!]~field:part of the value`; repeatable
    collapse    `field` or `field:n`: of neighbouring rows with the same (first n characters) the first; repeatable
    fl          fields, with commas; pywb's names of them, too; `fields` is the same
    limit       rows, 10,000 at most; 0: as many; a negative one: the last rows
    offset      rows to leave out
    resumeKey   resumes where the page before ended, which said so because of `showResumeKey=true`
    output      text, json, cdxj

    showDupeCount   with `true`, a column `dupecount`: rows of the URL above it that have the same digest

    page        the page of that number, from 0 on; `limit` and `offset` count inside it; behind the last one nothing
    pageSize    2,000 rows of a page each, 5 at most and without it
    showNumPages  with `true`, the number of pages in place of the rows

The page after a resume key has the same `limit`, and no `offset`. A negative `page` is none. Everything else is ignored
(`gzip`, `fastLatest`, `showPagedIndex`, …), `resolveRevisits` also, since all rows say what they are of. Some call a
site with `www.` and others without, so a URL's host has another name, too.

A row has the columns of the Wayback Machine for a capture, and conditions are on them. The digest is the SHA-1 of the
body in base32, which others compare, and which exports have; the length is its bytes. A redirect has no body: its type
is `unk`, its length is `-`, its digest that of no bytes. What a crawl met unchanged has a row of its own, of type
`warc/revisit`, with the other columns of what it met. Values are of printable ASCII without spaces.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import heapq
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, groupby, islice
from typing import TypeVar
from urllib.parse import parse_qsl, quote

import re2

from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.archive.model.urls import surt
from webarcfs.room.replay.memento import in_force, nearest, uri_m
from webarcfs.room.replay.replay_url import (
    FIRST_SECOND,
    LAST_SECOND,
    Modifier,
    Refused,
    archived_url,
    at_other_host,
    digits_of,
    seconds_of,
    span_begin,
    span_end,
)

# == cdx row, pure ====================================================================================================


_FILTER = re.compile(r"(!?[=~]?|[=~]!)([a-z]+):(.*)", re.DOTALL)
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_LENGTH = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_UNSAFE = re.compile(r"[^!-~]")
_SAFE = "".join(map(chr, range(0x21, 0x7F)))
#: What a row has where there is nothing.
NOTHING = "-"
#: The type of what has none, as in the Wayback Machine.
UNKNOWN = "unk"
#: The type of what a crawl met unchanged, as in the Wayback Machine.
REVISIT = "warc/revisit"
#: Longest expression, in characters.
LONGEST_PATTERN = 200
#: Most bytes of memory that RE2 takes for an expression: its program and its states.
MOST_PATTERN_MEMORY = 1 << 20


class CdxField(StrEnum):
    """A column of CDX."""

    URLKEY = "urlkey"
    TIMESTAMP = "timestamp"
    ORIGINAL = "original"
    MIMETYPE = "mimetype"
    STATUSCODE = "statuscode"
    DIGEST = "digest"
    LENGTH = "length"
    DUPECOUNT = "dupecount"


#: The columns of a capture by itself. `dupecount` is that of a row among others.
COLUMNS = tuple(field for field in CdxField if field is not CdxField.DUPECOUNT)
#: Names of columns: the Wayback Machine's, and pywb's.
NAMES = {
    **{str(field): field for field in COLUMNS},
    "url": CdxField.ORIGINAL,
    "mime": CdxField.MIMETYPE,
    "status": CdxField.STATUSCODE,
}


_OF_NOTHING = hashlib.sha1(usedforsecurity=False).digest()


def value_of(capture: VisibleCapture, field: CdxField) -> str:
    """Return the value of a column of a capture's row."""
    return _VALUES[field](capture)


def _mime_type(capture: VisibleCapture) -> str:
    if capture.is_revisit:
        return REVISIT
    mime_type = capture.mime_type or UNKNOWN
    return quote(mime_type, safe=_SAFE) if _UNSAFE.search(mime_type) else mime_type


_VALUES: dict[CdxField, Callable[[VisibleCapture], str]] = {
    CdxField.URLKEY: lambda capture: capture.surt,
    CdxField.TIMESTAMP: lambda capture: digits_of(capture.captured),
    CdxField.ORIGINAL: lambda capture: capture.url,
    CdxField.MIMETYPE: _mime_type,
    CdxField.STATUSCODE: lambda capture: str(capture.status) if capture.status else NOTHING,
    CdxField.DIGEST: lambda capture: base64.b32encode(capture.digest or _OF_NOTHING).decode(),
    CdxField.LENGTH: lambda capture: NOTHING if capture.is_redirect else str(capture.size),
}


@dataclass(frozen=True, slots=True)
class CdxFault:
    """A parameter that cannot be understood: its name, and why. To be answered by 400."""

    parameter: str
    what: str

    def __str__(self) -> str:
        return f"{self.parameter}: {self.what}"


@dataclass(frozen=True, slots=True)
class CdxFilter:
    """A condition on the value of a column: equal to `text`, or with `text` in it, or as `pattern` says."""

    field: CdxField
    is_not: bool = False
    equals: str | None = None
    contains: str | None = None
    pattern: re2._Regexp | None = None

    def keeps(self, value: str) -> bool:
        """Return whether a row with this value stays."""
        if self.pattern is not None:
            fits = self.pattern.fullmatch(value) is not None
        elif self.contains is not None:
            fits = self.contains in value
        else:
            fits = value == self.equals
        return fits is not self.is_not


@dataclass(frozen=True, slots=True)
class Collapse:
    """Rows next to each other with the same value of a column, or the same first characters, are one row."""

    field: CdxField
    length: int | None = None


def parse_filter(text: str) -> CdxFilter | CdxFault:
    """Return the condition that `[!][=~]column:text` spells, or what is wrong with it."""
    match = _FILTER.fullmatch(text)
    if match is None or match[2] not in NAMES:
        return CdxFault("filter", f"is [!][=~]column:expression; the columns are {', '.join(COLUMNS)}")
    signs, field, value = match[1], NAMES[match[2]], match[3]
    is_not = "!" in signs
    if "=" in signs:
        return CdxFilter(field, is_not, equals=value)
    if "~" in signs:
        return CdxFilter(field, is_not, contains=value)
    if not set(value) & _SPECIAL:  # most are like that
        return CdxFilter(field, is_not, equals=value)
    return _pattern_filter(field, is_not, value)


def _pattern_filter(field: CdxField, is_not: bool, text: str) -> CdxFilter | CdxFault:
    """Compile a stranger's expression. RE2 matches in time linear in the value, so no expression can run away."""
    if len(text) > LONGEST_PATTERN:
        return CdxFault("filter", f"an expression has {LONGEST_PATTERN} characters at most")
    options = re2.Options()
    options.max_mem = MOST_PATTERN_MEMORY
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = True
    try:
        # `re2.compile` would keep the last 128 expressions of strangers in memory.
        return CdxFilter(field, is_not, pattern=re2._Regexp(text, options))
    except re2.error as error:
        return CdxFault("filter", f"RE2 does not take the expression: {error.args[0].decode(errors='replace')}")
    except UnicodeEncodeError:
        return CdxFault("filter", "the expression is not UTF-8")


def parse_collapse(text: str) -> Collapse | CdxFault:
    """Return what `column` or `column:length` spells, or what is wrong with it."""
    name, colon, length = text.partition(":")
    is_sound = name in NAMES and (not colon or _LENGTH.fullmatch(length))
    if not is_sound:
        return CdxFault("collapse", f"is column or column:length; the columns are {', '.join(COLUMNS)}")
    return Collapse(NAMES[name], int(length) if colon else None)


# == cdx question, pure ===============================================================================================


#: Most rows of a page.
MOST_ROWS = 10_000
#: Rows of a page for each `pageSize`, and the largest of these: others call them blocks.
ROWS_OF_BLOCK = 2_000
MOST_BLOCKS = MOST_ROWS // ROWS_OF_BLOCK
#: Longest query that is read, in bytes; and most of its parameters, filters and collapses.
LONGEST_QUERY = 16_000
MOST_PARAMETERS = 50
MOST_FILTERS = 10
#: Largest number of an offset or a length.
_LARGEST = 10**9
_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,14}", re.ASCII)
_HOST = re.compile(r"(\[.*\]|[^:]*)(?::[0-9]+)?")
_ADDRESS = re.compile(r"\[.*\]|[0-9]+(?:\.[0-9]+){3}")


class MatchType(StrEnum):
    """Which URLs are meant."""

    EXACT = "exact"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"


class CdxSort(StrEnum):
    """The order of the rows."""

    DEFAULT = "default"
    CLOSEST = "closest"
    REVERSE = "reverse"


class Output(StrEnum):
    """The form of the answer."""

    TEXT = "text"
    JSON = "json"
    CDXJ = "cdxj"


_Word = TypeVar("_Word", MatchType, CdxSort, Output)
_Part = TypeVar("_Part")
_ONCE = (
    "url", "matchType", "from", "to", "closest", "sort", "fl", "fields", "limit", "offset", "resumeKey", "output",
    "page", "pageSize",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResumeKey:
    """Where a page resumes: at the capture of this urlkey and time, after `skipped` others with the same two."""

    surt: str
    since: int
    skipped: int = 0

    def __str__(self) -> str:
        raw = json.dumps([self.surt, self.since, self.skipped], separators=(",", ":")).encode()
        # Unlike anything in a row, since a client cuts it off where it first finds it.
        return f"~{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"

    @classmethod
    def parse(cls, text: str) -> ResumeKey | None:
        """Return the key that `text` spells, or None."""
        try:
            raw = base64.urlsafe_b64decode(text.removeprefix("~") + "=" * (-len(text.removeprefix("~")) % 4))
            key = json.loads(raw)
        except (ValueError, binascii.Error, RecursionError):
            return None
        if not isinstance(key, list) or [type(part) for part in key] != [str, int, int]:
            return None
        is_sound = FIRST_SECOND <= key[1] <= LAST_SECOND and 0 <= key[2] <= _LARGEST
        return cls(*key) if is_sound and text.startswith("~") else None


@dataclass(frozen=True, slots=True)
class SurtRange:
    """Urlkeys from `low` up to `high`, which is not one of them; compared as text, code point by code point."""

    low: str
    high: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CdxQuestion:
    """What is asked, in order. `ranges` are ascending and disjoint; `since` and `until` are both inclusive."""

    url: str
    match: MatchType
    ranges: tuple[SurtRange, ...]
    since: int = FIRST_SECOND
    until: int = LAST_SECOND
    closest: int | None = None
    sort: CdxSort = CdxSort.DEFAULT
    filters: tuple[CdxFilter, ...] = ()
    collapses: tuple[Collapse, ...] = ()
    fields: tuple[CdxField, ...] = COLUMNS
    limit: int = MOST_ROWS
    is_last: bool = False  # the last `limit` rows
    offset: int = 0
    shows_resume_key: bool = False
    resume: ResumeKey | None = None
    output: Output = Output.TEXT
    page: int | None = None
    rows_of_page: int = MOST_ROWS
    counts_pages: bool = False  # how many pages there are, in place of their rows

    def at_other_host(self) -> CdxQuestion | None:
        """Return the same question about the host with `www.`, or without; None where a domain has both, or none."""
        other = None if self.match is MatchType.DOMAIN else at_other_host(self.url)
        return None if other is None else replace(self, url=other, ranges=_ranges(other, self.match))

    @property
    def counts_duplicates(self) -> bool:
        """Whether a row says how many of its URL above it have the same digest."""
        return CdxField.DUPECOUNT in self.fields

    @property
    def is_from_end(self) -> bool:
        """Whether the last rows are found from the end on. What is above them is then not read, and so not counted."""
        return self.is_last and not self.counts_duplicates

    @property
    def is_descending(self) -> bool:
        """Whether captures have to be read backwards: by urlkey, then time, both from the end."""
        return (self.sort is CdxSort.REVERSE) is not self.is_from_end

    def surt_ranges(self) -> tuple[SurtRange, ...]:
        """Return the urlkeys to read, in the order in which to read them, without those before the resume key."""
        ranges: list[SurtRange] = []
        for surt_range in self.ranges:
            low, high = surt_range.low, surt_range.high
            if self.resume is not None and self.is_descending:
                high = min(high, self.resume.surt + "\0")
            elif self.resume is not None:
                low = max(low, self.resume.surt)
            if low < high:
                ranges.append(SurtRange(low, high))
        return tuple(reversed(ranges) if self.is_descending else ranges)


def parse_question(query: bytes) -> CdxQuestion | CdxFault:
    """Return what a query string asks, or what is wrong with it; never raises."""
    if len(query) > LONGEST_QUERY:
        return CdxFault("url", "the query is too long")
    try:
        text = query.decode("utf-8", "surrogateescape")
        pairs = parse_qsl(text, errors="surrogateescape", keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return CdxFault("url", f"the query has more than {MOST_PARAMETERS} parameters")
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if value:
            given.setdefault(name, []).append(value)
    for name in _ONCE:
        if len(given.get(name, ())) > 1:
            return CdxFault(name, "is given more than once")
    return _question({name: given[name][0] for name in _ONCE if name in given}, given)


def _question(one: Mapping[str, str], many: Mapping[str, Sequence[str]]) -> CdxQuestion | CdxFault:
    target = _target(one)
    if isinstance(target, CdxFault):
        return target
    url, match, ranges = target
    times = _times(one)
    if isinstance(times, CdxFault):
        return times
    sort = _word(CdxSort, "sort", one.get("sort", "closest" if "closest" in one else "default"))
    output = _word(Output, "output", one.get("output", "text").lower())
    limit = _number(one, "limit", MOST_ROWS, least=-_LARGEST)
    offset = _number(one, "offset", 0, least=0)
    fields = _fields(one.get("fl", one.get("fields", "")), counts_duplicates=_is_true(many, "showDupeCount"))
    filters = _all(many, "filter", parse_filter)
    collapses = _all(many, "collapse", parse_collapse)
    page, blocks = _number(one, "page", -1, least=-_LARGEST), _number(one, "pageSize", 0, least=-_LARGEST)
    counts_pages = _is_true(many, "showNumPages")
    for part in (sort, output, limit, offset, fields, filters, collapses, page, blocks):
        if isinstance(part, CdxFault):
            return part
    assert (
        isinstance(sort, CdxSort) and isinstance(output, Output) and isinstance(limit, int) and isinstance(offset, int)
    )
    assert isinstance(fields, tuple) and isinstance(filters, tuple) and isinstance(collapses, tuple)
    assert isinstance(page, int) and isinstance(blocks, int)
    resume = ResumeKey.parse(one["resumeKey"]) if "resumeKey" in one else None
    fault = _contradiction(one, sort, limit, resume)
    if (page >= 0 or counts_pages) and (sort is CdxSort.CLOSEST or limit < 0 or resume is not None):
        fault = CdxFault("page", "goes neither with sort=closest nor with a negative limit nor with resumeKey")
    return fault or CdxQuestion(
        url=url,
        match=match,
        ranges=ranges,
        since=times["from"],
        until=times["to"],
        closest=times["closest"] if "closest" in one else None,
        sort=sort,
        filters=filters,
        collapses=collapses,
        fields=fields,
        limit=min(abs(limit), MOST_ROWS) or MOST_ROWS,
        is_last=limit < 0,
        offset=0 if resume else offset,
        shows_resume_key=_is_true(many, "showResumeKey"),
        resume=resume,
        output=output,
        page=page if page >= 0 else None,
        rows_of_page=ROWS_OF_BLOCK * (min(blocks, MOST_BLOCKS) if blocks > 0 else MOST_BLOCKS),
        counts_pages=counts_pages,
    )


def _is_true(many: Mapping[str, Sequence[str]], name: str) -> bool:
    return many.get(name, [""])[0].lower() == "true"


def _contradiction(one: Mapping[str, str], sort: CdxSort, limit: int, resume: ResumeKey | None) -> CdxFault | None:
    if "resumeKey" in one and resume is None:
        return CdxFault("resumeKey", "is not one that this server gave")
    if sort is CdxSort.CLOSEST and int(one.get("offset", "0")) > MOST_ROWS:
        return CdxFault("offset", f"is {MOST_ROWS:,} at most with sort=closest")
    if resume is not None and (limit < 0 or sort is CdxSort.CLOSEST):
        return CdxFault("resumeKey", "goes neither with a negative limit nor with sort=closest")
    if limit < 0 and ("offset" in one or sort is CdxSort.CLOSEST):
        return CdxFault("limit", "a negative one goes neither with offset nor with sort=closest")
    return None


def _target(one: Mapping[str, str]) -> tuple[str, MatchType, tuple[SurtRange, ...]] | CdxFault:
    text = one.get("url", "").partition("#")[0].strip()
    if not text:
        return CdxFault("url", "is missing")
    match = _word(MatchType, "matchType", one.get("matchType", "exact"))
    if isinstance(match, CdxFault):
        return match
    if "matchType" not in one and text.startswith("*."):
        match = MatchType.DOMAIN
    elif "matchType" not in one and text.endswith("*"):
        match = MatchType.PREFIX
    if match is MatchType.DOMAIN:
        text = text.removeprefix("*.")
    if match is not MatchType.EXACT:
        text = text.removesuffix("*")
    raw = text.replace(" ", "%20").encode("utf-8", "surrogateescape")
    url = archived_url(raw, is_prefix=match is MatchType.PREFIX)
    if isinstance(url, Refused):
        return CdxFault("url", url.reason)
    return url, match, _ranges(url, match)


def _ranges(url: str, match: MatchType) -> tuple[SurtRange, ...]:
    key = surt(url)
    if match is MatchType.EXACT:
        return (SurtRange(key, key + "\0"),)
    if match is MatchType.PREFIX:
        return (_below(key),)
    host = key.partition(")")[0]
    if match is MatchType.HOST:
        return (_below(f"{host})"),)
    host_match = _HOST.fullmatch(host)
    name = host_match[1] if host_match else host
    if _ADDRESS.fullmatch(name):
        return (_below(f"{name})"), _below(f"{name}:"))
    # `)` ends a host, `,` begins a subdomain, `:` a port; names that continue with `-` lie between.
    return (_below(f"{name})"), _below(f"{name},"), _below(f"{name}:"))


def _below(prefix: str) -> SurtRange:
    return SurtRange(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))


def _times(one: Mapping[str, str]) -> dict[str, int] | CdxFault:
    times = {"from": FIRST_SECOND, "to": LAST_SECOND, "closest": LAST_SECOND}
    for name in times:
        if name not in one or (name == "closest" and one[name] == "now"):
            continue
        if not _DIGITS.fullmatch(one[name]):
            return CdxFault(name, "is a time of 1 to 14 digits")
        times[name] = seconds_of(span_begin(one[name]) if name == "from" else span_end(one[name]))
    return times


def _word(kind: type[_Word], name: str, text: str) -> _Word | CdxFault:
    if text not in {str(word) for word in kind}:
        return CdxFault(name, f"is one of {', '.join(kind)}")
    return kind(text)


def _number(one: Mapping[str, str], name: str, default: int, *, least: int) -> int | CdxFault:
    text = one.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or int(text) < least:
        return CdxFault(name, "is a whole number")
    return int(text)


def _fields(text: str, *, counts_duplicates: bool) -> tuple[CdxField, ...] | CdxFault:
    if not text:
        return (*COLUMNS, CdxField.DUPECOUNT) if counts_duplicates else COLUMNS
    names = [name.strip() for name in text.split(",")]
    known = {**NAMES, str(CdxField.DUPECOUNT): CdxField.DUPECOUNT}
    if len(names) > MOST_PARAMETERS or any(name not in known for name in names):
        return CdxFault("fl", f"has the columns {', '.join(CdxField)}")
    return tuple(known[name] for name in names)


def _all(
    many: Mapping[str, Sequence[str]], name: str, read: Callable[[str], _Part | CdxFault]
) -> tuple[_Part, ...] | CdxFault:
    texts = many.get(name, ())
    if len(texts) > MOST_FILTERS:
        return CdxFault(name, f"is given {MOST_FILTERS} times at most")
    parts: list[_Part] = []
    for text in texts:
        part = read(text)
        if isinstance(part, CdxFault):
            return part
        parts.append(part)
    return tuple(parts)


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
    for key, group in groupby(rows, lambda row: row.capture.surt):
        digests = Counter(row.value(CdxField.DIGEST) for row in above if row.capture.surt == key)
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
