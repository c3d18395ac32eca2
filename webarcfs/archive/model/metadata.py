"""The values that all modules share: times in CET, the commitTag, and the metadata of a document.

Pure. The eight field names of the specification (§2), and two of ours, are used in XML, SQL and extended attributes;
Python attributes are the same words in snake_case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from webarcfs.archive.model.errors import Damaged

#: The archive's clock: UTC+01:00 all year, no summer time (specification §2, note on timestamps).
CET = timezone(timedelta(hours=1), "CET")

#: Times and tags that are cached: the documents of a crawl share theirs, and whole sites are read at once.
_REMEMBERED = 4096
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
#: The status of a normal page.
OK = 200
_FIRST_ERROR = 400
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


def compact_time(time: datetime) -> str:
    """Return `YYYYmmddTHHMMSS` in CET: the form used in ref names and job folders."""
    return format_time(time).translate(_COMPACT)


def parse_compact_time(text: str) -> datetime:
    """Return the inverse of `compact_time`. Raises Damaged for any other text."""
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=CET)
    except ValueError:
        raise Damaged(f"{text!r} is not a time of the form YYYYmmddTHHMMSS") from None


def utc(time: datetime) -> datetime:
    """Return the same instant in UTC, the time of WARC records and crawl.log."""
    return time.astimezone(UTC)


def format_utc(time: datetime) -> str:
    """Return `yyyy-mm-ddThh:mm:ssZ`: the form of WARC-Date."""
    return f"{utc(time).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


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
    the time of the server's answer; None if that was crawl_time, or before layout 2. `status` is HTTP's. The fields
    after it are those of layout 3, each empty where it says nothing (xsd/arc.xsd tells what they mean).
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
    role: str = ""
    source: str = ""
    certificate: str = ""
    method: str = ""
    rendered: str = ""

    @property
    def capture_time(self) -> datetime:
        """The time of the server's answer, as far as known."""
        return self.crawl_time if self.captured is None else self.captured

    @property
    def is_error_page(self) -> bool:
        """Whether the server said with it that there is no such page."""
        return self.status >= _FIRST_ERROR

    def as_fields(self) -> dict[str, str]:
        """Return the ten fields under their names in XML, SQL and extended attributes, as strings."""
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
        }

    def as_evidence_fields(self) -> dict[str, str]:
        """Return those fields of layout 3 that say something, under their names in XML."""
        fields = {
            "role": self.role,
            "source": self.source,
            "certificate": self.certificate,
            "method": self.method,
            "rendered": self.rendered,
        }
        return {name: value for name, value in fields.items() if value}

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
            role=fields.get("role", ""),
            source=fields.get("source", ""),
            certificate=fields.get("certificate", ""),
            method=fields.get("method", ""),
            rendered=fields.get("rendered", ""),
        )


def _parse_status(text: str) -> int:
    """Parse an HTTP status: three digits, of which the first is 1 to 5 (RFC 9110 section 15). Raises Damaged."""
    if not _STATUS.fullmatch(text):
        raise Damaged(f"{text!r} is no HTTP status")
    return int(text)


#: The names of the eight fields of the specification, in its order.
FIELDS = ("url", "mimeType", "title", "path", "domain", "crawlTime", "createTime", "commitTag")
#: The two fields of layout 2; a data.xml has them only if they add information: a time other than crawlTime, a status
#: other than 200.
CAPTURE_FIELDS = ("captureTime", "status")
#: `source` of a document that a WARC has as a record of that kind, without the head of an answer.
RESOURCE = "resource"
#: The fields of layout 3; a data.xml has only those that say something. They are kept, and not yet shown.
EVIDENCE_FIELDS = ("role", "source", "certificate", "method", "rendered")
