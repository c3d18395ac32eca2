"""Memento (RFC 7089): which memento or state answers for a time, the headers of each kind of answer, and TimeMaps.

A memento is a version of a document or a redirect, at the time of its capture, as far as the reader may know that; it
is Memento-Datetime. URI-M is `/web/<digits>mp_/<url>`. `base` is always the room's own origin, such as
`http://127.0.0.1:8080`: clients do not resolve relative URLs in Link. Location is a path, which every client resolves.
A 404 has no header of these.

A TimeMap is the mementos of a URL as a list (RFC 7089 section 5; the JSON and CDXJ of MemGator). A page has 5,000
mementos; its TimeMap names itself, with the times of its first and last memento, and the other pages as TimeMaps with
theirs (RFC 7089 section 5.1.1). A page's URL has the time of its first memento; the first has none, so that
`/timemap/<format>/<url>` is always the beginning. Mementos of one time stay on one page.

A URL of replay is answered by a state of the archive.

Digits that are the time of a visible capture of the very URL name that capture. Digits that are a visible snapshot's
time name the state that the domain has then. All others are answered by a redirect to the digits of what was there
then, so that no address shows another capture than it names. A URL that the state does not have is never answered from
another state, but for what a page embeds, which then comes from the state nearest in time.
"""

from __future__ import annotations

import calendar
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice

from webarcfs.access import access_rules
from webarcfs.access.access_rules import Absent, Open
from webarcfs.access.reader_stores import RecordHead
from webarcfs.access.visible_captures import UrlHistory, VisibleCapture, VisibleState
from webarcfs.archive.config.settings import Exclusion, LeavingRule
from webarcfs.archive.config.validators import read_table
from webarcfs.archive.document import data_xml
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model.arc_paths import DATA_XML, split
from webarcfs.archive.model.errors import Damaged, InvalidDocument, UrlRefused
from webarcfs.archive.model.metadata import COPIES, CommitTag, from_epoch
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, without_fragment
from webarcfs.archive.model.urls import domain_of
from webarcfs.room.replay import replay_url
from webarcfs.room.replay.replay_url import (
    EMBEDDED,
    FRAMES,
    MapFormat,
    Modifier,
    Replay,
    TimeMap,
    digits_of,
    replay_path,
    timegate_path,
    timemap_path,
)
from webarcfs.room.visit import Evidence, Services, Visit
from webarcfs.web import limits

# == memento, pure ====================================================================================================


#: Headers, in the order in which they are sent.
Headers = list[tuple[str, str]]

#: Longest value of a header Link, in bytes; proxies refuse heads that are much longer. The least important go first.
LONGEST_LINK = 7_000
#: TimeMaps and their types.
MEDIA_TYPES = {
    MapFormat.LINK: "application/link-format",
    MapFormat.JSON: "application/json",
    MapFormat.CDXJ: "application/cdxj+ors",
}
#: For scripts of other origins: they may read these headers, and send Accept-Datetime.
CORS: Headers = [
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Expose-Headers", "Link, Location, Memento-Datetime, Vary, X-Archive-Src, Content-Location"),
]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(rf"({'|'.join(_DAYS)}), (\d\d) ({'|'.join(_MONTHS)}) (\d{{4}}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)


@dataclass(frozen=True, slots=True)
class BadDate:
    """A header Accept-Datetime that is no date of RFC 7089 section 2.1: to be answered by 400."""

    what: str


def http_date(seconds: int) -> str:
    """Return a time in the form of HTTP (IMF-fixdate, RFC 9110 section 5.6.7)."""
    time = datetime.fromtimestamp(seconds, UTC)
    day, month = _DAYS[time.weekday()], _MONTHS[time.month - 1]
    return f"{day}, {time.day:02} {month} {time.year:04} {time:%H:%M:%S} GMT"


def accept_datetime(value: str) -> int | BadDate:
    """Return the time that a header Accept-Datetime asks for, in seconds, or what is wrong with it.

    Only IMF-fixdate is a date here, with its own day of the week; second 60 is a leap second (RFC 9110 section 5.6.7).
    """
    match = _DATE.fullmatch(value.strip(" \t"))
    if match is None:
        return BadDate("Accept-Datetime must look like Thu, 31 May 2007 20:35:00 GMT")
    name, day, month, year, hour, minute, second = match.groups()
    try:
        time = datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)
    except ValueError:
        return BadDate("Accept-Datetime is no date of the calendar")
    if int(second) > 60:
        return BadDate("Accept-Datetime is no time of the day")
    if _DAYS[time.weekday()] != name:
        return BadDate(f"Accept-Datetime says {name}, but that day is a {_DAYS[time.weekday()]}")
    return calendar.timegm(time.timetuple()) + int(second)


