"""What the templates of the desk show of access, people and options: values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent.desk.views import FieldSet, FormField


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule of access, about an address in its spellings."""

    id: str
    addresses: tuple[str, ...]
    access: str
    user: str
    span: str
    lapses: datetime | None
    reason: str
    public_text: str
    by: str
    at: str
    is_soon: bool


@dataclass(frozen=True, slots=True)
class AccessPage:
    """`/access`: what is withheld, what is closed, what lapses."""

    rules: tuple[RuleRow, ...]
    closed: tuple[tuple[str, str, int], ...]
    fields: tuple[FormField, ...]
    state: str
    fault: str


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person of the archive."""

    key: str
    name: str
    role: str
    unix: str
    has_password: bool
    rights: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """`/people`: who may do what. `chosen` is the key of the person whose form is open, empty for a new one."""

    rows: tuple[PersonRow, ...]
    fields: tuple[FormField, ...]
    chosen: str
    state: str
    roles: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class PasswordPage:
    """`/password`: one's own password."""

    has_password: bool
    shortest: int


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`/feed`: whether the person has an address of the staff's feed; `address` is the one that was made just now."""

    has_feed: bool
    address: str


@dataclass(frozen=True, slots=True)
class OptionsPage:
    """`/options`: the archive's settings. `is_open`: they may be changed here."""

    sets: tuple[FieldSet, ...]
    state: str
    is_open: bool
    file: str
    fault: str
