"""The orders that a job was given, as pages show them: from its folder while it is open, then from its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from agent.desk.look import words
from agent.desk.views import OrderRow
from agent.jobfolder import jobstate, orders
from agent.system import jsonfile
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import parse_time
from webarcfs.room.look import language as languages


def rows(archive: Archive, job: str, language: str) -> tuple[OrderRow, ...]:
    """Return the orders of a job in their order; none where its report cannot be read."""
    folder = archive.jobs / job
    if folder.is_dir():
        with suppress(Damaged):
            known = jobstate.load(folder)
            return of_open(orders.told(folder), known.orders if known is not None else 0, language)
    with suppress(Damaged, OSError):
        return of_report(jsonfile.read(archive.reports / job / "summary.json") or {}, language)
    return ()


def of_open(given: list[dict[str, Any]], taken: int, language: str) -> tuple[OrderRow, ...]:
    """Return the orders of an open job, which took those up to a number."""
    return tuple(_row(each, language, is_taken=each["number"] <= taken) for each in given)


def of_report(summary: Mapping[str, Any], language: str) -> tuple[OrderRow, ...]:
    """Return the orders that a report tells; older reports have no reasons."""
    return tuple(_row(each, language) for each in _told(summary))


def _told(summary: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    told = summary.get("orders")
    yield from (each for each in told if isinstance(each, dict)) if isinstance(told, list) else ()


def _row(each: Mapping[str, Any], language: str, *, is_taken: bool = True) -> OrderRow:
    word, value = str(each.get("order", "")), str(each.get("value", ""))
    until = _time(value) if word == orders.Word.DEADLINE else None
    return OrderRow(
        what=words.ORDERS.get(word, word),
        value=languages.moment(until, language) if until is not None else value,
        at=_time(str(each.get("at", ""))),
        by=str(each.get("by", "")),
        reason=str(each.get("reason", "")),
        is_taken=is_taken,
    )


def _time(text: str) -> datetime | None:
    with suppress(Damaged):
        return parse_time(text) if text else None
    return None
