"""The git store: objects, refs in transactions, trees, what damage and a full disk look like (/Ar-5/ … /Ar-9/)."""

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from tests.support.urls import canonical_urls
from webarcfs.archive.git import git_command, repository
from webarcfs.archive.git.repository import INCOMING, MAIN, Difference, RefUpdate, Repository, TreeEntry
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Busy, Damaged, NotFound, WebarcError
from webarcfs.archive.model.metadata import CET, COMMITTER, CommitTag, CrawlMessage, from_epoch
from webarcfs.archive.system.cache import Cache

pytestmark = pytest.mark.store

TAG = CommitTag(from_epoch(1_800_000_000), "www.example.org")
Files = dict[str, bytes]
#: Names that nothing of ours makes, but users may.
ODD = (
    "\udcff\udcfe",
    "new\nline",
    'qu"ote',
    "back\\slash",
    " ",
    "é",
    "\u202e",
    "-rf",
    "x" * 255,
    "tab\t",
    "\x01",
    "a'b",
)


def tree_of(store: Repository, files: Files) -> str:
    return store.edit(store.write_tree([]), {path: store.write_blob(body) for path, body in files.items()})


def files_of(store: Repository, tree: str | None) -> Files:
    return {each.path: store.read(str(each.new)) for each in store.differences(None, tree)}


def commit(store: Repository, tree: str, parent: str | None = None, number: int = 1) -> str:
    message = str(CrawlMessage(TAG, "test", True, number))
    return store.write_commit(tree, [parent] if parent else [], message, COMMITTER, 1_800_000_000 + number)


def git(store: Repository, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=store.path, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


# -- making and opening ------------------------------------------------------------------------------------------------


def test_a_new_repository_is_bare_sound_and_its_head_is_main(store: Repository) -> None:
    assert git(store, "symbolic-ref", "HEAD").strip() == MAIN
    assert git(store, "rev-parse", "--is-bare-repository").strip() == "true"
    assert git(store, "config", "core.fsync").strip() == "all"
    assert not list(store.path.glob("hooks/*"))
    assert store.check() == [] and store.head() is None and store.refs("refs/") == {}


def test_what_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Repository(tmp_path / "none.git")
    (tmp_path / "empty.git").mkdir()
    with pytest.raises(Damaged, match=r"empty\.git"):
        Repository(tmp_path / "empty.git")


def test_two_that_create_at_once_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "e.org.git"
    first = Repository.create(path)
    blob = first.write_blob(b"kept")
    assert Repository.create(path).read(blob) == b"kept"
    assert [each.name for each in tmp_path.iterdir()] == ["e.org.git"]


def test_settings_of_the_user_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a hook, never a configuration of somebody else."""
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from webarcfs.archive.git.repository import Repository, RefUpdate, MAIN
        from tests.store.test_store import commit, tree_of
        store = Repository.create(Path(sys.argv[1]))
        (store.path / "hooks").mkdir()
        hook = store.path / "hooks/reference-transaction"
        hook.write_text("#!/bin/sh\\nexit 1\\n")
        hook.chmod(0o755)
        store.update_refs([RefUpdate(MAIN, commit(store, tree_of(store, {"a": b"1"})), None)])
        assert store.check() == []
    """)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[core\nnonsense")
    environment = os.environ | {"HOME": str(tmp_path / "home"), "GIT_DIR": "/nowhere", "GIT_OBJECT_DIRECTORY": "/x"}
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "e.org.git")],
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )


# -- refs --------------------------------------------------------------------------------------------------------------


