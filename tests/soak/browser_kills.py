"""`python -m tests.soak.browser_kills [--kills 100] [--seed 39] [--option WORD …]`: kill -9 amid crawls by browser.

`--victim job --span 7 9` looks closer at what was found: the job alone is killed, at seconds 7 to 9 of its life.

Each round is a crawl into an archive of its own, in which the job, the process that drives the browser, or the browser
is killed at a random moment of its life. A job that was killed, or that failed with its browser, is resumed by the
same command. Nothing may be fetched twice but what was cut. No process and no folder may be left. URLs and bodies are
those of a crawl without a kill, of the site and, with `--apps`, of built apps. Exit 1 if not. `--fetcher wget` tries
the same with wget, where the job alone is killed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.support.app_server import serving
from tests.support.built_apps import APPS, download
from tests.support.crawls import COMMAND, check_sound, files
from tests.support.process_trees import RunningProcess, adopt_orphans, processes_below, wait_for_none
from tests.support.script_site import ScriptSite, SentResponse
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit

#: Small pages beside the start page.
_SMALL_PAGES = 6
#: Answers that no crawl keeps, so that it may ask for them again.
_NOT_KEPT = ("/events", "/socket")
#: Seconds after which nothing may be left of a process that was killed, and after which a crawl hangs.
_GONE_WITHIN, _ENDED_WITHIN = 30.0, 900.0
#: Between two looks at the processes.
_SECONDS_BETWEEN_LOOKS = 0.01
#: Seconds after a kill within which the site may notice a request that was sent before, on a busy machine.
_LATE = 0.5
#: Where Chromium puts files in spite of TMPDIR.
_SHARED = Path("/dev/shm")


class Victim(Enum):
    """Who is killed."""

    JOB = "job"
    CONTROLLER = "controller"
    BROWSER = "browser"


_VICTIMS = {
    "browser": (Victim.JOB, Victim.CONTROLLER, Victim.BROWSER),
    # A wget that dies alone takes with it what stdio has not written yet.
    "wget": (Victim.JOB,),
}
_Contents = dict[str, dict[str, tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class WholeCrawl:
    """A crawl without a kill: exit code, what it archived, and the seconds for which each victim lived."""

    code: int
    contents: _Contents
    lives: dict[Victim, float]


@dataclass(frozen=True, slots=True)
class KilledCrawl:
    """A crawl that ended: the archive, the exit codes of its commands, and when somebody was killed, if so."""

    archive: Archive
    codes: tuple[int, ...]
    killed: float | None
    left: tuple[str, ...]
    said: str


@dataclass(frozen=True, slots=True)
class KillPlan:
    """What all crawls have in common."""

    urls: tuple[str, ...]
    fetcher: str
    options: tuple[str, ...]
    site: ScriptSite | None = None  # what it sent is looked at

    @property
    def responses(self) -> Sequence[SentResponse]:
        """What the site sent since `clear_log`; nothing of another server."""
        return self.site.responses if self.site is not None else ()

    def clear_log(self) -> None:
        """Forget what was sent."""
        if self.site is not None:
            self.site.clear_log()

    def command(self, archive: Archive) -> list[str]:
        """The command line of a crawl."""
        fetcher = () if self.fetcher == "wget" else ("--fetcher", self.fetcher)
        words = ("--archive", str(archive.root), "--wait", "0", "--depth", "0", "--no-sitemaps", *fetcher)
        # A crawl ends with this process, however that ends.
        return ["setpriv", "--pdeathsig=KILL", *COMMAND, "--quiet", "crawl", *words, *self.options, *self.urls]


def find(victim: Victim, job: int) -> RunningProcess | None:
    """The process to kill, among those below this one; None where it does not run."""
    for process in processes_below(os.getpid()):
        if process.state != "Z" and _is(process, victim, job):
            return process
    return None


def _is(process: RunningProcess, victim: Victim, job: int) -> bool:
    match victim:
        case Victim.JOB:
            return process.pid == job
        case Victim.CONTROLLER:
            return process.name.startswith("python") and "agent.crawl.browser" in process.command
        case Victim.BROWSER:
            # Its processes for pages, the network and the screen have a type, and crashpad has a name of its own.
            command = process.command
            has_type = not command or any(word.startswith("--type=") for word in command)
            return process.is_chromium and "crashpad" not in process.name and not has_type


def start(plan: KillPlan, archive: Archive, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Begin a crawl, whose temporary files lie in a folder of its own."""
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    (folder / "temporary").mkdir(exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            plan.command(archive), env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip


def refer(plan: KillPlan, folder: Path) -> WholeCrawl:
    """Crawl without a kill, and see how long each victim lives."""
    archive = directory.create(folder / "archive")
    lives: dict[Victim, float] = {}
    begun: dict[Victim, float] = {}
    process = start(plan, archive, folder, folder / "log")
    try:
        end = time.monotonic() + _ENDED_WITHIN
        while process.poll() is None and time.monotonic() < end:
            now = time.monotonic()
            for victim in _VICTIMS[plan.fetcher]:
                if find(victim, process.pid) is not None:
                    lives[victim] = now - begun.setdefault(victim, now)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        left = wait_for_none(_GONE_WITHIN) if process.poll() is not None else [process]
    finally:
        clear()
        process.wait()
    said = (folder / "log").read_text("utf-8", "replace")
    if left or process.returncode not in (0, 3):
        raise SystemExit(f"the crawl without a kill ended with {process.returncode}, left {left}: {said[-3000:]}")
    missing = [victim.value for victim in _VICTIMS[plan.fetcher] if victim not in lives]
    if missing:
        raise SystemExit(f"no {', '.join(missing)} ran in the crawl without a kill")
    return WholeCrawl(process.returncode, contents_of(archive), lives)


def crawl_with_kill(plan: KillPlan, folder: Path, victim: Victim, after: float) -> KilledCrawl:
    """Crawl, and kill a victim so many seconds after it is first seen; resume the job if that was killed."""
    archive = directory.create(folder / "archive")
    log, codes, left, killed = folder / "log", [], [], None
    process = start(plan, archive, folder, log)
    try:
        killed = _kill(process, victim, after)
        codes.append(_wait(process))
        left += _left()
        if codes[0] == -signal.SIGKILL and not any(archive.jobs.iterdir()) and any(archive.reports.iterdir()):
            killed = None  # all was done by then; the same command would be another crawl
        elif codes[0] in (-signal.SIGKILL, Exit.FAILED):
            process = start(plan, archive, folder, log)
            codes.append(_wait(process))
            left += _left()
    finally:
        clear()
        process.wait()
    return KilledCrawl(archive, tuple(codes), killed, tuple(left), log.read_text("utf-8", "replace"))


def _kill(process: subprocess.Popen[bytes], victim: Victim, after: float) -> float | None:
    """Kill a victim; return when that was, or None where the crawl or the victim ended before."""
    end = time.monotonic() + _ENDED_WITHIN
    while (target := find(victim, process.pid)) is None:
        if process.poll() is not None or time.monotonic() > end:
            return None
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    time.sleep(after)
    if process.poll() is not None or (target := find(victim, process.pid)) is None:
        return None
    with suppress(ProcessLookupError):
        os.kill(target.pid, signal.SIGKILL)
        return time.monotonic()
    return None


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a crawl; one that hangs is killed, and its code tells so."""
    try:
        return process.wait(_ENDED_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _left() -> list[str]:
    left = [f"{process.pid} {' '.join(process.command)[:120]}" for process in wait_for_none(_GONE_WITHIN)]
    clear()
    return left


def clear() -> None:
    """Kill what is still below this process: nothing, if all is well."""
    for process in processes_below(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    wait_for_none(_GONE_WITHIN)


def contents_of(archive: Archive) -> _Contents:
    """What an archive has: host → ARC → name and blob of its data file."""
    return {domain: files(archive, domain) for domain in archive.domains() if archive.repository(domain).exists()}


def find_repeats(responses: Sequence[SentResponse], killed: float | None) -> list[str]:
    """What was asked for twice although it had come whole.

    The last whole response of a host before a kill may not have been written yet; so it may be asked for again, as may
    all whose sending the kill cut.
    """
    asked: dict[tuple[str, str, str, bytes], list[SentResponse]] = {}
    for response in responses:
        if response.method != "OPTIONS" and response.path not in _NOT_KEPT:
            asked.setdefault((response.method, response.host, response.path, response.asked), []).append(response)
    return [
        f"{method} {host}{path} {len(group)} times: {'; '.join(_describe(response, killed) for response in group)}"
        for (method, host, path, _), group in asked.items()
        if len(group) > 2 or (len(group) == 2 and not _may_repeat(group[0], responses, killed))
    ]


def _describe(response: SentResponse, killed: float | None) -> str:
    """Who asked for it, over which connection, and from when to when, in seconds after the kill."""
    origin = killed or 0.0
    end = "no end" if response.end is None else f"{response.end - origin:.3f}"
    fetcher = "browser" if "Chrome" in response.agent else "wget"
    return f"{response.path} by {fetcher}, connection {response.connection}, {response.begin - origin:.3f} to {end} s"


def _may_repeat(first: SentResponse, responses: Sequence[SentResponse], killed: float | None) -> bool:
    if killed is None:
        return False
    if first.end is None or first.end >= killed:
        return first.begin < killed + _LATE
    end = first.end
    return not any(response.host == first.host and end < response.begin < killed for response in responses)


def faults_of(ended: KilledCrawl, reference: WholeCrawl, folder: Path, shared: set[Path]) -> list[str]:
    """All that a round shows to be wrong."""
    faults = [f"a process is left: {process}" for process in ended.left]
    if ended.codes[-1] != reference.code and not (ended.killed is None and ended.codes[-1] == -signal.SIGKILL):
        faults.append(f"exit codes {ended.codes}, without a kill {reference.code}: {ended.said[-1_500:]}")
    faults += [f"a job's folder is left: {path}" for path in ended.archive.jobs.iterdir()]
    faults += [f"a file is left: {path}" for path in (folder / "temporary").iterdir()]
    faults += [f"a file is left: {path}" for path in shared_files() - shared]
    contents = contents_of(ended.archive)
    for host in sorted({*contents, *reference.contents}):
        here, there = contents.get(host, {}), reference.contents.get(host, {})
        faults += [f"missing: {host} {arc}" for arc in sorted(there.keys() - here.keys())]
        faults += [f"too much: {host} {arc}" for arc in sorted(here.keys() - there.keys())]
        faults += [
            f"another body: {host} {arc}" for arc in sorted(here.keys() & there.keys()) if here[arc] != there[arc]
        ]
    try:
        check_sound(ended.archive)
    except AssertionError as error:
        faults.append(str(error))
    return faults


def shared_files() -> set[Path]:
    """Chromium's files in shared memory."""
    return {*_SHARED.glob(".org.chromium.*"), *_SHARED.glob(".com.google.*")}


def run(
    plan: KillPlan,
    kills: int,
    chance: random.Random,
    tell: Callable[[str], None],
    *,
    victims: Sequence[Victim] = (),
    span: tuple[float, float] | None = None,
) -> list[str]:
    """Kill so many times one of the victims, within the span of its life where one is given; return what was wrong."""
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="webarc-kills-") as name:
        reference = refer(plan, Path(name))
    repeats = find_repeats(plan.responses, None)
    faults += [f"without a kill: {repeat}" for repeat in repeats]
    lives = ", ".join(f"{victim.value} {life:.1f} s" for victim, life in reference.lives.items())
    documents = sum(map(len, reference.contents.values()))
    tell(f"without a kill: exit {reference.code}, {documents} documents; {lives}")
    done: Counter[Victim] = Counter()
    failed: Counter[Victim] = Counter()
    rounds = 0
    # A victim may end before its time; such a round tells nothing of a kill, and another one takes its place.
    while done.total() < kills and rounds < 3 * kills:
        chosen = victims or _VICTIMS[plan.fetcher]
        victim = chosen[rounds % len(chosen)]
        after = chance.uniform(*(span or (0, reference.lives[victim])))
        rounds += 1
        plan.clear_log()
        shared = shared_files()
        with tempfile.TemporaryDirectory(prefix="webarc-kills-") as name:
            ended = crawl_with_kill(plan, Path(name), victim, after)
            wrong = faults_of(ended, reference, Path(name), shared)
        repeats = find_repeats(plan.responses, ended.killed)
        wrong += [f"asked for again: {repeat}" for repeat in repeats]
        if repeats:
            by_time = sorted(plan.responses, key=lambda response: response.begin)
            wrong.append("in order: " + "; ".join(_describe(response, ended.killed) for response in by_time))
        done[victim] += ended.killed is not None
        failed[victim] += ended.codes[0] == Exit.FAILED
        for fault in wrong:
            tell(f"FAULT in round {rounds}, {victim.value} after {after:.2f} s: {fault}")
        faults += wrong
        if rounds % 10 == 0:
            tell(f"{rounds} rounds, {done.total()} kills, {len(faults)} faults")
    if done.total() < kills:
        faults.append(f"only {done.total()} kills in {rounds} rounds")
        tell(f"FAULT {faults[-1]}")
    for victim, number in done.items():
        tell(f"{victim.value} killed {number} times; the job failed with it {failed[victim]} times, and was resumed")
    return faults


