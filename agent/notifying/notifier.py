"""Looks at an archive once, queues what is new, and delivers what is due.

Any process may do so: the agent has one for it, and `webarc-agent watch` is another, which also says that no agent
runs. One at a time delivers. Each way has a thread, so a receiver that hangs delays no other one. After a failure the
way rests: a minute at first, then longer, and after a day the notification is given up. That is logged and counted, and
is no notification itself.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from agent.notifying.changes import Known, Notification, advance, lasting
from agent.notifying.channels import Channel, Reply, channels_of, faults_of
from agent.notifying.conditions import AmissCondition
from agent.notifying.messages import one_line
from agent.notifying.notification_store import DeliveryState, NotificationStore, SeenCrawl
from agent.notifying.observing import WatchedArchive, observe
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import Interrupted, WebarcError
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)
#: Seconds from each try to the next one, a day in all; after the last try a notification is given up.
PAUSES = (60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 6 * 3600, 10 * 3600)
#: Seconds for which one run begins new deliveries of a way, and that one waits for threads when it is stopped.
_RUN_SECONDS, _END_SECONDS = 120.0, 2.0
_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True, slots=True)
class WatchOutcome:
    """What one look found: what is amiss, what was queued, how many deliveries failed, and faults of the settings."""

    amiss: tuple[AmissCondition, ...]
    queued: tuple[Notification, ...]
    failed: int
    faults: tuple[str, ...]


def watch(archive: Archive, stop: threading.Event) -> WatchOutcome:
    """Look once, and deliver. Raises SettingsError if webarc.toml is invalid, OSError, Busy."""
    apart: dict[str, list[str]] = {}
    settings, _ = settings_files.load(archive.settings, apart=apart)
    channels = channels_of(archive, settings)
    watched = WatchedArchive(archive, settings, now(), frozenset(apart))
    with NotificationStore(archive, checked=True) as store:
        amiss, queued = _observe(watched, store, [channel.target for channel in channels])
    for notification in queued:
        _log.info("notification %s: %s", notification.kind, one_line(notification.text))
    failed = deliver(archive, channels, stop)
    faults = [fault for own_faults in apart.values() for fault in own_faults]
    faults += [fault for channel in channels for fault in channel.faults()]
    return WatchOutcome(amiss, queued, failed, tuple(faults))


def _observe(
    watched: WatchedArchive, store: NotificationStore, targets: list[str]
) -> tuple[tuple[AmissCondition, ...], tuple[Notification, ...]]:
    """Return what is amiss, and the notifications that follow, which are queued."""
    origin = f"{socket.gethostname()}:{watched.archive.root}"
    # Where nobody is told, all is kept: whoever is told later hears of all that is amiss then.
    wanted = watched.settings.notify if targets else replace(watched.settings.notify, events=())

    def take(
        known: Known, seen: Mapping[str, SeenCrawl]
    ) -> tuple[Known, Mapping[str, SeenCrawl], tuple[Notification, ...]]:
        observation, crawls = observe(watched, seen)
        after, messages = advance(known, observation, wanted, origin)
        return after, crawls, messages

    known, messages = store.take(take, targets, watched.at)
    return lasting(known, watched.at, watched.settings.notify), messages


def overview(archive: Archive, settings: Settings) -> dict[str, Any]:
    """Return what `status` says of notifications: how many wait or were given up, and faults of the settings."""
    counts = dict.fromkeys(DeliveryState, 0)
    if archive.notifications.exists():
        with suppress(WebarcError, OSError), NotificationStore(archive) as store:
            counts = store.counts()
    return {
        "waiting": counts[DeliveryState.WAITING],
        "given_up": counts[DeliveryState.GIVEN_UP],
        "faults": faults_of(archive, settings),
    }


# -- deliveries --------------------------------------------------------------------------------------------------------


def deliver(archive: Archive, channels: list[Channel], stop: threading.Event) -> int:
    """Deliver what is due; return how many tries failed. While another process delivers, nothing is done.

    Where `stop` is set, a program that is being told is killed; it is told again.
    """
    with locks.if_free(archive.notifications_lock) as is_free:
        if not is_free:
            return 0
        with NotificationStore(archive) as store:
            store.sweep([channel.target for channel in channels], int(time.time()))
        deliveries = [_ChannelDelivery(archive, channel, stop) for channel in channels]
        for delivery in deliveries:
            delivery.start()
        for delivery in deliveries:
            while delivery.is_alive() and not stop.is_set():
                delivery.join(_SECONDS_BETWEEN_LOOKS)
        for delivery in deliveries:
            delivery.join(_END_SECONDS)  # a request that is under way ends with the process
        return sum(delivery.failed for delivery in deliveries)


class _ChannelDelivery(threading.Thread):
    """Delivers what is due for one channel, in order, until a try fails."""

    def __init__(self, archive: Archive, channel: Channel, stop: threading.Event) -> None:
        super().__init__(name=channel.target, daemon=True)
        self._archive = archive
        self._channel = channel
        self._stop_event = stop
        self.failed = 0

    def run(self) -> None:
        """Deliver."""
        try:
            with NotificationStore(self._archive) as store:
                self._deliver(store)
        except Interrupted:
            return
        except (WebarcError, OSError) as error:
            self.failed += 1
            _log.error("notifications by %s: %s", self._channel.target, error)

    def _deliver(self, store: NotificationStore) -> None:
        end = time.monotonic() + _RUN_SECONDS
        while time.monotonic() < end and not self._stop_event.is_set():
            due = store.next(self._channel.target, int(time.time()), max(PAUSES))
            if due is None:
                return
            number, notification, tries = due
            store.begin(number, self._channel.target)
            reply = self._channel.send(notification, self._stop_event)
            if reply.is_taken:
                store.delivered(number, self._channel.target)
                _log.info("notification %s: %s by %s", notification.id, reply.text, self._channel.target)
            else:
                self.failed += 1
                self._fail(store, number, notification, tries + 1, reply)
                return

    def _fail(
        self, store: NotificationStore, number: int, notification: Notification, tries: int, reply: Reply
    ) -> None:
        target, at = self._channel.target, int(time.time())
        if tries > len(PAUSES) or reply.is_final:
            store.failed(number, target, DeliveryState.GIVEN_UP, tries=tries, due=at, answer=reply.text)
            _log.error("notification %s by %s is given up: %s", notification.id, target, reply.text)
            return
        pause = PAUSES[tries - 1]
        store.failed(number, target, DeliveryState.WAITING, tries=tries, due=at + pause, answer=reply.text)
        _log.warning("notification %s by %s: %s; next try in %d s", notification.id, target, reply.text, pause)
