"""The URLs of the room: those below `/web/`, `/timemap/`, `/diff/`, as the Wayback Machine writes them. Pure.

    /web/<digits><modifier>/<url>       a page in the state of a time      Replay
    /web/<digits>rf_/<url>              the same as a browser showed it, in the room's frame; `rn_` without
    /web/<url>                          the TimeGate                       TimeGate
    /web/*/<url>  /web/<year>*/<url>    the calendar                       Calendar
    /web/*/<prefix>*                    URLs below a prefix                PrefixList
    /timemap/<format>/<url>             the list of mementos               TimeMap (also below /web/)
    /timemap/<format>/<digits>/<url>    the same, from a time on
    /diff/<digits>..<digits>/<url>      what changed                       Diff

The archived URL is what is raw behind the prefix, with the query string. It is not percent-decoded, unless all of it
was encoded, its scheme included (`http%3A//e.org/a%3Fb`), as some programs do: then one layer is taken off. An empty
query cannot be distinguished from none.

Times are digits, `YYYYMMDDhhmmss` in UTC. One to 14 digits and a slash are always a time: fewer than 14 name a span,
and are its end. Impossible times are clamped part by part, as the Wayback Machine does: month 13 is December, 30
February its last day.

A reader's name may precede the path: `/~<token>/web/…`. Replay neither sets nor reads cookies. A reader whom a trusted
proxy names to the room gets the name signed, with an end within twelve hours; workers share the key. A token that is
not valid any more names nobody: the public.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from itsdangerous import BadData, URLSafeTimedSerializer

from webarcfs.access.gate import Reader
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import format_digits
from webarcfs.archive.model.urls import canonical, replay_address
from webarcfs.archive.model.urls import parse as parse_url

# == timestamps, pure =================================================================================================


#: Smallest and largest second that 14 digits can name.
FIRST_SECOND = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())
LAST_SECOND = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


@lru_cache(4096)  # the captures of a crawl share theirs
def digits_of(seconds: int) -> str:
    """Return the 14 digits of a time (seconds since 1970, UTC), years 1 to 9999; other times are clamped."""
    return format_digits(min(max(seconds, FIRST_SECOND), LAST_SECOND))


def seconds_of(digits: str) -> int:
    """Return the time (seconds since 1970, UTC) of 14 digits that name one. Raises ValueError for other digits."""
    if len(digits) != 14 or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{digits!r} are not the 14 digits of a time")
    parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2))]
    year, month, day, hour, minute, second = parts
    return calendar.timegm(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timetuple())


def span_begin(digits: str) -> str:
    """Return the 14 digits of the first second of the span that one to 14 digits name, clamped."""
    return _clamped(digits.ljust(14, "0"))


def span_end(digits: str) -> str:
    """Return the 14 digits of the last second of the span that one to 14 digits name, clamped."""
    return _clamped(digits.ljust(14, "9"))


def _clamped(digits: str) -> str:
    year = max(int(digits[:4]), 1)
    month = min(max(int(digits[4:6]), 1), 12)
    day = min(max(int(digits[6:8]), 1), calendar.monthrange(year, month)[1])
    hour, minute, second = min(int(digits[8:10]), 23), min(int(digits[10:12]), 59), min(int(digits[12:]), 59)
    return f"{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"


# == replay url, pure =================================================================================================


#: Longest URL that is read, in bytes, with its query.
LONGEST_URL = 8_000

_TIME = re.compile(rb"([0-9]{1,14})([A-Za-z]{1,6}_)?/")
#: Those of modules, the only ones with more than two letters.
_OF_MODULES = rb"esm_|wkrm_"
_ONLY_TIME = re.compile(rb"[0-9]*(?:[A-Za-z]{2}_|%b)?|\*|[0-9]{1,14}\*" % _OF_MODULES)
_TOO_LONG_TIME = re.compile(rb"[0-9]{15,}[A-Za-z_]*/")
_ONLY_MODIFIER = re.compile(rb"([a-z]{2}_|%b)/" % _OF_MODULES)
_CALENDAR = re.compile(rb"([0-9]{0,14})\*/")
_TIMEMAP = re.compile(rb"timemap/([^/]*)/(?:([0-9]{1,14})/)?")
_DIFF = re.compile(rb"/diff/([0-9]{1,14})\.\.([0-9]{1,14})/")
_CONTROL = re.compile(rb"[\x00-\x20\x7f]")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
# Proxies fold `//`, so one slash is enough behind the scheme.
_WEB = re.compile(r"(https?):(//?)(?!/)(.*)", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9]+(?:[/?]|$))")
_ENCODED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?:%3a|:(?:%2f|/%2f))", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/?]*")
_ESCAPED_BRACKETS = re.compile(r"%5B([0-9A-Fa-f:.]+)%5D", re.IGNORECASE)
#: What a canonical URL may consist of, with a fragment or not: safe in a header and, escaped for HTML, in an attribute.
_SAFE = re.compile(
    r"https?://[a-z0-9._\[\]:-]+/[A-Za-z0-9\-._~!*'();:@&=+$,/?%]*(?:#[A-Za-z0-9\-._~!*'();:@&=+$,/?%]*)?"
)


class Modifier(StrEnum):
    """What is wanted of a capture: the frame around it, one of pywb's modifiers, or one of ours.

    Ours are `rn_` for the page as a browser showed it, and `rf_` for the frame around that.
    """

    FRAME = ""
    PAGE = "mp_"
    AS_SENT = "id_"
    SCRIPT = "js_"
    MODULE = "esm_"
    MODULE_WORKER = "wkrm_"
    SHEET = "cs_"
    IMAGE = "im_"
    INNER_FRAME = "fr_"
    IFRAME = "if_"
    OBJECT = "oe_"
    RENDERED = "rn_"
    RENDERED_FRAME = "rf_"


#: Pages of the room around an archived page.
FRAMES = frozenset({Modifier.FRAME, Modifier.RENDERED_FRAME})
#: Module scripts, of pages and of workers.
MODULES = frozenset({Modifier.MODULE, Modifier.MODULE_WORKER})
#: What pages embed. It may come from the state that is nearest in time.
EMBEDDED = MODULES | {Modifier.IMAGE, Modifier.SCRIPT, Modifier.SHEET, Modifier.OBJECT}


class MapFormat(StrEnum):
    """A form of TimeMaps."""

    LINK = "link"
    JSON = "json"
    CDXJ = "cdxj"


class UrlFault(StrEnum):
    """Why a URL is refused, for people."""

    ELSEWHERE = "this is no URL of the archive's replay"
    EMPTY = "there is no URL behind the time"
    TOO_LONG = "the URL is too long"
    CONTROL = "the URL contains control characters, spaces or #"
    BACKSLASH = "the URL contains backslashes"
    SCHEME = "only http and https are archived"
    USERINFO = "the URL contains a user's name"
    ENCODED = "the URL is percent-encoded; write it as it is"
    HOST = "the URL names no valid host"
    TIME = "a time has 14 digits at most"
    MODIFIER = "the modifier behind the time is unknown"
    FORMAT = "a TimeMap is link, json or cdxj"


@dataclass(frozen=True, slots=True)
class Replay:
    """`/web/<digits><modifier>/<url>`. `digits` are 14, `seconds` the same time, both UTC.

    `must_redirect`: the digits were not written like that, or the URL was written in a way (no scheme, no slash behind
    the host) against which a browser would resolve a page's references wrongly. `location` is right. What only a proxy
    may have changed (`http:/e.org`) must not redirect: it would again.
    """

    digits: str
    seconds: int
    modifier: Modifier
    url: str
    must_redirect: bool = False

    @property
    def location(self) -> str:
        """The URL in its canonical spelling."""
        return replay_path(self.digits, self.modifier, self.url)


@dataclass(frozen=True, slots=True)
class TimeGate:
    """`/web/<url>`, or `/web/<modifier>/<url>`. A missing scheme needs no redirect before that of the TimeGate."""

    url: str
    modifier: Modifier = Modifier.FRAME

    @property
    def location(self) -> str:
        """The URL in its canonical spelling."""
        return timegate_path(self.url, self.modifier)


@dataclass(frozen=True, slots=True)
class Calendar:
    """`/web/*/<url>`; with digits before the `*`, those of `year`."""

    url: str
    year: int | None = None

    @property
    def location(self) -> str:
        """The URL in its canonical spelling."""
        return calendar_path(self.url, self.year)


@dataclass(frozen=True, slots=True)
class PrefixList:
    """`/web/*/<prefix>*`. `prefix` is canonical, but for its dot segments, since it may end inside a name."""

    prefix: str

    @property
    def location(self) -> str:
        """The URL in its canonical spelling."""
        return prefix_path(self.prefix)


@dataclass(frozen=True, slots=True)
class TimeMap:
    """`/timemap/<format>/<url>`: the mementos since `since` (seconds; None: all), as many as a page has."""

    form: MapFormat
    url: str
    since: int | None = None

    @property
    def location(self) -> str:
        """The URL in its canonical spelling."""
        return timemap_path(self.form, self.url, self.since)


@dataclass(frozen=True, slots=True)
class Diff:
    """`/diff/<digits>..<digits>/<url>`: times in seconds."""

    old: int
    new: int
    url: str

    @property
    def location(self) -> str:
        """The URL in its canonical spelling."""
        return diff_path(self.old, self.new, self.url)


@dataclass(frozen=True, slots=True)
class Refused:
    """A URL that means nothing here: to be answered by 400 (ELSEWHERE: 404)."""

    reason: UrlFault


Address = Replay | TimeGate | Calendar | PrefixList | TimeMap | Diff | Refused


def parse(raw_path: bytes, query: bytes = b"") -> Address:
    """Return what an URL of the room below `/web/`, `/timemap/` or `/diff/` asks for; never raises.

    `raw_path` and `query` are ASGI's `raw_path` and `query_string`, as received.
    """
    if len(raw_path) + len(query) > LONGEST_URL:
        return Refused(UrlFault.TOO_LONG)
    whole = raw_path + (b"?" + query if query else b"")
    if whole.startswith(b"/web/"):
        rest = whole[len(b"/web/") :]
        return _timemap(rest) if rest.startswith(b"timemap/") else _below_web(rest)
    if whole.startswith(b"/timemap/"):
        return _timemap(whole[1:])
    if match := _DIFF.match(whole):
        url = archived_url(whole[match.end() :])
        old, new = (span_end(group.decode()) for group in match.groups())
        return url if isinstance(url, Refused) else Diff(seconds_of(old), seconds_of(new), url)
    return Refused(UrlFault.ELSEWHERE)


def _below_web(rest: bytes) -> Address:
    if _ONLY_TIME.fullmatch(rest):
        return Refused(UrlFault.EMPTY)
    if _TOO_LONG_TIME.match(rest):
        return Refused(UrlFault.TIME)
    if match := _TIME.match(rest):
        return _replay(match[1].decode(), (match[2] or b"").decode(), rest[match.end() :])
    if match := _CALENDAR.match(rest):
        return _calendar(match[1].decode(), rest[match.end() :])
    modifier = Modifier.FRAME
    if match := _ONLY_MODIFIER.match(rest):
        if (name := match[1].decode()) not in _MODIFIERS:
            return Refused(UrlFault.MODIFIER)
        modifier, rest = Modifier(name), rest[match.end() :]
    url = archived_url(rest)
    return url if isinstance(url, Refused) else TimeGate(url, modifier)


def _replay(asked: str, modifier: str, raw: bytes) -> Replay | Refused:
    if modifier not in _MODIFIERS:
        return Refused(UrlFault.MODIFIER)
    url = archived_url(raw)
    if isinstance(url, Refused):
        return url
    digits = span_end(asked)
    web = _WEB.fullmatch(raw.decode("latin-1"))
    is_base = web is not None and "/" in web[3].partition("?")[0]
    return Replay(
        digits=digits,
        seconds=seconds_of(digits),
        modifier=Modifier(modifier),
        url=url,
        must_redirect=not (digits == asked and is_base),
    )


def _calendar(digits: str, raw: bytes) -> Calendar | PrefixList | Refused:
    if raw.endswith(b"*"):
        prefix = archived_url(raw[:-1], is_prefix=True)
        return prefix if isinstance(prefix, Refused) else PrefixList(prefix)
    url = archived_url(raw)
    if isinstance(url, Refused):
        return url
    return Calendar(url, int(span_end(digits)[:4]) if digits else None)


def _timemap(rest: bytes) -> TimeMap | Refused:
    match = _TIMEMAP.match(rest)
    if match is None:
        return Refused(UrlFault.ELSEWHERE)
    name = match[1].decode("latin-1")
    if name not in _FORMATS:
        return Refused(UrlFault.FORMAT)
    url = archived_url(rest[match.end() :])
    if isinstance(url, Refused):
        return url
    return TimeMap(MapFormat(name), url, seconds_of(span_begin(match[2].decode())) if match[2] else None)


def archived_url(raw: bytes, *, is_prefix: bool = False) -> str | Refused:
    """Return the canonical URL that `raw` spells, `http` where it has no scheme; never raises.

    In a prefix dot segments stay, since `/.` may be the begin of `/.well-known`.
    """
    text = _as_text(raw)
    if isinstance(text, Refused):
        return text
    if _ENCODED.match(text):  # only all of it: a raw query would have been encoded as well
        plain = unquote_to_bytes(raw)
        is_whole = b"?" not in raw and not _ENCODED.match(plain.decode("latin-1"))
        return archived_url(plain, is_prefix=is_prefix) if is_whole else Refused(UrlFault.ENCODED)
    if web := _WEB.fullmatch(text):
        scheme, rest = web[1].lower(), web[3]
    elif _SCHEME.match(text):
        return Refused(UrlFault.HOST if text[:6].lower().startswith(("http:", "https:")) else UrlFault.SCHEME)
    else:
        scheme, rest = "http", text
    authority = _AUTHORITY.match(rest)
    assert authority is not None
    host = _ESCAPED_BRACKETS.sub(r"[\1]", authority[0])
    if "@" in host or "%40" in host:
        return Refused(UrlFault.USERINFO)
    try:
        url = f"{scheme}://{host}{rest[authority.end() :]}"
        canonical_url = str(parse_url(url)) if is_prefix else canonical(url)
    except UrlRefused:
        return Refused(UrlFault.ENCODED if "%" in host else UrlFault.HOST)
    return canonical_url if len(canonical_url) <= LONGEST_URL else Refused(UrlFault.TOO_LONG)


def _as_text(raw: bytes) -> str | Refused:
    if len(raw) > LONGEST_URL:
        return Refused(UrlFault.TOO_LONG)
    if not raw:
        return Refused(UrlFault.EMPTY)
    if _CONTROL.search(raw) or b"#" in raw:
        return Refused(UrlFault.CONTROL)
    if b"\\" in raw:
        return Refused(UrlFault.BACKSLASH)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _NOT_ASCII.sub(lambda match: b"%%%02X" % match[0][0], raw).decode("ascii")


_MODIFIERS = frozenset(map(str, Modifier))
_FORMATS = frozenset(map(str, MapFormat))


def replay_path(digits: str, modifier: Modifier, url: str) -> str:
    """Return the path of a canonical URL in replay, ASCII and safe in a header.

    `url` may have a fragment, as targets of redirects have. Raises ValueError for other URLs and digits.
    """
    if len(digits) != 14 or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{digits!r} are not the 14 digits of a time")
    return replay_address(digits, _safe(url), modifier)


def timegate_path(url: str, modifier: Modifier = Modifier.FRAME) -> str:
    """Return the path of the TimeGate of a canonical URL."""
    return f"/web/{modifier}/{_safe(url)}" if modifier else f"/web/{_safe(url)}"


def calendar_path(url: str, year: int | None = None) -> str:
    """Return the path of the calendar of a canonical URL. A final `*` is escaped, since it would make it a prefix."""
    url = _safe(url)
    return f"/web/{'' if year is None else f'{year:04}'}*/{url[:-1] + '%2A' if url.endswith('*') else url}"


def prefix_path(prefix: str) -> str:
    """Return the path of the list of URLs below a prefix."""
    return f"/web/*/{_safe(prefix)}*"


def timemap_path(form: MapFormat, url: str, since: int | None = None) -> str:
    """Return the path of a TimeMap of a canonical URL, or of its page that begins at a time (seconds).

    Pages have the time of their first memento, not a number: `2/` could also be a host, but digits and a slash are a
    time everywhere; and a page stays what it is when mementos are added behind it.
    """
    return f"/timemap/{form}/{'' if since is None else f'{digits_of(since)}/'}{_safe(url)}"


def diff_path(old: int, new: int, url: str, *, side_by_side: bool = False) -> str:
    """Return the path of the comparison of a canonical URL at two times (seconds), in one of its two views."""
    view = "side" if side_by_side else "diff"
    return f"/{view}/{digits_of(old)}..{digits_of(new)}/{_safe(url)}"


def cite_path(digits: str, url: str, form: str = "") -> str:
    """Return the path of the citation of a canonical URL at a time: a page, or a file of a form."""
    return f"/cite{'.' if form else ''}{form}/{replay_path(digits, Modifier.FRAME, url).removeprefix('/web/')}"


def record_path(record_id: str) -> str:
    """Return the path of a record's page."""
    return f"/snapshot/{quote(record_id, safe='')}"


