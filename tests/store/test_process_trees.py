"""What is below a process is seen, with its costs, also where it outlives its parent or has a PID namespace."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.process_trees import WatchedTree, processes_below
from tests.support.sources import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.store

_BUSY = "import time\nwhile time.process_time() < 0.5: pass"
_ORPHANS = """
import os, subprocess
from tests.support.process_trees import adopt_orphans, processes_below, reap, wait_for_none
adopt_orphans()
subprocess.run(["sh", "-c", "setsid sleep 600 & exec sleep 0"], check=True)
left = wait_for_none(0.2)
print([process.name for process in left])
os.kill(left[0].pid, 9)
print(wait_for_none(60))
reap()  # it may have ended between the last look and now
print(processes_below(os.getpid()))
"""


def test_a_tree_costs_what_its_processes_cost() -> None:
    with WatchedTree() as watched:
        subprocess.run(["sh", "-c", f'"$0" -c "{_BUSY}"; exit 0', sys.executable], check=True)
    assert 0.4 <= watched.cost.beside <= 2.0
    assert watched.cost.browser == 0
    assert watched.cost.memory > 1 << 20


def test_processes_of_another_name_space_are_below() -> None:
    if os.geteuid():
        pytest.skip("needs root, for a PID namespace")
    command = ["unshare", "--pid", "--fork", "--kill-child", "sleep", "600"]
    with subprocess.Popen(command) as process:
        try:
            until(lambda: [p for p in processes_below(process.pid) if p.command == ["sleep", "600"]], "its child")
        finally:
            process.kill()
    until(lambda: processes_below(process.pid) == [], "the end of its child")


def test_orphans_are_found() -> None:
    done = subprocess.run([sys.executable, "-c", _ORPHANS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("['sleep']\n[]\n[]\n", 0), done.stderr
