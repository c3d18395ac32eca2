"""The tables of a job's crawl.log: hosts, types, sizes, statuses, Tarântula's states, reasons of URLs left out. Pure.

The log is read line by line: memory is one row for each host, type, status and reason, whatever the number of lines.

`Shares` says what part of a site is archived, excluded, not to be had, unlinked. A crawl knows what links lead to. How
much the server has, and how much of that no link leads to, its owner knows: these two figures are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from agent.crawl.vocabulary import (
    ARCHIVED,
    DECISIONS,
    GONE,
    IN_CRAWL_LOG,
    REMARKS_ON_SHOWN,
    WHOLE,
    Figure,
    Reason,
    Result,
    Status,
    cause_among,
    seed3_code,
)
from webarcfs.archive.model.errors import Damaged, UsageError

# == tables, pure =====================================================================================================


_COLUMNS = 12
#: Annotations that are no reasons.
_NO_REASONS = re.compile(
    rf"({Figure.SEED3}|{Reason.CODING}|{Reason.NOT_CODED}).*"
    rf"|({Figure.TRIES}|{Figure.LINKS}|{Figure.DEPTH}|{Figure.HASH_ROUTES})\d+"
)
#: Tarântula's states of documents (figures 3.8 and 4.3 there), but for those of HTTP.
_STATES = {
    -1: "no HTTP response",
    -3: "of a type that is not kept",
    -4: "too large",
    -5: "outside of the publication",
    -6: "waiting",
    -7: "forbidden by robots.txt",
    -10: "took too long",
    -11: "system error",
}
#: The names of the tables, in their order.
TABLES = ("hosts", "types", "sizes", "statuses", "states", "left_out")
_KILO = 1024
_MEANINGS = {
    Status.WAITING: "not asked for",
    Status.DNS: "host name unknown",
    Status.CONNECT_FAILED: "no connection",
    Status.CONNECTION_LOST: "connection lost",
    Status.TIMEOUT: "timeout",
    Status.RUNTIME: "the crawler failed",
    Status.ILLEGAL_URL: "no URL",
    Status.ROBOTS_UNREACHABLE: "robots.txt not available",
    Status.INVALID_RESPONSE: "no HTTP response",
    Status.TRAP: "looks like a spider trap",
    Status.TOO_MANY_HOPS: "too deep",
    Status.OUT_OF_SCOPE: "host not accepted",
    Status.LEFT_OUT: "host left out while the crawl ran",
    Status.TYPE: "of a type that is not kept",
    Status.QUOTA: "too large",
    Status.TIME_LIMIT: "took too long",
    Status.CUT: "not asked for: the crawl was ended first",
    Status.ROBOTS: "forbidden by robots.txt",
}


#: The path of a sitemap that a crawl looks for by itself.
GUESS = "M"
#: The reason of a robots.txt, which is no document.
ROBOTS_ITSELF = "robots.txt itself"
#: HTTP statuses of redirects, and of other answers without a document.
REDIRECTS = range(300, 400)


@dataclass(frozen=True, slots=True)
class LogLine:
    """The columns of a line of crawl.log that the tables need."""

    url: str
    status: int
    size: int
    path: str
    mime: str
    notes: tuple[str, ...]
    referrer: str = ""

    @property
    def host(self) -> str:
        """The host, with a port unless it is the scheme's default."""
        return self.url.partition("://")[2].partition("/")[0]

    @property
    def archived(self) -> bool:
        """Whether the archive contains a document of the URL after this crawl."""
        return not ARCHIVED.isdisjoint(self.notes)

    @property
    def came(self) -> bool:
        """Whether a document came from the server, whatever the archive makes of it; robots.txt is none."""
        return self.status in WHOLE and not self.path.endswith("P")

    @property
    def state(self) -> str:
        """Tarântula's state."""
        return self.notes[0].removeprefix(Figure.SEED3)

    @property
    def words(self) -> tuple[str, ...]:
        """Its notes, and the reason."""
        return (*self.notes, self.reason)

    @property
    def reason(self) -> str:
        """The word for the reason why it is not archived."""
        if self.path.endswith("P") and self.status > 0:
            return ROBOTS_ITSELF
        if self.path == GUESS and self.status in GONE:
            return Reason.NO_SITEMAP
        words = [note for note in self.notes if not _NO_REASONS.fullmatch(note) and note not in ARCHIVED]
        if self.status > 0:  # it came, whatever the certificate was
            words = [word for word in words if word.partition(":")[0] != Reason.TLS]
        causes = [word for word in words if word not in REMARKS_ON_SHOWN]
        return cause_among(causes or words) or f"status {self.status}"


@dataclass(slots=True)
class TableRow:
    """Counts of one host, type, status or reason: URLs seen, URLs archived, bytes received."""

    urls: int = 0
    archived: int = 0
    bytes: int = 0

    def add(self, line: LogLine) -> None:
        """Count a line."""
        self.urls += 1
        self.archived += line.archived
        self.bytes += line.size


