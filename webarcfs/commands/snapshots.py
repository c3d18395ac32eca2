"""`webarc snapshots`: the snapshots of an archive, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

import click

from webarcfs.archive.catalogue.catalogue import Catalogue, opened
from webarcfs.archive.catalogue.record import is_import
from webarcfs.archive.index.database import SpanCounts
from webarcfs.archive.index.names import ListedSnapshot, SnapshotSelection, count_documents, list_snapshots
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import format_time, from_epoch
from webarcfs.commands.arguments import ArchiveArgument, host_of, typed_span
from webarcfs.commands.completing import complete_hosts, complete_publications
from webarcfs.commands.listing import LIST, Form, Row, format_option, print_array, print_rows
from webarcfs.commands.server_archive import ServerArgument, ServerSnapshots, arcs_of_text, place_or_server_options
from webarcfs.commands.snapshot_names import KnownSnapshots, VisibleSnapshots, tag_of, unknown_name

_COLUMNS = ("commitTag", "host", "time", "publication", "complete", "documents", "record")
#: Columns of a table; a commitTag has the time and the host.
_SHOWN = ("commitTag", "publication", "complete", "documents", "record")
#: Rows by which the widths of a table are chosen, so that it begins before the last row is known.
_MEASURED = 1_000
_COMPLETE, _INCOMPLETE, _UNKNOWN = "complete", "incomplete", "unknown"


@click.command()
@click.argument("host", default="", metavar="[HOST|URL]", shell_complete=complete_hosts)
@click.option("--domain", default="", metavar="HOST", shell_complete=complete_hosts, help="The same as HOST.")
@click.option(
    "--publication",
    default="",
    metavar="NAME",
    shell_complete=complete_publications,
    help="Only those of this publication's crawls.",
)
@click.option("--during", default="", metavar="SPAN", help="Only those of this span (CET): 2024, 2024-03, 2019..2021.")
@click.option(
    "--sort", type=click.Choice(["newest", "oldest"]), default="newest", show_default=True, help="Which come first."
)
@click.option("--limit", type=click.IntRange(min=0), help="At most so many.")
@place_or_server_options
@format_option(*LIST)
def snapshots(
    host: str, *, domain: str, publication: str, during: str, sort: str, limit: int | None,
    place: ArchiveArgument | ServerArgument, form: Form,
) -> None:  # fmt: skip
    """List the snapshots of the archive, or of a host.

    A snapshot is the state of a host at a time. Each line has its commitTag, the publication, whether the crawl was
    complete, the number of documents, and the record. The documents are all that the host has at that time, also those
    that other crawls got; the record counts those of its crawl. Of an import it is unknown whether it was complete,
    unless --complete said so.

    \b
    Every command that asks for a TAG takes these names of a snapshot:
      2026-11-21T03:00:00@www.example.org   its commitTag
      2026-11-21, 2026-11, 2026             the state at the end of that day, month or year, in CET; also with a time
      latest, latest~1                      the newest complete one, and the complete one before it
      2026-11@www.example.org               with the host, or a publication, where no URL beside it says which
      2026-11-21T03:00:00@www               the beginning of a commitTag that no other has

    A text that is a date or a time is one, anything else is the beginning of a commitTag. The command prints the whole
    commitTag on stderr. Where several snapshots are meant, it lists them and exits with 1.

    \b
    Examples:
      webarc snapshots
      webarc snapshots www.example.org --limit 10
      webarc snapshots --publication example --during 2026 --format csv
      webarc snapshots --server https://archive.example.org/ --during 2026
    """
    if isinstance(place, ServerArgument):
        rows = _of_server(ServerSnapshots(place.client), host, domain, publication, during, oldest=sort == "oldest")
        print_rows(form, islice(rows, limit), _lines, as_json=print_array, columns=_COLUMNS)
        return
    known = VisibleSnapshots(place.archive, place.gate)
    host = _host(place, host, domain, known)
    if publication and not known.hosts_of(publication):
        raise NotFound(unknown_name(publication, known))
    since, until = _times(during)
    chosen = SnapshotSelection(host, publication, since, until)
    description = _Description(place, known)
    rows = map(description.of, islice(_visible(place, known, chosen, oldest=sort == "oldest"), limit))
    print_rows(form, rows, _lines, as_json=print_array, columns=_COLUMNS)
    if description.uncounted:
        number = len(description.uncounted)
        hosts = f"{number:,} host{'s' * (number > 1)}"
        click.echo(f"webarc: the documents of {hosts} are not counted: something of them is hidden", err=True)


def _of_server(
    known: ServerSnapshots, host: str, domain: str, publication: str, during: str, *, oldest: bool
) -> Iterator[Row]:
    """Yield the rows of a server's snapshots. Documents are not counted there."""
    host = _one_host(arcs_of_text(host)[0] if "://" in host else host.lower(), domain.lower(), known)
    if publication and not known.hosts_of(publication):
        raise NotFound(unknown_name(publication, known))
    since, until = _times(during)
    hosts = [host] if host else known.hosts()
    tags = [tag_of(name, seq) for name in hosts for seq in known.seqs(name)]
    for tag in sorted(tags, key=lambda tag: (tag.crawl_time, tag.domain), reverse=not oldest):
        record, part = known.parts.get(tag, (None, None))
        time = format_time(tag.crawl_time)
        if publication and (record is None or record.publication != publication):
            continue
        if not since <= time <= (until or time):
            continue
        if part is None or (not part.complete and record is not None and is_import(record.id)):
            complete = _UNKNOWN
        else:
            complete = _COMPLETE if part.complete else _INCOMPLETE
        yield {
            "commitTag": str(tag), "host": tag.domain, "time": time,
            "publication": "" if record is None else record.publication, "complete": complete, "documents": None,
            "record": "" if record is None else record.id,
        }  # fmt: skip


