"""The answers to requests of other methods in imported WARC files, and on their way through exports."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import pytest
from warcio.archiveiterator import ArchiveIterator

from agent.crawl import crawl_log
from agent.importing import warcfile
from tests.support import archives, warcs
from tests.support.imports import command, import_files
from tests.support.readercommand import webarc
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import arc_path, data_name, split
from webarcfs.archive.model.metadata import MetaData
from webarcfs.warc.http_response import base32
from webarcfs.warc.request_key import LONGEST_BODY, RequestKey, key_of

pytestmark = pytest.mark.crawl

HOST = "site.example"
API = f"https://{HOST}/api"
FORM, JSON, TEXT = "application/x-www-form-urlencoded", "application/json", "text/plain;charset=UTF-8"
_numbers = iter(range(1, 10_000))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return archives.make_archive(tmp_path / "archive")


def url_of(method: str, url: str, kind: str, body: bytes) -> str:
    key = key_of(method, url, kind, body)
    assert isinstance(key, RequestKey)
    return key.url


def urn() -> str:
    return f"<urn:uuid:00000000-0000-4000-8000-{next(_numbers):012}>"


def named(kind: str, uri: str, block: bytes, date: str, fields: Mapping[str, str]) -> bytes:
    """A record as Browsertrix writes it (warcio.js), WARC/1.1, times with milliseconds."""
    head = {
        "WARC-Type": kind, "WARC-Target-URI": uri, "WARC-Date": date, **fields,
        "Content-Type": f"application/http; msgtype={kind}", "Content-Length": str(len(block)),
    }  # fmt: skip
    return warcs.raw_record(head, block, "1.1")


def exchange(
    method: str, uri: str, body: bytes, answer: bytes, *, kind: str = JSON, second: int = 0, before: bool = False,
    status: str = "200 OK", mime: str = JSON, lines: str = "",
) -> bytes:  # fmt: skip
    """A response and its request, whose WARC-Concurrent-To names it; `before`: the request first, as wget does."""
    date, own = f"2025-06-01T12:00:{second:02}.123Z", urn()
    path = uri.partition("://")[2].partition("/")[2]
    fields = (
        f"Host: {HOST}\r\nContent-Type: {kind}\r\nCookie: secret=1\r\n{lines}" if kind else f"Host: {HOST}\r\n{lines}"
    )
    asked = f"{method} /{path} HTTP/1.1\r\n{fields}\r\n".encode() + body
    request = named("request", uri, asked, date, {"WARC-Record-ID": urn(), "WARC-Concurrent-To": own})
    response = named("response", uri, warcs.http(answer, mime, status), date, {"WARC-Record-ID": own})
    return request + response if before else response + request


def document(archive: Archive, key: str) -> tuple[MetaData, bytes] | None:
    """What the newest snapshot has at a URL."""
    domain, arc = split(arc_path(key))
    store = Repository(archive.repository(domain))
    main = store.ref("refs/heads/main")
    assert main is not None
    tree = store.commit(main).tree
    entry, body = store.find(tree, f"{arc}/data.xml"), store.find(tree, f"{arc}/{data_name(key)}")
    if entry is None or body is None:
        return None
    return data_xml.metadata(store.read(entry.oid)), store.read(body.oid)


_REQUESTS = (
    ("POST", JSON, b'{"q":"alpha"}', f"{API}?__wb_method=POST&q=alpha", "application/json"),
    ("POST", JSON, b'{"q":"beta"}', f"{API}?__wb_method=POST&q=beta", "application/json"),
    ("POST", FORM, b"q=gamma&csrf_token=17", f"{API}?__wb_method=POST&q=gamma", FORM),
    ("PUT", TEXT, b"words", f"{API}?__wb_method=PUT&__wb_post_data=d29yZHM=", "text/plain"),
    ("PATCH", JSON, b'{"a":[1,2]}', f"{API}?__wb_method=PATCH&a=1&a.2_=2", "application/json"),
    ("DELETE", "", b"", f"{API}?__wb_method=DELETE", ""),
)


def recorded(path: Path, *, before: bool = False, how: str = "gzip") -> Path:
    """A file with a page, and the answers to all of `_REQUESTS` at one URL."""
    page = exchange("GET", API, b"", b"the page", kind="", mime="text/html")
    answers = [
        exchange(method, API, body, f"answer {number}".encode(), kind=kind, second=number, before=before)
        for number, (method, kind, body, _, _) in enumerate(_REQUESTS)
    ]
    return warcs.write(path, [page, *answers], how)


def check(archive: Archive) -> None:
    for number, (method, _, _, key, kind) in enumerate(_REQUESTS):
        held = document(archive, key)
        assert held is not None, key
        meta, body = held
        assert (meta.url, meta.method, meta.request_type) == (key, method, kind)
        assert body == f"answer {number}".encode()
    page = document(archive, API)
    assert page is not None and page[1] == b"the page" and (page[0].method, page[0].request_type) == ("", "")


@pytest.mark.parametrize("before", [False, True])
def test_each_answer_is_archived_under_the_key_of_its_request(archive: Archive, tmp_path: Path, before: bool) -> None:
    """S-post-1, S-post-2 and S-post-3. The GET of the same URL stays what it is."""
    result = import_files(archive, recorded(tmp_path / "posts.warc.gz", before=before))
    assert result.outcome is not None and result.outcome.warnings == ()
    check(archive)
    with crawl_log.reading(archive.reports / result.outcome.job) as lines:
        notes = {line.split()[3]: line.split()[11] for line in lines}
    assert "by-post:POST:application/json" in notes[_REQUESTS[0][3]].split(",")
    assert "by-post" not in notes[API]
    assert b"secret=1" not in b"".join(path.read_bytes() for path in (archive.reports / result.outcome.job).iterdir())


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (("POST", "multipart/form-data; boundary=x", b"--x"), "no-key:multipart"),
        (("POST", "application/octet-stream", b"\x01"), "no-key:binary"),
        (("PUT", JSON, b'"' + b"x" * LONGEST_BODY + b'"'), "no-key:long"),
        (("OPTIONS", "", b""), "method"), (("HEAD", "", b""), "method"), (("PROPFIND", TEXT, b"x"), "method"),
    ],
)  # fmt: skip
def test_what_has_no_key_is_a_loss_with_its_word(tmp_path: Path, asked: tuple[str, str, bytes], word: str) -> None:
    """S-post-3."""
    for before in (False, True):
        _lost(tmp_path / str(before), asked, word, before=before)


def _lost(folder: Path, asked: tuple[str, str, bytes], word: str, *, before: bool) -> None:
    archive, (method, kind, body) = archives.make_archive(folder), asked
    page = exchange("GET", API, b"", b"the page", kind="", mime="text/html")
    other = exchange(method, API, body, b"another", kind=kind, second=9, before=before)
    result = import_files(archive, warcs.write(folder / "a.warc", [page, other]))
    assert result.outcome is not None
    assert ["other methods" in line for line in result.outcome.warnings] == [True]
    held = document(archive, API)
    assert held is not None and held[1] == b"the page"
    with crawl_log.reading(archive.reports / result.outcome.job) as lines:
        assert sum(word in line.split()[11].split(",") for line in lines) == 1


def test_a_body_in_chunks_or_packed_has_the_key_of_what_it_is(archive: Archive, tmp_path: Path) -> None:
    chunked = exchange(
        "POST", API, b"4\r\nq=al\r\n3\r\npha\r\n0\r\n\r\n", b"one", kind=FORM, lines="Transfer-Encoding: chunked\r\n"
    )
    packed = exchange(
        "POST", API, gzip.compress(b"q=beta"), b"two", kind=FORM, second=1, lines="Content-Encoding: gzip\r\n"
    )
    bomb = exchange(
        "POST", API, gzip.compress(bytes(50_000_000)), b"three", kind=TEXT, second=2, lines="Content-Encoding: gzip\r\n"
    )
    result = import_files(archive, warcs.write(tmp_path / "a.warc", [chunked, packed, bomb]))
    for query, body in (("q=alpha", b"one"), ("q=beta", b"two")):
        held = document(archive, f"{API}?__wb_method=POST&{query}")
        assert held is not None and held[1] == body
    assert result.outcome is not None and len(result.outcome.warnings) == 1


def test_a_revisit_of_an_answer_is_one_of_its_key(archive: Archive, tmp_path: Path) -> None:
    """S-post-3. Its request follows, too; two requests with equal answers have a document each."""
    answer = b'{"ok": true}'
    first = exchange("POST", API, b'{"q":"alpha"}', answer)
    date, own = "2025-06-01T12:00:09.001Z", urn()
    digest = f"sha1:{base32(hashlib.sha1(answer, usedforsecurity=False).digest())}"
    revisit = named(
        "revisit", API, warcs.http(b"", JSON), date,
        {"WARC-Record-ID": own, "WARC-Payload-Digest": digest, "WARC-Refers-To-Target-URI": API,
         "WARC-Refers-To-Date": "2025-06-01T12:00:00Z",
         "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"},
    )  # fmt: skip
    asked = f"POST /api HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {JSON}\r\n\r\n".encode() + b'{"q":"beta"}'
    request = named("request", API, asked, date, {"WARC-Record-ID": urn(), "WARC-Concurrent-To": own})
    result = import_files(archive, warcs.write(tmp_path / "a.warc", [first, revisit, request]))
    assert result.outcome is not None and result.outcome.warnings == ()
    for word in ("alpha", "beta"):
        held = document(archive, f"{API}?__wb_method=POST&q={word}")
        assert held is not None and held[1] == answer and held[0].method == "POST"
    assert document(archive, API) is None


def test_a_redirect_that_answers_a_post_is_one_of_its_key(archive: Archive, tmp_path: Path) -> None:
    sent = warcs.record("response", f"https://{HOST}/done", warcs.http(b"done")) + exchange(
        "POST", API, b"q=1", b"Location: /x", kind=FORM, status="303 See Other", mime="a/b\r\nLocation: /done", second=3
    )
    result = import_files(archive, warcs.write(tmp_path / "a.warc", [sent]))
    assert result.outcome is not None and result.outcome.warnings == ()
    with crawl_log.reading(archive.reports / result.outcome.job) as lines:
        urls = [line.split()[3] for line in lines if line.split()[1] == "303"]
    assert urls == [f"{API}?__wb_method=POST&q=1"]


def test_requests_without_their_answers_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is too much, the keys go first: an answer to a POST is never taken for a page."""
    monkeypatch.setattr(warcfile, "_MOST_BYTES", 1_000)
    monkeypatch.setattr(warcfile, "_MOST_REQUESTS", 100)
    requests = warcfile.AskedRequests()

    def of(number: int) -> warcfile.Exchange:
        return warcfile.Exchange(f"r{number}", f"a{number}", API, "")

    for number in range(150):
        key = key_of("POST", API, FORM, b"q=%d" % number)
        requests.add(warcfile.AskedRequest(of(number), key))
    taken = [requests.take(warcfile.Exchange(f"a{number}", "", API, "")) for number in range(150)]
    assert taken[:50] == [None] * 50
    kinds = [type(each).__name__ for each in taken[50:]]
    assert kinds == sorted(kinds) and kinds[0] == "KeyFault" and kinds[-1] == "RequestKey"
    assert 1_000 >= sum(len(each.url) for each in taken if isinstance(each, warcfile.RequestKey)) > 800


