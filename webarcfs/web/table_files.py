"""Lists as files to take away: CSV for programs of tables, JSON for all others. Each has the whole list, or none."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from webarcfs.archive.model.errors import TooMany
from webarcfs.archive.system import clocks

#: Rows that a file has at most.
MOST_ROWS = 100_000
#: Rows of a piece of CSV.
_PIECE = 500
#: How a file is asked for, as the ending of its path.
KINDS = ("csv", "json")
MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
#: What a program of tables takes for the beginning of a formula, or leaves out before one.
_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A list: the names of its columns, for programs, and its rows. A value is a text, a number, a bool or None."""

    columns: tuple[str, ...]
    rows: Iterable[Sequence[object]]

    def written(self, kind: str) -> bytes:
        """Return it as `csv` or `json`. Raises TooMany: a part of it would look like all of it."""
        rows: list[Sequence[object]] = []
        for row in islice(self.rows, MOST_ROWS + 1):
            clocks.check()
            rows.append(row)
        if len(rows) > MOST_ROWS:
            raise TooMany(f"the list has more than {MOST_ROWS:,} rows, which a file has at most; choose fewer of them")
        if kind == "json":
            named = [dict(zip(self.columns, row, strict=True)) for row in rows]
            return json.dumps(named, ensure_ascii=False, indent=1).encode("utf-8", "replace")
        return as_csv(self.columns, rows)


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as CSV (RFC 4180) that no program of tables takes for formulas."""
    return b"".join(csv_pieces(columns, rows))


def csv_pieces(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Generator[bytes, None, None]:
    """Yield the same in pieces, as the rows are read: for lists of any length."""
    piece = io.StringIO()
    writer = csv.writer(piece)
    writer.writerow(columns)
    for number, row in enumerate(rows, 1):
        writer.writerow([harmless(value) for value in row])
        if number % _PIECE == 0:
            yield piece.getvalue().encode("utf-8", "replace")
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue().encode("utf-8", "replace")


def harmless(value: object) -> object:
    """Return a value that no program of tables takes for a formula; a bool is a word."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}" if isinstance(value, str) and value.startswith(_OF_FORMULAS) else value
