"""`import` of mirrors of HTTrack: pages from its cache, other files from the mirror, and what cannot be known."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.importing.foreign import Report
from agent.importing.import_sources import name_of, parts_of, sources_of
from tests.support import foreignfiles, nasty
from tests.support.crawls import arcs, log_lines, meta, read, read_file
from tests.support.imports import import_files, imported
from tests.support.properties import examples
from tests.support.site import Site, redirect
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import utc

pytestmark = pytest.mark.crawl

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
PAGE = "<title>Größe</title><p>text".encode("latin-1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The host of a site, and its mirror by HTTrack."""
    with Site() as site:
        links = "".join(
            f'<a href="{each}">x</a>' for each in ("b.html", "gz.html", "gone.html", "moved", "q.html?a=1&b=2")
        )
        site.add_html(
            "/", f'{links}<img src="/i.png"><link rel=stylesheet href="/s.css"><a href="/v.pdf">v</a>', "Start"
        )
        site.add("/b.html", PAGE, "text/html; charset=iso-8859-1")
        site.add_nasty("/gz.html", nasty.gzip_body(b"<title>packed</title>" + b"text" * 500))
        site.add_nasty("/moved", redirect("/b.html"))
        site.add("/q.html?a=1&b=2", b"<title>query</title>")
        site.add("/i.png", PICTURE, "image/png")
        site.add("/s.css", b"p { background: url(i.png) }", "text/css")
        site.add("/v.pdf", b"%PDF-1.4 nearly", "application/pdf")
        folder = foreignfiles.httrack(site.url("/"), tmp_path_factory.mktemp("mirror") / "mirror")
        return site.host, folder


@pytest.fixture
def mirror(made: tuple[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[1], tmp_path / "our mirror"))


def test_a_mirror_gives_pages_as_they_came(archive: Archive, made: tuple[str, Path], mirror: Path) -> None:
    """Not with the links that HTTrack rewrote; statuses, redirects and types too, at the times of its log."""
    host, _ = made
    before = datetime.now(UTC)
    outcome = imported(archive, mirror)
    assert arcs(archive, host) == {"index.html", "b.html", "gz.html", "q.html?a=1&b=2", "i.png", "s.css", "v.pdf"}
    assert read(archive, host, "b.html") == PAGE and meta(archive, host, "b.html").title == "Größe"
    assert (read(archive, host, "i.png"), meta(archive, host, "i.png").mime_type) == (PICTURE, "image/png")
    assert b'href="b.html"' in read(archive, host, "index.html")
    assert read(archive, host, "gz.html") == b"<title>packed</title>" + b"text" * 500
    head = read_file(archive, host, "b.html/headers.http") or b""
    assert b"charset=iso-8859-1" in head and b"X-Save" not in head and b"X-In-Cache" not in head
    lines = log_lines(archive, outcome)
    assert {each.rpartition("/")[2]: line.status for each, line in lines.items() if line.status != 200} == {
        "gone.html": 404, "moved": 302,
    }  # fmt: skip
    captured = utc(meta(archive, host, "b.html").capture_time)
    assert abs((before - captured).total_seconds()) < 300
    assert name_of(sources_of([mirror])).startswith("our-mirror-")
    assert import_files(archive, mirror / "hts-cache" / "new.zip").outcome is None, "it is the same"


def test_what_is_not_in_the_cache_is_taken_as_long_as_it_did_not_change(
    archive: Archive, made: tuple[str, Path], mirror: Path
) -> None:
    """A file that is gone, or has another size, is a loss; one with another date is taken, and it is said."""
    host, inside = made[0], mirror / made[0].replace(":", "_")
    (inside / "v.pdf").unlink()
    (inside / "i.png").write_bytes(PICTURE + b"more")
    result = import_files(archive, mirror)
    assert result.outcome is not None
    assert [line.partition(": ")[2] for line in result.outcome.warnings] == [
        f"a file that was changed since: http://{host}/i.png",
        f"a file that is not in the mirror any more: http://{host}/v.pdf",
    ]
    assert arcs(archive, host) == {"index.html", "b.html", "gz.html", "q.html?a=1&b=2", "s.css"}
    assert any("time zone of this one" in line for line in result.remarks)


def test_the_times_are_those_of_its_log(mirror: Path) -> None:
    """From the start of the run, over midnight; without the log, the date of the cache."""

    def times() -> set[str]:
        report = Report()
        return {
            record.fields["warc-date"]
            for part in parts_of(mirror / "hts-cache" / "new.zip", "m", report, lambda _: None)
            for record in part.records
            if record.fields["warc-target-uri"].endswith("/b.html")
        }

    log, answers = mirror / "hts-log.txt", mirror / "hts-cache" / "new.txt"
    began = datetime(2020, 2, 28, 23, 59, 50).astimezone()
    log.write_text(re.sub(r"launched on .* at http", "launched on Fri, 28 Feb 2020 23:59:50 at http", log.read_text()))
    text = answers.read_text()
    answers.write_text(
        re.sub(
            r"\d\d:\d\d:\d\d(?=\t.*/b\.html)",
            "00:00:10",
            re.sub(r"^\d\d:\d\d:\d\d", "23:59:55", text, flags=re.MULTILINE),
        )
    )
    assert times() == {f"{datetime.fromtimestamp(began.timestamp() + 20, UTC):%Y-%m-%dT%H:%M:%SZ}"}
    log.unlink()
    os.utime(mirror / "hts-cache" / "new.zip", (1_500_000_000, 1_500_000_000))
    assert times() == {"2017-07-14T02:40:00Z"}


