"""Writes the report of a job: crawl.log, with one line per URL seen, and summary.json.

Revisit records of an import whose responses were not found wait in its report (`waiting.jsonl.gz`, a line of JSON for
each) until a later import has what they repeat. The file is there only while some wait.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from agent.crawl import crawl_log, job_orders
from agent.crawl.crawl_log import line
from agent.crawl.disposition import Captured
from agent.crawl.frontier import (
    FILTER_ERRORS,
    IDLE,
    PUBLISHED,
    SECONDS,
    FilterFailure,
    Frontier,
    PublishedDomain,
    ShownView,
)
from agent.crawl.job_folder import Job, JobState, save_item
from agent.crawl.vocabulary import (
    CERTIFICATE_FAULTS,
    CUT,
    DECISIONS,
    TOO_FEW,
    UNWANTED,
    Reason,
    cause_among,
    certificate_of,
    may_pass,
)
from agent.crawl.watching import account_of as account_of_watch
from agent.pipeline.domain_run import ARC_COUNTS, REDIRECT_COUNTS, DomainRun, TreeReader
from agent.pipeline.publish import Published
from agent.reports import missing_urls, shown_pages
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, places
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import PAGE_ROLE, RESOURCE_ROLE, CommitTag, format_time, now
from webarcfs.archive.system import files
from webarcfs.archive.system.files import sync_folder, sync_tree

# == waiting ==========================================================================================================


_WAITING = "waiting.jsonl.gz"
_FIELDS = ("url", "time", "fraction", "digest", "origin", "seen")


def write_waiting(folder: Path, revisits: Iterable[dict[str, Any]]) -> None:
    """Write the revisits that wait into the folder of a report, durably; without any there is no file."""
    path, scratch = folder / _WAITING, folder / f".{_WAITING}"
    is_empty = True
    with (
        scratch.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
    ):
        for revisit in revisits:
            is_empty = False
            fields = {name: revisit[name] for name in _FIELDS}
            fields["head"] = base64.b64encode(revisit["head"]).decode()
            packed.write(json.dumps(fields).encode() + b"\n")
        packed.close()
        os.fsync(file.fileno())
    if is_empty:
        scratch.unlink()
        path.unlink(missing_ok=True)
    else:
        scratch.rename(path)


def read_waiting(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the revisits that wait in the folder of a report. Raises Damaged."""
    try:
        with gzip.open(folder / _WAITING, "rb") as file:
            for revisit_line in file:
                revisit = json.loads(revisit_line)
                yield revisit | {"head": base64.b64decode(revisit["head"])}
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise Damaged(
            f"{folder / _WAITING} cannot be read: {error}; remove it to continue without its revisits"
        ) from None


def folders_with_waiting(reports: Path) -> list[Path]:
    """Return the folders of the reports with revisits that wait."""
    return sorted(path.parent for path in reports.glob(f"[!.]*/{_WAITING}"))


def keep_waiting(folder: Path, still_waits: Callable[[dict[str, Any]], bool]) -> None:
    """Remove from a report the revisits that wait no more."""
    write_waiting(folder, filter(still_waits, read_waiting(folder)))


# == report ===========================================================================================================


class Seconds:
    """The seconds of each stage, over all runs of an interrupted job."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        values = frontier.get(SECONDS)
        self.values = {} if values is None else values

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Add the time inside to `stage`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.values[stage] = self.values.get(stage, 0.0) + time.monotonic() - begun

    def keep(self) -> None:
        """Write the seconds into the frontier."""
        self._frontier.set(SECONDS, self.values)


def keep_domain(frontier: Frontier, run: DomainRun, published: Published) -> None:
    """Record the publication of a domain in the frontier: the job may be interrupted before its summary."""
    fact = PUBLISHED.of(run.domain)
    earlier = frontier.get(fact)
    part: PublishedDomain = {
        "commit_tag": published.shared or str(run.tag),
        "complete": published.complete,
        "reason": published.reason,
        "arcs": run.arcs if earlier is None else earlier["arcs"],
        "redirects": run.redirects if earlier is None else earlier.get("redirects", {}),
    }
    if published.shared:
        part["shared"] = True
    frontier.set(fact, part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a report says of the URLs of a job: the lines of crawl.log, and what is counted.

    `urls` are counted by status, `documents` by MIME type. `warcs` are the files that `keep_warc` keeps. `revisits` are
    those that found nothing, and wait. `certificates` has, by host and words, the number of documents that came under a
    certificate that was not valid, and that the crawl took all the same. `needs_browser` has, by host, the number of
    pages that show little until their scripts run. `shown` has the numbers of `Frontier.shown_pages`, and `views` those
    of each page.
    """

    lines: Iterable[str]
    urls: dict[str, int]
    documents: dict[str, int]
    bytes: int
    filter_errors: dict[str, FilterFailure]
    warcs: Sequence[Path]
    revisits: Iterable[dict[str, Any]] = ()
    certificates: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    needs_browser: Mapping[str, int] = field(default_factory=dict)
    shown: Mapping[str, int] = field(default_factory=dict)
    views: Iterable[ShownView] = ()


