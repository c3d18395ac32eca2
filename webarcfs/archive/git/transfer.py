"""Copies a domain's repository by git's own transfer: only missing objects are sent.

For backups: no ref of the copy is ever deleted, and one moves only if the original's moved.

Checksums are read past the kernel's cache, from the disk itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from webarcfs.archive.git import git_command, leftlocks
from webarcfs.archive.git.git_command import reason
from webarcfs.archive.git.repository import CRAWLS, FORMS, INCOMING, MET, PUBLICATIONS, SEEN, Repository

#: The refs to copy: all but scratch refs of publications under way.
_REFS = tuple(f"{each}*" for each in ("refs/heads/", CRAWLS, PUBLICATIONS, SEEN, MET, FORMS, "refs/additions/"))
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
    leftlocks.remove(copy.path)  # left by a killed backup
    command = ["fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    git_command.run([*settings, *command, str(source), *(f"+{each}:{each}" for each in refs)], copy.path)


def differing(source: Repository, copy: Repository) -> list[str]:
    """Return the refs of `source` that `copy` lacks, or has with another target."""
    theirs = copy.refs("refs/")
    ours = source.refs("refs/")
    return [name for name, oid in ours.items() if not name.startswith(INCOMING) and theirs.get(name) != oid]


def rotten(repository: Path) -> list[str]:
    """Return the files of a repository that do not match their checksum, a line each.

    They are all read from the disk, and nothing is unpacked. Loose objects are left out: a copy has none.
    """
    found = []
    for path in sorted(path for pattern in _SUMMED for path in repository.glob(pattern)):
        if not _fits(path):
            found.append(f"{path.relative_to(repository)}: it does not fit its checksum")
    return found


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
    found = [line for line in lines if not line.startswith("notice:")]
    return found if found or not done.returncode else [reason(done.stderr)]


def tidy(store: Repository) -> None:
    """Merge small packs after many transfers (git-repack(1), `--geometric`)."""
    if sum(1 for _ in (store.path / "objects" / "pack").glob("*.pack")) > _MANY_PACKS:
        git_command.run(["repack", "-d", "-q", "--geometric=2"], store.path)
