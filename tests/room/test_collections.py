"""Collections in the reading room: their pages, and nothing on them that the reader may not see."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from agent.indexing import fulltext
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, published, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, TooMany
from webarcfs.archive.model.metadata import CET, compact_time
from webarcfs.search.collecting import MOST_CRAWLS
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.store

FIRST = datetime(2020, 5, 1, 12, tzinfo=CET)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
SVG = b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def day(number: int) -> datetime:
    return FIRST + timedelta(days=number)


def record_id(number: int, publication: str) -> str:
    return f"{compact_time(day(number))}-{publication}"


def collection(archive: Archive, name: str, text: str) -> None:
    archive.collections.mkdir(exist_ok=True)
    (archive.collections / f"{name}.toml").write_text(text, "utf-8")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Publications a (3 crawls), b (2), and unshown (1, not released)."""
    archive = archives.make_archive(tmp_path)
    for number in range(5):
        name = "ab"[number > 2]
        host = f"{name}.example.org"
        published(archive, host, {f"http://{host}/": Page(b"%d" % number)}, day(number), publication=name,
                  title=f"Crawl {number}")  # fmt: skip
    published(archive, "h.example.org", {"http://h.example.org/": Page(b"x")}, day(9), publication="unshown",
              state=RecordState.COUNTED, held=True, title="Unreleased")  # fmt: skip
    recover(archive)
    return archive


def titles(room: Served, path: str) -> list[str]:
    page = LexborHTMLParser(room.get(path).body)
    return [node.text().strip() for node in page.css("table.snapshots th[role=rowheader] > a")]


def named(room: Served, path: str) -> list[str]:
    page = LexborHTMLParser(room.get(path).body)
    return [node.text() for node in page.css(".collections h2 a, .collections h3 a")]


def test_a_collection_has_the_crawls_of_its_publications_and_its_own(archive: Archive) -> None:
    collection(archive, "both", f'title = "Both"\ntext = "First.\\n\\nSecond."\npublications = ["a"]\n'
               f'crawls = ["{record_id(4, "b")}", "{record_id(0, "a")}", "20990101T000000-none"]\n')  # fmt: skip
    with served(archive) as room:
        assert titles(room, "/collection/both") == ["Crawl 4", "Crawl 2", "Crawl 1", "Crawl 0"]
        page = LexborHTMLParser(room.get("/collection/both").body)
        assert [node.text() for node in page.css(".collection p")][:2] == ["First.", "Second."]
        assert "4 crawls, 1 May 2020 – 5 May 2020" in " ".join(page.css_first(".collection .facts").text().split())  # type: ignore[union-attr]
        assert named(room, "/collections") == named(room, "/") == ["Both"]
        members = {f"/snapshot/{record_id(4, 'b')}": True, f"/snapshot/{record_id(3, 'b')}": False,
                   f"/snapshot/{record_id(1, 'a')}": True, "/publication/a": True, "/publication/b": False}  # fmt: skip
        for path, there in members.items():
            assert ("/collection/both" in room.get(path).text) == there, path


def test_a_collection_says_its_words_in_the_language_of_the_reader(archive: Archive) -> None:
    collection(archive, "c", 'title = "Elections"\ntext = "English"\npublications = ["a"]\npicture = "p.png"\n'
               'picture_text = "A box"\n[de]\ntitle = "Wahlen"\npicture_text = "Eine Urne"\n')  # fmt: skip
    (archive.collections / "p.png").write_bytes(PNG)
    with served(archive) as room:
        german, english = (room.get("/collection/c", {"Accept-Language": code}).text for code in ("de", "en"))
    assert "<bdi>Wahlen</bdi>" in german and "English" in german and 'alt="Eine Urne"' in german
    assert "<bdi>Elections</bdi>" in english and 'alt="A box"' in english


def test_a_collection_of_which_readers_see_nothing_is_none(archive: Archive) -> None:
    """Of one of which they see a part, nothing tells of the rest: neither a number nor a name."""
    hidden = record_id(9, "unshown")
    collection(
        archive,
        "secret",
        f'title = "Secretive"\npublications = ["unshown"]\ncrawls = ["{hidden}"]\npicture = "s.png"\n',
    )
    (archive.collections / "s.png").write_bytes(PNG)
    collection(archive, "some", f'title = "Some"\npublications = ["unshown", "b"]\ncrawls = ["{hidden}"]\n')
    with served(archive) as room:
        absent = room.get("/collection/secret")
        assert absent.status == room.get("/collection/secret/picture").status == 404
        assert absent.body == room.get("/collection/absent").body.replace(b"absent", b"secret")
        for path in ("/", "/collections", "/collection/some", "/publication/b", "/about", "/news.atom", "/search"):
            assert "Secretive" not in room.get(path).text and "unshown" not in room.get(path).text, path
        assert titles(room, "/collection/some") == ["Crawl 4", "Crawl 3"]
        catalogue = Catalogue(archive)
        catalogue.change(
            hidden, lambda was: was.with_event("released", "x", "", RecordState.RELEASED), "x", lambda _: "r"
        )
        assert room.get("/collection/secret").status == room.get("/collection/secret/picture").status == 200
        assert titles(room, "/collection/some") == ["Unreleased", "Crawl 4", "Crawl 3"]
        catalogue.change(
            hidden, lambda was: was.with_event("withdrawn", "x", "", RecordState.REJECTED), "x", lambda _: "w"
        )
        assert room.get("/collection/secret").status == 404 and len(titles(room, "/collection/some")) == 2


