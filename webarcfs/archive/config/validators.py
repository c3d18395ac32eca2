"""Checks of settings: each takes a value from TOML or an option, and returns the checked value. Pure.

A check raises ValueError with a sentence that explains the fault.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from webarcfs.archive.config.interval import Interval
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.model.url import canonical

Check = Callable[[Any], Any]

#: What stands for a client of a unix socket where others have an address.
UNIX = "unix"

#: What is written in place of a number that shall be no bound.
UNLIMITED_WORD = "unlimited"

_RATE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*([kKmM]i?B?|B)\s*", re.ASCII)
_UNITS = {
    "b": 1,
    "k": 1000,
    "kb": 1000,
    "ki": 1024,
    "kib": 1024,
    "m": 10**6,
    "mb": 10**6,
    "mi": 1 << 20,
    "mib": 1 << 20,
}
_EXTENSION = re.compile(r"\.?[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?", re.ASCII)
_URL_PATTERN = re.compile(r"[^\s/:]+(?::[\d*?]+)?(?:/\S*)?")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_MIME_PATTERN = re.compile(r"[A-Za-z0-9*][\w.+*-]*/[\w.+*-]+|\*", re.ASCII)


def boolean(value: Any) -> bool:
    """Check for true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def whole(least: int) -> Check:
    """Return a check for a whole number, `least` or more."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{value!r} is not a whole number from {least} on")
        return value

    return check


def number(least: float, most: float = float("inf")) -> Check:
    """Return a check for a number between `least` and `most`."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{value!r} is not a number from {least:g} {f'to {most:g}' if most < 1e9 else 'on'}")
        return float(value)

    return check


def whole_or_unlimited(least: int, unlimited: int) -> Check:
    """Return a check for a whole number from `least` on, or the word for none, which is the number `unlimited`."""

    def check(value: Any) -> int:
        if value == UNLIMITED_WORD:
            return unlimited
        try:
            return int(whole(least)(value))
        except ValueError as error:
            raise ValueError(f"{error}, nor {UNLIMITED_WORD!r}") from None

    return check


def rate(value: Any) -> int:
    """Check for bytes a second: a number of them, or with a unit, as `500 kB` or `2 MB`."""
    if isinstance(value, str) and (match := _RATE.fullmatch(value)):
        return int(float(match[1]) * _UNITS[match[2].lower()])
    try:
        return int(whole(0)(value))
    except ValueError:
        raise ValueError(f"{value!r} is no number of bytes, such as 500000, '500 kB' or '2 MB'") from None


def extension(value: Any) -> str:
    """Check for the extension of a file's name; return it in lower case, without its dot."""
    if not isinstance(value, str) or not _EXTENSION.fullmatch(value):
        raise ValueError(f"{value!r} is no extension, such as exe or tar.gz")
    return value.lower().removeprefix(".")


def path_pattern(value: Any) -> str:
    """Check for the path of URLs, in which `*` matches any characters and `?` one; a host may stand before it."""
    if not isinstance(value, str) or "/" not in value or not _URL_PATTERN.fullmatch(value.lstrip("/") or "x"):
        raise ValueError(f"{value!r} is no path, such as /press/* or www.example.org/press/*")
    return value


def text(value: Any) -> str:
    """Check for a line of printable text."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{value!r} is not a line of text")
    return value


def one_of(*words: str) -> Check:
    """Return a check for one of a few words."""

    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return str(value)

    check.words = words  # type: ignore[attr-defined] # forms offer them
    return check


def list_of(check_one: Check) -> Check:
    """Return a check for a list that applies `check_one` to each element."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{value!r} is not a list")
        found, faults = [], []
        for each in value:
            try:
                found.append(check_one(each))
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        return tuple(found)

    return check


def interval(value: Any) -> Interval:
    """Check for an interval such as `1 day`."""
    return value if isinstance(value, Interval) else Interval.parse(text(value))


def time(value: Any) -> datetime:
    """Check for a date and time, as TOML has it or as its text; local ones are CET."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise ValueError(f"{value!r} is not a date and time such as 2026-12-01T22:00:00")
    return value.replace(tzinfo=value.tzinfo or CET)


def url(value: Any) -> str:
    """Check for an http(s) URL; return its canonical form."""
    try:
        return canonical(text(value))
    except UrlRefused as error:
        raise ValueError(str(error)) from None


def name(value: Any) -> str:
    """Check for a publication's name: it becomes part of refs and folder names."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or ".." in value or value.endswith(".lock"):
        raise ValueError(f"{value!r} is no name: up to 100 letters, digits and . _ - (it becomes part of a git ref)")
    return value


def network(value: Any) -> str:
    """Check for an IP address, a network such as 10.0.0.0/8, or `unix` for whoever may open a server's socket."""
    if value == UNIX:
        return UNIX
    try:
        return str(ipaddress.ip_network(value if isinstance(value, str) else ""))
    except ValueError:
        known = "no IP address or network, such as 127.0.0.1 or 10.0.0.0/8"
        raise ValueError(f"{value!r} is {known}, and not {UNIX!r}") from None


def function(value: Any) -> str:
    """Check for the name of a function in a module, `package.module:function`."""
    if not isinstance(value, str) or not _FUNCTION.fullmatch(value):
        raise ValueError(f"{value!r} is no function such as package.module:function")
    return value


def url_pattern(value: Any) -> str:
    """Check for a host, or a host and a path, in which `*` matches any characters and `?` one, without scheme."""
    if not isinstance(value, str) or not _URL_PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is no host or part of one, such as dip.example.org or www.example.org/old/*")
    return value


def mime_pattern(value: Any) -> str:
    """Check for a MIME type, or a pattern of one with `*`."""
    if not isinstance(value, str) or not _MIME_PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is no MIME type or pattern such as text/html or image/*")
    return value.lower()
