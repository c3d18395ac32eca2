"""catalogue.git and catalogue.db: records written, found, and lost."""

from __future__ import annotations

import errno
import getpass
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from lxml import etree

from agent.catalogue.recording import catch_up_records
from agent.cli import cli
from agent.indexing.recovery import catch_up
from agent.maintenance.backups import backup, restore
from agent.maintenance.maintenance import maintain
from agent.maintenance.verification import verify
from agent.operations import records
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.disks import small_disk
from tests.support.histories import DOMAIN, History, Step
from tests.support.properties import examples
from tests.support.recorded import published
from webarcfs.archive.catalogue import people as persons
from webarcfs.archive.catalogue.catalogue import Catalogue, CatalogueDatabase, RecordSelection, opened
from webarcfs.archive.catalogue.people import Person
from webarcfs.archive.catalogue.record import (
    DC,
    OAI_DC,
    CrawlPart,
    Record,
    RecordState,
    read_record,
    write_dublin_core,
    write_record,
)
from webarcfs.archive.catalogue.workflow import Right, Role
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import (
    Busy,
    Damaged,
    Forbidden,
    NotFound,
    SettingsError,
    UsageError,
    WebarcError,
    exit_code_of,
)
from webarcfs.archive.model.metadata import CET, CommitTag, compact_time, format_time

pytestmark = pytest.mark.store

_FIRST = datetime(2020, 1, 1, tzinfo=CET)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return archives.make_archive(tmp_path)


def _record(number: int, publication: str = "p", state: RecordState = RecordState.RELEASED) -> Record:
    time = _FIRST + timedelta(hours=number)
    part = CrawlPart(CommitTag(time, DOMAIN), True)
    record = Record(
        id=f"{compact_time(time)}-{publication}", number=0, publication=publication, state=state, parts=(part,)
    )
    return record.with_values({1: record.id, 7: format_time(time), 22: "10", 23: "1"}, "test", time)


def test_records_are_numbered_and_found(archive: Archive) -> None:
    catalogue = Catalogue(archive)
    assert list(catalogue.records()) == [] and catalogue.state() is None and not catalogue.has("x")
    with pytest.raises(NotFound):
        catalogue.read("20200101T000000-p")
    saved = catalogue.save([_record(2), _record(1, "q")], "anna", "two")
    assert [each.number for each in saved] == [1, 2]
    third = catalogue.save([_record(3, "q")], "anna", "one more")[0]
    assert third.number == 3
    assert [each.number for each in catalogue.records()] == [3, 1, 2]  # the newest capture first
    assert list(catalogue.ids("q")) == [third.id, saved[1].id]
    assert catalogue.newest("q", third.id) == saved[1] and catalogue.newest("q", saved[1].id) is None
    assert [event.what for event in catalogue.history(third.id)] == ["one more"]
    with opened(archive) as database:
        assert database.count_of(RecordSelection()) == 3 and database.id_of(3) == third.id and database.id_of(9) is None


def test_two_editors_of_one_record(archive: Archive) -> None:
    catalogue = Catalogue(archive)
    (record,) = catalogue.save([_record(1)], "anna", "new")
    _, blob = catalogue.read(record.id)
    first = record.with_values({6: "from anna"}, "anna", _FIRST)
    catalogue.save([first], "anna", "edited", expected={record.id: blob})
    second = record.with_values({6: "from bert"}, "bert", _FIRST)
    with pytest.raises(Busy, match="changed meanwhile"):
        Catalogue(archive).save([second], "bert", "edited", expected={record.id: blob})
    assert catalogue.read(record.id)[0] == first
    with pytest.raises(Busy):
        catalogue.save([_record(1)], "carl", "new", expected={record.id: None})


