"""Each command that takes a path takes it as people type it: relative, with blanks, line ends, any script, by a link.

`PATHS` has a call for every parameter of a command that is a path. A command that is added with one needs a line here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from PIL import Image

from agent.cli import cli as agent_cli
from agent.indexing import fulltext
from agent.indexing.recovery import recover
from tests.support import archives, crawls, readercommand
from tests.support.rooms import Page, published
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.commands.cli import cli as reader_cli
from webarcfs.commands.lazy_commands import AbsolutePath, ArchivePath

pytestmark = pytest.mark.store

URL = "http://www.example.org/"
#: The folder in which commands are called, and the beginning of each name.
ODD = "\u00dcmlaut und\n\u65e5\u672c 'x' \"y\" $HOME *"
_AGENT, _READER = crawls.COMMAND, readercommand.COMMAND
#: Parameters that are no files of commands, though their metavar says so: command and parameter → why.
NO_PATHS = {
    ("webarc cat", "document_"): "a path in the archive",
    ("webarc diff", "path"): "a path in the archive",
    ("webarc links", "source"): "a path in the archive",
    ("webarc log", "document_"): "a path in the archive",
    ("webarc-agent crawl", "url_list"): "`-` or a pipe as well: made absolute where it is kept",
    ("webarc-agent desk", "access_log"): "`-` and `off` as well: made absolute where it is opened",
    ("webarc-agent gateway", "access_log"): "`-` and `off` as well: made absolute where it is opened",
    ("webarc serve", "access_log"): "`-` and `off` as well: made absolute where it is opened",
}


@dataclass(frozen=True, slots=True)
class Odd:
    """A folder with an odd name, as the current one of commands, and an archive in it."""

    folder: Path
    archive: Archive

    def run(self, program: tuple[str, ...], *words: str, code: int = 0) -> str:
        """Run a command in the folder; return what it prints."""
        done = subprocess.run(
            [*program, *words], cwd=self.folder, capture_output=True, check=False, timeout=240,
            stdin=subprocess.DEVNULL, env={**os.environ, "WEBARC_ARCHIVE": "archive/"},
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout.decode("utf-8", "replace")

    def made(self, name: str) -> Path:
        """Return the path of what a command was to make."""
        path = self.folder / name
        assert path.exists(), [*self.folder.iterdir()]
        return path


@pytest.fixture
def odd(tmp_path: Path) -> Odd:
    folder = tmp_path / ODD
    folder.mkdir()
    archive = archives.make_archive(folder)
    assert archive.root == folder / "archive"
    published(archive, "www.example.org", {URL: Page(b"<p>harbour", title="x")}, archives.CREATED, publication="p")
    recover(archive)
    return Odd(folder, archive)


def _backup(odd: Odd, *, into: str = "./b 1/") -> None:
    for _ in range(2):  # the second one reads what is there
        odd.run(_AGENT, "backup", into)
    odd.run(_AGENT, "verify", "--archive", into)
    odd.run(_AGENT, "restore", into, "again/")
    odd.run(_AGENT, "verify", "--archive", "again")


def _attach(odd: Odd) -> None:
    (record,) = Catalogue(odd.archive).ids()
    (odd.folder / "-note \u4f8b.txt").write_text("x")
    odd.run(_AGENT, "record", "attach", record, "--", "-note \u4f8b.txt")
    name = json.loads(odd.run(_AGENT, "record", "attachments", record, "--format", "jsonl"))["name"]
    odd.run(_AGENT, "record", "attachments", record, "--get", name, "--to", "got it")
    assert odd.made("got it").read_text() == "x"
    odd.run(_AGENT, "record", "export", record, "--to", "xml/")
    assert list(odd.made("xml").iterdir())


def _import(odd: Odd) -> None:
    odd.run(_READER, "export", "./out 1.warc.gz")
    odd.run(_AGENT, "init", "other/")
    odd.run(_AGENT, "import", "--archive", "other/", "./out 1.warc.gz")
    (odd.folder / "list of files").write_text("out 1.warc.gz\n")
    odd.run(_AGENT, "init", "third")
    odd.run(_AGENT, "import", "--archive", "third", "--list", "list of files")


def _pictures(odd: Odd) -> None:
    Image.new("RGB", (4, 4)).save(odd.folder / "a picture.png")
    odd.run(_AGENT, "collection", "add", "some", "--title", "Some", "--picture", "a picture.png")
    odd.run(_AGENT, "collection", "change", "some", "--picture", "./a picture.png")


def _dataset(command: str, *words: str) -> Callable[[Odd], None]:
    def call(odd: Odd) -> None:
        odd.run(_READER, "dataset", command, "./out of it/", *words)
        assert odd.made("out of it").is_dir()

    return call


def _cookies(odd: Odd) -> None:
    """It gets as far as the URL, whose host there is none."""
    (odd.folder / "my cookies").write_text("a=b\n")
    (odd.folder / "my cookies").chmod(0o600)
    odd.run(_AGENT, "crawl", "--cookies", "my cookies", "--timeout", "1", "https://nowhere.invalid/", code=3)


def _written(program: tuple[str, ...], *words: str, name: str = "a file.svg") -> Callable[[Odd], None]:
    def call(odd: Odd) -> None:
        odd.run(program, *words, f"./{name}")
        assert odd.made(name).stat().st_size

    return call


def _indexed(odd: Odd) -> None:
    fulltext.bring_in_step(odd.archive)
    _written(_AGENT, "index", "--export", name="words of it.jsonl")(odd)


def _started(odd: Odd) -> None:
    name = "./new one/"
    odd.run(_AGENT, "init", name)
    odd.run(_AGENT, "status", "--archive", name)
    assert (odd.made(name.strip("./")) / "webarc.toml").is_file()


def _named(odd: Odd) -> None:
    """In a list of one's own, as nobody is root in."""
    own = (sys.executable, "-c", "import os; os.geteuid = lambda: 1; from agent.cli import main; main()")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(odd.folder / "config"))
        odd.run(own, "archives", "add", "town", "./archive/")
        (odd.folder / "else").mkdir()
        elsewhere = Odd(odd.folder / "else", odd.archive)
        assert str(odd.archive.root) in elsewhere.run(_AGENT, "status", "--archive", "town")


