"""What a search or a query finds, taken away: equal to what the crawls met, by an independent count of their files."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator

from agent.indexing.fulltext import bring_in_step
from agent.operations import withholding
from agent.operations.records import Acting, decide
from tests.support import archives, warcreading
from tests.support.browsertrix import Shown, png, wacz
from tests.support.dated_pages import DOCX, docx, import_pages, pdf, response
from tests.support.disks import small_disk
from tests.support.imports import command, imported
from tests.support.readercommand import webarc, webarc_bytes
from tests.support.warcs import write
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.workflow import Decision
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.export import export_result, named_files, version_selection
from webarcfs.search import searching

pytestmark = pytest.mark.crawl

HOST, CDN = "www.example.org", "cdn.example.net"
URL = f"http://{HOST}/"
SHEET, PICTURE = f"http://{CDN}/s.css", f"http://{CDN}/bg.png"
_PYWB = Path(__file__).parents[2] / ".venv-pywb" / "bin"
YEARS = range(2015, 2021)
#: A capture: URL, time, SHA-1 of the body.
Capture = tuple[str, str, str]
Body = tuple[bytes, str]


def _crawl(year: int) -> dict[str, Body]:
    """What one crawl meets: pages with the word mayor, and others; some change, some do not."""
    mayor = "Anna" if year < 2018 else "Berta"
    page = (
        f"<title>Town {year // 2}</title><meta charset=utf-8><link rel=stylesheet href='{SHEET}'><img src=/logo>"
        f"<iframe src=/frame></iframe><p>The mayor {mayor} speaks</p><p>Bürgermeister {year // 2}"
    )
    pages: dict[str, Body] = {
        URL: (page.encode(), "text/html"),
        f"{URL}same": (b"<title>Same</title><p>mayor of all years", "text/html"),
        f"{URL}other": (f"<p>nothing {year}".encode(), "text/html"),
        f"{URL}frame": (f"<p>framed <img src='{PICTURE}?framed'>{year // 3}".encode(), "text/html"),
        f"{URL}secret": (f"<title>S</title><p>mayor zebra {year}".encode(), "text/html"),
        f"{URL}minutes.pdf": (pdf(f"Minutes of the mayor {year // 3}"), "application/pdf"),
        f"{URL}letter.docx": (docx("Dear mayor"), DOCX),
        URL.replace("http:", "https:") + "same": (f"<p>mayor over TLS {year // 4}".encode(), "text/html"),
        SHEET: (f"body{{background:url(bg.png)}}/*{year // 5}*/".encode(), "text/css"),
        PICTURE: (png(year // 2 % 200), "image/png"),
        f"{PICTURE}?framed": (png(7), "image/png"),
        f"http://{CDN}/logo.png": (png(3), "image/png"),
        f"http://{CDN}/unused.png": (png(9), "image/png"),
    }
    return pages


def _date(year: int) -> str:
    return f"{year}-05-01T10:00:00Z"


@pytest.fixture
def copied(archive: Archive, tmp_path: Path) -> Archive:
    """The same archive, for tests that change it."""
    shutil.copytree(archive.root, tmp_path / "copied")
    _CRAWLS[tmp_path / "copied"] = _CRAWLS[archive.root]
    return directory.open_archive(tmp_path / "copied")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    folder = tmp_path_factory.mktemp("questions")
    made = archives.make_archive(folder)
    bodies = {year: _crawl(year) for year in YEARS}
    for year in YEARS:
        pdf_url = f"{URL}minutes.pdf"  # a PDF has the time of its making in it: equal ones are made once
        bodies[year][pdf_url] = bodies[min(other for other in YEARS if other // 3 == year // 3)][pdf_url]
        bodies[year][f"{URL}letter.docx"] = bodies[YEARS[0]][f"{URL}letter.docx"]
        records = [response(url, body, _date(year), mime) for url, (body, mime) in bodies[year].items()]
        led = (b"", "text/html", "302 Found")
        records.append(response(f"{URL}logo", led[0], _date(year), led[1], led[2], Location=f"http://{CDN}/logo.png"))
        gone = f"<title>Gone</title><p>the mayor's page is gone {year}".encode()
        records.append(response(f"{URL}gone", gone, _date(year), status="404 Not Found"))
        imported(made, write(folder / f"{year}.warc", records), name="town", keep_errors=True)
    bring_in_step(made)
    _CRAWLS[made.root] = bodies
    yield made
    shutil.rmtree(made.root)


_CRAWLS: dict[Path, dict[int, dict[str, Body]]] = {}


def _sha1(body: bytes) -> str:
    return f"sha1:{base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()}"


def _truth(
    archive: Archive, wanted: Callable[[str, bytes], bool], years: Mapping[int, object] | None = None
) -> set[Capture]:
    """All captures of the bodies that are wanted, read off the crawls alone."""
    crawls = _CRAWLS[archive.root]
    return {
        (url, _date(year), _sha1(body))
        for year in crawls
        if years is None or year in years
        for url, (body, _) in crawls[year].items()
        if wanted(url, body)
    }


def _is_plain(_: str, body: bytes) -> bool:
    return b"mayor" in body and b"zebra" not in body


#: The texts of what is no markup, by the beginning of the URL.
_OFFICE = ("minutes.pdf", "letter.docx")


def _has_mayor(url: str, body: bytes) -> bool:
    return b"mayor" in body or url.endswith(_OFFICE)


def _captures(records: list[warcreading.Read]) -> set[Capture]:
    """The captures of WARC records, each once; a revisit is of a response that is there before it."""
    found: set[Capture] = set()
    responses: dict[tuple[str, str], str] = {}
    for record in records:
        if record.kind not in ("response", "revisit"):
            assert record.kind == "warcinfo", record
            continue
        digest, date = record.fields["WARC-Payload-Digest"], record.fields["WARC-Date"]
        capture = record.uri, date, digest
        assert capture not in found, "a capture stands there twice"
        found.add(capture)
        if record.kind == "response":
            responses[record.uri, date] = digest
            assert _sha1(record.body) == digest
        else:
            fields = record.fields
            of = fields["WARC-Refers-To-Target-URI"], fields["WARC-Refers-To-Date"]
            assert responses[of] == digest and record.body == b""
    return found


def _export(archive: Archive, out: Path, *words: str) -> dict[str, object]:
    done = webarc("export", "--archive", str(archive.root), "--json", *words, str(out))
    assert done.returncode == 0, done.stderr
    assert not out.with_name(f"{out.name}.part").exists()
    fields: dict[str, object] = json.loads(done.stdout)
    return fields


# -- WARC --------------------------------------------------------------------------------------------------------------


def test_a_search_as_warc_is_what_the_crawls_met_and_nothing_else(archive: Archive, tmp_path: Path) -> None:
    """S-take-1, S-take-3: read by two programs that are not ours."""
    out = tmp_path / "mayor.warc.gz"
    summary = _export(archive, out, "--search", "mayor")
    records = warcreading.read(out)
    truth = _truth(archive, _has_mayor)
    assert _captures(records) == truth
    versions = {(url, digest) for url, _, digest in truth}
    assert summary["versions"] == len(versions) == sum(record.kind == "response" for record in records)
    assert summary["records"] == len(truth) + 1
    about = records[0].body.decode()
    assert "webarcfs-question: --search mayor\r\n" in about and f"{len(versions)} versions" in about
    with out.open("rb") as file:
        fast = [(record.headers.get("WARC-Target-URI"), record.headers["WARC-Date"]) for record in FastIterator(file)]
    assert sorted(fast[1:]) == sorted((url, date) for url, date, _ in truth)


def test_one_a_url_is_the_newest_version_of_each(archive: Archive, tmp_path: Path) -> None:
    """S-take-1."""
    out = tmp_path / "one.warc"
    _export(archive, out, "--search", "mayor", "--one-a-url")
    truth = _truth(archive, _has_mayor)
    last = {url: max((date, digest) for other, date, digest in truth if other == url)[1] for url, _, _ in truth}
    assert _captures(warcreading.read(out)) == {capture for capture in truth if last[capture[0]] == capture[2]}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--search", "berta"), lambda _, body: b"Berta" in body),
        (("--search", "mayor type:pdf"), lambda url, _: url.endswith(".pdf")),
        (
            ("--search", "mayor -zebra -type:pdf -type:word"),
            _is_plain,
        ),
        (("--search", "bürgermeister"), lambda _, body: "Bürgermeister".encode() in body),
        (("--query", "mimeType = 'application/pdf'"), lambda url, _: url.endswith(".pdf")),
        (("--query", "title = 'Same'"), lambda _, body: b"<title>Same" in body),
        (("--query", ""), lambda *_: True),
    ],
)
def test_each_question_equals_its_truth(
    archive: Archive, tmp_path: Path, words: tuple[str, ...], wanted: Callable[[str, bytes], bool]
) -> None:
    out = tmp_path / "out.warc.gz"
    _export(archive, out, *words)
    assert _captures(warcreading.read(out)) == _truth(archive, wanted)


def test_a_state_and_a_condition_of_time(archive: Archive, tmp_path: Path) -> None:
    """S-take-2: --at takes what is in that state and no capture after it, a query the versions of its snapshots."""
    out = tmp_path / "then.warc"
    _export(archive, out, "--search", "mayor", "--at", "2017-12-31")
    then = _CRAWLS[archive.root][2017]
    truth = _truth(
        archive, lambda url, body: _has_mayor(url, body) and then[url][0] == body, dict.fromkeys(range(2018))
    )
    assert _captures(warcreading.read(out)) == truth
    query = tmp_path / "query.warc"
    _export(archive, query, "--query", "crawlTime < '2016-01-01' AND mimeType = 'text/html'")
    first = _CRAWLS[archive.root][2015]
    wanted = _truth(archive, lambda url, body: url in first and first[url] == (body, "text/html"))
    assert _captures(warcreading.read(query)) == wanted
    errors = tmp_path / "errors.warc"
    _export(archive, errors, "--query", "status = 404")
    assert {record.uri for record in warcreading.read(errors)[1:]} == {f"{URL}gone"}


def test_a_span_of_time_has_its_captures_and_the_first_one_of_each_version(archive: Archive, tmp_path: Path) -> None:
    """S-take-2: during: takes what a crawl of the span stored or met, present: those of a state, as --at does."""
    out = tmp_path / "during.warc"
    _export(archive, out, "--search", "mayor during:2017..2018")
    every = _truth(archive, _has_mayor)
    span = _truth(archive, _has_mayor, dict.fromkeys((2017, 2018)))
    firsts = {
        (url, min(date for other, date, same in every if (other, same) == (url, digest)), digest)
        for url, _, digest in span
    }
    assert _captures(warcreading.read(out)) == span | firsts
    assert firsts - span  # some are older
    for number, words in enumerate((("mayor present:2017",), ("mayor", "--at", "2017-12-31"))):
        _export(archive, tmp_path / f"{number}.jsonl", "--format", "jsonl", "--search", *words)
    states = [(tmp_path / f"{number}.jsonl").read_text() for number in (0, 1)]
    assert states[0] == states[1]
    assert {json.loads(line)["last"] for line in states[0].splitlines()} == {_date(2017)}


def test_with_resources_a_page_replays_as_it_was(archive: Archive, tmp_path: Path) -> None:
    """S-take-4: what each capture of the page needs: sheets and their images, frames and theirs, redirects."""
    out = tmp_path / "pages.warc.gz"
    summary = _export(archive, out, "--search", "bürgermeister", "--with-resources")
    captures = {(record.uri, record.fields["WARC-Date"]) for record in warcreading.read(out)[1:]}
    crawls = _CRAWLS[archive.root]
    needed = (SHEET, PICTURE, f"{URL}frame", f"{PICTURE}?framed", f"http://{CDN}/logo.png")
    for url in needed:  # each content that it had, at the time when it was new
        first = {body: year for year in reversed(YEARS) for body in [crawls[year][url][0]]}
        assert {date for other, date in captures if other == url} == {_date(year) for year in first.values()}, url
    assert (f"{URL}logo", _date(2015)) in captures
    others = {url for url, _ in captures} - {URL, f"{URL}logo", *needed}
    assert others == set()
    assert summary["versions"] == len({crawls[year][URL][0] for year in YEARS})
    for words in (("init", "x"), ("add", "x", str(out))):
        subprocess.run([_PYWB / "wb-manager", *words], cwd=tmp_path, check=True, capture_output=True)
    (index,) = (tmp_path / "collections" / "x" / "indexes").glob("*.cdxj")
    found = [line.split(" ", 2) for line in index.read_text().splitlines()]
    assert {(json.loads(about)["url"], time) for _, time, about in found} == {
        (url, date.translate(str.maketrans("", "", "-:TZ"))) for url, date in captures
    }


def test_what_is_too_deep_or_too_much_for_a_page_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-take-4: a page of frames in frames in frames."""
    made = archives.make_archive(tmp_path)
    frames = {f"{URL}f{depth}": f"<iframe src=/f{depth + 1}></iframe>".encode() for depth in range(1, 12)}
    import_pages(made, tmp_path / "a.warc", _date(2019), {URL: b"<p>kastanie<iframe src=/f1></iframe>", **frames})
    bring_in_step(made)
    words = ("--search", "kastanie", "--with-resources")
    summary = _export(made, tmp_path / "deep.warc", *words)
    found = {record.uri for record in warcreading.read(tmp_path / "deep.warc")[1:]}
    assert found == {URL, *(f"{URL}f{depth}" for depth in range(1, 10))}
    assert not summary["left_out"]
    monkeypatch.setattr(version_selection, "_MOST", 3)
    summary = _export(made, tmp_path / "many.warc", *words)
    found = {record.uri for record in warcreading.read(tmp_path / "many.warc")[1:]}
    assert found == {URL, *(f"{URL}f{depth}" for depth in range(1, 4))}
    assert summary["left_out"] == {version_selection.UNREAD: 1}


