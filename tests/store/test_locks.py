"""Locks between processes (/Ar-2/, FUSE-NOTES: flock starves publishers, a turnstile does not)."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support.users import Other, open_folder
from webarcfs.archive.model.errors import Busy
from webarcfs.archive.system import locks
from webarcfs.archive.system.locks import Turnstile

pytestmark = pytest.mark.store
ROOT = str(Path(__file__).parents[2])


def holder(path: Path, how: str) -> subprocess.Popen[bytes]:
    """A process that holds the lock until it is killed."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom webarcfs.archive.system import locks\n"
        f"with {how}:\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": ROOT}
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    return process


@pytest.mark.timeout(60)
def test_a_publisher_does_not_starve(tmp_path: Path) -> None:
    """16 overlapping sharers kept a plain flock waiting for seconds; later sharers queue behind a turnstile."""
    path = tmp_path / "e.org"
    done = threading.Event()
    inside = 0
    most = 0
    guard = threading.Lock()

    def share() -> None:
        nonlocal inside, most
        lock = Turnstile(path)
        while not done.is_set():
            with lock.shared():
                with guard:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.02)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=share) for _ in range(16)]
    for number, thread in enumerate(threads):
        thread.start()
        time.sleep(0.001 * number)
    waits = []
    for _ in range(5):
        begun = time.monotonic()
        with Turnstile(path).exclusive():
            waits.append(time.monotonic() - begun)
            assert inside == 0, "it is held alone"
        time.sleep(0.05)
    done.set()
    for thread in threads:
        thread.join()
    assert max(waits) < 1
    assert most > 1, "sharers hold it together"


@pytest.mark.parametrize(
    "how", ["locks.exclusive(Path(sys.argv[1]))", "locks.Turnstile(Path(sys.argv[1])).exclusive()"]
)
def test_a_process_that_dies_lets_go(tmp_path: Path, how: str) -> None:
    path = tmp_path / "e.org"
    process = holder(path, how)
    assert locks.try_exclusive(path) is None
    with pytest.raises(Busy, match="taken"), locks.exclusive_or_busy(path, "it is taken"):
        pass
    process.kill()
    process.communicate()
    with Turnstile(path).exclusive():
        pass
    with locks.exclusive_or_busy(path, "it is taken") as fd:
        assert os.pwrite(fd, b"x", 0) == 1


def test_a_dead_process_in_the_turnstile_lets_go(tmp_path: Path) -> None:
    """Killed while it waits to publish: readers go on."""
    path = tmp_path / "e.org"
    lock = Turnstile(path)
    code = (
        "import sys\nfrom pathlib import Path\nfrom webarcfs.archive.system import locks\nprint('waits', flush=True)\n"
        "with locks.Turnstile(Path(sys.argv[1])).exclusive():\n    pass\n"
    )
    with lock.shared():
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": ROOT}
        )
        assert process.stdout is not None and process.stdout.readline() == b"waits\n"
        deadline = time.monotonic() + 10
        while (fd := locks.try_exclusive(tmp_path / ".turn-e.org")) is not None and time.monotonic() < deadline:
            os.close(fd)
            time.sleep(0.01)
        assert fd is None, "it stands in the turnstile"
        process.kill()
        process.communicate()
        with lock.shared():
            pass


def test_sharing_excludes_the_exclusive(tmp_path: Path) -> None:
    path = tmp_path / "e.org"
    with Turnstile(path).shared(), Turnstile(path).shared():
        assert locks.try_exclusive(path) is None
    fd = locks.try_exclusive(path)
    assert fd is not None
    os.close(fd)


def test_an_exception_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "e.org"
    for hold in (Turnstile(path).shared, Turnstile(path).exclusive, lambda: locks.exclusive(path)):
        with pytest.raises(KeyError), hold():
            raise KeyError
    with locks.exclusive_or_busy(path, "taken"):
        pass
    links = [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    assert not [link for link in links if link.is_relative_to(tmp_path)], "nothing is left open"


READER = """
import os, sys
from pathlib import Path
from webarcfs.archive.system import locks
path = Path(sys.argv[1])
with locks.Turnstile(path).shared():
    print(os.access(path, os.W_OK), os.access(path.parent, os.W_OK))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_readers_without_write_permission_can_share(other_user: Other) -> None:
    with open_folder() as folder:
        path = folder / "e.org"
        with Turnstile(path).exclusive():
            pass
        done = other_user.run(other_user.python, "-c", READER, path)
    assert (done.stdout, done.returncode) == ("False False\n", 0), done.stderr
