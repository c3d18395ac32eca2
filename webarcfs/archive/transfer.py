"""A domain's repository copied to another place by git's own transfer: only what is not there yet travels.

For backups: no ref of the copy is ever deleted, and one moves only where the original's moved.
"""

from __future__ import annotations

from pathlib import Path

from webarcfs.archive import gitprocess, leftlocks
from webarcfs.archive.gitprocess import reason
from webarcfs.archive.store import INCOMING, Store

#: What is copied: all but scratch refs of publications under way.
_REFS = ("refs/heads/*", "refs/crawls/*", "refs/publications/*", "refs/additions/*")
#: With so many packs the small ones are put together.
_MANY_PACKS = 20


def fetch(source: Path, copy: Store) -> None:
    """Bring `copy` to where the repository `source` is, all refs in one transaction. Raises OSError, Damaged."""
    settings = ["-c", "fetch.unpackLimit=1", "-c", "pack.compression=1", "-c", "protocol.version=2"]
    leftlocks.remove(copy.path)  # of a backup that was killed
    command = ["fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    gitprocess.run([*settings, *command, str(source), *(f"+{each}:{each}" for each in _REFS)], copy.path)


def differing(source: Store, copy: Store) -> list[str]:
    """The refs of `source` that `copy` has not, or has elsewhere."""
    theirs = copy.refs("refs/")
    ours = source.refs("refs/")
    return [name for name, oid in ours.items() if not name.startswith(INCOMING) and theirs.get(name) != oid]


def connected(store: Store) -> list[str]:
    """What `git fsck --connectivity-only` misses, a line each: every object that a ref leads to must be there."""
    done = gitprocess.run(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"], store.path, check=False)
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
    found = [line for line in lines if not line.startswith("notice:")]
    return found if found or not done.returncode else [reason(done.stderr)]


def tidy(store: Store) -> None:
    """Put small packs together, where many transfers left many (git-repack(1), `--geometric`)."""
    if sum(1 for _ in (store.path / "objects" / "pack").glob("*.pack")) > _MANY_PACKS:
        gitprocess.run(["repack", "-d", "-q", "--geometric=2"], store.path)
