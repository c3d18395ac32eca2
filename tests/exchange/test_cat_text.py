"""`webarc cat --text`: the text of a version as the full-text index has it; what has none is an error."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.operations.records import Acting, decide
from tests.support.browsertrix import Shown, png, wacz
from tests.support.crawls import archive
from tests.support.dated_pages import DOCX, docx, import_pages, pdf, tags_of
from tests.support.imports import imported
from tests.support.readercommand import webarc_bytes
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.workflow import Decision
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.search import generations

pytestmark = pytest.mark.crawl

__all__ = ["archive"]
HOST = "www.example.org"
URL = f"http://{HOST}/"


def _cat(archive: Archive, *words: str) -> subprocess.CompletedProcess[bytes]:
    return webarc_bytes("cat", *words, "--archive", archive.root)


def test_the_text_is_that_of_the_index(archive: Archive, tmp_path: Path) -> None:
    """HTML, PDF and office files of an old snapshot; the bytes without --text are as they were."""
    pages = {
        f"{URL}page": "<title>T</title><meta charset=utf-8><h1>Räte</h1><script>x()</script><p>one<p>two".encode(),
        f"{URL}minutes.pdf": (pdf("Minutes of the council"), "application/pdf"),
        f"{URL}letter.docx": (docx("Dear council"), DOCX),
        f"{URL}scan.pdf": (pdf(""), "application/pdf"),
        f"{URL}photo.png": (png(), "image/png"),
        f"{URL}data.json": (b'{"a": 1}', "application/json"),
    }
    import_pages(archive, tmp_path / "a.warc", "2019-05-01T10:00:00Z", pages)
    import_pages(archive, tmp_path / "b.warc", "2020-05-01T10:00:00Z", {f"{URL}page": b"<p>new"})
    bring_in_step(archive)
    tag = tags_of(archive, HOST)[0]
    seq = int(CommitTag.parse(tag).crawl_time.timestamp())
    reader = generations.opened(archive)
    texts = {"page": "Räte\none\ntwo", "minutes.pdf": "Minutes of the council", "letter.docx": "Dear council"}
    for name, text in texts.items():
        indexed = reader.find(f"/{HOST}/{name}", seq)
        assert indexed is not None and indexed.extracted.body == text, name
        assert _cat(archive, "--text", tag, f"{URL}{name}").stdout.decode() == f"{text}\n", name
    assert _cat(archive, tag, f"{URL}minutes.pdf").stdout == pages[f"{URL}minutes.pdf"][0]
    for name, reason in (
        ("scan.pdf", "a scan perhaps"),
        ("photo.png", "(image/png) has no text"),
        ("data.json", "(application/json) has no text"),
    ):
        done = _cat(archive, "--text", tag, f"{URL}{name}")
        assert (done.returncode, done.stdout) == (2, b""), name
        assert reason in done.stderr.decode(), (name, done.stderr)


def test_a_damaged_pdf_is_an_error_with_its_reason(archive: Archive, tmp_path: Path) -> None:
    broken = pdf("Minutes")[:200] + bytes(3_000)
    import_pages(archive, tmp_path / "a.warc", "2019-05-01T10:00:00Z", {f"{URL}a.pdf": (broken, "application/pdf")})
    done = _cat(archive, "--text", tags_of(archive, HOST)[0], f"{URL}a.pdf")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "not of the form that its type says" in done.stderr.decode()


def test_the_other_url_of_a_place_is_its_own_document(archive: Archive, tmp_path: Path) -> None:
    """http and https had other bytes: each URL gives its own, in each snapshot, also where only one was there."""
    secure = URL.replace("http:", "https:")
    import_pages(archive, tmp_path / "a.warc", "2019-05-01T10:00:00Z", {f"{URL}a": b"<p>plain"})
    import_pages(
        archive, tmp_path / "b.warc", "2020-05-01T10:00:00Z", {f"{URL}a": b"<p>plain", f"{secure}a": b"<p>sec"}
    )
    import_pages(archive, tmp_path / "c.warc", "2021-05-01T10:00:00Z", {f"{secure}a": b"<p>later"})
    first, second, third = tags_of(archive, HOST)
    texts = {
        (tag, url): _cat(archive, "--text", tag, url).stdout.decode().strip()
        for tag in (first, second, third)
        for url in (f"{URL}a", f"{secure}a")
    }
    assert texts[second, f"{URL}a"] == texts[first, f"{URL}a"] == "plain"
    assert (texts[second, f"{secure}a"], texts[third, f"{secure}a"]) == ("sec", "later")
    assert _cat(archive, second, f"{secure}a").stdout == b"<p>sec"


def _hold(archive: Archive, number: int) -> None:
    """Withdraw a crawl, by its place in time."""
    records = sorted(Catalogue(archive).records(), key=lambda record: record.date or datetime.min.replace(tzinfo=UTC))
    decide(archive, records[number].id, Decision.WITHDRAW, Acting("anna", None), "why")


def test_what_a_browser_showed_is_read_through_its_own_crawl_only(archive: Archive, tmp_path: Path) -> None:
    page = Shown(f"{URL}app", text="Hallo Welt", dom="<p>Hallo Welt")
    imported(archive, wacz(tmp_path / "a.wacz", page))
    tag = tags_of(archive, HOST)[0]
    assert _cat(archive, "--text", tag, f"{URL}app").stdout == b"Hallo Welt\n"
    assert _cat(archive, "--text", "--rendered", tag, f"{URL}app").stdout == b"Hallo Welt"
    assert _cat(archive, "--rendered", tag, f"{URL}app").stdout == b"<p>Hallo Welt"
    again = Shown(f"{URL}app", date="2025-07-01T12:00:00Z", later="2025-07-01T12:00:20Z", text="Hallo Welt")
    imported(archive, wacz(tmp_path / "b.wacz", again))
    late = tags_of(archive, HOST)[1]
    assert _cat(archive, "--text", "--as-reader", late, f"{URL}app").stdout == b"Hallo Welt\n"
    _hold(archive, 0)
    for words in (["--text"], ["--rendered", "--text"], ["--rendered"]):
        done = _cat(archive, *words, "--as-reader", late, f"{URL}app")
        assert (done.returncode, done.stdout) == (2, b""), words
    assert b'id="root"' in _cat(archive, "--as-reader", late, f"{URL}app").stdout
    assert _cat(archive, "--text", late, f"{URL}app").stdout == b"Hallo Welt\n"
