"""What a crawl asked for and did not get: the lines of its crawl.log, as its patches left them.

A patch asks again for some of these URLs, and writes a log of its own. So what counts of a URL is its newest line, but
for one that a patch never tried since it ended before. A URL that a page of a patch needs, and that failed there, is
missing as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.crawl import crawl_log, job_folder, scope
from agent.crawl.vocabulary import (
    CUT,
    DECISIONS,
    IN_CRAWL_LOG,
    NOT_TRIED,
    UNWANTED,
    WHOLE,
    Figure,
    Reason,
    Result,
    may_pass,
)
from agent.reports import tables
from agent.reports.tables import LogLine
from webarcfs.archive.catalogue.record import PATCH
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system import clocks, files
from webarcfs.warc import request_key

# == choosing, pure ===================================================================================================


#: Decisions that are about this one crawl: a person may want what they left out all the same, and says so by the word.
_OF_THIS_CRAWL = frozenset(
    {
        Reason.ROBOTS, Reason.HOST_FULL, Reason.OVER_SIZE, Reason.OVER_TIME, Reason.STOPPED, Reason.DISCARDED,
        Reason.LEFT_OUT, Reason.TOO_BIG,
    }
)  # fmt: skip
_ERRORS = 400


def could_be_asked_for(line: LogLine) -> bool:
    """Return whether a URL is not archived for a reason that may be another one next time.

    Settings that left it out also hold in a patch. robots.txt, redirects, sitemaps and second URLs of a document are
    no pages. What a script asked for by POST, only that script can ask for.
    """
    if request_key.parts_of(line.url) is not None:
        return False
    if line.archived or line.path.endswith("P") or line.path == tables.GUESS or line.status in tables.REDIRECTS:
        return False
    words = {Result.DUPLICATE, Reason.NO_SITEMAP, Reason.FOREIGN_HOST, Reason.NOT_MODIFIED}
    if not words.isdisjoint(line.notes) or any(note.startswith(Reason.FILTER) for note in line.notes):
        return False
    return line.reason not in DECISIONS or line.reason in _OF_THIS_CRAWL


def may_be_named(line: LogLine) -> bool:
    """Return whether a person may have a patch ask for a URL that is named, whatever kept the crawl from it.

    The settings of the crawl decide about it once more. What is archived, a robots.txt, and what only a script can ask
    for are not asked for.
    """
    is_page = not line.path.endswith("P") and line.path != tables.GUESS
    return is_page and not line.archived and request_key.parts_of(line.url) is None


def start_hosts(lines: Iterable[LogLine]) -> set[str]:
    """Return the hosts of the start URLs of a crawl, and of what these redirected to."""
    return {line.host for line in lines if not line.path.strip("-R")}


def has_failed(line: LogLine) -> bool:
    """Return whether a URL did not come through a failure: no response, a broken one, or an error of the server."""
    if not could_be_asked_for(line) or line.reason in DECISIONS:
        return False
    return line.status <= 0 or may_pass(line.status) or line.status in WHOLE


def is_missing_from_page(line: LogLine) -> bool:
    """Return whether a page needs a URL that the archive does not have, also where a setting refuses it.

    It is what `Frontier.missing` yields of a job whose frontier is there.
    """
    if line.archived or not scope.embedded_in(line.path) or line.path.endswith("P"):
        return False
    if not {Result.DUPLICATE, Reason.NOT_MODIFIED}.isdisjoint(line.notes):
        return False
    if any(note.startswith(Reason.FILTER) for note in line.notes):
        return False
    return line.status <= 0 or line.status >= _ERRORS or line.status in WHOLE


def is_page_that_failed(line: LogLine) -> bool:
    """Return whether a page did not come, which no decision left out; that its host is not the crawl's is one."""
    if not _is_page(line) or line.reason in UNWANTED:
        return False
    return line.status <= 0 or line.status >= _ERRORS or line.status in WHOLE


def is_unwanted_page(line: LogLine) -> bool:
    """Return whether a page was known and not asked for: a setting, a person, robots.txt or its host left it out."""
    return _is_page(line) and line.status <= 0 and line.reason in UNWANTED


def _is_page(line: LogLine) -> bool:
    """Return whether a line is of a page that is not archived, and whose document no other URL or filter has."""
    if line.archived or line.path.endswith("P") or line.path == tables.GUESS or scope.embedded_in(line.path):
        return False
    if not {Result.DUPLICATE, Reason.NOT_MODIFIED, Reason.NO_SITEMAP}.isdisjoint(line.notes):
        return False
    return not any(note.startswith(Reason.FILTER) for note in line.notes)


