"""Threads for slow answers: closes wait for the journal and for invalidations by the kernel; conditions take any time.

A request thread must not wait for an invalidation: the kernel holds it back until the requests in that folder are
answered. Nor may a worker, if a rename is queued behind it: the kernel holds a rename's folder until its answer.
Renames therefore have a thread of their own, which notifies the kernel only after the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

#: Sends an answer; any thread may call it, once.
Answer = Callable[[bytes | int | BaseException], None]

#: Concurrent closes: one for each large file, and one for all others of a domain (close_batches.py).
THREADS = 16
#: Requests that wait for the answer to a condition; most of them wait for their turn (query_answers.py).
ASKING = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """An answer that is sent later: `start` returns at once."""

    start: Callable[[Answer], None]


class Workers:
    """The threads of one mount, started on demand."""

    def __init__(self) -> None:
        self._closes = ThreadPoolExecutor(THREADS, "closes")
        self._renames = ThreadPoolExecutor(1, "renames")
        self._asking = ThreadPoolExecutor(ASKING, "asking")

    def close(self, work: Callable[[], None]) -> DeferredReply:
        """Run `work`; the answer is 0, or the exception that it raised."""
        return DeferredReply(lambda answer: self._submit(self._closes, answer, work))

    def ask(self, work: Callable[[], bytes]) -> DeferredReply:
        """Run `work`; the answer is its result or exception. It must not wait for a notification of the kernel."""
        return DeferredReply(lambda answer: self._submit(self._asking, answer, work))

    def rename(self, work: Callable[[], Callable[[], None]]) -> DeferredReply:
        """Run `work`, which holds a folder in the kernel; call its result after the answer."""
        return DeferredReply(lambda answer: self._submit(self._renames, answer, lambda: self._renamed(work)))

    def _renamed(self, work: Callable[[], Callable[[], None]]) -> None:
        self._closes.submit(_safely, work())

    def release(self, work: Callable[[], None]) -> None:
        """Run `work` without an answer."""
        self._closes.submit(_safely, work)

    def stop(self) -> None:
        """Finish all work; conditions that wait for their turn get no answer."""
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
