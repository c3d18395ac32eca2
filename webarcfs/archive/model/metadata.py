"""The values that all modules share: times in CET, the commitTag, a document's metadata, messages of commits. Pure.

The eight field names of the specification (§2), and two of ours, are used in XML, SQL and extended attributes; Python
attributes are the same words in snake_case.

The first line of the message of a domain's commit is the commitTag (/Ar-8/). A crawl's commit has the trailers
Publication, Complete, Sequence, Job; for imports, Import, Source and Source-End; `Release: held` if readers may not see
it at once; Seen, the tree that the publication saw, if less than the commit's; and Met, the blob of the list of what it
met unchanged. The commit of a patch has the Job of the crawl that it patches, and its own name as Patch. `Errors: kept`
says that error pages are archived in this state or an earlier one. A commit of additions has an `Added` for each file,
a `Journal` for each of their logs.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from webarcfs.archive.model.errors import Damaged

# == metadata, pure ===================================================================================================


#: The archive's clock: UTC+01:00 all year, no summer time (specification §2, note on timestamps).
CET = timezone(timedelta(hours=1), "CET")

#: Times and tags that are cached: the documents of a crawl share theirs, and whole sites are read at once.
_REMEMBERED = 4096
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
#: The status of a normal page.
OK = 200
_FIRST_ERROR = 400
#: What a host is to a crawl: it has pages of it, or only what pages of others need. The latter is `role` in data.xml.
PAGE_ROLE, RESOURCE_ROLE = "page", "resource"
#: What questions say for both.
ANY_ROLE = "any"
ROLES = (PAGE_ROLE, RESOURCE_ROLE, ANY_ROLE)
_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}", re.ASCII)
_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)
#: A time without seconds, with or without its minute and a zone.
_HOUR_OR_MINUTE = re.compile(r"\d{4}-?\d\d-?\d\d[T ]\d\d(:?\d\d)?(?:Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
_DAY_LENGTH = 86_400
_COMPACT_TIME = re.compile(r"\d{8}T\d{6}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)


_COMPACT = str.maketrans("", "", "-:")


def now() -> datetime:
    """Return the time in CET, to the second, the archive's resolution."""
    return datetime.now(CET).replace(microsecond=0)


def from_epoch(seconds: float) -> datetime:
    """Return seconds since 1970 (UTC) as a CET time, cut to the second."""
    return datetime.fromtimestamp(int(seconds), CET)


@lru_cache(_REMEMBERED)
def format_time(time: datetime) -> str:
    """Return `yyyy-mm-ddThh:mm:ss`, CET."""
    # Without strftime, which writes years before 1000 without their zeros.
    return time.astimezone(CET).replace(tzinfo=None).isoformat(timespec="seconds")


@lru_cache(_REMEMBERED)
def parse_time(text: str) -> datetime:
    """Return the inverse of `format_time`. Raises Damaged for any other text."""
    try:
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text).replace(tzinfo=CET)
    except ValueError:
        raise Damaged(f"{text!r} is not a time of the form yyyy-mm-ddThh:mm:ss") from None


def parse_moment(text: str) -> CommitTag | datetime:
    """Return the snapshot or the time that a person means. Raises Damaged for any other text.

    A time without a zone is in CET. A year, month, day, hour or minute is its end: what was captured on a day is there
    on that day.
    """
    try:
        return CommitTag.parse(text) if "@" in text else _end_of(text)
    except (ValueError, OverflowError, Damaged):
        raise Damaged(f"{text!r} is no commitTag and no time, as 2026, 2026-11-21 or 2026-11-21T03:00:00") from None


def _end_of(text: str) -> datetime:
    """Return the end of a year, month, day, hour or minute; a second as it is. Raises ValueError, OverflowError."""
    if match := _YEAR_OR_MONTH.fullmatch(text):
        year, month = int(match[1]), int(match[2] or 12)
        return datetime(year, month, monthrange(year, month)[1], 23, 59, 59, 999_999, CET)
    if "W" in text:
        raise ValueError("a week has another end than its first day")
    begin = datetime.fromisoformat(text)
    begin = begin if begin.tzinfo else begin.replace(tzinfo=CET)
    begin.astimezone(CET)  # a zone at the ends of the calendar leads out of it
    if _DAY.fullmatch(text):
        return begin.replace(hour=23, minute=59, second=59, microsecond=999_999)
    if match := _HOUR_OR_MINUTE.fullmatch(text):
        minute = begin.minute if match[1] else 59
        return begin.replace(minute=minute, second=59, microsecond=999_999)
    return begin


def compact_time(time: datetime) -> str:
    """Return `YYYYmmddTHHMMSS` in CET: the form used in ref names and job folders."""
    return format_time(time).translate(_COMPACT)


def parse_compact_time(text: str) -> datetime:
    """Return the inverse of `compact_time`. Raises Damaged for any other text."""
    try:
        if not _COMPACT_TIME.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text).replace(tzinfo=CET)  # strptime takes ten times as long
    except ValueError:
        raise Damaged(f"{text!r} is not a time of the form YYYYmmddTHHMMSS") from None


