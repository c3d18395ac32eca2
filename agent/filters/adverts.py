"""Drops documents of advertising servers, by a blacklist of hosts. filters/adverts.toml: `hosts`, `allow`, `defaults`.

A host in the list includes all its subdomains (`doubleclick.net` includes `ad.doubleclick.net`), or is a pattern with
`*` (`ads.*`). `allow` makes exceptions from the list; `defaults = false` drops the short list in this module. Only the
URL is examined, no body is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from webarcfs.archive.config import validators

#: Servers that serve only adverts, counters and trackers, and patterns of the names of such servers.
DEFAULTS = (
    "2mdn.net",
    "adform.net",
    "adition.com",
    "adnxs.com",
    "adsrvr.org",
    "amazon-adsystem.com",
    "criteo.com",
    "criteo.net",
    "doubleclick.net",
    "etracker.com",
    "googleadservices.com",
    "googlesyndication.com",
    "google-analytics.com",
    "googletagservices.com",
    "ioam.de",
    "ivwbox.de",
    "outbrain.com",
    "pubmatic.com",
    "quantserve.com",
    "rubiconproject.com",
    "scorecardresearch.com",
    "taboola.com",
    "yieldlab.net",
    "ad.*",
    "ads.*",
    "adserver.*",
    "banner.*",
    "banners.*",
)
_HOST = re.compile(r"[a-z0-9*](?:[a-z0-9*.-]*[a-z0-9*])?", re.ASCII)


class _Located(Protocol):
    @property
    def url(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Blacklist:
    """The refused hosts, by name and by pattern, and the allowed ones, which take precedence."""

    refused: frozenset[str]
    refused_patterns: tuple[re.Pattern[str], ...]
    allowed: frozenset[str]
    allowed_patterns: tuple[re.Pattern[str], ...]


def settings(table: Mapping[str, Any]) -> Blacklist:
    """Return the lists of a settings file (/Fi-2/). Raises ValueError with a line for each fault."""
    faults = [f"{key}: there is no such setting" for key in table if key not in ("hosts", "allow", "defaults")]
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("hosts", "allow"):
        try:
            lists[key] = validators.list_of(_host)(table.get(key, []))
        except ValueError as error:
            faults.append(f"{key}: {error}")
    try:
        with_defaults = validators.boolean(table.get("defaults", True))
    except ValueError as error:
        faults.append(f"defaults: {error}")
    if faults:
        raise ValueError("\n".join(faults))
    return Blacklist(*_split(lists["hosts"] + (DEFAULTS if with_defaults else ())), *_split(lists["allow"]))


def keep(document: _Located, settings: Blacklist) -> bool:
    """Return whether the document's host is not refused."""
    host = host_of(document.url)
    if _listed(host, settings.allowed, settings.allowed_patterns):
        return True
    return not _listed(host, settings.refused, settings.refused_patterns)


def host_of(url: str) -> str:
    """Return the host of a canonical URL, without its port."""
    domain = url.partition("://")[2].partition("/")[0]
    host, colon, port = domain.rpartition(":")
    return host if colon and port.isdecimal() else domain


def _listed(host: str, names: frozenset[str], patterns: tuple[re.Pattern[str], ...]) -> bool:
    labels = host.split(".")
    if any(".".join(labels[start:]) in names for start in range(len(labels))):
        return True
    return any(pattern.fullmatch(host) for pattern in patterns)


def _host(value: Any) -> str:
    name = value.strip().lower().rstrip(".") if isinstance(value, str) else ""
    if not _HOST.fullmatch(name):
        raise ValueError(f"{value!r} is no host name or pattern such as ads.example or ads.*")
    return name


def _split(hosts: tuple[str, ...]) -> tuple[frozenset[str], tuple[re.Pattern[str], ...]]:
    patterns = sorted({host for host in hosts if "*" in host})
    compiled = tuple(re.compile(re.escape(pattern).replace(r"\*", ".*")) for pattern in patterns)
    return frozenset(hosts) - set(patterns), compiled
