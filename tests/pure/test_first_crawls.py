"""What a new publication is called where nobody says it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.operations.first_crawls import propose_name
from webarcfs.archive.config import validators

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("urls", "taken", "name"),
    [
        (["http://www.example.org/"], [], "example.org"),
        (["https://town.example.org/a?b", "http://other.org/"], [], "town.example.org"),
        (["http://www.example.org/"], ["example.org", "example.org-2"], "example.org-3"),
        (["http://localhost:8080/"], [], "localhost-8080"),
        (["http://[::1]/"], [], ""),
        ([], [], ""),
    ],
)
def test_a_name_is_that_of_the_first_host(urls: list[str], taken: list[str], name: str) -> None:
    assert propose_name(urls, taken) == name


@given(st.lists(st.text(max_size=40).map("http://{}/".format), max_size=3), st.sets(st.just("example.org")))
def test_any_name_that_is_proposed_may_be_used(urls: list[str], taken: set[str]) -> None:
    name = propose_name(urls, taken)
    assert not name or (validators.name(name) == name and name not in taken)
