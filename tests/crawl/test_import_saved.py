"""`import` of pages that a browser saved: SingleFile, "Save as: complete", MHTML."""

from __future__ import annotations

import base64
import quopri
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.importing import saved_pages
from agent.importing.foreign import Report, Stated
from agent.importing.import_sources import chosen, parts_of, sources_of
from agent.importing.saved_pages import PageOrigin, origin_of
from tests.support import browsers
from tests.support.crawls import arcs, meta, read
from tests.support.imports import command, imported
from tests.support.properties import examples
from tests.support.rooms import served
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import format_time

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(64)
#: As SingleFile writes it.
SINGLE = """<!DOCTYPE html> <html lang=en><!--
 Page saved with SingleFile 
 url: https://www.example.org/news?id=1&page=2 
 saved date: Tue Mar 05 2024 12:34:56 GMT+0100 (Central European Standard Time)
--><meta charset=utf-8><title>Größe</title><img src=data:image/png;base64,iVBORw0KGgo=>"""  # noqa: W291 # its blanks


def test_a_page_of_singlefile_says_address_and_time(archive: Archive, tmp_path: Path) -> None:
    """In its comment; the page is kept as it is, and data.xml says what it was taken from."""
    page = tmp_path / "News (2024).html"
    page.write_text(SINGLE)
    imported(archive, page)
    (arc,) = arcs(archive, HOST)
    described = meta(archive, HOST, arc)
    assert (described.url, described.source, described.title) == (
        "https://www.example.org/news?id=1&page=2",
        "SingleFile",
        "Größe",
    )
    assert format_time(described.capture_time) == "2024-03-05T12:34:56"
    assert read(archive, HOST, arc) == SINGLE.encode()
    with served(archive) as room:
        frame = room.get(f"/web/20240305113456/{described.url}").text
    assert "Taken from a copy (SingleFile)" in frame


def test_a_folder_of_saved_pages(tmp_path: Path) -> None:
    """All that say what they are; other pages are none of them."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.html").write_text(SINGLE)
    (tmp_path / "in" / "b.html").write_text(SINGLE.replace("id=1", "id=2"))
    (tmp_path / "in" / "other.html").write_text("<title>no saved page</title>")
    (tmp_path / "in" / "c.mhtml").write_bytes(mhtml_of([part("https://www.example.org/c", b"<title>c</title>")]))
    assert [source.name for source in sources_of([tmp_path / "in"])] == ["a.html", "b.html", "c.mhtml"]


@pytest.mark.parametrize(
    ("start", "origin"),
    [
        (b"<!--\n Page saved with SingleFile\n url: https://a.example/\n-->", PageOrigin("SingleFile", "https://a.example/")),
        (b"<!--\n Page saved with SingleFile\n url: file:///etc\n saved date: x-->", PageOrigin("SingleFile")),
        (
            b"<!-- Archive processed by SingleFile\n url: https://a.example/\n saved date: 2020-01-01T00:00:00Z\n-->",
            PageOrigin("SingleFile", "https://a.example/", "2020-01-01T00:00:00Z"),
        ),
        (b"<!-- saved from url=(0019)https://a.example/x -->", PageOrigin("mirror", "https://a.example/x")),
        (b"<!-- saved from url=(0014)about:internet -->", PageOrigin("mirror")),
        (b"<p>Page saved with SingleFile url: https://a.example/", None),
    ],
)  # fmt: skip
def test_what_pages_say_of_themselves(start: bytes, origin: PageOrigin | None) -> None:
    assert origin_of(start) == origin


def test_save_as_complete(archive: Archive, tmp_path: Path) -> None:
    """Chromium's mark has the address; what the page needs has the URLs to which its links lead."""
    page, folder = tmp_path / "A page.html", tmp_path / "A page_files"
    page.write_text('<!-- saved from url=(0028)https://www.example.org/a/b -->\n<img src="./A page_files/i.png">')
    folder.mkdir()
    (folder / "i.png").write_bytes(PIXEL)
    (folder / "app.js.download").write_bytes(b"let a")
    (folder / "link").symlink_to("/etc/passwd")
    missing = command("import", "--archive", archive.root, page)
    assert missing.code == 1 and "--captured TIME" in missing.err and "--base" not in missing.err
    done = command("import", "--archive", archive.root, "--captured", "2020-01-01T10:00:00", page)
    assert done.code == 0 and "a symbolic link" in done.err, done.err
    urls = {meta(archive, HOST, arc).url: meta(archive, HOST, arc) for arc in arcs(archive, HOST)}
    assert set(urls) == {
        "https://www.example.org/a/b", "https://www.example.org/a/A%20page_files/i.png",
        "https://www.example.org/a/A%20page_files/app.js.download",
    }  # fmt: skip
    assert {document.source for document in urls.values()} == {"mirror"}
    assert urls["https://www.example.org/a/A%20page_files/app.js.download"].mime_type == "text/javascript"


