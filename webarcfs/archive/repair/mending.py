"""Mends the small files of a repository from its own objects: HEAD, config, refs, the commit-graph.

Replaced files are kept in `damaged/` in the repository.

git and libgit2 report a damaged file as broken, skip it, or misread it. So HEAD, config and the files of refs are read
byte by byte here: which one is damaged, and what is still readable. The formats are those of gitrepository-layout(5)
and git-pack-refs(1).

Refs are compared as written and as they must be according to the objects. One half of a damaged id is still intact, and
identifies one object of the repository; main is where the newest crawl's ref is; the refs of crawls and of additions
follow from main's history. Refs that cannot be determined are reported.

A damaged name in packed-refs is that of the one missing ref that differs from it in a character or two. The ref of an
import of older captures follows from its commit's tag. Where not even the newest crawl's ref can be determined, main is
left as it is, rather than at an older state. What a publication saw is written nowhere else: where its ref is lost it
is removed, so that the publication's next complete crawl removes no page.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from webarcfs.archive.additions import commit_additions
from webarcfs.archive.additions.commit_additions import ADDITIONS
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import (
    CONFIG,
    CRAWLS,
    FORMS,
    INCOMING,
    MAIN,
    MET,
    PUBLICATIONS,
    SEEN,
    Commit,
    Repository,
)
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.history.sequence import Feed, crawl_commit
from webarcfs.archive.model.errors import Busy, Damaged, WebarcError
from webarcfs.archive.model.metadata import CommitTag, compact_time, now
from webarcfs.archive.repair import repacking
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import replacing, sync_folder, sync_tree

# == repository files =================================================================================================


HEAD = "HEAD"
CONFIG_FILE = "config"
PACKED = "packed-refs"
#: The content of HEAD in every repository of an archive.
HEAD_TEXT = f"ref: {MAIN}\n".encode()
#: Folder with copies of mended files, below a folder for each time.
ASIDE = "damaged"

_OID = 40  # hex digits
_LOOSE = re.compile(rb"[0-9a-f]{40}\n|ref: refs/\S+\n")
_LINE = re.compile(r"([0-9a-f]{40}) (refs/[!-~\x80-\U0010ffff]+)")
_PEELED = re.compile(r"\^[0-9a-f]{40}")
_FILE_MODE = "core.filemode"
#: Other programs write other headers, or none; only with `sorted`, git searches refs by bisection.
_ANY_HEADER = re.compile("# pack-refs with:( (peeled|fully-peeled|sorted))+ ?")
_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"


@dataclass(slots=True)
class Packed:
    """The content of packed-refs: ref → id, in the order of the file; the peeled lines of tags; and invalid lines.

    `ordered` is false if git would not find each ref by bisection.
    """

    refs: dict[str, str] = field(default_factory=dict)
    peeled: dict[str, str] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    ordered: bool = True

    @property
    def is_sound(self) -> bool:
        """Whether git can read the file, and each line is valid."""
        return self.ordered and not self.odd


def parse_packed(content: bytes) -> Packed:
    """Parse the content of packed-refs, as far as it is readable."""
    packed, last, before, after_ref = Packed(), "", b"", False
    lines = _text(content).split("\n")
    rest = lines.pop()
    is_sorted = False
    if lines and _ANY_HEADER.fullmatch(lines[0]):
        is_sorted = "sorted" in lines.pop(0)
    for line in lines:
        if match := _LINE.fullmatch(line):
            last = match[2]
            packed.ordered = packed.ordered and (_raw(last) > before or not is_sorted)
            before = _raw(last)
            packed.refs[last] = match[1]
            after_ref = True
        elif _PEELED.fullmatch(line) and last and last not in packed.peeled:
            packed.peeled[last] = line
        elif not after_ref and packed.odd:
            packed.odd[-1] += f"\n{line}"  # the damage cut one line in two
        elif after_ref and not _begins_with_id(line):  # the end of a name, or the next one's beginning
            packed.odd.append(f"{packed.refs.pop(last)} {last}\n{line}")
            after_ref = False
        else:
            packed.odd.append(line)
            after_ref = False
    if rest:
        packed.odd.append(rest[:-1])  # its last byte was the newline
    return packed


def _begins_with_id(line: str) -> bool:
    """Return whether a line begins with an id, of which a digit or two may be damaged."""
    return len(line) > _OID and sum(char in "0123456789abcdef" for char in line[:_OID]) > _OID - 3


def format_packed(packed: Packed) -> bytes:
    """Return a file with these refs, without invalid lines."""
    lines = [_HEADER]
    for name in sorted(packed.refs, key=_raw):
        lines.append(f"{packed.refs[name]} {name}\n")
        lines += [f"{packed.peeled[name]}\n"] if name in packed.peeled else []
    return _raw("".join(lines))


def read_packed(repository: Path) -> Packed | None:
    """Read packed-refs; return None without one."""
    try:
        return parse_packed((repository / PACKED).read_bytes())
    except FileNotFoundError:
        return None


def loose_refs(repository: Path) -> dict[str, bytes]:
    """Return the refs with a file of their own, by name, with its content; locks are excluded."""
    refs = {}
    for folder, _, files in os.walk(repository / "refs"):
        for name in files:
            path = Path(folder, name)
            if not name.endswith(".lock"):
                with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                    refs[path.relative_to(repository).as_posix()] = file.read(4096)
    return refs


def head(repository: Path) -> bytes:
    """Return the content of HEAD; empty without it."""
    try:
        return (repository / HEAD).read_bytes()
    except FileNotFoundError:
        return b""


def faults(repository: Path) -> Iterator[str]:
    """Yield the faults of a repository's small files, a line each. It reads these, and no object."""
    if head(repository) != HEAD_TEXT:
        yield f"{HEAD}: it does not say `{HEAD_TEXT.decode().strip()}`"
    try:
        wrong = wrong_settings(repository)
    except WebarcError as error:
        yield str(error)
    else:
        if wrong:
            yield f"{CONFIG_FILE}: {', '.join(f'{key} is not {value}' for key, value in wrong.items())}"
    packed = read_packed(repository)
    if packed is not None and not packed.is_sound:
        yield f"{PACKED}: " + (f"{packed.odd[0]!a} is no line of it" if packed.odd else "its lines are not in order")
    for name, content in loose_refs(repository).items():
        if not is_sound_ref(content):
            yield f"{name}: its file holds no ref"


