"""Small archives for tests, published the way the real publish stage does it: objects first, then the refs and the feed
under the domain's exclusive lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from webarcfs.archive.additions.commit_additions import fold_in
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import MAIN, RefUpdate, Repository
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.metadata import CET, COMMITTER, CommitTag, CrawlMessage, MetaData
from webarcfs.archive.system.locks import Turnstile

#: Times of the first crawl and of what it finds.
FIRST = datetime(2026, 11, 21, 3, 0, 0, tzinfo=CET)
CREATED = datetime(2026, 10, 1, 12, 0, 0, tzinfo=CET)
DOMAIN = "www.example.org"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


_TYPES = {
    "html": "text/html", "xhtml": "application/xhtml+xml", "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "odt": "application/vnd.oasis.opendocument.text",
}  # fmt: skip


def make_archive(folder: Path) -> Archive:
    """A new, empty archive in `folder`/archive."""
    return directory.create(folder / "archive")


def final_at_once(archive: Archive, more: str = "") -> Archive:
    """The archive, with mounts in which a closed file is final; `more` are lines of `[mount]`."""
    archive.settings.write_text(f"[mount]\nsettle = 0\n{more}", "utf-8")
    return archive


def metadata(domain: str, path: str, tag: CommitTag, created: datetime = CREATED) -> MetaData:
    """Metadata of the ARC at `path` inside the domain."""
    mime = _TYPES.get(path.rpartition(".")[2], "application/octet-stream")
    return MetaData(
        f"http://{domain}/{path}", mime, f"Title of {path}", f"/{domain}/{path}", domain, tag.crawl_time, created, tag
    )


def publish(
    archive: Archive,
    domain: str = DOMAIN,
    pages: Mapping[str, bytes | None] | None = None,
    crawl_time: datetime | None = None,
    *,
    created: datetime = CREATED,
    extra: Mapping[str, bytes] | None = None,
    to_feed: bool = True,
    beside_mounts: bool = False,
) -> CommitTag:
    """Publish a crawl: ARC path inside the domain → body, None to remove the ARC; returns its commitTag.

    `extra` are further files by path, as if users had added them. Without `crawl_time` it is a second after the last.
    `beside_mounts`: as the agent does it, additions that wait are committed right before.
    """
    store = store_of(archive, domain)
    head = store.head()
    last = head.message.tag.crawl_time if head else FIRST - timedelta(seconds=1)
    tag = CommitTag(crawl_time or last + timedelta(seconds=1), domain)

    def state() -> str:
        now = store.head()
        base = now.tree if now else store.write_tree([])
        changes: dict[str, str | None] = {}
        for path, body in (pages or {}).items():
            changes |= dict.fromkeys(own_files(store, base, path))
            if body is not None:
                changes |= arc(store, metadata(domain, path, tag, created), path, body)
        changes |= {path: store.write_blob(body) for path, body in (extra or {}).items()}
        return store.edit(base, changes)

    tree = state()
    number = sum(1 for _ in Feed(archive.changes).lines()) + 1
    message = str(CrawlMessage(tag, "test", True, number))
    with Turnstile(archive.lock(domain)).exclusive():
        if beside_mounts:
            fold_in(archive, store, domain, following=tree)
            tree = state()
        commit(store, tree, message, tag, new_tag=True)
        if to_feed:
            Feed(archive.changes).append(tag)
    return tag


def add(archive: Archive, path: str, body: bytes, domain: str = DOMAIN) -> None:
    """Commit an addition under the domain's current commitTag, as another mount would; the feed gets no line."""
    store = store_of(archive, domain)
    with Turnstile(archive.lock(domain)).exclusive():
        head = store.head()
        assert head is not None
        tree = store.edit(head.tree, {path: store.write_blob(body)})
        commit(store, tree, f"{head.message.tag}\n\nAdded: {path}\n", head.message.tag, new_tag=False)


def store_of(archive: Archive, domain: str = DOMAIN) -> Repository:
    """The domain's repository, made if need be."""
    path = archive.repository(domain)
    return Repository(path) if path.is_dir() else Repository.create(path)


def commit(store: Repository, tree: str, message: str, tag: CommitTag, *, new_tag: bool) -> None:
    """Commit a tree as the newest state and as that of a commitTag."""
    head = store.head()
    old = head.oid if head else None
    time = int(tag.crawl_time.timestamp())
    oid = store.write_commit(tree, [old] if old else [], message, COMMITTER, time)
    store.update_refs([RefUpdate(MAIN, oid, old), RefUpdate(tag.ref, oid, None if new_tag else old)])


def arc(store: Repository, meta: MetaData, path: str, body: bytes) -> dict[str, str | None]:
    """Store the files of an ARC; return path → blob."""
    files = {arc_paths.data_name(meta.url): body, arc_paths.DATA_XML: data_xml.describe(meta), arc_paths.HEADERS: HEAD}
    return {f"{path}/{name}": store.write_blob(content) for name, content in files.items()}


def own_files(store: Repository, tree: str, path: str) -> Iterator[str]:
    """The files of an ARC and its additions, without those of ARCs inside it."""
    found = store.find(tree, path)
    for entry in store.entries(found.oid) if found is not None and found.is_tree else []:
        inner = f"{path}/{entry.name}"
        if not entry.is_tree:
            yield inner
        elif store.find(entry.oid, arc_paths.DATA_XML) is None:
            yield from own_files(store, tree, inner)


def publish_many(archive: Archive, pages: Iterable[tuple[str, bytes]], domain: str = DOMAIN) -> CommitTag:
    """The first crawl of a domain with many ARCs, in one pack as the publish stage writes it."""
    store, tag = store_of(archive, domain), CommitTag(FIRST, domain)
    with store.importer(None) as importer:
        for path, body in pages:
            meta = metadata(domain, path, tag)
            files = {
                arc_paths.data_name(meta.url): body,
                arc_paths.DATA_XML: data_xml.describe(meta),
                arc_paths.HEADERS: HEAD,
            }
            for name, content in files.items():
                importer.put(f"{path}/{name}", content)
        tree = importer.finish()
    with Turnstile(archive.lock(domain)).exclusive():
        commit(store, tree, str(CrawlMessage(tag, "test", True, 1)), tag, new_tag=True)
        Feed(archive.changes).append(tag)
    return tag


def rows_of(archive: Archive) -> list[dict[str, str]]:
    """Every row of the view `metadata` of its database, in order."""
    with Database(archive.database) as database:
        return list(database.dump())
