"""The keys of requests with a body: the convention of the field, bounded, and URLs that an archive can have."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.urls import canonical
from webarcfs.room.replay.replay_url import Modifier, Replay, parse, replay_path
from webarcfs.warc.request_key import (
    LONGEST_BODY,
    LONGEST_KEY,
    METHODS,
    KeyFault,
    RequestKey,
    is_token,
    key_of,
    parts_of,
    request_body,
)

pytestmark = pytest.mark.pure

URL = "https://e.org/api"
FORM, JSON, TEXT = "application/x-www-form-urlencoded", "application/json", "text/plain"
GRAPHQL = {"query": "{ me { name } }", "variables": {"n": 1}}


def url_of(key: RequestKey | KeyFault) -> str:
    assert isinstance(key, RequestKey)
    return key.url


def query(body: bytes, kind: str = JSON, method: str = "POST", url: str = URL) -> str:
    key = url_of(key_of(method, url, kind, body))
    begin = f"{url}?__wb_method={method}"
    assert key.startswith(begin)
    return key.removeprefix(begin).removeprefix("&")


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (FORM, b"q=alpha&n=1", "q=alpha&n=1"),
        (FORM, b"q=a+b%20c&q=%26", "q=a+b%20c&q=%26"),
        (FORM, b"q=%e4&\xe4=\xff#x y", "q=%E4&%E4=%FF%23x%20y"),
        (f"{JSON}; charset=utf-8", b'{"q": "alpha"}', "q=alpha"),
        (JSON, b'{"abc": "def", "a": 4, "foo": {"bar": "123", "a": "5"}}', "abc=def&a=4&bar=123&a.2_=5"),
        (
            JSON, b'{"abc":"def","some":{"data":"bar","bar":2,"a":3},"a":"4","foo":{"bar":"123","a":"5"}}',
            "abc=def&data=bar&bar=2&a=3&a.2_=4&bar.2_=123&a.3_=5",
        ),
        (
            JSON,
            json.dumps({"type": "event", "id": 44.0, "float": 35.7, "values": [True, False, None],
                        "source": {"type": "component", "id": "a+b&c= d", "values": [3, 4]}}).encode(),
            "type=event&id=44&float=35.7&values=true&values.2_=false&values.3_=null&type.2_=component"
            "&id.2_=a%2Bb%26c%3D+d&values.4_=3&values.5_=4",
        ),
        (JSON, json.dumps(GRAPHQL).encode(), "query=%7B+me+%7B+name+%7D+%7D&n=1"),
        (JSON, b'{"x": 1e-7, "y": 0.00001, "z": 1e21, "w": 1e400}', "x=1e-7&y=0.00001&z=1e%2B21&w=1e400"),
        (JSON, b'\xef\xbb\xbf{"a": "\xc3\xa4\\ud800"}', "a=%C3%A4%EF%BF%BD"),
        (JSON, b"[1, 2]", "=1&.2_=2"),
        (TEXT, b'{"q": "beta"}', "q=beta"),
        (TEXT, b"plain text", "__wb_post_data=cGxhaW4gdGV4dA=="),
        ("application/graphql", b"{ me }", "__wb_post_data=eyBtZSB9"),
        ("", b"x", "__wb_post_data=eA=="),
        (JSON, b'{"a": NaN}', "__wb_post_data=eyJhIjogTmFOfQ=="),
        (JSON, b"not json", "__wb_post_data=bm90IGpzb24="),
        (TEXT, b"", ""),
    ],
)  # fmt: skip
def test_the_key_is_that_of_the_field(kind: str, body: bytes, expected: str) -> None:
    """S-post-1. The cases with several names are those by which warcio.js is tested."""
    assert query(body, kind) == expected
    for method in METHODS:
        key = key_of(method, URL, kind, body)
        assert isinstance(key, RequestKey) and key.method == method


def test_a_query_of_the_url_stays_before_the_body() -> None:
    for url in ("http://e.org/a?b=1", "HTTP://E.org:80/a?b=1#x"):
        assert url_of(key_of("PUT", url, FORM, b"c=2")) == "http://e.org/a?b=1&__wb_method=PUT&c=2"
    for url in ("http://e.org", "http://e.org/?"):
        assert url_of(key_of("DELETE", url, "", b"")) == "http://e.org/?__wb_method=DELETE"


@pytest.mark.parametrize(
    ("method", "url", "kind", "body", "fault"),
    [
        ("GET", URL, TEXT, b"", KeyFault.METHOD), ("OPTIONS", URL, TEXT, b"", KeyFault.METHOD),
        ("post", URL, TEXT, b"", KeyFault.METHOD), ("POST", URL, TEXT, bytes(LONGEST_BODY + 1), KeyFault.LONG),
        ("POST", f"{URL}?{'x' * LONGEST_KEY}", TEXT, b"", KeyFault.LONG),
        ("POST", URL, "multipart/form-data; boundary=x", b"--x", KeyFault.MULTIPART),
        ("POST", URL, "application/octet-stream", b"x", KeyFault.BINARY), ("POST", URL, "", b"\0", KeyFault.BINARY),
        ("POST", URL, "", b"\xff", KeyFault.BINARY), ("POST", "ftp://e.org/", TEXT, b"", KeyFault.URL),
        ("POST", f"{URL}?__wb_method=PUT&a", TEXT, b"", KeyFault.URL),
    ],
)  # fmt: skip
def test_what_has_no_key_says_why(method: str, url: str, kind: str, body: bytes, fault: KeyFault) -> None:
    """S-post-1."""
    assert key_of(method, url, kind, body) is fault


@pytest.mark.parametrize(
    "name",
    ["csrf", "_csrf", "csrf_token", "csrfmiddlewaretoken", "CSRFToken", "x-xsrf-token", "authenticity_token",
     "__RequestVerificationToken", "_token", "_wpnonce", "form_token", "YII_CSRF_TOKEN", "user[csrf]"],
)  # fmt: skip
def test_tokens_against_forged_requests_are_left_out(name: str) -> None:
    """S-post-2."""
    assert is_token(name)
    for value in ("1", "another"):
        assert query(f"a=1&{name}={value}&b=2".encode(), FORM) == "a=1&b=2"
        assert query(json.dumps({"a": 1, name: value, "in": {name: value}, "b": 2}).encode()) == "a=1&b=2"


@pytest.mark.parametrize("name", ["token", "page_token", "access", "nonce", "q", "form", "tokens"])
def test_other_fields_are_not_taken_for_tokens(name: str) -> None:
    assert not is_token(name)
    assert query(f"{name}=1".encode(), FORM) == f"{name}=1"


def test_a_long_body_is_cut_with_the_digest_of_the_whole() -> None:
    """S-post-1. pywb alone cuts it, and takes two bodies for one that differ later."""
    bodies = [json.dumps({"query": "ä" * 4_000, "n": n}, ensure_ascii=False).encode() for n in (1, 2)]
    keys = [url_of(key_of("POST", URL, JSON, body)) for body in bodies]
    assert keys[0] != keys[1] and keys[0][:4_000] == keys[1][:4_000]
    for key in keys:
        assert len(key) < LONGEST_KEY and canonical(key) == key
        assert "&__wb_digest=" in key


_URLS = st.sampled_from([URL, "http://e.org", "http://e.org/a?b=1", "http://e.org/ä b?x=%2f", "ftp://x", "http://"])
_KINDS = st.sampled_from([FORM, JSON, TEXT, "", "text/html", "application/octet-stream", "multipart/x", "a/b;c", "x"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ), max_leaves=30,
)  # fmt: skip
_BODIES = st.one_of(
    st.binary(max_size=300),
    _VALUES.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8))).map(
        lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "surrogatepass")
    ),
)


@given(st.sampled_from((*METHODS, "GET", "X")), _URLS | st.text(), _KINDS | st.text(max_size=20), _BODIES)
def test_a_key_is_a_url_that_can_be_archived_and_asked_for(method: str, url: str, kind: str, body: bytes) -> None:
    """S-post-1. Nothing is raised, and the same request has the same key."""
    key = key_of(method, url, kind, body)
    assert key == key_of(method, url, kind, body)
    if isinstance(key, KeyFault):
        return
    assert canonical(key.url) == key.url and arc_path(key.url)
    asked = parse(replay_path("20260101000000", Modifier.AS_SENT, key.url).encode())
    assert isinstance(asked, Replay) and asked.url == key.url
    parts = parts_of(key.url)
    assert parts is not None and parts.method == method


@given(st.sampled_from(METHODS), st.sampled_from([FORM, JSON, TEXT, "", "text/html"]), _BODIES)
def test_the_body_that_a_key_tells_has_the_same_key(method: str, kind: str, body: bytes) -> None:
    """S-post-4. It is what an export writes, so that other programs make the same key."""
    key = key_of(method, URL, kind, body)
    if isinstance(key, KeyFault):
        return
    parts = parts_of(key.url)
    assert parts is not None
    told, mime = request_body(parts, key.mime)
    assert url_of(key_of(method, parts.url, mime, told)) == key.url


def _deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    "body",
    [
        b"[" * LONGEST_BODY, b"[" * (LONGEST_BODY // 2) + b"]" * (LONGEST_BODY // 2), _deep(2_000), _deep(99),
        b"[" + b"1," * 8_000 + b"1]", b'{"a":' + b"9" * 16_000 + b"}", b'{"a":1e' + b"9" * 16_000 + b"}",
        b"{" + b",".join(b'"a":%d' % n for n in range(1_500)) + b"}", b'"' + b"\\" * 16_000, b'{"' + b"a" * 16_000,
        b"&" * LONGEST_BODY, b"=" * LONGEST_BODY, b"%" * LONGEST_BODY, b'{"a":"' + b"\\ud800" * 2_500 + b'"}',
        b"[" + b"{}," * 5_000 + b"{}]", b"\xff" * LONGEST_BODY, b"[1." + b"1" * 16_000 + b"]",
    ],
    ids=range(17),
)  # fmt: skip
@pytest.mark.parametrize("kind", [FORM, JSON, TEXT])
def test_hostile_bodies_take_a_moment(body: bytes, kind: str) -> None:
    """S-post-1."""
    begun = time.process_time()
    key = url_of(key_of("POST", URL, kind, body))
    assert time.process_time() - begun < 0.5
    assert len(key) <= LONGEST_KEY and canonical(key) == key


def test_a_million_leaves_are_refused_unread() -> None:
    body = b"[" + b"1," * 1_000_000 + b"1]"

    def took(read: Callable[[], object]) -> float:
        """Processor seconds, the fewest of three times."""
        spans = []
        for _ in range(3):
            begun = time.process_time()
            read()
            spans.append(time.process_time() - begun)
        return min(spans)

    assert key_of("POST", URL, JSON, body) is KeyFault.LONG
    assert took(lambda: key_of("POST", URL, JSON, body)) < took(lambda: json.loads(body)) / 10


def test_how_deep_its_caller_is_does_not_change_a_key() -> None:
    body, rng = _deep(99), random.Random(1)

    def below(levels: int) -> str:
        return below(levels - 1) if levels else url_of(key_of("POST", URL, JSON, body))

    assert len({below(rng.randrange(600)) for _ in range(5)}) == 1
