"""access.aclj on disk: read by every gate, written by `webarc-agent withhold` and people's editors.

A file with faults closes all that it would decide about: SettingsError, until it is mended. Changes hold as soon as the
next decision.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from datetime import datetime

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import toml_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import spellings
from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.system import locks
from webarcfs.gate.access_rules import Access, AccessRule, AccessRules, parse, rule_key


class AccessFile:
    """The rules of an archive, read again when the file changes. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: tuple[int, int, int] | None = None
        self._rules = AccessRules()

    def rules(self) -> AccessRules:
        """Return the rules that hold now; none without the file. Raises SettingsError for faults, OSError."""
        try:
            found = os.stat(self._archive.access_rules)  # noqa: PTH116 # asked for each decision
        except FileNotFoundError:
            self._known = None
            self._rules = AccessRules()
            return self._rules
        identity = (found.st_ino, found.st_size, found.st_mtime_ns)
        if identity != self._known:
            self._rules = load(self._archive)
            self._known = identity
        return self._rules


def load(archive: Archive) -> AccessRules:
    """Return the rules of an archive; none without the file. Raises SettingsError for faults, OSError."""
    try:
        text = archive.access_rules.read_text("utf-8-sig")
    except FileNotFoundError:
        return AccessRules()
    except UnicodeDecodeError as error:
        raise SettingsError(str(archive.access_rules), [f"not UTF-8 at byte {error.start}"]) from None
    return parse(text, str(archive.access_rules))


def withhold(
    archive: Archive,
    url: str,
    person: str,
    reason: str,
    *,
    access: Access = Access.BLOCK,
    after: datetime | None = None,
    before: datetime | None = None,
    lapses: datetime | None = None,
    user: str = "",
    public_text: str = "",
    exact: bool = False,
) -> tuple[AccessRule, ...]:
    """Add a rule for each spelling of a URL, or one for all URLs that begin with it where it ends in `*`.

    `exact`: for this spelling alone. `reason` is for staff, `public_text` for readers. Return the rules, which share an
    id. Raises UrlRefused, SettingsError for a file with faults, OSError.
    """
    many = url.endswith("*")
    urls = (url,) if many or exact else (url, *spellings(url)[1:])
    keys = [rule_key(spelling.removesuffix("*"), exact=not many) for spelling in urls]
    at = format_time(now())
    name = hashlib.sha256(f"{keys[0]} {access} {user} {after} {before} {at}".encode()).hexdigest()[:8]
    rules = tuple(
        AccessRule(
            key=key, access=access, user=user, after=after, before=before, lapses=lapses,
            url=spelling, id=name, reason=reason, public_text=public_text, by=person, at=at,
        )
        for key, spelling in zip(keys, urls, strict=True)
    )  # fmt: skip
    _change(archive, lambda known: AccessRules((*known.rules, *rules)), person, f"withhold {url}: {reason}")
    return rules


def lift(archive: Archive, rule_id: str, person: str) -> tuple[AccessRule, ...]:
    """Remove the rules of an id, and return them; none if there are none."""
    lifted: list[AccessRule] = []

    def without(rules: AccessRules) -> AccessRules:
        lifted.extend(rule for rule in rules.rules if rule.id == rule_id)
        return AccessRules(tuple(rule for rule in rules.rules if rule.id != rule_id))

    _change(archive, without, person, f"lift {rule_id}")
    return tuple(lifted)


def _change(archive: Archive, change: Callable[[AccessRules], AccessRules], person: str, message: str) -> None:
    """Write the file, and keep a copy in the catalogue."""
    with locks.exclusive(archive.settings_lock):
        content = str(change(load(archive))).encode()
        toml_file.write(archive.access_rules, content)
        Catalogue(archive).save([], person, message, files={archive.access_rules.name: content})
