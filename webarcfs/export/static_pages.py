"""A document as it is in the exported folder: where its references lead, and what its head says. Pure.

References lead to a file, to a notice, or nowhere, never to the live web. What a reference was before is kept: of a
link or a form in an attribute of its element, of what a page embeds in the comment at its head, since not all of that
is in attributes. Bytes outside of references stay as they were.

A file has no head of HTTP: a page's charset and the policy for it must be in the page, before anything else. The policy
lets nothing but the folder load, and no script run.

An SVG drawing has no place for a policy that forbids scripts, so it is without what a browser would run. A drawing that
has nothing of that kind stays byte for byte; any other is rewritten. The parser is that of browsers; what it cannot
read to the end, they show up to the fault, and so does this.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from lxml import etree

from webarcfs.content import css_references, text
from webarcfs.content.outlinks import bare, resolver
from webarcfs.content.references import LONGEST_BODY, SCHEME, References, Rewritten, Use, fragment_of
from webarcfs.content.rewriting import assembly, data_urls, html_references
from webarcfs.content.text import label_of
from webarcfs.export.static_places import OWN, SiteReading, SiteTarget

# == targets, pure ====================================================================================================


#: Pages of ours: for what is not in the folder, for forms, and before documents that keep their links.
MISSING = f"{OWN}/missing.html"
FORM = f"{OWN}/form.html"
LIVE = f"{OWN}/live.html"
#: What a browser shows with links that are not rewritten.
_WITH_LIVE_LINKS = ".pdf"
#: The attribute that keeps the original of a reference.
ORIGINAL = "data-webarc-href"
#: Most characters of an original that a notice is given, and most originals that a comment lists.
_LONGEST = 2_000
_MOST = 5_000
_NOTHING = "data:,"
_KEPT_IN_ATTRIBUTE = (Use.LINK, Use.FORM, Use.BASE)


class SiteTargets:
    """Returns what takes the place of each reference of one document, and remembers what was there."""

    def __init__(
        self,
        url: str,
        path: str,
        charset: str,
        place_of: Callable[[str], SiteTarget | None],
        base: str,
        *,
        has_attributes: bool,
    ) -> None:
        """`url` and `path` are those of the document, `base` is what its <base> says.

        `has_attributes`: an element may get an attribute. XML refuses an element with two of a name.
        """
        self._url, self._path, self._place_of = url, path, place_of
        self._folder = path.rpartition("/")[0]
        self._has_attributes = has_attributes
        self._resolve = resolver(url, charset)
        self._has_base = False
        based = self._resolve(bare(base)) if base else None
        if based and based != url:
            self._resolve, self._has_base = resolver(based, charset), True
        #: What a reference was → what it is now: those that no attribute keeps.
        self.originals: dict[str, str] = {}

    def of(self, use: Use, raw: str) -> Rewritten | None:
        """Return what takes the place of a reference as it was written; None: it stays."""
        if use is Use.TARGET:
            return None
        if use is Use.BASE:
            new: str | None = ""
        elif use is Use.FORM:
            new = self._notice(FORM, raw)
        elif use in (Use.LINK, Use.REFRESH, Use.FRAME):
            new = self._link(use, raw)
        else:
            new = self._embedded(use, raw)
        if new is None or new == raw:
            return None
        if use in _KEPT_IN_ATTRIBUTE and self._has_attributes:
            return Rewritten(new, ((ORIGINAL, raw),))
        if len(self.originals) < _MOST and len(raw) <= _LONGEST:
            self.originals.setdefault(raw, new)
        return Rewritten(new)

    def _link(self, use: Use, raw: str) -> str | None:
        """Return where a link, a frame or a refresh leads: to a page in any case."""
        text = raw.strip()
        if not text and use is Use.FRAME:
            return None
        if text.startswith("#") and not self._has_base:
            return None
        if use is Use.FRAME and data_urls.is_own(raw):
            return data_urls.in_a_frame(raw, self.of)
        scheme = SCHEME.match(raw)
        if scheme and scheme[1].lower() not in ("http", "https"):
            return data_urls.NOTHING if use is Use.FRAME else self._notice(MISSING, raw)
        url = self._resolve(bare(raw)) if text else self._url
        place = None if url is None else self._place_of(url)
        if place is not None:
            return self._led_or_told(place, raw)
        return self._notice(MISSING, raw if url is None else url + fragment_of(raw))

    def _embedded(self, use: Use, raw: str) -> str | None:
        if data_urls.is_own(raw):
            return data_urls.in_a_frame(raw, self.of) if use is Use.OBJECT else None
        if not raw.strip() or (raw.lstrip().startswith("#") and not self._has_base):
            return None
        url = self._resolve(bare(raw))
        place = None if url is None else self._place_of(url)
        if place is not None:
            return self._led_or_told(place, raw) if use is Use.OBJECT else self._led(place, raw)
        return data_urls.NOTHING if use is Use.OBJECT else _NOTHING

    def _led_or_told(self, place: SiteTarget, raw: str) -> str:
        """Return the way to a file that a browser shows; for one that keeps its links to the notice before it."""
        if not place.path.lower().endswith(_WITH_LIVE_LINKS):
            return self._led(place, raw)
        return self._notice(LIVE, f"{relative('', place.path)}{place.fragment or fragment_of(raw)}")

    def _led(self, place: SiteTarget, raw: str) -> str:
        fragment = place.fragment or fragment_of(raw)
        if place.path == self._path and fragment:
            return fragment
        return f"{relative(self._folder, place.path)}{fragment}"

    def _notice(self, page: str, about: str) -> str:
        """Return the way to a notice; `about` is written as text, or is the way from the folder to a file of it."""
        return f"{relative(self._folder, page)}#{quote(about[:_LONGEST], safe='')}"


@lru_cache(maxsize=1 << 16)
def relative(folder: str, path: str) -> str:
    """Return the reference from a page in a folder to a file, both by their paths in the exported folder."""
    here, there = folder.split("/") if folder else [], path.split("/")
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    return quote("/".join([*[".."] * (len(here) - shared), *there[shared:]]), safe="/~@+,;=!()$&'")


# == drawings, pure ===================================================================================================


_SVG = "http://www.w3.org/2000/svg"
_XHTML = "http://www.w3.org/1999/xhtml"
#: Elements that run something or contain a page.
_OUT = frozenset({"script", "foreignObject", "handler", "listener", "iframe", "audio", "video", "canvas"})
_ANIMATIONS = frozenset({"animate", "set", "animateTransform", "animateMotion", "animateColor"})
#: What brings in markup or attributes that are elsewhere.
_DECLARATION = re.compile(rb"<!(?:ENTITY|ATTLIST)")
_DRAWINGS_SCHEME = re.compile(r"[\0-\x20]*([a-z][a-z0-9+.-]*):([^,;]*)", re.IGNORECASE)
_DROPPED = {ord(character): None for character in "\t\n\r"}
#: Times that a drawing is looked at.
_DRAWINGS_MOST = 4
_DRAWINGS_NOTHING = f'<svg xmlns="{_SVG}"/>\n'.encode()


def cleaned(drawing: bytes) -> tuple[bytes, bool]:
    """Return a drawing that runs nothing, and whether it is another one now."""
    rewritten = _made(drawing)
    if rewritten is None:
        return drawing, False
    # What entities bring in is only found in the drawing that is written without them.
    for _ in range(_DRAWINGS_MOST):
        drawing, rewritten = rewritten, _made(rewritten)
        if rewritten is None:
            return drawing, True
    return _DRAWINGS_NOTHING, True


def _made(drawing: bytes) -> bytes | None:
    """Return a drawing without what was found in it; None if there was nothing."""
    root = _parsed(drawing, as_found=True)
    if root is not None and not _DECLARATION.search(drawing) and not _clean(root):
        return None
    root = _parsed(drawing, as_found=False)
    if root is None or root.tag != f"{{{_SVG}}}svg":
        return None if drawing == _DRAWINGS_NOTHING else _DRAWINGS_NOTHING
    _clean(root)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _parsed(drawing: bytes, *, as_found: bool) -> etree._Element | None:
    """Parse a drawing: without putting entities in, and only if it is sound; or as far as that is possible.

    libxml2 bounds what becomes of entities. It loads nothing.
    """
    parser = etree.XMLParser(
        recover=not as_found, resolve_entities=not as_found, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        root: etree._Element | None = etree.fromstring(drawing, parser)
    except (etree.LxmlError, ValueError):
        return None
    return root


def _clean(root: etree._Element) -> bool:
    """Remove what may run; return whether there was anything. The root stays, whatever it is."""
    is_changed = False
    for element in list(root.iter(etree.Element)):
        if _runs(element):
            is_changed = True
            parent = element.getparent()
            if parent is not None:
                _remove(parent, element)
        else:
            active = [name for name, value in element.attrib.items() if _is_active(str(name), str(value))]
            for name in active:
                del element.attrib[name]
            is_changed = is_changed or bool(active)
    return is_changed


def _remove(parent: etree._Element, element: etree._Element) -> None:
    """Remove an element without the text behind it."""
    before = element.getprevious()
    if element.tail and before is None:
        parent.text = (parent.text or "") + element.tail
    elif element.tail and before is not None:
        before.tail = (before.tail or "") + element.tail
    parent.remove(element)


def _runs(element: etree._Element) -> bool:
    namespace, _, name = str(element.tag).rpartition("}")
    if namespace == f"{{{_XHTML}":
        return True
    if name in _ANIMATIONS:
        changed = (element.get("attributeName") or "").rpartition(":")[2].lower()
        return changed in ("href", "src") or changed.startswith("on")
    return namespace == f"{{{_SVG}" and name in _OUT


def _is_active(name: str, value: str) -> bool:
    local = name.rpartition("}")[2].lower()
    if local not in ("href", "src"):
        return local.startswith("on")
    scheme = _DRAWINGS_SCHEME.match(value.translate(_DROPPED))
    if scheme is None:
        return False
    kind = scheme[2].strip().lower()
    return scheme[1].lower() not in ("data", "about") or not (kind in ("", "blank") or kind.startswith("image/"))


# == pages, pure ======================================================================================================


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
class RewrittenDocument:
    """A document to be rewritten. `comment` goes into its comment: name → value."""

    url: str
    path: str
    reading: SiteReading
    content_type: str
    comment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SitePage:
    """The bytes of a file. `is_cut`: the document was too long to be read, and ends early; `is_cleaned`: what would run
    was taken out of a drawing.
    """

    body: bytes
    is_cut: bool = False
    is_cleaned: bool = False


def page_of(document: RewrittenDocument, body: bytes, place_of: Callable[[str], SiteTarget | None]) -> SitePage:
    """Return the file of a document; `body` is its beginning, up to `references.LONGEST_BODY` and a byte."""
    reading = document.reading
    charset = text.decode_charset(body, document.content_type)
    references = _references(reading, body, charset)
    base = references.base or ""
    targets = SiteTargets(
        document.url, document.path, charset, place_of, base, has_attributes=reading is SiteReading.HTML
    )
    rewritten = assembly.rewritten(body, references, targets.of)
    label = label_of(references.charset_sent)
    # XML that is not well-formed ends where its fault is, as in a browser: it is not cut.
    is_cut = references.is_cut and (not references.is_xml or len(body) > LONGEST_BODY)
    if reading is SiteReading.CSS:
        comment = _comment(document.comment, targets.originals).replace("*/", "*&#47;")
        return SitePage(_sheet(rewritten, label, f"/* {comment} */\n".encode("ascii")), is_cut)
    comment = f"<!-- {_comment(document.comment, targets.originals)} -->\n"
    if reading is SiteReading.HTML:
        return SitePage(_html(rewritten, label, comment), is_cut)
    is_other = references.charset_sent != references.charset
    rewritten = _declared(rewritten, label) if is_other or not rewritten.isascii() else rewritten
    if reading is SiteReading.DRAWING:
        drawing, is_cleaned = cleaned(rewritten)
        return SitePage(drawing, is_cut, is_cleaned)
    return SitePage(_xhtml(rewritten, comment), is_cut)


def _references(reading: SiteReading, body: bytes, charset: str) -> References:
    if reading is SiteReading.CSS:
        return css_references.of_css(body, charset)
    # The policy forbids scripts, but a browser that could run them has read <noscript> as text by then.
    return html_references.of_html(body, charset, is_xml=reading is not SiteReading.HTML, shows_noscript=True)


def _meta(label: str, end: str) -> str:
    charset = f'<meta charset="{label}"{end}>' if label else ""
    return f'{charset}<meta http-equiv="Content-Security-Policy" content="{POLICY}"{end}>'


def _html(body: bytes, label: str, comment: str) -> bytes:
    """Return a page with charset, policy and comment before all else: an open head takes what the page has for it."""
    doctype = _DOCTYPE.match(body)
    at = doctype.end() if doctype else len(_BOM) * body.startswith(_BOM)
    return b"".join((body[:at], f"{_meta(label, '')}\n{comment}".encode("ascii"), body[at:]))


def _xhtml(body: bytes, comment: str) -> bytes:
    """Return a page of XML with policy and comment in its first head; one that is no page is shown as text."""
    root = _XML_ROOT.match(body)
    if root is None:
        shown = html.escape(body.decode("utf-8", "replace"))
        page = (
            f"<head>{_meta('', '/')}\n{comment}<title></title></head><body><pre>{_CONTROL.sub(' ', shown)}</pre></body>"
        )
        return f'<html xmlns="http://www.w3.org/1999/xhtml">{page}</html>\n'.encode("ascii", "xmlcharrefreplace")
    head = re.compile(_XML_GAP + rb"<" + re.escape(root[1]) + rb"head(?=[ \t\r\n>])" + _XML_ATTRIBUTES + rb">").match(
        body, root.end()
    )
    meta = _meta("", "/").replace("<meta", '<meta xmlns="http://www.w3.org/1999/xhtml"')
    at = head.end() if head else root.end()
    new = f"{meta}\n{comment}" if head else f'<head xmlns="http://www.w3.org/1999/xhtml">{meta}\n{comment}</head>'
    return b"".join((body[:at], new.encode("ascii"), body[at:]))


def _declared(body: bytes, label: str) -> bytes:
    """Return XML that declares its encoding."""
    match = _XML_DECLARATION.match(body)
    at = match.end() if match else len(_BOM) * body.startswith(_BOM)
    return f'<?xml version="1.0" encoding="{label}"?>'.encode("ascii") + (b"" if match else b"\n") + body[at:]


def _sheet(body: bytes, label: str, comment: bytes) -> bytes:
    match = _SHEET_CHARSET.match(body)
    at = match.end() if match else 0
    charset = body[:at] if body.isascii() else f'@charset "{label}";'.encode("ascii")
    return b"".join((charset, b"\n" if charset else b"", comment, body[at:]))


def _comment(properties: Mapping[str, str], originals: Mapping[str, str]) -> str:
    """Return a comment's text: what the document is, and what its references were."""
    lines = ["An archived document, exported by webarcfs with its references made relative."]
    lines += (f"{name}: {value}" for name, value in properties.items() if value)
    if originals:
        lines.append("references that were others (of links and forms, data-webarc-href tells):")
        lines += (f"{new} was {raw}" for raw, new in originals.items())
    return "\n".join(map(_escaped, lines)) + "\n"


def _escaped(line: str) -> str:
    """Return a line that ends no comment, in ASCII."""
    line = html.escape(_CONTROL.sub(" ", line.replace("\n", " ")), quote=False).replace("--", "-&#45;")
    return line.encode("ascii", "xmlcharrefreplace").decode("ascii")