def test_a_page_that_says_nothing(archive: Archive, tmp_path: Path) -> None:
    """Both options are asked for; --base is for one file."""
    page = tmp_path / "page.html"
    page.write_text("<title>x</title>")
    done = command("import", "--archive", archive.root, page)
    assert done.code == 1 and "--base URL" in done.err and "--captured TIME" in done.err
    two = command("import", "--archive", archive.root, "--base", "https://a.example/", page, page)
    assert two.code == 1 and "give one" in two.err
    bad = command("import", "--archive", archive.root, "--base", "http://", "--captured", "2020-01-01", page)
    assert bad.code == 1 and "--base: " in bad.err
    stated = ("--base", "www.example.org/x", "--captured", "2020-01-01")
    assert command("import", "--archive", archive.root, *stated, page).code == 0
    assert meta(archive, HOST, "x").url == "http://www.example.org/x"


def test_a_page_as_the_copy_of_two_addresses_is_two_sources(tmp_path: Path) -> None:
    """Unless it says its address itself."""
    (tmp_path / "page.html").write_text("<title>x</title>")
    (tmp_path / "single.html").write_text(SINGLE)
    digests = {
        (name, chosen([tmp_path / name], tmp_path, ExitStack(), stated=stated).sources[0].digest)
        for name in ("page.html", "single.html")
        for base in ("https://a.example/", "https://b.example/")
        for stated in [Stated(base, datetime(2020, 1, 1, tzinfo=UTC))]
    }
    assert sorted(name for name, _ in digests) == ["page.html", "page.html", "single.html"]


# == MHTML =============================================================================================================


def part(location: str, body: bytes, kind: str = "text/html", coding: str = "quoted-printable", **more: str) -> bytes:
    fields = {"Content-Type": kind, "Content-Transfer-Encoding": coding, "Content-Location": location, **more}
    coded = {"base64": base64.encodebytes, "quoted-printable": quopri.encodestring}.get(coding, lambda raw: raw)(body)
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items() if value)
    return lines.encode() + b"\r\n" + coded.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def mhtml_of(parts: list[bytes], date: str = "Tue, 5 Mar 2024 11:34:56 -0000", location: str = "") -> bytes:
    fields = ["From: <Saved by Blink>", f"Snapshot-Content-Location: {location}" if location else "X: y"]
    fields += [f"Date: {date}"] if date else []
    fields += ["MIME-Version: 1.0", 'Content-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="--b--"']
    return (
        "\r\n".join([*fields, "", ""]).encode()
        + b"".join(b"\r\n----b--\r\n" + raw for raw in parts)
        + b"\r\n----b----\r\n"
    )


