"""`/events`: the figures of what runs, as server-sent events (HTML, section "Server-sent events").

One look at the jobs a second serves all who watch, and none is taken while nobody does. It reads files that the jobs
write anyway, so the agent does nothing for it. Who watches gets a whole state at first, and another when it differs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from agent.desk import limits
from agent.desk.pages import jobs
from agent.desk.shared.desk import Desk
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.catalogue_database import opened
from webarcfs.archive.catalogue.record_rows import Chosen
from webarcfs.archive.model.errors import WebarcError

PATH = "/events"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
#: Looks at the jobs until the newest snapshot is asked for again.
_EVERY = 5


class Watching:
    """All who watch. For the event loop."""

    def __init__(self, desk: Desk, may_watch: Callable[[Request], bool]) -> None:
        self._desk = desk
        self._may_watch = may_watch
        self._watchers: dict[asyncio.Queue[str], str] = {}  # with what each was told last
        self._looking: asyncio.Task[None] | None = None
        self._looks = 0
        self._newest = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one who watches, until it goes."""
        allowed = await asyncio.to_thread(self._may_watch, Request(scope))
        if not allowed or len(self._watchers) >= limits.WATCHERS or scope["method"] != "GET":
            status = 403 if not allowed else 503
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        own: asyncio.Queue[str] = asyncio.Queue(4)
        gone = asyncio.ensure_future(_gone(receive))
        self._watchers[own] = ""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await self._tell(own, gone, scope, send)
        finally:
            self._watchers.pop(own, None)
            gone.cancel()

    async def _tell(self, own: asyncio.Queue[str], gone: asyncio.Future[None], scope: Scope, send: Send) -> None:
        while not gone.done():
            waiting = asyncio.ensure_future(own.get())
            both: set[asyncio.Future[Any]] = {waiting, gone}
            await asyncio.wait(both, timeout=limits.WATCH_QUIET, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                text = f"data: {waiting.result()}\n\n"
            else:
                waiting.cancel()
                # The session may have ended meanwhile.
                if gone.done() or not await asyncio.to_thread(self._may_watch, Request(scope)):
                    break
                text = ": still here\n\n"
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b""})

    async def _look(self) -> None:
        """Look at the jobs as long as somebody watches."""
        while self._watchers:
            watching = list(self._watchers)  # who comes meanwhile has a page that may be newer than this look
            with contextlib.suppress(WebarcError, OSError):
                told = await asyncio.to_thread(self._now)
                for each in watching:
                    if self._watchers.get(each, told) == told:  # it has gone, or knows it
                        continue
                    if each.full():
                        each.get_nowait()  # who is slow gets the newest state
                    each.put_nowait(told)
                    self._watchers[each] = told
            await asyncio.sleep(limits.WATCH_SECONDS)

    def _now(self) -> str:
        archive = self._desk.archive
        said = jobs.told(archive, self._desk.history().open)
        if self._looks % _EVERY == 0:
            with opened(archive, Catalogue(archive)) as tables:
                newest = tables.listed(Chosen(), limit=1)
            self._newest = newest[0].number if newest else 0
        self._looks += 1
        return json.dumps({**said, "newest": self._newest}, ensure_ascii=False, separators=(",", ":"))


async def _gone(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
