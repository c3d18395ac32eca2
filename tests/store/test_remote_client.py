"""The client of a server (/Cl-1/, /Sv-2/): connections, cut and hostile answers, the token, news that are resumed."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_server import ScriptedRequest, answer, json_answer, rows_answer, scripted
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.model import errors
from webarcfs.archive.model.errors import (
    Busy,
    Damaged,
    Exists,
    NotFound,
    NotPermitted,
    SettingsError,
    UsageError,
    WebarcError,
)
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, CommitTag, MetaData
from webarcfs.archive.system.files import blob_id
from webarcfs.client import WebarchiveClient, http_connections, remote_answers

pytestmark = pytest.mark.store

COLUMNS = [*FIELDS, *CAPTURE_FIELDS]
DOMAIN = "www.example.org"
TAG = CommitTag.parse(f"2021-03-01T12:00:00@{DOMAIN}")


def document(name: str, tag: CommitTag = TAG) -> MetaData:
    return MetaData(
        f"http://{DOMAIN}/{name}", "text/html", "", f"/{DOMAIN}/{name}", DOMAIN, tag.crawl_time, tag.crawl_time, tag
    )


def row(name: str) -> list[str]:
    return list(document(name).as_fields().values())


def listing(*names: str) -> bytes:
    entries = [{"name": name, "kind": "file", "size": 1, "id": "0" * 40} for name in names]
    return json_answer({"metadata": document("a.html").as_fields(), "entries": entries}, ETag='"1"')


def always(*pieces: bytes | None) -> Callable[[ScriptedRequest], Iterator[bytes | None]]:
    return lambda _: iter(pieces)


def in_turn(*answers: bytes | list[bytes | None] | None) -> Callable[[ScriptedRequest], Iterator[bytes | None]]:
    """Each answer once, the last one again and again."""
    left = list(answers)

    def script(_: ScriptedRequest) -> Iterator[bytes | None]:
        pieces = left.pop(0) if len(left) > 1 else left[0]
        return iter(pieces if isinstance(pieces, list) else [pieces])

    return script


# == connections ======================================================================================================


def test_one_connection_is_used_again() -> None:
    with scripted(always(json_answer(["a"]))) as server, WebarchiveClient(server.url) as client:
        assert [client.domains() for _ in range(20)] == [["a"]] * 20
        assert (server.connections, len(server.requests)) == (1, 20)


def test_a_list_of_documents_may_be_read_while_others_are_asked_for() -> None:
    script = {"/api/v1/domains": json_answer([DOMAIN]), f"/api/v1/snapshots/{TAG}/documents": rows_answer(
        COLUMNS, *map(row, "abc"), {"end": True, "rows": 3}
    )}  # fmt: skip
    with scripted(lambda request: iter([script[request.target]])) as server, WebarchiveClient(server.url) as client:
        assert [(meta.path, client.domains()) for meta in client.at(TAG)] == [
            (f"/{DOMAIN}/{name}", [DOMAIN]) for name in "abc"
        ]
        assert server.connections == 2


def test_a_server_that_ends_connections_is_asked_again() -> None:
    """Without a word, after each answer; and once before the answer."""
    with scripted(always(json_answer([]), None)) as server, WebarchiveClient(server.url) as client:
        assert [client.domains() for _ in range(3)] == [[]] * 3
    with scripted(in_turn([None], [None], json_answer(["a"]))) as server, WebarchiveClient(server.url) as client:
        assert client.domains() == ["a"]


def test_a_server_that_is_not_there_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(always()) as server:
        pass
    with WebarchiveClient(server.url) as client, pytest.raises(Busy, match="cannot be reached"):
        client.domains()
    monkeypatch.setattr(http_connections, "SILENT_SECONDS", 0.05)
    with scripted(always()) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(Busy, match="cannot be reached: it does not answer in time"):
            client._source._connections.get("/domains", seconds=0.05)  # type: ignore[attr-defined]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"H%d: x\r\n" % number for number in range(200)) + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[]",
        answer(b"\x1f\x8b", Content_Encoding="gzip"),
        answer(b"[" * 100_000, Content_Type="application/json"),
        json_answer({"domains": []}),
        json_answer([1, 2]),
    ],
)
def test_what_is_no_answer_is_an_error(sent: bytes) -> None:
    with (
        scripted(always(sent, None)) as server, WebarchiveClient(server.url) as client, pytest.raises(WebarcError)
    ):  # fmt: skip
        client.domains()


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_answers, "_LARGEST_VALUE", 1_000)
    monkeypatch.setattr(remote_answers, "_LONGEST_ROW", 1_000)
    with scripted(always(json_answer(["x" * 2_000]))) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(WebarcError, match="more than 1,000 bytes"):
            client.domains()
        with pytest.raises(Damaged, match="more than 1,000 bytes"):
            client.select()


# == cut answers ======================================================================================================


@pytest.mark.parametrize(
    "sent",
    [
        rows_answer(),
        rows_answer(COLUMNS),
        rows_answer(COLUMNS, row("a")),
        rows_answer(COLUMNS, row("a"), {"end": True, "rows": 1})[:-1],
        rows_answer(COLUMNS, row("a"), {"end": True, "rows": 1})[:-40],
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n["a"]',
    ],
)
def test_rows_that_were_cut_are_no_answer(sent: bytes) -> None:
    with scripted(always(sent, None)) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(Busy, match="was cut"):
            client.select()
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "lines",
    [
        (["a"], 5),
        ({"a": 1},),
        (COLUMNS, row("a"), {"end": True, "rows": 2}),
        (COLUMNS, row("a"), {"end": True, "rows": 1}, row("b")),
        (COLUMNS, row("a")[:-1], {"end": True, "rows": 1}),
        (COLUMNS, [7, *row("a")[1:]], {"end": True, "rows": 1}),
        (COLUMNS, row("../../etc/passwd"), {"end": True, "rows": 1}),
        (COLUMNS, row("a//b"), {"end": True, "rows": 1}),
        (COLUMNS, [*row("a")[:3], "/other.example.org/a", *row("a")[4:]], {"end": True, "rows": 1}),
        (FIELDS[:3], row("a")[:3], {"end": True, "rows": 1}),
    ],
)
def test_rows_that_are_none_are_damage(lines: tuple[Any, ...]) -> None:
    with (
        scripted(always(rows_answer(*lines))) as server, WebarchiveClient(server.url) as client, pytest.raises(Damaged)
    ):  # fmt: skip
        client.select()


def test_a_query_that_was_cut_is_asked_again() -> None:
    whole = rows_answer(COLUMNS, row("a"), row("b"), {"end": True, "rows": 2})
    with scripted(in_turn([whole[:-30], None], whole)) as server, WebarchiveClient(server.url) as client:
        assert client.select("url LIKE '%é'", "path", 5) == [document("a"), document("b")]
        assert server.requests[1].target == "/api/v1/query?where=url%20LIKE%20%27%25%C3%A9%27&order_by=path&limit=5"
        assert client.select("url = '" + "x" * 5_000 + "'") == [document("a"), document("b")]
    long = server.requests[2]
    assert (long.method, long.target) == ("POST", "/api/v1/query") and long.body.startswith(b"where=url%20%3D")


def test_a_list_of_documents_that_was_cut_goes_on_after_its_last_row() -> None:
    first = rows_answer(COLUMNS, *map(row, "abc"), {"end": True, "rows": 3})[:-60]
    then = rows_answer(COLUMNS, row("c"), {"end": True, "rows": 1})
    with scripted(in_turn([first, None], then)) as server, WebarchiveClient(server.url) as client:
        assert list(client.at(TAG)) == [document(name) for name in "abc"]
    assert server.requests[1].target.endswith(f"/documents?after=%2F{DOMAIN}%2Fb")
    with scripted(always(rows_answer(COLUMNS), None)) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(Busy, match="was cut"):
            list(client.at(TAG))
        assert len(server.requests) == 1, "without a step forward it is not asked again"


BODY = bytes(range(256)) * 1_000
ETAG = f'"{blob_id(BODY)}"'


def _in_parts(request: ScriptedRequest) -> Iterator[bytes | None]:
    """At most 100,000 bytes of a file at a time."""
    begin = int(request.headers.get("range", "bytes=0-")[6:-1])
    headers = {"ETag": ETAG, "Content_Length": str(len(BODY) - begin)}
    if begin:
        assert request.headers["if-range"] == ETAG
        headers["Content_Range"] = f"bytes {begin}-{len(BODY) - 1}/{len(BODY)}"
    head = answer(b"", "206 Partial Content" if begin else "200 OK", **headers)
    return iter([head + BODY[begin : begin + 100_000], None])


def test_a_file_that_was_cut_is_resumed() -> None:
    with scripted(_in_parts) as server, WebarchiveClient(server.url) as client:
        assert client.open_read(document("a.html"), "data.html").read() == BODY
    assert [request.headers.get("range") for request in server.requests] == [None, "bytes=100000-", "bytes=200000-"]


@pytest.mark.parametrize(
    "then",
    [
        answer(BODY, ETag=ETAG),
        answer(BODY[1000:], "206 Partial Content", ETag=ETAG, Content_Range="bytes 1000-255999/256000"),
    ],
)
def test_a_resumed_file_may_come_anew_and_not_from_elsewhere(then: bytes) -> None:
    cut = answer(BODY, ETag=ETAG)[:-1000]
    with scripted(in_turn([cut, None], then)) as server, WebarchiveClient(server.url) as client:
        if b"206" in then[:20]:
            with pytest.raises(Damaged, match="another part"):
                client.open_read(document("a.html"), "data.html")
        else:
            assert client.open_read(document("a.html"), "data.html").read() == BODY


def test_other_bytes_than_the_tag_says_are_damage() -> None:
    script = in_turn(answer(BODY[:-1] + b"x", ETag=ETAG), answer(BODY, ETag='W/"7"'))
    with scripted(script) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(Damaged, match="other bytes"):
            client.open_read(document("a.html"), "data.html")
        assert client.open_read(document("a.html"), "data.html").read() == BODY, "a proxy's tag says nothing"


def test_the_names_of_a_document_are_asked_for_by_their_tag() -> None:
    """Those of an older snapshot once, since they change no more."""
    newer = CommitTag.parse(f"2022-03-01T12:00:00@{DOMAIN}")
    script = in_turn(
        listing("data.html", "data.xml"), answer(b"", "304 Not Modified"), listing("data.html", "data.xml", "note"),
        json_answer([str(TAG), str(newer)]), answer(b"", "304 Not Modified"),
    )  # fmt: skip
    with scripted(script) as server, WebarchiveClient(server.url) as client:
        meta = document("a.html")
        assert client.data_name(meta) == "data.html"
        assert client.list(meta) == ["data.html", "data.xml"]
        assert client.list(meta) == ["data.html", "data.xml", "note"]
        assert client.snapshots(DOMAIN) == [TAG, newer]
        assert client.list(meta) == ["data.html", "data.xml", "note"] and client.data_name(meta) == "data.html"
    assert [request.headers.get("if-none-match") for request in server.requests] == [None, '"1"', '"1"', None]


# == tar ==============================================================================================================


def _tar(*names: str, kind: bytes = tarfile.REGTYPE, end: bool = True) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, 2_000 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    raw = packed.getvalue()
    return raw if end else raw[: 2_560 * len(names)]


@pytest.mark.parametrize(
    ("packed", "error"),
    [
        (_tar("a/data.html", end=False), Busy),
        (_tar("a/data.html")[:1_000], Busy),
        (_tar("a/data.html", kind=tarfile.SYMTYPE), Damaged),
        (b"no tar file" * 1_000, Damaged),
        (_tar("a/data.html", end=False) + b"no header" * 1_000, Damaged),
        (_tar("a/" + "x" * 2_000_000), Damaged),
        (b"", Busy),
    ],
)
def test_a_tar_file_that_is_cut_or_none_is_an_error(packed: bytes, error: type[WebarcError]) -> None:
    script = {f"/api/v1/domains/{DOMAIN}/snapshots": json_answer([str(TAG)])}
    with (
        scripted(lambda request: iter([script.get(request.target, answer(packed))])) as server,
        WebarchiveClient(server.url) as client,
        pytest.raises(error),
    ):
        list(client.read_all(TAG))


# == errors ===========================================================================================================


FAMILY = sorted(
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, WebarcError)
)  # fmt: skip


@pytest.mark.parametrize("name", FAMILY)
def test_each_error_of_the_family_is_raised_again(name: str) -> None:
    """/Sv-2.2/"""
    problem = {"type": f"urn:webarcfs:error:{name}", "title": "t", "status": 400, "detail": "what it was"}
    sent = json_answer(problem, "400 Bad Request", Content_Type="application/problem+json")
    with (
        scripted(always(sent)) as server, WebarchiveClient(server.url) as client, pytest.raises(WebarcError) as raised
    ):  # fmt: skip
        client.domains()
    assert "what it was" in str(raised.value)
    kind = getattr(errors, name)
    plain = next(base for base in kind.__mro__ if base is SettingsError or base.__init__ is WebarcError.__init__)
    assert type(raised.value) is plain


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("urn:webarcfs:error:Mapping", "404 Not Found", NotFound),
        ("urn:webarcfs:error:errno_of", "503 Service Unavailable", Busy),
        ("urn:webarcfs:error:__name__", "401 Unauthorized", errors.Forbidden),
        ("about:blank", "500 Internal Server Error", WebarcError),
        (7, "999 Whatever", WebarcError),
    ],
)
def test_an_unknown_error_is_one_of_its_status(kind: object, status: str, error: type[WebarcError]) -> None:
    problem = {"type": kind, "detail": "\x1b]0;title\x07" + "x" * 10_000}
    sent = json_answer(problem, status, Content_Type="application/problem+json")
    with (
        scripted(always(sent)) as server, WebarchiveClient(server.url) as client, pytest.raises(WebarcError) as raised
    ):  # fmt: skip
        client.domains()
    assert type(raised.value) is error and "\x1b" not in str(raised.value) and len(str(raised.value)) < 5_000


@pytest.mark.parametrize(
    "sent",
    [
        answer(b"<h1>Bad Gateway", "502 Bad Gateway"),
        answer(b"not json", "502 x", Content_Type="application/problem+json"),
    ],
)
def test_an_error_of_something_in_between_is_one_too(sent: bytes) -> None:
    with scripted(always(sent)) as server, WebarchiveClient(server.url) as client, pytest.raises(Busy, match="502"):
        client.domains()


# == redirects, tokens ================================================================================================


def test_a_redirect_is_followed_to_the_same_server_alone() -> None:
    def script(request: ScriptedRequest) -> Iterator[bytes]:
        if request.target == "/api/v1/domains":
            yield answer(b"", "301 Moved", Location=places.pop(0))
        else:
            yield json_answer([request.target])

    with scripted(always(json_answer(["elsewhere"]))) as other, scripted(script) as server:
        with WebarchiveClient(server.url, token="webarc_secret") as client:
            for place in (f"{server.url}archive/domains", "/archive/domains"):
                places = [place]
                assert client.domains() == ["/archive/domains"]
            for place in (other.url, "//127.0.0.1/x", "file:///etc/passwd", f"http://localhost:{server.port}/", "x"):
                places = [place]
                with pytest.raises(WebarcError, match="redirects to"):
                    client.domains()
            places = ["/api/v1/domains"] * 5
            with pytest.raises(WebarcError, match="again and again"):
                client.domains()
        assert other.connections == 0
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer webarc_secret"}


def test_a_token_goes_where_nobody_reads_it() -> None:
    for url in ("http://archive.example.org/", "http://10.0.0.1/", "http://localhost.example.org/"):
        with pytest.raises(UsageError, match="could read a token"):
            WebarchiveClient(url, token="webarc_secret")
        WebarchiveClient(url, token="webarc_secret", token_over_http=True).close()
        WebarchiveClient(url, token="").close()
    for url in ("https://archive.example.org/", "http://localhost:8620/", "http://127.0.0.7/", "http://[::1]:80/"):
        WebarchiveClient(url, token="webarc_secret").close()
    for token in ("secret word", "secret\nword", "secretä", "secret" * 2_000):
        with pytest.raises(UsageError, match="no token") as raised:
            WebarchiveClient("https://archive.example.org/", token=token)
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://", "https:///x", "http://anna:secret@host/", "http://host:99999/", "http://host/?a=b", "http://host/#a",
        "http://host/\r\nX: y", "http://ho st/", "http://host/" + "x" * 3_000,
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        WebarchiveClient(url)


def test_a_token_is_for_servers_and_readers_are_for_directories(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        WebarchiveClient(tmp_path, token="webarc_x")
    with pytest.raises(UsageError):
        WebarchiveClient("https://archive.example.org/", reader="")


# == client file ======================================================================================================


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("WEBARC_TOKEN", raising=False)
    return tmp_path / "webarcfs.toml"


def test_the_server_is_in_a_file(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/Cl-1/: its URL, and a file with the token for it, which goes to no other server."""
    token = settings.with_name("token")
    token.write_text("webarc_secret\n")
    token.chmod(0o600)
    with scripted(always(json_answer(["a"]))) as server, scripted(always(json_answer(["b"]))) as other:
        settings.write_text(f'[client]\nurl = "{server.url}"\ntoken_file = "token"\n')
        for place in (None, server.url):
            with WebarchiveClient(place) as client:
                assert client.domains() == ["a"]
        with WebarchiveClient(server.url, token="") as client:
            assert client.domains() == ["a"]
        monkeypatch.setenv("WEBARC_TOKEN", "webarc_other")
        with WebarchiveClient() as client, WebarchiveClient(other.url) as elsewhere:
            assert (client.domains(), elsewhere.domains()) == (["a"], ["b"])
        monkeypatch.delenv("WEBARC_TOKEN")
        with WebarchiveClient(other.url) as elsewhere:
            assert elsewhere.domains() == ["b"]
    assert [request.headers.get("authorization") for request in server.requests] == [
        "Bearer webarc_secret", "Bearer webarc_secret", None, "Bearer webarc_other",
    ]  # fmt: skip
    assert [request.headers.get("authorization") for request in other.requests] == ["Bearer webarc_other", None]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[client", "not TOML"),
        ("client = 5", "it is a section"),
        ("[client]\n", "client.url: it is missing"),
        ("[client]\nurl = 5", "5 is no text"),
        ('[client]\nurl = "https://x/"\ntokenfile = "x"', "client.tokenfile: there is no such setting"),
        ('[client]\nurl = "https://x/"\ntoken_file = "none"', "none: No such file or directory"),
        ('[client]\nurl = "https://x/"\ntoken_file = "open"', "others may read it"),
        ('[client]\nurl = "https://x/"\ntoken_file = "empty"', "is empty"),
    ],
)
def test_faults_of_the_file_are_named(settings: Path, text: str, fault: str) -> None:
    for name, mode in (("open", 0o644), ("empty", 0o600)):
        settings.with_name(name).write_text("")
        settings.with_name(name).chmod(mode)
    settings.write_text(text)
    with pytest.raises(SettingsError, match=fault):
        WebarchiveClient()


