"""What the templates of the desk show of a snapshot's files: its logs, and what is attached to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webarcfs.room.views import Link


@dataclass(frozen=True, slots=True)
class LogPage:
    """A log of a snapshot, in pieces."""

    title: str
    back: Link
    text: str
    first: int
    previous: str
    following: str
    raw: str


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """A file that is attached to a snapshot."""

    name: str
    href: str
    bytes: int
    at: datetime
    by: str
    note: str


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """The files of a snapshot, the note that was typed for one that was not taken, and the most bytes of one."""

    rows: tuple[AttachmentRow, ...]
    note: str
    most: int
