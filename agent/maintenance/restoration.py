"""`webarc-agent restore --damaged`: brings what is damaged or lost in an archive back from its backup.

The archive stays where it is, and in use. Only git's objects come back, each held against its id, so that nothing can
come back that was not there; no ref moves, and what came after the backup stays. A repository that is gone as a whole
is copied, if the archive's own lists know its snapshots: what people removed from these stays removed.

Afterwards webarc.db and links.db get the snapshots that `recover` left out meanwhile, and the repair of each
repository is proved by git's own check.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.catalogue.recording import catch_up_records
from agent.indexing.recovery import catch_up
from agent.maintenance import backups
from agent.maintenance.backup_mark import MARK, is_backup
from agent.maintenance.damaged_pages import ArchivedPart, damage_lines, find_parts
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository, connected, fetch
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index import database
from webarcfs.archive.model.errors import Damaged, UsageError, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.repair import damage_note, mending
from webarcfs.archive.repair.restoring import bring_back, damage_of
from webarcfs.archive.system import locks
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.archive.system.files import sync_folder

#: Without these git takes it for no repository.
_FOLDERS = ("objects/pack", "refs")


@dataclass
class BroughtBack:
    """The result: checked repositories, objects and parts of pages that came back, lines on what else was done.

    `lacking` are lines on what the backup does not have either, `failed` on what could not be done.
    """

    repositories: int = 0
    objects: int = 0
    pages: list[ArchivedPart] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether no damage is left."""
        return not self.lacking and not self.failed


def restore_damaged(source: Path, archive: Archive, progress: Progress = unseen) -> BroughtBack:
    """Bring back what is damaged or lost. Raises UsageError for another archive's backup, Busy while it is written."""
    if not is_backup(source):
        raise UsageError(f"{source} holds no backup: it has no {MARK}")
    with backups.read_only(source) as mark:
        own = (archive.root / "id").read_text("ascii").strip() if (archive.root / "id").exists() else "none"
        if mark["id"] != own:
            raise UsageError(f"{source} is the backup of another archive ({mark['id']}, this one is {own})")
        copy, result = Archive(source), BroughtBack()
        lost = _lost(archive, copy)
        domains = sorted({*archive.domains(), *lost})
        for number, domain in enumerate(domains):
            progress("check repositories", number, len(domains))
            try:
                if domain in lost:
                    _copy_lost(archive, copy, domain, result)
                _repair_domain(archive, copy, domain, result)
            except (WebarcError, OSError) as error:
                result.failed.append(f"{domain}: {error}")
            result.repositories += 1
        progress("check repositories", len(domains), len(domains))
        _repair_catalogue(archive, copy, result)
    catch_up(archive, progress=progress)
    catch_up_records(archive, progress=progress)
    if result.is_whole:
        damage_note.clear(archive)
    return result


def _lost(archive: Archive, copy: Archive) -> set[str]:
    """Return the domains of the backup that the archive's lists know, and that have no repository in it."""
    known: set[str] = set()
    for line in Feed(archive.changes).lines():
        with suppress(Damaged):
            known.add(CommitTag.parse(line).domain)
    with suppress(WebarcError):
        if archive.database.exists():
            known.update(database.domains(archive.database))
    return (set(copy.domains()) & known) - set(archive.domains())


def _copy_lost(archive: Archive, copy: Archive, domain: str, result: BroughtBack) -> None:
    """Copy a repository that is gone; what the backup does not have of it stays lost."""
    path = archive.repository(domain)
    with locks.exclusive(archive.publishing_lock(domain)):
        if not _copied(copy.repository(domain), path):
            return
    snapshots = {str(CommitTag.parse(line)) for line in Feed(archive.changes).lines() if line.endswith(f"@{domain}")}
    back = {tag for tag in snapshots if _has_snapshot(path, tag)}
    result.done.append(f"{domain}: its repository was gone, and is copied, with {len(back)} snapshots")
    result.lacking += [f"{domain}: the snapshot {tag} is not in the backup" for tag in sorted(snapshots - back)]


def _copied(source: Path, target: Path) -> bool:
    """Copy a repository that is gone; return whether it still was."""
    if target.exists():
        return False  # somebody made it meanwhile
    scratch = target.with_name(f".again-{target.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        store = Repository.create(scratch)
        fetch(source, store)
        if complaints := connected(store):
            raise Damaged(f"{source} is not whole: {complaints[0]}")
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sync_folder(target.parent)
    return True


def _has_snapshot(path: Path, tag: str) -> bool:
    """Return whether a repository has a snapshot."""
    return Repository(path).ref(CommitTag.parse(tag).ref) is not None


def _repair_domain(archive: Archive, copy: Archive, domain: str, result: BroughtBack) -> None:
    path = archive.repository(domain)
    if any(mending.faults(path)) or not all((path / name).is_dir() for name in _FOLDERS):
        with (
            locks.exclusive(archive.committing_lock(domain)),
            locks.Turnstile(archive.lock(domain)).exclusive(),
        ):
            for name in _FOLDERS:
                (path / name).mkdir(parents=True, exist_ok=True)
            result.done += [f"{domain}: {line}" for line in mending.mend_plain(path)]
    store = Repository(path)
    if damage_of(store):
        with locks.exclusive(archive.publishing_lock(domain)):  # no repack, and no crawl that publishes
            restored = bring_back(store, damage_of(store), copy.repository(domain))
        result.objects += len(restored.objects)
        result.pages += find_parts(archive, domain, store, restored.objects)
        result.done += [f"{domain}: the damaged files are kept in {folder}" for folder in restored.aside]
        if restored.left:
            lines = list(damage_lines(archive, domain, store, restored.left.objects)) or list(restored.left.lines[:3])
            result.lacking += [f"{domain}: {line}; the backup does not have it" for line in lines]
            return  # refs whose objects are damaged are not taken for wrong
    mended = mending.mend(archive, domain)
    result.done += [f"{domain}: {line}" for line in mended.done]
    result.failed += [f"{domain}: {line}" for line in mended.left]


def _repair_catalogue(archive: Archive, copy: Archive, result: BroughtBack) -> None:
    """Repair the repository of records. The records of crawls after the backup are made again from git."""
    name = archive.catalogue.name
    if not copy.catalogue.is_dir():
        return
    try:
        if not archive.catalogue.is_dir():
            with locks.Turnstile(archive.catalogue_lock).exclusive():
                if _copied(copy.catalogue, archive.catalogue):
                    result.done.append(f"{name}: it was gone, and is copied; later edits of records are lost")
        result.done += [f"{name}: {line}" for line in _mended_catalogue(archive)]
        store = Repository(archive.catalogue)
        result.repositories += 1
        if damage := damage_of(store):
            restored = bring_back(store, damage, copy.catalogue)
            result.objects += len(restored.objects)
            result.done.append(f"{name}: {len(restored.objects)} objects of records are back")
            result.done += [f"{name}: the damaged files are kept in {folder}" for folder in restored.aside]
            if restored.left:
                left = sorted(restored.left.objects) or restored.left.lines[:1]
                result.lacking.append(f"{name}: {', '.join(left)}; the backup does not have it")
    except (WebarcError, OSError) as error:
        result.failed.append(f"{name}: {error}")


def _mended_catalogue(archive: Archive) -> list[str]:
    if not any(mending.faults(archive.catalogue)):
        return []
    with locks.Turnstile(archive.catalogue_lock).exclusive():
        return mending.mend_plain(archive.catalogue)
