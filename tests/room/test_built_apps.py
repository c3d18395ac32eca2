"""Front ends that others built, recorded by a program that is not ours, and shown from the archive by pywb.

All apps of `tests/support/built_apps.py` are recorded once, in one run of Chromium through warcprox, and their WARC
file is imported. Two tests are about each app.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support import archives
from tests.support.app_server import serving
from tests.support.browsers import Sink, can_bind, chromium, needs_chromium
from tests.support.built_apps import APPS, BuiltApp, ScriptKind, Wheel
from tests.support.imports import command
from tests.support.pywb_rooms import PywbRoom, pywb_room
from tests.support.recorder import Visit, record, visit_archived, warcprox

# The first test waits for the recording of all apps.
pytestmark = [pytest.mark.store, pytest.mark.timeout(1200)]

_NAMES = [app.name for app in APPS]


@dataclass(frozen=True)
class Shown:
    """The room with all apps, a browser whose ways out all lead to the sink, and what the apps showed live."""

    room: PywbRoom
    browser: Browser
    sink: Sink
    live: dict[str, Visit]
    when: str


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    if not all(app.is_here() for app in APPS):
        pytest.skip("needs `make apps`")
    if not can_bind(53):
        pytest.skip("needs the right to answer for names")
    archive = archives.make_archive(tmp_path_factory.mktemp("apps"))
    with serving(APPS) as server:
        visits, files = record(APPS, server.port, tmp_path_factory.mktemp("recordings"))
    done = command("import", "--archive", archive.root, "--crawls", "one", *files)
    assert done.code == 0, done.err
    with (
        pywb_room(archive) as room,
        Sink() as sink,
        chromium(tmp_path_factory.mktemp("browser"), sink=sink, names=room.names) as browser,
    ):
        when = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
        yield Shown(room, browser, sink, {visit.app: visit for visit in visits}, when)


def _app(name: str) -> BuiltApp:
    return next(app for app in APPS if app.name == name)


@needs_chromium()
@pytest.mark.parametrize("name", _NAMES)
def test_an_app_works_while_it_is_recorded(shown: Shown, name: str) -> None:
    """Else the archive could not show it."""
    assert shown.live[name].missing == ()


@needs_chromium()
@pytest.mark.parametrize("name", _NAMES)
def test_an_archived_app_shows_what_it_showed_live(shown: Shown, name: str) -> None:
    """Its sentences, those of its routes in turn, no fault of a script that it had not, and nothing that leaves."""
    app = _app(name)
    before = len(shown.sink.asked)
    place = f"{shown.room.origin}/web/{shown.when}/{app.url}"
    visit = visit_archived(shown.browser, app, place)
    if visit.missing:  # on a busy machine a large module may take longer than an answer may; it is scanned once
        visit = visit_archived(shown.browser, app, place)
    assert visit.missing == ()
    assert set(visit.errors) <= set(shown.live[name].errors)
    assert shown.sink.asked[before:] == []


@needs_chromium()
def test_what_an_app_sent_afterwards_did_not_leave_either(shown: Shown) -> None:
    tab = shown.browser.new_page()
    tab.wait_for_timeout(500)
    tab.close()
    assert shown.sink.asked == []


def test_a_recorder_whose_browser_fails_leaves_no_process(tmp_path: Path) -> None:
    port = 0
    with pytest.raises(RuntimeError, match="browser"), warcprox(tmp_path, hosts={}) as proxy:
        port = int(proxy.rpartition(":")[2])
        raise RuntimeError("the browser is gone")
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection("127.0.0.1", port, timeout=60).connect()


def test_a_recorder_reaches_the_hosts_that_it_was_given_and_no_others(tmp_path: Path) -> None:
    app = _app("hills")
    with serving([app]) as server, warcprox(tmp_path, hosts={app.host: server.port}) as proxy:
        statuses = {}
        for host in (app.host, "other.test", "localhost"):
            connection = http.client.HTTPConnection("127.0.0.1", int(proxy.rpartition(":")[2]), timeout=60)
            connection.request("GET", f"http://{host}/style.css", headers={"Host": host})
            statuses[host] = connection.getresponse().status
            connection.close()
    assert statuses[app.host] == 200
    assert min(statuses["other.test"], statuses["localhost"]) >= 500
    assert {each.host for each in server.seen} == {app.host}


def test_a_wheel_with_other_bytes_is_not_taken_for_what_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBARCFS_TEST_APPS", str(tmp_path))
    wheel = _app("locust").source
    assert isinstance(wheel, Wheel)
    assert not wheel.is_here()
    wheel.path.write_bytes(b"PK")
    assert not wheel.is_here()


def test_the_table_has_ten_apps_of_others_and_one_of_our_own() -> None:
    others = [app for app in APPS if isinstance(app.source, Wheel)]
    assert len(others) == 10
    assert Counter(app.scripts for app in others)[ScriptKind.MODULE] >= 7
    assert all(app.sentences and app.routes and app.licence for app in APPS)
    (own,) = (app.source for app in APPS if isinstance(app.source, Path))
    assert sum(path.stat().st_size for path in own.rglob("*") if path.is_file()) <= 200_000
