"""Compiles the modules that a mount runs most: `python -m webarcfs.compiled.build`, or `make compiled`.

For a checkout and for an installed webarcfs alike. The sources are copied, `compiled/mypyc_build.py` compiles the copy,
and one rename puts the result beside the sources; so a mount that starts meanwhile finds all of it, or nothing. A lock
keeps two builds apart. Forms of older sources are removed.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from webarcfs.archive.model.errors import Exit, WebarcError, exit_code_of
from webarcfs.compiled import loader

_PACKAGE = Path(__file__).resolve().parents[1]
_LOCK = "lock"
#: Derived files and folders in the package's folder.
_DERIVED = frozenset({"__pycache__", loader.FOLDER})


def make(tell: Callable[[str], object]) -> None:
    """Compile, unless these sources are compiled already, and report with `tell`. Raises WebarcError."""
    if not loader.fault(loader.place()):
        tell("the modules of mounts are compiled already")
        return
    _check()
    with _alone() as shelf, tempfile.TemporaryDirectory(prefix="webarcfs-compiling-") as folder:
        if not loader.fault(loader.place()):
            tell("another process has just compiled the modules of mounts")
            return
        tell(f"compiling {len(loader.MODULES)} modules of mounts; it takes a while")
        begun = time.monotonic()
        compiled = _made(Path(folder))
        kept = shelf / compiled.name
        _put(compiled, kept)
        _remove_older(kept)
        tell(f"compiled them in {time.monotonic() - begun:.0f} s; new mounts run them")


def main() -> int:
    """Entry point of `python -m webarcfs.compiled.build`; returns its exit code."""
    try:
        make(lambda line: print(line, flush=True))  # noqa: T201
    except WebarcError as error:
        sys.stderr.write(f"webarcfs.compiled.build: {error}\n")
        return exit_code_of(error)
    except OSError as error:
        sys.stderr.write(f"webarcfs.compiled.build: {error}\n")
        return Exit.FAILED
    return Exit.DONE


def _check() -> None:
    """Check the requirements of compiling. Raises WebarcError with the package to install."""
    for module in ("mypyc", "setuptools"):
        if importlib.util.find_spec(module) is None:
            raise WebarcError(f"{module} is missing; pip install 'webarcfs[compiled]'")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        raise WebarcError(f"there is no C compiler ({compiler}); apt install gcc libc6-dev")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        raise WebarcError(f"{header} is missing; apt install python3-dev")


@contextmanager
def _alone() -> Iterator[Path]:
    """Yield the folder of compiled forms, locked against other builds."""
    shelf = _PACKAGE / loader.FOLDER
    try:
        shelf.mkdir(exist_ok=True)
        lock = os.open(shelf / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise WebarcError(f"{shelf} cannot be written ({error.strerror}); compile as its owner") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield shelf
    finally:
        os.close(lock)


def _made(folder: Path) -> Path:
    """Compile a copy of the sources in `folder`. Raises WebarcError with the compilers' output when they fail."""
    copy = folder / _PACKAGE.name
    shutil.copytree(_PACKAGE, copy, ignore=lambda _, names: _DERIVED.intersection(names))
    environment = {name: value for name, value in os.environ.items() if name != loader.INTERPRETED}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *environment.get("PYTHONPATH", "").split(os.pathsep)])
    done = subprocess.run(
        [sys.executable, "-m", "webarcfs.compiled.mypyc_build"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise WebarcError(f"the modules cannot be compiled (exit {done.returncode}):\n{done.stdout.rstrip()}")
    return loader.place(copy)


def _put(compiled: Path, kept: Path) -> None:
    """Move the compiled form to its place; the temporary folder may be on another disk."""
    staged = kept.with_name(f"new-{os.getpid()}")
    shutil.copytree(compiled, staged)
    if kept.exists():  # damaged
        kept.rename(kept.with_name(f"old-{os.getpid()}"))
    staged.rename(kept)


def _remove_older(kept: Path) -> None:
    """Remove all forms but this one and those of other Pythons."""
    for path in kept.parent.iterdir():
        if path.is_dir() and path != kept and (path.suffixes == kept.suffixes or not path.suffixes):
            shutil.rmtree(path)


if __name__ == "__main__":
    sys.exit(main())
