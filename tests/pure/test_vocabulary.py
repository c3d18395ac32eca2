"""The words of a crawl: each with its sentence, none as a loose string beside them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache

import pytest

from agent.crawl import wget
from agent.crawl.vocabulary import IN_CRAWL_LOG, Figure, LinkKind, Reason, Result, UrlState
from tests.support.sources import MODULES, README, REASONS, table_of_reasons, tree
from webarcfs.warc.decoding import BodyFault, BodyRemark

pytestmark = pytest.mark.pure

WORDS = (UrlState, LinkKind, Result, Reason, Figure)
#: Enumerations that have words of crawl.log.
_SOURCES = ("Reason", "Result", "Figure", "BodyFault", "BodyRemark")
#: Attributes and parameters whose values are words; a literal there has a member's name.
_NAMED = {"state", "kind", "note"}
#: Parameters and fields that hold words of crawl.log, by name; variables that do; classes whose parameters have another
#: name, or none of their own.
_HOLD_WORDS = {"note", "result"}
_VARIABLES = {"note", "notes"}
_TAKE_WORDS = {"Verdict": {1}, "BadBody": {0}, "Bomb": {0}, "TooBig": {0}, "FetchFailed": {1}}
#: Modules that write words into a frontier, or make them.
_WRITERS = [
    name for name in MODULES if re.match(r"agent\.(crawl|importing|jobs|pipeline)\.|webarcfs\.warc\.decoding", name)
]


@pytest.mark.parametrize("kind", WORDS)
def test_each_word_has_a_sentence(kind: type[UrlState]) -> None:
    assert len({str(word) for word in kind}) == len(kind)
    for word in kind:
        assert isinstance(word, str) and not isinstance(str(word), Enum)
        assert re.fullmatch(r"[A-Z`w].*\.", word.sentence), word
        assert re.fullmatch("[a-z][a-z0-9]*(?:[-:][a-z]+)*:?", word), word


def test_the_table_of_the_readme_is_made_from_them() -> None:
    """If this fails: `python -m tests.support.surfaces README.md`."""
    (block,) = REASONS.finditer(README.read_text("utf-8"))
    assert block[2] == table_of_reasons()


@pytest.mark.parametrize(
    "module", [name for name in MODULES if re.match(r"agent\.(crawl|importing|jobs|pipeline)\.", name)]
)
def test_no_word_is_a_loose_string(module: str) -> None:
    known = {str(word) for kind in WORDS for word in kind}
    for node in ast.walk(tree(module)):
        given: list[ast.expr] = []
        if isinstance(node, ast.keyword) and node.arg in _NAMED:
            given = [node.value]
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr in _NAMED:
            given = list(node.comparators)
        for value in given:
            for each in ast.walk(value):
                loose = isinstance(each, ast.Constant) and each.value in known
                assert not loose, f"{module}:{value.lineno} has a loose word"


def test_every_fault_of_a_body_is_a_word_with_a_sentence() -> None:
    """webarcfs imports nothing of agent, so the words of decoding.py are its own."""
    assert {str(word) for word in (*BodyFault, *BodyRemark)} <= {str(word) for word in IN_CRAWL_LOG}


def test_every_failure_that_wget_tells_is_a_word_with_a_sentence() -> None:
    assert {note for *_, note in wget._FAILURES} <= set(Reason)


@pytest.mark.parametrize("module", _WRITERS)
def test_every_word_that_is_written_is_a_member(module: str) -> None:
    """A text in the place of a word is in no table, and no document explains it."""
    loose = {f"{module}:{part.lineno} {part.value!r}" for value in _words_of(module) for part in _texts(value)}
    assert loose == set()


def test_every_word_of_the_table_is_written() -> None:
    used = {
        node.attr
        for module in MODULES
        for top in tree(module).body
        if module != "agent.crawl.vocabulary" or isinstance(top, ast.FunctionDef)  # its tables write none
        for node in ast.walk(top)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in _SOURCES
    }
    assert {word.name for word in IN_CRAWL_LOG} - used == set()


@cache
def _parameters() -> dict[str, list[list[str]]]:
    """The parameters of each function, and the fields of each class, by its name: several may have one name."""
    found: dict[str, list[list[str]]] = {}
    for module in _WRITERS:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef):
                names = [
                    each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in ("self", "cls")
                ]
                found.setdefault(node.name, []).append(names)
            elif isinstance(node, ast.ClassDef):
                fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
                found.setdefault(node.name, []).append([each.id for each in fields if isinstance(each, ast.Name)])
    return found


def _words_of(module: str) -> Iterator[ast.expr]:
    """What a module gives to parameters and fields, and puts into variables, that hold words."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            places = {
                place
                for names in _parameters().get(name, ())
                for place, parameter in enumerate(names)
                if parameter in _HOLD_WORDS
            } | _TAKE_WORDS.get(name, set())
            yield from (value for place, value in enumerate(node.args) if place in places)
            yield from (each.value for each in node.keywords if each.arg in _HOLD_WORDS)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not isinstance(node.value, ast.Dict | None):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id in _VARIABLES for each in targets):
                yield node.value


def _texts(value: ast.expr) -> Iterator[ast.Constant]:
    """The texts with letters in an expression."""
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search("[a-z]", node.value):
            yield node