def is_sound_ref(content: bytes) -> bool:
    """Return whether a ref's file has git's format."""
    return _LOOSE.fullmatch(content) is not None


_REQUIRED = {"core.repositoryformatversion": "0", "core.bare": "true", **CONFIG}


def wrong_settings(repository: Path) -> dict[str, str]:
    """Return the wrong settings of a repository: name → required value. All, if they cannot be read.

    Raises WebarcError if git was killed meanwhile.
    """
    try:
        text = (repository / CONFIG_FILE).read_bytes()
    except OSError:
        return dict(_REQUIRED)
    return dict(_wrong_in(text))


@lru_cache(maxsize=16)
def _wrong_in(text: bytes) -> Mapping[str, str]:
    """Return the wrong settings in this text. Nearly all repositories have the same text, and git takes long.

    Files that it includes do not count. Raises WebarcError if git was killed, which says nothing of the text.
    """
    wanted = dict(_REQUIRED)
    arguments = ["config", "--file", "-", "--no-includes", "--null", "--list"]
    done = git_command.run(arguments, Path("/"), text, check=False)
    if done.returncode < 0:
        raise WebarcError(f"{CONFIG_FILE}: it was not checked, since git was killed by signal {-done.returncode}")
    if done.returncode:
        return wanted
    pairs = (setting.partition("\n") for setting in done.stdout.decode("utf-8", "replace").split("\0"))
    settings = {key: value for key, _, value in pairs}
    if settings.get(_FILE_MODE, "true") not in ("true", "false"):
        wanted[_FILE_MODE] = "true"  # git chooses it by the file system, and fails everywhere on any other value
    return {key: value for key, value in wanted.items() if settings.get(key.lower()) != value}


def write_settings(repository: Path, settings: dict[str, str]) -> None:
    """Write these settings; the others stay if git can read them, and are left out if not."""
    scratch = repository / f".{CONFIG_FILE}.new"
    scratch.unlink(missing_ok=True)
    config = repository / CONFIG_FILE
    if config.exists() and not _config(config, "--list").returncode:
        scratch.write_bytes(config.read_bytes())
    for key, value in settings.items():
        if _config(scratch, "--replace-all", key, value).returncode:
            raise Damaged(f"{config}: {key} cannot be set to {value}")
    put(repository, CONFIG_FILE, scratch.read_bytes())
    scratch.unlink()


