"""Which form a mount's process runs, and copies of the package whose sources or compiled form may be spoilt."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from webarcfs.compiled import loader

ROOT = Path(__file__).parents[2]


def runs_compiled(pid: int) -> bool:
    """Whether a process has the library of compiled modules in memory."""
    return loader.LIBRARY in Path(f"/proc/{pid}/maps").read_text("utf-8")


def copied(folder: Path) -> Mapping[str, str]:
    """A copy of the package, with the compiled form that it must have; the environment in which that copy is run."""
    if wrong := loader.fault(loader.place()):
        pytest.fail(f"the modules are not compiled; `make compiled` does it ({wrong})")
    shutil.copytree(ROOT / "webarcfs", folder / "webarcfs", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("sql", "xsd"):
        (folder / name).symlink_to(ROOT / name)
    return {"PYTHONPATH": str(folder), loader.INTERPRETED: ""}
