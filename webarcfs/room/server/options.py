"""What `webarc serve` was asked for, and what its apps get to know: addresses, origins, the engine.

An origin is scheme, host and port (RFC 6454), as browsers see it: behind a proxy it is the proxy's. It never comes from
a request's Host header.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from webarcfs.archive.model.errors import UsageError

#: `--replay-listen` for one listener that does both.
SAME = "same"
#: The prefix of an address that is a socket in a folder.
UNIX_PREFIX = "unix:"
#: Longest path of a unix socket (unix(7): sun_path with its NUL).
_UNIX_PATH_BYTES = 107
_PORTS = range(0x10000)
_HOST = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


class Engine(StrEnum):
    """What shows archived pages."""

    BUILT_IN = "built-in"
    PYWB = "pywb"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host or IP address, and a port; 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def origin(self) -> str:
        """The origin of browsers that ask it directly; empty for all addresses of a machine, which have many."""
        if self.port == 0 or _is_wildcard(self.host):
            return ""
        return f"http://{self}".removesuffix(":80")


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A unix socket. Only a proxy can ask it, so it has no origin of its own."""

    path: Path
    origin: str = field(default="", init=False)

    def __str__(self) -> str:
        return f"{UNIX_PREFIX}{self.path}"


Address = TcpAddress | UnixAddress


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrder:
    """What the supervisor sends a worker: the options, and the descriptors of its sockets and of its word that it is
    ready. `source_socket` is that of the listener that pywb asks.
    """

    room: RoomOptions
    room_socket: int
    replay_socket: int | None
    ready: int
    source_socket: int | None = None
    access_log: str

    def to_json(self) -> str:
        """Return it as one line."""
        room = self.room
        fields = {
            "archive": str(room.archive), "origin": room.origin, "replay_origin": room.replay_origin,
            "engine": room.engine, "key": room.key.hex(), "room_socket": self.room_socket,
            "replay_socket": self.replay_socket, "ready": self.ready, "access_log": self.access_log, "pywb": room.pywb,
            "source_socket": self.source_socket, "hosts": room.hosts,
        }  # fmt: skip
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> WorkerOrder:
        """Return what `to_json` wrote."""
        fields = json.loads(text)
        room = RoomOptions(
            archive=Path(fields["archive"]),
            origin=fields["origin"],
            replay_origin=fields["replay_origin"],
            hosts=tuple(fields["hosts"]),
            engine=Engine(fields["engine"]),
            key=bytes.fromhex(fields["key"]),
            pywb=fields["pywb"],
        )
        return cls(
            room=room,
            room_socket=fields["room_socket"],
            replay_socket=fields["replay_socket"],
            ready=fields["ready"],
            access_log=fields["access_log"],
            source_socket=fields["source_socket"],
        )


def address(text: str) -> Address:
    """Return the address of `HOST:PORT`, `[IPV6]:PORT`, `PORT` (of 127.0.0.1) or `unix:PATH`. Raises UsageError."""
    if text.startswith(UNIX_PREFIX):
        path = text.removeprefix(UNIX_PREFIX)
        if not path or "\0" in path or len(path.encode("utf-8", "surrogateescape")) > _UNIX_PATH_BYTES:
            raise UsageError(f"{text!r}: a socket needs a path of at most {_UNIX_PATH_BYTES} bytes")
        return UnixAddress(Path(path).absolute())
    host, _, port = ("127.0.0.1", "", text) if text.isdecimal() else text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        is_host = _is_ip(host) and ":" in host
    else:
        is_host = _HOST.fullmatch(host) is not None
    if not is_host or not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) in _PORTS):
        raise UsageError(f"{text!r} is no address; write 127.0.0.1:8080, [::1]:8080, 8080 or unix:/run/webarc/room")
    return TcpAddress(host, int(port))


def host_name(text: str) -> str:
    """Return a host name or IP address that a listener may be asked for. Raises UsageError for anything else."""
    host = text.removeprefix("[").removesuffix("]")
    if not (_HOST.fullmatch(host) or _is_ip(host)):
        raise UsageError(f"{text!r} is no host name; write archive.example.org, without scheme and port")
    return host


def hosts_of(listen: Address, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a listener: those given, and that by which its address is called."""
    return (*hosts, listen.host) if isinstance(listen, TcpAddress) else hosts


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
    if isinstance(listen, UnixAddress) or _is_wildcard(listen.host):
        return None
    return replace(listen, port=listen.port + 1 if 0 < listen.port < _PORTS[-1] else 0)


def origin(text: str) -> str:
    """Return an origin as browsers write it: `https://room.example.org`. Raises UsageError for any other URL."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise UsageError(f"{text!r} is no origin; write https://room.example.org") from None
    host = parts.hostname or ""
    is_host = _HOST.fullmatch(host) or _is_ip(host)
    more = parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in ("http", "https") or not is_host or more:
        raise UsageError(f"{text!r} is no origin; write https://room.example.org, without a path")
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")


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


def _is_wildcard(host: str) -> bool:
    return _is_ip(host) and ip_address(host).is_unspecified


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
