"""The folder of a dataset: its tables, a README, a description for programs (Frictionless Data), and hosts.csv.

It is made in `OUT.part`, and gets its name when it is complete and on the disk. A table cannot be resumed where a kill
cut it off: the same command begins again, and removes what a killed one left. An error, or an interruption, removes
`OUT.part` at once. One process at a time works in it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import webarcfs
from webarcfs.access.gate import Gate
from webarcfs.archive.model.errors import Exists
from webarcfs.archive.model.metadata import format_utc
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import sync_tree
from webarcfs.dataset.columns import OVERVIEW, Column, Dataset, Kind
from webarcfs.dataset.narrowing import DatasetUnit
from webarcfs.dataset.readers_versions import DomainOverview
from webarcfs.dataset.table_writers import CsvWriter, TableFormat, spelled_time
from webarcfs.export.export_result import give_name, must_be_free

# == the folder =======================================================================================================


_LOCK, _RESULT = ".lock", "dataset"
README, PACKAGE, HOSTS = "README.md", "datapackage.json", "hosts.csv"


@contextmanager
def being_made(out: Path) -> Iterator[Path]:
    """Yield the folder in which a dataset is made; at the end it is durable, and called `out`.

    Raises Exists if something is at `out` or in the way, Busy while another process makes it, UsageError without the
    folder above, OSError.
    """
    part = out.with_name(f"{out.name}.part")
    must_be_free(out)
    if part.is_symlink() or (part.exists() and not (part / _LOCK).is_file() and not _is_empty(part)):
        raise Exists(f"{part} is in the way: a dataset would be made there")
    part.mkdir(exist_ok=True)
    with locks.exclusive_or_busy(part / _LOCK, f"another command is making {out}; its folder is {part}"):
        names = {entry.name for entry in part.iterdir()} - {_LOCK, _RESULT}
        if names:
            raise Exists(f"{part} is no unfinished dataset, it has {min(names)}; remove it, or name another")
        try:
            shutil.rmtree(part / _RESULT, ignore_errors=True)  # of a command that was killed
            result = part / _RESULT
            result.mkdir()
            yield result
            sync_tree(result)
            give_name(result, out)
        finally:
            with suppress(OSError):
                shutil.rmtree(part)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


# == description ======================================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is told of a dataset of a unit. `options` are those of the command; `asker` is who asked, in words.

    `left_out` has reason → number. `notes` are sentences. `tables` are files, with their columns and rows.
    """

    dataset: Dataset
    unit: DatasetUnit
    archive: str
    asker: str
    made: datetime
    options: Mapping[str, str]
    columns: Sequence[Column]
    file: str
    form: TableFormat | None
    rows: int
    overviews: Sequence[DomainOverview]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def as_fields(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "dataset": str(self.dataset), "rows": self.rows, "hosts": len(self.overviews),
            "incomplete_snapshots": self.incomplete, "left_out": dict(self.left_out), "notes": list(self.notes),
        }  # fmt: skip

    @property
    def incomplete(self) -> int:
        """The number of snapshots whose crawls were not complete."""
        return sum(overview.snapshots - overview.complete for overview in self.overviews)


_TITLES = {
    Dataset.PAGES: "Pages", Dataset.TEXT: "Texts", Dataset.LINKS: "Links", Dataset.TYPES: "Types of documents",
    Dataset.WORDS: "Words by year", Dataset.HOSTS: "Hosts and the links between them",
}  # fmt: skip
_FRICTIONLESS = {Kind.TEXT: "string", Kind.NUMBER: "integer", Kind.YES_NO: "boolean", Kind.TIME: "datetime"}


def write_description(folder: Path, description: Description) -> None:
    """Write README.md, datapackage.json and hosts.csv into the folder of a dataset. Raises OSError."""
    with (folder / HOSTS).open("wb") as file:
        writer = CsvWriter(OVERVIEW, file)
        writer.write([
            (
                host.domain, host.snapshots, host.complete, host.snapshots - host.complete,
                *(spelled_time(seq) if host.snapshots else "" for seq in (host.first, host.last)), host.units,
            )
            for host in description.overviews
        ])  # fmt: skip
    (folder / PACKAGE).write_text(f"{json.dumps(_package(folder, description), indent=2, ensure_ascii=False)}\n")
    (folder / README).write_text(f"{_readme(description)}\n")


def _package(folder: Path, description: Description) -> dict[str, Any]:
    """Return the description for programs (Data Package 1)."""
    form = description.form
    media_type = "application/gexf+xml" if form is None else form.media_type
    resources = [
        _resource(folder / description.file, str(form or "gexf"), media_type, description.columns, description.rows),
        _resource(folder / HOSTS, "csv", "text/csv", OVERVIEW, len(description.overviews)),
    ]
    return {
        "profile": "data-package",
        "name": f"webarcfs-{description.dataset}",
        "title": f"{_TITLES[description.dataset]} of {description.archive}",
        "created": format_utc(description.made),
        "webarcfs": {
            "version": webarcfs.__version__, "asker": description.asker, "options": dict(description.options),
            "left_out": dict(description.left_out), "notes": list(description.notes),
        },
        "resources": resources,
    }  # fmt: skip


