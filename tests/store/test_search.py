"""Full text of an archive: every state is found, hits have dates, the index is kept, checked and rebuilt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest

from agent.indexing import fulltext, fulltext_run
from agent.indexing.fulltext import bring_in_step, findings, is_behind, recovered
from agent.indexing.recovery import catch_up, recover
from agent.maintenance.verification import verify
from tests.support import archives
from tests.support.archives import FIRST
from tests.support.crawls import run_command
from tests.support.disks import small_disk
from tests.support.readercommand import webarc
from tests.support.users import NOBODY
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import CaptureFacts
from webarcfs.archive.index.links import Question
from webarcfs.archive.model.errors import BadCondition, Interrupted, NotFound, TooMany, UsageError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.client import WebarchiveClient
from webarcfs.search import generations, index
from webarcfs.search.searching import HitOrder, Searcher, SearchQuestion

pytestmark = pytest.mark.store
_DOMAIN, _OTHER = "www.example.org", "other.example.net"


def _page(title: str, text: str, language: str = "en") -> bytes:
    return f"<html lang={language}><title>{title}</title><h1>{title}</h1><p>{text}</p></html>".encode()


_GERMAN = "Der Bericht über die Häuser der Stadt liegt nun vor und kann von allen bestellt werden."
_ENGLISH = "The annual report of the town about its houses and streets may be ordered by everybody."


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Three snapshots of a domain, one of another: a page that changes, one that goes, one that stays."""
    made = archives.make_archive(tmp_path)
    first = {
        "a.html": _page("Bericht", _GERMAN, "de"),
        "b.html": _page("Report", _ENGLISH),
        "c.html": _page("C", "zebra"),
    }
    archives.publish(made, _DOMAIN, first, FIRST)  # type: ignore[arg-type]
    archives.publish(made, _DOMAIN, {"b.html": None}, FIRST + timedelta(days=400))
    archives.publish(made, _DOMAIN, {"c.html": _page("C", "giraffe")}, FIRST + timedelta(days=800))
    archives.publish(made, _OTHER, {"d/report.html": _page("D", _ENGLISH + " giraffe")}, FIRST + timedelta(days=1))
    recover(made)
    bring_in_step(made)
    return made


def _urls(archive: Archive, words: str, **narrowing: object) -> list[str]:
    found = Searcher(archive).ask(SearchQuestion(words=words, **narrowing))  # type: ignore[arg-type]
    assert found.total == len(found.hits)
    return sorted(each.url.removeprefix("http://") for each in found.hits)


def test_each_state_is_found(archive: Archive) -> None:
    """BT-search-1: one snapshot, all domains at a time, all versions; and the present."""
    tags = [CommitTag(FIRST + timedelta(days=each), _DOMAIN) for each in (0, 400, 800)]
    assert _urls(archive, "report", present=True) == [f"{_OTHER}/d/report.html"]
    assert _urls(archive, "report present:now") == [f"{_OTHER}/d/report.html"]
    assert _urls(archive, "report present:2026-11-21") == [f"{_DOMAIN}/b.html"]
    assert _urls(archive, "report", at=tags[0]) == [f"{_DOMAIN}/b.html"]
    assert _urls(archive, "report", at=FIRST) == [f"{_DOMAIN}/b.html"]
    assert _urls(archive, "report", at=FIRST + timedelta(days=2)) == [f"{_OTHER}/d/report.html", f"{_DOMAIN}/b.html"]
    assert _urls(archive, "report", at=FIRST - timedelta(days=1)) == []
    assert _urls(archive, "report") == [f"{_OTHER}/d/report.html", f"{_DOMAIN}/b.html"]
    assert (_urls(archive, "zebra", present=True), _urls(archive, "zebra", at=tags[1])) == ([], [f"{_DOMAIN}/c.html"])
    assert _urls(archive, "giraffe", domain=_DOMAIN, at=tags[2]) == [f"{_DOMAIN}/c.html"]
    with pytest.raises(NotFound, match="no snapshot"):
        _urls(archive, "zebra", at=CommitTag(FIRST + timedelta(days=7), _DOMAIN))


