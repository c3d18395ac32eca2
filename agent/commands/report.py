"""`webarc-agent report`: the summary of a job, and the tables of its crawl.log."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from agent.commands.common import archive_option, of_former, opened, settings_of
from agent.crawl import crawl_log, job_folder, job_orders, scope
from agent.crawl.job_folder import JobState, kind_of
from agent.crawl.vocabulary import CERTIFICATE_FAULTS, IN_CRAWL_LOG, Reason, ViewState
from agent.indexing import fulltext
from agent.operations.records import catalogue_of
from agent.reports import counted_urls, missing_urls, shown_pages, tables, url_fates
from agent.reports.counted_urls import REASONS_OF_TABLES, Lack, UrlSelection, of_size_class
from agent.reports.explanations import advice_on
from agent.reports.report import (
    missing_in,
    missing_now,
    most_rows,
    read_waiting,
    remarks_in,
)
from agent.reports.storage import bar, show
from agent.reports.storage import storage as storage_of
from agent.reports.tables import LogLine, Tables
from agent.reports.tables import shares as site_shares
from agent.reports.url_fates import MOST_LOGS, CrawlFate, PossibleSource
from agent.service import scheduler
from webarcfs.access.gate import StaffGate
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_record
from webarcfs.archive.catalogue.record import OCCASION, PATCH
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import start_url
from webarcfs.archive.model.errors import Damaged, Exit, NotFound, UsageError, WebarcError
from webarcfs.archive.model.metadata import PAGE_ROLE, CommitTag, format_time, from_epoch
from webarcfs.archive.model.urls import domain_of
from webarcfs.commands.completing import complete_reports
from webarcfs.commands.lazy_commands import with_archive
from webarcfs.commands.listing import (
    LIST,
    OBJECT,
    Form,
    Row,
    format_option,
    print_array,
    print_object,
    print_rows,
    show_table,
    table_console,
)
from webarcfs.commands.snapshot_names import Beside, Latest, StateAt, VisibleSnapshots, parse_name, resolve
from webarcfs.content.extractors.extracted import SENTENCES, Fault

_TITLES = {
    "hosts": "Hosts",
    "types": "MIME types",
    "sizes": "Sizes",
    "statuses": "Statuses",
    "states": "States",
    "left_out": "Not archived, and why",
}
_SHOWN = ("url", "state", "words", "shown", "requests", "refused", "missed", "pictures")
_TEXTLESS = ("url", "mime_type", "size", "fault", "meaning")
#: Passes over a log to what a page needs, the resources that are counted, and of these the missing ones that are named.
_MOST_PASSES, _MOST_PARTS, _MOST_PARTS_NAMED = 6, 5_000, 20
#: Newer crawls that are named of those that knew of a URL and did not ask for it.
_MOST_NEWER = 5
_NUMBERS = ("requests", "refused", "missed")
_CSV = ("table", "key", "meaning", "seed3", "urls", "archived", "bytes", "share")


def _words(context: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        width = max(map(len, IN_CRAWL_LOG))
        for word in IN_CRAWL_LOG:
            click.echo(f"{word:{width}}  {word.sentence}")
        context.exit()


@click.command()
@click.argument("job", metavar="[JOB|NUMBER|TAG|PUBLICATION|HOST]", required=False, shell_complete=complete_reports)
@archive_option
@format_option(*LIST)
@click.option("--csv", "as_csv", is_flag=True, help="Short for --format csv.")
@click.option(
    "--words",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_words,
    help="Explain the words of crawl.log, and end.",
)
@click.option("--url", metavar="URL", help="Why this URL is not archived, or what became of it.")
@click.option(
    "--word", metavar="WORD", help="List the URLs behind a count: not archived for this reason, or remarked so."
)
@click.option("--status", type=int, metavar="N", help="List the URLs of a status, as crawl.log has it.")
@click.option("--host", "of_host", metavar="HOST", help="List the URLs of a host.")
@click.option("--type", "mime", metavar="MIME", help="List the documents of a MIME type.")
@click.option("--size", metavar="CLASS", help="List the documents of a class of sizes, as the table names it.")
@click.option("--state", metavar="N", help="List the URLs of one of the table's states.")
@click.option(
    "--lack",
    type=click.Choice([*Lack]),
    help="List the resources that pages lack, all that is missing, or the pages that were known and not wanted.",
)
@click.option("--text", is_flag=True, help="List the documents that have no text for `webarc search`, and why.")
@click.option("--shown", is_flag=True, help="List the pages that a browser showed with their requests, worst first.")
@click.option("--shares", is_flag=True, help="What part of the site is archived, excluded, not to be had; a chart.")
@click.option("--on-server", type=click.IntRange(0), help="With --shares: as many documents as the site's server has.")
@click.option("--unlinked", type=click.IntRange(0), help="With --shares: as many of these as no link leads to.")
@click.option("--storage", is_flag=True, help="What the archive takes by publication, year and part, and a year will.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Rows of a table; 0 for all (JSON and CSV have all).",
)
@click.option("--top", "former_limit", type=click.IntRange(min=0), hidden=True, help="The old name of --limit.")
def report(  # each option is a branch
    job: str | None,
    *,
    archive: str | None,
    form: Form,
    as_csv: bool,
    url: str | None,
    text: bool,
    shown: bool,
    shares: bool,
    on_server: int | None,
    unlinked: int | None,
    storage: bool,
    limit: int,
    former_limit: int | None,
    **counted: Any,
) -> None:
    """Show what a job did, and what came of its URLs.

    That is its sums, and how many URLs of each host, MIME type, status and reason there were.

    The log itself is crawl.log.gz in the job's folder in reports/, a line for each URL; zcat and zgrep read it. Older
    versions wrote it plain, as crawl.log.

    Without a job it is the newest one. A job is named as its folder in reports/, by the number of its record, or by its
    publication or a host (the last one is shown, also one by occasion). A commitTag, or a short name such as
    latest@www.example.org, shows the part of the job that is on the tag's domain. Of a job that still runs, named as
    its folder in jobs/, it shows what came until now; it is what is shown for a publication that has no report yet.

    Of an import it names the revisits that found nothing. They wait, until a later import has what they repeat.

    With --word, --status, --host, --type, --size, --state or --lack it lists the URLs behind a count of its tables,
    each with its status, the word for why, and the page that led to it. Several of them narrow the list. A word with a
    colon at its end stands for all that begin with it.

    With --url it shows what became of one URL: the words of crawl.log for it with what they mean, the page that led to
    it, and of a page what it needs and whether that came. Where the crawl never saw it, it says so. Without a job, or
    with a host, it is the newest crawl that asked for the URL, else one that had a reason not to, else one that saw a
    link to it. Newer crawls that knew of the URL are named beside it.

    With --shown it shows of each page that a browser was to show how many requests its scripts made, how many of them
    the crawl refused, and how many had no whole response. Pages that could not be shown come first, then those that
    lack most. The words are those of crawl.log. A crawl that still runs has no such list.

    With --shares it shows what part of the site is archived, excluded by a decision, or was requested in vain. A crawl
    cannot know what else the server has: give the figures of the site's owner. They are not kept; the table can
    be, as a file that is attached to the record.

    With --storage, and no job, it shows what was captured by publication and year, what the disk has, and what a year
    will bring.
    """
    if not shares and (on_server is not None or unlinked is not None):
        raise UsageError("--on-server and --unlinked are of --shares")
    if as_csv and form not in {Form.TABLE, Form.CSV}:
        raise UsageError("--json and --csv exclude each other")
    form = Form.CSV if as_csv else form
    is_list = any(value is not None for value in counted.values())
    if is_list and (url is not None or text or shown or shares or storage):
        chosen = "--word, --status, --host, --type, --size, --state and --lack"
        raise UsageError(f"{chosen} list URLs: leave out --url, --text, --shown, --shares and --storage")
    top = of_former("--top", former_limit, "--limit", limit)
    if storage:
        if job is not None or form not in OBJECT or text or shares:
            raise UsageError("--storage is of the whole archive: it goes with --json and --limit alone")
        place = opened(archive)
        catalogue_of(place)
        show(storage_of(place, settings_of(place)), as_json=form is Form.JSON, top=top)
        return
    place = opened(archive)
    if url is not None:
        if form not in OBJECT or text or shares:
            raise UsageError("--url goes with --json, or is text")
        _tell_url(place, job, start_url(url), form)
        return
    folder, host = _find_named(place, job)
    live = folder.parent == place.jobs
    if is_list:
        _list_urls(place, folder, _selection(counted, host), form, live=live)
        return
    summary = _summary_now(place, folder)
    if "patched_by" in summary:
        summary["missing"] = asdict(missing_now(place, folder.name, summary))
    _narrow(summary, host)
    if text:
        tags = [CommitTag.parse(tag) for tag in summary["commit_tags"]]
        _textless(place, [tag for tag in tags if host in (None, tag.domain)], form)
        return
    if shown:
        _show_pages(folder, host, form, top, is_live=live)
        return
    if shares:
        with crawl_log.reading(folder) as log:
            parts = list(site_shares(log, host, live=live).rows(on_server, unlinked))
        rows = [{"what": name, "documents": count, "share": round(share, 1)} for name, count, share in parts]
        print_rows(form, rows, lambda _: _show_shares(parts), as_json=_print_array)
        return
    _show_tables(place, folder, host, summary, form=form, top=top, live=live)


def _show_tables(
    place: Archive, folder: Path, host: str | None, summary: dict[str, Any], *, form: Form, top: int, live: bool
) -> None:
    """Print the summary of a job with the tables of its log."""
    after_patches = _tables_after_patches(place, folder.name, host) if "patched_by" in summary else None
    if after_patches is not None:
        job_tables, failed = after_patches
        summary["hosts"] = [end | {"failed": failed[end["host"]]} for end in summary.get("hosts", ())]
    else:
        with crawl_log.reading(folder) as log:
            job_tables = tables.tables(log, host, live=live)
    waits = [(format_time(from_epoch(revisit["time"])), revisit["url"]) for revisit in read_waiting(folder)]

    def show_all(_: object) -> None:
        _show(summary, job_tables, top, is_after_patches=after_patches is not None)
        _show_waiting(waits, top)

    def print_all(rows: Iterable[Row]) -> None:
        print_object({"summary": summary, "tables": list(rows), "waiting": waits})

    lacks = (_lack_as_row(*row) for row in missing_in(summary).rows)
    print_rows(form, chain(tables.as_rows(job_tables), lacks), show_all, as_json=print_all, columns=_CSV, newline="\n")


_URL_COLUMNS = ("url", "status", "word", "archived", "type", "size", "referrer", "notes")


def _selection(options: Mapping[str, Any], host: str | None) -> UrlSelection:
    """Return the URLs that the options mean. Types and sizes are counted of what is archived. Raises UsageError."""
    word, mime, size, lack = (options[name] for name in ("word", "mime", "size", "lack"))
    if word is not None and not missing_urls.is_word(word) and word not in REASONS_OF_TABLES:
        raise UsageError(f"{word!r} is no word of crawl.log; `webarc-agent report --words` lists them")
    least, below = of_size_class(size) if size is not None else (0, None)
    return UrlSelection(
        word=word or "",
        status=options["status"],
        host=options["of_host"] or host or "",
        mime=mime or "",
        state=options["state"] or "",
        is_kept=True if mime is not None or size is not None else None,
        least=least,
        below=below,
        lack=Lack(lack) if lack is not None else None,
    )


def _list_urls(archive: Archive, folder: Path, selection: UrlSelection, form: Form, *, live: bool) -> None:
    """Print the URLs of a selection as they are read: a log may have millions of lines."""
    lines = (
        counted_urls.chosen_of_open(folder, selection) if live else counted_urls.chosen(archive, folder.name, selection)
    )
    print_rows(form, map(_url_as_row, lines), _url_lines, as_json=print_array, columns=_URL_COLUMNS, newline="\n")


def _url_as_row(line: LogLine) -> Row:
    return {
        "url": line.url, "status": line.status, "word": "" if line.archived else line.reason,
        "archived": line.archived, "type": line.mime.strip("-"), "size": line.size,
        "referrer": line.referrer.strip("-"), "notes": list(line.notes),
    }  # fmt: skip


def _url_lines(rows: Iterable[Row]) -> Iterator[str]:
    is_empty = True
    for row in rows:
        is_empty = False
        origin = f"  from {row['referrer']}" if row["referrer"] else ""
        yield f"{row['url']}  {row['status']}  {row['word'] or 'archived'}{origin}"
    if is_empty:
        yield "no URL is so"


def _tables_after_patches(place: Archive, job: str, host: str | None) -> tuple[Tables, Counter[str]] | None:
    """Return the tables of a crawl after its patches, and the number of failures of each host then.

    None where a log cannot be read, which then says nothing of what patches got.
    """
    result, failed = Tables(), Counter[str]()
    try:
        for line in missing_urls.lines(place, job):
            if host in (None, line.host):
                result.add(line)
                failed[line.host] += missing_urls.has_failed(line) or line.reason == Reason.TOO_BIG
    except (NotFound, Damaged):
        return None
    return result, failed


def _narrow(summary: dict[str, Any], host: str | None) -> None:
    """Leave of a summary's tables what is of one host, if one is asked for; numbers of all hosts together go."""
    if host is None:
        return
    lacks = missing_in(summary)
    summary["hosts"] = [end for end in summary.get("hosts", ()) if end["host"] == host]
    summary["missing"] = {
        "resources": {host: lacks.resources[host]} if host in lacks.resources else {},
        "rows": [row for row in lacks.rows if row[0] == host],
        "pages": [page for page in lacks.pages if domain_of(page[0]) == host],
        "embedded": [resource for resource in lacks.embedded if domain_of(resource[0]) == host],
    }
    scripted = summary.get("needs_browser") or {}
    summary["needs_browser"] = {host: scripted[host]} if host in scripted else {}
    summary["shown"] = {}


