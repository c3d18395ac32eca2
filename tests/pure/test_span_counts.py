"""How many versions the snapshots of a domain have, from the spans of these."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.index.database import SpanCounts

pytestmark = pytest.mark.pure

_SEQS = st.integers(0, 12)
_SPANS = st.lists(st.tuples(_SEQS, _SEQS, st.integers(1, 9)).filter(lambda span: span[0] < span[1]), max_size=12)


@given(_SPANS, st.integers(-1, 13))
def test_it_counts_the_spans_that_hold(spans: list[tuple[int, int, int]], seq: int) -> None:
    assert SpanCounts(spans).at(seq) == sum(count for since, until, count in spans if since <= seq < until)
