"""Joins modules as `tools/modules.map` says, and changes every import of them: `python -m tools.join_modules`.

It ran once, on the commit that `.git-blame-ignore-revs` names; it stays so that the commit can be made again and read.
It needs libcst, which knows the scope of each name. What it does to a joined module:

- the docstrings become one, paragraph by paragraph, and the imports one block at the head;
- the parts follow each other, a part that another one imports before it;
- a name that two parts define for different things gets the name of its part in front of it, or the one that
  `tools/modules.renamed` has for it; definitions that are equal word for word stand once;
- `part.name` becomes `name` inside the joined module, and `joined.name` outside of it.

It changes no other line of code. It ends with 1, and a line for each, where a name would mean another thing than before.
"""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import (
    Access,
    Assignment,
    BuiltinAssignment,
    ClassScope,
    GlobalScope,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    Scope,
    ScopeProvider,
)

from tools import module_map

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("modules.map")
RENAMED = Path(__file__).with_name("modules.renamed")
_CODE = ("webarcfs", "agent", "tests", "examples")
_OURS = ("webarcfs", "agent")


_PURE = re.compile(r" ?\bPure(\.| \([^)]*\)\.)")
_DOTTED = re.compile(r"(?<![\w./])(?:webarcfs|agent)(?:\.\w+)+")
_PATH = re.compile(r"(?<![\w./<>-])(?:[a-z]\w*/)*[a-z]\w*\.py\b|(?<![\w./<>-])(?:[a-z]\w*/)+(?:[a-z]\w*\b(?!\.))?")
#: Files beside the code that say what a module is called.
_TEXTS = (
    "*.md",
    "*.toml",
    "Makefile",
    ".ci/*",
    "man/*",
    "examples/*",
    "sql/*",
    "xsd/*",
    "*.html",
    "*.css",
    "*.js",
    "*.po",
)


def _private(stem: str, name: str) -> str:
    """A private name with the name of its part in front of it, in the case that it has."""
    if name.isupper():
        return f"_{stem.upper()}{name}"
    if name[1].isupper():
        return f"_{stem.title().replace('_', '')}{name[1:]}"
    return f"_{stem}{name}"


def _together(lines: list[str]) -> Iterator[str]:
    """Import statements, those from one module as one."""
    names: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        start, imports, name = line.partition(" import ")
        names.setdefault(start if imports else line, []).append(name)
    for start, several in names.items():
        yield f"{start} import {', '.join(sorted(several))}" if several != [""] else start


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True)
class Imported:
    """One name that an import statement binds."""

    module: str  # as it is written behind `from`, or `import`
    name: str  # "" where it is `import module`
    alias: str  # the name that it binds in the file
    explicit: bool  # whether it has an `as`
    line: int
    indent: int
    is_typing: bool  # below `if TYPE_CHECKING:`

    def target(self, modules: Iterable[str]) -> tuple[str, str]:
        """(module, name in it); the name is "" where the module itself is bound."""
        whole = f"{self.module}.{self.name}" if self.name else self.module
        return (whole, "") if whole in modules else (self.module, self.name)


@dataclass(frozen=True)
class Use:
    """A place at which a name is read or written."""

    start: int
    end: int
    attribute: str  # behind the name and a dot, "" if there is none
    attribute_start: int
    bound: frozenset[str]  # names that scopes between this place and the module bind
    is_plain: bool  # a name of the source, no piece of a string
    patched: tuple[str, int, int] | None = None  # the name in monkeypatch.setattr(module, "name", …), and its place


