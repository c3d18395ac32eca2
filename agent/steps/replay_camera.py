"""Takes pictures of archived pages as replay shows them, and compares them with those taken when they were crawled.

The browser is that of crawls (`chromium.py`): it has no network. Each of its requests is paused, and answered with what
the caller's `Serve` returns for a path of replay. All other requests fail. Scripts are off while a page of replay is
shown. The browser scales both pictures down; it is the one program here that reads images, and those are untrusted.

Both pictures are of the window alone, and have one size: that of the picture of the crawl.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agent.crawl.chromium import Chromium, Params
from webarcfs.archive.config.settings import BrowserSettings
from webarcfs.archive.model.errors import BrowserGone, BrowserUnable, CdpFailed

# == likeness, pure ===================================================================================================


#: Steps of red, green or blue, of 255, by which two cells must differ to count as different.
_VISIBLE: Final = 24
#: Bytes of a cell: red, green, blue, and how opaque it is.
_CELL: Final = 4
#: Colours are told apart by their upper bits when the background is looked for.
_COARSE: Final = 0xF0


def likeness(picture: bytes, other_picture: bytes) -> float:
    """Return how like two pictures are, from 0 to 1, by their cells: four bytes each, as many in both.

    It is the share of the cells with content that look alike. A cell without content has the background of its picture
    in both, so an empty page is not like a page with text because both have margins. Without any content it is 1.
    """
    cells, other_cells = _cells(picture), _cells(other_picture)
    background, other_background = _background(cells), _background(other_cells)
    content = alike = 0
    for cell, other_cell in zip(cells, other_cells, strict=True):
        if _differ(cell, background) or _differ(other_cell, other_background) or _differ(cell, other_cell):
            content += 1
            alike += not _differ(cell, other_cell)
    return alike / content if content else 1.0


def _cells(picture: bytes) -> list[bytes]:
    return [picture[start : start + 3] for start in range(0, len(picture), _CELL)]


def _background(cells: list[bytes]) -> bytes:
    """Return the most frequent colour: the first cell of the most frequent group of like colours."""
    groups = Counter(bytes(value & _COARSE for value in cell) for cell in cells)
    if not groups:
        return b""
    most = groups.most_common(1)[0][0]
    return next(cell for cell in cells if bytes(value & _COARSE for value in cell) == most)


def _differ(cell: bytes, other_cell: bytes) -> bool:
    return any(abs(value - other_value) > _VISIBLE for value, other_value in zip(cell, other_cell, strict=True))


# == the camera =======================================================================================================


_log = logging.getLogger("webarc")
#: Where pages of replay are, for the browser alone: no name of the internet ends so (RFC 6761).
REPLAY: Final = "http://replay.invalid"
_TABLE: Final = "http://pictures.invalid"
#: Seconds that a page may take in all, until it has loaded, and without an open request after which it is still.
_PAGE, _LOAD, _STILL = 60.0, 20.0, 0.3
_POLL: Final = 0.02
#: Pixels of a window; a larger picture is compared by its upper left part.
_NARROWEST, _WIDEST = 100, 2_560
#: Pixels of a cell: width and height.
_PIXELS: Final = 8
_JPEG_QUALITY: Final = 60
#: Bytes of a body that the browser gets. Nobody needs to read more of one.
LARGEST_BODY: Final = 32 << 20
_STATUSES: Final = range(200, 600)
_ERROR: Final = 400
#: The empty page on which the pictures are compared.
_EMPTY: Final = ("text/html; charset=utf-8", b"<!DOCTYPE html>")
#: Fields of an answer that belong to its connection.
_NOT_GIVEN: Final = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive", "content-encoding"})
_AWAY: Final = ("data:", "blob:", "about:")
_SIZE = """(async () => {
  const image = new Image(); image.src = "/live"; await image.decode();
  return [image.naturalWidth, image.naturalHeight];
})()"""
_SCALED = """(async (width, height, columns, rows) => {
  const scaled = async path => {
    const image = new Image(); image.src = path; await image.decode();
    const size = {resizeWidth: columns, resizeHeight: rows, resizeQuality: "high"};
    const bitmap = await createImageBitmap(image, 0, 0, width, height, size);
    const context = new OffscreenCanvas(columns, rows).getContext("2d");
    context.fillStyle = "white"; context.fillRect(0, 0, columns, rows);
    context.drawImage(bitmap, 0, 0);
    let bytes = "";
    for (const value of context.getImageData(0, 0, columns, rows).data) bytes += String.fromCharCode(value);
    return btoa(bytes);
  };
  return [await scaled("/live"), await scaled("/replay")];
})"""


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """An answer of replay."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes


