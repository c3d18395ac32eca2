"""Who asks by a token: people.toml as it is now, scopes within rights, guesses bounded, the last use written hourly."""

from __future__ import annotations

import json
import logging
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.operations import bearers, who_asks
from agent.operations.bearers import Bearers, TokenUse, UseLog
from agent.operations.who_asks import Guesses, Persons
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.catalogue.people import Acting, Person
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import Role
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import (
    Forbidden,
    SettingsError,
    TokenRefused,
    TooManyGuesses,
    WebarcError,
    http_status_of,
)
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system import locks

pytestmark = pytest.mark.store
_BY = Acting("Adam", (Role.ADMINISTRATOR,), "adam")
_HERE, _THERE = "192.0.2.1", "192.0.2.2"


class Clock:
    """A monotonic clock that a test moves, and the wall clock beside it."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.start = now()

    def monotonic(self) -> float:
        return 1000.0 + self.passed

    def wall(self) -> datetime:
        return self.start + timedelta(seconds=self.passed)


@dataclass
class World:
    """An archive with people, and what finds them."""

    archive: Archive
    bearers: Bearers
    clock: Clock

    def make(self, key: str, name: str, *scopes: Scope) -> str:
        return people.add_token(self.archive, key, name, scopes or [Scope.READ], by=_BY)[0]

    def restarted(self) -> Bearers:
        clock = self.clock.monotonic
        return Bearers(self.archive, guesses=Guesses(clock), use_log=UseLog(self.archive, clock))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    archive = directory.create(tmp_path / "archive")
    archive.people.write_text(
        '[person.adam]\nroles = ["administrator"]\nunix = "adam"\n'
        '[person.carl]\nname = "Carl"\nroles = ["curator"]\n[person.rita]\nroles = ["reviewer"]\n'
    )
    clock = Clock()
    monkeypatch.setattr(bearers, "now", clock.wall)
    guesses, use_log = Guesses(clock.monotonic), UseLog(archive, clock.monotonic)
    return World(archive, Bearers(archive, guesses=guesses, use_log=use_log), clock)


def refused(ask: Callable[[], object]) -> TokenRefused:
    with pytest.raises(TokenRefused) as caught:
        ask()
    assert http_status_of(caught.value) == 401
    return caught.value


# == who asks =========================================================================================================


def test_a_token_is_its_person_with_scopes_within_rights(world: World) -> None:
    """S-token-2, S-token-7."""
    secret = world.make("carl", "analysis", Scope.READ, Scope.ADD)
    bearer = world.bearers.of_text(secret, _HERE)
    assert (bearer.person.key, bearer.token.name, bearer.scopes) == ("carl", "analysis", {Scope.READ, Scope.ADD})
    assert (bearer.acting.name, bearer.acting.key) == ("Carl", "carl")
    assert secret not in repr(bearer) and bearer.token.hash not in repr(bearer)
    bearer.demand(Scope.ADD)
    with pytest.raises(Forbidden, match="the token analysis has not got the scope mirror"):
        bearer.demand(Scope.MIRROR)
    people.save(world.archive, Person("carl", "Carl", (Role.REVIEWER,)), _BY)
    fewer = world.bearers.of_text(secret, _HERE)
    assert fewer.scopes == {Scope.READ}
    with pytest.raises(Forbidden, match="Carl is reviewer; the scope add needs the role curator"):
        fewer.demand(Scope.ADD)
    assert world.bearers.still_holds(bearer, Scope.READ) and not world.bearers.still_holds(bearer, Scope.ADD)


def test_a_token_that_was_revoked_opens_nothing_with_the_next_request(world: World) -> None:
    """S-token-7."""
    first, second = world.make("carl", "a"), world.make("carl", "b")
    bearer = world.bearers.of_text(first, _HERE)
    assert world.bearers.still_holds(bearer, Scope.READ)
    people.revoke_tokens(world.archive, "carl", ["a"], by=_BY)
    assert "it was revoked" in str(refused(lambda: world.bearers.of_text(first, _HERE)))
    assert not world.bearers.still_holds(bearer, Scope.READ)
    assert world.bearers.of_text(second, _HERE).token.name == "b"
    again = world.make("carl", "a")
    refused(lambda: world.bearers.of_text(first, _HERE))
    assert not world.bearers.still_holds(bearer, Scope.READ), "another token of that name is another"
    assert world.bearers.of_text(again, _HERE).token.name == "a"


def test_a_token_ends_with_its_person(world: World) -> None:
    """S-token-6."""
    secret = world.make("rita", "a")
    bearer = world.bearers.of_text(secret, _HERE)
    people.remove(world.archive, "rita", _BY)
    refused(lambda: world.bearers.of_text(secret, _HERE))
    people.save(world.archive, Person("rita", "Rita", (Role.REVIEWER,)), _BY)
    refused(lambda: world.bearers.of_text(secret, _HERE))
    assert not world.bearers.still_holds(bearer, Scope.READ)
    world.archive.people.unlink()
    refused(lambda: world.bearers.of_text(world_secret(), _HERE))


def world_secret() -> str:
    """A token that no archive has."""
    return tokens.make_secret()


def test_a_token_ends_at_its_time_and_its_holder_learns_that(world: World) -> None:
    """S-token-6: it is no guess, either."""
    secret = world.make("carl", "a")
    bearer = world.bearers.of_text(secret, _HERE)
    world.clock.passed = 90 * 86_400 - 5
    world.bearers.of_text(secret, _HERE)
    world.clock.passed = 90 * 86_400 + 5
    for _ in range(3 * who_asks.GUESSES_OF_ADDRESS):
        assert "the token a ended at" in str(refused(lambda: world.bearers.of_text(secret, _HERE)))
    assert not world.bearers.still_holds(bearer, Scope.READ)
    refused(lambda: world.restarted().of_text(secret, _HERE))


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "LOW a:b", "bearer\t", "Token x"])
def test_a_request_without_a_token_is_asked_for_one_and_is_no_guess(world: World, header: str) -> None:
    """S-token-7."""
    for _ in range(3 * who_asks.GUESSES_OF_ADDRESS):
        error = refused(lambda: world.bearers.of_header(header, _HERE))
    assert error.challenge == 'Bearer realm="webarcfs"'
    secret = world.make("carl", "a")
    for word in ("Bearer", "bearer", "BEARER"):
        assert world.bearers.of_header(f"{word}  {secret} ", _HERE).person.key == "carl"


def test_what_is_no_token_is_refused_and_repeated_nowhere(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """S-token-1, S-token-7."""
    caplog.set_level(logging.DEBUG)
    secret = world.make("carl", "a")
    hostile = [secret[:-1], secret + "x", secret[:-1] + "-", "webarc_", "\udcff", "x" * 100_000, "a\r\nb"]
    hostile += [f"{secret} x", world_secret(), tokens.hash_token(secret)]
    for text in hostile:
        error = refused(lambda text=text: world.bearers.of_header(f"Bearer {text}", _HERE))  # type: ignore[misc]
        assert error.challenge == 'Bearer realm="webarcfs", error="invalid_token"'
        assert text not in str(error) or text == "webarc_"
    world.bearers.of_text(secret, _HERE)
    assert secret not in caplog.text and tokens.hash_token(secret)[7:] not in caplog.text


def test_a_file_with_faults_opens_nothing_until_it_is_repaired(world: World) -> None:
    """S-token-3."""
    secret = world.make("carl", "a")
    world.bearers.of_text(secret, _HERE)
    text = world.archive.people.read_text()
    world.archive.people.write_text(text + "[person.x]\n")
    with pytest.raises(SettingsError) as caught:
        world.bearers.of_text(secret, _HERE)
    assert http_status_of(caught.value) == 503
    world.archive.people.write_text(text)
    world.bearers.of_text(secret, _HERE)


def test_persons_may_be_shared(world: World) -> None:
    secret = world.make("carl", "a")
    persons = Persons(world.archive)
    assert Bearers(world.archive, persons).of_text(secret, _HERE).person == persons.all()["carl"]


# == guesses ==========================================================================================================


def guesses_until_refused(world: World, address: Iterator[str]) -> int:
    for number in range(1000):
        try:
            world.bearers.of_text(world_secret(), next(address))
        except TooManyGuesses as error:
            assert http_status_of(error) == 429 and 0 < error.seconds <= who_asks.GUESS_SECONDS
            return number
        except TokenRefused:
            continue
    return 1000


def always(address: str) -> Iterator[str]:
    while True:
        yield address


def test_an_address_guesses_so_often_and_who_was_right_goes_on(world: World) -> None:
    """S-token-8."""
    known, fresh = world.make("carl", "a"), world.make("carl", "b")
    world.bearers.of_text(known, _HERE)
    assert guesses_until_refused(world, always(_HERE)) == who_asks.GUESSES_OF_ADDRESS
    with pytest.raises(TooManyGuesses):
        world.bearers.of_text(fresh, _HERE)
    for _ in range(100):
        assert world.bearers.of_text(known, _HERE).token.name == "a"
    with pytest.raises(TooManyGuesses):
        world.bearers.of_text(world_secret(), _HERE)
    assert world.bearers.of_text(fresh, _THERE).token.name == "b"
    assert world.bearers.of_text(fresh, _HERE).token.name == "b", "it was right from elsewhere"
    people.revoke_tokens(world.archive, "carl", ["a"], by=_BY)
    with pytest.raises(TooManyGuesses):
        world.bearers.of_text(known, _HERE)
    world.clock.passed += who_asks.GUESS_SECONDS + 1
    refused(lambda: world.bearers.of_text(known, _HERE))


def test_a_network_of_a_customer_is_one_address_and_many_addresses_lock_nobody_out(world: World) -> None:
    """S-token-8."""
    assert guesses_until_refused(world, (f"2001:db8::{number:x}" for number in range(1, 1000))) == 20
    secret = world.make("carl", "a")
    assert guesses_until_refused(world, (f"10.0.{number // 250}.{number % 250}" for number in range(1001))) == 1000
    assert world.bearers.of_text(secret, "10.1.0.1").token.name == "a"


# == uses =============================================================================================================


def test_the_last_use_is_written_at_once_and_then_hourly(world: World) -> None:
    """S-token-9."""
    secret = world.make("carl", "a")
    (token,) = (people.load(world.archive) or {})["carl"].tokens
    path = world.archive.token_uses
    assert bearers.uses(world.archive) == {} and not path.exists()
    world.bearers.of_text(secret, _HERE)
    assert bearers.uses(world.archive) == {token.mark: TokenUse(world.clock.start, _HERE)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret not in path.read_text() and token.hash[7:] not in path.read_text()
    before, people_before = path.stat(), world.archive.people.stat()
    for _ in range(50):
        world.clock.passed += 60
        world.bearers.of_text(secret, _THERE)
    assert path.stat() == before
    again = world.restarted()
    again.of_text(secret, _THERE)
    assert path.stat() == before, "nor after a restart, or by another process"
    world.clock.passed = 3601
    again.of_text(secret, _THERE)
    assert bearers.uses(world.archive)[token.mark] == TokenUse(world.clock.wall(), _THERE)
    assert world.archive.people.stat() == people_before, "reading does not write people.toml"


def test_a_clock_that_was_set_back_writes_again(world: World) -> None:
    secret = world.make("carl", "a")
    world.clock.start += timedelta(days=30)
    world.bearers.of_text(secret, _HERE)
    world.clock.start -= timedelta(days=30)
    world.restarted().of_text(secret, _THERE)
    (use,) = bearers.uses(world.archive).values()
    assert use == TokenUse(world.clock.wall(), _THERE)


def test_uses_of_tokens_that_are_gone_go(world: World) -> None:
    first, second = world.make("carl", "a"), world.make("carl", "b")
    world.bearers.of_text(first, _HERE)
    world.bearers.of_text(second, _HERE)
    assert len(bearers.uses(world.archive)) == 2
    people.revoke_tokens(world.archive, "carl", ["a"], by=_BY)
    world.bearers.of_text(world.make("carl", "c"), _HERE)
    marks = {token.mark for token in (people.load(world.archive) or {})["carl"].tokens}
    assert bearers.uses(world.archive).keys() == marks


@pytest.mark.parametrize("content", [
    "", "[]", "{", '{"uses": []}', '{"uses": {"x": 1}}', '{"uses": {"x": {"at": "soon", "address": ""}}}', "\udcff",
    '{"uses": {"x": {"at": "2026-01-01T00:00:00"}}}',
])  # fmt: skip
def test_a_damaged_file_is_empty_and_is_replaced(world: World, content: str) -> None:
    world.archive.token_uses.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert bearers.uses(world.archive) == {}
    world.bearers.of_text(world.make("carl", "a"), _HERE)
    assert json.loads(world.archive.token_uses.read_text())["format"] == 1


@pytest.mark.parametrize("address", ["", "unix", "\x1b[2J", "\u202ex", "a" * 500, "<script>", "\udcff"])
def test_an_address_is_shown_in_one_plain_line(world: World, address: str) -> None:
    world.bearers.of_text(world.make("carl", "a"), address)
    (use,) = bearers.uses(world.archive).values()
    assert use.address.isascii() and use.address.isprintable() and len(use.address) <= 100


def test_a_request_does_not_depend_on_the_file(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """S-token-9: a folder in its place is like a full disk; nor does a request wait for another process."""
    secret = world.make("carl", "a")
    with locks.exclusive(world.archive.token_uses_lock):
        assert world.bearers.of_text(secret, _HERE).token.name == "a"
    assert not world.archive.token_uses.exists()
    world.archive.token_uses.mkdir()
    for _ in range(10):
        assert world.bearers.of_text(secret, _HERE).token.name == "a"
    assert caplog.text.count("cannot be written") == 1 and secret not in caplog.text
    world.archive.token_uses.rmdir()
    world.clock.passed = 3601
    world.bearers.of_text(secret, _HERE)
    assert len(bearers.uses(world.archive)) == 1


def test_threads_ask_at_once_while_tokens_come_and_go(world: World) -> None:
    lasting = world.make("carl", "lasting")
    errors: list[WebarcError] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            try:
                world.bearers.of_text(lasting, _HERE)
            except WebarcError as error:
                errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10):
            secret = world.make("rita", f"t{number}")
            assert world.bearers.of_text(secret, _THERE).token.name == f"t{number}"
            people.revoke_tokens(world.archive, "rita", [f"t{number}"], by=_BY)
            refused(lambda secret=secret: world.bearers.of_text(secret, _THERE))  # type: ignore[misc]
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert errors == []
