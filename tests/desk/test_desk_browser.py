"""The desk in Chromium: a week's twelve tasks within their clicks, nobody kept out, scripts off, live figures."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator

from agent.crawl import crawl_log, job_folder, job_orders
from agent.crawl.discovery import Discovery
from agent.crawl.job_folder import JobState, Phase, SavedPage
from agent.operations import records, saving
from agent.operations.bearers import Bearers
from tests.desk.conftest import DOMAIN, STATES, World, make_archive, record_id, when
from tests.support import desks
from tests.support.browsers import chromium, needs_chromium
from tests.support.deskhands import Hand, at_desk
from tests.support.desks import PASSWORD
from tests.support.site import Site
from webarcfs.access import access_rules
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import Role
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings

pytestmark = [pytest.mark.store, needs_chromium()]
JOB = "20261010T030000-p"
#: Pages that were saved, by status and notes in their logs: one came, one did not, and one is still to be saved.
SAVED = {"came": "200 9 {url} - - text/html #002 20261010020000000 - - seed3:200,added",
         "failed": "-1 - {url} - - - #002 20261010020000000 - - seed3:-11,dns", "waits": ""}  # fmt: skip
#: The snapshot that did not get all, the newest.
INCOMPLETE = 2 * len(STATES)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A desk with snapshots, a publication of its own file, and a job that fetches."""
    archive = make_archive(tmp_path_factory.mktemp("busy") / "archive", (*STATES, *STATES, RecordState.COUNTED))
    for name, saved in SAVED.items():
        make_saved(archive, name, saved)
    folder = archive.settings.with_name("publications.d")
    folder.mkdir()
    (folder / "q.toml").write_text('[[publication]]\nname = "q"\nurls = ["http://www.example.test/"]\n')
    retired = 'retired = true\nretired_since = 2026-10-01T12:00:00\nretired_reason = "it has moved"\n'
    (folder / "r.toml").write_text(f'[[publication]]\nname = "r"\nurls = ["http://www.example.test/r"]\n{retired}')
    (archive.jobs / JOB).mkdir()
    asked = settings_files.load(archive.settings)[0].publications[0]
    with job_folder.opened(archive.jobs / JOB) as frontier, frontier.changes():
        hosts = "www.example.test", f"{'a-long-name.' * 12}example.test"
        Discovery(frontier, asked).seeds([f"http://{host}/" for host in hosts])
    job_folder.save_item(archive.jobs / JOB, job(10))
    (archive.reports / JOB.replace("10T", "05T")).mkdir()
    for at in range(INCOMPLETE + 1):
        make_counted(archive, at)
    file, note = BytesIO(b"%PDF"), "signed by the ministry, in two copies"
    records.attach(archive, record_id(7), "Vertrag vom 3. März 2026.pdf", file, Acting("Anna", None), note=note)
    make_report(archive, record_id(7))
    make_tokens(archive)
    with desks.served(archive) as served:
        yield World(archive, served, tuple(record_id(at) for at in range(INCOMPLETE + 1)))


