"""What a discarded record captured is nowhere in a mount, until it is restored (S-discard-1 to S-discard-3)."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.mount.conftest import Mounter
from tests.mount.test_refusals import create, number_of, refused
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.histories import DOMAIN, History, Step
from tests.support.mounts import UMOUNT, run
from tests.support.recorded import published
from tests.support.waiting import eventually
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag, compact_time

pytestmark = pytest.mark.mount

_SECRET = "zebra"


def _published(archive: Archive, *steps: Step) -> list[CommitTag]:
    tags = published(archive, History(steps))
    catalogue = Catalogue(archive)
    told = [each.with_event("captured", "webarcfs", "", each.state) for each in catalogue.records()]
    catalogue.save(told, "test", "events")
    recover(archive)
    bring_in_step(archive)
    return tags


def _record(tag: CommitTag, publication: str = "p") -> str:
    return f"{compact_time(tag.crawl_time)}-{publication}"


def _discard(archive: Archive, record: str) -> None:
    assert run_command("record", "discard", record, "--reason", "a trap", "--archive", archive.root).code == 0


def _restore(archive: Archive, record: str) -> None:
    assert run_command("record", "restore", record, "--archive", archive.root).code == 0


def _body(folder: Path) -> bytes:
    return (folder / "data.html").read_bytes()


def test_the_newest_is_discarded_and_restored(archive: Archive, mount: Mounter) -> None:
    """S-discard-1, S-discard-2: while it is mounted, and at the next mount; each way to what was captured."""
    tags = _published(
        archive,
        Step("p", {"a.html": "first", "c.html": "c"}),
        Step("p", {"a.html": f"{_SECRET} now", f"{_SECRET}.html": _SECRET}),
    )
    record = _record(tags[1])
    mounted = mount(archive)
    site, history = mounted / DOMAIN, mounted / ".snapshots"

    def hits() -> tuple[set[str], set[str]]:
        query, search = mounted / f".query/url LIKE '%{_SECRET}.html'", mounted / f".search/{_SECRET}"
        return {str(each.readlink()) for each in query.iterdir()}, {str(each.readlink()) for each in search.iterdir()}

    def shows_all(whole: bool) -> None:
        eventually(lambda: _body(site / "a.html") == (f"{_SECRET} now" if whole else "first").encode())
        eventually(lambda: (history / record).exists() == whole)  # the kernel is told a moment after the state is shown
        names = {"a.html", f"{_SECRET}.html"} if whole else {"a.html", "c.html"}
        assert {each.name for each in site.iterdir()} == names
        assert {each.name for each in (history / DOMAIN).iterdir()} == {str(tag) for tag in tags[: 2 if whole else 1]}
        assert (history / str(tags[1])).exists() == whole
        assert [bool(found) for found in hits()] == [whole, whole]
        assert (mounted / ".changes").read_text().split() == [str(tag) for tag in tags]

    shows_all(True)
    _discard(archive, record)
    shows_all(False)
    assert _body(mount(archive) / f"{DOMAIN}/a.html") == b"first"
    _restore(archive, record)
    shows_all(True)


def test_an_older_one_is_discarded(archive: Archive, mount: Mounter) -> None:
    """S-discard-1: the present stays, and takes additions, which everybody finds."""
    tags = _published(archive, Step("p", {"a.html": "1"}), Step("p", {"a.html": "2"}), Step("p", {"a.html": "3"}))
    _discard(archive, _record(tags[1]))
    mounted = mount(archive)
    history = mounted / f".snapshots/{DOMAIN}"
    assert {each.name for each in history.iterdir()} == {str(tags[0]), str(tags[2])}
    arc = mounted / f"{DOMAIN}/a.html"
    for number in range(7):
        (arc / f"note{number}").write_bytes(b"n%d" % number)
        fd = os.open(arc, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)
    with (arc / "data.xml").open("ab") as document:
        document.write(b"<words>7</words>")
    for each in (arc, mount(archive) / f"{DOMAIN}/a.html"):
        eventually(lambda each=each: b"<words>" in (each / "data.xml").read_bytes())
        assert {(each / f"note{number}").read_bytes() for number in range(7)} == {b"n%d" % n for n in range(7)}
    _restore(archive, _record(tags[1]))
    eventually(lambda: len(list(history.iterdir())) == 3)
    assert (arc / "note6").read_bytes() == b"n6"
    assert archives.store_of(archive).check() == []


def test_an_older_state_takes_no_additions(archive: Archive, mount: Mounter) -> None:
    """S-discard-3: they would go with the newest crawl. The reason can be read."""
    tags = _published(archive, Step("p", {"a.html": "1"}), Step("p", {"a.html": "2"}))
    mounted = mount(archive)
    arc = mounted / f"{DOMAIN}/a.html"
    (arc / "early").write_bytes(b"e")
    _discard(archive, _record(tags[1]))
    eventually(lambda: _body(arc) == b"1")
    for attempt in (create, Path.mkdir):
        assert number_of(attempt, arc / "note") == errno.EROFS
    assert "the newest crawl of www.example.org is discarded" in refused(arc)
    assert not (arc / "early").exists()
    _restore(archive, _record(tags[1]))
    eventually(lambda: _body(arc) == b"2")
    assert (arc / "early").read_bytes() == b"e"
    (arc / "note").write_bytes(b"n")


def test_of_several_publications_the_newest_of_each_is_shown(archive: Archive, mount: Mounter) -> None:
    """S-discard-2: the state that the other crawls give; a domain without any is not there."""
    tags = _published(
        archive,
        Step("p", {"a.html": "p1", "both.html": "p1"}),
        Step("q", {"q.html": "q", "both.html": "q"}),
        Step("p", {"a.html": "p2"}),
    )
    mounted = mount(archive)
    site = mounted / DOMAIN

    def shown() -> dict[str, bytes]:
        try:
            return {each.name: _body(each) for each in site.iterdir()}
        except FileNotFoundError:
            return {}

    eventually(lambda: shown() == {"a.html": b"p2", "q.html": b"q", "both.html": b"q"})
    _discard(archive, _record(tags[2]))
    eventually(lambda: shown() == {"a.html": b"p1", "q.html": b"q", "both.html": b"q"})
    _discard(archive, _record(tags[1], "q"))
    eventually(lambda: shown() == {"a.html": b"p1", "both.html": b"p1"})
    _discard(archive, _record(tags[0]))
    eventually(lambda: not site.exists() and DOMAIN not in os.listdir(mounted.point))  # noqa: PTH208
    _restore(archive, _record(tags[0]))
    eventually(lambda: shown() == {"a.html": b"p1", "both.html": b"p1"})


@pytest.mark.parametrize("end", ["unmount", "SIGTERM", "SIGTERM while a file is open"])
def test_nothing_is_left_in_the_temporary_folder(archive: Archive, mount: Mounter, folder: Path, end: str) -> None:
    """Neither when a mount ends, nor of one that was killed, when the next one begins."""
    tags = _published(archive, Step("p", {"a.html": "1"}), Step("p", {"a.html": "2"}))
    _discard(archive, _record(tags[1]))
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    environment = {"TMPDIR": str(temporary)}

    def made() -> set[str]:
        return {each.name for each in temporary.iterdir()}

    killed = mount(archive, environment=environment)
    assert _body(killed / f"{DOMAIN}/a.html") == b"1"
    (left,) = made()
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.ended()
    assert made() == {left}
    mounted, other = mount(archive, environment=environment), mount(archive, environment=environment)
    eventually(lambda: left not in made())
    for each in (mounted, other):
        assert _body(each / f"{DOMAIN}/a.html") == b"1"
    assert len(made()) == 2  # the second one took nothing from the first
    with (mounted / f"{DOMAIN}/a.html/data.html").open() as file:
        if end == "unmount":
            file.close()
            assert run(UMOUNT, mounted.point).returncode == 0
        else:
            if end == "SIGTERM":
                file.close()
            os.kill(mounted.pid, signal.SIGTERM)
        assert mounted.ended(60)
        with contextlib.suppress(OSError):
            file.close()
    assert len(made()) == 1
    assert _body(other / f"{DOMAIN}/a.html") == b"1"
    os.kill(other.pid, signal.SIGTERM)
    assert other.ended(60)
    assert made() == set()
