"""Two sites made for trouble: URLs whose files get into each other's way, and pages whose titles are hard to read.

Both return what an archive must hold, exactly. The paths are in the one spelling of `site.wire_path`; the links that
lead to them are spelled as people spell them.
"""

from __future__ import annotations

import gzip
import html
import random
from collections.abc import Iterable

import brotli

from tests.support.site import Site, page, wire_path

#: Paths as they stand in links. No two are the same URL, and no two may be the same ARC.
COLLISIONS = (
    # what an ARC and git call their own
    "/data", "/data.html", "/data.xml", "/data.orig.xml", "/feed.xml", "/headers.http", "/headers.http/x",
    "/data.xml/x", "/.git/config", "/.GIT/config", "/.gitmodules", "/.gitignore", "/git~1", "/GIT~1/x", "/.git%20/x",
    "/.git./x", "/.g%E2%80%8Cit/config", "/a%5C.git%5Cconfig", "/%2564ata.xml", "/%252Egit/config",
    # a page and pages below it
    "/blog", "/blog/x", "/blog2/y", "/blog2", "/blog3", "/blog3/", "/dir", "/dir/index.html", "/f.html", "/f.html/x",
    # queries
    "/p", "/p?", "/p?a=1", "/p?a=1&b=2", "/p?b=2&a=1", "/p?u=/x", "/p?u=%2Fx", "/p?u=%252Fx", "/p/?a=1", "/?a=1",
    "/what?now", "/what%3Fnow", "/p?a=%26", "/p?a=&", "/p?q=ü", "/p?q=a+b", "/p?q=a%20b", "/p?q=a%2Bb", "/p?q=%00",
    # spaces, alphabets and bytes
    "/two words.html", "/%20lead", "/trail%20", "/größe.html", "/%C3%BCber%20uns.html", "/caf%C3%A9", "/cafe%CC%81",
    "/f%FCr.html", "/f%C3%BCr.html", "/日本語/ページ.html", "/%E6%97%A5%E6%9C%AC", "/nul%00byte", "/nul",
    "/line%0afeed", "/tab%09", "/del%7F", "/%C2%85", "/%EF%BF%BE", "/%F0%9F%98%80", "/%E2%80%AEltr",
    # separators and escapes that must not be taken for structure
    "/..%2fetc/passwd", "/x/..%2F..%2Fy", "/x%2Fy", "/x/y", "/%252e%252e/z", "/.../z", "/.hidden", "/a/b", "/a//b",
    "/a///b", "/a/", "/a//", "/back%5Cslash", "/colon:x", "/co:lon/", "/semi;a=1", "/semi%3Ba=1", "/hash%23x",
    "/at@x", "/at%40x", "/plus+x", "/plus%2Bx", "/amp&x", "/amp%26x", "/quote'x", "/quote%22x", "/%3Cb%3E", "/star*",
    "/100%25", "/100%2525", "/operator%25.html", "/operator~.html", "/pipe%7C", "/{x}", "/[x]", "/dollar$x", "/-rf",
    # names that other systems do not bear
    "/dot.", "/dots..", "/x./y", "/CON", "/con", "/aux.txt", "/Case.html", "/case.html", "/CASE.HTML", "/Dir/x",
    "/DIR/x",
    # long ones
    "/" + "l" * 250 + "1" * 50, "/" + "l" * 250 + "2" * 50, "/" + "l" * 300 + "/x", "/" + "ü" * 150, "/q?" + "q" * 300,
    "/" + "l" * 183 + "~0d4e2ca9e9cbced7", "/x.tar.gz", "/x.html", "/x.HTML", "/noextension.", "/e." + "e" * 250,
)  # fmt: skip


def collisions(site: Site, host: str | None = None) -> dict[str, bytes]:
    """Register `COLLISIONS` and an index at `/` that links to each; path → the body that its ARC must hold."""
    bodies = {wire_path(path): _body_of(path) for path in COLLISIONS}
    bodies["/"] = _index(COLLISIONS)
    for path, body in bodies.items():
        site.add(path, body, _type_of(path), host=host)
    return bodies


def _type_of(path: str) -> str:
    return "application/xml" if path.endswith(".xml") else "text/html; charset=utf-8"


def _body_of(path: str) -> bytes:
    """A body that no other path has."""
    name = html.escape(path)
    if path.endswith(".xml"):
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<feed><title>{name}</title></feed>\n'.encode()
    return f"<!DOCTYPE html><html><head><title>{name}</title></head><body><p>This is {name}.</p></body></html>".encode()


