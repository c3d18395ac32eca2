"""The pages of snapshots: `/snapshot/<record>`, and the comparison of two, `/compare/<A>..<B>`.

A snapshot is shown by its record as readers see it, its statistics, and its external links. The statistics count by
type and extension what the reader may see; they are kept, since they read a whole domain.

Two snapshots are compared by types and extensions, and document by document.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from webarcfs.access.reader_stores import RecordHead
from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.archive.catalogue.record import BY_NUMBER, Record, write_dublin_core, write_record
from webarcfs.archive.index.links import FoundLink, Question, ask
from webarcfs.archive.model.arc_paths import data_name
from webarcfs.archive.model.errors import Forbidden, NotFound, UrlRefused
from webarcfs.archive.model.metadata import ANY_ROLE, CommitTag, format_time
from webarcfs.room.pages import lists
from webarcfs.room.replay.replay_url import diff_path, record_path
from webarcfs.room.views import Compared, ExternalLinkRow, FieldGroup, PageLink, Slice
from webarcfs.room.visit import Services, Visit
from webarcfs.web import limits
from webarcfs.web.table_files import TableFile

# == counts ===========================================================================================================


#: The extension of a document without one.
NONE = "(none)"
_FIRST_ERROR = 400


@dataclass(frozen=True, slots=True)
class Counts:
    """Documents and bytes of a snapshot, by MIME type and by extension: (documents, bytes). Error pages are none.

    `resources` are counted by themselves: documents, and their bytes, that only pages of other hosts needed.
    """

    types: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    extensions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    resources: tuple[int, int] = (0, 0)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(count for count, _ in self.types.values())

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return sum(size for _, size in self.types.values())

    def __add__(self, other: Counts) -> Counts:
        resources = self.resources[0] + other.resources[0], self.resources[1] + other.resources[1]
        return Counts(_sum(self.types, other.types), _sum(self.extensions, other.extensions), resources)


def of_tag(services: Services, tag: CommitTag) -> Counts:
    """Return the counts of a snapshot of a domain."""
    seq = int(tag.crawl_time.timestamp())
    rules = tuple(services.gate.rules().rules)
    now = int(services.gate.now().timestamp()) // 60 if any(rule.lapses is not None for rule in rules) else 0
    key = (tag, services.gate.reader, services.gate.state, rules, now)
    counts = services.shared.counts.get(key, lambda: _counted(services, tag.domain, seq))
    assert isinstance(counts, Counts)
    return counts


def of_tags(services: Services, tags: tuple[CommitTag, ...]) -> Counts:
    """Return the counts of all parts of a snapshot together."""
    total = Counts()
    for tag in tags:
        total = total + of_tag(services, tag)
    return total


def _counted(services: Services, domain: str, seq: int) -> Counts:
    types: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    extensions: Counter[str] = Counter()
    extension_sizes: Counter[str] = Counter()
    resources = resource_bytes = 0
    for capture in shown_in(services, domain, seq):
        if capture.status >= _FIRST_ERROR:
            continue
        if capture.is_resource:
            resources, resource_bytes = resources + 1, resource_bytes + capture.size
            continue
        kind, extension = capture.mime_type or NONE, extension_of(capture.url)
        types[kind] += 1
        sizes[kind] += capture.size
        extensions[extension] += 1
        extension_sizes[extension] += capture.size
    return Counts(
        {kind: (count, sizes[kind]) for kind, count in types.most_common()},
        {kind: (count, extension_sizes[kind]) for kind, count in extensions.most_common()},
        (resources, resource_bytes),
    )


def shown_in(services: Services, domain: str, seq: int) -> Iterator[VisibleCapture]:
    """Yield the documents of a snapshot that the reader may see, by path; of an unknown snapshot none."""
    snapshot = next((snapshot for snapshot in services.gate.facts(domain).shown if snapshot.seq == seq), None)
    for row in services.index.of_snapshot(domain, seq) if snapshot is not None else ():
        if services.captures.contains(domain, snapshot, row):
            capture = services.captures.visible(domain, row)
            if isinstance(capture, VisibleCapture):
                yield capture


def extension_of(url: str) -> str:
    """Return the extension of a document's data file."""
    try:
        name = data_name(url)
    except UrlRefused:
        return NONE
    return name.rpartition(".")[2] if "." in name else NONE


