"""The DOM that a browser showed, without what would run or hide in it: a page that is read where no script runs. Pure.

Scripts are emptied and have no source. Attributes for events, and refreshes, are put out of force. A <noscript> is
emptied: it is for browsers that run no scripts, and the DOM is what the scripts made. All other bytes stay as they are,
so elements keep their places for style sheets. Addresses with `javascript:` are left to whoever leads references.

This is a courtesy to readers. What keeps scripts from running is the policy of the answer.
"""

from __future__ import annotations

import re

from webarcfs.content.reference_table import MOST_INNER
from webarcfs.content.references import EXTRA_AT, References, RowShape, Use, code
from webarcfs.content.rewriting.assembly import rewritten
from webarcfs.content.rewriting.html_references import ATTRIBUTES, HtmlReader

_CHARSET = "utf-8"
#: Attributes by which a script has its source.
_SOURCES = frozenset({b"src", b"href", b"xlink:href"})
_NOSCRIPT_END = re.compile(rb"</noscript(?=[ \t\n\f\r/>])")
_BLANK = code(Use.OTHER, RowShape.RAW)


def without_scripts(html: bytes, *, depth: int = 0) -> bytes:
    """Return HTML in UTF-8 without its scripts, in time linear in it; no content raises.

    `depth` is the number of pages around a page that is the value of a srcdoc. Only that many are read; the references
    of deeper ones are put out of force by whoever leads references.
    """
    reader = _ScriptReader(html, _CHARSET, depth=depth)
    stopped = reader.read()
    found = References(
        reader.rows, tuple(reader.texts), _CHARSET, _CHARSET, stopped, is_cut=stopped < len(html), base=reader.base
    )
    return rewritten(html, found, lambda _use, _written: None)


class _ScriptReader(HtmlReader):
    """Finds what is taken out of a page."""

    def __init__(self, body: bytes, charset: str, *, depth: int) -> None:
        super().__init__(body, charset, depth=depth, shows_noscript=False)
        self._depth = depth

    def attributes(self, name: bytes, match: re.Match[bytes]) -> None:
        """Add the rows of a start tag."""
        seen: set[bytes] = set()
        for attribute in ATTRIBUTES.finditer(self.low, match.end(2), match.end()):
            key = attribute[1]
            if key in seen:
                continue
            seen.add(key)
            if key.startswith(b"on") or (name == b"script" and key in _SOURCES) or self._is_refresh(name, attribute):
                self.insert(attribute.start(), "x-")
            elif name == b"iframe" and key == b"srcdoc" and self._depth < MOST_INNER:
                page = self._text({key: attribute}, key)
                changed = without_scripts(page.encode("utf-8", "replace"), depth=self._depth + 1).decode()
                if changed != page:
                    self.rows.extend(self._constant(attribute, changed))

    def _is_refresh(self, name: bytes, attribute: re.Match[bytes]) -> bool:
        key = attribute[1]
        if name != b"meta" or key != b"http-equiv":
            return False
        return self._text({key: attribute}, key).strip().lower() == "refresh"

    def _opened(self, match: re.Match[bytes]) -> int:
        if match[2] != b"noscript":
            return super()._opened(match)
        self.attributes(match[2], match)
        end_tag = _NOSCRIPT_END.search(self.low, match.end(), self.end)
        end = end_tag.start() if end_tag else self.end
        self._take_out(match.end(), end)
        return end

    def _script_end(self, at: int) -> int:
        end = super()._script_end(at)
        self._take_out(at, end)
        return end

    def _doubtful(self, name: bytes, at: int, foreign: bool, closes_itself: bool) -> int:
        begin = len(self.rows)
        end = super()._doubtful(name, at, foreign, closes_itself)
        if name == b"script" and at < end:
            added = self.rows[begin:]
            del self.rows[begin:]
            self._take_out(at, end)
            for place in range(0, len(added), 3):
                if added[place] == end:  # the end tag that it gets
                    self.rows.extend(added[place : place + 3])
        return end

    def sheet(self, at: int, end: int, flags: int) -> None:
        """Leave a style sheet as it is."""

    def _take_out(self, at: int, end: int) -> None:
        if at < end:
            self.rows.extend((at, end, _BLANK | self.number("") << EXTRA_AT))
