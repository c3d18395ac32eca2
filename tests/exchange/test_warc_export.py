"""WARC files of an export: independent programs read them, trees come out of them again, same input is same bytes."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import archives, warcreading
from tests.support.disks import small_disk
from tests.support.histories import DOMAIN, FIRST, History, Step
from tests.support.properties import examples
from tests.support.readercommand import webarc, webarc_bytes
from tests.support.recorded import published
from tests.support.warcreading import Rebuilt, rebuilt
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import data_name
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import CET, COMMITTER, CommitTag, CrawlMessage, MetaData, parse_moment
from webarcfs.archive.model.url_lists import REDIRECTS, Redirect, place_of, write_list
from webarcfs.export import export_result, warc
from webarcfs.export.export_result import Summary
from webarcfs.export.selection import Asked, SelectedSnapshot, Selection, select

pytestmark = pytest.mark.store

_PATHS = ("a", "b", "b/c", "d ", "b/%/e\u2028")
_ADDED = ("n.txt", "deep/\u00fc \udcff", "deep/x y/%41")


@dataclass(frozen=True)
class Page:
    """A document of a made-up snapshot. `seen`: no, whole, or as it was before users added to it."""

    body: str
    capture: int
    nodes: bool
    added: Mapping[str, str]
    has_head: bool
    seen: str
    broken: bool


@dataclass(frozen=True)
class Snapshot:
    pages: Mapping[str, Page]
    redirects: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    stray: bool = False


_pages = st.builds(
    Page,
    body=st.sampled_from(("1", "2")),
    capture=st.integers(0, 1),
    nodes=st.booleans(),
    added=st.dictionaries(st.sampled_from(_ADDED), st.sampled_from("xy"), max_size=2),
    has_head=st.integers(0, 5).map(bool),
    seen=st.sampled_from(("whole", "whole", "older", "no")),
    broken=st.integers(0, 9).map(lambda each: not each),
)
_states = st.builds(
    Snapshot,
    st.dictionaries(st.sampled_from(_PATHS), _pages, max_size=4),
    st.dictionaries(st.sampled_from("123"), st.tuples(st.sampled_from("xy"), st.booleans()), max_size=3),
    st.integers(0, 5).map(lambda each: not each),
)


def _committed(store: Repository, state: Snapshot, number: int) -> SelectedSnapshot:
    """Commit a state, with the tree that its publication saw; no ref moves, since nothing looks for one."""
    tag = CommitTag(FIRST + timedelta(days=number), DOMAIN)
    whole: dict[str, str | None] = {}
    seen: dict[str, str | None] = {}
    for path, page in state.pages.items():
        captured = FIRST - timedelta(seconds=page.capture + 1)
        url = f"http://{DOMAIN}/x"
        meta = MetaData(
            url, "text/html", "", f"/{DOMAIN}/{path}", DOMAIN, FIRST, FIRST, CommitTag(FIRST, DOMAIN), captured
        )
        plain = data_xml.describe(meta)
        nodes = plain.replace(b"<arc:data/>", b"<arc:data><w xmlns=''/></arc:data>")
        own = {data_name(url): page.body.encode(), "data.xml": nodes if page.nodes else plain}
        own |= {"headers.http": archives.HEAD} if page.has_head else {}
        own |= {"data.xml": b"no XML"} if page.broken else {}
        files = own | {name: body.encode() for name, body in page.added.items()}
        whole |= {f"{path}/{name}": store.write_blob(body) for name, body in files.items()}
        if page.seen == "whole":
            seen |= {f"{path}/{name}": store.write_blob(body) for name, body in files.items()}
        elif page.seen == "older":
            older = own if page.broken else own | {"data.xml": plain}
            seen |= {f"{path}/{name}": store.write_blob(body) for name, body in older.items()}
    if state.stray:
        whole["s/t/x.txt"] = store.write_blob(b"stray")
    time = datetime(2019, 1, 1, tzinfo=UTC)
    for name, (target, is_seen) in state.redirects.items():
        line = Redirect(f"http://{DOMAIN}/{name}", 301, f"http://{DOMAIN}/{target}", time)
        whole[place_of(line.url)] = store.write_blob(write_list([line]))
        if is_seen:
            seen[place_of(line.url)] = whole[place_of(line.url)]
    tree, saw = (store.edit(store.write_tree([]), files) for files in (whole, seen))
    message = CrawlMessage(tag, "p", True, number + 1, job=f"j{number}", seen=saw if saw != tree else "")
    commit = store.write_commit(tree, [], str(message), COMMITTER, int(tag.crawl_time.timestamp()))
    return SelectedSnapshot(tag, commit, tree, saw if saw != tree else "")


def _export(selection: Selection, out: Path) -> Summary:
    return warc.export(selection, out, lambda *_: None, lambda: False)


def _documents(store: Repository, tree: str) -> dict[str, bytes]:
    files = ((path.removeprefix("/"), store.read(blob)) for path, blob in store.files(tree, ""))
    return {path: body for path, body in files if not path.startswith(REDIRECTS)}


def _redirects(store: Repository, tree: str) -> list[str]:
    lists = (store.read(blob) for path, blob in store.files(tree, "") if path.startswith(f"/{REDIRECTS}"))
    return sorted(line for each in lists for line in each.decode().splitlines())


def _must_be(found: Rebuilt, store: Repository, tree: str, seen: str) -> None:
    assert (found.named["tree"], found.named.get("seen", "")) == (tree, seen)
    assert found.files == _documents(store, tree)
    assert sorted(found.redirects) == _redirects(store, tree)
    assert found.seen == _documents(store, seen or tree)
    assert sorted(found.seen_redirects) == _redirects(store, seen or tree)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("store") / "x.git")


@settings(max_examples=examples(50), deadline=None)
@given(states=st.lists(_states, min_size=1, max_size=3))
def test_each_tree_comes_out_again(store: Repository, states: list[Snapshot]) -> None:
    chosen = tuple(_committed(store, state, number) for number, state in enumerate(states))
    selection = Selection(lambda _: store, {DOMAIN: chosen})
    with TemporaryDirectory() as folder:
        done = _export(selection, Path(folder) / "out.warc")
        records = warcreading.read(Path(folder) / "out.warc")
    found = rebuilt(records)
    assert [each.named["commitTag"] for each in found] == [str(each.tag) for each in selection]
    for each, exported in zip(found, selection, strict=True):
        assert each.named.get("before") == exported.before
        _must_be(each, exported.store, exported.tree, exported.seen)
    whole = [page for state in states for page in state.pages.values() if not page.broken]
    assert (done.snapshots, done.documents, done.records) == (len(states), len(whole), len(records))
    assert sum(done.left_out.values()) == sum(len(state.pages) for state in states) - len(whole)
    ids = [each.fields["WARC-Record-ID"] for each in records]
    assert len(set(ids)) == len(ids)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """A domain of several snapshots, and another one."""
    made = directory.create(tmp_path_factory.mktemp("export") / "archive")
    steps = (Step("p", {f"{number}": str(number) for number in range(40)}), Step("q", {"b": "<p>x</p>", "7": "new"}))
    published(made, History((*steps, Step("p", {f"{number}": str(number) for number in range(30)}))))
    archives.add(made, "7/notes.txt", b"hello")
    archives.publish(made, "e.org", {"x.html": b"x", "big": os.urandom(5 << 20)})
    archives.publish(made, "e.org", {"y.html": b"y" * 10_000})
    return made


@pytest.fixture(scope="module")
def exported(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an export of it."""
    out = tmp_path_factory.mktemp("exported") / "out"
    _export(select(archive, Asked()), out)
    return out


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_input_gives_the_same_bytes(archive: Archive, exported: Path, tmp_path: Path) -> None:
    selection = select(archive, Asked())
    _export(selection, tmp_path / "again")
    assert _files(tmp_path / "again") == _files(exported)
    one, plain = tmp_path / "x.warc.gz", tmp_path / "x.warc"
    _export(selection, one)
    _export(selection, plain)
    assert gzip.decompress(one.read_bytes()) == plain.read_bytes()
    stream = webarc_bytes("export", "--archive", archive.root, "-")
    assert stream.stdout == one.read_bytes()
    assert b"5 snapshots" in stream.stderr


