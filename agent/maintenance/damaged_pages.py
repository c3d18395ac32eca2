"""Says which pages need objects of a repository: for people, who know URLs and snapshots, and no ids of git.

It compares each snapshot with the one before it, so a part is named once, with the first snapshot that has it. What
cannot be read is passed over: a folder that is damaged is named, and nothing in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from shlex import quote

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.index.database import version_at
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.errors import InvalidDocument, WebarcError
from webarcfs.archive.model.metadata import CommitTag, parse_compact_time
from webarcfs.archive.model.url_lists import REDIRECTS

#: Most lines about one repository.
_MOST_LINES = 20
#: Most objects of no page that a line names.
_MOST_IDS = 3
#: Most parts of pages that are looked for in a repository.
_MOST_PARTS = 10_000
_WORDS = {DATA_XML: "its description", HEADERS: "its headers"}


@dataclass(frozen=True, slots=True, order=True)
class ArchivedPart:
    """A part of a page, as a snapshot has it: `part` is the name of a file, empty for the page's folder.

    `url` is the path in the archive where the URL cannot be read, and empty where the part is of no page.
    """

    snapshot: str
    url: str
    part: str
    oid: str

    def __str__(self) -> str:
        page = f"{self.url} of the snapshot {self.snapshot}" if self.url else f"the snapshot {self.snapshot}"
        if not self.part:
            return f"{page}, as a whole"
        return f"{page}, {_WORDS.get(self.part) or ('its content' if is_data_file(self.part) else self.part)}"


def find_parts(archive: Archive, domain: str, store: Repository, oids: Collection[str]) -> list[ArchivedPart]:
    """Return the parts of pages that these objects are. Raises Damaged where the refs cannot be read."""
    return sorted(islice(_parts(archive, domain, store, frozenset(oids)), _MOST_PARTS)) if oids else []


def damage_lines(archive: Archive, domain: str, store: Repository, oids: Collection[str]) -> Iterator[str]:
    """Yield a line for each part of a page that cannot be read, and for the objects that are of none."""
    try:
        parts = find_parts(archive, domain, store, oids)
    except WebarcError:
        parts = []
    for part in parts[:_MOST_LINES]:
        yield f"{part}: it cannot be read ({part.oid})"
    if len(parts) > _MOST_LINES:
        yield f"and {len(parts) - _MOST_LINES} more parts of pages cannot be read"
    others = sorted(frozenset(oids) - {part.oid for part in parts})
    if others:
        more = f" and {len(others) - _MOST_IDS} more" if len(others) > _MOST_IDS else ""
        yield f"the history needs {', '.join(others[:_MOST_IDS])}{more}, which cannot be read"


def advice(archive: Archive) -> str:
    """Return the command that brings damaged pages back."""
    return f"`webarc-agent restore --damaged DIR {quote(str(archive.root))}` brings it back from the backup in DIR"


def _parts(archive: Archive, domain: str, store: Repository, oids: frozenset[str]) -> Iterator[ArchivedPart]:
    before: str | None = None
    for time, target in sorted(store.refs(CRAWLS).items()):
        tag = CommitTag(parse_compact_time(time), domain)
        try:
            tree = store.commit(target).tree
        except WebarcError:
            yield ArchivedPart(str(tag), "", "", target)
            continue
        for path, oid, is_folder in _changed(store, before, tree, oids):
            folder, name = (path, "") if is_folder else _split(path)
            url = "" if folder.startswith(REDIRECTS) else _url_of(archive, store, tree, tag, folder)
            yield ArchivedPart(str(tag), url, name if url or not name else "its redirects", oid)
        before = tree


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def _changed(
    store: Repository, before: str | None, after: str, oids: frozenset[str]
) -> Iterator[tuple[str, str, bool]]:
    """Yield path and id of each of these objects that a tree has and the one before it has not; whether it is a folder.

    A folder that can be read is named only where nothing in it is.
    """
    stack: list[tuple[str, str | None, str]] = [("", before, after)]
    while stack:
        prefix, old, new = stack.pop()
        known: dict[str, str] = {}
        with suppress(WebarcError):
            known = {entry.name: entry.oid for entry in store.each(old)} if old else {}
        try:
            entries = list(store.each(new))
        except WebarcError:
            yield prefix.rstrip("/"), new, True
            continue
        has_own = False
        for entry in entries:
            if known.get(entry.name) == entry.oid:
                continue
            path = f"{prefix}{entry.name}"
            if entry.is_tree:
                stack.append((f"{path}/", known.get(entry.name), entry.oid))
            elif entry.oid in oids:
                yield path, entry.oid, False
            has_own = has_own or entry.oid in oids
        if new in oids and not has_own:
            yield prefix.rstrip("/"), new, True


def _url_of(archive: Archive, store: Repository, tree: str, tag: CommitTag, folder: str) -> str:
    """Return the URL of the page in a folder, by its data.xml, else by webarc.db; else the path."""
    with suppress(WebarcError):
        entry = store.find(tree, f"{folder}/{DATA_XML}" if folder else DATA_XML)
        if entry is not None:
            with suppress(InvalidDocument):
                return data_xml.metadata(store.read(entry.oid)).url
    path = f"/{tag.domain}/{folder}".rstrip("/")
    with suppress(WebarcError, OSError):
        if archive.database.exists():
            version = version_at(archive.database, path, int(tag.crawl_time.timestamp()))
            if version is not None:
                return version.url
    return path
