"""Parameters that time or chance made leave URLs, and nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.config.validators import chance_parameter
from webarcfs.archive.model.urls import CHANCE_PARAMETERS, canonical, without_chance
from webarcfs.room.replay.chance_parameters import _taken_apart

pytestmark = pytest.mark.pure

SECONDS = int(datetime(2026, 11, 25, 12, 30, tzinfo=UTC).timestamp())
MILLISECONDS = SECONDS * 1000 + 123
BASE = "http://e.org/a.json"


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (f"?_={SECONDS}", ""),
        (f"?_={MILLISECONDS}", ""),
        (f"?page=2&_={MILLISECONDS}", "?page=2"),
        (f"?_={MILLISECONDS}&page=2&t={SECONDS}&size=9", "?page=2&size=9"),
        (f"?T={SECONDS}", ""),
        (f"?_={SECONDS + 86_400}", ""),
        (f"?_={SECONDS - 86_400}", ""),
        (f"?_={SECONDS + 86_401}", None),
        (f"?_={SECONDS - 86_401}", None),
        ("?r=0.12345678", ""),
        ("?cb=0.1234567890123456789", ""),
        ("?r=0.1234567", None),
        ("?r=1.12345678", None),
        ("?r=-0.12345678", None),
        ("?_=17", None),
        ("?t=summer", None),
        (f"?since={SECONDS}", None),
        (f"?_=x{SECONDS}", None),
        (f"?_={SECONDS}00", None),
        (f"?{SECONDS}", None),
        (f"?x_={SECONDS}", None),
        (f"?a=1;_={SECONDS}", None),
        ("?_=", None),
        ("?", None),
        ("", None),
        (f"?__wb_method=POST&q=alpha&_={SECONDS}", "?__wb_method=POST&q=alpha"),
        (f"?q=%26_={SECONDS}", None),
    ],
)
def test_what_leaves_a_url(query: str, kept: str | None) -> None:
    bare = without_chance(BASE + query, CHANCE_PARAMETERS, SECONDS)
    assert bare == BASE + (query if kept is None else kept)


def test_no_names_keep_all() -> None:
    url = f"{BASE}?_={MILLISECONDS}&r=0.123456789"
    assert without_chance(url, (), SECONDS) == url
    assert without_chance(url, ("other",), SECONDS) == url


def test_a_path_that_looks_like_it_stays() -> None:
    url = f"http://e.org/_={SECONDS}/a"
    assert without_chance(url, CHANCE_PARAMETERS, SECONDS) == url


_FIXED = st.sampled_from(
    ["a=1", "b=", "", "c", "_=17", "t=5", "a=1", "q=x%26y", "since=1795609800", "r=0.5", "%C3%A4=1"]
)
_OFFSET = st.integers(-80_000, 80_000)
#: A name, what is added to the time of two days, and what the value is made of.
_CHANGING = st.tuples(st.sampled_from(CHANCE_PARAMETERS), st.tuples(_OFFSET, _OFFSET), st.integers(0, 2))


def _value(seconds: int, offset: int, kind: int) -> str:
    return (str(seconds + offset), str((seconds + offset) * 1000 + 7), f"0.{offset + 10**9}")[kind]


_MADE = st.builds(
    lambda name, offset, kind: f"{name}={_value(SECONDS, offset, kind)}",
    st.sampled_from(CHANCE_PARAMETERS),
    _OFFSET,
    st.integers(0, 2),
)


@given(st.lists(_FIXED | _CHANGING, max_size=8))
def test_what_two_days_ask_for_has_one_url(parameters: list[str | tuple[str, tuple[int, int], int]]) -> None:
    urls = set()
    for day, when in enumerate((SECONDS, SECONDS + 400 * 86_400)):
        query = "&".join(
            parameter
            if isinstance(parameter, str)
            else f"{parameter[0]}={_value(when, parameter[1][day], parameter[2])}"
            for parameter in parameters
        )
        urls.add(without_chance(f"{BASE}?{query}", CHANCE_PARAMETERS, when))
    assert len(urls) == 1
    kept = [parameter for parameter in parameters if isinstance(parameter, str)]
    is_unchanged = len(kept) == len(parameters)
    assert urls == {f"{BASE}?{'&'.join(kept)}" if any(kept) or is_unchanged else BASE}


@given(st.lists(_FIXED | _MADE, max_size=8))
def test_it_is_canonical_and_done_once(parameters: list[str]) -> None:
    url = canonical(f"{BASE}?{'&'.join(parameters)}") if parameters else BASE
    bare = without_chance(url, CHANCE_PARAMETERS, SECONDS)
    assert bare == canonical(bare)
    assert without_chance(bare, CHANCE_PARAMETERS, SECONDS) == bare


@given(st.lists(_FIXED | _MADE, max_size=8))
def test_replay_takes_for_chance_what_a_crawl_drops(parameters: list[str]) -> None:
    """So a script that asks with another time finds what was captured without it."""
    url = f"{BASE}?{'&'.join(parameters)}" if parameters else BASE
    bare = without_chance(url, CHANCE_PARAMETERS, SECONDS)
    assert _taken_apart(bare, SECONDS).without() == _taken_apart(url, SECONDS).without()


@given(st.text(max_size=40), st.lists(st.text(max_size=4), max_size=3))
def test_no_text_raises(text: str, names: list[str]) -> None:
    assert len(without_chance(text, names, SECONDS)) <= len(text)


def test_the_setting_has_names_alone() -> None:
    assert CrawlSettings().drop_parameters == CHANCE_PARAMETERS
    assert tuple(map(chance_parameter, CHANCE_PARAMETERS)) == CHANCE_PARAMETERS
    assert chance_parameter("NoCache") == "nocache"
    for value in ("", "a b", "a=", "a&b", 1, "x" * 101, "ä"):
        with pytest.raises(ValueError, match="no name of a parameter"):
            chance_parameter(value)
