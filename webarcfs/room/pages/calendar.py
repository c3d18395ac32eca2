"""The versions of a URL, the URLs below a prefix, and the differences of two versions.

`/web/*/<url>` has the versions of a URL; `/web/*/<prefix>*` the URLs below a prefix. The archived URL takes all that
follows, its query included. So `/urls?prefix=…&after=…` has the further pages of such a list, and
`/versions?url=…&year=…&changes=1&page=…` a part of the other one.

`/diff/<t1>..<t2>/<url>` compares two versions of a page by their visible text, `/side/<t1>..<t2>/<url>` shows the same
in two columns; `/diff?url=…&old=…&new=…` leads there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, groupby
from types import SimpleNamespace
from urllib.parse import urlencode

from starlette.responses import Response

from webarcfs.access.access_rules import Absent, Answer, Blocked, Closed
from webarcfs.access.visible_captures import UrlHistory, VisibleCapture, VisibleState
from webarcfs.archive.index.database import NEVER, Span
from webarcfs.archive.model.errors import NotFound, TookTooLong, UsageError
from webarcfs.archive.model.metadata import format_time, from_epoch
from webarcfs.archive.model.urls import canonical, parse, surt
from webarcfs.archive.system import clocks
from webarcfs.content import visible_lines
from webarcfs.content.visible_lines import ChangedLines, blocks
from webarcfs.room.pages import lists
from webarcfs.room.replay import memento
from webarcfs.room.replay.replay_url import (
    MapFormat,
    Modifier,
    Refused,
    archived_url,
    at_other_host,
    calendar_path,
    diff_path,
    digits_of,
    prefix_path,
    replay_path,
    seconds_of,
    span_end,
    timemap_path,
)
from webarcfs.room.views import CalendarEntry, Change, DiffLine, Line, Marked, PageLink, Pages
from webarcfs.room.visit import Services, Visit
from webarcfs.web import limits
from webarcfs.web.language import msgid
from webarcfs.web.table_files import TableFile

# == calendar =========================================================================================================


def versions(visit: Visit, _: Mapping[str, str]) -> Response:
    """Lead from a form to the calendar of a URL, or show a part of its list. Raises UsageError.

    The calendar's own path ends with the archived URL and its query, so what is chosen of the list is asked for here:
    `year`, `changes` and `page`.
    """
    parameters = visit.parameters()
    url = archived_url(visit.parameter("url").encode("utf-8", "replace"))
    if isinstance(url, Refused):
        raise UsageError(url.reason)
    if parameters.keys() <= {"url", "lang"}:
        return visit.led(calendar_path(url))
    year = visit.parameter("year")
    is_year = year.isascii() and year.isdecimal() and len(year) == _DIGITS_OF_YEAR
    return calendar(visit, url, int(year) if is_year else None)


_DIGITS_OF_YEAR = 4


def calendar(visit: Visit, url: str, year: int | None) -> Response:
    """Show the snapshots of a URL, those of a year where one is given. One that readers see nothing of has none."""
    history = visit.services.captures.history(url)
    entries = list(_entries(visit.services, history))
    answer: Answer = Absent()
    if not any(entry.href for entry in entries):
        entries, answer = [], _why_none(visit.services, history)
    counts = Counter(entry.date.year for entry in entries)
    shown = [entry for entry in entries if year is None or entry.date.year == year]
    changes = [entry for entry in shown if entry.change is not Change.SAME]
    is_narrowed = visit.request.scope["path"] == _LIST and visit.parameter("changes") == "1"
    rows = changes if is_narrowed else shown
    pages, part = _pages_of(visit, url, year, len(rows), is_narrowed=is_narrowed)
    return visit.page(
        "calendar.html",
        url=url,
        entries=shown,
        rows=rows[::-1][part],
        pages=pages if len(rows) > limits.CALENDAR_ROWS else None,
        choices=[
            (PageLink(_list_path(url, year), msgid("all snapshots"), not is_narrowed), len(shown)),
            (PageLink(_list_path(url, year, changes="1"), msgid("changes only"), is_narrowed), len(changes)),
        ]
        if len(changes) < len(shown)
        else [],
        most_is_same=not is_narrowed and 0 < 2 * len(changes) < len(shown),
        counts_by_year=[
            (PageLink(calendar_path(url, at), str(at), at == year), count) for at, count in sorted(counts.items())
        ],
        year=year,
        versions=sum(not capture.is_revisit for capture in history.captures),
        timemaps=[PageLink(timemap_path(kind, url), kind) for kind in MapFormat],
        others=list(variants(visit.services, url)),
        prefix=_folder_with_pages(visit, url),
        blocked=answer if isinstance(answer, Blocked) else None,
        closed_until=answer.until if isinstance(answer, Closed) else None,
        save=lists.save_link(visit.services, url) if not entries and isinstance(answer, Absent) else None,
    )


def _why_none(services: Services, history: UrlHistory) -> Answer:
    """Return why a URL has no version that a reader may see: as its page says it now, else as any of its times does."""
    answers = [services.captures.state(history.url, limits.NOW).answer]
    answers += [state.answer for state in reversed(history.states)]
    told = (answer for answer in answers if isinstance(answer, Blocked | Closed))
    return next(told, Absent())


#: The path of a part of the list of a calendar.
_LIST = "/versions"


def _list_path(url: str, year: int | None, **parameters: str | int | None) -> str:
    if not any(parameters.values()):
        return calendar_path(url, year)
    chosen = {"url": url, "year": year, **parameters}
    return f"{_LIST}?{urlencode({name: value for name, value in chosen.items() if value})}"


def _pages_of(visit: Visit, url: str, year: int | None, total: int, *, is_narrowed: bool) -> tuple[Pages, slice]:
    """Return the way through a list, and the part of it that is asked for."""
    # The query of the calendar's own path is that of the archived URL.
    asked = lists.page_of(visit) if visit.request.scope["path"] == _LIST else 1
    changes = "1" if is_narrowed else None

    def to(number: int) -> str:
        return _list_path(url, year, changes=changes, page=number if number > 1 else None)

    return lists.way_through(asked, total, limits.CALENDAR_ROWS, to)


def _folder_with_pages(visit: Visit, url: str) -> str:
    """Return the list of pages below the folder of a URL; empty if there are none."""
    folder = f"{url.partition('?')[0].rpartition('/')[0]}/"
    return prefix_path(folder) if has_some_below(visit, folder) else ""


def _entries(services: Services, history: UrlHistory) -> Iterator[CalendarEntry]:
    """Yield what each snapshot did to a URL. What is shown again is compared with what was shown last."""
    before: Change | None = None
    last: VisibleState | None = None
    for state in history.states:
        clocks.check()
        diff = ""
        if state.capture is None:
            change = Change.WITHHELD if isinstance(state.answer, Blocked | Closed) else Change.GONE
            if change is before or (before is None and change is Change.GONE):
                continue
            last = last if change is Change.WITHHELD else None
        elif last is None:
            change, last = Change.NEW, state
        else:
            change, diff = _compared(services, history.url, last, state)
            last = state
        yield entry(history.url, state, change, diff)
        before = change


def _compared(services: Services, url: str, before: VisibleState, state: VisibleState) -> tuple[Change, str]:
    """Return what became of a URL between two states that show it, and where the difference is."""
    known, now = before.capture, state.capture
    assert known is not None
    assert now is not None
    same = (known.blob, known.target, known.status) == (now.blob, now.target, now.status)
    if same and (now.is_redirect or memento.has_same_text(services, known, now)):
        return Change.SAME, ""
    has_texts = not now.is_redirect and not known.is_redirect
    return Change.CHANGED, diff_path(before.seq, state.seq, url) if has_texts else ""


def entry(url: str, state: VisibleState, change: Change, diff: str = "") -> CalendarEntry:
    """Return the entry of a URL in a state."""
    capture, digits = state.capture, digits_of(state.seq)
    return CalendarEntry(
        href="" if capture is None else replay_path(digits, Modifier.FRAME, url),
        date=from_epoch(state.seq),
        change=change,
        status=0 if capture is None else capture.status,
        size=0 if capture is None else capture.size,
        mime_type="" if capture is None else capture.mime_type,
        target="" if capture is None else capture.target,
        diff=diff,
        digits="" if capture is None or capture.is_redirect else digits,
    )


def variants(services: Services, url: str) -> Iterator[PageLink]:
    """Yield the same URL with and without www., as far as the archive shows it."""
    other = at_other_host(url)
    if other is not None and services.captures.history(other).captures:
        yield PageLink(calendar_path(other), other)


# -- below a prefix ----------------------------------------------------------------------------------------------------


def urls(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show a further page of the URLs below a prefix. Raises UsageError, UrlRefused."""
    prefix = archived_url(visit.parameter("prefix").encode("utf-8", "replace"), is_prefix=True)
    if isinstance(prefix, Refused):
        raise UsageError(prefix.reason)
    return below(visit, prefix, visit.parameter("after"))


