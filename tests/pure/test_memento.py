"""Memento: which memento answers, and what headers say (RFC 7089)."""

from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.access.visible_captures import NEVER, VisibleCapture
from webarcfs.room.replay import memento
from webarcfs.room.replay.memento import BadDate, accept_datetime, http_date, in_force, nearest
from webarcfs.room.replay.replay_url import FIRST_SECOND, LAST_SECOND, MapFormat

pytestmark = pytest.mark.pure

BASE = "http://127.0.0.1:8080"
URL = "http://e.org/a"
DAY = 86_400
#: Thu, 01 Jan 2026 00:00:00 GMT.
NEW_YEAR = 1_767_225_600


def capture(
    since: int, until: int = NEVER, *, url: str = URL, target: str = "", last: int | None = None
) -> VisibleCapture:
    begin = NEW_YEAR + since * DAY
    end = NEVER if until == NEVER else NEW_YEAR + until * DAY
    latest = begin if last is None else NEW_YEAR + last * DAY
    return VisibleCapture(
        url=url, path="/e.org/a", surt="org,e)/a", since=begin, until=end, last=latest, captured=begin,
        status=301 if target else 200, target=target, blob="" if target else f"{since:040x}",
    )  # fmt: skip


def at(day: float) -> int:
    return NEW_YEAR + int(day * DAY)


FOUR = [capture(0, 1), capture(1, 2), capture(2, 3), capture(3)]


@given(st.integers(FIRST_SECOND, LAST_SECOND))
def test_a_date_is_written_as_http_wants_it_and_read_back(seconds: int) -> None:
    text = http_date(seconds)
    assert accept_datetime(text) == seconds
    if seconds >= -59_000_000_000:  # what the standard library reads: from the year 100 on
        assert parsedate_to_datetime(text).timestamp() == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "20260101000000", "2026-01-01T00:00:00Z", "Thu, 1 Jan 2026 00:00:00 GMT",
        "Thu, 01 Jan 2026 00:00:00", "Thu, 01 Jan 2026 00:00:00 UTC", "Thu, 01 Jan 2026 00:00:00 +0000",
        "Thu, 01 Jan 26 00:00:00 GMT", "Thursday, 01-Jan-26 00:00:00 GMT", "Thu Jan  1 00:00:00 2026",
        "thu, 01 jan 2026 00:00:00 gmt", "Fri, 01 Jan 2026 00:00:00 GMT", "Mon, 30 Feb 2026 00:00:00 GMT",
        "Thu, 01 Jan 2026 24:00:00 GMT", "Thu, 01 Jan 2026 00:60:00 GMT", "Thu, 01 Jan 2026 00:00:61 GMT",
        "Thu, 01 Jan 2026 00:00:00 GMT, Thu, 01 Jan 2026 00:00:00 GMT", "Thu, ٠١ Jan 2026 00:00:00 GMT",
        "Thu, 01 Jan 0000 00:00:00 GMT",
    ],
)  # fmt: skip
def test_another_date_is_a_fault(text: str) -> None:
    assert isinstance(accept_datetime(text), BadDate)


def test_a_leap_second_is_the_next_second() -> None:
    assert accept_datetime("Sat, 31 Dec 2016 23:59:60 GMT") == accept_datetime("Sun, 01 Jan 2017 00:00:00 GMT")


@given(st.text(max_size=40))
def test_no_date_raises(text: str) -> None:
    accept_datetime(text)


def test_the_memento_in_force_answers_from_its_time_up_to_the_next_ones() -> None:
    assert in_force(FOUR, URL, at(1)) == FOUR[1]
    assert in_force(FOUR, URL, at(1.99)) == FOUR[1]
    assert in_force(FOUR, URL, at(2)) == FOUR[2]
    assert in_force(FOUR, URL, LAST_SECOND) == FOUR[3]
    assert in_force(FOUR, URL, at(-1)) is None


def test_before_the_first_it_is_the_first_and_after_the_last_the_last() -> None:
    assert nearest(FOUR, URL, FIRST_SECOND) == FOUR[0]
    gone = [capture(0, 5, last=4)]
    assert nearest(gone, URL, at(100)) == gone[0]
    assert nearest([], URL, at(0)) is None


def test_where_the_page_was_gone_the_nearest_answers() -> None:
    old, new = capture(0, 11, last=10), capture(20)
    assert nearest([old, new], URL, at(14)) == old  # its last snapshot is 4 days away
    assert nearest([old, new], URL, at(16)) == new
    assert nearest([old, new], URL, at(15)) == old, "of two that are equally near the earlier one"


def test_a_redirect_of_this_very_url_comes_before_a_document_and_that_before_a_redirect_of_the_other_scheme() -> None:
    plain = capture(0, url="http://e.org/a", target="https://e.org/a")
    page = capture(0, url="https://e.org/a")
    assert in_force([plain, page], "http://e.org/a", at(1)) == plain
    assert in_force([plain, page], "https://e.org/a", at(1)) == page
    assert nearest([plain, page], "https://e.org/a", at(-1)) == page


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=8), st.integers(-5, 50))
def test_there_is_always_a_nearest_and_nothing_is_nearer(spans: list[tuple[int, int]], day: int) -> None:
    known = sorted((capture(since, since + length) for since, length in spans), key=lambda each: each.since)
    found = nearest(known, URL, at(day))
    assert (found is None) == (not known)
    if found is not None:
        distance = 0 if found.since <= at(day) < found.until else abs(found.since - at(day))
        assert distance <= min(abs(each.since - at(day)) for each in known)


def headers_of(found: memento.Headers) -> dict[str, str]:
    assert all(value.isascii() and value.isprintable() for _, value in found)
    return dict(found)


