"""Documents of every type that a browser renders, with ways out of the archive, made by a seed; and a hand that clicks.

Each has one way out or a few, written in one of many spellings, within one of many surroundings, in one of many types.
All of them name hosts below `.out.test`, whose names have that of the document, so that the sink says which led
out.
"""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Frame, Locator
from playwright.sync_api import Page as Tab

_XHTML = "http://www.w3.org/1999/xhtml"
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_MATH = "http://www.w3.org/1998/Math/MathML"
_GIF = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
_SIZE = 'style="position:static;display:block;width:90px;height:20px;background:red"'
_PLACE = 'width="300" height="200"'
_RECT = '<rect width="90" height="90" fill="red"/>'
#: What a hand clicks.
_CLICKED = "a, area, img[usemap], button, input[type=submit], input[type=image], math[href], mi, summary"
#: How long the browser has until a click has led on, in milliseconds.
_LED_ON = 90

#: Ways out: {u} is the URL, {t} the target. All are well-formed, so that XHTML may have them.
WAYS: tuple[str, ...] = (
    f'<a target="{{t}}" {_SIZE} href="{{u}}">x</a>',
    f'<a href="{{u}}" rel="noopener opener" referrerpolicy="unsafe-url" {_SIZE} target="{{t}}">x</a>',
    f'<a {_SIZE} href="#x" ping="{{u}} {{u}}2">x</a>',
    f'<a {_SIZE} download="x" href="{{u}}">x</a>',
    f'<a {_SIZE} target="{{t}}" href="view-source:{{u}}">x</a>',
    f"<a {_SIZE} target=\"{{t}}\" href=\"javascript:top.location='{{u}}'\">x</a>",
    f'<a {_SIZE} target="{{t}}" href="#x" onclick="open(\'{{u}}\')">x</a>',
    f'<a {_SIZE} target="{{t}}" href="data:text/html,&lt;meta http-equiv=refresh content=0;url={{u}}&gt;">x</a>',
    f'<img src="{_GIF}" usemap="#m" width="90" height="90"/><map name="m"><area shape="default" target="{{t}}" href="{{u}}"/></map>',
    f'<form action="{{u}}" target="{{t}}"><button {_SIZE}>x</button></form>',
    f'<form action="{{u}}" method="post" target="{{t}}"><input type="submit" {_SIZE}/></form>',
    f'<form><input type="image" alt="x" src="{_GIF}" formtarget="{{t}}" formaction="{{u}}" {_SIZE}/></form>',
    f'<form id="f"></form><button form="f" formtarget="{{t}}" formaction="{{u}}" {_SIZE}>x</button>',
    f'<form method="dialog" action="{{u}}"><button formmethod="get" {_SIZE}>x</button></form>',
    f'<iframe {_PLACE} src="{{u}}"></iframe>',
    f'<object {_PLACE} data="{{u}}"></object>',
    f'<object {_PLACE} type="text/html" data="{{u}}"><a {_SIZE} href="{{u}}">x</a></object>',
    f'<embed {_PLACE} src="{{u}}"/>',
    f'<svg xmlns="{_SVG}" xmlns:xlink="{_XLINK}" width="90" height="90"><a target="{{t}}" xlink:href="{{u}}">{_RECT}</a></svg>',
    f'<svg xmlns="{_SVG}" width="90" height="90"><a target="{{t}}" href="#x">{_RECT}<set attributeName="href" to="{{u}}"/></a></svg>',
    f'<svg xmlns="{_SVG}" width="90" height="90"><a target="{{t}}">{_RECT}<animate attributeName="href" values="{{u}};{{u}}" dur="9s"/></a></svg>',
    f'<svg xmlns="{_SVG}" width="90" height="90"><foreignObject width="90" height="90"><a xmlns="{_XHTML}" {_SIZE} href="{{u}}">x</a></foreignObject></svg>',
    f'<math xmlns="{_MATH}" href="{{u}}" {_SIZE}><mi href="{{u}}">x</mi></math>',
    '<meta http-equiv="refresh" content="0;url={u}"/>',
    '<meta http-equiv="ReFresh" content="0 , {u}"/>',
    f'<base href="{{u}}" target="{{t}}"/><a {_SIZE} href="x">x</a>',
    f'<base target="{{t}}"/><a {_SIZE} href="{{u}}">x</a>',
    '<link rel="stylesheet" href="{u}"/><link rel="prefetch" href="{u}2"/><link rel="dns-prefetch" href="{u}3"/>',
    '<link rel="preconnect" href="{u}"/><link rel="modulepreload" href="{u}2"/><link rel="manifest" href="{u}3"/>',
    '<link rel="next prerender" href="{u}"/><link rel="icon" href="{u}2"/><link rel="preload" as="font" href="{u}3"/>',
    '<style>@import "{u}"; body {{ background: url({u}2); list-style: url("{u}3") }}</style><ul><li>x</li></ul>',
    '<p style="background:image-set(\'{u}\' 1x);content:url({u}2)">x</p>',
    '<script type="importmap">{{"imports":{{"x":"{u}"}}}}</script><script type="module">import "x"</script>',
    '<script type="speculationrules">{{"prerender":[{{"urls":["{u}"]}}],"prefetch":[{{"source":"list","urls":["{u}"]}}]}}</script>',
    '<script>location="{u}"</script>',
    '<img src="{u}" srcset="{u}2 1x, {u}3 2x"/><video poster="{u}4"><source src="{u}5"/></video>',
    f'<details><summary {_SIZE}>x</summary><iframe src="{{u}}"></iframe></details>',
    f'<label><a {_SIZE} target="{{t}}" href="{{u}}">x</a></label>',
)  # fmt: skip
TARGETS = ("_top", "_self", "_blank", "_parent", "_unfencedTop", "other", "")

