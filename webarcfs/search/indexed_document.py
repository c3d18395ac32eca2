"""A document of the full-text index: a version of a document of the archive, with its text. Pure.

A version is a row of webarc.db: the bytes at a path from one snapshot until another. `Span` names the marks by which
versions of certain snapshots are found.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from webarcfs.content.extractors.extracted import Extracted
from webarcfs.gate.access_rules import key_of

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
    the body, `size` its bytes. `captured` is the time at which the server answered, in seconds.
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
    extracted: Extracted = field(default_factory=Extracted)

    @property
    def key(self) -> str:
        """The name of this version in the index."""
        return key(self.path, self.since)

    @property
    def extension(self) -> str:
        """The extension of the URL's file, in lower case; empty without one."""
        name = self.url.partition("?")[0].rpartition("/")[2]
        dot, end = name.rpartition(".")[1:]
        return end.lower() if dot and 0 < len(end) <= 10 else ""

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
        said = [
            self.url, *place, self.publication, self.since, self.until, self.captured, self.mime_type, self.title,
            self.status, self.size, text.language, text.fault, len(text.headings), len(text.description),
        ]  # fmt: skip
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" + bytes.fromhex(self.blob)

    def content(self) -> bytes:
        """Return the text as bytes; empty without one."""
        text = "".join((self.extracted.headings, self.extracted.description, self.extracted.body))
        return zlib.compress(text.encode(), wbits=_WITHOUT_HEAD) if text else b""


def from_bytes(about: bytes, content: bytes = b"") -> IndexedDocument:
    """Return the document of `about()` and `content()`; without a text if that is empty."""
    line, _, blob = about.partition(b"\n")
    (
        url, path, domain, publication, since, until, captured, mime_type, title,
        status, size, language, fault, headings, description,
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
        mime_type=mime_type, title=title, status=status, size=size, blob=blob.hex(), extracted=extracted,
    )  # fmt: skip


def _place(url: str) -> tuple[str, str]:
    """Return path and domain of a document, as they are of most URLs."""
    rest = url.partition("://")[2]
    return f"/{rest}", rest.partition("/")[0]


def key(path: str, since: int) -> str:
    """Return the name of a version in the index."""
    return f"{path}{_SEPARATOR}{since}"


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


#: The mark of error pages, and of a snapshot whose documents are all there.
ERROR_PAGE, SNAPSHOT = "error", "snapshot"


def marks(document: IndexedDocument) -> Iterator[str]:
    """Yield the marks of a document."""
    yield began(document.domain, document.since)
    if document.until < CURRENT:
        yield ended(document.domain, document.until)
    yield span(document.domain, document.since, document.until)
    if document.status >= 400:  # HTTP's
        yield ERROR_PAGE
    if document.extracted.fault:
        yield faulty(document.extracted.fault)
