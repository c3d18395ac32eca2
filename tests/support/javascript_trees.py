"""What tree-sitter's grammar of JavaScript says of a script, in the terms of `webarcfs.room.replay.javascript`.

It builds a whole tree, so it is exact, and far too large to be asked for each answer. The tests compare the scanner
with it. `real_scripts` yields scripts that are on this machine. `with_names_of_the_window` and
`with_assignments_to_location` make other scripts of them, with the names and keywords that a scanner has to tell apart.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from webarcfs.room.replay.javascript import GLOBALS, ModuleReference, SpecifierKind, scan

_PARSER = Parser(Language(tree_sitter_javascript.language()))
_FUNCTIONS = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
        "class_static_block",
    }
)
_DECLARATIONS = frozenset({"function_declaration", "generator_function_declaration", "class_declaration"})
_NAMED = _DECLARATIONS | {"function_expression", "generator_function", "class"}
_LITERALS = frozenset({"string", "template_string"})
#: The longest script that is parsed: a tree takes 80 times the size of its script.
LONGEST = 200_000
ENOUGH = 600


@dataclass(frozen=True, slots=True)
class ScriptFacts:
    """The facts that a scan and a tree must agree on."""

    references: tuple[ModuleReference, ...]
    declared: frozenset[str]
    location_assignments: tuple[int, ...]
    is_module: bool


def facts_of_scan(source: str) -> ScriptFacts:
    """Return what the scanner says."""
    script = scan(source)
    assert script.is_whole, "the script is whole, and the scanner says that it is not"
    return ScriptFacts(script.references, script.declared, script.location_assignments, script.is_module)


def facts_of_tree(source: str) -> ScriptFacts | None:
    """Return what the tree says; None for a script that tree-sitter does not parse without an error."""
    root = _PARSER.parse(source.encode()).root_node
    return None if root.has_error else _Walk(source).facts(root)


class _Walk:
    """One walk through a tree."""

    def __init__(self, source: str) -> None:
        self.source = source
        #: The offset of each byte in characters; None where they are the same.
        self.characters: list[int] | None = None
        if not source.isascii():
            sizes = [len(character.encode()) for character in source]
            self.characters = [number for number, size in enumerate(sizes) for _ in range(size)] + [len(sizes)]
        self.references: list[ModuleReference] = []
        self.declared: set[str] = set()
        self.assignments: list[int] = []
        self.binds_location = False
        self.is_module = False

    def facts(self, root: Node) -> ScriptFacts:
        left = [(root, False, False)]
        while left:
            node, in_function, is_top = left.pop()
            self._look_at(node, in_function=in_function, is_top=is_top)
            inside = in_function or node.type in _FUNCTIONS
            top = node.type == "program" or (node.type == "export_statement" and is_top)
            left += [(child, inside, top) for child in node.named_children]
        return ScriptFacts(
            tuple(sorted(self.references, key=lambda reference: reference.start)),
            frozenset(self.declared),
            () if self.binds_location else tuple(sorted(self.assignments)),
            self.is_module,
        )

    def _look_at(self, node: Node, *, in_function: bool, is_top: bool) -> None:  # noqa: PLR0912 - a case for each kind
        kind = node.type
        if kind in ("import_statement", "export_statement"):
            self.is_module = True
            if (source := node.child_by_field_name("source")) is not None:
                self._refer(SpecifierKind.STATIC, source)
        elif kind == "import_specifier":
            self._bind(node.child_by_field_name("alias") or node.child_by_field_name("name"), is_top=True)
        elif kind in ("import_clause", "namespace_import"):
            for child in node.named_children:
                if child.type == "identifier":
                    self._bind(child, is_top=True)
        elif kind == "call_expression":
            self._call(node)
        elif kind == "meta_property":
            self.is_module = self.is_module or self._text(node).startswith("import")
        elif kind == "member_expression":
            self._member(node)
        elif kind in ("variable_declaration", "lexical_declaration"):
            is_outer = not in_function if kind == "variable_declaration" else is_top
            for child in node.named_children:
                if child.type == "variable_declarator":
                    self._bind(child.child_by_field_name("name"), is_top=is_outer)
        elif kind == "for_in_statement" and (declared := node.child_by_field_name("kind")) is not None:
            is_outer = self._text(declared) == "var" and not in_function
            self._bind(node.child_by_field_name("left"), is_top=is_outer)
        elif kind == "catch_clause":
            self._bind(node.child_by_field_name("parameter"), is_top=False)
        elif kind == "formal_parameters":
            for child in node.named_children:
                self._bind(child, is_top=False)
        elif kind == "arrow_function":
            self._bind(node.child_by_field_name("parameter"), is_top=False)
        elif kind == "assignment_expression":
            target = node.child_by_field_name("left")
            if target is not None and target.type == "identifier" and self._text(target) == "location":
                self.assignments.append(self._offset(target.end_byte))
        if kind in _NAMED:
            self._bind(node.child_by_field_name("name"), is_top=is_top and kind in _DECLARATIONS)

    def _call(self, node: Node) -> None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is not None and function.type == "import" and arguments is not None:
            given = [child for child in arguments.named_children if child.type != "comment"]
            if given:
                self._refer(SpecifierKind.DYNAMIC, given[0])

    def _member(self, node: Node) -> None:
        of, name = node.child_by_field_name("object"), node.child_by_field_name("property")
        if of is None or name is None or of.type != "meta_property" or self._text(name) != "url":
            return
        if self._text(of).startswith("import"):
            self._refer(SpecifierKind.META_URL, node)

    def _bind(self, pattern: Node | None, *, is_top: bool) -> None:
        left = [] if pattern is None else [pattern]
        while left:
            node = left.pop()
            match node.type:
                case "identifier" | "shorthand_property_identifier_pattern":
                    name = self._text(node)
                    self.binds_location = self.binds_location or name == "location"
                    if is_top and name in GLOBALS:
                        self.declared.add(name)
                case "object_pattern" | "array_pattern" | "rest_pattern":
                    left += node.named_children
                case "pair_pattern":
                    left += [child for child in [node.child_by_field_name("value")] if child is not None]
                case "object_assignment_pattern" | "assignment_pattern":
                    left += [child for child in [node.child_by_field_name("left")] if child is not None]

    def _refer(self, kind: SpecifierKind, node: Node) -> None:
        start, end = self._offset(node.start_byte), self._offset(node.end_byte)
        value: str | None = None
        if kind is not SpecifierKind.META_URL and node.type in _LITERALS:
            # The tests of escapes are tables; of real scripts, those without any are compared.
            is_plain = all(child.type == "string_fragment" for child in node.named_children)
            value = self.source[start + 1 : end - 1] if is_plain else None
        self.references.append(ModuleReference(kind, start, end, value))

    def _text(self, node: Node) -> str:
        return self.source[self._offset(node.start_byte) : self._offset(node.end_byte)]

    def _offset(self, byte: int) -> int:
        return byte if self.characters is None else self.characters[byte]


# == scripts ==========================================================================================================

_HERE = Path(__file__).parents[2]
#: Folders with scripts that webarcfs's own tests need, and those of Debian's packages.
_FOLDERS = (_HERE / ".venv" / "lib", _HERE / ".venv-pywb" / "lib", Path("/usr/share/javascript"))


def wheels() -> list[Path]:
    """Return the wheels with built front ends that are on this machine; `WEBARCFS_TEST_APPS` names their folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("WEBARCFS_TEST_APPS") or base / "webarcfs" / "test-apps")
    return sorted(folder.glob("*.whl"))