Say = Callable[[random.Random, str], str]


def _entities(_: random.Random, url: str) -> str:
    return "".join(f"&#{'x' * (at % 2)}{ord(each):{'x' if at % 2 else 'd'}};" for at, each in enumerate(url))


def _spaced(chance: random.Random, url: str) -> str:
    at = chance.randrange(1, 8)
    return f"{chance.choice(('', ' ', '&#1;', '&#9;', '&#10;'))}{url[:at]}{chance.choice(('&#9;', '&#10;', '&#13;'))}{url[at:]}"


#: How a URL is written in an attribute.
SPELLINGS: tuple[Say, ...] = (
    lambda _, url: url,
    lambda _, url: url,
    lambda _, url: url.removeprefix("http:"),
    lambda _, url: url.replace("/", "\\"),
    lambda _, url: url.replace("http:", "HtTp:"),
    lambda _, url: url.replace("http:", "https:"),
    lambda _, url: url.replace("http://", "http://///"),
    lambda _, url: url.replace("http://", "http://user:pass@"),
    lambda _, url: url.replace("http://", "ws://"),
    lambda _, url: url.replace(".test", "%2Etest"),
    lambda _, url: url.replace(".test", "\N{IDEOGRAPHIC FULL STOP}test"),
    _entities,
    _spaced,
)


def _cased(chance: random.Random, body: str) -> str:
    for word in ("href", "src", "action", "target", "content", "http-equiv"):
        body = body.replace(f" {word}=", f" {''.join(chance.choice((c, c.upper())) for c in word)}=")
    return body


