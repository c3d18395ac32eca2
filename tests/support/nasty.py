"""How servers misbehave: each function makes an Answer for `Site.add_nasty`, named after what a client gets to see.

Where one takes a `body`, it is what the server means to send; what arrives is said by the function. Those that end the
connection say so to the server only, as broken servers do.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import math
import random
from collections.abc import Iterator

import brotli

from tests.support.wire import HTML, Answer, Exchange, error_page, head, in_chunks, page, redirect

BODY = b"<html><head><title>nasty</title></head><body>" + b"<p>lorem ipsum dolor sit amet</p>" * 300 + b"</body></html>"

_MEBIBYTE = 1 << 20


# Bodies that are not what the head says


def short_body(body: bytes = BODY, sent: int | None = None) -> Answer:
    """Content-Length counts the whole body; only `sent` bytes (half of it) come, then the end of the connection."""
    cut = body[: len(body) // 2 if sent is None else sent]
    return then_close(_declaring(len(body)) + cut)


def wrong_length(body: bytes = BODY, declared: int | None = None) -> Answer:
    """The body is longer than Content-Length (half of it) says, then the connection ends."""
    return then_close(_declaring(len(body) // 2 if declared is None else declared) + body)


def no_length(said: str, body: bytes = BODY) -> Answer:
    """A Content-Length that is none, and then the whole body."""
    return then_close(head(200, {"Content-Type": HTML, "Content-Length": said}) + body)


def no_length_and_reset(said: str, body: bytes = BODY) -> Answer:
    """A Content-Length that is none, and RST in the middle of the body."""

    def answer(exchange: Exchange) -> None:
        exchange.send(head(200, {"Content-Type": HTML, "Content-Length": said}) + body[: len(body) // 2])
        exchange.wait(0.05)
        exchange.reset()

    return answer


def truncated_gzip(body: bytes = BODY) -> Answer:
    """A gzip stream cut in the middle, with the Content-Length of what is sent: whole for HTTP, broken inside."""
    packed = gzip.compress(body, mtime=0)
    return page(packed[: len(packed) // 2], headers={"Content-Encoding": "gzip"})


def false_gzip(body: bytes = BODY) -> Answer:
    """Plain bytes under `Content-Encoding: gzip`."""
    return page(body, headers={"Content-Encoding": "gzip"})


def broken_chunking(body: bytes = BODY) -> Answer:
    """One good chunk, then something that is no chunk size, then the end of the connection."""
    return then_close(_chunked_head() + b"%x\r\n%b\r\n" % (len(body), body) + b"zz\r\nnot a chunk\r\n")


def cut_chunking(body: bytes = BODY) -> Answer:
    """Good chunks, but the connection ends before the last one: the only sign that something is missing."""
    return then_close(_chunked_head() + b"%x\r\n%b\r\n" % (len(body), body))


def reset(body: bytes = BODY) -> Answer:
    """RST in the middle of the body."""

    def answer(exchange: Exchange) -> None:
        exchange.send(_declaring(len(body)) + body[: len(body) // 2])
        exchange.wait(0.05)  # a reset at once could overtake the bytes
        exchange.reset()

    return answer


def endless(rate: int = 20_000_000, content_type: str = HTML) -> Answer:
    """A chunked body of about `rate` bytes a second that never ends."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})
        piece = b"%x\r\n%b\r\n" % (rate // 20, b"ever on " * (rate // 160) + b"." * (rate // 20 % 8))
        while True:
            exchange.send(piece)
            exchange.wait(0.05)

    return answer


# Connections that fail before there is an answer


def reset_before_head() -> Answer:
    """RST instead of an answer."""
    return Exchange.reset


def close_before_head() -> Answer:
    """The connection ends without a byte."""
    return then_close(b"")


def hang(seconds: float = 3600) -> Answer:
    """Nothing at all for so long, then the end of the connection."""

    def answer(exchange: Exchange) -> None:
        exchange.wait(seconds)
        exchange.keep = False

    return answer


def huge_header(size: int = 200_000, body: bytes = BODY) -> Answer:
    """A head of about `size` bytes, in fields of 1 KB, before a good body."""
    return page(body, headers={f"X-Filler-{number}": "x" * 1000 for number in range(size // 1000)})


# Slow ones


def slow(seconds: float, then: Answer | None = None) -> Answer:
    """Nothing for so long, then a good answer."""
    late = then or page(BODY)

    def answer(exchange: Exchange) -> None:
        exchange.wait(seconds)
        late(exchange)

    return answer


def drip(rate: int = 100, body: bytes = BODY) -> Answer:
    """A good body at `rate` bytes a second."""
    step = math.ceil(rate / 10)

    def answer(exchange: Exchange) -> None:
        exchange.send(_declaring(len(body)))
        for start in range(0, len(body), step):
            exchange.send(body[start : start + step])
            exchange.wait(step / rate)

    return answer


# Refusals


def status(code: int) -> Answer:
    """An error page of that status (no body for 204 and 304)."""
    return error_page(code)


def http_204() -> Answer:
    """No Content."""
    return status(204)


def flaky(times: int, then: Answer | None = None, code: int = 503) -> Answer:
    """`code` that many times, from then on a good answer."""
    return first(times, error_page(code), then or page(BODY))


def too_many_requests(retry_after: int = 1, times: int | None = None, then: Answer | None = None) -> Answer:
    """429 with Retry-After, for ever or so many times."""
    return first(times, error_page(429, {"Retry-After": str(retry_after)}), then or page(BODY))


def redirect_loop() -> Answer:
    """A redirect to itself."""

    def answer(exchange: Exchange) -> None:
        redirect(exchange.request.path)(exchange)

    return answer


def two_locations(first: str, second: str) -> Answer:
    """A redirect with two Locations."""
    fields = f"Location: {first}\r\nLocation: {second}\r\nContent-Length: 0\r\n\r\n"
    return raw(f"HTTP/1.1 302 Found\r\n{fields}".encode())


def redirect_forever() -> Answer:
    """Redirects to an ever new query; for `site.mount(Everywhere(redirect_forever()), at=…)`."""
    numbers = itertools.count(1)

    def answer(exchange: Exchange) -> None:
        redirect(f"{exchange.request.path.partition('?')[0]}?{next(numbers)}")(exchange)

    return answer


def trap() -> Answer:
    """A good page that links to two others below itself; for `site.mount(Everywhere(trap()), at=…)`."""

    def answer(exchange: Exchange) -> None:
        path = exchange.request.path.partition("?")[0].rstrip("/")
        page(f'<title>{path}</title><a href="{path}/1/">one</a> <a href="{path}/2/">two</a>')(exchange)

    return answer


# Good answers that clients get wrong


def chunked(body: bytes = BODY, pieces: int = 7, content_type: str = HTML) -> Answer:
    """A good body in several chunks."""
    step = max(1, math.ceil(len(body) / pieces))
    whole = b"".join(in_chunks(body[start : start + step] for start in range(0, len(body), step)))
    return raw(_chunked_head(content_type) + whole)


def no_content_length(body: bytes = BODY, content_type: str = HTML, version: str = "HTTP/1.0") -> Answer:
    """A good body that ends where the connection ends."""
    return then_close(head(200, {"Content-Type": content_type}, version) + body)


def empty(content_type: str = HTML) -> Answer:
    """200 with Content-Length 0."""
    return page(b"", content_type)


def gzip_body(body: bytes = BODY, content_type: str = HTML) -> Answer:
    """A good body under Content-Encoding gzip, whether the client asked for it or not."""
    return page(gzip.compress(body, mtime=0), content_type, headers={"Content-Encoding": "gzip"})


def brotli_body(body: bytes = BODY, content_type: str = HTML) -> Answer:
    """A good body under Content-Encoding br, whether the client asked for it or not."""
    return page(brotli.compress(body), content_type, headers={"Content-Encoding": "br"})


def set_cookie(cookie: str = "session=1; Path=/", body: bytes = BODY) -> Answer:
    """A good page that sets a cookie; who sends it back shows in `Request.headers`."""
    return page(body, headers={"Set-Cookie": cookie})


def big_body(size: int, seed: int = 0, content_type: str = "application/octet-stream") -> Answer:
    """`size` bytes that are the same every time and never whole in memory: `big_chunks`, `big_sha256`."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(200, {"Content-Type": content_type, "Content-Length": str(size)})
        if exchange.request.method != "HEAD":
            for chunk in big_chunks(size, seed):
                exchange.send(chunk)

    return answer


def big_chunks(size: int, seed: int = 0) -> Iterator[bytes]:
    """The bytes of `big_body`, a mebibyte at a time: noise that zlib cannot shrink, each chunk with its number."""
    noise = random.Random(seed).randbytes(_MEBIBYTE - 8)
    for number, start in enumerate(range(0, size, _MEBIBYTE)):
        yield (number.to_bytes(8, "big") + noise)[: size - start]


def big_sha256(size: int, seed: int = 0) -> str:
    """SHA-256 of `big_body`, in hex."""
    digest = hashlib.sha256()
    for chunk in big_chunks(size, seed):
        digest.update(chunk)
    return digest.hexdigest()


# What they are made of


def _declaring(length: int) -> bytes:
    return head(200, {"Content-Type": HTML, "Content-Length": str(length)})


def _chunked_head(content_type: str = HTML) -> bytes:
    return head(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})


def raw(data: bytes) -> Answer:
    """These very bytes, head included."""
    return lambda exchange: exchange.send(data)


def then_close(data: bytes) -> Answer:
    """These very bytes, head included, then the end of the connection."""

    def answer(exchange: Exchange) -> None:
        exchange.send(data)
        exchange.keep = False

    return answer


def first(times: int | None, refusal: Answer, then: Answer) -> Answer:
    """`refusal` so many times (None: always), then `then`."""
    numbers = itertools.count()

    def answer(exchange: Exchange) -> None:
        (refusal if times is None or next(numbers) < times else then)(exchange)

    return answer
