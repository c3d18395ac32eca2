"""The versions of a page: newest first, changes alone, any two compared; and why a page is not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import chromium, needs_chromium
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Absent, Access, Answer, Blocked, Open
from webarcfs.access.visible_captures import UrlHistory, VisibleCapture, VisibleCaptures, VisibleState
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import NEVER
from webarcfs.archive.model.metadata import CET, from_epoch
from webarcfs.room.pages.calendar import _entries
from webarcfs.room.replay.replay_url import digits_of
from webarcfs.room.views import Change
from webarcfs.room.visit import Services
from webarcfs.web import limits

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME, PART, BLOCKED, EXCLUDED = (f"http://{DOMAIN}/{name}" for name in ("", "part", "blocked", "excluded"))
#: Of these the second crawl found one no more, and what it found of the other is excluded.
GONE, CUT = f"http://{DOMAIN}/gone/", f"http://{DOMAIN}/cutt/"
#: One that came back, one whose return is withheld, and one that came late.
BACK, FADED, LATE = (f"http://{DOMAIN}/{name}" for name in ("back", "faded", "late"))
SECRET = b"<p>excluded"
STILL = f"http://{DOMAIN}/still"
LOOP = f"http://{DOMAIN}/loop"
TIMES = [datetime(2019, 11, 1, 12, tzinfo=CET) + timedelta(days=30 * at) for at in range(5)]
AT = [digits(when) for when in TIMES]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("versions"))
    bodies = (b"<p>one", b"<p>two", None, b"<p>three", b"<p>four")
    for at, (when, body) in enumerate(zip(TIMES, bodies, strict=True)):
        pages: dict[str, Page | None] = {} if body is None else {HOME: Page(body), PART: Page(body)}
        if at == 0:
            pages |= {BLOCKED: Page(b"b"), EXCLUDED: Page(b"e")}
            pages |= {GONE: Page(b"g"), CUT: Page(b"c"), BACK: Page(b"1"), FADED: Page(b"f")}
        if at in (0, 4):
            pages[STILL] = Page(b"<p>still" if at == 0 else b"<p>stirred")
        if at == 1:
            pages |= {GONE: None, CUT: Page(SECRET), BACK: None, FADED: None}
        if at == 3:
            pages |= {BACK: Page(b"2"), LATE: Page(b"l"), FADED: Page(b"withheld")}
        published(made, DOMAIN, pages, when, redirects={LOOP: LOOP} if at == 0 else None)
    published(made, "closed.example.org", {"http://closed.example.org/": Page(b"c")}, TIMES[0], publication="r",
              closed_for="100 years")  # fmt: skip
    recover(made)
    access_rules.withhold(made, BLOCKED, "test", "x", public_text="A court ordered it.")
    access_rules.withhold(made, EXCLUDED, "test", "x", access=Access.EXCLUDE)
    day = timedelta(days=1)
    access_rules.withhold(made, CUT, "test", "x", after=TIMES[1] - day, before=TIMES[1] + day, access=Access.EXCLUDE)
    access_rules.withhold(made, FADED, "test", "x", after=TIMES[3] - day, before=TIMES[3] + day)
    access_rules.withhold(
        made, PART, "test", "x", after=TIMES[1] - timedelta(days=1), before=TIMES[1] + timedelta(days=1)
    )
    return made


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as found:
        yield found


def page_of(room: Served, path: str) -> LexborHTMLParser:
    return LexborHTMLParser(room.get(path).body)


def words(page: LexborHTMLParser) -> str:
    main = page.css_first("main")
    return " ".join(main.text().split()) if main else ""


def flags(page: LexborHTMLParser) -> list[str]:
    return [node.text() for node in page.css("tbody .flag")]


def test_versions_are_newest_first_and_changes_are_a_choice(room: Served) -> None:
    every = page_of(room, f"/web/*/{HOME}")
    assert flags(every) == ["changed", "changed", "same", "changed", "new"]
    assert [node.text() for node in every.css("tbody th")][::4] == ["29 Feb 2020, 12:00 CET", "1 Nov 2019, 12:00 CET"]
    (choice,) = (node.attributes["href"] for node in every.css("#list a:not([aria-current])"))
    assert choice == f"/versions?url=http%3A%2F%2F{DOMAIN}%2F&changes=1"
    changes = page_of(room, choice)
    assert flags(changes) == ["changed", "changed", "changed", "new"]
    assert [node.attributes["href"] for node in changes.css("#list a:not([aria-current])")] == [f"/web/*/{HOME}"]
    assert flags(page_of(room, f"{choice}&year=2019")) == ["changed", "new"]
    assert flags(page_of(room, f"/web/2019*/{HOME}")) == ["same", "changed", "new"]
    with_query = room.get(f"/web/*/{HOME}?changes=1&page=7&" + "&".join(f"p{number}=1" for number in range(120)))
    assert with_query.status == 200 and "no version" in with_query.text, "it is the query of the archived URL"


def test_where_most_is_the_same_the_list_leads_with_what_changed(room: Served) -> None:
    page = page_of(room, f"/web/*/{STILL}")
    assert flags(page) == ["changed", "same", "same", "same", "new"]
    assert "5 snapshots, 2 with changes: changes only" in words(page)
    path = f"/versions?url={quote(STILL, safe='')}&changes=1"
    assert page.css_first(f"main a[href='{path}#list']") is not None
    changes = page_of(room, path)
    assert flags(changes) == ["changed", "new"] and "with changes:" not in words(changes)
    assert changes.css_first("#list") is not None
    assert "with changes:" not in words(page_of(room, f"/web/*/{HOME}")), "of these most are changes"
    assert "3 snapshots, 1 with changes" in words(page_of(room, f"/web/2019*/{STILL}"))


def test_a_frame_leads_to_what_changed_until_the_newest_version(room: Served) -> None:
    for at in range(len(AT)):
        hrefs = [node.attributes["href"] for node in page_of(room, f"/web/{AT[at]}/{STILL}").css("footer a")]
        assert (f"/diff/{AT[at]}..{AT[4]}/{STILL}" in hrefs) == (at < 4)
    assert "Compare with the newest" not in room.get(f"/web/{AT[0]}/{GONE}").text, "it has one version"
    told = page_of(room, f"/diff/{AT[0]}..{AT[4]}/{STILL}")
    assert "still" in words(told) and "stirred" in words(told)


def test_any_two_are_compared_from_the_list_without_scripts(room: Served) -> None:
    page = page_of(room, f"/web/*/{HOME}")
    form = page.css_first("form[action='/diff']")
    assert form is not None
    for name, chosen in (("old", AT[3]), ("new", AT[4])):
        radios = page.css(f"input[type=radio][form={form.attributes['id']}][name={name}]")
        assert [node.attributes["value"] for node in radios] == AT[::-1]
        assert [node.attributes["value"] for node in radios if "checked" in node.attributes] == [chosen]
    for old, new in ((AT[0], AT[4]), (AT[4], AT[0])):
        answer = room.get(f"/diff?url=http%3A%2F%2F{DOMAIN}%2F&old={old}&new={new}")
        assert (answer.status, answer.headers["location"]) == (302, f"/diff/{AT[0]}..{AT[4]}/{HOME}")
    texts = words(page_of(room, f"/diff/{AT[0]}..{AT[4]}/{HOME}"))
    assert "one" in texts and "four" in texts
    by_day = room.get(f"/diff?url={DOMAIN}&old=2019-11-01&new=2019-12-02")
    assert "two" in words(page_of(room, by_day.headers["location"]))
    for wrong in ("", "&old=&new=", "&old=x&new=y", f"&old={AT[0]}", f"&old={'1' * 15}&new=1"):
        assert room.get(f"/diff?url={DOMAIN}{wrong}").status == 400, wrong
    assert room.get(f"/diff?url=ftp://x/&old={AT[0]}&new={AT[1]}").status == 400


@needs_chromium()
@pytest.mark.parametrize("width", [1200, 390])
def test_side_by_side_is_two_columns_on_a_desk_and_on_a_phone(room: Served, tmp_path: Path, width: int) -> None:
    with chromium(tmp_path) as browser:
        tab = browser.new_page(viewport={"width": width, "height": 800}, java_script_enabled=False)
        tab.goto(f"{room.origin}/diff/{AT[0]}..{AT[4]}/{HOME}")
        tab.get_by_role("link", name="Side by side").click()
        assert tab.url == f"{room.origin}/side/{AT[0]}..{AT[4]}/{HOME}"
        row = tab.locator("table.side tbody tr").filter(has=tab.locator("del")).first
        left, right = (cell.bounding_box() for cell in row.locator("td").all())
        assert left is not None and right is not None
        assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"] + 1
        assert abs(left["width"] - right["width"]) <= 2 and right["x"] + right["width"] <= width
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.get_by_role("link", name="One below the other").click()
        assert tab.url == f"{room.origin}/diff/{AT[0]}..{AT[4]}/{HOME}"


def test_what_is_withheld_is_not_said_to_be_missing_anywhere(room: Served) -> None:
    frame = room.get(f"/web/{AT[0]}/{BLOCKED}")
    assert frame.status == 451 and "This page is withheld" in frame.text and "legal" not in frame.text
    assert "This page is archived, and may not be shown." in frame.text
    assert "This page is withheld" in room.get(f"/web/{AT[0]}if_/{BLOCKED}").text
    calendar = words(page_of(room, f"/web/*/{BLOCKED}"))
    assert "This page is archived, and may not be shown. A court ordered it." in calendar
    assert "no version" not in calendar and AT[0] not in room.get(f"/web/*/{BLOCKED}").text
    assert "under embargo" in words(page_of(room, "/web/*/http://closed.example.org/"))


def test_the_list_of_versions_does_not_contradict_the_page_that_is_withheld(tmp_path: Path) -> None:
    """S-withhold-2. A page that was withheld and then went: its frame and its list of versions say the same."""
    made = archives.make_archive(tmp_path)
    home, gone = f"http://{DOMAIN}/", f"http://{DOMAIN}/gone"
    for number, time in enumerate(TIMES[:3]):
        pages: dict[str, Page | None] = {home: Page(b"h%d" % number)}
        pages |= [{}, {gone: Page(b"<p>name")}, {gone: None}][number]
        published(made, DOMAIN, pages, time)
    recover(made)
    access_rules.withhold(made, gone, "anna", "Mrs Doe complained")
    with served(made) as room:
        for time in AT[:3]:
            page = room.get(f"/web/{time}/{gone}")
            assert (page.status == 451) == (time == AT[1]), time
            assert "Doe" not in page.text and "legal" not in page.text
        calendar = room.get(f"/web/*/{gone}")
        assert "This page is archived, and may not be shown." in calendar.text
        assert "no version of it" not in calendar.text and "Doe" not in calendar.text


def test_a_version_that_is_withheld_is_not_shown_and_not_gone(room: Served) -> None:
    page = page_of(room, f"/web/*/{PART}")
    assert flags(page) == ["changed", "changed", "not shown", "new"]
    assert len(page.css("tbody input[name=old]")) == 3
    assert room.get(f"/web/{AT[1]}/{PART}").status == 451


def test_a_page_that_is_gone_says_since_when_and_leads_to_its_last_version(room: Served) -> None:
    for at in (1, 2, 4):
        page = page_of(room, f"/web/{AT[at]}/{GONE}")
        text = words(page)
        assert "Not in this snapshot" in text and "Crawls since 1 Dec 2019, 12:00 CET did not find this page." in text
        assert "The last version is of 1 Nov 2019, 12:00 CET." in text and "All versions" in text
        assert "link to it" not in text and "Perhaps" not in text and "no version" not in text
        links = [node.attributes["href"] for node in page.css("main a")]
        assert f"/web/{AT[0]}/{GONE}" in links and links.count("/snapshot/20191201T120000-p") == 1
    assert flags(page_of(room, f"/web/*/{GONE}")) == ["gone", "new"]
    assert room.get(f"/web/{AT[0]}/{GONE}").status == 200


def test_a_page_that_came_back_or_came_late_leads_to_the_versions_around(room: Served) -> None:
    back = words(page_of(room, f"/web/{AT[2]}/{BACK}"))
    assert "The crawl of 1 Dec 2019, 12:00 CET did not find this page." in back and "Crawls since" not in back
    assert "The version before: 1 Nov 2019" in back and "The version after: 30 Jan 2020" in back
    late = words(page_of(room, f"/web/{AT[1]}/{LATE}"))
    assert "The first version is of 30 Jan 2020, 12:00 CET." in late and "did not find" not in late
    faded = words(page_of(room, f"/web/{AT[2]}/{FADED}"))
    assert flags(page_of(room, f"/web/*/{FADED}")) == ["not shown", "gone", "new"]
    assert "The crawl of 1 Dec 2019, 12:00 CET did not find this page." in faded, "a later one did"
    assert "The version before: 1 Nov 2019" in faded and "last version" not in faded


def test_a_version_that_is_excluded_is_gone_byte_for_byte(room: Served) -> None:
    for at in range(1, len(AT)):
        answers = set()
        for url in (GONE, CUT):
            answer = room.get(f"/web/{AT[at]}/{url}")
            fields = tuple(sorted(answer.without_date().items()))
            answers.add((answer.status, fields, answer.body.replace(url[-6:].encode(), b"-----/")))
        assert len(answers) == 1 and b"did not find this page" in next(iter(answers))[2]


@given(st.lists(st.sampled_from((Open(1), Absent(), Blocked(""))), min_size=1, max_size=8))
def test_a_missing_page_is_gone_since_the_day_that_its_list_of_versions_says(answers: list[Answer]) -> None:
    capture = VisibleCapture(
        url=HOME, path=f"/{DOMAIN}/", surt="x", since=1, until=NEVER, last=1, captured=1, status=200, stored=7
    )
    states = [
        VisibleState(seq, answer, capture if isinstance(answer, Open) else None) for seq, answer in enumerate(answers)
    ]
    history = UrlHistory(HOME, lambda: states, lambda _: [])
    # Of one version nothing is read to compare it with itself.
    entries = list(_entries(cast("Services", None), history))
    for state in states:
        said = [entry for entry in entries if entry.date <= from_epoch(state.seq)]
        is_gone = isinstance(state.answer, Absent) and said and said[-1].change is Change.GONE
        since = history.gone_since(state.seq)
        assert (None if since is None else from_epoch(since)) == (said[-1].date if is_gone else None)


def test_an_address_that_was_never_seen_leads_to_nothing_empty(room: Served) -> None:
    answers = {}
    for url in (f"http://{DOMAIN}/nothing", EXCLUDED):
        page = page_of(room, f"/web/{AT[3]}/{url}")
        text = words(page)
        assert "The archive does not have this address" in text and "Not in this snapshot" not in text
        assert "All versions" not in text and "did not find" not in text
        assert "The archive has no version of this page. The archivists can look up why." in text
        links = [node.attributes["href"] or "" for node in page.css("main a")]
        assert f"/web/*/{HOME}*" in links and f"/web/{AT[3]}/{HOME}" in links
        for href in links:
            shown = room.get(href)
            assert shown.status == 200 and "no version" not in shown.text and "Nothing" not in shown.text, href
        answers[url] = text.replace(url, "")
    assert len(set(answers.values())) == 1, "what is excluded looks like what never was"
    below = page_of(room, f"/web/{AT[2]}/http://{DOMAIN}/no/such/folder/x")
    assert [node.attributes["href"] for node in below.css("main a[href$='*']")] == [f"/web/*/{HOME}*"]
    other = words(page_of(room, f"/web/{AT[2]}/http://unknown.example/x"))
    assert "Nor does it have anything else of unknown.example." in other and "The archivists" not in other


@pytest.mark.parametrize(("job", "is_said"), [("20191101T120000-p", True), ("20191101T120000-p+files", False)])
def test_a_missing_page_says_that_its_crawl_is_incomplete_where_that_is_known(
    tmp_path: Path, job: str, is_said: bool
) -> None:
    """An import does not tell what its crawl did not get."""
    archive = archives.make_archive(tmp_path)
    published(archive, DOMAIN, {HOME: Page(b"<p>one")}, TIMES[0])
    Catalogue(archive).change("20191101T120000-p", lambda was: replace(was, complete=False, job=job), "x", lambda _: "")
    recover(archive)
    with served(archive) as room:
        assert ("This crawl is incomplete" in words(page_of(room, f"/web/{AT[0]}/{HOME}nothing"))) is is_said


def test_a_redirect_in_a_circle_says_so(room: Served) -> None:
    assert "This redirect leads in a circle" in words(page_of(room, f"/web/{AT[0]}/{LOOP}"))


def test_100_000_snapshots_are_a_page_of_the_list(room: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of them changed. The states stand for those of an index that no test has time to fill."""
    count, begin = 100_000, int(datetime(1996, 1, 1, tzinfo=CET).timestamp())
    states = []
    for at in range(count):
        seq = begin + at * 9_000
        capture = VisibleCapture(
            url=HOME, path=f"/{DOMAIN}/", surt="x", since=seq, until=NEVER, last=seq, captured=seq, status=200,
            mime_type="text/html", blob=f"{at // 2}", size=7, stored=7,
        )  # fmt: skip
        states.append(VisibleState(seq, Open(seq), capture))
    history = UrlHistory(HOME, lambda: states, lambda _: [])
    monkeypatch.setattr(VisibleCaptures, "history", lambda _self, _url: history)
    answer = room.get(f"/web/*/{HOME}")
    assert answer.status == 200
    page = LexborHTMLParser(answer.body)
    assert len(page.css("tbody tr")) == limits.CALENDAR_ROWS
    assert len(answer.body) < 500_000, "the picture shows months, and not each snapshot"
    newest = page.css_first("tbody th a")
    assert newest is not None and newest.attributes["href"] == f"/web/{digits_of(states[-1].seq)}/{HOME}"
    assert "1 to 100 of 100,000" in words(page) and "changes only 50,000" in words(page)
    assert page.css_first("input[type=date][name=old]") is not None
    seen = set()
    for number in (2, 1_000, 1_001):
        part = page_of(room, f"/versions?url={DOMAIN}&page={number}")
        first = part.css_first("tbody th a")
        assert first is not None and len(part.css("tbody tr")) == limits.CALENDAR_ROWS
        seen.add(first.attributes["href"])
    assert f"/web/{digits_of(states[99].seq)}/{HOME}" in seen and len(seen) == 2, "a page behind the last is the last"
    year = page_of(room, f"/web/2000*/{HOME}")
    assert len(year.css(".months a")) == 366 and len(year.css("tbody tr")) == limits.CALENDAR_ROWS
