"""The one table of the API's routes, for all servers, and how a server binds them.

Paths are those of openapi.yaml, below `/api/v1`. A variable part is one segment, but `{path}`, the last one, may be
several. A row is for some methods; a server adds rows of its own for what it alone can do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from webarcfs.api import reading
from webarcfs.api.api_request import ApiRequest, NewsRoom
from webarcfs.api.api_source import ApiSource
from webarcfs.api.problems import problem_of
from webarcfs.archive.model.errors import NotShown
from webarcfs.web.answering import Answering
from webarcfs.web.routing import PathRoute

PREFIX: Final = "/api/v1"

# == route ============================================================================================================


#: Answers a request to the API. It runs in a thread of the server, and may raise the errors of the family.
ApiHandler = Callable[[ApiRequest], Response]
_PART: Final = re.compile(r"\\\{([a-z]+)\\\}")
_READING: Final = ("GET",)


class ApiRoute(PathRoute):
    """A path of the API, and what answers it. `parameters` are those of its query.

    `is_costly`: it may read all captures of a site, or of the archive.
    """

    def __init__(
        self,
        path: str,
        answer: ApiHandler,
        *parameters: str,
        methods: tuple[str, ...] = _READING,
        is_costly: bool = False,
    ) -> None:
        super().__init__(f"{' '.join(methods)} {path}", f"{PREFIX}{path}")
        self.template, self.answer, self.is_costly = path, answer, is_costly
        self.parameters = frozenset(parameters)
        self.methods = {*methods, *(["HEAD"] if "GET" in methods else [])}
        pattern = _PART.sub(lambda part: f"(?P<{part[1]}>{'.+' if part[1] == 'path' else '[^/]+'})", re.escape(path))
        self.path_regex = re.compile(re.escape(PREFIX) + pattern + r"\Z", re.DOTALL)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for the route, by the path as it was sent: a name may have a slash in it."""
        match = self.path_regex.match(raw_path_of(scope).decode("latin-1"))
        if match is None:
            return Match.NONE, {}
        segments = {name: value.encode("latin-1") for name, value in match.groupdict().items()}
        is_for = scope["method"] in (self.methods or ())
        return Match.FULL if is_for else Match.PARTIAL, {"endpoint": self.endpoint, "path_params": segments}


def raw_path_of(scope: Scope) -> bytes:
    """Return the path as it was sent, without the query."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0]


def bound(
    routes: Iterable[ApiRoute], answering: Answering, source_of: Callable[[Request], ApiSource], news: NewsRoom
) -> list[PathRoute]:
    """Return routes with what answers them, and a last one for what else is below the prefix."""

    def answer(route: ApiRoute, request: Request) -> Response:
        asked = ApiRequest(request, source_of(request), request.path_params, news, names=route.parameters)
        asked.check()
        return route.answer(asked)

    def endpoint(route: ApiRoute) -> PathRoute:
        return route.bound(
            answering.endpoint(
                lambda request: answer(route, request), is_costly=route.is_costly, answer_error=problem_of
            )
        )

    absent = PathRoute("nothing of the API", "/api/").bound(answering.endpoint(_absent, answer_error=problem_of))
    return [*map(endpoint, routes), absent]


def _absent(_: Request) -> Response:
    raise NotShown("there is no such path in this API")


# == table ============================================================================================================


#: All routes of every server.
ROUTES: Final[tuple[ApiRoute, ...]] = (
    ApiRoute("/", reading.describe_server),
    ApiRoute("/openapi.yaml", reading.describe_api),
    ApiRoute("/domains", reading.list_domains),
    ApiRoute("/domains/{domain}/snapshots", reading.list_snapshots),
    ApiRoute("/snapshots/{tag}/documents", reading.list_documents, "after", is_costly=True),
    ApiRoute("/snapshots/{tag}/changed", reading.list_changed, is_costly=True),
    ApiRoute("/snapshots/{tag}.tar", reading.send_tar, "after", is_costly=True),
    ApiRoute("/query", reading.ask_query, "where", "order_by", "limit", "domain", "publication", is_costly=True),
    ApiRoute("/search", reading.search, *reading.SEARCH_PARAMETERS, is_costly=True),
    ApiRoute("/links", reading.list_links, *reading.LINK_PARAMETERS, is_costly=True),
    ApiRoute("/records", reading.list_records, "publication", "xml", is_costly=True),
    ApiRoute("/records/{id}", reading.send_record),
    ApiRoute("/publications/{name}", reading.describe_publication),
    ApiRoute("/changes", lambda asked: asked.news.answer(asked), "since", is_costly=True),
    ApiRoute("/arcs/{tag}/{path}", reading.list_arc),
    ApiRoute("/files/{tag}/{path}", reading.send_file, "name"),
    ApiRoute("/nodes/{tag}/{path}", reading.send_node, "name"),
)
