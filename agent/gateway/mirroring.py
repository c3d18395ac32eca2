"""What mirrors ask for: blobs by their ids, and git's smart protocol (gitprotocol-http(5)), for fetches alone.

Both need the scope `mirror`: whoever has it gets all that the archive has, also what readers may not see. git answers
itself, by `git upload-pack` on the repository of a domain. A fetch may leave blobs out (`--filter`), and ask for them
later. Refs that are made anew from others, and the forms' keys, stay out. The process ends when its client has gone.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import zlib
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.gateway.askers import Askers
from agent.gateway.uploads import UploadThreads, receive_body
from webarcfs.api.api_request import ApiRequest, decoded, missing
from webarcfs.api.problems import problem_of
from webarcfs.archive.catalogue.tokens import Scope as TokenScope
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import FORMS, PUBLICATIONS
from webarcfs.archive.model.errors import BodyTooLarge, Busy, Damaged, Interrupted, UsageError
from webarcfs.web.answering import Answering, disconnected
from webarcfs.web.ranges import partly

# == blobs ============================================================================================================


_OID: Final = re.compile(r"[0-9a-f]{40}", re.ASCII)
_FOR_EVER: Final = "private, max-age=31536000, immutable"


def send_blob(asked: ApiRequest) -> Response:
    """Return a blob by its id, which is its content for ever."""
    domain, oid = asked.text_segment("domain", "domain"), asked.text_segment("oid", "blob")
    if not _OID.fullmatch(oid):
        raise UsageError("the id of a blob has 40 digits, 0-9 and a-f")
    with missing(f"there is no blob {oid} of {domain}"):
        body = asked.source.blob(domain, oid)  # type: ignore[attr-defined] # of the gateway's source
    fields = [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", "attachment"),
        ("ETag", f'"{oid}"'),
        ("Cache-Control", _FOR_EVER),
    ]
    return asked.answered(partly(asked.request, 200, body.size, body.pieces, fields))


# == git ==============================================================================================================


SERVICE: Final = "git-upload-pack"
#: Fetches at a time, and the longest request of one, whatever it is when it is unpacked.
MOST: Final = 4
REQUEST_BYTES: Final = 64 << 20
_PIECE: Final = 1 << 16
_HELD: Final = 1 << 20


class GitEndpoint:
    """Fetches from the repository of a domain, as an ASGI app. `repository_of` may raise NotFound."""

    def __init__(
        self,
        answering: Answering,
        threads: UploadThreads,
        askers: Askers,
        repository_of: Callable[[str], Path],
        *,
        is_advertising: bool,
    ) -> None:
        self._answering = answering
        self._threads = threads
        self._askers = askers
        self._repository_of = repository_of
        self._is_advertising = is_advertising
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope)
        begun = False
        if self._under_way >= MOST:
            await self._answering.error_page(request, Busy(f"{MOST} fetches run already"), problem_of)(
                scope, receive, send
            )
            return
        self._under_way += 1
        try:
            with tempfile.SpooledTemporaryFile(_HELD) as body:
                path = await self._threads.run(lambda: self._judge(request))
                if not self._is_advertising:
                    unpacked = _Unpacking(body, is_packed=request.headers.get("content-encoding", "") == "gzip")
                    await receive_body(receive, REQUEST_BYTES, unpacked.write, self._threads)
                    body.seek(0)  # writes what is held
                gone = asyncio.ensure_future(disconnected(receive))
                try:
                    async for piece in self._pieces(request, path, body, gone):
                        if not begun:
                            begun = True
                            await send({"type": "http.response.start", "status": 200, "headers": self._headers()})
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                finally:
                    gone.cancel()
                await send({"type": "http.response.body", "body": b""})
        except Interrupted:  # nobody is there to be answered
            return
        except Exception as error:
            if begun:  # the connection is cut, so that the answer is not taken for whole
                self._answering.log(request, error)
                raise
            response = self._answering.error_page(request, error, problem_of)
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
        finally:
            self._under_way -= 1

    def _judge(self, request: Request) -> Path:
        self._askers.of(request).demand(TokenScope.MIRROR)
        if self._is_advertising and request.query_params.get("service") != SERVICE:
            raise UsageError(f"this server is for fetches: ?service={SERVICE}")
        domain = decoded(request.path_params["domain"])
        with missing(f"there is no domain {domain!r}"):
            return self._repository_of(domain)

    def _headers(self) -> Sequence[tuple[bytes, bytes]]:
        kind = "advertisement" if self._is_advertising else "result"
        return [
            (b"content-type", f"application/x-{SERVICE}-{kind}".encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]

    async def _pieces(
        self, request: Request, path: Path, body: IO[bytes], gone: asyncio.Future[None]
    ) -> AsyncIterator[bytes]:
        """Yield what git says. Raises Interrupted, UsageError for what is no request, Damaged where git fails."""
        protocol = request.headers.get("git-protocol", "")
        command, environment = git_command.upload_pack(
            path, protocol, (FORMS, PUBLICATIONS), is_advertising=self._is_advertising
        )
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdin=body.fileno(), stdout=PIPE, stderr=PIPE
        )
        assert process.stdout is not None and process.stderr is not None
        complaint = asyncio.ensure_future(process.stderr.read(_PIECE))
        try:
            if self._is_advertising and protocol != "version=2":
                line = f"# service={SERVICE}\n".encode()
                yield b"%04x%s0000" % (len(line) + 4, line)
            has_answered = self._is_advertising
            while piece := await _read(process, gone):
                has_answered = True
                yield piece
            if await process.wait():
                if not has_answered:
                    raise UsageError("git does not take this request")
                raise Damaged(f"{path}: git upload-pack: {(await complaint).decode('utf-8', 'replace').strip()}")
        finally:
            complaint.cancel()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def _read(process: Process, gone: asyncio.Future[None]) -> bytes:
    """Return the next bytes of git; none at the end. Raises Interrupted if the client has gone."""
    assert process.stdout is not None
    reading = asyncio.ensure_future(process.stdout.read(_PIECE))
    await asyncio.wait((reading, gone), return_when=asyncio.FIRST_COMPLETED)
    if not reading.done():
        reading.cancel()
        raise Interrupted("the client has gone")
    return reading.result()


class _Unpacking:
    """Writes a body that may be packed, bounded in what it unpacks to."""

    def __init__(self, body: IO[bytes], *, is_packed: bool) -> None:
        self._body = body
        self._unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16) if is_packed else None
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write a piece. Raises BodyTooLarge, UsageError for what is not packed."""
        if self._unpacking is not None:
            try:
                data = self._unpacking.decompress(data, REQUEST_BYTES + 1)
            except zlib.error:
                raise UsageError("the body is not gzip") from None
        self._size += len(data)
        if self._size > REQUEST_BYTES:
            raise BodyTooLarge(f"a body of more than {REQUEST_BYTES:,} bytes")
        self._body.write(data)
