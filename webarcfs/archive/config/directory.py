"""The archive as a directory: its paths, making a new one, supported layouts, and webarcfs's own SQL and schemas.

All other modules take paths from an `Archive`; none composes one.

A checkout has the SQL statements and schemas in `sql/` and `xsd/` at the top; a wheel has the same folders inside the
package, since a wheel has no other place for them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from webarcfs.archive.config import named_archives
from webarcfs.archive.model.errors import Damaged, NotAnArchive, NotFound, UsageError, WebarcError
from webarcfs.archive.system.files import replacing, sync_tree

# == packaged files ===================================================================================================


_PACKAGE = Path(__file__).resolve().parents[2]
_ROOTS = (_PACKAGE / "_data", _PACKAGE.parent)


def path(folder: str, name: str) -> Path:
    """Return the path of `<folder>/<name>`; `folder` is `sql` or `xsd`. Raises FileNotFoundError if it is missing."""
    for root in _ROOTS:
        candidate = root / folder / name
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{folder}/{name} is missing from this installation of webarcfs; install it again")


@cache
def sql(name: str) -> str:
    """Return the text of `sql/<name>.sql`, as in `links/add_page` (/Db-2/: every statement is a file of its own)."""
    return path("sql", f"{name}.sql").read_text("utf-8")


# == directory ========================================================================================================


#: Layout that this program writes, and the oldest that it reads and continues.
LAYOUT = 3
OLDEST = 1
#: The oldest layout with a catalogue, redirects and links.
WITH_CATALOGUE = 2
#: The commands' default archive.
DEFAULT = "/srv/webarc"

#: The file that marks a backup; and the one that marks an unfinished restore.
BACKUP = "backup.json"
RESTORING = ".restoring"
#: What a partial restore could not bring back, a line each, until a user removes it.
MISSING = "missing"
#: The folder beside webarc.toml with a publication a file.
PUBLICATIONS = "publications.d"
#: The folder with a collection a file, and their pictures.
COLLECTIONS = "collections.d"
_FOLDERS = ("content", "filters", "xsd", "journal", "jobs", "reports", "lock", "log")
_SUFFIX = ".git"


class Archive:
    """An archive's root and the paths below it, made once. It is a value: it never changes."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self._locks: Final = root / "lock"
        #: Contains the version of the layout.
        self.format: Final = root / "format"
        #: webarc.toml; may be missing.
        self.settings: Final = root / "webarc.toml"
        #: The files of publications, beside webarc.toml; may be missing.
        self.publications: Final = root / PUBLICATIONS
        #: The files of collections and their pictures; may be missing.
        self.collections: Final = root / COLLECTIONS
        #: The folder of the domains' repositories.
        self.content: Final = root / "content"
        #: The bare repository of the records that describe crawls; made with the first one.
        self.catalogue: Final = root / "catalogue.git"
        #: The lock file that lets one process at a time write records.
        self.catalogue_lock: Final = self._locks / ".catalogue"
        #: people.toml: persons, roles, login names; may be missing.
        self.people: Final = root / "people.toml"
        #: When tokens of persons were used last, and from where; derived, and for its owner alone.
        self.token_uses: Final = self._locks / "token-uses.json"
        #: The lock file that lets one process at a time write the uses of tokens.
        self.token_uses_lock: Final = self._locks / ".token-uses"
        #: access.aclj: the URLs that readers may not see; may be missing.
        self.access_rules: Final = root / "access.aclj"
        #: access-reasons.json: why rules of access.aclj were made, for staff alone; may be missing.
        self.access_reasons: Final = root / "access-reasons.json"
        #: Settings of the converter of pages, conf/tidy.conf; where the file is, snapshots are converted.
        self.converter_settings: Final = root / "conf" / "tidy.conf"
        #: formats.toml: for each extension the programs that make such files, and read them; may be missing.
        self.formats: Final = root / "formats.toml"
        #: types.toml: descriptions of MIME types, and their extensions; may be missing.
        self.types: Final = root / "types.toml"
        #: The lock file that lets one command at a time change people, access rules and publications.
        self.settings_lock: Final = self._locks / ".settings"
        #: catalogue.db; derived from the catalogue.
        self.catalogue_database: Final = root / "catalogue.db"
        #: The lock file that lets one process at a time remove a damaged catalogue.db.
        self.catalogue_database_lock: Final = self._locks / ".catalogue-db"
        #: webarc.db; derived.
        self.database: Final = root / "webarc.db"
        #: links.db, unless `[index] links = false`; derived.
        self.links: Final = root / "links.db"
        #: The folder of the full-text index, unless `[index] search = false`; derived.
        self.search: Final = root / "search"
        #: The lock file that lets one process at a time write the full-text index.
        self.search_lock: Final = self._locks / ".search"
        #: The feed; derived.
        self.changes: Final = root / "changes"
        #: Settings files of filter modules (/Fi-2/).
        self.filters: Final = root / "filters"
        #: Schemas that users add for their data nodes (/Xm-3.3/).
        self.schemas: Final = root / "xsd"
        #: A folder for each running or interrupted job.
        self.jobs: Final = root / "jobs"
        #: The logs of confirmed additions that git does not have yet, and their large bodies.
        self.journal: Final = root / "journal"
        #: A folder for each finished job.
        self.reports: Final = root / "reports"
        #: Log files.
        self.log: Final = root / "log"
        #: What people were told, and the notifications that wait.
        self.notifications: Final = root / "notify.db"
        #: The lock file that lets one process at a time deliver notifications.
        self.notifications_lock: Final = self._locks / ".notify"
        #: The lock file that lets one process at a time open, and make, the file of notifications.
        self.notifications_opening_lock: Final = self._locks / ".notifications-open"
        #: The counter of publications, its lock, and the publications under way; no domain can have this name.
        self.sequence: Final = self._locks / ".sequence"
        #: The folder of those who ask mounts to let provisional files settle, while there are any.
        self.settle_requests: Final = self._locks / ".settle"
        #: The lock file that lets one process at a time rebuild links.db.
        self.links_lock: Final = self._locks / ".links"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Archive) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def __repr__(self) -> str:
        return f"Archive({self.root!r})"

    def repository(self, domain: str) -> Path:
        """The bare repository of `domain`, which need not exist."""
        return self.content / f"{domain}{_SUFFIX}"

    def lock(self, domain: str) -> Path:
        """The lock file of the state of `domain` that readers see (/Ar-2.2/)."""
        return _lock(self._locks, domain)

    def publishing_lock(self, domain: str) -> Path:
        """The lock file that lets one crawl at a time prepare its commit on `domain`."""
        return self._locks / f".publish-{domain}"

    def committing_lock(self, domain: str) -> Path:
        """The lock file that lets one process at a time prepare a commit of additions to `domain`."""
        return self._locks / f".commit-{domain}"

    def names_lock(self, domain: str) -> Path:
        """The lock file that lets one mount at a time claim names of additions to `domain`."""
        return _lock(self._locks, f".names-{domain}")

    def server_lock(self, domain: str) -> Path:
        """The lock file that limits a server to one wget at a time; its mtime is the time of its last request."""
        return self._locks / f".server-{domain}"

    def record_lock(self, record: str) -> Path:
        """The lock file that lets one process at a time work on the snapshot of a record."""
        return self._locks / f".record-{record}"

    def publication_lock(self, publication: str) -> Path:
        """The lock file that lets one process at a time crawl a publication, or import for it."""
        return self._locks / f".publication-{publication}"

    @property
    def is_there(self) -> bool:
        """Whether the archive still exists at its path: not removed, and its disk mounted."""
        return self.content.is_dir()

    def missing(self, what: str) -> WebarcError:
        """Return the error for something missing in the archive: NotFound, or Damaged while the archive itself is gone.

        A program that mirrors a mount takes NotFound for deleted.
        """
        if self.is_there:
            return NotFound(what)
        return Damaged(f"{self.root} is gone: it was removed, or its disk is not mounted")

    def domains(self) -> Iterator[str]:
        """Return the domains with a repository, in order."""
        names = (entry.name for entry in os.scandir(self.content) if entry.name.endswith(_SUFFIX) and entry.is_dir())
        return iter(sorted(name[: -len(_SUFFIX)] for name in names if not name.startswith(".")))