def test_other_formats_of_a_question(archive: Archive, tmp_path: Path) -> None:
    truth = {(url, date.translate(str.maketrans("", "", "-:TZ"))) for url, date, _ in _truth(archive, _has_mayor)}

    def index_of(lines: str) -> set[tuple[str, str]]:
        split = (line.split(" ", 2) for line in lines.splitlines())
        return {(json.loads(about)["url"], time) for _, time, about in split}

    _export(archive, tmp_path / "a.cdxj", "--format", "cdxj", "--search", "mayor")
    assert index_of((tmp_path / "a.cdxj").read_text()) == truth
    _export(archive, tmp_path / "folder", "--search", "mayor")
    _export(archive, tmp_path / "folder", "--format", "cdxj", "--search", "mayor")
    assert index_of((tmp_path / "folder" / "index.cdxj").read_text()) == truth
    _export(archive, tmp_path / "a.wacz", "--format", "wacz", "--search", "mayor")
    checked = subprocess.run(
        [sys.executable, "-m", "wacz.main", "validate", "-f", tmp_path / "a.wacz"], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    with zipfile.ZipFile(tmp_path / "a.wacz") as package:
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()][1:]
    html = _truth(archive, lambda _, body: b"mayor" in body)
    assert {(page["url"], page["ts"]) for page in pages} == {
        (url, min(date for other, date, same in html if (other, same) == (url, digest))) for url, _, digest in html
    }


