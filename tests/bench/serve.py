"""A fast web server for benchmarks: `python -m tests.bench.serve DIR` or `python -m tests.bench.serve --generate N`.

Prints its port and serves until SIGINT or SIGTERM. Several processes accept from one socket, so that the server is not
what is measured. Through `http_proxy` every host name leads here. Benchmarks in Python say `with running(…) as port`.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tests.support.generated import Generated
from tests.support.site import Folder, Tree
from tests.support.wire import Answer, Request, Server, error_page, listen

_NOT_FOUND = error_page(404)

Route = Callable[[Request], Answer]


def one_tree(tree: Tree) -> Route:
    """The same pages under every host name."""
    return lambda request: tree.find(request.path) or _NOT_FOUND


def folder_per_host(root: Path) -> Route:
    """Each folder of `root` is the site of the host that it is named after."""
    trees: dict[str, Tree] = {folder.name: Folder(folder) for folder in root.iterdir() if folder.is_dir()}

    def route(request: Request) -> Answer:
        tree = trees.get(request.host)
        return (tree.find(request.path) if tree else None) or _NOT_FOUND

    return route


def serve(route: Route, listener: socket.socket, processes: int) -> None:
    """Serve from that many processes until this one is interrupted; none outlives it, however it ends."""
    end, alive = os.pipe()
    children = [_fork(route, listener, end, alive) for _ in range(processes)]
    os.close(end)
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        os.close(alive)
        for child in children:
            os.waitpid(child, 0)


@contextmanager
def running(*arguments: str) -> Iterator[int]:
    """The command with these arguments, in the background; gives its port."""
    command = [sys.executable, "-m", "tests.bench.serve", *arguments]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def _fork(route: Route, listener: socket.socket, end: int, alive: int) -> int:
    child = os.fork()
    if not child:
        os.close(alive)
        _work(route, listener, end)
    return child


def _work(route: Route, listener: socket.socket, end: int) -> NoReturn:
    """Serve until the other end of the pipe closes, which happens when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = Server(route, listener)
    server.start()
    os.read(end, 1)
    server.stop()
    os._exit(1 if server.errors else 0)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.serve", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("dir", nargs="?", type=Path, metavar="DIR", help="folder to serve")
    what.add_argument("--generate", type=int, metavar="N", help="serve a made-up site of N pages")
    parser.add_argument("--edition", type=int, default=0, help="each edition of a made-up site changes 1 %% of it")
    parser.add_argument("--host-header", action="store_true", help="each folder of DIR is the site of a host")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _route(arguments: argparse.Namespace) -> Route:
    if arguments.generate:
        site = Generated(arguments.generate, arguments.edition)
        site.body(0)  # before the fork, so that the text is made once
        return one_tree(site)
    return folder_per_host(arguments.dir) if arguments.host_header else one_tree(Folder(arguments.dir))


def main() -> None:
    """Read the command line, print the port, serve."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)
    route = _route(arguments)
    listener = listen(arguments.port)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    serve(route, listener, arguments.processes)


if __name__ == "__main__":
    main()