def test_what_the_rules_take_away_is_not_counted_or_named(archive: Archive) -> None:
    collection(archive, "c", 'title = "C"\npublications = ["a"]\n')
    access_rules.withhold(archive, "http://a.example.org/", "x", "no", access=Access.BLOCK)
    with served(archive) as room:
        page = room.get("/collection/c").text
    assert "Title of" not in page and page.count("Open<") == 3, "the crawls stay, and are described"


def test_a_crawl_under_embargo_is_described_and_not_opened(archive: Archive) -> None:
    Catalogue(archive).change(
        record_id(4, "b"), lambda was: replace(was, closed_for="90 years"), "x", lambda _: "closed"
    )
    collection(archive, "c", f'title = "C"\ncrawls = ["{record_id(4, "b")}"]\n')
    with served(archive) as room:
        page = room.get("/collection/c").text
    assert "under embargo until" in page and "/web/" not in page


@pytest.mark.parametrize(
    ("body", "name", "kind"),
    [(PNG, "p.png", "image/png"), (b"\xff\xd8\xff\xe0", "p", "image/jpeg"),
     (b"RIFF\0\0\0\0WEBPVP8 ", "p.png", "image/webp"), (SVG, "p.svg", "image/svg+xml"),
     (b"<html><svg></svg>", "p.svg", ""), (b"GIF89a", "p.gif", ""), (b"", "p.png", ""),
     (PNG + b"\0" * (2 << 20), "p.png", "")],
)  # fmt: skip
def test_a_picture_is_what_its_bytes_are_and_runs_nothing(archive: Archive, body: bytes, name: str, kind: str) -> None:
    collection(archive, "c", f'title = "C"\npublications = ["a"]\npicture = "{name}"\n')
    (archive.collections / name).write_bytes(body)
    with served(archive) as room:
        answer = room.get("/collection/c/picture")
        assert answer.status == (200 if kind else 404)
        if kind:
            assert (answer.headers["content-type"], answer.body) == (kind, body)
            assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
            assert answer.headers["x-content-type-options"] == "nosniff"
            again = room.get("/collection/c/picture", {"If-None-Match": answer.headers["etag"]})
            assert (again.status, again.body) == (304, b"")


def test_a_link_out_of_the_folder_is_no_picture(archive: Archive, tmp_path: Path) -> None:
    collection(archive, "c", 'title = "C"\npublications = ["a"]\npicture = "p.png"\n')
    (tmp_path / "outside.png").write_bytes(PNG)
    (archive.collections / "p.png").symlink_to(tmp_path / "outside.png")
    with served(archive) as room:
        assert room.get("/collection/c/picture").status == 404


@pytest.mark.parametrize("name", ["..", "%2e%2e%2fwebarc", "x%00", "%ff", "a" * 300, "c.toml", ""])
def test_a_name_of_none_is_not_there(archive: Archive, name: str) -> None:
    collection(archive, "c", 'title = "C"\npublications = ["a"]\n')
    with served(archive) as room:
        assert room.get(f"/collection/{name}").status == room.get(f"/collection/{name}/picture").status == 404


def test_what_people_wrote_is_text_and_a_file_with_faults_costs_itself_alone(archive: Archive) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    collection(archive, "good", f'title = "T {hostile[:-1]}"\ntext = "{hostile[:-1]}"\npublications = ["a"]\n')
    collection(archive, "bad", "title = 7\n")
    with served(archive) as room:
        for path in ("/", "/collections", "/collection/good"):
            assert "<script>alert" not in room.get(path).text and "&lt;script&gt;" in room.get(path).text
        assert room.get("/collection/bad").status == 404
        collection(archive, "bad", 'title = "Mended"\npublications = ["b"]\n')
        assert named(room, "/collections") == ["Mended", f"T {hostile[:-1]}"], "a change counts with the next request"
        (archive.collections / "good.toml").unlink()
        assert named(room, "/collections") == ["Mended"]


def test_a_long_list_of_collections_is_paged(archive: Archive) -> None:
    for number in range(120):
        collection(archive, f"c{number}", f'title = "Title {number:03}"\npublications = ["{"ab"[number % 2]}"]\n')
    with served(archive) as room:
        pages = [named(room, f"/collections?page={number}") for number in (1, 2, 3)]
        assert [len(page) for page in pages] == [50, 50, 20]
        assert [title for page in pages for title in page] == [f"Title {number:03}" for number in range(120)]
        home = named(room, "/")
        assert home == pages[0][: len(home)] and len(home) == 6 and "All 120 collections" in room.get("/").text


# -- search ------------------------------------------------------------------------------------------------------------


