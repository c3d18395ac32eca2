"""People are told by a real SMTP server, a real HTTP server and a real program; a receiver that hangs delays nobody."""

from __future__ import annotations

import base64
import hmac
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.crawl.job_folder import JobState, Phase, save_item
from agent.indexing.recovery import recover
from agent.notifying import channels, notifier
from agent.notifying.changes import Notification, NotificationGroup
from agent.notifying.channels import WebhookChannel, channels_of, run_program
from agent.notifying.notification_store import MOST_WAITING, DeliveryState, NotificationStore
from agent.notifying.notifier import PAUSES
from agent.notifying.observing import WatchedArchive, observe
from agent.service import agent_status
from tests.support import crawls, sinks
from tests.support.agents import agent, configure, reports
from tests.support.archives import make_archive
from tests.support.crawls import run_command, running_command
from tests.support.disks import small_disk
from tests.support.rooms import Page, published
from tests.support.sinks import HttpSink, MailSink, Posted
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import NotificationKind
from webarcfs.archive.model.errors import Interrupted, SettingsError
from webarcfs.archive.model.metadata import compact_time, format_time, now
from webarcfs.archive.system import files

archive = crawls.archive
pytestmark = pytest.mark.crawl
#: A secret, and its key.
KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
_PUBLICATION = '[[publication]]\nname = "a"\nurls = ["http://www.example.org/"]\n'


@pytest.fixture
def mails(tmp_path: Path) -> Iterator[MailSink]:
    with sinks.mail_sink(tmp_path) as sink:
        yield sink


@pytest.fixture
def hook() -> Iterator[HttpSink]:
    with sinks.http_sink() as sink:
        yield sink


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a>')
        site.add_html("/a", "a")
        yield site


def by_all_ways(tmp_path: Path, mails: MailSink, hook: HttpSink, **more: Any) -> str:
    """The table [notify] with a mail address, a URL and a program."""
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    return sinks.settings(
        mail=["a@example.org", "b@example.org"],
        sendmail=str(mails.sendmail),
        webhook=[hook.url],
        webhook_secret=str(secret),
        private_addresses=True,
        command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))],
        **more,
    )


def add_report(archive: Archive, publication: str, seconds_ago: int, **summary: Any) -> str:
    """The report of a crawl that has ended."""
    at = now() - timedelta(seconds=seconds_ago)
    name = f"{compact_time(at)}-{publication}"
    (archive.reports / name).mkdir()
    content = {"job": name, "complete": True, "finished": format_time(at), "documents": {"text/html": 1}, **summary}
    files.write_json(archive.reports / name / "summary.json", content)
    return name


def watch(archive: Archive) -> notifier.WatchOutcome:
    return notifier.watch(archive, threading.Event())


def is_signed(request: Posted) -> bool:
    """Verify a request as the specification of Standard Webhooks says, by itself."""
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(KEY, signed, "sha256").digest()).decode()
    return request.headers["webhook-signature"] == f"v1,{expected}"


# -- arriving ----------------------------------------------------------------------------------------------------------