def test_without_a_file_an_archive_must_be_named(settings: Path) -> None:
    with pytest.raises(UsageError, match="name an archive"):
        WebarchiveClient()
    settings.write_text("[other]\n")
    with pytest.raises(UsageError, match="name an archive"):
        WebarchiveClient()


# == writing ==========================================================================================================


ABOUT = json_answer({"version": "1", "format": 3, "can": ["read", "add"], "person": "anna"})
WRITTEN = f'"{blob_id(b"42")}"'
TAKEN = json_answer(
    {"type": "urn:webarcfs:error:Exists", "detail": "it is there"}, "412 Precondition Failed",
    Content_Type="application/problem+json", ETag=WRITTEN,
)  # fmt: skip


def _write(client: WebarchiveClient) -> None:
    with client.open_write(document("a.html"), "more/words.txt") as stream:
        stream.write(b"42")


def test_a_file_is_sent_when_it_is_whole() -> None:
    script = in_turn(ABOUT, listing("data.html"), answer(b"", "201 Created", ETag=WRITTEN))
    with scripted(script) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(ValueError, match="mine"), client.open_write(document("a.html"), "half.txt") as stream:
            stream.write(b"half")
            raise ValueError("mine")
        assert [request.method for request in server.requests] == ["GET", "GET"]
    script = in_turn(ABOUT, listing("data.html"), answer(b"", "201 Created", ETag=WRITTEN))
    with scripted(script) as server, WebarchiveClient(server.url) as client:
        _write(client)
    sent = server.requests[-1]
    assert (sent.method, sent.target) == ("PUT", f"/api/v1/files/{TAG}/a.html?name=more%2Fwords.txt")
    assert (sent.headers["if-none-match"], sent.body) == ("*", b"42")


