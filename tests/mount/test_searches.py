"""`.search/<words>/`: links to the documents that have the words."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import catch_up
from tests.mount.conftest import _folder
from tests.support import archives
from tests.support.archives import DOMAIN, FIRST
from tests.support.mounts import Mounted
from webarcfs.archive.config.directory import Archive, open_archive

pytestmark = pytest.mark.mount


def _page(text: str) -> bytes:
    return f"<html lang=en><h1>{text}</h1><p>{text}, and more of it</p></html>".encode()


@pytest.fixture
def searched(binding: str) -> Iterator[Mounted]:
    """A mount of an archive with an index."""
    for folder in _folder():
        archive = archives.make_archive(folder)
        archives.publish(
            archive, pages={"a.html": _page("annual report"), "b/c.html": _page("report"), "old.html": _page("gone")}
        )
        archives.publish(archive, pages={"old.html": None})
        catch_up(archive)
        bring_in_step(archive)
        mounted = Mounted(archive.root, folder / "mnt", "-o", f"binding={binding}")
        try:
            yield mounted
        finally:
            mounted.clear()


def _archive(mounted: Mounted) -> Archive:
    return open_archive(Path(os.fsdecode(os.getxattr(mounted.point, "user.webarc.archive"))))


def _links(mounted: Mounted, words: str) -> list[str]:
    folder = mounted / f".search/{words}"
    return [str((folder / name).readlink()) for name in sorted(each.name for each in folder.iterdir())]


def test_searches_are_folders_of_links(searched: Mounted) -> None:
    """S-search-1: found by name, in no listing; best hit first; a loop over it reads the pages."""
    assert (searched / ".search") not in list(searched.point.iterdir()) and not list((searched / ".search").iterdir())
    newest = f"../../.snapshots/2026-11-21T03:00:01@{DOMAIN}"
    assert _links(searched, "annual report") == [f"{newest}/a.html"]
    assert sorted(_links(searched, "reports")) == [f"{newest}/a.html", f"{newest}/b/c.html"]
    assert _links(searched, f"report site:{DOMAIN}%2Fb") == [f"{newest}/b/c.html"]
    assert _links(searched, "gone") == []  # the present
    loop = f'for hit in "{searched.point}/.search/annual report"/*; do grep -c annual "$hit"/data.html; done'
    assert subprocess.run(["bash", "-c", loop], capture_output=True, text=True, check=True).stdout == "1\n"
    listed = subprocess.run(
        ["ls", f"{searched.point}/.search/annual report/"], capture_output=True, text=True, check=True
    )
    assert listed.stdout == "000001\n"


def test_all_versions_are_searched_by_name(searched: Mounted) -> None:
    """S-search-4: `all:` before the words; one link a URL, to its best version, in the last snapshot that has it."""
    first, newest = (f"../../.snapshots/2026-11-21T03:00:0{second}@{DOMAIN}" for second in "01")
    assert _links(searched, "all:gone") == [f"{first}/old.html"]
    assert sorted(_links(searched, "all:report")) == [f"{newest}/a.html", f"{newest}/b/c.html"]
    assert _links(searched, "all:gone OR report") != _links(searched, "gone OR report")
    assert _links(searched, "gone during:2026") == _links(searched, "all:gone during:2026") == [f"{first}/old.html"]
    assert _links(searched, "gone present:2026-11-20") == _links(searched, "all:gone present:now") == []
    assert "gone" in (searched / ".search/all:gone/000001/data.html").read_text("utf-8")
    for words in ("all:", "all:(gone", "all: during:x"):
        with pytest.raises(FileNotFoundError):
            (searched / f".search/{words}").stat()


def test_a_search_that_is_wrong_is_not_there(searched: Mounted) -> None:
    """S-search-2: the log says why."""
    for words in ("(report", "nofield:x", "...", "type:pfd"):
        with pytest.raises(FileNotFoundError):
            (searched / f".search/{words}").stat()
    log = (_archive(searched).log / "mount.log").read_text("utf-8")
    assert "never closed" in log and "there is no field" in log
    with pytest.raises(OSError) as error:
        (searched / ".search/new").mkdir()
    assert error.value.errno in (errno.EPERM, errno.EROFS, errno.EEXIST, errno.EACCES)


def test_without_an_index_there_are_no_searches(searched: Mounted) -> None:
    """S-search-2."""
    archive = _archive(searched)
    (archive.search / "current").unlink()
    with pytest.raises(FileNotFoundError):
        (searched / ".search/other words").stat()


def test_a_search_follows_the_index(searched: Mounted) -> None:
    """S-search-3: who names it after the indexer's next commit is given the newest; a listing keeps its state."""
    archive = _archive(searched)
    before = _links(searched, "report")
    archives.publish(archive, pages={"new.html": _page("report")}, crawl_time=FIRST + timedelta(days=1))
    catch_up(archive)
    assert _links(searched, "report") == before
    bring_in_step(archive)
    assert len(_links(searched, "report")) == len(before) + 1
