"""The gateway: who may do what, what is added over the network and in whose name, and what leaves nothing behind."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from agent.gateway import uploads
from agent.gateway.gateway_app import ADDING, MIRRORING
from tests.support import archives, gateways
from tests.support.archives import DOMAIN
from tests.support.crawls import end, start_command
from tests.support.gateways import Program, ServedGateway, place
from tests.support.waiting import until
from webarcfs.api.routes import PREFIX, ROUTES
from webarcfs.archive.additions.waiting_additions import read_waiting
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exists, NotPermitted
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system.files import blob_id
from webarcfs.client import WebarchiveClient
from webarcfs.web import limits
from webarcfs.web.access_log import AccessLog

pytestmark = pytest.mark.store

PAGE = "p0.html"
#: Starts of a gateway that are killed.
KILLS = 5


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = archives.make_archive(tmp_path)
    archives.publish(made, DOMAIN, {PAGE: b"0", "p1.html": b"1"})
    gateways.with_persons(made)
    return made


@pytest.fixture
def tag(archive: Archive) -> CommitTag:
    head = archives.store_of(archive).head()
    assert head is not None
    return head.message.tag


@pytest.fixture
def served(archive: Archive) -> Iterator[ServedGateway]:
    with gateways.served(archive) as gateway:
        yield gateway


@pytest.fixture
def carl(archive: Archive, served: ServedGateway) -> Program:
    return served.program(gateways.token(archive, "carl", Scope.READ, Scope.ADD))


# == what is added ====================================================================================================


def test_a_file_is_there_at_once_and_committed_in_the_name_of_the_person(
    carl: Program, archive: Archive, tag: CommitTag
) -> None:
    """S-gateway-2."""
    answer = carl.put(tag, PAGE, "more/note ü.txt", b"words")
    assert (answer.status, answer.body) == (201, b"")
    assert answer.headers["etag"] == f'"{blob_id(b"words")}"'
    read = carl.get(answer.headers["location"])
    assert (read.status, read.body, read.headers["etag"]) == (200, b"words", answer.headers["etag"])
    listing = carl.get(place(tag, PAGE, kind="arcs")).json
    assert {"name": "more", "kind": "folder"} in [
        {key: entry[key] for key in ("name", "kind")} for entry in listing["entries"]
    ]
    store = archives.store_of(archive)

    def is_committed() -> bool:
        head = store.head()
        return head is not None and store.find(head.tree, f"{PAGE}/more/note ü.txt") is not None

    until(is_committed)
    author = subprocess.run(
        ["git", "-C", str(store.path), "log", "-1", "--format=%an <%ae>", "main"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert author.startswith("Carl Curator <carl@")
    assert carl.get(answer.headers["location"]).body == b"words"


def test_a_name_that_is_taken_is_412_with_the_tag_of_what_is_there(carl: Program, tag: CommitTag) -> None:
    """S-gateway-2: a client whose answer was lost learns so that its bytes are kept."""
    assert carl.put(tag, PAGE, "note", b"words").status == 201
    for body in (b"words", b"others"):
        again = carl.put(tag, PAGE, "note", body)
        assert again.error == (412, "Exists")
        assert again.headers["etag"] == f'"{blob_id(b"words")}"'
    assert carl.get(place(tag, PAGE, "note")).body == b"words"


def test_the_entity_tag_of_a_document_changes_with_each_addition(carl: Program, tag: CommitTag) -> None:
    tags = [carl.get(place(tag, PAGE, kind="arcs")).headers["etag"]]
    for name in ("a", "more/b", "more/c"):
        assert carl.put(tag, PAGE, name, b"1").status == 201
        tags.append(carl.get(place(tag, PAGE, kind="arcs")).headers["etag"])
    assert len(set(tags)) == len(tags)


def test_a_large_file_comes_in_chunks(carl: Program, tag: CommitTag) -> None:
    pieces = [bytes([number]) * 700_000 for number in range(12)]
    answer = carl.put(tag, PAGE, "large", iter(pieces), **{"Transfer-Encoding": "chunked"})
    assert answer.status == 201, answer.body
    whole = b"".join(pieces)
    assert carl.get(place(tag, PAGE, "large")).body == whole
    part = carl.get(place(tag, PAGE, "large"), {"Range": "bytes=699998-700001"})
    assert (part.status, part.body) == (206, whole[699998:700002])


def test_a_node_is_added_and_read(carl: Program, tag: CommitTag) -> None:
    """S-gateway-3."""
    node = b'<?xml version="1.0"?><words xmlns="urn:x" n="3">a &amp; b</words>'
    assert carl.post(tag, PAGE, "{urn:x}words", node).status == 201
    read = carl.get(place(tag, PAGE, "{urn:x}words", "nodes"))
    assert read.status == 200 and b"a &amp; b" in read.body
    assert carl.post(tag, PAGE, "{urn:x}words", node).error == (409, "Exists")


@pytest.mark.parametrize(
    ("name", "body", "error"),
    [
        ("words", b"<words><b></words>", (422, "InvalidDocument")),
        ("words", b"<words/><words/>", (422, "InvalidDocument")),
        ("words", b"<other/>", (422, "InvalidDocument")),
        ("words", b"<!DOCTYPE words [<!ENTITY a 'b'>]><words>&a;</words>", (422, "InvalidDocument")),
        ("words", b"", (422, "InvalidDocument")),
        ("", b"<words/>", (400, "UsageError")),
        ("words", b"<words>" + b"x" * (17 << 20) + b"</words>", (413, "BodyTooLarge")),
    ],
)
def test_a_node_that_is_none_is_refused(
    carl: Program, tag: CommitTag, name: str, body: bytes, error: tuple[int, str]
) -> None:
    before = carl.get(place(tag, PAGE, "data.xml")).body
    assert carl.post(tag, PAGE, name, body).error == error
    assert carl.get(place(tag, PAGE, "data.xml")).body == before


def test_a_node_says_that_it_is_xml(carl: Program, tag: CommitTag) -> None:
    """No form of another site's page can."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert carl.post(tag, PAGE, "words", b"<words/>", kind).error == (400, "UsageError")


