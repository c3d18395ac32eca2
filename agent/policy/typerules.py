"""Which MIME types a crawl keeps, and which URLs and answers need not be fetched for that. Pure.

A publication's own types go before its profile. A document whose type is not wanted is fetched all the same where it
may have links: they lead to what is wanted.
"""

from __future__ import annotations

import mimetypes
import re
from dataclasses import dataclass
from functools import cache, lru_cache

from webarcfs.archive.config.settings import CrawlSettings, Profile
from webarcfs.content.outlinks import may_have_links


def wanted(mime_type: str, rules: Profile) -> bool:
    """Return whether a MIME type matches an include (or no includes are given) and no exclude (/Fi-4.4/)."""
    included = not rules.include or matches(mime_type, rules.include)
    return included and not matches(mime_type, rules.exclude)


def matches(mime_type: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a MIME type is one of these, in which `*` matches any characters."""
    return any(_pattern(each).fullmatch(mime_type) for each in patterns)


@dataclass(frozen=True, slots=True)
class TypeRules:
    """The types of a crawl: those of its profile and `types`, without `exclude_types`."""

    profile: Profile | None = None
    types: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: CrawlSettings, profile: Profile | None) -> TypeRules:
        """Return the rules of a crawl."""
        return cls(profile, settings.types, settings.exclude_types)

    @property
    def are_own(self) -> bool:
        """Whether there is more than a profile."""
        return bool(self.types or self.exclude)

    def wants(self, mime_type: str) -> bool:
        """Return whether documents of a type are kept."""
        if matches(mime_type, self.exclude):
            return False
        if matches(mime_type, self.types):
            return True
        return wanted(mime_type, self.profile) if self.profile is not None else not self.types

    def spares(self, mime_type: str) -> bool:
        """Return whether documents of a type need not be fetched: they are not kept, and lead nowhere."""
        return bool(mime_type) and not may_have_links(mime_type) and not self.wants(mime_type)

    def spares_url(self, url: str) -> bool:
        """Return whether the extension in a URL tells that it need not be fetched."""
        if not self.are_own and self.profile is None:
            return False
        return self.spares(_types().get(f".{extension_of(url)}", ""))


def extension_of(url: str) -> str:
    """Return the extension of the file that a canonical URL names, in lower case; empty without one."""
    name = url.partition("://")[2].partition("?")[0].partition("/")[2].rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""


def has_extension(url: str, extensions: tuple[str, ...]) -> bool:
    """Return whether the file that a URL names ends in one of these extensions."""
    name = url.partition("://")[2].partition("?")[0].rpartition("/")[2].lower()
    return any(name.endswith(f".{each}") for each in extensions)


@cache
def _types() -> dict[str, str]:
    """Return extension → type, from Python's own table, so that it does not depend on the machine."""
    return mimetypes.MimeTypes().types_map[True]


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*"), re.IGNORECASE)
