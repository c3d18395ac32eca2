"""`python -m tests.kill.victim POINT ARGUMENT…`: webarc-agent, which kills itself with SIGKILL at a chosen point.

A point is `<stage>:<n>` (the n-th document in that stage), the path of a page that is read for its links, or the name
of a step in POINTS. The signal is real, and so is everything up to it: no handler, no clean-up, no buffer is written.
With `worker:` before the point it is the process of one job, as `webarc-agent start` begins them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import agent.crawl.loop
import agent.crawl.wget
import agent.indexing.recovery
import agent.jobs.crawljob
import agent.jobs.publishing
import agent.pipeline.publish
import agent.reports.report
import agent.service.worker
import webarcfs.archive.catalogue.catalogue
from agent.cli import main
from agent.pipeline.domain_run import Document
from agent.pipeline.publish import Publisher
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.sequence import PublicationSlot


def die() -> None:
    """What kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, call: int = 1) -> Callable[[], None]:
    """Die just before the `call`-th call of `owner.name`."""

    def arm() -> None:
        original = getattr(owner, name)
        calls = 0

        def dying(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                die()
            return original(*arguments, **named)

        setattr(owner, name, dying)

    return arm


def after(owner: Any, name: str) -> Callable[[], None]:
    """Die just after the first call of `owner.name`."""

    def arm() -> None:
        original = getattr(owner, name)

        def dying(*arguments: Any, **named: Any) -> None:
            original(*arguments, **named)
            die()

        setattr(owner, name, dying)

    return arm


#: Step → what arms it. In the order in which a crawl passes them.
POINTS: dict[str, Callable[[], None]] = {
    "first-batch-read": before(agent.crawl.loop._Capture, "read", 1),
    "later-batch-read": before(agent.crawl.loop._Capture, "read", 4),
    "captured": before(agent.jobs.publishing, "publish_domain"),
    "documents-stored": before(agent.pipeline.publish, "merge_redirects"),
    "lists-merged": after(agent.pipeline.publish, "merge_redirects"),
    "objects-written": before(Publisher, "_swap"),
    "commit-written": before(Repository, "update_refs", 1),
    "refs-moved": before(PublicationSlot, "publish"),
    "feed-written": after(PublicationSlot, "publish"),
    "before-index": before(agent.jobs.publishing, "catch_up_domain"),
    "in-index": before(agent.indexing.recovery, "index"),
    "before-report": before(agent.reports.report, "write"),
    "in-report": before(agent.reports.report, "sync_tree"),
    "report-written": before(agent.jobs.publishing, "keep_capture"),
    "in-record": before(webarcfs.archive.catalogue.catalogue, "RefUpdate"),
    "record-written": before(agent.reports.report, "remove_job"),
}


def at_page(path: str) -> None:
    """Die whenever this process reads the page at `path` for its links."""
    original = agent.crawl.wget.page_links

    def dying(body: bytes, url: str, *arguments: Any) -> Any:
        if url.endswith(path):
            die()
        return original(body, url, *arguments)

    agent.crawl.wget.page_links = dying


def in_stage(name: str, number: int) -> None:
    """Die on the `number`-th document that comes out of a stage."""

    def wrap(stage: Callable[..., Iterator[Document]]) -> Callable[..., Iterator[Document]]:
        def dying(*arguments: Any) -> Iterator[Document]:
            for count, document in enumerate(stage(*arguments), 1):
                if count == number:
                    die()
                yield document

        return dying

    if name == "publish":
        setattr(Publisher, "publish", wrap(Publisher.publish))  # noqa: B010 # a method is not to be assigned, says mypy
    else:
        stages = tuple((each, wrap(stage) if each == name else stage) for each, stage in agent.jobs.publishing.STAGES)
        agent.jobs.publishing.STAGES = stages


if __name__ == "__main__":
    point = sys.argv.pop(1)
    in_worker, point = point.startswith("worker:"), point.removeprefix("worker:")
    stage, _, number = point.partition(":")
    if point.startswith("/"):
        at_page(point)
    elif number:
        in_stage(stage, int(number))
    else:
        POINTS[point]()
    if in_worker:
        sys.exit(agent.service.worker.main(*sys.argv[1:]))
    main()
