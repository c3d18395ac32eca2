"""One archive and one desk for all tests of this folder that change nothing which others look at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from agent.indexing.recovery import recover
from tests.support import desks
from tests.support.desks import ServedDesk
from tests.support.rooms import Page, published
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import compact_time, parse_time

FIRST = parse_time("2026-10-01T03:00:00")
DOMAIN = "www.example.test"
TOML = """# people write comments here
release = "by-hand"

[crawl]
depth = 3 # not more

[[publication]]
name = "p"
urls = ["http://www.example.test/"]
description = "The example"
"""


@dataclass(frozen=True)
class World:
    """An archive with snapshots in all states, and its desk."""

    archive: Archive
    served: ServedDesk
    ids: tuple[str, ...]


def record_id(at: int) -> str:
    """The record of the capture of a day."""
    return f"{compact_time(FIRST + timedelta(days=at))}-p"


def when(at: int) -> datetime:
    """The time of the capture of a day."""
    return FIRST + timedelta(days=at)


def make_archive(root, states: tuple[RecordState, ...]) -> Archive:  # type: ignore[no-untyped-def]
    """An archive with a small site, a snapshot for each state, the oldest first."""
    archive = directory.create(root)
    (archive.settings).write_text(TOML, "utf-8")
    for at, state in enumerate(states):
        body = f'<html><title>Page {at}</title><p>Hello {at}, <a href="/b.html">more</a> <a href="http://other.test/">o</a>'
        published(
            archive, DOMAIN,
            {f"http://{DOMAIN}/": Page(body.encode(), title=f"Page {at}"), f"http://{DOMAIN}/b.html": Page(b"<p>b")},
            when(at), state=state, held=state is not RecordState.RELEASED,
        )  # fmt: skip
    recover(archive)
    desks.with_people(archive)
    return archive


STATES = (RecordState.RELEASED, RecordState.COUNTED, RecordState.COUNTED, RecordState.REJECTED, RecordState.COUNTED)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """An archive that tests copy."""
    return make_archive(tmp_path_factory.mktemp("template") / "archive", STATES)


@pytest.fixture(scope="session")
def world(template: Archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The shared desk."""
    place = tmp_path_factory.mktemp("desk") / "archive"
    shutil.copytree(template.root, place)
    archive = directory.open_archive(place)
    with desks.served(archive) as served:
        yield World(archive, served, tuple(record_id(at) for at in range(len(STATES))))


@pytest.fixture
def own(template: Archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A desk of its own, for a test that changes much."""
    place = tmp_path_factory.mktemp("own") / "archive"
    shutil.copytree(template.root, place)
    archive = directory.open_archive(place)
    with desks.served(archive) as served:
        yield World(archive, served, tuple(record_id(at) for at in range(len(STATES))))
