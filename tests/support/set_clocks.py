"""The system's clock as a command and all its children see it, set while they run; that of the machine stays.

    with set_clocks.clock() as clock:
        process = start_command(..., **clock.environment)
        clock.set(-3600)

A library that is loaded before libc (LD_PRELOAD) adds seconds to the time of day, which it reads from a file that all
share. Clocks that count from the boot go on as they are, as they do where a machine's clock is set.

The browser's environment has nothing of the caller's. `clock.chromium` is a program that is Chromium with this clock.
The files are not below /tmp, which the browser has for itself.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.browsers import CHROMIUM

_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *seconds;

__attribute__((constructor)) static void begin(void) {
  int file = open(FILE_OF_SECONDS, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) seconds = page;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = syscall(SYS_clock_gettime, clock, time);
  if (!failed && seconds && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += *seconds;
  return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
"""


class SetClock:
    """The clock, with its files in a folder."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self._file = folder / "seconds"
        self.set(0)
        source, library = folder / "clock.c", folder / "clock.so"
        source.write_text(_SOURCE)
        defined = f'-DFILE_OF_SECONDS="{self._file}"'
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", defined, "-o", library, source], check=True)
        self.environment: Mapping[str, str] = {"LD_PRELOAD": str(library)}
        self.chromium = folder / "chromium"
        self.chromium.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {CHROMIUM} "$@"\n')
        self.chromium.chmod(0o755)

    def set(self, seconds: int) -> None:
        """Set it so many seconds before or behind the machine's."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("@l", seconds))


@contextmanager
def clock() -> Iterator[SetClock]:
    """A clock that goes as the machine's does until it is set; skips where no compiler is."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler is missing")
    folder = Path(tempfile.mkdtemp(prefix="webarc-clock-", dir="/var/tmp"))  # the browser has its own /tmp
    folder.chmod(0o755)
    try:
        yield SetClock(folder, compiler)
    finally:
        shutil.rmtree(folder)
