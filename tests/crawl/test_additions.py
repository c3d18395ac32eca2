"""Crawls and additions that mounts confirmed meanwhile (/Ar-8.1/, /Ar-10/)."""

from __future__ import annotations

import logging

import pytest

from tests.support import crawls
from tests.support.crawls import crawl
from tests.support.journals import Writer, lines_of, nothing_left
from tests.support.site import Site
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl


def test_what_was_confirmed_before_a_publication_is_in_the_tag_before(
    archive: Archive, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """No commit thread came first: the publication folds the journal in, and drops what its ARCs do not keep."""
    site.add_html("/", '<a href="/a">a</a><a href="/b">b</a><a href="/c">c</a>')
    for path in ("/a", "/b", "/c"):
        site.add_html(path, f"This is {path}.")
    first = crawl(archive, site.url())
    writer = Writer(archive, site.host)
    for arc in ("a", "b", "c"):
        writer.file(arc, "notes.txt", b"42")
        writer.nodes(arc, b"<words>42</words>")
    site.add_html("/a", "Changed.")
    site.gone("/c")
    with caplog.at_level(logging.WARNING):
        second = crawl(archive, site.url())
    assert crawls.read_file(archive, site.host, "a/notes.txt") is None
    assert crawls.read_file(archive, site.host, "b/notes.txt") == b"42"
    assert b"<words>42</words>" in (crawls.read_file(archive, site.host, "b/data.xml") or b"")
    assert "notes.txt" in caplog.text
    store = crawls.store(archive, site.host)
    old, new, *_ = [store.ref(f"refs/crawls/{name}") for name in store.refs("refs/crawls/")]
    assert new == crawls.head_of(archive, site.host)
    commit = store.commit(str(old))
    assert str(commit.message.tag) == first.tags[0] != second.tags[0]
    for arc in ("a", "b", "c"):
        assert store.find(commit.tree, f"{arc}/notes.txt") is not None
    done = commit_additions(archive, site.host)
    assert (done.commits, done.dropped) == ((), ())
    writer.journal.release(done)
    writer.close()
    nothing_left(archive)
    assert store.check() == []


def test_an_agent_commits_what_a_dead_mount_left_before_it_crawls(archive: Archive, site: Site) -> None:
    site.add_html("/", "Home.")
    crawl(archive, site.url())
    writer = Writer(archive, site.host)
    writer.file("index.html", "notes.txt", b"42")
    writer.die()
    done = crawls.run_command("recover", "--archive", archive.root)
    assert done.code == 0, done
    assert lines_of(archive, "Added: ", site.host) == ["index.html/notes.txt"]
    nothing_left(archive)
    done = crawls.run_command("recover", "--archive", archive.root)
    assert done.code == 0 and len(lines_of(archive, "Added: ", site.host)) == 1
