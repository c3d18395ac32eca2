"""Spider traps are told by the look of a URL, and real sites are not taken for any."""

from __future__ import annotations

import os
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl import scope
from agent.crawl.scope import CALENDAR, LENGTH, PARAMETERS, PATH_DEPTH, REPEATS, Bounds, latest_year_in, trap_in
from tests.support.realsites import ALL, RealSite
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.urls import canonical
from webarcfs.content import outlinks

pytestmark = pytest.mark.pure

BOUNDS = Bounds(latest_year=2031)
#: Every so many pages of a real site are read; 1 reads all.
EVERY = int(os.environ.get("WEBARC_TRAPS_EVERY", "12"))


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("", None),
        ("x" * (8192 - 13), None),
        ("x" * (8193 - 13), LENGTH),
        # path depth: 32 segments
        ("/".join(map(str, range(32))), None),
        ("/".join(map(str, range(32))) + "/", PATH_DEPTH),
        # repeats: five times
        ("a/b/" * 5, None),
        ("a/b/" * 6, REPEATS),
        ("1/a/2/a/3/a/4/a/5/a/6/a", REPEATS),
        ("000/000/000/000/017.png", None),
        ("?" + "a/" * 100, None),
        # parameters: 32 of them, none of them six times
        ("?" + "&".join(f"a{n}={n}" for n in range(32)), None),
        ("?" + "&".join(f"a{n}={n}" for n in range(33)), PARAMETERS),
        ("?" + ";".join(f"a{n}={n}" for n in range(33)), PARAMETERS),
        ("?" + "&".join(f"f[]={n}" for n in range(20)), None),
        ("?" + "&".join(["sort=up"] * 5), None),
        ("?" + "&".join(["sort=up"] * 6), PARAMETERS),
        # calendars: five years from 2026 on
        ("events/2031/05/", None),
        ("events/2032/05/", CALENDAR),
        ("events/2032/5/17", CALENDAR),
        ("events/2032/12/31/party.html", CALENDAR),
        ("events/2032-05", CALENDAR),
        ("events/2032-05-17.html", CALENDAR),
        ("events/list?month=2032-05", CALENDAR),
        ("events/?year=2032&month=1", CALENDAR),
        ("events/?month=1&year=2032", CALENDAR),
        ("events/?tribe-bar-date=2032-05-17", CALENDAR),
        ("events/?ical%5Byear%5D=2032", CALENDAR),
        ("events/?date=20320517", CALENDAR),
        ("kalender?jahr=2032", CALENDAR),
        ("events/?year=2031&month=1", None),
        # what is no date, or no calendar's
        ("news/1893/05/17/", None),
        ("article/2048", None),
        ("article/4812/03/", None),
        ("2048/13/", None),
        ("game-2048/level/3", None),
        ("x?id=2048", None),
        ("x?id=20480517", None),
        ("img/2048x1536.png", None),
        ("isbn/978-2055-12-3", None),
    ],
)
def test_each_guard_has_its_word(path: str, word: str | None) -> None:
    assert trap_in(f"http://e.org/{path}", BOUNDS) == word


def test_no_bound_is_zero() -> None:
    free = Bounds(CrawlSettings(max_path_depth=0, max_repeats=0, max_parameters=0), latest_year=0)
    for path in ("a/" * 50, "?" + "&".join(["a=1"] * 100), "9/" * 9 + "2199/12/"):
        assert trap_in(f"http://e.org/{path}", free) is None
    assert trap_in(f"http://e.org/{'a/' * 201}", free) == PATH_DEPTH


def test_a_calendar_ends_where_its_bound_says() -> None:
    """…/2026/01/, …/2026/02/, … for ever."""
    months = [f"http://e.org/cal/{year}/{month:02}/" for year in range(2026, 2200) for month in range(1, 13)]
    assert [trap_in(url, BOUNDS) for url in months] == [None] * 72 + [CALENDAR] * (len(months) - 72)


def test_a_path_that_grows_with_every_link_ends() -> None:
    url, steps = "http://e.org/", 0
    while trap_in(url, BOUNDS) is None:
        url, steps = f"{url}a/b/", steps + 1
    assert steps == 6


@given(st.text(), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 2200))
def test_nothing_raises(url: str, depth: int, repeats: int, parameters: int, year: int) -> None:
    settings = CrawlSettings(max_path_depth=depth, max_repeats=repeats, max_parameters=parameters)
    bounds = Bounds(settings, latest_year=year)
    assert trap_in(url, bounds) in (None, LENGTH, PATH_DEPTH, REPEATS, PARAMETERS, CALENDAR)
    assert scope.repeats(url) >= 0
    assert latest_year_in(url) is None or 2000 <= (latest_year_in(url) or 0) < 2200


@pytest.mark.large
@pytest.mark.parametrize("site", ALL, ids=lambda site: site.package)
def test_real_sites_are_no_traps(site: RealSite) -> None:
    """No file of the documentation that Debian ships, and no link in it, is left out."""
    if not site.is_installed:
        pytest.skip(site.missing)
    files = site.files()
    origin = "http://e.org/"
    urls = {origin + quote(name, errors="surrogateescape") for name in files}
    pages = [name for name in files if name.endswith((".html", ".htm"))]
    for name in pages[::EVERY]:
        base = canonical(origin + quote(name, errors="surrogateescape"))
        body = (site.root / name).read_bytes()
        urls.update(link.url for link in outlinks.links_of(body, base, "text/html", "utf-8"))
    assert len(urls) > len(files) / 2
    assert {url: trap_in(url, BOUNDS) for url in urls if trap_in(url, BOUNDS)} == {}


@pytest.mark.parametrize(
    ("path", "far"),
    [
        ("cal/1975/05/", True),
        ("cal/1976/05/", False),
        ("cal/1057/05/17/", True),
        ("item/1057/05/", False),  # more likely a number
        ("cal/1057-05", True),
        ("cal/1970-W05", True),
        ("cal/2026-W05", False),
        ("cal/2032/week/5", True),
        ("cal?year=1057", True),
        ("cal?date=19700101", True),
        ("cal?start=100000000", True),
        ("cal?start=1764288000", False),
        ("cal?start=1764288000000", False),
        ("cal?start=4764288000", True),
        ("cal?start=100", False),
        ("news/1850", False),
    ],
)
def test_calendars_are_bounded_in_both_directions(path: str, far: bool) -> None:
    url = f"http://e.org/{path}"
    assert (trap_in(url, Bounds(latest_year=2031, earliest_year=1976)) == CALENDAR) is far


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("http://e.org/cal/2026/11/", "e.org/cal/#"),
        ("http://e.org/cal/2026/11/28", "e.org/cal/#"),
        ("http://e.org/3/library/os.html", "e.org/#/library/os.html"),
        ("http://e.org/c?month=11&year=2026", "e.org/c?month=#&year=#"),
        ("http://e.org/c?o=-12", "e.org/c?o=#"),
        ("http://e.org/a,b1", "e.org/a%2Cb#"),
        ("http://e.org/x/0123456789abcdef0123456789", "e.org/x/*"),
        ("http://e.org/x/a123456789abcdef0123456789/y", "e.org/x/*/y"),
    ],
)
def test_the_pattern_of_a_url(url: str, pattern: str) -> None:
    assert scope.pattern_of(url) == pattern
