"""What an import has to say of its files: each thing once."""

from __future__ import annotations

import pytest

from agent.importing.foreign import Tally

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("remarks", "lines"),
    [
        ([], []),
        ([("a.warc", "has no head", "at 17")], ["a.warc: has no head: at 17"]),
        ([("a.warc", "has no head", "at 17")] * 3, ["a.warc: has no head, 3 times; the first: at 17"]),
        (
            [("a", "x", "1"), ("b", "x", "2"), ("a", "y", "3"), ("a", "x", "4")],
            ["a: x, 2 times; the first: 1", "b: x: 2", "a: y: 3"],
        ),
        ([("a", "x", "y" * 1000)], [f"a: x: {'y' * 200}"]),
    ],
)
def test_lines(remarks: list[tuple[str, str, str]], lines: list[str]) -> None:
    told = Tally()
    for each in remarks:
        told.add(*each)
    assert told.lines() == lines