def test_imported_elsewhere_it_is_found_by_the_same_words(archive: Archive, tmp_path: Path) -> None:
    """S-take-3."""
    out = tmp_path / "mayor.warc.gz"
    _export(archive, out, "--search", "mayor OR bürgermeister", "--with-resources")
    again = archives.make_archive(tmp_path)
    done = command("import", "--archive", again.root, out)
    assert done.code == 0, done.err
    bring_in_step(again)
    for words in ("mayor", "berta", "zebra", "bürgermeister", "mayor type:pdf"):
        rows = [_found(each, words) for each in (archive, again)]
        assert rows[0] == rows[1] and rows[0], words
    back = tmp_path / "back.warc.gz"
    _export(again, back, "--search", "mayor")
    assert _captures(warcreading.read(back)) == _truth(archive, _has_mayor)


def _lines(archive: Archive, *words: str) -> list[dict[str, Any]]:
    """The rows that an export writes to standard output, as a program of its own."""
    done = webarc_bytes("export", "--archive", archive.root, "--format", "jsonl", *words, "-")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _found(archive: Archive, words: str) -> list[tuple[str, str, str, str]]:
    """URL, text, first and last capture of each version that a search finds."""
    rows = _lines(archive, "--search", words)
    return sorted((row["url"], row["text"], row["first"], row["last"]) for row in rows)


