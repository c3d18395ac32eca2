"""The files of an import: those that were named, those in folders that were named, and standard input.

Each content is one source, identified by its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent.importing.foreign import shown
from agent.importing.parts import check, is_mirror
from agent.jobfolder.names import named_after
from webarcfs.archive.model.errors import Damaged, UsageError, WebarcError

#: What stands for standard input.
STDIN = Path("-")
_STDIN_NAME = "standard input"
_CHUNK = 1 << 20
_RECORDS = re.compile(r".*\.(w?arc(\.gz|\.zst)?|wacz)", re.IGNORECASE | re.DOTALL)
_OPEN = ".open"  # Heritrix renames its files when they are complete
_OLD_CACHE = "new.dat"  # of HTTrack before 3.31

Progress = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported, the SHA-256 of its content, its size in bytes, and what messages call it.

    `inner` are the SHA-256 of the WARC files in a WACZ, as far as it says what they are.
    """

    path: Path
    digest: str
    size: int
    name: str
    inner: frozenset[str] = frozenset()

    def is_among(self, digests: Collection[str]) -> bool:
        """Return whether these have its content, or that of all WARC files in it."""
        return self.digest in digests or (bool(self.inner) and all(each in digests for each in self.inner))

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return _place(self.path, self.name)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sources of an import; `remarks` tell which files were left out, `faults` which cannot be read."""

    sources: tuple[Source, ...]
    remarks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def chosen(paths: Sequence[Path], spool: Path, stack: ExitStack, progress: Progress = lambda *_: None) -> Chosen:
    """Return the files with their hashes, each content once.

    Standard input is written to a file without a name in the folder `spool`, which is there until `stack` ends. A file
    that has another format, or cannot be read, costs itself only. Raises UsageError if there is no such path, or
    nothing in a folder; WebarcError if no file can be read.
    """
    remarks: list[str] = []
    faults: list[WebarcError] = []
    files: list[tuple[Path, str]] = []
    sizes: dict[Path, int] = {}
    for given in paths:
        for path, name in _files(given, spool, stack, remarks, faults):
            with _reading(path, name, faults):
                sizes[path] = path.stat().st_size
                files.append((path, name))
    whole, done = sum(sizes.values()), 0
    sources: dict[str, Source] = {}
    for path, name in files:
        with _reading(path, name, faults):
            packed = check(path, _place(path, name))
            digest = _digest(path, partial(_tell, progress, done, whole))
            sources.setdefault(digest, Source(path, digest, sizes[path], name, frozenset(packed)))
        done += sizes[path]
    if not sources and faults:
        raise faults[0] if len(faults) == 1 else Damaged("\n".join(map(str, faults)))
    for source in list(sources.values()):
        if source.is_among(sources.keys() - {source.digest}):
            del sources[source.digest]
            remarks.append(f"{source.name} is left out: its WARC files are among the others")
    return Chosen(tuple(sources.values()), tuple(remarks), tuple(f"{fault}; it is left out" for fault in faults))


def files_of(paths: Sequence[Path], spool: Path, stack: ExitStack) -> tuple[Path, ...]:
    """Return the files that paths stand for, as `chosen` finds them. Raises UsageError."""
    faults: list[WebarcError] = []
    found = tuple(path for each in paths for path, _ in _files(each, spool, stack, [], faults))
    for fault in faults:
        raise fault
    return found


def sources_of(paths: Sequence[Path]) -> list[Source]:
    """Return the sources of files and folders, each content once."""
    return list(chosen(paths, Path(), ExitStack()).sources)


def listed(path: Path) -> list[Path]:
    """Return the paths in a file, one a line; those of standard input if it is `-`. Raises UsageError."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise UsageError(f"--list {shown(path)}: {error.strerror}") from None
    found = [Path(os.fsdecode(line)) for line in data.replace(b"\r\n", b"\n").split(b"\n") if line.strip()]
    if not found:
        raise UsageError(f"--list {shown(path)}: there is no path in it")
    return found


def name_of(sources: Sequence[Source]) -> str:
    """Return the publication of files imported without one: named after the first file and a hash of all contents."""
    first = re.split(r"\.(?:warc|arc|wacz)(?![^.])", Path(sources[0].name).name, maxsplit=1)[0]
    return named_after(first, digest_of(sources), "import")


def digest_of(sources: Sequence[Source]) -> str:
    """Return a short hash of all contents."""
    return hashlib.sha256("\n".join(sorted(source.digest for source in sources)).encode()).hexdigest()[:8]


@contextmanager
def _reading(path: Path, name: str, faults: list[WebarcError]) -> Iterator[None]:
    """Add why a file cannot be read to the faults."""
    try:
        yield
    except Damaged as error:
        faults.append(error)
    except OSError as error:
        faults.append(UsageError(f"{_place(path, name)}: {error.strerror}"))


def _tell(progress: Progress, before: int, whole: int, taken: int) -> None:
    progress("check files (bytes)", before + taken, whole)


def _digest(path: Path, step: Callable[[int], object]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            digest.update(data)
            step(file.tell())
    return digest.hexdigest()


def _place(path: Path, name: str) -> str:
    return name if name == _STDIN_NAME else shown(path)


def _files(
    path: Path, spool: Path, stack: ExitStack, remarks: list[str], faults: list[WebarcError]
) -> Iterator[tuple[Path, str]]:
    """Yield the files that a path stands for, and their names."""
    if path == STDIN:
        yield _spooled(spool, stack), _STDIN_NAME
    elif path.is_dir():
        left_out: list[str] = []
        before = len(faults)
        found = list(_inside(path, left_out, faults))
        remarks += left_out
        if not found and len(faults) == before:
            old = any(_OLD_CACHE in names for _, _, names in os.walk(path))
            why = "its cache is of an HTTrack before 3.31, which is not read" if old else _NOTHING
            raise UsageError("\n".join([*left_out, f"{shown(path)}: {why}"]))
        yield from found
    elif path.is_file():
        yield path.resolve(), _name(path)
    else:
        raise UsageError(f"{shown(path)} is no file and no folder")


_NOTHING = (
    "there is no WARC, ARC or WACZ file in this folder, and no hts-cache/new.zip of HTTrack. A mirror alone does not "
    "tell what the servers sent; wget keeps that with --warc-file=NAME. warcit makes a WARC of files alone"
)


def _inside(top: Path, remarks: list[str], faults: list[WebarcError]) -> Iterator[tuple[Path, str]]:
    def add_unreadable(error: OSError) -> None:
        faults.append(UsageError(f"{shown(error.filename)}: {error.strerror}"))

    for folder, folders, names in os.walk(top, onerror=add_unreadable):
        folders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            if _RECORDS.fullmatch(name) or is_mirror(path):
                if path.is_symlink():
                    remarks.append(f"{shown(path)} is left out: it is a symbolic link; give it by name")
                elif path.is_file():
                    yield path.resolve(), _name(path)
            elif name.endswith(_OPEN) and _RECORDS.fullmatch(name.removesuffix(_OPEN)):
                remarks.append(f"{shown(path)} is left out: its crawler has it open, or died; give it by name")


def _name(path: Path) -> str:
    """Return what messages call a file: its name, for a mirror of HTTrack its folder."""
    path = path.resolve()
    return shown(path.parent.parent.name or "mirror") if is_mirror(path) else shown(path.name)


def _spooled(folder: Path, stack: ExitStack) -> Path:
    file = stack.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 # as long as `stack`
    shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK)
    file.flush()
    return Path(f"/proc/self/fd/{file.fileno()}")
