"""The words for what became of a URL: states, kinds, results, reasons, with a sentence each, and status codes. Pure.

The words are in frontier.db, crawl.log and summary.json as they are here, so a word never changes. README's table,
`webarc-agent report --words` and its man page are made from `IN_CRAWL_LOG`, all the words of crawl.log.

The second column of crawl.log has the outcome of a fetch as one number: the HTTP status above zero, Heritrix's fetch
status codes below. The codes of Tarântula (D. Gomes, 2001; figures 3.8 and 4.3 there) are in the annotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Self

from webarcfs.archive.model import url_lists
from webarcfs.archive.model.metadata import RESOURCE
from webarcfs.warc.decoding import BodyFault, BodyRemark

# == vocabulary, pure =================================================================================================


class _Word(StrEnum):
    """A word with its sentence."""

    sentence: str

    def __new__(cls, word: str, sentence: str) -> Self:
        """The instance for a word; `sentence` says what it means to people."""
        instance = str.__new__(cls, word)
        instance._value_ = str(word)
        instance.sentence = sentence
        return instance


class UrlState(_Word):
    """How far a URL of the frontier is (column `state` of frontier.db)."""

    WAITING = "waiting", "The URL is to be fetched, now or later."
    FETCHING = "fetching", "A batch with the URL is with wget."
    DONE = "done", "The server responded."
    FAILED = "failed", "There was no response that counts, and there will be no further try."
    REFUSED = "refused", "The URL was not fetched, or not kept, since a rule of the crawl forbids it."


class ViewState(_Word):
    """How far a page is that a browser shows (column `state` of the table `view` of frontier.db)."""

    WAITING = "waiting", "The page is to be shown."
    SHOWING = "showing", "The browser shows the page now."
    DONE = "done", "What the page showed is kept."
    FAILED = "failed", "The page could not be shown, and will not be tried again."


class LinkKind(_Word):
    """How a URL was found (column `kind` of frontier.db)."""

    SEED = "seed", "It is a start URL."
    LINK = "link", "A page links to it."
    REDIRECT = "redirect", "A redirect leads to it."
    REQUISITE = "requisite", "A page needs it to be shown: an image, a style sheet, a script."
    ROBOTS = "robots", "It is the robots.txt of a server."
    SITEMAP = "sitemap", "It is a sitemap, or a feed that a page names."
    LISTED = "listed", "A sitemap or a feed lists it."
    FEED = "feed", "It is the feed that the publication watches."


class Result(_Word):
    """What the archive made of a document (column `result` of frontier.db)."""

    ADDED = "added", "The document is new in the archive."
    CHANGED = "changed", "The document took the place of an older version."
    UNCHANGED = "unchanged", "The document is the same as the archived one."
    FILTERED = "filtered", "A filter rejected the document."
    DUPLICATE = "duplicate", "Another document of the crawl has the same place in the archive."
    UNDECODABLE = "undecodable", "The document's encoding could not be undone."


#: Results of a URL whose document is in the archive; with those that the archive has by another URL.
ARCHIVED = frozenset({Result.ADDED, Result.CHANGED, Result.UNCHANGED})
ARCHIVED_OR_DUPLICATE = ARCHIVED | {Result.DUPLICATE}


class Reason(_Word):
    """Why a URL was not fetched or not archived, or what to know of it: the annotations of crawl.log.

    One that ends with a colon is followed by the rest of the word.
    """

    FOREIGN_HOST = "host", "Its host is none of the crawl's; `hosts` accepts more."
    EXCLUDED = "excluded", "A `[[publication.exclude]]` leaves it out; the catalogue has the reason."
    EXCLUDED_HOST = "excluded-host", "The setting `exclude_hosts` names its host."
    PATHS = "paths", "It lies outside of the setting `paths`."
    EXTENSION = "extension", "The setting `exclude_extensions` names the extension of its file."
    TYPE = "type", "It is of a type that is not kept, as its URL or its server says."
    SERVER_DEPTH = "server-depth", "It is deeper in its server than a `[[publication.server]]` lets the crawl go."
    HOST_FULL = "max-documents", "Its host had as many documents as `max_host_documents` or a server's own bound."
    PRIVATE_ADDRESS = "private-address", "Its host is at an address of one's own machine or network."
    TOO_DEEP = "depth", "It is more links away from a start URL than `depth`."
    RESOURCE_DEPTH = (
        "resource-depth",
        "It is embedded in what is embedded, more than five times in a row: a frame in a frame.",
    )
    RESOURCE_HOSTS = "resource-hosts", "Pages need resources of more hosts than `max_resource_hosts`."
    RESOURCE_NUMBER = "resource-number", "Its page needs more resources than `max_page_resources`."
    ROBOTS = "robots", "The server's robots.txt forbids it."
    ROBOTS_UNAVAILABLE = "robots-unavailable", "The server's robots.txt could not be fetched, so nothing else may be."
    URL_LENGTH = "trap:url-length", "The URL is too long."
    PATH_DEPTH = "trap:path-depth", "Its path has more segments than `max_path_depth`."
    REPEATS = "trap:repeats", "A segment of its path comes more often than `max_repeats`."
    PARAMETERS = "trap:parameters", "Its query has more parameters than `max_parameters`."
    QUERIES = "trap:queries", "More URLs than `max_queries` differ in their query alone."
    CALENDAR = (
        "trap:calendar",
        "It names a year further ahead than `max_years_ahead`, or further back than `max_years_back`.",
    )
    PATTERN = "trap:pattern", "As many pages of its pattern as `max_pattern` led to nothing new but each other."
    HOSTS = "trap:hosts", "Links led to more hosts than `max_hosts`."
    REDIRECTS = "trap:redirects", "It is one of too many redirects in a row."
    LISTED_ALONE = "listed-alone", "A sitemap or feed lists it, and no page links to it; leaving that removes nothing."
    NO_SITEMAP = "no-sitemap", "It was asked for as a sitemap, and is none; it is not archived."
    SITEMAP_CUT = (
        "sitemap-cut",
        "The sitemap or feed lists more pages than were taken (`max_sitemap_urls`, 64 MiB unpacked), or is broken.",
    )
    NO_FEED = "no-feed", "It is what `watch` names, and is no feed, or none that can be read; it is archived as it is."
    SITEMAP_FULL = "sitemap-full", "The sitemaps of its host had listed as many pages as `max_sitemap_urls` before it."
    SITEMAP_NUMBER = "sitemap-number", "Its host has more sitemaps than 1,000, or more than five led to it."
    REDIRECT_LOOP = "redirect-loop", "Its redirects lead back to it."
    HSTS = "hsts", "Its host had asked for https, so the crawl redirected the request there itself (status 307)."
    BAD_LOCATION = "bad-location", "It redirects to nothing that is a URL."
    REDIRECT_TOO_LONG = "redirect-too-long", "It redirects, and its URL or the target is too long to be kept."
    REDIRECT_HELD = "redirect-held", "The archived page stays, and the redirect in its place is not kept yet."
    NOT_MODIFIED = "not-modified", "The server said that it did not change; the archived page stays."
    ASKED_AGAIN = "asked-again", "The server said that it did not change, and the archive does not have it."
    TOO_BIG = BodyFault.TOO_BIG, "It is larger than `max_file_size`, as it is sent or decoded."
    OVER_SIZE = "max-total-size", "The crawl had as many bytes as `max_total_size` before it."
    OVER_TIME = "max-duration", "The crawl took as long as `max_duration` before it."
    STOPPED = "stopped", "A person had ended the crawl before it."
    DISCARDED = "discarded", "A person had ended the crawl before it, and nothing more of it was archived."
    LEFT_OUT = "left-out", "A person had its host left out while the crawl ran."
    TIME_LIMIT = "time-limit", "It came no further for `timeout`, or took longer than `max_document_time`."
    BUSY = "busy", "Its server asked for a pause, until the tries were used up."
    SERVER_BUSY = "server-busy", "Its server did nothing but ask for pauses, and was given up."
    SERVER_DOWN = "server-down", "Its server was not reached several times in a row, and was given up."
    DNS = "dns", "The name of its host could not be looked up."
    CONNECTION_REFUSED = "connection-refused", "Its server refused the connection."
    CONNECT_TIMEOUT = "connect-timeout", "Its server did not answer the call for a connection."
    UNREACHABLE = "unreachable", "There is no way to its server."
    TLS = "tls", "The certificate of its server is not valid, for a reason that has no word of its own."
    TLS_EXPIRED = "tls:expired", "The certificate of its server has run out, or is not valid yet."
    TLS_HOST = "tls:host", "The certificate of its server is for other hosts."
    TLS_ISSUER = (
        "tls:issuer",
        "Nobody who is trusted issued the certificate of its server, or a part of its chain is missing.",
    )
    TLS_HANDSHAKE = "tls:handshake", "Its server and the crawler could not agree on how to encrypt."
    HTTP2_ONLY = "http2-only", "Its server takes HTTP/2 alone, and crawls use HTTP/1.1."
    CONNECT_FAILED = "connect-failed", "The connection could not be made."
    TIMEOUT = "timeout", "The server stopped sending."
    RESET = "reset", "The connection was reset."
    CLOSED = "closed", "The connection ended before the document did."
    NO_ANSWER = "no-answer", "The connection ended without a response."
    BAD_HEAD = "bad-head", "The headers of the response could not be understood."
    LOST = "lost", "The connection failed in a way that has no word of its own."
    BAD_REQUEST = "bad-request", "The request for it is none that HTTP allows, and was not sent."
    FETCHER = "wget", "The fetcher requested other URLs than it was given."
    BAD_LENGTH = (
        BodyFault.BAD_LENGTH,
        "Its Content-Length is no length, stands beside chunks (a crawl then reads to the end), or is not that of an "
        "imported body.",
    )
    TRUNCATED = (
        BodyFault.TRUNCATED,
        "It is cut off: less came than its headers say, or an imported WARC record says so.",
    )
    BROKEN_CHUNKING = BodyFault.BROKEN_CHUNKING, "It came in chunks, and these break HTTP's rules or end early."
    BOMB = BodyFault.BOMB, "It is compressed, and more than 64 MiB and 200 times as large without that."
    BAD_GZIP = BodyFault.BAD_GZIP, "Its Content-Encoding says gzip, and its bytes are not gzip."
    BAD_DEFLATE = BodyFault.BAD_DEFLATE, "Its Content-Encoding says deflate, and its bytes are not deflate."
    BAD_BR = BodyFault.BAD_BR, "Its Content-Encoding says br, and its bytes are not Brotli."
    BAD_ZSTD = BodyFault.BAD_ZSTD, "Its Content-Encoding says zstd, and its bytes are not Zstandard."
    TRUNCATED_GZIP = BodyFault.TRUNCATED_GZIP, "It is compressed by gzip, and cut off."
    TRUNCATED_DEFLATE = BodyFault.TRUNCATED_DEFLATE, "It is compressed by deflate, and cut off."
    TRUNCATED_BR = BodyFault.TRUNCATED_BR, "It is compressed by Brotli, and cut off."
    TRUNCATED_ZSTD = BodyFault.TRUNCATED_ZSTD, "It is compressed by Zstandard, and cut off."
    NOT_CODED = (
        "not-coded:",
        "The body is not in that encoding, which its head names; it is archived as it was.",
    )
    CODING = (
        "coding:",
        "It has a Content-Encoding that is not known, or that is its file's own (`.tar.gz`); archived as it was sent.",
    )
    TRAILING_BYTES = (
        BodyRemark.TRAILING_BYTES,
        "Bytes follow the end of its compressed body; it is archived without them, as browsers show it.",
    )
    BAD_CHECKSUM = (
        BodyRemark.BAD_CHECKSUM,
        "The checksum at the end of its compressed body is wrong or missing; all of the body came, and is archived.",
    )
    LINKS_CUT = "links-cut", "The page has more links than were taken; it is archived as it is."
    LINKS_UNREAD = "links-unread", "The page could not be read for links; it is archived as it is."
    NEEDS_BROWSER = (
        "needs-browser",
        "The page shows little until its scripts run; it is archived as it is, and a browser could show more of it.",
    )
    FILTER = "filter:", "The filter of that name rejected it."
    REVISIT = "revisit", "An imported WARC record says that it is the same as an earlier one."
    REVISIT_UNRESOLVED = (
        "revisit-unresolved",
        "An imported WARC record refers to one that is not there; it waits for that.",
    )
    RESOURCE = "resource", "It was imported from a WARC record without the headers of a response."
    SOURCE = (
        "source:",
        "It was imported from that (mirror, SingleFile, HAR, MHTML), and no server sent it to a crawler.",
    )
    RENDERED = (
        "rendered",
        "What a browser showed of it (text, picture, title, DOM) is there; what is new of that is kept beside it.",
    )
    SECRETS = (
        "secrets",
        "The crawl that it was exported from showed secrets to servers: readers get its headers blanked.",
    )
    RESPONSE_HELD = (
        "response-held",
        "What a server sent to a crawler stays: an imported copy takes no response's place.",
    )
    NO_BODY = "no-body", "An imported HAR has no body of this response, or a part of it."
    NO_HEAD = "no-head", "An imported WARC record has no headers of a response."
    BAD_DIGEST = "bad-digest", "The bytes of an imported WARC record do not agree with its digest."
    BAD_URL = "bad-url", "An imported WARC record has a URL that cannot be archived."
    BAD_DATE = "bad-date", "An imported WARC record has no date, or one that cannot be."
    METHOD = (
        "method",
        "An imported record answers a request of a method such as HEAD, whose answer is no document; or the page's "
        "scripts wanted to send one that a crawl does not send (PUT, a mutation, a POST to another host).",
    )
    BY_POST = (
        "by-post:",
        "It answers a request of that method and type, and has a URL that is made of both and the request's body.",
    )
    NO_KEY = (
        "no-key:",
        "It answers a POST, PUT, PATCH or DELETE with a `long`, `multipart` or `binary` body, or with a bad `url`; or "
        "scripts of a page wanted to send such a POST, which was not sent.",
    )
    PARTIAL = "partial", "It is a part of a document: a response to a range request (206), which a crawl does not make."
    SEGMENT = "segment", "An imported WARC record is one of several segments, which are not joined."
    MOST_CUTS = "max-cuts", "Its URL had more versions in one crawl of an import than `--max-cuts` lets be kept."
    SAME_AS = "same-as:", "Another URL has its place in the archive, with the same bytes."
    DIFFERS_FROM = "differs-from:", "Another URL has the first name there, with other bytes; this one has a second."
    ERROR_HELD = (
        "error-held",
        "The archived page stays: an incomplete crawl does not replace it by an error page.",
    )
    OTHER_STATUS = "other-status", "Its server sent a document with a status other than 200, such as 201 or 202."
    BECAME_PAGE = (
        "became-page",
        "Its bytes did not change. Until now only pages of other hosts needed it, and now it is a page.",
    )
    BROWSER_LOAD = "browser-load", "The page was shown by a browser, and had not loaded when its time was over."
    BROWSER_TIME = (
        "browser-time",
        "The page was shown by a browser, and its scripts had not come to their end when its time was over.",
    )
    BROWSER_MEMORY = "browser-memory", "The page took more of the browser's memory than it may; it is not shown."
    BROWSER_CRASH = (
        "browser-crash",
        "The browser ended while it showed the page, twice, or ended whenever it was started; the page is not shown.",
    )
    BROWSER_BUSY = (
        "browser-busy",
        "The page's scripts never gave way, or opened dialogs without end, so nothing of it could be read; it is not "
        "shown.",
    )
    BROWSER_NO_PAGE = "browser-no-page", "The browser showed no page of the web there; it is not shown."
    BROWSER_CUT = "browser-cut", "The crawl was ended or cut short before a browser could show the page."
    BROWSER_BEFORE = (
        "browser-before",
        "The page did not come. A browser showed it at an earlier crawl, and what its scripts asked for then stays.",
    )
    BROWSER_MISSING = (
        "browser-missing",
        "No browser could show it: none is installed (`apt-get install chromium`), or `[browser] program` or `user` "
        "names none.",
    )
    BROWSER_NO_NAMESPACE = (
        "browser-no-namespace",
        "No browser was started, since the system lets nobody isolate it; `status` says how to allow that.",
    )
    BROWSER_REQUESTS = (
        "browser-requests",
        "The page's scripts asked for more than `browser_requests`, or for more than 50 POSTs; the rest was refused.",
    )
    BROWSER_BYTES = (
        "browser-bytes",
        "The page's scripts asked for more bytes than `browser_bytes`; the rest was refused.",
    )
    BROWSER_SCROLL = "browser-scroll", "Scrolling had not come to the page's end after `browser_scroll` steps."
    BROWSER_ROUTES = "browser-routes", "The page has more links by `#/` and `#!` than a browser shows (100)."
    BROWSER_DOM = "browser-dom", "What its scripts made of the page is too large to be kept; its text is kept."
    BROWSER_POPUP = "popup", "The page opened a window, which is not shown."
    BROWSER_STREAM = "stream", "A stream of events without an end was cut, and is not kept."
    BROWSER_WEBSOCKET = "websocket", "The page opened a WebSocket, which a capture cannot have."
    BROWSER_DOWNLOAD = "download", "The page began a download, which is not followed."
    BROWSER_SCHEME = "scheme", "The page asked for something by another scheme than http and https."
    SCRIPTS_FORBIDDEN = "scripts-forbidden", "The server's robots.txt forbids scripts or data that the page asked for."
    OLDER = "older", "The archive has a newer capture of it."


#: The reasons that are decisions: settings, people and robots.txt, not the network.
DECISIONS = frozenset(
    {
        Reason.EXCLUDED, Reason.EXCLUDED_HOST, Reason.PATHS, Reason.EXTENSION, Reason.TYPE, Reason.SERVER_DEPTH,
        Reason.HOST_FULL, Reason.PRIVATE_ADDRESS, Reason.TOO_DEEP, Reason.RESOURCE_DEPTH, Reason.RESOURCE_HOSTS,
        Reason.RESOURCE_NUMBER, Reason.ROBOTS, Reason.URL_LENGTH, Reason.PATH_DEPTH, Reason.REPEATS, Reason.PARAMETERS,
        Reason.QUERIES, Reason.CALENDAR, Reason.PATTERN, Reason.HOSTS, Reason.TOO_BIG, Reason.OVER_SIZE,
        Reason.OVER_TIME, Reason.STOPPED, Reason.DISCARDED, Reason.LEFT_OUT, Reason.SITEMAP_FULL, Reason.SITEMAP_NUMBER,
    }
)  # fmt: skip


#: The reasons for which a browser did not show a page to its end: what it would have led to is not known.
NOT_SHOWN = (
    Reason.BROWSER_LOAD, Reason.BROWSER_TIME, Reason.BROWSER_MEMORY, Reason.BROWSER_CRASH, Reason.BROWSER_BUSY,
    Reason.BROWSER_NO_PAGE, Reason.BROWSER_CUT, Reason.BROWSER_BEFORE, Reason.BROWSER_MISSING,
    Reason.BROWSER_NO_NAMESPACE,
)  # fmt: skip
#: What is remarked of a page for which a browser is used. A page is not archived for another reason, if there is one.
REMARKS_ON_SHOWN = (
    Reason.RENDERED, Reason.NEEDS_BROWSER, Reason.BROWSER_REQUESTS, Reason.BROWSER_BYTES, Reason.BROWSER_SCROLL,
    Reason.BROWSER_ROUTES, Reason.BROWSER_DOM, Reason.BROWSER_POPUP, Reason.BROWSER_STREAM, Reason.BROWSER_WEBSOCKET,
    Reason.BROWSER_DOWNLOAD, Reason.BROWSER_SCHEME, Reason.SCRIPTS_FORBIDDEN, *NOT_SHOWN,
)  # fmt: skip


#: The reasons for which a page was not wanted: a crawl does not say that it is missing. What is too big was asked for.
UNWANTED = (DECISIONS | {Reason.FOREIGN_HOST}) - {Reason.TOO_BIG}
#: The reasons for which a crawl ended before its end. What it had not asked for then, it would have asked for.
CUT = (Reason.OVER_SIZE, Reason.OVER_TIME, Reason.STOPPED)
#: The reasons for which a server's certificate is rejected, and that `certificates = "any"` takes all the same.
CERTIFICATE_FAULTS = (Reason.TLS, Reason.TLS_EXPIRED, Reason.TLS_HOST, Reason.TLS_ISSUER)
#: How the reason of a host in summary.json begins where a crawl found too little of it to be believed.
TOO_FEW = "found"


def cause_among(words: Sequence[str]) -> str:
    """Return the word for why a URL did not come, of its words in order; empty without any.

    That its server was given up is a consequence: where the word for why stands beside it, that is the cause.
    """
    return next((word for word in words if word != Reason.SERVER_DOWN), next(iter(words), ""))


class Figure(_Word):
    """What is before a figure in crawl.log."""

    SEED3 = "seed3:", "The state that the archive of the Portuguese web gives such a document."
    DEPTH = "depth:", "So many links lie between a start URL and it."
    LINKS = "links:", "So many links were found in it."
    TRIES = "tries:", "Its server was asked for it so often, since it failed or was busy before."
    HASH_ROUTES = (
        "hash-routes:",
        "So many links lead from the page to itself by `#/` or `#!` alone; with `hash_routes`, the browser shows them.",
    )
    UNLINKED = "unlinked:", "So many items of the watched feed have no page."
    PATTERN = "pattern:", "The pattern of a trap's URLs: `#` stands for digits, `*` for a long value."


#: All words of the annotations of crawl.log.
IN_CRAWL_LOG: tuple[Reason | Result | Figure, ...] = (*Reason, *Result, *Figure)


# == fetch status, pure ===============================================================================================


#: HTTP statuses whose body is a document.
WHOLE = frozenset({200, 203})
#: HTTP status of an answer to a request for a range, which may be that of the whole.
PARTIAL_CONTENT = 206
#: HTTP status of a conditional request whose document did not change (RFC 9110 section 15.4.5).
NOT_MODIFIED = 304
#: HTTP status of the redirects that a crawl makes itself, as browsers show theirs.
TEMPORARY_REDIRECT = 307
#: HTTP statuses of redirects that keep the method of a request (RFC 9110 section 15.4).
SAME_METHOD = frozenset({307, 308})
#: HTTP statuses by which a server says that a document is gone.
GONE = frozenset({404, 410})
#: HTTP statuses of temporary errors.
#: Those from 520 to 530 are of the networks before a server (Cloudflare): it was not reached, or sent nothing.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, *range(520, 531)})


def may_pass(status: int) -> bool:
    """Whether an answer may be another one next time: those of PASSING, and all errors of a server's own."""
    return status >= 500 or status in PASSING