def _lack_as_row(host: str, word: str, urls: int) -> Row:
    """Return a row of the table of what pages lack, as JSON and CSV have it."""
    meaning = advice_on(word) if word else ""
    return {"table": "missing", "key": f"{host} {word}".strip(), "meaning": meaning, "urls": urls}


_print_array = partial(print_object, indent=1)


def _targets_of(archive: Archive, folder: Path, lines: Iterable[LogLine]) -> dict[str, str]:
    """Return URL → target of the redirects among these lines."""
    redirects = (line.url for line in lines if line.status in tables.REDIRECTS)
    return {redirect: url_fates.target_of(archive, folder.name, redirect) for redirect in redirects}


def _lines_about(archive: Archive, folder: Path, url: str, *, live: bool) -> dict[str, LogLine]:
    if not live:
        return missing_urls.lines_of(archive, folder.name, url)
    with crawl_log.reading(folder) as log:
        return tables.lines_of(log, url, live=True)


def _newest(archive: Archive) -> str:
    """Return the newest job that has a report. Raises NotFound."""
    names = url_fates.report_names(archive)
    if not names:
        raise NotFound("no crawl has ended here: there is no report")
    return url_fates.crawl_of(archive, archive.reports / names[0]).name


def _captures_of(archive: Archive, url: str) -> list[str]:
    """Return what `url_fates.captures_of` does; where webarc.db cannot be asked, a line says that it is not known."""
    try:
        return url_fates.captures_of(archive, url)
    except (WebarcError, OSError) as error:
        _complain_of("whether another crawl has it", error)
        return []


