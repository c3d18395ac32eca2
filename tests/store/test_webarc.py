"""`webarc`, as people call it: formats, places, exit codes (/Cl-6/)."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.indexing.recovery import catch_up
from tests.support import archives
from tests.support.readercommand import webarc, webarc_bytes
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS

pytestmark = pytest.mark.store
PAGES = {"index.html": b"<title>home</title>", "a b/\u00fc.pdf": b"%PDF", "x.html": b"x"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("webarc"))
    archives.publish(made, pages=PAGES)
    archives.publish(made, pages={"x.html": None})
    catch_up(made)
    return made


def test_formats(archive: Archive) -> None:
    """/Cl-6/: one answer, in the form that is asked for."""
    where, root = "path LIKE '%.pdf'", str(archive.root)
    found = json.loads(webarc("query", "--archive", root, where, "--order-by", "crawlTime", "--format", "json").stdout)
    assert [each["crawlTime"] for each in found] == ["2026-11-21T03:00:00", "2026-11-21T03:00:01"]
    assert list(found[0]) == [*FIELDS, *CAPTURE_FIELDS] and found[0]["path"] == "/www.example.org/a b/\u00fc.pdf"
    answer = webarc("query", where, "--order-by", "crawlTime", "--format", "csv", environment={"WEBARC_ARCHIVE": root})
    assert list(csv.DictReader(io.StringIO(answer.stdout))) == found
    answer = webarc("query", "--archive", root, where, "--format", "paths", "--limit", "1")
    assert answer.stdout == "/.snapshots/2026-11-21T03:00:00@www.example.org/a b/\u00fc.pdf\n"
    answer = webarc("query", "--archive", root)
    assert len(answer.stdout.splitlines()) == 1 + 5 and "commitTag" in answer.stdout


def test_nothing_found_is_an_answer(archive: Archive) -> None:
    answer = webarc("query", "--archive", str(archive.root), "0", "--format", "json")
    assert (answer.returncode, json.loads(answer.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["mimetype_ = 1"], 1, "no such column"),
        (["url = "], 1, "syntax error"),
        (["1", "--format", "xml"], 1, "Invalid value"),
        (["1", "--mount", "/"], 2, "in no mounted archive"),
        (["(SELECT count(*) FROM metadata, metadata AS b, metadata AS c, metadata AS d, metadata AS e, metadata AS f,"
          " metadata AS g, metadata AS h, metadata AS i, metadata AS j) > 0", "--seconds", "0.2"], 2, "took more than"),
    ],
)  # fmt: skip
def test_errors_are_a_line_and_an_exit_code(archive: Archive, words: list[str], code: int, said: str) -> None:
    answer = webarc("query", *words, environment={"WEBARC_ARCHIVE": str(archive.root)})
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr and "Traceback" not in answer.stderr


def test_an_archive_without_database(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    answer = webarc("query", "--archive", str(made.root))
    assert answer.returncode == 2 and "recover" in answer.stderr


# -- versions ----------------------------------------------------------------------------------------------------------

FIRST, SECOND, THIRD, FOURTH = (f"2026-11-21T03:00:0{second}@www.example.org" for second in range(4))
OLD_PAGE = b"<html><title>t</title><body><p>one  line</p><p>stays</p><script>x = 1</script></body></html>"
NEW_PAGE = b"<html><title>t</title><body><p>another line</p><p>stays</p><script>x = 2</script></body></html>"
SPACED = b"<html><title>t</title><body>\n<p>another\tline </p> <p>stays</p></body></html>"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """A page that comes, changes, is extended by users, goes, and comes again; and others around it."""
    made = archives.make_archive(tmp_path_factory.mktemp("history"))
    archives.publish(made, pages={"p/page.html": OLD_PAGE, "stays.html": b"x", "a.pdf": b"%PDF-1"})
    archives.publish(made, pages={"p/page.html": NEW_PAGE, "p/page.html/inner.html": b"inner"})
    archives.add(made, "p/page.html/notes.txt", b"a note")
    archives.publish(made, pages={"p/page.html": None, "b.JPG": b"jpg"})
    archives.publish(made, pages={"p/page.html": SPACED, "b.JPG": None})
    return made


def lines(archive: Archive, *words: str) -> list[str]:
    answer = webarc(*words, environment={"WEBARC_ARCHIVE": str(archive.root)})
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


@pytest.mark.parametrize("name", ["http://www.example.org/p/page.html", "/www.example.org/p/page.html"])
def test_log_tells_each_change(history: Archive, name: str) -> None:
    found = [json.loads(line) for line in lines(history, "log", name, "--json")]
    told = [(each["tag"], each["what"], each["size"], each["files"]) for each in found]
    assert told == [
        (FOURTH, "added", len(SPACED), []),
        (THIRD, "removed", 0, []),
        (SECOND, "changed", len(NEW_PAGE), ["notes.txt"]),
        (FIRST, "added", len(OLD_PAGE), []),
    ]  # fmt: skip
    assert [line.split()[1] for line in lines(history, "log", name)] == ["added", "removed", "changed", "added"]


def test_log_of_what_users_added(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    archives.publish(made, pages={"a.html": b"a"})
    archives.publish(made, pages={"b.html": b"b"})
    archives.add(made, "a.html/words.txt", b"1")
    found = [json.loads(line) for line in lines(made, "log", "/www.example.org/a.html", "--json")]
    assert [(each["what"], each["files"]) for each in found] == [("extended", ["words.txt"]), ("added", [])]


def test_diff_of_two_snapshots(history: Archive) -> None:
    assert lines(history, "diff", FIRST, SECOND) == [
        "~ /www.example.org/p/page.html",
        "+ /www.example.org/p/page.html/inner.html",
    ]
    assert lines(history, "diff", SECOND, FOURTH) == ["~ /www.example.org/p/page.html"]
    assert lines(history, "diff", THIRD, FOURTH, "/www.example.org/b.JPG") == [
        f"--- {THIRD}", f"+++ {FOURTH}", "@@ -1 +0,0 @@", "-jpg"
    ]  # fmt: skip
    assert lines(history, "diff", FIRST, FIRST) == []
    rows = [json.loads(line) for line in lines(history, "diff", SECOND, THIRD, "--json")]
    assert {(each["path"], each["what"]) for each in rows} == {
        ("/www.example.org/b.JPG", "added"),
        ("/www.example.org/p/page.html", "removed"),
    }


def test_diff_of_a_page_shows_what_its_readers_see(history: Archive) -> None:
    """Markup and scripts are noise, and white space is if asked for."""
    page = "/www.example.org/p/page.html"
    made = lines(history, "diff", FIRST, SECOND, page)
    assert made[3:] == [" t", "-one line", "+another line", " stays"]
    assert lines(history, "diff", SECOND, FOURTH, page) == ["the same text; the page does not show the difference"]
    made = lines(history, "diff", THIRD, FOURTH, "http://www.example.org/p/page.html")
    assert [line for line in made[3:] if line.startswith("+")] == ["+t", "+another line", "+stays"]


def test_stat_counts_documents_and_bytes(history: Archive) -> None:
    """Seed 2, section 5.1."""
    figures = json.loads("\n".join(lines(history, "stat", FIRST, THIRD, "--json")))
    assert figures[FIRST]["documents"] == 3 and figures[FIRST]["bytes"] == len(OLD_PAGE) + 1 + 6
    assert figures[FIRST]["types"]["text/html"] == {"documents": 2, "bytes": len(OLD_PAGE) + 1}
    assert set(figures[THIRD]["extensions"]) == {"html", "pdf", "jpg"}
    table = lines(history, "stat", FIRST, THIRD)
    assert next(line for line in table if line.startswith("jpg ")).endswith("new")


def test_cat_is_byte_for_byte(history: Archive) -> None:
    for tag, body in ((FIRST, OLD_PAGE), (SECOND, NEW_PAGE), (FOURTH, SPACED)):
        assert webarc_bytes("cat", tag, "/www.example.org/p/page.html", "--archive", history.root).stdout == body


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["cat", THIRD, "/www.example.org/p/page.html"], 2, "has no document"),
        (["cat", "2020-01-01T00:00:00@www.example.org", "/www.example.org/a.pdf"], 2, "there is no snapshot"),
        (["cat", "yesterday", "/www.example.org/a.pdf"], 1, "no commitTag and no time"),
        (["cat", FIRST, "/../../etc/passwd"], 1, "names no document"),
        (["cat", FIRST, "/www.example.org/../x"], 1, "names no document"),
        (["cat", FIRST, "http://other.example/x"], 2, "no domain"),
        (["log", "/www.example.org/never.html"], 2, "no snapshot has"),
        (["log", "http://"], 1, "http://"),
        (["log", "/nothing/x"], 2, "no domain"),
        (["diff", FIRST, "2026-11-21T03:00:00@other.example"], 2, "no domain"),
        (["stat", FIRST, SECOND, THIRD], 1, "two are compared"),
        (["stat", "2026-11-21T03:00:09@www.example.org"], 2, "there is no snapshot"),
    ],
)
def test_what_is_not_there_is_said(history: Archive, words: list[str], code: int, said: str) -> None:
    answer = webarc(*words, environment={"WEBARC_ARCHIVE": str(history.root)})
    assert (answer.returncode, answer.stdout) == (code, ""), answer
    assert said in answer.stderr and "Traceback" not in answer.stderr


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_stat_draws_an_svg_with_its_figures_as_texts(history: Archive, tmp_path: Path) -> None:
    """Seed 2, section 5.1, as a picture; the same figures are the same bytes."""
    files = tmp_path / "a.svg", tmp_path / "b.svg"
    for file in files:
        assert lines(history, "stat", FIRST, THIRD, "--plot", str(file)) == lines(history, "stat", FIRST, THIRD)
    assert files[0].read_bytes() == files[1].read_bytes()
    root = ElementTree.parse(files[0]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {FIRST, THIRD, "text/html", "pdf", "jpg", "MIME types: documents", f"{len(OLD_PAGE) + 1:,}"} <= texts, texts


def test_stat_draws_a_png(history: Archive, tmp_path: Path) -> None:
    file = tmp_path / "one.PNG"
    lines(history, "stat", FIRST, "--json", "--plot", str(file))
    assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") and file.stat().st_size > 5_000


def test_a_picture_of_names_that_look_like_markup(tmp_path: Path) -> None:
    """Extensions are what pages' authors make of them: no formula, no markup, any script, many."""
    pages: dict[str, bytes] = dict.fromkeys(("a.$x^", "b.<b>&amp;", "c.漢", "d.\\frac"), b"x")
    made = archives.make_archive(tmp_path)
    archives.publish(made, pages=pages | {f"{number}.x{number}": b"y" for number in range(30)})
    lines(made, "stat", FIRST, "--plot", str(tmp_path / "p.svg"))
    ElementTree.parse(tmp_path / "p.svg")
    assert "others" in (tmp_path / "p.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("p.jpg", 1, "must end in .svg or .png"), ("no/folder/p.svg", 2, "no/folder"), ("p", 1, "must end in")],
)
def test_pictures_that_cannot_be(history: Archive, tmp_path: Path, name: str, code: int, said: str) -> None:
    environment = {"WEBARC_ARCHIVE": str(history.root)}
    answer = webarc("stat", FIRST, "--plot", str(tmp_path / name), environment=environment)
    assert (answer.returncode, answer.stdout) == (code, ""), answer
    assert said in answer.stderr and "Traceback" not in answer.stderr


def test_without_matplotlib_the_extra_is_named(
    history: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    environment = {"WEBARC_ARCHIVE": str(history.root)}
    answer = webarc("stat", FIRST, "--plot", str(tmp_path / "p.svg"), environment=environment)
    assert answer.returncode == 1 and "pip install 'webarcfs[plot]'" in answer.stderr
    assert webarc("stat", FIRST, environment=environment).returncode == 0
