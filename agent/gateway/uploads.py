"""Bodies that are sent to the gateway: a new file, or a data node of a document.

A file goes piece by piece into an unnamed one on the journal's disk. It gets its name and is durable before the answer;
if anything comes between, nothing of it stays. Who asks, whether they may, and what is asked are judged before the body
is read, and the right again after it: a token that is revoked meanwhile adds nothing.

For the event loop, but for what it calls in threads of its own. A client that sends nothing holds no thread.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.gateway.askers import Asker, Askers
from webarcfs.api.api_request import ApiRequest
from webarcfs.api.problems import problem_of
from webarcfs.archive.catalogue.tokens import Scope as TokenScope
from webarcfs.archive.document.data_xml import read_node
from webarcfs.archive.model.errors import (
    BodyTooLarge,
    BodyTooSlow,
    Busy,
    ConditionMissing,
    Exists,
    Interrupted,
    InvalidDocument,
    NotFound,
    TokenRefused,
    UsageError,
    WebarcError,
)
from webarcfs.archive.system.files import blob_id
from webarcfs.vfs.node import Caller
from webarcfs.web import limits
from webarcfs.web.answering import Answering
from webarcfs.writing.archive_writer import ArchiveWriter, Upload

#: Largest file and largest data node, in bytes.
FILE_BYTES: Final = 64 << 30
NODE_BYTES: Final = 16 << 20
#: Bodies at a time, and the threads that write them.
MOST: Final = 64
THREADS: Final = 8
#: Bytes that are written at a time.
_PIECE: Final = 1 << 20
#: Digits of a length that are read: Python refuses to read thousands.
_LENGTH_DIGITS: Final = 18
_XML: Final = ("application/xml", "text/xml")

_T = TypeVar("_T")


class BodyIntake(Protocol):
    """Takes one body. One thread at a time calls its methods."""

    def write(self, data: bytes) -> None:
        """Take a piece."""

    def keep(self) -> str:
        """Keep what came, durably; return the id of its content."""

    def discard(self) -> None:
        """Give it up, unless it was kept."""


class NodeIntake:
    """Takes an element that becomes a data node."""

    def __init__(self, writer: ArchiveWriter, asked: ApiRequest, caller: Caller) -> None:
        self._writer = writer
        self._tag, self._path, self._name = asked.tag, asked.path, asked.text("name")
        self._caller = caller
        self._body = bytearray()

    def write(self, data: bytes) -> None:
        """Take a piece."""
        self._body += data

    def keep(self) -> str:
        """Add the node. Raises InvalidDocument, Exists, Stale, NotPermitted."""
        name, node = read_node(bytes(self._body))
        if name != self._name:
            raise InvalidDocument(f"the element is called {name}, not {self._name}")
        self._writer.add_node(self._tag, self._path, node, self._caller)
        return blob_id(node)

    def discard(self) -> None:
        """Forget what came."""
        self._body.clear()


@dataclass(frozen=True, slots=True)
class Begun:
    """An upload that may go on: who asks, what takes the body, and how long that may be."""

    asker: Asker
    intake: BodyIntake
    most: int


class Uploads:
    """Begins uploads. For any thread."""

    def __init__(self, writer: ArchiveWriter, askers: Askers) -> None:
        self._writer = writer
        self.askers = askers

    def begin_file(self, asked: ApiRequest, asker: Asker) -> Begun:
        """Begin a new file. Raises ConditionMissing unless it is to be new, and what `ArchiveWriter.upload` raises."""
        name = asked.file_name()
        if asked.request.headers.get("if-none-match", "").strip() != "*":
            raise ConditionMissing("a file is never replaced: send `If-None-Match: *`")
        _check_length(asked.request, FILE_BYTES)
        return Begun(asker, self._writer.upload(asked.tag, asked.path, name, _caller(asker)), FILE_BYTES)

    def begin_node(self, asked: ApiRequest, asker: Asker) -> Begun:
        """Begin a data node. Raises UsageError without its name, and for a body that does not say that it is XML."""
        if not asked.text("name"):
            raise UsageError("say which data node: ?name=")
        kind = asked.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _XML:
            raise UsageError(f"a data node is sent as application/xml, and not as {kind or 'nothing'}")
        _check_length(asked.request, NODE_BYTES)
        self._writer.current(asked.tag, asked.path)
        return Begun(asker, NodeIntake(self._writer, asked, _caller(asker)), NODE_BYTES)


def _caller(asker: Asker) -> Caller:
    return Caller(os.getuid(), os.getgid(), asker.author)


def _check_length(request: Request, most: int) -> None:
    """Raise BodyTooLarge for a body that says to be longer, UsageError for a length that is none."""
    length = request.headers.get("content-length", "0").lstrip("0") or "0"
    if not (length.isascii() and length.isdecimal()):
        raise UsageError("Content-Length is no number")
    if len(length) > _LENGTH_DIGITS or int(length) > most:
        raise BodyTooLarge(f"a body of more than {most:,} bytes")


#: Begins an upload for a person who may add.
Begin = Callable[[ApiRequest, Asker], Begun]


class UploadThreads:
    """The threads of all uploads, and how many are under way. For the event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="upload")
        self.under_way = 0

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns, in a thread. It is waited for, whatever happens to whoever asks."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, work))

    def close(self) -> None:
        """End them, after what runs."""
        self._threads.shutdown(wait=True)