def _sources_of(archive: Archive, url: str) -> Sequence[PossibleSource]:
    """Return the publications of a URL's host."""
    return url_fates.possible_sources(archive, settings_of(archive), scheduler.read(archive).last, url)


def _complain_of(what: str, error: Exception) -> None:
    click.echo(f"webarc-agent: {what} is not known: {error}", err=True)


def _parts_of(archive: Archive, folder: Path, page: LogLine | None) -> list[LogLine]:
    """Return the newest lines of what a page needs, as far as the crawl met it here first: through styles and frames.

    A log mostly has a part behind what it is a part of, so that one pass has all, and another one finds no more.
    """
    if page is None or not page.archived:
        return []
    parts = {page.url: page}
    try:
        for _ in range(_MOST_PASSES):
            before = len(parts)
            for line in missing_urls.lines(archive, folder.name):
                if line.referrer in parts and scope.embedded_in(line.path) and len(parts) <= _MOST_PARTS:
                    parts.setdefault(line.url, line)
            if len(parts) == before:
                break
    except (Damaged, NotFound) as error:
        _complain_of("all that it needs", error)
    del parts[page.url]
    return list(parts.values())


def _tell_url(archive: Archive, job: str | None, url: str, form: Form) -> None:
    """Say what became of a URL; exit with 1 where no crawl, or not the one that is named, saw it."""
    newer: Sequence[CrawlFate] = ()
    if job:
        folder: Path | None = find(archive, job, url)[0]
    else:
        names = url_fates.report_names(archive)[:MOST_LOGS]
        fates = url_fates.fates_until_asked(archive, url, (archive.reports / name for name in names))
        crawl = url_fates.newest_that_knows(fates)
        folder = None if crawl is None else archive.reports / crawl.job
        newer = () if crawl is None else url_fates.newer_than(fates, crawl.job)
    if folder is None:
        fate = UrlFate(url, {}, captures=_captures_of(archive, url), sources=_sources_of(archive, url))
    else:
        is_live = folder.parent == archive.jobs
        lines = _lines_about(archive, folder, url, live=is_live)
        fate = UrlFate(
            url,
            _summary_now(archive, folder),
            lines,
            {} if is_live else _targets_of(archive, folder, lines.values()),
            [] if is_live else _parts_of(archive, folder, lines.get(url)),
            [] if any(line.archived for line in lines.values()) else _captures_of(archive, url),
            [] if lines else _sources_of(archive, url),
            newer,
        )
    if form is Form.JSON:
        _print_array(fate.as_json())
    else:
        for text in fate.texts():
            click.echo(with_archive(text))
    if not fate.lines:
        sys.exit(Exit.USAGE)