def taken_urls(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return all URLs below a prefix as a file. Raises UsageError, UrlRefused, TooMany."""
    prefix = archived_url(visit.parameter("prefix").encode("utf-8", "replace"), is_prefix=True)
    if isinstance(prefix, Refused):
        raise UsageError(prefix.reason)
    low = _low(prefix)
    captures = visit.services.captures.below(Span(low, f"{low}\U0010ffff", None))
    rows = (_prefix_row(list(group)) for _, group in groupby(captures, key=lambda capture: capture.surt))
    columns = ("url", "type", "versions", "first", "last", "is_present")
    cells = (
        (row.url, row.mime_type, row.versions, format_time(row.first), format_time(row.last), row.is_present)
        for row in rows
    )
    return visit.table(TableFile(columns, cells), path_params["kind"])


def _low(prefix: str) -> str:
    """Return the first of the keys of the URLs below a prefix."""
    url = canonical(prefix)
    low = surt(url)
    if not prefix.endswith("/") and low.endswith("/") and url != prefix and parse(url).path == "/":
        return low.removesuffix("/")
    return low


def below(visit: Visit, prefix: str, after_key: str = "") -> Response:
    """Show a page of the URLs below a prefix, behind the key `after_key`. Raises UrlRefused."""
    low = _low(prefix)
    after = (after_key, "\U0010ffff", "", NEVER) if after_key.startswith(low) else None
    rows: list[SimpleNamespace] = []
    last = following = ""
    captures = visit.services.captures.below(Span(low, f"{low}\U0010ffff", after))
    for key, group in groupby(captures, key=lambda capture: capture.surt):
        if len(rows) == lists.ROWS:
            following = f"/urls?{urlencode({'prefix': prefix, 'after': last})}"
            break
        rows.append(_prefix_row(list(group)))
        last = key
    return visit.page("prefix.html", prefix=prefix, rows=rows, following=following)


#: Seconds in which it is looked whether there is something below a prefix.
_LOOK_SECONDS = 1.0


def has_some_below(visit: Visit, prefix: str) -> bool:
    """Return whether readers see something below a folder; not, if that cannot be told soon."""
    low = surt(prefix)
    with suppress(TookTooLong), clocks.under(clocks.Deadline(_LOOK_SECONDS)):
        return next(visit.services.captures.below(Span(low, f"{low}\U0010ffff", None)), None) is not None
    return False


def _prefix_row(captures: list[VisibleCapture]) -> SimpleNamespace:
    """Return a URL, how many versions it has, and from when to when."""
    newest = max(captures, key=lambda capture: capture.since)
    url = min(captures, key=lambda capture: (capture.is_redirect, -capture.since)).url
    return SimpleNamespace(
        href=calendar_path(url),
        url=url,
        mime_type=newest.mime_type,
        versions=len(captures),
        first=from_epoch(min(capture.since for capture in captures)),
        last=from_epoch(max(capture.last for capture in captures)),
        is_present=any(capture.until == NEVER for capture in captures),
    )


# == differences ======================================================================================================


_NO_DIGIT = re.compile(r"[^0-9]+")


def chosen(visit: Visit, _: Mapping[str, str]) -> Response:
    """Lead from two versions that were chosen in a form to what differs, the earlier one first. Raises UsageError."""
    url = archived_url(visit.parameter("url").encode("utf-8", "replace"))
    if isinstance(url, Refused):
        raise UsageError(url.reason)
    times = [_NO_DIGIT.sub("", visit.parameter(name)) for name in ("old", "new")]
    if not all(1 <= len(digits) <= len("YYYYMMDDhhmmss") for digits in times):
        raise UsageError("two versions are compared: choose the one before and the one after")
    old, new = sorted(seconds_of(span_end(digits)) for digits in times)
    return visit.led(diff_path(old, new, url))


#: Lines around a difference that are shown.
_AROUND = 3
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
#: Longest lines whose words are compared.
_LONGEST_LINE = 2_000
#: Lines so similar are a line that changed.
_SIMILAR = 0.5


@dataclass(slots=True)
class WordBudget:
    """How many words of changed lines may still be compared. `is_coarse`: some lines were marked as a whole."""

    left: int = limits.DIFF_WORDS
    is_coarse: bool = False


def differences(visit: Visit, old: int, new: int, url: str, *, side_by_side: bool) -> Response:
    """Show what changed in the text of a page between two times: side by side, or one line below the other.

    `is_cut` says that only the beginning was compared, `is_coarse` that some lines are marked as a whole. Raises
    NotFound where one of the times does not show the page.
    """
    services = visit.services
    first, second = (_version(services, url, seconds) for seconds in (old, new))
    a, b = first.capture, second.capture
    assert a is not None
    assert b is not None
    domain = memento.locate(services, url, old).domain
    bodies = [_body(services, domain, capture.blob, capture.size) for capture in (a, b)]
    shown = [_shown(services, domain, capture) for capture in (a, b)]
    is_same = a.blob == b.blob and shown[0] == shown[1]
    is_text = all(text for text, _ in shown) or not any(visible_lines.is_binary(body) for body, _ in bodies)
    lines: list[DiffLine] = []
    is_cut = any(cut for _, cut in (*bodies, *shown))
    budget = WordBudget()
    if is_text and not is_same:
        texts = visible_lines.compared_lines((bodies[0][0], bodies[1][0]), (shown[0][0], shown[1][0]))
        is_cut = is_cut or any(len(text) > limits.DIFF_LINES for text in texts)
        old_lines, new_lines = (text[: limits.DIFF_LINES] for text in texts)
        lines = list(compared(old_lines, new_lines, budget))
    return visit.page(
        "diff.html",
        url=url,
        old=entry(url, first, Change.SAME),
        new=entry(url, second, Change.SAME if is_same else Change.CHANGED),
        lines=lines,
        is_side_by_side=side_by_side,
        other_view=diff_path(first.seq, second.seq, url, side_by_side=not side_by_side),
        is_text=is_text,
        is_same=is_same,
        is_cut=is_cut,
        is_coarse=budget.is_coarse,
        calendar=calendar_path(url),
        old_frame=replay_path(digits_of(first.seq), Modifier.FRAME, url),
        new_frame=replay_path(digits_of(second.seq), Modifier.FRAME, url),
    )


def _version(services: Services, url: str, seconds: int) -> VisibleState:
    located = memento.locate(services, url, seconds)
    if located.state.capture is None or located.state.capture.is_redirect:
        raise NotFound("there is no page to compare at that time")
    return located.state


def _body(services: Services, domain: str, blob: str, size: int) -> tuple[bytes, bool]:
    """Return the beginning of a body, and whether it has more."""
    pieces = services.shared.body_in_pieces(domain, blob, size, 0, min(size, limits.DIFF_BYTES))
    return b"".join(pieces), size > limits.DIFF_BYTES


def _shown(services: Services, domain: str, capture: VisibleCapture) -> tuple[str, bool]:
    """Return the beginning of the text that a browser showed, and whether it has more; an empty text without one."""
    blob = memento.shown_text_of(services, capture)
    if not blob:
        return "", False
    body, is_cut = _body(services, domain, blob, services.shared.repository(domain).size(blob))
    return body.decode("utf-8", "replace"), is_cut


# -- lines -------------------------------------------------------------------------------------------------------------


def compared(old: Sequence[str], new: Sequence[str], budget: WordBudget) -> Iterator[DiffLine]:
    """Yield the lines that differ, with some around them, and marks on the words that differ; none if none differs."""
    line_blocks = list(blocks(old, new))
    if all(block.is_equal for block in line_blocks):
        return
    for number, block in enumerate(line_blocks):
        if block.is_equal:
            same = old[block.old : block.old_end]
            yield from _same(same, is_first=number == 0, is_last=number == len(line_blocks) - 1)
        else:
            yield from _changed(old[block.old : block.old_end], new[block.new : block.new_end], budget)


def _same(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[DiffLine]:
    before = 0 if is_first else _AROUND
    after = 0 if is_last else _AROUND
    if len(lines) <= before + after + 1:
        yield from (DiffLine(Line.SAME, Marked(line), Marked(line)) for line in lines)
        return
    yield from (DiffLine(Line.SAME, Marked(line), Marked(line)) for line in lines[:before])
    yield DiffLine(Line.SKIPPED, None, None, len(lines) - before - after)
    yield from (DiffLine(Line.SAME, Marked(line), Marked(line)) for line in lines[len(lines) - after :])


def _changed(old: Sequence[str], new: Sequence[str], budget: WordBudget) -> Iterator[DiffLine]:
    both = min(len(old), len(new))
    for a, b in zip(old, new, strict=False):
        left, right = _words(a, b, budget)
        yield DiffLine(Line.REMOVED, left, right)
    yield from (DiffLine(Line.REMOVED, Marked(line), None) for line in old[both:])
    yield from (DiffLine(Line.ADDED, None, Marked(line)) for line in new[both:])


def _words(a: str, b: str, budget: WordBudget) -> tuple[Marked, Marked]:
    """Return two lines with marks on their words that differ; all of both where they have little in common."""
    whole = Marked(a, ((0, len(a)),) if a else ()), Marked(b, ((0, len(b)),) if b else ())
    if max(len(a), len(b)) > _LONGEST_LINE or budget.left <= 0:
        budget.is_coarse = True
        return whole
    old, new = (_WORDS.findall(line) for line in (a, b))
    budget.left -= len(old) + len(new)
    word_blocks = list(blocks(old, new))
    same = sum(block.old_end - block.old for block in word_blocks if block.is_equal)
    if 2 * same < _SIMILAR * (len(old) + len(new)):
        return whole
    changed = [block for block in word_blocks if not block.is_equal]
    return Marked(a, _marks(old, changed, is_old=True)), Marked(b, _marks(new, changed, is_old=False))


def _marks(words: Sequence[str], changed: Sequence[ChangedLines], *, is_old: bool) -> tuple[tuple[int, int], ...]:
    """Return where the changed words of a line begin and end, in characters."""
    places = [0, *accumulate(map(len, words))]
    spans = ((block.old, block.old_end) if is_old else (block.new, block.new_end) for block in changed)
    return tuple((places[begin], places[end]) for begin, end in spans if end > begin)
