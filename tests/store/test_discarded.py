"""What a discarded record captured is in no answer, for staff neither, until it is restored (`record discard`)."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from agent.maintenance.verification import verify
from tests.store.test_as_reader import _SECRET, _URL, _cat, _questions
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.histories import DOMAIN, History, Step
from tests.support.properties import examples
from tests.support.readercommand import webarc
from tests.support.recorded import published
from webarcfs.access import reader_stores
from webarcfs.access.access_rules import Standing
from webarcfs.access.gate import Gate, KnownGate, KnownStaffGate, Reader, StaffGate
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import query
from webarcfs.archive.index.query import ANY_ORIGIN, equalities
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, compact_time
from webarcfs.client import WebarchiveClient

pytestmark = pytest.mark.store

_A = '<a href="/b.html">first</a>'
_LATER = f'<a href="/{_SECRET}.html">{_SECRET}</a>'


def _archive(folder: Path, *steps: Step) -> tuple[Archive, list[CommitTag]]:
    archive = directory.create(folder / "archive")
    archive.settings.write_text("[index]\nlinks = true\n")
    tags = published(archive, History(steps))
    catalogue = Catalogue(archive)
    told = [each.with_event("captured", "webarcfs", "", each.state) for each in catalogue.records()]
    catalogue.save(told, "test", "events")
    recover(archive)
    bring_in_step(archive)
    return archive, tags


def _three(folder: Path, *, place: int = 1) -> tuple[Archive, list[CommitTag]]:
    """Three snapshots of one publication, of which the one at `place` has other pages."""
    steps = [Step("p", {"a.html": _A, "b.html": "b", "c.html": "c"}) for _ in range(3)]
    steps[place] = Step("p", {"a.html": _LATER, "b.html": "b", f"{_SECRET}.html": _SECRET})
    return _archive(folder, *steps)


def _record(tag: CommitTag, publication: str = "p") -> str:
    return f"{compact_time(tag.crawl_time)}-{publication}"


def _act(archive: Archive, act: str, record: str, *words: str) -> None:
    done = run_command("record", act, record, "--archive", archive.root, *words)
    assert done.code == 0, done.err


def _discard(archive: Archive, tag: CommitTag, publication: str = "p") -> None:
    _act(archive, "discard", _record(tag, publication), "--reason", "a trap")


def _answers(archive: Archive, tags: list[CommitTag], *how: str) -> dict[tuple[str, ...], tuple[int, str]]:
    """What each command says in each form."""
    found: dict[tuple[str, ...], tuple[int, str]] = {}
    for name, forms in _questions(tags).items():
        for words in forms:
            done: subprocess.CompletedProcess[bytes] | subprocess.CompletedProcess[str]
            if name == "cat":
                done = _cat(archive, *words, *how)
                found[name, *words] = done.returncode, done.stdout.decode()
            else:
                done = webarc(name, *words, "--archive", str(archive.root), *how)
                found[name, *words] = done.returncode, done.stdout
    return found


@pytest.mark.parametrize("place", [0, 1, 2])
def test_staff_see_what_readers_see_of_the_others(tmp_path: Path, place: int) -> None:
    """Each command in each form: as if the other crawls were all; after `restore` as before."""
    archive, tags = _three(tmp_path, place=place)
    asked = [tags[place - 1], tags[place]] if place else [tags[1], tags[0]]
    before = _answers(archive, asked)
    _discard(archive, tags[place])
    answers = _answers(archive, asked)
    assert answers == _answers(archive, asked, "--as-reader")
    assert not any(_SECRET in text or str(tags[place]) in text for _, text in answers.values())
    assert list(verify(archive)) == []
    _act(archive, "restore", _record(tags[place]))
    assert _answers(archive, asked) == before


def test_the_record_is_in_no_list_and_says_why(tmp_path: Path) -> None:
    archive, tags = _three(tmp_path)
    record = _record(tags[1])
    assert run_command("record", "discard", record, "--archive", archive.root).code == 1  # no reason
    _discard(archive, tags[1])
    assert Catalogue(archive).discarded() == {record}
    listed = run_command("record", "list", "--archive", archive.root)
    assert record not in listed.out and _record(tags[0]) in listed.out and "older" not in listed.out
    assert record not in run_command("record", "export", "--format", "json", "--archive", archive.root).out
    only = run_command("record", "list", "--state", "discarded", "--json", "--archive", archive.root)
    assert [json.loads(line)["record"] for line in only.out.splitlines()] == [record]
    assert "discarded" in run_command("record", "show", record, "--archive", archive.root).out
    assert "a trap" in run_command("record", "log", record, "--archive", archive.root).out
    assert run_command("record", "release", record, "--archive", archive.root).code == 1
    _act(archive, "restore", record, "--reason", "it was none")
    assert Catalogue(archive).discarded() == frozenset()
    kept, _ = Catalogue(archive).read(record)
    assert [(each.what, each.text) for each in kept.events[1:]] == [
        ("discarded", "a trap"),
        ("restored", "it was none"),
    ]
    assert record in run_command("record", "list", "--archive", archive.root).out


@pytest.mark.parametrize("state", [RecordState.RELEASED, RecordState.COUNTED, RecordState.REJECTED])
def test_restored_it_is_what_it_was(tmp_path: Path, state: RecordState) -> None:
    """Also twice. Nothing is released by this."""
    archive, tags = _archive(tmp_path, Step("p", {"a.html": "a"}, state, held=state is not RecordState.RELEASED))
    record = _record(tags[0])
    for _ in range(2):
        _discard(archive, tags[0])
        assert StaffGate(archive).snapshots(DOMAIN)[0].standing is Standing.DISCARDED
        assert Gate(archive, Reader()).domains() == StaffGate(archive).domains() == []
        _act(archive, "restore", record)
        assert Catalogue(archive).read(record)[0].state is state
    assert StaffGate(archive).domains() == [DOMAIN]


def test_the_gate_that_remembers_is_that_of_staff(tmp_path: Path) -> None:
    """Beside that of a reader in the same process; what it knows of a host stays while questions go to another one."""
    archive, tags = _three(tmp_path)
    archives.publish(archive, "other.example", pages={"x": b"x"})
    _discard(archive, tags[1])
    reader, gate = KnownGate(archive, Reader()), KnownStaffGate(archive)
    for known in (reader, gate):
        known.look()
    assert len(reader.facts(DOMAIN).shown) == 2
    own = gate.facts(DOMAIN)
    assert own.snapshots == StaffGate(archive).snapshots(DOMAIN)
    assert [snapshot.standing for snapshot in own.snapshots] == [Standing.OPEN, Standing.DISCARDED, Standing.OPEN]
    assert gate.facts("other.example").shown and gate.facts(DOMAIN) is own
    assert [record.id for record in gate.records()] == [record.id for record in StaffGate(archive).records()]
    _act(archive, "restore", _record(tags[1]))
    gate.look()
    assert len(gate.facts(DOMAIN).shown) == 3


def test_the_present_is_what_the_others_give(tmp_path: Path) -> None:
    """Two publications on one host: the newest of each that is not discarded, the newest first."""
    archive, tags = _archive(
        tmp_path,
        Step("p", {"a.html": "p1", "both.html": "p1"}),
        Step("q", {"q.html": "q", "both.html": "q"}),
        Step("p", {"a.html": "p2"}),
    )

    def present() -> dict[str, str]:
        with WebarchiveClient(archive.root) as client:
            newest = client.snapshots(DOMAIN)[-1]
            return {
                meta.path.removeprefix(f"/{DOMAIN}/"): client.open_read(meta, client.data_name(meta)).read().decode()
                for meta in client.at(newest)
            }

    assert present() == {"a.html": "p2", "q.html": "q", "both.html": "q"}
    _discard(archive, tags[2])
    assert present() == {"a.html": "p1", "q.html": "q", "both.html": "q"}
    _discard(archive, tags[1], "q")
    assert present() == {"a.html": "p1", "both.html": "p1"}
    _act(archive, "restore", _record(tags[2]))
    assert present() == {"a.html": "p2"}


def test_a_running_client_follows(tmp_path: Path) -> None:
    archive, tags = _three(tmp_path)
    with WebarchiveClient(archive.root) as client:
        assert client.snapshots(DOMAIN) == tags
        seen = len(client.select("status >= 0"))
        _discard(archive, tags[1])
        time.sleep(0.6)
        assert client.snapshots(DOMAIN) == [tags[0], tags[2]]
        assert len(client.select("status >= 0")) == seen - 3
        assert [record.number for record in client.records()] == [3, 1]
        assert client.search(_SECRET).total == 0
        with pytest.raises(NotFound):
            list(client.at(tags[1]))
        _act(archive, "restore", _record(tags[1]))
        time.sleep(0.6)
        assert client.snapshots(DOMAIN) == tags and len(client.select("status >= 0")) == seen


def test_exports_leave_it_out(tmp_path: Path) -> None:
    archive, tags = _three(tmp_path)
    _discard(archive, tags[1])
    for form, name in (("cdxj", "x.cdxj"), ("static", "site"), ("wacz", "x.wacz")):
        done = webarc("export", "--format", form, str(tmp_path / name), "--archive", str(archive.root), "--json")
        assert done.returncode == 0, done.stderr
    told = (tmp_path / "x.cdxj").read_text("utf-8")
    assert f"{_URL}a.html" in told and _SECRET not in told
    assert not any(_SECRET in str(each) for each in (tmp_path / "site").rglob("*"))
    one = webarc(
        "export", "--format", "warc", "--at", str(tags[1]), str(tmp_path / "one"), "--archive", str(archive.root)
    )
    assert one.returncode != 0
    archives.add(archive, "a.html/note", b"n")  # the newest is not discarded: it is shown with what users add
    with WebarchiveClient(archive.root) as client:
        assert "note" in client.list(next(meta for meta in client.at(tags[2]) if meta.path.endswith("/a.html")))


_VALUES = {
    "url": (f"{_URL}a.html", f"{_URL}b.html", f"{_URL}{_SECRET}.html", f"{_URL}A.html", f"{_URL}a.html ", "o''clock"),
    "path": (f"/{DOMAIN}/a.html", f"/{DOMAIN}/{_SECRET}.html", ""),
    "domain": (DOMAIN, DOMAIN.upper(), "other.example"),
    "commitTag": (f"2020-01-01T00:00:00@{DOMAIN}", f"2020-01-02T00:00:00@{DOMAIN}", "x"),
}
_TERMS_OF_STAFF = st.sampled_from(sorted(_VALUES)).flatmap(
    lambda column: st.builds(
        "{} {} '{}'".format, st.sampled_from((column, column.upper())), st.sampled_from(("=", "==", "<>", "LIKE", ">")),
        st.sampled_from(_VALUES[column]),
    )
)  # fmt: skip


def test_a_question_of_staff_has_the_same_answer_when_it_is_narrowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of `column = 'text'` are looked up; whatever else is asked is asked of all rows."""
    archive, tags = _three(tmp_path)
    _discard(archive, tags[1])
    narrowed = reader_stores.narrowed(StaffGate(archive))
    assert narrowed is not None
    lookups: list[bool] = []
    narrow = reader_stores._narrow
    monkeypatch.setattr(reader_stores, "_narrow", lambda *asked: (lookups.append(True), narrow(*asked)))

    def answer(where: str, prepare: query.Narrowed) -> list[str]:
        return sorted(str(row) for row in query.ask(archive.database, where, narrowed=prepare))

    @given(st.lists(_TERMS_OF_STAFF, min_size=1, max_size=3), st.sampled_from((" AND ", " and\n", " OR ", " AND NOT ")))
    @settings(max_examples=examples(150), deadline=None)
    def same(terms: list[str], joint: str) -> None:
        where = joint.join(terms)
        assert answer(where, narrowed) == answer(where, lambda connection, _, origin: narrowed(connection, {}, origin))

    same()
    assert lookups
    assert answer(f"url = '{_URL}a.html'", narrowed) != [] == answer(f"url = '{_URL}{_SECRET}.html'", narrowed)


def test_a_question_of_staff_reads_the_rows_alone_that_it_names(tmp_path: Path) -> None:
    """EXPLAIN: by the index of the column, inside the gate. A reader's question does not: its work would tell."""
    archive, tags = _three(tmp_path)
    _discard(archive, tags[1])

    def plan(gate: Gate, where: str) -> str:
        narrowed = reader_stores.narrowed(gate)
        assert narrowed is not None
        with closing(query.connected(archive.database)) as connection:
            narrowed(connection, equalities(where), ANY_ORIGIN)
            said = connection.execute(f"EXPLAIN QUERY PLAN SELECT url FROM metadata WHERE {where}").fetchall()
        assert said[0][3] in ("CO-ROUTINE metadata", "MATERIALIZE metadata")
        return "\n".join(text for *_, text in said)

    for where in (f"url = '{_URL}a.html'", f"path = '/{DOMAIN}/a.html' AND domain = '{DOMAIN}'"):
        assert "SEARCH main.document USING INDEX" in plan(StaffGate(archive), where)
        assert plan(Gate(archive, Reader()), where) == plan(Gate(archive, Reader()), "status > 0")
    assert plan(StaffGate(archive), "url = 'a' OR url = 'b'") == plan(StaffGate(archive), "status > 0")
