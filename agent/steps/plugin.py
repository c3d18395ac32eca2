"""Checks of others, `package.module:function`, each in a process with a time limit: one that raises has a finding.

The function gets a `Snapshot`, and returns a text for each thing that is wrong.
`python -m agent.steps.plugin ARCHIVE RECORD FUNCTION RESULT` is that process.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

from agent.steps.context import Snapshot
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import WebarcError

#: Seconds that a check may take.
PATIENCE = 600.0
#: Findings of a check that are kept, and characters of each.
_MOST, _LONGEST = 100, 500


def findings(archive: Archive, record: str, function: str, scratch: Path, patience: float = PATIENCE) -> list[str]:
    """Return what a check finds wrong with a snapshot; that it raised, died or took too long is a finding, too."""
    scratch.mkdir(parents=True, exist_ok=True)
    result = scratch / "findings.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", __spec__.name, str(archive.root), record, function, str(result)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return [f"took more than {patience:g} s"]
    try:
        raw_findings = json.loads(result.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return [f"ended with {done.returncode}: {last[:_LONGEST]}"]
    return [str(finding)[:_LONGEST] for finding in raw_findings][:_MOST]


def main(root: str, name: str, function: str, result: str) -> int:
    """Run a check, and write what it found."""
    archive = directory.open_archive(Path(root))
    try:
        record, _ = Catalogue(archive).read(name)
        module, _, attribute = function.partition(":")
        check = getattr(importlib.import_module(module), attribute)
        faults = [str(finding) for finding in check(Snapshot(archive, record)) or ()]
    except WebarcError as error:
        faults = [str(error)]
    except (Exception, SystemExit) as error:  # foreign code may raise any exception
        faults = [f"raised {type(error).__name__}: {error}"]
    Path(result).write_text(json.dumps(faults[:_MOST]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
