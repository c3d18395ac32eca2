"""URLs and names as the wild web and hostile users write them, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical, parse

_NAMES = ". .. .git .GIT .g\u200cit .gitmodules git~1 GIT~2 gi7eba~1 ma0123~1 \\.git ~0123456789abcdef a b ä ~ \\ : +"
_OWN = "data data.xml data.html DATA headers.http index.html"
_ESCAPES = "% %25 %2F %2f %5C %00 %0a %7F %E9 %C3%A9 %ed%a0%80 %EF%BF%BE %2e %2E%2e %7E %zz"
_PIECES = st.sampled_from(
    [
        *_NAMES.split(),
        *_OWN.split(),
        *_ESCAPES.split(),
        "x" * 183,
        "y" * 199,
        "é" * 99,
        " ",
        "\u2028",
        "\ufeff",
        "\U0010ffff",
    ]
)
_SEGMENT = st.one_of(
    st.lists(_PIECES, max_size=4).map("".join),
    st.text(max_size=12),
    st.binary(max_size=6).map(lambda raw: raw.hex("%")),
)
_HOST = st.sampled_from(
    ["e.org", "E.ORG:80", "e.org:8080", "b\u00fccher.example", "[2001:db8::1]", "u:p@e.org", "1.2.3.4"]
)


@st.composite
def raw_urls(draw: st.DrawFn) -> str:
    """http(s) URLs of a host that is one, and a path and query that may hold anything."""
    scheme = draw(st.sampled_from(["http", "https"]))
    path = "/".join(draw(st.lists(_SEGMENT, max_size=5)))
    query = draw(st.none() | _SEGMENT.map(lambda text: "?" + text))
    return f"{scheme}://{draw(_HOST)}/{path}{query or ''}"


def _accepted(raw: str) -> bool:
    try:
        parse(raw)
    except UrlRefused:
        return False
    return True


#: Canonical URLs, as the frontier holds them.
canonical_urls = raw_urls().filter(_accepted).map(canonical)
