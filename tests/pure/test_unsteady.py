"""How `make test` judges tests that failed beside others."""

from __future__ import annotations

import re

import pytest

from tests.unsteady import LIST, ROOT, Verdict, judge, listed

pytestmark = pytest.mark.pure

_A, _B, _C = "tests/a.py::test_a", "tests/a.py::test_b[1]", "tests/a.py::test_c[x::y]"


def test_only_what_is_listed_and_passes_alone_is_no_failure() -> None:
    known = {"tests/a.py::test_a": "waits", "tests/a.py::test_b": "a lock"}
    verdicts = {each.test: each.verdict for each in judge([_A, _B, _C], [], known)}
    assert verdicts == {_A: Verdict.LISTED, _B: Verdict.LISTED, _C: Verdict.UNSTEADY}
    assert {each.verdict for each in judge([_A, _B, _C], [_A, _B, _C], known)} == {Verdict.FAILED}


@pytest.mark.parametrize("line", ["tests/a.py::test_a", "tests/a.py::test_a:", "words: why", "tests/a.py::test_a:   "])
def test_a_line_without_a_reason_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"unsteady\.txt"):
        listed(f"# all\n\n{line}\n")


def test_what_is_listed_is_there() -> None:
    for test in listed(LIST.read_text("utf-8")):
        file, _, function = test.partition("::")
        assert re.search(rf"def {re.escape(function.partition('[')[0])}\(", (ROOT / file).read_text("utf-8")), test
