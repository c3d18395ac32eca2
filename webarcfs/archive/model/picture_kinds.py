"""The kinds of pictures that all browsers show, by how a file begins. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class PictureKind(NamedTuple):
    """A kind of pictures: its MIME type, and how names of files end."""

    mime_type: str
    ending: str


_BEGINNINGS: Final[tuple[tuple[re.Pattern[bytes], PictureKind], ...]] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), PictureKind("image/png", "png")),
    (re.compile(rb"\xff\xd8\xff"), PictureKind("image/jpeg", "jpg")),
    (re.compile(rb"(?s:RIFF.{4}WEBP)"), PictureKind("image/webp", "webp")),
)
PICTURE_KINDS: Final = tuple(kind for _, kind in _BEGINNINGS)


def picture_kind(begin: bytes) -> PictureKind | None:
    """Return the kind of a picture, by its first bytes; None for what is no PNG, JPEG or WebP."""
    return next((kind for pattern, kind in _BEGINNINGS if pattern.match(begin)), None)
