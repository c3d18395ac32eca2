"""A thousand redirects at five snapshots: what the archive answers is what the servers' log says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from agent.maintenance import backups
from agent.maintenance.verification import verify
from tests.support import warcs
from tests.support.archives import rows_of
from tests.support.crawls import crawl, read, store, through
from tests.support.imports import imported
from tests.support.secure import SecureHosts
from tests.support.site import Exchange, Site
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.url_lists import target_of

pytestmark = pytest.mark.crawl

ONE, TWO = "one.example", "two.example"
#: `make soak ARGS=redirects` has ten times as many.
MANY = int(os.environ.get("MANY_REDIRECTS", "20"))
SNAPSHOTS = 5

#: Status, and the body or the target.
Answer = tuple[int, str]
_GONE: Answer = (404, "")


@dataclass
class World:
    """What the servers say in the snapshot `now`, and what they said: `log`, by snapshot and URL."""

    now: int = 0
    log: dict[tuple[int, str], Answer] = field(default_factory=dict)

    def http(self, exchange: Exchange) -> None:
        """Answer what comes through the proxy."""
        exchange.send(self._response(f"http://{exchange.request.host}{exchange.request.path}"))

    def https(self, host: str, path: str) -> bytes:
        """Answer what is asked over TLS."""
        return self._response(f"https://{host}{path}")

    def _response(self, url: str) -> bytes:
        status, text = self._answer(*split(url.partition("://")[2]), safe=url.startswith("https:"))
        self.log[self.now, url] = (status, text)
        body = b"" if status in range(300, 400) else text.encode()
        location = f"Location: {text}\r\n" if status in range(300, 400) else ""
        head = f"HTTP/1.1 {status} It\r\n{location}Content-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def _answer(self, host: str, path: str, *, safe: bool) -> Answer:
        kind, *parts = path.split("/")
        if (host, path, safe) == (ONE, "", False):
            return 200, "".join(f'<a href="{url}">x</a>' for url in self._urls())
        if host == TWO:
            return (200, f"page {path}") if kind == "q" else _GONE
        kinds = {"s": self._scheme, "f": self._folder, "c": self._chain, "l": self._loop, "p": self._page}
        if kind not in kinds or (safe and kind != "s"):
            return _GONE
        return kinds[kind](int(parts[0]), parts[-1], safe) or (200, f"page {path}")

    # Each returns None for the page of its path.

    def _scheme(self, number: int, _last: str, safe: bool) -> Answer | None:
        page_is_safe = self.now < 3 or number % 5 != 0
        other = "http" if safe else "https"
        return None if safe == page_is_safe else (301, f"{other}://{ONE}/s/{number}")

    def _folder(self, number: int, last: str, _safe: bool) -> Answer | None:
        if self.now == 4 and number % 7 == 0:
            return None if last else _GONE
        return (301 if self.now < 2 or number % 3 else 308, f"/f/{number}/") if last else None

    def _chain(self, number: int, last: str, _safe: bool) -> Answer | None:
        step = int(last)
        to = f"{step + 1}" if (self.now, number, step) != (1, 3, 5) else "20#part"
        return (302, to) if step < 20 else None

    def _loop(self, number: int, last: str, _safe: bool) -> Answer | None:
        ends = self.now == 2 and number % 2 and last == "3"
        return 307, "/c/0/20" if ends else f"/l/{number}/{(int(last) + 1) % 4}"

    def _page(self, number: int, _last: str, _safe: bool) -> Answer | None:
        if self.now == 4 and number % 4 == 0:
            return _GONE
        return (303, f"http://{TWO}/q/{number}") if self.now % 2 else (200, f"page p/{number} {self.now // 2}")

    def _urls(self) -> Iterator[str]:
        for number in range(MANY):
            yield f"/s/{number}"
            yield f"/f/{number}"
            yield f"/c/{number // 20}/{number % 20}"
            yield f"/l/{number // 4}/{number % 4}"
            if self.now < 3 or number % 10 != 9:
                yield f"/p/{number}"


def test_each_answer_is_that_of_the_servers_log(archive: Archive, site: Site, tmp_path: Path) -> None:
    """Schemes, folders, chains, loops, pages that come and go; after an older import, `recover` and `restore`, too."""
    world = World()
    site.unknown_host = world.http
    tags: list[dict[str, CommitTag]] = []
    with SecureHosts(tmp_path, world.https) as secure:
        safe = ("-e", f"https_proxy={secure.proxy}", "--no-check-certificate")
        for number in range(SNAPSHOTS):
            world.now = number
            done = crawl(
                archive, f"http://{ONE}/", hosts=(TWO,), wget_args=through(site.proxy) + safe, private_addresses=True
            )
            assert done.complete, done.warnings
            tags.append({tag.domain: tag for tag in map(CommitTag.parse, done.tags)})
    asked = {key: answer for key, answer in world.log.items() if not key[1].endswith("/robots.txt")}
    led = [key for key, (status, _) in asked.items() if status in range(300, 400)]
    assert len({url for _, url in led}) >= 5 * MANY and len(asked) >= 25 * MANY
    _all_hold(archive, tags, asked)
    older = warcs.record(
        "response", f"http://{ONE}/f/1", warcs.http(b"", status="301 It", Location="/old"), "2020-01-01T00:00:00Z"
    )
    imported(archive, warcs.write(tmp_path / "old.warc", [older]), name="old")
    _all_hold(archive, tags, asked)
    with Database(archive.database) as database:
        before = list(database.dump_redirects()), rows_of(archive)
    assert list(verify(archive)) == []
    recover(archive)
    with Database(archive.database) as database:
        assert (list(database.dump_redirects()), rows_of(archive)) == before
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = open_archive(tmp_path / "restored")
    _all_hold(restored, tags, asked)
    recover(restored)
    with Database(restored.database) as database:
        assert (list(database.dump_redirects()), rows_of(restored)) == before
    assert restored.changes.read_bytes() == archive.changes.read_bytes()


def _all_hold(archive: Archive, tags: list[dict[str, CommitTag]], asked: dict[tuple[int, str], Answer]) -> None:
    every = {url for _, url in asked if "/s/" not in url}  # both schemes of those have one ARC
    not_asked = {(number, url): _GONE for number in range(SNAPSHOTS) for url in every if (number, url) not in asked}
    assert not_asked
    asked = asked | not_asked
    for (number, url), (status, text) in asked.items():
        domain, arc = split(arc_path(url))
        tag = tags[number].get(domain)
        wrong = f"{url} in snapshot {number} (the server said {status} {text})"
        repository = store(archive, domain)
        state = repository.snapshot_tree(tag) if tag is not None else None
        line = redirect_lists.of_url(repository, state, url) if state else None
        if status in range(300, 400):
            assert line is not None and (line.status, line.target) == (status, target_of(url, text)), wrong
        else:
            assert line is None, wrong
            has_page = state is not None and repository.find(state, f"{arc}/data.xml") is not None
            assert has_page == (status == 200), wrong
            if has_page and tag is not None and text.startswith("page"):
                assert read(archive, domain, arc, str(repository.ref(tag.ref))).decode() == text, wrong
