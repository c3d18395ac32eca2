"""Redirects are merged line by line: against a naive account of each URL by itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.crawl.frontier import FoundUrl, Frontier, UrlOutcome
from agent.crawl.job_folder import Job
from agent.pipeline.domain_run import DomainRun, TreeReader
from agent.pipeline.publish import merge_redirects, subset
from tests.support.archives import DOMAIN, FIRST, make_archive, publish, store_of
from tests.support.properties import examples
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.git.repository import PUBLICATIONS, RefUpdate, Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.metadata import CommitTag, format_time
from webarcfs.archive.model.url_lists import REDIRECTS, Redirect, place_of, write_list

pytestmark = pytest.mark.store

_OLD, _NOW = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


def _urls() -> tuple[str, ...]:
    """Twelve URLs, of which some share a list."""
    places: dict[str, list[str]] = {}
    for number in range(2_000):
        url = f"http://{DOMAIN}/{number}"
        places.setdefault(place_of(url), []).append(url)
    shared = sorted(each for each in places.values() if len(each) > 1)
    return tuple(url for group in shared[:4] for url in group[:2]) + tuple(
        group[0] for group in sorted(places.values())[:4]
    )


_URLS = _urls()
#: What a crawl may say of a URL.
_SAYS = ("unseen", "same", "other", "body", "refused-body", "gone", "failed", "nowhere", "robots")


@dataclass(frozen=True)
class _Case:
    """A URL: whether it had a line, who saw it, whether its ARC is there, what the crawl says."""

    had: bool
    seen: bool
    held: bool
    arc: bool
    says: str

    @property
    def is_seen(self) -> bool:
        return self.had and self.seen

    @property
    def is_held(self) -> bool:
        return self.had and self.held


_CASES = st.builds(_Case, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from(_SAYS))


def _line(url: str, target: str = "old", time: datetime = _OLD) -> Redirect:
    return Redirect(url, 302, f"http://{DOMAIN}/{target}", time)


def _expected(url: str, case: _Case, complete: bool) -> tuple[Redirect | None, bool]:
    """The line of a URL after the merge, and whether the publication saw it."""
    if case.says in ("same", "other"):
        now = _line(url, "old" if case.says == "same" else "new", _NOW)
        if case.had:
            return (_line(url) if case.says == "same" else now), True
        return (None, False) if case.arc else (now, True)
    if not case.had or case.says in ("body", "refused-body"):
        return None, False
    ends = case.says in ("unseen", "gone", "nowhere", "robots")
    if ends and complete:
        return (None, False) if case.is_seen and not case.held else (_line(url), False)
    return _line(url), case.is_seen


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_CASES, min_size=len(_URLS), max_size=len(_URLS)), st.booleans())
def test_each_url_by_itself(cases: Sequence[_Case], complete: bool) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        _check(folder, dict(zip(_URLS, cases, strict=True)), complete)
    finally:
        shutil.rmtree(folder)


def _check(folder: Path, cases: Mapping[str, _Case], complete: bool) -> None:
    archive = make_archive(folder)
    arcs = {split(arc_path(url))[1]: b"x" for url, case in cases.items() if case.arc and not case.had}
    lists = _lists([_line(url) for url, case in cases.items() if case.had])
    publish(archive, pages=arcs, extra=lists)
    store = store_of(archive)
    seen_before = _tree(store, [_line(url) for url, case in cases.items() if case.is_seen])
    other = _tree(store, [_line(url) for url, case in cases.items() if case.is_held])
    store.update_refs([RefUpdate(f"{PUBLICATIONS}other", other, None)])
    frontier = Frontier(folder / "frontier.db")
    try:
        _say(frontier, cases)
        run = _run(archive, frontier, store)
        assert run.base is not None
        seen = subset(store, run.base.tree, iter(()), store.find(seen_before, REDIRECTS))
        merged = merge_redirects(run, run.base.tree, seen, seen_before, complete=complete)
        expected = {url: _expected(url, case, complete) for url, case in cases.items()}
        assert _by_url(store, merged.tree) == {url: line for url, (line, _) in expected.items() if line}
        assert _by_url(store, merged.seen) == {url: line for url, (line, was) in expected.items() if line and was}
        for tree in (merged.tree, merged.seen):
            assert all(place_of(each.url) == place for place, each in _placed(store, tree))
        again = merge_redirects(_run(archive, frontier, store), run.base.tree, seen, seen_before, complete=complete)
        assert again == merged
    finally:
        frontier.close()


def _lists(lines: Sequence[Redirect]) -> dict[str, bytes]:
    places: dict[str, list[Redirect]] = {}
    for line in lines:
        places.setdefault(place_of(line.url), []).append(line)
    return {place: write_list(found) for place, found in places.items()}


def _tree(store: Repository, lines: Sequence[Redirect]) -> str:
    changes: dict[str, str | None] = {place: store.write_blob(raw) for place, raw in _lists(lines).items()}
    return store.edit(store.write_tree([]), changes)


def _by_url(store: Repository, tree: str) -> dict[str, Redirect]:
    return {each.url: each for each in redirect_lists.every(store, tree)}


def _placed(store: Repository, tree: str) -> list[tuple[str, Redirect]]:
    places = redirect_lists.places(store, store.find(tree, REDIRECTS))
    return [(place, each) for place, entry in places for each in redirect_lists.lines(store, entry)]


def _say(frontier: Frontier, cases: Mapping[str, _Case]) -> None:
    """Write what the crawl saw into the frontier."""
    with frontier.changes():
        for url, case in cases.items():
            if case.says == "unseen":
                continue
            kind = "robots" if case.says == "robots" else "link"
            frontier.add([FoundUrl(url=url, domain=DOMAIN, kind=kind, depth=0, hops="")])
            row = frontier.by_url(url)
            assert row is not None
            status, target, arc = {
                "same": (302, f"http://{DOMAIN}/old", ""),
                "other": (302, f"http://{DOMAIN}/new", ""),
                "robots": (302, f"http://{DOMAIN}/new", ""),
                "nowhere": (302, "", ""),
                "body": (200, "", split(arc_path(url))[1]),
                "refused-body": (200, "", ""),
                "gone": (404, "", ""),
                "failed": (503, "", ""),
            }[case.says]
            state = "failed" if case.says == "failed" else "done"
            when = format_time(_NOW)
            frontier.settle([UrlOutcome(id=row.id, state=state, status=status, target=target, arc=arc, captured=when)])
            if arc:
                frontier.results([{"id": row.id, "result": "added", "nested": False, "mime": "", "note": ""}])


def _run(archive: Archive, frontier: Frontier, store: Repository) -> DomainRun:
    base = store.head()
    publication = Publication(name="mine", urls=(), crawl=CrawlSettings())
    job = Job(
        archive=archive, name="job", folder=archive.jobs, publication=publication, profile=None, frontier=frontier,
        begun=FIRST,
    )  # fmt: skip
    return DomainRun(
        job=job, domain=DOMAIN, store=store, base=base, tag=CommitTag(FIRST, DOMAIN), complete=True,
        shelf=TreeReader(store, base.tree if base else None),
    )  # fmt: skip
