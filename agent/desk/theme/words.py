"""What states, steps, events, roles, rights, fields and settings are called on pages: msgids, and their signs. Pure.

A crawl is called a crawl here, whatever the code calls its record, job or capture. The English help of a field names
the German term of the source, by which archivists know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from webarcfs.archive.catalogue.record import Field, FieldNumber, RecordState
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import Right, WorkflowStep
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import parse_time
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
#: Right → what it is for.
RIGHTS: dict[str, str] = {
    Right.CAPTURE: msgid("Start and control crawls"),
    Right.PROCESS: msgid("Process crawls"),
    Right.DESCRIBE: msgid("Describe crawls"),
    Right.REVIEW: msgid("Check and reject crawls"),
    Right.RELEASE: msgid("Release crawls"),
    Right.WITHDRAW: msgid("Withdraw crawls and withhold pages"),
    Right.PUBLICATIONS: msgid("Change publications and registers"),
    Right.OPTIONS: msgid("Change options"),
    Right.PEOPLE: msgid("Change people"),
    Right.ADD: msgid("Add to the archive"),
}
#: Scope of a token → what it is for.
SCOPES: dict[str, str] = {
    Scope.READ: msgid("Read what persons of the archive see"),
    Scope.ADD: msgid("Add files and data to documents"),
    Scope.CAPTURE: msgid("Have pages saved"),
    Scope.MIRROR: msgid("Copy the whole archive"),
}
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
    "done": msgid("fetched"), "failed": msgid("failed"), "fetching": msgid("being requested"),
    "waiting": msgid("waiting"), "refused": msgid("left out"),
}  # fmt: skip
#: State of a page that a browser shows → what its number is called.
VIEWS: dict[str, str] = {
    "waiting": msgid("waiting"), "showing": msgid("being shown"), "done": msgid("shown already"),
    "failed": msgid("could not be shown"),
}  # fmt: skip


SAVED_TOO_OFTEN = msgid("You saved %(count)s pages within an hour. You may save the next one at %(when)s.")
TOO_MANY_WAIT = msgid("Too many pages wait to be saved. Try again in some minutes.")


def moment_of(text: str, language_: str) -> str:
    """Return a time that is written as files have it, as people read it; any other text as it is."""
    with suppress(Damaged):
        return language.moment(parse_time(text), language_)
    return text


def percent(value: float, language_: str) -> str:
    """Return a number of per cent with one decimal, without its sign."""
    return language.per_cent(value / 100, 1, language_).removesuffix(" %")


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
    FieldNumber.OPERATING_SYSTEM: msgid("The system of the server that the site came from, where the server named it."),
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
    "title": (msgid("Title"), msgid("What readers call the crawl. The desk's lists call it by its host and time.")),
    "language": (msgid("Language"), msgid("Of most of its pages, as de or en.")),
    "access": (msgid("Access statement"), msgid("Who may see it, in words for readers.")),
}


def of_field(field: Field, code: str, text: Callable[[str], str]) -> tuple[str, str]:
    """Return label and help of a field in a language."""
    help_text = text(_HELP[field.number])
    if code == "de":
        return field.de, f"{help_text} (Feld {field.number})"
    return field.en[:1].upper() + field.en[1:], f"{help_text} ({field.de}, field {field.number})"


def of_about(name: str, text: Callable[[str], str]) -> tuple[str, str]:
    """Return label and help of title, language and access statement."""
    label, help_text = _ABOUT[name]
    return text(label), text(help_text)


#: Key of a setting → what it is called on pages.
_LABELS = {
    "additions": msgid("Additions to pages"),
    "after": msgid("After which step"),
    "at_deadline": msgid("When its time is over"),
    "backup_age": msgid("Oldest backup"),
    "bind": msgid("Sender address"),
    "browser": msgid("Pages that need a browser in any case"),
    "browser_behaviours": msgid("What is done on a page"),
    "browser_bytes": msgid("Bytes of a page"),
    "browser_clicks": msgid("Clicks on a page"),
    "browser_page_seconds": msgid("Seconds of a page"),
    "browser_requests": msgid("Requests of a page"),
    "browser_scroll": msgid("Steps of scrolling"),
    "ca": msgid("Further certificate authorities"),
    "certificates": msgid("Certificates"),
    "check": msgid("Reference pages"),
    "check_bounds": msgid("Allowed difference"),
    "check_likeness": msgid("Likeness of pictures"),
    "check_pictures": msgid("Pictures to compare"),
    "check_search": msgid("Word that the search must find"),
    "checks": msgid("Further checks"),
    "click": msgid("Buttons to click"),
    "closed_for": msgid("Embargo"),
    "command": msgid("Program that is run"),
    "commit_interval": msgid("Seconds between commits"),
    "conditional": msgid("Ask only for what changed"),
    "cookies": msgid("Cookies"),
    "depth": msgid("Depth"),
    "description": msgid("Description"),
    "digest": msgid("Daily digest at"),
    "disk_free": msgid("Least free disk"),
    "drop_parameters": msgid("Dropped parameters"),
    "error_page": msgid("Marks of error pages"),
    "events": msgid("What is told"),
    "exclude": msgid("Excluded parts"),
    "exclude_extensions": msgid("Excluded extensions"),
    "exclude_hosts": msgid("Excluded hosts"),
    "exclude_types": msgid("Excluded types"),
    "fetcher": msgid("This site needs a browser"),
    "filters": msgid("Filters"),
    "hash_routes": msgid("Views behind #"),
    "headers": msgid("Header fields"),
    "hosts": msgid("Further hosts"),
    "index_age": msgid("Longest delay of the search"),
    "institution": msgid("Institution"),
    "interval": msgid("How often"),
    "keep_errors": msgid("Keep error pages"),
    "keep_rendered": msgid("Kept of what a browser shows"),
    "keep_warc": msgid("Keep WARC files"),
    "links": msgid("Links"),
    "list": msgid("File with addresses"),
    "login": msgid("Login"),
    "mail": msgid("Mail to"),
    "mail_from": msgid("Mail comes from"),
    "max_document_time": msgid("Longest time of a document"),
    "max_duration": msgid("Longest time of a crawl"),
    "max_file_size": msgid("Largest document"),
    "max_host_documents": msgid("Most documents of a host"),
    "max_hosts": msgid("Most hosts"),
    "max_instances": msgid("Downloads at a time"),
    "max_page_resources": msgid("Most resources of a page"),
    "max_parameters": msgid("Most parameters of an address"),
    "max_path_depth": msgid("Deepest path"),
    "max_pattern": msgid("Most pages of one pattern"),
    "max_queries": msgid("Most queries of a page"),
    "max_redirects": msgid("Most redirects of a domain"),
    "max_repeats": msgid("Most repetitions in an address"),
    "max_resource_hosts": msgid("Most hosts of resources"),
    "max_sitemap_urls": msgid("Most addresses of sitemaps"),
    "max_total_size": msgid("Largest crawl"),
    "max_years_ahead": msgid("Most years ahead"),
    "max_years_back": msgid("Most years back"),
    "medium": msgid("Medium"),
    "min_share": msgid("Smallest share"),
    "name": msgid("Name"),
    "note": msgid("Note"),
    "page_requisites": msgid("Embedded resources (older setting)"),
    "page_resources": msgid("Embedded resources"),
    "paths": msgid("Paths"),
    "post": msgid("POST requests of scripts"),
    "private_addresses": msgid("Private addresses"),
    "profile": msgid("Profile"),
    "project": msgid("Project"),
    "provenance": msgid("Provenance"),
    "proxy": msgid("Proxy"),
    "query_seconds": msgid("Seconds for a query"),
    "rate_limit": msgid("Most bytes a second"),
    "release": msgid("Release"),
    "required_hosts": msgid("Hosts that must be complete"),
    "retired": msgid("Retired"),
    "retired_reason": msgid("Why it was retired"),
    "retired_since": msgid("Retired since"),
    "robots": msgid("Obey robots.txt"),
    "robots_for": msgid("What robots.txt holds for"),
    "rule": msgid("Rules for forms and links"),
    "search": msgid("Search"),
    "sendmail": msgid("Program that sends mail"),
    "server": msgid("Single servers"),
    "session_parameters": msgid("Session parameters"),
    "settle": msgid("Seconds to change an addition"),
    "signature": msgid("Signature"),
    "sitemaps": msgid("Sitemaps"),
    "start": msgid("First crawl"),
    "step_by_step": msgid("Step by step"),
    "strict_schema": msgid("Strict schema"),
    "timeout": msgid("Seconds without an answer"),
    "to": msgid("Folder of the backup"),
    "two_persons": msgid("Two persons"),
    "types": msgid("Types"),
    "unchanged": msgid("Pages that did not change"),
    "urls": msgid("Addresses"),
    "user_agent": msgid("Name of the crawler"),
    "wait": msgid("Seconds between two requests"),
    "watch": msgid("Feed to watch"),
    "webhook": msgid("Requests to (webhooks)"),
    "webhook_secret": msgid("File with the secret of the requests"),
    "wget_args": msgid("Arguments for wget"),
}
#: The same for those of the whole archive, where they differ.
_LABELS_OF_ARCHIVE = {"fetcher": msgid("Sites need a browser")}
#: Key of a setting → its help on pages, where that of commands names settings or commands.
_HELPS_OF_SETTINGS = {
    "at_deadline": msgid("What becomes of a crawl that was not done in its time."),
    "certificates": msgid("Whether servers need a valid certificate; what was wrong with it stands with each capture."),
    "check": msgid("Pages that the check of each crawl looks at."),
    "depth": msgid("How many links away from a start address a page may be, or unlimited."),
    "digest": msgid("Time of the day, CET, at which what is still so is told again, all together; or never."),
    "fetcher": msgid("Whether a browser shows pages, so that what their scripts ask for and make is archived."),
    "hash_routes": msgid(
        "Whether the browser shows what links lead to by #/ and #! alone: what it asks for is archived."
    ),
    "keep_rendered": msgid("What is kept of what a browser showed."),
    "links": msgid("Keep the links of pages, so that people can ask which pages lead where."),
    "max_instances": msgid("Programs that fetch at a time, one at most for a server; the archive's number bounds all."),
    "max_path_depth": msgid("Segments of the path of an address; 0 or unlimited: as many as can be kept, 200."),
    "page_requisites": msgid("An older setting: no means the same as embedded resources that are not fetched."),
    "post": msgid("Whether requests of scripts that send something go out."),
    "proxy": msgid("The address of a proxy for all requests; empty: as the machine is set up."),
    "required_hosts": msgid("Hosts that must be complete before a crawl is released by its checks."),
    "search": msgid("Keep the words of documents, so that people can search them."),
    "urls": msgid("Where the crawl begins, one address a line, such as www.example.org."),
}
#: Key of a setting → the words for its values, in the order in which a form has them.
_CHOICES: dict[str, dict[str, str]] = {
    "additions": {"shown": msgid("readers see them"), "staff": msgid("staff alone sees them")},
    "after": {"capture": msgid("the crawl"), "release": msgid("the release")},
    "at_deadline": {"publish": msgid("what there is is published"), "wait": msgid("it waits for an order")},
    "browser_behaviours": {
        "scroll": msgid("scroll down"), "lazy": msgid("load what comes into view"), "more": msgid("load more"),
        "play": msgid("play sounds and films"),
    },
    "certificates": {"check": msgid("must be valid"), "any": msgid("any will do")},
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
        "damaged": msgid("something could not be read"),
        "agent-down": msgid("no agent runs"),
        "recovered": msgid("it is over"),
    },
    "fetcher": {"wget": msgid("no"), "auto": msgid("pages that need one"), "browser": msgid("every page")},
    "keep_rendered": {
        "html": msgid("the page and its text"), "text": msgid("its text"), "picture": msgid("a picture of the window"),
    },
    "page_resources": {
        "any": msgid("on any host"), "hosts": msgid("on accepted hosts"), "none": msgid("not fetched"),
    },
    "post": {"own": msgid("to the site's own hosts"), "keep": msgid("also with a login"), "leave": msgid("none")},
    "release": {
        "automatic": msgid("as soon as it is published"), "when-checked": msgid("when its checks passed"),
        "by-hand": msgid("when somebody releases it"),
    },
    "robots_for": {"all": msgid("everything"), "pages": msgid("pages alone")},
    "unchanged": {"keep": msgid("stay as they are"), "replace": msgid("are replaced")},
}  # fmt: skip
#: Usual intervals, as settings have them → their words.
INTERVALS: dict[str, str] = {
    "1 hour": msgid("hourly"), "1 day": msgid("daily"), "1 week": msgid("weekly"), "1 month": msgid("monthly"),
    "3 months": msgid("quarterly"), "1 year": msgid("yearly"),
}  # fmt: skip


def label_of_setting(key: str, text: Callable[[str], str]) -> str:
    """Return what a setting is called on pages."""
    return text(_LABELS[key])


def help_of_setting(key: str, otherwise: str, text: Callable[[str], str]) -> str:
    """Return the help of a setting: that of pages, else that of commands."""
    return text(_HELPS_OF_SETTINGS.get(key, otherwise))


def label_of_default(key: str, text: Callable[[str], str]) -> str:
    """Return what a setting is called that holds for all publications."""
    return text(_LABELS_OF_ARCHIVE[key]) if key in _LABELS_OF_ARCHIVE else label_of_setting(key, text)


def choices_of_setting(key: str, values: Iterable[str], text: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Return the values that a setting may have, each with its words; those without words of their own at the end."""
    labels = _CHOICES.get(key, {})
    ranks = {value: rank for rank, value in enumerate(labels)}
    ordered = sorted(values, key=lambda value: ranks.get(value, len(ranks)))
    return tuple((value, text(labels.get(value, value))) for value in ordered)


# -- registers ---------------------------------------------------------------------------------------------------------


#: The kinds of programs that read the known formats of the web.
READERS = frozenset({
    msgid("archive programs"), msgid("BitTorrent programs"), msgid("CAD programs"), msgid("database programs"),
    msgid("e-book readers"), msgid("feed readers"), msgid("font programs"), msgid("image programs"),
    msgid("map programs"), msgid("media players"), msgid("office programs"), msgid("PDF readers"),
    msgid("programs for mail and calendars"), msgid("text editors"), msgid("virtual machines"),
    msgid("web browsers"), msgid("web archives' tools"), "Java", "Ruffle",
})  # fmt: skip
