"""A worker of `webarc serve`: the room's app and the replay's in one event loop, on the supervisor's sockets.

A request is recognised by the socket that it came in on, never by what it says. The supervisor writes the order to
stdin and keeps it open: the end of stdin is the end of the supervisor, and so of the worker. SIGTERM ends it, too:
after the requests that run, in `limits.GRACE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from starlette.types import ASGIApp

from webarcfs.archive.model.errors import Exit, WebarcError, exit_code_of
from webarcfs.archive.system import processes
from webarcfs.room.server.app import Make, RoomApps
from webarcfs.room.server.options import RoomOptions, WorkerOrder
from webarcfs.web.access_log import AccessLog, Logged
from webarcfs.web.connections import (
    HostRules,
    ListenerServer,
    RequestRules,
    SecurityHeaders,
    host_names,
    room_headers,
    shared_headers,
)

#: What the supervisor receives when all listeners are served.
READY = b"ready\n"
#: Seconds between two looks at the connections.
_LOOK = 1.0
_STDIN = 0
_log = logging.getLogger("webarc")


def main(make: Make | None = None) -> None:
    """Serve until the supervisor ends or says so; then end the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends these to the whole group; the supervisor decides
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _log_to_stderr()
    order = WorkerOrder.from_json(_first_line())
    code = int(Exit.DONE)
    try:
        processes.allow_many_files()
        log = AccessLog(order.access_log)
        apps = (make or _make)(order.room)
        gc.freeze()  # what was imported stays: searches for garbage pass over it
        asyncio.run(_serve(order, apps, log))
        log.close()
    except (WebarcError, OSError) as error:
        _log.error("%s", error)
        code = exit_code_of(error)
    except Exception:
        _log.exception("unexpected")
        code = int(Exit.FAILED)
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)  # a handler that still runs, whose time is over, is not waited for


def _make(options: RoomOptions) -> RoomApps:
    from webarcfs.room.server.app import make  # noqa: PLC0415 # tests serve apps of their own, without all of this

    return make(options)


def _first_line() -> str:
    """Read the order, byte by byte: what comes after it is for the event loop."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(_STDIN, 1)
        if not byte:
            os._exit(Exit.DONE)  # the supervisor has died
        line += byte
    return line.decode()


def _log_to_stderr() -> None:
    logging.basicConfig(format="webarc serve: %(message)s", level=logging.WARNING)
    # It warns of each broken request, which anybody may send as often as they like.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


async def _serve(order: WorkerOrder, apps: RoomApps, log: AccessLog) -> None:
    loop = asyncio.get_running_loop()
    to_start = sum(socket_fd is not None for socket_fd in (order.room_socket, order.replay_socket, order.source_socket))

    def started() -> None:
        nonlocal to_start
        to_start -= 1
        if to_start == 0:
            with suppress(BrokenPipeError):
                os.write(order.ready, READY)
            os.close(order.ready)

    served: list[tuple[ListenerServer, socket.socket]] = []
    for app, descriptor in _listeners(order, apps, log):
        served.append((ListenerServer(app, started), socket.socket(fileno=descriptor)))

    def end() -> None:
        loop.remove_reader(_STDIN)  # at its end it can always be read
        for server, _ in served:
            server.should_exit = True

    loop.add_signal_handler(signal.SIGTERM, end)
    loop.add_reader(_STDIN, end)
    serving = asyncio.gather(*(server.serve([listener]) for server, listener in served))
    while not serving.done():
        await asyncio.wait((serving,), timeout=_LOOK)
        for server, _ in served:
            server.held.look(loop.time())
    await serving
    await apps.close()


def _listeners(order: WorkerOrder, apps: RoomApps, log: AccessLog) -> Iterator[tuple[ASGIApp, int]]:
    """Yield each app, within what all requests pass through, and the descriptor of its socket."""
    room = order.room
    names = _names(order.room_socket, room.origin, room.hosts)
    yield _within(apps.room, room_headers(room.replay_origin), log, "room", names), order.room_socket
    if order.replay_socket is not None:
        assert apps.replay is not None, "the app was made for one origin"
        names = _names(order.replay_socket, room.replay_origin, room.hosts)
        yield (
            _within(apps.replay, shared_headers(), log, "replay", names, is_of_script=apps.is_of_script),
            order.replay_socket,
        )
    if order.source_socket is not None:
        assert apps.source is not None, "the app was made for another engine"
        yield apps.source, order.source_socket


def _names(descriptor: int, origin: str, hosts: tuple[str, ...]) -> frozenset[str]:
    """Return the names of a listener. On a unix socket, unless some are given, it is the proxy that knows names."""
    with socket.socket(fileno=os.dup(descriptor)) as listener:
        is_local = listener.family == socket.AF_UNIX
    return frozenset() if is_local and not hosts else host_names(origin, hosts=hosts)


def _within(
    app: ASGIApp,
    headers: dict[str, str],
    log: AccessLog,
    name: str,
    names: frozenset[str],
    *,
    is_of_script: Callable[[str, bytes], bool] | None = None,
) -> ASGIApp:
    ruled = SecurityHeaders(HostRules(RequestRules(app, is_of_script), names), headers)
    return Logged(ruled, log, name) if log.is_on else ruled


if __name__ == "__main__":
    main()
