"""Takes pages away from readers, and gives them back: what a person typed, judged and written as rules of access."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import parse_time
from webarcfs.gate import access_file
from webarcfs.gate.access_rules import Access, AccessRule

# A colon before a digit precedes a port, as in `localhost:8080`, and does not end a scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")


def withhold(
    archive: Archive,
    urls: Sequence[str],
    acting: Acting,
    *,
    reason: str,
    answer: str = Access.BLOCK,
    captured: str = "",
    lapses: str = "",
) -> list[AccessRule]:
    """Add a rule for each URL, or all that begin with one that ends in `*`; return the rules.

    `captured` is a span `FROM..TO`, `lapses` a date; empty: all captures, and no end. Raises UsageError for what cannot
    be understood, before anything is written, and what `access_file.withhold` raises.
    """
    if not urls:
        raise UsageError("give the URLs of the pages")
    if not reason.strip():
        raise UsageError("give a reason; people will ask for it")
    after, before = span(captured)
    until = time(lapses)
    checked = [_checked(each) for each in urls]
    return [
        access_file.withhold(
            archive, each, acting.name, reason.strip(), access=Access(answer), after=after, before=before, lapses=until
        )
        for each in checked
    ]


def lift(archive: Archive, rule_id: str, acting: Acting) -> AccessRule:
    """Take a rule back, and return it. Raises NotFound if there is none."""
    lifted = access_file.lift(archive, rule_id, acting.name) if rule_id else None
    if lifted is None:
        raise NotFound(f"there is no rule {rule_id}; `webarc-agent withhold --list` lists them")
    return lifted


def start_url(url: str) -> str:
    """Return a URL, validated, with `http://` if it has no scheme. Raises UsageError."""
    try:
        return str(validators.url(url if _SCHEME.match(url) else f"http://{url}"))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _checked(url: str) -> str:
    star = "*" if url.endswith("*") else ""
    return start_url(url.removesuffix("*")) + star


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
