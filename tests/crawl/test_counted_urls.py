"""Each count of a report and the list of its URLs go by the same rule, also after patches, and in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.crawl import crawl_log
from agent.crawl.vocabulary import Result, Status
from agent.reports import counted_urls, missing_urls, tables
from agent.reports.counted_urls import Lack, UrlSelection, of_size_class, page_of
from agent.reports.report import missing_after_patches
from agent.reports.tables import LogLine, Tables
from tests.support import crawls
from tests.support.missing_pages import SETTINGS, add_troubles
from tests.support.properties import examples
from tests.support.site import Site
from tests.support.sources import ROOT
from webarcfs.archive.catalogue import record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system import clocks

pytestmark = pytest.mark.crawl

JOB, PATCH = "20261001T030000-p", f"20261002T030000-p{record.PATCH}"
_HOSTS = ("e.org", "e.org:8080", "xn--bcher-kva.example", "cdn.test")
_WORDS = (
    "", *map(str, Result), "robots", "depth", "host", "tls", "tls:expired", "excluded,depth", "filter:mime", "too-big",
    "needs-browser", "trap:calendar,pattern:e.org/#", "listed-alone", "not-modified", "timeout", "server-down,dns",
)  # fmt: skip
_STATUSES = (200, 203, 301, 304, 403, 404, 500, 503, *map(int, Status))
_TYPES = ("text/html", "text/css", "image/png", "-")
_PATHS = ("", "a", "b?x=robots", "404", "robots.txt")
_SIZES = (0, 1, 1023, 1024, 2047, 2048, 5000, 1 << 20, 1 << 45)


def text_of(  # noqa: PLR0917 # the columns
    url: str, status: int, size: int, path: str, mime: str, notes: str, referrer: str
) -> str:
    """A line as a log has it."""
    annotations = ",".join(filter(None, ("seed3:-1", notes, "depth:1")))
    return f"- {status:5} {size:>10} {url} {path} {referrer} {mime} #001 - - - {annotations}"


lines = st.builds(
    text_of,
    st.builds("http://{}/{}".format, st.sampled_from(_HOSTS), st.sampled_from(_PATHS)),
    st.sampled_from(_STATUSES), st.sampled_from(_SIZES), st.sampled_from(("-", "L", "LE", "R", "P", "M", "LLE", "MM")),
    st.sampled_from(_TYPES), st.sampled_from(_WORDS), st.sampled_from(("-", "http://e.org/")),
)  # fmt: skip
logs = st.lists(lines, max_size=40, unique_by=lambda line: line.split()[3])


def write(archive: Archive, job: str, texts: list[str], **summary: Any) -> None:
    folder = archive.reports / job
    folder.mkdir()
    crawl_log.write(folder, texts)
    (folder / "summary.json").write_text(json.dumps(summary))


def listed(archive: Archive, **fields: Any) -> list[LogLine]:
    return list(counted_urls.chosen(archive, JOB, UrlSelection(**fields)))


def assert_counts_are_lists(archive: Archive) -> None:
    """Each row of each table has as many URLs as its list, and these are archived, or weigh, as much."""
    counted = Tables()
    for line in missing_urls.lines(archive, JOB):
        counted.add(line)
    for name, rows in counted.sorted():
        for key, row in rows:
            least, below = of_size_class(key) if name == "sizes" else (0, None)
            by_table: dict[str, dict[str, Any]] = {
                "hosts": {"host": key}, "types": {"mime": key, "is_kept": True},
                "sizes": {"least": least, "below": below, "is_kept": True}, "states": {"state": key},
                "statuses": {"status": int(key) if name == "statuses" else 0},
                "left_out": {"word": key, "is_kept": False},
            }  # fmt: skip
            urls = listed(archive, **by_table[name])
            whole = (len(urls), sum(line.archived for line in urls), sum(line.size for line in urls))
            assert whole == (row.urls, row.archived, row.bytes), (name, key)
            if name == "left_out":
                assert {line.reason for line in urls} == {key}
    lacks = missing_after_patches(archive, JOB)
    for host, word, number in lacks.rows:
        assert len(listed(archive, lack=Lack.RESOURCE, host=host, word=word)) == number
    for lack, counts in ((Lack.MISSING, lacks.words), (Lack.UNWANTED, lacks.unwanted)):
        for word, number in counts.items():
            assert len(listed(archive, lack=lack, word=word)) == number
        assert Counter(line.reason for line in listed(archive, lack=lack)) == Counter(counts)


@settings(max_examples=examples(60), deadline=None)
@given(logs, st.one_of(st.none(), logs))
def test_the_urls_of_each_count_are_those_that_were_counted(texts: list[str], patched: list[str] | None) -> None:
    """What is asked for by the address of a list is that list, too."""
    with TemporaryDirectory() as folder:
        archive = directory.create(Path(folder) / "archive")
        write(archive, JOB, texts)
        if patched is not None:
            write(archive, PATCH, patched, patches=JOB)
        assert_counts_are_lists(archive)


@given(
    st.builds(
        UrlSelection, word=st.text(max_size=9), status=st.none() | st.integers(-9999, 999), host=st.text(max_size=9),
        mime=st.text(max_size=9), is_kept=st.none() | st.booleans(), least=st.integers(0, 1 << 50),
        below=st.none() | st.integers(0, 1 << 50), lack=st.none() | st.sampled_from(Lack),
    )
)  # fmt: skip
def test_an_address_says_which_list_it_is(selection: UrlSelection) -> None:
    assert UrlSelection.of_parameters(selection.as_parameters()) == selection


@pytest.mark.parametrize("name", tables.SIZES)
def test_each_class_of_sizes_has_its_bounds(name: str) -> None:
    least, below = of_size_class(name)
    assert tables.size_class(least) == name
    assert below is None or (tables.size_class(below - 1) == name and tables.size_class(below) != name)


@pytest.mark.parametrize(
    "values",
    [{"status": "x"}, {"status": "²"}, {"least": "9" * 30}, {"lack": "all"}, {"below": "-"}, {"status": "--1"}],
)
def test_an_address_that_says_no_list_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        UrlSelection.of_parameters(values)


def test_pages_of_a_list_are_parts_of_it(archive: Archive) -> None:
    write(archive, JOB, [text_of(f"http://e.org/{at}", 404, 0, "L", "-", "", "-") for at in range(120)])
    pages = [page_of(archive, JOB, UrlSelection(status=404), first, 50) for first in (0, 50, 100, 150)]
    assert [len(page.rows) for page in pages] == [50, 50, 20, 0] and {page.total for page in pages} == {120}
    assert [row.url for page in pages for row in page.rows] == [f"http://e.org/{at}" for at in range(120)]
    with clocks.under(clocks.Deadline(-1.0)):
        cut = page_of(archive, JOB, UrlSelection(status=404), 0, 50)
    assert cut.is_cut and cut.rows == []


def test_each_missing_url_of_a_bad_site_is_listed_by_its_count(archive: Archive, site: Site) -> None:
    """By the command, in each form."""
    troubles = add_troubles(site)
    done = crawls.crawl(archive, site.url("/"), name="bad", **SETTINGS)
    report = ("report", "--archive", archive.root, done.job)
    counted = json.loads(crawls.run_command(*report, "--json").out)["tables"]
    left_out = {row["key"]: row["urls"] for row in counted if row["table"] == "left_out"}
    assert left_out.keys() >= set(troubles.values()), left_out
    for path, word in troubles.items():
        out = crawls.run_command(*report, "--word", word, "--format", "jsonl").out
        rows = [json.loads(text) for text in out.splitlines()]
        assert sum(not row["archived"] for row in rows) == left_out[word], word
        assert {row["word"] for row in rows} == {word} and site.url(path) in {row["url"] for row in rows}
    for row in counted:
        if row["table"] == "statuses":
            out = crawls.run_command(*report, "--status", row["key"], "--format", "csv").out
            assert len(out.splitlines()) == row["urls"] + 1
    assert "is no word" in crawls.run_command(*report, "--word", "no-word").err
    for other in (("--url", site.url("/")), ("--text",), ("--shown",), ("--shares",), ("--storage",)):
        refused = crawls.run_command(*report, "--word", "robots", *other)
        assert refused.code == 1 and "list URLs: leave out --url" in refused.err, other
    assert crawls.run_command(*report, "--word", "trap:url-length").out == "no URL is so\n"


_READ = """
import sys
from pathlib import Path
from agent.reports.counted_urls import UrlSelection, page_of
from agent.reports import url_fates
from tests.support.memory import peak
from webarcfs.archive.config import directory
archive = directory.open_archive(Path(sys.argv[1]))
before = peak()
page = page_of(archive, sys.argv[2], UrlSelection(word="robots"), 999_900, 50)
found = url_fates.search_crawls(archive, "http://e.org/999999")
print(page.total, len(page.rows), found.fates[0].main.reason)
print(peak() - before)
"""


def test_a_log_of_a_million_lines_costs_bounded_memory(archive: Archive) -> None:
    folder = archive.reports / JOB
    folder.mkdir()
    crawl_log.write(
        folder, (text_of(f"http://e.org/{at}", -9998, 0, "L", "-", "robots", "-") for at in range(1_000_000))
    )
    (folder / "summary.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(archive.root), JOB], cwd=ROOT, check=True, capture_output=True, text=True
    )
    counts, grown = done.stdout.splitlines()
    assert counts == "1000000 50 robots"
    assert int(grown) < 50_000, "kilobytes"