#: Answers a path with its query, and the field Range of the request.
Serve = Callable[[str, str], Awaitable[ServedAnswer]]


@dataclass(frozen=True, slots=True)
class ComparedPictures:
    """The picture of a page in replay (JPEG), how like it is, and how many of the parts it asked for are not there."""

    replay: bytes
    likeness: float
    lacks: int


@dataclass(slots=True)
class _PageRequests:
    """The requests of one comparison: how many are open, and what came of the others.

    `frame` is the main frame of the page of replay, `status` that of its document; `lacks` counts its parts that are
    not there. `changed` is when a request was answered last.
    """

    frame: str = ""
    status: int = 0
    lacks: int = 0
    open: int = 0
    changed: float = 0.0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def end(self) -> None:
        """Answer no further request."""
        tasks = [*self.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ReplayCamera:
    """A browser for pages of replay. `compare` starts it where none runs; `close` ends it."""

    def __init__(self, settings: BrowserSettings, serve: Serve, archive: Path, errors: Path) -> None:
        self._settings = settings
        self._archive = archive
        self._serve = serve
        self._errors = errors
        self._chrome: Chromium | None = None
        self._watch: asyncio.Task[bool] | None = None
        #: Path on the page of the comparison → MIME type and content.
        self._table_files: dict[str, tuple[str, bytes]] = {}
        self._loaded: dict[str, asyncio.Event] = {}
        self._requests = _PageRequests()

    async def compare(self, target: str, live: bytes, mime: str) -> ComparedPictures:
        """Show a path of replay, and compare it with a picture.

        Raises BrowserUnable if no browser can be started, CdpFailed if this page or this picture cannot be compared.
        After that the next page gets another browser.
        """
        chrome = await self._start()
        self._table_files = {"/": _EMPTY, "/live": (mime, live)}
        self._requests = _PageRequests()
        try:
            async with asyncio.timeout(_PAGE):
                return await self._compare(chrome, target)
        except TimeoutError:
            await self.close()
            raise CdpFailed(f"it took longer than {_PAGE:.0f} s") from None
        except CdpFailed:
            await self.close()
            raise
        finally:
            await self._requests.end()

    async def close(self) -> None:
        """End the browser."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._chrome is not None:
            await self._chrome.close()
            self._chrome = None
        await self._requests.end()

    # -- a page --------------------------------------------------------------------------------------------------

    async def _compare(self, chrome: Chromium, target: str) -> ComparedPictures:
        table, table_session = await self._open_page(chrome)
        await self._go(chrome, table_session, f"{_TABLE}/")
        size = await self._evaluate(chrome, table_session, _SIZE, "the picture of the crawl cannot be read")
        width, height = (min(max(int(pixels), _NARROWEST), _WIDEST) for pixels in size)
        page, session = await self._open_page(chrome)
        await chrome.send("Emulation.setScriptExecutionDisabled", session, value=True)
        await chrome.send(
            "Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        self._requests.frame = page
        await self._go(chrome, session, f"{REPLAY}{target}")
        if self._requests.status >= _ERROR:
            raise CdpFailed(f"replay answers {self._requests.status}")
        shot = await chrome.send("Page.captureScreenshot", session, format="jpeg", quality=_JPEG_QUALITY)
        picture = base64.b64decode(shot["data"])
        await chrome.send("Target.closeTarget", targetId=page)
        self._table_files["/replay"] = ("image/jpeg", picture)
        columns, rows = max(width // _PIXELS, 1), max(height // _PIXELS, 1)
        expression = f"{_SCALED}({width}, {height}, {columns}, {rows})"
        scaled = await self._evaluate(chrome, table_session, expression, "the pictures cannot be compared")
        live, replay = (base64.b64decode(cells) for cells in scaled)
        await chrome.send("Target.closeTarget", targetId=table)
        return ComparedPictures(picture, likeness(live, replay), self._requests.lacks)

    async def _open_page(self, chrome: Chromium) -> tuple[str, str]:
        """Open an empty page; return its id and that of the session with it."""
        target = (await chrome.send("Target.createTarget", url="about:blank"))["targetId"]
        session = (await chrome.send("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        await chrome.send("Page.enable", session)
        return target, session

    async def _go(self, chrome: Chromium, session: str, url: str) -> None:
        """Show a URL until it has loaded and nothing that it asked for is open, or its time is over."""
        loaded = self._loaded[session] = asyncio.Event()
        result = await chrome.send("Page.navigate", session, url=url)
        if result.get("errorText"):
            raise CdpFailed(f"it cannot be shown: {result['errorText']}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOAD):
                await loaded.wait()
                requests = self._requests
                requests.changed = time.monotonic()
                while requests.open or time.monotonic() - requests.changed < _STILL:
                    await asyncio.sleep(_POLL)
        del self._loaded[session]

    async def _evaluate(self, chrome: Chromium, session: str, expression: str, fault: str) -> Any:
        result = await chrome.send(
            "Runtime.evaluate", session, expression=expression, awaitPromise=True, returnByValue=True
        )
        value = result.get("result", {}).get("value")
        if not isinstance(value, list) or len(value) != 2:  # both scripts return a pair
            raise CdpFailed(fault)
        return value

    # -- the browser ---------------------------------------------------------------------------------------------

    async def _start(self) -> Chromium:
        """Return the running browser; start one if there is none. Raises BrowserUnable."""
        if self._chrome is not None and not self._chrome.gone.done():
            return self._chrome
        await self.close()
        machine = self._settings
        chrome = Chromium.start(
            machine.program, window=machine.window_size, user=machine.user, archive=self._archive, errors=self._errors
        )
        self._chrome = chrome
        chrome.on("Fetch.requestPaused", self._on_paused)
        chrome.on("Page.loadEventFired", self._on_loaded)
        try:
            await chrome.intercept()
        except CdpFailed as error:
            await self.close()
            raise BrowserUnable(str(error)) from None
        self._watch = asyncio.create_task(chrome.hold_memory(self._settings.memory))
        return chrome

    def _on_loaded(self, _: Params, session: str) -> None:
        if (event := self._loaded.get(session)) is not None:
            event.set()

    def _on_paused(self, params: Params, session: str) -> None:
        requests = self._requests
        task = asyncio.ensure_future(self._answer(params, session, requests))
        requests.tasks.add(task)
        task.add_done_callback(requests.tasks.discard)

    async def _answer(self, params: Params, session: str, requests: _PageRequests) -> None:
        """Answer a request of the browser."""
        chrome, number = self._chrome, params["requestId"]
        if chrome is None:
            return
        requests.open += 1
        try:
            answer = await self._answer_to(params, requests)
            if answer is not None:
                await chrome.send(
                    "Fetch.fulfillRequest",
                    session,
                    requestId=number,
                    responseCode=answer.status,
                    responseHeaders=[{"name": name, "value": value} for name, value in answer.fields],
                    body=base64.b64encode(answer.body).decode("ascii"),
                )
            elif params["request"]["url"].startswith(_AWAY):
                await chrome.send("Fetch.continueRequest", session, requestId=number)
            else:
                await chrome.send("Fetch.failRequest", session, requestId=number, errorReason="BlockedByClient")
        except BrowserGone:
            pass
        except CdpFailed:  # the page does not want it any more, or a field of the answer is none
            await self._fail(chrome, session, number)
        except Exception:
            _log.exception("replay failed at %s", params["request"]["url"])
            await self._fail(chrome, session, number)
        finally:
            requests.open -= 1
            requests.changed = time.monotonic()

    async def _fail(self, chrome: Chromium, session: str, number: str) -> None:
        """Let a request of the browser fail: one that stays paused would keep its page from loading."""
        with contextlib.suppress(CdpFailed):
            await chrome.send("Fetch.failRequest", session, requestId=number, errorReason="Failed")

    async def _answer_to(self, params: Params, requests: _PageRequests) -> ServedAnswer | None:
        """Return the answer to a request; None for what is neither a page of replay nor one of the two pictures."""
        request = params["request"]
        url = str(request["url"]).partition("#")[0]
        if request["method"] != "GET":
            return None
        if url.startswith(f"{_TABLE}/"):
            mime, content = self._table_files.get(url.removeprefix(_TABLE), ("", b""))
            return ServedAnswer(200, (("Content-Type", mime),), content) if mime else None
        if not url.startswith(f"{REPLAY}/web/"):
            return None
        byte_range = next((value for name, value in request["headers"].items() if name.lower() == "range"), "")
        answer = await self._serve(url.removeprefix(REPLAY), byte_range)
        if params.get("resourceType") == "Document" and params.get("frameId") == requests.frame:
            requests.status = answer.status  # a redirect within replay comes before the page
        elif answer.status >= _ERROR:
            requests.lacks += 1
        if len(answer.body) > LARGEST_BODY or answer.status not in _STATUSES:
            return None
        fields = tuple(pair for pair in answer.fields if pair[0].lower() not in _NOT_GIVEN)
        return ServedAnswer(answer.status, fields, answer.body)
