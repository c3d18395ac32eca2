"""The references of a page by their places: of HTML, and of what browsers read as XML (XHTML, SVG, any other). Pure.

HTML's tokenizer (its section 13.2.5) is followed over the bytes, without a tree. One thing needs a tree: whether the
content of <style>, <title> and their like is text or markup depends on what is around (a drawing, a menu, a frameset).
What is around is known too widely, never too narrowly, and where it may be either, the content is rewritten so that
both readings see the same tokens.

In XML no element's content is text by its name; prefixes of names may be any; what is declared in the document's type
may bring in markup, and is put out of force then. What is not well-formed ends the page, as in browsers.

What each attribute means is in reference_table.py; only what replay needs is added here. HTML and XML share
the rows of a start tag, and of a style sheet in a page.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping
from enum import IntEnum
from itertools import chain
from typing import Final

from webarcfs.content import css_references, references
from webarcfs.content.reference_table import (
    INSTRUCTION,
    LAZY,
    LAZY_TAGS,
    LINK_ATTRIBUTES,
    MATHML,
    MOST_INNER,
    PARAMETERS,
    PRESENTATION,
    PSEUDO_ATTRIBUTE,
    REQUISITE_RELS,
    SRCSETS,
    UNFOLLOWED,
    LazyTarget,
    shown_attributes,
)
from webarcfs.content.references import (
    EXTRA_AT,
    IN_MARKUP,
    LONGEST_BODY,
    MOST_ROWS,
    NEAR,
    OF_BUTTON,
    QUOTES_AT,
    SHAPE_AT,
    SHAPE_BITS,
    TARGETED,
    USE_BITS,
    USES,
    Quotes,
    References,
    RowShape,
    Use,
    code,
    joined,
)

# == attribute table, pure ============================================================================================


class Care(IntEnum):
    """What an attribute needs that is no plain reference; below 0, so that it is no code."""

    OUT = -1  #: its name gets a prefix, so that it is out of force
    READ = -2  #: its element's reader looks at it
    STYLE = -3  #: declarations of CSS
    TARGET = -4  #: the name of a window
    SRCDOC = -5  #: a page


#: Values of rel that ask for things ahead of time, or in another way that replay has no use for.
ASKING_RELS = frozenset(
    {
        "compression-dictionary", "dns-prefetch", "import", "modulepreload", "monetization", "preconnect", "prefetch",
        "prerender", "serviceworker", "subresource",
    }
)  # fmt: skip
#: Values of rel that some browsers load, although the crawl takes them for links.
LOADED_RELS = (REQUISITE_RELS | {"next", "search"}) - ASKING_RELS
#: Values of http-equiv that change what a browser may do, or let it ask for something.
DEAD_EQUIVS = frozenset(
    {
        "accept-ch", "content-security-policy", "content-security-policy-report-only", "delegate-ch", "origin-trial",
        "set-cookie", "x-content-security-policy", "x-dns-prefetch-control", "x-webkit-csp",
    }
)  # fmt: skip
#: Elements that change another one's attribute: SVG's animations.
ANIMATIONS = frozenset({"animate", "animatecolor", "animatemotion", "animatetransform", "set"})
#: Elements whose content is no markup, in HTML.
RAW_ELEMENTS = frozenset(
    {"script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea", "plaintext"}
)  # fmt: skip

_USES = {
    **dict.fromkeys(("a", "area"), Use.LINK),
    **dict.fromkeys(("form", "button", "isindex"), Use.FORM),
    **dict.fromkeys(("frame", "iframe", "portal", "fencedframe"), Use.FRAME),
    **dict.fromkeys(("object", "embed", "applet"), Use.OBJECT),
    **dict.fromkeys(("img", "image", "feimage", "mglyph", "input"), Use.IMAGE),
    "script": Use.SCRIPT,
    **dict.fromkeys(MATHML, Use.LINK),
}
_IMAGES = frozenset({"background", "poster", "lowsrc", "dynsrc", "srcset"})
Entries = Mapping[bytes, int]


def _everywhere() -> dict[bytes, int]:
    entries: dict[bytes, int] = {name.encode(): Care.STYLE for name in PRESENTATION}
    entries.update(dict.fromkeys((b"attributionsrc", b"crossorigin", b"integrity"), Care.OUT))
    entries[b"xlink:href"] = code(Use.LINK)  # any element of MathML or XML may be a link by it
    backgrounds = (name.encode() for name, target in LAZY.items() if target is LazyTarget.STYLE)
    entries.update(dict.fromkeys(backgrounds, Care.READ))
    return entries


#: The attributes of elements that the table does not name.
EVERYWHERE: Entries = _everywhere()


def _table() -> dict[bytes, dict[bytes, int]]:
    table: dict[bytes, dict[bytes, int]] = {}

    def put(tag: str, attribute: str, entry: int) -> None:
        table.setdefault(tag.encode(), dict(EVERYWHERE))[attribute.encode()] = entry

    named = [(row.tag, row.attribute) for row in LINK_ATTRIBUTES]
    named += [(tag, attribute) for tag, attributes in UNFOLLOWED.items() for attribute in attributes]
    for tag, attribute in named:
        if attribute != "longdesc":
            put(tag, attribute, code(_use(tag, attribute)))
    for tag, attributes in SRCSETS.items():
        for attribute in attributes:
            put(tag, attribute, code(Use.IMAGE, RowShape.SRCSET))
    for attribute, target in LAZY.items():
        for tag in LAZY_TAGS.get(target, ()):
            use = Use.IMAGE if target is LazyTarget.POSTER else _use(tag, attribute)
            put(tag, attribute, code(Use.IMAGE, RowShape.SRCSET) if target is LazyTarget.SRCSET else code(use))
    for tag in ("a", "area"):
        put(tag, "ping", Care.OUT)
    for tag in ("a", "area", "base", "form"):
        put(tag, "target", Care.TARGET)
    for tag in ("button", "input"):
        put(tag, "formaction", code(Use.FORM) | OF_BUTTON)
        put(tag, "formtarget", Care.TARGET)
    put("applet", "archive", code(Use.OBJECT, RowShape.COMMAS))
    put("object", "archive", code(Use.OBJECT, RowShape.COMMAS))
    put("base", "href", code(Use.BASE))
    put("iframe", "srcdoc", Care.SRCDOC)
    put("html", "manifest", Care.OUT)
    read = {
        "applet": ("codebase", "code", "archive", "object"), "object": ("codebase", "data", "archive"),
        "link": ("rel", "href", "as"), "meta": ("http-equiv", "content"), "param": ("name", "value"),
        "script": ("type",), **dict.fromkeys(ANIMATIONS, ("attributename",)),
    }  # fmt: skip
    for tag, attributes in read.items():
        for attribute in attributes:
            put(tag, attribute, Care.READ)
    return table


def _use(tag: str, attribute: str) -> Use:
    if attribute in _IMAGES:
        return Use.IMAGE
    return Use.FORM if attribute == "formaction" else _USES.get(tag, Use.OTHER)


#: Element → attribute → the code of its row, or the care that it needs.
TABLE: Mapping[bytes, Entries] = _table()


# == element rows, pure ===============================================================================================


SPACE = r" \t\n\f\r"
# Everything is searched in the page in lower case, whose places are the same. No quantifier backtracks.
_ATTRIBUTE = rf"""
    ([^{SPACE}/>][^{SPACE}/>=]*+)
    (?: [{SPACE}]*+ = [{SPACE}]*+ (?: "([^"]*+)" | '([^']*+)' | ([^{SPACE}>"'][^{SPACE}>]*+) | (?=>) )
      | (?! [{SPACE}]*+ = ) )