@dataclass(slots=True)
class Tables:
    """The tables, each key → counts. `is_live`: the job still fetches, and what came is not archived yet."""

    is_live: bool = False
    hosts: dict[str, TableRow] = field(default_factory=dict)
    types: dict[str, TableRow] = field(default_factory=dict)
    sizes: dict[str, TableRow] = field(default_factory=dict)
    statuses: dict[str, TableRow] = field(default_factory=dict)
    states: dict[str, TableRow] = field(default_factory=dict)
    left_out: dict[str, TableRow] = field(default_factory=dict)

    def add(self, line: LogLine) -> None:
        """Count a line in the tables that it belongs to."""
        self.hosts.setdefault(line.host, TableRow()).add(line)
        self.statuses.setdefault(str(line.status), TableRow()).add(line)
        self.states.setdefault(line.state, TableRow()).add(line)
        if line.archived or (self.is_live and line.came):
            self.types.setdefault(line.mime, TableRow()).add(line)
            self.sizes.setdefault(size_class(line.size), TableRow()).add(line)
        else:
            self.left_out.setdefault(line.reason, TableRow()).add(line)

    def sorted(self) -> Iterator[tuple[str, list[tuple[str, TableRow]]]]:
        """Yield (name, rows) of each table: sizes by size, of the others the largest rows first."""
        for name in TABLES:
            rows: dict[str, TableRow] = getattr(self, name)
            if name == "sizes":
                yield name, sorted(rows.items(), key=lambda item: SIZES.index(item[0]))
            else:
                yield name, sorted(rows.items(), key=lambda item: (-item[1].urls, item[0]))


def _size(power: int) -> str:
    """Return 2 to a power, from a kilobyte on, as people write it."""
    return f"{1 << power} kB" if power < 10 else f"{1 << power - 10} MB" if power < 20 else f"{1 << power - 20} GB"


_MOST_POWERS = 30
#: The classes of sizes, the smallest first.
SIZES = (
    "0",
    f"under {_size(0)}",
    *(f"{_size(power)} to {_size(power + 1)}" for power in range(_MOST_POWERS)),
    f"{_size(_MOST_POWERS)} and more",
)


