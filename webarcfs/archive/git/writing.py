"""Writes many objects, files or changes of a tree to a repository at once.

New objects go into one pack (gitformat-pack), with one sync for all of them. They are made here and sent to git as a
stream; git checks them, and unpacks small packs.

A domain's tree is derived from another one by any number of changes in any order, in constant memory. Changes are kept
on the disk until `finish`; then each affected folder is read once and written once. So the cost of a document does not
depend on the size of its folder; `git fast-import`, given the same changes by path, searches the folder for each.

Of many files, the bytes go through a `git fast-import` (git-fast-import(1)), and the trees are made here. A few small
files are stored together with the trees, by one git. Measured at
three times the speed of `git add` and `git commit`, and no file of a crawl is created meanwhile. Git receives no paths:
it would search all of a folder for each, and keep all trees in memory.

Changes are applied to a tree in order of their paths: each folder is read once and written once.

The current folder and those above it are in memory, whatever the number of folders and changes. The order is that
of the paths' bytes, in which git sorts an index; inside a folder it is git's order of a tree, where folders sort as if
their names ended in a slash (gitformat-index(5), git-mktree(1)).

Trees are git's bytes, read line by line, without an object for each name (gitformat: `<mode> <name>`, NUL, id).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from webarcfs.archive.git import git_command
from webarcfs.archive.git.git_command import GIT, environment, fail
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.system.files import Sorter, blob_hash, write_all

# == tree lines, pure =================================================================================================


FILE: Final = b"100644"
FOLDER: Final = b"40000"
#: Modes of folders; old programs wrote the second.
FOLDERS: Final = (FOLDER, b"040000")
#: A pattern takes a fifth of the time of libgit2's calls for each line.
LINE: Final = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
#: Mode, name, and id in 20 bytes.
Line = tuple[bytes, bytes, bytes]
Pair = tuple[Line | None, Line | None]


def read_lines(raw: bytes, name: str) -> Iterator[Line]:
    """Yield the lines of a tree. Raises Damaged, with `name`, for any other data."""
    upto = 0
    for match in LINE.finditer(raw):
        mode, entry, oid = match.groups()
        upto += len(mode) + len(entry) + 22
        yield mode, entry, oid
    if upto != len(raw):  # the pattern skips lines that it does not match
        raise Damaged(f"{name} is no tree that can be read")


def key(line: Line) -> bytes:
    """Return git's sort key of a line: its name, that of a folder with a slash at the end."""
    return line[1] + b"/" if line[0] in FOLDERS else line[1]


def changed_lines(before: Iterator[Line], after: Iterator[Line]) -> Iterator[Pair]:
    """Yield the differences between two trees, in git's order: files are paired with files, folders with folders."""
    was, now = next(before, None), next(after, None)
    while was is not None and now is not None:
        first, second = key(was), key(now)
        if first == second:
            if was[2] != now[2]:
                yield was, now
            was, now = next(before, None), next(after, None)
        elif first < second:
            yield was, None
            was = next(before, None)
        else:
            yield None, now
            now = next(after, None)
    while was is not None:
        yield was, None
        was = next(before, None)
    while now is not None:
        yield None, now
        now = next(after, None)


# == tree stream, pure ================================================================================================


#: A path and the id of its blob in 20 bytes; an empty id removes the file or folder that `base` has there.
Change = tuple[bytes, bytes]
_Line = re.Match[bytes]


def changed_tree(
    base: str | None, changes: Iterable[Change], read: Callable[[str], bytes], store: Callable[[bytes], str]
) -> str | None:
    """Return the tree `base` with `changes`, in order of their paths, each path once; None when it becomes empty.

    A file replaces a folder of `base`, a folder any file; empty folders are removed. `read` returns git's bytes of a
    tree, `store` stores them, inner folders first. Raises Damaged when `base` cannot be read.
    """
    stack = [_Folder(b"", base, read)]
    above: list[bytes] = []
    for path, blob in changes:
        *folders, name = path.split(b"/")
        if folders != above:
            common = _common(above, folders)
            for _ in above[common:]:
                _leave(stack, store)
            for folder in folders[common:]:
                stack.append(_Folder(folder, stack[-1].enter(folder), read))
            above = folders
        stack[-1].put(name, blob)
    while len(stack) > 1:
        _leave(stack, store)
    return stack[0].end(store)


