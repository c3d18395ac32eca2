"""Threads that answer what takes long: closes wait for the journal, and for the kernel to drop what is old; conditions
take as long as they take.

A request thread that waited for the kernel would wait for itself (the kernel waits until requests in that folder are
answered), and so would a worker that waits for the kernel while a rename, whose folder the kernel holds until it is
answered, stands in line behind it. Renames therefore have a thread of their own, which tells the kernel nothing before
it has answered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

#: Sends an answer; may be called by any thread, once.
Answer = Callable[[bytes | int | BaseException], None]

#: Closes under way at a time: one of each large file, and one for all others of a domain (close_batches.py).
THREADS = 16
#: Requests that wait for an answer to a condition; most of them wait for their turn (query_answers.py).
ASKING = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """An answer that comes later: `start` returns at once."""

    start: Callable[[Answer], None]


class Workers:
    """The threads of one mount, started when there is something to do."""

    def __init__(self) -> None:
        self._closes = ThreadPoolExecutor(THREADS, "closes")
        self._renames = ThreadPoolExecutor(1, "renames")
        self._asking = ThreadPoolExecutor(ASKING, "asking")

    def close(self, work: Callable[[], None]) -> DeferredReply:
        """The answer is that `work` was done, or what it raised."""
        return DeferredReply(lambda answer: self._submit(self._closes, answer, work))

    def ask(self, work: Callable[[], bytes]) -> DeferredReply:
        """The answer is what `work` returns, or raises. It must wait for nothing that the kernel is told."""
        return DeferredReply(lambda answer: self._submit(self._asking, answer, work))

    def rename(self, work: Callable[[], Callable[[], None]]) -> DeferredReply:
        """The same for what holds a folder in the kernel; what `work` returns is done when it is answered."""
        return DeferredReply(lambda answer: self._submit(self._renames, answer, lambda: self._renamed(work)))

    def _renamed(self, work: Callable[[], Callable[[], None]]) -> None:
        self._closes.submit(_safely, work())

    def release(self, work: Callable[[], None]) -> None:
        """Work that nobody waits for."""
        self._closes.submit(_safely, work)

    def stop(self) -> None:
        """Finish all of it; who still asks is told that nobody answers."""
        self._asking.shutdown(cancel_futures=True)
        self._renames.shutdown()
        self._closes.shutdown()

    @staticmethod
    def _submit(executor: ThreadPoolExecutor, answer: Answer, work: Callable[[], bytes | None]) -> None:
        executor.submit(_safely, lambda: _answered(answer, work))


def _answered(answer: Answer, work: Callable[[], bytes | None]) -> None:
    try:
        found = work()
    except BaseException as error:
        answer(error)
        return
    answer(0 if found is None else found)


def _safely(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        _log.exception("failed unexpectedly")
