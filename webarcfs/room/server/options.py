"""What `webarc serve` was asked for, and what its apps get to know: addresses, origins, the engine.

An origin is scheme, host and port (RFC 6454), as browsers see it: behind a proxy it is the proxy's. It never comes from
a request's Host header.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from webarcfs.archive.model.errors import UsageError
from webarcfs.web.listeners import PORTS, Address, TcpAddress, UnixAddress, address, hosts_of, is_wildcard

#: `--replay-listen` for one listener that does both.
SAME = "same"


class Engine(StrEnum):
    """What shows archived pages."""

    BUILT_IN = "built-in"
    PYWB = "pywb"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The command line of `webarc serve`. Without `replay_listen` one listener is both. `access_log`: a file or `-`.

    `hosts` are names of the listeners, beside those of their origins.
    """

    archive: Path
    listen: Address
    replay_listen: Address | None = None
    origin: str = ""
    replay_origin: str = ""
    hosts: tuple[str, ...] = ()
    engine: Engine = Engine.BUILT_IN
    workers: int = 2
    access_log: str = ""
    opens_browser: bool = False
    logs_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomOptions:
    """What the apps need to know. An empty `origin` is unknown; an empty `replay_origin` is the room's own.

    `hosts` are names under which both may be asked; without any, and without an origin, it is any.

    `key` signs what workers send each other through readers, and is another one after each start. `pywb` is where that
    is asked, if it is the engine.
    """

    archive: Path
    origin: str = ""
    replay_origin: str = ""
    hosts: tuple[str, ...] = ()
    engine: Engine = Engine.BUILT_IN
    key: bytes = field(default=b"", repr=False)
    pywb: str = ""

    @property
    def has_two_origins(self) -> bool:
        """Whether archived pages have a listener and an origin of their own."""
        return bool(self.replay_origin)


def replay_address(text: str | None, listen: Address, engine: Engine) -> Address | None:
    """Return the address of the replay listener; None where the room's listener is both.

    By default it is the next port of the same host. A unix socket, or all addresses of a machine, have no origin of
    their own by which two listeners could be distinguished, so there it must be asked for. Raises UsageError.
    """
    if text == SAME:
        if engine is Engine.PYWB:
            raise UsageError("pywb runs the scripts of archived pages, so it needs a replay listener of its own")
        return None
    if text is not None:
        asked_address = address(text)
        if asked_address == listen and not (isinstance(asked_address, TcpAddress) and asked_address.port == 0):
            raise UsageError(f"{text} is the room's address; for one listener that does both: --replay-listen {SAME}")
        return asked_address
    if isinstance(listen, UnixAddress) or is_wildcard(listen.host):
        return None
    return replace(listen, port=listen.port + 1 if 0 < listen.port < PORTS[-1] else 0)


def room_options(asked: ServerOptions, room: Address, replay: Address | None, key: bytes) -> RoomOptions:
    """Return what the apps need, for the addresses that were bound. Raises UsageError where origins do not fit."""
    own = asked.origin or room.origin
    replays = (asked.replay_origin or replay.origin) if replay is not None else ""
    if replay is None and asked.replay_origin not in ("", own):
        raise UsageError(f"{asked.replay_origin} needs a listener of its own; give --replay-listen")
    if replay is not None and not (own and replays):
        raise UsageError(
            f"browsers cannot be told by {room} and {replay} where the room and archived pages are; "
            "give --origin and --replay-origin, as https://room.example.org and https://replay.example.org"
        )
    if replay is not None and own == replays:
        raise UsageError(f"{own} cannot be the origin of two listeners; give another --replay-origin")
    if asked.engine is Engine.PYWB and (not replays or _host_of(own) == _host_of(replays)):
        raise UsageError(
            "pywb runs the scripts of archived pages; they must not share a host name, and so cookies, with the room: "
            "give --replay-origin with another host name (another port is not enough)"
        )
    hosts = hosts_of(room, asked.hosts if replay is None else hosts_of(replay, asked.hosts))
    return RoomOptions(
        archive=asked.archive, origin=own, replay_origin=replays, hosts=hosts, engine=asked.engine, key=key
    )


def _host_of(url: str) -> str:
    return urlsplit(url).hostname or ""
