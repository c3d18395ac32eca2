"""One run of wget over a batch of one server's URLs: its files, its command line, and its progress.

It only reads and writes files; wgetpool.py starts and ends the processes.

wget does not recurse, follow redirects or retry. `wget -r` with WARC output cannot resume, loses pages whose names
collide with folders, and takes more time.

wget's log has its progress, whether the server asked for a pause, and why an attempt at a URL failed. Only the log
records attempts without a response record (resets, broken chunking, 204, a failed look-up), and a response before its
record is written. wget runs with LC_ALL=C; each attempt begins with a line `--time--  URL`. While wget runs, its log is
read as Latin-1: one character per byte, so that positions in the text are positions in the file.

`answers` gives the results of a run: one outcome for each URL of its batch, from its WARC and its log.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from agent.crawl import politeness
from agent.crawl.frontier import FrontierUrl, UrlOutcome
from agent.crawl.hsts import may_have_policy
from agent.crawl.politeness import again, asks_for_pause, failed, in_a_row, passing, pause, paused
from agent.crawl.scope import PRIVATE_ADDRESS, is_private
from agent.crawl.sitemaps import MOST_LISTED, FeedReader, Listing, SitemapReader
from agent.crawl.vocabulary import (
    NOT_MODIFIED,
    PARTIAL_CONTENT,
    PASSING,
    WHOLE,
    Figure,
    LinkKind,
    Reason,
    Status,
    UrlState,
    is_error_page,
    redirect_of,
)
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model import url_lists
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, UrlRefused
from webarcfs.archive.model.metadata import format_time
from webarcfs.archive.model.urls import canonical
from webarcfs.content import mimetype, outlinks, text
from webarcfs.content.reference_table import LinkPurpose, NamedAs
from webarcfs.warc import http_response, job_warc
from webarcfs.warc.decoding import BadBody, BodyNotes, Bomb, TooBig, decoded, kept_codings

# == command ==========================================================================================================


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
    sent_cookies: Path | None = None,
    to_the_end: bool = False,
    conditions: Mapping[str, str] = MappingProxyType({}),
    referrer: str = "",
    speed: int = 0,
    checked: bool = True,
    config: Path | None = None,
) -> list[str]:
    """Return wget's arguments (wget(1)); its working folder is the job's folder.

    wget only fetches and records; the frontier decides. It writes the cookies that it has at its end into `cookies`,
    and begins with those of `sent_cookies`. It takes any certificate if these are not `checked`. `config` has what
    nobody else may see. With `to_the_end`, a body ends where the server closes the connection, whatever Content-Length
    says. `conditions` are fields of the request, by name; with them wget closes the connection, as it would wait for a
    body after a 304. `referrer` is the field Referer of all requests. `setpriv` makes the kernel end wget when the
    agent dies, however it dies. Digests stay on: without them, wget 1.21 writes uninitialised memory in their place,
    line ends included, and the record is broken.
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
    if referrer:
        arguments.append(f"--referer={referrer}")
    if speed:
        arguments.append(f"--limit-rate={speed}")
    if wait:
        # Log the response heads: Retry-After must be known before the next request (`pause_requested`).
        arguments.append("--server-response")
    if to_the_end:
        arguments += ["--ignore-length", "--no-http-keep-alive"]
    if conditions:
        arguments += ["--no-http-keep-alive", *(f"--header={name}: {value}" for name, value in conditions.items())]
    if settings.bind:
        arguments.append(f"--bind-address={settings.bind}")
    if settings.ca:
        arguments.append(f"--ca-certificate={settings.ca}")
    if not checked:
        arguments.append("--no-check-certificate")
    if sent_cookies is not None:
        arguments.append(f"--load-cookies={sent_cookies}")
    # Last: wget does not name an unknown option that follows --no-config. With a file of ours it reads no other one.
    return [*arguments, *settings.wget_args, "--no-config" if config is None else f"--config={config}"]


def referrer_of(page: str, url: str) -> str:
    """Return the field Referer for a URL that a page names; empty without one.

    It is the page's host, as of a page with the policy `strict-origin` (W3C Referrer Policy): all that browsers send to
    other hosts by default. So the URLs of one server need few runs of wget, which has one such field for a run.
    """
    scheme, _, rest = page.partition("://")
    if not rest or (scheme == "https" and url.startswith("http:")):
        return ""
    return f"{scheme}://{rest.partition('/')[0]}/"


