"""Sites: registrable domains, as browsers take them from the public suffix list.

`www.example.co.uk` and `img.example.co.uk` belong to `example.co.uk`. An address, and a host that is a public suffix
itself, is a site of its own.
"""

from __future__ import annotations

from functools import cache
from ipaddress import ip_address

from publicsuffixlist import PublicSuffixList


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


def site_of(domain: str) -> str:
    """Return the site of a host with or without a port."""
    host = split_port(domain.lower())[0].rstrip(".")
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return _suffixes().privatesuffix(host) or host
    return host


def has_known_suffix(domain: str) -> bool:
    """Return whether a host, with or without a port, has several labels and ends in a suffix of the list."""
    host = split_port(domain.lower())[0].rstrip(".")
    return "." in host and _suffixes().publicsuffix(host, accept_unknown=False) is not None


def split_port(domain: str) -> tuple[str, str, str]:
    """Return host, colon and port; the latter are empty without a port."""
    host, colon, port = domain.rpartition(":")
    return (host, colon, port) if port.isdecimal() and not domain.endswith("]") else (domain, "", "")
