"""`import` of HAR, the log of a browser's network panel: responses with heads, bodies that are missing, and bounds."""

from __future__ import annotations

import base64
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.importing import har
from agent.importing.foreign import Report, Stated
from tests.support import browsers, warcs
from tests.support.crawls import arcs, log_lines, meta, read, read_file
from tests.support.foreignfiles import har_entry, write_har
from tests.support.imports import command, import_files, imported
from tests.support.properties import examples
from tests.support.readercommand import webarc
from tests.support.site import Site, redirect
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model.metadata import format_time
from webarcfs.archive.model.url_lists import place_of

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(64)


def test_entries_are_responses_with_their_heads(archive: Archive, tmp_path: Path) -> None:
    """Bodies of both kinds, at their own times; the head has no cookie, and no field of the bytes as they were sent."""
    head = {
        ":status": "200", "content-type": "text/html; charset=iso-8859-1", "content-encoding": "br",
        "Content-Length": "7", "set-cookie": "session=secret", "X-Own": "a\r\nInjected: b", "date": "Tue, 05 Mar 2024",
    }  # fmt: skip
    file = write_har(
        tmp_path / "a.har",
        har_entry("https://www.example.org/", "<title>Größe</title>", headers=head, size=20),
        har_entry(
            "https://www.example.org/i.png", base64.b64encode(PIXEL).decode(), is_base64=True, size=len(PIXEL),
            headers={"Content-Type": "image/png"},
        ),
        har_entry("https://www.example.org/u", "日本", headers={"Content-Type": "text/html; charset=iso-8859-1"}),
        har_entry("https://www.example.org/gone", "no", status=404),
        har_entry("data:text/plain,x", "x"),
        har_entry("chrome-extension://abc/x.js", "x"),
        har_entry("https://www.example.org/failed", None, status=0),
    )  # fmt: skip
    done = command("import", "--archive", archive.root, file)
    assert done.code == 0, done.err
    assert arcs(archive, HOST) == {"index.html", "i.png", "u"}
    described = meta(archive, HOST, "index.html")
    assert (described.source, described.title, format_time(described.capture_time)) == (
        "HAR",
        "Größe",
        "2024-03-05T12:34:56",
    )
    assert read(archive, HOST, "index.html") == "<title>Größe</title>".encode("latin-1")
    assert read(archive, HOST, "i.png") == PIXEL
    assert (
        read(archive, HOST, "u").decode(),
        b"charset=utf-8" in (read_file(archive, HOST, "u/headers.http") or b""),
    ) == (
        "日本",
        True,
    )
    kept = (read_file(archive, HOST, "index.html/headers.http") or b"").decode("latin-1").lower()
    assert "secret" not in kept and "content-encoding" not in kept and "\r\ninjected" not in kept and "x-own: a" in kept
    assert "Set-Cookie are left out" in done.err and "requests without a response are skipped" in done.err
    out = webarc("export", "--archive", str(archive.root), str(tmp_path / "out.warc"))
    assert out.returncode == 0
    raw = (tmp_path / "out.warc").read_bytes()
    assert (raw.count(b"WARC-Type: response"), raw.count(b"Webarcfs-Source: HAR")) == (3, 3)


def test_missing_bodies_are_counted_and_said(archive: Archive, tmp_path: Path) -> None:
    """Those that the browser left out, and those that it cut; so are answers to POST, and entries without a time."""
    file = write_har(
        tmp_path / "a.har",
        har_entry("https://www.example.org/a", None, size=100),
        har_entry("https://www.example.org/b", "cut", size=100),
        har_entry("https://www.example.org/umlauts", "<p>größer", size=100),
        har_entry("https://www.example.org/c", base64.b64encode(b"cut").decode(), is_base64=True, size=100),
        har_entry("https://www.example.org/empty", None, headers={"Content-Length": "0", "Content-Type": "text/html"}),
        har_entry("https://www.example.org/post", "x", method="POST"),
        har_entry("https://www.example.org/when", "x", when="yesterday"),
        {"request": []},
        "nothing",
    )
    result = import_files(archive, file)
    assert result.outcome is not None and arcs(archive, HOST) == {"empty"}
    warnings = "\n".join(result.outcome.warnings)
    assert "whose body is not in the HAR, or only a part of it, 4 times" in warnings
    assert "other methods than GET" in warnings and "--captured TIME" in warnings and "no response, 2 times" in warnings
    assert "no-body" in log_lines(archive, result.outcome)["https://www.example.org/a"].notes
    done = command("import", "--archive", archive.root, "--again", "--captured", "2025-01-01", file)
    assert done.code == 3 and "when" in arcs(archive, HOST)