@dataclass(frozen=True, slots=True)
class UrlFate:
    """What became of a URL, by the summary and the log of a crawl; `summary` is empty where no crawl saw it.

    `lines` are those of its spellings, `targets` those of redirects among them, `parts` what it needs, `captures` the
    snapshots that have it where this crawl has not. `sources` are the publications of its host, of a URL that is not
    known. `newer` are later crawls that knew of it and did not ask for it.
    """

    url: str
    summary: dict[str, Any]
    lines: Mapping[str, LogLine] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[LogLine] = ()
    captures: Sequence[str] = ()
    sources: Sequence[PossibleSource] = ()
    newer: Sequence[CrawlFate] = ()

    @property
    def host(self) -> dict[str, Any] | None:
        """What became of its host."""
        host = self.url.partition("://")[2].partition("/")[0]
        return next((end for end in self.summary.get("hosts", ()) if end["host"] == host), None)

    @property
    def lacks(self) -> list[LogLine]:
        """What it needs and the archive does not have."""
        return [part for part in self.parts if missing_urls.is_missing_from_page(part)]

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "url": self.url,
            "known": self.url in self.lines,
            "lines": [
                asdict(line) | {"archived": line.archived, "target": self.targets.get(line.url, "")}
                for line in self.lines.values()
            ],
            "host": self.host,
            "job": self.summary.get("job", ""),
            "needs": {"resources": len(self.parts), "missing": [[part.url, part.reason] for part in self.lacks]},
            "captures": self.captures,
            "publications": [asdict(source) for source in self.sources],
            "newer": [{"job": fate.job, "status": fate.main.status, "word": fate.main.reason} for fate in self.newer],
        }

    def texts(self) -> Iterator[str]:
        """Yield it in sentences."""
        if self.url not in self.lines:
            yield from self._unseen()
        for line in (self.lines[spelling] for spelling in tables.spellings(self.url) if spelling in self.lines):
            yield from tables.fate(line, f" by the crawl {self.summary['job']}")
            if self.targets.get(line.url):
                yield f"  it redirects to {self.targets[line.url]}; `report --url` says what became of that"
            if missing_urls.has_failed(line):
                yield from (f"  {text}" for text in _what_to_do(line, self.summary))
        if self.parts:
            here = len(self.parts) - len(self.lacks)
            most = f"the first {_MOST_PARTS:,} of " * (len(self.parts) >= _MOST_PARTS)
            yield f"  of {most}the resources that the crawl met here first: {here} archived, {len(self.lacks)} missing"
            yield from (f"    {part.url}: {part.reason}" for part in self.lacks[:_MOST_PARTS_NAMED])
        if self.host is not None and not self.host["complete"]:
            yield f"  its host is incomplete: {self.host['reason']}"
        for fate in self.newer[:_MOST_NEWER]:
            why = f"{fate.main.reason}: {tables.sentence_of(fate.main.reason) or ''}".removesuffix(": ")
            yield f"  the newer crawl {fate.job} did not ask for it: {why}"
        if more := len(self.newer[_MOST_NEWER:]):
            yield f"  {more} more newer crawls did not ask for it"
        if self.captures:
            log = f"`webarc log {shlex.quote(self.url)}`"
            yield f"  the archive has versions of it from other crawls, the newest of {self.captures[0]}: {log}"

    def _unseen(self) -> Iterator[str]:
        if self.summary:
            yield f"{self.url} was not seen by {self.summary['job']}: no page that the crawl read has a link to it"
        else:
            yield f"none of the last {MOST_LOGS} crawls saw {self.url}: no page that they read has a link to it"
            if not self.captures:
                yield f"  `webarc-agent crawl --page {shlex.quote(self.url)}` archives it"
        for source in self.sources:
            word = f"{source.reason}: {tables.sentence_of(source.reason) or ''}"
            would = f"would not ask for it: {word}" if source.reason else "would ask for it where a page links to it"
            yield f"  the publication {source.publication} {would}{' (retired)' * source.is_retired}"


