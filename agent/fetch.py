"""One run of wget over a batch of one server's URLs: its files, its command line, and where it stands.

Pure but for the files it reads; capture.py starts and ends the processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config import CrawlSettings

_BEGIN = re.compile(rb"^--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  ", re.MULTILINE)
_TAIL = 1 << 16


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The files of batch `number` in the folder of its job. Each attempt has a WARC of its own."""

    folder: Path
    number: int

    @property
    def list(self) -> Path:
        """The URLs, a line each."""
        return self.folder / f"{self.number:06}.list"

    @property
    def log(self) -> Path:
        """What wget said."""
        return self.folder / f"{self.number:06}.log"

    @property
    def warc(self) -> Path:
        """What the server answered."""
        return self.folder / f"{self.number:06}.warc"


def command(files: BatchFiles, settings: CrawlSettings, wait: float, cookies: Path) -> list[str]:
    """wget's arguments (wget(1)). It fetches and records; every decision is ours (DESIGN.md section 6, capture).

    `setpriv` has the kernel end wget when the agent dies, however it dies.
    """
    arguments = [
        "setpriv",
        "--pdeathsig=KILL",
        "wget",
        "--no-config",
        "--no-hsts",
        f"--input-file={files.list}",
        "--output-document=/dev/null",
        f"--output-file={files.log}",
        "--progress=dot:giga",
        f"--warc-file={files.warc.with_suffix('')}",
        f"--warc-tempdir={files.folder}",
        "--no-warc-compression",
        "--no-warc-keep-log",
        "--max-redirect=0",
        "--tries=1",
        f"--timeout={settings.timeout:g}",
        f"--wait={wait:g}",
        f"--user-agent={settings.user_agent}",
        "--keep-session-cookies",
        f"--save-cookies={cookies}",
    ]
    if not settings.keep_warc:
        # wget 1.21 then writes junk for a digest, which nobody reads here; in a WARC that is kept it must be right.
        arguments.append("--no-warc-digests")
    if cookies.exists():
        arguments.append(f"--load-cookies={cookies}")
    return [*arguments, *settings.wget_args]


def environment() -> dict[str, str]:
    """wget's environment: messages in English, times of the log as the archive's clock."""
    return {**os.environ, "LC_ALL": "C", "TZ": "UTC-1"}


def begun(log: Path) -> int:
    """How many documents wget has begun, told by the position of the last one's line; 0 before the first."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = file.seek(max(0, size - _TAIL))
            lines = list(_BEGIN.finditer(file.read()))
    except FileNotFoundError:
        return 0
    return start + lines[-1].end() if lines else 0


def bytes_so_far(pid: int, folder: Path) -> int:
    """How far the current document of a wget has come: the position in its deleted temporary file (proc(5))."""
    try:
        for fd in os.scandir(f"/proc/{pid}/fd"):
            target = str(Path(fd).readlink())
            if target.startswith(str(folder)) and target.endswith(" (deleted)"):
                info = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text("ascii")
                return int(info.split("pos:", 1)[1].split(None, 1)[0])
    except (OSError, ValueError, IndexError):
        pass  # it has just ended
    return 0


def read_log(files: BatchFiles) -> str:
    """What wget said, as far as it came."""
    try:
        return files.log.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def write_list(files: BatchFiles, urls: Sequence[str]) -> None:
    """Write the batch's URLs where wget reads them."""
    files.list.write_text("".join(f"{url}\n" for url in urls), "ascii")
