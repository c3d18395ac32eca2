"""The processes of `webarc serve`: real sockets, real processes, and an app that says what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from tests.room import stub_room
from tests.support.archives import make_archive, publish
from tests.support.sources import ROOT
from tests.support.waiting import until
from webarcfs.archive.model.errors import Busy, UsageError
from webarcfs.archive.system.processes import lives
from webarcfs.commands.serve import serve
from webarcfs.room.server.options import (
    Engine,
    RoomOptions,
    ServerOptions,
    replay_address,
    room_options,
)
from webarcfs.web.access_log import AnsweredRequest, escaped, line
from webarcfs.web.connections import Connections, host_names, is_own_host
from webarcfs.web.listeners import TcpAddress, UnixAddress, address, bind, host_name, origin

pytestmark = pytest.mark.store


@dataclass(frozen=True)
class Room:
    """A `webarc serve` that runs."""

    process: subprocess.Popen[str]
    port: int
    replay_port: int
    notes: Path

    def ask(
        self, path: str = "/", *, replay: bool = False, method: str = "GET", **headers: str
    ) -> tuple[int, Any, bytes]:
        """Status, headers and body."""
        client = http.client.HTTPConnection("127.0.0.1", self.replay_port if replay else self.port, timeout=120)
        with contextlib.closing(client):
            client.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()

    def json(self, path: str = "/", *, replay: bool = False) -> dict[str, Any]:
        """What the app says."""
        said: dict[str, Any] = json.loads(self.ask(path, replay=replay)[2])
        return said

    def connect(self) -> socket.socket:
        """A connection to the room."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def workers(self) -> set[int]:
        """Its living processes, but for that in which multiprocessing tracks resources."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii").split()
        return {int(child) for child in children if b"spawn_main" in _command(child)}


def _command(process: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def started(tmp_path: Path, listen: str = "127.0.0.1:0", replay: str = "127.0.0.1:0", **environment: str) -> Room:
    notes = tmp_path / "notes"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.room.stub_room", listen, replay],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, stub_room.NOTES: str(notes), **environment},
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.readline()
    ports = [int(each) for each in re.findall(r"127\.0\.0\.1:(\d+)", said)] if said else []
    return Room(process, ports[0] if ports else 0, ports[1] if ports[1:] else 0, notes)


@contextmanager
def served(tmp_path: Path, *addresses: str, **environment: str) -> Iterator[Room]:
    room = started(tmp_path, *addresses, **environment)
    try:
        yield room
    finally:
        before = room.workers() if room.process.poll() is None else set()
        room.process.terminate()
        code = room.process.wait(60)
        assert room.process.stdout is not None
        room.process.stdout.close()
    assert code in (0, -signal.SIGKILL)
    assert not any(map(lives, before)), "a worker is left behind"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """One that is not harmed."""
    folder = tmp_path_factory.mktemp("room")
    with served(folder, STUB_LOG=str(folder / "access.log")) as room:
        yield room


# -- requests ----------------------------------------------------------------------------------------------------------


def test_the_socket_tells_room_and_replay_apart_and_not_what_a_request_says(room: Room) -> None:
    assert room.json()["listener"] == "room"
    assert room.json(replay=True)["listener"] == "replay"
    _, _, body = room.ask(
        "/x", Host=f"127.0.0.1:{room.replay_port}", X_Forwarded_Host="replay", X_Forwarded_For="1.2.3.4"
    )
    assert json.loads(body)["listener"] == "room"
    assert json.loads(body)["peer"] == "127.0.0.1"
    with room.connect() as client:
        client.sendall(
            f"GET http://127.0.0.1:{room.replay_port}/a HTTP/1.1\r\nHost: localhost\r\n".encode()
            + b"Connection: close\r\n\r\n"
        )
        assert b'"listener":"room","path":"/a"' in client.makefile("rb").read()


@pytest.mark.parametrize(
    "path",
    [
        "/web/2026/http://e.org/a%2Fb%3Fc",
        "/web/2026/http://e.org//a//b",
        "/web/2026/http:/e.org/%C3%BC/%E4",
        "//x/../y",
    ],
)
def test_the_path_comes_as_it_was_sent(room: Room, path: str) -> None:
    said = room.json(f"{path}?q=%2F&u=http://e.org/?a=b")
    assert (said["path"], said["query"]) == (path, "q=%2F&u=http://e.org/?a=b")


def test_what_is_not_for_reading_is_refused_on_both_listeners(room: Room) -> None:
    for replay in (False, True):
        for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"):
            status, headers, _ = room.ask("/x", replay=replay, method=method)
            assert (status, headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
            assert headers["Connection"] == "close"
        status, headers, _ = room.ask("/x", replay=replay, method="OPTIONS")
        assert (status, headers["Allow"]) == (204, "GET, HEAD, OPTIONS")
        assert room.ask("/x", replay=replay, method="HEAD")[::2] == (200, b"")
        assert room.ask("/x", replay=replay, Content_Length="5")[0] == 413
        assert room.ask("/x", replay=replay, Transfer_Encoding="chunked")[0] == 413
        assert room.ask("/x?" + "q" * 8_193, replay=replay)[0] == 414
        assert room.ask("/x?" + "q" * 8_192, replay=replay)[0] == 200


def test_the_room_says_what_browsers_may_not(room: Room) -> None:
    for path in ("/", "/fails/NotFound", "/fails/ZeroDivisionError"):
        headers = room.ask(path)[1]
        assert f"frame-src http://127.0.0.1:{room.replay_port};" in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert "camera=()" in headers["Permissions-Policy"] and headers["X-DNS-Prefetch-Control"] == "off"
        assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "frame-src" in room.ask("/", method="POST")[1]["Content-Security-Policy"]
    assert room.ask("/own-policy")[1].get_all("Content-Security-Policy") == ["sandbox"]
    headers = room.ask("/", replay=True)[1]
    assert headers["Content-Security-Policy"] is None and headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("kind", "status", "retry"),
    [
        ("NotFound", 404, None), ("UsageError", 400, None), ("Forbidden", 403, None), ("Busy", 503, "5"),
        ("Damaged", 503, None), ("TookTooLong", 503, None), ("OSError", 503, None), ("ZeroDivisionError", 500, None),
        ("first", 503, "5"),
    ],
)  # fmt: skip
def test_errors_become_statuses_and_tell_nothing(room: Room, kind: str, status: int, retry: str | None) -> None:
    found, headers, body = room.ask(f"/fails/{kind}")
    assert (found, headers["Retry-After"]) == (status, retry)
    assert b"secret" not in body


def test_an_answer_that_breaks_is_cut_and_not_taken_for_whole(room: Room) -> None:
    with pytest.raises(http.client.IncompleteRead):
        room.ask("/fails/later")


def test_pieces_come_one_after_the_other_and_are_closed_at_the_end(room: Room) -> None:
    room.notes.write_text("", "utf-8")
    assert room.ask("/big/2")[2] == b"x" * (2 << 20)
    until(lambda: room.notes.read_text("utf-8") == "closed\n", every=0.02)
    status, _, body = room.ask("/big/2", method="HEAD")
    assert (status, body) == (200, b"")
    until(lambda: room.notes.read_text("utf-8") == "closed\nclosed\n", every=0.02)


def test_a_client_that_goes_closes_what_it_asked_for(room: Room) -> None:
    room.notes.write_text("", "utf-8")
    with room.connect() as client:
        client.sendall(b"GET /big/500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(1000)
    until(lambda: room.notes.read_text("utf-8") == "closed\n", every=0.02)


def test_clients_that_take_nothing_hold_no_thread(room: Room) -> None:
    """There are four threads a worker."""
    clients = [room.connect() for _ in range(20)]
    for each in clients:
        each.sendall(b"GET /big/100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(0.3)
    begin = time.monotonic()
    assert all(room.ask()[0] == 200 for _ in range(10))
    assert time.monotonic() - begin < 20
    for each in clients:
        each.close()


def test_the_log_has_a_line_a_request_that_nobody_can_forge(room: Room) -> None:
    with room.connect() as client:
        client.sendall(
            b'GET /~geheim/log?"x HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a"\t\\\xff b\r\nReferer: http://r/~geheim\r\n'
            b"Connection: close\r\n\r\n"
        )
        client.makefile("rb").read()
    log = room.notes.with_name("access.log")
    found = until(lambda: [each for each in log.read_text("ascii").splitlines() if "/log" in each], every=0.02)
    assert re.fullmatch(
        r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /~-/log\?\\x22x HTTP/1\.1" 200 \d+ '
        r'"http://r/~-" "a\\x22\\x09\\x5c\\xff b" \d+\.\d{3} room',
        found[0],
    ), found


# -- clients that mean no good -----------------------------------------------------------------------------------------


def test_a_thousand_connections_at_once(room: Room) -> None:
    async def one(number: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
        await asyncio.wait_for(gate.wait(), 60)
        writer.write(f"GET /{number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    async def all_of_them() -> list[bytes]:
        asking = [asyncio.ensure_future(one(number)) for number in range(1_000)]
        await asyncio.sleep(1.0)  # they are all connected
        gate.set()
        return await asyncio.gather(*asking)

    gate = asyncio.Event()
    answers = asyncio.run(all_of_them())
    statuses = [each[9:12] for each in answers]
    assert set(statuses) <= {b"200", b"503"} and statuses.count(b"200") >= 200
    assert room.ask()[0] == 200


def test_idle_connections_beyond_the_bound_are_closed_and_the_others_are_dropped(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    clients: list[socket.socket] = []
    try:
        with served(tmp_path, STUB_WORKERS="1", **{stub_room.LIMITS: json.dumps({"HEAD_SECONDS": 20.0})}) as room:
            clients += [room.connect() for _ in range(2_600)]
            (worker,) = room.workers()
            held = Path(f"/proc/{worker}/fd")
            until(lambda: len(list(held.iterdir())) < 2_100, every=0.1)
            with pytest.raises(ConnectionResetError):
                room.ask()
            until(lambda: len(list(held.iterdir())) < 100, every=0.5)
            assert room.ask()[0] == 200
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_full_disk_for_the_log_keeps_no_request(tmp_path: Path) -> None:
    with served(tmp_path, STUB_LOG="/dev/full") as room:
        assert [room.ask(f"/{number}")[0] for number in range(30)] == [200] * 30


def test_who_sends_a_head_slowly_or_takes_an_answer_slowly_is_dropped(tmp_path: Path) -> None:
    bounds = {"HEAD_SECONDS": 1.0, "SLOW_SECONDS": 1.0, "KEEP_ALIVE_SECONDS": 1}
    with served(tmp_path, STUB_WORKERS="1", **{stub_room.LIMITS: json.dumps(bounds)}) as room:
        silent, drip, lines, reader, body = (room.connect() for _ in range(5))
        drip.sendall(b"GET / HTTP/1.1\r\n")
        lines.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader.sendall(b"GET /big/100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader.recv(10)
        body.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        deadline = time.monotonic() + 120
        open_ones = {silent, drip, lines, body}
        while open_ones and time.monotonic() < deadline:
            time.sleep(0.2)
            for client, more in ((drip, b"A: b\r\n"), (lines, b"\r\n"), (body, b"x"), (silent, b"")):
                with contextlib.suppress(OSError):
                    client.sendall(more)
                client.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    if client in open_ones and _at_end(client):
                        open_ones.discard(client)
        assert not open_ones
        until(room.notes.exists, every=0.05)  # the reader's answer was closed
        assert room.ask()[0] == 200
        for each in (silent, drip, lines, reader, body):
            each.close()


def _at_end(client: socket.socket) -> bool:
    try:
        while client.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def test_a_head_has_a_bound_whatever_it_consists_of(room: Room) -> None:
    many = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 100) for number in range(1_000))
    for head in (b"GET / HTTP/1.1\r\n" + many, b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000, b"GET /" + b"y" * 300_000):
        with room.connect() as client:
            received = b""
            with contextlib.suppress(ConnectionError):
                client.sendall(head)
                client.sendall(b"\r\n\r\n")
                received = client.recv(1000)
            assert received[9:12] in (b"431", b""), received
    with room.connect() as client:  # while another answer is under way, and thousands in one go
        with contextlib.suppress(ConnectionError):
            client.sendall(b"GET /slow/1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"GET / HTTP/1.1\r\n\r\n" * 5_000)
        assert _at_end(client)
    assert room.ask()[0] == 200


def test_broken_requests_end_their_connection_and_nothing_else(room: Room) -> None:
    for sent in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", "GET /ü HTTP/1.1\r\n\r\n".encode(),
                 b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):  # fmt: skip
        with room.connect() as client:
            client.sendall(sent)
            assert _at_end(client)
    with room.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert client.makefile("rb").read().startswith(b"HTTP/1.1 200")
    assert room.ask()[0] == 200


# -- processes ---------------------------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_is_replaced_while_the_others_answer(tmp_path: Path) -> None:
    with served(tmp_path) as room:
        before = room.workers()
        key = room.json()["key"]
        os.kill(min(before), signal.SIGKILL)
        assert all(room.ask()[0] == 200 for _ in range(20))
        until(lambda: len(room.workers()) == 2 and room.workers() != before, every=0.02)
        seen = until(lambda: {room.json()["worker"] for _ in range(20)} - before, every=0.02)
        assert seen and room.json()["key"] == key and len(key) == 64


@pytest.mark.parametrize("is_loop", [True, False])
def test_a_worker_that_is_stuck_is_replaced(tmp_path: Path, *, is_loop: bool) -> None:
    with served(tmp_path, **{stub_room.LIMITS: '{"HEALTH_SECONDS": 5}'}) as room:
        before = room.workers()
        if is_loop:
            with room.connect() as client:
                client.sendall(b"GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert _at_end(client), "its worker is killed"
        else:
            os.kill(min(before), signal.SIGSTOP)
        until(lambda: len(room.workers()) == 2 and room.workers() != before, every=0.02)
        until(lambda: {room.json()["worker"] for _ in range(20)} - before, every=0.02)


def test_a_worker_that_is_stuck_does_not_keep_it_from_its_end(tmp_path: Path) -> None:
    room = started(tmp_path, **{stub_room.LIMITS: '{"GRACE_SECONDS": 0}'})
    os.kill(min(room.workers()), signal.SIGSTOP)
    room.process.terminate()
    assert room.process.wait(60) == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    room = started(tmp_path, **{stub_room.LIMITS: '{"GRACE_SECONDS": 1000}'})
    workers = room.workers()
    with room.connect() as client:
        client.sendall(b"GET /slow/1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(room.notes.with_name("slow").exists, every=0.02)
        for number in (signal.SIGTERM, signal.SIGINT):
            room.process.send_signal(number)
            time.sleep(1.0)  # two of one kind that come together are one (signal(7))
        assert room.process.wait(60) == 0
        assert not any(map(lives, workers))


def test_a_key_of_the_terminal_reaches_workers_by_their_parent_alone(tmp_path: Path) -> None:
    with served(tmp_path) as room:
        workers = room.workers()
        for worker in workers:
            os.kill(worker, signal.SIGINT)
        assert all(room.ask()[0] == 200 for _ in range(20))
        os.kill(min(workers), signal.SIGTERM)
        until(lambda: min(workers) not in room.workers(), every=0.02)  # a signal that came before would have ended it
        assert max(workers) in room.workers()


def test_reloads_that_are_asked_for_while_one_runs_are_one(tmp_path: Path) -> None:
    with served(tmp_path) as room:
        before = room.workers()
        room.process.send_signal(signal.SIGHUP)
        until(lambda: room.workers() - before, every=0.01)
        for _ in range(10):
            room.process.send_signal(signal.SIGHUP)
            time.sleep(0.02)  # several that wait for a process at once are one (signal(7))
        until(lambda: len(room.workers()) == 2 and not before & room.workers(), every=0.02)
        first = room.workers()
        until(lambda: len(room.workers()) == 2 and not first & room.workers(), every=0.02)
        second = room.workers()
        room.ask("/slow/1")
        assert room.workers() == second


def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    terminal, theirs = os.openpty()
    script = (
        "import fcntl, os, sys, termios\n"
        "os.setsid()\n"
        f"fcntl.ioctl({theirs}, termios.TIOCSCTTY, 0)\n"
        "sys.argv = ['', '127.0.0.1:0', 'same']\n"
        "from tests.room.stub_room import main\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, pass_fds=[theirs],
        env={**os.environ, stub_room.NOTES: str(tmp_path / "notes")},
    ) as process:  # fmt: skip
        try:
            os.close(theirs)
            assert process.stdout is not None and process.stdout.readline()
            os.close(terminal)
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_processes_that_come_and_go_leave_no_descriptor(tmp_path: Path) -> None:
    with served(tmp_path) as room:
        descriptors = Path(f"/proc/{room.process.pid}/fd")

        def renew() -> int:
            before = room.workers()
            os.kill(min(before), signal.SIGKILL)
            room.process.send_signal(signal.SIGHUP)
            until(lambda: len(room.workers()) == 2 and not before & room.workers(), every=0.02)
            return len(list(descriptors.iterdir()))

        counts = [renew() for _ in range(4)]
        assert counts[-1] <= counts[0] + 2, counts


def test_nothing_comes_from_the_current_folder(tmp_path: Path) -> None:
    archive = make_archive(tmp_path)
    publish(archive, pages={"index.html": b"<p>x"})
    program, folder = tmp_path / "webarc", tmp_path / "folder"
    program.write_text("from webarcfs.commands.cli import main\nif __name__ == '__main__':\n    main()\n")
    folder.mkdir()
    for name in ("multiprocessing", "httptools", "webarcfs", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    with subprocess.Popen(
        [sys.executable, program, "serve", "--archive", archive.root, "--listen", "127.0.0.1:0", "--access-log", "log"],
        stdout=subprocess.PIPE, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None and process.stdout.readline()
        finally:
            process.terminate()
        assert process.wait(60) == 0
    assert not (tmp_path / "imported").exists() and (folder / "log").exists()


def test_a_reload_loses_no_request_and_ends_the_old_workers(tmp_path: Path) -> None:
    with served(tmp_path) as room:
        before, statuses, stop = room.workers(), list[int](), threading.Event()

        def ask() -> None:
            while not stop.is_set():
                statuses.append(room.ask("/x")[0])

        askers = [threading.Thread(target=ask) for _ in range(4)]
        kept = http.client.HTTPConnection("127.0.0.1", room.port, timeout=120)
        kept.request("GET", "/")
        kept.getresponse().read()
        running = threading.Thread(target=lambda: statuses.append(room.ask("/slow/2")[0]))
        for each in (*askers, running):
            each.start()
        time.sleep(0.2)
        for _ in range(2):
            room.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
        until(lambda: not before & room.workers(), every=0.05)
        running.join()
        stop.set()
        for each in askers:
            each.join()
        kept.close()
        assert set(statuses) == {200} and len(statuses) > 50
        until(lambda: len(room.workers()) == 2)


def test_a_reload_that_fails_changes_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    with served(tmp_path, **{stub_room.FAILS: str(broken)}) as room:
        before = room.workers()
        broken.touch()
        room.process.send_signal(signal.SIGHUP)
        until(lambda: room.workers() - before, every=0.01)  # new ones are tried
        until(lambda: room.workers() == before, every=0.05)
        assert room.json()["worker"] in before
        broken.unlink()
        room.process.send_signal(signal.SIGHUP)
        until(lambda: not before & room.workers() and len(room.workers()) == 2, every=0.05)


def test_workers_that_never_start_end_it_with_their_reason(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    done = subprocess.run(
        [sys.executable, "-m", "tests.room.stub_room", "127.0.0.1:0", "same"], capture_output=True, text=True, cwd=ROOT,
        timeout=120, check=False, env={**os.environ, stub_room.FAILS: str(tmp_path / "broken")},
    )  # fmt: skip
    assert done.returncode == 1 and "webarc.toml: it is broken" in done.stderr, done


def test_a_request_that_runs_is_finished_before_the_end(tmp_path: Path) -> None:
    room = started(tmp_path)
    answers = list[bytes]()
    asking = threading.Thread(target=lambda: answers.append(room.ask("/slow/5")[2]))
    asking.start()
    until(room.notes.with_name("slow").exists, every=0.02)
    room.process.terminate()

    def is_refused() -> bool:
        try:
            room.ask()
        except OSError as error:
            return isinstance(error, ConnectionRefusedError)
        return False

    until(is_refused, every=0.1)
    assert asking.is_alive(), "it is refused while the other one runs"
    assert room.process.wait(60) == 0
    asking.join()
    assert answers == [b"slow"]


def test_the_end_does_not_wait_for_who_takes_too_long(tmp_path: Path) -> None:
    room = started(tmp_path, **{stub_room.LIMITS: '{"GRACE_SECONDS": 1}'})
    with room.connect() as client:
        client.sendall(b"GET /slow/100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(room.notes.with_name("slow").exists, every=0.02)
        room.process.terminate()
        assert room.process.wait(60) == 0


def test_workers_end_with_their_parent_and_the_next_one_has_its_address(tmp_path: Path) -> None:
    path = tmp_path / "room"
    room = started(tmp_path)
    again = (f"127.0.0.1:{room.port}", f"127.0.0.1:{room.replay_port}")
    workers = room.workers()
    room.process.kill()
    room.process.wait()
    time.sleep(0.5)
    with served(tmp_path, *again) as following:
        assert following.port == room.port and following.ask()[0] == 200
        until(lambda: not any(map(lives, workers)), every=0.02)
    assert not path.exists()


def test_an_address_in_use_is_refused_and_a_unix_socket_of_a_dead_server_is_not(tmp_path: Path) -> None:
    path = tmp_path / "room"
    with served(tmp_path, f"unix:{path}", "same"):
        assert _ask_unix(path)["peer"] == "unix"
        with pytest.raises(Busy, match="address in use"):
            bind(UnixAddress(path), 0)
        assert _ask_unix(path)["listener"] == "room"
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with contextlib.closing(bind(UnixAddress(path), 0)):
        path.unlink()  # another server took it meanwhile
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()
    path.unlink()
    path.write_text("a file", "utf-8")
    with pytest.raises(UsageError, match="no socket"):
        bind(UnixAddress(path), 0)
    with contextlib.closing(bind(address("127.0.0.1:0"), 0)) as taken, pytest.raises(Busy):
        bind(taken.address, 0)
    for wrong in ("256.0.0.1:80", "192.0.2.1:8080", f"unix:{tmp_path}/none/room"):
        with pytest.raises(UsageError):
            bind(address(wrong), 0)


def _ask_unix(path: Path | str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(_answer_unix(path, "localhost")[2])
    return said


def _answer_unix(path: Path | str, host: str) -> tuple[bytes, bytes, bytes]:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host.encode())
        return client.makefile("rb").read().partition(b"\r\n\r\n")


def test_on_a_unix_socket_the_proxy_decides_about_names_unless_some_are_given(tmp_path: Path) -> None:
    for hosts, is_answered in (("", True), ("archive.example", False)):
        path, origin = tmp_path / f"room{hosts}", "https://archive.example.org"
        with served(tmp_path, f"unix:{path}", "same", STUB_ORIGIN=origin, STUB_HOSTS=hosts):
            assert _answer_unix(path, "archive.example.org")[0].startswith(b"HTTP/1.1 200 ")
            assert _answer_unix(path, "room.invalid")[0].startswith(
                b"HTTP/1.1 200 " if is_answered else b"HTTP/1.1 421 "
            )


def test_systemd_is_told_and_may_hand_over_the_sockets(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        with served(tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify")) as room:
            assert manager.recv(4096).startswith(b"READY=1\nSTATUS=2 workers")
            room.process.send_signal(signal.SIGHUP)
            assert manager.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(4096).startswith(b"READY=1")
        assert manager.recv(4096) == b"STOPPING=1"


def test_the_app_is_that_of_the_socket_that_systemd_handed_over(tmp_path: Path) -> None:
    """Names without a file (unix(7)) have no other difference."""
    names = [f"\0webarc-{os.getpid()}-{name}" for name in ("replay", "room")]
    script = (
        "import os, socket, sys\n"
        f"for number, name in enumerate({names!r}, 3):\n"
        "    listener = socket.socket(socket.AF_UNIX)\n"
        "    listener.bind(name)\n"
        "    listener.listen()\n"
        "    os.dup2(listener.detach(), number)\n"
        "    os.set_inheritable(number, True)\n"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', LISTEN_FDNAMES='replay:room')\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'tests.room.stub_room', '127.0.0.1:0', 'same'])\n"
    )
    origins = {"STUB_ORIGIN": "http://room.example", "STUB_REPLAY_ORIGIN": "http://replay.example"}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, stub_room.NOTES: str(tmp_path / "notes"), **origins},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None and process.stdout.readline()
            for name in names:
                assert _ask_unix(name)["listener"] == name.rpartition("-")[2]
        finally:
            process.terminate()
        assert process.wait(60) == 0


def _find_apps(listeners: list[socket.socket], addresses: list[Any]) -> list[object]:
    """Connect to the addresses; which of the listeners has each connection, as it says and as it is."""

    def app(number: int) -> ASGIApp:
        async def answer(*_: object) -> None:
            raise AssertionError(number)

        return answer

    apps = [app(number) for number in range(len(listeners))]
    connections = Connections(listeners, apps)
    answers = list[object]()
    for address_asked in addresses:
        family = (
            socket.AF_UNIX
            if isinstance(address_asked, str)
            else socket.AF_INET6
            if ":" in address_asked[0]
            else socket.AF_INET
        )
        with socket.socket(family) as client:
            client.connect(address_asked)
            (ready,) = select.select(listeners, [], [], 60)[0]
            accepted, _ = ready.accept()
            with accepted:
                found = connections.find_app(accepted.getsockname())
                assert found is apps[listeners.index(ready)]
                answers.append(listeners.index(ready))
    return answers


def test_connections_are_told_apart_by_their_socket(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:

        def listen(family: socket.AddressFamily, name: Any, *, dual: bool = False) -> socket.socket:
            listener = stack.enter_context(socket.socket(family))
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dual)
            listener.bind(name)
            listener.listen()
            return listener

        loopback = listen(socket.AF_INET, ("127.0.0.1", 0))
        port = loopback.getsockname()[1]
        other_address = listen(socket.AF_INET, ("127.0.0.2", port))
        six = listen(socket.AF_INET6, ("::", port))
        any_four = listen(socket.AF_INET, ("0.0.0.0", 0))
        both = listen(socket.AF_INET6, ("::", 0), dual=True)
        paths = [listen(socket.AF_UNIX, str(tmp_path / name)) for name in ("a", "b:c")]
        no_file = listen(socket.AF_UNIX, f"\0webarc-{os.getpid()}")
        listeners = [loopback, other_address, six, any_four, both, *paths, no_file]
        four_port, both_port = any_four.getsockname()[1], both.getsockname()[1]
        addresses = [
            ("127.0.0.1", port), ("127.0.0.2", port), ("::1", port), ("127.0.0.3", four_port), ("127.0.0.1", both_port),
            ("::1", both_port), *(path.getsockname() for path in paths), f"\0webarc-{os.getpid()}",
        ]  # fmt: skip
        assert _find_apps(listeners, addresses) == [0, 1, 2, 3, 4, 4, 5, 6, 7]
        assert Connections(listeners, list(range(8))).find_app(("192.0.2.1", 1)) is None  # type: ignore[arg-type]
        twin = stack.enter_context(socket.socket(fileno=os.dup(loopback.fileno())))
        with pytest.raises(UsageError, match="same address"):
            Connections([loopback, twin], list(range(2)))  # type: ignore[arg-type]


def test_many_connections_of_one_listener_take_none_from_the_other(tmp_path: Path) -> None:
    with served(tmp_path, STUB_WORKERS="1", **{stub_room.LIMITS: '{"CONNECTIONS": 4}'}) as room:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(room.connect()) for _ in range(12)]
            for client in clients[8:]:
                assert _at_end(client), "one too many by far is closed"
            assert room.ask(replay=True)[0] == 200
            clients[0].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert clients[0].recv(1000).startswith(b"HTTP/1.1 503 ")
        until(lambda: room.ask()[0] == 200, every=0.05)


def test_sockets_that_systemd_hands_over_are_found_by_name() -> None:
    script = (
        "import os, socket\n"
        "assert [socket.create_server(('127.0.0.1', 0)).detach() for _ in 'ab'] == [3, 4]\n"
        "from webarcfs.web.listeners import inherited\n"
        "found = inherited({'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '2', 'LISTEN_FDNAMES': 'replay:room'},"
        " os.getpid())\n"
        "assert list(found) == ['replay', 'room'] and found['room'].socket.fileno() == 4, found\n"
        "assert inherited({'LISTEN_PID': '1', 'LISTEN_FDS': '2'}, os.getpid()) == {}\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, cwd=ROOT)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_check_says_what_would_be_served_and_what_is_wrong(tmp_path: Path) -> None:
    archive = make_archive(tmp_path)
    publish(archive, pages={"index.html": b"<p>x"})
    ask = ["--archive", str(archive.root), "--listen", "127.0.0.1:0", "--check"]
    done = CliRunner().invoke(serve, ask)
    assert done.exit_code == 0 and "FAULT" not in done.output and "as http://127.0.0.1:" in done.output, done.output
    archive.access_rules.write_text("nonsense\n", "utf-8")
    archive.settings.write_text("x = 1\n", "utf-8")
    with contextlib.closing(bind(address("127.0.0.1:0"))) as taken:
        done = CliRunner().invoke(serve, [*ask, "--listen", str(taken.address), "--replay-listen", "same"])
    assert re.findall(r"^FAULT *(\S+):", done.output, re.MULTILINE) == ["settings", "access.aclj", "addresses"]
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize(
    ("room", "replay", "is_one"),
    [
        ("http://room.localhost:1", "http://replay.localhost:2", False),
        ("http://room.arch.localhost:1", "http://replay.arch.localhost:2", True),
        ("https://archive.example.org", "https://pages.archive.example.org", True),
        ("https://archive.example.org", "https://archive-pages.org", False),
        ("https://a.co.uk", "https://b.co.uk", False),
    ],
)
def test_the_check_says_where_scripts_would_get_no_storage(
    tmp_path: Path, room: str, replay: str, *, is_one: bool
) -> None:
    """S-module-8: browsers that block storage of third parties run no scripts of another site's pages."""
    archive = make_archive(tmp_path)
    ask = ["--archive", str(archive.root), "--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0", "--check"]
    done = CliRunner().invoke(serve, [*ask, "--engine", "pywb", "--origin", room, "--replay-origin", replay])
    assert ("sites" in re.findall(r"^FAULT *(\S+):", done.output, re.MULTILINE)) is not is_one, done.output


