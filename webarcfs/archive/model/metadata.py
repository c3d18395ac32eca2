"""The values that everything speaks of: times in CET, the commitTag, and the eight metadata of a document.

Pure. The field names of the specification (§2) are used in XML, SQL and extended attributes; Python attributes are the
same words in snake_case.
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

    `path` is absolute inside the archive: `/<domain>/…/<name>`, so that mount point + path is the ARC.
    """

    url: str
    mime_type: str
    title: str
    path: str
    domain: str
    crawl_time: datetime
    create_time: datetime
    commit_tag: CommitTag

    def as_fields(self) -> dict[str, str]:
        """The eight fields under the specification's names, as the strings that XML, SQL and xattrs hold."""
        return {
            "url": self.url,
            "mimeType": self.mime_type,
            "title": self.title,
            "path": self.path,
            "domain": self.domain,
            "crawlTime": format_time(self.crawl_time),
            "createTime": format_time(self.create_time),
            "commitTag": str(self.commit_tag),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, str]) -> MetaData:
        """The inverse of `as_fields`. Raises Damaged when a field is missing or malformed."""
        missing = [name for name in FIELDS if name not in fields]
        if missing:
            raise Damaged(f"metadata without {', '.join(missing)}")
        return cls(
            url=fields["url"],
            mime_type=fields["mimeType"],
            title=fields["title"],
            path=fields["path"],
            domain=fields["domain"],
            crawl_time=parse_time(fields["crawlTime"]),
            create_time=parse_time(fields["createTime"]),
            commit_tag=CommitTag.parse(fields["commitTag"]),
        )


#: The names of the eight fields, in the order of the specification.
FIELDS = ("url", "mimeType", "title", "path", "domain", "crawlTime", "createTime", "commitTag")