def test_each_event_arrives_by_each_way(archive: Archive, tmp_path: Path, mails: MailSink, hook: HttpSink) -> None:
    """All kinds that need no catalogue at once: each arrives once, with the same id everywhere."""
    more = f'[backup]\nto = "{tmp_path}/nowhere"\n'
    publications = "".join(f'[[publication]]\nname = "{name}"\nurls = ["http://e.org/"]\n' for name in "abcd")
    archive.settings.write_text(by_all_ways(tmp_path, mails, hook, disk_free="900000 GB") + more + publications)
    assert watch(archive).failed == 0  # what is so at first
    few = "found 3 of the 40 ARCs that the last complete crawl saw; nothing was removed"
    add_report(archive, "a", 60, complete=False, hosts=[{"host": "e.org", "complete": False, "reason": "dns"}])
    add_report(archive, "b", 60, complete=False, hosts=[{"host": "e.org", "complete": False, "reason": few}])
    with NotificationStore(archive) as store:  # nothing is captured of c since long ago
        store._change(lambda: store._run("notify/put_crawl", subject="c", report="", captured="2020-01-01T00:00:00"))
    folder = archive.jobs / f"{compact_time(now())}-d"
    folder.mkdir()
    reason = "Straße\n記録\x1b]0;x"
    save_item(folder, JobState(job=folder.name, publication="d", state=Phase.FAILED, reason=reason, failures=2))
    assert watch(archive).failed == 0
    kinds = {
        "agent-down",
        "disk-low",
        "backup-old",
        "crawl-incomplete",
        "crawl-shrank",
        "nothing-captured",
        "crawl-failed",
    }
    told = {message["data"]["id"]: message for message in sinks.recorded(tmp_path / "told")}
    assert sorted(message["type"] for message in told.values()) == sorted(kinds)
    assert sorted(request.headers["webhook-id"] for request in hook.requests) == sorted(told)
    assert sorted(mail.id for mail in mails.mails) == sorted(told)
    assert all(
        is_signed(request) and request.content == told[request.headers["webhook-id"]] for request in hook.requests
    )
    assert {mail.receivers for mail in mails.mails} == {("a@example.org", "b@example.org")}
    (failed,) = (mail for mail in mails.mails if "failed" in str(mail.message["Subject"]))
    assert str(failed.message["Subject"]) == "archive: the crawl of d failed 2 times in a row: Straße 記録 ]0;x"
    assert f"webarc-agent job show {folder.name}" in failed.text
    assert "Straße 記録 ]0;x" in run_command("watch", "--archive", archive.root).out, "no control character is printed"
    assert watch(archive).queued == () and len(hook.requests) == len(told)
    add_report(archive, "a", 10)
    watch(archive)
    assert hook.requests[-1].content["data"]["recovered_from"] == "crawl-incomplete"


def test_the_agent_tells_of_its_crawls(archive: Archive, site: Site, hook: HttpSink) -> None:
    """An incomplete crawl, then one that is whole."""
    # Of a busy machine it would also be told that nothing was captured for two intervals.
    more = sinks.settings(webhook=[hook.url], private_addresses=True, events=["crawl-incomplete", "recovered"])
    site.gone("/a", 404)
    configure(
        archive, {"name": "p", "urls": [site.url("/"), site.url("/a")], "interval": "6 seconds"}, more=more, wait=0.0
    )
    with agent(archive) as running:
        until(lambda: hook.requests, "it is incomplete")
        site.back("/a")
        until(lambda: len(hook.requests) > 1, "it is whole again")
        assert running.stop() == 0
    types = [request.content["type"] for request in hook.requests]
    assert types[:2] == ["crawl-incomplete", "recovered"]
    job = hook.requests[0].content["data"]["job"]
    assert (archive.reports / job).is_dir()


def test_once_ends_when_people_are_told(archive: Archive, tmp_path: Path, site: Site) -> None:
    more = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))])
    site.gone("/a", 404)
    configure(archive, {"name": "p", "urls": [site.url("/"), site.url("/a")]}, more=more)
    done = run_command("start", "--archive", archive.root, "--once")
    assert done.code == 3, done.err
    assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["crawl-incomplete"]


def test_watch_tells_that_no_agent_runs_and_that_one_runs_again(archive: Archive, hook: HttpSink) -> None:
    archive.settings.write_text(sinks.settings(webhook=[hook.url], private_addresses=True) + _PUBLICATION)
    for _ in range(2):
        done = run_command("watch", "--archive", archive.root)
        assert done.code == 3 and "no agent runs" in done.out
    with agent_status.hold(archive):
        done = run_command("watch", "--archive", archive.root)
        assert done.code == 0 and done.out == "nothing is amiss\n", done.err
    assert [request.content["type"] for request in hook.requests] == ["agent-down", "recovered"]


# -- receivers that do not take it -------------------------------------------------------------------------------------


