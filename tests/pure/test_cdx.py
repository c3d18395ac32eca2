"""CDX, in the dialect of the Wayback Machine's server: questions, rows, pages; expressions that cannot run away."""

from __future__ import annotations

import io
import json
import os
import random
import re
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from tests.support.urls import canonical_urls
from webarcfs.access.visible_captures import NEVER, VisibleCapture
from webarcfs.archive.model.urls import surt
from webarcfs.room.replay.cdx import (
    COLUMNS,
    LONGEST_PATTERN,
    LONGEST_QUERY,
    MOST_FOR_PYWB,
    MOST_PATTERN_MEMORY,
    MOST_ROWS,
    CdxFault,
    CdxFilter,
    CdxQuestion,
    MatchType,
    RecordName,
    ResumeKey,
    SurtRange,
    answer,
    availability,
    parse_availability,
    parse_filter,
    parse_question,
    parse_record_name,
    pywb_rows,
    record_name,
    rows,
    value_of,
)
from webarcfs.room.replay.replay_url import FIRST_SECOND, LAST_SECOND, seconds_of

pytestmark = pytest.mark.pure

NEW_YEAR = 1_767_225_600
DAY = 86_400


def capture(
    url: str, day: int = 0, *, status: int = 200, target: str = "", until: int = NEVER, digest: str = ""
) -> VisibleCapture:
    since = NEW_YEAR + day * DAY
    end = NEVER if until == NEVER else NEW_YEAR + until * DAY
    return VisibleCapture(
        url=url, path=f"/{url.partition('://')[2]}", surt=surt(url), since=since, until=end, last=since, captured=since,
        status=302 if target else status, mime_type="" if target else "text/html", target=target,
        size=0 if target else 10, blob="" if target else f"{day:040x}",
        digest=b"" if target else digest.encode() or day.to_bytes(20, "big"),
    )  # fmt: skip


class Archive:
    """Captures in order, and how many of them were read."""

    def __init__(self, captures: Iterable[VisibleCapture]) -> None:
        self.captures = sorted(captures, key=lambda each: (each.surt, each.since, each.url))
        self.read_so_far = 0

    def read(self, part: SurtRange, descending: bool) -> Iterator[VisibleCapture]:
        for each in reversed(self.captures) if descending else self.captures:
            if part.low <= each.surt < part.high:
                self.read_so_far += 1
                yield each


def question(**parameters: str | list[str]) -> CdxQuestion:
    found = parse_question(urlencode(_named(parameters), doseq=True).encode())
    assert isinstance(found, CdxQuestion), found
    return found


def fault(**parameters: str | list[str]) -> str:
    found = parse_question(urlencode(_named(parameters), doseq=True).encode())
    assert isinstance(found, CdxFault), found
    return found.parameter


