"""`/` and `/publication/<name>`: what the archive has, from the fonds down to snapshots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from urllib.parse import quote

from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.system import deadline
from webarcfs.gate.reader_records import RecordHead, years_of
from webarcfs.room.pages import rows
from webarcfs.room.services import Services
from webarcfs.room.views import Choice, Fonds, HomePage, Link, PublicationPage, PublicationRow, SnapshotRow
from webarcfs.room.visit import Visit

#: Filters of the list: parameter → label, and the value of a snapshot.
_FILTERS: dict[str, tuple[str, Callable[[RecordHead], str]]] = {
    "signature": ("Signature", attrgetter("signature")),
    "publication": ("Publication", attrgetter("publication")),
    "project": ("Project", attrgetter("project")),
    "type": ("Type", lambda head: "occasion" if head.is_occasion else "regular"),
    "year": ("Year", lambda head: str(head.date.year)),
}
#: Values of a filter that are offered.
_MOST_VALUES = 30


def home(visit: Visit) -> HomePage:
    """Return the first page: fonds with their publications; or snapshots, where something chooses them."""
    services = visit.services
    heads = services.records.all()
    query = visit.parameter("q")
    chosen = {name: visit.parameter(name) for name in _FILTERS if visit.parameter(name)}
    found = [each for each in heads if _fits(each, query, chosen)] if query or chosen else heads
    publications = {each.publication for each in heads}
    as_list = bool(query or chosen or visit.parameter("all") or len(publications) == 1)
    fonds: tuple[Fonds, ...] = ()
    shown: tuple[SnapshotRow, ...] = ()
    pages = None
    if as_list:
        if visit.parameter("order") == "oldest":
            found = found[::-1]
        pages, part = rows.pages_of(visit, len(found))
        shown = tuple(rows.snapshot_row(services, each) for each in found[part])
    else:
        fonds = _fonds(services, heads)
    return HomePage(
        query=query,
        fonds=fonds,
        rows=shown,
        pages=pages,
        filters=tuple(_choices(visit, found if query else heads, chosen)) if len(heads) > 1 else (),
        order=_orders(visit) if as_list else (),
        has_search=services.has_search,
        total_snapshots=len(heads),
        total_publications=len(publications),
        total_domains=len({tag.domain for each in heads for tag in each.tags}),
    )


def publication(visit: Visit, name: str) -> PublicationPage:
    """Return the page of a publication. Raises NotFound, also for one of which readers see nothing."""
    services = visit.services
    heads = [each for each in services.records.all() if each.publication == name]
    if not heads:
        raise NotFound(f"there is no publication {name!r}")
    pages, part = rows.pages_of(visit, len(heads))
    shown = tuple(rows.snapshot_row(services, each) for each in heads[part])
    open_ones = [each for each in heads if each.closed_until is None]
    compare = [
        Link(f"/compare/{quote(older.id, safe='')}..{quote(newer.id, safe='')}", "")
        for newer, older in zip(open_ones[part], open_ones[part][1:], strict=False)
    ]
    return PublicationPage(
        name=name,
        description=rows.publication_description(services, name),
        rows=shown,
        pages=pages,
        years=tuple(years_of(heads).items()),
        compare=tuple(compare),
        search=f"/search?publication={quote(name, safe='')}" if services.has_search else "",
    )


def _fits(head: RecordHead, query: str, chosen: dict[str, str]) -> bool:
    deadline.check()
    if any(value != _FILTERS[name][1](head) for name, value in chosen.items()):
        return False
    if not query:
        return True
    words = (head.title, head.signature, head.provenance, head.project, head.publication, head.domain, head.occasion,
             str(head.number), *(tag.domain for tag in head.tags))  # fmt: skip
    text = " ".join(words).casefold()
    return all(word in text for word in query.casefold().split())


def _fonds(services: Services, heads: Sequence[RecordHead]) -> tuple[Fonds, ...]:
    by_publication: dict[str, list[RecordHead]] = defaultdict(list)
    for each in heads:
        by_publication[each.publication].append(each)
    by_signature: dict[str, list[PublicationRow]] = defaultdict(list)
    for name, found in sorted(by_publication.items()):
        newest = rows.snapshot_row(services, found[0])
        by_signature[found[0].signature].append(
            PublicationRow(
                href=rows.publication_href(name),
                name=name,
                description=rows.publication_description(services, name),
                count=len(found),
                first=found[-1].date,
                newest=newest,
                next_to_newest=rows.snapshot_row(services, found[1]) if len(found) > 1 else None,
            )
        )
    return tuple(Fonds(signature, tuple(found)) for signature, found in sorted(by_signature.items()))


def _choices(visit: Visit, heads: Sequence[RecordHead], chosen: dict[str, str]) -> Iterable[Choice]:
    for name, (label, value_of) in _FILTERS.items():
        counts = Counter(map(value_of, heads))
        counts.pop("", None)
        value = chosen.get(name, "")
        if len(counts) < 2 and not value:
            continue
        frequent = sorted(counts, key=lambda each: (-counts[each], each))[:_MOST_VALUES]
        links = tuple(
            Link(visit.with_parameters("/", page=None, **{name: None if each == value else each}), each, each == value)
            for each in sorted(frequent, reverse=name == "year")
        )
        yield Choice(name, label, links, value)


def _orders(visit: Visit) -> tuple[Link, ...]:
    now = visit.parameter("order")
    return (
        Link(visit.with_parameters(order=None, page=None), "newest first", now != "oldest"),
        Link(visit.with_parameters(order="oldest", page=None), "oldest first", now == "oldest"),
    )
