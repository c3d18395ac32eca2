"""Real crawls for tests: the agent in this process or as the command, real wget, real git, and what came of it.

Every `log_lines` also holds crawl.log to its form: twelve columns, one line a URL, and a reason where nothing came.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.crawl.job_folder import command_line_name
from agent.jobs import crawljob
from agent.jobs.publishing import JobOutcome
from tests.support import forked
from tests.support.site import Site
from webarcfs.archive.config import directory
from webarcfs.archive.config import settings as config
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, HostSecret, Profile, Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Repository, TreeEntry
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.metadata import MetaData

#: How every crawl of a test goes unless it says otherwise: no pause, nothing waits for minutes, no look for sitemaps.
DEFAULTS: Mapping[str, Any] = {"wait": 0.0, "timeout": 20.0, "sitemaps": False}
#: Columns of crawl.log.
COLUMNS = (
    "timestamp", "status", "size", "url", "path", "referrer", "mime", "worker", "fetched", "digest", "source",
    "annotations",
)  # fmt: skip
#: The command, as the console script starts it.
COMMAND = (sys.executable, "-c", "from agent.cli import main; main()")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive. After the test each repository must be sound."""
    made = directory.create(tmp_path / "archive")
    yield made
    check_sound(made)


def check_sound(archive: Archive) -> None:
    """Hold each repository to what git asks of one."""
    for domain in archive.domains():
        assert Repository(archive.repository(domain)).check() == [], f"git fsck --strict complains about {domain}"


# -- crawling ----------------------------------------------------------------------------------------------------------


def crawl(archive: Archive, *urls: str, **settings: Any) -> JobOutcome:
    """Crawl now, in this process. Settings by name; beside them name, hosts, exclude_hosts, profile, accept_shrink,
    stop.
    """
    profile: Profile | None = settings.pop("profile", None)
    accept_shrink: bool = settings.pop("accept_shrink", False)
    stop: threading.Event | None = settings.pop("stop", None)
    publication = publish_as(*urls, **settings)
    return crawljob.run(archive, publication, profile, accept_shrink=accept_shrink, stop=stop)


def publish_as(*urls: str, **settings: Any) -> Publication:
    """A publication of these start URLs, as `crawl` takes its settings."""
    hosts, exclude = tuple(settings.pop("hosts", ())), tuple(settings.pop("exclude_hosts", ()))
    name = settings.pop("name", None) or command_line_name(urls)
    left_out, servers = tuple(settings.pop("exclude", ())), tuple(settings.pop("server", ()))
    clicks = tuple(config.Click(text=text) for text in settings.pop("click", ()))
    secrets = {kind: tuple(settings.pop(kind, ())) for kind in config.SECRETS}
    release, closed_for = settings.pop("release", "automatic"), settings.pop("closed_for", None)
    required = tuple(settings.pop("required_hosts", ()))
    how = config.override(CrawlSettings(), {**DEFAULTS, **settings}, "test")
    return Publication(
        name=name,
        urls=urls,
        hosts=hosts,
        exclude_hosts=exclude,
        required_hosts=required,
        exclude=left_out,
        server=servers,
        click=clicks,
        release=release,
        closed_for=None if closed_for is None else Interval.parse(closed_for),
        crawl=how,
        **secrets,
    )


def run_killed_at(point: str, *arguments: object) -> None:
    """Run webarc-agent, which kills itself at a point of tests/kill/victim.py."""
    command = [sys.executable, "-m", "tests.kill.victim", point, *map(str, arguments)]
    done = forked.run(command)
    assert done.returncode == -signal.SIGKILL, done.stderr


def secret_file(folder: Path, text: str, *hosts: str, mode: int = 0o600) -> HostSecret:
    """A file of secrets for hosts."""
    path = folder / f"secret-{len(list(folder.iterdir()))}"
    path.write_text(text)
    path.chmod(mode)
    return HostSecret(hosts=hosts, file=str(path))


