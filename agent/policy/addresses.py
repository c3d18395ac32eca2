"""Decides which addresses are not on the public internet: of this machine or its network, or reserved. Pure.

The machine of the archive may reach servers that the users who request crawls cannot reach.
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
    """Return whether an IP address is private, loopback, link-local, multicast or reserved (RFC 6890).

    For an IPv6 address that embeds an IPv4 address, the IPv4 address decides. Raises ValueError for an invalid address.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = [found.sixtofour, *(found.teredo or ())]
        inner += [ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) for each in _EMBEDDING if found in each]
        if any(each is not None and is_private(str(each)) for each in inner):
            return True
        if found.is_site_local:  # deprecated (RFC 3879), but still routed in networks that use it
            return True
    return not found.is_global or found.is_multicast


def is_private_host(host: str) -> bool | None:
    """Return whether a host is at a private address, judged by its name; None if the name must be looked up.

    An IPv4 address may have fewer parts, or be octal or hexadecimal: inet_aton(3) and wget accept these forms.
    """
    if _LOCAL.fullmatch(host):
        return True
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return any(is_private(str(each[4][0])) for each in found)


def host_of(domain: str) -> str:
    """Return the host of `host[:port]`, an IPv6 address without its brackets."""
    if domain.startswith("["):
        return domain[1:].partition("]")[0]
    return domain.partition(":")[0]


@lru_cache(maxsize=4096)
def is_private_domain(domain: str) -> bool | None:
    """Return `is_private_host` of a domain's host (`host[:port]`)."""
    return is_private_host(host_of(domain))


def may_be_private(settings: CrawlSettings, urls: Iterable[str]) -> bool:
    """Return whether a crawl may request from private addresses: by its settings, or since a start URL is at one."""
    return settings.private_addresses or any(is_private_domain(domain_of(url)) for url in urls)


def is_proxied(wget_args: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Return whether wget uses a proxy. A proxy looks names up itself."""
    arguments = [each.lower() for each in wget_args]
    if any(_PROXY.search(re.sub(r"[-_ ]", "", each)) for each in arguments):  # to wget, http-proxy is http_proxy
        return True
    return "--no-proxy" not in arguments and any(environment.get(name) for name in ("http_proxy", "https_proxy"))
