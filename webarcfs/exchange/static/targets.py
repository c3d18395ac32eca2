"""Where the references of a document lead in the exported folder: to a file, to a notice, or nowhere. Pure.

Nothing leads to the live web. What a reference was before is kept: of a link or a form in an attribute of its element,
of what a page embeds in the comment at its head, since not all of that stands in attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote

from webarcfs.content.outlinks import bare
from webarcfs.content.rewriting import data_urls
from webarcfs.content.rewriting.references import Rewritten, Use
from webarcfs.content.urlresolver import resolver
from webarcfs.exchange.static.names import OWN
from webarcfs.exchange.static.places import Place

#: Pages of ours: for what is not in the folder, for forms, and before documents that keep their links.
MISSING = f"{OWN}/missing.html"
FORM = f"{OWN}/form.html"
LIVE = f"{OWN}/live.html"
#: What a browser shows with links that are not rewritten.
_WITH_LIVE_LINKS = ".pdf"
#: The attribute that keeps the original of a reference.
ORIGINAL = "data-webarc-href"
#: Most characters of an original that a notice is given, and most originals that a comment lists.
_LONGEST = 2_000
_MOST = 5_000
_FRAGMENT = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]")
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*)\s*:", re.IGNORECASE)
_NOTHING = "data:,"
_KEPT_IN_ATTRIBUTE = (Use.LINK, Use.FORM, Use.BASE)


class Targets:
    """Returns what takes the place of each reference of one document, and remembers what was there."""

    def __init__(
        self,
        url: str,
        path: str,
        charset: str,
        place_of: Callable[[str], Place | None],
        base: str,
        *,
        has_attributes: bool,
    ) -> None:
        """`url` and `path` are those of the document, `base` is what its <base> says.

        `has_attributes`: an element may get an attribute. XML refuses an element with two of a name.
        """
        self._url, self._path, self._place_of = url, path, place_of
        self._folder = path.rpartition("/")[0]
        self._has_attributes = has_attributes
        self._resolve = resolver(url, charset)
        self._has_base = False
        based = self._resolve(bare(base)) if base else None
        if based and based != url:
            self._resolve, self._has_base = resolver(based, charset), True
        #: What a reference was → what it is now: those that no attribute keeps.
        self.originals: dict[str, str] = {}

    def of(self, use: Use, raw: str) -> Rewritten | None:
        """Return what takes the place of a reference as it was written; None: it stays."""
        if use is Use.TARGET:
            return None
        if use is Use.BASE:
            new: str | None = ""
        elif use is Use.FORM:
            new = self._notice(FORM, raw)
        elif use in (Use.LINK, Use.REFRESH, Use.FRAME):
            new = self._link(use, raw)
        else:
            new = self._embedded(use, raw)
        if new is None or new == raw:
            return None
        if use in _KEPT_IN_ATTRIBUTE and self._has_attributes:
            return Rewritten(new, ((ORIGINAL, raw),))
        if len(self.originals) < _MOST and len(raw) <= _LONGEST:
            self.originals.setdefault(raw, new)
        return Rewritten(new)

    def _link(self, use: Use, raw: str) -> str | None:
        """Return where a link, a frame or a refresh leads: to a page in any case."""
        text = raw.strip()
        if not text and use is Use.FRAME:
            return None
        if text.startswith("#") and not self._has_base:
            return None
        if use is Use.FRAME and data_urls.is_own(raw):
            return data_urls.in_a_frame(raw, self.of)
        scheme = _SCHEME.match(raw)
        if scheme and scheme[1].lower() not in ("http", "https"):
            return data_urls.NOTHING if use is Use.FRAME else self._notice(MISSING, raw)
        url = self._resolve(bare(raw)) if text else self._url
        place = None if url is None else self._place_of(url)
        if place is not None:
            return self._led_or_told(place, raw)
        return self._notice(MISSING, raw if url is None else url + _fragment(raw))

    def _embedded(self, use: Use, raw: str) -> str | None:
        if data_urls.is_own(raw):
            return data_urls.in_a_frame(raw, self.of) if use is Use.OBJECT else None
        if not raw.strip() or (raw.lstrip().startswith("#") and not self._has_base):
            return None
        url = self._resolve(bare(raw))
        place = None if url is None else self._place_of(url)
        if place is not None:
            return self._led_or_told(place, raw) if use is Use.OBJECT else self._led(place, raw)
        return data_urls.NOTHING if use is Use.OBJECT else _NOTHING

    def _led_or_told(self, place: Place, raw: str) -> str:
        """Return the way to a file that a browser shows; for one that keeps its links to the notice before it."""
        if not place.path.lower().endswith(_WITH_LIVE_LINKS):
            return self._led(place, raw)
        return self._notice(LIVE, f"{relative('', place.path)}{place.fragment or _fragment(raw)}")

    def _led(self, place: Place, raw: str) -> str:
        fragment = place.fragment or _fragment(raw)
        if place.path == self._path and fragment:
            return fragment
        return f"{relative(self._folder, place.path)}{fragment}"

    def _notice(self, page: str, about: str) -> str:
        """Return the way to a notice; `about` is told as text, or is the way from the folder to a file of it."""
        return f"{relative(self._folder, page)}#{quote(about[:_LONGEST], safe='')}"


@lru_cache(maxsize=1 << 16)
def relative(folder: str, path: str) -> str:
    """Return the reference from a page in a folder to a file, both by their paths in the exported folder."""
    here, there = folder.split("/") if folder else [], path.split("/")
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    return quote("/".join([*[".."] * (len(here) - shared), *there[shared:]]), safe="/~@+,;=!()$&'")


def _fragment(raw: str) -> str:
    """Return the fragment of a reference, as a URL may have it."""
    _, sign, rest = raw.partition("#")
    return "#" + _FRAGMENT.sub(lambda each: quote(each[0]), rest.strip()) if sign else ""
