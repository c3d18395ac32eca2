"""Snapshots of four hosts over some months, as a plain list, and an archive that has them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tests.support import archives
from tests.support.rooms import Page, published
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET

TOWN, PORT, OLD, CDN = "www.town.example", "port.example:8080", "old.example", "cdn.example"


@dataclass(frozen=True)
class Kept:
    """A snapshot as the model knows it."""

    tag: str
    publication: str
    is_complete: bool
    is_import: bool
    is_hidden: bool
    has_pages: bool = True

    @property
    def time(self) -> str:
        return self.tag.partition("@")[0]

    @property
    def host(self) -> str:
        return self.tag.partition("@")[2]


def _history() -> list[tuple[datetime, Kept]]:
    """Four hosts over three years, some times near each other, and some shared by hosts."""
    chance, begin = random.Random(41), datetime(2018, 12, 30, 23, 58, 30, tzinfo=CET)
    rows = []
    for host, publication, steps in ((TOWN, "town", 14), (TOWN, "news", 6), (PORT, "town", 7), (OLD, "old", 6)):
        time = begin
        for _ in range(steps):
            time += timedelta(seconds=chance.choice([1, 20, 59, 3600, 86_400, 40 * 86_400]))
            rows.append((time, host, publication))
    rows.append((begin, CDN, "town"))
    kept, taken = [], set()
    for begun, host, publication in sorted(rows):
        time = begun
        while (time, host) in taken:
            time += timedelta(seconds=1)
        taken.add((time, host))
        text = f"{time.replace(tzinfo=None).isoformat()}@{host}"
        is_import = host == OLD
        is_complete = not is_import and chance.random() < 0.7
        is_hidden = chance.random() < 0.3
        kept.append((time, Kept(text, publication, is_complete, is_import, is_hidden, host != CDN)))
    return kept


HISTORY = _history()
KEPT = [row for _, row in HISTORY]


def archive_of(folder: Path) -> Archive:
    """An archive of all these, whose database is to be made."""
    archive = archives.make_archive(folder)
    for number, (time, row) in enumerate(HISTORY):
        pages: dict[str, Page | None] = {f"http://{row.host}/": Page(b"%d" % number)}
        pages[f"http://{row.host}/{number}"] = Page(b"x", status=200 if number % 3 else 404)
        if number > 8:
            pages[f"http://{row.host}/{number - 8}"] = None
        published(
            archive, row.host, pages, time, publication=row.publication,
            state=RecordState.COUNTED if row.is_hidden else RecordState.RELEASED, held=row.is_hidden,
            complete=row.is_complete, sources=[f"{number:064x}"] if row.is_import else (),
            resources="" if row.has_pages else "alone",
        )  # fmt: skip
    return archive
