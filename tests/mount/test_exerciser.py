"""Random reads, writes, truncations, mappings and copies through several handles of open files, against a model.

As file-system exercisers do: after each operation all handles see what plain bytes in memory are. The files that were
closed are the same in the next mount. `EXERCISER_OPERATIONS` makes it long.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import UMOUNT, run
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.mount

OPERATIONS = int(os.environ.get("EXERCISER_OPERATIONS", "700"))
_FILES = 3
_HANDLES = 4
#: A few pages, so that operations meet; offsets and lengths are near the borders of pages half of the time.
_LARGEST = 40_000
_PAGE = mmap.PAGESIZE


class Written:
    """A file being written: its path, its handles (descriptor → whether it appends), its bytes as they must be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = bytearray()
        self.handles = {os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR): False}


class Exerciser:
    """Files in the folder of an ARC, and what is done to them. `maps`: whether shared mappings are there."""

    def __init__(self, folder: Path, seed: int, *, maps: bool) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.maps = maps
        self.files: list[Written] = []
        self.final: dict[str, bytes] = {}
        self.told: list[str] = []
        self._operations: list[Callable[[Written, int], str]] = (
            [self.write] * 6 + [self.read] * 4 + [self.truncate] * 2 + [self.copy] * 2 + [self.map] * 2
            + [self.cut_by_name, self.sync, self.close_copy, self.close_copy, self.open, self.open]
            + [self.close, self.rename]
        )  # fmt: skip

    def step(self) -> None:
        """One operation on some handle of some file; then all handles and the name are looked at."""
        while len(self.files) < _FILES:
            self.files.append(Written(self.folder / f"f{len(self.final) + len(self.files)}-{len(self.told)}"))
            self.told.append(f"create {self.files[-1].path.name}")
        file = self.chance.choice(self.files)
        handle = self.chance.choice(list(file.handles))
        operation = self.chance.choice(self._operations)
        self.told.append(f"{operation.__name__} {file.path.name} {handle}")
        self.told[-1] += f" {operation(file, handle)}"
        self.check(file)

    def check(self, file: Written) -> None:
        """Size and bytes, by each handle and by name."""
        right = bytes(file.bytes)
        for handle in file.handles:
            assert os.fstat(handle).st_size == len(right), self.story()
            assert os.lseek(handle, 0, os.SEEK_END) == len(right), self.story()
            assert os.pread(handle, len(right) + 1, 0) == right, self.story()
        assert file.path.stat().st_size == len(right), self.story()
        assert file.path.read_bytes() == right, self.story()

    def story(self) -> str:
        """What was done last."""
        return "\n".join(self.told[-40:])

    def some(self, most: int) -> int:
        """An offset or length up to `most`, often at the border of a page."""
        if most > _PAGE and self.chance.random() < 0.5:
            return min(most, max(0, self.chance.randrange(most // _PAGE + 1) * _PAGE + self.chance.choice((-1, 0, 1))))
        return self.chance.randint(0, most)

    # -- operations ----------------------------------------------------------------------------------------------------

    def write(self, file: Written, handle: int) -> str:
        """pwrite(2): at the end where the handle appends."""
        data, at = self.chance.randbytes(self.some(6_000)), self.some(_LARGEST)
        assert os.pwrite(handle, data, at) == len(data)
        self._put(file, data, len(file.bytes) if file.handles[handle] else at)
        return f"{at}+{len(data)}"

    def read(self, file: Written, handle: int) -> str:
        """pread(2)."""
        at, size = self.some(_LARGEST), self.some(9_000)
        assert os.pread(handle, size, at) == file.bytes[at : at + size], self.story()
        return f"{at}+{size}"

    def truncate(self, file: Written, handle: int) -> str:
        """ftruncate(2)."""
        size = self.some(_LARGEST)
        os.ftruncate(handle, size)
        self._cut(file, size)
        return f"{size}"

    def cut_by_name(self, file: Written, _handle: int) -> str:
        """truncate(2)."""
        size = self.some(_LARGEST)
        os.truncate(file.path, size)
        self._cut(file, size)
        return f"{size}"

    def copy(self, file: Written, handle: int) -> str:
        """copy_file_range(2) from some file: not to a handle that appends (EBADF), nor onto itself (EINVAL)."""
        source = self.chance.choice(self.files)
        begin, at, size = self.some(len(source.bytes)), self.some(_LARGEST), self.some(5_000)
        data = bytes(source.bytes[begin : begin + size])
        if file.handles[handle] or (source is file and abs(begin - at) < size):
            return "left out"
        copied = os.copy_file_range(self.chance.choice(list(source.handles)), handle, size, begin, at)
        assert copied == len(data), self.story()
        self._put(file, data, at)
        return f"{source.path.name} {begin}+{size} to {at}"

    def map(self, file: Written, handle: int) -> str:
        """A shared mapping, written to somewhere and read; mmap copies the handle and closes that."""
        if not file.bytes:
            return "empty"
        if not self.maps:
            with pytest.raises(OSError, match="No such device") as refused:
                mmap.mmap(handle, 0)
            assert refused.value.errno == errno.ENODEV
            return "refused"
        at = self.some(len(file.bytes) - 1)
        data = self.chance.randbytes(min(len(file.bytes) - at, 5_000))
        with mmap.mmap(handle, 0) as mapping:
            assert mapping[:] == file.bytes, self.story()
            mapping[at : at + len(data)] = data
            self._put(file, data, at)
            assert mapping[:] == file.bytes, self.story()
            if self.chance.random() < 0.5:
                mapping.flush()
        return f"{at}+{len(data)}"

    def sync(self, _file: Written, handle: int) -> str:
        """fsync(2)."""
        os.fsync(handle)
        return ""

    def close_copy(self, _file: Written, handle: int) -> str:
        """close(2) of a copy."""
        os.close(os.dup(handle))
        return ""

    def open(self, file: Written, _handle: int) -> str:
        """One more handle, by name: some append, some begin by cutting it off."""
        if len(file.handles) >= _HANDLES:
            return "enough"
        how = self.chance.choice((0, 0, os.O_APPEND, os.O_TRUNC))
        new = os.open(file.path, os.O_RDWR | how)
        file.handles[new] = how == os.O_APPEND
        if how == os.O_TRUNC:
            self._cut(file, 0)
        return f"{new} {how:o}"

    def close(self, file: Written, handle: int) -> str:
        """close(2); the last one makes the file final."""
        os.close(handle)
        del file.handles[handle]
        if not file.handles:
            self.final[file.path.name] = bytes(file.bytes)
            self.files.remove(file)
        return ""

    def rename(self, file: Written, _handle: int) -> str:
        """rename(2) of a file that is open."""
        new = file.path.with_name(f"r{len(self.told)}")
        file.path = file.path.rename(new)
        return new.name

    # ------------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _put(file: Written, data: bytes, at: int) -> None:
        if data:
            file.bytes.extend(bytes(max(0, at - len(file.bytes))))
            file.bytes[at : at + len(data)] = data

    @staticmethod
    def _cut(file: Written, size: int) -> None:
        del file.bytes[size:]
        file.bytes.extend(bytes(size - len(file.bytes)))

    def end(self) -> None:
        """Close all."""
        for file in list(self.files):
            for handle in list(file.handles):
                self.close(file, handle)


@pytest.mark.timeout(max(300, OPERATIONS // 10))
def test_all_handles_of_a_file_see_the_same_bytes(archive: Archive, mount: Mounter, binding: str) -> None:
    """S-add-2, S-add-6, S-add-8, S-cache-4 and S-durable-1 for whoever writes by several handles at once."""
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    taken = Exerciser(mounted / DOMAIN / "a.html", OPERATIONS, maps=binding == "libfuse3")
    try:
        for _ in range(OPERATIONS):
            taken.step()
    finally:
        taken.end()
    for again in (False, True):
        if again:
            assert run(UMOUNT, mounted.point).returncode == 0
            mounted = mount(archive)
        folder = mounted / DOMAIN / "a.html"
        found = {name: (folder / name).read_bytes() for name in taken.final}
        assert [name for name, body in taken.final.items() if found[name] != body] == []
