"""A page is cited: as text, by the tags that reference managers read, and as files that their parsers read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bibtexparser
import pytest
import rispy
from hypothesis import given
from hypothesis import strategies as st
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import chromium, needs_chromium
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.model.metadata import CET
from webarcfs.room.pages.citing import FORMS, ArchiveNames, Citation, as_bibtex, as_csl, as_ris, plain
from webarcfs.room.replay.memento import http_date

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME = f"http://{DOMAIN}/"
FIRST = datetime(2020, 1, 1, 0, 30, tzinfo=CET)  # in UTC it is the year before
SENT = FIRST + timedelta(hours=30)
SECOND, HIDDEN = FIRST + timedelta(days=10), FIRST + timedelta(days=20)
TITLES = {
    "latex": r"100 % of \alpha_{i} & {braces} #1 $x^2$ ~ <b> \input{/etc/passwd}",
    "unbalanced": "a } brace { and } more",
    "lines": "Title\r\nER  - \r\nTY  - JOUR\nAU  - Nobody\u2028TI  - Another\x85UR  - http://evil.example/",
    "bibtex": "x}}\n@misc{evil,\n title = {y}",
    "rtl": "\u0645\u0631\u062d\u0628\u0627 \u202eevil\u202c \u05e9\u05dc\u05d5\u05dd",
    "long": "Ein langer Titel " * 620,
    "markup": '"><script>alert(1)</script>&amp;',
    "quotes": "\u201eGute\u201c \u2013 \u00c4\u00d6\u00dc \u4f8b\u5b50 \U0001f4da",
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    archive = archives.make_archive(tmp_path_factory.mktemp("cite"))
    pages = {f"{HOME}{name}": Page(b"<p>x", title=plain(title)) for name, title in TITLES.items()}
    pages |= {
        HOME: Page(b"home", title="Home"), f"{HOME}late": Page(b"late", captured=SENT),
        f"{HOME}paper.pdf": Page(b"%PDF", "application/pdf", title=" "), f"{HOME}a?b=1&c=%7B%25~_$": Page(b"q"),
        f"{HOME}excluded": Page(b"e"), f"{HOME}blocked": Page(b"b"),
        f"{HOME}crossed": Page(b"crossed at first", captured=SECOND),
    }  # fmt: skip
    published(archive, DOMAIN, pages, FIRST, redirects={f"{HOME}old": HOME})
    later = {HOME: Page(b"again", title="Home again"), f"{HOME}crossed": Page(b"crossed at last")}
    published(archive, DOMAIN, later, SECOND)
    published(archive, DOMAIN, {HOME: Page(b"secret", title="Secret")}, HIDDEN, state=RecordState.COUNTED, held=True)
    recover(archive)
    access_rules.withhold(archive, f"{HOME}excluded", "test", "x", access=Access.EXCLUDE)
    access_rules.withhold(archive, f"{HOME}blocked", "test", "x")
    (archive.root / "texts").mkdir(exist_ok=True)
    (archive.root / "texts" / "en.toml").write_text('title = "Archive of {Tests} & Co"\ninstitution = "The House"\n')
    with served(archive) as found:
        yield found


def cited(room: Served, name: str, form: str = "", when: datetime = FIRST) -> str:
    answer = room.get(f"/cite{'.' if form else ''}{form}/{digits(when)}/{HOME}{name}")
    assert answer.status == 200, name
    return answer.body.decode()


#: Names of LaTeX that pylatexenc lacks, or has as an accent.
_NAMES = {"braceleft": "{", "braceright": "}", "less": "<", "greater": ">", "bar": "|", "asciicircum": "^"}
_LATEX = get_default_latex_context_db()
_LATEX.add_context_category(
    "names", macros=[MacroTextSpec(f"text{name}", sign) for name, sign in _NAMES.items()], prepend=True
)


def bibtex_of(text: str) -> dict[str, str]:
    """The one entry that another parser reads, with the LaTeX of its texts as a reader of the page sees it."""
    library = bibtexparser.parse_string(text)
    assert not library.failed_blocks and len(library.entries) == 1 == len(library.blocks)
    entry = library.entries[0]
    fields = {field.key: field.value for field in entry.fields}
    decoder = LatexNodes2Text(latex_context=_LATEX, keep_braced_groups=False)
    for name in ("title", "howpublished", "note"):
        fields[name] = decoder.latex_to_text(fields[name])
    return {"type": entry.entry_type, "key": entry.key} | fields


def ris_of(text: str) -> dict[str, object]:
    records = rispy.loads(text)
    assert len(records) == 1
    return dict(records[0])


@pytest.mark.parametrize("name", TITLES)
def test_parsers_of_others_read_each_title_as_it_is(room: Served, name: str) -> None:
    title, address = plain(TITLES[name]), f"{room.origin}/web/{digits(FIRST)}/{HOME}{name}"
    assert "\n" not in title and "\u202e" not in title
    bib = bibtex_of(cited(room, name, "bib"))
    assert bib["title"] == title
    assert (bib["type"], bib["date"], bib["year"], bib["month"]) == ("misc", "2020-01-01", "2020", "jan")
    assert bib["url"] == address and bib["howpublished"] == "Archive of {Tests} & Co, The House"
    ris = ris_of(cited(room, name, "ris"))
    assert ris["type_of_reference"] == "ELEC" and ris["title"] == title and ris["date"] == "2020/01/01"
    assert ris["urls"] == [address] and "authors" not in ris
    assert (ris["secondary_title"], ris["publisher"]) == ("Archive of {Tests} & Co", "The House")
    (item,) = json.loads(cited(room, name, "json"))
    assert (item["type"], item["title"], item["URL"]) == ("webpage", title, address)
    assert item["issued"] == {"date-parts": [[2020, 1, 1]]}
    page = LexborHTMLParser(cited(room, name))
    text = " ".join(page.css_first("#citation").text().split())  # type: ignore[union-attr] # it is there
    assert f"\u201c{title}\u201d. Archive of {{Tests}} & Co, The House." in text and address in text
    assert "captured on 1 Jan 2020, 00:30 CET" in text and f"{HOME}{name}" in text
    assert page.css_first("script:not([src])") is None and len(page.css("h1")) == 1


# Without surrogates, since a title is text that was stored as UTF-8.
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_title_is_one_field(title: str) -> None:
    citation = Citation(plain(title), HOME, FIRST, "/web/x", "http://room.test/web/x")
    names = ArchiveNames("A", "")
    entry = as_bibtex(citation, names, "note")
    depth = lowest = 0
    for character in entry[: entry.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        lowest = min(lowest, depth - 1) if character in "{}" else lowest
    assert (depth, lowest) == (1, 0), "braces are in pairs"
    assert len(entry.splitlines()) == 9
    lines = as_ris(citation, names, "note").splitlines()
    assert [line[:6] for line in lines] == [f"{tag}  - " for tag in ("TY", "TI", "T2", "PY", "DA", "UR", "N1", "ER")]
    assert json.loads(as_csl(citation, names, "note"))[0]["title"] == (plain(title) or HOME)


def test_files_have_types_and_names_of_their_own(room: Served) -> None:
    for form, media_type in (
        ("bib", "application/x-bibtex"), ("ris", "application/x-research-info-systems"),
        ("json", "application/vnd.citationstyles.csl+json"),
    ):  # fmt: skip
        answer = room.get(f"/cite.{form}/{digits(FIRST)}/{HOME}")
        assert answer.headers["content-type"].partition(";")[0] == media_type
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="www.example.org-{digits(FIRST)}.{form}"'
        )
    links = [node.attributes["href"] for node in LexborHTMLParser(cited(room, "")).css(".takeaway a")]
    assert links == [f"/cite.{form}/{digits(FIRST)}/{HOME}" for form in FORMS]


def test_urls_keep_their_characters(room: Served) -> None:
    url = f"{HOME}a?b=1&c=%7B%25~_$"
    address = f"{room.origin}/web/{digits(FIRST)}/{url}"
    assert bibtex_of(cited(room, "a?b=1&c=%7B%25~_$", "bib"))["url"] == address
    assert ris_of(cited(room, "a?b=1&c=%7B%25~_$", "ris"))["urls"] == [address]


def test_what_has_no_title_is_cited_by_its_address(room: Served) -> None:
    assert ris_of(cited(room, "paper.pdf", "ris"))["title"] == f"{HOME}paper.pdf"
    page = LexborHTMLParser(cited(room, "paper.pdf"))
    assert f"\u201c{HOME}paper.pdf\u201d" in page.css_first("#citation").text()  # type: ignore[union-attr] # it is there


def test_the_address_is_that_of_the_capture_and_says_its_time(room: Served) -> None:
    for when in (FIRST, SECOND):
        page = LexborHTMLParser(cited(room, "late", when=when))
        address = page.css_first("#permanent").text()  # type: ignore[union-attr] # it is there
        assert address == f"{room.origin}/web/{digits(SENT)}/{HOME}late", "also in a later snapshot, which has no other"
        shown = room.get(address.removeprefix(room.origin))
        assert shown.status == 200 and shown.headers["memento-datetime"] == http_date(int(SENT.timestamp()))
        assert "2 Jan 2020, 06:30 CET" in page.body.text()  # type: ignore[union-attr] # it is there
        of_crawl = f"/web/{digits(when)}/{HOME}late"
        assert f"leads to the same version: {room.origin}{of_crawl}" in " ".join(page.css_first("main").text().split())  # type: ignore[union-attr]
        assert room.get(of_crawl).headers["memento-datetime"] == shown.headers["memento-datetime"]
    assert "same version" not in cited(room, "late", when=SENT), "it was opened by the time of the capture"


def test_a_time_that_shows_another_version_is_no_permanent_address(room: Served) -> None:
    """A long crawl got the page in the second in which another crawl began, which found it changed."""
    page = LexborHTMLParser(cited(room, "crossed"))
    address = page.css_first("#permanent").text()  # type: ignore[union-attr] # it is there
    assert address == f"{room.origin}/web/{digits(FIRST)}/{HOME}crossed"
    assert "crossed at first" in room.get(address.removeprefix(room.origin).replace("/http", "mp_/http")).text
    assert "crossed at last" in room.get(f"/web/{digits(SECOND)}mp_/{HOME}crossed").text


def test_a_citation_is_where_its_frame_is(room: Served) -> None:
    place = f"{digits(FIRST)}/{HOME}"
    assert f'href="/cite/{place}"' in room.get(f"/web/{place}").text
    for asked, leads in (
        (f"/cite/2020/{DOMAIN}", f"/cite/{digits(SECOND)}/{HOME}"),
        (f"/cite.bib/{digits(FIRST)}/{DOMAIN}", f"/cite.bib/{place}"),
        (f"/cite/{digits(FIRST)}/{HOME}old", f"/web/{digits(FIRST)}/{HOME}old"),
    ):
        answer = room.get(asked)
        assert (answer.status, answer.headers["location"]) == (302, leads), asked
    for wrong in (f"/cite/{HOME}", f"/cite/{digits(FIRST)}mp_/{HOME}", "/cite/", f"/cite.doc/{place}", "/cite//"):
        assert room.get(wrong).status in (400, 404), wrong


@pytest.mark.parametrize(("name", "status"), [("nothing", 404), ("excluded", 404), ("blocked", 451)])
def test_what_is_not_shown_is_not_cited(room: Served, name: str, status: int) -> None:
    for form in ("", ".bib", ".ris", ".json"):
        answer = room.get(f"/cite{form}/{digits(FIRST)}/{HOME}{name}")
        assert answer.status == status and "filename" not in answer.headers.get("content-disposition", "")
    assert room.get(f"/cite/{digits(HIDDEN)}/{HOME}").headers["location"] == f"/cite/{digits(SECOND)}/{HOME}"


def embedded_metadata(html: str, address: str) -> dict[str, str]:
    """What Zotero takes from the head of a page, by the rules of its translators "Embedded Metadata" and "RDF".

    | rule | field |
    |---|---|
    | the part of a name or property before its first `.`, `:` or `_` is a vocabulary, if it is known (dc, og) | – |
    | og:type `website` is a web page; else citation_title makes a journal article of it | itemType |
    | citation_title, else DC.title, else og:title, else the title of the page | title |
    | citation_date, else DC.date | date |
    | DC.source, else og:site_name | websiteTitle |
    | citation_public_url, else og:url, else link rel=canonical, else the page's own address | url |
    | DC.description | abstractNote |
    | meta author, else elements of the classes byline, bylines, vcard, article-byline | creators |
    """
    page = LexborHTMLParser(html)
    tags: dict[str, str] = {}
    for node in page.css("head meta"):
        name = node.attributes.get("name") or node.attributes.get("property")
        if name and (content := node.attributes.get("content")):
            tags.setdefault(name, content)

    def first(*names: str) -> str:
        return next((" ".join(tags[name].split()) for name in names if name in tags), "")

    title = page.css_first("title")
    is_article = "citation_title" in tags
    authors = [node for kind in ("byline", "bylines", "vcard", "article-byline") for node in page.css(f".{kind}")]
    return {
        "itemType": "webpage" if tags.get("og:type") == "website" else "journalArticle" if is_article else "webpage",
        "title": first("citation_title", "DC.title", "og:title") or (title.text() if title else ""),
        "date": first("citation_date", "DC.date"),
        "websiteTitle": first("DC.source", "og:site_name"),
        "url": first("citation_public_url", "og:url") or address,
        "abstractNote": first("DC.description"),
        "creators": str(len(authors) + ("author" in tags)),
    }


@pytest.mark.parametrize("name", [*TITLES, "paper.pdf", "late"])
def test_zotero_takes_title_date_archive_and_address_from_the_frame(room: Served, name: str) -> None:
    url = f"{HOME}{name}"
    html = room.get(f"/web/{digits(FIRST)}/{url}").text
    item = embedded_metadata(html, "where the reader is")
    when = SENT if name == "late" else FIRST
    title = {"paper.pdf": url, "late": "Title of late"}.get(name) or plain(TITLES[name])
    assert item == {
        "itemType": "webpage",
        "title": title,
        "date": f"{when:%Y-%m-%d}",
        "websiteTitle": "Archive of {Tests} & Co",
        "url": f"{room.origin}/web/{digits(when)}/{url}",
        "abstractNote": f"Archived copy of {url}, captured on {when.day} Jan 2020, {when:%H:%M} CET.",
        "creators": "0",
    }
    dublin_core = {
        node.attributes["name"]: node.attributes["content"] for node in LexborHTMLParser(html).css("meta[name^='DC.']")
    }
    assert dublin_core["DC.identifier"] == item["url"] and dublin_core["DC.publisher"] == "The House"
    date = datetime.fromisoformat(dublin_core["DC.date"] or "")
    assert date.astimezone(UTC) == when.astimezone(UTC)


@needs_chromium()
@pytest.mark.parametrize("is_granted", [True, False], ids=["where the clipboard is open", "where it is not"])
def test_buttons_copy_citation_and_link_or_select_them(room: Served, tmp_path: Path, *, is_granted: bool) -> None:
    with chromium(tmp_path) as browser:
        context = browser.new_context()
        if is_granted:
            context.grant_permissions(["clipboard-read", "clipboard-write"], origin=room.origin)
        else:
            context.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
            context.add_init_script("document.execCommand = () => false")
        tab = context.new_page()
        tab.goto(f"{room.origin}/cite/{digits(FIRST)}/{HOME}")
        address = f"{room.origin}/web/{digits(FIRST)}/{HOME}"
        for button, text in (("Copy the citation", tab.locator("#citation").inner_text()), ("Copy the link", address)):
            tab.get_by_role("button", name=button).click()
            status = tab.get_by_role("status")
            if is_granted:
                status.filter(has_text="Copied.").wait_for()
                assert tab.evaluate("navigator.clipboard.readText()") == text
            else:
                status.filter(has_text="It is selected now.").wait_for()
                assert tab.evaluate("getSelection().toString().trim()") == text
        context.close()
        context = browser.new_context(java_script_enabled=False)
        tab = context.new_page()
        tab.goto(f"{room.origin}/cite/{digits(FIRST)}/{HOME}")
        assert tab.locator("#citation").is_visible() and tab.locator("button:visible").count() == 0
        context.close()
