"""Sites that some call with `www.` and others without: the other name of a URL's host. Pure."""

from __future__ import annotations

from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.url import parse


def at_other_host(url: str) -> str | None:
    """Return a canonical URL with `www.` before its host, or without; None where an archive has no such URL."""
    host = parse(url).domain
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    found = url.replace(f"://{host}", f"://{other}", 1)
    try:
        arc_path(found)
    except UrlRefused:
        return None
    return found
