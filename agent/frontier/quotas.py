"""Guards that count: how many URLs differ in their query alone, and how many hosts a crawl has found.

Counts come from the frontier, so they hold over batches and restarts; URLs that were accepted and not yet written are
added here.
"""

from __future__ import annotations

from collections import Counter

from agent.frontier.store import Frontier
from agent.policy import traps
from agent.policy.fetchstatus import Status
from agent.policy.scope import Verdict
from webarcfs.archive.config.settings import CrawlSettings

QUERIES = Verdict(Status.TRAP, traps.QUERIES)
HOSTS = Verdict(Status.TRAP, traps.HOSTS)


class UrlQuotas:
    """Accepted URLs of each path, and hosts of the crawl, with their limits."""

    def __init__(self, frontier: Frontier, settings: CrawlSettings) -> None:
        self._frontier = frontier
        self._most_queries = settings.max_queries
        self._most_hosts = settings.max_hosts
        self._in_frontier: dict[str, int] = {}
        self._let_in: Counter[str] = Counter()
        self._hosts: set[str] | None = None

    def judge(self, url: str, domain: str, own: bool) -> Verdict | None:
        """None if one more URL may enter, which counts it; else why not. `own`: its host is one of the start URLs'."""
        if not own and self._most_hosts and not self._has_room_for(domain):
            return HOSTS
        path, mark, _ = url.partition("?")
        if mark and self._most_queries:
            if self._count(path) >= self._most_queries:
                return QUERIES
            self._let_in[path] += 1
        return None

    def is_uncertain(self, url: str) -> bool:
        """Whether what was let in must be in the frontier before `url` can be judged: some of it may be known there."""
        path, mark, _ = url.partition("?")
        return bool(mark and self._most_queries and self._let_in[path] and self._count(path) >= self._most_queries)

    def settle(self) -> None:
        """All that was let in is in the frontier now."""
        self._let_in.clear()
        self._in_frontier.clear()

    def _count(self, path: str) -> int:
        if path not in self._in_frontier:
            self._in_frontier[path] = self._frontier.queries(path)
        return self._in_frontier[path] + self._let_in[path]

    def _has_room_for(self, domain: str) -> bool:
        if self._hosts is None:
            self._hosts = set(self._frontier.admitted_domains())
        if domain not in self._hosts:
            if len(self._hosts) >= self._most_hosts:
                return False
            self._hosts.add(domain)
        return True
