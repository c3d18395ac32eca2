"""What the archive takes: snapshots, documents and bytes by publication and year, the disk, and what a year will bring.

What was captured is asked of catalogue.db, so it costs a query. What the disk has is the sum over files: few for each
repository, since crawls write packs; nothing in a repository is opened.

`show` prints it as tables and a chart, or as JSON: for `webarc-agent report --storage`.
"""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webarcfs.archive.catalogue.catalogue import Catalogue, YearOfCaptures, opened
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.config.validators import Interval
from webarcfs.commands.listing import print_object, show_table, table_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# == storage ==========================================================================================================


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
        return sum(year.bytes for year in self.years)

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
        return sum(forecast.bytes for forecast in self.forecasts)

    @property
    def coming_on_disk(self) -> int | None:
        """Bytes that a year will take in the repositories, if it continues as until now; None if nothing is counted."""
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


def forecast_captured(archive: Archive, settings: Settings) -> int | None:
    """Return the bytes that a year will bring, each snapshot counted whole; None if no publication is counted.

    It costs a query, and looks at no file. The repositories grow by less, as what does not change is kept once. Raises
    Damaged, Busy, OSError.
    """
    with opened(archive, Catalogue(archive)) as tables:
        means = tables.mean_bytes(LAST)
    forecasts = list(_forecasts(settings, means))
    return sum(forecast.bytes for forecast in forecasts) if forecasts else None


def _forecasts(settings: Settings, means: dict[str, tuple[float, int]]) -> Iterable[Forecast]:
    for publication in settings.publications:
        if not publication.retired and publication.name in means:
            mean, last = means[publication.name]
            interval = publication.crawl.interval
            yield Forecast(publication.name, str(interval), _YEAR / interval.seconds, round(mean), last)


