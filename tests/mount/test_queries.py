"""`.query/<condition>/`: links to what a condition finds (/Cl-6/, /Sv-2.3/)."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up, recover
from tests.mount.conftest import PAGES, Mounter, _folder
from tests.support import archives
from tests.support.archives import DOMAIN, FIRST
from tests.support.mounts import Mounted, run
from tests.support.readercommand import COMMAND
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.index.query import to_name
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.mount

#: Pages of the large domain, and its states.
MANY, STATES = 2_500, 4
PAPERS = {"a/deep/one.pdf": b"one", "two.pdf": b"two"}
ALL = MANY * STATES + len(PAGES) + len(PAPERS)
ENDLESS = f"(SELECT count(*) FROM {', '.join(f'metadata {name}' for name in 'abcdefghijkl')}) > "


@pytest.fixture(scope="module")
def asked(binding: str) -> Iterator[Mounted]:
    """A mount of an archive with 10,000 documents in all snapshots, and a domain of odd names; for looking only."""
    for folder in _folder():
        archive = archives.make_archive(folder)
        archives.publish_many(archive, ((f"p{number:04}.html", b"page %d" % number) for number in range(MANY)))
        for state in range(1, STATES):
            archives.publish(archive, pages={"p0007.html": b"state %d" % state})
        archives.publish(archive, "odd.example:8080", PAGES)
        archives.publish(archive, "papers.example", PAPERS)
        catch_up(archive)
        before = archive.database.read_bytes()
        mounted = Mounted(archive.root, folder / "mnt", "-o", f"binding={binding}")
        try:
            yield mounted
        finally:
            mounted.clear()
        assert archive.database.read_bytes() == before, "a condition changed the database"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def found(mounted: Mounted, condition: str) -> dict[str, str]:
    """The links of a condition, in order."""
    folder = mounted / f".query/{to_name(condition)}"
    return {name: str((folder / name).readlink()) for name in names(folder)}


def log(mounted: Mounted) -> str:
    archive = Path(os.fsdecode(os.getxattr(mounted.point, "user.webarc.archive")))
    return (archive / "log/mount.log").read_text("utf-8")


def test_links_in_the_order_that_was_asked_for(asked: Mounted) -> None:
    """S-query-1: numbered links into `.snapshots`, in the condition's order."""
    condition = f"domain = '{DOMAIN}' AND mimeType = 'text/html' AND path LIKE '%p00%7.html'"
    links = found(asked, f"{condition} ORDER BY crawlTime DESC, path LIMIT 3")
    tag = CommitTag(FIRST.replace(second=STATES - 1), DOMAIN)
    assert links == {
        "000001": f"../../.snapshots/{tag}/p0007.html",
        "000002": f"../../.snapshots/{tag}/p0017.html",
        "000003": f"../../.snapshots/{tag}/p0027.html",
    }
    folder = asked / f".query/path = '%2F{DOMAIN}%2Fp0007.html' ORDER BY crawlTime"
    bodies = [(folder / f"{number:06}/data.html").read_bytes() for number in range(1, STATES + 1)]
    assert bodies == [b"page 7", b"state 1", b"state 2", b"state 3"]
    assert run("ls", folder).stdout.split() == [f"{number:06}" for number in range(1, STATES + 1)]
    first = (folder / "000001").lstat()
    assert (first.st_mode & 0o777, first.st_mtime) == (0o777, FIRST.timestamp())
    for name in ("000000", "000005", "1", "x", ".."):
        assert (folder / name).exists() == (name == "..")


def test_it_is_found_by_name_only(asked: Mounted) -> None:
    """S-query-1: `.query` is in no listing, and lists nothing, so that nobody who walks the mount walks into it."""
    assert names(asked / ".query") == []
    assert (asked / ".query").is_dir()
    assert ".query" not in names(asked.point)
    assert ".query" not in run("find", asked.point, "-maxdepth", "1").stdout


def test_documents_of_any_name(asked: Mounted) -> None:
    """S-query-1: whatever a document is called, its link leads to it."""
    links = found(asked, "domain = 'odd.example:8080' ORDER BY path")
    assert len(links) == len(PAGES)
    for name, target in links.items():
        page = target.partition("/.snapshots/")[2].partition("/")[2]
        arc = asked / f".query/domain = 'odd.example:8080' ORDER BY path/{name}"
        data = next(each for each in arc.glob("data*") if each.name != "data.xml")
        assert data.read_bytes() == PAGES[page], page


