"""A row of CDX: the columns of the Wayback Machine for a capture, and conditions on them. Pure.

The digest is the SHA-1 of the body in base32, which others compare, and which exports have; the length is its bytes. A
redirect has no body: its type is `unk`, its length is `-`, its digest that of no bytes. What a crawl met unchanged has
a row of its own, of type `warc/revisit`, with the other columns of what it met. Values are of printable ASCII without
spaces.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

import re2

from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.wayback.timestamps import digits_of

_FILTER = re.compile(r"(!?[=~]?|[=~]!)([a-z]+):(.*)", re.DOTALL)
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_LENGTH = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_UNSAFE = re.compile(r"[^!-~]")
_SAFE = "".join(map(chr, range(0x21, 0x7F)))
#: What a row has where there is nothing.
NOTHING = "-"
#: The type of what has none, as in the Wayback Machine.
UNKNOWN = "unk"
#: The type of what a crawl met unchanged, as in the Wayback Machine.
REVISIT = "warc/revisit"
#: Longest expression, in characters.
LONGEST_PATTERN = 200
#: Most bytes of memory that RE2 takes for an expression: its program and its states.
MOST_PATTERN_MEMORY = 1 << 20


class Field(StrEnum):
    """A column of CDX."""

    URLKEY = "urlkey"
    TIMESTAMP = "timestamp"
    ORIGINAL = "original"
    MIMETYPE = "mimetype"
    STATUSCODE = "statuscode"
    DIGEST = "digest"
    LENGTH = "length"
    DUPECOUNT = "dupecount"


#: The columns of a capture by itself. `dupecount` is that of a row among others.
COLUMNS = tuple(field for field in Field if field is not Field.DUPECOUNT)
#: Names of columns: the Wayback Machine's, and pywb's.
NAMES = {
    **{str(field): field for field in COLUMNS},
    "url": Field.ORIGINAL,
    "mime": Field.MIMETYPE,
    "status": Field.STATUSCODE,
}


_OF_NOTHING = hashlib.sha1(usedforsecurity=False).digest()


def value_of(capture: VisibleCapture, field: Field) -> str:
    """Return the value of a column of a capture's row."""
    return _VALUES[field](capture)


def _mime_type(capture: VisibleCapture) -> str:
    if capture.is_revisit:
        return REVISIT
    found = capture.mime_type or UNKNOWN
    return quote(found, safe=_SAFE) if _UNSAFE.search(found) else found


_VALUES: dict[Field, Callable[[VisibleCapture], str]] = {
    Field.URLKEY: lambda capture: capture.surt,
    Field.TIMESTAMP: lambda capture: digits_of(capture.captured),
    Field.ORIGINAL: lambda capture: capture.url,
    Field.MIMETYPE: _mime_type,
    Field.STATUSCODE: lambda capture: str(capture.status) if capture.status else NOTHING,
    Field.DIGEST: lambda capture: base64.b32encode(capture.digest or _OF_NOTHING).decode(),
    Field.LENGTH: lambda capture: NOTHING if capture.is_redirect else str(capture.size),
}


@dataclass(frozen=True, slots=True)
class CdxFault:
    """A parameter that cannot be understood: its name, and why. To be answered by 400."""

    parameter: str
    what: str

    def __str__(self) -> str:
        return f"{self.parameter}: {self.what}"


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the value of a column: equal to `text`, or with `text` in it, or as `pattern` says."""

    field: Field
    is_not: bool = False
    equals: str | None = None
    contains: str | None = None
    pattern: re2._Regexp | None = None

    def keeps(self, value: str) -> bool:
        """Return whether a row with this value stays."""
        if self.pattern is not None:
            found = self.pattern.fullmatch(value) is not None
        elif self.contains is not None:
            found = self.contains in value
        else:
            found = value == self.equals
        return found is not self.is_not


@dataclass(frozen=True, slots=True)
class Collapse:
    """Rows next to each other with the same value of a column, or the same first characters, are one row."""

    field: Field
    length: int | None = None


def parse_filter(text: str) -> Filter | CdxFault:
    """Return the condition that `[!][=~]column:text` spells, or what is wrong with it."""
    match = _FILTER.fullmatch(text)
    if match is None or match[2] not in NAMES:
        return CdxFault("filter", f"is [!][=~]column:expression; the columns are {', '.join(COLUMNS)}")
    signs, field, value = match[1], NAMES[match[2]], match[3]
    is_not = "!" in signs
    if "=" in signs:
        return Filter(field, is_not, equals=value)
    if "~" in signs:
        return Filter(field, is_not, contains=value)
    if not set(value) & _SPECIAL:  # most are like that
        return Filter(field, is_not, equals=value)
    return _pattern_filter(field, is_not, value)


def _pattern_filter(field: Field, is_not: bool, text: str) -> Filter | CdxFault:
    """Compile a stranger's expression. RE2 matches in time linear in the value, so no expression can run away."""
    if len(text) > LONGEST_PATTERN:
        return CdxFault("filter", f"an expression has {LONGEST_PATTERN} characters at most")
    options = re2.Options()
    options.max_mem = MOST_PATTERN_MEMORY
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = True
    try:
        # `re2.compile` would keep the last 128 expressions of strangers in memory.
        return Filter(field, is_not, pattern=re2._Regexp(text, options))
    except re2.error as error:
        return CdxFault("filter", f"RE2 does not take the expression: {error.args[0].decode(errors='replace')}")
    except UnicodeEncodeError:
        return CdxFault("filter", "the expression is not UTF-8")


def parse_collapse(text: str) -> Collapse | CdxFault:
    """Return what `column` or `column:length` spells, or what is wrong with it."""
    name, colon, length = text.partition(":")
    is_sound = name in NAMES and (not colon or _LENGTH.fullmatch(length))
    if not is_sound:
        return CdxFault("collapse", f"is column or column:length; the columns are {', '.join(COLUMNS)}")
    return Collapse(NAMES[name], int(length) if colon else None)
