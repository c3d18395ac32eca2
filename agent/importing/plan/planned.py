"""The plan of an import as `--try` prints it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.frontier.rows import PlannedHost, StoredCrawl, UntakenCount
from agent.importing.tally import printable
from webarcfs.archive.model.metadata import format_time, from_epoch


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """What an import would do: its crawls, their hosts, and what is not taken."""

    crawls: tuple[StoredCrawl, ...]
    hosts: tuple[PlannedHost, ...]
    untaken: tuple[UntakenCount, ...]
    losses: tuple[str, ...]
    remarks: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the plan: crawls with their hosts, then what is not taken, and why."""
        for crawl in self.crawls:
            hosts = [host for host in self.hosts if host.crawl == crawl.number]
            if not hosts:
                continue
            captures, size = sum(host.captures for host in hosts), sum(host.bytes for host in hosts)
            span = f"{format_time(from_epoch(crawl.first))} to {format_time(from_epoch(crawl.last))}"
            name = f" ({printable(crawl.name)})" if crawl.name else ""
            yield f"crawl {crawl.number}{name}: {span}, {len(hosts)} hosts, {captures:,} captures, {size:,} bytes"
            yield from (
                f"  {host.domain}: {host.captures:,} captures in {host.cuts} snapshots, {host.bytes:,} bytes"
                for host in hosts
            )
        if not self.hosts:
            yield "nothing would be added"
        for count in self.untaken:
            what = count.note or f"status {count.status}"
            yield f"not taken: {count.number:,} {what}, first {printable(count.first)[:200]}"
        yield from self.losses