def test_a_slash_is_written_as_percent_2f(asked: Mounted) -> None:
    """S-query-2: and no other `%` means anything; 255 bytes are the most."""
    assert len(found(asked, f"url = 'http://{DOMAIN}/p0001.html'")) == STATES
    by_hand = asked / f".query/url = 'http:%2F%2f{DOMAIN}%2Fp0001.html'"
    assert len(names(by_hand)) == STATES
    assert len(names(asked / ".query/path LIKE '%100%25'")) == 1
    assert len(names(asked / ".query/url LIKE '%%252Fx%'")) == len(found(asked, "url LIKE '%%2Fx%'"))
    fits = f"path = '{'x' * 246}'"
    assert len(fits) == 255 and names(asked / f".query/{fits}") == []
    with pytest.raises(OSError, match="too long") as raised:
        names(asked / f".query/{fits} ")
    assert raised.value.errno == errno.ENAMETOOLONG


BAD = {
    "1; DROP TABLE version": "syntax error",
    "1) UNION SELECT sql, sql FROM sqlite_master --": "",
    "1) UNION SELECT url, path FROM metadata WHERE (1": "a ) closes what was not opened",
    "1=1) OR (1=1": "a ) closes what was not opened",
    "1 ORDER BY path) OR (1": "a ) closes what was not opened",
    "1 UNION SELECT url, path FROM metadata": "syntax error",
    "url IN (SELECT name FROM sqlite_master)": "prohibited",
    "url IN (SELECT publication FROM snapshot)": "prohibited",
    "1); ATTACH 'x' AS y --": "",
    "ATTACH 'x' AS y": "syntax error",
    "1); PRAGMA writable_schema = 1 --": "",
    "load_extension('/tmp/x.so')": "not authorized",
    "readfile('/etc/passwd') = ''": "readfile",
    "writefile('/tmp/x', 'x')": "writefile",
    "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n)": "WITH",
    "zeroblob(1000000000) = ''": "zeroblob",
    "uri = 'x'": "did you mean url",
    "mimeType = `text": "a / in a condition is written %2F",
    "mimeType = [text": "unrecognized token",
    "url = 'x' AND [it's": "unrecognized token",
    "(": "",
    "/*": "this comment is never closed",
    "1 ORDER BY path /* LIMIT 1": "this comment is never closed",
    "url = ?": "",
    "url LIMIT": "LIMIT",
    "url LIMIT 1; x": "LIMIT",
    "1 ORDER BY nobody": "no such column: nobody",
    "*": "syntax error",
    "1\n2026-01-01 forged line": "syntax error",
}


@pytest.mark.parametrize("condition", BAD)
def test_bad_conditions_are_not_there(asked: Mounted, condition: str) -> None:
    """S-query-3: ENOENT, and the log says what is wrong, in one line."""
    with pytest.raises(FileNotFoundError):
        names(asked / f".query/{to_name(condition)}")
    assert not (asked / f".query/{to_name(condition)}").exists()
    lines = [line for line in log(asked).splitlines() if f"condition {to_name(condition)!r} is not" in line]
    assert lines and all(BAD[condition] in line for line in lines), lines
    assert not any(line.startswith("2026-01-01 forged") for line in log(asked).splitlines())


def test_slashes_within_quotes(asked: Mounted) -> None:
    """S-query-8: a condition may be written as it is said, and its links lead to the same documents."""
    plain = run("ls", f"{asked.point}/.query/mimeType='application/pdf' ORDER BY crawlTime DESC")
    assert plain.stdout.split() == ["000001", "000002"], plain.stderr
    for condition, bodies in {
        "mimeType='application/pdf' ORDER BY crawlTime DESC, path DESC": [b"two", b"one"],
        "path LIKE '/papers.example/%' ORDER BY path": [b"one", b"two"],
        "path = '/papers.example/a/deep/one.pdf' OR url LIKE '%/two.pdf' ORDER BY path": [b"one", b"two"],
        "path = '/papers.example/a%2Fdeep/one.pdf'": [b"one"],
        "url = 'http:%2F/papers.example/two.pdf'": [b"two"],
        "title <> 'it''s /' AND mimeType = 'application/pdf' LIMIT 1": None,
        """title <> "it's /" AND mimeType = 'application/pdf' LIMIT 1""": None,
        "mimeType = 'application/nothing'": [],
    }.items():
        folder = asked / f".query/{condition}"
        escaped = found(asked, condition.replace("%2F", "/"))
        up = "../" * condition.count("/")
        assert {name: str((folder / name).readlink()) for name in names(folder)} == {
            name: up + target for name, target in escaped.items()
        }
        read = [next(page.glob("data.pdf")).read_bytes() for page in sorted(folder.iterdir())]
        assert read == bodies or (bodies is None and len(read) == 1), condition
    script = 'cd "$1/.query/$2" && cat 000001/data.pdf 000001/../two.pdf/data.pdf'
    done = run("sh", "-c", script, "sh", asked.point, "path LIKE '/papers.example/t%'")
    assert done.stdout == "twotwo", done.stderr


