"""What users read has the vocabulary's words: messages, help, templates, translations, and the golden files of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import ROOT

pytestmark = pytest.mark.pure

#: Words that the vocabulary replaces, wherever they stand, with what takes their place.
INSTEAD = {
    r"(go(es|ne)?|went|going) on": "resume, continue",
    r"(?<!-)anew": "rebuild, start over",
    r"mend(s|ed|ing)?": "repair",
    r"read again": "reload",
    r"pass(es|ed)? over": "skip",
    r"says? no": "disable",
    r"visitors?": "reader",
    r"(?<!page-)requisites?": "embedded resource",
    r"gate": "access rules",
    r"seed [0-9]": "nothing: the work has no numbers for users",
    r"/?(Cr|Fi|Ar|Cl|Sv|Xm|Db)-\d[\d.]*/?": "nothing: ids of requirements are for REQUIREMENTS.md",
    r"BT-[a-z]+-\d+": "nothing: ids of requirements are for REQUIREMENTS.md",
}
_WORDS = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in INSTEAD), re.IGNORECASE)
_TEMPLATES = (ROOT / "webarcfs/room/theme", ROOT / "agent/desk/theme")
#: Names in templates: of values, filters and classes of style.
_NO_TEXT = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{(?![^}]*_\().*?\}\}|<[^>]*>", re.DOTALL)


def _is_command(node: ast.AST) -> bool:
    """Whether the docstring is its help."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(word in ast.unparse(each) for each in decorators for word in ("command", "group"))


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string literals that may be sentences, and the help of commands, each with its line."""
    tree = ast.parse(path.read_text("utf-8"))
    silent = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and not _is_command(node):
            silent.add(id(body[0].value))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in silent
            and " " in node.value
        ):
            yield node.lineno, " ".join(node.value.split())


def texts() -> Iterator[tuple[str, str]]:
    """Yield all that users read, each with where it stands."""
    for package in ("webarcfs", "agent"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from ((f"{path.relative_to(ROOT)}:{line}", text) for line, text in messages(path))
    for theme in _TEMPLATES:
        for path in sorted(theme.rglob("*.html")):
            said = re.findall(r"_\(\s*\"([^\"]*)\"", path.read_text("utf-8"))
            plain = _NO_TEXT.sub(" ", path.read_text("utf-8"))
            yield from ((f"{path.relative_to(ROOT)}", text) for text in (*said, plain))
        for path in sorted(theme.rglob("*.po")):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if not line.startswith("#"):
                    yield f"{path.relative_to(ROOT)}:{number}", line
    for path in sorted((ROOT / "tests/golden").glob("*.txt")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", re.sub(r"<[^>]*>|\\", lambda tag: " "[: len(tag[0]) - 1], line)


def test_no_text_for_users_has_a_word_that_the_vocabulary_replaces() -> None:
    found = [f"{place}: {match[0]!r} in {text[:200]!r}" for place, text in texts() for match in _WORDS.finditer(text)]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("the next start goes on", True),
        ("it is repaired, and goes along", False),
        ("see /Cr-1.2/", True),
        ("aggregate", False),
    ],
)
def test_the_words_are_found_whole(text: str, is_found: bool) -> None:
    assert (_WORDS.search(text) is not None) == is_found
