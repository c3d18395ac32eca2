"""Cuts the captures that a crawl has of a host into snapshots, so that each version is in one of them. Pure.

A snapshot has one version at a place. So the captures, in order of time, are cut wherever a place would have two: a
further snapshot begins with the capture that has other bytes. The cuts are as few as can be: of all pairs of versions
that exclude each other, in order of the second one, a pair needs a cut if the last cut lies before both.

A host may need more cuts than are wanted. Then the places with the most versions keep the first, the last and every
n-th of them. Where that is not enough, cuts are left out evenly, and each place keeps its newest version before a cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Sorts pairs of numbers; the caller chooses how, as there may be more than memory holds.
Sort = Callable[[Iterable[tuple[int, int]]], Iterable[tuple[int, int]]]
#: Reads the captures of a host anew, those of a place together and in order of time.
Places = Callable[[], Iterator[list["Sighting"]]]


class Sighting(NamedTuple):
    """A capture at a place: its position in the order of time, its URL, its content as text, what it is."""

    position: int
    url: str
    content: str
    is_redirect: bool


@dataclass(slots=True)
class PlaceVersion:
    """Captures of a place in a row with one content: a document, or the redirect of one URL.

    `last_of` has the position of the last capture of each of its URLs. `after` is the position of the last capture that
    it replaced, -1 if it replaced none; `replaced` are the versions of those.
    """

    content: str
    last_of: dict[str, int]
    positions: list[int]
    after: int = -1
    replaced: list[PlaceVersion] = field(default_factory=list)

    @property
    def first(self) -> int:
        """The position of its first capture."""
        return self.positions[0]


@dataclass(frozen=True, slots=True)
class HostCuts:
    """The snapshots of a host in a crawl: `begins` are the positions at which the second and each further one begins.

    `most_versions` is how many versions a place keeps; 0: all. With `newest_only`, a snapshot has the newest of those
    that a place has in it.
    """

    begins: tuple[int, ...]
    most_versions: int = 0
    newest_only: bool = False

    def number(self, position: int) -> int:
        """Return the number of the snapshot that has the capture at a position, from 0."""
        return bisect_right(self.begins, position)

    def dropped(self, places: Iterable[Sequence[Sighting]]) -> Iterator[tuple[int, str]]:
        """Yield position and URL of the captures that are in no snapshot."""
        if self.most_versions:
            for sightings in places:
                yield from self._dropped_at(sightings)

    def _dropped_at(self, sightings: Sequence[Sighting]) -> Iterator[tuple[int, str]]:
        kept = _thinned(sightings, self.most_versions)
        left = {position for version in self._shown(versions_at(kept)) for position in version.positions}
        yield from ((each.position, each.url) for each in sightings if each.position not in left)

    def _shown(self, versions: list[PlaceVersion]) -> Iterator[PlaceVersion]:
        hidden: set[int] = set()
        if self.newest_only:
            for version in versions:
                number = self.number(version.first)
                hidden |= {older.first for older in version.replaced if self.number(older.first) == number}
        return (version for version in versions if version.first not in hidden)


def cut(places: Places, most: int, sort: Sort = sorted) -> HostCuts:
    """Return how a host's captures are cut into `most` snapshots or fewer."""
    begins = _begins(places(), 0, sort, most)
    if len(begins) < most:
        return HostCuts(tuple(begins))
    fewest, enough = 2, most
    while fewest < enough:  # the most versions of a place with which the cuts suffice
        middle = (fewest + enough + 1) // 2
        if len(_begins(places(), middle, sort, most)) < most:
            fewest = middle
        else:
            enough = middle - 1
    begins = _begins(places(), fewest, sort)
    if len(begins) < most:
        return HostCuts(tuple(begins), fewest)
    return HostCuts(tuple(_evenly(begins, most - 1)), fewest, newest_only=True)


def versions_at(sightings: Iterable[Sighting]) -> list[PlaceVersion]:
    """Return the versions of a place in order of time.

    A place has one document, and a redirect for each of its URLs; the redirect and the document of one URL replace each
    other.
    """
    versions: list[PlaceVersion] = []
    document: PlaceVersion | None = None
    redirects: dict[str, PlaceVersion] = {}
    for position, url, content, is_redirect in sightings:
        redirect = redirects.get(url)
        same, other = (redirect, document) if is_redirect else (document, redirect)
        if other is not None and url not in other.last_of:
            other = None
        if same is not None and same.content == content and other is None:
            same.positions.append(position)
            same.last_of[url] = position
            continue
        replaced, after = [], -1
        if same is not None and same.content != content:
            replaced, after = [same], same.positions[-1]
        if other is not None:
            replaced, after = [*replaced, other], max(after, other.last_of[url])
        versions.append(PlaceVersion(content, {url: position}, [position], after, replaced))
        if is_redirect:
            redirects[url] = versions[-1]
            if other is not None:
                del other.last_of[url]
        else:
            document = versions[-1]
            redirects.pop(url, None)
    return versions


def _begins(places: Iterable[Sequence[Sighting]], most_versions: int, sort: Sort, most: int = 0) -> list[int]:
    """Return where snapshots begin if no place has more versions than that; no more than `most` of them, unless 0."""
    pairs = (
        (version.first, version.after)
        for sightings in places
        for version in versions_at(_thinned(sightings, most_versions))
        if version.after >= 0
    )
    begins: list[int] = []
    for first, after in sort(pairs):
        if not begins or begins[-1] <= after:
            begins.append(first)
            if len(begins) == most:
                break
    return begins


def _thinned(sightings: Sequence[Sighting], most_versions: int) -> Sequence[Sighting]:
    """Return the captures of as many versions of a place: of the first, the last, and every n-th between them."""
    versions = versions_at(sightings) if 0 < most_versions < len(sightings) else []
    if len(versions) <= most_versions:
        return sightings
    steps = most_versions - 1
    chosen = {number * (len(versions) - 1) // steps for number in range(most_versions)}
    kept = {position for number in chosen for position in versions[number].positions}
    return [sighting for sighting in sightings if sighting.position in kept]


def _evenly(begins: Sequence[int], count: int) -> list[int]:
    """Return so many of the cuts, at equal distances, the last one among them."""
    return [begins[(number + 1) * len(begins) // count - 1] for number in range(count)]