def _times(during: str) -> tuple[str, str]:
    """Return the first and the last time of a span; empty for none. Raises UsageError."""
    if not during:
        return "", ""
    begin, end = typed_span("during", during)
    return format_time(from_epoch(begin)), format_time(from_epoch(end - 1))


def _host(place: ArchiveArgument, host: str, domain: str, known: VisibleSnapshots) -> str:
    """Return the host that is asked for; empty for all. Raises UsageError for two, NotFound for an unknown one."""
    return _one_host(host_of(place, host) if "://" in host else host.lower(), domain.lower(), known)


def _one_host(host: str, domain: str, known: KnownSnapshots) -> str:
    if host and domain and host != domain:
        raise UsageError(f"{host} and --domain {domain} are two hosts; give one")
    if (host := host or domain) and not known.has_host(host):
        raise NotFound(unknown_name(host, known))
    return host


def _visible(
    place: ArchiveArgument, known: VisibleSnapshots, chosen: SnapshotSelection, *, oldest: bool
) -> Iterator[ListedSnapshot]:
    if not place.archive.database.exists() and not any(place.archive.domains()):
        return iter(())  # nothing was crawled yet
    rows = list_snapshots(place.archive.database, chosen, oldest=oldest)
    return rows if place.gate is None else (row for row in rows if known.has(row.host, row.seq))


@dataclass(slots=True)
class _Description:
    """What is said of a snapshot beside its name; what is known of its host is read once."""

    place: ArchiveArgument
    known: VisibleSnapshots
    uncounted: set[str] = field(default_factory=set)
    _records: dict[str, dict[int, str]] = field(default_factory=dict)
    _counts: dict[str, SpanCounts | None] = field(default_factory=dict)

    def of(self, row: ListedSnapshot) -> Row:
        """Return the fields of a row."""
        if row.host not in self._records:
            self._read(row.host)
        record, counts = self._records[row.host].get(row.seq, ""), self._counts[row.host]
        return {
            "commitTag": row.tag, "host": row.host, "time": row.time, "publication": row.publication,
            "complete": self._completeness(row, record),
            "documents": None if counts is None else counts.at(row.seq), "record": record,
        }  # fmt: skip

    def _read(self, host: str) -> None:
        with opened(self.place.archive, Catalogue(self.place.archive)) as tables:
            self._records[host] = tables.records(host)
        is_whole = self.known.is_whole(host)
        self._counts[host] = count_documents(self.place.archive.database, host) if is_whole else None
        if not is_whole:
            self.uncounted.add(host)

    def _completeness(self, row: ListedSnapshot, record: str) -> str:
        if row.is_complete:
            return _COMPLETE
        if is_import(record):
            return _UNKNOWN
        message = self.known.message(row.host, row.seq)  # the records of older imports are called as those of crawls
        return _UNKNOWN if message is not None and message.is_import else _INCOMPLETE


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a table, whose widths are those of its first rows."""
    stream = iter(rows)
    cells = ([_cell(row[name]) for name in _SHOWN] for row in stream)
    first = list(islice(cells, _MEASURED))
    if not first:
        yield "none"
        return
    widths = [max(map(len, column)) for column in zip(_SHOWN, *first, strict=True)]
    for texts in chain([list(_SHOWN)], first, cells):
        aligned = (
            text.rjust(width) if name == "documents" else text.ljust(width)
            for name, text, width in zip(_SHOWN, texts, widths, strict=True)
        )
        yield "  ".join(aligned).rstrip()


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
