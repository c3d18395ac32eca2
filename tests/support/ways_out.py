"""Documents of every type that a browser makes a page of, with links out of the archive, and a hand that clicks them.

Each link has a host of its own, so that the sink says which one led out.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from urllib.parse import quote

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Frame, Locator
from playwright.sync_api import Page as Tab

_XHTML = "http://www.w3.org/1999/xhtml"
_SIZE = "style='position:static;display:block;width:90px;height:20px;background:red'"
_PLACE = "width=300 height=200"


def link(host: str, target: str = "_top") -> str:
    """A link to a host of its own, as HTML and XML have it; most ways out lead through the topmost window."""
    return f"<a target='{target}' {_SIZE} href='http://{host}.test/'>{host}</a>"


def xml_link(host: str) -> str:
    """The same by a prefix."""
    return link(host).replace("<a", "<h:a").replace("</a", "</h:a")


def _data(kind: str, body: str, *, base64: bool = False) -> str:
    if base64:
        return f"data:{kind};base64,{b64encode(body.encode()).decode()}"
    return f"data:{kind},{quote(body)}"


def _xml(name: str) -> str:
    return f'<r xmlns:h="{_XHTML}">{xml_link(name)}</r>'


def _svg(name: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="150"><a target="_top" href="http://{name}.test/">'
        '<rect width="100" height="100" fill="red"/></a></svg>'
    )


def _framed(*addresses: str) -> str:
    return "".join(f'<iframe {_PLACE} src="{address}"></iframe>' for address in addresses)


def _page(body: str) -> tuple[str, bytes]:
    return "text/html", body.encode()


def _html(body: str) -> str:
    """The address of a page."""
    return _data("text/html", body)


#: Name → type, body: pages with frames whose documents stand in their addresses.
FRAMES: dict[str, tuple[str, bytes]] = {
    "html.html": _page(_framed(_html(link("data") + link("in-place", "_self") + link("new", "_blank")))),
    "spelled.html": _page(_framed(_data(" Text/HTML ;x", link("blanks")), _data("text/html", link("b"), base64=True))),
    "xml.html": _page(_framed(_data("text/xml", _xml("text-xml")), _data("application/a+xml", _xml("plus-xml")))),
    "svg.html": _page(_framed(_data("image/svg+xml", _svg("svg")))),
    "object.html": _page(f'<object {_PLACE} data="{_html(link("object"))}"></object>'),
    "embed.html": _page(f'<embed {_PLACE} src="{_data("image/svg+xml", _svg("embed"))}">'),
    "srcdoc.html": _page(
        f"<iframe {_PLACE} srcdoc=\"{link('srcdoc')}<iframe src='{_html(link('inside'))}'>\"></iframe>"
    ),
    "nested.html": _page(_framed(_html(_framed(_html(link("nested")))))),
    "refresh.html": _page(_framed(_html("<meta http-equiv=refresh content='0;url=http://refresh.test/'>"))),
    "base.html": _page(_framed(_html(f"<base href=http://base.test/ target=_top><a {_SIZE} href=x>x</a>"))),
    "form.html": _page(_framed(_html(f"<form action=http://form.test/ target=_top><button {_SIZE}>x</button></form>"))),
    "frameset.html": _page(f'<frameset cols=50%,50%><frame src="{_html(link("frame"))}"></frameset>'),
}


_ENTITIES = "<!ENTITY num 'http://entity.test/'><!ENTITY j 'refresh'><!ENTITY k 'href'>"


def _document(inside: str, before: str = "") -> bytes:
    """A document of XML with elements of HTML and of SVG."""
    return f'{before}<r xmlns:h="{_XHTML}" xmlns:s="http://www.w3.org/2000/svg" xmlns:l="http://www.w3.org/1999/xlink">{inside}</r>'.encode()


_MAKES_A_LINK = (
    '<x:stylesheet version="1.0" id="made" xmlns:x="http://www.w3.org/1999/XSL/Transform">'
    f'<x:template match="/"><html><body>{link("xslt")}</body></html></x:template></x:stylesheet>'
)
#: Name → type, body: documents of XML that no type of pages names.
XML: dict[str, tuple[str, bytes]] = {
    "prefixed.xml": ("text/xml", _document(xml_link("prefixed"))),
    "application.xml": ("application/xml", _document(xml_link("application"))),
    "feed.xml": ("application/rdf+xml", _document(xml_link("feed"))),
    "sheet.xsl": ("text/xsl", _document(xml_link("sheet"))),
    "instruction.xml": ("text/xml", _document(f"{xml_link('instruction')}<?y '?>", "<?xml-stylesheet href='?>")),
    "doctype.xml": ("text/xml", _document(f"{xml_link('doctype')}<!--']>-->", "<!DOCTYPE r [<?y '?>]>")),
    "entity.xml": (
        "text/xml",
        _document(
            f"<h:a target='_top' {_SIZE} href='&num;'>x</h:a><h:meta http-equiv='&j;' content='0;url=http://meta.test/'/>"
            f"<s:svg><s:a target='_top' href='x'><s:set attributeName='&k;' to='http://set.test/'/>"
            "<s:rect width='90' height='90'/></s:a></s:svg>",
            f"<!DOCTYPE r [{_ENTITIES}]>",
        ),
    ),
    "style.xml": ("text/xml", _document(f"<h:style style='display:block'>{xml_link('style')}</h:style>")),
    "made.xml": ("text/xml", _document("x", "<?xml-stylesheet type='text/xsl' href='make.xsl'?>")),
    "make.xsl": ("text/xml", _MAKES_A_LINK.encode()),
    "inside.xml": (
        "text/xml",
        _document(_MAKES_A_LINK, "<?xml-stylesheet a-type='text/css' type='text/xsl' href='#made'?>"),
    ),
    "place.xml": ("text/xml", _document(f"<h:p xml:base='http://base.test/'>{xml_link('place')}</h:p>")),
    "xlink.xml": (
        "image/svg+xml",
        _document("<s:svg><s:a l:href='http://xlink.test/'><s:rect width='90' height='90'/></s:a></s:svg>"),
    ),
    "drawing.svg": ("image/svg+xml", _svg("drawing").encode()),
}  # fmt: skip


def click_all(tab: Tab, place: str) -> int:
    """Click each link and button in each frame of a place, from the start each time; return how many there were."""
    _open(tab, place)
    counts = [_links(frame).count() for frame in _frames(tab)]
    for number, count in enumerate(counts):
        for at in range(count):
            _open(tab, place)
            with suppress(BrowserError, IndexError):
                _links(_frames(tab)[number]).nth(at).click(force=True, timeout=1_000, no_wait_after=True)
            tab.wait_for_timeout(150)
            with suppress(BrowserError):
                tab.wait_for_load_state(timeout=5_000)
    return sum(counts)


def _open(tab: Tab, place: str) -> None:
    """Go to a place, also where a click still leads elsewhere."""
    for _ in range(20):
        try:
            tab.goto(place)
        except BrowserError:
            tab.wait_for_timeout(100)
        else:
            return
    tab.goto(place)


def _frames(tab: Tab) -> list[Frame]:
    """All frames below the tab's own, which are those of archived documents."""
    return [frame for frame in tab.frames if frame is not tab.main_frame]


def _links(frame: Frame) -> Locator:
    return frame.locator("a, area, button, input[type=submit]")
