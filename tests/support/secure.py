"""https for tests: a proxy that lets a client CONNECT to any host, and answers there itself.

Its clients do not check the certificate (`wget --no-check-certificate`).
"""

from __future__ import annotations

import contextlib
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

#: Host and path → a whole response.
Told = Callable[[str, str], bytes]
_END = b"\r\n\r\n"


class SecureHosts:
    """Serves while its `with` block runs; `proxy` is for `https_proxy`."""

    def __init__(self, folder: Path, told: Told) -> None:
        """`folder` receives the key and the certificate."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(_certificate(folder))
        self._told = told
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.proxy = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        context, told = self._context, self._told

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    host = _target(_head(self.request.recv)).removesuffix(":443")
                    self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    with context.wrap_socket(self.request, server_side=True) as secured:
                        while head := _head(secured.recv):
                            secured.sendall(told(host, _target(head)))

        return Handler


def _certificate(folder: Path) -> Path:
    path = folder / "secure.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=test", "-keyout", str(path), "-out", str(path) + ".cert"]
    subprocess.run(command, check=True, capture_output=True)
    with path.open("ab") as file:
        file.write(path.with_name("secure.pem.cert").read_bytes())
    return path


def _head(receive: Callable[[int], bytes]) -> bytes:
    """Return the head of the next request; empty at the end of the connection."""
    head = b""
    while not head.endswith(_END):
        if not (more := receive(1)):
            return b""
        head += more
    return head


def _target(head: bytes) -> str:
    return head.split(b" ", 2)[1].decode("latin-1") if head else ""
