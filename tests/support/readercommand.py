"""`webarc`, called in the tests' own process."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout

import pytest

from webarcfs.commands.cli import main


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
