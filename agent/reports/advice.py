"""What to do about resources that pages lack, by the word for why. Pure.

The desk translates these texts; its catalogue has each of them.
"""

from __future__ import annotations

import re

from agent.crawl.vocabulary import CERTIFICATE_FAULTS, Reason, Result
from webarcfs.warc.decoding import BodyFault

_SETTING = "A setting of the publication keeps it out. Change that if pages need it."
_LATER = "The host may be down or gone. Open the URL in a browser, and later ask again with crawl --missing."
_BROKEN = "The server sends it broken. Open the URL in a browser; if it shows there, ask again with crawl --missing."
_BOUND = "Raise the setting of this name, if the crawl may take more."
_PERSON = "A person ended the crawl or left the host out. Crawl again without that."
_CERTIFICATE = 'Set certificates = "any" for this host, or name its authority by ca, if you rely on it all the same.'
_GONE = "The server does not have it: the page refers to nothing. Nothing is left to do."
_DENIED = "The server denies it. A login, cookies or another user_agent may help."
_PAUSE = "The server asks for slower requests. Raise wait for this host, and later ask again with crawl --missing."
_PLAIN = "The word's meaning is in the man page of webarc-agent and in TROUBLESHOOTING.md."
_SLOW = "Raise timeout or max_document_time for a slow server, and ask again with crawl --missing."
_REDIRECTS = "Its redirects lead nowhere. It may need a cookie: open the URL in a browser."
_TRAP = "It looks like a spider trap. Raise the setting that TROUBLESHOOTING.md names for the word, if it is none."
_HOSTS = 'Set page_resources = "any", or name the host in hosts.'
_ROBOTS = 'Set robots_for = "pages", or ask the owner of the host.'
_PRIVATE = "Set private_addresses = true, if the crawl may ask addresses of your own network."
_DEPTH = "It is embedded too deep, where no setting leads. Crawl the URL for itself with --page."
_NUMBER = "Raise max_page_resources, if pages need so many."
_MANY_HOSTS = "Raise max_resource_hosts, if pages need so many."

_BY_WORD: dict[str, str] = {
    **dict.fromkeys(
        (Reason.EXCLUDED, Reason.EXCLUDED_HOST, Reason.PATHS, Reason.EXTENSION, Reason.TYPE, Reason.SERVER_DEPTH,
         Reason.FILTER, Result.FILTERED), _SETTING,
    ),
    Reason.FOREIGN_HOST: _HOSTS,
    Reason.PRIVATE_ADDRESS: _PRIVATE,
    Reason.RESOURCE_DEPTH: _DEPTH,
    Reason.RESOURCE_NUMBER: _NUMBER,
    Reason.RESOURCE_HOSTS: _MANY_HOSTS,
    Reason.ROBOTS: _ROBOTS,
    **dict.fromkeys((Reason.TOO_BIG, Reason.OVER_SIZE, Reason.OVER_TIME, Reason.HOST_FULL, Reason.TOO_DEEP), _BOUND),
    **dict.fromkeys((Reason.STOPPED, Reason.DISCARDED, Reason.LEFT_OUT), _PERSON),
    **dict.fromkeys((Reason.BUSY, Reason.SERVER_BUSY), _PAUSE),
    **dict.fromkeys((Reason.TIME_LIMIT, Reason.TIMEOUT, Reason.CONNECT_TIMEOUT), _SLOW),
    **dict.fromkeys(
        (Reason.SERVER_DOWN, Reason.DNS, Reason.CONNECTION_REFUSED, Reason.UNREACHABLE, Reason.CONNECT_FAILED,
         Reason.RESET, Reason.CLOSED, Reason.NO_ANSWER, Reason.LOST, Reason.ROBOTS_UNAVAILABLE, Reason.TLS_HANDSHAKE),
        _LATER,
    ),
    **dict.fromkeys(CERTIFICATE_FAULTS, _CERTIFICATE),
    **dict.fromkeys((Reason.REDIRECTS, Reason.REDIRECT_LOOP, Reason.BAD_LOCATION), _REDIRECTS),
    **dict.fromkeys(
        (Reason.URL_LENGTH, Reason.PATH_DEPTH, Reason.REPEATS, Reason.PARAMETERS, Reason.QUERIES, Reason.CALENDAR,
         Reason.PATTERN, Reason.HOSTS), _TRAP,
    ),
    Reason.BAD_HEAD: _BROKEN,
    Result.UNDECODABLE: _BROKEN,
    **dict.fromkeys((fault for fault in BodyFault if fault is not BodyFault.TOO_BIG), _BROKEN),
}  # fmt: skip
_BY_STATUS = {401: _DENIED, 403: _DENIED, 404: _GONE, 407: _DENIED, 410: _GONE, 429: _PAUSE}
_STATUS = re.compile(r"status (\d{3})", re.ASCII)
#: All texts, each once.
TEXTS = tuple(dict.fromkeys((*_BY_WORD.values(), *_BY_STATUS.values(), _PLAIN)))


def advice_on(word: str) -> str:
    """Return what to do about resources that are missing for a word of crawl.log, or `status 404`."""
    status = _STATUS.fullmatch(word)
    if status is not None:
        code = int(status[1])
        return _BY_STATUS.get(code, _LATER if code >= 500 else _GONE)
    stem, colon, _ = word.partition(":")
    return _BY_WORD.get(word) or _BY_WORD.get(stem + colon) or _PLAIN