#: What is around a way out in HTML.
SURROUNDINGS: tuple[Say, ...] = (
    lambda _, body: body,
    _cased,
    lambda _, body: body.replace('="', "='").replace('" ', "' ").replace('">', "'>"),
    lambda _, body: body.replace(' href="', ' href = \n"').replace(' src="', ' src\t=\f"'),
    lambda _, body: body.replace(" href=", "/href=").replace(" target=", "/target="),
    lambda _, body: body.replace(" href=", " href=x> <a href=", 1),
    lambda _, body: f"<!-- --!>{body}<!-- -->",
    lambda _, body: f"<!-->{body}-->",
    lambda _, body: f"<![CDATA[>{body}]]>",
    lambda _, body: f"<table><tr>{body}<td>x</table>",
    lambda _, body: f"<select><option>{body}</select>",
    lambda _, body: f"<noscript>{body}</noscript>",
    lambda _, body: f"<svg><desc>{body}</desc></svg>",
    lambda _, body: f"<svg></p>{body}",
    lambda _, body: f"<math><mtext><mglyph><style><!--</style>{body}-->",
    lambda _, body: f"<svg><style><!--</style>{body}--></style></svg>",
    lambda _, body: f"<textarea></textarea/x>{body}",
    lambda _, body: f"<title></title x>{body}",
    lambda _, body: f"<xmp></xmp>{body}<plaintext>",
    lambda _, body: f"<div><template shadowrootmode=open>{body}</template></div>",
    lambda _, body: f"<frameset><frame></frameset><noframes>{body}</noframes>",
    lambda _, body: f'<iframe {_PLACE} srcdoc="{escape(body)}"></iframe>',
    lambda _, body: f'<iframe {_PLACE} srcdoc="{escape(f"""<iframe {_PLACE} srcdoc="{escape(body)}"></iframe>""")}"></iframe>',
    lambda _, body: f'<iframe {_PLACE} src="data:text/html,{quote(body)}"></iframe>',
    lambda _, body: f'<iframe {_PLACE} src="data:text/html;base64,{b64encode(body.encode()).decode()}"></iframe>',
    lambda _, body: f'<iframe {_PLACE} src="data:application/xhtml+xml,{quote(_xhtml(body))}"></iframe>',
    lambda _, body: f'<object {_PLACE} data="data:text/html,{quote(body)}"></object>',
    lambda _, body: f'<embed {_PLACE} type="text/html" src="data:text/html,{quote(body)}">',
    lambda _, body: f"<frameset><frame src=\"data:text/html,{quote(body)}\"></frameset>",
    lambda _, body: body.replace("<a ", '<a href="" href="x" ').replace("</a>", "</a >"),
    lambda _, body: body.replace("<a", "<a\0").replace("<form", "<form\n"),
    lambda _, body: f"<p title='<!--'>{body}<p title='-->'>",
    lambda _, body: f"<script><!--<script></script>{body}--></script>{body}",
)  # fmt: skip

Encode = Callable[[str], tuple[str, bytes]]


def _xhtml(body: str) -> str:
    return f'<html xmlns="{_XHTML}"><head><title>x</title></head><body>{body}</body></html>'


def _as_html(charset: str, label: str) -> Encode:
    return lambda body: (
        f"text/html{label}",
        f"<!DOCTYPE html><title>x</title>{body}<p>text".encode(charset, "xmlcharrefreplace"),
    )


def _svg(body: str) -> tuple[str, bytes]:
    return "image/svg+xml", (
        f'<svg xmlns="{_SVG}" xmlns:xlink="{_XLINK}" width="300" height="300"><foreignObject width="300" height="300">'
        f'<body xmlns="{_XHTML}">{body}</body></foreignObject></svg>'
    ).encode()


def _xml(body: str) -> tuple[str, bytes]:
    return "text/xml", f'<!DOCTYPE r [<!ENTITY e "">]><r>&e;<h xmlns="{_XHTML}">{body}</h></r>'.encode()


def _made_by_xsl(body: str) -> tuple[str, bytes]:
    return "application/xml", (
        "<?xml-stylesheet type='text/xsl' href='#made'?>"
        '<x:stylesheet version="1.0" id="made" xmlns:x="http://www.w3.org/1999/XSL/Transform">'
        f'<x:template match="/"><html><body>{body}</body></html></x:template></x:stylesheet>'
    ).encode()


