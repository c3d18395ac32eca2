"""The files of an import: those that were named, those in folders that were named, and standard input.

Each content is one source, identified by its SHA-256. A file consists of one stream of records, of several in a WACZ,
or is the cache of an HTTrack mirror; or it is a copy: a page that was saved (SingleFile, MHTML, "Save as: complete"), a
browser's log (HAR), or a folder that mirrors hosts. Formats that are not read, but often lie beside WARC files, are
recognised by their first bytes. Names are not reliable: files are renamed, and a `.gz` file may contain any format.

The trailers of the imports' commits say which files were imported so far. A file is imported when the last of its
snapshots is published, whose commit has `Source-End`. The commits of older versions, without `Import`, have `Source`
for all files of their import, which made one snapshot of each host. A note in `log/` stores the hashes and the last
commit that was read, so that the next import reads only newer commits. The note only saves time: without it, all
commits are read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path

from agent.crawl.job_folder import named_after
from agent.importing import har, mirror, saved_pages
from agent.importing.foreign import RecordRun, Report, Stated, Step, file_part, hash_file, printable, shown
from agent.importing.wacz_files import ZIP_MAGIC, Wacz
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.errors import Damaged, UsageError, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import files
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.warc.bytestream import GZIP, MAGIC

# == other formats ====================================================================================================


_SAMPLE = 1 << 12
_LARGEST_JSON = 1 << 24
_LONGEST_LIST = 500
_INDEX = "is an index, and has no records; import the WARC files that it names"
_FORMATS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"BZh[1-9]1AY&SY"), "is compressed with bzip2, which is not read; `bzip2 -d` unpacks it"),
    (re.compile(rb"\xfd7zXZ\x00"), "is compressed with xz, which is not read; `xz -d` unpacks it"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "is a 7z archive; `7z x` unpacks it, and its folder can be imported"),
    (re.compile(rb"[ \t]CDX [A-Za-z]|[^\s]+\)[^\s]* \d{14} [{\S]|!OpenWayback-CDXJ|!meta \{"), _INDEX),
    (saved_pages.MHTML_START, "is MHTML that is compressed by gzip; `gzip -d` unpacks it"),
    (re.compile(rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|!--)"), "is a page that is compressed; unpack it"),
    (har.START, "is a HAR that is compressed by gzip; `gzip -d` unpacks it"),
    (re.compile(rb"(?s:.{257})ustar"), "is a tar archive; `tar -x` unpacks it, and its folder can be imported"),
)


def named(path: Path, name: str) -> str:
    """Return a message with the file's format and the remedy; empty for a format that is read, or an unknown one."""
    with path.open("rb") as file:
        start = file.read(_SAMPLE)
    if start.startswith(MAGIC):
        try:
            start = zlib.decompressobj(GZIP).decompress(start, _SAMPLE)
        except zlib.error:
            return ""
    if start.lstrip().startswith(b"{") and (words := _collection(path)):
        return f"{name} {words}"
    remedy = next((words for pattern, words in _FORMATS if pattern.match(start)), "")
    return f"{name} {remedy}" if remedy else ""


def _collection(path: Path) -> str:
    """Return what a JSON file says, if it is a list of WACZ files (multi-WACZ)."""
    if path.stat().st_size > _LARGEST_JSON:
        return ""
    try:
        package = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return ""
    resources = package.get("resources") if isinstance(package, dict) else None
    if not isinstance(resources, list):
        return ""
    paths = ", ".join(
        str(resource.get("path") or resource.get("name")) for resource in resources if isinstance(resource, dict)
    )
    return f"only names WACZ files (multi-WACZ); import those: {printable(paths)[:_LONGEST_LIST]}"


# == parts ============================================================================================================


_NOTHING_STATED = Stated()


