"""Standard output and standard error of our programs: a reader who leaves a pipe is no failure of what was done.

From then on what is written goes nowhere. The work goes on and decides the exit code, so `verify | head -1` says that
something was found. What only lists or copies asks `is_output_closed`, and ends.

No text fails for its letters. A name that is not UTF-8 is printed as the bytes that it has on the disk, and what the
encoding of a terminal lacks is escaped (`\\u2026`).
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


#: The handler of errors that encodes any text.
_ANY_TEXT = "webarcfs-any-text"


class _Output(io.FileIO):
    """The file behind a standard stream."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle, "w", closefd=False)
        self._is_closed_by_reader = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write data, or nothing where nobody reads it."""
        try:
            return super().write(data)
        except BrokenPipeError:
            self._is_closed_by_reader = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes

    def is_closed_by_reader(self) -> bool:
        """Return whether nobody reads it any more."""
        if not self._is_closed_by_reader:
            poll = select.poll()
            poll.register(self.fileno(), 0)
            return any(events & select.POLLERR for _, events in poll.poll(0))
        return True


def prepare_streams() -> None:
    """Prepare both streams of a program. What tests and other programs put in their place stays."""
    codecs.register_error(_ANY_TEXT, _encoded)
    sys.stdout, sys.stderr = _prepared(sys.stdout), _prepared(sys.stderr)


def _prepared(stream: TextIO) -> TextIO:
    raw = _raw(stream)
    if type(stream) is not io.TextIOWrapper or type(raw) is not io.FileIO:
        return stream
    stream.flush()
    output = _Output(raw.fileno())
    is_direct = stream.buffer is raw  # by PYTHONUNBUFFERED
    return io.TextIOWrapper(
        output if is_direct else io.BufferedWriter(output),
        encoding=stream.encoding,
        errors=_ANY_TEXT,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _encoded(error: UnicodeError) -> tuple[bytes, int]:
    """Return the bytes of letters that the encoding of a stream lacks, and where they end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return b"".join(map(_bytes_of, letters)), error.end


def _bytes_of(letter: str) -> bytes:
    is_byte = "\udc80" <= letter <= "\udcff"  # by surrogateescape
    return letter.encode("ascii", "surrogateescape" if is_byte else "backslashreplace")


def _raw(stream: TextIO | None) -> object:
    """Return the file behind a stream; None where a program was started without one."""
    buffer = getattr(stream, "buffer", None)
    return getattr(buffer, "raw", buffer)


def is_output_closed() -> bool:
    """Return whether the reader of standard output has closed it."""
    raw = _raw(sys.stdout)
    return isinstance(raw, _Output) and raw.is_closed_by_reader()
