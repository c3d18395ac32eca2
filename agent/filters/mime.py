"""Keeps documents by MIME type (/Fi-4/). filters/mime.toml: `include` and `exclude`, lists with `*` patterns.

A document is kept if its type matches an include (or no includes are given) and no exclude.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from agent.crawl.scope import is_wanted
from webarcfs.archive.config import validators
from webarcfs.archive.config.settings import Profile


class _Typed(Protocol):
    @property
    def mime_type(self) -> str: ...


def settings(table: Mapping[str, Any]) -> Profile:
    """Return the lists of a settings file (/Fi-4.1…4.3/). Raises ValueError with a line for each fault."""
    faults = [f"{key}: there is no such setting" for key in table if key not in ("include", "exclude")]
    lists: dict[str, Any] = {}
    for key in ("include", "exclude"):
        try:
            lists[key] = validators.list_of(validators.mime_pattern)(table.get(key, []))
        except ValueError as error:
            faults.append(f"{key}: {error}")
    if faults:
        raise ValueError("\n".join(faults))
    return Profile(**lists)


def keep(document: _Typed, settings: Profile) -> bool:
    """Return whether the document's type is wanted. Without rules, the type is not sniffed."""
    if not settings.include and not settings.exclude:
        return True
    return is_wanted(document.mime_type, settings)
