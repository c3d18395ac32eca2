"""An archive behind a server, for the commands that ask one: names of snapshots, documents by their URL or path."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from webarcfs.archive.catalogue.record import newest_of
from webarcfs.archive.model.arc_paths import arc_path, places, split
from webarcfs.archive.model.errors import NotFound, UrlRefused, UsageError
from webarcfs.archive.model.metadata import CommitTag, MetaData
from webarcfs.archive.model.urls import canonical
from webarcfs.client import WebarchiveClient
from webarcfs.commands.arguments import place_options
from webarcfs.commands.snapshot_names import (
    Beside,
    CrawlFacts,
    StateAt,
    begins,
    number_up_to,
    parse_name,
    resolve,
    seq_of,
    tag_of,
)

if TYPE_CHECKING:
    from webarcfs.archive.catalogue.record import CrawlPart, Record
    from webarcfs.archive.model.metadata import CommitMessage

_F = TypeVar("_F", bound=Callable[..., Any])


# == snapshots ========================================================================================================


@dataclass
class ServerSnapshots:
    """The snapshots that a server shows. What is known of their crawls is in the records; each is asked for once."""

    client: WebarchiveClient
    _seqs: dict[str, list[int]] = field(default_factory=dict)

    @functools.cached_property
    def parts(self) -> dict[CommitTag, tuple[Record, CrawlPart]]:
        """The records of snapshots, each with its part of the snapshot's host."""
        return {part.tag: (record, part) for record in self.client.records() for part in record.parts}

    @functools.cached_property
    def _hosts(self) -> list[str]:
        return self.client.domains()

    @functools.cached_property
    def _by_publication(self) -> dict[str, set[str]]:
        hosts: dict[str, set[str]] = defaultdict(set)
        for tag, (record, _) in self.parts.items():
            hosts[record.publication].add(tag.domain)
        return hosts

    def has_host(self, host: str) -> bool:
        """Return whether there is a snapshot of a host."""
        return host in self._hosts

    def hosts(self) -> list[str]:
        """Return the hosts with snapshots, in order."""
        return self._hosts

    def hosts_of(self, publication: str) -> list[str]:
        """Return the hosts of which a publication has snapshots, in order."""
        known = self._by_publication.get(publication, set())
        return [host for host in self._hosts if host in known]

    def publications(self) -> list[str]:
        """Return the publications with snapshots, in order."""
        return sorted(self._by_publication)

    def seqs(self, host: str) -> list[int]:
        """Return the times of a host's snapshots, oldest first; none for an unknown host."""
        if host not in self._seqs:
            self._seqs[host] = [seq_of(tag) for tag in self.client.snapshots(host)] if self.has_host(host) else []
        return self._seqs[host]

    def newest_first(
        self, host: str, publication: str = "", until: datetime | None = None
    ) -> Iterator[tuple[int, CrawlFacts]]:
        """Yield the snapshots of a host, newest first; of a publication; up to a time. One without a record counts."""
        seqs = self.seqs(host)
        for seq in reversed(seqs if until is None else seqs[: number_up_to(seqs, until)]):
            record, part = self.parts.get(tag_of(host, seq), (None, None))
            facts = CrawlFacts("" if record is None else record.publication, part is None or part.complete)
            if publication in ("", facts.publication):
                yield seq, facts

    def message(self, host: str, seq: int) -> CommitMessage | None:  # noqa: ARG002 # no server has it
        """Return None: a server does not have the messages of commits."""
        return None

    def beginning(self, text: str, host: str = "") -> list[CommitTag]:
        """Return the snapshots whose commitTags begin with a text, newest first; of one host, or of all."""
        tags = [
            tag_of(host, seq)
            for host in ([host] if host else self._hosts)
            for seq in self.seqs(host)
            if begins(host, seq, text)
        ]
        return sorted(tags, key=lambda tag: (-tag.crawl_time.timestamp(), tag.domain))

    def of_crawl(self, text: str) -> list[CommitTag]:
        """Return the snapshots of the crawl that a record's number or name, or a publication, means, in order.

        Those with pages alone, where it has some.
        """
        from webarcfs.archive.catalogue.catalogue import newest_crawl  # noqa: PLC0415 # few commands of a server need it

        records = {record.id: record for record, _ in self.parts.values()}.values()
        named = (record for record in records if text in (str(record.number), record.id, record.job_name))
        crawl = next(named, None) or newest_crawl(record for record in records if record.publication == text)
        parts = () if crawl is None else [part for part in crawl.parts if part.tag in self.parts]
        tags = {part.tag for part in parts if not part.is_resource} or {part.tag for part in parts}
        return sorted(newest_of(tags), key=lambda tag: tag.domain)


