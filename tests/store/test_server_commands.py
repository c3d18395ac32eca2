"""`webarc … --server URL` shows what `--archive DIR --as-reader` shows, as far as a server answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.histories import DOMAIN
from tests.support.readercommand import webarc, webarc_bytes
from tests.support.rooms import served
from tests.support.two_publications import TAGS, two_publications

pytestmark = pytest.mark.store

_URL = f"http://{DOMAIN}/"
_DAY = str(TAGS[1].crawl_time.date())


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], list[str]]]:
    """The options of a reader on the directory, and those of the server."""
    archive = two_publications(tmp_path_factory.mktemp("commands"))
    with served(archive) as room:
        yield ["--archive", str(archive.root), "--as-reader"], ["--server", f"http://127.0.0.1:{room.port}/"]


COMMANDS = [
    ["query"],
    ["query", "url LIKE '%html'", "--order-by", "crawlTime, path", "--format", "json"],
    ["query", "--order-by", "path DESC, crawlTime", "--format", "jsonl", "--limit", "2"],
    ["query", "--publication", "q", "--domain", DOMAIN, "--format", "csv"],
    ["query", "--order-by", "path, crawlTime", "--format", "paths"],
    ["query", "nonsense = 1"],
    ["search", "minutes", "--sort", "url"],
    ["search", "minutes", "--format", "json", "--limit", "2"],
    ["search", "minutes OR report", "--format", "csv", "--domain", DOMAIN, "--offset", "1"],
    ["search", "minutes", "--at", "latest", "--format", "jsonl", "--publication", "q"],
    ["search", "minutes", "--at", _DAY],
    ["search", "mintues"],
    ["search", '"'],
    ["links", "--from", f"{_URL}a.html", "--ever", "--format", "csv"],
    ["links", "--from", f"/{DOMAIN}/a.html", "--at", str(TAGS[0]), "--format", "json"],
    ["links", "--to", f"{_URL}b.html"],
    ["links", "--word", "report", "--format", "jsonl"],
    ["links", "--word", ""],
    ["links", "--broken", "--kind", "http"],
    ["links", "--external", "--publication", "p"],
    ["links", "--count", f"latest~1@{DOMAIN}"],
    ["links", "--count", str(TAGS[0]), "--json"],
    ["snapshots", "--format", "paths"],
    ["snapshots", "nowhere.example.org"],
    ["snapshots", "--publication", "none"],
    ["snapshots", DOMAIN, "--domain", "other.example.org"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_server_shows_what_readers_see(places: tuple[list[str], list[str]], words: list[str]) -> None:
    local, remote = (webarc(*words, *options) for options in places)
    assert (remote.returncode, remote.stdout) == (local.returncode, local.stdout), remote.stderr
    assert remote.stderr == local.stderr


@pytest.mark.parametrize(
    "words",
    [[], [DOMAIN, "--sort", "oldest"], ["--publication", "q"], ["--during", _DAY], ["--limit", "1"]],
    ids=" ".join,
)
def test_snapshots_of_a_server_are_those_of_readers(places: tuple[list[str], list[str]], words: list[str]) -> None:
    """But for the number of their documents, which a server does not count."""
    local, remote = (json.loads(webarc("snapshots", *words, "--json", *options).stdout) for options in places)
    assert remote == [row | {"documents": None} for row in local] != []


@pytest.mark.parametrize(
    "words",
    [
        [str(TAGS[0]), f"{_URL}a.html"],
        ["latest", f"/{DOMAIN}/q.html"],
        ["latest~1", f"{_URL}b.html"],
        [_DAY, f"{_URL}a.html/c.html"],
        [str(TAGS[0])[:16], f"{_URL}a.html"],
        ["latest", f"/{DOMAIN}/%FC?x=1&y=%20"],
        ["q", f"/{DOMAIN}/q.html"],
        ["1", f"{_URL}a.html"],
    ],
    ids=" ".join,
)
def test_a_document_of_a_server_is_written_as_it_was(places: tuple[list[str], list[str]], words: list[str]) -> None:
    local, remote = (webarc_bytes("cat", *words, *options) for options in places)
    assert (remote.returncode, remote.stdout, remote.stderr) == (0, local.stdout, local.stderr) and remote.stdout


@pytest.mark.parametrize(
    "words",
    [
        [str(TAGS[2]), f"{_URL}zebra.html"],
        [str(TAGS[0]), f"{_URL}none.html"],
        ["latest~7", f"{_URL}a.html"],
        [f"latest@{DOMAIN}", "http://other.example.org/"],
        ["latest", "nonsense"],
    ],
    ids=" ".join,
)
def test_what_a_server_does_not_show_is_an_error(places: tuple[list[str], list[str]], words: list[str]) -> None:
    local, remote = (webarc_bytes("cat", *words, *options) for options in places)
    assert local.returncode in (1, 2) and remote.returncode in (1, 2) and remote.stdout == b""
    assert remote.stderr.startswith(b"webarc: ") and b"Traceback" not in remote.stderr


def test_a_server_stands_alone(places: tuple[list[str], list[str]], tmp_path: Path) -> None:
    local, remote = places
    for words in (local, ["--mount", str(tmp_path)], ["--reader", "anna"]):
        done = webarc("query", *remote, *words)
        assert (done.returncode, done.stdout) == (1, "") and "--server stands alone" in done.stderr
    for words in (
        ["search", "x", "--facets"], ["search", "x", "--group", "snapshot"], ["search", "x", "--format", "paths"],
        ["cat", "latest", _URL, "--text"],
    ):  # fmt: skip
        done = webarc(*words, *remote)
        assert done.returncode == 1 and "leave out" in done.stderr
    done = webarc("query", "--server", "http://127.0.0.1:1/")
    assert done.returncode == 2 and "cannot be reached" in done.stderr
    done = webarc("query", "--server", "http://a.example.org/", environment={"WEBARC_TOKEN": "webarc_secret"})
    assert done.returncode == 1 and "secret" not in done.stderr
