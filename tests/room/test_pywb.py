"""pywb as the engine: scripts run, head and foot stay true, nothing leaves; and what stands between it and browsers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support import archives
from tests.support.browsers import Sink, can_bind, chromium, needs_chromium
from tests.support.hostilepages import HOSTILE
from tests.support.livesites import CAPTURED, archived, live
from tests.support.rooms import Page, Served, digits, published
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive
from webarcfs.room.pywb.proxy import handed_in, handed_out

pytestmark = pytest.mark.store

_HOSTILE = "hostile.test"
_PYWB = ROOT / ".venv-pywb" / "bin" / "wayback"
#: Hostile pages in CI; the soak has all of them.
_PAGES = int(os.environ.get("PYWB_HOSTILE", "40"))


@dataclass
class World:
    """A room with pywb, under two names."""

    archive: Archive
    room: Served
    names: dict[str, str]
    origin: str
    replay: str


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if not _PYWB.exists():
        pytest.skip("needs `make pywb`")
    archive = archives.make_archive(tmp_path_factory.mktemp("pywb"))
    hostile = {f"http://{_HOSTILE}/{name}": Page(body, kind) for name, (kind, body) in HOSTILE.items()}
    runs = b"<title>none</title><p id=p>no</p><script>document.getElementById('p').textContent='it runs'</script>"
    hostile[f"http://{_HOSTILE}/runs.html"] = Page(runs)
    published(archive, _HOSTILE, hostile, CAPTURED + timedelta(minutes=1), publication="hostile")
    archived(archive, [f"http://python.test/{name}.html" for name in ("index", "tutorial/index", "tutorial/appetite")])
    ports = _free(), _free()
    origin, replay = f"http://room.test:{ports[0]}", f"http://replay.test:{ports[1]}"
    command = [
        sys.executable, "-P", "-c", "from webarcfs.commands.cli import main; main()", "serve",
        "--archive", archive.root, "--listen", f"127.0.0.1:{ports[0]}",
        "--replay-listen", f"127.0.0.1:{ports[1]}", "--origin", origin,
        "--replay-origin", replay, "--engine", "pywb", "--workers", "1", "--access-log", "off",
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert b"reading room" in server.stdout.readline()
        names = {"room.test": "127.0.0.1", "replay.test": "127.0.0.1"}
        yield World(archive, Served(*ports), names, origin, replay)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        if server.stdout is not None:
            server.stdout.close()


def place_of(url: str, when: str) -> str:
    return f"/web/{when}/{url}"


_PYTHON, _AT_HOSTILE = digits(CAPTURED), digits(CAPTURED + timedelta(minutes=1))


@needs_chromium()
def test_scripts_run_and_two_clicks_keep_head_and_foot_true(world: World, tmp_path: Path) -> None:
    with live() as hosts, chromium(tmp_path, names=world.names | hosts) as browser:
        tab = browser.new_page()
        tab.goto(world.origin + place_of(f"http://{_HOSTILE}/runs.html", _AT_HOSTILE))
        assert tab.frame_locator("iframe").locator("#p").inner_text() == "it runs"
        tab.goto(world.origin + place_of("http://python.test/index.html", _PYTHON))
        for words, target in (
            ("Tutorial", "tutorial/index.html"),
            ("Whetting Your Appetite", "tutorial/appetite.html"),
        ):
            url = f"http://python.test/{target}"
            tab.frame_locator("iframe").locator(f"a:has-text('{words}'):visible").first.click()
            tab.wait_for_url(f"**/web/{_PYTHON}/{url}")
            assert tab.locator("#archived-url").inner_text() == url
            assert tab.locator("#archived-date").get_attribute("datetime") == CAPTURED.isoformat()
            assert "Record" in tab.locator("footer").inner_text()


@needs_chromium()
def test_nothing_leaves_where_scripts_run(world: World, tmp_path: Path) -> None:
    if not can_bind(53):
        pytest.skip("needs the right to answer for names")
    names = [*HOSTILE][:: max(len(HOSTILE) // _PAGES, 1)]
    with Sink() as sink, chromium(tmp_path, sink=sink, names=world.names) as browser:
        context = browser.new_context()
        said: list[str] = []
        for name in names:
            tab = context.new_page()
            tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
            place = world.origin + place_of(f"http://{_HOSTILE}/{name}", _AT_HOSTILE)
            tab.goto(place, wait_until="commit", timeout=10_000)
            tab.wait_for_timeout(120)
            assert tab.url.startswith(world.origin), name
            assert "hacked" not in tab.title(), name
            tab.close()
        tab = context.new_page()
        tab.wait_for_timeout(1_000)
        assert sink.asked == []
        assert [each for each in context.cookies() if "room" in each["domain"]] == []
        context.close()


def test_replay_hands_on_archived_pages_alone(world: World) -> None:
    others = ("/", "/web/", "/web/*/http://python.test/", "/collinfo.json", "/web/timemap/link/http://python.test/",
              "/_/x", "/live/http://python.test/", "/web/collinfo.json", "/status.json", "/search")  # fmt: skip
    for path in others:
        answer = world.room.get(path, replay=True)
        assert answer.status in (302, 404), path
        assert answer.headers.get("location", world.origin).startswith(world.origin)
    assert world.room.get(place_of("http://python.test/index.html", _PYTHON), replay=True).status == 302
    worker = world.room.get(f"/web/{_AT_HOSTILE}js_/http://{_HOSTILE}/x.js", {"Service-Worker": "script"}, replay=True)
    assert worker.status == 403
    assert world.room.get(f"/web/{_PYTHON}mp_/http://python.test/", method="POST", replay=True).status == 405


def test_an_archived_page_is_told_what_it_may_do(world: World) -> None:
    answer = world.room.get(f"/web/{_PYTHON}mp_/http://python.test/index.html", {"Host": "replay.test"}, replay=True)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'" in policy
    assert f"frame-ancestors {world.origin}" in policy
    assert "ws:" not in policy
    assert not {"set-cookie", "link", "refresh"} & answer.headers.keys()
    assert world.replay in answer.text  # pywb writes the origin that browsers see, whatever Host said


def test_pywb_that_dies_is_started_again(world: World) -> None:
    found = subprocess.run(["pgrep", "-f", f"{_PYWB} -b 127.0.0.1"], capture_output=True, text=True, check=False)
    assert found.stdout.split()
    for each in found.stdout.split():
        os.kill(int(each), signal.SIGKILL)
    end = time.monotonic() + 60
    status = 0
    while status != 200 and time.monotonic() < end:
        time.sleep(0.2)
        status = world.room.get(f"/web/{_PYTHON}mp_/http://python.test/index.html", replay=True).status
        assert status in (200, 503)
    assert status == 200


@pytest.mark.parametrize(
    "name", ["cookie", "authorization", "x-pywb-acl-user", "x-forwarded-for", "accept-datetime", "origin", "referer"]
)
def test_what_a_browser_brings_along_stays_outside(name: str) -> None:
    given = [(name.encode(), b"secret"), (b"user-agent", b"browser")]
    told = handed_in(given, "https://replay.example.org")
    assert (b"user-agent", b"browser") in told
    assert (b"host", b"replay.example.org") in told
    assert (b"x-forwarded-proto", b"https") in told
    assert b"secret" not in [value for _, value in told]


@pytest.mark.parametrize(
    "name",
    [
        "Set-Cookie", "Service-Worker-Allowed", "Link", "Refresh", "Content-Security-Policy", "NEL", "Report-To",
        "Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc",
    ],
)  # fmt: skip
def test_what_an_answer_would_do_to_a_browser_stays_inside(name: str) -> None:
    told = handed_out(
        [(name.encode(), b"secret"), (b"Content-Type", b"text/html")], "http://room", "http://replay", is_page=True
    )
    assert (b"content-type", b"text/html") in told
    assert b"secret" not in b" ".join(value for _, value in told)


def test_a_redirect_leads_to_archived_pages_alone() -> None:
    kept = ("/web/2020mp_/http://e.org/", "http://replay/web/2020mp_/http://e.org/")
    dropped = ("http://live.example/", "//live.example/web/x", "/search")
    for place, is_kept in (*((each, True) for each in kept), *((each, False) for each in dropped)):
        told = handed_out([(b"location", place.encode())], "http://room", "http://replay", is_page=False)
        assert (b"location" in dict(told)) == is_kept, place
