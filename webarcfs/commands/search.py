"""`webarc search`: words in all versions of documents, in the present, in a snapshot, or in a span of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import ROLES, CommitTag, format_digits
from webarcfs.archive.model.urls import replay_address
from webarcfs.commands.arguments import ArchiveArgument, moment, origin_options
from webarcfs.commands.completing import complete_records, complete_tags
from webarcfs.commands.lazy_commands import with_archive
from webarcfs.commands.listing import LIST, Form, Row, format_option, print_object, print_rows, table_console
from webarcfs.commands.server_archive import ServerArgument, place_or_server_options
from webarcfs.commands.snapshot_names import Beside
from webarcfs.search.hits import Hit, HitOrder, SearchAnswer, SearchQuestion, SnapshotHits

if TYPE_CHECKING:
    from webarcfs.archive.index.query import DocumentOrigin

#: The most frequent values of each facet.
FacetCounts = dict[str, list[tuple[str, int]]]
_SORTS = ("relevance", "date", "oldest", "url")


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="WORDS…")
@click.option(
    "--at",
    metavar="TAG|TIME",
    shell_complete=complete_tags,
    help="As it was in this snapshot, or everywhere at this time; a day is its end.",
)
@click.option("--record", metavar="RECORD", shell_complete=complete_records, help="In the snapshots of this record.")
@click.option("--present", is_flag=True, help="Only as it is at present.")
@click.option("--past", is_flag=True, help="Only URLs that do not have the words at present.")
@click.option("--during", default="", metavar="SPAN", help="Only captured in this span: 2024, 2024-03, 2019..2021.")
@click.option("--all-versions", is_flag=True, hidden=True)
@origin_options
@click.option("--type", "type_", default="", metavar="KIND|MIME", help="Only of this kind or MIME type: pdf, image/*.")
@click.option("--collection", default="", metavar="NAME", help="Only of this collection.")
@click.option("--lang", default="", metavar="CODE", help="Only in this language: de, en.")
@click.option("--errors", is_flag=True, help="Also error pages.")
@click.option(
    "--role", type=click.Choice(ROLES), help="Pages (default), what only pages of other hosts needed, or both."
)
@click.option("--exact", is_flag=True, help="Only the words as they are written, no other forms of them.")
@click.option(
    "--group", type=click.Choice(["url", "snapshot"]), default="url", help="A hit a URL, or counts by snapshot."
)
@click.option("--sort", type=click.Choice(_SORTS), default="relevance", show_default=True, help="The order of hits.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="At most so many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many first.")
@click.option(
    "--facets", is_flag=True, help="Count the URLs by kind, domain, language, publication, extension, role, year."
)
@format_option(*LIST, Form.PATHS)
@place_or_server_options
def search(
    *, words: tuple[str, ...], place: ArchiveArgument | ServerArgument, origin: DocumentOrigin, at: str | None,
    group: str, facets: bool, form: Form, type_: str, lang: str, errors: bool, role: str | None, sort: str,
    all_versions: bool, **narrowing: Any,
) -> None:  # fmt: skip
    """Show the URLs of which a version has all WORDS.

    All versions are searched. A hit is a URL, with the snapshots in which it has the words, and its best version. Other
    forms of a word are found as well, in seven languages; accents and case make no difference. The address counts where
    a document has neither text nor title.

    \b
    WORDS are words, and:
      '"annual report"'          in this order
      -draft                     not this word (after --)
      report OR minutes          either; ( ) group
      report*                    words that begin so
      title:report               in the title; also headings:, text:, description:, url: (address)
      site:example.org/news      on this host and below it, or in this folder
      type:pdf lang:de           of this kind, in this language
      collection:elections       of the publications and crawls of this collection
      role:resource role:any     what only pages of other hosts needed; this and pages
      before:2024-01 after:2023  first captured so before, or from then on
      during:2024                captured then; a year, a month, a day, or 2019..2021
      present:2024               as it was at its end; present:now is --present

    \b
    Examples:
      webarc search annual report
      webarc search '"annual report" site:example.org type:pdf' --sort date
      webarc search minutes --at 2026-11-21T03:00:00@www.example.org --format json
      webarc search minutes during:2019..2021 --group snapshot
      webarc search minutes --present --sort date
      webarc search '"Jane Doe"' --past
      webarc search --facets --limit 5 -- minutes -draft
      webarc search minutes --mount /mnt/archive --format paths | xargs -d '\\n' ls -d
      webarc search minutes --server https://archive.example.org/
    """
    if all_versions:
        if narrowing["present"]:
            raise UsageError("--all-versions and --present exclude each other; all versions are the default now")
        click.echo("webarc: --all-versions is the default now; leave it out, or give --present", err=True)
    beside = Beside(origin.domain, origin.publication)
    question = SearchQuestion(
        words=" ".join(words),
        at=place.moment(at, beside) if isinstance(place, ServerArgument) else moment(place, at, beside),
        domain=origin.domain,
        publication=origin.publication,
        type=type_,
        language=lang,
        role=role or "",
        error_pages=errors,
        sort=HitOrder(sort),
        record=narrowing.pop("record") or "",
        **narrowing,
    )
    if isinstance(place, ServerArgument):
        if group == "snapshot" or facets or form is Form.PATHS:
            raise UsageError("a server answers with hits: leave out --group, --facets and --format paths with --server")
        _print_answer(_ask_server(place, question), None, question, form)
        return
    if find_spec("tantivy") is None:
        raise UsageError("search needs more libraries: pip install 'webarcfs[search]'")
    from webarcfs.search.searching import Searcher  # noqa: PLC0415 # of the extra `search`

    searcher = Searcher(place.archive, place.gate)
    if group == "snapshot":
        _by_snapshot(searcher.by_snapshot(question), form)
        return
    if form is Form.PATHS:
        for tag, path in searcher.places(question):
            click.echo(f"{place.mount or ''}/.snapshots/{tag}/{path[1:].partition('/')[2]}")
        return
    answer = searcher.ask(question)
    _print_answer(answer, searcher.facets(question) if facets else None, question, form)


def _ask_server(place: ServerArgument, question: SearchQuestion) -> SearchAnswer:
    values = {field.name: getattr(question, field.name) for field in fields(question)}
    return place.client.search(values.pop("words"), **values)


def _print_answer(answer: SearchAnswer, facet_counts: FacetCounts | None, question: SearchQuestion, form: Form) -> None:
    if answer.missing:
        click.echo(
            with_archive(
                f"webarc: {answer.missing} snapshots are not indexed yet; the agent does it, or `webarc-agent index`"
            ),
            err=True,
        )

    def print_all(rows: Iterable[Row]) -> None:
        output: dict[str, Any] = {
            "total": answer.total,
            "exact": answer.is_exact,
            "inPresent": answer.in_present,
            "hits": list(rows),
            "suggestion": answer.suggestion,
        }
        if facet_counts is not None:
            output["facets"] = {name: dict(values) for name, values in facet_counts.items()}
        print_object(output, indent=1)

    def lines(_: object) -> Iterator[str]:
        _table(answer, question.offset)
        if answer.suggestion:
            yield f"Did you mean: {answer.suggestion}"
        for name, values in (facet_counts or {}).items():
            yield f"{name}: " + ", ".join(f"{value} {count:,}" for value, count in values)

    columns = () if form is not Form.CSV else _columns()
    print_rows(form, map(_fields, answer.hits), lines, as_json=print_all, columns=columns)


def _fields(hit: Hit) -> dict[str, Any]:
    seconds = int(CommitTag.parse(hit.commitTag).crawl_time.timestamp())
    return asdict(hit) | {
        "address": replay_address(format_digits(seconds), hit.url),
        "snippet": hit.snippet.text,
        "marks": [list(mark) for mark in hit.snippet.marks],
    }


def _columns() -> list[str]:
    """Return the columns of CSV: the places of the words in the snippet are left out."""
    return [*Hit.__dataclass_fields__, "address"]


def _table(answer: SearchAnswer, offset: int) -> None:
    """Write each hit as title, URL and the dates with the words, and its snippet with the words in bold."""
    console = table_console()
    number = offset
    for number, hit in enumerate(answer.hits, offset + 1):
        dates = hit.wordsFrom if hit.wordsFrom == hit.wordsTo else f"{hit.wordsFrom} … {hit.wordsTo}"
        if hit.ofVersions > 1:
            dates += f", {hit.versions:,} of the {hit.ofVersions:,} versions between"
        console.print(Text.assemble((f"{number}. {hit.title or hit.url}", "bold")))
        console.print(f"   {hit.url}   {hit.mimeType}   {dates}")
        snippet = Text(hit.snippet.text)
        for begin, end in hit.snippet.marks:
            snippet.stylize("bold", begin, end)
        if hit.snippet.text:
            console.print(Text.assemble("   ", snippet))
    console.print(_counted(answer, offset, number))


def _counted(answer: SearchAnswer, offset: int, last: int) -> str:
    total, about = answer.total, "" if answer.is_exact else "about "
    if not total:
        return "nothing was found"
    text = f"{about}{total:,} found"
    if answer.in_present is not None:
        text += f": {about}{answer.in_present:,} in the present, {about}{max(total - answer.in_present, 0):,} only in "
        text += "earlier versions"
    if last == offset:
        return f"{text}; none of them is behind the first {offset:,}"
    return text + ("" if last - offset == total else f"; {offset + 1:,} to {last:,} are shown")


def _by_snapshot(groups: list[SnapshotHits], form: Form) -> None:
    if form is Form.PATHS:
        for group in groups:
            click.echo(f"/.snapshots/{group.commitTag}")
        return

    def lines(_: object) -> Iterator[str]:
        for group in groups:
            yield f"{group.total:>9,}  {group.commitTag}"
            yield from (f"           {hit.title or hit.url}  {hit.url}" for hit in group.hits)

    rows = [
        {"commitTag": group.commitTag, "total": group.total, "hits": [*map(_fields, group.hits)]} for group in groups
    ]
    print_rows(form, rows, lines, as_json=partial(print_object, indent=1), columns=("commitTag", "total"))
