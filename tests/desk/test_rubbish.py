"""Rubbish in every field of every form of the desk: what comes back says what to type, in the language of the page.

It names no path of the machine and no setting by its key, keeps what was typed, and leads to the field.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import JobState, Phase
from tests.desk.conftest import World
from tests.support.desks import Answer, Client
from webarcfs.archive.config.settings import CrawlSettings, Publication

pytestmark = pytest.mark.store
JOB = "20261010T030000-p"
RUBBISH = ("\U0001f4a5 <b>&amp;\"'", "../../etc/passwd", "-1", "9" * 400, "%(x)s {{ 7*7 }} # =", "[[x")
#: Forms that end or change the session of the client itself.
_OF_SESSION = ("/logout", "/language")
_KEYS = frozenset(
    setting.name for kind in (CrawlSettings, Publication) for setting in dataclasses.fields(kind) if "_" in setting.name
)
#: Words of English sentences that are in no German one.
_ENGLISH = re.compile(r"\b(the|is|are|not|must|with|write|give|there|already|such as)\b")


def pages(world: World) -> list[tuple[str, str]]:
    """The pages with forms, and who sees most of them."""
    record = f"/snapshot/{world.ids[1]}"
    return [
        ("carl", "/publications/+new"), ("carl", "/publications/q"), ("carl", "/options"), ("carl", "/new"),
        ("carl", "/registers"), ("carl", "/access"), ("carl", "/running"), ("carl", record),
        ("carl", "/snapshots/edit?ticked=1,2"), ("adam", "/people"), ("adam", "/people?key=anna"),
        ("carl", "/snapshots"),
    ]  # fmt: skip


@pytest.fixture
def busy(own: World) -> World:
    """A desk with a publication of a file of its own, and an open job."""
    folder = own.archive.settings.with_name("publications.d")
    folder.mkdir()
    (folder / "q.toml").write_text('[[publication]]\nname = "q"\nurls = ["http://www.example.test/"]\nretired = true\n')
    (own.archive.jobs / JOB).mkdir()
    job_folder.save_item(own.archive.jobs / JOB, JobState(job=JOB, publication="p", state=Phase.COLLECTING))
    return own


def client_of(world: World, name: str, language: str) -> Client:
    client = world.served.client(name)
    client.headers["Accept-Language"] = language
    return client


def forms_of(page: Answer) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the forms of a page: action, names of fields that a person fills in, and where its buttons lead."""
    for form in page.page.xpath('//form[@method="post"]'):
        action = form.get("action")
        fields = form.xpath('.//input[not(@type="hidden")]|.//select|.//textarea|.//button[@name]')
        names = list(dict.fromkeys(field.get("name") for field in fields if field.get("name")))
        places = [action, *form.xpath(".//@formaction")]
        if action not in _OF_SESSION and form.get("enctype") != "multipart/form-data":
            yield action, names, places


def judge(answer: Answer, world: World, where: str, language: str) -> None:
    """What every answer to rubbish has in common."""
    assert answer.status in (200, 400, 404, 409), (where, answer.status, answer.words[:400])
    said = " ".join(
        " ".join(part.text_content().split())
        for part in answer.page.xpath('//*[contains(@class,"fault") or @class="wrong" or @class="said"]')
        if part.tag in ("div", "span")
    )
    assert str(world.archive.root) not in answer.text.replace(f"--archive {world.archive.root}", ""), (where, said)
    without = said.replace("_ ", "")
    for rubbish in RUBBISH:
        without = without.replace(" ".join(rubbish.split())[:80], "")
    assert not [key for key in _KEYS if key in without], (where, said)
    assert ".toml" not in without, (where, said)
    if language == "de":
        assert not _ENGLISH.search(without), (where, said)


@pytest.mark.parametrize("language", ["de", "en"])
def test_rubbish_in_any_field_of_any_form_is_answered_in_words(busy: World, language: str) -> None:
    tried = refused = 0
    for name, path in pages(busy):
        client = client_of(busy, name, language)
        page = client.get(path)
        assert page.status == 200, path
        for at, (action, names, places) in enumerate(forms_of(page)):
            values, fresh = page.form(action), client.get(path)
            # Both languages read a form alike: English is tried with a part of the fields.
            for number, field in list(enumerate(names))[:: 1 if language == "de" else 5]:
                rubbish = RUBBISH[(at + number) % len(RUBBISH)]
                for place in dict.fromkeys(places):
                    if action not in fresh.text:
                        break  # an earlier one was taken, and nothing is left to be sent
                    token = fresh.form(action)["token"]
                    answer = client.post(place, {**values, field: rubbish, "token": token})
                    judge(answer, busy, f"{place} {field}={rubbish[:20]!r}", language)
                    tried += 1
                    links = answer.page.xpath('//div[@class="fault"]//li/a/@href')
                    assert [link for link in links if not answer.page.xpath(f'//*[@id="{link[1:]}"]')] == [], place
                    refused += bool(links)
                    fresh = answer if answer.status == 400 and place == action else client.get(path)
    least = (150, 60) if language == "de" else (30, 12)
    assert tried > least[0] and refused > least[1], (tried, refused)


