"""A job's crawl.log: one line for each URL seen. Written compressed, read compressed or plain.

A report is kept for ever, and most of its lines are of unchanged pages. So the log is `crawl.log.gz`, which `zcat` and
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

from webarcfs.archive.model.errors import Damaged, NotFound

#: The names of the log in a report's folder; the first one is the name that is written.
COMPRESSED = "crawl.log.gz"
PLAIN = "crawl.log"
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
        text.writelines(f"{line}\n" for line in lines)
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
