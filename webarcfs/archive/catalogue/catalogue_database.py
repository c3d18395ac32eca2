"""catalogue.db: what decisions and lists need of the records, in tables. Derived from catalogue.git.

Who opens it brings it in step with the catalogue; the cost follows the records that changed. A user who may not write
gets tables of his own, in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, State
from webarcfs.archive.catalogue.record_rows import Chosen, RecordRow, row_of, values_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.sqlite_file import SqliteFile, remove
from webarcfs.archive.model.errors import Busy, DatabaseDamaged

_VERSION = 3
_MEMORY = Path(":memory:")


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """A snapshot that a record describes. `seq` is its time in seconds; the rest as in `Part` and `Record`."""

    seq: int
    seen: str
    is_held: bool
    publication: str
    state: State
    closed_for: str


@dataclass(frozen=True, slots=True)
class YearOfCaptures:
    """What a publication captured in a year. `documents` and `bytes` are of all snapshots but the `uncounted`."""

    publication: str
    year: int
    snapshots: int
    uncounted: int
    documents: int
    bytes: int


class CatalogueDatabase(SqliteFile):
    """An open catalogue.db, in step with its catalogue. Use it as a context manager, in one thread."""

    def __init__(self, path: Path, catalogue: Catalogue) -> None:
        """Open or make it, and bring it in step. Raises DatabaseDamaged, Busy, OSError; Damaged of the catalogue."""
        super().__init__(path, "IMMEDIATE")
        #: The commit of the catalogue with which it is in step, or a later one; empty without any.
        self.commit = ""
        try:
            with self._translated():
                self._ready(_VERSION, "catalogue/schema")
                self.update(catalogue)
        except BaseException:
            self._connection.close()
            raise

    def update(self, catalogue: Catalogue) -> bool:
        """Bring it in step with the catalogue; return whether it was behind."""
        state = catalogue.state()
        self.commit = "" if state is None else state.commit
        with self._translated():
            known = self._run("catalogue/select_state").fetchone()
            if state is None or (known is not None and known[0] == state.commit):
                return False
            # Two processes may do this at once: each writes what the catalogue has, and the state that it is sure of.
            with self._connection:
                for record_id, record in catalogue.changed(known[0] if known is not None else None):
                    self._run("catalogue/forget_parts", id=record_id)
                    self._run("catalogue/forget_record", id=record_id)
                    if record is not None:
                        self._add(record)
                self._run("catalogue/forget_state")
                self._run("catalogue/insert_state", oid=state.commit)
        return True

    def _add(self, record: Record) -> None:
        self._run(
            "catalogue/insert_record",
            id=record.id,
            number=record.number,
            publication=record.publication,
            state=str(record.state),
            closedFor=record.closed_for,
            **values_of(record),
        )
        for part in record.parts:
            self._run(
                "catalogue/insert_part",
                domain=part.tag.domain,
                seq=int(part.tag.crawl_time.timestamp()),
                record=record.id,
                seen=part.seen,
                held=int(part.is_held),
            )

    def parts(self, domain: str) -> dict[int, RecordedPart]:
        """Return the snapshots of a domain that have records, by their times."""
        with self._translated():
            rows = self._run("catalogue/select_parts", domain=domain)
            return {
                int(seq): RecordedPart(int(seq), seen, bool(held), publication, State(state), closed_for)
                for seq, seen, held, publication, state, closed_for in rows
            }

    def records(self, domain: str) -> dict[int, str]:
        """Return the ids of the records of a domain's snapshots, by their times."""
        with self._translated():
            return {int(seq): str(record) for seq, record in self._run("catalogue/select_records", domain=domain)}

    def id_of(self, number: int) -> str | None:
        """Return the id of the record of a number; None without one."""
        with self._translated():
            row = self._run("catalogue/find_number", number=number).fetchone()
        return None if row is None else str(row[0])

    # -- lists -----------------------------------------------------------------------------------------------------

    def listed(self, chosen: Chosen, *, offset: int = 0, limit: int = 50, oldest: bool = False) -> list[RecordRow]:
        """Return the rows of a part of a list, newest first; it costs what that part costs."""
        values = {**chosen.parameters(), "offset": offset, "limit": limit}
        with self._translated():
            if oldest:
                return [row_of(each) for each in self._run("catalogue/list_oldest", **values)]
            return [row_of(each) for each in self._run("catalogue/list_records", **values)]

    def row(self, record_id: str) -> RecordRow | None:
        """Return the row of a record; None without one."""
        with self._translated():
            found = self._run("catalogue/find_listed", id=record_id).fetchone()
        return None if found is None else row_of(found)

    def count_of(self, chosen: Chosen) -> int:
        """Return how many records a list has."""
        with self._translated():
            if chosen.words.strip():
                return int(self._run("catalogue/count_found", **chosen.parameters()).fetchone()[0])
            return int(self._run("catalogue/count_listed", **chosen.parameters()).fetchone()[0])

    def numbers(self, chosen: Chosen, limit: int) -> list[int]:
        """Return the numbers of the records of a list, newest first."""
        with self._translated():
            found = self._run("catalogue/list_numbers", **chosen.parameters(), limit=limit).fetchone()[0]
        return [int(each) for each in found.split(",")] if found else []

    def states(self) -> dict[State, int]:
        """Return how many records each state has."""
        with self._translated():
            return {State(state): int(count) for state, count in self._run("catalogue/count_states")}

    def newest(self, publications: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return how many records publications have, and the time of the newest in seconds, by their names.

        One without records is not among them.
        """
        names = json.dumps(list(publications))
        with self._translated():
            return {
                name: (int(count), int(date)) for name, count, date in self._run("catalogue/find_newest", names=names)
            }

    def by_year(self) -> list[YearOfCaptures]:
        """Return what each publication captured in each year, by publication and year."""
        with self._translated():
            rows = self._run("catalogue/by_year").fetchall()
        return [YearOfCaptures(name, *map(int, figures)) for name, *figures in rows]

    def mean_bytes(self, most: int) -> dict[str, tuple[float, int]]:
        """Return the mean size of each publication's last captures, `most` at most, and how many these are."""
        with self._translated():
            return {name: (mean, int(of)) for name, mean, of in self._run("catalogue/mean_bytes", most=most)}

    def count(self) -> int:
        """Return the number of records."""
        with self._translated():
            return int(self._one("catalogue/count_records"))

    @property
    def all_open(self) -> bool:
        """Whether each record is released and never closed."""
        with self._translated():
            return bool(self._one("catalogue/all_open"))


@contextmanager
def opened(archive: Archive, catalogue: Catalogue | None = None) -> Iterator[CatalogueDatabase]:
    """Open the tables of an archive's records, in step with the catalogue. Raises Damaged of the catalogue.

    A damaged file is made anew.
    """
    catalogue = catalogue or Catalogue(archive)
    with _opened(archive.catalogue_database, catalogue) as database:
        yield database


def _opened(path: Path, catalogue: Catalogue) -> CatalogueDatabase:
    for _ in range(2):
        try:
            return CatalogueDatabase(path, catalogue)
        except DatabaseDamaged:
            with suppress(OSError):
                remove(path)
        except (Busy, OSError):
            break
    return CatalogueDatabase(_MEMORY, catalogue)
