"""A site whose pages are made by scripts, and a log of what it sent: for crawls by browser and what they are held to.

    with ScriptSite() as site:
        ...                                      # a browser shows http://spa.test/, whose hosts the site's proxy knows
        assert site.smallest_gap("spa.test") >= 0.3

`/` asks for all that a script can ask for (`ASKED`), and says what came of it (`SHOWN`). It is on `spa.test`, its frame
on `other.test`. These names lead to the site through its `proxy`, with its port (`spa.test:8000`) where they are looked
up, or as `127.0.0.1` and `localhost`. Other paths are parts of the same page (`/about`, `/item/10` to `/item/59`),
`/small/N.html` (7 requests each), and `/away.html`, which leaves after half a second.

All bytes are the same in each run. The files lie in `tests/support/script_pages`; pictures and sound are made here.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import math
import re
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.site import Site, content_type_of
from tests.support.wire import HTML, Answer, Exchange, Page, Request, page

PAGES: Final = Path(__file__).with_name("script_pages")
MAIN: Final = "spa.test"
OTHER: Final = "other.test"
#: Addresses that no page of the internet may make a crawl ask for.
INSIDE: Final = ("127.0.0.1", "10.0.0.1", "169.254.169.254")
ROBOTS: Final = "User-agent: *\nDisallow: /private/\n"
#: What a scripted page may do by its own head: no eval, no inline scripts.
_POLICY: Final = "script-src 'self' blob:; object-src 'none'"
_JSON: Final = "application/json"
_PICTURES: Final = 20
_ITEMS: Final = 10
_SCROLLS: Final = 5
_CLICKS: Final = 3
_SMALL_PAGES: Final = 200
_TONE_SECONDS: Final = 30
_TONE_RATE: Final = 8_000
#: Bytes of a body that are kept; of all of it, the length and the digest are.
_KEPT: Final = 8 << 20

#: What each paragraph of the start page says, shown by a browser that has the network. Chromium that nobody holds back
#: runs the script that robots.txt forbids, too.
SHOWN: Final[Mapping[str, str]] = {
    "dynamic-import": "from the chunk",
    "get": "hello",
    "post-alpha": "found alpha",
    "post-beta": "found beta",
    "graphql": "graph",
    "form": "form first=1&second=two",
    "put": "put x",
    "packed": "packed",
    "redirect": "at the new place",
    "worker": "Route worker from-worker",
    "blob-worker": "from-blob",
    "socket": "hello",
    "events": "tick 0",
    "frame": "frame",
    "sound": f"{_TONE_SECONDS} seconds",
    "cors-read": "refused",
    "cors-preflight": "refused",
    "robots": "run in spite of robots.txt",
    "eval": "refused",
}


@dataclass(frozen=True, slots=True, order=True)
class ScriptRequest:
    """What the start page asks for: a method, a host, a path with its query, and a part of the request's body."""

    method: str
    host: str
    path: str
    body: str = ""


def _get(*paths: str, host: str = MAIN) -> tuple[ScriptRequest, ...]:
    return tuple(ScriptRequest("GET", host, path) for path in paths)


#: By GET, what the start page and its scripts ask for without being scrolled or clicked, and may be archived.
LOADED: Final = (
    *_get("/", "/assets/app.css", "/assets/more.css", "/assets/main.js", "/assets/words.js", "/assets/chunk.js"),
    *_get("/api/hello?x=1", "/api/packed", "/old", "/new", "/assets/worker.js", "/api/from-worker", "/api/from-blob"),
    *_get("/media/tone.wav", "/pic/background.png"),
    *_get("/frame.html", "/pic/frame.png", "/api/frame", host=OTHER),
)
#: What scrolling to the end and clicks on "Load more" bring.
SCROLLED: Final = (
    *_get(*(f"/pic/{'lazy' if number % 2 else 'seen'}-{number}.png" for number in range(_PICTURES))),
    *_get(*(f"/api/items?page={number}" for number in range(1, _SCROLLS + 1))),
)
CLICKED: Final = _get(*(f"/api/more?n={number}" for number in range(1, _CLICKS + 1)))
#: What changes nothing on the server, by POST.
POSTED: Final = (
    ScriptRequest("POST", MAIN, "/api/search", '{"q":"alpha"}'),
    ScriptRequest("POST", MAIN, "/api/search", '{"q":"beta"}'),
    ScriptRequest("POST", MAIN, "/graphql", '{"query":"{ me { name } }","variables":{"n":1}}'),
    ScriptRequest("POST", MAIN, "/api/form", "first=1&second=two"),
)
#: What a crawl does not send (a PUT and its like), or cannot keep (a stream, a socket, an answer that CORS closes).
LEFT_OUT: Final = (
    ScriptRequest("PUT", MAIN, "/api/put", "x"),
    *_get("/socket", "/events"),
    *_get("/api/closed", host=OTHER),
    ScriptRequest("OPTIONS", OTHER, "/api/closed"),
)
ASKED: Final = (*LOADED, *SCROLLED, *CLICKED, *POSTED, *LEFT_OUT)


