"""The room's own pages: lists, records, comparisons, search, versions, differences, and in which language."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, urlencode, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from agent.indexing import fulltext
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, digits, published, recorded, served
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.model.metadata import CET
from webarcfs.content.visible_lines import blocks
from webarcfs.room.pages import about, lists
from webarcfs.room.pages.calendar import WordBudget, compared
from webarcfs.room.views import Marked
from webarcfs.web import limits
from webarcfs.web.language import negotiated

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME = f"http://{DOMAIN}/"
FIRST = datetime(2020, 5, 1, 12, tzinfo=CET)
TIMES = [FIRST + timedelta(days=300 * each) for each in range(3)]
RECORDS = [f"{each:%Y%m%dT%H%M%S}-p" for each in TIMES]
LINKING = (
    b"<p><a href=http://far.example/b target=_blank>Far</a> <a href=http://far.example/b>far</a>"
    b"<a href=mailto:a@e.org>a</a>"
)
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = archives.make_archive(tmp_path_factory.mktemp("pages"))
    lines = [f"line {each}" for each in range(20)]
    for at, when in enumerate(TIMES):
        lines[3 * at] = f"another line {at}"
        text = "".join(f"<p>{each}</p>" for each in lines)
        pages: dict[str, Page | None] = {
            HOME: Page(f"<title>Home {HOSTILE}</title>{text}".encode(), title=f"Home {HOSTILE}")
        }
        if at == 1:
            pages[f"{HOME}new.pdf"] = Page(b"%PDF", "application/pdf")
        if at == 2:
            pages[f"{HOME}new.pdf"] = None
        published(made, DOMAIN, pages, when, title=f"Home {HOSTILE}" if at == 2 else "")
    published(
        made,
        "other.example.org",
        {"http://other.example.org/": Page(LINKING)},
        FIRST,
        publication="q",
        signature="5200",
    )
    recover(made)
    fulltext.bring_in_step(made)
    made.settings.write_text(f'[[publication]]\nname = "p"\nurls = ["{HOME}"]\ndescription = "A site."\n')
    with served(made) as found:
        yield found


def tree(room: Served, path: str, **headers: str) -> LexborHTMLParser:
    answer = room.get(path, headers)
    assert answer.status == 200, path
    return LexborHTMLParser(answer.body)


def test_the_overview_has_what_is_released_by_fonds(room: Served) -> None:
    found = tree(room, "/")
    assert [node.text() for node in found.css(".fonds > h3 .shelf")] == ["5100", "5200"]
    assert found.css_first(f"a[href='/web/{digits(TIMES[2])}/{HOME}']") is not None
    assert found.css_first("a[href='/publication/p']") is not None
    rows = tree(room, "/?all=1").css("table.snapshots tbody tr")
    assert len(rows) == 4
    dates = [row.css_first("td").text() for row in rows]  # type: ignore[union-attr] # it is there
    assert dates[0] == "22 Dec 2021, 12:00 CET"
    assert next(node.text() for node in tree(room, "/?all=1&order=oldest").css("td.date")) == "1 May 2020, 12:00 CET"
    assert len(tree(room, "/?signature=5200").css("table.snapshots tbody tr")) == 1
    assert len(tree(room, "/?q=other").css("table.snapshots tbody tr")) == 1


def test_the_overview_shows_the_words_that_count(room: Served) -> None:
    words = "oth other 52 5200 q"
    page = tree(room, f"/?q={quote(f'{words} nothing')}")
    field = page.css_first("input#find")
    assert field is not None and field.attributes["value"] == words
    assert len(page.css("table.snapshots tbody tr")) == 1


def found_by(room: Served, text: str, place: str = "") -> str:
    """Where the one box leads with a text."""
    answer = room.get(f"/find?q={quote(text)}{f'&in={place}' if place else ''}")
    assert answer.status == 302
    return answer.headers["location"]


def test_one_box_knows_an_address_from_words(room: Served) -> None:
    assert len(tree(room, "/").css("form")) == 1
    assert found_by(room, "www.example.org") == f"/web/*/{HOME}"
    assert found_by(room, f"{HOME}new.pdf") == f"/web/*/{HOME}new.pdf"
    assert found_by(room, "nowhere.example.org/x") == "/web/*/http://nowhere.example.org/x"
    assert found_by(room, '"www.example.org"') == "/search?q=%22www.example.org%22"
    assert found_by(room, "annual report") == "/search?q=annual+report"
    assert found_by(room, "javascript:alert(1)") == "/search?q=javascript%3Aalert%281%29"
    assert found_by(room, "") == "/search"
    assert found_by(room, "www.example.org", "catalogue") == "/?q=www.example.org"
    assert found_by(room, f"{HOME}new.pdf", "words") == "/search?q=%22www.example.org%2Fnew.pdf%22"
    assert room.get("/find").headers["location"] == "/search"


def test_the_box_tells_nobody_which_hosts_are_hidden(tmp_path: Path) -> None:
    """A host without a known suffix is an address where readers see a crawl of it, and words as any other else."""
    own = archives.make_archive(tmp_path)
    published(own, "open.test", {"http://open.test/": Page(b"x")}, FIRST)
    published(own, "held.test", {"http://held.test/": Page(b"x")}, FIRST, state=RecordState.CHECKED, held=True)
    published(own, "later.test", {"http://later.test/": Page(b"x")}, FIRST, closed_for="90 years")
    recover(own)
    with served(own) as found:
        assert found_by(found, "open.test/a") == "/web/*/http://open.test/a"
        for domain in ("held.test", "later.test", "none.test"):
            assert found_by(found, f"{domain}/a") == f"/search?q={domain}%2Fa"


def test_without_a_full_text_index_words_are_looked_for_in_the_catalogue(tmp_path: Path) -> None:
    own = archives.make_archive(tmp_path)
    published(own, DOMAIN, {HOME: Page(b"x")}, FIRST, title="The harbour")
    recover(own)
    with served(own) as found:
        page = tree(found, found_by(found, "harbour"))
        assert "no full-text index" in page.text()
        field = page.css_first("form[action='/find'] input[name=q]")
        assert field is not None and field.attributes["value"] == "harbour"
        assert page.css_first("form[action='/find'] button[name=in][value=catalogue]") is not None
        assert page.css("a[href^='/find?in=words']") == []
        assert len(tree(found, found_by(found, "harbour", "catalogue")).css("table.snapshots tbody tr")) == 1


def test_an_address_of_which_the_archive_has_nothing_says_so_and_offers_its_words(room: Served) -> None:
    page = tree(room, found_by(room, "annual-report.zip"))
    assert "The archive has no version of it." in page.text()
    link = page.css_first("a[href^='/find?in=words&q=']")
    assert link is not None
    found = room.get(link.attributes["href"] or "")
    assert found.headers["location"] == "/search?q=%22annual-report.zip%22"


def test_what_the_archive_does_not_have_leads_to_the_desk_where_that_is_set(tmp_path: Path) -> None:
    """S-save-1: with the address escaped. What is hidden is as if it were not there."""
    own = archives.make_archive(tmp_path)
    published(own, DOMAIN, {HOME: Page(b"<p>here")}, TIMES[0])
    hidden = f"{HOME}kept-back"
    published(own, DOMAIN, {hidden: Page(b"<p>held")}, TIMES[1], state=RecordState.CHECKED, held=True)
    recover(own)
    missing = f"{HOME}no?a=1&b=%3Cc%3E"
    paths = {
        f"/web/{digits(TIMES[0])}/{missing}": missing,
        f"/web/*/{missing}": missing,
        f"/web/*/{hidden}": hidden,
        "/web/*/http://other.example/": "http://other.example/",
        "/notice/external?url=http%3A%2F%2Fother.example%2F%3Fa%26b": "http://other.example/?a&b",
    }
    others = (f"/web/*/{HOME}", "/notice/external?url=mailto:a%40b.c", "/notice/external?url=javascript:alert(1)")
    with served(own) as room:
        for path in (*paths, *others):
            assert b"save-page" not in room.get(path).body, path
    own.settings.write_text('[save]\naddress = "https://desk.example/"\n')
    with served(own) as room:
        for path, url in paths.items():
            (link,) = LexborHTMLParser(room.get(path).body).css("#save-page")
            assert link.attributes["href"] == f"https://desk.example/save?{urlencode({'url': url})}"
        for path in others:
            assert b"save-page" not in room.get(path).body, path
        absent = room.get(f"/web/*/{HOME}absent").text
        assert room.get(f"/web/*/{hidden}").text.replace("kept-back", "absent") == absent


def test_external_links_have_number_titles_url_window_and_pages(room: Served) -> None:
    """BT-link-4, BT-link-12."""
    record = f"{FIRST:%Y%m%dT%H%M%S}-q"
    found = tree(room, f"/snapshot/{record}/links")
    assert [node.text() for node in found.css("table.links thead th")] == [
        "Number",
        "Titles",
        "Target",
        "Window",
        "Pages",
    ]
    cells = [node.text(strip=True) for node in found.css_first("table.links tbody tr").css("td, th")]  # type: ignore[union-attr] # it is there
    assert cells == ["1", "Far · far", "http://far.example/b", "_blank", "http://other.example.org/"]
    named = json.loads(room.get(f"/snapshot/{record}/links.json").body)
    assert [link["target"] for link in named] and len(named) == len(
        room.get(f"/snapshot/{record}/links.csv").text.splitlines()[1:]
    )
    assert room.get(f"/snapshot/{record}/links.csv").body.decode().splitlines() == [
        "number,target,text,page,times,window",
        "1,http://far.example/b,Far,http://other.example.org/,1,_blank",
        "1,http://far.example/b,far,http://other.example.org/,1,",
    ]


def test_search_is_reached_from_the_overview_and_from_archived_pages(room: Served) -> None:
    assert tree(room, "/").css_first("form[action='/find'] input[name=q]") is not None
    link = tree(room, f"/web/{digits(TIMES[0])}/{HOME}").css_first("a[href^='/search?from=']")
    assert link is not None
    assert "search of the archived site itself is not here" in room.get(link.attributes["href"] or "").text


def test_hits_have_signature_and_dates_and_open_in_their_snapshot(room: Served) -> None:
    """BT-search-7, BT-search-9; BT-search-2 and BT-search-3: what the form chooses."""
    found = tree(room, f"/search?q=line&type=html&record={RECORDS[1]}")
    (hit,) = found.css("article.hit")
    assert hit.css_first("h2 a, h3 a").attributes["href"] == f"/web/{digits(TIMES[1])}/{HOME}"  # type: ignore[union-attr]
    facts = hit.css_first("p.facts").text()  # type: ignore[union-attr]
    assert "5100" in facts and "text/html" in facts and "25 Feb 2021" in facts
    names = {node.attributes["name"] for node in found.css("form.big [name]")}
    assert names == {"q", "during", "at", "type", "language", "site", "publication", "role", "record"}
    assert found.css("form details") == []
    (kind,) = found.css("aside.facets li.here")
    assert kind.text(strip=True).startswith("Web pages")  # in the language of the page, and not as the index has it
    assert tree(room, f"/search?q=line&type=pdf&record={RECORDS[1]}").css_first("article.hit") is None


def count_of(page: LexborHTMLParser) -> str:
    """How many pages a search says that it found."""
    node = page.css_first(".count")
    assert node is not None
    return " ".join(node.text().split())


def spans_of(page: LexborHTMLParser) -> list[str]:
    """When each hit has the words, and what became of it."""
    return [" ".join(node.text().split()) for node in page.css("article.hit .span")]


def test_a_search_finds_all_versions_and_says_how_many_pages_the_present_has(room: Served) -> None:
    old = tree(room, "/search?q=%22line+3%22")
    assert count_of(old) == "one page: none at present, 1 only in earlier versions"
    assert spans_of(old) == ["Had the words on 1 May 2020 the page has changed since"]
    (hit,) = old.css("article.hit")
    assert hit.css_first("h2 a").attributes["href"] == f"/web/{digits(TIMES[0])}/{HOME}"  # type: ignore[union-attr]
    assert hit.css_first(f"a[href='/web/*/{HOME}']") is not None
    twice = tree(room, "/search?q=%22line+6%22")
    assert spans_of(twice) == [
        "Had the words from 1 May 2020 to 25 Feb 2021, in all 2 versions of this time the page has changed since"
    ]  # fmt: skip
    now = tree(room, "/search?q=%22another+line+1%22")
    assert count_of(now) == "one page: 1 at present, 0 only in earlier versions"
    assert spans_of(now) == ["Has the words since 25 Feb 2021, in all 2 versions of this time"]
    gone = tree(room, "/search?q=url:new.pdf")
    assert spans_of(gone) == ["Had the words on 25 Feb 2021 the page is gone since"]
    assert spans_of(tree(room, f"/search?q=site:{DOMAIN}+type:html")) == [
        "Fits since 1 May 2020, in all 3 versions of this time"
    ]


def test_a_search_tells_nothing_of_crawls_that_are_hidden(tmp_path: Path) -> None:
    """Neither that a page changed or went in one, nor when it had the words there."""
    own, pages = archives.make_archive(tmp_path), [f"{HOME}{name}" for name in ("changed", "gone", "later")]
    published(own, DOMAIN, {url: Page(b"<p>harbour") for url in pages[:2]}, TIMES[0])
    held: dict[str, Page | None] = {pages[0]: Page(b"<p>secret"), pages[1]: None, pages[2]: Page(b"<p>harbour")}
    published(own, DOMAIN, held, TIMES[1], state=RecordState.CHECKED, held=True)
    published(own, DOMAIN, {pages[0]: Page(b"<p>closed")}, TIMES[2], closed_for="90 years")
    recover(own)
    fulltext.bring_in_step(own)
    with served(own) as found:
        page = tree(found, "/search?q=harbour")
        assert count_of(page) == "2 pages: 2 at present, 0 only in earlier versions"
        assert spans_of(page) == ["Has the words since 1 May 2020"] * 2
        assert [node.text() for node in page.css("aside.facets a[href*='during=']")] == ["2020"]
        for words in ("secret", "closed", "harbour&during=2021", "harbour&at=2019", "url:later"):
            assert count_of(tree(found, f"/search?q={words}")) == "Nothing was found."


def test_a_search_is_narrowed_to_the_present_and_back_by_links(room: Served) -> None:
    page = tree(room, "/search?q=line")
    narrow = page.css_first(".count a")
    assert narrow is not None and narrow.attributes["href"] == "/search?q=line&present=1"
    present = tree(room, "/search?q=line&present=1")
    assert count_of(present) == "one page"
    assert present.css_first(".orders a[aria-current]").text() == "at present"  # type: ignore[union-attr]
    assert present.css_first(".orders a[href='/search?q=line']").text() == "all versions"  # type: ignore[union-attr]


def test_words_that_no_page_has_together_are_searched_one_by_one(room: Served) -> None:
    page = tree(room, "/search?q=line+nowhereatall")
    assert count_of(page) == "Nothing was found."
    assert page.css_first("a[href='/search?q=line+OR+nowhereatall']") is not None
    grouped = tree(room, "/search?q=line+nowhereatall&group=snapshot")
    assert count_of(grouped) == "Nothing was found."
    assert grouped.css_first("a[href='/search?group=snapshot&q=line+OR+nowhereatall']") is not None
    for words in ("nowhereatall", "line+OR+nowhereatall", "%22line+nowhereatall%22", "line+-nowhereatall"):
        assert tree(room, f"/search?q={words}").css("a[href*='+OR+']:not([href*='type='])") == [] or "OR" in words


def test_what_the_present_does_not_have_earlier_versions_show(room: Served) -> None:
    page = tree(room, "/search?q=%22line+3%22&present=1")
    assert count_of(page) == "At present no page fits. Earlier versions do: one page"
    assert len(page.css("article.hit")) == 1
    grouped = tree(room, "/search?q=%22line+3%22&present=1&group=snapshot")
    assert count_of(grouped) == "At present no page fits. Earlier versions do: one page"
    assert len(grouped.css(".of-snapshot")) == 1
    exported = page.css_first(".takeaway a")
    assert exported is not None and "present" not in (exported.attributes["href"] or "")
    assert count_of(tree(room, "/search?q=nowhereatall&present=1")) == "Nothing was found."


@pytest.mark.parametrize(
    ("asked", "found"),
    [("during=2020", True), ("during=2021", True), ("during=2020-05", True),
     ("during=2019", False), ("during=2020-06", False), ("during=2.5.2020", False), ("during=2018-2019", False),
     ("during=5/2020", True), ("during=1.5.2020", True), ("during=2019..2020", True),
     ("during=2019+%E2%80%93+2021", True), ("during=2019+to+2021", True), ("at=2020", True),
     ("at=2020-04", False), ("at=2020-05-01", True),
     ("at=30.4.2020", False), (f"at={TIMES[0]:%Y-%m-%dT%H:%M:%S}@{DOMAIN}", True), ("after=5/2020", True),
     ("after=2022", False), ("before=2020", False)],
)  # fmt: skip
def test_a_search_takes_times_as_people_type_them(room: Served, asked: str, found: bool) -> None:
    page = tree(room, f"/search?q=line&{asked}")
    assert page.css_first("#fault") is None
    assert (len(page.css("article.hit")) > 0) is found


@pytest.mark.parametrize(
    "asked", ["during=yesterday", "during=2021..2019", "during=%00", "during=2020-13", "at=2020-13"]
)
def test_a_time_that_is_none_is_a_fault_of_the_search(room: Served, asked: str) -> None:
    assert tree(room, f"/search?q=line&{asked}").css_first("#fault") is not None


def test_each_facet_is_shown_and_a_year_is_a_span_of_captures(room: Served) -> None:
    page = tree(room, "/search?q=%22line+3%22&present=1&page=7")
    assert [node.text() for node in page.css("aside.facets h2")] == [
        "Captured in", "Kind of file", "Site", "Language", "Publication"
    ]  # fmt: skip
    (year,) = page.css("aside.facets a[href*='during=']")
    assert year.attributes["href"] == "/search?q=%22line+3%22&during=2020"
    chosen = tree(room, year.attributes["href"] or "")
    assert spans_of(chosen) == spans_of(tree(room, "/search?q=%22line+3%22"))
    (here,) = chosen.css("aside.facets li.here a")
    assert here.attributes["href"] == "/search?q=%22line+3%22"
    said = tree(room, "/search?q=%22line+3%22+during:2020")
    assert len(said.css("article.hit")) == 1
    assert said.css("aside.facets a[href*='during=']") == said.css(".orders a[href*='present=']") == []


def test_a_span_without_a_capture_leads_to_the_state_at_its_end(room: Served) -> None:
    page = tree(room, "/search?q=line&during=2019+to+6.2020&page=2")
    assert count_of(page) == "one page: 1 at present, 0 only in earlier versions"  # captured in May
    nothing = tree(room, "/search?q=line&during=6/2020&sort=date")
    assert count_of(nothing) == "Nothing was found."
    then = nothing.css_first("a[href='/search?q=line&sort=date&at=2020-06']")
    assert then is not None
    assert len(tree(room, then.attributes["href"] or "").css("article.hit")) == 1


def test_a_search_of_one_crawl_says_so_and_leads_to_all(room: Served) -> None:
    page = tree(room, f"/search?q=line&from={RECORDS[1]}")
    only = page.css_first(f".notice a[href='/search?q=line&record={RECORDS[1]}']")
    assert only is not None
    alone = tree(room, only.attributes["href"] or "")
    assert alone.css_first(".notice a[href='/search?q=line']") is not None
    assert alone.css_first(f"form input[type=hidden][name=record][value='{RECORDS[1]}']") is not None
    assert len(alone.css("article.hit")) == 1
    assert len(tree(room, f"/search?q=line&record={RECORDS[1]}&at=2020").css("article.hit")) == 1


def test_words_that_spell_an_address_lead_to_its_versions(room: Served) -> None:
    page = tree(room, f"/search?q={DOMAIN}")
    assert page.css_first(f".notice a[href='/web/*/{HOME}']") is not None
    assert tree(room, f"/search?q=%22{DOMAIN}%22").css_first(".notice") is None


def test_hits_that_are_taken_away_have_the_span_of_the_words(room: Served) -> None:
    (row,) = csv.DictReader(io.StringIO(room.get("/search.csv?q=%22line+6%22").text))
    assert (row["wordsFrom"], row["wordsTo"], row["versions"]) == ("2020-05-01T12:00:00", "2021-02-25T12:00:00", "2")
    answer = json.loads(room.get("/search.json?q=%22line+6%22").body)
    assert (answer["total"], answer["inPresent"], answer["exact"]) == (1, 0, True)
    assert answer["hits"][0]["wordsTo"] == "2021-02-25T12:00:00"


def test_lists_are_taken_away_whole_as_their_pages_choose_them(room: Served) -> None:
    page = tree(room, "/publication/p")
    hrefs = [node.attributes["href"] or "" for node in page.css(".takeaway a")]
    assert hrefs == ["/crawls.csv?publication=p", "/crawls.json?publication=p"]
    rows = list(csv.DictReader(io.StringIO(room.get(hrefs[0]).text)))
    assert [row["address"].rpartition("/")[2] for row in rows] == list(RECORDS[::-1])
    assert {row["publication"] for row in rows} == {"p"} and rows[0]["complete"] in ("yes", "no", "")
    named = json.loads(room.get(f"{hrefs[1]}&order=oldest").body)
    assert [entry["number"] for entry in named] == [int(row["number"]) for row in rows[::-1]]
    assert json.loads(room.get("/crawls.json?publication=none").body) == []
    assert json.loads(room.get("/crawls.json?q=nowhere-in-the-catalogue").body) == []
    below = tree(room, f"/web/*/{HOME}*")
    (table, listed) = [node.attributes["href"] or "" for node in below.css(".takeaway a")]
    addresses = [row["url"] for row in csv.DictReader(io.StringIO(room.get(table).text))]
    assert [entry["url"] for entry in json.loads(room.get(listed).body)] == addresses
    assert addresses[: len(below.css("tbody tr"))] == [node.text() for node in below.css("tbody th a.url")]


#: Template of the room with rows → where its list is taken away; or why it is none.
_TAKEN = {
    "home.html": "/crawls", "publication.html": "/crawls", "collection.html": "/crawls", "collections.html":
    "/collections", "links.html": "/links", "prefix.html": "/urls", "search.html": "search.csv by its page",
    "curve.html": "curve.csv by its page", "calendar.html": "the TimeMap of its URL", "compare.html": "two crawls",
    "record.html": "figures of one crawl; it leads to its record as a file", "diff.html": "two versions",
    "about.html": "nothing of the archive", "cite.html": "a citation, with files of its own",
}  # fmt: skip


def test_each_list_of_the_room_can_be_taken_away() -> None:
    """A new template with rows needs a list to take away, or a reason."""
    folder = Path(lists.__file__).parents[1] / "theme/templates"
    with_rows = re.compile(r"parts\.(table|stacked|snapshots|collections|compared|counted)\(|<table")
    texts = {path.name: path.read_text("utf-8") for path in folder.glob("*.html")}
    assert {name for name, text in texts.items() if with_rows.search(text)} - _TAKEN.keys() == set()
    for name, place in _TAKEN.items():
        assert ("parts.taken(" in texts[name]) is place.startswith("/"), name


def test_a_publication_has_its_snapshots_newest_first_and_by_year(room: Served) -> None:
    found = tree(room, "/publication/p")
    assert [node.attributes["href"] for node in found.css("table.snapshots th a")] == [
        f"/snapshot/{each}" for each in RECORDS[::-1]
    ]
    assert "A site." in found.html  # type: ignore[operator] # it is there
    assert len(found.css("svg.picture rect.bar")) >= 2


def test_the_frame_has_its_head_and_foot(room: Served) -> None:
    found = tree(room, f"/web/{digits(TIMES[1])}/{HOME}")
    head = found.css_first("header").text()  # type: ignore[union-attr] # it is there
    assert "Archived page" in head
    assert HOME in head
    assert "25 Feb 2021, 12:00 CET" in head
    assert found.css_first(f"a[rel=prev][href='/web/{digits(TIMES[0])}/{HOME}']") is not None
    assert found.css_first(f"a[rel=next][href='/web/{digits(TIMES[2])}/{HOME}']") is not None
    assert found.css_first(f"a[href='/diff/{digits(TIMES[0])}..{digits(TIMES[1])}/{HOME}']") is not None
    foot = found.css_first("footer")
    assert foot is not None
    assert "5100" in foot.text()
    assert "regular" in foot.text()
    assert foot.css_first(f"a[href='/snapshot/{RECORDS[1]}']") is not None
    iframe = found.css_first("iframe")
    assert iframe is not None
    assert iframe.attributes["sandbox"] == "allow-forms allow-downloads allow-top-navigation-by-user-activation"


@pytest.mark.parametrize(
    ("head", "body", "leads"),
    [
        (b"", b'<meta http-equiv=refresh content="0;url=/on">', "on"),
        (b"", b"<base href=/b/><META HTTP-EQUIV=Refresh CONTENT=' 5 , on'>", "b/on"),
        (b"Refresh: 0;URL=on\r\n", b"<p>x", "on"),
        (b"Refresh: 0; url='/a'\r\n", b"<meta http-equiv=refresh content='0;url=b'>", "a"),
        ("Refresh: 0;url=/voilà\r\n".encode(), b"<p>x", "voil%C3%A0"),
        (b"Refresh:  5\r\n", b"<meta http-equiv=refresh content=' 5'>", None),
        (b"", b'<meta http-equiv=refresh content="30">', None),
        (b"", b'<meta http-equiv=refresh content="30;url=/">', None),
        (b"", b'<meta http-equiv=refresh content="0;url=javascript:alert(1)">', None),
        (b"Refresh: 300\r\n", b"<p>x", None),
    ],
)
def test_a_frame_says_where_a_page_goes_on(tmp_path: Path, head: bytes, body: bytes, leads: str | None) -> None:
    """In a frame without scripts browsers stay on it, and it may show nothing else."""
    made = archives.make_archive(tmp_path)
    sent = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + head + b"\r\n"
    published(made, DOMAIN, {HOME: Page(body, head=sent)}, FIRST)
    recover(made)
    with served(made) as found:
        answer = found.get(f"/web/{digits(FIRST)}/{HOME}")
    links = LexborHTMLParser(answer.body).css(".goes-on")
    wanted = set() if leads is None else {(f"/web/{digits(FIRST)}/{HOME}{leads}", f"{HOME}{leads}")}
    assert {(each.attributes["href"], each.text()) for each in links} == wanted


def test_a_record_has_its_fields_and_figures_and_leads_on(room: Served) -> None:
    found = tree(room, f"/snapshot/{RECORDS[1]}")
    text = found.css_first("main").text()  # type: ignore[union-attr] # it is there
    assert "office" in text
    assert "application/pdf" in text
    assert found.css_first(f"a[href='/compare/{RECORDS[0]}..{RECORDS[1]}']") is not None
    for kind in ("xml", "json", "dc"):
        assert room.get(f"/snapshot/{RECORDS[1]}.{kind}").status == 200
    assert "Bearbeiter" not in text


def test_two_snapshots_are_compared_document_by_document(room: Served) -> None:
    found = tree(room, f"/compare/{RECORDS[0]}..{RECORDS[1]}")
    hrefs = [node.attributes["href"] for node in found.css(".changes a")]
    assert f"/web/{digits(TIMES[1])}/{HOME}new.pdf" in hrefs
    assert f"/diff/{digits(TIMES[0])}..{digits(TIMES[1])}/{HOME}" in hrefs
    assert [node.text() for node in found.css(".tiles b")] == ["1", "0", "1"]


def test_the_calendar_tells_new_changed_and_gone(room: Served) -> None:
    found = tree(room, f"/web/*/{HOME}new.pdf")
    assert [node.text() for node in found.css("tbody .flag")] == ["gone", "new"]
    assert [node.text() for node in tree(room, f"/web/*/{HOME}").css("tbody .flag")] == ["changed", "changed", "new"]
    assert len(tree(room, f"/web/2020*/{HOME}").css("tbody tr")) == 1
    assert room.get("/versions?url=www.example.org").headers["location"] == f"/web/*/{HOME}"
    rows = [node.text() for node in tree(room, f"/web/*/{HOME}*").css("tbody th a")]
    assert rows == [HOME, f"{HOME}new.pdf"]


def test_differences_are_marked_in_both_views(room: Served) -> None:
    path = f"{digits(TIMES[0])}..{digits(TIMES[1])}/{HOME}"
    below = tree(room, f"/diff/{path}")
    assert "another line 1" in "".join(node.text() for node in below.css("tr.added"))
    assert below.css("tr.removed")
    (way,) = (node.attributes["href"] for node in below.css("main a") if node.text() == "Side by side")
    assert way == f"/side/{path}"
    beside = tree(room, way)
    assert beside.css("table.side ins")
    (back,) = (node.attributes["href"] for node in beside.css("main a") if node.text() == "One below the other")
    assert back == f"/diff/{path}"
    assert room.get(f"/diff/{digits(TIMES[0])}..{digits(TIMES[0])}/{HOME}").status == 200


@pytest.mark.parametrize("at", ["yesterday", "x@y", "2020-13-01", "@"])
def test_a_search_at_what_is_no_time_says_so(room: Served, at: str) -> None:
    answer = room.get(f"/search?q=bericht&at={at}")
    assert "no time and no snapshot" in answer.text and answer.status < 500


def test_a_fault_in_a_search_is_marked_and_a_suggestion_made(room: Served) -> None:
    assert tree(room, "/search?q=%22line").css_first("#fault") is not None
    found = tree(room, "/search?q=anotherr")
    assert found.css_first("a[href*='q=another']") is not None


@pytest.mark.parametrize(
    "path",
    [
        "/", "/?all=1", "/publication/p", f"/snapshot/{RECORDS[2]}", f"/web/*/{HOME}",
        f"/web/{digits(TIMES[0])}/{HOME}",
        "/search?q=line", "/search?q=line&group=snapshot", f"/search?q={HOSTILE}", f"/search?q=line&during={HOSTILE}",
        f"/?q={HOSTILE}",
        f"/notice/external?url={HOSTILE}", f"/notice/external?url=javascript:alert(1)&from={HOSTILE}", f"/{HOSTILE}",
    ],
)  # fmt: skip
def test_nothing_that_others_wrote_becomes_markup(room: Served, path: str) -> None:
    found = LexborHTMLParser(room.get(path.replace(" ", "%20")).body)
    assert [node.attributes.get("src") for node in found.css("script")] == []
    assert found.css("img") == []
    for node in found.css("*"):
        assert not [name for name in node.attributes if name.startswith("on")]
        assert not (node.attributes.get("href") or "").lower().startswith(("javascript:", "data:", "http"))
    assert found.css("[style], style") == []


@pytest.mark.parametrize(
    ("asked", "accepted", "language"),
    [("", "", "en"), ("de", "en", "de"), ("", "de-AT,de;q=0.9,en;q=0.8", "de"), ("", "fr,en;q=0.5", "en"),
     ("xx", "de", "de"), ("", "de;q=0", "en"), ("", "de;q=abc, en", "en"), ("", ",;;=,", "en"),
     ("", "en;q=0.2,de;q=0.7", "de")],
)  # fmt: skip
def test_languages(asked: str, accepted: str, language: str) -> None:
    assert negotiated(asked, accepted) == language


def test_pages_speak_german(room: Served) -> None:
    for path in ("/", "/search?q=line", f"/snapshot/{RECORDS[0]}", f"/web/{digits(TIMES[0])}/{HOME}", "/about"):
        answer = room.get(path, {"Accept-Language": "de"})
        assert '<html lang="de"' in answer.text
        assert any(word in answer.text for word in ("Lesesaal", "Website"))
    assert "Bestandssignatur" in room.get(f"/snapshot/{RECORDS[0]}?lang=de").text


def test_feeds_and_status(room: Served) -> None:
    assert room.get("/news.atom").text.count("<entry>") == 4
    assert room.get("/status.json").status == 200
    assert "/search?q={searchTerms}" in room.get("/opensearch.xml").text
    for kind in ("csv", "json"):
        assert room.get(f"/search.{kind}?q=line").status == 200


def named(room: Served, path: str, rel: str, kind: str) -> str:
    """Where a page of the room leads programs to, by the relation and the type alone."""
    found = tree(room, path).css_first(f"link[rel={rel}][type='{kind}']")
    return urljoin(room.origin + path, found.attributes["href"] or "") if found is not None else ""


def asked(room: Served, url: str) -> bytes:
    assert url.startswith(room.origin)
    answer = room.get(url.removeprefix(room.origin))
    assert answer.status == 200, url
    return answer.body


def test_a_crawl_with_two_snapshots_of_a_host_shows_and_counts_it_once(tmp_path: Path) -> None:
    """As a crawl that was patched, or an import that was cut: the later one has all."""
    own, later = archives.make_archive(tmp_path), FIRST + timedelta(hours=1)
    tags = [
        published(own, DOMAIN, {HOME: Page(b"home"), f"{HOME}a": Page(b"a")}, FIRST, state=None),
        published(own, DOMAIN, {f"{HOME}b": Page(b"b")}, later, state=None),
        published(own, "other.example.org", {"http://other.example.org/": Page(b"x")}, FIRST, state=None),
    ]
    recorded(own, RECORDS[0], "p", tags, RecordState.RELEASED)
    recover(own)
    with served(own) as found:
        page = found.get(f"/snapshot/{RECORDS[0]}").text
    assert f"/web/{digits(later)}/{HOME}" in page and f"/web/{digits(FIRST)}/{HOME}" not in page
    (row,) = [node.text(separator=" ") for node in LexborHTMLParser(page).css("tbody tr") if DOMAIN in node.text()]
    assert "3" in row.split(), row


def test_a_crawl_of_single_pages_opens_one_of_them(tmp_path: Path) -> None:
    """Its host's root is not there: a link to it would say so, and show nothing."""
    made = archives.make_archive(tmp_path)
    at = datetime(2024, 1, 1, 12, tzinfo=CET)
    pages = {f"http://single.example/{path}": Page(b"<p>it") for path in ("articles/7", "articles/8")}
    published(made, "single.example", {**pages, "http://single.example/a.png": Page(b"png", "image/png")}, at)
    recover(made)
    with served(made) as room:
        for place in ("/", "/publication/p"):
            starts = set(re.findall(r'"(/web/\d{14}[^"]*http://single\.example/[^"]*)"', room.get(place).text))
            assert len(starts) == 1 and starts.pop().endswith("/articles/7"), place
        assert room.get(f"/web/{digits(at)}/http://single.example/articles/7").status == 200


