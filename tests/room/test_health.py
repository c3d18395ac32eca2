"""What load balancers and monitoring ask of the room: whether it can answer, and totals of what the public sees."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, published, served
from tests.support.waiting import until
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import CET
from webarcfs.web import health
from webarcfs.web.health import Health

pytestmark = pytest.mark.store

FIRST = datetime(2020, 1, 1, 12, tzinfo=CET)
READER = {"X-Reader": "rita"}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two crawls that all may see, one that waits, and a proxy that names readers."""
    archive = archives.make_archive(tmp_path)
    archive.settings.write_text('[readers]\nheader = "X-Reader"\nproxies = ["127.0.0.1"]\n')
    for number, (domain, is_held) in enumerate((("a.example", False), ("b.example", False), ("c.example", True))):
        page = {f"http://{domain}/": Page(b"<p>x")}
        state = RecordState.CHECKED if is_held else RecordState.RELEASED
        published(archive, domain, page, FIRST + timedelta(days=number), publication=domain, state=state, held=is_held)
    recover(archive)
    return archive


def test_a_room_says_ok_or_not_ok_and_no_more(archive: Archive) -> None:
    """S-monitor-1."""
    with served(archive, two_origins=True) as room:
        for is_replay in (False, True):
            answer = room.get("/healthz", replay=is_replay)
            assert (answer.status, answer.body) == (200, b"ok\n")
            assert answer.headers["cache-control"] == "no-store"
        archive.access_rules.write_text("no rule\n")
        until(lambda: room.get("/healthz").status == 503, "it is not well")
        answer = room.get("/healthz", {"Accept": "text/html", "Accept-Language": "de"})
        assert answer.body == b"not ok\n"
        archive.access_rules.unlink()
        until(lambda: room.get("/healthz").status == 200, "it is well again")
        for part in (archive.database, archive.catalogue / "refs/heads/main"):
            aside = part.rename(part.with_name("aside"))
            part.write_bytes(b"nothing of an archive")
            until(lambda: room.get("/healthz").status == 503, f"{part} cannot be read")
            aside.replace(part)
            until(lambda: room.get("/healthz").status == 200, f"{part} can be read again")
        archive.root.rename(archive.root.with_name("gone"))
        until(lambda: room.get("/healthz").status == 503, "the archive is gone")
        assert room.get("/healthz").body == b"not ok\n"
        archive.root.with_name("gone").rename(archive.root)
        until(lambda: room.get("/healthz").status == 200, "it is there again")


def _figures(room: Served, headers: dict[str, str] | None = None) -> dict[str, float]:
    answer = room.get("/metrics", {"Accept": "application/openmetrics-text", **(headers or {})})
    assert answer.status == 200 and answer.headers["content-type"].startswith("application/openmetrics-text;")
    families = parser.text_string_to_metric_families(answer.body.decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_the_room_counts_what_the_public_sees_whoever_asks(archive: Archive) -> None:
    """S-monitor-2: no name of a publication, a site or a reader is in it."""
    with served(archive) as room:
        figures = _figures(room)
        last = (FIRST + timedelta(days=1)).timestamp()
        assert figures == {
            "webarc_build_info": 1, "webarc_room_crawls": 2, "webarc_room_publications": 2, "webarc_room_sites": 2,
            "webarc_room_last_crawl_timestamp_seconds": last,
        }  # fmt: skip
        assert _figures(room, READER) == figures
        text = room.get("/metrics")
        assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert b"example" not in text.body
        done = subprocess.run(["promtool", "check", "metrics"], input=text.body, capture_output=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b""), shutil.which("promtool")


def test_an_empty_room_has_figures(tmp_path: Path) -> None:
    with served(archives.make_archive(tmp_path)) as room:
        assert _figures(room)["webarc_room_crawls"] == 0
        assert room.get("/healthz").status == 200


def test_many_who_ask_cost_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a look hangs: who asks meanwhile gets the answer from before."""
    monkeypatch.setattr(health, "HOLD", 0.0)
    looks: Counter[str] = Counter()
    hangs, goes_on = threading.Event(), threading.Event()

    def look() -> None:
        looks["all"] += 1
        if hangs.is_set():
            assert goes_on.wait(60)

    own = Health(look)
    assert own.is_well()
    hangs.set()
    thread = threading.Thread(target=own.is_well)
    thread.start()
    until(lambda: looks["all"] == 2, "it hangs")
    assert all(own.is_well() for _ in range(100))
    goes_on.set()
    thread.join()
    assert looks["all"] == 2
    monkeypatch.setattr(health, "HOLD", 3600.0)
    assert all(own.is_well() for _ in range(100))
    assert looks["all"] == 2


def test_only_what_cannot_be_read_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "HOLD", 0.0)
    errors: list[Exception | None] = [None]

    def look() -> None:
        if errors[0] is not None:
            raise errors[0]

    own = Health(look)
    for error, is_well in ((None, True), (Interrupted("gone"), True), (Damaged("x"), False), (OSError(5, "x"), False),
                           (Interrupted("gone"), False), (None, True)):  # fmt: skip
        errors[0] = error
        assert own.is_well() is is_well