@dataclass(frozen=True, slots=True)
class SentResponse:
    """A request and what was sent for it. Times are those of time.monotonic(); the end is that of sending.

    `interim` has the heads of 1xx answers before it, `head` ends with its blank line, `body` is as it was sent, with
    the marks of chunks and codings; of a large one the first 8 MiB. `end` is None while it is being sent, or where the
    client was gone before.
    """

    method: str
    host: str
    path: str
    asked: bytes
    agent: str
    connection: int
    begin: float
    end: float | None
    interim: bytes
    head: bytes
    body: bytes
    size: int
    digest: str

    @property
    def status(self) -> int:
        """The status of its head; 0 without one."""
        words = self.head.split(b" ", 2)
        return int(words[1]) if len(words) == 3 and words[1].isdigit() else 0

    @property
    def sent(self) -> int:
        """Bytes of heads and body."""
        return len(self.interim) + len(self.head) + self.size


class ScriptSite(Site):
    """The site. What it sent stands in `responses`, in the order of requests, from the moment in which each came."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self._sent: list[_Sending] = []
        for name in (MAIN, OTHER, *INSIDE):
            self.add_host(name, f"{name}:{self.port}")
        _add_pages(self)

    def _route(self, request: Request) -> Answer:
        answer = super()._route(request)
        sending = _Sending(request)
        self._sent.append(sending)

        def watched(exchange: Exchange) -> None:
            exchange.watch = sending.add
            answer(exchange)
            sending.end = time.monotonic()

        return watched

    @property
    def responses(self) -> list[SentResponse]:
        """What was sent so far; of what is being sent, as much as there is."""
        return [sending.response() for sending in list(self._sent)]

    def clear_log(self) -> None:
        """Forget the requests and responses so far."""
        super().clear_log()
        self._sent.clear()

    def sent_to(self, path: str, host: str | None = None, method: str | None = None) -> list[SentResponse]:
        """What was sent for a path, with its query, on any host or on that one."""
        return [
            response
            for response in self.responses
            if response.path == path and host in (None, response.host) and method in (None, response.method)
        ]

    def asked(self) -> set[ScriptRequest]:
        """What was asked for, hosts without the site's port, but for robots.txt and the icon that browsers look for."""
        port = f":{self.port}"
        return {
            ScriptRequest(
                response.method,
                response.host.removesuffix(port),
                response.path,
                response.asked.decode("utf-8", "replace"),
            )
            for response in self.responses
            if response.path not in ("/robots.txt", "/favicon.ico")
        }

    def smallest_gap(self, host: str, *, but: tuple[str, ...] = ()) -> float:
        """Seconds between the begins of two requests to a host that were nearest in time; paths in `but` do not count.

        Infinite where there were fewer than two.
        """
        begins = sorted(
            response.begin for response in self.responses if response.host == host and response.path not in but
        )
        return min((after - before for before, after in itertools.pairwise(begins)), default=math.inf)

    def most_at_once(self, host: str) -> int:
        """The most responses of a host that were being sent at one time. `max_open` counts its connections."""
        now = time.monotonic()
        spans = [
            (response.begin, now if response.end is None else response.end)
            for response in self.responses
            if response.host == host
        ]
        return max((sum(begin <= start < end for begin, end in spans) for start, _ in spans), default=0)

    def connections(self, host: str) -> int:
        """How many connections asked a host for something."""
        return len({response.connection for response in self.responses if response.host == host})

    def against_robots(self) -> list[SentResponse]:
        """What was sent in spite of robots.txt."""
        return [response for response in self.responses if response.path.startswith("/private/")]

    def against_addresses(self) -> list[SentResponse]:
        """What was sent for URLs of this machine and its network that pages of the internet name."""
        return [response for response in self.responses if response.path.startswith("/inside/")]


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    """A site of scripts, served while the test runs."""
    with ScriptSite() as running:
        yield running


