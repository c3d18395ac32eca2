"""Rows of lists of records: what a table shows of each without reading it, and which ones a list chooses. Pure."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webarcfs.archive.catalogue.record import Occasion, Record, State
from webarcfs.archive.catalogue.steps import HELD, Progress, Step, progress_of
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import from_epoch, parse_compact_time

#: The states of records that people have to look at: not released, and not put aside.
WAITING = tuple(state for state in State if state in HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record in a list. `documents` and `bytes` are None if not counted; `…_before` are those of the one before.

    `before` is the id of the counted record of the same publication that comes before it, empty without one.
    """

    id: str
    number: int
    publication: str
    state: State
    title: str
    domain: str
    date: datetime
    complete: bool
    has_parts: bool
    is_occasion: bool
    reason: str
    release: str
    closed_for: str
    documents: int | None
    bytes: int | None
    progress: Progress
    before: str = ""
    documents_before: int | None = None
    bytes_before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a list chooses: an empty text, or None, chooses all. `since` is a time in seconds since 1970.

    `words` are words that the record has in its title, domains, publication, signature, provenance, project, occasion
    or number. `waits`: people have to decide. `complete`, `passed`: as the capture and the last check were.
    """

    publication: str = ""
    state: str = ""
    words: str = ""
    year: str = ""
    waits: bool = False
    complete: bool | None = None
    passed: bool | None = None
    since: int = 0

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the statements in sql/catalogue/."""
        words = self.words.casefold().split()[:3]
        begin, end = _year(self.year)
        return {
            "publication": self.publication,
            "state": self.state,
            "waits": int(self.waits),
            "complete": -1 if self.complete is None else int(self.complete),
            "passed": -1 if self.passed is None else int(self.passed),
            "since": max(self.since, begin),
            "until": end,
            **{f"word{at}": words[at - 1] if at <= len(words) else "" for at in (1, 2, 3)},
        }


def _year(text: str) -> tuple[int, int]:
    if not (text.isascii() and text.isdecimal() and len(text) == 4):
        return 0, 1 << 40
    begin = parse_compact_time(f"{text}0101T000000") if int(text) else from_epoch(0)
    end = parse_compact_time(f"{int(text) + 1}0101T000000") if 0 < int(text) < 9999 else from_epoch(1 << 37)
    return int(begin.timestamp()), int(end.timestamp())


def values_of(record: Record) -> dict[str, Any]:
    """Return the columns of a record, for `catalogue/insert_record`."""
    progress = progress_of(record)
    domains = ", ".join(record.domains)
    title = record.title.text
    words = (title, domains, record.publication, record.id, str(record.number), *map(record.text, (2, 3, 4, 5, 12)))
    return {
        "date": int((record.date or _begun(record)).timestamp()),
        "title": title,
        "domain": record.text(12) or domains,
        "complete": int(record.complete),
        "parts": len(record.parts),
        "occasion": int(record.occasion is Occasion.OCCASION),
        "reason": record.text(5) if record.occasion is Occasion.OCCASION else "",
        "release": record.release,
        "documents": _number(record.text(23)),
        "bytes": _number(record.text(22)),
        "waits": int(record.state in HELD),
        "passed": int(progress.passed),
        "progress": _told(progress),
        "words": " ".join(words).casefold(),
    }


def row_of(found: Any) -> RecordRow:
    """Return the row of a line that `catalogue/list_records` found."""
    (number, publication, state, title, domain, date, complete, parts, occasion, reason, release, closed_for,
     documents, size, passed, progress, record_id, before, documents_before, bytes_before) = found  # fmt: skip
    return RecordRow(
        id=record_id, number=number, publication=publication, state=State(state), title=title, domain=domain,
        date=from_epoch(date), complete=bool(complete), has_parts=bool(parts), is_occasion=bool(occasion),
        reason=reason, release=release, closed_for=closed_for, documents=documents, bytes=size,
        progress=_read(progress, State(state), complete=bool(complete), passed=bool(passed)),
        before=before or "", documents_before=documents_before, bytes_before=bytes_before,
    )  # fmt: skip


def _begun(record: Record) -> datetime:
    """Return when a record without parts was made: its id begins with that."""
    with suppress(Damaged):
        return parse_compact_time(record.id.partition("-")[0])
    return record.events[0].at if record.events else from_epoch(0)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _told(progress: Progress) -> str:
    said = {
        "done": sorted(progress.done),
        "fetching": progress.is_fetching,
        "looks": progress.looks_wanted,
        "checkers": sorted(progress.checkers),
        "back": progress.is_taken_back,
    }
    return json.dumps({name: value for name, value in said.items() if value}, ensure_ascii=False)


def _read(text: str, state: State, *, complete: bool, passed: bool) -> Progress:
    said = json.loads(text)
    return Progress(
        state=state,
        done=frozenset(Step(each) for each in said.get("done", ())),
        is_complete=complete,
        is_fetching=bool(said.get("fetching")),
        looks_wanted=bool(said.get("looks")),
        passed=passed,
        checkers=frozenset(said.get("checkers", ())),
        is_taken_back=bool(said.get("back")),
    )