class _Folder:
    """An old folder, and its new form up to the current change."""

    __slots__ = ("_base", "_files", "_gone", "_line", "_lines", "_new", "_old", "_upto", "name")

    def __init__(self, name: bytes, base: str | None, read: Callable[[str], bytes]) -> None:
        self.name = name
        self._base = base
        self._old = read(base) if base else b""
        self._new = bytearray()
        self._lines = LINE.finditer(self._old)
        self._upto = 0
        self._line: _Line | None = None
        self._gone: set[bytes] = set()
        # Files in the new form, each with its offset; the name of each is a prefix of the next one's. All other files
        # precede any folder of their name.
        self._files: list[tuple[bytes, int]] = []
        self._next()

    def put(self, name: bytes, blob: bytes) -> None:
        """Place a file, or with an empty `blob` drop the old file or folder."""
        if self._line is not None:
            self._pass(name)
            self._gone.add(name)
        if blob:
            self._remember(name)
            self._new += b"%s %s\0%s" % (FILE, name, blob)

    def enter(self, name: bytes) -> str | None:
        """Return the id of the old folder of that name, or None. It is removed unless `put_folder` puts one back."""
        self._pass(name + b"/")
        line = self._line
        if line is None or line[2] != name or line[1] not in FOLDERS:
            return None
        self._next()
        return None if name in self._gone else line[3].hex()

    def put_folder(self, name: bytes, tree: str) -> None:
        """Place a folder that was entered."""
        while self._files and not name.startswith(self._files[-1][0]):
            self._files.pop()
        if self._files and self._files[-1][0] == name:
            start = self._files.pop()[1]
            del self._new[start : start + len(FILE) + len(name) + 22]
        self._new += b"%s %s\0%s" % (FOLDER, name, bytes.fromhex(tree))

    def end(self, store: Callable[[bytes], str]) -> str | None:
        """Store the new form and return its id; None when it is empty."""
        self._pass(None)
        if self._upto != len(self._old):
            raise Damaged(f"{self._base} is no tree that can be read")
        if self._new == self._old:
            return self._base
        return store(bytes(self._new)) if self._new else None

    def _pass(self, until: bytes | None) -> None:
        """Copy the old entries before `until`, in git's order."""
        while (line := self._line) is not None:
            mode, name = line[1], line[2]
            is_folder = mode in FOLDERS
            if until is not None and (name + b"/" if is_folder else name) >= until:
                if is_folder or name != until:
                    return
                self._next()  # a change takes the file's place
                continue
            if name not in self._gone:
                if not is_folder:
                    self._remember(name)
                self._new += line[0]
            self._next()

    def _next(self) -> None:
        if self._line is not None:
            self._upto = self._line.end()
        line = self._line = next(self._lines, None)
        if line is not None and line.start() != self._upto:
            raise Damaged(f"{self._base} is no tree that can be read")

    def _remember(self, name: bytes) -> None:
        while self._files and not name.startswith(self._files[-1][0]):
            self._files.pop()
        self._files.append((name, len(self._new)))


def _leave(stack: list[_Folder], store: Callable[[bytes], str]) -> None:
    inner = stack.pop()
    tree = inner.end(store)
    if tree is not None:
        stack[-1].put_folder(inner.name, tree)


def _common(one: list[bytes], other: list[bytes]) -> int:
    """Return the number of equal names at the beginning of two paths."""
    for index, (name, beside) in enumerate(zip(one, other, strict=False)):
        if name != beside:
            return index
    return min(len(one), len(other))


# == pack writer ======================================================================================================


#: Fewer objects than this become loose ones: else a repository would get a pack for each addition.
FEW = 100
_TRIES = 5
_LEVEL = 1
#: Bytes up to which an object is not compressed.
_SMALL = 160
_CHUNK = 1 << 20
_KINDS = {"commit": 1, "tree": 2, "blob": 3}


@dataclass(frozen=True, slots=True)
class _Large:
    path: Path
    size: int


