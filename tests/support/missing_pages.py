"""A site of which a crawl does not get all, each page for another reason: with the word of crawl.log for it.

troubles = add_troubles(site)
crawls.crawl(archive, site.url("/"), **SETTINGS)
troubles["/missing"]          # "status 404"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.support import nasty
from tests.support.site import Site, redirect
from webarcfs.archive.config.settings import Exclusion

#: The settings of the crawl, as `crawls.crawl` takes them.
SETTINGS: Final[Mapping[str, Any]] = {
    "depth": 2, "timeout": 2.0, "max_document_time": "4 second", "max_file_size": 100_000,
    "exclude_extensions": ("iso",), "exclude": (Exclusion(match="*/left-out*", reason="a test"),),
}  # fmt: skip
#: A page that nothing links to.
UNLINKED: Final = "/nothing-links-here"


def add_troubles(site: Site) -> dict[str, str]:
    """Add the pages, linked from `/`; return path → the word for why it is missing."""
    site.add("/robots.txt", "User-agent: *\nDisallow: /private/\n", "text/plain")
    answers = {
        "/missing": (nasty.status(404), "status 404"),
        "/gone": (nasty.status(410), "status 410"),
        "/forbidden": (nasty.status(403), "status 403"),
        "/broken": (nasty.status(500), "status 500"),
        "/reset": (nasty.reset_before_head(), "reset"),
        "/short": (nasty.short_body(), "truncated"),
        "/half-gzip": (nasty.truncated_gzip(), "truncated-gzip"),
        "/chunks": (nasty.broken_chunking(), "broken-chunking"),
        "/round": (nasty.redirect_loop(), "redirect-loop"),
        "/hangs": (nasty.hang(60.0), "timeout"),
    }
    refused = {
        "/private/page": "robots", "/left-out/page": "excluded", "/image.iso": "extension",
        "/a/b/" * 14: "trap:path-depth", "/deep/deeper": "depth",
    }  # fmt: skip
    site.add("/large", b"x" * 200_000, "text/plain")
    site.add_html("/deep", "<a href='/deep/one'>x</a>")
    site.add_html("/deep/one", "<a href='/deep/deeper'>x</a>")
    site.add_html("/deep/deeper", "too deep")
    site.add_html(UNLINKED, "nothing links here")
    site.add_nasty("/moved", redirect("/missing"))
    for path, (answer, _) in answers.items():
        site.add_nasty(path, answer)
    linked = [*answers, *(path for path in refused if path != "/deep/deeper"), "/large", "/moved", "/deep"]
    site.add_html("/", "".join(f"<a href='{path}'>x</a>" for path in linked) + "<a href='http://far.example/'>x</a>")
    return {path: word for path, (_, word) in answers.items()} | refused | {"/large": "too-big"}
