"""https for tests: a proxy that lets a client CONNECT to any host, and answers there itself.

Its clients do not check the certificate (`wget --no-check-certificate`), unless hosts have one of their own, which an
`Authority` issued.
"""

from __future__ import annotations

import contextlib
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

#: Host and path → a whole response.
Told = Callable[[str, str], bytes]
_END = b"\r\n\r\n"


class SecureHosts:
    """Serves while its `with` block runs; `proxy` is for `https_proxy`."""

    def __init__(self, folder: Path, told: Told, own: Mapping[str, Path | None] | None = None) -> None:
        """`folder` receives the key and the certificate; `own` has those of hosts, None for one that speaks no TLS."""
        pems = {host: pem for host, pem in (own or {}).items() if pem is not None}
        self._contexts = {host: _context(pem) for host, pem in {**pems, "": _certificate(folder)}.items()}
        self._plain = {host for host, pem in (own or {}).items() if pem is None}
        self._told = told
        #: The heads of requests, if somebody wants them.
        self.heads: list[bytes] = []
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
        contexts, plain, told, hosts = self._contexts, self._plain, self._told, self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    host = _target(_head(self.request.recv)).removesuffix(":443")
                    self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    if host in plain:
                        self.request.recv(1)
                        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                        return
                    context = contexts.get(host, contexts[""])
                    with context.wrap_socket(self.request, server_side=True) as secured:
                        while head := _head(secured.recv):
                            hosts.heads.append(head)
                            secured.sendall(told(host, _target(head)))

        return Handler


class Authority:
    """Issues certificates for hosts; `file` is its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        """Make its key in a folder."""
        self._folder = folder / name
        self._folder.mkdir()
        self.file = self._folder / "ca.pem"
        self._run("req", "-x509", *_KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", "ca.key", "-out", "ca.pem")
        (self._folder / "ca.cnf").write_text(
            "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n"
            "policy=p\nunique_subject=no\ncopy_extensions=copy\n[p]\ncommonName=supplied\n"
        )
        (self._folder / "index.txt").touch()

    def issue(self, host: str, names: str = "", years: tuple[int, int] = (2020, 2049)) -> Path:
        """Return key and certificate of a host, which is for `names` if that is given, and holds in these years."""
        request = ("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{names or host}")
        self._run("req", "-new", *_KEY, *request, "-keyout", f"{host}.key", "-out", f"{host}.csr")
        begin, end = (f"{year}0101000000Z" for year in years)
        files = ("-cert", "ca.pem", "-keyfile", "ca.key", "-in", f"{host}.csr", "-out", f"{host}.crt")
        self._run("ca", "-batch", "-notext", "-config", "ca.cnf", *files, "-startdate", begin, "-enddate", end)
        pem = self._folder / f"{host}.pem"
        pem.write_bytes(b"".join((self._folder / f"{host}.{kind}").read_bytes() for kind in ("key", "crt")))
        return pem

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _context(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def _certificate(folder: Path) -> Path:
    path = folder / "secure.pem"
    command = ["openssl", "req", "-x509", *_KEY]
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
