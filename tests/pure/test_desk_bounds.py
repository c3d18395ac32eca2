"""The bounds of the desk's memory of guesses and sessions: nobody's flood takes what others have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.desk import forms
from agent.desk.login import Session, Sessions
from agent.operations import who_asks
from agent.operations.who_asks import Guesses
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.workflow import Role

pytestmark = pytest.mark.pure


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


# -- guesses -----------------------------------------------------------------------------------------------------------


def _tried(guesses: Guesses, name: str, addresses: Iterator[str]) -> int:
    """How many guesses of a name are tried, each from another address."""
    count = 0
    while not guesses.begin(name, next(addresses)):
        count += 1
    return count


def _addresses(begin: int = 0) -> Iterator[str]:
    return (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(begin, 1 << 22))


def test_a_flood_of_other_names_does_not_set_a_guesser_free(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(who_asks, "GUESSERS", 100)
    guesses, addresses = Guesses(clock), _addresses()
    assert _tried(guesses, "anna", addresses) == who_asks.GUESSES_OF_NAME
    for number in range(2_000):
        clock.now += 0.01
        assert guesses.begin(f"name {number}", next(addresses)) == 0
    assert guesses.begin("anna", next(addresses)) > 0
    assert len(guesses._known) <= 300


def test_a_refused_guess_leaves_nothing_behind(clock: _Clock) -> None:
    guesses = Guesses(clock)
    for number in range(who_asks.GUESSES_OF_ADDRESS):
        assert guesses.begin(f"name {number}", "192.0.2.1") == 0
    known = len(guesses._known)
    for number in range(1_000):
        assert guesses.begin(f"other {number}", "192.0.2.1") > 0
    assert len(guesses._known) == known
    clock.now += who_asks.GUESS_SECONDS
    assert guesses.begin("anna", "192.0.2.1") == 0


def test_who_waits_as_long_as_was_said_may_try_again(clock: _Clock) -> None:
    guesses = Guesses(clock)
    waits = [guesses.begin("anna", "192.0.2.1") for _ in range(2 * who_asks.GUESSES_OF_BOTH)]
    assert [wait > 0 for wait in waits] == [False] * who_asks.GUESSES_OF_BOTH + [True] * who_asks.GUESSES_OF_BOTH
    clock.now += waits[-1]
    assert guesses.begin("anna", "192.0.2.1") == 0
    guesses.was_right("anna", "192.0.2.1")
    assert guesses.begin("anna", "192.0.2.1") == 0


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("unix", "unix", True),
    ],
)
def test_what_is_one_address(clock: _Clock, one: str, other: str, *, is_same: bool) -> None:
    guesses = Guesses(clock)
    for _ in range(who_asks.GUESSES_OF_BOTH):
        assert guesses.begin("anna", one) == 0
    assert (guesses.begin("anna", other) > 0) is is_same


# -- sessions ----------------------------------------------------------------------------------------------------------


def _person(key: str) -> Person:
    return Person(key, key, (Role.ARCHIVIST,))


def _is_open(sessions: Sessions, begun: tuple[Session, str]) -> bool:
    return sessions.find(begun[1]) is begun[0]


def test_a_program_without_cookies_takes_nobodys_session(clock: _Clock) -> None:
    """Behind a proxy each request without a cookie begins a session."""
    sessions = Sessions(b"k", "here", clock)
    anna, bert = (sessions.begin(_person(key), key) for key in ("anna", "bert"))
    assert _is_open(sessions, anna) and _is_open(sessions, bert)
    for _ in range(3 * forms.SESSIONS):
        clock.now += 0.1
        last = sessions.begin(_person("anna"), "anna")
    assert _is_open(sessions, anna) and _is_open(sessions, bert) and _is_open(sessions, last)
    assert len(sessions._known) <= forms.SESSIONS_OF_PERSON + 1


def test_of_all_sessions_the_person_with_most_loses_one(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "SESSIONS", 10)
    sessions = Sessions(b"k", "here", clock)
    first = sessions.begin(_person("bert"))
    for _ in range(100):
        clock.now += 1
        begun = sessions.begin(_person("anna"))
        assert _is_open(sessions, begun)
    assert _is_open(sessions, first) and len(sessions._known) == 10


def test_a_renewed_session_has_another_cookie_and_name(clock: _Clock) -> None:
    sessions = Sessions(b"k", "here", clock)
    session, cookie = sessions.begin(_person("anna"))
    name = session.public
    renewed = sessions.renew(session)
    assert sessions.find(cookie) is None and sessions.find(renewed) is session
    assert sessions.named(name) is None and sessions.named(session.public) is session
