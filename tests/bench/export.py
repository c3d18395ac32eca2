"""How fast an archive is left: `webarc export`, beside warcio writing the same records, and wget fetching them.

The pages are those of the benchmark of crawls. warcio has all records in memory before its clock runs; an export reads
them from git, and compares each with the snapshot before. Times are processor seconds of one process each, since other
programs may be at work; wget's are those that passed, as its server is another process.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.warcwriter import WARCWriter

from tests.bench.measure import cost
from tests.bench.serve import running
from tests.support import archives
from tests.support.generated import Generated
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.export import warc
from webarcfs.export.selection import Asked, select

_DOMAIN = "www.example.org"
_CHANGED = 100  # one page in so many
#: Fields that warcio computes.
_OF_WARCIO = frozenset({"Content-Length", "Content-Type", "WARC-Type", "WARC-Block-Digest", "WARC-Payload-Digest"})


def export(sizes: Sequence[int]) -> None:
    """Speed at the middle size, memory at all of them."""
    speed = 10_000 if 10_000 in sizes else max(sizes)
    print(f"\nexport of {speed:,} pages as WARC   aim: at least 0.5 of warcio's speed")
    with _archive(speed) as (archive, folder):
        ours = _ours(archive, folder / "out")
        first = next((folder / "out").iterdir())
        records = list(_records(first))
        size = sum(len(each[2]) for each in records)
        theirs = _warcio(records, folder / "theirs.warc.gz")
        for name, seconds in (("webarc export", ours), ("warcio, from memory", theirs)):
            print(f"  {name:26} {speed / seconds:9,.0f} documents a second, {size / seconds / 1e6:6.1f} MB/s")
        print(f"  warcio / webarc export     {theirs / ours:9.2f}", end="")
        print(f"   ({first.stat().st_size:,} and {(folder / 'theirs.warc.gz').stat().st_size:,} bytes)")
        del records
        _again(archive, folder, ours)
    with running("--generate", str(speed)) as port, tempfile.TemporaryDirectory() as fetched:
        urls = Path(fetched, "urls")
        urls.write_text("".join(f"http://127.0.0.1:{port}{path}\n" for path in Generated(speed).paths()[:speed]))
        wget = cost(["wget", "--no-config", "-nv", "-i", "urls", "-O", "/dev/null", "--warc-file=x"], Path(fetched))
        print(f"  wget --warc-file           {speed / wget.seconds:9,.0f} documents a second, as time passed")
    print("peak memory of an export   aim: flat")
    for pages in sizes:
        with _archive(pages) as (archive, folder):
            command = "from webarcfs.commands.cli import main; main()"
            words = ["export", "--archive", str(archive.root), str(folder / "out")]
            done = cost([sys.executable, "-c", command, *words])
            if done.exit_code:
                raise SystemExit(f"the export ended with {done.exit_code}")
            print(f"  {pages:7,} pages  {done.together:6.0f} MiB, {done.anonymous:.0f} without mapped files")


@contextmanager
def _archive(pages: int) -> Iterator[tuple[Archive, Path]]:
    """An archive of so many pages, and a folder beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder, site = Path(name), Generated(pages)
        archive = directory.create(folder / "archive")
        named = ((f"{site.path(number)[1:] or 'index.html'}", site.body(number)) for number in range(pages))
        archives.publish_many(archive, named, _DOMAIN)
        yield archive, folder


def _ours(archive: Archive, out: Path, asked: Asked | None = None) -> float:
    """Processor seconds of an export."""
    selection = select(archive, asked or Asked())
    begun = time.process_time()
    warc.export(selection, out, lambda *_: None, lambda: False)
    return time.process_time() - begun


def _again(archive: Archive, folder: Path, first: float) -> None:
    """A second snapshot, in which one page in a hundred changed: what an export of it alone takes, by revisits."""
    site = Generated(max(1, _CHANGED))
    before = select(archive, Asked()).newest
    changed = {site.path(number)[1:]: b"changed" for number in range(1, _CHANGED)}
    archives.publish(archive, _DOMAIN, changed)
    seconds = _ours(archive, folder / "since", Asked(since=before))
    print(f"  an unchanged snapshot more {seconds / first:9.2f} of the first one's time")


def _records(path: Path) -> Iterator[tuple[str, str, bytes, Any, dict[str, str], str]]:
    """All records of a file, in memory."""
    with path.open("rb") as file:
        for each in ArchiveIterator(file):
            fields = dict(each.rec_headers.headers)
            kept = {name: text for name, text in fields.items() if name not in _OF_WARCIO}
            body = each.content_stream().read()
            uri = fields.get("WARC-Target-URI", "")
            yield uri, each.rec_type, body, each.http_headers, kept, fields["Content-Type"]


def _warcio(records: Sequence[tuple[str, str, bytes, Any, dict[str, str], str]], out: Path) -> float:
    """Processor seconds for warcio to write records, with digests as its users have it make them."""
    begun = time.process_time()
    with out.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for uri, kind, body, http, fields, type_ in records:
            made = writer.create_warc_record(
                uri,
                kind,
                payload=io.BytesIO(body),
                warc_content_type=type_,
                http_headers=http,
                warc_headers_dict=fields,
            )
            writer.write_record(made)
    return time.process_time() - begun
