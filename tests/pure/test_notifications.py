"""What people are told: changes of state, each once, and once a day what is still so; as JSON and as mail."""

from __future__ import annotations

import email
import email.policy
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.notifying import conditions, messages
from agent.notifying.changes import MOST_AT_ONCE, Known, Notification, NotificationGroup, advance, lasting
from agent.notifying.channels import key_of, signature
from agent.notifying.conditions import ENDED_BY_PEOPLE, AmissCondition, BackupState, Key, Observation
from webarcfs.archive.config.settings import CrawlSettings, NotificationKind, NotifySettings, Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.metadata import CET, format_time

pytestmark = pytest.mark.pure

AT = datetime(2026, 11, 30, 7, 0, 0, tzinfo=CET)
KINDS = NotificationKind
SETTINGS = NotifySettings()


def amiss(kind: NotificationKind, subject: str = "", job: str = "") -> AmissCondition:
    return AmissCondition(kind, subject, f"{kind} of {subject}", job)


def seen(
    *now: AmissCondition, at: datetime = AT, passing: Sequence[AmissCondition] = (), **more: object
) -> Observation:
    return Observation(at=at, amiss=now, passing=tuple(passing), publications=frozenset("abc"), **more)  # type: ignore[arg-type]


def told(
    known: Known, observation: Observation, settings: NotifySettings = SETTINGS
) -> tuple[Known, list[tuple[str, str]]]:
    after, sent = advance(known, observation, settings, "here")
    return after, [(message.kind, message.subject) for message in sent]


# -- single cases ------------------------------------------------------------------------------------------------------


def test_what_stays_so_is_told_once_and_its_end_once() -> None:
    known, sent = told(Known(), seen(amiss(KINDS.CRAWL_INCOMPLETE, "a")))
    assert sent == [("crawl-incomplete", "a")]
    known, sent = told(known, seen(amiss(KINDS.CRAWL_INCOMPLETE, "a", "another-job"), at=AT + timedelta(minutes=1)))
    assert sent == []
    known, sent = told(known, seen(at=AT + timedelta(minutes=2)))
    assert sent == [("recovered", "a")]
    assert told(known, seen(at=AT + timedelta(minutes=3)))[1] == [] and not known.held


def test_what_came_and_went_between_two_looks_is_told() -> None:
    passed = amiss(KINDS.CRAWL_INCOMPLETE, "a", "job")
    known, sent = told(Known(), seen(passing=[passed]))
    assert sent == [("crawl-incomplete", "a"), ("recovered", "a")] and not known.held
    once = replace(passed, subject="a+occasion", lasts=False)
    assert told(known, seen(passing=[once]))[1] == [("crawl-incomplete", "a+occasion")]


def test_what_people_ended_or_took_out_of_the_schedule_is_over_without_a_word() -> None:
    for condition in (
        amiss(KINDS.WAITS_FOR_RELEASE, "r"),
        amiss(KINDS.CHECK_FAILED, "r"),
        amiss(KINDS.CRAWL_FAILED, "gone"),
    ):
        known, sent = told(Known(), seen(condition))
        assert len(sent) == 1
        assert told(known, seen())[1] == []


def test_what_cannot_be_judged_is_neither_new_nor_over() -> None:
    known, _ = told(Known(), seen(amiss(KINDS.WAITS_FOR_RELEASE, "r"), amiss(KINDS.CRAWL_FAILED, "a")))
    unsure = seen(unsure=frozenset({(KINDS.CRAWL_FAILED, "a")}), unsure_kinds=frozenset({KINDS.WAITS_FOR_RELEASE}))
    after, sent = told(known, unsure)
    assert sent == [] and after.held == known.held


def test_many_at_once_are_one_notification_that_has_them_all() -> None:
    conditions_ = [amiss(KINDS.CRAWL_FAILED, str(number)) for number in range(MOST_AT_ONCE + 1)]
    _, (message,) = advance(Known(), seen(*conditions_), SETTINGS, "here")
    assert message.kind == NotificationGroup.SEVERAL and len(message.parts) == MOST_AT_ONCE + 1
    _, separate = advance(Known(), seen(*conditions_[1:]), SETTINGS, "here")
    assert len(separate) == MOST_AT_ONCE and not any(each.parts for each in separate)


