"""A record: the description of one capture of a publication, with its state, its 81 fields and its history.

A record describes one job. Its id is the job's name; `number` counts for people. A value says who or what set it, and
when. Times are CET.

The fields are those by which the Bundestag's web archive of 2005 described a snapshot (its section 4.4). `FIELDS` says
of each: number, group (the step that fills it), kind, names, the party that sets it, the parties that may edit it, and
whether readers see it.

As XML a record is record.xml, which `xsd/record.xsd` describes, or simple Dublin Core for other catalogues.

Equal records are equal bytes. Each field is an element of its own name, with its number, group and kind. It is read
with entities, DTDs and the network off. Dublin Core is in the container of OAI-PMH (`oai_dc`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import Enum, IntEnum, StrEnum

from lxml import etree

from webarcfs.archive.config import directory
from webarcfs.archive.document.data_xml import clean, compiled
from webarcfs.archive.model.errors import Damaged, InvalidDocument
from webarcfs.archive.model.metadata import RESOURCE_ROLE, CommitTag, format_time, now, parse_time

# == fields, pure =====================================================================================================


class FieldPurpose(StrEnum):
    """What a field is for."""

    LOG = "LOG"  # checks the archiving
    AVA = "AVA"  # describes, as archives do
    TMD = "TMD"  # describes technically


class SetBy(Enum):
    """The party that sets a field first."""

    SYSTEM = "system"
    ARCHIVIST = "archivist"
    OPTION = "option"  # a setting of the administrator, copied in


class Edit(Enum):
    """When an archivist may edit a field. An administrator may edit all but LOG, dates, persons and durations."""

    NEVER = "never"
    UNTIL_FETCHED = "until fetched"
    ALWAYS = "always"


class FieldNumber(IntEnum):
    """The fields by name: each is called as its element in record.xml, and is its number in the source."""

    ID = 1
    SIGNATURE = 2
    PROVENANCE = 3
    PROJECT = 4
    OCCASION = 5
    REMARKS = 6
    DATE = 7
    PERSON = 8
    OPERATING_SYSTEM = 9
    PATH = 10
    TOOL = 11
    DOMAIN = 12
    EXCLUDED_DOMAIN = 13
    INTERNAL_DEPTH = 14
    EXTERNAL_DEPTH = 15
    EXCLUDED_EXTENSIONS = 16
    RATE_LIMIT = 17
    PARALLEL_DOWNLOADS = 18
    COMMAND_LINE = 19
    CRAWLER_REMARKS = 20
    STATUS = 21
    BYTES = 22
    FILES = 23
    FOLDERS = 24
    FILES_BY_EXTENSION = 25
    MAKERS = 26
    READERS = 27
    NEW_EXTENSIONS = 28
    DURATION = 29
    CAPTURE_REMARKS = 30
    COPY_DATE = 31
    COPY_PERSON = 32
    COPY_PATH = 33
    COUNTED = 34
    CONVERSION_DATE = 35
    CONVERSION_PERSON = 36
    BYTES_CONVERTED = 37
    CONVERSION_DURATION = 38
    LINKS = 39
    EXTERNAL_LINKS_REPLACED = 40
    EXTERNAL_LINKS = 41
    INTERNAL_LINKS = 42
    LINK_REMARKS = 43
    ERROR_PAGES = 44
    ERROR_PAGE_REMARKS = 45
    SEARCH_LINKS = 46
    SEARCH_LINK_REMARKS = 47
    CONVERTER = 48
    CONVERTER_PARAMETERS = 49
    FILES_CONVERTED = 50
    FILES_NOT_CONVERTED = 51
    CONVERSION_REMARKS = 52
    INDEX_DATE = 53
    INDEX_PERSON = 54
    INDEX_DURATION = 55
    INDEXER = 56
    INDEXER_PARAMETERS = 57
    TERMS = 58
    INDEX_REMARKS = 59
    RELEASE_DATE = 60
    RELEASE_PERSON = 61
    CHECKED_PAGES = 62
    OTHER_CHECKS = 63
    RELEASE_REMARKS = 64
    BACKUP_DATE = 65
    BACKUP_PERSON = 66
    BACKUP_DURATION = 67
    BACKUP_BYTES = 68
    BACKUP_SOFTWARE = 69
    BACKUP_PARAMETERS = 70
    MEDIUM = 71
    MEDIUM_URI = 72
    BACKUP_REMARKS = 73
    MEASURE_DATE = 74
    MEASURE_PERSON = 75
    MEASURE_KIND = 76
    MEASURE_DESCRIPTION = 77
    MEASURE_SOFTWARE = 78
    MEASURE_PARAMETERS = 79
    MEASURE_BYTES = 80
    MEASURE_REMARKS = 81


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `name` is its element in record.xml, `en` and `de` are for people."""

    number: int
    group: str
    kind: FieldPurpose
    name: str
    set_by: SetBy
    en: str
    de: str

    @property
    def is_remark(self) -> bool:
        """Whether it has remarks, of steps and of people."""
        return self.name.casefold().endswith("remarks")

    @property
    def archivist(self) -> Edit:
        """When an archivist may edit it."""
        if self.number in _UNTIL_FETCHED:
            return Edit.UNTIL_FETCHED
        return Edit.ALWAYS if self.number in _ARCHIVISTS or self.is_remark else Edit.NEVER

    @property
    def administrator(self) -> bool:
        """Whether an administrator may edit it."""
        own = self.kind is FieldPurpose.LOG or self.number in _PERSONS
        return not own and not self.name.casefold().endswith(("date", "duration"))

    @property
    def is_public(self) -> bool:
        """Whether readers see it: neither persons, nor the places of copies, nor why it was decided so."""
        return self.number not in _PERSONS | _PLACES | _DECISIONS

    @property
    def is_about_documents(self) -> bool:
        """Whether it counts, measures or names documents, also those that readers may not see."""
        return self.number in _DOCUMENTS

    @property
    def repeats(self) -> bool:
        """Whether a record has it for each measure."""
        return self.group == "8"


