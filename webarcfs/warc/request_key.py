"""The URL under which the answer to a POST, PUT, PATCH or DELETE is archived, and asked for again. Pure.

An archive finds captures by URL, and such an answer depends on the body of its request as well. The programs of the
field (pywb, warcio.js, cdxj-indexer, jwarc) therefore append method and body to the URL, as if it were a GET:

    POST http://e.org/api  q=alpha                  http://e.org/api?__wb_method=POST&q=alpha
    POST http://e.org/api  {"q": "alpha", "n": 1}   http://e.org/api?__wb_method=POST&q=alpha&n=1
    PUT  http://e.org/api  plain text               http://e.org/api?__wb_method=PUT&__wb_post_data=cGxhaW4gdGV4dA==

| body | what is appended |
|---|---|
| none | nothing but the method |
| `application/x-www-form-urlencoded` | the body as it is |
| `application/json`, and `text/plain` that is JSON | the leaves as `name=value`; the second `name` is `name.2_` |
| other text | `__wb_post_data=` and the body in base64 |

Import and replay call the same function, so their keys are equal. Fields that are named as tokens against forged
requests are left out: their values differ each time. A key has a bounded length. What would be longer is cut, and has
the digest of the whole: pywb only cuts it there, and takes what differs later for the same.

The convention cannot tell `{"a": {}}` from `{"a": []}`, nor `1` from `"1"`, and has no bodies with files. Bodies that
are multipart, binary or large are therefore refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical

#: The methods whose answers have such a key. The answer to HEAD or OPTIONS is no document.
METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
#: Longest body in bytes that becomes a key.
LONGEST_BODY: Final = 16_384
#: Longest key in characters: replay asks for it by a path, which has a bound of its own.
LONGEST_KEY: Final = 7_900
#: Characters of a body in a key, from which on it is cut; pywb and jwarc cut there.
_LONGEST_QUERY: Final = 4_096
#: Levels of JSON that are read. Python's own bound depends on how deep its caller is.
_DEEPEST: Final = 100

#: Names of parameters of a key.
METHOD: Final = "__wb_method"
_DATA: Final = "__wb_post_data"
_DIGEST: Final = "__wb_digest"

_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"
_PLAIN: Final = "text/plain"
#: Types of text beside `text/…`.
_TEXTS: Final = frozenset({
    _FORM, _JSON, "application/graphql", "application/xml", "application/javascript", "application/x-ndjson",
    "application/x-javascript", "application/ecmascript", "application/csp-report", "application/sql",
})  # fmt: skip
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}")
#: What a query has as it is; all other bytes are escaped.
_TO_ESCAPE: Final = re.compile(rb"[^!\"$-~]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_EXPONENT: Final = re.compile(r"e([+-])0*(?=[0-9])")
_TOKEN: Final = re.compile(r"csrf|xsrf")
#: Further names of tokens, without their punctuation: Rails, ASP.NET, Drupal, WordPress.
_TOKENS: Final = frozenset({
    "authenticitytoken", "requestverificationtoken", "antiforgerytoken", "formtoken", "wpnonce", "ajaxnonce",
})  # fmt: skip
#: Names of tokens as they are written: Laravel.
_TOKENS_AS_WRITTEN: Final = frozenset({"_token"})
_PUNCTUATION: Final = str.maketrans("", "", "-_.[]")
_KEY: Final = re.compile(rf"[?&]{METHOD}=({'|'.join(METHODS)})(?:&(.*))?\Z", re.DOTALL)


class KeyFault(StrEnum):
    """Why a request has no key: one line for people."""

    METHOD = "requests of this method have no answer that is archived"
    LONG = f"the body of the request has more than {LONGEST_BODY} bytes, or its URL is too long"
    MULTIPART = "the body of the request is multipart"
    BINARY = "the body of the request is no text"
    URL = "the URL of the request cannot be archived"


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The key of a request: a canonical `url`; `method` in capitals; `mime` without parameters, empty for none."""

    url: str
    method: str
    mime: str


@dataclass(frozen=True, slots=True)
class KeyParts:
    """A key taken apart: the URL that was requested, the method, and what stands for the body."""

    url: str
    method: str
    query: str


def key_of(method: str, url: str, content_type: str, body: bytes) -> RequestKey | KeyFault:
    """Return the key of a request for `url`, which need not be canonical, or why it has none; raises nothing.

    `body` is without transfer codings.
    """
    if method not in METHODS:
        return KeyFault.METHOD
    mime = mime_of(content_type)
    if (fault := fault_of(mime, len(body))) is not None:
        return fault
    query = _query(mime, body)
    if isinstance(query, KeyFault):
        return query
    try:
        plain = canonical(url).removesuffix("?")
        if parts_of(plain) is not None:
            return KeyFault.URL
        separator = "&" if "?" in plain else "?"
        whole = canonical(f"{plain}{separator}{METHOD}={method}{f'&{query}' if query else ''}")
    except UrlRefused:
        return KeyFault.URL
    key = _shortened(whole, len(f"{plain}?{METHOD}={method}&"))
    return RequestKey(key, method, mime) if len(key) <= LONGEST_KEY else KeyFault.LONG


def fault_of(mime: str, size: int) -> KeyFault | None:
    """Return why a body of this type and size has no key, before it is read; None if nothing is known against it."""
    if size > LONGEST_BODY:
        return KeyFault.LONG
    if mime.startswith("multipart/"):
        return KeyFault.MULTIPART
    is_text = not mime or mime.startswith("text/") or mime in _TEXTS or mime.endswith(("+json", "+xml"))
    return None if is_text or not size else KeyFault.BINARY


