"""The page of tokens: made and shown once, listed without the secret, revoked; each one's own, and all for some."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest

from agent.operations.bearers import Bearers
from tests.desk.conftest import World
from tests.support.desks import Answer
from webarcfs.archive.catalogue import people, tokens
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.tokens import Scope, Token
from webarcfs.archive.catalogue.workflow import Role
from webarcfs.archive.model.errors import TokenRefused
from webarcfs.archive.model.metadata import now

pytestmark = pytest.mark.store
_BY = Acting("Adam", (Role.ADMINISTRATOR,), "adam")


def tokens_of(world: World, key: str) -> dict[str, Token]:
    return {token.name: token for token in (people.load(world.archive) or {})[key].tokens}


def secret_in(page: Answer) -> str:
    (secret,) = page.page.xpath('//input[@id="secret"]/@value')
    assert tokens.is_secret(secret)
    return str(secret)


def rows_in(page: Answer) -> list[str]:
    return [" ".join(row.text_content().split()) for row in page.page.xpath("//main//tbody/tr")]


def test_a_token_is_made_shown_once_and_revoked(own: World) -> None:
    """S-token-1, S-token-5: in two languages, without scripts."""
    carl = own.served.client("carl")
    page = carl.get("/tokens")
    assert "There is no token." in page.words and page.form("/tokens")["scopes"] == ["", "read"]
    made = carl.submit(page, "/tokens", {"name": "laptop", "scopes": ["", "read", "add"], "lasts": "30 days"})
    assert made.status == 200 and made.headers["cache-control"] == "private, no-store"
    secret = secret_in(made)
    token = tokens_of(own, "carl")["laptop"]
    assert token.hash == tokens.hash_token(secret) and token.scopes == (Scope.READ, Scope.ADD)
    assert token.expires - token.made == timedelta(30)
    assert Bearers(own.archive).of_text(secret, "192.0.2.9").acting.name == "Carl"
    for path in ("/tokens", "/tokens?lang=de", "/tokens.csv", "/tokens.json", "/", "/people"):
        text = carl.get(path).text
        assert secret not in text and token.hash[7:] not in text, path
    (row,) = rows_in(carl.get("/tokens"))
    assert row.startswith("laptopof Carl Read what persons of the archive see · Add files and data to documents")
    assert "from 192.0.2.9" in row
    german = carl.get("/tokens?lang=de")
    assert "Zuletzt benutzt" in german.words and "Dokumenten Dateien und Daten hinzufügen" in german.words
    done = carl.submit(german, "/tokens/revoke")
    assert "The token was revoked; it opens nothing any more." in done.words and tokens_of(own, "carl") == {}
    with pytest.raises(TokenRefused):
        Bearers(own.archive).of_text(secret, "192.0.2.9")


def test_a_form_that_is_sent_twice_makes_one_token(own: World) -> None:
    rita = own.served.client("rita")
    page = rita.get("/tokens")
    fields = {**page.form("/tokens"), "name": "laptop"}
    first, second = rita.post("/tokens", fields), rita.post("/tokens", fields)
    assert (first.status, second.status) == (200, 409)
    assert not second.page.xpath('//input[@id="secret"]') and secret_in(first) not in second.text
    assert tokens_of(own, "rita").keys() == {"laptop"}


def test_one_sees_the_own_tokens_and_who_may_change_people_all(own: World) -> None:
    """S-token-5."""
    for key in ("rita", "adam"):
        people.add_token(own.archive, key, f"of-{key}", [Scope.READ], by=_BY)
    rita, adam, anna = (own.served.client(key) for key in ("rita", "adam", "anna"))
    assert [row.split("of ")[0] for row in rows_in(rita.get("/tokens"))] == ["of-rita"]
    assert rows_in(anna.get("/tokens")) == [] and "of-rita" not in anna.get("/tokens.json").text
    assert [row.split("of ")[0] for row in rows_in(adam.get("/tokens"))] == ["of-adam", "of-rita"]
    taken = list(csv.DictReader(io.StringIO(adam.get("/tokens.csv").text)))
    assert [(row["person"], row["name"], row["may"], row["used"]) for row in taken] == [
        ("adam", "of-adam", "read", ""), ("rita", "of-rita", "read", "")]  # fmt: skip
    page = adam.get("/tokens")
    (form,) = page.page.xpath('//form[@action="/tokens/revoke"][input[@name="person"]/@value="rita"]')
    fields = {field.get("name"): field.get("value") for field in form.xpath(".//input")}
    stolen = anna.post("/tokens/revoke", {**fields, "token": _token_of(own, "anna", fields["token"])})
    assert stolen.status == 403 and tokens_of(own, "rita").keys() == {"of-rita"}
    assert "Change people: this needs the role administrator" in stolen.words
    assert "was revoked" in adam.post("/tokens/revoke", fields).words and tokens_of(own, "rita") == {}
    assert tokens_of(own, "adam").keys() == {"of-adam"}


def _token_of(world: World, key: str, other: str) -> str:
    """A form's token of another session, for the same state."""
    desk = world.served.desk
    state = desk.tokens.read(other, "", "").state
    session = next(one for one in desk.sessions._known.values() if one.person == key)
    return desk.tokens.form(session.public, "/tokens/revoke", state)


