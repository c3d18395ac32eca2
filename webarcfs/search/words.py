"""What documents and questions share: text as words, kinds in a word, and a document of the full-text index. Pure.

A word is a run of letters, digits and the marks on them. Case, accents and forms of one letter make no difference
(Unicode's NFKD without marks, and case folding). Chinese, Japanese and Korean text, which has no spaces, becomes pairs
of neighbours, and its last character alone: so each run of it is found as a phrase of pairs.

A kind of documents is one word, for `type:` and facets.

A document of the index is a version of a document of the archive, with its text. A version is a row of webarc.db: the
bytes at a path from one snapshot until another. `Span` names the marks by which versions of certain snapshots are
found.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from webarcfs.access.access_rules import key_of
from webarcfs.content.extractors.extracted import Extracted
from webarcfs.content.text import SCRIPT_TYPES

# == kinds, pure ======================================================================================================


_KINDS = {
    "text/html": "html", "application/xhtml+xml": "html", "application/pdf": "pdf",
    "application/msword": "word", "application/rtf": "word", "text/rtf": "word",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.oasis.opendocument.text": "word",
    "application/vnd.ms-excel": "table", "text/csv": "table", "application/vnd.oasis.opendocument.spreadsheet": "table",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "table",
    "application/vnd.ms-powerpoint": "slides", "application/vnd.oasis.opendocument.presentation": "slides",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "slides",
    "text/css": "style", **dict.fromkeys(SCRIPT_TYPES, "script"), "message/rfc822": "mail",
    "application/xml": "xml", "text/xml": "xml", "application/rss+xml": "xml", "application/atom+xml": "xml",
    "image/svg+xml": "image", "application/json": "data", "text/json": "data",
}  # fmt: skip
_FAMILIES = {"image": "image", "audio": "audio", "video": "video", "text": "text", "font": "font"}
KINDS = frozenset({*_KINDS.values(), *_FAMILIES.values(), "other"})


def kind_of(mime_type: str) -> str:
    """Return the kind of a MIME type: html, pdf, image, text, …; `other` for one that is in no kind."""
    return _KINDS.get(mime_type) or _FAMILIES.get(mime_type.partition("/")[0], "other")


def extension_of(url: str) -> str:
    """Return the extension of a URL's file, in lower case; empty without one."""
    name = url.partition("?")[0].rpartition("/")[2]
    dot, end = name.rpartition(".")[1:]
    return end.lower() if dot and 0 < len(end) <= 10 else ""


# == words, pure ======================================================================================================


#: Characters of a word that count: the rest of a longer one is left out, of documents and questions.
LONGEST_WORD = 200
#: Latin, Greek and Cyrillic accents, and vowels of Hebrew and Arabic; marks of other scripts are letters, and stay.
_ACCENTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+"
)
#: Invisible: joiners, soft hyphens, marks of direction.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200c-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]+")
#: Between two parts of a Persian word is a space, or this non-joiner.
_PERSIAN = re.compile("(?<=[\u0600-\u06ff])\u200c")
_WITHOUT_SPACES = (
    "\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_CJK = re.compile(f"[{_WITHOUT_SPACES}]+")
_ASCII_WORDS = str.maketrans({number: " " for number in range(128) if not chr(number).isalnum()})


@dataclass(frozen=True, slots=True)
class TextWord:
    """A word of a text: its terms, as the index has them, and its place in the text."""

    terms: tuple[str, ...]
    begin: int
    end: int


def terms_of(text: str) -> str:
    """Return the terms of a text, in order, with spaces between: what the index is given."""
    if text.isascii():
        plain = text.translate(_ASCII_WORDS).lower()
        return plain if len(plain) <= LONGEST_WORD else " ".join(word[:LONGEST_WORD] for word in plain.split())
    plain = _folded(text)
    runs = _runs(plain)
    if _CJK.search(plain) is None:
        return " ".join([run[:LONGEST_WORD] for run in runs])
    return " ".join(term for run in runs for term in _terms(run))


def words_of(text: str) -> Iterator[TextWord]:
    """Yield the words of a text with their places, to mark them in it."""
    for match in _written().finditer(text):
        terms = terms_of(match[0]).split()
        if terms:
            yield TextWord(tuple(terms), match.start(), match.end())


def natural(text: str) -> str:
    """Return the words of a text in lower case with their accents, with spaces between: what stemmers need."""
    if text.isascii():
        return terms_of(text)
    plain = unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).lower()
    return " ".join(run[:LONGEST_WORD] for run in _runs(plain))


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", _INVISIBLE.sub("", _PERSIAN.sub(" ", text))).casefold()
    # Folding may bring accents back (of a capital İ), and only composed syllables are Korean ones.
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", plain)))


