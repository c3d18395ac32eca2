"""Reads the redirects of a domain from its trees: one, all, or those that differ between two trees.

The format of the lists is in `webarcfs.archive.model.redirects`. Raises Damaged if a list cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.versions import snapshots
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.redirects import REDIRECTS, Redirect, is_place, place_of, read_list


@dataclass(frozen=True, slots=True)
class RedirectChange:
    """The redirect of a URL before and after a change; None where there is none."""

    url: str
    old: Redirect | None
    new: Redirect | None

    @property
    def what(self) -> str:
        """The change in a word: added, changed or removed."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"


def of_url(store: Repository, tree: str, url: str) -> Redirect | None:
    """Return the redirect of a canonical URL in the tree of its domain; None without one."""
    place = place_of(url)
    return next((each for each in lines(store, store.find(tree, place), place) if each.url == url), None)


def every(store: Repository, tree: str) -> Iterator[Redirect]:
    """Yield all redirects of a domain's tree, list by list."""
    for place, entry in places(store, store.find(tree, REDIRECTS)):
        yield from lines(store, entry, place)


def places(store: Repository, top: Entry | None) -> Iterator[tuple[str, Entry]]:
    """Yield path and entry of each list, in order; `top` is the entry `%redirects` of a domain's tree."""
    for outer in store.each(top.oid) if top is not None and top.is_tree else ():
        for inner in store.each(outer.oid) if outer.is_tree else ():
            if is_place(place := f"{REDIRECTS}/{outer.name}/{inner.name}") and not inner.is_tree:
                yield place, inner


def lines(store: Repository, entry: Entry | None, place: str = "") -> list[Redirect]:
    """Return the redirects of a list; none where there is no list."""
    if entry is None or entry.is_tree:
        return []
    try:
        return read_list(store.read(entry.oid), place)
    except Damaged as error:
        raise Damaged(f"{store.path}: {place or entry.oid}: {error}") from None


def urls(store: Repository, entry: Entry | None) -> frozenset[str]:
    """Return the URLs of a list."""
    return frozenset(each.url for each in lines(store, entry))


def differences(store: Repository, old: str | None, new: str | None) -> Iterator[RedirectChange]:
    """Yield the redirects that differ between two trees of a domain, list by list; equal lists are not read."""
    before, after = (_top(store, tree) for tree in (old, new))
    for each in store.differences(before, after, f"{REDIRECTS}/"):
        if not is_place(each.path):
            continue
        was, now = (_by_url(store, blob, each.path) for blob in (each.old, each.new))
        for url in sorted(was.keys() | now.keys()):
            if was.get(url) != now.get(url):
                yield RedirectChange(url, was.get(url), now.get(url))


def steps(store: Repository, domain: str, urls: Sequence[str]) -> Iterator[tuple[CommitTag, RedirectChange]]:
    """Yield the changes of the redirects of some URLs, with their snapshots, oldest first."""
    known: dict[str, Redirect | None] = dict.fromkeys(urls)
    top = None
    for tag, oid in snapshots(store, domain):
        tree = store.commit(oid).tree
        before, top = top, _top(store, tree)
        for url in urls if top != before else ():
            was, now = known[url], of_url(store, tree, url)
            if was != now:
                known[url] = now
                yield tag, RedirectChange(url, was, now)


def _top(store: Repository, tree: str | None) -> str | None:
    found = store.find(tree, REDIRECTS) if tree else None
    return found.oid if found is not None and found.is_tree else None


def _by_url(store: Repository, blob: str | None, place: str) -> dict[str, Redirect]:
    entry = Entry(place, blob, False) if blob else None
    return {each.url: each for each in lines(store, entry, place)}