def _what_to_do(line: LogLine, summary: dict[str, Any]) -> Iterator[str]:
    """Yield what helps against the failure of a URL. A crawl that published nothing takes no patch."""
    is_rejected = line.reason in CERTIFICATE_FAULTS
    if is_rejected:
        yield advice_on(line.reason)
    takes = " --certificates any" * is_rejected
    if not (summary["commit_tags"] or summary.get("patched_by")):
        yield f"the crawl brought nothing: crawl again{' with' * is_rejected}{takes}"
        return
    pattern = shlex.quote(line.url.partition("://")[2])
    yield f"`webarc-agent crawl --missing {summary['job']} --url {pattern}{takes}` asks for it again"


def _show_shares(rows: list[tuple[str, int, float]]) -> None:
    table = Table(title="Shares of the site", title_justify="left", box=None, pad_edge=False)
    for column in ("", "documents", "%", ""):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, count, share in rows:
        table.add_row(name, f"{count:,}", f"{share:.1f}", bar(share, 100))
    show_table(table)


def _textless(archive: Archive, tags: list[CommitTag], form: Form) -> None:
    """Write the documents without a text, a line each."""
    if not fulltext.installed():
        raise UsageError("texts need more libraries: pip install 'webarcfs[search]'")
    from agent.indexing.fulltext_run import textless  # noqa: PLC0415 # of the extra `search`

    rows = [asdict(document) | {"meaning": SENTENCES[document.fault]} for document in textless(archive, tags)]
    print_rows(form, rows, _textless_lines, as_json=_print_array, columns=_TEXTLESS, newline="\n")


