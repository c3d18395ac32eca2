"""`webarc-agent verify` of a backup: checks whether it can be restored, with a line for each finding.

It writes nothing, so the disk may be read-only. A backup contains no feed and no database, so each repository is only
checked for its own consistency.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.upkeep.backupmark import MARK, read_only
from agent.upkeep.domain_verification import Domain, documents, fsck, history, read_refs
from agent.upkeep.verification import catalogue_findings, journal
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import transfer
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.repair import repository_files

#: The checks that the quick form leaves out.
LEFT_OUT = "objects and documents one by one (but for the checksums of the files that hold them)"
_AGAIN = "`webarc-agent backup`, from a sound archive, copies it anew"


def verify_backup(folder: Path, *, quick: bool = False) -> Iterator[str]:
    """Yield a line for each finding. `quick` reads all files of git, but not the objects in them.

    Raises Busy while a backup is being made or restored, UsageError if the mark cannot be read.
    """
    with read_only(folder) as mark:
        if mark["finished"] is None:
            yield f"{MARK}: the last backup was not finished; make it again"
        archive, domains = Archive(folder), {}
        for name in archive.domains() if archive.content.is_dir() else ():
            found = list(repository_files.faults(archive.repository(name)))
            try:
                domain = read_refs(Repository(archive.repository(name)), name)
            except WebarcError as error:
                yield from (f"{name}: {line}; {_AGAIN}" for line in found or [str(error)])
                continue
            domains[name] = domain
            found += [*domain.findings, *_domain(domain, quick)]
            yield from (f"{name}: {line}; {_AGAIN}" for line in found)
            domain.current = None  # bounds memory
        yield from (f"{line}; {_AGAIN}" for line in catalogue_findings(archive, quick=quick))
        if archive.journal.is_dir():
            yield from journal(archive, domains)


def _domain(domain: Domain, quick: bool) -> Iterator[str]:
    try:
        yield from transfer.rotten(domain.store.path)
        if quick:
            yield from transfer.connected(domain.store)
        else:
            yield from fsck(domain.store)
        yield from history(domain)
        if not quick:
            yield from documents(domain, None)
    except WebarcError as error:
        yield str(error)
