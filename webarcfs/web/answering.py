"""Runs the room's handlers: plain functions that block, in the threads of a worker, behind ASGI.

A handler takes a request and returns a response. This is the one place where errors become statuses (`http_status_of`),
where a busy worker refuses, and where time is bounded. A client never holds a thread: an answer in pieces is asked for
piece by piece. A handler that only reads works under a deadline: once its time is over, or its client has gone, the
loops of the archive end it, and its thread is free again. Requests that may read much have threads of their own, so
that however many they are, others are answered.

What opens something without a login is taken out of what is logged. Such parts of paths are a reader with rights
(`/~<token>/…`), a preview of the desk (`/s/<token>/…`), a feed (`/feed/<secret>.atom`). They occur in paths, referrers,
and in queries that lead back to a path; a client may escape any of their characters, and what quotes a URL escapes it
once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
import time
import traceback
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
from webarcfs.archive.system.clocks import Deadline, under
from webarcfs.web import limits

# == secret paths, pure ===============================================================================================


def _in_any_form(text: str) -> str:
    """Return an expression for a text whose characters may each be escaped, however often."""
    return "".join(f"(?:{re.escape(char)}|%(?:25)*{ord(char):02x})" for char in text)


_SLASH = _in_any_form("/")
_END = f"{_SLASH}|{_in_any_form('?')}|[&#\\s\"']"
_SECRET = re.compile(
    f"({_SLASH}(?:{_in_any_form('~')}|{_in_any_form('s')}{_SLASH}|{_in_any_form('feed')}{_SLASH}))(?:(?!{_END}).)+",
    re.IGNORECASE | re.DOTALL,
)


#: A person's token, which belongs into no URL, as whoever writes it there may have spelled it.
_TOKEN = re.compile(f"({_in_any_form('webarc_')})(?:[0-9A-Za-z]|%(?:25)*[0-9a-f]{{2}}){{20,}}", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Return a text with `-` in place of each secret."""
    return _TOKEN.sub(r"\1-", _SECRET.sub(r"\1-", text))


# == answering ========================================================================================================


_T = TypeVar("_T")

#: Answers a request. It runs in any thread of the worker, several at a time; it may raise the errors of the family.
Handler = Callable[[Request], Response]
#: Where a request's scope has the error that its answer is about, if it is one of ours: for those who may mend it.
REASON = "webarcfs.reason"
#: Header of an answer to a script that has another URL than it asked for: the names of the parameters that differ.
CHANCE = "X-Archive-Chance"
#: Makes the page of an error. The error is None where readers learn nothing but the status: they learn what is wrong
#: with what they asked, and that it took too long. It must not block.
RenderError = Callable[[Request, HTTPStatus, WebarcError | None], Response]
#: Answers an error by itself, status and all, in place of that page: for programs. It must not block.
AnswerError = Callable[[Request, Exception], Response]

#: Where an endpoint leaves itself for the responses that need its threads.
_LANE = "webarc.lane"
#: Methods whose handlers change nothing, so that they may be ended anywhere.
_READING = frozenset({"GET", "HEAD"})
_log = logging.getLogger("webarc")


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error)).rstrip("\n")


def plain_error(_request: Request, status: HTTPStatus, _error: WebarcError | None) -> Response:
    """Return an error in plain text, without a page."""
    return PlainTextResponse(f"{status} {status.phrase}\n", status)


