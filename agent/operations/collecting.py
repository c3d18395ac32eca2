"""Collections, added, changed and removed. Commands call this; people may edit the files instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_record
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import collection_files
from webarcfs.archive.config.collection_files import Collection
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionChange:
    """What is changed of a collection: keys that are set and removed, and what is added to and taken from its lists.

    `picture` is a file that is copied. Crawls are named as the catalogue finds them, by name or number.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    removed: Sequence[str] = ()
    publications: Sequence[str] = ()
    crawls: Sequence[str] = ()
    without_publications: Sequence[str] = ()
    without_crawls: Sequence[str] = ()
    picture: Path | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be changed."""
        lists = (self.removed, self.publications, self.crawls, self.without_publications, self.without_crawls)
        return not self.values and not any(lists) and self.picture is None


def add(archive: Archive, name: str, change: CollectionChange) -> Path:
    """Write a new collection; return its file. Raises UsageError, NotFound, SettingsError, PermissionDenied."""
    return _write(archive, name, change, is_new=True)


def change_collection(archive: Archive, name: str, change: CollectionChange) -> Path:
    """Change a collection; return its file. Raises the same."""
    return _write(archive, name, change, is_new=False)


def remove(archive: Archive, name: str) -> list[Path]:
    """Remove a collection, and its picture; its publications and crawls stay. Return what was removed."""
    people.acting(archive, Right.DESCRIBE)
    return collection_files.remove_collection(archive, name)


def _write(archive: Archive, name: str, change: CollectionChange, *, is_new: bool) -> Path:
    people.acting(archive, Right.DESCRIBE)
    catalogue = Catalogue(archive)
    crawls = [look_up_record(archive, catalogue, crawl)[0].id for crawl in change.crawls]
    picture = None if change.picture is None else _bytes_of(change.picture)

    def changed(tables: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(change.values)
        for key, added, taken in (
            ("publications", change.publications, change.without_publications),
            ("crawls", crawls, [_id_of(archive, catalogue, crawl) for crawl in change.without_crawls]),
        ):
            before = values.get(key, tables.get(key, []))
            if added or taken:
                values[key] = _with(before, added, taken, f"{name} has no {key[:-1]}")
        return values

    return collection_files.write_collection(
        archive, name, changed, change.removed, is_new=is_new, picture=picture
    )  # fmt: skip


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a picture. One that is too large is not read as a whole."""
    with path.open("rb") as file:
        return file.read(collection_files.LARGEST_PICTURE + 1)


def _id_of(archive: Archive, catalogue: Catalogue, crawl: str) -> str:
    """Return the id of a record; of one that is gone, what was typed."""
    try:
        return look_up_record(archive, catalogue, crawl)[0].id
    except NotFound:
        return crawl


def _with(before: Any, added: Iterable[str], taken: Sequence[str], missing: str) -> list[str]:
    names = [str(name) for name in before] if isinstance(before, list) else []
    for name in taken:
        if name not in names:
            raise UsageError(f"{missing} {name}")
    return [name for name in dict.fromkeys([*names, *added]) if name not in taken]


def unknown_members(archive: Archive, collection: Collection) -> list[str]:
    """Return what a collection names that the catalogue does not have: publications without crawls, and crawls."""
    catalogue = Catalogue(archive)
    publications = [name for name in collection.publications if next(catalogue.ids(name), None) is None]
    return publications + [record_id for record_id in collection.crawls if not catalogue.has(record_id)]
