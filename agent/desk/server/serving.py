"""The process of `webarc-agent desk`: one listener, one event loop, a few threads for its handlers.

SIGTERM and SIGINT end it after the requests that run. The key of sessions and tokens is made at its start, and is
nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.acts.records import catalogue_of
from agent.desk.server.app import DeskApp
from agent.desk.server.bodies import Bodies
from agent.desk.server.watching import PATH, Watching
from agent.desk.shared.desk import Desk
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.system import privileges, systemd
from webarcfs.room.answering import Answering
from webarcfs.room.server import listeners
from webarcfs.room.server.access_log import AccessLog, Logged
from webarcfs.room.server.connections import ListenerServer
from webarcfs.room.server.listeners import Listener
from webarcfs.room.server.options import Address, hosts_of
from webarcfs.room.server.request_rules import HostRules, host_names
from webarcfs.room.server.security_headers import SecurityHeaders, room_headers

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

    The room's rules, and that a page asks its own desk alone. A form tells its origin, which the room's pages need not.
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
    """Serve until a signal. `say` is told where.

    Raises Busy for an address in use, and what opening the archive raises.
    """
    # It tells of its own begin and end, and warns of each broken request, which anybody may send.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    given = listeners.inherited(os.environ, os.getpid())
    listener = next(iter(given.values())) if given else listeners.bind(options.listen)
    try:
        owner = options.archive.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            privileges.become(owner.st_uid, owner.st_gid)
        privileges.allow_many_files()
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
        yield f"{error}; nobody can log in until it is mended"
    yield from desk.settings_and_faults()[1]
    try:
        next(Catalogue(desk.archive).records(), None)
    except (WebarcError, OSError) as error:
        yield str(error)


async def _serve(
    desk: Desk, log: AccessLog, listener: Listener, options: DeskOptions, say: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
    names = host_names(desk.origin, hosts=hosts_of(listener.address, options.hosts))
    app, answering = make(desk, log, names)
    where = desk.origin or str(listener.address)

    def started() -> None:
        say(f"the desk of {desk.archive.root} is at {where}")
        for fault in _faults(desk):
            say(f"fault: {fault}")
        systemd.notify("READY=1", f"STATUS=at {where}")
        if options.opens_browser and desk.origin:
            threading.Thread(target=webbrowser.open, args=(f"{desk.origin}/",), daemon=True).start()

    server = ListenerServer(app, started)

    def end() -> None:
        systemd.notify("STOPPING=1")
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
