"""The process that shows pages in a browser: `python -m agent.crawl.browser`, a child of the job.

The browser has no network (`chromium.py`). Each of its requests is paused, and the job is asked about it. What the job
permits is fetched here, byte for byte, written into the page's WARC, and given to the page. So scope, robots.txt,
pauses, quotas and private addresses hold for what scripts ask for as for all else, before a byte is sent.

One page is shown at a time. It is at its end when it has loaded, nothing that it asked for is open, and its behaviours
have done their steps. A page has bounds for its time, its requests and its bytes; the browser has one for its memory. A
page that exceeds one costs itself alone: the browser is ended, and the next page gets another. The clock of a page
stands still while all that it asked for waits for a turn: a pause of ours is not its fault.

A host is asked by one thread, which takes the host's lock for a request and its pause, and gives it back. So wgets and
other jobs take turns with it.

What a page showed goes into its WARC, too: the DOM, the text and the picture are WARC resource records.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import hashlib
import io
import os
import signal
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urldefrag

from agent.crawl import behaviours
from agent.crawl.browser_messages import (
    MOST_WAITING,
    Ask,
    Begin,
    DiskFailed,
    Fetch,
    Fetched,
    Have,
    Message,
    Missed,
    PageShown,
    RedirectTo,
    Refuse,
    ShowPage,
    Unable,
    packed,
    unpacked,
)
from agent.crawl.chromium import Chromium, Params
from agent.crawl.cookie_jars import Cookie
from agent.crawl.http_connections import Connector, FetchBounds, Pace, Proxies
from agent.crawl.http_fetcher import HttpFetcher, HttpRequest, HttpResponse
from agent.crawl.politeness import LONGEST_HOLD, asks_for_pause, in_a_row, pause
from agent.crawl.server_locks import asked_in_a_row, note_request, seconds_to_wait
from agent.crawl.vocabulary import PARTIAL_CONTENT, Figure, Reason, Status
from webarcfs import __version__
from webarcfs.archive.config.settings import Behaviour, RenderedPart
from webarcfs.archive.model.errors import BrowserGone, BrowserUnable, CdpFailed, Damaged, FetchFailed, WebarcError
from webarcfs.archive.model.metadata import OK, format_utc, from_epoch
from webarcfs.archive.model.sites import site_of, split_port
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.system import locks
from webarcfs.content import outlinks
from webarcfs.warc import http_response, job_warc
from webarcfs.warc.decoding import BadBody, body_of

#: Bytes of a POST's body that the job is asked about; longer ones have no key.
_LONGEST_BODY: Final = 1 << 14
#: Seconds without an open request after which a page is still.
_STILL: Final = 0.5
#: The same for a step of a behaviour, and after the last one.
_STILL_STEP, _STILL_END = 0.1, 0.2
#: Seconds between two looks at the lock of a host, and at the time of a page.
_POLL, _TICK = 0.02, 0.1
#: Seconds that the browser may take for one answer to us, while the page itself is still.
_ANSWER: Final = 6.0
#: Starts in a row that fail, after which there is no browser here.
_MOST_STARTS: Final = 3
#: Seconds that the end of a page waits for its requests under way, and then for connections to end; one with a request
#: under way holds its server's lock.
_DISCONNECT: Final = 1.0
#: A stream of events is cut after these seconds and bytes.
_STREAM_SECONDS, _STREAM_BYTES = 2.0, 1 << 16
_MOST_DIALOGS: Final = 10
_MOST_LINKS: Final = 20_000
#: Fragments of a page that are shown.
_MOST_ROUTES: Final = 100
_LONGEST_TITLE: Final = 1_000
_JPEG_QUALITY: Final = 60
#: Threads for hosts that stay between pages.
_MOST_HOSTS: Final = 32
_WORLD: Final = "webarc"
#: Fields of a request that are sent otherwise, or that would make an answer depend on what the browser has.
_NOT_SENT: Final = frozenset(
    {"range", "if-range", "cookie", "if-none-match", "if-modified-since", "user-agent", "upgrade-insecure-requests"}
)
#: Fields of a response that do not hold for the decoded body that the page gets.
_NOT_GIVEN: Final = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "trailer"}
)
_NO_BODY: Final = frozenset({204, 205, 304})
_TEMPORARY_REDIRECT, _BAD_GATEWAY = 307, 502
#: Slashes in the URL of what lies at the root of a host.
_SLASHES: Final = 3
_STATUSES: Final = range(200, 600)
#: The words of refusals that the page is annotated with.
_REMARKS: Final = frozenset(
    {Reason.BROWSER_SCHEME, Reason.BROWSER_POPUP, Reason.BROWSER_REQUESTS, Reason.BROWSER_BYTES}
)
#: The faults after which the browser may not be used again.
_DEADLY: Final = frozenset({Reason.BROWSER_BUSY, Reason.BROWSER_CRASH, Reason.BROWSER_TIME})
#: What pages leave in the browser, but for cookies.
_LEFT: Final = (
    "local_storage,indexeddb,cache_storage,websql,shared_storage,storage_buckets,file_systems,service_workers,"
    "interest_groups"
)
#: Errors by which the job fails, as it does where another file of it cannot be written; no page is at fault.
_OF_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
_AWAY: Final = ("data:", "blob:", "about:", "chrome:", "chrome-error:", "devtools:")

_Result = TypeVar("_Result")


class _Ended(Exception):
    """A page is at a bound; `word` says which."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class _Cancelled(Exception):
    """A request was not sent: its page has ended."""


class _Busy(Exception):
    """A request was not sent: its server had asked for a long pause."""


# == hosts ============================================================================================================


@dataclass(slots=True, eq=False)
class _Turn:
    """A request in the queue of its host."""

    is_over: threading.Event
    begun: threading.Event = field(default_factory=threading.Event)


#: Keeps a response; returns where that is, 0 for one that is not kept.
_Keep = Callable[[HttpRequest, HttpResponse], int]