def test_only_what_is_wanted_is_told_and_the_rest_as_soon_as_it_is_wanted() -> None:
    few = NotifySettings(events=(KINDS.DISK_LOW,))
    known, sent = told(Known(), seen(amiss(KINDS.DISK_LOW), amiss(KINDS.AGENT_DOWN)), few)
    assert sent == [("disk-low", "")]
    assert {condition.kind for condition in lasting(known, AT, few)} == {KINDS.DISK_LOW, KINDS.AGENT_DOWN}
    known, sent = told(known, seen(amiss(KINDS.AGENT_DOWN)), few)
    assert sent == [], "its end is not wanted"
    assert told(known, seen(amiss(KINDS.AGENT_DOWN)))[1] == [("agent-down", "")]


def test_an_index_may_be_behind_for_a_while() -> None:
    behind = amiss(KINDS.INDEX_BEHIND)
    known, sent = told(Known(), seen(behind))
    assert sent == [] and lasting(known, AT, SETTINGS) == ()
    known, sent = told(known, seen(behind, at=AT + timedelta(minutes=59)))
    assert sent == []
    known, sent = told(known, seen(behind, at=AT + timedelta(hours=1)))
    assert sent == [("index-behind", "")]


def test_a_digest_a_day_has_what_was_told_before_and_is_still_so() -> None:
    stays = amiss(KINDS.CRAWL_INCOMPLETE, "a")
    known, _ = told(Known(), seen(stays))
    known, sent = advance(known, seen(stays, amiss(KINDS.DISK_LOW), at=AT.replace(hour=8)), SETTINGS, "here")
    assert [message.kind for message in sent] == ["disk-low", "digest"]
    assert [(part.kind, part.subject) for part in sent[1].parts] == [("crawl-incomplete", "a")]
    assert "one thing still needs you" in sent[1].text
    for hours in (9, 23):
        known, sent = advance(known, seen(stays, at=AT.replace(hour=hours)), SETTINGS, "here")
        assert [message.kind for message in sent] in (["recovered"], [])
    known, sent = advance(known, seen(stays, at=AT + timedelta(days=3)), SETTINGS, "here")
    assert [message.kind for message in sent] == ["digest"], "of days when nobody looked there is one"
    _, sent = advance(known, seen(at=AT + timedelta(days=4, hours=2)), SETTINGS, "here")
    assert [message.kind for message in sent] == ["recovered"], "where nothing is amiss there is none"
    _, sent = advance(known, seen(stays, at=AT + timedelta(days=9)), NotifySettings(digest="never"), "here")
    assert sent == ()


# -- all cases ---------------------------------------------------------------------------------------------------------

_UNIVERSE = [
    amiss(kind, subject)
    for kind, subject in (
        (KINDS.CRAWL_FAILED, "a"), (KINDS.CRAWL_INCOMPLETE, "a"), (KINDS.CRAWL_INCOMPLETE, "b"), (KINDS.DISK_LOW, ""),
        (KINDS.CHECK_FAILED, "r1"), (KINDS.WAITS_FOR_RELEASE, "r1"), (KINDS.WAITS_FOR_RELEASE, "r2"),
    )
]  # fmt: skip
_STEPS = st.lists(
    st.tuples(st.integers(-200_000, 200_000), st.sets(st.sampled_from(_UNIVERSE)), st.sets(st.sampled_from(_UNIVERSE))),
    max_size=25,
)


@given(_STEPS)
def test_each_change_is_told_once_whatever_the_clock_does(
    steps: list[tuple[int, set[AmissCondition], set[AmissCondition]]],
) -> None:
    """S-tell-1. Against a model: sets of conditions, without times."""
    known, at, ids = Known(), AT, []
    before: set[Key] = set()
    for seconds, now, passing in steps:
        at += timedelta(seconds=seconds)
        known, sent = advance(known, seen(*now, at=at, passing=list(passing)), SETTINGS, "here")
        keys = {condition.key for condition in now}
        short = {condition.key for condition in passing} - keys - before
        began = sorted((message.kind, message.subject) for message in sent if message.kind in KINDS and not message.of)
        ended = sorted((message.of, message.subject) for message in sent if message.of)
        assert began == sorted([*(keys - before), *short])
        assert ended == sorted([*(key for key in before - keys if key[0] not in ENDED_BY_PEOPLE), *short])
        digests = [message for message in sent if message.kind == NotificationGroup.DIGEST]
        assert len(digests) <= 1
        for digest in digests:
            assert {(part.kind, part.subject) for part in digest.parts} == keys & before
        ids += [message.id for message in sent]
        assert set(known.held) == keys
        before = keys
    assert len(ids) == len(set(ids)), "each notification has an id of its own"