def test_a_lost_answer_to_a_file_is_no_failure() -> None:
    """It is sent once more, and what is there by then is what was sent; else somebody else was first."""
    with (
        scripted(in_turn(ABOUT, listing("data.html"), [None], TAKEN)) as server, WebarchiveClient(server.url) as client
    ):  # fmt: skip
        _write(client)
        assert [request.method for request in server.requests] == ["GET", "GET", "PUT", "PUT"]
    other = TAKEN.replace(WRITTEN.encode(), f'"{blob_id(b"43")}"'.encode())
    for answers in ([[None], other], [TAKEN]):
        with (
            scripted(in_turn(ABOUT, listing("data.html"), *answers)) as server,
            WebarchiveClient(server.url) as client,
            pytest.raises(Exists),
        ):
            _write(client)


def test_a_name_that_is_taken_is_told_before_anything_is_written() -> None:
    with (
        scripted(in_turn(ABOUT, listing("data.html", "note"))) as server,
        WebarchiveClient(server.url) as client,
        pytest.raises(Exists),
        client.open_write(document("a.html"), "note"),
    ):
        raise AssertionError("it is not entered")


def test_a_node_is_sent_once() -> None:
    with scripted(in_turn(ABOUT, [None])) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(Busy):
            client.add_data(document("a.html"), "{urn:x}words", "42")
        assert [request.method for request in server.requests] == ["GET", "POST"]
    sent = server.requests[-1]
    assert sent.target == f"/api/v1/nodes/{TAG}/a.html?name=%7Burn%3Ax%7Dwords"
    assert b">42</" in sent.body and sent.headers["content-type"] == "application/xml"


