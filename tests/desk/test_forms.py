"""Forms of the desk: what they do, sent twice, late, without a session, by two at once; texts in every script."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import resource
import socket
import threading
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from click.testing import CliRunner
from starlette import formparsers
from starlette.requests import Request
from starlette.types import Message

from agent.catalogue import stepfolders
from agent.cli import cli
from agent.crawl import crawl_log, job_folder, job_orders
from agent.crawl.discovery import Discovery
from agent.crawl.job_folder import JobState, Phase, step_folder
from agent.desk import forms, login
from agent.desk.forms import SentForm
from agent.desk.server import app
from agent.indexing.recovery import recover
from agent.operations import records, withholding
from agent.steps import running
from tests.desk.conftest import DOMAIN, World, when
from tests.support.desks import PASSWORD, Answer, Client
from tests.support.rooms import Page, published
from tests.support.waiting import until
from webarcfs.access import access_rules
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import FieldNumber, RecordState
from webarcfs.archive.catalogue.workflow import Decision, Role, WorkflowStep
from webarcfs.archive.model.errors import TooMany, UsageError
from webarcfs.archive.model.metadata import compact_time, format_time, now, parse_time
from webarcfs.archive.system import files
from webarcfs.web import language as languages

pytestmark = pytest.mark.store
SCRIPTS = (
    "\u4f8b\u5b50 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea \u0937\u093f \U0001f4da "
    "<b>&amp; 100 % %(what)s {{ 7*7 }} \"'`"
)
BERT = Acting("Bert", (Role.ARCHIVIST,))


def state(world: World, at: int) -> RecordState:
    return Catalogue(world.archive).read(world.ids[at])[0].state


def text(world: World, at: int, number: int) -> str:
    return Catalogue(world.archive).read(world.ids[at])[0].text(number)


def path(world: World, at: int, word: str = "") -> str:
    return f"/snapshot/{world.ids[at]}" + (f"/{word}" if word else "")


def orders_of(page: Answer) -> list[list[str]]:
    """What the page tells of orders to a job: what, by whom, why."""
    lines = page.page.xpath('//table[caption="Orders to the job"]/tbody/tr')
    return [[" ".join(cell.text_content().split()) for cell in line.xpath("td")[1:]] for line in lines]


# -- one snapshot ------------------------------------------------------------------------------------------------------


def test_a_locked_snapshot_says_for_whom_and_since_when(own: World) -> None:
    found = Catalogue(own.archive).read(own.ids[1])[0]
    asked = stepfolders.ask(own.archive, found, WorkflowStep.CONVERT, by="Anna \u4f8b")
    since = parse_time(asked.asked)
    english, german = own.served.client("carl"), own.served.client("carl")
    german.headers["Accept-Language"] = "de"
    assert "Convert for Anna" not in english.get("/snapshots").words, "it waits, and nobody is at it"
    with stepfolders.locked(own.archive, own.ids[1]):
        for place in ("/snapshots", path(own, 1)):
            told = f"being worked on Convert for Anna \u4f8b, since {languages.moment(since, 'en')}"
            assert told in english.get(place).words, place
            told = f"wird bearbeitet Konvertieren f\u00fcr Anna \u4f8b, seit {languages.moment(since, 'de')}"
            assert told in german.get(place).words, place
    stepfolders.done(own.archive, asked.folder)
    stepfolders.ask(own.archive, found, WorkflowStep.INDEX)
    with stepfolders.locked(own.archive, own.ids[1]):
        assert "being worked on Index it, by itself, since" in english.get(path(own, 1)).words
    assert "being worked on" not in english.get("/snapshots").words


def test_of_two_persons_who_checks_may_not_release(own: World) -> None:
    own.archive.settings.write_text(own.archive.settings.read_text() + "two_persons = true\n")
    anna, bert = own.served.client("anna"), own.served.client("bert")
    for who, step in ((bert, "index"), (anna, "check")):
        asked = who.submit(who.get(path(own, 4)), path(own, 4, "step"), {"step": step})
        assert asked.status == 200, asked.words
        assert running.run_waiting(own.archive, own.ids[4]) == []
    assert state(own, 4) is RecordState.CHECKED
    page = anna.get(path(own, 4))
    assert f'action="{path(own, 4, "release")}"' not in page.text, "no button that would be refused"
    other = anna.get(path(own, 1)).form(path(own, 1, "reject"))
    assert anna.post(path(own, 4, "release"), other).status == 403, "a form of another snapshot does nothing"
    session = own.served.desk.sessions.find(anna.cookies[own.served.desk.sessions.cookie])
    assert session is not None
    token = own.served.desk.tokens.form(session.public, path(own, 4, "release"), str(RecordState.CHECKED))
    refused = anna.post(path(own, 4, "release"), {"token": token})
    assert refused.status == 400 and "two_persons wants another person" in refused.words
    assert state(own, 4) is RecordState.CHECKED
    done = bert.submit(bert.get(path(own, 4)), path(own, 4, "release"))
    assert done.status == 200 and state(own, 4) is RecordState.RELEASED
    last = Catalogue(own.archive).read(own.ids[4])[0].events[-1]
    assert (last.what, last.by) == ("released", "Bert")


def test_a_snapshot_is_released_rejected_taken_back_and_withdrawn_by_its_buttons(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.submit(anna.get(path(own, 1)), path(own, 1, "release"))
    assert state(own, 1) is RecordState.RELEASED and "Readers see it" in page.words
    page = anna.submit(page, path(own, 1, "withdraw"), {"reason": f"wrong {SCRIPTS}"})
    assert state(own, 1) is RecordState.CHECKED and SCRIPTS in page.words
    assert anna.submit(anna.get(path(own, 2)), path(own, 2, "reject")).status == 400, "a rejection needs a reason"
    anna.submit(anna.get(path(own, 2)), path(own, 2, "reject"), {"reason": "half of it is missing"})
    assert state(own, 2) is RecordState.REJECTED
    anna.submit(anna.get(path(own, 2)), path(own, 2, "reopen"))
    assert state(own, 2) is RecordState.CAPTURED, "of what it was before, its record says nothing"
    assert Catalogue(own.archive).read(own.ids[2])[0].events[-1].by == "Anna \u4f8b"


def test_a_form_that_is_sent_twice_or_late_does_nothing_and_says_what_is_so_now(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.get(path(own, 1))
    other = anna.get(path(own, 1))
    assert anna.submit(page, path(own, 1, "release")).status == 200
    events = len(Catalogue(own.archive).read(own.ids[1])[0].events)
    twice = anna.submit(page, path(own, 1, "release"))
    assert twice.status == 409 and "sent already" in twice.words and "released" in twice.words
    late = anna.submit(other, path(own, 1, "reject"), {"reason": "late"})
    assert late.status == 409 and "released by now" in late.words
    records.decide(own.archive, own.ids[1], Decision.WITHDRAW, BERT, "again")
    assert len(Catalogue(own.archive).read(own.ids[1])[0].events) == events + 1
    very_late = anna.submit(other, path(own, 1, "release"))
    assert very_late.status == 409 and state(own, 1) is RecordState.CHECKED


def test_what_was_typed_survives_the_end_of_a_session(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.get(path(own, 1))
    anna.cookies.clear()
    lapsed = anna.submit(page, path(own, 1, "describe"), {"remarks": SCRIPTS + "\nsecond line"})
    assert lapsed.status == 403 and "session was over" in lapsed.words
    wrong = anna.submit(lapsed, "/login", {"name": "anna", "password": "wrong"})
    back = anna.submit(wrong, "/login", {"name": "anna", "password": PASSWORD})
    assert back.status == 200
    assert back.form(path(own, 1, "describe"))["remarks"] == [SCRIPTS + "\nsecond line"]
    assert text(own, 1, 6) == "", "nothing was sent yet"
    saved = anna.submit(back, path(own, 1, "describe"))
    assert saved.status == 200 and text(own, 1, 6) == SCRIPTS + "\nsecond line"
    anna.cookies.clear()
    page = anna.submit(anna.submit(saved, path(own, 1, "describe"), {"remarks": "mine"}), "/login", {
        "name": "anna", "password": PASSWORD})  # fmt: skip
    records.edit(own.archive, own.ids[1], {"remarks": "Bert's"}, BERT)
    late = anna.submit(page, path(own, 1, "describe"))
    assert late.status == 409 and text(own, 1, 6) == "Bert's", "the state that it was made for came along"


def test_two_editors_lose_nothing(own: World) -> None:
    anna, bert = own.served.client("anna"), own.served.client("bert")
    ours, theirs = anna.get(path(own, 1)), bert.get(path(own, 1))
    assert bert.submit(theirs, path(own, 1, "describe"), {"remarks": "Bert's", "signature": "77"}).status == 200
    conflict = anna.submit(ours, path(own, 1, "describe"), {"remarks": "Anna's"})
    assert conflict.status == 409
    assert conflict.form(path(own, 1, "describe"))["remarks"] == ["Anna's"]
    assert "It is now: Bert's" in conflict.words and "It is now: 77" in conflict.words
    assert text(own, 1, 6) == "Bert's"
    saved = anna.submit(conflict, path(own, 1, "describe"), {"signature": "77"})
    assert saved.status == 200 and (text(own, 1, 6), text(own, 1, 2)) == ("Anna's", "77")
    results: list[int] = []

    def edit(client: Client, page: Answer, text: str) -> None:
        results.append(client.submit(page, path(own, 2, "describe"), {"remarks": text}).status)

    pages = [client.get(path(own, 2)) for client in (anna, bert)]
    both = [threading.Thread(target=edit, args=each) for each in zip((anna, bert), pages, ("one", "two"), strict=True)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert sorted(results) == [200, 409]


def test_fields_that_are_not_for_a_role_are_told_and_not_taken(own: World) -> None:
    adam = own.served.client("adam")
    page = adam.get(path(own, 1))
    fields = page.form(path(own, 1, "describe"))
    assert "bytes" in fields and "person" not in fields
    forged = adam.submit(page, path(own, 1, "describe"), {"person": "somebody else"})
    assert forged.status == 403 and text(own, 1, 8) == ""
    rita = own.served.client("rita")
    assert f'action="{path(own, 1, "describe")}"' not in rita.get(path(own, 1)).text


def test_a_file_is_attached_given_out_and_removed_with_a_reason(own: World) -> None:
    """BT-scope-17. What it is does not matter: no browser shows or runs it."""
    bert = own.served.client("bert")
    place, name = path(own, 1, "attach"), 'C:\\files\\Vertrag "\u4f8b" 100%.html'
    body = b"<script>alert(1)</script>\r\n" * 100_000
    done = bert.send_file(bert.get(path(own, 1)), place, name.replace('"', "%22"), body, {"note": SCRIPTS})
    assert done.status == 200 and "The file is attached." in done.words and SCRIPTS in done.words
    (link,) = (each for each in done.page.xpath("//a/@href") if "/attachment/" in each)
    assert "100%" in done.words
    for client in (bert, own.served.client("rita")):  # who may not describe sees it, too
        given = client.ask("GET", link)
        assert given.status == 200 and given.body == body
        assert given.headers["content-disposition"].startswith("attachment; filename=")
        assert given.headers["content-type"] == "application/octet-stream"
        assert given.headers["x-content-type-options"] == "nosniff"
        assert given.headers["content-security-policy"].startswith("sandbox")
        assert given.headers["cache-control"] == "private, no-store"
    head = bert.ask("HEAD", link)
    assert head.headers["content-length"] == str(len(body)) and head.body == b""
    assert bert.ask("GET", path(own, 1, "attachment/nothing.pdf")).status == 404
    rita = own.served.client("rita").get(path(own, 1))
    assert "Vertrag" in rita.words and not rita.page.xpath(f"//form[@action='{path(own, 1, 'detach')}']")
    # Another file of its name takes its place only where that is said; what was typed stays.
    taken = bert.send_file(done, place, name.replace('"', "%22"), b"other", {"note": "again"})
    assert taken.status == 400 and "has another file" in taken.words and taken.form(place)["note"] == ["again"]
    fresh = bert.get(path(own, 1))
    assert bert.send_file(fresh, place, name.replace('"', "%22"), b"other", {"replace": "yes"}).status == 200
    assert bert.ask("GET", link).body == b"other"
    gone = bert.submit(bert.get(path(own, 1)), path(own, 1, "detach"), {"reason": "a draft"})
    assert "The history keeps it." in gone.words and bert.ask("GET", link).status == 404
    events = [each.what for each in Catalogue(own.archive).read(own.ids[1])[0].events]
    assert events == ["attached", "replaced", "detached"]


def test_a_file_that_cannot_be_taken_changes_nothing(own: World) -> None:
    bert, place = own.served.client("bert"), path(own, 1, "attach")
    before = Catalogue(own.archive).state()
    for name, body, changes, status, told in (
        ("a.pdf", b"x" * 20_000_001, {"note": "kept"}, 400, "20 MB at most"),
        ("", b"", {}, 400, "Choose a file"),
        (".htaccess", b"x", {}, 400, "begins with a dot"),
        ("a\u202e.pdf", b"x", {}, 400, "cannot be seen"),
        ("a.pdf", b"x", {"token": "x"}, 403, "was not sent"),
    ):
        answer = bert.send_file(bert.get(path(own, 1)), place, name, body, changes)
        assert answer.status == status and told in answer.words, name
        assert answer.form(place)["note"] == [changes.get("note", "")]
    page = bert.get(path(own, 1))
    large = bert.send_file(page, place, "a.pdf", b"x" * (forms.UPLOAD_BYTES + 1))
    assert large.status == 413 and "20 MB at most" in large.text
    assert bert.send_file(page, place, "a.pdf", b"x", cut=20).status == 400
    # Nobody else sends more than the form of a page, and no other form takes a file.
    more = b"x" * (forms.BODY_BYTES + 1)
    for client in (own.served.client("rita"), Client(own.served.port)):
        assert client.send_file(page, place, "a.pdf", more).status == 403
    assert Client(own.served.port).send_file(page, place, "a.pdf", b"x").status == 403
    assert bert.send_file(page, path(own, 1, "describe"), "a.pdf", more).status == 413
    assert bert.send_file(page, path(own, 1, "describe"), "a.pdf", b"x").status == 400
    assert Catalogue(own.archive).state() == before


def test_a_form_that_comes_too_slowly_or_finds_no_space_is_refused(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bert, place = own.served.client("bert"), path(own, 1, "attach")
    page = bert.get(path(own, 1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * forms.UPLOAD_IN_MEMORY, before[1]))  # as of a disk that is full
    try:
        answer = bert.send_file(page, place, "a.pdf", b"x" * (3 * forms.UPLOAD_IN_MEMORY))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert answer.status == 507
    for name, kind in (("BODY_SECONDS", "application/x-www-form-urlencoded"),
                       ("UPLOAD_SECONDS", "multipart/form-data; boundary=x")):  # fmt: skip
        monkeypatch.setattr(forms, name, 0.2)
        assert bert.ask("POST", place, None, {"Content-Type": kind, "Content-Length": "9"}).status == 408
    assert bert.send_file(page, place, "a.pdf", b"x").status == 200


def test_who_still_sends_a_form_that_is_refused_gets_the_whole_answer(own: World) -> None:
    """A connection with bytes that nobody read would be reset under the answer."""
    rest = b"x" * 1_000_000
    head = (
        f"POST {path(own, 1, 'describe')} HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {forms.BODY_BYTES + 1 + len(rest)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", own.served.port), 60) as connection:
        connection.sendall(head.encode() + b"x" * (forms.BODY_BYTES + 1))
        received = b""
        while b"\r\n\r\n" not in received or not _is_complete(received):
            received += connection.recv(1 << 16)
        connection.sendall(rest)
        connection.shutdown(socket.SHUT_WR)
        assert not connection.recv(1 << 16), "it is closed, and not reset"
    assert received.startswith(b"HTTP/1.1 413 ")


def _is_complete(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return len(body) >= int(length.partition(b":")[2])


def test_steps_are_asked_for_and_looks_and_measures_kept(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.get(path(own, 1))
    page = anna.submit(page, path(own, 1, "measure"), {
        "measureKind": "migration", "measureDescription": SCRIPTS, "measureBytes": "12"})  # fmt: skip
    assert page.status == 200 and Catalogue(own.archive).read(own.ids[1])[0].measures
    assert anna.submit(anna.get(path(own, 1)), path(own, 1, "measure"), {"measureKind": ""}).status == 400
    assert (
        anna.submit(anna.get(path(own, 1)), path(own, 1, "measure"), {"measureKind": "x", "measureBytes": "-1"}).status
        == 400
    )
    again = anna.submit(anna.get(path(own, 1)), path(own, 1, "step"), {"step": "count", "again": "yes"})
    assert again.status == 200 and "waits for an agent" in again.words
    assert (own.archive.jobs / step_folder(own.ids[1], WorkflowStep.COUNT)).is_dir()
    assert (
        anna.submit(
            anna.get(path(own, 1)), path(own, 1, "measure"), {"measureKind": "x"}, to=path(own, 1, "step")
        ).status
        == 403
    )


# -- lists -------------------------------------------------------------------------------------------------------------


def test_all_that_passed_are_released_each_judged_alone(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.get("/snapshots?waits=yes&tick=passed")
    assert page.form("/snapshots/ticks")["t"] == ["5", "3", "2"]
    records.decide(own.archive, own.ids[2], Decision.REJECT, BERT, "meanwhile")
    done = anna.submit(page, "/snapshots/ticks", to="/snapshots/release")
    assert "Released: 2. Not released: 1." in done.words and "it is rejected" in done.words
    assert [state(own, at) for at in (1, 2, 4)] == [RecordState.RELEASED, RecordState.REJECTED, RecordState.RELEASED]


def test_ticks_are_kept_over_pages_and_changed_alike(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.get("/snapshots")
    fields = {"t": ["1", "3"]}
    led = anna.submit(page, "/snapshots/ticks", {**fields, "go": "1"}, follow=False)
    assert led.headers["location"] == "/snapshots?ticked=1%2C3"
    kept = anna.get(led.headers["location"])
    assert sorted(kept.form("/snapshots/ticks")["t"]) == ["1", "3"]
    form = anna.submit(kept, "/snapshots/ticks", to="/snapshots/several")
    done = anna.submit(form, "/snapshots/edit", {"project": SCRIPTS, "title": f"A {SCRIPTS}", "language": "de"})
    assert "Changed: 2 crawls." in done.words
    assert [text(own, at, 4) for at in (0, 1, 2)] == [SCRIPTS, "Internet", SCRIPTS]
    found = [Catalogue(own.archive).read(own.ids[at])[0] for at in (0, 1, 2)]
    assert [(record.title.text, record.language.text) == (f"A {SCRIPTS}", "de") for record in found] == [
        True,
        False,
        True,
    ]
    assert anna.submit(anna.get("/snapshots"), "/snapshots/ticks", to="/snapshots/release").status == 400


@pytest.mark.parametrize(
    "query",
    [
        "state=counted", "q=example+2026", "year=2026", "publication=p&complete=yes", "order=oldest", "q=%00%ff",
        "page=9999", "page=-1", "year=9999", "ticked=1-999999999", "state=%27", "tick=x",
    ],
)  # fmt: skip
def test_filters_are_in_the_url_and_broken_ones_harm_nothing(world: World, query: str) -> None:
    page = world.served.client("rita").get(f"/snapshots?{query}")
    assert page.status == 200
    table = world.served.client("rita").get(f"/snapshots.csv?{query}")
    assert table.status == 200 and table.text.startswith("number,snapshot")


def test_ticks_are_written_short_and_bounded() -> None:
    assert forms.written([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
    assert forms.read("1-3,7,9-10") == {1, 2, 3, 7, 9, 10}
    assert len(forms.read("1-99999999")) == forms.AT_ONCE
    assert forms.read("x,-1,1-,--,\u0661,3") == {3}


# -- access, options, publications, jobs -------------------------------------------------------------------------------


def test_nothing_is_withheld_while_the_reasons_cannot_be_read(own: World) -> None:
    """S-withhold-3. What was typed is kept."""
    withholding.withhold(own.archive, [f"http://{DOMAIN}/b.html"], BERT, reason="a complaint")
    own.archive.access_reasons.write_text("{")
    rules = own.archive.access_rules.read_bytes()
    anna = own.served.client("anna")
    page = anna.get("/access")
    assert page.status == 200 and "The reasons cannot be read." in page.words
    refused = anna.submit(page, "/access/withhold", {"url": f"http://{DOMAIN}/", "reason": "another one"})
    assert refused.status >= 400 and refused.form("/access/withhold")["reason"] == ["another one"]
    assert (own.archive.access_rules.read_bytes(), own.archive.access_reasons.read_text()) == (rules, "{")


def test_a_page_is_withheld_and_given_back(own: World) -> None:
    anna = own.served.client("anna")
    url = f"http://{DOMAIN}/b.html"
    page = anna.get(f"/access?url={quote(url, safe='')}")
    assert page.form("/access/withhold")["url"] == [url]
    without = anna.submit(page, "/access/withhold", {"reason": ""})
    assert without.status == 400 and without.form("/access/withhold")["url"] == [url]
    wrong = anna.submit(without, "/access/withhold", {"reason": SCRIPTS, "captured_from": "yesterday"})
    assert wrong.status == 400 and wrong.form("/access/withhold")["reason"] == [SCRIPTS]
    assert wrong.form("/access/withhold")["captured_from"] == ["yesterday"], "what no picker can show stays, too"
    said = {"captured_from": "1.1.2026", "captured_to": "2026-12-31"}
    said |= {"url": f"{url}\nhttp://{DOMAIN}/old/*", "public_text": "by law"}
    done = anna.submit(wrong, "/access/withhold", said)
    assert done.status == 200 and SCRIPTS in done.words and "by law" in done.words
    assert {rule.public_text for rule in access_rules.load(own.archive).rules} == {"by law"}
    assert "captured 1 Jan 2026 – 31 Dec 2026" in done.words
    rule = access_rules.load(own.archive).rules[0]
    assert (rule.after, rule.before) == (parse_time("2026-01-01T00:00:00"), parse_time("2027-01-01T00:00:00"))
    (lift,) = done.page.xpath("//th[normalize-space()='Lift']")
    assert lift.get("class") != "unseen", "a cell that is cut out of its row moves the columns"
    rules = access_rules.load(own.archive).rules
    assert {each.url for each in rules} == {url, f"http://{DOMAIN}/old/*"} and rules[0].by == "Anna \u4f8b"
    lifted_id = done.form("/access/lift")["rule"][0]
    lifted_urls = [rule.url for rule in rules if rule.id == lifted_id]
    done = anna.submit(done, "/access/lift")
    assert len(access_rules.load(own.archive).rules) == 1
    assert all(f"Readers may see it again: {url}" in done.words for url in lifted_urls), "the page is named"
    own.archive.access_rules.write_text("broken\n")
    assert "have a fault" in anna.get("/access").words


def test_what_was_lifted_stays_on_record_at_the_desk(own: World) -> None:
    """S-withhold-5. The newest first, as is what is withheld; in German, too; readers have none of it."""
    anna = own.served.client("anna")
    urls = [f"http://{DOMAIN}/{name}.html" for name in ("z", "b", "a")]
    for number, url in enumerate(urls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(access_rules, "now", partial(parse_time, f"2026-01-0{number + 1}T00:00:00"))
            access_rules.withhold(own.archive, url, "Carl", f"complaint {number}", role="archivist")
    page = anna.get("/access")
    shown = [row.text for row in page.page.xpath("//section//tbody/tr/th/bdi")]
    assert shown == urls[::-1], "the newest first"
    assert "complaint 1" not in anna.get("/access?lifted=yes").page.xpath("string(//section[@id='lifted'])")
    rules = {rule.url: rule.id for rule in access_rules.load(own.archive).rules}
    for url in urls[:2]:
        access_rules.lift(own.archive, rules[url], "Anna")
    (way,) = anna.get("/access").page.xpath("//section[@id='lifted']//a/@href")
    lines = anna.get(way.partition("#")[0]).page.xpath("//section[@id='lifted']//tbody/tr")
    texts = [" ".join(line.text_content().split()) for line in lines]
    assert [url for text in texts for url in urls if url in text] == [urls[1], urls[0]], "the last first"
    assert "complaint 1Carl as archivist 2 Jan 2026" in texts[0] and " Anna " in texts[0]
    german = own.served.client("anna")
    german.headers["Accept-Language"] = "de"
    assert "Was gesperrt war und aufgehoben ist" in german.get("/access?lifted=yes").words


def test_the_page_of_a_crawl_has_the_command_that_hands_it_over(own: World) -> None:
    words = own.served.client("anna").get(path(own, 1)).words
    assert f"--record {own.ids[1]} --with-records --format wacz {own.ids[1]}.wacz" in words


def test_rules_are_shown_where_their_reasons_cannot_be_read(own: World) -> None:
    anna = own.served.client("anna")
    url = f"http://{DOMAIN}/b.html"
    anna.submit(anna.get("/access"), "/access/withhold", {"url": url, "reason": "court order 12"})
    missing = f"/missing?url={quote(url, safe='')}"
    for page in (anna.get("/access"), anna.get(missing)):
        assert "court order 12" in page.words and "cannot be read" not in page.words
    own.archive.access_reasons.write_text("broken\n")
    page = anna.get("/access")
    assert page.status == 200 and url in page.words and "The reasons cannot be read" in page.words
    assert "court order 12" not in page.words and page.form("/access/lift")["rule"]
    assert "It is withheld from readers." in anna.get(missing).words


def test_options_are_saved_beside_the_comments_and_faults_keep_what_was_typed(own: World) -> None:
    adam = own.served.client("adam")
    before = own.archive.settings.read_text()
    page = adam.get("/options")
    wrong = adam.submit(page, "/options", {"crawl.depth": "deep", "crawl.wait": "2.5"})
    assert wrong.status == 400 and own.archive.settings.read_text() == before
    assert wrong.form("/options")["crawl.depth"] == ["deep"]
    assert wrong.page.xpath('//span[@id="f-crawl-depth-fault"]')
    done = adam.submit(
        wrong, "/options", {"crawl.depth": "4", "describe.institution": SCRIPTS, "closed_for": "30 years"}
    )
    after = own.archive.settings.read_text()
    assert done.status == 200
    assert "# people write comments here" in after and "depth = 4 # not more" in after and "wait = 2.5" in after
    assert own.served.desk.settings().describe.institution == SCRIPTS
    late = adam.get("/options")
    own.archive.settings.write_text(after + "# by hand\n")
    assert adam.submit(late, "/options", {"crawl.depth": "5"}).status == 409
    assert 'name="crawl.depth"' not in own.served.client("anna").get("/options").text, "shown, not changed"
    own.archive.settings.write_text("broken = [")
    assert "have faults" in adam.get("/options").words and adam.get("/").status == 200


def test_comments_in_publications_d_are_kept_byte_for_byte(own: World) -> None:
    folder = own.archive.settings.with_name("publications.d")
    folder.mkdir()
    written = (
        "# \u4f8b kept by hand\n\n[[publication]]\nname = 'q'   # the name\n"
        "urls = [\n  'http://www.example.test/', # start\n]\ndepth = 2 # two\n\n"
        "# why this is out\n[[publication.exclude]]\nmatch = 'dip.example.test'\nreason = 'own system'\n"
    )
    (folder / "q.toml").write_text(written)
    carl = own.served.client("carl")
    page = carl.get("/publications/q")
    assert carl.submit(page, "/publications/q").status == 200
    assert (folder / "q.toml").read_text() == written, "nothing was different"
    page = carl.get("/publications/q")
    done = carl.submit(page, "/publications/q", {"interval": "1 week"})
    assert done.status == 200
    assert (folder / "q.toml").read_text() == written.replace(
        "depth = 2 # two\n", 'depth = 2 # two\ninterval = "1 week"\n'
    )
    late, other = carl.get("/publications/q"), carl.get("/publications/q")
    assert carl.submit(late, "/publications/q", {"depth": "3"}).status == 200
    conflict = carl.submit(other, "/publications/q", {"depth": "4"})
    assert conflict.status == 409 and "It is now: 3" in conflict.words
    assert conflict.form("/publications/q")["depth"] == ["4"]
    retired = carl.submit(carl.get("/publications/q"), "/publications/q/retire", {"reason": SCRIPTS})
    assert retired.status == 200 and "retired = true" in (folder / "q.toml").read_text()
    since = languages.moment(now(), "en").rpartition(":")[0]
    assert f"Retired since {since}" in retired.words and SCRIPTS in retired.words
    back = carl.submit(retired, "/publications/q/retire")
    assert back.status == 200 and "Retired" not in back.words and "retired" not in (folder / "q.toml").read_text()
    kept = carl.get("/publications/p")
    assert 'action="/publications/p"' not in kept.text and "kept in webarc.toml" in kept.words
    (folder / "q.toml").write_text("broken = [")
    until(lambda: "fault" in carl.get("/publications").words, "the desk has looked at publications.d")
    assert carl.get("/publications/q").status in (400, 503)


def test_a_new_excluded_part_says_what_it_matches_and_that_it_has_no_reason(own: World) -> None:
    folder = own.archive.settings.with_name("publications.d")
    folder.mkdir()
    (folder / "q.toml").write_text(f"[[publication]]\nname = 'q'\nurls = ['http://{DOMAIN}/']\n")
    carl = own.served.client("carl")
    until(lambda: carl.get("/publications/q").status == 200, "the desk has looked")
    typed = {"exclude": f"{DOMAIN}/contact*\n{DOMAIN}/b* # elsewhere"}
    page = carl.submit(carl.get("/publications/q"), "/publications/q", typed)
    assert f"{DOMAIN}/contact* has no reason" in page.words and "the newest crawl knew" not in page.words
    report = own.archive.reports / f"{compact_time(when(0))}-q"
    report.mkdir()
    tail = "text/html #000 20261001030000000+5 sha1:A - -"
    lines = [f"2026-10-01T03:00:00.000Z 200 1 http://{DOMAIN}/{name} L - {tail}" for name in ("a", "b", "b2")]
    crawl_log.write(report, lines)
    typed = {"exclude": f"{DOMAIN}/contact* # own system\n{DOMAIN}/b* # elsewhere"}
    page = carl.submit(carl.get("/publications/q"), "/publications/q", typed)
    assert f"{DOMAIN}/contact*: of 3 addresses that the newest crawl knew, 0 match." in page.words
    assert "no reason" not in page.words and f"{DOMAIN}/b*:" not in page.words, "that one is as before"


def test_an_excluded_path_is_of_the_host_that_all_start_addresses_have(own: World) -> None:
    """Of several hosts each is proposed, and nothing is saved."""
    carl = own.served.client("carl")
    typed = {"urls": "one.test:8181/\nhttp://One.test:8181/news", "name": "q", "exclude": "/archive/* # kept elsewhere"}
    page = carl.submit(carl.get("/publications/+new"), "/publications/+new", typed)
    assert page.status == 200 and "one.test:8181/archive/* # kept elsewhere" in page.text
    (held,) = (known for known in own.served.desk.settings().publications if known.name == "q")
    assert [(part.match, part.reason) for part in held.exclude] == [("one.test:8181/archive/*", "kept elsewhere")]
    typed = {"urls": "one.test:8181/\ntwo.test", "exclude": "/b/* # why\ntwo.test/c"}
    page = carl.submit(page, "/publications/q", typed)
    assert page.status == 400 and "one.test:8181/b/*, two.test/b/*" in page.words
    assert page.form("/publications/q")["exclude"] == ["/b/* # why\ntwo.test/c"]


def test_a_publication_says_that_another_one_shows_its_host_by_another_rule(own: World) -> None:
    """Saved or only tried, on Today with a link; a retired one does not count."""
    folder = own.archive.settings.with_name("publications.d")
    folder.mkdir()
    carl = own.served.client("carl")
    told = f"Other publications of {DOMAIN} differ in release or embargo. Readers see a page"
    typed = {"urls": f"http://{DOMAIN}/b.html", "name": "q", "release": "automatic", "closed_for": "1 year"}
    trial = carl.submit(carl.get("/publications/+new"), "/publications/+new", typed, to="/publications/+try")
    tried = until(lambda: found if "being tried" not in (found := carl.get(trial.path)).words else None)
    assert told in tried.words and tried.page.xpath('//a[@href="/publications/p"]')
    assert not list(folder.iterdir()), "it was only tried"
    saved = carl.submit(carl.get("/publications/+new"), "/publications/+new", typed)
    assert "The publication was saved" in saved.words and told in saved.words
    assert saved.page.xpath('//a[@href="/publications/p"]')
    assert "q: as soon as it is published; embargo of 1 year" in carl.get("/publications/p").words
    today = carl.get("/")
    assert f"differ in release or embargo: {DOMAIN} (p, q)" in today.words
    assert today.page.xpath('//ul[@class="attention"]//a[@href="/publications/p"]')
    carl.submit(carl.get("/publications/q"), "/publications/q/retire")
    for path_ in ("/", "/publications/p", "/publications/q"):
        assert "differ in release" not in carl.get(path_).words


def test_a_running_job_names_its_servers_and_counts_its_addresses_once(own: World) -> None:
    """What wget has fetched and handed over to nobody yet is among the fetched ones, here and in `job show`."""
    hosts = (f"{DOMAIN}:8184", DOMAIN, "other.example.test")
    urls = [f"http://{host}/{number}" for host in hosts for number in range(3)]
    folder = own.archive.jobs / f"{compact_time(now())}-p"
    folder.mkdir()
    publication = own.served.desk.settings().publications[0]
    with job_folder.opened(folder) as frontier, frontier.changes():
        Discovery(frontier, dataclasses.replace(publication, urls=tuple(urls))).seeds(urls)
    states = {"done": 2, "fetching": 6, "waiting": 1, "refused": 4}
    of_stage: dict[str, Any] = {"stage": "capture", "done": 7, "known": 9, "urls": states, "documents": 2}
    state = JobState(job=folder.name, publication="p", state=Phase.COLLECTING, **of_stage)
    job_folder.save_item(folder, state)
    anna = own.served.client("anna")
    page = anna.get("/running")
    assert "7 of 9 (77 %)" in page.words
    told = "Addresses: fetched: 7 (not read yet: 5) · being requested: 1 · waiting: 1 · left out: 4"
    assert told in page.words
    assert "Servers of this job (3)" in page.words and f"{DOMAIN}:8184: 3 wait" in page.words
    assert page.page.xpath('//section/h2/a[@href="/publications/p"]')
    (href,) = page.page.xpath(f'//a[bdi="{DOMAIN}:8184"]/@href')
    (folder / "crawl.log").write_text("")
    assert anna.get(href).status == 200
    shown = CliRunner().invoke(cli, ["job", "show", "p", "--archive", str(own.archive.root)]).output
    assert "URLs fetched         7, 5 of them not read yet\n" in shown and "URLs left out        4\n" in shown
    done = anna.submit(page, f"/job/{folder.name}/order", {"word": "exclude", "exclude": DOMAIN})
    assert f"It means: {DOMAIN}, {DOMAIN}:8184." in done.words, "a name without a port is of any port"
    nobody = anna.submit(done, f"/job/{folder.name}/order", {"word": "wait", "wait": "d.test", "seconds": "1"})
    assert "The job asks no server of this name now." in nobody.words
    job_folder.save_item(folder, dataclasses.replace(state, held="paused"))
    until(lambda: "paused" in anna.get("/running").words, "the desk has looked again")


def test_an_order_about_the_time_of_a_job_says_its_end_and_the_former_one(own: World) -> None:
    """The former one may be of an order that nobody has taken yet."""
    folder = own.archive.jobs / "20261010T030000-p"
    folder.mkdir()
    begun = now().replace(microsecond=0)
    at_first = begun + timedelta(days=14)
    job_folder.save_item(
        folder,
        JobState(job=folder.name, publication="p", state=Phase.COLLECTING, latest_end=format_time(at_first)),
    )
    anna, action = own.served.client("anna"), f"/job/{folder.name}/order"
    earlier, later = begun + timedelta(hours=2), begun + timedelta(days=30)
    told = {time: languages.moment(time, "en") for time in (at_first, earlier, later)}
    for time, sentence in (
        (earlier, f"It may fetch until {told[earlier]}. That is earlier than before: {told[at_first]}."),
        (later, f"It may fetch until {told[later]}. Before, it was {told[earlier]}."),
        (later, f"It may fetch until {told[later]}."),
    ):
        done = anna.submit(anna.get("/running"), action, {"word": "deadline", "deadline": format_time(time)})
        assert done.status == 200 and sentence in done.words
    assert "Before" not in done.words and "than before" not in done.words
    other = own.archive.jobs / "20261011T030000-p"
    other.mkdir()
    job_folder.save_item(other, JobState(job=other.name, publication="p", state=Phase.COLLECTING))
    german = own.served.client("anna")
    german.headers["Accept-Language"] = "de"
    done = german.submit(
        german.get("/running"), f"/job/{other.name}/order", {"word": "deadline", "deadline": "2 Stunden"}
    )
    assert "Er darf bis " in done.words and "bisher" not in done.words


def test_orders_are_durable_and_late_ones_do_nothing(own: World) -> None:
    folder = own.archive.jobs / "20261010T030000-p"
    folder.mkdir()
    job_folder.save_item(folder, JobState(job=folder.name, publication="p", state=Phase.COLLECTING, documents=12))
    anna = own.served.client("anna")
    page, other = anna.get("/running"), anna.get("/running")
    action = f"/job/{folder.name}/order"
    done = anna.submit(page, action, {"word": "pause", "reason": f" until\r\nthe {SCRIPTS}"})
    assert done.status == 200 and "Nobody runs the job" in done.words
    (given,) = job_orders.after(folder, 0)
    assert (given.word, given.by, given.reason) == ("pause", "Anna \u4f8b", f"until the {SCRIPTS}")
    assert orders_of(anna.get("/running")) == [["Pause not taken yet", "Anna \u4f8b", f"until the {SCRIPTS}"]]
    assert anna.submit(other, action, {"word": "stop"}).status == 409
    assert anna.submit(anna.get("/running"), action, {"word": "discard"}).status == 400
    wrong = anna.submit(anna.get("/running"), action, {"word": "deadline", "deadline": "yesterday", "reason": "late"})
    assert wrong.status == 400
    assert (wrong.form(action)["deadline"], wrong.form(action)["reason"]) == (["yesterday"], ["late"])
    long = {"word": "stop", "reason": "x" * 501}
    assert "500 characters at most" in anna.submit(anna.get("/running"), action, long).words
    assert anna.submit(anna.get("/running"), action, {"word": "exclude", "exclude": "cal.example.test"}).status == 200
    assert len(job_orders.after(folder, 0)) == 2
    page = anna.get("/running")
    jobstate_file = folder / job_folder.ITEM_FILE
    jobstate_file.unlink()
    for each in (folder / "orders").iterdir():
        each.unlink()
    (folder / "orders").rmdir()
    folder.rmdir()
    assert anna.submit(page, action, {"word": "stop"}).status == 404, "the job ended while its page was open"


def test_what_a_job_was_told_stands_with_its_snapshot(own: World) -> None:
    folder = own.archive.reports / own.ids[1]
    folder.mkdir(exist_ok=True)
    told = [
        {"order": "deadline", "value": "2026-12-01T22:00:00", "by": "Anna", "at": "2026-10-02T04:00:00"},
        {"order": "stop", "value": "", "by": "Bert", "at": "2026-10-02T05:00:00", "reason": f"enough {SCRIPTS}"},
        "no order",
    ]
    files.write_json(folder / "summary.json", {"orders": told})
    client = own.served.client("carl")
    for place in (path(own, 1), f"/report/{own.ids[1]}"):
        assert orders_of(client.get(place)) == [
            ["May fetch until: 1 Dec 2026, 22:00 CET", "Anna", ""],
            ["Stop and publish", "Bert", f"enough {SCRIPTS}"],
        ]
    files.write_json(folder / "summary.json", {"orders": 3})
    assert orders_of(client.get(path(own, 1))) == []


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", ["2 Oct 2026, 04:00 CET", "2 Oct 2026, 05:30 CET", "no", "33.4 MB", "33,714", "7"]),
        ("de", ["2. Okt. 2026, 04:00 Uhr MEZ", "2. Okt. 2026, 05:30 Uhr MEZ", "nein", "33,4 MB", "33.714", "7"]),
    ],
)
def test_a_report_has_times_sizes_and_numbers_as_its_page_writes_them(
    own: World, language: str, told: list[str]
) -> None:
    folder = own.archive.reports / own.ids[1]
    folder.mkdir(exist_ok=True)
    summary = {"started": "2026-10-02T04:00:00", "finished": "2026-10-02T05:30:00", "complete": False,
               "bytes": 33_400_000, "arcs": {"added": 33_714, "changed": 7}}  # fmt: skip
    files.write_json(folder / "summary.json", summary)
    client = own.served.client("carl")
    client.headers["Accept-Language"] = language
    page = client.get(f"/report/{own.ids[1]}")
    assert [value.text_content() for value in page.page.xpath('//dl[@class="card"]//dd')] == told
    assert "2026-10-02T" not in page.words and "33400000" not in page.words


def test_pages_of_an_archive_without_rights_show_values_in_the_language_of_the_page(own: World) -> None:
    client = own.served.client("rita")
    client.headers["Accept-Language"] = "de"
    for place in ("/options", "/publications/p"):
        words = client.get(place).words
        for value in ("wenn ihn jemand freigibt", "2 Stunden", "1.000", "nein", "0,5"):
            assert value in words, (place, value)
        assert "by-hand" not in words and "hours" not in words and " no " not in words, place


def test_numbers_of_fields_stand_in_their_helps_alone(own: World) -> None:
    page = own.served.client("carl").get(path(own, 1))
    assert not page.page.xpath('//*[@class="nr"]')
    (help_text,) = page.page.xpath('//*[@id="f-signature-help"]')
    assert "field 2)" in help_text.text_content()


def test_a_capture_is_begun_on_an_occasion(own: World) -> None:
    anna = own.served.client("anna")
    page = anna.get("/new?publication=p")
    assert anna.submit(page, "/new", {"publication": "nothing", "reason": "x"}).status == 400
    done = anna.submit(anna.get("/new"), "/new", {"publication": "p", "reason": f"election {SCRIPTS}", "remarks": "r"})
    assert done.status == 200 and SCRIPTS in done.words
    (made,) = (each for each in Catalogue(own.archive).records() if each.state is RecordState.OPEN)
    assert made.text(5) == f"election {SCRIPTS}" and made.text(6) == "r"
    assert (own.archive.jobs / step_folder(made.id, WorkflowStep.CAPTURE)).is_dir()
    for each in (own.archive.jobs / step_folder(made.id, WorkflowStep.CAPTURE)).iterdir():
        each.unlink()
    (own.archive.jobs / step_folder(made.id, WorkflowStep.CAPTURE)).rmdir()
    place = f"/snapshot/{quote(made.id, safe='')}"
    cancelled = anna.submit(anna.get(place), f"{place}/cancel", {"reason": "not now"})
    assert cancelled.status == 200 and "cancelled" in cancelled.words


# -- preview -----------------------------------------------------------------------------------------------------------


def test_a_preview_shows_what_is_unreleased_to_one_person_and_one_record(own: World) -> None:
    anna = own.served.client("anna")
    frame = anna.get(path(own, 4, "preview"))
    assert frame.status == 200 and "NOT RELEASED" in frame.words and frame.path.startswith("/s/")
    source = frame.page.xpath("//iframe/@src")[0]
    nobody = Client(own.served.port)
    part = nobody.ask("GET", source)
    assert part.status == 200 and b"Hello 4" in part.body and part.headers["cache-control"] == "private, no-store"
    assert (
        "sandbox" in part.headers["content-security-policy"]
        and "script-src 'none'" in part.headers["content-security-policy"]
    )
    assert nobody.ask("GET", frame.path).status == 403, "the frame is for the person of the session"
    assert own.served.client("bert").get(frame.path).status == 404, "and for no other"
    token = source.split("/")[2]
    for forged in (token[:-1], token + "x", token.replace(".", "", 1), "x"):
        assert nobody.ask("GET", source.replace(token, forged)).status in (403, 404)
    hidden = anna.get(frame.path.replace("20261005", "20261003"))
    assert "Hello 2" not in hidden.text, "another unreleased snapshot is not shown in it"
    link = next(each for each in part.text.split('"') if each.endswith("/b.html"))
    assert "NOT RELEASED" in anna.get(link).words
    away = next(each for each in part.text.split('"') if "/notice/external" in each)
    assert "leads out of the crawl" in anna.get(away.replace("&amp;", "&")).words
    anna.submit(anna.get("/"), "/logout")
    assert nobody.ask("GET", source).status in (403, 404), "it ends with its session"


def test_a_preview_says_what_is_left_out_and_what_is_under_embargo(own: World) -> None:
    settings = {"publication": {"name": "p", "exclude": [{"match": f"{DOMAIN}/mirror/*", "reason": "appraised"}]}}
    Catalogue(own.archive).save([], "test", "settings", files={"publications/p.json": json.dumps(settings).encode()})
    closed = "http://closed.test/"
    published(own.archive, "closed.test", {closed: Page(b"<p>c")}, when(1), publication="r", closed_for="100 years")
    recover(own.archive)
    anna = own.served.client("anna")
    prefix = anna.get(path(own, 4, "preview")).path.partition("/http")[0]
    left_out = anna.get(f"{prefix}/http://{DOMAIN}/mirror/x")
    assert left_out.status == 404 and "This part was left out" in left_out.words and "appraised" in left_out.words
    embargoed = anna.get(f"{prefix}/{closed}")
    assert embargoed.status == 403 and "under embargo" in embargoed.words and "2126" in embargoed.words


@pytest.mark.parametrize("by", ["oneself", "administrator", "hand", "removed"])
def test_a_preview_ends_with_the_password_of_its_session(own: World, by: str) -> None:
    anna, nobody = own.served.client("anna"), Client(own.served.port)
    old = Client(own.served.port, dict(anna.cookies))
    frame = anna.get(path(own, 4, "preview"))
    source = frame.page.xpath("//iframe/@src")[0]
    assert nobody.ask("GET", source).status == 200
    if by == "oneself":
        said = {"before": PASSWORD, "password": "another one " * 2, "again": "another one " * 2}
        assert "was changed" in anna.submit(anna.get("/password"), "/password", said).words
        assert anna.get("/").status == 200 and old.get("/").status == 403, "the cookie of before opens nothing"
        assert anna.get(frame.path).status == 404
    elif by == "administrator":
        adam = own.served.client("adam")
        saved = adam.submit(adam.get("/people?key=anna"), "/people/save", {"password": "another one " * 2})
        assert saved.status == 200
    elif by == "hand":
        people.set_password(own.archive, "anna", login.hashed("another one " * 2), Acting("adam", None))
    else:
        people.remove(own.archive, "anna", Acting("adam", None))
    assert nobody.ask("GET", source).status in (403, 404)


def sent(body: bytes, kind: str = "application/x-www-form-urlencoded; charset=utf-8", size: int = 7) -> SentForm:
    """The form of a body that comes in pieces."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", kind.encode("latin-1"))]}
    return asyncio.run(app.read_form(Request(scope, receive), forms.BODY_BYTES, takes_file=True))


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"a=%FF%E4x&b", {"a": "\ufffd\ufffdx", "b": ""}),
        (b"&&a=+%2B&=x&a%3D=%26", {"a": " +", "": "x", "a=": "&"}),
        (b"a=1;b=2", {"a": "1;b=2"}),
        (b"", {}),
    ],
)
def test_odd_forms_are_read_as_browsers_mean_them(body: bytes, fields: dict[str, str]) -> None:
    form = sent(body)
    assert {name: form.raw(name) for name in form.fields} == fields and form.file is None


