"""Runs mypyc and a C compiler on the sources in the current folder; a process of its own, begun by `compiling.py`.

In the current folder there is a copy of the package. What is made is put beside that copy's sources, and tried: all
modules are imported from it. Paths are relative, and so are those in tracebacks; Python finds the lines by sys.path.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from contextlib import suppress
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.errors import CCompilerError

from webarcfs import compiled
from webarcfs.archive.errors import WebarcError

#: No settings of whoever calls, nothing kept for another time, and no complaint that others' packages have no types.
_MYPY = ("--config-file=", "--cache-dir=/dev/null", "--ignore-missing-imports")
_OBJECTS = "objects"
_C = "c"


def build(folder: Path) -> None:
    """Compile all modules into a folder. What is wrong is printed, and ends the process."""
    paths = [f"{name.replace('.', '/')}.py" for name in compiled.MODULES]
    # -O3 takes the compiler longer, and a listing takes what it took: what the code calls is Python's.
    extensions = mypycify([*_MYPY, *paths], opt_level="1", debug_level="0", group_name=compiled.GROUP, target_dir=_C)
    for each in extensions:
        # What newer compilers warn of is no reason to do without.
        each.extra_compile_args = [*each.extra_compile_args, "-Wno-error"]
    distribution = Distribution({"name": compiled.GROUP, "ext_modules": extensions, "packages": [], "py_modules": []})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(folder), _OBJECTS
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    try:
        command.run()
    except CCompilerError as error:
        sys.exit(str(error))


def main() -> int:
    """Build, and try what was built; returns the exit code."""
    folder = compiled.place(Path("webarcfs").resolve())
    build(folder)
    compiled.seal(folder)
    if not compiled.use():
        sys.stderr.write(f"{compiled.form()}\n")
        return 1
    for name in compiled.MODULES:
        importlib.import_module(name)
    _try_others()
    return 0


def _try_others() -> None:
    """Import the modules beside the compiled ones. What does not fit them ends the process, as a class would that
    inherits from one that lets nobody; what lacks a library here is none of that.
    """
    for package in sorted({name.rpartition(".")[0] for name in compiled.MODULES}):
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            with suppress(ImportError, OSError, WebarcError):
                importlib.import_module(found.name)


if __name__ == "__main__":
    sys.exit(main())
