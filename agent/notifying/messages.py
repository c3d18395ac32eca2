"""What a notification says: as JSON for programs and URLs, as a mail for people. Pure.

Texts come from sites, people and programs. So each is one line of printable characters here, and of a bounded length:
what is left out is counted. A mail says that a program wrote it (RFC 3834), so that no absent person answers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from agent.notifying.changes import Notification, NotificationGroup
from webarcfs.archive.config.settings import NotificationKind
from webarcfs.archive.model.metadata import format_time, format_utc

_LONGEST_SUBJECT, _LONGEST_TEXT = 150, 2000
#: Parts that a mail names; the JSON has all.
_MOST_PARTS = 100
#: The commands that show more of it, and those that do something about it.
_TO_SEE: Mapping[str, str] = {
    NotificationKind.CRAWL_FAILED: "webarc-agent job show {job}",
    NotificationKind.CRAWL_INCOMPLETE: "webarc-agent report {job}",
    NotificationKind.CRAWL_SHRANK: "webarc-agent report {job}",
    NotificationKind.CHECK_FAILED: "webarc-agent record show {record}",
    NotificationKind.WAITS_FOR_RELEASE: "webarc-agent record show {record}",
    NotificationKind.NOTHING_CAPTURED: "webarc-agent status",
}
_TO_DO: Mapping[str, str] = {
    NotificationKind.WAITS_FOR_RELEASE: "webarc-agent record release {record}",
    NotificationKind.INDEX_BEHIND: "webarc-agent index",
    NotificationKind.DAMAGED: "webarc-agent verify",
    NotificationKind.AGENT_DOWN: "webarc-agent start",
    NotificationKind.BACKUP_OLD: "webarc-agent backup DIR",
}


def one_line(text: str, most: int = _LONGEST_TEXT) -> str:
    """Return a text as one line of printable characters, cut to `most` of them with a word on how many are left out."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.split())
    if len(line) <= most:
        return line
    kept = line[: most - 30].rstrip()
    return f"{kept} … ({len(line) - len(kept)} more characters)"


# -- JSON --------------------------------------------------------------------------------------------------------------


def payload(notification: Notification, archive: str, host: str) -> dict[str, Any]:
    """Return what programs get: the members of Standard Webhooks, `type`, `timestamp` and `data`."""
    return {
        "type": notification.kind,
        "timestamp": format_utc(notification.at),
        "data": {"archive": one_line(archive), "host": one_line(host), **_data(notification)},
    }


def _data(notification: Notification) -> dict[str, Any]:
    values = {
        "id": notification.id,
        "text": one_line(notification.text),
        "since": format_utc(notification.since),
        "subject": notification.subject,
        "job": notification.job,
        "record": notification.record,
        "recovered_from": notification.of,
    }
    data: dict[str, Any] = {name: value for name, value in values.items() if value}
    if notification.parts:
        data["events"] = [{"type": part.kind, **_data(part)} for part in notification.parts]
    return data


# -- mail --------------------------------------------------------------------------------------------------------------


def mail(notification: Notification, archive: str, host: str, sender: str, receivers: tuple[str, ...]) -> bytes:
    """Return a mail with lines as sendmail(8) wants them."""
    message = EmailMessage()
    message["Message-ID"] = f"<{notification.id}@{sender.rpartition('@')[2]}>"
    message["Date"] = format_datetime(notification.at)
    message["From"] = sender
    message["To"] = ", ".join(receivers)
    message["Subject"] = subject_of(notification, archive)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n".join(_lines(notification, archive, host)) + "\n", charset="utf-8", cte="quoted-printable")
    return bytes(message)


def subject_of(notification: Notification, archive: str) -> str:
    """Return the subject of a mail in plain words: which archive, and what is so."""
    return one_line(f"{one_line(archive, 40)}: {notification.text}", _LONGEST_SUBJECT)


def _lines(notification: Notification, archive: str, host: str) -> Iterator[str]:
    yield _sentence(notification.text)
    yield ""
    for part in notification.parts[:_MOST_PARTS]:
        yield f"- {_sentence(part.text)} Since {format_time(part.since)}."
    if (more := len(notification.parts) - _MOST_PARTS) > 0:
        yield f"- and {more} more, which `webarc-agent watch` lists"
    if notification.parts:
        yield ""
    yield f"Archive: {one_line(archive)} on {one_line(host)}"
    if notification.job:
        yield f"Job: {one_line(notification.job)}"
    if notification.record:
        yield f"Record: {one_line(notification.record)}"
    if not notification.parts and notification.kind != NotificationGroup.TEST:
        yield f"Since: {format_time(notification.since)} (CET)"
    for label, commands in (("See", _TO_SEE), ("What to do", _TO_DO)):
        if command := commands.get(notification.kind):
            yield f"{label}: {one_line(command.format(job=notification.job, record=notification.record))}"


def _sentence(text: str) -> str:
    line = one_line(text)
    return f"{line[:1].upper()}{line[1:]}{'' if line.endswith(('.', '!', '?')) else '.'}"
