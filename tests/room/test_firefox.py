"""The room in Firefox: no page is closed to anybody, as in Chromium (test_look.py)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest

from tests.room.samples import RICH
from tests.room.test_look import ALL, LOOK, rendered
from tests.support.firefox import FIREFOX, Firefox, firefox
from webarcfs.web.connections import room_headers

pytestmark = [
    pytest.mark.store,
    pytest.mark.skipif(not Path(FIREFOX).exists(), reason="needs the Debian package firefox-esr"),
]

_AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text("utf-8")
_RULES = (
    "const done = arguments[arguments.length - 1];"
    "axe.run(document, {iframes: false, resultTypes: ['violations']}).then("
    "result => done(result.violations.map(rule => [rule.id, rule.nodes.slice(0, 3).map(node => node.html)])),"
    "error => done([['axe', [String(error)]]]));"
)
_SCHEME, _DARK, _LIGHT = "layout.css.prefers-color-scheme.content-override", 0, 1
_STOP = "const stop = document.activeElement; return [stop.outerHTML, stop.offsetParent !== null]"
_TAB = "\ue004"
_WINDOW, _PHONE = (1280, 900), (390, 844)
#: All schemes, widths and languages for all pages, or a choice that has each of them.
_ALL_LOOKS = bool(os.environ.get("ROOM_LOOK"))
_LOOKS = [("en", _LIGHT, _WINDOW), ("de", _DARK, _PHONE)]
_MORE = [(code, scheme, size) for code in ("en", "de") for scheme in (_LIGHT, _DARK) for size in (_WINDOW, _PHONE)]
_CHOICE = 5


class _Room(BaseHTTPRequestHandler):
    """Answers with the page that a test chose, and with the room's own files."""

    html = ""

    def do_GET(self) -> None:
        """Answer with the room's real headers."""
        own = LOOK.static_file(self.path)
        body, kind = own or (self.html.encode(), "text/html; charset=utf-8")
        self.send_response(200)
        for name, value in room_headers("").items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with firefox(tmp_path_factory.mktemp("firefox")) as shown:
        yield shown


@pytest.fixture(scope="module")
def room() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Room)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/x"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("code", "scheme", "size"), _MORE if _ALL_LOOKS else _LOOKS)
def test_no_page_is_closed_to_anybody_in_firefox(
    window: Firefox, room: str, code: str, scheme: int, size: tuple[int, int]
) -> None:
    window.set_preference(_SCHEME, scheme)
    window.resize(*size)
    chosen = ALL if _ALL_LOOKS else dict(list(ALL.items())[int(size is _PHONE) :: _CHOICE])
    faults: dict[str, list[Any]] = {}
    for name, page in chosen.items():
        _Room.html = rendered(page, code)
        window.go(room)
        assert window.run("return matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == _DARK)
        window.run(_AXE)
        violations = window.run(_RULES, is_async=True)
        if "in a frame" in name:  # it has the browser's colours, whose dark ground axe takes for white
            violations = [rule for rule in violations if rule[0] != "color-contrast"]
        if window.run("return document.documentElement.scrollWidth > window.innerWidth"):
            violations.append(["wider than the window", []])
        if violations:
            faults[name] = violations
    assert faults == {}


def test_the_first_stop_of_the_keyboard_skips_to_the_page_and_no_stop_is_a_trap(window: Firefox, room: str) -> None:
    window.set_preference(_SCHEME, _LIGHT)
    window.resize(*_WINDOW)
    for name in ("home", "search", "record", "calendar"):
        _Room.html = rendered(RICH[name])
        window.go(room)
        window.press(_TAB)
        first = window.run("return document.activeElement.getAttribute('href')")
        assert first.startswith("#") and window.run("return !!document.querySelector(arguments[0])", first), name
        stops = []
        for _ in range(12):
            window.press(_TAB)
            stops.append(window.run(_STOP))
        assert all(before != after for before, after in pairwise(stops)), name
        assert all(is_seen for _, is_seen in stops), name
