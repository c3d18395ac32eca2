"""Kinds of documents in a word, for `type:` and facets. Pure."""

from __future__ import annotations

from webarcfs.content.text import SCRIPT_TYPES

_KINDS = {
    "text/html": "html", "application/xhtml+xml": "html", "application/pdf": "pdf",
    "application/msword": "word", "application/rtf": "word", "text/rtf": "word",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.oasis.opendocument.text": "word",
    "application/vnd.ms-excel": "table", "text/csv": "table", "application/vnd.oasis.opendocument.spreadsheet": "table",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "table",
    "application/vnd.ms-powerpoint": "slides", "application/vnd.oasis.opendocument.presentation": "slides",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "slides",
    "text/css": "style", **dict.fromkeys(SCRIPT_TYPES, "script"), "message/rfc822": "mail",
    "application/xml": "xml", "text/xml": "xml", "application/rss+xml": "xml", "application/atom+xml": "xml",
    "image/svg+xml": "image", "application/json": "data", "text/json": "data",
}  # fmt: skip
_FAMILIES = {"image": "image", "audio": "audio", "video": "video", "text": "text", "font": "font"}
KINDS = frozenset({*_KINDS.values(), *_FAMILIES.values(), "other"})


def kind_of(mime_type: str) -> str:
    """Return the kind of a MIME type: html, pdf, image, text, …; `other` for one that is in no kind."""
    return _KINDS.get(mime_type) or _FAMILIES.get(mime_type.partition("/")[0], "other")
