"""What is not released is in no answer of any command with --as-reader, nor of a reader's client (R5 to R9)."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.histories import DOMAIN, History, Step
from tests.support.readercommand import webarc, webarc_bytes
from tests.support.recorded import published
from webarcfs.access import reader_stores
from webarcfs.access.gate import Gate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.workflow import Decision, apply_decision
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.index import query
from webarcfs.archive.model.errors import BadCondition, NotFound, NotPermitted, SettingsError, UsageError
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, CommitTag, compact_time, format_time
from webarcfs.client import WebarchiveClient
from webarcfs.commands.arguments import ArchiveArgument, for_reader
from webarcfs.commands.cli import COMMANDS, cli

pytestmark = pytest.mark.store

_SECRET = "zebra"
_A = '<a href="/b.html">first</a>'
_LATER = f'<a href="/{_SECRET}.html">{_SECRET}</a>'
_URL = f"http://{DOMAIN}/"


def _archive(folder: Path, *steps: Step) -> tuple[Archive, list[CommitTag]]:
    archive = directory.create(folder / "archive")
    archive.settings.write_text("[index]\nlinks = true\n")
    tags = published(archive, History(steps))
    recover(archive)
    bring_in_step(archive)
    return archive, tags


def _three(folder: Path) -> tuple[Archive, list[CommitTag]]:
    """A released snapshot; the newest one waits: it changed a page, and has one more, with a word of its own."""
    return _archive(
        folder,
        Step("p", {"a.html": _A, "b.html": "b", "c.html": "c"}),
        Step("p", {"a.html": _LATER, "b.html": "b", f"{_SECRET}.html": _SECRET}, RecordState.COUNTED, held=True),
    )


def _decide(archive: Archive, number: int, decision: Decision, publication: str = "p") -> None:
    catalogue = Catalogue(archive)
    record, blob = catalogue.read(f"{compact_time(History([Step('p', {})] * 9).time(number))}-{publication}")
    catalogue.save([apply_decision(record, decision, "anna", "why")], "anna", str(decision), expected={record.id: blob})


def _cat(archive: Archive, *words: str) -> subprocess.CompletedProcess[bytes]:
    return webarc_bytes("cat", *words, "--archive", archive.root)


def _questions(tags: Sequence[CommitTag]) -> dict[str, list[list[str]]]:
    """Each command that shows an archive, in each form."""
    old, new = map(str, tags[:2])
    return {
        "search": [
            [_SECRET], [_SECRET, "--present"],
            ["first OR b", "--facets"], [_SECRET, "during:1990..2100"], [_SECRET[:3] + "*"],
            [_SECRET, "--format", "json"], [f"url:{_SECRET}"], [_SECRET, "--format", "csv", "--present"],
            [_SECRET, "--group", "snapshot"], ["site:example.org", "--group", "snapshot", "--format", "json"],
            ["site:example.org", "--format", "paths"], [_SECRET[:-1] + "o"], ["site:example.org", "--at", new],
        ],
        "snapshots": [[], ["--json"], ["--format", "csv"], [DOMAIN, "--sort", "oldest"], ["--publication", "p"]],
        "query": [[], ["--format", "json"], ["--format", "csv"], ["--format", "paths"], ["status >= 0"]],
        "log": [[f"{_URL}a.html"], [f"{_URL}{_SECRET}.html"], [f"{_URL}a.html", "--json"], [f"/{DOMAIN}/c.html"]],
        "diff": [[old, new], [old, new, f"{_URL}a.html"], [old, old, "--json"]],
        "stat": [[new], [old, new], [old, "--json"]],
        "links": [
            ["--from", f"{_URL}a.html"], ["--to", f"{_URL}{_SECRET}.html"], ["--word", _SECRET], ["--broken", "--ever"],
            ["--external", "--ever"], ["--from", f"{_URL}a.html", "--ever", "--format", "csv"], ["--count", new],
            ["--broken", "--at", new], ["--kind", "http", "--broken", "--format", "json"],
        ],
        "cat": [[new, f"{_URL}a.html"], [old, f"{_URL}{_SECRET}.html"], [new, f"{_URL}{_SECRET}.html"]],
    }  # fmt: skip


@pytest.mark.parametrize("term", ["1", "status > 0", "status > 0 OR likely(0)"])
@pytest.mark.parametrize("place", ["where", "order_by"])
def test_no_term_of_a_readers_condition_meets_a_hidden_row(tmp_path: Path, place: str, term: str) -> None:
    """A term that fails for one URL alone would tell by its failure that a hidden row has it."""
    archive, _ = _three(tmp_path)
    narrowed = reader_stores.narrowed(Gate(archive, Reader()))
    assert narrowed is not None

    def probe(name: str) -> list[str]:
        attack = f"CASE WHEN url='{_URL}{name}' THEN abs(-9223372036854775807-1) ELSE 0 END"
        terms = {"where": f"({term}) AND {attack} = 0"} if place == "where" else {"where": term, "order_by": attack}
        return [each.url for each in query.ask(archive.database, **terms, narrowed=narrowed)]

    with pytest.raises(BadCondition):  # the reader sees this row, so the attack works on it
        probe("b.html")
    assert probe(f"{_SECRET}.html") == probe("absent.html") != []


def test_a_readers_view_is_made_before_the_condition_is_asked(tmp_path: Path) -> None:
    """EXPLAIN: the gate's rows come from a subquery of their own, and nothing of the condition is inside it."""
    archive, _ = _three(tmp_path)
    narrowed = reader_stores.narrowed(Gate(archive, Reader()))
    assert narrowed is not None
    with closing(sqlite3.connect(archive.database)) as connection:
        narrowed(connection, {}, query.ANY_ORIGIN)
        for condition in ("url = 'x'", "title LIKE 'x%'", "crawlTime > '2020' AND status < 400", "1 ORDER BY title"):
            said = connection.execute(f"EXPLAIN QUERY PLAN SELECT url FROM metadata WHERE {condition}").fetchall()
            plan = [text for _, parent, _, text in said if parent == 0]
            assert plan[0] in ("CO-ROUTINE metadata", "MATERIALIZE metadata"), (condition, plan)
            assert plan[1].startswith("SCAN metadata"), (condition, plan)


