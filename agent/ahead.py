"""Takes documents into git while others are still being fetched: a capture waits for wget most of its time.

In the same thread, a few milliseconds at a time. Nothing of it is visible until the capture is complete and the
publication begins, and nothing depends on it: whatever goes wrong here, all is thrown away, and the pipeline does it
once more. It keeps to what is certain by then: a document that may yet turn out to share its ARC with another waits.

Only where requests have no pause between them, since other jobs cannot publish on the domain meanwhile; and for one
domain of a job, which is published first, so that a job that holds a domain never waits for another.
"""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType

from agent.document import Document
from agent.job import Job
from agent.pipeline import begin, drawn, published_before
from agent.run import Run
from agent.stages.publish import Publisher
from webarcfs.archive import locks
from webarcfs.archive.errors import WebarcError

_log = logging.getLogger(__name__)
#: A domain with fewer URLs is done in no time afterwards.
LEAST = 1000
_SLICE = 0.005  # seconds
Work = tuple[Run, Publisher]


class Ahead:
    """What is done of a job's largest domain while its capture goes on. A context manager."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._batches: dict[str, deque[int]] = defaultdict(deque)
        self._urls: dict[str, int] = defaultdict(int)
        self._domain = ""
        self._work: Work | None = None
        self._flow: Iterator[Document] | None = None
        self._held = ExitStack()
        self._over = job.settings.wait > 0
        self._spent = 0.0
        self._seconds: dict[str, float] = {}

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Give the domain back; what was not published is thrown away."""
        self._over, self._work, self._flow = True, None, None
        self._batches.clear()
        self._held.close()

    # -- while the capture goes on -----------------------------------------------------------------------------------

    def read(self, domain: str, batch: int, urls: int) -> None:
        """A batch was read: what it gave is in the frontier."""
        if self._over or self._domain not in ("", domain):
            return
        self._batches[domain].append(batch)
        self._urls[domain] += urls
        if self._work is None and self._urls[domain] >= LEAST:
            self._attempt(lambda: self._begin(domain))

    def work(self) -> bool:
        """Work for a few milliseconds; whether there may be more to do."""
        return self._work is not None and not self._job.stop.is_set() and self._attempt(self._slice)

    def _attempt(self, what: Callable[[], bool]) -> bool:
        """Do it; an error ends all work ahead. The pipeline will meet it again, and knows what it means."""
        begun = time.perf_counter()
        try:
            return what()
        except (WebarcError, OSError) as error:
            _log.info("nothing of %s is archived ahead: %s", self._domain, error)
            self.end()
            return False
        finally:
            self._spent += time.perf_counter() - begun

    def _begin(self, domain: str) -> bool:
        lock = locks.try_exclusive(self._job.archive.publishing_lock(domain))
        if lock is None:
            self._over = True  # somebody else publishes there
            return False
        self._held.callback(os.close, lock)
        self._domain = domain
        run = begin(self._job, domain, complete=False)
        if run is None:  # no document yet
            self._held.close()
            self._domain = ""
            return False
        if run.older or published_before(run) is not None:
            self.end()
            return False
        self._work = run, self._held.enter_context(Publisher(run))
        return True

    def _slice(self) -> bool:
        until = time.perf_counter() + _SLICE
        while self._step():
            if time.perf_counter() > until:
                return True
        return False

    def _step(self) -> bool:
        """One document further; False where there is none for now."""
        assert self._work is not None
        run, publisher = self._work
        if self._flow is None:
            if not self._batches[self._domain]:
                return False
            run.batch = self._batches[self._domain].popleft()
            self._flow = drawn(run, publisher.take, self._seconds)
        document = next(self._flow, None)
        if document is not None:
            document.body.close()
            return True
        run.ahead.add(run.batch)
        run.batch, self._flow = 0, None
        return True

    # -- afterwards --------------------------------------------------------------------------------------------------

    def account(self, seconds: dict[str, float]) -> None:
        """Put what was spent here on the accounts of its stages, where it was on the capture's."""
        if "capture" in seconds:
            seconds["capture"] -= self._spent
        for stage, spent in self._seconds.items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
        self._spent, self._seconds = 0.0, {}

    def first(self, domains: list[str]) -> list[str]:
        """`domains`, the one that is held here before all others."""
        return sorted(domains, key=lambda domain: domain != self._domain)

    def begun(self, domain: str, complete: bool) -> Work | None:
        """What was done of a domain, to be gone on with; None where nothing was."""
        if self._work is None or domain != self._domain:
            return None
        if not self._attempt(self._finish_batch):
            return None
        run = self._work[0]
        if run.is_spoilt():
            _log.info("%s is archived once more: two of its URLs share an ARC", domain)
            self.end()
            return None
        run.complete = complete
        return self._work

    def _finish_batch(self) -> bool:
        while self._flow is not None:
            self._step()
        return True