def test_warcio_and_fastwarc_have_no_complaint(exported: Path) -> None:
    (path,) = exported.iterdir()
    check = subprocess.run(
        [Path(sys.executable).with_name("warcio"), "check", "-v", path], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout
    assert "digest pass" in check.stdout and "fail" not in check.stdout
    read = warcreading.read(path)
    with path.open("rb") as file:
        found = [
            (each.headers["WARC-Type"], each.headers["WARC-Record-ID"], each.verify_block_digest(), each.reader.read())
            for each in FastIterator(file, parse_http=False, record_types=WarcRecordType.any_type)
        ]
    assert [row[1] for row in found] == [each.fields["WARC-Record-ID"] for each in read]
    assert all(row[2] for row in found if row[0] != "warcinfo")
    assert {row[0] for row in found} == {each.kind for each in read}
    big = [each.body for each in read if each.path == "big" and each.kind == "response"]
    assert [len(each) for each in big] == [5 << 20]


def test_a_full_file_is_followed_by_another_one(
    archive: Archive, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc, "FILE_SIZE", 20_000)
    selection = select(archive, Asked())
    done = _export(selection, tmp_path / "out")
    files = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in files] == [f"webarc-{number:05}.warc.gz" for number in range(done.files)]
    assert done.files > 2 and done.bytes == sum(path.stat().st_size for path in files)
    read = [warcreading.read(path) for path in files]
    assert {each[0].kind for each in read} == {"warcinfo"} and all(len(each) > 1 for each in read)
    assert [each[0].fields["WARC-Filename"] for each in read] == [path.name for path in files]
    for one, other in itertools.pairwise(read):  # no document is in two files
        assert (one[-1].tag, one[-1].path) != (other[1].tag, other[1].path)
    alike = [[(each.uri, each.body) for each in some if each.kind != "warcinfo"] for some in read]
    whole = [(each.uri, each.body) for path in exported.iterdir() for each in warcreading.read(path)[1:]]
    assert list(itertools.chain(*alike)) == whole


