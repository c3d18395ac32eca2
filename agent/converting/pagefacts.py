"""What the served form of a page is counted by: whether it is an error page, and where its forms lead. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from webarcfs.archive.config.settings import ErrorPageMark, LeavingRule
from webarcfs.content.outlinks import bare
from webarcfs.content.rewriting import assembly, html_references
from webarcfs.content.rewriting.references import Rewritten, Use
from webarcfs.content.urlresolver import resolver

#: Counts up when the same bytes get other facts.
_VERSION = 1
_FORM = re.compile(rb"<form\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Whether a page shows itself as an error page; its forms that lead to the archive's search, and other ones."""

    is_error: bool = False
    searches: int = 0
    other_forms: int = 0

    def as_bytes(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(asdict(self)).encode()


def parsed(content: bytes) -> PageFacts:
    """Return the inverse of `as_bytes`."""
    found: dict[str, Any] = json.loads(content)
    return PageFacts(**found)


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides about pages that were captured at a time: marks of error pages, and rules of forms."""

    marks: tuple[str, ...]
    forms: tuple[LeavingRule, ...]

    @property
    def settings(self) -> str:
        """All that the facts of a page depend on, as text."""
        forms = [[each.match, each.does] for each in self.forms]
        return json.dumps([_VERSION, list(self.marks), forms], ensure_ascii=False)


def rules_of(marks: Iterable[ErrorPageMark], rules: Iterable[LeavingRule], captured: datetime | None) -> Rules:
    """Return what holds for pages that were captured then."""
    return Rules(
        tuple(each.contains for each in marks if holds(each.since, each.until, captured)),
        tuple(each for each in rules if each.on == "form" and holds(each.since, each.until, captured)),
    )


def holds(since: datetime | None, until: datetime | None, captured: datetime | None) -> bool:
    """Return whether a span of captures, open at both ends, has one."""
    if captured is None:
        return True
    return (since is None or captured >= since) and (until is None or captured <= until)


def facts_of(body: bytes, url: str, charset: str, rules: Rules) -> PageFacts:
    """Return the facts of a page."""
    is_error = any(_contains(body, each, charset) for each in rules.marks)
    if not _FORM.search(body):
        return PageFacts(is_error)
    targets = _forms(body, url, charset)
    searches = sum(_leads_to_search(rules.forms, each) for each in targets)
    return PageFacts(is_error, searches, len(targets) - searches)


def _contains(body: bytes, mark: str, charset: str) -> bool:
    try:
        return mark.encode(charset, "strict") in body
    except (UnicodeEncodeError, LookupError):
        return False


def _forms(body: bytes, url: str, charset: str) -> list[str]:
    """Return where the forms of a page are sent, as URLs, else as written."""
    references = html_references.of_html(body, charset)
    resolve = resolver(url, charset)
    if references.base and (base := resolve(bare(references.base))):
        resolve = resolver(base, charset)
    found: list[str] = []

    def note(use: Use, written: str) -> Rewritten | None:
        if use is Use.FORM:
            found.append((resolve(bare(written)) if written.strip() else url) or written)
        return None

    for _ in assembly.pieces(body, references, note):
        pass
    return found


def _leads_to_search(rules: Sequence[LeavingRule], url: str) -> bool:
    rule = next((each for each in rules if _pattern(each.match).search(url)), None)
    return rule is not None and rule.does == "search"


@lru_cache(maxsize=1_000)
def _pattern(match: str) -> re.Pattern[str]:
    return re.compile(".*?".join(map(re.escape, match.split("*"))), re.IGNORECASE | re.DOTALL)