"""
_PLAIN = re.sub(r"\((?=\[)", "(?:", _ATTRIBUTE)
TAG = rf"<(/?) ([a-z][^{SPACE}/>]*+) ((?: [{SPACE}/]++ | {_PLAIN} )*+) >"
COMMENT = r"<!--(?: -?> | [^-]*+ (?: -(?!-!?>) [^-]*+ )*+ --!?> )"


def compiled(pattern: str) -> re.Pattern[bytes]:
    """Return an expression over bytes, with free spaces."""
    return re.compile(pattern.encode("latin-1"), re.VERBOSE)


ATTRIBUTES = compiled(_ATTRIBUTE)
TAGS = compiled(TAG)
#: What in a style element may be markup.
MARKUP = re.compile(rb"<[a-z/!?_:\x80-\xff]|&[a-z#]")
#: The code of a style sheet that markup is resolved in first.
SHEET = code(Use.STYLE, RowShape.SHEET)
# A reference to an entity that a document of XML may declare.
_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-f]+);)")
_IS_STYLED = re.compile(rb"(?:rl|et|rc)\(|[\\&]")
_CODES = {use: code(use) for use in Use}
_OUT = 1  # the number of "x-" among the constant texts
_RAW_OUT = code(Use.OTHER, RowShape.RAW) | _OUT << EXTRA_AT
_STYLE = code(Use.OTHER, RowShape.STYLE)
_TARGET = code(Use.TARGET, RowShape.TARGET)
_SRCDOC = code(Use.FRAME, RowShape.SRCDOC)
_MOST_TEXTS = 100_000
_LAZY = frozenset(name.encode() for name in LAZY)
_SHOWN_SHAPES = {"srcset": RowShape.SRCSET, "style": RowShape.STYLE}
# A <noscript> behind or before a lazy element, by which plug-ins show the image where no script runs.
_FALLBACK = compiled(
    rf"[{SPACE}]*+ (?:<(?:source|img)\b [^>]{{0,2000}}+ > [{SPACE}]*+){{0,4}}+ (?:</picture>|</video>|</iframe>)?+"
    rf"[{SPACE}]*+ <noscript\b [^>]{{0,200}}+ >"
)
_FALLBACK_ENDS = compiled(rf"</noscript [{SPACE}]*+ > [{SPACE}]*+ (?:<picture\b[^<>]*+> [{SPACE}]*+)?+ \Z")
#: Bytes beside an element in which its <noscript> is looked for, and of the end of one.
_BESIDE = 4096
_LONGEST_END = 200
_NOSCRIPT_END = b"</noscript"
_BY_AS = {"style": Use.STYLE, "script": Use.SCRIPT, "image": Use.IMAGE}
_OWNERS = frozenset({Use.LINK, Use.FORM, Use.BASE})

_Found = Mapping[bytes, re.Match[bytes]]
_Row = tuple[int, int, int]


class ElementRows:
    """Collects the rows of one page. A subclass finds its tags."""

    #: A document may say what an entity is, so what an attribute with one says is not known here.
    declares_entities = False

    def __init__(self, body: bytes, charset: str, *, depth: int) -> None:
        """`depth` is the number of pages around a page that is the value of a srcdoc."""
        self.body = body
        self.end = min(len(body), LONGEST_BODY)
        self.low = body.lower()
        self.rows: array[int] = array("I")
        self.texts: list[str] = list(css_references.CSS_TEXTS)
        self.base: str | None = None
        #: Within a <noscript> that is shown: what leads to a page for other browsers does not.
        self.is_in_noscript = False
        #: Where reading must stop, since a limit is met; -1 if none is.
        self.stopped = -1
        self._charset = charset
        self._is_inner = depth >= MOST_INNER
        self._numbers: dict[str, int] = {text: number for number, text in enumerate(self.texts, 1)}
        self._tag = self._name_end = 0  # places in the tag that is read
        self._readers: dict[bytes, Callable[[_Found], list[_Row]]] = {
            b"link": self._link, b"meta": self._meta, b"script": self._script, b"base": self._base,
            b"form": self._form, b"object": self._object, b"applet": self._object, b"param": self._param,
            **{tag.encode(): self._animation for tag in ANIMATIONS},
        }  # fmt: skip

    def sheet(self, at: int, end: int, flags: int) -> None:
        """Add the rows of a style sheet in the page."""
        part = self.body[at:end]
        plain = references.without_second_bytes(part, self._charset)
        if plain is part:
            stopped = css_references.find(self.body, at, end, self.rows, flags)
        else:
            rows: array[int] = array("I")
            stopped = at + css_references.find(plain, 0, len(plain), rows, flags)
            for index in range(0, len(rows), 3):
                self.rows.extend((rows[index] + at, rows[index + 1] + at, rows[index + 2]))
        if stopped < end:
            self.stopped = stopped

    def attributes(self, name: bytes, match: re.Match[bytes]) -> None:
        """Add the rows of a start tag."""
        self._tag, self._name_end = match.start(), match.end(2)
        entries = TABLE.get(name, EVERYWHERE)
        attributes_by_name: dict[bytes, re.Match[bytes]] = {}
        rows: list[_Row] = []
        low = self.low
        for attribute in ATTRIBUTES.finditer(low, match.end(2), match.end()):
            key = attribute[1]
            entry = entries.get(self._key(key))
            if entry is None or key in attributes_by_name:
                continue
            if self.declares_entities and _ENTITY.search(attribute[attribute.lastindex or 1]):
                at = attribute.start() + key.rfind(b":") + 1
                rows.append((at, at, _RAW_OUT))
                continue
            attributes_by_name[key] = attribute
            row = _row(attribute, entry) if entry >= 0 else self._cared_for(attribute, entry)
            if row is not None:
                rows.append(row)
        reader = self._readers.get(name)
        if reader is not None:
            rows += reader(attributes_by_name)
        if not _LAZY.isdisjoint(attributes_by_name) and not self.is_in_noscript:
            self._show_lazy(name, match, attributes_by_name, rows)
        if len(rows) > 1:
            rows.sort()
            self._join_target(rows)
        if rows:
            self.rows.extend(chain.from_iterable(rows))

    def _show_lazy(self, name: bytes, match: re.Match[bytes], attributes: _Found, rows: list[_Row]) -> None:
        """Give an element what a script would give it, unless a page without scripts shows another one instead."""
        if any(attribute in _LAZY and self._has_fallback(match, attributes[attribute]) for attribute in attributes):
            return
        tag = name.decode("latin-1")
        texts = {attribute.decode("latin-1"): self._text(attributes, attribute) for attribute in attributes}
        for shown, value in shown_attributes(tag, texts).items():
            own = attributes.get(shown.encode())
            if own is None:
                number = code(_shown_use(tag, shown), RowShape.ADDED) | self.number(f"{shown}={value}") << EXTRA_AT
                rows.append((self._name_end, self._name_end, number))
                continue
            row = _row(own, code(_shown_use(tag, shown), _SHOWN_SHAPES.get(shown, RowShape.URL)))
            rows[:] = [other for other in rows if other[:2] != row[:2]]
            rows.append((*row[:2], row[2] | self.number(value) << EXTRA_AT))

    def _has_fallback(self, match: re.Match[bytes], attribute: re.Match[bytes]) -> bool:
        """Return whether a <noscript> next to an element has the same reference."""
        value = self.low[slice(*attribute.span(attribute.lastindex or 1))]
        begin, end = match.span()
        if beside := _FALLBACK.match(self.low, end, min(self.end, end + _BESIDE)):
            close = self.low.find(_NOSCRIPT_END, beside.end(), beside.end() + _BESIDE)
            return self.low.find(value, beside.end(), max(close, 0)) >= 0
        if not _FALLBACK_ENDS.search(self.low, max(0, begin - _LONGEST_END), begin):
            return False
        opened = self.low.rfind(b"<noscript", max(0, begin - _BESIDE), begin)
        return opened >= 0 and self.low.find(value, opened, begin) >= 0

    def _key(self, name: bytes) -> bytes:
        return name

    def _cared_for(self, attribute: re.Match[bytes], care: int) -> _Row | None:
        at = attribute.start()
        if care == Care.OUT or (care == Care.SRCDOC and self._is_inner):
            return at, at, _RAW_OUT
        if care == Care.STYLE:
            return _row(attribute, _STYLE) if _IS_STYLED.search(attribute[attribute.lastindex or 1]) else None
        if care == Care.TARGET:
            return _row(attribute, _TARGET)
        return _row(attribute, _SRCDOC) if care == Care.SRCDOC else None

    def _join_target(self, rows: list[_Row]) -> None:
        """Let the row of a target know that of its reference, and the other way round."""
        target = owner = -1
        for index, (_, _, number) in enumerate(rows):
            shape = number >> SHAPE_AT & SHAPE_BITS
            if shape == RowShape.TARGET:
                target = index
            elif shape == RowShape.URL and owner < 0 and USES[number & USE_BITS] in _OWNERS:
                owner = index
        if target >= 0 and owner >= 0:
            begin, end, number = rows[target]
            rows[target] = (begin, end, number | (owner - target + NEAR) << EXTRA_AT)
            begin, end, number = rows[owner]
            rows[owner] = (begin, end, number | TARGETED)

    def _text(self, attributes: _Found, name: bytes) -> str:
        """Return an attribute's value, or an empty one."""
        attribute = attributes.get(name)
        if attribute is None or (attribute.lastindex or 1) == 1:
            return ""
        value = self.body[slice(*attribute.span(attribute.lastindex or 1))]
        return references.attribute_text(references.decoded(value, self._charset))

    def number(self, text: str) -> int:
        """Return the number of a constant text, from 1."""
        number = self._numbers.get(text)
        if number is None:
            if len(self.texts) >= _MOST_TEXTS:
                self.stopped = self._tag
                return _OUT
            self.texts.append(text)
            number = self._numbers[text] = len(self.texts)
        return number

    def insert(self, at: int, text: str) -> None:
        """Add the row of a text that is added to the page."""
        self.rows.extend((at, at, code(Use.OTHER, RowShape.RAW) | self.number(text) << EXTRA_AT))

    def _constant(self, attribute: re.Match[bytes], text: str) -> _Row:
        """Return the row of a value that is replaced by `text`."""
        return _row(attribute, code(Use.OTHER, RowShape.VALUE) | self.number(text) << EXTRA_AT)

    # --- elements

    def _link(self, attributes: _Found) -> list[_Row]:
        words = self._text(attributes, b"rel").split()
        rels = {word.lower() for word in words}
        rows = []
        if rels & ASKING_RELS:
            dead = " ".join(f"x-{word}" if word.lower() in ASKING_RELS else word for word in words)
            rows.append(self._constant(attributes[b"rel"], dead))
        if b"href" in attributes and rels & LOADED_RELS:
            use = Use.OTHER
            if "stylesheet" in rels:
                use = Use.STYLE
            elif "preload" in rels:
                use = _BY_AS.get(self._text(attributes, b"as").strip().lower(), Use.OTHER)
            elif any("icon" in rel for rel in rels):
                use = Use.IMAGE
            rows.append(_row(attributes[b"href"], _CODES[use]))
        return rows

    def _meta(self, attributes: _Found) -> list[_Row]:
        equiv = self._text(attributes, b"http-equiv").strip().lower()
        if equiv == "refresh" and b"content" in attributes and not self.is_in_noscript:
            return [_row(attributes[b"content"], code(Use.REFRESH, RowShape.REFRESH))]
        if equiv in DEAD_EQUIVS or (equiv == "refresh" and self.is_in_noscript):
            at = attributes[b"http-equiv"].start()
            return [(at, at, _RAW_OUT)]
        return []

    def _script(self, attributes: _Found) -> list[_Row]:
        kind = self._text(attributes, b"type")
        if "speculationrules" in kind.lower():
            return [self._constant(attributes[b"type"], f"x-{kind.strip()}")]
        return []

    def _base(self, attributes: _Found) -> list[_Row]:
        if self.base is None and b"href" in attributes:
            self.base = self._text(attributes, b"href")
        return []

    def _form(self, attributes: _Found) -> list[_Row]:
        if b"action" in attributes:
            return []
        return [(self._name_end, self._name_end, _CODES[Use.FORM] | Quotes.ABSENT << QUOTES_AT)]

    def _object(self, attributes: _Found) -> list[_Row]:
        """Read <object> and <applet>: names relative to a codebase, as the crawl took them."""
        rows = []
        codebase = self._text(attributes, b"codebase").strip()
        if codebase:
            at = attributes[b"codebase"].start()
            rows.append((at, at, _RAW_OUT))
        folder = codebase.rstrip("/") + "/"
        for name in (b"data", b"code", b"object"):
            if name in attributes:
                number = _CODES[Use.OBJECT]
                if codebase:
                    number |= self.number(joined(folder, self._text(attributes, name).strip())) << EXTRA_AT
                rows.append(_row(attributes[name], number))
        if b"archive" in attributes:
            number = code(Use.OBJECT, RowShape.COMMAS)
            if codebase:
                number |= self.number(folder) << EXTRA_AT
            rows.append(_row(attributes[b"archive"], number))
        return rows

    def _param(self, attributes: _Found) -> list[_Row]:
        if b"value" in attributes and self._text(attributes, b"name").strip().lower() in PARAMETERS:
            return [_row(attributes[b"value"], _CODES[Use.OBJECT])]
        return []

    def _animation(self, attributes: _Found) -> list[_Row]:
        if self._text(attributes, b"attributename").strip().lower().rpartition(":")[2] in ("href", "src"):
            at = attributes[b"attributename"].start()
            return [(at, at, _RAW_OUT)]
        return []


