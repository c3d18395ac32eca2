"""Exports a selection as a folder that a browser reads: the newest snapshot of each domain, file by file.

It resumes where it was interrupted: notes beside the folder have a line for each file that is finished. After another
start of the machine a line proves nothing, since nothing is synced meanwhile; then the export starts over. What it
writes depends on the selection alone.

Some pages of the folder are not archived: what is in it, and the notices that links out lead to. They need no script.
The notice about a link shows its address by a script of its own, where the browser runs that: a file does not receive
what is behind the `#`.

Of a document in the folder is decided where its references lead, and what its head says.

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

import base64
import hashlib
import html
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from lxml import etree

import webarcfs
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import MetaData
from webarcfs.archive.system.clocks import Progress
from webarcfs.content import css_references, text
from webarcfs.content.outlinks import bare, resolver
from webarcfs.content.references import LONGEST_BODY, SCHEME, References, Rewritten, Use, fragment_of
from webarcfs.content.rewriting import assembly, data_urls, html_references
from webarcfs.content.text import label_of
from webarcfs.export.export_result import Summary
from webarcfs.export.selection import Exported, ExportedDocument, Selection, Stop, documents
from webarcfs.export.static_places import OWN, FileType, Places, SiteReading, SiteTarget, content_type_of, kind_of
from webarcfs.export.warc_records import SMALL

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


# == own pages, pure ==================================================================================================


_STYLE = (
    "body{font:1rem/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid #bbb}code{overflow-wrap:anywhere}"
)
_SCRIPT = 'try{document.getElementById("address").textContent=decodeURIComponent(location.hash.slice(1))}catch(error){}'
# A way that starts with `../` stays where the folder is, whatever comes behind.
_LEADING_SCRIPT = (
    'try{const way=decodeURIComponent(location.hash.slice(1));document.getElementById("address").textContent=way;'
    'document.getElementById("way").href="../"+way}catch(error){}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A domain in the list: its snapshot, and the file of its start page with the title; empty without one.

    `is_resource`: it has no page, only what pages of other hosts needed. Such domains come last, under a heading.
    """

    domain: str
    commit_tag: str
    publication: str
    documents: int
    start: str = ""
    title: str = ""
    is_resource: bool = False


def index(listed: Iterable[Listed], software: str) -> bytes:
    """Return the page that lists what is in the folder."""
    snapshots = list(listed)
    sites = [_row(snapshot) for snapshot in snapshots if not snapshot.is_resource]
    others = [_row(snapshot) for snapshot in snapshots if snapshot.is_resource]
    rows = "\n".join([*sites, *([_HEADING, *others] if others else [])])
    body = f"""<h1>Archived web sites</h1>
<p>This folder has archived pages as they were at the times below. Links lead to the pages of this folder only; scripts
do not run. <code>static.json</code> says where each file comes from.</p>
<p lang="de">Dieser Ordner enthält archivierte Seiten, so wie sie zu den genannten Zeiten waren. Verweise führen nur zu
Seiten dieses Ordners; Skripte laufen nicht. <code>static.json</code> nennt die Herkunft jeder Datei.</p>
<table>
<tr><th scope="col">Site / <span lang="de">Angebot</span></th><th scope="col">\
Snapshot (<abbr title="UTC+01:00">CET</abbr>)</th><th scope="col">Publication / <span lang="de">Publikation</span></th>\
<th scope="col">Documents / <span lang="de">Dokumente</span></th></tr>
{rows}
</table>
<p>Made by {escape(software)}.</p>"""
    return _page("Archived web sites", body, "")


_HEADING = (
    '<tr><th scope="rowgroup" colspan="4">Hosts without pages, which only gave resources / '
    '<span lang="de">Rechner ohne Seiten, die nur Ressourcen lieferten</span></th></tr>'
)


