"""The register of file formats, and that of MIME types. People write them: formats.toml and types.toml.

For each extension the programs that make such files, and those that read them today (fields 26 and 27), its name, and
its PRONOM identifiers; for each type what it is, and its usual extension.

    [format.pdf]
    made_by = "Adobe Acrobat 6"
    read_by = "Evince 43"

    [type."application/pdf"]
    description = "documents as they are printed"
    extension = "pdf"

`web_formats.toml` of this package has the common formats of the web, with its source and date: `known` and
`known_types` begin with it, and what the archive's own files say goes over it. Records take over the archive's own
words alone: they say what its people know, at the time of a crawl.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import SettingsError

_MODE = 0o644
_WEB_FORMATS = Path(__file__).with_name("web_formats.toml")


@dataclass(frozen=True, slots=True)
class Format:
    """The programs that made files of an extension, and that read them today; empty: not known.

    `puid` has the PRONOM identifiers of its versions, with commas between them.
    """

    made_by: str = ""
    read_by: str = ""
    name: str = ""
    puid: str = ""
    mime_type: str = ""


@dataclass(frozen=True, slots=True)
class MediaType:
    """What a MIME type is, and the extension that its files have."""

    description: str = ""
    extension: str = ""


def load(archive: Archive) -> dict[str, Format]:
    """Return the archive's own formats by extension; none without the file. Raises SettingsError with all faults."""
    return {name: Format(**row) for name, row in _own_formats(archive).items()}


def known(archive: Archive) -> dict[str, Format]:
    """Return the formats of the web and the archive's own, by extension. Raises SettingsError with all faults."""
    own = _own_formats(archive)
    web = web_formats()
    return web | {name: Format(**(asdict(web.get(name, Format())) | row)) for name, row in own.items()}


@cache
def web_formats() -> dict[str, Format]:
    """Return the common formats of the web, by extension."""
    return {name: Format(**row) for name, row in _rows(_WEB_FORMATS, "format", _FORMAT_KEYS).items()}


def types(archive: Archive) -> dict[str, MediaType]:
    """Return the archive's own types by name; none without the file. Raises SettingsError with all faults."""
    rows = _rows(archive.types, "type", ("description", "extension"))
    return {name: MediaType(**row) for name, row in rows.items()}


def known_types(archive: Archive) -> dict[str, MediaType]:
    """Return the types of the formats of the web, and the archive's own, by name. Raises SettingsError."""
    web: dict[str, MediaType] = {}
    for extension, web_format in web_formats().items():
        if web_format.mime_type:
            web.setdefault(web_format.mime_type, MediaType(web_format.name, extension))
    return web | types(archive)


def keep(archive: Archive, extension: str, changes: Mapping[str, str]) -> None:
    """Set what is known of an extension; an empty text takes it away. Raises SettingsError."""
    load(archive)
    _change(archive, archive.formats, ("format", extension), changes)


def keep_type(archive: Archive, mime_type: str, changes: Mapping[str, str]) -> None:
    """Set what is known of a type; an empty text takes it away. Raises SettingsError."""
    types(archive)
    _change(archive, archive.types, ("type", mime_type), changes)


def describe_programs(formats: Mapping[str, Format], extensions: Iterable[str], *, by: bool) -> str:
    """Return the programs for some extensions as a field has them: those that read them (`by`), or made them."""
    words = (
        (extension, formats[extension].read_by if by else formats[extension].made_by)
        for extension in sorted(extensions)
        if extension in formats
    )
    return "; ".join(f"{extension}: {word}" for extension, word in words if word)


def unreadable(formats: Mapping[str, Format], extensions: Iterable[str]) -> list[str]:
    """Return the extensions that no known program reads: formats at risk."""
    return [extension for extension in sorted(extensions) if not formats.get(extension.casefold(), Format()).read_by]


_FORMAT_KEYS = tuple(field.name for field in fields(Format))


def _own_formats(archive: Archive) -> dict[str, dict[str, str]]:
    return _rows(archive.formats, "format", _FORMAT_KEYS)


def _rows(path: Path, table: str, keys: tuple[str, ...]) -> dict[str, dict[str, str]]:
    try:
        tables = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise SettingsError(str(path), [f"not UTF-8 at byte {error.start}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), [f"not TOML: {error}"]) from None
    faults = [f"{key}: there is no such table; write [{table}.NAME]" for key in tables if key != table]
    rows: Any = tables.get(table, {})
    if not isinstance(rows, dict):
        faults, rows = [*faults, f"{table}: write [{table}.NAME]"], {}
    for name, row in rows.items():
        if not isinstance(row, dict):
            faults.append(f"{table}.{name}: is not a table")
            continue
        faults += [f"{table}.{name}.{key}: there is no such key" for key in row if key not in keys]
        faults += [f"{table}.{name}.{key}: is not a text" for key, value in row.items() if not isinstance(value, str)]
    if faults:
        raise SettingsError(str(path), faults)
    return {str(name): row for name, row in rows.items()}


def _change(archive: Archive, path: Path, place: tuple[str, str], changes: Mapping[str, str]) -> None:
    table, name = place
    with settings_files.changing(path, archive.settings_lock, _MODE) as document:
        rows = document.setdefault(table, {})
        row = rows.setdefault(name, {})
        for key, value in changes.items():
            if value:
                row[key] = value
            else:
                row.pop(key, None)
        if not row:
            del rows[name]
