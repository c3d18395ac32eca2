"""`/snapshot/<id>/log/<name>`: the logs of a snapshot and of its steps, as text, in pieces."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response

from agent.desk.file_views import LogPage
from agent.desk.look import words
from agent.desk.shared.visit import DeskVisit
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.room.views import Link

_LINES, _LONGEST = 500, 2_000
#: What a report has beside its logs.
_ENDINGS = (".log", ".log.gz", ".json", ".txt", ".csv", ".tsv")


def of_record(archive: Archive, record: Record) -> Iterator[Link]:
    """Yield the logs of a snapshot."""
    for name, _ in _files(archive, record):
        yield Link(f"/snapshot/{quote(record.id, safe='')}/log/{quote(name, safe='/')}", name)


def _files(archive: Archive, record: Record) -> Iterator[tuple[str, Path]]:
    """Yield the logs with their names: those of the job, and `<step>/…` of each step."""
    folder = archive.reports / record.job_name
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from ((f"{path.name}/{each.name}", each) for each in sorted(path.iterdir()) if _is_log(each))
        elif _is_log(path):
            yield path.name, path


def _is_log(path: Path) -> bool:
    return path.is_file() and path.name.endswith(_ENDINGS) and not path.name.startswith(".")


def report_href(archive: Archive, job: str) -> str:
    """Return the path of a job's report; empty without one."""
    return f"/report/{quote(job, safe='')}" if (archive.reports / job).is_dir() else ""


def show(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Show a piece of a log. Raises NotFound, Damaged."""
    record, _ = Catalogue(visit.desk.archive).read(said["record"])
    path = next((path for name, path in _files(visit.desk.archive, record) if name == said["log"]), None)
    if path is None:
        raise NotFound(f"{record.id} has no log {said['log']}")
    asked = visit.parameter("line")
    first = max(int(asked), 1) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else 1
    shown, is_more = _piece(path, first)
    view = LogPage(
        title=said["log"],
        back=Link(f"/snapshot/{quote(record.id, safe='')}", words.msgid("Back to the snapshot")),
        text="\n".join(shown),
        first=first,
        previous=visit.with_parameters(line=max(first - _LINES, 1)) if first > 1 else "",
        following=visit.with_parameters(line=first + _LINES) if is_more else "",
        raw="",
    )
    return visit.page(view)


def _piece(path: Path, first: int) -> tuple[list[str], bool]:
    found: list[str] = []
    opening = gzip.open if path.name.endswith(".gz") else open
    try:
        with opening(path, "rt", encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number >= first + _LINES:
                    return found, True
                if number >= first:
                    found.append(text.rstrip("\n")[:_LONGEST])
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    return found, False