def _named(parameters: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
    return {name.rstrip("_"): value for name, value in parameters.items()}


def asked(archive: Archive, **parameters: str | list[str]) -> str:
    return "".join(answer(question(**parameters), archive.read))


def originals(archive: Archive, **parameters: str | list[str]) -> list[tuple[str, str]]:
    text = asked(archive, fl="original,timestamp", **parameters)
    return [(url, digits[6:8]) for url, digits in (line.split(" ") for line in text.splitlines())]


A = "http://e.org/a"
SITE = Archive([
    capture("http://e.org/", 0), capture(A, 0, until=2), capture(A, 2, status=404, until=3), capture(A, 3),
    capture("https://e.org/a", 1, target="http://e.org/a"), capture("http://e.org/a/b?c=d", 1),
    capture("http://e.org:8080/", 1), capture("http://e-x.org/", 1), capture("http://www.e.org/", 4),
    capture("http://a.www.e.org/x", 5), capture("http://f.org/", 6),
])  # fmt: skip


# questions


def test_only_the_url_is_needed() -> None:
    found = question(url="http://E.org:80/a#b")
    assert (found.url, found.match, found.limit, found.output) == (A, MatchType.EXACT, MOST_ROWS, "text")
    assert found.fields == COLUMNS
    assert (found.since, found.until) == (FIRST_SECOND, LAST_SECOND)
    assert not found.shows_resume_key


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({}, "url"),
        ({"url": " "}, "url"),
        ({"url": "ftp://e.org/"}, "url"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"url": "http://e.org/\r\nX: y"}, "url"),
        ({"url": ["e.org", "f.org"]}, "url"),
        ({"url": "a" * (LONGEST_QUERY + 1)}, "url"),
        ({"url": "e.org", "matchType": "fuzzy"}, "matchType"),
        ({"url": "e.org", "from": "202601010000001"}, "from"),
        ({"url": "e.org", "to": "2026-01-01"}, "to"),
        ({"url": "e.org", "closest": "yesterday"}, "closest"),
        ({"url": "e.org", "sort": "up"}, "sort"),
        ({"url": "e.org", "output": "xml"}, "output"),
        ({"url": "e.org", "fl": "urlkey,offset"}, "fl"),
        ({"url": "e.org", "fl": "urlkey,"}, "fl"),
        ({"url": "e.org", "limit": "ten"}, "limit"),
        ({"url": "e.org", "limit": "9" * 50}, "limit"),
        ({"url": "e.org", "limit": "-5", "offset": "1"}, "limit"),
        ({"url": "e.org", "limit": "-5", "closest": "2026"}, "limit"),
        ({"url": "e.org", "offset": "-1"}, "offset"),
        ({"url": "e.org", "offset": "20000", "sort": "closest"}, "offset"),
        ({"url": "e.org", "filter": "200"}, "filter"),
        ({"url": "e.org", "filter": "colour:red"}, "filter"),
        ({"url": "e.org", "filter": "statuscode:[2"}, "filter"),
        ({"url": "e.org", "filter": r"original:(a)\1"}, "filter"),
        ({"url": "e.org", "filter": ["statuscode:200"] * 11}, "filter"),
        ({"url": "e.org", "collapse": "colour"}, "collapse"),
        ({"url": "e.org", "collapse": "timestamp:0"}, "collapse"),
        ({"url": "e.org", "resumeKey": "org%2Ce)%2F+2026"}, "resumeKey"),
        ({"url": "e.org", "resumeKey": str(ResumeKey("a", 1)), "limit": "-1"}, "resumeKey"),
        ({"url": "e.org", "page": "first"}, "page"),
        ({"url": "e.org", "pageSize": "all"}, "pageSize"),
        ({"url": "e.org", "filter": "dupecount:1"}, "filter"),
        ({"url": "e.org", "page": "0", "sort": "closest"}, "page"),
        ({"url": "e.org", "page": "0", "limit": "-1"}, "page"),
        ({"url": "e.org", "showNumPages": "true", "resumeKey": str(ResumeKey("a", 1))}, "page"),
    ],
)
def test_a_fault_has_the_name_of_its_parameter(parameters: dict[str, str | list[str]], named: str) -> None:
    assert fault(**parameters) == named


def test_what_this_server_does_not_know_is_ignored_and_so_is_what_is_empty() -> None:
    found = question(
        url="e.org", gzip="false", fastLatest="true", resolveRevisits="true", showPagedIndex="true", crawl="None",
        from_="", filter="", page="-1", limit="0",
    )  # fmt: skip
    assert found == question(url="e.org")
    assert question(url="e.org", fields="url") == question(url="e.org", fl="original")


def test_too_many_parameters_are_a_fault() -> None:
    assert isinstance(parse_question(b"a=b&" * 60 + b"url=e.org"), CdxFault)


@given(st.binary(max_size=60))
def test_no_query_raises(query: bytes) -> None:
    for start in (b"", b"url=e.org&", b"url=", b"url=e.org&filter=original:", b"url=e.org&resumeKey=~"):
        parse_question(start + query)


@given(st.text("~=-_AZaz09", max_size=40), st.text(max_size=20), st.integers(), st.integers())
def test_no_resume_key_raises_and_every_one_is_read_back(text: str, key: str, since: int, skipped: int) -> None:
    ResumeKey.parse(text)
    whole = ResumeKey(key, min(max(since, FIRST_SECOND), LAST_SECOND), abs(skipped) % 100)
    assert ResumeKey.parse(str(whole)) == whole
    assert re.fullmatch(r"~[A-Za-z0-9_-]+", str(whole))


