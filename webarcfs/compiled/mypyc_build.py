"""Runs mypyc and a C compiler on the sources in the current folder; `compiled/build.py` starts it as a process.

The current folder contains a copy of the package. The result is put beside that copy's sources, and tested: all modules
are imported from it. Paths are relative, and so are those in tracebacks; Python finds the lines by sys.path.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.errors import CCompilerError

from webarcfs.archive.model.errors import WebarcError
from webarcfs.compiled import loader

#: No settings of the caller, no cache, and no errors for packages without types.
_MYPY = ("--config-file=", "--cache-dir=/dev/null", "--ignore-missing-imports")
_OBJECTS = "objects"
_C = "c"
#: In mypyc's C: the beginning of a class's function that visits its fields for the garbage collector, and each field.
_TRAVERSE = re.compile(r"(\w+)_traverse\(\w+ \*self, visitproc ")
_VISIT = re.compile(r"Py_VISIT\((.+)\);")


def build(folder: Path) -> None:
    """Compile all modules into a folder. Errors are printed, and end the process."""
    paths = [f"{name.replace('.', '/')}.py" for name in loader.MODULES]
    # -O3 only takes the compiler longer, and makes no listing faster: the code mostly calls Python's.
    extensions = mypycify([*_MYPY, *paths], opt_level="1", debug_level="0", group_name=loader.GROUP, target_dir=_C)
    _check_visits()
    for extension in extensions:
        # Warnings of newer compilers must not prevent the build.
        extension.extra_compile_args = [*extension.extra_compile_args, "-Wno-error"]
    distribution = Distribution({"name": loader.GROUP, "ext_modules": extensions, "packages": [], "py_modules": []})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(folder), _OBJECTS
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    try:
        command.run()
    except CCompilerError as error:
        sys.exit(str(error))


def _check_visits() -> None:
    """End the process if an object would be cleared as garbage while it is still referenced.

    Python's garbage collector does that if it visits more references than exist. mypyc (2.4) writes such code for a
    frozen dataclass that inherits the fields of another.
    """
    fields = [twice for path in Path(_C).rglob("*.c") for twice in _visited_twice(path)]
    if fields:
        wrong = "mypyc shows these to the garbage collector twice; make plain classes of them (CONTRIBUTING.md):"
        sys.exit("\n".join([wrong, *fields]))


def _visited_twice(source: Path) -> Iterator[str]:
    """Yield class and field."""
    seen: set[str] = set()
    name = ""
    with source.open(encoding="utf-8") as lines:
        for line in lines:
            if begin := _TRAVERSE.search(line):
                name, seen = begin[1], set()
            elif visit := _VISIT.search(line):
                if visit[1] in seen:
                    yield f"{name}: {visit[1]}"
                seen.add(visit[1])


def main() -> int:
    """Build, and test the result; return the exit code."""
    folder = loader.place(Path("webarcfs").resolve())
    build(folder)
    loader.seal(folder)
    if not loader.use():
        sys.stderr.write(f"{loader.form()}\n")
        return 1
    for name in loader.MODULES:
        importlib.import_module(name)
    _try_others()
    return 0


def _try_others() -> None:
    """Import the modules beside the compiled ones. One that does not fit them ends the process: for example, a class
    that inherits from a compiled one without permission. A missing library does not.
    """
    for package in sorted({name.rpartition(".")[0] for name in loader.MODULES}):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            with suppress(ImportError, OSError, WebarcError):
                importlib.import_module(module.name)


if __name__ == "__main__":
    sys.exit(main())