# == what is refused ==================================================================================================


def test_a_file_must_say_that_it_is_new(carl: Program, tag: CommitTag) -> None:
    for headers in ({}, {"If-None-Match": '"abc"'}, {"If-Match": "*"}):
        answer = carl.ask("PUT", place(tag, PAGE, "note"), b"1", headers)
        assert answer.error == (428, "ConditionMissing")
    assert carl.get(place(tag, PAGE, "note")).error == (404, "NotFound")


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("name=..", (400, "NameRefused")),
        ("name=.", (400, "NameRefused")),
        ("name=", (400, "UsageError")),
        ("", (400, "UsageError")),
        ("name=a%00b", (400, "NameRefused")),
        ("name=x/../data.xml", (400, "NameRefused")),
        ("name=%2Fetc%2Fpasswd", (400, "NameRefused")),
        ("name=" + "n" * 256, (400, "NameTooLong")),
        ("name=data.xml", (412, "Exists")),
        ("name=data.html", (412, "Exists")),
        ("name=data.pdf", (403, "NotPermitted")),
        ("name=.git", (403, "NotPermitted")),
        ("name=a&name=b", (400, "UsageError")),
        ("name=a&other=b", (400, "UsageError")),
    ],
)
def test_a_name_that_is_none_is_refused(
    carl: Program, tag: CommitTag, query: str, error: tuple[int, str], archive: Archive
) -> None:
    answer = carl.ask("PUT", f"{place(tag, PAGE)}?{query}", b"1", {"If-None-Match": "*"})
    assert answer.error == error
    assert read_waiting(archive) == {}


def test_names_of_any_bytes_are_kept(carl: Program, tag: CommitTag) -> None:
    for name in ("a:b", "100%25", "a\nb", "a b+c", b"\xff\xfe".decode("utf-8", "surrogateescape"), "n" * 255):
        answer = carl.put(tag, PAGE, name, name.encode("utf-8", "surrogateescape"))
        assert answer.status == 201, (name, answer.body)
        assert carl.get(answer.headers["location"]).body == name.encode("utf-8", "surrogateescape")
    names = {entry["name"] for entry in carl.get(place(tag, PAGE, kind="arcs")).json["entries"]}
    assert {"a:b", "100%25", "a\nb", "\udcff\udcfe"} <= names


def test_the_snapshot_says_which_version_is_meant(carl: Program, archive: Archive, tag: CommitTag) -> None:
    """S-gateway-4."""
    newer = archives.publish(archive, DOMAIN, {"p1.html": b"changed"}, beside_mounts=True)
    until(lambda: str(newer) in carl.get(f"{PREFIX}/domains/{DOMAIN}/snapshots").json)
    until(lambda: carl.put(newer, PAGE, "seen", b"1").status in (201, 412))
    assert carl.put(tag, "p1.html", "note", b"1").error == (409, "Replaced")
    assert carl.put(newer, "p2.html", "note", b"1").error == (404, "NotFound")
    assert carl.ask("PUT", f"{PREFIX}/files/0/p1.html?name=a", b"1", {"If-None-Match": "*"}).status == 400