# == place ============================================================================================================


@dataclass(frozen=True, slots=True)
class ServerArgument:
    """The archive of a server, by the client that asks it."""

    client: WebarchiveClient

    @property
    def mount(self) -> None:
        """None: a server has no mount here."""
        return

    def named(self, text: str, beside: Beside) -> CommitTag:
        """Return the snapshot of a name; prints the commitTag of a short one. Raises UsageError, NotFound."""
        tag = resolve(text, ServerSnapshots(self.client), beside)
        if text != str(tag):
            click.echo(f"webarc: {text} is {tag}", err=True)
        return tag

    def moment(self, text: str | None, beside: Beside) -> CommitTag | datetime | None:
        """Return the snapshot that a text names, or the time that it spells, for every host. None: None."""
        if text is None:
            return None
        name = parse_name(text)
        return name.end if isinstance(name, StateAt) and not name.of else self.named(text, beside)

    def document(self, tag: CommitTag, text: str) -> MetaData:
        """Return the document of a URL or a path in a snapshot. Raises UsageError, NotFound."""
        domain, arcs = arcs_of_text(text)
        if domain != tag.domain:
            raise UsageError(f"{tag} is a snapshot of {tag.domain}, and {text} is of {domain}")
        for arc in arcs[:-1]:
            try:
                return self.client.document(tag, f"/{domain}/{arc}")
            except NotFound:
                continue
        return self.client.document(tag, f"/{domain}/{arcs[-1]}")

    def path(self, text: str) -> str:
        """Return the path of the document of a URL, as the newest snapshot has it, or of a path."""
        domain, arcs = arcs_of_text(text)
        tags = self.client.snapshots(domain)
        if len(arcs) > 1 and tags:
            try:
                return self.document(tags[-1], text).path
            except NotFound:
                pass
        return f"/{domain}/{arcs[-1]}"


def arcs_of_text(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the host of a URL or path, and the paths that its document may have there, the last as a rule."""
    if "://" in text:
        try:
            url = canonical(text)
            return split(arc_path(url))[0], places(url)
        except UrlRefused as error:
            raise UsageError(f"{text}: {error}") from None
    domain, arc = split(text)
    arc = arc.strip("/")
    if not arc or any(part in ("", ".", "..") for part in (domain, *arc.split("/"))):
        raise UsageError(f"{text!r} names no document; give a URL, or a path such as /www.example.org/index.html")
    return domain, (arc,)


def place_or_server_options(command: _F) -> _F:
    """Add the options of `place_options`, and `--server`: with it, `place` is a `ServerArgument`."""
    of_archive = place_options(command)
    option = click.option(
        "--server",
        metavar="URL",
        help="Ask this server, as readers or with the token in $WEBARC_TOKEN or of webarcfs.toml.",
    )

    @functools.wraps(of_archive)
    def with_server(
        *args: Any,
        server: str | None,
        archive: str | None,
        mount: Path | None,
        as_reader: bool,
        reader: str | None,
        **options: Any,
    ) -> Any:
        if server is None:
            return of_archive(*args, archive=archive, mount=mount, as_reader=as_reader, reader=reader, **options)
        if archive is not None or mount is not None or as_reader or reader is not None:
            raise UsageError("a server has its archive and knows who asks: --server stands alone")
        client = click.get_current_context().with_resource(WebarchiveClient(server))
        return command(*args, place=ServerArgument(client), **options)

    return cast(_F, option(with_server))
