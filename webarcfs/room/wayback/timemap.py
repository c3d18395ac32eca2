"""TimeMaps: the mementos of a URL as a list (RFC 7089 section 5; the JSON and CDXJ of MemGator). Pure.

A page has 5,000 mementos; its TimeMap names itself, with the times of its first and last memento, and the other pages
as TimeMaps with theirs (RFC 7089 section 5.1.1). A page's URL has the time of its first memento; the first has none, so
that `/timemap/<format>/<url>` is always the beginning. Mementos of one time stay on one page.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.wayback.memento import MEDIA_TYPES, http_date, link, memento_link, uri_m
from webarcfs.room.wayback.replay_url import MapFormat, TimeMap, timegate_path, timemap_path
from webarcfs.room.wayback.timestamps import digits_of

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
    pages = _pages([each.captured for each in captures])
    here = _page_at(pages, captures, asked.since)
    if here is None:
        return None
    others = [each for each in pages if each is not here and each.begin != here.begin]
    found = _Map(base, asked, captures, here, others)
    write = {MapFormat.LINK: found.as_link, MapFormat.JSON: found.as_json, MapFormat.CDXJ: found.as_cdxj}
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
    times = [each.captured for each in captures]
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
        for each in self.others:
            yield f",\n{self._page_link(each, 'timemap')}"
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
                {"uri": self._uri(self.asked.form, each), "from": _iso(each.first), "until": _iso(each.last)}
                for each in self.others
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
        for each in self.others:
            span = {"from": http_date(each.first), "until": http_date(each.last)}
            yield f"!meta {json.dumps({'timemap_index': {'uri': self._uri(self.asked.form, each), **span}})}\n"
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
