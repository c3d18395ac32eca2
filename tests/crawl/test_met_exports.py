"""Exports tell captures: what a crawl stored, and what it met unchanged; not what it only carried over."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from agent.jobs import exportedjob
from agent.maintenance.verification import verify
from tests.support import warcreading
from tests.support.crawls import crawl
from tests.support.histories import History, Step
from tests.support.nasty import reset
from tests.support.readercommand import webarc
from tests.support.recorded import published
from tests.support.site import Site, redirect
from tests.support.warcreading import Read
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.model.metadata import CommitTag, utc

pytestmark = pytest.mark.crawl


def exported(archive: Archive, out: Path, *words: str) -> list[Read]:
    done = webarc("export", "--archive", str(archive.root), *words, str(out))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return warcreading.read(out)


def revisits(records: list[Read], tag: str) -> dict[str, str]:
    """URL → time, of a snapshot's revisits."""
    return {each.uri: each.fields["WARC-Date"] for each in records if each.kind == "revisit" and each.tag == tag}


def met(archive: Archive, text: str) -> dict[str, str]:
    """What the list of a snapshot's crawl says: URL → time."""
    tag = CommitTag.parse(text)
    store = Repository(archive.repository(tag.domain))
    commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
    assert commit is not None
    found, tree = redirect_lists.of_crawl(store, commit), redirect_lists.seen_tree(commit)
    assert found is not None
    rows = dict(redirect_lists.met_arcs(store, tree, found))
    urls = {
        f"http://{tag.domain}/{'' if name == 'index.html' else name}": each for name, each in rows.items() if each
    } | {url: each for url, each in redirect_lists.met_redirects(store, tree, found) if each}
    return {
        url: f"{utc(datetime.fromtimestamp(each.time).astimezone()):%Y-%m-%dT%H:%M:%SZ}" for url, each in urls.items()
    }


def fill(site: Site) -> None:
    site.add_html("/", '<a href="/a">a</a><a href="/b">b</a><a href="/old">o</a>')
    site.add_html("/a", "This is a.")
    site.add_html("/b", "This is b.")
    site.add_nasty("/old", redirect("/a"))


@pytest.fixture(name="history")
def _history(archive: Archive, site: Site) -> list[str]:
    """A first crawl; one that met all but a changed page; one that only carried over two pages and the redirect."""
    fill(site)
    tags = list(crawl(archive, site.url(), name="x").tags)
    site.add_html("/a", "Changed.")
    tags += crawl(archive, site.url(), name="x").tags
    for path in ("/a", "/b", "/old"):
        site.add_nasty(path, reset())
    tags += crawl(archive, site.url(), name="x").tags
    return tags


def test_what_was_met_is_a_revisit_and_what_was_carried_over_is_none(
    archive: Archive, site: Site, history: list[str], tmp_path: Path
) -> None:
    records = exported(archive, tmp_path / "all.warc")
    first, second, third = history
    assert revisits(records, first) == {}
    assert revisits(records, second) == met(archive, second)
    assert revisits(records, second).keys() == {site.url(), site.url("/b"), site.url("/old")}
    assert revisits(records, third) == met(archive, third)
    assert revisits(records, third).keys() == {site.url()}
    carried = {each.fields["Webarcfs-URL"] for each in records if each.fields.get("Webarcfs-Carried")}
    assert carried == {site.url("/a"), site.url("/b"), site.url("/old")}
    assert {each.kind for each in records if each.fields.get("Webarcfs-Carried")} == {"metadata"}


def test_it_comes_back_with_its_lists(archive: Archive, history: list[str], tmp_path: Path) -> None:
    exported(archive, tmp_path / "all.warc")
    again = directory.create(tmp_path / "again")
    assert not exportedjob.run(again, [tmp_path / "all.warc"]).refused
    assert [met(again, tag) for tag in history] == [met(archive, tag) for tag in history]
    assert list(verify(again)) == []


def test_one_state_has_the_time_when_it_was_met_beside_each_response(
    archive: Archive, site: Site, history: list[str], tmp_path: Path
) -> None:
    records = exported(archive, tmp_path / "one.warc", "--at", history[1])
    assert {each.uri for each in records if each.kind == "response"} == {site.url(x) for x in ("/", "/a", "/b", "/old")}
    assert revisits(records, history[1]) == met(archive, history[1])
    again = directory.create(tmp_path / "again")
    assert not exportedjob.run(again, [tmp_path / "one.warc"]).refused


def test_a_reader_gets_revisits_of_what_it_may_see(
    archive: Archive, site: Site, history: list[str], tmp_path: Path
) -> None:
    name, _, port = site.host.partition(":")
    place = f"{','.join(reversed(name.split('.')))}:{port}" if not name[0].isdigit() else f"{name}:{port}"
    archive.access_rules.write_text(f'{place})/b - {{"access": "exclude"}}\n')
    records = exported(archive, tmp_path / "shown.warc", "--as-reader")
    wanted = {url: time for url, time in met(archive, history[1]).items() if url != site.url("/b")}
    assert revisits(records, history[1]) == wanted and wanted
    assert not any(b"This is b" in each.body for each in records)
    again = directory.create(tmp_path / "again")
    assert not exportedjob.run(again, [tmp_path / "shown.warc"]).refused
    assert list(verify(again)) == []


def test_a_crawl_without_a_list_has_no_revisits_and_says_so(archive: Archive, tmp_path: Path) -> None:
    first, second = published(archive, History((Step("p", {"a": "1"}), Step("p", {"a": "1"}))))
    records = exported(archive, tmp_path / "all.warc")
    assert revisits(records, str(second)) == {} == revisits(records, str(first))
    said = [each.body for each in records if each.uri == f"urn:webarcfs:snapshot:{second}"]
    assert said and b"met: unknown\r\n" in said[0]
