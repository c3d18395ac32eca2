"""The process of `webarc-agent desk`: one listener, one event loop, a few threads for its handlers.

SIGTERM and SIGINT end it after the requests that run. The key of sessions and tokens is made at its start, and is
nowhere else.

`/events` has the figures of what runs, as server-sent events (HTML, section "Server-sent events"). One look at the jobs
a second serves all who watch, and none is taken while nobody does. It reads files that the jobs write anyway, so the
agent does nothing for it. Who watches gets a whole state at first, and another when it differs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.desk import forms
from agent.desk.pages import jobs
from agent.desk.server.app import Bodies, DeskApp
from agent.desk.visit import Desk
from agent.operations.records import catalogue_of
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordSelection, opened
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.system import processes
from webarcfs.room.answering import Answering, disconnected
from webarcfs.room.server import supervisor
from webarcfs.room.server.access_log import AccessLog, Logged
from webarcfs.room.server.connections import HostRules, ListenerServer, SecurityHeaders, host_names, room_headers
from webarcfs.room.server.options import Address, hosts_of
from webarcfs.room.server.supervisor import ListeningSocket

# == watching =========================================================================================================


PATH = "/events"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
#: Looks at the jobs until the newest snapshot is asked for again.
_EVERY = 5


class Watching:
    """All who watch. For the event loop."""

    def __init__(self, desk: Desk, may_watch: Callable[[Request], bool]) -> None:
        self._desk = desk
        self._may_watch = may_watch
        self._watchers: dict[asyncio.Queue[str], str] = {}  # with what each was sent last
        self._looking: asyncio.Task[None] | None = None
        self._looks = 0
        self._newest = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one who watches, until it goes."""
        allowed = await asyncio.to_thread(self._may_watch, Request(scope))
        if not allowed or len(self._watchers) >= forms.WATCHERS or scope["method"] != "GET":
            status = 403 if not allowed else 503
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        own: asyncio.Queue[str] = asyncio.Queue(4)
        gone = asyncio.ensure_future(disconnected(receive))
        self._watchers[own] = ""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await self._tell(own, gone, scope, send)
        finally:
            self._watchers.pop(own, None)
            gone.cancel()

    async def _tell(self, own: asyncio.Queue[str], gone: asyncio.Future[None], scope: Scope, send: Send) -> None:
        while not gone.done():
            waiting = asyncio.ensure_future(own.get())
            both: set[asyncio.Future[Any]] = {waiting, gone}
            await asyncio.wait(both, timeout=forms.WATCH_QUIET, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                text = f"data: {waiting.result()}\n\n"
            else:
                waiting.cancel()
                # The session may have ended meanwhile.
                if gone.done() or not await asyncio.to_thread(self._may_watch, Request(scope)):
                    break
                text = ": still here\n\n"
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b""})

    async def _look(self) -> None:
        """Look at the jobs as long as somebody watches."""
        while self._watchers:
            watching = list(self._watchers)  # who comes meanwhile has a page that may be newer than this look
            with contextlib.suppress(WebarcError, OSError):
                state = await asyncio.to_thread(self._now)
                for queue in watching:
                    if self._watchers.get(queue, state) == state:  # it has gone, or knows it
                        continue
                    if queue.full():
                        queue.get_nowait()  # who is slow gets the newest state
                    queue.put_nowait(state)
                    self._watchers[queue] = state
            await asyncio.sleep(forms.WATCH_SECONDS)

    def _now(self) -> str:
        archive = self._desk.archive
        state = jobs.describe_jobs(archive, self._desk.history().open)
        if self._looks % _EVERY == 0:
            with opened(archive, Catalogue(archive)) as tables:
                newest = tables.listed(RecordSelection(), limit=1)
            self._newest = newest[0].number if newest else 0
        self._looks += 1
        return json.dumps({**state, "newest": self._newest}, ensure_ascii=False, separators=(",", ":"))


# == serving ==========================================================================================================


