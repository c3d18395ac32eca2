"""The numbers of each page that a browser showed: what its scripts asked for, and what of that did not come.

They lie in the report, in `shown.jsonl.gz`, a line of JSON for each page, in the order in which the crawl found them.
The database with them goes with the job. A report of a crawl without a browser has no such file.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from agent.crawl.frontier import ShownView
from agent.crawl.vocabulary import ViewState
from webarcfs.archive.model.errors import Damaged

NAME: Final = "shown.jsonl.gz"
#: State of a page for the browser → what is said of their number.
_VIEWS = {
    ViewState.WAITING: "waiting", ViewState.SHOWING: "being shown", ViewState.DONE: "shown",
    ViewState.FAILED: "could not be shown",
}  # fmt: skip


def text_of_views(views: Mapping[str, int]) -> str:
    """Return how far the browser of an open job is; empty where no page is for it."""
    counts = [f"{views[state]} {words}" for state, words in _VIEWS.items() if views.get(state)]
    return f"pages for the browser: {', '.join(counts)}" if counts else ""


def worst_first(pages: Iterable[ShownView]) -> list[ShownView]:
    """Return pages in the order in which people want to look at them.

    First are those that could not be shown, then those with the most requests without a response, then those with the
    most refused ones: a crawl refuses adverts and other hosts as well, which nobody misses.
    """
    return sorted(pages, key=lambda page: (not page.has_failed, -page.missed, -page.refused, page.url))


def write(folder: Path, pages: Iterable[ShownView]) -> None:
    """Write the pages into the folder of a report, durably; without any there is no file."""
    path = folder / NAME
    is_empty = True
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        for page in pages:
            is_empty = False
            packed.write(json.dumps(page._asdict(), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        packed.close()
        os.fsync(file.fileno())
    if is_empty:
        path.unlink()


def read(folder: Path) -> Iterator[ShownView]:
    """Yield the pages of a report; nothing where it has none. Raises Damaged."""
    try:
        with gzip.open(folder / NAME, "rb") as file:
            for page_line in file:
                yield ShownView(**json.loads(page_line))
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
        raise Damaged(f"{folder / NAME} cannot be read: {error}") from None
