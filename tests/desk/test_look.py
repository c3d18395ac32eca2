"""The desk speaks English and German: each text has both, with the same places to fill; each field has its help."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from agent import desk
from agent.desk import forms, login
from agent.desk.theme import words
from agent.reports import missing_urls
from tests.desk.conftest import World
from webarcfs import web
from webarcfs.archive.catalogue.record import BY_NUMBER, FIELDS, RecordState
from webarcfs.archive.catalogue.workflow import TABLE, Role, WorkflowStep
from webarcfs.archive.config import settings
from webarcfs.archive.model.errors import UsageError

pytestmark = pytest.mark.store
HERE = Path(desk.__file__).parent


def msgids() -> set[str]:
    """All texts of the desk's code and templates, and of the settings that its forms show."""
    methods = [("**.py", "python"), ("**/templates/**.html", "jinja2.ext:babel_extract")]
    options = {"**/templates/**.html": {"trimmed": "true", "newstyle_gettext": "true"}}
    keywords = {"_": None, "msgid": None}
    found = {each[2] for each in extract_from_dir(HERE, methods, options, keywords)}
    for name in ("CrawlSettings", "MountSettings", "IndexSettings", "DescribeSettings", "BackupSettings",
                 "ReleaseSettings", "Publication"):  # fmt: skip
        for each in dataclasses.fields(getattr(settings, name)):
            if "check" in each.metadata:
                key = each.metadata.get("key", each.name)
                found |= {words.label_of_setting(key, str), each.metadata["help"]}
                values = map(str, getattr(each.metadata["check"], "words", ()))
                found |= {label for _, label in words.choices_of_setting(key, values, str)}
    found |= set(missing_urls.TEXTS)
    return {str(each) for each in found if each}


def test_each_value_of_a_setting_has_a_choice() -> None:
    """In the order of the form; one without words of its own is offered as it is."""
    values = ("wget", "browser", "auto", "another")
    choices = dict(words.choices_of_setting("fetcher", values, str))
    assert list(choices) == ["wget", "auto", "browser", "another"]
    assert choices["another"] == "another" != choices["wget"]


def test_each_text_has_its_german_with_the_same_places() -> None:
    german: dict[str, str] = {}
    for path in (Path(web.__file__).parent / "locale/de/room.po", HERE / "theme/locale/de/desk.po"):
        with path.open("rb") as file:
            german |= {each.id: str(each.string) for each in read_po(file, "de") if isinstance(each.id, str)}
    wanted = msgids()
    assert len(wanted) > 400
    assert sorted(wanted - german.keys()) == []
    for text in wanted:
        places = [sorted(re.findall(r"%\(\w+\)s", each)) for each in (text, german[text])]
        assert places[0] == places[1], text
        assert german[text].strip(), text


def test_every_field_state_and_step_is_named_and_explained() -> None:
    assert words._HELP.keys() == BY_NUMBER.keys()
    for field in FIELDS:
        label, text = words.of_field(field, "en")
        assert label and field.de in text
        assert words.of_field(field, "de")[0] == field.de
    assert set(words.STATES) == set(RecordState)
    assert len({sign for _, sign in words.STATES.values()}) >= 6
    assert set(words.STEPS) == set(WorkflowStep) - {WorkflowStep.NEW}
    assert {rule.event for rule in TABLE.values()} <= set(words.EVENTS)
    assert set(words.ROLES) == set(Role)


def test_pages_are_in_the_language_of_the_person(world: World) -> None:
    client = world.served.client("carl")
    client.headers["Accept-Language"] = "de"
    page = client.get("/snapshots")
    assert page.page.get("lang") == "de" and "Crawls" in page.words and "3. Okt. 2026" in page.words
    english = client.submit(page, "/language", {"language": "en"})
    assert english.page.get("lang") == "en" and "3 Oct 2026" in english.words


def test_passwords_are_argon2id_and_have_bounds() -> None:
    made = login.hashed("a" * forms.PASSWORD_SHORTEST)
    assert made.startswith("$argon2id$")
    assert login.matches(made, "a" * forms.PASSWORD_SHORTEST)
    assert not login.matches(made, "a" * (forms.PASSWORD_SHORTEST - 1))
    assert not login.matches("no hash", "x") and not login.matches("", "nobody has this password")
    for wrong in ("a" * (forms.PASSWORD_SHORTEST - 1), "a" * (forms.PASSWORD_LONGEST + 1)):
        with pytest.raises(UsageError):
            login.hashed(wrong)
