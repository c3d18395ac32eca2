"""The process of pywb: its settings, its start, and another start when it dies. It ends with this process.

It finds captures at `/cdx/pywb` and their records at `/record/…` of a listener of ours on loopback, and has no other
source: no live web, no collections of its own, no recorder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from webarcfs.archive.model.errors import UsageError, WebarcError

#: Where pywb's program is, if not on PATH: of this checkout's `make pywb`, or as the administrator says.
VARIABLE = "WEBARC_PYWB"
_PROGRAM = "wayback"
#: Our script in archived pages, as pywb names it below /static/; the proxy has it.
GUARD = "webarc-guard.js"
#: Seconds until it is started again after it died: the first, doubled each time, and the last.
_SHORTEST, _LONGEST = 0.5, 30.0
#: Seconds that it has to answer at first.
_PATIENCE = 60.0
_SETTINGS = """\
framed_replay: true
redirect_to_exact: false
enable_auto_colls: false
enable_memento: true
enable_auto_fetch: false
client_side_replay: false
inject_scripts: [{guard}]
collections:
  web:
    index:
      type: cdx
      api_url: "http://127.0.0.1:{source}/cdx/pywb?url={{url}}&closest={{closest}}&sort=closest"
      replay_url: ""
    archive_paths: "http://127.0.0.1:{source}/record/"
"""


def program() -> Path:
    """Return the path of pywb's program. Raises UsageError where it is not installed."""
    beside = Path(__file__).resolve().parents[3] / ".venv-pywb" / "bin" / _PROGRAM
    for path in (os.environ.get(VARIABLE), str(beside), shutil.which(_PROGRAM)):
        if path and os.access(path, os.X_OK):
            return Path(path)
    raise UsageError(
        "pywb is not installed: `make pywb` in a checkout, or put it into an environment of its own "
        "(python3 -m venv /opt/pywb; /opt/pywb/bin/pip install pywb==2.10.0), and set "
        f"{VARIABLE}=/opt/pywb/bin/wayback"
    )


class Pywb:
    """A running pywb. `start` it before the first request; `stop` ends it."""

    def __init__(self, source: int) -> None:
        """`source` is the port of ours that it asks. Raises UsageError where it is not installed."""
        self._program = program()
        self._source = source
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopping = threading.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="webarc-pywb-")
        # The thread that starts it must live as long: the kernel ends it with that thread (prctl(2), PR_SET_PDEATHSIG).
        self._thread = threading.Thread(target=self._watch, name="pywb", daemon=True)

    @property
    def origin(self) -> str:
        """Where it is asked."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return at once."""
        (Path(self._folder.name) / "config.yaml").write_text(_SETTINGS.format(source=self._source, guard=GUARD))
        self._thread.start()

    def wait(self) -> None:
        """Wait until it answers. Raises WebarcError if it does not."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise WebarcError(f"pywb does not respond; {self._program} may say why when it is called by hand")

    def stop(self) -> None:
        """End it, and remove its folder."""
        self._is_stopping.set()
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._process.kill()
        if self._thread.is_alive():
            self._thread.join(5)
        self._folder.cleanup()

    def _watch(self) -> None:
        pause = _SHORTEST
        while not self._is_stopping.is_set():
            begun = time.monotonic()
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", self._program, "-b", "127.0.0.1", "-p", str(self.port)],
                cwd=self._folder.name, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=_environment(self._folder.name),
            )  # fmt: skip
            code = self._process.wait()
            if self._is_stopping.is_set():
                return
            pause = _SHORTEST if time.monotonic() - begun > _LONGEST else min(2 * pause, _LONGEST)
            sys.stderr.write(f"webarc serve: pywb ended (exit code {code}); it starts again in {pause:g} s\n")
            self._is_stopping.wait(pause)


def _environment(folder: str) -> dict[str, str]:
    """Return what it gets of ours: nothing that names other settings (PYWB_CONFIG_FILE), proxies or secrets."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return {**kept, "HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
