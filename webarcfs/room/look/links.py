"""Links of the room's pages: an href becomes one only where it leads into the room, whoever wrote it. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from markupsafe import Markup

#: What a browser takes out of a URL, or for a slash.
_NOT_IN_PATHS = re.compile(r"[\x00-\x20\x7f\\]")


def link_to(href: str, beside: str = "", attribute: str = "href") -> Markup:
    """Return the attribute of a link that leads to a path of the room, or to the origin of the URL `beside`.

    Any other href gives none: the words then stand there as text. What a browser would take out of a path, or for a
    slash, is encoded, so that no path becomes the name of another host.
    """
    href = _NOT_IN_PATHS.sub(lambda found: f"%{ord(found[0]):02X}", href)
    is_ours = href.startswith(("/", "?", "#")) and not href.startswith("//")
    origin = origin_of(beside)
    if not is_ours and not (origin and href.startswith(f"{origin}/")):
        return Markup("")
    return Markup(' {}="{}"').format(attribute, href)


def origin_of(url: str) -> str:
    """Return the origin of a web URL; empty for any other."""
    try:
        found = urlsplit(url)
    except ValueError:
        return ""
    return f"{found.scheme}://{found.netloc}" if found.scheme in ("http", "https") and found.netloc else ""