def test_the_parent_of_the_workers_loads_nothing_that_reads_an_archive() -> None:
    heavy = "{'pygit2', 'starlette.applications', 'lxml', 'sqlite3', 'jinja2', 'tantivy'}"
    script = f"import sys, webarcfs.commands.serve, webarcfs.room.server.serving\nassert not {heavy} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, cwd=ROOT)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8080", TcpAddress("127.0.0.1", 8080)), ("8080", TcpAddress("127.0.0.1", 8080)),
        ("[::1]:80", TcpAddress("::1", 80)), ("host.example:1", TcpAddress("host.example", 1)),
        ("unix:/run/x", UnixAddress(Path("/run/x"))),
        ("", None), (":80", None), ("host", None), ("::1:80", None), ("[127.0.0.1]:80", None), ("a:65536", None),
        ("a b:1", None), ("unix:", None), ("unix:/" + "x" * 200, None), ("a:²", None),
    ],
)  # fmt: skip
def test_addresses(text: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(UsageError):
            address(text)
    else:
        assert address(text) == expected and address(str(expected)) == expected


@given(st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for read in (address, origin):
        with contextlib.suppress(UsageError):
            read(text)


def test_origins() -> None:
    assert origin("HTTPS://Room.example.org:443/") == "https://room.example.org"
    assert origin("http://[::1]:8080") == "http://[::1]:8080"
    for wrong in (
        "room.example.org",
        "https://",
        "https://e.org/x",
        "https://u@e.org",
        "ftp://e.org",
        "https://e.org;x",
    ):
        with pytest.raises(UsageError):
            origin(wrong)


def test_two_listeners_have_two_origins_and_pywb_two_hosts(tmp_path: Path) -> None:
    local, following = TcpAddress("127.0.0.1", 8080), TcpAddress("127.0.0.1", 8081)
    assert replay_address(None, local, Engine.BUILT_IN) == following
    assert replay_address("same", local, Engine.BUILT_IN) is None
    assert replay_address(None, TcpAddress("0.0.0.0", 80), Engine.BUILT_IN) is None
    assert replay_address(None, UnixAddress(tmp_path / "x"), Engine.BUILT_IN) is None
    with pytest.raises(UsageError):
        replay_address("same", local, Engine.PYWB)
    with pytest.raises(UsageError):
        replay_address("8080", local, Engine.BUILT_IN)
    asked = ServerOptions(archive=tmp_path, listen=local, replay_listen=following)
    told = room_options(asked, local, following, b"k")
    assert (told.origin, told.replay_origin) == ("http://127.0.0.1:8080", "http://127.0.0.1:8081")
    assert room_options(asked, local, None, b"").replay_origin == ""
    assert "key" not in repr(told)
    with pytest.raises(UsageError, match="--origin"):
        room_options(asked, TcpAddress("0.0.0.0", 80), following, b"")
    pywb = ServerOptions(archive=tmp_path, listen=local, replay_listen=following, engine=Engine.PYWB)
    with pytest.raises(UsageError, match="another host name"):
        room_options(pywb, local, following, b"")
    assert room_options(pywb, local, TcpAddress("localhost", 8081), b"").engine is Engine.PYWB
    assert isinstance(told, RoomOptions)


# -- host names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:9", True),
        ("localhost", True),
        ("LOCALHOST.:80", True),
        ("room.localhost", True),
        ("archive.example", True),
        ("archive.example:8443", True),
        ("evil.example", False),
        ("evil.example:80", False),
        ("archive.example.evil.example", False),
        ("evilarchive.example", False),
        ("127.0.0.1.evil.example", False),
        ("evillocalhost", False),
        ("192.0.2.9", False),
        ("[::1]", False),
        ("", False),
        ("archive.example, evil.example", False),
    ],
)
def test_a_listener_answers_for_its_own_host_names_alone(room: Room, host: str, *, is_answered: bool) -> None:
    """A page of another site may have its own name lead here."""
    for is_replay in (False, True):
        status, headers, body = room.ask("/x", replay=is_replay, Host=host)
        assert status == (200 if is_answered else 421)
        if not is_answered:
            assert b"evil" not in body and "nosniff" in str(headers)


