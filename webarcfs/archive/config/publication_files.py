"""The publications of an archive: what is in force and where it is said; files of publications.d, changed by programs.

A file keeps its comments and its order. What is in webarc.toml is changed by hand.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webarcfs.archive.config import settings_file, toml_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.interval import Interval
from webarcfs.archive.config.settings import CrawlSettings, DescribeSettings, Publication, ReleaseSettings, Settings
from webarcfs.archive.config.settings_file import PUBLICATIONS
from webarcfs.archive.model.errors import NotFound, SettingsError, UsageError
from webarcfs.archive.system import locks
from webarcfs.archive.system.fsync import sync_folder

_BUILT_IN = "default"


@dataclass(frozen=True, slots=True)
class InForce:
    """A setting of a publication as it holds now, and where it is said: a file, a table of webarc.toml, the default."""

    key: str
    value: Any
    source: str

    @property
    def is_default(self) -> bool:
        """Whether nobody said it."""
        return self.source == _BUILT_IN


def file_of(archive: Archive, name: str) -> Path:
    """Return the file of its own that a publication has or may get."""
    return archive.settings.with_name(PUBLICATIONS) / f"{name}.toml"


def place_of(archive: Archive, name: str) -> str:
    """Return where a publication is said: `webarc.toml`, or its file in publications.d. Raises NotFound."""
    if file_of(archive, name).exists():
        return f"{PUBLICATIONS}/{name}.toml"
    if any(each.get("name") == name for each in _tables(archive.settings).get("publication", ())):
        return archive.settings.name
    raise missing(archive, name)


def missing(archive: Archive, name: str) -> NotFound:
    """Return the error of a publication that there is not; it names those that there are."""
    settings, _ = settings_file.load(archive.settings)
    known = ", ".join(each.name for each in settings.publications) or "none"
    return NotFound(f"there is no publication {name}; there are: {known}")


def in_force(archive: Archive, name: str) -> list[InForce]:
    """Return all settings of a publication, with where each comes from. Raises NotFound, SettingsError."""
    place = place_of(archive, name)
    settings, _ = settings_file.load(archive.settings)
    found = next((each for each in settings.publications if each.name == name), None)
    if found is None:
        raise missing(archive, name)
    top = _tables(archive.settings)
    tables = _tables(file_of(archive, name)) if place != archive.settings.name else top
    own = next(each for each in tables["publication"] if each.get("name") == name)

    def source(key: str, above: Mapping[str, Any], table: str, said: Mapping[str, Any] = own) -> str:
        return place if key in said else f"{archive.settings.name}, {table}" if key in above else _BUILT_IN

    released = {each.name for each in dataclasses.fields(ReleaseSettings)}
    lines = [
        InForce(key, value, source(key, top if key in released else {}, "above all tables"))
        for key, value in _values(found)
    ]
    lines += [InForce(key, value, source(key, top.get("crawl", {}), "[crawl]")) for key, value in _values(found.crawl)]
    said = own.get("describe", {})
    return lines + [
        InForce(f"describe.{key}", value, source(key, top.get("describe", {}), "[describe]", said))
        for key, value in _values(found.describe)
    ]


def plain(value: Any) -> Any:
    """Return a value of a setting as TOML and JSON have it."""
    if isinstance(value, Interval):
        return str(value)
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if dataclasses.is_dataclass(value):
        table = {each.metadata.get("key", each.name): getattr(value, each.name) for each in dataclasses.fields(value)}
        return {key: plain(each) for key, each in table.items() if each not in (None, "", ())}
    return value


def new_text(archive: Archive, name: str, values: Mapping[str, Any]) -> str:
    """Return the text of a new publication; `describe.…` are keys of its table.

    Raises UsageError if there is one, SettingsError for faults.
    """
    settings, _ = settings_file.load(archive.settings)
    if file_of(archive, name).exists() or any(each.name == name for each in settings.publications):
        raise UsageError(f"there is a publication {name} already; `webarc-agent publication edit {name}` changes it")
    table: dict[str, Any] = {"name": name}
    for key, value in sorted(values.items(), key=lambda each: "." in each[0]):  # tables come last
        inner, name_ = _inner(table, key)
        inner[name_] = value
    text = toml_file.text_of({"publication": [table]})
    with_text(archive, name, text)
    return text


def edited_text(archive: Archive, name: str, values: Mapping[str, Any], removed: Iterable[str] = ()) -> str:
    """Return the text of a publication's file with keys set and others removed; all else stays as it is.

    Raises UsageError if it has no file of its own, SettingsError for faults.
    """
    path = own_file(archive, name)
    document = toml_file.parsed(path.read_text("utf-8-sig"), str(path))
    table: Any = document["publication"][0]
    for key in removed:
        inner, name_ = _inner(table, key)
        if name_ not in inner:
            raise UsageError(f"{PUBLICATIONS}/{path.name} does not say {key}")
        del inner[name_]
    new = {key: value for key, value in values.items() if key not in table and "." not in key}
    for key, value in values.items():
        if key not in new:
            inner, name_ = _inner(table, key)
            inner[name_] = value
    text = _with_keys(document.as_string(), new)
    with_text(archive, name, text)
    return text


def _with_keys(text: str, new: Mapping[str, Any]) -> str:
    """Return the text with keys added to its publication, behind its last key: comments stay above what they are about.

    Tables come behind all that there is.
    """
    document = toml_file.parsed(text, PUBLICATIONS)
    table: Any = document["publication"][0]
    for key, value in new.items():
        table[key] = value
    plain_ = {key: value for key, value in new.items() if not _is_table(value)}
    lines = text.splitlines(keepends=True)
    begin = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[[publication]]")), None)
    if not plain_ or len(plain_) < len(new) or begin is None:
        return document.as_string()
    ends = (at for at in range(begin + 1, len(lines)) if lines[at].lstrip().startswith("["))
    end = next(ends, len(lines))
    while end > begin + 1 and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    before = "".join(lines[:end])
    before += "" if before.endswith("\n") else "\n"
    made = before + toml_file.text_of(plain_) + "".join(lines[end:])
    # A line that begins as a table, or a comment, may be part of a long value; then the library finds the place.
    is_same = _parsed(made) == tomllib.loads(document.as_string())
    return made if is_same else document.as_string()


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value))


def _inner(table: Any, key: str) -> tuple[Any, str]:
    """Return the table that a key is in, and its name there: `describe.project` is in the table `describe`."""
    head, dot, tail = key.partition(".")
    if not dot:
        return table, key
    if head not in table:
        table[head] = {}
    return table[head], tail


def with_text(archive: Archive, name: str, text: str) -> tuple[Settings, Publication]:
    """Return the settings as they would be with this text for a publication, and the publication.

    Raises SettingsError for faults that it would bring; those that others have are none of it.
    """
    try:
        settings, _ = settings_file.load(archive.settings, {name: text})
    except SettingsError as error:
        known = _faults(archive)
        faults = [each for each in error.faults if each not in known]
        raise SettingsError(error.source, faults or error.faults) from None
    found = next((each for each in settings.publications if each.name == name), None)
    if found is None:
        raise UsageError(f"the publication has another name than {name}")
    return settings, found


def write(archive: Archive, name: str, make: Callable[[], str]) -> Path:
    """Write the file of a publication with the text that `make` returns, under the lock of the settings; durable."""
    path = file_of(archive, name)
    with locks.exclusive(archive.settings_lock):
        text = make()
        if not path.parent.is_dir():
            path.parent.mkdir()
            sync_folder(path.parent.parent)
        toml_file.write(path, text.encode())
    return path


def own_file(archive: Archive, name: str) -> Path:
    """Return the file of its own that a publication has. Raises UsageError if it is in webarc.toml."""
    place = place_of(archive, name)
    if place == archive.settings.name:
        raise UsageError(
            f"{name} is kept in {archive.settings}, which people change by hand;"
            f" moved to {PUBLICATIONS}/{name}.toml as it is, commands can change it"
        )
    return file_of(archive, name)


def _faults(archive: Archive) -> tuple[str, ...]:
    try:
        settings_file.load(archive.settings)
    except SettingsError as error:
        return error.faults
    return ()


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}


def _values(settings: Publication | CrawlSettings | DescribeSettings) -> list[tuple[str, Any]]:
    fields = [each for each in dataclasses.fields(settings) if "check" in each.metadata]
    return [(each.metadata.get("key", each.name), getattr(settings, each.name)) for each in fields]
