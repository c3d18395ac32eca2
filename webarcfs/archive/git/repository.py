"""The git store: one bare repository for each domain; its refs, its states, its creation and its check.

objects.py reads and writes its objects; `git fast-import` writes many, and refs move in transactions of
`git update-ref`, so that a publication is one compare-and-swap (/Ar-5…9/).
Several threads may read a `Repository` at once; it holds no lock and caches nothing that can change.

Copies a domain's repository by git's own transfer: only missing objects are sent.

For backups: no ref of the copy is ever deleted, and one moves only if the original's moved.

Checksums are read past the kernel's cache, from the disk itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import ObjectType

from webarcfs.archive.git import git_command
from webarcfs.archive.git.git_command import fail, reason
from webarcfs.archive.git.objects import Objects
from webarcfs.archive.git.writing import BIG_FILE, FastImport, Rewriting
from webarcfs.archive.model import metadata
from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.system.files import sync_folder, sync_tree

# == repository =======================================================================================================


MAIN = "refs/heads/main"
CRAWLS = "refs/crawls/"
PUBLICATIONS = "refs/publications/"
#: Prefix, followed by the time of a crawl: the tree that its publication saw, if less than the crawl's commit contains.
SEEN = "refs/seen/"
#: Prefix, followed by the time of a crawl: the list of what it met unchanged (`webarcfs.archive.model.url_lists`).
MET = "refs/met/"
#: Prefix of derived forms of documents.
FORMS = "refs/forms/"
INCOMING = "refs/incoming/"

#: Milliseconds for which git waits for another git that holds a ref's lock. Its default of 100 is too short while that
#: git syncs on a busy disk, perhaps one whose caller was killed, and whose lock on the domain is gone.
_PATIENT = ("-c", "core.filesRefLockTimeout=1000")
_MENDED = "`webarc-agent recover` repairs it, where it can"
_COMMIT: Final = int(ObjectType.COMMIT)
_NO_OBJECT = "0" * 40
# git_command.environment makes the refs files: git 2.39 has no option for that, and no other format.
_INIT = ("init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1")
#: Settings of a new repository beside the defaults.
CONFIG = {
    "core.fsync": "all",  # git 2.39 syncs neither refs nor loose objects by default
    "core.bigFileThreshold": str(BIG_FILE),
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",  # webarcfs repacks, under the domain's lock
}


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its parsed message. `time` is seconds since 1970."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    message: metadata.CommitMessage
    time: int


@dataclass(frozen=True, slots=True)
class PlainCommit:
    """A commit that is not of a domain. `time` is seconds since 1970."""

    tree: str
    parents: tuple[str, ...]
    message: str
    author: str
    time: int

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One step of a transaction: move `ref` from `old` to `new`; None means "does not exist", before or after."""

    ref: str
    new: str | None
    old: str | None