def _config(file: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # Outside the repository: inside, git would read its settings first, and fail.
    return git_command.run(["config", "--file", str(file), *arguments], Path("/"), check=False)


def put(repository: Path, name: str, content: bytes) -> None:
    """Replace a file in one step, durably, under git's own lock of it. Raises Busy, OSError."""
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    try:
        with replacing(path, lock) as file:
            file.write(content)
    except FileExistsError:
        raise Busy(f"{lock} is in the way: a git is at work") from None


def remove(repository: Path, name: str) -> None:
    """Remove a file, or a folder with its content, durably."""
    path = repository / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    sync_folder(path.parent)


def copy_aside(repository: Path, name: str, folder: Path) -> None:
    """Copy a file or folder to `folder`, under the same name."""
    source, kept = repository / name, folder / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, kept, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, kept)
    sync_tree(folder)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# == ref mending ======================================================================================================


#: The remedy for a ref that can be determined.
MENDS = "`webarc-agent recover` repairs it"
_HALF = 20  # hex digits of an id: objects that share so many are the same

_MOST_WRONG = 2  # characters of a ref's name that may be damaged
#: In packed-refs, the id precedes this by so many characters.
_NAME = " refs/"
_OURS = (CRAWLS, PUBLICATIONS, SEEN, MET, FORMS, ADDITIONS, INCOMING)
#: Refs that a crawl or recover makes again.
_DERIVED = (PUBLICATIONS, SEEN, MET, FORMS, ADDITIONS, INCOMING)
_HEADER_WORDS = ("pack-refs", "peeled", "sorted")
_ID = re.compile(r"[0-9a-f]{40}")
_GOOD_NAME = re.compile(r"refs/[^\x00-\x20\x7f]+")


