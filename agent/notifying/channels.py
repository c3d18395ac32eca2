"""The ways by which people are told: `sendmail`, requests to URLs as Standard Webhooks has them, a program of theirs.

Each try has a bound of time. A program that is still running then is killed with all that it started. Nothing is asked
at a private address unless the settings say so: the address that was judged is the one that is connected to, and no
redirect is followed. What a receiver answers is kept as one short line.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import urlsplit

import webarcfs
from agent.crawl.http_connections import Connector, FetchBounds, Proxies
from agent.crawl.http_fetcher import HttpFetcher, HttpRequest
from agent.crawl.scope import host_of, is_private_host
from agent.crawl.secrets import read_private
from agent.crawl.vocabulary import Reason
from agent.notifying.changes import Notification
from agent.notifying.messages import mail, one_line, payload
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import NotifySettings, Settings
from webarcfs.archive.model.errors import CrawlFailed, FetchFailed, Interrupted
from webarcfs.archive.model.urls import domain_of

#: Seconds that a program or a request may take.
PROGRAM_SECONDS, REQUEST_SECONDS = 60.0, 30.0
_SECONDS_BETWEEN_LOOKS = 0.05
_LONGEST_ANSWER = 300
#: Bytes of a response's body, and of what a program says.
_MOST_BYTES = 1 << 16
_GONE = 410
_SECRET = re.compile(r"whsec_([A-Za-z0-9+/]+={0,2})")
_LEAST_SECRET = 16
#: A program ends with this process, if that is killed while it is told (setpriv(1)).
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
_NOT_FOR_CHILDREN = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a try: whether the receiver has it, else whether another try makes sense, and a line about it."""

    is_taken: bool
    text: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends: the archive's name and its machine, and the mail address of its user."""

    archive: str
    host: str
    address: str

    @classmethod
    def of(cls, archive: Archive, settings: NotifySettings) -> Sender:
        """Return the sender of an archive."""
        host = socket.gethostname() or "localhost"
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:  # a number without a name, common in containers
            user = "webarc"
        domain = re.sub(r"[^A-Za-z0-9.-]", "-", host).strip(".-") or "localhost"
        return cls(archive.root.name or "webarc", host, settings.mail_from or f"{user}@{domain}")


class Channel(ABC):
    """A way to tell. `target` names it on the disk and in the log; it has no secret, as a URL's path may be one."""

    target: str

    @abstractmethod
    def send(self, notification: Notification, stop: threading.Event) -> Reply:
        """Try once. Raises Interrupted if `stop` is set meanwhile; then the receiver may have it."""

    @abstractmethod
    def faults(self) -> Iterator[str]:
        """Yield what is wrong with it that can be told without a try."""


def channels_of(archive: Archive, settings: Settings) -> list[Channel]:
    """Return the ways that the settings name."""
    notify, sender = settings.notify, Sender.of(archive, settings.notify)
    channels: list[Channel] = []
    if notify.mail:
        channels.append(MailChannel(notify, sender))
    channels += [WebhookChannel(url, settings, sender) for url in dict.fromkeys(notify.webhook)]
    if notify.command:
        channels.append(CommandChannel(notify.command, sender))
    return channels


def faults_of(archive: Archive, settings: Settings) -> list[str]:
    """Return what is wrong with the ways that the settings name, a line each, without trying them."""
    return [fault for channel in channels_of(archive, settings) for fault in channel.faults()]


# == programs =========================================================================================================


class CommandChannel(Channel):
    """A program that gets each notification as JSON. Exit code 0: it has it."""

    target = "command"

    def __init__(self, command: Sequence[str], sender: Sender) -> None:
        self._command = command
        self._sender = sender

    def send(self, notification: Notification, stop: threading.Event) -> Reply:
        """Run it once."""
        content = json.dumps(payload(notification, self._sender.archive, self._sender.host), ensure_ascii=False)
        return run_program(self._command, content.encode("utf-8", "replace") + b"\n", stop)

    def faults(self) -> Iterator[str]:
        """Yield that the program is missing."""
        yield from _program_faults(self._command[0])


class MailChannel(Channel):
    """`sendmail`, with the receivers on its command line: no header of a mail names further ones."""

    target = "mail"

    def __init__(self, settings: NotifySettings, sender: Sender) -> None:
        self._settings = settings
        self._sender = sender

    def send(self, notification: Notification, stop: threading.Event) -> Reply:
        """Hand a mail over once."""
        receivers = self._settings.mail
        command = [self._settings.sendmail, "-i"]
        command += ["-f", self._settings.mail_from] if self._settings.mail_from else []
        sender = self._sender
        content = mail(notification, sender.archive, sender.host, sender.address, receivers)
        return run_program([*command, "--", *receivers], content, stop)

    def faults(self) -> Iterator[str]:
        """Yield that the program is missing."""
        yield from _program_faults(self._settings.sendmail)


def _program_faults(program: str) -> Iterator[str]:
    if shutil.which(program) is None:
        yield f"there is no program {program}, or it may not be run"


