"""Confirms closes and fsyncs that arrive together in one batch (confirm.py), one thread for each domain.

Closes that arrive during a batch form the next one; so the more arrive, the less each costs. Large files are confirmed
alone, and a domain that a publisher has locked delays no other.

As one thread confirms for all, threads need not hand the interpreter to one another meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from webarcfs.mount.adapters.libfuse3.workers import Answer, DeferredReply, Workers
from webarcfs.mount.writing.open_files import Opened
from webarcfs.mount.writing.writer import Writer

#: Largest batch: the bodies are in memory, none larger than a journal's record holds.
MOST = 64

_Close = tuple[Opened, Answer]

_log = logging.getLogger(__name__)


class CloseBatcher:
    """The closes of one mount."""

    def __init__(self, writer: Callable[[], Writer], workers: Workers) -> None:
        self._writer = writer
        self._workers = workers
        self._lock = threading.Lock()
        #: The waiting closes by domain; a domain is a key as long as a thread works on it.
        self._waiting: dict[str, list[_Close]] = {}

    def close(self, opened: Opened) -> DeferredReply:
        """Return the reply to a close: that the written bytes are durable and visible, or the error."""
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
        """Confirm the waiting closes until none is left."""
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
            for answer in answers:  # every caller waits for an answer, and other closes for this thread
                answer(error)
