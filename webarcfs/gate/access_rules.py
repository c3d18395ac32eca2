"""The rules of access.aclj: URLs that readers may not see, or some reader may. Pure.

The format is pywb's: a line a rule, `<key> - <JSON>`, where the key is a URL turned around (`org,example)/path`). A key
that ends in `,` holds for the host and all below it; one that ends in `###` for that URL alone; any other for all URLs
that begin with it. Lines stand in any order. Of the rules that fit, that with the longest key decides; of these one for
the reader's name, then the strictest. `www.` and the case of letters make no difference.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from webarcfs.archive.model.errors import SettingsError, WebarcError
from webarcfs.archive.model.metadata import format_time, parse_time
from webarcfs.archive.model.surt import surt
from webarcfs.archive.model.url import canonical

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

    `url` is the URL as it was given; `id`, `reason`, `by` and `at` are for staff. Readers of a page that is blocked are
    told `public_text`, and nothing else of the rule.
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

    def is_about(self, domain: str) -> bool:
        """Return whether the rule may hold for some URL of a domain."""
        key = key_of(f"http://{domain}/").removesuffix("/")
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(sorted(self.rules, key=lambda each: (each.key, each.id))))
        object.__setattr__(self, "_prefixes", tuple(sorted({each.prefix for each in self.rules})))

    def find(self, url: str, user: str, captured: datetime, now: datetime) -> AccessRule | None:
        """Return the rule that decides about a capture of a URL; None without one."""
        key = key_of(url)
        fitting = [each for each in self._near(key) if each.fits(key) and each.holds(user, captured, now)]
        return max(fitting, key=weight, default=None)

    def touches(self, url: str) -> bool:
        """Return whether some rule is about a URL, for any reader and time."""
        key = key_of(url)
        return any(each.fits(key) for each in self._near(key))

    def takes_from(self, domain: str, user: str, now: datetime) -> bool:
        """Return whether some rule may take a document of a domain from a reader, now."""
        return any(
            rule.is_about(domain) and rule.user in ("", user) and (rule.lapses is None or now < rule.lapses)
            for rule in strict(self.rules)
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
                yield from (each for each in self.rules if each.prefix == prefix)

    def count_without_public_text(self) -> int:
        """Return how many rules block pages for a reason of which readers are told nothing."""
        return sum(1 for rule in self.rules if rule.access is Access.BLOCK and rule.reason and not rule.public_text)

    def __str__(self) -> str:
        """Return the content of the file."""
        return "".join(f"{_line(each)}\n" for each in self.rules)


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
    said = json.loads(text)
    if not isinstance(said, dict) or said.get("access") not in set(Access):
        raise ValueError(f"the access is none of {', '.join(Access)}")
    if other := sorted(said.keys() - _KEYS):
        raise ValueError(f"there is no {other[0]} in a rule")
    text_of = {name: str(said.get(name, "")) for name in _KEYS}
    plain = plain_key(key.removesuffix(_EXACT)) + (_EXACT if key.endswith(_EXACT) else "")
    return AccessRule(
        key=plain,
        access=Access(said["access"]),
        user=text_of["user"],
        after=_time(text_of["after"]),
        before=_time(text_of["before"]),
        lapses=_time(text_of["lapses"]),
        url=text_of["url"],
        id=text_of["id"],
        reason=text_of["reason"],
        public_text=text_of["public_text"],
        by=text_of["by"],
        at=text_of["at"],
    )


def _time(text: str) -> datetime | None:
    """Return the time of a text, a date is its first moment; None for an empty one. Raises Damaged."""
    return parse_time(text if "T" in text else f"{text}T00:00:00") if text else None


def _line(rule: AccessRule) -> str:
    times = {"after": rule.after, "before": rule.before, "lapses": rule.lapses}
    said: dict[str, str] = {"access": str(rule.access)}
    said |= {name: value for name in _TEXTS if (value := getattr(rule, name))}
    said |= {name: format_time(time) for name, time in times.items() if time is not None}
    return f"{rule.key} - {json.dumps(said, ensure_ascii=False)}"


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
