"""What enters a crawl (/Cr-1.1/, /Cr-7.4/, seed 3) and how crawl.log says why not."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl.scope import (
    EXCLUDED,
    EXCLUDED_HOST,
    FOREIGN_HOST,
    PRIVATE_ADDRESS,
    TOO_DEEP,
    CrawlScope,
    ScopeVerdict,
    judge,
    wait_of,
)
from agent.crawl.vocabulary import SYSTEM_ERROR, LinkKind, Status, seed3_code
from webarcfs.archive.config.settings import CrawlSettings, PageResources, Publication, ServerSettings

pytestmark = pytest.mark.pure

TOO_LONG = ScopeVerdict(Status.TRAP, "trap:url-length")
PATH_DEPTH = ScopeVerdict(Status.TRAP, "trap:path-depth")
REPEATS = ScopeVerdict(Status.TRAP, "trap:repeats")

SCOPE = CrawlScope(
    hosts=frozenset({"www.fc.ul.pt", "e.org:8080", "[2001:db8::1]:81"}),
    patterns=("*.fc.ul.pt", "news?.example", "*.port.example:81", "*.bücher.example"),
    exclude=("ptmat.lmc.fc.ul.pt", "bad.*"),
    depth=2,
)


@pytest.mark.parametrize(
    ("url", "is_out"),
    [
        ("http://dip.e.org/", True),
        ("https://dip.e.org:81/x", True),
        ("http://www.e.org/bic/pp/", True),
        ("http://www.e.org/bic/pp/a?b=1", True),
        ("http://www.e.org/bic/ppx", False),
        ("http://www.e.org/BIC/pp/a", False),
        ("http://www.e.org/", False),
        ("http://www.e.org/one.html", True),
        ("http://www.e.org/one.html?x", False),
    ],
)
@pytest.mark.parametrize("kind", ["seed", "link", "redirect", "requisite"])
def test_parts_of_a_site_can_be_left_out(url: str, is_out: bool, kind: str) -> None:
    left_out = ("dip.e.org", "www.e.org/bic/pp/*", "*.e.org/one.html")
    scope = CrawlScope(frozenset(), patterns=("*.e.org",), left_out=left_out)
    assert judge(scope, url, 0, kind) == (EXCLUDED if is_out else None)


@pytest.mark.parametrize(
    ("url", "depth", "kind", "verdict"),
    [
        ("http://www.fc.ul.pt/", 0, "seed", None),
        ("http://elsewhere.example/", 0, "seed", None),
        # hosts: those of start URLs, and patterns
        ("http://www.fc.ul.pt/a", 1, "link", None),
        ("https://www.fc.ul.pt/a", 1, "link", None),
        ("http://di.fc.ul.pt/", 1, "link", None),
        ("http://di.fc.ul.pt:8000/", 1, "link", None),
        ("http://fc.ul.pt/", 1, "link", FOREIGN_HOST),
        ("http://www.fc.ul.pt.evil.example/", 1, "link", FOREIGN_HOST),
        ("http://elsewhere.example/www.fc.ul.pt", 1, "link", FOREIGN_HOST),
        ("http://elsewhere.example/?u=http://www.fc.ul.pt/", 1, "link", FOREIGN_HOST),
        ("http://e.org:8080/", 1, "link", None),
        ("http://e.org/", 1, "link", FOREIGN_HOST),
        ("http://[2001:db8::1]:81/", 1, "link", PRIVATE_ADDRESS),
        ("http://[2001:db8::1]:81/", 0, "seed", PRIVATE_ADDRESS),
        ("http://news1.example/", 1, "link", None),
        ("http://news12.example/", 1, "link", FOREIGN_HOST),
        ("http://a.port.example:81/", 1, "link", None),
        ("http://a.port.example/", 1, "link", FOREIGN_HOST),
        ("http://a.xn--bcher-kva.example/", 1, "link", None),
        # excluded hosts go before everything
        ("http://ptmat.lmc.fc.ul.pt/", 1, "link", EXCLUDED_HOST),
        ("http://ptmat.lmc.fc.ul.pt:8080/", 1, "requisite", EXCLUDED_HOST),
        ("http://bad.fc.ul.pt/", 0, "redirect", EXCLUDED_HOST),
        ("http://bad.example/", 0, "seed", EXCLUDED_HOST),
        ("http://bad.fc.ul.pt/robots.txt", 0, "robots", EXCLUDED_HOST),
        # depth counts links; redirects, requisites and robots.txt cost nothing
        ("http://www.fc.ul.pt/a", 2, "link", None),
        ("http://www.fc.ul.pt/a", 3, "link", TOO_DEEP),
        ("http://www.fc.ul.pt/a", 3, "redirect", None),
        ("http://www.fc.ul.pt/a.png", 3, "requisite", None),
        ("http://cdn.example/a.png", 1, "requisite", FOREIGN_HOST),
        ("http://elsewhere.example/a", 3, "link", FOREIGN_HOST),
        ("http://www.fc.ul.pt/robots.txt", 9, "robots", None),
        # traps
        ("http://www.fc.ul.pt/" + "x" * (8192 - 20), 1, "link", None),
        ("http://www.fc.ul.pt/" + "x" * (8193 - 20), 1, "link", TOO_LONG),
        ("http://www.fc.ul.pt/" + "/".join(map(str, range(32))), 1, "link", None),
        ("http://www.fc.ul.pt/" + "/".join(map(str, range(33))), 1, "link", PATH_DEPTH),
        ("http://www.fc.ul.pt/" + "a/b/" * 5, 1, "link", None),
        ("http://www.fc.ul.pt/" + "a/b/" * 6, 1, "link", REPEATS),
        ("http://www.fc.ul.pt/" + "a/" * 6, 1, "requisite", REPEATS),
        ("http://www.fc.ul.pt/" + "a/" * 6, 0, "seed", None),
        ("http://www.fc.ul.pt/" + "a/" * 199 + "b", 0, "seed", None),
        ("http://www.fc.ul.pt/" + "a/" * 200 + "b", 0, "seed", PATH_DEPTH),
        ("http://www.fc.ul.pt" + "/" * 12, 1, "redirect", REPEATS),
        ("http://www.fc.ul.pt/x?" + "a/" * 100, 1, "link", None),
    ],
)
def test_judge(url: str, depth: int, kind: str, verdict: ScopeVerdict | None) -> None:
    assert judge(SCOPE, url, depth, kind) == verdict


def test_private_addresses_enter_where_the_job_may_ask_them() -> None:
    asking = dataclasses.replace(SCOPE, private_addresses=True)
    assert judge(asking, "http://[2001:db8::1]:81/", 1, "link") is None
    assert judge(asking, "http://127.0.0.1/", 0, "seed") is None
    assert judge(asking, "http://127.0.0.1/", 1, "link") == FOREIGN_HOST


@pytest.mark.parametrize(("depth", "verdict"), [(2, None), (3, TOO_DEEP)])
def test_requisites_are_links_where_the_publication_wants_none(depth: int, verdict: ScopeVerdict | None) -> None:
    bare = CrawlScope(hosts=frozenset({"e.org"}), depth=2, resources=PageResources.NONE)
    assert judge(bare, "http://e.org/a.png", depth, "requisite") == verdict


def test_depth_zero_is_the_start_urls_and_their_requisites() -> None:
    only = CrawlScope(hosts=frozenset({"e.org"}), depth=0)
    assert judge(only, "http://e.org/", 0, "seed") is None
    assert judge(only, "http://e.org/a.css", 0, "requisite") is None
    assert judge(only, "http://e.org/a", 1, "link") == TOO_DEEP


@given(st.text(), st.integers(), st.sampled_from(LinkKind), st.lists(st.text(), max_size=3))
def test_nothing_raises(url: str, depth: int, kind: LinkKind, patterns: list[str]) -> None:
    bounds = CrawlScope(hosts=frozenset(patterns), patterns=tuple(patterns), exclude=tuple(patterns))
    verdict = judge(bounds, url, depth, kind)
    assert verdict is None or seed3_code(verdict.status) == -5


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (200, 200),
        (404, 404),
        (500, 500),
        (Status.WAITING, -6),
        (Status.INVALID_RESPONSE, -1),
        (Status.QUOTA, -4),
        (Status.OUT_OF_SCOPE, -5),
        (Status.ROBOTS, -7),
        (Status.ROBOTS_UNREACHABLE, -7),
        (Status.TIMEOUT, -10),
        (Status.TIME_LIMIT, -10),
        (Status.CUT, -6),
        (Status.TYPE, -3),
        (Status.LEFT_OUT, -5),
        (Status.DNS, -11),
        (Status.CONNECT_FAILED, -11),
        (Status.CONNECTION_LOST, -11),
        (Status.RUNTIME, -11),
        (-12345, SYSTEM_ERROR),
    ],
)
def test_seed3_codes(status: int, code: int) -> None:
    assert seed3_code(status) == code


def test_each_status_has_a_seed3_code_on_purpose() -> None:
    system = {Status.DNS, Status.CONNECT_FAILED, Status.CONNECTION_LOST, Status.RUNTIME}
    assert {status for status in Status if seed3_code(status) == SYSTEM_ERROR} == system


def test_statuses_are_heritrix_numbers() -> None:
    assert {status.name: int(status) for status in Status} == {
        "WAITING": 0,
        "DNS": -1,
        "CONNECT_FAILED": -2,
        "CONNECTION_LOST": -3,
        "TIMEOUT": -4,
        "RUNTIME": -5,
        "ILLEGAL_URL": -7,
        "ROBOTS_UNREACHABLE": -61,
        "INVALID_RESPONSE": -404,
        "TRAP": -4000,
        "TOO_MANY_HOPS": -4001,
        "OUT_OF_SCOPE": -5000,
        "QUOTA": -5003,
        "TIME_LIMIT": -5004,
        "CUT": -6000,
        "TYPE": -5002,
        "LEFT_OUT": -5001,
        "ROBOTS": -9998,
    }


@pytest.mark.parametrize(
    ("host", "seconds"), [("a.org", 9.0), ("b.org", 0.0), ("c.example", 5.0), ("d.example", 1.0), ("e.net", 1.0)]
)
def test_the_wait_of_a_server_is_the_last_order_then_its_own_then_that_of_the_crawl(host: str, seconds: float) -> None:
    servers = (ServerSettings(host="c.example", wait=5.0), ServerSettings(host="*.example"))
    publication = Publication(name="p", urls=(), server=servers, crawl=CrawlSettings(wait=1.0))
    assert wait_of(publication, {"a.*": 9.0, "*.org": 0.0}, host) == seconds
