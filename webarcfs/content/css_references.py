r"""The references of a style sheet by their places: url(), @import, image-set(), src(). Pure.

The tokens are those of CSS Syntax (section 4), so that a `url(` in a string or a comment is none, and `\75 rl(` is one.
An expression passes over what cannot matter; each byte is read a bounded number of times.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain

from webarcfs.content.references import (
    EXTRA_AT,
    IN_MARKUP,
    LONGEST_BODY,
    MOST_ROWS,
    QUOTES_AT,
    SHAPE_AT,
    SHAPE_BITS,
    USE_BITS,
    USES,
    Quotes,
    References,
    RowShape,
    Use,
    as_utf8,
    code,
    css_text,
    without_second_bytes,
)

_SPACE = r" \t\n\r\f"
_ESCAPE = rf"\\(?:[0-9a-fA-F]{{1,6}}+(?:\r\n|[{_SPACE}])?+|[^0-9a-fA-F\n\r\f])"
_NAME = r"A-Za-z0-9_\-\x80-\xff\x00"  # NUL is read as U+FFFD
_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"
# An escape in figures takes the white space behind it along, were it the end of the line.
_IN_STRING = rf"\\(?:[0-9a-fA-F]{{1,6}}+(?:\r\n|[{_SPACE}])?+|\r\n|[\s\S])"
_DOUBLE = rf'[^"\\\n\r\f]*+(?:{_IN_STRING}[^"\\\n\r\f]*+)*+'
_SINGLE = _DOUBLE.replace('"', "'")
_STRINGS = rf"\"{_DOUBLE}(?:\"|\\?\Z|(?=[\n\r\f]))|'{_SINGLE}(?:'|\\?\Z|(?=[\n\r\f]))"
_GAP = rf"(?:[{_SPACE}]++|{_COMMENT})*+"


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"))


# What is between one place of interest and the next: parentheses but those of url, src and image-set do not matter.
_SKIP = _compiled(
    rf"(?:[^\"'\\/@(]++|{_STRINGS}|{_COMMENT}|/(?!\*)|@(?![iInN\\])"
    r"|\((?<![lL]\()(?<![cC]\()(?<![tT]\())*+"
)
# The same inside of image-set(), where strings and parentheses matter.
_SKIP_IN_SET = _compiled(rf"(?:[^\"'\\/()@]++|{_COMMENT}|/(?!\*))*+")
_STRING = _compiled(rf"\"({_DOUBLE})(?:\"|\\?\Z)|'({_SINGLE})(?:'|\\?\Z)")
_BAD_STRING = _compiled(rf"\"{_DOUBLE}|'{_SINGLE}")
_QUOTED = _compiled(rf"[{_SPACE}]*+(?=[\"'])")
# CSS Syntax section 4.3.6: a quote, a parenthesis or a control makes it a bad one, which loads nothing.
_URL = _compiled(
    rf"[{_SPACE}]*+((?:[^\"'()\\{_SPACE}\x01-\x08\x0b\x0e-\x1f\x7f]++|{_ESCAPE})*+(?:\\\Z)?+)[{_SPACE}]*+(?:\)|\Z)"
)
_BAD_URL = _compiled(r"(?:[^)\\]++|\\[\s\S])*+(?:\)|\\?\Z)")
_BEFORE = _compiled(rf"[{_NAME}]*\Z")
_REST = _compiled(rf"((?:[{_NAME}]++|{_ESCAPE})++)(\(?)")
_IMPORT = _compiled(rf"@(?i:import)(?![{_NAME}\\]){_GAP}(?:(?=[\"'])|(?i:url)\()")
_NAMESPACE = _compiled(rf"@(?i:namespace)(?![{_NAME}\\]){_GAP}(?:[{_NAME}]++(?!\(){_GAP})?+")
_URL_OPEN = _compiled(r"(?i:url)\(")
#: Longer names than the longest that matters are no such names.
_LONGEST_NAME = 40
_SETS = {b"image-set": Use.IMAGE, b"-webkit-image-set": Use.IMAGE, b"src": Use.OTHER}
# Functions whose value is not known here. A set of images that takes one is put out of force.
_UNKNOWN = frozenset({b"var", b"attr", b"env", b"if", b"inherit", b"first-valid"})
_CSS = {use: code(use, RowShape.CSS) for use in Use}
_DISABLE = code(Use.OTHER, RowShape.RAW) | 1 << EXTRA_AT
#: The constant texts of a sheet's rows; those of a page begin with the same.
CSS_TEXTS = ("x-",)


def of_css(body: bytes, charset: str) -> References:
    """Find the references of a style sheet; `charset` is the result of `text.decode_charset`. No content raises."""
    changed = as_utf8(body, charset)
    read, known = (body, charset) if changed is None else (changed, "utf-8")
    end = min(len(read), LONGEST_BODY)
    rows: array[int] = array("I")
    stopped = find(without_second_bytes(read[:end], known), 0, end, rows, 0)
    return References(rows, CSS_TEXTS, charset, known, stopped, is_cut=stopped < len(read))


def written(sheet: str) -> Iterator[tuple[Use, str]]:
    """Yield the references of a style sheet in order, with their uses, as written, escapes resolved."""
    body = sheet.encode("utf-8", "replace")
    rows = of_css(body, "utf-8").rows
    for index in range(0, len(rows), 3):
        begin, end, number = rows[index : index + 3]
        if number >> SHAPE_AT & SHAPE_BITS == RowShape.CSS:
            yield USES[number & USE_BITS], css_text(body[begin:end].decode("utf-8", "replace"))


def find(sheet: bytes, begin: int, end: int, rows: array[int], flags: int) -> int:
    """Add the rows of the sheet in `sheet[begin:end]`; return its end, or where there were too many.

    `flags` is 0, or IN_MARKUP.
    """
    return _Reader(sheet, begin, end, rows, flags).read()


class _Reader:
    """Reads one style sheet."""

    def __init__(self, sheet: bytes, begin: int, end: int, rows: array[int], flags: int) -> None:
        self._sheet = sheet
        self._begin = begin
        self._end = end
        self._rows = rows
        self._flags = flags & IN_MARKUP
        # Of each open parenthesis in the outermost set: the use of its strings, if it is a set, and the set's name.
        self._open: list[tuple[Use | None, int]] = []
        self._disabled: list[int] = []

    def read(self) -> int:
        """Add the rows; return the end, or where there were too many."""
        first = len(self._rows)
        stopped = self._read()
        if self._disabled:
            added = self._rows[first:]
            rows = list(zip(added[::3], added[1::3], added[2::3], strict=True))
            rows += ((at, at, _DISABLE) for at in self._disabled)
            self._rows[first:] = array("I", chain.from_iterable(sorted(rows)))
        return stopped

    def _read(self) -> int:
        sheet, end, rows = self._sheet, self._end, self._rows
        readers: dict[int, Callable[[int], int]] = {
            ord("("): self._function, ord("\\"): self._escaped, ord("@"): self._rule, ord(")"): self._closed,
            ord('"'): self._string, ord("'"): self._string,
        }  # fmt: skip
        most = 3 * MOST_ROWS
        at = self._begin
        while True:
            match = (_SKIP_IN_SET if self._open else _SKIP).match(sheet, at, end)
            at = match.end() if match else end
            if at >= end:
                return end
            if len(rows) >= most:
                return at
            at = readers[sheet[at]](at)

    def _row(self, begin: int, end: int, use: Use, quotes: Quotes) -> None:
        if begin < end:
            self._rows.extend((begin, end, _CSS[use] | quotes << QUOTES_AT | self._flags))

    def _name_before(self, at: int) -> tuple[bytes, int]:
        """Return the name that ends at `at`, in lower case, and its beginning; empty if it is no function's."""
        floor = max(self._begin, at - _LONGEST_NAME)
        match = _BEFORE.search(self._sheet, floor, at)
        begin = match.start() if match else at
        if begin > self._begin and self._sheet[begin - 1] in b"#@":
            return b"", begin
        return self._sheet[begin:at].lower(), begin

    def _function(self, at: int) -> int:
        name, begin = self._name_before(at)
        return self._called(name, begin, at + 1)

    def _called(self, name: bytes, begin: int, at: int) -> int:
        """Read on behind the parenthesis of a function."""
        if name == b"url":
            return self._url(at, (self._open[-1][0] if self._open else None) or Use.OTHER)
        if name in _SETS:
            self._open.append((_SETS[name], begin))
        elif self._open:
            use, outer = self._open[-1]
            if use is not None and outer >= 0 and name in _UNKNOWN:
                self._disabled.append(outer)
                self._open[-1] = (use, -1)
            self._open.append((None, -1))
        return at

    def _closed(self, at: int) -> int:
        if self._open:
            self._open.pop()
        return at + 1

    def _url(self, at: int, use: Use) -> int:
        """Read the inside of url( at `at`; return the end of what is certain."""
        sheet, end = self._sheet, self._end
        if match := _QUOTED.match(sheet, at, end):
            if self._open:
                self._open.append((None, -1))
            return self._quoted(match.end(), use)
        if match := _URL.match(sheet, at, end):
            self._row(match.start(1), match.end(1), use, Quotes.BARE)
        else:
            match = _BAD_URL.match(sheet, at, end)
        return match.end() if match else end

    def _quoted(self, at: int, use: Use | None) -> int:
        match = _STRING.match(self._sheet, at, self._end)
        if match is None:  # it ends with its line: then it is none
            bad = _BAD_STRING.match(self._sheet, at, self._end)
            return bad.end() if bad else at + 1
        if use is not None:
            group = match.lastindex or 1
            self._row(match.start(group), match.end(group), use, Quotes.DOUBLE if group == 1 else Quotes.SINGLE)
        return match.end()

    def _string(self, at: int) -> int:
        return self._quoted(at, self._open[-1][0] if self._open else None)

    def _rule(self, at: int) -> int:
        sheet, end = self._sheet, self._end
        if match := _IMPORT.match(sheet, at, end):
            if sheet[match.end() - 1 : match.end()] == b"(":
                return self._url(match.end(), Use.STYLE)
            return self._quoted(match.end(), Use.STYLE)
        if match := _NAMESPACE.match(sheet, at, end):
            # A namespace is a name, which nothing loads.
            at = match.end()
            if opened := _URL_OPEN.match(sheet, at, end):
                length = len(self._rows)
                at = self._url(opened.end(), Use.OTHER)
                del self._rows[length:]
            elif sheet[at : at + 1] in (b'"', b"'"):
                at = self._quoted(at, None)
            return at
        return at + 1

    def _escaped(self, at: int) -> int:
        """Read a name with an escape at `at`, which may be that of a function or of a rule."""
        sheet, end = self._sheet, self._end
        match = _REST.match(sheet, at, end)
        if match is None:
            return at + 1
        before = _BEFORE.search(sheet, max(self._begin, at - _LONGEST_NAME), at)
        begin = before.start() if before else at
        # Longer ones matter no more than longer ones without escapes.
        written = sheet[begin : min(match.end(1), begin + 8 * _LONGEST_NAME)]
        name = css_text(written.decode("latin-1")).lower().encode("latin-1", "replace")
        sign = sheet[begin - 1 : begin] if begin > self._begin else b""
        if sign == b"@" and name == b"import" and not match[2]:
            return self._imported(match.end())
        if match[2]:
            return self._called(b"" if sign in (b"@", b"#") else name, begin, match.end())
        return match.end()

    def _imported(self, at: int) -> int:
        gap = _GAP_ONLY.match(self._sheet, at, self._end)
        at = gap.end() if gap else at
        return self._quoted(at, Use.STYLE) if self._sheet[at : at + 1] in (b'"', b"'") else at


_GAP_ONLY = _compiled(_GAP)
