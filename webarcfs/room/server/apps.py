"""What serves a listener's requests: an ASGI app for the room, and one for archived pages if they have their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp

from webarcfs.room.server.options import RoomOptions


async def _nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True)
class RoomApps:
    """The apps of a worker. `replay` is None where `room` is both. `close` is awaited after the last request.

    `source` answers pywb, where that shows archived pages.
    """

    room: ASGIApp
    replay: ASGIApp | None = None
    close: Callable[[], Awaitable[None]] = _nothing
    source: ASGIApp | None = None


#: Makes the apps, once in each worker. It may raise the errors of the family: then the worker does not start.
Make = Callable[[RoomOptions], RoomApps]