@given(st.lists(st.integers(0, 90_000), max_size=40), st.integers(0, 40), st.integers(-86_000, 0))
def test_there_is_a_digest_a_day_also_where_the_clock_is_set_back(steps: list[int], at_step: int, back: int) -> None:
    """By less than a day; by more, the days begin again from there."""
    known, at, dates = Known(), AT, []
    stays = amiss(KINDS.DISK_LOW)
    for number, seconds in enumerate(steps):
        at += timedelta(seconds=back if number == at_step else seconds)
        known, sent = advance(known, seen(stays, at=at), SETTINGS, "here")
        dates += [(at - timedelta(hours=8)).date() for message in sent if message.kind == NotificationGroup.DIGEST]
    assert len(dates) == len(set(dates)) and dates == sorted(dates)


def test_a_clock_that_was_wrong_by_a_year_silences_no_digest() -> None:
    stays = amiss(KINDS.DISK_LOW)
    known, _ = told(Known(), seen(stays))
    known, sent = told(known, seen(stays, at=AT + timedelta(days=400)))
    assert ("digest", "") in sent
    known, sent = told(known, seen(stays, at=AT + timedelta(minutes=1)))
    assert sent == []
    known, sent = told(known, seen(stays, at=AT + timedelta(days=1, hours=2)))
    assert sent == [("digest", "")]


@given(_STEPS)
def test_ids_follow_from_what_was_seen(steps: list[tuple[int, set[AmissCondition], set[AmissCondition]]]) -> None:
    """A process that was killed before its transaction ended is followed by one that says the same."""

    def run(origin: str) -> list[str]:
        known, at, ids = Known(), AT, []
        for seconds, now, passing in steps:
            at += timedelta(seconds=abs(seconds))
            in_order = sorted(now, key=lambda condition: condition.key)
            known, sent = advance(
                known, seen(*in_order, at=at, passing=sorted(passing, key=lambda each: each.key)), SETTINGS, origin
            )
            ids += [message.id for message in sent]
        return ids

    assert run("here") == run("here")
    assert set(run("here")).isdisjoint(run("there"))


# -- conditions --------------------------------------------------------------------------------------------------------


def report(*hosts: tuple[str, bool, str], complete: bool = False) -> dict[str, object]:
    ends = [{"host": host, "complete": whole, "reason": reason} for host, whole, reason in hosts]
    return {"job": "20261130T070000-a", "complete": complete, "hosts": ends}


def test_a_report_tells_an_incomplete_crawl_from_one_that_shrank() -> None:
    def kinds(summary: dict[str, object]) -> list[str]:
        return [condition.kind for condition in conditions.of_report("a", summary)]

    few = "found 3 of the 40 ARCs that the last complete crawl saw; nothing was removed"
    assert kinds(report(("e.org", True, ""), complete=True)) == []
    assert kinds(report(("e.org", False, "stopped"))) == ["crawl-incomplete"]
    assert kinds(report(("e.org", False, few))) == ["crawl-shrank"]
    assert kinds(report(("e.org", False, few), ("f.org", False, "dns"))) == ["crawl-shrank", "crawl-incomplete"]
    assert kinds({"complete": False}) == ["crawl-incomplete"], "of an older version, without hosts"
    assert kinds({}) == kinds({"complete": None}) == [] and kinds({"complete": False, "hosts": [1, None]}) != []
    (nothing,) = conditions.of_report("a", report(complete=True), ["http://e.org/ gave nothing: 404"])
    assert nothing.text == "the crawl of a is incomplete: http://e.org/ gave nothing: 404"
    (many,) = conditions.of_report("a", report(*((f"h{number}.org", False, "dns") for number in range(12))))
    assert many.text.startswith("the crawl of a is incomplete: h0.org (dns)") and many.text.endswith("7 more hosts")


