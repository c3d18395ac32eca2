"""What servers answer to a crawl with secrets (Set-Cookie, authorization): staff see it, readers nowhere."""

from __future__ import annotations

import gzip
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.requests import Request

from tests.support import crawls
from tests.support.readercommand import webarc
from tests.support.rooms import served
from tests.support.site import Site
from tests.support.waiting import until
from tests.support.wire import Answer, Exchange
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.git.repository import CRAWLS, MAIN, RefUpdate
from webarcfs.archive.model.metadata import COMMITTER, MetaData
from webarcfs.client.client import WebarchiveClient
from webarcfs.room.opened import OpenedServices
from webarcfs.room.pages import mementos
from webarcfs.room.replay.cdx import record_name
from webarcfs.room.visit import Origins, Services, Shared, Visit
from webarcfs.warc.http_response import blank_response

pytestmark = pytest.mark.crawl

#: What the server says to whom it knows; none of it may reach a reader.
HIDDEN = ("ses5ion", "ne7t", "fo1ded", "re4lm", "pr0xy")
SAYS = (
    "Set-Cookie: id=ses5ion; HttpOnly\r\nset-cookie : other=1;\r\n  and=fo1ded\r\n"
    'Authentication-Info: nextnonce="ne7t"\r\nWWW-Authenticate: Negotiate re4lm\r\nProxy-Info: pr0xy\r\n'
)
HEAD, URLS = "headers.http", ("http://a.test/", "http://a.test/b")