def through(proxy: str) -> tuple[str, ...]:
    """wget_args with which every host name leads to a Site."""
    return ("-e", "use_proxy=on", "-e", f"http_proxy={proxy}")


class StopAfter:
    """Asks a crawl to stop once a site has seen so many requests more."""

    def __init__(self, site: Site, requests: int) -> None:
        self.event = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(site, len(site.requests) + requests), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has asked."""
        self._thread.join()

    def _watch(self, site: Site, requests: int) -> None:
        for _ in range(1000):
            if len(site.requests) >= requests:
                break
            time.sleep(0.02)
        self.event.set()


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def run_command(*arguments: str | Path, timeout: float = 240, stdin: str = "", **environment: str) -> Done:
    """`webarc-agent` with these arguments, to its end."""
    process = start_command(*arguments, stdin=stdin, **environment)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        end(process)
    return Done(process.returncode, out, err)


def start_command(*arguments: str | Path, stdin: str = "", **environment: str) -> subprocess.Popen[str]:
    """`webarc-agent` with these arguments, running; `end` it. `stdin` is short."""
    process = forked.Popen(
        [*COMMAND, *arguments],
        env={**os.environ, "COLUMNS": forked.COLUMNS, **environment},
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    if process.stdin is not None:
        with process.stdin as pipe:
            pipe.write(stdin)
        process.stdin = None  # `communicate` would use it
    return process


@contextmanager
def running_command(*arguments: str | Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`webarc-agent` with these arguments, which does not outlive the block."""
    process = start_command(*arguments, **environment)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    """End a command and its children, if they still run."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


# -- what came of it ---------------------------------------------------------------------------------------------------


def store(archive: Archive, domain: str) -> Repository:
    """The domain's repository."""
    return Repository(archive.repository(domain))


def tree(archive: Archive, domain: str, commit: str | None = None) -> str:
    """The tree of main, or of a commit."""
    repository = store(archive, domain)
    found = repository.commit(commit) if commit else repository.head()
    assert found is not None, f"{domain} has no main"
    return found.tree


def arcs(archive: Archive, domain: str, commit: str | None = None) -> set[str]:
    """The paths of all ARCs, inside the domain."""
    return set(files(archive, domain, commit))


def files(archive: Archive, domain: str, commit: str | None = None) -> dict[str, tuple[str, str]]:
    """ARC → name and blob of its data file."""
    repository = store(archive, domain)
    return dict(_files(repository, tree(archive, domain, commit), ""))


