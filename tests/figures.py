"""`python -m tests.figures [FOLDER …]`: the size and the words of the code, for this checkout and others beside it.

A line for each figure, a column for each checkout: modules without `__init__`, folders that hold one, imports between
modules, circles of modules and of folders, the longest module, public class names that stand twice, code lines as
cloc(1) counts them (docstrings are not counted), and how often a few words stand in 1,000 of them. All are formatted to
one line length first, in a copy, so that the columns can be compared. Needs cloc (Debian's package) and ruff.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.sources import ROOT, Sources

#: Words that say nothing of what a variable holds.
WORDS = ("each", "found", "said", "made", "told")
_LENGTH = "120"


def figures(checkout: Path) -> dict[str, float]:
    """The figures of one checkout."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        for name in ("webarcfs", "agent", "sql"):
            shutil.copytree(checkout / name, copy / name, ignore=shutil.ignore_patterns("_compiled", "__pycache__"))
        ruff = [sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--line-length", _LENGTH, str(copy)]
        subprocess.run(ruff, check=True)
        sources = Sources(copy)
        modules = {name for name, path in sources.modules.items() if path.name != "__init__.py"}
        folders = {name.rpartition(".")[0] for name in modules}
        imports = {name: {end for end in sources.imports(name) if end in sources.modules} for name in sources.modules}
        between: dict[str, set[str]] = {}
        for start, end in sources.arrows():
            between.setdefault(start, set()).add(end)
        lengths = [len(sources.modules[name].read_text("utf-8").splitlines()) for name in modules]
        classes = Counter(name for module in modules for name in public_classes(sources.tree(module)))
        words = Counter(word for path in sources.modules.values() for word in names(path))
        lines = code_lines(copy)
    return {
        "modules": len(modules),
        "folders": len(folders),
        "imports between modules": sum(map(len, imports.values())),
        "modules in circles": len(in_circles(imports)),
        "folders in circles": len(in_circles(between)),
        "longest module, lines": max(lengths),
        "modules over 1,500 lines": sum(length > 1500 for length in lengths),
        "public class names that stand twice": sum(count > 1 for count in classes.values()),
        "code lines (cloc)": lines,
        **{f"{word} in 1,000 code lines": round(words[word] * 1000 / lines, 1) for word in WORDS},
        "these words together": round(sum(words[word] for word in WORDS) * 1000 / lines, 1),
    }


def in_circles(graph: Mapping[str, set[str]]) -> set[str]:
    """The nodes from which a way of one step or more leads back to them."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        ahead = list(graph[start])
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                ahead += graph.get(node, ())
        reached[start] = seen
    return {node for node, seen in reached.items() if node in seen}


def public_classes(tree: ast.Module) -> Iterator[str]:
    """The names of the classes that a module shows to others."""
    yield from (node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def names(path: Path) -> Iterator[str]:
    """The names in the code of a file, without its comments and strings."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.NAME:
            yield token.string


def code_lines(folder: Path) -> int:
    """The lines of code below a folder, as cloc counts them."""
    counted = subprocess.run(
        ["cloc", "--json", "--quiet", "--include-lang=Python,SQL,XSD", str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(json.loads(counted.stdout)["SUM"]["code"])


def main() -> None:
    """Print the table, or JSON: a list with an object for each checkout."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="other checkouts, as columns before this"
    )
    options = parser.parse_args()
    if shutil.which("cloc") is None:
        parser.error("cloc is missing: `apt-get install cloc`")
    columns = [figures(folder) for folder in (*options.folders, ROOT)]
    if options.json:
        print(json.dumps(columns))
        return
    for name in columns[0]:
        print(f"{name:36}" + "".join(f"{column[name]:>12,}" for column in columns))


if __name__ == "__main__":
    main()
