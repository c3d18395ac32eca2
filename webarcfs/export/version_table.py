"""CSV and JSON lines: a row for each version that a question found, with its text.

CSV is as RFC 4180 has it, with a header, in UTF-8; a text of several lines is one quoted cell. The columns are the same
in both. `language` is that of the text, as far as it can be told, and `fault` says why there is no text, or not all.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from webarcfs.archive.system.clocks import Progress
from webarcfs.export.export_result import Growing, Stream, Summary, fill_rows
from webarcfs.export.selection import Stop
from webarcfs.export.version_selection import ChosenCapture, RowKind, VersionSelection
from webarcfs.export.version_texts import COLUMNS, VersionWithText, with_texts

_ALL: Final = (*COLUMNS, "language", "fault", "text")


def export(selection: VersionSelection, out: Path, progress: Progress, stop: Stop, *, as_csv: bool) -> Summary:
    """Write the table to `out`, or to standard output; see the package. Raises Interrupted, Damaged, OSError."""
    start = _csv_line(_ALL) if as_csv else b""
    files: Growing | Stream
    if str(out) == "-":
        files = Stream(start)
    else:
        files = Growing(out.with_name(f"{out.name}.notes"), lambda _: out, lambda _: start)

    def put(version: VersionWithText) -> None:
        if version.error is not None:
            raise version.error
        if version.row.kind is not RowKind.VERSION:
            return
        text = version.text
        fields = {**version.fields(), "language": text.language, "fault": str(text.fault), "text": text.body}
        files.write(_csv_line(fields.values()) if as_csv else _json_line(fields))
        files.mark.records += 1

    with files:
        versions = with_texts(selection.open, selection.after(files.mark.unit), wanted=True)
        rows: Iterator[tuple[ChosenCapture, Callable[[], None]]] = (
            (version.row, partial(put, version)) for version in versions
        )
        fill_rows(files, selection, rows, progress, stop)
    mark = files.mark
    return Summary(versions=mark.found, records=mark.records, bytes=mark.size, files=1, left_out=mark.left_out)


def _csv_line(values: Iterable[object]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue().encode("utf-8", "backslashreplace")


def _json_line(fields: dict[str, str | int]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
