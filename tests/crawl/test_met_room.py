"""The room has a line for each capture: what a crawl stored, and what it met unchanged."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from tests.crawl.test_met_exports import exported, fill
from tests.support import crawls
from tests.support.crawls import crawl
from tests.support.nasty import reset
from tests.support.readercommand import webarc
from tests.support.rooms import Served, digits, served
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.room.replay.memento import http_date

pytestmark = pytest.mark.crawl


@pytest.fixture(name="history")
def _history(archive: Archive, site: Site) -> list[str]:
    """A first crawl; one that met all but a changed page; one that only carried over two pages and the redirect."""
    fill(site)
    tags = list(crawl(archive, site.url(), name="x").tags)
    site.add_html("/a", "Changed.")
    time.sleep(1.1)  # captures of one second share an address
    tags += crawl(archive, site.url(), name="x").tags
    for path in ("/a", "/b", "/old"):
        site.add_nasty(path, reset())
    time.sleep(1.1)
    tags += crawl(archive, site.url(), name="x").tags
    return tags


def lines(room: Served, url: str, more: str = "") -> list[list[str]]:
    text = room.get(f"/cdx?url={url}&fl=timestamp,original,digest,mimetype{more}").text
    return [line.split(" ") for line in text.splitlines()]


def seconds(digits: str) -> int:
    return int(datetime.strptime(f"{digits}+0000", "%Y%m%d%H%M%S%z").timestamp())


@pytest.mark.usefixtures("history")
def test_cdx_names_the_captures_that_an_export_has(archive: Archive, site: Site, tmp_path: Path) -> None:
    records = exported(archive, tmp_path / "all.warc")
    captures = {
        (re.sub(r"\D", "", each.fields["WARC-Date"]), each.uri, each.kind == "revisit")
        for each in records
        if each.kind in ("response", "revisit") and not each.fields.get("Webarcfs-Seen")
    }
    with served(archive) as room:
        rows = lines(room, site.url(), "&matchType=prefix")
    assert len(rows) == len(captures) == 9, "five that were stored, three and one that were met"
    assert {(time, url, mime == "warc/revisit") for time, url, _, mime in rows} == captures
    done = webarc("export", "--format", "cdxj", "--archive", str(archive.root), str(tmp_path / "index.cdxj"))
    assert done.returncode == 0, done.stderr
    told = [line.split(" ", 2) for line in (tmp_path / "index.cdxj").read_text("utf-8").splitlines() if line[0] != "!"]
    fields = [(time, json.loads(rest)) for _, time, rest in told]
    assert {(time, each["url"], each.get("mime") == "warc/revisit") for time, each in fields} == captures
    assert {
        (time, each["url"], each["digest"].removeprefix("sha1:")) for time, each in fields if each["status"] == "200"
    } <= {(time, url, digest) for time, url, digest, _ in rows}


@pytest.mark.usefixtures("history")
def test_each_capture_has_its_address_and_its_memento(archive: Archive, site: Site) -> None:
    with served(archive) as room:
        for url in (site.url(), site.url("/b"), site.url("/old")):
            rows = lines(room, url)
            assert [row[3] == "warc/revisit" for row in rows] == [False, True, True][: len(rows)]
            assert len({row[2] for row in rows}) == 1 == len(lines(room, url, "&collapse=digest"))
            assert lines(room, url, "&resolveRevisits=true") == rows
            timemap = room.get(f"/timemap/link/{url}").text
            for time, *_ in rows:
                answer = room.get(f"/web/{time}id_/{url}")
                assert answer.headers["memento-datetime"] == http_date(seconds(time)), (time, url)
                assert answer.status == (302 if url.endswith("/old") else 200)
                assert f'datetime="{http_date(seconds(time))}"' in timemap
                if answer.status == 200:
                    frame = room.get(f"/web/{time}/{url}").text
                    assert ("Unchanged since" in frame) == (time != rows[0][0]), (time, url)
                    assert "has no capture of it" not in frame
            when = {"Accept-Datetime": http_date(seconds(rows[-1][0]) + 3600)}
            assert f"/web/{rows[-1][0]}" in room.get(f"/web/{url}", when).headers["location"]


@pytest.mark.usefixtures("history")
def test_without_its_list_a_crawl_has_no_such_line(archive: Archive, site: Site) -> None:
    with closing(sqlite3.connect(archive.database)) as database, database:
        database.execute("DELETE FROM met")
    with served(archive) as room:
        assert [row[3] for row in lines(room, site.url("/b"))] == ["text/html"]


@pytest.mark.usefixtures("history")
def test_what_a_crawl_did_not_ask_for_is_not_called_unchanged(archive: Archive, site: Site) -> None:
    """A crawl of one page has the others in its snapshot, and says nothing of them."""
    site.add_html("/alone", "alone")
    done = crawls.run_command(
        "crawl", "--archive", archive.root, "--page", site.url("/alone"), "--wait", "0", "--private-addresses"
    )
    assert done.code == 0, done.err
    at = digits(CommitTag.parse(done.out.split()[0]).crawl_time)
    with served(archive) as room:
        for path, carried in (("/", True), ("/b", True), ("/alone", False)):
            frame = room.get(f"/web/{at}/{site.url(path)}").text
            assert ("has no capture of it" in frame) == carried, path
            assert "Unchanged since then" not in frame, path


def test_log_has_a_line_for_each_capture(archive: Archive, site: Site, history: list[str]) -> None:
    """And none for what a crawl only carried over; times are in UTC."""

    def logged(path: str, *more: str) -> list[str]:
        answer = webarc("log", site.url(path), "--archive", str(archive.root), *more)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.splitlines()

    with served(archive) as room:
        for path in ("/", "/a", "/b", "/old"):
            rows = [json.loads(line) for line in logged(path, "--json")]
            told = {(re.sub(r"\D", "", row["captured"]), row["what"] == "met") for row in rows}
            assert told == {(time, mime == "warc/revisit") for time, _, _, mime in lines(room, site.url(path))}
    assert [line.split()[:2] for line in logged("/b")] == [[history[1], "unchanged"], [history[0], "added"]]
    archive.database.unlink()
    assert [line.split()[1] for line in logged("/b")] == ["added"]
