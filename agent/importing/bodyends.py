"""Whether a body ends as its kind does: proof that it is whole where its Content-Length says that more should come.

Writers change bodies (they unpack them, or insert a line) and leave the head as it was; a connection that broke leaves
the same mark. The end of the body tells one from the other, for kinds that have an end. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webarcfs.warc.decoding import BadBody, BodyFault

#: Bytes of a body's end that are looked at.
TAIL = 1 << 10
#: The first bytes of a kind, and what its last bytes contain.
_KINDS: tuple[tuple[re.Pattern[bytes], re.Pattern[bytes]], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), re.compile(rb"\0\0\0\0IEND\xaeB`\x82\s*\Z")),
    (re.compile(rb"\xff\xd8\xff"), re.compile(rb"\xff\xd9\s*\Z")),
    (re.compile(rb"GIF8[79]a"), re.compile(rb"\0;\s*\Z")),
    (re.compile(rb"%PDF-"), re.compile(rb"%%EOF\s*\Z")),
    (re.compile(rb"PK\x03\x04"), re.compile(rb"PK\x05\x06(?s:.{18,})\Z")),
    (re.compile(rb"(?s:.{0,400})<(?i:html|!doctype html|head|body)"), re.compile(rb"(?i:</html\s*>)(?s:.*>)?\s*\Z")),
    (re.compile(rb"(?s:.{0,400})<(?i:svg)[\s>]"), re.compile(rb"(?i:</svg\s*>)\s*\Z")),
)  # fmt: skip


def ends(start: bytes, tail: bytes) -> bool:
    """Return whether a body with this start and these last bytes is whole; False if its kind does not tell."""
    return any(begin.match(start) and end.search(tail) for begin, end in _KINDS)


def checked(parts: Iterator[bytes], is_shorter: bool) -> Iterator[bytes]:
    """Yield a body of another length than its head says. Raises BadBody for one that is shorter, and may be cut off."""
    start = tail = b""
    for part in parts:
        start = start or part[:TAIL]
        tail = (tail + part)[-TAIL:]
        yield part
    if is_shorter and not ends(start, tail):
        raise BadBody(BodyFault.TRUNCATED)
