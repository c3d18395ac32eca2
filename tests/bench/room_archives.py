"""What the room is measured on: real pages of about 50 kB, domains with many snapshots, records, URLs in webarc.db."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.support.archives import FIRST, arc, metadata, store_of
from tests.support.indexing import change
from webarcfs.archive.catalogue.catalogue import Catalogue, opened
from webarcfs.archive.catalogue.record import CrawlPart, Event, Record, RecordState, Value
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, RefUpdate
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.metadata import COMMITTER, CommitMessage, CommitTag, CrawlMessage, compact_time, format_time
from webarcfs.archive.repair import repacking

#: Folders of real pages (python3.11-doc, postgresql-doc-15, debian-handbook), and the sizes of those that are taken.
_SOURCES = tuple(map(Path, ("/usr/share/doc/python3.11/html", "/usr/share/doc/postgresql-doc-15/html",
                            "/usr/share/doc/debian-handbook/html/en-US")))  # fmt: skip
_SIZES = range(40_000, 60_001)
_END = re.compile(rb"</html>\s*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one site: path → body; each body is there once."""

    domain: str
    bodies: dict[str, bytes]

    def urls(self) -> list[str]:
        """Their URLs."""
        return [f"http://{self.domain}/{path}" for path in self.bodies]

    def write_warc(self, file: Path, when: datetime) -> None:
        """Write them as compressed WARC, as if one crawl at that time had fetched them (in UTC)."""
        with file.open("wb") as out:
            writer = WARCWriter(out, gzip=True)
            for path, body in self.bodies.items():
                head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
                record = writer.create_warc_record(
                    f"http://{self.domain}/{path}", "response", payload=BytesIO(body), length=len(body),
                    http_headers=head, warc_headers_dict={"WARC-Date": f"{when:%Y-%m-%dT%H:%M:%SZ}"},
                )  # fmt: skip
                writer.write_record(record)


def pages(domain: str, count: int) -> Pages:
    """Real pages, as often as that many need, each copy below a folder of its own and with a byte of its own."""
    found = [(folder, each) for folder in _SOURCES for each in sorted(folder.rglob("*.html"))]
    whole = [(folder, each) for folder, each in found if each.stat().st_size in _SIZES and not each.is_symlink()]
    sources = [(f"{at}/{each.relative_to(folder)}", each.read_bytes())
               for at, (folder, each) in enumerate(_interleaved(whole))]  # fmt: skip
    sources = [(name, body) for name, body in sources if _END.search(body)]
    bodies = {}
    for number in range(count):
        name, body = sources[number % len(sources)]
        copy = number // len(sources)
        bodies[f"c{copy}/{name}"] = _END.sub(b"<!-- copy %d --></html>\n" % copy, body)
    return Pages(domain, bodies)


def _interleaved(found: Sequence[tuple[Path, Path]]) -> list[tuple[Path, Path]]:
    """Return pages of all folders mixed, so that each part of the list has some of each."""
    return sorted(found, key=lambda each: hash_of(each[1]))


def hash_of(path: Path) -> int:
    """A number of a path that is the same in each run."""
    return int.from_bytes(path.name.encode()[:40], "big") * 2_654_435_761 % (1 << 32)


def many_snapshots(archive: Archive, domain: str, count: int, publication: str) -> list[CommitTag]:
    """Publish so many crawls of a small domain, an hour apart: `/` and `/page.html` change in each. With records."""
    store = store_of(archive, domain)
    tree, head = store.write_tree([]), None
    tags, updates, before = [], [], _published(archive)
    for number in range(count):
        tag = CommitTag(FIRST - timedelta(hours=count - number), domain)
        changes: dict[str, str | None] = {}
        for path in ("page.html", "second.html") if number == 0 else ("page.html",):
            body = f"<html><title>{number}</title><p>Version {number} <a href='second.html'>on</a></html>".encode()
            changes |= arc(store, metadata(domain, path, tag), path, body)
        tree = store.edit(tree, changes)
        message = CrawlMessage(tag, publication, True, before + number + 1, job=job_of(tag, publication))
        head = store.write_commit(
            tree, [head] if head else [], str(message), COMMITTER, int(tag.crawl_time.timestamp())
        )
        updates.append(RefUpdate(tag.ref, head, None))
        tags.append(tag)
    store.update_refs([*updates, RefUpdate(MAIN, head, None)])
    repacking.repack(store.path)
    repacking.pack_refs(store.path)
    feed = Feed(archive.changes)
    feed.rewrite([*map(CommitTag.parse, list(feed.lines())), *tags])
    save_records(archive, tags, publication)
    os.sync()
    return tags


def _published(archive: Archive) -> int:
    return sum(1 for _ in Feed(archive.changes).lines())


def job_of(tag: CommitTag, publication: str) -> str:
    """The id of a capture."""
    return f"{compact_time(tag.crawl_time)}-{publication}"


def save_records(archive: Archive, tags: Sequence[CommitTag], publication: str) -> None:
    """Write a released record of each snapshot."""
    for start in range(0, len(tags), 1_000):
        found = [_record(each, publication) for each in tags[start : start + 1_000]]
        Catalogue(archive).save(found, "bench", "many")
    with opened(archive):
        pass  # the tables of the catalogue are in step, as the agent leaves them


def _record(tag: CommitTag, publication: str) -> Record:
    """A record with as much in it as one that was counted, indexed and released has."""
    name, time = job_of(tag, publication), tag.crawl_time
    events = tuple(
        Event(each, time, "bench", state=each)
        for each in (RecordState.COUNTED, RecordState.INDEXED, RecordState.RELEASED)
    )
    record = Record(
        id=name, number=0, publication=publication, state=RecordState.RELEASED, complete=True,
        title=Value(f"Internet: {tag.domain}"), parts=(CrawlPart(tag, True),), events=events,
    )  # fmt: skip
    said = dict.fromkeys((14, 15, 17, 18, 24, 29, 37, 38, 39, 40, 41, 42, 44, 46, 50, 51, 55, 58, 67, 68), "17")
    said |= dict.fromkeys((31, 34, 35, 53, 60, 65), format_time(time))
    said |= dict.fromkeys((8, 9, 10, 11, 26, 27, 32, 33, 36, 48, 49, 54, 56, 57, 61, 69, 70), "some words of a system")
    said |= {1: name, 2: "5100", 3: "office", 4: "Internet", 7: format_time(time), 12: tag.domain, 22: "10000"}
    said |= {23: "17", 19: "wget --input-file=urls --warc-file=part " * 8, 25: "html 12, css 1, png 4"}
    return record.with_values(said, "bench", time)


def index_urls(archive: Archive, tag: CommitTag, count: int) -> None:
    """Record so many URLs of a snapshot, the newest one, in webarc.db; git has none of them."""
    message = CommitMessage(tag, (("Publication", "urls"), ("Complete", "yes"), ("Sequence", str(_published(archive)))))

    def changes() -> Iterator[object]:
        for number in range(count):
            meta = metadata(tag.domain, f"section-{number // 1000:04}/page-{number:07}.html", tag)
            yield change(meta.path, meta)

    with Database(archive.database) as database:
        database.record(message, changes())  # type: ignore[arg-type]
