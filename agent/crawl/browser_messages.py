"""What a job and the process of its browser tell each other: JSON, a message a line. Pure.

The job begins (`Begin`) and has a page shown (`ShowPage`). The process asks for each request of the page (`Ask`), and
the job decides (`Fetch`, `Have`, `RedirectTo`, `Refuse`). The process tells what came of a request that it made
(`Fetched`, `Missed`), and in the end what the page showed (`PageShown`), or that it can show nothing at all (`Unable`).
A disk that takes no more (`DiskFailed`) is the last that it tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, get_args

from webarcfs.archive.model.errors import WebarcError

#: A page ends after so many times its own bound, whatever its requests wait for.
MOST_WAITING: Final = 10


@dataclass(frozen=True, slots=True)
class Begin:
    """The settings of the process.

    `archive` is its folder, `window` is in pixels, `memory` in bytes, and `pages` is how many one browser shows.
    """

    archive: str
    program: str
    user: str
    window: tuple[int, int]
    memory: int
    pages: int
    user_agent: str
    ca: str = ""
    bind: str = ""
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class ShowPage:
    """Show a page; its own response is at `position` in the file `document`. What is fetched goes into `warc`.

    `began` is when that response came, in seconds since 1970. `seconds`, `requests` and `most` (bytes) are the bounds
    of the page. `keep` names the parts that are kept, a DOM of up to `largest_dom` bytes. `clicks` are texts that a
    person wants to be clicked. With `routes`, what links of the page lead to by `#/` and `#!` alone is shown as well.
    """

    page: int
    url: str
    document: str
    position: int
    began: int
    warc: str
    seconds: float
    requests: int
    most: int
    timeout: float
    largest: int
    scroll: int
    more: int
    behaviours: tuple[str, ...]
    clicks: tuple[str, ...]
    keep: tuple[str, ...]
    largest_dom: int
    cookies: tuple[str, ...] = ()
    routes: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """May the page have this? `kind` is Chromium's type of the resource; `body` is base64, of a POST."""

    ask: int
    method: str
    url: str
    kind: str
    mime: str = ""
    body: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch it, and keep it by the URL `key`; empty: give it to the page, and keep nothing.

    `wait` is the pause of its server in seconds, `lock` the server's lock file. `speed` is in bytes a second, of all
    requests of the page together; 0 is no bound. `fields` are secrets for that host.
    """

    ask: int
    key: str
    lock: str
    wait: float
    public: bool
    checked: bool
    speed: int = 0
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Have:
    """The crawl has it already: at `position` in the file `warc`."""

    ask: int
    warc: str
    position: int


@dataclass(frozen=True, slots=True)
class RedirectTo:
    """Its host asks for https: the page is sent there."""

    ask: int
    target: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The page does not get it; `word` is the crawl log's."""

    ask: int
    word: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response is whole in the page's WARC, at `position`; `faults` are words on the server's certificate."""

    ask: int
    position: int
    faults: str = ""


@dataclass(frozen=True, slots=True)
class Missed:
    """No whole response came: Heritrix's status and the crawl log's word. 0: it was not asked for."""

    ask: int
    status: int
    word: str


@dataclass(frozen=True, slots=True)
class PageShown:
    """What a page showed. A part is kept at `…_at` in the page's WARC, with `…_size` bytes; -1: there is none.

    `words` say what was cut or not done, `fault` why nothing is kept. `links` are (URL, purpose, named) of the rendered
    DOM; `forward` is where the page went on to. `cookies` are those of its site, as lines of a jar.
    """

    page: int
    fault: str = ""
    words: tuple[str, ...] = ()
    title: str = ""
    began: str = ""
    html_at: int = -1
    html_size: int = 0
    text_at: int = -1
    text_size: int = 0
    picture_at: int = -1
    picture_size: int = 0
    links: tuple[tuple[str, str, str], ...] = ()
    forward: str = ""
    cookies: tuple[str, ...] = ()
    requests: int = 0
    refused: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Unable:
    """No browser can be started here; `why` is for people."""

    why: str
    word: str


@dataclass(frozen=True, slots=True)
class DiskFailed:
    """The disk did not take what was to be kept. `number` is the errno; `path` is the file, empty if it is unknown."""

    number: int
    path: str = ""


Message = (
    Begin | ShowPage | Ask | Fetch | Have | RedirectTo | Refuse | Fetched | Missed | PageShown | Unable | DiskFailed
)
_TYPES: Final[Mapping[str, Callable[..., Message]]] = {
    message_type.__name__: message_type for message_type in get_args(Message)
}


def packed(message: Message) -> bytes:
    """Return the line of a message."""
    values = asdict(message)
    return json.dumps({"message": type(message).__name__, **values}, ensure_ascii=True).encode("ascii") + b"\n"


def unpacked(line: bytes) -> Message:
    """Return the message of a line. Raises WebarcError for what is none: the two ends are of other versions."""
    try:
        values = json.loads(line)
        message_type = _TYPES[values.pop("message")]
        message = message_type(**{name: _frozen(value) for name, value in values.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WebarcError(f"a message of the browser's process cannot be read: {error}") from None
    return message


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