def _runs(text: str) -> list[str]:
    return _pattern().findall(text)


def _terms(run: str) -> Iterator[str]:
    """Yield the terms of a run of word characters."""
    end = 0
    for match in _CJK.finditer(run):
        if match.start() > end:
            yield run[end : match.start()][:LONGEST_WORD]
        chars = match[0]
        yield from (chars[at : at + 2] for at in range(len(chars)))
        end = match.end()
    if end < len(run):
        yield run[end:][:LONGEST_WORD]


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a run of word characters. Python's \\w has no marks, and the underscore."""
    return re.compile(f"(?:[^\\W_]|[{_marks()}])+")


@lru_cache(maxsize=1)
def _written() -> re.Pattern[str]:
    """Return the same for a text that is not folded yet: also what folding drops, and signs that become letters (№)."""
    signs = "".join(chr(code) for span in _SIGNS for code in span if _is_sign(chr(code)))
    return re.compile(f"(?:[^\\W_]|[{_marks()}{_UNSEEN}{signs}])+")


def _marks() -> str:
    marks = ["\u00ad"]
    first = None
    for number in range(0x300, 0x11A00):
        is_mark = unicodedata.category(chr(number))[0] == "M" or number in (0x200C, 0x200D)
        if is_mark and first is None:
            first = number
        elif not is_mark and first is not None:
            marks.append(f"{chr(first)}-{chr(number - 1)}")
            first = None
    return "".join(marks)


#: Where Unicode has signs that mean letters.
_SIGNS = (range(0x80, 0x3400), range(0xF900, 0x10000), range(0x1F100, 0x1F300))


def _is_sign(char: str) -> bool:
    """Return whether a character is no letter, and becomes letters or digits when it is folded."""
    return re.match(r"\w", char) is None and re.search(r"[^\W_]", unicodedata.normalize("NFKD", char)) is not None


# == indexed document, pure ===========================================================================================


#: `until` of versions that are current. Smaller than webarc.db's, so that columns of the index stay narrow.
CURRENT = 1 << 40
#: Most folders of a URL that `site:` finds.
_DEEPEST_SITE = 24
_SEPARATOR = "\t"
#: Of texts: deflate alone, since most are short.
_WITHOUT_HEAD = -15


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedDocument:
    """A version of a document: in the snapshots of its domain from `since` up to `until`, which no longer has it.

    Both are seconds since 1970. `path` is `/<domain>/…`, `publication` that whose crawl stored it, `blob` git's id of
    the body, `size` its bytes. `captured` is the time at which the server answered, in seconds. `is_resource`: only
    pages of other hosts needed it. `shown_in` is the snapshot whose crawl recorded what a browser showed of it, whose
    words are among those of the text; 0 without that. `is_later_part`: it was stored before `since`, and a snapshot in
    between has something else at its path; `from_bytes` leaves it out.
    """

    url: str
    path: str
    domain: str
    publication: str
    since: int
    until: int
    captured: int
    mime_type: str
    title: str
    status: int
    size: int
    blob: str
    is_resource: bool = False
    shown_in: int = 0
    is_later_part: bool = False
    extracted: Extracted = field(default_factory=Extracted)

    @property
    def key(self) -> str:
        """The name of this version in the index."""
        return key(self.path, self.since)

    @property
    def extension(self) -> str:
        """The extension of the URL's file, in lower case; empty without one."""
        return extension_of(self.url)

    def sites(self) -> Iterator[str]:
        """Yield the names for which `site:` finds it: its host, hosts above, and its folders."""
        host, _, rest = self.path[1:].partition("/")
        yield host
        labels = host.partition(":")[0].split(".")
        yield from (".".join(labels[at:]) for at in range(len(labels)))
        names = rest.split("/")[:-1][:_DEEPEST_SITE]
        yield from ("/".join([host, *names[: at + 1]]) for at in range(len(names)))

    def rule_key(self) -> str:
        """Return the key of the URL, as access rules have it."""
        return key_of(self.url)

    def about(self) -> bytes:
        """Return all but the text as bytes: short, since they are of each version."""
        text = self.extracted
        place = ["", ""] if _place(self.url) == (self.path, self.domain) else [self.path, self.domain]
        fields = [
            self.url, *place, self.publication, self.since, self.until, self.captured, self.mime_type, self.title,
            self.status, self.size, text.language, text.fault, len(text.headings), len(text.description),
            *([int(self.is_resource), self.shown_in] if self.shown_in else [1] if self.is_resource else []),
        ]  # fmt: skip
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" + bytes.fromhex(self.blob)

    def content(self) -> bytes:
        """Return the text as bytes; empty without one."""
        text = "".join((self.extracted.headings, self.extracted.description, self.extracted.body))
        return zlib.compress(text.encode(), wbits=_WITHOUT_HEAD) if text else b""


