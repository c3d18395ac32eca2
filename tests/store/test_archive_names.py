"""Several archives on one machine, by names: two lists, what is looked up and when, the Tab key."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crawls import COMMAND, end
from tests.support.mounts import SCRIPTS
from tests.support.waiting import until
from webarcfs.archive.config import named_archives
from webarcfs.archive.config.directory import create, default_root
from webarcfs.archive.config.named_archives import NamedArchive
from webarcfs.archive.model.errors import NotAnArchive, SettingsError
from webarcfs.archive.system import locks

pytestmark = pytest.mark.store


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """One's own list, and that of the machine."""
    own, system = tmp_path / "config" / "webarc" / "archives.toml", tmp_path / "etc" / "webarc" / "archives.toml"
    for path in (own, system):
        path.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(named_archives, "SYSTEM_LIST", system)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEBARC_ARCHIVE", raising=False)
    return own, system


def test_a_word_that_is_no_file_here_is_looked_up_in_ones_own_list_first(
    lists: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, system = lists
    system.write_text('town = "/srv/town"\ncity = "/srv/city"\n')
    own.write_text('town = "/home/me/town"\n')
    assert default_root("town") == Path("/home/me/town")
    assert default_root("city") == Path("/srv/city")
    assert default_root("./city") == tmp_path / "city", "with a slash it is a path"
    (tmp_path / "city").mkdir()
    assert default_root("city") == tmp_path / "city", "a folder here comes first"
    monkeypatch.setenv("WEBARC_ARCHIVE", "town")
    assert default_root(None) == Path("/home/me/town")
    assert named_archives.named_archives() == [
        NamedArchive("city", Path("/srv/city"), system), NamedArchive("town", Path("/home/me/town"), own)
    ]  # fmt: skip


def test_what_is_found_nowhere_is_said_with_where_it_was_looked_up(lists: tuple[Path, Path]) -> None:
    with pytest.raises(NotAnArchive) as caught:
        default_root("town")
    assert all(str(path) in str(caught.value) for path in lists)
    assert "no folder 'town' here" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("town = 3", "no absolute path"),
        ('town = "srv/town"', "no absolute path"),
        ('town = "/srv\\u0000"', "no absolute path"),
        ('"a/b" = "/srv/x"', "no name of an archive"),
        ('"Straße" = "/srv/x"', "no name of an archive"),
        ("[town]\npath = '/srv/x'", "no absolute path"),
        ("town = ", "not TOML"),
        ("\x00", "not TOML"),
    ],
)
def test_a_list_with_faults_is_named(lists: tuple[Path, Path], text: str, fault: str) -> None:
    lists[0].write_text(text)
    with pytest.raises(SettingsError, match=fault) as caught:
        default_root("town")
    assert str(lists[0]) in str(caught.value)
    assert default_root("/srv/x") == Path("/srv/x"), "a path needs no list"


