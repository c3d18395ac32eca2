"""Writes many new objects to a repository at once, in one pack (gitformat-pack): one sync for all of them.

Objects are made here and sent to git as a stream; git checks them, and unpacks small packs.
"""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.git import durability
from webarcfs.archive.git.git_command import GIT, environment, fail
from webarcfs.archive.model.addition import blob_hash
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system.fsync import write_all

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
        found = self._objects.get(oid, b"")
        return len(found) if isinstance(found, bytes) else found.size

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

    def store(self) -> Path | None:
        """Store all; return the file that keeps repacks from removing the objects, if any; the caller removes it.

        Raises OSError on a full disk, Damaged when git refuses.
        """
        if not self._objects:
            return None
        few = len(self._objects) < FEW and all(isinstance(each, bytes) for each in self._objects.values())
        # Without core.fsyncMethod=batch: objects would get their names before their bytes are safe.
        command = ["unpack-objects", "-q"] if few else ["index-pack", "--stdin", "--keep"]
        for left in reversed(range(_TRIES)):
            code, said, complaint = self._given_to(command)
            # A repack may remove an empty objects/xx/ just before an object is put there.
            if not code or not left or b"write object" not in complaint:
                break
        if code:
            fail(f"{self._repository}: objects were not stored", complaint, self._repository)
        if few:
            durability.loose(self._repository, self._objects)
            return None
        name = said.split()[-1].decode("ascii", "replace") if said.split() else ""
        return self._repository / "objects" / "pack" / f"pack-{name}.keep"

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
            said, complaint = process.stdout.read(), process.stderr.read()
        return process.returncode, said, complaint

    def _stream(self) -> Iterator[bytes]:
        digest = hashlib.sha1(usedforsecurity=False)
        for part in self._parts():
            digest.update(part)
            yield part
        yield digest.digest()

    def _parts(self) -> Iterator[bytes]:
        yield b"PACK" + (2).to_bytes(4, "big") + len(self._objects).to_bytes(4, "big")
        for each in self._objects.values():
            if isinstance(each, bytes):
                yield each
            else:
                yield from _deflated(each)


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
