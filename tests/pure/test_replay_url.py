"""The URLs of replay: what each asks for, and that what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.urls import canonical_urls
from webarcfs.room.replay import replay_url
from webarcfs.room.replay.replay_url import (
    FIRST_SECOND,
    LAST_SECOND,
    LONGEST_URL,
    Address,
    Calendar,
    Diff,
    MapFormat,
    Modifier,
    PrefixList,
    Refused,
    Replay,
    TimeGate,
    TimeMap,
    UrlFault,
    digits_of,
    seconds_of,
    span_begin,
    span_end,
)

pytestmark = pytest.mark.pure

times = st.integers(FIRST_SECOND, LAST_SECOND)
#: An empty query cannot be told from none.
urls = canonical_urls.filter(lambda url: not url.endswith("?") or "?" in url[:-1])


def parse(text: str) -> Address:
    """Read an URL of the room as ASGI hands it over: path, and query without its question mark."""
    path, _, query = text.partition("?")
    return replay_url.parse(path.encode(), query.encode())


def parsed_url(text: str) -> str:
    found = parse(f"/web/{text}")
    assert isinstance(found, TimeGate), found
    return found.url


@given(times, st.sampled_from(Modifier), urls)
def test_what_is_written_for_replay_is_read_back(seconds: int, modifier: Modifier, url: str) -> None:
    path = replay_url.replay_path(digits_of(seconds), modifier, url)
    found = parse(path)
    assert found == Replay(digits_of(seconds), seconds, modifier, url)
    assert isinstance(found, Replay) and found.location == path


@given(times, times, urls, st.sampled_from(MapFormat), st.sampled_from(Modifier))
def test_every_other_url_that_is_written_is_read_back(
    one: int, other: int, url: str, form: MapFormat, modifier: Modifier
) -> None:
    year = int(digits_of(one)[:4])
    written: list[TimeGate | Calendar | PrefixList | TimeMap | Diff] = [
        TimeGate(url, modifier), Calendar(url), Calendar(url, year), PrefixList(url),
        TimeMap(form, url), TimeMap(form, url, one), Diff(one, other, url),
    ]  # fmt: skip
    for each in written:
        assert parse(each.location) == each
    assert parse(f"/web{replay_url.timemap_path(form, url, one)}") == TimeMap(form, url, one)


@given(st.binary(max_size=80), st.binary(max_size=40))
def test_no_bytes_raise(path: bytes, query: bytes) -> None:
    for start in (b"", b"/web/", b"/web/2026mp_/", b"/web/*/", b"/web/http://", b"/timemap/link/", b"/diff/1..2/"):
        replay_url.parse(start + path, query)


@given(st.text("/:@%?*[]2a.\\#é\x00", max_size=30))
def test_no_text_of_a_urls_signs_raises(text: str) -> None:
    for start in ("/web/", "/web/http://", "/web/20260101000000/", "/web/*/", "/timemap/cdxj/"):
        found = replay_url.parse(f"{start}{text}".encode())
        if isinstance(found, Replay | TimeGate | Calendar | TimeMap):
            assert found.location.isascii() and not set(found.location) & set("\r\n \"<>\\#'" + "\x00") - {"'"}


@given(st.text(max_size=30))
def test_only_canonical_urls_are_written(text: str) -> None:
    for url in (text, f"http://e.org/{text}", f"http://{text}/"):
        try:
            path = replay_url.replay_path("20260101000000", Modifier.PAGE, url)
        except ValueError:
            continue
        assert path.isascii() and path.isprintable() and not set(path) & set(' "<>\\^`{|}')


@pytest.mark.parametrize("digits", ["2026", "2026010100000x", "", "202601010000000", "٢٠٢٦٠١٠١٠٠٠٠٠٠"])
def test_only_14_digits_are_written(digits: str) -> None:
    with pytest.raises(ValueError, match="14 digits"):
        replay_url.replay_path(digits, Modifier.PAGE, "http://e.org/")


def test_the_fragment_of_a_redirects_target_stays() -> None:
    assert replay_url.replay_path("20260101000000", Modifier.PAGE, "http://e.org/a#b?c").endswith("/http://e.org/a#b?c")


def test_a_final_star_of_a_url_is_escaped_in_its_calendar() -> None:
    assert parse("/web/*/http://e.org/a%2A") == Calendar("http://e.org/a*")
    assert replay_url.calendar_path("http://e.org/a*") == "/web/*/http://e.org/a%2A"


@pytest.mark.parametrize(
    ("digits", "begin", "end"),
    [
        ("2", "20000101000000", "29991231235959"),
        ("2026", "20260101000000", "20261231235959"),
        ("20260", "20260101000000", "20260930235959"),
        ("20261", "20261001000000", "20261231235959"),
        ("202602", "20260201000000", "20260228235959"),
        ("202402", "20240201000000", "20240229235959"),
        ("2026022", "20260220000000", "20260228235959"),
        ("20260228", "20260228000000", "20260228235959"),
        ("202602281", "20260228100000", "20260228195959"),
        ("2026022812", "20260228120000", "20260228125959"),
        ("20260228123", "20260228123000", "20260228123959"),
        ("2026022812345", "20260228123450", "20260228123459"),
        ("20260228123456", "20260228123456", "20260228123456"),
        # impossible ones, clamped part by part
        ("202613", "20261201000000", "20261231235959"),
        ("20260230", "20260228000000", "20260228235959"),
        ("20260000000000", "20260101000000", "20260101000000"),
        ("20260101246199", "20260101235959", "20260101235959"),
        ("0", "00010101000000", "09991231235959"),
    ],
)
def test_digits_name_a_span(digits: str, begin: str, end: str) -> None:
    assert (span_begin(digits), span_end(digits)) == (begin, end)
    found = parse(f"/web/{digits}/http://e.org/")
    assert isinstance(found, Replay)
    assert (found.digits, found.seconds) == (end, seconds_of(end))
    assert (digits == end) is not found.must_redirect


@given(st.integers(0, 10**14 - 1), st.integers(1, 14))
def test_a_span_has_a_begin_and_an_end_that_are_times(number: int, length: int) -> None:
    digits = f"{number:014}"[:length]
    assert seconds_of(span_begin(digits)) <= seconds_of(span_end(digits))
    assert digits_of(seconds_of(span_end(digits))) == span_end(digits)


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://e.org/a?b=c?d", "http://e.org/a?b=c?d"),
        ("http://e.org/%2F%3F//a%252F", "http://e.org/%2F%3F//a%252F"),
        ("HTTPS://E.Org:443/%7ea", "https://e.org/~a"),
        ("http:/e.org/a", "http://e.org/a"),
        ("e.org", "http://e.org/"),
        ("e.org:8080/a", "http://e.org:8080/a"),
        ("e.org?a", "http://e.org/?a"),
        ("http://münchen.de/straße", "http://xn--mnchen-3ya.de/stra%C3%9Fe"),
        ("http://xn--mnchen-3ya.de/", "http://xn--mnchen-3ya.de/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://%5B::1%5D/", "http://[::1]/"),
        ("http://e.org/a/../b/./c", "http://e.org/b/c"),
        ("http://2026.example/", "http://2026.example/"),
        ("2026.example/", "http://2026.example/"),
        ("http://e.org/http://x.org/", "http://e.org/http://x.org/"),
        ("http://e.org/a@b", "http://e.org/a@b"),
    ],
)
def test_the_archived_url_is_what_stands_raw_behind_the_prefix(written: str, url: str) -> None:
    assert parsed_url(written) == url


def test_bytes_that_are_not_utf_8_are_kept() -> None:
    assert replay_url.parse(b"/web/http://e.org/\xfc") == TimeGate("http://e.org/%FC")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", UrlFault.EMPTY),
        ("2026", UrlFault.EMPTY),
        ("2026/", UrlFault.EMPTY),
        ("2026mp_/", UrlFault.EMPTY),
        ("*", UrlFault.EMPTY),
        ("*/", UrlFault.EMPTY),
        ("2026zz_/http://e.org/", UrlFault.MODIFIER),
        ("zz_/http://e.org/", UrlFault.MODIFIER),
        ("2026MP_/http://e.org/", UrlFault.MODIFIER),
        ("202601010000001/http://e.org/", UrlFault.TIME),
        ("20260101000000000000mp_/http://e.org/", UrlFault.TIME),
        ("javascript:alert(1)", UrlFault.SCHEME),
        ("2026mp_/javascript:alert(1)", UrlFault.SCHEME),
        ("data:text/html,x", UrlFault.SCHEME),
        ("ftp://e.org/", UrlFault.SCHEME),
        ("file:///etc/passwd", UrlFault.SCHEME),
        ("mailto:a@e.org", UrlFault.SCHEME),
        ("//e.org/", UrlFault.HOST),
        ("2026///e.org/", UrlFault.HOST),
        ("http:///e.org/", UrlFault.HOST),
        ("http:e.org/", UrlFault.HOST),
        ("http://", UrlFault.HOST),
        ("http://e..org/", UrlFault.HOST),
        ("http://e.org:99999/", UrlFault.HOST),
        ("http://user@e.org/", UrlFault.USERINFO),
        ("http://bank.example:x@e.org/", UrlFault.USERINFO),
        ("http://bank.example%40e.org/", UrlFault.USERINFO),
        ("http:\\\\e.org\\", UrlFault.BACKSLASH),
        ("http://e.org/\\..\\", UrlFault.BACKSLASH),
        ("http://e.org/a b", UrlFault.CONTROL),
        ("http://e.org/\r\nSet-Cookie: a", UrlFault.CONTROL),
        ("http://e.org/\x00", UrlFault.CONTROL),
        ("http://e.org/#a", UrlFault.CONTROL),
        ("http%3A%2F%2Fe.org%2F?a=b", UrlFault.ENCODED),
        ("http%3A%252F%252Fe.org/", UrlFault.ENCODED),
        ("http%3A//e.org/%0D%0AX:y", UrlFault.CONTROL),
        ("http%3A//e.org/a%23b", UrlFault.CONTROL),
        ("http%3A//e.org/%5Ca", UrlFault.BACKSLASH),
        ("http%3A//u%40e.org/", UrlFault.USERINFO),
        ("ftp%3A//e.org/", UrlFault.SCHEME),
        ("2026/http%253A//e.org/", UrlFault.ENCODED),
        ("http://e.org%2Fa", UrlFault.ENCODED),
        (f"http://e.org/{'a' * LONGEST_URL}", UrlFault.TOO_LONG),
        (f"http://e.org/{'ü' * 3_000}", UrlFault.TOO_LONG),
        ("timemap/xml/http://e.org/", UrlFault.FORMAT),
        ("timemap/link/", UrlFault.EMPTY),
        ("timemap/link/2026/", UrlFault.EMPTY),
        ("timemap/link", UrlFault.ELSEWHERE),
    ],
)
def test_what_is_no_archived_url_is_refused_with_its_reason(written: str, reason: UrlFault) -> None:
    assert parse(f"/web/{written}") == Refused(reason)


@pytest.mark.parametrize(
    "path", ["", "/", "/web", "/search", "/diff/2026/http://e.org/", "/diff/a..b/e.org", "/timemap"]
)
def test_other_urls_are_not_here(path: str) -> None:
    assert parse(path) == Refused(UrlFault.ELSEWHERE)


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/web/20260101000000/e.org/a", "/web/20260101000000/http://e.org/a"),
        ("/web/20260101000000mp_/http://e.org", "/web/20260101000000mp_/http://e.org/"),
        ("/web/20260101000000/http://e.org?a", "/web/20260101000000/http://e.org/?a"),
        ("/web/20261301/http://e.org/", "/web/20261201235959/http://e.org/"),
        ("/web/20260101000000/http%3A//e.org/a", "/web/20260101000000/http://e.org/a"),
        ("/web/20260101000000id_/http%3A%2F%2Fe.org%2Fa%3Fb%3D%2525%26c", "/web/20260101000000id_/http://e.org/a?b=%25&c"),
        ("/web/20260101000000/http:%2F%2Fe.org/%252E%252E/a", "/web/20260101000000/http://e.org/a"),
    ],
)  # fmt: skip
def test_a_spelling_that_breaks_relative_references_redirects_and_only_once(path: str, location: str) -> None:
    found = parse(path)
    assert isinstance(found, Replay) and found.must_redirect and found.location == location
    again = parse(location)
    assert isinstance(again, Replay) and not again.must_redirect
    # A proxy that folds slashes shows the same URL again and again: no loop.
    folded = parse(location.replace("://", ":/"))
    assert isinstance(folded, Replay) and not folded.must_redirect
    assert folded.url == again.url


@pytest.mark.parametrize("written", ["http:/e.org/", "HTTP://e.org/", "http://E.org/", "http://e.org/%7Ea"])
def test_a_spelling_that_breaks_nothing_does_not_redirect(written: str) -> None:
    found = parse(f"/web/20260101000000/{written}")
    assert isinstance(found, Replay) and not found.must_redirect


def test_a_prefix_may_end_inside_a_name() -> None:
    assert parse("/web/*/e.org/.*") == PrefixList("http://e.org/.")
    assert parse("/web/*/http://e.org/a?b=*") == PrefixList("http://e.org/a?b=")
    assert parse("/web/*/e.org*") == PrefixList("http://e.org/")
