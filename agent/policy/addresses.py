"""Which addresses are not of the public internet: of one's own machine or network, or of nobody. Pure.

A crawl is asked for by people who see web pages, and the machine that it runs on may reach more than they do.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache

from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.url import domain_of

_PROXY = re.compile(r"(?:https?|ftp)proxy=")
_LOCAL = re.compile(r"(?:.*\.)?localhost\.?", re.IGNORECASE)
# IPv6 addresses in which an IPv4 address lies in the last four bytes (RFC 4291 section 2.5.5, RFC 6052).
_EMBEDDING = tuple(ipaddress.IPv6Network(each) for each in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))


def is_private(address: str) -> bool:
    """Whether an IP address is private, of this machine, of a link, multicast or reserved (RFC 6890).

    An IPv6 address that stands for an IPv4 address is what that is. Raises ValueError for what is no address.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = [found.sixtofour, *(found.teredo or ())]
        inner += [ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) for each in _EMBEDDING if found in each]
        if any(each is not None and is_private(str(each)) for each in inner):
            return True
        if found.is_site_local:  # out of use (RFC 3879), and still routed where somebody uses it
            return True
    return not found.is_global or found.is_multicast


def is_private_host(host: str) -> bool | None:
    """Whether a host is at a private address, as far as its name tells; None for a name that has to be looked up.

    An IPv4 address may be written in fewer parts, in octal and in hexadecimal, as inet_aton(3) takes it and wget, too.
    """
    if _LOCAL.fullmatch(host):
        return True
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return any(is_private(str(each[4][0])) for each in found)


def host_of(domain: str) -> str:
    """The host of `host[:port]`, an IPv6 address without its brackets."""
    if domain.startswith("["):
        return domain[1:].partition("]")[0]
    return domain.partition(":")[0]


@lru_cache(maxsize=4096)
def is_private_domain(domain: str) -> bool | None:
    """The same for a domain (`host[:port]`)."""
    return is_private_host(host_of(domain))


def may_be_private(settings: CrawlSettings, urls: Iterable[str]) -> bool:
    """Whether a crawl of these start URLs may ask private addresses: it is set so, or one of them is on one itself."""
    return settings.private_addresses or any(is_private_domain(domain_of(url)) for url in urls)


def is_proxied(wget_args: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Whether wget asks a proxy, which looks names up by itself."""
    arguments = [each.lower() for each in wget_args]
    if any(_PROXY.search(re.sub(r"[-_ ]", "", each)) for each in arguments):  # to wget, http-proxy is http_proxy
        return True
    return "--no-proxy" not in arguments and any(environment.get(name) for name in ("http_proxy", "https_proxy"))
