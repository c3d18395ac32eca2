"""The rows of one start tag, and of a style sheet in a page: what HTML and XML have in common. Pure."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping
from itertools import chain
from urllib.parse import urljoin

from webarcfs.content.rewriting import css_references, escapes
from webarcfs.content.rewriting.attribute_table import (
    ANIMATIONS,
    ASKING_RELS,
    DEAD_EQUIVS,
    EVERYWHERE,
    LOADED_RELS,
    PARAMETERS,
    TABLE,
    Care,
)
from webarcfs.content.rewriting.references import (
    EXTRA_AT,
    LONGEST_BODY,
    NEAR,
    QUOTES_AT,
    SHAPE_AT,
    SHAPE_BITS,
    TARGETED,
    USE_BITS,
    USES,
    Quotes,
    Shape,
    Use,
    code,
)

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


_ATTRIBUTES = compiled(_ATTRIBUTE)
TAGS = compiled(TAG)
#: What in a style element may be markup.
MARKUP = re.compile(rb"<[a-z/!?_:\x80-\xff]|&[a-z#]")
#: The code of a style sheet that markup is resolved in first.
SHEET = code(Use.STYLE, Shape.SHEET)
# A reference to an entity that a document of XML may declare.
_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-f]+);)")
_IS_STYLED = re.compile(rb"(?:rl|et|rc)\(|[\\&]")
_CODES = {use: code(use) for use in Use}
_OUT = 1  # the number of "x-" among the constant texts
_RAW_OUT = code(Use.OTHER, Shape.RAW) | _OUT << EXTRA_AT
_STYLE = code(Use.OTHER, Shape.STYLE)
_TARGET = code(Use.TARGET, Shape.TARGET)
_SRCDOC = code(Use.FRAME, Shape.SRCDOC)
_MOST_TEXTS = 100_000
_BY_AS = {"style": Use.STYLE, "script": Use.SCRIPT, "image": Use.IMAGE}
_OWNERS = frozenset({Use.LINK, Use.FORM, Use.BASE})

_Found = Mapping[bytes, re.Match[bytes]]
_Row = tuple[int, int, int]


class ElementRows:
    """Collects the rows of one page. A subclass finds its tags."""

    #: A document may say what an entity is, so what an attribute with one says is not known here.
    declares_entities = False

    def __init__(self, body: bytes, charset: str, *, is_inner: bool) -> None:
        """`is_inner` is for the page of a srcdoc."""
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
        self._is_inner = is_inner
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
        plain = escapes.without_second_bytes(part, self._charset)
        if plain is part:
            stopped = css_references.find(self.body, at, end, self.rows, flags)
        else:
            found: array[int] = array("I")
            stopped = at + css_references.find(plain, 0, len(plain), found, flags)
            for index in range(0, len(found), 3):
                self.rows.extend((found[index] + at, found[index + 1] + at, found[index + 2]))
        if stopped < end:
            self.stopped = stopped

    def attributes(self, name: bytes, match: re.Match[bytes]) -> None:
        """Add the rows of a start tag."""
        self._tag, self._name_end = match.start(), match.end(2)
        entries = TABLE.get(name, EVERYWHERE)
        found: dict[bytes, re.Match[bytes]] = {}
        rows: list[_Row] = []
        low = self.low
        for attribute in _ATTRIBUTES.finditer(low, match.end(2), match.end()):
            key = attribute[1]
            entry = entries.get(self._key(key))
            if entry is None or key in found:
                continue
            if self.declares_entities and _ENTITY.search(attribute[attribute.lastindex or 1]):
                at = attribute.start() + key.rfind(b":") + 1
                rows.append((at, at, _RAW_OUT))
                continue
            found[key] = attribute
            row = _row(attribute, entry) if entry >= 0 else self._cared_for(attribute, entry)
            if row is not None:
                rows.append(row)
        reader = self._readers.get(name)
        if reader is not None:
            rows += reader(found)
        if len(rows) > 1:
            rows.sort()
            self._join_target(rows)
        if rows:
            self.rows.extend(chain.from_iterable(rows))

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
            if shape == Shape.TARGET:
                target = index
            elif shape == Shape.URL and owner < 0 and USES[number & USE_BITS] in _OWNERS:
                owner = index
        if target >= 0 and owner >= 0:
            begin, end, number = rows[target]
            rows[target] = (begin, end, number | (owner - target + NEAR) << EXTRA_AT)
            begin, end, number = rows[owner]
            rows[owner] = (begin, end, number | TARGETED)

    def _text(self, found: _Found, name: bytes) -> str:
        """Return an attribute's value, or an empty one."""
        attribute = found.get(name)
        if attribute is None or (attribute.lastindex or 1) == 1:
            return ""
        value = self.body[slice(*attribute.span(attribute.lastindex or 1))]
        return escapes.attribute_text(escapes.decoded(value, self._charset))

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
        self.rows.extend((at, at, code(Use.OTHER, Shape.RAW) | self.number(text) << EXTRA_AT))

    def _constant(self, attribute: re.Match[bytes], text: str) -> _Row:
        """Return the row of a value that is replaced by `text`."""
        return _row(attribute, code(Use.OTHER, Shape.VALUE) | self.number(text) << EXTRA_AT)

    # --- elements

    def _link(self, found: _Found) -> list[_Row]:
        words = self._text(found, b"rel").split()
        rels = {word.lower() for word in words}
        rows = []
        if rels & ASKING_RELS:
            dead = " ".join(f"x-{word}" if word.lower() in ASKING_RELS else word for word in words)
            rows.append(self._constant(found[b"rel"], dead))
        if b"href" in found and rels & LOADED_RELS:
            use = Use.OTHER
            if "stylesheet" in rels:
                use = Use.STYLE
            elif "preload" in rels:
                use = _BY_AS.get(self._text(found, b"as").strip().lower(), Use.OTHER)
            elif any("icon" in rel for rel in rels):
                use = Use.IMAGE
            rows.append(_row(found[b"href"], _CODES[use]))
        return rows

    def _meta(self, found: _Found) -> list[_Row]:
        equiv = self._text(found, b"http-equiv").strip().lower()
        if equiv == "refresh" and b"content" in found and not self.is_in_noscript:
            return [_row(found[b"content"], code(Use.REFRESH, Shape.REFRESH))]
        if equiv in DEAD_EQUIVS or (equiv == "refresh" and self.is_in_noscript):
            at = found[b"http-equiv"].start()
            return [(at, at, _RAW_OUT)]
        return []

    def _script(self, found: _Found) -> list[_Row]:
        kind = self._text(found, b"type")
        if "speculationrules" in kind.lower():
            return [self._constant(found[b"type"], f"x-{kind.strip()}")]
        return []

    def _base(self, found: _Found) -> list[_Row]:
        if self.base is None and b"href" in found:
            self.base = self._text(found, b"href")
        return []

    def _form(self, found: _Found) -> list[_Row]:
        if b"action" in found:
            return []
        return [(self._name_end, self._name_end, _CODES[Use.FORM] | Quotes.ABSENT << QUOTES_AT)]

    def _object(self, found: _Found) -> list[_Row]:
        """Read <object> and <applet>: names relative to a codebase, as the crawl took them."""
        rows = []
        codebase = self._text(found, b"codebase").strip()
        if codebase:
            at = found[b"codebase"].start()
            rows.append((at, at, _RAW_OUT))
        folder = codebase.rstrip("/") + "/"
        for name in (b"data", b"code", b"object"):
            if name in found:
                number = _CODES[Use.OBJECT]
                if codebase:
                    number |= self.number(_joined(folder, self._text(found, name).strip())) << EXTRA_AT
                rows.append(_row(found[name], number))
        if b"archive" in found:
            number = code(Use.OBJECT, Shape.COMMAS)
            if codebase:
                number |= self.number(folder) << EXTRA_AT
            rows.append(_row(found[b"archive"], number))
        return rows

    def _param(self, found: _Found) -> list[_Row]:
        if b"value" in found and self._text(found, b"name").strip().lower() in PARAMETERS:
            return [_row(found[b"value"], _CODES[Use.OBJECT])]
        return []

    def _animation(self, found: _Found) -> list[_Row]:
        if self._text(found, b"attributename").strip().lower().rpartition(":")[2] in ("href", "src"):
            at = found[b"attributename"].start()
            return [(at, at, _RAW_OUT)]
        return []


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
    for attribute in _ATTRIBUTES.finditer(match.string, end, match.end()):
        end = attribute.end()
    return end < match.end(3)


def _joined(folder: str, name: str) -> str:
    try:
        return urljoin(folder, name)
    except ValueError:
        return name
