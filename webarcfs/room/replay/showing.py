"""Which documents a browser may show, and why not the others: those are sent as downloads. Pure.

What a browser shows has had its links rewritten, or has none.
"""

from __future__ import annotations

from enum import StrEnum

from webarcfs.content.rewriting import inert_types
from webarcfs.room import limits


class Reason(StrEnum):
    """Why a document is a download."""

    TOO_LARGE = "too-large"  #: a page that is too long to be rewritten
    NOT_READ = "not-read"  #: its type may have links, as PDF and MHTML do, and nothing here rewrites them


def reason_against(mime_type: str, size: int) -> Reason | None:
    """Return why a document is not shown; None: it is shown with its links rewritten, or it has none."""
    if inert_types.is_markup(mime_type):
        return Reason.TOO_LARGE if size > limits.REWRITTEN_BYTES else None
    return Reason.NOT_READ if inert_types.as_text(mime_type) is None else None


def shown_type(mime_type: str) -> str:
    """Return the type as which a browser is sent a document: text/plain for one that it would make links of."""
    return inert_types.as_text(mime_type) or mime_type