def test_many_writers_lose_nothing(archive: Archive) -> None:
    def write(publication: str) -> None:
        for number in range(10):
            Catalogue(archive).save([_record(number, publication)], publication, "new")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = list(Catalogue(archive).records())
    assert sorted(each.number for each in found) == list(range(1, 41))
    with opened(archive) as database:
        assert database.count_of(RecordSelection()) == 40


def test_the_tables_follow_the_catalogue(archive: Archive) -> None:
    """catalogue.db is derived: it may be missing, behind, damaged, or of nobody who may write."""
    catalogue = Catalogue(archive)
    (record,) = catalogue.save([_record(1)], "anna", "new")
    seq = int(_record(1).parts[0].tag.crawl_time.timestamp())

    def state() -> RecordState:
        with opened(archive) as database:
            return database.parts(DOMAIN)[seq].state

    assert state() is RecordState.RELEASED
    catalogue.save([record.with_event("withdrawn", "anna", "x", RecordState.CHECKED)], "anna", "withdrawn")
    assert state() is RecordState.CHECKED
    archive.catalogue_database.write_bytes(b"nonsense" * 1000)
    assert state() is RecordState.CHECKED
    archive.catalogue_database.unlink()
    assert state() is RecordState.CHECKED and archive.catalogue_database.exists()
    (record,) = catalogue.records()
    catalogue.save([record.with_event("released", "anna", "", RecordState.RELEASED)], "anna", "released")
    archive.catalogue_database.chmod(0o444)
    assert state() is RecordState.RELEASED


def test_a_number_that_sqlite_cannot_have_costs_the_tables_nothing(archive: Archive) -> None:
    """Somebody may type it into a field; the record keeps it, and lists have no number."""
    catalogue = Catalogue(archive)
    catalogue.save([_record(1).with_values({22: "9" * 20, 23: "9" * 16}, "anna", _FIRST), _record(2)], "anna", "new")
    with opened(archive) as database:
        rows = [database.row(_record(number).id) for number in (1, 2)]
    assert [row and (row.documents, row.bytes) for row in rows] == [(None, None), (1, 10)]


def test_who_reads_the_tables_of_no_records_makes_no_file(archive: Archive) -> None:
    with opened(archive) as database:
        assert database.count_of(RecordSelection()) == 0
    assert not archive.catalogue_database.exists()


def test_a_catalogue_that_is_removed_or_behind_is_made_anew_from_git(archive: Archive) -> None:
    tags = published(archive, History([Step("p", {"a": "1"}), Step("q", {"b": "1"}, RecordState.COUNTED, held=True)]))
    catch_up(archive)
    assert catch_up_records(archive) == 0  # `published` wrote them
    shutil.rmtree(archive.catalogue)
    (archive.reports / "20200101T000000-p").mkdir()
    (archive.reports / "20200101T000000-p" / "summary.json").write_text("{}")
    assert any(line.startswith("catalogue.git: it is missing") for line in verify(archive))
    assert catch_up_records(archive) == 2
    found = {each.publication: each for each in Catalogue(archive).records()}
    assert [found[name].state for name in "pq"] == [
        RecordState.RELEASED,
        RecordState.COUNTED,
    ]  # what was held stays so (R2)
    assert found["q"].parts[0].tag == tags[1] and found["q"].release == "by-hand"
    assert list(verify(archive)) == []