def _shown_use(tag: str, attribute: str) -> Use:
    return Use.IMAGE if attribute in _IMAGES else Use.OTHER if attribute == "style" else _use(tag, attribute)


def _row(attribute: re.Match[bytes], number: int) -> _Row:
    """Return the row of an attribute's value."""
    group = attribute.lastindex or 1
    if group > 1:
        return (*attribute.span(group), number | (group - 2) << QUOTES_AT)
    end = attribute.end()
    quotes = Quotes.NAKED if end == attribute.end(1) else Quotes.BARE
    return (end, end, number | quotes << QUOTES_AT)


def is_self_closing(match: re.Match[bytes]) -> bool:
    """Return whether a tag ends in `/>`: the slash is not the end of a value without quotes."""
    text = match[3]
    if not text.endswith(b"/"):
        return False
    end = match.end(2)
    for attribute in ATTRIBUTES.finditer(match.string, end, match.end()):
        end = attribute.end()
    return end < match.end(3)


# == xml references, pure =============================================================================================


# Names may begin with more in XML, and their prefix may be anything.
_TAGS = compiled(TAG.replace("[a-z]", r"[a-z_:\x80-\xff]"))

_SKIP = compiled(
    rf"""(?:
      [^<]++
    | </ [^>]*+ >
    | <!-- [^-]*+ (?: -(?!->) [^-]*+ )*+ -->
    | <!\[cdata\[ [^\]]*+ (?: \](?!\]>) [^\]]*+ )*+ \]\]>
    | <\? (?!xml-stylesheet[{SPACE}?]) [^?]*+ (?: \?(?!>) [^?]*+ )*+ \?>
    | < (?![a-z_:\x80-\xff/!?])
    )*+"""
)