class Answering:
    """The threads of a worker, and the page of its errors. `close` it after the last request."""

    def __init__(self, render_error: RenderError = plain_error) -> None:
        self._render_error = render_error
        self._usual = _Lane(limits.THREADS, limits.WAITING)
        self._costly = _Lane(limits.COSTLY_THREADS, limits.COSTLY_WAITING)
        self._took_too_long = 0

    @property
    def at_work(self) -> int:
        """How many threads work, for requests that are answered or were given up."""
        return self._usual.at_work + self._costly.at_work

    def endpoint(
        self, handler: Handler, *, is_costly: bool = False, answer_error: AnswerError | None = None
    ) -> Endpoint:
        """Return the ASGI app of a handler, for a `Route`. `is_costly`: its requests may read much."""
        return Endpoint(self, handler, self._costly if is_costly else self._usual, answer_error)

    def error_page(self, request: Request, error: Exception, answer_error: AnswerError | None = None) -> Response:
        """Return the answer to a request whose handler raised an error. What readers cannot mend is logged."""
        self.log(request, error)
        status = http_status_of(error)
        request.scope[REASON] = error if isinstance(error, WebarcError | OSError) else None
        if answer_error is not None:
            return answer_error(request, error)
        is_theirs = status < HTTPStatus.INTERNAL_SERVER_ERROR or isinstance(error, TookTooLong)
        shown_error = error if isinstance(error, WebarcError) and is_theirs else None
        try:
            response = self._render_error(request, status, shown_error)
        except Exception as second:
            _log.error("%s", without_secrets(f"the page of an error could not be made\n{_traceback(second)}"))
            response = plain_error(request, status, None)
        if isinstance(error, Busy):
            response.headers["Retry-After"] = str(limits.RETRY_SECONDS)
        return response

    def log(self, request: Request, error: Exception) -> None:
        """Log an error that readers cannot mend. Answers that took too long are counted."""
        path = request.url.path
        if not isinstance(error, WebarcError | OSError):
            _log.error("%s", without_secrets(f"unexpected, at {path!r}\n{_traceback(error)}"))
        elif isinstance(error, TookTooLong):
            self._took_too_long += 1
            number = self._took_too_long
            _log.warning("%s", without_secrets(f"took too long, number {number} of this process, at {path!r}: {error}"))
        elif http_status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.warning("%s", without_secrets(f"{type(error).__name__} at {path!r}: {error}"))

    async def close(self) -> None:
        """Take no further work. What runs is not waited for: the worker has waited."""
        self._usual.close()
        self._costly.close()


