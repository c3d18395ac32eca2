"""crawl.log: a line for each URL in Heritrix's twelve columns; the log of a job while it fetches, and that of a report.

The log of a job lies in its folder, in plain text, and is for people and for `report`. A line is written as soon as the
outcome of its URL is known. The report has its own crawl.log, which is written from the frontier when the job ends and
says what the archive made of each document. So a line that is missing in the first is no loss: after a kill, a job that
is resumed rewrites the file. URLs that wait on a server that is given up, or that are cut off at the end, are in the
report's log alone.

A report is kept for ever, and most of its lines are of unchanged pages. So its log is `crawl.log.gz`, which `zcat` and
`zgrep` read; reports of older versions contain the plain `crawl.log`. It is compressed while it is written: a job needs
no space for the plain text on a nearly full disk, a crash cannot leave two forms of it, and no backup copies it twice.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from agent.crawl.frontier import Frontier, FrontierUrl
from agent.crawl.vocabulary import Figure, LinkKind, Reason, UrlState, seed3_state
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import parse_time, utc

#: The names of the log in the folder of a report, which gets the first one, and in that of a job, which has the second.
COMPRESSED, PLAIN = "crawl.log.gz", "crawl.log"

# == lines, pure ======================================================================================================


def line(row: FrontierUrl, referrer: str) -> str:
    """Return the line of a URL; `-` is for columns that do not apply."""
    stamp = utc(parse_time(row.captured)) if row.captured else None
    columns = (
        stamp.strftime("%Y-%m-%dT%H:%M:%S.000Z") if stamp else "-",
        f"{row.status:5}",
        f"{row.size if row.captured else '-':>10}",
        row.url,
        row.hops or "-",
        referrer or "-",
        row.mime or "-",
        f"#{row.batch:03}",
        stamp.strftime("%Y%m%d%H%M%S000") if stamp else "-",
        f"sha1:{row.digest}" if row.digest else "-",
        "-",
        ",".join(_annotations(row)),
    )
    return " ".join(columns)


def _annotations(row: FrontierUrl) -> list[str]:
    """Return Tarântula's state, the reasons and the result, then the figures."""
    annotations = [f"{Figure.SEED3}{seed3_state(row.status, row.note, row.result)}", row.note, row.result]
    annotations.append(Reason.LISTED_ALONE if row.kind == LinkKind.LISTED else "")
    annotations.append(f"{Figure.TRIES}{row.tries}" if row.tries > 1 else "")
    annotations.append(f"{Figure.LINKS}{row.links}" if row.links >= 0 else "")
    annotations.append(f"{Figure.DEPTH}{row.depth}" if row.kind != LinkKind.ROBOTS else "")
    return ["_".join(annotation.split()) for annotation in annotations if annotation]


# == log of a job =====================================================================================================


_OPEN = frozenset({UrlState.WAITING, UrlState.FETCHING})


class LiveLog:
    """The growing crawl.log of one job. Errors of the disk end the job, as they do for its other files."""

    def __init__(self, folder: Path, frontier: Frontier) -> None:
        self._frontier = frontier
        self._file = (folder / PLAIN).open("w", encoding="utf-8", newline="\n")
        self._since = frontier.last_url()
        self._write(entry for entry in frontier.all() if entry[0].state not in _OPEN)

    def batch(self, number: int) -> None:
        """Add the URLs of a batch that was read, and what the crawl found in them and does not fetch."""
        self._write(self._frontier.ended_in_batch(number))
        self.found()

    def found(self) -> None:
        """Add what the crawl found since the last call and does not fetch."""
        since, self._since = self._since, self._frontier.last_url()
        self._write(self._frontier.refused_since(since))

    def urls(self, rows: Iterable[FrontierUrl]) -> None:
        """Add URLs that got an outcome without a batch."""
        self._write((row, "") for row in rows)

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def _write(self, entries: Iterable[tuple[FrontierUrl, str]]) -> None:
        self._file.writelines(f"{line(row, referrer)}\n" for row, referrer in entries)
        self._file.flush()


# == log of a report ==================================================================================================


#: gzip's highest level: a tenth smaller than the default 6, at a cost of some ms per thousand lines.
_LEVEL = 9


def write(folder: Path, lines: Iterable[str]) -> Path:
    """Write the log into the folder of a report; return its path. The same lines give the same bytes.

    Raises OSError; the file is then incomplete. The caller makes it durable.
    """
    path = folder / COMPRESSED
    with (
        path.open("wb") as file,
        # No name and no time in its header (RFC 1952), so that the bytes depend on the lines only.
        gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        text.writelines(f"{text_line}\n" for text_line in lines)
    return path


@contextmanager
def reading(folder: Path) -> Iterator[Iterator[str]]:
    """Yield the lines of the log in a report's folder, compressed or plain; the compressed one if both exist.

    Raises NotFound if neither exists. Reading a line raises Damaged if the log is not whole, and OSError.
    """
    with _opened(folder) as file:
        yield _lines(file)


def _opened(folder: Path) -> TextIO:
    for name, opening in ((COMPRESSED, gzip.open), (PLAIN, open)):
        with suppress(FileNotFoundError):
            file: TextIO = opening(folder / name, "rt", encoding="utf-8", newline="\n")
            return file
    raise NotFound(f"{folder} has no crawl.log: neither {COMPRESSED} nor {PLAIN}")


def _lines(file: TextIO) -> Iterator[str]:
    try:
        if file.name.endswith(COMPRESSED) and os.fstat(file.fileno()).st_size == 0:
            raise EOFError("it is empty")  # Python reads an empty file as no lines; zcat reports an error
        yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise Damaged(f"{file.name} is damaged: {error}") from None