def test_a_receiver_that_hangs_costs_a_crawl_nothing(archive: Archive, tmp_path: Path, site: Site) -> None:
    """S-tell-3. The crawl that begins after it hangs ends while it still hangs, and so does the agent."""
    pids = tmp_path / "pids"
    hangs = sinks.program(tmp_path / "hangs", f"#!/bin/sh\necho $$ >> '{pids}'\nsleep 100000\n")
    more = sinks.settings(command=[str(hangs)], disk_free="900000 GB")
    first = {"name": "first", "urls": [site.url("/")], "interval": "1 day"}
    configure(archive, first, more=more)
    with agent(archive) as running:
        until(lambda: pids.exists() and pids.read_text().strip(), "the program hangs")
        pid = int(pids.read_text().split()[0])
        configure(archive, first, {"name": "second", "urls": [site.url("/")], "interval": "1 day"}, more=more)
        until(lambda: reports(archive, "second"), "a crawl ends")
        assert "sleep" in _commands_of_group(pid), "the program still hangs"
        assert running.stop() == 0
    until(lambda: not _commands_of_group(pid), "it is killed with all that it started")
    with NotificationStore(archive) as store:
        assert store.counts()[DeliveryState.WAITING] == 1, "nobody has it yet"


def test_a_receiver_that_hangs_delays_no_other_one(
    archive: Archive, tmp_path: Path, mails: MailSink, hook: HttpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-tell-3. The first URL takes the connection and never answers, a program hangs; mail and the second URL go."""
    monkeypatch.setattr(channels, "REQUEST_SECONDS", 100_000.0)
    hangs = sinks.program(tmp_path / "hangs", "#!/bin/sh\nexec sleep 100000\n")
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as deaf, ThreadPoolExecutor(1) as other:
        text = sinks.settings(
            mail=["a@example.org"], sendmail=str(mails.sendmail), webhook=[_url_of(deaf), hook.url],
            private_addresses=True, command=[str(hangs)],
        )  # fmt: skip
        archive.settings.write_text(text + _PUBLICATION)
        watching = other.submit(notifier.watch, archive, stop)
        try:
            until(lambda: mails.mails and hook.requests, "the others have theirs")
            assert not watching.done()
        finally:
            stop.set()
        watching.result()
    until(lambda: not any(thread.name.startswith("webhook ") for thread in threading.enumerate()), "it was reset")


def _url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_a_request_that_is_not_answered_ends_after_its_bound(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-tell-3: after 30 seconds, and a program after 60."""
    assert (channels.REQUEST_SECONDS, channels.PROGRAM_SECONDS) == (30, 60)
    monkeypatch.setattr(channels, "REQUEST_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        archive.settings.write_text(sinks.settings(webhook=[_url_of(deaf)], private_addresses=True))
        (way,) = channels_of(archive, settings_files.load(archive.settings)[0])
        reply = way.send(_message(archive), threading.Event())
    assert not reply.is_taken and not reply.is_final, reply


def _commands_of_group(group: int) -> str:
    names = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == group and fields[0] != "Z":
                    names.append((entry / "comm").read_text())
            except OSError:
                continue
    return " ".join(names)


def test_a_program_that_hangs_is_killed_after_its_bound(tmp_path: Path) -> None:
    hangs = sinks.program(tmp_path / "hangs", "#!/bin/sh\ntrap '' TERM\nsleep 100000 &\nwait\n")
    reply = run_program([str(hangs)], b"x" * 1_000_000, threading.Event(), seconds=0.2)
    assert not reply.is_taken and "was killed" in reply.text
    endless = sinks.program(tmp_path / "endless", "#!/bin/sh\nexec yes >&2\n")
    reply = run_program([str(endless)], b"", threading.Event(), seconds=60)
    assert not reply.is_taken and "wrote too much" in reply.text


def test_a_program_ends_with_who_tells_it(archive: Archive, tmp_path: Path) -> None:
    """kill -9 of `watch` leaves no program that hangs."""
    hangs = sinks.program(tmp_path / "hangs", f"#!/bin/sh\necho $$ > '{tmp_path}/pid'\nexec sleep 100000\n")
    archive.settings.write_text(sinks.settings(command=[str(hangs)]) + _PUBLICATION)
    process = crawls.start_command("watch", "--archive", archive.root)
    try:
        pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program runs"))
        process.kill()
        process.communicate()
        until(lambda: not _commands_of_group(pid), "it is killed")
    finally:
        crawls.end(process)


def test_what_a_program_left_running_goes_on(tmp_path: Path) -> None:
    """Mail programs deliver so."""
    later = sinks.program(tmp_path / "later", f"#!/bin/sh\n(sleep 0.3; echo done > '{tmp_path}/done') &\n")
    assert run_program([str(later)], b"", threading.Event()).is_taken
    until((tmp_path / "done").exists, "it ended by itself")


def test_a_stop_ends_a_program_that_is_told() -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(Interrupted):
        run_program(["/bin/sleep", "100000"], b"", stop)


@pytest.mark.parametrize("text, says", [
    ("#!/bin/sh\necho 'no room for 記録' >&2; exit 75\n", "it ended with 75: no room for 記録"),
    ("#!/bin/sh\nkill -9 $$\n", "it was killed by signal 9"),
    ("nonsense\n", "it ended with 127"),
    ("#!/bin/sh\nexec <&-\nexit 0\n", "taken"),
])  # fmt: skip
def test_what_programs_answer(tmp_path: Path, text: str, says: str) -> None:
    reply = run_program([str(sinks.program(tmp_path / "p", text))], b"x" * 10_000_000, threading.Event())
    assert says in reply.text and reply.is_taken == (says == "taken")
    assert "could not be started" in run_program([str(tmp_path / "missing")], b"", threading.Event()).text


def test_a_url_that_answers_500_for_a_day_is_given_up(
    archive: Archive, hook: HttpSink, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S-tell-2. It is asked with growing pauses, a few times; nothing else is told of that; it can be asked again."""
    archive.settings.write_text(sinks.settings(webhook=[hook.url], private_addresses=True) + _PUBLICATION)
    hook.status = 500
    at = time.time()
    monkeypatch.setattr(notifier.time, "time", lambda: at)
    asked = []
    for minute in (*range(0, 120, 5), *range(120, 26 * 60, 30)):
        monkeypatch.setattr(notifier.time, "time", lambda minute=minute: at + 60 * minute)
        before = len(hook.requests)
        watch(archive)
        asked += [minute] * (len(hook.requests) - before)
    assert len(asked) == len(PAUSES) + 1 and 24 * 60 <= asked[-1] <= 26 * 60
    pauses = [second - first for first, second in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert len({request.headers["webhook-id"] for request in hook.requests}) == 1, "no notification is about another"
    assert "is given up: it answered 500" in caplog.text
    overview = notifier.overview(archive, settings_files.load(archive.settings)[0])
    assert (overview["waiting"], overview["given_up"]) == (0, 1)
    shown = run_command("status", "--archive", archive.root)
    assert "notifications: 0 wait, 1 were given up" in shown.out
    listed = json.loads(run_command("notify", "list", "--archive", archive.root, "--json").out)
    assert [(row["state"], row["answer"]) for row in listed] == [("given-up", "it answered 500")]
    hook.status = 204
    assert "1 notifications wait again" in run_command("notify", "retry", "--archive", archive.root).out
    watch(archive)
    with NotificationStore(archive) as store:
        assert store.counts() == {DeliveryState.WAITING: 0, DeliveryState.GIVEN_UP: 0}


def test_no_redirect_is_followed(archive: Archive, hook: HttpSink) -> None:
    with sinks.http_sink() as inside:
        hook.status, hook.headers = 301, {"Location": inside.url}
        archive.settings.write_text(sinks.settings(webhook=[hook.url], private_addresses=True))
        done = run_command("notify", "--test", "--archive", archive.root)
        assert done.code == 2 and "301; redirects are not followed" in done.out
        assert len(hook.requests) == 1 and inside.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0x7f.1"])
def test_private_addresses_are_not_asked_unless_the_settings_say_so(
    archive: Archive, hook: HttpSink, host: str
) -> None:
    url = f"http://{host}:{hook.port}/hook"
    archive.settings.write_text(sinks.settings(webhook=[url]))
    done = run_command("notify", "--test", "--archive", archive.root)
    assert done.code == 2 and "private address" in done.out and hook.requests == []


def test_a_name_is_looked_up_once_and_the_address_that_was_judged_is_asked(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-tell-4. The name leads to another address each time: a public one first, then this machine."""
    looked_up, asked = [], []
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host != "hooks.example.org" or more.get("flags") == socket.AI_NUMERICHOST:
            return real(host, port, *rest, **more)
        looked_up.append(host)
        address = "93.184.216.34" if len(looked_up) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(_self: Any, _family: Any, address: Any, _seconds: float) -> socket.socket:
        asked.append(address[0])
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(channels.Connector, "_connect_to", connect)
    archive.settings.write_text(sinks.settings(webhook=["http://hooks.example.org/"]))
    (way,) = channels_of(archive, settings_files.load(archive.settings)[0])
    assert isinstance(way, WebhookChannel)
    message = _message(archive)
    assert not way.send(message, threading.Event()).is_taken
    assert (looked_up, asked) == (["hooks.example.org"], ["93.184.216.34"])
    assert "private address" in way.send(message, threading.Event()).text
    assert asked == ["93.184.216.34"], "now it is private, and is not asked"


def _message(archive: Archive) -> Notification:
    return Notification(id="evt_x", kind=NotificationGroup.TEST, text=archive.root.name, at=now(), since=now())


def test_a_url_that_is_gone_is_not_asked_again(archive: Archive, hook: HttpSink) -> None:
    hook.status = 410
    archive.settings.write_text(sinks.settings(webhook=[hook.url], private_addresses=True) + _PUBLICATION)
    watch(archive)
    with NotificationStore(archive) as store:
        assert store.counts()[DeliveryState.GIVEN_UP] == 1


# -- settings and their faults -----------------------------------------------------------------------------------------


def test_a_test_goes_by_each_way_and_prints_each_answer(
    archive: Archive, tmp_path: Path, mails: MailSink, hook: HttpSink
) -> None:
    archive.settings.write_text(by_all_ways(tmp_path, mails, hook))
    for command in (("notify", "test"), ("notify", "--test")):
        done = run_command(*command, "--archive", archive.root)
        assert done.code == 0 and done.out.count("taken") == 3, done.out
    assert len(mails.mails) == len(hook.requests) == len(sinks.recorded(tmp_path / "told")) == 2
    assert len({mail.id for mail in mails.mails}) == 2
    archive.settings.write_text(_PUBLICATION)
    nobody = run_command("notify", "test", "--archive", archive.root)
    assert nobody.code == 1 and "[notify]" in nobody.err


def test_faults_of_the_settings_are_named(archive: Archive, tmp_path: Path, hook: HttpSink) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o644)
    text = sinks.settings(
        mail=["a@example.org"], sendmail="/nowhere/sendmail", webhook=[hook.url], webhook_secret=str(secret),
        private_addresses=True, command=["/nowhere/tell"],
    )  # fmt: skip
    archive.settings.write_text(text)
    shown = run_command("status", "--archive", archive.root).out
    for fault in ("no program /nowhere/sendmail", "no program /nowhere/tell", "others may read it"):
        assert fault in shown
    assert run_command("watch", "--archive", archive.root).code == 2
    assert "no program /nowhere/tell" in run_command("start", "--once", "--archive", archive.root).err
    assert run_command("notify", "test", "--archive", archive.root).code == 2 and hook.requests == []
    secret.chmod(0o600)
    secret.write_text("whsec_short\n")
    assert "has no secret" in run_command("notify", "test", "--archive", archive.root).out and hook.requests == []


@pytest.mark.parametrize("line", [
    'webhook = ["ftp://example.org/"]', 'webhook = ["https://user:password@example.org/"]', 'webhook = [7]',
    'mail = ["a@example.org\\nBcc: b@example.org"]', 'mail = ["-oQ/tmp@example.org"]', 'mail = ["a@e.org, b@e.org"]',
    'command = "\'"', 'events = ["all"]', 'digest = "8"', 'webhook_secret = "secret"', 'backup_age = "0 days"',
])  # fmt: skip
def test_settings_that_are_rejected(line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_files.parse(f"[notify]\n{line}\n", "webarc.toml")
    assert len(caught.value.faults) == 1 and "password@" not in str(caught.value)


def test_a_way_that_is_not_set_any_more_is_given_up(archive: Archive, hook: HttpSink) -> None:
    hook.status = 500
    archive.settings.write_text(sinks.settings(webhook=[hook.url], private_addresses=True) + _PUBLICATION)
    watch(archive)
    archive.settings.write_text(_PUBLICATION)
    watch(archive)
    with NotificationStore(archive) as store:
        (row,) = store.listed(10)
    assert row.state is DeliveryState.GIVEN_UP and "not in the settings" in row.answer


def test_who_is_told_later_hears_of_all_that_is_amiss_then(archive: Archive, tmp_path: Path) -> None:
    archive.settings.write_text(_PUBLICATION)
    assert [condition.kind for condition in watch(archive).amiss] == ["agent-down"]
    told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))])
    archive.settings.write_text(told + _PUBLICATION)
    watch(archive)
    assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["agent-down"]


