"""What an imported file consists of: one stream of records, or several in a WACZ, or the cache of an HTTrack mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.importing import httrack, otherformats
from agent.importing.foreign import Part, Report, Step, file_part
from agent.importing.wacz import MAGIC, Wacz
from webarcfs.archive.model.errors import Damaged


def parts_of(path: Path, name: str, report: Report, step: Step) -> Iterator[Part]:
    """Yield the parts of the file `path`, which messages call `name`. Raises WebarcError if it has another format."""
    if is_mirror(path):
        yield from httrack.parts(path, name, report)
        return
    with path.open("rb") as file:
        start, size = file.read(4), file.seek(0, 2)
        if start in MAGIC:
            yield from Wacz(file, size, name).parts(report, step)
        elif other := otherformats.named(path, name):
            raise Damaged(other)
        else:
            yield file_part(file, size, name, report)


def check(path: Path, name: str) -> set[str]:
    """Return the digests that a WACZ has of its WARC files. Raises WebarcError for a format that is not read."""
    with path.open("rb") as file:
        start, size = file.read(4), file.seek(0, 2)
        if start in MAGIC and not is_mirror(path):
            return Wacz(file, size, name).digests()
    for _ in parts_of(path, name, Report(), lambda _: None):
        pass
    return set()


def is_mirror(path: Path) -> bool:
    """Return whether a file is the cache of a mirror of HTTrack."""
    return path.name == httrack.ANSWERS and path.parent.name == httrack.CACHE