def _mhtml(kind: str) -> Encode:
    return lambda body: (
        kind,
        (
            "From: <Saved by Blink>\r\nSnapshot-Content-Location: http://hostile.test/\r\nSubject: x\r\n"
            'MIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="----b"\r\n\r\n'
            "------b\r\nContent-Type: text/html\r\nContent-ID: <f@mhtml.blink>\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-Location: http://hostile.test/\r\n\r\n<!DOCTYPE html><p>{body}\r\n------b--\r\n"
        ).encode(),
    )


def _plain(kind: str, ahead: str = "", behind: str = "") -> Encode:
    return lambda body: (kind, f"{ahead}{body}{behind}".encode())


#: Type of a document → how a body becomes one. XHTML, SVG and XML take what is well-formed.
FORMS: dict[str, tuple[str, Encode]] = {
    "html": ("html", _as_html("utf-8", "")),
    "html-utf16": ("html", _as_html("utf-16", "")),
    "html-latin": ("htm", _as_html("latin-1", "")),
    "html-jp": ("html", _as_html("iso-2022-jp", "")),
    "xhtml": ("xhtml", lambda body: ("application/xhtml+xml", _xhtml(body).encode())),
    "svg": ("svg", _svg),
    "xml": ("xml", _xml),
    "xsl": ("xml", _made_by_xsl),
    "mhtml": ("mhtml", _mhtml("multipart/related")),
    "mail": ("eml", _mhtml("message/rfc822")),
    "saved": ("mht", _mhtml("application/octet-stream")),
    "text": ("txt", _plain("text/plain", "<!DOCTYPE html>")),
    "text-html": ("html", _plain("text/plain", "<html>")),
    "json": ("json", _plain("application/json", '["http://json.out.test/","', '"]')),
    "url": ("url", _plain("application/x-mswinurl", "[InternetShortcut]\r\nURL=http://url.out.test/\r\n")),
    "desktop": ("desktop", _plain("application/x-desktop", "[Desktop Entry]\nType=Link\nURL=http://out.test/\n")),
    "flash": ("swf", _plain("application/x-shockwave-flash", "FWS\5")),
    "gif": ("gif", _plain("image/gif", "GIF89a")),
    "png": ("png", _plain("image/png", "\x89PNG<html>")),
    "bytes": ("bin", _plain("application/octet-stream", "<html>")),
    "unknown": ("xyz", _plain("application/x-unknown", "<html>")),
    "vague": ("", _plain("unknown/unknown", "<!DOCTYPE html>")),
    "feed": ("rss", _plain("application/rss+xml", f'<rss><channel><h xmlns="{_XHTML}">', "</h></channel></rss>")),
    "css": ("css", _plain("text/css", "@import 'http://css.out.test/'; /*", "*/")),
    "script": ("js", _plain("text/javascript", "location='http://js.out.test/' /*", "*/")),
    "playlist": ("m3u8", _plain("application/vnd.apple.mpegurl", "#EXTM3U\nhttp://list.out.test/\n")),
    "mathml": ("mml", _plain("application/mathml+xml", f'<math xmlns="{_MATH}"><mtext>', "</mtext></math>")),
}  # fmt: skip
#: Forms that most of the generated documents have, since their links are live.
_OFTEN = ("html", "html", "html", "xhtml", "svg", "xml", "xsl", "html-utf16", "html-latin", "html-jp", "mail", "feed")
_LOOSE = ("html", "html-utf16", "html-latin", "html-jp")


@dataclass(frozen=True)
class Hostile:
    """A document with ways out."""

    name: str
    mime_type: str
    body: bytes


def pdf(url: str) -> bytes:
    """A PDF of one page that is a link, and leads there when it is opened."""
    action = f"<</S/URI/URI({url})>>"
    return (
        f"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction{action}>>endobj\n"
        "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]"
        f"/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 300 300]/A{action}>>]>>endobj\n"
        "trailer<</Root 1 0 R>>\n%%EOF\n"
    ).encode()


