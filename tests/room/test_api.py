"""The API of the reading room: rows, documents and files for programs, as `WebarchiveClient` has them."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.client import IncompleteRead
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from agent.indexing import fulltext
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Answer, Page, Served, published, served
from tests.support.sources import ROOT
from webarcfs.api.answers import DOCUMENT_COLUMNS
from webarcfs.api.routes import PREFIX
from webarcfs.archive.catalogue.record import read_record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.links import AskedKind, FoundLink, Question
from webarcfs.archive.model.metadata import CET, CommitTag, MetaData, format_time
from webarcfs.client import WebarchiveClient
from webarcfs.web import limits

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
FIRST = datetime(2021, 3, 1, 12, tzinfo=CET)
SECOND = FIRST + timedelta(days=10)
TAGS = [CommitTag(FIRST, DOMAIN), CommitTag(SECOND, DOMAIN)]
LARGE = b"0123456789abcdef" * 400_000
ODD = f"http://{DOMAIN}/100%25/a%3Fb.html"
PAGES: dict[str, Page | None] = {
    f"http://{DOMAIN}/": Page(b"<p>home", title="Hom\u00e9"),
    f"http://{DOMAIN}/a.html": Page(b"<p>a"),
    f"http://{DOMAIN}/links.html": Page(b"<a href='http://elsewhere.example/'>else</a><a href='/a.html'>a</a>"),
    f"http://{DOMAIN}/a/b.html": Page(b"<p>b"),
    f"http://{DOMAIN}/large.bin": Page(LARGE, "application/octet-stream"),
    ODD: Page(b"<p>odd"),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    archive = archives.make_archive(tmp_path_factory.mktemp("api"))
    published(archive, DOMAIN, PAGES, FIRST)
    published(archive, DOMAIN, {f"http://{DOMAIN}/a.html": Page(b"<p>another")}, SECOND)
    published(
        archive, "other.example.org", {"http://other.example.org/": Page(b"<p>other")}, FIRST, state=None, held=False
    )
    recover(archive)
    fulltext.bring_in_step(archive)
    return archive


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as room:
        yield room


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[WebarchiveClient]:
    with WebarchiveClient(archive.root, reader="") as client:
        yield client


def rows_of(answer: Answer) -> list[MetaData]:
    """The documents of an answer in lines, whose last one says that it came whole."""
    assert answer.status == 200 and answer.headers["content-type"] == "application/x-ndjson"
    columns, *rows, end = [json.loads(line) for line in answer.body.splitlines()]
    assert tuple(columns) == DOCUMENT_COLUMNS and end == {"end": True, "rows": len(rows)}
    return [MetaData.from_fields(dict(zip(columns, row, strict=True))) for row in rows]


def place_of(document: MetaData) -> str:
    return f"{document.commit_tag}/{quote(document.path.removeprefix(f'/{document.domain}/'))}"


def problem_of(answer: Answer) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = json.loads(answer.body)
    assert problem["status"] == answer.status
    return problem


def test_what_the_server_is(room: Served) -> None:
    about = json.loads(room.get(f"{PREFIX}/").body)
    assert about["person"] == "" and about["format"] == 3 and "read" in about["can"]


def test_domains_and_snapshots_are_those_of_the_client(room: Served, client: WebarchiveClient) -> None:
    domains = json.loads(room.get(f"{PREFIX}/domains").body)
    assert domains == client.domains() == ["other.example.org", DOMAIN]
    for domain in domains:
        tags = json.loads(room.get(f"{PREFIX}/domains/{domain}/snapshots").body)
        assert tags == [str(tag) for tag in client.snapshots(domain)]


@pytest.mark.parametrize("tag", TAGS)
def test_documents_are_those_of_the_client(room: Served, client: WebarchiveClient, tag: CommitTag) -> None:
    assert rows_of(room.get(f"{PREFIX}/snapshots/{tag}/documents")) == list(client.at(tag))
    assert rows_of(room.get(f"{PREFIX}/snapshots/{tag}/changed")) == list(client.changed(tag))


def test_documents_go_on_after_any_of_them(room: Served, client: WebarchiveClient) -> None:
    documents = list(client.at(TAGS[0]))
    for number, document in enumerate(documents, 1):
        path = f"{PREFIX}/snapshots/{TAGS[0]}/documents?after={quote(document.path, safe='')}"
        assert rows_of(room.get(path)) == documents[number:]
    assert room.get(f"{PREFIX}/snapshots/{TAGS[0]}/documents?after=/none").status == 404


@pytest.mark.parametrize(
    ("where", "order_by", "limit"),
    [("", "", None), ("mimeType = 'text/html'", "url DESC", 2), ("title LIKE 'Hom%'", "", 0), ("url IS NULL", "", 5)],
)
def test_a_query_has_the_rows_of_the_client(
    room: Served, client: WebarchiveClient, where: str, order_by: str, limit: int | None
) -> None:
    question = f"where={quote(where)}&order_by={quote(order_by)}" + ("" if limit is None else f"&limit={limit}")
    assert rows_of(room.get(f"{PREFIX}/query?{question}")) == client.select(where, order_by, limit)


def test_a_query_of_one_domain(room: Served) -> None:
    (document,) = rows_of(room.get(f"{PREFIX}/query?domain=other.example.org"))
    assert document.domain == "other.example.org"


def test_more_rows_than_are_held_go_through_a_file(room: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webarcfs.api.answers._HELD", 100)
    answer = room.get(f"{PREFIX}/query")
    assert len(rows_of(answer)) == 2 * len(PAGES) + 1 and int(answer.headers["content-length"]) == len(answer.body)
    monkeypatch.setattr(limits, "ROWS_BYTES", 500)
    assert "urn:webarcfs:error:TooMany" in problem_of(room.get(f"{PREFIX}/query"))["type"]


def test_an_arc_and_its_files_are_those_of_the_client(room: Served, client: WebarchiveClient) -> None:
    for document in [document for tag in TAGS for document in client.at(tag)]:
        answer = room.get(f"{PREFIX}/arcs/{place_of(document)}")
        listing = json.loads(answer.body)
        assert MetaData.from_fields(listing["metadata"]) == document
        assert [entry["name"] for entry in listing["entries"]] == client.list(document)
        known = room.get(f"{PREFIX}/arcs/{place_of(document)}", {"If-None-Match": answer.headers["etag"]})
        assert (known.status, known.body) == (304, b"")
        for entry in listing["entries"]:
            body = room.get(f"{PREFIX}/files/{place_of(document)}?name={quote(entry['name'])}")
            if entry["kind"] == "folder":
                assert body.status == 404 and entry["size"] == 0
                continue
            assert body.body == client.open_read(document, entry["name"]).read()
            assert (len(body.body), body.headers["etag"]) == (entry["size"], f'"{entry["id"]}"')
            assert body.headers["content-type"] == "application/octet-stream"
            assert body.headers["content-disposition"].startswith("attachment")


def test_a_file_is_asked_for_in_parts_and_by_its_tag(room: Served) -> None:
    path = f"{PREFIX}/files/{TAGS[0]}/large.bin?name=data.bin"
    whole = room.get(path)
    assert whole.body == LARGE
    part = room.get(path, {"Range": "bytes=5000000-5999999", "If-Range": whole.headers["etag"]})
    assert (part.status, part.body) == (206, LARGE[5_000_000:6_000_000])
    assert room.get(path, {"Range": "bytes=0-9", "If-Range": '"other"'}).body == LARGE
    assert room.get(path, {"Range": f"bytes={len(LARGE)}-"}).status == 416
    assert room.get(path, {"If-None-Match": whole.headers["etag"]}).status == 304
    head = room.get(path, method="HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(LARGE)))
    for method in ("PUT", "POST", "DELETE"):
        assert room.get(path, method=method).status == 405


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/nothing", 404, "NotFound"),
        ("/domains/none.example.org/snapshots", 404, "NotFound"),
        ("/domains/%2E%2E/snapshots", 400, "NameRefused"),
        ("/domains/a%2Fb/snapshots", 400, "NameRefused"),
        ("/domains/a%00b/snapshots", 400, "NameRefused"),
        ("/domains/%FF/snapshots", 404, "NotFound"),
        ("/snapshots/0/documents", 400, "UsageError"),
        ("/snapshots/2021-03-01T12:00:00@/documents", 400, "UsageError"),
        ("/snapshots/2021-03-01T12:00:00%40none.example.org/documents", 404, "NotFound"),
        ("/snapshots/2021-03-01T12:00:01@www.example.org/changed", 404, "NotFound"),
        ("/snapshots/{tag}/documents?befor=x", 400, "UsageError"),
        ("/domains?limit=1", 400, "UsageError"),
        ("/query?limit=null", 400, "UsageError"),
        ("/query?limit=-1", 400, "UsageError"),
        ("/query?limit=10000000000000000000", 400, "UsageError"),
        ("/query?limit=1&limit=2", 400, "UsageError"),
        ("/query?where=nonsense", 400, "BadCondition"),
        ("/query?where=%00", 400, "BadCondition"),
        ("/query?where=%FF", 400, "BadCondition"),
        ("/query?where=1)%3B--", 400, "BadCondition"),
        ("/arcs/{tag}/none.html", 404, "NotFound"),
        ("/arcs/{tag}/a", 404, "NotFound"),
        ("/arcs/{tag}/a/", 400, "NameRefused"),
        ("/arcs/{tag}/a/../a.html", 400, "NameRefused"),
        ("/arcs/{tag}/%2e%2e/x", 400, "NameRefused"),
        ("/arcs/{tag}/a%2Fb.html", 400, "NameRefused"),
        ("/arcs/{tag}/a%00.html", 400, "NameRefused"),
        ("/arcs/{tag}/" + "x" * 300, 404, "NotFound"),
        ("/files/{tag}/a.html", 400, "UsageError"),
        ("/files/{tag}/a.html?name=..", 400, "NameRefused"),
        ("/files/{tag}/a.html?name=%2Fetc%2Fpasswd", 400, "NameRefused"),
        ("/files/{tag}/a.html?name=a%2F..%2Fdata.xml", 400, "NameRefused"),
        ("/files/{tag}/a.html?name=x%00", 400, "NameRefused"),
        ("/files/{tag}/a.html?name=%FF", 404, "NotFound"),
        ("/files/{tag}/a.html?name=none", 404, "NotFound"),
        ("/snapshots/0.tar", 400, "UsageError"),
        ("/snapshots/2020-01-01T00:00:00@none.tar", 404, "NotFound"),
        ("/nodes/{tag}/a.html", 400, "UsageError"),
        ("/nodes/{tag}/none.html?name=x", 404, "NotFound"),
        ("/links", 400, "UsageError"),
        ("/links?target=nonsense", 400, "UrlRefused"),
        ("/links?external=maybe", 400, "UsageError"),
        ("/links?external=1&kind=x", 400, "UsageError"),
        ("/links?external=1&at=0", 400, "UsageError"),
        ("/links?external=1&ever=1&at={tag}", 400, "UsageError"),
        ("/search?words=%22", 400, "BadCondition"),
        ("/search?words=home&at=someday", 400, "UsageError"),
        ("/search?words=home&sort=x", 400, "UsageError"),
        ("/search?words=home&limit=100000", 400, "UsageError"),
        ("/search?words=%FF", 400, "UsageError"),
        ("/search?words=home&record=none", 404, "NotFound"),
        ("/records/none", 404, "NotFound"),
        ("/records/%FF", 404, "NotFound"),
        ("/publications/none", 404, "NotFound"),
    ],
)
def test_what_cannot_be_asked_is_the_clients_fault(
    room: Served, archive: Archive, path: str, status: int, kind: str
) -> None:
    answer = room.get(PREFIX + path.replace("{tag}", str(TAGS[0])))
    problem = problem_of(answer)
    assert (answer.status, problem["type"]) == (status, f"urn:webarcfs:error:{kind}")
    assert str(archive.root) not in answer.text and problem["detail"]


@pytest.mark.parametrize("path", [f"/snapshots/{TAGS[0]}/documents", f"/snapshots/{TAGS[0]}.tar"])
def test_an_answer_that_is_cut_does_not_look_whole(room: Served, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webarcfs.api.answers._PIECE", 1)
    monkeypatch.setattr(limits, "STREAM_SECONDS", 1e-9)
    with pytest.raises(IncompleteRead) as cut:
        room.get(PREFIX + path)
    assert cut.value.partial and b'"end"' not in cut.value.partial


@pytest.mark.parametrize("tag", TAGS)
def test_a_snapshot_as_a_tar_file_has_the_files_of_the_client(
    room: Served, client: WebarchiveClient, tag: CommitTag
) -> None:
    answer = room.get(f"{PREFIX}/snapshots/{tag}.tar")
    assert answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=BytesIO(answer.body)) as archived:
        files = {member.name: archived.extractfile(member).read() for member in archived}  # type: ignore[union-attr]
    expected = {
        f"{document.path.removeprefix(f'/{DOMAIN}/')}/{name}": client.open_read(document, name).read()
        for document in client.at(tag)
        for name in ("data.xml", "headers.http", client.data_name(document))
    }
    assert files == expected
    names = list(files)
    for number in (0, len(names) // 2, len(names) - 1):
        rest = room.get(f"{PREFIX}/snapshots/{tag}.tar?after={quote(names[number], safe='')}")
        with tarfile.open(fileobj=BytesIO(rest.body)) as archived:
            assert archived.getnames() == names[number + 1 :]


def test_names_of_any_bytes_are_told_as_they_are(tmp_path: Path) -> None:
    """Of users' additions: in lists as lone surrogates, in queries escaped, in tar files as they are."""
    archive = archives.make_archive(tmp_path)
    tag = published(archive, DOMAIN, {f"http://{DOMAIN}/a.html": Page(b"<p>a")}, FIRST)
    store = archives.store_of(archive, DOMAIN)
    names = ["\udcff.txt", "a b+c%.txt", "n\new", "folder/\u00fc.txt", "x" * 255]
    head = store.head()
    assert head is not None
    blobs = {f"a.html/{name}": store.write_blob(name.encode("utf-8", "surrogateescape")) for name in names}
    tree = store.edit(head.tree, blobs)
    archives.commit(store, tree, str(tag), tag, new_tag=False)
    recover(archive)
    with served(archive) as room:
        listing = json.loads(room.get(f"{PREFIX}/arcs/{tag}/a.html").body)
        assert {name.partition("/")[0] for name in names} <= {entry["name"] for entry in listing["entries"]}
        for name in names:
            raw = name.encode("utf-8", "surrogateescape")
            assert room.get(f"{PREFIX}/files/{tag}/a.html?name={quote(raw, safe='')}").body == raw
        tar = room.get(f"{PREFIX}/snapshots/{tag}.tar").body
    with tarfile.open(fileobj=BytesIO(tar), errors="surrogateescape") as archived:
        assert {f"a.html/{name}" for name in names} <= set(archived.getnames())


