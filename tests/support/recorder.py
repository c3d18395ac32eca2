"""A recorder that is not ours: Chromium through warcprox, which writes what passes through it into WARC files.

warcprox (GPL) is a program of its own in `.venv-warcprox` (`make warcprox`); nothing here imports it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, FrameLocator, Page

from tests.support.browsers import chromium
from tests.support.built_apps import BuiltApp
from tests.support.sources import ROOT
from tests.support.waiting import PATIENCE, eventually

WARCPROX = ROOT / ".venv-warcprox" / "bin" / "python"
#: No option of warcprox lets it fetch from loopback. With RECORDED_HOSTS (JSON: host → port of loopback), it fetches
#: from these hosts and from no others, whatever name the browser asks for.
_PROGRAM = """
import json, os, socket
from warcprox import main, warcproxy
warcproxy.WarcProxyHandler.allow_localhost = True
if "RECORDED_HOSTS" in os.environ:
    ports = json.loads(os.environ["RECORDED_HOSTS"])
    look_up = socket.getaddrinfo
    def look_up_recorded(host, port, *rest, **named):
        name = host.decode() if isinstance(host, bytes) else host
        if name == "127.0.0.1":
            return look_up(name, port, *rest, **named)
        if name not in ports:
            raise socket.gaierror(socket.EAI_NONAME, "not recorded")
        return look_up("127.0.0.1", ports[name], *rest, **named)
    socket.getaddrinfo = look_up_recorded
main.main()
"""


@contextmanager
def warcprox(folder: Path, *options: str, hosts: Mapping[str, int] | None = None) -> Iterator[str]:
    """Run a proxy that writes WARC files into a folder; yield its address. `hosts` are all that it can reach, if given.

    Files are complete when the context ends. The process is gone then, whatever happened.
    """
    if not WARCPROX.exists():
        pytest.skip("needs `make warcprox`")
    program = [str(WARCPROX), "-c", _PROGRAM, "-b", "127.0.0.1", "-p", "0", "-d", str(folder), *options]
    log = folder / "warcprox.log"
    environment = dict(os.environ)
    if hosts is not None:
        environment["RECORDED_HOSTS"] = json.dumps(dict(hosts))
    with log.open("wb") as out:
        process = subprocess.Popen(program, cwd=folder, stdout=out, stderr=out, start_new_session=True, env=environment)
    try:
        eventually(lambda: "listening on" in log.read_text() or process.poll() is not None, within=60)
        line = next(line for line in log.read_text().splitlines() if "listening on" in line)
        yield "http://127.0.0.1:" + line.partition("listening on 127.0.0.1:")[2].split()[0]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass(frozen=True, slots=True)
class Visit:
    """What an app showed: its texts that came and that did not, and what its scripts did not catch."""

    app: str
    shown: tuple[str, ...]
    missing: tuple[str, ...]
    errors: tuple[str, ...]


def visit(root: Page | FrameLocator, app: BuiltApp, errors: Sequence[str]) -> Visit:
    """Wait for an app's sentences in `root`, click its routes one after the other, and wait for what each says.

    `errors` is the list to which uncaught errors of scripts go. After the first text that does not come, nothing more
    is clicked: what follows would be missing, too.
    """
    shown: list[str] = []
    missing = [*app.sentences, *(route.sentence for route in app.routes)]
    with suppress(Error):
        for sentence in app.sentences:
            root.get_by_text(sentence).first.wait_for(timeout=1_000 * PATIENCE)
            shown.append(missing.pop(0))
        for route in app.routes:
            root.locator(route.click).first.click(timeout=1_000 * PATIENCE)
            root.get_by_text(route.sentence).first.wait_for(timeout=1_000 * PATIENCE)
            shown.append(missing.pop(0))
    return Visit(app.name, tuple(shown), tuple(missing), tuple(errors))


def visit_live(browser: Browser, app: BuiltApp) -> Visit:
    """Visit an app on its own server."""
    return _visit_at(browser, app, app.url, "")


def visit_archived(browser: Browser, app: BuiltApp, place: str) -> Visit:
    """Visit an app in the reading room, where `place` is the address of its frame page."""
    return _visit_at(browser, app, place, "#archived")


def _visit_at(browser: Browser, app: BuiltApp, address: str, frame: str) -> Visit:
    context = browser.new_context()
    try:
        tab = context.new_page()
        errors: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(address, wait_until="commit")
        return visit(tab.frame_locator(frame) if frame else tab, app, errors)
    finally:
        context.close()


def record(apps: Sequence[BuiltApp], port: int, folder: Path) -> tuple[list[Visit], list[Path]]:
    """Visit apps that are served on a port, and record them; return the visits and the WARC files."""
    hosts = {app.host: port for app in apps}
    # Without an archive of what it has seen, warcprox writes each body, and no revisits.
    options = ("-z", "--dedup-db-file=/dev/null", "--stats-db-file=/dev/null")
    with warcprox(folder, *options, hosts=hosts) as proxy, chromium(folder, proxy=proxy) as browser:
        visits = [visit_live(browser, app) for app in apps]
    return visits, sorted(folder.glob("*.warc.gz"))
