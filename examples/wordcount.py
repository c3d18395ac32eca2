"""Counts the words of each HTML page that is new in an archive, and leaves the result beside the page (/Cl-12/).

    python examples/wordcount.py /mnt/archive            # follows the archive for ever
    python examples/wordcount.py /mnt/archive --once     # what it has not counted yet, and ends

The result is a file `wordcount.txt` in the page's ARC, the words by how often they occur, and a data node in its
data.xml with the figures, which the schema wordcount.xsd describes. What is counted stays counted: a page that a crawl
left alone keeps both, and one that it changed is a new ARC without them. So whatever ended the program, it goes on
where it was. Pages are counted by as many processes as there are processors, and several results are stored at a time:
each is on the disk before the next step, and the disk takes many at once as easily as one.
"""

# ruff: noqa: T201 # what it prints is for whoever started it

from __future__ import annotations

import argparse
import multiprocessing
import re
import signal
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.pool import Pool
from pathlib import Path
from xml.etree import ElementTree

from lxml import etree

from webarcfs.archive.errors import Exists, NotFound, Stale, WebarcError
from webarcfs.client import CommitTag, MetaData, WebarchiveClient

NAMESPACE = "urn:webarcfs:wordcount:1"
NODE = f"{{{NAMESPACE}}}wordcount"
FILE = "wordcount.txt"
SCHEMA = "wordcount.xsd"
PAGES = ("text/html", "application/xhtml+xml")
#: Pages under way at a time: while some wait for the disk, others are counted.
AT_ONCE = 16
_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_UNSEEN = ("script", "style", "template", "noscript", etree.Comment, etree.ProcessingInstruction)
_TEXTS = etree.XPath("//text()", smart_strings=False)


def count(body: bytes) -> Counter[str]:
    """The words of what a page shows, in small letters. What is UTF-8 is read as such, the rest as the page says.

    Raises ValueError where it is nothing that lxml reads.
    """
    encoding = None
    with suppress(UnicodeDecodeError):
        body.decode("utf-8")
        encoding = "utf-8"
    try:
        root = etree.fromstring(body, etree.HTMLParser(encoding=encoding, no_network=True)) if body.strip() else None
    except etree.LxmlError as error:
        raise ValueError(str(error)) from None
    if root is None:
        return Counter()
    etree.strip_elements(root, *_UNSEEN, with_tail=False)
    return Counter(_WORD.findall(" ".join(_TEXTS(root)).lower()))


class WordCount:
    """The observer: call it with commitTags, and their new pages are counted, by the processes of a pool."""

    def __init__(self, client: WebarchiveClient, pool: Pool) -> None:
        self._client = client
        self._pool = pool
        self.counted = 0

    def __call__(self, tags: list[CommitTag]) -> None:
        """Count the pages of these snapshots that have not been counted yet."""
        for tag in tags:
            pages = [meta for meta in self._client.changed(tag) if meta.mime_type in PAGES]
            with ThreadPoolExecutor(AT_ONCE) as threads:
                counted = sum(threads.map(self._page, pages))
            print(f"{tag}: {counted} of {len(pages)} new pages counted", flush=True)
            self.counted += counted

    def _page(self, meta: MetaData) -> bool:
        """Count one page, unless that was done before; whether it was done now."""
        try:
            if FILE in self._client.list(meta):
                return False
            with self._client.open_read(meta, self._client.data_name(meta)) as stream:
                body = stream.read()
            self._store(meta, self._pool.apply(count, (body,)))
        except (Stale, Exists, NotFound) as error:
            # A crawl replaced the page meanwhile, and its own tag follows; or another counter was faster.
            print(f"{meta.path}: passed over: {error}", file=sys.stderr)
            return False
        except (ValueError, WebarcError) as error:
            print(f"{meta.path}: not counted: {error}", file=sys.stderr)
            return False
        return True

    def _store(self, meta: MetaData, words: Counter[str]) -> None:
        # The node first: the file says that all is done.
        node = ElementTree.Element(NODE, {"total": str(words.total()), "different": str(len(words))})
        with suppress(Exists):
            self._client.add_data(meta, NODE, node)
        with self._client.open_write(meta, FILE) as stream:
            ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
            stream.write("".join(f"{number}\t{word}\n" for word, number in ordered).encode())


def install_schema(client: WebarchiveClient) -> None:
    """Give the archive the schema of our data node, once."""
    assert client.mount is not None
    # Who may not add it can count all the same: without a schema nodes are accepted, unless the archive is strict.
    with suppress(FileExistsError, PermissionError), (client.mount / ".schemas" / SCHEMA).open("xb") as schema:
        schema.write((Path(__file__).parent / SCHEMA).read_bytes())


def main() -> None:
    """Read the command line; count what there is, then what comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mount", type=Path, help="where the archive is mounted")
    parser.add_argument("--once", action="store_true", help="count what is there, and end")
    given = parser.parse_args()
    # Not forked: a process with threads must not be. Ctrl-C is for this process, which ends the others.
    processes = multiprocessing.get_context("spawn").Pool(None, signal.signal, (signal.SIGINT, signal.SIG_IGN))
    with processes as pool, WebarchiveClient(given.mount, interval=0.1) as client:
        if client.mount is None:
            parser.error(f"{given.mount} is no mount; `mount.webarcfs {given.mount} DIR` makes one")
        install_schema(client)
        counter = WordCount(client, pool)
        known = [CommitTag.parse(line) for line in (client.mount / ".changes").read_text("utf-8").split()]
        counter(known)
        print(f"counted {counter.counted} pages", flush=True)
        if not given.once:
            client.add_observer(counter, since=known[-1] if known else None)
            end = threading.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: end.set())
            end.wait()


if __name__ == "__main__":
    main()
