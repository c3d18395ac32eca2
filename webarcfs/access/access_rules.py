"""What readers may see: the rules of access.aclj about URLs, and those of records about snapshots.

access.aclj has pywb's format: a line a rule, `<key> - <JSON>`, where the key is a URL turned around
(`org,example)/path`). A key that ends in `,` holds for the host and all below it; one that ends in `###` for that URL
alone; any other for all URLs that begin with it. Lines are in any order. Of the rules that fit, that with the longest
key decides; of these one for the reader's name, then the strictest. `www.` and the case of letters make no difference.

The file is read by every gate, and written by `webarc-agent withhold` and people's editors. A file with faults closes
all that it would decide about: SettingsError, until it is mended. Changes hold as soon as the next decision. Why a rule
was made stands in a file of its own, for staff (`access_reasons`); `load` leaves it out, `load_for_staff` has it.

The rules of records and snapshots:

- A *snapshot* is what one capture published on a domain. It is open to readers if its record is released and not closed
  any more. Without a record, or while its job has not ended, it is open unless git says `Release: held`.
- A *version* (path, bytes, the snapshots that contain it) is visible if some open snapshot contains it. A snapshot
  contains what its publication saw: the whole tree, or less where several publications share a domain.
- So a page that a held snapshot shares with a released one is visible, since the released one captured it, too.
- What a reader sees of a domain at a time is, for each publication, its newest open snapshot not later than that time;
  of these together, for each path, the newest. Where nothing of a domain is hidden, that is the domain's own state.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, StrEnum

from webarcfs.access.access_reasons import AccessReason, load_reasons, replace_reasons, text_of_reasons
from webarcfs.archive.catalogue.catalogue import Catalogue, release_of
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import spellings
from webarcfs.archive.model.errors import SettingsError, WebarcError
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.archive.model.urls import canonical, surt
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)

# == visibility, pure =================================================================================================


class Standing(Enum):
    """What a snapshot is to a reader."""

    OPEN = "open"
    CLOSED = "closed"  # released, but not before a date
    HIDDEN = "hidden"  # as if it were not there
    DISCARDED = "discarded"  # hidden from staff as well

    @property
    def is_told(self) -> bool:
        """Whether a reader may know that the snapshot is there."""
        return self in {Standing.OPEN, Standing.CLOSED}


@dataclass(frozen=True, slots=True)
class VisibleSnapshot:
    """A snapshot of a domain, to one reader. `seq` orders the snapshots of a domain; it is their time in seconds.

    `seen` is the tree that its publication saw, empty for the whole tree. `until` is the end of its closure.
    """

    seq: int
    publication: str
    standing: Standing
    seen: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """A version of a document: in the snapshots from `first` up to `last`, which no longer contains it.

    `blob` is git's id of its body; `stored` is the snapshot whose crawl stored it.
    """

    path: str
    blob: str
    first: int
    last: int
    stored: int


#: Whether a snapshot whose publication saw less than the whole tree saw a version.
Saw = Callable[[VisibleSnapshot, VersionSpan], bool]


@dataclass(frozen=True, slots=True)
class Open:
    """A reader may see it, as the open snapshot `since` captured it first."""

    since: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A reader may see it from `until` on."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rule forbids it, and says so. `text` is what the rule says to readers; mostly nothing."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """To a reader it is not there."""


Answer = Open | Closed | Blocked | Absent


def standing(
    state: RecordState | None, *, held: bool, closed_for: str, captured: datetime, now: datetime
) -> tuple[Standing, datetime | None]:
    """Return the standing of a snapshot, as of `release_of`, and the end of its closure if it is closed now."""
    is_told, until = release_of(state, held=held, closed_for=closed_for, captured=captured)
    if not is_told:
        return (Standing.DISCARDED if state is RecordState.DISCARDED else Standing.HIDDEN), None
    return (Standing.CLOSED, until) if until is not None and now < until else (Standing.OPEN, None)


def may(snapshots: Iterable[VisibleSnapshot], version: VersionSpan, saw: Saw) -> Open | Closed | Absent:
    """Return whether a reader may see a version, by the snapshots of its domain."""
    closed: list[datetime] = []
    for snapshot in sorted(_containing(snapshots, version, saw), key=lambda candidate: candidate.seq):
        if snapshot.standing is Standing.OPEN:
            return Open(snapshot.seq)
        if snapshot.standing is Standing.CLOSED and snapshot.until is not None:
            closed.append(snapshot.until)
    return Closed(min(closed)) if closed else Absent()


def _containing(snapshots: Iterable[VisibleSnapshot], version: VersionSpan, saw: Saw) -> Iterator[VisibleSnapshot]:
    for snapshot in snapshots:
        is_there = version.first <= snapshot.seq < version.last and snapshot.standing.is_told
        if is_there and (not snapshot.seen or saw(snapshot, version)):
            yield snapshot


def publication_of(snapshots: Sequence[VisibleSnapshot], version: VersionSpan, saw: Saw) -> str:
    """Return the publication that stored a version, as far as a reader may see that crawl.

    Else it is that of the first open crawl with the version. One that is closed until a date counts where no open crawl
    has it: a rule allows the version by name. Empty where there is none.
    """
    storing = next((snapshot for snapshot in snapshots if snapshot.seq == version.stored), None)
    if storing is not None and storing.standing is Standing.OPEN:
        return storing.publication
    containing = sorted(_containing(snapshots, version, saw), key=lambda candidate: candidate.seq)
    is_open = (candidate for candidate in containing if candidate.standing is Standing.OPEN)
    first = next(is_open, next(iter(containing), None))
    return "" if first is None else first.publication


def hides_form(snapshots: Iterable[VisibleSnapshot], stored: int, seen: Container[Standing] = (Standing.OPEN,)) -> bool:
    """Return whether what a browser showed of a version belongs to a crawl that a reader does not see.

    `stored` is the snapshot that stored the version, and the form with it. `seen` are the standings that the reader
    sees: closed ones, too, where a rule allows the version by name.
    """
    return any(snapshot.seq == stored and snapshot.standing not in seen for snapshot in snapshots)


def newest_open(snapshots: Iterable[VisibleSnapshot], seq: int) -> list[VisibleSnapshot]:
    """Return what a reader sees of a domain at `seq`: the newest open snapshot of each publication, newest first."""
    newest_by_publication: dict[str, VisibleSnapshot] = {}
    for snapshot in sorted(snapshots, key=lambda candidate: candidate.seq):
        if snapshot.seq <= seq and snapshot.standing is Standing.OPEN:
            newest_by_publication[snapshot.publication] = snapshot
    return sorted(newest_by_publication.values(), key=lambda candidate: candidate.seq, reverse=True)


class VisibleSpans:
    """All that a reader may see of a domain, as spans: for filters of many versions at once."""

    def __init__(self, snapshots: Sequence[VisibleSnapshot], saw: Saw) -> None:
        self.snapshots = sorted(snapshots, key=lambda snapshot: snapshot.seq)
        self._saw = saw
        shown = [snapshot for snapshot in self.snapshots if snapshot.standing is Standing.OPEN]
        self._whole = [snapshot.seq for snapshot in shown if not snapshot.seen]
        self._partial = [snapshot for snapshot in shown if snapshot.seen]

    def shows(self, version: VersionSpan) -> bool:
        """Return whether a reader may see a version."""
        place = bisect_left(self._whole, version.first)
        if place < len(self._whole) and self._whole[place] < version.last:
            return True
        return any(
            version.first <= snapshot.seq < version.last and self._saw(snapshot, version) for snapshot in self._partial
        )


# == access rules, pure ===============================================================================================


_EXACT = "###"
_WWW = re.compile(r",www[0-9]*(?=[:)]|$)")
_TEXTS = ("user", "url", "id", "reason", "public_text", "by", "at")
_KEYS = {*_TEXTS, "access", "after", "before", "lapses"}


class Access(StrEnum):
    """What a rule says, the mildest first."""

    ALLOW = "allow"
    BLOCK = "block"  # 451: it is there, and may not be shown
    EXCLUDE = "exclude"  # 404: as if it were not there


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """A rule. It holds for captures from `after` until `before`, for the reader `user` (empty: all), until it lapses.

    `url` is the URL as it was given; `id`, `reason`, `role`, `by` and `at` are for staff. Readers of a page that is
    blocked are shown `public_text`, and nothing else of the rule. `role` allowed who made the rule to do so.
    """

    key: str
    access: Access
    user: str = ""
    after: datetime | None = None
    before: datetime | None = None
    lapses: datetime | None = None
    url: str = ""
    id: str = ""
    reason: str = ""
    public_text: str = ""
    by: str = ""
    at: str = ""
    role: str = ""

    @property
    def prefix(self) -> str:
        """The key without its ending."""
        return self.key.removesuffix(_EXACT)

    def fits(self, key: str) -> bool:
        """Return whether the rule holds for the URL of a key."""
        beginnings = self.beginnings()
        return key.startswith(beginnings) if beginnings else key == self.prefix

    def beginnings(self) -> tuple[str, ...]:
        """Return the beginnings of the keys of its URLs; none for a rule about one URL, whose key is `prefix`."""
        if self.key.endswith(_EXACT):
            return ()
        if self.key.endswith(","):  # a host, and all hosts below it
            return self.key, f"{self.key[:-1]})", f"{self.key[:-1]}:"
        return (self.key,)

    def is_about(self, key: str) -> bool:
        """Return whether the rule may hold for some URL of a domain of that key."""
        return self.prefix.startswith(key) or key.startswith(self.beginnings())

    def holds(self, user: str, captured: datetime, now: datetime) -> bool:
        """Return whether the rule holds for a reader and the time of a capture."""
        if self.user and self.user != user:
            return False
        if self.lapses is not None and now >= self.lapses:
            return False
        return not (
            (self.after is not None and captured < self.after) or (self.before is not None and captured > self.before)
        )


@dataclass(frozen=True, slots=True)
class AccessRules:
    """All rules of an archive, in order of their keys."""

    rules: tuple[AccessRule, ...] = ()
    _prefixes: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())
    _strict: tuple[AccessRule, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(sorted(self.rules, key=lambda rule: (rule.key, rule.id))))
        object.__setattr__(self, "_prefixes", tuple(sorted({rule.prefix for rule in self.rules})))
        object.__setattr__(self, "_strict", tuple(strict(self.rules)))

    def find(self, url: str, user: str, captured: datetime, now: datetime) -> AccessRule | None:
        """Return the rule that decides about a capture of a URL; None without one."""
        key = key_of(url)
        fitting = [rule for rule in self._near(key) if rule.fits(key) and rule.holds(user, captured, now)]
        return max(fitting, key=weight, default=None)

    def touches(self, url: str) -> bool:
        """Return whether some rule is about a URL, for any reader and time."""
        key = key_of(url)
        return any(rule.fits(key) for rule in self._near(key))

    def takes_from(self, domain: str, user: str, now: datetime) -> bool:
        """Return whether some rule may take a document of a domain from a reader, now."""
        if not self._strict:
            return False
        key = domain_key(domain)
        return any(
            rule.is_about(key) and rule.user in ("", user) and (rule.lapses is None or now < rule.lapses)
            for rule in self._strict
        )

    def _near(self, key: str) -> Iterator[AccessRule]:
        """Yield the rules whose prefix the key may begin with; few, however many there are."""
        if len(self.rules) <= _FEW:
            yield from self.rules
            return
        ends = {len(prefix) for prefix in self._prefixes}
        tried = {key[:end] for end in ends if end <= len(key)} | {_host(key, end) for end in ends}
        for prefix in tried:
            place = bisect_right(self._prefixes, prefix) - 1
            if place >= 0 and self._prefixes[place] == prefix:
                yield from (rule for rule in self.rules if rule.prefix == prefix)

    @property
    def without_reasons(self) -> AccessRules:
        """The rules as what serves readers may know them."""
        return AccessRules(tuple(replace(rule, reason="", role="") for rule in self.rules))

    def __str__(self) -> str:
        """Return the content of the file."""
        return "".join(f"{_line(rule)}\n" for rule in self.rules)


#: So many rules are looked at one by one.
_FEW = 50


def _host(key: str, end: int) -> str:
    """Return the prefix of that length of a rule for the whole host: `org,example,` fits `org,example)/`."""
    turned = re.split(r"[:)]", key, maxsplit=1)[0]
    return f"{turned},"[:end]


def weight(rule: AccessRule) -> tuple[int, int, bool, int]:
    """Return the weight of a rule: of those that fit, the heaviest decides."""
    exact = rule.key.endswith(_EXACT)
    return len(rule.prefix), exact, bool(rule.user), list(Access).index(rule.access)


def key_of(url: str) -> str:
    """Return the key of a canonical URL: turned around, without `www.`, in lower case."""
    return plain_key(surt(url))


def domain_key(domain: str) -> str:
    """Return the beginning of the keys of a domain's URLs, up to the host."""
    return key_of(f"http://{domain}/").removesuffix("/")


