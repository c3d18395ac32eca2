"""Delivers new commitTags to observers: a thread that follows the feed (/Cl-3/ … /Cl-5/, /Sv-5/).

Each observer has a place of its own in the feed, the last tag that it received, so that none is lost or repeated if the
observer does not fail, and a failing one delays no other. `recover` may rewrite the feed meanwhile: a place is a tag,
and an offset only as long as the tag is found there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag

#: Seconds between two checks of the feed, unless the client sets others.
INTERVAL = 1.0

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """A receiver of new commitTags (/Cl-2.3/): any callable."""

    def __call__(self, tags: list[CommitTag], /) -> None:
        """Handle new snapshots, in the order of their publication."""


@dataclass
class _Registered:
    observer: Observer
    is_shown: Callable[[CommitTag], bool]
    last: str  # the last tag that was delivered; empty for "from the beginning"
    offset: int  # the place in the feed after it


class News:
    """The observers of one feed, and the thread that serves them; it runs while there are any."""

    def __init__(self, feed: Path, interval: float) -> None:
        self._feed = feed
        self._interval = interval
        self._registered: list[_Registered] = []
        self._change = threading.Condition()
        self._delivering = threading.RLock()
        self._thread: threading.Thread | None = None

    def add(
        self, observer: Observer, since: str | None, is_shown: Callable[[CommitTag], bool] = lambda _: True
    ) -> None:
        """Begin after the tag `since`, or at the feed's end. Raises NotFound when the feed has no such tag."""
        text = self._feed.read_bytes() if self._feed.exists() else b""
        if since is None:
            whole = text[: text.rfind(b"\n") + 1]
            last = whole.splitlines()[-1].decode() if whole else ""
            place = _Registered(observer, is_shown, last, len(whole))
        else:
            offset = _behind(text, since)
            if offset is None:
                raise NotFound(f"there is no {since} in {self._feed}")
            place = _Registered(observer, is_shown, since, offset)
        with self._change:
            self._registered.append(place)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="news", daemon=True)
                self._thread.start()
            self._change.notify()

    def remove(self, observer: Observer) -> None:
        """Forget an observer; wait for the call under way."""
        with self._change:
            self._registered = [each for each in self._registered if each.observer is not observer]
            self._change.notify()
        with self._delivering:
            pass

    def stop(self) -> None:
        """Forget all observers, and end the thread."""
        with self._change:
            self._registered = []
            thread, self._thread = self._thread, None
            self._change.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._change:
                if self._thread is not threading.current_thread():
                    return
                registered = list(self._registered)
            for each in registered:
                with self._delivering:
                    if self._is_registered(each):
                        self._deliver(each)
            with self._change:
                if self._thread is threading.current_thread():
                    self._change.wait(self._interval)

    def _is_registered(self, each: _Registered) -> bool:
        with self._change:
            return each in self._registered

    def _deliver(self, each: _Registered) -> None:
        try:
            tags, offset = self._new(each)
            if tags:
                shown = [tag for tag in tags if each.is_shown(tag)]
                if shown:
                    each.observer(shown)
                each.last, each.offset = str(tags[-1]), offset
        except Exception:
            _log.exception("an observer failed; it is given the same commitTags again")

    def _new(self, each: _Registered) -> tuple[list[CommitTag], int]:
        """Return the tags after an observer's place, and the place after them."""
        with self._feed.open("rb") as feed:
            begin = max(0, each.offset - len(each.last.encode()) - 1)
            feed.seek(begin)
            text = feed.read()
            own = f"{each.last}\n".encode() if each.last else b""
            if not text.startswith(own):  # the feed was rewritten
                feed.seek(0)
                begin, text = 0, feed.read()
                behind = _behind(text, each.last) if each.last else 0
                if behind is None:
                    raise NotFound(f"{each.last} is not in {self._feed} any more")
                own = text[:behind]
        whole = text[len(own) : text.rfind(b"\n") + 1]
        tags = [CommitTag.parse(line) for line in whole.decode().splitlines()]
        return tags, begin + len(own) + len(whole)


def _behind(text: bytes, tag: str) -> int | None:
    """Return the offset after the line of a tag, or None."""
    line = f"{tag}\n".encode()
    if text.startswith(line):
        return len(line)
    found = text.find(b"\n" + line)
    return None if found < 0 else found + 1 + len(line)
