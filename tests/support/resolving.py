"""A resolver and a public address under a test's control, in this process or in each Python of a command.

Names end in `.test`. The n-th look-up of a name in a process gives the n-th of its addresses, from then on the last.
`PUBLIC` is an address of loopback that counts as public, so that servers of tests can be on it; all else is judged as
ever. A `Sink` is at a private address, and counts who connects.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

#: Counts as public.
PUBLIC = "127.0.0.2"
_NAMES = "WEBARC_TEST_NAMES"
_START = "from tests.support.resolving import install_from_environment\ninstall_from_environment()\n"


class _Resolver:
    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names
        self._look_up = socket.getaddrinfo
        self._lock = threading.Lock()
        self.asked = Counter[str]()

    def getaddrinfo(self, host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        """As socket.getaddrinfo."""
        name = host.decode() if isinstance(host, bytes) else host
        if not str(name).endswith(".test"):
            return self._look_up(host, port, *rest, **named)
        if name not in self._names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        with self._lock:
            number, self.asked[name] = self.asked[name], self.asked[name] + 1
        addresses = self._names[name]
        return self._look_up(addresses[min(number, len(addresses) - 1)], port, *rest, **named)


@contextmanager
def resolving(names: Mapping[str, Sequence[str]]) -> Iterator[Counter[str]]:
    """Give names addresses in this process; yield how often each was looked up."""
    from agent.crawl import http_connections, http_fetcher, loop, scope, wget

    resolver, judge = _Resolver(names), scope.is_private
    modules = (scope, http_connections, http_fetcher, loop, wget)  # which judge addresses
    scope.is_private_domain.cache_clear()
    with mock.patch.object(socket, "getaddrinfo", resolver.getaddrinfo):
        patches = [
            mock.patch.object(module, "is_private", lambda address: _judged(judge, address)) for module in modules
        ]
        for patch in patches:
            patch.start()
        try:
            yield resolver.asked
        finally:
            for patch in patches:
                patch.stop()
            scope.is_private_domain.cache_clear()


def _judged(judge: Any, address: str) -> bool:
    return address != PUBLIC and bool(judge(address))


def install_from_environment() -> None:
    """The same for the whole life of a process."""
    if _NAMES not in os.environ:
        return
    from agent.crawl import scope

    judge = scope.is_private
    scope.is_private = lambda address: _judged(judge, address)
    socket.getaddrinfo = _Resolver(json.loads(os.environ[_NAMES])).getaddrinfo


def environment(folder: Path, names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The environment in which each Python gives names these addresses; `folder` is for what it loads."""
    (folder / "sitecustomize.py").write_text(_START)
    path = os.pathsep.join(filter(None, (str(folder), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, _NAMES: json.dumps({name: list(addresses) for name, addresses in names.items()})}


class Sink:
    """Listens on 127.0.0.1, takes each connection, and keeps what came."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, suppress(OSError):
                connection.settimeout(1)
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nsecret")
