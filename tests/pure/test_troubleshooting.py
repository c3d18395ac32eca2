"""TROUBLESHOOTING.md names commands, words of crawl.log and files that there are."""

from __future__ import annotations

import re

import pytest

from agent.cli import cli as agent
from agent.crawl.vocabulary import IN_CRAWL_LOG
from tests.support.sources import ROOT
from webarcfs.commands.cli import cli as webarc

pytestmark = pytest.mark.pure

TEXT = (ROOT / "TROUBLESHOOTING.md").read_text("utf-8")


def test_its_commands_are_there() -> None:
    named = set(re.findall(r"\b(webarc-agent|webarc) ([a-z]+)", TEXT))
    assert len(named) >= 8
    known = {"webarc-agent": agent, "webarc": webarc}
    assert [(program, name) for program, name in named if name not in known[program].commands] == []


def test_its_words_are_those_of_crawl_log() -> None:
    table = TEXT.partition("| in the line |")[2].partition("\n\n")[0]
    words = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)[`:]", table.replace("`trap:…`", "")))
    settings = (ROOT / "webarcfs/archive/config/settings.py").read_text("utf-8")
    known = {word.rstrip(":") for word in IN_CRAWL_LOG}
    assert [word for word in words if word not in known and f" {word}:" not in settings] == []


def test_its_options_of_a_mount_are_there() -> None:
    options = (ROOT / "webarcfs/mount/options.py").read_text("utf-8")
    for word in re.findall(r"-o ([a-z]+)", TEXT):
        assert f'"{word}"' in options, word
