"""`import` of `.warc.zst`: with a dictionary or without, whole, cut off, damaged, and as an attack."""

from __future__ import annotations

import struct
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import warcs
from tests.support.crawls import arcs, read
from tests.support.foreignfiles import DICTIONARY, SKIPPED, dictionary_of, skippable, zst
from tests.support.imports import command, imported
from tests.support.properties import examples
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.warc import bytestream
from webarcfs.warc.foreign_files import records_of, stream_of

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
PAGES = [
    warcs.response(f"http://{HOST}/{number}", f"<title>{number}</title>{'<p>text of a page</p>' * 9}".encode())
    for number in range(12)
]
WORDS = dictionary_of(PAGES)


def split(data: bytes) -> tuple[list[str], list[str]]:
    """The URLs of the whole records of a file, and the complaints."""
    complaints: list[str] = []
    stream = stream_of(BytesIO(data))
    found = records_of(stream, lambda what, _: complaints.append(what))
    return [each.fields.get("warc-target-uri", "") for each in found if each.whole()], complaints


ALL = split(b"".join(PAGES))
FORMS = {
    "a frame a record": zst(PAGES),
    "with a dictionary": zst(PAGES, WORDS),
    "with a packed dictionary": zst(PAGES, WORDS, packed=True),
    "with other frames": zst([]) + zst(PAGES[:5]) + skippable(SKIPPED, b"an index") + zst(PAGES[5:]),
    "with other frames behind the dictionary": skippable(DICTIONARY, WORDS)
    + skippable(SKIPPED, b"")
    + zst(PAGES, WORDS)[len(skippable(DICTIONARY, WORDS)) :],
    "one frame": zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(b"".join(PAGES)),
    "two frames a record": zst([part for each in PAGES for part in (each[:100], each[100:])]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    assert split(FORMS[form]) == ALL


def test_the_program_zstd_writes_them_too(archive: Archive, tmp_path: Path) -> None:
    """A frame a record by `zstd`, with the dictionary that it trained, put before them as the Archive Team does."""
    held = tmp_path / "dictionary"
    held.write_bytes(WORDS)
    file = tmp_path / "crawl.warc.zst"
    with file.open("wb") as out:
        out.write(skippable(DICTIONARY, subprocess.run(["zstd", "-qc", held], check=True, capture_output=True).stdout))
        for each in PAGES:
            pack = ["zstd", "-qc", "-19", "--check", "-D", held]
            out.write(subprocess.run(pack, input=each, check=True, capture_output=True).stdout)
    imported(archive, file)
    assert arcs(archive, HOST) == {f"{number}" for number in range(12)}
    assert read(archive, HOST, "7").startswith(b"<title>7</title>")


def test_without_the_dictionary_or_the_library_it_says_what_helps(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = zst(PAGES, WORDS)[len(skippable(DICTIONARY, WORDS)) :]
    (tmp_path / "bare.warc.zst").write_bytes(bare)
    done = command("import", "--archive", archive.root, tmp_path / "bare.warc.zst")
    assert (done.code, done.err.count("\n")) == (2, 1) and "zstd -d -D" in done.err and "bare.warc.zst" in done.err
    for other in (dictionary_of(PAGES[:6])[:-9], b"\x37\xa4\x30\xec" + bytes(99), b"nothing", b""):
        with pytest.raises(Damaged, match="dictionary"):
            stream_of(BytesIO(skippable(DICTIONARY, other) + bare))
    for large in (bytes(9 << 20), zstandard.compress(bytes(9 << 20))):
        with pytest.raises(Damaged, match="larger"):
            stream_of(BytesIO(skippable(DICTIONARY, large) + bare))
    with pytest.raises(Damaged, match="cut off"):
        stream_of(BytesIO(skippable(DICTIONARY, WORDS)[:-1]))
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"webarcfs\[exchange\]"):
        stream_of(BytesIO(zst(PAGES)))


@pytest.mark.parametrize("form", ["a frame a record", "with a dictionary", "one frame"])
def test_a_file_cut_at_every_place(form: str) -> None:
    """A record is whole or it is not there, and a cut in the middle of one is said."""
    data = FORMS[form]
    ends = {at for at in range(len(data)) if data[at:].startswith(bytestream.ZSTD_MAGIC)}
    for end in range(len(skippable(DICTIONARY, WORDS)) + 18 if "dictionary" in form else 4, len(data), 3):
        found, complaints = split(data[:end])
        assert found == ALL[0][: len(found)], end
        assert complaints or end in ends or end - 1 in ends or end - 2 in ends or end - 3 in ends, end


def test_damage_costs_its_record_alone() -> None:
    data = zst(PAGES)
    for place in range(4, len(data), 2):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        found, complaints = split(bytes(broken))
        assert len(found) >= len(ALL[0]) - 1, place
        assert complaints or len(found) == len(ALL[0]), place
    found, complaints = split(zst(PAGES[:3]) + b"rubbish" * 30 + zst(PAGES[3:]) + b"rubbish")
    assert (len(found), len(complaints)) == (len(PAGES), 2)


def test_a_bomb_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What grows beyond measure is damage: memory stays flat, the disk is spared, and the next record is read."""
    monkeypatch.setattr(bytestream, "BOMB_SIZE", 1 << 22)
    head = warcs.record("response", f"http://{HOST}/bomb", b"").replace(
        b"Content-Length: 0", b"Content-Length: 400000000"
    )
    packer = zstandard.ZstdCompressor().compressobj()
    bomb = packer.compress(head[:-4] + b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(40):
        bomb += packer.compress(bytes(1 << 20))
    bomb += packer.flush()
    stream = stream_of(BytesIO(zst(PAGES[:2]) + bomb + zst(PAGES[2:])))
    most, found = 0, []
    complaints: list[str] = []
    for record in records_of(stream, lambda what, _: complaints.append(what)):
        size = 0
        while data := record.read(1 << 16):
            size += len(data)
        most = max(most, size)
        if record.whole():
            found.append(record.fields["warc-target-uri"])
    assert found == ALL[0] and complaints
    assert most < 6 << 20


@settings(max_examples=examples(120), deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.data())
def test_any_file_can_be_split(form: str, data: st.DataObject) -> None:
    """Records come or complaints, or Damaged where there is no dictionary; it always ends."""
    raw = bytearray(FORMS[form])
    for place in data.draw(
        st.lists(st.integers(4, len(raw) - 1), max_size=5)
    ):  # behind what tells it from a plain file
        raw[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(4, len(raw)))
    try:
        found, _ = split(bytes(raw[:end]) + struct.pack("<I", data.draw(st.integers(0, 1 << 31))))
    except Damaged:
        return
    assert set(found) <= set(ALL[0])
