"""The small files of a repository on the disk, byte by byte: HEAD, config, and the files of refs.

git and libgit2 report a damaged one as broken, skip it, or misread it. This module determines which one is damaged, and
what is still readable. The formats are those of gitrepository-layout(5) and git-pack-refs(1).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import CONFIG, MAIN
from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.system.fsync import replacing, sync_folder, sync_tree

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
    found = {}
    for folder, _, files in os.walk(repository / "refs"):
        for name in files:
            path = Path(folder, name)
            if not name.endswith(".lock"):
                with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                    found[path.relative_to(repository).as_posix()] = file.read(4096)
    return found


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
    if wrong := wrong_settings(repository):
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


def wrong_settings(repository: Path) -> dict[str, str]:
    """Return the wrong settings of a repository: name → required value. All, if git cannot read them."""
    wanted = {"core.repositoryformatversion": "0", "core.bare": "true", **CONFIG}
    done = _config(repository / CONFIG_FILE, "--null", "--list")
    if done.returncode:
        return wanted
    pairs = (each.partition("\n") for each in done.stdout.decode("utf-8", "replace").split("\0"))
    found = {key: value for key, _, value in pairs}
    if found.get(_FILE_MODE, "true") not in ("true", "false"):
        wanted[_FILE_MODE] = "true"  # git chooses it by the file system, and fails everywhere on any other value
    return {key: value for key, value in wanted.items() if found.get(key.lower()) != value}


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
