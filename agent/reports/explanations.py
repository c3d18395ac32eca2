"""The words of crawl.log in plain language, and what to do about each. Pure.

The sentence of a word in the vocabulary is for a terminal and for files: it names settings. People at the desk read
what stands here instead, in which no setting is named as files write it. The desk translates these texts; its catalogue
has each of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent.crawl.vocabulary import CERTIFICATE_FAULTS, Reason, Result, Status
from agent.reports import tables
from webarcfs.warc.decoding import BodyFault

# == explanations, pure ===============================================================================================


#: Word → what it means, where the sentence of the vocabulary is not for people at the desk.
_PLAINLY: dict[str, str] = {
    Reason.FOREIGN_HOST: "Its host does not belong to the crawl.",
    Reason.EXCLUDED: "The publication leaves it out; its page says why.",
    Reason.EXCLUDED_HOST: "The publication leaves its host out.",
    Reason.PATHS: "It lies outside of the folders that the publication is limited to.",
    Reason.EXTENSION: "The publication leaves files with this extension out.",
    Reason.SERVER_DEPTH: "It is deeper in its server than the publication lets the crawl go there.",
    Reason.HOST_FULL: "Its host had as many documents as the crawl takes of one host.",
    Reason.TOO_DEEP: "It is more links away from a start page than the crawl goes.",
    Reason.RESOURCE_HOSTS: "Pages need resources of more hosts than the crawl asks for these.",
    Reason.RESOURCE_NUMBER: "Its page needs more resources than the crawl takes for one page.",
    Reason.PATH_DEPTH: "Its path has too many segments, as those of spider traps have.",
    Reason.REPEATS: "A segment of its path comes too often, as in spider traps.",
    Reason.PARAMETERS: "Its query has too many parameters, as those of spider traps have.",
    Reason.QUERIES: "Too many URLs differ in their query alone.",
    Reason.CALENDAR: "It names a year too far ahead or back, as endless calendars do.",
    Reason.PATTERN: "Many pages of its pattern led to nothing new but each other.",
    Reason.HOSTS: "Links led to more hosts than the crawl takes.",
    Reason.SITEMAP_CUT: "The sitemap or feed lists more pages than were taken, or is broken.",
    Reason.NO_FEED: "It is what the publication watches, and is no feed that can be read; it is archived as it is.",
    Reason.SITEMAP_FULL: "The sitemaps of its host had listed as many pages before it as the crawl takes.",
    Reason.TOO_BIG: "It is larger than the files that the crawl takes.",
    Reason.OVER_SIZE: "The crawl had as many bytes before it as it may take.",
    Reason.OVER_TIME: "The crawl had taken as long before it as it may.",
    Reason.TIME_LIMIT: "It stopped coming, or took longer than one document may.",
    Reason.CODING: "It has a Content-Encoding that is unknown, or its file's own; it is archived as it was sent.",
    Reason.NO_KEY: (
        "It answers a request with a body (such as a POST) that is too long or of a kind that has no address; or "
        "scripts wanted to send such a request, which was not sent."
    ),
    Reason.MOST_CUTS: "Its URL had more versions in one crawl of an import than are kept.",
    Reason.BROWSER_MISSING: "No browser could show it: none is installed, or the settings name none.",
    Reason.BROWSER_NO_NAMESPACE: "No browser was started, since the system lets nobody isolate it.",
    Reason.BROWSER_REQUESTS: "The page's scripts asked for more than one page may; the rest was refused.",
    Reason.BROWSER_BYTES: "The page's scripts asked for more bytes than one page may; the rest was refused.",
    Reason.BROWSER_SCROLL: "Scrolling had not come to the page's end after as many steps as are made.",
    Reason.BROWSER_ROUTES: "The page has more links within itself by “#/” and “#!” than a browser shows (100).",
}
#: Word with which a crawl ended before its end → what that means for all of it.
_ENDS: dict[str, str] = {
    Reason.OVER_SIZE: "The crawl ended early: it had as many bytes as it may take.",
    Reason.OVER_TIME: "The crawl ended early: it had taken as long as it may.",
    Reason.STOPPED: "A person ended the crawl early.",
}
#: Word with which a crawl ended before its end → the setting of the publication that is its bound.
BOUNDS: dict[str, str] = {Reason.OVER_SIZE: "max_total_size", Reason.OVER_TIME: "max_duration"}
_BY_WORD: dict[str, str] = {
    **{str(word): word.sentence for word in (*Reason, *Result)},
    **{str(word): text for word, text in _PLAINLY.items()},
}
#: What an HTTP status means for a page, by the status or its first digit.
_BY_STATUS: dict[int, str] = {
    200: "The server sent it.",
    2: "The server sent a response without a document of its own.",
    3: "It leads on to another URL.",
    401: "The server wants a login.",
    403: "The server forbids it.",
    404: "The server has no such page.",
    407: "A proxy before the server wants a login.",
    410: "The server says that the page is gone for good.",
    429: "The server was asked too often.",
    4: "The server rejected the request.",
    5: "The server failed.",
}
_MEANINGS = tuple(filter(None, map(tables.meaning, Status)))
_STATUS_WORD = re.compile(r"status (-?\d{1,5})", re.ASCII)


def explanation_of(word: str) -> str:
    """Return what a word of crawl.log means, or a status such as `status 404`; empty for a figure, or another word."""
    status = _STATUS_WORD.fullmatch(word)
    if status is not None:
        number = int(status[1])
        return (_BY_STATUS.get(number) or _BY_STATUS.get(number // 100) or "") if number > 0 else tables.meaning(number)
    stem, colon, _ = word.partition(":")
    return _BY_WORD.get(word) or _BY_WORD.get(stem + colon) or ""


def explain_end(word: str) -> str:
    """Return what it means that a crawl, or a host of it, ended with a word of crawl.log; empty for another text."""
    return _ENDS.get(word) or explanation_of(word)


# == advice, pure =====================================================================================================


class Advice(NamedTuple):
    """What to do about a word: for who has a terminal, and for people at the desk."""

    text: str
    at_desk: str


_SETTING = Advice(
    "A setting of the publication keeps it out. Change that if pages need it.",
    "A setting of the publication keeps it out. Change that if readers need it.",
)
_LATER = Advice(
    "The host may be down or gone. Open the URL in a browser, and later ask again with crawl --missing.",
    "The host may be down or gone. Open the URL in a browser, and ask again later.",
)
_BROKEN = Advice(
    "The server sends it broken. Open the URL in a browser; if it shows there, ask again with crawl --missing.",
    "The server sends it broken. Open the URL in a browser; if it shows there, ask again for it.",
)
_BOUND = Advice(
    "Raise the setting of this name, if the crawl may take more.",
    "Raise the bound of the publication if the crawl may take more.",
)
_PERSON = Advice(
    "A person ended the crawl or left the host out. Crawl again without that.",
    "A person ended the crawl or left the host out. Ask again for it, or crawl again.",
)
_CERTIFICATE = Advice(
    'Set certificates = "any" for this host, or name its authority by ca, if you rely on it all the same.',
    "If you rely on the host all the same, let the publication take such certificates from it.",
)
_GONE = Advice(
    "The server does not have it: the page refers to nothing. Nothing is left to do.",
    "The server does not have it: the link leads nowhere. If it is there by now, ask again for it.",
)
_DENIED = Advice(
    "The server denies it. A login, cookies or another user_agent may help.",
    "The server denies it. A login or cookies of the publication may help.",
)
_PAUSE = Advice(
    "The server asks for slower requests. Raise wait for this host, and later ask again with crawl --missing.",
    "The server asks for slower requests. Let the publication wait longer for this host, and ask again later.",
)
_PLAIN = Advice(
    "The word's meaning is in the man page of webarc-agent and in TROUBLESHOOTING.md.",
    "This word needs nothing to be done by itself.",
)
_SLOW = Advice(
    "Raise timeout or max_document_time for a slow server, and ask again with crawl --missing.",
    "Give slow servers more time in the publication, and ask again for it.",
)
_REDIRECTS = Advice(
    "Its redirects lead nowhere. It may need a cookie: open the URL in a browser.",
    "Its redirects lead nowhere. It may need a cookie: open the URL in a browser.",
)
_TRAP = Advice(
    "It looks like a spider trap. Raise the setting that TROUBLESHOOTING.md names for the word, if it is none.",
    "It looks like a spider trap. If it is none, raise the bound for that in the publication.",
)
_HOSTS = Advice(
    'Set page_resources = "any", or name the host in hosts.',
    "Let the publication take embedded resources from any host, or name the host among its hosts.",
)
_ROBOTS = Advice(
    'Set robots_for = "pages", or ask the owner of the host.',
    "Ask the owner of the host, or let the publication follow robots.txt for pages alone.",
)
_PRIVATE = Advice(
    "Set private_addresses = true, if the crawl may ask addresses of your own network.",
    "Allow private addresses if the publication is of your own network.",
)
_DEPTH = Advice(
    "It is embedded too deep, where no setting leads. Crawl the URL for itself with --page.",
    "No setting leads so deep into embedded pages. Crawl the URL for itself.",
)
_LINKS = Advice(
    "Raise depth, or name the page in urls, if the crawl should go there.",
    "Let the publication follow more links in a row, or name the page among its start addresses.",
)
_NUMBER = Advice(
    "Raise max_page_resources, if pages need so many.",
    "Raise the number of resources that a page may need, if pages need so many.",
)
_MANY_HOSTS = Advice(
    "Raise max_resource_hosts, if pages need so many.",
    "Raise the number of hosts that resources may come from, if pages need so many.",
)
_KEPT = Advice(
    "The archive has what came. Nothing is left to do.",
    "The archive has what came. Nothing is left to do.",
)
_OTHER = Advice(
    "Another document stands in its place, and the archive keeps that. `webarc log URL` lists the versions.",
    "Another document stands in its place, and the archive keeps that. Look at the versions of the page.",
)
_BROWSER = Advice(
    'Open the page in a browser. If it shows there, set fetcher = "auto", and raise browser_page_seconds if need be.',
    "Open the page in a browser. If it shows there, let the publication show such pages by a browser, with "
    "more time if need be.",
)
_MACHINE = Advice(
    "Install a browser on the archive's machine; `webarc-agent status` says what it lacks.",
    "Ask the administrator for a browser on the archive's machine.",
)
_IMPORT = Advice(
    "The imported file has it so. Look for a better file, and import that.",
    "The imported file has it so. Look for a better file, and import that.",
)
_WAITS = Advice(
    "Import the file with the earlier capture; then it comes by itself.",
    "Import the file with the earlier capture; then it comes by itself.",
)
_REPORT = Advice(
    "The crawler failed here, not the server. Ask again with crawl --missing; if that fails, report it.",
    "The crawler failed here, not the server. Ask again for it; if that fails, tell the administrator.",
)
_LISTS = Advice(
    "Raise max_sitemap_urls, if sitemaps and feeds list so many pages.",
    "Raise the number of pages that the publication takes from sitemaps and feeds, if it lists so many.",
)
_NONE = Advice(
    "Crawls cannot keep such a thing. Nothing is left to do.",
    "Crawls cannot keep such a thing. Nothing is left to do.",
)
_ADVICE: dict[str, Advice] = {
    **dict.fromkeys(
        (Reason.EXCLUDED, Reason.EXCLUDED_HOST, Reason.PATHS, Reason.EXTENSION, Reason.TYPE, Reason.SERVER_DEPTH,
         Reason.FILTER, Result.FILTERED), _SETTING,
    ),
    Reason.FOREIGN_HOST: _HOSTS,
    Reason.PRIVATE_ADDRESS: _PRIVATE,
    Reason.TOO_DEEP: _LINKS,
    Reason.RESOURCE_DEPTH: _DEPTH,
    Reason.RESOURCE_NUMBER: _NUMBER,
    Reason.RESOURCE_HOSTS: _MANY_HOSTS,
    Reason.ROBOTS: _ROBOTS,
    Reason.SCRIPTS_FORBIDDEN: _ROBOTS,
    **dict.fromkeys((Reason.TOO_BIG, Reason.OVER_SIZE, Reason.OVER_TIME, Reason.HOST_FULL), _BOUND),
    **dict.fromkeys(
        (Reason.BROWSER_REQUESTS, Reason.BROWSER_BYTES, Reason.BROWSER_SCROLL, Reason.BROWSER_ROUTES, Reason.LINKS_CUT,
         Reason.MOST_CUTS), _BOUND,
    ),
    **dict.fromkeys((Reason.SITEMAP_FULL, Reason.SITEMAP_NUMBER, Reason.SITEMAP_CUT), _LISTS),
    **dict.fromkeys((Reason.STOPPED, Reason.DISCARDED, Reason.LEFT_OUT, Reason.BROWSER_CUT), _PERSON),
    **dict.fromkeys((Reason.BUSY, Reason.SERVER_BUSY), _PAUSE),
    **dict.fromkeys((Reason.TIME_LIMIT, Reason.TIMEOUT, Reason.CONNECT_TIMEOUT), _SLOW),
    **dict.fromkeys(
        (Reason.SERVER_DOWN, Reason.DNS, Reason.CONNECTION_REFUSED, Reason.UNREACHABLE, Reason.CONNECT_FAILED,
         Reason.RESET, Reason.CLOSED, Reason.NO_ANSWER, Reason.LOST, Reason.ROBOTS_UNAVAILABLE, Reason.TLS_HANDSHAKE,
         Reason.ASKED_AGAIN),
        _LATER,
    ),
    **dict.fromkeys(CERTIFICATE_FAULTS, _CERTIFICATE),
    **dict.fromkeys((Reason.REDIRECTS, Reason.REDIRECT_LOOP, Reason.BAD_LOCATION), _REDIRECTS),
    **dict.fromkeys(
        (Reason.URL_LENGTH, Reason.PATH_DEPTH, Reason.REPEATS, Reason.PARAMETERS, Reason.QUERIES, Reason.CALENDAR,
         Reason.PATTERN, Reason.HOSTS), _TRAP,
    ),
    Reason.BAD_HEAD: _BROKEN,
    Reason.NO_FEED: _BROKEN,
    Result.UNDECODABLE: _BROKEN,
    **dict.fromkeys((fault for fault in BodyFault if fault is not BodyFault.TOO_BIG), _BROKEN),
    **dict.fromkeys(
        (Reason.NEEDS_BROWSER, Reason.BROWSER_LOAD, Reason.BROWSER_TIME, Reason.BROWSER_MEMORY, Reason.BROWSER_CRASH,
         Reason.BROWSER_BUSY, Reason.BROWSER_NO_PAGE, Reason.BROWSER_BEFORE), _BROWSER,
    ),
    **dict.fromkeys((Reason.BROWSER_MISSING, Reason.BROWSER_NO_NAMESPACE), _MACHINE),
    **dict.fromkeys(
        (Reason.NO_BODY, Reason.NO_HEAD, Reason.BAD_DIGEST, Reason.BAD_URL, Reason.BAD_DATE, Reason.SEGMENT), _IMPORT,
    ),
    Reason.REVISIT_UNRESOLVED: _WAITS,
    **dict.fromkeys((Reason.FETCHER, Reason.BAD_REQUEST), _REPORT),
    **dict.fromkeys(
        (Reason.METHOD, Reason.NO_KEY, Reason.PARTIAL, Reason.HTTP2_ONLY, Reason.REDIRECT_TOO_LONG, Reason.BROWSER_DOM,
         Reason.BROWSER_POPUP, Reason.BROWSER_STREAM, Reason.BROWSER_WEBSOCKET, Reason.BROWSER_DOWNLOAD,
         Reason.BROWSER_SCHEME, Reason.NO_SITEMAP), _NONE,
    ),
    **dict.fromkeys(
        (Result.DUPLICATE, Reason.SAME_AS, Reason.DIFFERS_FROM, Reason.RESPONSE_HELD, Reason.REDIRECT_HELD,
         Reason.ERROR_HELD, Reason.OLDER), _OTHER,
    ),
    **dict.fromkeys(
        (Result.ADDED, Result.CHANGED, Result.UNCHANGED, Reason.NOT_MODIFIED, Reason.LISTED_ALONE, Reason.HSTS,
         Reason.NOT_CODED, Reason.CODING, Reason.TRAILING_BYTES, Reason.BAD_CHECKSUM, Reason.LINKS_UNREAD,
         Reason.REVISIT, Reason.RESOURCE, Reason.SOURCE, Reason.RENDERED, Reason.SECRETS, Reason.BY_POST,
         Reason.OTHER_STATUS, Reason.BECAME_PAGE), _KEPT,
    ),
}  # fmt: skip
_ADVICE_BY_STATUS = {401: _DENIED, 403: _DENIED, 404: _GONE, 407: _DENIED, 410: _GONE, 429: _PAUSE}
_ALL_ADVICE = tuple(dict.fromkeys((*_ADVICE.values(), *_ADVICE_BY_STATUS.values(), _PLAIN)))
_HTTP_STATUS = re.compile(r"status (\d{3})", re.ASCII)
#: All texts that the desk shows, each once.
TEXTS = tuple(
    dict.fromkeys(
        (
            *_BY_WORD.values(),
            *_ENDS.values(),
            *_BY_STATUS.values(),
            *_MEANINGS,
            *(advice.at_desk for advice in _ALL_ADVICE),
        )
    )
)


def advice_on(word: str) -> str:
    """Return what to do about a word of crawl.log, or `status 404`, for who has a terminal."""
    return _advice_on(word).text


def desk_advice_on(word: str) -> str:
    """Return what to do about a word of crawl.log, or `status 404`, for people at the desk."""
    return _advice_on(word).at_desk


def _advice_on(word: str) -> Advice:
    status = _HTTP_STATUS.fullmatch(word)
    if status is not None:
        code = int(status[1])
        return _ADVICE_BY_STATUS.get(code, _LATER if code >= 500 else _GONE)
    stem, colon, _ = word.partition(":")
    return _ADVICE.get(word) or _ADVICE.get(stem + colon) or _PLAIN
