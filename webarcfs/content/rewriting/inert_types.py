"""Which documents a browser shows without a link, a script or a part that it would ask for. Pure.

What is in no list here may be a page for some browser: an unknown type may be sniffed, a PDF and an e-mail have links.
"""

from __future__ import annotations

from webarcfs.content import text

#: Kinds of which all types are inert but XML, and lists of what is to be played.
_KINDS = frozenset({"image", "audio", "video", "font"})
_PLAYLISTS = frozenset({"audio/mpegurl", "audio/x-mpegurl", "audio/x-scpls", "video/vnd.mpeg.dash.mpd"})
#: Text that is a page for some browser.
_PAGES_OF_TEXT = frozenset({"text/vnd.wap.wml", "text/x-component", "text/mathml", "text/x-server-parsed-html"})
_INERT = frozenset(
    {"application/ogg", "application/font-woff", "application/font-woff2", "application/x-font-woff"}
)  # fmt: skip
#: What browsers show as text, some of them with links: they do not where its type is text/plain.
_TEXT = frozenset(
    {
        *text.SCRIPT_TYPES, "application/json", "application/manifest+json", "application/ld+json",
        "application/x-empty",
    }
)  # fmt: skip


def is_xml(mime_type: str) -> bool:
    """Return whether a browser reads documents of a type as XML; `mime_type` is in lower case, without parameters."""
    return text.is_xml(mime_type) or mime_type == "text/xsl"


def is_markup(mime_type: str) -> bool:
    """Return whether a browser reads documents of a type as HTML or XML."""
    return mime_type == "text/html" or is_xml(mime_type)


def is_inert(mime_type: str) -> bool:
    """Return whether every browser shows documents of a type without anything that leads on, or not at all."""
    kind = mime_type.partition("/")[0]
    if is_markup(mime_type) or mime_type in _PLAYLISTS or mime_type in _PAGES_OF_TEXT:
        return False
    return kind in _KINDS or kind == "text" or mime_type in _INERT


def as_text(mime_type: str) -> str | None:
    """Return the type as which a document may be shown: its own if it is inert, or text/plain; None: as nothing."""
    if is_inert(mime_type):
        return mime_type
    return "text/plain" if mime_type in _TEXT or mime_type.endswith("+json") else None
