"""The log says why a request was slow."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.archives import DOMAIN, make_archive, publish, store_of
from webarcfs.mount.adapters.libfuse3.session import ReceiverTurn
from webarcfs.mount.adapters.requests import SLOW, SlowRequests
from webarcfs.vfs import content
from webarcfs.vfs.content import Blobs

pytestmark = pytest.mark.store


def test_a_slow_request_says_what_took_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A body that git gives slowly; not what another request, or another thread, waited for before."""
    archive = make_archive(tmp_path)
    publish(archive, pages={"a": b"body"})
    store = store_of(archive)
    head = store.head()
    entry = store.find(head.tree, "a/data") if head is not None else None
    assert entry is not None
    read = store.read

    def slowly(blob: str) -> bytes:
        time.sleep(SLOW * 1.2)
        return read(blob)

    monkeypatch.setattr(store, "read", slowly)
    with content.timed("an earlier request"):
        time.sleep(0.03)
    requests = SlowRequests(lambda where: f"/{DOMAIN}/{where}")
    begun = time.monotonic()
    assert Blobs().open(store, entry.oid, 4).read(0, 4) == b"body"
    with caplog.at_level(logging.INFO):
        requests.note("read", "a", begun)
    assert f"slow: read /{DOMAIN}/a took" in caplog.text and "; reading its body from git took 0.1" in caplog.text
    assert "earlier" not in caplog.text
    found: list[list[str]] = []
    other = threading.Thread(target=lambda: found.append(content.causes_since(begun)))
    other.start()
    other.join()
    assert found == [[]]


def test_what_takes_no_time_is_no_cause() -> None:
    begun = time.monotonic()
    with content.timed("nothing"):
        pass
    assert content.causes_since(begun) == []


def test_a_slow_request_says_that_it_kept_the_turn() -> None:
    """Others wait until the lookout acts; not where the request passed the turn on by itself."""
    turn, found = ReceiverTurn(), []

    def process(*, passes_on: bool) -> bool:
        begun = time.monotonic()
        if passes_on:
            turn.pass_on()
        lookout = threading.Thread(target=lambda: turn.look(turn.look(0)))
        lookout.start()
        lookout.join()
        found.append(content.causes_since(begun))
        return False

    for passes_on in (False, True):
        turn.work(lambda: True, partial(process, passes_on=passes_on))
    assert found == [["no other request was taken until the lookout acted"], []]
