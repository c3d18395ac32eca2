"""A search of all versions, and of a span of time, beside that of the present: whole answers, of the same words.

An archive of made-up versions: their texts are put straight into the index, their rows and what crawls met into
webarc.db. Each domain has 20 snapshots, a half-year apart; in each, one document in a hundred is new, and one page of
each domain changes every time. Some crawls are incomplete, and some run over New Year's midnight.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.fulltext import Words, percentile
from tests.support import archives
from tests.support.indexing import BODY, DIGEST, HEAD
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.archive.index.database import Database, DocumentChange, StoredVersion
from webarcfs.archive.model.metadata import CommitMessage, CommitTag, MetaData, from_epoch
from webarcfs.archive.model.url_lists import HTTP, Met
from webarcfs.content.extractors.extracted import Extracted
from webarcfs.search import generations
from webarcfs.search.index import IndexWriter
from webarcfs.search.searching import Searcher, SearchQuestion
from webarcfs.search.words import CURRENT, IndexedDocument

_DOMAINS, _SNAPSHOTS, _ASKED = 40, 20, 60
_HALF_A_YEAR = 15_778_800
_START = 1_451_600_000
_YEARS = range(2016, 2026)


def search_versions(rows: int) -> None:
    """Fill an archive with so many versions, and ask it."""
    words = Words()
    with tempfile.TemporaryDirectory() as folder:
        archive = archives.make_archive(Path(folder))
        versions = _filled(archive, words, rows)
        _ask(archive, words, versions)


def _seq(snapshot: int, domain: int) -> int:
    return _START + snapshot * _HALF_A_YEAR + domain * 3_600


def _filled(archive: Archive, words: Words, rows: int) -> int:
    of_domain = rows * 100 // (100 + 2 * _SNAPSHOTS) // _DOMAINS
    folder, number = generations.begun(archive), 0
    with Database(archive.database) as opened, IndexWriter(folder) as writer:
        for domain in range(_DOMAINS):
            name = f"d{domain}.example.org"
            since: dict[str, tuple[int, int, str]] = {}
            for snapshot in range(_SNAPSHOTS):
                seq = _seq(snapshot, domain)
                number += 1
                new = [
                    page for page in range(of_domain) if not snapshot or not page or words.chance.random() < 0.01
                ]  # fmt: skip
                tag, captured = (
                    CommitTag(from_epoch(seq), name),
                    {page: seq + page % 1_000 for page in range(of_domain)},
                )
                carried = set(range(0, of_domain, 50)) if (domain + snapshot) % 10 == 0 else set[int]()
                met = [
                    (f"/{name}/p{page}.html", Met(captured[page], HTTP))
                    for page in sorted({*range(of_domain)} - {*new} - carried)
                ]  # fmt: skip
                changes = [_change(name, page, tag, captured[page]) for page in new]
                trailers = (("Publication", "p"), ("Complete", "no" if carried else "yes"), ("Sequence", str(number)))
                opened.record(CommitMessage(tag, trailers), changes, met=met)
                for page in new:
                    path = f"/{name}/p{page}.html"
                    if path in since:
                        writer.put(_document(name, path, *since[path], until=seq))
                    since[path] = seq, captured[page], words.text(60)
            for path, version in since.items():
                writer.put(_document(name, path, *version, until=CURRENT))
            seqs = [_seq(snapshot, domain) for snapshot in range(_SNAPSHOTS)]
            facts = database.capture_facts(archive.database, name, seqs)
            for seq in seqs:
                writer.mark_snapshot(str(CommitTag(from_epoch(seq), name)), facts[seq])
        writer.commit()
    generations.use(archive, folder)
    return sum(database.count_versions(archive.database).values())


def _change(domain: str, page: int, tag: CommitTag, captured: int) -> DocumentChange:
    path = f"/{domain}/p{page}.html"
    time = from_epoch(captured)
    meta = MetaData(f"http:/{path}", "text/html", "T", path, domain, tag.crawl_time, time, tag, time)
    return DocumentChange(path, StoredVersion(meta, BODY, HEAD, 1, DIGEST))


def _document(domain: str, path: str, since: int, captured: int, body: str, *, until: int) -> IndexedDocument:
    return IndexedDocument(
        url=f"http:/{path}", path=path, domain=domain, publication="p", since=since, until=until, captured=captured,
        mime_type="text/html", title=body[:30], status=200, size=1, blob=BODY,
        extracted=Extracted(body=body, language="en"),
    )  # fmt: skip


def _questions(words: Words) -> Iterator[tuple[str, Callable[[], str]]]:
    def one(least: int, most: int) -> str:
        return words.chance.choice(words.words[least:most])

    yield "a rare word", lambda: one(5_000, 40_000)
    yield "a word", lambda: one(200, 2_000)
    yield "a frequent word", lambda: one(0, 20)
    yield "two words", lambda: f"{one(0, 300)} {one(0, 300)}"
    yield "a phrase", lambda: f'"{one(0, 30)} {one(0, 30)}"'
    yield "site: and a word", lambda: f"{one(0, 200)} site:d{words.chance.randrange(_DOMAINS)}.example.org"


def _ask(archive: Archive, words: Words, versions: int) -> None:
    searcher = Searcher(archive)
    print(f"\nsearch of {versions:,} versions of {_DOMAINS} domains, {_SNAPSHOTS} snapshots each; ms of a processor")
    print(f"  {'':20} present, all, in a year: median, 95th percentile of each; ratio of the latter   aim: 1.5")
    first = [_timed(lambda year=year: searcher.ask(SearchQuestion(words=f"during:{year}"))) for year in _YEARS]  # type: ignore[misc]
    every: tuple[list[float], list[float], list[float]] = ([], [], [])
    for kind, question in _questions(words):
        times: tuple[list[float], list[float], list[float]] = ([], [], [])
        for _ in range(_ASKED):
            asked, year = question(), words.chance.choice(_YEARS)
            for own, narrowed in zip(
                times,
                (SearchQuestion(words=asked, present=True), SearchQuestion(words=asked),
                 SearchQuestion(words=asked, during=str(year))),
                strict=True,
            ):  # fmt: skip
                own.append(_timed(lambda narrowed=narrowed: searcher.ask(narrowed)))  # type: ignore[misc]
        for whole, some in zip(every, times, strict=True):
            whole.extend(some)
        _tell(kind, times)
    _tell("all of them", every)
    print(f"  a year for the first time        {percentile(first, 0.5):9.1f} {max(first):9.1f}")
    facets = [_timed(lambda: searcher.facets(SearchQuestion(words=words.words[0]))) for _ in range(5)]
    print(f"  facets of the most frequent word {percentile(facets, 0.5):9.1f} {max(facets):9.1f}")


def _tell(kind: str, times: tuple[list[float], ...]) -> None:
    figures = "  ".join(f"{percentile(own, 0.5):8.2f} {percentile(own):8.2f}" for own in times)
    present = percentile(times[0])
    print(f"    {kind:18} {figures}   {percentile(times[1]) / present:5.2f} {percentile(times[2]) / present:5.2f}")


def _timed(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return (time.thread_time() - begun) * 1_000