def plain_key(key: str) -> str:
    """Return a key without `www.` and in lower case."""
    return _WWW.sub("", key.lower(), count=1)


def rule_key(url: str, *, exact: bool) -> str:
    """Return the key of a rule for a URL. Raises UrlRefused."""
    return key_of(canonical(url)) + (_EXACT if exact else "")


def parse(text: str, source: str) -> AccessRules:
    """Return the rules of a file. Raises SettingsError with all faults: none of it holds then."""
    rules, faults = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            try:
                rules.append(_rule(line))
            except (ValueError, TypeError, WebarcError) as error:
                faults.append(f"line {number}: {error}")
    if faults:
        raise SettingsError(source, faults)
    return AccessRules(tuple(rules))


def _rule(line: str) -> AccessRule:
    key, _, rest = line.strip().partition(" ")
    between, _, text = rest.strip().partition(" ")
    if between != "-":
        raise ValueError(f'{line!r} is no rule; write `org,example)/path - {{"access": "block"}}`')
    fields = json.loads(text)
    if not isinstance(fields, dict) or fields.get("access") not in set(Access):
        raise ValueError(f"the access is none of {', '.join(Access)}")
    if other := sorted(fields.keys() - _KEYS):
        raise ValueError(f"there is no {other[0]} in a rule")
    texts = {name: str(fields.get(name, "")) for name in _KEYS}
    plain = plain_key(key.removesuffix(_EXACT)) + (_EXACT if key.endswith(_EXACT) else "")
    return AccessRule(
        key=plain,
        access=Access(fields["access"]),
        user=texts["user"],
        after=_time(texts["after"]),
        before=_time(texts["before"]),
        lapses=_time(texts["lapses"]),
        url=texts["url"],
        id=texts["id"],
        reason=texts["reason"],
        public_text=texts["public_text"],
        by=texts["by"],
        at=texts["at"],
    )


