"""`python -m tests.unsteady`: run the tests that failed beside others once more, alone, and judge them.

One that fails again has failed. One that passes alone is a defect too: it passes only where `tests/unsteady.txt` lists
it, with why. The exit code is 0 if each one is listed and passed now, else 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "unsteady.txt"
_LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"


class Verdict(StrEnum):
    """What is to be said of a test that failed beside others."""

    FAILED = "failed, beside others and alone"
    UNSTEADY = "unsteady: failed beside others, passed alone; a defect: repair it, or list it in tests/unsteady.txt"
    LISTED = "unsteady, and listed as such"


@dataclass(frozen=True, slots=True)
class Judged:
    """A test and its verdict; `why` is the line of the list."""

    test: str
    verdict: Verdict
    why: str = ""


def listed(text: str) -> dict[str, str]:
    """Return test → why it is unsteady, of lines `TEST: why`. Raises ValueError for another line."""
    tests: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        test, colon, why = line.partition(": ")
        if not colon or not why.strip() or "::" not in test:
            raise ValueError(f"tests/unsteady.txt: not `TEST: why`: {line}")
        tests[test] = why.strip()
    return tests


def judge(failed: Sequence[str], failed_again: Sequence[str], known: Mapping[str, str]) -> list[Judged]:
    """Return the verdicts on the tests that failed first, by those that failed again."""
    verdicts = []
    for test in failed:
        why = known.get(test.partition("[")[0], known.get(test, ""))
        if test in failed_again:
            verdicts.append(Judged(test, Verdict.FAILED))
        else:
            verdicts.append(Judged(test, Verdict.LISTED if why else Verdict.UNSTEADY, why))
    return verdicts


def _last_failed() -> list[str]:
    return sorted(json.loads(_LAST_FAILED.read_text("utf-8"))) if _LAST_FAILED.exists() else []


def main() -> int:
    """Run what failed again; print a line a test."""
    failed = _last_failed()
    if not failed:
        print("no test failed, and pytest did: see above")
        return 1
    print(f"once more, one at a time: {len(failed)} that failed beside others", flush=True)
    command = [sys.executable, "-m", "pytest", "-v", "--last-failed", "--last-failed-no-failures", "none"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode not in (0, 1):
        return 1
    verdicts = judge(failed, _last_failed(), listed(LIST.read_text("utf-8")))
    for judged in verdicts:
        print(f"{judged.test}: {judged.verdict}{f' ({judged.why})' if judged.why else ''}")
    return 0 if all(judged.verdict is Verdict.LISTED for judged in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
