"""Reports of what crawls of real sites miss: parts that browsers load.

S-page-1, S-page-2: what is a part of a page, and as what a document is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.messy_sites import FINE, PIXEL, Case, MessyCrawl, check, crawled
from tests.support.wire import Answer, page, redirect

pytestmark = pytest.mark.crawl

H = "<!doctype html><title>t</title>"
X, Y = "/x.png", "/y.png"
SHEET = "a{background:url(/x.png)}"
XML = "application/xml"


def sent(body: str, *, mime: str | None = None, nosniff: bool = False) -> Answer:
    """A body of a type; None: without one."""
    return page(body, mime, headers={"X-Content-Type-Options": "nosniff"} if nosniff else None)


def loads(name: str, html: str, *asked: str, never: tuple[str, ...] = ()) -> Case:
    """A page that loads images and the like; what it loads answers with an image."""
    return Case(
        name=name, finding="Q", serves={"/": H + html, **dict.fromkeys(asked, PIXEL)}, asked=asked, never=never,
        bodies=dict.fromkeys(asked, PIXEL),
    )  # fmt: skip


def named(name: str, html: str, answer: Answer, *asked: str, never: tuple[str, ...] = ()) -> Case:
    """A page that names `/s`, which answers in some way and loads more."""
    serves: dict[str, Answer | str | bytes] = {"/": html, "/s": answer, **dict.fromkeys(asked, PIXEL)}
    return Case(name=name, finding="Q", serves=serves, asked=["/s", *asked], never=never, kept=["/s", *asked])


def typed(name: str, mime: str | None) -> Case:
    """A page of an odd type, which leads to another one."""
    home = sent(f"{H}<a href=/ok.html>ok</a>", mime=mime)
    return Case(
        name=name, finding="Q", serves={"/": home, "/ok.html": FINE}, asked=["/ok.html"], kept=["/", "/ok.html"]
    )


def feed(name: str, xml: str, *asked: str, mime: str = XML, never: tuple[str, ...] = ()) -> Case:
    """A document of XML, with what it leads to."""
    serves: dict[str, Answer | str | bytes] = {"/": H + "<a href=/f.xml>f</a>", "/f.xml": sent(xml, mime=mime)}
    serves |= dict.fromkeys(asked, PIXEL)
    return Case(name=name, finding="Q", serves=serves, asked=asked, never=never, kept=asked)


SHEET_LINK = "<link rel=stylesheet href=/s>"
MEDIA = "xmlns:m='http://search.yahoo.com/mrss/' xmlns:i='http://www.itunes.com/dtds/podcast-1.0.dtd'"
CASES = (
    loads("plain", "<img src=/x.png>", X),
    # image-set()
    loads("image-set", "<style>a{background:image-set('/x.png' 1x,'/y.png' 2x)}</style>", X, Y),
    loads("image-set-url", "<style>a{background:-webkit-image-set(url(/x.png) 1x, url('/y.png') 2x)}</style>", X, Y),
    loads("image-set-style", """<p style="background:image-set('/x.png' 1x, '/y.png' type('image/png') 2x)">""", X, Y),
    loads("image-set-spelt", r"<style>a{background:IMAGE-SET( /* a */ '\2f x.png' 1x)}</style>", X),
    # style sheets
    loads(
        "css-functions",
        "<style>@font-face{font-family:a;src:local(b),url(/x.woff2) format('woff2')}p{cursor:url(/x.cur),auto}"
        "i{background:cross-fade(url(/x.png), url(/y.png))}</style>",
        "/x.woff2", "/x.cur", X, Y,
    ),
    loads("css-imports", "<style>@import '/a.css' layer(x);@import url(/b.css) layer(y) supports(display:grid) print;"
          "@IMPORT/**/\"/c.css\";@namespace url(/no.css);</style>", "/a.css", "/b.css", "/c.css", never=("/no.css",)),
    loads("svg-style", "<svg><style><![CDATA[ rect{fill:url(/x.svg#a)} ]]></style><rect mask='url(/y.svg#m)'/></svg>",
          "/x.svg", "/y.svg"),
    # srcdoc
    loads("srcdoc", "<iframe srcdoc='<img src=/x.png>'></iframe>", X),
    loads("srcdoc-entities",
          "<iframe srcdoc=\"&lt;p style=&quot;background:url(/x.png)&quot;&gt;&lt;img src='/y.png'&gt;\">", X, Y),
    loads("srcdoc-base", "<base href=/b/><iframe srcdoc='<base href=/c/><img src=x.png>'></iframe>"
          "<iframe srcdoc='<img src=y.png>'></iframe>", "/c/x.png", "/b/y.png"),
    loads("srcdoc-nested", "<iframe srcdoc=\"<iframe srcdoc='<img src=&amp;quot;/x.png&amp;quot;>'></iframe>\">"
         "</iframe>", X),
    # lazy attributes
    loads("source-data-srcset", "<picture><source data-srcset='/x.webp'><img data-src=/y.png>"
         "</picture>", "/x.webp", Y),
    loads("lazysizes", "<img class=lazyload data-srcset='/a.png 1x, /b.png 2x'>"
         "<iframe class=lazyload data-src=/f.html></iframe>"
          "<video class=lazyload data-poster=/p.png></video><div class=lazyload data-bg=/x.png></div>"
          "<div data-bgset='/c.png [(max-width: 40em)] | /d.png 2x'></div>",
          "/a.png", "/b.png", "/f.html", "/p.png", X, "/c.png", "/d.png"),
    loads("vanilla-lazyload", "<div data-bg='url(/a.png)' data-bg-hidpi=/b.png></div><video>"
         "<source data-src=/v.mp4></video>"
          "<div data-bg-multi='url(/c.png), url(&quot;/d.png&quot;), linear-gradient(#fff,#000)'></div>"
          "<div data-bg-set=\"url('/e.png') 1x, url('/g.png') 2x\"></div>",
          "/a.png", "/b.png", "/v.mp4", "/c.png", "/d.png", "/e.png", "/g.png"),
    loads("wordpress",
          "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' data-lazy-src=/a.png data-lazy-srcset='/b.png 2x'>"
          "<div data-background-image=/c.png></div><section data-bg-image=\"url('/d.png')\"></section>"
          "<img data-orig-src=/e.png data-src=true><img data-cfsrc=/g.png><img nitro-lazy-src=/h.png>",
          "/a.png", "/b.png", "/c.png", "/d.png", "/e.png", "/g.png", "/h.png", never=("/true",)),
    loads("jquery-lazy", "<img data-original=/a.png><img data-lazy=/b.png><img data-echo=/c.png>"
          "<div class=swiper-lazy data-background=/d.png></div><div data-background=dark></div>"
          "<img data-src='{{ item }}' data-lazyload='{\"a\":1}'><img data-flickity-lazyload=/e.png>",
          "/a.png", "/b.png", "/c.png", "/d.png", "/e.png", never=("/dark", "/%7B%7B%20item%20%7D%7D")),
    # elements
    loads("elements", "<body background=/a.png><object data=/b.png></object><embed src=/c.png>"
         "<input type=image src=/d.png>"
          "<video poster=/e.png src=/v.mp4><track src=/t.vtt></video><audio src=/s.mp3></audio><image src=/g.png>"
          "<table background=/h.png><tbody background=/i.png><tr background=/j.png><td background=/k.png></table>"
          "<object><param name=movie value=/m.swf></object>",
          "/a.png", "/b.png", "/c.png", "/d.png", "/e.png", "/v.mp4", "/t.vtt", "/s.mp3", "/g.png", "/h.png", "/i.png",
          "/j.png", "/k.png", "/m.swf"),
    loads("svg-elements", "<svg><image href=/a.png /><image xlink:href=/b.png /><use href=/c.svg#i />"
          "<filter><feImage href=/d.png /></filter><script href=/e.js></script><pattern href='/g.svg#p'/></svg>",
          "/a.png", "/b.png", "/c.svg", "/d.png", "/e.js", "/g.svg"),
    loads("link-rels", "<link rel=preload as=image href=/a.png imagesrcset='/b.png 2x'>"
         "<link rel=modulepreload href=/c.js>"
          "<link rel=icon href=/d.ico><link rel='apple-touch-icon-precomposed' href=/e.png>"
          "<link rel=mask-icon href=/g.svg>"
          "<a href='#' ping=/ping>a</a>", "/a.png", "/b.png", "/c.js", "/d.ico", "/e.png", "/g.svg", never=("/ping",)),
    # style sheets and manifests, whatever they say that they are
    named("css-no-type", H + SHEET_LINK, sent(SHEET), X),
    named("css-unknown-type", H + SHEET_LINK, sent(SHEET, mime="unknown/unknown"), X),
    named("css-bad-type", H + SHEET_LINK, sent(SHEET, mime="text"), X),
    named("css-plain", H + SHEET_LINK, sent(SHEET, mime="text/plain"), never=(X,)),
    named("css-plain-quirks", SHEET_LINK, sent(SHEET, mime="text/plain"), X),
    named("css-nosniff", SHEET_LINK, sent(SHEET, mime="text/plain", nosniff=True), never=(X,)),
    named("css-octets-quirks", SHEET_LINK, sent(SHEET, mime="application/octet-stream"), X),
    named("css-preload", H + "<link rel=preload as=style href=/s>", sent(SHEET), X),
    named("css-imported", H + "<style>@import '/s';</style>", sent(SHEET), X),
    Case(
        name="css-import-chain", finding="Q", asked=["/t", X], kept=["/s", "/t", "/u.css", X],
        serves={"/": H + SHEET_LINK, "/s": sent("@import url(/t) layer(a);"), "/t": sent("@import '/u.css' print;"),
                "/u.css": sent(SHEET, mime="text/css"), X: PIXEL},
    ),
    named("script-no-type", H + "<script src=/s>"
         "</script>", sent("var a = 'url(/x.png)'; b(url(/x.png))"), never=(X,)),
    named("manifest", H + "<link rel=manifest href=/s>",
          sent(json.dumps({"icons": [{"src": "/x.png"}], "shortcuts": [{"icons": [{"src": "y.png"}]}],
                           "start_url": "/no"}),
               mime="application/json"), X, Y, never=("/no",)),
    named("manifest-odd", H + "<link rel=manifest href=/s>",
          sent('[{"icons": 7}, {"icons": [1, {"src": 2}]}]', mime="text/plain")),
    Case(
        name="css-redirected", finding="Q", asked=[X], kept=[X],
        serves={"/": H + SHEET_LINK, "/s": redirect("/t"), "/t": sent(SHEET), X: PIXEL},
    ),
    Case(
        name="css-late", finding="Q", asked=[X], kept=[X],
        serves={"/": H + "<a href=/s>source</a><a href=/2>2</a>", "/s": sent(SHEET), "/2": H + "<a href=/3>3</a>",
                "/3": H + SHEET_LINK, X: PIXEL},
    ),
    # pages of odd types
    typed("type-unknown", "unknown/unknown"),
    typed("type-app-unknown", "application/unknown"),
    typed("type-any", "*/*"),
    typed("type-none", None),
    typed("type-bad", "html"),
    typed("type-list", "text/html, text/html"),
    # XML and feeds
    feed("xsl-pi", '<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="/x.xsl"?>'
         '<rss/>', "/x.xsl", mime="text/xml"),
    feed("css-pi", "<?xml-stylesheet href='/x.css' type='text/css'?><!-- <a> -->"
         "<?xml-stylesheet href='/y.css'?><a/>", "/x.css", "/y.css"),
    feed("svg-pi", "<?xml-stylesheet href='/x.css'?><svg xmlns='http://www.w3.org/2000/svg'>"
         "<style>a{fill:url(/y.svg#a)}</style></svg>",
         "/x.css", "/y.svg", mime="image/svg+xml"),
    feed("feed-media",
         f"<rss {MEDIA}><channel><image><url>/y.png</url><link>/home</link></image><i:image href='/i.png'/><item>"
         "<m:content url='/x.jpg'/><m:thumbnail url='/t.jpg'/><enclosure url='/e.mp3'/><m:group>"
         "<m:content url='/v.mp4' medium='video'/>"
         "</m:group></item></channel></rss>",
         "/y.png", "/home", "/i.png", "/x.jpg", "/t.jpg", "/e.mp3", "/v.mp4", mime="application/rss+xml"),
    feed("atom", "<feed xmlns='http://www.w3.org/2005/Atom'><icon>/a.png</icon><logo>/b.png</logo>"
         "<link href='/c'/><entry>"
         "<content src='/d.png' type='image/png'/><content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>"
         "<img src='/e.png'/><a href='/g'>g</a></div></content></entry></feed>",
         "/a.png", "/b.png", "/c", "/d.png", "/e.png", "/g", mime="application/atom+xml"),
    Case(
        name="xsl", finding="Q", asked=["/y.xsl", "/x.css", X], kept=["/x.css", X],
        never=["/%7B$itemURL%7D", "/%7B@href%7D"],
        serves={
            "/": H + "<a href=/f.xml>f</a>",
            "/f.xml": sent('<?xml-stylesheet type="text/xsl" href="/x.xsl"?><a/>', mime=XML),
            "/x.xsl": sent(
                "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'><x:import href='/y.xsl'/>"
                "<x:template match='/'><html><head><link rel='stylesheet' href='/x.css'/></head>"
                "<img src='/x.png'/><a href='{$itemURL}'>x</a><link href='{@href}'/></html>"
                "</x:template></x:stylesheet>", mime="text/xsl"),
            "/x.css": sent("", mime="text/css"), X: PIXEL,
        },
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases."""
    with crawled(tmp_path_factory.mktemp("real"), CASES) as done:
        yield done


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(crawl: MessyCrawl, case: Case) -> None:
    """S-page-1, S-page-2"""
    check(case, crawl)