def in_force(captures: Iterable[VisibleCapture], url: str, seconds: int) -> VisibleCapture | None:
    """Return the capture that answers for `url` at a time; None where the page is gone, or not yet there.

    `captures` are those of the URL's path, both schemes. A redirect of this very URL comes before a document, a
    document before a redirect of the other scheme; else the newest.
    """
    now = [capture for capture in captures if capture.since <= seconds < capture.until]
    return max(now, key=_rank(url), default=None)


def nearest(captures: Iterable[VisibleCapture], url: str, seconds: int) -> VisibleCapture | None:
    """Return the memento that is nearest to a time; None if there is none.

    A memento is as near as the time from its capture to the last visible snapshot that has it. Of two that are equally
    near, the earlier one; of those that are there at the time, the newest.
    """
    rank = _rank(url)
    return min(
        captures,
        key=lambda capture: (
            _distance(capture, seconds),
            capture.captured > seconds,
            *(-part for part in rank(capture)),
        ),
        default=None,
    )


def _rank(url: str) -> Callable[[VisibleCapture], tuple[int, int]]:
    return lambda capture: (
        0 if capture.is_redirect and capture.url != url else 2 if capture.is_redirect else 1,
        capture.captured,
    )


def _distance(capture: VisibleCapture, seconds: int) -> int:
    return max(capture.captured - seconds, seconds - max(capture.last, capture.captured), 0)


@dataclass(frozen=True, slots=True)
class MementoRelation:
    """A memento among those of its URL: the first, the last, the one before and the one after."""

    memento: VisibleCapture
    first: VisibleCapture
    last: VisibleCapture
    previous: VisibleCapture | None
    following: VisibleCapture | None


def place_of(captures: Sequence[VisibleCapture], memento: VisibleCapture) -> MementoRelation:
    """Return the place of a memento among all that a reader may see of its URL, which are sorted by `captured`.

    The one before and the one after have other times: two of one time are one place to a reader.
    """
    before = bisect_left(captures, memento.captured, key=_captured)
    after = bisect_right(captures, memento.captured, key=_captured)
    return MementoRelation(
        memento=memento,
        first=captures[0] if before else memento,
        last=captures[-1] if after < len(captures) else memento,
        previous=captures[before - 1] if before else None,
        following=captures[after] if after < len(captures) else None,
    )


def _captured(capture: VisibleCapture) -> int:
    return capture.captured


def uri_m(base: str, capture: VisibleCapture, modifier: Modifier = Modifier.PAGE) -> str:
    """Return the URI-M of a memento, absolute."""
    return base + replay_path(digits_of(capture.captured), modifier, capture.url)


def memento_headers(base: str, url: str, captures: Sequence[VisibleCapture], memento: VisibleCapture) -> Headers:
    """Return the headers of a memento: of a page (frame or not), of an archived redirect, and of an archived error.

    `url` is the URL that was asked for, `captures` all mementos of it, sorted. There is no Vary: Accept-Datetime has no
    influence (RFC 7089 section 4.2.1).
    """
    return [
        ("Memento-Datetime", http_date(memento.captured)),
        ("Link", _links(base, url, captures, memento, has_timegate=True)),
    ]


def headers_for_all(base: str, url: str, history: UrlHistory, memento: VisibleCapture) -> Headers:
    """Return the same for a URL with its history, and what lets scripts of other origins read it."""
    return [*CORS, *memento_headers(base, url, history.captures or [memento], memento)]


def timegate_headers(
    base: str, url: str, captures: Sequence[VisibleCapture], memento: VisibleCapture, location: str = ""
) -> Headers:
    """Return the headers of a TimeGate's 302. Memento-Datetime must not be there (RFC 7089 section 4.2.1).

    `location` is a path, where it is not that of the URI-M: the frame of the newest snapshot, without Accept-Datetime.
    """
    return [
        ("Location", location or uri_m("", memento)),
        ("Vary", "accept-datetime"),
        ("Link", _links(base, url, captures, memento, has_timegate=False)),
    ]


