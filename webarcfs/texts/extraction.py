"""Extracts the texts of documents in a process of its own, which has limits, and may die of what it reads.

The process reads bodies from git itself, a document a request, and answers in order. A document at which it dies, or
for which it takes too long, has a fault; the next ones go to a new process.

`python -m webarcfs.texts.extraction` is that process.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import WebarcError
from webarcfs.content.extractors.extracted import Extracted, Fault
from webarcfs.warc.http_response import LONGEST_OF_ARC, content_type_in

# == bodies ===========================================================================================================


_CHUNK = 1 << 20


@contextmanager
def opened(store: Repository, blob: str) -> Iterator[BinaryIO]:
    """Yield a body as a file, of memory or without a name."""
    if store.size(blob) <= _CHUNK:
        yield BytesIO(store.read(blob))
        return
    with tempfile.TemporaryFile() as file:
        store.copy(blob, file.fileno())
        file.seek(0)
        yield file


# == extraction =======================================================================================================


_log = logging.getLogger(__name__)
#: Bytes of memory, and seconds of the processor and of waiting, that a document may take.
MEMORY, PROCESSOR, PATIENCE = 3 << 29, 60, 180.0
#: Requests that are sent ahead.
_AHEAD = 32
_LENGTH, _PIPE_CHUNK = 8, 1 << 16
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A body in a repository: git's ids of it and of headers.http; its MIME type; its language, if that is known."""

    repository: str
    blob: str
    head: str
    mime_type: str
    language: str = ""


class Extraction(Generic[T]):
    """The process, and the documents that wait for their texts. A context manager, for one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: deque[tuple[T, ExtractionRequest | None]] = deque()
        self._read = bytearray()

    def __enter__(self) -> Extraction[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def texts(self, wanted: Iterable[tuple[T, ExtractionRequest | None]]) -> Iterator[tuple[T, Extracted]]:
        """Yield each item with its text, in order; without a request, an empty one."""
        for pair in wanted:
            self._waiting.append(pair)
            if pair[1] is not None:
                self._send(pair[1])
            if len(self._waiting) >= _AHEAD:
                yield self._next()
        while self._waiting:
            yield self._next()

    def _send(self, request: ExtractionRequest) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died of a document before; its answers say of which
            self._process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
            self._process.stdin.flush()

    def _next(self) -> tuple[T, Extracted]:
        item, request = self._waiting.popleft()
        if request is None:
            return item, Extracted()
        assert self._process is not None
        answer = self._answer(self._process)
        if answer is not None:
            return item, answer
        fault = self._fault()
        _log.warning(
            "the text of %s (%s in %s) was not read: %s", request.mime_type, request.blob, request.repository, fault
        )
        for _, waiting_request in self._waiting:
            if waiting_request is not None:
                self._send(waiting_request)
        return item, Extracted(fault=fault)

    def _answer(self, process: subprocess.Popen[bytes]) -> Extracted | None:
        """Return the next answer; None if the process died, or takes too long."""
        length = self._received(process, _LENGTH)
        data = self._received(process, int.from_bytes(length, "big")) if length else b""
        if not data:
            return None
        try:
            return Extracted(**{name: str(value) for name, value in json.loads(data).items()})
        except (ValueError, TypeError, AttributeError):
            process.kill()
            return None

    def _received(self, process: subprocess.Popen[bytes], size: int) -> bytes:
        """Return so many bytes of the process's answers; none if it ends before."""
        assert process.stdout is not None
        out = process.stdout.fileno()
        while len(self._read) < size:
            if not select.select([out], [], [], PATIENCE)[0]:
                process.kill()
                return b""
            if not (chunk := os.read(out, _PIPE_CHUNK)):
                return b""
            self._read += chunk
        data = bytes(self._read[:size])
        del self._read[:size]
        return data

    def _fault(self) -> Fault:
        """End the process, and return the fault of the document at which it died."""
        code = self._end()
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return Fault.TOO_SLOW
        return Fault.DAMAGED

    def _end(self) -> int:
        process, self._process = self._process, None
        self._read.clear()
        if process is None:
            return 0
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        try:
            return process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def main() -> None:
    """Answer requests from standard input until it ends."""
    for limit, value in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 4 << 30)):
        resource.setrlimit(limit, (value, value))
    stores: dict[str, Repository] = {}
    for line in sys.stdin.buffer:
        request = ExtractionRequest(**json.loads(line))
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + PROCESSOR
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        try:
            if request.repository not in stores:
                stores.clear()
                stores[request.repository] = Repository(Path(request.repository))
            extracted = _text_of(stores[request.repository], request)
        except MemoryError:
            extracted = Extracted(fault=Fault.TOO_LARGE)
        except WebarcError as error:
            _log.error("%s", error)
            extracted = Extracted(fault=Fault.DAMAGED)
        except Exception:  # libraries raise anything for content that they do not expect
            _log.exception("%s in %s", request.blob, request.repository)
            extracted = Extracted(fault=Fault.DAMAGED)
        _write(sys.stdout.buffer, json.dumps(asdict(extracted)).encode())


def _text_of(store: Repository, request: ExtractionRequest) -> Extracted:
    """Return the text of a body. Raises Damaged if git cannot read it."""
    from webarcfs.content.extractors.extracting import extract  # noqa: PLC0415 # only this process needs them

    head = store.read_short(request.head, LONGEST_OF_ARC)
    with opened(store, request.blob) as file:
        return extract(file, request.mime_type, content_type_in(head), request.language)


def _write(out: BinaryIO, data: bytes) -> None:
    out.write(len(data).to_bytes(_LENGTH, "big"))
    out.write(data)
    out.flush()


if __name__ == "__main__":
    main()