@pytest.mark.parametrize("length", [5_000_000, None])
def test_an_upload_that_is_cut_leaves_nothing(
    carl: Program, served: ServedGateway, archive: Archive, tag: CommitTag, length: int | None
) -> None:
    """S-gateway-5."""
    threads = served.gateway.threads
    carl.send_part(place(tag, PAGE, "more/note"), b"x" * 2_000_000, length, lambda: threads.under_way == 1)
    until(lambda: threads.under_way == 0)
    listing = carl.get(place(tag, PAGE, kind="arcs")).json
    assert {entry["name"] for entry in listing["entries"]} == {"data.html", "data.xml", "headers.http"}
    assert carl.get(place(tag, PAGE, "more/note")).error == (404, "NotFound")
    assert read_waiting(archive) == {}
    assert carl.put(tag, PAGE, "more/note", b"1").status == 201


def test_a_file_that_is_being_sent_is_not_there_yet(carl: Program, served: ServedGateway, tag: CommitTag) -> None:
    """S-gateway-5: nobody reads half of it, and its name is taken."""
    goes_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"x" * 3_000_000
        goes_on.wait(60)
        yield b"y"

    answers: list[int] = []
    sender = threading.Thread(
        target=lambda: answers.append(carl.put(tag, PAGE, "slow", pieces(), **{"Transfer-Encoding": "chunked"}).status)
    )
    sender.start()
    until(lambda: bool(served.gateway.writer._additions.ready().files.drafts))
    assert carl.put(tag, PAGE, "slow", b"2").error == (412, "Exists")
    assert carl.get(place(tag, PAGE, "slow")).error == (404, "NotFound")
    names = {entry["name"] for entry in carl.get(place(tag, PAGE, kind="arcs")).json["entries"]}
    assert "slow" not in names
    goes_on.set()
    sender.join(60)
    assert answers == [201]
    assert carl.get(place(tag, PAGE, "slow")).body == b"x" * 3_000_000 + b"y"


def test_a_body_that_is_too_long_or_too_slow_is_refused(
    carl: Program, tag: CommitTag, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = carl.put(tag, PAGE, "note", b"1", **{"Content-Length": str(uploads.FILE_BYTES + 1)})
    assert answer.error == (413, "BodyTooLarge") and answer.headers["connection"] == "close"
    monkeypatch.setattr(uploads, "FILE_BYTES", 10)
    answer = carl.put(tag, PAGE, "note", iter([b"123456", b"789012"]), **{"Transfer-Encoding": "chunked"})
    assert answer.error == (413, "BodyTooLarge")
    monkeypatch.undo()
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.2)
    answer = carl.put(tag, PAGE, "note", b"1", **{"Content-Length": "5"})
    assert answer.error == (408, "BodyTooSlow")
    monkeypatch.undo()
    assert carl.get(place(tag, PAGE, "note")).error == (404, "NotFound")
    assert carl.put(tag, PAGE, "note", b"1").status == 201


