"""Locks of git as it makes them: held by a git that lives, or left by one that was killed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(repository: Path, *refs: str) -> Iterator[list[Path]]:
    """The locks of refs, with the git that holds them until the block ends; it changes nothing."""
    with _holder(repository, refs) as process:
        yield [repository / f"{ref}.lock" for ref in refs]
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()


def leave(repository: Path, *refs: str) -> list[Path]:
    """The locks of refs, whose git was killed as it held them."""
    with _holder(repository, refs):
        pass
    locks = [repository / f"{ref}.lock" for ref in refs]
    assert all(lock.exists() for lock in locks)
    return locks


@contextmanager
def _holder(repository: Path, refs: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """A git that holds the locks; killed in the end, if it lives."""
    tree = subprocess.run(
        ["git", "mktree"], cwd=repository, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
    ).stdout.strip()
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "-m", "x", tree.decode()]
    commit = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, check=True).stdout.strip()
    steps = ["start", *(f"update {ref} {commit.decode()}" for ref in refs), "prepare"]
    process = subprocess.Popen(
        ["git", "update-ref", "--stdin"], cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(f"{step}\n" for step in steps).encode())
        process.stdin.flush()
        assert process.stdout.readline() == b"start: ok\n"
        assert process.stdout.readline() == b"prepare: ok\n"
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
