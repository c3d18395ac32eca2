"""`import` of WACZ: the WARC files in it, its digests, and every ZIP that is none or means harm."""

from __future__ import annotations

import json
import struct
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.importing import wacz_files
from agent.importing.foreign import Report
from agent.importing.import_sources import chosen, parts_of, sources_of
from tests.bench.measure import agent, cost
from tests.support import warcs
from tests.support.crawls import arcs, read
from tests.support.foreignfiles import gzipped, wacz_package, write_wacz, zst
from tests.support.imports import command, import_files, imported
from tests.support.properties import examples
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, WebarcError

pytestmark = pytest.mark.crawl

HOST = "www.example.org"


def pages(*names: str) -> list[bytes]:
    return [warcs.response(f"http://{HOST}/{name}", f"<title>{name}</title>".encode()) for name in names]


def packed(*names: str) -> bytes:
    return gzipped(pages(*names))


@pytest.mark.parametrize("deflate", [False, True])
def test_the_warc_files_in_it_are_one_crawl(archive: Archive, tmp_path: Path, deflate: bool) -> None:
    """Stored or deflated, whatever packs them; what else is in it is passed over."""
    files = {
        "archive/data-0.warc.gz": packed("a", "b"),
        "archive/deep/data-1.warc": b"".join(pages("c")),
        "archive/data-2.warc.zst": zst(pages("d")),
        "archive/notes.txt": b"no records",
        "indexes/index.cdx.gz": b"x",
        "pages/pages.jsonl": b"{}",
        "other.warc": b"".join(pages("not-in-archive")),
    }
    imported(archive, write_wacz(tmp_path / "site.wacz", files, deflate=deflate))
    assert arcs(archive, HOST) == {"a", "b", "c", "d"}
    assert not list(archive.jobs.iterdir())


def test_revisits_are_resolved_across_its_files(archive: Archive, tmp_path: Path) -> None:
    again = warcs.record(
        "revisit", f"http://{HOST}/again", b"", "2025-06-02T12:00:00Z", Refers_To_Target_URI=f"http://{HOST}/a",
        Refers_To_Date=warcs.DATE,
    )  # fmt: skip
    files = {"archive/1.warc.gz": gzipped([again]), "archive/2.warc.gz": packed("a")}
    imported(archive, write_wacz(tmp_path / "x.wacz", files))
    assert arcs(archive, HOST) == {"a", "again"}


def test_what_is_not_as_described_is_a_loss(archive: Archive, tmp_path: Path) -> None:
    """A file with another digest is none of the crawl's, a missing one is named; the others come in."""
    good, bad = packed("good"), packed("bad")
    right = write_wacz(tmp_path / "right.wacz", {"archive/good.warc.gz": good, "archive/bad.warc.gz": packed("true")})
    with zipfile.ZipFile(right) as zip_:
        package = json.loads(zip_.read("datapackage.json"))
    package["resources"].append({"path": "archive/away.warc.gz", "hash": "sha256:00"})
    package["resources"].append({"path": "archive/\ud800\n.warc.gz"})
    file = write_wacz(
        tmp_path / "wrong.wacz", {"archive/good.warc.gz": good, "archive/bad.warc.gz": bad}, package=package
    )
    done = command("import", "--archive", archive.root, file)
    assert done.code == 3
    assert "wrong.wacz: a file that is not what its digest in datapackage.json says" in done.err
    assert "names is not in it, 2 times; the first: archive/\\ud800 .warc.gz" in done.err
    assert arcs(archive, HOST) == {"good"}


