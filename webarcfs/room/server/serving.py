"""What `webarc serve` serves: its sockets, and the app of each.

The parent binds the sockets, and starts pywb where that is the engine. It reads no archive and no request. Each worker
makes the apps of the room, of replay if it has a listener of its own, and of what pywb asks.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from webarcfs.archive.system import processes
from webarcfs.archive.system.json_log import log_json
from webarcfs.room.server.options import Engine, RoomOptions, ServerOptions, room_options
from webarcfs.web.access_log import OFF, STDOUT, AccessLog, Logged
from webarcfs.web.connections import (
    HostRules,
    RequestRules,
    RestOfBody,
    SecurityHeaders,
    ServedApps,
    host_names,
    room_headers,
    shared_headers,
)
from webarcfs.web.listeners import PATIENCE, Address, ListeningSocket, TcpAddress, UnixAddress, bind, inherited
from webarcfs.web.workers import WorkerProcesses

if TYPE_CHECKING:
    from webarcfs.room.server.app import Make, RoomApps

# == the parent =======================================================================================================


#: The names of sockets that systemd hands over.
_ROOM, _REPLAY = "room", "replay"


def serve(options: ServerOptions, say: Callable[[str], None] = print, make: Make | None = None) -> None:
    """Serve until a signal. `say` gets to know where, when all is ready. `make` makes other apps than the room's.

    Raises Busy for an address in use, UsageError for one that cannot be had or origins that do not fit, and what
    WorkerProcesses.run raises.
    """
    room, replay = bound(options)
    listeners = [listener for listener in (room, replay) if listener is not None]
    try:
        room_values = room_options(options, room.address, replay.address if replay else None, secrets.token_bytes(32))
        if options.engine is Engine.PYWB:
            listeners.append(bind(TcpAddress("127.0.0.1", 0), 0))
        processes.become_owner(options.archive)
        _log_to_stderr(as_json=options.logs_json)
        with _pywb(options, listeners[-1]) as pywb:
            addresses = [listener.address for listener in listeners]
            log = (_log_path(options), options.logs_json)
            served = partial(_served, replace(room_values, pywb=pywb), log, addresses, make or _make)
            WorkerProcesses(
                served, listeners, options.workers, partial(_tell, options, room_values, room.address, say)
            ).run()
    finally:
        for listener in listeners:
            listener.close()


def bound(options: ServerOptions, patience: float = PATIENCE) -> tuple[ListeningSocket, ListeningSocket | None]:
    """Return the listeners of the options, or those of systemd, which come first. Raises Busy, UsageError."""
    given = inherited(os.environ, os.getpid())
    if given:
        named = given.get(_ROOM) or next(iter(given.values()))
        return named, given.get(_REPLAY) or next(
            (listener for listener in given.values() if listener is not named), None
        )
    room = bind(options.listen, patience)
    try:
        return room, None if options.replay_listen is None else bind(options.replay_listen, patience)
    except BaseException:
        room.close()
        raise


def _log_path(options: ServerOptions) -> str:
    name = options.access_log
    return name if name in ("", STDOUT, OFF) else str(Path(name).absolute())


@contextmanager
def _pywb(options: ServerOptions, source: ListeningSocket) -> Iterator[str]:
    """Run pywb, if it is the engine, and yield where it is asked; it asks `source`."""
    if options.engine is not Engine.PYWB:
        yield ""
        return
    from webarcfs.room.replay.pywb_process import Pywb  # noqa: PLC0415 # one engine of two

    pywb = Pywb(source.socket.getsockname()[1])
    pywb.start()
    try:
        pywb.wait()
        yield pywb.origin
    finally:
        pywb.stop()


def _log_to_stderr(*, as_json: bool) -> None:
    logging.basicConfig(format="webarc serve: %(message)s", level=logging.WARNING)
    if as_json:
        log_json()


def _tell(options: ServerOptions, room_values: RoomOptions, where: Address, say: Callable[[str], None]) -> None:
    replay = f"; archived pages at {room_values.replay_origin}" if room_values.has_two_origins else ""
    say(f"the reading room of {room_values.archive} is at {room_values.origin or where}{replay}")
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if options.opens_browser and has_display and room_values.origin:
        threading.Thread(target=webbrowser.open, args=(f"{room_values.origin}/",), daemon=True).start()


# == a worker =========================================================================================================


def _make(options: RoomOptions) -> RoomApps:
    from webarcfs.room.server.app import make  # noqa: PLC0415 # the parent reads no archive

    return make(options)


def _served(options: RoomOptions, access_log: tuple[str, bool], addresses: Sequence[Address], make: Make) -> ServedApps:
    """Return the apps of a worker, within what all requests pass through, for sockets at these addresses."""
    path, as_json = access_log
    _log_to_stderr(as_json=as_json)
    log = AccessLog(path, as_json=as_json)
    apps = make(options)

    def within(app: ASGIApp, name: str, address: Address, origin: str, headers: dict[str, str]) -> ASGIApp:
        # On a unix socket, unless some are given, it is the proxy that knows names.
        is_open = isinstance(address, UnixAddress) and not options.hosts
        names = frozenset[str]() if is_open else host_names(origin, hosts=options.hosts)
        ruled = RestOfBody(SecurityHeaders(HostRules(app, names), headers))
        return Logged(ruled, log, name) if log.is_on else ruled

    async def close() -> None:
        await apps.close()
        log.close()

    own = RequestRules(apps.room)
    served = [within(own, "room", addresses[0], options.origin, room_headers(options.replay_origin))]
    if options.has_two_origins:
        assert apps.replay is not None, "the app was made for one origin"
        replay = RequestRules(apps.replay, apps.is_of_script)
        served.append(within(replay, "replay", addresses[1], options.replay_origin, shared_headers()))
    if options.pywb:
        assert apps.source is not None, "the app was made for another engine"
        served.append(apps.source)
    return ServedApps(served, close)