def real_scripts(longest: int = LONGEST) -> Iterator[tuple[str, str]]:
    """Yield the name and source of each script that is here: no source twice, none of more than `longest` bytes.

    Those of Debian's packages are much alike, so they are as many as are needed for `ENOUGH`.
    """
    seen: set[bytes] = set()
    for name, content in _contents():
        if len(seen) >= ENOUGH and "!" not in name:
            return
        digest = hashlib.sha256(content).digest()
        if len(content) <= longest and digest not in seen:
            seen.add(digest)
            try:
                yield name, content.decode()
            except UnicodeDecodeError:
                continue  # no script of the web today: they are UTF-8


def _contents() -> Iterator[tuple[str, bytes]]:
    for wheel in wheels():
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                if member.filename.endswith((".js", ".mjs")) and member.file_size <= LONGEST:
                    yield f"{wheel.name}!{member.filename}", archive.read(member)
    for folder in _FOLDERS:
        for path in sorted(folder.rglob("*.*js")) if folder.is_dir() else ():
            if path.suffix in (".js", ".mjs") and path.is_file() and path.stat().st_size <= LONGEST:
                yield str(path), path.read_bytes()


# == the same scripts with other names ================================================================================

_KEYWORDS = (
    "import",
    "function",
    "class",
    "catch",
    "location",
    "case",
    "var",
    "if",
    "export",
    "let",
    "return",
    "for",
    "switch",
    "const",
    "typeof",
    "of",
)
_UNTOUCHED = frozenset(
    {
        "get",
        "set",
        "async",
        "of",
        "let",
        "static",
        "from",
        "as",
        "await",
        "yield",
        "undefined",
        "arguments",
        "eval",
        "meta",
        "url",
        "target",
    }
)


