"""Reads a form that has a file (multipart/form-data, RFC 7578) as it comes: the file goes to a temporary one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile
from typing import IO, Final

import multipart

from agent.desk import forms, limits
from agent.desk.forms import Form, SentFile
from webarcfs.archive.model.errors import UsageError

_KIND: Final = "multipart/form-data"
#: Most fields, the file among them.
_FIELDS: Final = 20


def boundary_of(content_type: str) -> str:
    """Return what lies between the fields of a form with a file; empty for another kind of body."""
    kind, options = multipart.parse_options_header(content_type)
    return str(options.get("boundary", "")) if kind == _KIND else ""


async def read(chunks: AsyncIterator[bytes], boundary: str) -> Form:
    """Return the form of a body. Raises UsageError; OSError where there is no space for the file."""
    reading = _Reading()
    try:
        with multipart.PushMultipartParser(
            boundary, max_segment_count=_FIELDS, max_segment_size=limits.UPLOAD_BYTES, strict=True
        ) as parser:
            async for chunk in chunks:
                for each in parser.parse(chunk) if chunk else ():
                    reading.hear(each)
        return reading.form()
    except multipart.MultipartError as error:
        reading.close()
        raise UsageError(str(error)) from None
    except BaseException:
        reading.close()
        raise


class _Reading:
    """What was read of a form so far."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str]] = []
        self._name = ""
        self._text: bytearray | None = None
        self._size = 0
        self._file: SpooledTemporaryFile[bytes] | None = None
        self._file_name = ""

    def hear(self, event: object) -> None:
        """Take an event of the parser: the head of a field, a piece of its value, or None at its end."""
        if isinstance(event, multipart.MultipartSegment):
            self._begin(event.name, event.filename)
        elif event is None:
            if self._text is not None:
                self._pairs.append((self._name, self._text.decode("utf-8", "replace")))
        elif isinstance(event, bytes | bytearray | memoryview):
            if self._text is None:
                assert self._file is not None
                self._file.write(event)
            else:
                self._size += len(event)
                if self._size > limits.BODY_BYTES:
                    raise UsageError("its fields are too long")
                self._text += event

    def _begin(self, name: str, file_name: str | None) -> None:
        self._name, self._text = name, bytearray() if file_name is None else None
        if file_name is not None:
            if self._file is not None:
                raise UsageError("it has two files")
            self._file_name = file_name
            self._file = SpooledTemporaryFile(max_size=limits.UPLOAD_IN_MEMORY)  # noqa: SIM115 # until it is answered

    def form(self) -> Form:
        """Return the form; a file that nobody chose is none."""
        if self._file is None or not self._file_name:
            self.close()
            return forms.of_pairs(self._pairs)
        self._file.seek(0)
        name = forms.clean(self._file_name).replace("\\", "/").rpartition("/")[2]
        return forms.of_pairs(self._pairs, SentFile(name, self._file))

    def close(self) -> None:
        """Let the file go."""
        file: IO[bytes] | SpooledTemporaryFile[bytes] | None = self._file
        if file is not None:
            file.close()
