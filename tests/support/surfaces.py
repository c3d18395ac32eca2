"""All that people and programs see of webarcfs, as text: what tests/golden/ keeps byte for byte.

`python -m tests.support.surfaces` writes it anew, after a change that is meant; the diff shows what users will see. It
writes README's table of words, too.
"""

from __future__ import annotations

import http.client
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import click

from agent import manual
from agent.cli import cli as agent_cli
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.readercommand import webarc
from tests.support.rooms import Page, digits, published, served
from tests.support.sources import README, REASONS, table_of_reasons
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET
from webarcfs.commands.cli import cli as reader_cli
from webarcfs.mount.process import cli as mount_cli

GOLDEN = Path(__file__).parents[1] / "golden"
_HOST = "www.example.org"
_HOME = f"http://{_HOST}/"
_FIRST = datetime(2020, 5, 1, 12, tzinfo=CET)
_TIMES = [_FIRST + timedelta(days=days) for days in (0, 40, 400)]
_RECORDS = [f"{time:%Y%m%dT%H%M%S}-p" for time in _TIMES]
_PAGE = b"<!doctype html><title>%s</title><p>%s <a href=/b>b</a> <a href=http://far.example/>far</a><img src=/i.png>"
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d4944415478da63fcffff3f0300050001ff5d2d1b8e0000000049454e44ae426082"
)
#: What differs from one run to the next, or from one installation to another.
_NO_HEADERS = {"date", "server", "etag", "last-modified"}


def archive_of(folder: Path) -> Archive:
    """An archive of three crawls: a page changes, one goes, redirects, is an error page; the last is held."""
    archive = archives.make_archive(folder)
    pages: list[dict[str, Page | None]] = [
        {_HOME: Page(_PAGE % (b"Home", b"one"), title="Home"), f"{_HOME}b": Page(b"<p>b"),
         f"{_HOME}i.png": Page(_PNG, "image/png")},
        {_HOME: Page(_PAGE % (b"Home", b"two"), title="Home"), f"{_HOME}b": None,
         f"{_HOME}gone": Page(b"no", status=404)},
        {_HOME: Page(_PAGE % (b"Home", b"three"), title="Home")},
    ]  # fmt: skip
    for number, (time, changes) in enumerate(zip(_TIMES, pages, strict=True)):
        is_last = number == len(pages) - 1
        state = RecordState.COUNTED if is_last else RecordState.RELEASED
        redirects = {f"{_HOME}old": f"{_HOME}b"} if number == 0 else None
        published(archive, _HOST, changes, time, state=state, held=is_last, title="Home", redirects=redirects)
    recover(archive)
    return archive


def _helps(command: click.Command, name: str, above: click.Context | None = None) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": 100, "max_content_width": 100}
    context = click.Context(command, above, name, **settings)
    yield f"## {context.command_path}\n\n{command.get_help(context)}\n"
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            if below is not None and not below.hidden:
                yield from _helps(below, word, context)


def helps(_: Path) -> str:
    """--help of each command, by another process: click keeps what was asked first."""
    script = "from tests.support.surfaces import print_helps; print_helps()"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def print_helps() -> None:
    """Print them."""
    commands = {
        "webarc": reader_cli, "webarc-agent": agent_cli,
        "mount.webarcfs": mount_cli.mount, "umount.webarcfs": mount_cli.umount,
    }  # fmt: skip
    for name, command in commands.items():
        print("\n".join(_helps(command, name)))


def manuals(folder: Path) -> str:
    """The man pages that are made."""
    assert manual.main([str(folder)]) == 0
    return "".join(f"## {path.name}\n\n{path.read_text('utf-8')}\n" for path in sorted(folder.iterdir()))


def stored(folder: Path) -> str:
    """The files of the newest state and the documents among them, refs, the feed."""
    archive = archive_of(folder)
    store = archives.store_of(archive, _HOST)
    git = ["git", "-c", "safe.directory=*", "-C", str(store.path)]

    def output(*words: str) -> str:
        return subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout

    texts = [
        output("ls-tree", "-r", "main"),
        output("for-each-ref", "--format=%(refname)"),
        output("log", "--format=%B", "main"),
    ]
    names = output("ls-tree", "-r", "--name-only", "main").splitlines()
    texts += [
        f"## {name}\n{output('show', f'main:{name}')}" for name in names if name.endswith(("data.xml", "headers.http"))
    ]
    return "\n".join([*texts, archive.changes.read_text("ascii")])


