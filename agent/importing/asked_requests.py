"""The requests of a WARC file: which response answers which request, and under which URL that response is archived.

A request record may precede or follow its response. One names the other (WARC-Concurrent-To), or both have the same URL
and time. A response counts as one to GET unless a request says otherwise. The answer to a POST, PUT, PATCH or DELETE is
archived under the key of its request (`webarcfs.warc.request_key`); where that has none, it is skipped.

Requests that wait for their responses take bounded memory: a certain number of them, and a certain size of their keys.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Final

from agent.crawl.vocabulary import Reason
from agent.importing.foreign import URL_FIELD, ForeignRecord
from webarcfs.warc import http_response, request_key
from webarcfs.warc.decoding import BadBody, TooBig, decoded
from webarcfs.warc.request_key import KeyFault, RequestKey

#: Requests of other methods than GET that wait for their responses, and bytes of their keys.
_MOST_REQUESTS: Final = 10_000
_MOST_BYTES: Final = 8 << 20
_METHOD: Final = re.compile(rb"([A-Z]{1,32}) ")
#: A head of a response in the place of the first line of a request: the fields below are read alike.
_FIRST_LINE: Final = b"HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The fields that relate a request and its response (ISO 28500, WARC-Concurrent-To)."""

    own: str
    other: str
    uri: str
    date: str

    @classmethod
    def of(cls, record: ForeignRecord) -> Exchange:
        """Return the fields of a record."""
        get = record.fields.get
        return cls(
            get("warc-record-id", "").strip("<> "),
            get("warc-concurrent-to", "").strip("<> "),
            get("warc-target-uri", "").strip("<> "),
            get("warc-date", ""),
        )

    def is_with(self, answer: Exchange) -> bool:
        """Return whether a request belongs to `answer`: by record id, or by URI and time if neither refers to an id."""
        if self.other or answer.other:
            return (bool(self.other) and self.other == answer.own) or (bool(answer.other) and answer.other == self.own)
        return (self.uri, self.date) == (answer.uri, answer.date)


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """A request of another method than GET: its key, or the fault for which it has none."""

    exchange: Exchange
    asked: RequestKey | KeyFault

    @property
    def size(self) -> int:
        """Bytes of what is kept of its body."""
        return len(self.asked.url) if isinstance(self.asked, RequestKey) else 0


class AskedRequests:
    """The requests of other methods than GET whose responses were not read yet."""

    def __init__(self) -> None:
        self._waiting: deque[AskedRequest] = deque()
        self._bytes = 0
        #: How many of the oldest ones have lost their keys.
        self._without = 0

    def clear(self) -> None:
        """Forget all: another file begins."""
        self._waiting.clear()
        self._bytes = self._without = 0

    def add(self, request: AskedRequest) -> None:
        """Keep a request. Beyond the bounds the oldest ones lose their keys, and then are forgotten."""
        self._waiting.append(request)
        self._bytes += request.size
        if len(self._waiting) > _MOST_REQUESTS:
            self._forget(0)
        while self._bytes > _MOST_BYTES:
            waiting = self._waiting[self._without]
            self._waiting[self._without] = AskedRequest(waiting.exchange, KeyFault.LONG)
            self._bytes -= waiting.size
            self._without += 1

    def take(self, answer: Exchange) -> RequestKey | KeyFault | None:
        """Return what a response answers, by the first request that belongs to it; None for a GET."""
        for at, waiting in enumerate(self._waiting):
            if waiting.exchange.is_with(answer):
                self._forget(at)
                return waiting.asked
        return None

    def _forget(self, at: int) -> None:
        self._bytes -= self._waiting[at].size
        self._without -= at < self._without
        del self._waiting[at]


def read_request(record: ForeignRecord) -> AskedRequest | None:
    """Read a request record; None for a GET, and for a record that is cut off or no request."""
    head = http_response.read_head(record)
    method = _METHOD.match(head)
    if method is None or method[1] == b"GET":
        return None
    exchange = Exchange.of(record)
    asked = _key(record, method[1].decode(), exchange.uri, head)
    return AskedRequest(exchange, asked) if record.whole() else None


def _key(record: ForeignRecord, method: str, uri: str, raw: bytes) -> RequestKey | KeyFault:
    """Return the key of a request whose body follows in its record."""
    head = http_response.parse_head(_FIRST_LINE + raw.partition(b"\n")[2])
    assert head is not None  # it begins with one
    size, most = record.length - len(raw), request_key.LONGEST_BODY
    is_coded = bool(head.get("transfer-encoding") or head.get("content-encoding"))
    fault = request_key.fault_of(request_key.mime_of(head.content_type), 0 if is_coded else size)
    if fault is not None:
        return fault
    try:
        body = b"".join(decoded(record, head, size, url=uri, trust_length=False, most=most))
    except TooBig:
        return KeyFault.LONG
    except BadBody:
        return KeyFault.BINARY
    return request_key.key_of(method, uri, head.content_type, body)


def exported_key(record: ForeignRecord, asked: RequestKey) -> RequestKey:
    """Return the key under which an export of ours had a response; else the one that was made of the request.

    A key that was cut, or has lost its tokens, cannot be made again of what the export says of its request.
    """
    stored = record.fields.get(URL_FIELD, "")
    parts, made = request_key.parts_of(stored), request_key.parts_of(asked.url)
    if parts is None or made is None or (parts.url, parts.method) != (made.url, made.method):
        return asked
    is_sound = len(stored) <= request_key.LONGEST_KEY and request_key.is_canonical(stored)
    return RequestKey(stored, asked.method, asked.mime) if is_sound else asked


def word_of(fault: KeyFault) -> str:
    """Return the annotation of a response that is skipped, since its request has no key."""
    return Reason.METHOD if fault is KeyFault.METHOD else f"{Reason.NO_KEY}{fault.name.lower()}"
