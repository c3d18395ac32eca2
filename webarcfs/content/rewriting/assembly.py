"""A body with other references, put together from slices. Pure.

Bytes outside of rewritten references stay as they were. What is new is ASCII, and escaped for its place, so that it can
end neither its attribute nor its style sheet.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from webarcfs.content import css_references
from webarcfs.content.reference_table import CANDIDATE, DESCRIPTORS, REFRESH
from webarcfs.content.references import (
    EXTRA_AT,
    IN_MARKUP,
    NEAR,
    OF_BUTTON,
    QUOTES_AT,
    QUOTES_BITS,
    SHAPE_AT,
    SHAPE_BITS,
    TARGETED,
    USE_BITS,
    USES,
    Quotes,
    References,
    Rewritten,
    RowShape,
    Use,
    as_utf8,
    attribute_text,
    attribute_value,
    content_text,
    css_in_doubtful_markup,
    css_text,
    css_value,
    decoded,
    joined,
    markup_text,
)
from webarcfs.content.rewriting.html_references import of_html

#: Gets a reference as written, without escapes, and returns what takes its place, or None to leave it.
Rewrite = Callable[[Use, str], Rewritten | None]

_SHAPES = tuple(RowShape)
_QUOTES = tuple(Quotes)
_URL = RowShape.URL
_SPACE = " \t\n\f\r"
_WORD = re.compile(rf"[^,{_SPACE}]++")
# What divides the text of a style element in a drawing. A comment's content stays a part of the sheet: it may have been
# meant as one. In HTML it stays doubtful what is a tag, so it stays.
_PIECE = r"<!\[CDATA\[([^\]]*+(?:\](?!\]>)[^\]]*+)*+)(?:\]\]>|\Z)|<!--([^-]*+(?:-(?!->)[^-]*+)*+)(?:-->|\Z)"
_PARTS = re.compile(_PIECE)
_XML_PARTS = re.compile(rf"{_PIECE}|<\?[^?]*+(?:\?(?!>)[^?]*+)*+(?:\?>|\Z)|</?[A-Za-z_:][^<>]*+>")
_BEGINS_TAG = re.compile(rb"<(?=[A-Za-z/!?])")


def rewritten(body: bytes, references: References, rewrite: Rewrite, *, depth: int = 0) -> bytes:
    """Return the body with the references that `rewrite` returns, in the encoding `references.charset_sent`.

    `references` must be of this body. `rewrite` is called for each reference in order, with the use and the text as
    written, escapes resolved; if a page's <base> matters, that is `references.base`. `depth` is the
    number of pages around a page that is the value of a srcdoc.
    """
    return b"".join(pieces(body, references, rewrite, depth=depth))


def pieces(body: bytes, references: References, rewrite: Rewrite, *, depth: int = 0) -> Iterator[bytes]:
    """Yield the rewritten body in pieces; the parameters are those of `rewritten`."""
    changed = as_utf8(body, references.charset)
    return _Assembly(body if changed is None else changed, references, rewrite, depth).pieces()


class _Assembly:
    """Puts one body together."""

    def __init__(self, body: bytes, references: References, rewrite: Rewrite, depth: int) -> None:
        self._body = body
        self._of = references
        self._rewrite = rewrite
        self._depth = depth
        self._charset = references.charset_sent
        self._known: dict[int, Rewritten | None] = {}  # results of the references that have a row with a target

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces."""
        body, of = self._body, self._of
        copied = self._with_holes if of.holes else body.__getitem__
        at = 0
        rows = of.rows
        for index in range(0, len(rows), 3):
            begin, end, number = rows[index : index + 3]
            if end > of.end:
                break
            new = self._new(index, begin, end, number)
            if new is None:
                continue
            text, behind = new
            yield copied(slice(at, begin))
            yield text
            at = end
            if behind:
                if number >> QUOTES_AT & QUOTES_BITS < Quotes.BARE:
                    yield body[end : end + 1]
                    at = end + 1
                yield behind
        yield copied(slice(at, of.end))

    def _with_holes(self, part: slice) -> bytes:
        """Return a part of the body in which nothing ends a <noscript> that is still open."""
        holes = self._of.holes
        parts: list[bytes] = []
        at = part.start
        for hole in holes[bisect_left(holes, part.start) : bisect_left(holes, part.stop)]:
            parts += (self._body[at : hole + 1], b" ")
            at = hole + 1
        return b"".join((*parts, self._body[at : part.stop]))

    def _new(self, index: int, begin: int, end: int, number: int) -> tuple[bytes, bytes] | None:
        """Return what takes a row's place, and what comes behind its quote; None if it stays."""
        shape = number >> SHAPE_AT & SHAPE_BITS
        quotes = _QUOTES[number >> QUOTES_AT & QUOTES_BITS]
        if shape == _URL:
            return self._reference(index, begin, end, number, quotes)
        if shape == RowShape.MASK:
            return _BEGINS_TAG.sub(b"< ", self._body[begin:end]), b""
        text: str | None
        if shape == RowShape.CSS:
            text = self._css(begin, end, number, quotes)
        elif shape == RowShape.RAW:
            text = self._constant(number)
        elif shape == RowShape.SHEET:
            text = self._sheet(begin, end, number)
        elif shape == RowShape.ADDED:
            text = self._added(number)
        else:
            if shape == RowShape.TARGET:
                text = self._target(index, begin, end, number)
            else:
                text = self._changed(_SHAPES[shape], begin, end, number)
            text = None if text is None else attribute_value(text, quotes)
        return None if text is None else (text.encode("ascii"), b"")

    def _css(self, begin: int, end: int, number: int, quotes: Quotes) -> str | None:
        value = css_text(decoded(self._body[begin:end], self._charset))
        new = self._rewrite(USES[number & USE_BITS], value)
        return None if new is None else css_value(new.value, quotes, in_markup=bool(number & IN_MARKUP))

    def _added(self, number: int) -> str:
        """Return an attribute that is added to an element, with the space before it."""
        name, _, value = self._constant(number).partition("=")
        use = USES[number & USE_BITS]
        if name == "srcset":
            value = self._srcset(value, use)
        elif name == "style":
            value = self._style(value)
        else:
            value = self._one(use, value) or value
        return f' {name}="{attribute_value(value, Quotes.DOUBLE)}"'

    def _constant(self, number: int) -> str:
        return self._of.texts[(number >> EXTRA_AT) - 1]

    def _written(self, begin: int, end: int) -> str:
        value = self._body[begin:end]
        if b"&" in value:
            return attribute_text(decoded(value, self._charset))
        return decoded(value, self._charset)

    def _result(self, index: int, begin: int, end: int, number: int) -> Rewritten | None:
        if index in self._known:
            return self._known[index]
        written = self._constant(number) if number >> EXTRA_AT else self._written(begin, end)
        new = self._rewrite(USES[number & USE_BITS], written)
        if new is None and number >> EXTRA_AT:
            new = Rewritten(written)  # what is there is another text
        if number & TARGETED:
            self._known[index] = new
        return new

    def _target(self, index: int, begin: int, end: int, number: int) -> str | None:
        """Return the new target of an element: that of its reference, wherever in the element this is."""
        distance = number >> EXTRA_AT
        if not distance:
            new = self._rewrite(Use.TARGET, self._written(begin, end))
            return None if new is None else new.value
        owner = index + 3 * (distance - NEAR)
        new = self._result(owner, *self._of.rows[owner : owner + 3])
        return None if new is None else dict(new.attributes).get("target")

    def _reference(self, index: int, begin: int, end: int, number: int, quotes: Quotes) -> tuple[bytes, bytes] | None:
        new = self._result(index, begin, end, number)
        if new is None:
            return None
        value = attribute_value(new.value, quotes)
        if quotes is Quotes.ABSENT:
            value = f' action="{value}"'
        behind = ""
        for name, text in new.attributes:
            if name == "target":
                if number & TARGETED:
                    continue
                name = "formtarget" if number & OF_BUTTON else name  # noqa: PLW2901 # the button's own word for it
            behind += f' {name}="{attribute_value(text, Quotes.DOUBLE)}"'
        return value.encode("ascii"), behind.encode("ascii")

    # --- values with more than a reference

    def _changed(self, shape: RowShape, begin: int, end: int, number: int) -> str | None:
        """Return the new text of an attribute's value, or None if it stays."""
        if shape is RowShape.VALUE:
            return self._constant(number)
        written = self._written(begin, end)
        if shape is RowShape.SRCSET and number >> EXTRA_AT:
            return self._srcset(self._constant(number), USES[number & USE_BITS])
        if shape is RowShape.STYLE and number >> EXTRA_AT:
            return self._style(f"{written.rstrip().rstrip(';')};{self._constant(number)}")
        changed = written
        use = USES[number & USE_BITS]
        if shape is RowShape.SRCSET:
            changed = self._srcset(written, use)
        elif shape is RowShape.COMMAS:
            folder = self._constant(number) if number >> EXTRA_AT else ""
            changed = _WORD.sub(lambda word: self._one(use, joined(folder, word[0])) or word[0], written)
        elif shape is RowShape.REFRESH:
            changed = self._refresh(written)
        elif shape is RowShape.STYLE:
            changed = self._style(written)
        elif shape is RowShape.SRCDOC:
            changed = self._inner(written)
        return None if changed == written else changed

    def _one(self, use: Use, written: str) -> str | None:
        new = self._rewrite(use, written)
        return None if new is None else new.value

    def _srcset(self, written: str, use: Use) -> str:
        parts, at = [], 0
        while match := CANDIDATE.match(written, at):
            word = match[1]
            bare = word.rstrip(",")
            begin, end = match.start(1), match.start(1) + len(bare)
            parts.append(written[at:begin])
            new = self._one(use, bare)
            parts.append(bare if new is None else _listed(new))
            at = end
            if len(bare) == len(word):
                descriptors = DESCRIPTORS.match(written, at)
                end = descriptors.end() if descriptors else len(written)
                parts.append(written[at:end])
                at = end
        return "".join((*parts, written[at:]))

    def _refresh(self, written: str) -> str:
        match = REFRESH.match(written)
        group = match.lastindex if match else None
        if match is None or group is None or not match[group]:
            return written
        new = self._one(Use.REFRESH, match[group])
        if new is None:
            return written
        if group != 3:
            new = new.replace('"', "%22").replace("'", "%27")
        return f"{written[: match.start(group)]}{new}{written[match.end(group) :]}"

    def _style(self, written: str) -> str:
        sheet = written.encode("utf-8", "replace")
        return rewritten(sheet, css_references.of_css(sheet, "utf-8"), self._rewrite).decode("utf-8")

    def _inner(self, written: str) -> str:
        page = written.encode("utf-8", "replace")
        depth = self._depth + 1
        references = of_html(page, "utf-8", depth=depth)
        rewrite, base = self._rewrite, references.base
        if base is None:
            return rewritten(page, references, rewrite, depth=depth).decode("utf-8", "replace")

        def based(use: Use, text: str) -> Rewritten | None:
            # What is left would be relative to the page's base, which is rewritten as well.
            return rewrite(use, text if use in (Use.BASE, Use.TARGET) else joined(base, text))

        return rewritten(page, references, based, depth=depth).decode("utf-8", "replace")

    def _sheet(self, begin: int, end: int, number: int) -> str | None:
        """Return the content of a style element as one text, which markup does not occur in; None if it stays."""
        written = decoded(self._body[begin:end], self._charset)
        if not number & IN_MARKUP:
            return css_in_doubtful_markup(self._style(written))
        parts, at, is_text = [], 0, True
        for match in (_XML_PARTS if self._of.is_xml else _PARTS).finditer(written):
            between = written[at : match.start()]
            is_text = is_text and match.lastindex is not None and "<" not in between
            parts.append(content_text(between))
            if match.lastindex:
                parts.append(match[match.lastindex])
            at = match.end()
        parts.append(content_text(written[at:]))
        sheet = "".join(parts)
        changed = self._style(sheet)
        if self._of.is_xml:
            # An element in it would have its links, since XML knows no content that is text by its place.
            is_kept = changed == sheet and is_text and "<" not in written[at:]
            return None if is_kept else markup_text(changed)
        return css_in_doubtful_markup(changed)


def _listed(value: str) -> str:
    """Return a URL that is one word of a list, and neither begins nor ends in a comma."""
    value = re.sub(rf"[{_SPACE}]", lambda match: f"%{ord(match[0]):02X}", value)
    return re.sub(r"^,+|,+$", lambda match: "%2C" * len(match[0]), value)
