"""Which crawl counts as complete, given what became of its hosts; how URLs are spelled, and what is said of one."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.catalogue.recording import Circumstances, is_whole, status_of
from agent.crawl.disposition import lines_on_hosts
from agent.reports.report import HostEnd, Missing
from agent.reports.tables import LogLine, fate, spellings
from webarcfs.archive.catalogue.record import CrawlPart, Record, RecordState
from webarcfs.archive.model.metadata import CET, CommitTag

pytestmark = pytest.mark.pure

_TIME = datetime(2026, 1, 1, tzinfo=CET)
_HOSTS = st.dictionaries(st.sampled_from("abcdef"), st.booleans(), min_size=1)


def _about(pages: dict[str, bool], required: tuple[str, ...] = (), resources: tuple[str, ...] = ()) -> Circumstances:
    ends = [HostEnd(host, "page", done, "" if done else "server down: dns", 0, "") for host, done in pages.items()]
    ends += [HostEnd(host, "resource", False, "max-duration", 1, "") for host in resources]
    return Circumstances(hosts=tuple(ends), required=required)


def _parts(hosts: dict[str, bool]) -> tuple[CrawlPart, ...]:
    return tuple(CrawlPart(CommitTag(_TIME, host), done, "", False) for host, done in hosts.items())


def _released(hosts: dict[str, bool]) -> Record:
    return Record(id="r", number=1, publication="p", state=RecordState.RELEASED, release="", parts=_parts(hosts))


@given(_HOSTS, _HOSTS)
def test_what_was_complete_must_be_so_again(now: dict[str, bool], before: dict[str, bool]) -> None:
    whole = is_whole(_about(now), (), _released(before))
    assert whole == (any(now.values()) and not any(before.get(host) and not done for host, done in now.items()))


@given(_HOSTS)
def test_resources_never_count_and_required_hosts_do(now: dict[str, bool]) -> None:
    assert is_whole(_about(now, resources=("x", "y")), (), None) == any(now.values())
    for host, done in now.items():
        assert is_whole(_about(now, (host,)), (), None) == (done and any(now.values()))
    assert not is_whole(_about(now, ("nowhere",)), (), None)


def test_without_a_table_of_hosts_the_parts_decide() -> None:
    assert is_whole(Circumstances(), _parts({"a": True}), None)
    assert not is_whole(Circumstances(), _parts({"a": True, "b": False}), None)


def test_field_21_names_the_hosts() -> None:
    about = _about({"a": True, "b": False, "c": False})
    told = "complete but for 2 hosts: b (server down: dns), c (server down: dns)"
    assert status_of(about, completeness=True) == told
    assert status_of(about, completeness=False) == "incomplete"
    assert status_of(_about({"a": True}), completeness=True) == "complete"
    assert len(status_of(_about({f"h{number}": number == 0 for number in range(500)}), completeness=True)) < 1000


def test_lines_name_few() -> None:
    lines = lines_on_hosts({f"h{number:02}": "server down: dns" for number in range(12)} | {"z": "left out"})
    assert lines == [
        f"server down (dns): {', '.join(f'h{number:02}' for number in range(10))} and 2 more",
        "left out: z",
    ]
    lacks = Missing({f"h{number}": 1 for number in range(10)}, {"dns": 10})
    assert lacks.lines()[0].startswith("missing from pages: 10 resources: h0 1, ")
    assert lacks.lines()[0].endswith(", 2 more")
    assert Missing().lines() == []


@pytest.mark.parametrize(
    ("url", "others"),
    [
        ("http://e.org/", {"https://e.org/"}),
        ("http://e.org/a", {"http://e.org/a/", "https://e.org/a", "https://e.org/a/"}),
        ("https://e.org/a/?q=/", {"https://e.org/a?q=/", "http://e.org/a?q=/", "http://e.org/a/?q=/"}),
    ],
)
def test_spellings(url: str, others: set[str]) -> None:
    ways = spellings(url)
    assert ways[0] == url and set(ways[1:]) == others


def test_what_is_said_of_a_url_has_the_sentence_of_each_word() -> None:
    notes = ("seed3:-7", "trap:repeats", "filter:mime", "links:3", "depth:2", "word-of-later")
    line = LogLine("http://e.org/x", -4000, 0, "LE", "-", notes, "http://e.org/")
    told = list(fate(line))
    assert told[0] == "http://e.org/x is not archived"
    assert [text.partition(":")[0].strip() for text in told[2:-1]] == ["trap", "filter"]
    assert told[-1] == "  found as a resource that a page needs of http://e.org/"


@pytest.mark.parametrize(
    ("hops", "referrer", "says"),
    [
        ("-", "-", "as a start URL"),
        ("M", "-", "as the sitemap of its host"),
        ("MM", "http://e.org/sitemap.xml", "by an entry of http://e.org/sitemap.xml"),
        ("LR", "http://e.org/old", "by a redirect of http://e.org/old"),
    ],
)
def test_how_a_url_was_found(hops: str, referrer: str, says: str) -> None:
    line = LogLine("http://e.org/x", 200, 1, hops, "text/html", ("added",), referrer)
    assert list(fate(line))[-1] == f"  found {says}"
