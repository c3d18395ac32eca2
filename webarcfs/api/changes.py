"""News: the commitTags of new snapshots, as JSON lines of what there is, or as server-sent events as they come.

`data` of an event is a commitTag, and `id` is the place in the feed: whoever was cut resumes behind it, by
`Last-Event-ID`. A snapshot that readers may not see is told once they may. If later ones were told meanwhile, its event
has no id: the place that a listener has stays where it is (HTML, "server-sent events").

A process looks at the feed once for all who watch, in a thread of its own; those who are at the same place share what
was read. A listener holds no thread. One that takes nothing holds one answer, until its connection is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from webarcfs.api.answers import streamed_rows
from webarcfs.api.api_request import ApiRequest, tag_of
from webarcfs.api.api_source import ApiSource
from webarcfs.archive.model.errors import Busy, NotFound, NotShown, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system.clocks import Deadline, under
from webarcfs.client.observers import FeedPosition
from webarcfs.web import limits
from webarcfs.web.answering import disconnected
from webarcfs.web.connections import is_ending

EVENT_STREAM_TYPE: Final = "text/event-stream"
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
#: Seconds between two looks at the feed, and without an event until a comment is sent.
_LOOK: Final = 0.3
_QUIET: Final = 15.0
#: Snapshots that were not shown, and are told once they are: the newest so many.
_HIDDEN: Final = 1_000
#: Tags of one look at what may be seen.
_AT_ONCE: Final = 500

_T = TypeVar("_T")
_log = logging.getLogger("webarc")


def _shown(source: ApiSource, tags: Sequence[CommitTag]) -> Iterator[CommitTag]:
    """Yield those of some tags that whoever asks may see."""
    for begin in range(0, len(tags), _AT_ONCE):
        part = tags[begin : begin + _AT_ONCE]
        shown = source.shown(part)
        yield from (tag for tag in part if tag in shown)


def _position(asked: ApiRequest, *, is_stream: bool) -> FeedPosition:
    """Return the place behind which is asked. Raises UsageError for what is no tag, NotShown for an unknown one."""
    feed = asked.source.feed
    since = asked.request.headers.get("last-event-id", "") or asked.text("since")
    if not since:
        return feed.end() if is_stream else FeedPosition("")
    tag = tag_of(since)
    absent = NotShown(f"there is no snapshot {tag}")
    if tag not in asked.source.shown([tag]):
        raise absent
    try:
        return feed.find(str(tag))
    except NotFound:
        raise absent from None


# == watching =========================================================================================================


@dataclass(slots=True)
class _Watcher:
    """One who watches: its place in the feed, and what was passed there that it may not see yet, by its number.

    `told` is the number of the tag whose id it was sent last.
    """

    source: ApiSource
    position: FeedPosition
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    hidden: dict[CommitTag, int] = field(default_factory=dict)
    passed: int = 0
    told: int = 0

    def events(self, tags: Sequence[CommitTag], shown: Sequence[CommitTag], released: Sequence[CommitTag]) -> bytes:
        """Return the events of new tags and of those that may be seen by now, and note what was told."""
        visible = set(shown)
        numbers = {tag: self.hidden.pop(tag) for tag in released}
        for tag in tags:
            self.passed += 1
            (numbers if tag in visible else self.hidden)[tag] = self.passed
        while len(self.hidden) > _HIDDEN:
            del self.hidden[next(iter(self.hidden))]
        events = []
        for tag, number in sorted(numbers.items(), key=lambda pair: pair[1]):
            place = f"id: {tag}\n" if number > self.told else ""
            self.told = max(self.told, number)
            events.append(f"{place}event: snapshot\ndata: {tag}\n\n")
        return "".join(events).encode()


class NewsStreams:
    """All who watch in a process. For the event loop, but for `answer`, which runs in any thread."""

    def __init__(self) -> None:
        self._watchers: list[_Watcher] = []
        self._looking: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="changes")
        self._state: object = None
        self._read: dict[tuple[str, FeedPosition], tuple[list[CommitTag], FeedPosition, list[CommitTag]]] = {}

    def answer(self, asked: ApiRequest) -> Response:
        """Return the news, in the form that the request accepts."""
        is_stream = EVENT_STREAM_TYPE in asked.request.headers.get("accept", "")
        position = _position(asked, is_stream=is_stream)
        if is_stream:
            return EventStream(self, _Watcher(asked.source, position))
        tags, _ = asked.source.feed.after(position)
        return streamed_rows(asked, ("commitTag",), ([str(tag)] for tag in _shown(asked.source, tags)))

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    # -- for event streams -------------------------------------------------------------------------------------------

    def begin(self, watcher: _Watcher) -> None:
        """Let a listener watch. Raises Busy for one too many."""
        if len(self._watchers) >= limits.WATCHERS:
            raise Busy(f"{limits.WATCHERS} listeners are here already")
        watcher.wake.set()
        self._watchers.append(watcher)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    def end(self, watcher: _Watcher) -> None:
        """Let a listener go."""
        with contextlib.suppress(ValueError):
            self._watchers.remove(watcher)

    async def news(self, watcher: _Watcher) -> bytes:
        """Return the events that a listener has not had. Raises what reading raises."""
        return await self._in_thread(lambda: self._news(watcher))

    def _news(self, watcher: _Watcher) -> bytes:
        key = watcher.source.person, watcher.position
        if key not in self._read:
            tags, behind = watcher.source.feed.after(watcher.position)
            self._read[key] = tags, behind, list(_shown(watcher.source, tags))
        tags, watcher.position, shown = self._read[key]
        return watcher.events(tags, shown, list(_shown(watcher.source, list(watcher.hidden))))

    async def _look(self) -> None:
        """Look at the feed as long as somebody watches, and wake all when it may have news; else after a while."""
        woken = 0.0
        while self._watchers:
            state = self._state
            try:
                state = await self._in_thread(self._watchers[0].source.news_state)
            except (WebarcError, OSError) as error:
                _log.warning("nobody is told of news: %s", error)
            now = time.monotonic()
            if state != self._state or now - woken >= _QUIET:
                self._state, woken = state, now
                await self._in_thread(self._read.clear)
                for watcher in self._watchers:
                    watcher.wake.set()
            await asyncio.sleep(_LOOK)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        def bounded() -> _T:
            with under(Deadline(limits.SECONDS)):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, bounded)


class EventStream(Response):
    """News for one listener, as long as it is there."""

    media_type = EVENT_STREAM_TYPE

    def __init__(self, changes: NewsStreams, watcher: _Watcher) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._changes, self._watcher = changes, watcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events as they come. Raises Busy before the first where too many listen."""
        self._changes.begin(self._watcher)
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                await self._send_events(scope, gone, send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self._changes.end(self._watcher)

    async def _send_events(self, scope: Scope, gone: asyncio.Future[None], send: Send) -> None:
        events, quiet_since = b": listening\n\n", time.monotonic()
        while not gone.done() and not is_ending(scope):
            if not events and time.monotonic() - quiet_since >= _QUIET:
                events = b": still here\n\n"
            if events:
                await send({"type": "http.response.body", "body": events, "more_body": True})
                quiet_since = time.monotonic()
            woken = asyncio.ensure_future(self._watcher.wake.wait())
            await asyncio.wait((woken, gone), timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            events = b""
            if self._watcher.wake.is_set():
                self._watcher.wake.clear()
                try:
                    events = await self._changes.news(self._watcher)
                except (WebarcError, OSError) as error:
                    # The place is kept: the listener resumes there, or is told why it cannot.
                    _log.warning("a listener's news end: %s", error)
                    return