def mime_of(content_type: str) -> str:
    """Return the media type that a Content-Type names, in lower case; empty where it names none."""
    mime = content_type.partition(";")[0].strip().lower()
    return mime if _TYPE.fullmatch(mime) else ""


def parts_of(key: str) -> KeyParts | None:
    """Return the parts of a key; None for a URL that is none. The first `__wb_method` counts."""
    match = _KEY.search(key)
    return None if match is None else KeyParts(key[: match.start()], match[1], match[2] or "")


def is_canonical(url: str) -> bool:
    """Return whether a URL is one that the archive could have."""
    try:
        return canonical(url) == url
    except UrlRefused:
        return False


def request_body(parts: KeyParts, mime: str) -> tuple[bytes, str]:
    """Return a body whose key this is, and its type: the same fields, without tokens and without the types of leaves.

    The leaves of JSON become one object of strings. Fields whose type is not known are those of a form. Base64 of no
    known type has none. A key that was cut has the body that is left of it.
    """
    if parts.query.startswith(f"{_DATA}="):
        text = unquote_plus(parts.query.partition("=")[2].partition("&")[0].replace("+", "%2B"))
        text = text[: len(text) - (len(text) % 4 if f"&{_DIGEST}=" in parts.query else 0)]
        try:
            return base64.b64decode(text), mime
        except ValueError:
            return b"", mime
    if not parts.query or mime not in (_JSON, _PLAIN):
        return parts.query.encode("ascii", "replace"), mime or _FORM
    pairs = [parameter.partition("=")[::2] for parameter in parts.query.split("&")]
    leaves = {unquote_plus(name): unquote_plus(value) for name, value in pairs}
    if len(leaves) < len(pairs):  # `a.2_` may be a name, and the second `a`
        return parts.query.encode("ascii", "replace"), _FORM
    return json.dumps(leaves, ensure_ascii=False).encode("utf-8", "replace"), mime


def is_token(name: str) -> bool:
    """Return whether a field is named as a token against forged requests."""
    plain = name.lower().translate(_PUNCTUATION)
    return name in _TOKENS_AS_WRITTEN or plain in _TOKENS or _TOKEN.search(plain) is not None


# == bodies ===========================================================================================================


def _query(mime: str, body: bytes) -> str | KeyFault:
    """Return what stands for a body."""
    if not body:
        return ""
    if mime == _FORM:
        return "&".join(_fields(body))
    if mime in (_JSON, _PLAIN) and (leaves := _leaves_of(body)) is not None:
        return "&".join(leaves)
    if not mime and not _is_text(body):
        return KeyFault.BINARY
    return f"{_DATA}={base64.b64encode(body).decode()}"


def _is_text(body: bytes) -> bool:
    try:
        return "\0" not in body.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _fields(body: bytes) -> Iterator[str]:
    """Yield the fields of a form as they are, but for tokens."""
    text = _TO_ESCAPE.sub(lambda match: b"%%%02X" % match[0][0], body).decode("ascii")
    for field in text.split("&"):
        if not is_token(unquote_plus(field.partition("=")[0])):
            yield field


def _leaves_of(body: bytes) -> list[str] | None:
    """Return the leaves of JSON as `name=value`; None for what is no JSON."""
    try:
        text = body.decode("utf-8-sig")
        if _depth(text) > _DEEPEST:
            return None
        # A number of thousands of digits stays text: Python refuses to read it.
        value = json.loads(text, parse_int=str, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    times: dict[str, int] = {}
    leaves = []
    for name, leaf in _walk(value, ""):
        if is_token(name):
            continue
        times[name] = times.get(name, 0) + 1
        numbered = name if times[name] == 1 else f"{name}.{times[name]}_"
        leaves.append(f"{_escaped(numbered)}={_escaped(leaf)}")
    return leaves


def _walk(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield the leaves, each with the name nearest to it; elements of a list have that of the list."""
    if isinstance(value, dict):
        for inner, held in value.items():
            yield from _walk(held, inner)
    elif isinstance(value, list):
        for held in value:
            yield from _walk(held, name)
    elif isinstance(value, str):
        yield name, value
    else:
        yield name, "null" if value is None else "true" if value else "false"


def _depth(text: str) -> int:
    """Return how many levels of brackets a text has at most, those in strings apart."""
    deepest = depth = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest


def _number(text: str) -> str:
    """Return a number with a fraction or an exponent as JavaScript writes it; one beyond all bounds as it is."""
    value = float(text)
    if not math.isfinite(value):
        return text
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    if 1e-6 <= abs(value) < 1e-4:
        return f"{Decimal(repr(value)):f}"
    return _EXPONENT.sub(r"e\1", repr(value))


def _refuse(constant: str) -> str:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _escaped(text: str) -> str:
    return quote_plus(_SURROGATE.sub("�", text))


def _shortened(key: str, begin: int) -> str:
    """Return a key whose body, from `begin` on, is no longer than it may be: cut, with the digest of the whole."""
    query = key[begin:]
    if len(query) <= _LONGEST_QUERY:
        return key
    cut = query[:_LONGEST_QUERY]
    escape = cut.rfind("%", -2)
    digest = hashlib.sha256(query.encode()).hexdigest()
    return f"{key[:begin]}{cut if escape < 0 else cut[:escape]}&{_DIGEST}={digest}"