# which URLs


@pytest.mark.parametrize(
    ("parameters", "urls"),
    [
        ({"url": "e.org"}, ["http://e.org/"]),
        ({"url": "e.org/a"}, [A, "https://e.org/a", A, A]),
        ({"url": "https://e.org/a"}, [A, "https://e.org/a", A, A]),
        ({"url": "e.org/a/"}, []),
        ({"url": "E.ORG/A"}, []),
        ({"url": "e.org/a*"}, [A, "https://e.org/a", A, A, "http://e.org/a/b?c=d"]),
        ({"url": "e.org/a", "matchType": "prefix"}, [A, "https://e.org/a", A, A, "http://e.org/a/b?c=d"]),
        ({"url": "e.org/a/*"}, ["http://e.org/a/b?c=d"]),
        ({"url": "e.org/*", "limit": "1"}, ["http://e.org/"]),
        ({"url": "e.org/a/b", "matchType": "host"}, ["http://e.org/", A, "https://e.org/a", A, A, "http://e.org/a/b?c=d"]),
        ({"url": "e.org:8080", "matchType": "host"}, ["http://e.org:8080/"]),
        ({"url": "*.www.e.org"}, ["http://www.e.org/", "http://a.www.e.org/x"]),
        ({"url": "*.www.e.org/*"}, ["http://www.e.org/", "http://a.www.e.org/x"]),
    ],
)  # fmt: skip
def test_the_url_and_its_short_forms(parameters: dict[str, str | list[str]], urls: list[str]) -> None:
    assert [url for url, _ in originals(SITE, **parameters)] == urls


def test_a_domain_has_its_subdomains_and_ports_but_no_name_that_begins_like_it() -> None:
    found = {url for url, _ in originals(SITE, url="e.org", matchType="domain")}
    assert found == {each.url for each in SITE.captures} - {"http://e-x.org/", "http://f.org/"}
    assert {url for url, _ in originals(SITE, url="*.org")} == {each.url for each in SITE.captures}


def test_an_address_is_a_domain_without_subdomains() -> None:
    site = Archive([capture("http://10.0.0.1/"), capture("http://10.0.0.1:81/"), capture("http://[::1]:81/a")])
    assert len(originals(site, url="10.0.0.1", matchType="domain")) == 2
    assert len(originals(site, url="[::1]", matchType="domain")) == 1


@given(canonical_urls, canonical_urls, st.sampled_from(MatchType))
def test_ranges_of_urlkeys_have_what_the_match_type_says(url: str, other: str, match: MatchType) -> None:
    # A prefix keeps its dot segments, and an empty query is none, so these are compared apart.
    if url[-1] in "?*" or "/." in url:
        return
    found = parse_question(f"url={quote(url, safe='')}&matchType={match}".encode())
    assert isinstance(found, CdxQuestion)
    key, mine = surt(other), surt(url)
    host, my_host = key.partition(")")[0], mine.partition(")")[0]
    is_meant = {
        MatchType.EXACT: key == mine,
        MatchType.PREFIX: key.startswith(mine),
        MatchType.HOST: host == my_host,
        MatchType.DOMAIN: re.sub(":[0-9]+$", "", host) == re.sub(":[0-9]+$", "", my_host),
    }
    assert any(part.low <= key < part.high for part in found.surt_ranges()) is is_meant[match]


# rows


def test_a_row_has_seven_columns() -> None:
    assert asked(SITE, url="e.org/a", limit="2") == (
        f"org,e)/a 20260101000000 http://e.org/a text/html 200 {'A' * 32} 10\n"
        "org,e)/a 20260102000000 https://e.org/a unk 302 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ -\n"
    )