class _Host:
    """Asks one host from one thread, by one connection."""

    def __init__(self, connector: Connector) -> None:
        self._fetcher = HttpFetcher(connector)
        self._thread = ThreadPoolExecutor(1, "host")

    def ask(
        self, turn: _Turn, request: HttpRequest, bounds: Callable[[], FetchBounds], say: Fetch, keep: _Keep
    ) -> Future[tuple[HttpResponse, int]]:
        """Send a request when it is the host's turn, and keep its response before the next one is sent.

        The result is the response and what `keep` returned. It raises FetchFailed, _Cancelled, _Busy, OSError.
        """
        return self._thread.submit(self._ask, turn, request, bounds, say, keep)

    def disconnect(self) -> Future[None]:
        """End the connection, once what is under way has ended."""
        return self._thread.submit(self._fetcher.close)

    def close(self) -> None:
        """End the connection and the thread, once what is under way has ended."""
        self.disconnect()
        self._thread.shutdown(wait=False)

    def _ask(
        self, turn: _Turn, request: HttpRequest, bounds: Callable[[], FetchBounds], say: Fetch, keep: _Keep
    ) -> tuple[HttpResponse, int]:
        lock = self._lock(Path(say.lock), turn)
        try:
            while (left := seconds_to_wait(lock, say.wait)) > 0:
                if left > LONGEST_HOLD + say.wait:
                    raise _Busy
                if turn.is_over.wait(min(left, 1.0)):
                    raise _Cancelled
            turn.begun.set()  # before the look at its page, which waits for what has begun
            if turn.is_over.is_set():
                raise _Cancelled
            before, seconds, count = asked_in_a_row(lock), 0.0, 0
            note_request(lock, in_a_row=before)  # the process may be ended amid it
            try:
                response = self._fetcher.fetch(request, bounds())
                seconds, count = _requested_pause(response, before, say.wait)
                return response, keep(request, response)
            finally:
                note_request(lock, seconds, count)
        finally:
            os.close(lock)

    @staticmethod
    def _lock(path: Path, turn: _Turn) -> int:
        while (lock := locks.try_exclusive(path)) is None:
            if turn.is_over.wait(_POLL):
                raise _Cancelled
        return lock


def _requested_pause(response: HttpResponse, before: int, wait: float) -> tuple[float, int]:
    """Return the pause that a response asks for, and how often in a row its server did."""
    now = time.time()
    value = next((value for name, value in response.fields if name.lower() == "retry-after"), "")
    asks = asks_for_pause(response.status, value, now)
    seconds = pause(value, before, wait, now) if asks else 0.0
    return seconds, in_a_row(before, int(asks), failing=int(response.status >= 500 and not asks))


# == WARC =============================================================================================================


