"""`webarc-agent register`: the registers of formats, of MIME types, and of the programs that are found here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from agent.commands.common import archive_option, opened
from agent.operations import registers
from webarcfs.archive.catalogue import formats as register_of_formats
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.formats import Format, MediaType
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.directory import Archive
from webarcfs.commands.lazy_commands import VerbGroup
from webarcfs.commands.listing import LIST, Form, format_option, print_rows


@click.group(cls=VerbGroup)
def register() -> None:
    """Look at the registers of formats, types and programs; say what is known of a format or type.

    The common formats of the web are known from the start, with their names and identifiers in PRONOM. formats.toml and
    types.toml in the archive go over that; they are for people to edit, too. Each crawl takes over from formats.toml,
    for its extensions, which programs made and read such files at that time.
    """


@register.command()
@archive_option
@click.option("--at-risk", is_flag=True, help="Only formats that no program is known to read.")
@click.option(
    "--all", "shows_all", is_flag=True, help="Also the formats of the web that the newest crawls do not have."
)
@format_option(*LIST)
def formats(archive: str | None, at_risk: bool, shows_all: bool, form: Form) -> None:
    """List the extensions of the newest crawls, with the programs that make and read such files.

    `--json` has the name of each format, its PRONOM identifiers and its MIME type, too.
    """
    rows = (row for row in _formats(opened(archive), shows_all=shows_all) if row["at_risk"] or not at_risk)
    print_rows(form, rows, lambda rows: map(_format_line, rows))


def _formats(place: Archive, *, shows_all: bool) -> Iterator[dict[str, Any]]:
    known = register_of_formats.known(place)
    counted = registers.newest_counts(place)
    risky = set(register_of_formats.unreadable(known, counted))
    listed = counted.keys() | (known if shows_all else register_of_formats.load(place)).keys()
    for extension in sorted(listed, key=lambda extension: (-counted[extension], extension)):
        file_format = asdict(known.get(extension, Format()))
        yield {"extension": extension, "documents": counted[extension], **file_format, "at_risk": extension in risky}


def _format_line(row: dict[str, Any]) -> str:
    read_by = row["read_by"] or ("nothing known reads it" if row["at_risk"] else "")
    return f"{row['extension']}\t{row['documents']}\t{row['made_by'] or '-'}\t{read_by or '-'}"


@register.command()
@archive_option
@format_option(*LIST)
def types(archive: str | None, form: Form) -> None:
    """List the MIME types of the formats of the web, and those that types.toml describes."""
    types_by_name = sorted(register_of_formats.known_types(opened(archive)).items())
    rows = ({"type": name, **asdict(mime_type)} for name, mime_type in types_by_name)
    lines = "{0[type]}\t{0[extension]}\t{0[description]}".format
    print_rows(form, rows, lambda rows: (lines({key: value or "-" for key, value in row.items()}) for row in rows))


@register.command(name="set")
@click.argument("name", metavar="EXTENSION|TYPE")
@archive_option
@click.option("--made-by", metavar="TEXT", help="Of an extension: the programs that make such files.")
@click.option("--read-by", metavar="TEXT", help="Of an extension: the programs that read them today.")
@click.option("--description", metavar="TEXT", help="Of a type: what it is.")
@click.option("--extension", metavar="TEXT", help="Of a type: the extension of its files.")
@click.option("--name", "format_name", metavar="TEXT", help="Of an extension: what the format is called.")
@click.option("--puid", metavar="TEXT", help="Of an extension: its identifiers in PRONOM, as 'fmt/14, fmt/15'.")
@click.option("--mime-type", metavar="TEXT", help="Of an extension: the MIME type of its files.")
def set_(archive: str | None, name: str, format_name: str | None, **options: str | None) -> None:
    """Say what is known of an extension, or of a MIME type (which has a slash); an empty text takes it away.

    \b
    Examples:
      webarc-agent register set pdf --made-by 'Adobe Acrobat 6' --read-by 'Evince 43'
      webarc-agent register set application/pdf --description 'printed documents' --extension pdf
    """
    place = opened(archive)
    people.acting(place, Right.PUBLICATIONS)
    kind = MediaType if "/" in name else Format
    options |= {"name": format_name}
    changes = {key: value for key, value in options.items() if value is not None}
    wrong = changes.keys() - kind.__dataclass_fields__.keys()
    if wrong or not changes:
        raise click.UsageError(f"of {name} can be set: {', '.join(kind.__dataclass_fields__)}")
    if kind is MediaType:
        register_of_formats.keep_type(place, name, changes)
    else:
        register_of_formats.keep(place, name, changes)


@register.command()
@format_option(*LIST)
def programs(form: Form) -> None:
    """List the programs and libraries that work here, with their versions: found, never typed."""
    line = "{0[name]}\t{0[version]}\t{0[maker]}\t{0[path]}".format
    print_rows(form, map(asdict, registers.programs()), lambda rows: map(line, rows))
