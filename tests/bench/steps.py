"""The step `convert` on real and varied pages: pages a minute beside seed 2's 310, and a second snapshot.

The pages are the HTML of Debian's documentation packages on this machine; where there are fewer than asked for, they
come again with another comment in each, so that each body is another one. Seed 2 took 3.5 hours for 65,000 pages.
"""

from __future__ import annotations

import itertools
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agent.catalogue import stepfolders
from agent.catalogue.recording import catch_up_records
from agent.indexing import recovery
from agent.steps.running import run_step
from tests.support import archives
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.catalogue.workflow import WorkflowStep
from webarcfs.archive.config.directory import Archive

_DOCS = Path("/usr/share/doc")
#: Pages a minute of seed 2.
_SEED = 65_000 / 210
_CHANGED = 0.01


def steps(pages: int) -> None:
    """Convert two snapshots of so many pages."""
    with tempfile.TemporaryDirectory() as folder:
        archive = archives.make_archive(Path(folder))
        archive.settings.write_text("[index]\nlinks = false\nsearch = false\n")
        archive.converter_settings.parent.mkdir()
        archive.converter_settings.touch()
        kept: dict[str, bytes] = {}
        sizes: list[int] = []

        def told() -> Iterator[tuple[str, bytes]]:
            for path, body in itertools.islice(_pages(), pages):
                sizes.append(len(body))
                if len(sizes) <= max(1, int(_CHANGED * pages)):
                    kept[path] = body + b"<!-- changed -->"
                yield path, body

        archives.publish_many(archive, told())
        first, seconds = _converted(archive)
        a_minute = 60 * pages / seconds
        print(
            f"convert: {pages:,} pages of {sum(sizes) / pages / 1000:.0f} kB in {seconds:.1f} s: {a_minute:,.0f} a"
            f" minute, {a_minute / _SEED:.0f} times seed 2's {_SEED:.0f}; {first.text(51)} not; {first.text(52)}"
        )
        archives.publish(archive, pages=kept)
        second, seconds = _converted(archive)
        print(f"convert: the second snapshot, {len(kept):,} changed, in {seconds:.1f} s; {second.text(52)}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"convert: {peak:.0f} MB at most")


def _converted(archive: Archive) -> tuple[Record, float]:
    """Convert the newest snapshot; return its record, and the seconds."""
    recovery.catch_up(archive)
    catch_up_records(archive)
    catalogue = Catalogue(archive)
    record, _ = catalogue.read(next(catalogue.ids("test")))
    asked = stepfolders.ask(archive, record, WorkflowStep.CONVERT, by="bench")
    begun = time.monotonic()
    run_step(archive, asked.folder)
    return catalogue.read(record.id)[0], time.monotonic() - begun


def _pages() -> Iterator[tuple[str, bytes]]:
    """Yield real pages with their paths, again and again."""
    for turn in itertools.count():
        for folder, _, names in os.walk(_DOCS):
            for name in names:
                path = Path(folder, name)
                if path.suffix in (".html", ".htm") and path.is_file():
                    body = path.read_bytes()
                    if body:
                        comment = b"<!-- %d -->" % turn if turn else b""
                        yield f"{turn}{str(path).removeprefix(str(_DOCS))}", body + comment
