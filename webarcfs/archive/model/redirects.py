"""The redirects of a domain, as its tree keeps them: lists of lines below `%redirects/`. Pure.

A line is `URL TAB STATUS TAB TARGET TAB TIME`. URL and TARGET are canonical and have a scheme, TARGET also a fragment;
TIME is UTC (`YYYY-MM-DDThh:mm:ssZ`), when the server first sent this status with this target. The list of a URL is
`%redirects/<xx>/<yy>`, by the first four hex digits of the SHA-256 of the URL, sorted by URL: so a change rewrites a
list of a few lines. No document can have that path: in the name of an ARC, two hex digits follow a `%`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from webarcfs.archive.model.errors import Damaged, UrlRefused
from webarcfs.archive.model.metadata import format_utc
from webarcfs.archive.model.url import canonical, joined

#: The folder of the lists, in the root of a domain's tree.
REDIRECTS = "%redirects"
#: HTTP statuses of redirects (RFC 9110 section 15.4).
STATUSES = frozenset({301, 302, 303, 307, 308})
#: Longest URL and longest target, in characters; a redirect with a longer one is not kept.
LONGEST_TARGET = 2_000
#: Length of a chain of redirects that is followed, as browsers do (the WHATWG Fetch standard, HTTP-redirect fetch).
LONGEST_CHAIN = 20
#: Most lines of one list; an honest site has one or two in each.
MOST_LINES = 2_000

_LINE = re.compile(r"(https?://[^\s]+)\t(\d{3})\t(https?://[^\s]+)\t(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", re.ASCII)
_FRAGMENT = re.compile(rb"[^A-Za-z0-9\-._~!*'();:@&=+$,/?%]|%(?![0-9A-Fa-f]{2})")
_PLACE = re.compile(rf"{REDIRECTS}/[0-9a-f]{{2}}/[0-9a-f]{{2}}")


@dataclass(frozen=True, slots=True, order=True)
class Redirect:
    """One redirect: a line of a list. `time` is UTC."""

    url: str
    status: int
    target: str
    time: datetime

    def leads_as(self, other: Redirect) -> bool:
        """Return whether both say the same: status and target."""
        return (self.url, self.status, self.target) == (other.url, other.status, other.target)

    @property
    def is_to_itself(self) -> bool:
        """Whether it leads to its own URL: evidence that the server sent it, and nothing to follow."""
        return without_fragment(self.target) == self.url

    def __str__(self) -> str:
        return f"{self.url}\t{self.status}\t{self.target}\t{format_utc(self.time)}"


def place_of(url: str) -> str:
    """Return the path of the list of a canonical URL, in the tree of its domain."""
    digest = hashlib.sha256(url.encode()).hexdigest()
    return f"{REDIRECTS}/{digest[:2]}/{digest[2:4]}"


def is_place(path: str) -> bool:
    """Return whether a list may have this path in the tree of a domain."""
    return _PLACE.fullmatch(path) is not None


def is_inside(path: str) -> bool:
    """Return whether a path in the tree of a domain belongs to the redirects."""
    return path == REDIRECTS or path.startswith(f"{REDIRECTS}/")


def write_list(redirects: Iterable[Redirect]) -> bytes:
    """Return a list: the lines of redirects, sorted."""
    return b"".join(f"{each}\n".encode() for each in sorted(redirects))


def read_list(raw: bytes, place: str = "") -> list[Redirect]:
    """Return the redirects of a list, sorted by URL, each URL once.

    Raises Damaged for anything that `write_list` does not write; with `place`, also for a URL of another list.
    """
    try:
        lines = raw.decode("ascii").split("\n")
        found = [_read_line(line) for line in lines[:-1]]
    except ValueError as error:
        raise Damaged(f"no list of redirects: {error}") from None
    if lines[-1]:
        raise Damaged("no list of redirects: its last line has no end")
    if any(one.url >= other.url for one, other in pairwise(found)):
        raise Damaged("no list of redirects: its lines are not sorted by URL")
    if place and (strange := next((each.url for each in found if place_of(each.url) != place), None)):
        raise Damaged(f"{strange} does not belong into this list")
    return found


def _read_line(line: str) -> Redirect:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{line[:200]!r} is no URL, status, target and time")
    url, status, target, time = match.groups()
    if int(status) not in STATUSES:
        raise ValueError(f"{status} is no status of a redirect")
    return Redirect(url, int(status), target, datetime.fromisoformat(time).astimezone(UTC))


def target_of(url: str, location: str) -> str:
    """Return the target of a redirect from `url`, by its header Location: canonical, with its fragment.

    A relative one is resolved as browsers do; one without a fragment has that of `url` (RFC 9110 section 10.2.2), which
    has none here. Bytes that are not UTF-8 stay those bytes, escaped.
    Returns an empty string where it is no URL that can be archived.
    """
    text = _decoded(location.encode("latin-1", "replace")).strip()
    if not text:
        return ""
    try:
        address, sign, fragment = text.partition("#")
        target = canonical(joined(url, address))
    except (UrlRefused, ValueError):
        return ""
    return target + (f"#{_escaped(fragment)}" if sign and fragment else "")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)


def _escaped(fragment: str) -> str:
    """Return a fragment with escapes where RFC 3986 section 3.5 needs them."""
    raw = _FRAGMENT.sub(lambda match: b"".join(b"%%%02X" % byte for byte in match[0]), fragment.encode())
    return raw.decode("ascii")


def is_too_long(url: str) -> bool:
    """Return whether a URL or a target is too long to be kept."""
    return len(url) > LONGEST_TARGET


def without_fragment(target: str) -> str:
    """Return the URL that a target asks a server for."""
    return target.partition("#")[0]
