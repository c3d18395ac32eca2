"""Collections: named groups of publications and crawls, with a text and a picture; a file each in `collections.d`.

People write these files, and programs change them, with their comments. A collection says what belongs together, and
opens nothing: readers see of it what they may see anyway. A file with faults is left out, and the others hold. Its
picture lies beside it. It is read again when a file changes, and then that file alone.
"""

from __future__ import annotations

import os
import re
import threading
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.directory import COLLECTIONS, Archive
from webarcfs.archive.config.settings_files import in_lines, write_into_folder
from webarcfs.archive.config.validators import list_of, read_table, required, setting
from webarcfs.archive.model.errors import NotFound, SettingsError, UsageError
from webarcfs.archive.model.picture_kinds import PictureKind, picture_kind
from webarcfs.archive.system import locks
from webarcfs.archive.system.cache import FileState, file_states
from webarcfs.archive.system.files import sync_folder

# == collections, pure ================================================================================================


#: Most collections of an archive, bytes of a file and of a picture, publications and crawls that a collection names.
MOST_COLLECTIONS, LARGEST_FILE, LARGEST_PICTURE = 5_000, 1 << 20, 2 << 20
MOST_PUBLICATIONS, MOST_CRAWLS = 1_000, 10_000
_LONGEST_TITLE, _LONGEST_TEXT, _LONGEST_NAME = 200, 20_000, 255
#: The languages in which a collection may speak, beside the one that it is written in.
_LANGUAGES: tuple[str, ...] = ("de", "en")
#: Bytes in which an SVG says that it is one, and what may precede its first element: begin → end.
_LOOKED_AT = 4_096
_BEFORE_SVG = {b"<?": b"?>", b"<!--": b"-->", b"<!DOCTYPE": b">"}
_SVG, _SVG_KIND = re.compile(rb"<svg[\s>/]"), PictureKind("image/svg+xml", "svg")


def _title(value: Any) -> str:
    title = validators.text(value)
    if len(title) > _LONGEST_TITLE:
        raise ValueError(f"a title has {_LONGEST_TITLE} letters at most, this one {len(title):,}")
    return title


def _title_or_none(value: Any) -> str:
    return "" if value == "" else _title(value)


def _prose(value: Any) -> str:
    if not isinstance(value, str) or not all(char.isprintable() or char in "\n\r\t" for char in value):
        raise ValueError("it is no text")
    if len(value) > _LONGEST_TEXT:
        raise ValueError(f"a text has {_LONGEST_TEXT:,} letters at most, this one {len(value):,}")
    return value


def _picture_name(value: Any) -> str:
    """Check for the name of a file in the same folder."""
    if value == "":
        return ""
    if not isinstance(value, str) or not value.isprintable() or "/" in value or value.startswith("."):
        raise ValueError(f"{value!r} is no name of a file in {COLLECTIONS}")
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f"a name of a file has {_LONGEST_NAME} bytes at most")
    return value


def _record_id(value: Any) -> str:
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not value.strip()
        or "/" in value
        or len(value) > _LONGEST_NAME
    ):
        raise ValueError(f"{value!r} is no record; `webarc-agent record list` lists them")
    return value


def _at_most(most: int, check: validators.Check) -> validators.Check:
    check_all = list_of(check)

    def check_number(value: Any) -> tuple[Any, ...]:
        if isinstance(value, list | tuple) and len(value) > most:
            raise ValueError(f"{most:,} can be named at most, these are {len(value):,}")
        return tuple(dict.fromkeys(check_all(value)))

    return check_number


