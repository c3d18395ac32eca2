"""Stands between browsers and pywb: hands on archived pages alone, and takes out what must not pass, both ways.

Browsers reach pywb through this listener only. pywb answers what scripts make necessary: pages, frames, scripts,
workers. All else (`id_ im_ cs_ oe_ rn_`, module scripts, and what pywb has not got) is answered by the room's own
replay, which knows more: the nearest state, ranges, the rules of each type. In what pywb has rewritten, modules and
import maps get their places, and so do calls of `import()`. A request loses what names or rights it brings; an answer
loses what would act on the browser, and gets the policy of pages whose scripts run: they may reach their own origin,
and no other.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webarcfs.archive.system import clocks
from webarcfs.content.text import HTML_TYPES
from webarcfs.room.replay.headers import BY_SCRIPT, POLICY_WITH_SCRIPTS, connections, is_for_window
from webarcfs.room.replay.javascript import scan
from webarcfs.room.replay.module_scripts import (
    OWN_MODULE,
    ModulePlace,
    PageScripts,
    has_import_call,
    rewritten_classic,
)
from webarcfs.room.replay.pywb_process import GUARD
from webarcfs.room.replay.replay_url import Refused, archived_url
from webarcfs.room.replay.script_requests import ScriptRequests, is_of_script
from webarcfs.web import limits

Fields = list[tuple[bytes, bytes]]

#: `/web/<digits><modifier>/<url>` of what pywb answers: pages and frames, then scripts and workers.
_ARCHIVED = re.compile(rb"/web/([0-9]{1,14})(?:(mp|if|fr)|(js)|wkr|wkrf)_/(.+)", re.DOTALL)
#: What our own replay answers.
_OURS = re.compile(rb"/web/[0-9]{1,14}(?:id|im|cs|oe|rn|rf|esm|wkrm)_/.+", re.DOTALL)
#: What pywb makes of a reference such as `//host/style.css`. Under `http:` the archive has what came by https, too.
_WITHOUT_SCHEME = re.compile(rb"(/web/[0-9]{1,14}[a-z]+_/)//(?!/)")
_OWN_SCRIPTS = re.compile(rb"/static/(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
_FRAME = re.compile(rb"/web/(?:[0-9]{1,14}\*?/|\*/)?https?:/.+", re.DOTALL)
_HANDED_IN = frozenset({b"accept", b"accept-language", b"user-agent", b"range", b"if-range"})
#: Fields that pass. pywb hands on what it does not know, so nothing else may.
_HANDED_OUT = frozenset(
    {
        b"content-type", b"content-length", b"content-range", b"content-language", b"content-disposition",
        b"accept-ranges", b"location", b"memento-datetime",
    }
)  # fmt: skip
_TOLD = b"x-archive-orig-"
#: Most bytes of what is reported of the archived head.
_MOST_TOLD = 4_096
_PAGES = frozenset({b"text/html", b"application/xhtml+xml", b""})
#: Types that a window shows, so that the room's frame has to know of them; others are downloads.
_SHOWN = (b"text/", b"image/", b"audio/", b"video/", b"application/pdf", b"application/json", b"application/xml")
#: Says to the room's frame what a reader asked for: it shows that with its own head, or says why it cannot. Opened on
#: its own, it leads to the frame.
_ANNOUNCED = r"""<!DOCTYPE html><meta charset=utf-8><meta name=color-scheme content="light dark"><title>-</title>
<script>
var place = /^(.*\/web\/[0-9]+)mp_\/(.*)$/.exec(location.href);
if (parent === self) location.replace(place[1] + "/" + place[2]);
else parent.postMessage({wb_type: "load", url: place[2]}, "*");
%s</script>
"""
_NOT_HERE = _ANNOUNCED % "" + (
    "<p lang=en>This page is not in this snapshot, or it cannot be shown.</p>"
    "<p lang=de>Diese Seite ist nicht in dieser Momentaufnahme, oder sie kann nicht gezeigt werden.</p>\n"
)
#: Where the frame shows that URL already, it continues without pywb.
_NO_PAGE = _ANNOUNCED % 'setTimeout(function () { location.replace(place[1] + "oe_/" + place[2]); }, 1000);\n'


def handed_in(headers: Iterable[tuple[bytes, bytes]], replay: str) -> Fields:
    """Return what pywb gets of a request: no names, no rights, no cookies. `replay` is the origin that it writes."""
    given = [(name.lower(), value) for name, value in headers]
    kept = [(name, value) for name, value in given if name in _HANDED_IN]
    if any(name in BY_SCRIPT and value.lower() == b"xmlhttprequest" for name, value in given):
        kept.append((b"x-requested-with", b"XMLHttpRequest"))
    place = urlsplit(replay)
    own = [(b"host", place.netloc.encode()), (b"x-forwarded-proto", place.scheme.encode())]
    return [*kept, *own, (b"accept-encoding", b"identity")]


def handed_out(headers: Iterable[tuple[bytes, bytes]], room: str, replay: str, *, is_page: bool) -> Fields:
    """Return what browsers get of an answer. A page may be framed by the room, and by pages within it."""
    fields: Fields = []
    left = _MOST_TOLD
    for written, value in headers:
        name = written.lower()
        if name.startswith(_TOLD) and name.removeprefix(_TOLD) not in (b"set-cookie", b"set-cookie2"):
            left -= len(name) + len(value)
            if left >= 0:
                fields.append((name, value))
        elif name in _HANDED_OUT and (name != b"location" or _stays(value, replay)):
            fields.append((name, value))
    policy = f"{POLICY_WITH_SCRIPTS}; frame-ancestors {room} {replay}" if is_page else POLICY_WITH_SCRIPTS
    return [
        *fields,
        (b"content-security-policy", policy.encode()),
        (b"connection-allowlist", connections(room).encode()),
        (b"cross-origin-resource-policy", b"cross-origin"),
        (b"cache-control", b"no-cache"),
        (b"vary", b"Accept, Sec-Fetch-Dest, Sec-Fetch-Mode, X-Requested-With"),
    ]


def _stays(location: bytes, replay: str) -> bool:
    """Return whether a redirect stays with archived pages."""
    text = location.decode("latin-1")
    return text.removeprefix(replay).startswith("/web/")


class PywbProxy:
    """The app of the replay listener where pywb is the engine. `own` is our replay, also for readers with rights."""

    def __init__(self, pywb: str, room: str, replay: str, own: ASGIApp) -> None:
        self._room = room
        self._replay = replay
        self._own = own
        self._requests = ScriptRequests(replay, own)
        folder = Path(__file__).parent
        leading = (folder / "leading.js").read_bytes()
        self._scripts = {
            b"/static/" + GUARD.encode(): leading + (folder / "guard.js").read_bytes(),
            OWN_MODULE.encode(): leading + (folder / "module.js").read_bytes(),
        }
        # A connection for each request: on one that is kept, pywb's body waits 40 ms for its head to be acknowledged.
        bounds = httpx.Limits(max_connections=limits.WAITING, max_keepalive_connections=0)
        self._client = httpx.AsyncClient(base_url=pywb, timeout=limits.SECONDS, limits=bounds, trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raw: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        if relative := _WITHOUT_SCHEME.match(raw):
            raw = relative[1] + b"http://" + raw[relative.end() :]
            scope = {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1"))}
        query: bytes = scope["query_string"]
        whole = raw + (b"?" + query if query else b"")
        if is_of_script(scope["method"], raw):
            await self._requests(scope, receive, send)
            return
        answer = None
        if not (raw.startswith(b"/~") or raw == b"/robots.txt" or _OURS.fullmatch(whole)):
            answer = await self._answer(Request(scope), raw, whole)
        await (answer or self._own)(scope, receive, send)

    async def close(self) -> None:
        """Close the connections to pywb."""
        await self._client.aclose()

    async def _answer(self, request: Request, raw: bytes, whole: bytes) -> Response | None:
        """Return the answer; None where our own replay has to give it."""
        page = _ARCHIVED.fullmatch(whole)
        if (answer := self._by_itself(request, raw, whole, page)) is not None:
            return answer
        try:
            response = await self._asked(request, whole)
        except httpx.HTTPError:
            return PlainTextResponse("the engine of archived pages does not respond; please try again\n", 503)
        return await self._passed_on(request, response, page)

    def _by_itself(self, request: Request, raw: bytes, whole: bytes, page: re.Match[bytes] | None) -> Response | None:
        """Return the answer to what pywb is not asked."""
        if request.headers.get("service-worker", "").lower() == "script":
            return PlainTextResponse("archived service workers are not run\n", 403)
        if raw in self._scripts:
            return Response(self._scripts[raw], media_type="text/javascript")
        if page is not None:
            is_alone = page[2] and request.headers.get("sec-fetch-dest") == "document"
            return self._framed(b"/web/" + page[1] + b"/" + page[4]) if is_alone else None
        if _OWN_SCRIPTS.fullmatch(raw):
            return None
        if _FRAME.fullmatch(whole):  # pywb's own frame: the room has one
            return self._framed(whole)
        return PlainTextResponse("there is no such page\n", 404)

    def _framed(self, place: bytes) -> Response:
        return Response(status_code=302, headers={"Location": self._room + place.decode("latin-1")})

    async def _asked(self, request: Request, whole: bytes) -> httpx.Response:
        # As it came, byte for byte: a URL of httpx would lose `/../`, and so lead out of what may be asked.
        asked = self._client.build_request(
            request.method, "/", headers=handed_in(request.headers.raw, self._replay), extensions={"target": whole}
        )
        return await self._client.send(asked, stream=True)

    async def _passed_on(
        self, request: Request, response: httpx.Response, page: re.Match[bytes] | None
    ) -> Response | None:
        """Hand on an answer. `page` is what it is to: None for pywb's own files."""
        frame = None if page is None else page[2] or b""  # the modifier of a frame, empty for scripts
        # What is archived has its time; an error without is pywb's own.
        is_archived = frame is None or "memento-datetime" in response.headers or response.status_code < 400
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower().encode()
        is_window = frame == b"mp" and is_for_window(request)
        if not is_archived or (is_window and kind not in _PAGES and kind.startswith(_SHOWN)):
            await response.aclose()
            if not is_window:
                return None
            answer = Response(
                _NO_PAGE if is_archived else _NOT_HERE, 200 if is_archived else 404, media_type="text/html"
            )
            answer.raw_headers = [*answer.raw_headers, *handed_out((), self._room, self._replay, is_page=True)]
            return answer
        body = _body(response)
        fields = handed_out(response.headers.raw, self._room, self._replay, is_page=frame == b"mp")
        place = None if page is None or response.status_code == 206 else _place(page)
        if place is not None and request.method == "GET":
            if frame and kind.decode("latin-1") in HTML_TYPES:
                body = _with_modules(body, place)
                fields = [field for field in fields if field[0] != b"content-length"]
            elif page is not None and page[3]:
                body = _with_imports(body, place)
                fields = [field for field in fields if field[0] != b"content-length"]
        handed = StreamingResponse(body, response.status_code)
        handed.raw_headers = fields
        return handed


