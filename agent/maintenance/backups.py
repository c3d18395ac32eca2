"""Backups: an incremental copy of an archive in another folder, the restore from it, and its check.

The order makes a backup consistent: the journal first, then the catalogue, then the domains' repositories. An addition
that `close` confirmed before the backup is in the journal's copy, or was committed since and is in a repository; an
addition in both is committed once (refs/additions). A capture that is published meanwhile has no record in the backup,
and gets it after a restore. Repositories are copied without a lock; only if a domain keeps changing, its publications
wait for one transfer. webarc.db, catalogue.db and the feed derive from git and are left out. So are unfinished jobs (a
crawl can be repeated, and the user has the files of an import), `log/` and locks.

Damage by the disk is noticed only on reading. So each backup, unless `quick`, reads the existing copy: git's own
checksums, and plain files against the archive's. A damaged repository is copied again from a readable archive; the
damaged copy is renamed and never deleted. Refs that only the damaged copy has are taken over, where they can be read.
Of plain files that differ one is damaged, and people must see which; one that the archive no longer has cannot be
compared.

Reading costs a second of processor time for half a gigabyte or more, another for 100,000 documents, and the disk's
time: nothing is unpacked.

A mark makes a folder a backup and names its archive.

`webarc-agent verify` of a backup checks whether it can be restored, with a line for each finding. It writes nothing, so
the disk may be read-only. A backup contains no feed and no database, so each repository is only checked for its own
consistency.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.catalogue.recording import catch_up_records
from agent.indexing.recovery import Recovered, recover
from agent.maintenance.backup_mark import MARK, TRACE
from agent.maintenance.verification import Domain, catalogue_findings, documents, fsck, history, journal, read_refs
from webarcfs.archive.additions.waiting_additions import settle_first
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import LAYOUT, MISSING, RESTORING, Archive, layout_of
from webarcfs.archive.git.repository import Repository, connected, differing, fetch, rotten, tidy
from webarcfs.archive.model.errors import Damaged, UsageError, WebarcError
from webarcfs.archive.model.metadata import compact_time, format_time, now
from webarcfs.archive.repair import mending
from webarcfs.archive.repair.mending import mend_plain
from webarcfs.archive.system import files, locks
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.archive.system.files import mirror, remove_others, sync_folder

# == mark =============================================================================================================


def id_of(archive: Archive) -> str:
    """Return the id of this archive; the first backup creates it."""
    path = archive.root / "id"
    if not path.exists():
        scratch = archive.root / f".id-{os.getpid()}"
        scratch.write_text(f"{uuid.uuid4()}\n", "ascii")
        try:
            os.link(scratch, path)
        except FileExistsError:
            pass  # another backup created it first
        finally:
            scratch.unlink()
    return path.read_text("ascii").strip()


@contextmanager
def held(folder: Path, *, must_exist: bool = False) -> Iterator[dict[str, Any] | None]:
    """Hold a backup exclusively; yield its mark, None for a new one. Raises UsageError if the folder is no backup."""
    # The files of a first backup that was killed at once: its lock, and a temporary mark.
    ours = (".lock", f".{MARK}.")
    is_used = folder.is_dir() and not all(path.name.startswith(ours) for path in folder.iterdir())
    if must_exist and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds no backup: it has no {MARK}")
    if is_used and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds something that is no backup; give a folder of its own, or a new one")
    folder.mkdir(parents=True, exist_ok=True)
    with locks.exclusive_or_busy(folder / ".lock", f"{folder} is being written or read by another process"):
        yield _read(folder / MARK) if is_used else None


@contextmanager
def read_only(folder: Path) -> Iterator[dict[str, Any]]:
    """Lock a backup with flock(2), if it has a lock file, without writing to it; yield its mark."""
    lock = folder / ".lock"
    with locks.exclusive_or_busy(lock, f"{folder} is being written or read") if lock.exists() else nullcontext():
        yield _read(folder / MARK)


def _read(path: Path) -> dict[str, Any]:
    try:
        mark = files.read_json(path) or {}
        read = {"id": str(mark["id"]), "layout": int(mark["layout"]), "finished": mark["finished"]}
        read["last"] = mark.get("last")
    except (Damaged, ValueError, KeyError, TypeError):
        raise UsageError(f"{path} cannot be understood; is it a backup of webarcfs?") from None
    if read["layout"] > LAYOUT:
        raise UsageError(f"{path.parent} has layout {read['layout']}, this program knows up to {LAYOUT}")
    return read


# == backups ==========================================================================================================


#: Plain files and folders; a backup never deletes any of them.
_PLAIN = (
    *("webarc.toml", "publications.d", "collections.d", "access.aclj", "access-reasons.json", "people.toml"),
    *("formats.toml", "types.toml", "conf", "texts", "filters", "xsd", "reports"),
)
_JOURNAL = "journal"
_TRIES_WITHOUT_LOCK = 3


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a backup or a restore: the number of domains, and of those with new data.

    `failed` has a line for each failure with its reason, `mended` a line for each repaired damage of a backup.
    """

    domains: int
    moved: int
    failed: tuple[str, ...]
    mended: tuple[str, ...] = ()
    #: What mounts did first, for people.
    notes: tuple[str, ...] = ()


