"""A client of a server has the answers and the errors of a reader's client on the directory (/Cl-2.2/, /Sv-2/)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.histories import DOMAIN
from tests.support.rooms import served
from tests.support.two_publications import TAGS, two_publications
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.links import AskedKind, Question
from webarcfs.archive.index.query import DocumentOrigin
from webarcfs.archive.model.errors import WebarcError
from webarcfs.client import WebarchiveClient
from webarcfs.search.hits import HitOrder

pytestmark = pytest.mark.store

_URL = f"http://{DOMAIN}/"

Asked = Callable[[WebarchiveClient], Any]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return two_publications(tmp_path_factory.mktemp("agree"))


@pytest.fixture(scope="module")
def clients(archive: Archive) -> Iterator[tuple[WebarchiveClient, WebarchiveClient]]:
    with (
        served(archive) as room,
        WebarchiveClient(archive.root, reader="") as local,
        WebarchiveClient(f"http://127.0.0.1:{room.port}") as remote,
    ):
        yield local, remote


QUESTIONS: dict[str, Asked] = {
    "domains": lambda client: client.domains(),
    "snapshots": lambda client: client.snapshots(DOMAIN),
    "no such domain": lambda client: client.snapshots("none.example"),
    "all": lambda client: sorted(map(str, client.select())),
    "where": lambda client: client.select("url LIKE '%html' AND title <> 'a;é'", "url DESC, crawlTime", 3),
    "limit 0": lambda client: client.select(limit=0),
    "of a publication": lambda client: client.select(order_by="path", origin=DocumentOrigin(DOMAIN, "q")),
    "of no publication": lambda client: client.select(origin=DocumentOrigin(publication="none")),
    "bad condition": lambda client: client.select("nonsense = 1"),
    "bad order": lambda client: client.select("", "url ASC, ("),
    "a condition that ends": lambda client: client.select("1; DROP TABLE x"),
    "surrogate": lambda client: client.select("url = '\udcff'"),
    "at": lambda client: [list(client.at(tag)) for tag in TAGS[:2]],
    "after": lambda client: [list(client.at(TAGS[1], after=meta.path)) for meta in client.at(TAGS[1])],
    "after none": lambda client: list(client.at(TAGS[1], after=f"/{DOMAIN}/none")),
    "at a hidden one": lambda client: list(client.at(TAGS[2])),
    "changed": lambda client: [list(client.changed(tag)) for tag in TAGS[:2]],
    "changed by a hidden one": lambda client: list(client.changed(TAGS[2])),
    "names": lambda client: [client.list(meta) for meta in client.select(order_by="crawlTime, path")],
    "listings": lambda client: [client.listing(meta) for meta in client.select(order_by="crawlTime, path")],
    "files": lambda client: [
        (name, client.open_read(meta, name).read())
        for meta in client.select(order_by="crawlTime, path")
        for name in client.list(meta)
        if ("." in name and not name.endswith(".html")) or name.startswith("data")
    ],
    "data": lambda client: [
        client.open_read(meta, client.data_name(meta)).read() for meta in client.select(order_by="crawlTime, path")
    ],
    "whole snapshots": lambda client: [
        sorted(
            (str(document.metadata), {name: stream.read() for name, stream in document.files.items()})
            for document in client.read_all(tag)
        )
        for tag in TAGS[:2]
    ],
    "a hidden snapshot": lambda client: list(client.read_all(TAGS[2])),
    "no such name": lambda client: client.open_read(client.select(limit=1)[0], "none"),
    "a folder": lambda client: client.open_read(client.select("path LIKE '%a.html'", "crawlTime", 1)[0], "c.html"),
    "no name": lambda client: client.open_read(client.select(limit=1)[0], ""),
    "no node": lambda client: client.get_data(client.select(limit=1)[0], "words"),
    "records": lambda client: list(client.records()),
    "records of a publication": lambda client: list(client.records("q")),
    "records of none": lambda client: list(client.records("none")),
    "search": lambda client: client.search("minutes"),
    "search hidden": lambda client: client.search("zebra"),
    "search narrowed": lambda client: client.search(
        "minutes OR report", present=True, domain=DOMAIN, sort=HitOrder.URL, limit=2, offset=1, publication="p"
    ),
    "search at a snapshot": lambda client: client.search("minutes", at=TAGS[0], sort=HitOrder.DATE),
    "search at a time": lambda client: client.search("minutes", at=TAGS[0].crawl_time + timedelta(hours=3), exact=True),
    "search for nothing": lambda client: client.search("mintues"),
    "search nonsense": lambda client: client.search('"'),
    "links from": lambda client: list(client.links(Question(path=f"/{DOMAIN}/a.html", ever=True))),
    "links to": lambda client: list(client.links(Question(targets=(f"{_URL}b.html", "mailto:a@example.org")))),
    "links by a word": lambda client: list(client.links(Question(word="report", at=TAGS[0]))),
    "links broken": lambda client: list(client.links(Question(broken=True, kind=AskedKind.HTTP, limit=1))),
    "links external": lambda client: list(client.links(Question(external=True, origin=DocumentOrigin(DOMAIN, "p")))),
}


def _answered(question: Asked, client: WebarchiveClient) -> object:
    try:
        return question(client)
    except WebarcError as error:
        return type(error).__name__


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_server_answers_as_the_directory_does(clients: tuple[WebarchiveClient, WebarchiveClient], name: str) -> None:
    local, remote = (_answered(QUESTIONS[name], client) for client in clients)
    assert remote == local
    assert local or name in ("limit 0", "of no publication", "records of none", "no node")


def test_texts_of_errors_agree(clients: tuple[WebarchiveClient, WebarchiveClient]) -> None:
    for condition in ("nonsense = 1", "title = 'x", "count(*) > 1"):
        texts = []
        for client in clients:
            with pytest.raises(WebarcError) as raised:
                client.select(condition)
            texts.append(str(raised.value))
        assert texts[0] == texts[1]