def utc(time: datetime) -> datetime:
    """Return the same instant in UTC, the time of WARC records and crawl.log."""
    return time.astimezone(UTC)


def format_utc(time: datetime) -> str:
    """Return `yyyy-mm-ddThh:mm:ssZ`: the form of WARC-Date."""
    return f"{utc(time).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def format_digits(seconds: int) -> str:
    """Return seconds since 1970 as `yyyymmddhhmmss`, UTC: the form of the Wayback Machine."""
    day, rest = divmod(seconds, _DAY_LENGTH)
    minutes, second = divmod(rest, 60)
    return f"{_day_digits(day)}{minutes // 60:02}{minutes % 60:02}{second:02}"


@lru_cache(_REMEMBERED)
def _day_digits(number: int) -> str:
    day = datetime.fromtimestamp(number * _DAY_LENGTH, UTC)
    return f"{day.year:04}{day.month:02}{day.day:02}"


@dataclass(frozen=True, slots=True, order=True)
class CommitTag:
    """`<crawlTime>@<domain>`: names one snapshot of one domain (specification §2)."""

    crawl_time: datetime
    domain: str

    def __str__(self) -> str:
        return f"{format_time(self.crawl_time)}@{self.domain}"

    @property
    def ref(self) -> str:
        """The ref in the domain's repository with this tag's newest commit."""
        return f"refs/crawls/{compact_time(self.crawl_time)}"

    @property
    def seen_ref(self) -> str:
        """The ref of the tree that this crawl's publication saw, if less than the crawl's state."""
        return f"refs/seen/{compact_time(self.crawl_time)}"

    @property
    def met_ref(self) -> str:
        """The ref of the list of what this crawl met unchanged."""
        return f"refs/met/{compact_time(self.crawl_time)}"

    @classmethod
    @lru_cache(_REMEMBERED)
    def parse(cls, text: str) -> CommitTag:
        """Return the tag that `text` spells. Raises Damaged for any other text."""
        time, at, domain = text.partition("@")
        if not at or not domain or "/" in domain:
            raise Damaged(f"{text!r} is not a commitTag (<crawlTime>@<domain>)")
        return cls(parse_time(time), domain)


@dataclass(frozen=True, slots=True)
class MetaData:
    """The metadata of one version of one document (specification §2, /Cl-2.1/).

    `path` is absolute inside the archive: `/<domain>/…/<name>`, so that mount point + path is the ARC. `captured` is
    the time of the server's answer; None if that was crawl_time, or before layout 2. `status` is HTTP's. `role` is that
    of a page, unless only pages of other hosts needed it. It and the fields after it are those of layout 3, each of
    these empty where it says nothing (xsd/arc.xsd says what they mean).
    """

    url: str
    mime_type: str
    title: str
    path: str
    domain: str
    crawl_time: datetime
    create_time: datetime
    commit_tag: CommitTag
    captured: datetime | None = None
    status: int = OK
    role: str = PAGE_ROLE
    source: str = ""
    certificate: str = ""
    method: str = ""
    rendered: str = ""
    request_type: str = ""

    @property
    def capture_time(self) -> datetime:
        """The time of the server's answer, as far as known."""
        return self.crawl_time if self.captured is None else self.captured

    @property
    def is_error_page(self) -> bool:
        """Whether the server said with it that there is no such page."""
        return self.status >= _FIRST_ERROR

    @property
    def is_resource(self) -> bool:
        """Whether no crawl met it as a page, only pages of other hosts needed it."""
        return self.role == RESOURCE_ROLE

    def as_fields(self) -> dict[str, str]:
        """Return the fields of FIELDS and CAPTURE_FIELDS, whose names are those in XML, SQL and extended attributes."""
        return {
            "url": self.url,
            "mimeType": self.mime_type,
            "title": self.title,
            "path": self.path,
            "domain": self.domain,
            "crawlTime": format_time(self.crawl_time),
            "createTime": format_time(self.create_time),
            "commitTag": str(self.commit_tag),
            "captureTime": format_time(self.capture_time),
            "status": str(self.status),
            "role": self.role,
            "certificate": self.certificate,
        }

    def as_attributes(self) -> dict[str, str]:
        """Return what a data.xml has of them: all of FIELDS, and those of the others that say something."""
        silent = {
            "captureTime": self.captured is None, "status": self.status == OK, "role": self.role == PAGE_ROLE,
        }  # fmt: skip
        fields = self.as_fields() | {
            "source": self.source, "method": self.method, "rendered": self.rendered, "requestType": self.request_type,
        }  # fmt: skip
        return {name: value for name, value in fields.items() if name in FIELDS or not silent.get(name, not value)}

    @classmethod
    def from_fields(cls, fields: dict[str, str]) -> MetaData:
        """Return the inverse of both. Raises Damaged when a field is missing or malformed."""
        missing = [name for name in FIELDS if name not in fields]
        if missing:
            raise Damaged(f"metadata without {', '.join(missing)}")
        captured = fields.get("captureTime", fields["crawlTime"])
        return cls(
            url=fields["url"],
            mime_type=fields["mimeType"],
            title=fields["title"],
            path=fields["path"],
            domain=fields["domain"],
            crawl_time=parse_time(fields["crawlTime"]),
            create_time=parse_time(fields["createTime"]),
            commit_tag=CommitTag.parse(fields["commitTag"]),
            captured=None if captured == fields["crawlTime"] else parse_time(captured),
            status=_parse_status(fields.get("status", "200")),
            role=fields.get("role") or PAGE_ROLE,
            source=fields.get("source", ""),
            certificate=fields.get("certificate", ""),
            method=fields.get("method", ""),
            rendered=fields.get("rendered", ""),
            request_type=fields.get("requestType", ""),
        )


