"""What `webarc export` takes away of a search or a query: the question, as the places that it finds."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Final

import click

from webarcfs.archive.index import query
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import CommitTag, format_time
from webarcfs.commands.arguments import ArchiveArgument
from webarcfs.commands.lazy_commands import with_archive
from webarcfs.export.version_selection import Span, VersionQuestion

#: Seconds that a query may take: nobody waits for a page, and ^C ends it.
_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class VersionWords:
    """The words of a search or the condition of a query, and what narrows it.

    `at` is a snapshot, or a time at whose state it is looked.
    """

    words: str | None
    where: str | None
    at: CommitTag | datetime | None
    record: str
    publication: str
    one_a_url: bool
    with_resources: bool

    def __post_init__(self) -> None:
        """Raise UsageError for what makes no sense together."""
        if self.words is not None and self.where is not None:
            raise UsageError("--search and --query are two questions; give one of them")
        if self.where is not None and (self.at is not None or self.record):
            raise UsageError("--at and --record are of --search; a query has crawlTime and commitTag")

    def __str__(self) -> str:
        """Return it as the command's options, for messages and to compare with what was asked before."""
        at = self.at if isinstance(self.at, CommitTag | None) else format_time(self.at)
        named = {"search": self.words, "query": self.where}
        narrowed = {"at": at, "record": self.record, "publication": self.publication}
        options = [f"--{name} {shlex.quote(value)}" for name, value in named.items() if value is not None]
        options += [f"--{name} {value}" for name, value in narrowed.items() if value]
        options += ["--one-a-url"] * self.one_a_url + ["--with-resources"] * self.with_resources
        return " ".join(options)

    def question(self, place: ArchiveArgument) -> VersionQuestion:
        """Return the question to an archive. Raises UsageError, NotFound, Busy and what a search or query raises."""
        span, places = self._searched(place) if self.words is not None else ((None, None), self._queried(place))
        return VersionQuestion(str(self), places, span, self.publication, self.one_a_url, self.with_resources)

    def _searched(self, place: ArchiveArgument) -> tuple[Span, Iterable[tuple[str, int]]]:
        if find_spec("tantivy") is None:
            raise UsageError("search needs more libraries: pip install 'webarcfs[search]'")
        from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

        question = SearchQuestion(
            words=self.words or "",
            at=self.at,
            record=self.record,
            publication=self.publication,
        )
        searcher = Searcher(place.archive, place.gate)
        missing = searcher.count_missing()
        if missing:
            click.echo(
                with_archive(
                    f"webarc: {missing:,} snapshots are not indexed yet, and not searched; the agent indexes them, "
                    "or `webarc-agent index`"
                ),
                err=True,
            )
        return searcher.span_of(question), searcher.every_version(question)

    def _queried(self, place: ArchiveArgument) -> Iterator[tuple[str, int]]:
        condition = query.Condition(self.where or "")
        for tag, path in query.places(place.archive.database, condition, _SECONDS, place.narrowed()):
            yield path, int(CommitTag.parse(tag).crawl_time.timestamp())