def test_pages_have_numbers_and_together_all_rows() -> None:
    many = Archive([capture(f"http://e.org/{each:05}", 0) for each in range(MOST_ROWS + 3)])
    asks = {"url": "e.org/*", "fl": "original"}
    assert asked(many, showNumPages="true", **asks) == "2\n"
    assert asked(many, showNumPages="true", filter="statuscode:404", **asks) == "0\n"
    pages = [asked(many, page=str(number), **asks).splitlines() for number in range(3)]
    assert [len(page) for page in pages] == [MOST_ROWS, 3, 0]
    assert [url for page in pages for url in page] == [each.url for each in many.captures]
    assert asked(many, page="1", limit="1", offset="1", **asks).splitlines() == pages[1][1:2]


@pytest.mark.large
@pytest.mark.parametrize(("size", "pages"), [("1", 6), ("2", 3), ("5", 2), ("100", 2), ("0", 2), ("-1", 2)])
def test_a_page_has_as_many_rows_as_was_asked_for_within_bounds(size: str, pages: int) -> None:
    many = Archive([capture(f"http://e.org/{number:05}") for number in range(MOST_ROWS + 3)])
    asks = {"url": "e.org/*", "fl": "original", "pageSize": size, "collapse": "urlkey", "output": "json"}
    assert asked(many, showNumPages="True", **asks) == f"{pages}\n"
    found = [json.loads(asked(many, page=str(number), **asks))[1:] for number in range(pages)]
    assert [url for page in found for (url,) in page] == [each.url for each in many.captures]


@pytest.mark.parametrize("output", ["text", "json", "cdxj"])
def test_behind_the_last_page_there_is_nothing_at_all(output: str) -> None:
    assert asked(SITE, url="e.org/a", output=output, page="1") == ""
    assert asked(SITE, url="nowhere.example", output=output, page="0") == ("[]\n" if output == "json" else "")


AGAIN = Archive([
    *(capture(A, day, digest=digest) for day, digest in enumerate("ababbca")), capture("http://e.org/b", 0, digest="b"),
])  # fmt: skip


def counts(**parameters: str | list[str]) -> list[str]:
    return [line.split(" ")[-1] for line in asked(AGAIN, url="e.org/*", **parameters).splitlines() if line]


def test_a_row_tells_how_many_above_it_have_its_digest() -> None:
    assert counts(showDupeCount="true") == ["0", "0", "1", "1", "2", "0", "2", "0"]
    assert counts(showDupeCount="true", collapse="digest") == ["0", "0", "1", "1", "0", "2", "0"]
    assert counts(fl="timestamp,dupecount") == counts(showDupeCount="true")
    assert counts(showDupeCount="true", from_="20260103") == ["0", "0", "1", "0", "1"]
    assert counts(showDupeCount="true", limit="-3") == ["0", "2", "0"]
    assert counts(showDupeCount="true", sort="reverse") == ["0", "0", "0", "0", "1", "1", "2", "2"]
    table = json.loads(asked(AGAIN, url="e.org/a", output="json", showDupeCount="true"))
    assert table[0] == [*COLUMNS, "dupecount"]


def test_the_count_goes_on_behind_a_resume_key() -> None:
    whole = counts(showDupeCount="true", collapse="digest")
    for limit in range(1, len(whole) + 1):
        found: list[str] = []
        key: dict[str, str | list[str]] = {}
        while True:
            asks = {"url": "e.org/*", "showDupeCount": "true", "collapse": "digest", "limit": str(limit)}
            rows_of_page, _, following = asked(AGAIN, showResumeKey="true", **asks, **key).partition("\n\n")
            found += [line.split(" ")[-1] for line in rows_of_page.splitlines()]
            if not following:
                break
            key = {"resumeKey": following.strip()}
        assert found == whole, limit


@given(st.text(max_size=20))
def test_no_type_breaks_a_row(mime_type: str) -> None:
    odd = VisibleCapture(
        url=A, path="", surt="org,e)/a", since=0, until=NEVER, last=0, captured=0, status=0, mime_type=mime_type
    )
    line = " ".join(value_of(odd, field) for field in COLUMNS)
    assert len(line.split(" ")) == len(COLUMNS) and line.isascii() and line.isprintable()


def test_json_names_the_columns_in_its_first_row() -> None:
    found = json.loads(asked(SITE, url="e.org/a", output="json", fl="timestamp,status,mime", limit="2"))
    assert found == [["timestamp", "statuscode", "mimetype"], ["20260101000000", "200", "text/html"],
                     ["20260102000000", "302", "unk"]]  # fmt: skip
    assert json.loads(asked(SITE, url="nowhere.example", output="json")) == []


