"""Archives of some hosts over some years, by imports: pages that change, that stay, that come late, redirects, errors.

Some of their crawls are withheld from readers, and some pages are withheld by rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.operations.records import Acting, decide
from tests.support import warcs
from tests.support.dated_pages import response
from tests.support.imports import import_files
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.workflow import Decision
from webarcfs.archive.config.directory import Archive, create

HOSTS = ("www.example.org", "news.example.org", "shop.example.com")
YEARS = (2019, 2020, 2021, 2022)
#: The crawl that no reader sees, by publication and year; and the page that none sees, with all below it.
HELD = ("council", 2020)
WITHHELD = "http://news.example.org/private/*"
#: A title that is hard on programs: right to left, quotes, a line break, a formula, 10 kB.
HARD_TITLE = '=HYPERLINK("x") "مرحبا", \u202eשלום;\n\t' + "long " * 2_000


def make_years(folder: Path) -> Archive:
    """An archive of two publications, of which one has two hosts and the other two as well, one of them the same."""
    archive = create(folder / "archive")
    archive.settings.write_text("[index]\nlinks = true\n")
    files = folder / "files"
    files.mkdir()
    for year in YEARS:
        for publication, hosts in (("council", HOSTS[:2]), ("region", HOSTS[1:])):
            path = files / f"{publication}-{year}.warc"
            warcs.write(path, (record for host in hosts for record in _captures(host, year, publication)))
            import_files(archive, path, name=publication, keep_errors=True)
    return archive


def withhold_half(archive: Archive) -> None:
    """Withhold the crawl of one publication and year, and the pages below a folder of one host."""
    publication, year = HELD
    for listed in list(Catalogue(archive).records()):
        if listed.publication == publication and listed.parts[0].tag.crawl_time.year == year:
            decide(archive, listed.id, Decision.WITHDRAW, Acting("anna", None), "not for the public")
    access_rules.withhold(archive, WITHHELD, "anna", "asked for", access=Access.EXCLUDE)


def _captures(host: str, year: int, publication: str) -> Iterator[bytes]:
    day = 10 if publication == "council" else 20

    def at(minute: int) -> str:
        return f"{year}-03-{day:02}T12:{minute:02}:00Z"

    def page(path: str, body: str, minute: int, mime_type: str = "text/html", **more: str) -> bytes:
        return response(f"http://{host}/{path}", body.encode(), at(minute), mime_type, **more)

    links = "".join(f'<a href="http://{other}/">{other} {year}</a> ' for other in HOSTS)
    yield page("", f"<title>Home {year}</title><p>News of {year} from {host}. {links}</p>", 0)
    yield page("same.html", '<title>Same</title><p>Nothing changes here, ever. <a href="/">home</a></p>', 1)
    yield page("again.html", f"<title>Again</title><p>Version {year % 2}</p>", 2)  # it comes back
    yield page("private/a.html", f"<title>A</title><p>Secret words of {year}: zebra</p>", 3)
    yield page("same.html", '<title>Same</title><p>Nothing changes here, ever. <a href="/">home</a></p>', 30)
    if YEARS[0] < year < YEARS[-1]:  # the last crawls do not meet it
        yield page("hard.html", f"<title>{HARD_TITLE}</title><p>hard</p>", 4)
    yield page("d.pdf", "%PDF-1.4 ", 5, "application/pdf")
    yield page("old", "", 6, status="301 Moved Permanently", Location=f"http://{host}/same.html")
    yield page("missing.html", "<title>No</title>gone", 7, status="404 Not Found")
