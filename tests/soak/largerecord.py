"""A document of a gigabyte: out as WARC and in again, in flat memory, whatever the formats of export."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measure import Cost, cost
from tests.support import archives
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CommitTag, CrawlMessage

_SIZE = int(os.environ.get("LARGE_RECORD", str(1 << 30)))
_BLOCK = 1 << 20
#: MiB of memory that is not a mapped file.
_MOST = 100
_WEBARC = (sys.executable, "-c", "from webarcfs.commands.cli import main; main()")
_AGENT = (sys.executable, "-c", "from agent.cli import main; main()")


def main() -> int:
    """Return 1 if it does not come back, or takes memory for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = directory.create(folder / "archive")
        tree = _publish(archive)
        again = directory.create(folder / "again")
        out = folder / "out"
        costs = {
            "export": cost([*_WEBARC, "export", "--archive", str(archive.root), str(out)]),
            "warcio check": cost([str(Path(sys.executable).with_name("warcio")), "check", *map(str, out.iterdir())]),
            "import": cost(
                [*_AGENT, "import", "--as-exported", "--archive", str(again.root), *map(str, out.iterdir())]
            ),
        }
        for what, each in costs.items():
            print(f"{what}: {each.seconds:.0f} s, {each.anonymous:.0f} MiB")
        head = archives.store_of(again).head()
        came = head is not None and head.tree == tree
        return int(not came or not all(_is_sound(each) for each in costs.values()))


def _is_sound(each: Cost) -> bool:
    return each.exit_code == 0 and each.anonymous < _MOST


def _publish(archive: Archive) -> str:
    """Publish the document; return the tree."""
    store, tag = archives.store_of(archive), CommitTag(archives.FIRST, archives.DOMAIN)
    meta = archives.metadata(archives.DOMAIN, "large.bin", tag)
    with store.importer(None) as importer:
        blob = importer.store("large.bin", _SIZE, _body())
        importer.put("large.bin/data.xml", data_xml.describe(meta))
        importer.put("large.bin/headers.http", archives.HEAD)
        tree = importer.finish()
    tree = store.edit(tree, {"large.bin/data.bin": blob})
    archives.commit(store, tree, str(CrawlMessage(tag, "test", True, 1)), tag, new_tag=True)
    Feed(archive.changes).append(tag)
    return tree


def _body() -> Iterator[bytes]:
    """Bytes that do not compress, and do not repeat at once."""
    block = os.urandom(_BLOCK)
    for number in range(_SIZE // _BLOCK):
        turn = number % _BLOCK
        yield block[turn:] + block[:turn]


if __name__ == "__main__":
    sys.exit(main())
