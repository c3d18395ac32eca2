"""Which files were ever imported: what the trailers `Source:` of the imports' commits say.

Read off git once; a note in `log/` keeps what was found and up to which publication, so that the next import looks at
what came since and not at every crawl that there ever was. The note only saves time: without it all are read again.
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
    """The hashes of all files that were ever imported; webarc.db must be in step with git."""
    (number, last), known = _noted(archive)
    with Database(archive.database) as database:
        news = list(database.since(number - 1))
    if news[:1] == [(number, last)]:
        del news[0]
    elif number:  # git was brought back to an older state, or is another's
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
    """(Number, commitTag) of the last publication that was looked at, and the hashes up to it."""
    try:
        note = jsonfile.read(archive.log / _NOTE) or {}
        return (int(note["sequence"]), str(note["tag"])), {str(each) for each in note["sources"]}
    except (Damaged, KeyError, TypeError, ValueError):
        return (0, ""), set()


def _sources_of(archive: Archive, tag: CommitTag) -> set[str]:
    store = Repository(archive.repository(tag.domain))
    target = store.ref(tag.ref)
    commit = sequence.crawl_commit(store, target) if target else None
    return {each.removeprefix(_PREFIX) for each in commit.message.all("Source")} if commit else set()