_STYLE_END = compiled(rf"</(?:[^{SPACE}/>:]*+:)?style(?=[{SPACE}/>])")
_PI = re.compile(INSTRUCTION.encode("ascii"))
_PSEUDO = re.compile(PSEUDO_ATTRIBUTE.encode("ascii"))
_XML_REFERENCES_PLAIN = re.compile(rb"(?:" + _PSEUDO.pattern + rb")*+[ \t\r\n]*+")
_ASIDE = rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+-->|<\?[^?]*+(?:\?(?!>)[^?]*+)*+\?>"
_DOCTYPE = re.compile(
    rb"""<!doctype(?:[^\[>"']++|"[^"]*+"|'[^']*+')*+
    (?:\[((?:[^\]"'<]++|"[^"]*+"|'[^']*+'|"""
    + _ASIDE
    + rb"""|<(?!!--|\?))*+)\][ \t\r\n]*+)?+>""",
    re.VERBOSE,
)
_DECLARATIONS = re.compile(_ASIDE + rb"""|<!(entity|attlist)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""", re.VERBOSE)
_LINK = code(Use.STYLE)
_RAW = code(Use.OTHER, RowShape.RAW)


class XmlReader(ElementRows):
    """Reads one page of XML."""

    declares_entities = True

    def read(self) -> int:
        """Find the rows; return the end of what was read: an error, or the end."""
        low, end = self.low, self.end
        most = 3 * MOST_ROWS
        at = 0
        while True:
            match = _SKIP.match(low, at, end)
            at = match.end() if match else end
            if at >= end:
                return end
            match = _TAGS.match(low, at, end)
            if match is None:
                after = self._other(at)
                if after < 0:
                    return at
                at = after
            else:
                at = self._opened(match)
            if self.stopped >= 0 or len(self.rows) > most:
                return min(at, end) if self.stopped < 0 else self.stopped

    def _other(self, at: int) -> int:
        """Return the end of a processing instruction or of the document's type; -1 if it has none."""
        if match := _PI.match(self.low, at, self.end):
            self._instruction(match)
        elif (match := _DOCTYPE.match(self.low, at, self.end)) is not None and match[1]:
            self._subset(*match.span(1))
        return match.end() if match else -1

    def _instruction(self, match: re.Match[bytes]) -> None:
        """Read a style sheet's instruction; those of XSLT, which makes another document, are put out of force."""
        attributes: dict[bytes, re.Match[bytes]] = {}
        for attribute in _PSEUDO.finditer(self.low, *match.span(1)):
            attributes.setdefault(attribute[1], attribute)
        kind = attributes.get(b"type")
        is_css = kind is None or (kind[2] or kind[3] or b"") in (b"", b"text/css")
        if not is_css or not _XML_REFERENCES_PLAIN.fullmatch(match[1]):
            self.insert(match.start() + 2, "x-")
        elif b"href" in attributes:
            href = attributes[b"href"]
            group = href.lastindex or 2
            quotes = Quotes.DOUBLE if group == 2 else Quotes.SINGLE
            self.rows.extend((*href.span(group), _LINK | quotes << QUOTES_AT))

    def _subset(self, begin: int, end: int) -> None:
        """Put declarations out of force that bring in markup or attributes: they would not be read here."""
        for declared in _DECLARATIONS.finditer(self.low, begin, end):
            if declared[1] is None:
                if instruction := _PI.match(self.low, declared.start(), end):
                    self._instruction(instruction)
                continue
            text = declared[2]
            literals = text.partition(b'"')[2] + text.partition(b"'")[2]
            if literals and (declared[1] == b"attlist" or b"<" in literals or b"&" in literals or b"%" in literals):
                number = self.number("")
                self.rows.extend((*declared.span(), _RAW | number << EXTRA_AT))

    def _opened(self, match: re.Match[bytes]) -> int:
        name = match[2].rpartition(b":")[2]
        if match.start(3) < match.end(3) or name == b"form":
            self.attributes(name, match)
        at = match.end()
        if name != b"style" or is_self_closing(match):
            return at
        end_tag = _STYLE_END.search(self.low, at, self.end)
        end = end_tag.start() if end_tag else self.end
        if at < end:
            if MARKUP.search(self.low, at, end):
                self.rows.extend((at, end, SHEET | IN_MARKUP))
            else:
                self.sheet(at, end, IN_MARKUP)
        return end

    def _key(self, name: bytes) -> bytes:
        # The prefix of XLink may be any.
        return b"xlink:href" if b":" in name and name.endswith(b":href") else name


