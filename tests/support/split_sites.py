"""Real sites split by hand over three hosts each, as publishers with a CDN do it.

`www` has the pages, `static` the styles and scripts, `img` the images and the fonts; no host has anything of another.
References to other hosts are rewritten in pages, styles and SVG, by turns absolute and scheme-relative. Beside each
split site its unsplit form is served, on one host. Both have a font, which the packages of the sites do not have.

The rewriting is by regular expressions for these very sites, and knows nothing of the tables of crawl and replay.
"""

from __future__ import annotations

import random
import re
from enum import StrEnum
from functools import cache, lru_cache
from itertools import count
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from tests.support.livesites import SITES
from tests.support.site import Answer, Site, content_type_of, page
from webarcfs.archive.model.urls import canonical

#: The font is wider than those that browsers take without it.
FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf")
#: Files that both forms have beside those of the package.
_ADDED = {
    "split/fonts.css": lambda: (
        b"@font-face { font-family: Split; src: url(mono.ttf) format('truetype') }\n"
        b"h1, h2, p, li { font-family: Split !important }\n"
    ),
    "split/mono.ttf": FONT.read_bytes,
}
#: Pages that need more than the others of their site: pictures of their own, objects, tables of icons.
_NOTABLE = {
    "python.test": (
        "library/pathlib.html", "using/windows.html", "howto/logging.html", "library/turtle.html", "search.html",
    ),
    "postgresql.test": ("storage-page-layout.html", "gin-implementation.html", "geqo-intro2.html"),
    "handbook.test": (
        "en-US/sect.installation-steps.html", "fa-IR/sect.installation-steps.html", "de-DE/sect.apt-get.html",
    ),
    "boost.test": (
        "doc/html/poly_collection/performance.html", "doc/html/quickbook/syntax/block.html",
        "doc/html/boost_random/tutorial.html", "doc/html/crc/crc_basic.html",
    ),
}  # fmt: skip


class SiteForm(StrEnum):
    """The first labels of the hosts of a site: three of its split form, and the one of its unsplit form."""

    PAGES = "www"
    STATIC = "static"
    IMAGES = "img"
    WHOLE = "whole"


_OF_EXTENSION = {
    **dict.fromkeys((".css", ".js"), SiteForm.STATIC),
    **dict.fromkeys((".png", ".gif", ".jpg", ".ico", ".svg", ".xpm", ".ttf"), SiteForm.IMAGES),
}


@cache
def sample(total: int) -> list[tuple[str, str]]:
    """Sites and names of pages, the same ones each time: of each site its start page, notable ones, any others."""
    pages = []
    for at, (host, site) in enumerate(SITES.items()):
        number = (total + at) // len(SITES)
        others = sorted(name for name in site.files() if name.endswith(".html"))
        names = (site.starts[0].lstrip("/"), *_NOTABLE[host], *random.Random(host).sample(others, number))
        pages += [(host, name) for name in list(dict.fromkeys(names))[:number]]
    return pages


def url_of(host: str, name: str, form: SiteForm = SiteForm.PAGES) -> str:
    """The URL of a file of a site on one of its hosts."""
    return canonical(f"http://{form}.{host}/{name}")


def hosts() -> list[str]:
    """All hosts of all forms."""
    return [f"{form}.{host}" for host in SITES for form in SiteForm]


def serve(site: Site) -> None:
    """Let a Site serve all forms of all sites."""
    for host in SITES:
        for form in SiteForm:
            site.mount(_Hosted(host, form), host=f"{form}.{host}")


def body_at(url: str) -> bytes | None:
    """What a URL of these hosts has; None where it has nothing."""
    parts = urlsplit(url)
    label, _, host = (parts.hostname or "").partition(".")
    return _sent(host, SiteForm(label), unquote(parts.path).lstrip("/")) if host in SITES else None


# -- serving -----------------------------------------------------------------------------------------------------------


class _Hosted:
    """The files of one host. Fonts are for pages of all hosts, as on a CDN."""

    def __init__(self, host: str, form: SiteForm) -> None:
        self._host, self._form = host, form

    def find(self, path: str) -> Answer | None:
        """The file at a path; its query is ignored."""
        name = unquote(path.partition("?")[0]).lstrip("/")
        body = _sent(self._host, self._form, name)
        return None if body is None else page(body, content_type_of(name), headers={"Access-Control-Allow-Origin": "*"})