# == exports ==========================================================================================================


def requests_in(data: BinaryIO) -> list[tuple[str, bytes, str, str]]:
    """Method, body, type and URL of each request record, which follows the response that it names."""
    found, last = [], ""
    for record in ArchiveIterator(data):
        if record.rec_type == "request":
            assert record.rec_headers.get_header("WARC-Concurrent-To") == last
            head = record.http_headers
            url = record.rec_headers.get_header("WARC-Target-URI")
            found.append((head.protocol, record.content_stream().read(), head.get_header("Content-Type") or "", url))
        last = record.rec_headers.get_header("WARC-Record-ID")
    return sorted(found)


_TOLD = sorted([
    ("POST", b'{"q": "alpha"}', "application/json", API), ("POST", b'{"q": "beta"}', "application/json", API),
    ("POST", b"q=gamma", FORM, API), ("PUT", b"words", "text/plain", API),
    ("PATCH", b'{"a": "1", "a.2_": "2"}', "application/json", API), ("DELETE", b"", "", API),
])  # fmt: skip


def exported(archive: Archive, out: Path, *options: str) -> Path:
    done = webarc("export", "--archive", str(archive.root), *options, str(out))
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("name", ["out.warc", "out.wacz"])
def test_what_is_exported_is_imported_again(archive: Archive, tmp_path: Path, name: str) -> None:
    """S-post-4. A request record says what the key tells; other programs find the same key."""
    import_files(archive, recorded(tmp_path / "posts.warc.gz"))
    out = exported(archive, tmp_path / name, *(["--format", "wacz"] if name.endswith("wacz") else []))
    if name.endswith("wacz"):
        with zipfile.ZipFile(out) as package:
            (inner,) = [each for each in package.namelist() if each.endswith(".warc.gz")]
            assert requests_in(io.BytesIO(package.read(inner))) == _TOLD
            pages = package.read("pages/pages.jsonl").decode()
            assert "__wb_method" not in pages and API in pages
    else:
        with out.open("rb") as file:
            assert requests_in(file) == _TOLD
    other = archives.make_archive(tmp_path / "other")
    result = import_files(other, out)
    assert result.outcome is not None and result.outcome.warnings == ()
    check(other)


