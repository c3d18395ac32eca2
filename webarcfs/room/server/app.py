"""The apps of a worker: which path is answered by which handler, on the room's listener and on that of replay.

There is an ASGI app for the room, and one for archived pages if they have a listener of their own. `ROUTES` has all
paths; the tests ask each for what readers may not see. Replay's listener answers archived pages alone, and never the
room's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Router
from starlette.types import ASGIApp

from webarcfs.access.gate import Reader
from webarcfs.api import routes as api
from webarcfs.api.api_source import ClientSource, ClientSources
from webarcfs.api.changes import NewsStreams
from webarcfs.archive.config import directory
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import NotFound, TookTooLong, UsageError, WebarcError, is_damage
from webarcfs.archive.repair.damage_note import DamageWriter
from webarcfs.room.pages import (
    about,
    archived,
    calendar,
    citing,
    curves,
    finding,
    frame,
    lists,
    mementos,
    records,
    searching,
)
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
from webarcfs.room.views import Notice
from webarcfs.room.visit import OfThread, Origins, Shared, Visit, reader_of
from webarcfs.web.answering import REASON, Answering, peer
from webarcfs.web.health import PATH as HEALTH_PATH
from webarcfs.web.health import Health
from webarcfs.web.language import negotiated
from webarcfs.web.routing import PathRoute, name_expression, static_routes

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


Handler = Callable[[Visit, Mapping[str, str]], Response]


class RoomRoute(PathRoute):
    """A path of the room, and what answers it. `is_costly`: it may read all captures of a site, or of the archive."""

    def __init__(self, name: str, path: str, answer: Handler, *, is_costly: bool = False) -> None:
        super().__init__(name, path)
        self.answer, self.is_costly = answer, is_costly


#: Beginnings of paths that crawlers are asked not to follow.
_FOR_READERS_ALONE = ("/web/", "/cite", "/diff/", "/find", "/search", "/curve", "/cdx", "/api/")


def _robots(_visit: Visit, _: Mapping[str, str]) -> Response:
    """Keep crawlers out of replay: an archive must not be found in place of the sites that it archives."""
    return PlainTextResponse("User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in _FOR_READERS_ALONE))


# -- URLs of the past --------------------------------------------------------------------------------------------------


def _past(visit: Visit, _: Mapping[str, str]) -> Response:
    """Answer what lies below /web/, /timemap/ and /diff/."""
    asked = _asked(visit)
    return _replay(visit, asked) if isinstance(asked, Replay) else _about_time(visit, asked)


def _asked(visit: Visit) -> Replay | TimeGate | TimeMap | Calendar | PrefixList | Diff:
    asked = parse(visit.raw_path, visit.query)
    if isinstance(asked, Refused):
        raise (NotFound if asked.reason is UrlFault.ELSEWHERE else UsageError)(asked.reason)
    return asked


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
    asked = _asked(visit)
    if not isinstance(asked, Replay | TimeGate):
        raise NotFound("there is no such page")
    if isinstance(asked, TimeGate) or asked.modifier in FRAMES:  # the frame is the room's
        return visit.led(visit.origins.room + asked.location)
    return archived.answer(visit, asked)


def _absent(_: Request) -> Response:
    raise NotFound("there is no such page")


name_expression("digits", "[0-9]*")
name_expression("export", "xml|json|dc")
name_expression("rows", "csv|json")
name_expression("drawing", "csv|svg")
name_expression("citation", "|".join(citing.FORMS))
name_expression("notice", "|".join(Notice))
name_expression("token", "[^/]*")
#: All paths of the room; the first that fits answers, so those that are asked for most come first.
ROUTES: tuple[RoomRoute, ...] = (
    RoomRoute("calendar", "/web/{digits:digits}*/", _past, is_costly=True),
    RoomRoute("past", "/web/", _past),
    RoomRoute("home", "/", lists.home),
    RoomRoute("find", "/find", finding.find),
    RoomRoute("search", "/search", searching.search, is_costly=True),
    RoomRoute("search as a file", "/search.{kind:rows}", searching.exported, is_costly=True),
    RoomRoute("curve", "/curve", curves.curve, is_costly=True),
    RoomRoute("curve as a file", "/curve.{kind:drawing}", curves.exported, is_costly=True),
    RoomRoute("TimeMap", "/timemap/", _past, is_costly=True),
    RoomRoute("differences", "/diff/", _past, is_costly=True),
    RoomRoute("chosen versions", "/diff", calendar.chosen),
    RoomRoute("side by side", "/side/", _side, is_costly=True),
    RoomRoute("citation", "/cite/", citing.page),
    RoomRoute("citation as a file", "/cite.{form:citation}/", citing.file),
    RoomRoute("publication", "/publication/{name}", lists.publication),
    RoomRoute("collections", "/collections", lists.collections),
    RoomRoute("picture", "/collection/{name}/picture", lists.collection_picture),
    RoomRoute("collection", "/collection/{name}", lists.collection),
    RoomRoute("crawls as a file", "/crawls.{kind:rows}", lists.taken_crawls, is_costly=True),
    RoomRoute("collections as a file", "/collections.{kind:rows}", lists.taken_collections, is_costly=True),
    RoomRoute(
        "crawls of a collection as a file",
        "/collection/{name}/crawls.{kind:rows}",
        lists.taken_collection,
        is_costly=True,
    ),
    RoomRoute("links as a file", "/snapshot/{record}/links.{kind:rows}", records.taken_links, is_costly=True),
    RoomRoute("links", "/snapshot/{record}/links", records.links, is_costly=True),
    RoomRoute("record as a file", "/snapshot/{record}.{kind:export}", records.exported),
    RoomRoute("record", "/snapshot/{record}", records.record, is_costly=True),
    RoomRoute("compare", "/compare/{pair}", records.compare, is_costly=True),
    RoomRoute("opensearch", "/opensearch.xml", searching.description),
    RoomRoute("versions", "/versions", calendar.versions, is_costly=True),
    RoomRoute("urls as a file", "/urls.{kind:rows}", calendar.taken_urls, is_costly=True),
    RoomRoute("urls", "/urls", calendar.urls, is_costly=True),
    RoomRoute("cdx", "/cdx", mementos.answer_cdx, is_costly=True),
    RoomRoute("cdx of the Wayback Machine", "/cdx/search/cdx", mementos.answer_cdx, is_costly=True),
    RoomRoute("availability", "/wayback/available", mementos.availability),
    RoomRoute("form", "/notice/form/", archived.form),
    RoomRoute("notice", "/notice/{kind:notice}", archived.notice),
    RoomRoute("about", "/about", about.about),
    RoomRoute("status", "/status.json", about.status),
    RoomRoute("news", "/news.atom", about.news),
    RoomRoute("robots", "/robots.txt", _robots),
)
#: Paths of the room that answer as the public may see it, whoever asks.
PUBLIC_ROUTES: tuple[RoomRoute, ...] = (RoomRoute("metrics", "/metrics", about.metrics),)
#: Paths of replay's listener: archived pages, and what they embed.
REPLAY_ROUTES: tuple[RoomRoute, ...] = (
    RoomRoute("past", "/web/", _replayed),
    RoomRoute("robots", "/robots.txt", lambda _, __: PlainTextResponse("User-agent: *\nDisallow: /\n")),
)
#: The same for readers with rights, whose name is in the path.
NAMED_ROUTES = tuple(
    RoomRoute(f"{route.name} of a reader", f"/~{{token:token}}{route.path}", route.answer) for route in REPLAY_ROUTES
)
#: Paths of the listener that pywb asks, which answers what the public may see.
PYWB_ROUTES: tuple[RoomRoute, ...] = (
    RoomRoute("cdx", "/cdx/pywb", mementos.for_pywb),
    RoomRoute("record", "/record/{name:path}", mementos.answer_record),
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
        self.answering = Answering(self.error)
        self.damage = DamageWriter(self.shared.archive)
        self.origins = Origins(options.origin if self.two else "", options.replay_origin)
        self.base = options.origin
        self.runs_scripts = options.engine is Engine.PYWB
        self.health = Health(self.look_at_archive)
        self.sources = ClientSources(self.shared.archive)
        self.changes = NewsStreams()

    def visit(self, request: Request, reader: Reader, token: str, settings: Settings | None = None) -> Visit:
        """Return the visit of a request, its services in step with the archive; `settings` if they are read already."""
        language = negotiated(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
        origins = Origins(self.origins.room, self.origins.replay, self.base, self.runs_scripts and not reader.name)
        services = self.services.of(reader, settings)
        return Visit(request, reader, language, services, origins, self.render, token, self.key)

    def render(self, template: str, values: Mapping[str, object], visit: Visit) -> str:
        """Return a page in the language of the visit."""
        request = visit.request
        return self.look.render(
            template, values, language=visit.language, path=request.url.path, query=visit.query.decode("latin-1"),
            has_search=visit.services.has_search,
        )  # fmt: skip

    def of_proxy(self, request: Request) -> Visit:
        """Return the visit of a request to the room: a proxy names readers with rights."""
        settings = self.shared.settings()
        reader = reader_of(settings.readers, peer(request), request.headers)
        return self.visit(request, reader, replay_url.prefix_of(reader, self.key), settings)

    def of_token(self, request: Request) -> Visit:
        """Return the visit of a request to replay: readers with rights are known by their token alone."""
        raw = (request.scope.get("raw_path") or request.scope["path"].encode()).partition(b"?")[0]
        reader, token, rest = replay_url.split(raw, self.key)
        scope = {**request.scope, "raw_path": rest, "path": unquote(rest.decode("latin-1"))}
        return self.visit(Request(scope), reader, token)

    def of_public(self, request: Request) -> Visit:
        """Return the visit of pywb, which sees what the public may see."""
        return self.visit(request, Reader(), "")

    def bound(self, routes: Iterable[RoomRoute], visit_of: Callable[[Request], Visit]) -> list[PathRoute]:
        """Return routes with what answers them."""

        def endpoint(route: RoomRoute) -> ASGIApp:
            return self.answering.endpoint(
                lambda request: route.answer(visit_of(request), request.path_params), is_costly=route.is_costly
            )

        return [route.bound(endpoint(route)) for route in routes]

    def source(self, request: Request) -> ClientSource:
        """Return the archive as programs of the reader see it: a proxy names readers with rights."""
        return self.sources.of(reader_of(self.shared.settings().readers, peer(request), request.headers).name)

    async def close(self) -> None:
        """Take no further work."""
        self.changes.close()
        await self.answering.close()

    def look_at_archive(self) -> None:
        """Read a little of what answers need. Raises what reading raises."""
        if not self.shared.archive.is_there:
            raise self.shared.archive.missing("the archive")
        about.look_at(self.services.of(Reader()))

    def router(self, *routes: list[PathRoute]) -> Router:
        """Return the app of a listener."""
        health = PathRoute("health", HEALTH_PATH).bound(self.answering.endpoint(self.health.answer))
        return Router(list(chain(*routes, [health])), redirect_slashes=False, default=self.answering.endpoint(_absent))

    def error(self, request: Request, status: HTTPStatus, error: WebarcError | None) -> Response:
        """Return the page of an error, which must not depend on what it is about."""
        language = negotiated("", request.headers.get("accept-language", ""))
        heading, text = _ERRORS.get(status, ("Something is wrong", ""))
        if isinstance(error, TookTooLong):
            heading, text = "This takes too long", _TOO_LONG
        elif is_damage(request.scope.get(REASON)):
            self.damage.note()
            heading, text = "This page cannot be read at present", _UNREADABLE
        details = str(error) if error is not None and status == HTTPStatus.BAD_REQUEST else ""
        values = {"status": status, "heading": heading, "text": text, "details": details}
        page = self.look.render("error.html", values, language=language, path=request.url.path)
        return Response(page, int(status), {"Cache-Control": "no-store"}, "text/html; charset=utf-8")


#: Headings of errors, and what is said of them.
_ERRORS = {
    HTTPStatus.BAD_REQUEST: ("This cannot be asked", ""),
    HTTPStatus.NOT_FOUND: ("There is no such page", "The archive has nothing at this address."),
    HTTPStatus.FORBIDDEN: ("This is under embargo", "This crawl may not be shown yet."),
    HTTPStatus.SERVICE_UNAVAILABLE: ("The archive is busy", "Please try again soon."),
}
#: What is said where something of the archive is damaged: to ask again would not help.
_UNREADABLE = "Something in the archive is damaged. The people who look after it are told of that."
#: What to do about an answer that takes too long.
_TOO_LONG = (
    "The request was stopped. Please ask for less: a longer beginning of the URL, a shorter span of time, fewer rows."
)


def make(options: RoomOptions) -> RoomApps:
    """Make the apps of a worker. Raises NotAnArchive, and what opening the archive raises."""
    room = _Room(options)
    own = room.bound(ROUTES, room.of_proxy) + room.bound(PUBLIC_ROUTES, room.of_public)
    own += api.bound(api.ROUTES, room.answering, room.source, room.changes)
    named = room.bound(NAMED_ROUTES, room.of_token)
    static, close = static_routes(room.answering, room.look.static_file), room.close
    source = room.router(room.bound(PYWB_ROUTES, room.of_public))
    if not room.two:
        return RoomApps(room.router(static, own, named), None, close, source)
    replay = room.router(room.bound(REPLAY_ROUTES, room.of_token), named)
    if not options.pywb:
        return RoomApps(room.router(static, own), replay, close, source)
    proxy = PywbProxy(options.pywb, options.origin, options.replay_origin, replay)

    async def close_both() -> None:
        await close()
        await proxy.close()

    return RoomApps(room.router(static, own), proxy, close_both, source, is_of_script)
