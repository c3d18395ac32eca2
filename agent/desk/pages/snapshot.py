"""`/snapshot/<id>`: all that is known of a snapshot, its description as a form, and the buttons of its way.

Below it are the files that are attached to the snapshot (`attachment/<name>`), and the logs of its job and steps, as
text, in pieces (`log/<name>`).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import quote, urlencode

from starlette.responses import Response

from agent.catalogue import recording, stepfolders
from agent.crawl import job_state
from agent.crawl.job_folder import step_folder
from agent.desk.pages import fields, jobs, snapshots
from agent.desk.theme import words
from agent.desk.views import (
    AttachedFiles,
    AttachmentRow,
    Button,
    CheckRow,
    EventRow,
    FormField,
    LogPage,
    SnapshotLine,
    SnapshotPage,
)
from agent.desk.visit import NO_STORE, DeskVisit
from agent.operations import patching, records
from agent.operations.records import Measure
from agent.service import agent_status
from agent.steps import checking
from webarcfs.archive.catalogue import record_xml
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import (
    BY_NAME,
    BY_NUMBER,
    FIELDS,
    LARGEST_ATTACHMENT,
    Field,
    FieldNumber,
    Record,
    RecordState,
)
from webarcfs.archive.catalogue.workflow import (
    ABOUT,
    ORDER,
    RUNS,
    TABLE,
    Decision,
    Progress,
    Right,
    Way,
    WorkflowStep,
    judged,
    progress_of,
)
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Busy, Damaged, NotFound, UsageError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import clocks
from webarcfs.archive.system.files import size_of
from webarcfs.room import limits
from webarcfs.room.answering import StreamedAnswer
from webarcfs.room.pages import lists
from webarcfs.room.views import PageLink, Slice

# == attachments ======================================================================================================


_PIECE = 1 << 16


def shown(visit: DeskVisit, record: Record) -> AttachedFiles:
    """Return what the page of a snapshot shows of its attachments."""
    return AttachedFiles(tuple(_rows(record)), visit.typed("note", ""), LARGEST_ATTACHMENT)


def _rows(record: Record) -> Iterator[AttachmentRow]:
    for attachment in record.attachments:
        href = f"{snapshots.href_of(record.id)}/attachment/{quote(attachment.name, safe='')}"
        yield AttachmentRow(attachment.name, href, attachment.bytes, attachment.at, attachment.by, attachment.note)


def attach(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Take a file in. Raises UsageError for none, one that is too large, or one whose name is taken."""
    file, archive, record_id = visit.form.file, visit.desk.archive, path_params["record"]
    if file is None:
        raise _wrong(visit, words.msgid("Choose a file to attach."))
    if size_of(file.body) > LARGEST_ATTACHMENT:
        raise _wrong(visit, words.msgid("The file is too large: a file that is attached has 20 MB at most."))
    is_replacing = visit.form.one("replace") == "yes"
    records.attach(
        archive, record_id, file.name, file.body, visit.acting, note=visit.form.one("note"), is_replacing=is_replacing
    )
    return visit.led(snapshots.href_of(record_id), words.msgid("The file is attached."))


