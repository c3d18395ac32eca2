"""Tries a publication: robots.txt, where its start URLs lead, and what would be fetched next. Writes no archive.

It is a crawl of the start URLs alone, in an archive that is thrown away; only the locks are the real archive's, so that
servers are asked as politely as ever.

Of a publication that has older values of settings whose defaults changed, a second such crawl says what the new ones
would bring: its start pages with all that they need, its sitemaps, or both. What its archived pages need is counted,
too.
"""

from __future__ import annotations

import dataclasses
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from agent.crawl import browser_check, job_folder, url_files, wget
from agent.crawl.browser_check import BrowserCheck
from agent.crawl.browserpool import CrawledForms
from agent.crawl.discovery import Discovery
from agent.crawl.disposition import ArchivedPages
from agent.crawl.frontier import BEGUN, FoundUrl, FrontierUrl
from agent.crawl.job_folder import Job
from agent.crawl.job_orders import OrderBook
from agent.crawl.loop import capture
from agent.crawl.politeness import Permission, RobotsCache
from agent.crawl.scope import domain_in, may_show_pages
from agent.crawl.vocabulary import WHOLE, LinkKind, Reason, UrlState
from agent.crawl.watching import WatchedItems
from agent.crawl.wget import BatchFiles
from agent.reports import tables
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import (
    AtDeadline,
    BrowserSettings,
    CrawlSettings,
    PageResources,
    Profile,
    Publication,
    RenderedPart,
)
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.git.repository import PUBLICATIONS, Repository
from webarcfs.archive.history.versions import ArcTree, arcs, described
from webarcfs.archive.index.database import domains_of
from webarcfs.archive.model.errors import SettingsError, WebarcError
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.system import clocks
from webarcfs.content import outlinks
from webarcfs.content.outlinks import may_have_links
from webarcfs.content.reference_table import LinkPurpose

#: URLs that are named of those that would be fetched.
NAMED = 20
#: URLs that are named of those that would not be, for each word.
NAMED_REFUSED = 100
#: Words of a shown page that are named, and characters of these.
_FIRST_WORDS, _MOST_OF_TEXT = 20, 200
#: URLs of a list that are tried: the first ones.
_MOST_OF_LIST = 5
_LONGEST = Interval(2, "minute")
#: What is fetched and read at most to say what new defaults would bring.
_MOST_BYTES, _MOST_PAGES, _MOST_FURTHER, _MOST_HOSTS = 64 << 20, 1_000, 50_000, 1_000
#: Documents of the archive that are looked at for pages, and seconds for all that is read there.
_MOST_ARCS, _MOST_SECONDS = 100_000, 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a URL: its status, and the words of crawl.log."""

    url: str
    status: int
    words: str = ""

    @property
    def meaning(self) -> str:
        """The status in words."""
        return tables.meaning(self.status)


@dataclass(frozen=True, slots=True)
class MoreByDefaults:
    """What the new values of `page_resources` and `sitemaps` would bring to a publication that has the old ones.

    `hosts` has the documents of each further host, the most first; `documents` and `bytes` are of all hosts. Of these,
    `measured` were fetched. The others are named by `pages` archived documents, and count as much on average. `listed`
    pages are in sitemaps alone, `new` of them are not archived; nobody knows their bytes. `is_all`: nothing is cut off.
    """

    hosts: dict[str, int]
    documents: int
    bytes: int
    measured: int
    pages: int
    listed: int
    new: int
    is_all: bool


@dataclass(frozen=True, slots=True)
class ShownStart:
    """A start page that the browser was to show: how many words it then had, and the first ones.

    `notes` are the words of crawl.log for what was cut, or for why it could not be shown. `requests` are its scripts'.
    """

    url: str
    is_shown: bool
    title: str = ""
    words: int = 0
    text: str = ""
    notes: str = ""
    requests: int = 0

    @property
    def sentence(self) -> str:
        """What the notes say, in words; empty without any."""
        return " ".join(tables.sentence_of(word) or word for word in self.notes.split(",") if word)


@dataclass(slots=True)
class Trial:
    """What a trial found. `starts` has each start URL with its redirects; `refused` counts by the word for why.

    Of a watched feed, `starts` has the feed, `would` the items that would be captured, and `captured` counts those that
    were captured before, or were given up. `more` is what new defaults would bring; None where the publication has
    them, or watches a feed. `needs_browser` has the start pages that show little until their scripts run, and that no
    browser was to show; `shown` has those that one was to show. `browser` says whether a browser can show pages here;
    None where no page needs one.
    """

    robots: list[Answer] = field(default_factory=list)
    starts: list[list[Answer]] = field(default_factory=list)
    would: list[str] = field(default_factory=list)
    number: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    refused_urls: dict[str, list[str]] = field(default_factory=dict)
    feed: str = ""
    captured: int = 0
    more: MoreByDefaults | None = None
    needs_browser: list[str] = field(default_factory=list)
    shown: list[ShownStart] = field(default_factory=list)
    browser: BrowserCheck | None = None

    def refuse(self, url: str, word: str) -> None:
        """Count a URL that would not be fetched; the first ones of a word are named."""
        self.refused[word] = self.refused.get(word, 0) + 1
        urls = self.refused_urls.setdefault(word, [])
        if len(urls) < NAMED_REFUSED:
            urls.append(url)

    @property
    def is_good(self) -> bool:
        """Whether each start URL leads to a document, and what is to be watched to a feed."""
        ends = [chain[-1] for chain in self.starts]
        return bool(ends) and all(end.status == 200 and Reason.NO_FEED not in end.words.split(",") for end in ends)


def attempt(
    archive: Archive,
    publication: Publication,
    profile: Profile | None,
    instances: int,
    stop: threading.Event | None = None,
) -> Trial:
    """Try a publication; return what was found.

    It takes two minutes at most, and for new defaults two more to fetch, and two to read what is archived.
    """
    shows_pages = may_show_pages(publication) and not publication.watch
    bare = _SHOWN if shows_pages else _BARE
    with _crawled_apart(archive, publication, profile, instances, stop, bare) as (job, _):
        trial = _trial(archive, job, publication)
    if shows_pages or trial.needs_browser:
        trial.browser = browser_check.check_browser(_machine(archive), archive.root)
    crawl = publication.crawl
    if not publication.watch and trial.is_good and (_wants_resources(crawl) or _wants_sitemaps(crawl)):
        page_resources = PageResources.ANY if _wants_resources(crawl) else PageResources.NONE
        wide = {**_WIDE, "page_resources": page_resources, "sitemaps": _wants_sitemaps(crawl)}
        with _crawled_apart(archive, publication, profile, instances, stop, wide) as (job, is_all):
            trial.more = _more(archive, job, publication, is_all=is_all)
    return trial


def _wants_resources(crawl: CrawlSettings) -> bool:
    """Return whether the new default of `page_resources` would bring more than the value that is set."""
    return crawl.resources is PageResources.HOSTS


def _wants_sitemaps(crawl: CrawlSettings) -> bool:
    """Return whether that of `sitemaps` would: it says nothing to a crawl of its start URLs alone."""
    return crawl.depth > 0 and not crawl.sitemaps


#: The settings of a trial: the start URLs alone; these with what new defaults bring, and sitemaps without their pages.
_SHORT: Mapping[str, Any] = {"max_duration": _LONGEST, "at_deadline": AtDeadline.PUBLISH, "conditional": False}
_BARE: Mapping[str, Any] = {**_SHORT, "depth": 0, "page_resources": PageResources.NONE}
#: With what their scripts need, where a browser shows them.
_SHOWN: Mapping[str, Any] = {
    **_SHORT,
    "depth": 0,
    "max_total_size": _MOST_BYTES,
    # The trial says how many words a page then has, whatever the publication keeps.
    "keep_rendered": (RenderedPart.HTML, RenderedPart.TEXT),
}
_WIDE: Mapping[str, Any] = {
    **_SHORT,
    "depth": 1,
    "paths": ("/.none/",),
    "max_total_size": _MOST_BYTES,
}


@contextmanager
def _crawled_apart(  # noqa: PLR0917 # what a trial is made of
    archive: Archive,
    publication: Publication,
    profile: Profile | None,
    instances: int,
    stop: threading.Event | None,
    settings: Mapping[str, Any],
) -> Iterator[tuple[Job, bool]]:
    """Crawl in an archive that is thrown away; yield the job, and whether nothing was cut off."""
    how = dataclasses.replace(publication.crawl, **settings)
    # A feed is fetched as a page would be: its items are only named.
    tried = dataclasses.replace(publication, urls=publication.named_urls, watch="", crawl=how)
    with tempfile.TemporaryDirectory(prefix="webarcfs-try-") as parent:
        scratch = directory.create(Path(parent) / "archive")
        own_settings = {"browser": settings_files.plain(_machine(archive))}
        scratch.settings.write_text(settings_files.text_of(own_settings), "utf-8")
        (scratch.root / "lock").rmdir()
        (scratch.root / "lock").symlink_to(archive.root / "lock")
        folder = job_folder.new_folder(scratch, publication.name)
        with job_folder.opened(folder) as frontier:
            job = Job(
                archive=scratch,
                name=folder.name,
                folder=folder,
                publication=tried,
                profile=profile,
                frontier=frontier,
                begun=from_epoch(frontier.get(BEGUN) or 0),
                instances=instances,
                stop=stop or threading.Event(),
            )
            with frontier.changes():
                discovery = Discovery(frontier, job.publication, profile)
                discovery.seeds(tried.urls)
                if publication.list:
                    discovery.seeds_of_list(islice(_urls_of_list(archive, publication), _MOST_OF_LIST))
            end = capture(job, ArchivedPages(scratch), OrderBook(job))
            yield job, not end.reason


def _machine(archive: Archive) -> BrowserSettings:
    """Return the archive's settings of the browser; the defaults where its settings have faults."""
    try:
        return settings_files.load(archive.settings)[0].browser
    except SettingsError:
        return BrowserSettings()


def _urls_of_list(archive: Archive, publication: Publication) -> Iterator[str]:
    return (listed.url for listed in url_files.read_urls(url_files.list_of(archive, publication)) if listed.url)


def _trial(archive: Archive, job: Job, publication: Publication) -> Trial:
    trial = Trial(feed=publication.watch)
    trial.robots = [_answer(row) for row, _ in job.frontier.all() if row.kind == LinkKind.ROBOTS]
    discovery = Discovery(job.frontier, publication, job.profile)
    robots = RobotsCache(job.frontier, publication.crawl.user_agent)
    known_urls = set(publication.named_urls)
    for seed in job.frontier.seeds():
        chain = list(_chain(job, seed))
        trial.starts.append([_answer(row) for row in chain])
        known_urls |= {row.url for row in chain}
        for row in chain:
            start = _shown_start(job, row)
            if start is not None:
                trial.shown.append(start)
            elif Reason.NEEDS_BROWSER in row.note.split(","):
                trial.needs_browser.append(row.url)
        if publication.watch:
            _list_items(archive, job, chain[-1], (discovery, robots), trial)
        else:
            _follow(job, chain[-1], (discovery, robots), known_urls, trial)
    return trial


def _shown_start(job: Job, row: FrontierUrl) -> ShownStart | None:
    """Return what the browser showed of a page; None where it was not to show it."""
    view = job.frontier.view(row.id)
    if view is None:
        return None
    form = CrawledForms(job.frontier, job.folder).form(row.id)
    if form is None:
        return ShownStart(row.url, False, notes=view.words or Reason.BROWSER_CUT)
    words = form.text.decode("utf-8", "replace").split()
    first = " ".join(words[:_FIRST_WORDS])[:_MOST_OF_TEXT]
    return ShownStart(row.url, True, view.title, len(words), first, view.words, view.requests)


def _list_items(
    archive: Archive, job: Job, feed: FrontierUrl, judges: tuple[Discovery, RobotsCache], trial: Trial
) -> None:
    """Judge the items of a watched feed, and those that wait from earlier crawls, as the crawl would."""
    if not feed.position or feed.state != UrlState.DONE or feed.status not in WHOLE:
        return
    most = judges[0].publication.crawl.max_sitemap_urls
    listing, unlinked = wget.feed_at(BatchFiles(job.folder, feed.batch).warc, feed.position, feed, most)
    end = trial.starts[-1][-1]
    words = ",".join(filter(None, (end.words, *wget.feed_words(listing, unlinked))))
    trial.starts[-1][-1] = dataclasses.replace(end, words=words)
    with WatchedItems(archive, judges[0].publication.name, reads=True) as items:
        urls = dict.fromkeys(map(judges[0].item_of, (*items.waiting(most), *listing.pages)))
        for url in urls:
            if items.is_settled(url):
                trial.captured += 1
            else:
                _count(job, judges[0].judged_item(url), judges, trial)


def _chain(job: Job, row: FrontierUrl) -> Iterator[FrontierUrl]:
    seen = set[int]()
    hop: FrontierUrl | None = row
    while hop is not None and hop.id not in seen:
        yield hop
        seen.add(hop.id)
        hop = job.frontier.redirected_to(hop.id)


def _follow(
    job: Job, page: FrontierUrl, judges: tuple[Discovery, RobotsCache], known_urls: set[str], trial: Trial
) -> None:
    """Judge what a start page leads to, as the crawl would."""
    if not page.position or page.state != UrlState.DONE:
        return
    discovery = judges[0]
    settings = discovery.publication.crawl
    form = CrawledForms(job.frontier, job.folder).form(page.id)
    shown = () if form is None or not form.html else outlinks.find(form.html, page.url, "text/html", "utf-8").links
    for link in (*wget.links_at(BatchFiles(job.folder, page.batch).warc, page.position, page), *shown):
        if link.url in known_urls:
            continue
        known_urls.add(link.url)
        requisite = link.kind is LinkPurpose.REQUISITE and settings.resources is not PageResources.NONE
        kind = LinkKind.REQUISITE if requisite else LinkKind.LINK
        _count(job, discovery.judged(link.url, kind, page.depth + (not requisite), page), judges, trial)


def _count(job: Job, target: FoundUrl, judges: tuple[Discovery, RobotsCache], trial: Trial) -> None:
    """Count a URL as one that would be fetched, or by the word for why not."""
    discovery, robots = judges
    with job.frontier.changes():  # another host's robots.txt may be noted as one to ask for
        obeys = discovery.publication.crawl.robots
        says = robots.say(target.url, clocks.steady()) if obeys else Permission.YES
    if target.state != UrlState.WAITING:
        trial.refuse(target.url, str(target.note))
    elif says is Permission.NO:
        trial.refuse(target.url, str(Reason.ROBOTS))
    else:
        trial.number += 1
        trial.would += [target.url] if len(trial.would) < NAMED else []


# == new defaults =====================================================================================================


def _more(archive: Archive, job: Job, publication: Publication, *, is_all: bool) -> MoreByDefaults:
    """Return what the new defaults would bring, after a crawl with them of the start pages alone."""
    old = Discovery(job.frontier, publication)
    by_default = dataclasses.replace(publication.crawl, page_resources=PageResources.ANY, sitemaps=True)
    new = Discovery(job.frontier, dataclasses.replace(publication, crawl=by_default), job.profile)
    archived = ArchivedPages(archive)
    wants_resources = _wants_resources(publication.crawl)
    further: dict[str, str] = {}
    until = time.monotonic() + _MOST_SECONDS
    measured, size, listed, unknown = 0, 0, 0, 0
    for row, _ in job.frontier.all():
        if job.stop.is_set() or time.monotonic() >= until:
            is_all = False
            break
        if wants_resources and row.embedded > 0 and not old.accepts(row.domain):
            if row.state == UrlState.DONE and row.status in WHOLE:
                further[row.url] = row.domain
                measured, size = measured + 1, size + row.size
        elif row.kind == LinkKind.LISTED and new.judged(row.url, LinkKind.LISTED, 1, row).state == UrlState.WAITING:
            listed += 1
            unknown += archived.mime_type(row.url) is None
    pages = 0
    for number, url in enumerate(_archived_urls(archive, publication.name) if wants_resources else ()):
        is_full = bool(url) and (pages >= _MOST_PAGES or len(further) >= _MOST_FURTHER)
        if is_full or number >= _MOST_ARCS or job.stop.is_set() or time.monotonic() >= until:
            is_all = False
            break
        pages += bool(url)
        for link in archived.links(url) if url else ():
            if link.kind is LinkPurpose.REQUISITE and not old.accepts(domain := domain_in(link.url)):
                further.setdefault(link.url, domain)
    hosts = Counter(further.values())
    return MoreByDefaults(
        hosts=dict(hosts.most_common(_MOST_HOSTS)),
        documents=len(further),
        bytes=size * len(further) // measured if measured else size,
        measured=measured,
        pages=pages,
        listed=listed,
        new=unknown,
        is_all=is_all and len(hosts) <= _MOST_HOSTS,
    )


def _archived_urls(archive: Archive, name: str) -> Iterator[str]:
    """Yield the URLs of the documents with links that a publication's last complete crawl saw.

    For a document without links, and at the beginning of a host, it yields an empty one: the caller may end it there.
    """
    with suppress(WebarcError):
        for domain in domains_of(archive.database, name):
            yield ""
            store = Repository(archive.repository(domain))
            tree = store.ref(PUBLICATIONS + name)
            for arc in arcs(store, tree) if tree is not None else ():
                yield _url_with_links(store, arc)


def _url_with_links(store: Repository, arc: ArcTree) -> str:
    """Return the URL of a document that may have links; empty for others, and for what cannot be read."""
    with suppress(WebarcError):
        meta = described(store, arc)
        if may_have_links(meta.mime_type):
            return meta.url
    return ""


def _answer(row: FrontierUrl) -> Answer:
    return Answer(row.url, row.status, row.note)
