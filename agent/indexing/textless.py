"""The documents of a job that have no text in the full-text index, or not all of it, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.content.extractors.extracted import SENTENCES, Fault
from webarcfs.search import generations
from webarcfs.search.indexed_document import began, faulty
from webarcfs.search.translation import Translator


@dataclass(frozen=True, slots=True)
class Textless:
    """A document without a text, or without all of it."""

    url: str
    mime_type: str
    size: int
    fault: Fault


def textless(archive: Archive, tags: Iterable[CommitTag]) -> Iterator[Textless]:
    """Yield what snapshots brought that cannot be searched by its words, by fault and URL.

    Raises NotFound for a snapshot that is not indexed yet.
    """
    reader = generations.opened(archive)
    make = Translator(reader.schema)
    known = reader.snapshots()
    for tag in tags:
        if str(tag) not in known:
            raise NotFound(f"{tag} is not indexed yet; the agent does it, or `webarc-agent index`")
        came = make.term("mark", began(tag.domain, int(tag.crawl_time.timestamp())))
        for fault in SENTENCES:
            query = make.all(came, make.term("mark", faulty(fault)))
            found = reader.documents(query, max(reader.count(query), 1)).plain()
            for each in sorted(found, key=lambda each: each.url):
                yield Textless(each.url, each.mime_type, each.size, fault)
