"""Writes the rows of a table as CSV (RFC 4180), JSON Lines or Parquet. A row is a tuple of values, column by column.

Values are written as they are, with two exceptions, the same in each format: U+0000 and halves of surrogate pairs,
which no reader of CSV or UTF-8 takes, become U+FFFD. Nothing is done about values that a spreadsheet takes for a
formula. Rows are handed over in batches; memory holds one batch.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring
from typing import IO, Any, Protocol

from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import format_utc, from_epoch
from webarcfs.dataset.columns import Column, Kind

Row = tuple[Any, ...]

_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
#: Rows of a batch, and characters of long texts in it.
_ROWS, _ROWS_OF_GROUP, _CHARACTERS = 2_000, 20_000, 8 << 20
_MISSING = "Parquet needs another library: pip install 'webarcfs[data]'"


class TableFormat(StrEnum):
    """The form of a table."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        """Its media type."""
        return {"csv": "text/csv", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}[self]


class TableWriter(Protocol):
    """Writes batches of rows."""

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows. Raises OSError."""

    def close(self) -> None:
        """Write what belongs at the end; the file stays open."""


def writer_of(form: TableFormat, columns: Sequence[Column], file: IO[bytes]) -> TableWriter:
    """Return what writes a table into a file. Raises UsageError where a library is missing."""
    if form is TableFormat.PARQUET:
        return ParquetWriter(columns, file)
    return (CsvWriter if form is TableFormat.CSV else JsonlWriter)(columns, file)


def batches(rows: Iterable[Row], form: TableFormat, long: int | None = None) -> Iterator[list[Row]]:
    """Yield rows in batches; `long` is the column of long texts, of which a batch has few."""
    most = _ROWS_OF_GROUP if form is TableFormat.PARQUET else _ROWS
    batch: list[Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        if long is not None:
            characters += len(row[long])
        if len(batch) >= most or characters > _CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def writable(text: str) -> str:
    """Return a text that each format can have."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    return _UNWRITABLE.sub("\ufffd", text)


@lru_cache(maxsize=65_536)
def spelled_time(seconds: int) -> str:
    """Return a time as tables have it: `2024-03-01T02:00:00Z`."""
    return format_utc(from_epoch(seconds))


# -- CSV ---------------------------------------------------------------------------------------------------------------


class CsvWriter:
    """Writes CSV with a line of names, CRLF, and quotes where they are needed."""

    def __init__(self, columns: Sequence[Column], file: IO[bytes]) -> None:
        self._file = file
        self._converted = [(at, _CSV[column.kind]) for at, column in enumerate(columns) if column.kind in _CSV]
        self.write_lines([tuple(column.name for column in columns)])

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows. Raises OSError."""
        self.write_lines([self._texts(row) for row in rows] if self._converted else rows)

    def write_lines(self, rows: Iterable[Sequence[Any]]) -> None:
        """Append lines of texts and numbers."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\r\n").writerows(rows)
        self._file.write(text.getvalue().encode())

    def close(self) -> None:
        """Write nothing more."""

    def _texts(self, row: Row) -> list[Any]:
        values = list(row)
        for at, convert in self._converted:
            values[at] = convert(values[at])
        return values


def _yes_no(value: bool) -> str:
    return "true" if value else "false"


_CSV: dict[Kind, Callable[[Any], str]] = {Kind.YES_NO: _yes_no, Kind.TIME: spelled_time}


# -- JSON Lines --------------------------------------------------------------------------------------------------------


class JsonlWriter:
    """Writes an object a line."""

    def __init__(self, columns: Sequence[Column], file: IO[bytes]) -> None:
        self._file = file
        names = ",".join(f"{json.dumps(column.name)}:%s".replace("%%s", "%s") for column in columns)
        self._template = f"{{{names}}}\n"
        self._encoders = [_JSON[column.kind] for column in columns]

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows. Raises OSError."""
        template, encoders = self._template, self._encoders
        lines = [template % tuple([encode(value) for encode, value in zip(encoders, row, strict=True)]) for row in rows]
        self._file.write("".join(lines).encode())

    def close(self) -> None:
        """Write nothing more."""


_JSON: dict[Kind, Callable[[Any], str]] = {
    Kind.TEXT: encode_basestring,
    Kind.NUMBER: str,
    Kind.YES_NO: _yes_no,
    Kind.TIME: lambda value: f'"{spelled_time(value)}"',
}


# -- Parquet -----------------------------------------------------------------------------------------------------------


class ParquetWriter:
    """Writes Parquet, a row group a batch, compressed with Zstandard."""

    def __init__(self, columns: Sequence[Column], file: IO[bytes]) -> None:
        """Raise UsageError without pyarrow."""
        try:
            import pyarrow as pa  # noqa: PLC0415 # of the extra `data`
            import pyarrow.parquet as pq  # noqa: PLC0415
        except ImportError:
            raise UsageError(_MISSING) from None
        types = {
            Kind.TEXT: pa.string(), Kind.NUMBER: pa.int64(), Kind.YES_NO: pa.bool_(),
            Kind.TIME: pa.timestamp("s", tz="UTC"),
        }  # fmt: skip
        self._arrays = pa.array
        self._batch = pa.RecordBatch.from_arrays
        fields = [
            pa.field(column.name, types[column.kind], nullable=False, metadata={"description": column.meaning})
            for column in columns
        ]
        self._schema = pa.schema(fields)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Sequence[Row]) -> None:
        """Append a row group. Raises OSError."""
        arrays = [
            self._arrays(values, field.type)
            for values, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        self._writer.write_batch(self._batch(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


def check_library(form: TableFormat) -> None:
    """Raise UsageError where the library of a format is missing."""
    if form is TableFormat.PARQUET:
        from importlib.util import find_spec  # noqa: PLC0415 # for this question alone

        if find_spec("pyarrow") is None:
            raise UsageError(_MISSING)
