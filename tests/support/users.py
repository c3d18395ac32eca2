"""Another user, and what that user can run, wherever the checkout lies.

Tests that become somebody else run our programs as them. A checkout in `/root`, or made with a umask of 077, is closed
to others, and so is its virtual environment. So those tests run a copy: of the same sources (with the compiled modules,
where there are some) and of the same packages, in a folder that everybody can enter. It is always made, so that a test
means the same everywhere.
"""

from __future__ import annotations

import errno
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from tests.support.mounts import SCRIPTS
from tests.support.waiting import until

#: User and group that own nothing.
NOBODY = 65534
_ROOT = Path(__file__).parents[2]
#: What the tests that become another user call of a checkout.
_SOURCES = ("webarcfs", "sql", "xsd", "tests")
#: The packages that they need, with those that these need.
_PACKAGES = ("webarcfs", "pytest")
_PROGRAMS = ("mount.webarcfs", "umount.webarcfs")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Other:
    """What another user can run: Python with our modules, and the commands of a mount."""

    python: Path
    mount: Path
    umount: Path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command as that user to its end, its output as text."""
        return subprocess.run(
            [str(word) for word in command],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder that every user may enter, unlike pytest's own; it goes afterwards.

    It lies in the usual place for temporary files, or in `/tmp` where others cannot come there.
    """
    usual = Path(tempfile.gettempdir()).resolve()
    path = Path(tempfile.mkdtemp(prefix="webarcfs-test-", dir=usual if enterable(usual) else "/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        until(lambda: _removed(path), "a git that a killed mount had begun writes no more")


def _removed(path: Path) -> bool:
    try:
        shutil.rmtree(path)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def enterable(path: Path) -> bool:
    """Whether others may enter a folder, and all that it lies in."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


@contextmanager
def other() -> Iterator[Other]:
    """What another user can run, as long as it is needed."""
    with open_folder() as folder:
        environment, checkout = folder / "venv", folder / "checkout"
        for name in _SOURCES:
            shutil.copytree(_ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([_python(), "-m", "venv", "--without-pip", environment], check=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
        _copy_packages(packages)
        (packages / "checkout.pth").write_text(f"{checkout}\n", "utf-8")
        for name in _PROGRAMS:
            text = (SCRIPTS / name).read_text("utf-8").replace(str(SCRIPTS), str(environment / "bin"))
            (environment / "bin" / name).write_text(text, "utf-8")
            (environment / "bin" / name).chmod(0o755)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield Other(environment / "bin" / "python", *(environment / "bin" / name for name in _PROGRAMS))


def _python() -> Path:
    """A Python of this version that others can run: the one that runs here, or else the system's."""
    own = Path(sys._base_executable)  # type: ignore[attr-defined] # what venv asks for, too
    for python in (own, Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")):
        if python.exists() and enterable(python.parent) and enterable(python.resolve().parent):
            return python
    raise RuntimeError(f"other users cannot run {own.resolve()}; make .venv with a Python that they can run")


def _copy_packages(target: Path) -> None:
    for package in _needed():
        for file in package.files or ():
            path = Path(str(package.locate_file(file)))
            # Programs lie elsewhere, and what leads to the checkout is what this shall do without.
            if ".." in file.parts or path.suffix in (".pth", ".pyc") or not path.is_file():
                continue
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / file)


def _needed() -> list[Distribution]:
    """The packages, and those that they need; what a marker leaves out is not installed, extras are passed over."""
    found: dict[str, Distribution] = {}
    unneeded = {"pip"}  # sqlite-utils names it, for plug-ins
    waiting = list(_PACKAGES)
    while waiting:
        name = waiting.pop()
        if name in found or name in unneeded:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for requirement in found[name].requires or ():
            match = _REQUIREMENT.match(requirement)
            if match and "extra ==" not in requirement:
                waiting.append(match[0].lower())
    return list(found.values())
