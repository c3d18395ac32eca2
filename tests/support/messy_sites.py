"""Small sites that do what people's sites do: what a case serves, what a crawl must ask for, keep, and say.

    with crawled(folder, CASES) as crawl:
        check(CASES[0], crawl)

All cases of a list are start URLs of one crawl, each on a host of its own, `NAME.test`. What a case wants holds
whatever the others do: hosts are judged for themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.jobs.publishing import JobOutcome
from tests.support import crawls, nasty
from tests.support.site import Site
from tests.support.wire import HTML, Answer, page
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.urls import domain_of

#: The page that most cases lead to.
FINE = "<!DOCTYPE html><html><head><title>fine</title></head><body>fine</body></html>"
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000"
                      "000301010018dd8db00000000049454e44ae426082")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Case:
    """One site. Places are paths of its own host, or URLs of other hosts (`http://other.test/x`)."""

    name: str
    #: The letter of the finding of the public reports that it stands for, or of the kind of which it is a relative.
    finding: str
    #: Place → what it answers; text is a page of HTML, bytes are a PNG.
    serves: Mapping[str, Answer | str | bytes]
    #: Places that must be asked for, once at least, beside `/`; and those that must not be.
    asked: Sequence[str] = ()
    never: Sequence[str] = ()
    #: Place → how often it is asked for at most; once at least.
    at_most: Mapping[str, int] = field(default_factory=dict)
    #: Places that must be archived; with a body where that matters.
    kept: Sequence[str] = ()
    bodies: Mapping[str, bytes] = field(default_factory=dict)
    #: Place → a word that its line of crawl.log must have.
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Its own host."""
        return f"{self.name}.test"

    def url(self, place: str) -> str:
        """The URL of a place."""
        return place if "://" in place else f"http://{self.host}{place}"


@dataclass(frozen=True)
class MessyCrawl:
    """A crawl of cases, and what it left."""

    archive: Archive
    outcome: JobOutcome
    log: Mapping[str, crawls.Line]
    requests: Counter[str]


def serve(site: Site, case: Case) -> None:
    """Put a case on a site; each of its hosts has no robots.txt unless the case serves one."""
    for place, what in case.serves.items():
        host, slash, path = case.url(place).partition("://")[2].partition("/")
        site.add_nasty(slash + path, _answer(what), host)


def _answer(what: Answer | str | bytes) -> Answer:
    if isinstance(what, str):
        return page(what, HTML)
    return page(what, "image/png") if isinstance(what, bytes) else what


def with_head(head: bytes, body: bytes, status: bytes = b"200 OK") -> Answer:
    """These very bytes behind a status line; then the connection ends."""
    return nasty.then_close(b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\n\r\n" + body)


@contextmanager
def crawled(folder: Path, cases: Sequence[Case], **settings: Any) -> Iterator[MessyCrawl]:
    """One crawl of all cases into an archive in a folder, for as long as tests look at it; it must be sound."""
    archive = directory.create(folder / "archive")
    with Site() as site:
        yield crawl_cases(archive, site, cases, **settings)
    crawls.check_sound(archive)


def crawl_cases(archive: Archive, site: Site, cases: Sequence[Case], **settings: Any) -> MessyCrawl:
    """Crawl all cases at once, through the site as a proxy."""
    for case in cases:
        serve(site, case)
    starts = [case.url("/") for case in cases]
    how = {"max_instances": 8, **settings}
    outcome = crawls.crawl(archive, *starts, wget_args=crawls.through(site.proxy), **how)
    asked = Counter(f"http://{request.host}{request.path}" for request in site.requests)
    return MessyCrawl(archive, outcome, crawls.log_lines(archive, outcome), asked)


def check(case: Case, crawl: MessyCrawl) -> None:
    """Hold one case to what it wants; all that is wrong is in the message."""
    wrong = [f"not asked for: {place}" for place in ("/", *case.asked) if not crawl.requests[case.url(place)]]
    wrong += [f"asked for: {place}" for place in case.never if crawl.requests[case.url(place)]]
    wrong += [
        f"asked for {crawl.requests[case.url(place)]} times: {place}"
        for place, most in case.at_most.items()
        if not 1 <= crawl.requests[case.url(place)] <= most
    ]
    for place in (*case.kept, *case.bodies):
        kept = _kept(crawl.archive, case.url(place))
        if kept is None:
            wrong.append(f"not kept: {place}: {crawl.log.get(case.url(place))}")
        elif kept != case.bodies.get(place, kept):
            wrong.append(f"{place} is kept as {kept[:80]!r}, {len(kept)} bytes")
    for place, word in case.words.items():
        line = crawl.log.get(case.url(place))
        wrong += [] if line is not None and word in line.notes else [f"no word {word} at {place}: {line}"]
    assert not wrong, f"{case.finding}, {case.name}: " + "; ".join(wrong)


def _kept(archive: Archive, url: str) -> bytes | None:
    """The body that the archive has for this very URL; None if it has none."""
    domain = domain_of(url)
    if not archive.repository(domain).exists():
        return None
    arcs = crawls.arcs(archive, domain)
    for arc in arc_paths.places(url):
        if arc in arcs and crawls.meta(archive, domain, arc).url == url:
            return crawls.read(archive, domain, arc)
    return None
