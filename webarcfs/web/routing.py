"""Routes of the reading room and of the desk: Starlette's, by two rules of our own.

The whole path must fit, and a newline is a character like any other. A path that ends with a slash stands for all that
lies below it, and its handler reads the raw path: Starlette matches decoded paths, so no parameter has an archived URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from typing import Final, Self, TypeVar

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Scope

from webarcfs.archive.model.errors import NotFound
from webarcfs.web.answering import Answering

_UNBOUND: Final = Response(status_code=404)
_FOR_A_YEAR: Final = {"Cache-Control": f"public, max-age={365 * 24 * 3600}, immutable"}


class PathRoute(Route):
    """A route of a table. A program binds what answers it."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(path, _UNBOUND, name=name)
        below = ".*" if path.endswith("/") and path != "/" else ""
        self.path_regex = re.compile(rf"{self.path_regex.pattern[:-1]}{below}\Z", re.DOTALL)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for the route: most are not, which is told at once."""
        return super().matches(scope) if self.path_regex.match(scope["path"]) else (Match.NONE, {})

    def bound(self, app: ASGIApp) -> Self:
        """Return the route with what answers it."""
        route = copy(self)
        route.app = app
        return route


_R = TypeVar("_R", bound=PathRoute)


def find_route(routes: Iterable[_R], path: str) -> tuple[_R, dict[str, str]] | None:
    """Return the first route that fits a path, and what the path says."""
    return next(((route, match.groupdict()) for route in routes if (match := route.path_regex.match(path))), None)


def name_expression(name: str, expression: str) -> None:
    """Give an expression a name, for parameters of paths: `{parameter:name}`."""
    register_url_convertor(name, type(name, (StringConvertor,), {"regex": expression})())


def static_routes(answering: Answering, file_of: Callable[[str], tuple[bytes, str] | None]) -> list[PathRoute]:
    """Return the routes of our own files. A file is good for a year, since its digest is in its name."""

    def answer(request: Request) -> Response:
        file = file_of(request.scope["path"])
        if file is None:
            raise NotFound("there is no such file")
        return Response(file[0], media_type=file[1], headers=_FOR_A_YEAR)

    endpoint = answering.endpoint(answer)
    return [PathRoute("our files", path).bound(endpoint) for path in ("/static/", "/favicon.ico")]