def redirect_headers(url: str, location: str) -> Headers:
    """Return the headers of any other 302 of the room: to other digits, or to a URL's right spelling. No Vary."""
    return [("Location", location), ("Link", _original(url))]


def timemap_headers(form: MapFormat) -> Headers:
    """Return the headers of a TimeMap."""
    return [("Content-Type", MEDIA_TYPES[form])]


def link(uri: str, rel: str, **attributes: str) -> str:
    """Return a link of RFC 8288. A canonical URL contains nothing that needs escapes."""
    return "".join((f'<{uri}>; rel="{rel}"', *(f'; {name}="{value}"' for name, value in attributes.items())))


def memento_link(uri: str, rels: Iterable[str], seconds: int) -> str:
    """Return the link to a memento, which may be several things at once (`first prev memento`)."""
    return link(uri, " ".join((*rels, "memento")), datetime=http_date(seconds))


def _original(url: str) -> str:
    return link(url, "original")


def _links(
    base: str, url: str, captures: Sequence[VisibleCapture], memento: VisibleCapture, *, has_timegate: bool
) -> str:
    place = place_of(captures, memento)
    form = MapFormat.LINK
    span = {"from": http_date(captures[0].captured), "until": http_date(captures[-1].captured)} if captures else {}
    links = [link(base + timegate_path(url), "timegate")] if has_timegate else []
    links.append(link(base + timemap_path(form, url), "timemap", type=MEDIA_TYPES[form], **span))
    rels: dict[VisibleCapture, list[str]] = {}
    ordered: list[tuple[str, VisibleCapture | None]] = [("first", place.first), ("prev", place.previous), ("", memento)]
    ordered += [("next", place.following), ("last", place.last)]
    for rel, capture in ordered:
        if capture is not None:
            rels.setdefault(capture, []).extend([rel] if rel else [])
    # Where not all fit, those next to it are worth more than the first and the last.
    worth = {
        capture: 0 if capture is memento else 1 if {"prev", "next"} & set(of) else 2 for capture, of in rels.items()
    }
    texts = {capture: memento_link(uri_m(base, capture), of, capture.captured) for capture, of in rels.items()}
    by_worth = (*links, *(texts[capture] for capture in sorted(rels, key=worth.__getitem__)))
    kept = set(_fitting(by_worth, LONGEST_LINK - len(_original(url))))
    return ", ".join((_original(url), *(text for text in (*links, *texts.values()) if text in kept)))


def _fitting(texts: Iterable[str], room: int) -> Iterator[str]:
    """Yield the texts that come before one that finds no room any more."""
    for text in texts:
        room -= len(text) + len(", ")
        if room < 0:
            return
        yield text


# == timemap, pure ====================================================================================================


#: Mementos of a page.
MOST_MEMENTOS = 5_000
#: Lines that are sent at once.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Page:
    """Places [begin, end) of the mementos, with the times of the first and the last; `since` is None on the first."""

    begin: int
    end: int
    first: int
    last: int
    since: int | None


def timemap(base: str, asked: TimeMap, captures: Sequence[VisibleCapture]) -> Iterator[str] | None:
    """Return a page of a TimeMap in pieces; None if it has no memento: to be answered by 404.

    `base` is the room's origin; `captures` are all mementos that a reader may see of the URL, sorted by `captured`.
    """
    pages = _pages([capture.captured for capture in captures])
    here = _page_at(pages, captures, asked.since)
    if here is None:
        return None
    others = [page for page in pages if page is not here and page.begin != here.begin]
    timemap_page = _Map(base, asked, captures, here, others)
    write = {
        MapFormat.LINK: timemap_page.as_link,
        MapFormat.JSON: timemap_page.as_json,
        MapFormat.CDXJ: timemap_page.as_cdxj,
    }
    return _in_pieces(write[asked.form]())


def _pages(times: Sequence[int]) -> list[_Page]:
    pages: list[_Page] = []
    begin = 0
    while begin < len(times):
        end = _end_of_page(times, begin)
        pages.append(_Page(begin, end, times[begin], times[end - 1], times[begin] if pages else None))
        begin = end
    return pages


def _end_of_page(times: Sequence[int], begin: int) -> int:
    end = min(begin + MOST_MEMENTOS, len(times))
    while end < len(times) and times[end] == times[end - 1]:
        end += 1
    return end


