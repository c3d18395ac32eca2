"""What browsers showed of pages, as Browsertrix and ArchiveWeb.page record it: imported, kept, found, exported."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent.importing import browser_pages, import_sources
from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from agent.jobs import exportedjob, importjob
from agent.maintenance.verification import verify
from agent.operations import withholding
from agent.operations.records import Acting
from agent.pipeline.publish import Publisher
from tests.support import browsertrix, warcs
from tests.support.browsertrix import JPEG, SHELL, Shown, png, urn, wacz
from tests.support.crawls import archive, arcs, check_sound, crawls_of, log_lines, meta, read, store
from tests.support.foreignfiles import HAR_TIME, har_entry, write_har, write_wacz
from tests.support.imports import Result, command, import_files, imported, killed_in
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.git.repository import MAIN
from webarcfs.archive.history import rendered_forms
from webarcfs.export import wacz as wacz_export
from webarcfs.export import warc
from webarcfs.export.selection import Asked, select
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.crawl

__all__ = ["archive"]
HOST = "www.example.org"
URL = f"http://{HOST}/"
#: A DOM; each crawl has another word in it. NUL stays, as HTML says itself what it is.
DOM = "<!DOCTYPE html>\r\n<p>% wörds \0 🦒</p>\n"
OWN_TITLE = b"<!DOCTYPE html><title>Own</title><p>served words"


def form(archive: Archive, arc: str) -> dict[str, bytes]:
    """The files of what a browser showed of a document: name → content."""
    repository, tree = store(archive, HOST), meta(archive, HOST, arc).rendered
    if not tree:
        return {}
    kept = repository.find(repository.ref(rendered_forms.REF) or "", f"{tree[:2]}/{tree}")
    assert kept is not None and kept.oid == tree
    return {name: repository.read(blob) for name, blob in rendered_forms.blobs_of(repository, tree).items()}


def said(archive: Archive, arc: str) -> dict[str, str]:
    described: dict[str, str] = json.loads(form(archive, arc)[rendered_forms.DESCRIPTION])
    return described


def found(archive: Archive, words: str, *, reader: str | None = None, ever: bool = False) -> list[str]:
    """The paths of the pages that a search finds; of the staff, or of a reader."""
    gate = None if reader is None else Gate(archive, Reader(reader))
    answer = Searcher(archive, gate).ask(SearchQuestion(words=words, present=not ever))
    return sorted(hit.url.removeprefix(URL) for hit in answer.hits)


def remarks_of(done: Result) -> str:
    return "\n".join(done.remarks)


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_text_picture_and_title_of_a_page_are_kept_beside_it(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-1: the document stays as it was sent; data.xml names what a browser showed."""
    page = Shown(f"{URL}app", text="Hallo Welt", view=png(), title="Die App")
    outcome = imported(archive, wacz(tmp_path / "a.wacz", page))
    assert read(archive, HOST, "app") == SHELL
    files = form(archive, "app")
    assert files["rendered.txt"] == b"Hallo Welt"
    assert files["rendered.png"] == png()
    assert said(archive, "app") == {
        "picture": "urn:view", "shown": "2025-06-01T12:00:20Z", "text": "urn:text", "title": "Die App",
        "titleFrom": "pages.jsonl",
    }  # fmt: skip
    assert meta(archive, HOST, "app").title == "Die App"
    assert "rendered" in log_lines(archive, outcome)[f"{URL}app"].notes
    check_sound(archive)