@given(st.text(max_size=60))
def test_any_list_is_read_or_refused(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        path = Path(folder) / "archives.toml"
        patch.setattr(named_archives, "lists", lambda: (path,))
        path.write_text(text, "utf-8", "replace")
        try:
            assert all(archive.root.is_absolute() for archive in named_archives.named_archives())
        except SettingsError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("home", ["", "/nonexistent", "relative", None])
def test_without_a_home_folder_the_list_of_the_machine_counts(
    lists: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    lists[1].write_text('town = "/srv/town"\n')
    assert default_root("town") == Path("/srv/town")


# -- commands ----------------------------------------------------------------------------------------------------------


def _run(environment: Mapping[str, str], *words: str | Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=False, timeout=240, env={**os.environ, **environment}
    )
    return done.returncode, done.stdout, done.stderr


def test_names_are_added_listed_completed_and_removed(tmp_path: Path) -> None:
    """As root for the machine; here by a list of one's own, since tests change no machine."""
    archive, config = create(tmp_path / "an archive"), tmp_path / "config"
    (config / "webarc").mkdir(parents=True)
    own = config / "webarc" / "archives.toml"
    own.write_text(f'# my archives\ntown = "{archive.root}"\nnone = "{tmp_path}/none"\n')
    environment = {"XDG_CONFIG_HOME": str(config)}
    code, out, _ = _run(environment, "archives")
    assert (code, out) == (0, f"none: {tmp_path}/none (no archive)\ntown: {archive.root}\n")
    code, out, _ = _run(environment, "archives", "list", "--format", "csv")
    assert out.splitlines()[0] == "name,archive,state,list" and f"town,{archive.root},archive,{own}" in out
    assert _run(environment, "status", "--archive", "town")[1].startswith(f"{archive.root}: ")
    assert _run({**environment, "WEBARC_ARCHIVE": "town"}, "status")[1].startswith(f"{archive.root}: ")
    assert _run(environment, "status", "--archive", "none")[0] == 2
    code, _, err = _run(environment, "status", "--archive", "tow")
    assert code == 2 and str(own) in err and "`webarc-agent archives` lists" in err
    for program in ("webarc-agent status", "webarc search"):
        assert _completed(f"{program} --archive to", environment) == ["town"]
    assert _run(environment, "archives", "add", "a/b", archive.root)[0] == 1
    assert _run(environment, "archives", "add", "x", tmp_path)[0] == 2, "there is no archive"
    assert _run(environment, "archives", "remove", "nobody")[0] == 2


def _completed(words: str, environment: Mapping[str, str]) -> list[str]:
    """What Tab offers in bash behind these words."""
    program, *_, last = words.split()
    script = (
        f'eval "$(webarc completion bash)"; COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}\n'
        f'"$(complete -p {program} | sed "s/.* -F //; s/ .*//")" {program} {last} 2>/dev/null\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
    )  # fmt: skip
    return done.stdout.split()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One's own list, with a name and a comment in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "webarc" / "archives.toml"
    path.parent.mkdir(parents=True)
    path.write_text('# mine\nmine = "/srv/mine"\n')
    return path


@contextmanager
def _adding(name: str, root: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that adds a name as a person; root would name it for the machine. It does not outlive the block."""
    script = "import os; os.geteuid = lambda: 1000; from agent.cli import main; main()"
    command = [sys.executable, "-c", script, "archives", "add", name, str(root)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        end(process)


def test_many_who_add_names_at_once_lose_none(tmp_path: Path, own: Path) -> None:
    """Each name is in the list afterwards, and what a person wrote there as well."""
    archive = create(tmp_path / "a")
    with ExitStack() as stack:
        commands = [stack.enter_context(_adding(f"n{number}", archive.root)) for number in range(4)]
        errors = [command.communicate(timeout=240)[1] for command in commands]
    assert [command.returncode for command in commands] == [0] * 4, errors
    assert own.read_text().startswith("# mine\n")
    assert {named.name for named in named_archives.read_list(own)} == {"mine", "n0", "n1", "n2", "n3"}


def test_of_two_who_give_one_name_at_once_the_second_learns_that_it_is_taken(tmp_path: Path, own: Path) -> None:
    roots = [create(tmp_path / name).root for name in "ab"]
    lock = own.with_name(".archives.toml.lock")
    with ExitStack() as stack:
        with locks.exclusive(lock):
            commands = [stack.enter_context(_adding("town", root)) for root in roots]
            for command in commands:
                until(partial(_has_open, command.pid, lock), "it waits for the lock of the list")
        errors = [command.communicate(timeout=240)[1] for command in commands]
    assert sorted(command.returncode for command in commands) == [0, 1]
    (kept,) = (named.root for named in named_archives.read_list(own) if named.name == "town")
    assert kept == roots[[command.returncode for command in commands].index(0)]
    assert f"town is the name of {kept} in {own}; `webarc-agent archives remove town` first" in "".join(errors)


def _has_open(process: int, path: Path) -> bool:
    """Whether a process has a file open."""
    return any(fd.resolve() == path for fd in Path(f"/proc/{process}/fd").iterdir())