def with_names_of_the_window(source: str, skipped: int = 0) -> str:
    """Return a script whose most frequent names are those of `GLOBALS`, and whose properties are keywords.

    `skipped`: so many of the most frequent names stay.
    """
    encoded = source.encode()
    names = _names(encoded)
    plain = Counter(_bytes(encoded, node) for node in names if node.type != "property_identifier")
    properties = Counter(_bytes(encoded, node) for node in names if node.type == "property_identifier")
    untouched = {word.encode() for word in _UNTOUCHED | GLOBALS}
    order = [name for name, _ in plain.most_common() if name not in untouched][skipped:]
    renamed = {name.encode(): f"{name}_".encode() for name in GLOBALS}
    renamed |= dict(zip(order, (name.encode() for name in sorted(GLOBALS)), strict=False))
    order = [name for name, _ in properties.most_common() if name not in untouched and name not in plain]
    renamed |= dict(zip(order, (word.encode() for word in _KEYWORDS), strict=False))
    return _replaced(encoded, [(node, renamed.get(_bytes(encoded, node), _bytes(encoded, node))) for node in names])


def with_assignments_to_location(source: str) -> str:
    """Return a script that assigns to `location` wherever it assigned to another name. It binds it nowhere."""
    encoded = source.encode()
    replaced: list[tuple[Node, bytes]] = []
    for node in _names(encoded):
        if node.parent is not None and node.parent.type == "assignment_expression":
            if node.type == "identifier" and node.parent.child_by_field_name("left") == node:
                replaced.append((node, b"location"))
        elif _bytes(encoded, node) == b"location":
            replaced.append((node, b"location_"))
    return _replaced(encoded, replaced)


def _names(encoded: bytes) -> list[Node]:
    """Return the names of a script, in its order."""
    names: list[Node] = []
    left = [_PARSER.parse(encoded).root_node]
    while left:
        node = left.pop()
        if node.type in ("identifier", "property_identifier") or node.type.startswith("shorthand_property_identifier"):
            names.append(node)
        left += node.named_children
    return sorted(names, key=lambda node: node.start_byte)


def _replaced(encoded: bytes, replaced: list[tuple[Node, bytes]]) -> str:
    pieces: list[bytes] = []
    at = 0
    for node, new in replaced:
        pieces += (encoded[at : node.start_byte], new)
        at = node.end_byte
    return b"".join([*pieces, encoded[at:]]).decode()


def _bytes(encoded: bytes, node: Node) -> bytes:
    return encoded[node.start_byte : node.end_byte]
