"""Stands between browsers and pywb: hands on archived pages alone, and takes out what must not pass, both ways.

Browsers reach pywb through this listener only. A request loses what names or rights it brings; an answer loses what
would act on the browser, and gets the policy of pages whose scripts run: they may reach their own origin, and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webarcfs.room import limits

Fields = list[tuple[bytes, bytes]]

#: The policy of an archived page whose scripts run (Content Security Policy level 3; WebRTC, "webrtc").
_POLICY = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; form-action 'self'; webrtc 'block'"
#: `/web/<digits><modifier>_/<url>`: archived pages, and pywb's own scripts; nothing else of pywb is for readers.
_ARCHIVED = re.compile(rb"/web/[0-9]{1,14}([a-z]{2})_/.+", re.DOTALL)
_OWN = re.compile(rb"/static/[A-Za-z0-9_./-]+")
_FRAME = re.compile(rb"/web/(?:[0-9]{1,14}/)?.+", re.DOTALL)
_HANDED_IN = frozenset({b"accept", b"accept-language", b"user-agent", b"range", b"if-range"})
_DROPPED = frozenset(
    {
        b"content-security-policy", b"content-security-policy-report-only", b"set-cookie", b"set-cookie2",
        b"service-worker-allowed", b"link", b"refresh", b"strict-transport-security", b"clear-site-data", b"alt-svc",
        b"nel", b"report-to", b"reporting-endpoints", b"connection", b"keep-alive", b"transfer-encoding", b"te",
        b"trailer", b"upgrade", b"server", b"date", b"content-location", b"speculation-rules", b"origin-trial",
        b"www-authenticate", b"proxy-authenticate", b"access-control-allow-credentials", b"referrer-policy",
        b"permissions-policy", b"x-dns-prefetch-control", b"public-key-pins", b"expect-ct",
    }
)  # fmt: skip
_MOST_OF_HEAD = 16_384


def handed_in(headers: Iterable[tuple[bytes, bytes]], replay: str) -> Fields:
    """Return what pywb is told of a request: no names, no rights, no cookies. `replay` is the origin that it writes."""
    kept = [(name, value) for name, value in headers if name.lower() in _HANDED_IN]
    place = urlsplit(replay)
    own = [(b"host", place.netloc.encode()), (b"x-forwarded-proto", place.scheme.encode())]
    return [*kept, *own, (b"accept-encoding", b"identity")]


def handed_out(headers: Iterable[tuple[bytes, bytes]], room: str, replay: str, *, is_page: bool) -> Fields:
    """Return what browsers are told of an answer. A page may be framed by the room alone."""
    found: Fields = []
    left = _MOST_OF_HEAD
    for name, value in headers:
        left -= len(name) + len(value)
        if name.lower() in _DROPPED or left < 0:
            continue
        if name.lower() == b"location" and not _stays(value, replay):
            continue
        found.append((name.lower(), value))
    policy = f"{_POLICY}; frame-ancestors {room} {replay}" if is_page else _POLICY
    return [
        *found,
        (b"content-security-policy", policy.encode()),
        (b"cross-origin-resource-policy", b"cross-origin"),
        (b"cache-control", b"no-cache"),
    ]


def _stays(location: bytes, replay: str) -> bool:
    """Return whether a redirect stays with archived pages."""
    text = location.decode("latin-1")
    return text.removeprefix(replay).startswith("/web/")


class PywbProxy:
    """The app of the replay listener where pywb is the engine. `own` answers readers with rights: pywb knows none."""

    def __init__(self, pywb: str, room: str, replay: str, own: ASGIApp) -> None:
        self._room = room
        self._replay = replay
        self._own = own
        bounds = httpx.Limits(max_connections=limits.WAITING, max_keepalive_connections=20)
        self._client = httpx.AsyncClient(base_url=pywb, timeout=limits.SECONDS, limits=bounds, trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raw: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        if raw.startswith(b"/~") or raw == b"/robots.txt":
            await self._own(scope, receive, send)
            return
        answer = await self._answer(Request(scope), raw, scope["query_string"])
        await answer(scope, receive, send)

    async def close(self) -> None:
        """Close the connections to pywb."""
        await self._client.aclose()

    async def _answer(self, request: Request, raw: bytes, query: bytes) -> Response:
        if request.headers.get("service-worker", "").lower() == "script":
            return PlainTextResponse("archived service workers are not run\n", 403)
        whole = raw + (b"?" + query if query else b"")
        page = _ARCHIVED.fullmatch(whole)
        if page is None and not _OWN.fullmatch(raw):
            if _FRAME.fullmatch(whole):  # pywb's own frame: the room has one
                return Response(status_code=302, headers={"Location": self._room + whole.decode("latin-1")})
            return PlainTextResponse("there is no such page\n", 404)
        try:
            return await self._passed_on(request, whole, is_page=page is not None and page[1] == b"mp")
        except httpx.HTTPError:
            return PlainTextResponse("the engine of archived pages does not answer; please try again\n", 503)

    async def _passed_on(self, request: Request, whole: bytes, *, is_page: bool) -> Response:
        asked = self._client.build_request(request.method, "/", headers=handed_in(request.headers.raw, self._replay))
        asked.url = asked.url.copy_with(raw_path=whole)  # byte for byte, as it came
        found = await self._client.send(asked, stream=True)
        answer = StreamingResponse(found.aiter_raw(), found.status_code)
        answer.raw_headers = handed_out(found.headers.raw, self._room, self._replay, is_page=is_page)
        return answer