class Repository(Objects):
    """The repository of one domain."""

    #: The latest commit of main: its message may have thousands of lines, and each addition reads it.
    _newest: Commit | None = None

    @classmethod
    def create(cls, path: Path) -> Repository:
        """Make an empty bare repository at `path` in one step; one that another process made meanwhile is kept."""
        scratch = path.with_name(f".new-{os.getpid()}-{path.name}")
        shutil.rmtree(scratch, ignore_errors=True)
        git_command.run([*_INIT, str(scratch)])
        for key, value in CONFIG.items():
            git_command.run(["config", "--file", str(scratch / "config"), key, value])
        sync_tree(scratch)
        try:
            scratch.rename(path)
        except OSError:
            shutil.rmtree(scratch)
            if not path.is_dir():
                raise
        sync_folder(path.parent)
        return cls(path)

    # -- refs ----------------------------------------------------------------------------------------------------

    def ref(self, name: str) -> str | None:
        """Return the target of `name`, read from disk now; None when there is no such ref."""
        try:
            return str(self._repo.lookup_reference(name).target)
        except KeyError:
            return None
        except (pygit2.GitError, ValueError) as error:
            raise Damaged(f"{self.path}: {name} cannot be read: {error}; {_MENDED}") from None

    def refs(self, prefix: str) -> dict[str, str]:
        """Return all refs whose names start with `prefix`, in order of name, without the prefix."""
        targets = ((name, self.ref(prefix + name)) for name in self.ref_names(prefix))
        return {name: oid for name, oid in targets if oid is not None}

    def ref_names(self, prefix: str) -> list[str]:
        """Return the names of these refs, in order and without the prefix; no ref is read. Raises Damaged."""
        # Libgit2 reads packed-refs first, then lists files: a ref packed in between would be in neither.
        while True:
            packed = self._packed_refs()
            try:
                names = self._repo.listall_references()
            except pygit2.GitError as error:
                raise Damaged(f"{self.path}: its refs cannot be listed: {error}; {_MENDED}") from None
            if self._packed_refs() == packed:
                return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))

    def _packed_refs(self) -> tuple[int, int, int] | None:
        """Return a value that changes whenever refs are packed."""
        try:
            status = os.stat(f"{self.path}/packed-refs")  # noqa: PTH116 # a Path would double the cost
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def update_refs(self, updates: Sequence[RefUpdate]) -> None:
        """Move all refs or none; they have moved on disk when this returns. After a power cut some may have moved.

        Raises Busy when a ref does not have its old value, OSError on a full disk, Damaged otherwise.
        """
        git_command.sync_packs(self.path)
        commands = "\n".join(["start", *(_ref_command(update) for update in updates), "prepare", "commit", ""])
        while True:
            done = git_command.run([*_PATIENT, "update-ref", "--stdin"], self.path, commands.encode(), check=False)
            if not done.returncode:
                git_command.sync_refs(self.path, [update.ref for update in updates])
                return
            if not self._drop_left_lock(done.stderr):
                break
        rivalry = b"cannot lock ref" in done.stderr and b"No space left" not in done.stderr
        if rivalry and git_command.lock_in_the_way(done.stderr) is None:
            raise Busy(f"{self.path}: refs were not moved: {reason(done.stderr)}")
        fail(f"{self.path}: refs were not moved", done.stderr, self.path)

    def _drop_left_lock(self, stderr: bytes) -> bool:
        """Remove the lock file that git reports, if a killed git left it; return whether it is gone."""
        lock = git_command.lock_in_the_way(stderr)
        if lock is None:
            return False
        git_command.remove_left_locks(self.path)
        return not (self.path / lock).exists()

    # -- states ------------------------------------------------------------------------------------------------------

    def commit(self, oid: str) -> Commit:
        """Return the commit `oid`. Raises Damaged for another object, or a message that is not ours."""
        git_object = self._object(oid)
        if not isinstance(git_object, pygit2.Commit):
            raise Damaged(f"{self.path}: {oid} is no commit")
        parents = tuple(str(parent) for parent in git_object.parent_ids)
        return Commit(
            str(git_object.id),
            str(git_object.tree_id),
            parents,
            metadata.parse_message(git_object.message),
            git_object.commit_time,
        )

    def plain_commit(self, oid: str) -> PlainCommit:
        """Return a commit whose message may be of any kind. Raises Damaged for another object."""
        git_object = self._object(oid)
        if not isinstance(git_object, pygit2.Commit):
            raise Damaged(f"{self.path}: {oid} is no commit")
        parents = tuple(str(parent) for parent in git_object.parent_ids)
        return PlainCommit(
            str(git_object.tree_id), parents, git_object.message, git_object.author.name, git_object.commit_time
        )

    def tree_at(self, oid: str) -> str:
        """Return the tree of a commit of any kind. Raises Damaged for another object."""
        return self.plain_commit(oid).tree

    def tree_of(self, ref: str) -> tuple[str, str] | None:
        """Return commit and tree of a ref whose commits are of any kind; None without the ref."""
        oid = self.ref(ref)
        return None if oid is None else (oid, self.tree_at(oid))

    def head(self) -> Commit | None:
        """Return the newest state; None before the first crawl."""
        oid, newest = self.ref(MAIN), self._newest
        if oid is None or (newest is not None and newest.oid == oid):
            return newest if oid else None
        newest = self._newest = self.commit(oid)
        return newest

    def history(self, oid: str | None) -> Iterator[Commit]:
        """Yield the commit `oid` and its ancestors, newest first; history is linear."""
        while oid is not None:
            commit = self.commit(oid)
            yield commit
            oid = commit.parents[0] if commit.parents else None

    def ids(self) -> Iterator[str]:
        """Yield the names of all objects, unordered, some twice."""
        for oid in self._odb:
            yield str(oid)

    def is_commit(self, oid: str) -> bool:
        """Return whether an object is a commit, without reading it. Raises Damaged."""
        try:
            kind: int = self._odb.read_header(oid)[0]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None
        return kind == _COMMIT

    # -- publishing and upkeep ---------------------------------------------------------------------------------------

    def importer(self, tree: str | None) -> FastImport:
        """Return an importer of many files into `tree`; None for an empty one."""
        return FastImport(self.path, tree, self.read_tree)

    def files(self, tree: str, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield path and blob of each file below a tree, with `prefix` before the paths."""
        for entry in self.each(tree):
            path = f"{prefix}/{entry.name}"
            if entry.is_tree:
                yield from self.files(entry.oid, path)
            else:
                yield path, entry.oid

    def rewriting(self, tree: str | None) -> Rewriting:
        """Return a rewriter for many changes to `tree`, of files that are in the repository."""
        return Rewriting(self.path, tree, self.read_tree)

    def drop_scratch(self) -> None:
        """Remove remains of crashes: locks, scratch refs, unfinished packs, crash reports. Call it under the lock."""
        git_command.remove_left_locks(self.path)
        stale = self.refs(INCOMING)
        if stale:
            self.update_refs([RefUpdate(INCOMING + name, None, oid) for name, oid in stale.items()])
        for pattern in ("fast_import_crash_*", "objects/pack/tmp_*", "objects/pack/*.keep", "objects/??/tmp_obj_*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def check(self) -> list[str]:
        """Return the findings of `git fsck`, a line each; none for a sound repository."""
        code, findings = self._fsck()
        if code < 0:
            # git 2.39 reads beyond a commit-graph whose table of ids is damaged, and crashes (SIGBUS).
            without, others = self._fsck("-c", "core.commitGraph=false")
            what = "the commit-graph" if without >= 0 else "an object"
            findings = [*findings, f"git crashed by signal {-code}: {what} is damaged", *others]
        return findings or ([f"it ended with {code}, and did not say why"] if code else [])

    def _fsck(self, *settings: str) -> tuple[int, list[str]]:
        arguments = [*settings, "fsck", "--full", "--strict", "--no-dangling", "--no-progress"]
        done = git_command.run(arguments, self.path, check=False)
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
        return done.returncode, [line for line in lines if not line.startswith("notice:")]


def _ref_command(update: RefUpdate) -> str:
    if update.new is None:
        return f"delete {update.ref} {update.old or ''}".rstrip()
    return f"update {update.ref} {update.new} {update.old or _NO_OBJECT}"


# == transfer =========================================================================================================


#: The refs to copy: all but scratch refs of publications under way.
_REFS = tuple(f"{prefix}*" for prefix in ("refs/heads/", CRAWLS, PUBLICATIONS, SEEN, MET, FORMS, "refs/additions/"))
#: From this number of packs on, the small ones are merged.
_MANY_PACKS = 20


#: Git's files that end in a checksum of the bytes before it (gitformat-pack(5), gitformat-commit-graph(5)).
_SUMMED = (
    *(f"objects/pack/*.{kind}" for kind in ("pack", "idx", "rev", "bitmap", "mtimes")),
    "objects/pack/multi-pack-index",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/*.graph",
)
_CHECKSUM = 20  # bytes, SHA-1
_READ_AT_ONCE = 1 << 20


def fetch(source: Path, copy: Repository, refs: Sequence[str] = _REFS) -> None:
    """Update `copy` from the repository `source`, all refs in one transaction. Raises OSError, Damaged."""
    settings = ["-c", "fetch.unpackLimit=1", "-c", "pack.compression=1", "-c", "protocol.version=2"]
    git_command.remove_left_locks(copy.path)  # left by a killed backup
    command = ["fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    git_command.run([*settings, *command, str(source), *(f"+{ref}:{ref}" for ref in refs)], copy.path)


def differing(source: Repository, copy: Repository) -> list[str]:
    """Return the refs of `source` that `copy` lacks, or has with another target."""
    theirs = copy.refs("refs/")
    ours = source.refs("refs/")
    return [name for name, oid in ours.items() if not name.startswith(INCOMING) and theirs.get(name) != oid]


def rotten(repository: Path) -> list[str]:
    """Return the files of a repository that do not match their checksum, a line each.

    They are all read from the disk, and nothing is unpacked. Loose objects are left out: a copy has none.
    """
    findings = []
    for path in sorted(path for pattern in _SUMMED for path in repository.glob(pattern)):
        if not _fits(path):
            findings.append(f"{path.relative_to(repository)}: it does not fit its checksum")
    return findings


def _fits(path: Path) -> bool:
    digest, buffer = hashlib.sha1(usedforsecurity=False), memoryview(bytearray(_READ_AT_ONCE))
    try:
        with path.open("rb", buffering=0) as file:
            left = os.fstat(file.fileno()).st_size - _CHECKSUM
            # Bytes in the page cache would say nothing of the disk; and other programs need that memory.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while left > 0:
                read = file.readinto(buffer[: min(left, _READ_AT_ONCE)])
                if not read:
                    return False  # it was truncated just now
                digest.update(buffer[:read])
                left -= read
            same = file.read() == digest.digest()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return same
    except OSError:
        return False  # the disk cannot even read it


def connected(store: Repository) -> list[str]:
    """Return the findings of `git fsck --connectivity-only`, a line each: every object reachable from a ref exists."""
    done = git_command.run(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"], store.path, check=False)
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
    findings = [line for line in lines if not line.startswith("notice:")]
    return findings if findings or not done.returncode else [reason(done.stderr)]


def tidy(store: Repository) -> None:
    """Merge small packs after many transfers (git-repack(1), `--geometric`)."""
    if sum(1 for _ in (store.path / "objects" / "pack").glob("*.pack")) > _MANY_PACKS:
        git_command.run(["repack", "-d", "-q", "--geometric=2"], store.path)