_log = logging.getLogger("webarc")
#: Seconds between two looks at the connections.
_LOOK = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskOptions:
    """The command line of `webarc-agent desk`. `origin` is where browsers find it, behind a proxy."""

    archive: Path
    listen: Address
    origin: str = ""
    hosts: tuple[str, ...] = ()
    access_log: str = ""
    opens_browser: bool = False


def desk_headers() -> dict[str, str]:
    """Return what every answer of the desk forbids browsers.

    The room's rules, and that a page asks its own desk alone. A form names its origin, which the room's pages need not.
    """
    headers = room_headers("")
    headers["Content-Security-Policy"] += "; connect-src 'self'"
    headers["Referrer-Policy"] = "same-origin"
    return headers


def make(desk: Desk, log: AccessLog | None = None, names: frozenset[str] = frozenset()) -> tuple[ASGIApp, Answering]:
    """Return the app of a desk, and the threads in which it answers. `names` are its hosts; without any it is any."""
    app = DeskApp(desk)
    answering = Answering(app.error)
    pages = answering.endpoint(app.answer)
    watching = Watching(desk, app.is_known)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        await (watching if scope.get("path") == PATH else pages)(scope, receive, send)

    bounded = Bodies(route, app.takes_file, app.may_send_file)
    ruled: ASGIApp = SecurityHeaders(HostRules(bounded, names), desk_headers())
    return (Logged(ruled, log, "desk") if log is not None and log.is_on else ruled), answering


def serve(options: DeskOptions, say: Callable[[str], None] = print) -> None:
    """Serve until a signal. `say` gets to know where.

    Raises Busy for an address in use, and what opening the archive raises.
    """
    # It reports its own begin and end, and warns of each broken request, which anybody may send.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    given = supervisor.inherited(os.environ, os.getpid())
    listener = next(iter(given.values())) if given else supervisor.bind(options.listen)
    try:
        owner = options.archive.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            processes.become(owner.st_uid, owner.st_gid)
        processes.allow_many_files()
        origin = options.origin or listener.address.origin
        place = options.origin or str(listener.address)
        archive = directory.open_archive(options.archive)
        desk = Desk(archive, secrets.token_bytes(32), origin=origin, place=place)
        threading.Thread(target=_complete, args=(archive,), name="records", daemon=True).start()
        log = AccessLog(options.access_log)
        asyncio.run(_serve(desk, log, listener, options, say))
        log.close()
    finally:
        listener.close()


def _complete(archive: Archive) -> None:
    """Write the records that captures have not got: those of archives that had no agent for a while."""
    try:
        catalogue_of(archive)
    except (WebarcError, OSError) as error:
        _log.warning("%s", error)


def _faults(desk: Desk) -> Iterator[str]:
    """Yield what keeps pages of the desk from being shown: files that people changed by hand, and the catalogue."""
    try:
        desk.persons.all()
    except (WebarcError, OSError) as error:
        yield f"{error}; nobody can log in until it is repaired"
    yield from desk.settings_and_faults()[1]
    try:
        next(Catalogue(desk.archive).records(), None)
    except (WebarcError, OSError) as error:
        yield str(error)


async def _serve(
    desk: Desk, log: AccessLog, listener: ListeningSocket, options: DeskOptions, say: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
    names = host_names(desk.origin, hosts=hosts_of(listener.address, options.hosts))
    app, answering = make(desk, log, names)
    where = desk.origin or str(listener.address)

    def started() -> None:
        say(f"the desk of {desk.archive.root} is at {where}")
        for fault in _faults(desk):
            say(f"fault: {fault}")
        processes.notify("READY=1", f"STATUS=at {where}")
        if options.opens_browser and desk.origin:
            threading.Thread(target=webbrowser.open, args=(f"{desk.origin}/",), daemon=True).start()

    server = ListenerServer(app, started)

    def end() -> None:
        processes.notify("STOPPING=1")
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    serving = asyncio.ensure_future(server.serve([listener.socket]))
    while not serving.done():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait((serving,), timeout=_LOOK)
        server.held.look(loop.time())
    await serving
    await answering.close()
