"""The modules of webarcfs and agent as their sources show them: their folders, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Dotted name → file. A package is its `__init__`.
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("webarcfs", "agent")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "_compiled" not in path.parts
}


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(MODULES[module].read_text("utf-8"))


def imports(module: str) -> Iterator[str]:
    """Every name that a module imports, in full, `from` imports of modules resolved to the modules."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else str(node.module)


def folder_of(module: str) -> str:
    """The folder of a module, as a dotted name."""
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def arrows() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The imports between folders: (from, to) → the modules at both ends."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for module in MODULES:
        for name in imports(module):
            if name in MODULES and folder_of(name) != folder_of(module):
                found.setdefault((folder_of(module), folder_of(name)), []).append((module, name))
    return found