def large(size: int, url: str) -> bytes:
    """A page of so many bytes and more, with a link at its start and one at its end."""
    ends = WAYS[0].format(u=url, t="_top").encode()
    return ends + b"<!--" + b"x" * size + b"-->" + ends


def one_of_each() -> Iterator[Hostile]:
    """Documents of each form, with links in plain spelling."""
    for name, (extension, encode) in FORMS.items():
        body = WAYS[0].format(u=f"http://{name}.out.test/", t="_top")
        yield Hostile(f"{name}.{extension}" if extension else name, *encode(body))
    yield Hostile("shelf.html", "text/html", b"<a href=leaf.pdf>x</a>")
    yield Hostile("leaf.pdf", "application/pdf", pdf("http://pdf.out.test/"))


def generated(seed: str, count: int) -> Iterator[Hostile]:
    """So many documents, the same for the same seed."""
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        host = f"c{number}.out.test"
        # Every third document has a form that is rare; each way out comes in turn.
        form = chance.choice(_OFTEN) if number % 3 else chance.choice(list(FORMS))
        body = ""
        for at in range(chance.choice((1, 1, 1, 2))):
            way = WAYS[number % len(WAYS)] if at == 0 else chance.choice(WAYS)
            url = chance.choice(SPELLINGS)(chance, f"http://{'abc'[at]}{host}/")
            body += way.format(u=url, t=chance.choice(TARGETS))
        for _ in range(chance.choice((0, 1, 1, 2)) if form in _LOOSE else 0):
            body = chance.choice(SURROUNDINGS)(chance, body)
        extension, encode = FORMS[form]
        yield Hostile(f"c{number}.{extension}" if extension else f"c{number}", *encode(body))


def click(tab: Tab, place: str, *, is_thorough: bool) -> int:
    """Open a place and click all that can be clicked in its frames, from the start each time; return how often.

    `is_thorough`: also with Control held and with the middle button.
    """
    if not is_opened(tab, place):
        return 0
    counts = [_clickable(frame) for frame in _frames(tab)]
    clicks = 0
    for number, count in enumerate(counts):
        for at in range(count):
            if clicks and not is_opened(tab, place):
                return clicks
            if is_thorough:
                _press(tab, number, at, "middle")
                _press(tab, number, at, "control")
            _press(tab, number, at, "left")
            clicks += 1
    return clicks


def _press(tab: Tab, number: int, at: int, how: str) -> None:
    with suppress(BrowserError, IndexError):
        link = _links(_frames(tab)[number]).nth(at)
        if how == "middle":
            link.click(force=True, timeout=800, no_wait_after=True, button="middle")
        elif how == "control":
            link.click(force=True, timeout=800, no_wait_after=True, modifiers=["Control"])
        else:
            link.click(force=True, timeout=800, no_wait_after=True)
    tab.wait_for_timeout(_LED_ON)


def is_opened(tab: Tab, place: str) -> bool:
    """Open a place; False: the browser shows nothing of it, since it is a download."""
    for _ in range(10):
        try:
            # Pages of MHTML never say that they are loaded.
            tab.goto(place, wait_until="commit", timeout=20_000)
            with suppress(BrowserError):
                tab.wait_for_load_state(timeout=2_000)
        except BrowserError as error:
            if "Download is starting" in error.message or "ERR_ABORTED" in error.message:
                return False
            tab.wait_for_timeout(100)  # a click from before still leads elsewhere
        else:
            return True
    return False


def _clickable(frame: Frame) -> int:
    with suppress(BrowserError):
        return min(_links(frame).count(), 8)
    return 0


def _frames(tab: Tab) -> list[Frame]:
    """All frames of archived documents: below the room's own where that is the topmost."""
    is_framed = "/web/" in tab.url and "mp_/" not in tab.url and "id_/" not in tab.url
    return [frame for frame in tab.frames if not is_framed or frame is not tab.main_frame]


def _links(frame: Frame) -> Locator:
    return frame.locator(_CLICKED)
