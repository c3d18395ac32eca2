"""A process that does single system calls when told to, so that tests can interleave several step by step.

`Hands` starts one; `python -m tests.support.hands` is it: a JSON array of words a line in, `[errno, answer]` out.
"""

from __future__ import annotations

import base64
import hashlib
import json
import mmap
import os
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from webarcfs.archive.system.files import sync_folder

FLAGS = {
    "create": os.O_CREAT | os.O_EXCL | os.O_RDWR,
    "write": os.O_RDWR,
    "append draft": os.O_RDWR | os.O_APPEND,
    "anew": os.O_RDWR | os.O_TRUNC,
    "append": os.O_WRONLY | os.O_APPEND,
    "rewrite": os.O_WRONLY | os.O_TRUNC,
    "hold": os.O_RDONLY,
}


class Hands:
    """The other side of such a process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hands"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __call__(self, what: str, *words: Any) -> tuple[int, Any]:
        """Do it; errno (0: it succeeded) and what came back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, *words]).encode() + b"\n")
        self._process.stdin.flush()
        error, answer = json.loads(self._process.stdout.readline())
        if not isinstance(answer, dict):
            return error, answer
        data = base64.b64decode(answer["bytes"])
        return error, (answer["found"], data) if "found" in answer else data

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def digest(data: bytes) -> str:
    """What stands for the bytes of a file in a `look`."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def look(top: str, whole: str, but: Iterable[str] = ()) -> dict[str, Any]:
    """All that is in a folder, through to its depth: name → size, bytes read and their digest; None for a folder.

    One call for the many that it takes: the test would else spend its time on telling what to do. The bytes of the
    file `whole` come, too. Folders in `but` are named and not entered.
    """
    found: dict[str, Any] = {}
    document = b""
    folders = [""]
    while folders:
        folder = folders.pop()
        for name in os.listdir(top + folder):  # noqa: PTH208
            path = f"{folder}/{name}"
            status = os.stat(top + path)  # noqa: PTH116
            if stat.S_ISDIR(status.st_mode):
                found[path[1:]] = None
                folders += [path] if path[1:] not in but else []
                continue
            with open(top + path, "rb") as file:  # noqa: PTH123
                data = file.read()
            found[path[1:]] = [status.st_size, len(data), digest(data)]
            document = data if path[1:] == whole else document
    return {"found": found, "bytes": base64.b64encode(document).decode()}


def mapped(fd: int, at: int, text: str) -> str:
    """Write through a mapping of a file, within its size; a digest of all that the mapping shows then."""
    with mmap.mmap(fd, 0) as mapping:  # which copies the handle, and closes the copy
        mapping[at : at + len(text)] = text.encode("latin-1")
        return digest(mapping[:])


def do(what: str, words: list[Any]) -> Any:
    """One system call, or the few that reading takes."""
    match what:
        case "open":
            return os.open(words[0], FLAGS[words[1]], 0o644)
        case "write":
            return os.write(words[0], words[1].encode("latin-1"))
        case "read":
            with open(words[0], "rb") as file:  # noqa: PTH123 # as plain as can be
                return {"bytes": base64.b64encode(file.read()).decode()}
        case _:
            return {
                "close": os.close,
                "fsync": os.fsync,
                "look": look,
                "held": lambda fd, size: digest(os.pread(fd, size, 0)),
                "seen": lambda fd, size: [
                    os.fstat(fd).st_size,
                    os.lseek(fd, 0, os.SEEK_END),
                    digest(os.pread(fd, size, 0)),
                ],
                "pwrite": lambda fd, text, at: os.pwrite(fd, text.encode("latin-1"), at),
                "close copy": lambda fd: os.close(os.dup(fd)),
                "map": mapped,
                "truncate": os.ftruncate,
                "mkdir": os.mkdir,
                "rename": os.rename,
                "fsync folder": lambda path: sync_folder(Path(path)),
                "unlink": os.unlink,
                "rmdir": os.rmdir,
                "cut": lambda path: os.truncate(path, 0),
                "chmod": lambda path: os.chmod(path, 0o640),  # noqa: PTH101
                "utime": lambda path: os.utime(path, (1, 1)),
            }[what](*words)


def main() -> None:
    """Until stdin ends."""
    for line in sys.stdin:
        what, *words = json.loads(line)
        try:
            answer = [0, do(what, words)]
        except OSError as error:
            answer = [error.errno, None]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