def test_a_full_disk_is_507(carl: Program, tag: CommitTag, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from webarcfs.writing import drafts

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(drafts, "write_all_at", full)
    answer = carl.put(tag, PAGE, "note", b"words")
    assert answer.error == (507, "WebarcError") and "device" not in answer.json["detail"]
    monkeypatch.undo()
    assert carl.put(tag, PAGE, "note", b"words").status == 201


# == who may ==========================================================================================================


def test_nothing_is_answered_without_a_token(served: ServedGateway, archive: Archive, tag: CommitTag) -> None:
    """S-gateway-1: no row of the table, without one, with a cookie, a password, or one in the address."""
    secret = gateways.token(archive, "carl", Scope.READ, Scope.ADD)
    paths = [(route.template, method) for route in ROUTES for method in route.methods or ()]
    paths += [(row.path, row.method) for row in ADDING] + [(row.template, "GET") for row in MIRRORING]
    paths += [("/git/{domain}.git/info/refs", "GET"), ("/git/{domain}.git/git-upload-pack", "POST")]
    ways: list[tuple[str, dict[str, str]]] = [
        ("", {}), ("", {"Cookie": f"token={secret}; webarc_desk_00000000={secret}"}), (f"?token={secret}", {}),
        ("", {"Authorization": f"Basic {secret}"}), ("", {"Authorization": secret}),
        ("", {"X-Remote-User": "carl", "X-Forwarded-User": "carl"}),
    ]  # fmt: skip
    for template, method in paths:
        path = template.replace("{tag}", str(tag)).replace("{path}", PAGE).replace("{domain}", DOMAIN)
        path = path.replace("{id}", "1").replace("{name}", "p")
        for query, headers in ways:
            answer = served.program().ask(method, f"{PREFIX}{path}{query}", b"" if method != "GET" else None, headers)
            assert answer.status == 401, (method, path, answer.body)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert str(tag).encode() not in answer.body and secret.encode() not in answer.body
    assert served.program("webarc_" + "x" * 49).get(f"{PREFIX}/domains").error == (401, "TokenRefused")
    assert served.program().get("/healthz").body == b"ok\n"


def test_a_token_may_what_its_scopes_and_the_roles_allow(
    served: ServedGateway, archive: Archive, tag: CommitTag
) -> None:
    reads = served.program(gateways.token(archive, "carl", Scope.READ))
    adds = served.program(gateways.token(archive, "carl", Scope.ADD, name="adds"))
    assert reads.get(f"{PREFIX}/").json["can"] == ["read"]
    assert reads.put(tag, PAGE, "note", b"1").error == (403, "Forbidden")
    assert reads.post(tag, PAGE, "words", b"<words/>").error == (403, "Forbidden")
    assert adds.get(f"{PREFIX}/domains").error == (403, "Forbidden")
    assert adds.put(tag, PAGE, "note", b"1").status == 201
    both = served.program(gateways.token(archive, "carl", Scope.ADD, Scope.READ, name="both"))
    asked = both.get(f"{PREFIX}/").json
    assert (asked["can"], asked["person"]) == (["read", "add"], "Carl Curator")
    _become(archive, "carl", "archivist")
    assert both.put(tag, PAGE, "later", b"1").error == (403, "Forbidden")
    assert both.get(f"{PREFIX}/domains").json == [DOMAIN]


def _become(archive: Archive, key: str, role: str) -> None:
    text = archive.people.read_text("utf-8")
    before, after = text.split(f"[person.{key}]\n")
    own, rest = after.split("]\n", 1)
    archive.people.write_text(f'{before}[person.{key}]\n{own.rpartition("[")[0]}["{role}"]\n{rest}', "utf-8")


def test_a_token_that_is_revoked_while_the_body_comes_adds_nothing(
    carl: Program, archive: Archive, tag: CommitTag
) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x" * 2_000_000
        gateways.revoke(archive, "carl")
        yield b"y"

    assert carl.put(tag, PAGE, "note", pieces(), **{"Transfer-Encoding": "chunked"}).status == 401
    assert carl.get(f"{PREFIX}/domains").error == (401, "TokenRefused")
    other = Program(carl.port, gateways.token(archive, "carl", Scope.READ, name="other"))
    assert other.get(place(tag, PAGE, "note")).error == (404, "NotFound")


def test_a_listener_whose_token_is_revoked_learns_of_nothing_more(archive: Archive, served: ServedGateway) -> None:
    """S-gateway-1."""
    secret = gateways.token(archive, "carl", Scope.READ)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}
    connection.request("GET", f"{PREFIX}/changes", headers=headers)
    stream = connection.getresponse()
    assert stream.status == 200
    seen = archives.publish(archive, DOMAIN, {"p1.html": b"2"}, beside_mounts=True)
    while f"data: {seen}" not in (line := stream.readline().decode()):
        assert line
    gateways.revoke(archive, "carl")
    later = archives.publish(archive, DOMAIN, {"p1.html": b"3"}, beside_mounts=True)
    assert str(later).encode() not in stream.read()
    connection.close()