def test_an_address_that_only_the_log_has_is_a_loss(archive: Archive, mirror: Path) -> None:
    answers = mirror / "hts-cache" / "new.txt"
    line = answers.read_text().splitlines()[1]
    answers.write_text(answers.read_text() + line.replace("http://", "http://lost.") + "\n")
    outcome = import_files(archive, mirror).outcome
    assert outcome is not None and ["not in its cache" in line for line in outcome.warnings] == [True]


@pytest.mark.parametrize("at", [0.3, 0.7, 0.95])
def test_of_a_cache_that_is_cut_off_all_whole_answers_are_taken(archive: Archive, mirror: Path, at: float) -> None:
    """As HTTrack leaves it when it is killed; what completes it is said."""
    cache = mirror / "hts-cache" / "new.zip"
    cache.write_bytes(cache.read_bytes()[: int(cache.stat().st_size * at)])
    outcome = import_files(archive, mirror).outcome
    assert outcome is not None and any("httrack --continue" in line for line in outcome.warnings) == (at < 0.8)
    (cache.parent / "new.txt").unlink()
    cache.write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(Damaged, match="no answer in"):
        import_files(archive, mirror)


def test_addresses_that_are_not_ascii(archive: Archive, tmp_path: Path) -> None:
    """HTTrack unpacks what is UTF-8 of them, and leaves the rest as it is."""
    paths = ("/caf%C3%A9", "/%C3%BC.html?q=%C3%B6", "/50%25", "/a%2Fb", "/x%E4", "/a%20b")
    with Site() as site:
        site.add_html("/", "".join(f'<a href="{path}">x</a>' for path in paths) + '<img src="/bild%C3%BC.png">')
        for path in paths:
            site.add_html(path, path, path)
        site.add("/bild%C3%BC.png", PICTURE, "image/png")
        folder = foreignfiles.httrack(site.url("/"), tmp_path / "mirror")
        imported(archive, folder)
        wanted = {site.url(path) for path in (*paths, "/", "/bild%C3%BC.png")}
        assert {meta(archive, site.host, arc).url for arc in arcs(archive, site.host)} == wanted


@pytest.mark.parametrize("saved", ["../secret", "/etc/passwd", "link", "sub/../../secret", "x\0y", ""])
def test_nothing_outside_of_the_mirror_is_read(tmp_path: Path, saved: str) -> None:
    """Whatever a cache names as its file."""
    (tmp_path / "secret").write_bytes(b"secret")
    mirror = tmp_path / "mirror"
    (mirror / "hts-cache").mkdir(parents=True)
    (mirror / "link").symlink_to(tmp_path / "secret")
    size = Path(saved).stat().st_size if saved.startswith("/") else 6
    write_cache(
        mirror / "hts-cache" / "new.zip",
        {
            "http://e.example/a": (
                f"HTTP/1.1 200 OK\r\nX-In-Cache: 0\r\nX-StatusCode: 200\r\nX-Size: {size}\r\nX-Save: {saved}\r\n",
                b"",
            )
        },
    )
    report = Report()
    found = [
        record
        for part in parts_of(mirror / "hts-cache" / "new.zip", "m", report, lambda _: None)
        for record in part.records
    ]
    assert not found and "not in the mirror" in "".join(report.losses.lines())


def write_cache(path: Path, answers: dict[str, tuple[str, bytes]]) -> None:
    """A cache as HTTrack writes it: heads lie in the extra fields before the bodies."""
    with zipfile.ZipFile(path, "w") as out:
        for url, (head, body) in answers.items():
            entry = zipfile.ZipInfo(url)
            entry.extra = head.encode()
            out.writestr(entry, body)
            entry.extra = b""  # of the directory at the end


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_cache_is_read_or_refused_in_one_line(made: tuple[str, Path], tmp_path: Path, data: st.DataObject) -> None:
    mirror = tmp_path / "any"
    if not mirror.exists():
        shutil.copytree(made[1], mirror)
    cache = mirror / "hts-cache" / "new.zip"
    raw = bytearray((made[1] / "hts-cache" / "new.zip").read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=6)):
        raw[place] = data.draw(st.integers(0, 255))
    cache.write_bytes(raw)
    for name in ("hts-cache/new.txt", "hts-log.txt"):
        lines = (made[1] / name).read_bytes()
        place = data.draw(st.integers(0, len(lines)))
        (mirror / name).write_bytes(lines[:place] + data.draw(st.binary(max_size=8)) + lines[place:])
    try:
        for part in parts_of(cache, "m", Report(), lambda _: None):
            for record in part.records:
                record.whole()
    except WebarcError as error:
        assert isinstance(error, Damaged) and "\n" not in str(error)
