"""Narrows links.db to a reader: links of pages that the reader may see, at times that the reader may know."""

from __future__ import annotations

from functools import cache, lru_cache

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists, versions
from webarcfs.archive.index.links_database import NEVER
from webarcfs.archive.index.links_query import Held, Question
from webarcfs.archive.model.arc_paths import arc_path, second_name, split
from webarcfs.archive.model.errors import NotFound, UrlRefused
from webarcfs.archive.model.redirects import LONGEST_CHAIN, without_fragment
from webarcfs.gate import visibility
from webarcfs.gate.gate import Gate
from webarcfs.gate.reader_repositories import ReaderRepositories
from webarcfs.gate.visibility import Open, Saw, Snapshot, Standing

#: Answers about targets that are remembered.
_REMEMBERED = 65_536


class ReaderLinks:
    """The links that a reader may see of an answer to one question. For one thread."""

    def __init__(self, gate: Gate, repositories: ReaderRepositories, question: Question) -> None:
        self._gate = gate
        self._repositories = repositories
        self._question = question
        self._at = None if question.at is None else int(question.at.crawl_time.timestamp())
        self._facts = cache(self._facts_of)
        self._state = cache(self._state_of)
        self.held = lru_cache(maxsize=_REMEMBERED)(self._held)

    def span(self, path: str, first: int, last: int) -> tuple[int, int] | None:
        """Return from when to when a version of a page is known to the reader; None if it is not.

        That is from the first open snapshot that contains it to the first open one that does not.
        """
        domain = split(path)[0]
        snapshots, saw = self._facts(domain)
        found = self._gate.version_at(path, first)
        if found is None:
            return None
        url, captured, version = found
        answer = self._gate.with_rules(visibility.may(snapshots, version, saw), url, captured)
        if not isinstance(answer, Open):
            return None
        if self._at is None and not self._question.ever:
            now = visibility.newest_open(snapshots, NEVER)
            if not any(first <= each.seq < last and (not each.seen or saw(each, version)) for each in now):
                return None
        later = [each.seq for each in snapshots if each.standing is Standing.OPEN and each.seq >= last]
        return answer.since, min(later, default=NEVER)

    def _facts_of(self, domain: str) -> tuple[list[Snapshot], Saw]:
        return self._gate.snapshots(domain), self._gate.saw(domain)

    def _state_of(self, domain: str) -> tuple[Repository, str] | None:
        """Return the store and the tree of a domain as the reader sees it; None if it sees none of it."""
        try:
            store = self._repositories.open(domain)
        except NotFound:
            return None
        seen = versions.snapshots(store, domain)
        tags = [(tag, oid) for tag, oid in seen if self._at is None or tag.crawl_time.timestamp() <= self._at]
        return (store, store.commit(tags[-1][1]).tree) if tags else None

    def _held(self, url: str) -> Held:
        """Return what the reader may see of a URL."""
        try:
            for _ in range(LONGEST_CHAIN + 1):
                path = arc_path(url)
                state = self._state(split(path)[0])
                if state is None:
                    return Held(False, "")
                redirect = redirect_lists.of_url(*state, url)
                target = without_fragment(redirect.target) if redirect is not None else url
                if target == url:
                    break
                url = target
            else:
                return Held(True, "")
            # As for those who may see all: a folder without its slash is the folder's page.
            folder = path if "?" in url else arc_path(f"{url}/")
        except UrlRefused:
            return Held(False, "")
        found = (each for each in (second_name(path, url), path, folder) if _has(*state, split(each)[1]))
        return Held(True, next((f"/{each}" for each in found), ""))


def _has(store: Repository, tree: str, arc: str) -> bool:
    found = store.find(tree, arc)
    return found is not None and found.is_tree and versions.is_arc(store.each(found.oid))
