"""The client writes through a mount (/Cl-9/, /Cl-11/), whose errors come out as ours (/Sv-2.2/)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.indexing.recovery import catch_up
from tests.mount.conftest import Mounter
from tests.support import archives
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exists, InvalidDocument, NotFound, NotPermitted, Stale
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.client import WebarchiveClient

pytestmark = pytest.mark.mount


@pytest.fixture
def client(archive: Archive, mount: Mounter) -> Iterator[WebarchiveClient]:
    archives.publish(archive, pages={"index.html": b"<title>one</title>", "stays.html": b"x"})
    catch_up(archive)
    mounted = mount(archive, "-o", "log=" + str(archive.root / "log" / "test.log"))
    with WebarchiveClient(mounted.point / "www.example.org", interval=0.02) as opened:
        yield opened


def test_a_stream_makes_a_new_file(client: WebarchiveClient) -> None:
    """/Cl-9/: and overwrites none (/Ar-1/)."""
    meta = client.select("path LIKE '%index.html'")[0]
    with client.open_write(meta, "words.txt") as stream:
        stream.write(b"4")
        stream.write(b"2")
    assert client.mount is not None
    assert (client.mount / "www.example.org/index.html/words.txt").read_bytes() == b"42"
    with pytest.raises(Exists), client.open_write(meta, "words.txt"):
        pass
    with pytest.raises(NotPermitted), client.open_write(meta, "data.txt"):
        pass
    with pytest.raises(NotFound), client.open_write(meta, "no/such/folder"):
        pass
    assert client.list(meta) == ["data.html", "data.xml", "headers.http", "words.txt"]
    assert client.open_read(meta, "words.txt").read() == b"42"
    with pytest.raises(NotFound):
        client.open_read(meta, "no.txt")


def test_nothing_is_left_of_a_block_that_fails(client: WebarchiveClient) -> None:
    """What a mount was given stays; and the caller's own errors come out as they are."""
    meta = client.select("path LIKE '%index.html'")[0]
    for error in (ValueError, FileNotFoundError):
        with pytest.raises(error), client.open_write(meta, "half.txt") as stream:
            stream.write(b"half")
            raise error
    assert "half.txt" not in client.list(meta)
    with client.open_write(meta, "half.txt") as stream:
        stream.write(b"whole")
    assert client.open_read(meta, "half.txt").read() == b"whole"


def test_what_is_added_at_once_ends_in_any_order(client: WebarchiveClient) -> None:
    """Additions to one document share its open folder, which the last of them closes."""
    meta = client.select("path LIKE '%index.html'")[0]
    gc.collect()  # what earlier tests left must not be closed in between
    before = len(list(Path("/proc/self/fd").iterdir()))
    one, other = client.open_write(meta, "one.txt"), client.open_write(meta, "other.txt")
    one.__enter__().write(b"1")
    other.__enter__().write(b"2")
    client.add_data(meta, "between", "3")
    one.__exit__(None, None, None)
    other.__exit__(None, None, None)
    assert [client.open_read(meta, name).read() for name in ("one.txt", "other.txt")] == [b"1", b"2"]
    assert client.get_data(meta, "between") is not None
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_is_replaced_while_it_is_added_to_takes_nothing(archive: Archive, client: WebarchiveClient) -> None:
    """/Ar-10/: neither the file nor a node that is added beside it, though the folder was found before."""
    meta = client.select("path LIKE '%index.html'")[0]
    with pytest.raises(Stale), client.open_write(meta, "late.txt") as stream:
        stream.write(b"late")
        tag = archives.publish(archive, pages={"index.html": b"<title>two</title>"})
        _until_seen(client, str(tag))
        with pytest.raises(Stale):
            client.add_data(meta, "late", "x")
    [new] = client.changed(tag)
    assert client.list(new) == ["data.html", "data.xml", "headers.http"]
    assert client.get_data(new, "late") is None


def test_elements_are_added_and_found(client: WebarchiveClient) -> None:
    """/Cl-10/, /Cl-11/"""
    meta = client.select("path LIKE '%index.html'")[0]
    element = ElementTree.Element("{urn:test:words}words", {"total": "42"})
    client.add_data(meta, "{urn:test:words}words", element)
    client.add_data(meta, "note", "a note & more")
    assert client.mount is not None
    text = (client.mount / "www.example.org/index.html/data.xml").read_text("utf-8")
    assert "a note &amp; more" in text and 'total="42"' in text
    found = client.get_data(meta, "{urn:test:words}words")
    assert found is not None and found.get("total") == "42"
    found = client.get_data(meta, "note")
    assert found is not None and found.text == "a note & more" and client.get_data(meta, "other") is None
    with pytest.raises(Exists):
        client.add_data(meta, "note", "another")
    with pytest.raises(InvalidDocument):
        client.add_data(meta, "other", ElementTree.Element("another"))


def test_what_a_crawl_replaced_takes_nothing(archive: Archive, client: WebarchiveClient) -> None:
    """/Ar-10/: judged by document; what stayed still accepts."""
    replaced = client.select("path LIKE '%index.html'")[0]
    stays = client.select("path LIKE '%stays.html'")[0]
    seen: list[object] = []
    client.add_observer(seen.extend)
    tag = archives.publish(archive, pages={"index.html": b"<title>two</title>"})
    _until_seen(client, str(tag))
    assert client.open_read(replaced, "data.html").read() == b"<title>one</title>", "an old snapshot is read as it was"
    with pytest.raises(Stale), client.open_write(replaced, "late.txt"):
        pass
    with pytest.raises(Stale):
        client.add_data(replaced, "late", "x")
    with client.open_write(stays, "note.txt") as stream:
        stream.write(b"in time")


def test_who_is_told_of_a_snapshot_finds_it(archive: Archive, client: WebarchiveClient) -> None:
    """/Sv-5/, /Sv-5.5/: in the order of publication, and the mount shows that state, or a newer one, by then."""
    found: list[tuple[str, int]] = []
    enough = threading.Event()

    def look(tags: list[CommitTag]) -> None:
        page = Path(f"{client.mount}/www.example.org/index.html/data.html")
        found.extend((str(tag), int(page.read_bytes())) for tag in tags)
        if len(found) >= 10:
            enough.set()

    client.add_observer(look)
    told = [str(archives.publish(archive, pages={"index.html": b"%d" % number})) for number in range(10)]
    assert enough.wait(60)
    assert [tag for tag, _ in found] == told
    assert all(seen >= number for number, (_, seen) in enumerate(found)), found


def _until_seen(client: WebarchiveClient, tag: str) -> None:
    import time

    assert client.mount is not None
    end = time.monotonic() + 60
    while tag not in Path(client.mount / ".changes").read_text("utf-8").split():
        assert time.monotonic() < end, f"{tag} is not shown"
        time.sleep(0.02)