@lru_cache(maxsize=200)
def _sent(host: str, form: SiteForm, name: str) -> bytes | None:
    body = _body(host, name)
    if body is None or form not in (SiteForm.WHOLE, form_of(name)):
        return None
    return body if form is SiteForm.WHOLE else _Rewriting(host, name).body(body)


def _body(host: str, name: str) -> bytes | None:
    """A file of a site, with the font's sheet in each page."""
    if name in _ADDED:
        return _ADDED[name]()
    if not _is_file(host, name):
        return None
    body = (SITES[host].root / name).read_bytes()
    up = "../" * name.count("/")
    link = f'<link rel="stylesheet" type="text/css" href="{up}split/fonts.css" />'.encode()
    return body.replace(b"</head>", link + b"</head>", 1) if name.endswith(".html") else body


@cache
def _is_file(host: str, name: str) -> bool:
    return name in _ADDED or (".." not in name.split("/") and (SITES[host].root / name).is_file())


def form_of(name: str) -> SiteForm:
    """The host that has a file, by its extension."""
    return _OF_EXTENSION.get(PurePosixPath(name).suffix.lower(), SiteForm.PAGES)


# -- rewriting ---------------------------------------------------------------------------------------------------------


_IN_TAG = rb"(?:[^>\"']|\"[^\"]*\"|'[^']*')*>"
_MARKUP = re.compile(
    rb"<!--.*?-->"
    rb"|(?P<script><script\b%(rest)b)(?P<code>.*?)(?=</script)"
    rb"|(?P<style><style\b%(rest)b)(?P<sheet>.*?)(?=</style)"
    rb"|(?P<tag><[a-z]%(rest)b)" % {b"rest": _IN_TAG},
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    rb"(?P<name>\s(?:href|src|data|xlink:href|poster|background|style)\s*=\s*)"
    rb"(?:(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)|(?P<bare>[^\s\"'>]+))",
    re.DOTALL | re.IGNORECASE,
)
_REFERENCE = re.compile(
    rb"(?P<name>url\(\s*|@import\s+)(?:(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)|(?P<bare>[^\s\"');]+))",
    re.DOTALL | re.IGNORECASE,
)


class _Rewriting:
    """Leads the references of one file to the hosts that have what they name."""

    def __init__(self, host: str, name: str) -> None:
        self._host, self._name = host, name
        self._turns = count()

    def body(self, body: bytes) -> bytes:
        """The file with its references led."""
        if self._name.endswith((".html", ".svg")):
            return _MARKUP.sub(self._markup, body)
        return _REFERENCE.sub(self._value, body) if self._name.endswith(".css") else body

    def _markup(self, match: re.Match[bytes]) -> bytes:
        if match["script"] is not None:
            return _ATTRIBUTE.sub(self._attribute, match["script"]) + match["code"]
        if match["style"] is not None:
            return match["style"] + _REFERENCE.sub(self._value, match["sheet"])
        return match[0] if match["tag"] is None else _ATTRIBUTE.sub(self._attribute, match["tag"])

    def _attribute(self, match: re.Match[bytes]) -> bytes:
        if match["name"].strip().lower().startswith(b"style"):
            return _REFERENCE.sub(self._value, match[0])
        return self._value(match)

    def _value(self, match: re.Match[bytes]) -> bytes:
        quote = match["quote"] or b""
        written = match["quoted"] if quote else match["bare"]
        return b"%b%b%b%b" % (match["name"], quote, self._led(written.decode("latin-1")).encode("latin-1"), quote)

    def _led(self, written: str) -> str:
        """A reference as written, or to the host that has its file, where that is another one."""
        parts = urlsplit(written)
        path = _resolved(self._name, parts.path)
        name = unquote(path)
        if parts.scheme or parts.netloc or not _is_file(self._host, name) or form_of(name) is form_of(self._name):
            return written
        scheme = "http:" if next(self._turns) % 2 else ""
        return scheme + parts._replace(netloc=f"{form_of(name)}.{self._host}", path=f"/{path}").geturl()


def _resolved(name: str, path: str) -> str:
    """A path as a file of that name has it, from the root; two slashes in a row stay, as browsers keep them."""
    segments = [] if path.startswith("/") else name.split("/")[:-1]
    for segment in path.removeprefix("/").split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    return "/".join(segments)