class Pack:
    """Objects to be stored together; none is in the repository before `store`."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._objects: dict[str, bytes | _Large] = {}
        self.shared_bytes = 0
        #: Bytes of the objects in memory.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, kind: str, raw: bytes) -> str:
        """Add a blob, tree or commit; return its id."""
        digest = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(raw)), usedforsecurity=False)
        digest.update(raw)
        oid = digest.hexdigest()
        if oid not in self._objects:
            packed = self._objects[oid] = _head(_KINDS[kind], len(raw)) + _compressed(raw)
            self.bytes += len(packed)
        return oid

    def add_file(self, path: Path) -> str:
        """Add a blob of a file's bytes; the file must not change before `store`. Raises OSError."""
        size = path.stat().st_size
        digest = blob_hash(size)
        for chunk in _chunks(path):
            digest.update(chunk)
        oid = digest.hexdigest()
        self._objects.setdefault(oid, _Large(path, size))
        return oid

    def size_of(self, oid: str) -> int:
        """Return the bytes that an object takes in the pack."""
        content = self._objects.get(oid, b"")
        return len(content) if isinstance(content, bytes) else content.size

    @contextlib.contextmanager
    def stored(self) -> Iterator[None]:
        """Store all. No repack removes the objects before this context ends, so that a ref can be set to them.

        Raises OSError on a full disk, Damaged when git refuses.
        """
        keep = None
        try:
            keep = self.store()
            yield
        finally:
            if keep is not None:
                keep.unlink(missing_ok=True)

    def store(self, *, as_pack: bool = False) -> Path | None:
        """Store all; return the file that keeps repacks from removing the objects, if any; the caller removes it.

        `as_pack`: as one pack, however few they are. Raises OSError on a full disk, Damaged when git refuses.
        """
        if not self._objects:
            return None
        few = len(self._objects) < FEW and all(isinstance(content, bytes) for content in self._objects.values())
        few = few and not as_pack
        # Without core.fsyncMethod=batch: objects would get their names before their bytes are safe.
        command = ["unpack-objects", "-q"] if few else ["index-pack", "--stdin", "--keep"]
        for left in reversed(range(_TRIES)):
            code, output, complaint = self._given_to(command)
            # A repack may remove an empty objects/xx/ just before an object is put there.
            if not code or not left or b"write object" not in complaint:
                break
        if code:
            fail(f"{self._repository}: objects were not stored", complaint, self._repository)
        if few:
            git_command.sync_loose(self._repository, self._objects)
            return None
        name = output.split()[-1].decode("ascii", "replace") if output.split() else ""
        return self._repository / "objects" / "pack" / f"pack-{name}.keep"

    def write(self, path: Path) -> None:
        """Write all as a pack to a new file at `path`, durably; the repository is left alone. Raises OSError."""
        with path.open("xb") as file:
            _send(self._stream(), file.fileno())
            os.fsync(file.fileno())

    def _given_to(self, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Send the pack to git; return its exit code, output and messages."""
        with subprocess.Popen(
            [*GIT, *command],
            cwd=self._repository,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            with contextlib.suppress(BrokenPipeError):
                _send(self._stream(), process.stdin.fileno())
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            output, complaint = process.stdout.read(), process.stderr.read()
        return process.returncode, output, complaint

    def _stream(self) -> Iterator[bytes]:
        digest = hashlib.sha1(usedforsecurity=False)
        for part in self._parts():
            digest.update(part)
            yield part
        yield digest.digest()

    def _parts(self) -> Iterator[bytes]:
        yield b"PACK" + (2).to_bytes(4, "big") + len(self._objects).to_bytes(4, "big")
        for content in self._objects.values():
            if isinstance(content, bytes):
                yield content
            else:
                yield from _deflated(content)


def _deflated(large: _Large) -> Iterator[bytes]:
    yield _head(_KINDS["blob"], large.size)
    packer, size = zlib.compressobj(_LEVEL), 0
    for chunk in _chunks(large.path):
        size += len(chunk)
        yield packer.compress(chunk)
    yield packer.flush()
    if size != large.size:
        raise Damaged(f"{large.path} changed while it was stored")


def _compressed(raw: bytes) -> bytes:
    """Return a zlib stream (RFC 1950). Small data would hardly shrink: an ARC's tree consists mostly of ids."""
    size = len(raw)
    if size > _SMALL:
        return zlib.compress(raw, _LEVEL)
    # One stored block (RFC 1951, 3.2.4): zlib takes 10 µs to begin.
    return b"\x78\x01\x01%s%s%s%s" % (
        size.to_bytes(2, "little"),
        (size ^ 0xFFFF).to_bytes(2, "little"),
        raw,
        zlib.adler32(raw).to_bytes(4, "big"),
    )


def _head(kind: int, size: int) -> bytes:
    """Return type and size before an object in a pack: four bits of the size, then seven at a time."""
    head, size = bytearray([kind << 4 | size & 15]), size >> 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _send(parts: Iterable[bytes], fd: int) -> None:
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= _CHUNK:
            write_all(fd, gathered)
            gathered = bytearray()
    write_all(fd, gathered)


# == tree rewriting ===================================================================================================


#: So many trees, or so many bytes of them, become one pack; until then they are in memory.
_TREES = 50_000
_BYTES = 16 << 20
_NUMBER: Final = 6
_ID: Final = 20
_NOTHING: Final = bytes(_ID)


class Rewriting:
    """Changes to a tree. Nothing is in the repository before `finish`; a context manager, which frees its resources.

    Until it ends, no repack removes the trees that it stored.
    """

    def __init__(self, repository: Path, base: str | None, read: Callable[[str], bytes]) -> None:
        """`base` is the tree to begin with, None for an empty one; `read` returns git's bytes of a tree."""
        self._repository = repository
        self._base = base
        self._read = read
        self._stack = ExitStack()
        self._sorter = self._stack.enter_context(Sorter(repository / "objects" / "pack"))
        self._changes = 0
        self._pack = Pack(repository)

    def put(self, path: str, blob: str) -> None:
        """Place a file; the last one at a path counts."""
        self.put_digest(path, bytes.fromhex(blob))

    def write(self, path: str, body: bytes) -> None:
        """Place a file with these bytes, which are stored together with the trees."""
        self.put(path, self.keep_blob(body))

    def remove(self, path: str) -> None:
        """Drop the tree's file or folder at `path`; files that are put there, before or after, stay."""
        self.put_digest(path, _NOTHING)

    def keep_blob(self, body: bytes) -> str:
        """Take a blob, which is stored together with the trees; return its id."""
        return self._keep(body, "blob")

    def put_digest(self, path: str, blob: bytes) -> None:
        """As `put`, with the id as 20 bytes."""
        # No name contains a zero byte, so rows sort by path, and those of one path by time.
        self._changes += 1
        self._sorter.add(b"%s\0%s%s" % (os.fsencode(path), self._changes.to_bytes(_NUMBER, "big"), blob))

    def finish(self, *, as_pack: bool = False) -> str:
        """Store the new trees, and return the id of the outermost. Raises OSError on a full disk, Damaged.

        `as_pack`: as one pack, however few they are.
        """
        tree = changed_tree(self._base, _each_once(self._sorter.rows()), self._read, self._keep)
        if tree is None:
            tree = self._keep(b"")
        self._store(as_pack=as_pack)
        return tree

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _keep(self, raw: bytes, kind: str = "tree") -> str:
        oid = self._pack.add(kind, raw)
        if len(self._pack) >= _TREES or self._pack.bytes >= _BYTES:
            self._store()
        return oid

    def _store(self, *, as_pack: bool = False) -> None:
        keep = self._pack.store(as_pack=as_pack)
        if keep is not None:
            self._stack.callback(keep.unlink, missing_ok=True)
        self._pack = Pack(self._repository)


def _each_once(rows: Iterable[bytes]) -> Iterator[Change]:
    """Yield each path once: with the last file that was put there, or an empty id."""
    at, last = b"", b""
    for row in rows:
        path, blob = row[: -1 - _NUMBER - _ID], row[-_ID:]
        if path != at:
            if at:
                yield at, last
            at, last = path, b""
        if blob != _NOTHING:
            last = blob
    if at:
        yield at, last


# == fast import ======================================================================================================


#: Git neither holds larger files in memory nor compresses them against each other.
BIG_FILE = 8 * 1024 * 1024
# git allocates 256 KiB to compress each object; glibc would map and unmap them each time: 600,000 page faults for
# 10,000 pages, which on a virtual machine can cost more than all the rest (mallopt(3)).
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(4 << 20), "MALLOC_TRIM_THRESHOLD_": str(16 << 20)}
#: Git remembers each blob that it received, in some 70 bytes, so it is restarted after so many.
_BLOBS = 300_000
#: Bytes and number of files up to which no git is begun: most hosts that only give resources have one or two.
_KEPT, _KEPT_FILES = 1 << 20, 64
# Room for git to lag while the next documents are read and described.
_PIPE = 1 << 20