def _time(text: str) -> datetime | None:
    """Return the time of a text, a date is its first moment; None for an empty one. Raises Damaged."""
    return parse_time(text if "T" in text else f"{text}T00:00:00") if text else None


def _line(rule: AccessRule) -> str:
    times = {"after": rule.after, "before": rule.before, "lapses": rule.lapses}
    fields: dict[str, str] = {"access": str(rule.access)}
    fields |= {name: value for name in _TEXTS if name != "reason" and (value := getattr(rule, name))}
    fields |= {name: format_time(time) for name, time in times.items() if time is not None}
    return f"{rule.key} - {json.dumps(fields, ensure_ascii=False)}"


def hosts(rules: Iterable[AccessRule]) -> list[str]:
    """Return the beginnings of keys, up to the host, of all URLs that the rules may fit; also of keys with `www`."""
    return sorted({_host_of(rule) for rule in rules})


def key_spans(rule: AccessRule) -> list[tuple[str, str]]:
    """Return spans of keys, also of those with `www`, in which all URLs of a rule that names a whole host lie."""
    ends = (")", ":", "," if rule.key.endswith(",") else ",www")
    return [(f"{_host_of(rule)}{end}", f"{_host_of(rule)}{end[:-1]}{chr(ord(end[-1]) + 1)}") for end in ends]


