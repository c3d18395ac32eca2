"""Limits by count: the URLs that differ only in their query, and the hosts of a crawl.

Counts come from the frontier, so they are valid across batches and restarts. URLs that were accepted but not yet
written are added here.
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
    """Counts the accepted URLs of each path and the hosts of the crawl, and enforces their limits."""

    def __init__(self, frontier: Frontier, settings: CrawlSettings) -> None:
        self._frontier = frontier
        self._most_queries = settings.max_queries
        self._most_hosts = settings.max_hosts
        self._in_frontier: dict[str, int] = {}
        self._let_in: Counter[str] = Counter()
        self._hosts: set[str] | None = None

    def judge(self, url: str, domain: str, own: bool) -> Verdict | None:
        """Return None and count the URL if it may enter, else why not. `own`: its host is a start URL's host."""
        if not own and self._most_hosts and not self._has_room_for(domain):
            return HOSTS
        path, mark, _ = url.partition("?")
        if mark and self._most_queries:
            if self._count(path) >= self._most_queries:
                return QUERIES
            self._let_in[path] += 1
        return None

    def is_uncertain(self, url: str) -> bool:
        """Return whether pending URLs must be written before `url` is judged: some may be in the frontier already."""
        path, mark, _ = url.partition("?")
        return bool(mark and self._most_queries and self._let_in[path] and self._count(path) >= self._most_queries)

    def settle(self) -> None:
        """Reset the pending counts: all accepted URLs are in the frontier now."""
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
