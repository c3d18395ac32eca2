"""Where a server listens: addresses as options write them, their origins, and the sockets that are bound there.

An origin is scheme, host and port (RFC 6454), as browsers see it: behind a proxy it is the proxy's. It never comes from
a request's Host header.

A unix socket whose server died is replaced; one whose server lives is not. Who may open a unix socket is decided by the
folder that it lies in: the socket itself is open to all, as a port is. systemd may hand over sockets instead
(sd_listen_fds(3)).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from webarcfs.archive.model.errors import Busy, UsageError

# == addresses ========================================================================================================


#: The prefix of an address that is a socket in a folder.
UNIX_PREFIX = "unix:"
#: Longest path of a unix socket (unix(7): sun_path with its NUL).
_UNIX_PATH_BYTES = 107
PORTS = range(0x10000)
_HOST = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


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
        if self.port == 0 or is_wildcard(self.host):
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
        is_host = is_ip(host) and ":" in host
    else:
        is_host = _HOST.fullmatch(host) is not None
    if not is_host or not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) in PORTS):
        raise UsageError(f"{text!r} is no address; write 127.0.0.1:8080, [::1]:8080, 8080 or unix:/run/webarc/room")
    return TcpAddress(host, int(port))


def host_name(text: str) -> str:
    """Return a host name or IP address that a listener may be asked for. Raises UsageError for anything else."""
    host = text.removeprefix("[").removesuffix("]")
    if not (_HOST.fullmatch(host) or is_ip(host)):
        raise UsageError(f"{text!r} is no host name; write archive.example.org, without scheme and port")
    return host


def hosts_of(listen: Address, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a listener: those given, and that by which its address is called."""
    return (*hosts, listen.host) if isinstance(listen, TcpAddress) else hosts


def origin(text: str) -> str:
    """Return an origin as browsers write it: `https://room.example.org`. Raises UsageError for any other URL."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise UsageError(f"{text!r} is no origin; write https://room.example.org") from None
    host = parts.hostname or ""
    is_host = _HOST.fullmatch(host) or is_ip(host)
    more = parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in ("http", "https") or not is_host or more:
        raise UsageError(f"{text!r} is no origin; write https://room.example.org, without a path")
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")


def is_wildcard(host: str) -> bool:
    """Return whether a host means all addresses of a machine."""
    return is_ip(host) and ip_address(host).is_unspecified


def is_loopback(host: str) -> bool:
    """Return whether a host means this machine alone."""
    return host == "localhost" or (is_ip(host) and ip_address(host).is_loopback)


def is_ip(host: str) -> bool:
    """Return whether a host is an IP address, without brackets."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# == listeners ========================================================================================================


#: Connections that wait to be accepted.
BACKLOG = 2048
#: Seconds for which a port of a server that has just ended, with workers that are ending, is asked for again.
PATIENCE = 2.0
#: The first descriptor that systemd hands over.
_FIRST_INHERITED = 3


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    """A socket that listens, and its address with the real port. `made` is the file of a unix socket: device, inode."""

    socket: socket.socket
    address: Address
    made: tuple[int, int] | None = None

    def close(self) -> None:
        """Close it, and remove a unix socket, unless another server has replaced it."""
        self.socket.close()
        if self.made is not None and isinstance(self.address, UnixAddress):
            with contextlib.suppress(OSError):
                if _identity(self.address.path) == self.made:
                    self.address.path.unlink()


def bind(address: Address, patience: float = PATIENCE) -> ListeningSocket:
    """Return a listener at an address. Raises Busy if another server has it, UsageError if no server can have it."""
    end = time.monotonic() + patience
    while True:
        try:
            return _unix(address) if isinstance(address, UnixAddress) else _tcp(address)
        except Busy:
            if time.monotonic() >= end:
                raise
        time.sleep(0.05)


def inherited(environment: Mapping[str, str], process: int) -> dict[str, ListeningSocket]:
    """Return the listeners that systemd handed over, by their names (`FileDescriptorName=`); others by numbers."""
    count = environment.get("LISTEN_FDS", "")
    if environment.get("LISTEN_PID") != str(process) or not count.isdecimal():
        return {}
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    listeners: dict[str, ListeningSocket] = {}
    for number in range(int(count)):
        os.set_inheritable(_FIRST_INHERITED + number, False)
        listener = socket.socket(fileno=_FIRST_INHERITED + number)
        name = names[number] if number < len(names) else ""
        listeners[name if name and name not in listeners else str(number)] = ListeningSocket(
            listener, _address_of(listener)
        )
    return listeners


def _tcp(address: TcpAddress) -> ListeningSocket:
    try:
        family, kind, protocol, _, name = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError(f"{address}: {error.strerror or error}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(name)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _refused(address, error) from None
    return ListeningSocket(listener, TcpAddress(address.host, listener.getsockname()[1]))


def _unix(address: UnixAddress) -> ListeningSocket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _one_at_a_time(address.path.parent):
            _remove_stale(address)
            listener.bind(str(address.path))
            listener.listen(BACKLOG)
            identity = _identity(address.path)
            address.path.chmod(0o666)
    except OSError as error:
        listener.close()
        raise _refused(address, error) from None
    except BaseException:
        listener.close()
        raise
    return ListeningSocket(listener, address, identity)


def _remove_stale(address: UnixAddress) -> None:
    """Remove the socket of a server that has died. Raises Busy if it lives, UsageError for what is no socket."""
    try:
        mode = address.path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UsageError(f"{address.path} is there, and is no socket; it is not removed")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(address.path))
        except ConnectionRefusedError:
            address.path.unlink()
            return
        except OSError as error:  # full backlog, another kind of socket, no permission: somebody may be there
            raise _busy(address, f"; {error.strerror or error}") from None
    raise _busy(address)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process at a time look for a socket in a folder and make it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refused(address: Address, error: OSError) -> Busy | UsageError:
    if error.errno == errno.EADDRINUSE:
        return _busy(address)
    if error.errno == errno.EACCES:
        return UsageError(f"{address}: permission denied; ports below 1024 are for root, or for systemd's sockets")
    return UsageError(f"{address}: {error.strerror or error}")


def _busy(address: Address, more: str = "") -> Busy:
    return Busy(f"{address}: address in use: another server listens there{more}")


def _identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _address_of(listener: socket.socket) -> Address:
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return UnixAddress(Path(os.fsdecode(name)))
    return TcpAddress(name[0], name[1])