def _resource(path: Path, form: str, media_type: str, columns: Iterable[Column], rows: int) -> dict[str, Any]:
    fields = [
        {"name": column.name, "type": _FRICTIONLESS[column.kind], "description": column.meaning} for column in columns
    ]
    own: dict[str, Any] = {
        "name": path.stem.lower(), "path": path.name, "format": form, "mediatype": media_type, "encoding": "utf-8",
        "bytes": path.stat().st_size, "rows": rows,
    }  # fmt: skip
    if form == "gexf":
        return own
    if form == "csv":
        own |= {"profile": "tabular-data-resource", "dialect": {"delimiter": ",", "doubleQuote": True}}
    # An empty text is a value; nothing is missing.
    return own | {"schema": {"fields": fields, "missingValues": []}}


def _readme(description: Description) -> str:
    made = format_utc(description.made)
    lines = [
        f"# {_TITLES[description.dataset]} of {description.archive}",
        "",
        f"Made by `webarc dataset {description.dataset}` of webarcfs {webarcfs.__version__} at {made},",
        f"of {description.asker}. {description.rows:,} {'rows' if description.form is not None else 'edges'}.",
        "",
        _IN_YEARS[description.unit],
        "",
        "| option | value |",
        "|---|---|",
        *(f"| `{name}` | {_cell(value)} |" for name, value in description.options.items()),
        "",
        "| file | what it has |",
        "|---|---|",
        f"| `{description.file}` | the data |",
        f"| `{HOSTS}` | the hosts, with the number of complete and of incomplete crawls of each |",
        f"| `{PACKAGE}` | the columns for programs (Frictionless Data Package) |",
        "",
        "## What is missing",
        "",
        *_missing(description),
        "",
        f"## Columns of `{description.file}`" if description.form is not None else "## The graph",
        "",
        *(_table(description.columns) if description.form is not None else [_GRAPH]),
        "",
        f"## Columns of `{HOSTS}`",
        "",
        *_table(OVERVIEW),
        "",
        "## Reading it",
        "",
        _READING,
    ]
    return "\n".join(lines)


def _missing(description: Description) -> Iterator[str]:
    if description.incomplete:
        yield (
            f"{description.incomplete:,} of the crawls were not complete, see `{HOSTS}`: what is not in their "
            "snapshots may have been on the web."
        )
    else:
        yield "All crawls were complete: they fetched what was in scope. What was out of scope is not in the archive."
    for reason, number in description.left_out.items():
        yield f"Left out: {number:,} {reason}."
    yield from description.notes


def _table(columns: Iterable[Column]) -> Iterator[str]:
    yield "| column | kind | meaning | in the Archives Unleashed Toolkit |"
    yield "|---|---|---|---|"
    for column in columns:
        yield f"| `{column.name}` | {column.kind} | {column.meaning} | {column.elsewhere or '–'} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


#: In which year something counts.
_IN_YEARS = {
    DatasetUnit.VERSION: """\
**A version counts once, in the year of its first capture.** So sums by year are of what was new in each year, and a
page that does not change is in one year alone. To compare years, take `--unit year`.""",
    DatasetUnit.YEAR: """\
**A version counts once in each year in which a crawl captured it**, stored or met unchanged, as in `webarc curve`. So
years can be compared, and sums over several years count a version several times.""",
    DatasetUnit.CAPTURE: """\
**Each capture counts, in its year.** So a page that is crawled often counts often. To count each version once a year,
take `--unit year`.""",
    DatasetUnit.SNAPSHOT: """\
**Each snapshot counts, in its year, with all that it has.** So a host that is crawled often counts often, unless `--at`
chose one snapshot. To count each version once a year, take `--unit year`.""",
}
_GRAPH = """\
A node is a host, with `archived`, `internal links` (of its pages to itself), `links out` and `links in`. An edge
leads from the host of pages to the host that they link to. Its weight is the number of these links, and `links 2024`
the number of those of 2024."""
_READING = """\
All text is UTF-8, all times are UTC, but years begin and end in CET (UTC+01:00), as those of the archive's commands do.
CSV is that of RFC 4180: a line of names, CRLF, quotes where they are needed, line breaks inside of quotes.
Nothing is escaped otherwise: a spreadsheet program may take a value that begins with `=`, `+`,
`-` or `@` for a formula, so import such columns as text. U+0000 and halves of surrogate pairs are U+FFFD. An empty text
is an empty text, also in Parquet: in pandas, `read_csv(…, keep_default_na=False)` keeps it."""


def asker_in_words(gate: Gate) -> str:
    """Return who asked, for the README."""
    if gate.is_staff:
        return "the whole archive"
    name = gate.reader.name
    return f"what the reader {name} may see of the archive" if name else "what the public may see of the archive"
