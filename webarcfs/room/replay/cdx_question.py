"""What is asked of `/cdx`, in the dialect of the Wayback Machine's CDX server, and a capture as a row of it. Pure.

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
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar
from urllib.parse import parse_qsl, quote

import re2

from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import parse, surt
from webarcfs.room.replay.replay_url import (
    FIRST_SECOND,
    LAST_SECOND,
    Refused,
    archived_url,
    digits_of,
    seconds_of,
    span_begin,
    span_end,
)

# == www host, pure ===================================================================================================


def at_other_host(url: str) -> str | None:
    """Return a canonical URL with `www.` before its host, or without; None where an archive has no such URL."""
    host = parse(url).domain
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    other_url = url.replace(f"://{host}", f"://{other}", 1)
    try:
        arc_path(other_url)
    except UrlRefused:
        return None
    return other_url


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