def backup(archive: Archive, target: Path, progress: Progress = unseen, *, quick: bool = False) -> Copied:
    """Update the backup in `target`, or begin one there. Unless `quick`, the existing copy is read and checked.

    Raises UsageError if the folder contains anything else, or the backup of another archive; Busy if it is in use;
    OSError. After a kill or a failure at any point it can be run again; existing data stays.
    """
    if target.resolve().is_relative_to(archive.root):
        raise UsageError(f"{target} lies in the archive itself; a backup belongs on another disk")
    own = id_of(archive)
    other: list[Path] | None = None if quick else []
    with held(target) as mark:
        if mark is not None and mark["id"] != own:
            raise UsageError(f"{target} is the backup of another archive ({mark['id']}, this one is {own})")
        new_mark = {"id": own, "layout": layout_of(archive.root), "begun": format_time(now()), "finished": None}
        new_mark["last"] = (mark["finished"] or mark["last"]) if mark else None
        files.write_json(target / MARK, new_mark)
        settled = settle_first(archive)
        kept = mirror(archive.root / _JOURNAL, target / _JOURNAL, other)
        copied = _copy_all(archive, Archive(target), progress, live=True, check=not quick)
        for name in _PLAIN:
            if (archive.root / name).exists():
                mirror(archive.root / name, target / name, other)
        copied = replace(copied, failed=(*copied.failed, *map(_differs, other or ())), notes=tuple(settled.lines))
        if not copied.failed:
            remove_others(target / _JOURNAL, kept)
            # A crawl may have raised the layout while it was copied.
            new_mark |= {"layout": layout_of(archive.root), "finished": format_time(now())}
            files.write_json(target / MARK, new_mark)
            with suppress(OSError):  # it is only for people
                trace = {"finished": new_mark["finished"], "folder": str(target)}
                files.write_json(archive.log / TRACE, trace, durable=False)
    return copied


def _differs(copy: Path) -> str:
    return (
        f"{copy} is not what the archive has, though nobody wrote to either (same size and time): one of the two is"
        " damaged. Compare them; if it is the copy, remove it, and make the backup again"
    )


def restore(
    source: Path, root: Path, progress: Progress = unseen, *, partial: bool = False
) -> tuple[Copied, Recovered, bool]:
    """Make an archive in the empty folder `root` from a backup; webarc.db and the feed are rebuilt.

    If a part of the backup cannot be read, `root` is no archive yet, and the next call continues there. With `partial`
    it becomes an archive of the readable parts, and its file `missing` lists the others. The last item returned says
    whether the backup was finished. Raises UsageError if `root` is not empty or `source` is no backup.
    """
    with held(source, must_exist=True) as mark:
        assert mark is not None
        archive = _begin(root, mark["id"])
        (archive.root / "id").write_text(f"{mark['id']}\n", "ascii")
        copied = _copy_all(Archive(source), archive, progress, live=False, check=False)
        for name in (*_PLAIN, _JOURNAL):
            if (source / name).exists():
                mirror(source / name, archive.root / name)
        recovered = recover(archive, progress)
        missing = [*copied.failed, *recovered.left, *(f"{domain}: it cannot be read" for domain in recovered.damaged)]
        if missing and partial:
            (archive.root / MISSING).write_text("".join(f"{line}\n" for line in missing), "utf-8", "replace")
        if partial or not missing:
            directory.finish(archive)  # before this, the folder is no archive
            (archive.root / RESTORING).unlink()
            catch_up_records(archive, progress=progress)  # of captures that were published while the backup was made
        return copied, recovered, mark["finished"] is not None


