"""What archived scripts send, with real pywb and a real browser: the right answer, or why there is none."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import chromium, needs_chromium
from tests.support.livesites import CAPTURED
from tests.support.rooms import Page, Served, digits, published, served
from tests.support.sources import ROOT
from tests.support.waiting import PATIENCE
from webarcfs.warc.request_key import METHODS, RequestKey, key_of
from webarcfs.web import limits

pytestmark = pytest.mark.store

_PYWB = ROOT / ".venv-pywb" / "bin" / "wayback"
_HOST = "http://api.test"
_FORM, _JSON, _TEXT = "application/x-www-form-urlencoded", "application/json", "text/plain"
_AT = int(CAPTURED.timestamp())
_GRAPHQL = {"query": "{ me { name } }", "variables": {"n": 1}}
#: What was captured: method, path, type, body, answer.
_ANSWERS = (
    ("POST", "/search", _JSON, b'{"q":"alpha"}', b'{"hit":"first"}'),
    ("POST", "/search", _JSON, b'{"q":"beta"}', b'{"hit":"second"}'),
    ("POST", "/search", _JSON, b'{"a":1,"b":2}', b'{"hit":"ordered"}'),
    ("POST", "/form?x=1", _FORM, b"a=1&b=two", b"form"),
    ("POST", "/text", _TEXT, b"words", b"text"),
    ("POST", "/graphql", _JSON, json.dumps(_GRAPHQL, separators=(",", ":")).encode(), b'{"data":{"me":"graph"}}'),
    ("PUT", "/put", _TEXT, b"x", b"put"),
    ("PATCH", "/put", _JSON, b'{"a":null}', b"patch"),
    ("DELETE", "/put", "", b"", b"delete"),
    ("POST", "/token", _FORM, b"q=1&csrf_token=old", b"token"),
    ("POST", "/timed", _JSON, json.dumps({"q": 1, "at": _AT * 1000 + 17}).encode(), b"timed"),
    ("POST", "/bad", _JSON, b'{"q":1}', b"no such thing"),
)
_SCRIPT = """
const shown = {}, ends = [];
async function ask(name, path, how) {
  try {
    const answer = await fetch(path, how);
    shown[name] = answer.status + " " + (await answer.text()).trim();
  } catch (error) { shown[name] = String(error); }
}
const json = body => ({method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)});
(async () => {
  await ask("alpha", "/search", json({q: "alpha"}));
  await ask("beta", "http://api.test/search", json({q: "beta"}));
  await ask("gamma", "/search", json({q: "gamma"}));
  await ask("order", "search", json({b: 2, a: 1}));
  await ask("form", "/form?x=1", {method: "POST", body: new URLSearchParams({a: 1, b: "two"})});
  await ask("text", "/text", {method: "POST", body: "words"});
  await ask("graphql", "/graphql", json(%s));
  await ask("put", "/put", {method: "PUT", body: "x"});
  await ask("patch", "/put", {method: "PATCH", headers: {"content-type": "application/json"}, body: '{"a":null}'});
  await ask("delete", "/put", {method: "DELETE"});
  await ask("token", "/token", {method: "POST", body: new URLSearchParams({q: 1, csrf_token: "new"})});
  await ask("timed", "/timed", json({q: 1, at: Date.now()}));
  await ask("redirected", "/redirected", json({q: 1}));
  await ask("archived error", "/bad", json({q: 1}));
  await ask("long", "/search", {method: "POST", body: "x".repeat(2 << 20)});
  const files = new FormData(); files.append("a", new Blob(["x"]), "a.txt");
  await ask("files", "/search", {method: "POST", body: files});
  await ask("binary", "/search", {method: "POST", body: new Blob(["x"], {type: "image/png"})});
  const sent = new XMLHttpRequest();
  sent.open("POST", "/search"); sent.setRequestHeader("content-type", "application/json");
  await new Promise(done => { sent.onloadend = done; sent.send('{"q":"beta"}'); });
  shown.xhr = sent.status + " " + sent.responseText;
  shown.beacon = navigator.sendBeacon("/beacon", "seen");
  await ask("stamp", "/data.json?_=" + Date.now() + "&page=2");
  await ask("random", "/data.json?page=3&r=" + (0.123456789 + Math.random() / 10));
  await ask("unstamped", "/plain.json?_=" + Date.now());
  await ask("two", "/two.json?_=" + Date.now());
  await ask("other", "/data.json?page=4&_=" + Date.now());
  await ask("old", "/old.json?at=1500000000");
  await ask("dropped", "/dropped.json?_=" + Date.now() + "&page=1&from=" + Date.now());
  await ask("draw", "/draw.json?lot=0.222222222&t=" + Date.now());
  await ask("no draw", "/draw.json?lot=0.333333333&t=" + Date.now());
  document.getElementById("shown").textContent = JSON.stringify(shown);
})();
""" % json.dumps(_GRAPHQL)  # noqa: UP031 # the script has braces


@dataclass
class World:
    """A room with pywb, and its access log."""

    room: Served
    names: dict[str, str]
    origin: str
    replay: str
    log: Path


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def url_of(method: str, url: str, kind: str, body: bytes) -> str:
    key = key_of(method, url, kind, body)
    assert isinstance(key, RequestKey)
    return key.url


def _pages() -> dict[str, Page | None]:
    pages: dict[str, Page | None] = {
        f"{_HOST}/page.html": Page(f"<title>p</title><p id=shown></p><script>{_SCRIPT}</script>".encode()),
        f"{_HOST}/loop.html": Page(
            b"<title>l</title><p id=shown>0</p><script>let n=0;async function send(){for(;;){"
            b"await fetch('/loop',{method:'POST',body:'x'.repeat(16000)}).catch(()=>0);"
            b"document.getElementById('shown').textContent=++n}}for(let i=0;i<40;i++)send()</script>"
        ),
        f"{_HOST}/search": Page(b"the page of a GET", "text/plain"),
        f"{_HOST}/data.json?_={_AT * 1000 + 5}&page=2": Page(b"stamp", _JSON),
        f"{_HOST}/data.json?page=3&r=0.987654321": Page(b"random", _JSON),
        # As a browser's crawl has them: `_` is dropped, and what has another name stays.
        f"{_HOST}/dropped.json?page=1&from={_AT * 1000 + 3}": Page(b"dropped", _JSON),
        f"{_HOST}/draw.json?lot=0.111111111": Page(b"first draw", _JSON),
        f"{_HOST}/draw.json?lot=0.222222222": Page(b"second draw", _JSON),
        f"{_HOST}/plain.json": Page(b"unstamped", _JSON),
        f"{_HOST}/two.json?_={_AT * 1000 + 1}": Page(b"one", _JSON),
        f"{_HOST}/two.json?_={_AT * 1000 + 2}": Page(b"two", _JSON),
        f"{_HOST}/old.json?at=1400000000": Page(b"old", _JSON),
        f"{_HOST}/after.json": Page(b"after", _JSON),
    }
    for method, path, kind, body, answer in _ANSWERS:
        key = url_of(method, _HOST + path, kind, body)
        pages[key] = Page(answer, _JSON if answer[:1] == b"{" else "text/plain", status=410 if path == "/bad" else 200)
    return pages


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if not _PYWB.exists():
        pytest.skip("needs `make pywb`")
    folder = tmp_path_factory.mktemp("posts")
    archive = archives.make_archive(folder)
    led = url_of("POST", f"{_HOST}/redirected", _JSON, b'{"q":1}')
    published(archive, "api.test", _pages(), CAPTURED, redirects={led: f"{_HOST}/after.json"})
    recover(archive)
    ports = _free(), _free()
    origin, replay = f"http://room.test:{ports[0]}", f"http://replay.test:{ports[1]}"
    log = folder / "access.log"
    command = [
        sys.executable, "-P", "-c", "from webarcfs.commands.cli import main; main()", "serve",
        "--archive", archive.root, "--listen", f"127.0.0.1:{ports[0]}",
        "--replay-listen", f"127.0.0.1:{ports[1]}", "--origin", origin,
        "--replay-origin", replay, "--engine", "pywb", "--workers", "1", "--access-log", log,
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert b"reading room" in server.stdout.readline()
        names = {"room.test": "127.0.0.1", "replay.test": "127.0.0.1"}
        yield World(Served(*ports), names, origin, replay, log)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(120)
        if server.stdout is not None:
            server.stdout.close()


@pytest.fixture(scope="module")
def browser(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("browser"), names=world.names | {"*": "~NOTFOUND"}) as found:
        yield found


@pytest.fixture(scope="module")
def shown(browser: Browser, world: World) -> Mapping[str, Any]:
    tab = browser.new_page()
    tab.goto(f"{world.origin}/web/{digits(CAPTURED)}/{_HOST}/page.html")
    place = tab.frame_locator("iframe").locator("#shown")
    place.filter(has_text="{").wait_for(timeout=1_000 * PATIENCE)
    found: Mapping[str, Any] = json.loads(place.inner_text())
    tab.close()
    return found


@needs_chromium()
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("alpha", '200 {"hit":"first"}'), ("beta", '200 {"hit":"second"}'), ("order", '200 {"hit":"ordered"}'),
        ("form", "200 form"), ("text", "200 text"), ("graphql", '200 {"data":{"me":"graph"}}'), ("put", "200 put"),
        ("patch", "200 patch"), ("delete", "200 delete"), ("token", "200 token"), ("timed", "200 timed"),
        ("redirected", "200 after"), ("archived error", "410 no such thing"), ("xhr", '200 {"hit":"second"}'),
        ("gamma", "404 the archive has no answer to this request"),
        ("long", "413 the body of the request has more than 16384 bytes, or its URL is too long"),
        ("files", "415 the body of the request is multipart"), ("binary", "415 the body of the request is no text"),
    ],
)  # fmt: skip
def test_a_script_gets_the_answer_that_was_captured(shown: Mapping[str, Any], name: str, expected: str) -> None:
    """S-post-5."""
    assert shown[name] == expected


@needs_chromium()
def test_a_beacon_does_nothing(shown: Mapping[str, Any], world: World) -> None:
    """S-post-5. pywb's script may keep it to itself; one that is sent is a POST as any other."""
    assert shown["beacon"] is True
    headers = {"Content-Type": _TEXT, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"}
    assert send(world, place("/beacon"), b"seen", headers=headers)[0] == 404


@needs_chromium()
@pytest.mark.parametrize(
    ("name", "expected"),
    [("stamp", "200 stamp"), ("random", "200 random"), ("unstamped", "200 unstamped"), ("two", "404"),
     ("other", "404"), ("old", "404")],
)  # fmt: skip
def test_a_time_or_a_random_number_costs_no_answer(shown: Mapping[str, Any], name: str, expected: str) -> None:
    """S-post-6. Of two that differ in it alone, none is the right one; an old time is a value as any other."""
    assert shown[name][: len(expected)] == expected


@needs_chromium()
def test_the_access_log_says_that_another_url_answered(shown: Mapping[str, Any], world: World) -> None:
    """S-post-6."""
    assert shown
    lines = world.log.read_text().splitlines()
    marked = [line for line in lines if " chance:" in line]
    assert {line.rpartition(" chance:")[2] for line in marked} >= {"_", "r", "at"}
    assert all(line.split()[-2] == "replay" for line in marked)
    assert not [line for line in marked if "alpha" in line]


@needs_chromium()
def test_what_a_browser_captured_without_a_parameter_answers_with_it(shown: Mapping[str, Any]) -> None:
    """S-post-6: another parameter of chance stays in the captured URL, by its value or by the only one there is."""
    assert shown["dropped"] == "200 dropped"
    assert shown["draw"] == "200 second draw"
    assert shown["no draw"].startswith("404")


# == without a browser =================================================================================================


def send(
    world: World, path: str, body: bytes | Iterator[bytes] = b"", *, method: str = "POST",
    headers: Mapping[str, str] | None = None, port: int = 0,
) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
    """Send a request to the replay listener."""
    connection = http.client.HTTPConnection("127.0.0.1", port or world.room.replay_port, timeout=60)
    try:
        connection.request(method, path, body, {"Host": world.replay.partition("://")[2], **(headers or {})},
                           encode_chunked=not isinstance(body, bytes))  # fmt: skip
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def place(path: str, modifier: str = "mp_") -> str:
    return f"/web/{digits(CAPTURED)}{modifier}/{_HOST}{path}"


_ALPHA, _IS_JSON = b'{"q":"alpha"}', {"Content-Type": _JSON}


def test_an_answer_says_which_url_it_has(world: World) -> None:
    status, headers, body = send(world, place("/search"), _ALPHA, headers=_IS_JSON)
    assert (status, body) == (200, b'{"hit":"first"}')
    key = url_of("POST", f"{_HOST}/search", _JSON, _ALPHA)
    assert headers["content-location"] == f"/web/{digits(CAPTURED)}id_/{key}"
    assert headers["memento-datetime"] and f"<{key}>" in headers["link"]


@pytest.mark.parametrize("length", [1, 300])
def test_a_body_in_chunks_is_taken(world: World, length: int) -> None:
    parts = [_ALPHA[at : at + length] for at in range(0, len(_ALPHA), length)]
    headers = _IS_JSON | {"Transfer-Encoding": "chunked"}
    assert send(world, place("/search"), iter(parts), headers=headers)[::2] == (200, b'{"hit":"first"}')
    many = (b"x" * 1_000 for _ in range(3_000))
    assert send(world, place("/search"), many, headers=headers)[0] == 413


def test_a_time_of_the_page_that_is_no_capture_is_followed(world: World) -> None:
    later = f"/web/20990101000000mp_/{_HOST}/search"
    status, headers, body = send(world, later, _ALPHA, headers=_IS_JSON)
    assert (status, body) == (200, b'{"hit":"first"}')
    assert headers["content-location"].startswith(f"/web/{digits(CAPTURED)}id_/")


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.test"},
     {"Origin": "null"}, {"Sec-Fetch-Site": "same-origin", "Origin": "http://room.test"}],
)  # fmt: skip
def test_a_page_of_another_site_gets_no_answer(world: World, headers: dict[str, str]) -> None:
    """S-post-5."""
    status, _, body = send(world, place("/search"), _ALPHA, headers=_IS_JSON | headers)
    assert status == 403 and b"first" not in body
    own = {"Sec-Fetch-Site": "same-origin", "Origin": world.replay}
    assert send(world, place("/search"), _ALPHA, headers=_IS_JSON | own)[0] == 200