@pytest.mark.parametrize("stops", [(0,), (1, 30), (7, 7, 7), (100, 20)])
def test_it_goes_on_where_it_was_stopped(
    archive: Archive, exported: Path, tmp_path: Path, stops: tuple[int, ...]
) -> None:
    selection, out = select(archive, Asked()), tmp_path / "out"
    for number in stops:
        asked = itertools.count()
        with pytest.raises(Interrupted):
            warc.export(selection, out, lambda *_: None, lambda asked=asked, number=number: next(asked) >= number)  # type: ignore[misc] # of a default
        with (tmp_path / "out.notes").open("ab") as notes:
            notes.write(b'{"snapshot": -1}\n{"unit": "x"}\n[]\n{"snapshot": 9')  # whatever a broken disk leaves there
        for path in out.iterdir():
            with path.open("ab") as file:
                file.write(b"never a record")
    done = _export(selection, out)
    assert _files(out) == _files(exported)
    again = _export(selection, tmp_path / "at once")
    assert done == again
    assert _export(selection, out) == done  # all is there: nothing is done


def test_what_was_written_is_what_a_checkpoint_says(archive: Archive, tmp_path: Path) -> None:
    """Behind each checkpoint the files can be cut off anywhere, or have more: the bytes are the same in the end."""
    selection, out = select(archive, Asked()), tmp_path / "out.warc.gz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_result, "_SECONDS", -1.0)
        _export(selection, out)
    whole, notes = out.read_bytes(), tmp_path / "out.warc.gz.notes"
    lines = notes.read_bytes().splitlines(keepends=True)
    assert len(lines) > 100
    for line in (lines[0], lines[50], lines[-2]):
        notes.write_bytes(line)
        out.write_bytes(whole[: json.loads(line)["size"] + 1])
        _export(selection, out)
        assert out.read_bytes() == whole


