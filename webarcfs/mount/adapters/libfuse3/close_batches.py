"""Closes and fsyncs that come at once are confirmed together (confirm.py), those of one domain by one thread.

While the disk is at the first ones, others come, and are the next; so the more there are, the less each costs. What may
take long goes its own way, and a domain that a publisher holds keeps no other waiting.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from webarcfs.mount.adapters.libfuse3.workers import Answer, DeferredReply, Workers
from webarcfs.mount.writing.writer import Opened, Writer

#: How many are confirmed together: their bodies are in memory, none larger than a journal's records have.
MOST = 64

_Close = tuple[Opened, Answer]

_log = logging.getLogger(__name__)


class CloseBatcher:
    """The closes of one mount."""

    def __init__(self, writer: Callable[[], Writer], workers: Workers) -> None:
        self._writer = writer
        self._workers = workers
        self._lock = threading.Lock()
        #: What waits, by domain; a domain is there as long as a thread is at it.
        self._waiting: dict[str, list[_Close]] = {}

    def close(self, opened: Opened) -> DeferredReply:
        """The answer is that what was written is durable, and visible; or what it was refused for."""
        return DeferredReply(lambda answer: self._add((opened, answer)))

    def _add(self, close: _Close) -> None:
        domain = close[0].draft.place.domain
        with self._lock:
            if domain in self._waiting:
                self._waiting[domain].append(close)
                return
            self._waiting[domain] = [close]
        self._workers.release(lambda: self._confirm(domain))

    def _confirm(self, domain: str) -> None:
        """Confirm whatever waits, until nothing does."""
        while closes := self._next(domain):
            together = [close for close in closes if not close[0].is_dear]
            for opened, answer in closes:
                if opened.is_dear:
                    self._alone(opened, answer)
            if together:
                self._together(together)

    def _next(self, domain: str) -> list[_Close]:
        with self._lock:
            waiting = self._waiting[domain]
            if not waiting:
                del self._waiting[domain]
                return []
            self._waiting[domain] = waiting[MOST:]
            return waiting[:MOST]

    def _alone(self, opened: Opened, answer: Answer) -> None:
        writer = self._writer()
        self._workers.close(lambda: writer.confirm(opened)).start(answer)

    def _together(self, closes: list[_Close]) -> None:
        answers = iter([answer for _, answer in closes])
        try:
            for error in self._writer().confirm_all([opened for opened, _ in closes]):
                next(answers)(0 if error is None else error)
        except BaseException as error:
            _log.exception("closes were not confirmed")
            for answer in answers:  # whoever asked waits for one, and others for this thread
                answer(error)
