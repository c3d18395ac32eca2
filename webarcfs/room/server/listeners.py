"""The sockets of the room: bound by the supervisor, shared by its workers, removed at the end.

A unix socket whose server died is replaced; one whose server lives is not. Who may open a unix socket is decided by the
folder that it lies in: the socket itself is open to all, as a port is. systemd may hand over sockets instead
(sd_listen_fds(3)).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.model.errors import Busy, UsageError
from webarcfs.room.server.options import Address, TcpAddress, UnixAddress

#: Connections that wait to be accepted.
BACKLOG = 2048
#: Seconds for which a port of a server that has just ended, with workers that are ending, is asked for again.
PATIENCE = 2.0
#: The first descriptor that systemd hands over.
_FIRST_INHERITED = 3


@dataclass(frozen=True, slots=True)
class Listener:
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


def bind(address: Address, patience: float = PATIENCE) -> Listener:
    """Return a listener at an address. Raises Busy if another server has it, UsageError if no server can have it."""
    end = time.monotonic() + patience
    while True:
        try:
            return _unix(address) if isinstance(address, UnixAddress) else _tcp(address)
        except Busy:
            if time.monotonic() >= end:
                raise
        time.sleep(0.05)


def inherited(environment: Mapping[str, str], process: int) -> dict[str, Listener]:
    """Return the listeners that systemd handed over, by their names (`FileDescriptorName=`); others by numbers."""
    count = environment.get("LISTEN_FDS", "")
    if environment.get("LISTEN_PID") != str(process) or not count.isdecimal():
        return {}
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    found: dict[str, Listener] = {}
    for number in range(int(count)):
        os.set_inheritable(_FIRST_INHERITED + number, False)
        listener = socket.socket(fileno=_FIRST_INHERITED + number)
        name = names[number] if number < len(names) else ""
        found[name if name and name not in found else str(number)] = Listener(listener, _address_of(listener))
    return found


def _tcp(address: TcpAddress) -> Listener:
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
    return Listener(listener, TcpAddress(address.host, listener.getsockname()[1]))


def _unix(address: UnixAddress) -> Listener:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _one_at_a_time(address.path.parent):
            _remove_stale(address)
            listener.bind(str(address.path))
            listener.listen(BACKLOG)
            made = _identity(address.path)
            address.path.chmod(0o666)
    except OSError as error:
        listener.close()
        raise _refused(address, error) from None
    except BaseException:
        listener.close()
        raise
    return Listener(listener, address, made)


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
    found = path.lstat()
    return found.st_dev, found.st_ino


def _address_of(listener: socket.socket) -> Address:
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return UnixAddress(Path(os.fsdecode(name)))
    return TcpAddress(name[0], name[1])