def test_other_forms_of_a_word_are_found(archive: Archive) -> None:
    assert _urls(archive, "haus") == _urls(archive, "HÄUSERN") == [f"{_DOMAIN}/a.html"]
    assert _urls(archive, "haus", exact=True) == []
    assert _urls(archive, "streets order", domain=_OTHER) == [f"{_OTHER}/d/report.html"]
    assert _urls(archive, '"order"') == []  # in quotes it is the word itself
    # A word that is its own stem is found by other forms of it, in documents of that language alone.
    both = [f"{_OTHER}/d/report.html", f"{_DOMAIN}/b.html"]
    assert _urls(archive, "reporting") == _urls(archive, "report") == both
    assert _urls(archive, "reporting", exact=True) == _urls(archive, "reporting", language="de") == []


def test_links_of_a_killed_reader_go(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader opens an index by links in the folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    own, dead, foreign = (tmp_path / f"webarc-search-{who}" for who in (f"{os.getpid()}-x", f"{ended.pid}-x", "x"))
    for each in (own, dead, foreign):
        each.mkdir()
        (each / "meta.json").touch()
    bring_in_step(archive, anew=True)
    assert _urls(archive, "report", present=True) == [f"{_OTHER}/d/report.html"]
    assert sorted(tmp_path.glob("webarc-search-*")) == sorted([own, foreign])


def test_what_narrows_a_search(archive: Archive) -> None:
    """BT-search-2, BT-search-3."""
    both = [f"{_OTHER}/d/report.html", f"{_DOMAIN}/b.html"]
    for words, expected in (
        ("report site:example.net", both[:1]),
        (f"report site:{_OTHER}/d", both[:1]),
        (f"report site:{_OTHER}/e", []),
        ("report -giraffe", both[1:]),
        ("annual OR bericht", [*both[:1], f"{_DOMAIN}/a.html", *both[1:]]),
        ("ann* rep*", both),
        ('"annual report of"', both),
        ('"report annual"', []),
        ("title:d title:html -giraffe", []),
        ("title:d title:report", both[:1]),
        ("url:report", both[:1]),
        ("headings:bericht", [f"{_DOMAIN}/a.html"]),
        ("lang:de", [f"{_DOMAIN}/a.html"]),
        ("type:html bericht", [f"{_DOMAIN}/a.html"]),
        ("type:text/html type:pdf", []),
        ("before:2026-11-22 giraffe", []),
        ("after:2026-11-22 zebra OR giraffe", [*both[:1], f"{_DOMAIN}/c.html"]),
    ):
        assert _urls(archive, words) == expected, words
    assert _urls(archive, "site:example.org", type="pdf") == []
    assert _urls(archive, "report", language="en", publication="test", domain=_OTHER) == both[:1]
    assert _urls(archive, "report", publication="unknown") == []
    assert _urls(archive, "report OR giraffe", site=f"{_DOMAIN}", after="2027") == [f"{_DOMAIN}/c.html"]
    assert _urls(archive, "report OR giraffe", before="2026-11-22") == both[1:]
    for narrowing in ({"site": 'a" b'}, {"type": "pdf lang:de"}, {"after": " "}, {"language": '"'}):
        with pytest.raises(BadCondition):
            _urls(archive, "report", **narrowing)
    for sort, expected in ((HitOrder.OLDEST, "zebra"), (HitOrder.DATE, "giraffe")):
        hits = Searcher(archive).ask(SearchQuestion(words="url:c.html", sort=sort)).hits
        assert expected in hits[0].snippet.text and len(hits) == 1


def test_a_hit_has_its_dates(archive: Archive) -> None:
    """BT-search-7: of the version, and of all that was at its URL."""
    hit = Searcher(archive).ask(SearchQuestion(words=f"giraffe site:{_DOMAIN}")).hits[0]
    times = [(FIRST + timedelta(days=each)).strftime("%Y-%m-%dT%H:%M:%S") for each in (0, 400, 800)]
    assert (hit.since, hit.until, hit.first, hit.last) == (times[2], times[2], times[0], times[2])
    assert (hit.commitTag, hit.mimeType, hit.language, hit.status) == (
        f"{times[2]}@{_DOMAIN}",
        "text/html",
        "en",
        200,
    ) or hit.language
    old = Searcher(archive).ask(SearchQuestion(words="zebra")).hits[0]
    assert (old.since, old.until, old.commitTag) == (times[0], times[1], f"{times[1]}@{_DOMAIN}")
    assert (old.wordsFrom, old.wordsTo, old.versions) == (times[0], times[1], 1)
    assert (hit.wordsFrom, hit.wordsTo, hit.versions) == (times[2], times[2], 1)
    both = Searcher(archive).ask(SearchQuestion(words="zebra OR giraffe", domain=_DOMAIN)).hits[0]
    assert (both.wordsFrom, both.wordsTo, both.versions) == (times[0], times[2], 2)


def test_hits_are_counted_by_snapshot(archive: Archive) -> None:
    """BT-search-6, and facets: a version counts in each snapshot and year that has it."""
    searcher = Searcher(archive)
    counts = {
        each.commitTag.partition("@")[0][:10]: each.total
        for each in searcher.by_snapshot(SearchQuestion(words=f"site:{_DOMAIN}"))
    }
    assert list(counts.values()) == [2, 2, 3]
    facets = searcher.facets(SearchQuestion(words="site:example.org OR site:example.net"))
    assert facets["year"] == [("2026", 4), ("2029", 1)]  # no crawl said that it met the others again
    of_state = searcher.facets(SearchQuestion(words="site:example.org OR site:example.net", present=True))
    assert of_state["year"] == [("2026", 2), ("2027", 1), ("2029", 2)]
    assert facets["domain"] == [(_DOMAIN, 3), (_OTHER, 1)]
    assert dict(facets["kind"]) == {"html": 4}


def test_nothing_found_has_a_suggestion(archive: Archive) -> None:
    assert Searcher(archive).ask(SearchQuestion(words="girafe", present=True)).suggestion == "giraffe"
    # Only an older state has zebras.
    assert Searcher(archive).ask(SearchQuestion(words="zebar", present=True)).suggestion == ""
    assert Searcher(archive).ask(SearchQuestion(words="zebar")).suggestion == "zebra"


def test_the_index_follows(archive: Archive) -> None:
    """A new snapshot, and an import from between two others, change what is found, and nothing else is put."""
    searcher = Searcher(archive)
    assert not is_behind(archive) and findings(archive) == []
    archives.publish(archive, _DOMAIN, {"e.html": _page("E", "okapi")}, FIRST + timedelta(days=900))
    catch_up(archive)
    assert is_behind(archive) and searcher.ask(SearchQuestion(words="okapi")).missing == 1
    assert bring_in_step(archive).documents == 1
    assert searcher.ask(SearchQuestion(words="okapi")).total == 1  # a searcher that is open sees it
    assert not is_behind(archive) and bring_in_step(archive) == fulltext_run.Indexed(0, 0)
    archives.publish(archive, _DOMAIN, {"c.html": _page("C", "lion")}, FIRST + timedelta(days=901))
    # The feed has its line, and webarc.db no rows yet.
    assert bring_in_step(archive) == fulltext_run.Indexed(0, 0)
    catch_up(archive)
    assert is_behind(archive)
    assert bring_in_step(archive).documents == 2
    present = _urls(archive, "giraffe", domain=_DOMAIN, present=True)
    assert (present, _urls(archive, "lion")) == ([], [f"{_DOMAIN}/c.html"])
    assert list(verify(archive)) == []


def test_verify_tells_what_is_wrong(archive: Archive) -> None:
    """BT-index-5: what is missing, too much, damaged, or of another version; recover and the next run mend it."""
    folder = generations.current(archive)
    assert folder is not None
    with index.IndexWriter(folder) as writer:
        writer.mark_snapshot(f"2001-01-01T00:00:00@{_DOMAIN}", CaptureFacts(0, 0, 0, 0, 0))
        writer.commit()
    assert any("webarc.db has not" in line for line in verify(archive))
    assert (recovered(archive) or 0) > 0 and findings(archive) == []
    folder = generations.current(archive)
    assert folder is not None
    with index.IndexWriter(folder) as writer:
        writer._writer.delete_documents_by_term("key", f"/{_DOMAIN}/a.html\t{int(FIRST.timestamp())}")
        writer.commit()
    assert any("versions of" in line for line in findings(archive))
    recovered(archive)
    assert _urls(archive, "haus") == [f"{_DOMAIN}/a.html"]


@pytest.mark.parametrize(
    "harm",
    [
        shutil.rmtree,
        lambda folder: (folder / "meta.json").write_text("{"),
        lambda folder: [each.write_bytes(b"x" * 100) for each in folder.glob("*.idx")],
        lambda folder: [each.unlink() for each in folder.glob("*.store")],
        lambda folder: (folder.parent / "current").write_text("1 0\n"),
        lambda folder: (folder.parent / "current").write_text("nonsense"),
    ],
)  # fmt: skip
def test_an_index_that_cannot_be_read_is_made_anew(archive: Archive, harm: Callable[[Path], object]) -> None:
    folder = generations.current(archive)
    assert folder is not None
    harm(folder)
    (archive.search / "state").unlink()  # the agent looks again
    assert is_behind(archive)
    bring_in_step(archive)
    assert _urls(archive, "haus") == [f"{_DOMAIN}/a.html"] and list(verify(archive)) == []
    assert len([each for each in archive.search.iterdir() if each.is_dir()]) == 1


def test_anew_beside_the_one_in_use(archive: Archive) -> None:
    searcher = Searcher(archive)
    before = generations.current(archive)
    assert bring_in_step(archive, anew=True).documents == 5
    assert generations.current(archive) != before and before is not None and not before.exists()
    assert searcher.ask(SearchQuestion(words="haus")).total == 1


def test_a_run_that_stops_goes_on(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    archives.publish(archive, _DOMAIN, {f"{each}.html": _page("T", f"word{each}") for each in range(50)})
    recover(archive)
    looks = 0

    def stop() -> bool:
        nonlocal looks
        looks += 1
        return looks > 40

    with pytest.raises(Interrupted):
        bring_in_step(archive, stop)
    assert is_behind(archive) and list(verify(archive)) == []
    done = bring_in_step(archive)
    assert done.snapshots == 1 and 0 < done.documents < 50
    assert _urls(archive, "word49") == [f"{_DOMAIN}/49.html"] and list(verify(archive)) == []


def test_two_indexers_are_one(archive: Archive) -> None:
    archives.publish(
        archive, _DOMAIN, {f"n{each}.html": _page("N", "okapi") for each in range(30)}, FIRST + timedelta(days=900)
    )
    catch_up(archive)
    threads = [threading.Thread(target=bring_in_step, args=(archive,)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(_urls(archive, "okapi", limit=100)) == 30 and list(verify(archive)) == []


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "6m") as disk:
        archive = directory.create(disk / "archive")
        archives.publish(archive, _DOMAIN, {f"{each}.html": _page("T", f"word{each}") for each in range(20)})
        recover(archive)
        bring_in_step(archive)
        archives.publish(archive, _DOMAIN, {"new.html": _page("T", "okapi")})
        catch_up(archive)
        room = os.statvfs(disk)
        with (disk / "ballast").open("wb") as file:
            file.write(bytes(room.f_bavail * room.f_frsize - 8_192))
        with pytest.raises(OSError, match="No space left"):
            bring_in_step(archive)
        assert _urls(archive, "word7") == [f"{_DOMAIN}/7.html"]
        (disk / "ballast").unlink()
        bring_in_step(archive)
        assert _urls(archive, "okapi") == [f"{_DOMAIN}/new.html"] and list(verify(archive)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_reads_while_it_is_written(archive: Archive) -> None:
    """A reader needs no right to write, and no file of the index is private."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            archives.publish(archive, _DOMAIN, {f"x{number}.html": _page("X", "okapi")})
            catch_up(archive)
            bring_in_step(archive)

    for each in (archive.root.parent, *archive.root.parents):
        if each != Path("/"):
            each.chmod(each.stat().st_mode | 0o055)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        program = (
            "import os,sys; from pathlib import Path; from webarcfs.archive.config.directory import Archive; "
            "from webarcfs.search.searching import Searcher, SearchQuestion; "
            f"archive = Archive(Path({str(archive.root)!r})); question = SearchQuestion(words='haus'); "
            "Searcher(archive).ask(question); "  # the program itself may lie where only root reads
            f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
            "print(min(Searcher(archive).ask(question).total for _ in range(40)))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    finally:
        stop.set()
        writer.join()
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_the_command(archive: Archive) -> None:
    root = ("--archive", str(archive.root))
    shown = webarc("search", "haus", *root)
    assert shown.returncode == 0 and f"http://{_DOMAIN}/a.html" in shown.stdout and "1 found" in shown.stdout
    said = json.loads(webarc("search", "giraffe", "--facets", "--format", "json", *root).stdout)
    assert said["total"] == 2 and said["facets"]["kind"] == {"html": 2}
    hit = said["hits"][0]
    assert [hit["snippet"][begin:end] for begin, end in hit["marks"]] == ["giraffe"]
    assert "2 found: 2 in the present, 0 only in earlier versions" in webarc("search", "giraffe", *root).stdout
    both = webarc("search", "zebra", *root).stdout
    assert both.endswith("1 found: 0 in the present, 1 only in earlier versions\n")
    assert "2026-11-21T03:00:00 … 2027-12-26T03:00:00\n" in both
    assert webarc("search", "zebra", "--present", *root).stdout == "nothing was found\n"
    paths = webarc("search", "giraffe", "--format", "paths", "--sort", "url", *root).stdout.splitlines()
    assert paths == [
        f"/.snapshots/2026-11-22T03:00:00@{_OTHER}/d/report.html",
        f"/.snapshots/2029-01-29T03:00:00@{_DOMAIN}/c.html",
    ]
    assert webarc("search", "giraffe", "--format", "csv", *root).stdout.startswith("url,path,commitTag,title,")
    assert webarc("search", f"site:{_DOMAIN}", "--group", "snapshot", *root).stdout.splitlines()[0].split()[0] == "2"
    assert "Did you mean: giraffe" in webarc("search", "girafe", *root).stdout
    assert webarc("search", "--at", "2026-11-20", "bericht", *root).stdout.endswith("nothing was found\n")
    assert webarc("search", "--at", "2026-11-21", "bericht", *root).stdout.endswith("1 found\n")
    old = webarc("search", "zebra", "--all-versions", *root)
    assert (old.stdout, old.stderr.count("\n")) == (both, 1) and "--all-versions is the default now" in old.stderr
    assert "--all-versions" not in webarc("search", "--help").stdout
    assert webarc("search", "zebra", "--all-versions", "--present", *root).returncode == 1
    wrong = webarc("search", "a (b", *root)
    assert (wrong.returncode, wrong.stderr.splitlines()[2]) == (1, "webarc:     ^")
    assert webarc("search", "a", "--at", "yesterday", *root).returncode == 1
    assert webarc("search", "a", "--offset", "100000", *root).returncode == 2
    with pytest.raises(TooMany):
        Searcher(archive).ask(SearchQuestion(words="a", offset=100_000))
    with pytest.raises(BadCondition):
        Searcher(archive).ask(SearchQuestion(words="a", at=FIRST, present=True))


def test_without_an_index_or_the_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archives.make_archive(tmp_path)
    archives.publish(archive, _DOMAIN, {"a.html": _page("T", "t")})
    recover(archive)
    missing = webarc("search", "t", "--archive", str(archive.root))
    assert missing.returncode == 2 and "webarc-agent index" in missing.stderr
    archive.settings.write_text("[index]\nsearch = false\n")
    assert not fulltext.wanted(archive)
    refused = run_command("index", "--archive", str(archive.root))
    assert refused.code == 1 and "search = false" in refused.err
    monkeypatch.setattr("webarcfs.commands.search.find_spec", lambda _: None)
    assert "webarcfs[search]" in webarc("search", "t", "--archive", str(archive.root)).stderr
    monkeypatch.setattr("agent.indexing.fulltext.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"webarcfs\[search\]"):
        bring_in_step(archive)


def test_the_index_can_be_exported(archive: Archive, tmp_path: Path) -> None:
    done = run_command("index", "--archive", str(archive.root), "--export", str(tmp_path / "out.jsonl"))
    assert (done.code, done.err) == (0, "5 documents\n")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    german = next(each for each in lines if each["url"] == f"http://{_DOMAIN}/a.html")
    assert _GERMAN in german["content"]
    assert {"id", "crawl_date", "wayback_date", "crawl_year", "status_code", "hash", "domain", "host"} <= german.keys()
    assert (german["content_type_norm"], german["content_language"]) == ("html", "de")
    assert german["crawl_date"] == "2026-11-21T02:00:00Z" and len({each["id"] for each in lines}) == 5


def test_the_index_is_rebuilt_by_its_new_and_its_old_option(archive: Archive, tmp_path: Path) -> None:
    """`--anew` is an alias for one release: it does the same, and one line on stderr names the new option."""
    root = ("--archive", str(archive.root))
    told = "--anew is called --rebuild now\n"
    assert run_command("index", *root).code == 0
    again = run_command("index", *root)
    assert again.out == "0 documents of 0 snapshots indexed\n"
    new, old = (run_command("index", option, *root) for option in ("--rebuild", "--anew"))
    assert (new.code, old.code) == (0, 0)
    assert new.out == old.out == "5 documents of 4 snapshots indexed\n"
    assert told not in new.err and old.err.count(told) == 1
    shown = run_command("index", "--help").out
    assert "--rebuild" in shown and "--anew" not in shown
    for option in ("--rebuild", "--anew"):
        refused = run_command("index", option, "--export", str(tmp_path / "out.jsonl"), *root)
        assert refused.code == 1 and "--rebuild and --export are different tasks" in refused.err


def test_links_name_the_files_with_the_bytes(tmp_path: Path) -> None:
    """L-11, L-23: a link has the ARC of its target, in the command's JSON, CSV, and in the client."""
    archive = archives.make_archive(tmp_path)
    archive.settings.write_text("[index]\nlinks = true\n")
    page = b'<img src="/pic.png"><a href="/gone.html">x</a><a href="mailto:a@b.org">m</a>'
    archives.publish(archive, _DOMAIN, {"a.html": page, "pic.png": b"\x89PNG"})
    recover(archive)
    said = json.loads(
        webarc("links", "--from", f"http://{_DOMAIN}/a.html", "--format", "json", "--archive", str(archive.root)).stdout
    )
    assert {each["target"]: each["arc"] for each in said} == {
        f"http://{_DOMAIN}/pic.png": f"/{_DOMAIN}/pic.png", f"http://{_DOMAIN}/gone.html": "", "mailto:a@b.org": "",
    }  # fmt: skip
    for reader in (None, ""):
        with WebarchiveClient(archive.root, reader=reader) as client:
            found = {each.target: each.arc for each in client.links(Question(path=f"/{_DOMAIN}/a.html"))}
            assert (
                found[f"http://{_DOMAIN}/pic.png"] == f"/{_DOMAIN}/pic.png" and not found[f"http://{_DOMAIN}/gone.html"]
            )


def test_the_client_searches(archive: Archive) -> None:
    with WebarchiveClient(archive.root) as client:
        answer = client.search("giraffe", domain=_OTHER)
        assert [each.url for each in answer.hits] == [f"http://{_OTHER}/d/report.html"]
        assert client.search("report", at=datetime.fromisoformat("2026-11-21T03:00:00+01:00")).total == 1


def test_real_files_are_found_by_their_words(tmp_path: Path) -> None:
    """BT-index-2: a PDF, an office file and plain text, through git and the extractors' process."""
    docx = BytesIO()
    with zipfile.ZipFile(docx, "w") as file:
        file.writestr(
            "word/document.xml",
            '<w:document xmlns:w="u"><w:body><w:p><w:r><w:t>okapi</w:t></w:r></w:p></w:body></w:document>',
        )
    from matplotlib.figure import Figure

    pdf = BytesIO()
    figure = Figure()
    figure.text(0.1, 0.5, "giraffe and zebra")
    figure.savefig(pdf, format="pdf")
    archive = archives.make_archive(tmp_path)
    archives.publish(
        archive, _DOMAIN, {"a.pdf": pdf.getvalue(), "b.pdf": b"%PDF-1.4 nonsense", "c.docx": docx.getvalue()}
    )
    recover(archive)
    bring_in_step(archive)
    assert (_urls(archive, "giraffe zebra"), _urls(archive, "okapi")) == ([f"{_DOMAIN}/a.pdf"], [f"{_DOMAIN}/c.docx"])
    assert _urls(archive, "url:b.pdf") == [f"{_DOMAIN}/b.pdf"]  # what has no text is found by its URL


def test_robots_txt_is_in_no_search(archive: Archive) -> None:
    """Imports keep it as a document; it is rules for programs. The index is in step without it."""
    pages = {name: _page(name, "okapi") for name in ("robots.txt", "d.html")}
    archives.publish(archive, _DOMAIN, pages, FIRST + timedelta(days=900))  # type: ignore[arg-type]
    recover(archive)
    bring_in_step(archive)
    assert _urls(archive, "okapi") == [f"{_DOMAIN}/d.html"]
    assert not is_behind(archive) and not list(findings(archive))