class SourceForm(Enum):
    """What a file is, as far as that decides how it is read."""

    RECORDS = auto()
    WACZ = auto()
    HTTRACK = auto()
    MIRROR = auto()
    PAGE = auto()
    MHTML = auto()
    HAR = auto()

    @property
    def is_copy(self) -> bool:
        """Whether it is a copy of pages, and no record of what a server sent to a crawler."""
        return self in (SourceForm.MIRROR, SourceForm.PAGE, SourceForm.MHTML, SourceForm.HAR)


def form_of(path: Path) -> SourceForm:
    """Return what a file or a folder is. Raises OSError."""
    if path.is_dir():
        return SourceForm.MIRROR
    if is_httrack_cache(path):
        return SourceForm.HTTRACK
    with path.open("rb") as file:
        start = file.read(_SAMPLE)
    if start[:4] in ZIP_MAGIC:
        return SourceForm.WACZ
    if har.START.match(start):
        return SourceForm.HAR
    if saved_pages.MHTML_START.match(start):
        return SourceForm.MHTML
    return SourceForm.PAGE if saved_pages.is_page(path.name, start) else SourceForm.RECORDS


def parts_of(
    path: Path,
    name: str,
    report: Report,
    step: Step,
    stated: Stated = _NOTHING_STATED,
    *,
    form: SourceForm | None = None,
) -> Iterator[RecordRun]:
    """Yield the parts of the file `path`, which messages call `name`. Raises WebarcError if it has another format.

    `stated` is what it does not say itself, and whoever imports it does. `form` is its form, as far as it was
    recognised before.
    """
    form = form or form_of(path)
    if form is SourceForm.MIRROR:
        yield from mirror.parts(path, name, report, step, stated)
    elif form is SourceForm.HTTRACK:
        yield from mirror.parts_of_httrack(path, name, report)
    elif form is SourceForm.PAGE:
        yield from saved_pages.parts(path, name, report, stated)
    else:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if form is SourceForm.WACZ:
                yield from Wacz(file, size, name).parts(report, step)
            elif form is SourceForm.HAR:
                yield from har.parts(file, name, report, stated)
            elif form is SourceForm.MHTML:
                yield from saved_pages.parts_of_mhtml(file, size, name, report, stated)
            elif other := named(path, name):
                raise Damaged(other)
            else:
                yield file_part(file, size, name, report)


def check(path: Path, form: SourceForm, name: str, stated: Stated = _NOTHING_STATED) -> set[str]:
    """Return the digests that a WACZ has of its WARC files. Raises WebarcError for a format that is not read."""
    if form is SourceForm.WACZ:
        with path.open("rb") as file:
            return Wacz(file, file.seek(0, 2), name).digests()
    for _ in parts_of(path, name, Report(), lambda _: None, stated, form=form):
        pass
    return set()


def is_httrack_cache(path: Path) -> bool:
    """Return whether a file is the cache of a mirror of HTTrack."""
    return path.name == mirror.HTTRACK_ANSWERS and path.parent.name == mirror.HTTRACK_CACHE


# == imported files ===================================================================================================


_NOTE = "imported.json"
_PREFIX = "sha256:"


def known_sources(archive: Archive) -> set[str]:
    """Return the hashes of all files imported so far; webarc.db must be synchronised with git."""
    (number, last), known = _noted(archive)
    with Database(archive.database) as database:
        news = list(database.since(number - 1))
    if news[:1] == [(number, last)]:
        del news[0]
    elif number:  # git was reset to an older state, or the note is from another archive
        return _forgotten(archive)
    for _, tag in news:
        known |= _sources_of(archive, CommitTag.parse(tag))
    if news:
        with suppress(OSError):
            note = {"sequence": news[-1][0], "tag": news[-1][1], "sources": sorted(known)}
            files.write_json(archive.log / _NOTE, note, durable=False)
    return known


def _forgotten(archive: Archive) -> set[str]:
    (archive.log / _NOTE).unlink()
    return known_sources(archive)


