"""What of an archive goes into a dataset: hosts, a publication, a period, types, roles. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from webarcfs.archive.model.errors import BadCondition, UsageError
from webarcfs.archive.model.metadata import ANY_ROLE, PAGE_ROLE, CommitTag, format_time, from_epoch
from webarcfs.search.query_language import parse_span
from webarcfs.search.words import KINDS, kind_of

_ALL_OF_A_FAMILY = "/*"


class DatasetUnit(StrEnum):
    """What a row stands for."""

    VERSION = "version"
    YEAR = "year"  # a version in a year in which it was captured
    CAPTURE = "capture"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class DatasetTime:
    """The times from `begin` up to, and without, `end`: seconds since 1970. `text` is what was asked for."""

    begin: int
    end: int
    text: str

    def __contains__(self, time: int) -> bool:
        return self.begin <= time < self.end


def year_of(seconds: int) -> int:
    """Return the year of a time (seconds since 1970), in CET, as `--during` means it."""
    return from_epoch(seconds).year


def parse_time_span(text: str) -> DatasetTime:
    """Return the times of a text as `during:` of a search has it: in CET. Raises UsageError."""
    try:
        return DatasetTime(*parse_span(text), text)
    except BadCondition as error:
        raise UsageError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What was asked for. Without `domains`, `publication`, `during` or `types` there is no such limit.

    `role` is that of documents. `errors` and `redirects` say whether these are there, too. `at` is the state that
    snapshots are taken of; None: every snapshot.
    """

    unit: DatasetUnit = DatasetUnit.VERSION
    domains: frozenset[str] = frozenset()
    publication: str = ""
    during: DatasetTime | None = None
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