def account_of(job: Job) -> Account:
    """Return the account of a crawl: all is in its frontier."""
    return Account(
        lines=(line(row, referrer) for row, referrer in job.frontier.all()),
        urls=job.frontier.by_status(),
        documents=job.frontier.by_mime_type(),
        bytes=job.frontier.counts()["bytes"],
        filter_errors=job.frontier.get(FILTER_ERRORS) or {},
        warcs=sorted(job.folder.glob("*.warc")),
        certificates=_certificates(job.frontier),
        needs_browser=job.frontier.needing_browser(),
        shown=job.frontier.shown_pages(),
        views=job.frontier.shown_views(),
    )


def _certificates(frontier: Frontier) -> dict[str, dict[str, int]]:
    hosts: dict[str, dict[str, int]] = {}
    for domain, note, number in frontier.unchecked():
        words = hosts.setdefault(domain, {})
        words[certificate_of(note)] = words.get(certificate_of(note), 0) + number
    return hosts


@dataclass(frozen=True, slots=True)
class SummaryRemark:
    """What a summary says in words. `is_warning`: it is more than a number, and somebody may want to do something."""

    text: str
    is_warning: bool = True


def remarks_in(summary: Mapping[str, Any]) -> list[SummaryRemark]:
    """Return what a summary says of certificates, of pages for the browser, and of pages that need one."""
    shown = summary.get("shown") or {}
    lacks_some = bool(shown and (shown["failed"] or shown["missed"]))
    remarks = (
        SummaryRemark(text_of_certificates(summary)),
        SummaryRemark(_text_of_shown_pages(shown), is_warning=lacks_some),
        SummaryRemark(_text_of_scripted_pages(summary)),
    )
    return [remark for remark in remarks if remark.text]


def text_of_certificates(summary: Mapping[str, Any]) -> str:
    """Return what a summary says of certificates that were not valid: `a.org (expired) 12, …`; empty for nothing."""
    counts = {
        f"{host} ({words})": number
        for host, by_words in (summary.get("certificates") or {}).items()
        for words, number in by_words.items()
    }
    return f"documents under certificates that were not valid: {_most(counts)}" if counts else ""


def _text_of_scripted_pages(summary: Mapping[str, Any]) -> str:
    """Return what a summary says of pages that need a browser, and what to do; empty where no page does."""
    hosts: Mapping[str, int] = summary.get("needs_browser") or {}
    pages = sum(hosts.values())
    if not pages:
        return ""
    what = "1 page holds" if pages == 1 else f"{pages} pages hold"
    return (
        f"{what} little without scripts ({Reason.NEEDS_BROWSER}): {_most(hosts)}; "
        '`fetcher = "auto"` lets a browser show such pages'
    )


def _text_of_shown_pages(shown: Mapping[str, int]) -> str:
    """Return what the numbers of pages say that a browser was to show; empty where there were none."""
    if not shown:
        return ""
    failed = f", {shown['failed']} could not be shown" if shown["failed"] else ""
    requests = (
        f"{shown['requests']} requests of scripts, {shown['refused']} refused, {shown['missed']} without a response"
    )
    return f"pages shown by a browser: {shown['pages']}{failed}; {requests}"


def domains(frontier: Frontier) -> list[PublishedDomain]:
    """Return the recorded publications, in order of domain."""
    known = sorted({*frontier.domains(), *(frontier.get(IDLE) or ())})
    parts = (frontier.get(PUBLISHED.of(domain)) for domain in known)
    return [part for part in parts if part is not None]


@dataclass(frozen=True, slots=True)
class HostEnd:
    """What became of a host of a crawl: whether it is complete, and otherwise why not.

    `role` is `page` or `resource`: one that only has what pages of others need is complete whatever failed. `failed` is
    the number of its URLs that did not come. `commit_tag` is empty where nothing was published.
    """

    host: str
    role: str
    complete: bool
    reason: str
    failed: int
    commit_tag: str

    @property
    def is_page(self) -> bool:
        """Whether pages of it belong to the crawl."""
        return self.role == PAGE_ROLE