@lru_cache(maxsize=1000)
def _lock(folder: Path, name: str) -> Path:
    """Cached: each addition needs it several times, and a Path costs more than its use."""
    return folder / name


def create(root: Path, settings: str = "") -> Archive:
    """Make a new, empty archive in `root`, which may exist if it is an empty folder; with `settings` as webarc.toml.

    Of two processes at once, one makes it. Raises UsageError when `root` is not empty, OSError when the archive cannot
    be made.
    """
    if root.exists() and not root.is_dir():
        refuse_full(root)
    root.mkdir(parents=True, exist_ok=True)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not _was_interrupted(root):
            refuse_full(root)
        archive = make_folders(root)
        archive.changes.touch()
        if settings:
            archive.settings.write_text(settings, "utf-8")
        finish(archive)
        return archive
    finally:
        os.close(folder)


def _was_interrupted(root: Path) -> bool:
    """Return whether a folder has nothing but what an interrupted `create` leaves."""
    names = {path.name for path in root.iterdir()}
    archive = Archive(root)
    files = (archive.changes, archive.settings)
    return (
        names <= {*_FOLDERS, *(file.name for file in files)}
        and all((root / name).is_dir() and not any((root / name).iterdir()) for name in names & {*_FOLDERS})
        and len(names & {*_FOLDERS}) > 0
        and not (archive.changes.exists() and archive.changes.stat().st_size)
    )


