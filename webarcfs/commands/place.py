"""The archive of a reader's command: a directory, or the archive behind a mount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotAnArchive, UsageError
from webarcfs.client import mounted

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Place:
    """An archive, and the mount by which it was given, if any."""

    archive: Archive
    mount: Path | None = None


def place_options(command: _F) -> _F:
    """Add the options `--archive` and `--mount`."""
    archive = click.option(
        "--archive", metavar="DIR", help="The archive; else $WEBARC_ARCHIVE, else /srv/webarc.", type=click.Path()
    )
    mount = click.option(
        "--mount", metavar="DIR", help="A mount of the archive, or a path inside one.", type=click.Path(path_type=Path)
    )
    return archive(mount(command))


def find(archive: str | None, mount: Path | None) -> Place:
    """Return the place of the options. Raises UsageError for both at once, NotAnArchive without an archive."""
    if archive is not None and mount is not None:
        raise UsageError("give --archive or --mount, not both")
    if mount is None:
        return Place(directory.open_archive(directory.default_root(archive)))
    if found := mounted.behind(mount):
        return Place(found[1], found[0])
    raise NotAnArchive(f"{mount} is in no mounted archive; `mount.webarcfs ARCHIVE {mount}` mounts one")