def _textless_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for fault, count in sorted(Counter(row["fault"] for row in rows).items()):
        yield f"{count} {fault}: {SENTENCES[Fault(fault)]}"
        yield from (f"  {row['url']}  {row['mime_type']}" for row in rows if row["fault"] == fault)
    if not rows:
        yield "each document that has a text can be searched by it"


def _show_pages(folder: Path, host: str | None, form: Form, top: int, *, is_live: bool) -> None:
    """Print what browsers showed, a page a row. Raises NotFound while the crawl runs, Damaged."""
    if is_live:
        raise NotFound(f"{folder.name} still runs: the pages that a browser showed are listed once it has ended")
    views = (view for view in shown_pages.read(folder) if host in (None, domain_of(view.url)))
    rows: list[Row] = [
        {**page._asdict(), "words": page.words.split(",") if page.words else []}
        for page in shown_pages.worst_first(views)
    ]

    def show_pages(_: object) -> None:
        if not rows:
            click.echo("no browser showed a page")
            return
        show_table(_table_of_pages(rows, top))

    print_rows(form, rows, show_pages, as_json=_print_array, columns=_SHOWN, newline="\n")


def _table_of_pages(rows: Sequence[Row], top: int) -> Table:
    table = Table(title="Pages shown by a browser", title_justify="left", box=None, pad_edge=False)
    for column in ("", "requests", "refused", "missed", "words"):
        table.add_column(column, no_wrap=True, justify="right" if column in _NUMBERS else "left")
    for row in rows[:top] if top else rows:
        words = " ".join(row["words"]) + (" (not shown)" * (row["state"] != ViewState.DONE))
        table.add_row(row["url"], *(f"{row[name]:,}" for name in _NUMBERS), words.strip())
    if top and len(rows) > top:
        rest = rows[top:]
        table.add_row(f"{len(rest):,} more", *(f"{sum(row[name] for row in rest):,}" for name in _NUMBERS), "")
    return table


def _find_named(archive: Archive, name: str | None) -> tuple[Path, str | None]:
    """Return what `find` returns; a name may be a short one of a snapshot, too. It raises what `resolve` does."""
    try:
        return find(archive, name)
    except NotFound:
        if name is None or not isinstance(parse_name(name), Latest | StateAt):
            raise
        gate = StaffGate(archive)
        tag = resolve(name, VisibleSnapshots(archive, gate if gate.is_needed else None), Beside())
        click.echo(f"webarc-agent: {name} is {tag}", err=True)
        return find(archive, str(tag))


def find(archive: Archive, name: str | None, url: str = "") -> tuple[Path, str | None]:
    """Return the report folder of a job, by its name, its record, its publication, a commitTag or a host it published.

    Without a name it is the newest. For a commitTag, the domain comes with it. Of a publication it is the newest crawl,
    also one by occasion. Of a host it is the newest crawl of its site, before one that only added pages; with a `url`,
    the one that knows most of it. A patch of a host stands for the crawl that it patched. Raises NotFound, which names
    the newest report.
    """
    if not name:
        return archive.reports / _newest(archive), None
    folders = [archive.reports / job for job in url_fates.report_names(archive)]
    if all(folder.name != name for folder in folders):
        name = _job_of_record(archive, name) or name
    for folder in folders:
        if folder.name == name or kind_of(folder.name).removesuffix(OCCASION) == name:
            return folder, None
        if "@" in name and name in _tags(folder):
            return folder, name.partition("@")[2]
    for path in sorted(archive.jobs.iterdir(), reverse=True):
        if name in (path.name, kind_of(path.name).removesuffix(OCCASION)):
            if (path / crawl_log.PLAIN).exists():
                return path, None
            raise NotFound(f"{name} has no report yet, and nothing was fetched: it is about to begin, or waits")
    if (of_host := _of_host(archive, name, url, folders[:MOST_LOGS])) is not None:
        return of_host, None
    if (without_crawl := _of_publication_without_crawl(name, folders)) is not None:
        return without_crawl, None
    last = f"; the last one is {folders[0].name}" if folders else "; there are none yet"
    raise NotFound(
        f"there is no report of a job, publication or commitTag {name}, "
        f"and none of the last {MOST_LOGS} jobs published a host {name}{last}"
    )


