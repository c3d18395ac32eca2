"""Ticks in a long list: numbers of snapshots, written short for a URL, as `3,7-12`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from agent.desk import limits


def read(text: str) -> frozenset[int]:
    """Return the numbers that a text names, as many as one form may; what is none is left out."""
    found: set[int] = set()
    for each in text[:20_000].split(","):
        first, dash, last = each.partition("-")
        if not (_is_number(first) and (not dash or _is_number(last))):
            continue
        low, high = int(first), int(last if dash else first)
        found |= set(range(low, min(high + 1, low + limits.AT_ONCE)))
        if len(found) >= limits.AT_ONCE:
            break
    return frozenset(sorted(found, reverse=True)[: limits.AT_ONCE])


def written(numbers: Iterable[int]) -> str:
    """Return numbers as a short text."""
    spans: list[list[int]] = []
    for each in sorted(set(numbers)):
        if spans and spans[-1][1] == each - 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
