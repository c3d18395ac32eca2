"""Answers paths of replay from a record, in this process: the room's own code, with that record open alone.

The answers are those of the built-in engine, as a preview of the desk shows them before a release. They need the
libraries of the room: only what needs them imports this module.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from agent.steps.replay_camera import LARGEST_BODY, REPLAY, ServedAnswer
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound
from webarcfs.room.opened import OpenedServices
from webarcfs.room.pages import archived
from webarcfs.room.replay.replay_url import FRAMES, Replay, parse
from webarcfs.room.visit import Origins, Shared, Visit
from webarcfs.web.answering import Answering


class RecordReplay:
    """Replay of one record. `close` it after the last answer."""

    def __init__(self, archive: Archive, record: str) -> None:
        self._services = OpenedServices(Shared(archive), record, of_one_thread=False)
        self._lock = threading.Lock()
        self._answering = Answering()
        self._endpoint = self._answering.endpoint(self._answer)

    async def serve(self, target: str, byte_range: str) -> ServedAnswer:
        """Return the answer to a path with its query; `byte_range` is the field Range, empty for all.

        A body that is longer than the browser gets is not read to its end.
        """
        path, _, query = target.partition("?")
        host = REPLAY.partition("://")[2]
        headers = [(b"host", host.encode())]
        if byte_range:
            headers.append((b"range", byte_range.encode("latin-1", "replace")))
        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("latin-1", "replace"),
            "query_string": query.encode("latin-1", "replace"),
            "headers": headers,
            "client": None,
            "server": (host, 80),
        }
        heads: list[Message] = []
        body = bytearray()
        has_enough = asyncio.Event()

        async def receive() -> Message:
            await has_enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                heads.append(message)
            elif not has_enough.is_set():
                body.extend(message.get("body", b""))
                if len(body) > LARGEST_BODY:
                    has_enough.set()

        await self._endpoint(scope, receive, send)
        if not heads:
            return ServedAnswer(500, (), b"")
        fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in heads[0]["headers"])
        return ServedAnswer(int(heads[0]["status"]), fields, bytes(body))

    async def close(self) -> None:
        """Take no further requests, and close the databases."""
        await self._answering.close()
        with self._lock:
            self._services.close()

    def _answer(self, request: Request) -> Response:
        with self._lock:  # the services are for one thread at a time
            services = self._services
            services.look()
            visit = Visit(request, services.gate.reader, "en", services, Origins(base=REPLAY), lambda *_: "")
            asked = parse(visit.raw_path, visit.query)
            if not isinstance(asked, Replay) or asked.modifier in FRAMES:
                raise NotFound("there is no such page")
            return archived.answer(visit, asked)