def _begin(root: Path, own: str) -> Archive:
    """Create the folders of the archive to be restored; an unfinished restore of the same backup is continued."""
    begun = root / RESTORING
    if not begun.is_file() or (root / "format").exists():
        directory.refuse_full(root)
        root.mkdir(parents=True, exist_ok=True)
        begun.write_text(f"{own}\n", "ascii")
    elif begun.read_text("ascii", "replace").strip() != own:
        raise UsageError(f"{root} holds what came of restoring another backup; remove it, or give another folder")
    return directory.make_folders(root)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A repository, its copy, and the lock under which the repository's refs move."""

    name: str
    original: Path
    copy: Path
    lock: Path


def _copy_all(source: Archive, target: Archive, progress: Progress, *, live: bool, check: bool) -> Copied:
    """Copy every repository. One failure is listed, and does not affect the others."""
    target.content.mkdir(exist_ok=True)
    for left in (
        *target.content.glob(".*"),
        *target.root.glob(f".*{target.catalogue.name}"),
    ):  # unfinished copies of a killed process; the caller holds the lock
        shutil.rmtree(left, ignore_errors=True)
    domains = list(source.domains()) if source.content.is_dir() else []
    pairs = [
        _Pair(domain, source.repository(domain), target.repository(domain), source.lock(domain)) for domain in domains
    ]
    if source.catalogue.is_dir():
        pairs.insert(0, _Pair(source.catalogue.name, source.catalogue, target.catalogue, source.catalogue_lock))
    moved, failed, mended = 0, [], []
    progress("copy repositories", 0, len(pairs))
    for number, pair in enumerate(pairs, 1):
        if not live:
            failed += [f"{pair.name}: {line}" for line in mending.faults(pair.original)]
        try:
            is_new, damage = _bring(pair, live=live, check=check)
            moved += is_new and pair.name in domains
            mended += [f"{pair.name}: {line}" for line in damage]
        except WebarcError as error:
            failed.append(f"{pair.name}: {error}")
        progress("copy repositories", number, len(pairs))
    for domain in sorted(set(target.domains()) - set(domains)) if check else ():
        damage = _damage(target.repository(domain))
        failed += [f"{domain}: {line}; the archive has it no more, so nobody can repair it here" for line in damage[:1]]
    return Copied(len(domains), moved, tuple(failed), tuple(mended))


def _bring(pair: _Pair, *, live: bool, check: bool) -> tuple[bool, list[str]]:
    """Copy new data of a repository; return whether any was copied, and a line for each repaired damage of the copy.

    Raises Damaged if the copy is not whole afterwards.
    """
    path = pair.copy
    if not path.is_dir():
        return _copy_first(pair, live=live), []
    mended = mend_plain(path) if check else []
    damage = (list(mending.faults(path)) or rotten(path)) if check else []
    if not damage:
        try:
            return _copy(pair, Repository(path), live=live, check=check), mended
        except WebarcError:
            damage = _damage(path)  # if empty, the archive cannot be read
            if not damage:
                raise
    return True, [*mended, *_copy_anew(pair, damage, live=live)]


def _copy_first(pair: _Pair, *, live: bool) -> bool:
    """Copy a new repository; after a failure without any ref, remove the empty one."""
    copy = Repository.create(pair.copy)
    try:
        return _copy(pair, copy, live=live, check=False)
    except WebarcError:
        if not copy.ref_names("refs/"):
            shutil.rmtree(pair.copy)
        raise


def _damage(path: Path) -> list[str]:
    """Return a line for each damage of a copy."""
    try:
        faults = [*mending.faults(path), *rotten(path)]
        return faults or connected(Repository(path))
    except WebarcError as error:
        return [str(error)]


