"""Backups: a copy of an archive in another folder, brought up to date by what changed, and the way back.

The order makes it whole: the journal first, then the repositories. What `close` confirmed before is in the journal's
copy, or was committed since and is in a repository; what is in both is committed once (refs/additions). Repositories
are copied without a lock; only if a domain never stands still its publications wait for one transfer. webarc.db and
the feed derive from git, so that a backup has none. Left out as well: jobs that are not finished (the sites are still
there, and an import's files are its user's), `log/` and locks.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import jsonfile
from agent.recover import Recovered, recover
from webarcfs.archive import directory, locks, transfer
from webarcfs.archive.copying import mirror, remove_others
from webarcfs.archive.directory import LAYOUT, Archive
from webarcfs.archive.errors import Damaged, UsageError, WebarcError
from webarcfs.archive.model import format_time, now
from webarcfs.archive.store import Store

#: The file that makes a folder a backup: whose, and when it was finished last.
MARK = "backup.json"
#: Plain files and folders; of these nothing is deleted in a backup.
_PLAIN = ("webarc.toml", "filters", "xsd", "reports")
_JOURNAL = "journal"
_TRIES_WITHOUT_LOCK = 3
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a backup or a restore came to: domains, those that something was new of, and those that failed, with why."""

    domains: int
    moved: int
    failed: tuple[str, ...]


def backup(archive: Archive, target: Path, progress: Progress = lambda *_: None) -> Copied:
    """Bring the backup in `target` up to date, or begin one there.

    Raises UsageError when the folder holds something else, or the backup of another archive; Busy when it is in use;
    OSError. Killed or failed at any point it can be run again; what was there stays.
    """
    if target.resolve().is_relative_to(archive.root):
        raise UsageError(f"{target} lies in the archive itself; a backup belongs on another disk")
    own = _id(archive)
    with _held(target) as mark:
        if mark is not None and mark["id"] != own:
            raise UsageError(f"{target} is the backup of another archive ({mark['id']}, this one is {own})")
        jsonfile.write(target / MARK, {"id": own, "layout": LAYOUT, "begun": format_time(now()), "finished": None})
        kept = mirror(archive.root / _JOURNAL, target / _JOURNAL)
        copied = _copy_all(archive, Archive(target), progress, live=True)
        for name in _PLAIN:
            if (archive.root / name).exists():
                mirror(archive.root / name, target / name)
        if not copied.failed:
            remove_others(target / _JOURNAL, kept)
            done = {"id": own, "layout": LAYOUT, "begun": format_time(now()), "finished": format_time(now())}
            jsonfile.write(target / MARK, done)
    return copied


def restore(source: Path, root: Path, progress: Progress = lambda *_: None) -> tuple[Copied, Recovered, bool]:
    """Make an archive in the empty folder `root` from a backup; webarc.db and the feed are made anew.

    The last of what it returns says whether the backup had been finished. Raises UsageError when `root` is not empty
    or `source` is no backup.
    """
    with _held(source, must_exist=True) as mark:
        assert mark is not None
        if int(mark["layout"]) > LAYOUT:
            raise UsageError(f"{source} has layout {mark['layout']}, this program knows up to {LAYOUT}")
        archive = directory.create(root)
        waiting = archive.root / ".restoring"
        archive.format.rename(waiting)  # a folder that was not restored to the end is no archive
        (archive.root / "id").write_text(f"{mark['id']}\n", "ascii")
        copied = _copy_all(Archive(source), archive, progress, live=False)
        for name in (*_PLAIN, _JOURNAL):
            if (source / name).exists():
                mirror(source / name, archive.root / name)
        waiting.rename(archive.format)
        return copied, recover(archive), mark["finished"] is not None


def _copy_all(source: Archive, target: Archive, progress: Progress, *, live: bool) -> Copied:
    """Copy every repository; one that cannot be copied is named, and does not keep the others."""
    target.content.mkdir(exist_ok=True)
    domains = list(source.domains())
    moved, failed = 0, []
    for number, domain in enumerate(domains, 1):
        try:
            moved += _copy(source, target, domain, live=live)
        except WebarcError as error:
            failed.append(f"{domain}: {error}")
        progress("copy domains", number, len(domains))
    return Copied(len(domains), moved, tuple(failed))


def _copy(source: Archive, target: Archive, domain: str, *, live: bool) -> bool:
    """Whether something was new; then it was also looked whether all is there. Raises Damaged where it is not."""
    original, path = Store(source.repository(domain)), target.repository(domain)
    copy = Store(path) if path.is_dir() else Store.create(path)
    if not transfer.differing(original, copy):
        return False
    for _ in range(_TRIES_WITHOUT_LOCK):
        transfer.fetch(original.path, copy)
        if _same(source, original, copy, domain, live=live):
            break
    else:
        with locks.Turnstile(source.lock(domain)).shared():
            transfer.fetch(original.path, copy)
            if missing := transfer.differing(original, copy):
                raise Damaged(f"{missing[0]} of {original.path} did not come over")
    if complaints := transfer.connected(copy):
        raise Damaged(f"{copy.path} is not whole: {complaints[0]}")
    transfer.tidy(copy)
    return True


def _same(source: Archive, original: Store, copy: Store, domain: str, *, live: bool) -> bool:
    """Whether all refs are where the original's are now, read together as nobody moves them."""
    if not live:
        return not transfer.differing(original, copy)
    with locks.Turnstile(source.lock(domain)).shared():
        return not transfer.differing(original, copy)


# -- whose backup it is ------------------------------------------------------------------------------------------------


def _id(archive: Archive) -> str:
    """What tells this archive from others; the first backup makes it."""
    path = archive.root / "id"
    if not path.exists():
        scratch = archive.root / f".id-{os.getpid()}"
        scratch.write_text(f"{uuid.uuid4()}\n", "ascii")
        try:
            os.link(scratch, path)
        except FileExistsError:
            pass  # another backup was faster
        finally:
            scratch.unlink()
    return path.read_text("ascii").strip()


@contextmanager
def _held(folder: Path, *, must_exist: bool = False) -> Iterator[dict[str, Any] | None]:
    """Hold a backup alone; what its mark says, None for a new one. Raises UsageError where it is none."""
    # What a first backup leaves that was killed at once: its lock, and a mark that is not finished.
    ours = (".lock", f".{MARK}.")
    there = folder.is_dir() and not all(each.name.startswith(ours) for each in folder.iterdir())
    if must_exist and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds no backup: it has no {MARK}")
    if there and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds something that is no backup; give a folder of its own, or a new one")
    folder.mkdir(parents=True, exist_ok=True)
    with locks.exclusive_or_busy(folder / ".lock", f"{folder} is being written or read by another process"):
        yield _read(folder / MARK) if there else None


def _read(path: Path) -> dict[str, Any]:
    try:
        mark = jsonfile.read(path) or {}
        return {"id": str(mark["id"]), "layout": int(mark["layout"]), "finished": mark["finished"]}
    except (Damaged, ValueError, KeyError, TypeError):
        raise UsageError(f"{path} cannot be understood; is it a backup of webarcfs?") from None
