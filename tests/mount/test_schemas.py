"""`.schemas/`: schemas of users for their data nodes (DESIGN.md sections 4 and 5; /Xm-3.3/)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import archives
from tests.support.mounts import eventually
from webarcfs.archive.directory import Archive

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
