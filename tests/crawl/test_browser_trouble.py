"""Trouble amid a page that a browser shows: a full disk, orders of a person, a clock that is set, a second process."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.crawl import job_folder, job_orders
from agent.crawl.job_orders import OrderWord
from agent.jobs.publishing import JobOutcome
from tests.support import disks, script_site, set_clocks
from tests.support.browsers import needs_chromium
from tests.support.crawls import (
    Done,
    check_sound,
    crawl,
    crawls_of,
    end,
    files,
    log_lines,
    read,
    run_command,
    shown_text,
    start_command,
)
from tests.support.nasty import first, slow
from tests.support.process_trees import RunningProcess, processes_below
from tests.support.script_site import ScriptSite
from tests.support.secure import SecureHosts
from tests.support.site import Everywhere
from tests.support.waiting import PATIENCE, until
from tests.support.wire import Answer, Exchange, page
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Interrupted, WebarcError

pytestmark = [pytest.mark.crawl, needs_chromium()]
site = script_site.site

#: Whether each kind of trouble comes in all of its forms: `make soak`.
_IS_LONG = "WEBARC_SOAK" in os.environ
#: Requests that the script of the page makes, one after the other.
_STEPS = 6
_COMMAND = ("crawl", "--fetcher", "browser", "--depth", "0", "--wait", "0", "--no-sitemaps")
_LARGE = 300_000
#: Seconds between a request and when a loaded machine notes its time; a clock is set by more.
_CLOCK_TOLERANCE = 60.0


def _add_steps(site: ScriptSite, *, at: dict[int, Answer], after: str = "", steps: int = _STEPS) -> str:
    """Add a page that asks for one step after the other, some of which are answered in a way of their own.

    Returns its URL. It says "done" in the end, once `after` has run.
    """
    script = (
        f"(async () => {{ for (let n = 0; n < {steps}; n++) await fetch('/step?n=' + n).catch(() => 0);"
        f"{after}; document.body.append('done'); }})()"
    )
    site.add_html("/steps", f"<p>words</p><script>{script}</script>")
    for number in range(steps):
        site.add_nasty(f"/step?n={number}", at.get(number, page(f"step {number}", "text/plain")))
    return site.url("/steps")


def _asked(site: ScriptSite) -> Counter[tuple[str, str]]:
    return Counter((request.host, request.path) for request in site.requests)


def _repeated(site: ScriptSite) -> set[str]:
    """The paths that were asked for twice; none may be asked for three times."""
    asked = _asked(site)
    assert max(asked.values()) <= 2, asked
    return {path for (_, path), times in asked.items() if times > 1}


def _browsers() -> list[RunningProcess]:
    """The browsers below this process, and what drives them."""
    return [
        process
        for process in processes_below(os.getpid())
        if process.state != "Z" and (process.is_chromium or "agent.crawl.browser" in process.command)
    ]


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small_disk(tmp_path / "disk", "16m") as folder:
        yield folder


def _fill(disk: Path, kilobytes: int) -> None:
    """Fill the disk but for that much."""
    free = os.statvfs(disk)
    with (disk / "ballast").open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - (kilobytes << 10))))


def _run_alone(*arguments: str | Path) -> Done:
    """A command to its end; nothing of its session may be left then."""
    process = start_command(*arguments)
    try:
        out, err = process.communicate(timeout=2 * PATIENCE)
        until(lambda: not _of_session(process.pid), "nothing is left of it", within=30.0)
    finally:
        end(process)
    return Done(process.returncode, out, err)


def _of_session(session: int) -> list[int]:
    members = []
    for name in os.listdir("/proc"):  # noqa: PTH208 # names alone
        try:
            if name.isdecimal() and os.getsid(int(name)) == session:
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                members += [int(name)] if state != "Z" else []
        except OSError:
            continue
    return members


@pytest.mark.parametrize(
    ("what", "room"),
    [("response", 40), ("dom", 150)] if not _IS_LONG else itertools.product(("response", "dom"), (0, 40, 150)),
)
def test_a_disk_that_gets_full_amid_a_page(disk: Path, tmp_path: Path, site: ScriptSite, what: str, room: int) -> None:
    """A response, or what the page showed, does not fit: the job fails, and is resumed by the same command."""
    is_armed = threading.Event()

    def fill(exchange: Exchange) -> None:
        if is_armed.is_set():
            is_armed.clear()
            _fill(disk, room)
        page(bytes(_LARGE) if what == "response" else "small", "application/octet-stream")(exchange)

    after = f"document.body.dataset.large = 'x'.repeat({_LARGE})" if what == "dom" else ""
    url = _add_steps(site, at={3: fill}, after=after)
    reference = create(tmp_path / "reference")
    assert run_command(*_COMMAND, "--archive", reference.root, url).code == 0

    archive = create(disk / "archive")
    site.clear_log()
    is_armed.set()
    full = _run_alone(*_COMMAND, "--archive", archive.root, url)
    assert full.code == 2, full.err
    assert "full" in full.err or "No space left" in full.err, full.err
    assert "unexpected" not in full.err and "Traceback" not in full.err, full.err
    assert list(archive.domains()) == [] and list(archive.reports.iterdir()) == [], "nothing is archived yet"
    before = _asked(site)
    (disk / "ballast").unlink()
    resumed = _run_alone(*_COMMAND, "--archive", archive.root, url)
    assert resumed.code == 0, resumed.err
    (report,) = archive.reports.iterdir()
    notes = log_lines(archive, report.name)[url].notes
    assert "rendered" in notes and not any(note.startswith("browser-") for note in notes), notes
    assert files(archive, site.host) == files(reference, site.host)
    assert shown_text(archive, url) == shown_text(reference, url)
    assert _repeated(site) <= {f"/step?n={number}" for number in (2, 3)}, (before, _asked(site))
    assert list(archive.jobs.iterdir()) == []
    check_sound(archive)
    check_sound(reference)


# -- orders of a person ------------------------------------------------------------------------------------------------


class _Crawl:
    """A crawl in a thread of this process, to which orders are given. A context manager: it does not outlive it."""

    def __init__(self, archive: Archive, url: str, **settings: object) -> None:
        self._archive = archive
        self._stop = threading.Event()
        self.outcome: JobOutcome | None = None
        self.error: WebarcError | None = None
        more = {"fetcher": "browser", "depth": 0, "stop": self._stop, **settings}
        self._thread = threading.Thread(target=self._run, args=(url, more))

    def _run(self, url: str, settings: dict[str, object]) -> None:
        try:
            self.outcome = crawl(self._archive, url, **settings)
        except WebarcError as error:
            self.error = error

    def __enter__(self) -> _Crawl:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def give(self, word: OrderWord, value: str = "") -> None:
        """Give an order."""
        (folder,) = self._archive.jobs.iterdir()
        job_orders.give(folder, word, value)

    def end(self) -> JobOutcome:
        """Wait for its end; return what became of it."""
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive()
        assert self.error is None and self.outcome is not None, self.error
        return self.outcome


def _orders_taken(archive: Archive) -> int:
    """The number of the last order that the only job took."""
    (folder,) = archive.jobs.iterdir()
    state = job_folder.load_item(folder)
    return 0 if state is None else state.orders


def _is_quiet(site: ScriptSite) -> bool:
    """Whether nothing is asked for, for a while, and no browser runs."""
    until(lambda: not _browsers(), "no browser runs")
    before = len(site.requests)
    time.sleep(1.5)
    return len(site.requests) == before and not _browsers()


def _hanging() -> Answer:
    """An answer that does not come the first time, however long the client waits."""
    late = page("at last", "text/plain")
    return first(1, slow(PATIENCE, late), late)


def test_a_page_that_is_held_asks_for_nothing_and_is_shown_again(site: ScriptSite, archive: Archive) -> None:
    """What was cut is asked for again, and nothing else."""
    url = _add_steps(site, at={2: _hanging()})
    with _Crawl(archive, url) as running:
        until(lambda: site.count("/step?n=2"), "a request is under way", every=0.02)
        running.give(OrderWord.PAUSE)
        assert _is_quiet(site)
        running.give(OrderWord.RESUME)
        outcome = running.end()
    assert outcome.complete
    assert "rendered" in log_lines(archive, outcome)[url].notes and "done" in shown_text(archive, url)
    assert _repeated(site) == {"/step?n=2"}
    assert _browsers() == []


def test_the_pause_is_kept_after_a_request_that_was_cut(site: ScriptSite, archive: Archive) -> None:
    wait = 8.0
    url = _add_steps(site, at={0: _hanging()}, steps=1)
    with _Crawl(archive, url, wait=wait, robots=False) as running:
        until(lambda: site.count("/step?n=0"), "a request is under way", every=0.02)
        running.give(OrderWord.PAUSE)
        until(lambda: not _browsers(), "no browser runs", every=0.02)
        running.give(OrderWord.RESUME)
        assert running.end().complete
    assert _repeated(site) == {"/step?n=0"}
    assert site.smallest_gap(site.host) >= wait - 1  # a busy site notices a request late; without the pause it is 0


def test_a_page_that_is_stopped_has_its_word(site: ScriptSite, archive: Archive) -> None:
    """What was fetched by then is archived; the page itself is, as its server sent it."""
    url = _add_steps(site, at={2: _hanging()})
    with _Crawl(archive, url) as running:
        until(lambda: site.count("/step?n=2"), "a request is under way", every=0.02)
        running.give(OrderWord.STOP)
        outcome = running.end()
    assert not outcome.complete
    assert _is_quiet(site)
    lines = log_lines(archive, outcome)
    assert "browser-cut" in lines[url].notes and "rendered" not in lines[url].notes
    assert [lines[site.url(f"/step?n={number}")].status for number in (0, 1)] == [200, 200]
    assert site.url("/step?n=3") not in lines
    assert read(archive, *split(arc_path(url))) == site.sent_to("/steps")[0].body


def test_a_page_that_is_discarded_leaves_nothing(site: ScriptSite, archive: Archive) -> None:
    url = _add_steps(site, at={2: _hanging()})
    with _Crawl(archive, url) as running:
        until(lambda: site.count("/step?n=2"), "a request is under way", every=0.02)
        running.give(OrderWord.DISCARD)
        until(lambda: not list(archive.jobs.iterdir()), "the job is gone")
    assert running.error is None or isinstance(running.error, Interrupted)
    assert _is_quiet(site)
    assert not archive.repository(site.host).exists() or crawls_of(archive, site.host) == []


def test_a_host_that_is_left_out_amid_a_page_is_asked_no_more(site: ScriptSite, archive: Archive) -> None:
    """Requests that wait for their turn are not sent, and the page is shown without that host."""
    other = f"localhost:{site.port}"
    pictures = "".join(f"<img src='http://{other}/pic/seen-{number}.png' alt=''>" for number in range(12))
    site.add_html("/gallery", f"<p>words</p>{pictures}<script src=/assets/words.js type=module></script>")
    url = site.url("/gallery")
    with _Crawl(archive, url, wait=1.0, private_addresses=True) as running:
        until(lambda: len([path for host, path in _asked(site) if host == other]) >= 4, "pictures come", every=0.02)
        running.give(OrderWord.EXCLUDE, other)
        until(lambda: _orders_taken(archive), "it is taken", every=0.02)
        taken = time.monotonic()
        outcome = running.end()
    late = [response.path for response in site.responses if response.host == other and response.begin > taken + 0.5]
    assert late == []
    lines = log_lines(archive, outcome)
    assert "rendered" in lines[url].notes
    left_out = [line.url for line in lines.values() if "left-out" in line.notes]
    assert len(left_out) >= 6 and all(other in left for left in left_out), lines


def test_a_longer_pause_holds_for_the_page_that_is_shown(site: ScriptSite, archive: Archive) -> None:
    wait = 4.0
    pictures = "".join(f"<img src=/pic/seen-{number}.png alt=''>" for number in range(6))
    url = site.add_html("/gallery", f"<p>words</p>{pictures}")
    with _Crawl(archive, url, wait=0.5, robots=False) as running:
        until(lambda: len(site.requests) >= 3, "pictures come", every=0.02)
        running.give(OrderWord.WAIT, f"{site.host} {wait:g}")
        until(lambda: _orders_taken(archive), "it is taken", every=0.02)
        taken = time.monotonic()
        outcome = running.end()
    begins = [response.begin for response in site.responses if response.begin > taken + 0.5]
    gaps = [after - before for before, after in itertools.pairwise(begins)]
    assert len(gaps) >= 2 and min(gaps) >= wait - 0.1, gaps
    assert "rendered" in log_lines(archive, outcome)[url].notes


# -- the clock is set --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "is_interrupted"),
    [(-25, True), (25, False)] if not _IS_LONG else itertools.product((-1, -25, 25), (False, True)),
)
def test_a_clock_that_is_set_amid_a_page(
    site: ScriptSite, archive: Archive, hours: int, *, is_interrupted: bool
) -> None:
    """Of three pages one is shown when it is set, one was fetched before and is shown behind, one is fetched then.

    What was asked for has the time that the clock had then. Times in URLs fall by the clock of each page.
    """
    set_at: list[float] = []
    wait = 0.3
    with set_clocks.clock() as clock:

        def set_clock(exchange: Exchange) -> None:
            if not set_at:
                clock.set(hours * 3600)
                set_at.append(time.monotonic())
                if is_interrupted:
                    exchange.wait(PATIENCE)
            page("first", "text/plain")(exchange)

        site.mount(Everywhere(page("now", "text/plain")), at="/dated")
        plain = page("first", "text/plain")
        paths = ("amid", "behind", "then")
        for name in paths:
            site.add_nasty(f"/{name}-first", set_clock if name == "amid" else plain)
            script = f"await fetch('/{name}-first'); await fetch('/dated/now-{name}?_=' + Date.now());"
            link = "document.body.insertAdjacentHTML('beforeend', '<a href=/then>then</a>');" if name == "amid" else ""
            site.add_html(f"/{name}", f"<p>words</p><script type=module>{script}{link}</script>")
        (archive.root / "webarc.toml").write_text(f'[browser]\nprogram = "{clock.chromium}"\n')
        urls = [site.url(f"/{name}") for name in paths]
        words = ("crawl", "--fetcher", "browser", "--depth", "1", f"--wait={wait}", "--no-sitemaps")
        arguments = (*words, "--archive", str(archive.root), *urls[:2])
        begun, began = time.time(), time.monotonic()
        process = start_command(*arguments, **clock.environment)
        try:
            if is_interrupted:
                until(lambda: set_at, "the clock is set", every=0.02)
                process.terminate()
                process.communicate(timeout=2 * PATIENCE)
                assert process.returncode == 3
                done = run_command(*arguments, **clock.environment)  # type: ignore[arg-type]
                code, err = done.code, done.err
            else:
                _, err = process.communicate(timeout=2 * PATIENCE)
                code = process.returncode
        finally:
            end(process)
        assert code == 0, err
    (report,) = archive.reports.iterdir()
    lines = log_lines(archive, report.name)
    for url in urls:
        assert "rendered" in lines[url].notes, lines[url]
    named = {site.url(f"/dated/now-{name}") for name in paths}
    assert {url for url in lines if "/dated/" in url} == named, "no URL has a time"
    cut = {"/amid-first"} if is_interrupted else set()
    old = {"/robots.txt"} if is_interrupted and hours > 24 else set()  # it holds for a day
    assert _repeated(site) <= cut | old
    assert site.smallest_gap(site.host) >= wait - 0.05
    for path, response in {response.path.partition("?")[0]: response for response in site.responses}.items():
        line = lines[site.url(path)]
        shift = hours * 3600 if response.begin > set_at[0] else 0
        expected = begun + response.begin - began + shift
        logged = datetime.strptime(line.timestamp, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()
        is_amid = path == "/amid-first"  # asked for just before
        assert abs(logged - expected) < _CLOCK_TOLERANCE or is_amid, (path, logged - expected)
    assert run_command("verify", "--archive", archive.root).out == "sound\n"
    assert list(archive.jobs.iterdir()) == []


# -- robots.txt --------------------------------------------------------------------------------------------------------


def test_a_page_asks_its_own_host_under_the_other_scheme(
    site: ScriptSite, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wget fetches that robots.txt while the page is shown, although its host belongs to the browser then."""
    host = "mixed.example"

    def answer_script(_: str, path: str) -> bytes:
        body = b"document.body.append('from the script')" if path == "/late.js" else b""
        status = b"200 OK" if body else b"404 Not Found"
        return b"HTTP/1.1 %s\r\nContent-Type: text/javascript\r\nContent-Length: %d\r\n\r\n%s" % (
            status,
            len(body),
            body,
        )

    with SecureHosts(tmp_path, answer_script) as secure:
        monkeypatch.setenv("http_proxy", site.proxy)
        monkeypatch.setenv("https_proxy", secure.proxy)
        url = site.add_html("/", f"<p>words</p><script src=https://{host}/late.js></script>", host=host)
        outcome = crawl(archive, url, fetcher="browser", depth=0, certificates="any", browser_page_seconds=30.0)
    lines = log_lines(archive, outcome)
    assert "rendered" in lines[url].notes and not any(note.startswith("browser-") for note in lines[url].notes)
    assert lines[f"https://{host}/late.js"].status == 200
    assert "from the script" in shown_text(archive, url)