def test_digests_of_older_writers_and_none_at_all(archive: Archive, tmp_path: Path) -> None:
    """In `stats`, as WACZ 1.0 has them, or in MD5; without datapackage.json it is said, and no loss."""
    old = {"resources": [{"path": "archive/a.warc.gz", "stats": {"hash": "md5:" + "0" * 32}}]}
    with pytest.raises(Damaged, match=r"old\.wacz: a file that is not what its digest"):
        import_files(archive, write_wacz(tmp_path / "old.wacz", {"archive/a.warc.gz": packed("a")}, package=old))
    odd = {"resources": [None, {"path": 5}, {"path": "archive/b.warc.gz", "hash": 7}]}
    for number, package in enumerate(("none", ["no object"], odd)):
        file = write_wacz(tmp_path / f"{number}.wacz", {"archive/b.warc.gz": packed(f"b{number}")}, package=package)
        result = import_files(archive, file)
        assert result.outcome is not None and not result.outcome.warnings
        assert any("no digests are compared" in line for line in result.remarks) == (package is not odd)
    assert arcs(archive, HOST) == {"b0", "b1", "b2"}


def test_a_wacz_in_a_wacz(archive: Archive, tmp_path: Path) -> None:
    """Those in a multi-WACZ are taken; those that it only names are named."""
    inner = write_wacz(tmp_path / "inner.wacz", {"archive/a.warc.gz": packed("a")}).read_bytes()
    broken = {"one.wacz": inner, "two.wacz": b"no ZIP"}
    package = wacz_package("one.wacz", "two.wacz", "three.wacz", profile="multi-wacz-package")
    outer = write_wacz(tmp_path / "outer.wacz", broken, package=package)
    result = import_files(archive, outer)
    assert result.outcome is not None and arcs(archive, HOST) == {"a"}
    told = "\n".join(result.outcome.warnings)
    assert "three.wacz" in told and "outer.wacz/two.wacz is a ZIP that cannot be read" in told
    names = write_wacz(tmp_path / "names.wacz", {}, package=wacz_package("https://h.example/one.wacz"))
    with pytest.raises(Damaged, match=r"https:/+h.example/one.wacz, WACZ files to be imported one by one"):
        sources_of([names])
    thrice = write_wacz(tmp_path / "thrice.wacz", {"outer.wacz": outer.read_bytes()})
    done = command("import", "--archive", archive.root, thrice)
    assert done.code == 2 and done.err.count("\n") == 1 and "outer.wacz: there is no WARC file in it" in done.err


def test_its_warc_files_beside_it_are_read_once(tmp_path: Path) -> None:
    """As Browsertrix leaves both."""
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "a.warc.gz").write_bytes(packed("a"))
    write_wacz(tmp_path / "site.wacz", {"archive/a.warc.gz": packed("a")})
    found = chosen([tmp_path], tmp_path, ExitStack())
    assert [source.name for source in found.sources] == ["a.warc.gz"]
    assert found.remarks == ("site.wacz is left out: its WARC files are among the others",)
    write_wacz(tmp_path / "site.wacz", {"archive/a.warc.gz": packed("a"), "archive/b.warc.gz": packed("b")})
    assert len(sources_of([tmp_path])) == 2


