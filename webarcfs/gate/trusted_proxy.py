"""The name of a reader, as a proxy in front of the archive's servers tells it. Pure.

Only addresses of `[readers] proxies` are believed. Anybody else is the public, whatever the request says. A client of
a unix socket has no address; it is believed where `unix` is among the proxies.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from webarcfs.archive.config.settings import ReadersSettings
from webarcfs.archive.config.validators import UNIX
from webarcfs.gate.gate import Reader

#: Longest name of a reader that is believed.
_LONGEST = 200


def reader_of(settings: ReadersSettings, peer: str, headers: Mapping[str, str]) -> Reader:
    """Return the reader of a request from the address `peer`, or `unix`; the public if no trusted proxy names one.

    The names of headers have any case. A name with unprintable characters, or of several readers, is none.
    """
    if not settings.header or not is_trusted(settings, peer):
        return Reader()
    found = [value.strip() for name, value in headers.items() if name.casefold() == settings.header.casefold()]
    name = found[0] if len(found) == 1 else ""
    return Reader(name) if name.isprintable() and len(name) <= _LONGEST and "," not in name else Reader()


def is_trusted(settings: ReadersSettings, peer: str) -> bool:
    """Return whether a client is a proxy that is believed."""
    if peer == UNIX:
        return UNIX in settings.proxies
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in ip_network(each) for each in settings.proxies if each != UNIX)