def _row(snapshot: Listed) -> str:
    name = escape(snapshot.domain)
    if snapshot.start:
        title = f"<br>{escape(snapshot.title)}" if snapshot.title else ""
        name = f'<a href="{escape(snapshot.start)}">{name}</a>{title}'
    cells = (name, f"<code>{escape(snapshot.commit_tag)}</code>", escape(snapshot.publication), str(snapshot.documents))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def missing() -> bytes:
    """Return the notice for what is not in the folder."""
    body = """<h1>This is not in the folder</h1>
<p>The link leads out of what was exported: to another site, to a page that was not archived, or to a mail address. It
was put out of force; nothing was asked for on the network.</p>
<p lang="de">Der Verweis führt aus dem hinaus, was exportiert wurde: zu einem anderen Angebot, zu einer Seite, die nicht
archiviert wurde, oder zu einer Mailadresse. Er wurde außer Kraft gesetzt; im Netz wurde nichts abgefragt.</p>
"""
    return _notice("This is not in the folder", body)


def form() -> bytes:
    """Return the notice for forms."""
    body = """<h1>Forms do not work here</h1>
<p>The form belongs to an archived page. Nothing that was typed in was sent.</p>
<p lang="de">Das Formular gehört zu einer archivierten Seite. Die Eingaben wurden nirgendwohin gesendet.</p>
"""
    return _notice("Forms do not work here", body)


def live() -> bytes:
    """Return the notice before a document that keeps its links, with the way to it."""
    body = """<h1>This document keeps its links</h1>
<p>It is a PDF in this folder. Links in it were not changed: they lead to the live web, and not to archived pages. A
program that shows it may ask for them when they are clicked.</p>
<p lang="de">Es ist ein PDF in diesem Ordner. Die Verweise darin wurden nicht geändert: sie führen in das heutige Netz,
und nicht zu archivierten Seiten. Ein Programm, das es zeigt, fragt sie vielleicht ab, wenn sie angeklickt werden.</p>
<p><a id="way">Open the document / <span lang="de">Das Dokument öffnen</span></a></p>
"""
    return _notice("This document keeps its links", body, _LEADING_SCRIPT)


def _notice(title: str, body: str, script: str = _SCRIPT) -> bytes:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    ways = f"""<p>Address / <span lang="de">Adresse</span>:
<code id="address">behind the # of this page's own address</code></p>
<p><a href="../index.html">What is in the folder / <span lang="de">Was der Ordner enthält</span></a></p>
<script>{script}</script>"""
    return _page(title, body + ways, f"script-src 'sha256-{digest}'; ")


def _page(title: str, body: str, scripts: str) -> bytes:
    policy = f"default-src 'none'; {scripts}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
""".encode()


# == export ===========================================================================================================


#: Version of the form of the folder, in static.json.
FORMAT = 1
#: A file while it is written, and a whole body of which the beginning is read.
_NEW = ".new"
_WHOLE = ".whole"
#: What may have been done to a document, beside its references.
_CUT = "pages cut, since they are too long to be rewritten"
_CLEANED = "drawings rewritten, without scripts and declarations"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SOME = 100
_SOFTWARE = f"webarcfs {webarcfs.__version__}"


def export(selection: Selection, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write the folder `out`, or resume it. Raises Interrupted when `stop` says so, Damaged, OSError."""
    newest = replace(
        selection, chosen={domain: snapshots[-1:] for domain, snapshots in selection.chosen.items()}, before={}
    )
    run = _Export(newest, out, progress, stop)
    with _begun(newest, out) as file:
        lines = _Lines(file, out)
        run.write(lines)
        run.finish(lines)
    left_out = dict(run.left_out)
    if older := len(selection) - len(newest):
        left_out["older snapshots"] = older
    return Summary(
        snapshots=len(newest), documents=run.count, files=run.count + run.own, bytes=run.size, left_out=left_out
    )


def _begun(selection: Selection, out: Path) -> TextIO:
    """Open the notes, behind their first line; without notes of this selection and start of the machine, restart."""
    head = {"format": FORMAT, "selection": selection.digest, "boot": _BOOT.read_text("ascii").strip()}
    notes = out.with_name(f"{out.name}.notes")
    notes.touch()
    file = notes.open("r+", encoding="ascii", newline="\n")
    if file.readline() != json.dumps(head) + "\n":
        shutil.rmtree(out, ignore_errors=True)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(head) + "\n")
        file.flush()
    out.mkdir(exist_ok=True)
    for name in (_NEW, _WHOLE):
        (out / name).unlink(missing_ok=True)
    return file


