"""The files imported so far, from the trailers of the imports' commits.

A file is imported when the last of its snapshots is published, whose commit has `Source-End`. The commits of older
versions, without `Import`, have `Source` for all files of their import, which made one snapshot of each host.

A note in `log/` stores the hashes and the last commit that was read, so that the next import reads only newer commits.
The note only saves time: without it, all commits are read again.
"""

from __future__ import annotations

from contextlib import suppress

from agent.system import jsonfile
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag

_NOTE = "imported.json"
_PREFIX = "sha256:"


def known_sources(archive: Archive) -> set[str]:
    """Return the hashes of all files imported so far; webarc.db must be synchronised with git."""
    (number, last), known = _noted(archive)
    with Database(archive.database) as database:
        news = list(database.since(number - 1))
    if news[:1] == [(number, last)]:
        del news[0]
    elif number:  # git was reset to an older state, or the note is from another archive
        return _forgotten(archive)
    for _, tag in news:
        known |= _sources_of(archive, CommitTag.parse(tag))
    if news:
        with suppress(OSError):
            note = {"sequence": news[-1][0], "tag": news[-1][1], "sources": sorted(known)}
            jsonfile.write(archive.log / _NOTE, note, durable=False)
    return known


def _forgotten(archive: Archive) -> set[str]:
    (archive.log / _NOTE).unlink()
    return known_sources(archive)


def _noted(archive: Archive) -> tuple[tuple[int, str], set[str]]:
    """Return (number, commitTag) of the last commit that was read, and the hashes up to it."""
    try:
        note = jsonfile.read(archive.log / _NOTE) or {}
        return (int(note["sequence"]), str(note["tag"])), {str(each) for each in note["sources"]}
    except (Damaged, KeyError, TypeError, ValueError):
        return (0, ""), set()


def _sources_of(archive: Archive, tag: CommitTag) -> set[str]:
    store = Repository(archive.repository(tag.domain))
    target = store.ref(tag.ref)
    commit = sequence.crawl_commit(store, target) if target else None
    if commit is None:
        return set()
    trailer = "Source-End" if commit.message.all("Import") else "Source"
    return {value.removeprefix(_PREFIX) for value in commit.message.all(trailer)}
