"""Pages, and what only pages of other hosts needed: a site, the hosts of its styles, fonts and frames, and who asks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from agent.jobs.publishing import JobOutcome
from agent.maintenance.verification import verify
from tests.crawl.test_conditional import tagged
from tests.support import crawls
from tests.support.crawls import crawl
from tests.support.readercommand import webarc
from tests.support.site import Site
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import links
from webarcfs.archive.index.links import Question
from webarcfs.archive.model.errors import BadCondition
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.client import WebarchiveClient
from webarcfs.search.query_language import Role
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.crawl

SITE, STYLES, FONTS, FRAMES = "www.site.test", "css.cdn.test", "fonts.test", "frames.test"
FRAME = '<title>Frame</title><p>zebra</p><a href="http://away.test/">away</a>'


def serve(site: Site, *, linked: bool = False) -> None:
    """A page with a style, the font of that, and a frame; `linked`: a link leads to the frame as well."""
    more = f'<a href="http://{FRAMES}/f.html">frame</a>' if linked else ""
    start = (
        f'<title>Site</title><link rel=stylesheet href="http://{STYLES}/s.css"><p>zebra</p>'
        f'<iframe src="http://{FRAMES}/f.html"></iframe><a href="http://out.test/">out</a>{more}'
    )
    site.add_html("/", start, host=SITE)
    site.add("/s.css", f"@font-face{{src:url(http://{FONTS}/f.woff)}} /* zebra */", "text/css", host=STYLES)
    site.add("/f.woff", b"wOFF", "font/woff", host=FONTS)
    site.add_html("/f.html", FRAME, host=FRAMES)


def again(archive: Archive, site: Site, **settings: Any) -> JobOutcome:
    """Crawl the site, and bring the full-text index in step."""
    outcome = crawl(archive, f"http://{SITE}/", name="site", wget_args=crawls.through(site.proxy), **settings)
    bring_in_step(archive)
    return outcome


@pytest.fixture
def archived(archive: Archive, site: Site) -> Archive:
    """One crawl of the site."""
    serve(site)
    again(archive, site)
    return archive


def _roles(archive: Archive, where: str = "") -> dict[str, str]:
    with WebarchiveClient(archive.root) as client:
        return {meta.domain: meta.role for meta in client.select(where)}


def _hits(archive: Archive, words: str, gate: Gate | None = None, **narrowing: Any) -> list[str]:
    hits = Searcher(archive, gate).ask(SearchQuestion(words=words, **narrowing)).hits
    return sorted(hit.url.partition("://")[2].partition("/")[0] for hit in hits)


def _targets(archive: Archive, **question: Any) -> set[str]:
    return {link.target for link in links.ask(archive, Question(external=True, **question), 30)}


def test_what_only_other_hosts_needed_is_a_resource_in_queries(archived: Archive) -> None:
    """S-role-1."""
    assert _roles(archived) == {SITE: "page", STYLES: "resource", FONTS: "resource", FRAMES: "resource"}
    assert set(_roles(archived, "role = 'page'")) == {SITE}
    said = webarc("query", "role = 'resource'", "--format", "csv", "--archive", str(archived.root)).stdout.splitlines()
    assert said[0].endswith(",status,role") and {line.rpartition(",")[2] for line in said[1:]} == {"resource"}
    before = _roles(archived)
    recover(archived)
    assert _roles(archived) == before and list(verify(archived)) == []


def test_searches_mean_pages_unless_they_ask(archived: Archive) -> None:
    """S-role-2."""
    assert _hits(archived, "zebra") == _hits(archived, "zebra role:page") == [SITE]
    assert _hits(archived, "zebra role:any") == _hits(archived, "zebra", role=Role.ANY) == [FRAMES, SITE]
    assert _hits(archived, "zebra role:resource") == _hits(archived, "zebra -role:page") == [FRAMES]
    assert _hits(archived, "(zebra site:frames.test role:any) OR (zebra role:page)") == [FRAMES, SITE]
    assert _hits(archived, "zebra role:any", role=Role.PAGE) == [SITE]
    assert _hits(archived, "zebra", Gate(archived, Reader(""))) == [SITE]
    assert _hits(archived, "zebra role:any", Gate(archived, Reader(""))) == [FRAMES, SITE]
    assert _hits(archived, "role:resource") == [STYLES, FONTS, FRAMES]
    with pytest.raises(BadCondition, match="a role is page, resource, any"):
        _hits(archived, "zebra role:pages")
    searcher = Searcher(archived)
    facets = searcher.facets(SearchQuestion(words="zebra"))
    assert facets["role"] == [("page", 1), ("resource", 1)] and facets["domain"] == [(SITE, 1)]
    assert searcher.ask(SearchQuestion(words="zebar site:frames.test")).suggestion == "zebra"
    assert searcher.ask(SearchQuestion(words="awya")).suggestion == ""  # the frame's word
    assert searcher.ask(SearchQuestion(words="awya role:any")).suggestion == "away"
    said = json.loads(webarc("search", "zebra", "--role", "resource", "--json", "--archive", str(archived.root)).stdout)
    assert {hit["role"] for hit in said["hits"]} == {"resource"} and said["total"] == 1


def test_a_withheld_resource_is_found_by_nobody(archived: Archive) -> None:
    done = crawls.run_command("withhold", f"http://{FRAMES}/*", "--reason", "private", "--archive", archived.root)
    assert done.code == 0, done.err
    gate = Gate(archived, Reader(""))
    assert _hits(archived, "zebra role:any", gate) == [SITE] and _hits(archived, "role:resource", gate) == [
        STYLES,
        FONTS,
    ]
    assert Searcher(archived, gate).facets(SearchQuestion(words="zebra"))["role"] == [("page", 1)]


def test_links_and_figures_are_those_of_pages_unless_they_ask(archived: Archive) -> None:
    """S-role-2."""
    assert _targets(archived) == {"http://out.test/", f"http://{FRAMES}/f.html"}
    assert "http://away.test/" in _targets(archived, role="any")
    assert _targets(archived, role="resource") == {"http://away.test/"}
    assert _targets(archived, path=f"/{FRAMES}/f.html") == {"http://away.test/"}  # of the frame itself
    tag = next(f"{meta.commit_tag}" for meta in WebarchiveClient(archived.root).select(f"domain = '{FRAMES}'"))
    assert links.figures(archived, CommitTag.parse(tag), 30).total == 0

    def counted(*more: str) -> dict[str, Any]:
        said = webarc("stat", tag, "--json", *more, "--archive", str(archived.root))
        figures: dict[str, Any] = json.loads(said.stdout)[tag]
        return figures

    assert (counted()["documents"], counted()["resources"]["documents"]) == (0, 1)
    assert (counted("--role", "any")["documents"], counted("--role", "resource")["documents"]) == (1, 1)
    assert "1 that only pages of other hosts needed" in webarc("stat", tag, "--archive", str(archived.root)).stdout


def test_a_resource_that_a_link_leads_to_becomes_a_page_and_stays_one(archive: Archive, site: Site) -> None:
    """S-role-1."""

    def versions() -> Iterable[tuple[str, str]]:
        with WebarchiveClient(archive.root) as client:
            return [(str(meta.commit_tag), meta.role) for meta in client.select(f"domain = '{FRAMES}'", "crawlTime")]

    serve(site)
    again(archive, site)
    serve(site, linked=True)
    again(archive, site, hosts=[FRAMES])  # the same bytes, and a page now
    assert [role for _, role in versions()] == ["resource", "page"]
    assert crawls.meta(archive, FRAMES, "f.html").role == "page"
    assert _hits(archive, "zebra") == [FRAMES, SITE]
    old = CommitTag.parse(next(iter(versions()))[0])
    assert _hits(archive, "zebra", at=old) == [] and _hits(archive, "zebra role:any", at=old) == [FRAMES]
    assert "http://away.test/" in _targets(archive) and _targets(archive, at=old) == set()
    serve(site)
    site.add_html("/f.html", FRAME.replace("zebra", "giraffe"), host=FRAMES)
    again(archive, site)  # needed by a page alone again, with other bytes
    assert [role for _, role in versions()] == ["resource", "page", "page"]
    before = _roles(archive)
    recover(archive)
    assert _roles(archive) == before and list(verify(archive)) == []
    assert _hits(archive, "giraffe") == [FRAMES]


def test_what_becomes_a_page_is_fetched_in_full(archive: Archive, site: Site) -> None:
    """With `conditional` a server would say 304, and the archive would keep the resource."""
    serve(site)
    site.add_nasty("/f.html", tagged(FRAME), host=FRAMES)  # type: ignore[arg-type]
    again(archive, site, conditional=True)
    assert crawls.meta(archive, FRAMES, "f.html").role == "resource"
    assert again(archive, site, conditional=True).summary["arcs"]["changed"] == 0
    serve(site, linked=True)
    site.add_nasty("/f.html", tagged(FRAME), host=FRAMES)  # type: ignore[arg-type]
    again(archive, site, conditional=True, hosts=[FRAMES])
    assert crawls.meta(archive, FRAMES, "f.html").role == "page"


def test_old_archives_have_pages_alone(archive: Archive, site: Site) -> None:
    """What says nothing of a role is a page."""
    site.add_html("/", "<p>zebra</p>", host=SITE)
    again(archive, site)
    assert b"role=" not in crawls.read_file(archive, SITE, "index.html/data.xml") or b""
    assert _roles(archive) == {SITE: "page"} and _hits(archive, "zebra") == [SITE]
    assert "role" not in Searcher(archive).facets(SearchQuestion(words="zebra"))