@dataclass(frozen=True, slots=True)
class CollectionWords:
    """What a collection says of itself in a further language; what is empty is said as in the first one."""

    title: str = setting(_title_or_none, "", "its title")
    text: str = setting(_prose, "", "its text")
    picture_text: str = setting(_title_or_none, "", "what the picture shows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A collection as its file has it. `crawls` are ids of records. A text has paragraphs, with empty lines between."""

    name: str = field(default="")
    title: str = required(_title)
    text: str = setting(_prose, "", "its text")
    picture: str = setting(_picture_name, "", "the name of its picture, a file beside it")
    picture_text: str = setting(_title_or_none, "", "what the picture shows, for those who do not see it")
    publications: tuple[str, ...] = setting(_at_most(MOST_PUBLICATIONS, validators.name), (), "its publications")
    crawls: tuple[str, ...] = setting(_at_most(MOST_CRAWLS, _record_id), (), "its crawls")
    words: Mapping[str, CollectionWords] = field(default_factory=dict)

    def title_in(self, language: str) -> str:
        """Return its title in a language, else in the one that it is written in."""
        return self.words.get(language, _NONE).title or self.title

    def text_in(self, language: str) -> str:
        """Return its text, likewise."""
        return self.words.get(language, _NONE).text or self.text

    def picture_text_in(self, language: str) -> str:
        """Return what its picture shows, likewise."""
        return self.words.get(language, _NONE).picture_text or self.picture_text


_NONE = CollectionWords()


def parse_collection(name: str, text: str) -> Collection:
    """Return the collection that a file describes. Raises SettingsError with all faults."""
    source = f"{COLLECTIONS}/{name}.toml"
    faults: list[str] = []
    try:
        validators.name(name)
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [f"not TOML: {error}"]) from None
    except ValueError as error:
        raise SettingsError(source, [str(error)]) from None
    words = {code: read_table(CollectionWords, tables.pop(code), code, faults) for code in _LANGUAGES if code in tables}
    if "title" not in tables:
        faults.append("title: is missing")
    base = Collection(name=name, title=name, words=words)
    collection = read_table(Collection, tables, "", faults, base)
    if faults:
        raise SettingsError(source, faults)
    return collection


def picture_type(head: bytes) -> PictureKind | None:
    """Return the kind of a picture by how it begins; None for what is none of those that are shown."""
    return picture_kind(head) or (_SVG_KIND if _is_svg(head[:_LOOKED_AT]) else None)


def _is_svg(head: bytes) -> bool:
    rest = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    while not _SVG.match(rest):
        end = next((end for begin, end in _BEFORE_SVG.items() if rest.startswith(begin)), b"")
        if not end or end not in rest:
            return False
        rest = rest.partition(end)[2].lstrip()
    return True


# == files ============================================================================================================


@dataclass(frozen=True, slots=True)
class Collections:
    """The collections of an archive by their names, in the order of these, and the faults of files that are left out.

    `state` is another value once a file has changed.
    """

    by_name: Mapping[str, Collection]
    faults: tuple[str, ...]
    state: object