_PART = b'--x\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
_FILE = _PART % (b"file", b'; filename="a.pdf"', b"x")


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        (b"--x--", "multipart/form-data", UsageError),  # it has no boundary
        (b"--x--", f"multipart/form-data; boundary={'x' * 300}", UsageError),
        (b"--x--", "multipart/form-data; boundary=x; charset=idna", UsageError),
        (_FILE, "multipart/form-data; boundary=x", UsageError),  # it does not end
        (b"no boundary", "multipart/form-data; boundary=x", UsageError),
        (_FILE + _FILE + b"--x--", "multipart/form-data; boundary=x", UsageError),
        (_PART % (b"a", b"", b"b") * 20 + b"--x--", "multipart/form-data; boundary=x", UsageError),
        (
            _PART.replace(b"name=", b"nome=") % (b"a", b"", b"b") + b"--x--",
            "multipart/form-data; boundary=x",
            UsageError,
        ),
        (_PART % (b"a", b"", b"b" * 140_000) * 2 + b"--x--", "multipart/form-data; boundary=x", TooMany),
        (b"a" * 300_000, "application/x-www-form-urlencoded", TooMany),
        (b"&".join([b"a=1"] * 2_001), "application/x-www-form-urlencoded", UsageError),
        (b"{}", "application/json", UsageError),
        (b"a=b", "", UsageError),
    ],
)
def test_what_is_no_form_of_ours_is_refused_without_a_line_in_the_log(
    body: bytes, kind: str, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(error):
        sent(body, kind, 9_000)
    assert caplog.records == []


@pytest.mark.parametrize("length", ["9" * 5_000, "0" * 5_000 + "9" * 25])
def test_a_length_of_thousands_of_digits_is_too_large(length: str) -> None:
    async def receive() -> Message:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", length.encode())]}
    with pytest.raises(TooMany):
        asyncio.run(app.read_form(Request(scope, receive), forms.BODY_BYTES))


def test_a_form_with_a_file_is_read_however_its_pieces_come() -> None:
    body = _PART % (b"note", b"", b"x\r\n\xe4\xbe\x8b") + _PART % (
        b"file", b'; filename="C:\\d\\%22\xc3\xbc%22.html"', b"--x \r\n-" * 9
    ) + b"--x--\r\nwhat follows"  # fmt: skip
    for size in (1, 2, 5, len(body)):
        form = sent(body, "Multipart/Form-Data; boundary=x", size)
        assert form.raw("note") == "x\n\u4f8b" and form.file is not None
        assert form.file.name == '"\xfc".html' and form.file.body.read() == b"--x \r\n-" * 9
        form.file.body.close()
    nobody_chose = sent(_PART % (b"file", b'; filename=""', b"") + b"--x--", "multipart/form-data; boundary=x")
    assert nobody_chose.file is None and not nobody_chose.fields


def test_a_file_that_came_in_part_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    real = formparsers.SpooledTemporaryFile
    monkeypatch.setattr(formparsers, "SpooledTemporaryFile", lambda **more: opened.append(real(**more)) or opened[-1])
    with pytest.raises(UsageError):
        sent(_FILE[:-2], "multipart/form-data; boundary=x", 9)
    assert [file.closed for file in opened] == [True]


def test_forms_keep_their_texts_and_lose_what_no_file_can_hold() -> None:
    form = sent(("a=%00x%0D%0Ay%E4%BE%8B&a=" + quote("\ud7ff\x0b\ufffe z")).encode())
    assert form.all("a") == ("x\ny\u4f8b", "\ud7ff z")
    assert form.typed() == [("a", "x\ny\u4f8b"), ("a", "\ud7ff z")]
    assert forms.of_pairs([("password", "x"), ("token", "y"), ("b", "c")]).typed() == [("b", "c")]


def test_any_snapshot_can_be_chosen_to_compare_with(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = world.served.client("carl")
    pair = f"/compare/{world.ids[0]}..{world.ids[4]}"
    assert 'name="year"' not in client.get(pair).text, "one page has them all"
    monkeypatch.setattr(forms, "ROWS", 2)

    def offered(page: Answer) -> list[str]:
        found = page.page.xpath('//nav[@aria-labelledby="others"]//li/a/@href')
        return [each.removeprefix("/compare/").partition("..")[0] for each in found]

    seen, at = [], pair
    while at:
        page = client.get(at)
        seen += offered(page)
        at = next((each.partition("#")[0] for each in page.page.xpath('//nav//a[@rel="next"]/@href')), "")
    assert seen == [world.ids[3], world.ids[2], world.ids[1]], "each but the two that are compared"
    assert offered(client.get(f"{pair}?others=99999999&year=x")) == offered(client.get(pair))
    assert offered(client.get(f"{pair}?others=3")) == offered(client.get(f"{pair}?others=99"))
    assert "None fits." in client.get(f"{pair}?year=1999").words
    assert offered(client.get(f"{pair}?year=2026&others=2")) == [world.ids[2], world.ids[1]]


def test_crawls_of_one_server_by_any_publication_can_be_compared_and_have_numbers(own: World) -> None:
    """Two of one minute differ by their numbers alone."""
    pages = {f"http://{DOMAIN}/other.html": Page(b"<p>other")}
    published(own.archive, DOMAIN, pages, when(1) + timedelta(seconds=5), publication="q")
    published(own.archive, "elsewhere.test", {"http://elsewhere.test/": Page(b"<p>e")}, when(1), publication="e")
    recover(own.archive)
    rows = {record.publication: record for record in Catalogue(own.archive).records()}
    client = own.served.client("carl")
    page = client.get(f"/compare?{urlencode({'to': own.ids[1]})}")
    assert page.path == f"/compare/{own.ids[0]}..{own.ids[1]}", "with the one before"
    choices = {link.get("href"): link.text for link in page.page.xpath('//nav[@aria-labelledby="others"]//li/a')}
    of_q = quote(rows["q"].id, safe="")
    assert set(choices) == {f"/compare/{own.ids[1]}..{other}?of=first" for other in (of_q, *own.ids[2:])}, (
        "the earlier one first"
    )
    text = choices[f"/compare/{own.ids[1]}..{of_q}?of=first"]
    assert text.startswith(f"no. {rows['q'].number}, ") and text.endswith(", q")
    following = client.get(f"/compare/{own.ids[1]}..{of_q}?of=first")
    assert f"/compare/{own.ids[0]}..{own.ids[1]}" in following.text, "the one that was compared stays"
    done = client.get(f"/compare/{own.ids[1]}..{quote(rows['q'].id, safe='')}")
    lead = " ".join(done.page.xpath('//p[@class="lead"]')[0].text_content().split())
    number = Catalogue(own.archive).read(own.ids[1])[0].number
    assert f"CET, no. {number} → " in lead and lead.endswith(f"CET, no. {rows['q'].number}")
    assert "The figures count what each crawl has itself." in done.words


def test_documents_that_differ_lead_to_the_previews_of_both_crawls(own: World) -> None:
    """A changed one to both, an added one to the newer crawl, a removed one to the earlier."""
    start = "http://differing.test/"
    gone, new = f"{start}gone.html", f"{start}new.html"
    contents: list[dict[str, Page | None]] = [
        {start: Page(b"<p>one"), gone: Page(b"<p>old")},
        {start: Page(b"<p>two"), gone: None, new: Page(b"<p>new")},
    ]
    for minute, pages in enumerate(contents):
        published(own.archive, "differing.test", pages, when(1) + timedelta(minutes=minute), publication="d")
    recover(own.archive)
    first, second = sorted(record.id for record in Catalogue(own.archive).records() if record.publication == "d")
    client = own.served.client("carl")
    rows = client.get(f"/compare/{first}..{second}").page.xpath('//ul[@class="changes"]/li')
    shown = {
        row.xpath("span")[0].text: [(link.text.strip(), link.get("href")) for link in row.xpath("a")] for row in rows
    }

    def preview(record: str, url: str) -> str:
        return f"/snapshot/{quote(record, safe='')}/preview?{urlencode({'url': url})}"

    assert shown == {
        "changed": [(start, preview(second, start)), ("before", preview(first, start))],
        "added": [(new, preview(second, new))],
        "removed": [(gone, preview(first, gone))],
    }
    for _, href in itertools.chain(*shown.values()):
        assert client.get(href).status == 200
    client.headers["Accept-Language"] = "de"
    assert client.get(f"/compare/{first}..{second}").page.xpath(
        '//ul[@class="changes"]/li/a[starts-with(., "vorher ")]'
    )


def test_a_job_leads_to_the_record_that_was_entered_before_it(own: World) -> None:
    """The record has a name of its own then; it comes a moment after the report."""
    catalogue = Catalogue(own.archive)
    job = f"{compact_time(when(1) + timedelta(seconds=1))}-p"
    folder = own.archive.reports / job
    folder.mkdir()
    files.write_json(folder / "summary.json", {"job": job, "complete": True})
    client = own.served.client("carl")
    row = '//section//tr[.//a[@href="{0}"]]|//tr[.//a[@href="{0}"]]'.format(f"/report/{job}")
    (shown,) = client.get("/running").page.xpath(row)
    assert not shown.xpath(f'.//a[@href="{path(own, 1)}"]')
    catalogue.change(own.ids[1], lambda record: replace(record, job=job), "Anna", lambda _: "entered before")
    (shown,) = client.get("/running").page.xpath(row)
    (link,) = shown.xpath(f'.//a[@href="{path(own, 1)}"]')
    assert link.text_content() == f"Crawl no. {catalogue.read(own.ids[1])[0].number}"
    assert client.get(f"/report/{job}").page.xpath(f'//a[@href="{path(own, 1)}"]')


def test_a_retired_publication_does_not_come_next(own: World) -> None:
    client = own.served.client("carl")
    coming = '//a[@href="/publications/p"]'
    assert client.get("/running").page.xpath(coming)
    own.archive.settings.write_text(f"{own.archive.settings.read_text('utf-8')}retired = true\n", "utf-8")
    assert not client.get("/running").page.xpath(coming)


def test_a_crawl_says_how_many_documents_came_with_it(own: World) -> None:
    """What it kept is counted in it, and not among what its job brought."""
    catalogue = Catalogue(own.archive)
    catalogue.change(own.ids[1], lambda record: record.with_values({FieldNumber.FILES: "9"}, "x", now()), "x", str)
    folder = own.archive.reports / own.ids[1]
    folder.mkdir(exist_ok=True)
    client = own.served.client("carl")
    for arcs, said in (
        ({"added": 1, "changed": 5, "removed": 3, "unchanged": 2}, "8 came with this crawl, 1 it kept"),
        ({"added": 9, "changed": 0, "removed": 3, "unchanged": 0}, ""),
        ({"added": 9, "changed": 0, "removed": 0, "unchanged": 9}, ""),
        ({}, ""),
    ):
        files.write_json(folder / "summary.json", {"arcs": arcs})
        page = client.get(path(own, 1)).words
        assert said in page and ("it kept from earlier" in page) is bool(said), arcs
