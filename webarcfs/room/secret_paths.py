"""Parts of paths that open something without a login, taken out of what is logged. Pure.

These are a reader with rights (`/~<token>/…`), a preview of the desk (`/s/<token>/…`), a feed (`/feed/<secret>.atom`).
They stand in paths, referrers, and in queries that lead back to a path; a client may escape any of their characters,
and what quotes a URL escapes it once more.
"""

from __future__ import annotations

import re


def _in_any_form(text: str) -> str:
    """Return an expression for a text whose characters may each be escaped, however often."""
    return "".join(f"(?:{re.escape(char)}|%(?:25)*{ord(char):02x})" for char in text)


_SLASH = _in_any_form("/")
_END = f"{_SLASH}|{_in_any_form('?')}|[&#\\s\"']"
_SECRET = re.compile(
    f"({_SLASH}(?:{_in_any_form('~')}|{_in_any_form('s')}{_SLASH}|{_in_any_form('feed')}{_SLASH}))(?:(?!{_END}).)+",
    re.IGNORECASE | re.DOTALL,
)


def without_secrets(text: str) -> str:
    """Return a text with `-` in place of each secret."""
    return _SECRET.sub(r"\1-", text)
