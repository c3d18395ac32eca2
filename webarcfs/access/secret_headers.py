"""Takes from readers what servers answered to a crawl with secrets: cookies and authorization in headers.http.

A crawl's commit says whether it showed secrets (trailer `Secrets`). A headers.http is of the crawl that its data.xml
names; without one that can be read it is blanked, since nobody knows its crawl. Staff see it as it was sent.
"""

from __future__ import annotations

from webarcfs.archive.document.data_xml import metadata
from webarcfs.archive.git.repository import CRAWLS, Repository, TreeEntry
from webarcfs.archive.history import sequence
from webarcfs.archive.model.arc_paths import HEADERS
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import CommitTag, compact_time, from_epoch, parse_compact_time
from webarcfs.archive.model.url_lists import REDIRECTS
from webarcfs.archive.system.cache import Cache
from webarcfs.warc.http_response import blank_response

#: Commit of a ref of `refs/crawls/` → whether its crawl showed secrets, which never changes.
_SHOWED: Cache[str, bool] = Cache(65_536)


def _showed_secrets(store: Repository, target: str) -> bool:
    def read() -> bool:
        crawl = sequence.crawl_commit(store, target)
        return crawl is not None and crawl.message.showed_secrets

    return _SHOWED.get(target, read)


def of_crawl(store: Repository, seq: int) -> bool:
    """Return whether the crawl of a time (seconds since 1970) showed secrets; also if nobody knows that crawl."""
    target = store.ref(CRAWLS + compact_time(from_epoch(seq)))
    return target is None or _showed_secrets(store, target)


def plain_crawls(store: Repository, domain: str) -> frozenset[CommitTag] | None:
    """Return the crawls of a domain that showed no secrets; None if none showed any."""
    shown = {name: _showed_secrets(store, target) for name, target in store.refs(CRAWLS).items()}
    if not any(shown.values()):
        return None
    return frozenset(CommitTag(parse_compact_time(name), domain) for name, has_shown in shown.items() if not has_shown)


def before(store: Repository, tag: CommitTag) -> bool:
    """Return whether a crawl before a snapshot showed secrets: what that stored may be in the snapshot."""
    refs = store.refs(CRAWLS)
    return any(parse_compact_time(name) < tag.crawl_time and _showed_secrets(store, refs[name]) for name in refs)


def are_in(store: Repository, snapshot: CommitTag, stored: CommitTag) -> bool:
    """Return whether headers in a snapshot may have secrets, which the crawl `stored` stored.

    Of a crawl that is not here, it is asked whether the snapshot or one before it showed some.
    """
    target = store.ref(stored.ref)
    if target is not None:
        return _showed_secrets(store, target)
    own = store.ref(snapshot.ref)
    return (own is not None and _showed_secrets(store, own)) or before(store, snapshot)


class WithoutSecrets:
    """Blanks headers.http in the trees of a store; remembers folders, so that equal ones cost nothing."""

    def __init__(self, store: Repository, plain: frozenset[CommitTag]) -> None:
        """`plain` are the crawls whose headers stay."""
        self._store = store
        self._plain = plain
        self._known: dict[str, str] = {}

    def of(self, tree: str) -> str:
        """Return a domain's tree with blanked headers."""
        if tree not in self._known:
            self._known[tree] = self._with_blanked_headers(tree)
        return self._known[tree]

    def _with_blanked_headers(self, tree: str) -> str:
        entries = self._store.entries(tree)
        kept = []
        for entry in entries:
            if entry.is_tree and entry.name != REDIRECTS:
                kept.append(TreeEntry(entry.name, self.of(entry.oid), True))
            elif entry.name == HEADERS and not entry.is_tree and not self._is_plain(entries):
                blanked = self._blanked(entry.oid)
                kept += [TreeEntry(entry.name, blanked, False)] if blanked is not None else []
            else:
                kept.append(entry)
        return tree if kept == entries else self._store.write_tree(kept)

    def _is_plain(self, entries: list[TreeEntry]) -> bool:
        documents = [entry for entry in entries if entry.is_document]
        try:
            tags = [metadata(self._store.read(entry.oid)).commit_tag for entry in documents]
        except (InvalidDocument, Damaged):
            return False  # what cannot be read cannot be judged
        return bool(tags) and all(tag in self._plain for tag in tags)

    def _blanked(self, blob: str) -> str | None:
        """Return the blob of a blanked headers.http; None if it cannot be read."""
        try:
            headers = self._store.read(blob)
        except Damaged:
            return None
        blanked = blank_response(headers)
        return blob if blanked is headers else self._store.write_blob(blanked)
