"""A domain's repository copied to another place by git's own transfer: only what is not there yet travels.

For backups: no ref of the copy is ever deleted, and one moves only where the original's moved.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from webarcfs.archive.git import git_command, leftlocks
from webarcfs.archive.git.git_command import reason
from webarcfs.archive.git.repository import CRAWLS, FORMS, INCOMING, PUBLICATIONS, SEEN, Repository

#: What is copied: all but scratch refs of publications under way.
_REFS = tuple(f"{each}*" for each in ("refs/heads/", CRAWLS, PUBLICATIONS, SEEN, FORMS, "refs/additions/"))
#: With so many packs the small ones are put together.
_MANY_PACKS = 20


#: Files of git's that end in a checksum of what is before it (gitformat-pack(5), gitformat-commit-graph(5)).
_SUMMED = (
    *(f"objects/pack/*.{kind}" for kind in ("pack", "idx", "rev", "bitmap", "mtimes")),
    "objects/pack/multi-pack-index",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/*.graph",
)
_CHECKSUM = 20  # bytes, SHA-1
_READ_AT_ONCE = 1 << 20


def fetch(source: Path, copy: Repository, refs: Sequence[str] = _REFS) -> None:
    """Bring `copy` to where the repository `source` is, all refs in one transaction. Raises OSError, Damaged."""
    settings = ["-c", "fetch.unpackLimit=1", "-c", "pack.compression=1", "-c", "protocol.version=2"]
    leftlocks.remove(copy.path)  # of a backup that was killed
    command = ["fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    git_command.run([*settings, *command, str(source), *(f"+{each}:{each}" for each in refs)], copy.path)


def differing(source: Repository, copy: Repository) -> list[str]:
    """The refs of `source` that `copy` has not, or has elsewhere."""
    theirs = copy.refs("refs/")
    ours = source.refs("refs/")
    return [name for name, oid in ours.items() if not name.startswith(INCOMING) and theirs.get(name) != oid]


def rotten(repository: Path) -> list[str]:
    """The files of a repository whose checksum is not that of what is in them, a line each.

    They are read from the disk, all of them, and nothing is unpacked. Loose objects are left out: a copy has none.
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
            # What is still in memory would say nothing of the disk; and others need that memory.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while left > 0:
                read = file.readinto(buffer[: min(left, _READ_AT_ONCE)])
                if not read:
                    return False  # it was cut off just now
                digest.update(buffer[:read])
                left -= read
            same = file.read() == digest.digest()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return same
    except OSError:
        return False  # the disk cannot even read it


def connected(store: Repository) -> list[str]:
    """What `git fsck --connectivity-only` misses, a line each: every object that a ref leads to must be there."""
    done = git_command.run(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"], store.path, check=False)
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
    found = [line for line in lines if not line.startswith("notice:")]
    return found if found or not done.returncode else [reason(done.stderr)]


def tidy(store: Repository) -> None:
    """Put small packs together, where many transfers left many (git-repack(1), `--geometric`)."""
    if sum(1 for _ in (store.path / "objects" / "pack").glob("*.pack")) > _MANY_PACKS:
        git_command.run(["repack", "-d", "-q", "--geometric=2"], store.path)
