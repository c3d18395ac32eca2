"""`webarc-agent collection`: named groups of publications and crawls, shown and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from agent.commands.common import archive_option, opened, values_of
from agent.operations import collecting
from agent.operations.collecting import CollectionChange
from webarcfs.archive.config import collection_files
from webarcfs.archive.config.collection_files import Collection
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UsageError
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import LIST, OBJECT, Form, format_option, print_object, print_rows


@click.group()
def collection() -> None:
    """Show, add, change and remove collections: named groups of publications and crawls, for readers.

    A collection has a title, a text and a picture. It lies in a file of its own, collections.d/NAME.toml, which people
    may edit, too; the reading room shows it as it is with the next request. It opens nothing: readers see of it what
    they may see anyway, and one of which they see nothing is not there for them.
    """


def _changes(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what a collection is."""
    for option in reversed(
        (
            click.option("--title", metavar="TEXT", help="Its title."),
            click.option("--text", metavar="TEXT", help="Its text; an empty line ends a paragraph."),
            click.option("--picture", type=AbsolutePath(exists=True, dir_okay=False), metavar="FILE",
                         help="Its picture, which is copied: PNG, JPEG, WebP or SVG, 2 MB at most."),
            click.option("--publication", "publications", multiple=True, metavar="NAME",
                         help="All crawls of a publication belong to it. May be given again."),
            click.option("--crawl", "crawls", multiple=True, metavar="RECORD",
                         help="A crawl belongs to it: its record, by name or number. May be given again."),
            click.option("--set", "sets", multiple=True, metavar="KEY=VALUE",
                         help="Another key, its value as in TOML: picture_text, de.title, de.text."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@collection.command(name="list")
@archive_option
@format_option(*LIST)
def list_(archive: str | None, form: Form) -> None:
    """List collections.

    \b
    Example:
      webarc-agent collection list --format json
    """
    place = opened(archive)
    collections = collection_files.load_collections(place)
    print_rows(form, [_row(one) for one in collections.by_name.values()], _lines, as_json=print_object)
    for fault in collections.faults:
        click.echo(fault, err=True)


def _row(one: Collection) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "publications": list(one.publications),
        "crawls": list(one.crawls),
        "picture": one.picture,
    }


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        counts = f"{_number(row['publications'], 'publication')}, {_number(row['crawls'], 'crawl')}"
        yield f"{row['name']}: {row['title']} ({counts})"
    if not rows:
        yield "there is no collection; `webarc-agent collection add NAME --title TEXT` adds one"


def _number(names: list[str], what: str) -> str:
    return f"{len(names)} {what}{'s' * (len(names) != 1)}"


@collection.command()
@click.argument("name")
@archive_option
@format_option(*OBJECT)
def show(name: str, archive: str | None, form: Form) -> None:
    """Show a collection, and what it names that the catalogue does not have."""
    place = opened(archive)
    one = collection_files.find_collection(place, name)
    unknown = collecting.unknown_members(place, one)
    if form is Form.JSON:
        words = {
            code: {"title": said.title, "text": said.text, "picture_text": said.picture_text}
            for code, said in one.words.items()
        }
        print_object({**_row(one), "text": one.text, "picture_text": one.picture_text, **words, "unknown": unknown})
        return
    click.echo(f"{one.title} ({collection_files.file_of(place, name)})")
    if one.text:
        click.echo(f"\n{one.text.strip()}\n")
    for what, names in (("publication", one.publications), ("crawl", one.crawls)):
        for member in names:
            click.echo(f"{what} {member}" + (" (the catalogue has none of it)" if member in unknown else ""))


@collection.command()
@click.argument("name")
@archive_option
@_changes
def add(name: str, archive: str | None, **options: Any) -> None:
    """Add a collection.

    \b
    Examples:
      webarc-agent collection add elections --title 'Federal elections' --publication bundestag --picture box.jpg
      webarc-agent collection add floods --title Floods --crawl 12 --crawl 15 --set de.title=Hochwasser
    """
    place = opened(archive)
    if not options["title"]:
        raise UsageError("give its title: --title TEXT")
    click.echo(f"{name} is in {collecting.add(place, name, _change_of(options))}")
    _warn(place, name)


@collection.command()
@click.argument("name")
@archive_option
@_changes
@click.option(
    "--without-publication", "without_publications", multiple=True, metavar="NAME", help="It belongs to it no more."
)
@click.option("--without-crawl", "without_crawls", multiple=True, metavar="RECORD", help="It belongs to it no more.")
@click.option("--unset", "removed", multiple=True, metavar="KEY", help="A key to remove, such as picture or de.text.")
def change(name: str, archive: str | None, **options: Any) -> None:
    """Change a collection; comments in its file stay.

    \b
    Examples:
      webarc-agent collection change elections --crawl 20250224T030000-spd --without-publication bundestag
      webarc-agent collection change elections --unset picture
    """
    place = opened(archive)
    changed = _change_of(options)
    if changed.is_empty:
        raise UsageError("say what to change, such as --title TEXT; the file may be edited, too: "
                         f"{collection_files.file_of(place, name)}")  # fmt: skip
    click.echo(f"{collecting.change_collection(place, name, changed)} is changed")
    _warn(place, name)


@collection.command()
@click.argument("name")
@archive_option
def remove(name: str, archive: str | None) -> None:
    """Remove a collection and its picture. Its publications and crawls stay."""
    for path in collecting.remove(opened(archive), name):
        click.echo(f"{path} is removed")


def _change_of(options: dict[str, Any]) -> CollectionChange:
    """Return what the options say. Raises UsageError."""
    values = {key: options[key] for key in ("title", "text") if options[key] is not None} | values_of(options["sets"])
    return CollectionChange(
        values=values,
        removed=options.get("removed", ()),
        publications=options["publications"],
        crawls=options["crawls"],
        without_publications=options.get("without_publications", ()),
        without_crawls=options.get("without_crawls", ()),
        picture=options["picture"],
    )


def _warn(place: Archive, name: str) -> None:
    """Say what the catalogue does not have, so that a slip of the pen is noticed."""
    for member in collecting.unknown_members(place, collection_files.find_collection(place, name)):
        click.echo(f"note: the catalogue has no crawl of {member} yet", err=True)
