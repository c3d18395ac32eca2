"""Holds a child process at its system calls, so that it does nothing while it is looked at (ptrace(2)).

`signal.SIGSTOP` would stop it anywhere: between a look and the next, a process that is quick is past what was to be
seen. Held at each call, it cannot be. A child is held by the thread that began it, and goes on by itself if that
thread ends. While it is held, nobody else may wait for it: `subprocess.Popen.poll` would take a halt for its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

_CONT, _DETACH, _SYSCALL, _SYSEMU, _SEIZE, _INTERRUPT = 7, 17, 24, 31, 0x4206, 0x4207
_TRACESYSGOOD = 1
_ENDED = frozenset({os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED})
_ASK = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, None, None)"


class Held:
    """A child process that is halted now, or as soon as it can be. Raises OSError if it may not be, or has ended."""

    def __init__(self, pid: int) -> None:
        if not is_allowed():
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        self._pid = pid
        self._halt: int | None = None  # why it stands, as the kernel says
        self.is_gone = False
        _ptrace(_SEIZE, pid, _TRACESYSGOOD)
        _ptrace(_INTERRUPT, pid)

    def stands(self, *, wait: bool = False) -> bool:
        """Return whether it stands now; with `wait`, once it stands or has ended."""
        if self._halt is None and not self.is_gone:
            found = os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG))
            if found is not None and found.si_code in _ENDED:
                self.is_gone = True  # whoever started it takes its exit code
            elif found is not None:
                os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG)
                self._halt = found.si_status
        return self._halt is not None

    def go_on(self, *, skipping: bool = False) -> None:
        """Let it run to its next system call, or out of the one where it stands; it must stand.

        With `skipping`, the call that comes next is not made: a sleep that the halt interrupted is over.
        """
        self._send(_SYSEMU if skipping else _SYSCALL)

    def let_go(self) -> None:
        """Hold it no longer."""
        if not self.stands():
            self._try(_INTERRUPT)
            self.stands(wait=True)
        self._send(_DETACH)

    def _send(self, request: int) -> None:
        halt, self._halt = self._halt or 0, None
        # A signal that it was to get is handed over; other halts have numbers above the signals.
        self._try(request, halt if halt < signal.NSIG else 0)

    def _try(self, request: int, data: int = 0) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
            _ptrace(request, self._pid, data)


def end_sleep(pid: int) -> bool:
    """End the sleep that a child process is in; return whether that was done. If it has woken, nothing happens."""
    try:
        call, switches = _whereabouts(pid)
        held = Held(pid)
    except OSError:
        return False
    done = False
    try:
        # In the same call, and switched from once: for the halt. So it has made no other call.
        done = held.stands(wait=True) and _whereabouts(pid) == (call, switches + 1)
        if done:
            held.go_on(skipping=True)
            held.stands(wait=True)
    except OSError:
        pass  # it was killed meanwhile
    held.let_go()
    return done


def _whereabouts(pid: int) -> tuple[str, int]:
    """Return the system call that a process is in, with its arguments, and how often it gave the processor up."""
    call = Path(f"/proc/{pid}/syscall").read_text("ascii")
    status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    return call, int(status.partition("\nvoluntary_ctxt_switches:")[2].split(None, 1)[0])


@cache
def is_allowed() -> bool:
    """Return whether this process may ask. Another one tries it: a filter of system calls may kill who asks."""
    if "\nSeccomp:\t0\n" in Path("/proc/self/status").read_text("ascii", "replace"):
        return True
    return subprocess.run([sys.executable, "-I", "-S", "-c", _ASK], check=False, capture_output=True).returncode == 0


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    call = _library().ptrace
    call.restype, call.argtypes = ctypes.c_long, (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    if call(request, pid, None, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