# -- speed -------------------------------------------------------------------------------------------------------------


def test_all_requests_of_a_page_together_keep_to_the_speed(
    site: ScriptSite, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts, size, speed = [f"h{number}.example" for number in range(4)], 150_000, 200_000
    fields = {"Access-Control-Allow-Origin": "*"}
    for host in hosts:
        site.add("/large", bytes(size), "application/octet-stream", host=host, headers=fields)
    site.add("/after", "all are there", "text/plain")
    fetches = ",".join(f"fetch('http://{host}/large')" for host in hosts)
    script = f"await Promise.all([{fetches}]); await fetch('/after');"
    url = site.add_html("/", f"<p>words</p><script type=module>{script}</script>", host=hosts[0])
    monkeypatch.setenv("http_proxy", site.proxy)
    outcome = crawl(archive, url, fetcher="browser", depth=0, rate_limit=speed, robots=False)
    lines = log_lines(archive, outcome)
    assert "rendered" in lines[url].notes
    assert [lines[f"http://{host}/large"].status for host in hosts] == [200] * len(hosts)
    (after,) = site.sent_to("/after")
    seconds = after.begin - min(response.begin for response in site.sent_to("/large"))
    assert seconds >= len(hosts) * size / speed * 0.8, f"{len(hosts) * size / seconds:.0f} bytes a second"


# -- two at once -------------------------------------------------------------------------------------------------------


def test_one_publication_twice_at_once(site: ScriptSite, archive: Archive) -> None:
    """The second one is denied, as it is with wget, and the page of the first is shown on."""
    may_go_on = threading.Event()

    def waiting(exchange: Exchange) -> None:
        end = time.monotonic() + PATIENCE
        while not may_go_on.is_set() and time.monotonic() < end:
            exchange.wait(0.1)
        page("at last", "text/plain")(exchange)

    url = _add_steps(site, at={1: waiting})
    arguments = (*_COMMAND, "--archive", archive.root, url)
    first = start_command(*arguments)
    try:
        until(lambda: site.count("/step?n=1"), "the first one shows the page", every=0.02)
        second = run_command(*arguments)
        assert second.code == 2 and "is being crawled or imported already" in second.err, second.err
        may_go_on.set()
        _, err = first.communicate(timeout=2 * PATIENCE)
        assert first.returncode == 0, err
    finally:
        may_go_on.set()
        end(first)
    (report,) = archive.reports.iterdir()
    assert "rendered" in log_lines(archive, report.name)[url].notes
    assert _repeated(site) == set()
