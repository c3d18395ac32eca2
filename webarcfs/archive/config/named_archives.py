"""The names of archives: two lists, of one's own and of the machine, in which a name leads to a folder.

`~/.config/webarc/archives.toml` and `/etc/webarc/archives.toml` have a line for each: `town = "/srv/webarc-town"`. A
name of one's own list comes before the same one of the machine's.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config import validators
from webarcfs.archive.model.errors import SettingsError

#: The list of the machine.
SYSTEM_LIST = Path("/etc/webarc/archives.toml")
_OWN = "webarc/archives.toml"


@dataclass(frozen=True, slots=True)
class NamedArchive:
    """A name, its folder, and the list that has it."""

    name: str
    root: Path
    list: Path


def config_folder() -> Path | None:
    """Return the folder of one's own settings, of all programs; None where there is no home folder."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if config.startswith("/"):
        return Path(config)
    home = os.path.expanduser("~")  # noqa: PTH111 # Path.home() raises without one
    return Path(home) / ".config" if home.startswith("/") else None


def own_list() -> Path | None:
    """Return the path of one's own list, which need not exist; None where there is no home folder."""
    folder = config_folder()
    return None if folder is None else folder / _OWN


def lists() -> tuple[Path, ...]:
    """Return the lists in which a name is looked up, in this order."""
    own = own_list()
    return (SYSTEM_LIST,) if own is None else (own, SYSTEM_LIST)


def named_archives() -> list[NamedArchive]:
    """Return the named archives by name. Raises SettingsError for a list with faults, OSError for a locked one."""
    archives: dict[str, NamedArchive] = {}
    for path in reversed(lists()):
        for archive in read_list(path):
            archives[archive.name] = archive
    return [archives[name] for name in sorted(archives)]


def find_archive(name: str) -> NamedArchive | None:
    """Return the archive of a name. It raises what `named_archives` raises."""
    return next((archive for archive in named_archives() if archive.name == name), None)


def read_list(path: Path) -> Iterator[NamedArchive]:
    """Yield the archives of a list, none if it does not exist. Raises SettingsError, OSError."""
    try:
        text = path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return
    except UnicodeDecodeError as error:
        raise SettingsError(str(path), [f"not UTF-8 at byte {error.start}"]) from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), [f"not TOML: {error}"]) from None
    if faults := [fault for name, folder in table.items() if (fault := _fault(name, folder))]:
        raise SettingsError(str(path), faults)
    for name, folder in table.items():
        yield NamedArchive(name, Path(os.path.expanduser(folder)), path)  # noqa: PTH111 # as above


def _fault(name: str, folder: object) -> str:
    try:
        validators.name(name)
    except ValueError:
        return f"{name!r} is no name of an archive: up to 100 letters, digits and . _ -"
    if not isinstance(folder, str) or not folder.startswith(("/", "~/")) or "\0" in folder:
        return f"{name}: {folder!r} is no absolute path of a folder"
    return ""