OPEN = ["mimeType = 'text", "url = 'x''", 'title = "x', "'", "it's", "path LIKE '/www.example.org", "a = '/b' OR c = '"]


@pytest.mark.parametrize("name", OPEN)
def test_a_beginning_lists_nothing(asked: Mounted, name: str) -> None:
    """S-query-8: the beginning of a condition is a folder; who lists it is told by the log that the rest is missing."""
    folder = asked / f".query/{name}"
    assert folder.is_dir() and folder.stat().st_ino == folder.stat().st_ino
    assert names(folder) == []
    lines = [line for line in log(asked).splitlines() if f"condition {name!r} is not" in line]
    assert lines and "is never closed | a / in a condition is written %2F" in lines[0]
    with pytest.raises(OSError, match="Read-only"):
        (folder / ('x" OR nothing' if '"' in name else "x' OR nothing")).mkdir()
    with pytest.raises(FileExistsError):
        folder.mkdir()


def test_bad_conditions_with_slashes_are_not_there(asked: Mounted) -> None:
    """S-query-8: once the quotes are closed it is a condition like others. `//` comes to the mount as one slash."""
    for name, why in {
        "mimeType = 'a/b' AND": "syntax error",
        "uri LIKE '/a/%'": "did you mean url",
        f"url = 'http://{DOMAIN}/p0007.html'": "it is written %2F%2F",
        f"url = 'HTTPS://{DOMAIN}/x'": "it is written %2F%2F",
    }.items():
        with pytest.raises(FileNotFoundError):
            os.listdir(f"{asked.point}/.query/{name}")  # noqa: PTH208 # a Path has no //
        arrived = name.replace("//", "/").partition(f"{DOMAIN}/")
        text = arrived[0] + arrived[1].rstrip("/") if arrived[1] else arrived[0]
        lines = [line for line in log(asked).splitlines() if f"condition {text!r} is not" in line]
        assert lines and all(why in line for line in lines), (text, lines)


def test_how_long_a_condition_with_slashes_may_be(asked: Mounted) -> None:
    """S-query-8: 255 bytes up to each slash, 4096 in all: more is ENAMETOOLONG."""
    with pytest.raises(OSError, match="too long"):
        (asked / f".query/path = '/{'x' * 256}'").stat()
    begun = "path = '" + f"/{'x' * 250}" * 12
    rest = f"{'y' * 250}/" * 4 + "z" * (4096 - len(begun) - 1 - 4 * 251 - 1)
    inside = os.open(asked / f".query/{begun}", os.O_PATH | os.O_DIRECTORY)
    try:
        assert len(f"{begun}/{rest}'") == 4096
        os.stat(f"{rest}'", dir_fd=inside)
        for longer in (f"{rest}z'", f"{rest}zz"):
            with pytest.raises(OSError, match="too long"):
                os.stat(longer, dir_fd=inside)
    finally:
        os.close(inside)


def test_a_condition_with_slashes_in_another_state(archive: Archive, mount: Mounter) -> None:
    """S-query-8: its name leads to the newest answer, and the beginning of it stays the same folder."""
    archives.publish(archive, pages={"a.pdf": b"a"})
    catch_up(archive)
    mounted = mount(archive)
    condition = mounted / ".query/mimeType='application/pdf' ORDER BY path"
    before, begun = condition.stat().st_ino, condition.parent.stat().st_ino
    assert names(condition) == ["000001"]
    archives.publish(archive, pages={"0.pdf": b"new"})
    catch_up(archive)
    eventually(lambda: len(names(condition)) == 3, 60)
    eventually((condition / "000001/data.pdf").exists, 60)
    assert (condition / "000001/data.pdf").read_bytes() == b"new"
    assert condition.stat().st_ino != before and condition.parent.stat().st_ino == begun


def test_bytes_that_are_no_text_are_not_there(asked: Mounted) -> None:
    """S-query-3: nor are names that are no UTF-8, with quotes in odd places or not."""
    for name in (b"\xff", b"url = '\xc3'", b"'\xff", b"url = '/\xc3'", b"url = '/\xc3/'"):
        with pytest.raises(FileNotFoundError):
            names(asked / ".query" / os.fsdecode(name))


