"""Rows that several pages show: a snapshot, the way through a long list."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from webarcfs.archive.model.metadata import CommitTag
from webarcfs.gate.reader_records import RecordHead
from webarcfs.room.services import Services
from webarcfs.room.views import Pages, SnapshotRow
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import Modifier, replay_path
from webarcfs.room.wayback.timestamps import digits_of

#: Rows of a page of a list.
ROWS = 50


def snapshot_row(services: Services, head: RecordHead) -> SnapshotRow:
    """Return the row of a snapshot; it leads to its first page only where that may be seen."""
    return SnapshotRow(
        href=record_href(head.id),
        start="" if head.closed_until is not None else start_of(services, head),
        number=head.number,
        title=head.title,
        publication=head.publication,
        signature=head.signature,
        provenance=head.provenance,
        project=head.project,
        domains=tuple(dict.fromkeys(tag.domain for tag in head.tags)),
        is_occasion=head.is_occasion,
        reason=head.occasion if head.is_occasion else "",
        date=head.date,
        complete=head.complete,
        documents=head.documents,
        bytes=head.bytes,
        closed_until=head.closed_until,
    )


def record_href(record_id: str) -> str:
    """Return the path of a record's page."""
    return f"/snapshot/{quote(record_id, safe='')}"


def publication_href(name: str) -> str:
    """Return the path of a publication's page."""
    return f"/publication/{quote(name, safe='')}"


def start_of(services: Services, head: RecordHead) -> str:
    """Return the path of the frame of a snapshot's first start page."""
    starts = start_urls(services, head)
    return starts[0][1] if starts else ""


def start_urls(services: Services, head: RecordHead) -> list[tuple[str, str]]:
    """Return the start pages of a snapshot on its domains: URL, and path of the frame.

    That is each URL of the publication whose domain the snapshot has; else the root of its domains.
    """
    tags = {tag.domain: tag for tag in head.tags}
    found = [url for url in publication_urls(services, head.publication) if _domain(url) in tags]
    for domain, tag in tags.items():
        if not any(_domain(url) == domain for url in found):
            found.append(root_of(services, tag))
    return [(url, frame_of(tags[_domain(url)], url)) for url in found]


def publication_urls(services: Services, publication: str) -> tuple[str, ...]:
    """Return the start URLs of a publication, as webarc.toml has them now; none for an unlisted one."""
    for each in services.shared.settings().publications:
        if each.name == publication:
            return each.urls
    return ()


def publication_description(services: Services, publication: str) -> str:
    """Return what a publication is, for people; empty where nobody says so."""
    return next((each.description for each in services.shared.settings().publications if each.name == publication), "")


def root_of(services: Services, tag: CommitTag) -> str:
    """Return the URL of the first page of a domain: with the scheme that the snapshot has."""
    seq = int(tag.crawl_time.timestamp())
    state = services.captures.state(f"http://{tag.domain}/", seq)
    found = state.capture
    return found.url if found is not None and not found.is_redirect else f"http://{tag.domain}/"


def frame_of(tag: CommitTag, url: str) -> str:
    """Return the path of the frame of a URL in a snapshot."""
    return replay_path(digits_of(int(tag.crawl_time.timestamp())), Modifier.FRAME, url)


def _domain(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def page_in(text: str) -> int:
    """Return the number of a page that a text asks for, from 1; the first for any other text."""
    return min(max(int(text), 1), 1_000_000) if text.isascii() and text.isdecimal() and len(text) < 8 else 1


def page_of(visit: Visit) -> int:
    """Return the number of the page that is asked for, from 1."""
    return page_in(visit.parameter("page"))


def pages_of(visit: Visit, total: int, rows: int = ROWS, *, name: str = "page", place: str = "") -> tuple[Pages, slice]:
    """Return the way through a list of `total` rows, and the part of it that is asked for by the parameter `name`.

    `place` is where the list is in its page, as a fragment of the URL.
    """
    last_page = max(-(-total // rows), 1)
    page = min(page_in(visit.parameter(name)), last_page)
    begin = (page - 1) * rows
    end = min(begin + rows, total)
    before = visit.with_parameters(**{name: page - 1 if page > 2 else None}) + place if page > 1 else ""
    after = visit.with_parameters(**{name: page + 1}) + place if page < last_page else ""
    return Pages(begin + 1 if total else 0, end, total, before, after), slice(begin, end)


def in_year(date: datetime, year: str) -> bool:
    """Return whether a date is in a year, given as text; an empty one fits all."""
    return not year or str(date.year) == year