# -- the command -------------------------------------------------------------------------------------------------------


def _webarc(archive: Archive, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return webarc("export", "--archive", str(archive.root), *map(str, words))


def test_the_command_replaces_nothing(archive: Archive, exported: Path, tmp_path: Path) -> None:
    done = _webarc(archive, "--json", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (
        told["snapshots"] == 5 and told["left_out"] == {} and told["bytes"] == sum(map(len, _files(exported).values()))
    )
    assert _files(tmp_path / "out") == _files(exported)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    again = _webarc(archive, tmp_path / "out")
    assert again.returncode == 2 and "is there already" in again.stderr
    assert _files(tmp_path / "out") == _files(exported)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--at", "yesterday"], 1, "no commitTag and no time"),
        (["--at", "1999-01-01"], 2, "nothing to export"),
        (["--since", "x"], 1, "no commitTag"),
        (["--record", "r", "--publication", "p"], 1, "--record"),
        (["--record", "20200101T000000-no"], 2, "no record"),
        (["--format", "static", "-"], 1, "standard output"),
    ],
)
def test_what_makes_no_sense_is_told(archive: Archive, tmp_path: Path, words: list[str], code: int, said: str) -> None:
    done = _webarc(archive, *words, *([] if "-" in words else [tmp_path / "out"]))
    assert done.returncode == code and said in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_export_of_something_else_is_kept(archive: Archive, exported: Path, tmp_path: Path) -> None:
    out, part = tmp_path / "out", tmp_path / "out.part"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warc, "fill", _dying)
        assert _webarc(archive, out).returncode == 2
    assert part.is_dir() and not out.exists()
    other = _webarc(archive, "--at", "2030-01-01", out)
    assert other.returncode == 2 and "unfinished export of something else" in other.stderr
    assert _webarc(archive, out).returncode == 0
    assert _files(out) == _files(exported) and not part.exists()
    part.mkdir()
    (part / "mine").write_text("x")
    (tmp_path / "free").mkdir()
    strange = _webarc(archive, tmp_path / "x" / "y")
    assert strange.returncode == 1 and "is no folder" in strange.stderr
    out.rename(tmp_path / "kept")
    assert "no unfinished export" in _webarc(archive, out).stderr
    assert (part / "mine").exists()


def _dying(*_: object) -> Summary:
    raise OSError("broken")