def from_bytes(about: bytes, content: bytes = b"") -> IndexedDocument:
    """Return the document of `about()` and `content()`; without a text if that is empty."""
    line, _, blob = about.partition(b"\n")
    (
        url, path, domain, publication, since, until, captured, mime_type, title,
        status, size, language, fault, headings, description, *more,
    ) = json.loads(line)  # fmt: skip
    if not path:
        path, domain = _place(url)
    text = zlib.decompress(content, wbits=_WITHOUT_HEAD).decode() if content else ""
    description += headings  # where each ends
    extracted = Extracted(
        body=text[description:], headings=text[:headings], description=text[headings:description],
        language=language, fault=fault, title=title,
    )  # fmt: skip
    return IndexedDocument(
        url=url, path=path, domain=domain, publication=publication, since=since, until=until, captured=captured,
        mime_type=mime_type, title=title, status=status, size=size, blob=blob.hex(), is_resource=bool(more and more[0]),
        shown_in=more[1] if len(more) > 1 else 0, extracted=extracted,
    )  # fmt: skip


def _place(url: str) -> tuple[str, str]:
    """Return path and domain of a document, as they are of most URLs."""
    rest = url.partition("://")[2]
    return f"/{rest}", rest.partition("/")[0]


def key(path: str, since: int) -> str:
    """Return the name of a version in the index."""
    return f"{path}{_SEPARATOR}{since}"


def place_of(path: str) -> int:
    """Return the number by which the versions at a path are counted as one: 63 bits of a digest."""
    return int.from_bytes(hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()) >> 1


def began(domain: str, seq: int) -> str:
    """Return the mark of versions that a snapshot was the first to contain."""
    return f"f{domain} {seq}"


def ended(domain: str, seq: int) -> str:
    """Return the mark of versions that a snapshot was the first to no longer contain."""
    return f"u{domain} {seq}"


def span(domain: str, since: int, until: int) -> str:
    """Return the mark of versions of one span."""
    return f"s{domain} {since} {until}"


def faulty(fault: str) -> str:
    """Return the mark of documents without a text, or not all of it, for a reason."""
    return f"x{fault}"


def shown(domain: str, seq: int) -> str:
    """Return the mark of versions with words that a browser showed when a snapshot was crawled."""
    return f"b{domain} {seq}"


#: The mark of error pages, of what only pages of other hosts needed, of what has words that a browser showed, and of a
#: snapshot whose documents are all there.
ERROR_PAGE, RESOURCE, SHOWN, SNAPSHOT = "error", "resource", "shown", "snapshot"
#: The mark of versions that an import from before cut in two: their first part has the capture that stored them.
LATER_PART = "later part"
#: The mark of documents without a text and a title. Words are looked for in their addresses as well.
WORDLESS = "wordless"


def marks(document: IndexedDocument) -> Iterator[str]:
    """Yield the marks of a document."""
    text = document.extracted
    yield began(document.domain, document.since)
    if document.until < CURRENT:
        yield ended(document.domain, document.until)
    yield span(document.domain, document.since, document.until)
    if document.status >= 400:  # HTTP's
        yield ERROR_PAGE
    if document.is_later_part:
        yield LATER_PART
    if document.is_resource:
        yield RESOURCE
    if document.shown_in:
        yield SHOWN
        yield shown(document.domain, document.shown_in)
    if not any((document.title, text.title, text.headings, text.description, text.body)):
        yield WORDLESS
    if text.fault:
        yield faulty(text.fault)