def test_two_host_names_are_none_and_old_programs_send_no_name(room: Room) -> None:
    for head, status in ((b"Host: localhost\r\nHost: evil.example\r\n", b" 421 "), (b"", b" 200 ")):
        with room.connect() as client:
            client.sendall(b"GET /a HTTP/1.0\r\n" + head + b"\r\n")
            assert status in client.makefile("rb").readline()


def test_names_of_listeners(tmp_path: Path) -> None:
    local, socket_address = TcpAddress("127.0.0.1", 80), UnixAddress(tmp_path / "s")
    asked = ServerOptions(archive=tmp_path, listen=local, origin="https://a.example:444", hosts=("b.example",))
    told = room_options(asked, local, None, b"")
    assert host_names(told.origin, hosts=told.hosts) == {"a.example", "b.example", "127.0.0.1"}
    told = room_options(ServerOptions(archive=tmp_path, listen=socket_address), socket_address, None, b"")
    assert host_names(told.origin, hosts=told.hosts) == frozenset()  # its proxy decides
    for host, local_address, is_own in (
        (b"[::1]:80", "::1", True), (b"192.0.2.1", "::ffff:192.0.2.1", True), (b"[0:0::1]", "::1", True),
        (b"[::2]", "::1", False), (b"B.example.", "", True), (b"", "", False), (b":80", "", False),
    ):  # fmt: skip
        assert is_own_host([(b"host", host)], host_names(hosts=("b.example",)), local_address) is is_own
    for text in ("http://a", "a:80", "a/b", "", "a b"):
        with pytest.raises(UsageError):
            host_name(text)


@given(st.text(), st.text(), st.text())
def test_no_text_ends_a_line_or_a_field_of_the_log(target: str, agent: str, chance: str) -> None:
    written = line(
        AnsweredRequest(
            peer="::1",
            at=0.0,
            method="GET",
            target=target,
            version="1.1",
            status=200,
            size=1,
            referrer="",
            agent=agent,
            seconds=0.1,
            listener="room",
            chance=chance,
        )
    )
    assert written.isascii() and written.isprintable() and written.count('"') == 6
    assert '"' not in escaped(agent)
