"""Groups captures into crawls, and cuts the captures that crawls have of a host into snapshots. Pure.

Captures are grouped by the name of their crawl where a folder, a file or a record has one, else by pauses in time. The
groups follow from names and times alone: the order of the files does not matter.

The cuts are such that each version is in one of the snapshots. A snapshot has one version of a URL, and snapshots are
published in the order in which they begin. So a crawl has a further snapshot wherever a URL would have two versions in
one, or the older version behind the newer one, which happens where crawls overlap. The cuts are as few as can be for
one crawl: of all pairs of versions of which one replaces the other, in order of the second, a pair needs a cut if the
last cut lies before both. Where crawls overlap, the one that has a version first is also to publish it first, else the
version would have the time of the other: that one has a further snapshot where it has the version.

A host may need more cuts than are wanted. Then the URLs with the most versions keep the first, the last and every
n-th of them. Where that is not enough, cuts are left out evenly, and each URL keeps its newest version before a cut.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

# == naming, pure =====================================================================================================


#: Heritrix: `jobs/<job>/<launch>/warcs/<file>`, the launch being the time at which it began.
_LAUNCH = re.compile(r"\d{14}|\d{17}", re.ASCII)
_OF_LAUNCH = frozenset({"warcs", "arcs"})
#: ArchiveBox: `archive/<snapshot>/warc/<file>`, the snapshot being a Unix time.
_SNAPSHOT = re.compile(r"\d{9,11}(\.\d+)?", re.ASCII)
_OF_SNAPSHOT = "warc"
#: A field of a warcinfo record (WARC 1.1, section 6.2): the collection that its records are of.
_PART_OF = re.compile(rb"^isPartOf[ \t]*:(.*)$", re.MULTILINE | re.IGNORECASE)
#: In a warcinfo record of our exports, which are of many crawls.
_OF_AN_EXPORT = re.compile(rb"^webarcfs-selection:", re.MULTILINE)
#: How long a name may be that a record of a file gives, and how much of its file's digest a file's name has.
_LONGEST, _DIGITS = 200, 8


class CrawlsBy(StrEnum):
    """What makes captures one crawl."""

    AUTO = "auto"
    ONE = "one"
    FILE = "file"


def crawl_name(
    crawls: CrawlsBy, *, file: str, digest: str, path: str, container: str = "", collection: str = ""
) -> str:
    """Return the name of the crawl of a capture; empty where pauses separate crawls.

    `file` is the name of its file with this digest and path; `container` what holds a whole crawl, as a WACZ does;
    `collection` what its warcinfo record says that it is a part of.
    """
    if crawls is CrawlsBy.ONE:
        return "all files"
    if crawls is CrawlsBy.FILE:
        return f"{file} {digest[:_DIGITS]}"
    if container:
        return f"{container} {digest[:_DIGITS]}"
    return crawl_of_path(path) or collection


def crawl_of_path(path: str) -> str:
    """Return the name of the crawl whose folder a file is in; empty for a file of no such folder."""
    *_, job, folder, inner, _ = ("", "", "", *path.split("/"))
    if inner in _OF_LAUNCH and _LAUNCH.fullmatch(folder):
        return f"{job}/{folder}"
    if inner == _OF_SNAPSHOT and _SNAPSHOT.fullmatch(folder):
        return f"{job}/{folder}"
    return ""


def is_of_export(block: bytes) -> bool:
    """Return whether a warcinfo record is of an export of ours: that has many crawls, which pauses separate."""
    return _OF_AN_EXPORT.search(block) is not None


def part_of(block: bytes) -> str:
    """Return what the block of a warcinfo record says that its records are a part of; empty if it does not say it."""
    match = None if is_of_export(block) else _PART_OF.search(block)
    words = "" if match is None else " ".join(match[1].decode("utf-8", "replace").split())
    return words[:_LONGEST]


# == grouping, pure ===================================================================================================


@dataclass(frozen=True, slots=True)
class CrawlSpan:
    """A crawl: the captures with this name from the time `first` to the time `last`, in seconds."""

    name: str
    first: int
    last: int
    captures: int


def group_by_pauses(times: Iterable[tuple[str, int, int]], pause: int) -> list[CrawlSpan]:
    """Return the crawls in order of time; `times` are name, time and number of captures, sorted by name and time.

    Captures with a name are one crawl. Among those without one, a crawl ends where `pause` seconds have no capture.
    """
    spans: list[CrawlSpan] = []
    for name, rows in groupby(times, key=itemgetter(0)):
        spans += _spans(name, rows, 0 if name else pause)
    return sorted(spans, key=lambda span: (span.first, span.last, span.name))


def _spans(name: str, rows: Iterable[tuple[str, int, int]], pause: int) -> list[CrawlSpan]:
    """Return the crawls of one name; without a `pause` all is one."""
    spans: list[CrawlSpan] = []
    first = last = captures = 0
    for _, time, count in rows:
        if captures and pause and time - last >= pause:
            spans.append(CrawlSpan(name, first, last, captures))
            captures = 0
        first = first if captures else time
        last = time
        captures += count
    return [*spans, CrawlSpan(name, first, last, captures)]


# == cutting, pure ====================================================================================================


#: Sorts rows of numbers; the caller chooses how, as there may be more than memory holds.
Sort = Callable[[Iterable["Precedence"]], Iterable["Precedence"]]
#: Reads the captures of a host again, URL by URL.
Urls = Callable[[], Iterator["UrlCaptures"]]


class Precedence(NamedTuple):
    """The crawl `later` has a version first at the position `first`: behind what the crawl `earlier` has at `before`.

    With one crawl for both, that capture is of another version, and in no snapshot with this one. With two, both are of
    one version.
    """

    first: int
    before: int
    later: int
    earlier: int


class Sighting(NamedTuple):
    """A capture of a URL: its position in the order of time, its crawl, its content."""

    position: int
    crawl: int
    content: str


class UrlCaptures(NamedTuple):
    """The captures of a URL in order of time."""

    url: str
    sightings: Sequence[Sighting]


@dataclass(slots=True)
class UrlVersion:
    """Captures of a URL in a row with one content.

    `firsts` has the position of the first capture of each crawl. `replaced` is the version before it.
    """

    content: str
    firsts: dict[int, int]
    positions: list[int]
    replaced: UrlVersion | None


@dataclass(frozen=True, slots=True)
class HostCuts:
    """The snapshots of a host: each crawl → the positions at which they begin.

    `most_versions` is how many versions a URL keeps in a crawl that had too many. With `newest_only`, such a crawl
    keeps in a snapshot the newest of those that a URL has in it.
    """

    begins: Mapping[int, Sequence[int]]
    most_versions: Mapping[int, int] = field(default_factory=dict)
    newest_only: bool = False

    def begin(self, crawl: int, position: int) -> int:
        """Return where the snapshot begins that has the capture of a crawl at a position."""
        begins = self.begins[crawl]
        return begins[max(bisect_right(begins, position) - 1, 0)]

    def dropped(self, urls: Iterable[UrlCaptures]) -> Iterator[tuple[int, str]]:
        """Yield position and URL of the captures that are in no snapshot."""
        if self.most_versions:
            for url, sightings in urls:
                kept = _thinned(sightings, self.most_versions)
                left = {position for version in self._shown(versions_of(kept)) for position in version.positions}
                yield from ((sighting.position, url) for sighting in sightings if sighting.position not in left)

    def _shown(self, versions: list[UrlVersion]) -> Iterator[UrlVersion]:
        begin: int | None = None
        for version in reversed(versions):
            begins = list(self._begins_of(version))
            if begin is None or not self.newest_only or max(begins) < begin:
                yield version
                begin = min(begins)

    def _begins_of(self, version: UrlVersion) -> Iterator[int]:
        return (self.begin(crawl, position) for crawl, position in version.firsts.items())


def cut(firsts: Mapping[int, int], urls: Urls, most: int, sort: Sort = sorted) -> HostCuts:
    """Return how the captures of a host are cut into `most` snapshots a crawl, or fewer.

    `firsts` has for each crawl the position of the first capture that it has of the host.
    """
    begins = _begins(firsts, urls(), {}, sort)
    if not (noisy := [crawl for crawl in firsts if len(begins[crawl]) > most]):
        return HostCuts(begins)
    limits: dict[int, int] = {}
    for crawl in noisy:
        fewest, enough = 2, most
        while fewest < enough:  # the most versions of a URL with which the cuts suffice
            middle = (fewest + enough + 1) // 2
            if len(_begins(firsts, urls(), limits | {crawl: middle}, sort)[crawl]) <= most:
                fewest = middle
            else:
                enough = middle - 1
        limits[crawl] = fewest
    begins = _begins(firsts, urls(), limits, sort)
    if all(len(begins[crawl]) <= most for crawl in firsts):
        return HostCuts(begins, limits)
    fewer = {crawl: rows if len(rows) <= most else _evenly(rows, most) for crawl, rows in begins.items()}
    return HostCuts(fewer, limits, newest_only=True)


def versions_of(sightings: Iterable[Sighting]) -> list[UrlVersion]:
    """Return the versions of a URL in order of time."""
    versions: list[UrlVersion] = []
    for position, crawl, content in sightings:
        newest = versions[-1] if versions else None
        if newest is not None and newest.content == content:
            newest.positions.append(position)
            newest.firsts.setdefault(crawl, position)
        else:
            versions.append(UrlVersion(content, {crawl: position}, [position], newest))
    return versions


def _begins(
    firsts: Mapping[int, int], urls: Iterable[UrlCaptures], limits: Mapping[int, int], sort: Sort
) -> dict[int, list[int]]:
    """Return where the snapshots of each crawl begin, if no URL has more versions in a crawl than its limit."""
    begins = {crawl: [first] for crawl, first in firsts.items()}
    rows = (row for _, sightings in urls for row in _precedences(_thinned(sightings, limits)))
    for first, before, later, earlier in sort(rows):
        if earlier == later:
            is_behind = begins[later][-1] > before
        else:
            is_behind = begins[later][-1] > begins[earlier][bisect_right(begins[earlier], before) - 1]
        if not is_behind:
            begins[later].append(first)
    return begins


def _precedences(sightings: Sequence[Sighting]) -> Iterator[Precedence]:
    """Yield what the captures of a URL ask of the order of snapshots.

    A crawl has versions of a URL among those of all crawls, and among its own.
    """
    crawls = {sighting.crawl for sighting in sightings}
    own = ([sighting for sighting in sightings if sighting.crawl == crawl] for crawl in crawls if len(crawls) > 1)
    for group in itertools.chain([sightings], own):
        for version in versions_of(group):
            if version.replaced is not None:
                before = version.replaced.positions[-1]
                yield from (Precedence(first, before, crawl, crawl) for crawl, first in version.firsts.items())
            (earlier, before), *others = version.firsts.items()
            yield from (Precedence(first, before, later, earlier) for later, first in others)


def _thinned(sightings: Sequence[Sighting], limits: Mapping[int, int]) -> Sequence[Sighting]:
    """Return the captures of as many versions of a URL as each crawl may keep.

    Those are the first, the last, and every n-th between them.
    """
    for crawl, most in limits.items():
        versions = versions_of(sighting for sighting in sightings if sighting.crawl == crawl)
        if len(versions) > most:
            chosen = {number * (len(versions) - 1) // (most - 1) for number in range(most)}
            kept = {position for number in chosen for position in versions[number].positions}
            sightings = [sighting for sighting in sightings if sighting.crawl != crawl or sighting.position in kept]
    return sightings


def _evenly(begins: Sequence[int], count: int) -> list[int]:
    """Return the first of the cuts and so many in all, at equal distances, the last one among them."""
    others = begins[1:]
    return [begins[0], *(others[(number + 1) * len(others) // (count - 1) - 1] for number in range(count - 1))]