def _copy_anew(pair: _Pair, damage: list[str], *, live: bool) -> list[str]:
    """Copy a damaged repository again, then rename the damaged one; return lines for the user."""
    path = pair.copy
    scratch = path.with_name(f".again-{path.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        copy = Repository.create(scratch)
        _copy(pair, copy, live=live, check=True)
        alone = _rescue(path, copy)
    except BaseException as error:
        shutil.rmtree(scratch, ignore_errors=True)
        if isinstance(error, WebarcError):
            raise Damaged(
                f"{path / damage[0]}, and there is no other copy, since the archive failed: {error}"
            ) from None
        raise
    aside = path.with_name(f"{path.name}.damaged-{compact_time(now())}")
    path.rename(aside)
    scratch.rename(path)
    sync_folder(path.parent)
    lost = f" What the archive has no more is there alone: {', '.join(alone)}." if alone else ""
    return [f"{path / damage[0]}. It was copied again, and the damaged one is {aside}.{lost} Look after this disk"]


def _rescue(path: Path, copy: Repository) -> list[str]:
    """Fetch the refs that only the damaged copy contains; return those that cannot be read."""
    packed = mending.read_packed(path)
    names = sorted(
        {*(packed.refs if packed else ()), *mending.loose_refs(path)} - {f"refs/{name}" for name in copy.refs("refs/")}
    )
    alone = []
    for name in names:
        try:
            fetch(path, copy, [name])
        except WebarcError:
            alone.append(name)
    return alone


def _copy(pair: _Pair, copy: Repository, *, live: bool, check: bool) -> bool:
    """Copy new refs and return whether there were any; if so, or with `check`, check connectivity. Raises Damaged."""
    original = Repository(pair.original)
    is_new = bool(differing(original, copy))
    if is_new:
        _fetch(pair, original, copy, live=live)
    if (is_new or check) and (complaints := connected(copy)):
        raise Damaged(f"{copy.path} is not whole: {complaints[0]}")
    if is_new:
        tidy(copy)
    return is_new


def _fetch(pair: _Pair, original: Repository, copy: Repository, *, live: bool) -> None:
    for _ in range(_TRIES_WITHOUT_LOCK):
        fetch(original.path, copy)
        if _same(pair, original, copy, live=live):
            return
    with locks.Turnstile(pair.lock).shared():
        fetch(original.path, copy)
        if missing := differing(original, copy):
            raise Damaged(f"{missing[0]} of {original.path} did not come over")


def _same(pair: _Pair, original: Repository, copy: Repository, *, live: bool) -> bool:
    """Return whether all refs equal the original's, read under a lock that keeps publications from moving them."""
    if not live:
        return not differing(original, copy)
    with locks.Turnstile(pair.lock).shared():
        return not differing(original, copy)


# == backup verification ==============================================================================================


#: The checks that the quick form leaves out.
LEFT_OUT = "objects and documents one by one (but for the checksums of the files that hold them)"
_AGAIN = "`webarc-agent backup`, from a sound archive, copies it again"


def verify_backup(folder: Path, progress: Progress = unseen, *, quick: bool = False) -> Iterator[str]:
    """Yield a line for each finding. `quick` reads all files of git, but not the objects in them.

    Raises Busy while a backup is being made or restored, UsageError if the mark cannot be read.
    """
    with read_only(folder) as mark:
        if mark["finished"] is None:
            yield f"{MARK}: the last backup was not finished; make it again"
        archive, domains = Archive(folder), {}
        names = list(archive.domains()) if archive.content.is_dir() else []
        for number, name in enumerate(names):
            progress("check repositories", number, len(names))
            findings = list(mending.faults(archive.repository(name)))
            try:
                domain = read_refs(Repository(archive.repository(name)), name)
            except WebarcError as error:
                yield from (f"{name}: {line}; {_AGAIN}" for line in findings or [str(error)])
                continue
            domains[name] = domain
            findings += [*domain.findings, *_domain(domain, progress, quick)]
            yield from (f"{name}: {line}; {_AGAIN}" for line in findings)
            domain.current = None  # bounds memory
        progress("check repositories", len(names), len(names))
        yield from (f"{line}; {_AGAIN}" for line in catalogue_findings(archive, quick=quick))
        if archive.journal.is_dir():
            yield from journal(archive, domains)


def _domain(domain: Domain, progress: Progress, quick: bool) -> Iterator[str]:
    try:
        yield from rotten(domain.store.path)
        if quick:
            yield from connected(domain.store)
        else:
            yield from fsck(domain.store)
        yield from history(domain)
        if not quick:
            yield from documents(domain, None, progress)
    except WebarcError as error:
        yield str(error)
