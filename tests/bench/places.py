"""Where reading is measured: plain files, mounts of the same tree, `.snapshots/`, a C passthrough over the plain files.

Each place is entered anew for a cold run, and gives the folder in which the jobs find the domains.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.mounts import Mounted
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.mount.process import mountpoint


@dataclass(frozen=True)
class Stage:
    """What the places are made of: an archive, the same as plain files, a folder to mount in."""

    archive: Archive
    plain: Path
    folder: Path


Place = Callable[[Stage], AbstractContextManager[Path]]


@contextmanager
def plain(stage: Stage) -> Iterator[Path]:
    """The plain files."""
    yield stage.plain


def mounted(options: str) -> Place:
    """A mount with these options."""

    @contextmanager
    def place(stage: Stage) -> Iterator[Path]:
        mount = Mounted(stage.archive.root, stage.folder / "mnt", "-o", options)
        try:
            yield mount.point
        finally:
            mount.clear()

    return place


@contextmanager
def snapshots(stage: Stage) -> Iterator[Path]:
    """The newest states by way of `.snapshots/`; a folder of links has them under their domains' names."""
    with mounted("binding=libfuse3")(stage) as point:
        links = stage.folder / "links"
        links.mkdir()
        try:
            for line in Feed(stage.archive.changes).lines():
                link = links / CommitTag.parse(line).domain
                link.unlink(missing_ok=True)
                link.symlink_to(point / ".snapshots" / line)
            yield links
        finally:
            shutil.rmtree(links)


def passthrough(*options: str) -> Place:
    """A C program on libfuse's high-level API that shows the plain files."""

    @contextmanager
    def place(stage: Stage) -> Iterator[Path]:
        program, point = _compiled(stage.folder), stage.folder / "passed"
        point.mkdir(exist_ok=True)
        with subprocess.Popen([program, stage.plain, point, "-f", *options], stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: mountpoint.mounted(point), 60)
                yield point
            finally:
                mountpoint.unmount_or_detach(point)
                process.wait(60)

    return place


def _compiled(folder: Path) -> Path:
    program = folder / "passthrough"
    if not program.exists():
        flags = subprocess.run(
            ["pkg-config", "fuse3", "--cflags", "--libs"], capture_output=True, text=True, check=True
        )
        source = Path(__file__).with_name("passthrough.c")
        subprocess.run(["gcc", "-O2", source, "-o", program, *shlex.split(flags.stdout)], check=True)
    return program


#: What is measured, the first being what the others are compared with.
PLACES: Mapping[str, Place] = {
    "plain": plain,
    "ro": mounted("ro,binding=libfuse3"),
    "rw": mounted("binding=libfuse3"),
    "snapshots": snapshots,
    "fusepy": mounted("binding=fusepy"),
    "C": passthrough(),
    # It lets the kernel keep names, attributes and contents, which is all that the high-level API has for that.
    "C, caching": passthrough("-o", "kernel_cache,entry_timeout=1000000,attr_timeout=1000000"),
}
