"""A repository's formats and its refs: pinned, packed in time, and seen whole by all whoever packs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.maintenance.maintenance import maintain
from tests.support.archives import DOMAIN, add, publish, store_of
from tests.support.journals import Writer
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command, repository
from webarcfs.archive.git.repository import CRAWLS, MAIN, Commit, RefUpdate, Repository
from webarcfs.archive.model.errors import Damaged, OtherFormat
from webarcfs.archive.model.metadata import COMMITTER
from webarcfs.archive.repair import repacking
from webarcfs.archive.system.cache import Cache
from webarcfs.vfs.view import REFS_EVERY, View

pytestmark = pytest.mark.store


def loose_refs(store: Repository) -> int:
    return sum(path.is_file() for path in (store.path / "refs").rglob("*"))


def head_of(store: Repository) -> Commit:
    head = store.head()
    assert head is not None
    return head


def look(view: View) -> None:
    """As long as the view's thread takes to look at refs once."""
    for _ in range(REFS_EVERY):
        view.refresh()


# -- formats -----------------------------------------------------------------------------------------------------------

#: A git whose defaults are those of git 3: bare repositories where they are asked for only, SHA-256, reftable.
NEWER_GIT = """#!/bin/sh
: "${GIT_DEFAULT_HASH:=sha256}" "${GIT_DEFAULT_REF_FORMAT:=reftable}"
export GIT_DEFAULT_HASH GIT_DEFAULT_REF_FORMAT
exec %s -c safe.bareRepository=explicit -c init.defaultObjectFormat=sha256 -c init.defaultRefFormat=reftable "$@"
"""