def test_a_wacz_of_what_was_imported_before_changes_nothing(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(packed("a"))
    imported(archive, tmp_path / "a.warc.gz")
    assert import_files(archive, write_wacz(tmp_path / "a.wacz", {"archive/a.warc.gz": packed("a")})).outcome is None
    more = {"archive/a.warc.gz": packed("a"), "archive/b.warc.gz": packed("b")}
    imported(archive, write_wacz(tmp_path / "b.wacz", more))
    assert arcs(archive, HOST) == {"a", "b"}


def test_a_large_record_stays_out_of_memory(archive: Archive, tmp_path: Path) -> None:
    """Of 100 MB, packed by zstd, and once more by the ZIP."""
    size, block = 100 << 20, bytes(range(256)) * 4096
    head = warcs.http(b"", "application/octet-stream")
    record = warcs.record("response", f"http://{HOST}/big", b"").replace(b": 0", b": %d" % (size + len(head)))
    packer = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
    made = packer.compress(record[:-4] + head) + b"".join(packer.compress(block) for _ in range(size // len(block)))
    made += packer.compress(b"\r\n\r\n") + packer.flush()
    file = write_wacz(tmp_path / "big.wacz", {"archive/big.warc.zst": made}, deflate=True)
    done = cost(agent("import", "--archive", str(archive.root), str(file)))
    assert done.exit_code == 0
    assert 0 < done.together < 150, "MiB, of the import and all that it runs"
    assert read(archive, HOST, "big")[-256:] == block[-256:]


# -- ZIPs that mean harm -----------------------------------------------------------------------------------------------


CLIMBING = ("../a.warc.gz", "/etc/a.warc.gz", "archive/../../a.warc.gz", "..", "C:\\a.warc", "a/..\\b")


@pytest.mark.parametrize("name", CLIMBING)
def test_a_path_that_climbs_is_refused(archive: Archive, tmp_path: Path, name: str) -> None:
    file = write_wacz(tmp_path / "x.wacz", {"archive/a.warc.gz": packed("a"), name: b"x"})
    with pytest.raises(Damaged, match="a path out of it"):
        import_files(archive, file)


def test_encrypted_and_damaged_entries(archive: Archive, tmp_path: Path) -> None:
    files = {"archive/a.warc": b"".join(pages("aaaa")), "archive/b.warc.gz": packed("b")}
    data = write_wacz(tmp_path / "x.wacz", files, package="none").read_bytes()
    (tmp_path / "crc.wacz").write_bytes(data.replace(b"<title>aaaa", b"<title>aaab", 1))
    outcome = import_files(archive, tmp_path / "crc.wacz").outcome
    assert outcome is not None and any("cannot be unpacked (Bad CRC-32" in line for line in outcome.warnings)
    assert arcs(archive, HOST) == {"b"}
    secret = bytearray(data)
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := secret.find(magic, place + 1)) >= 0:
            secret[place + flags] |= 1
    (tmp_path / "secret.wacz").write_bytes(secret)
    with pytest.raises(Damaged, match="encrypted"):
        sources_of([tmp_path / "secret.wacz"])


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wacz_files, "BOMB_SIZE", 1 << 20)
    file = write_wacz(tmp_path / "x.wacz", {"archive/a.warc": bytes(4 << 20)}, deflate=True)
    with pytest.raises(Damaged, match="an attack on the disk"):
        sources_of([file])


def test_a_zip_of_very_many_files_is_refused_before_its_directory_is_read(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("archive/a.warc")
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as out:
        out.writestr(entry, b"")
        out.filelist.extend([entry] * 300_000)
    with pytest.raises(Damaged, match="far more files"):
        sources_of([tmp_path / "x.wacz"])


def test_an_entry_that_lies_about_its_size_gives_no_more_than_it_says(archive: Archive, tmp_path: Path) -> None:
    file = write_wacz(tmp_path / "x.wacz", {"archive/a.warc": b"".join(pages("a")) * 50}, deflate=True, package="none")
    data = bytearray(file.read_bytes())
    place = data.find(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 100)
    file.write_bytes(data)
    with pytest.raises(Damaged, match="no record of a crawl"):
        import_files(archive, file)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.booleans())
def test_any_zip_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, deflate: bool
) -> None:
    """Whatever its bytes: records, losses, or a WebarcError."""
    file = tmp_path_factory.mktemp("zip") / "x.wacz"
    inner = write_wacz(file, {"archive/i.warc.gz": packed("i")}).read_bytes()
    files = {"archive/a.warc.gz": packed("a", "b"), "archive/b.warc": b"".join(pages("c")), "x.wacz": inner}
    raw = bytearray(write_wacz(file, files, deflate=deflate).read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=6)):
        raw[place] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(raw[: data.draw(st.integers(len(raw) - 30, len(raw)))]))
    try:
        report = Report()
        for part in parts_of(file, "x.wacz", report, lambda _: None):
            for record in part.records:
                record.whole()
    except WebarcError as error:
        assert "\n" not in str(error)
