"""The figures of the code are counted as they are named."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.figures import in_circles, names, public_classes

pytestmark = pytest.mark.pure


def test_circles_are_those_that_lead_back() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}, "e": {"a", "f"}}
    assert in_circles(graph) == {"b", "c", "d"}


def test_public_classes_are_those_at_the_top_of_a_module() -> None:
    tree = ast.parse("class A: pass\nclass _B: pass\ndef f():\n    class C: pass\n")
    assert list(public_classes(tree)) == ["A"]


def test_words_in_comments_and_strings_are_none_of_the_code(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""each"""\nfound = "each"  # each\nprint(found)\n', "utf-8")
    assert [word for word in names(path) if word in ("each", "found")] == ["found", "found"]
