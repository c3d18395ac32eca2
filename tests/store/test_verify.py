"""`webarc-agent verify` finds every kind of damage, a line each, and nothing in a sound archive."""

import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.indexing.recovery import catch_up
from agent.maintenance.verification import verify
from tests.support.archives import DOMAIN, add, publish, store_of
from tests.support.crawls import run_command
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, RefUpdate

pytestmark = pytest.mark.store
OTHER = "other.example:8080"


@pytest.fixture
def sound(archive: Archive) -> Archive:
    """Two domains, several snapshots, additions, and a database in step."""
    publish(archive, DOMAIN, {f"{n}.html": b"%d" % n for n in range(30)} | {"blog": b"1", "blog/x.html": b"1"})
    publish(archive, OTHER, {"a.html": b"1"})
    add(archive, "1.html/notes.txt", b"mine")
    publish(archive, DOMAIN, {"1.html": b"new", "2.html": None})
    catch_up(archive)
    return archive


def test_a_sound_archive_has_no_findings(sound: Archive) -> None:
    assert list(verify(sound)) == list(verify(sound, quick=True)) == []
    done = run_command("verify", "--archive", sound.root)
    assert (done.code, done.out) == (0, "sound\n")


def test_an_empty_archive_is_sound(archive: Archive) -> None:
    assert list(verify(archive)) == []


def _repack(archive: Archive) -> Path:
    repository = archive.repository(DOMAIN)
    subprocess.run(["git", "repack", "-a", "-d", "-q"], cwd=repository, check=True)
    (pack,) = (repository / "objects/pack").glob("*.pack")
    pack.chmod(0o644)
    return pack


def _flip_bytes_in_a_pack(archive: Archive) -> None:
    pack = _repack(archive)
    data = bytearray(pack.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 8):
        data[at] ^= 0xFF
    pack.write_bytes(data)


def _delete_an_object(archive: Archive) -> None:
    store = store_of(archive)
    head = store.head()
    assert head is not None
    found = store.find(head.tree, "3.html/data.xml")
    assert found is not None
    for pack in (store.path / "objects/pack").glob("*.pack"):
        pack.rename(store.path / pack.name)
        with (store.path / pack.name).open("rb") as file:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=store.path, stdin=file, check=True)
    for rest in (store.path / "objects/pack").iterdir():
        rest.unlink()
    (store.path / "objects" / found.oid[:2] / found.oid[2:]).unlink()


def _remove_a_ref(archive: Archive) -> None:
    store = store_of(archive)
    name, target = next(iter(store.refs("refs/crawls/").items()))
    store.update_refs([RefUpdate(f"refs/crawls/{name}", None, target)])


def _move_main_back(archive: Archive) -> None:
    store = store_of(archive)
    head = store.head()
    assert head is not None
    store.update_refs([RefUpdate(MAIN, head.parents[0], head.oid)])


def _fake_a_document(archive: Archive) -> None:
    add(archive, "4.html/data.xml", b"<file/>")


def _confuse_documents(archive: Archive) -> None:
    store = store_of(archive)
    head = store.head()
    assert head is not None
    found = store.find(head.tree, "3.html/data.xml")
    assert found is not None
    add(archive, "4.html/data.xml", store.read(found.oid))


def _cut_the_feed(archive: Archive) -> None:
    archive.changes.write_text("".join(archive.changes.read_text().splitlines(keepends=True)[:-1]))


def _turn_the_feed(archive: Archive) -> None:
    archive.changes.write_text("".join(reversed(archive.changes.read_text().splitlines(keepends=True))))


def _forge_the_feed(archive: Archive) -> None:
    with archive.changes.open("a") as file:
        file.write(f"2030-01-01T00:00:00@{DOMAIN}\n")


def _drop_a_row(archive: Archive) -> None:
    with sqlite3.connect(archive.database) as connection:
        connection.execute("DELETE FROM version WHERE document = (SELECT max(document) FROM version)")


def _drop_a_snapshot(archive: Archive) -> None:
    with sqlite3.connect(archive.database) as connection:
        connection.execute("DELETE FROM snapshot WHERE sequence = 2")


def _damage_the_database(archive: Archive) -> None:
    archive.database.write_bytes(b"x" * 100_000)


def _a_foreign_job(archive: Archive) -> None:
    folder = archive.jobs / "20261121T030000-nightly"
    folder.mkdir()
    (folder / "frontier.db").write_bytes(b"x" * 10_000)


def _a_damaged_journal(archive: Archive) -> None:
    (archive.journal / "dead-1.log").write_bytes(b"this is none" * 100)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_flip_bytes_in_a_pack, f"{DOMAIN}: "),
        (_delete_an_object, f"{DOMAIN}: git fsck: missing blob"),
        (_remove_a_ref, f"{DOMAIN}: refs/crawls/"),
        (_move_main_back, f"{DOMAIN}: refs/heads/main is not where the newest crawl's ref is"),
        (_fake_a_document, f"{DOMAIN}: /4.html/data.xml: data.xml is not valid"),
        (_confuse_documents, f"{DOMAIN}: /4.html/data.xml: it is the data.xml of /{DOMAIN}/3.html"),
        (_cut_the_feed, "changes: there is no line for "),
        (_turn_the_feed, "changes: "),
        (_forge_the_feed, f"changes: 2030-01-01T00:00:00@{DOMAIN} is on no ref"),
        (_drop_a_row, "webarc.db: what it says of /"),
        (_drop_a_snapshot, "webarc.db: there is no snapshot "),
        (_damage_the_database, ""),
        (lambda archive: archive.database.unlink(), "webarc.db: it is missing"),
        (_a_foreign_job, "jobs/20261121T030000-nightly: "),
        (_a_damaged_journal, "journal/dead-1.log: it is damaged"),
        (lambda archive: (archive.repository(OTHER) / "HEAD").write_text("x"), f"{OTHER}: "),
    ],
    ids=lambda each: getattr(each, "__name__", "").strip("_<>"),
)
def test_damage_is_found(sound: Archive, damage: Callable[[Archive], object], says: str) -> None:
    damage(sound)
    found = list(verify(sound))
    assert any(line.startswith(says) for line in found), found
    done = run_command("verify", "--archive", sound.root)
    assert done.code == 2
    assert done.out.splitlines() == found


def test_quick_looks_at_what_came_since(sound: Archive) -> None:
    assert list(verify(sound)) == []
    _fake_a_document(sound)
    (line,) = verify(sound, quick=True)
    assert line.startswith(f"{DOMAIN}: /4.html/data.xml: ")
    (again,) = verify(sound, quick=True)
    assert again == line


def test_quick_says_what_it_leaves_out(sound: Archive) -> None:
    done = run_command("verify", "--archive", sound.root, "--quick")
    assert (done.code, done.out) == (
        0,
        "nothing was found; not read: objects (but for data.xml that is new), commit-graphs, the databases' pages\n",
    )
    assert "commit-graphs" in run_command("verify", "--help").out
    _flip_bytes_in_a_pack(sound)
    assert list(verify(sound)) and not [line for line in verify(sound, quick=True) if "fsck" in line]
