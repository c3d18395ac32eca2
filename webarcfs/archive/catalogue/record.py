"""A record: the description of one capture of a publication, with its state, its parts and its history. Pure.

A record describes one job. Its id is the job's name; `number` counts for people. A value says who or what set it, and
when. Times are CET.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from webarcfs.archive.catalogue.fields import BY_NUMBER, FIELDS
from webarcfs.archive.model.metadata import CommitTag, now

#: `Part.seen` of a snapshot of layout 1 on a domain of several publications: it saw what its own crawls stored.
OWN = "own"


class State(StrEnum):
    """How far a record is. Visibility to readers is not decided by it alone."""

    OPEN = "open"
    CANCELLED = "cancelled"
    EMPTY = "empty"  # its job published nothing
    CAPTURED = "captured"
    COUNTED = "counted"
    CONVERTED = "converted"
    INDEXED = "indexed"
    CHECKED = "checked"
    RELEASED = "released"
    REJECTED = "rejected"
    DISCARDED = "discarded"  # nobody sees what it captured, staff neither


class Occasion(StrEnum):
    """Whether a capture was due, or made for an occasion."""

    REGULAR = "regular"
    OCCASION = "occasion"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a field, the person or program that set it, and when; None: not known."""

    text: str
    by: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What a capture published on one domain: `seen` is the tree that its publication saw, empty for all of it.

    `is_held`: readers were not allowed to see it at once.
    """

    tag: CommitTag
    complete: bool
    seen: str = ""
    is_held: bool = False


#: Bytes of an attachment, at most. Documents of people are smaller; what is larger is a capture's own, or an addition.
LARGEST_ATTACHMENT = 20_000_000


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that documents what was captured, such as a contract or a letter. The catalogue has its bytes."""

    name: str
    bytes: int
    by: str
    at: datetime
    note: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a record: a step, an edit, a release, an interruption; `text` is the reason.

    `state` is the record's state from then on; None: as before.
    """

    what: str
    at: datetime
    by: str
    text: str = ""
    state: State | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record. `values` has the fields 1 to 73 by number, `measures` the fields 74 to 81 of each measure.

    `release` and `closed_for` are copied from the publication when its job began. `job` is the job that captures it,
    where the record was there before its job.
    """

    id: str
    number: int
    publication: str
    state: State
    occasion: Occasion = Occasion.REGULAR
    complete: bool = False
    release: str = "automatic"
    closed_for: str = ""
    job: str = ""
    title: Value = Value("")
    language: Value = Value("")
    access: Value = Value("")
    parts: tuple[Part, ...] = ()
    values: Mapping[int, Value] = field(default_factory=dict)
    measures: tuple[Mapping[int, Value], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def job_name(self) -> str:
        """The job that made it: its reports have this name."""
        return self.job or self.id

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that it has parts of, each once."""
        return tuple(dict.fromkeys(part.tag.domain for part in self.parts))

    @property
    def date(self) -> datetime | None:
        """The time of its earliest commitTag; None without a part."""
        return min((part.tag.crawl_time for part in self.parts), default=None)

    def as_fields(self) -> dict[str, str]:
        """Return what tables have of it: its head, and each field by its name."""
        head = {
            "id": self.id,
            "number": str(self.number),
            "publication": self.publication,
            "state": str(self.state),
            "complete": "yes" if self.complete else "no",
            "title": self.title.text,
        }
        return head | {each.name: self.text(each.number) for each in FIELDS if not each.repeats and each.number != 1}

    def text(self, number: int) -> str:
        """Return the text of a field; empty without a value."""
        value = self.values.get(number)
        return "" if value is None else value.text

    def for_readers(self, *, whole: bool = True) -> Record:
        """Return what readers see of it: neither persons, nor places of copies, nor attachments, nor its history.

        Not `whole`: nor what counts or names its documents, since readers may not see all of them.
        """
        public = {
            number for number, field in BY_NUMBER.items() if field.is_public and (whole or not field.is_about_documents)
        }
        shown = [{n: value for n, value in each.items() if n in public} for each in (self.values, *self.measures)]
        values, *measures = ({n: replace(value, by="") for n, value in each.items()} for each in shown)
        about = (replace(each, by="") for each in (self.title, self.language, self.access))
        title, language, access = about
        return replace(
            self, title=title, language=language, access=access, values=values, measures=tuple(measures),
            attachments=(), events=(),
        )  # fmt: skip

    def attachment(self, name: str) -> Attachment | None:
        """Return the attachment of a name; None without one."""
        return next((each for each in self.attachments if each.name == name), None)

    def with_attachment(self, name: str, attachment: Attachment | None) -> Record:
        """Return it with the attachment of this name, in place of one that it had; without it for None."""
        others = [each for each in self.attachments if each.name != name]
        found = sorted([*others, *([attachment] if attachment is not None else [])], key=lambda each: each.name)
        return replace(self, attachments=tuple(found))

    def with_values(self, texts: Mapping[int, str], by: str, at: datetime) -> Record:
        """Return it with these fields set; a text that is there already keeps its setter, an empty one is no value."""
        values = dict(self.values)
        for number, text in texts.items():
            if not text:
                values.pop(number, None)
            elif self.text(number) != text:
                values[number] = Value(text, by, at)
        return replace(self, values={number: values[number] for number in sorted(values)})

    def with_event(self, what: str, by: str, text: str = "", state: State | None = None) -> Record:
        """Return it with an event of now, in the state that follows."""
        event = Event(what, now(), by, text, state)
        return replace(self, events=(*self.events, event), state=state or self.state)


def publication_of(record_id: str) -> str:
    """Return the publication in the id of a record: `<time>-<publication>`, with `+…` after it for an import."""
    return record_id.partition("-")[2].partition("+")[0]
