"""What a browser would load or go to: pages as lexbor reads them, style sheets by CSS Syntax, word for word.

Written without the rewriter's tables, which are held against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HREF = (
    "a area base link image use feimage script textpath mpath pattern filter lineargradient radialgradient tref cursor"
)
_MATHML = "math mi mo mn ms mtext mrow mfrac msqrt mstyle msub msup mtable mtr mtd semantics annotation maction"
#: Attribute → the elements on which a browser loads it or goes there.
_PLAIN = {
    "href": _words(f"{_HREF} {_MATHML}"),
    "src": _words(
        "img image script iframe frame embed video audio source track input bgsound portal fencedframe model"
    ),
    "data": frozenset({"object"}),
    "poster": frozenset({"video"}),
    "background": _words("body table thead tbody tfoot tr td th"),
    "action": frozenset({"form"}),
    "formaction": frozenset({"button", "input"}),
    "lowsrc": frozenset({"img", "image"}),
    "dynsrc": frozenset({"img", "image"}),
}
_SETS = {"srcset": frozenset({"img", "image", "source"}), "imagesrcset": frozenset({"link"})}
#: Attributes that must not be there.
_OUT = {
    "ping": frozenset({"a", "area"}), "manifest": frozenset({"html"}), "integrity": None, "crossorigin": None,
    "attributionsrc": None,
}  # fmt: skip
_STYLED = _words("style fill stroke filter mask clip-path marker marker-start marker-mid marker-end cursor")
_LOADED_RELS = _words(
    "stylesheet icon apple-touch-icon manifest preload modulepreload prefetch preconnect dns-prefetch prerender next "
    "search"
)
_IMAGE_SETS = frozenset({"image-set", "-webkit-image-set"})
#: Pages in pages, by srcdoc, that may be there.
_MOST_INNER = 5
_DEAD_EQUIVS = frozenset({"content-security-policy", "content-security-policy-report-only", "x-dns-prefetch-control"})
#: Stands for what must not be in a page at all.
FORBIDDEN = "forbidden:"


def of_page(page: str, *, depth: int = 0) -> Iterator[str]:
    """Yield the references of a page in the order of its elements; those of templates and inner pages as well."""
    parser = LexborHTMLParser(page)
    roots: list[LexborNode] = [] if parser.root is None else [parser.root]
    fragments = list(parser.template_fragments())
    for root in roots:
        yield from _of_element(root, depth)
        for node in root.traverse():
            yield from _of_element(node, depth)
    while fragments:
        fragment = fragments.pop(0)
        for node in fragment.traverse():
            yield from _of_element(node, depth)
            if node.tag == "template":
                fragments += node.template_fragments()


def _of_element(node: LexborNode, depth: int) -> Iterator[str]:
    tag = (node.tag or "").lower()
    attributes = {name.lower(): value or "" for name, value in node.attributes.items()}
    if tag == "style":
        yield from of_sheet(node.text())
    for name, value in attributes.items():
        yield from _of_attribute(tag, name, value, attributes, depth)
    if tag == "form" and "action" not in attributes:
        yield ""
    if tag == "meta":
        equiv = attributes.get("http-equiv", "").strip().lower()
        if equiv in _DEAD_EQUIVS:
            yield f"{FORBIDDEN}{equiv}"
        if equiv == "refresh" and (target := _refreshed(attributes.get("content", ""))):
            yield target


def _of_attribute(tag: str, name: str, value: str, others: dict[str, str], depth: int) -> Iterator[str]:
    if name == "href" and tag == "link":
        if _words(others.get("rel", "").lower()) & _LOADED_RELS:
            yield value
    elif name == "xlink:href" or tag in _PLAIN.get(name, ()):
        yield value
    elif tag in _SETS.get(name, ()):
        yield from of_srcset(value)
    elif name in _STYLED:
        yield from of_sheet(value)
    elif name == "srcdoc" and tag == "iframe":
        yield from [f"{FORBIDDEN}srcdoc"] if depth >= _MOST_INNER else of_page(value, depth=depth + 1)
    elif _is_forbidden(tag, name, value.lower()):
        yield f"{FORBIDDEN}{name}"


def _is_forbidden(tag: str, name: str, value: str) -> bool:
    if name in _OUT:
        only = _OUT[name]
        return only is None or tag in only
    return (
        (name == "rel" and tag == "link" and bool({"preconnect", "prefetch", "dns-prefetch"} & _words(value)))
        or (name == "attributename" and value.strip() in ("href", "xlink:href"))
        or (name == "type" and tag == "script" and "speculationrules" in value)
    )


def _refreshed(content: str) -> str:
    """HTML section 4.2.5.3, "shared declarative refresh steps"."""
    match = re.match(r"[ \t\n\f\r]*[0-9.]+[ \t\n\f\r]*[;,]?[ \t\n\f\r]*(.*)", content, re.DOTALL)
    rest = match[1] if match else ""
    if named := re.match(r"url[ \t\n\f\r]*=[ \t\n\f\r]*(.*)", rest, re.DOTALL | re.IGNORECASE):
        rest = named[1]
    return rest[1:].partition(rest[0])[0] if rest[:1] in ("'", '"') and rest else rest


def of_srcset(value: str) -> Iterator[str]:
    """HTML section 4.8.4.2.1, character by character."""
    at, space = 0, " \t\n\f\r"
    while at < len(value):
        while at < len(value) and value[at] in space + ",":
            at += 1
        begin = at
        while at < len(value) and value[at] not in space:
            at += 1
        url = value[begin:at]
        if not url:
            return
        if url.endswith(","):
            yield url.rstrip(",")
            continue
        yield url
        in_parentheses = False
        while at < len(value) and (in_parentheses or value[at] != ","):
            in_parentheses = value[at] != ")" if in_parentheses else value[at] == "("
            at += 1


# --- style sheets


def of_sheet(sheet: str) -> Iterator[str]:
    """The references of a sheet: CSS Syntax section 4, character by character."""
    tokens = list(_tokens(sheet.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").replace("\0", "\ufffd")))
    open_functions: list[str] = []
    rule, previous = "", ("", "")
    for kind, value in tokens:
        if kind == "url":
            if value and rule != "namespace":
                yield value
        elif kind == "string":
            inside = open_functions[-1] if open_functions else ""
            is_first = previous == ("function", inside) and inside in ("url", "src")
            if value and rule != "namespace" and (rule == "import" or is_first or inside in _IMAGE_SETS):
                yield value
        elif kind == "function":
            if value in ("var", "attr", "env") and open_functions and open_functions[-1] in ("src", *_IMAGE_SETS):
                yield FORBIDDEN
            open_functions.append(value)
        elif kind == "(":
            open_functions.append("")
        elif kind == ")" and open_functions:
            open_functions.pop()
        if kind == "at":
            rule = value
        elif not (kind == "space" or (rule == "namespace" and kind in ("ident", "number"))):
            rule = rule if kind == "function" and value == "url" else ""
        if kind != "space":
            previous = kind, value


def _tokens(sheet: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(sheet):
        sign = sheet[at]
        if sheet.startswith("/*", at):
            end = sheet.find("*/", at + 2)
            at = len(sheet) if end < 0 else end + 2
        elif sign in " \t\n":
            yield "space", ""
            at += 1
        elif sign in "\"'":
            text, at, is_good = _string(sheet, at)
            yield "string" if is_good else "bad", text
        elif sign in "#@" and _is_name(sheet, at + 1):
            name, at = _name(sheet, at + 1)
            yield "at" if sign == "@" else "hash", name.lower()
        elif sign.isdigit() and sign.isascii():
            while at < len(sheet) and sheet[at] in "0123456789.":
                at += 1
            if _is_name(sheet, at):
                _, at = _name(sheet, at)
            yield "number", ""
        elif _is_name(sheet, at):
            name, at = _name(sheet, at)
            if sheet[at : at + 1] != "(":
                yield "ident", name.lower()
                continue
            at += 1
            rest = sheet[at:].lstrip(" \t\n")
            if name.lower() != "url" or rest[:1] in ("'", '"'):
                yield "function", name.lower()
                continue
            url, at = _url(sheet, at)
            yield ("bad", "") if url is None else ("url", url)
        else:
            yield sign, ""
            at += 1


def _string(sheet: str, at: int) -> tuple[str, int, bool]:
    quote, text = sheet[at], ""
    at += 1
    while at < len(sheet):
        if sheet[at] == quote:
            return text, at + 1, True
        if sheet[at] == "\n":
            return text, at, False
        if sheet[at] == "\\":
            if sheet[at + 1 : at + 2] in ("", "\n"):
                at += 2
                continue
            more, at = _escape(sheet, at)
            text += more
            continue
        text += sheet[at]
        at += 1
    return text, at, True


def _url(sheet: str, at: int) -> tuple[str | None, int]:
    text = ""
    while at < len(sheet) and sheet[at] in " \t\n":
        at += 1
    while at < len(sheet):
        sign = sheet[at]
        if sign == ")":
            return text, at + 1
        if sign in " \t\n":
            rest = sheet[at:].lstrip(" \t\n")
            if rest[:1] in ("", ")"):
                return text, len(sheet) - len(rest) + 1
            break
        if sign in "\"'(" or ord(sign) < 0x20 or ord(sign) == 0x7F or (sign == "\\" and not _is_escape(sheet, at)):
            break
        if sign == "\\":
            more, at = _escape(sheet, at)
            text += more
            continue
        text += sign
        at += 1
    else:
        return text, at
    while at < len(sheet) and sheet[at] != ")":
        at = _escape(sheet, at)[1] if sheet[at] == "\\" and _is_escape(sheet, at) else at + 1
    return None, at + 1


def _is_escape(sheet: str, at: int) -> bool:
    # At the end of the sheet it is one: U+FFFD.
    return sheet[at : at + 1] == "\\" and sheet[at + 1 : at + 2] != "\n"


def _escape(sheet: str, at: int) -> tuple[str, int]:
    match = re.compile(r"\\([0-9a-fA-F]{1,6})[ \t\n]?").match(sheet, at)
    if match is None:
        return sheet[at + 1 : at + 2] or "\ufffd", at + 2
    number = int(match[1], 16)
    good = 0 < number <= 0x10FFFF and not 0xD800 <= number < 0xE000
    return chr(number) if good else "\ufffd", match.end()


def _is_name(sheet: str, at: int) -> bool:
    sign = sheet[at : at + 1]
    return bool(sign) and (sign in "_-" or sign.isalpha() or ord(sign) >= 0x80 or _is_escape(sheet, at))


def _name(sheet: str, at: int) -> tuple[str, int]:
    text = ""
    while at < len(sheet):
        sign = sheet[at]
        if sign in "_-" or ord(sign) >= 0x80 or (sign.isascii() and sign.isalnum()):
            text += sign
            at += 1
        elif _is_escape(sheet, at):
            more, at = _escape(sheet, at)
            text += more
        else:
            break
    return text, at