def _noted(archive: Archive) -> tuple[tuple[int, str], set[str]]:
    """Return (number, commitTag) of the last commit that was read, and the hashes up to it."""
    try:
        note = files.read_json(archive.log / _NOTE) or {}
        return (int(note["sequence"]), str(note["tag"])), {str(digest) for digest in note["sources"]}
    except (Damaged, KeyError, TypeError, ValueError):
        return (0, ""), set()


def _sources_of(archive: Archive, tag: CommitTag) -> set[str]:
    store = Repository(archive.repository(tag.domain))
    target = store.ref(tag.ref)
    commit = sequence.crawl_commit(store, target) if target else None
    if commit is None:
        return set()
    trailer = "Source-End" if commit.message.all("Import") else "Source"
    return {value.removeprefix(_PREFIX) for value in commit.message.all(trailer)}


# == sources ==========================================================================================================


#: What means standard input.
STDIN = Path("-")
_STDIN_NAME = "standard input"
_CHUNK = 1 << 20
_RECORDS = re.compile(r".*\.(w?arc(\.gz|\.zst)?|wacz)", re.IGNORECASE | re.DOTALL)
_OPEN = ".open"  # Heritrix renames its files when they are complete
_OLD_CACHE = "new.dat"  # of HTTrack before 3.31


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported, the SHA-256 of its content, its size in bytes, and what messages call it.

    `inner` are the SHA-256 of the WARC files in a WACZ, as far as it says what they are. A mirror is a folder, and has
    one SHA-256 of all names and bytes in it, and of what it is the copy of, unless names say that. `stated` is what a
    copy does not say itself.
    """

    path: Path
    form: SourceForm
    digest: str
    size: int
    name: str
    inner: frozenset[str] = frozenset()
    stated: Stated = _NOTHING_STATED

    @property
    def is_copy(self) -> bool:
        """Whether it is no record of what a server sent to a crawler."""
        return self.form.is_copy

    def is_among(self, digests: Collection[str]) -> bool:
        """Return whether these have its content, or that of all WARC files in it."""
        return self.digest in digests or (bool(self.inner) and all(digest in digests for digest in self.inner))

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return _place(self.path, self.name)


@dataclass(frozen=True, slots=True)
class ChosenSources:
    """The sources of an import; `remarks` say which files were left out, `faults` which cannot be read."""

    sources: tuple[Source, ...]
    remarks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def chosen(
    paths: Sequence[Path],
    spool: Path,
    stack: ExitStack,
    progress: Progress = unseen,
    stated: Stated = _NOTHING_STATED,
) -> ChosenSources:
    """Return the files with their hashes, each content once; `stated` is what copies among them do not say themselves.

    Standard input is written to a file without a name in the folder `spool`, which is there until `stack` ends. A file
    that has another format, or cannot be read, costs itself only. Raises UsageError if there is no such path, or
    nothing in a folder; WebarcError if no file can be read.
    """
    remarks: list[str] = []
    faults: list[WebarcError] = []
    named_files: list[tuple[Path, str, SourceForm, int]] = []
    for given in paths:
        is_whole = bool(stated.base) and given.is_dir()
        pairs = [(given.resolve(), _name(given))] if is_whole else _files(given, spool, stack, remarks, faults)
        for path, name in pairs:
            with _reading(path, name, faults):
                form = form_of(path)
                named_files.append((path, name, form, _size(path, form)))
    whole, done = sum(size for *_, size in named_files), 0
    sources: dict[str, Source] = {}
    for path, name, form, size in named_files:
        with _reading(path, name, faults):
            packed = check(path, form, _place(path, name), stated)
            digest = _digest(path, form, partial(_tell, progress, done, whole), stated.base)
            sources.setdefault(digest, Source(path, form, digest, size, name, frozenset(packed), stated))
        done += size
    if not sources and faults:
        raise faults[0] if len(faults) == 1 else Damaged("\n".join(map(str, faults)))
    for source in list(sources.values()):
        if source.is_among(sources.keys() - {source.digest}):
            del sources[source.digest]
            remarks.append(f"{source.name} is left out: its WARC files are among the others")
    return ChosenSources(tuple(sources.values()), tuple(remarks), tuple(f"{fault}; it is left out" for fault in faults))


def files_of(paths: Sequence[Path], spool: Path, stack: ExitStack) -> tuple[Path, ...]:
    """Return the files that paths mean, as `chosen` finds them. Raises UsageError."""
    faults: list[WebarcError] = []
    source_paths = tuple(path for given_path in paths for path, _ in _files(given_path, spool, stack, [], faults))
    for fault in faults:
        raise fault
    return source_paths


def sources_of(paths: Sequence[Path]) -> list[Source]:
    """Return the sources of files and folders, each content once."""
    return list(chosen(paths, Path(), ExitStack()).sources)


def listed(path: Path) -> list[Path]:
    """Return the paths in a file, one a line; those of standard input if it is `-`. Raises UsageError."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise UsageError(f"--list {shown(path)}: {error.strerror}") from None
    paths = [Path(os.fsdecode(line)) for line in data.replace(b"\r\n", b"\n").split(b"\n") if line.strip()]
    if not paths:
        raise UsageError(f"--list {shown(path)}: there is no path in it")
    return paths