def test_nothing_can_be_changed_in_it(asked: Mounted) -> None:
    """S-query-1: whatever is tried is EROFS."""
    hits = asked / ".query/1 LIMIT 3"
    new = asked / ".query/new"
    for attempt in (
        new.mkdir,
        lambda: new.write_bytes(b"x"),
        lambda: new.symlink_to("x"),
        lambda: (hits / "new").write_bytes(b"x"),
        (hits / "new").mkdir,
        (hits / "000001").unlink,
        lambda: (hits / "000001").rename(hits / "000009"),
        hits.rmdir,
        lambda: hits.chmod(0o777),
    ):
        with pytest.raises(OSError, match="Read-only"):
            attempt()
    with pytest.raises(FileExistsError):
        hits.mkdir()


def test_ten_thousand_hits(asked: Mounted) -> None:
    """S-query-1: each hit is listed once, in order."""
    listed = names(asked / ".query/1")
    assert listed == [f"{number:06}" for number in range(1, ALL + 1)]
    with os.scandir(asked / f".query/domain = '{DOMAIN}' ORDER BY commitTag, path") as entries:
        assert all(entry.is_symlink() for entry in entries)
    folder = asked / f".query/domain = '{DOMAIN}' ORDER BY commitTag, path"
    assert (folder / "000001/data.html").read_bytes() == b"page 0"
    assert (folder / f"{MANY * STATES:06}/data.html").read_bytes() == b"page %d" % (MANY - 1)


def test_many_ask_at_once(asked: Mounted) -> None:
    """S-query-4: everybody gets the answer to his own condition."""
    with ThreadPoolExecutor(12) as threads:
        counts = list(threads.map(lambda number: len(found(asked, f"1 LIMIT {number}")), range(60)))
    assert counts == list(range(60))


def test_what_takes_too_long_is_ended(archive: Archive, mount: Mounter) -> None:
    """S-query-4: ETIMEDOUT after query_seconds, and a line in the log; others are answered before and after."""
    archive.settings.write_text("[mount]\nquery_seconds = 0.3\n", "utf-8")
    archives.publish(archive, pages={f"p{number}.html": b"page" for number in range(12)})
    catch_up(archive)
    mounted = mount(archive)
    for number in range(3):
        with pytest.raises(TimeoutError):
            names(mounted / f".query/{ENDLESS}{number}")
        assert log(mounted).count("took more than 0.3 s") == number + 1
    assert (mounted / f".query/{ENDLESS}9").is_dir(), "to name it does not run it"
    assert len(names(mounted / ".query/1 LIMIT 5")) == 5


def test_nobody_else_waits_for_a_condition(archive: Archive, mount: Mounter) -> None:
    """S-query-4: while conditions wait for the database, more of them than threads take requests, all else goes on."""
    archives.publish(archive, pages={f"p{number}.html": b"page" for number in range(12)})
    catch_up(archive)
    mounted = mount(archive)
    writer = sqlite3.connect(archive.database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")

    def ask(number: int) -> int | None:
        try:
            return len(names(mounted / f".query/1 LIMIT {number}"))
        except OSError as error:
            return error.errno

    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(ask, number) for number in range(8)]
        try:
            for number in range(12):
                page = mounted / f"{DOMAIN}/p{number}.html"
                assert (page / "data.html").read_bytes() == b"page" and os.getxattr(page, "user.webarc.path")
                assert not (mounted / f"{DOMAIN}/nothing{number}").exists()
            (page / "note.txt").write_bytes(b"written")
            kept_waiting = [each for each in waiting if not each.done()]
        finally:
            writer.execute("ROLLBACK")
            writer.close()
        assert kept_waiting, "all waited for the conditions"
        # Whoever waited for longer than SQLite does was told so.
        assert all(each.result(60) in (number, errno.EBUSY) for number, each in enumerate(waiting))
    assert ask(7) == 7


def test_a_listing_is_one_state_and_the_next_one_is_the_new(archive: Archive, mount: Mounter) -> None:
    """S-query-5: a publication changes no listing under way; who asks then is told of it."""
    archives.publish_many(archive, ((f"p{number:04}.html", b"page") for number in range(1500)))
    catch_up(archive)
    mounted = mount(archive)
    condition = mounted / ".query/1 ORDER BY path, commitTag"
    with os.scandir(condition) as entries:
        listed = [next(entries).name]
        archives.publish(archive, pages={"a.html": b"new", "p0000.html": None})
        catch_up(archive)
        eventually(lambda: len(names(condition)) == 3000, 60)
        listed += [entry.name for entry in entries]
    assert sorted(listed) == [f"{number:06}" for number in range(1, 1501)]
    eventually((condition / "000001/data.html").exists, 60)
    assert (condition / "000001/data.html").read_bytes() == b"new"


