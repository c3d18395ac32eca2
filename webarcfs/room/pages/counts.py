"""Counts of a snapshot by type and extension, of what the reader may see; kept, since they read a whole domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from webarcfs.archive.model.arc_paths import data_name
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.services import Services
from webarcfs.room.views import Compared, Slice

#: The extension of a document without one.
NONE = "(none)"
_FIRST_ERROR = 400


@dataclass(frozen=True, slots=True)
class Counts:
    """Documents and bytes of a snapshot, by MIME type and by extension: (documents, bytes). Error pages are none."""

    types: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    extensions: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(count for count, _ in self.types.values())

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return sum(size for _, size in self.types.values())

    def __add__(self, other: Counts) -> Counts:
        return Counts(_sum(self.types, other.types), _sum(self.extensions, other.extensions))


def of_tag(services: Services, tag: CommitTag) -> Counts:
    """Return the counts of a snapshot of a domain."""
    seq = int(tag.crawl_time.timestamp())
    rules = tuple(services.gate.rules().rules)
    now = int(services.gate.now().timestamp()) // 60 if any(each.lapses is not None for each in rules) else 0
    key = (tag, services.gate.reader, services.gate.state, rules, now)
    found = services.shared.counts.get(key, lambda: _counted(services, tag.domain, seq))
    assert isinstance(found, Counts)
    return found


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
    for each in shown_in(services, domain, seq):
        if each.status >= _FIRST_ERROR:
            continue
        kind, extension = each.mime_type or NONE, extension_of(each.url)
        types[kind] += 1
        sizes[kind] += each.size
        extensions[extension] += 1
        extension_sizes[extension] += each.size
    return Counts(
        {kind: (count, sizes[kind]) for kind, count in types.most_common()},
        {kind: (count, extension_sizes[kind]) for kind, count in extensions.most_common()},
    )


def shown_in(services: Services, domain: str, seq: int) -> Iterator[VisibleCapture]:
    """Yield the documents of a snapshot that the reader may see, by path; of an unknown snapshot none."""
    snapshot = next((each for each in services.gate.facts(domain).shown if each.seq == seq), None)
    for row in services.index.of_snapshot(domain, seq) if snapshot is not None else ():
        if services.captures.contains(domain, snapshot, row):
            found = services.captures.visible(domain, row)
            if isinstance(found, VisibleCapture):
                yield found


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
    labels = sorted(a.keys() | b.keys(), key=lambda each: (-max(a.get(each, (0, 0))[0], b.get(each, (0, 0))[0]), each))
    none = (0, 0)
    return tuple(
        Compared(each, a.get(each, none)[0], b.get(each, none)[0], a.get(each, none)[1], b.get(each, none)[1])
        for each in labels
    )


def _sum(a: Mapping[str, tuple[int, int]], b: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    none = (0, 0)
    both = {
        each: (a.get(each, none)[0] + b.get(each, none)[0], a.get(each, none)[1] + b.get(each, none)[1])
        for each in a.keys() | b.keys()
    }
    return dict(sorted(both.items(), key=lambda each: (-each[1][0], each[0])))