def host_ends(
    frontier: Frontier, parts: Sequence[PublishedDomain], captured: Captured, *, only_adds: bool = False
) -> list[HostEnd]:
    """Return what became of each host of a crawl, those with pages first, of these the incomplete ones.

    A crawl that only adds is published as if it were incomplete; that makes no host incomplete.
    """
    by_domain = {CommitTag.parse(part["commit_tag"]).domain: part for part in parts}
    ends = []
    for host in frontier.crawled_hosts():
        part = by_domain.get(host.domain)
        reason = captured.reason or captured.hosts.get(host.domain, "")
        is_whole = captured.complete and not captured.hosts
        if not reason and part is not None and not only_adds and (host.has_pages or is_whole):
            reason = part["reason"]  # of a host of resources also, where it had pages before
        role = PAGE_ROLE if host.has_pages or reason.startswith(TOO_FEW) else RESOURCE_ROLE
        tag = part["commit_tag"] if part is not None else ""
        ends.append(HostEnd(host.domain, role, not reason, reason, host.failed, tag))
    return sorted(ends, key=lambda end: (not end.is_page, end.complete, end.host))


def hosts_in(summary: Mapping[str, Any]) -> tuple[HostEnd, ...]:
    """Return what became of the hosts of a crawl; nothing in the summary of an older version."""
    try:
        return tuple(HostEnd(**end) for end in summary.get("hosts", ()))
    except TypeError:
        return ()


@dataclass(frozen=True, slots=True)
class Missing:
    """What a crawl did not bring: resources of pages by host, URLs by the word for why.

    `lost` counts what a server has, as far as is known, and failed to come: pages, resources on hosts of pages, and
    resources on other hosts that were archived before. `rows` are the resources by host and word, the most first, and
    at their end all further ones, without a host. `pages` are the first pages that did not come, with the word for why,
    and `embedded` the first resources. `unwanted` counts pages that the crawl knew and did not ask for by the word for
    why, and `led_elsewhere` redirects to hosts outside of it; links to such hosts are everywhere, and are not counted.
    """

    resources: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    rows: Sequence[tuple[str, str, int]] = ()
    pages: Sequence[tuple[str, str]] = ()
    embedded: Sequence[tuple[str, str]] = ()
    unwanted: Mapping[str, int] = field(default_factory=dict)
    led_elsewhere: int = 0

    @property
    def has_failures(self) -> bool:
        """Whether some of it failed to come, so that a patch would ask for it again, with some hope."""
        stems = (word.rpartition("status ") for word in self.words if word not in CERTIFICATE_FAULTS)
        return any(may_pass(int(rest)) if mark else rest not in DECISIONS for _, mark, rest in stems)

    @property
    def certificates(self) -> Mapping[str, int]:
        """Why certificates of servers were rejected, with the number of URLs."""
        return {word: urls for word, urls in self.words.items() if word in CERTIFICATE_FAULTS}

    def what_to_do(self, job: str, *, is_published: bool) -> list[str]:
        """Return what gets what failed to come to the crawl of a job. A crawl that published nothing takes no patch."""
        texts = []
        if self.certificates:
            texts.append(
                f"a certificate was not valid ({_most(self.certificates)}): `--certificates any` takes it, if you rely "
                "on the host all the same; crawl again with it"
                + f", or for these URLs alone `webarc-agent crawl --missing {job} --certificates any`"
                * is_published
            )
        if self.has_failures and is_published:
            texts.append(f"`webarc-agent crawl --missing {job}` asks again for what failed")
        texts += [
            f"`webarc-agent crawl --missing {job} --word {word}` asks for what its end left"
            for word in CUT
            if is_published and self.unwanted.get(word)
        ]
        return texts

    def lines(self) -> list[str]:
        """Return the lines with which a crawl ends."""
        texts = []
        if self.resources:
            texts.append(f"missing from pages: {sum(self.resources.values())} resources: {_most(self.resources)}")
            texts += [f"  {url}: {word}" for url, word in self.embedded]
        if self.words:
            texts.append(f"not archived: {sum(self.words.values())}: {_most(self.words)}")
        texts += [f"  {url}: {word}" for url, word in self.pages]
        apart = [f"not asked for: {_most(self.unwanted, '{1} by {0}')}"] if self.unwanted else []
        if self.led_elsewhere:
            apart.append(f"led to hosts outside of this crawl: {self.led_elsewhere}")
        return [*texts, "; ".join(apart)] if apart else texts