def _page_at(pages: Sequence[_Page], captures: Sequence[VisibleCapture], since: int | None) -> _Page | None:
    """Return the page that begins at a time, which need not be one of `pages`: those may have moved since."""
    if since is None:
        return pages[0] if pages else None
    times = [capture.captured for capture in captures]
    begin = bisect_left(times, since)
    if begin == len(times):
        return None
    end = _end_of_page(times, begin)
    return _Page(begin, end, times[begin], times[end - 1], since)


@dataclass(frozen=True, slots=True)
class _Map:
    """A page of a TimeMap, in each form."""

    base: str
    asked: TimeMap
    captures: Sequence[VisibleCapture]
    here: _Page
    others: Sequence[_Page]

    def as_link(self) -> Iterator[str]:
        """Write `application/link-format`."""
        yield link(self.asked.url, "original")
        yield f",\n{link(self._timegate(), 'timegate')}"
        yield f",\n{self._page_link(self.here, 'self')}"
        for page in self.others:
            yield f",\n{self._page_link(page, 'timemap')}"
        for place, memento in self._mementos():
            yield f",\n{memento_link(uri_m(self.base, memento), self._rels(place), memento.captured)}"
        yield "\n"

    def as_json(self) -> Iterator[str]:
        """Write JSON, with the names that MemGator and Time Travel use."""
        head = {
            "original_uri": self.asked.url,
            "self": self._uri(self.asked.form, self.here),
            "from": _iso(self.here.first),
            "until": _iso(self.here.last),
            "timegate_uri": self._timegate(),
            "timemap_uri": self._all_forms(),
            "timemap_index": [
                {"uri": self._uri(self.asked.form, page), "from": _iso(page.first), "until": _iso(page.last)}
                for page in self.others
            ],
        }
        yield json.dumps(head)[:-1] + ', "mementos": {"list": ['
        for place, memento in self._mementos():
            yield ("\n" if place == self.here.begin else ",\n") + json.dumps(self._item(memento))
        ends = {"first": self._item(self.captures[0]), "last": self._item(self.captures[-1])}
        yield f"\n], {json.dumps(ends)[1:-1]}}}}}\n"

    def as_cdxj(self) -> Iterator[str]:
        """Write CDXJ, with the directives that MemGator uses."""
        span = {"from": http_date(self.here.first), "until": http_date(self.here.last)}
        yield '!context ["https://www.rfc-editor.org/rfc/rfc7089"]\n'
        yield f"!id {json.dumps({'uri': self._uri(self.asked.form, self.here), **span})}\n"
        yield '!keys ["memento_datetime_YYYYMMDDhhmmss"]\n'
        yield f"!meta {json.dumps({'original_uri': self.asked.url})}\n"
        yield f"!meta {json.dumps({'timegate_uri': self._timegate()})}\n"
        yield f"!meta {json.dumps({'timemap_uri': self._all_forms()})}\n"
        for page in self.others:
            span = {"from": http_date(page.first), "until": http_date(page.last)}
            yield f"!meta {json.dumps({'timemap_index': {'uri': self._uri(self.asked.form, page), **span}})}\n"
        for place, memento in self._mementos():
            fields = {
                "uri": uri_m(self.base, memento),
                "rel": " ".join((*self._rels(place), "memento")),
                "datetime": http_date(memento.captured),
            }
            yield f"{digits_of(memento.captured)} {json.dumps(fields)}\n"

    def _mementos(self) -> Iterator[tuple[int, VisibleCapture]]:
        return ((place, self.captures[place]) for place in range(self.here.begin, self.here.end))

    def _rels(self, place: int) -> list[str]:
        return ["first"] * (place == 0) + ["last"] * (place == len(self.captures) - 1)

    def _item(self, memento: VisibleCapture) -> dict[str, str]:
        return {"datetime": _iso(memento.captured), "uri": uri_m(self.base, memento)}

    def _uri(self, form: MapFormat, page: _Page) -> str:
        return self.base + timemap_path(form, self.asked.url, page.since)

    def _timegate(self) -> str:
        return self.base + timegate_path(self.asked.url)

    def _all_forms(self) -> dict[str, str]:
        return {f"{form}_format": self._uri(form, self.here) for form in MapFormat}

    def _page_link(self, page: _Page, rel: str) -> str:
        span = {"from": http_date(page.first), "until": http_date(page.last)}
        return link(self._uri(MapFormat.LINK, page), rel, type=MEDIA_TYPES[MapFormat.LINK], **span)


