"""Bags: the library's validator accepts them, PREMIS says what happened, and they come back as the same snapshots."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from errno import ENOSPC
from pathlib import Path

import bagit
import pytest
from lxml import etree

from agent.jobs import exportedjob
from tests.support import archives
from tests.support.disks import small_disk
from tests.support.imports import killed_in
from tests.support.readercommand import webarc
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.metadata import CET, parse_time
from webarcfs.export import bagit as bags
from webarcfs.export import warc
from webarcfs.export.export_result import Summary
from webarcfs.export.selection import Asked, select

pytestmark = pytest.mark.store

_SCHEMA = Path(__file__).parents[1] / "data" / "premis-3-subset.xsd"
_NAMES = {"p": "http://www.loc.gov/premis/v3"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two domains; three snapshots, additions."""
    made = directory.create(tmp_path_factory.mktemp("bag") / "archive")
    archives.publish(made, pages={f"{number}.html": b"<p>%d" % number for number in range(20)})
    archives.add(made, "3.html/notes & more.txt", b"42")
    archives.publish(made, pages={"3.html": b"<p>changed"}, crawl_time=archives.FIRST + timedelta(days=1))
    archives.publish(made, "other.example", {"a": b"a"})
    yield made
    shutil.rmtree(made.root)


def export(archive: Archive, out: Path) -> Summary:
    return bags.export(select(archive, Asked()), out, lambda *_: None, lambda: False)


@pytest.fixture(scope="module")
def bag(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "x"
    export(archive, out)
    return out


def _validated(bag: Path) -> int:
    command = [Path(sys.executable).parent / "bagit.py", "--validate", "--quiet", bag]
    return subprocess.run(command, check=False, capture_output=True).returncode


def test_the_validator_accepts_it_and_no_other(bag: Path, tmp_path: Path) -> None:
    assert _validated(bag) == 0
    (payload,) = (bag / "data").iterdir()
    for changed in (f"data/{payload.name}", "metadata/premis.xml", "bag-info.txt"):
        other = tmp_path / changed.replace("/", "-")
        shutil.copytree(bag, other)
        raw = (other / changed).read_bytes()
        (other / changed).write_bytes(raw[:-3] + b"x" + raw[-2:])
        assert _validated(other) != 0, changed


def test_it_has_warc_files_checksums_events_and_nothing_else(archive: Archive, bag: Path) -> None:
    found = sorted(path.relative_to(bag).as_posix() for path in bag.rglob("*") if path.is_file())
    assert found == [
        "bag-info.txt", "bagit.txt", "data/webarc-00000.warc.gz", "manifest-sha512.txt", "metadata/premis.xml",
        "tagmanifest-sha512.txt",
    ]  # fmt: skip
    info = bagit.Bag(str(bag)).info
    size = (bag / "data/webarc-00000.warc.gz").stat().st_size
    assert info["Payload-Oxum"] == f"{size}.1"
    assert info["External-Description"] == "3 snapshots of other.example, www.example.org, as WARC files"
    assert (bag / "bagit.txt").read_text().startswith("BagIt-Version: 1.0\n")
    told = export(archive, bag.with_name("y"))
    assert (told.snapshots, told.files, told.documents) == (3, 6, 41)
    assert told.bytes == sum(path.stat().st_size for path in bag.with_name("y").rglob("*") if path.is_file())


def test_premis_tells_each_capture_and_the_export(archive: Archive, bag: Path) -> None:
    document = etree.parse(bag / "metadata/premis.xml")
    etree.XMLSchema(etree.parse(_SCHEMA)).assertValid(document)
    events = document.findall("p:event", _NAMES)
    kinds = [event.findtext("p:eventType", "", _NAMES) for event in events]
    assert kinds == ["capture", "capture", "capture", "exporting"]
    times = [event.findtext("p:eventDateTime", "", _NAMES) for event in events]
    crawls = [each.tag.crawl_time for each in select(archive, Asked())]
    assert [parse_time(time.removesuffix("Z")).replace(tzinfo=CET) + timedelta(hours=1) for time in times[:3]] == crawls
    (digest,) = document.iterfind(".//p:messageDigest", _NAMES)
    assert (bag / "manifest-sha512.txt").read_text() == f"{digest.text}  data/webarc-00000.warc.gz\n"
    ids = [each.text for each in document.iterfind(".//p:eventIdentifierValue", _NAMES)]
    assert len(set(ids)) == 4


def test_it_comes_back_as_the_same_snapshots(archive: Archive, bag: Path, tmp_path: Path) -> None:
    other = directory.create(tmp_path / "other")
    done = exportedjob.run(other, [bag])
    assert (len(done.published), done.refused, done.faults) == (3, (), ())
    for domain in archive.domains():
        one, two = (Repository(each.repository(domain)) for each in (archive, other))
        assert [one.commit(oid).tree for oid in one.refs("refs/crawls/").values()] == [
            two.commit(oid).tree for oid in two.refs("refs/crawls/").values()
        ]


@pytest.mark.parametrize("point", [
    (warc, "encoded", 30), (bagit, "make_manifests", 1), (bags, "_write_events", 1), (bags, "_sort", 1),
])  # fmt: skip
def test_killed_it_goes_on(archive: Archive, bag: Path, tmp_path: Path, point: tuple[object, str, int]) -> None:
    words = ("export", "--archive", str(archive.root), "--format", "bagit", str(tmp_path / "x"))
    killed_in(lambda: webarc(*words), *point)
    assert [path.name for path in tmp_path.iterdir()] == ["x.part"]
    assert webarc(*words).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x"] and _validated(tmp_path / "x") == 0
    assert (tmp_path / "x/data/webarc-00000.warc.gz").read_bytes() == (bag / "data/webarc-00000.warc.gz").read_bytes()


def test_a_full_disk_is_told_and_it_goes_on(archive: Archive, bag: Path, tmp_path: Path) -> None:
    size = (bag / "data/webarc-00000.warc.gz").stat().st_size
    with small_disk(tmp_path / "disk", "1m") as disk:
        for left in (4096, size // 4096 * 4096 + 8192):
            (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - left))
            with pytest.raises(OSError) as told:
                export(archive, disk / "x")
            assert told.value.errno == ENOSPC
            (disk / "ballast").unlink()
        export(archive, disk / "x")
        assert _validated(disk / "x") == 0
