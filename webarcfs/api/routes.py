"""The one table of the API's routes, for all servers, and the handlers that read.

Paths are below `/api/v1`. A variable part is one segment, but `{path}`, the last one, may be
several. A row is for some methods; a server adds rows of its own for what it alone can do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from webarcfs import __version__
from webarcfs.api.answers import (
    DOCUMENT_COLUMNS,
    collected_rows,
    file_answer,
    json_answer,
    listing_answer,
    row_of,
    streamed_rows,
)
from webarcfs.api.api_request import ApiRequest, is_text, missing
from webarcfs.api.api_source import ApiSource
from webarcfs.api.problems import problem_of
from webarcfs.archive.index.query import DocumentOrigin
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
    routes: Iterable[ApiRoute], answering: Answering, source_of: Callable[[Request], ApiSource]
) -> list[PathRoute]:
    """Return routes with what answers them, and a last one for what else is below the prefix."""

    def answer(route: ApiRoute, request: Request) -> Response:
        asked = ApiRequest(request, source_of(request), request.path_params, names=route.parameters)
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


# == what there is ====================================================================================================


def _about(asked: ApiRequest) -> Response:
    source = asked.source
    value = {
        "version": __version__, "format": source.layout(), "can": source.abilities(), "person": source.person,
    }  # fmt: skip
    return json_answer(asked, value)


def _domains(asked: ApiRequest) -> Response:
    return json_answer(asked, asked.source.domains())


def _snapshots(asked: ApiRequest) -> Response:
    domain = asked.segment("domain")
    if not is_text(domain):
        raise NotShown(f"there is no domain {domain!r}")
    with missing(f"there is no domain {domain!r}"):
        return json_answer(asked, [str(tag) for tag in asked.source.snapshots(domain)])


# == rows =============================================================================================================


def _no_snapshot(asked: ApiRequest) -> str:
    return f"there is no snapshot {asked.tag}"


def _documents(asked: ApiRequest) -> Response:
    after = asked.value("after")
    with missing(f"there is no document {after} in {asked.tag}" if after else _no_snapshot(asked)):
        return streamed_rows(asked, DOCUMENT_COLUMNS, map(row_of, asked.source.documents(asked.tag, after)))


def _changed(asked: ApiRequest) -> Response:
    with missing(_no_snapshot(asked)):
        return streamed_rows(asked, DOCUMENT_COLUMNS, map(row_of, asked.source.changed(asked.tag)))


def _query(asked: ApiRequest) -> Response:
    origin = DocumentOrigin(asked.text("domain"), asked.text("publication"))
    rows = asked.source.query(asked.value("where"), asked.value("order_by"), asked.number("limit"), origin)
    with missing("the archive has no index of its documents yet"), closing(rows):
        return collected_rows(asked, DOCUMENT_COLUMNS, map(row_of, rows))


# == documents ========================================================================================================


def _no_document(asked: ApiRequest) -> str:
    return f"there is no document {asked.path} in {asked.tag}"


def _arc(asked: ApiRequest) -> Response:
    with missing(_no_document(asked)):
        listing = asked.source.arc(asked.tag, asked.path)
    value = {
        "metadata": listing.document.as_fields(),
        "entries": [entry.as_fields() for entry in listing.entries],
    }
    return listing_answer(asked, f'"{listing.tree}"', value)


def _file(asked: ApiRequest) -> Response:
    name = asked.file_name()
    with missing(f"there is no file {name!r} of {asked.path} in {asked.tag}"):
        return file_answer(asked, asked.source.file(asked.tag, asked.path, name), name)


# == table ============================================================================================================


#: All routes of every server.
ROUTES: Final[tuple[ApiRoute, ...]] = (
    ApiRoute("/", _about),
    ApiRoute("/domains", _domains),
    ApiRoute("/domains/{domain}/snapshots", _snapshots),
    ApiRoute("/snapshots/{tag}/documents", _documents, "after", is_costly=True),
    ApiRoute("/snapshots/{tag}/changed", _changed, is_costly=True),
    ApiRoute("/query", _query, "where", "order_by", "limit", "domain", "publication", is_costly=True),
    ApiRoute("/arcs/{tag}/{path}", _arc),
    ApiRoute("/files/{tag}/{path}", _file, "name"),
)
