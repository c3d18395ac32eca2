"""`webarc links`: the links of pages, and the words that name them (seeds 2 and 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from functools import partial

import click

from webarcfs.archive.index.links import AskedKind, FoundLink, Question, ask, figures, figures_of
from webarcfs.archive.index.query import SECONDS, DocumentOrigin
from webarcfs.archive.model.errors import UrlRefused, UsageError
from webarcfs.archive.model.metadata import ROLES, CommitTag
from webarcfs.archive.model.urls import canonical
from webarcfs.commands import arguments
from webarcfs.commands.arguments import ArchiveArgument, origin_options
from webarcfs.commands.completing import complete_tags
from webarcfs.commands.listing import LIST, Form, format_option, print_array, print_object, print_rows, print_table
from webarcfs.commands.server_archive import ServerArgument, arcs_of_text, place_or_server_options
from webarcfs.commands.snapshot_names import Beside

#: Columns of a table; the other formats have all.
_SHOWN = ("page", "kind", "target", "text", "times")


@click.command()
@click.option("--from", "source", metavar="URL|PATH", help="The links of this page.")
@click.option("--to", "target", metavar="URL|MAIL", help="The links to this URL, or mail address.")
@click.option(
    "--word", metavar="W", help="The links that this word names, or all of several; case and accents are one."
)
@click.option(
    "--broken", is_flag=True, help="Only those to documents that their domain, though archived, does not have."
)
@click.option("--external", is_flag=True, help="Only those that leave the domain of their page.")
@click.option("--kind", type=click.Choice([kind.name.lower() for kind in AskedKind]), help="Only those of this kind.")
@click.option(
    "--role", type=click.Choice(ROLES), help="Of pages (default), of what only pages of other hosts needed, or of both."
)
@origin_options
@click.option(
    "--at",
    metavar="TAG",
    shell_complete=complete_tags,
    help="As it was in this snapshot; else the newest of every domain.",
)
@click.option("--ever", is_flag=True, help="Of every version of every page.")
@click.option("--count", metavar="TAG", shell_complete=complete_tags, help="Count the links of a snapshot instead.")
@place_or_server_options
@click.option("--limit", type=click.IntRange(min=0), help="At most so many.")
@format_option(*LIST)
@click.option("--seconds", type=click.FloatRange(min=0.01), default=SECONDS, show_default=True, help="Give up after.")
def links(
    *,
    source: str | None,
    target: str | None,
    word: str | None,
    broken: bool,
    external: bool,
    kind: str | None,
    role: str | None,
    origin: DocumentOrigin,
    at: str | None,
    ever: bool,
    count: str | None,
    place: ArchiveArgument | ServerArgument,
    limit: int | None,
    form: Form,
    seconds: float,
) -> None:
    """Show what pages link to, and by which words.

    From a page, to a URL, by a word; those that are broken, or leave their domain. --domain and --publication are those
    of the pages with the links. Kinds are http (what is followed or
    shown in a frame), mail and image. JSON and CSV also have `arc`, the path at which the archive has the target. The
    archive keeps links, unless webarc.toml says `[index] links = false`.

    \b
    Examples:
      webarc links --from http://www.example.org/
      webarc links --to http://www.example.org/old.html --ever --format csv
      webarc links --to someone@example.org
      webarc links --word 'annual report' --limit 20
      webarc links --broken --kind image
      webarc links --external --domain www.example.org --publication example
      webarc links --external --at 2026-11-21T03:00:00@www.example.org --format json
      webarc links --from http://www.example.org/ --at 2025-11
      webarc links --count latest@www.example.org
      webarc links --to http://www.example.org/ --server https://archive.example.org/
    """
    narrowed = any((broken, external))
    if sum(option is not None for option in (source, target, word, count)) > 1:
        raise UsageError("--from, --to, --word and --count are different questions; give one")
    if count is not None:
        if narrowed or kind or role or at or ever or not origin.is_any or limit is not None:
            raise UsageError("--count counts a snapshot's links as they are; nothing narrows it")
        _count(place, count, form, seconds)
        return
    if not narrowed and origin.is_any and source is None and target is None and word is None:
        raise UsageError(
            "say which links: --from, --to, --word, --broken, --external, --domain, --publication or --count"
        )
    if at is not None and ever:
        raise UsageError("--at is one snapshot and --ever is all; give one")
    question = Question(
        path=_path(place, source) if source is not None else "",
        targets=(_target(target),) if target is not None else (),
        word=word or "",
        at=_named(place, at, source) if at is not None else None,
        ever=ever,
        kind=AskedKind[kind.upper()] if kind else None,
        external=external,
        broken=broken,
        role=role or "",
        limit=limit,
        origin=origin,
    )
    matching_links: Iterable[FoundLink] = ()
    if word != "" and isinstance(place, ServerArgument):
        matching_links = place.client.links(question, seconds)
    elif word != "" and isinstance(place, ArchiveArgument):
        arcs = form is not Form.TABLE
        matching_links = ask(place.archive, question, seconds, place.links(question), arcs=arcs)
    columns = [field.name for field in fields(FoundLink)]
    print_rows(form, map(asdict, matching_links), partial(print_table, _SHOWN), as_json=print_array, columns=columns)


def _path(place: ArchiveArgument | ServerArgument, text: str) -> str:
    if isinstance(place, ServerArgument):
        return place.path(text)
    document = arguments.document(place, text)
    return f"/{document.domain}/{document.arc}"


def _target(text: str) -> str:
    """Return the target's form in links.db: `mailto:` and the address, domain in lower case, or the canonical URL."""
    address = text[7:] if text[:7].lower() == "mailto:" else text
    if "://" not in text and "@" in address:
        local, _, domain = address.rpartition("@")
        return f"mailto:{local}@{domain.lower()}"
    try:
        return canonical(text.partition("#")[0])
    except UrlRefused as error:
        raise UsageError(f"{error}; give a URL with http:// or https://, or a mail address") from None


def _named(place: ArchiveArgument | ServerArgument, text: str, source: str | None = None) -> CommitTag:
    """Return the snapshot of a name; the page whose links are asked for says of which host it is."""
    if isinstance(place, ServerArgument):
        return place.named(text, Beside(arcs_of_text(source)[0]) if source else Beside())
    return arguments.named(place, text, Beside(arguments.host_of(place, source)) if source else Beside())


def _count(place: ArchiveArgument | ServerArgument, text: str, form: Form, seconds: float) -> None:
    """Write the fields 39 to 42 of a record, in their order."""
    tag = _named(place, text)
    question = Question(at=tag)
    if isinstance(place, ServerArgument):
        counts = figures_of(place.client.links(question, seconds))
    elif (reader := place.links(question)) is None:
        counts = figures(place.archive, tag, seconds)
    else:
        counts = figures_of(ask(place.archive, question, seconds, reader))
    row = asdict(counts)
    lines = (f"{_LABELS[name]:32}{value:>12,}" for name, value in row.items())
    print_rows(form, [row], lambda _: lines, as_json=lambda _: print_object(row, indent=1))


_LABELS = {
    "total": "links",
    "external": "  external",
    "external_targets": "  external, different targets",
    "internal": "  internal",
    "mails": "mail addresses",
    "images": "images",
}
