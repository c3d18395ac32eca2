"""`python -m tests.journeys`: how many modules three journeys pass, in the main process.

A module is passed if one of its functions is called. The journeys are a crawl of a site of two pages, up to its record;
a GET of an archived page in the reading room, when it was asked for before; and a click on Release at the desk with the
page that it leads to.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from agent.indexing.recovery import recover
from tests.desk import conftest as desk_world
from tests.support import archives, desks, rooms
from tests.support.crawls import crawl
from tests.support.site import Site
from tests.support.sources import ROOT
from webarcfs.archive.catalogue.record import RecordState

_PACKAGES = tuple(f"{ROOT / name}/" for name in ("webarcfs", "agent"))


class Passed:
    """The modules whose functions are called while it listens, in any thread that begins later."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.is_listening = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and self.is_listening:
            path = frame.f_code.co_filename
            # A module's own code runs once, when it is imported.
            if path.startswith(_PACKAGES) and path.endswith(".py") and frame.f_code.co_name != "<module>":
                self.modules.add(str(Path(path).relative_to(ROOT)))

    @contextmanager
    def during(self) -> Iterator[None]:
        """Listen."""
        self.modules.clear()
        self.is_listening = True
        try:
            yield
        finally:
            self.is_listening = False


def _crawl(passed: Passed, folder: Path) -> None:
    archive = archives.make_archive(folder)
    with Site() as site:
        site.add_html("/", '<a href="/other.html">other</a>')
        site.add_html("/other.html", "other")
        with passed.during():
            outcome = crawl(archive, site.url())
    assert outcome.complete


def _get(passed: Passed, folder: Path) -> None:
    archive = archives.make_archive(folder)
    url = "http://www.example.test/"
    tag = rooms.published(
        archive, "www.example.test", {url: rooms.Page(b"<p>one <a href='/b'>b</a>")}, desk_world.FIRST
    )
    recover(archive)
    path = f"/web/{rooms.digits(tag.crawl_time)}/{url}"
    with rooms.served(archive) as room:
        room.get(path)
        with passed.during():
            assert room.get(path).status == 200


def _release(passed: Passed, folder: Path) -> None:
    archive = desk_world.make_archive(folder / "archive", (RecordState.RELEASED, RecordState.CHECKED))
    record = desk_world.record_id(1)
    with desks.served(archive) as desk:
        anna = desk.client("anna")
        page = anna.get(f"/snapshot/{record}")
        with passed.during():
            answer = anna.submit(page, f"/snapshot/{record}/release")
    assert answer.status == 200


JOURNEYS: dict[str, Callable[[Passed, Path], None]] = {
    "GET of an archived page, warm": _get,
    "click on Release, and the page": _release,
    "crawl of two pages, to the record": _crawl,
}


def journeys() -> dict[str, set[str]]:
    """Take the journeys; return the modules that each passed."""
    passed = Passed()
    threading.setprofile(passed)
    sys.setprofile(passed)
    try:
        modules = {}
        for name, journey in JOURNEYS.items():
            with tempfile.TemporaryDirectory() as folder:
                journey(passed, Path(folder))
            modules[name] = set(passed.modules)
        return modules
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type] # None takes it away; the types forget it


def main() -> None:
    """Print a line for each journey; with `--modules` also the modules, with `--json` as JSON."""
    modules = journeys()
    if "--json" in sys.argv:
        print(json.dumps({name: sorted(passed) for name, passed in modules.items()}, indent=1))
        return
    for name, passed in modules.items():
        print(f"{name:36}{len(passed):>6} modules in {len({module.rpartition('/')[0] for module in passed})} folders")
        if "--modules" in sys.argv:
            print("".join(f"    {module}\n" for module in sorted(passed)), end="")


if __name__ == "__main__":
    main()