def test_a_faulty_publication_hides_nothing_of_the_archive(tmp_path: Path) -> None:
    archive = make_archive(tmp_path)
    published(archive, "www.example.org", {"http://www.example.org/": Page(b"<p>x")}, now())
    recover(archive)
    archive.publications.mkdir(exist_ok=True)
    for more, faulty in (("", set()), ("depth = 'deep'\n", {"a"})):
        (archive.publications / "a.toml").write_text(_PUBLICATION + more)
        apart: dict[str, list[str]] = {}
        settings, _ = settings_files.load(archive.settings, apart=apart)
        assert set(apart) == faulty
        observation, _ = observe(WatchedArchive(archive, settings, now(), frozenset(apart)), {})
        assert NotificationKind.INDEX_BEHIND in {condition.kind for condition in observation.amiss}


def test_a_crawl_of_a_publication_with_faults_is_told_once(archive: Archive) -> None:
    """At once, and as what lasts: that it is over is said when its settings can be read again."""
    archive.publications.mkdir(exist_ok=True)
    archive.settings.write_text(sinks.settings(command=["/bin/true"]))

    def told(more: str = "") -> list[str]:
        (archive.publications / "a.toml").write_text(_PUBLICATION + more)
        return [message.kind for message in watch(archive).queued if message.subject == "a"]

    faulty = "depth = 'deep'\n"
    add_report(archive, "a", 90)
    assert told() == []
    add_report(archive, "a", 60, complete=False)
    assert [told(faulty), told(faulty), told(), told()] == [["crawl-incomplete"], [], [], []]
    add_report(archive, "a", 30)
    assert [told(faulty), told(), told()] == [[], ["recovered"], []]