def _unit(odd: Odd) -> None:
    """In a folder without a line end, which systemd takes in no path."""
    near = Odd(odd.folder.parent, odd.archive)
    near.run(_AGENT, "init", "an archive \u4f8b/")
    own = ("mount", "--archive", "an archive \u4f8b", "--name", "town", "--on", "./a point/")
    near.run(_AGENT, "service", "install", *own, "--to", "units of it")
    text = (near.made("units of it") / "webarc-mount@town.service").read_text("utf-8")
    assert f'"{near.folder}/an archive \u4f8b" "{near.folder}/a point"' in text
    assert near.run(_AGENT, "service", "print", *own) == text


#: Command and parameter → the call that tries it.
PATHS: dict[tuple[str, str], Callable[[Odd], None]] = {
    ("webarc-agent init", "archive"): _started,
    ("webarc-agent backup", "folder"): _backup,
    ("webarc-agent restore", "folder"): _backup,
    ("webarc-agent restore", "archive"): _backup,
    ("webarc-agent archives add", "folder"): _named,
    ("webarc-agent collection add", "picture"): _pictures,
    ("webarc-agent collection change", "picture"): _pictures,
    ("webarc-agent crawl", "cookies"): _cookies,
    ("webarc-agent import", "files"): _import,
    ("webarc-agent import", "list_"): _import,
    ("webarc-agent index", "export"): _indexed,
    ("webarc-agent metrics", "to"): _written(_AGENT, "metrics", "--to", name="a file.prom"),
    ("webarc-agent record attach", "path"): _attach,
    ("webarc-agent record attachments", "to"): _attach,
    ("webarc-agent record export", "to"): _attach,
    ("webarc-agent service install", "point"): _unit,
    ("webarc-agent service install", "to"): _unit,
    ("webarc-agent service print", "point"): _unit,
    ("webarc export", "out"): _import,
    ("webarc stat", "plot"): _written(_READER, "stat", "latest@www.example.org", "--plot"),
    ("webarc dataset hosts", "out"): _dataset("hosts"),
    ("webarc dataset links", "out"): _dataset("links"),
    ("webarc dataset pages", "out"): _dataset("pages"),
    ("webarc dataset text", "out"): _dataset("text"),
    ("webarc dataset types", "out"): _dataset("types"),
    ("webarc dataset words", "out"): _dataset("words"),
}


def _parameters() -> Iterator[tuple[str, click.Parameter]]:
    def below(name: str, command: click.Command) -> Iterator[tuple[str, click.Parameter]]:
        if isinstance(command, click.Group):
            for word, verb in command.commands.items():
                yield from below(f"{name} {word}", verb)
        for parameter in command.params:
            yield name, parameter

    yield from below("webarc-agent", agent_cli)
    yield from below("webarc", reader_cli)


def _is_path(parameter: click.Parameter) -> bool:
    metavar = parameter.metavar or ""
    return isinstance(parameter.type, click.Path) or any(
        word in metavar for word in ("FILE", "DIR", "OUT", "PATH", "FOLDER")
    )


def test_every_path_of_a_command_is_made_absolute_and_tried_here() -> None:
    tried, wrong = set(), []
    for command, parameter in _parameters():
        if not _is_path(parameter) or (command, parameter.name) in NO_PATHS:
            continue
        if isinstance(parameter.type, ArchivePath) or parameter.name == "mount":
            continue
        if not isinstance(parameter.type, AbsolutePath):
            wrong.append(f"{command} {parameter.name}: its type is no AbsolutePath")
        tried.add((command, str(parameter.name)))
    assert wrong == []
    assert tried == set(PATHS)


@pytest.mark.parametrize("call", [*dict.fromkeys(PATHS.values())], ids=lambda call: call.__qualname__.partition(".")[0])
def test_a_relative_and_odd_path_is_taken(odd: Odd, call: Callable[[Odd], None]) -> None:
    call(odd)


@pytest.mark.parametrize(
    "name", ["b", "./b/", "../" + ODD + "/b", "with a\nline", "-b", "\u65e5\u672c", "\udcff", "link"]
)
def test_a_backup_is_made_read_and_restored_by_any_name(odd: Odd, name: str) -> None:
    (odd.folder / "real").mkdir()
    (odd.folder / "link").symlink_to("real")
    dashed = ["--", name] if name.startswith("-") else [name]
    for _ in range(2):
        odd.run(_AGENT, "backup", *dashed)
    odd.run(_AGENT, "verify", f"--archive=./{name}" if "/" not in name else f"--archive={name}")
    odd.run(_AGENT, "restore", *dashed, "again")
    assert "www.example.org" in odd.run(_READER, "snapshots", "--archive", "again")


@pytest.mark.parametrize("name", ["archive", "./archive/", "../odd/archive", "link", ""])
def test_the_archive_itself_may_be_named_in_any_way(odd: Odd, name: str) -> None:
    words = ["--archive", name] if name else []
    (odd.folder / "link").symlink_to("archive")
    (odd.folder.parent / "odd").symlink_to(ODD)
    assert "www.example.org" in odd.run(_READER, "snapshots", *words)
    odd.run(_AGENT, "status", *words)
    here = Odd(odd.archive.root, odd.archive)
    here.run(_AGENT, "status", "--archive", ".")
