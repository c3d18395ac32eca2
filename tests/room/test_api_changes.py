"""News of the API: commitTags as lines, and as server-sent events that resume, for many who listen at once."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, published, served
from tests.support.waiting import PATIENCE, until
from webarcfs.api import changes
from webarcfs.api.routes import PREFIX
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.catalogue.workflow import Decision, apply_decision
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CET, CommitTag, compact_time
from webarcfs.web import limits

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
START = datetime(2021, 3, 1, 12, tzinfo=CET)
PATH = f"{PREFIX}/changes"


def publish(archive: Archive, number: int, *, held: bool = False) -> CommitTag:
    state = RecordState.CHECKED if held else RecordState.RELEASED
    pages: dict[str, Page | None] = {f"http://{DOMAIN}/": Page(f"<p>{number}".encode())}
    return published(archive, DOMAIN, pages, START + timedelta(minutes=number), state=state, held=held)


def release(archive: Archive, tag: CommitTag) -> None:
    catalogue = Catalogue(archive)
    record, _ = catalogue.read(f"{compact_time(tag.crawl_time)}-p")
    catalogue.save([apply_decision(record, Decision.RELEASE, "test", "")], "test", "release")


@dataclass(frozen=True)
class Event:
    """An event as it came; the id is empty where it had none."""

    tag: str
    id: str


class Listener:
    """Somebody who listens."""

    def __init__(self, room: Served, since: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", room.port, timeout=PATIENCE)
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": since} if since else {})
        self._connection.request("GET", PATH, headers=headers)
        self.response = self._connection.getresponse()

    def begun(self) -> Listener:
        """Wait until it is told that it listens."""
        assert self.response.status == 200
        assert self.response.headers["X-Accel-Buffering"] == "no"
        assert self.response.readline() == b": listening\n" and self.response.readline() == b"\n"
        return self

    def event(self) -> Event:
        """The next event."""
        fields = {"id": ""}
        while (line := self.response.readline().decode().rstrip("\n")) or "data" not in fields:
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        assert fields["event"] == "snapshot"
        return Event(fields["data"], fields["id"])

    def close(self) -> None:
        self.response.close()
        self._connection.close()


@contextmanager
def listening(room: Served, since: str = "") -> Iterator[Listener]:
    with closing(Listener(room, since)) as listener:
        yield listener.begun()


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = archives.make_archive(tmp_path)
    publish(archive, 0)
    recover(archive)
    return archive


@pytest.fixture
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as room:
        yield room


def tags_of(room: Served, since: str = "") -> list[str]:
    columns, *rows, end = map(json.loads, room.get(f"{PATH}?since={since}").body.splitlines())
    assert columns == ["commitTag"] and end == {"end": True, "rows": len(rows)}
    return [row[0] for row in rows]


def test_what_there_is_comes_in_lines(archive: Archive, room: Served) -> None:
    tags = [str(CommitTag(START, DOMAIN)), *(str(publish(archive, number)) for number in range(1, 5))]
    assert tags_of(room) == tags == list(Feed(archive.changes).lines())
    for number, tag in enumerate(tags, 1):
        assert tags_of(room, tag) == tags[number:]


def test_an_archive_without_news_has_none(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    with served(archive) as room:
        assert tags_of(room) == []
        with listening(room) as listener:
            tag = publish(archive, 0)
            assert listener.event() == Event(str(tag), str(tag))


def test_an_unknown_place_and_one_that_readers_may_not_see_are_one_answer(archive: Archive, room: Served) -> None:
    held, never = publish(archive, 1, held=True), CommitTag(START + timedelta(minutes=2), DOMAIN)
    for headers in ({}, {"Accept": "text/event-stream"}):
        answers = [room.get(f"{PATH}?since={tag}", headers) for tag in (held, never)]
        assert [answer.status for answer in answers] == [404, 404]
        assert answers[0].text.replace(str(held), "-") == answers[1].text.replace(str(never), "-")
        assert room.get(f"{PATH}?since=0", headers).status == 400
    assert str(held) not in tags_of(room)
    head = room.get(PATH, {"Accept": "text/event-stream"}, method="HEAD")
    assert head.status == 200 and head.headers["content-type"].startswith("text/event-stream")


def test_whoever_is_cut_again_and_again_gets_all_once_and_in_order(archive: Archive, room: Served) -> None:
    """A hundred publications; the connection is closed after each seventh event, wherever that is."""
    last, received = str(CommitTag(START, DOMAIN)), []
    expected: list[str] = []
    while len(received) < 100:
        with listening(room, last) as listener:
            for _ in range(7):
                if len(expected) == len(received):
                    expected += [str(publish(archive, len(expected) + more)) for more in range(1, 6)]
                event = listener.event()
                assert event.tag == event.id
                received.append(event.tag)
            last = event.id
        expected.append(str(publish(archive, len(expected) + 1)))  # while nobody listens
    assert received == expected[: len(received)]


def test_a_held_snapshot_is_told_once_it_is_released(archive: Archive, room: Served) -> None:
    with listening(room) as listener:
        held = [publish(archive, number, held=True) for number in (1, 2)]
        shown = publish(archive, 3)
        assert listener.event() == Event(str(shown), str(shown))
        # It lies before what was told, so the listener's place stays where it is.
        release(archive, held[0])
        assert listener.event() == Event(str(held[0]), "")
        later = publish(archive, 4, held=True)
        release(archive, later)
        assert listener.event() == Event(str(later), str(later))
        release(archive, held[1])
        assert listener.event() == Event(str(held[1]), "")
    assert tags_of(room, str(shown)) == [str(later)]


def test_twenty_listeners_get_each_snapshot_once(archive: Archive, room: Served) -> None:
    with ExitStack() as stack:
        listeners = [stack.enter_context(listening(room)) for _ in range(20)]
        tags = [str(publish(archive, number)) for number in range(1, 6)]
        for listener in listeners:
            assert [listener.event().tag for _ in tags] == tags


def test_one_listener_too_many_is_asked_to_come_again(room: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WATCHERS", 2)
    with listening(room), closing(Listener(room).begun()) as leaving:
        refused = room.get(PATH, {"Accept": "text/event-stream"})
        assert refused.status == 503 and refused.headers["retry-after"]
        assert json.loads(refused.body)["type"] == "urn:webarcfs:error:Busy"
        assert tags_of(room)  # whoever does not stay is answered
        leaving.close()

        def has_room() -> bool:
            with closing(Listener(room)) as listener:
                return listener.response.status == 200

        until(has_room, "who has left makes room")


def test_a_listener_that_never_reads_keeps_no_other_waiting(archive: Archive, room: Served) -> None:
    with socket.socket() as deaf, listening(room) as listener:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.connect(("127.0.0.1", room.port))
        deaf.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
        tags = [str(publish(archive, number)) for number in range(1, 30)]
        assert [listener.event().tag for _ in tags] == tags
        assert tags_of(room)[1:] == tags


def test_who_is_quiet_hears_that_the_server_is_there(
    archive: Archive, room: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_QUIET", 0.05)
    with listening(room) as listener:
        for _ in range(3):
            assert listener.response.readline() == b": still here\n" and listener.response.readline() == b"\n"
        tag = str(publish(archive, 1))
        assert listener.event().tag == tag


def test_a_feed_that_was_rewritten_is_followed_on(archive: Archive, room: Served) -> None:
    with listening(room) as listener:
        first = publish(archive, 1)
        assert listener.event().tag == str(first)
        other = CommitTag(START - timedelta(days=1), DOMAIN)
        feed = Feed(archive.changes)
        feed.rewrite([other, *map(CommitTag.parse, list(feed.lines()))])
        second = publish(archive, 2)
        assert listener.event().tag == str(second)


def test_a_server_that_ends_ends_its_streams(archive: Archive) -> None:
    """They come to their end, and are not cut when the time for requests is over."""
    program = "from webarcfs.commands.cli import main; main()"
    command = [
        sys.executable, "-P", "-c", program, "serve", "--archive", str(archive.root), "--listen", "127.0.0.1:0",
        "--replay-listen", "same", "--workers", "1", "--access-log", "off",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            match = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert match is not None
            with listening(Served(int(match[1]), None)) as listener:
                process.send_signal(signal.SIGTERM)
                assert listener.response.read() == b""
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