@pytest.fixture
def newer_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands find that git, in a process that made no repository yet."""
    found = shutil.which("git")
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(NEWER_GIT % found)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setattr(repository, "_EMPTY", Cache(16))
    git_command.environment.cache_clear()
    yield
    git_command.environment.cache_clear()


@pytest.mark.usefixtures("newer_git")
def test_a_git_of_other_defaults_makes_the_same_repositories(tmp_path: Path, archive: Archive) -> None:
    """Git 3 will name objects by SHA-256 and keep refs in tables, which libgit2 cannot read."""
    tag = publish(archive, DOMAIN, {"a.html": b"1"})
    store = store_of(archive)
    assert len(head_of(store).oid) == 40 and store.ref(tag.ref) == head_of(store).oid
    assert "extensions" not in (store.path / "config").read_text()
    with store.importer(head_of(store).tree) as importer:
        for number in range(200):
            importer.put(f"{number}/data.xml", b"%d" % number)
        importer.finish()
    copy = Repository.create(tmp_path / "copy.git")
    repository.fetch(store.path, copy)
    assert copy.refs("refs/") == store.refs("refs/") and repository.connected(copy) == []
    repacking.repack(store.path)
    repacking.pack_refs(store.path)
    repacking.write_graph(store.path)
    assert store.check() == []


def test_the_environment_changes_no_format(tmp_path: Path) -> None:
    """Neither variables nor settings of the user."""
    (tmp_path / ".gitconfig").write_text(
        "[init]\n\tdefaultObjectFormat = sha256\n\tdefaultRefFormat = reftable\n\tdefaultBranch = trunk\n"
        f"\ttemplateDir = {tmp_path}\n[safe]\n\tbareRepository = explicit\n[extensions]\n\tobjectFormat = sha256\n"
    )
    script = "import sys, pathlib; from webarcfs.archive.git.repository import Repository as S; "
    script += "S.create(pathlib.Path(sys.argv[1]))"
    theirs = {
        "HOME": str(tmp_path),
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_DEFAULT_REF_FORMAT": "reftable",
        "GIT_REF_FORMAT": "reftable",
        "GIT_DIR": str(tmp_path),
        "GIT_TEMPLATE_DIR": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.bareRepository",
        "GIT_CONFIG_VALUE_0": "explicit",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "made.git")], env=os.environ | theirs, check=True)
    made = Repository(tmp_path / "made.git")
    assert len(made.write_tree([])) == 40
    assert (made.path / "HEAD").read_text() == f"ref: {MAIN}\n"
    assert "extensions" not in (made.path / "config").read_text()
    assert git_command.environment()["GIT_DEFAULT_REF_FORMAT"] == "files"
    assert git_command.environment()["GIT_DEFAULT_HASH"] == "sha1"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"core.repositoryFormatVersion": "1", "extensions.objectFormat": "sha256"}, "sha256"),
        ({"core.repositoryFormatVersion": "1", "extensions.refStorage": "reftable"}, "refstorage"),
        ({"core.repositoryFormatVersion": "2"}, "version 2"),
    ],
)
def test_a_repository_of_another_format_is_named_as_such(
    store: Repository, settings: dict[str, str], word: str
) -> None:
    for key, value in settings.items():
        subprocess.run(["git", "config", "--file", str(store.path / "config"), key, value], check=True)
    with pytest.raises(OtherFormat, match=rf"of another format \(.*{word}.*SHA-1 and refs in files"):
        Repository(store.path)


def test_what_is_no_repository_is_not_called_another_format(tmp_path: Path) -> None:
    (tmp_path / "e.org.git").mkdir()
    with pytest.raises(Damaged, match="cannot be opened") as caught:
        Repository(tmp_path / "e.org.git")
    assert not isinstance(caught.value, OtherFormat)


# -- packing -----------------------------------------------------------------------------------------------------------


def test_many_refs_become_one_file_and_all_see_them(archive: Archive) -> None:
    """A crawl makes one for ever: an inode and a block. Views, other readers and the next crawl see the same refs."""
    tags = [publish(archive, DOMAIN, {"a.html": b"%d" % number}) for number in range(repacking.LOOSE_REFS)]
    store, view = store_of(archive), View(archive)
    store.update_refs([RefUpdate("refs/publications/test", head_of(store).tree, None)])
    before, state = store.refs("refs/"), view.domain(DOMAIN)
    assert loose_refs(store) == len(before) == repacking.LOOSE_REFS + 2
    maintain(archive)
    assert loose_refs(store) == 0
    for reader in (store, store_of(archive)):
        assert reader.refs("refs/") == before
        assert reader.ref(MAIN) == head_of(reader).oid == before["heads/main"]
    look(view)
    assert view.domain(DOMAIN).tags == state.tags and len(state.tags) == len(tags)

    last = publish(archive, DOMAIN, {"a.html": b"new"})
    look(view)
    assert str(last) in view.domain(DOMAIN).tags and len(view.domain(DOMAIN).tags) == len(tags) + 1
    moved = store.ref(MAIN)
    repacking.pack_refs(store.path)
    assert store.ref(MAIN) == moved == store.ref(last.ref) and moved is not None
    add(archive, "a.html/after.txt", b"mine")
    look(view)
    assert view.domain(DOMAIN).main == head_of(store) != moved
    gone = RefUpdate(tags[0].ref, None, store.ref(tags[0].ref))
    store.update_refs([RefUpdate(MAIN, moved, store.ref(MAIN)), gone])
    assert store.ref(MAIN) == moved and store.ref(gone.ref) is None
    assert len(store.refs(CRAWLS)) == len(tags)
    assert store.check() == []


def test_few_refs_stay_as_they_are(archive: Archive) -> None:
    """Each mount looks once more at a domain whose main was packed."""
    publish(archive, DOMAIN, {"a.html": b"1"})
    maintain(archive)
    assert loose_refs(store_of(archive)) == 2


def test_additions_are_committed_once_whether_their_marks_are_packed_or_not(archive: Archive) -> None:
    publish(archive, DOMAIN, {"a.html": b"1"})
    store, writer = store_of(archive), Writer(archive)
    try:
        for number in range(3):
            writer.file("a.html", f"{number}.txt", b"%d" % number)
            assert len(commit_additions(archive, DOMAIN).commits) == 1
            repacking.pack_refs(store.path)
            assert loose_refs(store) == 0
        assert commit_additions(archive, DOMAIN).commits == ()
        assert len(list(store.history(store.ref(MAIN)))) == 4
    finally:
        writer.close()


def test_a_listing_is_whole_while_another_process_packs(store: Repository) -> None:
    """As `git pack-refs` or `git gc` by hand: refs go from files of their own into one that was read just before."""
    subprocess.run(["git", "config", "core.fsync", "none"], cwd=store.path, check=True)  # many rounds, and quick ones
    commits = [store.write_commit(store.write_tree([]), [], f"{number}", COMMITTER, number) for number in range(2)]
    names = [f"{CRAWLS}20260101T{number:06d}" for number in range(100)]
    store.update_refs([RefUpdate(name, commits[0], None) for name in names])
    expected = [name.removeprefix(CRAWLS) for name in names]
    moves = ["".join(f"update {name} {commit}\n" for name in names) for commit in commits]
    script = "for round in $(seq 20); do\n" + "".join(
        f"git update-ref --stdin <<END || exit 1\n{each}END\ngit pack-refs --all || exit 1\n" for each in moves
    )
    with subprocess.Popen(["sh", "-c", f"{script}done"], cwd=store.path) as process:
        try:
            while process.poll() is None:
                assert expected == store.ref_names(CRAWLS)
        finally:
            process.kill()
    assert process.returncode == 0
