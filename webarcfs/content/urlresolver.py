"""References in pages → canonical URLs, as browsers resolve them (url.spec.whatwg.org). Pure.

urljoin followed by canonicalisation is two thirds of the cost of extracting links, so the two are one step here:
`canonical` resolves dot segments by itself, and most references are plain names, which need neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote

from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.url import canonical, joined

# A relative reference in canonical form: no scheme, no dot segment, nothing to escape or to unescape.
_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9\-._~!*'();@&=+$,]*"
_PLAIN = re.compile(rf"/?+(?!\?)(?:{_SEGMENT}/)*+(?:{_SEGMENT})?+(?:\?[A-Za-z0-9\-._~!*'();:@&=+$,/?]*+)?+")
_NOT_ASCII = re.compile("[^\0-\x7f]+")
_CACHED_LENGTH = 512


def resolver(base: str, charset: str) -> Callable[[str], str | None]:
    """Return a function from references without fragment to canonical URLs; None for empty or other than http(s) ones.

    `base` is the canonical URL that they are relative to, `charset` the page's encoding.
    """
    scheme, _, rest = base.partition("://")
    domain, _, path = rest.partition("?")[0].partition("/")
    origin = f"{scheme}://{domain}"
    folder = f"{origin}/{path}"[: len(origin) + 1 + path.rfind("/") + 1]

    def resolve(raw: str) -> str | None:
        if not raw:
            return None
        if _PLAIN.fullmatch(raw):
            return (origin if raw[0] == "/" else folder) + raw
        return _canonical(joined(base, _as_ascii_query(raw, charset)))

    return resolve


def _as_ascii_query(text: str, charset: str) -> str:
    """Escape non-ASCII in the query in the page's encoding (url.spec.whatwg.org, "query state").

    There, UTF-16 and UTF-32 count as UTF-8.
    """
    head, mark, query = text.partition("?")
    if not query.isascii() and not charset.startswith("utf"):
        query = _NOT_ASCII.sub(lambda match: _escaped(match[0], charset), query)
    return head + mark + query


def _escaped(text: str, charset: str) -> str:
    try:
        return quote(text.encode(charset, "xmlcharrefreplace"), safe="")
    except (LookupError, ValueError):
        return text


def _canonical(text: str) -> str | None:
    # Menus repeat the same few hundred URLs on every page; very long ones would only fill the cache.
    return _cached(text) if len(text) <= _CACHED_LENGTH else _or_none(text)


def _or_none(text: str) -> str | None:
    try:
        return canonical(text)
    except (UrlRefused, ValueError):
        return None


_cached = lru_cache(maxsize=8192)(_or_none)