def test_a_publication_with_faults_that_may_be_retired_is_told_of_by_new_reports_alone(archive: Archive) -> None:
    archive.publications.mkdir(exist_ok=True)
    archive.settings.write_text(sinks.settings(command=["/bin/true"]))
    add_report(archive, "a", 90, complete=False)
    for more in ("depth = 'deep'\n", "retired = true\n", "retired = true\ndepth = 'deep'\n"):
        (archive.publications / "a.toml").write_text(_PUBLICATION + more)
        assert "a" not in {message.subject for message in watch(archive).queued}


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_damaged_file_is_put_aside_and_people_are_told_once_more(archive: Archive, tmp_path: Path) -> None:
    told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))])
    archive.settings.write_text(told + _PUBLICATION)
    watch(archive)
    archive.notifications.write_bytes(os.urandom(5000))
    watch(archive)
    assert (archive.root / "notify.db.damaged").exists()
    assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["agent-down"] * 2


def test_damage_inside_the_file_is_found_before_anything_is_told(archive: Archive, tmp_path: Path) -> None:
    """Its first page is sound, so it can be opened: what reads the rest says what to do."""
    told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))])
    archive.settings.write_text(told + _PUBLICATION)
    with NotificationStore(archive) as store:
        sinks.queue(store, (replace(_message(archive), id=f"evt_{number}") for number in range(300)), "mail", now())
    with archive.notifications.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(archive.notifications.stat().st_size - 4096))
    done = run_command("notify", "list", "--archive", archive.root)
    assert done.code == 2 and "webarc-agent watch" in done.err and "recover" not in done.err
    watch(archive)
    assert (archive.root / "notify.db.damaged").exists()
    assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["agent-down"]