def test_a_trusted_proxy_says_who_asks(served: ServedGateway, archive: Archive, tag: CommitTag) -> None:
    archive.settings.write_text('[desk]\nheader = "X-Remote-User"\nproxies = ["127.0.0.1"]\n', "utf-8")
    carl = served.program(**{"X-Remote-User": "carl"})
    assert carl.put(tag, PAGE, "note", b"1").status == 201
    assert carl.get(f"{PREFIX}/").json["person"] == "Carl Curator"
    elsewhere = served.program(
        **{"X-Remote-User": "carl", "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    )
    assert elsewhere.post(tag, PAGE, "words", b"<words/>").error == (403, "Forbidden")
    assert served.program(**{"X-Remote-User": "nobody"}).get(f"{PREFIX}/domains").error == (403, "Forbidden")
    anna = served.program(**{"X-Remote-User": "anna"})
    assert anna.put(tag, PAGE, "hers", b"1").error == (403, "Forbidden")
    assert anna.get(place(tag, PAGE, "note")).body == b"1"


def test_logs_never_have_a_token(
    archive: Archive, tag: CommitTag, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S-gateway-1."""
    secret = gateways.token(archive, "carl", Scope.READ, Scope.ADD)
    escaped = "%77" + secret[1:]
    log = AccessLog(str(tmp_path / "access.log"))
    with gateways.served(archive, log) as served:
        carl = served.program(secret)
        assert carl.put(tag, PAGE, "note", b"1").status == 201
        for query in (f"?token={secret}", f"?name=x&{secret}=1", f"?token={escaped}"):
            assert carl.get(f"{place(tag, PAGE)}{query}", {"Referer": f"http://x/{secret}"}).status == 400
            assert served.program().get(f"{PREFIX}/domains{query}").status == 401
    log.close()
    text = (tmp_path / "access.log").read_text("ascii") + caplog.text
    assert "webarc_-" in text and text.count("PUT") == 1
    assert secret not in text and secret[7:] not in text


# == beside others ====================================================================================================


def test_a_gateway_shows_what_another_process_committed(carl: Program, archive: Archive, tag: CommitTag) -> None:
    archives.add(archive, f"{PAGE}/theirs", b"theirs")
    until(lambda: carl.get(place(tag, PAGE, "theirs")).status == 200)
    assert carl.get(place(tag, PAGE, "theirs")).body == b"theirs"


def test_readers_of_the_whole_snapshot_get_what_staff_see(carl: Program, tag: CommitTag) -> None:
    lines = carl.get(f"{PREFIX}/snapshots/{tag}/documents").body.splitlines()
    assert b'"rows": 2' in lines[-1] or b'"rows":2' in lines[-1]
    assert carl.get(f"{PREFIX}/snapshots/{tag}.tar").body.count(b"data.html") >= 2
    assert carl.ask("DELETE", place(tag, PAGE, "data.html")).status == 405
    assert carl.ask("PUT", f"{PREFIX}/nothing", b"", {"If-None-Match": "*"}).status == 404


def test_the_client_for_python_adds_over_the_network(carl: Program, tag: CommitTag) -> None:
    """As on a mount: what it adds it reads, what is refused has the same class."""
    with WebarchiveClient(f"http://127.0.0.1:{carl.port}/", token=carl.token) as client:
        meta = next(meta for meta in client.at(tag) if meta.path.endswith(PAGE))
        with client.open_write(meta, "more/counts.txt") as stream:
            stream.write(b"1200 words")
        client.add_data(meta, "words", "1200")
        node = client.get_data(meta, "words")
        assert client.open_read(meta, "more/counts.txt").read() == b"1200 words"
        assert node is not None and node.text == "1200"
        with pytest.raises(Exists), client.open_write(meta, "more/counts.txt") as stream:
            stream.write(b"others")
        with pytest.raises(Exists):
            client.add_data(meta, "words", "1")
        with pytest.raises(NotPermitted), client.open_write(meta, ".git") as stream:
            stream.write(b"1")


# == the process ======================================================================================================


@contextmanager
def _process(archive: Archive) -> Iterator[tuple[Popen[str], int]]:
    process = start_command("gateway", "--archive", archive.root, "--listen", "127.0.0.1:0", "--access-log", "off")
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().strip().rpartition(":")[2])
    finally:
        end(process)


def test_a_kill_after_the_answer_loses_nothing(archive: Archive, tag: CommitTag) -> None:
    """S-gateway-2: of several starts, each killed right after its last answer."""
    secret = gateways.token(archive, "carl", Scope.READ, Scope.ADD)
    kept: dict[str, bytes] = {}
    for start in range(KILLS):
        with _process(archive) as (process, port):
            carl = Program(port, secret)
            for name, body in kept.items():
                assert carl.get(place(tag, PAGE, name)).body == body
            for number, size in enumerate((10, 200_000)):
                name = f"n{start}-{number}"
                assert carl.put(tag, PAGE, name, name.encode() * size).status == 201
                kept[name] = name.encode() * size
            os.kill(process.pid, signal.SIGKILL)
    with gateways.served(archive) as served:
        for name, body in kept.items():
            assert served.program(secret).get(place(tag, PAGE, name)).body == body


def test_a_signal_ends_it_after_the_upload_that_runs_and_commits_the_rest(archive: Archive, tag: CommitTag) -> None:
    secret = gateways.token(archive, "carl", Scope.READ, Scope.ADD)
    with _process(archive) as (process, port):
        assert Program(port, secret).put(tag, PAGE, "note", b"words").status == 201
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert read_waiting(archive) == {}
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None and store.find(head.tree, f"{PAGE}/note") is not None