def test_a_server_that_only_reads_takes_nothing() -> None:
    with scripted(always(json_answer({"can": ["read"]}))) as server, WebarchiveClient(server.url) as client:
        with pytest.raises(NotPermitted, match="takes no additions"):
            _write(client)
        with pytest.raises(NotPermitted, match="takes no additions"):
            client.add_data(document("a.html"), "words", "42")
        assert {request.target for request in server.requests} == {"/api/v1/"}


# == news =============================================================================================================


def tags(*days: int) -> list[str]:
    return [f"2021-03-{day:02}T12:00:00@{DOMAIN}" for day in days]


class Events:
    """A feed: JSON lines of what there is, and a stream that is cut after some events."""

    def __init__(self, *there: str) -> None:
        self.feed = list(there)
        self.at_once = 2
        self.streams: list[str] = []
        self.gone: set[str] = set()

    def __call__(self, request: ScriptedRequest) -> Iterator[bytes | None]:
        since = request.headers.get("last-event-id") or request.target.partition("since=")[2].replace(
            "%3A", ":"
        ).replace("%40", "@")
        if since in self.gone or (since and since not in self.feed):
            yield json_answer({"type": "urn:webarcfs:error:NotFound"}, "404 x", Content_Type="application/problem+json")
            return
        there = self.feed[self.feed.index(since) + 1 if since else 0 :]
        if "event-stream" not in request.headers.get("accept", ""):
            yield rows_answer(["commitTag"], *([tag] for tag in there), {"end": True, "rows": len(there)})
            return
        self.streams.append(since)
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        for tag in there[: self.at_once]:
            event = f": comment\nid: {tag}\r\nevent: snapshot\ndata: {tag}\n\n".encode()
            for part in (event[:20], event[20:]):
                yield b"%x\r\n%s\r\n" % (len(part), part)
        yield None


