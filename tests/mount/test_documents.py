"""data.xml as writers see it: data nodes by appending and rewriting, and every refusal (SEMANTICS.md, "data.xml")."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.conftest import Desk, Mounter
from tests.mount.test_writing import error_of
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names
from webarcfs.archive.document.data_xml import LARGEST

pytestmark = pytest.mark.mount


def append(path: Path, text: bytes) -> int | None:
    """Append as one write and a close; the errno of whichever failed."""
    try:
        with path.open("ab", buffering=0) as file:
            file.write(text)
    except OSError as error:
        return error.errno
    return None


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> int | None:
    """Read, and write what became of it."""
    old = path.read_bytes()
    try:
        with path.open("wb", buffering=0) as file:
            file.write(change(old))
    except OSError as error:
        return error.errno
    return None


def with_node(node: bytes) -> Callable[[bytes], bytes]:
    def change(old: bytes) -> bytes:
        if b"<arc:data/>" in old:
            return old.replace(b"<arc:data/>", b"<arc:data>" + node + b"</arc:data>")
        return old.replace(b"</arc:data>", node + b"</arc:data>")

    return change


def test_appending(desk: Desk) -> None:
    """S-xml-1"""
    document = desk.arc() / "data.xml"
    number = document.stat().st_ino
    assert append(document, b"<words>42</words>") is None
    assert append(document, b'<x:more xmlns:x="urn:x"/>\n<last/>\n') is None
    assert append(document, b"  \n") is None
    shown = document.read_bytes()
    assert names(shown) == ("words", "{urn:x}more", "last")
    assert document.stat().st_ino != number
    assert document.stat().st_size == len(shown)
    with document.open("ab", buffering=0) as file:
        file.write(b"<half>")
        assert document.read_bytes() == shown
        file.write(b"</half>")
        os.fsync(file.fileno())
        assert names(document.read_bytes())[-1] == "half"
    desk.commit(document.parent)
    assert desk.in_git(document) == document.read_bytes()
    assert os.getxattr(document.parent, "user.webarc.mimeType") == b"text/html"


def test_shells_append(desk: Desk) -> None:
    """S-xml-1, S-xml-3"""
    document = desk.arc() / "data.xml"
    done = subprocess.run(["sh", "-c", f"echo '<words>1</words>' >> '{document}'"], check=False, capture_output=True)
    assert (done.returncode, names(document.read_bytes())) == (0, ("words",))
    done = subprocess.run(["sh", "-c", f"echo '<words>2</words>' >> '{document}'"], check=False, capture_output=True)
    assert done.returncode
    assert b"<words>1</words>" in document.read_bytes()


def test_rewriting(desk: Desk) -> None:
    """S-xml-2"""
    document = desk.arc() / "data.xml"
    assert rewrite(document, with_node(b"<one/>")) is None
    assert rewrite(document, with_node(b"<two a='1'/>")) is None
    assert names(document.read_bytes()) == ("one", "two")
    new = document.with_name("new.xml")
    new.write_bytes(with_node(b"<three/>")(document.read_bytes()))
    new.replace(document)
    assert names(document.read_bytes()) == ("one", "two", "three")
    assert not new.exists()
    desk.commit(document.parent)
    eventually(lambda: desk.in_git(document) == document.read_bytes(), 60)  # it may still be what was renamed
    assert desk.in_git(new) is None
    committed = document.with_name("committed.xml")
    committed.write_bytes(with_node(b"<four/>")(document.read_bytes()))
    desk.commit(document.parent)
    committed.replace(document)
    desk.commit(document.parent)
    assert names(desk.in_git(document) or b"") == ("one", "two", "three", "four")
    assert (desk.in_git(committed), committed.exists()) == (None, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the kernel does not refuse by mode")
@pytest.mark.parametrize("kept", ["open", "closed", "committed"])
def test_what_was_renamed_onto_data_xml_is_written_to_as_that_at_once(desk: Desk, kept: str) -> None:
    """S-xml-2: the kernel is told after the rename, and until then takes the one for the other."""
    document = desk.arc() / "data.xml"
    wanted = []
    for number in range(20):
        new = document.with_name(f"{number}.xml")
        with new.open("xb", buffering=0) as file:
            file.write(with_node(b"<saved%d/>" % number)(document.read_bytes()))
            if kept != "open":
                file.close()
            if kept == "committed":
                desk.commit(document.parent)
            new.replace(document)
            with document.open("ab", buffering=0) as appending:
                appending.write(b"<added%d/>" % number)
        wanted += [f"saved{number}", f"added{number}"]
    desk.commit(document.parent)
    assert names(desk.in_git(document) or b"") == tuple(wanted)


REFUSED: dict[str, tuple[bytes, int]] = {
    "a name that is there": (b"<words/>", errno.EEXIST),
    "cut": (b"<cut><in>", errno.EINVAL),
    "no element": (b"text", errno.EINVAL),
    "binary": (bytes(range(256)), errno.EINVAL),
    "entities": (b'<!DOCTYPE x [<!ENTITY e "x">]><x>&e;</x>', errno.EINVAL),
    "our namespace": (b'<arc:meta xmlns:arc="urn:webarcfs:arc:1"/>', errno.EINVAL),
    "10,000 levels": (b"<a>" * 10_000 + b"</a>" * 10_000, errno.EINVAL),
}


def test_refusals_store_nothing(desk: Desk) -> None:
    """S-xml-3"""
    document = desk.arc() / "data.xml"
    assert append(document, b"<words>42</words>") is None
    before, number = document.read_bytes(), document.stat().st_ino
    for what, (text, expected) in REFUSED.items():
        answer = append(document, text)
        assert answer == expected or (what == "our namespace" and answer == errno.EPERM), what
        assert (document.read_bytes(), document.stat().st_size) == (before, len(before)), what
    changes: tuple[tuple[Callable[[bytes], bytes], int], ...] = (
        (lambda old: old.replace(b"42", b"43"), errno.EPERM),
        (lambda old: old.replace(b'title="', b'title="x'), errno.EPERM),
        (lambda _: b"junk", errno.EINVAL),
    )
    for change, expected in changes:
        assert rewrite(document, change) == expected
        assert (document.read_bytes(), document.stat().st_size) == (before, len(before))
    assert document.stat().st_ino == number
    log = (desk.archive.log / "validation.log").read_text("utf-8")
    path = "/" + str(document.relative_to(desk.mounted.point))
    assert sum(path in line for line in log.splitlines()) >= len(REFUSED) + len(changes)
    new = document.with_name("new.xml")
    new.write_bytes(b"<junk/>")
    with pytest.raises(OSError) as refused:
        new.replace(document)
    assert refused.value.errno in (errno.EINVAL, errno.EPERM)
    assert (new.read_bytes(), document.read_bytes()) == (b"<junk/>", before)


def test_truncating_without_writing_stores_nothing(desk: Desk) -> None:
    """S-xml-3"""
    document = desk.arc() / "data.xml"
    before = document.read_bytes()
    os.close(os.open(document, os.O_WRONLY | os.O_TRUNC))
    assert document.read_bytes() == before
    with pytest.raises(OSError):
        os.truncate(document, 0)
    assert (document.read_bytes(), document.stat().st_size) == (before, len(before))


def test_schemas_of_users(desk: Desk) -> None:
    """S-xml-3"""
    schema = b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="%s" type="xs:int"/></xs:schema>'
    (desk.archive.schemas / "counted.xsd").write_bytes(schema % b"counted")
    document = desk.arc() / "data.xml"
    assert append(document, b"<counted>many</counted>") == errno.EINVAL
    assert append(document, b"<counted>3</counted>") is None
    assert names(document.read_bytes()) == ("counted",)


def test_writers_at_once(desk: Desk) -> None:
    """S-xml-4"""
    arc = desk.arc()
    answers: list[int | None] = []

    def work(number: int) -> None:
        for turn in range(8):
            answers.append(append(arc / "data.xml", b"<n%d-%d/>" % (number, turn)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {f"n{number}-{turn}" for number in range(5) for turn in range(8)}
    assert answers == [None] * 40
    assert set(names((arc / "data.xml").read_bytes())) == expected
    desk.commit(arc)
    assert set(names(desk.in_git(arc / "data.xml") or b"")) == expected
    # What another mount adds is laid beside it.
    store = archives.store_of(desk.archive)
    assert store.check() == []
    eventually(lambda: (arc / "data.xml").read_bytes() == desk.in_git(arc / "data.xml"), 60)


def test_a_handle_goes_on_appending_after_an_fsync(desk: Desk) -> None:
    """S-xml-1: each fsync takes in what came since the one before."""
    path = desk.arc() / "data.xml"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    for number in range(3):
        os.write(fd, b"<n%d/>\n" % number)
        os.fsync(fd)
        assert names(path.read_bytes()) == tuple(f"n{each}" for each in range(number + 1))
    os.write(fd, b"<n3>")
    assert error_of(lambda: os.fsync(fd)) == errno.EINVAL
    assert error_of(lambda: os.close(fd)) == errno.EINVAL
    assert names(path.read_bytes()) == ("n0", "n1", "n2")


def test_memory_for_a_large_document_is_given_back(archive: Archive, mount: Mounter) -> None:
    """S-xml-1: a node of 200,000 attributes takes a hundred megabytes while it is parsed, and not for ever."""
    archives.publish(archive, pages={"a.html": b"page"})
    mounted = mount(archive)
    document = mounted / f"{DOMAIN}/a.html/data.xml"
    large = b"<n %s/>" % b" ".join(b'a%d="1"' % number for number in range(200_000))
    for node in (large, *(b"<m%d/>" % number for number in range(6))):
        assert append(document, node) is None

    def held(what: str) -> int:
        return int(Path(f"/proc/{mounted.pid}/status").read_text().partition(f"{what}:")[2].split()[0])

    def is_given_back() -> bool:
        assert append(document.with_name(f"note-{time.monotonic_ns()}.txt"), b"so that there is a commit") is None
        return held("VmRSS") < held("VmHWM") * 2 // 3

    eventually(is_given_back, 60)


def test_tee_tells_of_a_refusal(desk: Desk) -> None:
    """S-xml-3: the way to append from a shell that README.md shows."""
    arc = desk.arc()
    script = "echo '<words xmlns=\"urn:example\">61</words>' | tee -a data.xml > /dev/null"
    assert subprocess.run(["sh", "-c", script], cwd=arc, check=False).returncode == 0
    assert names((arc / "data.xml").read_bytes())[-1] == "{urn:example}words"
    refused = subprocess.run(
        ["sh", "-c", "echo '<words>' | tee -a data.xml"], cwd=arc, check=False, capture_output=True
    )
    assert refused.returncode == 1
    assert b"Invalid argument" in refused.stderr


def test_a_document_that_would_be_too_large(desk: Desk) -> None:
    """S-xml-3"""
    path = desk.arc() / "data.xml"
    before = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        assert error_of(lambda: os.pwrite(file.fileno(), b"<a/>", LARGEST)) == errno.EINVAL
        assert error_of(lambda: os.ftruncate(file.fileno(), LARGEST + 1)) == errno.EINVAL
    assert path.read_bytes() == before