class _Lines:
    """The lines of finished files: those of an earlier run are read first, then new ones are added."""

    def __init__(self, file: TextIO, out: Path) -> None:
        self._file, self._out = file, out
        self._first = self._at = file.tell()
        self._is_earlier = True

    def found(self, path: str) -> dict[str, Any] | None:
        """Return the next line of the earlier run, if it is whole and that of this file, which is as it says."""
        if not self._is_earlier:
            return None
        line = self._file.readline()
        if line.endswith("\n"):
            row: dict[str, Any] = json.loads(line)
            if row["file"] == path and self._is_there(row):
                self._at += len(line)
                return row
        self._file.seek(self._at)
        self._file.truncate()
        self._is_earlier = False
        return None

    def _is_there(self, row: dict[str, Any]) -> bool:
        try:
            return bool((self._out / row["file"]).stat().st_size == row["size"])
        except FileNotFoundError:
            return False

    def add(self, row: dict[str, Any]) -> None:
        """Add the line of a file that is finished."""
        self._file.write(json.dumps(row) + "\n")

    def all(self) -> Iterator[str]:
        """Yield all lines."""
        self._file.seek(self._first)
        return (line.rstrip("\n") for line in self._file)


@dataclass(slots=True)
class _Start:
    """The page with which a domain is listed: its root, else the highest page."""

    rank: tuple[int, int, int, str] | None = None
    path: str = ""
    title: str = ""

    def offer(self, arc: str, path: str, meta: MetaData) -> None:
        rank = (int(arc != arc_paths.DIRECTORY_INDEX), arc.count("/"), len(arc), arc)
        if self.rank is None or rank < self.rank:
            self.rank, self.path, self.title = rank, path, meta.title


