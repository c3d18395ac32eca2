"""The places of the references in one body, as values that a cache can keep. Pure.

A row is three numbers: where the reference begins, where it ends, and a code of what is between. A page of 50 kB has
some 500 rows, so they are kept in one array, 12 bytes each.

The text of references in attributes and in style sheets is read here, and written so that it can end neither.
"""

from __future__ import annotations

import codecs
import re
from array import array
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from html import entities, unescape
from typing import Final
from urllib.parse import quote, urljoin

from webarcfs.content import text

# == references, pure =================================================================================================


#: Counts up whenever the same bytes may get other rows, or the same rows another output.
VERSION: Final = 3
#: Bytes of a body that are searched. What is beyond is left out of the rewritten body.
LONGEST_BODY: Final = 16 << 20
#: Rows of one body. What is beyond the last one is left out likewise.
MOST_ROWS: Final = 500_000


class Use(StrEnum):
    """What a browser does with a reference."""

    LINK = "link"  #: goes there on a click: a, area, a in SVG, elements of MathML
    FORM = "form"  #: sends a form there: action, formaction
    FRAME = "frame"  #: shows it as a page in the page
    OBJECT = "object"  #: object, embed, applet
    IMAGE = "image"
    STYLE = "style"  #: a style sheet: link, @import, xml-stylesheet
    SCRIPT = "script"
    OTHER = "other"  #: audio, video, track, fonts and images of style sheets, manifest, drawings
    REFRESH = "refresh"  #: goes there by itself
    BASE = "base"  #: what the page's references are relative to
    TARGET = "target"  #: no reference, but the name of a window, of a button or <base> without a reference


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A reference's new text, and attributes that its element gets.

    An attribute `target` takes the place of the element's own. On values that are no attribute by themselves (srcset,
    style sheets, refresh), `attributes` have no effect.
    """

    value: str
    attributes: tuple[tuple[str, str], ...] = ()


class RowShape(IntEnum):
    """What is between the two ends of a row."""

    URL = 0  #: an attribute's value: a reference
    SRCSET = 1  #: an attribute's value: images with descriptors
    COMMAS = 2  #: an attribute's value: references between commas
    REFRESH = 3  #: an attribute's value: seconds and a reference
    STYLE = 4  #: an attribute's value: declarations of CSS
    SRCDOC = 5  #: an attribute's value: a page
    TARGET = 6  #: an attribute's value: the name of a window
    VALUE = 7  #: an attribute's value, replaced by a constant text
    RAW = 8  #: anything, replaced by constant bytes
    CSS = 9  #: a reference in a style sheet: the inside of a string or of url()
    SHEET = 10  #: a style sheet that markup is resolved in first
    MASK = 11  #: text that some readers take for markup: each `<` that may begin a tag gets a space
    ADDED = 12  #: an attribute that the element gets: its name and value are a constant text


class Quotes(IntEnum):
    """What surrounds a value."""

    DOUBLE = 0
    SINGLE = 1
    BARE = 2
    NAKED = 3  #: the attribute has no value, not even an equals sign
    ABSENT = 4  #: the element has no such attribute


USES: Final = tuple(Use)
USE_BITS: Final = 0x1F
QUOTES_AT: Final = 5
QUOTES_BITS: Final = 0x7
SHAPE_AT: Final = 8
SHAPE_BITS: Final = 0xF
#: The element has a target of its own, in another row.
TARGETED: Final = 1 << 12
#: The attribute is formaction, whose target is formtarget.
OF_BUTTON: Final = 1 << 13
#: In a style sheet inside of markup, where `&` may begin a reference to a character.
IN_MARKUP: Final = 1 << 12
#: The rest of a code: the number of a constant text, from 1, which is read instead of the attribute's value, or, of
#: STYLE, behind it; in a target's row, the distance of its reference's row.
EXTRA_AT: Final = 14
#: What is added to a distance, so that it is never negative; 0 says that there is no such row.
NEAR: Final = 1 << 8
_OVERHEAD: Final = 400


def code(use: Use, shape: RowShape = RowShape.URL) -> int:
    """Return the code of a use and a shape, in double quotes."""
    return USES.index(use) | shape << SHAPE_AT


@dataclass(frozen=True, slots=True)
class References:
    """The references of one body, a function of its bytes, its charset and VERSION.

    `base` is the first <base href> as written, or None. `charset` is that of the body, `charset_sent` that of the
    rewritten one, which the browser must know: utf-8 for a body in UTF-16 or ISO-2022. `is_cut` says that a limit
    was met, or that XML is not well-formed; then the rewritten body ends there.
    """

    rows: array[int]
    texts: tuple[str, ...]
    charset: str
    charset_sent: str
    end: int
    is_cut: bool = False
    is_xml: bool = False
    base: str | None = None
    #: Places of `<` whose tags would end a <noscript> for browsers that run scripts only.
    holes: tuple[int, ...] = ()

    @property
    def weight(self) -> int:
        """Bytes of memory, for a cache's bound."""
        words = len(self.rows) * self.rows.itemsize + 8 * len(self.holes)
        return _OVERHEAD + words + sum(2 * len(text) + 60 for text in self.texts)

    def __len__(self) -> int:
        return len(self.rows) // 3


