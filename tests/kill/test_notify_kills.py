"""kill -9 of who tells people, at many points: each receiver gets each notification, at most one of them twice."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from agent.notifying import notifier
from agent.notifying.notification_store import DeliveryState, NotificationStore
from tests.kill.notifyvictim import POINTS
from tests.support import forked, sinks
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

_SOME = ["statement:5", "statement:21", "statement:61", "taken:1", "taken:5"]
#: What is amiss in the archive: each of these kinds once.
_KINDS = {"agent-down", "disk-low", "backup-old"}


@pytest.mark.parametrize("point", POINTS if os.environ.get("WEBARC_SOAK") else _SOME)
def test_each_receiver_gets_all_and_at_most_one_twice(archive: Archive, tmp_path: Path, point: str) -> None:
    told = tmp_path / "told"
    with sinks.mail_sink(tmp_path) as mails, sinks.http_sink() as first, sinks.http_sink() as second:
        archive.settings.write_text(
            sinks.settings(
                mail=["a@example.org"], sendmail=str(mails.sendmail), webhook=[first.url, second.url],
                private_addresses=True, command=[str(sinks.recorder(tmp_path / "tell", told))], disk_free="900000 GB",
            )
            + f'[backup]\nto = "{tmp_path}/nowhere"\n[[publication]]\nname = "p"\nurls = ["http://e.org/"]\n'
        )  # fmt: skip
        done = forked.run([sys.executable, "-m", "tests.kill.notifyvictim", point, str(archive.root)])
        assert done.returncode == -signal.SIGKILL, done.stderr
        until(lambda: _tells_all(archive), "nothing waits any more")
        received = {
            "mail": [mail.id for mail in mails.mails],
            "command": [message["data"]["id"] for message in sinks.recorded(told)],
            "first": [request.headers["webhook-id"] for request in first.requests],
            "second": [request.headers["webhook-id"] for request in second.requests],
        }
        types = {request.headers["webhook-id"]: request.content["type"] for request in first.requests}
    assert sorted(types.values()) == sorted(_KINDS), "each event has one id"
    for who, ids in received.items():
        assert set(ids) == set(types), who
        assert len(ids) - len(set(ids)) <= 1, (who, Counter(ids))


def _tells_all(archive: Archive) -> bool:
    """Watch once; return whether nothing waits any more."""
    assert notifier.watch(archive, threading.Event()).failed == 0
    with NotificationStore(archive) as store:
        return store.counts() == dict.fromkeys(DeliveryState, 0)
