"""The modules of webarcfs and agent as their sources show them: their folders, and what each imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from agent.crawl.vocabulary import IN_CRAWL_LOG

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
#: README's table of the words of crawl.log, between what stands before and behind it.
REASONS = re.compile(r"(<!-- reasons:[^>]*-->\n)(.*?)(\n<!-- end of reasons -->)", re.DOTALL)


def table_of_reasons() -> str:
    """All words of crawl.log as README's table in Markdown."""
    rows = [f"| `{word}` | {word.sentence} |" for word in IN_CRAWL_LOG]
    return "\n".join(["| word in crawl.log | what it says |", "|---|---|", *rows])


class Sources:
    """The modules of a checkout."""

    def __init__(self, root: Path) -> None:
        #: Dotted name → file. A package is its `__init__`.
        self.modules = {
            ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
            for folder in ("webarcfs", "agent")
            for path in sorted((root / folder).rglob("*.py"))
            if "_compiled" not in path.parts
        }
        self._trees: dict[str, ast.Module] = {}

    def tree(self, module: str) -> ast.Module:
        """The syntax tree of a module."""
        if module not in self._trees:
            self._trees[module] = ast.parse(self.modules[module].read_text("utf-8"))
        return self._trees[module]

    def imports(self, module: str) -> Iterator[str]:
        """Every name that a module imports, in full, `from` imports of modules resolved to the modules."""
        for node in ast.walk(self.tree(module)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} uses a relative import"
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    yield full if full in self.modules else str(node.module)

    def folder_of(self, module: str) -> str:
        """The folder of a module, as a dotted name."""
        return module if self.modules[module].name == "__init__.py" else module.rpartition(".")[0]

    def arrows(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """The imports between folders: (from, to) → the modules at both ends."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for module in self.modules:
            for name in self.imports(module):
                if name in self.modules and self.folder_of(name) != self.folder_of(module):
                    ends = (self.folder_of(module), self.folder_of(name))
                    found.setdefault(ends, []).append((module, name))
        return found


HERE = Sources(ROOT)
MODULES = HERE.modules
tree, imports, folder_of, arrows = HERE.tree, HERE.imports, HERE.folder_of, HERE.arrows