def test_a_queue_has_a_bound_and_what_is_over_it_is_counted(archive: Archive, caplog: pytest.LogCaptureFixture) -> None:
    message = _message(archive)
    with NotificationStore(archive) as store:
        sinks.queue(
            store, (replace(message, id=f"evt_{number}") for number in range(MOST_WAITING + 3)), "command", now()
        )
    with NotificationStore(archive) as store:
        assert store.counts() == {DeliveryState.WAITING: MOST_WAITING, DeliveryState.GIVEN_UP: 3}
        first = store.next("command", int(time.time()), 0)
    assert first is not None and first[1].id == "evt_3", "the oldest were given up"
    assert "3 notifications for command were given up" in caplog.text


def test_what_waits_by_a_clock_that_was_set_back_is_due(archive: Archive) -> None:
    with NotificationStore(archive) as store:
        sinks.queue(store, [_message(archive)], "command", now() + timedelta(days=400))
        assert store.next("command", int(time.time()), max(PAUSES)) is not None


def test_people_are_told_that_the_disk_is_full(tmp_path: Path) -> None:
    """What is queued then has room that was held in reserve."""
    with small_disk(tmp_path / "disk", "3m") as disk:
        archive = make_archive(disk)
        told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))], disk_free="1 MB")
        archive.settings.write_text(told)
        assert watch(archive).queued == ()
        with pytest.raises(OSError), (disk / "rest").open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        assert [message.kind for message in watch(archive).queued] == ["disk-low"]
        assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["disk-low"]
        (disk / "rest").unlink()
        watch(archive)
        assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["disk-low", "recovered"]