def test_parts_by_their_addresses(archive: Archive, tmp_path: Path) -> None:
    """Quoted-printable, base64, as it is; references by name lead to addresses or have the part in them."""
    page = (
        b'<title>Gr\xc3\xb6\xc3\x9fe</title><link rel=stylesheet href="cid:css-1@mhtml.blink">'
        b'<img src="cid:img@x"><iframe src="cid:frame-1@mhtml.blink"></iframe><img src="cid:none">'
    )
    raw = mhtml_of(
        [
            part("https://www.example.org/a?b=1&c=2", page),
            part("https://www.example.org/i.png?a=1&b=2", PIXEL, "image/png", "base64", Content_ID="<img@x>"),
            part("cid:css-1@mhtml.blink", b"p { background: url(cid:img@x) }", "text/css"),
            part("", b"<p>frame", Content_ID="<frame-1@mhtml.blink>"),
            part("s.css", b"p {}", "text/css", "binary"),
            part("data:text/plain,x", b"x", "text/plain"),
            part("file:///etc/passwd", b"x", "text/plain"),
            part("", b"nothing", "text/plain"),
            part("https://www.example.org/s.css", b"twice", "text/css"),
        ]
    )
    (tmp_path / "a.mht").write_bytes(raw)
    done = command("import", "--archive", archive.root, tmp_path / "a.mht")
    assert done.code == 0, done.err
    urls = {meta(archive, HOST, arc).url: arc for arc in arcs(archive, HOST)}
    assert set(urls) == {
        "https://www.example.org/a?b=1&c=2", "https://www.example.org/i.png?a=1&b=2", "https://www.example.org/s.css",
    }  # fmt: skip
    described = meta(archive, HOST, urls["https://www.example.org/a?b=1&c=2"])
    assert (described.source, described.title, format_time(described.capture_time)) == (
        "MHTML",
        "Größe",
        "2024-03-05T12:34:56",
    )
    kept = read(archive, HOST, urls["https://www.example.org/a?b=1&c=2"])
    css = base64.b64encode(b"p { background: url(https://www.example.org/i.png?a=1&b=2) }\r\n".rstrip())
    assert b'src="https://www.example.org/i.png?a=1&amp;b=2"' in kept and b'src="cid:none"' in kept
    assert b'href="data:text/css;base64,' + css[:40] in kept and b'src="data:text/html;base64,' in kept
    assert read(archive, HOST, urls["https://www.example.org/i.png?a=1&b=2"]) == PIXEL
    assert read(archive, HOST, urls["https://www.example.org/s.css"]) == b"p {}"
    for words in ("parts without an address are skipped", "an earlier part has its address", "are not there stay"):
        assert words in done.err, words


def test_without_date_or_address(archive: Archive, tmp_path: Path) -> None:
    """The option is in the message; the first part has the address of the whole."""
    (tmp_path / "a.mhtml").write_bytes(mhtml_of([part("", b"<p>x")], date="", location="https://www.example.org/x"))
    done = command("import", "--archive", archive.root, tmp_path / "a.mhtml")
    assert done.code == 1 and "--captured TIME" in done.err
    done = command("import", "--archive", archive.root, "--captured", "2020-01-01", tmp_path / "a.mhtml")
    assert done.code == 0 and arcs(archive, HOST) == {"x"}