#: What a line names of hosts or words; the report has all.
_MOST_NAMED = 8
#: Pages that are named of those that did not come, and resources.
_MOST_FAILED = 5
#: Rows of the table of what is missing, in the report.
_MOST_ROWS = 1_000


def _most(counts: Mapping[str, int], form: str = "{} {}") -> str:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ranked) - _MOST_NAMED
    return ", ".join(form.format(name, count) for name, count in ranked[:_MOST_NAMED]) + (f", {more} more" * (more > 0))


def missing_in(summary: Mapping[str, Any]) -> Missing:
    """Return what a crawl did not bring, as its summary.json has it; nothing where an older version wrote that."""
    lacks = summary.get("missing") or {}
    rows = tuple((str(host), str(word), int(urls)) for host, word, urls in lacks.get("rows") or ())
    pages, embedded = (
        tuple((str(url), str(word)) for url, word in lacks.get(key) or ()) for key in ("pages", "embedded")
    )
    counts = lacks.get("resources") or {}, lacks.get("words") or {}, int(lacks.get("lost") or 0)
    apart = lacks.get("unwanted") or {}, int(lacks.get("led_elsewhere") or 0)
    return Missing(*counts, rows, pages, embedded, *apart)


def most_rows(rows: Sequence[tuple[str, str, int]], most: int) -> Iterator[tuple[str, str, int]]:
    """Yield the first rows of what is missing, and one without a host for all others."""
    named = [row for row in rows if row[0]]
    yield from named[:most]
    rest = sum(urls for host, _, urls in rows if not host) + sum(urls for _, _, urls in named[most:])
    if rest:
        yield "", "", rest