# == html references, pure ============================================================================================


# --- what matters in no page: ends, comments, and tags with such attributes only

# Parents of HTML's elements in drawings and formulas (HTML section 13.2.6.5, "integration points").
_POINTS: Final = (
    "annotation-xml", "desc", "foreignobject", "mi", "mn", "mo", "ms", "mtext", "title",
)  # fmt: skip
_ENDS = "|".join((*_POINTS, "svg", "math", "select", "template", "noscript"))
_STARTS = "|".join(
    (*sorted(RAW_ELEMENTS), "svg", "math", "select", "template", "noscript", "frameset", "col", "form", "param")
)
_DULL = (
    r"class|id|title|alt|width|height|name|lang|dir|align|valign|colspan|rowspan|role|border|cellspacing|cellpadding"
    r"|summary|scope|start|type|value|accesskey|bgcolor|color|size|face|d|x|y"
)
_HTML_REFERENCES_SKIP = compiled(
    rf"""(?:
      [^<]++
    | </ (?!(?:{_ENDS})[{SPACE}/>]) [a-z][^{SPACE}/>]*+ >
    | < (?!(?:{_STARTS})[{SPACE}/>]) [a-z][^{SPACE}/>]*+ (?: [{SPACE}]++ (?:{_DULL})="[^"]*+" )*+ [{SPACE}]*+ /?+ >
    | < (?![a-z/!?])
    | {COMMENT}
    )*+"""
)
# --- text

