"""Counts the words of each HTML page that is new in an archive, and stores the result with the page.

    python examples/wordcount.py /mnt/archive            # follows the archive for ever
    python examples/wordcount.py /mnt/archive --once     # what it has not counted yet, and ends
    WEBARC_TOKEN=… python examples/wordcount.py https://archive.example.org/    # the archive of a server

The result is a file `wordcount.txt` in the page's document folder (ARC), the words by how often they occur, and a data
node in its data.xml with the figures, which the schema wordcount.xsd describes. What is counted stays counted: a page
that a crawl left alone keeps both, and one that it changed is a new ARC without them. So whatever ended the program, it
continues where it was. There are several processes, since one has one processor at most for what is Python. Each has
several threads: a result is on the disk before its thread continues, and while one waits for that another one counts.
"""

# ruff: noqa: T201 # what it prints is for whoever started it

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import signal
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from xml.etree import ElementTree

from lxml import etree
from w3lib.encoding import html_to_unicode

from webarcfs.archive.model.errors import Exists, NotFound, Stale, WebarcError
from webarcfs.client import CommitTag, MetaData, WebarchiveClient

try:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError
except ImportError:
    sys.exit("wordcount.py reads pages with selectolax; pip install 'webarcfs[examples]'")

NAMESPACE = "urn:webarcfs:wordcount:1"
NODE = f"{{{NAMESPACE}}}wordcount"
FILE = "wordcount.txt"
SCHEMA = "wordcount.xsd"
HTML, XHTML = "text/html", "application/xhtml+xml"
PAGES = (HTML, XHTML)
PROCESSES = 2 * (os.cpu_count() or 1)
THREADS = 6  # in each
#: Pages that a process takes at a time, so that handing them out costs little.
AT_ONCE = 2 * THREADS
#: Tags that are not closed, beyond which a page is not read as browsers do: that grows with the square of the depth.
DEEP = 5_000
_WORD = re.compile(r"\w++(?:['\u2019-]\w++)*+")
#: Of ASCII: what no word has in it as a space, letters as small ones. The rest is left to what is slower.
_SPACED = bytes(
    byte if byte > 127 or chr(byte) in "_'-" else ord(chr(byte).lower()) if chr(byte).isalnum() else 32
    for byte in range(256)
)
_UNSEEN = ("script", "style", "template", "noscript")  # comments are no text
_UNSEEN_AT_ONCE = ",".join(_UNSEEN)
_TEXTS = etree.XPath("descendant::text()", smart_strings=False)


def count(body: bytes, mime_type: str = HTML) -> Counter[str]:
    """The words of what a page shows, in small letters. What is UTF-8 is read as such, the rest as the page says.

    Raises ValueError where it is nothing that can be read.
    """
    text = _shown(body, mime_type).encode().translate(_SPACED).decode()
    words = Counter(text.split())
    # Most are words by now. What may be more than one, or less, is looked at once, however often it occurs.
    for several in [each for each in words if not (each.isascii() and (each.isalnum() or each.isidentifier()))]:
        times = words.pop(several)
        for word in _WORD.findall(several.lower()):
            words[word] = words.get(word, 0) + times
    return words


def _shown(body: bytes, mime_type: str) -> str:
    """The text of a page, as browsers read it; of one with tags within tags within tags, as far as libxml2 does.

    In XHTML `<script/>` is a whole element, and for a parser of HTML 5 the beginning of one: libxml2 knows both.
    """
    page = _as_utf8(body)
    if mime_type == XHTML or _may_be_deep(page):
        return _shown_by_libxml2(page)
    try:
        tree = LexborHTMLParser(page)
    except SelectolaxError as error:
        raise ValueError(str(error)) from None
    for node in reversed(tree.css(_UNSEEN_AT_ONCE)):  # what is within another before that
        node.decompose()
    return tree.text(separator=" ")


def _may_be_deep(page: bytes) -> bool:
    tags = page.count(b"<")
    return tags > DEEP and tags - 2 * page.count(b"</") > DEEP


def _as_utf8(body: bytes) -> bytes:
    try:
        body.decode()
    except UnicodeDecodeError:
        return html_to_unicode(None, body)[1].encode()
    return body


def _shown_by_libxml2(page: bytes) -> str:
    try:
        root = etree.fromstring(page, etree.HTMLParser(encoding="utf-8", no_network=True))
    except etree.LxmlError as error:
        raise ValueError(str(error)) from None
    if root is None:
        return ""
    etree.strip_elements(root, *_UNSEEN, with_tail=False)
    return " ".join(_TEXTS(root))