def test_cdxj_has_key_time_and_the_rest_as_json() -> None:
    key, digits, fields = asked(SITE, url="e.org", output="cdxj").rstrip("\n").split(" ", 2)
    assert (key, digits) == ("org,e)/", "20260101000000")
    assert json.loads(fields) == {
        "url": "http://e.org/", "mime": "text/html", "status": "200", "digest": f"sha1:{'A' * 32}", "length": "10",
    }  # fmt: skip
    assert json.loads(asked(SITE, url="e.org", output="cdxj", fl="url").split(" ", 2)[2]) == {"url": "http://e.org/"}


def test_nothing_found_is_an_empty_text() -> None:
    assert asked(SITE, url="nowhere.example", showResumeKey="true") == ""


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        ("", "", ["01", "02", "03", "04"]),
        ("20260102", "", ["02", "03", "04"]),
        ("", "20260102", ["01", "02"]),
        ("20260102000000", "20260103000000", ["02", "03"]),
        ("20260102000001", "2026010223", []),
        ("2025", "2026", ["01", "02", "03", "04"]),
        ("2027", "", []),
        ("2026", "2025", []),
    ],
)
def test_from_and_to_are_inclusive_spans(since: str, until: str, days: list[str]) -> None:
    assert [day for _, day in originals(SITE, url="e.org/a", from_=since, to=until)] == days


@pytest.mark.parametrize(
    ("filters", "days"),
    [
        ("statuscode:200", ["01", "04"]),
        ("!statuscode:200", ["02", "03"]),
        ("statuscode:[23]..", ["01", "02", "04"]),
        ("statuscode:2", []),
        ("status:4.*", ["03"]),
        ("=statuscode:404", ["03"]),
        ("!=mimetype:text/html", ["02"]),
        ("~original:https", ["02"]),
        ("!~original:https", ["01", "03", "04"]),
        ("~!original:https", ["01", "03", "04"]),
        ("original:.*e.org/a", ["01", "02", "03", "04"]),
        (["statuscode:200", "timestamp:20260104.*"], ["04"]),
    ],
)
def test_filters_match_whole_values_or_parts_of_them(filters: str | list[str], days: list[str]) -> None:
    assert [day for _, day in originals(SITE, url="e.org/a", filter=filters)] == days


def test_collapse_keeps_the_first_of_neighbours() -> None:
    assert [url for url, _ in originals(SITE, url="e.org/*", collapse="urlkey")] == [
        "http://e.org/", A, "http://e.org/a/b?c=d",
    ]  # fmt: skip
    assert [day for _, day in originals(SITE, url="e.org/a", collapse="timestamp:6")] == ["01"]
    assert [day for _, day in originals(SITE, url="e.org/a", collapse="statuscode")] == ["01", "02", "03", "04"]
    assert [day for _, day in originals(SITE, url="e.org/a", collapse=["statuscode:1", "mimetype"])] == [
        "01", "02", "03",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "days"),
    [
        ({"sort": "reverse"}, ["04", "03", "02", "01"]),
        ({"sort": "reverse", "limit": "1"}, ["04"]),
        ({"limit": "-1"}, ["04"]),
        ({"limit": "-3", "fastLatest": "true"}, ["02", "03", "04"]),
        ({"limit": "-3", "sort": "reverse"}, ["03", "02", "01"]),
        ({"limit": "-9"}, ["01", "02", "03", "04"]),
        ({"offset": "1", "limit": "2"}, ["02", "03"]),
        ({"closest": "20260103"}, ["04", "03", "02", "01"]),
        ({"closest": "20260103000000", "sort": "closest"}, ["03", "02", "04", "01"]),
        ({"closest": "20260103000000", "sort": "closest", "limit": "1"}, ["03"]),
        ({"closest": "20260103000000", "offset": "1", "limit": "2"}, ["02", "04"]),
        ({"closest": "now", "limit": "1"}, ["04"]),
        ({"sort": "closest", "closest": "", "limit": "1"}, ["04"]),
        ({"closest": "19940101000000", "limit": "1"}, ["01"]),
    ],
)
def test_orders_and_limits(parameters: dict[str, str | list[str]], days: list[str]) -> None:
    assert [day for _, day in originals(SITE, url="e.org/a", **parameters)] == days


