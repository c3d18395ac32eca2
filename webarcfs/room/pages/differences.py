"""`/diff/<t1>..<t2>/<url>`: two versions of a page, by their visible text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from webarcfs.archive.model.errors import NotFound
from webarcfs.content import visible_lines
from webarcfs.gate.visible_captures import State
from webarcfs.room import limits
from webarcfs.room.memento_views import Change, DiffLine, DiffPage, Line
from webarcfs.room.pages.calendar import entry
from webarcfs.room.replay import states
from webarcfs.room.services import Services
from webarcfs.room.views import Marked
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import Modifier, calendar_path, diff_path, replay_path
from webarcfs.room.wayback.timestamps import digits_of

#: Lines around a difference that are shown.
_AROUND = 3
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
#: Longest lines whose words are compared.
_LONGEST_LINE = 2_000
#: Lines so similar are a line that changed.
_SIMILAR = 0.5


def differences(visit: Visit, old: int, new: int, url: str, *, side_by_side: bool) -> DiffPage:
    """Return what changed in a page between two times. Raises NotFound where one of them does not show it."""
    services = visit.services
    first, second = (_version(services, url, seconds) for seconds in (old, new))
    a, b = first.capture, second.capture
    assert a is not None
    assert b is not None
    domain = states.locate(services, url, old).domain
    bodies = [_body(services, domain, each.blob, each.size) for each in (a, b)]
    is_text = not any(visible_lines.is_binary(body) for body, _ in bodies)
    lines: tuple[DiffLine, ...] = ()
    if is_text and a.blob != b.blob:
        texts = [visible_lines.lines(body)[: limits.DIFF_LINES + 1] for body, _ in bodies]
        lines = tuple(compared(*texts))
    return DiffPage(
        url=url,
        old=entry(url, first, Change.SAME),
        new=entry(url, second, Change.SAME if a.blob == b.blob else Change.CHANGED),
        lines=lines,
        is_side_by_side=side_by_side,
        other_view=f"{diff_path(first.seq, second.seq, url)}",
        is_text=is_text,
        is_same=a.blob == b.blob,
        is_cut=any(cut for _, cut in bodies) or len(lines) > limits.DIFF_LINES,
        calendar=calendar_path(url),
        old_frame=replay_path(digits_of(first.seq), Modifier.FRAME, url),
        new_frame=replay_path(digits_of(second.seq), Modifier.FRAME, url),
    )


def _version(services: Services, url: str, seconds: int) -> State:
    located = states.locate(services, url, seconds)
    if located.state.capture is None or located.state.capture.is_redirect:
        raise NotFound("there is no page to compare at that time")
    return located.state


def _body(services: Services, domain: str, blob: str, size: int) -> tuple[bytes, bool]:
    """Return the beginning of a body, and whether it has more."""
    pieces = services.shared.body_in_pieces(domain, blob, size, 0, min(size, limits.DIFF_BYTES))
    return b"".join(pieces), size > limits.DIFF_BYTES


# -- lines -------------------------------------------------------------------------------------------------------------


def compared(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """Yield the lines that differ, with some around them, and marks on the words that differ."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) > limits.DIFF_LINES // 10)
    blocks = matcher.get_opcodes()
    for number, (what, i1, i2, j1, j2) in enumerate(blocks):
        if what == "equal":
            yield from _same(old[i1:i2], is_first=number == 0, is_last=number == len(blocks) - 1)
        else:
            yield from _changed(old[i1:i2], new[j1:j2])


def _same(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[DiffLine]:
    before = 0 if is_first else _AROUND
    after = 0 if is_last else _AROUND
    if len(lines) <= before + after + 1:
        yield from (DiffLine(Line.SAME, Marked(each), Marked(each)) for each in lines)
        return
    yield from (DiffLine(Line.SAME, Marked(each), Marked(each)) for each in lines[:before])
    yield DiffLine(Line.SKIPPED, None, None, len(lines) - before - after)
    yield from (DiffLine(Line.SAME, Marked(each), Marked(each)) for each in lines[len(lines) - after :])


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    both = min(len(old), len(new))
    for a, b in zip(old, new, strict=False):
        left, right = _words(a, b)
        yield DiffLine(Line.REMOVED, left, right)
    yield from (DiffLine(Line.REMOVED, Marked(each), None) for each in old[both:])
    yield from (DiffLine(Line.ADDED, None, Marked(each)) for each in new[both:])


def _words(a: str, b: str) -> tuple[Marked, Marked]:
    """Return two lines with marks on their words that differ; all of both where they have little in common."""
    whole = Marked(a, ((0, len(a)),) if a else ()), Marked(b, ((0, len(b)),) if b else ())
    if max(len(a), len(b)) > _LONGEST_LINE:
        return whole
    words = [_WORDS.findall(each) for each in (a, b)]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    if matcher.ratio() < _SIMILAR:
        return whole
    marks: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what != "equal":
            for found, side, begin, end in ((marks[0], words[0], i1, i2), (marks[1], words[1], j1, j2)):
                start = sum(map(len, side[:begin]))
                if end > begin:
                    found.append((start, start + sum(map(len, side[begin:end]))))
    return Marked(a, tuple(marks[0])), Marked(b, tuple(marks[1]))