def _parse_status(text: str) -> int:
    """Parse an HTTP status: three digits, of which the first is 1 to 5 (RFC 9110 section 15). Raises Damaged."""
    if not _STATUS.fullmatch(text):
        raise Damaged(f"{text!r} is no HTTP status")
    return int(text)


#: The names of the eight fields of the specification, in its order.
FIELDS = ("url", "mimeType", "title", "path", "domain", "crawlTime", "createTime", "commitTag")
#: Two fields of layout 2 and two of layout 3; a data.xml has them only if they add information: a time other than
#: crawlTime, a status other than 200, the role of a resource, a certificate with faults.
CAPTURE_FIELDS = ("captureTime", "status", "role", "certificate")
#: `source` of a document that a WARC has as a record of that kind, without the head of an answer.
RESOURCE = "resource"
#: `source` of a copy: of a file of a mirror, or a page that a browser saved with a folder; of a page of SingleFile; of
#: a part of MHTML.
MIRROR, SINGLE_FILE, MHTML = "mirror", "SingleFile", "MHTML"
#: `source` of a copy that has the status and the headers of a response, as a browser recorded them.
HAR = "HAR"
#: `source` of a document that is a copy, which replaces no response.
COPIES = frozenset({MIRROR, SINGLE_FILE, HAR, MHTML})
#: The other fields of layout 3; a data.xml has only those that say something. They are neither columns nor attributes.
EVIDENCE_FIELDS = ("source", "method", "rendered", "requestType")


# == commit message, pure =============================================================================================


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
    has any of; `imported_by` names the import. `copies`: this state may have documents that are copies (`COPIES`).
    `resources`: `kept` where some may be what only pages of other hosts needed, `alone` where the crawl had no page.
    `patch` names the job that made it, where that asked again for what the crawl of `job` did not get. `secrets`: the
    crawl showed secrets to servers, so headers that it stored may have what these answered.
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
    copies: bool = False
    resources: str = ""
    patch: str = ""
    secrets: bool = False

    def __str__(self) -> str:
        lines = [
            str(self.tag),
            "",
            f"Publication: {self.publication}",
            f"Complete: {'yes' if self.complete else 'no'}",
            f"Sequence: {self.sequence}",
            *([f"Job: {self.job}"] if self.job else []),
            *([f"Patch: {self.patch}"] if self.patch else []),
            *(["Release: held"] if self.held else []),
            *([f"Seen: {self.seen}"] if self.seen else []),
            *([f"Met: {self.met}"] if self.met else []),
            *(["Errors: kept"] if self.errors else []),
            *(["Copies: kept"] if self.copies else []),
            *([f"Resources: {self.resources}"] if self.resources else []),
            *(["Secrets: shown"] if self.secrets else []),
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
class CommitMessage:
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
    def is_import(self) -> bool:
        """Whether it was read from files, so that it may be unknown whether it is complete."""
        return bool(self.all("Import") or self.all("Source"))

    @property
    def patch(self) -> str:
        """Name of the job that made it, where it patches the crawl of `job`; else empty."""
        return "".join(self.all("Patch")[:1])

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
    def has_copies(self) -> bool:
        """Whether this state, or an earlier one, has copies among its documents."""
        return self.all("Copies") == ["kept"]

    @property
    def has_resources(self) -> bool:
        """Whether this state, or an earlier one, has documents that only pages of other hosts needed."""
        return bool(self.all("Resources"))

    @property
    def has_pages(self) -> bool:
        """Whether its crawl had pages of the domain; not where only pages of other hosts needed what it met."""
        return self.all("Resources") != ["alone"]

    @property
    def showed_secrets(self) -> bool:
        """Whether the crawl showed secrets to servers; earlier crawls do not count."""
        return self.all("Secrets") == ["shown"]

    @property
    def done(self) -> dict[str, int]:
        """The progress of each log of the journal at this commit of additions: log → number."""
        words = (value.rpartition(" ") for value in self.all("Journal"))
        return {log: int(number) for log, _, number in words if number.isdecimal()}

    @property
    def complete(self) -> bool:
        """Whether the crawl was complete."""
        return self.all("Complete") == ["yes"]


def parse_message(text: str) -> CommitMessage:
    """Parse a commit's message. Raises Damaged when it does not start with a commitTag."""
    first, _, rest = text.partition("\n")
    pairs = (line.partition(": ") for line in rest.split("\n"))
    return CommitMessage(CommitTag.parse(first.strip()), tuple((key, value) for key, colon, value in pairs if colon))