def test_a_redirect_of_a_har_ends_no_response(archive: Archive, tmp_path: Path) -> None:
    """Neither a page nor another redirect; where there is none, it is kept."""
    sent = [
        warcs.response("http://www.example.org/page", b"<p>sent", "2019-01-01T00:00:00Z"),
        warcs.record(
            "response", "http://www.example.org/moved",
            warcs.http(b"", status="301 Moved", Location="http://www.example.org/there"), "2019-01-01T00:00:00Z",
        ),
    ]  # fmt: skip
    import_files(archive, warcs.write(tmp_path / "a.warc", sent))
    login = {"Location": "http://www.example.org/login"}
    file = write_har(
        tmp_path / "a.har",
        *(
            har_entry(f"http://www.example.org/{name}", "", status=302, headers=login)
            for name in ("page", "moved", "new")
        ),
        har_entry("http://www.example.org/login", "<p>log in"),
    )  # fmt: skip
    imported(archive, file)
    assert read(archive, HOST, "page") == b"<p>sent" and "login" in arcs(archive, HOST)
    store = Repository(archive.repository(HOST))
    head = store.head()
    assert head is not None
    lines = {
        redirect.url.rpartition("/")[2]: redirect.target.rpartition("/")[2]
        for name in ("page", "moved", "new")
        for place in [place_of(f"http://www.example.org/{name}")]
        for redirect in redirect_lists.lines(store, store.find(head.tree, place), place)
    }
    assert lines == {"moved": "there", "new": "login"}


# == reading ===========================================================================================================


def urls_of(file: Any) -> tuple[list[str], list[str]]:
    report = Report()
    urls = [
        record.fields["warc-target-uri"]
        for run in har.parts(file, "a.har", report, Stated())
        for record in run.records
    ]  # fmt: skip
    return urls, report.losses.lines()


