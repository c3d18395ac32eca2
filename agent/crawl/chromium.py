"""Chromium without a network: started in namespaces of its own, and driven by CDP over two pipes.

The browser runs untrusted scripts, so it gets as little as it needs. It is in a network namespace without any device
but a loopback of its own: nothing that it does reaches a network, whatever a page or the browser itself tries. Its
profile is on a file system in memory that only its mount namespace has: it is gone with the browser, however that ends.
It is in a process namespace: when the first process there ends, the kernel ends all others. The first one ends with the
process that started it (PR_SET_PDEATHSIG). Chromium's own sandbox stays on. There is no form without all of this: where
no namespace can be made, `start` raises BrowserUnable.

Root makes the namespaces as root, then becomes another user, whom the caller names. Others make them in a user
namespace, and then give all capabilities up.

CDP (Chrome DevTools Protocol) goes over the descriptors 3 and 4 of the browser, messages end with a NUL. So there is no
port that another user could reach. `Chromium` is used in one asyncio loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from webarcfs.archive.model.errors import BrowserGone, BrowserUnable, CdpFailed

# == start ============================================================================================================


#: Names of the program, the first that is there counts.
PROGRAMS = ("chromium", "chromium-browser")
PACKAGE = "chromium"
#: Seconds for which namespaces without a browser are tried.
_LONGEST_TRY = 20.0
#: Bytes of the file system in memory with the profile.
_PROFILE_BYTES = 256 << 20
_SWITCHES = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--user-data-dir=/tmp/profile",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--block-new-web-contents",
    "--disable-background-networking",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    # A page is shown whether or not anybody looks at its window.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-features=Translate,MediaRouter,OptimizationHints,HttpsUpgrades,Prerender2,NetworkPrediction,"
    "PaintHolding,AutofillServerCommunication,DialMediaRouteProvider,SpareRendererForSitePerProcess,"
    # Else a process of its own makes the suggestions of an address bar that nobody sees: 50 MiB.
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    # Nobody sees how its strip of tabs moves, and drawing that is a tenth of the work.
    "--animation-duration-scale=0",
    "--autoplay-policy=no-user-gesture-required",
    "--force-color-profile=srgb",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--hide-scrollbars",
    "--lang=en",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    # No name is looked up and nothing connects, even to its own loopback: all answers come over the pipe.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
)


def user_of(named: str) -> str | None:
    """Return whom root becomes for a browser, by `user` of `[browser]`; None for anybody else, who stays the same."""
    return named if os.geteuid() == 0 else None


def command(program: str, *, window: tuple[int, int], user: str | None, archive: Path) -> list[str]:
    """Return the command that starts a browser; `user` is whom root becomes, None for anybody else.

    Raises BrowserUnable where there is no such user.
    """
    browser = [program, *_SWITCHES, f"--window-size={window[0]},{window[1]}", "about:blank"]
    return isolated(browser, user=user, hidden=hidden_folders(program, archive))


def hidden_folders(program: str, archive: Path) -> list[Path]:
    """Return what a browser does not see: the archive, and the homes of its owner and of the user who crawls.

    Without root it has the rights of that user, and a page that breaks out of Chromium's sandbox would have them, too.
    A folder with the program of the browser is seen all the same.
    """
    folders = {archive}
    for uid in {os.geteuid(), archive.stat().st_uid}:
        with contextlib.suppress(KeyError):  # in containers many users have no name
            folders.add(Path(pwd.getpwuid(uid).pw_dir))
    needed = Path(os.path.realpath(program)), Path("/tmp")  # noqa: S108 # the file system with the profile
    real = {Path(os.path.realpath(folder)) for folder in folders}
    return sorted(folder for folder in real if not any(path.is_relative_to(folder) for path in needed))


def isolated(program: Sequence[str], *, user: str | None, hidden: Sequence[Path] = ()) -> list[str]:
    """Return the command that starts a program in namespaces of its own. Raises BrowserUnable without such a user.

    The folders `hidden` are empty and read-only there.
    `setpriv` comes first so that the kernel ends `unshare` when its parent dies, however it dies; it ends its child.
    """
    namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--ipc", "--uts"]
    if user is None:
        namespaces = ["--user", "--map-current-user", "--keep-caps", *namespaces]
        privileges = "--bounding-set=-all --inh-caps=-all --ambient-caps=-all"
    else:
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            raise BrowserUnable(f"`user` of [browser]: there is no user {user}") from None
        privileges = f"--reuid={account.pw_uid} --regid={account.pw_gid} --clear-groups --inh-caps=-all"
    mount = f"mount -t tmpfs -o size={_PROFILE_BYTES},mode=1777,nosuid,nodev tmpfs /tmp"
    for folder in map(shlex.quote, map(str, hidden)):  # one that is not there lies in another one, or in /tmp
        empty = f"mount -t tmpfs -o ro,size=4k,mode=755,nosuid,nodev,noexec tmpfs {folder}"
        mount = f"{mount} && if [ -d {folder} ]; then {empty}; fi"
    begin = f'{mount} && cd /tmp && exec setpriv {privileges} --pdeathsig=KILL -- "$@"'
    return ["setpriv", "--pdeathsig=KILL", "unshare", *namespaces, "--", "/bin/sh", "-c", begin, "sh", *program]


def try_isolation(program: str, user: str | None, archive: Path) -> str:
    """Make the namespaces of a browser, and run `true` in them; return why that failed, empty if it did not.

    Raises BrowserUnable where a program for it is missing.
    """
    try:
        attempt = subprocess.run(
            isolated(["true"], user=user, hidden=hidden_folders(program, archive)),
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_TRY,
            check=False,
        )
    except FileNotFoundError as error:
        raise BrowserUnable(f"{error.filename} is not installed; it is part of util-linux") from None
    except (subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    if attempt.returncode == 0:
        return ""
    lines = attempt.stderr.decode("utf-8", "replace").splitlines()
    return lines[-1].strip() if lines else f"unshare ended with {attempt.returncode}"


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the browser's environment: nothing of the caller's but its path."""
    path = given.get("PATH", "/usr/bin:/bin")
    return {"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}  # noqa: S108 # in its namespace


def find_program(named: str = "") -> str:
    """Return the path of the program, which a setting may name. Raises BrowserUnable where there is none."""
    if named:
        if not os.access(named, os.X_OK):
            raise BrowserUnable(f"`program` of [browser]: {named} is no program")
        return named
    path = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if path is None:
        raise BrowserUnable(f"no browser is installed: `apt-get install {PACKAGE}`, or set `fetcher` to wget")
    return path


# == processes ========================================================================================================


_PAGE = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """Return a process and all below it (proc(5)); those that end meanwhile may be missing."""
    children: dict[int, list[int]] = {}
    for name in (entry.name for entry in os.scandir("/proc")):
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(_start_of(f"/proc/{name}/stat").rpartition(b")")[2].split(None, 2)[1])
                children.setdefault(parent, []).append(int(name))
    members = [pid]
    for member in members:  # grows
        members += children.get(member, ())
    return members


def _start_of(path: str) -> bytes:
    # Without a file object, since all processes of a machine are read, twice a second.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 512)
    finally:
        os.close(fd)


def memory_of(pids: Iterable[int]) -> int:
    """Return the bytes that processes have for themselves, and once what they share most (proc(5), statm).

    Any user may read statm, and not the exact share (smaps) of a process in a sandbox.
    """
    own, shared = 0, 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, resident, mapped = map(int, _start_of(f"/proc/{pid}/statm").split()[:3])
            own += resident - mapped
            shared = max(shared, mapped)
    return (own + shared) * _PAGE


# == the running browser ==============================================================================================


_READ_AT_ONCE = 1 << 20
#: Bytes of a message from the browser: the DOM of a page is the largest, in UTF-16 escapes.
_LONGEST_MESSAGE = 256 << 20
_PATIENT_END = 5.0
_START = 60.0
#: Seconds between two looks at its memory; and when it has half of what it may: a page can take gigabytes in seconds.
_LOOK, _LOOK_CLOSE = 0.5, 0.05
_SPAWN_FDS = (3, 4)

Params = dict[str, Any]
Handler = Callable[[Params, str], None]


class Chromium:
    """A running browser. `on` sets the one handler of an event; it gets the parameters and the session's id."""

    def __init__(self, pid: int, to_browser: int, from_browser: int, errors: Path) -> None:
        self.pid = pid
        self._out, self._in = to_browser, from_browser
        self._errors = errors
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._handlers: dict[str, Handler] = {}
        self._received = bytearray()
        self._scanned = 0
        self._to_send = bytearray()
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[str] = self._loop.create_future()
        for fd in (to_browser, from_browser):
            os.set_blocking(fd, False)
        self._loop.add_reader(from_browser, self._receive)

    @classmethod
    def start(cls, program: str, *, window: tuple[int, int], user: str, archive: Path, errors: Path) -> Chromium:
        """Start a browser, which does not see the archive; what it says goes into the file `errors`.

        `program` and `user` are those of `[browser]`. Raises BrowserUnable, OSError.
        """
        arguments = command(find_program(program), window=window, user=user_of(user), archive=archive)
        path = shutil.which(arguments[0])
        if path is None:
            raise BrowserUnable(f"{arguments[0]} is not installed; it is part of util-linux")
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()
        # Above 3 and 4, so that no copy is overwritten by the next.
        spare = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SPAWN_FDS[-1] + 1) for fd in (from_us, to_us)]
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(errors), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_DUP2, fd, number) for fd, number in zip(spare, _SPAWN_FDS, strict=True)),
        ]
        try:
            pid = os.posix_spawn(path, arguments, environment(os.environ), file_actions=actions, setpgroup=0)
        except OSError:
            for fd in (to_browser, from_browser):
                os.close(fd)
            raise
        finally:
            for fd in (from_us, to_us, *spare):
                os.close(fd)
        return cls(pid, to_browser, from_browser, errors)

    async def intercept(self) -> str:
        """Have each of its requests paused (event Fetch.requestPaused), and let it download nothing.

        Return its user agent. Raises CdpFailed.
        """
        try:
            async with asyncio.timeout(_START):
                version = await self.send("Browser.getVersion")
                await self.send("Fetch.enable", patterns=[{"urlPattern": "*", "requestStage": "Request"}])
                await self.send("Browser.setDownloadBehavior", behavior="deny")
                await self.send("Target.setDiscoverTargets", discover=True)
                return str(version["userAgent"])
        except TimeoutError:
            raise CdpFailed("the browser did not start") from None

    async def hold_memory(self, most: int) -> bool:
        """Kill it when it has more bytes than it may; return whether that was done, once it has ended."""
        while not self.gone.done():
            memory = memory_of(family(self.pid))
            if memory > most:
                self.kill()
                return True
            await asyncio.sleep(_LOOK if memory < most // 2 else _LOOK_CLOSE)
        return False

    def on(self, event: str, handler: Handler) -> None:
        """Call `handler` for each event of this name."""
        self._handlers[event] = handler

    def send(self, method: str, session: str = "", **params: Any) -> asyncio.Future[Params]:
        """Send a command; the result comes later. The future raises CdpFailed, BrowserGone."""
        self._number += 1
        result: asyncio.Future[Params] = self._loop.create_future()
        # Many results are of no interest; a failure that nobody awaits is none.
        result.add_done_callback(lambda future: None if future.cancelled() else future.exception() and None)
        if self.gone.done():
            result.set_exception(BrowserGone(self.gone.result()))
            return result
        message: Params = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._waiting[self._number] = result
        self._to_send += json.dumps(message).encode("ascii") + b"\0"
        self._write()
        return result

    @property
    def complaint(self) -> str:
        """What the browser or a program before it said last, for people: one line, empty without any."""
        with contextlib.suppress(OSError):
            lines = self._errors.read_text("utf-8", "replace").splitlines()
            # `unshare` says this where its child was killed.
            lines = [line for line in lines if "sigprocmask" not in line]
            wanted = [line for line in lines if line.startswith(("unshare:", "mount:", "setpriv:", "sh:"))]
            fatal = [line for line in lines if ":FATAL:" in line]
            return next(iter(wanted or fatal or lines[-1:]), "").strip()
        return ""

    def kill(self) -> None:
        """End it at once, with all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End it and wait until it has ended."""
        self.kill()
        await asyncio.wait([self.gone], timeout=_PATIENT_END)
        self._end("it was ended")
        await self._loop.run_in_executor(None, self._reap)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _receive(self) -> None:
        try:
            data = os.read(self._in, _READ_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(self.complaint or "the browser has ended")
            return
        self._received += data
        while (end := self._received.find(0, self._scanned)) >= 0:
            message = bytes(self._received[:end])
            del self._received[: end + 1]
            self._scanned = 0
            self._take(json.loads(message))
        self._scanned = len(self._received)
        if len(self._received) > _LONGEST_MESSAGE:
            self.kill()

    def _take(self, message: Params) -> None:
        if "id" in message:
            result = self._waiting.pop(message["id"], None)
            if result is None or result.done():
                return
            if "error" in message:
                result.set_exception(CdpFailed(str(message["error"].get("message", ""))))
            else:
                result.set_result(message.get("result", {}))
        elif (handler := self._handlers.get(message["method"])) is not None:
            handler(message.get("params", {}), message.get("sessionId", ""))

    def _write(self) -> None:
        try:
            while self._to_send:
                written = os.write(self._out, self._to_send[: 1 << 16])
                del self._to_send[:written]
        except BlockingIOError:
            self._loop.add_writer(self._out, self._write)
            return
        except OSError:
            self._to_send.clear()  # it has ended; the reader notices
        self._loop.remove_writer(self._out)

    def _end(self, why: str) -> None:
        if self.gone.done():
            return
        self.gone.set_result(why)
        self._loop.remove_reader(self._in)
        self._loop.remove_writer(self._out)
        for fd in (self._in, self._out):
            os.close(fd)
        for result in self._waiting.values():
            if not result.done():
                result.set_exception(BrowserGone(why))
        self._waiting.clear()
