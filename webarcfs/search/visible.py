"""Filters inside a query: the versions of a state of the archive, and those that a reader may see.

They agree with the gate, for each version, and count what they show. Nothing is indexed anew when a record is released
or a page withheld, since a filter names snapshots and keys of URLs:

- Versions that began in a hidden snapshot are left out of the present; those that it ended are in it.
- A version is hidden for ever if its span lies between two open snapshots; such spans are listed, or given as numbers
  where they are many.
- On a domain whose publications saw only parts of its trees, and some of whose snapshots are hidden, the versions are
  asked one by one, and named.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tantivy import Query

from webarcfs.gate.access_rules import Access, AccessRule, AccessRules, weight
from webarcfs.gate.visibility import Snapshot, Standing
from webarcfs.search.indexed_document import CURRENT, began, ended, span
from webarcfs.search.translation import Translator

#: Snapshots of a run whose spans are listed one by one.
_LISTED = 16
#: Spans of time that are compared; more hidden snapshots are looked up by their marks.
_SPANS = 32
#: States whose hidden snapshots are remembered.
_STATES = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of the archive: the present, that at a time (`seq`, seconds since 1970), or with `ever` all states."""

    seq: int | None = None
    ever: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """The versions of a domain that a reader sees, by their keys in the index, where they are asked one by one."""

    domain: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Late:
    """The hidden snapshots at a state's end, by domain and time, and their spans of time if these say the same."""

    snapshots: tuple[tuple[str, int], ...]
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Between:
    """The hidden snapshots before open ones: marks of the spans of versions, and of long runs domain, begin and end.

    The end is the open snapshot that follows.
    """

    marks: tuple[str, ...]
    runs: tuple[tuple[str, int, int, int], ...]


