"""What states, steps, events, roles, rights, fields and settings are called on pages: msgids, and their signs. Pure.

A crawl is called a crawl here, whatever the code calls its record, job or capture. The English help of a field names
the German term of the source, by which archivists know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from webarcfs.archive.catalogue.record import Field, FieldNumber, RecordState
from webarcfs.archive.catalogue.workflow import WorkflowStep
from webarcfs.web import language

# == words, pure ======================================================================================================


msgid = language.msgid
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
    "patched": msgid("missing pages fetched"), "asked": msgid("saving was asked for"),
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


SAVED_TOO_OFTEN = msgid("You saved %(count)s pages within an hour. You may save the next one at %(when)s.")
TOO_MANY_WAIT = msgid("Too many pages wait to be saved. Try again in some minutes.")


def state(word: str) -> tuple[str, str]:
    """Return the words and the sign of a state."""
    return STATES.get(word, (word, "?"))


# == help texts, pure =================================================================================================


ABOUT = msgid("Title and access")
#: Number of a field → what it is for (msgids).
_HELP: dict[int, str] = {
    FieldNumber.ID: msgid("Names the crawl for good."),
    FieldNumber.SIGNATURE: msgid("The mark by which the archive finds the fonds, as 5100."),
    FieldNumber.PROVENANCE: msgid("The office that answers for the site."),
    FieldNumber.PROJECT: msgid("The project that the site belongs to, as Internet or Intranet."),
    FieldNumber.OCCASION: msgid("Regular, or why it was fetched beside the schedule."),
    FieldNumber.REMARKS: msgid("Whatever others should know of this crawl."),
    FieldNumber.DATE: msgid("When its pages were fetched, CET."),
    FieldNumber.PERSON: msgid("Who had it fetched."),
    FieldNumber.OPERATING_SYSTEM: msgid("What the server said of itself."),
    FieldNumber.PATH: msgid("The repositories that hold its pages."),
    FieldNumber.TOOL: msgid("The program that did it, with its version."),
    FieldNumber.DOMAIN: msgid("The domain that was wanted."),
    FieldNumber.EXCLUDED_DOMAIN: msgid("Hosts and folders that were left out, with the reason."),
    FieldNumber.INTERNAL_DEPTH: msgid("How many links away from a start page a page could be."),
    FieldNumber.EXTERNAL_DEPTH: msgid("How far links to other sites were followed."),
    FieldNumber.EXCLUDED_EXTENSIONS: msgid("Files of these kinds were not fetched, as exe, zip."),
    FieldNumber.RATE_LIMIT: msgid("How fast the crawler was allowed to fetch."),
    FieldNumber.PARALLEL_DOWNLOADS: msgid("How many servers were requested at a time."),
    FieldNumber.COMMAND_LINE: msgid("How the crawler was called, word for word."),
    FieldNumber.CRAWLER_REMARKS: msgid("What else is particular."),
    FieldNumber.STATUS: msgid("How far it is."),
    FieldNumber.BYTES: msgid("Bytes of all its files."),
    FieldNumber.FILES: msgid("How many files it has."),
    FieldNumber.FOLDERS: msgid("How many folders it has."),
    FieldNumber.FILES_BY_EXTENSION: msgid("How many files have which extension."),
    FieldNumber.MAKERS: msgid("By which programs such files were made then."),
    FieldNumber.READERS: msgid("With which programs they can be read today."),
    FieldNumber.NEW_EXTENSIONS: msgid("Extensions that the crawl before did not have."),
    FieldNumber.DURATION: msgid("How long it took."),
    FieldNumber.CAPTURE_REMARKS: msgid("What went wrong."),
    FieldNumber.COPY_DATE: msgid("When it was done."),
    FieldNumber.COPY_PERSON: msgid("Who had it done."),
    FieldNumber.COPY_PATH: msgid("Where the untouched form lies."),
    FieldNumber.COUNTED: msgid("Whether its files were counted."),
    FieldNumber.CONVERSION_DATE: msgid("When it was done."),
    FieldNumber.CONVERSION_PERSON: msgid("Who had it done."),
    FieldNumber.BYTES_CONVERTED: msgid("Bytes with converted pages in place of the others."),
    FieldNumber.CONVERSION_DURATION: msgid("How long it took."),
    FieldNumber.LINKS: msgid("All links of all pages."),
    FieldNumber.EXTERNAL_LINKS_REPLACED: msgid("Links that lead to a notice, since their target is not archived."),
    FieldNumber.EXTERNAL_LINKS: msgid("The same, each target once."),
    FieldNumber.INTERNAL_LINKS: msgid("Links that stay within the crawl."),
    FieldNumber.LINK_REMARKS: msgid("What else is particular."),
    FieldNumber.ERROR_PAGES: msgid("Pages that are error messages of the server."),
    FieldNumber.ERROR_PAGE_REMARKS: msgid("What else is particular."),
    FieldNumber.SEARCH_LINKS: msgid("Links and forms of the site's own search, which cannot work here."),
    FieldNumber.SEARCH_LINK_REMARKS: msgid("What else is particular."),
    FieldNumber.CONVERTER: msgid("The program that did it, with its version."),
    FieldNumber.CONVERTER_PARAMETERS: msgid("The settings of the program, as they were used."),
    FieldNumber.FILES_CONVERTED: msgid("Pages that have an XHTML form."),
    FieldNumber.FILES_NOT_CONVERTED: msgid("Pages for which none could be made."),
    FieldNumber.CONVERSION_REMARKS: msgid("What went wrong."),
    FieldNumber.INDEX_DATE: msgid("When it was done."),
    FieldNumber.INDEX_PERSON: msgid("Who had it done."),
    FieldNumber.INDEX_DURATION: msgid("How long it took."),
    FieldNumber.INDEXER: msgid("The program that did it, with its version."),
    FieldNumber.INDEXER_PARAMETERS: msgid("The settings of the program, as they were used."),
    FieldNumber.TERMS: msgid("How many different words the index has."),
    FieldNumber.INDEX_REMARKS: msgid("What went wrong."),
    FieldNumber.RELEASE_DATE: msgid("When readers got it."),
    FieldNumber.RELEASE_PERSON: msgid("Who released it."),
    FieldNumber.CHECKED_PAGES: msgid("Pages that were looked at, and what was found."),
    FieldNumber.OTHER_CHECKS: msgid("What else was checked."),
    FieldNumber.RELEASE_REMARKS: msgid("Why it was released, rejected or withdrawn."),
    FieldNumber.BACKUP_DATE: msgid("When it was done."),
    FieldNumber.BACKUP_PERSON: msgid("Who had it done."),
    FieldNumber.BACKUP_DURATION: msgid("How long it took."),
    FieldNumber.BACKUP_BYTES: msgid("Bytes that the backup added."),
    FieldNumber.BACKUP_SOFTWARE: msgid("The program that did it, with its version."),
    FieldNumber.BACKUP_PARAMETERS: msgid("The settings of the program, as they were used."),
    FieldNumber.MEDIUM: msgid("On what the backup lies, as a disk or a tape."),
    FieldNumber.MEDIUM_URI: msgid("Where that is found: a path, or its mark on the shelf."),
    FieldNumber.BACKUP_REMARKS: msgid("What else is particular."),
    FieldNumber.MEASURE_DATE: msgid("When it was done."),
    FieldNumber.MEASURE_PERSON: msgid("Who took it."),
    FieldNumber.MEASURE_KIND: msgid("In a word, as migration or conversion."),
    FieldNumber.MEASURE_DESCRIPTION: msgid("What was done, to which files."),
    FieldNumber.MEASURE_SOFTWARE: msgid("The program that did it, with its version."),
    FieldNumber.MEASURE_PARAMETERS: msgid("The settings of the program, as they were used."),
    FieldNumber.MEASURE_BYTES: msgid("Bytes of the crawl afterwards; empty: as counted."),
    FieldNumber.MEASURE_REMARKS: msgid("Why it was taken, and what went wrong."),
}
#: Name of what is no field of the 81 → label and help (msgids).
_ABOUT: dict[str, tuple[str, str]] = {
    "title": (msgid("Title"), msgid("How lists and readers call the crawl.")),
    "language": (msgid("Language"), msgid("Of most of its pages, as de or en.")),
    "access": (msgid("Access statement"), msgid("Who may see it, in words for readers.")),
}


def of_field(field: Field, code: str, text: Callable[[str], str]) -> tuple[str, str]:
    """Return label and help of a field in a language."""
    help_text = text(_HELP[field.number])
    return (field.de, help_text) if code == "de" else (field.en[:1].upper() + field.en[1:], f"{help_text} ({field.de})")


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
    "mail": msgid("Mail to"),
    "mail_from": msgid("Mail comes from"),
    "webhook": msgid("Requests to (webhooks)"),
    "command": msgid("Program that is run"),
    "sendmail": msgid("Program that sends mail"),
    "webhook_secret": msgid("File with the secret of the requests"),
    "events": msgid("What is told"),
    "digest": msgid("Daily digest at"),
    "disk_free": msgid("Least free disk"),
    "backup_age": msgid("Oldest backup"),
    "index_age": msgid("Longest delay of the search"),
}
#: The same for those of the whole archive, where they differ.
_LABELS_OF_ARCHIVE = {"fetcher": msgid("Sites need a browser")}
#: Key of a setting → the words for its values, in the order in which a form has them.
_CHOICES: dict[str, dict[str, str]] = {
    "fetcher": {"wget": msgid("no"), "auto": msgid("pages that need one"), "browser": msgid("every page")},
    "post": {"own": msgid("to the site's own hosts"), "keep": msgid("also with a login"), "leave": msgid("none")},
}

#: Key of a setting that is a list of words → these words with what they mean, in the order of a form.
_TICKS: dict[str, dict[str, str]] = {
    "events": {
        "crawl-failed": msgid("a crawl failed"),
        "crawl-incomplete": msgid("a crawl is incomplete"),
        "crawl-shrank": msgid("a crawl found much less than before"),
        "nothing-captured": msgid("nothing was captured for two intervals"),
        "check-failed": msgid("a check found something"),
        "waits-for-release": msgid("a crawl waits for its release"),
        "disk-low": msgid("the disk is nearly full"),
        "backup-old": msgid("the backup is missing or old"),
        "index-behind": msgid("the search is behind"),
        "agent-down": msgid("no agent runs"),
        "recovered": msgid("it is over"),
    },
}


def ticks_of_setting(key: str, text: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Return the words that a list of words may have, each with what it means; nothing for another setting."""
    return tuple((word, text(meaning)) for word, meaning in _TICKS.get(key, {}).items())


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