def _of_publication_without_crawl(name: str, reports: Sequence[Path]) -> Path | None:
    """Return the newest report of a list, or of imports or saved pages alone; None without one."""
    of_list = re.compile(rf"{re.escape(name)}-[0-9a-f]{{8}}")  # the rest of its name is of the list's content
    kinds = {report: kind_of(report.name) for report in reports}
    lists = (report for report, kind in kinds.items() if of_list.fullmatch(kind))
    others = (report for report, kind in kinds.items() if kind.partition("+")[0] == name and not kind.endswith(PATCH))
    return next(chain(lists, others), None)


def _job_of_record(archive: Archive, name: str) -> str:
    """Return the job of the record of a number or a name; empty without one."""
    if not name.isdecimal() and scheduler.split_name(name) is None:
        return ""
    with suppress(NotFound):
        return look_up_record(archive, Catalogue(archive), name)[0].job_name
    return ""


def _of_host(archive: Archive, host: str, url: str, reports: Sequence[Path]) -> Path | None:
    """Return the report of the crawl that is meant by a host, of reports from the newest on; None if none published it.

    It is the one that knows most of `url`, if there is a URL that one of them saw; else the newest one of its site.
    """
    if url:
        fates = url_fates.fates_until_asked(archive, url, _published(host, reports))
        if (telling := url_fates.newest_that_knows(fates)) is not None:
            return archive.reports / telling.job
    newest: Path | None = None
    for crawl in (url_fates.crawl_of(archive, report) for report in _published(host, reports)):
        if not _only_adds(crawl):
            return crawl
        newest = newest or crawl
    return newest


def _published(host: str, reports: Iterable[Path]) -> Iterator[Path]:
    return (report for report in reports if any(tag.partition("@")[2] == host for tag in _tags(report)))


def _only_adds(report: Path) -> bool:
    """Return whether a crawl asked for single pages of its hosts; one whose summary cannot be read did not."""
    with suppress(Damaged):
        return bool(_summary(report).get("only_adds"))
    return False


def _tags(folder: Path) -> list[str]:
    """Return what the job of a report published; nothing where its summary cannot be read: others may be meant."""
    with suppress(Damaged):
        return list(_summary(folder)["commit_tags"])
    return []


def _summary_now(archive: Archive, folder: Path) -> dict[str, Any]:
    """Return the summary of a job, as far as it is known of an open one; `patched_by` names its patches, if any."""
    summary = _summary_so_far(folder) if folder.parent == archive.jobs else _summary(folder)
    patches = [patch.name for patch in missing_urls.patches_of(archive, folder.name)]
    return summary | ({"patched_by": patches} if patches else {})


