"""The filter `adverts`: hosts on a blacklist are refused (/Fi-1/, /Fi-2/)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.filters import adverts

pytestmark = pytest.mark.pure


@dataclass(frozen=True)
class _At:
    url: str


def _keeps(url: str, **table: Any) -> bool:
    return adverts.keep(_At(url), adverts.settings(table))


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://doubleclick.net/x.gif", False),
        ("https://ad.de.doubleclick.net:8443/x.gif", False),
        ("http://notdoubleclick.net/", True),
        ("http://doubleclick.net.example/", True),
        ("http://e.org/doubleclick.net/", True),
        ("http://e.org/?u=http://ad.example/", True),
        ("http://ads.e.org/", False),
        ("http://roads.e.org/", True),
        ("http://www.ads.example/", True),
        ("http://[2001:db8::1]/", True),
        ("http://[2001:db8::1]:81/", True),
    ],
)
def test_the_list_that_comes_with_it(url: str, kept: bool) -> None:
    assert _keeps(url) is kept


def test_a_name_stands_for_all_below_it_and_a_pattern_for_what_it_matches() -> None:
    table = {"hosts": ["Werbung.example.", "track*.e.org"], "allow": ["good.werbung.example", "track9.*"]}
    assert not _keeps("http://werbung.example/", **table)
    assert not _keeps("http://a.b.werbung.example/", **table)
    assert not _keeps("http://tracker.e.org/", **table)
    assert _keeps("http://e.org/", **table)
    assert _keeps("http://good.werbung.example/", **table)
    assert _keeps("http://track9.e.org/", **table)


def test_exceptions_from_the_list_that_comes_with_it_and_doing_without_it() -> None:
    assert _keeps("http://ads.e.org/", allow=["ads.e.org"])
    assert not _keeps("http://ads.f.org/", allow=["ads.e.org"])
    assert _keeps("http://doubleclick.net/", defaults=False)
    assert not _keeps("http://x.net/", defaults=False, hosts=["x.net"])


def test_every_fault_of_its_file_is_reported() -> None:
    with pytest.raises(ValueError, match="host") as caught:
        adverts.settings({"hosts": ["a b", 5, "http://x/"], "allow": "x", "defaults": 1, "host": []})
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["host", "hosts", "allow", "defaults"]
    assert all(part in lines[1] for part in ("'a b'", "5", "'http://x/'"))


@given(st.text())
def test_nothing_raises(url: str) -> None:
    assert _keeps(url) in (True, False)