def _replaces(line: LogLine) -> bool:
    """Return whether a line of a patch says more of its URL than the crawl did: what the scope refused says nothing."""
    return line.archived or line.status > 0 or could_be_asked_for(line)


def _was_tried(line: LogLine) -> bool:
    return line.status not in NOT_TRIED and Reason.OVER_SIZE not in line.notes


def words_of(line: LogLine) -> tuple[str, ...]:
    """Return the words by which a person may choose a URL: the reasons, and `status 404`."""
    return (*line.notes, f"status {line.status}", str(line.status))


_STATUS = re.compile(r"(status )?-?\d{1,5}", re.ASCII)
#: The words that a person may choose by; those that end with a colon have a rest of their own.
WORDS = tuple(str(word) for word in IN_CRAWL_LOG if not isinstance(word, Figure))


def is_word(word: str) -> bool:
    """Return whether a word may stand in crawl.log: one of the vocabulary, one before its colon, or a status."""
    if _STATUS.fullmatch(word):
        return True
    return any(
        name == word or name.startswith(f"{word}:") or (name.endswith(":") and word.startswith(name)) for name in WORDS
    )


def is_chosen(line: LogLine, word: str = "", url: str = "", *, cut: bool = False) -> bool:
    """Return whether a patch asks for a URL again: a failure, or of this word; a word before a colon stands for all.

    `url` is a host, or a host and a path, with `*`. `cut`: without a word, also what the end of the crawl left.
    """
    if url and not scope.covers(url, line.host, line.url):
        return False
    if not word:
        return has_failed(line) or (cut and line.reason in CUT and could_be_asked_for(line))
    has_word = any(name == word or name.startswith(f"{word}:") for name in words_of(line))
    return has_word and could_be_asked_for(line)


# == reading ==========================================================================================================


def patches_of(archive: Archive, job: str) -> list[Path]:
    """Return the reports of the patches of a crawl, oldest first."""
    publication = job_folder.publication_of(job)
    folders = sorted(archive.reports.glob(f"[0-9]*-{publication}{PATCH}"))
    return [folder for folder in folders if patched_by(folder) == job]


def patched_by(report: Path) -> str:
    """Return the job of the crawl that the job of a report patched; empty if it patched none."""
    with suppress(Damaged, OSError):
        return str((files.read_json(report / "summary.json") or {}).get("patches", ""))
    return ""


def lines(archive: Archive, job: str) -> Iterator[LogLine]:
    """Yield the newest line of each URL of a crawl. Memory grows with its patches alone.

    Raises NotFound, Damaged, and what the thread's deadline raises.
    """
    newest: dict[str, LogLine] = {}
    untried: dict[str, LogLine] = {}
    for folder in patches_of(archive, job):
        for line in _read(folder):
            if _replaces(line):
                (newest if _was_tried(line) else untried)[line.url] = line
    for line in _read(archive.reports / job):
        untried.pop(line.url, None)
        yield _with_referrer(newest.pop(line.url, line), line)
    yield from newest.values()
    yield from (line for url, line in untried.items() if url not in newest)


def lines_of(archive: Archive, job: str, url: str, patches: Sequence[Path] | None = None) -> dict[str, LogLine]:
    """Return the newest lines of a crawl about a URL in its spellings. The errors are those of `lines`.

    `patches` are the reports of its patches, oldest first; without them they are looked for.
    """
    before = _about(archive.reports / job, url)
    newest = dict(before)
    untried: dict[str, LogLine] = {}
    for folder in patches_of(archive, job) if patches is None else patches:
        for line in _about(folder, url).values():
            if _replaces(line):
                (newest if _was_tried(line) else untried)[line.url] = line
    return {url: _with_referrer(line, before.get(url, line)) for url, line in (untried | newest).items()}


def _with_referrer(line: LogLine, before: LogLine) -> LogLine:
    """Return a line of a patch with the page by which the crawl found its URL: the patch read no page for it."""
    return line if line.referrer.startswith("http") else replace(line, referrer=before.referrer)


def _about(report: Path, url: str) -> dict[str, LogLine]:
    with crawl_log.reading(report) as log:
        return tables.lines_of(_checked(log), url)


def _read(report: Path) -> Iterator[LogLine]:
    with crawl_log.reading(report) as log:
        yield from tables.parsed(_checked(log))


def _checked(log: Iterator[str]) -> Iterator[str]:
    for text in log:
        clocks.check()
        yield text
