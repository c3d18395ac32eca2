"""A process that does single system calls when told to, so that tests can interleave several step by step.

`Hands` starts one; `python -m tests.support.hands` is it: a JSON array of words a line in, `[errno, answer]` out.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from typing import Any

FLAGS = {
    "create": os.O_CREAT | os.O_EXCL | os.O_RDWR,
    "write": os.O_WRONLY,
    "anew": os.O_WRONLY | os.O_TRUNC,
    "append": os.O_WRONLY | os.O_APPEND,
    "rewrite": os.O_WRONLY | os.O_TRUNC,
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
        return error, base64.b64decode(answer["bytes"]) if isinstance(answer, dict) else answer

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


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
        case "list":
            return sorted(os.listdir(words[0]))  # noqa: PTH208
        case "size":
            return os.stat(words[0]).st_size  # noqa: PTH116
        case _:
            return {
                "close": os.close,
                "fsync": os.fsync,
                "truncate": os.ftruncate,
                "mkdir": os.mkdir,
                "rename": os.rename,
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