def test_news_are_resumed_where_they_were_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """/Cl-5/: none twice, none missing, in order."""
    monkeypatch.setattr("webarcfs.client.event_stream._PAUSES", (0.01,))
    events = Events(*tags(1, 2))
    received: list[str] = []
    late: list[str] = []
    with scripted(events) as server, WebarchiveClient(server.url, interval=0.01) as client:
        client.add_observer(lambda new: received.extend(map(str, new)))
        events.feed += tags(*range(3, 20))
        eventually(lambda: received == tags(*range(3, 20)), PATIENCE)
        client.add_observer(lambda new: late.extend(map(str, new)), since=tags(1)[0])
        eventually(lambda: late == tags(*range(2, 20)), PATIENCE)
    assert received == tags(*range(3, 20)) and late == tags(*range(2, 20))
    assert [since for since in events.streams if since != tags(19)[0]] == tags(*range(2, 19, 2))


def test_a_thousand_tags_of_a_server_come_in_order_whatever_the_observer_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """/Cl-5/: it fails now and then, and the stream is cut again and again."""
    monkeypatch.setattr("webarcfs.client.event_stream._PAUSES", (0.01,))
    events = Events(*tags(1))
    events.at_once = 37
    expected = [str(CommitTag(TAG.crawl_time + timedelta(hours=number), DOMAIN)) for number in range(1, 1001)]
    received: list[str] = []
    moods = iter([True, False] * 500)

    def moody(new: list[CommitTag]) -> None:
        if len(new) % 3 == 1 and next(moods, False):
            raise OSError("not now")
        received.extend(map(str, new))

    with scripted(events) as server, WebarchiveClient(server.url, interval=0.01) as client:
        client.add_observer(moody)
        events.feed += expected
        eventually(lambda: len(received) >= 1_000, PATIENCE)
    assert received == expected


