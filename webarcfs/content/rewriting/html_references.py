"""The references of a page by their places. Pure.

HTML's tokenizer (its section 13.2.5) is followed over the bytes, without a tree. One thing needs a tree: whether the
content of <style>, <title> and their like is text or markup depends on what is around (a drawing, a menu, a frameset).
What is around is known too widely, never too narrowly, and where it may be either, the content is rewritten so that
both readings see the same tokens.
"""

from __future__ import annotations

import re
from typing import Final

from webarcfs.content.rewriting import escapes
from webarcfs.content.rewriting.attribute_table import RAW_ELEMENTS
from webarcfs.content.rewriting.element_rows import (
    COMMENT,
    MARKUP,
    SHEET,
    SPACE,
    TAGS,
    ElementRows,
    compiled,
    is_self_closing,
)
from webarcfs.content.rewriting.references import IN_MARKUP, MOST_ROWS, References, Shape, Use, code
from webarcfs.content.rewriting.xml_references import XmlReader

# --- what matters in no page: ends, comments, and tags with such attributes only

# Parents of HTML's elements in drawings and formulas (HTML section 13.2.6.5, "integration points").
_POINTS: Final = (
    "annotation-xml", "desc", "foreignobject", "mi", "mn", "mo", "ms", "mtext", "title",
)  # fmt: skip
_ENDS = "|".join((*_POINTS, "svg", "math", "select", "template", "noscript"))
_STARTS = "|".join(
    (*sorted(RAW_ELEMENTS), "svg", "math", "select", "template", "noscript", "frameset", "col", "form", "param")
)
_DULL = (
    r"class|id|title|alt|width|height|name|lang|dir|align|valign|colspan|rowspan|role|border|cellspacing|cellpadding"
    r"|summary|scope|start|type|value|accesskey|bgcolor|color|size|face|d|x|y"
)
_SKIP = compiled(
    rf"""(?:
      [^<]++
    | </ (?!(?:{_ENDS})[{SPACE}/>]) [a-z][^{SPACE}/>]*+ >
    | < (?!(?:{_STARTS})[{SPACE}/>]) [a-z][^{SPACE}/>]*+ (?: [{SPACE}]++ (?:{_DULL})="[^"]*+" )*+ [{SPACE}]*+ /?+ >
    | < (?![a-z/!?])
    | {COMMENT}
    )*+"""
)
# --- text

_RAW_ENDS = {
    name.encode(): compiled(rf"</{name}(?=[{SPACE}/>])") for name in RAW_ELEMENTS if name not in ("plaintext", "script")
}
# Where an element that may be either ends at the latest.
_DOUBTFUL_ENDS = {
    name.encode(): compiled(rf"</(?:{name}|svg|math|select|frameset|template)(?=[{SPACE}/>])") for name in RAW_ELEMENTS
}
# Script data (HTML 13.2.5.4 and following): behind `<!--`, an inner `<script` has an end of its own.
_SCRIPT_PARTS = compiled(rf"<!-- | --> | <(/?)script(?=[{SPACE}/>])")
_NOSCRIPT_END = b"</noscript"
_FOREIGN = (b"svg", b"math")
_CONTEXTS = frozenset((*_FOREIGN, b"select", b"template", b"frameset", b"col", b"noscript"))
_RAW = frozenset(name.encode() for name in RAW_ELEMENTS)
_MASK = code(Use.OTHER, Shape.MASK)
_NOWHERE = 1 << 62