def size_class(size: int) -> str:
    """Return the class of a document's size: in each are documents of up to twice the size of its smallest."""
    if not size:
        return SIZES[0]
    return SIZES[1 + min((size // _KILO).bit_length(), _MOST_POWERS + 1)]


def tables(lines: Iterable[str], host: str | None = None, *, live: bool = False) -> Tables:
    """Return the tables of a crawl.log, or of the lines of one host. The arguments and errors are those of `parsed`."""
    result = Tables(live)
    for line in parsed(lines, host, live=live):
        result.add(line)
    return result


def parsed(lines: Iterable[str], host: str | None = None, *, live: bool = False) -> Iterator[LogLine]:
    """Yield the lines of a crawl.log, or those of one host. Raises Damaged for an invalid line.

    `live`: the job still writes it, and its last line may not be whole.
    """
    for number, text in enumerate(lines, 1):
        if live and not text.endswith("\n"):
            break
        line = parse(text, number)
        if host is None or line.host == host:
            yield line


def parse(text: str, number: int) -> LogLine:
    """Parse a line of crawl.log; `number` is for the message. Raises Damaged if it is invalid."""
    columns = text.split()
    try:
        if len(columns) != _COLUMNS:
            raise ValueError
        size = 0 if columns[2] == "-" else int(columns[2])
        return LogLine(
            columns[3], int(columns[1]), size, columns[4], columns[6], tuple(columns[11].split(",")), columns[5]
        )
    except ValueError:
        raise Damaged(f"line {number} of crawl.log is not one: {text.strip()[:200]!r}") from None


def meaning(status: int) -> str:
    """Return the meaning of a status of crawl.log in words."""
    if status > 0:
        return HTTPStatus(status).phrase if status in {http_status.value for http_status in HTTPStatus} else "HTTP"
    return _MEANINGS.get(Status(status), "") if status in set(Status) else ""


def state_meaning(state: str) -> str:
    """Return the meaning of one of Tarântula's states in words."""
    number = int(state) if state.removeprefix("-").isdecimal() else 0
    return meaning(number) if number > 0 else _STATES.get(number, "")


def share(row: TableRow, rows: Iterable[TableRow]) -> float:
    """Return the share of a row in the URLs of its table, in percent."""
    whole = sum(table_row.urls for table_row in rows)
    return round(100 * row.urls / whole, 2) if whole else 0.0


def as_rows(tables: Tables) -> Iterator[dict[str, object]]:
    """Yield the rows of all tables as records, for JSON and CSV."""
    for name, rows in tables.sorted():
        counts = [row for _, row in rows]
        for key, row in rows:
            record: dict[str, object] = {"table": name, "key": key, "meaning": ""}
            if name == "statuses":
                record["meaning"] = meaning(int(key))
                record["seed3"] = seed3_code(int(key))
            elif name == "states":
                record["meaning"] = state_meaning(key)
            yield record | {"urls": row.urls, "archived": row.archived, "bytes": row.bytes, "share": share(row, counts)}


# == one URL, pure ====================================================================================================


_HOPS = {
    "L": "by a link",
    "E": "as a resource that a page needs",
    "R": "by a redirect",
    "P": "as a robots.txt",
    "M": "by an entry",  # of a sitemap or feed
}
_SENTENCES = {str(word): word.sentence for word in IN_CRAWL_LOG if not isinstance(word, Figure)}


def fate(line: LogLine, by: str = "") -> Iterator[str]:
    """Yield what became of a URL, in sentences: whether it is archived, why or why not, how the crawl came to it.

    `by` ends the first of them: which crawl that is about.
    """
    yield f"{line.url} is {'archived' if line.archived else 'not archived'}{by}"
    yield f"  status {line.status}: {meaning(line.status)}" if meaning(line.status) else f"  status {line.status}"
    for note in line.notes:
        if (sentence := sentence_of(note)) is not None:
            yield f"  {note}: {sentence}"
    came = _HOPS.get(line.path[-1:], "as a start URL")
    if line.referrer.startswith("http"):
        came += f" of {line.referrer}"
    elif line.path == GUESS:
        came = "as the sitemap of its host"
    yield f"  found {came}"


def sentence_of(note: str) -> str | None:
    """Return the sentence for an annotation of crawl.log; None for a figure, or a word of another version."""
    word, colon, _ = note.partition(":")
    return _SENTENCES.get(note) or _SENTENCES.get(word + colon)


def lines_of(log: Iterable[str], url: str, *, live: bool = False) -> dict[str, LogLine]:
    """Return the lines of a crawl.log about a URL in its spellings. Raises Damaged for an invalid one among them."""
    ways = spellings(url)
    part = url.partition("://")[2].partition("?")[0].rstrip("/")
    near = (text for text in log if part in text)  # to parse a line takes ten times as long
    return {line.url: line for line in parsed(near, live=live) if line.url in ways}


def spellings(url: str) -> tuple[str, ...]:
    """Return a canonical URL, and those with which people confuse it: of the other scheme, with or without a slash."""
    scheme, _, rest = url.partition("://")
    path, mark, query = rest.partition("?")
    slashed = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    other = {"http": "https", "https": "http"}.get(scheme, scheme)
    paths = (path, slashed) if "/" in path.removesuffix("/") else (path,)
    return tuple(dict.fromkeys(f"{name}://{rest}{mark}{query}" for name in (scheme, other) for rest in paths))


# == shares, pure =====================================================================================================


_NO_DOCUMENTS = frozenset({Result.DUPLICATE, Reason.NO_SITEMAP})


@dataclass(slots=True)
class Shares:
    """Documents of a site: archived, excluded by a decision, and asked for without getting one."""

    archived: int = 0
    excluded: int = 0
    lost: int = 0

    def add(self, line: LogLine) -> None:
        """Count a line: not robots.txt, a redirect, a second URL of a document, no sitemap, another site's URL."""
        if line.archived:
            self.archived += 1
        elif line.path.endswith("P") or line.status in REDIRECTS or not _NO_DOCUMENTS.isdisjoint(line.words):
            return
        elif line.reason in DECISIONS or line.reason.startswith(Reason.FILTER):
            self.excluded += 1
        elif line.reason != Reason.FOREIGN_HOST:
            self.lost += 1

    def rows(self, on_server: int | None = None, unlinked: int | None = None) -> Iterator[tuple[str, int, float]]:
        """Yield what each share is, its documents, and its percentage of what the server has, or else of all known.

        Raises UsageError if more is known than the server is said to have.
        """
        parts = {"archived": self.archived, "excluded": self.excluded, "not to be had": self.lost}
        if unlinked is not None:
            parts["unlinked"] = unlinked
        total = sum(parts.values())
        if on_server is not None:
            if on_server < total:
                raise UsageError(f"the crawl and --unlinked know of {total} documents: --on-server has to be as many")
            parts["not accounted for"] = on_server - total
        whole = total if on_server is None else on_server
        yield from ((name, count, 100 * count / whole if whole else 0.0) for name, count in parts.items())
        yield "on the server" if on_server is not None else "known", whole, 100.0 if whole else 0.0


def shares(lines: Iterable[str], host: str | None = None, *, live: bool = False) -> Shares:
    """Return the shares of a crawl.log, or of the lines of one host. Raises Damaged for an invalid line."""
    result = Shares()
    for line in parsed(lines, host, live=live):
        result.add(line)
    return result
