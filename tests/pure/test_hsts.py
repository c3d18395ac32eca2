"""Which fields ask for https, and which hosts may (RFC 6797)."""

from __future__ import annotations

import pytest

from agent.crawl.hsts import may_have_policy, policy_of

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("field", "policy"),
    [
        ("max-age=31536000", False),
        ('MAX-AGE="31536000" ; IncludeSubDomains; preload', True),
        ("includeSubDomains", None),
        ("max-age=0; includeSubDomains", None),
        ("max-age=-1", None),
        ("max-age=1; max-age=2", None),
        ("", None),
        ("max-age=" + "9" * 5000, False),
    ],
)
def test_fields(field: str, policy: bool | None) -> None:
    assert policy_of(field) is policy


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://www.example.org/", True),
        ("http://www.example.org/", False),
        ("https://www.example.org:8443/", False),
        ("https://93.184.216.34/", False),
        ("https://[2606:2800::1]/", False),
        ("https://127.0.0.1/", False),
        ("https://localhost/", False),
    ],
)
def test_hosts(url: str, may: bool) -> None:
    assert may_have_policy(url) is may
