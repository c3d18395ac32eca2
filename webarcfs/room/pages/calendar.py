"""`/web/*/<url>`: the versions of a URL; `/web/*/<prefix>*`: the URLs below a prefix.

The archived URL takes all that follows, its query included. So `/urls?prefix=…&after=…` has the further pages of such a
list.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from urllib.parse import urlencode

from webarcfs.archive.index.captures import NEVER, Span
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.model.surt import surt
from webarcfs.archive.model.url import canonical, parse
from webarcfs.gate.visible_captures import State, UrlHistory, VisibleCapture
from webarcfs.room import limits
from webarcfs.room.memento_views import CalendarEntry, CalendarPage, Change, PrefixPage, PrefixRow
from webarcfs.room.pages import rows
from webarcfs.room.services import Services
from webarcfs.room.views import Link
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import (
    MapFormat,
    Modifier,
    calendar_path,
    diff_path,
    prefix_path,
    replay_path,
    timemap_path,
)
from webarcfs.room.wayback.timestamps import digits_of
from webarcfs.room.wayback.www_host import at_other_host


def calendar(visit: Visit, url: str, year: int | None) -> CalendarPage:
    """Return the snapshots of a URL, those of a year where one is given. One that readers see nothing of has none."""
    history = visit.services.captures.history(url)
    entries = list(_entries(history))
    counts: dict[int, int] = {}
    for each in entries:
        counts[each.date.year] = counts.get(each.date.year, 0) + 1
    if year is None and len(entries) > limits.CALENDAR_ENTRIES:
        year = max(counts)
    return CalendarPage(
        url=url,
        entries=tuple(each for each in entries if year is None or each.date.year == year),
        years=tuple((Link(calendar_path(url, at), str(at), at == year), count) for at, count in sorted(counts.items())),
        year=year,
        versions=sum(not each.is_revisit for each in history.captures),
        timemaps=tuple(Link(timemap_path(kind, url), kind) for kind in MapFormat),
        others=tuple(variants(visit.services, url)),
        prefix=prefix_path(f"{url.partition('?')[0].rpartition('/')[0]}/"),
    )


def _entries(history: UrlHistory) -> Iterator[CalendarEntry]:
    before: State | None = None
    for state in history.states:
        known = None if before is None else before.capture
        now = state.capture
        if now is None:
            if known is not None:
                yield entry(history.url, state, Change.GONE)
        elif known is None:
            yield entry(history.url, state, Change.NEW)
        else:
            same = (known.blob, known.target, known.status) == (now.blob, now.target, now.status)
            diff = ""
            if not same and before is not None and not now.is_redirect and not known.is_redirect:
                diff = diff_path(before.seq, state.seq, history.url)
            yield entry(history.url, state, Change.SAME if same else Change.CHANGED, diff)
        before = state


def entry(url: str, state: State, change: Change, diff: str = "") -> CalendarEntry:
    """Return the entry of a URL in a state."""
    found = state.capture
    return CalendarEntry(
        href="" if found is None else replay_path(digits_of(state.seq), Modifier.FRAME, url),
        date=from_epoch(state.seq),
        change=change,
        status=0 if found is None else found.status,
        size=0 if found is None else found.size,
        mime_type="" if found is None else found.mime_type,
        target="" if found is None else found.target,
        diff=diff,
    )


def variants(services: Services, url: str) -> Iterator[Link]:
    """Yield the same URL with and without www., as far as the archive shows it."""
    other = at_other_host(url)
    if other is not None and services.captures.history(other).captures:
        yield Link(calendar_path(other), other)


# -- below a prefix ----------------------------------------------------------------------------------------------------


def below(visit: Visit, prefix: str, after_key: str = "") -> PrefixPage:
    """Return a page of the URLs below a prefix, behind the key `after_key`. Raises UrlRefused."""
    url = canonical(prefix)
    low = surt(url)
    if not prefix.endswith("/") and low.endswith("/") and url != prefix and parse(url).path == "/":
        low = low.removesuffix("/")
    key = after_key
    after = (key, "\U0010ffff", "", NEVER) if key.startswith(low) else None
    found: list[PrefixRow] = []
    last = ""
    urls = groupby(visit.services.captures.below(Span(low, f"{low}\U0010ffff", after)), key=lambda each: each.surt)
    for at, group in urls:
        if len(found) == rows.ROWS:
            following = f"/urls?{urlencode({'prefix': prefix, 'after': last})}"
            return PrefixPage(prefix, tuple(found), following, after is None)
        found.append(_prefix_row(list(group)))
        last = at
    return PrefixPage(prefix, tuple(found), "", after is None)


def _prefix_row(captures: list[VisibleCapture]) -> PrefixRow:
    newest = max(captures, key=lambda each: each.since)
    url = min(captures, key=lambda each: (each.is_redirect, -each.since)).url
    return PrefixRow(
        href=calendar_path(url),
        url=url,
        mime_type=newest.mime_type,
        versions=len(captures),
        first=from_epoch(min(each.since for each in captures)),
        last=from_epoch(max(each.last for each in captures)),
        is_present=any(each.until == NEVER for each in captures),
    )
