"""Seed 2's whole procedure in the browser, by an archivist: from the login over each step's button to the release.

The site has its six kinds of reference pages, the agent fetches it and does the steps, and a reader looks on. What the
record tells in the end is what it tells after the same procedure from a terminal (`tests/steps/test_procedure.py`).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agent.desk import forms
from tests.support import crawls, desks, ministry, rooms
from tests.support.agents import RunningAgent
from tests.support.browsers import chromium, needs_chromium
from tests.support.deskhands import Hand, at_desk
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = [pytest.mark.crawl, pytest.mark.timeout(600), needs_chromium()]
ANNA = desks.PEOPLE["anna"][0]
PAPER = "/publications/paper.pdf"
#: What an archivist says of a snapshot before its release; no step fills these remarks when nothing goes wrong.
TEXTS = {
    "captureRemarks": "the paper came a day late", "errorPageRemarks": "one, by its mark", "releaseRemarks": "\u4f8b",
    "searchLinkRemarks": "the search of the office", "title": "The office in its new style", "language": "de",
}  # fmt: skip


@dataclass
class Office:
    """The archive of an office with its site, an archivist at the desk, and a reader; no agent runs at first."""

    archive: Archive
    site: Site
    anna: Hand
    reader: Page
    agent: RunningAgent | None = None

    def start_agent(self) -> None:
        self.agent = RunningAgent(self.archive).ready()

    @property
    def newest(self) -> Record:
        """The snapshot that was entered last."""
        return next(Catalogue(self.archive).records("office"))

    def is_at(self, record: str, state: RecordState, word: str) -> None:
        """Hold a snapshot to a state, on its page and in its record."""
        expect(self.anna.tab.locator(".lead .state")).to_contain_text(word)
        assert Catalogue(self.archive).read(record)[0].state is state

    def readers_see(self) -> int:
        """How many snapshots the reading room lists now."""
        self.reader.reload()
        return self.reader.locator("table.snapshots tbody tr").count()


@pytest.fixture
def office(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    monkeypatch.setattr(forms, "WATCH_SECONDS", 0.1)
    desks.with_people(archive)
    archive.converter_settings.parent.mkdir()
    archive.converter_settings.write_text("wrap: 100\n")
    with Site() as site, chromium(tmp_path) as browser, desks.served(archive) as desk, rooms.served(archive) as room:
        ministry.build(site)
        archive.settings.write_text(ministry.settings(site, backup=str(tmp_path / "backup")))
        adam = desk.client("adam")
        for what, (made, read) in ministry.FORMATS.items():  # the registers are the administrator's
            kept = {"what": what, "made_by": made, "read_by": read}
            assert adam.submit(adam.get("/registers"), "/registers/save", kept).status == 200
        reader = browser.new_page()
        reader.goto(f"{room.origin}/")
        with at_desk(browser, desk.origin, "anna") as anna:
            made_office = Office(archive, site, anna, reader)
            try:
                yield made_office
            finally:
                if made_office.agent is not None:
                    made_office.agent.clear()


def enter(anna: Hand, reason: str, **texts: str) -> None:
    """Begin a snapshot on an occasion with the form."""
    anna.click("nav >> text=Today")
    anna.click("main >> text=New crawl")
    anna.tab.select_option("#f-publication", "office")
    anna.tab.fill("#f-reason", reason)
    anna.click("main summary:has-text('Description')")
    for name, text in texts.items():
        anna.tab.fill(f"#f-{name}", text)
    anna.click("main button:text-is('Start')")


def step(office: Office, button: str) -> None:
    """Start a step by its button, the one that leads on where there is such a one; wait until the page says it ended.

    It is one click, without any input, and while the step is to come nobody can ask for it again.
    """
    anna = office.anna
    leads_on = anna.tab.locator(".acts form button:not(.quiet)")
    if button in ("Count", "Convert", "Index it", "Check"):
        assert leads_on.all_inner_texts() == [button]
    anna.click(anna.tab.locator(".acts").get_by_role("button", name=button, exact=True))
    assert "It was asked for; the agent does it." in anna.words
    assert button not in leads_on.all_inner_texts()
    ended(office)


def ended(office: Office) -> None:
    """Wait until the page says that there is something new, and look at it."""
    assert office.agent is not None
    office.agent.signal(signal.SIGCHLD)  # it looks once a second, and when a child of its has ended
    anna = office.anna
    if anna.tab.get_by_text("Asked for:").count():  # else it had ended before the page was made
        anna.click(anna.tab.get_by_role("link", name="Show how it is now"))


def decide(anna: Hand, button: str, reason: str) -> None:
    """Take a decision that needs a reason."""
    anna.click(f".acts summary:has-text('{button}')")
    anna.tab.fill(".acts details[open] input[name=reason]", reason)
    anna.click(f".acts details[open] button:text-is('{button}')")


def one_is_given_up_and_one_rejected(office: Office) -> None:
    """A capture is cancelled before it is fetched; the regular one lacks a document, which a look at it shows."""
    anna = office.anna
    enter(anna, "too early")
    assert "waits for an agent" in anna.words and "No agent runs" in anna.words
    cancelled = office.newest.id
    decide(anna, "Cancel", "the paper is to come")
    office.is_at(cancelled, RecordState.CANCELLED, "cancelled")
    assert not list(office.archive.jobs.iterdir())
    office.site.gone(PAPER)
    office.start_agent()
    regular = until(
        lambda: found if (found := office.newest).state is RecordState.CAPTURED else None, "it is fetched"
    ).id
    anna.at_home()
    assert not anna.row(cancelled).count()
    anna.click(anna.row(regular).get_by_role("button", name="Count"))
    ended(office)
    office.is_at(regular, RecordState.COUNTED, "counted")
    anna.click("main >> text=Preview")
    anna.tab.frame_locator("iframe").get_by_role("link", name="Publications").click()
    anna.tab.frame_locator("iframe").get_by_role("link", name="the paper on archives").click()
    expect(anna.tab.locator("main")).to_contain_text("This crawl does not have the page")
    anna.tab.goto(f"{anna.origin}/snapshot/{regular}")
    decide(anna, "Reject", "the paper is missing")
    office.is_at(regular, RecordState.REJECTED, "rejected")
    office.site.back(PAPER)


def test_an_archivist_takes_a_snapshot_its_whole_way(office: Office, tmp_path: Path) -> None:
    anna = office.anna
    one_is_given_up_and_one_rejected(office)
    enter(anna, "new style", remarks="the new look", crawlerRemarks="as always")
    ended(office)
    name = office.newest.id
    office.is_at(name, RecordState.CAPTURED, "fetched")
    step(office, "Count")
    office.is_at(name, RecordState.COUNTED, "counted")
    step(office, "Convert")
    office.is_at(name, RecordState.CONVERTED, "converted")
    step(office, "Convert once more")
    office.is_at(name, RecordState.CONVERTED, "converted")
    step(office, "Index it")
    office.is_at(name, RecordState.INDEXED, "indexed")
    step(office, "Check")
    office.is_at(name, RecordState.INDEXED, "indexed")
    looked_at(office, name)
    described(anna, **TEXTS)
    assert office.readers_see() == 0
    anna.click(".acts button:text-is('Release it')")
    office.is_at(name, RecordState.RELEASED, "released")
    shown_to_readers(office)
    step(office, "Back up")
    assert (tmp_path / "backup/catalogue.git").is_dir()
    described(anna, backupRemarks="the disk is in the safe")
    measured(office, name)
    found = Catalogue(office.archive).read(name)[0]
    ministry.must_be_filled(found, ANNA)
    assert all(found.text(number) for number in range(1, 74))
    assert found.text(28) == "pdf", "the one before had no paper"
    assert [(each.what, each.by) for each in found.events] == [(what, ANNA) for what in (
        "new", "begun", "captured", "counted", "converted", "converted", "indexed", "checking", "looked", "checked",
        "edited", "released", "backup", "edited", "measure", "released")]  # fmt: skip


def looked_at(office: Office, name: str) -> None:
    """A person looks at the page that no program can judge: in its snapshot, from the list of checks."""
    anna = office.anna
    checks = anna.tab.locator("ul.checks")
    assert checks.locator("form").count() == 1 and checks.inner_text().count(": good") >= 6
    anna.click(checks.get_by_role("link", name="Minutes"))
    expect(anna.tab.frame_locator("iframe").locator("h1")).to_have_text("Minutes")
    anna.click("header >> text=Back to the crawl")
    anna.click(checks.get_by_role("button", name="Something is wrong"))
    assert "Say what is wrong with the page." in anna.words
    office.is_at(name, RecordState.INDEXED, "indexed")
    checks.get_by_label("Remark").fill("as before")
    anna.click(checks.get_by_role("button", name="Good"))
    office.is_at(name, RecordState.CHECKED, "checked")
    assert "Minutes: good (as before)" in checks.inner_text()


def described(anna: Hand, **texts: str) -> None:
    """Fields in one form, whose groups are folded."""
    for name, text in texts.items():
        folded = anna.tab.locator(f"form.description details:not([open]):has(#f-{name}) > summary")
        if folded.count():
            folded.click()
        anna.tab.fill(f"#f-{name}", text)
    anna.click("main >> text=Save the description")
    assert "The description was saved." in anna.words


def shown_to_readers(office: Office) -> None:
    """Readers find it, alone, and read in it."""
    assert office.readers_see() == 1
    reader = office.reader
    expect(reader.locator("table.snapshots")).to_contain_text("The office in its new style")
    reader.locator("table.snapshots .open a").first.click()
    reader.frame_locator("iframe").get_by_role("link", name="Publications").click()
    expect(reader.frame_locator("iframe").locator("body")).to_contain_text("two papers")
    reader.get_by_role("link", name="Record of this crawl").click()
    told = reader.locator("main")
    expect(told).to_contain_text("the new look")
    assert ANNA not in told.inner_text(), "persons are not for readers"
    reader.goto(f"{reader.url.partition('/snapshot')[0]}/")


def measured(office: Office, name: str) -> None:
    """A measure that readers see takes the release back, until somebody releases it anew."""
    anna = office.anna
    anna.click("summary:has-text('Record a measure')")
    for field, text in zip(("Kind", "Description", "Software", "Parameters"), ministry.MEASURE, strict=True):
        anna.tab.fill(f"#f-measure{field}", text)
    anna.tab.fill("#f-measureRemarks", "m")
    anna.tab.check("#readers")
    anna.click("main button:text-is('Record the measure')")
    office.is_at(name, RecordState.CHECKED, "checked")
    assert office.readers_see() == 0
    anna.click(".acts button:text-is('Release it')")
    office.is_at(name, RecordState.RELEASED, "released")
    assert office.readers_see() == 1