@contextmanager
def _script_site(given: argparse.Namespace) -> Iterator[KillPlan]:
    with ScriptSite() as site:
        urls = (site.url("/"), *(site.url(f"/small/{number}.html") for number in range(given.small_pages)))
        yield KillPlan(urls, given.fetcher, tuple(given.option), site)


@contextmanager
def _apps(given: argparse.Namespace) -> Iterator[KillPlan]:
    download()
    with serving(APPS) as server:
        proxy = ("--proxy", f"http://127.0.0.1:{server.port}")
        yield KillPlan(tuple(app.url for app in APPS), given.fetcher, (*proxy, *given.option))


def main() -> int:
    """Run it, and say what it showed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.browser_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--small-pages", type=int, default=_SMALL_PAGES, help="pages beside the start page")
    parser.add_argument("--fetcher", choices=sorted(_VICTIMS), default="browser")
    parser.add_argument("--option", action="append", default=[], help="a further word for the crawls")
    parser.add_argument("--victim", action="append", choices=[victim.value for victim in Victim], default=[])
    parser.add_argument(
        "--span", nargs=2, type=float, metavar=("FROM", "TO"), help="seconds of its life; else all of it"
    )
    parser.add_argument(
        "--apps", action="store_true", help="crawl the built apps of tests/support, in place of the site"
    )
    given = parser.parse_args()
    adopt_orphans()
    with _apps(given) if given.apps else _script_site(given) as plan:
        faults = run(
            plan,
            given.kills,
            random.Random(given.seed),
            lambda words: print(words, flush=True),
            victims=[Victim(name) for name in given.victim],
            span=None if given.span is None else tuple(given.span),
        )
    print(f"{given.kills} kills, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