def test_a_form_of_an_older_list_revokes_no_other_token(own: World) -> None:
    people.add_token(own.archive, "rita", "laptop", [Scope.READ], by=_BY)
    rita = own.served.client("rita")
    page = rita.get("/tokens")
    people.revoke_tokens(own.archive, "rita", ["laptop"], by=_BY)
    people.add_token(own.archive, "rita", "laptop", [Scope.READ], by=_BY)
    late = rita.submit(page, "/tokens/revoke")
    assert late.status == 409 and "This token was revoked already" in late.words
    assert tokens_of(own, "rita").keys() == {"laptop"}


@pytest.mark.parametrize(("fields", "fault"), [
    ({"name": ""}, "Type letters, digits, - and _ alone"),
    ({"name": "<b>x</b>"}, "Type letters, digits, - and _ alone"),
    ({"name": "\u4f8b"}, "Type letters, digits, - and _ alone"),
    ({"name": "x" * 65}, "Type letters, digits, - and _ alone"),
    ({"name": "taken"}, "You have a token of this name."),
    ({"scopes": [""]}, "Choose what it is for."),
    ({"scopes": ["read", "mirror"]}, "Choose what it is for."),
    ({"scopes": ["all"]}, "Choose what it is for."),
    ({"lasts": "100 years"}, "Choose one of the list."),
])  # fmt: skip
def test_a_form_with_faults_is_shown_again(own: World, fields: dict[str, str | list[str]], fault: str) -> None:
    """S-token-2, S-token-3: a scope that the roles do not allow is offered to nobody, and not taken either."""
    people.add_token(own.archive, "rita", "taken", [Scope.READ], by=_BY)
    rita = own.served.client("rita")
    page = rita.get("/tokens")
    assert page.page.xpath('//input[@name="scopes"][@type="checkbox"]/@value') == ["read"]
    answer = rita.submit(page, "/tokens", {"name": "laptop", **fields})
    assert answer.status == 400 and fault in answer.words
    assert answer.form("/tokens")["name"] == [fields.get("name", "laptop")]
    assert tokens_of(own, "rita").keys() == {"taken"}


def test_today_says_which_of_the_own_tokens_end_soon(own: World) -> None:
    for name, days in (("night", 10), ("laptop", 80)):
        people.add_token(own.archive, "rita", name, [Scope.READ], expires=now() + timedelta(days), by=_BY)
    text = "Your token ends soon; its program needs another one: night"
    today = own.served.client("rita").get("/")
    assert text in today.words and "one: laptop" not in today.words
    assert "Ihr Token endet bald" in own.served.client("rita").get("/?lang=de").words
    assert "night" not in own.served.client("adam").get("/").words


def test_a_scope_of_a_role_that_is_gone_is_said(own: World) -> None:
    """S-token-2."""
    people.add_token(own.archive, "carl", "night", [Scope.READ, Scope.ADD], by=_BY)
    text = own.archive.people.read_text().replace('role = "curator"', 'role = "reviewer"')
    own.archive.people.write_text(text)
    (row,) = rows_in(own.served.client("carl").get("/tokens"))
    assert "The roles do not allow: Add files and data to documents" in row