def make_tokens(archive: Archive) -> None:
    """Give two persons tokens: one with a long name that was used, one with a scope that its roles do not allow."""
    by, name = Acting("Adam", (Role.ADMINISTRATOR,), "adam"), "a-program-of-the-statistical-office-in-the-next-building"
    secret, _ = people.add_token(archive, "carl", name, [*Scope], by=by)
    Bearers(archive).of_text(secret, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
    people.add_token(archive, "adam", "laptop", [Scope.READ, Scope.MIRROR], by=by)
    text = archive.people.read_text("utf-8")
    assert '"read", "mirror"]' in text
    archive.people.write_text(text.replace('"read", "mirror"]', '"read", "add", "mirror"]'), "utf-8")


def make_report(archive: Archive, job: str) -> None:
    """Give a crawl a report, whose log has a page that robots.txt forbids, and long addresses."""
    folder = archive.reports / job
    folder.mkdir()
    urls = (f"http://{DOMAIN}/private", f"http://{DOMAIN}/{'long-name-of-a-folder/' * 8}")
    tail = "- #001 - - - seed3:-7,robots,depth:1"
    crawl_log.write(folder, (f"- -9998 - {url} L http://{DOMAIN}/ {tail}" for url in urls))
    missing = {"rows": [[DOMAIN, "robots", 2]], "unwanted": {"robots": 2}, "words": {"status 404": 1}}
    (folder / "summary.json").write_text(json.dumps({"job": job, "missing": missing}))


def make_saved(archive: Archive, name: str, line: str) -> None:
    """Make the report of a saved page, with its line of crawl.log; without one, the page waits to be saved."""
    page = SavedPage(url=f"http://www.example.test/{name}?a=<b>&c={'d' * 300}", by="Carl")
    job = saving.ask(archive, saving.define(Settings(), page)).job
    if not line:
        return
    (archive.jobs / job).rename(archive.reports / job)
    (archive.reports / job / "summary.json").write_text(json.dumps({"page": page.url, "hosts": []}))
    with gzip.open(archive.reports / job / crawl_log.COMPRESSED, "wt") as file:
        file.write(f"2026-10-10T02:00:00.000Z {line.format(url=page.url)}\n")


def make_counted(archive: Archive, at: int) -> None:
    """Let a snapshot be counted, as it is at the end of its job; the newest did not get all, as its report says."""
    catalogue, record = Catalogue(archive), record_id(at)
    found, blob = catalogue.read(record)
    found = replace(
        found.with_values({22: "2000", 23: str(2 + at), 24: "1"}, "test", when(at)), complete=at != INCOMPLETE
    )
    if at == INCOMPLETE:
        found = found.with_event("counted", "test", "", RecordState.COUNTED)
        (archive.reports / record).mkdir()
        ended = replace(job(100), job=record, state=Phase.ARCHIVED, warnings=("calendar.example.test did not answer",))
        job_folder.save_item(archive.reports / record, ended)
    catalogue.save([found], "test", record, expected={record: blob})


def job(documents: int) -> JobState:
    return JobState(
        job=JOB, publication="p", state=Phase.COLLECTING, stage="capture", done=documents, known=100,
        documents=documents, bytes=documents * 1000, urls={"done": documents, "waiting": 100 - documents},
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def hand(busy: World, browser: Browser) -> Iterator[Hand]:
    with at_desk(browser, busy.served.origin, "carl") as made:
        yield made


def state(busy: World, at: int) -> RecordState:
    return Catalogue(busy.archive).read(busy.ids[at])[0].state


def row(hand: Hand, at: int) -> Locator:
    return hand.row(record_id(at))


def test_what_needs_me_is_seen_at_once(hand: Hand) -> None:
    assert "Waiting for a release" in hand.words and "No agent runs" in hand.words
    assert row(hand, 9).is_visible() and "example.test, 10 Oct 2026, 03:00 CET" in row(hand, 9).inner_text()
    assert hand.clicks == 0


def test_a_snapshot_is_looked_at_and_released_in_three_clicks(hand: Hand, busy: World) -> None:
    hand.click(row(hand, 9).locator("th a").first)
    hand.click("main >> text=Preview")
    assert hand.tab.frame_locator("iframe").locator("p").first.inner_text().startswith("Hello 9")
    hand.click("header button")
    assert state(busy, 9) is RecordState.RELEASED and hand.clicks == 3


def test_links_of_a_preview_stay_in_it(hand: Hand) -> None:
    hand.tab.goto(f"{hand.origin}/snapshot/{record_id(7)}/preview")
    hand.tab.frame_locator("iframe").locator("a").first.click()
    hand.tab.wait_for_url("**/b.html")
    assert "NOT RELEASED" in hand.tab.locator("header").inner_text()
    hand.tab.go_back()
    hand.tab.frame_locator("iframe").locator("a").nth(1).click()
    hand.tab.wait_for_load_state()
    assert "leads out of the crawl" in hand.words


def test_why_one_is_incomplete_and_going_on_or_rejecting_take_two_and_one(hand: Hand, busy: World) -> None:
    hand.click("nav >> text=Crawls")
    hand.click(row(hand, INCOMPLETE).locator("th a").first)
    assert "Why it is incomplete" in hand.words and "calendar.example.test did not answer" in hand.words
    assert "Steps" in hand.words and "History" in hand.words and hand.clicks == 2
    hand.tab.fill("details[open] input[name=reason]", "half of it is missing")
    hand.click("details[open] button:text-is('Reject')")
    assert state(busy, INCOMPLETE) is RecordState.REJECTED and hand.clicks == 3
    hand.click("main button:has-text('Take the rejection back')")
    assert state(busy, INCOMPLETE) is RecordState.COUNTED
    hand.at_home()
    hand.click("nav >> text=Crawls")
    hand.click(row(hand, INCOMPLETE).locator("th a").first)
    hand.click(".acts >> button:text-is('Release it')")
    assert state(busy, INCOMPLETE) is RecordState.RELEASED and hand.clicks == 3


def test_a_capture_on_an_occasion_takes_three(hand: Hand) -> None:
    hand.click("main >> text=New crawl")
    hand.tab.select_option("#f-publication", "p")
    hand.clicks += 1
    hand.tab.fill("#f-reason", "election")
    hand.click("main button:text-is('Start')")
    assert "election" in hand.words and hand.clicks == 3


def test_a_job_is_paused_and_a_server_left_out_in_two(hand: Hand, busy: World) -> None:
    hand.click("nav >> text=Running")
    hand.click("main >> text=Pause")
    assert hand.clicks == 2
    hand.at_home()
    hand.click("nav >> text=Running")
    hand.tab.fill(f"#exclude-{JOB}", "calendar.example.test")
    hand.click("main button:has-text('Leave out')")
    assert hand.clicks == 2
    assert [str(each) for each in job_orders.after(busy.archive.jobs / JOB, 0)][:2] == [
        "pause",
        "exclude calendar.example.test",
    ]


def test_a_deadline_is_extended_in_two(hand: Hand, busy: World) -> None:
    hand.click("nav >> text=Running")
    hand.tab.fill(f"#deadline-{JOB}", "2 hours")
    hand.click("main button:has-text('Set')")
    assert hand.clicks == 2
    assert job_orders.after(busy.archive.jobs / JOB, 0)[-1].word == "deadline"
    hand.tab.fill(f"#until-{JOB}", "2050-12-01T22:00")
    hand.click("main button:has-text('Set')")
    assert job_orders.after(busy.archive.jobs / JOB, 0)[-1].value == "2050-12-01T22:00:00"


def test_a_new_publication_is_tried_and_saved_in_three(hand: Hand, busy: World) -> None:
    file = busy.archive.settings.with_name("publications.d") / "new-one.toml"
    with Site() as site:
        site.add_html("/", '<title>Start</title><a href="/a.html">a</a>')
        hand.click("main >> text=Add a publication")
        assert hand.tab.locator("main input:visible, main select:visible, main textarea:visible").count() == 4
        hand.tab.fill("#f-name", "new-one")
        hand.tab.fill("#f-urls", f"http://{site.host}/")
        hand.tab.select_option("#f-interval", "1 week")
        hand.click("main button:has-text('Try it')")
        hand.tab.wait_for_selector(".trial", timeout=60_000)
        assert "Each start address leads to a document" in hand.words
        assert f"http://{site.host}/a.html" in hand.words and not file.exists()
        hand.click("main button:text-is('Save')")
    assert hand.clicks == 3
    assert f"http://{site.host}/" in file.read_text() and 'interval = "1 week"' in file.read_text()


def unfold(hand: Hand, group: str) -> None:
    """Unfold a group of fields of a publication, where it is folded."""
    for folded in ("details.more:not([open]) > summary", f"details.set:not([open]) > summary:text-is('{group}')"):
        if hand.tab.locator(folded).count():
            hand.tab.locator(folded).click()


def test_the_cycle_and_an_exclusion_take_two_and_save(hand: Hand, busy: World) -> None:
    hand.click("nav >> text=Publications")
    hand.click("main a[href='/publications/q']")
    assert hand.clicks == 2
    hand.tab.fill("#f-interval-other", "2 weeks")
    unfold(hand, "Extent")
    hand.tab.fill("#f-exclude", "www.example.test/bic/* # secondary information")
    hand.click("main button:text-is('Save')")
    text = busy.archive.settings.with_name("publications.d").joinpath("q.toml").read_text()
    assert 'interval = "2 weeks"' in text and 'reason = "secondary information"' in text
    hand.click("main summary:has-text('Retire it')")
    hand.tab.fill("#retire-reason", "it has moved")
    hand.click("main button:text-is('Retire it')")
    assert "Retired since" in hand.words and "it has moved" in hand.words


def test_what_is_wrong_is_named_above_and_leads_to_its_field(hand: Hand) -> None:
    hand.click("nav >> text=Publications")
    hand.click("main a[href='/publications/q']")
    unfold(hand, "Extent")
    hand.tab.fill("#f-max_file_size", "much")
    hand.click("main button:text-is('Save')")
    assert "Nothing was saved" in hand.words and hand.tab.input_value("#f-max_file_size") == "much"
    hand.click("[role=alert] li a")
    assert hand.tab.locator("#f-max_file_size").is_visible()
    hand.tab.fill("#f-max_file_size", "1,5 GB")
    hand.click("main button:text-is('Save')")
    assert "was saved" in hand.words and hand.tab.input_value("#f-max_file_size") == "1.5 GB", "what is set is unfolded"


def test_a_snapshot_is_compared_with_the_one_before_in_one_and_with_any_in_two(hand: Hand) -> None:
    hand.click(row(hand, 7).locator("text=Compare"))
    assert "Comparison" in hand.words and hand.clicks == 1
    assert hand.tab.url.endswith(f"/compare/{record_id(6)}..{record_id(7)}")
    hand.click(hand.tab.get_by_role("link", name="3 Oct 2026", exact=False))
    assert hand.clicks == 2 and hand.tab.url.endswith(f"/compare/{record_id(2)}..{record_id(7)}")
    assert "3 Oct 2026" in hand.tab.locator(".lead").inner_text()


def test_a_description_is_corrected_in_two_and_several_in_three(hand: Hand, busy: World) -> None:
    hand.click(row(hand, 6).locator("th a").first)
    hand.tab.fill("#f-remarks", "the search does not work \u4f8b")
    hand.click("main >> text=Save the description")
    assert hand.clicks == 2
    assert Catalogue(busy.archive).read(busy.ids[6])[0].text(6) == "the search does not work \u4f8b"
    hand.at_home()
    hand.click("nav >> text=Crawls")
    for at in (6, 7):
        row(hand, at).locator("input[type=checkbox]").check()
    hand.click("main >> text=Change the ticked")
    hand.tab.fill("#f-project", "Intranet")
    hand.click("main button:text-is('Save')")
    assert hand.clicks == 3
    assert [Catalogue(busy.archive).read(busy.ids[at])[0].text(4) for at in (6, 7)] == ["Intranet"] * 2


def test_a_page_is_withheld_in_two_from_the_replayed_page(hand: Hand, busy: World) -> None:
    hand.tab.goto(f"{hand.origin}/snapshot/{record_id(7)}/preview")
    hand.clicks = 0
    hand.click("header >> text=Withhold this page")
    hand.tab.fill("#f-reason", "court order")
    hand.click("main button:text-is('Withhold')")
    assert hand.clicks == 2
    rules = access_rules.load_for_staff(busy.archive).rules
    assert {rule.reason for rule in rules} == {"court order"} and len(rules) == 2, "the page, and its index.html"
    hand.click("main button:has-text('Lift')")
    assert access_rules.load(busy.archive).rules == ()


def test_all_that_passed_are_released_in_two(hand: Hand, busy: World) -> None:
    hand.click("main >> text=Tick all that passed")
    hand.click("main >> text=Release the ticked")
    assert hand.clicks == 2 and "Released:" in hand.words
    assert state(busy, 7) is RecordState.RELEASED


def test_a_letter_is_attached_and_saved_again(hand: Hand, busy: World, tmp_path: Path) -> None:
    letter = tmp_path / "letter.pdf"
    letter.write_bytes(os.urandom(3_000_000))
    hand.tab.goto(f"{hand.origin}/snapshot/{busy.ids[6]}")
    hand.click("main >> text=Attach a file")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(20_000_001)
    hand.tab.set_input_files("#attach-file", tmp_path / "large")
    assert "20 MB" in hand.tab.locator("#attach-file").evaluate("each => each.validationMessage")
    hand.tab.set_input_files("#attach-file", letter)
    hand.tab.fill("#attach-note", "of the ministry")
    hand.click("main >> text=Attach it")
    assert hand.clicks == 2 and "The file is attached." in hand.words
    with hand.tab.expect_download() as saved:
        hand.tab.click("main >> text=letter.pdf")
    assert saved.value.suggested_filename == "letter.pdf"
    assert saved.value.path().read_bytes() == letter.read_bytes()


def pages(busy: World) -> list[str]:
    """A page of each kind."""
    record = f"/snapshot/{busy.ids[7]}"
    return [
        "/", "/snapshots", record, f"{record}/preview", f"/compare/{busy.ids[6]}..{busy.ids[7]}", "/running",
        "/publications", "/publications/q", "/publications/r", "/publications/+new", "/registers", "/access",
        "/access?lifted=yes", "/options", "/new", "/feed", "/tokens",
        "/snapshots/edit?ticked=1,2", "/nothing", f"/report/{busy.ids[7]}", f"/report/{busy.ids[7]}/urls?word=robots",
        "/missing", "/missing?url=no+address", f"/missing?url=http%3A%2F%2F{DOMAIN}%2Fprivate",
        f"/missing?url=http%3A%2F%2F{DOMAIN}%2Fnever",
        "/save?url=http://www.example.test/%3Ca%3E",
        *(f"/save/{quote(path.name)}" for folder in (busy.archive.jobs, busy.archive.reports)
          for path in sorted(folder.glob("*+page"))),
    ]  # fmt: skip


#: Each look of each page, or each page in one of them.
_ALL_LOOKS = bool(os.environ.get("DESK_LOOK"))
_LOOKS: list[dict[str, Any]] = [
    {"color_scheme": "light", "locale": "en", "viewport": {"width": 1200, "height": 900}},
    {"color_scheme": "dark", "locale": "de-DE", "viewport": {"width": 360, "height": 740}},
]


@pytest.mark.parametrize("at", range(len(_LOOKS)))
def test_no_page_of_the_desk_is_closed_to_anybody(busy: World, browser: Browser, at: int) -> None:
    found, wide = {}, []
    rule = access_rules.withhold(
        busy.archive, f"http://{DOMAIN}/{'long' * 30}/{at}", "carl", "a complaint", role="curator"
    )
    access_rules.lift(busy.archive, rule[0].id, "carl")
    for name, paths in (("", ["/login"]), ("carl", pages(busy)), ("adam", ["/people", "/tokens", "/people?key=anna"])):
        context = browser.new_context(bypass_csp=True, **_LOOKS[at])
        hand = Hand(context.new_page(), busy.served.origin)
        if name:
            hand.login(name)
        for path in paths if _ALL_LOOKS or not name else paths[at :: len(_LOOKS)]:
            hand.tab.goto(hand.origin + path)
            results = Axe().run(hand.tab, options={"iframes": False})
            if results.violations_count:
                found[path] = [
                    (each["id"], [node["html"] for node in each["nodes"]][:3])
                    for each in results.response["violations"]
                ]
            if not hand.tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
                wide.append(path)
        context.close()
    assert found == {}
    assert wide == []


def test_a_token_is_made_in_two_clicks_and_its_page_is_closed_to_nobody(busy: World, browser: Browser) -> None:
    for number, looks in enumerate(_LOOKS):
        context = browser.new_context(bypass_csp=True, **looks)
        hand = Hand(context.new_page(), busy.served.origin)
        hand.login("rita")
        hand.tab.goto(f"{hand.origin}/tokens")
        hand.tab.fill("#f-name", f"laptop{number}")
        hand.click("main .acts button")
        secret = hand.tab.input_value("#secret")
        assert tokens.is_secret(secret) and secret not in hand.tab.url
        results = Axe().run(hand.tab, options={"iframes": False})
        assert [each["id"] for each in results.response["violations"]] == []
        assert hand.tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        hand.click("main a.quiet")
        assert hand.clicks == 2 and secret not in hand.tab.content() and f"laptop{number}" in hand.words
        context.close()


def test_the_keyboard_reaches_all_that_a_page_offers(busy: World, hand: Hand) -> None:
    query = "a[href], button, input:not([type=hidden]), select, textarea, summary"
    seen_of = (
        f"[...document.querySelectorAll('{query}')].filter(each => each.offsetParent !== null)"
        ".map(each => [each, each.tagName === 'SUMMARY' ? each.parentElement.parentElement : each])"
        ".filter(([each, holder]) => !holder.closest('details:not([open])')).map(([each, holder]) => each)"
        ".filter(each => !each.closest('footer'))"
    )
    for path in (
        "/",
        "/snapshots",
        f"/snapshot/{busy.ids[8]}",
        "/running",
        "/save",
        "/publications/q",
        "/access",
        "/options",
        "/tokens",
    ):
        hand.tab.goto(hand.origin + path)
        for _ in range(hand.tab.evaluate(f"{seen_of}.length") + 15):
            hand.tab.keyboard.press("Tab")
            hand.tab.evaluate("document.activeElement.dataset.seen = '1'")
        missed = hand.tab.evaluate(f"{seen_of}.filter(each => !each.dataset.seen).map(each => each.outerHTML)")
        assert missed == [], path


def test_the_page_that_is_saved_is_followed_until_it_has_ended(busy: World, hand: Hand) -> None:
    """A reload shows the same without scripts."""
    asked = saving.ask(busy.archive, saving.define(Settings(), SavedPage(url="http://live.test/", by="Carl")))
    folder, state = busy.archive.jobs / asked.job, replace(job(1), job=asked.job, publication="saved-live.test")
    job_folder.save_item(folder, state)
    hand.tab.goto(f"{hand.origin}/save/{quote(asked.job)}")
    figure = hand.tab.locator("main [data-figure=documents]")
    assert figure.inner_text() == "1"
    job_folder.save_item(folder, replace(state, documents=7))
    figure.filter(has_text="7").wait_for()
    assert hand.tab.locator("[data-ends]").is_hidden() and hand.tab.locator("[data-runs]").is_visible()
    folder.rename(busy.archive.reports / asked.job)
    (busy.archive.reports / asked.job / "summary.json").write_text(json.dumps({"page": "http://live.test/"}))
    hand.tab.locator("[data-ends]").wait_for(state="visible")
    assert hand.tab.locator("[data-runs]").is_hidden(), "what has ended shows no more how far it is"
    hand.tab.click("[data-ends] a")
    assert "could not be saved" in hand.words


def test_figures_change_in_their_places_while_a_page_is_open(busy: World, hand: Hand) -> None:
    hand.tab.goto(f"{hand.origin}/running")
    figure = hand.tab.locator(f"dl[data-job='{JOB}'] [data-figure=documents]")
    assert figure.inner_text() == "10"
    job_folder.save_item(busy.archive.jobs / JOB, job(57))
    figure.filter(has_text="57").wait_for()
    assert hand.tab.locator("[data-ended]").is_hidden()
    other = JOB.replace("10T", "11T")
    (busy.archive.jobs / other).mkdir()
    job_folder.save_item(busy.archive.jobs / other, replace(job(1), job=other))
    hand.tab.locator("[data-ended]").wait_for(state="visible")
    for each in (busy.archive.jobs / other).iterdir():
        each.unlink()
    (busy.archive.jobs / other).rmdir()


def test_all_works_without_scripts(busy: World, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False, locale="en")
    tab = context.new_page()
    tab.goto(f"{busy.served.origin}/snapshots")
    tab.fill("#name", "carl")
    tab.fill("#password", PASSWORD)
    tab.click("main button")
    tab.wait_for_selector("table.snapshots")
    assert "Crawls" in tab.title()
    job_folder.save_item(busy.archive.jobs / JOB, job(63))
    tab.goto(f"{busy.served.origin}/running")
    assert tab.locator(f"dl[data-job='{JOB}'] [data-figure=documents]").inner_text() == "63"
    job_folder.save_item(busy.archive.jobs / JOB, job(64))
    tab.reload()
    assert tab.locator(f"dl[data-job='{JOB}'] [data-figure=documents]").inner_text() == "64"
    tab.goto(f"{busy.served.origin}/snapshot/{busy.ids[0]}/preview")
    assert tab.locator("iframe").count() == 1
    tab.goto(f"{busy.served.origin}/access?url=http://{DOMAIN}/")
    tab.fill("#f-reason", "without scripts")
    tab.click("main button:text-is('Withhold')")
    assert "without scripts" in tab.locator("main").inner_text()
    context.close()


@pytest.mark.parametrize("code", ["en", "de"])
def test_on_a_phone_the_ways_are_in_a_menu_that_needs_no_scripts(busy: World, browser: Browser, code: str) -> None:
    size: Any = {"width": 390, "height": 844}
    context = browser.new_context(java_script_enabled=False, locale=code, viewport=size)
    client = busy.served.client("adam")
    origin = busy.served.origin
    context.add_cookies([{"name": name, "value": value, "url": origin} for name, value in client.cookies.items()])
    tab = context.new_page()
    for path in ("/", "/snapshots", "/registers", f"/snapshot/{busy.ids[7]}"):
        tab.goto(f"{origin}{path}")
        head, first = tab.locator("header").bounding_box(), tab.locator("main h1").bounding_box()
        assert head is not None and first is not None
        assert head["height"] <= 72 and first["y"] <= 160, path
        assert tab.locator("header a:visible, header button:visible").count() == 1
        for caption in tab.locator("table.stacked caption:visible:not(.unseen)").all():
            box = caption.bounding_box()
            assert box is not None and (box["width"] > 300 or box["height"] == 0), path
    tab.locator(".folded > summary").click()
    ways = tab.locator("header nav:visible a")
    assert ways.count() == 8 and tab.locator("header form:visible").count() == 2
    ways.nth(4).click()
    tab.wait_for_url("**/registers")
    context.close()


def test_nothing_of_the_desk_is_asked_elsewhere(busy: World, hand: Hand) -> None:
    asked: list[str] = []
    hand.tab.on("request", lambda request: asked.append(request.url))
    for path in pages(busy)[:6]:
        hand.tab.goto(hand.origin + path)
    assert [each for each in asked if not each.startswith(busy.served.origin)] == []
