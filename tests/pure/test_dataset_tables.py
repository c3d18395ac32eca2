"""Tables of datasets: what is written is read again by programs of others; periods; sums of any number of keys."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import networkx
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import CET, format_digits
from webarcfs.dataset.columns import Column, Dataset, Kind, columns_of
from webarcfs.dataset.gexf import write_graph
from webarcfs.dataset.narrowing import DatasetUnit, Narrowing, parse_time_span, year_of
from webarcfs.dataset.spilled_counts import SpilledCounts
from webarcfs.dataset.table_writers import (
    TableFormat,
    batches,
    spelled_time,
    writable,
    writer_of,
)

pytestmark = pytest.mark.pure

_COLUMNS = (
    Column("text", Kind.TEXT, "any"), Column("number", Kind.NUMBER, "any"), Column("is", Kind.YES_NO, "any"),
    Column("at", Kind.TIME, "any"),
)  # fmt: skip
_TIMES = st.integers(-2_000_000_000, 8_000_000_000)
_ROWS = st.lists(st.tuples(st.text(), st.integers(0, 1 << 62), st.booleans(), _TIMES))
_HARD = [
    "",
    "=1+1",
    '"',
    'a"b,c',
    "line\r\nbreak",
    "\n",
    "\r",
    " ",
    "مرحبا",
    "\u202eabc",
    "x" * 10_000,
    "\x85",
    "\u2028",
]


def _written(rows: list[tuple[Any, ...]], form: TableFormat) -> bytes:
    file = io.BytesIO()
    writer = writer_of(form, _COLUMNS, file)
    for batch in batches(rows, form):
        writer.write(batch)
    writer.close()
    return file.getvalue()


def _as_written(rows: list[tuple[str, int, bool, int]]) -> list[tuple[str, int, bool, str]]:
    return [(text, number, is_one, spelled_time(at)) for text, number, is_one, at in rows]


@given(_ROWS)
def test_what_is_written_is_read_again(rows: list[tuple[str, int, bool, int]]) -> None:
    rows = [(writable(text), *rest) for text, *rest in rows]  # type: ignore[misc]
    rows += [(text, 1, True, 0) for text in _HARD]
    expected = _as_written(rows)
    read = list(csv.reader(io.StringIO(_written(rows, TableFormat.CSV).decode(), newline=""), strict=True))
    assert read[0] == [column.name for column in _COLUMNS]
    assert [(text, int(number), is_one == "true", at) for text, number, is_one, at in read[1:]] == expected
    lines = _written(rows, TableFormat.JSONL).decode().split("\n")
    assert [tuple(json.loads(line).values()) for line in lines[:-1]] == expected
    table = pq.read_table(io.BytesIO(_written(rows, TableFormat.PARQUET))).to_pylist()
    assert [
        (row["text"], row["number"], row["is"], f"{row['at']:%Y-%m-%dT%H:%M:%SZ}")
        for row in table
        if row["at"].year > 999
    ] == [row for row in expected if row[3][0] != "0"]


@given(st.text(st.characters(), max_size=20))
def test_what_no_program_reads_is_replaced_and_nothing_else(text: str) -> None:
    hard = f"{text}\0\ud800"
    assert writable(hard) == "".join(
        "\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in hard
    )
    writable(hard).encode()


@given(_TIMES)
def test_times_are_in_utc_and_years_in_cet(at: int) -> None:
    time = datetime.fromtimestamp(at, UTC)
    assert format_digits(at) == f"{time.year:04}{time:%m%d%H%M%S}"
    assert year_of(at) == time.astimezone(CET).year
    assert datetime.fromisoformat(spelled_time(at)) == time


def test_long_texts_make_small_batches() -> None:
    rows = [("x" * 3_000_000, 1, True, 0)] * 10
    assert max(map(len, batches(rows, TableFormat.PARQUET, 0))) == 3
    assert [len(batch) for batch in batches(rows, TableFormat.PARQUET)] == [10]


# -- periods -----------------------------------------------------------------------------------------------------------


def _seconds(*date: int) -> int:
    return int(datetime(*date, tzinfo=CET).timestamp())  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("2024", (2024, 1, 1), (2025, 1, 1)), ("2024-02", (2024, 2, 1), (2024, 3, 1)),
        ("2024-12", (2024, 12, 1), (2025, 1, 1)), ("2024-02-29", (2024, 2, 29), (2024, 3, 1)),
        ("2019..2021", (2019, 1, 1), (2022, 1, 1)), ("2019-03..2019-03", (2019, 3, 1), (2019, 4, 1)),
        ("2019-12-31..2020", (2019, 12, 31), (2021, 1, 1)), ("2024-12-31", (2024, 12, 31), (2025, 1, 1)),
    ],
)  # fmt: skip
def test_periods(text: str, begin: tuple[int, ...], end: tuple[int, ...]) -> None:
    period = parse_time_span(text)
    assert (period.begin, period.end) == (_seconds(*begin), _seconds(*end))
    assert period.begin in period and period.end not in period


@pytest.mark.parametrize("text", ["", "..", "2024..", "24", "2024-13", "2023-02-29", "2021..2019", "now", "٢٠٢٤"])
def test_what_is_no_period(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time_span(text)


@given(st.text(max_size=12))
def test_no_text_as_a_period_breaks_it(text: str) -> None:
    try:
        period = parse_time_span(text)
    except UsageError:
        return
    assert period.begin < period.end


def test_kinds_and_types_narrow() -> None:
    assert Narrowing(types=("image/*",)).fits_type("image/png")
    assert not Narrowing(types=("image/*",)).fits_type("text/html")
    assert Narrowing(types=("pdf", "text/html")).fits_type("text/html")
    assert not Narrowing(types=("pdf",)).fits_type("text/html")
    with pytest.raises(UsageError, match="no kind"):
        Narrowing(types=("pfd",))


# -- sums --------------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.integers(0, 99))),
    st.integers(1, 5),
)
def test_sums_do_not_depend_on_memory(rows: list[tuple[str, int]], most: int) -> None:
    expected: Counter[str] = Counter()
    for key, number in rows:
        expected[key] += number
    with SpilledCounts(Path(tempfile.gettempdir()), most) as counts:
        for key, number in rows:
            counts.add(("2024", key), number, 1)
        summed = list(counts.rows())
        assert list(counts.rows()) == summed  # as often as it is asked
    assert {key: numbers[0] for (_, key), numbers in summed} == dict(expected)
    assert sum(numbers[1] for _, numbers in summed) == len(rows)
    assert [key for key, _ in summed] == sorted((key for key, _ in summed), key=lambda key: "\0".join(key).encode())


# -- graph -------------------------------------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a.example", "b.example:8080", "c&d.example", '<"x">', "[::1]"])


@given(
    st.dictionaries(st.tuples(_NAMES, _NAMES, st.integers(1996, 1999)), st.integers(1, 9)),
    st.lists(_NAMES, unique=True),
)
def test_others_read_the_graph_of_hosts(links: dict[tuple[str, str, int], int], archived: list[str]) -> None:
    rows = [(year, source, target, number, 1) for (source, target, year), number in sorted(links.items())]
    file = io.BytesIO()
    count, edges = write_graph(
        file,
        lambda: iter(rows),
        archived=archived,
        scratch=Path(tempfile.gettempdir()),
        description="a < b & c",
        day="2026-01-01",
    )
    graph = networkx.read_gexf(io.BytesIO(file.getvalue()))
    named = {name for source, target, _ in links for name in (source, target)} | set(archived)
    assert set(graph.nodes) == named and len(named) == count
    weights: Counter[tuple[str, str]] = Counter()
    for (source, target, _), number in links.items():
        weights[source, target] += number * (source != target)
    assert {(source, target): data["weight"] for source, target, data in graph.edges(data=True)} == +weights
    assert len(graph.edges) == edges
    for (source, target, year), number in links.items():
        if source != target:
            assert graph.edges[source, target][f"links {year}"] == number
        else:
            assert graph.nodes[source]["internal links"] >= number
    assert {name for name, data in graph.nodes(data=True) if data["archived"]} == set(archived)
    # What Gephi's reader asks for: declared attributes, edges between nodes that are there.
    tree = etree.fromstring(file.getvalue())
    space = {"g": "http://www.gexf.net/1.2draft"}
    declared = set(tree.xpath("//g:attribute/@id", namespaces=space))  # type: ignore[arg-type]
    assert set(tree.xpath("//g:attvalue/@for", namespaces=space)) <= declared  # type: ignore[arg-type]


def test_columns_have_the_names_of_the_toolkit_where_they_mean_the_same() -> None:
    toolkit = {
        Dataset.PAGES: {"crawl_date", "domain", "url", "mime_type_web_server", "http_status_code", "sha1"},
        Dataset.TEXT: {"crawl_date", "domain", "url", "mime_type_web_server", "language", "content"},
        Dataset.LINKS: {"crawl_date", "src", "dest", "anchor"},
    }
    for dataset, names in toolkit.items():
        for unit in DatasetUnit:
            columns = columns_of(dataset, unit)
            assert names <= {column.name for column in columns if column.elsewhere}
            assert len({column.name for column in columns}) == len(columns)