# == escapes, pure ====================================================================================================


#: Encodings in which bytes below 0x80 are not always ASCII's markup. A body in one of them is rewritten as UTF-8.
_NOT_OVER_ASCII = re.compile(r"utf[-_]?(?:16|32|7)|ucs|iso[-_]?2022|hz|johab", re.IGNORECASE)
# Encodings whose second bytes may be `\`, `@`, `{`, `|` or letters, but never what HTML's tokenizer looks at (all of
# that is below 0x40): style sheets alone have to distinguish them.
_SECOND_BYTES = {
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "gb18030": rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])",
    "big5": rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]",
    "cp949": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
}
_ALIASES = {
    "shift_jis": "cp932", "shift_jisx0213": "cp932", "shift_jis_2004": "cp932", "gbk": "gb18030", "gb2312": "gb18030",
    "big5hkscs": "big5", "euc_kr": "cp949",
}  # fmt: skip
_PAIRS = {name: re.compile(pattern) for name, pattern in _SECOND_BYTES.items()}

_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?|([A-Za-z][A-Za-z0-9]*)(;?)(=?))")
_LAST = 0x10FFFF
_MOST_DIGITS = 12
_TO_ESCAPE = re.compile("[&<>\"'\0-\x1f\x7f]")
_SAFE_BARE = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$()*+,;%&|]+")

_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\n\r\f])?|(\r\n|[\s\S]))")
_UNSAFE_STRING = re.compile("[\"'\\\\<>\0-\x1f\x7f-\U0010ffff]")
_UNSAFE_URL = re.compile("[\"'\\\\<>()\0-\x20\x7f-\U0010ffff]")
_NOT_ASCII = re.compile("[^\0-\x7f]")
#: What is before the colon of a reference, as a browser reads it.
SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*)\s*:", re.IGNORECASE)
_NOT_IN_FRAGMENT = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]")
_BEGINS_TAG = re.compile("<(?=[A-Za-z/!?])")
_BEGINS_REFERENCE = re.compile("&(?=[A-Za-z#])")


def as_utf8(body: bytes, charset: str) -> bytes | None:
    """Return the body in UTF-8 if its encoding is not laid over ASCII; else None."""
    if not _NOT_OVER_ASCII.match(charset):
        return None
    if re.match(r"utf[-_]?7", charset, re.IGNORECASE):
        return body.decode("utf-7", "replace").encode("utf-8", "replace")
    return text.decoder(charset).decode(body, final=True).removeprefix("\ufeff").encode("utf-8", "replace")


def decoded(value: bytes, charset: str) -> str:
    """Return `value` as text."""
    if value.isascii():
        return str(value, "ascii")
    return text.decoder(charset).decode(value, final=True)


def joined(base: str, reference: str) -> str:
    """Return where a reference leads from `base`; itself where the two make no URL."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def fragment_of(reference: str) -> str:
    """Return the fragment of a reference, as a URL may have it."""
    _, mark, rest = reference.partition("#")
    return "#" + _NOT_IN_FRAGMENT.sub(lambda match: quote(match[0]), rest.strip()) if mark else ""


def without_second_bytes(body: bytes, charset: str) -> bytes:
    """Return a body of the same length, in which no second byte of a character looks like ASCII."""
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return body
    name = _ALIASES.get(name, name)
    pairs = _PAIRS.get(name)
    if pairs is None or body.isascii():
        return body

    def masked(match: re.Match[bytes]) -> bytes:
        # A pair that is no character is a broken byte, and the second one is ASCII after all.
        pair = match[0]
        try:
            pair.decode(name)
        except ValueError:
            return pair
        return b"\x80" * len(pair)

    return pairs.sub(masked, body)


# --- attributes


def attribute_text(value: str) -> str:
    """Return an attribute's value with its references to characters resolved (HTML section 13.2.5.73)."""
    return _REFERENCE.sub(_resolve_in_attribute, value) if "&" in value else value


