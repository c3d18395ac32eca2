"""The access log: a line a request, in the combined format of Apache and nginx, with its duration and its listener.

    192.0.2.7 - - [21/Nov/2026:03:00:00 +0100] "GET /search?q=x HTTP/1.1" 200 5120 "-" "Mozilla/5.0" 0.012 room

A line ends with `chance:` and names of parameters where a script was given another URL, which differs from the one that
it asked for in the values of these alone (`webarcfs.room.replay.chance_parameters`).

Lines are written by a thread, since the reader of a pipe may be slow; if it is far behind, lines are left out and
counted. A reader's name is never written, nor a token that means one.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webarcfs.archive.system.json_log import json_line, message_line, timestamp
from webarcfs.web.answering import CHANCE, without_secrets

#: `--access-log` for stdout, and for none.
STDOUT = "-"
OFF = "off"
#: Lines that wait for the writer.
_WAITING = 10_000
#: Bytes that are written at a time, about: a pipe takes so many without mixing those of several processes (pipe(7)).
_BATCH = 3_000
#: Longest value of a request in a line.
_LONGEST = 8_192
_CHANCE = CHANCE.lower().encode()
_UNSAFE = re.compile(r'[^\x20-\x7e]|["\\]')
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """A request that was answered. `at` is seconds since 1970; `status` is 0 where nothing was sent."""

    peer: str
    at: float
    method: str
    target: str
    version: str
    status: int
    size: int
    referrer: str
    agent: str
    seconds: float
    listener: str
    chance: str = ""


def line(access: AnsweredRequest) -> str:
    """Return the line of a request, without its end. Nothing that a client sends can end it, or a field of it."""
    request = escaped(f"{access.method} {access.target} HTTP/{access.version}")
    return (
        f"{escaped(access.peer) or '-'} - - [{_time(access.at)}] "
        f'"{request}" {access.status or "-"} {access.size or "-"} '
        f'"{escaped(access.referrer) or "-"}" "{escaped(access.agent) or "-"}" '
        f"{access.seconds:.3f} {access.listener}" + (f" chance:{escaped(access.chance)}" if access.chance else "")
    )


def as_object(access: AnsweredRequest) -> str:
    """Return the line of a request as JSON, without its end; without tokens."""
    values: dict[str, object] = {
        "time": timestamp(access.at),
        "level": "info",
        "message": without_secrets(f"{access.method} {access.target}"[:_LONGEST]),
        "listener": access.listener,
        "peer": access.peer,
        "method": access.method,
        "target": without_secrets(access.target[:_LONGEST]),
        "version": access.version,
        "status": access.status or None,
        "bytes": access.size,
        "referrer": without_secrets(access.referrer[:_LONGEST]),
        "agent": without_secrets(access.agent[:_LONGEST]),
        "seconds": round(access.seconds, 3),
    }
    return json_line(values | ({"chance": access.chance[:_LONGEST]} if access.chance else {}))


def escaped(text: str) -> str:
    r"""Return a value in which quotes, backslashes, control characters and all but ASCII are `\xHH`; without tokens."""
    text = without_secrets(text[:_LONGEST])
    return _UNSAFE.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match[0].encode("latin-1", "replace")), text)


def _time(at: float) -> str:
    local = time.localtime(at)
    month = _MONTHS[local.tm_mon - 1]  # not by the locale
    return time.strftime(f"%d/{month}/%Y:%H:%M:%S %z", local)


class AccessLog:
    """Writes lines to stdout or appends them to a file, which workers share. Without a name, or `off`: none."""

    def __init__(self, name: str, *, as_json: bool = False) -> None:
        """Open it. Raises OSError."""
        self._as_json = as_json
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._thread: threading.Thread | None = None
        if name in ("", OFF):
            return
        file = sys.stdout.buffer if name == STDOUT else Path(name).open("ab")  # noqa: SIM115 # until the process ends
        self._thread = threading.Thread(target=self._write, args=(file,), name="access log", daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether lines are written."""
        return self._thread is not None

    def add(self, access: AnsweredRequest) -> None:
        """Write a line, soon."""
        try:
            self._lines.put_nowait(as_object(access) if self._as_json else line(access))
        except queue.Full:
            self._left_out += 1

    def close(self, patience: float = 2.0) -> None:
        """Write what there is, for a while."""
        if self._thread is not None:
            try:
                self._lines.put(None, timeout=patience)
            except queue.Full:
                return
            self._thread.join(patience)

    def _write(self, file: BinaryIO) -> None:
        goes_on = True
        while goes_on:
            batch = [self._lines.get()]
            text = ""
            while True:
                text += f"{batch[-1]}\n" if batch[-1] is not None else ""
                if self._lines.empty() or batch[-1] is None or len(text) > _BATCH:
                    break
                batch.append(self._lines.get())
            goes_on = batch[-1] is not None
            if self._left_out:
                count, self._left_out = self._left_out, 0
                message = f"{count} requests are not listed: the log could not be written fast enough"
                text += (message_line(message, logging.WARNING) if self._as_json else f"# {message}") + "\n"
            try:
                file.write(text.encode("ascii"))
                file.flush()
            except OSError:  # a full disk, a reader that has gone: readers of the archive are answered all the same
                self._left_out += len(batch)


class Logged:
    """An ASGI app that logs the requests of another."""

    def __init__(self, app: ASGIApp, log: AccessLog, listener: str) -> None:
        self._app = app
        self._log = log
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; log it when it has ended, however."""
        if scope["type"] != "http":
            return
        status = size = 0
        chance = ""
        at, start = time.time(), time.monotonic()

        async def count(message: Message) -> None:
            nonlocal status, size, chance
            if message["type"] == "http.response.start":
                status = message["status"]
                chance = _value(message.get("headers", ()), _CHANCE)
            elif scope["method"] != "HEAD":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, count)
        finally:
            headers = scope["headers"]
            access = AnsweredRequest(
                peer=(scope.get("client") or ("unix",))[0],
                at=at,
                method=scope["method"],
                target=target(scope),
                version=scope["http_version"],
                status=status,
                size=size,
                referrer=_value(headers, b"referer"),
                agent=_value(headers, b"user-agent"),
                seconds=time.monotonic() - start,
                listener=self._listener,
                chance=chance,
            )
            self._log.add(access)


def target(scope: Scope) -> str:
    """Return path and query of a request as they were sent."""
    raw: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    return (raw + b"?" + query if query else raw).decode("latin-1")


def _value(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def is_terminal() -> bool:
    """Return whether stdout is a terminal, where a log is in the way."""
    try:
        return os.isatty(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
