"""The cookies of a job: one jar for each site, which all its hosts and their wgets share.

wget decides which cookies of a jar a host gets (RFC 6265), and rejects those for a public suffix (`sites.py`).

Several wgets of a site run at a time. Each reads a copy of the jar (`~NNNNNN.sent`) and writes what it has at its end
(`~NNNNNN.got`). The difference is what its servers set or removed, and goes into the jar (`merged`). So the newest
value wins, and no wget undoes what another one learnt. A wget that was killed leaves no cookies, which the jar counts:
a redirect that leads back may have lost its cookie by that.

The copies stay until the batch was read. So a redirect can be compared with the cookies that were sent (`sent`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Self

from webarcfs.archive.model.sites import site_of, split_port
from webarcfs.archive.model.urls import parse as parse_url

# == jars, pure =======================================================================================================


#: Cookies of a site, and bytes of the name and the value of one, as browsers keep them.
MOST_COOKIES, LONGEST_COOKIE = 180, 4096
#: Cookies that a browser gets for a page, of all sites.
MOST_SHOWN = 2_000
#: Domain, path and name of a cookie.
Key = tuple[str, str, str]
_HEAD = "# HTTP Cookie File"
_LOST = "# lost:"


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie as a line of the file has it; the domain may have a port."""

    domain: str
    subdomains: bool
    path: str
    secure: bool
    expires: str
    name: str
    value: str

    @classmethod
    def read(cls, line: str) -> Self | None:
        """Return the cookie of a line of Netscape's format; None for any other line, and for one that is too long."""
        parts = line.split("\t", 6)
        if len(parts) != 7 or line.startswith("#") or len(parts[5]) + len(parts[6]) > LONGEST_COOKIE:
            return None
        domain, subdomains, path, secure, expires, name, value = parts
        return cls(domain, subdomains == "TRUE", path, secure == "TRUE", expires, name, value)

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.domain, self.path, self.name

    @property
    def line(self) -> str:
        """Its line."""
        flags = ("FALSE", "TRUE")
        parts = (self.domain, flags[self.subdomains], self.path, flags[self.secure], self.expires, self.name)
        return "\t".join((*parts, self.value))

    def is_for(self, url: str) -> bool:
        """Return whether a request of `url` sends it (RFC 6265 section 5.4)."""
        parts = parse_url(url)
        host, _, port = split_port(self.domain.lstrip("."))
        own, _, own_port = split_port(parts.domain)
        if (port and port != own_port) or not (own == host or (self.subdomains and own.endswith(f".{host}"))):
            return False
        under = self.path.rstrip("/")
        is_below = parts.path == self.path or parts.path.startswith(f"{under}/")
        return is_below and (parts.scheme == "https" or not self.secure)


