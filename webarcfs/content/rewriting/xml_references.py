"""The references of a document that browsers read as XML: XHTML, SVG, any other. Pure.

No element's content is text by its name; prefixes of names may be any; what is declared in the document's type may
bring in markup, and is put out of force then. What is not well-formed ends the page, as in browsers.
"""

from __future__ import annotations

import re

from webarcfs.content.rewriting.element_rows import (
    MARKUP,
    SHEET,
    SPACE,
    TAG,
    ElementRows,
    compiled,
    is_self_closing,
)
from webarcfs.content.rewriting.references import (
    EXTRA_AT,
    IN_MARKUP,
    MOST_ROWS,
    QUOTES_AT,
    Quotes,
    Shape,
    Use,
    code,
)

# Names may begin with more in XML, and their prefix may be anything.
_TAGS = compiled(TAG.replace("[a-z]", r"[a-z_:\x80-\xff]"))

_SKIP = compiled(
    rf"""(?:
      [^<]++
    | </ [^>]*+ >
    | <!-- [^-]*+ (?: -(?!->) [^-]*+ )*+ -->
    | <!\[cdata\[ [^\]]*+ (?: \](?!\]>) [^\]]*+ )*+ \]\]>
    | <\? (?!xml-stylesheet[{SPACE}?]) [^?]*+ (?: \?(?!>) [^?]*+ )*+ \?>
    | < (?![a-z_:\x80-\xff/!?])
    )*+"""
)

_STYLE_END = compiled(rf"</(?:[^{SPACE}/>:]*+:)?style(?=[{SPACE}/>])")
# An instruction ends at its first `?>`, whatever quotes are open. What its pseudo attributes say is certain only where
# all of them are plain.
_PI = re.compile(rb"<\?xml-stylesheet((?:[^?]++|\?(?!>))*+)\?>")
_PSEUDO = re.compile(rb"""[ \t\r\n]++([a-z]+)[ \t\r\n]*+=[ \t\r\n]*+(?:"([^"<&]*+)"|'([^'<&]*+)')""")
_PLAIN = re.compile(rb"(?:" + _PSEUDO.pattern + rb")*+[ \t\r\n]*+")
_ASIDE = rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+-->|<\?[^?]*+(?:\?(?!>)[^?]*+)*+\?>"
_DOCTYPE = re.compile(
    rb"""<!doctype(?:[^\[>"']++|"[^"]*+"|'[^']*+')*+
    (?:\[((?:[^\]"'<]++|"[^"]*+"|'[^']*+'|"""
    + _ASIDE
    + rb"""|<(?!!--|\?))*+)\][ \t\r\n]*+)?+>""",
    re.VERBOSE,
)
_DECLARATIONS = re.compile(_ASIDE + rb"""|<!(entity|attlist)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""", re.VERBOSE)
_LINK = code(Use.STYLE)
_RAW = code(Use.OTHER, Shape.RAW)


class XmlReader(ElementRows):
    """Reads one page of XML."""

    declares_entities = True

    def read(self) -> int:
        """Find the rows; return the end of what was read: an error, or the end."""
        low, end = self.low, self.end
        most = 3 * MOST_ROWS
        at = 0
        while True:
            match = _SKIP.match(low, at, end)
            at = match.end() if match else end
            if at >= end:
                return end
            match = _TAGS.match(low, at, end)
            if match is None:
                after = self._other(at)
                if after < 0:
                    return at
                at = after
            else:
                at = self._opened(match)
            if self.stopped >= 0 or len(self.rows) > most:
                return min(at, end) if self.stopped < 0 else self.stopped

    def _other(self, at: int) -> int:
        """Return the end of a processing instruction or of the document's type; -1 if it has none."""
        if match := _PI.match(self.low, at, self.end):
            self._instruction(match)
        elif (match := _DOCTYPE.match(self.low, at, self.end)) is not None and match[1]:
            self._subset(*match.span(1))
        return match.end() if match else -1

    def _instruction(self, match: re.Match[bytes]) -> None:
        """Read a style sheet's instruction; those of XSLT, which makes another document, are put out of force."""
        found: dict[bytes, re.Match[bytes]] = {}
        for each in _PSEUDO.finditer(self.low, *match.span(1)):
            found.setdefault(each[1], each)
        kind = found.get(b"type")
        is_css = kind is None or (kind[2] or kind[3] or b"") in (b"", b"text/css")
        if not is_css or not _PLAIN.fullmatch(match[1]):
            self.insert(match.start() + 2, "x-")
        elif b"href" in found:
            href = found[b"href"]
            group = href.lastindex or 2
            quotes = Quotes.DOUBLE if group == 2 else Quotes.SINGLE
            self.rows.extend((*href.span(group), _LINK | quotes << QUOTES_AT))

    def _subset(self, begin: int, end: int) -> None:
        """Put declarations out of force that bring in markup or attributes: they would not be read here."""
        for declared in _DECLARATIONS.finditer(self.low, begin, end):
            if declared[1] is None:
                if instruction := _PI.match(self.low, declared.start(), end):
                    self._instruction(instruction)
                continue
            text = declared[2]
            literals = text.partition(b'"')[2] + text.partition(b"'")[2]
            if literals and (declared[1] == b"attlist" or b"<" in literals or b"&" in literals or b"%" in literals):
                number = self.number("")
                self.rows.extend((*declared.span(), _RAW | number << EXTRA_AT))

    def _opened(self, match: re.Match[bytes]) -> int:
        name = match[2].rpartition(b":")[2]
        if match.start(3) < match.end(3) or name == b"form":
            self.attributes(name, match)
        at = match.end()
        if name != b"style" or is_self_closing(match):
            return at
        found = _STYLE_END.search(self.low, at, self.end)
        end = found.start() if found else self.end
        if at < end:
            if MARKUP.search(self.low, at, end):
                self.rows.extend((at, end, SHEET | IN_MARKUP))
            else:
                self.sheet(at, end, IN_MARKUP)
        return end

    def _key(self, name: bytes) -> bytes:
        # The prefix of XLink may be any.
        return b"xlink:href" if b":" in name and name.endswith(b":href") else name
