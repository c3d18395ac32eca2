"""The compiled form of the modules that a mount runs most: their list, its place, preferring it to the sources.

`python -m webarcfs.compiled.build` makes it (`make compiled`), by mypyc, from the same sources. The name of its folder
is a digest of all sources of the package: other sources have another folder, so it can be missing, but never stale.
Only the process of a mount uses it. If it is missing or damaged, the sources run as they are. Knows nothing of mypyc
but the name of its library; needs the standard library alone. Its only state is the result of `use`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

#: The compiled modules. CONTRIBUTING.md has the rules for code in them.
MODULES = (
    "webarcfs.archive.document.data_xml",
    "webarcfs.archive.system.cache",
    "webarcfs.archive.model.arc_paths",
    "webarcfs.archive.model.metadata",
    "webarcfs.archive.git.repository",
    "webarcfs.vfs.node",
    "webarcfs.mount.kernel.inode_table",
    "webarcfs.vfs.folders",
    "webarcfs.vfs.root",
    "webarcfs.mount.adapters.libfuse3.fast_path",
    "webarcfs.mount.kernel.readdir",
    "webarcfs.mount.adapters.libfuse3.operations",
    "webarcfs.mount.adapters.libfuse3.write_operations",
    "webarcfs.vfs.overlay",
    "webarcfs.vfs.domain_states",
    "webarcfs.vfs.view",
)

#: Environment variable that makes the sources run as they are.
INTERPRETED = "WEBARCFS_INTERPRETED"

#: The group of modules that call one another without Python in between, and mypyc's library of it.
GROUP = "webarcfs"
LIBRARY = f"{GROUP}__mypyc"
#: Folder of compiled forms in the package, and the list of one's files, in the format of sha256sum(1).
FOLDER = "_compiled"
SUMS = "sums"
#: Identifies this Python and machine, as in `.cpython-311-x86_64-linux-gnu.so`.
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class CompiledForm:
    """Whether the compiled form is in use; the reason if not; and whether an administrator should act."""

    compiled: bool
    reason: str = ""
    damaged: bool = False

    def __str__(self) -> str:
        """Return it for a log and `--version`."""
        return "compiled" if self.compiled else f"interpreted: {self.reason}"


class _Found:
    """The result of `use`, for later reports."""

    form = CompiledForm(False, "it was not begun as mount.webarcfs")


def form() -> CompiledForm:
    """Return the form that this process runs."""
    return _Found.form


def use() -> bool:
    """Make MODULES importable from their compiled form, if there is one for these sources and this Python.

    Call it before any of them is imported. Whatever is wrong with the compiled form, the sources run.
    """
    _Found.form = _used()
    return _Found.form.compiled


def place(package: Path = _PACKAGE) -> Path:
    """Return the folder of the compiled form of a package's sources, which need not exist."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*.py")):
        body = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(body)}\n".encode())
        digest.update(body)
    return package / FOLDER / f"{digest.hexdigest()}{SUFFIX.removesuffix('.so')}"


def seal(folder: Path) -> None:
    """List the files of a compiled form; without that list it is not used."""
    files = sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.is_file())
    lines = (f"{_sum(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    (folder / SUMS).write_text("".join(lines), "utf-8")


def fault(folder: Path) -> str:
    """Return the fault of a compiled form; empty if each file is as it was made.

    It reads the files: one that is cut off would not fail when it is loaded, but kill the process later on.
    """
    try:
        listed = [line.split("  ", 1) for line in (folder / SUMS).read_text("utf-8").splitlines()]
        names = [name for _, name in listed]
        wrong = [name for known, name in listed if _sum(folder / name) != known]
    except (OSError, ValueError) as error:
        return f"{folder} is damaged ({error})"
    if f"{LIBRARY}{SUFFIX}" not in names:  # a power cut left the list empty
        return f"{folder / SUMS} is damaged"
    return f"{folder}: {', '.join(wrong)} is damaged" if wrong else ""


def _used() -> CompiledForm:
    if os.environ.get(INTERPRETED):
        return CompiledForm(False, f"{INTERPRETED} is set")
    if early := [name for name in MODULES if name in sys.modules]:
        return CompiledForm(False, f"{early[0]} was imported before")
    try:
        folder = place()
        if not folder.is_dir():
            return CompiledForm(False, "nothing is compiled of these sources")
        if wrong := fault(folder):
            return CompiledForm(False, wrong, damaged=True)
        _load(folder)
    except (ImportError, OSError) as error:  # made for another libc, or unreadable
        return CompiledForm(False, f"the compiled form cannot be loaded ({error})", damaged=True)
    for package in sorted({name.rpartition(".")[0] for name in MODULES}):
        importlib.import_module(package).__path__.insert(0, str(folder.joinpath(*package.split("."))))
    return CompiledForm(True)


def _load(folder: Path) -> None:
    """Load the library with all the code; the modules beside it are a few bytes that lead there."""
    spec = importlib.util.spec_from_file_location(LIBRARY, folder / f"{LIBRARY}{SUFFIX}")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[LIBRARY] = module


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
