"""An installed wheel finds its SQL statements and its schema, as a checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.store

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
from webarcfs.archive.config import packaged_files
from webarcfs.archive.document import data_xml
print(packaged_files.path("sql", "schema.sql"), packaged_files.path("xsd", "arc.xsd"))
assert "CREATE VIEW metadata" in packaged_files.sql("schema")
data_xml._schema()
"""


def test_wheel(tmp_path: Path) -> None:
    """`sql/` and `xsd/` lie at the top of the source tree, and inside the package in a wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(_ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert {f"webarcfs/_data/{path.relative_to(_ROOT)}" for path in (_ROOT / "sql").rglob("*.sql")} <= set(names)
    assert {"agent/cli.py", "webarcfs/mount/process/cli.py", "webarcfs/py.typed"} <= set(names)
    assert not [name for name in names if name.endswith(".so")], "what is compiled is for this machine"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.count(str(tmp_path / "site")) == 2
