"""`webarc-agent archives`: the names of archives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from webarcfs.archive.config import directory, named_archives, settings_files, validators
from webarcfs.archive.config.named_archives import NamedArchive
from webarcfs.archive.model.errors import NotAnArchive, NotFound, UsageError
from webarcfs.commands.lazy_commands import AbsolutePath, VerbGroup
from webarcfs.commands.listing import LIST, Form, format_option, print_object, print_rows


@click.group(cls=VerbGroup, invoke_without_command=True)
@click.pass_context
def archives(context: click.Context) -> None:
    """Name archives, and list the names: `--archive NAME` then stands for the folder, in every command.

    Names are in ~/.config/webarc/archives.toml for oneself, and in /etc/webarc/archives.toml for the machine, a line
    each: `town = "/srv/webarc-town"`. One's own come first. WEBARC_ARCHIVE may be a name as well, and so may the
    archive of mount.webarcfs. A word with a slash in it, or that is a file here, is a path and not looked up.

    \b
    Examples:
      webarc-agent archives
      webarc-agent archives add town /srv/webarc-town
      webarc-agent status --archive town
      webarc-agent archives remove town
    """
    if context.invoked_subcommand is None:
        context.invoke(show, form=Form.TABLE)


@archives.command("list")
@format_option(*LIST)
def show(form: Form) -> None:
    """List the names, their folders, and whether there is an archive."""
    print_rows(form, map(_row, named_archives.named_archives()), _lines, as_json=lambda rows: print_object(list(rows)),
               columns=("name", "archive", "state", "list"))  # fmt: skip


def _row(named: NamedArchive) -> dict[str, Any]:
    return {"name": named.name, "archive": str(named.root), "state": _state(named.root), "list": str(named.list)}


def _state(root: Path) -> str:
    try:
        directory.layout_of(root)
    except NotAnArchive:
        return "no archive"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "archive"


def _lines(rows: Any) -> Iterator[str]:
    is_empty = True
    for row in rows:
        is_empty = False
        state = "" if row["state"] == "archive" else f" ({row['state']})"
        yield f"{row['name']}: {row['archive']}{state}"
    if is_empty:
        looked_up = " and ".join(map(str, named_archives.lists()))
        yield f"no archive has a name: {looked_up} have none; `webarc-agent archives add NAME DIR` adds one"


@archives.command("add")
@click.argument("name")
@click.argument("folder", metavar="DIR", type=AbsolutePath(exists=True, file_okay=False))
def add(name: str, folder: Path) -> None:
    """Name the archive in DIR: for the machine if root does it, else for oneself."""
    try:
        validators.name(name)
    except ValueError:
        raise UsageError(f"{name!r} is no name of an archive: up to 100 letters, digits and . _ -") from None
    root = directory.open_archive(folder).root
    path = _list_to_change()
    path.parent.mkdir(parents=True, exist_ok=True)
    with settings_files.changing(path, _lock(path)) as document:
        before = {archive.name: archive.root for archive in named_archives.read_list(path)}
        if before.get(name, root) != root:
            first = f"`webarc-agent archives remove {name}` first"
            raise UsageError(f"{name} is the name of {before[name]} in {path}; {first}")
        document[name] = str(root)
    click.echo(f"{name} is {root}, by {path}")


@archives.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Forget a name. The archive stays as it is."""
    path = _list_to_change()
    if name not in {archive.name for archive in named_archives.read_list(path)}:
        raise NotFound(f"{path} has no name {name!r}")
    with settings_files.changing(path, _lock(path)) as document:
        document.pop(name, None)
    click.echo(f"{name} is no name in {path} any more; the archive stays as it is")


def _list_to_change() -> Path:
    if os.geteuid() == 0:
        return named_archives.SYSTEM_LIST
    own = named_archives.own_list()
    if own is None:
        raise UsageError("there is no home folder for a list of one's own; root may name archives for the machine")
    return own


def _lock(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")