def _index(paths: Iterable[str]) -> bytes:
    links = "".join(f'<li><a href="{html.escape(path)}">{number}</a>\n' for number, path in enumerate(paths))
    return f"<!DOCTYPE html><html><head><title>All</title></head><body><ul>\n{links}</ul></body></html>".encode()


_JAPANESE = "日本語のページ、ひらがなとカタカナ"
_GERMAN = "Größe und Maße: für Übermüdete „ähnlich“ – 5 €"
_LATIN = "Größe und Maße für Übermüdete"
_RUSSIAN = "Съешь же ещё этих мягких французских булок"
_CHINESE = "中文网页的标题"
_FRENCH = "Dès Noël où un zéphyr haï me vêt"


def encodings(site: Site, host: str | None = None) -> dict[str, str]:
    """Register pages below `/enc/`, linked from `/enc/`; path → the title that must be told.

    What XML cannot hold counts as white space. A label names the encoding that browsers take it for (WHATWG Encoding:
    ISO-8859-1 is Windows-1252), and holds whatever the bytes are.
    """
    pages = _declared() | _undeclared() | _misdeclared() | _odd_titles() | _no_html()
    for name, (_, content_type, body, coding) in pages.items():
        site.add_nasty(f"/enc/{name}", page(body, content_type, headers=coding), host)
    site.add("/enc/", _index(f"/enc/{name}" for name in pages), host=host)
    return {f"/enc/{name}": title for name, (title, *_) in pages.items()} | {"/enc/": "All"}


#: Expected title, Content-Type, body, headers for its coding.
_Case = tuple[str, str, bytes, dict[str, str]]
_Cases = dict[str, _Case]


def _case(title: str, encoding: str, label: str | None = None, head: str = "", bom: bytes = b"") -> _Case:
    """A page in `encoding` with charset `label` in its Content-Type (None: no charset) and `head` before its title."""
    text = f"<html><head>{head}<title>{title}</title></head><body><p>{title}</p><p>{title}.</p></body></html>"
    content_type = "text/html" if label is None else f"text/html; charset={label}"
    return title, content_type, bom + text.encode(encoding), {}


def _meta(label: str) -> str:
    return f'<meta http-equiv="Content-Type" content="text/html; charset={label}">'


def _declared() -> _Cases:
    xhtml = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{_LATIN}</title></head><body/></html>'
    declaration = '<?xml version="1.0" encoding="ISO-8859-1"?>\n'
    return {
        "euc-jp.html": _case(_JAPANESE, "euc_jp", "EUC-JP"),
        "euc-jp-meta.html": _case(_JAPANESE, "euc_jp", head=_meta("EUC-JP")),
        "shift-jis.html": _case(_JAPANESE, "cp932", "Shift_JIS"),
        "shift-jis-meta.html": _case(_JAPANESE, "cp932", head='<meta charset="Shift_JIS">'),
        "iso-2022-jp.html": _case(_JAPANESE, "iso2022_jp", "iso-2022-jp"),
        "windows-1252.html": _case(_GERMAN, "cp1252", "Windows-1252"),
        "windows-1252-as-latin-1.html": _case(_GERMAN, "cp1252", "ISO-8859-1"),
        "latin-1.html": _case(_LATIN, "latin-1", "ISO-8859-1"),
        "latin-1-meta.html": _case(_LATIN, "latin-1", head=_meta("iso-8859-1")),
        "koi8-r.html": _case(_RUSSIAN, "koi8_r", "KOI8-R"),
        "gb2312.html": _case(_CHINESE, "gb18030", "gb2312"),
        "utf-8.html": _case(_GERMAN, "utf-8", "utf-8"),
        "utf-8-quoted.html": _case(_GERMAN, "utf-8", '"UTF-8"'),
        "utf-16le-bom.html": _case(_GERMAN, "utf-16-le", bom=b"\xff\xfe"),
        "utf-16be-bom.html": _case(_GERMAN, "utf-16-be", bom=b"\xfe\xff"),
        "utf-16le.html": _case(_GERMAN, "utf-16-le", "utf-16le"),
        "utf-16be.html": _case(_GERMAN, "utf-16-be", "utf-16be"),
        "xhtml.html": (_LATIN, "application/xhtml+xml", (declaration + xhtml).encode("latin-1"), {}),
    }


