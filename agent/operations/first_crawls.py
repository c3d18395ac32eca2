"""When the first crawl of a new publication begins, and what the publication is called where nobody says it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from itertools import count

from agent.service import agent_status
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import now
from webarcfs.archive.model.urls import domain_of

#: Until the first crawl, so that who added a publication can still change it.
_BEFORE_THE_FIRST = timedelta(minutes=1)


def first_start(archive: Archive) -> datetime:
    """Return when a new publication starts about which nobody says more: a whole minute, from which intervals count.

    While an agent runs it is one to two minutes ahead (`scheduler.EARLY`); else it is now, and the first crawl begins
    with the agent.
    """
    at = now()
    minute = at.replace(second=0, microsecond=0)
    if agent_status.running(archive) is None:
        return minute
    return (at + _BEFORE_THE_FIRST).replace(second=0, microsecond=0) + timedelta(minutes=1)


def propose_name(urls: Iterable[str], taken: Collection[str]) -> str:
    """Return a name for a publication, after the host of its first URL; empty where that makes none."""
    for url in urls:
        try:
            name = validators.name(domain_of(url).removeprefix("www.").replace(":", "-"))
        except (UrlRefused, ValueError):
            return ""
        numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
        return next(candidate for candidate in numbered if candidate not in taken)
    return ""
