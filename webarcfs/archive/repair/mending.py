"""Mends the small files of a repository from its own objects: HEAD, config, refs, the commit-graph.

Replaced files are kept in `damaged/` in the repository.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import leftlocks
from webarcfs.archive.git.repository import MAIN
from webarcfs.archive.history import sequence
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import compact_time, now
from webarcfs.archive.repair import repacking, repository_files
from webarcfs.archive.repair.ref_mending import Refs
from webarcfs.archive.repair.repository_files import HEAD
from webarcfs.archive.system import locks


@dataclass
class Mended:
    """What was mended, and what could not be, a line each."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def mend(archive: Archive, domain: str) -> Mended:
    """Mend the small files of a domain's repository. Without a fault it only reads the refs and the history.

    Raises OSError, Busy. No ref moves meanwhile.
    """
    path, mended = archive.repository(domain), Mended()
    if not _is_wrong(archive, domain):
        return mended
    with ExitStack() as held:
        held.enter_context(locks.exclusive(archive.committing_lock(domain)))
        held.enter_context(locks.Turnstile(archive.lock(domain)).exclusive())
        leftlocks.remove(path)
        kept = _Kept(path)
        _mend_head(kept, mended)
        _mend_settings(kept, mended)
        try:
            refs = Refs(archive, domain)
        except WebarcError as error:
            mended.left.append(str(error))
            return mended
        mended.left += refs.left
        mended.done += refs.write(kept)
        _mend_graph(kept, mended)
    if kept.any:
        mended.done.append(f"what was there before is kept in {kept.folder}")
    return mended


def mend_plain(repository: Path) -> list[str]:
    """Mend HEAD and the settings only, for a caller with exclusive access; return what was mended."""
    mended, kept = Mended(), _Kept(repository)
    _mend_head(kept, mended)
    _mend_settings(kept, mended)
    return mended.done


def damaged_refs(archive: Archive, domain: str) -> list[str]:
    """Return the refs that `mend` would write or remove, a line each; it changes nothing; others may be at work."""
    if not Refs(archive, domain).are_wrong:
        return []
    with sequence.hold(archive):  # the first check may have seen a publication in the middle of its moves
        return list(Refs(archive, domain).findings())


def _is_wrong(archive: Archive, domain: str) -> bool:
    path = archive.repository(domain)
    if any(repository_files.faults(path)) or not repacking.graph_is_sound(path):
        return True
    try:
        return Refs(archive, domain).are_wrong
    except WebarcError:
        return False  # it is no repository at all, which mending would not change


class _Kept:
    """Keeps copies of files before they are replaced."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.folder = repository / repository_files.ASIDE / compact_time(now())
        self.any = False

    def __call__(self, name: str) -> None:
        if (self.repository / name).exists():
            repository_files.copy_aside(self.repository, name, self.folder)
            self.any = True


def _mend_head(kept: _Kept, mended: Mended) -> None:
    if repository_files.head(kept.repository) != repository_files.HEAD_TEXT:
        kept(HEAD)
        repository_files.put(kept.repository, HEAD, repository_files.HEAD_TEXT)
        mended.done.append(f"{HEAD} leads to {MAIN} again")


def _mend_settings(kept: _Kept, mended: Mended) -> None:
    if wrong := repository_files.wrong_settings(kept.repository):
        kept(repository_files.CONFIG_FILE)
        repository_files.write_settings(kept.repository, wrong)
        mended.done.append(f"{repository_files.CONFIG_FILE} has its settings again: {', '.join(wrong)}")


# -- the commit-graph, which derives from the commits ------------------------------------------------------------------


def _mend_graph(kept: _Kept, mended: Mended) -> None:
    path = kept.repository
    if repacking.graph_is_sound(path):
        return
    for name in repacking.GRAPHS:
        if (path / name).exists():
            kept(name)
            repository_files.remove(path, name)
    try:
        repacking.write_graph(path)
        mended.done.append("the commit-graph is made anew")
    except Damaged as error:
        mended.left.append(str(error))
