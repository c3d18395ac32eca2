"""The observers of an archive: a thread follows its feed and delivers new commitTags (/Cl-3/ … /Cl-5/, /Sv-5/)."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Protocol

from webarcfs.archive.model.errors import Busy, NotFound
from webarcfs.archive.model.metadata import CommitTag

#: Seconds between two checks of the feed, unless the client sets others.
INTERVAL = 1.0

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """A receiver of new commitTags (/Cl-2.3/): any callable."""

    def __call__(self, tags: list[CommitTag], /) -> None:
        """Handle new snapshots, in the order of their publication."""


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """A place in a feed: after the tag `last`, or at the beginning if that is empty; `offset` may be out of date."""

    last: str
    offset: int = 0


class NewsFeed(Protocol):
    """The commitTags of an archive in the order of their publication, as observers follow them."""

    def end(self) -> FeedPosition:
        """Return the place behind the newest tag."""

    def find(self, tag: str) -> FeedPosition:
        """Return the place behind a tag. Raises NotFound."""

    def after(self, position: FeedPosition) -> tuple[list[CommitTag], FeedPosition]:
        """Return the tags behind a place, and the place behind them. Raises NotFound."""

    def follow(self, notify: Callable[[], None]) -> None:
        """Begin to call `notify` when there may be new tags, if the feed knows; it may be called in between as well."""

    def leave(self) -> None:
        """End that."""


@dataclass
class _Registered:
    observer: Observer
    is_shown: Callable[[CommitTag], bool]
    position: FeedPosition


class News:
    """The observers of one feed, and the thread that serves them; it runs while there are any.

    Each observer has a place of its own in the feed, the last tag that it received, so that none is lost or repeated if
    the observer does not fail, and a failing one delays no other.
    """

    def __init__(self, feed: NewsFeed, interval: float) -> None:
        self._feed = feed
        self._interval = interval
        self._registered: list[_Registered] = []
        self._change = threading.Condition()
        self._delivering = threading.RLock()
        self._thread: threading.Thread | None = None
        self._is_asked = False  # there is another observer
        self._is_woken = False  # the feed says that there may be news
        self._delivered = -math.inf  # when tags were delivered last

    def add(
        self, observer: Observer, since: str | None, is_shown: Callable[[CommitTag], bool] = lambda _: True
    ) -> None:
        """Begin after the tag `since`, or at the feed's end. Raises NotFound when the feed has no such tag."""
        position = self._feed.end() if since is None else self._feed.find(since)
        with self._change:
            self._registered.append(_Registered(observer, is_shown, position))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="news", daemon=True)
                self._thread.start()
            self._is_asked = True
            self._change.notify()
        self._feed.follow(self._wake)

    def _wake(self) -> None:
        with self._change:
            self._is_woken = True
            self._change.notify()

    def remove(self, observer: Observer) -> None:
        """Forget an observer; wait for the call under way."""
        with self._change:
            self._registered = [
                registration for registration in self._registered if registration.observer is not observer
            ]
            self._change.notify()
        with self._delivering:
            pass

    def stop(self) -> None:
        """Forget all observers, and end the thread."""
        with self._change:
            self._registered = []
            thread, self._thread = self._thread, None
            self._change.notify()
        self._feed.leave()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._change:
                if self._thread is not threading.current_thread():
                    return
                registered = list(self._registered)
            for registration in registered:
                with self._delivering:
                    if self._is_registered(registration):
                        self._deliver(registration)
            self._rest()

    def _rest(self) -> None:
        """Wait for the interval; less if there is another observer, or news that come so long after the last ones."""
        with self._change:
            end = monotonic() + self._interval
            while self._thread is threading.current_thread() and not self._is_asked:
                due = min(end, self._delivered + self._interval) if self._is_woken else end
                if (left := due - monotonic()) <= 0:
                    break
                self._change.wait(left)
            self._is_asked = self._is_woken = False

    def _is_registered(self, registration: _Registered) -> bool:
        with self._change:
            return registration in self._registered

    def _deliver(self, registration: _Registered) -> None:
        try:
            tags, behind = self._feed.after(registration.position)
        except Busy as error:  # a server that cannot be reached
            _log.info("an observer waits for news: %s", error)
            return
        except Exception:
            _log.exception("the news of an observer cannot be read; it is tried again")
            return
        try:
            if tags:
                shown = [tag for tag in tags if registration.is_shown(tag)]
                if shown:
                    self._delivered = monotonic()
                    registration.observer(shown)
                registration.position = behind
        except Exception:
            _log.exception("an observer failed; it is given the same commitTags again")


class FileFeed:
    """The feed of an archive's directory, or `.changes` of a mount.

    `recover` may rewrite it meanwhile: a place is a tag, and an offset only as long as the tag is found there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def end(self) -> FeedPosition:
        """Return the place behind the newest whole line."""
        text = self._text()
        whole = text[: text.rfind(b"\n") + 1]
        return FeedPosition(whole.splitlines()[-1].decode() if whole else "", len(whole))

    def find(self, tag: str) -> FeedPosition:
        """Return the place behind a tag. Raises NotFound."""
        offset = _behind(self._text(), tag)
        if offset is None:
            raise NotFound(f"there is no {tag} in {self._path}")
        return FeedPosition(tag, offset)

    def after(self, position: FeedPosition) -> tuple[list[CommitTag], FeedPosition]:
        """Return the tags behind a place, and the place behind them."""
        if not self._path.exists():  # nothing was published yet
            return [], position
        with self._path.open("rb") as feed:
            begin = max(0, position.offset - len(position.last.encode()) - 1)
            feed.seek(begin)
            text = feed.read()
            own = f"{position.last}\n".encode() if position.last else b""
            if not text.startswith(own):  # the feed was rewritten
                feed.seek(0)
                begin, text = 0, feed.read()
                behind = _behind(text, position.last) if position.last else 0
                if behind is None:
                    raise NotFound(f"{position.last} is not in {self._path} any more")
                own = text[:behind]
        whole = text[len(own) : text.rfind(b"\n") + 1]
        tags = [CommitTag.parse(line) for line in whole.decode().splitlines()]
        return tags, FeedPosition(str(tags[-1]) if tags else position.last, begin + len(own) + len(whole))

    def follow(self, notify: Callable[[], None]) -> None:
        """Do nothing: the file is read at each interval."""

    def leave(self) -> None:
        """Do nothing."""

    def _text(self) -> bytes:
        return self._path.read_bytes() if self._path.exists() else b""


def _behind(text: bytes, tag: str) -> int | None:
    """Return the offset after the line of a tag, or None."""
    line = f"{tag}\n".encode()
    if text.startswith(line):
        return len(line)
    begin = text.find(b"\n" + line)
    return None if begin < 0 else begin + 1 + len(line)
