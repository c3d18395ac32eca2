"""kill -9 of a mount while tools write: what close confirmed is there after a remount, whole, once, and soon in git.

`CRASH_ROUNDS` says how often each mount is killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.writer import ARCS, arc, body
from tests.mount.conftest import Mounter, archive, folder, mount, pytest_generate_tests
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.waiting import PATIENCE, eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_nodes, data_xml

__all__ = ["archive", "folder", "mount", "pytest_generate_tests"]
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "2"))
# What is waited for is a state, on however busy a machine.
pytestmark = [pytest.mark.mount, pytest.mark.timeout(max(1200, ROUNDS * 120))]

WRITERS = ("files", "files", "nodes", "nodes")

Confirmed = tuple[str, str, str, int]


def confirmed(manifest: Path) -> list[Confirmed]:
    lines = (line.split("\t") for line in manifest.read_text("utf-8").splitlines())
    return [(kind, place, name, int(size)) for kind, place, name, size in lines]


def write_and_kill(mounted: Mounted, manifest: Path, number: int, chance: random.Random) -> None:
    """Tools write; at a random moment after each of them has confirmed something, the mount is killed."""
    names = [f"w{number}-{index}" for index in range(len(WRITERS))]
    tools = [
        subprocess.Popen([sys.executable, "-m", "tests.crash.writer", kind, mounted / DOMAIN, manifest, name])
        for kind, name in zip(WRITERS, names, strict=True)
    ]
    try:
        eventually(lambda: {name.rpartition("-")[0] for _, _, name, _ in confirmed(manifest)} >= set(names), PATIENCE)
        time.sleep(chance.uniform(0, 0.7))  # the moment, not a bound on anything
        os.kill(mounted.pid, signal.SIGKILL)
        for tool in tools:
            assert tool.wait(PATIENCE) == 0
    finally:
        for tool in tools:
            tool.kill()
            tool.wait()
        mounted.clear()


def check_mounted(mounted: Mounted, expected: list[Confirmed]) -> None:
    """Everything confirmed is there and whole, and nothing that was begun is there in part."""
    for number in range(ARCS):
        place = mounted / DOMAIN / arc(number)
        document = (place / "data.xml").read_bytes()
        data_xml.validate(document)
        nodes = data_nodes.names(document)
        assert {name for kind, at, name, _ in expected if (kind, at) == ("node", place.name)} <= set(nodes)
        for name in nodes:
            assert f"<{name}>{name * 20}</{name}>".encode() in document
        listed = {path.name for path in place.iterdir()}
        for kind, at, name, size in expected:
            if (kind, at) == ("file", place.name):
                assert name in listed
                assert (place / name).read_bytes() == body(name, size), name


def missing_in_git(archive: Archive, expected: list[Confirmed]) -> set[Confirmed]:
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    missing = set()
    documents = {
        arc(number): data_nodes.names(store.read(entry.oid))
        for number in range(ARCS)
        if (entry := store.find(head.tree, f"{arc(number)}/data.xml"))
    }
    for each in expected:
        kind, place, name, _ = each
        there = name in documents[place] if kind == "node" else store.find(head.tree, f"{place}/{name}") is not None
        missing |= set() if there else {each}
    return missing


def check_history(archive: Archive, expected: list[Confirmed]) -> None:
    """Each file was added by one commit, under the commitTag of its crawl; and git finds no fault."""
    repository = archive.repository(DOMAIN)
    git = ["git", "-c", "safe.directory=*", "-C", str(repository)]
    log = subprocess.run([*git, "log", "--format=%B", "main"], capture_output=True, text=True, check=True).stdout
    added = Counter(line.removeprefix("Added: ") for line in log.splitlines() if line.startswith("Added: "))
    for kind, where, name, _ in expected:
        if kind == "file":
            assert added[f"{where}/{name}"] == 1, name
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    tags = {commit.message.tag for commit in store.history(head.oid)}
    assert len(tags) == 1
    for number in range(ARCS):
        place = store.find(head.tree, arc(number))
        assert place is not None
        for entry in store.entries(place.oid):
            # What was in the journal when the mount was killed, and nobody was told of, is there whole or not at all.
            if entry.name.startswith("w"):
                assert store.read(entry.oid) == body(entry.name, store.size(entry.oid)), entry.name
    assert store.check() == []


def test_what_close_confirmed_survives_kill_9(archive: Archive, mount: Mounter, tmp_path: Path) -> None:
    """Files and data nodes, of several tools, in several rounds."""
    archives.publish(archive, pages={arc(number): b"page %d" % number for number in range(ARCS)})
    manifest = tmp_path / "manifest"
    manifest.touch()
    chance = random.Random(ROUNDS)
    for number in range(ROUNDS):
        mounted = mount(archive)
        check_mounted(mounted, confirmed(manifest))
        write_and_kill(mounted, manifest, number, chance)
    mounted = mount(archive)
    expected = confirmed(manifest)
    check_mounted(mounted, expected)
    eventually(lambda: not missing_in_git(archive, expected), PATIENCE)
    check_mounted(mounted, expected)
    assert run(UMOUNT, mounted.point).returncode == 0
    check_history(archive, expected)
