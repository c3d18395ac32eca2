"""`python -m webarcfs.compiled.build` on a package of one small module: what it makes, for whom, and what it says."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compiled import ROOT
from webarcfs.compiled import loader

pytestmark = pytest.mark.store

_PARTS = (
    "__init__.py",
    "compiled/mypyc_build.py",
    "compiled/loader.py",
    "compiled/build.py",
    "archive/__init__.py",
    "archive/model/errors.py",
)
_SMALL = "def twice(number: int) -> int:\n    return number * 2\n"
#: For which mypyc writes code that has the garbage collector empty what is in use.
_DANGEROUS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Above:
    inherited: dict[str, str]

@dataclass(frozen=True)
class Below(Above):
    own: str
"""
#: Says whether the compiled form is used, and what it answers.
_ASK = """
from webarcfs.compiled import loader
used = loader.use()
from webarcfs.mount.small import twice
print(used, type(twice).__name__, twice(21))
"""


def compiling(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Begun in a folder whose settings for mypy are none, with a compiler that does not optimize, to be quick."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "mypy.ini").write_text("no settings at all")
    quick = elsewhere / "quick-gcc"
    quick.write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\nexec gcc "$@" -O0\n')
    quick.chmod(0o755)
    return subprocess.Popen(
        [sys.executable, "-m", "webarcfs.compiled.build"],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(folder), "CC": str(quick), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    said, complaint = process.communicate(timeout=240)
    return process.returncode, said, complaint


def asked(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _ASK],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), loader.INTERPRETED: ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return done.stdout.strip()


def forms(folder: Path) -> list[Path]:
    return [path for path in (folder / "webarcfs" / loader.FOLDER).iterdir() if path.is_dir()]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a package that compiles one module."""
    for part in _PARTS:
        (tmp_path / "webarcfs" / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "webarcfs" / part, tmp_path / "webarcfs" / part)
    (tmp_path / "webarcfs/mount").mkdir()
    (tmp_path / "webarcfs/mount/__init__.py").touch()
    (tmp_path / "webarcfs/mount/small.py").write_text(_SMALL)
    with (tmp_path / "webarcfs/compiled/loader.py").open("a") as file:
        file.write('\nMODULES = ("webarcfs.mount.small",)\n')
    return tmp_path


def test_two_at_once_compile_once_and_what_is_older_goes(package: Path) -> None:
    """The one that comes later finds it made. What is left of other sources, and of who was killed, is removed."""
    shelf, wanted = package / "webarcfs" / loader.FOLDER, loader.place(package / "webarcfs")
    older, killed, others = shelf / f"0{wanted.suffix}", shelf / "new-1", shelf / "0.cpython-399-vax"
    for each in (older, killed, others, wanted):
        each.mkdir(parents=True)
    (wanted / loader.SUMS).touch()  # as a power cut may leave it
    assert asked(package) == "False function 42"
    both = [ended(process) for process in [compiling(package), compiling(package)]]
    assert [(code, complaint) for code, _, complaint in both] == [(0, ""), (0, "")]
    assert sorted("compiled them in " in said for _, said, _ in both) == [False, True]
    calls = (package / "calls").read_text().splitlines()
    assert len([call for call in calls if "-c c/__native_webarcfs.c " in call]) == 1
    assert asked(package) == "True builtin_function_or_method 42"
    assert sorted(forms(package)) == sorted([wanted, others])
    (package / "webarcfs/mount/small.py").write_text(_SMALL.replace("twice(", "twice (").replace("* 2", "+ number"))
    assert asked(package) == "False function 42"


def test_what_mypyc_does_not_take_is_told_and_nothing_is_left(package: Path) -> None:
    (package / "webarcfs/mount/small.py").write_text(_SMALL.replace("-> int", "-> str"))
    code, _, complaint = ended(compiling(package))
    assert code == 2
    assert 'webarcfs/mount/small.py:2: error: Incompatible return value type (got "int", expected "str")' in complaint
    assert "Traceback" not in complaint
    assert forms(package) == []


def test_what_the_garbage_collector_would_empty_is_not_compiled(package: Path) -> None:
    """When mypyc does better, this fails, and nobody needs `_check_visits` any more."""
    (package / "webarcfs/mount/small.py").write_text(_SMALL + _DANGEROUS)
    code, _, complaint = ended(compiling(package))
    assert code == 2
    assert "mypyc shows these to the garbage collector twice; make plain classes of them (CONTRIBUTING.md)" in complaint
    assert ":\nBelow: self->_inherited\n" in complaint
    assert "Above" not in complaint
    assert forms(package) == []


def test_without_a_compiler_it_says_what_to_install(package: Path) -> None:
    code, said, complaint = ended(compiling(package, CC="no-such-compiler"))
    assert (code, said) == (2, "")
    assert complaint.splitlines() == [
        "webarcfs.compiled.build: there is no C compiler (no-such-compiler); apt install gcc libc6-dev"
    ]


def test_no_compiled_dataclass_has_a_value_of_its_class() -> None:
    """mypyc takes it for a field: each object of the class fails when it is made, with "read-only"."""
    wrong = []
    for name in loader.MODULES:
        tree = ast.parse((ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(by) for by in node.decorator_list):
                wrong += [
                    f"{name}.{node.name}: {ast.unparse(line)}"
                    for line in node.body
                    if isinstance(line, ast.Assign)
                    or (isinstance(line, ast.AnnAssign) and "ClassVar" in ast.unparse(line.annotation))
                ]
    assert wrong == []