_UNTIL_FETCHED: frozenset[int] = frozenset(
    {FieldNumber.DOMAIN, FieldNumber.EXCLUDED_DOMAIN, FieldNumber.EXCLUDED_EXTENSIONS}
)
_ARCHIVISTS: frozenset[int] = frozenset(
    {
        FieldNumber.SIGNATURE,
        FieldNumber.PROVENANCE,
        FieldNumber.PROJECT,
        FieldNumber.OCCASION,
        FieldNumber.REMARKS,
        FieldNumber.CRAWLER_REMARKS,
    }
)
_PERSONS: frozenset[int] = frozenset(
    {
        FieldNumber.PERSON,
        FieldNumber.COPY_PERSON,
        FieldNumber.CONVERSION_PERSON,
        FieldNumber.INDEX_PERSON,
        FieldNumber.RELEASE_PERSON,
        FieldNumber.BACKUP_PERSON,
        FieldNumber.MEASURE_PERSON,
    }
)
_PLACES: frozenset[int] = frozenset({FieldNumber.COPY_PATH, FieldNumber.MEDIUM, FieldNumber.MEDIUM_URI})
_DECISIONS: frozenset[int] = frozenset({FieldNumber.RELEASE_REMARKS})
_DOCUMENTS: frozenset[int] = frozenset(
    {
        *range(FieldNumber.BYTES, FieldNumber.NEW_EXTENSIONS + 1),
        FieldNumber.CAPTURE_REMARKS,
        FieldNumber.BYTES_CONVERTED,
        *range(FieldNumber.LINKS, FieldNumber.SEARCH_LINK_REMARKS + 1),
        FieldNumber.FILES_CONVERTED,
        FieldNumber.FILES_NOT_CONVERTED,
        FieldNumber.CONVERSION_REMARKS,
        FieldNumber.TERMS,
        FieldNumber.INDEX_REMARKS,
        FieldNumber.CHECKED_PAGES,
        FieldNumber.OTHER_CHECKS,
        FieldNumber.BACKUP_BYTES,
        FieldNumber.MEASURE_BYTES,
        FieldNumber.MEASURE_REMARKS,
    }
)
_S, _R, _O = SetBy.SYSTEM, SetBy.ARCHIVIST, SetBy.OPTION


def _field(  # noqa: PLR0917 # a row of the table
    number: int, group: str, kind: FieldPurpose, name: str, set_by: SetBy, en: str, de: str
) -> Field:
    return Field(number, group, kind, name, set_by, en, de)


