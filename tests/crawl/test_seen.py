"""Which job made a commit, and what its publication saw then: the trailers Job, Release and Seen, and refs/seen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent.jobs.publishing import JobOutcome
from agent.maintenance import backups
from agent.maintenance.verification import verify
from tests.crawl.test_import_order import warc
from tests.support import crawls
from tests.support.crawls import crawl, run_command
from tests.support.imports import imported
from tests.support.site import Site
from webarcfs.archive.config.directory import LAYOUT, Archive, layout_of
from webarcfs.archive.git.repository import SEEN, RefUpdate, Repository
from webarcfs.archive.history import sequence, versions
from webarcfs.archive.model.metadata import CommitMessage, CommitTag

pytestmark = pytest.mark.crawl

_PAGES = 4


def _fill(site: Site) -> set[str]:
    site.add_html("/", "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES)))
    for number in range(_PAGES):
        site.add_html(f"/{number}", f"Page {number}.")
    return {"index.html", *map(str, range(_PAGES))}


def _tag(outcome: JobOutcome) -> CommitTag:
    return CommitTag.parse(outcome.summary["commit_tags"][-1])


def _message(archive: Archive, tag: CommitTag) -> CommitMessage:
    store = Repository(archive.repository(tag.domain))
    commit = sequence.crawl_commit(store, str(store.ref(tag.ref)))
    assert commit is not None
    return commit.message


def _saw(archive: Archive, tag: CommitTag) -> set[str]:
    """The ARCs that a crawl's publication saw, as git tells it alone."""
    store, message = Repository(archive.repository(tag.domain)), _message(archive, tag)
    assert store.ref(tag.seen_ref) == (message.seen or None)
    tree = message.seen or store.commit(str(store.ref(tag.ref))).tree
    return {arc.path for arc in versions.arcs(store, tree)}


def _is_sound(archive: Archive) -> bool:
    return list(verify(archive)) == []


def test_a_crawl_names_its_job_and_raises_the_layout(archive: Archive, site: Site) -> None:
    every = _fill(site)
    archive.format.write_text("1\n")
    outcome = crawl(archive, site.url(), name="only")
    message = _message(archive, _tag(outcome))
    assert (message.job, message.is_held, message.seen) == (outcome.summary["job"], False, "")
    assert _saw(archive, _tag(outcome)) == every
    assert layout_of(archive.root) == LAYOUT
    assert Repository(archive.repository(site.host)).ref_names(SEEN) == []


def test_a_publication_that_saw_a_part_says_which(archive: Archive, site: Site) -> None:
    """Complete or not: of an incomplete crawl also what the one before it had."""
    every = _fill(site)
    whole = _tag(crawl(archive, site.url(), name="whole"))
    home = _tag(crawl(archive, site.url(), name="home", depth=0))
    assert (_saw(archive, whole), _saw(archive, home)) == (every, {"index.html"})
    site.add_html("/new", "new")
    site.add_html("/huge", "x" * 50_000)
    site.add_html("/", '<a href="/new">n</a><a href="/huge">h</a>')
    partly = crawl(archive, site.url("/1"), name="home", depth=0, max_total_size=20_000)
    assert partly.complete  # and removes nothing, since the other publication has the home page
    assert _saw(archive, _tag(partly)) == {"1"}
    partly = crawl(archive, site.url(), name="home", depth=1, max_total_size=20_000)
    assert not partly.complete
    assert _saw(archive, _tag(partly)) == {"1", "index.html", "new"}
    again = crawl(archive, site.url(), name="whole", max_total_size=20_000)
    assert not again.complete
    assert _saw(archive, _tag(again)) == every | {"new"}
    assert _is_sound(archive)


def test_what_readers_may_not_see_at_once_is_held(archive: Archive, site: Site) -> None:
    _fill(site)
    tags = [
        _tag(crawl(archive, site.url(), name="a", release="by-hand")),
        _tag(crawl(archive, site.url(), name="b", release="when-checked")),
        _tag(crawl(archive, site.url(), name="c", closed_for="30 years")),
        _tag(crawl(archive, site.url(), name="d")),
    ]
    assert [_message(archive, tag).is_held for tag in tags] == [True, True, True, False]


def test_an_older_import_saw_its_own_part(archive: Archive, tmp_path: Path) -> None:
    newest = _tag(imported(archive, warc(tmp_path, "new", "2026-01-01T00:00:00Z", {"a": b"1", "b": b"1"}), name="x"))
    older = _tag(imported(archive, warc(tmp_path, "old", "2020-01-01T00:00:00Z", {"a": b"0", "c": b"0"}), name="y"))
    between = _tag(imported(archive, warc(tmp_path, "mid", "2023-01-01T00:00:00Z", {"d": b"0"}), name="y"))
    other = _tag(imported(archive, warc(tmp_path, "alien", "2024-01-01T00:00:00Z", {"e": b"0"}), name="z"))
    assert _saw(archive, newest) == {"a", "b"}
    assert _saw(archive, older) == {"a", "c"}
    assert _saw(archive, between) == {"a", "c", "d"}
    assert _saw(archive, other) == {"e"}
    assert _is_sound(archive)


def test_backup_restore_and_recover_keep_what_was_seen(archive: Archive, site: Site, tmp_path: Path) -> None:
    _fill(site)
    crawl(archive, site.url(), name="whole")
    home = _tag(crawl(archive, site.url(), name="home", depth=0))
    seen = _saw(archive, home)
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = Archive(tmp_path / "restored")
    assert _saw(restored, home) == seen and _is_sound(restored)
    store = Repository(restored.repository(site.host))
    kept = store.ref(home.seen_ref)
    store.update_refs([RefUpdate(home.seen_ref, None, kept), RefUpdate(f"{SEEN}20200101T000000", kept, None)])
    lines = "\n".join(verify(restored))
    assert f"{home.seen_ref} is gone" in lines and f"{SEEN}20200101T000000: there is no crawl of that time" in lines
    assert run_command("recover", "--archive", restored.root).code == 0
    assert store.ref(home.seen_ref) == kept and store.ref(f"{SEEN}20200101T000000") is None
    assert _is_sound(restored)


def test_what_was_seen_outlives_the_removal_of_pages_and_maintenance(archive: Archive, site: Site) -> None:
    """Only refs/seen leads to that tree, once main has moved on."""
    _fill(site)
    crawl(archive, site.url(), name="whole")
    home = _tag(crawl(archive, site.url("/1"), name="one", depth=0))
    seen = _saw(archive, home)
    site.add_html("/", "nothing left")
    crawl(archive, site.url(), name="whole", accept_shrink=True)
    repository = archive.repository(site.host)
    assert run_command("maintain", "--archive", archive.root).code == 0
    subprocess.run(["git", "-C", str(repository), "gc", "--quiet", "--prune=now"], check=True)
    assert _saw(archive, home) == seen
    assert crawls.arcs(archive, site.host) == {"index.html", "1"}


def test_upgrade_brings_an_older_archive_to_this_layout(archive: Archive, site: Site) -> None:
    _fill(site)
    crawl(archive, site.url())
    archive.format.write_text("1\n")
    done = run_command("upgrade", "--archive", archive.root)
    assert (done.code, layout_of(archive.root)) == (0, LAYOUT)
    assert f"layout {LAYOUT}" in done.out
    done = run_command("upgrade", "--archive", archive.root)
    assert done.code == 0 and "already" in done.out
