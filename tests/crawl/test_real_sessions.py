"""Reports of what crawls of real sites miss: pages behind cookies that redirects set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agent.crawl.discovery import MOST_RETURNS
from tests.support import nasty
from tests.support.messy_sites import FINE, PIXEL, Case, MessyCrawl, check, crawled
from tests.support.wire import Answer, Exchange, error_page, page

pytestmark = pytest.mark.crawl

ONE = FINE.encode()


def cookies_of(exchange: Exchange) -> Mapping[str, str]:
    """The cookies of a request."""
    pairs = (pair.partition("=") for pair in exchange.request.headers.get("cookie", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def to(where: str, *cookies: str, status: int = 302) -> Answer:
    """A redirect that sets cookies."""
    fields = "".join(f"Set-Cookie: {cookie}\r\n" for cookie in cookies)
    return nasty.raw(f"HTTP/1.1 {status} Found\r\nLocation: {where}\r\n{fields}Content-Length: 0\r\n\r\n".encode())


def wall(behind: Callable[[str], Answer], *, name: str = "c", what: Answer | None = None) -> Answer:
    """A page for requests with a cookie; others get what `behind` makes of their path."""

    def answer(exchange: Exchange) -> None:
        has = name in cookies_of(exchange)
        ((what or page(FINE)) if has else behind(exchange.request.path))(exchange)

    return answer


def counting(where: Callable[[int], str], cookie: Callable[[int], str]) -> Answer:
    """Redirects for ever; the n-th sets another cookie."""
    seen = [0]

    def answer(exchange: Exchange) -> None:
        seen[0] += 1
        to(where(seen[0]), cookie(seen[0]))(exchange)

    return answer


def two_walls(exchange: Exchange) -> None:
    """Consent first, then a region."""
    has = cookies_of(exchange)
    if "consent" not in has:
        to("/consent")(exchange)
    elif "region" not in has:
        to("/region")(exchange)
    else:
        page(FINE)(exchange)


def login(exchange: Exchange) -> None:
    """A server of logins: it gives a ticket to whom it knows, and sends others back first."""
    to("http://sso.test/?ticket=1" if "id" in cookies_of(exchange) else "http://sso.test/", "id=1")(exchange)


def only_with(name: str, body: bytes | str) -> Answer:
    """A page for requests with a cookie of that name; 403 without."""
    return wall(lambda _: error_page(403), name=name, what=page(body, "image/png" if isinstance(body, bytes) else None))


CASES = (
    Case(
        name="self",
        finding="D",
        serves={"/": wall(lambda path: to(path, "c=1"))},
        at_most={"/": 2},
        bodies={"/": ONE},
    ),
    Case(
        name="hop",
        finding="D",
        serves={"/": wall(lambda _: to("/set?b=/")), "/set?b=/": to("/", "c=1")},
        at_most={"/": 2, "/set?b=/": 1},
        bodies={"/": ONE},
    ),
    Case(
        name="whole-site",
        finding="D",
        serves={
            "/robots.txt": wall(lambda path: to(path, "c=1"), what=page("User-agent: *\nDisallow: /no", "text/plain")),
            "/": wall(lambda path: to(path, "c=1"), what=page("<a href=/a>a</a><a href=/no>no</a>")),
            "/a": wall(lambda path: to(path, "c=1")),
            "/no": FINE,
        },
        at_most={"/robots.txt": 2, "/": 2},
        never=["/no"],
        kept=["/", "/a"],
    ),
    Case(
        name="robots-hop",
        finding="D",
        serves={
            "/robots.txt": wall(lambda _: to("/set?b=robots"), what=page("User-agent: *\nDisallow: /no", "text/plain")),
            "/set?b=robots": to("/robots.txt", "c=1"),
            "/": "<a href=/no>no</a>",
            "/no": FINE,
        },
        at_most={"/robots.txt": 2},
        never=["/no"],
        kept=["/"],
    ),
    Case(
        name="sso",
        finding="D",
        serves={
            "/": to("http://login.idp.test/in"),
            "http://login.idp.test/in": login,
            "/?ticket=1": FINE,
        },
        kept=["/?ticket=1"],
    ),
    Case(
        name="consent-elsewhere",
        finding="D",
        serves={
            "/": wall(lambda _: to("http://consent.cmp.test/ask", "c=1; Path=/")),
            "http://consent.cmp.test/ask": to("http://consent-elsewhere.test/", "seen=1"),
        },
        at_most={"/": 2},
        bodies={"/": ONE},
    ),
    Case(
        name="www.subdomain",
        finding="D",
        serves={
            "/": wall(lambda _: to("http://login.subdomain.test/")),
            "http://login.subdomain.test/": to("http://www.subdomain.test/", "c=1; Domain=subdomain.test; Path=/"),
        },
        at_most={"/": 2},
        bodies={"/": ONE},
    ),
    Case(
        name="www.shared",
        finding="D",
        serves={
            "/": page(
                "<img src=http://img.shared.test/x.png>",
                headers={"Set-Cookie": "c=1; Domain=.shared.test; Path=/"},
            ),
            "http://img.shared.test/x.png": only_with("c", PIXEL),
        },
        kept=["http://img.shared.test/x.png"],
    ),
    Case(
        name="walls",
        finding="D",
        serves={"/": two_walls, "/consent": to("/", "consent=1"), "/region": to("/", "region=1")},
        at_most={"/": 3},
        bodies={"/": ONE},
    ),
    Case(
        name="deep",
        finding="D",
        serves={
            "/": '<a href="/page">x</a>',
            "/page": wall(lambda _: to("/set"), what=page('<a href="/next">y</a>')),
            "/set": to("/page", "c=1", status=303),
            "/next": FINE,
        },
        kept=["/page", "/next"],
    ),
    Case(
        name="other-path",
        finding="D",
        serves={"/": to("/", "c=1; Path=/elsewhere/")},
        at_most={"/": 1},
        words={"/": "redirect-loop"},
    ),
    Case(name="secure", finding="D", serves={"/": to("/", "c=1; Secure")}, at_most={"/": 1}),
    Case(name="no-cookie", finding="D", serves={"/": to("/a"), "/a": to("/")}, at_most={"/": 1, "/a": 1}),
    Case(
        name="growing",
        finding="D",
        serves={"/": counting(lambda _: "/", lambda n: f"c={'x' * n * 1000}")},
        at_most={"/": MOST_RETURNS + 1},
        words={"/": "redirect-loop"},
    ),
    Case(
        name="more-each-time",
        finding="D",
        serves={"/": counting(lambda _: "/b", lambda n: f"c{n}=1"), "/b": counting(lambda _: "/", lambda n: f"d{n}=1")},
        at_most={"/": MOST_RETURNS + 1, "/b": MOST_RETURNS + 1},
        words={"/": "redirect-loop"},
    ),
    Case(
        name="five0",
        finding="D",
        serves={
            f"http://five{number}.test/": counting(
                lambda _, number=number: f"http://five{(number + 1) % 5}.test/",  # type: ignore[misc]
                lambda n: f"c=n{n}",
            )
            for number in range(5)
        },
        at_most={f"http://five{number}.test/": MOST_RETURNS + 1 for number in range(5)},
        words={"/": "redirect-loop"},
    ),
    Case(
        name="removed",
        finding="D",
        serves={"/": wall(lambda _: to("/in"), name="c"), "/in": to("/", "c=1", "old=1; Max-Age=0")},
        bodies={"/": ONE},
    ),
)
_ID = "0123456789abcdef"
#: Sites whose pages lead to themselves with a session id; all of them have a page at `/`, and none with an id.
WITH_IDS = (
    Case(
        name="servlet",
        finding="D",
        serves={
            "/": to(f"/;jsessionid={_ID}"),
            f"/;jsessionid={_ID}": f"<a href='/b;jsessionid={_ID}'>b</a>",
            "/b": to(f"/b;jsessionid={_ID}"),
            f"/b;jsessionid={_ID}": FINE,
        },
        at_most={"/": 1, "/b": 1},
        kept=["/"],
        bodies={"/b": ONE},
    ),
    Case(
        name="query",
        finding="D",
        serves={"/": to(f"/?PHPSESSID={_ID}"), f"/?PHPSESSID={_ID}": FINE},
        bodies={"/": ONE},
    ),
    Case(
        name="id-or-cookie",
        finding="D",
        serves={
            "/": wall(lambda _: to(f"/;jsessionid={_ID}", "c=1")),
            f"/;jsessionid={_ID}": to("/"),
        },
        at_most={"/": 2},
        bodies={"/": ONE},
    ),
    Case(
        name="refresh",
        finding="D",
        serves={
            "/": f"<meta http-equiv=refresh content='0; url=/;jsessionid={_ID}'>",
            f"/;jsessionid={_ID}": FINE,
        },
        at_most={"/": 1},
        bodies={"/": ONE},
    ),
    Case(
        name="odd-length",
        finding="D",
        serves={
            "/": to(f"/;jsessionid={_ID}"),
            f"/;jsessionid={_ID}": page(FINE, headers={"Content-Length": f"{len(FINE)}x"}),
        },
        bodies={"/": ONE},
    ),
)
ANEW = Case(
    name="anew",
    finding="D",
    serves={"/": to("/;jsessionid=1"), "/;jsessionid=1": to("/;jsessionid=2"), "/;jsessionid=2": FINE},
    at_most={"/": 1, "/;jsessionid=1": 1},
    never=["/;jsessionid=2"],
    words={"/": "redirect-loop"},
)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases."""
    with crawled(tmp_path_factory.mktemp("real"), CASES, hosts=["img.shared.test"]) as done:
        yield done


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(crawl: MessyCrawl, case: Case) -> None:
    """S-cookie-1"""
    check(case, crawl)


def test_a_page_that_leads_to_itself_with_a_session_id_is_kept_without_it(tmp_path: Path) -> None:
    """S-session-1: also where the server knows its visitors by the id alone."""
    with crawled(tmp_path, (*WITH_IDS, ANEW)) as crawl:
        for case in (*WITH_IDS, ANEW):
            check(case, crawl)
        assert not [url for url in crawl.log if _ID in url]
