"""The check that compares the pictures of a crawl with what replay shows of its pages, with Debian's Chromium."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from agent.catalogue import stepfolders
from agent.catalogue.recording import ask_next, catch_up_records
from agent.crawl.chromium import find_program
from agent.steps import picture_check, replay_camera
from agent.steps.context import Snapshot
from agent.steps.replay_answers import RecordReplay
from agent.steps.replay_camera import LARGEST_BODY, ServedAnswer
from agent.steps.running import run_step, run_waiting
from tests.support.browsers import needs_chromium
from tests.support.browsertrix import Shown, png, wacz
from tests.support.crawls import crawl
from tests.support.desks import served, with_people
from tests.support.imports import imported
from tests.support.process_trees import processes_below
from tests.support.site import Site
from tests.support.stepped import told
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import FieldNumber, Record
from webarcfs.archive.catalogue.workflow import WorkflowStep
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import BrowserSettings
from webarcfs.archive.model.errors import CdpFailed
from webarcfs.room.replay.replay_url import Modifier, digits_of, replay_path

_SETTINGS = """
[[publication]]
name = "test"
urls = ["http://www.example.org/"]
release = "by-hand"
check_pictures = 10
{more}
"""
_TEXT = "".join(f"<p>{'A line of text that a reader sees on the page. ' * 3}{number}</p>" for number in range(30))
_STYLED = "<link rel=stylesheet href={sheet}>" + _TEXT
_SHEET = "body { background: #123; color: #fed; font-size: 22px } p { border: 3px solid #c30; padding: 9px }"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def _settings(archive: Archive, more: str = "") -> None:
    archive.settings.write_text(_SETTINGS.format(more=more))


def _checked(archive: Archive, *urls: str, **settings: object) -> Record:
    """Crawl pages with pictures of them, and return the record after its steps."""
    keep = settings.pop("keep_rendered", ("html", "text", "picture"))
    fetcher = settings.pop("fetcher", "browser")
    crawl(
        archive, *urls, name="test", release="by-hand", fetcher=fetcher, keep_rendered=keep, depth=0, wait=0, **settings
    )
    return _steps(archive)


def _steps(archive: Archive) -> Record:
    catch_up_records(archive)
    catalogue = Catalogue(archive)
    record, _ = catalogue.read(next(catalogue.ids("test")))
    ask_next(archive, record)
    assert run_waiting(archive, record.id) == []
    return catalogue.read(record.id)[0]


def _outcome(record: Record) -> str:
    texts = record.text(FieldNumber.OTHER_CHECKS).split("; ")
    return next(text for text in texts if text.startswith("pictures: "))


def _folder(archive: Archive, record: Record) -> Path:
    return archive.reports / record.job_name / "check"


def _cells(*colours: tuple[int, int, int]) -> bytes:
    return b"".join(bytes((*colour, 255)) for colour in colours)


_WHITE, _BLACK, _NEARLY = (255, 255, 255), (0, 0, 0), (245, 250, 240)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ((_WHITE, _WHITE, _WHITE), (_WHITE, _NEARLY, _WHITE), 1.0),
        ((_WHITE, _WHITE, _BLACK), (_WHITE, _WHITE, _BLACK), 1.0),
        ((_WHITE, _WHITE, _BLACK), (_WHITE, _WHITE, _WHITE), 0.0),
        ((_WHITE, _WHITE, _WHITE, _BLACK, _BLACK), (_WHITE, _WHITE, _WHITE, _BLACK, _WHITE), 0.5),
        ((), (), 1.0),
    ],
)
def test_only_cells_with_content_count(
    one: tuple[tuple[int, int, int], ...], other: tuple[tuple[int, int, int], ...], alike: float
) -> None:
    assert replay_camera.likeness(_cells(*one), _cells(*other)) == alike


@needs_chromium()
def test_a_bad_picture_costs_its_page_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing but replay is asked, no script of a page runs, and all has ended with the camera."""
    asked: list[str] = []

    async def serve(target: str, _: str) -> ServedAnswer:
        asked.append(target)
        if target.endswith("/fault.png"):
            raise ValueError("a fault of replay")
        if target.endswith("/page"):
            body = (
                "<body style='margin:0;background:#fff'><div style='width:400px;height:300px;background:#c30'></div>"
                "<img src=part.png><img src=fault.png><img src=http://www.example.org/elsewhere.png>"
                "<script>fetch('/web/by-script'); document.body.innerHTML = ''</script>"
            )
            return ServedAnswer(200, (("Content-Type", "text/html"),), body.encode())
        return ServedAnswer(404, (("Content-Type", "text/plain"),), b"none")

    def picture(colour: tuple[int, int, int]) -> bytes:
        image = Image.new("RGB", (800, 600), (255, 255, 255))
        image.paste(Image.new("RGB", (400, 300), colour), (0, 0))
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    async def take() -> tuple[replay_camera.ComparedPictures, ...]:
        camera = replay_camera.ReplayCamera(BrowserSettings(), serve, tmp_path, tmp_path / "chromium.log")
        try:
            with pytest.raises(CdpFailed, match="cannot be read"):
                await camera.compare("/web/page", b"\xff\xd8\xff no picture", "image/jpeg")
            same = await camera.compare("/web/page", picture((0xCC, 0x33, 0)), "image/png")
            other = await camera.compare("/web/page", picture((0, 0x33, 0xCC)), "image/png")
            with pytest.raises(CdpFailed, match="replay answers 404"):
                await camera.compare("/web/gone", picture((0, 0, 0)), "image/png")
            return same, other
        finally:
            await camera.close()

    same, other = asyncio.run(take())
    assert same.likeness > 0.95 and other.likeness < 0.1, (same.likeness, other.likeness)
    assert same.lacks == 1
    with Image.open(io.BytesIO(same.replay)) as shown:
        assert shown.size == (800, 600)
    assert set(asked) == {"/web/page", "/web/part.png", "/web/fault.png", "/web/gone"}
    assert "replay failed at http://replay.invalid/web/fault.png" in caplog.text
    assert not any(process.is_chromium for process in processes_below(os.getpid()))