def test_two_at_once_tell_once(archive: Archive, tmp_path: Path) -> None:
    told = sinks.settings(command=[str(sinks.recorder(tmp_path / "tell", tmp_path / "told"))])
    archive.settings.write_text(told + _PUBLICATION)
    with ExitStack() as stack:
        watching = [stack.enter_context(running_command("watch", "--archive", archive.root)) for _ in range(4)]
        for process in watching:
            _, errors = process.communicate()
            assert process.returncode == 3, errors
    watch(archive)
    assert [message["type"] for message in sinks.recorded(tmp_path / "told")] == ["agent-down"]


def test_a_signal_leaves_what_was_not_delivered(archive: Archive, tmp_path: Path) -> None:
    hangs = sinks.program(tmp_path / "hangs", f"#!/bin/sh\ntouch '{tmp_path}/runs'\nsleep 100000\n")
    archive.settings.write_text(sinks.settings(command=[str(hangs)]) + _PUBLICATION)
    process = crawls.start_command("watch", "--archive", archive.root)
    try:
        until((tmp_path / "runs").exists, "the program runs")
        process.send_signal(signal.SIGTERM)
        process.communicate()
    finally:
        crawls.end(process)
    with NotificationStore(archive) as store:
        (row,) = store.listed(10)
    assert (row.state, row.tries) == (DeliveryState.WAITING, 0)
