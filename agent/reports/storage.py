"""What the archive takes: snapshots, documents and bytes by publication and year, the disk, and what a year will bring.

What was captured is asked of catalogue.db, so it costs a query. What the disk has is the sum over files: few for each
repository, since crawls write packs; nothing in a repository is opened.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.catalogue_database import YearOfCaptures, opened
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.interval import Interval
from webarcfs.archive.config.settings import Settings

#: Captures whose mean size is taken for the next ones.
LAST: Final = 5
#: Bytes of the blocks in which the kernel counts.
_BLOCK: Final = 512
_YEAR: Final = Interval(1, "year").seconds
#: What of an archive is metadata: all that describes documents, and what jobs leave. The rest is documents or search.
METADATA: Final = ("catalogue", "database", "links", "changes", "jobs", "reports", "journal", "log", "settings")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a publication will capture in a year: `captures` of `mean` bytes, the mean of its `last` captures."""

    publication: str
    interval: str
    captures: float
    mean: int
    last: int

    @property
    def bytes(self) -> int:
        """The bytes of a year."""
        return round(self.captures * self.mean)


@dataclass(frozen=True, slots=True)
class Storage:
    """`repositories`: bytes on disk by domain; `parts`: bytes of the rest by what they are; `free`: of the disk."""

    years: tuple[YearOfCaptures, ...]
    repositories: dict[str, int]
    parts: dict[str, int]
    free: int
    forecasts: tuple[Forecast, ...]

    @property
    def captured(self) -> int:
        """Bytes of all snapshots, each counted whole."""
        return sum(each.bytes for each in self.years)

    @property
    def documents_on_disk(self) -> int:
        """Bytes that the repositories take."""
        return sum(self.repositories.values())

    @property
    def metadata(self) -> int:
        """Bytes that metadata take."""
        return sum(self.parts[name] for name in METADATA)

    @property
    def coming_captured(self) -> int:
        """Bytes that a year will bring, each snapshot counted whole."""
        return sum(each.bytes for each in self.forecasts)

    @property
    def coming_on_disk(self) -> int | None:
        """Bytes that a year will take in the repositories, if it goes on as until now; None if nothing is counted."""
        return round(self.coming_captured * self.documents_on_disk / self.captured) if self.captured else None


def storage(archive: Archive, settings: Settings) -> Storage:
    """Return what the archive takes, and will. Raises Damaged, Busy, OSError."""
    with opened(archive, Catalogue(archive)) as tables:
        years, means = tables.by_year(), tables.mean_bytes(LAST)
    return Storage(
        years=tuple(years),
        repositories={domain: _of(archive.repository(domain)) for domain in archive.domains()},
        parts=_parts(archive),
        free=shutil.disk_usage(archive.root).free,
        forecasts=tuple(_forecasts(settings, means)),
    )


def _forecasts(settings: Settings, means: dict[str, tuple[float, int]]) -> Iterable[Forecast]:
    for each in settings.publications:
        if not each.retired and each.name in means:
            mean, last = means[each.name]
            interval = each.crawl.interval
            yield Forecast(each.name, str(interval), _YEAR / interval.seconds, round(mean), last)


def _parts(archive: Archive) -> dict[str, int]:
    known = {
        "catalogue": (archive.catalogue, *_with_logs(archive.catalogue_database)),
        "database": _with_logs(archive.database),
        "links": _with_logs(archive.links),
        "search": (archive.search,),
        "changes": (archive.changes,),
        "jobs": (archive.jobs,),
        "reports": (archive.reports,),
        "journal": (archive.journal,),
        "log": (archive.log,),
    }
    named = {path for paths in known.values() for path in paths} | {archive.content}
    named |= {archive.repository(domain) for domain in archive.domains()}
    rest = [each for folder in (archive.root, archive.content) for each in folder.iterdir() if each not in named]
    own = sum(folder.stat().st_blocks * _BLOCK for folder in (archive.root, archive.content))
    sums = {name: sum(map(_of, paths)) for name, paths in known.items()}
    return sums | {"settings": own + sum(map(_of, rest))}


def _with_logs(database: Path) -> tuple[Path, ...]:
    """Return a database with the files that SQLite has beside it."""
    return tuple(database.with_name(database.name + ending) for ending in ("", "-wal", "-shm"))


def _of(path: Path) -> int:
    """Return the bytes that a file or a folder takes on disk; what goes meanwhile takes none."""
    try:
        found = path.lstat()
        size = found.st_blocks * _BLOCK
        if path.is_dir() and not path.is_symlink():
            with os.scandir(path) as entries:
                size += sum(_of_entry(entry) for entry in entries)
    except FileNotFoundError:
        return 0
    return size


def _of_entry(entry: os.DirEntry[str]) -> int:
    if entry.is_dir(follow_symlinks=False):
        return _of(Path(entry.path))
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    except FileNotFoundError:
        return 0