def links(value: str) -> dict[str, dict[str, str]]:
    """Read a header Link as the library `requests` does: by the text of rel."""
    utils = pytest.importorskip("requests.utils")
    return {each["rel"]: each for each in utils.parse_header_links(value)}


def test_a_memento_says_its_time_and_its_place_among_the_others() -> None:
    found = headers_of(memento.memento_headers(BASE, URL, FOUR, FOUR[1]))
    assert found["Memento-Datetime"] == "Fri, 02 Jan 2026 00:00:00 GMT"
    assert "Vary" not in found
    assert links(found["Link"]) == {
        "original": {"url": URL, "rel": "original"},
        "timegate": {"url": f"{BASE}/web/{URL}", "rel": "timegate"},
        "timemap": {
            "url": f"{BASE}/timemap/link/{URL}", "rel": "timemap", "type": "application/link-format",
            "from": "Thu, 01 Jan 2026 00:00:00 GMT", "until": "Sun, 04 Jan 2026 00:00:00 GMT",
        },
        "first prev memento": {
            "url": f"{BASE}/web/20260101000000mp_/{URL}", "rel": "first prev memento",
            "datetime": "Thu, 01 Jan 2026 00:00:00 GMT",
        },
        "memento": {
            "url": f"{BASE}/web/20260102000000mp_/{URL}", "rel": "memento", "datetime": "Fri, 02 Jan 2026 00:00:00 GMT",
        },
        "next memento": {
            "url": f"{BASE}/web/20260103000000mp_/{URL}", "rel": "next memento",
            "datetime": "Sat, 03 Jan 2026 00:00:00 GMT",
        },
        "last memento": {
            "url": f"{BASE}/web/20260104000000mp_/{URL}", "rel": "last memento",
            "datetime": "Sun, 04 Jan 2026 00:00:00 GMT",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("known", "place", "rels"),
    [
        (FOUR[:1], 0, ["first last memento"]),
        (FOUR[:2], 0, ["first memento", "next last memento"]),
        (FOUR[:2], 1, ["first prev memento", "last memento"]),
        (FOUR[:3], 1, ["first prev memento", "memento", "next last memento"]),
    ],
)
def test_a_memento_that_is_several_of_these_has_one_link(
    known: list[VisibleCapture], place: int, rels: list[str]
) -> None:
    value = headers_of(memento.memento_headers(BASE, URL, known, known[place]))["Link"]
    assert [rel for rel in links(value) if "memento" in rel] == rels


def test_a_timegate_varies_and_is_no_memento() -> None:
    found = headers_of(memento.timegate_headers(BASE, URL, FOUR, FOUR[2]))
    assert found["Location"] == f"/web/20260103000000mp_/{URL}"
    assert found["Vary"] == "accept-datetime"
    assert "Memento-Datetime" not in found
    assert {"original", "timemap", "first memento", "next last memento"} <= set(links(found["Link"]))
    assert "timegate" not in links(found["Link"])
    frame = headers_of(memento.timegate_headers(BASE, URL, FOUR, FOUR[3], "/web/20260104000000/http://e.org/a"))
    assert frame["Location"] == "/web/20260104000000/http://e.org/a"


def test_another_redirect_says_the_original_and_does_not_vary() -> None:
    found = headers_of(memento.redirect_headers(URL, f"/web/20260101000000/{URL}"))
    assert found == {"Location": f"/web/20260101000000/{URL}", "Link": f'<{URL}>; rel="original"'}


def test_an_archived_redirect_is_a_memento() -> None:
    leads = capture(0, target="http://e.org/b#c")
    found = headers_of(memento.memento_headers(BASE, URL, [leads], leads))
    assert found["Memento-Datetime"] == "Thu, 01 Jan 2026 00:00:00 GMT"


def test_a_long_url_leaves_links_out_but_never_the_original() -> None:
    url = f"http://e.org/{'a' * 1_500}"
    known = [capture(day, day + 1, url=url) for day in range(5)]
    value = headers_of(memento.memento_headers(BASE, url, known, known[2]))["Link"]
    assert len(value) <= memento.LONGEST_LINK
    assert list(links(value)) == ["original", "timegate", "timemap", "memento"]
    longest = f"http://e.org/{'a' * 7_900}"
    known = [capture(0, url=longest)]
    value = headers_of(memento.memento_headers(BASE, longest, known, known[0]))["Link"]
    assert value == f'<{longest}>; rel="original"'


def test_a_client_reads_our_links() -> None:
    client = pytest.importorskip("memento_client").MementoClient
    url = "http://e.org/a,b?c=d,e"
    known = [capture(day, day + 1, url=url) for day in range(3)]
    value = headers_of(memento.timegate_headers(BASE, url, known, known[1]))["Link"]
    read = client.get_uri_dt_for_rel(client.parse_link_header(value), ["original", "first", "prev", "next", "last"])
    assert {rel: each["uri"] for rel, each in read.items()} == {
        "original": url,
        "first": f"{BASE}/web/20260101000000mp_/{url}",
        "prev": f"{BASE}/web/20260101000000mp_/{url}",
        "next": f"{BASE}/web/20260103000000mp_/{url}",
        "last": f"{BASE}/web/20260103000000mp_/{url}",
    }
    assert client.convert_to_datetime(read["last"]["datetime"][0]).year == 2026


def test_the_forms_of_timemaps_have_their_types() -> None:
    types = [headers_of(memento.timemap_headers(form))["Content-Type"] for form in MapFormat]
    assert types == ["application/link-format", "application/json", "application/cdxj+ors"]