def _host_of(rule: AccessRule) -> str:
    return re.split(r"[:)]", rule.prefix, maxsplit=1)[0].rstrip(",")


def strict(rules: Iterable[AccessRule]) -> list[AccessRule]:
    """Return the rules that take something away."""
    return [rule for rule in rules if rule.access is not Access.ALLOW]


# == access file ======================================================================================================


class AccessFile:
    """The rules of an archive, read again when the file changes. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: tuple[int, int, int] | None = None
        self._rules = AccessRules()

    def rules(self) -> AccessRules:
        """Return the rules that hold now; none without the file. Raises SettingsError for faults, OSError."""
        try:
            status = os.stat(self._archive.access_rules)  # noqa: PTH116 # asked for each decision
        except FileNotFoundError:
            self._known = None
            self._rules = AccessRules()
            return self._rules
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        if identity != self._known:
            self._rules = load(self._archive)
            self._known = identity
        return self._rules


def load(archive: Archive) -> AccessRules:
    """Return the rules of an archive, without reasons; none without the file.

    Raises SettingsError for faults, OSError.
    """
    return parse(_text_of(archive), str(archive.access_rules)).without_reasons


def load_for_staff(archive: Archive) -> AccessRules:
    """Return the rules of an archive with their reasons, wherever these stand. Raises as `load`, also for reasons."""
    return with_reasons(parse(_text_of(archive), str(archive.access_rules)), load_reasons(archive))


def load_with_fault(archive: Archive) -> tuple[AccessRules, str]:
    """Return the rules with their reasons, and no fault; where these cannot be read, the rules alone, and why.

    Raises as `load`.
    """
    rules = parse(_text_of(archive), str(archive.access_rules))
    try:
        return with_reasons(rules, load_reasons(archive)), ""
    except (SettingsError, OSError) as error:
        return rules.without_reasons, str(error)


def _text_of(archive: Archive) -> str:
    try:
        return archive.access_rules.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingsError(str(archive.access_rules), [f"not UTF-8 at byte {error.start}"]) from None


def with_reasons(rules: AccessRules, reasons: Mapping[str, AccessReason]) -> AccessRules:
    """Return rules with their reasons, each with an id if it has a reason: a reason is found by it."""
    return AccessRules(tuple(_with_reason(rule, reasons) for rule in rules.rules))


def _with_reason(rule: AccessRule, reasons: Mapping[str, AccessReason]) -> AccessRule:
    if rule.reason:  # of a program of before, or typed by hand
        digest = hashlib.sha256(f"{rule.key} {rule.access} {rule.user} {rule.reason}".encode("utf-8", "replace"))
        return replace(rule, id=rule.id or digest.hexdigest()[:8])
    about = reasons.get(rule.id)
    return rule if about is None or not rule.id else replace(rule, reason=about.reason, role=about.role)


def _reasons_of(rules: AccessRules) -> dict[str, AccessReason]:
    """Return the reasons of rules by id; of different ones under one id, all in a row."""
    texts: dict[str, dict[str, str]] = {}
    for rule in rules.rules:
        if rule.reason:
            texts.setdefault(rule.id, {})[rule.reason] = rule.role
    return {name: AccessReason("; ".join(about), next(iter(about.values()))) for name, about in texts.items()}


def move_reasons(archive: Archive, person: str) -> int:
    """Take the reasons out of access.aclj, where programs of before wrote them; return of how many rules.

    What else people wrote there stays, line by line. Raises SettingsError for a file with faults, OSError.
    """
    with locks.exclusive(archive.settings_lock):
        text, source = _text_of(archive), str(archive.access_rules)
        count = sum(1 for rule in parse(text, source).rules if rule.reason)
        if count:
            known = load_reasons(archive)
            kept = with_reasons(parse(text, source), known)
            lines = [_without_reason(line) for line in text.split("\n")]
            content = "\n".join(lines).encode()
            _write(archive, content, _reasons_of(kept), known, person, f"{count} reasons are for staff alone")
    return count


def _without_reason(line: str) -> str:
    """Return a line of the file without a reason; with an id, by which the reason is found."""
    if not line.strip() or line.startswith("#") or not (rule := _rule(line)).reason:
        return line
    return _line(_with_reason(rule, {}))


def rules_without_reason(archive: Archive) -> list[AccessRule]:
    """Return the rules of programs whose reason is nowhere: the file of reasons is missing, or lacks it."""
    return [rule for rule in load_for_staff(archive).rules if rule.id and rule.by and not rule.reason]


def withhold(
    archive: Archive,
    url: str,
    person: str,
    reason: str,
    *,
    access: Access = Access.BLOCK,
    after: datetime | None = None,
    before: datetime | None = None,
    lapses: datetime | None = None,
    user: str = "",
    public_text: str = "",
    role: str = "",
    exact: bool = False,
) -> tuple[AccessRule, ...]:
    """Add a rule for each spelling of a URL, or one for all URLs that begin with it where it ends in `*`.

    `exact`: for this spelling alone. `reason` is for staff, `public_text` for readers; `role` allows `person` to do so.
    Return the rules, which share an id. Raises UrlRefused, SettingsError for a file with faults, OSError.
    """
    many = url.endswith("*")
    urls = (url,) if many or exact else (url, *spellings(url)[1:])
    keys = [rule_key(spelling.removesuffix("*"), exact=not many) for spelling in urls]
    at = format_time(now())
    name = hashlib.sha256(f"{keys[0]} {access} {user} {after} {before} {at}".encode()).hexdigest()[:8]
    rules = tuple(
        AccessRule(
            key=key, access=access, user=user, after=after, before=before, lapses=lapses,
            url=spelling, id=name, reason=reason, public_text=public_text, by=person, at=at, role=role,
        )
        for key, spelling in zip(keys, urls, strict=True)
    )  # fmt: skip
    _change(archive, lambda known: AccessRules((*known.rules, *rules)), person, f"withhold {url}: {reason}")
    return rules


def lift(archive: Archive, rule_id: str, person: str) -> tuple[AccessRule, ...]:
    """Remove the rules of an id, and return them; none if there are none."""
    lifted: list[AccessRule] = []

    def without(rules: AccessRules) -> AccessRules:
        lifted.extend(rule for rule in rules.rules if rule.id == rule_id)
        return AccessRules(tuple(rule for rule in rules.rules if rule.id != rule_id))

    _change(archive, without, person, f"lift {rule_id}")
    return tuple(lifted)


def _change(archive: Archive, change: Callable[[AccessRules], AccessRules], person: str, message: str) -> None:
    """Write the rules and their reasons, and keep copies in the catalogue."""
    with locks.exclusive(archive.settings_lock):
        known = load_reasons(archive)
        before = parse(_text_of(archive), str(archive.access_rules))
        if count := sum(1 for rule in before.rules if rule.reason):
            names = archive.access_rules.name, archive.access_reasons.name
            _log.warning("%s: the reasons of %s rules are for staff alone now, in %s", names[0], count, names[1])
        rules = change(with_reasons(before, known))
        _write(archive, str(rules).encode(), _reasons_of(rules), known, person, message)


def _write(  # noqa: PLR0917 # of two callers
    archive: Archive,
    content: bytes,
    reasons: Mapping[str, AccessReason],
    known: Mapping[str, AccessReason],
    person: str,
    message: str,
) -> None:
    """Write both files. A process that is killed in between leaves a reason too much, and never one too few."""
    if {**known, **reasons} != known:
        replace_reasons(archive, {**known, **reasons})
    settings_files.replace_file(archive.access_rules, content)
    if archive.access_reasons.exists() and dict(reasons) != {**known, **reasons}:
        replace_reasons(archive, reasons)
    files = {archive.access_rules.name: content, archive.access_reasons.name: text_of_reasons(reasons)}
    Catalogue(archive).save([], person, message, files=files)
