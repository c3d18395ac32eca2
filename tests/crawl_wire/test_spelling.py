"""wget asks for our canonical spelling of a URL and for nothing else: its own rewriting leaves it as it is.

So the URL of the frontier, the request on the wire and the WARC record's target are one, and each answer finds its row.
"""

import subprocess
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from agent.crawl import wget
from tests.support.site import Everywhere, Site, page
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.urls import canonical

pytestmark = pytest.mark.crawl

#: Path and query, as they stand in pages.
HARD = (
    "/",
    "/?",
    "/?a",
    "/??",
    "/a?b?c",
    "//",
    "/a//b///c",
    "/a/./b/../c",
    "/a/%2e%2e/b",
    "/..%2fetc%2Fpasswd",
    "/%2e%2e%2fx",
    "/.git/config",
    "/data.xml",
    "/headers.http",
    "/a b\tc",
    "/caf\u00e9",
    "/caf%C3%A9",
    "/caf%E9",
    "/caf%c3%a9?q=%c3%a9",
    "/\u65e5\u672c\u8a9e?\u65e5=\u672c",
    "/%00",
    "/a%00b",
    "/a%0d%0aX-Header:%20y",
    "/a%0a",
    "/%7Euser/%7euser/~user",
    "/50%",
    "/50%25",
    "/50%zz",
    "/%",
    "/%%41",
    "/%2541",
    "/a;b=c;d",
    "/a,b+c&d=e@f:g$h!i*j'k(l)m",
    "/a%3Bb%2Cc%2Bd%26e%3Df%40g%3Ah%24i%21j%2Ak%27l%28m%29n",
    "/what%3Fnow?yes",
    "/a%23b#c",
    '/"<>\\^`{|}',
    "/[a]%5Bb%5D",
    "/?a=[b]&c[]=d",
    "/?q=a+b%20c%2Bd",
    "/?u=http://e.org/?x=y&z",
    "/?u=http%3A%2F%2Fe.org%2F",
    "/?q=\"<>\\^`{|}'",
    "/?%",
    "/?a=%E9%00",
    "/index.html;jsessionid=1",
    "/a%2Fb/c",
    "/" + "x" * 300,
    "/" + "%C3%A9" * 100,
    "/\U0001f600",
    "/-rf",
    "/*?.[ab]",
)


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str], list[str]]:
    """The canonical URLs, the requests' URLs and the WARC's, in order: one run of wget over all of them."""
    folder = tmp_path_factory.mktemp("wget")
    files = wget.BatchFiles(folder, 1)
    with Site() as site:
        site.mount(Everywhere(page("x", "text/plain")))
        urls = list(dict.fromkeys(canonical(site.url(path)) for path in HARD))
        wget.write_list(files, urls)
        command = wget.command(files, CrawlSettings(), 0, folder / "cookies")
        subprocess.run(command, env=wget.environment(), cwd=folder, check=False, timeout=240)
        requests = [f"http://{request.host}{request.path}" for request in site.requests]
    with files.warc.open("rb") as stream:
        records = ArchiveIterator(stream)
        targets = [
            str(record.rec_headers.get_header("WARC-Target-URI")).strip("<>")
            for record in records
            if record.rec_type == "response"
        ]
    return urls, requests, targets


def test_there_are_enough_of_them(fetched: tuple[list[str], list[str], list[str]]) -> None:
    assert len(fetched[0]) >= 40


def test_the_request_is_the_canonical_url(fetched: tuple[list[str], list[str], list[str]]) -> None:
    urls, requests, _ = fetched
    assert requests == urls


def test_the_warc_names_the_canonical_url(fetched: tuple[list[str], list[str], list[str]]) -> None:
    urls, _, targets = fetched
    assert [canonical(target) for target in targets] == urls
    assert targets == urls, "and in no other spelling"


def test_the_list_is_one_url_a_line(tmp_path: Path) -> None:
    files = wget.BatchFiles(tmp_path, 1)
    urls = [canonical(f"http://e.org{path}") for path in HARD]
    wget.write_list(files, urls)
    assert files.list.read_text("ascii").split("\n") == [*urls, ""]
