"""What `status` tells of imports, how one that was interrupted goes on, and what is looked at to know a file again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import Phase
from agent.importing import import_sources
from agent.importing.import_sources import known_sources, sources_of
from agent.jobs import importjob
from agent.service import loop
from tests.support import warcs
from tests.support.agents import status
from tests.support.crawls import arcs
from tests.support.imports import command, import_files, imported, killed_in
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.system import files

pytestmark = pytest.mark.crawl

HOST = "www.example.org"


def warc(folder: Path, name: str, month: int, *pages: str) -> Path:
    date = f"2021-{month:02}-01T00:00:00Z"
    return warcs.write(folder / f"{name}.warc", [warcs.response(f"http://{HOST}/{each}", b"1", date) for each in pages])


def test_an_interrupted_import_is_told_as_one_and_goes_on_as_it_was_asked_for(archive: Archive, tmp_path: Path) -> None:
    """With --complete, also where that is not said again; it is no publication, and no agent crawls it."""
    imported(archive, warc(tmp_path, "one", 1, "a", "b", "c"), name="site", complete=True)
    assert status(archive)["publications"] == []
    two = warc(tmp_path, "two", 2, "a", "b")
    killed_in(lambda: import_files(archive, two, name="site", complete=True), importjob, "publish_domain")
    (job,) = status(archive)["jobs"]
    assert (job["publication"], job["state"], job["running"], job["documents"]) == ("site", "interrupted", False, 2)
    assert "2 captures" in command("status", "--archive", archive.root).out
    agent = loop.Dispatch(archive)
    agent.turn()
    assert (len(agent.children), agent.resume, agent.ended) == (0, [], set())
    imported(archive, two, name="site")
    assert arcs(archive, HOST) == {"a", "b"}
    (newest,) = [path for path in archive.reports.iterdir() if "one" not in path.name and job_folder.load_item(path)][
        -1:
    ]
    ended = job_folder.load_item(newest)
    assert ended is not None and (ended.state, ended.complete) == (Phase.ARCHIVED, True)


def test_only_what_came_since_is_looked_at_to_know_a_file_again(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    real = import_sources._sources_of
    monkeypatch.setattr(import_sources, "_sources_of", lambda a, tag: looked_at.append(str(tag)) or real(a, tag))
    digests = set()
    for month in range(1, 5):
        file = warc(tmp_path, f"m{month}", month, "a", f"{month}")
        imported(archive, file)
        digests |= {each.digest for each in sources_of([file])}
        assert known_sources(archive) == digests
    assert len(looked_at) == len(set(looked_at)) == 4, "each of them once"
    note = archive.log / "imported.json"
    wrong = (
        b"",
        b"{}",
        b'{"sequence": 99, "tag": "x", "sources": ["y"]}',
        b'{"sequence": 2, "tag": "", "sources": []}',
    )
    for content in wrong:
        note.write_bytes(content)
        assert known_sources(archive) == digests
    assert (files.read_json(note) or {})["sequence"] == 4