def records(raw: bytes, path: Path) -> tuple[dict[str, bytes], Report]:
    path.write_bytes(raw)
    report, bodies = Report(), dict[str, bytes]()
    for run in parts_of(path, "x", report, lambda _: None, Stated()):
        for record in run.records:
            bodies[record.fields["warc-target-uri"]] = record.read(1 << 30)
    return bodies, report


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large part costs itself; sheets that import each other end; a file that is cut off says so."""
    monkeypatch.setattr(saved_pages, "MOST_BYTES", 10_000)
    page = part("https://a.example/", b'<link rel=stylesheet href="cid:a@x">')
    sheets = [
        part("", b'@import "cid:b@x"; @import "cid:b@x";', "text/css", Content_ID="<a@x>"),
        part("", b'@import "cid:a@x"; @import "cid:a@x";', "text/css", Content_ID="<b@x>"),
    ]
    big = part("https://a.example/big", b"x" * 20_000, "text/plain", "binary")
    raw = mhtml_of([page, *sheets, big])
    bodies, report = records(raw, tmp_path / "a.mhtml")
    assert set(bodies) == {"https://a.example/"} and len(bodies["https://a.example/"]) < 10_000
    assert "a part of more than" in "".join(report.losses.lines())
    _, cut = records(raw[:-20_050], tmp_path / "b.mhtml")
    assert "may be cut off" in "".join(cut.losses.lines())


def test_references_grow_within_bounds(tmp_path: Path) -> None:
    """A short name of a part with a long address, thousands of times."""
    long = f"https://a.example/{'x' * 60_000}"
    raw = mhtml_of([part("https://a.example/", b"cid:x\n" * 3_000), part(long, b"x", "text/plain", Content_ID="<x>")])
    bodies, report = records(raw, tmp_path / "a.mhtml")
    assert len(bodies["https://a.example/"]) < 65 << 20
    assert "parts that are too large stay" in "".join(report.remarks.lines())


def test_a_reference_to_a_part_with_a_relative_address_becomes_that_address(tmp_path: Path) -> None:
    page = part("https://a.example/dir/", b'<img src="cid:i@x">')
    bodies, _ = records(
        mhtml_of([page, part("i.png", PIXEL, "image/png", "base64", Content_ID="<i@x>")]), tmp_path / "a"
    )
    assert bodies["https://a.example/dir/"].startswith(b'<img src="https://a.example/dir/i.png">')
    assert bodies["https://a.example/dir/i.png"] == PIXEL


def inner(boundary: str, *inner_parts: bytes) -> bytes:
    """A part with parts."""
    lines = b"".join(f"\r\n--{boundary}\r\n".encode() + raw for raw in inner_parts)
    return (
        f"Content-Type: multipart/alternative; boundary={boundary}\r\n\r\n".encode()
        + lines
        + f"\r\n--{boundary}--\r\n".encode()
    )


def test_parts_are_counted_over_all_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_pages, "MOST_PARTS", 5)
    some = [part(f"https://a.example/{number}", b"x", "text/plain") for number in range(8)]
    bodies, report = records(mhtml_of([inner("a", *some[:4]), inner("b", *some[4:])]), tmp_path / "a.mhtml")
    assert len(bodies) == 4 and "parts beyond the first 5" in "".join(report.losses.lines())


def test_a_part_without_a_boundary_loses_its_parts_and_it_is_said(tmp_path: Path) -> None:
    lost = b"Content-Type: multipart/alternative\r\n\r\n--x\r\n\r\ninner\r\n--x--\r\n"
    bodies, report = records(mhtml_of([part("https://a.example/", b"x"), lost]), tmp_path / "a.mhtml")
    assert set(bodies) == {"https://a.example/"} and "what is between them" in "".join(report.losses.lines())


def test_fields_of_a_part_end_with_the_part(tmp_path: Path) -> None:
    """Fields without an empty line behind them take none of the next part."""
    cut = b"Content-Type: text/plain"
    after = part("https://a.example/after", b"x", "text/plain")
    bodies, _ = records(mhtml_of([part("https://a.example/", b"x"), cut, after]), tmp_path / "a.mhtml")
    assert set(bodies) == {"https://a.example/", "https://a.example/after"}
    assert bodies["https://a.example/after"] == b"x"


def test_a_page_without_an_address_is_a_loss_with_the_remedy(tmp_path: Path) -> None:
    raw = mhtml_of([part("", b"<p>x"), part("https://a.example/i.png", PIXEL, "image/png", "base64")])
    bodies, report = records(raw, tmp_path / "a.mhtml")
    assert set(bodies) == {"https://a.example/i.png"} and "--base URL says it" in "".join(report.losses.lines())


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_mhtml_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever was changed in it."""
    raw = bytearray(
        mhtml_of([part("https://a.example/", b'<a href="cid:x">'), part("x", PIXEL, "image/png", "base64")])
    )
    for offset in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=6)):
        raw[offset] = data.draw(st.integers(0, 255))
    try:
        records(bytes(raw), tmp_path / "a.mhtml")
    except WebarcError as error:
        assert "\n" not in str(error)


@browsers.needs_chromium()
def test_a_page_that_chromium_saved(archive: Archive, site: Site, tmp_path: Path) -> None:
    """By CDP's Page.captureSnapshot, as "Save as: webpage, single file" writes it."""
    site.add_html(
        "/", '<link rel=stylesheet href="/s.css"><style>h1 { color: red }</style><h1>Überschrift</h1>'
        '<img src="/i.png"><iframe src="/frame.html"></iframe>', "Größe",
    )  # fmt: skip
    site.add_html("/frame.html", "<p>inner")
    site.add("/s.css", b"h1 { background: url(/i.png) }", "text/css")
    site.add("/i.png", browsers_pixel(), "image/png")
    with browsers.chromium(tmp_path) as browser:
        tab = browser.new_page()
        tab.goto(site.url("/"))
        session = tab.context.new_cdp_session(tab)
        saved = session.send("Page.captureSnapshot", {"format": "mhtml"})["data"]
    (tmp_path / "page.mhtml").write_bytes(saved.encode())
    imported(archive, tmp_path / "page.mhtml")
    assert {"index.html", "s.css", "i.png", "frame.html"} <= arcs(archive, site.host)
    described = meta(archive, site.host, "index.html")
    assert (described.url, described.source, described.title) == (site.url("/"), "MHTML", "Größe")
    page = read(archive, site.host, "index.html")
    assert b"cid:" not in page and site.url("/frame.html").encode() in page


def browsers_pixel() -> bytes:
    """A picture that a browser shows."""
    return base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