class _Lane:
    """Some threads, and the work that waits for them."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="room")
        self._most = threads + waiting
        self._under_way = 0
        self._lock = threading.Lock()
        self.at_work = 0

    async def run(
        self,
        work: Callable[[], _T],
        gone: asyncio.Future[None],
        *,
        deadline: Deadline | None = None,
        if_left: Callable[[], None] | None = None,
    ) -> _T:
        """Return what `work` returns, in a thread. `gone` is done when the client has gone.

        `deadline` bounds the work; it is cancelled when nobody waits any more. `if_left` is called, in a thread, when
        work has ended for which nobody waits any more. Raises Busy with too many waiting (but not for work that may be
        left, which is part of an answer), TookTooLong after the deadline, else after `limits.SECONDS`, Interrupted if
        the client has gone.
        """
        if self._under_way >= self._most and if_left is None:
            raise Busy("too many requests at a time")
        seconds = limits.SECONDS if deadline is None else deadline.seconds
        running = self._threads.submit(self._worked, work, deadline)
        self._under_way += 1
        loop = asyncio.get_running_loop()
        running.add_done_callback(lambda _: self._ended(loop))
        waiting = asyncio.wrap_future(running)
        try:
            await asyncio.wait((waiting, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            if gone.done():
                raise Interrupted("the client has gone")
            raise TookTooLong(f"not answered within {seconds:g} s; ask for less")
        finally:
            if not waiting.done():
                if deadline is not None:
                    deadline.cancel()
                waiting.cancel()  # what has not begun never will
                if if_left is not None:
                    last = if_left
                    running.add_done_callback(lambda _: self.soon(last))

    def soon(self, work: Callable[[], None]) -> None:
        """Call `work` in a thread, and do not wait."""
        with contextlib.suppress(RuntimeError):  # the worker ends
            self._threads.submit(work)

    def close(self) -> None:
        """Take no further work."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _worked(self, work: Callable[[], _T], deadline: Deadline | None) -> _T:
        with self._lock:
            self.at_work += 1
        try:
            with under(deadline):
                return work()
        finally:
            with self._lock:
                self.at_work -= 1

    def _ended(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, the worker ends
            loop.call_soon_threadsafe(self._count_down)

    def _count_down(self) -> None:
        self._under_way -= 1


def _rest_of_step(seconds: float) -> float:
    """Return how long an answer is held that was made in so many seconds: until the step that it is in has ended."""
    return -seconds % limits.ABSENT_STEP_SECONDS


async def _at_a_step(response: Response, asked: float) -> None:
    """Hold the answer that something is not there: its time must not distinguish it from what is not shown."""
    if response.status_code == HTTPStatus.NOT_FOUND:
        await asyncio.sleep(_rest_of_step(time.monotonic() - asked))


class Endpoint:
    """A handler as an ASGI app."""

    def __init__(
        self, answering: Answering, handler: Handler, lane: _Lane, answer_error: AnswerError | None = None
    ) -> None:
        self._answering = answering
        self._handler = handler
        self._lane = lane
        self._answer_error = answer_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope)
        scope[_LANE] = self._lane
        deadline = Deadline(limits.SECONDS) if request.method in _READING else None
        gone = asyncio.ensure_future(disconnected(receive))
        asked = time.monotonic()
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            response = await self._lane.run(lambda: self._handler(request), gone, deadline=deadline)
            gone.cancel()  # the response looks for itself
            await _at_a_step(response, asked)
            await response(scope, receive, note)
        except Interrupted:  # nobody is there to be answered
            return
        except Exception as error:
            if begun:  # too late for another status: the connection is cut, so that the answer is not taken for whole
                self._answering.log(request, error)
                raise
            page = self._answering.error_page(request, error, self._answer_error)
            await _at_a_step(page, asked)
            await page(scope, receive, note)
        finally:
            gone.cancel()


class StreamedAnswer(Response):
    """An answer in pieces, each made in a thread when the client has taken those before it.

    `pieces` is a generator whose steps may run in different threads, never two at a time. Between two steps it holds
    nothing that others wait for: no transaction, no lock. It is closed at the end, or when the client has gone. An
    error before the first piece becomes the error's page. All steps together may work for `limits.STREAM_SECONDS`.
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
        gone = asyncio.ensure_future(disconnected(receive))
        pieces = _Pieces(scope[_LANE], self._pieces, gone)
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

    def __init__(self, lane: _Lane, pieces: Generator[bytes, None, None], gone: asyncio.Future[None]) -> None:
        self._lane = lane
        self._pieces = pieces
        self._gone = gone
        self._seconds_left = limits.STREAM_SECONDS
        self._left_alone = False

    async def following(self) -> bytes | None:
        """Return the next piece; None at the end."""
        if self._seconds_left <= 0:
            raise TookTooLong(f"the response takes more than {limits.STREAM_SECONDS:g} s of work; ask for less")
        self._left_alone = True
        piece = await self._lane.run(
            self._step, self._gone, deadline=Deadline(limits.SECONDS), if_left=self._pieces.close
        )
        self._left_alone = False
        return None if isinstance(piece, _End) else piece

    def close(self) -> None:
        """Close it in a thread; one whose step still runs is closed after that."""
        if not self._left_alone:
            self._lane.soon(self._pieces.close)

    def _step(self) -> bytes | _End:
        begin = time.monotonic()
        try:
            return next(self._pieces, _End.END)
        finally:
            self._seconds_left -= time.monotonic() - begin


class _End(Enum):
    END = 0


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def peer(request: Request) -> str:
    """Return the address of whoever sent a request: of the proxy, where there is one; `unix` for a unix socket."""
    return request.client.host if request.client is not None else UNIX


def streamed(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Return any iterator as a generator, which can be closed."""
    yield from pieces
