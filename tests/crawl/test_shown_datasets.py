"""What browsers showed, in datasets: its words and links are there for those who may see the crawl that recorded it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from tests.crawl.test_shown_readers import crawl, crawl_under_embargo, page, plain
from tests.support.crawls import archive
from tests.support.readercommand import webarc
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

__all__ = ["archive"]


def written(archive: Archive, out: Path, kind: str, *words: str) -> tuple[list[dict[str, str]], str]:
    bring_in_step(archive)
    done = webarc("dataset", kind, "--archive", str(archive.root), *words, str(out))
    assert done.returncode == 0, done.stderr
    table = (out / f"{kind}.csv").read_text("utf-8")
    return list(csv.DictReader(io.StringIO(table, newline=""))), done.stderr


@pytest.mark.parametrize("unit", ["version", "year", "capture", "snapshot"])
def test_words_and_links_of_a_dom_are_there(archive: Archive, tmp_path: Path, unit: str) -> None:
    crawl(archive, tmp_path / "a.wacz", page("app", "zebra"))
    texts, _ = written(archive, tmp_path / "text", "text", "--unit", unit, "--as-reader", "--type", "html")
    assert [row["content"] for row in texts] == ["Words\nzebra"]
    links, _ = written(archive, tmp_path / "links", "links", "--unit", unit, "--as-reader")
    assert [row["anchor"] for row in links] == ["zebra"]


@pytest.mark.parametrize("unit", ["version", "year", "capture", "snapshot"])
@pytest.mark.parametrize("hidden", ["held", "under embargo"])
def test_what_a_hidden_crawl_recorded_is_not(archive: Archive, tmp_path: Path, hidden: str, unit: str) -> None:
    """A later crawl met the same bytes: the reader has the page, and neither words nor links of the hidden DOM."""
    if hidden == "held":
        crawl(archive, tmp_path / "a.wacz", page("app", "zebra"), released=False)
    else:
        crawl_under_embargo(archive, tmp_path / "a.wacz", page("app", "zebra"))
    crawl(archive, tmp_path / "b.wacz", plain("app", 7))
    texts, _ = written(archive, tmp_path / "text", "text", "--unit", unit, "--as-reader", "--type", "html")
    assert len(texts) == 1 and texts[0]["crawl_date"].startswith("202507") and "zebra" not in str(texts)
    links, told = written(archive, tmp_path / "links", "links", "--unit", unit, "--as-reader")
    assert links == [] and "not public" in told
    words, _ = written(archive, tmp_path / "words", "words", "--unit", unit, "--as-reader")
    assert "zebra" not in str(words)
    whole, _ = written(archive, tmp_path / "whole", "links", "--unit", unit)
    assert {row["anchor"] for row in whole} == {"zebra"}