class _Warc:
    """The WARC of a page: appended to, a record at a time, by any thread. Once it is closed, nothing is written.

    It is closed by the first record that the disk does not take. That raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        # No response is at byte 0, which stands for none.
        block = f"software: webarcfs/{__version__}\r\nformat: WARC File Format 1.1\r\n".encode("ascii")
        self._write(
            job_warc.pack_record("warcinfo", "", from_epoch(time.time()), block, mime="application/warc-fields")
        )

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def response(self, key: str, response: HttpResponse) -> int:
        """Write a response; return the position of its record, 0 if nothing is written any more."""
        block = response.head + response.raw
        data = job_warc.pack_record("response", key, response.began, block, address=response.address)
        return self._write(data)

    def request(self, key: str, request: HttpRequest, sent: HttpResponse) -> None:
        """Write what a POST sent: its method, its URL, the type of its body and the body. Nothing else is kept."""
        path = request.url.partition("://")[2]
        target = f"/{path.partition('/')[2]}"
        mime = next((value for name, value in request.fields if name.lower() == "content-type"), "")
        host = path.partition("/")[0]
        lines = [f"{request.method} {target} HTTP/1.1", f"Host: {host}", *([f"Content-Type: {mime}"] if mime else [])]
        head = "\r\n".join([*lines, f"Content-Length: {len(request.body)}", "", ""]).encode("latin-1", "replace")
        self._write(job_warc.pack_record("request", key, sent.began, head + request.body))

    def resource(self, uri: str, mime: str, content: bytes) -> tuple[int, int]:
        """Write a part of what a page showed; return where its bytes are, and how many there are."""
        data = job_warc.pack_record("resource", uri, from_epoch(time.time()), content, mime=mime)
        begin = self._write(data)
        return begin + len(data) - len(content) - len(b"\r\n\r\n"), len(content)

    def _write(self, data: bytes) -> int:
        with self._lock:
            if self._fd < 0:
                return 0
            begin = os.lseek(self._fd, 0, os.SEEK_END)
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError as error:
                # A part of the record may stay. Readers leave it out at the end, and would find nothing behind it.
                os.close(self._fd)
                self._fd = -1
                raise OSError(error.errno, error.strerror, str(self.path)) from None
            return begin


# == requests of a page ===============================================================================================


@dataclass(frozen=True, slots=True)
class _Paused:
    """A request of a page, which waits for its answer."""

    session: str
    number: str
    method: str
    url: str  # without its fragment
    kind: str  # Chromium's type of the resource
    frame: str
    fields: tuple[tuple[str, str], ...]
    body: bytes | None  # None: it has one that the browser does not tell, such as a file or a very long one

    @classmethod
    def of(cls, session: str, params: Params) -> _Paused:
        """Return the request of an event (Fetch.requestPaused)."""
        request = params["request"]
        return cls(
            session,
            params["requestId"],
            request["method"],
            urldefrag(request["url"]).url,
            params.get("resourceType", ""),
            params.get("frameId", ""),
            tuple(request["headers"].items()),
            _posted(request),
        )

    def field(self, wanted: str) -> str:
        """Return a field of the request; empty without it."""
        return next((value for name, value in self.fields if name.lower() == wanted), "")

    @property
    def key(self) -> str:
        """What tells it from others: its method, its URL, its body."""
        return f"{self.method} {self.url} {hashlib.sha256(self.body).hexdigest() if self.body else ''}"

    @property
    def is_document(self) -> bool:
        """Whether it is for a page or a frame."""
        return self.kind == "Document"

    @property
    def is_favicon(self) -> bool:
        """Whether the browser asks for the icon of a host by itself, which no page names."""
        return self.kind == "Other" and self.url.endswith("/favicon.ico") and self.url.count("/") == _SLASHES

    @property
    def is_stream(self) -> bool:
        """Whether it asks for events without an end."""
        return "text/event-stream" in self.field("accept")


# == pages ============================================================================================================


class _Page:
    """A page that is being shown."""

    def __init__(self, browser: Browser, chrome: Chromium, asked: ShowPage) -> None:
        self._browser = browser
        self._chrome = chrome
        self._asked = asked
        self._warc = _Warc(Path(asked.warc))
        self._session = ""
        self._target = ""
        self._main_frame = ""
        self._frames: set[str] = set()
        self._sessions: set[str] = set()
        self._has_document = False
        self._loaded = asyncio.Event()
        self._crashed = asyncio.Event()
        self._asks_always = False
        self._words: dict[str, None] = {}
        self._responses: dict[str, tuple[Path, int]] = {}  # key → where the crawl has it
        self._under_way: dict[str, asyncio.Future[None]] = {}
        self._open = 0  # requests of the page without an answer
        self._quiet = asyncio.Event()  # whether there are none
        self._quiet.set()
        self._turns: set[_Turn] = set()
        self._asking = 0  # requests that the job has not decided
        self._changed = time.monotonic()
        self._spent = 0.0
        self._begun = self._ticked = time.monotonic()
        self._over = threading.Event()
        self._dialogs = 0
        self._forward = ""
        self._routes: dict[str, None] = {}  # fragments that its links name
        self._first_script = behaviours.first_script(asked.began // 60 * 60_000, zlib.crc32(asked.url.encode()))
        self.requests = self.refused = self.missed = self._bytes = 0

    # -- the page ------------------------------------------------------------------------------------------------

    async def show(self) -> PageShown:
        """Show it and return what it showed. The browser is killed where it may not show another page."""
        try:
            shown = await self._show()
        except _Ended as end:
            shown = PageShown(self._asked.page, fault=end.word)
            if end.word in _DEADLY:
                self._chrome.kill()
        except CdpFailed as error:
            is_ours = isinstance(error, BrowserGone) and self._browser.killed_for
            shown = PageShown(self._asked.page, fault=is_ours or Reason.BROWSER_CRASH)
            self._chrome.kill()
        finally:
            self._over.set()
        if not self._chrome.gone.done():
            await self._close()
        await self._end_requests()
        return self._counted(shown)

    async def _end_requests(self) -> None:
        """Wait a little for responses that are under way: what is not kept is fetched once more."""
        end = time.monotonic() + _DISCONNECT
        while any(turn.begun.is_set() for turn in self._turns) and time.monotonic() < end:
            await asyncio.sleep(_POLL)

    def _counted(self, shown: PageShown) -> PageShown:
        self._warc.close()
        return replace(
            shown,
            words=tuple(self._words),
            forward=self._forward,
            requests=self.requests,
            refused=self.refused,
            missed=self.missed,
        )

    async def _show(self) -> PageShown:
        send = self._chrome.send
        self._target = (await self._within(send("Target.createTarget", url="about:blank")))["targetId"]
        attached = await self._within(send("Target.attachToTarget", targetId=self._target, flatten=True))
        self._session = attached["sessionId"]
        await self._within(self.prepare(self._session, "page"))
        tree = await self._within(send("Page.getFrameTree", self._session))
        self._main_frame = tree["frameTree"]["frame"]["id"]
        self._frames.add(self._main_frame)
        await self._forget()
        if self._asked.cookies:
            await self._set_cookies()
        navigated = await self._within(send("Page.navigate", self._session, url=self._asked.url))
        if navigated.get("isDownload"):
            return PageShown(self._asked.page, fault=Reason.BROWSER_DOWNLOAD)
        if navigated.get("errorText"):
            return PageShown(self._asked.page, fault=Reason.BROWSER_NO_PAGE)
        try:
            await self._within(self._loaded.wait())
            await self._settle(_STILL)
            await self._behave()
            await self._settle(_STILL_END)
            self._routes.update(dict.fromkeys(await self._find_routes()))
            if self._routes:
                self._words[f"{Figure.HASH_ROUTES}{len(self._routes)}"] = None
        except _Ended as end:
            if end.word != Reason.BROWSER_TIME:
                raise
            # It may have shown all that a reader wants: what there is counts, and the word says so.
            self._words[Reason.BROWSER_TIME if self._loaded.is_set() else Reason.BROWSER_LOAD] = None
        has_time = not self._words.keys() & {Reason.BROWSER_TIME, Reason.BROWSER_LOAD}
        if not (self._routes and self._asked.routes and has_time):
            self._over.set()
            return await self._read()
        shown = await self._read()  # before the routes: a form is that of the page without a fragment
        links = dict.fromkeys((*shown.links, *await self._show_routes()))
        self._over.set()
        return replace(shown, links=tuple(links)[:_MOST_LINKS])

    async def _show_routes(self) -> list[tuple[str, str, str]]:
        """Show what the page leads to by fragments alone; return the links there. What it asks for is archived."""
        links: dict[tuple[str, str, str], None] = {}
        waiting = list(self._routes)
        try:
            while waiting and len(self._routes) - len(waiting) < _MOST_ROUTES:
                await self._evaluate(behaviours.go_to(waiting.pop(0)))
                await self._settle(_STILL)
                html = str(await self._evaluate(behaviours.start_of(outlinks.LONGEST_BODY)) or "")
                links.update(dict.fromkeys(self._links_in(html.encode("utf-8", "replace"))))
                waiting += [route for route in await self._find_routes() if route not in self._routes]
                self._routes.update(dict.fromkeys(waiting))
        except _Ended as end:
            if end.word != Reason.BROWSER_TIME:
                raise
            self._words[Reason.BROWSER_TIME] = None
        if waiting:
            self._words[Reason.BROWSER_ROUTES] = None
        return list(links)

    async def _find_routes(self) -> list[str]:
        found = await self._evaluate(behaviours.ROUTES)
        return [str(route) for route in found] if isinstance(found, list) else []

    def _links_in(self, dom: bytes) -> list[tuple[str, str, str]]:
        """Return the links of a DOM, as messages have them."""
        links = outlinks.find(dom[: outlinks.LONGEST_BODY], self._asked.url, "text/html", "utf-8")
        if links.is_cut or len(links.links) > _MOST_LINKS:
            self._words[Reason.LINKS_CUT] = None
        return [(link.url, str(link.kind.value), str(link.named.value)) for link in links.links[:_MOST_LINKS]]

    async def _forget(self) -> None:
        """Remove what pages and frames left in the browser: each page is as for a reader who comes for the first time.

        Cookies stay, as they do for wget.
        """
        keys = self._browser.storage_keys
        keys.add(f"{_origin(self._asked.url)}/")
        sent = [
            self._chrome.send("Storage.clearDataForStorageKey", self._session, storageKey=key, storageTypes=_LEFT)
            for key in sorted(keys)
        ]
        await self._within(asyncio.gather(*sent, return_exceptions=True))
        keys.clear()

    async def prepare(self, session: str, kind: str) -> None:
        """Prepare a page, a frame of another site or a worker before anything of it runs."""
        self._sessions.add(session)
        send = self._chrome.send
        commands = [
            send("Target.setAutoAttach", session, autoAttach=True, waitForDebuggerOnStart=True, flatten=True),
        ]
        if kind in ("page", "iframe"):
            commands += [
                send("Page.enable", session),
                send("Inspector.enable", session),
                send("Page.addScriptToEvaluateOnNewDocument", session, source=self._first_script),
                send("Network.enable", session, maxTotalBufferSize=0, maxResourceBufferSize=0),
            ]
        agent = self._browser.user_agent
        commands.append(send("Emulation.setUserAgentOverride", session, userAgent=agent, acceptLanguage="en"))
        if kind in ("worker", "shared_worker"):
            # It answers once the worker runs, before the worker's own script does.
            send("Runtime.evaluate", session, expression=self._first_script)
        for command in commands:
            with contextlib.suppress(CdpFailed):
                await command

    async def _set_cookies(self) -> None:
        cookies = [cookie for line in self._asked.cookies if (cookie := Cookie.read(line)) is not None]
        sent = [self._chrome.send("Storage.setCookies", cookies=[_as_param(cookie)]) for cookie in cookies]
        await self._within(asyncio.gather(*sent, return_exceptions=True))  # Chromium rejects some

    async def cookies(self) -> tuple[str, ...]:
        """Return the cookies that the browser has, as lines of a jar."""
        with contextlib.suppress(CdpFailed, asyncio.TimeoutError):
            result = await asyncio.wait_for(self._chrome.send("Storage.getCookies"), _ANSWER)
            return tuple(_as_line(cookie) for cookie in result["cookies"])
        return ()

    async def _behave(self) -> None:
        wanted = frozenset(self._asked.behaviours)
        for text in self._asked.clicks:
            if await self._evaluate(behaviours.click(text)):
                await self._settle(_STILL)
        if Behaviour.LAZY in wanted:
            await self._evaluate(behaviours.LAZY)
            await self._settle(_STILL_STEP)
        same, before = 0, ""
        if Behaviour.SCROLL in wanted:
            for _ in range(self._asked.scroll):
                clicked = await self._click_more(wanted)
                position = str(await self._evaluate(behaviours.SCROLL))
                await self._settle(_STILL_STEP)
                same = same + 1 if position == before and not clicked else 0
                before = position
                if same >= behaviours.STILL:
                    break
            if self._asked.scroll and not same:
                self._words[Reason.BROWSER_SCROLL] = None
            await self._evaluate(behaviours.TO_THE_TOP)
        else:
            await self._click_more(wanted)
        if Behaviour.PLAY in wanted:
            await self._evaluate(behaviours.PLAY)
            await self._settle(_STILL_STEP)
        if Behaviour.LAZY in wanted:
            await self._evaluate(behaviours.LAZY_AGAIN)

    async def _click_more(self, wanted: frozenset[str]) -> bool:
        if Behaviour.MORE not in wanted or not self._asked.more:
            return False
        clicked = bool(await self._evaluate(behaviours.more(self._asked.more)))
        if clicked:
            await self._settle(_STILL_STEP)
        return clicked

    async def _evaluate(self, expression: str) -> Any:
        """Evaluate in a world of its own; None if the document goes away meanwhile. Raises _Ended."""
        send = self._chrome.send
        try:
            made = await self._within(
                send("Page.createIsolatedWorld", self._session, frameId=self._main_frame, worldName=_WORLD)
            )
            result = await self._within(
                send(
                    "Runtime.evaluate",
                    self._session,
                    expression=expression,
                    contextId=made["executionContextId"],
                    returnByValue=True,
                    userGesture=True,
                )
            )
        except BrowserGone:
            raise
        except CdpFailed:
            return None
        return result.get("result", {}).get("value")

    async def _read(self) -> PageShown:
        """Read what the page shows now, within a time of its own."""
        asked, send = self._asked, self._chrome.send
        try:
            # A page that has come to its end has the rest of its time for this: a large DOM takes seconds.
            async with asyncio.timeout(max(_ANSWER, self._asked.seconds - self._spent)):
                made = await send("Page.createIsolatedWorld", self._session, frameId=self._main_frame, worldName=_WORLD)
                values = await self._evaluate_now(made["executionContextId"], behaviours.SHOWN)
                document = await send("DOM.getDocument", self._session, depth=0)
                is_large = int(values["size"]) > asked.largest_dom
                if is_large:  # as much as is read for links
                    html = await self._evaluate_now(
                        made["executionContextId"], behaviours.start_of(outlinks.LONGEST_BODY)
                    )
                else:
                    node = document["root"]["nodeId"]
                    outer = await send("DOM.getOuterHTML", self._session, nodeId=node, includeShadowDOM=True)
                    html = outer["outerHTML"]
                picture = await self._picture() if RenderedPart.PICTURE in asked.keep else b""
        except TimeoutError:
            raise _Ended(Reason.BROWSER_BUSY) from None
        except KeyError:
            raise _Ended(Reason.BROWSER_CRASH) from None
        if not str(values["at"]).startswith(("http://", "https://")):
            return PageShown(asked.page, fault=Reason.BROWSER_NO_PAGE)
        return self._keep(str(values["title"]), str(values["text"]), html, picture, is_large=is_large)

    async def _evaluate_now(self, context: int, expression: str) -> Any:
        sent = self._chrome.send(
            "Runtime.evaluate", self._session, expression=expression, contextId=context, returnByValue=True
        )
        return (await sent)["result"]["value"]

    async def _picture(self) -> bytes:
        shot = self._chrome.send("Page.captureScreenshot", self._session, format="jpeg", quality=_JPEG_QUALITY)
        return base64.b64decode((await shot)["data"])

    def _keep(self, title: str, text: str, html: str, picture: bytes, *, is_large: bool) -> PageShown:
        asked = self._asked
        dom = html.encode("utf-8", "replace")
        shown = PageShown(asked.page, title=_plain(title)[:_LONGEST_TITLE], began=format_utc(from_epoch(time.time())))
        if RenderedPart.HTML in asked.keep and dom:
            if len(dom) <= asked.largest_dom and not is_large:
                at_byte, size = self._warc.resource(f"urn:dom:{asked.url}", "text/html; charset=utf-8", dom)
                shown = replace(shown, html_at=at_byte, html_size=size)
            else:
                self._words[Reason.BROWSER_DOM] = None
        # The DOM is never kept alone: search, diffs and the look whether a page changed read the text.
        if {RenderedPart.HTML, RenderedPart.TEXT} & set(asked.keep) and text.strip():
            content = text.encode("utf-8", "replace")
            at_byte, size = self._warc.resource(f"urn:text:{asked.url}", "text/plain; charset=utf-8", content)
            shown = replace(shown, text_at=at_byte, text_size=size)
        if picture:
            at_byte, size = self._warc.resource(f"urn:view:{asked.url}", "image/jpeg", picture)
            shown = replace(shown, picture_at=at_byte, picture_size=size)
        return replace(shown, links=tuple(self._links_in(dom)))

    async def _close(self) -> None:
        with contextlib.suppress(CdpFailed, asyncio.TimeoutError):
            if self._target:
                await asyncio.wait_for(self._chrome.send("Target.closeTarget", targetId=self._target), _ANSWER)
                return
        self._chrome.kill()

    # -- time ----------------------------------------------------------------------------------------------------

    async def _within(self, work: Awaitable[_Result]) -> _Result:
        """Await within the time of the page. Raises _Ended, BrowserGone."""
        future = asyncio.ensure_future(work)
        try:
            while not future.done():
                self._tick()
                ends: set[asyncio.Future[Any]] = {future, self._chrome.gone}
                await asyncio.wait(ends, timeout=_TICK, return_when=asyncio.FIRST_COMPLETED)
                if self._chrome.gone.done() and not future.done():
                    raise BrowserGone(self._chrome.gone.result())
                if self._crashed.is_set():
                    raise _Ended(Reason.BROWSER_CRASH)
                if self._asks_always:
                    raise _Ended(Reason.BROWSER_BUSY)
            return future.result()
        finally:
            future.cancel()

    async def _settle(self, seconds: float) -> None:
        """Wait until nothing that the page asked for is open, for so long. Raises _Ended."""
        self._changed = time.monotonic()
        while self._open or (left := self._changed + seconds - time.monotonic()) > 0:
            await self._within(self._quiet.wait() if self._open else asyncio.sleep(left))

    def _tick(self) -> None:
        """Count the time of the page; raise _Ended at its end."""
        now = time.monotonic()
        begun = [turn.begun.is_set() for turn in self._turns]
        if any(begun) or not (begun or self._asking):
            self._spent += now - self._ticked
        self._ticked = now
        is_over = self._spent > self._asked.seconds or now - self._begun > self._asked.seconds * MOST_WAITING
        if is_over:
            raise _Ended(Reason.BROWSER_TIME)

    # -- events --------------------------------------------------------------------------------------------------

    def has_session(self, session: str) -> bool:
        """Return whether a session is of this page."""
        return session in self._sessions

    def crashed(self) -> None:
        """Note that the page's process has ended."""
        self._crashed.set()

    def loaded(self, session: str) -> None:
        """Note that the page has loaded."""
        if session == self._session:
            self._loaded.set()

    @property
    def frames(self) -> frozenset[str]:
        """The ids of its frames."""
        return frozenset(self._frames)

    def has_frame(self, frame: str) -> None:
        """Note a frame of the page."""
        self._frames.add(frame)

    def remark(self, word: str) -> None:
        """Note a word for the crawl log."""
        self._words[word] = None

    async def dialog(self, session: str, kind: str) -> None:
        """Answer a dialog as if nobody was there."""
        self._dialogs += 1
        if self._dialogs > _MOST_DIALOGS:
            self._asks_always = True
        with contextlib.suppress(CdpFailed):
            await self._chrome.send("Page.handleJavaScriptDialog", session, accept=kind == "beforeunload")

    async def paused(self, session: str, params: Params) -> None:
        """Decide about a request, and answer it."""
        asked = _Paused.of(session, params)
        if asked.is_document:
            self._browser.storage_keys |= _storage_keys(asked.url, self._asked.url)
        if self.requests >= self._asked.requests and not asked.is_document:
            # What is refused from here on does not count as work: a page that never stops asking comes to its end.
            with contextlib.suppress(CdpFailed):
                await self._refuse(asked, Reason.BROWSER_REQUESTS)
            return
        self._open += 1
        self._quiet.clear()
        try:
            await self._answer(asked)
        except CdpFailed:
            pass  # the page does not want it any more, or the browser has ended
        finally:
            self._open -= 1
            self._changed = time.monotonic()
            if not self._open:
                self._quiet.set()

    async def _answer(self, asked: _Paused) -> None:
        if asked.url.startswith(_AWAY):
            await self._chrome.send("Fetch.continueRequest", asked.session, requestId=asked.number)
        elif asked.is_document and asked.frame == self._main_frame:
            await self._navigate(asked)
        elif not asked.url.startswith(("http://", "https://")):
            await self._refuse(asked, Reason.BROWSER_SCHEME)
        elif asked.is_document and asked.frame not in self._frames:
            await self._refuse(asked, Reason.BROWSER_POPUP)
        elif self._over.is_set() or asked.is_favicon:
            await self._refuse(asked, "")
        elif self.requests >= self._asked.requests:
            await self._refuse(asked, Reason.BROWSER_REQUESTS)
        else:
            self.requests += 1
            await self._fetch(asked)

    async def _navigate(self, asked: _Paused) -> None:
        """Give the page its own response; where it goes on to is another page, which the crawl judges."""
        if not self._has_document:
            self._has_document = True
            await self._give_archived(asked, Path(self._asked.document), self._asked.position)
            return
        if asked.method == "GET" and asked.url != self._asked.url and asked.url.startswith(("http://", "https://")):
            self._forward = self._forward or _plain(asked.url)
        # As if a server had nothing new to show: the page stays as it is, and loads nothing more.
        self._loaded.set()
        await self._chrome.send("Fetch.fulfillRequest", asked.session, requestId=asked.number, responseCode=204)

    async def _fetch(self, asked: _Paused) -> None:
        """Give the page what the crawl has or may fetch; what is asked for twice at once is fetched once."""
        while (under_way := self._under_way.get(asked.key)) is not None:
            await asyncio.shield(under_way)
        if asked.key not in self._responses:
            under_way = self._under_way[asked.key] = asyncio.get_running_loop().create_future()
            try:
                is_answered = await self._ask_for(asked)
            finally:
                del self._under_way[asked.key]
                under_way.set_result(None)
            if is_answered:
                return
        path, position = self._responses[asked.key]
        await self._give_archived(asked, path, position)

    async def _ask_for(self, asked: _Paused) -> bool:
        """Ask the job, and do what it says; return whether the request has its answer now."""
        size = _LONGEST_BODY + 1 if asked.body is None else len(asked.body)
        body = base64.b64encode(asked.body or b"").decode("ascii") if size <= _LONGEST_BODY else ""
        mime = asked.field("content-type")
        self._asking += 1
        try:
            say = await self._browser.ask(lambda ask: Ask(ask, asked.method, asked.url, asked.kind, mime, body, size))
        finally:
            self._asking -= 1
        if isinstance(say, Have):
            self._responses[asked.key] = Path(say.warc), say.position
            return False
        if isinstance(say, Fetch):
            return await self._fetch_now(asked, say)
        if isinstance(say, RedirectTo):
            fields = [("Location", say.target), ("Non-Authoritative-Reason", "HSTS")]
            await self._fulfil(asked, _TEMPORARY_REDIRECT, fields, b"")
        else:
            await self._refuse(asked, say.word if isinstance(say, Refuse) else "")
        return True

    async def _fetch_now(self, asked: _Paused, say: Fetch) -> bool:
        """Fetch what the job permits; return whether the request has its answer now. Else it is in the WARC."""
        left = self._asked.most - self._bytes
        if left <= 0:
            self._browser.say(Missed(say.ask, 0, Reason.BROWSER_BYTES))
            await self._refuse(asked, Reason.BROWSER_BYTES)
            return True
        request = HttpRequest(asked.url, asked.method, await self._fields(asked, say), asked.body or b"")
        largest = min(left, self._asked.largest or left)
        turn = _Turn(self._over)

        def bounds() -> FetchBounds:
            seconds = max(1.0, self._asked.seconds - self._spent)
            if asked.is_stream:
                seconds, most = min(seconds, _STREAM_SECONDS), min(largest, _STREAM_BYTES)
            else:
                most = largest
            timeout = min(self._asked.timeout, seconds)
            return FetchBounds(timeout, seconds, most, say.public, say.checked, say.speed, self._browser.pace)

        self._turns.add(turn)
        try:
            host = self._browser.host(domain_of(asked.url))
            keep = partial(self._keep_response, say.key)
            response, position = await asyncio.wrap_future(host.ask(turn, request, bounds, say, keep))
        except FetchFailed as failure:
            await self._miss(asked, say, int(failure.status), failure.note)
            return True
        except (_Cancelled, _Busy) as error:
            await self._miss(asked, say, 0, Reason.BUSY if isinstance(error, _Busy) else "")
            return True
        finally:
            self._turns.discard(turn)
        return await self._take(asked, say, response, position)

    def _keep_response(self, key: str, request: HttpRequest, response: HttpResponse) -> int:
        """Write a whole response into the WARC; called in the thread of its host."""
        if response.cut or not key:
            return 0
        if request.method != "GET":
            self._warc.request(key, request, response)
        return self._warc.response(key, response)

    async def _take(self, asked: _Paused, say: Fetch, response: HttpResponse, position: int) -> bool:
        """Take a response that may be kept at a position; return whether the request has its answer now."""
        self._bytes += len(response.raw)
        if not position:
            if response.cut:
                await self._take_cut(asked, say, response)
            elif not say.key:
                await self._give(asked, _as_record(response, asked.url))
            return True  # else its page has ended
        self._responses[asked.key] = self._warc.path, position
        self._browser.say(Fetched(say.ask, position, response.faults))
        return False

    async def _take_cut(self, asked: _Paused, say: Fetch, response: HttpResponse) -> None:
        if asked.is_stream and response.cut != Reason.TRUNCATED:
            self._words[Reason.BROWSER_STREAM] = None
            self._browser.say(Missed(say.ask, int(Status.TIME_LIMIT), Reason.BROWSER_STREAM))
            await self._give(asked, _as_record(response, asked.url), is_cut=True)
        elif response.cut == Reason.TIME_LIMIT:
            await self._miss(asked, say, 0, Reason.TIME_LIMIT)  # wget has more time for it
        elif response.cut != Reason.TOO_BIG:
            await self._miss(asked, say, int(Status.CONNECTION_LOST), response.cut)
        elif self._asked.largest and len(response.raw) >= self._asked.largest:
            await self._miss(asked, say, int(Status.QUOTA), Reason.TOO_BIG)
        else:
            self._words[Reason.BROWSER_BYTES] = None
            await self._miss(asked, say, int(Status.QUOTA), Reason.BROWSER_BYTES)

    async def _miss(self, asked: _Paused, say: Fetch, status: int, word: str) -> None:
        self.missed += 1
        self._browser.say(Missed(say.ask, status, word))
        await self._fail(asked, "ConnectionFailed")

    async def _fields(self, asked: _Paused, say: Fetch) -> tuple[tuple[str, str], ...]:
        """Return the fields of a request: the page's own, its cookies, and what that host alone is shown."""
        secret = {name.lower(): value for name, value in say.fields}
        kept = [(name, value) for name, value in asked.fields if name.lower() not in _NOT_SENT | secret.keys()]
        pairs = [secret["cookie"]] if "cookie" in secret else []
        with contextlib.suppress(CdpFailed, asyncio.TimeoutError):
            sent = self._chrome.send("Network.getCookies", self._session, urls=[asked.url])
            cookies = (await asyncio.wait_for(sent, _ANSWER))["cookies"]
            pairs += [_sent(f"{cookie['name']}={cookie['value']}") for cookie in cookies]
        if pairs:
            kept.append(("Cookie", "; ".join(pairs)))
        shown = [(name, value) for name, value in say.fields if name.lower() != "cookie"]
        return (*kept, ("User-Agent", self._browser.user_agent), *shown)

    # -- answers to the page -------------------------------------------------------------------------------------

    async def _refuse(self, asked: _Paused, word: str) -> None:
        self.refused += bool(word)
        if word in _REMARKS:
            self._words[word] = None
        await self._fail(asked, "BlockedByClient")

    async def _fail(self, asked: _Paused, reason: str) -> None:
        await self._chrome.send("Fetch.failRequest", asked.session, requestId=asked.number, errorReason=reason)

    async def _give_archived(self, asked: _Paused, path: Path, position: int) -> None:
        try:
            with path.open("rb") as file:
                await self._give(asked, job_warc.response_at(file, position))
        except (OSError, Damaged):
            await self._fail(asked, "Failed")

    async def _give(self, asked: _Paused, response: http_response.Response, *, is_cut: bool = False) -> None:
        """Give a response to the page: its head as it was sent, its body decoded, a part of it if it wants one."""
        parts: list[bytes] = []
        try:
            parts.extend(body_of(response))
        except BadBody:
            if not is_cut:
                await self._fail(asked, "ConnectionFailed")
                return
        status, content = response.head.document_status, b"".join(parts)
        sent = http_response.fields_of(response.head.raw)
        fields = [(name, value) for name, value in sent if name and name.lower() not in _NOT_GIVEN]
        chosen = _range_of(asked.field("range"), len(content)) if status == OK else None
        if chosen is not None:
            begin, end = chosen
            fields += [("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}"), ("Accept-Ranges", "bytes")]
            status, content = PARTIAL_CONTENT, content[begin:end]
        if status not in _NO_BODY:
            fields.append(("Content-Length", str(len(content))))
        await self._fulfil(asked, status if status in _STATUSES else _BAD_GATEWAY, fields, content)

    async def _fulfil(self, asked: _Paused, status: int, fields: list[tuple[str, str]], content: bytes) -> None:
        body = base64.b64encode(content).decode("ascii")
        # A value may have any bytes, which no text of JSON has.
        sent = [(name, value) for name, value in fields if "\0" not in name + value]
        for kept in (sent, [(name, value) for name, value in sent if _is_plain(name, value)]):
            lines = "\0".join(f"{name}: {value}" for name, value in kept).encode("latin-1", "replace")
            try:
                await self._chrome.send(
                    "Fetch.fulfillRequest",
                    asked.session,
                    requestId=asked.number,
                    responseCode=status,
                    binaryResponseHeaders=base64.b64encode(lines).decode("ascii"),
                    body=body,
                )
            except BrowserGone:
                raise
            except CdpFailed as error:  # a field that Chromium takes for none
                if "nvalid" not in str(error):
                    raise
            else:
                return
        await self._fail(asked, "Failed")


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _storage_keys(url: str, page: str) -> set[str]:
    """Return the keys by which Chromium may keep what a document stores, as a page or in a frame of a page.

    A frame of another site has a storage for each site that it is in (`^0`), and one of the page's own site has another
    one below such a frame (`^3`).
    """
    if not url.startswith(("http://", "https://")):
        return set()
    origin, top = _origin(url), _origin(page)
    scheme, _, host = top.partition("://")
    name, _, _ = split_port(site_of(host))
    return {f"{origin}/", f"{origin}/^0{scheme}://{name}", f"{origin}/^31"}


