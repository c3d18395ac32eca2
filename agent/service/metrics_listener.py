"""The listener for monitoring systems: `/metrics`, and `/healthz`, which says whether the agent runs.

It is apart from room and desk, since the figures name publications, and answers on this machine alone unless an
address of another kind is given. One thread serves all connections; the figures are read in another one, so a client
that is slow, or never reads, holds neither. A request has no body, and a connection has one request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

import h11

from webarcfs.archive.system.clocks import Deadline, under
from webarcfs.web.exposition import MetricForm, form_for
from webarcfs.web.listeners import Address, TcpAddress, bind, is_ip, is_loopback

_log = logging.getLogger(__name__)

#: Connections at a time; further ones are closed at once.
CONNECTIONS = 8
#: Bytes of a request's head.
HEAD_BYTES = 16_384
#: Seconds in which a client sends its request; in which the figures are read; in which a client takes the answer.
HEAD_SECONDS, READ_SECONDS, WRITE_SECONDS = 10.0, 60.0, 30.0
#: Bytes that are handed to the kernel at a time.
_PIECE = 1 << 18
_PLAIN = "text/plain; charset=utf-8"
_HELP = b"/metrics has the figures of the archive for monitoring systems; /healthz says whether its agent runs.\n"

_R = TypeVar("_R")
#: Makes the page of figures. It may block.
MakePage = Callable[[MetricForm], bytes]
#: Says whether the agent runs, and nothing is wrong with the archive as a whole.
IsWell = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    body: bytes
    kind: str = _PLAIN


class MetricsListener:
    """Answers at an address, in threads of its own, from `start` until `close`."""

    def __init__(self, address: Address, make_page: MakePage, is_well: IsWell) -> None:
        """Bind the address. Raises Busy if another process has it, UsageError if no process can have it."""
        self._make_page = make_page
        self._is_well = is_well
        self._listener = bind(address)
        self._listener.socket.setblocking(False)
        self.address = self._listener.address
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._thread = threading.Thread(target=self._run, name="metrics listener", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._open = 0

    def start(self) -> None:
        """Answer from now on. The figures are read once before: the first time costs most, with all reports."""
        self._reading.submit(self._read_once)
        self._thread.start()

    def close(self) -> None:
        """Answer no more. An answer that is being sent is cut."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(5)
        self._listener.close()
        self._reading.shutdown(wait=False, cancel_futures=True)

    # -- in its thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            _log.exception("the listener for metrics has ended")
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        accepting = asyncio.ensure_future(self._accept())
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((accepting, stopping), return_when=asyncio.FIRST_COMPLETED)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while True:
            try:
                client, _ = await self._loop.sock_accept(self._listener.socket)
            except OSError as error:  # too many files are open, say
                _log.warning("metrics: %s", error)
                await asyncio.sleep(1)
                continue
            if self._open >= CONNECTIONS:
                client.close()
                continue
            client.setblocking(False)
            self._open += 1
            task = asyncio.ensure_future(self._converse(client))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _converse(self, client: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError, h11.ProtocolError):
                connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
                try:
                    async with asyncio.timeout(HEAD_SECONDS):
                        request = await self._request(client, connection)
                except h11.RemoteProtocolError as error:
                    answer, is_head = _plain(HTTPStatus(error.error_status_hint)), False
                else:
                    if request is None:
                        return
                    answer, is_head = await self._answer(request), request.method == b"HEAD"
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._send(client, connection, answer, is_head=is_head)
        finally:
            client.close()
            self._open -= 1

    async def _request(self, client: socket.socket, connection: h11.Connection) -> h11.Request | None:
        """Return the request; None if the client goes before it is whole."""
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            received = await self._loop.sock_recv(client, 4096)
            if not received:
                return None
            connection.receive_data(received)

    async def _answer(self, request: h11.Request) -> _Answer:
        headers = {name: value.decode("latin-1") for name, value in request.headers}
        if request.method not in (b"GET", b"HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED)
        if not _may_be_asked(headers.get(b"host", ""), self.address):
            return _plain(HTTPStatus.MISDIRECTED_REQUEST)
        path = request.target.partition(b"?")[0]
        form = form_for(headers.get(b"accept", ""))
        work: Callable[[], _Answer]
        if path == b"/metrics":
            work = lambda: _Answer(HTTPStatus.OK, self._make_page(form), form.content_type)  # noqa: E731
        elif path == b"/healthz":
            work = self._health
        elif path == b"/":
            return _Answer(HTTPStatus.OK, _HELP)
        else:
            return _plain(HTTPStatus.NOT_FOUND)
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._loop.run_in_executor(self._reading, _bounded, work)
        except Exception as error:  # the archive is gone, or its catalogue is damaged
            _log.warning("metrics: %s: %s", type(error).__name__, error)
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE)

    def _read_once(self) -> None:
        # What goes wrong here is said to whoever asks first.
        with contextlib.suppress(Exception):
            _bounded(lambda: self._make_page(MetricForm.OPEN_METRICS))

    def _health(self) -> _Answer:
        is_well = self._is_well()
        return _Answer(HTTPStatus.OK, b"ok\n") if is_well else _Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"not ok\n")

    async def _send(self, client: socket.socket, connection: h11.Connection, answer: _Answer, *, is_head: bool) -> None:
        fields = [
            ("Content-Type", answer.kind),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ]
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            fields.append(("Allow", "GET, HEAD"))
        response = h11.Response(status_code=answer.status, headers=fields, reason=answer.status.phrase.encode())
        await self._loop.sock_sendall(client, connection.send(response) or b"")
        if is_head:
            return
        body = memoryview(answer.body)
        for start in range(0, len(body), _PIECE):
            await self._loop.sock_sendall(client, body[start : start + _PIECE])


def _bounded(work: Callable[[], _R]) -> _R:
    with under(Deadline(READ_SECONDS)):
        return work()


def _plain(status: HTTPStatus) -> _Answer:
    return _Answer(status, f"{status} {status.phrase}\n".encode())


def _may_be_asked(host: str, address: Address) -> bool:
    """Return whether a listener of this machine alone is asked by a name that is this machine's.

    Else the page of a site whose name leads to this machine could read the figures, in a browser here.
    """
    if not isinstance(address, TcpAddress) or not is_loopback(address.host):
        return True
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.removeprefix("[").removesuffix("]").lower()
    return name in ("", "localhost", address.host) or is_ip(name)
