"""`webarc serve` with another app, which says what it was asked: `python -m tests.room.stub_room ROOM REPLAY|same`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router

from webarcfs.archive.model import errors
from webarcfs.room.server import serving
from webarcfs.room.server.app import RoomApps
from webarcfs.room.server.options import Engine, RoomOptions, ServerOptions, replay_address
from webarcfs.web import limits
from webarcfs.web.answering import Answering, StreamedAnswer, peer
from webarcfs.web.listeners import address

#: Limits by name, as JSON; `fails` is a file in whose presence a worker does not start.
LIMITS, FAILS, NOTES = "STUB_LIMITS", "STUB_FAILS", "STUB_NOTES"


def main() -> None:
    """Serve the addresses of the command line."""
    listen = address(sys.argv[1])
    options = ServerOptions(
        archive=Path.cwd(),
        listen=listen,
        replay_listen=replay_address(sys.argv[2], listen, Engine.BUILT_IN),
        origin=os.environ.get("STUB_ORIGIN", ""),
        replay_origin=os.environ.get("STUB_REPLAY_ORIGIN", ""),
        hosts=tuple(os.environ.get("STUB_HOSTS", "archive.example").split()),
        workers=int(os.environ.get("STUB_WORKERS", "2")),
        access_log=os.environ.get("STUB_LOG", ""),
    )

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    try:
        serving.serve(options, say, make)
    except errors.WebarcError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(errors.exit_code_of(error))


def make(options: RoomOptions) -> RoomApps:
    """The apps: what they answer names the listener."""
    if (fails := os.environ.get(FAILS)) and Path(fails).exists():
        raise errors.SettingsError("webarc.toml", ["it is broken"])
    answering = Answering()

    def app(listener: str) -> Router:
        def echo(request: Request) -> Response:
            raw: bytes = request.scope["raw_path"]
            said: dict[str, Any] = {
                "listener": listener, "path": raw.decode(), "query": request.url.query, "peer": peer(request),
                "headers": dict(request.headers), "worker": os.getpid(), "key": options.key.hex(),
                "origins": [options.origin, options.replay_origin],
            }  # fmt: skip
            return JSONResponse(said)

        return Router(
            [
                Route("/slow/{seconds}", answering.endpoint(slow)),
                Route("/big/{megabytes}", answering.endpoint(big)),
                Route("/fails/{kind}", answering.endpoint(failing)),
                Route("/stuck", stick),
                Route("/own-policy", answering.endpoint(own_policy)),
                Route("/{rest:path}", answering.endpoint(echo)),
            ],
            redirect_slashes=False,
        )

    return RoomApps(app("room"), app("replay") if options.has_two_origins else None, answering.close)


def slow(request: Request) -> Response:
    """An answer that takes a while. The file `slow` beside the notes says that it has begun."""
    Path(os.environ[NOTES]).with_name("slow").touch()
    time.sleep(float(request.path_params["seconds"]))
    return PlainTextResponse("slow")


async def stick(_: Request) -> Response:
    """An answer that never comes, and no other one of its worker."""
    while True:
        time.sleep(1)  # the loop is stuck


def big(request: Request) -> Response:
    """An answer in pieces of 64 kB."""
    return StreamedAnswer(_pieces(int(request.path_params["megabytes"])), media_type="text/plain")


def _pieces(megabytes: int) -> Generator[bytes, None, None]:
    try:
        for _ in range(16 * megabytes):
            yield b"x" * 65_536
    finally:
        with Path(os.environ[NOTES]).open("a", encoding="utf-8") as notes:
            notes.write("closed\n")


def failing(request: Request) -> Response:
    """An error of the family, or another one; or one in an answer that has begun."""
    kind = request.path_params["kind"]
    if kind == "later":
        return StreamedAnswer(_breaking(True))
    if kind == "first":
        return StreamedAnswer(_breaking(False))
    if kind == "OSError":
        raise OSError(5, "secret path")
    raise getattr(errors, kind)("secret path") if hasattr(errors, kind) else ZeroDivisionError("secret path")


def _breaking(later: bool) -> Generator[bytes, None, None]:
    if later:
        yield b"begun"
    raise errors.Busy("secret path")


def own_policy(_: Request) -> Response:
    """An answer with a policy of its own."""
    return PlainTextResponse("x", headers={"Content-Security-Policy": "sandbox"})


for limit, value in json.loads(os.environ.get(LIMITS, "{}")).items():  # workers import this module as well
    setattr(limits, limit, value)
if __name__ == "__main__":
    main()