def says(text: str) -> Answer:
    """A page whose server says more than others may know."""

    def answer(exchange: Exchange) -> None:
        body = text.encode()
        start = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Plain: seen\r\n"
        exchange.send(f"{start}{SAYS}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return answer


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """One crawl without secrets (of c.test), and two of a.test: with one, then without, when one page changed."""
    folder = tmp_path_factory.mktemp("secrets")
    made = directory.create(folder / "archive")
    with Site() as site:
        how = {"wget_args": crawls.through(site.proxy), "name": "p"}
        site.add_nasty("/", says("<title>c</title>"), "c.test")
        crawls.crawl(made, "http://c.test/", wget_args=how["wget_args"], name="c")
        site.add_nasty("/", says("<a href=/b>b</a>"), "a.test")
        site.add_nasty("/b", says("b"), "a.test")
        secret = crawls.secret_file(folder, "me:pa55word\n", "http://a.test")
        assert crawls.crawl(made, "http://a.test/", login=[secret], **how).complete
        second = int(time.time())
        until(lambda: int(time.time()) > second, "the captures of the two crawls have times of their own")
        site.add_nasty("/", says("<a href=/b>new</a>"), "a.test")
        assert crawls.crawl(made, "http://a.test/", **how).complete
    yield made


def read_heads(client: WebarchiveClient) -> dict[tuple[str, str], bytes]:
    """Snapshot and URL → headers.http."""
    return {(str(meta.commit_tag), meta.url): head_of(client, meta) for meta in client.select("domain = 'a.test'")}


def head_of(client: WebarchiveClient, meta: MetaData) -> bytes:
    """headers.http of a document."""
    with client.open_read(meta, HEAD) as file:
        return file.read()


def has_hidden(data: bytes) -> set[str]:
    """The words of HIDDEN in some bytes."""
    return {word for word in HIDDEN if word.encode() in data}


def test_a_commit_says_that_secrets_were_shown(crawled: Archive) -> None:
    """Each crawl's own one."""
    store = crawls.store(crawled, "a.test")
    first, second = (store.commit(oid).message for _, oid in sorted(store.refs(CRAWLS).items()))
    assert (first.showed_secrets, second.showed_secrets) == (True, False)


def test_readers_get_blanked_headers(crawled: Archive) -> None:
    """S-secret-2: of what that crawl stored, and of nothing else; sizes stay, and staff see all."""
    with WebarchiveClient(crawled.root) as staff, WebarchiveClient(crawled.root, reader="") as reader:
        whole, shown = read_heads(staff), read_heads(reader)
        assert [meta.url for meta in reader.select("domain = 'c.test'")] == ["http://c.test/"]
        plain = head_of(reader, reader.select("domain = 'c.test'")[0])
    assert has_hidden(plain) == set(HIDDEN), "a crawl without secrets"
    first, second = sorted({tag for tag, _ in whole})
    assert all(has_hidden(head) == set(HIDDEN) for head in whole.values()) and whole.keys() == shown.keys()
    for url, tag in ((URLS[0], first), (URLS[1], first), (URLS[1], second)):  # the second one met /b unchanged
        assert has_hidden(shown[tag, url]) == set(), (tag, url)
        assert len(shown[tag, url]) == len(whole[tag, url]) and b"X-Plain: seen" in shown[tag, url]
        assert b"Set-Cookie: **" in shown[tag, url] and b"set-cookie : ***" in shown[tag, url]
    assert has_hidden(shown[second, URLS[0]]) == set(HIDDEN), "the second crawl had no secrets, and stored this one"


@pytest.fixture
def copy(crawled: Archive, tmp_path: Path) -> Archive:
    """A copy of the archive, to be damaged."""
    shutil.copytree(crawled.root, tmp_path / "damaged", symlinks=True)
    return open_archive(tmp_path / "damaged")


def edit(archive: Archive, changes: Mapping[str, str | None]) -> None:
    """Change files of the last snapshot of a.test, or remove them."""
    store = crawls.store(archive, "a.test")
    head = store.head()
    assert head is not None
    message = store.plain_commit(head.oid).message
    commit = store.write_commit(store.edit(head.tree, changes), [], message, COMMITTER, head.time)
    store.update_refs([RefUpdate(head.message.tag.ref, commit, head.oid), RefUpdate(MAIN, commit, head.oid)])


@contextmanager
def reading(archive: Archive) -> Iterator[Callable[[str], bytes | None]]:
    """Read files of the last snapshot of a.test as readers have it; None for one that is not there."""
    with ReaderRepositories(Gate(archive, Reader(""))) as repositories:
        store = repositories.open("a.test")
        head = store.head()
        assert head is not None
        tree = head.tree

        def read(path: str) -> bytes | None:
            found = store.find(tree, path)
            return store.read(found.oid) if found is not None else None

        yield read


def test_headers_without_their_document_are_blanked(copy: Archive) -> None:
    """Nobody knows of which crawl they are: so also those of the second one, which had no secrets."""
    edit(copy, {"index.html/data.xml": None, "b/data.xml": None})
    with reading(copy) as read:
        for path in ("index.html", "b"):
            head = read(f"{path}/{HEAD}")
            assert head is not None and b"X-Plain: seen" in head and has_hidden(head) == set(), path


@pytest.mark.parametrize("lost", ["index.html/data.xml", f"b/{HEAD}"])
def test_a_file_that_cannot_be_read_costs_readers_no_other(copy: Archive, lost: str) -> None:
    """Headers of a document that cannot be read are blanked, headers that cannot be read are left out."""
    edit(copy, {lost: "1" * 40})
    with reading(copy) as read:
        first, second = read(f"index.html/{HEAD}"), read(f"b/{HEAD}")
        assert first is not None and (has_hidden(first) == set()) == lost.startswith("index.html")
        assert (second is None) == lost.startswith("b/") and read("b/data.xml") is not None


def _texts(path: Path) -> bytes:
    if path.is_dir():
        return b"".join(_texts(part) for part in sorted(path.rglob("*")) if part.is_file())
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            parts = [packed.read(name) for name in packed.namelist()]
        return b"".join(gzip.decompress(part) if part[:2] == b"\x1f\x8b" else part for part in parts)
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@pytest.mark.parametrize("kind", ["warc", "wacz", "bagit", "static"])
def test_exports(crawled: Archive, tmp_path: Path, kind: str) -> None:
    """As staff they have all (a folder to browse has no headers); as reader nothing that is hidden."""
    tag = min(map(str, (meta.commit_tag for meta in WebarchiveClient(crawled.root).select("domain = 'a.test'"))))
    for option in ((), ("--as-reader",)):
        out = tmp_path / f"out{len(option)}.{kind}"
        command = ["export", "--archive", crawled.root, "--at", tag, "--format", kind, *option, out]
        done = webarc(*map(str, command))
        assert done.returncode == 0, done.stderr
        wanted = set() if option or kind == "static" else set(HIDDEN)
        assert has_hidden(_texts(out)) == wanted, (kind, option)


def test_the_room(crawled: Archive) -> None:
    """Original headers of replay, and the WARC records that its other engine reads."""
    with served(crawled) as room:
        rows = [row.split() for row in room.get("/cdx?url=a.test/*").text.splitlines()]
        shown = []
        for row in rows:
            answer = room.get(f"/web/{row[1]}id_/{row[2]}")
            assert answer.status == 200 and answer.headers["x-archive-orig-x-plain"] == "seen"
            shown.append((row[2], has_hidden(str(answer.headers).encode())))
    nothing: set[str] = set()
    said = {"ne7t", "pr0xy"}  # the room leaves cookies out of all
    assert shown == [(URLS[0], nothing), (URLS[0], said), (URLS[1], nothing), (URLS[1], nothing)]


def test_records_for_the_engine_with_scripts(crawled: Archive) -> None:
    """What pywb gets of the room."""
    services = Services(Shared(crawled), Reader())
    visit = Visit(Request({"type": "http"}), Reader(), "en", services, Origins(), str, "", "")
    visit.services.look()
    try:
        shown = []
        for capture in visit.services.captures.history(URLS[0]).captures:
            record = mementos.answer_record(visit, {"name": record_name(capture.captured, capture.url)})
            assert b"X-Plain: seen" in bytes(record.body)
            shown.append(has_hidden(bytes(record.body)))
        assert shown[0] == set() and shown[-1] >= {"ses5ion", "ne7t"}
    finally:
        visit.services.close()


@pytest.mark.parametrize("is_staff", [True, False])
def test_previews(crawled: Archive, is_staff: bool) -> None:
    """Staff see the headers at the desk; a record as readers would see it has them blanked."""
    record = next(record.id for record in Catalogue(crawled).records() if "a.test" in record.domains)
    services = OpenedServices(Shared(crawled), None if is_staff else record)
    services.look()
    try:
        history = services.captures.history(URLS[1])
        capture = history.captures[0]
        head = services.shared.body("a.test", capture.head)
        assert has_hidden(services.shown_head("a.test", capture, head)) == (set(HIDDEN) if is_staff else set())
    finally:
        services.close()


def test_an_export_for_staff_brings_it_back(crawled: Archive, tmp_path: Path) -> None:
    """S-secret-2: in another archive, where readers get the same."""
    out, copy = tmp_path / "out.warc.gz", directory.create(tmp_path / "copy")
    assert webarc("export", "--archive", str(crawled.root), str(out)).returncode == 0
    done = crawls.run_command("import", "--archive", copy.root, "--as-exported", out)
    assert done.code == 0, done.err
    with WebarchiveClient(crawled.root, reader="") as here, WebarchiveClient(copy.root, reader="") as there:
        assert read_heads(here) == read_heads(there)
    with WebarchiveClient(copy.root) as staff:
        assert all(has_hidden(head) == set(HIDDEN) for head in read_heads(staff).values())


def test_an_export_of_a_later_snapshot_alone_keeps_the_mark(crawled: Archive, tmp_path: Path) -> None:
    """The second crawl had no secrets, and carries what the first one stored. Its own headers are blanked as well."""
    out, copy = tmp_path / "out.warc.gz", directory.create(tmp_path / "copy")
    tag = max(str(meta.commit_tag) for meta in WebarchiveClient(crawled.root).select("domain = 'a.test'"))
    assert webarc("export", "--archive", str(crawled.root), "--at", tag, str(out)).returncode == 0
    done = crawls.run_command("import", "--archive", copy.root, "--as-exported", out)
    assert done.code == 0, done.err
    with WebarchiveClient(copy.root, reader="") as reader:
        heads = read_heads(reader)
    assert {url for _, url in heads} == set(URLS) and not any(has_hidden(head) for head in heads.values())
    with served(copy) as room:
        for row in room.get("/cdx?url=a.test/*").text.splitlines():
            _, digits, url, *_ = row.split()
            assert not has_hidden(str(room.get(f"/web/{digits}id_/{url}").headers).encode())


@pytest.mark.parametrize("replaces", [False, True])
def test_an_import_of_an_export_for_staff_keeps_the_mark(crawled: Archive, tmp_path: Path, replaces: bool) -> None:
    """S-secret-2: also where another archive takes it as any WARC, and what a revisit stores has the mark."""
    out, copy = tmp_path / "out.warc.gz", directory.create(tmp_path / "copy")
    assert webarc("export", "--archive", str(crawled.root), str(out)).returncode == 0
    with gzip.open(out) as file:
        assert file.read().count(b"Webarcfs-Secrets: shown\r\n") == 3, "two responses, and the revisit of one of them"
    if replaces:
        copy.settings.write_text('[crawl]\nunchanged = "replace"\n', "utf-8")
    done = crawls.run_command("import", "--archive", copy.root, "--pause", "0.0002", out)
    assert done.code == 0, done.err
    with WebarchiveClient(copy.root) as staff, WebarchiveClient(copy.root, reader="") as reader:
        whole, shown = read_heads(staff), read_heads(reader)
        plain = [has_hidden(head_of(reader, meta)) for meta in reader.select("domain = 'c.test'")]
    assert whole.keys() == shown.keys() and {url for _, url in whole} == set(URLS)
    assert all(has_hidden(head) == set(HIDDEN) for head in whole.values()), "staff have it as it was sent"
    assert not any(has_hidden(head) for (tag, url), head in shown.items() if url == URLS[1]), shown
    assert plain == [set(HIDDEN)], "a crawl without secrets"
    with served(copy) as room:
        for row in room.get("/cdx?url=a.test/*").text.splitlines():
            _, digits, url, *_ = row.split()
            seen = has_hidden(str(room.get(f"/web/{digits}id_/{url}").headers).encode())
            assert not seen or url == URLS[0], row


def test_a_job_that_had_secrets_keeps_the_mark(archive: Archive, site: Site, tmp_path: Path) -> None:
    """It was interrupted, and resumed after they were taken out of the settings."""
    links = "".join(f"<a href=/{number}>n</a>" for number in range(30))
    site.add_nasty("/", says(links), "a.test")
    for number in range(30):
        site.add_nasty(f"/{number}", says(f"{number}"), "a.test")
    how = {"wget_args": crawls.through(site.proxy), "name": "p", "wait": 0.05}
    stop = crawls.StopAfter(site, 4)
    secret = crawls.secret_file(tmp_path, "me:pa55word\n", "http://a.test")
    assert crawls.crawl(archive, "http://a.test/", login=[secret], stop=stop.event, **how).interrupted
    stop.join()
    assert crawls.crawl(archive, "http://a.test/", **how).complete
    store = crawls.store(archive, "a.test")
    assert [store.commit(oid).message.showed_secrets for oid in store.refs(CRAWLS).values()] == [True]
    with WebarchiveClient(archive.root, reader="") as reader:
        assert not any(has_hidden(head) for head in read_heads(reader).values())


@pytest.mark.parametrize(
    ("head", "shown"),
    [
        (b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n", b"HTTP/1.1 200 OK\r\nSet-Cookie: ***\r\n\r\n"),
        (b"HTTP/1.1 200 OK\nSET-COOKIE2:a b\n\n", b"HTTP/1.1 200 OK\nSET-COOKIE2:* *\n\n"),
        (b"HTTP/1.1 200 OK\r\n Set-Cookie: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n Set-Cookie: *\r\n\r\n"),
        (b"X\r\nSet-Cookie: a\r\n\tb: c\r\nD: e\r\n\r\n", b"X\r\nSet-Cookie: *\r\n\t** *\r\nD: e\r\n\r\n"),
        (b"X\r\nA: b\rSet-Cookie: c\r\n\r\n", b"X\r\nA: b\rSet-Cookie: *\r\n\r\n"),
        (b"X\r\nSet-Cookie\x00: c\r\n\r\n", b"X\r\nSet-Cookie\x00: *\r\n\r\n"),
        (b"X\r\nProxy-Anything: c\r\nProxyless: d\r\n\r\n", b"X\r\nProxy-Anything: *\r\nProxyless: d\r\n\r\n"),
        (b"X\r\nSet-Cookie\r\nSet-Cookies: a\r\n\r\n", b"X\r\nSet-Cookie\r\nSet-Cookies: a\r\n\r\n"),
        (b"", b""),
    ],
)
def test_forms_of_fields(head: bytes, shown: bytes) -> None:
    assert blank_response(head) == shown and len(shown) == len(head)
    assert (blank_response(head) is head) == (shown == head)
