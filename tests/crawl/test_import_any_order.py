"""What is shown at a time follows from the crawls that the archive has, not from the order of their imports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support import archives, warcs
from tests.support.imports import import_files
from tests.support.properties import examples
from webarcfs.access.gate import KnownGate, Reader
from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.index.database import CaptureIndex

pytestmark = pytest.mark.crawl

HOST = "www.example.org"
YEARS = (2010, 2013, 2016, 2020)
PATHS = ("a", "b")
#: Of each year the pages that its crawl has, with their bodies.
HISTORIES = st.tuples(*[st.dictionaries(st.sampled_from(PATHS), st.sampled_from(["1", "2", "3"]))] * len(YEARS))


def url(path: str) -> str:
    return f"http://{HOST}/{path}"


def seconds(year: int) -> int:
    return int(datetime(year, 6, 1, 12, tzinfo=UTC).timestamp())


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES, order=st.permutations(range(len(YEARS))))
@example(({"a": "1", "b": "1"}, {"a": "2"}, {}, {"b": "2"}), [3, 0, 2, 1])  # the newest first, one in between last
@example(({"a": "1"}, {"b": "1"}, {}, {"b": "1"}), [3, 1, 0, 2])
@example(({"a": "2"}, {"a": "1"}, {}, {"a": "2"}), [0, 2, 1, 3])  # the last one met what the first one stored
def test_the_newest_capture_is_in_force_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[dict[str, str], ...], order: list[int]
) -> None:
    folder: Path = tmp_path_factory.mktemp("order")
    archive = archives.make_archive(folder)
    files = [
        warcs.write(
            folder / f"{year}.warc",
            # A page of the year's own, so that each crawl has something.
            [warcs.response(url(path), body.encode(), f"{year}-06-01T12:00:00Z") for path, body in
             {**pages, f"of-{year}": str(year)}.items()],
        )
        for year, pages in zip(YEARS, history, strict=True)
    ]  # fmt: skip
    for place in order:
        import_files(archive, files[place])
    gate = KnownGate(archive, Reader())
    gate.look()
    with CaptureIndex(archive.database) as index:
        captures = VisibleCaptures(gate, index)
        store = archives.store_of(archive, HOST)
        for place, year in enumerate(YEARS):
            for path in PATHS:
                expected = next((pages[path] for pages in reversed(history[: place + 1]) if path in pages), None)
                capture = captures.state(url(path), seconds(year)).capture
                assert (capture and store.read(capture.blob).decode()) == expected, (year, path)
                same = captures.history(url(path)).at(seconds(year))
                assert (same.capture if same else None) == capture, (year, path)
