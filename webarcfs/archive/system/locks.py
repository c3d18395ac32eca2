"""Locks between processes, on files, with flock(2) (/Ar-2/).

A lock belongs to an open file description, so threads of one process exclude each other as processes do, and the death
of a process releases its locks. A `Turnstile` lock does not starve its exclusive side: its waiter holds the turnstile,
and later sharers queue behind (without one, overlapping sharers kept a publisher waiting for seconds).
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from webarcfs.archive.model.errors import Busy, Interrupted

_SECONDS_BETWEEN_LOOKS = 0.05


@contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Hold `path` exclusively; waits. Yields the descriptor, open for reading and writing."""
    with _held(path, fcntl.LOCK_EX) as fd:
        yield fd


@contextmanager
def exclusive_or_busy(path: Path, what: str) -> Iterator[int]:
    """Hold `path` exclusively, or raise Busy at once, with the message `what`."""
    try:
        with _held(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as fd:
            yield fd
    except BlockingIOError:
        raise Busy(what) from None


@contextmanager
def exclusive_until(path: Path, stop: threading.Event) -> Iterator[int]:
    """Hold `path` exclusively; waits until `stop` is set, then raises Interrupted. Yields the descriptor."""
    while (fd := try_exclusive(path)) is None:
        if stop.wait(_SECONDS_BETWEEN_LOOKS):
            raise Interrupted(f"stopped while another process was at {path.name}")
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def if_free(path: Path) -> Iterator[bool]:
    """Hold `path` exclusively if it is free; yields whether it was."""
    fd = try_exclusive(path)
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)


def try_exclusive(path: Path) -> int | None:
    """Return a descriptor that holds `path` exclusively until `os.close`, or None when it is not free."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd


class Turnstile:
    """The lock of a domain: many share it, one excludes all, and that one does not starve (/Ar-2.1…2.4/)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turnstile = _turnstile(path)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it together with others; waits while another holds it exclusively, or waits to."""
        with _held(self._turnstile, fcntl.LOCK_SH):
            fd = _open(self._path)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH)
            except BaseException:
                os.close(fd)
                raise
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold it exclusively; waits for its current sharers, but for no later ones."""
        with _held(self._turnstile, fcntl.LOCK_EX), _held(self._path, fcntl.LOCK_EX):
            yield


@lru_cache(maxsize=1000)
def _turnstile(path: Path) -> Path:
    return path.with_name(f".turn-{path.name}")


@contextmanager
def _held(path: Path, how: int) -> Iterator[int]:
    fd = _open(path)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        # Readers without write access to the archive, or to its disk, can still share an existing lock.
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
