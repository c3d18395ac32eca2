"""The archive as a directory."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.crawls import run_command, running_command
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive, create, default_root, open_archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.config.settings_sample import sample_settings
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.errors import Exit, NotAnArchive, UsageError, exit_code_of

pytestmark = pytest.mark.store


def test_a_new_archive_has_what_the_design_shows(tmp_path: Path) -> None:
    archive = create(tmp_path / "deep" / "archive")
    assert sorted(path.name for path in archive.root.iterdir()) == [
        *("changes", "content", "filters", "format", "jobs", "journal", "lock", "log", "reports", "xsd")
    ]
    assert archive.format.read_text() == "3\n"
    assert open_archive(archive.root) == archive
    assert list(archive.domains()) == []


def test_an_empty_folder_will_do_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    create(tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    (tmp_path / "file").touch()
    for name, why in (("full", "not an empty folder"), ("file", "not an empty folder"), ("empty", "archive already")):
        with pytest.raises(UsageError, match=why) as caught:
            create(tmp_path / name)
        assert exit_code_of(caught.value) == Exit.USAGE
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"4\n", "layout 4, this program knows up to 3"),
        (b"0\n", "this program knows 1 to 3"),
        (b"", "no layout version"),
        (b"one\n", "'one'"),
        (b"\xff\n", "unreadable"),
        (b"-1\n", "no layout version"),
    ],
)
def test_layouts_that_are_not_understood(tmp_path: Path, content: bytes, message: str) -> None:
    """What is newer is refused, and what never was."""
    archive = create(tmp_path / "a")
    archive.format.write_bytes(content)
    with pytest.raises(NotAnArchive, match=message):
        open_archive(archive.root)


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(NotAnArchive, match="webarc-agent init"):
            open_archive(root)


def test_an_init_that_was_interrupted_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "touch", stop)
    with pytest.raises(KeyboardInterrupt):
        create(tmp_path / "a")
    with pytest.raises(NotAnArchive):
        open_archive(tmp_path / "a")


def test_an_init_that_was_interrupted_is_begun_again_and_loses_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(directory, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            create(tmp_path / "a", "[crawl]\n")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "content" / "mine").touch()
    with pytest.raises(UsageError, match="not an empty folder"):
        create(tmp_path / "b")
    assert create(tmp_path / "a", "[mount]\n").settings.read_text() == "[mount]\n"


def test_of_two_inits_at_once_one_makes_the_archive(tmp_path: Path) -> None:
    """The others say that it is one, and change nothing."""
    for number in range(5):
        root = tmp_path / f"a {number}"
        with ExitStack() as stack:
            commands = [stack.enter_context(running_command("init", root)) for _ in range(3)]
            ends = [(command.communicate()[1], command.returncode) for command in commands]
        assert sorted(code for _, code in ends) == [0, 1, 1], ends
        assert all("is an archive already" in said for said, code in ends if code)
        assert settings_files.load(open_archive(root).settings) == (Settings(), None)


def test_a_second_init_says_what_the_folder_is(tmp_path: Path) -> None:
    archive = create(tmp_path / "a", "[crawl]\ndepth = 1\n")
    done = run_command("init", archive.root)
    assert (done.code, done.err) == (1, f"webarc-agent: {archive.root} is an archive already; nothing was changed\n")
    assert archive.settings.read_text() == "[crawl]\ndepth = 1\n"
    assert run_command("backup", "--archive", archive.root, tmp_path / "b").code == 0
    assert "is a backup" in run_command("init", tmp_path / "b").err
    archive.format.write_text("9\n")
    assert "is an archive already" in run_command("init", archive.root).err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "is not an empty folder" in run_command("init", tmp_path / "full").err


def test_domains_are_the_repositories(archive: Archive) -> None:
    for domain in ("www.example.org", "e.org:8080", "[2001:db8::1]", "a.git"):
        Repository.create(archive.repository(domain))
    (archive.content / "stray.git").touch()
    (archive.content / ".new-1-e.org.git").mkdir()
    (archive.content / "notes").mkdir()
    assert list(archive.domains()) == ["[2001:db8::1]", "a.git", "e.org:8080", "www.example.org"]


def test_the_longest_host_has_room_for_all_its_files(archive: Archive) -> None:
    """A host of 230 bytes is the longest that is taken; its repository, locks and scratch names are file names."""
    host = ".".join(["a" * 57] * 4)[:230] + ":65535"
    Repository.create(archive.repository(host))
    for path in (archive.publishing_lock(host), archive.server_lock(host), archive.lock(host)):
        path.touch()
        path.with_name(f".turn-{path.name}").touch()


def test_locks_have_names_of_their_own(archive: Archive) -> None:
    """No domain starts with a dot, so that none can take the name of another kind of lock."""
    own = {archive.sequence, archive.publishing_lock("e.org"), archive.server_lock("e.org"), archive.lock("e.org")}
    assert len(own) == 4 and all(path.parent == archive.root / "lock" for path in own)
    assert sum(not path.name.startswith(".") for path in own) == 1


def test_the_default_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBARC_ARCHIVE", raising=False)
    assert default_root(None) == Path("/srv/webarc") == Path(directory.DEFAULT)
    monkeypatch.setenv("WEBARC_ARCHIVE", "/elsewhere")
    assert default_root(None) == Path("/elsewhere")
    assert default_root("/given") == Path("/given")


def test_an_archive_that_cannot_be_read(archive: Archive) -> None:
    """A `format` that is there and cannot be read is no missing archive: the system's own error says why."""
    archive.format.unlink()
    archive.format.mkdir()
    with pytest.raises(IsADirectoryError):
        open_archive(archive.root)


def test_programs_change_the_settings_of_a_new_archive_and_keep_what_stands_there(tmp_path: Path) -> None:
    archive = create(tmp_path / "a", sample_settings())
    with settings_files.changing(archive.settings, archive.settings_lock) as document:
        document["crawl"]["depth"] = 3
        document["release"] = "by-hand"
    settings = settings_files.load(archive.settings)[0]
    assert (settings.crawl.depth, settings.release.release) == (3, "by-hand")
    kept = archive.settings.read_text()
    assert [line for line in sample_settings().splitlines() if line not in kept.splitlines()] == []