def is_error_page(status: int) -> bool:
    """Whether an answer says for good that there is no such page (`keep_errors` archives its body).

    What may pass never replaces a page.
    """
    return status >= 400 and not may_pass(status)


def certificate_of(note: str) -> str:
    """Return what was wrong with a server's certificate, as data.xml says it, from the annotations of a document."""
    words = [word for word in note.split(",") if word.partition(":")[0] == Reason.TLS]
    return " ".join(word.partition(":")[2] or "invalid" for word in words)


def words_of_certificate(faults: str) -> tuple[Reason, ...]:
    """Return the inverse of `certificate_of`: the annotations; none for what data.xml does not say."""
    known = {certificate_of(word): word for word in CERTIFICATE_FAULTS}
    return tuple(known[fault] for fault in faults.split() if fault in known)


def has_secrets(note: str) -> bool:
    """Return whether a document's headers may have secrets, by its annotations."""
    return Reason.SECRETS in note.split(",")


def source_in(note: str) -> str:
    """Return what a document was taken from, by the words of its note; empty for the response of a server."""
    words = note.split(",")
    named = next((word.removeprefix(Reason.SOURCE) for word in words if word.startswith(Reason.SOURCE)), "")
    return named or (RESOURCE if Reason.RESOURCE in words else "")