def run_program(
    command: Sequence[str], content: bytes, stop: threading.Event, seconds: float = PROGRAM_SECONDS
) -> Reply:
    """Run a program with `content` on its standard input; kill it, and all that it started, after so many seconds.

    What it left running when it ended goes on: mail programs deliver so.

    Raises Interrupted if `stop` is set.
    """
    # Files, not pipes: a program that reads nothing, or writes without an end, holds nobody up.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(content)
        given.seek(0)
        try:
            process = subprocess.Popen(
                [*_WITH_US, *command] if shutil.which(command[0]) else list(command),
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd="/",
                env={name: value for name, value in os.environ.items() if name not in _NOT_FOR_CHILDREN},
                start_new_session=True,
            )
        except OSError as error:
            return Reply(False, f"it could not be started: {error.strerror}")
        except ValueError as error:
            return Reply(False, f"it could not be started: {error}")
        code = None
        try:
            code = _wait(process, stop, said, seconds)
        finally:
            if code is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        words = _last_words(said)
    if code is None:
        return Reply(False, f"it had not ended after {seconds:g} s, or wrote too much, and was killed")
    if code == 0:
        return Reply(True, "taken")
    how = f"it was killed by signal {-code}" if code < 0 else f"it ended with {code}"
    return Reply(False, f"{how}: {words}" if words else how)


def _wait(process: subprocess.Popen[bytes], stop: threading.Event, said: BinaryIO, seconds: float) -> int | None:
    """Return the exit code; None if the process took too long, or wrote too much."""
    end = time.monotonic() + seconds
    while True:
        try:
            return process.wait(_SECONDS_BETWEEN_LOOKS)
        except subprocess.TimeoutExpired:
            if stop.is_set():
                raise Interrupted("stopped while a program was told") from None
            if time.monotonic() > end or os.fstat(said.fileno()).st_size > _MOST_BYTES:
                return None


def _last_words(said: BinaryIO) -> str:
    size = os.fstat(said.fileno()).st_size
    said.seek(max(0, min(size, _MOST_BYTES) - _LONGEST_ANSWER))
    return one_line(said.read(_LONGEST_ANSWER).decode("utf-8", "replace"), _LONGEST_ANSWER)


# == requests =========================================================================================================


class WebhookChannel(Channel):
    """A URL that gets each notification by POST, signed by the secret of the settings. A status of 2xx: it has it."""

    def __init__(self, url: str, settings: Settings, sender: Sender) -> None:
        self._url = url
        self._notify = settings.notify
        self._crawl = settings.crawl
        self._sender = sender
        self._host = host_of(domain_of(url))
        self.target = f"webhook {urlsplit(url).netloc} {hashlib.sha256(url.encode()).hexdigest()[:8]}"

    def send(self, notification: Notification, stop: threading.Event) -> Reply:
        """Send one request."""
        if stop.is_set():
            raise Interrupted("stopped before a URL was asked")
        content = json.dumps(payload(notification, self._sender.archive, self._sender.host)).encode()
        try:
            fields = self._fields(notification.id, int(time.time()), content)
        except CrawlFailed as error:
            return Reply(False, str(error))
        bounds = FetchBounds(REQUEST_SECONDS, REQUEST_SECONDS, _MOST_BYTES, public=not self._notify.private_addresses)
        proxies = Proxies(self._crawl.proxy, os.environ)
        fetcher = HttpFetcher(Connector(ca=self._crawl.ca, bind=self._crawl.bind, proxies=proxies))
        try:
            response = fetcher.fetch(HttpRequest(self._url, "POST", fields, content), bounds)
        except FetchFailed as failure:
            return Reply(False, self._why(failure))
        finally:
            fetcher.close()
        if 200 <= response.status < 300:
            return Reply(True, f"taken ({response.status})")
        if 300 <= response.status < 400:
            return Reply(False, f"it answered {response.status}; redirects are not followed")
        return Reply(False, f"it answered {response.status}", is_final=response.status == _GONE)

    def faults(self) -> Iterator[str]:
        """Yield that the address is private, or that the secret cannot be used."""
        if is_private_host(self._host) and not self._notify.private_addresses:
            yield f"the webhook {self._host} is at a private address; `private_addresses = true` allows it"
        try:
            self._keys()
        except CrawlFailed as error:
            yield str(error)

    def _fields(self, event: str, at: int, content: bytes) -> tuple[tuple[str, str], ...]:
        fields = [
            ("User-Agent", f"webarcfs/{webarcfs.__version__}"),
            ("Content-Type", "application/json"),
            ("webhook-id", event),
            ("webhook-timestamp", str(at)),
        ]
        keys = self._keys()
        if keys:
            fields.append(("webhook-signature", " ".join(signature(key, event, at, content) for key in keys)))
        return tuple(fields)

    def _keys(self) -> list[bytes]:
        """Return the keys of the file of secrets. Raises CrawlFailed if others may read it, or it has none."""
        path = self._notify.webhook_secret
        if not path:
            return []
        keys = [key_of(line) for line in read_private(path).splitlines() if line.strip()]
        if not keys or None in keys:
            raise CrawlFailed(f"{path} has no secret: `whsec_` and the base64 of at least {_LEAST_SECRET} bytes a line")
        return [key for key in keys if key is not None]

    def _why(self, failure: FetchFailed) -> str:
        if Reason.PRIVATE_ADDRESS in failure.note.split(","):
            return "it is at a private address, which `private_addresses = true` allows"
        return f"it was not reached: {failure.note}"


def key_of(line: str) -> bytes | None:
    """Return the key of a secret; None if it is none."""
    match = _SECRET.fullmatch(line.strip())
    if match is None:
        return None
    try:
        key = base64.b64decode(match[1], validate=True)
    except binascii.Error:
        return None
    return key if len(key) >= _LEAST_SECRET else None


def signature(key: bytes, event: str, at: int, content: bytes) -> str:
    """Return the signature of a request as Standard Webhooks has it."""
    signed = hmac.digest(key, f"{event}.{at}.".encode() + content, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"
