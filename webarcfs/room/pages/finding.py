"""`/find`: what was typed into the room's one box. An address leads to its versions, words lead to the search.

`in=words` and `in=catalogue` say that the text is words in any case: for the search, and for the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.responses import Response

from webarcfs.archive.model.sites import has_known_suffix, split_port
from webarcfs.archive.model.urls import domain_of
from webarcfs.room.replay.replay_url import Refused, archived_url, calendar_path
from webarcfs.room.visit import Services, Visit

# == addresses and words, pure ========================================================================================


#: No address has these: white space, quotes, and what HTML and shells put around a URL.
_NOT_IN_ADDRESSES = re.compile(r"[\s\"<>\u00ab\u00bb\u201c-\u201f]")
_WEB = re.compile(r"(https?)://", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/?]*")


def address_in(text: str, is_archived: Callable[[str], bool]) -> str | None:
    """Return the canonical URL that a text spells; None for words.

    An address has no white space. It begins with `http://` or `https://`; or with a host, which has a suffix of the
    public list, begins with `www.`, is an IP address, or is one that the archive has by `is_archived`. A fragment is
    left out, and a name and password before the host as well, where the text says the scheme. `user@example.org` is
    words, and so are other schemes, since a search has fields: `title:report`.
    """
    address = text.strip().partition("#")[0]
    if not address or _NOT_IN_ADDRESSES.search(address):
        return None
    web = _WEB.match(address)
    rest = address[web.end() :] if web else address
    authority = _AUTHORITY.match(rest)
    assert authority is not None
    host = authority[0].rpartition("@")[2] if web else authority[0]
    scheme = web[1].lower() if web else "http"
    url = archived_url(f"{scheme}://{host}{rest[authority.end() :]}".encode("utf-8", "replace"))
    if isinstance(url, Refused):
        return None
    return url if web or _names_a_host(host, domain_of(url), is_archived) else None


def _names_a_host(typed: str, domain: str, is_archived: Callable[[str], bool]) -> bool:
    host, _colon, port = split_port(domain)
    if typed.startswith("-"):  # a word that pages must not have
        return False
    if has_known_suffix(host) or (host.startswith("www.") and host.count(".") > 1) or _is_ip_address(host):
        return True
    return ("." in host or bool(port)) and is_archived(domain)


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def words_in(text: str) -> str:
    """Return the words to search in place of an address: the address in quotes, without scheme and final slash."""
    address = _WEB.sub("", text.strip(), count=1).rstrip("/")
    return f'"{address}"' if _WEB.match(text.strip()) and '"' not in address else text.strip()


# == the box ==========================================================================================================


def find(visit: Visit, _: Mapping[str, str]) -> Response:
    """Lead to the versions of an address, to the search for words, or to the catalogue."""
    text, place = visit.parameter("q"), visit.parameter("in")
    if place == "catalogue":
        return visit.led(_with_words("/", text))
    url = None if place == "words" else address_of(visit.services, text)
    if url is not None:
        return visit.led(calendar_path(url))
    return visit.led(_with_words("/search", words_in(text) if place == "words" else text))


def address_of(services: Services, text: str) -> str | None:
    """Return the URL that a text spells; a host without a known suffix is one where readers see a snapshot of it."""
    return address_in(text, lambda domain: _is_shown(services, domain))


def _is_shown(services: Services, domain: str) -> bool:
    return bool(services.gate.facts(domain).shown)


def _with_words(path: str, words: str) -> str:
    return f"{path}?{urlencode({'q': words})}" if words else path
