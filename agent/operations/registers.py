"""What the registers say: formats of the newest captures, and the programs that are found on this machine."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from agent.catalogue import recording
from webarcfs import __version__
from webarcfs.archive.catalogue.catalogue import Catalogue, opened
from webarcfs.archive.catalogue.record import FieldNumber
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound

_SECONDS = 5.0
#: The programs that make, read or keep an archive: name, maker, how they report their version.
_PROGRAMS = (
    ("git", "the Git project", ("--version",)),
    ("wget", "GNU", ("--version",)),
    ("tidy", "HTACG", ("-version",)),
    ("fusermount3", "libfuse", ("--version",)),
)
_LIBRARIES = (("tantivy", "Quickwit"), ("pypdfium2", "Google, pypdfium2-team"), ("lxml", "lxml"), ("pygit2", "libgit2"))


@dataclass(frozen=True, slots=True)
class Program:
    """A program as it is found on this machine."""

    name: str
    maker: str
    version: str
    path: str


def newest_counts(archive: Archive) -> Counter[str]:
    """Return the number of documents by extension, in the newest capture of each publication."""
    counted: Counter[str] = Counter()
    catalogue = Catalogue(archive)
    with opened(archive, catalogue) as tables:
        record_ids = tables.newest_by_extension()
    for record_id in record_ids:
        with suppress(NotFound):  # it was there a moment ago
            record, _ = catalogue.read(record_id)
            counted.update(recording.parsed(record.text(FieldNumber.FILES_BY_EXTENSION)))
    return counted


def programs() -> list[Program]:
    """Return the programs and libraries that work here, with their versions."""
    software = [
        Program("webarcfs", "webarcfs", __version__, ""),
        Program("Python", "PSF", platform.python_version(), ""),
    ]
    for name, maker, ask in _PROGRAMS:
        path = shutil.which(name)
        if path is not None:
            software.append(Program(name, maker, _version([path, *ask]), path))
    for name, maker in _LIBRARIES:
        try:
            software.append(Program(name, maker, importlib.metadata.version(name), ""))
        except importlib.metadata.PackageNotFoundError:
            continue
    return software


def _version(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "it does not answer"
    return (done.stdout or done.stderr).decode("utf-8", "replace").strip().partition("\n")[0]