def test_news_go_on_when_the_last_one_was_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webarcfs.client.event_stream._PAUSES", (0.01,))
    events = Events(*tags(1))
    received: list[str] = []
    with scripted(events) as server, WebarchiveClient(server.url, interval=0.01) as client:
        client.add_observer(lambda new: received.extend(map(str, new)))
        events.feed += tags(2, 3)
        eventually(lambda: received == tags(2, 3), PATIENCE)
        events.feed.remove(tags(3)[0])
        events.feed += tags(4)
        eventually(lambda: received == tags(2, 3, 4), PATIENCE)


def test_a_feed_without_a_tag_begins_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webarcfs.client.event_stream._PAUSES", (0.01,))
    events = Events()
    received: list[str] = []
    with scripted(events) as server, WebarchiveClient(server.url, interval=0.01) as client:
        client.add_observer(lambda new: received.extend(map(str, new)))
        events.feed += tags(1, 2, 3)
        eventually(lambda: received == tags(1, 2, 3), PATIENCE)
        with pytest.raises(NotFound):
            client.add_observer(lambda _: None, since=tags(9)[0])


def test_closing_ends_a_stream_that_is_silent() -> None:
    begun = threading.Event()

    def script(request: ScriptedRequest) -> Iterator[bytes]:
        if "event-stream" not in request.headers.get("accept", ""):
            yield rows_answer(["commitTag"], tags(1), {"end": True, "rows": 1})
            return
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        begun.set()

    with scripted(script) as server:
        with WebarchiveClient(server.url) as client:
            client.add_observer(lambda _: None)
            assert begun.wait(PATIENCE)
        assert not [thread for thread in threading.enumerate() if thread.name in ("news", "events")]


# == dependencies =====================================================================================================


def test_a_servers_client_needs_the_standard_library_alone() -> None:
    program = (
        "import sys; from webarcfs.client import WebarchiveClient\n"
        "with WebarchiveClient(sys.argv[1]) as client: print(client.domains(), client.select())\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    rows = rows_answer(COLUMNS, row("a"), {"end": True, "rows": 1})
    script = {"/api/v1/domains": json_answer(["a"])}
    with scripted(lambda request: iter([script.get(request.target, rows)])) as server:
        done = subprocess.run(
            [sys.executable, "-c", program, server.url], capture_output=True, text=True, check=True, timeout=PATIENCE
        )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("['a'] [MetaData(")
    assert not {"httpx", "pygit2", "lxml", "starlette", "tantivy", "requests"} & set(lines[-1].split())