def test_what_is_not_released_is_in_no_answer(tmp_path: Path) -> None:
    archive, tags = _three(tmp_path)
    questions = _questions(tags)
    elsewhere = ("serve", "export", "curve", "dataset")  # their own tests ask them
    assert {*questions, "completion", *elsewhere} == set(
        COMMANDS.list_commands(None) if hasattr(COMMANDS, "list_commands") else COMMANDS
    )
    hidden = (_SECRET, str(tags[1]), str(tags[1].crawl_time.year + 0) + "-01-02")
    for name, forms in questions.items():
        told = False
        for words in forms:
            if name == "cat":
                whole, shown = _cat(archive, *words), _cat(archive, *words, "--as-reader")
                text = shown.stdout.decode()
                told |= _SECRET in whole.stdout.decode()
            else:
                whole = webarc(name, *words, "--archive", str(archive.root))  # type: ignore[assignment]
                answer = webarc(name, *words, "--archive", str(archive.root), "--as-reader")
                text = answer.stdout
                told |= any(each in str(whole.stdout) for each in hidden)
            assert not any(each in text for each in hidden), (name, words, text)  # errors repeat what was asked
        assert told, f"{name} tells nothing that could be hidden"


def test_each_command_that_shows_an_archive_has_the_option() -> None:
    context = cli.make_context("webarc", ["query"], resilient_parsing=True)
    for name in set(cli.list_commands(context)) - {"serve"}:  # which answers as readers see it, always
        command = cli.get_command(context, name)
        assert command is not None
        options = {option for each in command.params for option in each.opts}
        assert ("--archive" in options) == ({"--as-reader", "--reader"} <= options), name


