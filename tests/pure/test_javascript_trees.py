"""The scanner of JavaScript against tree-sitter, on the scripts that are on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support import javascript_trees
from tests.support.javascript_trees import facts_of_scan, facts_of_tree

pytestmark = [pytest.mark.pure, pytest.mark.large, pytest.mark.timeout(900)]

#: Scripts of this machine that must have been compared. What `make apps` downloads are 700, Debian's packages 1,500.
_AT_LEAST = 500
_RENAMED_AT_MOST = 12_000


def _disagreements(scripts: Iterator[tuple[str, str]]) -> tuple[int, list[str]]:
    compared, wrong = 0, []
    for name, source in scripts:
        expected = facts_of_tree(source)
        if expected is not None:
            compared += 1
            if facts_of_scan(source) != expected:
                wrong.append(name)
    return compared, wrong


def _renamed() -> Iterator[tuple[str, str]]:
    for name, source in javascript_trees.real_scripts(_RENAMED_AT_MOST):
        yield name, javascript_trees.with_names_of_the_window(source)


def _assigning() -> Iterator[tuple[str, str]]:
    for name, source in javascript_trees.real_scripts(_RENAMED_AT_MOST):
        yield name, javascript_trees.with_assignments_to_location(source)


@pytest.mark.parametrize(
    "scripts",
    [javascript_trees.real_scripts, _renamed, _assigning],
    ids=["as they are", "names of the window", "assignments"],
)
def test_scripts_are_scanned_as_a_parser_reads_them(scripts: Callable[[], Iterator[tuple[str, str]]]) -> None:
    compared, wrong = _disagreements(scripts())
    print(f"{compared} scripts compared, {len(wrong)} disagreements")
    assert not wrong, wrong[:10]
    if compared < _AT_LEAST:
        pytest.skip(f"only {compared} scripts are here, and all agree; `make apps` downloads more")