def slices(table: Mapping[str, tuple[int, int]]) -> tuple[Slice, ...]:
    """Return a table for pages and pictures, most documents first."""
    return tuple(Slice(label, count, size) for label, (count, size) in table.items())


def compared(a: Mapping[str, tuple[int, int]], b: Mapping[str, tuple[int, int]]) -> tuple[Compared, ...]:
    """Return two tables side by side, most documents first; what one lacks is 0 there."""
    labels = sorted(
        a.keys() | b.keys(), key=lambda label: (-max(a.get(label, (0, 0))[0], b.get(label, (0, 0))[0]), label)
    )
    none = (0, 0)
    return tuple(
        Compared(label, a.get(label, none)[0], b.get(label, none)[0], a.get(label, none)[1], b.get(label, none)[1])
        for label in labels
    )


def _sum(a: Mapping[str, tuple[int, int]], b: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    none = (0, 0)
    both = {
        label: (a.get(label, none)[0] + b.get(label, none)[0], a.get(label, none)[1] + b.get(label, none)[1])
        for label in a.keys() | b.keys()
    }
    return dict(sorted(both.items(), key=lambda entry: (-entry[1][0], entry[0])))


# == records ==========================================================================================================


#: Step of the workflow → its label (a msgid).
GROUPS = {
    "1": "Registration", "2": "Download", "3": "Copy", "4": "Conversion", "4.1": "Links", "4.2": "Error pages",
    "4.3": "Search links", "4.4": "XHTML", "5": "Index", "6": "Release", "7": "Backup", "8": "Measures",
}  # fmt: skip
#: Texts of a link, and pages with it, that a row shows.
_SHOWN = 3
#: Fields that the head of the page has already.
_IN_HEAD = frozenset({1, 21})


def head_of(services: Services, record_id: str) -> RecordHead:
    """Return the head of a record. Raises NotFound, also for one that readers may not see."""
    head = services.records.head(record_id)
    if head is None:
        raise NotFound(f"there is no crawl {record_id}")
    return head


def record(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Show a record as readers see it; of a closed one its description alone. Raises NotFound.

    Its statistics are of the pages that the reader may see. `resources` are the documents, and their bytes, that only
    pages of other hosts needed.
    """
    services, record_id = visit.services, path_params["record"]
    head = head_of(services, record_id)
    whole_record = services.records.read(record_id)
    row = lists.snapshot_row(services, head)
    groups = field_groups(whole_record, visit.language)
    earlier, later = services.records.beside(head.id), services.records.beside(head.id, later=True)
    neighbours = [
        PageLink(record_path(neighbour.id), label)
        for label, neighbour in (("earlier", earlier), ("later", later))
        if neighbour is not None
    ]
    is_closed = head.closed_until is not None
    total = Counts() if is_closed else of_tags(services, head.tags)
    older = None if is_closed else earlier
    if older is not None and older.closed_until is not None:
        older = services.records.beside(head.id, only_open=True)
    return visit.page(
        "record.html",
        row=row,
        is_closed=is_closed,
        groups=groups,
        starts=[] if is_closed else [PageLink(href, url) for url, href in lists.start_urls(services, head)],
        domains=[] if is_closed else list(_domains(services, head)),
        types=slices(total.types),
        extensions=slices(total.extensions),
        before=None if older is None else lists.snapshot_row(services, older),
        changes=() if older is None else compared(of_tags(services, older.tags).types, total.types),
        compare="" if older is None else f"/compare/{quote(older.id, safe='')}..{quote(head.id, safe='')}",
        links=f"{row.href}/links" if services.archive.links.exists() and not is_closed else "",
        neighbours=neighbours,
        exports=[] if is_closed else [PageLink(f"{row.href}.{kind}", kind.upper()) for kind in ("xml", "json", "dc")],
        resources=total.resources,
        collections=lists.links_to_collections(visit, head.publication, head.number),
    )


def field_groups(record: Record, language: str) -> tuple[FieldGroup, ...]:
    """Return the fields of a record that have a text, by groups; measures are groups of their own."""
    groups: list[FieldGroup] = []
    values = [(BY_NUMBER[number], value.text) for number, value in record.values.items() if number not in _IN_HEAD]
    for group, fields in groupby(values, key=lambda pair: pair[0].group):
        texts = tuple(
            (field.number, field.de if language == "de" else field.en, text) for field, text in fields if text
        )
        if texts:
            groups.append(FieldGroup(GROUPS[group], texts))
    for measure in record.measures:
        measure_fields = ((BY_NUMBER[number], value.text) for number, value in measure.items())
        texts = tuple(
            (field.number, field.de if language == "de" else field.en, text) for field, text in measure_fields if text
        )
        if texts:
            groups.append(FieldGroup(GROUPS["8"], texts))
    return tuple(groups)


def _domains(services: Services, head: RecordHead) -> Iterator[SimpleNamespace]:
    """Yield what a snapshot has of each domain: of a site its pages, of any other host what they needed."""
    for tag in head.tags:
        counts = of_tag(services, tag)
        is_resource = tag.domain in head.resource_domains
        start = lists.frame_of(tag, lists.root_of(services, tag, has_pages=not is_resource))
        documents, size = counts.resources if is_resource else (counts.documents, counts.bytes)
        yield SimpleNamespace(domain=tag.domain, start=start, documents=documents, bytes=size, is_resource=is_resource)


def exported(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return a record as readers see it: `xml`, `json` or `dc`. Raises NotFound, Forbidden if closed."""
    record_id, kind = path_params["record"], path_params["kind"]
    _must_be_open(head_of(visit.services, record_id))
    whole_record = visit.services.records.read(record_id)
    if kind == "json":
        return visit.file(_as_json(whole_record), "application/json")
    body = write_record(whole_record) if kind == "xml" else write_dublin_core(whole_record, "")
    return visit.file(body, "application/xml")


def _as_json(record: Record) -> bytes:
    import json  # noqa: PLC0415 # one caller

    fields = {name: text for name, text in record.as_fields().items() if text}
    fields["domains"] = ", ".join(record.domains)
    return json.dumps(fields, ensure_ascii=False, indent=1).encode()


# -- external links ----------------------------------------------------------------------------------------------------


def links(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Show the external links of a snapshot: each target with its texts and pages. Raises NotFound, Forbidden."""
    services = visit.services
    head = head_of(services, path_params["record"])
    targets = _external(services, head)
    pages, part = lists.pages_of(visit, len(targets))
    rows = [
        _link_row(head, number, target, links) for number, (target, links) in enumerate(targets[part], part.start + 1)
    ]
    row = lists.snapshot_row(services, head)
    return visit.page("links.html", row=row, links=rows, pages=pages)


def taken_links(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the external links of a snapshot as a file: number, target, text, page, times, window."""
    services = visit.services
    rows = (
        (number, target, link.text, link.page, link.times, link.window)
        for number, (target, links) in enumerate(_external(services, head_of(services, path_params["record"])), 1)
        for link in links
    )
    return visit.table(TableFile(("number", "target", "text", "page", "times", "window"), rows), path_params["kind"])


def _must_be_open(head: RecordHead) -> None:
    if head.closed_until is not None:
        raise Forbidden(f"the crawl is under embargo until {format_time(head.closed_until)}")


def _external(services: Services, head: RecordHead) -> list[tuple[str, list[FoundLink]]]:
    _must_be_open(head)
    by_target: dict[str, list[FoundLink]] = defaultdict(list)
    left = limits.LINKS
    for tag in head.tags:
        question = Question(at=tag, external=True, limit=left)
        for link in ask(services.archive, question, limits.SECONDS, services.link_reader(question)):
            by_target[link.target].append(link)
            left -= 1
    return sorted(by_target.items())


def _link_row(head: RecordHead, number: int, target: str, links: Sequence[FoundLink]) -> ExternalLinkRow:
    texts = tuple(dict.fromkeys(link.text for link in links if link.text))[:_SHOWN]
    windows = tuple(dict.fromkeys(link.window for link in links if link.window))[:_SHOWN]
    pages = list(dict.fromkeys(link.page for link in links))
    tags = {tag.domain: tag for tag in head.tags}
    shown = []
    for page in pages[:_SHOWN]:
        tag = tags.get(page.partition("://")[2].partition("/")[0])
        if tag is not None:
            shown.append(PageLink(lists.frame_of(tag, page), page))
    return ExternalLinkRow(number, texts, target, windows, tuple(shown), max(len(pages) - _SHOWN, 0))


# == comparing ========================================================================================================


#: Fields of sizes that are compared: after download, conversion, a measure.
_FIGURES = (22, 23, 24, 37, 39, 41, 42)


def compare(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Show two snapshots, `A..B`, side by side. Raises NotFound, Forbidden for a closed one."""
    return visit.page("compare.html", **comparison(visit, path_params["pair"]))


def comparison(visit: Visit, pair: str) -> dict[str, Any]:
    """Return the values of the page that compares two snapshots. Raises NotFound, Forbidden for a closed one.

    `other` leads to the documents with what only pages of other hosts needed, or without it.
    """
    services = visit.services
    first, dots, second = pair.partition("..")
    if not dots:
        raise NotFound("two crawls are compared: /compare/<A>..<B>")
    a, b = head_of(services, first), head_of(services, second)
    for head in (a, b):
        _must_be_open(head)
    figures_a, figures_b = of_tags(services, a.tags), of_tags(services, b.tags)
    with_resources = visit.parameter("role") == ANY_ROLE
    changes = list(_changes(services, a, b, with_resources=with_resources))
    pages, part = lists.pages_of(visit, len(changes))
    kinds = ("added", "removed", "changed")
    has_resources = figures_a.resources[0] or figures_b.resources[0]
    return {
        "a": lists.snapshot_row(services, a),
        "b": lists.snapshot_row(services, b),
        "types": compared(figures_a.types, figures_b.types),
        "extensions": compared(figures_a.extensions, figures_b.extensions),
        "documents": [PageLink(href, f"{what} {url}") for what, url, href in changes[part]],
        "counts": [(kind, sum(what == kind for what, _, _ in changes)) for kind in kinds],
        "figures": list(_figures(services, a, b, visit.language)),
        "pages": pages if len(changes) > part.stop or part.start else None,
        "other": _other(visit, with_resources=with_resources) if has_resources else None,
    }


def _other(visit: Visit, *, with_resources: bool) -> PageLink:
    """Return the link to the same list with what only pages of other hosts needed, or without it."""
    if with_resources:
        return PageLink(visit.with_parameters(role=None, page=None), "without what only pages of other hosts needed")
    return PageLink(visit.with_parameters(role=ANY_ROLE, page=None), "with what only pages of other hosts needed")


def _figures(services: Services, a: RecordHead, b: RecordHead, language: str) -> Iterator[tuple[str, str, str]]:
    record_a, record_b = services.records.read(a.id), services.records.read(b.id)
    for number in _FIGURES:
        texts = record_a.text(number), record_b.text(number)
        if any(texts):
            label = BY_NUMBER[number].de if language == "de" else BY_NUMBER[number].en
            yield label, *texts


def _changes(
    services: Services, a: RecordHead, b: RecordHead, *, with_resources: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the documents that differ: what happened, URL, and where it is shown."""
    of_a, of_b = ({tag.domain: tag for tag in head.tags} for head in (a, b))
    left = limits.COMPARED
    for domain in sorted(of_a.keys() | of_b.keys()):
        for change in _of_domain(services, domain, of_a.get(domain), of_b.get(domain), with_resources=with_resources):
            left -= 1
            if left < 0:
                return
            yield change


def _of_domain(
    services: Services, domain: str, a: CommitTag | None, b: CommitTag | None, *, with_resources: bool
) -> Iterator[tuple[str, str, str]]:
    if a is None or b is None:
        tag, what = (a, "removed") if a is not None else (b, "added")
        if tag is not None:
            for capture in shown_in(services, domain, int(tag.crawl_time.timestamp())):
                if with_resources or not capture.is_resource:
                    yield what, capture.url, lists.frame_of(tag, capture.url)
        return
    seqs = [int(tag.crawl_time.timestamp()) for tag in (a, b)]
    facts = services.gate.facts(domain)
    snapshots = [next((snapshot for snapshot in facts.shown if snapshot.seq == seq), None) for seq in seqs]
    for _, group in groupby(services.index.between(domain, *seqs), key=lambda row: row.path):
        sides: list[VisibleCapture | None] = [None, None]
        for row in group:
            for at, snapshot in enumerate(snapshots):
                if services.captures.contains(domain, snapshot, row):
                    outcome = services.captures.visible(domain, row)
                    sides[at] = outcome if isinstance(outcome, VisibleCapture) else None
        old, new = sides
        if not with_resources and all(side is None or side.is_resource for side in sides):
            continue
        if old is not None and new is not None:
            yield "changed", new.url, diff_path(seqs[0], seqs[1], new.url)
        elif new is not None:
            yield "added", new.url, lists.frame_of(b, new.url)
        elif old is not None:
            yield "removed", old.url, lists.frame_of(a, old.url)
