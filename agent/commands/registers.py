"""`webarc-agent register`: the registers of formats, of MIME types, and of the programs that are found here."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from agent.commands.common import archive_option, opened
from agent.operations import registers
from webarcfs.archive.catalogue import formats as register_of_formats
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.formats import Format, MediaType
from webarcfs.archive.catalogue.workflow import Right


@click.group()
def register() -> None:
    """Look at the registers of formats, types and programs; say what is known of a format or type.

    formats.toml and types.toml in the archive are for people to edit, too. Each crawl takes over, for its extensions,
    which programs made and read such files at that time.
    """


@register.command()
@archive_option
@click.option("--at-risk", is_flag=True, help="Only formats that no program is known to read.")
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def formats(archive: str | None, at_risk: bool, as_json: bool) -> None:
    """List the extensions of the newest crawls, with the programs that make and read such files."""
    place = opened(archive)
    known = register_of_formats.load(place)
    counted = registers.newest_counts(place)
    risky = set(register_of_formats.unreadable({**known, "": Format()}, counted))
    for extension in sorted(counted.keys() | known.keys(), key=lambda extension: (-counted[extension], extension)):
        if at_risk and extension not in risky:
            continue
        file_format = known.get(extension, Format())
        if as_json:
            row = {
                "extension": extension,
                "documents": counted[extension],
                **asdict(file_format),
                "at_risk": extension in risky,
            }
            click.echo(json.dumps(row, ensure_ascii=False))
        else:
            read_by = file_format.read_by or ("nothing known reads it" if extension in risky else "")
            click.echo(f"{extension}\t{counted[extension]}\t{file_format.made_by or '-'}\t{read_by or '-'}")


@register.command()
@archive_option
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def types(archive: str | None, as_json: bool) -> None:
    """List the MIME types that types.toml describes."""
    for name, mime_type in sorted(register_of_formats.types(opened(archive)).items()):
        if as_json:
            click.echo(json.dumps({"type": name, **asdict(mime_type)}, ensure_ascii=False))
        else:
            click.echo(f"{name}\t{mime_type.extension or '-'}\t{mime_type.description or '-'}")


@register.command(name="set")
@click.argument("name", metavar="EXTENSION|TYPE")
@archive_option
@click.option("--made-by", metavar="TEXT", help="Of an extension: the programs that make such files.")
@click.option("--read-by", metavar="TEXT", help="Of an extension: the programs that read them today.")
@click.option("--description", metavar="TEXT", help="Of a type: what it is.")
@click.option("--extension", metavar="TEXT", help="Of a type: the extension of its files.")
def set_(archive: str | None, name: str, **options: str | None) -> None:
    """Say what is known of an extension, or of a MIME type (which has a slash); an empty text takes it away.

    \b
    Examples:
      webarc-agent register set pdf --made-by 'Adobe Acrobat 6' --read-by 'Evince 43'
      webarc-agent register set application/pdf --description 'printed documents' --extension pdf
    """
    place = opened(archive)
    people.acting(place, Right.PUBLICATIONS)
    kind = MediaType if "/" in name else Format
    changes = {key: value for key, value in options.items() if value is not None}
    wrong = changes.keys() - kind.__dataclass_fields__.keys()
    if wrong or not changes:
        raise click.UsageError(f"of {name} can be set: {', '.join(kind.__dataclass_fields__)}")
    if kind is MediaType:
        register_of_formats.keep_type(place, name, changes)
    else:
        register_of_formats.keep(place, name, changes)


@register.command()
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def programs(as_json: bool) -> None:
    """List the programs and libraries that work here, with their versions: found, never typed."""
    for program in registers.programs():
        if as_json:
            click.echo(json.dumps(asdict(program), ensure_ascii=False))
        else:
            click.echo(f"{program.name}\t{program.version}\t{program.maker}\t{program.path}")