def test_readers_see_the_released_state(tmp_path: Path) -> None:
    """R6: where the newest snapshot waits, the present is the one before it, with what only the newest removed."""
    archive, tags = _three(tmp_path)
    root = str(archive.root)
    found = webarc("query", "--archive", root, "--as-reader", "--format", "paths").stdout.splitlines()
    assert sorted(found) == [f"/.snapshots/{tags[0]}/{name}.html" for name in "abc"]
    log = webarc("log", f"{_URL}c.html", "--archive", root, "--as-reader").stdout.splitlines()
    assert len(log) == 1 and "added" in log[0]
    assert _cat(archive, str(tags[0]), f"{_URL}a.html", "--as-reader").stdout.decode() == _A
    broken = webarc("links", "--broken", "--archive", root, "--as-reader")
    assert (broken.returncode, _SECRET in broken.stdout) == (0, False)
    unknown = _cat(archive, str(tags[1]), f"{_URL}b.html", "--as-reader")
    never = _cat(archive, f"2030-01-01T00:00:00@{DOMAIN}", f"{_URL}b.html", "--as-reader")
    assert unknown.returncode == never.returncode == 2  # unreleased and absent are the same answer
    assert unknown.stderr.replace(str(tags[1]).encode(), b"") == never.stderr.replace(
        f"2030-01-01T00:00:00@{DOMAIN}".encode(), b""
    )


def test_decisions_take_effect_in_a_running_client(tmp_path: Path) -> None:
    """R7: withdraw, reject, reopen, release; and withhold, within a second."""
    archive, tags = _three(tmp_path)

    def shown(client: WebarchiveClient) -> tuple[int, list[CommitTag]]:
        time.sleep(0.6)
        try:
            return len(client.select()), client.snapshots(DOMAIN)
        except NotFound:
            return len(client.select()), []

    with WebarchiveClient(archive.root, reader="") as client:
        assert shown(client) == (3, tags[:1])
        _decide(archive, 1, Decision.RELEASE)
        assert shown(client) == (6, tags)
        _decide(archive, 0, Decision.WITHDRAW)
        assert shown(client) == (3, tags[1:])
        _decide(archive, 1, Decision.WITHDRAW)
        assert shown(client) == (0, []) and client.domains() == []
        _decide(archive, 1, Decision.RELEASE)
        assert [meta.path for meta in client.at(tags[1])] == [f"/{DOMAIN}/{name}.html" for name in ("a", "b", _SECRET)]
        done = run_command("withhold", f"{_URL}a.html", "--reason", "court", "--archive", archive.root)
        assert done.code == 0
        assert shown(client) == (2, tags[1:])
        assert [meta.path for meta in client.at(tags[1])] == [f"/{DOMAIN}/{name}.html" for name in ("b", _SECRET)]
        assert run_command("withhold", "--lift", done.out.split()[0], "--archive", archive.root).code == 0
        assert shown(client) == (3, tags[1:])


def test_withdraw_the_first_of_three_that_share_a_page(tmp_path: Path) -> None:
    """R5, R7: a page that another released snapshot has stays, at the time of that one."""
    same = {"a.html": "same"}
    archive, tags = _archive(tmp_path, Step("p", same | {"b.html": "1"}), Step("p", same), Step("p", same))
    _decide(archive, 0, Decision.WITHDRAW)
    with WebarchiveClient(archive.root, reader="") as client:
        assert {(meta.path, str(meta.commit_tag)) for meta in client.select()} == {
            (f"/{DOMAIN}/a.html", str(tag)) for tag in tags[1:]
        }
    log = webarc("log", f"{_URL}a.html", "--archive", str(archive.root), "--as-reader").stdout
    assert log.startswith(f"{tags[1]}  added")