_RAW_ENDS = {
    name.encode(): compiled(rf"</{name}(?=[{SPACE}/>])") for name in RAW_ELEMENTS if name not in ("plaintext", "script")
}
# Where an element that may be either ends at the latest.
_DOUBTFUL_ENDS = {
    name.encode(): compiled(rf"</(?:{name}|svg|math|select|frameset|template)(?=[{SPACE}/>])") for name in RAW_ELEMENTS
}
# Script data (HTML 13.2.5.4 and following): behind `<!--`, an inner `<script` has an end of its own.
_SCRIPT_PARTS = compiled(rf"<!-- | --> | <(/?)script(?=[{SPACE}/>])")
_FOREIGN = (b"svg", b"math")
_CONTEXTS = frozenset((*_FOREIGN, b"select", b"template", b"frameset", b"col", b"noscript"))
_HTML_REFERENCES_RAW = frozenset(name.encode() for name in RAW_ELEMENTS)
_MASK = code(Use.OTHER, RowShape.MASK)
_NOWHERE = 1 << 62


def of_html(
    body: bytes, charset: str, *, is_xml: bool = False, depth: int = 0, shows_noscript: bool = False
) -> References:
    """Find the references of a page, in time linear in it; no content raises.

    `charset` is the result of `text.decode_charset`; `is_xml` says that a browser reads the page as XML (XHTML, SVG).
    `depth` is the number of pages around the page of a srcdoc: more than MOST_INNER are put out of force.
    `shows_noscript` is for browsers that will run no script of the page, but do not know it when they read it: what is
    for such browsers becomes a part of it.
    """
    changed = references.as_utf8(body, charset)
    read, known = (body, charset) if changed is None else (changed, "utf-8")
    reader: XmlReader | HtmlReader
    if is_xml:
        reader = XmlReader(read, known, depth=depth)
    else:
        reader = HtmlReader(read, known, depth=depth, shows_noscript=shows_noscript)
    stopped = reader.read()
    return References(
        reader.rows,
        tuple(reader.texts),
        charset,
        known,
        stopped,
        is_cut=stopped < len(read),
        is_xml=is_xml,
        base=reader.base,
        holes=tuple(reader.holes) if isinstance(reader, HtmlReader) else (),
    )


