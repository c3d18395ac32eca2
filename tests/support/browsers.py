"""Debian's Chromium for tests, and a sink for all that leaves the archive: DNS and HTTP, counted.

Run by root, the browser's names are looked up at the sink, so that a look-up alone counts, too; else all names are
mapped to the sink's address, where a connection counts.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.support.namespaces import apart
from tests.support.waiting import PATIENCE

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
#: Chromium's own names, which it looks up whatever page it shows.
_OWN = ("google.com", "googleapis.com", "gstatic.com", "gvt1.com", "google", "local", "localdomain", "arpa")


#: The spare process that it begins for each site that may come next costs as much as that of a page, and so does the
#: process for the suggestions of its address bar.
_LEFT_OUT = "DnsOverHttps,OptimizationHints,SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup"
#: How often a test asks for a state that a page brings about, and the milliseconds between.
_POLLS, _BETWEEN = 1_200, 100
#: Part of a screenshot's pixels that may differ: the text is the same, anti-aliasing is not always.
TOLERANCE = 0.002


def poll(tab: Page, is_reached: Callable[[], object]) -> None:
    """Let a page run until a state is reached. If it never is, return as well: the caller asserts the state."""
    for _ in range(_POLLS):
        if is_reached():
            return
        tab.wait_for_timeout(_BETWEEN)


def shot(tab: Page) -> Image.Image:
    """What a page looks like."""
    return Image.open(BytesIO(tab.screenshot(animations="disabled"))).convert("RGB")


def difference(one: Image.Image, other: Image.Image) -> float:
    """The part of the pixels that differ visibly: by a tenth, in red, green or blue. Both images have the same size."""
    assert one.size == other.size
    red, green, blue = ImageChops.difference(one, other).split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue).point(lambda value: 255 * (value > 24))
    return most.histogram()[255] / (one.width * one.height)


def needs_chromium() -> pytest.MarkDecorator:
    """Skip where Debian's chromium is missing."""
    return pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs the Debian package chromium")


@dataclass
class Sink:
    """Counts what leaves: names that were asked, and connections. It answers every name with its own address."""

    address: str = field(default_factory=lambda: own_address())  # noqa: PLW0108 # it is defined below
    asked: list[str] = field(default_factory=list)
    _sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Sink:
        for kind, port in ((socket.SOCK_DGRAM, 53), (socket.SOCK_STREAM, 80), (socket.SOCK_STREAM, 443)):
            own = socket.socket(socket.AF_INET, kind)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.bind((self.address, port))
            if kind == socket.SOCK_STREAM:
                own.listen()
            self._sockets.append(own)
            work = self._names if kind == socket.SOCK_DGRAM else self._connections
            threading.Thread(target=work, args=(own,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def check_counting(self, tab: Page) -> None:
        """Show a live page, and check that its request is counted."""
        tab.goto("data:text/html,<img src=http://live.test/a.png>")
        poll(tab, lambda: self.asked)
        assert self.asked

    def _names(self, own: socket.socket) -> None:
        with suppress(OSError):
            while True:
                query, sender = own.recvfrom(1024)
                with suppress(IndexError):
                    own.sendto(self._answer(query), sender)

    def _answer(self, query: bytes) -> bytes:
        """The answer to a question for an address: the sink's; Chromium's own names are not known (RFC 1035)."""
        name, end = _name(query)
        question = query[12 : end + 4]
        if name.endswith(_OWN):
            return query[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + question
        self.asked.append(f"dns {name}")
        if query[end : end + 2] != b"\0\1":
            return query[:2] + b"\x81\x80\0\1\0\0\0\0\0\0" + question
        address = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 1, 4) + socket.inet_aton(self.address)
        return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question + address

    def _connections(self, own: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = own.accept()
                with connection:
                    connection.settimeout(0.2)
                    said = b""
                    with suppress(OSError):
                        said = connection.recv(4096)
                    self.asked.append(f"http {said[:200]!r}")


def _name(query: bytes) -> tuple[str, int]:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1").lower())
        at += query[at] + 1
    return ".".join(labels), at + 1


@contextmanager
def chromium(
    folder: Path, *, sink: Sink | None = None, names: Mapping[str, str] | None = None, proxy: str = ""
) -> Iterator[Browser]:
    """Start Chromium. `names` are hosts and where they are found (`127.0.0.1:8000`); all others are the sink's.

    With a proxy, that finds all hosts, also this machine's, and its certificates are taken.
    """
    rules = [f"MAP {host} {place}" for host, place in (names or {}).items()]
    program = CHROMIUM
    if sink is not None and os.geteuid() == 0:
        program = str(_wrapper(folder, sink))
    elif sink is not None:
        rules += [f"MAP * {sink.address}", "EXCLUDE 127.0.0.1"]
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--animation-duration-scale=0"]
    arguments += [f"--disable-features={_LEFT_OUT}"]
    arguments += [f"--host-resolver-rules={', '.join(rules)}"] if rules else []
    arguments += (
        [f"--proxy-server={proxy}", "--proxy-bypass-list=<-loopback>", "--ignore-certificate-errors"] if proxy else []
    )
    with _playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        browser.on("context", lambda context: context.set_default_timeout(1_000 * PATIENCE))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class SharedTab:
    """A tab for all pages, since a new one costs more than what is shown in it.

    `errors` are of the scripts of the page, `loaded` are URLs that came, `saved` those of downloads.
    """

    tab: Page
    errors: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("response", lambda response: self.loaded.append(response.url) if response.ok else None)
        self.tab.on("download", lambda download: self.saved.append(download.url))

    def clear(self) -> Page:
        """Leave the page before, and forget it; return the tab."""
        self.tab.goto("about:blank")
        for noted in (self.errors, self.loaded, self.saved):
            noted.clear()
        return self.tab


_running: list[Playwright] = []


@contextmanager
def _playwright() -> Iterator[Playwright]:
    """Playwright, which runs once at a time: the one that runs, else a new one."""
    if _running:
        yield _running[0]
        return
    with sync_playwright() as playwright:
        _running.append(playwright)
        try:
            yield playwright
        finally:
            _running.clear()


def _wrapper(folder: Path, sink: Sink) -> Path:
    """A program that is Chromium, with its names looked up at the sink: in a namespace of mounts of its own."""
    (folder / "resolv.conf").write_text(f"nameserver {sink.address}\noptions timeout:1 attempts:1\n")
    program = folder / "chromium-of-test"
    script = f'mount --bind "{folder}/resolv.conf" "$(readlink -f /etc/resolv.conf)" && exec {CHROMIUM} "$@"'
    program.write_text(f'#!/bin/sh\nexec {shlex.join(apart(script))} "$@"\n')
    program.chmod(0o755)
    return program


def own_address() -> str:
    """An address of this machine that no other process of the tests uses for its sink."""
    pid = os.getpid()
    return f"127.66.{pid // 250 % 250}.{pid % 250 + 1}"


def can_bind(port: int) -> bool:
    """Whether this user may listen at a port."""
    with socket.socket() as own:
        try:
            own.bind((own_address(), port))
        except OSError:
            return False
    return True