def hits(room: Served, question: str) -> list[str]:
    answer = room.get(f"/search.json?q={question}")
    assert answer.status == 200, answer.text
    return sorted(hit["url"] for hit in json.loads(answer.body)["hits"])


@pytest.fixture
def searched(tmp_path: Path) -> Archive:
    """Each crawl of a and b has a page of its own; a third publication is not released."""
    archive = archives.make_archive(tmp_path)
    for number in range(5):
        name = "ab"[number > 2]
        host = f"{name}.example.org"
        pages = {f"http://{host}/{number}": Page(f"<p>word of {number}".encode()),
                 f"http://{host}/{number - 1}": None}  # fmt: skip
        published(archive, host, pages, day(number), publication=name, title=f"Crawl {number}")
    published(archive, "h.example.org", {"http://h.example.org/": Page(b"<p>word of none")}, day(9),
              publication="unshown", state=RecordState.COUNTED, held=True)  # fmt: skip
    recover(archive)
    fulltext.bring_in_step(archive)
    collection(archive, "whole", 'title = "Whole"\npublications = ["a", "unshown"]\n')
    collection(archive, "single", f'title = "Single"\ncrawls = ["{record_id(1, "a")}", "{record_id(4, "b")}"]\n')
    collection(archive, "shut", f'title = "Shut"\npublications = ["unshown"]\ncrawls = ["{record_id(9, "unshown")}"]\n')
    return archive


#: What the form of the search says that a site looks like.
_PLACEHOLDER = "www.example.org/news"


def test_a_search_in_a_collection_finds_what_its_crawls_have(searched: Archive) -> None:
    whole = [f"http://a.example.org/{number}" for number in range(3)]
    single = ["http://a.example.org/1", "http://b.example.org/4"]
    with served(searched) as room:
        assert hits(room, "word&collection=whole") == hits(room, "word+collection:whole") == whole
        assert hits(room, "word&collection=single") == hits(room, "word+collection:single") == single
        assert hits(room, "word+-collection:single") == [*whole[::2], "http://b.example.org/3"]
        assert hits(room, "collection:single+OR+2") == sorted([*single, whole[2]])
        assert hits(room, "word+of+1&collection=single+") == single[:1]
        for name in ("shut", "none"):
            answer = room.get(f"/search?q=word&collection={name}")
            shown = answer.text.replace(_PLACEHOLDER, "")
            assert f"there is no collection &#39;{name}&#39;" in shown and "example.org/" not in shown
        page = LexborHTMLParser(room.get("/search?q=word").body)
        facet = {node.text(): node.attributes["href"] or "" for node in page.css(".facets a[href*='collection=']")}
        assert set(facet) == {"Whole", "Single"} and facet["Whole"].endswith("collection=whole")
        kept = LexborHTMLParser(room.get("/search?q=word&collection=whole").body)
        assert kept.css_first("form input[name=collection]").attributes["value"] == "whole"  # type: ignore[union-attr]


def test_a_crawl_that_is_withdrawn_is_searched_in_no_collection(searched: Archive) -> None:
    with served(searched) as room:
        assert len(hits(room, "word&collection=single")) == 2
        Catalogue(searched).change(
            record_id(1, "a"), lambda was: was.with_event("w", "x", "", RecordState.REJECTED), "x", lambda _: "w"
        )
        assert hits(room, "word&collection=single") == ["http://b.example.org/4"]


def test_a_search_does_not_tell_what_a_crawl_under_embargo_has(searched: Archive) -> None:
    """The crawl of c under embargo has a page that an open crawl of a has, too: nobody learns so by the collection."""
    host = "a.example.org"
    published(searched, host, {f"http://{host}/5": Page(b"<p>word of 5")}, day(10), publication="a")
    published(searched, host, {f"http://{host}/c": Page(b"<p>of c")}, day(11), publication="c", closed_for="90 years")
    recover(searched)
    fulltext.bring_in_step(searched)
    collection(searched, "closed", f'title = "Closed"\ncrawls = ["{record_id(11, "c")}", "{record_id(4, "b")}"]\n')
    with served(searched) as room:
        assert hits(room, "word&collection=closed") == ["http://b.example.org/4"]
        assert f"http://{host}/5" in hits(room, "word+-collection:closed")
    assert Searcher(searched).count(SearchQuestion(words="word of 5", collection="closed")) == 1


def test_staff_search_all_that_a_collection_names(searched: Archive) -> None:
    searcher = Searcher(searched)
    assert searcher.count(SearchQuestion(words="word", collection="shut")) == 1
    assert searcher.count(SearchQuestion(words="word collection:whole")) == 4
    with pytest.raises(NotFound, match="there is no collection none"):
        searcher.count(SearchQuestion(words="word", collection="none"))
    many = [f"20200101T000000-{number}" for number in range(MOST_CRAWLS + 1)]
    collection(searched, "many", f'title = "Many"\ncrawls = {json.dumps(many)}\n')
    with pytest.raises(TooMany, match="2,001 crawls by themselves"):
        searcher.count(SearchQuestion(words="word", collection="many"))
