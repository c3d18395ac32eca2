"""The gate: its three forms agree with each other and with the rules, in memory and on real archives."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from agent.indexing.recovery import recover
from tests.support.histories import DOMAIN, HISTORIES, NOW, PATHS, History
from tests.support.recorded import published
from webarcfs.access import access_rules, reader_stores
from webarcfs.access.access_rules import Open, Saw, VersionSpan, VisibleSnapshot, VisibleSpans, standing
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.history import versions
from webarcfs.archive.index.query import ask
from webarcfs.archive.model.errors import NotFound

pytestmark = pytest.mark.store

#: In memory, and as archives on disk; the soak has more.
_HISTORIES = int(os.environ.get("GATE_HISTORIES", "150"))
_ARCHIVES = int(os.environ.get("GATE_ARCHIVES", "15"))
_BOTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def _snapshots(history: History) -> list[VisibleSnapshot]:
    found = []
    for number, step in enumerate(history.steps):
        said, until = standing(
            step.state, held=step.held, closed_for=step.closed_for, captured=history.time(number), now=NOW
        )
        partial = history.seen[number] != history.states[number]
        found.append(
            VisibleSnapshot(history.seq(number), step.publication, said, str(number) if partial else "", until)
        )
    return found


def _version(history: History, number: int, path: str) -> VersionSpan:
    span = history.span(number, path)
    end = history.seq(span.stop) if span.stop < len(history.steps) else (1 << 63) - 1
    return VersionSpan(path, history.states[number][path], history.seq(span.start), end, history.seq(span.start))


def agree(history: History) -> None:
    """`may`, the spans and the predicate say what the rules say, of each version in each snapshot."""
    snapshots = _snapshots(history)

    def saw(snapshot: VisibleSnapshot, version: VersionSpan) -> bool:
        return history.seen[int(snapshot.seen)].get(version.path) == version.blob

    scope = VisibleSpans(snapshots, saw)
    for number, state in enumerate(history.states):
        for path in state:
            version = _version(history, number, path)
            expected = history.is_visible(number, path)
            assert isinstance(access_rules.may(snapshots, version, saw), Open) == expected
            assert scope.shows(version) == expected
    assert _rows(history, snapshots, saw) == {
        (number, path)
        for number, state in enumerate(history.states)
        if history.is_open(number)
        for path in state
        if history.is_visible(number, path)
    }


def _rows(history: History, snapshots: list[VisibleSnapshot], saw: Saw) -> set[tuple[int, str]]:
    """The rows of a reader's view of a webarc.db in memory: number of the snapshot, and path."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(sql("schema"))
        connection.execute(f"INSERT INTO domain VALUES (1, '{DOMAIN}')")
        for number, step in enumerate(history.steps):
            row = (history.seq(number), str(number), str(number), number, step.publication)
            connection.execute("INSERT INTO snapshot VALUES (1, ?, ?, ?, ?, ?, 1)", row)
        for document, path in enumerate(PATHS):
            connection.execute("INSERT INTO document VALUES (?, 1, ?, ?, '')", (document, path, path))
            starts = [n for n, state in enumerate(history.states) if path in state and history.span(n, path).start == n]
            for number in starts:
                version = _version(history, number, path)
                row = (document, version.first, version.last, version.stored, bytes.fromhex(f"0{version.blob}"))
                connection.execute(
                    "INSERT INTO version VALUES (?, 1, ?, ?, ?, '', '', '', '', 200, ?, x'', 0, x'', 0, '')", row
                )

        def saw_it(_domain: str, snapshot: VisibleSnapshot, version: VersionSpan) -> bool:
            return saw(snapshot, replace(version, blob=version.blob.lstrip("0")))

        reader_stores.show(connection, {DOMAIN: snapshots}, saw_it, lambda *_: True, lambda *_: False)
        return {(int(tag), path) for tag, path in connection.execute("SELECT commitTag, path FROM metadata")}


@given(HISTORIES)
@settings(max_examples=_HISTORIES)
def test_the_forms_of_the_gate_agree(history: History) -> None:
    agree(history)


def as_real_archive(history: History, archive: Archive) -> None:
    """The forms that read an archive say what the rules say: `may`, queries, repositories."""
    tags = published(archive, history)
    recover(archive)
    gate = Gate(archive, Reader(), lambda: NOW)
    for number, state in enumerate(history.states):
        for path in PATHS:
            expected = path in state and history.is_visible(number, path)
            answer = gate.may(DOMAIN, f"/{DOMAIN}/{path}", history.seq(number))
            assert isinstance(answer, Open) == expected, (number, path, answer)
    opened = [number for number in range(len(tags)) if history.is_open(number)]
    expected_rows = {
        (str(tags[number]), f"/{DOMAIN}/{path}")
        for number in opened
        for path in history.states[number]
        if history.is_visible(number, path)
    }
    rows = {(str(meta.commit_tag), meta.path) for meta in ask(archive.database, narrowed=reader_stores.narrowed(gate))}
    assert rows == expected_rows
    with ReaderRepositories(gate) as repositories:
        if not opened:
            with pytest.raises(NotFound):
                repositories.open(DOMAIN)
            return
        store = repositories.open(DOMAIN)
        assert [tag for tag, _ in versions.snapshots(store, DOMAIN)] == [tags[number] for number in opened]
        for number in opened:
            tree = store.snapshot_tree(tags[number])
            bodies = {
                arc.path: store.read(arc.data.oid).decode()
                for arc in versions.arcs(store, tree)
                if arc.data is not None
            }
            assert bodies == history.at(number), number
        assert gate.domains() == [DOMAIN]


@given(HISTORIES)
@settings(max_examples=_ARCHIVES, deadline=None, suppress_health_check=_BOTH)
def test_the_forms_of_the_gate_agree_on_real_archives(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    as_real_archive(history, directory.create(tmp_path_factory.mktemp("real") / "archive"))
