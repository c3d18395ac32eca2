"""Who may what at the desk: every route of the table without login, right, token; passwords, sessions, proxies."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from lxml import etree

from agent.crawl import job_folder
from agent.crawl.job_folder import JobState
from agent.desk import forms
from agent.desk.login import Sessions, hashed
from agent.desk.server import app
from agent.desk.server.app import ROUTES, DeskRoute
from agent.desk.theme import words
from agent.operations import records, who_asks
from agent.operations.who_asks import Guesses
from tests.desk.conftest import World
from tests.support import desks
from tests.support.crawls import run_command
from tests.support.desks import PASSWORD, PEOPLE, Answer, Client
from tests.support.waiting import until
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting, Person
from webarcfs.archive.catalogue.record import RecordState, Warrant
from webarcfs.archive.catalogue.workflow import (
    RIGHTS,
    RUNS,
    TABLE,
    Decision,
    Right,
    Role,
    WorkflowStep,
    in_row,
    roles_with,
)
from webarcfs.archive.model.errors import StepRefused
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.web.access_log import escaped
from webarcfs.web.routing import find_route

pytestmark = pytest.mark.store
#: Forms that need no right of their own, and why; a route that is added with a form needs one, or a reason here.
FREE = {
    "ticks": "they are kept in the URL alone",
    "step": "each step has its own right, which is asked for where the step is known",
    "password": "one's own",
    "address of the feed": "one's own",
    "tokens": "one's own",
    "revoke a token": "one's own; for others' the right to change people is asked for where the person is known",
    "language": "one's own",
    "logout": "one's own",
}
#: What every person of the archive may look at; a route that is added with a page needs a right, or its name here.
LOOKS = {
    "today", "snapshots", "log", "picture", "preview", "attachment", "snapshot as a file",
    "snapshot", "previewed page", "compare", "compare with any", "running", "publications", "publication", "registers",
    "report", "URLs of a report", "URLs of a report as a table", "missing page",
    "access", "options", "password", "feed", "address of the feed", "saved page",
    "crawls, as a file", "fields of a crawl, as a file",
    "history of a crawl, as a file", "attached files, as a file", "running, as a file", "finished, as a file",
    "tables of a report, as a file", "pages of a report, as a file", "publications, as a file", "formats, as a file",
    "types, as a file", "programs, as a file", "rules of access, as a file", "tokens", "tokens, as a file",
}  # fmt: skip
#: Forms of a role; a curator has them all but those about people.
_OF_REVIEW = {"reject", "reopen", "look"}
_OF_TEXTS = {"choose several", "change several", "description", "attach", "detach"}
_OF_PEOPLE = {"save person", "remove person"}
_OF_SETTINGS = {
    "new publication", "try a new publication", "publication", "try a publication", "retire", "keep in a register",
    "options",
}  # fmt: skip
_OF_SNAPSHOTS = {
    "new snapshot", "cancel", "order", "measure", "release", "release the ticked", "withdraw", "discard", "restore",
    "withhold", "lift", "patch", "save a page",
}  # fmt: skip
MAY = {
    Role.ARCHIVIST: _OF_REVIEW | _OF_TEXTS | _OF_SNAPSHOTS,
    Role.ADMINISTRATOR: _OF_TEXTS | _OF_SETTINGS | _OF_PEOPLE,
    Role.REVIEWER: _OF_REVIEW,
    Role.CURATOR: _OF_REVIEW | _OF_TEXTS | _OF_SNAPSHOTS | _OF_SETTINGS,
}
_KIND = {"Content-Type": "application/x-www-form-urlencoded"}


#: What parameters of paths are, where a test says nothing else.
_PARTS = {
    "record": "20260101T000000-p", "log": "crawl.log.gz", "kind": "xml", "pair": "a..b", "name": "p", "job": "x",
    "token": "x", "page": "web", "mark": "x", "feed": "x", "ending": "csv",
}  # fmt: skip


def path_of(route: DeskRoute, **parts: str) -> str:
    """A path of a route."""
    path = re.sub("{([a-z]+)(?::[a-z]+)?}", lambda match: {**_PARTS, **parts}[match[1]], route.path)
    return f"{path}20260101000000/http://e.org/" if path.endswith("/") and path != "/" else path


def example(route: DeskRoute, world: World) -> str:
    """A path of a route that exists, where it is about a snapshot."""
    return path_of(route, record=world.ids[1], pair=f"{world.ids[0]}..{world.ids[1]}", job=world.ids[1])


def state_of(world: World) -> object:
    """What no refused request may change."""
    files = [world.archive.people, world.archive.settings, world.archive.access_rules]
    return (
        Catalogue(world.archive).state(),
        [each.read_bytes() if each.exists() else b"" for each in files],
        sorted(each.name for each in world.archive.jobs.iterdir()),
    )


def persons_without(right: Right) -> list[str]:
    """A person of each role that lacks a right."""
    of_roles = {Role(role): key for key, (_, role) in PEOPLE.items()}
    return [key for role, key in of_roles.items() if right not in RIGHTS[role]]


def token_of(world: World, client: Client, action: str, state: str = "") -> str:
    """The token of a form that the desk made for a person."""
    session = world.served.desk.sessions.find(client.cookies[world.served.desk.sessions.cookie])
    assert session is not None
    return world.served.desk.tokens.form(session.public, action, state)


def person_with(right: Right | None) -> str:
    return next(key for key, (_, role) in PEOPLE.items() if right is None or right in RIGHTS[Role(role)])


def test_each_route_has_an_example_that_it_answers() -> None:
    for route in ROUTES:
        known = find_route(ROUTES, path_of(route))
        assert known is not None and known[0] is route, f"{route.name}: another route answers"
        assert route.get is not None or route.post is not None
        assert route.post is None or route.again is not None, f"{route.name}: what was typed would be lost"


def test_each_route_has_its_right() -> None:
    """What a role may do is written down here once more: a right that is changed, or forgotten, shows."""
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert {route.name for route in ROUTES if route.post and route.acts is None} == FREE.keys()
    assert {route.name for route in ROUTES if route.get and route.looks is None} == LOOKS
    for role, rights in RIGHTS.items():
        assert {route.name for route in ROUTES if route.post and route.acts in rights} == MAY[role], role


@pytest.mark.parametrize("step", RUNS)
def test_a_step_is_refused_to_who_lacks_its_right(world: World, step: WorkflowStep) -> None:
    before = state_of(world)
    path = f"/snapshot/{world.ids[1]}/step"
    for name in persons_without(TABLE[step].right):
        client = world.served.client(name)
        answer = client.post(path, {"token": token_of(world, client, path, "counted"), "step": step})
        assert answer.status == 403 and "this needs the role" in answer.words, name
    assert state_of(world) == before


def test_what_runs_is_told_to_persons_of_the_archive_alone(world: World) -> None:
    for method in ("GET", "HEAD", "POST"):
        answer = Client(world.served.port).ask(method, app.PATH)
        assert (answer.status, answer.body) == (403, b"")


@contextlib.contextmanager
def watching(client: Client) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    with contextlib.closing(connection):
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        connection.request("GET", app.PATH, headers={"Cookie": cookies})
        yield connection.getresponse()


def status_of_watching(client: Client) -> int:
    with watching(client) as response:
        return response.status


def test_who_watches_is_told_until_the_session_ends(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(forms, "WATCH_QUIET", 0.2)
    monkeypatch.setattr(forms, "WATCHERS", 1)
    client, other = own.served.client("carl"), own.served.client("anna")
    with watching(client) as response:
        assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert response.headers["Cache-Control"] == "no-store"
        state = next(line for line in response if line.startswith(b"data: "))
        assert json.loads(state.removeprefix(b"data: "))["newest"] == len(own.ids)
        assert b": still here\n" in response
        assert status_of_watching(other) == 503, "one more than may watch"
        client.submit(client.get("/"), "/logout")
        assert b"data" not in response.read(), "it ends"
    for _ in range(3):
        until(lambda: status_of_watching(other) == 200)  # whoever has gone watches no more


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: each.name)
def test_nobody_without_a_login_gets_anything(world: World, route: DeskRoute) -> None:
    before = state_of(world)
    path = example(route, world)
    for method in ("GET", "HEAD", "POST"):
        answer = Client(world.served.port).ask(
            method, path, b"a=b" if method == "POST" else None, _KIND if method == "POST" else {}
        )
        assert answer.status == 403, (method, path)
        assert world.ids[1] not in answer.text.replace(path, "")
    assert state_of(world) == before


@pytest.mark.parametrize("route", [each for each in ROUTES if each.looks or each.acts], ids=lambda each: each.name)
def test_who_lacks_the_right_is_refused(world: World, route: DeskRoute) -> None:
    before = state_of(world)
    path = example(route, world)
    for method, right in (("GET", route.looks if route.get else None), ("POST", route.acts if route.post else None)):
        for name in persons_without(right) if right is not None else ():
            client = world.served.client(name)
            body = None
            if method == "POST":
                body = f"token={token_of(world, client, route.action_of(path), 'counted')}&reason=x".encode()
            answer = client.ask(method, path, body, _KIND if body else {})
            assert answer.status == 403, (method, name)
            assert words.RIGHTS[right] in answer.words, "what it is"
            needed = in_row(roles_with(right), "or")
            assert f"{PEOPLE[name][0]}: {PEOPLE[name][1]}." in answer.words and f"the role {needed}." in answer.words
            holders = [full for full, role in PEOPLE.values() if right in RIGHTS[Role(role)]]
            assert all(holder in answer.words for holder in holders), "who to ask"
            german = client.ask(method, f"{path}?lang=de", body, _KIND if body else {}).words
            assert "dafür braucht es die Rolle" in german and " or " not in german, german
    assert state_of(world) == before


def _links_of(page: Answer) -> set[str]:
    return {link.partition("#")[0] for link in page.page.xpath("//main//a/@href")}


@pytest.mark.parametrize("key", PEOPLE)
@pytest.mark.parametrize("route", [each for each in ROUTES if each.get], ids=lambda each: each.name)
def test_a_page_has_the_forms_that_its_person_may_send_and_says_who_may_send_the_others(
    world: World, route: DeskRoute, key: str
) -> None:
    """S-people-3. Each page for each role: no form and no link that would be refused, and a word in its place."""
    rights = RIGHTS[Role(PEOPLE[key][1])]
    page = world.served.client(key).get(example(route, world))
    if route.looks is not None and route.looks not in rights:
        assert page.status == 403 and "this needs the role" in page.words
        return
    if "html" not in page.headers.get("content-type", "") or route.name in ("previewed page", "preview"):
        return
    actions = page.page.xpath("//form[@method='post']/@action") + page.page.xpath("//button/@formaction")
    for action in actions:
        known = find_route(ROUTES, action.partition("?")[0])
        assert known is not None, action
        assert known[0].acts is None or known[0].acts in rights, (key, route.name, action)
    for link in _links_of(page):
        known = find_route(ROUTES, link.partition("?")[0]) if link.startswith("/") else None
        assert known is None or known[0].looks is None or known[0].looks in rights, (key, route.name, link)
    named = {"publications": Right.PUBLICATIONS, "publication": Right.PUBLICATIONS, "registers": Right.PUBLICATIONS,
             "access": Right.WITHDRAW, "options": Right.OPTIONS, "snapshots": Right.CAPTURE,
             "snapshot": Right.DESCRIBE}  # fmt: skip
    right = named.get(route.name)
    if right is not None and page.status == 200:
        is_said = f"{words.RIGHTS[right]}: this needs the role {in_row(roles_with(right), 'or')}." in page.words
        assert is_said == (right not in rights), (key, route.name)


def test_who_waits_for_another_role_is_told_which(world: World) -> None:
    page = world.served.client("rita").get("/snapshots?waits=yes")
    assert "waits for the role archivist or curator" in page.words
    assert "wartet auf die Rolle Archivar oder Kurator" in world.served.client("rita").get("/snapshots?lang=de").words


def test_the_names_of_who_may_are_for_persons_of_the_archive_alone(world: World) -> None:
    for route in ROUTES:
        answer = Client(world.served.port).get(path_of(route), follow=False)
        assert not any(name in answer.text for name, _ in PEOPLE.values()), route.name


def test_a_history_names_the_role_that_allowed_each_act(own: World) -> None:
    carl = own.served.client("carl")
    path = f"/snapshot/{own.ids[1]}"
    assert carl.submit(carl.get(path), f"{path}/release").status == 200
    assert carl.submit(carl.get(path), f"{path}/withdraw", {"reason": "wrong \u05e2\u05e8\u05d1 <b>"}).status == 200
    history = [" ".join(row.text_content().split()) for row in carl.get(path).page.xpath("//table//tr")]
    assert any(row.endswith("withdrawnCarl as curatorwrong \u05e2\u05e8\u05d1 <b>") for row in history), history
    assert "als Kurator" in carl.get(f"{path}?lang=de").words
    log = run_command("record", "log", own.ids[1], "--archive", own.archive.root).out
    assert re.search(r"withdrawn +Carl \(curator\): wrong", log) and re.search(r"released +Carl \(curator\)", log)
    exported = run_command("record", "export", own.ids[1], "--format", "xml", "--archive", own.archive.root).out
    assert '<?acting role="curator" person="carl"?>' in exported


def test_who_checked_under_another_entry_does_not_release(own: World) -> None:
    """One human at the desk with a password, and by a proxy with the login name, is one person."""
    own.archive.settings.write_text(own.archive.settings.read_text().replace(
        'release = "by-hand"', 'release = "by-hand"\ntwo_persons = true', 1))  # fmt: skip
    twin = '[person.anna2]\nname = "anna  \u4f8b"\nroles = ["curator"]\nunix = "twin"\n'
    own.archive.people.write_text(own.archive.people.read_text() + twin)
    path = f"/snapshot/{own.ids[1]}"
    record, blob = Catalogue(own.archive).read(own.ids[1])
    checked = record.with_event("checked", "Anna \u4f8b", "", RecordState.CHECKED, warrant=Warrant("archivist", "anna"))
    Catalogue(own.archive).save([checked], "Anna", "checked", expected={record.id: blob})
    twin_entry = (people.load(own.archive) or {})["anna2"]
    with pytest.raises(StepRefused, match="two_persons wants another person"):
        acting = people.acting_person(people.load(own.archive) or {}, twin_entry)
        records.decide(own.archive, own.ids[1], Decision.RELEASE, acting)
    anna = own.served.client("anna")
    page = anna.get("/snapshots?waits=yes")
    assert "you checked it: somebody else releases it" in page.words
    bert = own.served.client("bert")
    assert bert.submit(bert.get(path), f"{path}/release").status == 200
    assert Catalogue(own.archive).read(own.ids[1])[0].state is RecordState.RELEASED


def test_the_people_page_warns_where_a_second_person_is_missing(own: World) -> None:
    own.archive.settings.write_text(own.archive.settings.read_text().replace(
        'release = "by-hand"', 'release = "by-hand"\ntwo_persons = true', 1))  # fmt: skip
    adam = own.served.client("adam")
    for key in ("bert", "carl", "rita"):
        page = adam.submit(adam.get(f"/people?key={key}"), "/people/remove", {"was": key})
    assert "nobody else may" in page.words, "Anna alone checks and releases"
    page = adam.submit(adam.get("/people?key=adam"), "/people/save", {"roles": ["administrator", "curator"]})
    assert "nobody else may" not in page.words
    assert (people.load(own.archive) or {})["adam"].roles == (Role.ADMINISTRATOR, Role.CURATOR)


@pytest.mark.parametrize("route", [each for each in ROUTES if each.post], ids=lambda each: each.name)
def test_a_form_without_our_token_does_nothing(world: World, route: DeskRoute) -> None:
    before = state_of(world)
    name = person_with(route.acts)
    client = world.served.client(name)
    elsewhere = token_of(world, client, "/elsewhere")  # used: a person's unused sessions are the first to go
    path = example(route, world)
    foreign = token_of(world, world.served.client(name), route.action_of(path))
    wrong = ("", "x", foreign, elsewhere)
    for token in wrong:
        answer = client.ask("POST", path, f"token={token}&reason=x&release=1".encode(), _KIND)
        assert answer.status == 403, token
    assert state_of(world) == before


def test_a_form_of_another_site_does_nothing(world: World) -> None:
    before = state_of(world)
    client = world.served.client("carl")
    page = client.get(f"/snapshot/{world.ids[1]}")
    path = f"/snapshot/{world.ids[1]}/release"
    for headers in ({"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Origin": f"http://127.0.0.1:{world.served.port + 1}"}):  # fmt: skip
        assert client.post(path, page.form(path), headers=headers).status == 403
    assert state_of(world) == before


def test_other_methods_and_large_bodies_are_refused(world: World) -> None:
    client = world.served.client("carl")
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert client.ask(method, "/").status == 405
    assert client.ask("POST", "/access/withhold", b"a=" + b"b" * 1_000_000, _KIND).status == 413
    assert client.ask("POST", "/access/withhold", b"{}", {"Content-Type": "application/json"}).status == 400
    assert client.ask("GET", "/", b"a body").status == 413
    assert client.ask("POST", "/access/withhold", b"&".join(b"a=1" for _ in range(2_500)), _KIND).status == 400


def test_every_answer_forbids_browsers_what_no_page_needs(world: World) -> None:
    client = world.served.client("carl")
    for path in ("/", "/snapshots", "/login", "/nothing"):
        headers = client.ask("GET", path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "private, no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


# -- login -------------------------------------------------------------------------------------------------------------


def words_of_wrong(answer: Answer) -> str:
    return str(answer.page.xpath('//*[@role="alert"]')[0].text_content())


def test_a_wrong_name_and_a_wrong_password_are_told_alike_and_take_as_long(own: World) -> None:
    client = Client(own.served.port)
    hashed("warm the hash of nobody up")
    spans: dict[str, float] = {}
    said = {}
    for name in ("anna", "nobody"):
        begun = time.perf_counter()
        answer = client.submit(client.get("/login"), "/login", {"name": name, "password": "wrong password"})
        spans[name] = time.perf_counter() - begun
        assert answer.status == 403
        said[name] = words_of_wrong(answer)
    assert said["anna"] == said["nobody"]
    assert spans["nobody"] > spans["anna"] / 4


def test_a_login_leads_to_where_it_was_asked_for_and_nowhere_else(world: World) -> None:
    client = Client(world.served.port)
    page = client.get("/snapshots?state=counted&q=%C3%A4")
    done = client.submit(page, "/login", {"name": "anna", "password": PASSWORD}, follow=False)
    assert (done.status, done.headers["location"]) == (303, "/snapshots?state=counted&q=%C3%A4")
    cookie = done.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Secure" not in cookie
    for back in ("//evil.test/", "http://evil.test/", "/\\evil.test", "javascript:alert(1)", "/logout", ""):
        fresh = Client(world.served.port)
        done = fresh.post("/login", {"name": "anna", "password": PASSWORD, "back": back}, follow=False)
        assert done.headers["location"] == "/"


def test_a_guesser_is_held_to_the_rate(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    from agent.desk import login

    monkeypatch.setattr(login, "matches", lambda known, word: (tried.append(word), known != "" and word == PASSWORD)[1])
    client = Client(own.served.port)
    page = client.get("/login")
    answers = [client.submit(page, "/login", {"name": "anna", "password": f"guess {n}"}) for n in range(12)]
    assert [each.status for each in answers] == [403] * who_asks.GUESSES_OF_BOTH + [429] * (
        12 - who_asks.GUESSES_OF_BOTH
    )
    assert len(tried) == who_asks.GUESSES_OF_BOTH
    assert int(answers[-1].headers["retry-after"]) <= who_asks.GUESS_SECONDS + 1
    assert client.submit(page, "/login", {"name": "anna", "password": PASSWORD}).status == 429, (
        "even the right one waits"
    )
    for n in range(40):
        client.submit(page, "/login", {"name": f"name {n}", "password": "x"})
    assert len(tried) == who_asks.GUESSES_OF_ADDRESS


def test_guesses_of_a_name_are_bounded_over_all_addresses_and_end() -> None:
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    tried = sum(guesses.begin("anna", f"10.0.{n // 200}.{n % 200}") == 0 for n in range(1_000))
    assert tried == who_asks.GUESSES_OF_NAME
    assert guesses.begin("ANNA", "10.9.9.9") > 0
    assert guesses.begin("bert", "10.9.9.9") == 0
    now[0] += who_asks.GUESS_SECONDS
    assert guesses.begin("anna", "10.0.0.1") == 0
    guesses.was_right("anna", "10.0.0.1")
    for n in range(50_000):
        guesses.begin(f"n{n}", f"a{n}")
    assert len(guesses._known) <= 3 * who_asks.GUESSERS


def test_a_session_is_good_at_its_own_desk_alone_and_ends_at_the_server(own: World) -> None:
    client = own.served.client("anna")
    assert client.get("/").status == 200
    stolen = dict(client.cookies)
    with desks.served(own.archive) as second:
        other = Client(second.port, dict(client.cookies))
        other.cookies[second.desk.sessions.cookie] = next(iter(client.cookies.values()))
        assert other.get("/").status == 403
    client.submit(client.get("/"), "/logout")
    assert Client(own.served.port, stolen).get("/").status == 403
    (value,) = stolen.values()
    for wrong in (value[:-1], value + "x", "x", "", value.replace(".", "", 1)):
        assert Client(own.served.port, {next(iter(stolen)): wrong}).get("/").status == 403


def test_sessions_end_when_idle_and_in_any_case_after_a_day() -> None:
    now = [0.0]
    sessions = Sessions(b"k" * 32, "here", lambda: now[0])
    _, cookie = sessions.begin(Person("anna", "Anna", (Role.ARCHIVIST,)))
    for _ in range(3):
        now[0] += forms.IDLE_SECONDS / 2
        assert sessions.find(cookie) is not None
    now[0] = forms.LONGEST_SECONDS + 1.0
    assert sessions.find(cookie) is None
    _, cookie = sessions.begin(Person("anna", "Anna", (Role.ARCHIVIST,)))
    now[0] += forms.IDLE_SECONDS + 1
    assert sessions.find(cookie) is None


def test_who_is_removed_or_gets_another_password_is_out_at_once(own: World) -> None:
    anna, adam = own.served.client("anna"), own.served.client("adam")
    people.set_password(
        own.archive, "anna", hashed("another good password"), people.Acting("Adam", (Role.ADMINISTRATOR,))
    )
    assert anna.get("/").status == 403
    bert = own.served.client("bert")
    done = adam.submit(adam.get("/people?key=bert"), "/people/remove", {"was": "bert"})
    assert done.status == 200 and "bert" not in done.words
    assert bert.get("/").status == 403
    assert "# people write comments" in own.archive.people.read_text()


def test_a_proxy_tells_who_it_is_and_nobody_else(own: World) -> None:
    own.archive.settings.write_text(
        own.archive.settings.read_text() + '\n[desk]\nheader = "X-Staff"\nproxies = ["127.0.0.1"]\n'
    )
    told = Client(own.served.port, headers={"X-Staff": "anna"})
    page = told.get("/")
    assert page.status == 200 and "Anna" in page.words
    assert told.submit(page, f"/snapshot/{own.ids[4]}/release").status == 200
    told.headers["X-Staff"] = "adam"
    assert "Adam" in told.get("/").words
    told.headers["X-Staff"] = "nobody"
    assert told.get("/").status == 403
    del told.headers["X-Staff"]
    assert told.get("/").status == 403, "a session of the proxy needs the proxy's word each time"
    own.archive.settings.write_text(own.archive.settings.read_text().replace('"127.0.0.1"', '"192.0.2.1"'))
    assert Client(own.served.port, headers={"X-Staff": "anna"}).get("/").status == 403


def test_people_are_added_and_change_their_passwords(own: World) -> None:
    adam = own.served.client("adam")
    page = adam.get("/people")
    fields: dict[str, Any] = {
        "key": "dora",
        "name": "Dora \u0416",
        "roles": ["archivist", "reviewer"],
        "password": "short",
    }
    refused = adam.submit(page, "/people/save", fields)
    assert refused.status == 400 and refused.form("/people/save")["name"] == ["Dora \u0416"]
    assert "A password has 10 to 500 characters" in refused.words
    assert f"At least {forms.PASSWORD_SHORTEST} characters. Empty:" in page.words
    assert f"Mindestens {forms.PASSWORD_SHORTEST} Zeichen. Leer:" in adam.get("/people?lang=de").words
    assert refused.form("/people/save")["roles"] == ["archivist", "reviewer"]
    none = adam.submit(page, "/people/save", {**fields, "roles": [], "password": "dora's long password"})
    assert none.status in (400, 409)
    done = adam.submit(refused, "/people/save", {**fields, "password": "dora's long password"})
    assert done.status == 200 and "Dora \u0416" in done.words
    assert people.load(own.archive)["dora"].roles == (Role.ARCHIVIST, Role.REVIEWER)  # type: ignore[index] # it is there
    dora = Client(own.served.port)
    assert dora.login("dora", "dora's long password").status == 200
    page = dora.get("/password")
    assert dora.submit(page, "/password", {"before": "x", "password": "a" * 12, "again": "a" * 12}).status == 400
    changed = dora.submit(dora.get("/password"), "/password", {
        "before": "dora's long password", "password": "her new password", "again": "her new password"})  # fmt: skip
    assert changed.status == 200
    assert dora.get("/").status == 200
    assert Client(own.served.port).login("dora", "her new password").status == 200
    late = adam.get("/people")
    own.archive.people.write_text(own.archive.people.read_text() + "# by hand\n")
    stale = adam.submit(late, "/people/save", {"key": "emil", "roles": ["reviewer"]})
    assert stale.status == 409 and "emil" not in own.archive.people.read_text()
    assert stale.form("/people/save")["key"] == ["emil"]


def test_a_login_name_that_is_there_already_locks_nobody_out(own: World) -> None:
    adam = own.served.client("adam")
    first = adam.submit(adam.get("/people?key=anna"), "/people/save", {"unix": "staff1"})
    assert first.status == 200
    before = own.archive.people.read_text()
    again = adam.submit(adam.get("/people?key=bert"), "/people/save", {"unix": "staff1"})
    assert again.status == 400 and "Anna \u4f8b has this login name" in again.words
    assert own.archive.people.read_text() == before
    named = adam.submit(adam.get("/people?key=bert"), "/people/save", {"unix": "anna"})
    assert named.status == 200
    assert Client(own.served.port).login("anna").status == 200, "the short name comes first"
    own.archive.settings.write_text(
        own.archive.settings.read_text() + '\n[desk]\nheader = "X-Staff"\nproxies = ["127.0.0.1"]\n'
    )
    told = {name: Client(own.served.port, headers={"X-Staff": name}).get("/") for name in ("anna", "staff1", "bert")}
    assert "Bert" in told["anna"].words and "Anna" not in told["anna"].words, "whose login name it is, not short name"
    assert "Anna" in told["staff1"].words
    assert told["bert"].status == 403, "the short name of a person who has a login name"


def test_a_file_that_is_broken_by_hand_is_told_to_those_who_may_mend_it(own: World) -> None:
    adam, rita, nobody = own.served.client("adam"), own.served.client("rita"), Client(own.served.port)
    assert all(each.get("/").status == 200 for each in (adam, rita))
    before = own.archive.people.read_text()
    in_log = "finds the reason in its log"
    for broken, why in (
        (before.replace('role = "reviewer"', 'role = "king"'), "person.rita.role: is none of"),
        (f'{before}\n[person.x]\n"$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA" = 1\n', "there is no such key"),
        (f"[person\n{before}", "at line 1, column"),
    ):
        own.archive.people.write_text(broken)
        told = adam.get("/")
        assert told.status == 503 and str(own.archive.people) in told.words and why in told.words
        assert "argon2" not in told.text
        for each in (rita, nobody, adam.stranger()):
            other = each.get("/")
            assert other.status == 503 and in_log in other.words and why not in other.words
    own.archive.people.write_text(before)
    (own.archive.catalogue / "refs/heads/main").write_text(f"{'f' * 40}\n")
    for each, is_told in ((adam, True), (rita, False)):
        other = each.get("/snapshots")
        assert other.status == 503 and (str(own.archive.catalogue) in other.words) == is_told, other.words
        assert (in_log in other.words) != is_told


# -- the feed ----------------------------------------------------------------------------------------------------------


def test_an_address_of_a_feed_opens_the_feed_alone_until_it_is_taken_back(own: World) -> None:
    rita, reader = own.served.client("rita"), Client(own.served.port)
    made = rita.submit(rita.get("/feed"), "/feed", {"word": "make"})
    (address,) = made.page.xpath('//input[@id="address"]/@value')
    place = address.removeprefix(own.served.origin)
    secret = place.removeprefix("/feed/").partition(".")[0]
    held = own.archive.jobs / "20261010T030000-p"
    held.mkdir()
    job_folder.save_item(held, JobState(job=held.name, publication="p", held="deadline", updated=format_time(now())))
    assert len(secret) > 40 and secret not in own.archive.people.read_text(), "its hash is kept"
    assert secret not in rita.get("/feed").text, "it is shown once"
    feed = reader.get(place)
    assert (feed.status, feed.headers["content-type"]) == (200, "application/atom+xml")
    assert (feed.headers["cache-control"], secret in feed.text) == ("private, no-cache", False)
    for condition, field in (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")):
        again = reader.ask("GET", place, headers={condition: feed.headers[field]})
        assert (again.status, again.body) == (304, b""), condition
    assert reader.ask("GET", place, headers={"If-None-Match": '"x"'}).body == feed.body
    entries = etree.fromstring(feed.body).findall("{*}entry")
    titles = [each.findtext("{*}title") or "" for each in entries]
    updated = [each.findtext("{*}updated") or "" for each in entries]
    assert updated == sorted(updated, reverse=True) and len({each.findtext("{*}id") for each in entries}) == len(titles)
    assert sum(each.startswith("Waits for a release: www.example.test, ") for each in titles) == 3
    assert any("webarc-agent start --archive" in each for each in titles)
    assert "A job waits for an order: p" in titles
    assert all(each.find("{*}link").get("href").startswith(f"{own.served.origin}/") for each in entries)  # type: ignore[union-attr] # it is there
    assert reader.get(place).body == feed.body, "nothing is new for being asked for"
    assert "Wartet auf eine Freigabe" in reader.get(place.replace("lang=en", "lang=de")).text
    assert "set-cookie" not in feed.headers
    for other in (f"/feed/{secret}x.atom", f"/feed/{secret[:-1]}.atom", "/feed/-.atom"):
        assert reader.get(other).status == 403, other
        assert rita.get(other).status == 404, other
    for path in ("/", "/feed", "/snapshots", f"/{secret}", f"/?feed={secret}"):
        assert reader.get(path).status in (403, 404), "it opens nothing else"
    assert reader.ask("POST", place.partition("?")[0], b"a=b", _KIND).status == 403
    assert escaped(f"GET {place} HTTP/1.1").startswith("GET /feed/-"), "no log has it"

    anew = rita.submit(rita.get("/feed"), "/feed", {"word": "make"})
    (second,) = anew.page.xpath('//input[@id="address"]/@value')
    second = second.removeprefix(own.served.origin)
    assert reader.get(place).status == 403 and reader.get(second).status == 200
    adam = own.served.client("adam")
    assert adam.submit(adam.get("/people?key=rita"), "/people/save", {"name": "Rita R."}).status == 200
    assert reader.get(second).status == 200, "what else is said of a person stays"
    assert "taken back" in rita.submit(rita.get("/feed"), "/feed", {"word": "end"}).words
    assert reader.get(second).status == 403
    third = rita.submit(rita.get("/feed"), "/feed", {"word": "make"}).page.xpath('//input[@id="address"]/@value')[0]
    people.set_password(own.archive, "rita", "", Acting("Adam", (Role.ADMINISTRATOR,)))
    assert reader.get(third.removeprefix(own.served.origin)).status == 403, "it goes with the password"