def _summary(folder: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
        return content
    except (OSError, ValueError) as error:
        raise Damaged(f"{folder}/summary.json cannot be read: {error}") from None


def _summary_so_far(folder: Path) -> dict[str, Any]:
    """Return of an open job what summary.json will have, as far as it is known."""
    known = job_folder.load_item(folder) or JobState(job=folder.name, publication=kind_of(folder.name))
    return {
        "job": known.job,
        "publication": known.publication,
        "state": str(known.state),
        "held": known.held,
        "commit_tags": [],
        "complete": None,
        "started": known.begun,
        "finished": None,
        "latest_end": known.latest_end,
        "bytes": known.bytes,
        "arcs": {},
        "orders": job_orders.describe_orders(folder),
    }


def _show(summary: dict[str, Any], job_tables: Tables, top: int, *, is_after_patches: bool) -> None:
    console = table_console()
    lost = " but for what failed" * bool(missing_in(summary).lost)
    state = f"complete{lost}" if summary["complete"] else "incomplete"
    span = f"{summary['started']} to {summary['finished']}"
    if summary["complete"] is None:
        state, span = summary["held"] or summary["state"], f"since {summary['started']}"
        span += f", ends by {summary['latest_end']}" if summary["latest_end"] else ""
    console.print(f"{summary['job']}: {state}, {span}")
    for line in _lines(summary, is_after_patches=is_after_patches):
        console.print(f"  {line}")
    if lacks := missing_in(summary).rows:
        console.print()
        show_table(_table_of_missing(lacks, top))
    if ends := summary.get("hosts"):
        console.print()
        show_table(_table_of_hosts(ends, top))
    for name, rows in job_tables.sorted():
        if rows:
            console.print()
            show_table(_table(name, rows, top))


def _lines(summary: dict[str, Any], *, is_after_patches: bool) -> Iterator[str]:
    """Yield what stands before the tables."""
    yield from summary["commit_tags"]
    if summary.get("patches"):
        yield f"a patch of {summary['patches']}"
    if summary.get("patched_by"):
        how = "as the patches left them" if is_after_patches else "before that, since a log cannot be read"
        yield f"patched by {', '.join(summary['patched_by'])}; URLs are counted {how}"
    if summary["arcs"]:
        yield ", ".join(f"{count} {what}" for what, count in summary["arcs"].items())
    redirects = {what: count for what, count in summary.get("redirects", {}).items() if count}
    if redirects:
        yield "redirects: " + ", ".join(f"{count} {what}" for what, count in redirects.items())
    for name, failure in summary.get("filter_errors", {}).items():
        yield f"filter {name} failed on {failure['documents']} documents, {failure['first']} first: {failure['error']}"
    for order in summary.get("orders", []):
        what = f"{order['order']} {order['value']}".strip()
        why = f": {order['reason']}" if order.get("reason") else ""
        yield f"{what}, {order['at']} by {order['by'] or 'somebody'}{why}"
    if watch := summary.get("watch"):
        yield (
            f"{watch['feed']}: {watch['items']} items, {watch['new']} new, {watch['again']} again; "
            f"{watch['captured']} captured, {watch['waiting']} to be tried again, {watch['given_up']} given up"
        )
    yield from missing_in(summary).lines()
    yield from (remark.text for remark in remarks_in(summary))


def _table_of_hosts(ends: list[dict[str, Any]], top: int) -> Table:
    """Return the table of what became of the hosts; as the summary has them, those with pages first."""
    table = Table(title="Completeness of hosts", title_justify="left", box=None, pad_edge=False)
    for column in ("", "role", "complete", "failed", "why not"):
        table.add_column(column, no_wrap=True, justify="right" if column == "failed" else "left")
    for end in ends[:top] if top else ends:
        is_judged = end["role"] == PAGE_ROLE or not end["complete"]  # a host of resources makes no crawl incomplete
        whole = ("yes" if end["complete"] else "no") if is_judged else ""
        table.add_row(end["host"], end["role"], whole, str(end["failed"]), end["reason"])
    if top and len(ends) > top:
        rest = ends[top:]
        table.add_row(f"{len(rest)} more", "", "", str(sum(end["failed"] for end in rest)), "")
    return table


def _table_of_missing(rows: Sequence[tuple[str, str, int]], top: int) -> Table:
    """Return the table of resources that pages need and that are not there."""
    table = Table(title="Missing from pages", title_justify="left", box=None, pad_edge=False)
    for column in ("", "why", "resources", "what to do"):
        table.add_column(column, no_wrap=True, justify="right" if column == "resources" else "left")
    for host, word, urls in most_rows(rows, top or len(rows)):
        table.add_row(host or "further ones", word, str(urls), advice_on(word) if word else "")
    return table


def _show_waiting(waits: list[tuple[str, str]], top: int) -> None:
    if waits:
        click.echo(f"\nRevisits that wait until an import has what they repeat: {len(waits):,}")
        for time, url in waits[:top] if top else waits:
            click.echo(f"  {time}  {url}")


def _table(name: str, rows: list[tuple[str, tables.TableRow]], top: int) -> Table:
    shown = rows[:top] if top else rows
    table = Table(title=_TITLES[name], title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in ("URLs", "%", "archived", "bytes"):
        table.add_column(column, justify="right")
    counts = [row for _, row in rows]
    words = {"statuses": lambda key: tables.meaning(int(key)), "states": tables.state_meaning}
    for key, row in shown:
        label = f"{key} {words[name](key)}" if name in words else key
        table.add_row(label, str(row.urls), f"{tables.share(row, counts):.1f}", str(row.archived), str(row.bytes))
    if len(rows) > len(shown):
        rest = [row for _, row in rows[len(shown) :]]
        urls, archived, size = (sum(getattr(row, field) for row in rest) for field in ("urls", "archived", "bytes"))
        whole = sum(row.urls for row in counts)
        table.add_row(f"{len(rest)} more", str(urls), f"{100 * urls / whole:.1f}", str(archived), str(size))
    return table
