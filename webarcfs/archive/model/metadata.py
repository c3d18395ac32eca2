"""The values that everything speaks of: times in CET, the commitTag, and the metadata of a document.

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

#: How many times and tags are remembered: documents of a crawl share theirs, and whole sites are read at once.
_REMEMBERED = 4096
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
#: The status of a page that is as it should be.
OK = 200
_FIRST_ERROR = 400
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)


_COMPACT = str.maketrans("", "", "-:")


def now() -> datetime:
    """The time in CET, to the second, which is as fine as the archive knows time."""
    return datetime.now(CET).replace(microsecond=0)


def from_epoch(seconds: float) -> datetime:
    """Seconds since 1970 (UTC) as a CET time, cut to the second."""
    return datetime.fromtimestamp(int(seconds), CET)


@lru_cache(_REMEMBERED)
def format_time(time: datetime) -> str:
    """`yyyy-mm-ddThh:mm:ss`, CET."""
    # Not by strftime, which writes years before 1000 without their zeros.
    return time.astimezone(CET).replace(tzinfo=None).isoformat(timespec="seconds")


@lru_cache(_REMEMBERED)
def parse_time(text: str) -> datetime:
    """The inverse of `format_time`. Raises Damaged when `text` is no such time."""
    try:
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text).replace(tzinfo=CET)
    except ValueError:
        raise Damaged(f"{text!r} is not a time of the form yyyy-mm-ddThh:mm:ss") from None


def compact_time(time: datetime) -> str:
    """`YYYYmmddTHHMMSS` in CET: the form used in ref names and job folders."""
    return format_time(time).translate(_COMPACT)


def parse_compact_time(text: str) -> datetime:
    """The inverse of `compact_time`. Raises Damaged when `text` is no such time."""
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=CET)
    except ValueError:
        raise Damaged(f"{text!r} is not a time of the form YYYYmmddTHHMMSS") from None


def utc(time: datetime) -> datetime:
    """The same instant in UTC (WARC records and crawl.log are written in it)."""
    return time.astimezone(UTC)


@dataclass(frozen=True, slots=True, order=True)
class CommitTag:
    """`<crawlTime>@<domain>`: names one snapshot of one domain (specification §2)."""

    crawl_time: datetime
    domain: str

    def __str__(self) -> str:
        return f"{format_time(self.crawl_time)}@{self.domain}"

    @property
    def ref(self) -> str:
        """The ref in the domain's repository that holds this tag's newest commit."""
        return f"refs/crawls/{compact_time(self.crawl_time)}"

    @property
    def seen_ref(self) -> str:
        """The ref that holds the tree that this crawl's publication saw, where that is less than the crawl's state."""
        return f"refs/seen/{compact_time(self.crawl_time)}"

    @classmethod
    @lru_cache(_REMEMBERED)
    def parse(cls, text: str) -> CommitTag:
        """The tag that `text` spells. Raises Damaged when it spells none."""
        time, at, domain = text.partition("@")
        if not at or not domain or "/" in domain:
            raise Damaged(f"{text!r} is not a commitTag (<crawlTime>@<domain>)")
        return cls(parse_time(time), domain)


@dataclass(frozen=True, slots=True)
class MetaData:
    """What is known of one version of one document (specification §2, /Cl-2.1/).

    `path` is absolute inside the archive: `/<domain>/…/<name>`, so that mount point + path is the ARC. `captured` is
    when the server answered; None where that was at crawl_time, or before layout 2 kept it. `status` is HTTP's.
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

    @property
    def capture_time(self) -> datetime:
        """When the server answered, as far as that is known."""
        return self.crawl_time if self.captured is None else self.captured

    @property
    def is_error_page(self) -> bool:
        """Whether the server said with it that there is no such page."""
        return self.status >= _FIRST_ERROR

    def as_fields(self) -> dict[str, str]:
        """The ten fields under their names in XML, SQL and extended attributes, as strings."""
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

    @classmethod
    def from_fields(cls, fields: dict[str, str]) -> MetaData:
        """The inverse of `as_fields`. Raises Damaged when a field is missing or malformed."""
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
        )


def _parse_status(text: str) -> int:
    """HTTP's status: three digits, of which the first is 1 to 5 (RFC 9110 section 15). Raises Damaged."""
    if not _STATUS.fullmatch(text):
        raise Damaged(f"{text!r} is no HTTP status")
    return int(text)


#: The names of the eight fields of the specification, in its order.
FIELDS = ("url", "mimeType", "title", "path", "domain", "crawlTime", "createTime", "commitTag")
#: The two that layout 2 adds; a data.xml has them only where they say more: a time other than crawlTime, a status other
#: than 200.
CAPTURE_FIELDS = ("captureTime", "status")
