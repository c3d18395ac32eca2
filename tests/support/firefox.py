"""Debian's Firefox for tests, driven by its own protocol (Marionette): frames of JSON with their length before them.

Playwright drives no Firefox but its own build. Mozilla's client brings a dozen packages for phones and test farms, and
what tests need is a socket and six commands.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tests.support.waiting import PATIENCE, until

FIREFOX = shutil.which("firefox-esr") or "/usr/bin/firefox-esr"
#: Nothing is fetched that a page does not ask for, and a window may be as narrow as a phone.
_PREFERENCES: dict[str, bool | int | str] = {
    "marionette.port": 0,
    "app.normandy.enabled": False,
    "app.update.auto": False,
    "browser.newtabpage.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.prefetch-next": False,
    "security.sandbox.content.level": 0,
    "services.settings.server": "http://127.0.0.1:1/",
    "toolkit.telemetry.enabled": False,
    "ui.prefersReducedMotion": 1,
}


@dataclass
class Firefox:
    """A window of Firefox. Use it in one thread."""

    _socket: socket.socket
    _numbers: int = 0
    _left: bytes = field(default=b"")

    def command(self, name: str, **values: Any) -> Any:
        """The result of a command of the protocol. Raises AssertionError with what Firefox says."""
        self._numbers += 1
        message = json.dumps([0, self._numbers, name, values]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        while True:
            kind, number, error, result = self.message()
            if kind == 1 and number == self._numbers:
                assert error is None, error
                return result

    def message(self) -> Any:
        """The next message: its length, a colon, JSON."""
        while b":" not in self._left:
            self._left += self._received()
        length, _, self._left = self._left.partition(b":")
        while len(self._left) < int(length):
            self._left += self._received()
        whole, self._left = self._left[: int(length)], self._left[int(length) :]
        return json.loads(whole)

    def _received(self) -> bytes:
        received = self._socket.recv(1 << 20)
        assert received, "Firefox has ended"
        return received

    def go(self, url: str) -> None:
        """Show a page, and wait until it is loaded."""
        self.command("WebDriver:Navigate", url=url)

    def run(self, script: str, *values: Any, is_async: bool = False) -> Any:
        """What a script returns, as the body of a function; or, asynchronous, what it hands to its last argument.

        It runs beside the page's own scripts, and no policy of the page forbids it.
        """
        name = "WebDriver:ExecuteAsyncScript" if is_async else "WebDriver:ExecuteScript"
        return self.command(name, script=script, args=[*values], sandbox="default", newSandbox=False)["value"]

    def resize(self, width: int, height: int) -> None:
        """Give the page's viewport a size."""
        rect = self.command("WebDriver:SetWindowRect", width=width, height=height)
        inner = self.run("return [window.innerWidth, window.innerHeight]")
        wanted = {"width": rect["width"] + width - inner[0], "height": rect["height"] + height - inner[1]}
        self.command("WebDriver:SetWindowRect", **wanted)
        until(lambda: self.run("return window.innerWidth") == width, every=0.05)

    def set_preference(self, name: str, value: int | bool) -> None:
        """Change a preference while it runs."""
        kind = "setBoolPref" if isinstance(value, bool) else "setIntPref"
        self._in_chrome(f"Services.prefs.{kind}(arguments[0], arguments[1])", name, value)

    def narrow(self) -> None:
        """Let the window be as narrow as a phone's."""
        self._in_chrome("document.documentElement.style.setProperty('min-width', '0', 'important')")

    def _in_chrome(self, script: str, *values: Any) -> None:
        self.command("Marionette:SetContext", value="chrome")
        try:
            self.command("WebDriver:ExecuteScript", script=script, args=[*values])
        finally:
            self.command("Marionette:SetContext", value="content")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.command("WebDriver:PerformActions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def shot(self) -> Image.Image:
        """What the page looks like."""
        picture = self.command("WebDriver:TakeScreenshot", full=True, hash=False)["value"]
        return Image.open(BytesIO(base64.b64decode(picture))).convert("RGB")

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self.command("WebDriver:Print")["value"])


@contextmanager
def firefox(folder: Path) -> Iterator[Firefox]:
    """Start Firefox without a display; its profile, home and caches lie in the folder."""
    profile, home = folder / "profile", folder / "home"
    for path in (profile, home):
        path.mkdir(parents=True)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines))
    command = [FIREFOX, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--new-instance"]
    with (folder / "firefox.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--profile", str(profile)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, env={**os.environ, "HOME": str(home), "MOZ_CRASHREPORTER_DISABLE": "1"},
        )  # fmt: skip
    try:
        port_file = profile / "MarionetteActivePort"

        def port() -> int:
            assert process.poll() is None, (folder / "firefox.log").read_text(errors="replace")[-2_000:]
            with suppress(OSError, ValueError):
                return int(port_file.read_text())
            return 0

        with socket.create_connection(("127.0.0.1", until(port, every=0.05)), PATIENCE) as connection:
            window = Firefox(connection)
            window.message()  # it says what it is
            window.command("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})
            window.narrow()
            yield window
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