def test_each_field_of_an_order_is_tied_to_what_is_wrong_with_it(busy: World) -> None:
    client = client_of(busy, "carl", "en")
    action = f"/job/{JOB}/order"
    for word, names in (("deadline", ["deadline"]), ("exclude", ["exclude"]), ("wait", ["wait", "seconds"])):
        typed = {"word": word, "reason": "x" * 501, **dict.fromkeys(names, "a b/c")}
        answer = client.submit(client.get("/running"), action, typed)
        assert answer.status == 400
        faulty = answer.page.xpath("//input[@aria-invalid='true']")
        assert {field.get("name") for field in faulty} == {"reason", *names}
        for field in faulty:
            ids = field.get("aria-describedby").split()
            assert ids[-1] == f"{field.get('name')}-fault-{JOB}"
            assert all(answer.page.xpath(f"//*[@id='{name}']")[0].text_content() for name in ids)
    page = client.get("/running")
    assert page.page.xpath("//input[@name='reason']/@aria-describedby") == [f"reason-help-{JOB}"]
    assert not page.page.xpath("//input[@name='wait'][@aria-describedby or @aria-invalid]")


def test_all_fields_at_once_are_named_each_with_what_to_type_and_stay(busy: World) -> None:
    client = client_of(busy, "carl", "de")
    page = client.get("/publications/+new")
    typed = {"urls": "no address", "name": "a/b", "interval": "other", "interval.other": "manchmal", "depth": "tief",
             "start": "gestern", "max_file_size": "viel", "wait": "-1", "exclude": "two words", "closed_for": "lange",
             "check": "x = ", "types": "text\nimage/*"}  # fmt: skip
    answer = client.submit(page, "/publications/+new", typed)
    assert answer.status == 400
    links = answer.page.xpath('//div[@class="fault"]//li/a/@href')
    wrong = "urls name interval start closed_for depth exclude types max_file_size check wait"
    assert links == [f"#f-{name}" for name in wrong.split()]
    form = answer.form("/publications/+new")
    assert {name: form[name] for name in typed} == {name: [value] for name, value in typed.items()}
    for name in ("depth", "max_file_size", "check", "start"):
        (field,) = answer.page.xpath(f'//*[@id="f-{name}"]')
        assert field.get("aria-invalid") == "true"
        assert all(parent.get("open") is not None for parent in field.iterancestors("details")), "it is not folded away"
    assert "Bitte eine Dauer eingeben, etwa 1 Woche, 10 Tage oder 2 Stunden." in answer.words
    assert not list(busy.archive.publications.glob("a*"))
    good = {"urls": "www.example.test", "name": "", "interval": "", "interval.other": "alle 3 Wochen",
            "depth": "unbegrenzt",
            "start": "1.12.2030 22:00", "max_file_size": "1,5 GB", "wait": "0,5",
            "exclude": "www.example.test/alt/* # doppelt",
            "closed_for": "1 Woche", "check": "", "types": "image/*"}  # fmt: skip
    saved = client.submit(answer, "/publications/+new", good)
    assert saved.status == 200, saved.words[:600]
    held = next(known for known in busy.served.desk.settings().publications if known.name == "example.test")
    assert (str(held.crawl.interval), held.crawl.max_file_size, held.crawl.wait) == ("3 weeks", 1_500_000_000, 0.5)
    assert held.urls == ("http://www.example.test/",) and held.exclude[0].reason == "doppelt"
    assert "1. Dez. 2030, 22:00 Uhr MEZ" in saved.words
    shown = saved.form("/publications/example.test")
    assert (shown["interval"], shown["interval.other"], shown["closed_for"], shown["depth"]) == (
        ["other"], ["3 Wochen"], ["1 Woche"], ["unbegrenzt"])  # fmt: skip
    text = (busy.archive.publications / "example.test.toml").read_text()
    assert client.submit(saved, "/publications/example.test").status == 200
    english = client_of(busy, "carl", "en")
    assert english.submit(english.get("/publications/example.test"), "/publications/example.test").status == 200
    assert (busy.archive.publications / "example.test.toml").read_text() == text, (
        "nothing was different in any language"
    )
