"""A document as it is in the exported folder: its references rewritten, and what it is said at its head. Pure.

A file has no head of HTTP: a page's charset and the policy for it must stand in the page, before anything else. The
policy lets nothing but the folder load, and no script run. Bytes outside of references stay as they were.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from webarcfs.content import text
from webarcfs.content.declared_charset import label_of
from webarcfs.content.rewriting import assembly, css_references, html_references
from webarcfs.content.rewriting.references import LONGEST_BODY, References
from webarcfs.exchange.static import drawings
from webarcfs.exchange.static.file_types import Reading
from webarcfs.exchange.static.places import Place
from webarcfs.exchange.static.targets import Targets

#: What a page may load and do. In a folder that a web server shows, `file:` matches nothing.
POLICY = (
    "default-src 'self' file: data: blob: 'unsafe-inline'; script-src 'none'; worker-src 'none'; connect-src 'none'; "
    "form-action 'self' file:"
)
_SPACE = rb"[ \t\r\n\f]"
_COMMENT = rb"<!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+--!?>)"
# What may precede a page's doctype (HTML 13.2.6.4.1): without one, or behind anything else, its mode is another one.
_DOCTYPE = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:" + _SPACE + rb"++|" + _COMMENT + rb"|<\?[^>]*+>|</[^a-z>][^>]*+>)*+<!doctype[^>]*+>",
    re.IGNORECASE,
)
_BOM = b"\xef\xbb\xbf"
_XML_COMMENT = rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+-->"
_XML_GAP = rb"(?:" + _SPACE + rb"++|" + _XML_COMMENT + rb"|<\?(?:[^?]++|\?(?!>))*+\?>)*+"
_XML_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[ \t\r\n](?:[^?]++|\?(?!>))*+\?>")
_XML_ATTRIBUTES = rb"""(?:[^>"'/]++|"[^"]*+"|'[^']*+'|/(?!>))*+"""
_XML_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?" + _XML_GAP
    + rb"""(?:<!DOCTYPE(?:[^\[>"']++|"[^"]*+"|'[^']*+')*+(?:\[(?:[^\]"'<]++|"[^"]*+"|'[^']*+'|<(?!!--)|"""
    + _XML_COMMENT + rb""")*+\][ \t\r\n]*+)?+>""" + _XML_GAP + rb")?+"
    + rb"<((?:[^ \t\r\n/>:]++:)?+)html(?=[ \t\r\n>])" + _XML_ATTRIBUTES + rb">"
)  # fmt: skip
_SHEET_CHARSET = re.compile(rb'(?:\xef\xbb\xbf)?(?:@charset "[^"]*+";)?')
_CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document to be rewritten. `said` is told in its comment: name → value."""

    url: str
    path: str
    reading: Reading
    content_type: str
    said: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """The bytes of a file. `is_cut`: the document was too long to be read, and ends early; `is_cleaned`: what would run
    was taken out of a drawing.
    """

    body: bytes
    is_cut: bool = False
    is_cleaned: bool = False


def page_of(document: Document, body: bytes, place_of: Callable[[str], Place | None]) -> Page:
    """Return the file of a document; `body` is its beginning, up to `references.LONGEST_BODY` and a byte."""
    reading = document.reading
    charset = text.decode_charset(body, document.content_type)
    references = _references(reading, body, charset)
    base = references.base or ""
    targets = Targets(document.url, document.path, charset, place_of, base, has_attributes=reading is Reading.HTML)
    made = assembly.rewritten(body, references, targets.of)
    label = label_of(references.charset_sent)
    # XML that is not well-formed ends where its fault is, as in a browser: it is not cut.
    is_cut = references.is_cut and (not references.is_xml or len(body) > LONGEST_BODY)
    if reading is Reading.CSS:
        said = _comment(document.said, targets.originals).replace("*/", "*&#47;")
        return Page(_sheet(made, label, f"/* {said} */\n".encode("ascii")), is_cut)
    said = f"<!-- {_comment(document.said, targets.originals)} -->\n"
    if reading is Reading.HTML:
        return Page(_html(made, label, said), is_cut)
    is_other = references.charset_sent != references.charset
    made = _declared(made, label) if is_other or not made.isascii() else made
    if reading is Reading.DRAWING:
        drawing, is_cleaned = drawings.cleaned(made)
        return Page(drawing, is_cut, is_cleaned)
    return Page(_xhtml(made, said), is_cut)


def _references(reading: Reading, body: bytes, charset: str) -> References:
    if reading is Reading.CSS:
        return css_references.of_css(body, charset)
    # The policy forbids scripts, but a browser that could run them has read <noscript> as text by then.
    return html_references.of_html(body, charset, is_xml=reading is not Reading.HTML, shows_noscript=True)


def _meta(label: str, end: str) -> str:
    charset = f'<meta charset="{label}"{end}>' if label else ""
    return f'{charset}<meta http-equiv="Content-Security-Policy" content="{POLICY}"{end}>'


def _html(body: bytes, label: str, said: str) -> bytes:
    """Return a page with charset, policy and comment before all else: an open head takes what the page has for it."""
    doctype = _DOCTYPE.match(body)
    at = doctype.end() if doctype else len(_BOM) * body.startswith(_BOM)
    return b"".join((body[:at], f"{_meta(label, '')}\n{said}".encode("ascii"), body[at:]))


def _xhtml(body: bytes, said: str) -> bytes:
    """Return a page of XML with policy and comment in its first head; one that is no page is shown as text."""
    root = _XML_ROOT.match(body)
    if root is None:
        shown = html.escape(body.decode("utf-8", "replace"))
        page = f"<head>{_meta('', '/')}\n{said}<title></title></head><body><pre>{_CONTROL.sub(' ', shown)}</pre></body>"
        return f'<html xmlns="http://www.w3.org/1999/xhtml">{page}</html>\n'.encode("ascii", "xmlcharrefreplace")
    head = re.compile(_XML_GAP + rb"<" + re.escape(root[1]) + rb"head(?=[ \t\r\n>])" + _XML_ATTRIBUTES + rb">").match(
        body, root.end()
    )
    meta = _meta("", "/").replace("<meta", '<meta xmlns="http://www.w3.org/1999/xhtml"')
    at = head.end() if head else root.end()
    new = f"{meta}\n{said}" if head else f'<head xmlns="http://www.w3.org/1999/xhtml">{meta}\n{said}</head>'
    return b"".join((body[:at], new.encode("ascii"), body[at:]))


def _declared(body: bytes, label: str) -> bytes:
    """Return XML that declares its encoding."""
    found = _XML_DECLARATION.match(body)
    at = found.end() if found else len(_BOM) * body.startswith(_BOM)
    return f'<?xml version="1.0" encoding="{label}"?>'.encode("ascii") + (b"" if found else b"\n") + body[at:]


def _sheet(body: bytes, label: str, said: bytes) -> bytes:
    found = _SHEET_CHARSET.match(body)
    at = found.end() if found else 0
    charset = body[:at] if body.isascii() else f'@charset "{label}";'.encode("ascii")
    return b"".join((charset, b"\n" if charset else b"", said, body[at:]))


def _comment(said: Mapping[str, str], originals: Mapping[str, str]) -> str:
    """Return a comment's text: what the document is, and what its references were."""
    lines = ["An archived document, exported by webarcfs with its references made relative."]
    lines += (f"{name}: {value}" for name, value in said.items() if value)
    if originals:
        lines.append("references that were others (of links and forms, data-webarc-href tells):")
        lines += (f"{new} was {raw}" for raw, new in originals.items())
    return "\n".join(map(_escaped, lines)) + "\n"


def _escaped(line: str) -> str:
    """Return a line that ends no comment, in ASCII."""
    line = html.escape(_CONTROL.sub(" ", line.replace("\n", " ")), quote=False).replace("--", "-&#45;")
    return line.encode("ascii", "xmlcharrefreplace").decode("ascii")
