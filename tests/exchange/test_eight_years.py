"""Files of one host over eight years, imported in one command: each version is found at its own time."""

from __future__ import annotations

import io
import itertools
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.support.crawls import run_command
from tests.support.imports import command
from tests.support.readercommand import webarc
from tests.support.rooms import Served, digits, served
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.document import data_xml
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model.metadata import CET, format_time
from webarcfs.export.selection import Asked, documents, select
from webarcfs.room.replay.memento import http_date

pytestmark = [pytest.mark.crawl, pytest.mark.timeout(1800)]

HOST = "www.example.org"
#: The soak has 200.
FILES, PAGES = int(os.environ.get("YEARS_FILES", "20")), 6
DAYS = 8 * 365
#: URL → its versions: when it was captured first, and its body.
Versions = dict[str, list[tuple[datetime, bytes]]]


def written(folder: Path) -> Versions:
    """Files with names in a random order, and what their pages were."""
    dice = random.Random(8)
    folder.mkdir()
    captures: dict[str, list[tuple[datetime, bytes]]] = defaultdict(list)
    for number in range(FILES):
        begun = datetime(2015, 1, 1, tzinfo=UTC) + timedelta(days=number * DAYS / FILES, seconds=dice.randrange(40_000))
        crawl = [(f"p{page}.html", begun + timedelta(seconds=page), dice.randrange(4)) for page in range(PAGES)]
        crawl += [(f"p{page}.html", begun + timedelta(seconds=60 + page), 9) for page in range(2) if number % 20 == 7]
        dice.shuffle(crawl)
        with (folder / f"{dice.randrange(1 << 60):x}.warc.gz").open("wb") as file:
            writer = WARCWriter(file, gzip=True)
            for name, when, content in crawl:
                url, body = f"http://{HOST}/{name}", f"<!doctype html><title>{name} {content}</title>".encode()
                head = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
                date = {"WARC-Date": f"{when:%Y-%m-%dT%H:%M:%SZ}"}
                record = writer.create_warc_record(
                    url, "response", payload=io.BytesIO(body), http_headers=head, warc_headers_dict=date
                )
                writer.write_record(record)
                captures[url].append((when, body))
    return {
        url: [next(run) for _, run in itertools.groupby(sorted(seen), key=lambda capture: capture[1])]
        for url, seen in captures.items()
    }


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, Versions]]:
    folder = tmp_path_factory.mktemp("years")
    archive, versions = create(folder / "archive"), written(folder / "files")
    done = run_command("import", "--archive", archive.root, folder / "files", timeout=1500)
    assert done.code == 0, done.err
    yield archive, versions


@pytest.fixture(scope="module")
def room(truth: tuple[Archive, Versions]) -> Iterator[Served]:
    with served(truth[0]) as found:
        yield found


def test_each_file_is_a_crawl_with_a_record(truth: tuple[Archive, Versions]) -> None:
    archive, _ = truth
    assert len([record for record in Catalogue(archive).records() if record.parts]) == FILES
    assert command("verify", "--archive", archive.root).code == 0
    assert "imported already" in command("import", "--archive", archive.root, archive.root.parent / "files").out


def test_the_room_has_each_version_at_its_time(truth: tuple[Archive, Versions], room: Served) -> None:
    for url, versions in truth[1].items():
        listed = {line.split(" ")[0] for line in room.get(f"/cdx?url={url}&fl=timestamp").text.splitlines()}
        timemap = room.get(f"/timemap/link/{url}").text
        log = webarc("log", "--archive", str(truth[0].root), url).stdout
        for when, body in versions:
            answer = room.get(f"/web/{digits(when)}id_/{url}")
            date = http_date(int(when.timestamp()))
            assert (answer.status, answer.body, answer.headers["memento-datetime"]) == (200, body, date)
            assert digits(when) in listed and f'datetime="{date}"' in timemap
            if url.endswith("/p0.html"):  # the first page of each crawl
                assert format_time(when.astimezone(CET)) in log
        assert len({digits(when) for when, _ in versions} - listed) == 0


def test_what_leaves_and_comes_again_is_the_same(truth: tuple[Archive, Versions], tmp_path: Path) -> None:
    archive, versions = truth
    assert webarc("export", "--archive", str(archive.root), str(tmp_path / "out")).returncode == 0
    again = create(tmp_path / "again")
    assert run_command("import", "--archive", again.root, tmp_path / "out", timeout=1500).code == 0
    told = captures_of(archive)
    assert captures_of(again) == told
    assert {(url, when.astimezone(CET)) for url, seen in versions.items() for when, _ in seen} == {
        (url, when) for url, when, _, _ in told
    }


def captures_of(archive: Archive) -> set[tuple[str, datetime, int, str]]:
    """URL, time, status and body of all documents of an archive."""
    found: set[tuple[str, datetime, int, str]] = set()
    for each in select(archive, Asked()):
        assert not list(redirect_lists.every(each.store, each.tree))
        for document in documents(each.store, each.tree):
            meta = data_xml.metadata(each.store.read(document.data_xml))
            found.add((meta.url, meta.capture_time, meta.status, document.files[document.data]))
    return found
