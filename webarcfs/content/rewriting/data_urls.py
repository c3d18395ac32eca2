"""Frames whose address is no place but a document of its own (`data:`, `blob:`, `about:`): what they may show. Pure.

A document in a `data:` URL may have links as any page has. It is rewritten as one. A type is read as browsers do
(url.spec.whatwg.org; fetch.spec.whatwg.org, "data: URL processor"); what they may read in two ways is rewritten.

Lists name the documents that a browser shows without a link, a script or a part that it would ask for. What is in no
list may be a page for some browser: an unknown type may be sniffed, a PDF and an e-mail have links.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from webarcfs.content import text
from webarcfs.content.reference_table import MOST_INNER
from webarcfs.content.references import Rewritten, Use, joined
from webarcfs.content.rewriting import assembly, html_references
from webarcfs.content.rewriting.assembly import Rewrite

# == inert types, pure ================================================================================================


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


def is_read_as_xml(mime_type: str) -> bool:
    """Return whether a browser reads documents of a type as XML; `mime_type` is in lower case, without parameters."""
    return text.is_xml(mime_type) or mime_type == "text/xsl"


def is_markup(mime_type: str) -> bool:
    """Return whether a browser reads documents of a type as HTML or XML."""
    return mime_type == "text/html" or is_read_as_xml(mime_type)


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


# == data urls, pure ==================================================================================================


#: What a frame shows instead of what cannot be shown.
NOTHING = "about:blank"
_NOT_SHOWN = "A document of the type {}. It is not shown here: its links could lead out of the archive."
_EDGES = "".join(map(chr, range(0x21)))
_DROPPED = {ord(sign): None for sign in "\t\n\r"}
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_BLANK = re.compile(r"about:blank(?:[?#]|\Z)", re.IGNORECASE)
_SPACE = " \t\n\r\f"
_BASE64 = re.compile(rf";[{_SPACE}]*base64[{_SPACE}]*\Z", re.IGNORECASE)
_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_TYPE = re.compile(rf"({_NAME}/{_NAME})[{_SPACE}]*(?:;.*)?", re.DOTALL)
_CHARSET = re.compile(rf""";[{_SPACE}]*charset[{_SPACE}]*=[{_SPACE}]*["']?([A-Za-z0-9._:+-]+)""", re.IGNORECASE)
_BASE64_SPACE = re.compile(rb"[ \t\n\r\f]")


@dataclass(frozen=True, slots=True)
class _Document:
    """A document in a `data:` URL. `is_plain`: no browser reads the type in another way."""

    mime_type: str
    charset: str
    body: bytes
    is_plain: bool


def in_a_frame(raw: str, rewrite: Rewrite, origin: str = "") -> str | None:
    """Return what takes the place of a frame's reference that names no place of the web; None: it stays.

    `raw` is the reference as it was written, without escapes of markup. `rewrite` is asked for the references of a
    document in it; frames in such a document are put out of force. A path means nothing in it, so `origin` is put
    before those that `rewrite` returns; without an origin they are dead.
    """
    address = raw.strip(_EDGES).translate(_DROPPED)
    scheme = _SCHEME.match(address)
    if scheme is None or scheme[1].lower() != "data":
        return None if _BLANK.match(address) else NOTHING
    document = _parsed(address[scheme.end() :].partition("#")[0])
    if document is None:
        return NOTHING
    if is_markup(document.mime_type):
        return _written(document.mime_type, "utf-8", _rewritten(document, rewrite, origin))
    shown = as_text(document.mime_type)
    if shown is None:
        return f"data:text/plain;charset=utf-8,{quote(_NOT_SHOWN.format(document.mime_type))}"
    if shown == document.mime_type and document.is_plain:
        return None
    return _written(shown, document.charset, document.body)


def is_own(raw: str) -> bool:
    """Return whether a reference names a document of its own, and no place of the web."""
    return _scheme_of(raw) in ("data", "about", "blob", "filesystem")


def _parsed(address: str) -> _Document | None:
    """Read what follows `data:`; None where browsers fail, too."""
    media_type, comma, rest = address.partition(",")
    if not comma:
        return None
    body = unquote_to_bytes(rest.encode("utf-8", "replace"))
    media_type = media_type.strip(_SPACE)
    is_base64 = _BASE64.search(media_type)
    if is_base64 is not None:
        media_type = media_type[: is_base64.start()]
        try:
            body = _decoded(body)
        except binascii.Error:
            return None
    match = _TYPE.fullmatch(media_type)
    charset = _CHARSET.search(media_type)
    named = charset[1].lower() if charset else ""
    if match is None:
        return _Document("text/plain", named or "us-ascii", body, is_plain=not media_type or media_type[0] == ";")
    return _Document(match[1].lower(), named, body, is_plain=True)


def _decoded(body: bytes) -> bytes:
    """Decode Base64 as browsers do (infra.spec.whatwg.org, "forgiving-base64 decode"). Raises binascii.Error."""
    bare = _BASE64_SPACE.sub(b"", body)
    if len(bare) % 4 == 0:
        bare = bare[:-2] + bare[-2:].replace(b"=", b"")
    return b64decode(bare + b"=" * (-len(bare) % 4), validate=True)


def _rewritten(document: _Document, rewrite: Rewrite, origin: str) -> bytes:
    """Return a page of a `data:` URL, in UTF-8, with its references rewritten."""
    charset = text.decode_charset(document.body, f"{document.mime_type}; charset={document.charset}")
    page = text.decoder(charset).decode(document.body, final=True).encode("utf-8", "replace")
    is_xml = is_read_as_xml(document.mime_type)
    references = html_references.of_html(page, "utf-8", is_xml=is_xml, depth=MOST_INNER)
    base = references.base

    def inside(use: Use, written: str) -> Rewritten | None:
        if use in (Use.FRAME, Use.OBJECT):
            return Rewritten(NOTHING)
        if use in (Use.BASE, Use.TARGET):
            return rewrite(use, written)
        if base is not None:
            return _standing(use, rewrite(use, joined(base, written)), origin)
        # Without a base a relative reference means nothing in such a page; an entity of XML may make it another one.
        if use is not Use.FORM and _scheme_of(written) is None and "&" not in written:
            return None
        return _standing(use, rewrite(use, written), origin)

    return assembly.rewritten(page, references, inside)


def _standing(use: Use, new: Rewritten | None, origin: str) -> Rewritten | None:
    """Return a new reference as it works in a page without a place: with an origin, else dead."""
    if new is None or new.value.startswith("#") or _scheme_of(new.value) is not None:
        return new
    if origin:
        return Rewritten(origin + new.value, new.attributes)
    if use in (Use.LINK, Use.REFRESH, Use.FORM):
        return Rewritten(
            "#", (*(attribute for attribute in new.attributes if attribute[0] != "target"), ("target", "_self"))
        )
    return Rewritten("data:,", new.attributes)


def _scheme_of(raw: str) -> str | None:
    """Return the scheme of a reference, in lower case; None for a relative one."""
    match = _SCHEME.match(raw.strip(_EDGES).translate(_DROPPED))
    return None if match is None else match[1].lower()


def _written(mime_type: str, charset: str, body: bytes) -> str:
    media_type = f"{mime_type};charset={charset}" if charset else mime_type
    return f"data:{media_type};base64,{b64encode(body).decode('ascii')}"