def test_hits_are_those_of_the_client(room: Served, client: WebarchiveClient) -> None:
    answer = json.loads(room.get(f"{PREFIX}/search?words=home&sort=url&limit=5").body)
    expected = client.search("home", limit=5)
    assert answer["total"] == expected.total == 1 and answer["exact"] is True
    (hit,) = answer["hits"]
    assert (hit["url"], hit["snippet"]) == (expected.hits[0].url, expected.hits[0].snippet.text)
    assert json.loads(room.get(f"{PREFIX}/search?words=nothing+like+it").body)["hits"] == []
    assert json.loads(room.get(f"{PREFIX}/").body)["can"] == ["read", "search", "links"]


def test_links_are_those_of_the_client(room: Served, client: WebarchiveClient) -> None:
    for parameters, question in (
        ("path=/www.example.org/links.html", Question(path=f"/{DOMAIN}/links.html")),
        ("target=HTTP://elsewhere.example/", Question(targets=("http://elsewhere.example/",))),
        ("external=1&limit=1", Question(external=True, limit=1)),
        ("word=nowhere&kind=image", Question(word="nowhere", kind=AskedKind.IMAGE)),
        (f"domain={DOMAIN}&at={TAGS[0]}", Question(at=TAGS[0])),
    ):
        columns, *rows, end = map(json.loads, room.get(f"{PREFIX}/links?{parameters}").body.splitlines())
        links = [FoundLink(**dict(zip(columns, row, strict=True))) for row in rows]
        assert links == list(client.links(question)) and end == {"end": True, "rows": len(rows)}