def test_a_page_that_was_not_saved_is_named() -> None:
    (saved,) = conditions.of_report(
        "saved-e.org-81+page",
        {"page": "http://e.org:81/a", "finished": format_time(AT), **report(("e.org:81", False, "dns"))},
    )
    assert saved.text == "the saved page http://e.org:81/a is incomplete: e.org:81 (dns)" and saved.since == AT
    failed = conditions.failed_job(
        "saved-e.org+page", "j", "no space", 1, updated=format_time(AT), page="http://e.org/"
    )
    assert failed.text == "the saved page http://e.org/ failed: no space" and failed.since == AT
    assert conditions.failed_job("saved-e.org+page", "j", "", 1).text.startswith("the saved page of e.org failed")


def test_an_import_of_which_nobody_knows_whether_it_is_whole_is_nothing_amiss() -> None:
    """Files do not tell what their crawl did not get, and a loop over many would be as many mails."""
    assert not list(conditions.of_report("one+0823e808", {"complete": False, "hosts": []}))
    assert not list(conditions.of_report("one+0823e808", report(("e.org", False, ""))))
    (told,) = conditions.of_report("one+0823e808", report(("e.org", False, "stopped")))
    assert told.text == "the import into one is incomplete: e.org (stopped)"
    assert list(conditions.of_report("one", {"complete": False, "hosts": []}))


@pytest.mark.parametrize("kind, words", [
    ("town", "the crawl of town"), ("town+occasion", "the crawl on an occasion of town"),
    ("town+patch", "the patch of a crawl of town"), ("e.org+page", "the saved page of e.org"),
    ("town+0abc", "the import into town"),
])  # fmt: skip
def test_each_kind_of_job_has_its_name(kind: str, words: str) -> None:
    assert conditions.failed_job(kind, f"20261130T070000-{kind}", "dns", 1).text == f"{words} failed: dns"


def test_nothing_captured_is_said_after_two_intervals() -> None:
    publication = Publication(name="a", urls=("http://e.org/",), crawl=CrawlSettings(interval=Interval(1, "month")))
    since = datetime(2026, 1, 31, 3, tzinfo=CET)
    assert conditions.has_captured_nothing(publication, since, datetime(2026, 3, 28, 3, tzinfo=CET)) is None
    assert conditions.has_captured_nothing(publication, since, datetime(2026, 3, 28, 4, tzinfo=CET)) is not None
    later = replace(publication, start=datetime(2026, 6, 1, tzinfo=CET))
    assert conditions.has_captured_nothing(later, since, datetime(2026, 7, 31, tzinfo=CET)) is None
    assert conditions.has_captured_nothing(publication, since, datetime(2020, 1, 1, tzinfo=CET)) is None, "set back"


def test_the_bounds_of_disk_and_backup() -> None:
    gib = 1 << 30
    assert conditions.is_disk_low(1 * gib, 1000 * gib, 0) and not conditions.is_disk_low(2 * gib, 1000 * gib, 0)
    assert not conditions.is_disk_low(1 * gib, 10 * gib, 0), "a small disk has a smaller bound"
    assert conditions.is_disk_low(9 * gib, 10 * gib, 10 * gib)
    week = Interval(1, "week")
    assert conditions.backup_state(None, AT, week) is BackupState.MISSING
    assert conditions.backup_state({"finished": format_time(AT - timedelta(days=6))}, AT, week) is BackupState.GOOD
    for mark in ({"finished": format_time(AT - timedelta(days=7))}, {"finished": ""}, {}, {"finished": 7}):
        assert conditions.backup_state(mark, AT, week) is BackupState.OLD


def test_since_is_when_it_began_and_not_when_it_was_told() -> None:
    ended = AT - timedelta(hours=9)
    condition = replace(amiss(KINDS.CRAWL_INCOMPLETE, "a", "j"), since=ended)
    known, (message,) = advance(Known(), seen(condition), SETTINGS, "here")
    assert (message.since, message.at) == (ended, AT)
    later, sent = advance(known, seen(replace(condition, since=AT), at=AT + timedelta(minutes=1)), SETTINGS, "here")
    assert sent == () and later == known, "it lasts since then"
    ahead = replace(condition, since=AT + timedelta(days=3))
    assert advance(Known(), seen(ahead), SETTINGS, "here")[1][0].since == AT, "by a clock that was set back"


def test_a_backup_that_runs_is_as_old_as_the_last_whole_one() -> None:
    """Else people would be told of each backup as it begins, and again as it ends."""
    week = Interval(1, "week")
    runs = {"finished": None, "last": format_time(AT - timedelta(days=6))}
    assert conditions.backup_state(runs, AT, week) is BackupState.GOOD
    for last in (format_time(AT - timedelta(days=7)), None, 7):
        assert conditions.backup_state({**runs, "last": last}, AT, week) is BackupState.OLD


