"""The frontier of a job that an older version began is finished by this one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agent.crawl.frontier import FoundUrl, Frontier, UrlOutcome
from agent.crawl.vocabulary import UrlState
from webarcfs.archive.model.errors import Damaged

pytestmark = pytest.mark.store


def test_a_frontier_of_version_2_gets_its_columns_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    made = Frontier(path)
    with made.changes():
        made.add([FoundUrl(url="http://e.org/", domain="e.org", kind="seed", depth=0, hops="")])
    made.close()
    with sqlite3.connect(path) as old:
        old.execute("DROP INDEX url_of_page")
        for column in ("links", "inner", "embedded", "page"):
            old.execute(f"ALTER TABLE url DROP COLUMN {column}")
        old.execute("PRAGMA user_version = 2")
    old.close()
    for _ in range(2):
        frontier = Frontier(path)
        ((row, _),) = frontier.all()
        assert (row.url, row.inner, row.result) == ("http://e.org/", 0, "")
        with frontier.changes():
            frontier.settle([UrlOutcome(id=row.id, state=UrlState.DONE, status=200, links=3)])
        ((row, _),) = frontier.all()
        assert row.links == 3
        frontier.close()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(Damaged, match="is of version"):
        Frontier(path)
