"""Makes a dataset: the rows of what somebody may see, in a folder or on a stream."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from webarcfs.access.gate import KnownGate
from webarcfs.archive.index import database
from webarcfs.archive.model.errors import Interrupted, NotFound
from webarcfs.archive.model.metadata import format_utc
from webarcfs.archive.system.clocks import Progress
from webarcfs.dataset.columns import Dataset, columns_of
from webarcfs.dataset.dataset_folder import Description, asker_in_words, being_made, write_description
from webarcfs.dataset.dataset_rows import DatasetRows
from webarcfs.dataset.gexf import write_graph
from webarcfs.dataset.narrowing import Narrowing
from webarcfs.dataset.readers_versions import ReadersVersions
from webarcfs.dataset.table_writers import TableFormat, batches, check_library, writer_of
from webarcfs.export.selection import Stop

#: The column of long texts.
_CONTENT = "content"
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOrder:
    """What is to be made of what a gate shows. `form` is None for a graph (GEXF), of hosts. `by_host` is of words."""

    gate: KnownGate
    dataset: Dataset
    narrowing: Narrowing
    form: TableFormat | None
    made: datetime
    by_host: bool = False

    @property
    def file_name(self) -> str:
        """The name of the file with the data."""
        name = "host-links" if self.dataset is Dataset.HOSTS else str(self.dataset)
        return f"{name}.{self.form or 'gexf'}"


def make_folder(order: DatasetOrder, out: Path, progress: Progress, stop: Stop) -> Description:
    """Make the folder of a dataset. Raises Interrupted, Exists, NotFound, UsageError, Damaged, OSError."""
    _check(order)
    with being_made(out) as folder:
        with (folder / order.file_name).open("wb", buffering=_BUFFER) as file:
            description = _make(order, file, folder, progress, stop)
        write_description(folder, description)
    return description


def make_stream(order: DatasetOrder, file: IO[bytes], progress: Progress, stop: Stop) -> Description:
    """Write the data alone to a stream. Raises as `make_folder` does."""
    _check(order)
    description = _make(order, file, Path(tempfile.gettempdir()), progress, stop)
    file.flush()
    return description


def _check(order: DatasetOrder) -> None:
    if order.form is not None:
        check_library(order.form)


def _make(order: DatasetOrder, file: IO[bytes], scratch: Path, progress: Progress, stop: Stop) -> Description:
    archive, unit, asker = order.gate.archive, order.narrowing.unit, asker_in_words(order.gate)
    columns = columns_of(order.dataset, unit, by_host=order.by_host)
    known = sum(database.count_versions(archive.database).values())
    number = 0
    with (
        ReadersVersions(order.gate, order.narrowing) as versions,
        DatasetRows(archive, versions, unit, scratch, by_host=order.by_host) as rows,
    ):
        if order.narrowing.domains and not versions.domains:
            raise NotFound(f"the archive has no domain {', '.join(sorted(order.narrowing.domains))}")

        def look(done: int) -> None:
            progress("versions", min(versions.read, known), known)
            if stop():
                raise Interrupted(f"the dataset was interrupted after {done:,} rows; the same command begins it again")

        rows.look = lambda: look(number)
        if order.form is None:
            graph = rows.host_rows()
            day = format_utc(order.made)[:10]
            _, number = write_graph(
                file, graph, archived=[host.domain for host in versions.overviews], scratch=scratch,
                description=asker, day=day,
            )  # fmt: skip
        else:
            writer = writer_of(order.form, columns, file)
            names = [column.name for column in columns]
            long = names.index(_CONTENT) if _CONTENT in names else None
            for batch in batches(rows.of(order.dataset), order.form, long):
                writer.write(batch)
                number += len(batch)
                look(number)
            writer.close()
        progress("versions", known, known)
        return Description(
            dataset=order.dataset, unit=unit, archive=archive.root.absolute().name, asker=asker,
            made=order.made, columns=columns,
            options=order.narrowing.options() | ({"--by-host": "yes"} if order.by_host else {}), file=order.file_name,
            form=order.form, rows=number, overviews=versions.overviews,
            left_out=versions.left_out, notes=rows.notes(),
        )  # fmt: skip