def test_a_version_that_a_hidden_snapshot_stored_has_the_time_of_the_first_that_is_visible(tmp_path: Path) -> None:
    """R5: its time is that of the first visible record that contains it; a release of an earlier one moves it back."""
    same = {"a.html": "same"}
    archive, tags = _archive(
        tmp_path, Step("p", same, RecordState.COUNTED, held=True), Step("p", same), Step("p", same)
    )

    def times() -> set[tuple[str, str]]:
        with WebarchiveClient(archive.root, reader="") as client:
            told = {(str(meta.commit_tag), format_time(meta.capture_time)) for meta in client.select()}
            for tag in client.snapshots(DOMAIN):
                for meta in (*client.at(tag), *client.changed(tag)):
                    assert meta.capture_time >= client.snapshots(DOMAIN)[0].crawl_time
            assert [meta.path for meta in client.changed(client.snapshots(DOMAIN)[0])] == [f"/{DOMAIN}/a.html"]
            return told

    assert times() == {(str(tag), "2020-01-02T00:00:00") for tag in tags[1:]}
    found = webarc("query", "captureTime < '2020-01-02'", "--archive", str(archive.root), "--as-reader").stdout
    assert DOMAIN not in found
    _decide(archive, 0, Decision.RELEASE)
    assert times() == {(str(tag), "2020-01-01T00:00:00") for tag in tags}


def test_two_publications_on_one_host_one_held(tmp_path: Path) -> None:
    """R4, R5: of a snapshot of one publication, readers see what it saw, not what the other, held one did."""
    archive, tags = _archive(
        tmp_path,
        Step("p", {"a.html": "p"}),
        Step("q", {"q.html": _SECRET}, RecordState.COUNTED, held=True),
        Step("p", {"a.html": "p2"}),
    )
    found = webarc("query", "--archive", str(archive.root), "--as-reader", "--format", "paths").stdout.splitlines()
    assert found == [f"/.snapshots/{tags[0]}/a.html", f"/.snapshots/{tags[2]}/a.html"]
    assert _cat(archive, str(tags[2]), f"{_URL}q.html", "--as-reader").returncode == 2
    counted = webarc("stat", str(tags[2]), "--json", "--archive", str(archive.root), "--as-reader").stdout
    assert json.loads(counted)[str(tags[2])]["documents"] == 1
    _decide(archive, 1, Decision.RELEASE, "q")
    found = webarc("query", "--archive", str(archive.root), "--as-reader", "--format", "paths").stdout.splitlines()
    assert len(found) == 5


def test_additions_stay_in_the_house_if_the_publication_says_so(tmp_path: Path) -> None:
    """R11: files and data nodes of users are shown as the page that they belong to, unless `additions` says no."""
    archive, tags = _archive(tmp_path, Step("p", {"a.html": "a", "a.html/b.html": "b"}))
    before = _tree(archive, tags[0])
    addition = data_xml.describe(archives.metadata(DOMAIN, "a.html", tags[0])).replace(
        b"<arc:data/>", b"<arc:data><words>7</words></arc:data>"
    )
    assert b"<words>" in addition
    for name, body in (("note", b"n"), ("deep/er", b"d"), ("data.xml", addition)):
        archives.add(archive, f"a.html/{name}", body)
    with WebarchiveClient(archive.root, reader="") as client:
        (meta,) = client.select("path LIKE '%/a.html'")
        assert {"note", "deep"} <= set(client.list(meta)) and client.get_data(meta, "words") is not None
        archive.settings.write_text('[[publication]]\nname = "p"\nurls = ["http://x/"]\nadditions = "staff"\n')
        time.sleep(0.6)
        assert client.list(meta) == ["b.html", "data.html", "data.xml", "headers.http"]
        assert client.get_data(meta, "words") is None
        with pytest.raises(NotFound):
            client.open_read(meta, "deep/er")
        with ReaderRepositories(Gate(archive, Reader())) as repositories:
            assert repositories.open(DOMAIN).snapshot_tree(tags[0]) == before


def _tree(archive: Archive, tag: CommitTag) -> str:
    return archives.store_of(archive, DOMAIN).snapshot_tree(tag)


