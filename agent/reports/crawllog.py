"""A job's crawl.log: a line for each URL seen, written compressed, and read as it lies there.

A report is for ever, and most of its lines say of a page that it did not change; so the log is `crawl.log.gz`, which
`zcat` and `zgrep` read. Reports of older versions have it plain, as `crawl.log`. It is compressed as it is written: so
a job needs no room for the plain text, on a disk that is nearly full; there is one form of it whatever dies when; and
no backup copies it twice.
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

#: What the log is called in the folder of a report, the form that is written first.
COMPRESSED = "crawl.log.gz"
PLAIN = "crawl.log"
#: The best that gzip does: a tenth smaller than its usual 6, for some ms in each thousand lines.
_LEVEL = 9


def write(folder: Path, lines: Iterable[str]) -> Path:
    """Write the log into the folder of a report; returns its file. The same lines give the same bytes.

    Raises OSError; what is there then is not whole. The caller makes it durable.
    """
    path = folder / COMPRESSED
    with (
        path.open("wb") as file,
        # Neither a name nor a time in its head (RFC 1952), so that the bytes depend on the lines alone.
        gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        text.writelines(f"{line}\n" for line in lines)
    return path


@contextmanager
def reading(folder: Path) -> Iterator[Iterator[str]]:
    """The lines of the log in the folder of a report, compressed or plain; where both are there, the compressed one.

    Raises NotFound when there is neither; while it is read Damaged when it is not whole, and OSError.
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
            raise EOFError("it is empty")  # which Python takes for a log without lines, and zcat does not
        yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise Damaged(f"{file.name} is damaged: {error}") from None
