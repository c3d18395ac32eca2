"""The lists of the desk as files: `<list>.csv` and `<list>.json` have all of a list, not one page of it.

`LISTS` has each list with its path and the right that its page asks for. A template names the paths of its lists with
`parts.taken(…)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from agent.crawl.job_folder import publication_of
from agent.desk.pages import finished_jobs, jobs, program_tokens, registers, settings_pages, snapshots
from agent.desk.visit import NO_STORE, DeskVisit
from agent.reports import missing_urls, shown_pages, tables
from agent.service import scheduler
from agent.service.agent_status import state_word
from webarcfs.access import access_rules
from webarcfs.archive.catalogue import formats
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.formats import Format
from webarcfs.archive.catalogue.record import FIELDS, Record
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import format_time, from_epoch, now
from webarcfs.archive.system import files
from webarcfs.web.table_files import MEDIA_TYPES, MOST_ROWS, TableFile

#: Returns a list, all of it; it has the parameters of the page, and what its path says.
ListReader = Callable[[DeskVisit, Mapping[str, str]], TableFile]


@dataclass(frozen=True, slots=True)
class TakenList:
    """A list that can be taken away: its path without the ending, and the right to look at it (None: all may)."""

    name: str
    path: str
    read: ListReader
    looks: Right | None = None

    def answer(self, visit: DeskVisit, path_params: Mapping[str, str]) -> Response:
        """Return the list as a file of the kind that the path says. Raises TooMany, NotFound, Damaged."""
        kind = path_params["ending"]
        body = self.read(visit, path_params).written(kind)
        file = f"{self.path.rpartition('/')[2]}.{kind}"
        headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{file}"'}
        return Response(body, media_type=MEDIA_TYPES[kind], headers=headers)


def _text(time: datetime | None) -> str:
    return "" if time is None else format_time(time)


# -- crawls ------------------------------------------------------------------------------------------------------------


def _crawls(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    parameters = snapshots.parameters_of(visit.query.decode("latin-1"))
    columns = ("number", "snapshot", "publication", "title", "domain", "date", "state", "complete", "type", "occasion",
               "documents", "bytes", "closed_for")  # fmt: skip
    with snapshots.open_tables(visit) as catalogue:
        is_oldest = parameters.get("order") == "oldest"
        records = catalogue.listed(snapshots.chosen_of(parameters), limit=MOST_ROWS + 1, oldest=is_oldest)
    return TableFile(columns, (
        (record.number, record.id, record.publication, record.title, record.domain, format_time(record.date),
         str(record.state), record.complete, "occasion" if record.is_occasion else "regular", record.reason,
         record.documents, record.bytes, record.closed_for)
        for record in records
    ))  # fmt: skip


def _record(visit: DeskVisit, path_params: Mapping[str, str]) -> Record:
    return Catalogue(visit.desk.archive).read(path_params["record"])[0]


def _fields(visit: DeskVisit, path_params: Mapping[str, str]) -> TableFile:
    record = _record(visit, path_params)
    values = record.as_fields()
    rows = ((field.number, field.name, values.get(field.name, "")) for field in FIELDS)
    return TableFile(("number", "field", "value"), rows)


def _history(visit: DeskVisit, path_params: Mapping[str, str]) -> TableFile:
    events = _record(visit, path_params).events[::-1]
    rows = ((format_time(event.at), event.what, event.by, event.warrant.role, event.text) for event in events)
    return TableFile(("at", "what", "by", "role", "text"), rows)


def _attachments(visit: DeskVisit, path_params: Mapping[str, str]) -> TableFile:
    attachments = _record(visit, path_params).attachments
    rows = ((file.name, file.bytes, format_time(file.at), file.by, file.note) for file in attachments)
    return TableFile(("name", "bytes", "at", "by", "note"), rows)


# -- jobs --------------------------------------------------------------------------------------------------------------


def _running(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    columns = ("job", "publication", "state", "done", "known", "documents", "bytes", "ends_by", "reason")
    return TableFile(columns, (
        (job.job, job.publication or publication_of(job.job), state_word(job), job.done, job.known, job.documents,
         job.bytes, job.latest_end, job.reason)
        for job in visit.desk.history().open
    ))  # fmt: skip


def _finished(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    columns = ("job", "publication", "begun", "kind", "result", "documents", "added", "changed", "removed", "bytes",
               "failures", "why", "host_reason")  # fmt: skip
    return TableFile(columns, (
        (ended.job, publication_of(ended.job), _text(jobs.begun_at(ended.job)), ended.kind, ended.result,
         ended.documents, ended.added, ended.changed, ended.removed, ended.bytes, ended.failures, ended.why,
         ended.host_reason)
        for ended in finished_jobs.read_ended(visit, MOST_ROWS + 1)
    ))  # fmt: skip


def _report(visit: DeskVisit, path_params: Mapping[str, str]) -> TableFile:
    """Return the tables of a report in one: what came and what did not, by status, type, size, host and reason."""
    archive, job = visit.desk.archive, path_params["job"]
    folder = jobs.report_folder(archive, job)
    counted = tables.Tables()
    with suppress(NotFound):  # a report without a log
        for line in missing_urls.lines(archive, job):
            counted.add(line)
    rows: list[Sequence[object]] = [
        (name, key, row.urls, row.bytes) for name, table in counted.sorted() for key, row in table
    ]
    lacks = jobs.lacks_of(visit, job, files.read_json(folder / "summary.json") or {})
    rows += [("missing", f"{host} {word}".strip(), urls, None) for host, word, urls in lacks.rows]
    return TableFile(("table", "key", "urls", "bytes"), rows)


def _pages(visit: DeskVisit, path_params: Mapping[str, str]) -> TableFile:
    """Return the pages that a browser showed, those that lack most first."""
    pages = shown_pages.worst_first(shown_pages.read(jobs.report_folder(visit.desk.archive, path_params["job"])))
    columns = ("url", "shown", "requests", "refused", "missed", "noted")
    return TableFile(
        columns,
        ((page.url, not page.has_failed, page.requests, page.refused, page.missed, page.words) for page in pages),
    )


# -- settings and registers --------------------------------------------------------------------------------------------


def _publications(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    columns = ("publication", "description", "addresses", "interval", "retired", "next", "crawls", "last")
    publications = settings_pages.fitting(visit)
    with snapshots.open_tables(visit) as catalogue:
        newest = catalogue.newest(tuple(publication.name for publication in publications))
    past, at = visit.desk.history(), now()

    def rows() -> Iterator[Sequence[object]]:
        for publication in publications:
            runs = past.runs.get(publication.name, ())
            count, last = newest.get(publication.name, (0, None))
            yield (
                publication.name, publication.description, " ".join(publication.named_urls),
                str(publication.crawl.interval), bool(publication.retired),
                "" if publication.retired else _text(scheduler.next_due(publication, runs, at)),
                count, "" if last is None else _text(from_epoch(last)),
            )  # fmt: skip

    return TableFile(columns, rows())


def _formats(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    known = formats.known(visit.desk.archive)
    counted = registers.counts_of(visit)
    risky = set(formats.unreadable(known, counted))
    columns = ("extension", "files", "name", "puid", "mime_type", "made_by", "read_by", "at_risk")

    def rows() -> Iterator[Sequence[object]]:
        for extension in sorted(counted.keys() | known.keys(), key=lambda name: (-counted[name], name)):
            file_format = known.get(extension, Format())
            yield (extension, counted[extension], file_format.name, file_format.puid, file_format.mime_type,
                   file_format.made_by, file_format.read_by, extension in risky)  # fmt: skip

    return TableFile(columns, rows())


def _types(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    known = sorted(formats.known_types(visit.desk.archive).items())
    rows = ((name, media_type.description, media_type.extension) for name, media_type in known)
    return TableFile(("type", "description", "extension"), rows)


def _programs(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    programs = registers.programs_of(visit)
    rows = ((program.name, program.version, program.maker, program.path) for program in programs)
    return TableFile(("program", "version", "maker", "path"), rows)


# -- access ------------------------------------------------------------------------------------------------------------


def _rules(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    columns = ("id", "address", "access", "user", "captured_from", "captured_until", "ends", "reason", "public_text",
               "by", "role", "at")  # fmt: skip
    rules = access_rules.load_for_staff(visit.desk.archive).rules
    return TableFile(columns, (
        (rule.id, rule.url or rule.key, str(rule.access), rule.user, _text(rule.after), _text(rule.before),
         _text(rule.lapses), rule.reason, rule.public_text, rule.by, rule.role, rule.at)
        for rule in rules
    ))  # fmt: skip


def _people(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    """Return the persons; of passwords and feeds, whether there is one."""
    rows = (
        (
            person.key,
            person.name,
            " ".join(map(str, person.roles)),
            person.unix,
            bool(person.password),
            bool(person.feed),
        )
        for person in visit.desk.persons.all().values()
    )
    return TableFile(("key", "name", "roles", "login", "has_password", "has_feed"), rows)


def _tokens(visit: DeskVisit, _: Mapping[str, str]) -> TableFile:
    columns = ("person", "name", "scopes", "may", "made", "expires", "used", "address")
    return TableFile(columns, (
        (row.person.key, row.token.name, " ".join(row.token.scopes), " ".join(row.scopes), format_time(row.token.made),
         format_time(row.token.expires), "" if row.use is None else format_time(row.use.at),
         "" if row.use is None else row.use.address)
        for row in program_tokens.rows_of(visit)
    ))  # fmt: skip


#: All lists of the desk.
LISTS = (
    TakenList("crawls", "/snapshots", _crawls),
    TakenList("fields of a crawl", "/snapshot/{record}/fields", _fields),
    TakenList("history of a crawl", "/snapshot/{record}/history", _history),
    TakenList("attached files", "/snapshot/{record}/attachments", _attachments),
    TakenList("running", "/running", _running),
    TakenList("finished", "/finished", _finished),
    TakenList("tables of a report", "/report/{job}/tables", _report),
    TakenList("pages of a report", "/report/{job}/pages", _pages),
    TakenList("publications", "/publications", _publications),
    TakenList("formats", "/registers/formats", _formats),
    TakenList("types", "/registers/types", _types),
    TakenList("programs", "/registers/programs", _programs),
    TakenList("rules of access", "/access", _rules),
    TakenList("people", "/people", _people, Right.PEOPLE),
    TakenList("tokens", "/tokens", _tokens),
)
