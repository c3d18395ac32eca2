"""The apps of a worker: which path is answered by which handler, on the room's listener and on that of replay.

There is an ASGI app for the room, and one for archived pages if they have a listener of their own. `ROUTES` has all
paths; the tests ask each for what readers may not see. Replay's listener answers archived pages alone, and never the
room's own.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from webarcfs.access.gate import Reader
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import NotFound, TookTooLong, UsageError, WebarcError
from webarcfs.room.pages import about, archived, calendar, frame, lists, mementos, records, searching
from webarcfs.room.replay import replay_url
from webarcfs.room.replay.pywb_proxy import PywbProxy
from webarcfs.room.replay.replay_url import (
    FRAMES,
    Calendar,
    Diff,
    PrefixList,
    Refused,
    Replay,
    TimeGate,
    TimeMap,
    UrlFault,
    parse,
)
from webarcfs.room.replay.script_requests import is_of_script
from webarcfs.room.server.options import Engine, RoomOptions
from webarcfs.room.theme.rendering import Look
from webarcfs.room.visit import OfThread, Origins, Shared, Visit, reader_of
from webarcfs.web.answering import Answering, peer
from webarcfs.web.language import negotiated

# == apps =============================================================================================================


async def _nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True)
class RoomApps:
    """The apps of a worker. `replay` is None where `room` is both. `close` is awaited after the last request.

    `source` answers pywb, where that shows archived pages. `is_of_script` says of a method and a raw path whether
    `replay` takes a body with it, as archived scripts send them; None: with no request.
    """

    room: ASGIApp
    replay: ASGIApp | None = None
    close: Callable[[], Awaitable[None]] = _nothing
    source: ASGIApp | None = None
    is_of_script: Callable[[str, bytes], bool] | None = None


#: Makes the apps, once in each worker. It may raise the errors of the family: then the worker does not start.
Make = Callable[[RoomOptions], RoomApps]


# == app ==============================================================================================================


_Handler = Callable[[Visit, Mapping[str, str]], Response]
_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class RoomRoute:
    """A path of the room, as an expression over the decoded path, and what answers it. `name` is for people.

    `is_costly`: it may read all captures of a site, or of the archive.
    """

    name: str
    pattern: re.Pattern[str]
    answer: _Handler
    is_costly: bool = False


def _route(name: str, pattern: str, answer: _Handler, *, is_costly: bool = False) -> RoomRoute:
    return RoomRoute(name, re.compile(pattern, re.DOTALL), answer, is_costly)


def _robots(_visit: Visit, _: Mapping[str, str]) -> Response:
    """Keep crawlers out of replay: an archive must not be found in place of the sites that it archives."""
    return PlainTextResponse("User-agent: *\nDisallow: /web/\nDisallow: /diff/\nDisallow: /search\nDisallow: /cdx\n")


# -- URLs of the past --------------------------------------------------------------------------------------------------


def _past(visit: Visit, _: Mapping[str, str]) -> Response:
    """Answer what lies below /web/, /timemap/ and /diff/."""
    asked = parse(visit.raw_path, visit.query)
    if isinstance(asked, Refused):
        kind = NotFound if asked.reason is UrlFault.ELSEWHERE else UsageError
        raise kind(asked.reason)
    if isinstance(asked, Replay):
        return _replay(visit, asked)
    return _about_time(visit, asked)


def _replay(visit: Visit, asked: Replay) -> Response:
    if asked.modifier in FRAMES:
        return frame.frame(visit, asked)
    return archived.beside_replay(visit, asked) if visit.origins.replay else archived.answer(visit, asked)


def _about_time(visit: Visit, asked: TimeGate | TimeMap | Calendar | PrefixList | Diff) -> Response:
    match asked:
        case TimeGate():
            return mementos.timegate(visit, asked)
        case TimeMap():
            return mementos.timemap(visit, asked)
        case Calendar():
            return calendar.calendar(visit, asked.url, asked.year)
        case PrefixList():
            return calendar.below(visit, asked.prefix)
    return _diff(visit, asked, side_by_side=False)


def _diff(visit: Visit, asked: Diff, *, side_by_side: bool) -> Response:
    return calendar.differences(visit, asked.old, asked.new, asked.url, side_by_side=side_by_side)


def _side(visit: Visit, _: Mapping[str, str]) -> Response:
    asked = parse(b"/diff/" + visit.raw_path.removeprefix(b"/side/"), visit.query)
    if not isinstance(asked, Diff):
        raise UsageError(asked.reason if isinstance(asked, Refused) else "two times are compared")
    return _diff(visit, asked, side_by_side=True)


def _replayed(visit: Visit, _: Mapping[str, str]) -> Response:
    asked = parse(visit.raw_path, visit.query)
    if isinstance(asked, Refused):
        raise UsageError(asked.reason)
    if not isinstance(asked, Replay | TimeGate):
        raise NotFound("there is no such page")
    if isinstance(asked, TimeGate) or asked.modifier in FRAMES:  # the frame is the room's
        return visit.led(visit.origins.room + asked.location)
    return archived.answer(visit, asked)


#: All paths of the room; the first that fits answers.
ROUTES: tuple[RoomRoute, ...] = (
    _route("home", r"/", lists.home),
    _route("lists of the past", r"/(?:web/[0-9]*\*|timemap|diff)/.*", _past, is_costly=True),
    _route("past", r"/web/.*", _past),
    _route("side by side", r"/side/.*", _side, is_costly=True),
    _route("publication", r"/publication/(?P<name>[^/]+)", lists.publication),
    _route("links as CSV", r"/snapshot/(?P<record>[^/]+)/links\.csv", records.links_as_csv, is_costly=True),
    _route("links", r"/snapshot/(?P<record>[^/]+)/links", records.links, is_costly=True),
    _route("record as a file", r"/snapshot/(?P<record>[^/]+)\.(?P<kind>xml|json|dc)", records.exported),
    _route("record", r"/snapshot/(?P<record>[^/]+)", records.record, is_costly=True),
    _route("compare", r"/compare/(?P<pair>[^/]+)", records.compare, is_costly=True),
    _route("search as a file", r"/search\.(?P<kind>csv|json)", searching.exported, is_costly=True),
    _route("search", r"/search", searching.search, is_costly=True),
    _route("opensearch", r"/opensearch\.xml", searching.description),
    _route("versions", r"/versions", calendar.versions),
    _route("urls", r"/urls", calendar.urls, is_costly=True),
    _route("cdx", r"/cdx(?:/search/cdx)?", mementos.answer_cdx, is_costly=True),
    _route("availability", r"/wayback/available", mementos.availability),
    _route("form", r"/notice/form/.*", archived.form),
    _route("notice", r"/notice/(?P<kind>external|form|function|left-out|closed)", archived.notice),
    _route("about", r"/about", about.about),
    _route("status", r"/status\.json", about.status),
    _route("news", r"/news\.atom", about.news),
    _route("robots", r"/robots\.txt", _robots),
)

#: Paths of replay's listener: archived pages, and what they embed.
REPLAY_ROUTES: tuple[RoomRoute, ...] = (
    _route("past", r"/web/.*", _replayed),
    _route("robots", r"/robots\.txt", lambda _, __: PlainTextResponse("User-agent: *\nDisallow: /\n")),
)
#: Paths of the listener that pywb asks, which answers what the public may see.
PYWB_ROUTES: tuple[RoomRoute, ...] = (
    _route("cdx", r"/cdx/pywb", mementos.for_pywb),
    _route("record", r"/record/(?P<name>.*)", mementos.answer_record),
)


# -- a worker ----------------------------------------------------------------------------------------------------------


class _Room:
    """The handlers of a worker, with what they share."""

    def __init__(self, options: RoomOptions) -> None:
        self.shared = Shared(directory.open_archive(options.archive))
        self.services = OfThread(self.shared)
        self.key = options.key.hex()
        self.two = options.has_two_origins
        self.look = Look(self.shared.archive)
        self.origins = Origins(options.origin if self.two else "", options.replay_origin)
        self.base = options.origin
        self.runs_scripts = options.engine is Engine.PYWB

    def visit(self, request: Request, reader: Reader, token: str) -> Visit:
        """Return the visit of a request, its services in step with the archive."""
        language = negotiated(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
        origins = Origins(self.origins.room, self.origins.replay, self.base, self.runs_scripts and not reader.name)
        return Visit(request, reader, language, self.services.of(reader), origins, self.render, token, self.key)

    def render(self, template: str, values: Mapping[str, object], visit: Visit) -> str:
        """Return a page in the language of the visit."""
        request = visit.request
        return self.look.render(
            template, values, language=visit.language, path=request.url.path, query=visit.query.decode("latin-1"),
            has_search=visit.services.has_search,
        )  # fmt: skip

    def room(self, request: Request) -> Response:
        """Answer a request to the room."""
        if (response := self.static(request)) is not None:
            return response
        reader = reader_of(self.shared.settings().readers, peer(request), request.headers)
        token = replay_url.prefix_of(reader, self.key)
        if not self.two and request.scope["path"].startswith("/~"):
            return self.replay(request)
        return self.routed(ROUTES, self.visit(request, reader, token))

    def replay(self, request: Request) -> Response:
        """Answer a request to replay's listener: readers with rights are known by their token alone."""
        raw = (request.scope.get("raw_path") or request.scope["path"].encode()).partition(b"?")[0]
        reader, token, rest = replay_url.split(raw, self.key)
        scope = {**request.scope, "raw_path": rest, "path": unquote(rest.decode("latin-1"))}
        visit = self.visit(Request(scope), reader, token)
        return self.routed(REPLAY_ROUTES, visit)

    def pywb(self, request: Request) -> Response:
        """Answer pywb, by what the public may see."""
        return self.routed(PYWB_ROUTES, self.visit(request, Reader(), ""))

    @staticmethod
    def routed(routes: tuple[RoomRoute, ...], visit: Visit) -> Response:
        """Answer by the first route that fits."""
        path = visit.request.scope["path"]
        for route in routes:
            if match := route.pattern.fullmatch(path):
                return route.answer(visit, match.groupdict())
        raise NotFound("there is no such page")

    @staticmethod
    def is_costly(request: Request) -> bool:
        """Return whether a request to the room may read much."""
        path = request.scope["path"]
        route = next((route for route in ROUTES if route.pattern.fullmatch(path)), None)
        return route is not None and route.is_costly

    def static(self, request: Request) -> Response | None:
        """Return one of our own files, for a year, since its digest is in its name."""
        path = request.scope["path"]
        if not path.startswith("/static/") and path != "/favicon.ico":
            return None
        file = self.look.static_file(path)
        if file is None:
            raise NotFound("there is no such file")
        caching = {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
        return Response(file[0], media_type=file[1], headers=caching)

    def error(self, request: Request, status: HTTPStatus, error: WebarcError | None) -> Response:
        """Return the page of an error, which must not depend on what it is about."""
        language = negotiated("", request.headers.get("accept-language", ""))
        heading, text, details = _HEADINGS.get(status, "Something is wrong"), _TEXTS.get(status, ""), ""
        if isinstance(error, TookTooLong):
            heading, text = "This takes too long", _TOO_LONG
        elif error is not None and status == HTTPStatus.BAD_REQUEST:
            details = str(error)
        values = {"status": status, "heading": heading, "text": text, "details": details}
        page = self.look.render("error.html", values, language=language, path=request.url.path)
        return Response(page, int(status), {"Cache-Control": "no-store"}, "text/html; charset=utf-8")


_HEADINGS = {
    HTTPStatus.BAD_REQUEST: "This cannot be asked",
    HTTPStatus.NOT_FOUND: "There is no such page",
    HTTPStatus.FORBIDDEN: "This is under embargo",
    HTTPStatus.SERVICE_UNAVAILABLE: "The archive is busy",
}
_TEXTS = {
    HTTPStatus.NOT_FOUND: "The archive has nothing at this address.",
    HTTPStatus.FORBIDDEN: "This crawl may not be shown yet.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Please try again soon.",
}
#: What to do about an answer that takes too long.
_TOO_LONG = (
    "The request was stopped. Please ask for less: a longer beginning of the URL, a shorter span of time, fewer rows."
)


def make(options: RoomOptions) -> RoomApps:
    """Make the apps of a worker. Raises NotAnArchive, and what opening the archive raises."""
    room = _Room(options)
    answering = Answering(room.error)
    own, source = answering.endpoint(room.room, room.is_costly), answering.endpoint(room.pywb)
    if not options.has_two_origins:
        return RoomApps(own, None, answering.close, source)
    replay = answering.endpoint(room.replay)
    if not options.pywb:
        return RoomApps(own, replay, answering.close, source)
    proxy = PywbProxy(options.pywb, options.origin, options.replay_origin, replay)

    async def close() -> None:
        await answering.close()
        await proxy.close()

    return RoomApps(own, proxy, close, source, is_of_script)
