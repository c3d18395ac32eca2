"""The language of searches: text in, a tree of expressions out; a fault is marked at its place. Pure.

annual report            both words, anywhere in a document
"annual report"          the words in this order
-draft                   not this word; NOT is the same
report OR minutes        either; brackets group
report*                  words that begin so
title:report             in the title; also headings:, text:, description:, url: (the address)
site:example.org/news    on this host, the hosts below it, or in this folder
type:pdf                 of this kind or MIME type; also type:image, type:image/png
lang:de                  in this language
collection:elections     of the publications and crawls of this collection
role:resource            what only pages of other hosts needed; role:any: that and pages; without it, pages alone
before:2024-01           first captured so before this time; after: from it on
during:2024              captured (stored, or met unchanged) in this year, month or day; during:2019..2021: and between
present:2024             as it was at the end of this year, month or day; present:now: as it is

The last two are about the whole search: they stand beside its words, once, and not in brackets, after OR or NOT.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webarcfs.archive.model.errors import BadCondition
from webarcfs.archive.model.metadata import ANY_ROLE, CET, PAGE_ROLE, RESOURCE_ROLE
from webarcfs.search.words import KINDS, terms_of

#: Most characters of a search, most words in it, most words with a `*`, and deepest brackets.
LONGEST, MOST_WORDS, MOST_BEGINNINGS, DEEPEST = 8_192, 512, 16, 32


class DocumentPart(StrEnum):
    """A part of a document with words."""

    ANYWHERE = ""
    TITLE = "title"
    HEADINGS = "headings"
    DESCRIPTION = "description"
    TEXT = "text"
    URL = "url"


class AskedRole(StrEnum):
    """What documents are to their host: pages of it, or resources that only pages of other hosts needed."""

    PAGE = PAGE_ROLE
    RESOURCE = RESOURCE_ROLE
    ANY = ANY_ROLE


def role_of(text: str) -> AskedRole:
    """Return the role that a text names. Raises BadCondition if it names none."""
    try:
        return AskedRole(text.lower())
    except ValueError:
        raise BadCondition(f"a role is {', '.join(AskedRole)}") from None


@dataclass(frozen=True, slots=True)
class Words:
    """Terms that follow each other in a part of a document; with `beginning`, the last one only begins so.

    `natural` is one word in lower case with its accents, for stemming; empty for more, and for quoted ones.
    """

    terms: tuple[str, ...]
    part: DocumentPart = DocumentPart.ANYWHERE
    beginning: bool = False
    natural: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """Documents of a host, of hosts below it, or in a folder of a host."""

    place: str


@dataclass(frozen=True, slots=True)
class TypeCondition:
    """Documents of a kind, `pdf`, or of a MIME type, `application/pdf`, which may end in `/*`."""

    name: str


@dataclass(frozen=True, slots=True)
class Language:
    """Documents in a language, by its code."""

    code: str


@dataclass(frozen=True, slots=True)
class RoleCondition:
    """Documents of a role."""

    role: AskedRole


@dataclass(frozen=True, slots=True)
class CollectionCondition:
    """Documents of a collection."""

    name: str


@dataclass(frozen=True, slots=True)
class Before:
    """Documents that were first captured, as they are, before a time."""

    time: datetime


@dataclass(frozen=True, slots=True)
class After:
    """Documents that were first captured, as they are, at a time or after it."""

    time: datetime


@dataclass(frozen=True, slots=True)
class Not:
    """Documents for which another expression does not hold."""

    inner: Expression


@dataclass(frozen=True, slots=True)
class All:
    """Documents for which all of several expressions hold; for none of them, every document."""

    inner: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Any:
    """Documents for which one of several expressions holds."""

    inner: tuple[Expression, ...]


Expression = (
    Words | Site | TypeCondition | Language | RoleCondition | CollectionCondition | Before | After | Not | All | Any
)

_QUOTES = {'"': '"', "\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u00ab": "\u00bb"}
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<open>\()|(?P<close>\))|(?P<minus>-(?=[^\s)]))|(?P<field>[A-Za-z]{2,20}:(?=[^\s)]))"
    r"|(?P<quote>[\"\u201c\u201e\u00ab])|(?P<word>[^\s()\"\u201c\u201e\u00ab]+)"
)
_TIME = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:T(\d\d?):(\d\d)(?::(\d\d))?)?)?)?", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
#: The fields that say which states of the archive a search means.
_STATES = ("during", "present")
_FIELDS = (
    "title", "headings", "description", "text", "url", "site", "type", "lang", "role", "collection", "before", "after",
    *_STATES,
)  # fmt: skip
#: Between the first and the last of two spans of time.
_TO = ".."
_NOW = "now"
_DAY = 86_400
#: Characters before a fault that are shown.
_SHOWN = 60


def asks_for_a_role(expression: Expression) -> bool:
    """Return whether a search says which roles it means, anywhere in it."""
    match expression:
        case RoleCondition():
            return True
        case Not(inner):
            return asks_for_a_role(inner)
        case All(inner) | Any(inner):
            return any(map(asks_for_a_role, inner))
    return False


@dataclass(frozen=True, slots=True)
class ParsedSearch:
    """A search: what documents have, and of which states of the archive it speaks, in seconds since 1970.

    `during`: documents that were captured from the first time on, before the second. `at`: the state at a time.
    `is_present`: the present. At most one of them is given.
    """

    expression: Expression
    during: tuple[int, int] | None = None
    at: int | None = None
    is_present: bool = False

    @property
    def says_states(self) -> bool:
        """Whether it says of which states of the archive it speaks."""
        return self.during is not None or self.at is not None or self.is_present


def parse_search(text: str) -> Expression:
    """Return the expression of a search. Raises BadCondition, with the place of the fault below the text."""
    return parse_whole_search(text).expression


def parse_condition(name: str, value: str) -> Expression:
    """Return the expression of a field with a value that comes from elsewhere. Raises BadCondition."""
    if '"' in value or not value.strip():
        raise BadCondition(f"{value!r} is no value of {name}:")
    return parse_search(f'{name}:"{value}"')


def parse_span(text: str) -> tuple[int, int]:
    """Return the span of time of a year, a month, a day, or from one to another, as `during:` has it.

    It is in seconds since 1970, from the first time on, before the second. Raises BadCondition.
    """
    try:
        return _span(text)
    except ValueError as error:
        raise BadCondition(f"{text!r}: {error}") from None


def parse_whole_search(text: str) -> ParsedSearch:
    """Return a search with its states. Raises BadCondition, with the place of the fault below the text."""
    if len(text) > LONGEST:
        raise BadCondition(f"a search of {len(text):,} characters; at most {LONGEST:,} are possible")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise BadCondition("the search is no UTF-8")
    parser = _Parser(text)
    search = parser.whole()
    if search.expression == All() and not search.says_states:
        raise BadCondition("the search has no word; give some, or a condition as site:example.org")
    return search


_SPAN_FORM = "a span of time is a year, a month or a day, as 2024, 2024-03 or 2024-03-31, or 2019..2021"


def _span(text: str) -> tuple[int, int]:
    """Return the span of a text. Raises ValueError."""
    first, mark, last = text.partition(_TO)
    begin, end = _unit(first), _unit(last if mark else first)
    if begin[0] >= end[1]:
        raise ValueError("it ends before it begins")
    return begin[0], end[1]


def _unit(text: str) -> tuple[int, int]:
    """Return begin and end of a year, a month, a day or a second. Raises ValueError."""
    try:
        begin, numbers = _begin_of(text)
    except ValueError:
        raise ValueError(_SPAN_FORM) from None
    at = int(begin.timestamp())
    of_month = monthrange(begin.year, begin.month)[1] * _DAY  # CET has no summer time
    of_year = (366 if isleap(begin.year) else 365) * _DAY
    return at, at + {1: of_year, 2: of_month, 3: _DAY, 5: 60, 6: 1}[numbers]


def _begin_of(text: str) -> tuple[datetime, int]:
    """Return the begin of a year, a month, a day, a minute or a second, and how many numbers spell it.

    Raises ValueError.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    numbers = [int(group) for group in match.groups() if group is not None]
    year, month, day, hour, minute, second = [*numbers, *(1, 1, 1, 0, 0, 0)[len(numbers) :]]
    return datetime(year, month, day, hour, minute, second, tzinfo=CET), len(numbers)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Reads one search by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0
        self._words = 0
        self._beginnings = 0
        self._state: _Token | None = None
        self._during: tuple[int, int] | None = None
        self._at: int | None = None
        self._is_present = False

    def whole(self) -> ParsedSearch:
        expression = self._alternatives()
        if (token := self._peek()) is not None:
            raise self._wrong("this ) closes nothing", token.at)
        return ParsedSearch(expression, self._during, self._at, self._is_present)

    # -- tokens ------------------------------------------------------------------------------------------------------

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:  # no text comes here: a word takes all that is left
                raise self._wrong("this is no part of a search", at)
            kind = str(match.lastgroup)
            if kind == "quote":
                ends = _QUOTES[match[0]]
                end = min((place for mark in ends if (place := self._text.find(mark, match.end())) >= 0), default=-1)
                if end < 0:
                    raise self._wrong("this quote is never closed", at)
                yield _Token(kind, self._text[match.end() : end], at)
                at = end + 1
                continue
            if kind != "space":
                yield _Token(kind, match[0], at)
            at = match.end()

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, kind: str, text: str = "") -> _Token | None:
        token = self._peek()
        if token is None or token.kind != kind or (text and token.text != text):
            return None
        self._next += 1
        return token

    # -- grammar -----------------------------------------------------------------------------------------------------

    def _alternatives(self) -> Expression:
        """Return expressions with OR between them."""
        expressions = [self._row()]
        while (token := self._take("word", "OR")) is not None:
            following = self._row()
            if self._state is not None and not self._depth:
                raise self._misplaced(self._state)
            if All() in (expressions[-1], following):
                raise self._wrong("OR stands between two words", token.at)
            expressions.append(following)
        return expressions[0] if len(expressions) == 1 else Any(tuple(expressions))

    def _row(self) -> Expression:
        """Return expressions that hold together."""
        expressions: list[Expression] = []
        while (
            (token := self._peek()) is not None and token.kind != "close" and (token.kind, token.text) != ("word", "OR")
        ):
            if self._take("word", "AND") is None and (expression := self._one()) is not None:
                expressions.append(expression)
        return expressions[0] if len(expressions) == 1 else All(tuple(expressions))

    def _one(self) -> Expression | None:
        """Return the next expression; None for one without letters and digits."""
        if (minus := self._take("minus") or self._take("word", "NOT")) is not None:
            if self._peek() is None:
                raise self._wrong(f"after {minus.text} comes a word", minus.at)
            self._deeper(minus)
            inner = self._one()
            self._depth -= 1
            return None if inner is None else Not(inner)
        if (bracket := self._take("open")) is not None:
            self._deeper(bracket)
            expression = self._alternatives()
            if self._take("close") is None:
                raise self._wrong("this ( is never closed", bracket.at)
            self._depth -= 1
            return None if expression == All() else expression
        if (field := self._take("field")) is not None:
            return self._field(field)
        token = self._peek()
        if token is None or token.kind == "close":
            raise self._wrong("a word is missing here", len(self._text) if token is None else token.at)
        self._next += 1
        return self._words_of(token, DocumentPart.ANYWHERE)

    def _deeper(self, token: _Token) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"more than {DEEPEST} brackets or minus signs inside each other", token.at)

    def _field(self, field: _Token) -> Expression | None:  # noqa: PLR0911, PLR0912 # a line for each field
        name = field.text[:-1].lower()
        value = self._peek()
        if name in ("http", "https"):
            self._next += value is not None
            rest = "" if value is None else value.text
            return self._words_of(_Token("quote", rest, field.at), DocumentPart.URL)
        if value is None or value.kind not in ("word", "quote", "minus", "field"):
            raise self._wrong(f"after {field.text} comes a value", field.at)
        if name not in _FIELDS:
            message = (
                f"there is no field {field.text!r}; fields are {', '.join(_FIELDS)}; in quotes it is searched as words"
            )
            raise self._wrong(message, field.at)
        value = self._joined()
        if name in _STATES:
            self._note_state(field, name, value)
            return None
        if name in set(DocumentPart):
            return self._words_of(value, DocumentPart(name))
        text = value.text.strip()
        match name:
            case "site":
                return Site(self._site(text, value.at))
            case "type":
                if text.lower() not in KINDS and "/" not in text:
                    raise self._wrong(f"a type is {', '.join(sorted(KINDS))}, or a MIME type", value.at)
                return TypeCondition(text.lower())
            case "lang":
                code = text.lower().partition("-")[0]
                if not _LANGUAGE.fullmatch(code):
                    raise self._wrong("a language is a code of two or three letters, as de", value.at)
                return Language(code)
            case "role":
                return RoleCondition(self._role(text, value.at))
            case "collection":
                return CollectionCondition(text)
            case _:
                time = self._time(text, value.at)
                return Before(time) if name == "before" else After(time)

    def _note_state(self, field: _Token, name: str, value: _Token) -> None:
        """Note the states that a field says: they are of the whole search, and no part of its expression."""
        if self._depth:
            raise self._misplaced(field)
        if self._state is not None:
            raise self._wrong("during: and present: say which states are searched; give one of them, once", field.at)
        self._state, text = field, value.text.strip()
        try:
            if name == "during":
                self._during = _span(text)
            elif text.lower() == _NOW:
                self._is_present = True
            elif _TO in text:
                raise ValueError("a state is that of one time, as 2024, 2024-03-31 or now")
            else:
                self._at = _unit(text)[1] - 1
        except ValueError as error:
            raise self._wrong(str(error), value.at) from None

    def _misplaced(self, field: _Token) -> BadCondition:
        name = field.text.lower()
        return self._wrong(f"{name} is about the whole search: it stands in no brackets, with no OR or minus", field.at)

    def _joined(self) -> _Token:
        """Return the value of a field: tokens without space between them, since a URL has minus signs and colons."""
        first = self._tokens[self._next]
        self._next += 1
        if first.kind == "quote":
            return first
        end, text = first.at + len(first.text), first.text
        while (token := self._peek()) is not None and token.at == end and token.kind in ("word", "minus", "field"):
            text, end = text + token.text, end + len(token.text)
            self._next += 1
        return _Token("word", text, first.at)

    def _words_of(self, token: _Token, part: DocumentPart) -> Words | None:
        text = token.text
        beginning = token.kind == "word" and text.endswith("*")
        terms = tuple(terms_of(text).split())
        if not terms:
            if beginning:
                raise self._wrong("a * stands at the end of the beginning of a word", token.at)
            return None
        self._words += len(terms)
        self._beginnings += beginning
        if self._words > MOST_WORDS:
            raise self._wrong(f"more than {MOST_WORDS} words", token.at)
        if self._beginnings > MOST_BEGINNINGS:
            raise self._wrong(f"more than {MOST_BEGINNINGS} words with a *", token.at)
        is_natural = token.kind == "word" and not beginning and len(terms) == 1
        return Words(terms, part, beginning, text if is_natural else "")

    def _site(self, text: str, at: int) -> str:
        place = text.removeprefix("http://").removeprefix("https://").rstrip("*").rstrip("/").lstrip(".")
        host, slash, rest = place.partition("/")
        if not host or " " in host:
            raise self._wrong("a site is a host, as example.org, or a folder of it, as example.org/news", at)
        return f"{host.lower()}{slash}{rest}"

    def _role(self, text: str, at: int) -> AskedRole:
        try:
            return role_of(text)
        except BadCondition as error:
            raise self._wrong(str(error), at) from None

    def _time(self, text: str, at: int) -> datetime:
        try:
            return _begin_of(text)[0]
        except ValueError:
            raise self._wrong("a time is a year, a month or a day, as 2024, 2024-01 or 2024-01-31", at) from None

    def _wrong(self, message: str, at: int) -> BadCondition:
        begin = max(0, at - _SHOWN)
        shown = "".join(char if char.isprintable() else " " for char in self._text[begin : at + _SHOWN])
        return BadCondition(f"{message}\n  {shown}\n  {' ' * (at - begin)}^")