def environment(proxy: str = "", *, alone: bool = False) -> dict[str, str]:
    """Return wget's environment: messages in English, times of the log in the archive's time zone.

    `proxy` takes the place of the proxies of the environment; `no_proxy` stays, unless `proxy` is the only way. wget
    writes its arguments into the WARC, so it learns of no proxy there. TMPDIR is removed: wget would prefer it to the
    job's folder for the current document, and `bytes_so_far` would not find the file.
    """
    left_out = {"TMPDIR", "no_proxy"} if alone else {"TMPDIR"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    proxies = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
    return {**kept, **proxies, "LC_ALL": "C", "TZ": "UTC-1"}


def sends_proxy_password(proxy: str) -> bool:
    """Return whether wget's requests by http have the password of a proxy, and so its WARC."""
    return "@" in (proxy or os.environ.get("http_proxy", ""))


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

    Its log does not say: wget writes the end of a document together with the head of the next one.
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
    output = files.errors.read_text("utf-8", "replace") + read_log(files)
    lines = [line for line in output.splitlines() if line.strip()]
    named = (line for line in lines if line.startswith(("wget:", "setpriv:")))
    return next(named, lines[0] if lines else "it did not say why")


def write_list(files: BatchFiles, urls: Sequence[str]) -> None:
    """Write the batch's URLs into its list, which wget reads."""
    files.list.write_text("".join(f"{url}\n" for url in urls), "ascii")


# == log ==============================================================================================================


_BEGIN = re.compile(r"^--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  (\S.*)$", re.MULTILINE)
_STATUS = re.compile(r"awaiting response\.\.\. (?:\n  HTTP/\S+ )?(\d{3})\b")
# The response head, indented, that --server-response adds. It contains no messages of wget.
_FIELDS = re.compile(r"(?<=awaiting response\.\.\. \n)(?:  [^\n]*\n)+")
_RETRY_AFTER = re.compile(r"^  retry-after:[ \t]*(.*?)[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
# A response: its status and its fields.
_ANSWER = re.compile(r"awaiting response\.\.\. \n  HTTP/\S+ (\d{3})[^\n]*\n((?:  [^\n]*\n)*)")
_LENGTH = re.compile(r"^Length: [^\[\n]*\[([^\]\n;]+)", re.MULTILINE)
_MOST = 1 << 20
_TAIL = 1 << 16
#: wget's message → status and note; the first match counts.
_FAILURES = tuple(
    (re.compile(pattern, re.MULTILINE), status, note)
    for pattern, status, note in (
        (r"unable to resolve host address|Name or service not known|name resolution", Status.DNS, Reason.DNS),
        (r"failed: Connection refused", Status.CONNECT_FAILED, Reason.CONNECTION_REFUSED),
        (r"failed: Connection timed out", Status.CONNECT_FAILED, Reason.CONNECT_TIMEOUT),
        (r"failed: No route to host|failed: Network is unreachable", Status.CONNECT_FAILED, Reason.UNREACHABLE),
        (r"No supported application protocol", Status.CONNECT_FAILED, Reason.HTTP2_ONLY),
        (r"[Pp]roxy tunneling failed", Status.CONNECT_FAILED, Reason.CONNECT_FAILED),
        (r"Unable to establish SSL connection|SSL handshake|^GnuTLS: ", Status.CONNECT_FAILED, Reason.TLS_HANDSHAKE),
        (r"[Rr]ead error.*timed out|Connection timed out|timed out\.", Status.TIMEOUT, Reason.TIMEOUT),
        (r"Connection reset by peer", Status.CONNECTION_LOST, Reason.RESET),
        (
            r"Connection closed at byte|Read error at byte \d+.* \((?:Success|The TLS conn|Error decoding)",
            Status.CONNECTION_LOST,
            Reason.CLOSED,
        ),
        (r"No data received", Status.CONNECTION_LOST, Reason.NO_ANSWER),
        (r"failed: ", Status.CONNECT_FAILED, Reason.CONNECT_FAILED),
        (r"[Hh]eader|Malformed status line", Status.INVALID_RESPONSE, Reason.BAD_HEAD),
    )
)


#: wget's message on a certificate → word. Each is a line of its own; wget checks all of them.
_CERTIFICATE = re.compile(
    r"^(?:(?:ERROR|WARNING): )?(?:The certificate|cannot verify .* certificate|certificate common name)", re.MULTILINE
)
_CERTIFICATE_FAULTS = tuple(
    (re.compile(rf"^(?:(?:ERROR|WARNING): |  )?{pattern}", re.MULTILINE), word)
    for pattern, word in (
        (
            r"(?:The certificate .*(?:has expired|not yet activated|not yet been activated)|Issued certificate)",
            Reason.TLS_EXPIRED,
        ),
        (r"(?:The certificate's owner does not match|certificate common name)", Reason.TLS_HOST),
        (
            r"(?:The certificate .*(?:known issuer|trusted issuer)|Self-signed|Unable to locally verify)",
            Reason.TLS_ISSUER,
        ),
    )
)


def certificate_faults(log: str) -> tuple[Reason, ...]:
    """Return what wget says to be wrong with a server's certificate, whether or not it went on; empty for nothing."""
    if _CERTIFICATE.search(log) is None:
        return ()
    return tuple(word for pattern, word in _CERTIFICATE_FAULTS if pattern.search(log)) or (Reason.TLS,)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the URL as wget writes it, and the log text until the next attempt."""

    url: str
    text: str

    @property
    def http_status(self) -> int:
        """The HTTP status of the response; 0 without a response."""
        statuses = _STATUS.findall(self.text)
        return int(statuses[-1]) if statuses else 0

    @property
    def retry_after(self) -> str:
        """The field Retry-After of the response, if the log contains its head; else empty."""
        heads = _FIELDS.findall(self.text)
        return _retry_after(heads[-1]) if heads else ""

    def failure(self) -> tuple[int, str]:
        """Return why no whole response was recorded: Heritrix's code and a word for crawl.log."""
        log = _FIELDS.sub("", self.text)
        if not self.http_status and (faults := certificate_faults(log)):
            return int(Status.CONNECT_FAILED), ",".join(faults)
        for pattern, status, note in _FAILURES:
            if pattern.search(log):
                return int(status), note
        return int(Status.CONNECTION_LOST), Reason.LOST


def unchecked_certificates(log: str) -> dict[str, str]:
    """Return URL as wget writes it → what was wrong with the certificate of the server that sent it, in words.

    wget complains once for each connection, and may use one for many documents.
    """
    faults: dict[str, str] = {}
    if _CERTIFICATE.search(log) is None:
        return faults
    held = ""
    for attempt in read_attempts(log):
        if "\nReusing existing connection to " not in attempt.text:
            held = ",".join(certificate_faults(_FIELDS.sub("", attempt.text)))
        if held:
            faults[attempt.url] = held
    return faults


def read_attempts(log: str) -> list[Attempt]:
    """Return the attempts in the order in which they were made."""
    parts = _BEGIN.split(log)
    return [Attempt(url.strip(), log_part) for url, log_part in zip(parts[1::2], parts[2::2], strict=True)]


# -- while wget runs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The position up to which a log was judged, and its size then, both in bytes.

    Then the server's requests for a pause in a row, and the last pause in seconds: None if the last response asked for
    none.
    """

    position: int = 0
    size: int = 0
    in_a_row: int = 0
    seconds: float | None = None


def pause_requested(log: Path, seen: LogPosition, wait: float, now: float, *, ended: bool = False) -> LogPosition:
    """Judge the responses after `seen`; return the new position with the pause they ask for. `ended`: wget has ended.

    After an error response, wget buffers the last line until it logs more. So the last response counts once the log has
    not grown between two calls.
    """
    log_text = _read(log, seen.position, _MOST)
    if log_text is None:
        return seen
    position, count, seconds = seen.position, seen.in_a_row, seen.seconds
    size = position + len(log_text)
    responses = list(_ANSWER.finditer(log_text))
    for response in responses:
        if response is responses[-1] and size != seen.size and not ended:
            break  # it may be incomplete
        seconds, count = _judge(int(response[1]), response[2], count, wait, now)
        position = seen.position + response.end()
    return LogPosition(position, size, count, seconds)


def begun(log: Path) -> int:
    """Return the position in the log of the last document that wget has begun; 0 before the first."""
    try:
        start = max(0, log.stat().st_size - _TAIL)
    except FileNotFoundError:
        return 0
    lines = list(_BEGIN.finditer(_read(log, start) or ""))
    return start + lines[-1].start(1) if lines else 0


def declared_type(log: Path, start: int) -> str:
    """Return the MIME type that the server declares for the document that begins at `start`; empty if it is not known.

    wget shows it without its parameters.
    """
    match = _LENGTH.search((_read(log, start) or "") if start else "")
    return match[1].strip().lower() if match else ""


def count_begun(log: Path, since: int) -> tuple[int, int]:
    """Count the documents begun after the position `since`; return the count, and the end of the last whole line."""
    new = _read(log, since) or ""
    whole = new.rfind("\n") + 1
    return len(_BEGIN.findall(new[:whole])), since + whole


def _judge(status: int, head: str, before: int, wait: float, now: float) -> tuple[float | None, int]:
    value = _retry_after(head)
    asks = asks_for_pause(status, value, now)
    seconds = pause(value, before, wait, now) if asks else None
    return seconds, in_a_row(before, int(asks), failing=int(status >= 500 and not asks))


def _retry_after(head: str) -> str:
    """Return the field Retry-After of a head, or an empty text. The first of several counts, as in `http_response`."""
    match = _RETRY_AFTER.search(head)
    return match[1] if match else ""


def _read(log: Path, start: int, most: int = -1) -> str | None:
    """Return the text from a position on; None if the log does not exist yet."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read(most).decode("latin-1")
    except FileNotFoundError:
        return None


# == results ==========================================================================================================


#: Remarks in crawl.log: only some of a page's links were extracted; no links were, since parsing killed the reader.
LINKS_CUT = Reason.LINKS_CUT
LINKS_UNREAD = Reason.LINKS_UNREAD
_LINKING = ("text/", "application/", "image/svg")
#: Ending of the URLs of sitemaps that are packed, whatever their types.
_PACKED = ".xml.gz"
_NO_BODY = frozenset({204, 205, 304})
#: Bytes of a robots.txt that are kept (RFC 9309 section 2.5 requires at least 500 KiB).
_LARGEST_ROBOTS = politeness.LONGEST_ROBOTS + 1024


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of one URL: its outcome for the frontier, and the URLs found in it."""

    row: FrontierUrl
    settled: UrlOutcome
    target: str = ""  # of a redirect
    links: tuple[outlinks.Link, ...] = ()
    forward: str = ""  # where the page of a start URL goes on by itself
    robots: bytes = b""  # the body of a robots.txt
    hsts: str = ""  # the field Strict-Transport-Security, if it counts
    sets_cookie: bool = False  # a redirect that comes with a cookie
    lists: bool = False  # whether it is a sitemap or feed, whose links are what it lists


@dataclass(frozen=True, slots=True)
class Killed:
    """wget was killed because of one document: the outcome of its URL. Status 0: stopped early, no URL is at fault.

    `drained`: it could make no requests any more, so what it says of the rest is no outcome.
    """

    status: int
    note: str
    drained: bool = False


#: wget was stopped before finishing its batch; no URL is at fault.
ENDED_EARLY = Killed(0, "")
#: wget was kept from further requests, so all that it did not fetch is still to be fetched.
DRAINED = Killed(0, "", drained=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a response. With `public`, a response from a private address is dropped unread.

    With `conditional`, a 304 says that the archived page is unchanged. `proxied`: addresses are those of a proxy.
    `sitemap_urls` is how many URLs of a sitemap are taken; 0 is no limit. `opened` are hosts that may be at private
    addresses although others may not.
    """

    max_file_size: int
    keep_errors: bool
    public: bool = False
    conditional: bool = False
    proxied: bool = False
    sitemap_urls: int = 0
    opened: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A finished run of wget: the URLs of its batch, its WARC, its log, and whether it was killed.

    The links of responses at the positions `deadly` are not extracted. If wget requested a URL that is not in the
    batch, URLs without an outcome have failed; otherwise they would be tried for ever.
    """

    rows: list[FrontierUrl]
    warc_file: Path
    log: str
    killed: Killed | None
    deadly: frozenset[int] = frozenset()


def answers(
    batch: Batch, limits: Limits, now: float, begin: Callable[[http_response.Response], None] = lambda _: None
) -> Iterator[FetchResult]:
    """Yield a FetchResult for each URL, in the order of the WARC. Waits start at `now`, in seconds since 1970.

    `begin` is called with each response before it is read.
    """
    for answer in _answers(batch, limits, now, begin):
        settled = with_request(answer.settled, answer.row.note)
        yield answer if settled is answer.settled else replace(answer, settled=settled)


def with_request(settled: UrlOutcome, note: str) -> UrlOutcome:
    """Return an outcome that still says what its request was, by the note of its row.

    Only a page in a browser makes others than GET, and only once: what would wait for another try has failed.
    """
    words = [word for word in note.split(",") if word.startswith(Reason.BY_POST)]
    if not words:
        return settled
    if settled.state == UrlState.WAITING:
        why = settled.note or (Reason.LOST if settled.status <= 0 else "")
        status = settled.status or int(Status.CONNECTION_LOST)
        settled = replace(settled, state=UrlState.FAILED, status=status, note=why)
    return replace(settled, note=",".join(filter(None, (*words, settled.note))))


def _answers(
    batch: Batch, limits: Limits, now: float, begin: Callable[[http_response.Response], None]
) -> Iterator[FetchResult]:
    open_rows = {row.asked: row for row in batch.rows}
    unchecked = {_canonical(url): faults for url, faults in unchecked_certificates(batch.log).items()}
    for response in _responses(batch.warc_file):
        row = open_rows.pop(_canonical(response.url), None)
        if row is not None and (answer := _unread(row, response, limits, by_wget=bool(batch.log))) is not None:
            yield answer
        elif row is not None:
            begin(response)
            answer = _of_response(row, response, limits, now, response.offset in batch.deadly)
            if faults := unchecked.get(row.asked, ""):
                answer = _with_faults(answer, faults)
            elif hsts := _hsts(row, response, limits):
                answer = replace(answer, hsts=hsts)
            yield answer
    attempts = read_attempts(batch.log)
    urls = {row.asked for row in batch.rows}
    estranged = False
    for number, attempt in enumerate(attempts, 1):
        url = _canonical(attempt.url)
        row = open_rows.pop(url, None)
        if row is None:
            estranged = estranged or url not in urls
            continue
        is_last = number == len(attempts)
        is_whole = attempt.http_status in _NO_BODY  # it has no record
        if batch.killed is not None and (is_last or batch.killed.drained) and not is_whole:
            yield _of_killed(row, batch.killed if is_last else DRAINED, attempt, now)
        else:
            yield _of_log(row, attempt, limits, now)
    for row in open_rows.values():
        if estranged:
            yield FetchResult(row, failed(row, Status.RUNTIME, Reason.FETCHER, now))
        else:  # wget did not reach them
            yield FetchResult(row, again(row))


def _hsts(row: FrontierUrl, response: http_response.Response, limits: Limits) -> str:
    """Return the field by which a host asks for https, if it may do so."""
    field = response.head.get("strict-transport-security")
    is_near = response.address and not limits.proxied and is_private(response.address)
    return field if field and may_have_policy(row.url) and not is_near else ""


def _with_faults(answer: FetchResult, faults: str) -> FetchResult:
    """Return a result with what was wrong with the certificate, which the crawl does not check."""
    settled = answer.settled
    if settled.state != UrlState.DONE:
        return answer
    return replace(answer, settled=replace(settled, note=",".join(filter(None, (settled.note, faults)))))


def _unread(row: FrontierUrl, response: http_response.Response, limits: Limits, *, by_wget: bool) -> FetchResult | None:
    """Return the outcome of a response that is dropped unread; None if it is to be read.

    `by_wget`: wget received it, and what it makes of an odd length is not what browsers make of it. `HttpFetcher` reads
    such a response as they do.
    """
    is_kept_out = limits.public and row.domain not in limits.opened
    if is_kept_out and response.address and is_private(response.address):
        # The server's name resolved to another address here than in wget (loop.py).
        status, note = int(PRIVATE_ADDRESS.status), PRIVATE_ADDRESS.reason
        return FetchResult(row, UrlOutcome(id=row.id, state=UrlState.FAILED, status=status, note=note))
    head = response.head
    is_odd = head.has_bad_length or head.has_needless_length
    if by_wget and is_odd and row.note != Reason.BAD_LENGTH and _is_wanted(row, head, limits):
        # wget took the leading digits as the length, or 0; or it left chunks behind that come after Content-Length, the
        # last one at least. The next try reads until the last chunk, or until the connection closes.
        return FetchResult(
            row, UrlOutcome(id=row.id, state=UrlState.WAITING, status=head.status, note=Reason.BAD_LENGTH)
        )
    return None


def page_links(body: bytes, url: str, head: http_response.Head, named: str = "") -> outlinks.PageLinks:
    """Return the links of a decoded body, extracted according to its type, and to what a page named it."""
    mime_type = _read_as(body, head, named)
    refresh = outlinks.field_link(url, head.get("refresh"))
    if not mime_type.startswith(_LINKING):
        return outlinks.PageLinks(refresh)
    charset = text.decode_charset(body[: mimetype.SAMPLE], head.content_type)
    found = outlinks.find(body, url, mime_type, charset)
    new = [link for link in refresh if link not in found.links]
    return found._replace(links=(*found.links, *new)) if new else found


def _forward(row: FrontierUrl, head: http_response.Head, body: bytes) -> str:
    """Return where a page goes on by itself at once, if that is a redirect: the page is a start URL's, or its end."""
    if not row.is_start:
        return ""
    charset = text.decode_charset(body[: mimetype.SAMPLE], head.content_type)
    return outlinks.forward_of(row.url, head.get("refresh"), body, _read_as(body, head, row.named), charset)


def links_at(warc_file: Path, position: int, row: FrontierUrl) -> tuple[outlinks.Link, ...]:
    """Return the links of a fetched page, read again from its WARC; none if reading them killed the reader."""
    if LINKS_UNREAD in row.note.split(","):
        return ()
    with warc_file.open("rb") as file:
        response = job_warc.response_at(file, position)
        stream = http_response.Hashed(response.stream)
        body = _read_body(stream, response, _wanted(row, response.head), 0, named=row.named, forgiven=BodyNotes())
    return page_links(body, row.url, response.head, row.named).links


def _of_response(
    row: FrontierUrl, response: http_response.Response, limits: Limits, now: float, deadly: bool
) -> FetchResult:
    head = response.head
    stream = http_response.Hashed(response.stream)
    forgiven = BodyNotes()
    try:
        wanted, reader = (0, None) if deadly else (_wanted(row, head), _sitemap_reader(row, head, limits))
        body = _read_body(
            stream, response, wanted, limits.max_file_size, named=row.named, forgiven=forgiven, reader=reader
        )
    except BadBody as error:
        if head.status not in url_lists.STATUSES:  # the body of a redirect is not used
            return FetchResult(row, _of_bad_body(row, error, now))
        body, reader = b"", None
    settled = UrlOutcome(
        id=row.id,
        state=UrlState.DONE,
        status=head.status,
        position=response.offset,
        size=response.size,
        mime=mimetype.declared_type(head.content_type),
        captured=format_time(response.date),
        digest=stream.digest(),
    )
    if limits.max_file_size and response.size > limits.max_file_size:
        return FetchResult(row, replace(settled, state=UrlState.REFUSED, status=int(Status.QUOTA), note=Reason.TOO_BIG))
    if head.status in PASSING:
        settled = passing(row, settled, head.get("retry-after"), now)
    if settled.state == UrlState.WAITING:
        return FetchResult(row, settled)
    if head.status in url_lists.STATUSES:
        return _of_redirect(row, settled, head)
    whole = None if deadly else body
    return _of_whole(row, settled, head, whole, limits, reader=reader, notes=_notes(row, head, forgiven))


def _of_whole(
    row: FrontierUrl,
    settled: UrlOutcome,
    head: http_response.Head,
    body: bytes | None,
    limits: Limits,
    *,
    reader: SitemapReader | None,
    notes: str,
) -> FetchResult:
    """Return the result of a whole response that is no redirect. No `body`, no links."""
    if row.kind == LinkKind.ROBOTS:
        return FetchResult(row, settled, robots=body or b"")
    if isinstance(reader, FeedReader):
        return _of_feed(row, settled, reader, notes)
    if reader is not None:
        result = _of_sitemap(row, settled, reader.close(), notes)
        if result is not None:
            return result
    return _of_document(row, settled, head, body, limits, notes=notes)


def _sitemap_reader(row: FrontierUrl, head: http_response.Head, limits: Limits) -> SitemapReader | None:
    """Return a reader for what may list pages: a sitemap, a feed that a page names, any packed XML."""
    if row.kind == LinkKind.FEED and head.status in WHOLE:
        return FeedReader(row.url, head.content_type, limits.sitemap_urls or MOST_LISTED)
    if head.status not in WHOLE or (row.kind != LinkKind.SITEMAP and not row.url.endswith(_PACKED)):
        return None
    return SitemapReader(row.url, head.content_type, limits.sitemap_urls or MOST_LISTED)


def _of_sitemap(row: FrontierUrl, settled: UrlOutcome, listing: Listing, notes: str) -> FetchResult | None:
    """Return the result of what was read as a sitemap; None if it is none, and a document like others."""
    if not listing.is_sitemap:
        is_guess = row.kind == LinkKind.SITEMAP and row.hops == "M"
        return FetchResult(row, replace(settled, note=Reason.NO_SITEMAP)) if is_guess else None
    archived = _archived(row, settled)
    note = ",".join(filter(None, (notes, Reason.SITEMAP_CUT if listing.is_cut else "")))
    links = [outlinks.Link(url, LinkPurpose.SITEMAP) for url in listing.maps]
    links += [outlinks.Link(url, LinkPurpose.LINK) for url in listing.pages]
    return FetchResult(row, replace(archived, note=note, links=len(links)), links=tuple(links), lists=True)


def _of_feed(row: FrontierUrl, settled: UrlOutcome, reader: FeedReader, notes: str) -> FetchResult:
    """Return the result of the watched feed, or of what is there in its place: that leads nowhere."""
    listing = reader.close()
    words = feed_words(listing, reader.unlinked)
    archived = replace(_archived(row, settled), note=",".join(filter(None, (notes, *words))))
    if not listing.is_sitemap:
        return FetchResult(row, archived)
    links = tuple(outlinks.Link(url, LinkPurpose.LINK) for url in listing.pages)
    return FetchResult(row, replace(archived, links=len(links)), links=links, lists=True)


def feed_words(listing: Listing, unlinked: int) -> list[str]:
    """Return the annotations of what was read as a feed."""
    if not listing.is_sitemap:
        return [Reason.NO_FEED]
    cut = [Reason.SITEMAP_CUT] if listing.is_cut else []
    return [*cut, *([f"{Figure.UNLINKED}{unlinked}"] if unlinked else [])]


def feed_at(warc_file: Path, position: int, row: FrontierUrl, most: int) -> tuple[Listing, int]:
    """Return what a fetched feed lists, read from its WARC, and how many of its items have no page."""
    with warc_file.open("rb") as file:
        response = job_warc.response_at(file, position)
        stream = http_response.Hashed(response.stream)
        reader = FeedReader(row.url, response.head.content_type, most or MOST_LISTED)
        with contextlib.suppress(BadBody):
            _read_body(stream, response, 0, 0, named="", forgiven=BodyNotes(), reader=reader)
        return reader.close(), reader.unlinked


def _of_bad_body(row: FrontierUrl, error: BadBody, now: float) -> UrlOutcome:
    if isinstance(error, TooBig):
        return UrlOutcome(id=row.id, state=UrlState.REFUSED, status=int(Status.QUOTA), note=Reason.TOO_BIG)
    return failed(row, Status.QUOTA if isinstance(error, Bomb) else Status.CONNECTION_LOST, str(error), now)


def _of_redirect(row: FrontierUrl, settled: UrlOutcome, head: http_response.Head) -> FetchResult:
    target, note = redirect_of(row.url, head.get("location"))
    target_url, sets_cookie = url_lists.without_fragment(target), bool(head.get("set-cookie"))
    return FetchResult(row, replace(settled, target=target, note=note), target_url, sets_cookie=sets_cookie)


def _of_document(
    row: FrontierUrl, settled: UrlOutcome, head: http_response.Head, body: bytes | None, limits: Limits, *, notes: str
) -> FetchResult:
    """Return the result of a whole response that is no redirect, archived with `notes` or only recorded.

    No `body`, no links.
    """
    if head.status in WHOLE:
        links = outlinks.PageLinks() if body is None else page_links(body, row.url, head, row.named)
        remark = LINKS_UNREAD if body is None else LINKS_CUT if links.is_cut else ""
        scripted = Reason.NEEDS_BROWSER if links.needs_browser and is_page(row) else ""
        archived = _archived(row, settled)
        note = ",".join(filter(None, (notes, remark, scripted)))
        count = -1 if body is None else len(links.links)
        forward = "" if body is None else _forward(row, head, body)
        return FetchResult(row, replace(archived, note=note, links=count), links=links.links, forward=forward)
    if _is_unmodified(row, head.status, limits):
        return FetchResult(row, _unmodified(row, settled))
    if limits.keep_errors and is_error_page(head.status):
        return FetchResult(row, _archived(row, replace(settled, state=UrlState.DONE, note=notes)))
    return FetchResult(row, replace(settled, note=settled.note or _remark_on(head.status, settled.size)))


def is_page(row: FrontierUrl) -> bool:
    """Return whether a URL is asked for as a page: no page embeds it, and it lists no pages."""
    return not row.embedded and row.kind not in (LinkKind.REQUISITE, LinkKind.ROBOTS, LinkKind.SITEMAP, LinkKind.FEED)


def _is_unmodified(row: FrontierUrl, status: int, limits: Limits) -> bool:
    is_conditional = limits.conditional or row.kind == LinkKind.FEED
    return is_conditional and status == NOT_MODIFIED and row.kind != LinkKind.ROBOTS


def _unmodified(row: FrontierUrl, settled: UrlOutcome) -> UrlOutcome:
    return replace(settled, note=Reason.NOT_MODIFIED, arc=split(arc_path(row.url))[1])


def _archived(row: FrontierUrl, settled: UrlOutcome) -> UrlOutcome:
    return replace(settled, arc=split(arc_path(row.url))[1])


def _notes(row: FrontierUrl, head: http_response.Head, forgiven: BodyNotes) -> str:
    """Return the annotations of a document that is archived although something about it is odd."""
    notes = [
        Reason.BAD_LENGTH * (head.has_bad_length or head.has_needless_length),
        *(f"{Reason.CODING}{coding}" for coding in kept_codings(head, row.url)),
        *(f"{Reason.NOT_CODED}{coding}" for coding in forgiven.uncoded),
        *forgiven.remarks,
    ]
    return ",".join(filter(None, notes))


def _remark_on(status: int, size: int) -> str:
    """Return why a document is not archived although its status is that of a success; empty for other statuses."""
    if not size or not 200 <= status < 300:
        return ""
    return Reason.PARTIAL if status == PARTIAL_CONTENT else Reason.OTHER_STATUS


def _of_log(row: FrontierUrl, attempt: Attempt, limits: Limits, now: float) -> FetchResult:
    status = attempt.http_status
    if status in _NO_BODY:
        settled = UrlOutcome(id=row.id, state=UrlState.DONE, status=status)
        return FetchResult(row, _unmodified(row, settled) if _is_unmodified(row, status, limits) else settled)
    # wget was stopped because of a requested pause before it wrote the response to its WARC.
    waiting = paused(row, status, attempt.retry_after, now)
    return FetchResult(row, waiting or failed(row, *attempt.failure(), now))


def _of_killed(row: FrontierUrl, killed: Killed, attempt: Attempt, now: float) -> FetchResult:
    """Return the result of the document that wget was fetching when it was killed."""
    if killed.status:
        return FetchResult(row, failed(row, killed.status, killed.note, now))
    return FetchResult(row, paused(row, attempt.http_status, attempt.retry_after, now) or again(row))


def _is_wanted(row: FrontierUrl, head: http_response.Head, limits: Limits) -> bool:
    """Return whether the body is needed: for the archive, or for robots.txt rules."""
    return head.status in WHOLE or row.kind == LinkKind.ROBOTS or (limits.keep_errors and is_error_page(head.status))


def _wanted(row: FrontierUrl, head: http_response.Head) -> int:
    """Return how many bytes of the body are parsed, for rules or links."""
    if row.kind == LinkKind.ROBOTS:
        return _LARGEST_ROBOTS
    return outlinks.LONGEST_BODY if head.status in WHOLE else 0


def _read_body(
    stream: http_response.Hashed,
    response: http_response.Response,
    wanted: int,
    most: int,
    *,
    named: str,
    forgiven: BodyNotes,
    reader: SitemapReader | None = None,
) -> bytes:
    """Read and decode a body to its end; return its first `wanted` bytes if they may contain links, else fewer.

    A `reader` gets all of it.
    """
    kept: list[bytes] = []
    size = 0
    for part in decoded(stream, response.head, response.size, url=response.url, notes=forgiven, most=most):
        if reader is not None:
            reader.feed(part)
        if size < wanted:
            kept.append(part[: wanted - size])
            size += len(part)
            if size >= mimetype.SAMPLE and len(kept) == 1 and not _may_link(kept[0], response.head, named):
                wanted = 0
    return b"".join(kept)


def _may_link(start: bytes, head: http_response.Head, named: str) -> bool:
    return _read_as(start, head, named).startswith(_LINKING)


def _read_as(body: bytes, head: http_response.Head, named: str) -> str:
    sent, nosniff = head.content_type, head.forbids_sniffing
    mime_type = mimetype.mime_type(body[: mimetype.SAMPLE], sent, nosniff=nosniff)
    return outlinks.read_as(mime_type, mimetype.declared_type(sent), NamedAs(named), nosniff=nosniff)


def _responses(path: Path) -> Iterator[http_response.Response]:
    """Yield the responses of a WARC, up to the first damage."""
    try:
        yield from job_warc.responses(path)
    except (Damaged, FileNotFoundError):
        return


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except UrlRefused:
        return url
