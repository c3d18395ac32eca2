"""The places of the references in one body, as values that a cache can keep. Pure.

A row is three numbers: where the reference begins, where it ends, and a code of what stands there. A page of 50 kB has
some 500 rows, so they are kept in one array, 12 bytes each.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

#: Counts up whenever the same bytes may get other rows, or the same rows another output.
VERSION: Final = 2
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


class Shape(IntEnum):
    """What stands between the two ends of a row."""

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
#: The rest of a code: the number of a constant text, from 1; in a target's row, the distance of its reference's row.
EXTRA_AT: Final = 14
#: What is added to a distance, so that it is never negative; 0 says that there is no such row.
NEAR: Final = 1 << 8
_OVERHEAD: Final = 400


def code(use: Use, shape: Shape = Shape.URL) -> int:
    """Return the code of a use and a shape, in double quotes."""
    return USES.index(use) | shape << SHAPE_AT


@dataclass(frozen=True, slots=True)
class References:
    """The references of one body, a function of its bytes, its charset and VERSION.

    `base` is the first <base href> as written, or None. `charset` is that of the body, `charset_sent` that of the
    rewritten one, which the browser must be told: utf-8 for a body in UTF-16 or ISO-2022. `is_cut` says that a limit
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
