"""Real mounts for tests, made as the console script makes them, and cleared away whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support import forked
from tests.support.waiting import PATIENCE
from webarcfs.mount.adapters import binding
from webarcfs.mount.process import mountpoint

SCRIPTS = Path(sys.executable).parent
MOUNT = str(SCRIPTS / "mount.webarcfs")
UMOUNT = str(SCRIPTS / "umount.webarcfs")
#: How whoever runs the tests unmounts without our command, and detaches what is busy.
UNMOUNT = ("umount", "-i") if os.geteuid() == 0 else ("fusermount3", "-u")
DETACH = (*UNMOUNT, "-l" if os.geteuid() == 0 else "-z")


def run(*command: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, its output as text."""
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [str(word) for word in command], capture_output=True, text=True, timeout=240, check=False, **more
    )


class Mounted:
    """One mount: where, and the process behind it."""

    def __init__(self, archive: Path, point: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        point.mkdir(exist_ok=True)
        self.point = point
        if environment is None:
            done = forked.run([*forked.MOUNT, archive, point, *options])
        else:
            done = run(MOUNT, archive, point, *options, env={**os.environ, **environment})
        if done.returncode:
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        #: What the command said on stderr.
        self.notes = done.stderr
        self.pid = int(os.getxattr(point, binding.PID))
        self._process = os.pidfd_open(self.pid)

    def __truediv__(self, path: str) -> Path:
        return self.point / path

    def ended(self, within: float = PATIENCE) -> bool:
        """Whether the process ends in time: at once, if nobody holds anything of the mount."""
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        return bool(poll.poll(within * 1000))

    def clear(self) -> None:
        """No mount and no process is left, whatever state they are in."""
        if self._process < 0:
            return
        while mountpoint.mounted(self.point):
            done = run(*DETACH, self.point)
            if done.returncode and mountpoint.mounted(self.point):
                raise AssertionError(f"a mount is left: {done.stderr}")
        if not self.ended(10):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            self.ended(5)
        os.close(self._process)
        self._process = -1