def of_html(
    body: bytes, charset: str, *, is_xml: bool = False, is_inner: bool = False, shows_noscript: bool = False
) -> References:
    """Find the references of a page, in time linear in it; no content raises.

    `charset` is the result of `text.decode_charset`; `is_xml` says that a browser reads the page as XML (XHTML, SVG).
    `is_inner` is for the page of a srcdoc: pages in it are put out of force. `shows_noscript` is for browsers that will
    run no script of the page, but do not know it when they read it: what is for such browsers becomes a part of it.
    """
    changed = escapes.as_utf8(body, charset)
    read, known = (body, charset) if changed is None else (changed, "utf-8")
    reader: XmlReader | _Reader
    if is_xml:
        reader = XmlReader(read, known, is_inner=is_inner)
    else:
        reader = _Reader(read, known, is_inner=is_inner, shows_noscript=shows_noscript)
    stopped = reader.read()
    return References(
        reader.rows,
        tuple(reader.texts),
        charset,
        known,
        stopped,
        is_cut=stopped < len(read),
        is_xml=is_xml,
        base=reader.base,
        holes=tuple(reader.holes) if isinstance(reader, _Reader) else (),
    )


class _Reader(ElementRows):
    """Reads one page of HTML."""

    def __init__(self, body: bytes, charset: str, *, is_inner: bool, shows_noscript: bool) -> None:
        super().__init__(body, charset, is_inner=is_inner)
        # A frameset would be lost behind an element of a body.
        self._shows_noscript = shows_noscript and b"<frameset" not in self.low
        self.holes: list[int] = []
        self._hole = _NOWHERE  # the next `</noscript` inside of an open one
        self._last_hole = self.low.rfind(_NOSCRIPT_END, 0, self.end)
        self._ending = b""  # the element whose content was text, when its end tag is next
        # What may be around. Each is true whenever it is so, and sometimes when it is not.
        self._foreign: list[bytes] = []  # drawings and formulas that are open
        self._was_foreign = False
        self._selects = 0
        self._templates = 0
        self._is_doubtful = False  # for the rest of the page
        self._in_frameset = False

    def read(self) -> int:
        """Find the rows; return the end of what was read."""
        low, end = self.low, self.end
        skip, tags = _SKIP.match, TAGS.match
        most = 3 * MOST_ROWS
        at = 0
        while True:
            match = skip(low, at, end)
            at = match.end() if match else end
            if at > self._hole:
                self._note_holes(at)
            if at >= end:
                return end
            match = tags(low, at, end)
            if match is None:
                at = self._other(at)
            elif match[1]:
                at = match.end()
                if match[2] == b"noscript" and self._shows_noscript:
                    self.insert(match.start(2), "x-")
                    self.is_in_noscript = False
                self._closed(match[2])
            else:
                at = self._opened(match)
            if self.stopped >= 0 or len(self.rows) > most:
                return min(at, end) if self.stopped < 0 else self.stopped
            if at > self._hole:
                self._note_holes(at)

    # --- tokens

    def _other(self, at: int) -> int:
        """Return the end of what is neither text nor a whole tag at `at`."""
        low, end = self.low, self.end
        if low.startswith(b"<!--", at):
            return end  # it has no end
        if self.body.startswith(b"<![CDATA[", at) and self._may_be_foreign():
            return self._cdata(at)
        following = low[at + 1 : at + 3].lstrip(b"/")[:1]
        if following.isalpha() and (low[at + 1 : at + 2] != b"!"):
            return end  # a tag without an end: browsers drop it, and what is in it
        close = low.find(b">", at, end)
        return close + 1 or end

    def _cdata(self, at: int) -> int:
        """Read what is text up to `]]>` in a drawing, and a comment up to `>` elsewhere."""
        comment = self.low.find(b">", at, self.end) + 1 or self.end
        text = self.low.find(b"]]>", at, self.end)
        text = self.end if text < 0 else text + 3
        if text > comment:
            self.rows.extend((comment, text, _MASK))
        return text

    def _closed(self, name: bytes) -> None:
        """Take note of an end tag."""
        ending, self._ending = self._ending, b""
        if name == ending:
            return
        if name in _FOREIGN:
            if self._foreign and self._foreign[-1] == name:
                self._foreign.pop()
        elif name == b"select":
            self._selects = 0
        elif name == b"template":
            self._templates = max(self._templates - 1, 0)
        elif name == b"noscript":
            self._hole = _NOWHERE
        elif self._was_foreign and not self._foreign and name.decode("latin-1") in _POINTS:
            self._is_doubtful = True  # it may lead back into a drawing

    def _may_be_foreign(self) -> bool:
        return bool(self._foreign) or self._is_doubtful

    def _opened(self, match: re.Match[bytes]) -> int:
        """Read a start tag; return the end of what belongs to it."""
        name = match[2]
        begin, end = match.span(3)
        if name == b"noscript" and self._shows_noscript:
            self.insert(match.start(2), "x-")
            self.is_in_noscript = True
        if begin < end or name == b"form":
            self.attributes(name, match)
        end += 1
        if name in _CONTEXTS:
            self._enter(name, match)
        if name in _RAW:
            return self._raw(name, match)
        return end

    def _enter(self, name: bytes, match: re.Match[bytes]) -> None:
        if name in _FOREIGN:
            if not is_self_closing(match):
                self._foreign.append(name)
            self._was_foreign = True
        elif name == b"select":
            self._selects = 1
        elif name == b"template":
            self._templates += 1
            if self._selects:
                self._is_doubtful = True
        elif name == b"frameset":
            self._in_frameset = True
        elif name == b"col":
            if self._templates:
                self._is_doubtful = True
        elif name == b"noscript" and self._hole == _NOWHERE:
            self._hole = self._next_hole(match.end())

    def _next_hole(self, at: int) -> int:
        if at > self._last_hole:
            return _NOWHERE
        return self.low.find(_NOSCRIPT_END, at, self.end)

    def _note_holes(self, at: int) -> None:
        """Note each end of the <noscript> that is none here, since it stands inside of another token."""
        while self._hole < at:
            self.holes.append(self._hole)
            self._hole = self._next_hole(self._hole + 1)

    # --- elements whose content is text

    def _raw(self, name: bytes, match: re.Match[bytes]) -> int:
        """Read the content of such an element; return where its end tag begins."""
        at = match.end()
        foreign = self._may_be_foreign()
        if foreign or self._selects or (self._in_frameset and name != b"noframes"):
            return self._doubtful(name, at, foreign, is_self_closing(match))
        if name == b"plaintext":
            return self.end
        if name == b"script":
            return self._script_end(at)
        found = _RAW_ENDS[name].search(self.low, at, self.end)
        end = found.start() if found else self.end
        if name == b"style" and at < end:
            self.sheet(at, end, 0)
        self._ending = name
        return end

    def _script_end(self, at: int) -> int:
        is_escaped = is_doubly = False
        while found := _SCRIPT_PARTS.search(self.low, at, self.end):
            at = found.end()
            if found[1] is None:
                is_escaped = found[0] == b"<!--"
                if is_escaped:
                    at -= 2  # `<!-->` is both
                else:
                    is_doubly = False
            elif found[1]:
                if not is_doubly:
                    return found.start()
                is_doubly = False
            elif is_escaped:
                is_doubly = True
        return self.end

    def _doubtful(self, name: bytes, at: int, foreign: bool, closes_itself: bool) -> int:
        """Read content that is text for some, and markup for others: both shall see the same tokens."""
        if name == b"plaintext":
            return at  # as markup: where it is text, the references in it are seen and nothing else
        if closes_itself:
            self.insert(at, f"</{name.decode('ascii')}>")
            return at
        found = _DOUBTFUL_ENDS[name].search(self.low, at, self.end)
        end = found.start() if found else self.end
        if at < end:
            if name != b"style":
                if b"<" in self.low[at:end]:
                    self.rows.extend((at, end, _MASK))
            elif MARKUP.search(self.low, at, end):
                self.rows.extend((at, end, SHEET | IN_MARKUP if foreign else SHEET))
            else:
                self.sheet(at, end, IN_MARKUP)
        if found and not self.low.startswith(name, end + 2):
            self.insert(end, f"</{name.decode('ascii')}>")
        return end


_CONTEXTS = frozenset((*_FOREIGN, b"select", b"template", b"frameset", b"col", b"noscript"))