def test_what_a_browser_showed_goes_along(tmp_path: Path) -> None:
    """A page that was found by the words of its scripts is found by them again."""
    made = archives.make_archive(tmp_path)
    imported(made, wacz(tmp_path / "a.wacz", Shown(f"{URL}app", text="Hallo Kastanie", title="Die App")))
    bring_in_step(made)
    out = tmp_path / "out.warc.gz"
    _export(made, out, "--search", "kastanie")
    assert [record.kind for record in warcreading.read(out)][:2] == ["warcinfo", "response"]
    (tmp_path / "again").mkdir()
    again = archives.make_archive(tmp_path / "again")
    assert command("import", "--archive", again.root, out).code == 0
    bring_in_step(again)
    (row,) = _found(again, "kastanie")
    assert row[1] == "Hallo Kastanie"


# -- readers -----------------------------------------------------------------------------------------------------------


def _hold(archive: Archive, year: int, decision: Decision) -> None:
    records = Catalogue(archive).records()
    (found,) = (record for record in records if record.date is not None and record.date.year == year)
    decide(archive, found.id, decision, Acting("anna", None), "why")


def test_a_reader_gets_exactly_what_may_be_seen(copied: Archive, tmp_path: Path) -> None:
    """S-take-5: half is withheld, a page, the first crawl, and one of the others."""
    (withheld,) = withholding.withhold(copied, [f"{URL}secret"], Acting("anna", None), reason="court")
    hidden = (2015, 2016, 2019)
    for year in hidden:
        _hold(copied, year, Decision.WITHDRAW)
    try:
        shown = dict.fromkeys(set(YEARS) - set(hidden))
        truth = _truth(copied, lambda url, body: _has_mayor(url, body) and url != f"{URL}secret", shown)
        for words, wanted in (
            (("--search", "mayor"), truth),
            (("--search", "mayor OR zebra"), truth),
            (("--query", "title <> 'Never'"), _truth(copied, lambda url, _: url != f"{URL}secret", shown)),
        ):
            out = tmp_path / f"reader-{words[0]}-{len(words[1])}.warc"
            _export(copied, out, *words, "--as-reader")
            assert _captures(warcreading.read(out)) == wanted, words
            assert b"zebra" not in out.read_bytes().partition(b"\r\n\r\nWARC/1.1")[2]
        rows = _lines(copied, "--as-reader", "--search", "mayor")
        found = {(row["url"], row["digest"]): row for row in rows}
        for (url, digest), row in found.items():
            dates = sorted(date for other, date, same in truth if (other, same) == (url, digest))
            assert (row["first"], row["last"], row["captures"]) == (dates[0], dates[-1], len(dates)), url
        assert set(found) == {(url, digest) for url, _, digest in truth}
        for words in (("--search", "zebra"), ("--query", f"url = '{URL}secret'")):
            done = webarc("export", "--archive", str(copied.root), "--as-reader", *words, str(tmp_path / "none.warc"))
            assert (done.returncode, "nothing to export" in done.stderr) == (2, True)
            assert not list(tmp_path.glob("none*"))
        files = tmp_path / "files"
        _export(copied, files, "--format", "files", "--text", "--search", "mayor", "--as-reader")
        assert "zebra" not in "".join(path.read_text("latin-1") for path in files.rglob("*") if path.is_file())
    finally:
        for year in hidden:
            _hold(copied, year, Decision.RELEASE)
        withholding.lift(copied, withheld.id, Acting("anna", None))


