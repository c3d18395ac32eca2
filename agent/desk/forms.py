"""What a browser sent with a form: its fields, cleaned, and what its token says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import IOBase
from urllib.parse import parse_qsl

from agent.desk import limits
from webarcfs.archive.model.errors import UsageError

TOKEN = "token"  # noqa: S105 # the name of a field
#: Fields that are never shown again, nor kept over a login.
SECRET = frozenset({TOKEN, "password", "again", "before"})
_KIND = "application/x-www-form-urlencoded"
#: Characters that XML and TOML have no place for.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FormToken:
    """What a form's token says. `is_ours`: the key of this start signed it, for this session and action."""

    mark: str
    state: str
    is_ours: bool


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that was sent with a form, under the name that the browser told. It is gone when the answer is made."""

    name: str
    body: IOBase


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form, in their order. `token` is set when the form's token was read."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    token: FormToken = FormToken("", "", False)
    file: SentFile | None = None

    def one(self, name: str) -> str:
        """Return the last value of a field, without blanks around it; empty without the field."""
        return self.fields.get(name, ("",))[-1].strip()

    def raw(self, name: str) -> str:
        """Return the last value of a field as it was typed."""
        return self.fields.get(name, ("",))[-1]

    def all(self, name: str) -> tuple[str, ...]:
        """Return the values of a field."""
        return self.fields.get(name, ())

    def has(self, name: str) -> bool:
        """Return whether the field was sent."""
        return name in self.fields

    def typed(self) -> list[tuple[str, str]]:
        """Return what may be kept and shown again."""
        return [(name, value) for name, values in self.fields.items() if name not in SECRET for value in values]


def parse(body: bytes, kind: str) -> Form:
    """Return the form of a body. Raises UsageError for what is no form, or too many fields."""
    if kind.partition(";")[0].strip().lower() != _KIND:
        raise UsageError("a form of this page was expected")
    try:
        pairs = parse_qsl(
            body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=limits.FIELDS, errors="replace"
        )
    except ValueError:
        raise UsageError(f"a form has {limits.FIELDS} fields at most") from None
    return of_pairs(pairs)


def of_pairs(pairs: list[tuple[str, str]], file: SentFile | None = None) -> Form:
    """Return the form of names and values, and of a file."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(clean(name), []).append(clean(value))
    return Form({name: tuple(values) for name, values in found.items()}, file=file)


def clean(text: str) -> str:
    """Return a text with line ends as Unix has them, and without control characters."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