def test_the_best_of_each_kind_is_kept(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-3: textFinal before text before pages.jsonl; view before fullPage before thumbnail."""
    pages = [
        Shown(f"{URL}final", text="before", final="after", listed_text="listed", view=png(1), full=png(2)),
        Shown(f"{URL}text", text="loaded", listed_text="listed", full=png(2), thumbnail=JPEG),
        Shown(f"{URL}listed", listed_text="listed", thumbnail=JPEG, title="L"),
        Shown(f"{URL}title", title="Only a title"),
        Shown(f"{URL}plain"),
    ]
    done = import_files(archive, wacz(tmp_path / "a.wacz", pages[0], extra=pages[1:]))
    kept = {arc: form(archive, arc) for arc in ("final", "text", "listed", "title", "plain")}
    assert kept["final"]["rendered.txt"] == b"after"
    assert kept["final"]["rendered.png"] == png(1)
    assert kept["text"]["rendered.txt"] == b"loaded"
    assert kept["text"]["rendered.png"] == png(2)
    assert kept["listed"]["rendered.txt"] == b"listed"
    assert kept["listed"]["rendered.jpg"] == JPEG  # a JPEG, whatever its record says
    assert said(archive, "listed")["text"] == said(archive, "listed")["titleFrom"] == "extraPages.jsonl"
    assert set(kept["title"]) == {rendered_forms.DESCRIPTION}
    assert kept["plain"] == {}
    assert meta(archive, HOST, "plain").rendered == ""
    assert "another text, DOM, picture or title of a page at one capture is not kept" in remarks_of(done)


def test_a_title_of_its_own_stays(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-4: the crawler's title counts where the document has none, and is no page's that is no HTML."""
    data = Shown(f"{URL}data.json", b'{"a": 1}', title="JSON")
    pages = [
        Shown(f"{URL}own", OWN_TITLE, title="Changed by a script"),
        Shown(f"{URL}none", title="Made by a script"),
        Shown(f"{URL}url", title=f"{URL}url"),
        Shown(f"{URL}odd", title=f"  a\n\0b\ud800 {'x' * 5000}"),
    ]
    files = browsertrix.files_of([*pages, replace(data, title="JSON")])
    imported(archive, write_wacz(tmp_path / "a.wacz", files))
    assert [meta(archive, HOST, arc).title for arc in ("own", "none", "url")] == ["Own", "Made by a script", ""]
    assert meta(archive, HOST, "own").rendered == meta(archive, HOST, "url").rendered == ""
    assert meta(archive, HOST, "odd").title.startswith("a b? xxx")
    assert len(meta(archive, HOST, "odd").title) <= 1000
    check_sound(archive)


def test_routes_with_one_shell_have_texts_of_their_own(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-2: what a browser showed belongs to a URL and a crawl, not to the bytes."""
    pages = [Shown(f"{URL}r/{number}", text=f"route{number}x") for number in range(100)]
    imported(archive, wacz(tmp_path / "a.wacz", *pages))
    for number in (0, 57, 99):
        assert form(archive, f"r/{number}")["rendered.txt"] == f"route{number}x".encode()
    bring_in_step(archive)
    assert found(archive, "route57x") == ["r/57"]


def test_another_text_of_the_same_bytes_is_a_new_version(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-2: another picture or title alone, or none at all, is no new version."""
    first = Shown(f"{URL}app", text="first words", view=png(1), title="One")

    def crawled(day: int, page: Shown) -> str:
        date = f"2025-06-{day:02}T12:00:0"
        imported(
            archive, wacz(tmp_path / f"{day}.wacz", replace(page, date=f"{date}0Z", later=f"{date}9Z")), name="site"
        )
        return meta(archive, HOST, "app").rendered

    one = crawled(1, first)
    assert crawled(2, first) == crawled(3, replace(first, view=png(2), title="Two")) == one
    assert crawled(4, Shown(f"{URL}app")) == one
    two = crawled(5, replace(first, text="second words"))
    assert two not in {one, ""}
    assert form(archive, "app")["rendered.txt"] == b"second words"
    bring_in_step(archive)
    assert found(archive, "first words") == []
    assert found(archive, "first", ever=True) == found(archive, "second") == ["app"]
    check_sound(archive)


def test_two_texts_of_the_same_bytes_in_one_crawl_are_two_versions(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-2: a page that shows the news of the day is captured twice, and both are kept."""
    one = Shown(f"{URL}app", text="morning words")
    two = replace(one, text="evening words", date="2025-06-01T18:00:00Z", later="2025-06-01T18:00:09Z")
    plain = Shown(f"{URL}app", date="2025-06-01T12:00:05Z")
    imported(archive, wacz(tmp_path / "a.wacz", one, plain, two))
    assert form(archive, "app")["rendered.txt"] == b"evening words"
    bring_in_step(archive)
    assert found(archive, "morning") == []
    assert found(archive, "morning", ever=True) == found(archive, "evening") == ["app"]
    check_sound(archive)


def test_a_dom_alone_makes_no_version(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-10: a nonce in the DOM changes with each crawl; the text decides, also where it becomes empty."""
    first = Shown(f"{URL}app", text="the words", dom="<p nonce=1>the words")

    def crawled(day: int, page: Shown) -> tuple[str, str]:
        date = f"2025-06-{day:02}T12:00:0"
        imported(
            archive, wacz(tmp_path / f"{day}.wacz", replace(page, date=f"{date}0Z", later=f"{date}9Z")), name="site"
        )
        tree = store(archive, HOST).commit(store(archive, HOST).ref(MAIN) or "").tree
        return meta(archive, HOST, "app").rendered, tree or ""

    one = crawled(1, first)
    assert crawled(2, replace(first, dom="<p nonce=2>the words")) == one
    assert crawled(3, replace(first, dom=None)) == one
    assert form(archive, "app")["rendered.html"] == b"<p nonce=1>the words"
    assert said(archive, "app")["html"] == "urn:dom"
    two = crawled(4, replace(first, text="other words", dom="<p nonce=3>other words"))
    assert two[0] != one[0]
    three = crawled(5, replace(first, text=None, dom="<p nonce=4>"))
    assert three[0] not in {one[0], two[0]}
    assert crawled(6, replace(first, text=None, dom="<p nonce=5>")) == three
    assert set(form(archive, "app")) == {"rendered.html", "rendered.json"}
    check_sound(archive)


# -- which page it is of -----------------------------------------------------------------------------------------------


def test_of_which_page_it_is(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-5: a redirect leads to the page; what is of no page, or of another time, is skipped with a remark."""
    moved = warcs.record(
        "response", f"{URL}old", warcs.http(b"", status="301 Moved", Location="/new#top"), "2025-06-01T12:00:00Z"
    )
    files = browsertrix.files_of([Shown(f"{URL}new")])
    files["archive/rec-1.warc.gz"] = browsertrix.gzipped(
        [
            moved,
            urn("text", f"{URL}old", b"of the target", "2025-06-01T12:00:09Z"),
            urn("text", f"{URL}away", b"of no page", "2025-06-01T12:00:09Z"),
            urn("text", "https://elsewhere.example/", b"of no host", "2025-06-01T12:00:09Z"),
            urn("view", f"{URL}new", png(), "2025-06-01T13:00:01Z"),
            urn("text", "file:///etc/passwd", b"x", "2025-06-01T12:00:09Z"),
            urn("text", "urn:text:http://www.example.org/new", b"x", "2025-06-01T12:00:09Z"),
            urn("mine", f"{URL}new", b"x", "2025-06-01T12:00:09Z"),
            urn("text", f"{URL}new", b"x", "0000"),
        ]
    )
    done = import_files(archive, write_wacz(tmp_path / "a.wacz", files))
    assert set(form(archive, "new")) == {"rendered.txt", "rendered.json"}
    assert form(archive, "new")["rendered.txt"] == b"of the target"
    said_of = remarks_of(done)
    assert "its page is neither in the files nor in the archive: http://www.example.org/away" in said_of
    assert "elsewhere.example: what a browser showed is skipped: its page is neither" in said_of
    assert f"no capture of its page is of about that time: {URL}new at 2025-06-01T13:00:01Z" in said_of
    assert "rec-1.warc.gz: skipped, no URL of the web, 3 times; the first: 'urn:text:file:///etc/passwd'" in said_of
    assert "its record has no date" in said_of
    assert arcs(archive, HOST) == {"new"}


def test_texts_in_a_file_of_their_own_find_the_page_in_the_archive(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-5: the file with the texts may come later; the page is then taken from the archive."""
    page = Shown(f"{URL}app", OWN_TITLE, text="later words", view=png())
    files = browsertrix.files_of([page])
    first = tmp_path / "rec.warc.gz"
    first.write_bytes(files["archive/rec-0.warc.gz"])
    import_files(archive, first, name="site")
    assert form(archive, "app") == {}
    second = tmp_path / "text.warc.gz"
    second.write_bytes(files["archive/text-0.warc.gz"] + files["archive/screenshots-0.warc.gz"])
    import_files(archive, second, name="site")
    assert form(archive, "app")["rendered.txt"] == b"later words"
    assert form(archive, "app")["rendered.png"] == png()
    assert read(archive, HOST, "app") == OWN_TITLE
    assert meta(archive, HOST, "app").capture_time.isoformat() == "2025-06-01T13:00:00+01:00"
    check_sound(archive)


def test_a_copy_in_the_archive_stays_a_copy(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-5: a page that comes from the archive again says what it was taken from, as before."""
    import_files(archive, write_har(tmp_path / "a.har", har_entry(f"{URL}app", "<p>copied")), name="site")
    (tmp_path / "text.warc").write_bytes(urn("text", f"{URL}app", b"words", HAR_TIME))
    import_files(archive, tmp_path / "text.warc", name="site")
    assert meta(archive, HOST, "app").source == "HAR"
    assert form(archive, "app")["rendered.txt"] == b"words"


def test_again_brings_what_an_older_version_left_out(archive: Archive, tmp_path: Path) -> None:
    """Files that were imported before bring their texts by --again."""
    pages = [Shown(f"{URL}app", text="words"), Shown(f"{URL}own", OWN_TITLE, title="T"), Shown(f"{URL}not", title="N")]
    whole = wacz(tmp_path / "a.wacz", *pages)
    responses = {name: data for name, data in browsertrix.files_of(pages).items() if "rec-" in name}
    bare = write_wacz(tmp_path / "b.wacz", responses)
    import_files(archive, bare, name="site")
    import_files(archive, whole, name="site", again=True)
    assert form(archive, "app")["rendered.txt"] == b"words"
    assert [meta(archive, HOST, arc).title for arc in ("app", "own", "not")] == ["", "Own", "N"]
    count = len(crawls_of(archive, HOST))
    import_files(archive, whole, name="site", again=True)
    assert len(crawls_of(archive, HOST)) == count


# -- hostile input -----------------------------------------------------------------------------------------------------


def test_what_is_no_text_or_picture_is_skipped_with_a_remark(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-6: sizes are bounded; a picture is told by its bytes; a text is UTF-8 without NUL, a DOM UTF-8."""
    pages = [
        Shown(f"{URL}large", text="x" * (rendered_forms.LONGEST_TEXT + 1), view=b"<html>no picture"),
        Shown(f"{URL}bytes", text=b"a\0b\xff\xfe c \xc3\xa4"),
        Shown(f"{URL}empty", text=" \n\t", view=b""),
        Shown(f"{URL}picture", view=b"\x89PNG\r\n\x1a\n" + bytes(rendered_forms.LARGEST_PICTURE)),
        Shown(f"{URL}dom", dom="<p>" * (rendered_forms.LARGEST_HTML // 3 + 1)),
        Shown(f"{URL}odd", dom=b"<p>a\0\xff\xc3\xa4"),
    ]
    done = import_files(archive, wacz(tmp_path / "a.wacz", *pages))
    assert [bool(form(archive, arc)) for arc in ("large", "bytes", "empty", "picture")] == [False, True, False, False]
    assert form(archive, "dom") == {}
    assert form(archive, "odd")["rendered.html"].decode() == "<p>a\0\ufffdä"
    assert form(archive, "bytes")["rendered.txt"].decode() == "a\ufffdb\ufffd\ufffd c ä"
    said_of = remarks_of(done)
    for what in (
        "a text that a browser showed is skipped: it has more than 10,000,000 bytes",
        "a picture that a browser showed is skipped: it has more than 33,554,432 bytes",
        "a picture that a browser showed is skipped: it is no PNG, JPEG or WebP",
        "a text that a browser showed is skipped: it is empty",
        "a text that a browser showed is not all UTF-8, or has NUL",
        "a DOM that a browser showed is skipped: it has more than 20,000,000 bytes",
        "a DOM that a browser showed is not all UTF-8",
    ):
        assert what in said_of, said_of
    assert arcs(archive, HOST) == {"large", "bytes", "empty", "picture", "dom", "odd"}


def test_max_file_size_bounds_them_too(archive: Archive, tmp_path: Path) -> None:
    done = import_files(archive, wacz(tmp_path / "a.wacz", Shown(f"{URL}a", text="x" * 2000)), max_file_size=1500)
    assert form(archive, "a") == {}
    assert "it has more than 1,500 bytes" in remarks_of(done)


def test_a_list_of_pages_that_means_harm(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-6: a line that is no page costs itself; a list that is not what its digest says is skipped."""
    good = Shown(f"{URL}good", title="Good")
    files = browsertrix.files_of([good])
    files["pages/pages.jsonl"] += b"\n".join(
        [b"{", b"[" * 100_000, b"[]", b'{"url": 5}', b'{"url": "http://[", "ts": "2025-06-01T12:00:00Z"}', b"\xff\xfe",
         b'{"url": "http://www.example.org/good", "ts": 5, "title": ["x"], "text": {}}',
         b'{"url": "http://www.example.org/good", "ts": "2025-06-01T12:00:00Z", "title": 7, "text": null}'],
    )  # fmt: skip
    done = import_files(archive, write_wacz(tmp_path / "a.wacz", files))
    assert meta(archive, HOST, "good").title == "Good"
    assert "a line that describes no page is skipped, 5 times" in remarks_of(done)
    assert "its page has no URL of the web" in remarks_of(done)
    other = directory.create(tmp_path / "other")
    package = {
        "profile": "data-package",
        "resources": [{"path": "pages/pages.jsonl", "hash": f"sha256:{'0' * 64}"}],
    }
    done = import_files(other, write_wacz(tmp_path / "b.wacz", files, package=package))
    assert "a list of pages is skipped: a file that is not what its digest" in remarks_of(done)
    assert meta(other, HOST, "good").title == ""


def test_a_line_that_is_too_long_costs_itself(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.importing.wacz_files._LONGEST_LINE", 1000)
    pages = [Shown(f"{URL}long", listed_text="x" * 600_000, title="Long"), Shown(f"{URL}short", title="Short")]
    done = import_files(archive, wacz(tmp_path / "a.wacz", *pages))
    assert [meta(archive, HOST, arc).title for arc in ("long", "short")] == ["", "Short"]
    assert "a line of more than 1,000 bytes is skipped" in remarks_of(done)


def test_a_thousand_texts_of_one_page(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-3: one is kept of each capture, the last of the best kind; the others are counted."""
    files = browsertrix.files_of([Shown(f"{URL}app")])
    records = [
        urn("text", f"{URL}app", f"text {number}".encode(), f"2025-06-01T12:{number // 60:02}:{number % 60:02}Z")
        for number in range(1000)
    ]
    files["archive/text-0.warc.gz"] = browsertrix.gzipped(records)
    done = import_files(archive, write_wacz(tmp_path / "a.wacz", files))
    assert form(archive, "app")["rendered.txt"] == b"text 999"
    assert "is not kept, 999 times" in remarks_of(done)
    assert len(crawls_of(archive, HOST)) == 1


def test_ten_thousand_records_of_no_page(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-6: records of no page cost a line each in the job, and no more than seconds."""
    files = browsertrix.files_of([Shown(f"{URL}app", text="here")])
    files["archive/text-1.warc.gz"] = browsertrix.gzipped(
        [b"".join(urn("text", f"{URL}no/{number}", b"x", "2025-06-01T12:00:00Z") for number in range(10_000))]
    )
    begun = time.process_time()
    done = import_files(archive, write_wacz(tmp_path / "a.wacz", files))
    assert time.process_time() - begun < 60
    assert "its page is neither in the files nor in the archive, 10000 times" in remarks_of(done)
    assert form(archive, "app")["rendered.txt"] == b"here"


def test_a_killed_import_resumes_with_what_was_shown(archive: Archive, tmp_path: Path) -> None:
    """A process that dies at the swap, or while it attaches, leaves nothing half."""
    path = wacz(tmp_path / "a.wacz", *(Shown(f"{URL}{n}", text=f"words{n}", title=f"T{n}") for n in range(3)))
    killed_in(lambda: import_files(archive, path), browser_pages.Attaching, "_show_all", 2)
    killed_in(lambda: import_files(archive, path), Publisher, "_swap")
    imported(archive, path)
    assert [form(archive, str(n))["rendered.txt"] for n in range(3)] == [b"words0", b"words1", b"words2"]
    assert [meta(archive, HOST, str(n)).title for n in range(3)] == ["T0", "T1", "T2"]
    check_sound(archive)


# -- search and readers ------------------------------------------------------------------------------------------------


def test_words_that_only_a_browser_showed_are_found(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-7: with the document's own words; a line that both have counts once."""
    pages = [
        Shown(f"{URL}app", text="giraffe\nzebra", title="Tiere"),
        Shown(f"{URL}own", OWN_TITLE, text="served words\nscripted"),
        Shown(f"{URL}data.bin", text="binary words"),
    ]
    imported(archive, wacz(tmp_path / "a.wacz", *pages))
    bring_in_step(archive)
    assert found(archive, "giraffe") == ["app"]
    assert found(archive, "title:Tiere") == ["app"]
    assert found(archive, '"served words" scripted') == ["own"]
    assert found(archive, "binary") == ["data.bin"]
    (hit,) = Searcher(archive).ask(SearchQuestion(words="giraffe", present=True)).hits
    assert hit.title == "Tiere"
    recover(archive)
    bring_in_step(archive, anew=True)
    assert found(archive, "giraffe") == ["app"]
    assert not list(verify(archive))


def test_readers_see_of_it_what_they_see_of_the_page(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-8: a withheld page, and a crawl that is not released, are in no search and no export of readers."""
    first = Shown(f"{URL}app", text="first words", title="One")
    other = Shown(f"{URL}secret", text="secret words", title="Secret")
    imported(archive, wacz(tmp_path / "a.wacz", first, other), name="site")
    second = replace(first, text="second words", date="2025-07-01T12:00:00Z", later="2025-07-01T12:00:10Z")
    source = wacz(tmp_path / "b.wacz", second)
    held = Publication(name="held", urls=(), release="by-hand", crawl=CrawlSettings())
    importjob.run(archive, import_sources.sources_of([source]), held, None)
    withholding.withhold(archive, [f"{URL}secret"], Acting("anna", None), reason="court")
    bring_in_step(archive)
    assert found(archive, "second") == ["app"]
    assert found(archive, "secret") == ["secret"]
    for ever in (False, True):
        assert found(archive, "second", reader="", ever=ever) == []
        assert found(archive, "secret", reader="", ever=ever) == []
        assert found(archive, "first", reader="", ever=ever) == ["app"]
    with ReaderRepositories(Gate(archive, Reader())) as reader:
        warc.export(select(archive, Asked(), reader), tmp_path / "out", lambda *_: None, lambda: False)
    sent = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "out").glob("*.warc.gz"))
    assert b"first words" in sent
    assert b"second words" not in sent
    assert b"secret words" not in sent


# -- exports -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def origin(archive: Archive, tmp_path: Path) -> Archive:
    """Two crawls: a page with all, whose text changes, one with a title alone, a plain one."""
    pages = [
        Shown(f"{URL}app", text="first words", dom=DOM.replace("%", "first"), view=png(), title="App"),
        Shown(f"{URL}title", title="Only a title"),
        Shown(f"{URL}plain", OWN_TITLE),
    ]
    imported(archive, wacz(tmp_path / "1.wacz", *pages), name="site")
    again = replace(
        pages[0],
        text="second words",
        dom=DOM.replace("%", "second"),
        date="2025-07-01T12:00:00Z",
        later="2025-07-01T12:00:10Z",
    )
    imported(archive, wacz(tmp_path / "2.wacz", again), name="site")
    return archive


def test_an_export_imported_as_exported_has_the_same_forms(origin: Archive, tmp_path: Path) -> None:
    """S-rendered-9: the same refs, but for the forms' own, which has the same trees."""
    out = tmp_path / "x.wacz"
    wacz_export.export(select(origin, Asked()), out, lambda *_: None, lambda: False)
    other = directory.create(tmp_path / "other")
    done = exportedjob.run(other, [out])
    assert not (done.refused or done.faults or done.remarks), done
    assert store(other, HOST).ref(rendered_forms.REF) == store(origin, HOST).ref(rendered_forms.REF)
    assert store(other, HOST).ref(MAIN) is not None
    assert form(other, "app") == form(origin, "app")
    assert form(other, "app")["rendered.txt"] == b"second words"
    assert form(other, "app")["rendered.html"] == DOM.replace("%", "second").encode()
    bring_in_step(other)
    assert found(other, "first", ever=True) == ["app"]
    assert not list(verify(other))


def test_an_export_imported_as_any_file_has_them(origin: Archive, tmp_path: Path) -> None:
    """S-rendered-9: as urn:text, urn:dom, urn:view and a title, which other programs read as well."""
    out = tmp_path / "x.wacz"
    wacz_export.export(select(origin, Asked()), out, lambda *_: None, lambda: False)
    other = directory.create(tmp_path / "other")
    imported(other, out, name="site")
    kept = form(other, "app")
    assert kept["rendered.txt"] == b"second words"
    assert kept["rendered.html"] == DOM.replace("%", "second").encode()
    assert kept["rendered.png"] == png()
    assert [meta(other, HOST, arc).title for arc in ("app", "title", "plain")] == ["App", "Only a title", "Own"]
    assert said(other, "title")["titleFrom"] == "pages.jsonl"
    assert form(other, "plain") == {}


def test_forms_that_are_missing_or_wrong_in_an_export_are_told(origin: Archive, tmp_path: Path) -> None:
    """S-rendered-9: a form that is not whole is left out with a line; the snapshots come in."""
    warc.export(select(origin, Asked()), tmp_path / "out", lambda *_: None, lambda: False)
    (path,) = (tmp_path / "out").glob("*.warc.gz")
    raw = gzip.decompress(path.read_bytes())
    lost = directory.create(tmp_path / "lost")
    (tmp_path / "a.warc").write_bytes(raw.replace(b"Webarcfs-Rendered", b"Webarcfs-Somewhat"))
    done = exportedjob.run(lost, [tmp_path / "a.warc"])
    assert "what browsers showed of 3 pages is not in the files" in "".join(done.remarks)
    assert meta(lost, HOST, "app").rendered
    assert sum("what a browser showed of it is not in refs/forms/rendered" in line for line in verify(lost)) == 2
    tree = meta(origin, HOST, "title").rendered.encode()
    wrong = directory.create(tmp_path / "wrong")
    (tmp_path / "b.warc").write_bytes(raw.replace(b"Webarcfs-Rendered: " + tree, b"Webarcfs-Rendered: " + tree[::-1]))
    done = exportedjob.run(wrong, [tmp_path / "b.warc"])
    assert "what browsers showed of 1 pages is not in the files" in "".join(done.remarks)
    (tmp_path / "c.warc").write_bytes(
        raw.replace(b"Webarcfs-Rendered: " + tree, b"Webarcfs-Rendered: ../../etc/passwd/" + b"x" * 21)
    )
    done = exportedjob.run(directory.create(tmp_path / "third"), [tmp_path / "c.warc"])
    assert "is no part of what a browser showed" in "".join(done.faults)


def test_the_command_tells_what_it_left_out(archive: Archive, tmp_path: Path) -> None:
    page = Shown(f"{URL}app", text="words", view=b"<html>")
    done = command("import", "--archive", archive.root, wacz(tmp_path / "a.wacz", page))
    assert done.code == 0, done.err
    assert "a picture that a browser showed is skipped: it is no PNG, JPEG or WebP" in done.err + done.out