def test_staff_get_nothing_of_a_discarded_crawl(copied: Archive, tmp_path: Path) -> None:
    for decision in (Decision.WITHDRAW, Decision.DISCARD):
        _hold(copied, 2017, decision)
    for number, words in enumerate((("--search", "mayor"), ("--query", "title <> 'Never'"))):
        out = tmp_path / f"{number}.warc"
        _export(copied, out, *words)
        wanted = _has_mayor if words[0] == "--search" else lambda *_: True
        assert _captures(warcreading.read(out)) == _truth(copied, wanted, dict.fromkeys(set(YEARS) - {2017}))


def test_a_search_is_read_in_portions(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many versions, and of many that began at one moment, none is lost and none stands there twice."""
    for number, size in enumerate((1, 2, 3, 20_000)):
        monkeypatch.setattr(searching, "_AT_ONCE", size)
        found = sorted(searching.Searcher(archive).every_version(searching.SearchQuestion(words="mayor")))
        assert len(found) == len(set(found)) == len({(url, digest) for url, _, digest in _truth(archive, _has_mayor)})
        _export(archive, tmp_path / f"{number}.warc", "--search", "mayor")
    assert len({(tmp_path / f"{number}.warc").read_bytes() for number in range(4)}) == 1


# -- tables and files --------------------------------------------------------------------------------------------------


def test_tables_have_a_row_a_version_with_its_text(archive: Archive, tmp_path: Path) -> None:
    csv.field_size_limit(1 << 30)
    _export(archive, tmp_path / "a.csv", "--format", "csv", "--search", "mayor")
    _export(archive, tmp_path / "a.jsonl", "--format", "jsonl", "--search", "mayor")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text("utf-8").splitlines()]
    assert [{name: str(value) for name, value in line.items()} for line in lines] == rows
    truth = _truth(archive, _has_mayor)
    assert {(row["url"], row["digest"]) for row in rows} == {(url, digest) for url, _, digest in truth}
    for row in rows:
        dates = [date for url, date, digest in truth if (url, digest) == (row["url"], row["digest"])]
        assert (row["first"], row["last"], int(row["captures"])) == (min(dates), max(dates), len(dates))
        assert "mayor" in row["text"] and row["fault"] == ""
        assert row["address"] == f"/web/{row['first'].translate(str.maketrans('', '', '-:TZ'))}/{row['url']}"
    row = rows[0]
    text = webarc_bytes("cat", "--text", row["commitTag"], row["url"], "--archive", archive.root).stdout
    assert text.decode() == f"{row['text']}\n"


def test_files_are_named_by_date_and_title_and_the_index_says_which_is_which(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "files"
    summary = _export(archive, out, "--format", "files", "--text", "--search", "mayor")
    with (out / "index.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    named = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} - {"index.csv"}
    assert named == {row["file"] for row in rows} | {row["textFile"] for row in rows}
    assert summary["files"] == len(named) + 1 == 2 * len(rows) + 1
    assert summary["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    for row in rows:
        body = (out / row["file"]).read_bytes()
        assert _sha1(body) == row["digest"] and len(body) == int(row["size"])
        assert row["first"][:10] in row["file"]
        assert "mayor" in (out / row["textFile"]).read_text("utf-8")
    assert "www.example.org/2018-05-01 Town 1009.html" in named
    assert any(name.endswith("minutes.pdf") for name in named), named
    only = tmp_path / "texts"
    _export(archive, only, "--format", "files", "--text-only", "--search", "mayor type:pdf")
    assert {path.suffix for path in only.rglob("*") if path.is_file()} == {".txt", ".csv"}


def test_names_that_systems_refuse_and_titles_of_any_size(tmp_path: Path) -> None:
    """S-take-6."""
    made = archives.make_archive(tmp_path)
    titles = {
        "long": "x" * 10_000, "rtl": "שלום \u202eevil\u202c עולם", "con": "CON", "same1": "Same", "same2": "same",
        "same3": "SÁME".replace("Á", "A\u0301"), "same4": "S\u00c1ME", "dots": "... ", "slash": "a/b\\c:d*e?f\"g<h>i|j",
        "emoji": "🦒" * 300, "marked": "Same~0123456789ab", "none": "", "lines": "a\n\tb",
        "n" * 240: "", "aux.txt": "aux",
    }  # fmt: skip
    pages = {
        f"{URL}{name}": f"<meta charset=utf-8><title>{title}</title><p>kastanie".encode()
        for name, title in titles.items()
    }
    import_pages(made, tmp_path / "a.warc", _date(2019), pages)
    bring_in_step(made)
    out = tmp_path / "files"
    _export(made, out, "--format", "files", "--text", "--search", "kastanie")
    names = [path.name for path in (out / HOST).iterdir()]
    assert len(names) == 2 * len(titles)
    keys = {named_files.folded(name) for name in names}
    assert len(keys) == len(names)
    for name in names:
        assert len(name.encode()) <= 255 and len(name.encode("utf-16-le")) // 2 <= 120, name
        assert not set(name) & set('<>:"/\\|?*\u202e\u202c') and name.isprintable() and name[-1] not in " .", name
    with (out / "index.csv").open(newline="", encoding="utf-8") as file:
        found = {row["url"]: row["file"] for row in csv.DictReader(file)}
    assert set(found) == set(pages)
    assert found[f"{URL}con"] == f"{HOST}/2019-05-01 CON.html"


# -- trouble -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["warc", "csv", "jsonl", "files", "cdxj"])
def test_an_interrupted_export_resumes_with_the_same_bytes(
    copied: Archive, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--format", form, "--search", "mayor", *(["--text"] if form == "files" else []))
    whole, out = tmp_path / "whole", tmp_path / "out"
    _export(copied, whole, *words)
    monkeypatch.setattr(export_result, "_SECONDS", 0)
    script = (
        "import os, signal, sys\n"
        "from webarcfs.export import export_result, named_files\n"
        "export_result._SECONDS = 0\n"
        "left = int(sys.argv.pop(1))\n"
        "def dying(owner, name):\n"
        "    original = getattr(owner, name)\n"
        "    def call(*words, **named):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return original(*words, **named)\n"
        "    setattr(owner, name, call)\n"
        "dying(export_result.Growing, 'end_piece')\n"
        "dying(named_files._Files, 'put')\n"
        "from webarcfs.commands.cli import main; main()\n"
    )
    command_line = ["export", "--archive", str(copied.root), *words, str(out)]
    for left in (0, 3, 7):
        done = subprocess.run(
            [sys.executable, "-c", script, str(left), *command_line], capture_output=True, check=False
        )
        assert done.returncode == -9, done.stderr
        assert not out.exists()
        imported_meanwhile = tmp_path / f"{left}.warc"
        import_pages(copied, imported_meanwhile, _date(2024), {f"http://late{left}.example/{form}": b"<p>mayor"})
    bring_in_step(copied)
    _export(copied, out, *words)
    assert _content(out) == _content(whole)
    assert not out.with_name("out.part").exists()


def _content(path: Path) -> dict[str, bytes]:
    paths = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in paths}


def test_a_reader_who_sees_less_by_now_gets_no_rest(copied: Archive, tmp_path: Path) -> None:
    """S-take-5."""
    out = tmp_path / "out.jsonl"
    words = [
        "export",
        "--archive",
        str(copied.root),
        "--format",
        "jsonl",
        "--as-reader",
        "--search",
        "zebra",
        str(out),
    ]
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(export_result.Growing, "end_piece", full)
        done = webarc(*words)
        assert (done.returncode, "with more room" in done.stderr) == (2, True), done.stderr
    (withheld,) = withholding.withhold(copied, [f"{URL}secret"], Acting("anna", None), reason="court")
    try:
        done = webarc(*words)
        assert done.returncode == 2 and "may not be seen any more" in done.stderr, done.stderr
        assert not out.exists()
    finally:
        withholding.lift(copied, withheld.id, Acting("anna", None))
    assert webarc(*words).returncode == 0


def test_a_full_disk_is_said_and_with_room_it_goes_on(archive: Archive, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "60k") as disk:
        words = ["export", "--archive", str(archive.root), "--format", "files", "--search", "mayor", str(disk / "out")]
        done = webarc(*words)
        assert done.returncode == 2 and "with more room the same command resumes it" in done.stderr, done.stderr
        assert not (disk / "out").exists()
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        assert webarc(*words).returncode == 0
        whole = tmp_path / "whole"
        _export(archive, whole, "--format", "files", "--search", "mayor")
        assert _content(disk / "out") == _content(whole)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--search", "unheard", "{out}"], 2, "nothing to export"),
        (["--query", "title = 'Never'", "{out}"], 2, "nothing to export"),
        (["--query", "titel = 'x'", "{out}"], 1, "did you mean title"),
        (["--search", "mayor", "--query", "", "{out}"], 1, "give one of them"),
        (["--search", "mayor", "--since", f"2015-05-01T11:00:00@{HOST}", "{out}"], 1, "--since is of snapshots"),
        (["--search", "mayor", "--format", "static", "{out}"], 1, "whole snapshots"),
        (["--search", "mayor", "--format", "files", "-"], 1, "standard output"),
        (["--search", "mayor", "--format", "csv", "--with-resources", "{out}"], 1, "for replay"),
        (["--search", "mayor", "--text", "{out}"], 1, "--format files"),
        (["--format", "csv", "{out}"], 1, "--search or --query"),
        (["--one-a-url", "{out}"], 1, "belong to --search and --query"),
        (["--query", "", "--at", "2018-01-01", "{out}"], 1, "are of --search"),
        (["--search", "(", "{out}"], 1, ""),
        (["--search", "mayor", "--record", "nobody", "{out}"], 2, "no record"),
        (["--search", "mayor", "{there}"], 2, "is there already"),
    ],
)
def test_what_cannot_be_is_said_and_leaves_nothing(
    archive: Archive, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    out = [word.format(out=tmp_path / "out", there=there) for word in words]
    done = webarc("export", "--archive", str(archive.root), *out)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != "archive"] == ["there"]
    assert there.read_text() == "mine"


def test_a_damaged_body_is_left_out_and_counted(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    pages = {f"{URL}{number}": f"<p>kastanie {number}".encode() for number in range(4)}
    import_pages(made, tmp_path / "a.warc", _date(2019), pages)
    bring_in_step(made)
    _lose(archives.store_of(made, HOST).path, pages[f"{URL}2"])
    for form in ("warc", "jsonl", "files"):
        done = webarc(
            "export",
            "--archive",
            str(made.root),
            "--json",
            "--format",
            form,
            "--search",
            "kastanie",
            str(tmp_path / form),
        )
        assert done.returncode == 3, (form, done.stderr)
        assert json.loads(done.stdout)["versions"] == 3


def _lose(path: Path, body: bytes) -> None:
    """Take a blob out of a repository."""
    for pack in list((path / "objects" / "pack").glob("*.pack")):
        content = pack.read_bytes()
        for other in (path / "objects" / "pack").glob(f"{pack.stem}.*"):
            other.chmod(0o600)
            other.unlink()
        subprocess.run(["git", "-C", path, "unpack-objects", "-q"], input=content, check=True)
    oid = subprocess.run(["git", "hash-object", "--stdin"], input=body, capture_output=True, check=True).stdout.decode()
    (path / "objects" / oid[:2] / oid[2:].strip()).unlink()