def content_text(value: str) -> str:
    """Return text between tags with its references to characters resolved."""
    return _REFERENCE.sub(_resolve_in_content, value) if "&" in value else value


def _resolve_in_attribute(match: re.Match[str]) -> str:
    name = match[3]
    if not name:
        return _numbered(match)
    if match[4]:
        character = entities.html5.get(f"{name};")
        if character is not None:
            return character + match[5]
    # Without its semicolon a name must be whole, and no equals sign may follow: `?a=1&copy=2` has no sign of copyright.
    character = entities.html5.get(name)
    return match[0] if character is None or (match[5] and not match[4]) else character + match[4] + match[5]


def _resolve_in_content(match: re.Match[str]) -> str:
    return unescape(match[0]) if match[3] else _numbered(match)


def _numbered(match: re.Match[str]) -> str:
    digits = (match[1] or match[2]).lstrip("0")[:_MOST_DIGITS]
    number = int(digits or "0", 16 if match[1] else 10)
    if number == 0 or number > _LAST or 0xD800 <= number < 0xE000:
        return "\ufffd"
    if 0x80 <= number < 0xA0:
        # As in windows-1252, where that has a character.
        return bytes((number,)).decode("cp1252", "ignore") or chr(number)
    return chr(number)


def attribute_value(value: str, quotes: Quotes) -> str:
    """Return `value` for an attribute: ASCII, with what has to be around it if there is nothing, or none, yet."""
    if quotes is Quotes.BARE and _SAFE_BARE.fullmatch(value):
        return value.replace("&", "&amp;")
    escaped = _ascii(_TO_ESCAPE.sub(_reference, value))
    if quotes is Quotes.BARE:
        return f'"{escaped}"'
    return f'="{escaped}"' if quotes is Quotes.NAKED else escaped


def markup_text(value: str) -> str:
    """Return `value` as text of an XML document: ASCII."""
    return _ascii(_TO_ESCAPE.sub(lambda match: match[0] if match[0].isspace() else _reference(match), value))


def _reference(match: re.Match[str]) -> str:
    return "&amp;" if match[0] == "&" else "&lt;" if match[0] == "<" else f"&#{ord(match[0])};"


def _ascii(value: str) -> str:
    return value if value.isascii() else value.encode("ascii", "xmlcharrefreplace").decode("ascii")


# --- style sheets


def css_text(value: str) -> str:
    """Return the inside of a string or of url() with its escapes resolved (CSS Syntax section 4.3.7)."""
    return _CSS_ESCAPE.sub(_resolve_escape, value) if "\\" in value else value


def _resolve_escape(match: re.Match[str]) -> str:
    if not match[1]:
        return "" if match[2] in ("\n", "\r", "\f", "\r\n") else match[2]
    number = int(match[1], 16)
    return "\ufffd" if number == 0 or number > _LAST or 0xD800 <= number < 0xE000 else chr(number)


def css_value(value: str, quotes: Quotes, *, in_markup: bool) -> str:
    """Return `value` for the inside of a string or of url(): ASCII; without `&` where that may begin a reference."""
    unsafe = _UNSAFE_URL if quotes is Quotes.BARE else _UNSAFE_STRING
    escaped = unsafe.sub(_escape, value)
    return escaped.replace("&", r"\26 ") if in_markup else escaped


def css_in_doubtful_markup(sheet: str) -> str:
    """Return a sheet that is the same text whether or not its reader looks for tags and references in it: ASCII."""
    return _BEGINS_TAG.sub("< ", _BEGINS_REFERENCE.sub(_escape, _NOT_ASCII.sub(_escape, sheet)))


def _escape(match: re.Match[str]) -> str:
    return f"\\{ord(match[0]):x} "
