"""access.aclj: parsed, written, and which rule decides."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access, AccessRule, AccessRules, domain_key, key_of, parse, rule_key
from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.model.metadata import CET

pytestmark = pytest.mark.pure

_NOW = datetime(2026, 11, 21, tzinfo=CET)
_CAPTURED = datetime(2020, 1, 1, tzinfo=CET)


def _decides(text: str, url: str, user: str = "") -> str:
    rule = parse(text, "access.aclj").find(url, user, _CAPTURED, _NOW)
    return "" if rule is None else str(rule.access)


@pytest.mark.parametrize(
    ("line", "url", "expected"),
    [
        ('org,example)/a - {"access": "block"}', "http://example.org/a", "block"),
        ('org,example)/a - {"access": "block"}', "https://www.example.org/ab/c?d", "block"),
        ('org,example)/a - {"access": "block"}', "http://www3.EXAMPLE.org/A", "block"),
        ('org,example,www)/A - {"access": "block"}', "http://example.org/a", "block"),
        ('org,example)/a - {"access": "block"}', "http://example.org/b", ""),
        ('org,example)/a - {"access": "block"}', "http://sub.example.org/a", ""),
        ('org,example)/a### - {"access": "exclude"}', "http://example.org/a", "exclude"),
        ('org,example)/a### - {"access": "exclude"}', "http://example.org/ab", ""),
        ('org,example, - {"access": "exclude"}', "http://example.org/x", "exclude"),
        ('org,example, - {"access": "exclude"}', "http://a.b.example.org:81/x", "exclude"),
        ('org,example, - {"access": "exclude"}', "http://example2.org/x", ""),
        ('org,example, - {"access": "exclude"}', "http://myexample.org/x", ""),
        ('org,ex\u00e4mple)/ - {"access": "exclude"}', "http://example.org/x", ""),
    ],
)
def test_which_urls_a_rule_is_about(line: str, url: str, expected: str) -> None:
    assert _decides(line, url) == expected


def test_which_of_several_rules_decides() -> None:
    text = """
