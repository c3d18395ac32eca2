"""Times, commitTags and metadata (specification §2)."""

import copy
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model import metadata
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, CET, FIELDS, CommitTag, MetaData

pytestmark = pytest.mark.pure

FIRST = datetime(2026, 11, 21, 3, 0, 0, tzinfo=CET)
TAG = CommitTag(FIRST, "www.example.org")
META = MetaData(
    url="http://www.example.org/",
    mime_type="text/html",
    title="Example",
    path="/www.example.org/index.html",
    domain="www.example.org",
    crawl_time=FIRST,
    create_time=FIRST - timedelta(days=1),
    commit_tag=TAG,
)
times = st.datetimes(
    min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.sampled_from([UTC, CET])
).map(lambda time: time.replace(microsecond=0))


def test_times_are_cet_all_year() -> None:
    """UTC+01:00, no summer time."""
    assert metadata.format_time(datetime(2026, 7, 1, 12, tzinfo=UTC)) == "2026-07-01T13:00:00"
    assert metadata.format_time(datetime(2026, 1, 1, 12, tzinfo=UTC)) == "2026-01-01T13:00:00"
    assert metadata.format_time(datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))) == "2026-07-01T11:00:00"
    assert metadata.from_epoch(0.9) == datetime(1970, 1, 1, 1, tzinfo=CET)
    assert metadata.now().utcoffset() == timedelta(hours=1) and metadata.now().microsecond == 0
    assert metadata.utc(FIRST) == FIRST and metadata.utc(FIRST).utcoffset() == timedelta(0)


@given(times)
def test_times_round_trip(time: datetime) -> None:
    text = metadata.format_time(time)
    assert len(text) == 19 and "T" in text
    assert metadata.parse_time(text) == time


@given(times.filter(lambda time: time.year > 1000))
def test_compact_times_round_trip_and_sort(time: datetime) -> None:
    text = metadata.compact_time(time)
    assert metadata.parse_compact_time(text) == time
    assert metadata.compact_time(time + timedelta(seconds=1)) > text


#: What a person leaves out of a time: the number of letters that are written, and where the next such span begins.
_SPANS = {
    4: lambda time: time.replace(year=time.year + 1, month=1, day=1, hour=0, minute=0, second=0),
    7: lambda time: (time.replace(day=28) + timedelta(days=4)).replace(day=1, hour=0, minute=0, second=0),
    10: lambda time: time.replace(hour=0, minute=0, second=0) + timedelta(days=1),
    13: lambda time: time.replace(minute=0, second=0) + timedelta(hours=1),
    16: lambda time: time.replace(second=0) + timedelta(minutes=1),
    19: lambda time: time + timedelta(seconds=1),
}


@given(times.filter(lambda time: 2 < time.year < 9998), st.sampled_from(sorted(_SPANS)))
def test_a_date_or_time_is_its_end(time: datetime, written: int) -> None:
    """A crawl of the last second is in it, and one of the second after it is not."""
    text = metadata.format_time(time)[:written]
    moment = metadata.parse_moment(text)
    after = _SPANS[written](metadata.parse_time(metadata.format_time(time)))
    assert isinstance(moment, datetime)
    assert after - timedelta(seconds=1) <= moment < after
    if written > 10:
        assert metadata.parse_moment(f"{text}+00:00") == moment + timedelta(hours=1)


@pytest.mark.parametrize(
    "text", ["", "2026-", "2026-13", "0000", "2026-W10", "2026-11-31", "2026-11-21T03:0", "0001-01-01T00:00:00+14:00"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(Damaged):
        metadata.parse_moment(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-21 03:00:00",
        "2026-11-21T03:00",
        "2026-11-21T03:00:00Z",
        "2026-02-30T03:00:00",
        "2026-11-21T03:00:0١",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Damaged):
        metadata.parse_time(text)
    with pytest.raises(Damaged):
        metadata.parse_compact_time(text)


@given(times, st.sampled_from(["www.example.org", "e.org:8080", "[2001:db8::1]:81"]))
def test_commit_tags_round_trip(time: datetime, domain: str) -> None:
    """commitTag := <crawlTime>@<domainName>."""
    tag = CommitTag(time, domain)
    assert CommitTag.parse(str(tag)) == tag
    assert str(tag) == f"{metadata.format_time(time)}@{domain}"


def test_a_tag_names_its_ref() -> None:
    assert TAG.ref == "refs/crawls/20261121T030000"
    assert str(TAG) == "2026-11-21T03:00:00@www.example.org"


@pytest.mark.parametrize("text", ["", "2026-11-21T03:00:00", "2026-11-21T03:00:00@", "x@y", "2026-11-21T03:00:00@a/b"])
def test_what_is_no_tag(text: str) -> None:
    with pytest.raises(Damaged):
        CommitTag.parse(text)


def test_metadata_have_the_names_of_the_specification() -> None:
    names = ["url", "mimeType", "title", "path", "domain", "crawlTime", "createTime", "commitTag"]
    assert list(FIELDS) == names
    assert list(META.as_fields()) == [*FIELDS, *CAPTURE_FIELDS]
    assert MetaData.from_fields(META.as_fields()) == META


def test_a_capture_is_at_crawl_time_and_200_where_nothing_else_is_said() -> None:
    eight = {name: value for name, value in META.as_fields().items() if name in FIELDS}
    assert MetaData.from_fields(eight) == META
    assert (META.capture_time, META.status) == (META.crawl_time, 200)
    late = MetaData.from_fields(eight | {"captureTime": "2026-11-21T03:00:07", "status": "404"})
    assert (late.captured, late.status) == (metadata.parse_time("2026-11-21T03:00:07"), 404)
    assert MetaData.from_fields(late.as_fields()) == late


@pytest.mark.parametrize("status", ["", "20", "2000", "600", "099", "2O0", "-20", "²00"])
def test_what_is_no_status(status: str) -> None:
    with pytest.raises(Damaged, match="no HTTP status"):
        MetaData.from_fields(META.as_fields() | {"status": status})


@pytest.mark.parametrize("name", FIELDS)
def test_metadata_without_a_field_are_damaged(name: str) -> None:
    fields = copy.copy(META.as_fields())
    del fields[name]
    with pytest.raises(Damaged, match=name):
        MetaData.from_fields(fields)