#: In the order of their numbers. Number 53 is printed as a second 54 in the source.
FIELDS: tuple[Field, ...] = (
    _field(1, "1", FieldPurpose.LOG, "id", _S, "number", "Identifikationsnummer"),
    _field(2, "1", FieldPurpose.AVA, "signature", _R, "signature of the fonds", "Bestandssignatur"),
    _field(3, "1", FieldPurpose.AVA, "provenance", _R, "provenance: the office in charge", "Provenienz"),
    _field(4, "1", FieldPurpose.AVA, "project", _R, "project", "Projektbezeichnung"),
    _field(5, "1", FieldPurpose.AVA, "occasion", _R, "occasion", "Anlass"),
    _field(6, "1", FieldPurpose.AVA, "remarks", _R, "remarks", "Bemerkungen"),
    _field(7, "1", FieldPurpose.AVA, "date", _S, "date of the download", "Datum des Downloads"),
    _field(8, "1", FieldPurpose.LOG, "person", _S, "person", "Bearbeiter"),
    _field(
        9, "1", FieldPurpose.TMD, "operatingSystem", _S, "original operating system", "Ursprüngliches Betriebssystem"
    ),
    _field(10, "1", FieldPurpose.AVA, "path", _S, "path in the archive", "Lokaler Speicherpfad"),
    _field(11, "1", FieldPurpose.TMD, "tool", _O, "download tool", "Download-Tool"),
    _field(12, "1", FieldPurpose.AVA, "domain", _R, "selected domain", "Ausgewählte Domain"),
    _field(13, "1", FieldPurpose.AVA, "excludedDomain", _R, "excluded domain", "Ausgeschlossene Domain"),
    _field(14, "1", FieldPurpose.TMD, "internalDepth", _O, "depth of internal links", "Interne Linktiefe"),
    _field(15, "1", FieldPurpose.TMD, "externalDepth", _O, "depth of external links", "Externe Linktiefe"),
    _field(
        16,
        "1",
        FieldPurpose.TMD,
        "excludedExtensions",
        _R,
        "excluded file extensions",
        "Ausgeschlossene Dateierweiterungen",
    ),
    _field(17, "1", FieldPurpose.TMD, "rateLimit", _O, "limit of the rate", "Geschwindigkeitsbegrenzung"),
    _field(18, "1", FieldPurpose.TMD, "parallelDownloads", _O, "downloads at a time", "Anzahl paralleler Downloads"),
    _field(
        19, "1", FieldPurpose.TMD, "commandLine", _S, "command line of the crawler", "Kommandozeilenaufruf des Crawlers"
    ),
    _field(
        20,
        "1",
        FieldPurpose.TMD,
        "crawlerRemarks",
        _R,
        "further remarks on the crawler",
        "Weitere Bemerkungen zum Crawler",
    ),
    _field(21, "1", FieldPurpose.LOG, "status", _S, "status", "Status"),
    _field(22, "1", FieldPurpose.TMD, "bytes", _S, "bytes after the download", "Größe in Bytes nach dem Download"),
    _field(23, "1", FieldPurpose.TMD, "files", _S, "number of files", "Anzahl heruntergeladener Dateien"),
    _field(24, "1", FieldPurpose.TMD, "folders", _S, "number of folders", "Anzahl heruntergeladener Ordner"),
    _field(
        25,
        "1",
        FieldPurpose.TMD,
        "filesByExtension",
        _S,
        "number of files by extension",
        "Anzahl der Dateien nach Dateierweiterung",
    ),
    _field(
        26,
        "1",
        FieldPurpose.TMD,
        "makers",
        _S,
        "programs that made the files",
        "Software, mit der die Dateitypen erzeugt wurden",
    ),
    _field(
        27,
        "1",
        FieldPurpose.TMD,
        "readers",
        _S,
        "programs that read the files today",
        "Software, mit der die Dateitypen heute lesbar sind",
    ),
    _field(
        28, "1", FieldPurpose.TMD, "newExtensions", _S, "new file extensions", "Neu hinzugekommene Dateierweiterungen"
    ),
    _field(29, "2", FieldPurpose.LOG, "duration", _S, "duration of the snapshot", "Dauer des Snapshots"),
    _field(
        30,
        "2",
        FieldPurpose.TMD,
        "captureRemarks",
        _R,
        "remarks and errors of the download",
        "Bemerkungen, Fehlermeldungen zum Download",
    ),
    _field(31, "3", FieldPurpose.LOG, "copyDate", _S, "date of the copy", "Datum der Kopie"),
    _field(32, "3", FieldPurpose.LOG, "copyPerson", _S, "person who made the copy", "Bearbeiter der Kopie"),
    _field(
        33, "3", FieldPurpose.LOG, "copyPath", _S, "path of the safety copy", "Lokaler Speicherpfad der Sicherungskopie"
    ),
    _field(34, "3", FieldPurpose.LOG, "counted", _S, "statistics were made", "Statistik angelegt"),
    _field(35, "4", FieldPurpose.LOG, "conversionDate", _S, "date of the conversion", "Datum der Konvertierung"),
    _field(36, "4", FieldPurpose.LOG, "conversionPerson", _S, "person who converted", "Bearbeiter der Konvertierung"),
    _field(
        37, "4", FieldPurpose.TMD, "bytesConverted", _S, "bytes after the conversion", "Größe nach der Konvertierung"
    ),
    _field(
        38, "4", FieldPurpose.LOG, "conversionDuration", _S, "duration of the conversion", "Dauer der Konvertierung"
    ),
    _field(39, "4.1", FieldPurpose.TMD, "links", _S, "links in all", "Gesamtanzahl Links"),
    _field(
        40,
        "4.1",
        FieldPurpose.TMD,
        "externalLinksReplaced",
        _S,
        "external links that were replaced",
        "Anzahl der ersetzten externen Links",
    ),
    _field(
        41,
        "4.1",
        FieldPurpose.TMD,
        "externalLinks",
        _S,
        "different external links",
        "Anzahl der unterschiedlichen externen Links",
    ),
    _field(42, "4.1", FieldPurpose.TMD, "internalLinks", _S, "internal links", "Anzahl der internen Links"),
    _field(
        43,
        "4.1",
        FieldPurpose.TMD,
        "linkRemarks",
        _R,
        "remarks and errors of the links",
        "Bemerkungen, Fehlermeldungen zu Links",
    ),
    _field(
        44,
        "4.2",
        FieldPurpose.LOG,
        "errorPages",
        _S,
        "error pages that were treated",
        "Anzahl der behandelten Fehlermeldungen",
    ),
    _field(
        45,
        "4.2",
        FieldPurpose.TMD,
        "errorPageRemarks",
        _R,
        "remarks and errors of the error pages",
        "Bemerkungen, Fehlermeldungen zu Fehlerseiten",
    ),
    _field(
        46,
        "4.3",
        FieldPurpose.TMD,
        "searchLinks",
        _S,
        "search links that were replaced",
        "Anzahl der ersetzten Suchlinks",
    ),
    _field(
        47,
        "4.3",
        FieldPurpose.TMD,
        "searchLinkRemarks",
        _R,
        "remarks and errors of the search links",
        "Bemerkungen, Fehlermeldungen zu Suchlinks",
    ),
    _field(48, "4.4", FieldPurpose.TMD, "converter", _O, "conversion tool", "Konvertierungstool"),
    _field(
        49,
        "4.4",
        FieldPurpose.TMD,
        "converterParameters",
        _O,
        "parameters of the conversion tool",
        "Parameter des Konvertierungstools",
    ),
    _field(
        50,
        "4.4",
        FieldPurpose.TMD,
        "filesConverted",
        _S,
        "files that were converted",
        "Anzahl der konvertierten Dateien",
    ),
    _field(
        51,
        "4.4",
        FieldPurpose.TMD,
        "filesNotConverted",
        _S,
        "files that were not converted",
        "Anzahl der nicht konvertierten Dateien",
    ),
    _field(
        52,
        "4.4",
        FieldPurpose.TMD,
        "conversionRemarks",
        _R,
        "remarks and errors of the conversion",
        "Bemerkungen, Fehlermeldungen zur Konvertierung",
    ),
    _field(53, "5", FieldPurpose.TMD, "indexDate", _S, "date of the index", "Datum der Indexierung"),
    _field(54, "5", FieldPurpose.LOG, "indexPerson", _S, "person who indexed", "Bearbeiter der Indexierung"),
    _field(55, "5", FieldPurpose.LOG, "indexDuration", _S, "duration of the indexing", "Dauer der Indexierung"),
    _field(56, "5", FieldPurpose.TMD, "indexer", _O, "indexing tool", "Indexierungstool"),
    _field(
        57,
        "5",
        FieldPurpose.TMD,
        "indexerParameters",
        _O,
        "parameters of the indexing tool",
        "Parameter des Indexierungstools",
    ),
    _field(58, "5", FieldPurpose.TMD, "terms", _S, "number of index terms", "Anzahl der Indexierungsbegriffe"),
    _field(
        59,
        "5",
        FieldPurpose.TMD,
        "indexRemarks",
        _R,
        "remarks and errors of the index",
        "Bemerkungen, Fehlermeldungen zur Indexierung",
    ),
    _field(60, "6", FieldPurpose.TMD, "releaseDate", _S, "date of the release", "Datum der Freigabe"),
    _field(61, "6", FieldPurpose.TMD, "releasePerson", _S, "person who released", "Bearbeiter der Freigabe"),
    _field(
        62, "6", FieldPurpose.TMD, "checkedPages", _R, "reference pages that were checked", "Geprüfte Referenzseiten"
    ),
    _field(63, "6", FieldPurpose.TMD, "otherChecks", _R, "other checks", "Sonstige Prüfroutinen"),
    _field(
        64,
        "6",
        FieldPurpose.TMD,
        "releaseRemarks",
        _R,
        "remarks and errors of the release",
        "Bemerkungen, Fehlermeldungen zur Freigabe",
    ),
    _field(65, "7", FieldPurpose.TMD, "backupDate", _S, "date of the backup", "Datum des Backups"),
    _field(66, "7", FieldPurpose.TMD, "backupPerson", _S, "person who made the backup", "Bearbeiter des Backups"),
    _field(67, "7", FieldPurpose.LOG, "backupDuration", _S, "duration of the backup", "Dauer des Backups"),
    _field(68, "7", FieldPurpose.TMD, "backupBytes", _S, "bytes of the backup", "Größe des Backups in Bytes"),
    _field(69, "7", FieldPurpose.TMD, "backupSoftware", _O, "backup software", "Backupsoftware"),
    _field(70, "7", FieldPurpose.TMD, "backupParameters", _O, "parameters of the backup", "Parameter des Backups"),
    _field(71, "7", FieldPurpose.TMD, "medium", _O, "medium", "Medium"),
    _field(
        72, "7", FieldPurpose.TMD, "mediumUri", _O, "path or signature of the medium", "Pfad oder Signatur des Mediums"
    ),
    _field(73, "7", FieldPurpose.TMD, "backupRemarks", _R, "remarks on the backup", "Bemerkungen zum Backup"),
    _field(74, "8", FieldPurpose.TMD, "measureDate", _S, "date of the measure", "Datum der Maßnahme"),
    _field(75, "8", FieldPurpose.LOG, "measurePerson", _S, "person who took the measure", "Bearbeiter der Maßnahme"),
    _field(76, "8", FieldPurpose.TMD, "measureKind", _R, "measure", "Maßnahme"),
    _field(
        77, "8", FieldPurpose.TMD, "measureDescription", _R, "description of the measure", "Beschreibung der Maßnahme"
    ),
    _field(78, "8", FieldPurpose.TMD, "measureSoftware", _R, "software of the measure", "Software der Maßnahme"),
    _field(79, "8", FieldPurpose.TMD, "measureParameters", _R, "parameters of the measure", "Parameter der Maßnahme"),
    _field(
        80, "8", FieldPurpose.TMD, "measureBytes", _S, "bytes after the measure", "Größe in Bytes nach der Maßnahme"
    ),
    _field(
        81,
        "8",
        FieldPurpose.TMD,
        "measureRemarks",
        _R,
        "remarks and errors of the measure",
        "Bemerkungen, Fehlermeldungen zur Maßnahme",
    ),
)