# people write comments
org,example)/a/open - {"access": "allow"}
org,example, - {"access": "exclude"}
org,example)/a - {"access": "block", "reason": "r"}
org,example)/a - {"access": "allow", "user": "anna"}
org,example)/b - {"access": "block"}
org,example)/b - {"access": "exclude"}
org,example)/b### - {"access": "allow"}
"""
    assert _decides(text, "http://x.example.org/") == "exclude"
    assert _decides(text, "http://example.org/a") == "block"
    assert _decides(text, "http://example.org/a", "anna") == "allow"
    assert _decides(text, "http://example.org/a/open/x") == "allow"
    assert _decides(text, "http://example.org/b") == "allow"
    assert _decides(text, "http://example.org/b/c") == "exclude"
    assert _decides(text, "http://elsewhere.example/") == ""
    turned = "\n".join(reversed(text.splitlines()))
    assert all(
        _decides(turned, f"http://example.org/{path}") == _decides(text, f"http://example.org/{path}")
        for path in ("", "a", "a/open", "b", "b/c")
    )


def test_spans_and_lapses() -> None:
    rule = '{} - {{"access": "block", {}}}'
    for more, holds in (
        ('"after": "2019-12-31"', True),
        ('"after": "2020-01-02"', False),
        ('"before": "2020-01-01T00:00:00"', True),
        ('"before": "2019-06-01"', False),
        ('"lapses": "2026-11-22"', True),
        ('"lapses": "2026-11-21"', False),
    ):
        assert (_decides(rule.format("org,example)/", more), "http://example.org/") == "block") is holds, more


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        'org,example)/ {"access": "block"}',
        'org,example)/ - {"access": "deny"}',
        'org,example)/ - {"access": "block", "nonsense": 1}',
        'org,example)/ - {"access": "block"',
        'org,example)/ - ["block"]',
        'org,example)/ - {"access": "block", "lapses": "soon"}',
    ],
)
def test_a_line_with_faults_makes_the_file_faulty(line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(f'org,example)/ - {{"access": "block"}}\n{line}\n', "access.aclj")
    assert len(caught.value.faults) == 1 and caught.value.faults[0].startswith("line 2: ")


_RULES = st.builds(
    AccessRule,
    key=st.sampled_from(["org,example)/a", "org,example)/a###", "org,example,", "org,b)/", "org,example)/a/b", "org,"]),
    access=st.sampled_from(Access),
    user=st.sampled_from(["", "", "anna"]),
    reason=st.text(max_size=10),
    public_text=st.text(max_size=10),
    lapses=st.none() | st.just(_NOW + timedelta(days=1)),
)


@given(st.lists(_RULES, max_size=5).map(lambda found: AccessRules(tuple(found))))
def test_rules_are_read_as_they_were_written(rules: AccessRules) -> None:
    assert parse(str(rules), "access.aclj") == rules.without_reasons, "why is for staff, in a file of its own"


@given(
    st.lists(_RULES, max_size=4),
    st.sampled_from(["http://example.org/a", "http://www.example.org/a/b/c", "http://b.org/", "http://x.example.org/"]),
    st.sampled_from(["", "anna", "bert"]),
)
def test_many_rules_are_found_as_few_are(rules: list[AccessRule], url: str, user: str) -> None:
    others = [AccessRule(key=f"net,other{number})/", access=Access.BLOCK) for number in range(60)]
    few, many = AccessRules(tuple(rules)), AccessRules((*rules, *others))
    assert few.find(url, user, _CAPTURED, _NOW) == many.find(url, user, _CAPTURED, _NOW)
    assert few.touches(url) == many.touches(url)


def test_keys() -> None:
    assert key_of("http://www.Example.org/A?b=C") == "org,example)/a?b=c"
    assert rule_key("http://www.example.org:80/A", exact=True) == "org,example)/a###"


@pytest.mark.parametrize(
    ("key", "domain", "expected"),
    [
        ("org,example)/a###", "example.org", True),
        ("org,example)/a###", "www.example.org", True),
        ("org,example)/", "example.org:8080", False),
        ("org,example:8080)/", "example.org:8080", True),
        ("org,exam)/", "example.org", False),
        ("org,exam", "example.org", True),
        ("org,example,", "sub.example.org:81", True),
        ("org,example,", "example.org", True),
        ("org,example,", "example2.org", False),
        ("org,example,sub)/", "example.org", False),
        ("", "example.org", True),
    ],
)
def test_the_domains_that_a_rule_is_about(key: str, domain: str, *, expected: bool) -> None:
    assert AccessRule(key=key, access=Access.BLOCK).is_about(domain_key(domain)) is expected


def test_what_takes_something_from_a_reader() -> None:
    rule = AccessRule(key="org,example)/", access=Access.BLOCK, user="anna", lapses=_NOW)
    before = _NOW - timedelta(seconds=1)
    rules = AccessRules((rule,))
    assert rules.takes_from("example.org", "anna", before) and not rules.takes_from("example.org", "anna", _NOW)
    assert not rules.takes_from("example.org", "", before) and not rules.takes_from("example.net", "anna", before)
    assert not AccessRules((AccessRule(key="org,", access=Access.ALLOW),)).takes_from("example.org", "", _NOW)


@pytest.mark.parametrize(("access", "count"), [(Access.BLOCK, 1), (Access.ALLOW, 0)])
def test_many_rules_read_a_domain_once(monkeypatch: pytest.MonkeyPatch, access: Access, count: int) -> None:
    rules = AccessRules(tuple(AccessRule(key=f"org,host{number})/", access=access) for number in range(100)))
    urls: list[str] = []

    def key(url: str) -> str:
        urls.append(url)
        return key_of(url)

    monkeypatch.setattr(access_rules, "key_of", key)
    assert not rules.takes_from("example.org", "", _NOW)
    assert len(urls) == count