@dataclass
class _Export:
    """One run of an export."""

    selection: Selection
    out: Path
    progress: Progress
    stop: Stop
    count: int = 0
    own: int = 0
    size: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    listed: list[tuple[Listed, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        trees = {domain: snapshots[0].tree for domain, snapshots in self.selection.chosen.items()}
        self._places = Places(trees, self.selection.open)
        # Folders that were made; to ask the disk for each file would cost a system call.
        self._folder = lru_cache(maxsize=10_000)(self._make_folder)

    def write(self, lines: _Lines) -> None:
        """Write the files of all documents."""
        for number, exported in enumerate(self.selection):
            self.progress("snapshots", number, len(self.selection))
            self._snapshot(exported, lines)
        self.progress("snapshots", len(self.selection), len(self.selection))

    def _snapshot(self, exported: Exported, lines: _Lines) -> None:
        start, before, resources = _Start(), self.count, 0
        domain = exported.tag.domain
        for document, meta, kind in self._documents(exported):
            path = self._places.path_of(domain, document.path, kind)
            resources += meta.is_resource
            if kind.reading is SiteReading.HTML and not meta.is_resource:
                start.offer(document.path, path, meta)
            row = lines.found(path)
            if row is None:
                row = self._file(exported, document, meta, kind, path)
                lines.add(row)
            self.count += 1
            self.size += row["size"]
            self.left_out.update(row.get("changed", ()))
            if not self.count % _SOME:
                self.progress("documents", self.count, self.count)
        message = exported.message
        listed = Listed(
            domain=domain, commit_tag=str(exported.tag), publication=message.publication,
            documents=self.count - before, start=relative("", start.path), title=start.title,
            is_resource=0 < resources == self.count - before,
        )  # fmt: skip
        self.listed.append((listed, {"tree": exported.tree, "record": message.job, "start": start.path}))

    def _documents(self, exported: Exported) -> Iterator[tuple[ExportedDocument, MetaData, FileType]]:
        """Yield the documents of a snapshot that the folder will have; count what it will not."""
        for document in documents(exported.store, exported.tree):
            if self.stop():
                raise Interrupted("the export was interrupted; the same command resumes it")
            if not document.data_xml:
                continue
            if not document.data:
                self.left_out["documents without a body"] += 1
                continue
            if additions := sum(1 for _ in document.additions()):
                self.left_out["additions"] += additions
            meta = data_xml.metadata(exported.store.read(document.data_xml))
            if meta.is_error_page:
                self.left_out["error pages"] += 1
            else:
                yield document, meta, kind_of(exported.store, meta, document.path, document.head)

    # -- files

    def _file(
        self, exported: Exported, document: ExportedDocument, meta: MetaData, kind: FileType, path: str
    ) -> dict[str, Any]:
        """Write the file of a document; return its line."""
        store, blob = exported.store, document.files[document.data]
        row: dict[str, Any] = {
            "file": path, "url": meta.url, "commitTag": str(meta.commit_tag), "blob": blob, "mimeType": meta.mime_type,
            "captureTime": meta.capture_time.isoformat(),
        }  # fmt: skip
        changed = []
        new = self.out / _NEW
        if kind.reading is SiteReading.NONE:
            self._copy(store, blob, new)
        else:
            page = page_of(
                self._page(exported, document, meta, kind, path), self._beginning(store, blob), self._places.of
            )
            new.write_bytes(page.body)
            changed = [*([_CUT] if page.is_cut else []), *([_CLEANED] if page.is_cleaned else [])]
        target = self.out / path
        self._folder(target.parent)
        row["size"] = new.stat().st_size
        new.replace(target)
        return row | ({"changed": changed} if changed else {})

    def _page(
        self, exported: Exported, document: ExportedDocument, meta: MetaData, kind: FileType, path: str
    ) -> RewrittenDocument:
        """Return what is known of a document that is rewritten."""
        comment = {
            "url": meta.url, "captured": meta.capture_time.isoformat(), "commitTag": str(meta.commit_tag),
            "snapshot": str(exported.tag), "publication": exported.message.publication,
            "record": exported.message.job, "blob": document.files[document.data],
        }  # fmt: skip
        content_type = content_type_of(exported.store, document.head)
        return RewrittenDocument(
            url=meta.url, path=path, reading=kind.reading, content_type=content_type, comment=comment
        )

    def _copy(self, store: Repository, blob: str, path: Path) -> None:
        size = store.size(blob)
        if size <= SMALL:
            path.write_bytes(store.read(blob))
            return
        with path.open("wb") as file:
            # Reserved first: a full disk then fails as one, instead of a git that fails for some reason.
            os.posix_fallocate(file.fileno(), 0, size)
            store.copy(blob, file.fileno())

    def _beginning(self, store: Repository, blob: str) -> bytes:
        """Return the beginning of a body, as far as it can be rewritten, and a byte more, if it has more."""
        if store.size(blob) <= LONGEST_BODY:
            return store.read(blob)
        whole = self.out / _WHOLE
        self._copy(store, blob, whole)
        with whole.open("rb") as file:
            beginning = file.read(LONGEST_BODY + 1)
        whole.unlink()
        return beginning

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    # -- what is not archived

    def finish(self, lines: _Lines) -> None:
        """Write the pages of the folder's own, and static.json."""
        self._own("index.html", index((snapshot for snapshot, _ in self.listed), _SOFTWARE))
        self._own(MISSING, missing())
        self._own(FORM, form())
        self._own(LIVE, live())
        new = self.out / _NEW
        with new.open("w", encoding="ascii", newline="\n") as file:
            head = {"format": "webarcfs static", "version": FORMAT, "software": _SOFTWARE, "files": self.count}
            snapshots = [
                {
                    "commitTag": snapshot.commit_tag, "domain": snapshot.domain,
                    "publication": snapshot.publication, **more, "documents": snapshot.documents,
                }
                for snapshot, more in self.listed
            ]  # fmt: skip
            file.write(json.dumps({**head, "snapshots": snapshots}, indent=1)[:-2] + ',\n "documents": [')
            sign = "\n"
            for line in lines.all():
                file.write(f"{sign}  {line}")
                sign = ",\n"
            file.write("\n ]\n}\n")
        self.size += new.stat().st_size
        self.own += 1
        new.replace(self.out / "static.json")

    def _own(self, path: str, content: bytes) -> None:
        target = self.out / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
        self.own += 1
        self.size += len(content)