class HtmlReader(ElementRows):
    """Reads one page of HTML."""

    def __init__(self, body: bytes, charset: str, *, depth: int, shows_noscript: bool) -> None:
        super().__init__(body, charset, depth=depth)
        # A frameset would be lost behind an element of a body.
        self._shows_noscript = shows_noscript and b"<frameset" not in self.low
        self.holes: list[int] = []
        self._hole = _NOWHERE  # the next `</noscript` inside of an open one
        self._last_hole = self.low.rfind(_NOSCRIPT_END, 0, self.end)
        self._ending = b""  # the element whose content was text, when its end tag is next
        # What may be around. Each is true whenever it is so, and sometimes when it is not.
        self._foreign: list[bytes] = []  # drawings and formulas that are open
        self._was_foreign = False
        self._selects = 0
        self._templates = 0
        self._is_doubtful = False  # for the rest of the page
        self._in_frameset = False

    def read(self) -> int:
        """Find the rows; return the end of what was read."""
        low, end = self.low, self.end
        skip, tags = _HTML_REFERENCES_SKIP.match, TAGS.match
        most = 3 * MOST_ROWS
        at = 0
        while True:
            match = skip(low, at, end)
            at = match.end() if match else end
            if at > self._hole:
                self._note_holes(at)
            if at >= end:
                return end
            match = tags(low, at, end)
            if match is None:
                at = self._other(at)
            elif match[1]:
                at = match.end()
                if match[2] == b"noscript" and self._shows_noscript:
                    self.insert(match.start(2), "x-")
                    self.is_in_noscript = False
                self._closed(match[2])
            else:
                at = self._opened(match)
            if self.stopped >= 0 or len(self.rows) > most:
                return min(at, end) if self.stopped < 0 else self.stopped
            if at > self._hole:
                self._note_holes(at)

    # --- tokens

    def _other(self, at: int) -> int:
        """Return the end of what is neither text nor a whole tag at `at`."""
        low, end = self.low, self.end
        if low.startswith(b"<!--", at):
            return end  # it has no end
        if self.body.startswith(b"<![CDATA[", at) and self._may_be_foreign():
            return self._cdata(at)
        following = low[at + 1 : at + 3].lstrip(b"/")[:1]
        if following.isalpha() and (low[at + 1 : at + 2] != b"!"):
            return end  # a tag without an end: browsers drop it, and what is in it
        close = low.find(b">", at, end)
        return close + 1 or end

    def _cdata(self, at: int) -> int:
        """Read what is text up to `]]>` in a drawing, and a comment up to `>` elsewhere."""
        comment = self.low.find(b">", at, self.end) + 1 or self.end
        text = self.low.find(b"]]>", at, self.end)
        text = self.end if text < 0 else text + 3
        if text > comment:
            self.rows.extend((comment, text, _MASK))
        return text

    def _closed(self, name: bytes) -> None:
        """Take note of an end tag."""
        ending, self._ending = self._ending, b""
        if name == ending:
            return
        if name in _FOREIGN:
            if self._foreign and self._foreign[-1] == name:
                self._foreign.pop()
        elif name == b"select":
            self._selects = 0
        elif name == b"template":
            self._templates = max(self._templates - 1, 0)
        elif name == b"noscript":
            self._hole = _NOWHERE
        elif self._was_foreign and not self._foreign and name.decode("latin-1") in _POINTS:
            self._is_doubtful = True  # it may lead back into a drawing

    def _may_be_foreign(self) -> bool:
        return bool(self._foreign) or self._is_doubtful

    def _opened(self, match: re.Match[bytes]) -> int:
        """Read a start tag; return the end of what belongs to it."""
        name = match[2]
        begin, end = match.span(3)
        if name == b"noscript" and self._shows_noscript:
            self.insert(match.start(2), "x-")
            self.is_in_noscript = True
        if begin < end or name == b"form":
            self.attributes(name, match)
        end += 1
        if name in _CONTEXTS:
            self._enter(name, match)
        if name in _HTML_REFERENCES_RAW:
            return self._raw(name, match)
        return end

    def _enter(self, name: bytes, match: re.Match[bytes]) -> None:
        if name in _FOREIGN:
            if not is_self_closing(match):
                self._foreign.append(name)
            self._was_foreign = True
        elif name == b"select":
            self._selects = 1
        elif name == b"template":
            self._templates += 1
            if self._selects:
                self._is_doubtful = True
        elif name == b"frameset":
            self._in_frameset = True
        elif name == b"col":
            if self._templates:
                self._is_doubtful = True
        elif name == b"noscript" and self._hole == _NOWHERE:
            self._hole = self._next_hole(match.end())

    def _next_hole(self, at: int) -> int:
        if at > self._last_hole:
            return _NOWHERE
        return self.low.find(_NOSCRIPT_END, at, self.end)

    def _note_holes(self, at: int) -> None:
        """Note each end of the <noscript> that is none here, since it is inside of another token."""
        while self._hole < at:
            self.holes.append(self._hole)
            self._hole = self._next_hole(self._hole + 1)

    # --- elements whose content is text

    def _raw(self, name: bytes, match: re.Match[bytes]) -> int:
        """Read the content of such an element; return where its end tag begins."""
        at = match.end()
        foreign = self._may_be_foreign()
        if foreign or self._selects or (self._in_frameset and name != b"noframes"):
            return self._doubtful(name, at, foreign, is_self_closing(match))
        if name == b"plaintext":
            return self.end
        if name == b"script":
            return self._script_end(at)
        end_tag = _RAW_ENDS[name].search(self.low, at, self.end)
        end = end_tag.start() if end_tag else self.end
        if name == b"style" and at < end:
            self.sheet(at, end, 0)
        self._ending = name
        return end

    def _script_end(self, at: int) -> int:
        is_escaped = is_doubly = False
        while match := _SCRIPT_PARTS.search(self.low, at, self.end):
            at = match.end()
            if match[1] is None:
                is_escaped = match[0] == b"<!--"
                if is_escaped:
                    at -= 2  # `<!-->` is both
                else:
                    is_doubly = False
            elif match[1]:
                if not is_doubly:
                    return match.start()
                is_doubly = False
            elif is_escaped:
                is_doubly = True
        return self.end

    def _doubtful(self, name: bytes, at: int, foreign: bool, closes_itself: bool) -> int:
        """Read content that is text for some, and markup for others: both shall see the same tokens."""
        if name == b"plaintext":
            return at  # as markup: where it is text, the references in it are seen and nothing else
        if closes_itself:
            self.insert(at, f"</{name.decode('ascii')}>")
            return at
        end_tag = _DOUBTFUL_ENDS[name].search(self.low, at, self.end)
        end = end_tag.start() if end_tag else self.end
        if at < end:
            if name != b"style":
                if b"<" in self.low[at:end]:
                    self.rows.extend((at, end, _MASK))
            elif MARKUP.search(self.low, at, end):
                self.rows.extend((at, end, SHEET | IN_MARKUP if foreign else SHEET))
            else:
                self.sheet(at, end, IN_MARKUP)
        if end_tag and not self.low.startswith(name, end + 2):
            self.insert(end, f"</{name.decode('ascii')}>")
        return end
