"""What discarded records captured, for the mount, which leaves it out: by domain, in queries and in searches.

A domain of which something is discarded is read from a repository that has the other snapshots alone (`gate`). Safe for
any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import Interrupted, NotFound, WebarcError

if TYPE_CHECKING:  # most mounts need none of it, and start sooner
    from webarcfs.gate.gate import StaffGate
    from webarcfs.gate.reader_repositories import ReaderRepositories

#: Repositories that are kept for nodes of older states, when there is a newer one.
_KEPT = 4

_log = logging.getLogger(__name__)


class Discarded:
    """The discarded records of one archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._catalogue = Catalogue(archive)
        self._repositories: ReaderRepositories | None = None
        self._is_closed = False
        self._ids: frozenset[str] = frozenset()
        self._domains: dict[str, frozenset[str]] = {}

    def ids(self) -> frozenset[str]:
        """Return the ids of the records; none where the catalogue cannot be read, which the log then says."""
        with self._lock:
            return self._look()

    def by_domain(self) -> Mapping[str, frozenset[str]]:
        """Return the commitTags that are discarded, of each domain that has any."""
        with self._lock:
            self._look()
            return self._domains

    def repository(self, domain: str) -> Repository | None:
        """Return the repository of the other snapshots of a domain; None if there are none.

        Raises Damaged; Interrupted after `close`.
        """
        with self._lock:
            if self._is_closed:
                raise Interrupted("the mount ends")
            if self._repositories is None:
                from webarcfs.gate.gate import StaffGate  # noqa: PLC0415 # as above
                from webarcfs.gate.reader_repositories import ReaderRepositories  # noqa: PLC0415 # as above

                self._repositories = ReaderRepositories(StaffGate(self._archive), keep=_KEPT)
            try:
                return self._repositories.open(domain)
            except NotFound:
                return None

    def close(self) -> None:
        """Remove the repositories; none is made any more."""
        with self._lock:
            self._is_closed = True
            if self._repositories is not None:
                self._repositories.close()

    def gate(self) -> StaffGate | None:
        """Return a gate for one thread; None where nothing is discarded."""
        if not self.ids():
            return None
        from webarcfs.gate.gate import StaffGate  # noqa: PLC0415 # as above

        return StaffGate(self._archive)

    def _look(self) -> frozenset[str]:
        try:
            ids = self._catalogue.discarded()
            if ids != self._ids:
                domains: dict[str, set[str]] = {}
                for record in (self._catalogue.read(each)[0] for each in ids):
                    for part in record.parts:
                        domains.setdefault(part.tag.domain, set()).add(str(part.tag))
                self._domains = {domain: frozenset(tags) for domain, tags in domains.items()}
                self._ids = ids
        except (WebarcError, OSError) as error:
            _log.warning("nobody knows what is discarded: %s", error)
        return self._ids