def _files(repository: Repository, oid: str, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    entries = repository.entries(oid)
    if any(_is_file(entry, arc_paths.DATA_XML) for entry in entries):
        data = [entry for entry in entries if not entry.is_tree and arc_paths.is_data_file(entry.name)]
        assert len(data) == 1, f"{path} has the data files {data}"
        assert any(_is_file(entry, arc_paths.HEADERS) for entry in entries), f"{path} has no head"
        yield path, (data[0].name, data[0].oid)
    for entry in entries:
        if entry.is_tree:
            yield from _files(repository, entry.oid, f"{path}/{entry.name}".lstrip("/"))


def _is_file(entry: TreeEntry, name: str) -> bool:
    return entry.name == name and not entry.is_tree


def read(archive: Archive, domain: str, arc: str, commit: str | None = None) -> bytes:
    """The data file of an ARC, at main or at a commit."""
    repository = store(archive, domain)
    folder = repository.find(tree(archive, domain, commit), arc)
    assert folder is not None and folder.is_tree, f"there is no ARC {arc} on {domain}"
    data = [each for each in repository.entries(folder.oid) if not each.is_tree and arc_paths.is_data_file(each.name)]
    assert len(data) == 1, f"{arc} has the data files {data}"
    return repository.read(data[0].oid)


def read_file(archive: Archive, domain: str, path: str) -> bytes | None:
    """Any file at main; None where there is none."""
    repository = store(archive, domain)
    entry = repository.find(tree(archive, domain), path)
    return None if entry is None else repository.read(entry.oid)


def meta(archive: Archive, domain: str, arc: str) -> MetaData:
    """The metadata in the data.xml of an ARC."""
    document = read_file(archive, domain, f"{arc}/{arc_paths.DATA_XML}")
    assert document is not None, f"there is no ARC {arc} on {domain}"
    return data_xml.metadata(document)


def shown_text(archive: Archive, url: str) -> str:
    """The text that a browser showed of a page."""
    domain, arc = arc_paths.split(arc_paths.arc_path(url))
    form = meta(archive, domain, arc).rendered
    assert form, url
    return rendered_forms.text_of(store(archive, domain), form)


def changed(archive: Archive, domain: str, old: str, new: str) -> set[str]:
    """The ARCs in which two commits differ."""
    repository = store(archive, domain)
    trees = (repository.commit(old).tree, repository.commit(new).tree)
    return {difference.path.rpartition("/")[0] for difference in repository.differences(*trees)}


def head_of(archive: Archive, domain: str) -> str:
    """The commit of main."""
    commit = store(archive, domain).head()
    assert commit is not None
    return commit.oid


def count_stored(archive: Archive, domain: str) -> int:
    """How many objects the repository of a domain holds, whether a ref leads to them or not."""
    command = ["git", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]
    done = subprocess.run(command, cwd=archive.repository(domain), stdout=subprocess.PIPE, check=True)
    return len(set(done.stdout.split()))


def crawls_of(archive: Archive, domain: str) -> list[str]:
    """The times of the crawls of a domain, as its refs tell them."""
    return list(store(archive, domain).refs(CRAWLS))


def count(outcome: JobOutcome) -> tuple[int, int, int, int]:
    """How many ARCs a crawl added, changed, removed, and found unchanged."""
    counted: dict[str, int] = outcome.summary["arcs"]  # type: ignore[assignment]
    return counted["added"], counted["changed"], counted["removed"], counted["unchanged"]


# -- reports -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line of crawl.log."""

    timestamp: str
    status: int
    size: str
    url: str
    path: str
    referrer: str
    mime: str
    worker: str
    fetched: str
    digest: str
    source: str
    annotations: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The annotations but for seed 3's code and the figures of links and depth."""
        return tuple(note for note in self.annotations[1:] if not note.startswith(("links:", "depth:")))


def log_text(archive: Archive, job: str) -> str:
    """crawl.log of a job, by another program than ours."""
    command = ["zcat", str(archive.reports / job / "crawl.log.gz")]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8")


def log_lines(archive: Archive, job: JobOutcome | str) -> dict[str, Line]:
    """crawl.log of a job: URL → line, each held to the form."""
    name = job if isinstance(job, str) else job.job
    lines: dict[str, Line] = {}
    for text in log_text(archive, name).splitlines():
        columns = text.split()
        assert len(columns) == len(COLUMNS), f"not twelve columns: {text}"
        values = dict(zip(COLUMNS, columns, strict=True))
        notes = tuple(values.pop("annotations").split(","))
        line = Line(**values | {"status": int(values["status"])}, annotations=notes)  # type: ignore[arg-type]
        assert notes[0].startswith("seed3:"), text
        assert line.url not in lines, f"two lines for {line.url}"
        assert line.status != 0, f"no outcome: {text}"
        assert line.status > 0 or line.notes, f"no reason: {text}"
        lines[line.url] = line
    return lines


def summary_of(archive: Archive, job: JobOutcome | str) -> dict[str, Any]:
    """summary.json of a job."""
    name = job if isinstance(job, str) else job.job
    content: dict[str, Any] = json.loads((archive.reports / name / "summary.json").read_text("utf-8"))
    return content


def fields_of(kind: type[Any]) -> list[str]:
    """The names of a dataclass's fields."""
    return [field.name for field in dataclasses.fields(kind)]
