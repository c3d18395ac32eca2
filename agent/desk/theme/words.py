"""What states, steps, events, roles, rights, fields and settings are called on pages: msgids, and their signs. Pure.

A crawl is called a crawl here, whatever the code calls its record, job or capture. The help of fields and settings is
in English and German. The English help of a field names the German term of the source, by which archivists know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from webarcfs.archive.catalogue.record import Field, FieldNumber, RecordState
from webarcfs.archive.catalogue.workflow import WorkflowStep

# == words, pure ======================================================================================================


def msgid(text: str) -> str:
    """Return a text as it is, and mark it as one that is translated where it is shown."""
    return text


#: State → its word, and a sign that distinguishes it without colour.
STATES: dict[str, tuple[str, str]] = {
    RecordState.OPEN: (msgid("not fetched yet"), "○"),
    RecordState.CANCELLED: (msgid("cancelled"), "⊘"),
    RecordState.EMPTY: (msgid("empty"), "∅"),
    RecordState.CAPTURED: (msgid("fetched"), "◔"),
    RecordState.COUNTED: (msgid("counted"), "◑"),
    RecordState.CONVERTED: (msgid("converted"), "◑"),
    RecordState.INDEXED: (msgid("indexed"), "◕"),
    RecordState.CHECKED: (msgid("checked"), "◕"),
    RecordState.RELEASED: (msgid("released"), "●"),
    RecordState.REJECTED: (msgid("rejected"), "✕"),
    RecordState.DISCARDED: (msgid("discarded"), "⌫"),
}
#: Step → the words of its button.
STEPS: dict[str, str] = {
    WorkflowStep.CANCEL: msgid("Cancel"),
    WorkflowStep.CAPTURE: msgid("Fetch"),
    WorkflowStep.COUNT: msgid("Count"),
    WorkflowStep.CONVERT: msgid("Convert"),
    WorkflowStep.INDEX: msgid("Index it"),
    WorkflowStep.CHECK: msgid("Check"),
    WorkflowStep.RELEASE: msgid("Release it"),
    WorkflowStep.REJECT: msgid("Reject"),
    WorkflowStep.REOPEN: msgid("Take the rejection back"),
    WorkflowStep.WITHDRAW: msgid("Withdraw"),
    WorkflowStep.DISCARD: msgid("Discard it for everybody"),
    WorkflowStep.RESTORE: msgid("Restore it"),
    WorkflowStep.BACKUP: msgid("Back up"),
    WorkflowStep.MEASURE: msgid("Record a measure"),
}
#: Event of a record → its words.
EVENTS: dict[str, str] = {
    "new": msgid("entered"), "cancelled": msgid("cancelled"), "begun": msgid("fetching began"),
    "captured": msgid("fetched"),
    "counted": msgid("counted"), "converted": msgid("converted"), "indexed": msgid("indexed"),
    "checking": msgid("checks ran, somebody has to look"), "looked": msgid("looked at"),
    "checked": msgid("checked"), "released": msgid("released"), "rejected": msgid("rejected"),
    "reopened": msgid("rejection taken back"), "withdrawn": msgid("withdrawn"),
    "discarded": msgid("discarded"), "restored": msgid("restored"), "backup": msgid("backed up"),
    "measure": msgid("measure"), "edited": msgid("description changed"), "interrupted": msgid("interrupted"),
    "resumed": msgid("resumed"), "attached": msgid("file attached"), "replaced": msgid("file replaced"),
    "patched": msgid("missing pages fetched"),
    "noted": msgid("note to a file changed"), "detached": msgid("file removed"),
}  # fmt: skip
ROLES: dict[str, str] = {
    "archivist": msgid("archivist"), "administrator": msgid("administrator"), "reviewer": msgid("reviewer"),
    "curator": msgid("curator"),
}  # fmt: skip
#: Phase of a job, or why it is held → its words.
PHASES: dict[str, str] = {
    "waiting": msgid("waits"), "collecting": msgid("fetches"), "converting": msgid("publishes"),
    "archived": msgid("archived"), "failed": msgid("failed"), "interrupted": msgid("interrupted"),
    "paused": msgid("paused"), "deadline": msgid("its time is over"),
}  # fmt: skip
#: Order to a job → its words, which take a value behind them.
ORDERS: dict[str, str] = {
    "pause": msgid("Pause"), "resume": msgid("Resume"), "stop": msgid("Stop and publish"), "discard": msgid("Discard"),
    "deadline": msgid("May fetch until"), "exclude": msgid("Leave out a server"), "add": msgid("Fetch these, too"),
    "wait": msgid("Seconds between two requests to a server"),
}  # fmt: skip
#: State of a URL in a job → what its number is called.
URLS: dict[str, str] = {
    "waiting": msgid("waiting"), "fetching": msgid("being requested"), "done": msgid("done"), "failed": msgid("failed"),
    "refused": msgid("left out"),
}  # fmt: skip
#: State of a page that a browser shows → what its number is called.
VIEWS: dict[str, str] = {
    "waiting": msgid("waiting"), "showing": msgid("being shown"), "done": msgid("shown already"),
    "failed": msgid("could not be shown"),
}  # fmt: skip


def state(word: str) -> tuple[str, str]:
    """Return the words and the sign of a state."""
    return STATES.get(word, (word, "?"))


# == help texts, pure =================================================================================================


ABOUT = msgid("Title and access")
#: Number of a field → what it is for, in English and German.
_HELP: dict[int, tuple[str, str]] = {
    FieldNumber.ID: ("Names the crawl for good.", "Benennt den Crawl auf Dauer."),
    FieldNumber.SIGNATURE: (
        "The mark by which the archive finds the fonds, as 5100.",
        "Das Zeichen des Bestands im Archiv, etwa 5100.",
    ),
    FieldNumber.PROVENANCE: (
        "The office that answers for the site.",
        "Die Stelle, die für die Seiten verantwortlich ist.",
    ),
    FieldNumber.PROJECT: (
        "The project that the site belongs to, as Internet or Intranet.",
        "Das Projekt, zu dem die Seiten gehören, etwa Internet oder Intranet.",
    ),
    FieldNumber.OCCASION: (
        "Regular, or why it was fetched beside the schedule.",
        "Turnus, oder warum außerhalb des Turnus heruntergeladen wurde.",
    ),
    FieldNumber.REMARKS: (
        "Whatever others should know of this crawl.",
        "Was andere über diesen Crawl wissen sollten.",
    ),
    FieldNumber.DATE: ("When its pages were fetched, CET.", "Wann die Seiten geholt wurden, MEZ."),
    FieldNumber.PERSON: ("Who had it fetched.", "Wer das Herunterladen veranlasst hat."),
    FieldNumber.OPERATING_SYSTEM: ("What the server said of itself.", "Was der Server über sich selbst sagte."),
    FieldNumber.PATH: ("The repositories that hold its pages.", "Die Repositorien, die seine Seiten enthalten."),
    FieldNumber.TOOL: (
        "The program that fetched it, with its version.",
        "Das Programm, das heruntergeladen hat, mit Version.",
    ),
    FieldNumber.DOMAIN: ("The domain that was wanted.", "Die Domain, die gewünscht war."),
    FieldNumber.EXCLUDED_DOMAIN: (
        "Hosts and folders that were left out, with the reason.",
        "Rechner und Verzeichnisse, die ausgelassen wurden, mit dem Grund.",
    ),
    FieldNumber.INTERNAL_DEPTH: (
        "How many links away from a start page a page could be.",
        "Wie viele Links eine Seite von einer Startseite entfernt sein durfte.",
    ),
    FieldNumber.EXTERNAL_DEPTH: (
        "How far links to other sites were followed.",
        "Wie weit Links zu anderen Angeboten gefolgt wurde.",
    ),
    FieldNumber.EXCLUDED_EXTENSIONS: (
        "Files of these kinds were not fetched, as exe, zip.",
        "Dateien dieser Art wurden nicht geholt, etwa exe, zip.",
    ),
    FieldNumber.RATE_LIMIT: ("How fast the crawler was allowed to fetch.", "Wie schnell der Crawler holen durfte."),
    FieldNumber.PARALLEL_DOWNLOADS: (
        "How many servers were requested at a time.",
        "Wie viele Server zugleich angefragt wurden.",
    ),
    FieldNumber.COMMAND_LINE: (
        "How the crawler was called, word for word.",
        "Wie der Crawler aufgerufen wurde, wörtlich.",
    ),
    FieldNumber.CRAWLER_REMARKS: (
        "What else was particular about the crawler.",
        "Was am Crawler sonst noch besonders war.",
    ),
    FieldNumber.STATUS: ("How far it is.", "Wie weit er ist."),
    FieldNumber.BYTES: ("Bytes of all its files.", "Bytes aller seiner Dateien."),
    FieldNumber.FILES: ("How many files it has.", "Wie viele Dateien er hat."),
    FieldNumber.FOLDERS: ("How many folders it has.", "Wie viele Ordner er hat."),
    FieldNumber.FILES_BY_EXTENSION: (
        "How many files have which extension.",
        "Wie viele Dateien welche Erweiterung haben.",
    ),
    FieldNumber.MAKERS: (
        "By which programs such files were made then.",
        "Mit welchen Programmen solche Dateien damals entstanden.",
    ),
    FieldNumber.READERS: (
        "With which programs they can be read today.",
        "Mit welchen Programmen sie heute lesbar sind.",
    ),
    FieldNumber.NEW_EXTENSIONS: (
        "Extensions that the crawl before did not have.",
        "Erweiterungen, die der vorige noch nicht hatte.",
    ),
    FieldNumber.DURATION: ("How long fetching took.", "Wie lange das Herunterladen dauerte."),
    FieldNumber.CAPTURE_REMARKS: ("What went wrong while it was fetched.", "Was beim Herunterladen misslang."),
    FieldNumber.COPY_DATE: ("When the untouched form was safe.", "Wann die unberührte Form gesichert war."),
    FieldNumber.COPY_PERSON: ("Who had the copy made.", "Wer die Kopie veranlasst hat."),
    FieldNumber.COPY_PATH: ("Where the untouched form lies.", "Wo die unberührte Form liegt."),
    FieldNumber.COUNTED: ("Whether its files were counted.", "Ob seine Dateien gezählt wurden."),
    FieldNumber.CONVERSION_DATE: ("When pages were converted.", "Wann Seiten konvertiert wurden."),
    FieldNumber.CONVERSION_PERSON: ("Who had them converted.", "Wer die Konvertierung veranlasst hat."),
    FieldNumber.BYTES_CONVERTED: (
        "Bytes with converted pages in place of the others.",
        "Bytes mit konvertierten statt der übrigen Seiten.",
    ),
    FieldNumber.CONVERSION_DURATION: ("How long the conversion took.", "Wie lange die Konvertierung dauerte."),
    FieldNumber.LINKS: ("All links of all pages.", "Alle Links aller Seiten."),
    FieldNumber.EXTERNAL_LINKS_REPLACED: (
        "Links that lead to a notice, since their target is not archived.",
        "Links, die zu einem Hinweis führen, weil ihr Ziel nicht archiviert ist.",
    ),
    FieldNumber.EXTERNAL_LINKS: ("The same, each target once.", "Dieselben, jedes Ziel einmal."),
    FieldNumber.INTERNAL_LINKS: ("Links that stay within the crawl.", "Links, die in dem Crawl bleiben."),
    FieldNumber.LINK_REMARKS: ("What is particular about its links.", "Was an seinen Links besonders ist."),
    FieldNumber.ERROR_PAGES: (
        "Pages that are error messages of the server.",
        "Seiten, die Fehlermeldungen des Servers sind.",
    ),
    FieldNumber.ERROR_PAGE_REMARKS: ("What is particular about error pages.", "Was an Fehlerseiten besonders ist."),
    FieldNumber.SEARCH_LINKS: (
        "Links and forms of the site's own search, which cannot work here.",
        "Links und Formulare der Suche der Seiten, die hier nicht gehen kann.",
    ),
    FieldNumber.SEARCH_LINK_REMARKS: ("What is particular about them.", "Was an ihnen besonders ist."),
    FieldNumber.CONVERTER: (
        "The program that converted, with its version.",
        "Das Programm, das konvertiert hat, mit Version.",
    ),
    FieldNumber.CONVERTER_PARAMETERS: (
        "Its settings, as they were used.",
        "Seine Einstellungen, wie sie benutzt wurden.",
    ),
    FieldNumber.FILES_CONVERTED: ("Pages that have an XHTML form.", "Seiten, die eine XHTML-Form haben."),
    FieldNumber.FILES_NOT_CONVERTED: (
        "Pages for which none could be made.",
        "Seiten, für die keine gemacht werden konnte.",
    ),
    FieldNumber.CONVERSION_REMARKS: ("What went wrong in the conversion.", "Was bei der Konvertierung misslang."),
    FieldNumber.INDEX_DATE: ("When its words were indexed.", "Wann seine Wörter indexiert wurden."),
    FieldNumber.INDEX_PERSON: ("Who had them indexed.", "Wer die Indexierung veranlasst hat."),
    FieldNumber.INDEX_DURATION: ("How long indexing took.", "Wie lange die Indexierung dauerte."),
    FieldNumber.INDEXER: (
        "The program that indexed, with its version.",
        "Das Programm, das indexiert hat, mit Version.",
    ),
    FieldNumber.INDEXER_PARAMETERS: (
        "Its settings, as they were used.",
        "Seine Einstellungen, wie sie benutzt wurden.",
    ),
    FieldNumber.TERMS: ("How many different words the index has.", "Wie viele verschiedene Wörter der Index hat."),
    FieldNumber.INDEX_REMARKS: ("What went wrong in indexing.", "Was bei der Indexierung misslang."),
    FieldNumber.RELEASE_DATE: ("When readers got it.", "Wann Benutzer ihn bekamen."),
    FieldNumber.RELEASE_PERSON: ("Who released it.", "Wer ihn freigegeben hat."),
    FieldNumber.CHECKED_PAGES: (
        "Pages that were looked at, and what was found.",
        "Seiten, die angesehen wurden, und was sich zeigte.",
    ),
    FieldNumber.OTHER_CHECKS: ("What else was checked.", "Was sonst geprüft wurde."),
    FieldNumber.RELEASE_REMARKS: (
        "Why it was released, rejected or withdrawn.",
        "Warum er freigegeben, verworfen oder zurückgenommen wurde.",
    ),
    FieldNumber.BACKUP_DATE: ("When it was backed up.", "Wann er gesichert wurde."),
    FieldNumber.BACKUP_PERSON: ("Who had it backed up.", "Wer die Sicherung veranlasst hat."),
    FieldNumber.BACKUP_DURATION: ("How long the backup took.", "Wie lange die Sicherung dauerte."),
    FieldNumber.BACKUP_BYTES: ("Bytes that the backup added.", "Bytes, die die Sicherung hinzufügte."),
    FieldNumber.BACKUP_SOFTWARE: ("The program that made the backup.", "Das Programm, das die Sicherung gemacht hat."),
    FieldNumber.BACKUP_PARAMETERS: ("How it was called.", "Wie es aufgerufen wurde."),
    FieldNumber.MEDIUM: (
        "On what the backup lies, as a disk or a tape.",
        "Worauf die Sicherung liegt, etwa Platte oder Band.",
    ),
    FieldNumber.MEDIUM_URI: (
        "Where that is found: a path, or its mark on the shelf.",
        "Wo das zu finden ist: ein Pfad oder die Signatur im Regal.",
    ),
    FieldNumber.BACKUP_REMARKS: ("What is particular about the backup.", "Was an der Sicherung besonders ist."),
    FieldNumber.MEASURE_DATE: ("When the measure was taken.", "Wann die Maßnahme stattfand."),
    FieldNumber.MEASURE_PERSON: ("Who took it.", "Wer sie vorgenommen hat."),
    FieldNumber.MEASURE_KIND: (
        "In a word, as migration or conversion.",
        "In einem Wort, etwa Migration oder Konvertierung.",
    ),
    FieldNumber.MEASURE_DESCRIPTION: ("What was done, to which files.", "Was gemacht wurde, an welchen Dateien."),
    FieldNumber.MEASURE_SOFTWARE: ("Program and version.", "Programm und Version."),
    FieldNumber.MEASURE_PARAMETERS: ("How the program was set.", "Wie das Programm eingestellt war."),
    FieldNumber.MEASURE_BYTES: (
        "Bytes of the crawl afterwards; empty: as counted.",
        "Bytes des Crawls danach; leer: wie gezählt.",
    ),
    FieldNumber.MEASURE_REMARKS: ("Why it was taken, and what went wrong.", "Warum sie stattfand, und was misslang."),
}
#: Name of what is no field of the 81 → label and help (msgids).
_ABOUT: dict[str, tuple[str, str]] = {
    "title": (msgid("Title"), msgid("How lists and readers call the crawl.")),
    "language": (msgid("Language"), msgid("Of most of its pages, as de or en.")),
    "access": (msgid("Access statement"), msgid("Who may see it, in words for readers.")),
}


def of_field(field: Field, language: str) -> tuple[str, str]:
    """Return label and help of a field in a language."""
    english, german = _HELP[field.number]
    if language == "de":
        return field.de, german
    return field.en[:1].upper() + field.en[1:], f"{english} ({field.de})"


def of_about(name: str, text: Callable[[str], str]) -> tuple[str, str]:
    """Return label and help of title, language and access statement."""
    label, help_text = _ABOUT[name]
    return text(label), text(help_text)


#: Keys of settings that people do not read as they are → what they are called.
_LABELS = {
    "closed_for": msgid("Embargo"),
    "page_resources": msgid("Embedded resources"),
    "page_requisites": msgid("Embedded resources (older setting)"),
    "fetcher": msgid("This site needs a browser"),
    "browser": msgid("Pages that need a browser in any case"),
    "browser_behaviours": msgid("What is done on a page"),
    "browser_bytes": msgid("Bytes of a page"),
    "browser_clicks": msgid("Clicks on a page"),
    "browser_page_seconds": msgid("Seconds of a page"),
    "browser_requests": msgid("Requests of a page"),
    "browser_scroll": msgid("Steps of scrolling"),
    "click": msgid("Buttons to click"),
    "keep_rendered": msgid("Kept of what a browser shows"),
    "post": msgid("POST requests of scripts"),
}
#: The same for those of the whole archive, where they differ.
_LABELS_OF_ARCHIVE = {"fetcher": msgid("Sites need a browser")}
#: Key of a setting → the words for its values, in the order in which a form has them.
_CHOICES: dict[str, dict[str, str]] = {
    "fetcher": {"wget": msgid("no"), "auto": msgid("pages that need one"), "browser": msgid("every page")},
    "post": {"own": msgid("to the site's own hosts"), "keep": msgid("also with a login"), "leave": msgid("none")},
}


def label_of_setting(key: str, text: Callable[[str], str]) -> str:
    """Return what a setting is called: its key, as people read it, since files and commands name it so."""
    return text(_LABELS.get(key) or key.replace("_", " ").capitalize())


def label_of_default(key: str, text: Callable[[str], str]) -> str:
    """Return what a setting is called that holds for all publications."""
    return text(_LABELS_OF_ARCHIVE[key]) if key in _LABELS_OF_ARCHIVE else label_of_setting(key, text)


def choices_of_setting(key: str, values: Iterable[str], text: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Return the values that a setting may have, each with its words; those without words of their own at the end."""
    labels = _CHOICES.get(key, {})
    ranks = {value: rank for rank, value in enumerate(labels)}
    ordered = sorted(values, key=lambda value: ranks.get(value, len(ranks)))
    return tuple((value, text(labels.get(value, value))) for value in ordered)
