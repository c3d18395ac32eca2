"""One run of wget over a batch of one server's URLs: its files, its command line, and where it stands.

Pure but for the files it reads; wgetpool.py starts and ends the processes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config.settings import CrawlSettings


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
    def errors(self) -> Path:
        """What wget said before it had its log."""
        return self.folder / f"{self.number:06}.err"

    @property
    def warc(self) -> Path:
        """What the server answered."""
        return self.folder / f"{self.number:06}.warc"


def command(
    files: BatchFiles, settings: CrawlSettings, wait: float, cookies: Path, *, to_the_end: bool = False
) -> list[str]:
    """wget's arguments (wget(1)), for the folder of the job as its working folder. `to_the_end`: a body is all that
    comes until the server ends the connection, whatever Content-Length says.

    It fetches and records; every decision is ours.

    `setpriv` has the kernel end wget when the agent dies, however it dies. Digests stay on: told not to make them, wget
    1.21 writes what happens to be in memory in their place, line ends included, and the record is broken.
    """
    arguments = [
        "setpriv",
        "--pdeathsig=KILL",
        "wget",
        "--no-hsts",
        "--no-iri",  # it would decode `%25` of each URL once more
        f"--input-file={files.list}",
        "--output-document=/dev/null",
        f"--output-file={files.log}",
        "--progress=dot:giga",
        f"--warc-file={files.warc.with_suffix('')}",
        "--warc-tempdir=.",  # the job's folder; wget has room for 100 characters
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
    if wait:
        # The heads of answers in the log: a Retry-After must be known before the next URL is asked for (wgetlog.py).
        arguments.append("--server-response")
    if to_the_end:
        arguments += ["--ignore-length", "--no-http-keep-alive"]
    if cookies.exists():
        arguments.append(f"--load-cookies={cookies}")
    # Behind what users add, since wget names no option behind it that it does not know.
    return [*arguments, *settings.wget_args, "--no-config"]


def environment() -> dict[str, str]:
    """wget's environment: messages in English, times of the log as the archive's clock.

    No TMPDIR: wget would put what it is fetching there, and not into the job's folder as it is told to; nobody would
    see how large that grows.
    """
    kept = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    return {**kept, "LC_ALL": "C", "TZ": "UTC-1"}


def bytes_so_far(pid: int, folder: Path) -> int:
    """How far the current document of a wget has come: the position in its deleted temporary file (proc(5)).

    It has a few more of them, for the record of the request and such; they stay small.
    """
    most = 0
    try:
        for fd in os.scandir(f"/proc/{pid}/fd"):
            target = str(Path(fd).readlink())
            if target.startswith(str(folder)) and target.endswith(" (deleted)"):
                info = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text("ascii")
                most = max(most, int(info.split("pos:", 1)[1].split(None, 1)[0]))
    except (OSError, ValueError, IndexError):
        pass  # it has just ended
    return most


def bytes_fetched(files: BatchFiles) -> int:
    """How large the WARC of a batch is by now: somewhat more than what its whole documents are."""
    try:
        return files.warc.stat().st_size
    except FileNotFoundError:
        return 0


def read_log(files: BatchFiles) -> str:
    """What wget said, as far as it came."""
    try:
        return files.log.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def complaint(files: BatchFiles) -> str:
    """Why wget did not begin: the line of what it said that bears its name, else the first."""
    said = files.errors.read_text("utf-8", "replace") + read_log(files)
    lines = [line for line in said.splitlines() if line.strip()]
    named = (line for line in lines if line.startswith(("wget:", "setpriv:")))
    return next(named, lines[0] if lines else "it did not say why")


def write_list(files: BatchFiles, urls: Sequence[str]) -> None:
    """Write the batch's URLs where wget reads them."""
    files.list.write_text("".join(f"{url}\n" for url in urls), "ascii")
