"""Each page has the values that its template reads, by their names, and no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import nodes
from jinja2.meta import find_undeclared_variables

from tests.room import samples
from webarcfs.room.theme.rendering import Look

ROOT = Path(__file__).parents[2]
_ENVIRONMENT = Look().environment("en")
#: Names that all templates of a program may read, whatever page they are for.
_SHARED = {
    "webarcfs/room": {"language", "here", "has_search", "texts", "version", "switches", "parts"},
    "agent/desk": {"language", "here", "texts", "version", "switches", "person", "may", "needs", "own_roles",
                   "navigation", "token",
                   "said_before", "problem", "by_proxy", "words", "options", "parts", "d", "trials"},
}  # fmt: skip


def names_read(program: str, template: str) -> set[str]:
    """The names of values that a template reads; what it extends or imports reads none of them."""
    tree = _ENVIRONMENT.parse((ROOT / program / "theme/templates" / template).read_text("utf-8"))
    own = {node.target for node in tree.find_all(nodes.Import)} | {node.name for node in tree.find_all(nodes.Macro)}
    for node in (*tree.find_all(nodes.Assign), *tree.find_all(nodes.AssignBlock)):
        assert isinstance(node, nodes.Assign | nodes.AssignBlock)
        targets = (node.target, *node.target.find_all(nodes.Name))
        own |= {target.name for target in targets if isinstance(target, nodes.Name)}
    return find_undeclared_variables(tree) - own - _SHARED[program]


def pages(program: str) -> Iterator[tuple[str, str, set[str], bool]]:
    """Each page of a program's code: place, template, the names that are given, and whether there are more of them."""
    for path in sorted((ROOT / program).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            if node.func.attr == "page":
                assert isinstance(node.args[0], ast.Constant), f"{place}: a template is named where it is rendered"
                names = {keyword.arg for keyword in node.keywords} - {"http_status", "http_headers"}
                yield place, str(node.args[0].value), {name for name in names if name}, None in names


@pytest.mark.parametrize("program", _SHARED)
def test_each_page_gives_its_template_what_that_reads_and_nothing_else(program: str) -> None:
    calls = list(pages(program))
    assert len(calls) > 10
    for place, template, names, has_more in calls:
        read = names_read(program, template)
        assert names <= read, f"{place}: {template} reads no {names - read}"
        assert has_more or read <= names, f"{place}: {template} also reads {read - names}"


def test_samples_have_the_values_that_templates_read() -> None:
    for template, values in (*samples.RICH.values(), *samples.EMPTY.values()):
        assert values.keys() == names_read("webarcfs/room", template), template
