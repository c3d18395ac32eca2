"""Saving a page at the desk: the form starts nothing until it is sent, one URL is one job, and the result is shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import JobState, Phase
from agent.jobs import crawljob
from agent.operations import saving
from tests.desk.conftest import World
from tests.support import desks
from tests.support.desks import Answer, Client
from tests.support.resolving import PUBLIC, Sink, resolving
from tests.support.site import Site, redirect
from webarcfs.access import access_rules
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.store
URL = "http://page.test/a?b=%C3%A9"


def jobs_of(archive: Archive) -> list[str]:
    """The open jobs that save pages."""
    return sorted(path.name for path in archive.jobs.iterdir() if job_folder.is_page(path.name))


def save(client: Client, url: str, *, follow: bool = True, **more: str) -> Answer:
    """Fill in the form, and send it."""
    return client.submit(client.get("/save"), "/save", {"url": url, **more}, follow=follow)


@pytest.fixture
def anna(own: World) -> Client:
    """An archivist at a desk of her own."""
    return own.served.client("anna")


def test_the_filled_form_starts_nothing(own: World, anna: Client) -> None:
    """S-save-1."""
    page = anna.get(f"/save?url={quote(URL, safe='')}")
    assert page.form("/save")["url"] == [URL]
    hostile = '"><script>alert(1)</script>&url=javascript:alert(2)'
    page = anna.get(f"/save?url={quote(hostile, safe='')}")
    assert page.form("/save")["url"] == [hostile] and not page.page.xpath("//script[contains(text(), 'alert')]")
    assert jobs_of(own.archive) == []


def test_a_page_is_asked_for_and_its_job_says_who_asked(own: World, anna: Client) -> None:
    """S-save-2."""
    answer = save(anna, " HTTP://Page.test:80/a?b=é#part ", description="for  the exhibition")
    assert answer.status == 200 and "being saved" in answer.words and "webarc-agent start" in answer.words
    (job,) = jobs_of(own.archive)
    assert job.endswith("-saved-page.test+page") and answer.path == f"/save/{quote(job, safe='')}"
    page = saving.page_of(own.archive, job)
    assert page is not None
    assert (page.url, page.by, page.role) == (URL, desks.PEOPLE["anna"][0], "archivist")
    assert page.description == "for the exhibition"
    asked = job_folder.load(own.archive.jobs / job)
    assert asked is not None and asked.only_adds and asked.publication.urls == (URL,)
    assert asked.publication.release == "by-hand", "the archive's own value"
    assert asked.publication.crawl.depth == 0 and not asked.publication.crawl.private_addresses
    assert anna.get("/running").words.count("saved-page.test") >= 1


def test_the_settings_say_when_readers_see_a_saved_page(own: World, anna: Client) -> None:
    assert "Readers see the page once somebody has released it." in anna.get("/save").words
    before = own.archive.settings.read_text()
    own.archive.settings.write_text(f'closed_for = "30 years"\n{before}\n[save]\nrelease = "when-checked"\n')
    form = anna.get("/save").words
    assert "once its checks have passed" in form and "Embargo: 30 years." in form
    own.archive.settings.write_text(before + '\n[save]\nrelease = "automatic"\n')
    assert "Readers see the page as soon as it is saved." in anna.get("/save").words
    save(anna, URL)
    asked = job_folder.load(own.archive.jobs / jobs_of(own.archive)[0])
    assert asked is not None and asked.publication.release == "automatic"


REFUSED = {
    "http://[::1]/": "your own machine or network",
    "http://127.0.0.1/": "your own machine or network",
    "http://127.1:8080/": "your own machine or network",
    "http://2130706433/": "your own machine or network",
    "http://0x7f000001/": "your own machine or network",
    "http://0177.0.0.1/": "your own machine or network",
    "http://localhost./": "your own machine or network",
    "http://a.localhost/": "your own machine or network",
    "http://169.254.169.254/latest/meta-data/": "your own machine or network",
    "http://[fe80::1]/": "your own machine or network",
    "http://[::ffff:10.0.0.1]/": "your own machine or network",
    "http://[::ffff:7f00:1]/": "your own machine or network",
    "http://100.64.0.1/": "your own machine or network",
    "http://0.0.0.0/": "your own machine or network",
    "http://user:pw@page.test/": "password",
    "https://user@page.test": "password",
    "user@page.test/": "password",
    "http:\\\\user:pw@page.test/": "password",
    "http://page.test:25/": "another protocol",
    "https://page.test:6667/": "another protocol",
    "javascript:alert(1)": "begin with http",
    "file:///etc/passwd": "begin with http",
    "ftp://page.test/": "begin with http",
    "data:text/html,a": "begin with http",
    " view-source:http://page.test/": "begin with http",
    "http://page.test/" + "a" * 10_000: "too long",
    "http://page.test/" + "ü" * 3_000: "too long",
    "": "no address",
    "http://": "no address",
    "http://%/": "no address",
    "http://a b/": "no address",
    "http://" + "a" * 300 + ".test/": "no address",
}


def test_what_may_not_be_saved_is_refused_at_its_field(own: World, anna: Client) -> None:
    for url, text in REFUSED.items():
        answer = save(anna, url)
        assert answer.status == 400, url
        (wrong,) = answer.page.xpath('//span[@id="f-url-fault"]')
        assert text in wrong.text_content(), url
        assert answer.form("/save")["url"] == [url], "what was typed is still there"
    assert jobs_of(own.archive) == []


GOOD = {
    "page.test": "http://page.test/",
    "page.test:8080/x": "http://page.test:8080/x",
    "https://Bücher.test/grün": "https://xn--bcher-kva.test/gr%C3%BCn",
    "http://例え.test/テスト": "http://xn--r8jz45g.test/%E3%83%86%E3%82%B9%E3%83%88",
    "http://مثال.test/عربي": "http://xn--mgbh0fb.test/%D8%B9%D8%B1%D8%A8%D9%8A",
    "https://page.test/@user": "https://page.test/@user",
    "https://page.test/?mail=a@b": "https://page.test/?mail=a@b",
}


def test_addresses_of_every_script_are_saved(own: World, anna: Client) -> None:
    for typed, url in GOOD.items():
        answer = save(anna, typed)
        job = urlsplit(answer.path).path.removeprefix("/save/").replace("%2B", "+")
        page = saving.page_of(own.archive, job)
        assert page is not None and page.url == url, typed
    assert len(jobs_of(own.archive)) == len(GOOD)


def test_an_address_that_the_settings_permit_is_saved(own: World, anna: Client) -> None:
    own.archive.settings.write_text(
        own.archive.settings.read_text().replace("[crawl]", "[crawl]\nprivate_addresses = true")
    )
    assert "being saved" in save(anna, "http://127.0.0.1:8080/").words


def test_one_url_is_one_job_however_it_is_spelled_and_whoever_asks(own: World, anna: Client) -> None:
    """S-save-4."""
    first = save(anna, "http://page.test/a%62c")
    second = save(own.served.client("bert"), "HTTP://PAGE.test:80/abc#x")
    assert "being saved already" in second.words and second.path == first.path
    assert len(jobs_of(own.archive)) == 1


def test_two_forms_at_once_are_one_job(own: World) -> None:
    clients = [own.served.client(name) for name in ("anna", "bert", "carl") for _ in range(3)]
    pages = [client.get("/save") for client in clients]
    answers: list[Answer] = []

    def send(client: Client, page: Answer) -> None:
        answers.append(client.submit(page, "/save", {"url": URL}, follow=False))

    threads = [threading.Thread(target=send, args=pair) for pair in zip(clients, pages, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {303}
    assert len({answer.headers["location"] for answer in answers}) == 1 == len(jobs_of(own.archive))


def test_a_form_that_was_sent_twice_is_one_job(own: World, anna: Client) -> None:
    page = anna.get("/save")
    fields = {**page.form("/save"), "url": URL}
    assert anna.post("/save", fields, follow=False).status == 303
    assert anna.post("/save", fields).status == 409
    assert len(jobs_of(own.archive)) == 1


def test_without_a_token_a_right_or_a_login_nothing_is_saved(own: World, anna: Client) -> None:
    assert anna.post("/save", {"url": URL}).status == 403
    elsewhere = {**anna.get("/save").form("/save"), "url": URL}
    assert anna.post("/save", elsewhere, headers={"Origin": "https://evil.test"}).status == 403
    for name in ("rita", "adam"):
        client = own.served.client(name)
        assert client.get(f"/save?url={quote(URL)}").status == 403
        assert "/save" not in {link.get("href") for link in client.get("/").page.iter("a")}
        assert client.post("/save", {"url": URL}).status == 403
    stranger = Client(own.served.port)
    login = stranger.get(f"/save?url={quote(URL, safe='')}")
    assert login.status == 403 and login.form("/login")["back"] == [f"/save?url={quote(URL, safe='')}"]
    assert jobs_of(own.archive) == []


def test_a_form_of_two_megabytes_is_refused(own: World, anna: Client) -> None:
    page = anna.get("/save")
    answer = anna.submit(page, "/save", {"url": URL, "description": "x" * 2_000_000})
    assert answer.status == 413
    answer = anna.submit(page, "/save", {"url": URL, "description": "x" * 600})
    assert answer.status == 400 and "500 characters" in answer.words
    assert jobs_of(own.archive) == []


# -- how many ----------------------------------------------------------------------------------------------------------


def _ask(archive: Archive, url: str, by: str = "Anna") -> saving.AskedPage:
    from webarcfs.archive.config.settings import Settings

    return saving.ask(archive, saving.define(Settings(), job_folder.SavedPage(url=url, by=by)))


def test_a_thousand_a_minute_are_sixty(own: World) -> None:
    """S-save-4: each person for themselves. The count survives the desk; a job that was not counted is in it."""
    name = desks.PEOPLE["anna"][0]
    states = [_ask(own.archive, f"http://h{number}.test/", name).state for number in range(1_000)]
    assert states.count(saving.SaveState.BEGUN) == 60 == len(jobs_of(own.archive))
    assert states.count(saving.SaveState.TOO_OFTEN) == 940
    with desks.served(own.archive) as again:
        answer = save(again.client("anna"), "http://another.test/")
        assert answer.status == 429 and "You may save the next one at" in answer.words
        assert "being saved already" in save(again.client("anna"), "http://h7.test/").words
        assert "is being saved" in save(again.client("bert"), "http://another.test/").words
    (own.archive.root / "lock" / "saves.json").unlink()
    assert _ask(own.archive, "http://more.test/", name).state is saving.SaveState.TOO_OFTEN


def test_the_queue_has_a_bound(own: World, anna: Client) -> None:
    """S-save-4: 50 of one host, and 200 in all."""
    for number in range(50):
        assert _ask(own.archive, f"http://h.test/{number}", f"p{number}").state is saving.SaveState.BEGUN
    assert _ask(own.archive, "http://h.test/more", "q").state is saving.SaveState.FULL
    for number in range(150):
        assert _ask(own.archive, f"http://h{number}.test/", f"q{number}").state is saving.SaveState.BEGUN
    answer = save(anna, URL)
    assert answer.status == 503 and "Too many pages wait" in answer.words


def test_the_hour_goes_by_whatever_the_clock_does(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, now = own.archive, saving.time.time()
    one = {"by": "Anna", "url": "http://x.test/"}
    kept = [{"job": f"j{number}", "at": now - 3500 + number, **one} for number in range(60)]
    file = archive.root / "lock" / "saves.json"
    file.write_text(json.dumps({"saves": kept}))
    asked = _ask(archive, "http://a.test/")
    assert asked.state is saving.SaveState.TOO_OFTEN and asked.again is not None
    assert 0 < asked.again.timestamp() - now <= 101
    monkeypatch.setattr(saving.time, "time", lambda: now + 101)
    assert _ask(archive, "http://a.test/").state is saving.SaveState.BEGUN
    monkeypatch.setattr(saving.time, "time", lambda: now - 10 * 365 * 86_400)  # set back by years
    assert _ask(archive, "http://b.test/").state is saving.SaveState.BEGUN
    for damage in ("", "[]", '{"saves": 1}', '{"saves": [{}, 1, {"job": 1, "at": "x"}]}', "\0"):
        file.write_text(damage)
        assert _ask(archive, f"http://c{len(damage)}.test/").state is saving.SaveState.BEGUN


def test_what_a_killed_process_began_is_no_job(own: World, anna: Client) -> None:
    left = own.archive.jobs / ".20261001T030000-saved-page.test+page"
    left.mkdir()
    save(anna, URL)
    assert len(jobs_of(own.archive)) == 1 and not left.exists()


_KILLED = """
import os, signal, sys
from pathlib import Path
from agent.crawl.job_folder import SavedPage
from agent.operations import saving
from webarcfs.archive.config.directory import open_archive
from webarcfs.archive.config.settings import Settings

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