def _iso(seconds: int) -> str:
    digits = digits_of(seconds)
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:]}Z"


def _in_pieces(lines: Iterable[str]) -> Iterator[str]:
    rest = iter(lines)
    while piece := "".join(islice(rest, _AT_ONCE)):
        yield piece


# == states ===========================================================================================================


@dataclass(frozen=True, slots=True)
class Located:
    """A URL in a state: `seq` is the snapshot that names the state (seconds since 1970); None: the reader sees none.

    `named` is the time, in seconds, by which an address names what is shown. `is_loop`: its redirects lead to no end.
    """

    url: str
    domain: str
    seq: int | None
    state: VisibleState
    named: int | None
    is_loop: bool = False


@dataclass(frozen=True, slots=True)
class Leaving:
    """What the publications of a state say about what leads out of them, as they were when they were captured."""

    rules: tuple[LeavingRule, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()


def locate(services: Services, url: str, seconds: int) -> Located:
    """Return what a time names at a canonical URL, or what was in force there then.

    | the time is | what is shown |
    |---|---|
    | that of a capture of this very URL | that capture, in the first visible snapshot that has it |
    | that of two of them | the document before the redirect, then the one that came to be visible later |
    | that of a visible snapshot alone | what that has, captured before or after |
    | neither | what the state of that time has, by the last time up to it at which a server sent it |
    """
    domain = domain_of(url)
    seq = state_of(services, domain, seconds)
    capture = services.captures.captured_at(url, seconds)
    named: int | None
    if capture is not None:
        state = VisibleState(capture.since, Open(capture.since), capture)
        seq, named = capture.since, seconds
    else:
        state = services.captures.state(url, seconds if seq is None else seq)
        capture = state.capture
        is_named = seq == seconds or capture is None or capture.url != url
        named = seq if is_named or capture is None else _last_met(services, capture, seconds)
    is_loop = capture is not None and capture.is_redirect and _is_endless(services, capture.target, url, seq or seconds)
    return Located(url, domain, seq, state, named, is_loop)


def _last_met(services: Services, capture: VisibleCapture, seconds: int) -> int:
    """Return the last time, up to `seconds`, at which a crawl captured what is shown, or met it unchanged."""
    times = [
        other.captured
        for other in services.captures.history(capture.url).captures
        if other.url == capture.url
        and (other.blob, other.target) == (capture.blob, capture.target)
        and capture.captured < other.captured <= seconds
    ]
    for time in reversed(times):
        # Two may be of one second: then the address names another one.
        named = services.captures.captured_at(capture.url, time)
        if named is not None and (named.blob, named.target) == (capture.blob, capture.target):
            return time
    return capture.captured


def state_of(services: Services, domain: str, seconds: int) -> int | None:
    """Return the snapshot that names the state of a domain at a time; None where the reader sees none."""
    facts = services.gate.facts(domain)
    return facts.newest(max(seconds, facts.seqs[0]))[0].seq if facts.shown else None


@dataclass(frozen=True, slots=True)
class ShownTimes:
    """When a server sent what a state shows (seconds): `captured`; it is the same `since` then, if that is earlier.

    `is_carried_over`: an earlier snapshot captured it, and the crawl of this one did not.
    """

    captured: int
    since: int | None = None
    is_carried_over: bool = False


def shown_times(history: UrlHistory, capture: VisibleCapture, seq: int) -> ShownTimes:
    """Return the times that a reader is told of what the state of a snapshot shows."""
    is_older = seq > max(capture.since, capture.captured)
    met = capture if capture.is_revisit else None
    if met is None and is_older:
        same = (other for other in history.captures if (other.blob, other.target) == (capture.blob, capture.target))
        met = next((other for other in same if other.is_revisit and other.since == seq), None)
    if met is None:
        return ShownTimes(capture.captured, None, is_older)
    first = _first_captured(history, capture)
    return ShownTimes(met.captured, first if first < met.captured else None)


def _first_captured(history: UrlHistory, capture: VisibleCapture) -> int:
    """Return when the version of a capture was captured first: a crawl may only have met it unchanged."""
    times = (other.captured for other in history.captures if not other.is_revisit and other.until == capture.until)
    return next(times, capture.captured) if capture.is_revisit else capture.captured


def _is_endless(services: Services, target: str, url: str, seq: int) -> bool:
    """Return whether a redirect leads back to a URL that it came from, or through too many."""
    seen = {url}
    for _ in range(LONGEST_CHAIN):
        target = without_fragment(target)
        if target in seen:
            return True
        seen.add(target)
        try:
            at = state_in_record(services, domain_of(target), domain_of(url), seq)
            capture = None if at is None else services.captures.state(target, at).capture
        except UrlRefused:
            return False
        if capture is None or not capture.is_redirect:
            return False
        target = capture.target
    return True


def state_in_record(services: Services, domain: str, shown: str, seq: int) -> int | None:
    """Return the snapshot of a domain that belongs to the state `seq` of the domain `shown`; None without any.

    That is the one of the same record, where there is one; else the one in force at that time.
    """
    return seq if domain == shown else state_beside(services, domain, record_of(services, shown, seq), seq)


def state_beside(services: Services, domain: str, head: RecordHead | None, seq: int) -> int | None:
    """Return the same for another domain: its snapshot in a record, else the one in force at a time."""
    if head is not None:
        facts = services.gate.facts(domain)
        for tag in head.tags:
            time = int(tag.crawl_time.timestamp())
            if tag.domain == domain and time in facts.seqs:
                return time
    return state_of(services, domain, seq)


def evidence_of(services: Services, domain: str, capture: VisibleCapture) -> Evidence:
    """Return what data.xml says of a capture; nothing for a redirect, or where data.xml cannot be read."""
    if capture.is_redirect:
        return Evidence()
    store = services.shared.repository(domain)
    commit = store.ref(CommitTag(from_epoch(capture.since), domain).ref)
    if commit is None:
        return Evidence()
    found = store.find(store.commit(commit).tree, f"{capture.path.removeprefix(f'/{domain}/')}/{DATA_XML}")
    if found is None or not found.is_document:
        return Evidence()
    try:
        return services.shared.evidence.get(found.oid, lambda: _evidence(store.read(found.oid)))
    except Damaged:  # it may come back, so nothing is kept
        return Evidence()


def _evidence(document: bytes) -> Evidence:
    try:
        meta = data_xml.metadata(document)
    except (InvalidDocument, Damaged):
        return Evidence()
    copy = meta.source if meta.source in COPIES else ""
    return Evidence(copy, tuple(meta.certificate.split()), meta.rendered, meta.capture_time)


def form_of(
    services: Services, domain: str, capture: VisibleCapture, evidence: Evidence | None = None
) -> Mapping[str, str]:
    """Return the files of what a browser showed of a capture, by their names, as far as the reader may see it.

    It belongs to the crawl that stored the version. A later crawl may have met the same bytes, and shown something else
    or nothing: through that one the reader sees the document alone.
    """
    if evidence is None:
        evidence = evidence_of(services, domain, capture)
    if not evidence.rendered or evidence.captured is None:
        return {}
    snapshots = services.gate.facts(domain).snapshots
    if capture.stored != capture.since and access_rules.hides_form(snapshots, capture.stored):
        return {}
    if not isinstance(services.gate.with_rules(Open(capture.stored), capture.url, evidence.captured), Open):
        return {}
    store, tree = services.shared.repository(domain), evidence.rendered
    try:
        return services.shared.forms.get((domain, tree), lambda: rendered_forms.blobs_of(store, tree))
    except Damaged:  # `verify` says so
        return {}


def shown_text_of(services: Services, capture: VisibleCapture) -> str:
    """Return the blob of the text that a browser showed of a capture; empty where there is none to be shown."""
    return form_of(services, split(capture.path)[0], capture).get(rendered_forms.TEXT, "")


def has_same_text(services: Services, one: VisibleCapture, other: VisibleCapture) -> bool:
    """Return whether browsers showed the same text of two captures; of those of one version they did."""
    return one.stored == other.stored or shown_text_of(services, one) == shown_text_of(services, other)


def dom_of(services: Services, domain: str, capture: VisibleCapture, evidence: Evidence | None = None) -> str:
    """Return the blob of the DOM that a browser showed of a capture; empty where there is none to be shown."""
    blob = form_of(services, domain, capture, evidence).get(rendered_forms.HTML, "")
    return blob if blob and services.shared.repository(domain).size(blob) <= limits.REWRITTEN_BYTES else ""


def record_of(services: Services, domain: str, seq: int) -> RecordHead | None:
    """Return the record of a snapshot, as readers see it; None without one."""
    record_id = services.gate.facts(domain).records.get(seq)
    return None if record_id is None else services.records.head(record_id)


def folder_of(services: Services, located: Located) -> str | None:
    """Return the URL of the folder that a URL names without its slash, if the state has that; else None."""
    if "?" in located.url or located.url.endswith("/") or located.seq is None:
        return None
    folder = f"{located.url}/"
    return folder if services.captures.state(folder, located.seq).capture is not None else None


def at_other_host(services: Services, url: str) -> str | None:
    """Return a URL with `www.` before its host, or without, if readers see captures of that one and none of this."""
    other = replay_url.at_other_host(url)
    if other is None or services.captures.history(url).captures:
        return None
    return other if services.captures.history(other).captures else None


def nearest_state(services: Services, located: Located) -> VisibleState | None:
    """Return the state nearest in time that has a URL; None without any."""
    if not isinstance(located.state.answer, Absent) or located.seq is None:
        return None
    return services.captures.history(located.url).nearest(located.seq)


def other_place(visit: Visit, located: Located, asked: Replay) -> str | None:
    """Return where a URL of replay belongs; None: here.

    That is at the digits of what it shows, at its folder, in the nearest state, or at its host with or without `www.`.
    """
    prefix = visit.origins.prefix if asked.modifier in FRAMES else visit.token
    if located.named is not None and digits_of(located.named) != asked.digits:
        return prefix + replay_path(digits_of(located.named), asked.modifier, located.url)
    if not isinstance(located.state.answer, Absent):
        return None
    substitute = like(visit, located, asked)
    return None if substitute is None else prefix + replay_path(digits_of(substitute[0]), asked.modifier, substitute[1])


def like(visit: Visit, located: Located, asked: Replay) -> tuple[int, str] | None:
    """Return the time and the URL of what is shown in place of a URL that a state does not have; None without any."""
    folder = folder_of(visit.services, located)
    if folder is not None and located.seq is not None:
        return located.seq, folder
    near = nearest_state(visit.services, located) if asked.modifier in EMBEDDED else None
    if near is not None:
        return near.seq, located.url
    other = at_other_host(visit.services, located.url)
    there = None if other is None else locate(visit.services, other, asked.seconds)
    if there is None or there.state.capture is None or there.named is None:
        return None
    return there.named, there.url


# -- what the publications say -----------------------------------------------------------------------------------------


def leaving(services: Services, domain: str, seq: int) -> Leaving:
    """Return what the publications of a state say, by the catalogue's copy of their settings."""
    parts = [_leaving_of(services, snapshot.publication) for snapshot in services.gate.facts(domain).newest(seq)]
    return Leaving(
        tuple(rule for part in parts for rule in part.rules),
        tuple(exclusion for part in parts for exclusion in part.exclusions),
    )


def _leaving_of(services: Services, publication: str) -> Leaving:
    content = services.records.file(f"publications/{publication}.json")
    return Leaving() if content is None else _parsed(content)


@lru_cache(maxsize=256)
def _parsed(content: bytes) -> Leaving:
    """Return the rules of a publication's settings; of a file that cannot be read, none."""
    with suppress(ValueError, TypeError, AttributeError):
        settings = json.loads(content)
        faults: list[str] = []
        tables = settings.get("publication", settings)
        rules = tuple(read_table(LeavingRule, table, "rule", faults) for table in tables.get("rule", ()))
        exclusions = tuple(read_table(Exclusion, table, "exclude", faults) for table in tables.get("exclude", ()))
        return Leaving(rules, exclusions)
    return Leaving()


def left_out(exclusions: tuple[Exclusion, ...], url: str) -> Exclusion | None:
    """Return the exclusion that leaves a URL out; None without one."""
    address = url.partition("://")[2]
    host = address.partition("/")[0]
    for exclusion in exclusions:
        place = address if "/" in exclusion.match else host
        if _glob(exclusion.match).fullmatch(place):
            return exclusion
    return None


@lru_cache(maxsize=1_000)
def _glob(match: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, match.split("*"))), re.IGNORECASE | re.DOTALL)