def test_an_entry_that_is_too_large_costs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is skipped and counted; quotes, backslashes and brackets in it end nothing."""
    monkeypatch.setattr(har, "MOST_CHARACTERS", 1 << 20)
    large = har_entry("https://a.example/large", 'x"\\]}{[' * 400_000)
    file = write_har(tmp_path / "a.har", har_entry("https://a.example/1"), large, har_entry("https://a.example/2"))
    with file.open("rb") as opened:
        urls, losses = urls_of(opened)
    assert urls == ["https://a.example/1", "https://a.example/2"] and "is not read: entry 2" in losses[0]


class Endless(io.RawIOBase):
    """A HAR of many entries, which is nowhere as a whole."""

    def __init__(self, entries: int) -> None:
        one = json.dumps(har_entry("https://a.example/", "x" * 1_000_000))
        self._pieces = (
            piece.encode()
            for piece in (
                '{"log": {"comment": "',
                "c" * 3_000_000,
                '", "entries": [',
                *([f"{one},"] * entries),
                one,
                "]}}",
            )
        )
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while not self._rest and (piece := next(self._pieces, b"")):
            self._rest = piece
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def test_memory_does_not_grow_with_the_file() -> None:
    """A HAR of 200 MB needs what its largest entry needs."""
    tracemalloc.start()
    urls, losses = urls_of(Endless(200))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(urls), losses) == (201, []) and most < 24 << 20


@pytest.mark.parametrize(
    "raw",
    [
        b'{"log": {"entries": [', b'{"log": {"entries": [{"request"', b'{"log": {"entries": 5}}',
        b'{"log": {"entries": [1 2]}}',
        b'{"log": {"a": ' + b"[" * 100_000, b'{"log": {"entries": [' + b"[" * 100_000,
        b'{"log": {"a" 5}}', b'{"log": {5: 5}}', b'{"log": {"a": ' + b"9" * 2_000_000,
        b'{"log": {"entries": [' + b"9" * 10_000 + b"]}}", b'{"log": {"entries": [{}], "x": "\xff"}',
    ],
)  # fmt: skip
def test_what_is_no_json_is_a_loss(raw: bytes) -> None:
    urls, losses = urls_of(io.BytesIO(raw))
    assert not urls and losses and "\n" not in "".join(losses)


def test_what_came_before_the_damage_is_taken() -> None:
    whole = json.dumps(har_entry("https://a.example/1")).encode()
    urls, losses = urls_of(io.BytesIO(b'{"log": {"entries": [' + whole + b', {"request"'))
    assert urls == ["https://a.example/1"] and "the rest of the HAR" in losses[0]


@pytest.mark.parametrize(
    ("text", "kind", "size", "body", "kind_after"),
    [
        ("<p>größer", "text/html; charset=utf-8", 100, None, b"text/html; charset=utf-8"),
        ("<p>größer", "text/html; charset=iso-8859-1", 9, "<p>größer".encode("latin-1"), b"charset=iso-8859-1"),
        ("<p>größer", "text/html; charset=iso-8859-1", 11, "<p>größer".encode("latin-1"), b"charset=iso-8859-1"),
        ("<p>x", "text/html; charset=utf-16le", 8, "<p>x".encode("utf-16le"), b"text/html; charset=utf-16le"),
        ("<p>x", "text/html; charset=utf-16le", 100, None, b"text/html; charset=utf-16le"),
        ("<p>x", "text/html; charset=no-such", 4, b"<p>x", b"text/html; charset=no-such"),
        ("日本", "text/plain", 6, "日本".encode(), b"text/plain; charset=utf-8"),
        ("日本", "text/plain; charset=latin1", 6, "日本".encode(), b"text/plain; charset=utf-8"),
        ("日本", "x-unknown", 6, "日本".encode(), None),
        ("日本", "", 6, "日本".encode(), None),
    ],
)
def test_text_is_encoded_as_it_was_sent(
    text: str, kind: str, size: int, body: bytes | None, kind_after: bytes | None
) -> None:
    """A size that the text has in no coding shows that the log has only a part of it."""
    read = har.entry_of(har_entry("https://a.example/", text, headers={"Content-Type": kind}, size=size))
    assert read is not None and read.body == body
    fields = dict(line.split(b": ", 1) for line in read.head.split(b"\r\n")[1:] if line)
    assert fields.get(b"Content-Type", b"").endswith(kind_after or b"") and (b"Content-Type" in fields) is (
        kind_after is not None
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(JSON, max_size=5), st.integers(1, 40), st.booleans())
def test_it_reads_what_json_reads(more: dict[str, Any], values: list[Any], chunk: int, is_ascii: bool) -> None:
    """In pieces of any size."""
    raw = json.dumps(more | {"entries": values}, ensure_ascii=is_ascii).encode("utf-8", "replace")
    expected = json.loads(raw)
    original, har._CHUNK = har._CHUNK, chunk
    try:
        reader, seen = har.JsonReader(io.BytesIO(raw), "x"), dict[str, Any]()
        for key in reader.members():
            if key == "entries":
                seen[key] = [reader.value() for _ in reader.elements()]
            elif len(key) % 2:
                reader.skip()
                seen[key] = expected[key]
            else:
                seen[key] = reader.value()
        assert seen == expected
    finally:
        har._CHUNK = original


@given(JSON)
def test_any_entry_is_a_response_or_none(value: Any) -> None:
    assert har.entry_of(value) is None
    strange = {"request": {"url": "https://a.example/", "method": value}, "response": {"status": 200, "content": value}}
    strange["response"]["headers"] = [value, {"name": value, "value": value}]
    har_entry = har.entry_of(strange)
    assert har_entry is not None and har_entry.head.startswith(b"HTTP/1.1 200")


@browsers.needs_chromium()
def test_a_har_that_a_browser_recorded(archive: Archive, site: Site, tmp_path: Path) -> None:
    """By playwright's recorder of Chromium's network, with bodies."""
    site.add_html("/", '<link rel=stylesheet href="/s.css"><img src="/i.png"><a href="/x">x</a>', "Größe")
    site.add("/latin", "<title>Größe</title>".encode("latin-1"), "text/html; charset=iso-8859-1")
    site.add("/s.css", b"p { color: red }", "text/css")
    site.add("/i.png", PIXEL, "image/png")
    site.add_nasty("/moved", redirect("/latin"))
    with browsers.chromium(tmp_path) as browser:
        context = browser.new_context(record_har_path=tmp_path / "a.har", record_har_content="embed")
        tab = context.new_page()
        tab.goto(site.url("/"), wait_until="networkidle")  # a body that is still on its way is not in the HAR
        tab.goto(site.url("/moved"), wait_until="networkidle")
        context.close()
    imported(archive, tmp_path / "a.har")
    assert {"index.html", "s.css", "i.png", "latin"} <= arcs(archive, site.host)
    assert read(archive, site.host, "i.png") == PIXEL and meta(archive, site.host, "latin").title == "Größe"
    assert meta(archive, site.host, "index.html").source == "HAR"
