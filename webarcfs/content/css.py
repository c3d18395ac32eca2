"""The references of a style sheet: `url()` and `@import`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Comments, namespaces and strings are matched so that a `url(` in them is not. No alternative backtracks (`*+`), which
# keeps the search linear on hostile input.
_TOKENS = re.compile(
    r"""
      /\*.*?(?:\*/|\Z)
    | @namespace[^;]*+
    | (?:url\(\s*+|@import\s*+)(?:"((?:[^"\\\n]|\\.)*+)"?+|'((?:[^'\\\n]|\\.)*+)'?+)
    | url\(\s*+((?:[^)"'\s\\]|\\.)(?:[^)\s\\]|\\.)*+)
    | "(?:[^"\\\n]|\\.)*+"?+
    | '(?:[^'\\\n]|\\.)*+'?+
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)


def references(text: str) -> Iterator[str]:
    """Yield the references of a style sheet, a <style> element or a style attribute, in order, as written."""
    for match in _TOKENS.finditer(text):
        if reference := match[1] or match[2] or match[3]:
            yield _ESCAPE.sub(_unescape, reference) if "\\" in reference else reference


def _unescape(match: re.Match[str]) -> str:
    """Resolve an escape (CSS Syntax section 4.3.7)."""
    if not match[1]:
        return "" if match[2] == "\n" else match[2]
    code = int(match[1], 16)
    return "\ufffd" if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
