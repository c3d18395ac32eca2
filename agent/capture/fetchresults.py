"""The results of a run of wget: one outcome for each URL of its batch, from its WARC and its log. Fetches nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent.capture import wgetlog
from agent.frontier.retries import again, failed, passing, paused
from agent.frontier.rows import FrontierUrl, UrlOutcome
from agent.policy import robotstxt
from agent.policy.addresses import is_private
from agent.policy.fetchstatus import NOT_MODIFIED, PASSING, WHOLE, Status, is_error_page, redirect_of
from agent.policy.scope import PRIVATE_ADDRESS
from agent.policy.vocabulary import LinkKind, Reason, UrlState
from webarcfs.archive.model import redirects
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, UrlRefused
from webarcfs.archive.model.metadata import format_time
from webarcfs.archive.model.url import canonical
from webarcfs.content import mimetype, outlinks, text
from webarcfs.warc import http_response, jobwarc
from webarcfs.warc.decoding import BadBody, Bomb, TooBig, decoded, unknown_codings

#: Remarks in crawl.log: only some of a page's links were extracted; no links were, since parsing killed the reader.
LINKS_CUT = Reason.LINKS_CUT
LINKS_UNREAD = Reason.LINKS_UNREAD
_LINKING = ("text/", "application/", "image/svg")
_NO_BODY = frozenset({204, 205, 304})
#: Bytes of a robots.txt that are kept (RFC 9309 section 2.5 requires at least 500 KiB).
_LARGEST_ROBOTS = robotstxt.LONGEST_BODY + 1024


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of one URL: its outcome for the frontier, and the URLs found in it."""

    row: FrontierUrl
    settled: UrlOutcome
    target: str = ""  # of a redirect
    links: tuple[outlinks.Link, ...] = ()
    robots: bytes = b""  # the body of a robots.txt


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

    With `conditional`, a 304 says that the archived page is unchanged.
    """

    max_file_size: int
    keep_errors: bool
    public: bool = False
    conditional: bool = False


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
    open_rows = {row.url: row for row in batch.rows}
    for response in _responses(batch.warc_file):
        row = open_rows.pop(_canonical(response.url), None)
        if row is not None and (answer := _unread(row, response, limits)) is not None:
            yield answer
        elif row is not None:
            begin(response)
            yield _of_response(row, response, limits, now, response.offset in batch.deadly)
    attempts = wgetlog.attempts(batch.log)
    known = {row.url for row in batch.rows}
    estranged = False
    for number, attempt in enumerate(attempts, 1):
        url = _canonical(attempt.url)
        row = open_rows.pop(url, None)
        if row is None:
            estranged = estranged or url not in known
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


def _unread(row: FrontierUrl, response: http_response.Response, limits: Limits) -> FetchResult | None:
    """Return the outcome of a response that is dropped unread; None if it is to be read."""
    if limits.public and response.address and is_private(response.address):
        # The server's name resolved to another address here than in wget (lookups.py).
        status, note = int(PRIVATE_ADDRESS.status), PRIVATE_ADDRESS.reason
        return FetchResult(row, UrlOutcome(id=row.id, state=UrlState.FAILED, status=status, note=note))
    head = response.head
    if head.has_bad_length and row.note != Reason.BAD_LENGTH and _is_wanted(row, head, limits):
        # wget took the leading digits as the length, or 0. The next try reads until the connection closes.
        return FetchResult(
            row, UrlOutcome(id=row.id, state=UrlState.WAITING, status=head.status, note=Reason.BAD_LENGTH)
        )
    return None


def page_links(body: bytes, url: str, head: http_response.Head) -> outlinks.PageLinks:
    """Return the links of a decoded body, extracted according to its type."""
    mime_type = _type_of(body, head)
    if not mime_type.startswith(_LINKING):
        return outlinks.PageLinks()
    charset = text.decode_charset(body[: mimetype.SAMPLE], head.content_type)
    return outlinks.find(body, url, mime_type, charset)


def links_at(warc_file: Path, position: int, row: FrontierUrl) -> tuple[outlinks.Link, ...]:
    """Return the links of a fetched page, read again from its WARC; none if reading them killed the reader."""
    if LINKS_UNREAD in row.note.split(","):
        return ()
    with warc_file.open("rb") as file:
        response = jobwarc.response_at(file, position)
        body = _read(http_response.Hashed(response.stream), response, _wanted(row, response.head), 0)
    return page_links(body, row.url, response.head).links


def _of_response(
    row: FrontierUrl, response: http_response.Response, limits: Limits, now: float, deadly: bool
) -> FetchResult:
    head = response.head
    stream = http_response.Hashed(response.stream)
    try:
        body = _read(stream, response, 0 if deadly else _wanted(row, head), limits.max_file_size)
    except BadBody as error:
        if head.status not in redirects.STATUSES:  # the body of a redirect is not used
            return FetchResult(row, _of_bad_body(row, error, now))
        body = b""
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
    if head.status in redirects.STATUSES:
        return _of_redirect(row, settled, head)
    if row.kind == LinkKind.ROBOTS:
        return FetchResult(row, settled, robots=body)
    return _of_document(row, settled, head, None if deadly else body, limits)


def _of_bad_body(row: FrontierUrl, error: BadBody, now: float) -> UrlOutcome:
    if isinstance(error, TooBig):
        return UrlOutcome(id=row.id, state=UrlState.REFUSED, status=int(Status.QUOTA), note=Reason.TOO_BIG)
    return failed(row, Status.QUOTA if isinstance(error, Bomb) else Status.CONNECTION_LOST, str(error), now)


def _of_redirect(row: FrontierUrl, settled: UrlOutcome, head: http_response.Head) -> FetchResult:
    target, note = redirect_of(row.url, head.get("location"))
    return FetchResult(row, replace(settled, target=target, note=note), redirects.without_fragment(target))


def _of_document(
    row: FrontierUrl, settled: UrlOutcome, head: http_response.Head, body: bytes | None, limits: Limits
) -> FetchResult:
    """Return the result of a whole response that is no redirect, archived or only recorded. No `body`, no links."""
    if head.status in WHOLE:
        found = outlinks.PageLinks() if body is None else page_links(body, row.url, head)
        remark = LINKS_UNREAD if body is None else LINKS_CUT if found.is_cut else ""
        archived = _archived(row, settled, head)
        note = ",".join(filter(None, (archived.note, remark)))
        count = -1 if body is None else len(found.links)
        return FetchResult(row, replace(archived, note=note, links=count), links=found.links)
    if _is_unmodified(row, head.status, limits):
        return FetchResult(row, _unmodified(row, settled))
    if limits.keep_errors and is_error_page(head.status):
        return FetchResult(row, _archived(row, replace(settled, state=UrlState.DONE), head))
    return FetchResult(row, settled)


def _is_unmodified(row: FrontierUrl, status: int, limits: Limits) -> bool:
    return limits.conditional and status == NOT_MODIFIED and row.kind != LinkKind.ROBOTS


def _unmodified(row: FrontierUrl, settled: UrlOutcome) -> UrlOutcome:
    return replace(settled, note=Reason.NOT_MODIFIED, arc=split(arc_path(row.url))[1])


def _archived(row: FrontierUrl, settled: UrlOutcome, head: http_response.Head) -> UrlOutcome:
    notes = [Reason.BAD_LENGTH * head.has_bad_length, *(f"{Reason.CODING}{each}" for each in unknown_codings(head))]
    return replace(settled, note=",".join(filter(None, notes)), arc=split(arc_path(row.url))[1])


def _of_log(row: FrontierUrl, attempt: wgetlog.Attempt, limits: Limits, now: float) -> FetchResult:
    status = attempt.http_status
    if status in _NO_BODY:
        settled = UrlOutcome(id=row.id, state=UrlState.DONE, status=status)
        return FetchResult(row, _unmodified(row, settled) if _is_unmodified(row, status, limits) else settled)
    # wget was stopped because of a requested pause before it wrote the response to its WARC.
    waiting = paused(row, status, attempt.retry_after, now)
    return FetchResult(row, waiting or failed(row, *attempt.failure(), now))


def _of_killed(row: FrontierUrl, killed: Killed, attempt: wgetlog.Attempt, now: float) -> FetchResult:
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


def _read(stream: http_response.Hashed, response: http_response.Response, wanted: int, most: int) -> bytes:
    """Read and decode a body to its end; return its first `wanted` bytes if they may contain links, else fewer."""
    kept: list[bytes] = []
    size = 0
    for part in decoded(stream, response.head, response.size, most=most):
        if size < wanted:
            kept.append(part[: wanted - size])
            size += len(part)
            if size >= mimetype.SAMPLE and len(kept) == 1 and not _may_link(kept[0], response.head):
                wanted = 0
    return b"".join(kept)


def _may_link(start: bytes, head: http_response.Head) -> bool:
    return _type_of(start, head).startswith(_LINKING)


def _type_of(body: bytes, head: http_response.Head) -> str:
    return mimetype.mime_type(body[: mimetype.SAMPLE], head.content_type, nosniff=head.forbids_sniffing)


def _responses(path: Path) -> Iterator[http_response.Response]:
    """Yield the responses of a WARC, up to the first damage."""
    try:
        yield from jobwarc.responses(path)
    except (Damaged, FileNotFoundError):
        return


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except UrlRefused:
        return url
