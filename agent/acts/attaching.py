"""Files that people attach to snapshots, such as contracts and letters: put beside the record, taken away, read.

Each change is a commit in the catalogue by the person, with an event in the record. What is taken away or replaced
stays in the catalogue's history. Readers see none of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from io import IOBase
from typing import Final

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import LARGEST_ATTACHMENT, Attachment, Record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model import name_rules
from webarcfs.archive.model.errors import Busy, NameTooLong, NotFound, NotPermitted, UsageError
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system.whole_files import blob_id, size_of

#: Most attachments of a record, which has a line for each.
MOST: Final = 500
#: Longest note, in characters.
LONGEST_NOTE: Final = 2_000


def name_of(text: str) -> str:
    """Return the name of an attachment in one spelling. Raises UsageError."""
    name = unicodedata.normalize("NFC", text).strip()
    try:
        name_rules.check_attachment(name)
    except (NotPermitted, NameTooLong) as error:
        raise UsageError(str(error)) from None
    return name


def attach(
    archive: Archive,
    record_id: str,
    name: str,
    file: IOBase,
    acting: Acting,
    *,
    note: str = "",
    is_replacing: bool = False,
) -> Record:
    """Keep a whole file beside a record; return the record as it is then.

    The same bytes under the same name change nothing, but for a note. Raises UsageError for other bytes under a name
    that is taken, unless `is_replacing`, for a file that is too large, and for a name that no file may have; NotFound
    and Busy.
    """
    name, note = name_of(name), note.strip()
    size = size_of(file)
    if size > LARGEST_ATTACHMENT:
        most = f"{LARGEST_ATTACHMENT // 10**6} MB"
        raise UsageError(f"{name!r} has {size} bytes; a file that is attached to a record has {most} at most")
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has {LONGEST_NOTE} characters at most")
    catalogue = Catalogue(archive)
    blob = blob_id(file)

    def changed(record: Record) -> Record:
        known = record.attachment(name)
        is_same = known is not None and catalogue.attachment(record.id, name)[0] == blob
        if known is not None and is_same and note in ("", known.note):
            return record
        if known is not None and not is_same and not is_replacing:
            raise UsageError(
                f"{record.id} has another file {name!r}; give yours another name, or replace it (--replace)"
            )
        if known is None and len(record.attachments) >= MOST:
            raise UsageError(f"{record.id} has {MOST} attachments, which is all that a record can have")
        if not is_same and catalogue.write_file(file) != blob:
            raise Busy(f"{name!r} changed while it was read; nothing was attached")
        found = Attachment(name, size, acting.name, now(), note or (known.note if known is not None else ""))
        what = "attached" if known is None else "noted" if is_same else "replaced"
        return record.with_attachment(name, found).with_event(what, acting.name, _told(name, note))

    return _saved(catalogue, record_id, changed, acting, {name: blob})


def detach(archive: Archive, record_id: str, name: str, acting: Acting, reason: str) -> Record:
    """Take an attachment away from a record, for a reason; return the record as it is then. Raises NotFound, Busy."""
    name, reason = unicodedata.normalize("NFC", name).strip(), reason.strip()
    if not reason:
        raise UsageError("to take an attachment away needs a reason")

    def changed(record: Record) -> Record:
        if record.attachment(name) is None:
            raise NotFound(f"{record.id} has no attachment {name!r}; `webarc-agent record attachments` lists them")
        return record.with_attachment(name, None).with_event("detached", acting.name, _told(name, reason))

    return _saved(Catalogue(archive), record_id, changed, acting, {name: None})


def _told(name: str, text: str) -> str:
    return f"{name}: {text}" if text else name


def _saved(
    catalogue: Catalogue,
    record_id: str,
    change: Callable[[Record], Record],
    acting: Acting,
    files: dict[str, str | None],
) -> Record:
    attached = {(record_id, name): each for name, each in files.items()}
    return catalogue.change(
        record_id, change, acting.name, lambda each: f"{each.events[-1].what} {', '.join(files)}", attached=attached
    )