def name_of(sources: Sequence[Source]) -> str:
    """Return the publication of files imported without one: named after the first file and a hash of all contents."""
    endings = r"(?i)\.(?:warc|arc|wacz|har|mhtml?|x?html?)(?![^.])"
    first = re.split(endings, Path(sources[0].name).name, maxsplit=1)[0]
    return named_after(first, digest_of(sources), "import")


def digest_of(sources: Sequence[Source]) -> str:
    """Return a short hash of all contents."""
    return hashlib.sha256("\n".join(sorted(source.digest for source in sources)).encode()).hexdigest()[:8]


@contextmanager
def _reading(path: Path, name: str, faults: list[WebarcError]) -> Iterator[None]:
    """Add why a file cannot be read to the faults."""
    try:
        yield
    except (Damaged, UsageError) as error:
        faults.append(error)
    except OSError as error:
        faults.append(UsageError(f"{_place(path, name)}: {error.strerror}"))


def _tell(progress: Progress, before: int, whole: int, taken: int) -> None:
    progress("check files (bytes)", before + taken, whole)


def _size(path: Path, form: SourceForm) -> int:
    if form is SourceForm.MIRROR:
        return mirror.size_of(path)
    return saved_pages.size_of(path) if form is SourceForm.PAGE else path.stat().st_size


def _digest(path: Path, form: SourceForm, step: Step, base: str) -> str:
    if form is SourceForm.MIRROR:
        bases = [root.base for root in mirror.roots(path, base) if root.folder == path]  # no name in it says these
        return mirror.digest_of(path, step, bases)
    if form is SourceForm.PAGE:
        return saved_pages.digest_of(path, step, base)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        hash_file(file, digest.update, step)
    return digest.hexdigest()


def _place(path: Path, name: str) -> str:
    return name if name == _STDIN_NAME else shown(path)


def _files(
    path: Path, spool: Path, stack: ExitStack, remarks: list[str], faults: list[WebarcError]
) -> Iterator[tuple[Path, str]]:
    """Yield the files that a path means, and their names."""
    if path == STDIN:
        yield _spooled(spool, stack), _STDIN_NAME
    elif path.is_dir():
        yield from _files_in(path, remarks, faults)
    elif path.is_file():
        yield path.resolve(), _name(path)
    else:
        raise UsageError(f"{shown(path)} is no file and no folder")


