"""What users read has the vocabulary's words: messages, help, templates, translations, and the golden files of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

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
_TEMPLATES = (ROOT / "webarcfs/room/theme", ROOT / "agent/desk/theme", ROOT / "webarcfs/web")
#: Names in templates: of values, filters and classes of style.
_NO_TEXT = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{(?![^}]*_\().*?\}\}|<[^>]*>", re.DOTALL)

_SNAPSHOT = re.compile(r"\b(snapshots?|Momentaufnahmen?|Schnappsch\w+)\b", re.IGNORECASE)
_JINJA = re.compile(r"\{% trans\b.*?endtrans %\}|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
#: Texts of the desk and the reading room that mean the state of one host at one time → why. All others say crawl.
SNAPSHOTS = {
    "A crawl is one visit to a site: a program fetches its pages, and the archive keeps them. A snapshot is one host as"
    " it was at one time. A page is shown as its server sent it, and its links lead to other archived pages. If a page"
    " is not archived, a notice says so. All times are Central European Time without daylight saving (CET), one hour"
    " ahead of UTC.": "it says what both words mean",
    "All %(count)s hits of this snapshot": "a group of hits has one commitTag",
    "Snapshots with hits": "a group of hits has one commitTag",
    "by snapshot": "a group of hits has one commitTag",
    "One snapshot is not indexed yet.": "the full-text index counts commitTags",
    "%(n)s snapshots are not indexed yet.": "the full-text index counts commitTags",
    "In the snapshot of %(when)s.": "the frame's time is that of a commitTag",
    "In the snapshot of %(when)s as it was then: the crawl of that snapshot has no capture of it.":
        "the frame's time is that of a commitTag",
    "Not in this snapshot": "replay stays in what one host had at one time",
    "The snapshot of %(when)s does not have this address.": "replay stays in what one host had at one time",
    "This page in each snapshot, newest first": "a calendar has what each commitTag of its host did to a URL",
    "This page in each snapshot, by day": "a calendar has what each commitTag of its host did to a URL",
    "This page in each snapshot, over time": "a calendar has what each commitTag of its host did to a URL",
    "%(count)s snapshots, %(changes)s with changes:": "a calendar counts commitTags of its host",
    "all snapshots": "a calendar counts commitTags of its host",
    "snapshots": "a calendar counts commitTags of its host",
    "is no time and no snapshot": "`at` takes a commitTag",
    "<p lang=en>This page is not in this snapshot, or it cannot be shown.</p>"
    "<p lang=de>Diese Seite ist nicht in dieser Momentaufnahme, oder sie kann nicht gezeigt werden.</p>":
        "replay stays in what one host had at one time",
}  # fmt: skip
#: Names that nobody reads on a page: of routes, and of a file that is downloaded.
NAMES = {"new snapshot", "snapshot as a file"}


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


def texts_of_pages() -> Iterator[tuple[str, str, str]]:
    """Yield the texts of the desk, the reading room and the settings: where each stands, its msgid, and itself."""
    settings = ROOT / "webarcfs/archive/config/settings.py"
    folders = (ROOT / "agent/desk", ROOT / "webarcfs/room", ROOT / "webarcfs/web")
    for path in (*(path for folder in folders for path in folder.rglob("*.py")), settings):
        for line, text in messages(path):
            yield f"{path.relative_to(ROOT)}:{line}", text, text
    for theme in _TEMPLATES:
        for path in theme.rglob("*.html"):
            yield str(path.relative_to(ROOT)), "", " ".join(_JINJA.sub(" ", path.read_text("utf-8")).split())
        for path in theme.rglob("*.po"):
            with path.open("rb") as file:
                for entry in read_po(file, "de"):
                    ids = (entry.id,) if isinstance(entry.id, str) else tuple(entry.id)
                    german = (entry.string,) if isinstance(entry.string, str) else tuple(entry.string or ())
                    for text in (*ids, *german):
                        yield f"{path.relative_to(ROOT)}:{entry.lineno}", text if text in ids else ids[0], text


def test_a_crawl_is_called_a_snapshot_on_no_page() -> None:
    found = [(place, key, text) for place, key, text in texts_of_pages() if _SNAPSHOT.search(text)]
    wrong = [f"{place}: {text[:200]!r}" for place, key, text in found if key not in SNAPSHOTS and text not in NAMES]
    assert wrong == [], "\n".join(wrong)
    assert {key for _, key, _ in found} >= SNAPSHOTS.keys() | NAMES, "the lists have texts that are no more"


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
