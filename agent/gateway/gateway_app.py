"""The table of the gateway's routes, and the process that serves them.

The routes are those of the API, each for persons whose token has the scope `read`, and a few more: to add, for the
scope `add`. Whoever asks is judged before anything else, at each route alike. So nothing is answered without a token
but `/healthz`, which says no more than whether the archive can be read.

`webarc-agent gateway` has one listener, one event loop, a few threads for its handlers, and the writer of a mount. More
than one process may run for an archive, and mounts beside them. SIGTERM and SIGINT end it after the requests that run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp

from agent.gateway.askers import Asker, Askers
from agent.gateway.mirroring import GitEndpoint, send_blob
from agent.gateway.uploads import Begin, UploadEndpoint, Uploads, UploadThreads
from agent.gateway.view_source import GatewaySource
from webarcfs.api import routes as api
from webarcfs.api.api_request import ApiRequest
from webarcfs.api.changes import NewsStreams
from webarcfs.api.problems import problem_of
from webarcfs.api.routes import PREFIX, ApiRoute
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotShown, WebarcError
from webarcfs.archive.system import processes
from webarcfs.web.access_log import AccessLog, Logged
from webarcfs.web.answering import Answering
from webarcfs.web.connections import (
    HostRules,
    ProcessServer,
    RequestRules,
    RestOfBody,
    SecurityHeaders,
    ServedApps,
    host_names,
    room_headers,
    server_config,
)
from webarcfs.web.health import PATH as HEALTH_PATH
from webarcfs.web.health import Health
from webarcfs.web.listeners import Address, bind, hosts_of, inherited
from webarcfs.web.routing import PathRoute
from webarcfs.writing.archive_writer import ArchiveWriter

# == routes ===========================================================================================================


@dataclass(frozen=True, slots=True)
class AddingRoute:
    """A path that takes a body, and what begins with it."""

    method: str
    path: str
    begin: Callable[[Uploads], Begin]


#: What the gateway takes, beside the routes of the API that read.
ADDING: Final = (
    AddingRoute("PUT", "/files/{tag}/{path}", lambda uploads: uploads.begin_file),
    AddingRoute("POST", "/nodes/{tag}/{path}", lambda uploads: uploads.begin_node),
)
#: What the gateway sends to mirrors, beside git's own paths.
MIRRORING: Final = (ApiRoute("/blobs/{domain}/{oid}", send_blob),)
_ALLOW: Final = "GET, HEAD, PUT, POST"


def _takes_body(method: str, raw_path: bytes) -> bool:
    return method in ("PUT", "POST") and raw_path.startswith(f"{PREFIX}/".encode())


class Gateway:
    """The gateway of an archive. Any thread may use it. `start` it after the last fork."""

    def __init__(self, archive: Archive, origin: str = "") -> None:
        self.archive = archive
        self.writer = ArchiveWriter(archive)
        self.askers = Askers(archive, origin)
        self.answering = Answering()
        self.threads = UploadThreads()
        self._news = NewsStreams()
        self._source = GatewaySource(archive, self.writer, self.askers)
        self._uploads = Uploads(self.writer, self.askers)
        self._health = Health(self._look_at_archive)

    def start(self) -> None:
        """Accept additions, and follow publications."""
        self.writer.start()

    async def close(self) -> None:
        """Take no further work."""
        self._news.close()
        await self.answering.close()

    def stop(self) -> list[str]:
        """Commit what was added; return what is left outside of git, a line each."""
        self.threads.close()
        return self.writer.stop()

    def faults(self) -> Iterator[str]:
        """Yield what keeps the gateway from working."""
        try:
            if not any(person.tokens for person in self.askers.persons.all().values()):
                yield "nobody has a token yet: `webarc-agent people token make` makes one"
        except (WebarcError, OSError) as error:
            yield f"{error}; nobody is let in until it is repaired"
        yield from self.writer.notes

    def app(self, names: frozenset[str] = frozenset()) -> ASGIApp:
        """Return it as an ASGI app. `names` are its hosts; without any it is any."""
        adding = [self._adding(row) for row in ADDING]
        reading = api.bound(api.ROUTES, self.answering, self._source_of, self._news)
        mirroring = api.bound(MIRRORING, self.answering, self._mirror_of, self._news)[: len(MIRRORING)]
        git = [
            ApiRoute("/git/{domain}.git/info/refs", _unanswered).bound(self._git(is_advertising=True)),
            ApiRoute("/git/{domain}.git/git-upload-pack", _unanswered, methods=("POST",)).bound(
                self._git(is_advertising=False)
            ),
        ]
        health = PathRoute("health", HEALTH_PATH).bound(self.answering.endpoint(self._health.answer))
        return Router(
            [*adding, *mirroring, *git, *reading, health],
            redirect_slashes=False,
            default=self.answering.endpoint(_refuse_path, answer_error=problem_of),
            middleware=[
                Middleware(RestOfBody),
                Middleware(SecurityHeaders, room_headers("")),
                Middleware(HostRules, names),
                Middleware(RequestRules, _takes_body, _ALLOW),
            ],
        )

    def _adding(self, row: AddingRoute) -> PathRoute:
        route = ApiRoute(row.path, _unanswered, "name", methods=(row.method,))

        def asked_of(request: Request, asker: Asker) -> ApiRequest:
            source = self._source.of(asker)
            return ApiRequest(request, source, request.path_params, self._news, names=route.parameters)

        endpoint = UploadEndpoint(self.answering, self.threads, self.askers, asked_of, row.begin(self._uploads))
        return route.bound(endpoint)

    def _source_of(self, request: Request) -> GatewaySource:
        """Return the archive for whoever asks. Raises as `Askers.of`, and Forbidden without the scope to read."""
        asker = self.askers.of(request)
        asker.demand(Scope.READ)
        return self._source.of(asker)

    def _mirror_of(self, request: Request) -> GatewaySource:
        """Return the archive for a mirror. Raises as `Askers.of`, and Forbidden without the scope to mirror."""
        asker = self.askers.of(request)
        asker.demand(Scope.MIRROR)
        return self._source.of(asker)

    def _git(self, *, is_advertising: bool) -> GitEndpoint:
        return GitEndpoint(
            self.answering, self.threads, self.askers, self._source.repository_path, is_advertising=is_advertising
        )

    def _look_at_archive(self) -> None:
        self.askers.persons.all()
        if not self.archive.is_there:
            raise self.archive.missing("the archive")


def _unanswered(_: ApiRequest) -> Response:
    raise NotShown("a body is expected here")


def _refuse_path(_: Request) -> Response:
    raise NotShown(f"there is no such path at this server; the API is below {PREFIX}/")


# == serving ==========================================================================================================


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """The command line of `webarc-agent gateway`. `origin` is where programs find it, behind a proxy."""

    archive: Path
    listen: Address
    origin: str = ""
    hosts: tuple[str, ...] = ()
    access_log: str = ""
    logs_json: bool = False


def serve(options: GatewayOptions, say: Callable[[str], None] = print) -> None:
    """Serve until a signal. `say` gets to know where, and what is left in the end.

    Raises Busy for an address in use, and what opening the archive raises.
    """
    given = inherited(os.environ, os.getpid())
    listener = next(iter(given.values())) if given else bind(options.listen)
    try:
        processes.become_owner(options.archive)
        processes.allow_many_files()
        origin = options.origin or listener.address.origin
        place = options.origin or str(listener.address)
        gateway = Gateway(directory.open_archive(options.archive), origin)
        log = AccessLog(options.access_log, as_json=options.logs_json)
        app = gateway.app(host_names(origin, hosts=hosts_of(listener.address, options.hosts)))
        logged = Logged(app, log, "gateway") if log.is_on else app
        gateway.start()
        try:
            config = server_config(lambda: ServedApps([logged], gateway.close))
            server = ProcessServer(config, lambda: _tell(gateway, place, say))
            asyncio.run(server.serve([listener.socket]))
        finally:
            for line in gateway.stop():
                say(line)
            log.close()
    finally:
        listener.close()


def _tell(gateway: Gateway, place: str, say: Callable[[str], None]) -> None:
    say(f"the gateway of {gateway.archive.root} is at {place}")
    for fault in gateway.faults():
        say(f"fault: {fault}")
    processes.notify("READY=1", f"STATUS=at {place}")
