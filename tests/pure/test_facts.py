"""The facts of a job: each has a key of its own, and one writer, which its comment names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.crawl import frontier

pytestmark = pytest.mark.pure

SOURCE = Path(frontier.__file__)
FACTS = re.findall(r"^#: .*?: ([a-z_.]+)\.\n([A-Z_]+):", SOURCE.read_text(), re.MULTILINE)


def test_each_fact_is_listed_and_no_two_share_a_key() -> None:
    known = {
        name: each.key for name, each in vars(frontier).items() if isinstance(each, frontier.Fact | frontier.FactAbout)
    }
    assert {name for _, name in FACTS} == known.keys()
    alone = [each.key for each in vars(frontier).values() if isinstance(each, frontier.Fact)]
    assert len(set(alone)) == len(alone)
    about = [each.key for each in vars(frontier).values() if isinstance(each, frontier.FactAbout)]
    assert len(set(about)) == len(about)


@pytest.mark.parametrize(("module", "name"), FACTS)
def test_a_fact_has_the_one_writer_that_its_comment_names(module: str, name: str) -> None:
    agent = SOURCE.parents[1]
    mentions = re.compile(rf"\b{name}\b")
    users = {path for path in agent.rglob("*.py") if path != SOURCE and mentions.search(path.read_text())}
    writers = {path for path in users if ".set(" in path.read_text()}
    assert agent.joinpath(*module.split(".")).with_suffix(".py") in writers


def test_a_fact_about_a_subject_is_a_fact_of_its_own() -> None:
    assert frontier.TAG.of("e.org") == frontier.Fact("tag:e.org")
    assert frontier.FILE_READ.of(3).key == "file:3"