def test_catching_up_stops_and_goes_on(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old archive has thousands of captures: an agent that is to stop does not describe them all first."""
    published(archive, History([Step("p", {"a": str(number)}, None) for number in range(5)]))
    catch_up(archive)
    monkeypatch.setattr("agent.catalogue.recording._AT_ONCE", 2)
    asked: list[bool] = []
    assert catch_up_records(archive, lambda: len(asked) > 0 or bool(asked.append(True))) == 2
    assert len(list(Catalogue(archive).ids())) == 2 and Catalogue(archive).described() == 0
    assert catch_up_records(archive) == 3
    assert Catalogue(archive).described() == 5
    counts = [each.text(23) for each in Catalogue(archive).records()]
    assert counts == ["1"] * 5


def test_a_damaged_catalogue_is_told(archive: Archive) -> None:
    catalogue = Catalogue(archive)
    (record,) = catalogue.save([_record(1)], "anna", "new")
    assert list(verify(archive)) == []
    store = Repository(archive.catalogue)
    _save_raw(archive, f"records/p/2020/{record.id}.xml", b"<record/>")
    assert any("no record" in line for line in verify(archive))
    with pytest.raises(Damaged, match="no record"):
        Catalogue(archive).read(record.id)
    _save_raw(
        archive,
        f"records/p/2020/{record.id}.xml",
        write_record(_record(2)).replace(b'number="0"', b'number="1"'),
    )
    with pytest.raises(Damaged, match="is the record of"):
        Catalogue(archive).read(record.id)
    (store.path / "refs/heads/main").write_text("nonsense\n")
    assert any(line.startswith("catalogue.git") for line in verify(archive))
    with pytest.raises(Damaged):
        Catalogue(archive).state()
    assert catch_up_records(archive) == 0  # logged, and no job fails by it


def _save_raw(archive: Archive, path: str, content: bytes) -> None:
    Catalogue(archive).save([], "test", "raw", files={path: content})


def test_backup_restore_maintain(archive: Archive, tmp_path: Path) -> None:
    """BT-backup-2: access rules, people and withdrawals come back."""
    published(archive, History([Step("p", {"a": "1"}), Step("p", {"a": "2"})]))
    catch_up(archive)
    for words in (
        ("withhold", f"http://{DOMAIN}/a", "--reason", "court"),
        ("record", "withdraw", "1", "--reason", "wrong"),
        ("people", "add", "root", "--role", "administrator", "--unix", getpass.getuser()),
    ):
        done = run_command(*words, "--archive", archive.root)
        assert done.code == 0, done.err
    acting = persons.Acting("anna", None)
    for name, body in (("gone.pdf", b"gone"), ("kept.pdf", b"kept" * 100_000)):
        records.attach(archive, "20200101T000000-p", name, BytesIO(body), acting, note="signed")
    records.detach(archive, "20200101T000000-p", "gone.pdf", acting, "a draft")
    assert maintain(archive).failed == []
    assert backup(archive, tmp_path / "backup").failed == ()
    _, _, finished = restore(tmp_path / "backup", tmp_path / "again")
    again = directory.open_archive(tmp_path / "again")
    assert finished and list(verify(again)) == []
    assert [each.state for each in Catalogue(again).records()] == [RecordState.RELEASED, RecordState.CHECKED]
    assert again.access_rules.read_text() == archive.access_rules.read_text()
    assert again.people.stat().st_mode & 0o777 == 0o600
    told = [each.what for each in Catalogue(again).history("20200101T000000-p")]
    assert told[0] == "20200101T000000-p: detached gone.pdf" and told[3] == "20200101T000000-p: withdrawn"
    assert _attached(again, "20200101T000000-p") == {"kept.pdf": b"kept" * 100_000}
    store = Repository(again.catalogue)
    old = store.plain_commit(store.plain_commit(store.tree_of("refs/heads/main")[0]).parents[0])  # type: ignore[index] # it is there
    entry = store.find(old.tree, "records/p/2020/20200101T000000-p/gone.pdf")
    assert entry is not None and store.read(entry.oid) == b"gone", "the history keeps what was taken away"
    again.access_rules.unlink()
    assert any(line.startswith("access.aclj: it is missing") for line in verify(again))


def test_people_decide_who_may(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """BT-role-1, BT-role-8: without people everybody may; with them, a login name that has the right."""
    monkeypatch.setenv("LOGNAME", "anna")
    assert persons.acting(archive, Right.PEOPLE).roles is None
    with pytest.raises(UsageError, match="nobody could change people"):
        persons.save(archive, Person("rita", "Rita", (Role.REVIEWER,), "rita"))
    assert persons.load(archive) in (None, {})
    persons.save(archive, Person("anna", "Anna \u4f8b", (Role.ADMINISTRATOR,), "anna"))
    persons.save(archive, Person("carl", "Carl", (Role.ARCHIVIST,), "carl"))
    with archive.people.open("a") as file:
        file.write("# people write comments\n")
    persons.save(archive, Person("rita", "Rita", (Role.REVIEWER,), "rita"))
    assert "# people write comments" in archive.people.read_text() and archive.people.stat().st_mode & 0o777 == 0o600
    assert persons.acting(archive, Right.DESCRIBE).name == "Anna \u4f8b"
    with pytest.raises(Forbidden, match="administrator"):
        persons.acting(archive, Right.RELEASE)
    with pytest.raises(UsageError):
        persons.remove(archive, "anna")
    monkeypatch.setenv("LOGNAME", "carl")
    assert persons.acting(archive, Right.RELEASE).roles == (Role.ARCHIVIST,)
    with pytest.raises(Forbidden):
        persons.save(archive, Person("carl", "Carl", (Role.ADMINISTRATOR,), "carl"))
    monkeypatch.setenv("LOGNAME", "rita")
    assert persons.acting(archive, Right.REVIEW).roles == (Role.REVIEWER,)
    monkeypatch.setenv("LOGNAME", "nobody-else")
    with pytest.raises(Forbidden, match="no person with the login name"):
        persons.acting(archive, Right.REVIEW)


@pytest.mark.parametrize(
    "text",
    [
        "[person.anna]\nrole = 'king'\n",
        "[person.anna]\nrole = 'curator'\nnonsense = 1\n",
        "[person.anna]\nrole = 'curator'\nunix = 7\n",
        "[person.a]\nrole = 'curator'\nunix = 'x'\n[person.b]\nrole = 'curator'\nunix = 'x'\n",
        "person = 1\n",
        "[people.anna]\nrole = 'curator'\n",
        "[person.anna]\nroles = 'curator'\n",
        "[person.anna]\nroles = []\n",
        "[person.anna]\nroles = ['curator', 'king']\n",
        "[person.anna]\nroles = ['curator', 7]\n",
        "[person.anna]\nroles = [['curator']]\n",
        "[person.anna]\nroles = [{role = 'curator'}]\n",
        "[person.anna]\nrole = 'curator'\nroles = ['curator']\n",
        "[person.anna]\nname = 'Anna'\n",
        "[person.anna",
    ],
)
def test_people_with_faults_let_nobody_in(archive: Archive, text: str) -> None:
    """S-people-1: also a file with `role` and `roles`."""
    archive.people.write_text(text)
    with pytest.raises(SettingsError):
        persons.acting(archive, Right.REVIEW)


def test_commands_of_records(archive: Archive) -> None:
    """release, reject, reopen, withdraw, edit, log: each by its command, each in the record's history."""
    published(archive, History([Step("p", {"a": str(number)}, RecordState.COUNTED, held=True) for number in range(3)]))
    catch_up(archive)

    def record(*words: str) -> str:
        done = run_command("record", *words, "--archive", archive.root)
        assert done.code == 0, done.err
        return done.out

    assert "20200101T000000-p: released" in record("release", "1")
    assert "20200102T000000-p: rejected" in record("reject", "2", "--reason", "empty")
    record("reopen", "20200102T000000-p")
    record("release", "--publication", "p", "--before", "2020-01-03")
    assert [each.state for each in Catalogue(archive).records()] == [
        RecordState.COUNTED,
        RecordState.RELEASED,
        RecordState.RELEASED,
    ]
    record("withdraw", "1", "--reason", "wrong")
    record("edit", "1", "remarks=ש\u05dcום", "title=\u4f8b", "signature=5100")
    shown = json.loads(record("show", "1", "--json"))
    assert (shown["remarks"], shown["title"], shown["signature"]) == ("ש\u05dcום", "\u4f8b", "5100")
    told = [json.loads(line) for line in record("log", "1", "--json").splitlines()]
    assert [each["what"] for each in told] == ["edited", "withdrawn", "released"]
    listed = [json.loads(line) for line in record("list", "--json", "--state", "checked").splitlines()]
    assert [each["number"] for each in listed] == [1]
    for words, code in (
        (("release", "nonsense"), 2),
        (("reject", "2", "--reason", "x"), 1),
        (("withdraw", "2"), 1),
        (("edit", "1", "status=7"), 2),
        (("edit", "1", "nonsense"), 1),
        (("release",), 1),
    ):
        assert run_command("record", *words, "--archive", archive.root).code == code, words


def _attached(archive: Archive, record_id: str) -> dict[str, bytes]:
    """The attachments that a record names, with their bytes."""
    catalogue = Catalogue(archive)
    names = [each.name for each in catalogue.read(record_id)[0].attachments]
    store = Repository(archive.catalogue)
    return {name: store.read(catalogue.attachment(record_id, name)[0]) for name in names}


def test_files_are_attached_listed_given_out_and_taken_away(archive: Archive, tmp_path: Path) -> None:
    """BT-scope-17."""
    published(archive, History([Step("p", {"a": "1"})]))
    catch_up(archive)

    def record(*words: str | Path, code: int = 0) -> str:
        done = CliRunner().invoke(cli, ["record", *map(str, words), "--archive", str(archive.root)])
        assert (exit_code_of(done.exception) if isinstance(done.exception, WebarcError) else done.exit_code) == code
        return done.output

    letter = tmp_path / "letter.pdf"
    letter.write_bytes(b"%PDF\r\n\0" * 300_000)  # line ends, which no filter of git may change
    assert "attached" in record("attach", "1", letter, "--note", "of the ministry", "--name", "a \u4f8b.pdf")
    assert "nothing is different" in record("attach", "1", letter, "--name", "a \u4f8b.pdf")
    (listed,) = (json.loads(line) for line in record("attachments", "1", "--json").splitlines())
    assert listed.pop("at") and listed == {
        "name": "a \u4f8b.pdf", "bytes": 2_100_000, "by": getpass.getuser(), "note": "of the ministry",
    }  # fmt: skip
    assert "of the ministry" in record("attachments", "1") and "a \u4f8b.pdf" in record("show", "1")
    assert json.loads(record("show", "1", "--json"))["attachments"] == ["a \u4f8b.pdf"]
    record("attachments", "1", "--get", "a \u4f8b.pdf", "--to", tmp_path)
    assert (tmp_path / "a \u4f8b.pdf").read_bytes() == letter.read_bytes()
    record("attachments", "1", "--get", "a \u4f8b.pdf", "--to", tmp_path, code=1)  # it is there already
    letter.write_bytes(b"another")
    record("attach", "1", letter, "--name", "a \u4f8b.pdf", code=1)
    record("attach", "1", letter, "--name", ".hidden", code=1)
    record("attach", "1", letter, "--name", "a \u4f8b.pdf", "--replace")
    assert _attached(archive, "20200101T000000-p") == {"a \u4f8b.pdf": b"another"}
    with letter.open("ab") as file:
        file.truncate(20_000_001)
    record("attach", "1", letter, code=1)
    record("detach", "1", "a \u4f8b.pdf", "--reason", " ", code=1)
    record("detach", "1", "a \u4f8b.pdf", "--reason", "it was a draft")
    record("detach", "1", "a \u4f8b.pdf", "--reason", "again", code=2)
    assert _attached(archive, "20200101T000000-p") == {}
    told = [json.loads(line) for line in record("log", "1", "--json").splitlines()]
    assert [each["what"] for each in told][:3] == ["detached", "replaced", "attached"]
    assert list(Catalogue(archive).ids()) == ["20200101T000000-p"] and list(verify(archive)) == []


def test_who_may_not_describe_may_not_attach(archive: Archive, tmp_path: Path) -> None:
    Catalogue(archive).save([_record(1)], "anna", "new")
    persons.save(archive, Person("adam", "Adam", (Role.ADMINISTRATOR,), unix="somebody-else"))
    persons.save(
        archive, Person("rita", "Rita", (Role.REVIEWER,), unix=getpass.getuser()), persons.Acting("adam", None)
    )
    (tmp_path / "x").write_bytes(b"x")
    for words in (("attach", "1", str(tmp_path / "x")), ("detach", "1", "x", "--reason", "y")):
        done = CliRunner().invoke(cli, ["record", *words, "--archive", str(archive.root)])
        assert isinstance(done.exception, Forbidden), words


def test_files_of_several_persons_are_all_kept_and_a_lost_one_is_found(archive: Archive) -> None:
    catalogue = Catalogue(archive)
    (record,) = catalogue.save([_record(1)], "anna", "new")

    def attach(name: str) -> None:
        records.attach(archive, record.id, f"{name}.txt", BytesIO(name.encode()), persons.Acting(name, None))

    threads = [threading.Thread(target=attach, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert _attached(archive, record.id) == {f"{each}.txt": each.encode() for each in "abcd"}
    with opened(archive) as database:
        assert database.count_of(RecordSelection()) == 1
    catalogue.save([], "test", "lost", attached={(record.id, "a.txt"): None})
    _save_raw(archive, f"records/p/2020/{record.id}/b.txt", b"changed")
    _save_raw(archive, f"records/p/2020/{record.id}/z.xml", b"<record/>")  # no record, whatever it is called
    told = "\n".join(verify(archive))
    assert "'a.txt' is missing" in told and "'b.txt' has 7 bytes" in told and "'z.xml' lies beside it" in told
    assert [each.id for each in catalogue.records()] == [record.id]


def test_a_kill_or_a_full_disk_while_a_file_is_attached_loses_nothing(tmp_path: Path) -> None:
    acting = persons.Acting("anna", None)
    with small_disk(tmp_path / "disk", "24m") as disk:
        archive = directory.create(disk / "archive")
        (record,) = Catalogue(archive).save([_record(1)], "anna", "new")
        records.attach(archive, record.id, "first.pdf", BytesIO(b"first"), acting)
        large = os.urandom(4_000_000)
        for delay in (0, 0.03, 0.06, 0.09):
            begun = len(list(archive.catalogue.glob("objects/streamed_*")))
            pid = os.fork()
            if not pid:
                try:
                    records.attach(archive, record.id, "second.pdf", BytesIO(large), acting)
                finally:
                    os._exit(0)
            has_ended = False
            while not has_ended and len(list(archive.catalogue.glob("objects/streamed_*"))) == begun:
                has_ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            if not has_ended:
                time.sleep(delay)
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            found = _attached(archive, record.id)
            assert found.pop("first.pdf") == b"first" and found in ({}, {"second.pdf": large})
        with pytest.raises(OSError, match="space"):
            for number in range(10):
                records.attach(archive, record.id, f"{number}.pdf", BytesIO(os.urandom(4_000_000)), acting)
        assert list(archive.catalogue.glob("objects/streamed_*")), "no kill met it"
        kept = _attached(archive, record.id)
        assert kept["first.pdf"] == b"first" and list(verify(archive)) == []
        for each in archive.catalogue.glob("objects/streamed_*"):
            os.utime(each, (0, 0))
        maintain(archive)
        assert not list(archive.catalogue.glob("objects/streamed_*")) and _attached(archive, record.id) == kept


def test_an_automatic_archive_says_no_word_of_states(archive: Archive) -> None:
    """Without people and `[describe]` nobody notices the catalogue."""
    published(archive, History([Step("p", {"a": "1"})]))
    catch_up(archive)
    for words in (("record", "list"), ("record", "show", "1"), ("status",)):
        out = run_command(*words, "--archive", archive.root).out
        assert not any(
            str(state) in out for state in RecordState if state not in (RecordState.OPEN, RecordState.EMPTY)
        ), (words, out)


def test_a_thousand_records_are_valid_in_each_format(archive: Archive) -> None:
    schema = etree.XMLSchema(etree.parse(str(Path(__file__).parents[2] / "xsd" / "record.xsd")))
    Catalogue(archive).save([_record(number, f"p{number % 3}") for number in range(1000)], "test", "many")
    found = list(Catalogue(archive).records())
    assert len(found) == 1000
    fifteen = "title creator subject description publisher contributor date type format identifier source language"
    elements = {f"{{{DC}}}{name}" for name in f"{fifteen} relation coverage rights".split()}
    for each in found:
        assert schema.validate(etree.fromstring(write_record(each))), schema.error_log
        dc = etree.fromstring(write_dublin_core(each, "An archive"))
        assert dc.tag == f"{{{OAI_DC}}}dc"
        assert {element.tag for element in dc} <= elements and all(element.text for element in dc)


def test_a_list_of_thousands_of_records_reads_fifty(archive: Archive) -> None:
    """The cost of a list is that of its lines: what it reads is counted."""
    Catalogue(archive).save([_record(number, f"p{number % 7}") for number in range(examples(10_000))], "test", "many")
    catalogue, read = Catalogue(archive), 0
    records = catalogue.records()
    for _ in range(50):
        next(records)
        read += 1
    assert read == 50
    blobs = Repository(archive.catalogue)
    original, count = Repository.read, [0]

    def counted(store: Repository, blob: str) -> bytes:
        count[0] += 1
        return original(store, blob)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "read", counted)
        records = Catalogue(archive).records()
        assert len([next(records) for _ in range(50)]) == 50
    assert count[0] == 50 and blobs.path == archive.catalogue


def _stored(archive: Archive, *words: str) -> str:
    done = CliRunner().invoke(cli, ["report", "--storage", "--archive", str(archive.root), *words])
    assert done.exit_code == 0, done.exception
    return done.output


def test_storage_is_told_by_publication_and_year_measured_and_projected(archive: Archive) -> None:
    """BT-stat-13. 2020 has 8,784 hours; of q nothing is due, and one snapshot of p was never counted."""
    sizes = {1: ("p", "1000"), 2: ("q", "70"), 8784: ("p", "2000"), 8785: ("p", "")}
    sizes |= {8785 + number: ("p", "300") for number in range(1, 6)}
    records = [_record(hour, name).with_values({22: size}, "test", _FIRST) for hour, (name, size) in sizes.items()]
    Catalogue(archive).save(records, "test", "new")
    publications = (
        f'[[publication]]\nname = "{name}"\nurls = ["http://{DOMAIN}/"]\ninterval = "1 week"\n{more}'
        for name, more in (("p", ""), ("q", "retired = true\n"), ("r", ""))
    )
    archive.settings.write_text("".join(publications))
    told = json.loads(_stored(archive, "--json"))
    years = {(each["publication"], each["year"]): each for each in told["captured"]["years"]}
    assert {key: (each["snapshots"], each["uncounted"], each["bytes"]) for key, each in years.items()} == {
        ("p", 2020): (1, 0, 1000), ("p", 2021): (7, 1, 3500), ("q", 2020): (1, 0, 70),
    }  # fmt: skip
    assert told["captured"]["bytes"] == 4570 and told["a_year"]["on_disk"] == 0  # there are no repositories
    (coming,) = told["a_year"]["publications"]
    assert (coming["publication"], coming["mean"], coming["last"]) == ("p", 300, 5)  # neither q nor r
    assert coming["bytes"] == told["a_year"]["captured"] == round(300 * 365 / 7)
    shown = _stored(archive)
    assert "1 snapshots are not counted" in shown and "the mean of its last 5 captures" in shown
    bars = {line.split()[0]: line.count("#") for line in shown.splitlines() if "#" in line}
    assert (bars["2021"], bars["2020"]) == (28, 9)
    assert isinstance(CliRunner().invoke(cli, ["report", "--archive", str(archive.root)]).exception, NotFound)


def test_the_parts_of_an_archive_add_up_to_what_the_disk_has(archive: Archive) -> None:
    """BT-store-6."""
    published(archive, History([Step("p", {"a": "1" * 5000}), Step("q", {"b": "2"})]))
    catch_up(archive)
    (archive.jobs / "j").mkdir()
    (archive.jobs / "j" / "000001.warc").write_bytes(b"x" * 100_000)
    (archive.content / "other").symlink_to(archive.root)  # is not followed
    told = json.loads(_stored(archive, "--json"))["on_disk"]
    du = subprocess.run(["du", "-s", "--block-size=1", str(archive.root)], capture_output=True, check=True).stdout
    assert told["documents"] + told["metadata"] + told["search"] == int(du.split()[0])
    assert told["repositories"].keys() == {DOMAIN} and told["documents"] == told["repositories"][DOMAIN] > 5000
    assert told["parts"]["jobs"] > 100_000 and told["parts"]["database"] and told["parts"]["catalogue"]
    assert "documents, 1 repositories" in _stored(archive)


def test_a_clock_that_was_set_back(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = Catalogue(archive)
    (record,) = catalogue.save([_record(1)], "anna", "new")
    past = datetime(1999, 1, 1, tzinfo=CET)
    for module in ("webarcfs.archive.catalogue.catalogue", "webarcfs.archive.catalogue.record"):
        monkeypatch.setattr(f"{module}.now", lambda: past)
    changed = record.with_event("withdrawn", "anna", "x", RecordState.CHECKED)
    catalogue.save([changed], "anna", "withdrawn")
    assert catalogue.read(record.id)[0].state is RecordState.CHECKED
    assert [event.what for event in catalogue.history(record.id)] == ["withdrawn", "new"]


def test_a_process_that_may_not_write_the_tables_reads_only_what_changed(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with a copy of the file, and keeps its own tables from then on, for all its threads."""
    catalogue = Catalogue(archive)
    records = catalogue.save([_record(at) for at in range(1, 6)], "anna", "new")
    read: list[bytes] = []

    def reading(content: bytes) -> Record:
        read.append(content)
        return read_record(content)

    def change(at: int) -> None:
        catalogue.save([records[at].with_event("withdrawn", "anna", "x", RecordState.CHECKED)], "anna", "withdrawn")

    def count(chosen: RecordSelection) -> int:
        with opened(archive) as database:
            return database.count_of(chosen)

    checked = RecordSelection(state=RecordState.CHECKED)
    assert count(checked) == 0
    update = CatalogueDatabase.update

    def only_in_memory(self: CatalogueDatabase, of: Catalogue) -> bool:
        if str(self._path) != ":memory:":
            raise OSError(errno.EACCES, "read-only")
        return update(self, of)

    monkeypatch.setattr(CatalogueDatabase, "update", only_in_memory)
    monkeypatch.setattr("webarcfs.archive.catalogue.catalogue.read_record", reading)
    change(0)
    assert count(checked) == 1 and len(read) == 1
    change(1)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(count, [checked] * 6)) == [2] * 6
    assert count(RecordSelection()) == 5 and len(read) == 2
    archive.catalogue_database.unlink()
    assert count(checked) == 2 and len(read) == 2
    shutil.rmtree(archive.catalogue)
    assert count(RecordSelection()) == 0
    other = Catalogue(archive)
    other.save([_record(9)], "anna", "new")
    assert count(RecordSelection()) == 1