def word_of_request(method: str, mime: str) -> str:
    """Return the annotation of an answer to a request of another method than GET; `mime` may be empty."""
    return f"{Reason.BY_POST}{method}:{mime}"


def request_in(note: str) -> tuple[str, str]:
    """Return the method and the type of the request that a document answers; both empty for GET."""
    words = (word.removeprefix(Reason.BY_POST) for word in note.split(",") if word.startswith(Reason.BY_POST))
    method, _, mime = next(words, "").partition(":")
    return method, mime


def redirect_of(url: str, location: str) -> tuple[str, str]:
    """Return the target of a redirect from `url` by its header Location, and why it is not kept (empty: it is)."""
    target = url_lists.target_of(url, location)
    if not target:
        return "", Reason.BAD_LOCATION
    return target, Reason.REDIRECT_TOO_LONG if url_lists.is_too_long(url) or url_lists.is_too_long(target) else ""


class Status(IntEnum):
    """The outcome of a URL without an HTTP response, or whose response is not kept (Heritrix's glossary)."""

    WAITING = 0
    DNS = -1
    CONNECT_FAILED = -2
    CONNECTION_LOST = -3
    TIMEOUT = -4
    RUNTIME = -5
    ILLEGAL_URL = -7
    ROBOTS_UNREACHABLE = -61
    INVALID_RESPONSE = -404
    TRAP = -4000
    TOO_MANY_HOPS = -4001
    OUT_OF_SCOPE = -5000
    LEFT_OUT = -5001
    TYPE = -5002
    QUOTA = -5003
    TIME_LIMIT = -5004
    CUT = -6000
    ROBOTS = -9998


