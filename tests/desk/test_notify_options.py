"""At the desk: who is told of what is an option, programs are not; Today says what is amiss as notifications do."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from agent.maintenance import backups
from agent.notifying import notifier
from agent.notifying.notification_store import DeliveryState, NotificationStore
from tests.desk.conftest import TOML, World
from tests.support import sinks
from webarcfs.archive.config.settings import NotificationKind
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.repair import damage_note
from webarcfs.archive.system import files

pytestmark = pytest.mark.store


def test_who_is_told_of_what_is_an_option(own: World) -> None:
    adam = own.served.client("adam")
    page = adam.get("/options")
    ticked = page.form("/options")["notify.events"]
    assert ticked[0] == "" and ticked[1:] == list(NotificationKind)
    changes = {"notify.mail": "a@example.org\nb@example.org", "notify.digest": "17:30", "notify.disk_free": "5 GB"}
    assert adam.submit(page, "/options", {**changes, "notify.events": "disk-low"}).status == 200
    notify = own.served.desk.settings().notify
    assert (notify.mail, notify.digest, notify.disk_free) == (
        ("a@example.org", "b@example.org"),
        "17:30",
        5_000_000_000,
    )
    assert notify.events == ("disk-low",)
    shown = adam.get("/options")
    assert shown.form("/options")["notify.events"] == ["", "disk-low"]
    assert adam.submit(shown, "/options", {"notify.events": ""}).status == 200
    assert own.served.desk.settings().notify.events == ()


def test_a_wrong_value_keeps_what_was_ticked(own: World) -> None:
    adam = own.served.client("adam")
    page = adam.get("/options")
    wrong = adam.submit(page, "/options", {"notify.mail": "nobody", "notify.events": "agent-down"})
    assert wrong.status == 400 and wrong.page.xpath('//span[@id="f-notify-mail-fault"]')
    assert wrong.form("/options")["notify.events"] == ["", "agent-down"]
    assert wrong.form("/options")["notify.mail"] == ["nobody"]


def test_no_program_and_no_file_is_set_at_the_desk(own: World) -> None:
    """Whoever may change options must not thereby run programs of the machine."""
    adam = own.served.client("adam")
    page = adam.get("/options")
    names = {"command", "sendmail", "webhook_secret"}
    assert not {f"notify.{name}" for name in names} & set(page.form("/options"))
    sent = {
        "notify.command": "/bin/touch\n/tmp/x",
        "notify.sendmail": "/bin/sh",
        "notify.webhook_secret": "/etc/passwd",
    }
    form = {name: values[-1] for name, values in page.form("/options").items()}
    adam.post("/options", {**form, **sent})
    assert not any(f"{name} =" in own.archive.settings.read_text() for name in names)


def test_the_options_say_whether_a_program_is_run_and_how_to_send_a_test(own: World) -> None:
    adam = own.served.client("adam")
    page = adam.get("/options")
    assert "No program is run for notifications." in page.words and "notify test" not in page.words
    own.archive.settings.write_text(TOML + sinks.settings(command=["/usr/local/bin/tell"]))
    page = adam.get("/options")
    assert "A program is run for each notification, too." in page.words and "/usr/local" not in page.words
    assert f"webarc-agent notify test --archive {own.archive.root}" in page.words
    assert "Dieser Befehl schickt auf jedem Weg eine Probe:" in adam.get("/options?lang=de").words


def test_german_pages_have_german_words(own: World) -> None:
    adam = own.served.client("adam")
    german = adam.get("/options?lang=de")
    assert "ein Crawl ist unvollständig" in german.words and "Tägliche Zusammenfassung um" in german.words
    anna = own.served.client("anna").get("/options?lang=de")
    assert "kein Agent läuft" in anna.words and "agent-down" not in anna.words, "shown, not changed"


def test_today_and_notifications_say_the_same(own: World, tmp_path: Path) -> None:
    """The bounds are those of the options."""
    anna = own.served.client("anna")
    backup = tmp_path / "backup"
    backup.mkdir()
    files.write_json(backup / "backup.json", {"id": "x", "layout": 3, "finished": "2020-01-01T00:00:00"})
    texts = {"No agent runs": "agent-down", "nearly full": "disk-low", "is old": "backup-old"}
    told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))], disk_free="900000 GB")
    own.archive.settings.write_text(f'{TOML}\n[backup]\nto = "{backup}"\n{told}')
    words = anna.get("/").words
    outcome = notifier.watch(own.archive, threading.Event())
    kinds = {str(condition.kind) for condition in outcome.amiss}
    for text, kind in texts.items():
        assert text in words and kind in kinds
    waiting = {condition.record for condition in outcome.amiss if condition.kind == "waits-for-release"}
    assert waiting == {own.ids[at] for at in (1, 2, 4)}
    files.write_json(backup / "backup.json", {"id": "x", "layout": 3, "finished": None, "last": format_time(now())})
    assert "is old" not in anna.get("/").words, "one runs now"
    outcome = notifier.watch(own.archive, threading.Event())
    assert "backup-old" not in {str(condition.kind) for condition in outcome.amiss}
    own.archive.settings.write_text(f"{TOML}\n{told.replace('900000 GB', '1 kB')}backup_age = '1 day'\n")
    words = anna.get("/").words
    assert "nearly full" not in words and "is old" not in words


def test_today_says_that_people_are_not_told(own: World) -> None:
    anna = own.served.client("anna")
    assert "notifications could not be sent" not in anna.get("/").words
    own.archive.settings.write_text(TOML + sinks.settings(command=["/nowhere/tell"]))
    page = anna.get("/")
    assert "notifications could not be sent" in page.words and "/nowhere" not in page.words
    own.archive.settings.write_text(TOML)
    notifier.watch(own.archive, threading.Event())
    assert "notifications could not be sent" not in anna.get("/").words


def test_a_release_is_over_without_a_word(own: World, tmp_path: Path) -> None:
    told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))])
    own.archive.settings.write_text(TOML + told)
    notifier.watch(own.archive, threading.Event())
    messages = sinks.recorded(tmp_path / "told")
    assert sorted(message["type"] for message in messages) == ["agent-down", *["waits-for-release"] * 3]
    texts = [message["data"]["text"] for message in messages if message["type"] == "waits-for-release"]
    assert all(len(re.findall(r"\d{4}-\d\d-\d\d", text)) == 1 for text in texts), texts
    anna = own.served.client("anna")
    page = anna.get(f"/snapshot/{own.ids[4]}")
    assert anna.submit(page, f"/snapshot/{own.ids[4]}/release").status == 200
    outcome = notifier.watch(own.archive, threading.Event())
    assert outcome.queued == () and own.ids[4] not in {condition.record for condition in outcome.amiss}
    with NotificationStore(own.archive) as store:
        assert store.counts() == dict.fromkeys(DeliveryState, 0)


def test_today_says_what_was_damaged_and_which_backup_is_the_last(own: World, tmp_path: Path) -> None:
    anna = own.served.client("anna")
    words = anna.get("/").words
    assert "could not be read" not in words and "None is set up." in words and "by hand" not in words
    assert backups.backup(own.archive, tmp_path / "by hand").failed == ()
    damage_note.write(own.archive)
    page = anna.get("/")
    assert "Something in the archive could not be read. This command names it:" in page.words
    assert "webarc-agent verify --archive" in page.words and "by hand" in page.words
    assert "None is set up." in page.words and str(tmp_path / "by hand") not in page.words
    german = anna.get("/?lang=de").words
    assert "Etwas im Archiv war nicht lesbar. Dieser Befehl nennt es:" in german and "von Hand" in german
    damage_note.clear(own.archive)
    own.archive.settings.write_text(f'{TOML}\n[backup]\nto = "{tmp_path / "by hand"}"\n')
    words = anna.get("/").words
    assert "could not be read" not in words and "by hand" not in words and "none yet" not in words
    own.archive.settings.write_text(TOML)