#: Group → the step of the workflow that fills its fields.
STEPS = {
    "1": "capture",
    "2": "capture",
    "3": "capture",
    "4": "convert",
    "4.1": "convert",
    "4.2": "convert",
    "4.3": "convert",
    "4.4": "convert",
    "5": "index",
    "6": "release",
    "7": "backup",
    "8": "measure",
}
#: The fields of group 1 and 3 that the step `count` fills.
COUNTED: frozenset[int] = frozenset({*range(FieldNumber.BYTES, FieldNumber.NEW_EXTENSIONS + 1), FieldNumber.COUNTED})

BY_NUMBER = {field.number: field for field in FIELDS}
BY_NAME = {field.name: field for field in FIELDS}


def step_of(field: Field) -> str:
    """Return the step of the workflow that fills a field."""
    return "count" if field.number in COUNTED else STEPS[field.group]


# == record, pure =====================================================================================================


#: `CrawlPart.seen` of a snapshot of layout 1 on a domain of several publications: it saw what its own crawls stored.
OWN = "own"


class RecordState(StrEnum):
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


#: Who set what no person did.
SYSTEM = "webarcfs"
#: What the name of a crawl beside the schedule ends in: it is no run of its publication.
OCCASION = "+occasion"
#: What the name of a job ends in that asks again for what a crawl of its publication did not get.
PATCH = "+patch"
#: What the name of a job ends in that saves one page, for the person who asked for it.
PAGE = "+page"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a field, the person or program that set it, and when; None: not known."""

    text: str
    by: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CrawlPart:
    """What a capture published on one domain: `seen` is the tree that its publication saw, empty for all of it.

    `is_held`: readers were not allowed to see it at once. `is_resource`: the crawl had no page of the domain, only what
    pages of others needed.
    """

    tag: CommitTag
    complete: bool
    seen: str = ""
    is_held: bool = False
    is_resource: bool = False


def newest_of(tags: Iterable[CommitTag]) -> tuple[CommitTag, ...]:
    """Return the newest of each domain, in the order of the domains."""
    newest: dict[str, CommitTag] = {}
    for tag in tags:
        newest[tag.domain] = max(newest.get(tag.domain, tag), tag, key=lambda candidate: candidate.crawl_time)
    return tuple(newest.values())


@dataclass(frozen=True, slots=True)
class ResourceCount:
    """What a crawl has of hosts without pages: the hosts, the files that pages of others needed, and their bytes.

    The numbered fields do not count it. A host is counted where nothing changed as well.
    """

    hosts: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MissingResources:
    """Resources of a host that pages need and the crawl did not bring, and the word for why.

    Without a host, those of all that are not listed.
    """

    host: str
    word: str
    urls: int


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
    state: RecordState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record. `values` has the fields 1 to 73 by number, `measures` the fields 74 to 81 of each measure.

    `resources` counts what the fields 22 to 28 leave out.

    `release` and `closed_for` are copied from the publication when its job began. `job` is the job that captures it,
    where the record was there before its job.
    """

    id: str
    number: int
    publication: str
    state: RecordState
    occasion: Occasion = Occasion.REGULAR
    complete: bool = False
    release: str = "automatic"
    closed_for: str = ""
    job: str = ""
    title: Value = Value("")
    language: Value = Value("")
    access: Value = Value("")
    parts: tuple[CrawlPart, ...] = ()
    resources: ResourceCount = ResourceCount()
    values: Mapping[int, Value] = field(default_factory=dict)
    measures: tuple[Mapping[int, Value], ...] = ()
    missing: tuple[MissingResources, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def job_name(self) -> str:
        """The job that made it: its reports have this name."""
        return self.job or self.id

    @property
    def completeness(self) -> bool | None:
        """Whether it has all that there was, for people; None where nobody knows.

        Of an import it is known where `--complete` said so: files do not tell what their crawl did not get.
        """
        return True if self.complete else None if is_import(self.job_name) and self.parts else False

    @property
    def has_own_title(self) -> bool:
        """Whether a person gave it its title. The other one is made of project, hosts and date."""
        return bool(self.title.text) and self.title.by != SYSTEM

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that it has parts of, each once: sites first."""
        return tuple(dict.fromkeys(part.tag.domain for part in self.sites_first))

    @property
    def sites_first(self) -> tuple[CrawlPart, ...]:
        """Its parts, those of domains without pages at the end."""
        return tuple(sorted(self.parts, key=lambda part: part.is_resource))

    @property
    def newest_tags(self) -> tuple[CommitTag, ...]:
        """The newest commitTag of each domain, sites first: a crawl that was cut or patched has several of one."""
        return newest_of(part.tag for part in self.sites_first)

    @property
    def sites(self) -> tuple[str, ...]:
        """The domains that it has pages of; all of them where it has pages of none."""
        return tuple(domain for domain in self.domains if domain not in self.domains_without_pages) or self.domains

    @property
    def domains_without_pages(self) -> frozenset[str]:
        """The domains that it has no page of, in any of its parts."""
        return frozenset(self.domains) - {part.tag.domain for part in self.parts if not part.is_resource}

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
        resources = {
            f"resource{name.capitalize()}": str(number) if self.resources.hosts else ""
            for name, number in asdict(self.resources).items()
        }
        return (
            head
            | {
                field.name: self.text(field.number)
                for field in FIELDS
                if not field.repeats and field.number != FieldNumber.ID
            }
            | resources
        )

    def text(self, number: int) -> str:
        """Return the text of a field; empty without a value."""
        value = self.values.get(number)
        return "" if value is None else value.text

    def for_readers(self, *, whole: bool = True) -> Record:
        """Return what readers see of it: neither persons, nor places of copies, nor attachments, nor its history.

        Nor what is missing from pages. Not `whole`: nor what counts or names its documents, since readers may not see
        all of them.
        """
        public = {
            number for number, field in BY_NUMBER.items() if field.is_public and (whole or not field.is_about_documents)
        }
        shown = [{n: value for n, value in fields.items() if n in public} for fields in (self.values, *self.measures)]
        values, *measures = ({n: replace(value, by="") for n, value in fields.items()} for fields in shown)
        about = (replace(value, by="") for value in (self.title, self.language, self.access))
        title, language, access = about
        return replace(
            self, title=title, language=language, access=access, values=values, measures=tuple(measures),
            missing=(), attachments=(), events=(),
            resources=self.resources if whole else ResourceCount(),
        )  # fmt: skip

    def attachment(self, name: str) -> Attachment | None:
        """Return the attachment of a name; None without one."""
        return next((attachment for attachment in self.attachments if attachment.name == name), None)

    def with_attachment(self, name: str, attachment: Attachment | None) -> Record:
        """Return it with the attachment of this name, in place of one that it had; without it for None."""
        others = [other for other in self.attachments if other.name != name]
        attachments = sorted(
            [*others, *([attachment] if attachment is not None else [])], key=lambda attached: attached.name
        )
        return replace(self, attachments=tuple(attachments))

    def with_values(self, texts: Mapping[int, str], by: str, at: datetime) -> Record:
        """Return it with these fields set; a text that is there already keeps its setter, an empty one is no value."""
        values = dict(self.values)
        for number, text in texts.items():
            if not text:
                values.pop(number, None)
            elif self.text(number) != text:
                values[number] = Value(text, by, at)
        return replace(self, values={number: values[number] for number in sorted(values)})

    def with_event(self, what: str, by: str, text: str = "", state: RecordState | None = None) -> Record:
        """Return it with an event of now, in the state that follows."""
        event = Event(what, now(), by, text, state)
        return replace(self, events=(*self.events, event), state=state or self.state)


def is_beside_schedule(job: str) -> bool:
    """Return whether a job, or the kind of a job, is a crawl beside the schedule: also a patch, or a saved page."""
    return job.endswith((OCCASION, PATCH, PAGE))


def is_import(job: str) -> bool:
    """Return whether a job, or the kind of a job, is an import. A record is named after its job."""
    return "+" in job and not is_beside_schedule(job)


def publication_of(record_id: str) -> str:
    """Return the publication in the id of a record: `<time>-<publication>`, with `+…` after it for an import."""
    return record_id.partition("-")[2].partition("+")[0]


# == record xml =======================================================================================================


NAMESPACE = "urn:webarcfs:record:1"
#: Largest record.xml that is read, in bytes: statistics of thousands of extensions, and thousands of events.
LARGEST_RECORD = 16 << 20
_OWN = threading.local()
_ABOUT = ("title", "language", "access")


def write_record(record: Record) -> bytes:
    """Return a record as record.xml. Characters that XML forbids are left out."""
    root = etree.Element(_name("record"), nsmap={None: NAMESPACE})  # type: ignore[dict-item] # None: no prefix
    for name, value in _attributes(record).items():
        if value:
            root.set(name, clean(value))
    for name in _ABOUT:
        _add_value(root, name, getattr(record, name))
    for part in record.parts:
        _add(
            root, "part", commitTag=str(part.tag), complete=_yes(part.complete), seen=part.seen,
            held=_yes(part.is_held), role=RESOURCE_ROLE if part.is_resource else "",
        )  # fmt: skip
    if record.resources.hosts:
        _add(root, "resources", **{name: str(number) for name, number in asdict(record.resources).items()})
    _add_fields(root, record.values)
    for measure in record.measures:
        _add_fields(_add(root, "measure"), measure)
    for lack in record.missing:
        _add(root, "missing", host=lack.host, word=lack.word, urls=str(lack.urls))
    for attachment in record.attachments:
        element = _add(
            root, "attachment", attachment.note, bytes=str(attachment.bytes), at=_time(attachment.at), by=attachment.by
        )
        element.set("name", clean(attachment.name))
    for event in record.events:
        at, state = format_time(event.at), str(event.state or "")
        _add(root, "event", event.text, what=event.what, at=at, by=event.by, state=state)
    etree.indent(root)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def read_record(document: bytes) -> Record:
    """Return the record of a record.xml. Raises InvalidDocument for a document that the schema refuses."""
    if len(document) > LARGEST_RECORD:
        raise InvalidDocument(f"a record of {len(document)} bytes; at most {LARGEST_RECORD} are read")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidDocument(f"no record: {error}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise InvalidDocument("no record: it has a document type, which could declare entities")
    schema = _schema()
    if not schema.validate(root):
        raise InvalidDocument(f"no record: {schema.error_log}")
    try:
        return _read(root)
    except Damaged as error:
        raise InvalidDocument(f"no record: {error}") from None


def _attributes(record: Record) -> dict[str, str]:
    return {
        "id": record.id,
        "number": str(record.number),
        "publication": record.publication,
        "state": record.state,
        "occasion": record.occasion,
        "complete": _yes(record.complete),
        "release": record.release,
        "closedFor": record.closed_for,
        "job": record.job,
    }


def _read(root: etree._Element) -> Record:
    return Record(
        id=_get(root, "id"),
        number=int(_get(root, "number")),
        publication=_get(root, "publication"),
        state=RecordState(_get(root, "state")),
        occasion=Occasion(_get(root, "occasion")),
        complete=_is_yes(root, "complete"),
        release=_get(root, "release"),
        closed_for=_get(root, "closedFor"),
        job=_get(root, "job"),
        **{name: _value(root.find(_name(name))) for name in _ABOUT},
        parts=tuple(_part(element) for element in root.iterfind(_name("part"))),
        resources=_resources(root.find(_name("resources"))),
        values=dict(_fields(root)),
        measures=tuple(dict(_fields(element)) for element in root.iterfind(_name("measure"))),
        missing=tuple(_lack(element) for element in root.iterfind(_name("missing"))),
        attachments=tuple(_attachment(element) for element in root.iterfind(_name("attachment"))),
        events=tuple(_event(element) for element in root.iterfind(_name("event"))),
    )


def _part(element: etree._Element) -> CrawlPart:
    tag = CommitTag.parse(_get(element, "commitTag"))
    is_resource = _get(element, "role") == RESOURCE_ROLE
    return CrawlPart(tag, _is_yes(element, "complete"), _get(element, "seen"), _is_yes(element, "held"), is_resource)


def _resources(element: etree._Element | None) -> ResourceCount:
    if element is None:
        return ResourceCount()
    return ResourceCount(**{name: int(_get(element, name)) for name in ("hosts", "files", "bytes")})


def _lack(element: etree._Element) -> MissingResources:
    return MissingResources(_get(element, "host"), _get(element, "word"), int(_get(element, "urls")))


def _attachment(element: etree._Element) -> Attachment:
    at, by = parse_time(_get(element, "at")), _get(element, "by")
    return Attachment(_get(element, "name"), int(_get(element, "bytes")), by, at, element.text or "")


def _event(element: etree._Element) -> Event:
    state = _get(element, "state")
    at, by = parse_time(_get(element, "at")), _get(element, "by")
    return Event(_get(element, "what"), at, by, element.text or "", RecordState(state) if state else None)


def _fields(parent: etree._Element) -> Iterator[tuple[int, Value]]:
    for element in parent:
        field = BY_NAME.get(etree.QName(element).localname)
        if field is not None:
            yield field.number, _value(element)


def _value(element: etree._Element | None) -> Value:
    if element is None:
        return Value("")
    at = _get(element, "at")
    return Value(element.text or "", _get(element, "by"), parse_time(at) if at else None)


def _get(element: etree._Element, name: str) -> str:
    return str(element.attrib.get(name, ""))


def _is_yes(element: etree._Element, name: str) -> bool:
    return _get(element, name) == "yes"


def _add_fields(parent: etree._Element, values: Mapping[int, Value]) -> None:
    for number in sorted(values):
        field = BY_NUMBER[number]
        _add_value(parent, field.name, values[number], field=str(number), group=field.group, kind=field.kind)


def _add_value(parent: etree._Element, name: str, value: Value, **attributes: str) -> None:
    if value.text:
        _add(parent, name, value.text, **attributes, by=value.by, at=_time(value.at))


def _add(parent: etree._Element, name: str, text: str = "", **attributes: str) -> etree._Element:
    element = etree.SubElement(parent, _name(name))
    for key, value in attributes.items():
        if value:
            element.set(key, clean(value))
    element.text = clean(text) or None
    return element


def _name(local: str) -> str:
    return f"{{{NAMESPACE}}}{local}"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else ""


def _time(at: datetime | None) -> str:
    return "" if at is None else format_time(at)


def _schema() -> etree.XMLSchema:
    """Return the schema, one for each thread: lxml's keeps its errors in itself."""
    schema: etree.XMLSchema | None = getattr(_OWN, "schema", None)
    if schema is None:
        schema = _OWN.schema = compiled(etree.parse(str(directory.path("xsd", "record.xsd"))))
    return schema


# == dublin core, pure ================================================================================================


OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"


def write_dublin_core(record: Record, institution: str = "") -> bytes:
    """Return a record as Dublin Core; elements without a value are left out. `institution` is the publisher."""
    root = etree.Element(f"{{{OAI_DC}}}dc", nsmap={"oai_dc": OAI_DC, "dc": DC})
    for name, text in _elements(record, institution):
        if text:
            etree.SubElement(root, f"{{{DC}}}{name}").text = clean(text)
    etree.indent(root)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _elements(record: Record, institution: str) -> list[tuple[str, str]]:
    date = "" if record.date is None else format_time(record.date)
    extent = (
        f"{record.text(FieldNumber.FILES)} files, {record.text(FieldNumber.BYTES)} bytes"
        if record.text(FieldNumber.BYTES)
        else ""
    )
    return [
        ("title", record.title.text or record.id),
        ("creator", record.text(FieldNumber.PROVENANCE)),
        ("subject", record.text(FieldNumber.PROJECT)),
        ("description", record.text(FieldNumber.REMARKS)),
        ("publisher", institution),
        ("date", date),
        ("type", "Collection"),
        ("format", extent),
        ("identifier", record.id),
        ("identifier", record.text(FieldNumber.SIGNATURE)),
        *(("source", f"http://{domain}/") for domain in record.domains),
        ("language", record.language.text),
        ("relation", record.publication),
        ("coverage", record.text(FieldNumber.DOMAIN)),
        ("rights", record.access.text or _access(record)),
    ]


def _access(record: Record) -> str:
    """Return the access statement of a record that has none: what its state says."""
    if record.state is not RecordState.RELEASED:
        return "not released"
    return f"closed for {record.closed_for} from its date" if record.closed_for else "released"