def listed(words: Counter[str]) -> bytes:
    """The words, the most frequent first, in the order of the alphabet where they are as frequent."""
    alike = defaultdict(list)
    for word, times in words.items():
        alike[times].append(word)
    groups = [f"{times}\t" + f"\n{times}\t".join(sorted(alike[times])) for times in sorted(alike, reverse=True)]
    return "\n".join([*groups, ""]).encode()


# -- in the processes that count ---------------------------------------------------------------------------------------


def begin(place: str) -> None:
    """Make this process one that counts, until the one that started it ends."""
    global _client, _threads  # noqa: PLW0603 # a process has one
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C is for the process that started this one
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    _client = WebarchiveClient(place)
    _threads = ThreadPoolExecutor(THREADS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def count_pages(pages: list[MetaData]) -> list[bool]:
    """Count several; of each whether it was done now."""
    return list(_threads.map(count_page, pages))


def count_page(meta: MetaData) -> bool:
    """Count one page, unless that was done before; whether it was done now."""
    try:
        with _client.open_write(meta, FILE) as result, _client.open_read(meta, _client.data_name(meta)) as page:
            words = count(page.read(), meta.mime_type)
            node = ElementTree.Element(NODE, {"total": str(words.total()), "different": str(len(words))})
            # The node first: the file, which is there when this block has ended, says that all is done.
            with suppress(Exists):
                _client.add_data(meta, NODE, node)
            result.write(listed(words))
    except Exists:
        return False
    except (Stale, NotFound) as error:
        print(f"{meta.path}: skipped: {error}", file=sys.stderr)  # a crawl replaced it: that one's tag follows
        return False
    except (ValueError, WebarcError) as error:
        print(f"{meta.path}: not counted: {error}", file=sys.stderr)
        return False
    return True


# -- in the one that hands pages out -----------------------------------------------------------------------------------


class WordCount:
    """The observer: call it with commitTags, and their new pages are counted, by the processes of a pool."""

    def __init__(self, client: WebarchiveClient, pool: ProcessPoolExecutor) -> None:
        self._client = client
        self._pool = pool
        self.counted = 0
        #: Set when a process of the pool died: nothing is counted any more.
        self.broken = threading.Event()

    def __call__(self, tags: list[CommitTag]) -> None:
        """Count the pages of these snapshots that have not been counted yet."""
        for tag in tags:
            try:
                # The first ones are counted while the others are still looked for.
                pages = (meta for meta in self._client.changed(tag) if meta.mime_type in PAGES)
                done = list(chain.from_iterable(self._pool.map(count_pages, batches(pages))))
            except BrokenProcessPool:
                self.broken.set()
            except (CancelledError, RuntimeError):  # it is the end, and the pool takes no more
                return
            else:
                print(f"{tag}: {sum(done)} of {len(done)} new pages counted", flush=True)
                self.counted += sum(done)


def batches(pages: Iterator[MetaData]) -> Iterator[list[MetaData]]:
    """As many at a time as a process takes."""
    while batch := list(islice(pages, AT_ONCE)):
        yield batch


def install_schema(client: WebarchiveClient) -> None:
    """Give the archive the schema of our data node, once, by its mount."""
    if client.mount is None:
        return  # a server takes no schemas; whoever runs it copies ours to `xsd/` of the archive
    # Who may not add it can count all the same: without a schema nodes are accepted, unless the archive is strict.
    with suppress(FileExistsError, PermissionError), (client.mount / ".schemas" / SCHEMA).open("xb") as schema:
        schema.write((Path(__file__).parent / SCHEMA).read_bytes())


def main() -> None:
    """Read the command line; count what there is, then what comes, until a signal says that it is enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", help="where the archive is mounted, or the URL of its server")
    parser.add_argument("--once", action="store_true", help="count what is there, and end")
    given = parser.parse_args()
    with (
        WebarchiveClient(given.place, interval=0.05) as client,
        ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork"), begin, (given.place,)) as pool,
    ):
        if client.mount is None and client.archive is not None:
            parser.error(f"{given.place} is no mount; `mount.webarcfs {given.place} DIR` makes one")
        pool.submit(os.getpid).result()  # forks them all, now: a process with threads must not be forked
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit())
        install_schema(client)
        counter = WordCount(client, pool)
        try:
            known = client.published()
            counter(known)
            print(f"counted {counter.counted} pages", flush=True)
            if not given.once:
                client.add_observer(counter, since=known[-1] if known else None)
                counter.broken.wait()
        finally:
            pool.shutdown(cancel_futures=True)
        if counter.broken.is_set():
            sys.exit("a process that counts was killed; started again, this program continues where it was")


if __name__ == "__main__":
    main()
