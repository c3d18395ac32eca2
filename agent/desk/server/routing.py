"""A route of the desk: a path, what answers it, the right that it needs, and how its form is shown again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from agent.desk.shared.visit import DeskVisit
from webarcfs.archive.catalogue.workflow import Right

#: Answers a request of a person who has the right.
Handler = Callable[[DeskVisit, Mapping[str, str]], Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path, as an expression over the decoded path, with the handlers of GET and POST; None: there is none.

    `looks` and `acts` are the rights of GET and POST; None: every person of the archive. `again` shows the page of a
    form with what was typed: after a fault, or a login. `example` is a path, for tests. `action` is what tokens of the
    form are made for; empty: the path, without `suffix` where two buttons send one form to two places. `takes_file`:
    its form has a file.
    """

    name: str
    pattern: re.Pattern[str]
    example: str
    get: Handler | None = None
    post: Handler | None = None
    looks: Right | None = None
    acts: Right | None = None
    again: Handler | None = None
    action: str = ""
    suffix: str = ""
    takes_file: bool = False

    def action_of(self, path: str) -> str:
        """Return for which action a token must be made that is sent to a path."""
        return self.action or path.removesuffix(self.suffix)


def route(name: str, pattern: str, example: str, **more: object) -> Route:
    """Return a route."""
    return Route(name=name, pattern=re.compile(pattern, re.DOTALL), example=example, **more)  # type: ignore[arg-type] # as Route has them


def found(routes: tuple[Route, ...], path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the first route that fits a path, and what the path says."""
    for each in routes:
        if match := each.pattern.fullmatch(path):
            return each, match.groupdict()
    return None
