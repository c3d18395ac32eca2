"""`webarc-agent crawls` and `record list`: crawls by state, publication and time, with sums."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from agent.cli import cli
from agent.commands.record import RecordFilter
from tests.support import archives
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_crawl, look_up_record
from webarcfs.archive.catalogue.record import CrawlPart, FieldNumber, Record, RecordState, Value
from webarcfs.archive.catalogue.workflow import HELD
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import CET, CommitTag, compact_time, format_time

pytestmark = pytest.mark.store

_HOST = "www.example.org"
#: Publication, time and state of each crawl.
_CRAWLS = (
    ("a", datetime(2019, 12, 31, 23, 59, 59, tzinfo=CET), RecordState.RELEASED),
    ("a", datetime(2020, 1, 1, 0, 0, 0, tzinfo=CET), RecordState.COUNTED),
    ("b", datetime(2020, 3, 31, 23, 59, 59, tzinfo=CET), RecordState.REJECTED),
    ("b", datetime(2020, 4, 1, 0, 0, 0, tzinfo=CET), RecordState.CAPTURED),
    ("b", datetime(2021, 6, 5, 12, 0, 0, tzinfo=CET), RecordState.DISCARDED),
)


def _record(publication: str, when: datetime, state: RecordState, *, complete: bool = True) -> Record:
    tag = CommitTag(when, _HOST)
    values = {FieldNumber.FILES: Value("2"), FieldNumber.BYTES: Value("600")}
    values[FieldNumber.DATE] = Value(format_time(when))
    return Record(
        id=f"{compact_time(when)}-{publication}",
        number=0,
        publication=publication,
        state=state,
        complete=complete,
        parts=(CrawlPart(tag, complete, "", state in HELD),),
        values=values,
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("crawls"))
    records = [_record(*crawl, complete=number != 2) for number, crawl in enumerate(_CRAWLS)]
    Catalogue(made).save(records, "test", "records")
    return made


def _run(archive: Archive, *words: str) -> Result:
    return CliRunner(env={"WEBARC_ARCHIVE": str(archive.root)}).invoke(cli, words, prog_name="webarc-agent")


def _years(archive: Archive, *words: str) -> list[str]:
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in _run(archive, "crawls", *words, "--format", "jsonl").stdout.splitlines()
    ]
    assert rows == [json.loads(line) for line in _run(archive, "record", "list", *words, "--json").stdout.splitlines()]
    return [row["date"][:10] for row in rows]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", ["2020-04-01", "2020-03-31", "2020-01-01", "2019-12-31"]),
        ("--publication a", ["2020-01-01", "2019-12-31"]),
        ("--state released", ["2019-12-31"]),
        ("--state released --state rejected", ["2020-03-31", "2019-12-31"]),
        ("--state discarded", ["2021-06-05"]),
        ("--waits", ["2020-04-01", "2020-01-01"]),
        ("--incomplete", ["2020-03-31"]),
        ("--during 2019", ["2019-12-31"]),
        ("--during 2020-01..2020-03", ["2020-03-31", "2020-01-01"]),
        ("--since 2020", ["2020-04-01", "2020-03-31", "2020-01-01"]),
        ("--since 2020-04-01", ["2020-04-01"]),
        ("--until 2020-03", ["2020-03-31", "2020-01-01", "2019-12-31"]),
        ("--since 2020 --until 2020-01-01", ["2020-01-01"]),
        ("--waits --publication b --since 2020-04", ["2020-04-01"]),
        ("--until 2018", []),
    ],
)
def test_crawls_are_found_by_state_publication_and_time(archive: Archive, words: str, expected: list[str]) -> None:
    assert _years(archive, *words.split()) == expected


def test_below_the_table_are_its_sums(archive: Archive) -> None:
    lines = _run(archive, "crawls").stdout.splitlines()
    assert lines[5] == "4 crawls: 1 captured, 1 rejected, 1 counted, 1 released; 1 incomplete; 8 files, 2,400 bytes"
    assert lines[6].startswith("not released: ")
    assert _run(archive, "crawls", "--until", "2018").stdout == "none\n"


def test_what_the_limit_leaves_out_is_said(archive: Archive) -> None:
    assert _run(archive, "crawls", "--limit", "1").stdout.splitlines()[-1] == "and 3 older ones; `--limit 0` lists all"
    assert _run(archive, "crawls", "--limit", "1", "--since", "2020").stdout.splitlines()[-1] == (
        "and older ones; `--limit 0` lists all"
    )
    assert "older" not in _run(archive, "crawls", "--limit", "1", "--during", "2019").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--since", "soon"), "--since: 'soon': a span of time is a year"),
        (("--during", "2021..2020"), "it ends before it begins"),
        (("--during", "2020", "--since", "2020"), "both ends"),
        (("--until", "2020-13"), "--until: "),
    ],
)
def test_a_time_that_is_none_is_an_error(archive: Archive, words: tuple[str, ...], why: str) -> None:
    done = _run(archive, "crawls", *words)
    assert isinstance(done.exception, UsageError) and why in str(done.exception)


def test_a_state_that_is_none_names_those_there_are(archive: Archive) -> None:
    done = _run(archive, "crawls", "--state", "done")
    assert done.exit_code != 0 and "released" in done.output


@given(
    st.none() | st.integers(-5, 5), st.none() | st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([*RecordState])
)
def test_a_filter_takes_what_lies_in_its_span_and_state(
    since: int | None, until: int | None, at: int, state: RecordState
) -> None:
    begin = int(archives.FIRST.timestamp())
    stored_record = _record("a", archives.FIRST + timedelta(seconds=at), state)
    ends = (None if since is None else begin + since, None if until is None else begin + until)
    taken = RecordFilter(since=ends[0], until=ends[1]).takes(stored_record, frozenset())
    assert taken is ((since is None or since <= at) and (until is None or at < until))
    assert RecordFilter(states=frozenset({str(state)})).takes(stored_record, frozenset())
    assert RecordFilter(waits=True).takes(stored_record, frozenset()) is (state in HELD)


def test_a_crawl_is_shown_by_each_of_its_names_and_a_publication_stands_for_its_newest(archive: Archive) -> None:
    """A discarded crawl is not the newest one; what acts on a record takes no publication, and says which crawl."""
    newest = "20200401T000000-b"
    number = next(record.number for record in Catalogue(archive).records() if record.id == newest)
    for name in (newest, str(number), f"2020-04-01T00:00:00@{_HOST}", "b"):
        result = CliRunner().invoke(cli, ["record", "show", name, "--json", "--archive", str(archive.root)])
        assert json.loads(result.output)["id"] == newest
    for name in ("c", "999", "20200401T000000-c", f"2020-04-02T00:00:00@{_HOST}", "../b", "b/2020"):
        with pytest.raises(NotFound):
            look_up_crawl(archive, Catalogue(archive), name)
    with pytest.raises(NotFound, match=f"b is a publication; its newest crawl is {newest}"):
        look_up_record(archive, Catalogue(archive), "b")
    shown = [record for record in Catalogue(archive).records() if record.state is RecordState.RELEASED]
    assert look_up_crawl(archive, Catalogue(archive), "a", lambda _: shown).id == "20191231T235959-a"
    with pytest.raises(NotFound, match="there is no record 20200101T000000-a"):
        look_up_crawl(archive, Catalogue(archive), "20200101T000000-a", lambda _: shown)
