"""The words of a crawl: each with its sentence, none as a loose string beside them."""

from __future__ import annotations

import ast
import re
from enum import Enum

import pytest

from agent.policy.vocabulary import LinkKind, Reason, Result, UrlState, table_of_reasons
from tests.support.sources import MODULES, ROOT, tree

pytestmark = pytest.mark.pure

WORDS = (UrlState, LinkKind, Result, Reason)
#: Attributes and parameters whose values are words; a literal there has a member's name.
_NAMED = {"state", "kind", "note"}


@pytest.mark.parametrize("kind", WORDS)
def test_each_word_has_a_sentence(kind: type[UrlState]) -> None:
    assert len({str(word) for word in kind}) == len(kind)
    for word in kind:
        assert isinstance(word, str) and not isinstance(str(word), Enum)
        assert re.fullmatch(r"[A-Z`w].*\.", word.sentence), word
        assert re.fullmatch("[a-z]+(?:[-:][a-z]+)*:?", word), word


def test_the_table_of_the_readme_is_made_from_them() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"<!-- reasons:[^>]*-->\n(.*?)\n<!-- end of reasons -->", text, re.DOTALL)
    assert block is not None and block[1] == table_of_reasons()


@pytest.mark.parametrize(
    "module", [name for name in MODULES if re.match(r"agent\.(capture|frontier|importing|stages)\.", name)]
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