async def _body(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the body, and end the connection also where the browser has gone."""
    try:
        async for piece in response.aiter_raw():
            yield piece
    finally:
        await response.aclose()


def _place(page: re.Match[bytes]) -> ModulePlace | None:
    url = archived_url(page[4])
    return None if isinstance(url, Refused) else ModulePlace(page[1].decode(), url)


async def _in_thread(work: Callable[[], bytes]) -> bytes:
    """Return what `work` makes, in a thread and within the time for a piece of an answer."""

    def worked() -> bytes:
        with clocks.under(clocks.Deadline(limits.SECONDS)):
            return work()

    return await run_in_threadpool(worked)


async def _with_modules(body: AsyncGenerator[bytes, None], place: ModulePlace) -> AsyncGenerator[bytes, None]:
    """Yield a page with its modules, import maps and calls of `import()` led into the archive."""
    scripts = PageScripts(place, clocks.goes_on)
    async with aclosing(body):
        async for piece in body:
            if passed := await _in_thread(partial(scripts.feed, piece)):
                yield passed
        yield await _in_thread(scripts.close)


async def _with_imports(body: AsyncGenerator[bytes, None], place: ModulePlace) -> AsyncGenerator[bytes, None]:
    """Yield a script with its calls of `import()` led into the archive."""
    held: list[bytes] = []
    size = 0
    async with aclosing(body):
        async for piece in body:
            size += len(piece)
            held.append(piece)
            if size > limits.SCRIPT_BYTES:
                for each in held:
                    yield each
                held.clear()
    whole = b"".join(held)
    if size <= limits.SCRIPT_BYTES and has_import_call(whole):
        whole = await _in_thread(partial(_imports_led, whole, place))
    yield whole


def _imports_led(body: bytes, place: ModulePlace) -> bytes:
    try:
        source, charset = body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        source, charset = body.decode("latin-1"), "latin-1"
    return rewritten_classic(source, scan(source, goes_on=clocks.goes_on), place).encode(charset)