@dataclass
class File:
    """What is known of one file of the sources."""

    path: Path
    module: str
    text: str
    imports: list[tuple[Imported, list[Use]]] = field(default_factory=list)
    statements: list[tuple[int, int, int]] = field(default_factory=list)  # of ours or at the head: start, end, line
    head: list[tuple[int, int]] = field(default_factory=list)  # what leaves a joined part: docstring, imports
    definitions: dict[str, list[Use]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # of a definition that stands alone
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    globals_read: set[str] = field(default_factory=set)  # builtins that it uses
    everything: set[str] = field(default_factory=set)  # each name that any scope binds
    docstring: str = ""
    comments: list[str] = field(default_factory=list)  # between or behind imports


def _chain(scope: Scope) -> Iterator[Scope]:
    while not isinstance(scope, GlobalScope):
        yield scope
        scope = scope.parent


def analyse(path: Path) -> File:
    text = path.read_text("utf-8")
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    parents = wrapper.resolve(ParentNodeProvider)
    scopes = wrapper.resolve(ScopeProvider)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(position: object) -> int:
        return starts[position.line - 1] + position.column  # type: ignore[attr-defined]

    file = File(path, dotted(path), text)
    tree = wrapper.module

    def bound_at(scope: Scope | None) -> frozenset[str]:
        names: set[str] = set()
        first = True
        for inner in _chain(scope) if scope is not None else ():
            if first or not isinstance(inner, ClassScope):
                names |= {assignment.name for assignment in inner.assignments}
            first = False
        return frozenset(names)

    def use_of(node: cst.CSTNode, name: str, scope: Scope | None, access: Access | None = None) -> Use:
        span = positions[node]
        if isinstance(node, cst.Attribute):
            while isinstance(node, cst.Attribute):
                node = node.value
            span = positions[node]
        start, end = at(span.start), at(span.end)
        parent = parents.get(node)
        attribute, attribute_start = "", 0
        if isinstance(parent, cst.Attribute) and parent.value is node:
            attribute, attribute_start = parent.attr.value, at(positions[parent.attr].start)
        patched = None
        if isinstance(parent, cst.Arg):
            call = parents[parent]
            if isinstance(call, cst.Call) and len(call.args) > 1 and call.args[0] is parent:
                second = call.args[1].value
                if isinstance(second, cst.SimpleString):
                    place = positions[second]
                    patched = (second.raw_value, at(place.start) + 1, at(place.end) - 1)
        return Use(start, end, attribute, attribute_start, bound_at(scope), text[start:end] == name, patched)

    every_scope = {scope for scope in scopes.values() if scope is not None}
    for scope in every_scope:
        file.everything |= {assignment.name for assignment in scope.assignments}

    def is_typing(node: cst.CSTNode) -> bool:
        while node is not tree:
            node = parents[node]
            if isinstance(node, cst.If) and isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING":
                return True
        return False

    imported_uses: dict[tuple[int, str], list[Use]] = defaultdict(list)
    for scope in every_scope:
        for assignment in scope.assignments:
            if isinstance(assignment, ImportAssignment):
                statement = positions[assignment.node].start.line
                for access in assignment.references:
                    imported_uses[statement, assignment.name.partition(".")[0]].append(
                        use_of(access.node, assignment.name, access.scope, access)
                    )
            elif isinstance(assignment, Assignment) and isinstance(scope, GlobalScope):
                uses = file.definitions.setdefault(assignment.name, [])
                node = assignment.node
                name_node = node.name if isinstance(node, cst.FunctionDef | cst.ClassDef) else node
                uses.append(use_of(name_node, assignment.name, None))
                uses += [use_of(access.node, assignment.name, access.scope) for access in assignment.references]

    class Statements(cst.CSTVisitor):
        def _take(self, node: cst.Import | cst.ImportFrom) -> None:
            line = parents[node]
            span = positions[node]
            start, end = at(span.start), at(span.end)
            indent = span.start.column
            module = ""
            if isinstance(node, cst.ImportFrom):
                module = cst.helpers.get_full_name_for_node(node.module) or ""
            typing = is_typing(node)
            assert not isinstance(node.names, cst.ImportStar)
            ours = False
            for name in node.names:
                whole = cst.helpers.get_full_name_for_node(name.name) or ""
                alias = name.asname.name.value if name.asname else whole  # type: ignore[union-attr]
                one = Imported(
                    module or whole, whole if module else "", alias, name.asname is not None,
                    span.start.line, indent, typing,
                )  # fmt: skip
                ours |= one.module.partition(".")[0] in _OURS
                file.imports.append((one, imported_uses.get((span.start.line, alias.partition(".")[0]), [])))
            file.statements.append((start, end, span.start.line))
            if indent == 0 or typing:
                file.head.append((start, end))
            trailing = line.trailing_whitespace.comment if isinstance(line, cst.SimpleStatementLine) else None
            if trailing is not None:
                file.comments.append(f"{path.relative_to(ROOT)}:{span.start.line}: {trailing.value}")

        def visit_Import(self, node: cst.Import) -> None:
            self._take(node)

        def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
            self._take(node)

        def visit_If(self, node: cst.If) -> None:
            if isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING":
                span = positions[node]
                file.head.append((at(span.start), at(span.end)))

    wrapper.visit(Statements())
    for statement in tree.body:
        span = positions[statement]
        names: list[str] = []
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            names = [statement.name.value]
        elif isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
            small = statement.body[0]
            if isinstance(small, cst.Assign) and len(small.targets) == 1:
                target = small.targets[0].target
                names = [target.value] if isinstance(target, cst.Name) else []
            elif isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                names = [small.target.value]
        begin = at(span.start)
        if isinstance(statement, cst.FunctionDef | cst.ClassDef) and statement.decorators:
            begin = at(positions[statement.decorators[0]].start)
        for name in names:
            file.sources[name] = text[begin : at(span.end)]
            file.spans[name] = (begin, at(span.end))
    if tree.get_docstring() is not None:
        first = positions[tree.body[0]]
        file.docstring = text[at(first.start) + 3 : at(first.end) - 3]
        file.head.append((at(first.start), at(first.end)))
    for scope in every_scope:
        for access in scope.accesses:
            if any(isinstance(referent, BuiltinAssignment) for referent in access.referents) and isinstance(
                access.node, cst.Name
            ):
                file.globals_read.add(access.node.value)
    return file


class Joining:
    """All files, the table, and what each name is called now."""

    def __init__(
        self, files: dict[str, File], table: module_map.ModuleMap, renamed: dict[tuple[str, str], str]
    ) -> None:
        self.files = files
        self.table = table
        self.renamed = renamed
        self.modules = {name for name in files if name.partition(".")[0] in _OURS}
        self.faults: list[str] = []
        self.edits: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        self.dropped: dict[str, set[str]] = defaultdict(set)
        self.statements: dict[str, list[str]] = {}  # of a file that is not joined: nothing; else the head
        self.late_alias: dict[tuple[str, str], str] = {}

    def now(self, module: str) -> str:
        """What a module or a package is called now."""
        if module in self.table.modules:
            return self.table.modules[module]
        return self.table.folders.get(module, module)

    def name_of(self, module: str, name: str) -> str:
        return self.renamed.get((module, name), name)

    # What clashes in a joined module.

    def clashes(self) -> None:
        """Give names to definitions that clash in a joined module, and drop those that are equal."""
        for now, parts in self.table.joined().items():
            owner: dict[str, str] = {}
            for part in parts:
                file = self.files[part]
                for name in file.definitions:
                    new = self.name_of(part, name)
                    if new in owner and owner[new] != part:
                        other = self.files[owner[new]]
                        source = file.sources.get(name)
                        if source is not None and source == other.sources.get(name) and name == new:
                            self.dropped[part].add(name)
                            continue
                        stem = part.rpartition(".")[2]
                        new = _private(stem, name) if name.startswith("_") else new
                        if name.startswith("__"):
                            self.faults.append(f"{now}: {name} of {part} and of {owner[name]}")
                        if not name.startswith("_"):
                            self.faults.append(f"{now}: {part}.{name} clashes with {owner[new]}.{name}: rename one")
                        self.renamed[part, name] = new
                    owner[new] = part
            for part in parts:
                for other in parts:
                    if other != part:
                        taken = {self.name_of(other, name) for name in self.files[other].definitions}
                        for name in sorted(taken & self.files[part].globals_read):
                            self.faults.append(f"{now}: {other} defines {name}, which {part} uses as the builtin")

    # Imports.

    def _bindings(self, now: str) -> dict[str, tuple[str, str]]:
        """Names that the parts of a joined module define: name → what it is."""
        return {
            self.name_of(part, name): (now, self.name_of(part, name))
            for part in self.table.joined()[now]
            for name in self.files[part].definitions
        }

    def rewrite(self) -> None:
        joined = self.table.joined()
        for now, parts in joined.items():
            taken = self._bindings(now)
            head: dict[tuple[str, str, str], bool] = {}  # (module, name, alias) → whether for types alone
            for part in parts:
                self._rewrite_file(self.files[part], now, taken, head)
            self.statements[now] = list(self._head(head))
        for module, file in self.files.items():
            if module not in self.table.modules:
                self._rewrite_file(file, module, {}, None)

    def _head(self, head: dict[tuple[str, str, str], bool]) -> Iterator[str]:
        def line(key: tuple[str, str, str]) -> str:
            module, name, alias = key
            if not name:
                return f"import {module}" + (f" as {alias}" if alias != module else "")
            return f"from {module} import {name}" + (f" as {alias}" if alias != name else "")

        yield from (line(key) for key, typing in head.items() if not typing)
        only = [line(key) for key, typing in head.items() if typing]
        if only:
            yield ""
            yield "if TYPE_CHECKING:"
            yield from (f"    {each}" for each in only)

    def _rewrite_file(
        self,
        file: File,
        now: str,
        taken: dict[str, tuple[str, str]],
        head: dict[tuple[str, str, str], bool] | None,
    ) -> None:
        where = str(file.path.relative_to(ROOT))
        edits = self.edits[file.module]
        by_line: dict[int, list[str]] = defaultdict(list)
        joined_part = file.module in self.table.modules
        for name, uses in file.definitions.items():
            new = self.name_of(file.module, name)
            if new != name:
                for use in uses:
                    self._put(edits, use, name, new, where)
        for one, uses in file.imports:
            module, name = one.target(self.modules)
            ours = module.partition(".")[0] in _OURS
            lines = by_line[one.line]
            in_head = head is not None and (one.indent == 0 or one.is_typing)
            if not ours:
                if in_head:
                    alias = self._alias_of_foreign(file, one, uses, taken, head, where)
                    self._enter(head, (one.module, one.name, alias), one.is_typing)
                lines.append(self._as_it_was(one))
                continue
            if not one.name and not one.explicit:  # import a.b.c: the text of its uses is changed as all texts are
                if in_head:
                    self._enter(head, (self.now(one.module), "", self.now(one.module)), one.is_typing)
                lines.append(f"import {self.now(one.module)}")
                continue
            target = self.now(module)
            if joined_part and target == now:
                self._inside(file, module, name, one.alias, uses, where)
                continue
            if name:  # a name of a module
                new = self.name_of(module, name)
                alias = one.alias if one.explicit else new
                if not one.explicit and new != name:
                    for use in uses:
                        self._put(edits, use, one.alias, new, where)
                clash = taken.get(alias)
                if clash is not None or self._other(head, alias, (target, new)):
                    if alias in file.definitions:
                        self.faults.append(f"{where}: imports {alias}, which it defines")
                    fresh = f"{target.rpartition('.')[2]}_{new}".replace("__", "_")
                    self.faults.append(
                        f"NOTE {where}: {target}.{new} as {fresh}, for {alias} is another thing in {now}"
                    )
                    for use in uses:
                        self._put(edits, use, alias if new == name or one.explicit else alias, fresh, where)
                    alias = fresh
                if in_head:
                    self._enter(head, (target, new, alias), one.is_typing)
                lines.append(f"from {target} import {new}" + (f" as {alias}" if alias != new else ""))
                continue
            package, _, stem = target.rpartition(".")
            alias = one.alias if one.explicit and one.alias != module.rpartition(".")[2] else stem
            if (
                one.explicit
                and one.alias != stem
                and module.rpartition(".")[2] != stem
                and self._free(file, stem, uses, taken, head, target)
            ):
                alias = stem
            if alias != one.alias or taken.get(alias) or self._other(head, alias, (target, "")):
                if not self._free(file, alias, uses, taken, head, target):
                    if self._by_names(file, module, target, one, uses, taken, head, lines, in_head):
                        continue
                    fresh = f"{stem}_module"
                    self.faults.append(f"NOTE {where}: {target} as {fresh}, for {alias} is another thing there")
                    alias = fresh
            for use in uses:
                if alias != one.alias:
                    self._put(edits, use, one.alias, alias, where)
                if use.attribute and self.name_of(module, use.attribute) != use.attribute:
                    new = self.name_of(module, use.attribute)
                    edits.append((use.attribute_start, use.attribute_start + len(use.attribute), new))
                if use.patched and self.name_of(module, use.patched[0]) != use.patched[0]:
                    edits.append((use.patched[1], use.patched[2], self.name_of(module, use.patched[0])))
            if in_head:
                self._enter(head, (package, stem, alias), one.is_typing, is_module=True)
            lines.append(f"from {package} import {stem}" + (f" as {alias}" if alias != stem else ""))
        for start, end, line in file.statements:
            indent = file.text[file.text.rfind("\n", 0, start) + 1 : start]
            if head is not None and any(s == start for s, _ in file.head):
                continue
            new_lines = list(_together(by_line.get(line, [])))
            text = ("\n" + indent).join(new_lines)
            if text:
                edits.append((start, end, text))
            else:
                stop = file.text.find("\n", end) + 1
                edits.append((start - len(indent), stop, ""))
        for name in self.dropped.get(file.module, ()):
            start, end = file.spans[name]
            edits.append((start, end, ""))
        taken_places = [(start, end) for start, end, _ in edits] + [(start, end) for start, end, _ in file.statements]
        for start, end, new in self.mentions(file.text, file.module, where):
            if not any(begin < end and start < stop for begin, stop in taken_places):
                edits.append((start, end, new))

    # What texts say of modules: their dotted names, and the paths of files and folders.

    def mentions(self, text: str, module: str, where: str) -> Iterator[tuple[int, int, str]]:
        for match in _DOTTED.finditer(text):
            words = match[0].split(".")
            for length in range(len(words), 1, -1):
                before = ".".join(words[:length])
                if before in self.table.modules or before in self.table.folders:
                    rest = words[length:]
                    if rest and before in self.table.modules:
                        rest[0] = self.name_of(before, rest[0])
                    new = ".".join([self.now(before), *rest])
                    if new != match[0]:
                        yield match.start(), match.end(), new
                    break
        for match in _PATH.finditer(text):
            if (new_path := self._path_of_now(match[0], module, where)) is not None and new_path != match[0]:
                yield match.start(), match.end(), new_path

    def _path_of_now(self, token: str, module: str, where: str) -> str | None:
        """What a path in a text is called now; None where it is none of a module or a folder of ours."""
        if token.endswith(".py"):
            words = token.removesuffix(".py").split("/")
            ends = [before for before in self.table.modules if before.split(".")[-len(words) :] == words]
            targets = {self.table.modules[before] for before in ends}
            if len(targets) > 1:  # the one that is nearest to the file that names it
                own = module.split(".")

                def nearness(before: str) -> int:
                    parts = before.split(".")
                    return next((i for i, (a, b) in enumerate(zip(parts, own, strict=False)) if a != b), len(own))

                best = max(map(nearness, ends))
                targets = {self.table.modules[before] for before in ends if nearness(before) == best}
                if len(targets) > 1 or best == 0:
                    self.faults.append(f"NOTE {where}: {token} may be any of {sorted(targets)}")
                    return None
            if not targets:
                return None
            parts = next(iter(targets)).split(".")
            return "/".join(parts[-max(len(words), 1) :] if len(words) <= len(parts) else parts) + ".py"
        slash = "/" if token.endswith("/") else ""
        words = token.strip("/").split("/")
        for first in ([], ["webarcfs"], ["agent"]):
            for length in range(len(words), 0, -1):
                folder = ".".join([*first, *words[:length]])
                if folder in self.table.folders and "." in folder and (length > 1 or slash):
                    now = self.table.folders[folder].split(".")[len(first) :]
                    return "/".join([*now, *words[length:]]) + slash
        return None

    @staticmethod
    def _as_it_was(one: Imported) -> str:
        if not one.name:
            return f"import {one.module}" + (f" as {one.alias}" if one.explicit else "")
        return f"from {one.module} import {one.name}" + (f" as {one.alias}" if one.explicit else "")

    @staticmethod
    def _enter(
        head: dict[tuple[str, str, str], bool] | None, key: tuple[str, str, str], typing: bool, is_module: bool = False
    ) -> None:
        assert head is not None
        head[key] = head.get(key, True) and typing

    @staticmethod
    def _other(head: dict[tuple[str, str, str], bool] | None, alias: str, target: tuple[str, str]) -> bool:
        """Whether the head binds the name to another thing."""
        for module, name, bound in head or ():
            whole = f"{module}.{name}" if name else module
            wanted = f"{target[0]}.{target[1]}" if target[1] else target[0]
            if (
                bound.partition(".")[0] == alias
                and whole != wanted
                and not (bound != alias and bound.partition(".")[0] == wanted.partition(".")[0])
            ):
                return True
        return False

    def _alias_of_foreign(
        self,
        file: File,
        one: Imported,
        uses: list[Use],
        taken: dict[str, tuple[str, str]],
        head: dict[tuple[str, str, str], bool] | None,
        where: str,
    ) -> str:
        alias = one.alias
        whole = (one.module, one.name)
        if alias.partition(".")[0] not in taken and not self._other(head, alias, whole):
            return alias
        fresh = f"{one.module.rpartition('.')[2]}_{one.name}".strip("_") if one.name else f"{one.module}_module"
        self.faults.append(
            f"NOTE {where}: {one.module}.{one.name} as {fresh}, for {alias} is another thing in the module"
        )
        for use in uses:
            self._put(self.edits[file.module], use, alias, fresh, where)
        return fresh

    def _free(
        self,
        file: File,
        alias: str,
        uses: list[Use],
        taken: dict[str, tuple[str, str]],
        head: dict[tuple[str, str, str], bool] | None,
        target: str,
    ) -> bool:
        """Whether a module may be called `alias` in a file."""
        if alias in taken or self._other(head, alias, (target, "")) or alias in dir(builtins):
            return False
        if any(alias in use.bound for use in uses):
            return False
        if alias in file.definitions:
            return False
        for one, _ in file.imports:
            if one.alias == alias:
                module, name = one.target(self.modules)
                if (self.now(module), name) != (target, ""):
                    return False
        return True

    def _by_names(
        self,
        file: File,
        module: str,
        target: str,
        one: Imported,
        uses: list[Use],
        taken: dict[str, tuple[str, str]],
        head: dict[tuple[str, str, str], bool] | None,
        lines: list[str],
        in_head: bool,
    ) -> bool:
        """Import the names that a file uses of a module, where the module's own name is taken and theirs are not."""
        names = {self.name_of(module, use.attribute) for use in uses}
        if any(not use.attribute or not re.search("[A-Z_]", use.attribute) for use in uses):
            return False
        for name in names:
            if name in taken or name in file.definitions or self._other(head, name, (target, name)):
                return False
            if any(other.alias == name for other, _ in file.imports) or any(name in use.bound for use in uses):
                return False
        edits = self.edits[file.module]
        for use in uses:
            name = self.name_of(module, use.attribute)
            edits.append((use.start, use.attribute_start + len(use.attribute), name))
        for name in sorted(names):
            if in_head:
                self._enter(head, (target, name, name), one.is_typing)
            lines.append(f"from {target} import {name}")
        return True

    def _inside(self, file: File, module: str, name: str, alias: str, uses: list[Use], where: str) -> None:
        """A part used another part of the same module: it uses the name itself now."""
        edits = self.edits[file.module]
        for use in uses:
            if name:
                new = self.name_of(module, name)
                if new != alias:
                    self._put(edits, use, alias, new, where)
                if new in use.bound - ({alias} if new == alias else set()) and alias != new:
                    self.faults.append(f"{where}: {new} is another thing where {alias} of {module} is used")
                continue
            if not use.attribute:
                self.faults.append(f"{where}: {alias} of the same module is used as a value")
                continue
            new = self.name_of(module, use.attribute)
            if new in use.bound:
                self.faults.append(f"{where}: {module}.{use.attribute} as {new}: a local name hides it")
            defined = self.files[module].definitions
            if use.attribute not in defined:
                self.faults.append(f"{where}: {alias}.{use.attribute} is not defined in {module}")
            edits.append((use.start, use.attribute_start + len(use.attribute), new))

    def _put(self, edits: list[tuple[int, int, str]], use: Use, old: str, new: str, where: str) -> None:
        if not use.is_plain:
            self.faults.append(f"{where}: {old} in a string, at {use.start}")
            return
        if new in use.bound and new != old:
            self.faults.append(f"{where}: {old} becomes {new}, which a local name hides")
        edits.append((use.start, use.end, new))

    # The files of now.

    def changed(self, module: str) -> str:
        text = self.files[module].text
        edits = sorted(set(self.edits[module]))
        parts, position = [], 0
        for start, end, new in edits:
            if start < position:
                raise SystemExit(f"{module}: two changes of one place: {text[start:end]!r} {new!r}")
            parts += [text[position:start], new]
            position = end
        return "".join([*parts, text[position:]])

    def docstring(self, module: str) -> str:
        """The docstring of a part, with the names of now."""
        file = self.files[module]
        text = file.docstring.strip("\n")
        for start, end, new in sorted(self.mentions(text, module, module), reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def body(self, module: str) -> str:
        """A part without its docstring and its imports."""
        file = self.files[module]
        for start, end in file.head:
            self.edits[module] = [edit for edit in self.edits[module] if not (start <= edit[0] and edit[1] <= end)]
        spans = sorted(file.head)
        merged: list[tuple[int, int]] = []
        for start, end in spans:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        for start, end in merged:
            self.edits[module].append((start, end, ""))
        return self.changed(module).strip("\n")

    def order(self, parts: list[str]) -> list[str]:
        """The parts, each behind those that it imports."""
        needs = {
            part: {
                module
                for one, _ in self.files[part].imports
                if one.indent == 0 and (module := one.target(self.modules)[0]) in parts
            }
            for part in parts
        }
        done: list[str] = []
        while len(done) < len(parts):
            done.append(next(part for part in parts if part not in done and needs[part] <= {*done, part}))
        return done


def _read_renamed() -> dict[tuple[str, str], str]:
    """`module.name new` a line."""
    renamed = {}
    for line in RENAMED.read_text("utf-8").splitlines() if RENAMED.exists() else ():
        if line and not line.startswith("#"):
            whole, new = line.split()
            module, _, name = whole.rpartition(".")
            renamed[module, name] = new
    return renamed


def _paths() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", *(f"{folder}/*.py" for folder in _CODE)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def main() -> int:
    paths = _paths()
    with ProcessPoolExecutor() as pool:
        files = {file.module: file for file in pool.map(analyse, paths, chunksize=8)}
    known = {
        name for name, file in files.items() if name.partition(".")[0] in _OURS and file.path.name != "__init__.py"
    }
    joining = Joining(files, module_map.read(TABLE, known), _read_renamed())
    joining.clashes()
    joining.rewrite()
    for fault in joining.faults:
        print(fault)
    if any(not fault.startswith("NOTE") for fault in joining.faults):
        return 1
    if "--try" in sys.argv:
        return 0
    write(joining)
    return 0


def write(joining: Joining) -> None:
    """Write the files of now, take away those of before, and change what texts say of them."""
    table = joining.table
    joined = table.joined()
    texts: dict[Path, str] = {}
    for now, parts in joined.items():
        bodies = {part: joining.body(part) for part in parts}
        pure = {part: re.search(r"\b[Pp]ure\b(?! HTML)", joining.files[part].docstring) is not None for part in parts}
        mixed = len(set(pure.values())) > 1
        lead = [part for part in parts if part.rpartition(".")[2] == now.rpartition(".")[2]]
        docstring = "\n\n".join(
            _PURE.sub("", joining.docstring(part)) if mixed else joining.docstring(part)
            for part in [*lead, *(part for part in parts if part not in lead)]
        )
        if len(parts) > 1:
            for part in parts:
                if bodies[part]:
                    heading = f"# == {part.rpartition('.')[2].replace('_', ' ')}{', pure' if pure[part] else ''} "
                    bodies[part] = f"{heading.ljust(119, '=')}\n\n\n{bodies[part]}"
        ends = "\n" if "\n" in docstring else ""
        head = [f'"""{docstring}{ends}"""', "", "from __future__ import annotations", ""]
        head += [line for line in joining.statements[now] if line != "from __future__ import annotations"]
        text = "\n".join(head) + "\n\n\n" + "\n\n\n".join(bodies[part] for part in joining.order(parts) if bodies[part])
        texts[ROOT / (now.replace(".", "/") + ".py")] = text + "\n"
    for module, file in joining.files.items():
        if module not in table.modules and file.path.name != "__init__.py":
            texts[file.path] = joining.changed(module)
    packages: dict[str, list[str]] = defaultdict(list)
    for module, file in joining.files.items():
        if file.path.name == "__init__.py" and module.partition(".")[0] in _OURS:
            packages[table.folders.get(module, module)].append(module)
        elif file.path.name == "__init__.py":
            texts[file.path] = joining.changed(module)
    inits: dict[Path, str] = {}
    for now, befores in packages.items():
        path = ROOT / now.replace(".", "/") / "__init__.py"
        befores.sort(key=lambda name: name != now)
        if len(befores) == 1:
            inits[path] = joining.changed(befores[0])
        else:
            first = joining.changed(befores[0])
            at = first.index('"""', 3) if joining.files[befores[0]].docstring else 0
            others = "\n\n".join(joining.docstring(each) for each in befores[1:])
            inits[path] = f"{first[:at].rstrip()}\n\n{others}\n{first[at:]}" if at else f'"""{others}\n"""\n{first}'
    for before, now in sorted(table.folders.items()):  # templates, style sheets, texts: what is no module goes along
        if before != now:
            for path in sorted((ROOT / before.replace(".", "/")).rglob("*")):
                inner = dotted(path.parent)
                if path.is_file() and path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts:
                    relative = path.relative_to(ROOT / before.replace(".", "/"))
                    if any(
                        inner == other or inner.startswith(other + ".")
                        for other in table.folders
                        if other.startswith(before + ".")
                    ):
                        continue
                    target = ROOT / now.replace(".", "/") / relative
                    target.parent.mkdir(parents=True, exist_ok=True)
                    path.rename(target)
    for file in joining.files.values():
        if file.module.partition(".")[0] in _OURS:
            file.path.unlink()
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", *_TEXTS], check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for name in filter(None, listed):
        path = ROOT / name
        if path.suffix == ".py" or not path.is_file():
            continue
        text = path.read_text("utf-8")
        for start, end, new in sorted(joining.mentions(text, "", name), reverse=True):
            text = text[:start] + new + text[end:]
        texts[path] = text
    for path, text in (texts | inits).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
