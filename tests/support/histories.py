"""Histories of a domain for tests of the gate: snapshots of several publications, their records, and what readers see.

`History.model` says, without looking at git or databases, what a reader may see: the rules as they are written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st

from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.model.metadata import CET

DOMAIN = "www.example.org"
FIRST = datetime(2020, 1, 1, tzinfo=CET)
#: The reader's now: between the closures' ends.
NOW = datetime(2020, 2, 1, tzinfo=CET)
PATHS = ("a", "b", "b/c", "d")
#: What a record may say: its state (None: no record), whether git says held, and its closure.
STATES: tuple[RecordState | None, ...] = (
    RecordState.RELEASED, RecordState.RELEASED, RecordState.RELEASED, RecordState.COUNTED,
    RecordState.REJECTED, RecordState.CHECKED, RecordState.OPEN, None,
)  # fmt: skip
CLOSURES = ("", "", "", "1 day", "1 year", "30 years")


@dataclass(frozen=True)
class Step:
    """A snapshot: the pages that a publication found, path → body; and what its record says."""

    publication: str
    pages: Mapping[str, str]
    state: RecordState | None = RecordState.RELEASED
    held: bool = False
    closed_for: str = ""


@dataclass
class History:
    """What the steps make of a domain: for each, the whole state and what its publication saw."""

    steps: Sequence[Step]
    states: list[dict[str, str]] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        now: dict[str, str] = {}
        by_publication: dict[str, dict[str, str]] = {}
        for step in self.steps:
            before = by_publication.get(step.publication, {})
            others = set().union(*(found for name, found in by_publication.items() if name != step.publication), ())
            gone = before.keys() - step.pages.keys() - others
            now = {path: body for path, body in now.items() if path not in gone} | step.pages
            by_publication[step.publication] = dict(step.pages)
            self.states.append(dict(now))
            self.seen.append(dict(step.pages))

    def time(self, number: int) -> datetime:
        """The time of a snapshot, by its number: a day each."""
        return FIRST + timedelta(days=number)

    def seq(self, number: int) -> int:
        """Its time in seconds."""
        return int(self.time(number).timestamp())

    def is_open(self, number: int) -> bool:
        """Whether readers see a snapshot: R2, R3, R5."""
        step = self.steps[number]
        if step.state is None or step.state is RecordState.OPEN:
            return not step.held
        if step.state is not RecordState.RELEASED:
            return False
        days = {"": 0, "1 day": 1, "1 year": 366, "30 years": 11_000}[step.closed_for]
        return self.time(number) + timedelta(days=days) <= NOW

    def span(self, number: int, path: str) -> range:
        """The snapshots that contain the version of a page that is there in one."""
        body = self.states[number][path]
        first = last = number
        while first and self.states[first - 1].get(path) == body:
            first -= 1
        while last + 1 < len(self.states) and self.states[last + 1].get(path) == body:
            last += 1
        return range(first, last + 1)

    def is_visible(self, number: int, path: str) -> bool:
        """Whether some open snapshot contains this version of a page, as its publication saw it: R5."""
        body = self.states[number][path]
        return any(self.is_open(each) and self.seen[each].get(path) == body for each in self.span(number, path))

    def at(self, number: int) -> dict[str, str]:
        """What a reader sees at the time of a snapshot: the newest open one of each publication, the newest first: R6.

        Where nothing is hidden, that is the domain's own state.
        """
        if all(self.is_open(each) for each in range(len(self.steps))):
            return self.states[number]
        newest: dict[str, int] = {}
        for each in range(number + 1):
            if self.is_open(each):
                newest[self.steps[each].publication] = each
        found: dict[str, str] = {}
        for each in sorted(newest.values()):
            found |= self.seen[each]
        return found


def _pages() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(PATHS), st.sampled_from(["1", "2"]), max_size=len(PATHS))


STEPS = st.builds(
    Step,
    st.sampled_from(["p", "p", "q"]),
    _pages(),
    st.sampled_from(STATES),
    st.booleans(),
    st.sampled_from(CLOSURES),
)
HISTORIES = st.lists(STEPS, min_size=1, max_size=6).map(History)
