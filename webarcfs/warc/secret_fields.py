"""Blanks the values of header fields that may have secrets: cookies, and what HTTP's authentication sends. Pure.

A value becomes as many asterisks, so that sizes and all else stay. Lines are read as leniently as by any program that
takes them for fields: a line that continues another one is a part of its value, and a lone CR ends a line as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

#: What servers answer to whom they know, in lower case; every `proxy-…` beside it.
_OF_RESPONSES: Final = frozenset({
    b"set-cookie", b"set-cookie2", b"cookie", b"cookie2",
    b"authorization", b"www-authenticate", b"optional-www-authenticate", b"authentication-info",
    b"authentication-control", b"x-auth-token", b"x-access-token", b"x-csrf-token", b"x-xsrf-token",
})  # fmt: skip
_END: Final = re.compile(rb"(\r\n|\n|\r)")
_UNSEEN: Final = re.compile(rb"[\x00-\x20\x7f-\xa0]+")
_SHOWN: Final = re.compile(rb"[^ \t]")


def blank(headers: bytes, is_secret: Callable[[bytes], bool]) -> bytes:
    """Return the head of an HTTP message without the values of some fields, by their names in lower case."""
    lines = _END.split(headers)
    in_secret = False
    for index in range(2, len(lines), 2):  # behind the first line, every second one is an end of line
        line = lines[index]
        name, colon, value = line.partition(b":")
        if line[:1] in (b" ", b"\t") and in_secret:
            lines[index] = _SHOWN.sub(b"*", line)
            continue
        in_secret = bool(colon) and is_secret(_UNSEEN.sub(b"", name).lower())
        if in_secret:
            lines[index] = name + colon + _SHOWN.sub(b"*", value)
    return b"".join(lines)


def blank_response(headers: bytes) -> bytes:
    """Return the headers of a response without what it may say to somebody alone; the same object for nothing."""
    blanked = blank(headers, _is_secret)
    return headers if blanked == headers else blanked


def _is_secret(name: bytes) -> bool:
    return name in _OF_RESPONSES or name.startswith(b"proxy-")
