"""The message and trailers of a domain's commits. Pure (/Ar-8/).

The first line is the commitTag. A crawl's commit has the trailers Publication, Complete, Sequence, Job; for imports,
Import, Source and Source-End; `Release: held` if readers may not see it at once; Seen, the tree that the publication
saw, if less than the commit's; and Met, the blob of the list of what it met unchanged. `Errors: kept` says that error
pages are archived in this state or an earlier one. A commit of additions has an `Added` for each file, a `Journal` for
each of their logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag

#: The committer of all commits; the author of an addition is the user who wrote it.
COMMITTER = ("webarcfs", "webarcfs@localhost")

_QUOTED = {ord(char): f"\\{letter}" for char, letter in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}
#: Paths that are written unquoted.
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


@dataclass(frozen=True, slots=True)
class CrawlMessage:
    """The message of a crawl's commit. `sequence` counts the publications of the whole archive.

    `job` is the name of the job, `seen` the tree that its publication saw, empty if it saw the whole state, `met` the
    list of what it met unchanged; `held` says that readers may not see it as soon as it is published. The `sources` of
    a snapshot of an import are the SHA-256 of the files that it has captures of, `ended` those that no later snapshot
    has any of; `imported_by` names the import.
    """

    tag: CommitTag
    publication: str
    complete: bool
    sequence: int
    sources: Sequence[str] = ()
    job: str = ""
    held: bool = False
    seen: str = ""
    errors: bool = False
    met: str = ""
    ended: Sequence[str] = ()
    imported_by: str = ""

    def __str__(self) -> str:
        lines = [
            str(self.tag),
            "",
            f"Publication: {self.publication}",
            f"Complete: {'yes' if self.complete else 'no'}",
            f"Sequence: {self.sequence}",
            *([f"Job: {self.job}"] if self.job else []),
            *(["Release: held"] if self.held else []),
            *([f"Seen: {self.seen}"] if self.seen else []),
            *([f"Met: {self.met}"] if self.met else []),
            *(["Errors: kept"] if self.errors else []),
            *([f"Import: {self.imported_by}"] if self.imported_by else []),
            *(f"Source: sha256:{digest}" for digest in self.sources),
            *(f"Source-End: sha256:{digest}" for digest in self.ended),
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class AdditionsMessage:
    """The message of a commit of additions: the paths, relative to the domain, of files that are new or grew
    (data.xml); (old, new) of renamed ones; and the progress of each log of the journal.
    """

    tag: CommitTag
    added: Sequence[str]
    renamed: Sequence[tuple[str, str]] = ()
    done: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        added = (f"Added: {quoted(path)}" for path in self.added)
        renamed = (f"Renamed: {quoted(old)} -> {quoted(new)}" for old, new in self.renamed)
        done = (f"Journal: {log} {number}" for log, number in self.done.items())
        return "\n".join([str(self.tag), "", *added, *renamed, *done]) + "\n"


def quoted(path: str) -> str:
    """Return a path in ASCII, as git writes it: quoted and escaped if necessary (`core.quotePath`)."""
    if _PLAIN.fullmatch(path):
        return path
    raw = path.encode("utf-8", "surrogateescape")
    text = "".join(_QUOTED.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in raw)
    return path if text == path else f'"{text}"'


@dataclass(frozen=True, slots=True)
class Message:
    """Any commit's parsed message: the tag and all trailers in order."""

    tag: CommitTag
    trailers: tuple[tuple[str, str], ...]

    def all(self, key: str) -> list[str]:
        """Return the values of every trailer `key`."""
        return [value for name, value in self.trailers if name == key]

    @property
    def is_crawl(self) -> bool:
        """Whether a crawl made this commit (as opposed to additions)."""
        return bool(self.all("Sequence"))

    @property
    def sequence(self) -> int:
        """The number in the order of the feed. Raises Damaged for a commit without one."""
        values = self.all("Sequence")
        if len(values) != 1 or not values[0].isdecimal():
            raise Damaged(f"the commit of {self.tag} has no Sequence")
        return int(values[0])

    @property
    def publication(self) -> str:
        """Name of the crawl's publication; empty for additions."""
        return "".join(self.all("Publication")[:1])

    @property
    def job(self) -> str:
        """Name of the job that made it; empty for additions, and for crawls of layout 1."""
        return "".join(self.all("Job")[:1])

    @property
    def is_held(self) -> bool:
        """Whether readers were not allowed to see it as soon as it was published."""
        return self.all("Release") == ["held"]

    @property
    def seen(self) -> str:
        """The tree of this state that its publication saw; empty if it saw all of it, or for layout 1."""
        return "".join(self.all("Seen")[:1])

    @property
    def met(self) -> str:
        """The blob of the list of what the crawl met unchanged; empty before layout 3."""
        return "".join(self.all("Met")[:1])

    @property
    def has_errors(self) -> bool:
        """Whether this state, or an earlier one, has error pages among its documents."""
        return self.all("Errors") == ["kept"]

    @property
    def done(self) -> dict[str, int]:
        """The progress of each log of the journal at this commit of additions: log → number."""
        words = (value.rpartition(" ") for value in self.all("Journal"))
        return {log: int(number) for log, _, number in words if number.isdecimal()}

    @property
    def complete(self) -> bool:
        """Whether the crawl was complete."""
        return self.all("Complete") == ["yes"]


def parse(text: str) -> Message:
    """Parse a commit's message. Raises Damaged when it does not start with a commitTag."""
    first, _, rest = text.partition("\n")
    pairs = (line.partition(": ") for line in rest.split("\n"))
    return Message(CommitTag.parse(first.strip()), tuple((key, value) for key, colon, value in pairs if colon))