def answers(folder: Path) -> str:
    """What the reading room answers: to people, programs and other archives."""
    archive = archive_of(folder)
    first, second = (digits(time) for time in _TIMES[:2])
    paths = (
        "/", "/?q=none", "/publication/p", f"/snapshot/{_RECORDS[0]}", f"/snapshot/{_RECORDS[0]}/links",
        f"/snapshot/{_RECORDS[0]}/links.csv", f"/snapshot/{_RECORDS[2]}", f"/compare/{_RECORDS[0]}..{_RECORDS[1]}",
        f"/web/*/{_HOME}", f"/web/*/{_HOME}*", f"/web/{first}/{_HOME}", f"/web/{first}mp_/{_HOME}",
        f"/web/{first}id_/{_HOME}",
        f"/web/{first}/{_HOME}old", f"/web/{second}/{_HOME}b", f"/web/{second}/{_HOME}gone", f"/web/2020/{_HOME}",
        f"/web/{_HOME}", f"/diff/{first}..{second}/{_HOME}", f"/cdx?url={_HOME}", f"/cdx?url={_HOST}/*&output=json",
        f"/cdx?url={_HOME}&output=cdxj", f"/timemap/link/{_HOME}", f"/timemap/json/{_HOME}",
        f"/wayback/available?url={_HOME}", f"/notice/external?url=http://e.org/&from={first}/{_HOME}",
        "/notice/closed", "/nothing", "/news.atom", "/opensearch.xml", "/search?q=one", "/robots.txt",
        "/find?q=one", "/find?q=www.example.org",
        f"/snapshot/{_RECORDS[0]}.xml", f"/snapshot/{_RECORDS[0]}.json", f"/snapshot/{_RECORDS[0]}.dc",
        f"/urls?prefix={_HOME}",
    )  # fmt: skip
    texts = []
    with served(archive, origin="http://room.example") as room:
        for path in paths:
            client = http.client.HTTPConnection("127.0.0.1", room.port, timeout=240)
            client.request("GET", path, headers={"Host": "room.example"})
            response = client.getresponse()
            body = response.read().decode("utf-8", "replace")
            client.close()
            fields = sorted(
                (name.lower(), value) for name, value in response.getheaders() if name.lower() not in _NO_HEADERS
            )
            head = "".join(f"{name}: {value}\n" for name, value in fields)
            texts.append(f"## GET {path}\n{response.status}\n{head}\n{body}\n")
    return "\n".join(texts)


def tables(folder: Path) -> str:
    """What commands print for programs."""
    archive = archive_of(folder)
    tags = [f"{time:%Y-%m-%dT%H:%M:%S}@{_HOST}" for time in _TIMES]
    reader = (
        ("log", _HOME, "--json"), ("log", _HOME), ("diff", tags[0], tags[1], "--json"), ("diff", tags[0], tags[1]),
        ("stat", tags[0], "--json"), ("query", "status = 200", "--format", "json"), ("query", "1", "--format", "csv"),
    )  # fmt: skip
    agent = (
        ("record", "list", "--json"),
        ("record", "show", _RECORDS[0], "--json"),
        ("record", "export", "--format", "csv"),
    )
    texts = []
    for words in reader:
        done = webarc(*words, "--archive", str(archive.root))
        texts.append(f"## webarc {' '.join(words)}\n{done.returncode}\n{done.stdout}{done.stderr}")
    for words in agent:
        answer = run_command(*words, "--archive", archive.root)
        texts.append(f"## webarc-agent {' '.join(words)}\n{answer.code}\n{answer.out}{answer.err}")
    return "\n".join(texts).replace(str(folder), "FOLDER")


def mounted(folder: Path) -> str:
    """What a mount lists, with modes, sizes and extended attributes."""
    archive = archive_of(folder)
    mount = Mounted(archive.root, folder / "mnt")
    try:
        lines = []
        for path in sorted([mount / _HOST, *(mount / _HOST).rglob("*"), *mount.point.iterdir()]):
            found = path.lstat()
            kind = stat.filemode(found.st_mode)
            lines.append(f"{kind} {found.st_size:6} {path.relative_to(mount.point)}")
            names = sorted(os.listxattr(path, follow_symlinks=False)) if path.is_relative_to(mount / _HOST) else []
            lines += [f"    {name}={os.getxattr(path, name)!r}" for name in names]
        assert run(UMOUNT, mount.point).returncode == 0
    finally:
        mount.clear()
    return "\n".join(lines) + "\n"


#: Name of the file → what it has.
SURFACES: dict[str, Callable[[Path], str]] = {
    "help.txt": helps, "man.txt": manuals, "git.txt": stored, "room.txt": answers, "tables.txt": tables,
    "mount.txt": mounted,
}  # fmt: skip


def text_of(name: str) -> str:
    """The text of a surface, without blanks at the ends of its lines."""
    with tempfile.TemporaryDirectory(prefix="webarc-golden-") as folder:
        text = SURFACES[name](Path(folder))
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _readme() -> str:
    return REASONS.sub(lambda found: f"{found[1]}{table_of_reasons()}{found[3]}", README.read_text("utf-8"))


def main() -> None:
    """Write all of them, or those that are named."""
    for name in sys.argv[1:] or (*SURFACES, README.name):
        if name == README.name:
            README.write_text(_readme(), "utf-8")
        else:
            (GOLDEN / name).write_text(text_of(name), "utf-8")
        print(name)


if __name__ == "__main__":
    main()
