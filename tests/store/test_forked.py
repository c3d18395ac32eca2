"""A program that is a fork of the server of the tests is what an executed one is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked

pytestmark = pytest.mark.store

_TELL = """
import os, sys
print(sys.argv[1:], __name__, os.getcwd(), os.environ["WEBARC_ARCHIVE"], os.getpgid(0) == os.getpid())
print(sorted(map(int, os.listdir("/proc/self/fd")))[:3], sys.stdin.read(), file=sys.stderr)
"""
#: How programs end.
_ENDS = {
    "as it is": "pass",
    "with a number": "import sys; sys.exit(3)",
    "with a word": "import sys; sys.exit('no')",
    "with an error": "1 / 0",
    "by a signal": "import os; os.kill(os.getpid(), 15)",
    "by Ctrl-C": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "with a thread at work": "import threading; threading.Timer(0.2, print, ['x']).start()",
    "with a function of atexit": "import atexit; atexit.register(print, 'bye')",
    "with its output closed": "import os; os.close(1); print('x')",
}


@pytest.mark.parametrize("code", _ENDS.values(), ids=_ENDS)
def test_it_ends_as_a_program_does(code: str) -> None:
    command = [sys.executable, "-c", code]
    executed = subprocess.run(command, capture_output=True, text=True, check=False)
    fork = forked.run(command)
    assert (fork.returncode, fork.stdout) == (executed.returncode, executed.stdout)
    assert fork.stderr.splitlines()[-1:] == executed.stderr.splitlines()[-1:]


def test_it_has_its_own_arguments_folder_environment_session_and_handles(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _TELL, "a", "b"]
    environment = {**os.environ, "COLUMNS": forked.COLUMNS, "WEBARC_ARCHIVE": "here"}
    (tmp_path / "in").write_text("words")
    found = []
    for start in (forked.Popen, subprocess.Popen):
        with (tmp_path / "in").open("rb") as source:
            process = start(
                command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=tmp_path,
                start_new_session=True, **({} if start is forked.Popen else {"text": True}),
            )  # fmt: skip
            found.append((process.communicate(timeout=60), process.returncode))
    assert found[0] == found[1]


def test_it_is_killed_and_waited_for() -> None:
    with forked.Popen([sys.executable, "-c", "import time; time.sleep(300)"]) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        process.kill()
        assert process.wait(60) == process.poll() == -signal.SIGKILL


def test_what_python_reads_at_its_start_has_it_executed() -> None:
    code = "import sys; print(sys.flags.dev_mode, 'agent.cli' in sys.modules)"
    told = forked.run([sys.executable, "-c", code], env={**os.environ, "COLUMNS": forked.COLUMNS, "PYTHONDEVMODE": "1"})
    assert told.stdout == "True False\n"
    assert forked.run([sys.executable, "-c", code]).stdout == "False True\n"
