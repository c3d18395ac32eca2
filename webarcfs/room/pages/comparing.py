"""`/compare/<A>..<B>`: two snapshots, by types and extensions, and document by document."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from webarcfs.archive.catalogue.fields import BY_NUMBER
from webarcfs.archive.model.errors import Forbidden, NotFound
from webarcfs.archive.model.metadata import CommitTag, format_time
from webarcfs.gate.reader_records import RecordHead
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room import limits
from webarcfs.room.pages import counts, rows
from webarcfs.room.pages.records import head_of
from webarcfs.room.services import Services
from webarcfs.room.views import ComparePage, Link
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import diff_path

#: Fields of sizes that are compared: after download, conversion, a measure.
_FIGURES = (22, 23, 24, 37, 39, 41, 42)


def compare(visit: Visit, pair: str) -> ComparePage:
    """Return the comparison of two snapshots, `A..B`. Raises NotFound, Forbidden for a closed one."""
    services = visit.services
    first, dots, second = pair.partition("..")
    if not dots:
        raise NotFound("two snapshots are compared: /compare/<A>..<B>")
    a, b = head_of(services, first), head_of(services, second)
    for each in (a, b):
        if each.closed_until is not None:
            raise Forbidden(f"the snapshot is closed until {format_time(each.closed_until)}")
    figures_a, figures_b = counts.of_tags(services, a.tags), counts.of_tags(services, b.tags)
    changes = list(_changes(services, a, b))
    pages, part = rows.pages_of(visit, len(changes))
    kinds = ("added", "removed", "changed")
    return ComparePage(
        a=rows.snapshot_row(services, a),
        b=rows.snapshot_row(services, b),
        types=counts.compared(figures_a.types, figures_b.types),
        extensions=counts.compared(figures_a.extensions, figures_b.extensions),
        documents=tuple(Link(href, f"{what} {url}") for what, url, href in changes[part]),
        counts=tuple((kind, sum(what == kind for what, _, _ in changes)) for kind in kinds),
        figures=tuple(_figures(services, a, b, visit.language)),
        pages=pages if len(changes) > part.stop or part.start else None,
    )


def _figures(services: Services, a: RecordHead, b: RecordHead, language: str) -> Iterator[tuple[str, str, str]]:
    one, other = services.records.read(a.id), services.records.read(b.id)
    for number in _FIGURES:
        texts = one.text(number), other.text(number)
        if any(texts):
            label = BY_NUMBER[number].de if language == "de" else BY_NUMBER[number].en
            yield label, *texts


def _changes(services: Services, a: RecordHead, b: RecordHead) -> Iterator[tuple[str, str, str]]:
    """Yield the documents that differ: what happened, URL, and where it is shown."""
    of_a, of_b = ({tag.domain: tag for tag in each.tags} for each in (a, b))
    left = limits.COMPARED
    for domain in sorted(of_a.keys() | of_b.keys()):
        for each in _of_domain(services, domain, of_a.get(domain), of_b.get(domain)):
            left -= 1
            if left < 0:
                return
            yield each


def _of_domain(
    services: Services, domain: str, a: CommitTag | None, b: CommitTag | None
) -> Iterator[tuple[str, str, str]]:
    if a is None or b is None:
        tag, what = (a, "removed") if a is not None else (b, "added")
        if tag is not None:
            for each in counts.shown_in(services, domain, int(tag.crawl_time.timestamp())):
                yield what, each.url, rows.frame_of(tag, each.url)
        return
    seqs = [int(tag.crawl_time.timestamp()) for tag in (a, b)]
    facts = services.gate.facts(domain)
    snapshots = [next((each for each in facts.shown if each.seq == seq), None) for seq in seqs]
    for _, group in groupby(services.index.between(domain, *seqs), key=lambda row: row.path):
        sides: list[VisibleCapture | None] = [None, None]
        for row in group:
            for at, snapshot in enumerate(snapshots):
                if services.captures.contains(domain, snapshot, row):
                    found = services.captures.visible(domain, row)
                    sides[at] = found if isinstance(found, VisibleCapture) else None
        old, new = sides
        if old is not None and new is not None:
            yield "changed", new.url, diff_path(seqs[0], seqs[1], new.url)
        elif new is not None:
            yield "added", new.url, rows.frame_of(b, new.url)
        elif old is not None:
            yield "removed", old.url, rows.frame_of(a, old.url)
