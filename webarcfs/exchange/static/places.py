"""Where a URL lies in the exported folder: its document's file, behind redirects where there are any.

It reads the trees of the snapshots when it is asked, and keeps what it found, within bounds: an archive may have more
documents than memory has room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from webarcfs.archive.document import data_xml
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import MetaData
from webarcfs.archive.model.redirects import LONGEST_CHAIN, Redirect, place_of
from webarcfs.content.mimetype import declared_type
from webarcfs.exchange.static import names
from webarcfs.exchange.static.file_types import FileType, file_type
from webarcfs.exchange.static.folders import Folders
from webarcfs.exchange.static.names import Marks
from webarcfs.warc.http_response import parse_head

#: Repositories that are open at a time; URLs whose places are kept.
_OPEN = 64
_KEPT = 1 << 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a URL leads: a file in the folder, and a fragment that a redirect brought along (with `#`, or empty)."""

    path: str
    fragment: str = ""


class Places:
    """The places of all URLs of a selection: domain → tree."""

    def __init__(self, trees: Mapping[str, str], open_: Callable[[str], Repository]) -> None:
        self._trees = trees
        self._open = lru_cache(maxsize=_OPEN)(open_)
        self._folders = Folders()
        #: The place of a canonical URL; None for one that leads to nothing in the folder.
        self.of = lru_cache(maxsize=_KEPT)(self._of)

    def path_of(self, domain: str, arc: str, kind: FileType) -> str:
        """Return the path of a document's file, by that of its ARC in the domain, which must be there."""
        segments = arc.split("/")
        return names.file_path(domain, segments, kind, self._walk(self._open(domain), self._trees[domain], segments)[1])

    def _walk(self, store: Repository, tree: str, segments: Sequence[str]) -> tuple[str | None, list[Marks]]:
        """Return the folder at the end of a path, and the marks of those on the way to it; None if there is none."""
        marks = []
        for segment in segments:
            folder = self._folders.read(store, tree)
            marks.append(folder.marks)
            found = folder.folder(segment)
            if found is None:
                return None, marks
            tree = found
        return tree, marks

    def _of(self, url: str) -> Place | None:
        fragment = ""
        seen = set()
        for _ in range(LONGEST_CHAIN + 1):
            domain, arc = arc_paths.split(arc_paths.arc_path(url))
            if url in seen or domain not in self._trees:
                return None
            seen.add(url)
            store = self._open(domain)
            redirect = self._redirect(store, self._trees[domain], url)
            if redirect is None or redirect.is_to_itself:
                path = self._document(store, domain, arc_paths.second_name(arc, url)) or self._document(
                    store, domain, arc
                )
                if path is None and not url.endswith("/") and "?" not in url:
                    # As servers do: the folder of that name.
                    path = self._document(store, domain, arc_paths.split(arc_paths.arc_path(f"{url}/"))[1])
                return None if path is None else Place(path, fragment)
            url, sign, rest = redirect.target.partition("#")
            fragment = sign + rest or fragment
        return None

    def _redirect(self, store: Repository, tree: str, url: str) -> Redirect | None:
        place = place_of(url)
        *folders, name = place.split("/")
        found, _ = self._walk(store, tree, folders)
        blob = None if found is None else self._folders.read(store, found).file(name)
        if blob is None:
            return None
        return next(
            (each for each in redirect_lists.lines(store, Entry(name, blob, False), place) if each.url == url), None
        )

    def _document(self, store: Repository, domain: str, arc: str) -> str | None:
        """Return the path of the file of a document; None if there is none, or an error."""
        segments = arc.split("/")
        found, marks = self._walk(store, self._trees[domain], segments)
        own = {} if found is None else {each.name: each.oid for each in store.entries(found) if not each.is_tree}
        document = own.get(arc_paths.DATA_XML)
        if document is None:
            return None
        try:
            meta = data_xml.metadata(store.read(document))
        except InvalidDocument:
            return None
        if meta.is_error_page:
            return None
        return names.file_path(domain, segments, kind_of(store, meta, arc, own.get(arc_paths.HEADERS, "")), marks)


def kind_of(store: Repository, meta: MetaData, arc: str, head: str) -> FileType:
    """Return what the file of a document is; `head` is the blob of its headers.http, empty without one."""
    name = arc.rpartition("/")[2].partition("?")[0]
    return file_type(meta.mime_type, name, lambda: declared_type(content_type_of(store, head)))


def content_type_of(store: Repository, head: str) -> str:
    """Return the Content-Type of an archived head, as sent; empty without one."""
    found = parse_head(store.read(head)) if head else None
    return "" if found is None else found.content_type