def test_records_are_those_of_the_client(room: Served, client: WebarchiveClient) -> None:
    columns, *rows, _ = map(json.loads, room.get(f"{PREFIX}/records?xml=1").body.splitlines())
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    expected = list(client.records())
    assert [read_record(record["xml"].encode()) for record in records] == expected and len(expected) == 2
    assert "xml" not in json.loads(room.get(f"{PREFIX}/records").body.splitlines()[0])
    record = json.loads(room.get(f"{PREFIX}/records/{expected[0].id}").body)
    assert record["id"] == expected[0].id and record["domains"] == DOMAIN
    as_xml = room.get(f"{PREFIX}/records/{expected[0].id}", {"Accept": "application/xml"})
    assert read_record(as_xml.body).id == expected[0].id
    publication = json.loads(room.get(f"{PREFIX}/publications/p").body)
    assert publication["records"] == 2 and publication["years"] == {"2021": 2}


def test_a_data_node_is_that_of_the_client(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    tag = published(archive, DOMAIN, {f"http://{DOMAIN}/a.html": Page(b"<p>a")}, FIRST)
    store = archives.store_of(archive, DOMAIN)
    head = store.head()
    assert head is not None
    document = store.find(head.tree, "a.html/data.xml")
    assert document is not None
    node = b'<words xmlns="urn:example:1" n="3">\xc3\xbc</words>'
    whole = store.read(document.oid).replace(b"<arc:data/>", b"<arc:data>" + node + b"</arc:data>")
    tree = store.edit(head.tree, {"a.html/data.xml": store.write_blob(whole)})
    archives.commit(store, tree, str(tag), tag, new_tag=False)
    recover(archive)
    with served(archive) as room:
        answer = room.get(f"{PREFIX}/nodes/{tag}/a.html?name={quote('{urn:example:1}words', safe='')}")
        element = ElementTree.fromstring(answer.body)
        assert (element.tag, element.text, element.get("n")) == ("{urn:example:1}words", "\u00fc", "3")
        assert room.get(f"{PREFIX}/nodes/{tag}/a.html?name=words").status == 404


def test_the_commands_of_the_readme(room: Served, tmp_path: Path) -> None:
    """Each works as it stands, but for the address and the time; the one that listens has no end."""
    text = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r"^ +(curl .*\$R/.*|curl .*\"\$R/.*)$", text, re.MULTILINE)
    assert len(commands) == 7 and "event-stream" in commands[-1]
    for command in commands[:-1]:
        line = command.replace("2026-11-21T03:00:00", format_time(FIRST)).replace("curl", "curl -fsS", 1)
        script = f"set -o pipefail; R={room.origin}{PREFIX}; {line}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or "tar x" in line
    assert (tmp_path / "a.html" / "data.html").read_bytes() == b"<p>a"


