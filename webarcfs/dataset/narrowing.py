"""What of an archive goes into a dataset: hosts, a publication, a period, types, roles. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import ANY_ROLE, PAGE_ROLE, CommitTag, format_time
from webarcfs.search.words import KINDS, kind_of

_END = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_ALL_OF_A_FAMILY = "/*"


class DatasetUnit(StrEnum):
    """What a row stands for."""

    VERSION = "version"
    CAPTURE = "capture"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Period:
    """The times from `begin` up to, and without, `end`: seconds since 1970. `text` is what was asked for."""

    begin: int
    end: int
    text: str

    def __contains__(self, time: int) -> bool:
        return self.begin <= time < self.end


def parse_period(text: str) -> Period:
    """Return the period of `2024`, `2024-03`, `2024-03-05` or `2019..2021`, in UTC. Raises UsageError."""
    begin, dots, end = text.partition("..")
    first, last = _span(begin, text), _span(end if dots else begin, text)
    if first[0] >= last[1]:
        raise UsageError(f"{text!r} ends before it begins")
    return Period(first[0], last[1], text)


def _span(part: str, text: str) -> tuple[int, int]:
    match = _END.fullmatch(part.strip())
    try:
        if match is None:
            raise ValueError(part)
        year, month, day = (None if group is None else int(group) for group in match.groups())
        assert year is not None
        begin = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if day is not None:
            return int(begin.timestamp()), int(begin.timestamp()) + 86_400
        next_year, next_month = (year + 1, 1) if month in (None, 12) else (year, (month or 0) + 1)
        return int(begin.timestamp()), int(datetime(next_year, next_month, 1, tzinfo=UTC).timestamp())
    except ValueError:
        raise UsageError(f"{text!r} is no period: give 2024, 2024-03, 2024-03-05 or 2019..2021") from None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What was asked for. Without `domains`, `publication`, `during` or `types` there is no such limit.

    `role` is that of documents. `errors` and `redirects` say whether these are there, too. `at` is the state that
    snapshots are taken of; None: every snapshot.
    """

    unit: DatasetUnit = DatasetUnit.VERSION
    domains: frozenset[str] = frozenset()
    publication: str = ""
    during: Period | None = None
    types: tuple[str, ...] = ()
    role: str = PAGE_ROLE
    errors: bool = False
    redirects: bool = False
    at: CommitTag | datetime | None = None

    def __post_init__(self) -> None:
        """Raise UsageError for what makes no sense together, or a kind that is none."""
        if self.at is not None and self.unit is not DatasetUnit.SNAPSHOT:
            raise UsageError("--at is of --unit snapshot; --during narrows versions and captures")
        if self.at is not None and self.during is not None:
            raise UsageError("--at is one state and --during is a period; give one")
        for name in self.types:
            if "/" not in name and name not in KINDS:
                raise UsageError(f"{name!r} is no kind or MIME type; kinds are {', '.join(sorted(KINDS))}")

    def fits_type(self, mime_type: str) -> bool:
        """Return whether documents of a MIME type are asked for."""
        return not self.types or _fits(self.types, mime_type)

    def fits_role(self, *, is_resource: bool) -> bool:
        """Return whether documents of a role are asked for."""
        return self.role == ANY_ROLE or is_resource == (self.role != PAGE_ROLE)

    def options(self) -> dict[str, str]:
        """Return what was asked for in words, by option: what differs from the whole archive."""
        at = "" if self.at is None else str(self.at) if isinstance(self.at, CommitTag) else format_time(self.at)
        words = {
            "--unit": str(self.unit),
            "--domain": ", ".join(sorted(self.domains)),
            "--publication": self.publication,
            "--during": self.during.text if self.during is not None else "",
            "--at": at,
            "--type": ", ".join(self.types),
            "--role": self.role,
            "--errors": "yes" if self.errors else "",
            "--redirects": "yes" if self.redirects else "",
        }
        return {name: value for name, value in words.items() if value}


@lru_cache(maxsize=4_096)
def _fits(types: tuple[str, ...], mime_type: str) -> bool:
    return any(
        mime_type.startswith(name[:-1])
        if name.endswith(_ALL_OF_A_FAMILY)
        else name == (mime_type if "/" in name else kind_of(mime_type))
        for name in types
    )
