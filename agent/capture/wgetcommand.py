"""One run of wget over a batch of one server's URLs: its files, its command line, and its progress.

It only reads and writes files; wgetpool.py starts and ends the processes.

wget does not recurse, follow redirects or retry. `wget -r` with WARC output cannot resume, loses pages whose names
collide with folders, and takes more time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from webarcfs.archive.config.settings import CrawlSettings


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The files of batch `number` in the folder of its job. Each attempt has a WARC of its own."""

    folder: Path
    number: int

    @property
    def list(self) -> Path:
        """The URLs, one per line."""
        return self.folder / f"{self.number:06}.list"

    @property
    def log(self) -> Path:
        """The log of wget (`--output-file`)."""
        return self.folder / f"{self.number:06}.log"

    @property
    def errors(self) -> Path:
        """The standard output and error of wget, used before it opens its log."""
        return self.folder / f"{self.number:06}.err"

    @property
    def warc(self) -> Path:
        """The server's responses."""
        return self.folder / f"{self.number:06}.warc"


def command(
    files: BatchFiles,
    settings: CrawlSettings,
    wait: float,
    cookies: Path,
    *,
    to_the_end: bool = False,
    conditions: Mapping[str, str] = MappingProxyType({}),
    speed: int = 0,
) -> list[str]:
    """Return wget's arguments (wget(1)); its working folder is the job's folder.

    wget only fetches and records; the frontier decides. With `to_the_end`, a body ends where the server closes the
    connection, whatever Content-Length says. `conditions` are fields of the request, by name; with them wget closes the
    connection, as it would wait for a body after a 304. `setpriv` makes the kernel end wget when the agent dies,
    however it dies. Digests stay on: without them, wget 1.21 writes uninitialised memory in their place, line ends
    included, and the record is broken.
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
    if speed:
        arguments.append(f"--limit-rate={speed}")
    if wait:
        # Log the response heads: Retry-After must be known before the next request (wgetlog.py).
        arguments.append("--server-response")
    if to_the_end:
        arguments += ["--ignore-length", "--no-http-keep-alive"]
    if conditions:
        arguments += ["--no-http-keep-alive", *(f"--header={name}: {value}" for name, value in conditions.items())]
    if cookies.exists():
        arguments.append(f"--load-cookies={cookies}")
    # Last: wget does not name an unknown option that follows --no-config.
    return [*arguments, *settings.wget_args, "--no-config"]


def environment() -> dict[str, str]:
    """Return wget's environment: messages in English, times of the log in the archive's time zone.

    TMPDIR is removed: wget would prefer it to the job's folder for the current document, and `bytes_so_far` would not
    find the file.
    """
    kept = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    return {**kept, "LC_ALL": "C", "TZ": "UTC-1"}


def bytes_so_far(pid: int, folder: Path) -> int:
    """Return the bytes fetched of the current document: the position in wget's deleted temporary file (proc(5)).

    wget has more temporary files, for the request record among others; they stay small.
    """
    most = 0
    with contextlib.suppress(OSError, ValueError, IndexError):  # wget has just ended
        for fd in _temporary_files(pid, folder):
            info = Path(f"/proc/{pid}/fdinfo/{fd}").read_text("ascii")
            most = max(most, int(info.split("pos:", 1)[1].split(None, 1)[0]))
    return most


def is_answered(pid: int, folder: Path) -> bool:
    """Return whether the answer of the current document has begun: a temporary file of wget has its head (proc(5)).

    From then on wget needs no other file for this document.
    """
    with contextlib.suppress(OSError):
        for fd in _temporary_files(pid, folder):
            with Path(f"/proc/{pid}/fd/{fd}").open("rb") as file:
                if file.read(5) == b"HTTP/":
                    return True
    return False


def connections(pid: int) -> set[str]:
    """Return the names of wget's sockets (proc(5)); a new one is of a request that is not sent yet."""
    with contextlib.suppress(OSError):
        targets = [str(Path(fd).readlink()) for fd in os.scandir(f"/proc/{pid}/fd")]
        return {target for target in targets if target.startswith("socket:")}
    return set()


def _temporary_files(pid: int, folder: Path) -> Iterator[str]:
    """Yield the descriptors of a wget's temporary files, which are deleted while they are open."""
    for fd in os.scandir(f"/proc/{pid}/fd"):
        target = str(Path(fd).readlink())
        if target.startswith(str(folder)) and target.endswith(" (deleted)"):
            yield fd.name


def is_between(pid: int, folder: Path) -> bool:
    """Return whether wget pauses between two documents: it sleeps (proc(5)), and has no document under way.

    Its log does not tell: wget writes the end of a document together with the head of the next one.
    """
    try:
        asleep = "nanosleep" in Path(f"/proc/{pid}/wchan").read_text("ascii", "replace")
    except OSError:
        return False
    return asleep and bytes_so_far(pid, folder) == 0  # with a limit of speed it also sleeps amid a document


def bytes_fetched(files: BatchFiles) -> int:
    """Return the size of a batch's WARC in bytes: slightly more than the size of its whole documents."""
    try:
        return files.warc.stat().st_size
    except FileNotFoundError:
        return 0


def read_log(files: BatchFiles) -> str:
    """Return the log of wget; empty if it does not exist yet."""
    try:
        return files.log.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def complaint(files: BatchFiles) -> str:
    """Return why wget did not start: the first line that begins with its name, else the first line."""
    said = files.errors.read_text("utf-8", "replace") + read_log(files)
    lines = [line for line in said.splitlines() if line.strip()]
    named = (line for line in lines if line.startswith(("wget:", "setpriv:")))
    return next(named, lines[0] if lines else "it did not say why")


def write_list(files: BatchFiles, urls: Sequence[str]) -> None:
    """Write the batch's URLs into its list, which wget reads."""
    files.list.write_text("".join(f"{url}\n" for url in urls), "ascii")