def test_a_bad_condition_says_where(room: Served) -> None:
    problem = problem_of(room.get(f"{PREFIX}/query?where={quote('titel = 1')}"))
    assert "did you mean title?" in problem["detail"] and "^" in problem["detail"]


def test_what_the_server_has_to_mend_says_nothing_of_the_server(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    published(archive, DOMAIN, {f"http://{DOMAIN}/": Page(b"<p>home")}, FIRST)
    recover(archive)
    archive.access_rules.write_text("no rule\n")
    with served(archive) as room:
        for path in ("/domains", "/query", f"/snapshots/{TAGS[0]}/documents"):
            answer = room.get(PREFIX + path)
            assert problem_of(answer)["type"] == "urn:webarcfs:error:SettingsError" and answer.status == 503
            assert str(archive.root) not in answer.text and answer.headers["retry-after"]


def test_a_reader_whom_a_proxy_names_has_own_answers(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    published(archive, DOMAIN, {f"http://{DOMAIN}/": Page(b"<p>home")}, FIRST)
    recover(archive)
    archive.settings.write_text('[readers]\nheader = "X-Reader"\nproxies = ["127.0.0.1"]\n')
    with served(archive) as room:
        named, public = room.get(f"{PREFIX}/", {"X-Reader": "anna"}), room.get(f"{PREFIX}/")
    assert json.loads(named.body)["person"] == "anna" and json.loads(public.body)["person"] == ""
    assert (named.headers["cache-control"], public.headers["cache-control"]) == ("private, no-store", "no-cache")