def collection_path(name: str) -> str:
    """Return the path of a collection's page."""
    return f"/collection/{quote(name, safe='')}"


def publication_path(name: str) -> str:
    """Return the path of a publication's page."""
    return f"/publication/{quote(name, safe='')}"


def _safe(url: str) -> str:
    if not _SAFE.fullmatch(url):
        raise ValueError(f"{url!r} is not a canonical URL")
    return url


# == reader token, pure ===============================================================================================


#: Seconds that a token is valid.
LONGEST = 12 * 3600
_SALT = "webarcfs reader"


def prefix_of(reader: Reader, key: str) -> str:
    """Return the beginning of the paths of replay for a reader: nothing for the public."""
    return f"/~{URLSafeTimedSerializer(key, salt=_SALT).dumps(reader.name)}" if reader.name else ""


def split(path: bytes, key: str) -> tuple[Reader, str, bytes]:
    """Return the reader of a raw path, the token's part of it, and the rest."""
    if not path.startswith(b"/~"):
        return Reader(), "", path
    token, slash, rest = path[2:].partition(b"/")
    try:
        name = URLSafeTimedSerializer(key, salt=_SALT).loads(token.decode("ascii", "replace"), max_age=LONGEST)
    except BadData:
        return Reader(), "", slash + rest
    reader = Reader(name) if isinstance(name, str) else Reader()
    return reader, f"/~{token.decode('ascii')}" if reader.name else "", slash + rest


# == www host, pure ===================================================================================================


def at_other_host(url: str) -> str | None:
    """Return a canonical URL with `www.` before its host, or without; None where an archive has no such URL."""
    host = parse_url(url).domain
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    other_url = url.replace(f"://{host}", f"://{other}", 1)
    try:
        arc_path(other_url)
    except UrlRefused:
        return None
    return other_url
