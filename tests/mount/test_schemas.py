"""`.schemas/`: schemas of users for their data nodes (/Xm-3.3/)."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.mount

SCHEMA = (
    b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="words" type="xs:integer"/></xs:schema>'
)


def listed(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_schemas_are_read_as_they_are(archive: Archive, mount: Mounter) -> None:
    """S-schemas-1: found by name, in no listing; what changes in the archive's folder shows."""
    archives.publish(archive, pages={"index.html": b"home"})
    mounted = mount(archive)
    folder = mounted / ".schemas"
    assert ".schemas" not in listed(mounted.point)
    assert listed(folder) == []
    assert not (folder / "words.xsd").exists()
    for name in ("notes.txt", ".hidden.xsd"):
        (archive.schemas / name).write_bytes(b"no schema")
    (archive.schemas / "link.xsd").symlink_to("/etc/passwd")
    (archive.schemas / "words.xsd").write_bytes(SCHEMA)
    eventually((folder / "words.xsd").exists, 60)
    eventually(lambda: listed(folder) == ["words.xsd"], 60)
    assert (folder / "words.xsd").read_bytes() == SCHEMA
    assert (folder / "words.xsd").stat().st_size == len(SCHEMA)
    with (folder / "words.xsd").open("rb") as opened:
        new = archive.schemas / "new"
        new.write_bytes(SCHEMA + b"\n")
        new.rename(archive.schemas / "words.xsd")
        eventually(lambda: (folder / "words.xsd").read_bytes() == SCHEMA + b"\n", 60)
        assert opened.read() == SCHEMA
    (archive.schemas / "words.xsd").unlink()
    eventually(lambda: listed(folder) == [], 60)
    assert not (folder / "link.xsd").exists()


def refused(path: Path, body: bytes) -> int | None:
    """The errno of writing a new file."""
    try:
        with path.open("xb") as file:
            file.write(body)
    except OSError as error:
        return error.errno
    return None


def test_new_schemas_are_stored_if_they_are_some(archive: Archive, mount: Mounter) -> None:
    """S-schemas-2: create-only, checked at close; what is stored holds for data nodes from then on."""
    archives.publish(archive, pages={"index.html": b"home"})
    mounted = mount(archive)
    folder, document = mounted / ".schemas", mounted / DOMAIN / "index.html/data.xml"
    assert refused(folder / "words.xsd", b"<words/>") == errno.EINVAL
    # Until its handle is no more; the kernel says that when close has returned.
    eventually(lambda: not (folder / "words.xsd").exists(), 60)
    assert refused(folder / "words.xsd", b"") == errno.EINVAL
    assert refused(folder / "words.txt", SCHEMA) == errno.EINVAL
    assert refused(folder / "more.xsd", SCHEMA) == errno.EINVAL  # it has no element `more`, and would check nothing
    logged = (archive.log / "validation.log").read_text("utf-8")
    assert "\t/.schemas/more.xsd\tmore.xsd is no schema that can be used: it declares words, not" in logged
    eventually(lambda: listed(folder) == [], 60)
    eventually(lambda: not (folder / "words.xsd").exists(), 60)
    assert list(archive.schemas.iterdir()) == []
    with (folder / "words.xsd").open("xb") as file:
        file.write(SCHEMA)
        assert refused(folder / "words.xsd", SCHEMA) == errno.EEXIST
    assert (archive.schemas / "words.xsd").read_bytes() == SCHEMA
    eventually(lambda: listed(folder) == ["words.xsd"], 60)
    assert (folder / "words.xsd").read_bytes() == SCHEMA
    assert refused(folder / "words.xsd", SCHEMA) == errno.EEXIST
    for attempt in (
        lambda: (folder / "words.xsd").write_bytes(b""),
        (folder / "words.xsd").unlink,
        lambda: (folder / "words.xsd").rename(folder / "more.xsd"),
        (folder / "folder").mkdir,
    ):
        with pytest.raises(PermissionError):
            attempt()
    more = SCHEMA.replace(b"words", b"more")
    shell = subprocess.run(["sh", "-c", "cat > more.xsd"], cwd=folder, input=more, check=False)
    assert shell.returncode == 0
    eventually(lambda: listed(folder) == ["more.xsd", "words.xsd"], 60)
    with pytest.raises(OSError, match="Invalid") as raised, document.open("ab") as file:
        file.write(b"<words>forty</words>")
    assert raised.value.errno == errno.EINVAL
    with document.open("ab") as file:
        file.write(b"<words>42</words>")
    assert b"<words>42</words>" in document.read_bytes()