def _parts(archive: Archive) -> dict[str, int]:
    paths_by_part = {
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
    named = {path for paths in paths_by_part.values() for path in paths} | {archive.content}
    named |= {archive.repository(domain) for domain in archive.domains()}
    rest = [path for folder in (archive.root, archive.content) for path in folder.iterdir() if path not in named]
    own = sum(folder.stat().st_blocks * _BLOCK for folder in (archive.root, archive.content))
    sums = {name: sum(map(_of, paths)) for name, paths in paths_by_part.items()}
    return sums | {"settings": own + sum(map(_of, rest))}


def _with_logs(database: Path) -> tuple[Path, ...]:
    """Return a database with the files that SQLite has beside it."""
    return tuple(database.with_name(database.name + ending) for ending in ("", "-wal", "-shm"))


def _of(path: Path) -> int:
    """Return the bytes that a file or a folder takes on disk; what is removed meanwhile takes none."""
    try:
        status = path.lstat()
        size = status.st_blocks * _BLOCK
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


# == storage tables ===================================================================================================


#: Letters of the longest bar: with the names and figures it fits 80 columns.
_BAR = 28
_NAMES = {
    "catalogue": "records and attachments",
    "database": "webarc.db",
    "links": "links.db",
    "changes": "changes",
    "jobs": "jobs/, with what was fetched",
    "reports": "reports/",
    "journal": "journal/",
    "log": "log/",
    "settings": "settings and the rest",
}


def show(storage: Storage, *, as_json: bool, top: int) -> None:
    """Print what the archive takes: JSON, or tables, of repositories the `top` largest (0: all)."""
    if as_json:
        print_object(_as_object(storage), indent=1)
        return
    console = table_console()
    _captured(console, storage)
    _on_disk(console, storage, top)
    _coming(console, storage)


def _as_object(storage: Storage) -> dict[str, object]:
    return {
        "captured": {
            "bytes": storage.captured,
            "years": [asdict(year) for year in storage.years],
        },
        "on_disk": {
            "documents": storage.documents_on_disk,
            "repositories": storage.repositories,
            "metadata": storage.metadata,
            "parts": {name: storage.parts[name] for name in METADATA},
            "search": storage.parts["search"],
            "free": storage.free,
        },
        "a_year": {
            "captured": storage.coming_captured,
            "on_disk": storage.coming_on_disk,
            "publications": [asdict(forecast) | {"bytes": forecast.bytes} for forecast in storage.forecasts],
        },
    }


def _captured(console: Console, storage: Storage) -> None:
    table = _table("Captured, each snapshot counted whole", "publication", "year", "snapshots", "documents", "bytes")
    for year in storage.years:
        row = (year.publication, str(year.year), f"{year.snapshots:,}", f"{year.documents:,}", f"{year.bytes:,}")
        table.add_row(*row)
    snapshots, documents = sum(year.snapshots for year in storage.years), sum(year.documents for year in storage.years)
    table.add_row("all", "", f"{snapshots:,}", f"{documents:,}", f"{storage.captured:,}", style="bold")
    show_table(table)
    uncounted = sum(year.uncounted for year in storage.years)
    if uncounted:
        console.print(f"{uncounted:,} snapshots are not counted, and have no bytes here")
    by_year: Counter[str] = Counter()
    for year in storage.years:
        by_year[str(year.year)] += year.bytes
    console.print()
    _bars("Captured by year", dict(sorted(by_year.items())))


def _bars(title: str, figures: Mapping[str, int]) -> None:
    """Print a bar of letters for each figure."""
    most = max(figures.values(), default=0)
    table = _table(title, "", "bytes", "")
    table.columns[2].justify = "left"
    for name, size in figures.items():
        table.add_row(name, f"{size:,}", bar(size, most))
    show_table(table)


def bar(figure: float, most: float) -> str:
    """Return a bar of letters; that of the largest figure is 28 long, and only nothing has none."""
    return "#" * (math.ceil(figure * _BAR / most) if most else 0)


def _on_disk(console: Console, storage: Storage, top: int) -> None:
    console.print()
    parts = {
        f"documents, {len(storage.repositories):,} repositories": storage.documents_on_disk,
        "metadata": storage.metadata,
        **{f"- {_NAMES[name]}": storage.parts[name] for name in METADATA if storage.parts[name]},
        "full-text index": storage.parts["search"],
    }
    _bars("On the disk", parts)
    console.print(f"free: {storage.free:,} bytes")
    largest = sorted(storage.repositories.items(), key=lambda domain_size: (-domain_size[1], domain_size[0]))
    shown = largest[:top] if top else largest
    if shown:
        console.print()
        table = _table("Largest repositories", "domain", "bytes")
        for domain, size in shown:
            table.add_row(domain, f"{size:,}")
        if len(largest) > len(shown):
            rest = largest[len(shown) :]
            table.add_row(f"{len(rest):,} more", f"{sum(size for _, size in rest):,}")
        show_table(table)


def _coming(console: Console, storage: Storage) -> None:
    console.print()
    if not storage.forecasts:
        console.print("A year from now cannot be told: no publication that is due has a counted capture.")
        return
    table = _table("A year, if it continues so", "publication", "every", "captures", "mean bytes", "bytes")
    for forecast in storage.forecasts:
        row = (
            forecast.publication,
            forecast.interval,
            f"{forecast.captures:,.0f}",
            f"{forecast.mean:,}",
            f"{forecast.bytes:,}",
        )
        table.add_row(*row)
    show_table(table)
    console.print(
        f"A year brings {storage.coming_captured:,} bytes, each snapshot counted whole: for each publication the mean "
        f"of its last {LAST} captures, times the captures that its interval brings in a year."
    )
    if storage.coming_on_disk is not None:
        console.print(
            f"The repositories would grow by {storage.coming_on_disk:,} bytes, as {storage.documents_on_disk:,} are on"
            f" the disk of {storage.captured:,} that were captured: what does not change is kept once."
        )


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table  # noqa: PLC0415 # slow to load, and the desk does not need it

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        is_text = not number or column in ("year", "every")
        table.add_column(column, justify="left" if is_text else "right", no_wrap=True)
    return table