# pages


def pages(archive: Archive, **parameters: str | list[str]) -> Iterator[list[str]]:
    """Go on with resume keys as clients do: the same parameters, with the key."""
    key = ""
    while True:
        text = asked(archive, showResumeKey="true", **parameters, **({"resumeKey": key} if key else {}))
        lines, blank, key = text.partition("\n\n")
        yield [line for line in lines.split("\n") if line]
        if not blank:
            return
        key = key.removesuffix("\n")


_captures = st.lists(
    st.builds(
        capture,
        st.sampled_from([f"{scheme}://e.org/{name}" for scheme in ("http", "https") for name in ("", "a", "a/b", "c")]),
        st.integers(0, 3),
        status=st.sampled_from([200, 404]),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(
    _captures,
    st.integers(1, 4),
    st.sampled_from(["default", "reverse"]),
    st.sampled_from(["", "urlkey", "timestamp:8", "statuscode"]),
    st.sampled_from(["", "statuscode:200", "!urlkey:.*a.*"]),
)
def test_pages_put_together_are_the_whole_answer(
    captures: list[VisibleCapture], limit: int, sort: str, collapse: str, condition: str
) -> None:
    archive = Archive(captures)
    same: dict[str, str | list[str]] = {"url": "e.org/*", "sort": sort, "collapse": collapse, "filter": condition}
    found = list(pages(archive, limit=str(limit), **same))
    assert [line for page in found for line in page] == asked(archive, **same).splitlines()
    assert all(len(page) == limit for page in found[:-1])
    assert found == [[]] or all(found), "a key is only there where there is more"


@settings(deadline=None)
@given(
    _captures, st.integers(1, 5), st.sampled_from(["default", "reverse"]), st.sampled_from(["", "urlkey", "statuscode"])
)
def test_a_negative_limit_is_the_end_of_the_whole_answer(
    captures: list[VisibleCapture], limit: int, sort: str, collapse: str
) -> None:
    archive = Archive(captures)
    same: dict[str, str | list[str]] = {"url": "e.org/*", "sort": sort, "collapse": collapse}
    assert asked(archive, limit=f"-{limit}", **same).splitlines() == asked(archive, **same).splitlines()[-limit:]


def test_an_offset_is_of_the_first_page_alone() -> None:
    found = list(pages(SITE, url="e.org/a", limit="2", offset="1", fl="timestamp"))
    assert found == [["20260102000000", "20260103000000"], ["20260104000000"]]


def test_a_page_has_ten_thousand_rows_at_most_and_json_says_where_it_goes_on() -> None:
    archive = Archive([capture(f"http://e.org/{number}") for number in range(MOST_ROWS + 5)])
    assert len(asked(archive, url="e.org/*", limit="25000").splitlines()) == MOST_ROWS
    found = json.loads(asked(archive, url="e.org/*", output="json", showResumeKey="True", fl="original"))
    assert (len(found), found[-2], len(found[-1])) == (1 + MOST_ROWS + 2, [], 1)
    rest = asked(archive, url="e.org/*", resumeKey=found[-1][0], fl="original").splitlines()
    assert len(rest) == 5 and not {*rest} & {row[0] for row in found[1:-2]}


def test_no_more_is_read_than_is_written() -> None:
    archive = Archive([capture(f"http://e.org/{number}") for number in range(500)])
    assert len(list(rows(question(url="e.org/*", limit="3", showResumeKey="true"), archive.read))) == 4
    assert archive.read_so_far == 4
    archive.read_so_far = 0
    assert len(asked(archive, url="e.org/*", limit="-3").splitlines()) == 3
    assert archive.read_so_far == 3


# expressions


def pattern(text: str) -> CdxFilter:
    condition = parse_filter(f"original:(?:{text})")
    assert isinstance(condition, CdxFilter), condition
    return condition


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\W", r"\.", "1", "", "^", "$", "[]b]", "\n"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "{0}", "*?"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@pytest.mark.large
@settings(deadline=None, max_examples=examples(300))
@given(_PATTERNS, st.lists(st.text("ab1.cü\n", max_size=6), min_size=1, max_size=4))
def test_an_expression_matches_the_whole_value_as_in_python(text: str, values: list[str]) -> None:
    condition = pattern(text)
    # To Python `$` is also before a final end of line.
    of_python = text.replace("$", r"\Z")
    for value in values:
        expected = re.fullmatch(of_python, value, re.DOTALL | re.ASCII) is not None
        assert condition.keeps(value) is expected, (text, value)


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a|aa)+$b",
        "(.*)*(.*)*(.*)*x",
        "(.*a){15}b",
        "((a*)*)*b",
        "(a?){30}a{30}b",
        "(.*.*.*.*)*=.*",
        "((a?){999}.*)*b",
    ],
)
def test_an_expression_that_python_would_try_for_years_takes_no_time(text: str) -> None:
    condition = pattern(text)
    begin = time.process_time()
    assert not condition.keeps("a" * 5_000)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "a)", "[", "[a", "[z-a]", "*", "a**", "a++", "+a", "?a", "a{3,1}", "a{99999}", "\\", r"(a)\1",
        r"\p{Greece}", "(?=a)", "(?!a)", "(?<=a)", "(((((a{50}){50}){50}){50}){50})", "a{1001}", r"((\pL{30}){30})",
        "a+" * (LONGEST_PATTERN // 2) + "a", "(a)\udc80",
    ],
)  # fmt: skip
def test_an_expression_that_is_not_taken_says_why(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    fault = parse_filter(f"original:{text}")
    assert isinstance(fault, CdxFault) and fault.parameter == "filter"
    assert fault.what.isprintable() and "b'" not in fault.what
    assert capfd.readouterr() == ("", "")


@given(st.text("ab()[]{}*+?|\\^$.,-1~&", max_size=25))
def test_no_expression_raises(text: str) -> None:
    parse_filter(f"original:{text}")


@pytest.mark.large
def test_what_an_expression_remembers_is_bounded(capfd: pytest.CaptureFixture[str]) -> None:
    """The automaton of this expression would have 2^400 states; RE2 goes on without it, and logs nothing."""
    condition = pattern("(.*a.{400}|.*b.{400})*c")
    values = ["".join(random.Random(seed).choices("ab", k=5_000)) for seed in range(40)]
    before = resident_bytes()
    assert not any(condition.keeps(value) for value in values)
    assert resident_bytes() - before < 16 * MOST_PATTERN_MEMORY
    assert capfd.readouterr() == ("", "")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# pywb


def pywb(archive: Archive, **parameters: str | list[str]) -> list[dict[str, str]]:
    found = []
    for line in pywb_rows(question(**parameters), archive.read):
        key, digits, fields = line.split(" ", 2)
        found.append({**json.loads(fields), "urlkey": key, "timestamp": digits})
    return found


MOVED = Archive([
    capture("http://e.org/", 0, until=2), capture("http://e.org/", 2, target="https://e.org/"),
    capture("https://e.org/", 2), capture("https://e.org/gone", 0, until=1), capture("https://e.org/new", 3),
])  # fmt: skip


def test_pywb_is_told_what_is_in_force_and_nothing_else() -> None:
    (only,) = pywb(MOVED, url="http://e.org/", closest="20260102000000", sort="closest", limit="100", matchType="exact")
    assert only == {
        "urlkey": "org,e)/", "timestamp": "20260101000000", "url": "http://e.org/", "mime": "text/html",
        "status": "200", "digest": f"sha1:{'A' * 32}", "length": "-", "offset": "0",
        "filename": record_name(NEW_YEAR, "http://e.org/"),
    }  # fmt: skip
    assert pywb(MOVED, url="http://e.org/", closest="20251231000000") == []
    assert pywb(MOVED, url="https://e.org/gone", closest="20260105") == []


def test_pywb_is_told_the_document_behind_a_redirect() -> None:
    found = pywb(MOVED, url="http://e.org/", closest="20260105")
    assert [(each["url"], each["status"], each["mime"]) for each in found] == [
        ("http://e.org/", "302", "unk"), ("https://e.org/", "200", "text/html"),
    ]  # fmt: skip
    (page,) = pywb(MOVED, url="https://e.org/", closest="")
    assert page["url"] == "https://e.org/"


def test_pywb_is_told_a_thousand_rows_of_a_prefix_at_most() -> None:
    many = Archive([capture(f"http://e.org/{number}") for number in range(MOST_FOR_PYWB + 9)])
    assert len(pywb(many, url="http://e.org/", matchType="prefix", closest="2026")) == MOST_FOR_PYWB
    assert many.read_so_far < MOST_FOR_PYWB + 5


@given(canonical_urls.filter(lambda url: not url.endswith("#")), st.integers(FIRST_SECOND, LAST_SECOND))
def test_the_name_of_a_record_is_read_back(url: str, seconds: int) -> None:
    assert parse_record_name(record_name(seconds, url)) == RecordName(seconds, url)


@pytest.mark.parametrize(
    "name",
    [
        "", "x", "20260101000000", "20260101000000/", "20260101000000/!", "20260101000000/a", "2026/aHR0cDovL2UvYQ",
        "20261301000000/aHR0cDovL2Uub3JnLw", "20260101000000/ZmlsZTovLy9h", "20260101000000/é",
        "٢٠٢٦٠١٠١٠٠٠٠٠٠/aHR0cDovL2Uub3JnLw",
    ],
)  # fmt: skip
def test_other_names_are_no_records(name: str) -> None:
    assert parse_record_name(name) is None


# availability


def test_the_availability_api_answers_with_the_closest_memento() -> None:
    found = parse_availability(b"url=e.org/a&timestamp=202601030000&x=y")
    assert isinstance(found, CdxQuestion)
    known = [each for each in SITE.captures if each.surt == "org,e)/a"]
    assert json.loads(availability("http://room", found, A, known)) == {
        "url": A, "timestamp": "20260103000059",
        "archived_snapshots": {"closest": {
            "status": "404", "available": True, "url": f"http://room/web/20260103000000/{A}",
            "timestamp": "20260103000000",
        }},
    }  # fmt: skip
    assert json.loads(availability("", found, A, []))["archived_snapshots"] == {}
    assert parse_availability(b"url=e.org&timestamp=x") == CdxFault("timestamp", "is a time of 1 to 14 digits")


# clients


def test_a_wayback_client_reads_all_pages() -> None:
    wayback, requests = pytest.importorskip("wayback"), pytest.importorskip("requests")

    class Room(requests.adapters.BaseAdapter):  # type: ignore[misc, name-defined] # requests has no types here
        """The room, in the place of web.archive.org."""

        def send(self, request: object, **_: object) -> object:
            query = str(request.url).partition("?")[2]  # type: ignore[attr-defined]
            found = parse_question(query.encode())
            assert isinstance(found, CdxQuestion), found
            answered = requests.Response()
            answered.status_code, answered.url, answered.request = 200, request.url, request  # type: ignore[attr-defined]
            answered.raw = io.BytesIO("".join(answer(found, SITE.read)).encode())
            return answered

        def close(self) -> None:
            pass

    session = wayback.WaybackSession(search_calls_per_second=0)
    session.mount("https://web.archive.org/", Room())
    with wayback.WaybackClient(session) as client:
        found = list(
            client.search("e.org", match_type="domain", limit=3, to_date="2026", filter_field="!statuscode:404")
        )
        latest = list(client.search("http://e.org/a", limit=-2, fast_latest=True))
    assert len(found) == 8
    assert [each.timestamp.day for each in latest] == [3, 4]
    assert latest[-1].raw_url == f"https://web.archive.org/web/20260104000000id_/{A}"
    assert [list(group) for _, group in groupby(found, lambda each: (each.urlkey, each.timestamp))] == [
        [each] for each in found
    ]
    assert seconds_of("20260104000000") == latest[-1].timestamp.timestamp()