def test_an_export_is_imported_object_for_object(archive: Archive, tmp_path: Path) -> None:
    """S-post-4. Also where a key was cut, or lost its tokens, and where a second crawl met the answers again."""
    long = json.dumps({"query": "x" * 9_000, "csrf": "1"}).encode()
    first = [exchange("POST", API, long, b"long"), exchange("POST", API, b"q=1", b"one", kind=FORM, second=1)]
    import_files(archive, warcs.write(tmp_path / "a.warc", first), name="site")
    again = [each.replace(b"2025-06-01T12", b"2025-07-01T12") for each in first]
    import_files(archive, warcs.write(tmp_path / "b.warc", again), name="site")
    out = exported(archive, tmp_path / "out.warc")
    other = archives.make_archive(tmp_path / "other")
    done = command("import", "--archive", other.root, "--as-exported", out)
    assert done.code == 0, done.err
    stores = [Repository(each.repository(HOST)) for each in (archive, other)]
    trees = [{name: store.commit(oid).tree for name, oid in store.refs("refs/crawls/").items()} for store in stores]
    assert trees[0] == trees[1] and len(trees[0]) == 2
    plain = archives.make_archive(tmp_path / "plain")
    result = import_files(plain, out)
    assert result.outcome is not None and result.outcome.warnings == ()
    for kept, body in ((url_of("POST", API, JSON, long), b"long"), (f"{API}?__wb_method=POST&q=1", b"one")):
        held = document(plain, kept)
        assert held is not None and held[1] == body


def test_an_index_finds_an_answer_by_the_key_of_the_field(archive: Archive, tmp_path: Path) -> None:
    """S-post-4. As cdxj-indexer writes it: the key has method and body, `url` has not."""
    import_files(archive, recorded(tmp_path / "posts.warc.gz"))
    alone = exported(archive, tmp_path / "alone.cdxj", "--format", "cdxj").read_bytes()
    exported(archive, tmp_path / "files")
    beside = exported(archive, tmp_path / "files" / "index.cdxj", "--format", "cdxj").read_bytes()
    for lines in (alone, beside):
        rows = [line.split(" ", 2) for line in lines.decode().splitlines()]
        said = {key: json.loads(rest) for key, _, rest in rows}
        alpha = said["example,site)/api?__wb_method=post&q=alpha"]
        assert (alpha["url"], alpha["method"], alpha["requestBody"]) == (API, "POST", "q=alpha")
        assert "method" not in said["example,site)/api"]
        assert len(said) == 1 + len(_REQUESTS)
