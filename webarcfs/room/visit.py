"""A request to the room: who asks, in which language, and the archive as that reader may see it. For one thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from webarcfs.archive.model.errors import UsageError
from webarcfs.gate.gate import Reader
from webarcfs.room.services import Services

#: Most parameters of a query that are read.
_MOST = 100


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the room and replay are: `replay` and `room` are origins, both empty where they are one.

    `base` is the room's origin in any case, as far as it is known, for URLs that others read. `runs_scripts`: replay is
    pywb's engine. `prefix` precedes the paths of frames and notices, where another server shows them below a path.
    """

    room: str = ""
    replay: str = ""
    base: str = ""
    runs_scripts: bool = False
    prefix: str = ""

    @property
    def pages(self) -> str:
        """What precedes the paths of frames and notices in links of archived pages."""
        return self.room + self.prefix


class Renderer(Protocol):
    """Makes the HTML of a view."""

    def __call__(self, view: object, visit: Visit, /) -> str:
        """Return a page in the language of the visit."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, with what its handler needs. `token` precedes paths of replay for readers with rights."""

    request: Request
    reader: Reader
    language: str
    services: Services
    origins: Origins
    renderer: Renderer = field(repr=False)
    token: str = ""
    key: str = field(default="", repr=False)

    def page(self, view: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """Return a page of the room. It depends on the reader, and is judged each time: caches must ask again."""
        caching = "private, no-store" if self.reader.name else "no-cache"
        found = {"Cache-Control": caching, "Vary": "Accept-Language", **(headers or {})}
        return HTMLResponse(self.renderer(view, self), status, found)

    @property
    def names_purpose(self) -> bool:
        """Whether a browser asks that trusts the address: it says what for (Fetch Metadata), and no program does."""
        return "sec-fetch-mode" in self.request.headers

    @property
    def is_from_browser(self) -> bool:
        """Whether a browser asks, or a program that calls itself one: each of them says that it is Mozilla."""
        return self.names_purpose or self.request.headers.get("user-agent", "").startswith("Mozilla/")

    @property
    def raw_path(self) -> bytes:
        """The path as it was sent, undecoded and without the query."""
        scope = self.request.scope
        found: bytes = scope.get("raw_path") or scope["path"].encode()
        return found.partition(b"?")[0]

    @property
    def base(self) -> str:
        """The address of the site, for programs that follow what an answer says."""
        return self.origins.base or str(self.request.base_url).rstrip("/")

    @property
    def query(self) -> bytes:
        """The query as it was sent."""
        found: bytes = self.request.scope["query_string"]
        return found

    def parameters(self) -> dict[str, list[str]]:
        """Return the parameters of the query, in their order. Raises UsageError for too many."""
        found: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(self.query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST)
        except ValueError:
            raise UsageError(f"a query has {_MOST} parameters at most") from None
        for name, value in pairs:
            found.setdefault(name, []).append(value)
        return found

    def parameter(self, name: str) -> str:
        """Return the last value of a parameter, or an empty text."""
        return self.parameters().get(name, [""])[-1].strip()

    def with_parameters(self, path: str = "", /, **changes: str | int | None) -> str:
        """Return the path with the query changed: None or an empty text takes a parameter out."""
        found = {name: values for name, values in self.parameters().items() if name not in changes and any(values)}
        found |= {name: [str(value)] for name, value in changes.items() if value not in (None, "")}
        query = urlencode(found, doseq=True)
        here = path or self.request.scope["path"]
        return f"{here}?{query}" if query else str(here)
