"""No door is open: what is unreleased, closed, blocked or excluded is in no answer of any route.

What is absent, excluded or not released yet is the same answer, byte for byte.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest

from agent.indexing import fulltext
from agent.indexing.recovery import recover
from agent.operations import records
from tests.support import archives
from tests.support.rooms import Answer, Page, Served, digits, published, served, served_to_pywb
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.api.routes import PREFIX
from webarcfs.api.routes import ROUTES as API_ROUTES
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.workflow import Decision, apply_decision
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.metadata import CET, CommitTag
from webarcfs.room.replay.replay_url import Modifier
from webarcfs.room.server.app import PUBLIC_ROUTES, REPLAY_ROUTES, ROUTES
from webarcfs.web.routing import find_route

pytestmark = pytest.mark.store

DOMAIN, OTHER = "www.example.org", "held.example.org"
FIRST = datetime(2020, 1, 1, 12, tzinfo=CET)
SECOND, THIRD = FIRST + timedelta(days=10), FIRST + timedelta(days=20)
#: Words that only hidden documents have, by why they are hidden.
SECRETS = {
    "held": "xylophonist",
    "closed": "quixotically",
    "block": "zymurgical",
    "excl": "jabberwocky",
    "odom": "vexillology",
    "attached": "floccinaucity",
    "reason": "complainant",
    "collected": "sesquipedal",
}
#: URLs of the same length, so that answers can be compared.
URLS = {name: f"http://{DOMAIN}/{name}-aaaa.html" for name in ("held", "excl", "nope")}
BLOCKED, CLOSED = f"http://{DOMAIN}/block-a.html", "http://closed.example.org/closed-a.html"


def page(word: str) -> Page:
    return Page(f"<title>{word}</title><p>{word} <a href='http://{DOMAIN}/'>home</a>".encode(), title=word)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("doors"))
    home = f"http://{DOMAIN}/"
    published(
        made, DOMAIN, {home: page("first"), URLS["excl"]: page(SECRETS["excl"]), BLOCKED: page(SECRETS["block"])}, FIRST
    )
    published(made, DOMAIN, {home: page("second"), f"http://{DOMAIN}/b.html": page("shown")}, SECOND)
    hidden = {
        home: page(SECRETS["held"]),
        URLS["held"]: page(SECRETS["held"]),
        f"http://{DOMAIN}/pdf/x.pdf": page(SECRETS["held"]),
    }
    published(made, DOMAIN, hidden, THIRD, state=RecordState.COUNTED, held=True, title=SECRETS["held"])
    secret = SECRETS["odom"]
    rejected = {"publication": "q", "state": RecordState.REJECTED, "held": True, "signature": secret, "title": secret}
    published(made, OTHER, {f"http://{OTHER}/": page(secret)}, THIRD, **rejected)
    published(
        made, "closed.example.org", {CLOSED: page(SECRETS["closed"])}, SECOND, publication="r", closed_for="100 years"
    )
    # Of the one collection readers see nothing, of the other some crawls.
    made.collections.mkdir()
    hidden_only = f'title = "{SECRETS["collected"]}"\npublications = ["q"]\ncrawls = ["{RECORDS[2]}", "{RECORDS[3]}"]\n'
    (made.collections / "shut.toml").write_text(f'{hidden_only}picture = "p.png"\n')
    some = f'title = "Some"\npublications = ["p", "q"]\ncrawls = ["{RECORDS[3]}", "{RECORDS[4]}"]\npicture = "p.png"\n'
    (made.collections / "some.toml").write_text(some)
    (made.collections / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for number in (0, 1):
        name, note = f"{SECRETS['attached']}.pdf", SECRETS["attached"]
        records.attach(made, RECORDS[number], name, BytesIO(note.encode()), Acting("anna", None), note=note)
    recover(made)
    access_rules.withhold(made, URLS["excl"], "test", SECRETS["reason"], access=Access.EXCLUDE)
    access_rules.withhold(made, BLOCKED, "test", SECRETS["reason"], public_text="A court <ordered> it.")
    fulltext.bring_in_step(made)
    return made


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as found:
        yield found


TIMES = (digits(FIRST), digits(SECOND), digits(THIRD), "20991231235959", "2020")
RECORDS = [
    f"{each:%Y%m%dT%H%M%S}-{name}"
    for each, name in ((FIRST, "p"), (SECOND, "p"), (THIRD, "p"), (THIRD, "q"), (SECOND, "r"))
]


def about(url: str) -> Iterator[str]:
    """Every way to ask about a URL."""
    for time in TIMES:
        yield from (f"/web/{time}{modifier}/{url}" for modifier in Modifier)
    yield from (f"/cite{form}/{time}/{url}" for time in TIMES for form in ("", ".bib", ".ris", ".json"))
    yield f"/web/{url}"
    yield f"/web/*/{url}"
    yield f"/web/2020*/{url}"
    yield f"/web/*/{url[:-7]}*"
    yield from (f"/timemap/{form}/{url}" for form in ("link", "json", "cdxj"))
    yield f"/web/timemap/link/{url}"
    yield f"/diff/{TIMES[0]}..{TIMES[2]}/{url}"
    yield f"/side/{TIMES[0]}..{TIMES[1]}/{url}"
    said = quote(url, safe="")
    for form in ("text", "json", "cdxj"):
        for match in ("exact", "prefix", "host", "domain"):
            yield f"/cdx?url={said}&output={form}&matchType={match}"
    yield f"/cdx/search/cdx?url={said}&sort=reverse&limit=-5"
    yield f"/wayback/available?url={said}&timestamp={TIMES[2]}"
    yield from (f"/find?q={said}{place}" for place in ("", "&in=words", "&in=catalogue"))
    yield from (f"/versions?url={said}{more}" for more in ("", "&changes=1", "&year=2020&page=2"))
    yield f"/diff?url={said}&old=2020-01-01&new={TIMES[2]}"
    yield f"/urls?prefix={said[:-9]}"
    yield from (
        f"/notice/{kind}?url={said}&from={TIMES[2]}/{url}"
        for kind in ("external", "form", "function", "left-out", "closed")
    )
    yield f"/notice/form/{said}/{TIMES[2]}/{url}?q=x"
    yield f"/search?q=url:{said}"
    yield from api_about(url)


def api_about(url: str) -> Iterator[str]:
    """Every way of the API to ask about a URL."""
    domain, path = arc_paths.split(arc_paths.arc_path(url))
    document = quote(path)
    for tag in (CommitTag(when, domain) for when in (FIRST, SECOND, THIRD)):
        yield f"{PREFIX}/arcs/{tag}/{document}"
        for name in (arc_paths.data_name(url), "data.xml", "headers.http"):
            yield f"{PREFIX}/files/{tag}/{document}?name={name}"
        yield f"{PREFIX}/snapshots/{tag}/documents?after=/{domain}/{document}"
        yield f"{PREFIX}/nodes/{tag}/{document}?name=words"
        yield f"{PREFIX}/links?path=/{domain}/{document}&at={tag}"
        yield f"{PREFIX}/search?words={quote(f'url:{url}', safe='')}&at={tag}"
    yield f"{PREFIX}/links?target={quote(url, safe='')}&ever=1"
    yield f"{PREFIX}/search?words={quote(f'url:{url}', safe='')}"
    yield f"{PREFIX}/query?where={quote(f'url = {url!r}', safe='')}"


def api_general() -> Iterator[str]:
    """Every other route of the API."""
    yield from (
        f"{PREFIX}{path}" for path in ("/", "/openapi.yaml", "/domains", "/query", "/query?order_by=title&limit=9")
    )
    for domain in (DOMAIN, OTHER, "closed.example.org"):
        yield f"{PREFIX}/domains/{domain}/snapshots"
        yield f"{PREFIX}/query?domain={domain}"
        for tag in (CommitTag(when, domain) for when in (FIRST, SECOND, THIRD)):
            yield f"{PREFIX}/snapshots/{tag}/documents"
            yield f"{PREFIX}/snapshots/{tag}/changed"
            yield f"{PREFIX}/snapshots/{tag}.tar"
            yield from (f"{PREFIX}/links?{narrowing}&at={tag}" for narrowing in ("external=1", "broken=1"))
            yield f"{PREFIX}/search?words=home&at={tag}"
        yield f"{PREFIX}/links?domain={domain}&ever=1"
    for record in RECORDS:
        yield f"{PREFIX}/records/{record}"
        yield f"{PREFIX}/search?words=home&record={record}"
    for name in ("p", "q", "r"):
        yield from (f"{PREFIX}/records?publication={name}{more}" for more in ("", "&xml=1"))
        yield f"{PREFIX}/publications/{name}"
    yield from (f"{PREFIX}/records?xml=1", f"{PREFIX}/changes")
    for word in SECRETS.values():
        yield from (f"{PREFIX}/search?words={word}{more}" for more in ("", "&present=1", "&past=1"))
        yield from (f"{PREFIX}/search?words={word[:4]}*", f"{PREFIX}/links?word={word}")


def general() -> Iterator[str]:
    """Every other route, with all that it might be asked for."""
    yield from api_general()
    yield from (
        "/",
        "/?all=1",
        "/?order=oldest&all=1",
        "/about",
        "/status.json",
        "/metrics",
        "/healthz",
        "/news.atom",
        "/news.atom?page=2",
        "/opensearch.xml",
        "/robots.txt",
    )
    for name in ("p", "q", "r"):
        yield f"/publication/{name}"
        yield from (f"/crawls.{kind}?publication={name}" for kind in ("csv", "json"))
    yield from ("/crawls.csv", "/crawls.json?order=oldest", f"/urls.csv?prefix=http://{DOMAIN}/")
    yield from ("/collections", "/collections.csv", "/collections.json", f"/urls.json?prefix=http://{DOMAIN}/")
    for name in ("some", "shut"):
        yield from (f"/collection/{name}{end}" for end in ("", "/picture", "/crawls.csv", "/crawls.json"))
        yield from (
            f"/search{end}?q={word}&collection={name}" for end in ("", ".csv") for word in ("home", "xylophonist")
        )
        yield f"/search?q=home+collection:{name}"
    for record in RECORDS:
        yield from (
            f"/snapshot/{record}{end}" for end in ("", ".xml", ".json", ".dc", "/links", "/links.csv", "/links.json")
        )
        yield from (f"/compare/{record}..{other}" for other in RECORDS)
        yield from (f"/search{end}?q=home&record={record}" for end in ("", ".csv", ".json"))
    for word in SECRETS.values():
        yield from (f"/?q={word}", f"/crawls.csv?q={word}", f"/crawls.json?q={word}")
        yield from (
            f"/search{end}?q={word}{more}"
            for end in ("", ".csv", ".json")
            for more in ("", "&present=1", "&past=1", "&group=snapshot", "&language=en")
        )
        yield f"/search?q={word[:-1]}s"  # suggestions
        yield from (f"/curve{end}?q={word}&q=home" for end in ("", ".csv", ".svg"))
        yield f"/search?q={word[:4]}*"
    yield from (f"/search?q=home&at={time}@{DOMAIN}" for time in ("2020-01-01T12:00:00", "2020-01-21T12:00:00"))
    yield from ("/search?q=home&sort=date", "/search?q=home&group=snapshot", "/search?q=title:home&type=html")
    yield from ("/search?q=home&present=1", "/search?q=home&during=2019..2021", "/search.csv?q=home&at=2020")


def secrets_in(answer: Answer, asked: str) -> list[str]:
    """What an answer tells of what is hidden, beside the words that were asked with."""
    text = answer.text + "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    for word in SECRETS.values():
        if word in asked:  # the form shows what was typed
            text = re.sub(word, "", text)
    found = [word for word in SECRETS.values() if word in text]
    found += [each for each in (digits(THIRD),) if each in text and each not in asked]
    return found + [each for each in ("2020-01-21",) if each in text and each not in asked]


@pytest.mark.parametrize(
    "url", [*URLS.values(), BLOCKED, CLOSED, f"http://{DOMAIN}/", f"http://{OTHER}/", f"http://{DOMAIN}/pdf/x.pdf"]
)
def test_no_route_tells_of_what_is_hidden(room: Served, url: str) -> None:
    told = {path: found for path in about(url) if (found := secrets_in(room.get(path), path))}
    assert told == {}


def test_no_list_tells_of_what_is_hidden(room: Served) -> None:
    told = {path: found for path in general() if (found := secrets_in(room.get(path), path))}
    assert told == {}


def test_every_route_was_asked() -> None:
    paths = [path.partition("?")[0] for path in (*general(), *about(URLS["held"]))]
    asked = {known[0].name for path in paths if (known := find_route((*ROUTES, *PUBLIC_ROUTES), path))}
    assert asked == {route.name for route in (*ROUTES, *PUBLIC_ROUTES)}
    assert {route.name for route in REPLAY_ROUTES} == {"past", "robots"}
    in_api = {known[0].name for path in paths if (known := find_route(API_ROUTES, path))}
    assert in_api == {route.name for route in API_ROUTES}


def test_absent_excluded_and_unreleased_are_one_answer(room: Served) -> None:
    ways = {name: list(about(url)) for name, url in URLS.items()}
    for at in range(len(ways["nope"])):
        answers = {}
        for name, paths in ways.items():
            found = room.get(paths[at])
            body = re.sub(rb"(?:held|excl|nope)-a*", b"----", found.body)
            fields = {key: re.sub("(?:held|excl|nope)-a*", "----", each) for key, each in found.without_date().items()}
            answers[name] = (found.status, fields, body)
        assert answers["excl"] == answers["nope"], ways["excl"][at]
        assert answers["held"] == answers["nope"], ways["held"][at]


def test_closed_is_403_with_its_description_and_blocked_451(room: Served) -> None:
    for modifier in ("", "mp_", "id_", "im_"):
        assert room.get(f"/web/{TIMES[1]}{modifier}/{CLOSED}").status == 403
        blocked = room.get(f"/web/{TIMES[0]}{modifier}/{BLOCKED}")
        assert blocked.status == 451 and "A court &lt;ordered&gt; it." in blocked.text
    assert "5100" in room.get(f"/web/{TIMES[1]}/{CLOSED}").text
    assert room.get(f"/snapshot/{RECORDS[4]}").status == 200
    assert room.get(f"/snapshot/{RECORDS[4]}.xml").status == 403
    assert room.get(f"/snapshot/{RECORDS[2]}").status == 404


def test_programs_learn_of_an_embargo_and_of_a_withheld_document(room: Served) -> None:
    paths = {url: arc_paths.split(arc_paths.arc_path(url)) for url in (CLOSED, BLOCKED)}
    closed = room.get(f"{PREFIX}/arcs/{CommitTag(SECOND, paths[CLOSED][0])}/{paths[CLOSED][1]}")
    assert closed.status == 403 and "urn:webarcfs:error:Forbidden" in closed.text
    blocked = room.get(f"{PREFIX}/arcs/{CommitTag(FIRST, DOMAIN)}/{paths[BLOCKED][1]}")
    assert blocked.status == 451 and "A court <ordered> it." in blocked.text


def test_an_unreleased_snapshot_is_as_one_that_never_was(room: Served) -> None:
    """Byte for byte, but for the time that was asked for."""
    never = CommitTag(THIRD + timedelta(seconds=1), DOMAIN)
    for held, unknown in (
        (CommitTag(THIRD, DOMAIN), never),
        (CommitTag(THIRD, OTHER), CommitTag(THIRD, "none.example.org")),
    ):
        for rest in ("/documents", "/changed", ".tar"):
            answers = [room.get(f"{PREFIX}/snapshots/{tag}{rest}") for tag in (held, unknown)]
            assert [answer.status for answer in answers] == [404, 404]
            assert answers[0].text.replace(str(held), "-") == answers[1].text.replace(str(unknown), "-")
    records = [room.get(f"{PREFIX}/records/{name}") for name in (RECORDS[2], RECORDS[2].replace("-p", "-n"))]
    assert records[0].text == records[1].text.replace("-n'", "-p'")
    domains = [room.get(f"{PREFIX}/domains/{domain}/snapshots") for domain in (OTHER, "none.example.org")]
    assert domains[0].text.replace(OTHER, "-") == domains[1].text.replace("none.example.org", "-")


def test_what_is_released_is_there(room: Served) -> None:
    assert "first" in room.get(f"/web/{TIMES[0]}mp_/http://{DOMAIN}/").text
    assert "second" in room.get(f"/web/{TIMES[1]}mp_/http://{DOMAIN}/").text
    # The newest snapshot is not released: the present is the one before it.
    assert (
        room.get(f"/web/{TIMES[2]}mp_/http://{DOMAIN}/").headers["location"] == f"/web/{TIMES[1]}mp_/http://{DOMAIN}/"
    )


def test_pywb_gets_what_the_public_may_see(archive: Archive) -> None:
    with served_to_pywb(archive) as room:
        for url in (*URLS.values(), BLOCKED, CLOSED, f"http://{OTHER}/"):
            assert room.get(f"/cdx/pywb?url={quote(url, safe='')}&closest={TIMES[2]}&sort=closest").body == b""
            name = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
            for time in TIMES[:3]:
                assert room.get(f"/record/{time}/{name}").status == 404
        shown = room.get(f"/cdx/pywb?url={quote(f'http://{DOMAIN}/', safe='')}&closest={TIMES[2]}&sort=closest")
        assert digits(SECOND) in shown.text


def test_release_withdraw_and_rules_show_in_a_room_that_runs(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    home = f"http://{DOMAIN}/"
    published(made, DOMAIN, {home: page("first")}, FIRST, state=RecordState.CHECKED, held=True)
    recover(made)
    catalogue = Catalogue(made)
    with served(made) as room:
        path = f"/web/{TIMES[0]}mp_/{home}"
        assert room.get(path).status == 404
        record, _ = catalogue.read(RECORDS[0])
        catalogue.save([apply_decision(record, Decision.RELEASE, "test", "")], "test", "release")
        assert room.get(path).status == 200
        (rule, _) = access_rules.withhold(made, home, "test", "no", access=Access.EXCLUDE)
        assert room.get(path).status == 404
        access_rules.lift(made, rule.id, "test")
        assert room.get(path).status == 200
        made.access_rules.write_text("no rule\n")
        assert room.get(path).status == 503
        assert room.get("/status.json").status == 503
        made.access_rules.unlink()
        assert room.get(path).status == 200