#: Statuses of URLs that were never asked for: a limit or a person ended the crawl before.
NOT_TRIED = frozenset({Status.CUT, Status.LEFT_OUT})


#: Outcome → Tarântula's state of a document. Tarântula has no state for depth and traps: they have the state of URLs
#: outside the publication's bounds.
_SEED3: dict[int, int] = {
    Status.INVALID_RESPONSE: -1,
    Status.TYPE: -3,
    Status.QUOTA: -4,
    Status.OUT_OF_SCOPE: -5,
    Status.TOO_MANY_HOPS: -5,
    Status.TRAP: -5,
    Status.ILLEGAL_URL: -5,
    Status.LEFT_OUT: -5,
    Status.WAITING: -6,
    Status.CUT: -6,
    Status.ROBOTS: -7,
    Status.ROBOTS_UNREACHABLE: -7,
    Status.TIMEOUT: -10,
    Status.TIME_LIMIT: -10,
    Status.DNS: -11,
    Status.CONNECT_FAILED: -11,
    Status.CONNECTION_LOST: -11,
    Status.RUNTIME: -11,
}

#: Tarântula's word for "something in the system failed".
SYSTEM_ERROR = -11


#: Filters that judge by the type of a document alone: Tarântula's state for these is -3.
_BY_TYPE = frozenset(f"{Reason.FILTER}{name}" for name in ("profile", "types", "mime"))


def seed3_state(status: int, notes: str, result: str) -> int:
    """Return Tarântula's code for a URL: a document that came, of a type that is not kept, has that of its type."""
    if result == Result.FILTERED and not _BY_TYPE.isdisjoint(notes.split(",")):
        return _SEED3[Status.TYPE]
    return seed3_code(status)


def seed3_code(status: int) -> int:
    """Return Tarântula's code for an outcome: the HTTP status if above zero; a system error for unknown outcomes."""
    return status if status > 0 else _SEED3.get(status, SYSTEM_ERROR)