class FastImport:
    """Writes files as a stream, and returns a tree. No ref shows any of it; a process that dies leaves objects only.

    Use it as a context manager.
    """

    def __init__(self, repository: Path, base: str | None, read: Callable[[str], bytes]) -> None:
        """`base` is the tree to begin with, None for an empty one; `read` returns git's bytes of a tree."""
        self._repository = repository
        self._loose = git_command.LooseObjectsSince(repository)
        self._tree = Rewriting(repository, base, read)
        self._blobs = 0
        #: Room for files that are stored together with the trees, without a git of their own, while there are few.
        self._room = _KEPT
        self._process: subprocess.Popen[bytes] | None = None

    def remove(self, path: str) -> None:
        """Drop the tree's file or folder at `path`; files that are put there, before or after, stay."""
        self._tree.remove(path)

    def put(self, path: str, body: bytes) -> None:
        """Write a file."""
        if self._take_room(len(body)):
            self._tree.write(path, body)
            return
        digest = blob_hash(len(body))
        digest.update(body)
        self._send(b"blob\ndata %d\n%s\n" % (len(body), body))
        self._tree.put_digest(path, digest.digest())
        self._count()

    def put_stream(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write a file of exactly `size` bytes from its chunks."""
        self._tree.put_digest(path, self._stored(path, size, chunks))

    def store(self, what: str, size: int, chunks: Iterable[bytes]) -> str:
        """Write a blob of exactly `size` bytes without a place in the tree; return its id. `what` is for errors."""
        return self._stored(what, size, chunks).hex()

    def _stored(self, what: str, size: int, chunks: Iterable[bytes]) -> bytes:
        if self._take_room(size):
            body = b"".join(chunks)
            if len(body) != size:
                raise WebarcError(f"{what}: the body changed its size while it was stored")
            return bytes.fromhex(self._tree.keep_blob(body))
        digest, left = blob_hash(size), size
        self._send(b"blob\ndata %d\n" % size)
        for chunk in chunks:
            left -= len(chunk)
            digest.update(chunk)
            self._send(chunk)
        if left:
            raise WebarcError(f"{what}: the body changed its size while it was stored")
        self._send(b"\n")
        self._count()
        return digest.digest()

    def finish(self) -> str:
        """Store all, and return the tree. Raises OSError or Damaged when git could not write.

        Until the importer is closed, no repack drops the trees.
        """
        if self._process is not None:
            self._end()
            self._loose.sync()  # git writes few objects as loose files, not as a pack
        # In a new repository many loose objects would be more files than all the rest; a later import adds no pack.
        has_pack = any((self._repository / "objects" / "pack").glob("*.pack"))
        return self._tree.finish(as_pack=not has_pack)

    def __enter__(self) -> FastImport:
        return self

    def __exit__(self, *exc: object) -> None:
        self._tree.__exit__(*exc)
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stderr):
            if stream is not None:
                _close_quietly(stream)

    def _take_room(self, size: int) -> bool:
        """Take room for a file that is stored together with the trees; return whether there was enough.

        That is for the first few, while none was sent to git.
        """
        self._room -= size + _KEPT // _KEPT_FILES
        return self._process is None and self._room >= 0

    def _count(self) -> None:
        self._blobs += 1
        if self._blobs % _BLOBS == 0:
            self._end()
            self._process = self._begin()

    def _running(self) -> subprocess.Popen[bytes]:
        """Return git, begun where it is needed first."""
        if self._process is None:
            self._process = self._begin()
        return self._process

    def _begin(self) -> subprocess.Popen[bytes]:
        settings = ["-c", "core.compression=1", "-c", "pack.compression=1", "-c", f"core.bigFileThreshold={BIG_FILE}"]
        process = subprocess.Popen(
            [*GIT, *settings, "fast-import", "--depth=0", "--quiet", "--done"],
            cwd=self._repository,
            env=environment() | _MALLOC,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=1 << 18,
        )
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # fs.pipe-user-pages-soft may forbid it; a smaller pipe works, too
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE)
        return process

    def _send(self, data: bytes) -> None:
        stdin = self._running().stdin
        assert stdin is not None
        try:
            stdin.write(data)
        except BrokenPipeError:
            self._wait()
            raise Damaged(f"{self._repository}: git fast-import ended early") from None

    def _end(self) -> None:
        self._send(b"done\n")
        self._wait()

    def _wait(self) -> None:
        """Wait for git, and raise its error."""
        process = self._running()
        stdin, stderr = process.stdin, process.stderr
        assert stdin is not None and stderr is not None
        _close_quietly(stdin)
        message = stderr.read()
        if process.wait():
            fail(f"{self._repository}: git fast-import failed", message, self._repository)


def _close_quietly(stream: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()
