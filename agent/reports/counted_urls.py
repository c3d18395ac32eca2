"""The URLs behind each count of a report: by word, status, type, host, size, and what pages lack.

A count and its list go by the same rule: `Tables.add` counts what `UrlSelection.takes` lists. The log is read line by
line, so that memory does not grow with it. Lines that cannot fit are passed over before they are parsed, which takes
ten times as long; those of a crawl with patches are all parsed, since a patch may have the newer line of a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from agent.crawl import crawl_log
from agent.crawl.vocabulary import IN_CRAWL_LOG, Reason
from agent.reports import missing_urls, tables
from agent.reports.tables import LogLine
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import TookTooLong, UsageError
from webarcfs.archive.system import clocks

# == selection, pure ==================================================================================================


class Lack(StrEnum):
    """What a URL is to who looks for gaps: a resource that a page lacks, that or a page, a page nobody wanted."""

    RESOURCE = "resource"
    MISSING = "missing"
    UNWANTED = "unwanted"


_YES_NO = {"yes": True, "no": False}
_LONGEST = 20  # digits of a number
#: Words that stand in a line as they are.
_LITERAL = frozenset(map(str, IN_CRAWL_LOG)) - {Reason.NO_SITEMAP}  # the reason of each sitemap that is not there


_OF_STATUS = "status "
#: The reasons in tables that are no words of a log.
REASONS_OF_TABLES = (tables.ROBOTS_ITSELF,)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlSelection:
    """Which URLs of a log are listed; empty fields choose all.

    `word` is the reason of a URL that is not archived, or any word of one that is; with a colon at its end it stands
    for all that begin with it. `is_kept`: archived, and of a crawl that runs, what came. `least` and `below` bound the
    size in bytes.
    """

    word: str = ""
    status: int | None = None
    host: str = ""
    mime: str = ""
    state: str = ""
    is_kept: bool | None = None
    least: int = 0
    below: int | None = None
    lack: Lack | None = None

    @classmethod
    def of_parameters(cls, values: Mapping[str, str]) -> Self:
        """Return the selection of the parameters of an address. Raises UsageError for what cannot be one."""
        lack = values.get("lack", "")
        if lack and lack not in set(Lack):
            raise UsageError(f"{lack[:50]!r} is no list of URLs; there are {', '.join(Lack)}")
        below = values.get("below", "")
        status = values.get("status", "")
        return cls(
            word=values.get("word", ""),
            status=_number(status) if status else None,
            host=values.get("host", ""),
            mime=values.get("type", ""),
            is_kept=_YES_NO.get(values.get("kept", "")),
            least=_number(values.get("least", "") or "0"),
            below=_number(below) if below else None,
            lack=Lack(lack) if lack else None,
        )

    def as_parameters(self) -> dict[str, str]:
        """Return the parameters of an address that say the same."""
        values = {
            "word": self.word,
            "status": "" if self.status is None else str(self.status),
            "host": self.host,
            "type": self.mime,
            "kept": "" if self.is_kept is None else "yes" if self.is_kept else "no",
            "least": str(self.least or ""),
            "below": "" if self.below is None else str(self.below),
            "lack": self.lack or "",
        }
        return {name: str(value) for name, value in values.items() if value}

    def takes(self, line: LogLine, *, live: bool = False) -> bool:
        """Return whether a line is of the list. `live`: of a crawl that runs."""
        is_kept = line.archived or (live and line.came)
        return (
            (self.status is None or line.status == self.status)
            and self.host in ("", line.host)
            and self.mime in ("", line.mime)
            and self.state in ("", line.state)
            and self.is_kept in (None, is_kept)
            and self.least <= line.size
            and (self.below is None or line.size < self.below)
            and (not self.word or self._has_word(line, is_kept=is_kept))
            and (self.lack is None or _lacks(line, self.lack))
        )

    def _has_word(self, line: LogLine, *, is_kept: bool) -> bool:
        words = line.notes if is_kept else (line.reason,)
        if self.word.endswith(":"):
            return any(word.startswith(self.word) for word in words)
        return self.word in words

    def parts(self) -> tuple[str, ...]:
        """Return what the text of each line of the list contains."""
        parts = [f"://{self.host}/" if self.host else "", f" {self.mime} " if self.mime else ""]
        if self.status is not None:
            parts.append(f" {self.status} ")
        if self.word.startswith(_OF_STATUS):
            parts.append(f" {self.word.removeprefix(_OF_STATUS)} ")
        if self.word in _LITERAL or self.word.partition(":")[0] + ":" in _LITERAL:
            parts.append(self.word)
        return tuple(filter(None, parts))


def _number(text: str) -> int:
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdecimal() or len(text) > _LONGEST:
        raise UsageError(f"{text[:50]!r} is no number")
    return int(text)


def _lacks(line: LogLine, lack: Lack) -> bool:
    if lack is Lack.UNWANTED:
        return missing_urls.is_unwanted_page(line) and line.reason != Reason.FOREIGN_HOST
    if missing_urls.is_missing_from_page(line):
        return True
    return lack is Lack.MISSING and missing_urls.is_page_that_failed(line)


def of_size_class(name: str) -> tuple[int, int | None]:
    """Return the smallest size of a class of sizes, and the smallest that is too large. Raises UsageError for none."""
    sizes = tables.SIZES
    if name not in sizes:
        raise UsageError(f"{name!r} is no class of sizes; there are {', '.join(sizes)}")
    at = sizes.index(name)
    if at < 2:
        return (0, 1) if at == 0 else (1, 1024)
    return 1024 << (at - 2), None if at == len(sizes) - 1 else 1024 << (at - 1)


# == reading ==========================================================================================================


@dataclass(slots=True)
class UrlPage:
    """A part of a list of URLs. `total` counts all of the list, or those that were seen before the time was over.

    `read` are lines of the log. `is_cut`: the time was over before all of it was read.
    """

    rows: list[LogLine] = field(default_factory=list)
    total: int = 0
    read: int = 0
    is_cut: bool = False


def chosen(
    archive: Archive, job: str, selection: UrlSelection, on_read: Callable[[], None] = lambda: None
) -> Iterator[LogLine]:
    """Yield the lines of a list, of a crawl as its patches left it, or of one that is open, in the order of its log.

    `on_read` is called for each line that is read. Raises NotFound, Damaged, and what the thread's deadline raises.
    """
    if not (archive.reports / job).is_dir():
        yield from chosen_of_open(archive.jobs / job, selection, on_read)
        return
    if missing_urls.patches_of(archive, job):
        for line in missing_urls.lines(archive, job):
            on_read()
            if selection.takes(line):
                yield line
        return
    with crawl_log.reading(archive.reports / job) as log:
        for line in tables.parsed(_near(log, selection, on_read)):
            if selection.takes(line):
                yield line


def chosen_of_open(
    folder: Path, selection: UrlSelection, on_read: Callable[[], None] = lambda: None
) -> Iterator[LogLine]:
    """Yield the lines of a list of a job that still fetches, as far as its log is there. Raises NotFound, Damaged."""
    with crawl_log.reading(folder) as log:
        for line in tables.parsed(log, live=True):
            clocks.check()
            on_read()
            if selection.takes(line, live=True):
                yield line


def _near(log: Iterable[str], selection: UrlSelection, on_read: Callable[[], None]) -> Iterator[str]:
    parts = selection.parts()
    for text in log:
        clocks.check()
        on_read()
        if all(part in text for part in parts):
            yield text


def page_of(archive: Archive, job: str, selection: UrlSelection, first: int, most: int) -> UrlPage:
    """Return `most` URLs of a list, from number `first` on (0: the first one), as far as the thread's time goes.

    Raises NotFound, Damaged.
    """
    page = UrlPage()

    def count() -> None:
        page.read += 1

    try:
        for line in chosen(archive, job, selection, count):
            if first <= page.total < first + most:
                page.rows.append(line)
            page.total += 1
    except TookTooLong:
        page.is_cut = True
    return page
