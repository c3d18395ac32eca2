"""Derived forms of documents in `refs/forms/<name>` of a domain: what a tool with certain settings made of a body.

In its tree, `<xx>/<blob>/<settings>/` has the files of a form, and `settings/<settings>` what the settings are. `xx`
are the first two hex digits of the body's blob. Main is never touched, and a body that did not change has its form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from agent.converting.tidy import settings_id
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.fast_import import FastImport
from webarcfs.archive.git.repository import FORMS, RefUpdate, Repository
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.system import locks

#: Forms that are lost by a kill at most.
_AT_ONCE = 5_000
_TRIES = 20


class Forms:
    """The forms of one name and settings, on one domain."""

    def __init__(self, archive: Archive, domain: str, name: str, settings: str) -> None:
        self._archive, self._domain = archive, domain
        self._store = Repository(archive.repository(domain))
        self._ref = f"{FORMS}{name}"
        self._settings = settings
        self._id = settings_id(settings)
        self._folders: dict[str, dict[str, str]] = {}
        self._tree = self._store.ref(self._ref)

    def files(self, blob: str) -> dict[str, str]:
        """Return the files of the form of a body, by name; none if there is no form yet."""
        folder = self._folder(blob[:2]).get(blob)
        entry = self._store.find(folder, self._id) if folder is not None else None
        return {each.name: each.oid for each in self._store.entries(entry.oid)} if entry is not None else {}

    def read(self, oid: str) -> bytes:
        """Return the bytes of a file."""
        return self._store.read(oid)

    def size(self, oid: str) -> int:
        """Return the bytes of a file."""
        return self._store.size(oid)

    def read_again(self) -> None:
        """Take over what was written since."""
        self._tree = self._store.ref(self._ref)
        self._folders.clear()

    def writing(self) -> FormsWriter:
        """Return a writer of forms; a context manager."""
        return FormsWriter(self._archive, self._domain, self._ref, self._settings)

    def _folder(self, name: str) -> dict[str, str]:
        """Return the bodies with forms whose names begin so, with their folders."""
        if name not in self._folders:
            found = self._store.find(self._tree, name) if self._tree is not None else None
            self._folders[name] = {each.name: each.oid for each in self._store.each(found.oid)} if found else {}
        return self._folders[name]


class FormsWriter:
    """Writes forms, thousands at a time: after a kill those that were written are there."""

    def __init__(self, archive: Archive, domain: str, ref: str, settings: str) -> None:
        self._archive, self._domain, self._ref = archive, domain, ref
        self._store = Repository(archive.repository(domain))
        self._id = settings_id(settings)
        self._said = settings.encode()
        self._stack = ExitStack()
        self._importer: FastImport | None = None
        self._placed: list[tuple[str, str]] = []
        self._removed: list[str] = []
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._stack.close()

    def put(self, blob: str, files: Mapping[str, bytes]) -> None:
        """Write the form of a body, in place of the one that is there."""
        if self._importer is None:
            self._importer = self._stack.enter_context(self._store.importer(None))
        folder = f"{blob[:2]}/{blob}/{self._id}"
        self._removed.append(folder)
        for name, content in files.items():
            path = f"{folder}/{name}"
            self._placed.append((path, self._importer.store(path, len(content), [content])))
        self._count += 1
        if self._count >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Make what was put durable and visible."""
        if self._importer is None:
            return
        path = f"settings/{self._id}"
        self._placed.append((path, self._importer.store(path, len(self._said), [self._said])))
        self._importer.finish()
        for _ in range(_TRIES):
            if self._moved(self._placed):
                break
        else:
            raise Busy(f"{self._domain}: its forms are being written by other processes all the time")
        self._stack.close()
        self._stack, self._importer = ExitStack(), None
        self._placed, self._removed, self._count = [], [], 0

    def _moved(self, placed: Iterable[tuple[str, str]]) -> bool:
        """Put the files into the tree as it is now; return whether nobody else did so meanwhile."""
        old = self._store.ref(self._ref)
        with self._store.rewriting(old) as rewriting:
            for folder in self._removed:
                rewriting.remove(folder)
            for path, oid in placed:
                rewriting.put(path, oid)
            tree = rewriting.finish()
            with locks.Turnstile(self._archive.lock(self._domain)).exclusive():
                if self._store.ref(self._ref) != old:
                    return False
                self._store.update_refs([RefUpdate(self._ref, tree, old)])
        return True