class Refs:
    """The refs of a repository as written, and as they must be. Raises NotFound, Damaged."""

    def __init__(self, archive: Archive, domain: str) -> None:
        self._archive, self._domain = archive, domain
        self._store = Repository(archive.repository(domain))
        self._packed, self._loose = _read(self._store.path)
        #: name → id, as it must be; name → text that is no valid id; lines to report
        self._right: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self.left: list[str] = []
        for name, text in self._written():
            (self._right if self._fits(name, text) else self._broken)[name] = text
        written = self._packed.refs.keys() | self._loose.keys()
        self._before = {name: text for name, text in self._right.items() if name in written}
        self._dropped: set[str] = set()
        self._judge()

    def _written(self) -> Iterator[tuple[str, str]]:
        loose = {name: text for name, text in self._loose.items() if not text.startswith(b"ref: ")}
        yield from ((name, oid) for name, oid in self._packed.refs.items() if name not in self._loose)
        yield from ((name, content[:_OID].decode("latin-1")) for name, content in loose.items())
        for name, text in pieces(self._packed.odd):
            if name not in self._packed.refs and name not in self._loose:
                yield name, text

    def _fits(self, name: str, oid: str) -> bool:
        """Return whether a ref may have this target: it exists, is readable, and of the right kind."""
        if not _ID.fullmatch(oid) or not _GOOD_NAME.fullmatch(name):
            return False
        try:
            if name == MAIN:
                return self._store.commit(oid).message.tag.domain == self._domain
            if name.startswith(CRAWLS):
                return self._store.commit(oid).message.tag.ref == name
            if name.startswith((PUBLICATIONS, SEEN, FORMS)):
                self._store.entries(oid)
            elif name.startswith(MET):
                redirect_lists.read_met_list(self._store, oid)
            elif name.startswith(ADDITIONS):
                commit_additions.mark_number(self._store, oid)
            else:
                self._store.size(oid)
        except WebarcError:
            return False
        return True

    # -- required values -----------------------------------------------------------------------------------------

    def _judge(self) -> None:
        for name, text in list(self._broken.items()):
            self._settle(name, self._alike(text, name))
        self._rename_crawls()
        self._rename({MAIN})
        if MAIN not in self._right:
            self._tell_main()
        newest, publications, done = self._history
        for name, oid in newest.items():
            if name not in self._right:
                self._settle(name, oid)
        for name, text in list(self._broken.items()):
            if name.startswith(CRAWLS) and not _ID.fullmatch(text):
                self._tell_crawl(name)
        beside = self._beside_crawls()
        for name in [name for name in self._right if name.startswith((SEEN, MET)) and name not in beside]:
            if CRAWLS + name.rpartition("/")[2] not in self._broken:
                self._drop(name)
        for name, oid in beside.items():
            self._settle(name, oid)
        self._rename(
            {PUBLICATIONS + publication for publication in publications} | {ADDITIONS + log_id for log_id in done}
        )
        for name in list(self._broken):
            self._give_up(name, done)

    def _settle(self, name: str, oid: str | None) -> None:
        if oid is not None:
            self._right[name] = oid
            self._broken.pop(name, None)
            self._dropped.discard(name)

    def _drop(self, name: str) -> None:
        self._dropped.add(name)
        self._right.pop(name, None)
        self._broken.pop(name, None)

    def _alike(self, text: str, name: str) -> str | None:
        """Return the one possible target of a ref that agrees with a damaged text in its first or second half."""
        first, second = text[:_HALF], text[_HALF:_OID]
        candidates = [oid for oid in set(self._ids) if oid[:_HALF] == first or oid[_HALF:] == second]
        fitting = [oid for oid in candidates if self._fits(name, oid)]
        return fitting[0] if len(fitting) == 1 else None

    def _rename_crawls(self) -> None:
        """Rename refs on another crawl's commit than their name says: their id is sound, so their name is damaged."""
        for name, text in [*self._broken.items(), *self._right.items()]:
            if name == MAIN or (name in self._right and name.startswith(_OURS)) or not _ID.fullmatch(text):
                continue
            with suppress(WebarcError):
                if self._store.is_commit(text):
                    right = self._store.commit(text).message.tag.ref
                    if name.startswith(CRAWLS) or _is_like(name, right):
                        self._move(name, text, right)

    def _rename(self, known: set[str]) -> None:
        """Rename refs whose name differs from that of a missing one by a character or two."""
        for missing in sorted(known - self._right.keys() - self._broken.keys()):
            refs = self._right | self._broken
            like = [name for name in refs if name not in known and _is_like(name, missing)]
            if len(like) != 1:
                continue
            text = refs[like[0]]
            oid = text if self._fits(missing, text) else self._alike(text, missing)
            if oid is not None:
                self._move(like[0], oid, missing)

    def _move(self, name: str, oid: str, right: str) -> None:
        self._drop(name)
        if right not in self._right:
            self._settle(right, oid)

    def _tell_main(self) -> None:
        """Set main to the newest crawl's ref, or to additions on top: after a power cut the ref may be behind."""
        if _ID.fullmatch(self._broken.get(MAIN, "")):
            return  # its text is sound, and its object is damaged or gone: an older state is no remedy
        there = [name for name in self._right if name.startswith(CRAWLS)]
        wanted = [name for name in self._broken if name.startswith(CRAWLS)]
        with suppress(WebarcError):
            tags = (CommitTag.parse(line) for line in Feed(self._archive.changes).lines())
            wanted += [tag.ref for tag in tags if tag.domain == self._domain]
        newest = max(there, default="")
        if newest and newest >= max(wanted, default=""):
            self._settle(MAIN, self._with_additions(self._right[newest]))
        elif newest or MAIN in self._broken or wanted:
            self.left.append(f"{MAIN}: its commit is unknown, and the newest crawl's ref is damaged or gone as well")

    def _with_additions(self, oid: str) -> str:
        """Return the newest commit of additions on top of a commit, if each is the only one on its parent."""
        while above := [
            commit.oid for commit in self._commits if oid in commit.parents and not commit.message.is_crawl
        ]:
            if len(above) > 1:
                self.left.append(f"{MAIN}: it is at {oid}; of {', '.join(above)}, on top of it, one may be newer")
                break
            oid = above[0]
        return oid

    @cached_property
    def _history(self) -> tuple[dict[str, str], set[str], dict[str, int]]:
        """Of main's history: the newest commit of each crawl's ref, the publications, the progress of each log."""
        newest: dict[str, str] = {}
        publications: set[str] = set()
        done: dict[str, int] = {}
        with suppress(Damaged):  # the history before it is unknown
            for commit in self._store.history(self._right.get(MAIN)):
                newest.setdefault(commit.message.tag.ref, commit.oid)
                publications |= {commit.message.publication} - {""}
                done = {
                    log: max(done.get(log, 0), number) for log, number in [*done.items(), *commit.message.done.items()]
                }
        return newest, publications, done

    def _beside_crawls(self) -> dict[str, str]:
        """Return the readable trees and lists in crawls' trailers Seen and Met, each by its ref."""
        targets: dict[str, str] = {}
        for name, oid in self._right.items():
            if name.startswith(CRAWLS):
                with suppress(WebarcError):
                    crawl = crawl_commit(self._store, oid)
                    if crawl is None:
                        continue
                    tag, message = crawl.message.tag, crawl.message
                    named = {tag.seen_ref: message.seen, tag.met_ref: message.met}
                    targets |= {ref: target for ref, target in named.items() if target and self._fits(ref, target)}
        return targets

    def _tell_crawl(self, name: str) -> None:
        """Find the commit of a crawl outside of main's history, as after an import of older captures, by its tag."""
        own = [commit for commit in self._commits if commit.message.tag.ref == name]
        below = {parent for commit in own for parent in commit.parents}
        tips = [commit.oid for commit in own if commit.oid not in below]
        if len(tips) == 1:
            self._settle(name, tips[0])

    def _give_up(self, name: str, done: dict[str, int]) -> None:
        """Report a ref that could not be determined, or drop a derived one."""
        log = name.removeprefix(ADDITIONS)
        if _ID.fullmatch(self._broken[name]) and not name.startswith(_DERIVED):
            self.left.append(f"{name}: it is at {self._broken[name]}, which cannot be read; a backup may have that")
        elif name == MAIN:
            pass  # reported already
        elif name.startswith(ADDITIONS) and log in done:
            self._settle(name, self._store.write_blob(commit_additions.mark_body(done[log])))
        elif name.startswith((ADDITIONS, INCOMING, SEEN, MET)):
            self._drop(name)  # finished work is repeated, and dropped again; no crawl names such a tree or list
        elif not _GOOD_NAME.fullmatch(name):
            self._drop(name)
            self.left.append(f"{PACKED}: of a line only {name!a} can be read, and it is removed")
        elif name.startswith(PUBLICATIONS):
            self._drop(name)
            self.left.append(
                f"{name}: the object that it named is unknown, and it is removed; the next complete crawl of"
                f" {name.removeprefix(PUBLICATIONS)} creates it again, and removes no page"
            )
        else:
            self.left.append(f"{name}: the object that it named is unknown; a backup may have it")

    @cached_property
    def _ids(self) -> list[str]:
        return list(self._store.ids())

    @cached_property
    def _commits(self) -> list[Commit]:
        """All readable commits, reachable from a ref or not."""
        commits = []
        for oid in set(self._ids):
            with suppress(WebarcError):
                if self._store.is_commit(oid):
                    commits.append(self._store.commit(oid))
        return commits

    # -- writing -------------------------------------------------------------------------------------------------

    @property
    def are_wrong(self) -> bool:
        """Whether any of them differs from what it must be."""
        return bool(self.left or self._dropped or self._broken) or self._right != self._before

    def findings(self) -> Iterator[str]:
        """Yield a line for each ref that differs from what it must be."""
        yield from self.left
        for name in sorted(self._dropped):
            yield f"{name}: its name is damaged; {MENDS}"
        for name, oid in sorted(self._right.items()):
            if self._before.get(name) != oid:
                yield f"{name}: it should be at {oid}; {MENDS}"

    def write(self, keep: Callable[[str], object]) -> list[str]:
        """Write the refs that differ; return a line for each. `keep` receives each file's name before the change."""
        path, done = self._store.path, []
        for name, oid in sorted(self._right.items()):
            changed = self._before.get(name) != oid
            if changed:
                done.append(f"{name} is at {oid} again")
            if name in self._loose:
                if changed or not is_sound_ref(self._loose[name]):
                    keep(name)
                    put(path, name, f"{oid}\n".encode())
            elif changed and name not in self._packed.refs:
                put(path, name, f"{oid}\n".encode())
        packed = {
            name: oid if name in self._loose else self._right.get(name, oid)
            for name, oid in self._packed.refs.items()
            if name not in self._dropped
        }
        if not self._packed.is_sound or packed != self._packed.refs:
            keep(PACKED)
            put(path, PACKED, format_packed(Packed(packed, self._packed.peeled)))
            done.append(f"{PACKED} is in order again")
        for name in sorted(self._dropped & self._loose.keys()):
            keep(name)
            remove(path, name)
        return done


