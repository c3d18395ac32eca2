"""Runs the room's handlers: plain functions that block, in the threads of a worker, behind ASGI.

A handler takes a request and returns a response. This is the one place where errors become statuses (`http_status_of`),
where a busy worker refuses, and where time is bounded. A client never holds a thread: an answer in pieces is asked for
piece by piece.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from http import HTTPStatus
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from webarcfs.archive.config.validators import UNIX
from webarcfs.archive.model.errors import Busy, Interrupted, TookTooLong, WebarcError, http_status_of
from webarcfs.room import limits

_T = TypeVar("_T")

#: Answers a request. It runs in any thread of the worker, several at a time; it may raise the errors of the family.
Handler = Callable[[Request], Response]
#: Makes the page of an error. The error is None where readers learn nothing but the status. It must not block.
#: Where a request's scope has the error that its answer is about, if it is one of ours: for those who may mend it.
REASON = "webarcfs.reason"
RenderError = Callable[[Request, HTTPStatus, WebarcError | None], Response]

#: Where an endpoint leaves itself for the responses that need its threads.
_ANSWERING = "webarc.answering"
_log = logging.getLogger("webarc")


def plain_error(_request: Request, status: HTTPStatus, _error: WebarcError | None) -> Response:
    """Return an error in plain text, without a page."""
    return PlainTextResponse(f"{status} {status.phrase}\n", status)


class Answering:
    """The threads of a worker, and the page of its errors. `close` it after the last request."""

    def __init__(self, render_error: RenderError = plain_error) -> None:
        self._render_error = render_error
        self._threads = ThreadPoolExecutor(limits.THREADS, thread_name_prefix="room")
        self._under_way = 0

    def endpoint(self, handler: Handler) -> Endpoint:
        """Return the ASGI app of a handler, for a `Route`."""
        return Endpoint(self, handler)

    async def run(
        self, work: Callable[[], _T], gone: asyncio.Future[None], *, if_left: Callable[[], None] | None = None
    ) -> _T:
        """Return what `work` returns, in a thread. `gone` is done when the client has gone.

        `if_left` is called, in a thread, when work has ended for which nobody waits any more. Raises Busy with too many
        waiting (but not for work that may be left, which is part of an answer), TookTooLong after `limits.SECONDS`,
        Interrupted if the client has gone.
        """
        if self._under_way >= limits.THREADS + limits.WAITING and if_left is None:
            raise Busy("too many requests at a time")
        running = self._threads.submit(work)
        self._under_way += 1
        loop = asyncio.get_running_loop()
        running.add_done_callback(lambda _: self._ended(loop))
        waiting = asyncio.wrap_future(running)
        try:
            await asyncio.wait((waiting, gone), timeout=limits.SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            if gone.done():
                raise Interrupted("the client has gone")
            raise TookTooLong(f"not answered within {limits.SECONDS:g} s")
        finally:
            if not waiting.done():
                waiting.cancel()  # what has not begun never will; what has, ends unheard
                if if_left is not None:
                    last = if_left
                    running.add_done_callback(lambda _: self.soon(last))

    def soon(self, work: Callable[[], None]) -> None:
        """Call `work` in a thread, and do not wait."""
        with contextlib.suppress(RuntimeError):  # the worker ends
            self._threads.submit(work)

    def _ended(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, the worker ends
            loop.call_soon_threadsafe(self._count_down)

    def _count_down(self) -> None:
        self._under_way -= 1

    def error_page(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request whose handler raised an error. What readers cannot mend is logged."""
        status = http_status_of(error)
        known = isinstance(error, WebarcError | OSError)
        if not known:
            _log.error("unexpected, at %r", request.url.path, exc_info=error)
        elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.warning("%s at %r: %s", type(error).__name__, request.url.path, error)
        request.scope[REASON] = error if known else None
        told = error if isinstance(error, WebarcError) and status < HTTPStatus.INTERNAL_SERVER_ERROR else None
        try:
            response = self._render_error(request, status, told)
        except Exception:
            _log.exception("the page of an error could not be made")
            response = plain_error(request, status, None)
        if isinstance(error, Busy):
            response.headers["Retry-After"] = str(limits.RETRY_SECONDS)
        return response

    async def close(self) -> None:
        """Take no further work. What runs is not waited for: the worker has waited."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Endpoint:
    """A handler as an ASGI app."""

    def __init__(self, answering: Answering, handler: Handler) -> None:
        self._answering = answering
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope[_ANSWERING] = self._answering
        request = Request(scope)
        gone = asyncio.ensure_future(_disconnected(receive))
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            response = await self._answering.run(lambda: self._handler(request), gone)
            gone.cancel()  # the response looks for itself
            await response(scope, receive, note)
        except Interrupted:  # nobody is there to be answered
            return
        except Exception as error:
            if begun:  # too late for another status: the connection is cut, so that the answer is not taken for whole
                raise
            await self._answering.error_page(request, error)(scope, receive, note)
        finally:
            gone.cancel()


class StreamedAnswer(Response):
    """An answer in pieces, each made in a thread when the client has taken those before it.

    `pieces` is a generator whose steps may run in different threads, never two at a time. Between two steps it holds
    nothing that others wait for: no transaction, no lock. It is closed at the end, or when the client has gone. An
    error before the first piece becomes the error's page.
    """

    def __init__(
        self,
        pieces: Generator[bytes, None, None],
        status_code: int = HTTPStatus.OK,
        headers: dict[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        self._pieces = pieces
        self.status_code = status_code
        self.media_type = media_type if media_type is not None else self.media_type
        self.background = None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces."""
        answering: Answering = scope[_ANSWERING]
        gone = asyncio.ensure_future(_disconnected(receive))
        pieces = _Pieces(answering, self._pieces, gone)
        try:
            piece = await pieces.following()
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                while piece is not None and not gone.done():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    piece = await pieces.following()
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            pieces.close()


class _Pieces:
    """A generator whose steps run in the threads of a worker."""

    def __init__(self, answering: Answering, pieces: Generator[bytes, None, None], gone: asyncio.Future[None]) -> None:
        self._answering = answering
        self._pieces = pieces
        self._gone = gone
        self._left_alone = False

    async def following(self) -> bytes | None:
        """Return the next piece; None at the end."""
        self._left_alone = True
        found = await self._answering.run(lambda: next(self._pieces, _End.END), self._gone, if_left=self._pieces.close)
        self._left_alone = False
        return None if isinstance(found, _End) else found

    def close(self) -> None:
        """Close it in a thread; one whose step still runs is closed after that."""
        if not self._left_alone:
            self._answering.soon(self._pieces.close)


class _End(Enum):
    END = 0


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def peer(request: Request) -> str:
    """Return the address of whoever sent a request: of the proxy, where there is one; `unix` for a unix socket."""
    return request.client.host if request.client is not None else UNIX


def streamed(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Return any iterator as a generator, which can be closed."""
    yield from pieces