def test_a_strange_program_finds_all_records_and_gets_each_as_xml(
    room: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BT-plan-1. It knows the overview, Atom with its pages, and the schema of records."""
    monkeypatch.setattr(about, "_ENTRIES", 3)
    atom = "{http://www.w3.org/2005/Atom}"
    schema = etree.XMLSchema(etree.parse(str(Path(__file__).parents[2] / "xsd" / "record.xsd")))
    found = {}
    place: str | None = named(room, "/", "alternate", "application/atom+xml")
    while place:
        feed = etree.fromstring(asked(room, place))
        for entry in feed.iter(f"{atom}entry"):
            (link,) = (each for each in entry.iter(f"{atom}link") if each.get("type") == "application/xml")
            record = etree.fromstring(asked(room, link.get("href") or ""))
            schema.assertValid(record)
            found[record.get("id")] = record
        place = next((each.get("href") for each in feed.iter(f"{atom}link") if each.get("rel") == "next"), None)
    assert sorted(found) == sorted([*RECORDS, f"{FIRST:%Y%m%dT%H%M%S}-q"])


def test_a_strange_program_searches_by_the_description_alone(room: Served) -> None:
    """BT-plan-2. It knows the overview, OpenSearch, and that a hit says where it is read."""
    kind = "application/opensearchdescription+xml"
    said = etree.fromstring(asked(room, named(room, "/", "search", kind)))
    urls = {each.get("type"): each.get("template") or "" for each in said if each.tag.endswith("}Url")}
    answer = json.loads(asked(room, urls["application/json"].replace("{searchTerms}", quote("Far"))))
    assert answer["total"] == 1
    (hit,) = answer["hits"]
    assert hit["url"] == "http://other.example.org/"
    assert b"http://other.example.org/" in asked(room, hit["archived"])
    assert json.loads(asked(room, urls["application/json"].replace("{searchTerms}", "nowhere")))["hits"] == []
    page = LexborHTMLParser(asked(room, urls["text/html"].replace("{searchTerms}", "Far")))
    assert len(page.css("article.hit")) == 1


def test_lines_are_compared_by_words() -> None:
    lines = list(compared(["a b c d e", "same"], ["a b x d e", "same"], WordBudget()))
    assert lines[0].old == Marked("a b c d e", ((4, 5),))
    assert lines[0].new == Marked("a b x d e", ((4, 5),))


def _random_words(seed: int) -> list[str]:
    return [" ".join(random.Random(n + seed).choices("abc", k=990)) for n in range(1_000)]


_LINES: dict[str, Callable[[], tuple[list[str], list[str]]]] = {
    "equal lines": lambda: (["a"] * 5_000, ["a"] * 4_900),
    "few against many": lambda: (["a"] * 500, ["a"] * 5_000),
    "lines in turn": lambda: (["a", "b"] * 2_500, ["b", "a"] * 2_500),
    "words in turn": lambda: (
        [f"{n} " + "a b " * 499 for n in range(5)],
        [f"{n + 9} " + "b a " * 499 for n in range(5)],
    ),
    "many lines with many words": lambda: (
        [f"{n} " + "a b " * 499 for n in range(1_000)],
        [f"{n + 9_000} " + "b a " * 499 for n in range(1_000)],
    ),
    "random lines": lambda: (random.Random(1).choices("abc", k=5_000), random.Random(2).choices("abc", k=5_000)),
    "random words": lambda: (_random_words(0), _random_words(5_000)),
}


@pytest.mark.parametrize("kind", _LINES)
def test_no_pages_keep_a_comparison_busy(kind: str) -> None:
    """difflib takes minutes to years for most of these."""
    old, new = _LINES[kind]()
    budget = WordBudget()
    begin = time.process_time()
    lines = list(compared(old, new, budget))
    assert time.process_time() - begin < 10
    assert lines and budget.is_coarse is (kind in ("many lines with many words", "random words"))


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_the_blocks_of_a_comparison_are_both_texts(old: list[str], new: list[str]) -> None:
    found = list(blocks(old, new))
    assert [text for each in found for text in old[each.old : each.old_end]] == old
    assert [text for each in found for text in new[each.new : each.new_end]] == new
    for each in found:
        assert (old[each.old : each.old_end] == new[each.new : each.new_end]) is each.is_equal
    assert all(one.is_equal != other.is_equal for one, other in pairwise(found))


def test_a_page_whose_text_is_equal_has_no_lines_that_differ() -> None:
    assert list(compared(["a", "b"], ["a", "b"], WordBudget())) == []


def test_a_comparison_says_what_it_did_not_compare(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    long = "\n".join(f"line {number}" for number in range(limits.DIFF_LINES))
    words = "\n".join("a b " * 499 + str(number) for number in range(60))
    urls = [f"http://{DOMAIN}/{name}" for name in ("long.txt", "words.txt")]
    ends = (f"{long}\nold", words.replace("a b", "b a")), (f"{long}\nnew", words)
    times = [FIRST, FIRST + timedelta(days=1)]
    for when, texts in zip(times, ends, strict=True):
        pages = {url: Page(text.encode(), "text/plain") for url, text in zip(urls, texts, strict=True)}
        published(made, DOMAIN, pages, when)
    recover(made)
    with served(made) as found:
        cut, coarse = (found.get(f"/diff/{digits(times[0])}..{digits(times[1])}/{url}").text for url in urls)
    assert "Only the beginning was compared." in cut and "The text is the same" in cut
    assert "Too much differs to compare all words" in coarse and "beginning" not in coarse


def test_a_first_page_is_small(room: Served) -> None:
    home = room.get("/")
    found = LexborHTMLParser(home.body)
    files = [node.attributes["href"] or "" for node in found.css("link[rel=stylesheet], link[rel=icon]")]
    assert len(home.body) + sum(len(room.get(each).body) for each in files) < 50_000
    assert all("immutable" in room.get(each).headers["cache-control"] for each in files)


def test_without_an_index_a_search_as_a_file_is_not_there(tmp_path: Path) -> None:
    """Not busy: a program that is told so would ask again for ever."""
    made = archives.make_archive(tmp_path)
    published(made, DOMAIN, {HOME: Page(b"<p>words")}, FIRST)
    recover(made)
    with served(made) as found:
        for kind in ("json", "csv"):
            answer = found.get(f"/search.{kind}?q=words", {})
            assert answer.status == 404 and "retry-after" not in answer.headers


def test_the_feed_is_sent_once_to_a_program_that_names_the_one_it_has(room: Served) -> None:
    first = room.get("/news.atom", {})
    again = room.get("/news.atom", {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert room.get("/news.atom", {"If-None-Match": '"other"'}).body == first.body
