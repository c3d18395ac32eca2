"""What a request to the API asks for: names of its path and its query, as bytes that are no more than names.

A path is read as it was sent. Each segment is percent-decoded for itself, so a name may hold `%`, and what is no UTF-8
stays as it is (surrogateescape). `:` and `@` of a commitTag need no escape. A typing error is the client's: 400.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Protocol
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from webarcfs.api.api_source import ApiSource
from webarcfs.archive.model.errors import (
    Damaged,
    IsADirectory,
    NameRefused,
    NotADirectory,
    NotFound,
    NotShown,
    UsageError,
)
from webarcfs.archive.model.metadata import CommitTag, parse_moment

#: Parameters of a query that are read.
_MOST = 100
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


def decoded(segment: bytes) -> str:
    """Return a segment of a path, or a value of a query, as the name that it spells. Raises NameRefused."""
    name = os.fsdecode(unquote_to_bytes(segment))
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise NameRefused(f"{name!r} is no name: it is empty, . or .., or has a slash or a NUL")
    return name


def path_of(raw: bytes) -> str:
    """Return a path of several segments. Raises NameRefused."""
    return "/".join(decoded(segment) for segment in raw.split(b"/"))


def is_text(name: str) -> bool:
    """Return whether a name is UTF-8, without a NUL."""
    return "\0" not in name and not any("\ud800" <= char <= "\udfff" for char in name)


def tag_of(text: str) -> CommitTag:
    """Return a commitTag. Raises UsageError for what is none."""
    try:
        return CommitTag.parse(text)
    except Damaged as error:
        raise UsageError(str(error)) from None


def moment_of(text: str) -> CommitTag | datetime:
    """Return a snapshot, or a time. Raises UsageError for what is none."""
    try:
        return parse_moment(text)
    except Damaged as error:
        raise UsageError(str(error)) from None


@contextmanager
def missing(text: str) -> Iterator[None]:
    """Raise `NotShown` with a text made of the question, whatever it is that is not there."""
    try:
        yield
    except NotShown:
        raise
    except (NotFound, NotADirectory, IsADirectory):
        raise NotShown(text) from None


class NewsRoom(Protocol):
    """Answers requests for news, for all who ask a process."""

    def answer(self, asked: ApiRequest, /) -> Response:
        """Return the news, in the form that the request accepts."""


@dataclass(frozen=True)
class ApiRequest:
    """A request, with the source that answers it. `segments` are the variable parts of its path, as they were sent.

    `form` is the body of a request that has one, as forms send it: it takes the place of the query.
    """

    request: Request
    source: ApiSource
    segments: Mapping[str, bytes]
    news: NewsRoom
    form: bytes | None = None
    names: frozenset[str] = field(default=frozenset())

    @cached_property
    def tag(self) -> CommitTag:
        """The snapshot of the path. Raises UsageError for what is none, NotShown where no domain has such a name."""
        tag = tag_of(decoded(self.segments["tag"]))
        if not is_text(tag.domain):
            raise NotShown(f"there is no snapshot {tag}")
        return tag

    @property
    def path(self) -> str:
        """The path of the document, as `/<domain>/…`. Raises NameRefused, NotShown for what is no path of any."""
        path = f"/{self.tag.domain}/{path_of(self.segments['path'])}"
        if not is_text(path):
            raise NotShown(f"there is no document {path} in {self.tag}")
        return path

    def text_segment(self, name: str, what: str) -> str:
        """Return a part of the path, the name of something. Raises NameRefused, NotShown for what is no UTF-8."""
        text = decoded(self.segments[name])
        if not is_text(text):
            raise NotShown(f"there is no {what} {text!r}")
        return text

    def check(self) -> None:
        """Raise UsageError for a query that the route does not know."""
        assert self.parameters.keys() <= self.names

    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """The parameters of the query. Raises UsageError for too many, and for one that the route does not know."""
        raw: bytes = self.request.scope["query_string"] if self.form is None else self.form
        try:
            pairs = parse_qsl(
                raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST, errors="surrogateescape"
            )
        except ValueError:
            raise UsageError(f"a query has {_MOST} parameters at most") from None
        values: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in self.names:
                known = ", ".join(sorted(self.names)) or "none"
                raise UsageError(f"there is no parameter {name!r} here; there are: {known}")
            values.setdefault(name, []).append(value)
        return values

    def text(self, name: str) -> str:
        """Return the text of a parameter; empty without one. Raises UsageError for several, and for what is no text."""
        text = self.value(name)
        if not is_text(text):
            raise UsageError(f"{name} has a NUL, or is no UTF-8")
        return text

    def value(self, name: str) -> str:
        """Return the value of a parameter, which may be any bytes; empty without one. Raises UsageError for several."""
        values = self.parameters.get(name, [""])
        if len(values) > 1:
            raise UsageError(f"{name} is given {len(values)} times")
        return values[0]

    def texts(self, name: str) -> list[str]:
        """Return the values of a parameter that may be given several times. Raises UsageError for what is no text."""
        values = self.parameters.get(name, [])
        if not all(map(is_text, values)):
            raise UsageError(f"{name} has a NUL, or is no UTF-8")
        return values

    def number(self, name: str) -> int | None:
        """Return a parameter that is a count; None without one. Raises UsageError for what is none."""
        text = self.text(name)
        if not text:
            return None
        if not _NUMBER.fullmatch(text):
            raise UsageError(f"{name} is a number, 0 or more, and not {text!r}")
        return int(text)

    def is_set(self, name: str) -> bool:
        """Return whether a parameter says yes. Raises UsageError for another word than 1, 0, true and false."""
        text = self.text(name)
        if text not in ("", "0", "1", "true", "false"):
            raise UsageError(f"{name} is 1 or 0, and not {text!r}")
        return text in ("1", "true")

    def word(self, name: str, words: Mapping[str, object] | tuple[str, ...]) -> str:
        """Return a parameter that is one of some words; empty without one. Raises UsageError for another."""
        text = self.text(name)
        if text and text not in words:
            raise UsageError(f"{name} is one of {', '.join(words)}, and not {text!r}")
        return text

    def file_name(self) -> str:
        """Return the name of a file in an ARC, which may lie in folders. Raises NameRefused, UsageError without one."""
        text = self.value("name")
        if not text:
            raise UsageError("say which file: ?name=")
        for part in text.split("/"):
            if part in ("", ".", "..") or "\0" in part:
                raise NameRefused(f"{text!r} is no name of a file: a part is empty, . or .., or has a NUL")
        return text

    @property
    def caching(self) -> str:
        """The Cache-Control of an answer: it depends on who asks, and is judged each time."""
        return "private, no-store" if self.source.person else "no-cache"

    def answered(self, response: Response) -> Response:
        """Return an answer with what all have in common."""
        response.headers.setdefault("Cache-Control", self.caching)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response
