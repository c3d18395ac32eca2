"""What a browser sent with a form: its fields, cleaned, and what its token says. Pure.

The bounds of the desk come first, in one place, so that an administrator finds them together; those of the room's
server hold for its connections beside them. Sizes are bytes and times are seconds, where nothing else is said. Ticks in
a long list are numbers of snapshots, written short for a URL, such as `3,7-12`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import IOBase
from typing import Final, cast

from starlette.datastructures import UploadFile

from webarcfs.archive.catalogue.record import LARGEST_ATTACHMENT

# == limits, pure =====================================================================================================


#: Largest body of a form (413 beyond), and the time in which it must be there (408 beyond).
BODY_BYTES: Final = 256 * 1024
BODY_SECONDS: Final = 15.0
#: The same for the form with a file, of who may attach one: the file is 20 MB at most. It is read as a stream.
UPLOAD_BYTES: Final = LARGEST_ATTACHMENT + BODY_BYTES
UPLOAD_SECONDS: Final = 300.0
#: Bytes of a file that are kept in memory; more go to a temporary file.
UPLOAD_IN_MEMORY: Final = 1 << 20
#: Most fields of a form.
FIELDS: Final = 2_000

#: A session ends when nothing was asked for so long, and in any case after the second time.
IDLE_SECONDS: Final = 12 * 3600
LONGEST_SECONDS: Final = 24 * 3600
#: Most sessions that are open, in all and of a person. One whose cookie never came back goes first, then the one that
#: was idle longest; in all, it is one of the person who has most.
SESSIONS: Final = 1_000
SESSIONS_OF_PERSON: Final = 50
#: Forms of a session that were sent, of which a second copy is recognised.
SENT: Final = 5_000
#: A preview is valid so long.
PREVIEW_SECONDS: Final = 3600

#: Shortest and longest password, in characters.
PASSWORD_SHORTEST: Final = 10
PASSWORD_LONGEST: Final = 500

#: Rows of a page of a list, and of each part of Today.
ROWS: Final = 50
TODAY_ROWS: Final = 10
#: Snapshots that one form may release or change.
AT_ONCE: Final = 500
#: Days in which Today reports what is over: incomplete and empty captures, rules that lapse.
DAYS: Final = 30

#: Seconds between two looks at the running jobs, for all that watch; and most that watch.
WATCH_SECONDS: Final = 1.0
WATCHERS: Final = 500
#: Seconds after which a watcher hears something, so that a broken connection is noticed.
WATCH_QUIET: Final = 15.0


# == ticks, pure ======================================================================================================


def read(text: str) -> frozenset[int]:
    """Return the numbers that a text names, as many as one form may; what is none is left out."""
    numbers: set[int] = set()
    for part in text[:20_000].split(","):
        first, dash, last = part.partition("-")
        if not (_is_number(first) and (not dash or _is_number(last))):
            continue
        low, high = int(first), int(last if dash else first)
        numbers |= set(range(low, min(high + 1, low + AT_ONCE)))
        if len(numbers) >= AT_ONCE:
            break
    return frozenset(sorted(numbers, reverse=True)[:AT_ONCE])


def written(numbers: Iterable[int]) -> str:
    """Return numbers as a short text."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


# == forms, pure ======================================================================================================


TOKEN = "token"  # noqa: S105 # the name of a field
#: Fields that are never shown again, nor kept over a login.
SECRET = frozenset({TOKEN, "password", "again", "before"})
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
    """A file that was sent with a form, under the name that the browser gave. It is gone when the answer is made."""

    name: str
    body: IOBase


@dataclass(frozen=True, slots=True)
class SentForm:
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


def of_pairs(pairs: Iterable[tuple[str, str | UploadFile]]) -> SentForm:
    """Return the form of names and values. A file that nobody chose is none."""
    values_by_name: dict[str, list[str]] = {}
    file = None
    for name, value in pairs:
        if isinstance(value, str):
            values_by_name.setdefault(clean(name), []).append(clean(value))
        elif value.filename:
            base_name = clean(value.filename).replace("\\", "/").rpartition("/")[2]
            file = SentFile(base_name.replace("%22", '"'), cast(IOBase, value.file))  # as browsers escape it
        else:
            value.file.close()
    return SentForm({name: tuple(values) for name, values in values_by_name.items()}, file=file)


def clean(text: str) -> str:
    """Return a text with line ends as Unix has them, and without control characters."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
