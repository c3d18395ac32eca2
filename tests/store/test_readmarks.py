"""The file that says which answer of a batch is being read (/Cr-6/): who killed how many readers, whoever died."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.crawl import resultreader
from agent.crawl.resultreader import MOST_DEATHS, ReadMarks
from tests.support.properties import examples

pytestmark = pytest.mark.store

POSITIONS = st.lists(st.integers(0, 2**62), min_size=1, max_size=5)


@given(st.lists(POSITIONS, max_size=8))
@settings(max_examples=examples(50), deadline=None)
def test_deaths_are_counted_by_answer(runs: list[list[int]]) -> None:
    """Each run reads some answers, and dies of the last one."""
    with tempfile.TemporaryDirectory() as folder:
        warc = Path(folder) / "000001.warc"
        killers: list[int] = []
        for run in runs:
            marks = ReadMarks(warc)
            assert marks.deadly == {each for each in killers if killers.count(each) >= MOST_DEATHS}
            for position in run:
                marks.begin(position)
            os.close(marks._fd)  # as the kernel does when it dies
            killers.append(run[-1])
            assert resultreader.deaths(warc) == killers.count(run[-1])
        known = resultreader.size(warc)
        ended = ReadMarks(warc)
        ended.begin(7)
        os.close(ended._fd)
        resultreader.forget(warc, known)  # nothing is to blame
        assert resultreader.size(warc) == known
        ReadMarks(warc).done()
        assert resultreader.size(warc) == 0 and list(Path(folder).iterdir()) == []


@given(st.binary(max_size=100))
@settings(max_examples=examples(50), deadline=None)
def test_a_damaged_file_accuses_nobody(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warc = Path(folder) / "000001.warc"
        resultreader.path_of(warc).write_bytes(content)
        assert resultreader.deaths(warc) <= len(content.splitlines())
        marks = ReadMarks(warc)
        marks.done()
        assert all(content.count(b"%d" % position) >= resultreader.MOST_DEATHS for position in marks.deadly)