def _undeclared() -> _Cases:
    return {
        "no-charset-utf-8.html": _case(_GERMAN, "utf-8"),
        "no-charset-windows-1252.html": _case(_LATIN, "cp1252"),
        "no-charset-utf-8-bom.html": _case(_GERMAN, "utf-8", bom=b"\xef\xbb\xbf"),
        "no-charset-utf-16le.html": _case(_LATIN, "utf-16-le"),
    }


def _misread(encoding: str, case: _Case) -> _Case:
    """The same page, with the title that browsers show: its bytes in the encoding that is declared."""
    _, content_type, body, coding = case
    title = body.partition(b"<title>")[2].partition(b"</title>")[0]
    return title.decode(encoding, "replace"), content_type, body, coding


def _misdeclared() -> _Cases:
    return {
        "utf-8-as-latin-1.html": _misread("cp1252", _case(_GERMAN, "utf-8", "ISO-8859-1")),
        "utf-8-as-latin-1-meta.html": _misread("cp1252", _case(_GERMAN, "utf-8", head=_meta("iso-8859-1"))),
        "utf-8-as-shift-jis.html": _misread("cp932", _case(_JAPANESE, "utf-8", "Shift_JIS")),
        "windows-1252-as-utf-8.html": _misread("utf-8", _case(_FRENCH, "cp1252", "utf-8")),
        "nonsense.html": _case(_GERMAN, "utf-8", "x-nonsense"),
        "meta-says-utf-16.html": _case(_LATIN, "utf-8", head=_meta("utf-16")),
        "head-wins-over-meta.html": _case(_RUSSIAN, "koi8_r", "KOI8-R", _meta("windows-1251")),
        "bom-wins-over-head.html": _case(_GERMAN, "utf-8", "ISO-8859-1", bom=b"\xef\xbb\xbf"),
    }


def _titled(raw: str, title: str, before: str = "", after: str = "") -> _Case:
    text = f"<html><head>{before}<title>{raw}</title></head><body>{after}<p>text</p></body></html>"
    return title, "text/html; charset=utf-8", text.encode(), {}


def _odd_titles() -> _Cases:
    return {
        "long-title.html": _titled("x" * 1_000_000, "x" * 1000),
        "long-title-cyrillic.html": _titled("ж" * 500_000, "ж" * 1000),
        "long-title-spaces.html": _titled(" " * 1_000_000 + "end", "end"),
        "control.html": _titled("line \x0b and \x00 nul \x1b end", "line and nul end"),
        "white-space.html": _titled("\n\t two \r\n\x0c  words \n", "two words"),
        "entities.html": _titled("A &amp; B &lt;b&gt; &euro; &#8364; &#x20AC; &eacute;", "A & B <b> € € € é"),
        "emoji.html": _titled("\U0001f600 \U00010348", "\U0001f600 \U00010348"),
        "upper-case.html": ("Upper", "text/html", b"<HTML><HEAD><TITLE LANG=de>Upper</TITLE></HEAD></HTML>", {}),
        "commented.html": _titled("right", "right", "<!-- <title>wrong</title> -->"),
        "scripted.html": _titled("right", "right", "<script>var t = '<title>wrong<\\/title>';</script>"),
        "svg.html": _titled("right", "right", after="<svg><title>wrong</title></svg>"),
        "empty-title.html": _titled("", ""),
        "untitled.html": ("", "text/html", b"<html><body><h1>Heading</h1></body></html>", {}),
        "fragment.html": ("right", "text/html", b"<title>right</title>text", {}),
    }  # fmt: skip


def _no_html() -> _Cases:
    junk = random.Random(2012).randbytes(50_000)
    _, content_type, packed, _ = _titled("packed", "packed")
    return {
        "junk.html": ("", "text/html", junk, {}),
        "nul.html": ("", "text/html", b"\0" * 10_000, {}),
        "brackets.html": ("", "text/html", b"<" * 10_000, {}),
        "deep.html": ("deep", "text/html", b"<title>deep</title>" + b"<div>" * 20_000, {}),
        "image.html": ("", "text/html", b"\x89PNG\r\n\x1a\n" + junk[:1000], {}),
        "empty.html": ("", "text/html", b"", {}),
        "gzip.html": ("packed", content_type, gzip.compress(packed, mtime=0), {"Content-Encoding": "gzip"}),
        "brotli.html": ("packed", content_type, brotli.compress(packed), {"Content-Encoding": "br"}),
    }
