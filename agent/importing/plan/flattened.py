"""Earlier imports that put several crawls into one snapshot: its captures lie more than a day apart.

Older versions made all files of an import one snapshot of each host. The same files, imported again, come to their own
times. Such a commit has `Source`, and no `Import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.index.captures import CaptureIndex
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, format_time, from_epoch, parse_time

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FlattenedImport:
    """A snapshot of an import, its publication, its first and last capture, the SHA-256 of its files."""

    tag: CommitTag
    publication: str
    first: str
    last: str
    sources: tuple[str, ...]

    def line(self) -> str:
        """Return what `upgrade` says of it."""
        named = ", ".join(digest.removeprefix("sha256:")[:12] for digest in self.sources[:3])
        more = f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else ""
        return (
            f"{self.tag}: an older webarcfs made one snapshot of captures from {self.first} to {self.last}; "
            f"`webarc-agent import --again --publication {self.publication} FILE...` puts each into its time "
            f"(files with SHA-256 {named}{more})"
        )


def flattened_imports(archive: Archive) -> Iterator[FlattenedImport]:
    """Yield the snapshots of imports of older versions that have captures of several days."""
    with CaptureIndex(archive.database) as index:
        spread = list(index.spread())
    for domain, seq, first, last in spread:
        if parse_time(last) - parse_time(first) <= _DAY:
            continue
        tag = CommitTag(from_epoch(seq), domain)
        try:
            store = Repository(archive.repository(domain))
        except NotFound:
            continue
        target = store.ref(tag.ref)
        commit = sequence.crawl_commit(store, target) if target else None
        sources = () if commit is None or commit.message.all("Import") else tuple(commit.message.all("Source"))
        if commit is not None and sources:
            yield FlattenedImport(
                tag, commit.message.publication, format_time(parse_time(first)), format_time(parse_time(last)), sources
            )
