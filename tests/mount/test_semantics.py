"""Each paragraph of SEMANTICS.md has a test that names it, and each name in a test has its paragraph."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ID = re.compile(r"\bS-[a-z]+-\d+\b")


@pytest.mark.pure
def test_every_paragraph_has_its_test() -> None:
    document = (ROOT / "SEMANTICS.md").read_text("utf-8")
    paragraphs = re.findall(r"^\*\*(S-[a-z]+-\d+)\.\*\*", document, re.MULTILINE)
    assert len(paragraphs) == len(set(paragraphs))
    folders = [
        ROOT / "tests" / name for name in ("mount", "service", "crawl", "room", "pure", "exchange", "store", "desk")
    ]
    tests = [path for folder in folders for path in folder.glob("test_*.py")]
    docstrings = re.findall(r'^\s+"""(S-[^"]*)"""', "\n".join(map(_text, tests)), re.M)
    assert set(paragraphs) == set(ID.findall(" ".join(docstrings)))
    assert set(ID.findall(document)) == set(paragraphs)


def _text(path: Path) -> str:
    return path.read_text("utf-8")