def test_a_publication_is_one_compare_and_swap(store: Repository) -> None:
    """All refs or none; the loser gets Busy and nothing moves."""
    one, two, three = (commit(store, tree_of(store, {"a": bytes([n])}), number=n) for n in (1, 2, 3))
    store.update_refs([RefUpdate(MAIN, one, None), RefUpdate(TAG.ref, one, None)])
    store.update_refs([RefUpdate(MAIN, two, one)])
    with pytest.raises(Busy, match="main"):
        store.update_refs([RefUpdate("refs/crawls/x", three, None), RefUpdate(MAIN, three, one)])
    with pytest.raises(Busy):
        store.update_refs([RefUpdate(TAG.ref, three, None)])  # crawl refs are created, never overwritten
    with pytest.raises(Busy):
        store.update_refs([RefUpdate("refs/crawls/gone", None, one)])
    assert store.refs("refs/") == {"heads/main": two, TAG.ref.removeprefix("refs/"): one}
    store.update_refs([RefUpdate(TAG.ref, None, one)])
    assert store.refs("refs/") == {"heads/main": two}


def test_of_many_that_swap_at_once_one_wins(store: Repository) -> None:
    base = commit(store, tree_of(store, {"a": b"0"}))
    store.update_refs([RefUpdate(MAIN, base, None)])
    rivals = [commit(store, tree_of(store, {"a": b"%d" % n}), base, n) for n in range(2, 8)]
    won: list[str] = []

    def swap(mine: str) -> None:
        try:
            Repository(store.path).update_refs([RefUpdate(MAIN, mine, base)])
            won.append(mine)
        except Busy:
            pass

    threads = [threading.Thread(target=swap, args=(rival,)) for rival in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [store.ref(MAIN)]


def test_names_of_loose_objects_are_synced_whatever_the_clock_says(
    store: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power cuts: a folder of objects that changed since is synced, also if the clock was set back in between."""
    objects = store.path / "objects"
    for name, age in (("00", 5000), ("01", -5000), ("02", 5000), ("03", 0)):
        (objects / name).mkdir()
        os.utime(objects / name, (time.time() - age,) * 2)
    since, synced = git_command.LooseObjectsSince(store.path), []
    monkeypatch.setattr(git_command, "sync_folder", lambda path: synced.append(path.name))
    os.utime(objects / "00", (time.time() - 6000,) * 2)
    os.utime(objects / "01", (time.time() - 6000,) * 2)
    (objects / "04").mkdir()
    os.utime(objects / "04", (time.time() - 6000,) * 2)
    since.sync()
    # One of the present time may change again without another time, so it is synced in any case.
    assert sorted(synced) == ["00", "01", "03", "04"]


def test_refs_to_what_is_not_there_are_damage_and_not_rivalry(store: Repository) -> None:
    with pytest.raises(Damaged, match="nonexistent"):
        store.update_refs([RefUpdate(MAIN, "1" * 40, None)])


def test_a_ref_is_read_from_disk_each_time(store: Repository) -> None:
    other = Repository(store.path)
    assert other.ref(MAIN) is None
    one = commit(store, tree_of(store, {"a": b"1"}))
    store.update_refs([RefUpdate(MAIN, one, None)])
    assert other.ref(MAIN) == one
    git(store, "pack-refs", "--all")
    assert other.ref(MAIN) == one == other.refs("refs/heads/")["main"]


# -- objects and trees -------------------------------------------------------------------------------------------------


def test_names_of_any_bytes(store: Repository) -> None:
    """Users may add files of any name; `str` carries it."""
    files = {f"folder/{name}": name.encode("utf-8", "surrogateescape") for name in ODD}
    tree = tree_of(store, files)
    assert files_of(store, tree) == files
    for path, body in files.items():
        found = store.find(tree, path)
        assert found is not None and store.read(found.oid) == body and store.size(found.oid) == len(body)
    store.update_refs([RefUpdate(MAIN, commit(store, tree), None)])
    assert store.check() == []
    with store.importer(tree) as importer:
        for name in ODD:
            importer.remove(f"folder/{name}")
            importer.put(f"again/{name}", b"2")
        tree = importer.finish()
    assert files_of(store, tree) == {f"again/{name}": b"2" for name in ODD}
    assert store.check() == []


@pytest.fixture
def none_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that made no repository yet."""
    monkeypatch.setattr(repository, "_EMPTY", Cache(16))


def files_below(folder: Path) -> dict[Path, bytes | None]:
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.usefixtures("none_made")
def test_the_next_repository_of_a_file_system_is_as_git_makes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first starts git, also where the next is in another folder, as of each reader."""
    first = Repository.create(tmp_path / "0.git").path
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(git_command, "environment", lambda: {"PATH": str(tmp_path)})
    (tmp_path / "other").mkdir()
    others = [Repository.create(tmp_path / name).path for name in ("1.git", "other/2.git")]
    assert files_below(first) and all(files_below(other) == files_below(first) for other in others)
    for folder in (tmp_path, tmp_path / "other"):
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.usefixtures("none_made")
def test_a_first_repository_that_cannot_be_read_is_no_pattern_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that is half read, to another thread: its files become known in one step."""
    read, seen = Path.read_bytes, list[Path]()

    def failing(path: Path) -> bytes:
        if path.name == "config":
            seen.append(path)
            if len(seen) == 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            with monkeypatch.context() as patch:
                patch.setattr(Path, "read_bytes", read)
                Repository.create(tmp_path / "meanwhile.git")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", failing)
    with pytest.raises(OSError, match="Input/output error"):
        Repository.create(tmp_path / "0.git")
    made = [Repository.create(tmp_path / f"{number}.git") for number in range(2)]
    assert len(seen) == 2
    monkeypatch.undo()
    for store in (*made, Repository(tmp_path / "meanwhile.git")):
        assert {Path("HEAD"), Path("config"), Path("refs/heads")} <= files_below(store.path).keys()
        assert store.check() == []


@pytest.mark.parametrize("size", [10, 1 << 19, 1 << 21])
def test_few_files_and_large_ones_are_stored_alike(tmp_path: Path, size: int) -> None:
    """Few small files are stored without a git of their own, up to a bound."""
    fresh = Repository.create(tmp_path / "e.git")
    files = {f"{number}/data.xml": os.urandom(4) * (size // 4) for number in range(4)}
    tree = None
    for number in range(2):
        with fresh.importer(tree) as importer:
            for path, body in files.items():
                importer.put_stream(
                    f"{number}/{path}", len(body), (body[at : at + 65536] for at in range(0, size, 65536))
                )
            tree = importer.finish()
    assert tree is not None
    fresh.update_refs([RefUpdate(MAIN, commit(fresh, tree), None)])
    assert fresh.check() == []
    assert files_of(fresh, tree) == {f"{number}/{path}": body for number in range(2) for path, body in files.items()}


@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(canonical_urls, min_size=30, max_size=60))
def test_names_of_urls_survive_git(tmp_path: Path, urls: list[str]) -> None:
    """`git fsck --full --strict` is content with the path of any URL, and it comes back as it went in."""
    fresh = Repository.create(tmp_path / f"{len(list(tmp_path.iterdir()))}.git")
    files = {f"{split(arc_path(url))[1]}/data.xml": url.encode() for url in urls}
    with fresh.importer(None) as importer:
        for path, body in files.items():
            importer.put(path, body)
        tree = importer.finish()
    fresh.update_refs([RefUpdate(MAIN, commit(fresh, tree), None)])
    assert fresh.check() == []
    assert files_of(fresh, tree) == files
    assert tree_of(fresh, files) == tree, "our trees are git's"


def test_find(store: Repository) -> None:
    tree = tree_of(store, {"a/b/c": b"1", "a.b": b"2"})
    assert store.find(tree, "") == TreeEntry("", tree, True)
    found = store.find(tree, "a/b")
    assert found is not None and found.is_tree and found.name == "b"
    for path in ("x", "a/x", "a/b/c/d", "a.b/c", "A"):
        assert store.find(tree, path) is None


names = st.sampled_from(["a", "a.b", "a0", "b", "é"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


def _drop_conflicts(files: Files) -> Files:
    """Without the files that are folders too."""
    return {path: body for path, body in files.items() if not any(other.startswith(f"{path}/") for other in files)}


contents = st.dictionaries(paths, st.binary(max_size=2), max_size=8).map(_drop_conflicts)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents, contents)
def test_differences_and_edit_are_inverse(store: Repository, old: Files, new: Files) -> None:
    before, after = tree_of(store, old), tree_of(store, new)
    assert files_of(store, before) == old
    found = list(store.differences(before, after))
    assert {each.path for each in found} == {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    removed = {each.path: None for each in found if each.new is None}
    assert store.edit(store.edit(before, removed), {each.path: each.new for each in found if each.new}) == after
    assert git(store, "ls-tree", "-r", "-z", "--name-only", after).split("\0")[:-1] == sorted(new, key=str.encode)


def test_a_file_that_becomes_a_folder(store: Repository) -> None:
    before, after = tree_of(store, {"a": b"1"}), tree_of(store, {"a/b": b"1"})
    blob = store.write_blob(b"1")
    assert list(store.differences(before, after)) == [Difference("a", blob, None), Difference("a/b", None, blob)]
    assert list(store.differences(after, after)) == []


def test_differences_are_in_order_of_path_however_names_sort(store: Repository) -> None:
    before = tree_of(store, {"a/x": b"1", "a.b/x": b"1"})
    found = [each.path for each in store.differences(None, before)]
    assert found == sorted(found) == ["a.b/x", "a/x"]


def test_editing_shares_what_it_leaves_alone(store: Repository) -> None:
    tree = tree_of(store, {f"{n}/{m}/x": b"%d" % n for n in range(5) for m in range(5)})
    edited = store.edit(tree, {"3/4/x": None, "0/y": store.write_blob(b"new"), "none/x": None})
    assert [each.path for each in store.differences(tree, edited)] == ["0/y", "3/4/x"]
    assert store.find(edited, "3/4") is None, "folders left empty go"
    assert store.edit(tree, dict.fromkeys(files_of(store, tree))) == store.write_tree([])


def test_history(store: Repository) -> None:
    assert list(store.history(None)) == []
    one = commit(store, tree_of(store, {"a": b"1"}))
    two = commit(store, tree_of(store, {"a": b"2"}), one, 2)
    found = list(store.history(two))
    assert [each.oid for each in found] == [two, one]
    assert found[0].parents == (one,) and found[0].message.tag == TAG and found[0].message.sequence == 2
    assert found[0].time == 1_800_000_002
    line = git(store, "log", "-1", "--format=%cn <%ce> %ad %an", "--date=iso-strict", two).strip()
    assert line == f"webarcfs <webarcfs@localhost> {from_epoch(1_800_000_002).astimezone(CET).isoformat()} webarcfs"


def test_a_big_blob_is_copied_in_flat_memory(store: Repository, tmp_path: Path) -> None:
    size = 40 << 20
    chunk = os.urandom(1 << 20)
    with store.importer(None) as importer:
        importer.put_stream("big", size, (chunk for _ in range(40)))
        tree = importer.finish()
    big = store.find(tree, "big")
    assert big is not None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert store.size(big.oid) == size
    with (tmp_path / "copy").open("wb") as file:
        store.copy(big.oid, file.fileno())
    assert (tmp_path / "copy").stat().st_size == size
    assert (tmp_path / "copy").open("rb").read(1 << 20) == chunk
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10 << 10


def test_threads_may_read_while_others_import(store: Repository) -> None:
    files = {f"{n}": b"%d" % n for n in range(300)}
    tree = tree_of(store, files)
    wrong: list[object] = []

    def read() -> None:
        try:
            for _ in range(3):
                if files_of(store, tree) != files:
                    wrong.append("content")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    with store.importer(None) as importer:
        for n in range(2000):
            importer.put(f"n/{n}", b"%d" % n)
        imported = importer.finish()
    git(store, "repack", "-q", "--geometric=2", "-d")
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(files_of(store, imported)) == 2000


# -- the importer ------------------------------------------------------------------------------------------------------


def test_the_importer_works_on_top_of_a_tree(store: Repository) -> None:
    base = tree_of(store, {"a/x": b"1", "b/x": b"2", "c": b"3"})
    with store.importer(base) as importer:
        importer.remove("a")
        importer.remove("not there")
        importer.put("b/y", b"new")
        importer.put("d/c", b"3")
        importer.put_stream("e", 4, iter([b"ab", b"", b"cd"]))
        tree = importer.finish()
    assert files_of(store, tree) == {
        "b/x": b"2",
        "b/y": b"new",
        "c": b"3",
        "d/c": b"3",
        "e": b"abcd",
    }
    assert store.refs("refs/") == {}


@pytest.mark.parametrize("chunks", [[b"abc"], [b"abc", b"de"], []])
def test_a_body_that_changes_its_size_leaves_nothing(store: Repository, chunks: list[bytes]) -> None:
    with pytest.raises(WebarcError, match="size"), store.importer(None) as importer:
        importer.put_stream("a", 4, iter(chunks))
    assert store.refs("refs/") == {}


def test_an_importer_that_is_not_finished_leaves_nothing(store: Repository) -> None:
    with store.importer(None) as importer:
        importer.put("a", b"1" * 100_000)
    assert store.refs("refs/") == {} and store.check() == []
    assert not [path for path in store.path.glob("objects/??/*") if "tmp" not in path.name]
    assert not list(store.path.glob("objects/pack/*.pack"))


def test_an_import_onto_a_tree_that_is_not_there_fails(store: Repository) -> None:
    with pytest.raises(Damaged, match="1111"), store.importer("1" * 40) as importer:
        importer.put("a", b"1")
        importer.finish()


def test_git_says_why_an_import_failed(store: Repository) -> None:
    (store.path / "config").write_text("[core]\n\trepositoryFormatVersion = 7\n")
    with pytest.raises(Damaged, match=r"(?i)version.* 7"), store.importer(None) as importer:
        importer.put("a", b"1" * (1 << 20))
        importer.finish()


VICTIM = """
import os, sys, time
from pathlib import Path
from webarcfs.archive.git.repository import Repository
store = Repository(Path(sys.argv[1]))
with store.importer(store.head().tree) as importer:
    for n in range(500):
        importer.put(f"n/{n}", os.urandom(5000))
    print("half", flush=True)
    time.sleep(60)
"""


def test_a_killed_import_leaves_nothing_that_stays(store: Repository) -> None:
    """kill -9 in the middle: the repository is sound, its state the old one, and the next one clears the rest away."""
    base = commit(store, tree_of(store, {"a": b"1"}))
    store.update_refs([RefUpdate(MAIN, base, None), RefUpdate(INCOMING + "older", base, None)])
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(store.path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": root},
        start_new_session=True,
    ) as victim:
        assert victim.stdout is not None and victim.stdout.readline() == b"half\n"
        os.killpg(victim.pid, signal.SIGKILL)
    assert store.refs("refs/") == {"heads/main": base, "incoming/older": base}
    assert [path for path in store.path.rglob("*") if "tmp_pack" in path.name], "the import had begun to write"
    store.drop_scratch()
    assert store.refs("refs/") == {"heads/main": base}
    assert not [path for path in store.path.rglob("*") if "tmp_" in path.name or "crash" in path.name]
    assert store.check() == []


# -- a full disk -------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_an_oserror(small_disk: Path) -> None:
    store = Repository.create(small_disk / "e.org.git")
    with pytest.raises(OSError, match="space") as caught, store.importer(None) as importer:
        for n in range(400):
            importer.put(f"{n}", os.urandom(10_000))
        importer.finish()
    assert caught.value.errno == errno.ENOSPC
    store.drop_scratch()
    assert store.check() == []


def test_refs_and_single_objects_on_a_full_disk(small_disk: Path) -> None:
    store = Repository.create(small_disk / "e.org.git")
    tree = tree_of(store, {"a": b"1"})
    one, two = commit(store, tree), commit(store, tree, number=2)
    store.update_refs([RefUpdate(MAIN, one, None)])
    _fill(small_disk / "ballast")
    with pytest.raises(OSError, match="space") as caught:
        store.update_refs([RefUpdate(MAIN, two, one)])
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="space") as caught:
        store.write_blob(os.urandom(9000))
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="space") as caught:
        store.edit(tree, {"b/c": one})
    assert caught.value.errno == errno.ENOSPC
    assert store.ref(MAIN) == one
    (small_disk / "ballast").unlink()
    store.update_refs([RefUpdate(MAIN, two, one)])
    assert store.check() == []


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


# -- packs that are no more --------------------------------------------------------------------------------------------


def test_removed_packs_are_let_go(store: Repository) -> None:
    """A process that reads for months must not keep open, mapped and on the disk what repacks removed."""
    tip: str | None = None
    for number in range(4):
        tree = tree_of(store, {f"{each}": b"%d %d" % (number, each) * 400 for each in range(20)})
        new = commit(store, tree, *[tip] * bool(tip))
        store.update_refs([RefUpdate(MAIN, new, tip)])
        tip = new
        subprocess.run(["git", "-C", str(store.path), "repack", "-q", "-a", "-d"], check=True)
        for entry in store.entries(tree):
            store.read(entry.oid)
        assert store.let_go() == (number > 0)
        assert not store.let_go()
        assert deleted_packs(store) == []
    assert len(list(store.history(str(tip)))) == 4


def test_objects_are_found_wherever_they_lie(store: Repository) -> None:
    """Packs are asked first, unless the last object was in none; and objects move from files into packs meanwhile."""
    tree, bodies = "", {}
    for number in range(6):
        bodies[f"{number}"] = b"%d" % number * 400
        tree = tree_of(store, bodies)
        store.update_refs([RefUpdate(MAIN, commit(store, tree), store.ref(MAIN))])
        for _ in range(2):
            assert {entry.name: store.read(entry.oid) for entry in store.entries(tree)} == bodies
        if number % 2:
            subprocess.run(["git", "-C", str(store.path), "repack", "-q", "-a", "-d"], check=True)
            subprocess.run(["git", "-C", str(store.path), "prune-packed"], check=True)
    assert {entry.name: store.read(entry.oid) for entry in store.entries(tree)} == bodies
    assert not [path for path in store.path.glob("objects/??/*") if store.entries(tree)[0].oid.endswith(path.name)]


def deleted_packs(store: Repository) -> list[str]:
    """Packs of the store that this process holds though they are gone: open files and mappings."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    links = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]  # noqa: PTH115
    return [each for each in (*maps, *links) if str(store.path) in each and each.endswith("(deleted)")]


# -- damage ------------------------------------------------------------------------------------------------------------


def test_damaged_objects_say_so(store: Repository) -> None:
    blob = store.write_blob(b"content")
    tree = tree_of(store, {"a": b"content"})
    one = commit(store, tree)
    store.update_refs([RefUpdate(MAIN, one, None)])
    for oid in (blob, tree, one):
        path = store.path / "objects" / oid[:2] / oid[2:]
        path.chmod(0o644)
        path.write_bytes(b"no zlib stream")
    fresh = Repository(store.path)
    for read in (
        lambda: fresh.read(blob),
        lambda: fresh.size(blob),
        lambda: fresh.copy(blob, 2),
        lambda: fresh.entries(tree),
        lambda: fresh.find(tree, "a"),
        lambda: list(fresh.differences(None, tree)),
        lambda: list(fresh.history(one)),
        fresh.head,
    ):
        with pytest.raises(Damaged, match=r"www\.example\.org"):
            read()
    assert fresh.check() != []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("left", [0.0, 0.1, 0.5, 0.95])
def test_an_object_that_is_cut_off_is_damage(store: Repository, left: float) -> None:
    """A crash without a sync leaves such files; libgit2 by itself would never come back from some of them."""
    blob = store.write_blob(os.urandom(100) * 1000)
    tree = store.write_tree([TreeEntry(f"{number:05d}", blob, False) for number in range(200)])
    commit = store.write_commit(tree, [], "x" * 1000, COMMITTER, 1)
    for oid in (blob, tree, commit):
        file = store.path / "objects" / oid[:2] / oid[2:]
        file.chmod(0o644)
        os.truncate(file, int(file.stat().st_size * left))
    fresh = Repository(store.path)
    for read in (lambda: fresh.read(blob), lambda: fresh.entries(tree), lambda: fresh.read_tree(tree)):
        with pytest.raises(Damaged, match="cannot be read"):
            read()
    with pytest.raises(Damaged, match="cannot be read"):
        fresh.commit(commit)


def test_missing_objects_and_those_of_another_kind(store: Repository) -> None:
    blob, tree = store.write_blob(b"x"), tree_of(store, {"a": b"x"})
    for oid in ("1" * 40, "no oid"):
        for read in (store.read, store.size, store.entries, store.commit):
            with pytest.raises(Damaged):
                read(oid)
    for read in (store.entries, store.commit):
        with pytest.raises(Damaged):
            read(blob)
    with pytest.raises(Damaged):
        store.read(tree)


@pytest.mark.parametrize(
    "raw", [b"x", b"100644 a\0" + b"1" * 19, b"100644 a\0" + b"1" * 20 + b"\n", b"644a\0" + b"1" * 20]
)
def test_a_tree_that_is_malformed_is_damage(store: Repository, raw: bytes) -> None:
    command = ["git", "hash-object", "-t", "tree", "--literally", "-w", "--stdin"]
    done = subprocess.run(command, cwd=store.path, input=raw, check=True, capture_output=True)
    with pytest.raises(Damaged, match="no tree that can be read"):
        store.entries(done.stdout.decode().strip())


def test_trees_are_read_as_git_reads_them(store: Repository) -> None:
    blob, empty = store.write_blob(b"x"), store.write_tree([])
    entries = [TreeEntry(name, blob, False) for name in ("a b", "\udcff", "z\n", "0 0")] + [
        TreeEntry("folder", empty, True)
    ]
    found = store.entries(store.write_tree(entries))
    assert sorted(found) == sorted(entries)


def test_a_commit_that_is_none_of_ours(store: Repository) -> None:
    other = store.write_commit(tree_of(store, {}), [], "Merge branch 'x'\n", COMMITTER, 1)
    with pytest.raises(Damaged, match="commitTag"):
        store.commit(other)


def test_a_damaged_ref(store: Repository) -> None:
    (store.path / "refs/heads/main").write_bytes(b"")
    with pytest.raises(Damaged, match="main"):
        store.ref(MAIN)


def test_a_repack_that_removes_empty_folders_disturbs_no_writer(store: Repository) -> None:
    """`git repack -d` removes an objects/xx/ that libgit2 has just made, before it renames the object into it."""
    # A repack goes over the folders once. This one does so again and again, with a pause of some writes.
    script = """if True:
        import os, sys, time
        while True:
            for number in range(256):
                try:
                    os.rmdir(sys.argv[1] % number)
                except OSError:
                    pass
            time.sleep(0.005)
        """
    with subprocess.Popen([sys.executable, "-c", script, str(store.path / "objects" / "%02x")]) as sweeper:
        try:
            blobs = {store.write_blob(b"%d" % number): b"%d" % number for number in range(150)}
        finally:
            sweeper.kill()
    assert all(store.read(blob) == body for blob, body in blobs.items())
