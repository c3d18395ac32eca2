"""`webarc`, called in the tests' own process, in one of its own, and by lines of documents."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from webarcfs.commands.cli import main

#: The command, as the console script starts it.
COMMAND = (sys.executable, "-c", "from webarcfs.commands.cli import main; main()")


def webarc(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command, in this process: its entry point with these words, and what it writes."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["webarc", *words])
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def webarc_bytes(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, for what it writes to a descriptor."""
    return subprocess.run([*COMMAND, *words], capture_output=True, check=False)


def in_shell(command: str, folder: Path, **environment: str) -> str:
    """What a line of a document writes, run by bash in a folder. Fails with what it says if it ends with an error."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["bash", "-e", "-o", "pipefail", "-c", command]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout
