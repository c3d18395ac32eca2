"""Has pages shown by a browser, and decides what they get: the job's side of `browser.py`, which runs the browser.

wget asks for every page. A page that is to be shown waits in the frontier (table `view`) until then. What it showed
leads on as links of its own body do, and is kept beside it (`CrawledForms`).

Each request of a page is decided here like any URL of the crawl (`_decide`): by scope, robots.txt, quotas, addresses
and what the crawl has already. A request that waits for something, such as a robots.txt, is decided once that is there.
What the page needs becomes rows of the frontier, in a batch of the page's own. So nothing is fetched twice, and after a
kill the responses in its WARC count.

While a page is shown, no wget of the job is started for the hosts that it asks, and one that runs there ends after its
document. One process runs at a time. It holds one of the archive's places for browsers (`[browser] browsers`), and
gives it back when no page waits.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from agent.crawl import scope, wget
from agent.crawl.browser_messages import (
    MOST_WAITING,
    Ask,
    Begin,
    DiskFailed,
    Fetch,
    Fetched,
    Have,
    Message,
    Missed,
    PageShown,
    RedirectTo,
    Refuse,
    ShowPage,
    Unable,
    packed,
    unpacked,
)
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.disposition import Disposition
from agent.crawl.frontier import Frontier, FrontierUrl, UrlOutcome
from agent.crawl.job_folder import Job
from agent.crawl.politeness import Permission, RobotsCache, again, failed
from agent.crawl.secrets import Secrets
from agent.crawl.server_locks import Slots
from agent.crawl.vocabulary import Reason, Status, UrlState, ViewState, word_of_request
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.settings import BrowserSettings, Certificates, PostedRequests, RobotsFor
from webarcfs.archive.history.rendered_forms import CRAWLED, LARGEST_HTML, RenderedForm
from webarcfs.archive.model.errors import UrlRefused, WebarcError
from webarcfs.archive.model.metadata import parse_time
from webarcfs.archive.model.urls import canonical, without_chance
from webarcfs.archive.system import clocks
from webarcfs.content.outlinks import LONGEST_LINK, Link
from webarcfs.content.reference_table import LinkPurpose, NamedAs
from webarcfs.warc import request_key
from webarcfs.warc.request_key import RequestKey

_log = logging.getLogger(__name__)

#: Deaths of the browser after which a page is not shown any more.
MOST_TRIES = 2
#: POST requests of a page that are sent.
MOST_POSTS = 50
#: Seconds beyond the bounds of a page after which the process of the browser is killed from here.
_GRACE = 30.0
#: Bytes that the pipe to the process holds: mostly all answers to one page.
_PIPE = 1 << 20
#: Seconds for which the process stays when no page waits.
_IDLE = 5.0
#: The file in the job's folder with what the process says of itself.
_LOG = "browser.log"
_PURPOSES = {str(purpose.value): purpose for purpose in LinkPurpose}
_NAMES = {str(named.value): named for named in NamedAs}
#: Methods that are asked of a server without a document in the archive.
_SAFE = frozenset({"HEAD", "OPTIONS"})
#: Types of what a page cannot do its work without.
_WORKING = frozenset({"Script", "XHR", "Fetch"})
_BY_SCOPE = frozenset({Status.OUT_OF_SCOPE, Status.TOO_MANY_HOPS, Status.TRAP, Status.TYPE})
#: Commas and byte order marks are white space to GraphQL; a description may come before an operation.
_MUTATION = re.compile(r'(?:^|[}"])[\s,\ufeff]*mutation\b')
#: Strings and comments of GraphQL.
_NO_TOKEN = re.compile(r'"""(?:\\"""|[\s\S])*?(?:"""|\Z)|"(?:\\.|[^"\\\n\r])*"?|#[^\n\r]*')


# == decisions, pure ==================================================================================================


def is_mutation(mime: str, body: bytes) -> bool:
    """Return whether a request asks a GraphQL server to change something (GraphQL, section 2.3), whatever its type."""
    text = body.decode("utf-8-sig", "replace")
    if mime == "application/graphql":
        return _has_mutation(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return any(name == "query" and _has_mutation(query) for name, query in parse_qsl(text, max_num_fields=None))
    operations = value if isinstance(value, list) else [value]
    queries = (operation.get("query") for operation in operations if isinstance(operation, dict))
    return any(isinstance(query, str) and _has_mutation(query) for query in queries)


def _has_mutation(query: str) -> bool:
    return _MUTATION.search(_NO_TOKEN.sub(lambda match: '"' * (match[0][0] == '"') or " ", query)) is not None


# == what was shown ===================================================================================================


@dataclass(frozen=True, slots=True)
class CrawledForms:
    """What the browser showed of a crawl's pages, read from the WARCs in the job's folder."""

    frontier: Frontier
    folder: Path

    def form(self, row: int) -> RenderedForm | None:
        """Return the form of a page, by its row; None without one. Raises OSError."""
        view = self.frontier.view(row)
        if view is None or view.state != ViewState.DONE:
            return None
        with wget.BatchFiles(self.folder, view.batch).warc.open("rb") as file:

            def part(at: int, size: int) -> bytes:
                if at < 0:
                    return b""
                file.seek(at)
                return file.read(size)

            html, text = part(view.html_at, view.html_size), part(view.text_at, view.text_size)
            picture = part(view.picture_at, view.picture_size)
        return RenderedForm(
            text=text,
            picture=picture,
            title=view.title,
            html=html,
            text_of=CRAWLED if text else "",
            picture_of=CRAWLED if picture else "",
            title_of=CRAWLED if view.title else "",
            html_of=CRAWLED if html else "",
            shown=view.shown,
        )


# == the browser of a job =============================================================================================


@dataclass(slots=True)
class _Showing:
    """The page that is being shown."""

    row: FrontierUrl
    batch: int
    begun: float
    at: int  # when its own response came, in seconds since 1970: by its clock
    hosts: set[str]
    speed: int  # bytes a second; 0: as fast as the servers
    posts: int = 0
    fetched: dict[int, int] = field(default_factory=dict)  # row → position in the page's WARC


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the crawl's loop lends: its parts, and what it does for the browser.

    `may_ask` tells whether a host may be asked, None if that is not known yet; `wait` is the pause of a host before a
    URL; `speed` is that of the next page in bytes a second, 0 without a limit and None while wgets have all of it;
    `next_batch` the number of a new batch; `is_full` whether a host had all its documents. `took` counts one of them.
    `give` has a batch read. `free` ends the wget at a host. `public`: the host must be at a public address.
    """

    job: Job
    intake: Disposition
    robots: RobotsCache
    secrets: Secrets
    jars: CookieJars
    may_ask: Callable[[str], bool | None]
    wait: Callable[[str, str], float]
    speed: Callable[[], int | None]
    next_batch: Callable[[], int]
    is_full: Callable[[str], bool]
    took: Callable[[str], None]
    give: Callable[[int], None]
    free: Callable[[str], None]
    public: Callable[[str], bool]


class BrowserPool:
    """The browser of a job. Call `tend` often; `is_open` says whether pages wait or are shown."""

    def __init__(self, lent: Dependencies, most: int) -> None:
        self._lent = lent
        self._job = lent.job
        self._frontier = lent.job.frontier
        self._settings = lent.job.settings
        self._may_show = scope.may_show_pages(lent.job.publication)
        self._machine: BrowserSettings | None = None
        self._most = most
        self._process: subprocess.Popen[bytes] | None = None
        self._place: int | None = None
        self._slots: Slots | None = None
        self._received = b""
        self._to_say = bytearray()
        self._showing: _Showing | None = None
        self._asked: dict[int, Ask] = {}
        self._rows: dict[int, FrontierUrl] = {}
        self._without_robots: set[str] = set()  # hosts whose robots.txt is to be fetched first
        self._idle_since = 0.0
        self._unable = ""
        self._is_warned = False
        if self._may_show:
            with self._frontier.changes():
                self._frontier.return_views()
        self._open = self._frontier.open_views() if self._may_show else 0

    @property
    def is_open(self) -> bool:
        """Whether pages wait for the browser, or are shown by it."""
        return self._open > 0

    @property
    def descriptors(self) -> list[int]:
        """Descriptors that become readable when the process says something."""
        if self._process is None or self._process.stdout is None:
            return []
        return [self._process.stdout.fileno()]

    @property
    def hosts(self) -> set[str]:
        """The hosts that belong to the browser while it shows a page, but for those whose robots.txt a wget fetches."""
        return set() if self._showing is None else self._showing.hosts - self._without_robots

    @property
    def speed(self) -> int:
        """Bytes a second that the page which is shown may fetch, as far as it has a limit."""
        return 0 if self._showing is None else self._showing.speed

    @property
    def waits(self) -> bool:
        """Whether requests of the page wait for a decision."""
        return bool(self._asked)

    def count(self) -> None:
        """Count the pages again: results of batches may have added some."""
        if self._may_show:
            self._open = self._frontier.open_views()

    def tend(self) -> None:
        """Take what the process says, decide what can be decided, and have the next page shown.

        Raises OSError where the disk takes no more.
        """
        if not self._may_show or not (self._open or self._process is not None):
            return
        self._send()
        self._take_messages()
        self._without_robots.clear()
        for ask in list(self._asked.values()):
            self._try(ask)
        self._watch()
        if self._showing is None and self._open:
            self._begin_next()
        self._rest()

    def show_again(self, which: Callable[[str], bool]) -> None:
        """Have the page shown once more if it asks one of `which` hosts.

        Its requests that wait for their turn were permitted before a person changed what holds for these hosts.
        """
        if self._showing is not None and any(map(which, self._showing.hosts)):
            self.end()

    def end(self, word: str = "") -> None:
        """End the process. What it fetched is read; with a word, the rest of the pages fails with that."""
        self._end_process()
        if self._showing is not None:
            self._take_back(tried=False)
        if word and self._may_show:
            with self._frontier.changes():
                self._frontier.end_views(word)
            self.count()

    # -- the process ---------------------------------------------------------------------------------------------

    def _begin_next(self) -> None:
        rows = self._frontier.next_views(1)
        if not rows:
            return
        if self._unable:
            self.end(self._unable)
            return
        speed = self._lent.speed()
        if speed is None or not self._start():
            return
        row = rows[0]
        batch = self._lent.next_batch()
        files = wget.BatchFiles(self._job.folder, batch)
        with self._frontier.changes():
            self._frontier.begin_batch(batch, row.domain)
            self._frontier.show(row.id, batch)
        at = int(parse_time(row.captured).timestamp()) if row.captured else int(time.time())
        self._showing = _Showing(row, batch, time.monotonic(), at, {row.domain}, speed)
        settings = self._settings
        self._say(
            ShowPage(
                page=row.id,
                url=row.url,
                document=str(wget.BatchFiles(self._job.folder, row.batch).warc),
                position=row.position,
                began=at,
                warc=str(files.warc),
                seconds=settings.browser_page_seconds,
                requests=settings.browser_requests,
                most=settings.browser_bytes,
                timeout=settings.timeout,
                largest=settings.max_file_size,
                scroll=settings.browser_scroll,
                more=settings.browser_clicks,
                behaviours=settings.browser_behaviours,
                clicks=tuple(click.text for click in self._job.publication.click),
                keep=settings.keep_rendered,
                largest_dom=LARGEST_HTML,
                cookies=self._lent.jars.for_browser(row.domain),
                routes=settings.hash_routes,
            )
        )

    def _start(self) -> bool:
        """Start the process, if there is none; return whether it runs."""
        if self._process is not None:
            return True
        machine = self._machine or settings_files.load(self._job.archive.settings)[0].browser
        self._machine = machine
        if self._slots is None:
            most = min(self._most, machine.browsers)
            self._slots = Slots(self._job.archive.root / "lock", most, "browser")
        self._place = self._slots.take(0)
        if self._place is None:
            return False
        if self._settings.wget_args and not self._is_warned:
            self._is_warned = True
            _log.warning(
                "wget_args hold for wget alone, not for what pages in the browser ask for: %s",
                " ".join(argument.partition("=")[0] for argument in self._settings.wget_args),
            )
        errors = self._job.folder / "chromium.log"
        own = self._job.folder / _LOG
        command = ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "agent.crawl.browser", str(errors)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with own.open("ab") as said:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
                pass_fds=(self._place,),
                process_group=0,  # Ctrl-C in the terminal is for the job
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        os.set_blocking(self._process.stdin.fileno(), False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._process.stdin.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
        self._received = b""
        self._to_say.clear()
        settings = self._settings
        self._say(
            Begin(
                archive=str(self._job.archive.root),
                program=machine.program,
                user=machine.user,
                window=machine.window_size,
                memory=machine.memory,
                pages=machine.pages,
                user_agent=settings.user_agent,
                ca=settings.ca,
                bind=settings.bind,
                proxy=settings.proxy,
            )
        )
        return True

    def _say(self, message: Message) -> None:
        self._to_say += packed(message)
        self._send()

    def _send(self) -> None:
        """Write what the pipe takes now: a process that hangs must not stop the job, which ends it."""
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError):  # full for now; or it has ended, which `_take_messages` sees
            while self._to_say:
                del self._to_say[: os.write(self._process.stdin.fileno(), self._to_say[:_PIPE])]

    def _take_messages(self) -> None:
        if self._process is None:
            return
        self._take_lines()
        if self._process is not None and self._process.poll() is not None:
            self._take_lines()  # what it said last
            self._died()

    def _take_lines(self) -> None:
        for line in self._lines():
            try:
                self._take(unpacked(line))
            except WebarcError as error:
                _log.warning("%s", error)

    def _lines(self) -> Iterator[bytes]:
        assert self._process is not None and self._process.stdout is not None
        fd = self._process.stdout.fileno()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(fd, 1 << 20):
                self._received += data
        *lines, self._received = self._received.split(b"\n")
        yield from lines

    def _died(self) -> None:
        if self._process is None:
            return
        _log.warning("the process of the browser ended with %s: %s", self._process.returncode, self._last_words())
        self._end_process()
        if self._showing is not None:
            self._take_back(tried=True)

    def _last_words(self) -> str:
        """Return the last line that the process wrote; `browser.log` has the rest as long as the job runs."""
        try:
            text = (self._job.folder / _LOG).read_text("utf-8", "replace")
        except OSError:
            text = ""
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it did not say why")

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._asked.clear()
        self._rows.clear()
        if self._place is not None:
            os.close(self._place)
            self._place = None
        if self._slots is not None:
            self._slots.leave()

    def _take_back(self, *, tried: bool) -> None:
        """Let the page that was being shown wait once more, or fail; what it fetched counts."""
        assert self._showing is not None
        showing, self._showing = self._showing, None
        with self._frontier.changes():
            self._show_again(showing.row, tried=tried)
        self._lent.give(showing.batch)
        self.count()

    def _show_again(self, row: FrontierUrl, *, tried: bool) -> None:
        self._frontier.show_again(row.id, tried=tried, most=MOST_TRIES, word=Reason.BROWSER_CRASH)
        view = self._frontier.view(row.id)
        if view is not None and view.state == ViewState.FAILED:
            self._frontier.annotate(row.id, Reason.BROWSER_CRASH)

    def _watch(self) -> None:
        """Kill the process when a page takes longer than its bounds let it: it does not keep them itself then."""
        if self._showing is None or self._process is None:
            return
        most = self._settings.browser_page_seconds * MOST_WAITING + _GRACE
        if time.monotonic() - self._showing.begun > most:
            self._process.kill()

    def _rest(self) -> None:
        """End a process that has nothing to do, so that other jobs get its place."""
        if self._process is None or self._showing is not None or self._open:
            self._idle_since = 0.0
            return
        self._idle_since = self._idle_since or time.monotonic()
        if time.monotonic() - self._idle_since > _IDLE:
            self._end_process()

    # -- messages ------------------------------------------------------------------------------------------------

    def _take(self, message: Message) -> None:
        if isinstance(message, Ask):
            self._asked[message.ask] = message
        elif isinstance(message, Fetched):
            row = self._rows.pop(message.ask, None)
            if row is not None and self._showing is not None:
                self._showing.fetched[row.id] = message.position
            if row is not None and message.faults:
                with self._frontier.changes():
                    self._frontier.annotate(row.id, message.faults)
        elif isinstance(message, Missed):
            self._take_missed(message)
        elif isinstance(message, PageShown):
            self._take_shown(message)
        elif isinstance(message, Unable):
            _log.warning("no browser shows pages: %s", message.why)
            self._unable = message.word
            self.end(message.word)
        elif isinstance(message, DiskFailed):
            raise OSError(message.number, os.strerror(message.number), message.path or None)

    def _take_missed(self, message: Missed) -> None:
        row = self._rows.pop(message.ask, None)
        if row is None:
            return
        row = self._frontier.by_url(row.url) or row
        if not message.status:
            outcome = again(row)
        elif message.status == Status.QUOTA or message.word == Reason.BROWSER_STREAM:
            outcome = UrlOutcome(id=row.id, state=UrlState.REFUSED, status=message.status, note=message.word)
        else:
            outcome = failed(row, message.status, message.word, clocks.steady())
        outcome = wget.with_request(outcome, row.note)
        with self._frontier.changes():
            if outcome.state == UrlState.WAITING:
                self._frontier.settle([outcome])
            else:
                self._lent.intake.fail(outcome, row)

    def _take_shown(self, shown: PageShown) -> None:
        showing, self._showing = self._showing, None
        if showing is None or showing.row.id != shown.page:
            return
        self._asked.clear()
        self._rows.clear()
        row = self._frontier.by_url(showing.row.url) or showing.row
        with self._frontier.changes():
            if shown.fault == Reason.BROWSER_CRASH:
                self._show_again(row, tried=True)
            else:
                self._keep(row, shown)
        if shown.cookies:
            self._lent.jars.learn(shown.cookies)
        self._lent.give(showing.batch)
        self.count()

    def _keep(self, row: FrontierUrl, shown: PageShown) -> None:
        words = [*([shown.fault] if shown.fault else []), *shown.words]
        self._frontier.shown(
            row.id,
            state=ViewState.FAILED if shown.fault else ViewState.DONE,
            words=",".join(words),
            title=shown.title,
            shown=shown.began,
            html_at=shown.html_at,
            html_size=shown.html_size,
            text_at=shown.text_at,
            text_size=shown.text_size,
            picture_at=shown.picture_at,
            picture_size=shown.picture_size,
            requests=shown.requests,
            refused=shown.refused,
            missed=shown.missed,
        )
        if not shown.fault and (shown.html_at >= 0 or shown.text_at >= 0 or shown.picture_at >= 0):
            words.insert(0, Reason.RENDERED)
        for word in words:
            self._frontier.annotate(row.id, word)
        links = tuple(
            Link(url, _PURPOSES[purpose], _NAMES[named])
            for url, purpose, named in shown.links
            if purpose in _PURPOSES and named in _NAMES
        )
        self._lent.intake.shown(row, links, _canonical(shown.forward))

    # -- decisions -----------------------------------------------------------------------------------------------

    def _try(self, ask: Ask) -> None:
        """Decide about a request, if that can be decided now."""
        try:
            with self._frontier.changes():
                # What is longer leaves no row, as links of pages do not.
                is_long = len(ask.url) > LONGEST_LINK
                say = Refuse(ask.ask, Reason.URL_LENGTH) if is_long else self._decide(ask)
        except UrlRefused:
            say = Refuse(ask.ask, Reason.BAD_URL)
        if say is not None and self._asked.pop(ask.ask, None) is not None:
            self._say(say)

    def _note_unsent(self, showing: _Showing, word: str) -> None:
        """Note at the page that a request was not sent, which has no line of its own in the log."""
        is_of_method = word == Reason.FOREIGN_HOST  # a POST to it; its pages are another matter
        self._frontier.annotate(showing.row.id, Reason.METHOD if is_of_method else word)

    def _decide(self, ask: Ask) -> Message | None:
        """Return what becomes of a request; None if that cannot be known yet. Raises UrlRefused."""
        showing = self._showing
        if showing is None:
            return Refuse(ask.ask, "")
        url = canonical(ask.url)
        if ask.method == "GET":
            return self._decide_row(ask, showing, self._without_chance(showing, url), url, "")
        if ask.method in _SAFE:
            is_own = self._lent.intake.accepts_host(scope.domain_in(url))
            if ask.method == "OPTIONS" and not is_own:
                return Refuse(ask.ask, Reason.METHOD)
            return self._decide_unkept(ask, showing, url)
        key = self._key_of_post(ask, showing, url)
        if isinstance(key, Refuse):
            self._note_unsent(showing, key.word)
            return key
        kept_by = self._without_chance(showing, key.url)
        return self._decide_row(ask, showing, kept_by, url, word_of_request(key.method, key.mime))

    def _without_chance(self, showing: _Showing, url: str) -> str:
        """Return the URL by which an answer is kept: without what only time or chance made another.

        The time is that of the page's clock, which may be days behind ours where a job was interrupted.
        """
        return without_chance(url, self._settings.drop_parameters, showing.at)

    def _key_of_post(self, ask: Ask, showing: _Showing, url: str) -> RequestKey | Refuse:
        """Return the key of a POST that may be sent; else why it may not."""
        domain = scope.domain_in(url)
        is_shown_secrets = self._lent.secrets.knows(domain)
        settings = self._settings
        is_sent = settings.post == PostedRequests.KEEP or (settings.post == PostedRequests.OWN and not is_shown_secrets)
        mime, body = request_key.mime_of(ask.mime), base64.b64decode(ask.body)
        if ask.method != "POST" or not is_sent or is_mutation(mime, body):
            return Refuse(ask.ask, Reason.METHOD)
        if not self._lent.intake.accepts_host(domain):
            return Refuse(ask.ask, Reason.FOREIGN_HOST)
        if showing.posts >= MOST_POSTS:
            return Refuse(ask.ask, Reason.BROWSER_REQUESTS)
        fault = request_key.fault_of(mime, ask.size)
        key = request_key.key_of(ask.method, url, ask.mime, body) if fault is None else fault
        if not isinstance(key, RequestKey):
            return Refuse(ask.ask, f"{Reason.NO_KEY}{key.name.lower()}")
        return key

    def _decide_unkept(self, ask: Ask, showing: _Showing, url: str) -> Message | None:
        """Decide about a request whose answer is no document."""
        verdict = self._lent.intake.judge_requisite(showing.row, url)
        if verdict.state != UrlState.WAITING:
            return Refuse(ask.ask, _first(verdict.note))
        refusal = self._refusal(ask, url, embedded=True)
        if refusal is not None:
            return refusal if isinstance(refusal, Refuse) else None
        return self._fetch(ask, showing, url, "")

    def _decide_row(  # noqa: PLR0911 # each state is a line
        self, ask: Ask, showing: _Showing, key: str, url: str, note: str
    ) -> Message | None:
        if note and self._refusal(ask, url, embedded=True) is Permission.ASK:
            return None  # no row waits meanwhile: a wget would ask for it by GET
        row = self._row_of(ask, showing, key, note)
        if row is None:
            return Refuse(ask.ask, "")
        if row.state == UrlState.DONE:
            return self._answer_of(ask, row, url)
        if row.state in (UrlState.FAILED, UrlState.REFUSED):
            self._note_forbidden(ask, showing, row.note)
            return Refuse(ask.ask, _first(row.note))
        if row.state == UrlState.FETCHING:
            position = showing.fetched.get(row.id)
            if position is not None:  # by a URL that only time or chance made another
                return Have(ask.ask, str(wget.BatchFiles(self._job.folder, showing.batch).warc), position)
            self._lent.free(row.domain)
            return None
        if row.not_before > clocks.steady():
            return Refuse(ask.ask, Reason.BUSY)
        if self._lent.intake.secure([row]):
            return None  # the next look finds a redirect
        refusal = self._refusal(ask, url, embedded=bool(row.embedded))
        if refusal is Permission.ASK:
            return None
        if isinstance(refusal, Refuse):
            self._settle_refused(row, refusal.word)
            self._note_forbidden(ask, showing, refusal.word)
            return refusal
        self._frontier.join(row.id, showing.batch)
        self._lent.took(row.domain)
        self._rows[ask.ask] = row
        showing.posts += ask.method == "POST"
        return self._fetch(ask, showing, url, key)

    def _row_of(self, ask: Ask, showing: _Showing, key: str, note: str) -> FrontierUrl | None:
        """Return the row of what a page asks for; add it where there is none."""
        row = self._frontier.by_url(key)
        is_other_now = row is not None and row.state == UrlState.REFUSED and row.status in _BY_SCOPE and not row.tries
        if row is None or is_other_now:  # a link that the scope refused may be a resource
            return self._lent.intake.add_requisite(showing.row, key, note)
        if _is_cut_off(row, ask, showing.batch):
            self._frontier.again(row.id)
            return self._frontier.by_url(key)
        return row

    def _answer_of(self, ask: Ask, row: FrontierUrl, url: str) -> Message:
        """Return what the page gets of a URL that the crawl has asked for before."""
        if row.position:
            return Have(ask.ask, str(wget.BatchFiles(self._job.folder, row.batch).warc), row.position)
        if row.target:  # its host asked for https; the answer to a POST has a URL that no server knows
            return RedirectTo(ask.ask, row.target if ask.method == "GET" else f"https:{url.partition(':')[2]}")
        return Refuse(ask.ask, _first(row.note))

    def _refusal(  # noqa: PLR0911 # each reason is a line
        self, ask: Ask, url: str, *, embedded: bool
    ) -> Refuse | Permission | None:
        """Return why a URL may not be asked for now; Permission.ASK if that is not known yet; None if it may be."""
        domain, now = scope.domain_in(url), clocks.steady()
        may_ask = self._lent.may_ask(domain)
        if may_ask is None:
            return Permission.ASK
        if not may_ask:
            return Refuse(ask.ask, Reason.PRIVATE_ADDRESS)
        if self._lent.is_full(domain):
            return Refuse(ask.ask, Reason.HOST_FULL)
        if self._lent.intake.room == 0:
            return Refuse(ask.ask, Reason.OVER_SIZE)
        if self._settings.robots and not (embedded and self._settings.robots_for == RobotsFor.PAGES):
            permission = self._lent.robots.say(url, now)
            if permission is Permission.ASK:
                self._without_robots.add(domain)
                return permission
            if permission is Permission.NO:
                return Refuse(ask.ask, Reason.ROBOTS)
            if permission is Permission.UNAVAILABLE:
                return Refuse(ask.ask, Reason.ROBOTS_UNAVAILABLE)
        return None

    def _settle_refused(self, row: FrontierUrl, word: str) -> None:
        """Settle a URL that may not be asked for, as the loop does for those of wget."""
        outcomes: dict[str, tuple[UrlState, Status]] = {
            Reason.ROBOTS: (UrlState.REFUSED, Status.ROBOTS),
            Reason.ROBOTS_UNAVAILABLE: (UrlState.FAILED, Status.ROBOTS_UNREACHABLE),
            Reason.PRIVATE_ADDRESS: (UrlState.FAILED, Status.OUT_OF_SCOPE),
        }
        settled = outcomes.get(word)
        if settled is not None:
            state, status = settled
            self._lent.intake.fail(UrlOutcome(id=row.id, state=state, status=status, tried=0, note=word), row)

    def _note_forbidden(self, ask: Ask, showing: _Showing, note: str) -> None:
        if ask.kind in _WORKING and Reason.ROBOTS in note.split(","):
            self._frontier.annotate(showing.row.id, Reason.SCRIPTS_FORBIDDEN)

    def _fetch(self, ask: Ask, showing: _Showing, url: str, key: str) -> Fetch:
        domain = scope.domain_in(url)
        showing.hosts.add(domain)
        self._lent.free(domain)
        shown = self._lent.secrets.for_url(url)
        fields = list(shown.fields) if shown is not None else []
        if shown is not None and (pairs := [f"{c.name}={c.value}" for c in shown.cookies if c.is_for(url)]):
            fields.append(("Cookie", "; ".join(pairs)))
        own = scope.server_of(self._job.publication.server, domain)
        settings = self._settings
        certificates = settings.certificates if own is None or own.certificates is None else own.certificates
        return Fetch(
            ask=ask.ask,
            key=key,
            lock=str(self._job.archive.server_lock(domain)),
            wait=self._lent.wait(domain, url),
            public=self._lent.public(domain),
            checked=certificates == Certificates.CHECK or self._lent.secrets.knows(domain),
            speed=showing.speed,
            fields=tuple(fields),
        )


def _is_cut_off(row: FrontierUrl, ask: Ask, batch: int) -> bool:
    """Return whether a request lost its response in another batch, and only a page can make it again: it is no GET."""
    is_lost = row.state == UrlState.FAILED and row.status == Status.CONNECTION_LOST
    return ask.method != "GET" and is_lost and row.batch != batch


def _first(note: str) -> str:
    return note.partition(",")[0]


def _canonical(url: str) -> str:
    try:
        return canonical(url) if url else ""
    except UrlRefused:
        return ""