def _plain(text: str) -> str:
    """Return a text of a script without what no encoding has: halves of pairs (surrogates)."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _posted(request: Params) -> bytes | None:
    if not request.get("hasPostData"):
        return b""
    entries = request.get("postDataEntries", ())
    if not entries or not all("bytes" in entry for entry in entries):
        return None
    return b"".join(base64.b64decode(entry["bytes"]) for entry in entries)


def _as_record(response: HttpResponse, url: str) -> http_response.Response:
    """Return a response that is not kept in the form of one that is."""
    head = http_response.parse_head(response.head)
    assert head is not None
    size = len(response.raw)
    return http_response.Response(0, url, response.began, head, io.BytesIO(response.raw), size, False, response.address)


def _is_plain(name: str, value: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum() and name.isascii() and value.isprintable()


def _range_of(text: str, size: int) -> tuple[int, int] | None:
    """Return begin and end of the part that a request wants of a body (RFC 9110 section 14); None for all of it."""
    if not text.startswith("bytes=") or "," in text or not size:
        return None
    first, _, last = text[len("bytes=") :].strip().partition("-")
    if first.isdecimal():
        begin = int(first)
        end = int(last) + 1 if last.isdecimal() else size
    elif last.isdecimal():
        begin, end = max(0, size - int(last)), size
    else:
        return None
    return (begin, min(end, size)) if begin < min(end, size) else None


def _sent(text: str) -> str:
    """Return a text of the browser as HTTP sends it: its bytes in UTF-8, each a letter of Latin-1."""
    return text.encode("utf-8", "replace").decode("latin-1")


def _received(text: str) -> str:
    """Return the inverse of `_sent`."""
    return text.encode("latin-1", "replace").decode("utf-8", "replace")


def _as_param(cookie: Cookie) -> Params:
    host, _, _ = split_port(cookie.domain.lstrip("."))
    scheme = "https" if cookie.secure else "http"
    name, value, path = map(_received, (cookie.name, cookie.value, cookie.path))
    param: Params = {"name": name, "value": value, "path": path, "secure": cookie.secure}
    param["url"] = f"{scheme}://{host}{path}"
    if cookie.subdomains:
        param["domain"] = f".{host}"
    if cookie.expires.isdecimal() and int(cookie.expires):
        param["expires"] = int(cookie.expires)
    return param


def _as_line(cookie: Params) -> str:
    domain = str(cookie["domain"])
    expires = "0" if cookie.get("session") else str(max(0, int(cookie.get("expires", 0))))
    secure = bool(cookie.get("secure"))
    path, name, value = (_sent(str(cookie[part])) for part in ("path", "name", "value"))
    return Cookie(domain, domain.startswith("."), path, secure, expires, name, value).line


# == the process ======================================================================================================


class Browser:
    """The browser of a job, and the pipe to the job."""

    def __init__(self, begin: Begin, out: io.FileIO, errors: Path) -> None:
        self._begin = begin
        self._out = out
        self._errors = errors
        self._chrome: Chromium | None = None
        self._shown = 0
        self._page: _Page | None = None
        self.storage_keys: set[str] = set()  # of documents shown since storage was cleared
        self._frames_before: frozenset[str] = frozenset()  # of the page before, which may ask for something at its end
        self._connector = Connector(ca=begin.ca, bind=begin.bind, proxies=Proxies(begin.proxy, os.environ))
        self._hosts: dict[str, _Host] = {}
        self.pace = Pace()
        self._asks: dict[int, asyncio.Future[Message]] = {}
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.user_agent = begin.user_agent
        self.killed_for = ""

    # -- the job -------------------------------------------------------------------------------------------------

    def say(self, message: Message) -> None:
        """Tell the job."""
        line = memoryview(packed(message))
        while line:
            line = line[self._out.write(line) :]

    async def ask(self, make: Callable[[int], Ask]) -> Message:
        """Ask the job; return what it says."""
        self._number += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asks[self._number] = answer
        self.say(make(self._number))
        return await answer

    def answered(self, message: Fetch | Have | RedirectTo | Refuse) -> None:
        """Take an answer of the job."""
        answer = self._asks.pop(message.ask, None)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def host(self, domain: str) -> _Host:
        """Return what asks a host."""
        if domain not in self._hosts:
            self._hosts[domain] = _Host(self._connector)
        return self._hosts[domain]

    # -- pages ---------------------------------------------------------------------------------------------------

    async def show(self, asked: ShowPage) -> None:
        """Show a page, and tell the job what it showed."""
        try:
            chrome = await self._started_surely()
        except BrowserUnable as error:
            self.say(Unable(str(error), Reason.BROWSER_MISSING))
            return
        except CdpFailed as error:
            is_alone = "unshare" in str(error) or "mount" in str(error) or "setpriv" in str(error)
            self.say(Unable(str(error), Reason.BROWSER_NO_NAMESPACE if is_alone else Reason.BROWSER_CRASH))
            return
        self.killed_for = ""
        self._page = _Page(self, chrome, asked)
        watch = asyncio.create_task(self._watch(chrome))
        try:
            shown = await self._page.show()
            cookies = () if chrome.gone.done() else await self._page.cookies()
        finally:
            watch.cancel()
            self._frames_before = self._page.frames
            self._page = None
        self._shown += 1
        if chrome.gone.done() or self._shown >= self._begin.pages or shown.fault in _DEADLY:
            await self._end_browser()
        for answer in self._asks.values():
            answer.cancel()
        self._asks.clear()
        # The next request to a host may be a wget's: no connection of ours stays open beside it.
        ended = [asyncio.wrap_future(host.disconnect()) for host in self._hosts.values()]
        if ended:
            await asyncio.wait(ended, timeout=_DISCONNECT)
        while len(self._hosts) > _MOST_HOSTS:
            self._hosts.pop(next(iter(self._hosts))).close()
        self.say(replace(shown, cookies=cookies))

    async def _started_surely(self) -> Chromium:
        """Return the running browser; one that ends amid its start is started again. Raises as `_started` does."""
        for _ in range(_MOST_STARTS - 1):
            with contextlib.suppress(CdpFailed):
                return await self._started()
        return await self._started()

    async def _started(self) -> Chromium:
        """Return the running browser; start one if there is none. Raises BrowserUnable, CdpFailed."""
        if self._chrome is not None and not self._chrome.gone.done():
            return self._chrome
        await self._end_browser()
        begin = self._begin
        chrome = Chromium.start(
            begin.program, window=begin.window, user=begin.user, archive=Path(begin.archive), errors=self._errors
        )
        self._chrome, self._shown = chrome, 0
        self.storage_keys.clear()
        try:
            self._listen(chrome)
            agent = await chrome.intercept()
            self.user_agent = f"{agent.replace('Headless', '')} {self._begin.user_agent}"
        except CdpFailed:
            await self._end_browser()
            raise
        return chrome

    async def _end_browser(self) -> None:
        if self._chrome is not None:
            await self._chrome.close()
            self._chrome = None

    async def close(self) -> None:
        """End all."""
        await self._end_browser()
        for host in self._hosts.values():
            host.close()

    async def _watch(self, chrome: Chromium) -> None:
        if await chrome.hold_memory(self._begin.memory):
            self.killed_for = Reason.BROWSER_MEMORY

    # -- events --------------------------------------------------------------------------------------------------

    def _listen(self, chrome: Chromium) -> None:
        chrome.on("Fetch.requestPaused", self._on_paused)
        chrome.on("Target.attachedToTarget", self._on_attached)
        chrome.on("Target.targetCreated", self._on_created)
        chrome.on("Page.frameAttached", lambda params, session: self._with_page(session, params["frameId"]))
        chrome.on("Page.loadEventFired", lambda _, session: self._on_loaded(session))
        chrome.on("Page.javascriptDialogOpening", self._on_dialog)
        chrome.on("Inspector.targetCrashed", lambda _, session: self._on_crash(session))
        chrome.on("Page.windowOpen", lambda _, session: self._remark(session, Reason.BROWSER_POPUP))
        chrome.on("Network.webSocketCreated", lambda _, session: self._remark(session, Reason.BROWSER_WEBSOCKET))
        chrome.on("Browser.downloadWillBegin", lambda _, session: self._remark(session, Reason.BROWSER_DOWNLOAD))
        chrome.on("Page.downloadWillBegin", lambda _, session: self._remark(session, Reason.BROWSER_DOWNLOAD))

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self.end_at_fault)

    def end_at_fault(self, task: asyncio.Task[None]) -> None:
        """End the process where a page could not be shown for a reason that is ours: the job starts another.

        Where the reason is the disk, the job is told, and fails.
        """
        if task.cancelled() or (error := task.exception()) is None:
            return
        try:
            if isinstance(error, OSError) and error.errno in _OF_DISK:
                self.say(DiskFailed(error.errno, str(error.filename or "")))
            traceback.print_exception(error)
            sys.stderr.flush()
        finally:
            os._exit(1)  # also where the disk does not take what is printed

    def _with_page(self, session: str, frame: str) -> None:
        if self._page is not None and self._page.has_session(session):
            self._page.has_frame(frame)

    def _on_loaded(self, session: str) -> None:
        if self._page is not None:
            self._page.loaded(session)

    def _remark(self, session: str, word: str) -> None:
        if self._page is not None and (not session or self._page.has_session(session)):
            self._page.remark(word)

    def _on_crash(self, session: str) -> None:
        if self._page is not None and self._page.has_session(session):
            self._page.crashed()

    def _on_dialog(self, params: Params, session: str) -> None:
        if self._page is not None:
            self._do(self._page.dialog(session, params.get("type", "")))

    def _on_paused(self, params: Params, session: str) -> None:
        page, chrome = self._page, self._chrome
        if page is not None and params.get("frameId") not in self._frames_before:
            self._do(page.paused(session, params))
        elif chrome is not None:
            chrome.send("Fetch.failRequest", session, requestId=params["requestId"], errorReason="Aborted")

    def _on_attached(self, params: Params, _: str) -> None:
        self._do(self._prepare(params))

    async def _prepare(self, params: Params) -> None:
        session, page, chrome = params["sessionId"], self._page, self._chrome
        if page is None or chrome is None:
            return
        kind = params["targetInfo"]["type"]
        frame = params["targetInfo"]["targetId"]
        if kind == "iframe":
            page.has_frame(frame)  # a frame of another site has its own target, of the same id
        with contextlib.suppress(CdpFailed):
            if params.get("waitingForDebugger"):
                await page.prepare(session, kind)
                await chrome.send("Runtime.runIfWaitingForDebugger", session)

    def _on_created(self, params: Params, _: str) -> None:
        """Close a window that a page opens."""
        info = params["targetInfo"]
        if info["type"] == "page" and info.get("openerId") and self._chrome is not None:
            self._remark("", Reason.BROWSER_POPUP)
            self._chrome.send("Target.closeTarget", targetId=info["targetId"])


async def _serve(out: io.FileIO, errors: Path) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    begin = unpacked(await reader.readline())
    if not isinstance(begin, Begin):
        raise WebarcError("the first message must be the settings")
    browser = Browser(begin, out, errors)
    showing: asyncio.Task[None] | None = None
    try:
        while line := await reader.readline():
            message = unpacked(line)
            if isinstance(message, Fetch | Have | RedirectTo | Refuse):
                browser.answered(message)
            elif isinstance(message, ShowPage):
                if showing is not None:
                    await showing
                showing = asyncio.create_task(browser.show(message))
                showing.add_done_callback(browser.end_at_fault)
    finally:
        await browser.close()


def main() -> None:
    """Serve the job until it closes the pipe. The argument is the file for what the browser itself says."""
    # A signal to the whole terminal or service is for the agent, which ends this process itself.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    out = io.FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may write between messages
    asyncio.run(_serve(out, Path(sys.argv[1])))
    os._exit(0)  # threads may still wait for a server


if __name__ == "__main__":
    main()
