"""examples/: nginx and Apache in front of the room hand on the path as it was sent, and whose request it is."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.room.test_server import served
from tests.support.sources import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.store

_EXAMPLES = ROOT / "examples"
#: The password of anna is `geheim`.
_READERS = "anna:{SHA}" + base64.b64encode(bytes.fromhex("906072001efddf3e11e6d2b5782f4777fe038739")).decode()
_PATHS = (
    "/web/2026/http://e.org/a%2Fb%3Fc%23d",
    "/web/2026/http://e.org//a///b?x=//&y=%2F&u=http://e.org/?a=b",
    "/web/2026/http:/e.org/stra%C3%9Fe/%FC/%7e?q=%FC+%C3%BC",
    "/web/2026/http://e.org/a/./b/../c;d=1,2(3)'*!@:$&+=",
    "/web/*/e.org/x*?",
)


@pytest.fixture(params=["nginx", "apache2"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a proxy with the example's settings, in front of an app that says what it was asked."""
    if shutil.which(request.param, path="/usr/sbin:/usr/bin") is None:
        pytest.skip(f"there is no {request.param}")
    origins = {"STUB_ORIGIN": "https://archive.example.org", "STUB_REPLAY_ORIGIN": "https://replay.example.org"}
    origins["STUB_HOSTS"] = ""
    with tempfile.TemporaryDirectory(prefix="webarc-proxy-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the proxy is another user
        (folder / "readers").write_text(f"{_READERS}\n", "ascii")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            free = int(taken.getsockname()[1])
        proxy = _nginx if request.param == "nginx" else _apache
        with served(folder, f"unix:{folder}/room", f"unix:{folder}/replay", **origins), proxy(folder, free):
            yield free


def _example(name: str, folder: Path, port: int) -> str:
    """The example for this folder, without TLS, and with readers who log in at the room."""
    text = (_EXAMPLES / name).read_text("utf-8").replace("/run/webarc-room/", f"{folder}/").replace(
        "*:443", f"127.0.0.1:{port}"
    ).replace("443 ssl", f"127.0.0.1:{port}")  # fmt: skip
    text = re.sub(r"(?m)^ *(SSL|ssl_).*\n", "", text)
    text = re.sub(r"(?m)^( *)#(<|auth|    Auth|    Require)", r"\1\2", text)
    return re.sub(r"/etc/(nginx|apache2)/readers", f"{folder}/readers", text)


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command)
    try:
        until(lambda: _answers(port), every=0.05)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _nginx(folder: Path, port: int) -> contextlib.AbstractContextManager[None]:
    scratch = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; user www-data;\n"
        f"events {{}}\nhttp {{ access_log off;\n{scratch}{_example('nginx-room.conf', folder, port)} }}\n",
        "utf-8",
    )
    return _running(["/usr/sbin/nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"], port)


def _apache(folder: Path, port: int) -> contextlib.AbstractContextManager[None]:
    names = (
        "mpm_event",
        "authn_core",
        "authn_file",
        "authz_core",
        "authz_user",
        "auth_basic",
        "headers",
        "proxy",
        "proxy_http",
    )
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in names)
    (folder / "apache.conf").write_text(
        f"{modules}ServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {folder}/apache.pid\n"
        f"User www-data\nGroup www-data\n"
        f"ErrorLog {folder}/error.log\nDefaultRuntimeDir {folder}\n{_example('apache-room.conf', folder, port)}",
        "utf-8",
    )
    return _running(["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", str(folder / "apache.conf")], port)


def _ask(port: int, host: str, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(client):
        client.request(
            "GET", path, headers={"Host": host, **{name.replace("_", "-"): each for name, each in headers.items()}}
        )
        answer = client.getresponse()
        body = answer.read()
    return answer.status, json.loads(body) if answer.status == 200 else {}


def test_a_proxy_hands_on_paths_as_they_were_sent_and_the_name_of_who_has_logged_in(port: int) -> None:
    login = "Basic " + base64.b64encode(b"anna:geheim").decode()
    for path in _PATHS:
        status, said = _ask(port, "archive.example.org", path, Authorization=login, X_Reader="bert")
        sent, _, query = path.partition("?")
        assert (status, said["path"], said["query"]) == (200, sent, query)
        assert (said["listener"], said["peer"], said["headers"]["x-reader"]) == ("room", "unix", "anna")
        assert "authorization" not in said["headers"]
        status, said = _ask(port, "replay.example.org", path, Authorization=login, X_Reader="bert", Cookie="a=b")
        assert (status, said["path"], said["query"], said["listener"]) == (200, sent, query, "replay")
        assert not {"x-reader", "authorization", "cookie"} & set(said["headers"])
    assert _ask(port, "archive.example.org", "/")[0] == 401


def test_the_unit_of_the_room_is_sound_and_exposes_little(tmp_path: Path) -> None:
    """examples/webarc-room.service: nothing in it is unknown to systemd, and it is hardened."""
    copy = tmp_path / "webarc-room.service"
    unit = (_EXAMPLES / copy.name).read_text("utf-8").replace("/usr/local/bin/webarc", "/bin/true")
    copy.write_text(unit, "utf-8")
    for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=20", "--no-pager"]):
        done = subprocess.run(
            ["systemd-analyze", *command, str(copy)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr, done.stderr