root, place = sys.argv[1:]
if place == "the folder":
    saving.job_folder.save = die
elif place == "its name":
    Path.rename = die
elif place == "the count":
    saving._keep = die
else:
    keep = saving._keep
    saving._keep = lambda *given: (keep(*given), die())
saving.ask(open_archive(Path(root)), saving.define(Settings(), SavedPage(url="http://page.test/", by="Anna")))
"""


@pytest.mark.parametrize(
    ("place", "is_accepted"), [("the folder", False), ("its name", False), ("the count", True), ("the answer", True)]
)
def test_a_kill_before_the_answer_loses_and_doubles_nothing(own: World, place: str, *, is_accepted: bool) -> None:
    """S-save-2: the desk is killed while it accepts a page."""
    done = subprocess.run([sys.executable, "-c", _KILLED, str(own.archive.root), place], check=False)
    assert done.returncode == -signal.SIGKILL
    before = [job for job in jobs_of(own.archive) if not job.startswith(".")]
    assert len(before) == is_accepted
    asked = _ask(own.archive, "http://page.test/")
    assert asked.state is (saving.SaveState.RUNS if is_accepted else saving.SaveState.BEGUN)
    assert jobs_of(own.archive) == [asked.job] and (not before or before == [asked.job])
    definition = job_folder.load(own.archive.jobs / asked.job)
    assert definition is not None and definition.page is not None and definition.page.by == "Anna"
    _ask(own.archive, "http://another.test/")
    saves = json.loads((own.archive.root / "lock" / "saves.json").read_text())["saves"]
    assert sum(save["url"] == "http://page.test/" for save in saves) == 1, "counted once"


def test_a_page_that_was_given_up_may_be_asked_for_again(own: World) -> None:
    first = _ask(own.archive, URL).job
    given_up = JobState(job=first, publication="saved-page.test", state=Phase.FAILED, failures=10)
    job_folder.save_item(own.archive.jobs / first, given_up)
    assert _ask(own.archive, URL).state is saving.SaveState.BEGUN


# -- what came of it ---------------------------------------------------------------------------------------------------


@pytest.fixture
def public() -> Iterator[Site]:
    """A site at an address that counts as public."""
    with Site(address=PUBLIC) as running:
        yield running


def run(archive: Archive, names: dict[str, list[str]]) -> str:
    """Run the job that waits, as the agent does."""
    (job,) = jobs_of(archive)
    asked = job_folder.load(archive.jobs / job)
    assert asked is not None
    with resolving(names):
        crawljob.run(archive, asked.publication, None, instances=4, folder=archive.jobs / job, by_agent=True)
    return job


def _quick(archive: Archive) -> None:
    archive.settings.write_text(archive.settings.read_text().replace("[crawl]", "[crawl]\nwait = 0\ntimeout = 5"))


def test_the_result_leads_to_the_page_and_to_its_record(own: World, anna: Client, public: Site) -> None:
    _quick(own.archive)
    host = f"page.test:{public.port}"
    public.add_nasty("/a", redirect("/b"), host=host)
    public.add_html("/b", "What was saved", host=host)
    answer = save(anna, f"http://{host}/a")
    job = run(own.archive, {"page.test": [PUBLIC]})
    answer = anna.get(answer.path)
    assert "This page is saved" in answer.words and "once the crawl is released" in answer.words
    links = {link.text_content(): link.get("href") for link in answer.page.iter("a")}
    assert anna.get(links["Record of the crawl"]).status == 200
    record, _ = Catalogue(own.archive).read(job)
    assert record.events[0].what == "asked" and record.events[0].by == desks.PEOPLE["anna"][0]
    assert "saving was asked for" in anna.get(links["Record of the crawl"]).words
    path = f"/snapshot/{quote(job, safe='')}"
    released = anna.submit(anna.get(path), f"{path}/release")
    assert released.status == 200, released.words
    assert "Readers see this page." in anna.get(answer.path).words
    frame = anna.get(links["Look at the saved page"])
    assert frame.status == 200 and f"{host}/b" in frame.text
    access_rules.withhold(own.archive, f"http://{host}/b", "anna", "a letter")
    assert "It is withheld from readers." in anna.get(answer.path).words
    again = save(anna, f"http://{host}/a")
    assert "saved a moment ago" in again.words and again.path == answer.path
    assert jobs_of(own.archive) == []
    ended = own.archive.reports / job / job_folder.ITEM_FILE
    for seconds, state in ((30, saving.SaveState.RECENT), (61, saving.SaveState.BEGUN)):
        os.utime(ended, (time.time() - seconds,) * 2)
        assert _ask(own.archive, f"http://{host}/a").state is state, "a minute is a moment"


def test_a_page_that_did_not_change_is_saved(
    own: World, anna: Client, public: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _quick(own.archive)
    monkeypatch.setattr(saving, "_RECENTLY", -1.0)
    host = f"page.test:{public.port}"
    public.add_html("/", "as it was", host=host)
    for _ in range(2):
        answer = save(anna, f"http://{host}/")
        run(own.archive, {"page.test": [PUBLIC]})
        answer = anna.get(answer.path)
        assert "This page is saved" in answer.words, answer.words
    links = {link.text_content(): link.get("href") for link in answer.page.iter("a")}
    if "Look at the saved page" in links:
        assert anna.get(links["Look at the saved page"]).status == 200


def test_why_a_page_could_not_be_saved_is_explained(own: World, anna: Client, public: Site) -> None:
    _quick(own.archive)
    with Sink() as sink:
        for url, names, text in (
            (f"http://page.test:{public.port}/no", {"page.test": [PUBLIC]}, "404"),
            ("http://absent.test/", {}, "The name of its host could not be looked up"),
            (f"http://inside.test:{sink.port}/", {"inside.test": ["127.0.0.1"]}, "one's own machine or network"),
            (f"http://rebound.test:{sink.port}/", {"rebound.test": [PUBLIC, "127.0.0.1"]}, "one's own machine"),
        ):
            answer = save(anna, url)
            run(own.archive, names)  # type: ignore[arg-type]
            answer = anna.get(answer.path)
            assert "could not be saved" in answer.words and text in answer.words, answer.words
            assert "Try again" in answer.words
        assert sink.connections == 0
    assert saving.SaveState.BEGUN is _ask(own.archive, "http://absent.test/").state, (
        "what failed may be tried again at once"
    )


def test_what_is_no_job_of_a_page_is_not_found(anna: Client) -> None:
    for job in ("20261001T030000-p", "x+page", "..%2Fjobs", ".20261001T030000-saved-a.test+page", "%00+page"):
        assert anna.get(f"/save/{job}").status in (400, 404), job


def test_the_bookmarklet_opens_the_form_of_this_desk(own: World, anna: Client) -> None:
    (link,) = anna.get("/save").page.xpath('//a[starts-with(@href, "javascript:")]')
    assert link.get("href") == (
        f"javascript:void(location.href='{own.served.origin}/save?url='+encodeURIComponent(location.href))"
    )


def test_the_notes_of_a_preview_lead_to_the_filled_form(own: World, anna: Client) -> None:
    """What a crawl does not have may be saved; who may not save is not led there."""
    url = "http://www.example.test/no?a=1&b=%3Cc%3E"
    path = f"/snapshot/{quote(own.ids[0])}/preview?url={quote(url, safe='')}"
    (link,) = anna.get(path).page.xpath('//main//a[starts-with(@href, "/save?")]')
    assert anna.get(link.get("href")).form("/save")["url"] == [url]
    assert anna.get(path).status == 404
    assert not own.served.client("rita").get(path).page.xpath('//main//a[starts-with(@href, "/save?")]')


def test_pages_are_german_for_germans(anna: Client) -> None:
    anna.headers["Accept-Language"] = "de"
    assert "Seite speichern" in anna.get("/save").words
    assert "Netz" in save(anna, "http://127.0.0.1/").words