def _files_in(folder: Path, remarks: list[str], faults: list[WebarcError]) -> Iterator[tuple[Path, str]]:
    """Yield the files of a folder; or the folder, if it is a mirror. Of one with records, the sites are left out.

    A mirror is taken whole or not at all: where something in it is left out, what can be read by itself is taken.
    """
    left_out: list[str] = []
    before = len(faults)
    named_paths = list(_inside(folder, left_out, faults))
    has_records = any(not is_copy for *_, is_copy in named_paths)
    is_old = not named_paths and any(_OLD_CACHE in names for _, _, names in os.walk(folder))
    sites: list[mirror.MirrorRoot] = []
    with suppress(OSError):
        sites = mirror.roots(folder.resolve())
    is_mirror = bool(sites) and not has_records and not is_old
    if is_mirror and not left_out and len(faults) == before:
        yield folder.resolve(), _name(folder)  # what lies in the folders of hosts is of their sites
        return
    remarks += left_out
    if not named_paths and len(faults) == before:
        why = "its cache is of an HTTrack before 3.31, which is not read" if is_old else _NOTHING
        raise UsageError("\n".join([*left_out, f"{shown(folder)}: {_NOT_WHOLE if is_mirror else why}"]))
    if is_mirror:
        remarks.append(f"{shown(folder)}: {_NOT_WHOLE}")
    site_folders: set[Path] = set()
    if sites and has_records:
        remarks.append(f"{shown(folder)}: folders of hosts in it are left out; what a crawler recorded is taken")
        site_folders = {site.folder for site in sites}
    for path, name, is_copy in named_paths:
        if not is_copy or site_folders.isdisjoint(path.parents):
            yield path, name


_NOTHING = (
    "there is no WARC, ARC, WACZ, HAR, MHTML or SingleFile in this folder, no hts-cache/new.zip of HTTrack, and no "
    "folder named after a host, as wget -r makes them. --base URL says what a folder is the copy of"
)
_NOT_WHOLE = (
    "it is not taken as a mirror, of which nothing may be left out; remove what is named above, or give --base URL"
)
_COPIES = re.compile(r".*\.(har|mhtml?)", re.IGNORECASE | re.DOTALL)
_PAGES = re.compile(r".*\.x?html?", re.IGNORECASE | re.DOTALL)


def _inside(top: Path, remarks: list[str], faults: list[WebarcError]) -> Iterator[tuple[Path, str, bool]]:
    """Yield the files in a folder, their names, and whether they are copies."""

    def add_unreadable(error: OSError) -> None:
        faults.append(UsageError(f"{shown(error.filename)}: {error.strerror}"))

    for folder, folders, names in os.walk(top, onerror=add_unreadable):
        folders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            is_record = _RECORDS.fullmatch(name) is not None or is_httrack_cache(path)
            if is_record or _COPIES.fullmatch(name):
                if path.is_symlink():
                    remarks.append(f"{shown(path)} is left out: it is a symbolic link; give it by name")
                elif path.is_file():
                    yield path.resolve(), _name(path), not is_record
            elif _PAGES.fullmatch(name) and not path.is_symlink() and path.is_file() and _is_saved(path):
                yield path.resolve(), _name(path), True
            elif name.endswith(_OPEN) and _RECORDS.fullmatch(name.removesuffix(_OPEN)):
                remarks.append(f"{shown(path)} is left out: its crawler has it open, or died; give it by name")


def _is_saved(path: Path) -> bool:
    """Return whether a page says that it was saved: by SingleFile, or by a browser."""
    with suppress(OSError):
        return saved_pages.origin(path) is not None
    return False


def _name(path: Path) -> str:
    """Return what messages call a file: its name, for a mirror of HTTrack its folder."""
    path = path.resolve()
    return shown(path.parent.parent.name or "mirror") if is_httrack_cache(path) else shown(path.name)


def _spooled(folder: Path, stack: ExitStack) -> Path:
    file = stack.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 # as long as `stack`
    shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK)
    file.flush()
    return Path(f"/proc/self/fd/{file.fileno()}")