class CollectionFiles:
    """The collections of an archive as they are now. For any thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._known: dict[str, tuple[FileState, Collection | SettingsError]] = {}
        self._latest = Collections({}, (), ())

    def now(self) -> Collections:
        """Return them; a file is read where it changed. It costs a look at each file."""
        files = _files(self._archive.collections)
        state = tuple(files.values())
        with self._lock:
            if state != self._latest.state:
                known = self._known
                self._known = {
                    name: known[name] if name in known and known[name][0] == changes else (changes, self._read(name))
                    for name, changes in islice(files.items(), MOST_COLLECTIONS)
                }
                by_name, faults = dict[str, Collection](), list[str]()
                for name, (_, collection) in self._known.items():
                    if isinstance(collection, Collection):
                        by_name[name] = collection
                    else:
                        faults += (f"{collection.source}: {fault}" for fault in collection.faults)
                if more := len(files) - len(self._known):
                    faults.append(f"{COLLECTIONS}: {more:,} files beyond {MOST_COLLECTIONS:,} are left out")
                self._latest = Collections(by_name, tuple(faults), state)
            return self._latest

    def _read(self, name: str) -> Collection | SettingsError:
        try:
            return parse_collection(name, _text_of(file_of(self._archive, name)))
        except SettingsError as error:
            return error
        except OSError as error:
            return SettingsError(f"{COLLECTIONS}/{name}.toml", [error.strerror or str(error)])


def _files(folder: Path) -> dict[str, FileState]:
    """Return the state of each file of a collection, by its name, in order."""
    with suppress(FileNotFoundError, NotADirectoryError):
        states = file_states(folder, ".toml")
        return {state[0].removesuffix(".toml"): state for state in states if not state[0].startswith(".")}
    return {}


def _text_of(path: Path) -> str:
    """Return the text of a file. Raises SettingsError, OSError."""
    source = f"{COLLECTIONS}/{path.name}"
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise SettingsError(source, [f"it has more than {LARGEST_FILE:,} bytes"])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(source, [f"not UTF-8 at byte {error.start}"]) from None


def load_collections(archive: Archive) -> Collections:
    """Return the collections of an archive, for a program that asks once."""
    return CollectionFiles(archive).now()


def read_picture(archive: Archive, name: str) -> tuple[bytes, str]:
    """Return the bytes of a picture in `collections.d` and its type. Raises NotFound, UsageError for what is none.

    A link or a device of that name is no picture.
    """
    path = archive.collections / name
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise NotFound(f"there is no picture {COLLECTIONS}/{name}") from None
    with os.fdopen(fd, "rb") as file:
        if not path.is_file():
            raise NotFound(f"{COLLECTIONS}/{name} is no file")
        content = file.read(LARGEST_PICTURE + 1)
    return content, _checked_kind(content, f"{COLLECTIONS}/{name}").mime_type


def _checked_kind(content: bytes, source: str) -> PictureKind:
    """Return the kind of a picture. Raises UsageError for what is too large or none."""
    kind = picture_type(content)
    if len(content) > LARGEST_PICTURE:
        raise UsageError(f"{source} has more than {LARGEST_PICTURE:,} bytes")
    if kind is None:
        raise UsageError(f"{source} is no picture: PNG, JPEG, WebP and SVG are shown")
    return kind


def faults_of(archive: Archive) -> list[str]:
    """Return what is wrong with the collections: their files, and their pictures."""
    collections = load_collections(archive)
    faults = list(collections.faults)
    for collection in collections.by_name.values():
        if collection.picture:
            try:
                read_picture(archive, collection.picture)
            except (NotFound, UsageError) as error:
                faults.append(f"{COLLECTIONS}/{collection.name}.toml: picture: {error}")
    return faults


# == changes ==========================================================================================================


def file_of(archive: Archive, name: str) -> Path:
    """Return the file of a collection, which need not exist."""
    return archive.collections / f"{name}.toml"


def find_collection(archive: Archive, name: str) -> Collection:
    """Return a collection by its name. Raises NotFound, which names those that there are; SettingsError."""
    try:
        return parse_collection(name, _text_of(file_of(archive, name)))
    except (OSError, ValueError):
        known = ", ".join(load_collections(archive).by_name) or "none"
        raise NotFound(f"there is no collection {name}; there are: {known}") from None


def write_collection(
    archive: Archive,
    name: str,
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    removed: Iterable[str] = (),
    *,
    is_new: bool,
    picture: bytes | None = None,
) -> Path:
    """Write the file of a collection, durably: `change` gets its keys as they are, and returns those to set.

    A key of a language is `de.title`. `picture` lies beside it then. Raises UsageError, NotFound, SettingsError.
    """
    path = file_of(archive, name)
    try:
        validators.name(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    with locks.exclusive(archive.settings_lock):
        if is_new and path.exists():
            raise UsageError(
                f"there is a collection {name} already; `webarc-agent collection change {name}` changes it"
            )
        if not is_new:
            find_collection(archive, name)
        before = "" if is_new else _text_of(path)
        values = dict(change(tomllib.loads(before)))
        if picture is not None:
            values["picture"] = f"{name}.{_checked_kind(picture, 'the file').ending}"
        text = _edited(before, str(path), values, removed)
        parse_collection(name, text)
        if picture is not None:
            write_into_folder(archive.collections / values["picture"], picture)
        write_into_folder(path, text.encode())
    return path


def _edited(before: str, source: str, values: Mapping[str, Any], removed: Iterable[str]) -> str:
    """Return the text of a file with keys set and others removed; comments and order stay."""
    document = settings_files.parsed(before, source)
    values = {key: in_lines(value) for key, value in values.items()}
    settings_files.change_keys(document, values, removed, f"{COLLECTIONS}/{Path(source).name}")
    return document.as_string()


def remove_collection(archive: Archive, name: str) -> list[Path]:
    """Remove a collection, and its picture unless another one has it; return what was removed. Raises NotFound."""
    with locks.exclusive(archive.settings_lock):
        collection = find_collection(archive, name)
        paths = [file_of(archive, name)]
        others = (other for other in load_collections(archive).by_name.values() if other.name != name)
        if collection.picture and all(other.picture != collection.picture for other in others):
            paths.append(archive.collections / collection.picture)
        for path in paths:
            path.unlink(missing_ok=True)
        sync_folder(archive.collections)
    return paths
