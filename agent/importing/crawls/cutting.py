"""Cuts the captures that crawls have of a host into snapshots, so that each version is in one of them. Pure.

A snapshot has one version of a URL, and snapshots are published in the order in which they begin. So a crawl has a
further snapshot wherever a URL would have two versions in one, or the older version behind the newer one, which
happens where crawls overlap. The cuts are as few as can be for one crawl: of all pairs of versions of which one
replaces the other, in order of the second, a pair needs a cut if the last cut lies before both.

A host may need more cuts than are wanted. Then the URLs with the most versions keep the first, the last and every
n-th of them. Where that is not enough, cuts are left out evenly, and each URL keeps its newest version before a cut.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Sorts rows of numbers; the caller chooses how, as there may be more than memory holds.
Sort = Callable[[Iterable[tuple[int, int, int]]], Iterable[tuple[int, int, int]]]
#: Reads the captures of a host anew, URL by URL.
Urls = Callable[[], Iterator["UrlCaptures"]]


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

    @property
    def first(self) -> int:
        """The position of its first capture."""
        return self.positions[0]


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
                yield from ((each.position, url) for each in sightings if each.position not in left)

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
    rows = (row for _, sightings in urls for row in _replacements(_thinned(sightings, limits)))
    for first, after, crawl in sort(rows):
        if begins[crawl][-1] <= after:
            begins[crawl].append(first)
    return begins


def _replacements(sightings: Sequence[Sighting]) -> Iterator[tuple[int, int, int]]:
    """Yield where a crawl has a version first, the last capture that this replaced, and the crawl.

    A crawl has versions of a URL among those of all crawls, and among its own.
    """
    crawls = {sighting.crawl for sighting in sightings}
    own = ([each for each in sightings if each.crawl == crawl] for crawl in crawls if len(crawls) > 1)
    for group in itertools.chain([sightings], own):
        for version in versions_of(group):
            if version.replaced is not None:
                after = version.replaced.positions[-1]
                yield from ((first, after, crawl) for crawl, first in version.firsts.items())


def _thinned(sightings: Sequence[Sighting], limits: Mapping[int, int]) -> Sequence[Sighting]:
    """Return the captures of as many versions of a URL as each crawl may keep.

    Those are the first, the last, and every n-th between them.
    """
    for crawl, most in limits.items():
        versions = versions_of(each for each in sightings if each.crawl == crawl)
        if len(versions) > most:
            chosen = {number * (len(versions) - 1) // (most - 1) for number in range(most)}
            kept = {position for number in chosen for position in versions[number].positions}
            sightings = [each for each in sightings if each.crawl != crawl or each.position in kept]
    return sightings


def _evenly(begins: Sequence[int], count: int) -> list[int]:
    """Return the first of the cuts and so many in all, at equal distances, the last one among them."""
    others = begins[1:]
    return [begins[0], *(others[(number + 1) * len(others) // (count - 1) - 1] for number in range(count - 1))]
