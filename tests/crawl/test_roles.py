"""Pages, and what only pages of other hosts needed: a site, the hosts of its styles, fonts and frames, and who asks."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tantivy import Query

from agent.catalogue.recording import describe_capture
from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from agent.jobs.publishing import JobOutcome
from agent.maintenance.verification import verify
from tests.crawl.test_conditional import tagged
from tests.support import crawls
from tests.support.crawls import crawl
from tests.support.readercommand import webarc
from tests.support.rooms import served
from tests.support.site import Site
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.catalogue.catalogue import Catalogue, captures
from webarcfs.archive.catalogue.record import FieldNumber, Record, read_record, write_record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import links
from webarcfs.archive.index.links import Question
from webarcfs.archive.model.errors import BadCondition
from webarcfs.archive.model.metadata import CommitMessage, CommitTag
from webarcfs.client import WebarchiveClient
from webarcfs.search.index import IndexReader
from webarcfs.search.query_language import AskedRole
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.crawl

SITE, STYLES, FONTS, FRAMES = "www.site.test", "css.cdn.test", "fonts.test", "frames.test"
FRAME = '<title>Frame</title><p>zebra</p><a href="http://away.test/">away</a>'


def serve(site: Site, *, linked: bool = False, text: str = "") -> None:
    """A page with a style, the font of that, and a frame; `linked`: a link leads to the frame as well."""
    more = text + (f'<a href="http://{FRAMES}/f.html">frame</a>' if linked else "")
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
    assert said[0].endswith(",role,certificate") and {line.split(",")[-2] for line in said[1:]} == {"resource"}
    before = _roles(archived)
    recover(archived)
    assert _roles(archived) == before and list(verify(archived)) == []


def test_searches_mean_pages_unless_they_ask(archived: Archive) -> None:
    """S-role-2."""
    assert _hits(archived, "zebra") == _hits(archived, "zebra role:page") == [SITE]
    assert _hits(archived, "zebra role:any") == _hits(archived, "zebra", role=AskedRole.ANY) == [FRAMES, SITE]
    assert _hits(archived, "zebra role:resource") == _hits(archived, "zebra -role:page") == [FRAMES]
    assert _hits(archived, "(zebra site:frames.test role:any) OR (zebra role:page)") == [FRAMES, SITE]
    assert _hits(archived, "zebra role:any", role=AskedRole.PAGE) == [SITE]
    assert _hits(archived, "zebra", Gate(archived, Reader(""))) == [SITE]
    assert _hits(archived, "zebra role:any", Gate(archived, Reader(""))) == [FRAMES, SITE]
    assert _hits(archived, "role:resource") == [STYLES, FONTS, FRAMES]
    with WebarchiveClient(archived.root) as client:
        assert (client.search("zebra").total, client.search("zebra", role="any").total) == (1, 2)
        with pytest.raises(BadCondition, match="a role is page, resource, any"):
            client.search("zebra", role="pages")
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


@pytest.mark.parametrize("role", ["", *AskedRole])
@pytest.mark.parametrize("words", ["zebra", "zebra role:resource", "zebra role:any", "site:css.cdn.test", "giraffe"])
def test_hits_by_role_take_one_query_more(
    archived: Archive, monkeypatch: pytest.MonkeyPatch, words: str, role: str
) -> None:
    """Of the role that was asked the number is there; both are those that a question for each of them counts.

    Of both roles neither is there: a URL may have been a page in one version, and a resource in another.
    """
    searcher, question = Searcher(archived), SearchQuestion(words=words, role=role)
    counts = [
        (str(other), searcher.count(replace(question, role=other))) for other in (AskedRole.PAGE, AskedRole.RESOURCE)
    ]
    queries, count = list[Query](), IndexReader.count

    def counted(reader: IndexReader, query: Query) -> int:
        queries.append(query)
        return count(reader, query)

    monkeypatch.setattr(IndexReader, "count", counted)
    assert searcher.facets(question)["role"] == [role for role in counts if role[1]]
    is_both = role == AskedRole.ANY or (not role and words.endswith(("role:resource", "role:any")))
    assert len(queries) == 1 + (2 if is_both else 1)  # the first one counts the versions


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
    outcome = again(archive, site, hosts=[FRAMES])  # the same bytes, and a page now
    assert [role for _, role in versions()] == ["resource", "page"]
    assert outcome.summary["arcs"]["changed"] == 1, "the page that has the link now"
    assert {"unchanged", "became-page"} <= set(crawls.log_lines(archive, outcome)[f"http://{FRAMES}/f.html"].notes)
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


# -- records, and lists of hosts ---------------------------------------------------------------------------------------


def _record(archive: Archive, *command: str) -> str:
    done = crawls.run_command("record", *command, "--archive", archive.root)
    assert done.code == 0, done.err
    return done.out


def test_a_record_counts_resources_by_themselves_and_names_sites_first(archive: Archive, site: Site) -> None:
    """S-role-3."""
    serve(site)
    first = again(archive, site)
    catalogue = Catalogue(archive)
    record = catalogue.read(first.job)[0]
    assert (record.sites, record.domains[0], len(record.domains)) == ((SITE,), SITE, 4)
    assert {part.tag.domain for part in record.parts if part.is_resource} == {STYLES, FONTS, FRAMES}
    assert (record.text(FieldNumber.FILES), record.text(FieldNumber.FILES_BY_EXTENSION)) == ("1", "html 1")
    assert (record.resources.hosts, record.resources.files) == (3, 3) and record.resources.bytes > 50
    assert read_record(write_record(record)) == record
    fields = record.as_fields()
    assert (fields["resourceHosts"], fields["resourceFiles"]) == ("3", "3")
    serve(site, text="<p>more</p>")
    second = again(archive, site)  # hosts without a change have no snapshot, and are counted
    later = catalogue.read(second.job)[0]
    assert later.domains == (SITE,) and later.resources == record.resources
    assert later.text(FieldNumber.FILES) == "1"
    said = _record(archive, "list")
    assert f"{SITE} and 3 hosts of their resources" in said
    assert "3 files," in _record(archive, "show", first.job)
    assert "3 files," in _record(archive, "show", second.job)
    assert json.loads(_record(archive, "list", "--json").splitlines()[-1])["domains"][0] == SITE
    assert Catalogue(archive).read(first.job)[0].for_readers(whole=False).resources.files == 0
    assert list(verify(archive)) == []


def test_git_alone_knows_which_parts_are_resources(archived: Archive) -> None:
    """Also where the report of the job is gone, and the catalogue with it."""
    job = next(archived.reports.iterdir()).name
    before = Catalogue(archived).read(job)[0]
    shutil.rmtree(archived.reports / job)
    (capture,) = captures(archived)
    record = describe_capture(archived, capture)
    assert {part.tag.domain for part in record.parts if part.is_resource} == {STYLES, FONTS, FRAMES}
    assert (record.resources, record.text(FieldNumber.FILES)) == (before.resources, "1")
    assert record.text(FieldNumber.DOMAIN) == before.text(FieldNumber.DOMAIN)


def test_the_reading_room_shows_sites_first(archived: Archive) -> None:
    """S-role-3."""
    with served(archived) as room:
        job = next(archived.reports.iterdir()).name
        page = room.get(f"/snapshot/{job}").text
        heading = page.index("Hosts without pages: only files that other pages need")
        assert page.rindex(f">{SITE}<", 0, heading) < heading
        assert all(page.index(f">{host}<") > heading for host in (STYLES, FONTS, FRAMES))
        assert page.count('class="button"') == 1  # no start page of a host without pages
        assert f"{SITE} and 3 hosts of their resources" in " ".join(room.get("/?all=1").text.split())
        assert json.loads(room.get("/search.json?q=zebra").text)["total"] == 1
        assert json.loads(room.get("/search.json?q=zebra&role=any").text)["total"] == 2
        found = room.get("/search?q=zebra").text
        assert "Only embedded in pages of other hosts" in found and "role=resource" in found


def test_a_host_that_is_listed_as_a_site_is_no_resource_host(archived: Archive) -> None:
    """Also where a crawl has pages of no host."""
    job, catalogue = next(archived.reports.iterdir()).name, Catalogue(archived)

    def without_pages(record: Record) -> Record:
        return replace(record, parts=tuple(replace(part, is_resource=True) for part in record.parts))

    catalogue.change(job, without_pages, "test", lambda _: "test")
    with served(archived) as room:
        row = " ".join(room.get("/?all=1").text.split())
    assert f"{SITE}, {STYLES}, {FONTS} and 1 more</span>" in row


def test_a_host_of_another_publication_may_give_fewer_resources(archive: Archive, site: Site) -> None:
    """Its documents are pages, and still this publication needs no page of it."""

    def start(*images: int) -> None:
        site.add_html("/", "".join(f'<img src="http://{FRAMES}/{number}.png">' for number in images), host=SITE)

    site.add_html("/f.html", "".join(f'<img src="/{number}.png">' for number in range(9)), host=FRAMES)
    for number in range(9):
        site.add(f"/{number}.png", f"{number}", "image/png", host=FRAMES)
    start(*range(9))
    assert again(archive, site).complete
    other = crawl(archive, f"http://{FRAMES}/f.html", name="other", wget_args=crawls.through(site.proxy))
    assert other.complete and set(_roles(archive, f"domain = '{FRAMES}'").values()) >= {"page"}
    site.add("/0.png", "new", "image/png", host=FRAMES)
    start(*range(9))
    assert again(archive, site).complete  # sees pages now
    assert crawls.meta(archive, FRAMES, "0.png").role == "page"
    start(0)
    assert again(archive, site).complete
    start()
    assert again(archive, site).complete
    assert len(crawls.arcs(archive, FRAMES)) == 10  # the other publication has them


def test_a_folder_to_browse_and_the_pages_of_a_wacz_list_sites(archived: Archive, tmp_path: Path) -> None:
    """S-role-3."""
    for form, out in (("static", tmp_path / "folder"), ("wacz", tmp_path / "all.wacz")):
        done = webarc("export", str(out), "--format", form, "--archive", str(archived.root))
        assert done.returncode == 0, done.stderr
    listed = (tmp_path / "folder" / "index.html").read_text()
    heading = listed.index("Hosts without pages, which only gave resources")
    assert listed.index(f">{SITE}</a>") < heading < min(listed.index(host) for host in (STYLES, FONTS, FRAMES))
    with zipfile.ZipFile(tmp_path / "all.wacz") as wacz:
        pages = [json.loads(line) for line in wacz.read("pages/pages.jsonl").splitlines()[1:]]
    assert [page["url"] for page in pages] == [f"http://{SITE}/"]


def test_an_exported_archive_has_the_same_roles(archived: Archive, tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    done = webarc("export", str(out), "--archive", str(archived.root))
    assert done.returncode == 0, done.stderr
    other = directory.create(copy)
    assert crawls.run_command("import", "--as-exported", out, "--archive", copy).code == 0
    assert _roles(other) == _roles(archived)
    for host in (SITE, STYLES):
        messages = [_message(place, host) for place in (archived, other)]
        assert messages[0].has_pages is messages[1].has_pages is (host == SITE)
        assert messages[0].has_resources is messages[1].has_resources is (host != SITE)
    with WebarchiveClient(copy) as client:
        assert {meta.domain for meta in client.select("role = 'page'")} == {SITE}


def _message(archive: Archive, host: str) -> CommitMessage:
    head = crawls.store(archive, host).head()
    assert head is not None
    return head.message
