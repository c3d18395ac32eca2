"""News of a server: its commitTags by server-sent events, which a thread reads and resumes where they were cut.

The server sends each tag as the id of an event, so the last one says where to resume (`Last-Event-ID`). A snapshot that
is released later than newer ones has an event without an id, since the place stays where it is. What was received is
remembered, to some number of tags; an observer that is farther behind is brought up by one request.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice

from webarcfs.archive.model.errors import Damaged, NotFound, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.client.http_connections import ServerAnswer, ServerConnections
from webarcfs.client.observers import FeedPosition
from webarcfs.client.remote_answers import checked, rows_of
from webarcfs.client.server_address import queried

EVENT_STREAM_TYPE = "text/event-stream"
#: Tags that are remembered.
_REMEMBERED = 10_000
#: Seconds of silence after which a stream is taken as cut (a server sends a comment each 15), and between two tries.
_SILENT = 60.0
_PAUSES = (0.2, 1.0, 5.0, 15.0)
_LONGEST_LINE = 1 << 16

_log = logging.getLogger(__name__)


class RemoteFeed:
    """The feed of a server."""

    def __init__(self, connections: ServerConnections) -> None:
        self._connections = connections
        self._change = threading.Condition()
        self._tags: deque[str] = deque(maxlen=_REMEMBERED)
        self._known: set[str] = set()
        self._thread: threading.Thread | None = None
        self._stream: ServerAnswer | None = None
        self._last_id = ""

    def end(self) -> FeedPosition:
        """Return the place behind the newest tag."""
        last = ""
        for tag in self._behind(""):
            last = tag
        return self._begin(last)

    def find(self, tag: str) -> FeedPosition:
        """Return the place behind a tag. Raises NotFound."""
        with self._change:
            if self._thread is not None and tag in self._known:
                return FeedPosition(tag)
        for _ in self._behind(tag):
            break
        return self._begin(tag)

    def after(self, position: FeedPosition) -> tuple[list[CommitTag], FeedPosition]:
        """Return the tags behind a place, and the place behind them: from memory, or by a request that may be Busy."""
        with self._change:
            known = self._remembered_behind(position.last)
        tags = list(self._behind(position.last)) if known is None else known
        return [CommitTag.parse(tag) for tag in tags], FeedPosition(tags[-1]) if tags else position

    def follow(self, notify: Callable[[], None]) -> None:
        """Read events in a thread, unless it does."""
        with self._change:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, args=(notify,), name="events", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        """End the thread."""
        with self._change:
            thread, self._thread = self._thread, None
            if self._stream is not None:
                self._stream.abort()
            self._change.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # ----------------------------------------------------------------------------------------------------------------

    def _begin(self, tag: str) -> FeedPosition:
        """Let what is remembered begin at a place, unless events are read already."""
        with self._change:
            if self._thread is None:
                self._tags.clear()
                self._known.clear()
                self._remember(tag)
                self._last_id = tag
        return FeedPosition(tag)

    def _remember(self, tag: str) -> None:
        if len(self._tags) == _REMEMBERED:
            self._known.discard(self._tags[0])
        self._tags.append(tag)
        self._known.add(tag)

    def _remembered_behind(self, tag: str) -> list[str] | None:
        if self._thread is None or tag not in self._known:
            return None
        behind = list(
            islice(reversed(self._tags), next(n for n, each in enumerate(reversed(self._tags)) if each == tag))
        )
        return behind[::-1]

    def _behind(self, tag: str) -> Iterator[str]:
        """Ask for the tags behind one, or all. Raises NotFound, Busy."""
        origin = self._connections.origin
        for row in rows_of(checked(self._connections.get("/changes" + queried(since=tag)), origin), origin):
            yield str(next(iter(row.values()), ""))

    def _run(self, notify: Callable[[], None]) -> None:
        tries = 0
        while self._is_current():
            try:
                for events in self._received():
                    tries = 0
                    with self._change:
                        new = [event.tag for event in events if event.tag not in self._known]
                        for tag in new:
                            self._remember(tag)
                        self._last_id = (events[-1].id if events else "") or self._last_id
                    if new:
                        notify()
            except (WebarcError, OSError) as error:
                if self._is_current():
                    _log.warning("no news from %s: %s", self._connections.origin, error)
            with self._change:
                if self._thread is threading.current_thread():
                    self._change.wait(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1

    def _is_current(self) -> bool:
        with self._change:
            return self._thread is threading.current_thread()

    def _received(self) -> Iterator[list[ServerEvent]]:
        """Yield events as the server sends them, until the stream ends. Raises Busy, NotFound, Damaged."""
        with self._change:
            last = self._last_id
        origin = self._connections.origin
        headers = {"Accept": EVENT_STREAM_TYPE} | ({"Last-Event-ID": last} if last else {})
        answer = self._connections.get("/changes", headers, seconds=_SILENT)
        if answer.status == HTTPStatus.NOT_FOUND:
            # The newest tag that was received may have been withdrawn from readers: what is known is left out.
            answer.drain()
            yield [ServerEvent(tag, tag) for tag in self._behind(self._newest_known())]
            return
        checked(answer, origin)
        if answer.media_type != EVENT_STREAM_TYPE:
            answer.close()
            raise Damaged(f"{origin} sends no events")
        with self._change:
            if self._thread is not threading.current_thread():
                answer.close()
                return
            self._stream = answer
        try:
            if not last:
                yield [ServerEvent(tag, tag) for tag in self._behind("")]  # published before the stream began
            yield from events_of(answer.pieces(), origin)
        finally:
            with self._change:
                self._stream = None
            answer.close()

    def _newest_known(self) -> str:
        """Return the newest remembered tag that the server still knows. Raises NotFound if there is none."""
        with self._change:
            remembered = [tag for tag in reversed(self._tags) if tag]
        for tag in remembered[:20]:
            try:
                next(self._behind(tag), None)
            except NotFound:
                continue
            return tag
        raise NotFound(f"{self._connections.origin} knows none of the commitTags that it sent")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """A commitTag, and the place in the feed behind which a stream resumes: that of the newest event with an id."""

    tag: str
    id: str


def events_of(pieces: Iterable[bytes], origin: str) -> Iterator[list[ServerEvent]]:
    """Yield the events of a stream, those of a piece together. Raises Damaged for what is none."""
    rest, data, place = b"", "", ""
    for piece in pieces:
        *lines, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise Damaged(f"{origin} sent a line of more than {_LONGEST_LINE:,} bytes")
        events: list[ServerEvent] = []
        for line in lines:
            if not line:
                if data:
                    events.append(ServerEvent(_checked_tag(data, origin), place))
                data = ""
            elif line.startswith(b"data:"):
                data = line[5:].strip().decode("utf-8", "replace")
            elif line.startswith(b"id:"):
                place = _checked_tag(line[3:].strip().decode("utf-8", "replace"), origin)
        if events:
            yield events


def _checked_tag(text: str, origin: str) -> str:
    try:
        return str(CommitTag.parse(text))
    except Damaged:
        raise Damaged(f"{origin} sent an event that is no commitTag: {text[:100]!r}") from None