@pytest.mark.only("libfuse3")
def test_whoever_is_inside_keeps_the_answer(archive: Archive, mount: Mounter) -> None:
    """S-query-6: *libfuse3:* a working folder or descriptor is one answer, for the names in it as well."""
    archives.publish(archive, pages={"b.html": b"b", "c.html": b"c"})
    catch_up(archive)
    mounted = mount(archive)
    condition = mounted / ".query/1 ORDER BY path, commitTag"
    inside = os.open(condition, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert len(os.listdir(inside)) == 2  # noqa: PTH208 # a descriptor
        archives.publish(archive, pages={"a.html": b"a"})
        catch_up(archive)
        eventually(lambda: len(names(condition)) == 5, 60)
        assert sorted(os.listdir(inside)) == ["000001", "000002"]  # noqa: PTH208 # a descriptor
        assert os.readlink("000001", dir_fd=inside).endswith("/b.html")
        assert (condition / "000001").readlink().name == "a.html"
    finally:
        os.close(inside)


def test_stable_while_a_crawl_publishes(archive: Archive, mount: Mounter) -> None:
    """S-query-5: under publications each listing is of one of the states, never of two."""
    archives.publish_many(archive, ((f"p{number}.html", b"page") for number in range(400)))
    catch_up(archive)
    mounted = mount(archive)
    ended = threading.Event()
    seen: list[int] = []

    def look() -> None:
        while not ended.is_set():
            seen.append(len(names(mounted / ".query/1")))

    with ThreadPoolExecutor(2) as threads:
        looking = [threads.submit(look) for _ in range(2)]
        try:
            for number in range(5):
                archives.publish(archive, pages={f"p{number}.html": b"changed"})
                catch_up(archive)
        finally:
            ended.set()
        for each in looking:
            each.result(60)
    assert set(seen) <= {400 * states for states in range(1, 7)}
    assert len(names(mounted / ".query/1")) == 2400


@pytest.mark.parametrize("options", [(), ("-o", "ro")], ids=["rw", "ro"])
def test_a_database_that_is_missing_or_made_anew(archive: Archive, mount: Mounter, options: tuple[str, ...]) -> None:
    """S-query-7: ENOENT while there is none, and the log says what to do; EIO if it is broken; `recover` mends both."""
    mounted = mount(archive, *options)
    with pytest.raises(FileNotFoundError):
        names(mounted / ".query/1")
    assert "webarc-agent recover" in log(mounted) and names(mounted / ".query") == []
    archives.publish(archive, pages={f"p{number}.html": b"page" for number in range(10)})
    recover(archive)
    assert len(names(mounted / ".query/1")) == 10
    with ThreadPoolExecutor(1) as threads:
        recovering = threads.submit(lambda: [recover(archive) for _ in range(2)])
        while not recovering.done():
            assert len(names(mounted / ".query/1")) == 10
    archive.database.unlink()
    with pytest.raises(FileNotFoundError):
        names(mounted / ".query/1")
    archive.database.write_bytes(b"no database" * 1000)
    with pytest.raises(OSError, match="Input/output error"):
        names(mounted / ".query/1")
    assert (mounted / f"{DOMAIN}/p1.html/data.html").read_bytes() == b"page"
    recover(archive)
    assert (mounted / ".query/path LIKE '%p7.html'/000001/data.html").read_bytes() == b"page"


def test_a_loop_of_the_shell(asked: Mounted) -> None:
    """S-query-1: any tool can loop over it."""
    condition = "mimeType = 'text%2Fhtml' AND path LIKE '%p0007%' ORDER BY crawlTime"
    script = 'for hit in "$1/.query/$2"/*; do cat "$hit"/data.html; done'
    done = subprocess.run(
        ["sh", "-c", script, "sh", asked.point, condition], capture_output=True, timeout=240, check=True
    )
    assert done.stdout == b"page 7state 1state 2state 3" and done.stderr == b""


def test_other_ways_to_ask_stay_as_they_are(asked: Mounted) -> None:
    """`webarc query` and the client ask webarc.db, not the mount."""
    command = [*COMMAND, "query", "--mount", asked.point, "path LIKE '%p0007.html'", "--format", "paths",
               "--order-by", "crawlTime", "--limit", "1"]  # fmt: skip
    done = run(*command)
    assert done.stdout.strip() == f"{asked.point}/.snapshots/{CommitTag(FIRST, DOMAIN)}/p0007.html", done.stderr
    assert open_archive(Path(os.fsdecode(os.getxattr(asked.point, "user.webarc.archive")))).database.exists()
