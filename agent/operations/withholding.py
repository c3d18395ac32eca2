"""Takes pages away from readers, and gives them back: what a person typed, judged and written as rules of access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.operations.ordering import reason_of
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule, key_spans, plain_key, strict
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import CaptureIndex, Span
from webarcfs.archive.model.errors import Busy, DatabaseDamaged, NotFound, UsageError
from webarcfs.archive.model.metadata import from_epoch, now, parse_time

#: Longest reason of a rule, and longest text for readers, in characters.
LONGEST_RULE_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class Withheld:
    """The rules of one withholding, a rule a spelling, and how many archived URLs they take from all readers.

    `count` is None where webarc.db cannot say it.
    """

    rules: tuple[AccessRule, ...]
    count: int | None

    @property
    def id(self) -> str:
        """The id by which it is lifted."""
        return self.rules[0].id


def withhold(
    archive: Archive,
    urls: Sequence[str],
    acting: Acting,
    *,
    reason: str,
    public_text: str = "",
    answer: str = Access.BLOCK,
    captured: str = "",
    lapses: str = "",
    exact: bool = False,
) -> list[Withheld]:
    """Withhold each URL in all its spellings (`exact`: in this one), or all that begin with one that ends in `*`.

    `reason` is for staff, `public_text` is for readers of a page that is blocked. `captured` is a span `FROM..TO`,
    `lapses` a date; empty: all captures, and no end. Raises UsageError for what cannot be understood, before anything
    is written, and what `access_file.withhold` raises.
    """
    if not urls:
        raise UsageError("give the URLs of the pages")
    reason, public_text = reason_of(reason, LONGEST_RULE_TEXT), reason_of(public_text, LONGEST_RULE_TEXT)
    if not reason:
        raise UsageError("give a reason; people will ask for it")
    if exact and any(url.endswith("*") for url in urls):
        raise UsageError("a URL that ends in * means many, and --exact one")
    if public_text and answer != Access.BLOCK:
        raise UsageError("readers are told nothing of what is excluded, so that it has no public text")
    after, before = span(captured)
    until = time(lapses)
    checked = [_checked(url) for url in urls]
    added = [
        access_rules.withhold(
            archive, url, acting.name, reason, public_text=public_text, role=acting.warrant(Right.WITHDRAW).role,
            access=Access(answer), after=after, before=before, lapses=until, exact=exact,
        )
        for url in checked
    ]  # fmt: skip
    return [Withheld(rules, count_urls(archive, rules)) for rules in added]


def count_urls(archive: Archive, rules: Sequence[AccessRule]) -> int | None:
    """Return how many archived URLs some rules in force take from readers without a name; None if that is unknown."""
    spans = {span for rule in rules for span in key_spans(rule)}
    urls: set[str] = set()
    try:
        in_force, at = access_rules.load(archive), now()
        with CaptureIndex(archive.database) as index:
            for low, high in spans:
                for row in index.below(Span(low, high)):
                    key = plain_key(row.surt)
                    if row.url not in urls and any(rule.fits(key) for rule in rules):
                        deciding = in_force.find(row.url, "", from_epoch(row.captured), at)
                        if deciding is not None and deciding.access is not Access.ALLOW:
                            urls.add(row.url)
    except (Busy, DatabaseDamaged, NotFound):
        return None
    return len(urls)


def lift(archive: Archive, rule_id: str, acting: Acting) -> tuple[AccessRule, ...]:
    """Take back what was withheld under an id, and return its rules. Raises NotFound if there are none."""
    lifted = access_rules.lift(archive, rule_id, acting.name) if rule_id else ()
    if not lifted:
        raise NotFound(f"there is no rule {rule_id}; `webarc-agent withhold --list` lists them")
    return lifted


def rules_above(archive: Archive, lifted: AccessRule) -> list[AccessRule]:
    """Return the rules that still take away what a rule did that was lifted."""
    return [rule for rule in strict(access_rules.load(archive).rules) if rule.fits(lifted.prefix)]


def _checked(url: str) -> str:
    star = "*" if url.endswith("*") else ""
    return validators.start_url(url.removesuffix("*")) + star


def span(text: str) -> tuple[datetime | None, datetime | None]:
    """Return the ends of `FROM..TO`, of which one may be missing. Raises UsageError."""
    if not text:
        return None, None
    begin, dots, end = text.partition("..")
    if not dots:
        raise UsageError(f"{text!r} is no span; write FROM..TO, as in 2026-01-01..2026-02-01")
    return time(begin), time(end)


def time(text: str) -> datetime | None:
    """Return a date or time (CET); None for an empty text. Raises Damaged for what is none."""
    return parse_time(text if "T" in text else f"{text}T00:00:00") if text else None
