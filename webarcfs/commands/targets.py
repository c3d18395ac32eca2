"""The arguments of a reader's command: a document by its URL or path, a snapshot by its commitTag."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, arc_path, second_name, split
from webarcfs.archive.model.errors import Damaged, UrlRefused, UsageError
from webarcfs.archive.model.metadata import CET, CommitTag
from webarcfs.archive.model.url import canonical
from webarcfs.commands.place import Place


@dataclass(frozen=True, slots=True)
class Target:
    """A document: its domain's repository, and its ARC's path in it."""

    store: Repository
    domain: str
    arc: str
    url: str = ""  # where it was named by its URL


def document(place: Place, text: str) -> Target:
    """Return the document of a URL, of a path in metadata (`/www.example.org/index.html`), or of one below the mount.

    It need not be in any snapshot. Raises UsageError for any other text, NotFound for a domain that is not in the
    archive.
    """
    if "://" in text:
        try:
            domain, arc = split(arc_path(url := canonical(text)))
        except UrlRefused as error:
            raise UsageError(f"{text}: {error}") from None
        store = place.repository(domain)
        head, second = store.head(), second_name(arc, url)
        if head is not None and store.find(head.tree, f"{second}/{DATA_XML}") is not None:
            arc = second
    else:
        url = ""
        domain, arc = split(_inside(place, text))
    arc = arc.strip("/")
    if not arc or any(part in ("", ".", "..") for part in (domain, *arc.split("/"))):
        raise UsageError(f"{text!r} names no document; give a URL, or a path such as /www.example.org/index.html")
    return Target(place.repository(domain), domain, arc, url)


def tag(place: Place, text: str) -> tuple[CommitTag, Repository]:
    """Return the snapshot of a commitTag's text, which need not exist, and its domain's repository.

    Raises NotFound, or Forbidden, for one that the reader may not see.
    """
    try:
        found = CommitTag.parse(text)
    except Damaged as error:
        raise UsageError(str(error)) from None
    store = place.repository(found.domain)
    place.must_be_open(found)
    return found, store


def moment(place: Place, text: str | None) -> CommitTag | datetime | None:
    """Return the snapshot or the time, in CET without a zone, that a text spells; None without one.

    Raises UsageError for any other text, NotFound or Forbidden for a snapshot that the reader may not see.
    """
    if text is None:
        return None
    try:
        if "@" in text:
            tag = CommitTag.parse(text)
            place.must_be_open(tag)
            return tag
        time = datetime.fromisoformat(text)
    except (ValueError, Damaged):
        raise UsageError(f"{text!r} is no commitTag and no time, as 2026-11-21 or 2026-11-21T03:00:00") from None
    return time if time.tzinfo else time.replace(tzinfo=CET)


def _inside(place: Place, text: str) -> str:
    """Turn a path below the mount into one in the archive."""
    if place.mount is not None:
        path = Path(text).absolute()
        if path.is_relative_to(place.mount):
            return str(path.relative_to(place.mount))
    return text
