"""What crawls met unchanged, as webarc.db packs it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import DatabaseDamaged
from webarcfs.archive.model.url_lists import SIZE, Met, MetBlock, blocks_of, extent_of, meetings_of, met_in, unpacked

pytestmark = pytest.mark.pure

_mets = st.builds(Met, st.integers(-(10**10), 2 * 10**11), st.integers(0, 3))


@given(st.dictionaries(st.integers(1, 4 * SIZE), _mets, max_size=30), st.randoms())
def test_what_is_packed_is_found(met: dict[int, Met], chance: object) -> None:
    pairs = list(met.items())
    chance.shuffle(pairs)  # type: ignore[attr-defined]
    packed = {block.number: block for block in blocks_of(pairs)}
    assert packed.keys() == {number // SIZE for number in met}
    for number in range(4 * SIZE + 1) if len(met) < 3 else [*met, 1, SIZE, 4 * SIZE]:
        block = packed.get(number // SIZE)
        rows = [] if block is None else [(7, block.base, unpacked(block))]
        assert meetings_of(rows, number) == ([(7, *met[number])] if number in met else [])


@given(st.dictionaries(st.integers(1, 3 * SIZE), _mets, min_size=1, max_size=30))
def test_a_block_tells_all_that_was_met_and_its_extent(met: dict[int, Met]) -> None:
    blocks = [*blocks_of(met.items())]
    assert {number: when for block in blocks for number, when in met_in(block)} == met
    for block in blocks:
        times = [when.time for number, when in met.items() if number // SIZE == block.number]
        assert extent_of(block) == (len(times), min(times), max(times))


def test_a_row_of_a_thousand_urls_is_small() -> None:
    day = [(number, Met(1_795_000_000 + number * 86_400 % 50_021, 1)) for number in range(SIZE)]
    assert len(next(blocks_of(day)).times) < 3 * SIZE
    assert len(next(blocks_of(day[:20])).times) < 200


@given(st.binary(max_size=100))
def test_other_bytes_are_damage(raw: bytes) -> None:
    with pytest.raises(DatabaseDamaged):
        unpacked(MetBlock(0, 0, raw))