def detach(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Take a file away, for a reason."""
    reason = visit.form.one("reason")
    if not reason:
        raise _wrong(visit, words.msgid("Say why the file is removed."))
    records.detach(visit.desk.archive, path_params["record"], visit.form.one("name"), visit.acting, reason)
    return visit.led(
        snapshots.href_of(path_params["record"]), words.msgid("The file is removed. The history keeps it.")
    )


def download(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Give a file out, to be saved: whatever it is, the browser shows and runs nothing of it. Raises NotFound."""
    catalogue = Catalogue(visit.desk.archive)
    blob, size = catalogue.attachment(path_params["record"], path_params["name"])
    name = path_params["name"].encode("ascii", "replace").decode().translate({34: "_", 92: "_", 63: "_"})
    quoted = quote(path_params["name"], safe="")
    headers = {
        **NO_STORE,
        "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quoted}",
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


# == logs =============================================================================================================


_LINES, _LONGEST = 500, 2_000
#: What a report has beside its logs.
_ENDINGS = (".log", ".log.gz", ".json", ".txt", ".csv", ".tsv")


def of_record(archive: Archive, record: Record) -> Iterator[PageLink]:
    """Yield the logs of a snapshot."""
    for name, _ in _files(archive, record):
        yield PageLink(f"/snapshot/{quote(record.id, safe='')}/log/{quote(name, safe='/')}", name)


def _files(archive: Archive, record: Record) -> Iterator[tuple[str, Path]]:
    """Yield the logs with their names: those of the job, and `<step>/…` of each step."""
    folder = archive.reports / record.job_name
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from ((f"{path.name}/{file.name}", file) for file in sorted(path.iterdir()) if _is_log(file))
        elif _is_log(path):
            yield path.name, path


def _is_log(path: Path) -> bool:
    return path.is_file() and path.name.endswith(_ENDINGS) and not path.name.startswith(".")


def report_href(archive: Archive, job: str) -> str:
    """Return the path of a job's report; empty without one."""
    return f"/report/{quote(job, safe='')}" if (archive.reports / job).is_dir() else ""


def show_log(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show a piece of a log. Raises NotFound, Damaged."""
    record, _ = Catalogue(visit.desk.archive).read(path_params["record"])
    path = next((path for name, path in _files(visit.desk.archive, record) if name == path_params["log"]), None)
    if path is None:
        raise NotFound(f"{record.id} has no log {path_params['log']}")
    asked = visit.parameter("line")
    first = max(int(asked), 1) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else 1
    lines, is_more = _piece(path, first)
    view = LogPage(
        title=path_params["log"],
        back=PageLink(f"/snapshot/{quote(record.id, safe='')}", words.msgid("Back to the crawl")),
        text="\n".join(lines),
        first=first,
        previous=visit.with_parameters(line=max(first - _LINES, 1)) if first > 1 else "",
        following=visit.with_parameters(line=first + _LINES) if is_more else "",
    )
    return visit.page(view)


def _piece(path: Path, first: int) -> tuple[list[str], bool]:
    lines: list[str] = []
    opening = gzip.open if path.name.endswith(".gz") else open
    try:
        with opening(path, "rt", encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number >= first + _LINES:
                    return lines, True
                if number >= first:
                    lines.append(text.rstrip("\n")[:_LONGEST])
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    return lines, False


# == snapshot =========================================================================================================


#: Documents of a snapshot up to which the page counts those that no other one has.
_MOST_COUNTED = 100_000
#: Slices that are shown of a snapshot.
_SLICES = 15


def show(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Show the page of a snapshot; after a form that was not taken, with what was typed. Raises NotFound."""
    archive = visit.desk.archive
    with snapshots.open_tables(visit) as tables:
        row = tables.row(path_params["record"])
    record, blob = Catalogue(archive).read(path_params["record"])
    if row is None:
        raise NotFound(f"there is no crawl {path_params['record']}")
    line, way = snapshots.line(visit, row), snapshots.way_of(visit, row)
    at = progress_of(record, is_locked=line.is_locked)
    state_of_form = visit.form.token.state if visit.is_typed and visit.form.token.state else blob
    preview = f"{line.href}/preview" if record.parts else ""
    view = SnapshotPage(
        line=line,
        access=_access(record),
        way=tuple((words.EVENTS[TABLE[step].event], step in at.done or _is_past(step, record), step in way.set_up
                   or step is WorkflowStep.COUNT) for step in ORDER),
        buttons=tuple(_buttons(visit, record, at, way, line)),
        shared=_shared(visit, record),
        preview=preview,
        starts=tuple(_starts(record)),
        resources=record.resources,
        why=tuple(_why(visit, record)),
        failures=tuple(_failures(visit, record)),
        asked=tuple(words.STEPS[step] for step in RUNS if _is_asked(visit, record, step)),
        asked_now=jobs.asked(archive).get(record.id, ""),
        sets=fields.sets_of(visit, record, _groups()),
        blob=blob if visit.problem is not None and visit.problem.status == 409 else state_of_form,
        may_edit=visit.may(Right.DESCRIBE),
        checks=tuple(_checks(visit, record)),
        extensions=_extensions(record),
        compare=line.compare,
        others=f"/compare?{urlencode({'to': record.id})}" if record.parts else "",
        logs=tuple(of_record(archive, record)),
        events=tuple(EventRow(words.EVENTS.get(event.what, event.what), event.at, event.by, event.text)
                     for event in reversed(record.events)),
        orders=jobs.rows(archive, record.job_name, visit.language),
        exports=tuple(PageLink(f"{line.href}.{kind}", kind.upper()) for kind in ("xml", "json", "dc")),
        report=report_href(archive, record.job_name),
        measure=_measure(visit) if visit.may(Right.PROCESS) and record.parts else (),
        command=f"webarc-agent start --archive {archive.root}",
        has_agent=agent_status.running(archive) is not None,
        job=record.job_name if (archive.jobs / record.job_name).is_dir() else "",
        handover=_handover(visit, record),
        attachments=shown(visit, record),
        missing=tuple(jobs.lack_rows((lack.host, lack.word, lack.urls) for lack in record.missing)),
        again=f"/new?{urlencode({'publication': record.publication})}" if visit.may(Right.CAPTURE) else "",
    )  # fmt: skip
    return visit.page(view)


def _handover(visit: DeskVisit, record: Record) -> str:
    """Return the command that writes a snapshot for others to keep; empty for one without pages."""
    if not record.parts:
        return ""
    return f"webarc export --archive {visit.desk.archive.root} --record {record.id} --format bagit OUT"


def _is_past(step: WorkflowStep, record: Record) -> bool:
    places = list(ORDER.values())
    return record.state in places and places.index(record.state) >= places.index(ORDER[step])


def _access(record: Record) -> str:
    """Return who may see it now (a msgid)."""
    if record.state is RecordState.RELEASED:
        return words.msgid("Readers see it after its embargo") if record.closed_for else words.msgid("Readers see it")
    return words.msgid("Readers do not see it")


def _groups() -> list[tuple[str, tuple[Field, ...]]]:
    groups = groupby(
        (field for field in FIELDS if not field.repeats and field.number not in (1, 21)), lambda field: field.group
    )
    return [(number, tuple(members)) for number, members in groups]


def _buttons(visit: DeskVisit, record: Record, at: Progress, way: Way, line: SnapshotLine) -> Iterator[Button]:
    """Yield what the person may do with it now, the one step that leads on first."""
    if line.next is not None:
        yield line.next
    if (patch_button := snapshots.patch_button(visit, record)) is not None:
        yield patch_button
    wanted = (
        *RUNS,
        WorkflowStep.RELEASE,
        WorkflowStep.REJECT,
        WorkflowStep.REOPEN,
        WorkflowStep.WITHDRAW,
        WorkflowStep.DISCARD,
        WorkflowStep.RESTORE,
        WorkflowStep.CANCEL,
    )
    for step in wanted:
        if line.next is not None and line.next.text == words.STEPS[step]:
            continue
        for again in (False, True) if step in ORDER else (False,):
            verdict = judged(step, at, way, visit.rights, person=visit.person.name, reason="some", again=again)
            is_way = step not in ORDER or step in way.set_up or again
            is_backup = step is not WorkflowStep.BACKUP or way.backs_up
            if verdict.is_allowed and is_way and is_backup and not _is_asked(visit, record, step):
                button = snapshots.button_of(record.id, record.state, step, again=again)
                needs = step is WorkflowStep.RELEASE and not at.passed
                yield Button(
                    text=button.text, action=button.action, state=button.state, more=button.more,
                    asks_reason=button.asks_reason or needs, is_final=button.is_final, is_main=needs,
                )  # fmt: skip
                break


def _is_asked(visit: DeskVisit, record: Record, step: WorkflowStep) -> bool:
    return (visit.desk.archive.jobs / step_folder(record.id, step)).is_dir()


def _shared(visit: DeskVisit, record: Record) -> tuple[int, int] | None:
    """Return how many documents the snapshot shares with others, and how many are its own; None: not counted."""
    documents = record.text(FieldNumber.FILES)
    if record.state is not RecordState.RELEASED or not documents.isdecimal() or int(documents) > _MOST_COUNTED:
        return None
    if not visit.may(Right.WITHDRAW):
        return None
    services = visit.desk.services()

    def counted() -> tuple[int, int]:
        shared = own = 0
        for part in record.parts:
            seq = int(part.tag.crawl_time.timestamp())
            seqs = services.gate.facts(part.tag.domain).seqs
            later = next((other_seq for other_seq in seqs if other_seq > seq), None)
            for row in services.index.of_snapshot(part.tag.domain, seq):
                is_own = row.first == seq and (later is None or row.last <= later)
                own, shared = own + is_own, shared + (not is_own)
        return shared, own

    return visit.desk.kept(("shared", record.id, services.gate.state), counted)


def _starts(record: Record) -> Iterator[PageLink]:
    for tag in record.newest_tags:
        yield PageLink(f"{snapshots.href_of(record.id)}/preview?{urlencode({'domain': tag.domain})}", tag.domain)


def _why(visit: DeskVisit, record: Record) -> Iterator[str]:
    """Yield why it is incomplete, or what was noted when it was fetched."""
    for folder in (visit.desk.archive.reports / record.job_name, visit.desk.archive.jobs / record.job_name):
        with suppress(Damaged, OSError):
            known = job_state.load(folder)
            if known is not None:
                yield from known.warnings[:20]
                if known.reason:
                    yield known.reason
                return


def _failures(visit: DeskVisit, record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield the steps that failed: step, reason, when it is tried again."""
    for step in RUNS:
        failure = stepfolders.failure(visit.desk.archive, step_folder(record.id, step))
        if failure is not None:
            yield words.STEPS[step], failure.reason, failure.again


def _checks(visit: DeskVisit, record: Record) -> Iterator[CheckRow]:
    waiting = records.looks(visit.desk.archive, record) if progress_of(record).looks_wanted else []
    for page in waiting:
        name = checking.name_of(page)
        href = f"{snapshots.href_of(record.id)}/preview?{urlencode({'url': page.url})}"
        yield CheckRow(name, name, href, page.url if record.parts else "")
    for number in (62, 63):
        for text in filter(None, record.text(number).split("; ")):
            yield CheckRow(text)


def _extensions(record: Record) -> tuple[Slice, ...]:
    counts = sorted(recording.parsed(record.text(FieldNumber.FILES_BY_EXTENSION)).items(), key=lambda pair: -pair[1])
    return tuple(Slice(name, count, 0) for name, count in counts[:_SLICES])


def _measure(visit: DeskVisit) -> tuple[FormField, ...]:
    return tuple(
        fields.of_field(visit, BY_NUMBER[number], visit.typed(BY_NUMBER[number].name, "")) for number in range(76, 82)
    )


# -- what its forms do -------------------------------------------------------------------------------------------------


def save(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Change the description: the fields that were sent and differ. Raises Busy where somebody else was faster."""
    record, blob = Catalogue(visit.desk.archive).read(path_params["record"])
    names = {*BY_NAME, *ABOUT}
    sent = {name: values[-1].strip() for name, values in visit.form.fields.items() if name in names}
    known = {name: getattr(record, name).text if name in ABOUT else record.text(BY_NAME[name].number) for name in sent}
    changes = {name: text for name, text in sent.items() if text != known[name].strip()}
    if visit.form.token.state != blob:
        _must_be_mine(visit, changes)
    if changes:
        records.edit(visit.desk.archive, record.id, changes, visit.acting, blob)
    message = words.msgid("The description was saved.") if changes else words.msgid("Nothing was different.")
    return visit.led(snapshots.href_of(record.id), message)


def _must_be_mine(visit: DeskVisit, changes: Mapping[str, str]) -> None:
    """Raises Busy where a form was made from another state of the record, and would change it."""
    if changes:
        raise Busy(visit.desk.said(words.msgid(
            "Somebody else changed this description meanwhile. The fields have your input, with the present values "
            "beneath. Save again to take yours."), visit.language))  # fmt: skip


def _decision(decision: Decision, done: str) -> object:
    def decided(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
        expected = _expected(visit)
        records.decide(
            visit.desk.archive,
            path_params["record"],
            decision,
            visit.acting,
            visit.form.one("reason"),
            expected=expected,
        )
        back = visit.form.one("back")
        return visit.led(back if back in ("/", "/snapshots") else snapshots.href_of(path_params["record"]), done)

    return decided


def _expected(visit: DeskVisit) -> RecordState | None:
    state = visit.form.token.state
    return RecordState(state) if state in set(RecordState) else None


release = _decision(Decision.RELEASE, words.msgid("It is released; readers see it."))
reject = _decision(Decision.REJECT, words.msgid("It is rejected."))
reopen = _decision(Decision.REOPEN, words.msgid("The rejection is taken back."))
withdraw = _decision(Decision.WITHDRAW, words.msgid("It is withdrawn; readers do not see it any more."))
discard = _decision(Decision.DISCARD, words.msgid("It is discarded; nobody sees what it captured."))
restore = _decision(Decision.RESTORE, words.msgid("It is restored, in the state before it was discarded."))


def cancel(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Give a capture up that has not begun."""
    records.cancel(visit.desk.archive, path_params["record"], visit.acting, visit.form.one("reason"))
    return visit.led(snapshots.href_of(path_params["record"]), words.msgid("It is cancelled."))


def step(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Ask for a step."""
    word = visit.form.one("step")
    if word not in {str(step) for step in RUNS}:
        raise UsageError(f"there is no step {word!r}")
    record = _record_as_seen(visit, path_params["record"])
    records.ask(visit.desk.archive, record.id, WorkflowStep(word), visit.acting, again=visit.form.one("again") == "yes")
    return _asked_for(visit, record)


def patch(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Request again what a crawl did not get, or one page of that."""
    archive = visit.desk.archive
    record = _record_as_seen(visit, path_params["record"])
    url = visit.form.one("url")
    with clocks.under(clocks.Deadline(limits.SECONDS)):
        planned = patching.plan(
            archive, visit.desk.settings(), record.job_name, url=url, acting=visit.acting, counts=False
        )
    if not planned.urls:
        return visit.led(snapshots.href_of(record.id), words.msgid("Nothing is missing that failed."))
    patching.begin(archive, planned)
    return _asked_for(visit, record)


def _record_as_seen(visit: DeskVisit, record_id: str) -> Record:
    """Return a record in the state in which the person saw it. Raises UsageError if it has another one by now."""
    record, _ = Catalogue(visit.desk.archive).read(record_id)
    expected = _expected(visit)
    if expected is not None and record.state is not expected:
        raise UsageError(f"{record.id} is {record.state} by now; nothing was done")
    return record


def _asked_for(visit: DeskVisit, record: Record) -> Response:
    """Lead back to a crawl for which the agent has work now."""
    if agent_status.running(visit.desk.archive) is not None:
        return visit.led(snapshots.href_of(record.id), words.msgid("It was asked for; the agent does it."))
    return visit.led(snapshots.href_of(record.id), words.msgid("It was asked for, and waits for an agent."))


def look(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Keep what a look at a reference page showed."""
    is_good = visit.form.one("found") == "good"
    remark = visit.form.one("remark")
    if not is_good and not remark:
        raise UsageError(visit.desk.said(words.msgid("Say what is wrong with the page."), visit.language))
    page = visit.form.one("page")
    records.look(visit.desk.archive, path_params["record"], page, visit.acting, is_good=is_good, remark=remark)
    return visit.led(snapshots.href_of(path_params["record"]), words.msgid("The look was kept."))


def measure(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Keep a measure of preservation."""
    form = visit.form
    if not form.one("measureKind"):
        raise UsageError(visit.desk.said(words.msgid("Say in a word what the measure was."), visit.language))
    size = form.one("measureBytes")
    if size and not (size.isascii() and size.isdecimal() and len(size) < 19):
        raise UsageError(visit.desk.said(words.msgid("The bytes are a number."), visit.language))
    taken = Measure(
        kind=form.one("measureKind"),
        description=form.one("measureDescription"),
        software=form.one("measureSoftware"),
        parameters=form.one("measureParameters"),
        size=int(size) if size else None,
        remarks=form.one("measureRemarks"),
        readers_see=form.one("readers") == "yes",
    )
    records.measure(visit.desk.archive, path_params["record"], taken, visit.acting)
    return visit.led(snapshots.href_of(path_params["record"]), words.msgid("The measure was kept."))


# -- the record as a file ----------------------------------------------------------------------------------------------


def exported(visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
    """Return the record with all that is known: `xml`, `json` or `dc`."""
    record, _ = Catalogue(visit.desk.archive).read(path_params["record"])
    kind = path_params["kind"]
    if kind == "json":
        body, media = json.dumps(record.as_fields(), ensure_ascii=False, indent=1).encode(), "application/json"
    elif kind == "dc":
        institution = visit.desk.settings().describe.institution
        body, media = record_xml.write_dublin_core(record, institution), "application/xml"
    else:
        body, media = record_xml.write(record), "application/xml"
    return Response(body, media_type=media, headers=dict(NO_STORE))


def start_of(visit: DeskVisit, record: Record, domain: str, url: str) -> tuple[CommitTag, str]:
    """Return the snapshot and the URL with which a preview begins. Raises NotFound."""
    tags = {tag.domain: tag for tag in record.newest_tags}
    if url:
        host = url.partition("://")[2].partition("/")[0]
        if host in tags:
            return tags[host], url
    for start in lists.publication_urls(visit.desk.services(), record.publication):
        host = start.partition("://")[2].partition("/")[0]
        if host in tags and domain in ("", host):
            return tags[host], start
    tag = tags.get(domain) or next(iter(tags.values()), None)
    if tag is None:
        raise NotFound(f"{record.id} has no pages")
    return tag, lists.root_of(visit.desk.services(), tag)