@dataclass(slots=True)
class Remembered:
    """What is found out about snapshots once, and asked with each search; shared by all that show the same ones."""

    late: dict[tuple[int, tuple[Standing, ...]], Late] = field(default_factory=dict)
    between: dict[tuple[Standing, ...], Between] = field(default_factory=dict)
    #: The times of all snapshots, in order, and the number of snapshots at each.
    times: tuple[list[int], Counter[int]] | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader sees: the snapshots of the domains where something is hidden, and versions by name.

    `others` are the times of the snapshots of all other domains, in order, in seconds since 1970. `shared` are domains
    whose versions are all named. `rules` are those in force for the `reader` at `now`.
    """

    snapshots: Mapping[str, Sequence[Snapshot]] = field(default_factory=dict)
    others: Sequence[int] = ()
    shared: tuple[Named, ...] = ()
    rules: tuple[AccessRule, ...] = ()
    reader: str = ""
    remembered: Remembered = field(default_factory=Remembered, repr=False, compare=False)

    @property
    def is_all(self) -> bool:
        """Whether nothing is hidden."""
        return not self.snapshots and not self.shared and not self.rules


class Filter:
    """Makes the query of a state, for a reader or (without `shown`) for those who may see all."""

    def __init__(self, translator: Translator, shown: Shown | None = None) -> None:
        self._make = translator
        self._shown = shown or Shown()

    def applied(self, query: Query, moment: Moment) -> Query:
        """Return a query of the documents of another one that are in a state and may be seen."""
        shown, make = self._shown, self._make
        seen = self._state(query, moment, (Standing.OPEN,))
        named = self._decided(
            [each for each in shown.rules if each.access is Access.ALLOW and each.user == shown.reader]
        )
        if named is not None and shown.reader:
            closed = self._state(make.all(query, named), moment, (Standing.OPEN, Standing.CLOSED))
            seen = make.any(seen, closed)
        taken = self._decided([each for each in shown.rules if each.access is not Access.ALLOW])
        return seen if taken is None else make.but(seen, taken)

    # -- states ------------------------------------------------------------------------------------------------------

    def _state(self, query: Query, moment: Moment, visible: tuple[Standing, ...]) -> Query:
        make, shared = self._make, self._shown.shared
        found = self._ever(query, visible) if moment.ever else self._at(query, moment.seq, visible)
        if not shared:
            return found
        keys = make.terms("key", [key for each in shared for key in each.keys])
        found = make.but(found, make.terms("domain", [each.domain for each in shared]))
        return make.any(found, make.all(query, keys))

    def _at(self, query: Query, seq: int | None, visible: tuple[Standing, ...]) -> Query:
        make = self._make
        last = CURRENT - 1 if seq is None else seq
        late = self._late(last, visible)
        if late.spans is None:
            marks = [ended(*each) for each in late.snapshots]
            gone = [make.but(make.number("until", None, last), make.terms("mark", marks))]
            hidden = [make.terms("mark", [began(*each) for each in late.snapshots])]
        else:
            lower = [None, *(end + 1 for _, end in late.spans)]
            upper = [*(begin - 1 for begin, _ in late.spans), last]
            gone = [make.number("until", least, most) for least, most in zip(lower, upper, strict=True)]
            hidden = [make.number("since", *each) for each in late.spans]
        if seq is not None:
            query = make.all(query, make.number("since", None, seq))
        return make.but(query, *gone, *hidden)

    def _late(self, last: int, visible: tuple[Standing, ...]) -> Late:
        """Return the hidden snapshots at the end of the state `last`: what ended there is shown, what began not."""
        remembered = self._shown.remembered.late
        known = remembered.get((last, visible))
        if known is not None:
            return known
        late: list[tuple[str, int]] = []
        for domain, snapshots in self._shown.snapshots.items():
            for at in range(bisect_right(snapshots, last, key=_seq) - 1, -1, -1):
                if snapshots[at].standing in visible:
                    break
                late.append((domain, snapshots[at].seq))
        found = Late(tuple(late), self._spans(Counter(seq for _, seq in late)))
        if len(remembered) < _STATES:
            remembered[last, visible] = found
        return found

    def _spans(self, hidden: Counter[int]) -> tuple[tuple[int, int], ...] | None:
        """Return spans of time in which all snapshots of all domains are these hidden ones; None if they are many.

        Numbers are compared faster than marks are looked up: snapshots that wait were mostly made one after the other.
        """
        times, counts = self._times()
        if any(counts[seq] != count for seq, count in hidden.items()):
            return None  # another snapshot was made at the same time
        spans: list[tuple[int, int]] = []
        last = None
        for seq in sorted(hidden):
            place = bisect_left(times, seq)
            if last is not None and place == last + 1:
                spans[-1] = (spans[-1][0], seq)
            elif len(spans) == _SPANS:
                return None
            else:
                spans.append((seq, seq))
            last = place
        return tuple(spans)

    def _times(self) -> tuple[list[int], Counter[int]]:
        remembered = self._shown.remembered
        if remembered.times is None:
            counts = Counter(each.seq for found in self._shown.snapshots.values() for each in found)
            counts.update(self._shown.others)
            remembered.times = sorted(counts), counts
        return remembered.times

    def _ever(self, query: Query, visible: tuple[Standing, ...]) -> Query:
        make = self._make
        late, between = self._late(CURRENT - 1, visible), self._between(visible)
        unwanted = [
            make.all(
                make.term("domain", domain), make.number("since", begin, end), make.number("until", None, following)
            )
            for domain, begin, end, following in between.runs
        ]
        marks = [*between.marks]
        if late.spans is None:
            marks += [began(*each) for each in late.snapshots]
        else:
            unwanted += [make.number("since", *each) for each in late.spans]
        return make.but(query, *([make.terms("mark", marks)] if marks else []), *unwanted)

    def _between(self, visible: tuple[Standing, ...]) -> Between:
        remembered = self._shown.remembered.between
        if visible not in remembered:
            marks: list[str] = []
            long: list[tuple[str, int, int, int]] = []
            for domain, snapshots in self._shown.snapshots.items():
                for run, following in _hidden_runs(snapshots, visible):
                    if len(run) <= _LISTED:
                        ends = [*run, following]
                        marks += [span(domain, each, end) for at, each in enumerate(run) for end in ends[at + 1 :]]
                    else:
                        long.append((domain, run[0], run[-1], following))
            remembered[visible] = Between(tuple(marks), tuple(long))
        return remembered[visible]

    # -- access rules ------------------------------------------------------------------------------------------------

    def _decided(self, wanted: Sequence[AccessRule]) -> Query | None:
        """Return the query of the documents about which one of these rules decides; None without any."""
        make, found = self._make, []
        for rule in wanted:
            stronger = [
                each for each in self._shown.rules
                if each not in wanted and weight(each) > weight(rule) and _may_meet(each, rule)
            ]  # fmt: skip
            found.append(make.but(self._rule(rule), *map(self._rule, stronger)))
        return make.any(*found) if found else None

    def _rule(self, rule: AccessRule) -> Query:
        make = self._make
        beginnings = rule.beginnings()
        keys = (
            [make.term("rule_key", rule.prefix)]
            if not beginnings
            else [make.prefix("rule_key", each) for each in beginnings]
        )
        found = make.any(*keys)
        if rule.after is not None or rule.before is not None:
            least, most = (None if each is None else int(each.timestamp()) for each in (rule.after, rule.before))
            found = make.all(found, make.number("captured", least, most))
        return Query.const_score_query(found, 0.0)


def _seq(snapshot: Snapshot) -> int:
    return snapshot.seq


def _hidden_runs(snapshots: Sequence[Snapshot], visible: tuple[Standing, ...]) -> Iterator[tuple[list[int], int]]:
    """Yield the runs of hidden snapshots, each with the open one that follows."""
    run: list[int] = []
    for each in snapshots:
        if each.standing not in visible:
            run.append(each.seq)
        elif run:
            yield run, each.seq
            run = []


def in_force(rules: AccessRules, reader: str, now: float) -> tuple[AccessRule, ...]:
    """Return the rules that hold for a reader at a time, in seconds since 1970."""
    return tuple(
        each
        for each in rules.rules
        if (not each.user or each.user == reader) and (each.lapses is None or now < each.lapses.timestamp())
    )


def _may_meet(one: AccessRule, other: AccessRule) -> bool:
    """Return whether some URL may fit both."""
    short, long = sorted((one.prefix.rstrip(",)"), other.prefix.rstrip(",)")), key=len)
    return long.startswith(short)