def missing(archive: Archive, frontier: Frontier) -> Missing:
    """Return what a crawl did not bring, once it is published."""
    with_pages = {host.domain for host in frontier.crawled_hosts() if host.has_pages}
    resources, words = Counter[str](), Counter[str]()
    by_word = Counter[tuple[str, str]]()
    lost = 0
    for some in frontier.missing():
        words[some.word] += some.urls
        if some.is_resource:
            resources[some.domain] += some.urls
            by_word[some.domain, some.word] += some.urls
        if some.has_failed and some.word not in DECISIONS and (not some.is_resource or some.domain in with_pages):
            lost += some.urls
    lost += _lost_elsewhere(archive, frontier, with_pages)
    ranked = sorted(by_word.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = tuple(most_rows([(domain, word, urls) for (domain, word), urls in ranked], _MOST_ROWS))
    pages, embedded = (
        tuple((failed.url, failed.word) for failed in frontier.failed_urls(_MOST_FAILED, is_resource=is_resource))
        for is_resource in (False, True)
    )
    unwanted, led_elsewhere = Counter[str](), 0
    for note, is_redirect, urls in frontier.unwanted():
        word = cause_among(note.split(","))
        if word != Reason.FOREIGN_HOST:
            unwanted[word] += urls
        elif is_redirect:
            led_elsewhere += urls
    return Missing(dict(resources), dict(words), lost, rows, pages, embedded, dict(unwanted), led_elsewhere)


def missing_now(archive: Archive, job: str, summary: Mapping[str, Any]) -> Missing:
    """Return what a crawl lacks: by its summary, or after its patches, whose logs say what they got.

    Raises what the thread's deadline raises.
    """
    if missing_urls.patches_of(archive, job):
        with suppress(NotFound, Damaged):  # a log that cannot be read says nothing of what patches got
            return missing_after_patches(archive, job)
    return missing_in(summary)


def missing_after_patches(archive: Archive, job: str) -> Missing:
    """Return what a crawl and its patches did not bring, by their logs; `lost` is not counted.

    Raises NotFound, Damaged, and what the thread's deadline raises.
    """
    by_word, words = Counter[tuple[str, str]](), Counter[str]()
    pages: list[tuple[str, str]] = []
    embedded: list[tuple[str, str]] = []
    unwanted, led_elsewhere = Counter[str](), 0
    for logged in missing_urls.lines(archive, job):
        if missing_urls.is_unwanted_page(logged):
            unwanted[logged.reason] += logged.reason != Reason.FOREIGN_HOST
            led_elsewhere += logged.reason == Reason.FOREIGN_HOST and logged.path.endswith("R")
        is_resource = missing_urls.is_missing_from_page(logged)
        if is_resource:
            by_word[logged.host, logged.reason] += 1
        if is_resource or missing_urls.is_page_that_failed(logged):
            words[logged.reason] += 1
            named = embedded if is_resource else pages
            if len(named) < _MOST_FAILED and logged.reason not in UNWANTED:
                named.append((logged.url, logged.reason))
    resources = Counter[str]()
    for (host, _), urls in by_word.items():
        resources[host] += urls
    ranked = sorted(by_word.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = tuple(most_rows([(host, word, urls) for (host, word), urls in ranked], _MOST_ROWS))
    return Missing(dict(resources), dict(words), 0, rows, pages, embedded, dict(+unwanted), led_elsewhere)


def _lost_elsewhere(archive: Archive, frontier: Frontier, with_pages: Set[str]) -> int:
    """Count the resources that failed on hosts without pages, and that the archive has from before."""
    lost = 0
    for domain, rows in groupby(frontier.failed_resources(), key=itemgetter(0)):
        if domain in with_pages or not archive.repository(domain).exists():
            continue
        with suppress(NotFound, Damaged):
            store = Repository(archive.repository(domain))
            head = store.head()
            shelf = TreeReader(store, head.tree if head is not None else None)
            lost += sum(any(shelf.find(f"{arc}/{DATA_XML}") for arc in places(url)) for _, url in rows)
    return lost


def summary(  # noqa: PLR0917 # what a report is made of
    job: Job,
    account: Account,
    complete: bool,
    parts: Sequence[PublishedDomain],
    seconds: Mapping[str, float],
    hosts: Sequence[HostEnd] = (),
    lacks: Missing | None = None,
) -> dict[str, Any]:
    """Return the content of summary.json."""
    lacks = lacks or Missing()
    watched = {"watch": account_of_watch(job.archive, job.publication, job.frontier)} if job.publication.watch else {}
    return {
        "job": job.name,
        "publication": job.publication.name,
        **({} if job.patch is None else {"patches": job.patch.job}),
        **({} if job.page is None else {"page": job.page.url}),
        **({"only_adds": True} if job.only_adds and job.patch is None else {}),
        "commit_tags": [part["commit_tag"] for part in parts],
        "complete": complete,
        "hosts": [asdict(host) for host in hosts],
        "missing": asdict(lacks),
        **watched,
        "started": format_time(job.begun),
        "finished": format_time(now()),
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
        "urls": account.urls,
        "documents": account.documents,
        "bytes": account.bytes,
        "certificates": account.certificates,
        "needs_browser": account.needs_browser,
        "shown": account.shown,
        "arcs": {key: sum(part["arcs"][key] for part in parts) for key in ARC_COUNTS},
        "redirects": {key: sum(part.get("redirects", {}).get(key, 0) for part in parts) for key in REDIRECT_COUNTS},
        "orders": job_orders.describe_orders(job.folder),
        "filter_errors": account.filter_errors,
    }


def write(job: Job, account: Account, content: dict[str, Any], item: JobState | None = None) -> Path:
    """Write the report atomically and durably, with the final `item`; return its folder.

    Raises OSError, for example on a full disk; then the next run of the job writes the report.
    """
    scratch = job.archive.reports / f".{job.name}"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        _fill(scratch, job, account, content, item)
        sync_tree(scratch)  # a folder without its content would count as a report, and the job would be removed
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    final = job.archive.reports / job.name
    shutil.rmtree(final, ignore_errors=True)
    scratch.rename(final)
    sync_folder(job.archive.reports)  # before the job is removed
    return final


def _fill(folder: Path, job: Job, account: Account, content: dict[str, Any], item: JobState | None) -> None:
    folder.mkdir()
    crawl_log.write(folder, account.lines)
    files.write_json(folder / "summary.json", content)
    write_waiting(folder, account.revisits)
    shown_pages.write(folder, account.views)
    if item is not None:
        save_item(folder, item)
    if job.settings.keep_warc:
        for path in account.warcs:
            _keep(path, folder / path.name)


def _keep(warc: Path, target: Path) -> None:
    """Link a WARC into the report: a job that is killed before the end of its report still has all its WARCs."""
    try:
        os.link(warc, target)
    except OSError:  # a file system without links
        shutil.copy2(warc, target)


def remove_job(folder: Path) -> None:
    """Remove the folder of a job after its report: renamed first, so that a partly removed folder is no job."""
    going = folder.with_name(f".{folder.name}")
    shutil.rmtree(going, ignore_errors=True)
    folder.rename(going)
    shutil.rmtree(going, ignore_errors=True)