@needs_chromium()
def test_pages_that_replay_well_pass_and_others_are_named(site: Site, archive: Archive) -> None:
    """The pictures of both lie in the report, and the desk shows them side by side."""
    sheet = site.url("/style.css")
    site.add("/style.css", _SHEET, "text/css")
    site.add_html("/good", _STYLED.format(sheet=sheet))
    # Replay runs no scripts, so it shows nothing of the second page.
    site.add_html("/script", f"<div id=root></div><script>document.body.innerHTML = '{_TEXT}'</script>")
    good, script = site.url("/good"), site.url("/script")
    _settings(archive)
    record = _checked(archive, good, script)
    assert not any(process.is_chromium for process in processes_below(os.getpid()))
    outcome = _outcome(record)
    assert outcome.startswith(f"pictures: failed: 1 of 2 pages look unlike the crawl: {script}"), outcome
    assert good not in outcome

    folder = _folder(archive, record)
    rows = {row["url"]: row for row in json.loads((folder / picture_check.NAME).read_text())}
    assert rows[good]["likeness"] >= 0.98 and rows[good]["lacks"] == 0
    assert rows[script]["likeness"] < 0.2
    for row in rows.values():
        for name in (row["crawl"], row["replay"]):
            assert (folder / name).read_bytes().startswith(b"\xff\xd8\xff")

    with_people(archive)
    with served(archive) as desk:
        client = desk.client("anna")
        page = client.get(f"/snapshot/{record.id}")
        sources = [image.get("src") for image in page.page.xpath('//section[@class="pictures"]//img')]
        assert len(sources) == 4 and script in page.words
        assert " 100 % alike" in page.words or " 99 % alike" in page.words, page.words
        shown = client.get(sources[0])
        assert shown.status == 200 and shown.headers["content-type"] == "image/jpeg"
        assert "sandbox" in shown.headers["content-security-policy"]
        assert client.get(f"/snapshot/{record.id}/picture/checks.json").status == 404
        assert desk.client().get(sources[0]).status != 200


@needs_chromium()
def test_pages_that_a_patch_brought_are_compared_as_well(site: Site, archive: Archive) -> None:
    urls = [site.url("/first"), site.url("/second")]
    site.add_html("/first", _TEXT)
    site.gone("/second", 500)
    how = 'fetcher = "browser"\nkeep_rendered = ["picture"]\nprivate_addresses = true\nwait = 0\ndepth = 0\n'
    _settings(archive, how)
    assert _outcome(_checked(archive, *urls)) == "pictures: good (1 pages compared)"
    site.add_html("/second", _TEXT)
    patched = told(archive, "crawl", "--missing", "test")
    assert patched.code == 0, patched.err
    record, _ = Catalogue(archive).read(next(Catalogue(archive).ids("test")))
    run_step(archive, stepfolders.ask(archive, record, WorkflowStep.CHECK, by="anna", again=True).folder)
    record, _ = Catalogue(archive).read(record.id)
    assert _outcome(record) == "pictures: good (2 pages compared)"
    assert {row.url for row in picture_check.read(_folder(archive, record))} == set(urls)


@needs_chromium()
def test_a_style_that_the_archive_lacks_is_seen(site: Site, archive: Archive) -> None:
    """The page looks unlike the crawl once its style is withheld, and the part that is missing is counted."""
    site.add("/style.css", _SHEET, "text/css")
    site.add_html("/page", _STYLED.format(sheet="/style.css"))
    _settings(archive)
    record = _checked(archive, site.url("/page"))
    assert _outcome(record) == "pictures: good (1 pages compared)"
    assert told(archive, "withhold", site.url("/style.css"), "--reason", "a test").code == 0
    run_step(archive, stepfolders.ask(archive, record, WorkflowStep.CHECK, by="anna", again=True).folder)
    record, _ = Catalogue(archive).read(record.id)
    assert _outcome(record).startswith("pictures: failed: 1 of 1 pages look unlike the crawl")
    row = picture_check.read(_folder(archive, record))[0]
    assert row.lacks == 1 and row.likeness is not None and row.likeness < 0.5