def _read(path: Path) -> tuple[Packed, dict[str, bytes]]:
    """Return the packed refs, and the loose ones."""
    while True:
        packed = read_packed(path) or Packed()
        loose = loose_refs(path)
        if (read_packed(path) or Packed()) == packed:  # else a ref packed meanwhile would be in neither
            return packed, loose


def pieces(odd: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each ref in odd lines of packed-refs, where the end of a line may be damaged, too."""
    for run in odd:
        starts = [at - _OID for at in _find(run, _NAME) if at >= _OID]
        if not starts and not any(word in run for word in _HEADER_WORDS):
            starts = [0]
        for start, end in zip(starts, [*(start - 1 for start in starts[1:]), len(run)], strict=False):
            text, name = run[start : start + _OID], run[start + _OID + 1 : end]
            if len(text) == _OID and name:
                yield name, text


def _find(text: str, word: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(word), text)]


def _is_like(name: str, other: str) -> bool:
    return len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) <= _MOST_WRONG


# == mending ==========================================================================================================


@dataclass
class Mended:
    """What was mended, and what could not be, a line each."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def mend(archive: Archive, domain: str) -> Mended:
    """Mend the small files of a domain's repository. Without a fault it only reads the refs and the history.

    Raises OSError, Busy. No ref moves meanwhile.
    """
    path, mended = archive.repository(domain), Mended()
    if not _is_wrong(archive, domain):
        return mended
    with ExitStack() as held:
        held.enter_context(locks.exclusive(archive.committing_lock(domain)))
        held.enter_context(locks.Turnstile(archive.lock(domain)).exclusive())
        git_command.remove_left_locks(path)
        kept = _Kept(path)
        _mend_head(kept, mended)
        _mend_settings(kept, mended)
        try:
            refs = Refs(archive, domain)
        except WebarcError as error:
            mended.left.append(str(error))
            return mended
        mended.left += refs.left
        mended.done += refs.write(kept)
        _mend_graph(kept, mended)
    if kept.any:
        mended.done.append(f"the files as they were are kept in {kept.folder}")
    return mended


def mend_plain(repository: Path) -> list[str]:
    """Mend HEAD and the settings only, for a caller with exclusive access; return what was mended."""
    mended, kept = Mended(), _Kept(repository)
    _mend_head(kept, mended)
    _mend_settings(kept, mended)
    return mended.done


def damaged_refs(archive: Archive, domain: str) -> list[str]:
    """Return the refs that `mend` would write or remove, a line each; it changes nothing; others may be at work."""
    if not Refs(archive, domain).are_wrong:
        return []
    with sequence.hold(archive):  # the first check may have seen a publication in the middle of its moves
        return list(Refs(archive, domain).findings())


def _is_wrong(archive: Archive, domain: str) -> bool:
    path = archive.repository(domain)
    if any(faults(path)) or not repacking.graph_is_sound(path):
        return True
    try:
        return Refs(archive, domain).are_wrong
    except WebarcError:
        return False  # it is no repository at all, which mending would not change


class _Kept:
    """Keeps copies of files before they are replaced."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.folder = repository / ASIDE / compact_time(now())
        self.any = False

    def __call__(self, name: str) -> None:
        if (self.repository / name).exists():
            copy_aside(self.repository, name, self.folder)
            self.any = True


def _mend_head(kept: _Kept, mended: Mended) -> None:
    if head(kept.repository) != HEAD_TEXT:
        kept(HEAD)
        put(kept.repository, HEAD, HEAD_TEXT)
        mended.done.append(f"{HEAD} leads to {MAIN} again")


def _mend_settings(kept: _Kept, mended: Mended) -> None:
    if wrong := wrong_settings(kept.repository):
        kept(CONFIG_FILE)
        write_settings(kept.repository, wrong)
        mended.done.append(f"{CONFIG_FILE} has its settings again: {', '.join(wrong)}")


# -- the commit-graph, which derives from the commits ------------------------------------------------------------------


def _mend_graph(kept: _Kept, mended: Mended) -> None:
    path = kept.repository
    if repacking.graph_is_sound(path):
        return
    for name in repacking.GRAPHS:
        if (path / name).exists():
            kept(name)
            remove(path, name)
    try:
        repacking.write_graph(path)
        mended.done.append("the commit-graph is rebuilt")
    except Damaged as error:
        mended.left.append(str(error))
