"""The desk speaks English and German: each text has both, with the same places to fill; each field has its help."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from agent import desk
from agent.desk import forms, login
from agent.desk.theme import words
from agent.operations.saving import UrlRefusal
from agent.reports import explanations
from tests.desk.conftest import World
from tests.support.sources import MODULES, tree
from webarcfs import room, web
from webarcfs.archive.catalogue.record import BY_NUMBER, FIELDS, RecordState
from webarcfs.archive.catalogue.workflow import TABLE, Role, WorkflowStep
from webarcfs.archive.config import settings
from webarcfs.archive.model.errors import UsageError
from webarcfs.room.pages.records import GROUPS
from webarcfs.room.views import Change
from webarcfs.web import language

pytestmark = pytest.mark.store
#: The programs whose pages have texts, and what they share.
FOLDERS = [Path(str(package.__file__)).parent for package in (desk, room, web)]


def msgids() -> set[str]:
    """All texts of code and templates, the plural of those that have one, and those of the settings that forms show."""
    methods = [("**.py", "python"), ("**/templates/**.html", "jinja2.ext:babel_extract")]
    options = {"**/templates/**.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
    keywords: dict[str, Any] = {"_": None, "gettext": None, "ngettext": (1, 2), "msgid": None}
    extracted = [each[2] for folder in FOLDERS for each in extract_from_dir(folder, methods, options, keywords)]
    wanted = {text if isinstance(text, str) else text[-1] for text in extracted}
    for name in ("CrawlSettings", "MountSettings", "IndexSettings", "DescribeSettings", "BackupSettings",
                 "NotifySettings", "ReleaseSettings", "Publication"):  # fmt: skip
        for each in dataclasses.fields(getattr(settings, name)):
            if "check" in each.metadata:
                key = each.metadata.get("key", each.name)
                wanted |= {words.label_of_setting(key, str), each.metadata["help"]}
                values = map(str, getattr(each.metadata["check"], "words", ()))
                wanted |= {label for _, label in words.choices_of_setting(key, values, str)}
    wanted |= {*explanations.TEXTS, *UrlRefusal, *GROUPS.values(), *(change.value for change in Change)}
    return {str(text) for text in wanted if text}


def strings() -> Iterator[str]:
    """Yield the strings of the code: what a page shows of a record or of a job is one of them."""
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_each_value_of_a_setting_has_a_choice() -> None:
    """In the order of the form; one without words of its own is offered as it is."""
    values = ("wget", "browser", "auto", "another")
    choices = dict(words.choices_of_setting("fetcher", values, str))
    assert list(choices) == ["wget", "auto", "browser", "another"]
    assert choices["another"] == "another" != choices["wget"]


_GERMAN = Path(language.__file__).parent / "locale/de/webarcfs.po"


def test_the_german_texts_are_in_order_and_each_is_there_once() -> None:
    """Changes of two people then meet in the place of a text, and not at the end of the file."""
    blocks = _GERMAN.read_text("utf-8").split("\n\n")[1:]
    ids = [ast.literal_eval(match[1]) for block in blocks for match in re.finditer(r'^msgid (".*")$', block, re.M)]
    assert len(ids) == len(blocks) > 1_000
    assert [(earlier, later) for earlier, later in pairwise(ids) if earlier >= later] == []
    comments = {line for block in blocks for line in block.splitlines() if line.startswith("#")}
    assert comments <= {"#, python-format"}


def test_each_text_has_its_german_with_the_same_places() -> None:
    with _GERMAN.open("rb") as file:
        entries = [entry for entry in read_po(file, "de") if entry.id]
    german = {entry.id if isinstance(entry.id, str) else entry.id[-1]: entry for entry in entries}
    wanted = msgids()
    assert len(wanted) > 700
    assert sorted(wanted - german.keys()) == []
    shown = {form for text in strings() for form in (text, text.replace("_", " ").capitalize())}
    assert sorted(german.keys() - wanted - shown) == []
    for text, entry in german.items():
        both = (entry.string,) if isinstance(entry.string, str) else tuple(entry.string or ())
        assert all(string.strip() for string in both) and not entry.fuzzy, text
        places = [set(re.findall(r"%\(\w+\)s", string)) for string in (text, both[-1], "".join(both))]
        assert places[0] == places[1] == places[2], text


def test_every_field_state_and_step_is_named_and_explained() -> None:
    assert words._HELP.keys() == BY_NUMBER.keys()
    for field in FIELDS:
        label, text = words.of_field(field, "en", str)
        assert label and field.de in text
        german = words.of_field(field, "de", partial(language.translate, language="de"))
        assert german[0] == field.de and german[1] not in text
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