@needs_chromium()
def test_pages_before_the_end_of_the_browser_keep_their_rows(site: Site, archive: Archive) -> None:
    """Replay has neither page, so the second one needs another browser; that is gone by then."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))  # the browser has a /tmp of its own
    try:
        folder.chmod(0o777)
        program = folder / "chromium"
        program.write_text(f'#!/bin/sh\nrm -- "$0"\nexec {find_program()} "$@"\n')
        program.chmod(0o755)
        pages = [site.url("/first"), site.url("/second")]
        for page in pages:
            site.add_html(page.removeprefix(site.url("/")[:-1]), _TEXT)
        _settings(archive)
        crawl(
            archive, *pages, name="test", release="by-hand", fetcher="browser", keep_rendered=("picture",), depth=0,
            wait=0,
        )  # fmt: skip
        for page in pages:
            assert told(archive, "withhold", page, "--reason", "a test").code == 0
        _settings(archive, f'[browser]\nprogram = "{program}"\n')
        record = _steps(archive)
    finally:
        shutil.rmtree(folder)
    assert _outcome(record) == "pictures: not done (0 pages compared, 2 could not be compared)"
    rows = picture_check.read(_folder(archive, record))
    assert {row.url for row in rows} == set(pages)
    assert sorted(bool(row.crawl) for row in rows) == [False, True]
    assert {row.fault for row in rows} >= {f"`program` of [browser]: {program} is no program"}
    checks = json.loads((_folder(archive, record) / "checks.json").read_text())
    assert {check["check"]: check["skipped"] for check in checks}["pictures"] is True


def test_a_body_that_no_browser_gets_is_not_read_to_its_end(site: Site, archive: Archive) -> None:
    size = LARGEST_BODY + (16 << 20)
    site.add("/large", b"x" * size, "application/octet-stream")
    crawl(archive, site.url("/large"), name="test", depth=0, wait=0)
    record = next(iter(Catalogue(archive).records()))
    assert record.date is not None
    target = replay_path(digits_of(int(record.date.timestamp())), Modifier.AS_SENT, site.url("/large"))

    async def serve() -> ServedAnswer:
        replay = RecordReplay(archive, record.id)
        try:
            return await replay.serve(target, "")
        finally:
            await replay.close()

    answer = asyncio.run(serve())
    assert answer.status == 200
    assert LARGEST_BODY < len(answer.body) < size


def test_only_pictures_of_the_window_are_like_those_of_replay(archive: Archive, tmp_path: Path) -> None:
    url = "http://www.example.org/"
    pages = (Shown(f"{url}view", view=png()), Shown(f"{url}full", full=png()), Shown(f"{url}small", thumbnail=png()))
    imported(archive, wacz(tmp_path / "a.wacz", *pages), name="test")
    snapshot = Snapshot(archive, next(iter(Catalogue(archive).records())))
    pictures = {page.url.removeprefix(url): snapshot.picture_of(page) for page in snapshot.pages()}
    assert {name: picture is not None and picture.is_of_window for name, picture in pictures.items()} == {
        "view": True, "full": False, "small": False,
    }  # fmt: skip


def test_without_pictures_nothing_is_compared(site: Site, archive: Archive) -> None:
    site.add_html("/page", _TEXT)
    _settings(archive)
    record = _checked(archive, site.url("/page"), fetcher="wget")
    assert _outcome(record).startswith("pictures: not done (no page has a picture")
    assert "failed" not in _outcome(record)
    assert not list(_folder(archive, record).glob("*.jpg"))


@needs_chromium()
def test_without_the_browser_the_check_says_so_and_does_not_fail(site: Site, archive: Archive) -> None:
    site.add_html("/page", _TEXT)
    _settings(archive)
    crawl(
        archive, site.url("/page"), name="test", release="by-hand", fetcher="browser", keep_rendered=("picture",),
        depth=0, wait=0,
    )  # fmt: skip
    _settings(archive, '[browser]\nprogram = "/no/chromium"\n')
    record = _steps(archive)
    assert _outcome(record) == "pictures: not done (`program` of [browser]: /no/chromium is no program)"


def test_by_default_no_picture_is_compared(site: Site, archive: Archive) -> None:
    site.add_html("/page", _TEXT)
    archive.settings.write_text(
        _SETTINGS.format(more='check_search = ""').replace("check_pictures = 10", "checks = []")
    )
    record = _checked(archive, site.url("/page"), fetcher="wget")
    assert "pictures: " not in record.text(FieldNumber.OTHER_CHECKS)
