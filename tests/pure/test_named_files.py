"""Names of exported files: whatever a title or a URL has, every system accepts them."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import Damaged
from webarcfs.export.named_files import LONGEST, LONGEST_BYTES, file_names
from webarcfs.export.static_places import is_like_marked
from webarcfs.export.version_selection import ChosenCapture, RowKind

pytestmark = pytest.mark.pure

_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\.|\Z)", re.IGNORECASE)


def _row(title: str, url: str = "http://www.example.org/a", mime_type: str = "text/html") -> ChosenCapture:
    return ChosenCapture(
        RowKind.VERSION, "www.example.org", 1_556_704_800, "a", url, 1_556_704_800, 200, mime_type, title, "b0" * 20
    )


@given(st.text(max_size=400), st.booleans(), st.sampled_from(["text/html", "application/pdf", "x/y", "text/xml"]))
@example("con", False, "text/html")
@example("\u202egnp.exe", False, "text/html")
@example("A" * 10_000, True, "text/html")
@example("🦒" * 200, True, "text/html")
@example("e\u0301" * 200, True, "text/html")
@example(" . ", False, "text/html")
@example("\udcff\0\n/..\\", False, "application/pdf")
def test_any_title_makes_a_name_that_every_system_accepts(title: str, is_marked: bool, mime_type: str) -> None:
    for path in file_names(_row(title, mime_type=mime_type), is_marked=is_marked):
        folder, _, name = path.partition("/")
        assert folder == "www.example.org"
        assert name.startswith("2019-05-01")
        assert len(name.encode("utf-8")) <= LONGEST_BYTES and len(name.encode("utf-16-le")) // 2 <= LONGEST
        assert not set(name) & set('<>:"/\\|?*') and name[-1] not in " ." and not _DEVICES.match(name)
        assert name == unicodedata.normalize("NFC", name)
        assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in name)
        assert name.endswith((".html", ".pdf", ".bin", ".xml", ".txt"))
        assert is_like_marked(name.removesuffix(".txt")) or not is_marked


@pytest.mark.parametrize("marks", ["\u0301", "\u0323\u0301"])
def test_a_name_is_cut_between_letters_and_not_before_their_marks(marks: str) -> None:
    path, _ = file_names(_row(f"x{marks}" * 200))
    letters = path.partition("2019-05-01 ")[2].removesuffix(".html")
    assert letters and letters == f"x{marks}" * letters.count("x")


@given(st.text(max_size=60))
def test_a_name_without_a_title_comes_from_any_url(path: str) -> None:
    name = file_names(_row("", f"http://www.example.org/{path}"))[0].partition("/")[2]
    assert name.startswith("2019-05-01") and name.endswith(".html") and len(name) > len("2019-05-01.html")


@pytest.mark.parametrize(
    ("title", "url", "mime_type", "name"),
    [
        ("Annual report", "", "application/pdf", "2019-05-01 Annual report.pdf"),
        ("report.pdf", "", "application/pdf", "2019-05-01 report.pdf"),
        ("", "http://www.example.org/a/minutes.pdf?x=1", "application/pdf", "2019-05-01 a_minutes.pdf@x=1.pdf"),
        ("", "http://www.example.org/b%C3%BCro/", "text/html", "2019-05-01 büro.html"),
        ("", "http://www.example.org/", "text/html", "2019-05-01 index.html"),
        ("", "http://www.example.org/p.JPEG", "image/jpeg", "2019-05-01 p.jpeg"),
        ("Feed", "http://www.example.org/feed", "application/rss+xml", "2019-05-01 Feed.xml"),
        ("Page", "http://www.example.org/x.exe", "text/html", "2019-05-01 Page.html"),
        ("What: a/b?", "http://www.example.org/x", "text/html", "2019-05-01 What+ a_b@.html"),
    ],
)
def test_the_extension_is_that_of_the_type(title: str, url: str, mime_type: str, name: str) -> None:
    assert file_names(_row(title, url or "http://www.example.org/x", mime_type))[0] == f"www.example.org/{name}"


_ROWS = st.builds(
    ChosenCapture,
    st.sampled_from(RowKind),
    st.sampled_from(["a.example", "b.example"]),
    st.integers(0, 1 << 33),
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 1 << 33),
    st.integers(100, 599),
    title=st.text(max_size=30),
    is_match=st.booleans(),
)


@given(st.lists(_ROWS, max_size=20))
def test_rows_come_back_in_the_order_of_host_snapshot_and_place(rows: list[ChosenCapture]) -> None:
    """As bytes they sort as they are exported; a row is its own inverse, whatever its texts have."""
    lines = [raw[:-1].rpartition(b"\n")[2] + b"\n" for raw in sorted(row.as_row() for row in rows)]
    back = [ChosenCapture.from_line(line) for line in lines]
    assert sorted(map(repr, back)) == sorted(map(repr, rows))
    keys = [(row.domain, row.seq) for row in back]
    assert keys == sorted(keys)


@given(st.binary(max_size=60))
def test_a_line_that_is_no_row_is_damaged(line: bytes) -> None:
    with pytest.raises(Damaged):
        ChosenCapture.from_line(line)