def refuse_full(root: Path) -> None:
    """Raises UsageError if `root` exists and is not an empty folder."""
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return
    if (root / "format").exists():
        layout_of(root)  # a damaged one says so
        raise UsageError(f"{root} is an archive already; nothing was changed")
    if (root / BACKUP).exists():
        raise UsageError(f"{root} is a backup; `webarc-agent restore {root} ARCHIVE` makes an archive of it elsewhere")
    if (root / RESTORING).exists():
        raise UsageError(f"{root} is an archive whose restore has not ended; `webarc-agent restore` resumes it")
    raise UsageError(f"{root} is not an empty folder; give a new one, so that nothing of yours is mixed with it")


def make_folders(root: Path) -> Archive:
    """Make the missing folders of an archive; without `format` it is no archive yet."""
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    return Archive(root.resolve())


def finish(archive: Archive) -> None:
    """Turn the folders into an archive, durably."""
    # Last: a folder without it is no archive, which distinguishes an interrupted `init` or `restore`.
    archive.format.write_text(f"{LAYOUT}\n", "ascii")
    sync_tree(archive.root)


def open_archive(root: Path) -> Archive:
    """Return the archive in `root`. Raises NotAnArchive when there is none, or for an unsupported layout."""
    layout = layout_of(root)
    if layout > LAYOUT:
        raise NotAnArchive(
            f"{root} has layout {layout}, this program knows up to {LAYOUT}; use the webarcfs that wrote it, or a newer"
        )
    if layout < OLDEST:
        raise NotAnArchive(f"{root} has layout {layout}; this program knows {OLDEST} to {LAYOUT}")
    return Archive(root.resolve())


def raise_layout(archive: Archive) -> bool:
    """Raise an archive to this program's layout, durably; return whether it had an older one.

    The process that holds lock/.sequence calls it before it writes anything that older programs do not understand: from
    then on they refuse the archive. Nothing else changes, since this program reads both. Raises OSError.
    """
    if layout_of(archive.root) >= LAYOUT:
        return False
    scratch = archive.root / ".format.new"
    scratch.unlink(missing_ok=True)  # left by a process that was killed here
    with replacing(archive.format, scratch) as file:
        file.write(f"{LAYOUT}\n".encode())
    return True


def layout_of(root: Path) -> int:
    """Return the layout of the archive in `root`. Raises NotAnArchive when there is none."""
    try:
        text = (root / "format").read_text("ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        raise NotAnArchive(f"{root} holds no archive; {_instead(root)}") from None
    except UnicodeDecodeError:
        text = "unreadable"
    if not text.isdecimal():
        raise NotAnArchive(f"{root}/format says {text!r}, which is no layout version")
    return int(text)


def _instead(root: Path) -> str:
    """Return what a folder that is no archive contains, and the remedy."""
    if (root / RESTORING).exists():
        return f"its restore has not ended: `webarc-agent restore BACKUP {root}` resumes it"
    if (root / BACKUP).exists():
        return f"it is a backup, of which `webarc-agent restore {root} ARCHIVE` makes one"
    made = f"`webarc-agent init {root}` makes one"
    if root == Path(DEFAULT):
        return f"{made}; an archive elsewhere is named on the command line, or by $WEBARC_ARCHIVE"
    return made


def default_root(given: str | None) -> Path:
    """Return the archive of a command, absolute: its argument, else `$WEBARC_ARCHIVE`, else `/srv/webarc`.

    A word without a slash that is no file here is looked up in the lists of names. Raises NotAnArchive if none has it,
    SettingsError for a list with faults.
    """
    text = given or os.environ.get("WEBARC_ARCHIVE") or DEFAULT
    if "/" in text or os.path.lexists(text):
        return Path(text).absolute()
    try:
        named = named_archives.find_archive(text)
    except OSError as error:
        raise NotAnArchive(f"there is no folder {text!r} here, and names cannot be looked up: {error}") from None
    if named is None:
        looked_up = " or ".join(map(str, named_archives.lists()))
        raise NotAnArchive(
            f"there is no folder {text!r} here, and no archive of that name in {looked_up}; "
            "`webarc-agent archives` lists the names"
        )
    return named.root
