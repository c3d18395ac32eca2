"""Where a page goes on by itself: the field Refresh, and `<meta http-equiv=refresh>`. Pure.

Both are read as browsers do (HTML Standard, "shared declarative refresh steps"). To a crawl they are links on any page.
On the page of a start URL, one that goes on within seconds is that URL's redirect. A refresh inside of `<noscript>` is
not for browsers with scripts, and is only a link.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from webarcfs.archive.model.url_lists import target_of, without_fragment
from webarcfs.content.markup import PIECE, MarkupListener, stream_findings
from webarcfs.content.outlinks import Link, bare, based_resolver, refreshed, text_of
from webarcfs.content.reference_table import LinkPurpose
from webarcfs.content.text import HTML_TYPES

#: Seconds after which a page that goes on is still a redirect and not a page to read.
LONGEST_STAY = 5
_SECONDS = re.compile(r"\s*(?:(\d{1,9})|(?=\.))", re.ASCII)
_TAGS = frozenset({"base", "meta", "noscript"})


def field_target(url: str, refresh: str) -> str:
    """Return the URL in the field Refresh of the response of a URL; empty if it has none."""
    return without_fragment(target_of(url, bare(refreshed(refresh)))) if _SECONDS.match(refresh) else ""


def field_link(url: str, refresh: str) -> tuple[Link, ...]:
    """Return the URL in the field Refresh as a link, if there is one."""
    target = field_target(url, refresh)
    return (Link(target, LinkPurpose.LINK),) if target else ()


def forward_of(url: str, refresh: str, body: bytes, mime_type: str, charset: str) -> str:
    """Return where a page goes on within seconds; empty if it stays, or if it goes on to itself.

    `refresh` is its field of that name; the other parameters are those of `outlinks.find`.
    """
    if is_quick(refresh) and (target := field_target(url, refresh)):
        return target if target != url else ""
    if mime_type not in HTML_TYPES:
        return ""
    text = text_of(body, charset)
    if "http-equiv" not in text.lower():
        return ""
    bases: list[str] = []
    pieces = range(0, len(text), PIECE)
    contents = stream_findings(lambda: _Refreshes(bases), lambda: (text[at : at + PIECE] for at in pieces))
    content = next(contents, "")  # `bases` are those before it
    target = based_resolver(url, charset, "".join(bases[:1]))(bare(refreshed(content))) or ""
    return target if target != url else ""


def is_quick(refresh: str) -> bool:
    """Return whether a refresh goes on within seconds."""
    match = _SECONDS.match(refresh)
    return match is not None and int(match[1] or 0) <= LONGEST_STAY


class _Refreshes(MarkupListener[str]):
    """Finds what a page's quick refreshes say. Values of <base> are added to `bases`."""

    hears_text = False

    def __init__(self, bases: list[str]) -> None:
        super().__init__(_TAGS, frozenset({"noscript"}))
        self._bases = bases
        self._without_scripts = 0

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag == "noscript":
            self._without_scripts += 1
        elif tag == "base" and (base := attributes.get("href")):
            self._bases.append(base)
        elif tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
            content = attributes.get("content", "")
            if not self._without_scripts and is_quick(content) and refreshed(content):
                self.found.append(content)

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag == "noscript":
            self._without_scripts = max(self._without_scripts - 1, 0)  # end tags may have no start