def test_a_kill_between_the_name_and_the_end_leaves_nothing_to_do(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.rmtree", _dying)
        assert _webarc(archive, out).returncode == 2
    assert out.exists() and (tmp_path / "out.part").exists()
    files = _files(out)
    done = _webarc(archive, "--json", out)
    assert done.returncode == 0 and json.loads(done.stdout)["snapshots"] == 5
    assert _files(out) == files and not (tmp_path / "out.part").exists()
    part = tmp_path / "out.part"
    part.mkdir()
    (part / "export.json").write_text("{}")
    assert "is there already" in _webarc(archive, out).stderr  # a kill amid the removal of the folder
    assert not part.exists()


def test_a_full_disk_is_told_and_the_same_command_goes_on(archive: Archive, exported: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        (disk / "ballast").write_bytes(bytes(6 << 20))
        done = _webarc(archive, disk / "out")
        assert done.returncode == 2, done
        assert "No space left" in done.stderr and "the same command resumes it" in done.stderr
        assert not (disk / "out").exists()
        (disk / "ballast").unlink()
        again = _webarc(archive, disk / "out")
        assert again.returncode == 0, again.stderr
        assert _files(disk / "out") == _files(exported)


def test_a_reader_gets_nothing_that_it_may_not_see(tmp_path: Path) -> None:
    """Held, closed, blocked, excluded, and additions for staff: no byte of theirs is in any file."""
    archive = directory.create(tmp_path / "archive")
    archive.settings.write_text(
        '[[publication]]\nname = "p"\nurls = ["http://www.example.org/"]\nadditions = "staff"\n'
    )
    rows = (
        'org,example,www)/blocked - {"access": "block"}',
        'org,example,www)/excluded - {"access": "exclude"}',
    )
    archive.access_rules.write_text("".join(f"{row}\n" for row in sorted(rows, reverse=True)))
    steps = (
        Step("p", {"a": "open", "blocked": "zebra1", "excluded": "zebra2"}),
        Step("p", {"a": "zebra3"}, RecordState.COUNTED, held=True),
        Step("q", {"c": "zebra4"}, closed_for="30 years"),
        Step("q", {"c": "shown"}),
    )
    published(archive, History(steps))
    archives.add(archive, "a/notes.txt", b"zebra5")
    from agent.indexing.recovery import recover

    recover(archive)
    whole = _webarc(archive, tmp_path / "whole.warc")
    shown = _webarc(archive, "--as-reader", tmp_path / "shown.warc")
    assert (whole.returncode, shown.returncode) == (0, 0), shown.stderr
    assert all(f"zebra{number}".encode() in (tmp_path / "whole.warc").read_bytes() for number in range(1, 6))
    raw = (tmp_path / "shown.warc").read_bytes()
    assert b"open" in raw and b"shown" in raw
    for secret in (b"zebra", b"blocked", b"excluded", b"notes", b"2020-01-02T00:00:00", b"2020-01-03T00:00:00"):
        assert secret not in raw, secret
    for each in warcreading.rebuilt(warcreading.read(tmp_path / "shown.warc")):
        assert set(each.files) <= {f"{name}/{file}" for name in "ac" for file in ("data", "data.xml", "headers.http")}
    record = _webarc(archive, "--as-reader", "--record", "20200102T000000-p", tmp_path / "record.warc")
    assert record.returncode == 2 and not (tmp_path / "record.warc").exists()


def test_a_damaged_document_is_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All others come; the exit code is 3. A pipe, which cannot take back what it had, ends there."""
    archive = directory.create(tmp_path / "archive")
    archives.publish(archive, pages={f"{name}.html": name.encode() * 99 for name in "abc"})
    store = archives.store_of(archive)
    head = store.head()
    assert head is not None
    body = store.find(head.tree, "b.html/data.html")
    assert body is not None
    (loose,) = store.path.glob(f"objects/{body.oid[:2]}/{body.oid[2:]}")
    loose.chmod(0o600)
    loose.write_bytes(loose.read_bytes()[:9])
    done = _webarc(archive, "--json", tmp_path / "out.warc")
    told = json.loads(done.stdout)
    assert done.returncode == 3 and told["documents"] == 2 and sum(told["left_out"].values()) == 1
    assert body.oid in caplog.text
    found = {each.path for each in warcreading.read(tmp_path / "out.warc") if each.kind == "response"}
    assert found == {"a.html", "c.html"}
    stream = webarc_bytes("export", "--archive", archive.root, "-")
    assert stream.returncode == 2 and body.oid.encode() in stream.stderr


def test_a_day_alone_is_its_end() -> None:
    """What was captured on a day is there on that day."""
    end = datetime(2026, 11, 29, 23, 59, 59, 999_999, CET)
    assert parse_moment("2026-11-29") == parse_moment("20261129") == end
    assert parse_moment("2026-11-29T00:00:00") == datetime(2026, 11, 29, tzinfo=CET)
    assert parse_moment("2026-11-29T00:00:00+00:00") == datetime(2026, 11, 29, 1, tzinfo=CET)