def test_closed_until_a_date(tmp_path: Path) -> None:
    """R5: released and closed is told with its date; a rule for a reader's name opens it to that reader."""
    archive, tags = _archive(
        tmp_path, Step("p", {"a.html": "1"}), Step("p", {"a.html": "2", "b.html": "2"}, closed_for="100 years")
    )
    done = _cat(archive, str(tags[1]), f"{_URL}a.html", "--as-reader")
    assert done.returncode == 2 and b"is under embargo until 2120-01-02T00:00:00" in done.stderr
    archive.access_rules.write_text('org,example)/a.html - {"access": "allow", "user": "anna"}\n')
    assert _cat(archive, str(tags[1]), f"{_URL}a.html", "--as-reader").returncode == 2
    assert _cat(archive, str(tags[1]), f"{_URL}a.html", "--reader", "anna").stdout == b"2"
    assert _cat(archive, str(tags[1]), f"{_URL}b.html", "--reader", "anna").returncode == 2
    with WebarchiveClient(archive.root, reader="anna") as client:
        assert {(str(meta.commit_tag), meta.path[-6:]) for meta in client.select()} == {
            (str(tags[0]), "a.html"), (str(tags[1]), "a.html"),
        }  # fmt: skip


def test_access_rules_with_faults_close_all(tmp_path: Path) -> None:
    archive, tags = _three(tmp_path)
    archive.access_rules.write_text('org,example)/ - {"access": "blok"}\nnonsense\n')
    for words in (["query"], ["log", f"{_URL}a.html"], ["stat", str(tags[0])], ["links", "--broken"]):
        done = webarc(*words, "--archive", str(archive.root), "--as-reader")
        assert done.returncode == 1 and "line 2" in done.stderr and done.stdout.strip() in ("", "["), words
    with WebarchiveClient(archive.root, reader="") as client, pytest.raises(SettingsError):
        client.select()


def test_a_damaged_catalogue_closes_what_it_decides(tmp_path: Path) -> None:
    archive, _ = _three(tmp_path)
    (archive.catalogue / "HEAD").write_text("nonsense")
    (archive.catalogue / "refs" / "heads" / "main").write_text("nonsense\n")
    archive.catalogue_database.unlink(missing_ok=True)
    done = webarc("query", "--archive", str(archive.root), "--as-reader")
    assert done.returncode == 2 and "catalogue.git" in done.stderr and DOMAIN not in done.stdout


def test_without_a_catalogue_held_snapshots_stay_hidden(tmp_path: Path) -> None:
    """R2: a lost catalogue shows nothing that was held."""
    archive, tags = _three(tmp_path)
    shutil.rmtree(archive.catalogue)
    archive.catalogue_database.unlink(missing_ok=True)
    found = webarc("query", "--archive", str(archive.root), "--as-reader", "--format", "paths").stdout
    assert str(tags[0]) in found and str(tags[1]) not in found


def test_a_reader_neither_counts_nor_writes(tmp_path: Path) -> None:
    """R8, R9: the filter is inside the query, so that no count and no figure tells of hidden rows."""
    archive, tags = _three(tmp_path)
    with WebarchiveClient(archive.root, reader="") as client:
        hidden = WebarchiveClient(archive.root).select(f"path LIKE '%{_SECRET}%'")[0].as_fields()
        row = ", ".join(f"'{hidden[name]}'" for name in (*FIELDS, *CAPTURE_FIELDS))
        for refused in (
            "1 = 1 OR (SELECT count(*) FROM version) > 3",
            "saw(1, 2, 3, 4, 5, 6, 7)",
            "permitted(url, captureTime)",
            f"({row}) IN main.metadata",
            "(1, 'x') IN main.domain",
            "url IN temp.reader_snapshot",
            "snapshot.seq > 0",
            "count(*) OVER () > 3",
            "1 = 1 UNION VALUES (1)",
        ):
            with pytest.raises(BadCondition):
                client.select(refused)
        assert client.select(f"({row}) IN metadata") == []
        meta = client.select("path LIKE '%a.html'")[0]
        with pytest.raises(NotPermitted), client.open_write(meta, "note"):
            pass
        assert [record.number for record in client.records()] == [1]
        assert not any(record.text(8) for record in client.records())
        with pytest.raises(NotFound):
            client.at(tags[1])
    with WebarchiveClient(archive.root) as client:
        assert [record.number for record in client.records()] == [2, 1]


def test_a_mount_is_not_for_readers(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        for_reader(ArchiveArgument(Archive(tmp_path), tmp_path), Reader())