@dataclass(frozen=True, slots=True)
class Jar:
    """The cookies of a site, the oldest first; and how many wgets ended without saying what they got."""

    cookies: Mapping[Key, Cookie] = field(default_factory=dict)
    lost: int = 0

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the jar of a file; lines that are no cookies are skipped."""
        cookies = {cookie.key: cookie for line in text.split("\n") if (cookie := Cookie.read(line)) is not None}
        numbers = [line.removeprefix(_LOST).strip() for line in text.split("\n") if line.startswith(_LOST)]
        return cls(cookies, max((int(number) for number in numbers if number.isdecimal()), default=0))

    @property
    def text(self) -> str:
        """The file."""
        lost = [f"{_LOST} {self.lost}"] if self.lost else []
        return "\n".join([_HEAD, *lost, *(cookie.line for cookie in self.cookies.values()), ""])

    def digest(self, url: str) -> str:
        """Return what stands for the cookies that a request of `url` sends; empty without any."""
        pairs = sorted(f"{cookie.name}={cookie.value}" for cookie in self.cookies.values() if cookie.is_for(url))
        if not pairs and not self.lost:
            return ""
        return hashlib.sha256("\n".join([str(self.lost), *pairs]).encode()).hexdigest()[:16]


def merged(jar: Jar, sent: Jar, got: Jar, *, whole: bool) -> Jar:
    """Return a jar with what a wget changed: it read `sent` and wrote `got`. `whole`: what is not there was removed."""
    changes = {key: cookie for key, cookie in got.cookies.items() if sent.cookies.get(key) != cookie}
    removed = {key for key in sent.cookies if whole and key not in got.cookies}
    kept = {key: cookie for key, cookie in jar.cookies.items() if key not in changes and key not in removed}
    newest = list({**kept, **changes}.items())[-MOST_COOKIES:]
    return Jar(dict(newest), jar.lost)


# == jars of a job ====================================================================================================


#: The first character of all files but the jars: no host has it.
_MARK = "~"
_SENT, _GOT, _CONFIG = ".sent", ".got", ".config"


class CookieJars:
    """The jars in a job's folder. For one thread."""

    def __init__(self, folder: Path) -> None:
        """Open or create them; take up what killed wgets left."""
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._jars: dict[str, Jar] = {}
        for path in sorted(folder.glob(f"[!{_MARK}]*")):
            jar, site = _read(path), site_of(path.name)  # an older version had a jar for each host
            self._jars[site] = replace(merged(self._jar(site), Jar(), jar, whole=False), lost=jar.lost)
        #: Batch → its site, and the jar that its wget was given.
        self._given: dict[int, tuple[str, Jar]] = {}
        for path in sorted(folder.glob(f"{_MARK}*{_SENT}")):
            first, _, text = path.read_text("latin-1").partition("\n")
            site = first.removeprefix("# ")
            if not site or not text.endswith("\n"):  # the process was killed while it wrote it, before it ran the wget
                path.unlink()
                continue
            batch = int(path.stem.removeprefix(_MARK))
            self._given[batch] = site, Jar.read(text)
            self.ended(batch, whole=False)

    def begin(self, batch: int, domain: str, given: Iterable[Cookie] = ()) -> tuple[Path | None, Path]:
        """Return the file of cookies that the wget of a batch reads, None without any; and the one that it writes.

        It also reads those that are `given`. They stay out of the jar, unless the server sets them anew.
        """
        site = site_of(domain)
        jar = self._jar(site)
        jar = Jar({**{cookie.key: cookie for cookie in given}, **jar.cookies}, jar.lost)
        self._given[batch] = site, jar
        sent, got = self._files(batch)
        _write(sent, f"# {site}\n{jar.text}")
        return sent if jar.cookies else None, got

    def ended(self, batch: int, *, whole: bool) -> None:
        """Put what the wget of a batch got into the jar of its site; `whole`: it ended by itself."""
        site, sent = self._given[batch]
        path = self._files(batch)[1]
        jar = self._jar(site)
        if path.exists():
            self._put(site, merged(jar, sent, _read(path), whole=whole))
            path.unlink()
        elif not whole:
            self._put(site, replace(jar, lost=jar.lost + 1))

    def for_browser(self, domain: str) -> tuple[str, ...]:
        """Return the cookies for a page of a host, as lines: those of its site, then those of others, up to a number.

        A page may need those of other sites, and a crawl may have thousands of sites.
        """
        own = site_of(domain)
        jars = (self._jar(own), *(jar for site, jar in self._jars.items() if site != own))
        lines = (cookie.line for jar in jars for cookie in jar.cookies.values())
        return tuple(islice(lines, MOST_SHOWN))

    def learn(self, lines: Iterable[str]) -> None:
        """Put the cookies that a browser has into the jars of their sites."""
        by_site: dict[str, dict[Key, Cookie]] = {}
        for cookie in filter(None, map(Cookie.read, lines)):
            by_site.setdefault(site_of(cookie.domain.lstrip(".")), {})[cookie.key] = cookie
        for site, cookies in by_site.items():
            jar = self._jar(site)
            self._put(site, merged(jar, jar, Jar(cookies), whole=False))

    def config(self, batch: int, text: str) -> Path:
        """Return the configuration file of a batch's wget, with this text."""
        path = self._folder / f"{_MARK}{batch:06}{_CONFIG}"
        _write(path, text)
        return path

    def forget(self, batch: int) -> None:
        """Remove the copies of a batch that was read."""
        self._given.pop(batch, None)
        for path in (*self._files(batch), self._folder / f"{_MARK}{batch:06}{_CONFIG}"):
            path.unlink(missing_ok=True)

    def sent(self, batch: int, url: str) -> str:
        """Return what stands for the cookies that the wget of a batch had for `url` when it began."""
        return self._given.get(batch, ("", Jar()))[1].digest(url)

    def now(self, url: str) -> str:
        """Return what stands for the cookies that a request of `url` would send now."""
        return self._jar(site_of(parse_url(url).domain)).digest(url)

    def _jar(self, site: str) -> Jar:
        return self._jars.get(site, Jar())

    def _put(self, site: str, jar: Jar) -> None:
        if jar != self._jar(site):
            self._jars[site] = jar
            new = self._folder / f"{_MARK}{site}"
            _write(new, jar.text)
            new.rename(self._folder / site)

    def _files(self, batch: int) -> tuple[Path, Path]:
        return self._folder / f"{_MARK}{batch:06}{_SENT}", self._folder / f"{_MARK}{batch:06}{_GOT}"


def _read(path: Path) -> Jar:
    return Jar.read(path.read_text("latin-1"))


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="latin-1") as file:
        file.write(text)