# -- messages ----------------------------------------------------------------------------------------------------------


def notification(text: str, **more: object) -> Notification:
    return Notification(id="evt_1", kind=KINDS.CRAWL_FAILED, text=text, at=AT, since=AT, **more)  # type: ignore[arg-type]


@given(st.text(), st.text(), st.text())
def test_no_text_adds_a_header_or_a_receiver_to_a_mail(text: str, archive: str, job: str) -> None:
    """S-tell-5."""
    content = messages.mail(
        notification(text, job=job), archive, "host", "w@example.org", ("a@example.org", "b@example.org")
    )
    mail = email.message_from_bytes(content, policy=email.policy.default)
    assert sorted(name.lower() for name in mail) == [
        "auto-submitted", "content-transfer-encoding", "content-type", "date", "from", "message-id", "mime-version",
        "subject", "to",
    ]  # fmt: skip
    assert str(mail["To"]) == "a@example.org, b@example.org" and mail["Message-ID"] == "<evt_1@example.org>"
    assert all(len(line) <= 998 for line in content.splitlines())
    content.decode("ascii")


@pytest.mark.parametrize("text", [
    "Überblick über „Straßen“", "記録が失敗しました", "سجل الأرشيف", "🗄 \u202egnp.exe",
    "a\r\nBcc: thief@example.org\r\n\r\nbody",
    "a\x00b\x1b[31m", "\udcff\udcfe broken name", "x" * 10_000,
])  # fmt: skip
def test_names_and_reasons_in_every_script(text: str) -> None:
    mail = email.message_from_bytes(
        messages.mail(notification(text), "Archiv Ärger", "host", "w@e.org", ("a@e.org",)), policy=email.policy.default
    )
    subject, body = str(mail["Subject"]), mail.get_content()  # type: ignore[attr-defined]
    assert subject.isprintable() and len(subject) <= 160 and subject.startswith("Archiv Ärger: ")
    assert "\u202e" not in body and "\x1b" not in body and "\nBcc:" not in body
    if len(text) < 100 and text.isprintable():
        assert text in subject
    if len(text) > 5000:
        assert "more characters)" in subject and "more characters)" in body
    content = json.loads(json.dumps(messages.payload(notification(text), "x", "h")))
    assert content["data"]["text"].isprintable() and content["type"] == "crawl-failed"
    assert content["timestamp"] == "2026-11-30T06:00:00Z"


def test_a_mail_tells_what_shows_it_from_what_does_something() -> None:
    def lines(kind: NotificationKind) -> list[str]:
        waits = replace(notification("it waits", record="20261130T060000-a", job="j"), kind=kind)
        text = messages.mail(waits, "x", "h", "w@e.org", ("a@e.org",)).decode()
        return [line for line in text.splitlines() if "webarc-agent" in line]

    assert lines(KINDS.WAITS_FOR_RELEASE) == [
        "See: webarc-agent record show 20261130T060000-a", "What to do: webarc-agent record release 20261130T060000-a",
    ]  # fmt: skip
    assert lines(KINDS.AGENT_DOWN) == ["What to do: webarc-agent start"]
    assert lines(KINDS.DAMAGED) == ["What to do: webarc-agent verify"]
    for kind in KINDS:
        for line in lines(kind):
            assert line.startswith("See: ") == any(verb in line for verb in (" show ", " report ", " status")), line


def test_a_digest_in_a_mail_counts_what_it_does_not_name() -> None:
    parts = tuple(notification(f"number {number}") for number in range(105))
    digest = replace(notification("105 things still need you"), kind=NotificationGroup.DIGEST, parts=parts)
    mail = messages.mail(digest, "x", "h", "w@e.org", ("a@e.org",)).decode()
    assert "- Number 99." in mail and "- Number 100." not in mail and "and 5 more" in mail
    assert len(messages.payload(digest, "x", "h")["data"]["events"]) == 105


def test_a_signature_is_that_of_standard_webhooks() -> None:
    """The example of its specification's libraries."""
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert key is not None
    assert signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
    assert [key_of(line) for line in ("", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_!!!", "whsec_YWJj")] == [
        None
    ] * 5
