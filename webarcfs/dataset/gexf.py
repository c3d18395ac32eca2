"""The graph of hosts as GEXF 1.2, which Gephi and networkx read: hosts, and the links between them with their years."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from webarcfs.dataset.spilled_counts import SpilledCounts
from webarcfs.dataset.table_writers import Row

_NAMESPACE = "http://www.gexf.net/1.2draft"
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    f'<gexf xmlns="{_NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{_NAMESPACE} {_NAMESPACE}/gexf.xsd" version="1.2">\n'
)
#: Attributes of a host: title and type.
_OF_HOST = (("archived", "boolean"), ("internal links", "long"), ("links out", "long"), ("links in", "long"))
_ARCHIVED, _INTERNAL = 0, 1


def write_graph(
    file: IO[bytes],
    rows: Callable[[], Iterable[Row]],
    *,
    archived: Sequence[str],
    scratch: Path,
    description: str,
    day: str,
) -> tuple[int, int]:
    """Write the graph of the rows of `hosts`, which are gone through twice; return the numbers of hosts and of edges.

    Links of a host to itself are an attribute of the host. An edge weighs as many links as it has in all years, and
    has the number of each year. `archived` are the hosts of the archive. Raises OSError.
    """
    years: set[int] = set()
    with SpilledCounts(scratch) as hosts:
        for name in archived:
            hosts.add((name,), 1, 0, 0, 0)
        for year, source, target, links, _ in rows():
            if source == target:
                hosts.add((source,), 0, links, 0, 0)
                continue
            years.add(year)
            hosts.add((source,), 0, 0, links, 0)
            hosts.add((target,), 0, 0, 0, links)
        _write_parts(file, (_HEAD, _about(description, day), _attributes(sorted(years)), "<nodes>\n"))
        count = _write_parts(file, map(_host, hosts.rows()))
    _write_parts(file, ("</nodes>\n<edges>\n",))
    edges = _write_parts(file, _edges(rows()))
    _write_parts(file, ("</edges>\n</graph>\n</gexf>\n",))
    return count, edges


def _write_parts(file: IO[bytes], parts: Iterable[str]) -> int:
    number = 0
    for part in parts:
        file.write(part.encode())
        number += 1
    return number


def _about(description: str, day: str) -> str:
    words = f"<creator>webarcfs</creator><description>{escape(description)}</description>"
    return f'<meta lastmodifieddate="{day}">{words}</meta>\n<graph mode="static" defaultedgetype="directed">\n'


def _attributes(years: Iterable[int]) -> str:
    of_host = "".join(
        f'<attribute id="{at}" title="{title}" type="{type_}"/>' for at, (title, type_) in enumerate(_OF_HOST)
    )
    of_edge = "".join(f'<attribute id="y{year}" title="links {year}" type="long"/>' for year in years)
    edge = f'<attributes class="edge" mode="static">{of_edge}</attributes>\n' if of_edge else ""
    return f'<attributes class="node" mode="static">{of_host}</attributes>\n{edge}'


def _host(row: tuple[tuple[str, ...], list[int]]) -> str:
    (name,), numbers = row
    values = ("true" if numbers[_ARCHIVED] else "false", *map(str, numbers[_INTERNAL:]))
    attributes = "".join(f'<attvalue for="{at}" value="{value}"/>' for at, value in enumerate(values))
    return f"<node id={quoteattr(name)} label={quoteattr(name)}><attvalues>{attributes}</attvalues></node>\n"


def _edges(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the edges; the years of one come one after the other."""
    number = 0
    for (source, target), of_edge in groupby(rows, key=lambda row: row[1:3]):
        if source == target:
            continue
        years = [(year, links) for year, _, _, links, _ in of_edge]
        weight = sum(links for _, links in years)
        values = "".join(f'<attvalue for="y{year}" value="{links}"/>' for year, links in years)
        yield (
            f'<edge id="{number}" source={quoteattr(source)} target={quoteattr(target)} weight="{weight}">'
            f"<attvalues>{values}</attvalues></edge>\n"
        )
        number += 1
