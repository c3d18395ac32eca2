"""`/snapshot/<id>/attachment/<name>`: the files that are attached to a snapshot, taken in, removed, and given out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from tempfile import TemporaryFile
from urllib.parse import quote

from starlette.responses import Response

from agent.acts import attaching
from agent.desk.file_views import AttachedFiles, AttachmentRow
from agent.desk.look import words
from agent.desk.pages import lines
from agent.desk.shared.visit import NO_STORE, DeskVisit
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import LARGEST_ATTACHMENT, Record
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system.whole_files import size_of
from webarcfs.room.answering import StreamedAnswer

_PIECE = 1 << 16


def shown(visit: DeskVisit, record: Record) -> AttachedFiles:
    """Return what the page of a snapshot shows of its attachments."""
    return AttachedFiles(tuple(_rows(record)), visit.typed("note", ""), LARGEST_ATTACHMENT)


def _rows(record: Record) -> Iterator[AttachmentRow]:
    for each in record.attachments:
        href = f"{lines.href_of(record.id)}/attachment/{quote(each.name, safe='')}"
        yield AttachmentRow(each.name, href, each.bytes, each.at, each.by, each.note)


def attach(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Take a file in. Raises UsageError for none, one that is too large, or one whose name is taken."""
    file, archive, record_id = visit.form.file, visit.desk.archive, said["record"]
    if file is None:
        raise _wrong(visit, words.msgid("Choose a file to attach."))
    if size_of(file.body) > LARGEST_ATTACHMENT:
        raise _wrong(visit, words.msgid("The file is too large: a file that is attached has 20 MB at most."))
    is_replacing = visit.form.one("replace") == "yes"
    attaching.attach(
        archive, record_id, file.name, file.body, visit.acting, note=visit.form.one("note"), is_replacing=is_replacing
    )
    return visit.led(lines.href_of(record_id), words.msgid("The file is attached."))


def detach(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Take a file away, for a reason."""
    reason = visit.form.one("reason")
    if not reason:
        raise _wrong(visit, words.msgid("Say why the file is removed."))
    attaching.detach(visit.desk.archive, said["record"], visit.form.one("name"), visit.acting, reason)
    return visit.led(lines.href_of(said["record"]), words.msgid("The file is removed. The history keeps it."))


def download(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Give a file out, to be saved: whatever it is, the browser shows and runs nothing of it. Raises NotFound."""
    catalogue = Catalogue(visit.desk.archive)
    blob, size = catalogue.attachment(said["record"], said["name"])
    name = said["name"].encode("ascii", "replace").decode().translate({34: "_", 92: "_", 63: "_"})
    headers = {
        **NO_STORE,
        "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(said['name'], safe='')}",
        "Content-Length": str(size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamedAnswer(_pieces(catalogue, blob), headers=headers, media_type="application/octet-stream")


def _pieces(catalogue: Catalogue, blob: str) -> Generator[bytes, None, None]:
    with TemporaryFile() as file:
        catalogue.copy(blob, file.fileno())
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece


def _wrong(visit: DeskVisit, text: str) -> UsageError:
    return UsageError(visit.desk.said(text, visit.language))
