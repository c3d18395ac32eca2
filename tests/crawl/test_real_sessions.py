"""Reports of what crawls of real sites miss: pages behind cookies that redirects set (finding D)."""

from __future__ import annotations

import base64
import contextlib
import gzip
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agent.crawl.discovery import MOST_RETURNS
from tests.support import crawls
from tests.support.messy_sites import FINE, PIXEL, Case, MessyCrawl, check, crawl_cases
from tests.support.site import Site
from tests.support.wire import Answer, Exchange, error_page, page
from webarcfs.archive.config import directory, settings_files, validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import HostSecret
from webarcfs.archive.model.errors import CrawlFailed

ONE = FINE.encode()


def cookies_of(exchange: Exchange) -> Mapping[str, str]:
    """The cookies of a request."""
    pairs = (pair.partition("=") for pair in exchange.request.headers.get("cookie", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def to(where: str, *cookies: str, status: int = 302) -> Answer:
    """A redirect that sets cookies."""

    def answer(exchange: Exchange) -> None:
        fields = "".join(f"Set-Cookie: {cookie}\r\n" for cookie in cookies)
        head = f"HTTP/1.1 {status} Found\r\nLocation: {where}\r\n{fields}Content-Length: 0\r\n\r\n"
        exchange.send(head.encode())

    return answer


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


def _with_cookie(exchange: Exchange) -> None:
    body = b"<img src=http://img.shared.test/x.png>"
    head = b"Set-Cookie: c=1; Domain=.shared.test; Path=/\r\nContent-Type: text/html\r\n"
    exchange.send(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


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
            "/": _with_cookie,
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


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases."""
    archive = directory.create(tmp_path_factory.mktemp("real") / "archive")
    with Site() as site:
        yield crawl_cases(archive, site, CASES, hosts=["img.shared.test"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(crawl: MessyCrawl, case: Case) -> None:
    """S-cookie-1"""
    check(case, crawl)


# -- what single hosts are shown --------------------------------------------------------------------------------------


def secret(folder: Path, text: str, *hosts: str, mode: int = 0o600) -> HostSecret:
    """A file of secrets for hosts."""
    path = folder / f"secret-{len(list(folder.iterdir()))}"
    path.write_text(text)
    path.chmod(mode)
    return HostSecret(hosts=hosts, file=str(path))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return directory.create(tmp_path / "archive")


def test_secrets_go_to_their_hosts_alone(archive: Archive, tmp_path: Path) -> None:
    """S-secret-1: not to others by links, resources or redirects; nothing of the archive has them afterwards."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    words = ("pa55word", "t0ken", "c00kie")
    seen: list[str] = []

    def home(exchange: Exchange) -> None:
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                seen.append(process.read_text(errors="replace"))
        page("<a href=/a>a</a><a href=/r>r</a><img src=http://b.test/x.png><a href=http://sub.a.test/>s</a>")(exchange)

    with Site() as site:
        site.add_nasty("/", home, "a.test")
        site.add_nasty("/a", page(FINE), "a.test")
        site.add_nasty("/r", to("http://b.test/r"), "a.test")
        for path in ("/x.png", "/r"):
            site.add_nasty(path, page(FINE), "b.test")
        site.add_nasty("/", page(FINE), "sub.a.test")
        outcome = crawls.crawl(
            archive,
            "http://a.test/",
            hosts=["*.test"],
            keep_warc=True,
            wget_args=crawls.through(site.proxy),
            login=[secret(folder, "me:pa55word\n", "http://a.test")],
            headers=[secret(folder, "# for us\nX-Key: t0ken\n", "http://a.test")],
            cookies=[secret(folder, "sid=c00kie\n", "http://a.test"), secret(folder, "n=c00kie", "a.test")],
        )
        asked = {(request.host, request.path): request.headers for request in site.requests}
    basic = base64.b64encode(b"me:pa55word").decode()
    for path in ("/", "/a", "/r", "/robots.txt"):
        fields = asked["a.test", path]
        assert (fields["authorization"], fields["x-key"]) == (f"Basic {basic}", "t0ken")
        assert fields["cookie"] == "sid=c00kie", "what is for https alone is not sent by http"
    others = [fields for (host, _), fields in asked.items() if host != "a.test"]
    assert len(others) >= 4 and not any({"authorization", "x-key", "cookie"} & fields.keys() for fields in others)
    assert any("wget" in line for line in seen)
    for hidden in (*words, basic):
        assert not any(hidden in line for line in seen), "a process list has it"
        assert [str(path) for path in archive.root.rglob("*") if path.is_file() and _has(path, hidden)] == []
    warcs = list(archive.root.rglob("*.warc*"))
    assert outcome.complete and warcs and any(b"Authorization: ***" in _bytes(path) for path in warcs)


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _has(path: Path, hidden: str) -> bool:
    with contextlib.suppress(OSError, EOFError):
        return hidden.encode() in _bytes(path)
    return False


@pytest.mark.parametrize(
    ("kind", "text", "mode", "why"),
    [
        ("login", "me:x", 0o644, "others may read it"),
        ("login", "me:x", 0o640, "others may read it"),
        ("login", "me", 0o600, "user:password"),
        ("headers", "X-Key t0ken", 0o600, "Name: value"),
        ("headers", "Host: other.test", 0o600, "may be set"),
        ("headers", "X-Key: a\x0bb", 0o600, "Name: value"),
        ("cookies", "", 0o600, "cookies.txt"),
        ("cookies", "t=t0ken\n" * 200_000, 0o600, "more than 1 MiB"),
        ("cookies", "other.test\tTRUE\t/\tFALSE\t0\ta\tb", 0o600, "cookies.txt"),
    ],
)
def test_files_that_will_not_do(  # noqa: PLR0917  a table of cases
    archive: Archive, tmp_path: Path, kind: str, text: str, mode: int, why: str
) -> None:
    """The message names the file and not what is in it."""
    with pytest.raises(CrawlFailed, match=why) as raised:
        crawls.crawl(archive, "http://a.test/", **{kind: [secret(tmp_path, text, "http://a.test", mode=mode)]})
    assert "t0ken" not in str(raised.value)


@pytest.mark.parametrize("host", ["*", "*.a.test", "http://a.test/x", "ftp://a.test", "", "a test"])
def test_hosts_are_named(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        validators.origin(host)


def test_a_publication_with_a_secret_is_released_by_hand() -> None:
    """Unless it says otherwise."""
    text = '[[publication]]\nname = "{name}"\nurls = ["https://a.test/"]\n{more}\n'
    table = '[[publication.login]]\nhosts = ["a.test"]\nfile = "/etc/secret"'
    texts = ((("p", table)), ("q", f'release = "automatic"\n{table}'), ("r", ""))
    settings = settings_files.parse("".join(text.format(name=name, more=more) for name, more in texts), "test")
    assert [publication.release for publication in settings.publications] == ["by-hand", "automatic", "automatic"]