class UploadEndpoint:
    """A route that takes a body, as an ASGI app. `asked_of` makes a request to the API of one of the server."""

    def __init__(
        self,
        answering: Answering,
        threads: UploadThreads,
        askers: Askers,
        asked_of: Callable[[Request, Asker], ApiRequest],
        begin: Begin,
    ) -> None:
        self._answering = answering
        self._threads = threads
        self._askers = askers
        self._asked_of = asked_of
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope)
        try:
            response = await self._answered(request, receive)
        except Interrupted:  # nobody is there to be answered
            return
        except Exception as error:
            response = self._answering.error_page(request, error, problem_of)
            if isinstance(error, Exists) and request.method == "PUT":
                with suppress(WebarcError, OSError):
                    response.headers["ETag"] = await self._threads.run(lambda: self._known(request))
            response.headers["Connection"] = "close"  # the rest of the body may follow
        await response(scope, receive, send)

    async def _answered(self, request: Request, receive: Receive) -> Response:
        if self._threads.under_way >= MOST:
            raise Busy(f"{MOST} bodies are being received already")
        self._threads.under_way += 1
        try:
            begun = await self._threads.run(lambda: self._judge(request))
            try:
                await receive_body(receive, begun.most, begun.intake.write, self._threads)
                blob = await self._threads.run(lambda: self._keep(begun))
            finally:
                await self._threads.run(begun.intake.discard)
        finally:
            self._threads.under_way -= 1
        raw, query = request.scope["raw_path"], request.scope["query_string"]
        place = (raw.partition(b"?")[0] + b"?" + query).decode("latin-1")
        headers = {"Location": place, "Cache-Control": "no-store"}
        if isinstance(begun.intake, Upload):
            headers["ETag"] = f'"{blob}"'
        return Response(b"", 201, headers)

    def _judge(self, request: Request) -> Begun:
        asker = self._askers.of(request)
        asker.demand(TokenScope.ADD)
        asked = self._asked_of(request, asker)
        asked.check()
        return self._begin(asked, asker)

    def _keep(self, begun: Begun) -> str:
        if not self._askers.still_holds(begun.asker, TokenScope.ADD):
            raise TokenRefused("the right to add ended while the body came")
        return begun.intake.keep()

    def _known(self, request: Request) -> str:
        """Return the entity tag of the file that is there."""
        asked = self._asked_of(request, self._askers.of(request))
        body = asked.source.file(asked.tag, asked.path, asked.file_name())
        if not body.blob:
            raise NotFound("it is not there yet")
        return f'"{body.blob}"'


async def receive_body(receive: Receive, most: int, write: Callable[[bytes], None], threads: UploadThreads) -> None:
    """Write a body as it comes. Raises BodyTooLarge, BodyTooSlow, Interrupted, and what writing raises."""
    held, size, is_more = bytearray(), 0, True
    began = time.monotonic()
    while is_more:
        try:
            message = await asyncio.wait_for(receive(), limits.SLOW_SECONDS)
        except TimeoutError:
            raise BodyTooSlow(f"nothing came for {limits.SLOW_SECONDS:g} s") from None
        if message["type"] == "http.disconnect":
            raise Interrupted("the client has gone")
        held += message.get("body", b"")
        size += len(message.get("body", b""))
        is_more = message.get("more_body", False)
        if size > most:
            raise BodyTooLarge(f"a body of more than {most:,} bytes")
        late = time.monotonic() - began - limits.SLOW_SECONDS
        if late * limits.SLOW_BYTES > size * limits.SLOW_SECONDS:
            raise BodyTooSlow("the body came too slowly")
        if len(held) >= _PIECE or (held and not is_more):
            await threads.run(partial(write, bytes(held)))
            held.clear()
