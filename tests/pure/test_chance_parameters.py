"""Which parameters time or chance made, and which URLs differ in these alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.room.replay.chance_parameters import _common_begin, _taken_apart, is_of_chance

pytestmark = pytest.mark.pure

AT = 1_619_866_800


@pytest.mark.parametrize(
    ("parameter", "is_one"),
    [
        ("_=1619866800123", True), ("_=17", False), ("cb=123456", True), ("cb=abcdef", False), ("t=1619866800", True),
        (f"t={AT + 86_400}", True), (f"t={AT + 86_401}", False), (f"x={(AT - 86_400) * 1000}", True),
        ("t=123456", False), ("t=16198668001", False), ("r=0.12345678", True), ("r=0.1234567", False),
        ("r=1.12345678", False), ("r=-0.12345678", False), ("price=0.99", False), ("_", False), ("", False),
        ("t=１６１９８６６８００", False),
    ],
)  # fmt: skip
def test_what_is_of_chance(parameter: str, is_one: bool) -> None:
    assert is_of_chance(parameter, AT) is is_one


@pytest.mark.parametrize(
    ("url", "begin", "without"),
    [
        ("http://e/a?_=1619866800123&b=2", "http://e/a?_=", "http://e/a?b=2"),
        ("http://e/a?b=2&r=0.12345678&_=1619866800", "http://e/a?b=2&r=", "http://e/a?b=2"),
        ("http://e/a?_=1619866800123", "http://e/a?_=", "http://e/a"),
        ("http://e/a?__wb_method=POST&b=2&at=1619866800", "http://e/a?__wb_method=POST",
         "http://e/a?__wb_method=POST&b=2"),
        ("http://e/a?_=1619866800&__wb_method=POST&b=2", "http://e/a?_=", "http://e/a?__wb_method=POST&b=2"),
    ],
)  # fmt: skip
def test_what_such_urls_have_in_common(url: str, begin: str, without: str) -> None:
    asked = _taken_apart(url, AT)
    assert (_common_begin(asked), asked.without()) == (begin, without)


@given(st.lists(st.sampled_from(["a=1", "b=2", "_=1619866800", "r=0.12345678", "a=1", "", "c"]), max_size=6))
def test_urls_that_may_answer_begin_alike_and_have_the_same_rest(parameters: list[str]) -> None:
    other = [parameter.replace("1619866800", "1619866999").replace("12345678", "987654321") for parameter in parameters]
    asked, found = (_taken_apart(f"http://e/?{'&'.join(each)}", AT) for each in (parameters, other))
    assert asked.fixed() == found.fixed()
    if asked.chance:
        assert f"{found.plain}?{'&'.join(other)}".startswith(_common_begin(asked))
    more = _taken_apart(f"http://e/?{'&'.join([*other, 'more=1'])}", AT)
    assert asked.fixed() != more.fixed()