def test_a_form_is_not_sent(world: World) -> None:
    headers = {"Content-Type": _FORM, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
    assert send(world, place("/form?x=1"), b"a=1&b=two", headers=headers)[0] == 405


@pytest.mark.parametrize("path", ["/", "/robots.txt", "/static/x.js", f"/web/{_HOST}/a", "/web/2026/x", "/~x/web/"])
def test_only_below_archived_pages_is_a_body_taken(world: World, path: str) -> None:
    """S-post-5."""
    assert send(world, path, b"x")[0] == 405


def test_the_listener_of_the_room_takes_no_body(world: World) -> None:
    """S-post-5."""
    for method in METHODS:
        host = {"Host": world.origin.partition("://")[2]}
        status, headers, _ = send(world, place("/search"), _ALPHA, method=method, headers=host, port=world.room.port)
        assert status == 405 and headers["allow"] == "GET, HEAD, OPTIONS"
    status, headers, _ = send(world, place("/search"), method="OPTIONS")
    assert status == 204 and set(METHODS) < set(headers["access-control-allow-methods"].split(", "))
    assert send(world, place("/search"), b"x", method="GET")[0] == 413
    assert send(world, place("/search"), b"x", method="TRACE")[0] == 405


def test_the_built_in_engine_takes_no_body(tmp_path: Path) -> None:
    """S-post-5."""
    archive = archives.make_archive(tmp_path)
    published(archive, "api.test", _pages(), CAPTURED)
    recover(archive)
    with served(archive, two_origins=True) as room:
        assert room.get(place("/search"), method="POST", replay=True).status == 405
        assert room.get(f"{place('/data.json')}?_={_AT * 1000 + 6}&page=2", replay=True).status == 404


def test_a_client_that_sends_slowly_or_goes_holds_nothing(world: World) -> None:
    """S-post-5. The deadline is for the whole body, however it drips."""
    host = world.replay.partition("://")[2]
    head = f"POST {place('/search')} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 900\r\n\r\n"
    with socket.create_connection(("127.0.0.1", world.room.replay_port)) as slow:
        slow.sendall(head.encode())
        begun, answer = time.monotonic(), b""
        slow.settimeout(0.2)
        while time.monotonic() - begun < 3 * limits.BODY_SECONDS and not answer:
            try:
                answer = slow.recv(100)
            except TimeoutError:
                slow.sendall(b"x")
        assert answer.startswith(b"HTTP/1.1 408")
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", world.room.replay_port)) as gone:
            gone.sendall(head.encode() + b"x")
    assert send(world, place("/search"), _ALPHA, headers=_IS_JSON)[0] == 200


def test_hostile_bodies_and_urls_get_an_answer_at_once(world: World) -> None:
    for body in (b"[" * 16_000, b"[" + b"1," * 8_000 + b"1]", b'{"a":1e' + b"9" * 15_000 + b"}", b"&" * 16_000):
        for kind in (_JSON, _FORM, _TEXT):
            begun = time.monotonic()
            assert send(world, place("/search"), body, headers={"Content-Type": kind})[0] == 404
            assert time.monotonic() - begun < 10
    for url in ("ftp://x/", "http://", "%00", "http://api.test/?__wb_method=POST&q=alpha", "x" * 8_100):
        assert send(world, f"/web/2026mp_/{url}", _ALPHA, headers=_IS_JSON)[0] in (400, 404, 413, 414), url


@needs_chromium()
def test_a_page_that_sends_in_a_loop_does_not_tie_up_the_room(browser: Browser, world: World) -> None:
    """S-post-5. Other readers are answered meanwhile."""
    tab = browser.new_page()
    tab.goto(f"{world.origin}/web/{digits(CAPTURED)}/{_HOST}/loop.html")
    tab.frame_locator("iframe").locator("#shown").filter(has_text=re.compile("[1-9]")).wait_for(
        timeout=1_000 * PATIENCE
    )
    times = []
    for _ in range(20):
        begun = time.monotonic()
        assert world.room.get("/status.json", {"Host": world.origin.partition("://")[2]}).status == 200
        assert send(world, place("/search"), _ALPHA, headers=_IS_JSON)[0] in (200, 503)
        times.append(time.monotonic() - begun)
    tab.close()
    assert sorted(times)[10] < 10
    assert send(world, place("/search"), _ALPHA, headers=_IS_JSON)[0] == 200


def test_many_at_once_are_refused_and_not_kept(world: World) -> None:
    """S-post-5. Beyond the bound of waiting requests the answer is that the archive is busy."""
    statuses: list[int] = []

    def sender() -> None:
        for _ in range(10):
            statuses.append(send(world, place("/search"), _ALPHA, headers=_IS_JSON)[0])

    threads = [threading.Thread(target=sender) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(statuses) == 300 and set(statuses) <= {200, 503} and 200 in statuses


# == the field =========================================================================================================


_OF_PYWB = """
import io, json, sys
from pywb.utils.canonicalize import canonicalize
from pywb.warcserver.inputrequest import MethodQueryCanonicalizer
for method, url, kind, body, key in json.load(sys.stdin):
    raw = body.encode("latin-1")
    asked = MethodQueryCanonicalizer(method, kind, len(raw), io.BytesIO(raw)).append_query(url)
    print(canonicalize(asked) == canonicalize(key), asked, key)
"""


def test_keys_are_those_of_pywb() -> None:
    """S-post-1. As pywb's index compares them: in lower case, escapes undone, parameters in order.

    pywb alone takes `+` in a form for a space; warcio.js leaves it, as this does.
    """
    if not _PYWB.exists():
        pytest.skip("needs `make pywb`")
    requests = [
        *((method, path, kind, body) for method, path, kind, body, _ in _ANSWERS if method in ("POST", "PUT")),
        ("POST", "/a", _JSON, b'{"x":[1,2.0,2.5,true,null,"\xc3\xa4 &"],"y":{"x":"z"},"e":""}'),
        ("POST", "/a?b=1", f"{_JSON};charset=utf-8", b'{"query":"query Q($n: Int) { me(n: $n) { name } }"}'),
        ("PUT", "/a", _FORM, b"a=1&a=2&b=%C3%A4%20x"), ("POST", "/a", _TEXT, b'{"q":"json as text"}'),
        ("POST", "/a", "text/xml", b"<a/>"), ("PUT", "/a", "", b"x"), ("POST", "/a", _TEXT, b""),
    ]  # fmt: skip
    asked = [
        (method, _HOST + path, kind, body.decode("latin-1"), url_of(method, _HOST + path, kind, body))
        for method, path, kind, body in requests
        if b"csrf" not in body
    ]
    program = _PYWB.with_name("python")
    done = subprocess.run(
        [program, "-c", _OF_PYWB], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    assert [line for line in done.stdout.splitlines() if not line.startswith("True ")] == []
    assert done.stdout.count("\n") == len(asked)
