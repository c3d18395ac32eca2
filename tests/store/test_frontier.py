"""The frontier of a job: one that an older version began is finished by this one; what a person adds is no item."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.crawl.discovery import Discovery
from agent.crawl.frontier import FoundUrl, Frontier, UrlOutcome
from agent.crawl.vocabulary import UrlState, ViewState
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.model.errors import Damaged

pytestmark = pytest.mark.store

#: Version → the statements that drop what it added.
_ADDED = {
    3: ["ALTER TABLE url DROP COLUMN links", "ALTER TABLE url DROP COLUMN inner"],
    4: [
        "DROP INDEX url_of_page",
        "ALTER TABLE url DROP COLUMN embedded",
        "ALTER TABLE url DROP COLUMN page",
        "ALTER TABLE url DROP COLUMN named",
    ],
    5: ["DROP TABLE view"],
}


def _downgrade(path: Path, version: int) -> None:
    """Turn a frontier into one of an older version: what the later versions added is dropped, the newest first."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (current,) = connection.execute("PRAGMA user_version").fetchone()
        assert current == max(_ADDED), "a new version has its line in _ADDED"
        for later in range(current, version, -1):
            for statement in _ADDED[later]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")


def _columns(path: Path) -> dict[str, set[str]]:
    """The columns of each table and index."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = {
            name: {
                f"{row[1]} {row[2]} {row[3]} {row[4]} {row[5]}"
                for row in connection.execute(f"PRAGMA table_info({name})")
            }
            for name in tables
        }
        indexes = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql <> ''").fetchall()
        return columns | {name: set() for (name,) in indexes}


def test_a_frontier_of_version_2_gets_its_columns_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    with closing(Frontier(path)) as current, current.changes():
        current.add([FoundUrl(url="http://e.org/", domain="e.org", kind="seed", depth=0, hops="")])
    _downgrade(path, 2)
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


def test_a_frontier_of_version_3_reads_what_is_a_resource_off_its_paths(tmp_path: Path) -> None:
    paths = {"": 0, "LE": 1, "LEER": 2, "ER": 1, "LEL": 0, "R": 0, "ELRE": 1}
    path = tmp_path / "frontier.db"
    with closing(Frontier(path)) as current, current.changes():
        current.add(
            FoundUrl(url=f"http://e.org/{hops}", domain="e.org", kind="link", depth=0, hops=hops) for hops in paths
        )
    _downgrade(path, 3)
    with closing(Frontier(path)) as frontier:
        assert {row.hops: row.embedded for row, _ in frontier.all()} == paths


def test_a_frontier_of_version_4_stores_the_pages_that_a_browser_is_to_show(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    with closing(Frontier(path)) as current, current.changes():
        current.add([FoundUrl(url="http://e.org/", domain="e.org", kind="seed", depth=0, hops="")])
    _downgrade(path, 4)
    with closing(Frontier(path)) as frontier:
        ((row, _),) = frontier.all()
        assert frontier.view(row.id) is None and frontier.open_views() == 0
        with frontier.changes():
            frontier.want_view(row)
    with closing(Frontier(path)) as frontier:
        page = frontier.view(row.id)
        assert page is not None
        assert (page.state, page.html_at) == (ViewState.WAITING, -1)
        assert frontier.next_views(1) == [row] and frontier.open_views() == 1


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_older_frontier_becomes_what_a_new_one_is(tmp_path: Path, version: int) -> None:
    Frontier(tmp_path / "new.db").close()
    Frontier(tmp_path / "old.db").close()
    _downgrade(tmp_path / "old.db", version)
    Frontier(tmp_path / "old.db").close()
    assert _columns(tmp_path / "old.db") == _columns(tmp_path / "new.db")


def test_a_link_makes_a_page_of_a_resource_and_nothing_makes_it_one_again(tmp_path: Path) -> None:
    frontier = Frontier(tmp_path / "frontier.db")
    found = {"url": "http://e.org/f", "domain": "e.org"}

    def offer(kind: str, depth: int, hops: str, embedded: int, state: str = "waiting") -> tuple[str, int, int, str]:
        with frontier.changes():
            frontier.add(
                [FoundUrl(**found, kind=kind, depth=depth, hops=hops, embedded=embedded, page=embedded, state=state)]
            )
        ((row, _),) = frontier.all()
        return row.hops, row.depth, row.embedded, row.state

    assert offer("requisite", 1, "LEE", 2) == ("LEE", 1, 2, "waiting")
    assert offer("link", 2, "LL", 0, "refused") == ("LEE", 1, 2, "waiting")
    assert offer("requisite", 1, "LE", 1) == ("LEE", 1, 1, "waiting")
    assert offer("link", 2, "LL", 0) == ("LEE", 1, 0, "waiting")
    assert offer("requisite", 1, "LE", 1) == ("LEE", 1, 0, "waiting")
    assert offer("requisite", 0, "E", 1) == ("E", 0, 0, "waiting")
    frontier.close()


def test_what_a_person_adds_is_no_item_of_the_watched_feed(tmp_path: Path) -> None:
    """It becomes one where the feed lists it as well; an item that a person adds stays one."""
    added, item = "http://e.org/added", "http://e.org/item"
    news = Publication(name="news", urls=(), watch="http://e.org/feed", crawl=CrawlSettings(depth=0))
    with closing(Frontier(tmp_path / "frontier.db")) as frontier, frontier.changes():
        discovery = Discovery(frontier, news)
        discovery.watch([item])
        discovery.add_by_hand([added, item])
        assert [row.url for row in frontier.seeds()] == [item]
        row = frontier.by_url(added)
        assert row is not None and row.state == UrlState.WAITING
        discovery.items([added])
        assert {row.url for row in frontier.seeds()} == {added, item}