class _Sending:
    """What is being sent; the thread of its connection adds, others read."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._begin = time.monotonic()
        self.end: float | None = None
        self._kept = bytearray()
        #: Of all that was sent; a digest of the body alone is made where the kept bytes are not all of it.
        self._size = 0
        self._body_begins: int | None = None
        self._digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        before, self._size = self._size, self._size + len(data)
        self._kept += data[: max(0, _KEPT - before)]
        if self._body_begins is not None:
            self._digest.update(data)
            return
        self._body_begins = _end_of_heads(self._kept)
        if self._body_begins is not None:
            self._digest.update(data[max(0, self._body_begins - before) :])

    def response(self) -> SentResponse:
        heads = bytes(self._kept[: self._body_begins])
        final = heads.rfind(b"\r\n\r\n", 0, -4)
        cut = 0 if final < 0 or self._body_begins is None else final + 4
        return SentResponse(
            method=self._request.method,
            host=self._request.host,
            path=self._request.path,
            asked=self._request.body,
            agent=self._request.headers.get("user-agent", ""),
            connection=self._request.connection_id,
            begin=self._begin,
            end=self.end,
            interim=heads[:cut],
            head=heads[cut:],
            body=b"" if self._body_begins is None else bytes(self._kept[self._body_begins :]),
            size=0 if self._body_begins is None else self._size - self._body_begins,
            digest=self._digest.hexdigest(),
        )


_INTERIM = re.compile(rb"HTTP/1\.[01] 1(?!01)\d\d ")


def _end_of_heads(data: bytearray) -> int | None:
    """Where the body begins: behind the first head that is none of 1xx, apart from 101."""
    start = 0
    while (end := data.find(b"\r\n\r\n", start)) >= 0:
        interim = _INTERIM.match(data, start)
        start = end + 4
        if interim is None:
            return start
    return None


# -- what there is -----------------------------------------------------------------------------------------------------


def _add_pages(site: Site) -> None:
    for path in sorted(PAGES.rglob("*")):
        if path.is_file() and path.name != "shell.html":
            name = f"/{path.relative_to(PAGES)}"
            kind = "text/javascript" if path.suffix == ".js" else content_type_of(path.name)
            fields = {"Cache-Control": "max-age=600"} if name.startswith("/assets/") else {}
            site.add(name, path.read_bytes(), kind, headers={**_FIELDS, **fields})
    site.add("/robots.txt", ROBOTS, "text/plain")
    _add_shells(site)
    _add_answers(site)
    add_small_pages(site, range(_SMALL_PAGES))
    for number in range(_PICTURES):
        for kind in ("lazy", "seen"):
            site.add(f"/pic/{kind}-{number}.png", picture(number), "image/png")
    for number, name in enumerate(("background", "frame", "small"), _PICTURES):
        site.add(f"/pic/{name}.png", picture(number), "image/png", headers={"Cache-Control": "max-age=600"})
    site.add_nasty("/media/tone.wav", _ranged(tone(), "audio/wav"))
    site.add_nasty("/socket", _socket)
    site.add_nasty("/events", _events)
    leave = "<script>setTimeout(() => { location = '/about'; }, 500)</script>"
    site.add("/away.html", f"<!DOCTYPE html><title>leaves</title><p>not for long{leave}")


#: Fields that stand in the head as they are here: names in mixed case, one of them twice.
_FIELDS: Final = {
    "X-MiXed-Case": "Kept As It Is",
    "Set-Cookie": "first=1; Path=/",
    "SET-cookie": "second=2; Path=/",
}


def _add_shells(site: Site) -> None:
    shell = (PAGES / "shell.html").read_bytes()
    fields = {**_FIELDS, "Content-Security-Policy": _POLICY}
    for path in ("/", "/about", *(f"/item/{item}" for item in _items())):
        site.add(path, shell, headers=fields)


def _items() -> range:
    return range(_ITEMS, _ITEMS * (_SCROLLS + 1))


def _add_answers(site: Site) -> None:
    words = {
        "/api/hello?x=1": "hello",
        "/api/from-worker": "from-worker",
        "/api/from-blob": "from-blob",
        "/api/frame": "frame",
        **{f"/api/more?n={number}": f"more {number}" for number in range(1, _CLICKS + 1)},
        **{f"/api/part?of={path}": f"part {path}" for path in ("/about", *(f"/item/{item}" for item in _items()))},
    }
    for path, word in words.items():
        site.add_nasty(path, json_page({"word": word}, **_FIELDS))
    for number in range(1, _SCROLLS + 1):
        items = list(_items())[(number - 1) * _ITEMS : number * _ITEMS]
        site.add_nasty(f"/api/items?page={number}", json_page({"items": items}))
    packed = gzip.compress(b'{"word": "packed"}', mtime=0)
    site.add("/api/packed", packed, _JSON, headers={"Content-Encoding": "gzip"})
    site.add("/old", b"moved", "text/plain", 302, {"Location": "/new"})
    site.add("/new", b"at the new place", "text/plain")
    site.add("/api/closed", b"not for other hosts", "text/plain")
    site.add("/private/forbidden.js", b"window.forbidden = 'run in spite of robots.txt';", "text/javascript")
    site.add("/inside/secret", b"inside", "text/plain")
    site.add_nasty("/api/search", _search)
    site.add_nasty("/graphql", _graphql)
    site.add_nasty("/api/form", _echo("form"))
    site.add_nasty("/api/put", _echo("put"))


def add_small_pages(site: Site, numbers: Iterable[int]) -> None:
    """Pages of seven requests, three of which all pages share."""
    for number in numbers:
        words = " ".join(f"word{(number + 7 * place) % 100}" for place in range(100))
        site.add(
            f"/small/{number}.html",
            f"<!DOCTYPE html><html lang=en><title>page {number}</title><link rel=stylesheet href=/assets/small.css>"
            f"<body data-number={number}><h1>Page {number}</h1><p>{words}</p><p id=numbers></p><p id=words></p>"
            f"<img src=/pic/own-{number}.png alt=''><script src=/assets/small.js></script>",
        )
        site.add(f"/pic/own-{number}.png", picture(1_000 + number), "image/png")
        for name in ("numbers", "words"):
            site.add_nasty(f"/api/{name}?page={number}", json_page({"word": f"{name} of {number}"}))


def json_page(value: object, **fields: str) -> Page:
    """A value as JSON, which scripts of any host may read."""
    return page(json.dumps(value), _JSON, headers={"Access-Control-Allow-Origin": "*", **fields})


def _search(exchange: Exchange) -> None:
    try:
        word = json.loads(exchange.request.body)["q"]
    except (ValueError, KeyError, TypeError):
        json_page({"hit": "nothing"})(exchange)
        return
    json_page({"hit": f"found {word}"})(exchange)


def _graphql(exchange: Exchange) -> None:
    """Answer a query, or a mutation."""
    is_mutation = b"mutation" in exchange.request.body
    json_page({"data": {"changed": True} if is_mutation else {"me": {"name": "graph"}}})(exchange)


def _echo(word: str) -> Answer:
    return lambda exchange: page(word.encode() + b" " + exchange.request.body, "text/plain")(exchange)


def _ranged(body: bytes, kind: str) -> Answer:
    """A body in whole, or the part that a Range field asks for (RFC 9110 section 14), as servers of media do it."""
    whole = page(body, kind, headers={"Accept-Ranges": "bytes"})

    def answer(exchange: Exchange) -> None:
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", exchange.request.headers.get("range", ""))
        if span is None or int(span[1]) >= len(body):
            whole(exchange)
            return
        first, last = int(span[1]), min(int(span[2] or len(body) - 1), len(body) - 1)
        fields = {"Accept-Ranges": "bytes", "Content-Range": f"bytes {first}-{last}/{len(body)}"}
        page(body[first : last + 1], kind, 206, fields)(exchange)

    return answer


def _events(exchange: Exchange) -> None:
    """Events that never end, five a second, until the client leaves."""
    exchange.keep = False
    exchange.begin(200, {"Content-Type": "text/event-stream", "Connection": "close"})
    number = 0
    while True:
        exchange.send(b"data: tick %d\n\n" % number)
        number += 1
        exchange.wait(0.2)


def _socket(exchange: Exchange) -> None:
    """A WebSocket (RFC 6455) that says hello and then nothing, until the client leaves."""
    exchange.keep = False
    key = exchange.request.headers.get("sec-websocket-key")
    if key is None:
        page(b"a WebSocket", "text/plain", 426, {"Upgrade": "websocket", "Connection": "Upgrade, close"})(exchange)
        return
    accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    fields = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": base64.b64encode(accept).decode(),
    }
    exchange.begin(101, fields)
    exchange.send(b"\x81\x05hello")
    exchange.wait(3600)


def picture(number: int) -> bytes:
    """A PNG of 8 by 8 pixels, of a colour for each number; not compressed, so that zlib's version is no matter."""
    colour = bytes((number * 37 % 256, number * 91 % 256, number // 256 * 53 % 256))
    rows = b"".join(b"\0" + colour * 8 for _ in range(8))
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def tone() -> bytes:
    """Half a minute of a square wave, as WAV: what browsers ask for by Range."""
    period = b"\xa0" * 10 + b"\x60" * 10
    samples = period * (_TONE_SECONDS * _TONE_RATE // len(period))
    described = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, _TONE_RATE, _TONE_RATE, 1, 8)
    data = b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(described) + len(data)) + b"WAVE" + described + data


def html_page(title: str, body: str, headers: Mapping[str, str] | None = None) -> Page:
    """A page of HTML in UTF-8."""
    return page(f"<!DOCTYPE html><html lang=en><title>{title}</title><body>{body}", HTML, headers=headers)
