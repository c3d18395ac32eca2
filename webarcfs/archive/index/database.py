"""webarc.db: every version of every document, for queries (/Db-1/ … /Db-6/). Only the agent writes to it.

Derived from git; `record` adds the changes of one snapshot. The statements are the files of `sql/`. The database keeps
SQLite's rollback journal (no WAL), so that readers without write permission can open it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.sqlite_file import SqliteFile, queries_of
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitMessage, MetaData, format_time, parse_time, utc
from webarcfs.archive.model.url_lists import Met, Redirect, blocks_of
from webarcfs.archive.model.urls import surt

#: The metadata that are the same in all rows of a snapshot, and the path, which is the key.
OF_SNAPSHOT = frozenset({"path", "domain", "crawlTime", "commitTag"})
#: `seq_until` of current versions.
_NEVER = (1 << 63) - 1
#: URLs that one statement numbers.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a document: its metadata, git's ids of body and headers.http, size and SHA-1 of the body."""

    meta: MetaData
    blob: str
    head: str
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """The change of a snapshot at one path: the version from then on, None if the document was removed."""

    path: str
    version: StoredVersion | None


class Database(SqliteFile):
    """An open webarc.db. Use it as a context manager, in one thread."""

    def __init__(self, path: Path) -> None:
        """Open or make the database at `path`. Raises DatabaseDamaged for another program's file or another version."""
        super().__init__(path, "IMMEDIATE")
        with self._translated():
            self._db = queries_of(self._connection)
            self._ready("schema")

    def record(
        self,
        message: CommitMessage,
        changes: Iterable[DocumentChange],
        redirects: Iterable[tuple[str, Redirect | None]] = (),
        met: Iterable[tuple[str, Met]] = (),
    ) -> None:
        """Add one snapshot, in one transaction; once only (/Cr-15/).

        `changes`, and `redirects` (URL, the redirect from then on), are against the previous snapshot in time. It is
        the newest of its domain, or an import from before that: then its versions end at the next snapshot in time,
        from which earlier ones continue. `met` is what the crawl met unchanged: paths of ARCs, URLs of redirects.
        """
        tag = message.tag
        seq = int(tag.crawl_time.timestamp())
        with self._translated(), self._connection:
            domain = self._domain(tag.domain)
            snapshot = self._run(
                "metadata/insert_snapshot",
                domain=domain,
                seq=seq,
                crawlTime=format_time(tag.crawl_time),
                commitTag=str(tag),
                sequence=message.sequence,
                publication=message.publication,
                complete=int(message.complete),
            )
            if not snapshot.rowcount:
                return  # another process, catching up, was faster
            following = self._next(domain, seq)
            for change in changes:
                if following != _NEVER:
                    self._split(change.path, seq, following)
                self._run("metadata/close_version", seq=seq, path=change.path)
                if change.version is not None:
                    values = _values(change.version) | {"domain": domain, "seq": seq, "next": following, "stored": seq}
                    self._run("metadata/insert_document", **values)
                    self._run("metadata/insert_version", **values)
            for url, redirect in redirects:
                values = {"domain": domain, "url": url, "seq": seq, "next": following}
                if following != _NEVER:
                    self._run("metadata/split_redirect", **values)
                self._run("metadata/close_redirect", **values)
                if redirect is not None:
                    self._run("metadata/insert_redirect", **values | _redirect_values(redirect))
            self._record_met(domain, seq, met)

    def indexed(self, domain: str) -> set[str]:
        """Return the commitTags of `domain` that are in the database."""
        with self._translated():
            rows = self._db.query(sql("metadata/select_indexed"), {"name": domain})
            return {str(row["commitTag"]) for row in rows}

    def since(self, sequence: int) -> Iterator[tuple[int, str]]:
        """Yield (number, commitTag) of the snapshots published after a number of the archive's counter, in order."""
        with self._translated():
            for row in self._db.query(sql("metadata/select_since"), {"sequence": sequence}):
                yield int(row["sequence"]), str(row["commitTag"])

    def current(self, domain: str) -> dict[str, dict[str, str]]:
        """Return the newest state of `domain`: path → the metadata but for those of `OF_SNAPSHOT`."""
        with self._translated():
            rows = self._db.query(sql("metadata/select_current"), {"name": domain})
            return {row["path"]: {name: str(row[name]) for name in row.keys() - OF_SNAPSHOT} for row in rows}

    def redirects(self, domain: str) -> dict[str, Redirect]:
        """Return the redirects in the newest state of `domain`, by URL."""
        with self._translated():
            rows = self._db.query(sql("metadata/select_redirects"), {"name": domain})
            return {str(row["url"]): _redirect(row) for row in rows}

    def count_versions(self) -> int:
        """Return the number of versions of documents."""
        with self._translated():
            return int(self._one("metadata/count_versions"))

    def dump(self) -> Iterator[dict[str, str]]:
        """Yield the whole view `metadata`, ordered by commitTag and path."""
        with self._translated():
            yield from self._db.query(sql("metadata/dump"))

    def dump_redirects(self) -> Iterator[dict[str, str]]:
        """Yield the redirects of every snapshot, ordered by commitTag and URL."""
        with self._translated():
            yield from self._db.query(sql("metadata/dump_redirects"))

    def _split(self, path: str, seq: int, following: int) -> None:
        """Split the versions at a path that are valid before and after a snapshot."""
        for row in list(self._db.query(sql("metadata/select_split"), {"path": path, "seq": seq, "next": following})):
            self._run("metadata/insert_version", **row)

    def _record_met(self, domain: int, seq: int, met: Iterable[tuple[str, Met]]) -> None:
        """Add what the crawl of a snapshot met unchanged: after its changes, so that each ARC has its number."""
        for is_redirect, names in groupby(met, lambda row: not row[0].startswith("/")):
            numbered = self._with_redirect_numbers if is_redirect else self._with_arc_numbers
            for block in blocks_of(numbered(names)):
                values = {"block": block.number, "base": block.base, "times": block.times}
                self._run("metadata/insert_met", domain=domain, kind=int(is_redirect), seq=seq, **values)

    def _with_arc_numbers(self, met: Iterator[tuple[str, Met]]) -> Iterator[tuple[int, Met]]:
        for portion in _portions(met):
            paths = [path for path, _ in portion]
            rows = self._run("metadata/select_met_arcs", paths=json.dumps(paths))
            for (path, when_met), (number,) in zip(portion, rows, strict=True):
                if number is None:
                    raise Damaged(f"the list of what a crawl met unchanged has {path}, and no snapshot has it")
                yield int(number), when_met

    def _with_redirect_numbers(self, met: Iterator[tuple[str, Met]]) -> Iterator[tuple[int, Met]]:
        for portion in _portions(met):
            urls = json.dumps([url for url, _ in portion])
            self._run("metadata/insert_met_redirects", urls=urls)
            rows = self._run("metadata/select_met_redirects", urls=urls)
            for (_, when_met), (number,) in zip(portion, rows, strict=True):
                yield int(number), when_met

    def _domain(self, name: str) -> int:
        self._run("insert_domain", name=name)
        return int(self._db.execute(sql("select_domain"), {"name": name}).fetchone()[0])

    def _next(self, domain: int, seq: int) -> int:
        next_seq = self._db.execute(sql("select_next_snapshot"), {"domain": domain, "seq": seq}).fetchone()[0]
        return _NEVER if next_seq is None else int(next_seq)


def _portions(met: Iterator[tuple[str, Met]]) -> Iterator[list[tuple[str, Met]]]:
    """Yield what a crawl met in lists, each for one statement: a site may have a million URLs."""
    while portion := list(islice(met, _AT_ONCE)):
        yield portion


def _values(version: StoredVersion) -> dict[str, object]:
    """Return the columns of a version and its document."""
    return version.meta.as_fields() | {
        "surt": surt(version.meta.url),
        "status": version.meta.status,
        "blob": bytes.fromhex(version.blob),
        "head": bytes.fromhex(version.head),
        "size": version.size,
        "digest": version.digest,
        "resource": version.meta.is_resource,
    }


def _redirect_values(redirect: Redirect) -> dict[str, object]:
    """Return the columns of a redirect."""
    return {
        "path": f"/{arc_path(redirect.url)}",
        "surt": surt(redirect.url),
        "status": redirect.status,
        "target": redirect.target,
        "captureTime": format_time(redirect.time),
    }


def _redirect(row: dict[str, Any]) -> Redirect:
    return Redirect(row["url"], row["status"], row["target"], utc(parse_time(row["captureTime"])))
