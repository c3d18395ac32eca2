"""Why a page is missing, at the desk: by its URL and by the counts of a report; and how it comes into the crawl."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlencode

import pytest

from agent.catalogue.recording import PatchRefusal
from agent.crawl import job_folder
from agent.crawl.vocabulary import Reason
from agent.desk.pages import snapshots
from agent.jobs import crawljob
from agent.operations import records
from agent.operations.trying import NAMED_REFUSED, Trial
from agent.reports import tables, url_fates
from agent.reports.explanations import desk_advice_on, explanation_of
from agent.reports.url_fates import CrawlFate, UrlSearch, newer_than, newest_that_knows
from tests.support import crawls, desks
from tests.support.desks import Answer, Client, ServedDesk
from tests.support.missing_pages import SETTINGS, UNLINKED, add_troubles
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.access import access_rules
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.catalogue.workflow import Decision
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Exclusion
from webarcfs.archive.system import clocks
from webarcfs.web import language

pytestmark = pytest.mark.crawl

_ANNA = Acting("Anna", None)


class Bad:
    """A crawl of a site of which much is missing, and a desk."""

    def __init__(self, archive: Archive, site: Site, served: ServedDesk, troubles: dict[str, str]) -> None:
        self.archive, self.site, self.served, self.troubles = archive, site, served, troubles
        self.anna = served.client("anna")

    @property
    def record(self) -> Record:
        return next(Catalogue(self.archive).records())

    def missing(self, path: str, client: Client | None = None, **more: str) -> Answer:
        query = urlencode({"url": path if "://" in path else self.site.url(path), **more})
        return (client or self.anna).get(f"/missing?{query}")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bad]:
    from webarcfs.archive.config import directory

    with Site() as site:
        archive = directory.create(tmp_path_factory.mktemp("bad") / "archive")
        lines = (
            "[[publication]]", 'name = "bad"', f'urls = ["{site.url("/")}"]', "depth = 2", "wait = 0",
            "timeout = 2", 'max_document_time = "4 seconds"', "max_file_size = 100000",
            'exclude_extensions = ["iso"]', "sitemaps = false",
            "[[publication.exclude]]", 'match = "*/left-out*"', 'reason = "a test"',
        )  # fmt: skip
        folder = archive.settings.with_name("publications.d")
        folder.mkdir()
        (folder / "bad.toml").write_text("\n".join(lines))
        troubles = add_troubles(site)
        crawls.crawl(archive, site.url("/"), name="bad", release="by-hand", **SETTINGS)
        desks.with_people(archive)
        with desks.served(archive) as served:
            yield Bad(archive, site, served, troubles)


def test_each_missing_page_is_explained_by_its_url(bad: Bad) -> None:
    """In both languages, with what to do, the page that led to it, and without names of settings."""
    german = bad.served.client("carl")
    german.headers["Accept-Language"] = "de"
    for path, word in bad.troubles.items():
        page, auf_deutsch = bad.missing(path), bad.missing(path, german)
        assert page.status == 200 and "The crawl does not have it." in page.words, path
        for text in (explanation_of(word), desk_advice_on(word)):
            assert text in page.words, (path, word)
            assert language.translate(text, "de") in auf_deutsch.words, (path, word)
        origin = "/deep/one" if path == "/deep/deeper" else "/"
        assert f"A link on this page leads to it: {bad.site.url(origin)}" in page.words, path
    assert "The crawl has it." in bad.missing("/deep").words
    assert f"/snapshot/{bad.record.id}/preview?" in bad.missing("/deep").text


def test_spellings_redirects_and_what_is_no_address(bad: Bad) -> None:
    page = bad.missing("/moved")
    assert "Where it redirects to" in page.words and explanation_of("status 404") in page.words
    https = bad.missing(bad.site.url("/missing/").replace("http:", "https:"))
    assert explanation_of("status 404") in https.words, "another spelling"
    for typed in ("http://", "no address", "javascript:alert(1)", "http://[::1", "x" * 9000):
        answer = bad.anna.get(f"/missing?{urlencode({'url': typed})}")
        assert answer.status in (200, 414) and (answer.status == 414 or "Type the address of a page" in answer.words), (
            typed
        )
    assert "Why is a page missing?" in bad.anna.get("/missing").words
    hostile = bad.missing("/<script>alert(1)</script>")
    assert "<script>alert" not in hostile.text and "No crawl saw it" in hostile.words


def test_each_count_of_the_report_leads_to_its_urls(bad: Bad) -> None:
    """As many as are counted; the list leads to each of them, and is there as CSV."""
    report = bad.anna.get(f"/report/{bad.record.id}")
    counts = report.page.xpath("//td[@class='figure']/a[contains(@href, '/urls?')]")
    assert len(counts) > 25
    reasons = set()
    for link in counts:
        number, href = int(link.text.replace(",", "")), link.get("href")
        page = bad.anna.get(href)
        rows = page.page.xpath("//tbody/tr")
        assert page.status == 200 and len(rows) == min(number, 50), href
        (table,) = page.page.xpath("//a[text()='CSV']/@href")
        lines = list(csv.DictReader(io.StringIO(bad.anna.get(table).text)))
        assert len(lines) == number
        reasons |= {line["word"] for line in lines}
    assert reasons >= set(bad.troubles.values())
    assert bad.anna.get(f"/report/{bad.record.id}/urls?status=x").status == 400
    assert bad.anna.get("/report/..%2f/urls").status == 404
    assert bad.anna.get(f"/report/{bad.record.id}/urls?word=%00%3Cb%3E").status == 200


def test_a_page_that_no_crawl_saw_may_be_of_a_publication(bad: Bad) -> None:
    """It says which one, and what keeps that from it; a page of no publication leads to a new one."""
    page = bad.missing(UNLINKED)
    assert "No crawl saw it" in page.words and "It would ask for it, if a page that it reads" in page.words
    assert "The crawl: 127.0.0.1" in page.words and "no. 1 (publication bad)" in page.words, "which one is named"
    assert page.page.xpath("//a[text()='Save this page']")
    for path, word in (("/left-out/new", "excluded"), ("/new.iso", "extension"), ("/x/y/" * 14, "trap:path-depth")):
        page = bad.missing(path)
        assert "It would not ask for it." in page.words and explanation_of(word) in page.words, path
    page = bad.missing("http://elsewhere.example/", bad.served.client("carl"))
    assert "No publication has its host." in page.words and page.page.xpath("//a[@href='/publications/+new']")


def test_what_readers_may_not_see_is_said(bad: Bad) -> None:
    url = bad.site.url("/deep")
    assert "it is not released" in bad.missing("/deep").words
    rules = access_rules.withhold(bad.archive, url, "Anna", "a complaint")
    page = bad.missing("/deep")
    assert "It is withheld from readers. Reason: a complaint" in page.words
    access_rules.lift(bad.archive, rules[0].id, "Anna")
    assert "withheld" not in bad.missing("/deep").words


def test_a_long_log_is_cut_and_that_is_said(bad: Bad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.desk.pages.missing_pages._SECONDS", -1.0)
    assert "The logs of 1 crawls were not read" in bad.missing("/missing").words
    page = bad.anna.get(f"/report/{bad.record.id}/urls?word=robots&kept=no")
    assert "0 lines of it were read, and the rest was not" in page.words
    monkeypatch.setattr("agent.reports.url_fates.MOST_LOGS", 0)
    with clocks.under(clocks.Deadline(60.0)):
        assert url_fates.search_crawls(bad.archive, bad.site.url("/"), most=0) == UrlSearch(bad.site.url("/"), older=1)
    assert newest_that_knows([]) is None


def _fate(job: str, status: int, words: str) -> CrawlFate:
    return CrawlFate(job, (tables.LogLine("http://e.org/a", status, 0, "L", "-", tuple(words.split()), "-"),))


@pytest.mark.parametrize(
    ("fates", "expected"),
    [
        ((("4", -9998, "max-total-size"), ("3", 503, ""), ("2", 200, "")), "3"),
        ((("4", -9998, "depth"), ("3", -9998, "robots"), ("2", -9998, "depth")), "3"),
        ((("4", -9998, "depth"), ("3", -9998, "depth")), "4"),
        ((("4", 404, ""), ("3", 503, "")), "4"),
    ],
)
def test_the_newest_crawl_that_asked_decides(fates: Sequence[tuple[str, int, str]], expected: str) -> None:
    """A later one that had a reason not to ask stands beside it; who only saw a link knows least."""
    known = [_fate(*fate) for fate in fates]
    decided = newest_that_knows(known)
    assert decided is not None and decided.job == expected
    assert [fate.job for fate in newer_than(known, expected)] == [job for job, *_ in fates if job > expected]


def test_desk_and_terminal_say_the_same_of_a_page(archive: Archive, site: Site) -> None:
    """The crawl that last asked for it, and beside it a newer one of another publication that did not."""
    site.add_html("/", "<a href='/a'>x</a>")
    site.gone("/a", 503)
    crawls.crawl(archive, site.url("/"), name="asks")
    crawls.crawl(archive, site.url("/"), name="leaves", exclude=(Exclusion(match="*/a", reason="a test"),))
    folder = archive.settings.with_name("publications.d")
    folder.mkdir()
    for name in ("asks", "leaves"):
        (folder / f"{name}.toml").write_text(f'[[publication]]\nname = "{name}"\nurls = ["{site.url("/")}"]\n')
    asked, left = (next(archive.reports.glob(f"*-{name}")).name for name in ("asks", "leaves"))
    reported = crawls.run_command("report", "--archive", archive.root, "--url", site.url("/a"))
    assert reported.out.startswith(f"{site.url('/a')} is not archived by the crawl {asked}\n")
    assert f"the newer crawl {left} did not ask for it: excluded: " in reported.out
    as_json = json.loads(crawls.run_command("report", "--archive", archive.root, "--json", "--url", site.url("/a")).out)
    assert as_json["job"] == asked and [newer["job"] for newer in as_json["newer"]] == [left]
    desks.with_people(archive)
    with desks.served(archive) as served:
        page = served.client("anna").get(f"/missing?{urlencode({'url': site.url('/a')})}")
    assert "What the crawl did that last asked for it" in page.words
    (lead,) = page.page.xpath("//p[@class='lead']")
    (notice,) = page.page.xpath("//p[@class='notice']")
    names = [
        (text.xpath("./a[starts-with(@href, '/publications/')]/@href"), text.text_content()) for text in (lead, notice)
    ]
    assert [href for (href,), _ in names] == ["/publications/asks", "/publications/leaves"]
    assert "no. 1" in names[0][1] and "no. 2" in names[1][1], "crawls of one second are told apart"
    assert explanation_of("status 503") in page.words and explanation_of("excluded") in notice.text_content()
    (save,) = page.page.xpath("//a[text()='Save this page']/@href")
    assert save == f"/save?{urlencode({'url': site.url('/a')}, safe='/')}"


def run_patch(bad: Bad) -> None:
    """What an agent does with the patch that waits."""
    (folder,) = bad.archive.jobs.iterdir()
    asked = job_folder.load(folder)
    assert asked is not None
    crawljob.run(bad.archive, asked.publication, asked.profile, folder=folder)


def test_a_missing_page_comes_into_the_crawl_by_a_button(bad: Bad) -> None:
    """That page alone, as a part of that crawl: one that was gone, one that is too deep, one that nobody links to."""
    before, place = bad.record, f"/snapshot/{bad.record.id}/patch"
    bad.site.add_html("/deep/deeper", "<a href='/never'>x</a>")
    for number, path in enumerate(("/deep/deeper", UNLINKED), 2):
        page = bad.missing(path)
        assert "What comes becomes a part of this crawl, and of nothing else." in page.words, path
        done = bad.anna.submit(page, place)
        assert f"{bad.site.url(path)} will be asked for again, for the crawl" in done.words, "page and crawl are named"
        assert done.path.startswith("/missing?") and "is being asked for again" in done.words
        (again,) = done.page.xpath("//a[text()='Show how it is now']/@href")
        (card,) = bad.anna.get("/running").page.xpath("//section[@class='job']")
        (crawl,) = card.xpath(".//p[contains(., 'For the crawl:')]/a/@href")
        (asked,) = card.xpath(".//li/a[@class='url']")
        assert (crawl, asked.text) == (f"/snapshot/{before.id}", bad.site.url(path))
        assert "The crawl does not have it." in bad.anna.get(asked.get("href")).words or path == UNLINKED
        bad.site.clear_log()
        run_patch(bad)
        assert [request.path for request in bad.site.requests if request.path != "/robots.txt"] == [path]
        assert (bad.record.id, len(bad.record.parts)) == (before.id, number)
        assert "The crawl has it." in bad.missing(path).words and "The crawl has it." in bad.anna.get(again).words
        assert bad.anna.get(f"/snapshot/{bad.record.id}").words.count("1 of 1 URLs came") == number - 1
    refused = bad.missing("/left-out/page")
    done = bad.anna.submit(refused, place)
    assert f"Not asked for again: {explanation_of('excluded')}" in done.words and not list(bad.archive.jobs.iterdir())


def test_the_urls_of_a_count_are_asked_for_again_by_a_button(bad: Bad) -> None:
    """Exactly these, and those that its settings leave out are named."""
    place = f"/snapshot/{bad.record.id}/patch"
    query = urlencode({"word": "status 403", "kept": "no"})
    page = bad.anna.get(f"/report/{bad.record.id}/urls?{query}")
    bad.site.add_html("/forbidden", "open now")
    done = bad.anna.submit(page, place)
    assert done.path.startswith("/missing?") and f"{bad.site.url('/forbidden')} will be asked for again" in done.words
    bad.site.clear_log()
    run_patch(bad)
    assert [request.path for request in bad.site.requests if request.path != "/robots.txt"] == ["/forbidden"]
    assert "No URL is so." in bad.anna.get(f"/report/{bad.record.id}/urls?{query}").words
    excluded = bad.anna.get(f"/report/{bad.record.id}/urls?word=excluded&kept=no")
    assert "Not asked for again:" in bad.anna.submit(excluded, place).words
    several = {"selection": "", "page": [bad.site.url("/gone"), bad.site.url("/missing")]}
    done = bad.anna.submit(bad.anna.get(f"/report/{bad.record.id}/urls?word=excluded&kept=no"), place, several)
    assert done.status == 200, done.words
    assert done.path == "/running" and re.search(
        r"for the crawl 127\S+, .* CET, no\. 1 \(bad\): 2\. They wait", done.words
    )
    assert len(done.page.xpath("//section[@class='job']/ul/li/a[starts-with(@href, '/missing?')]")) == 2
    (folder,) = bad.archive.jobs.iterdir()
    shutil.rmtree(folder)


def test_what_is_not_asked_for_again_is_counted_to_the_last_address(bad: Bad) -> None:
    place = f"/snapshot/{bad.record.id}/patch"
    page = bad.anna.get(f"/report/{bad.record.id}/urls?word=excluded&kept=no")
    query = "&".join(f"{number}=" for number in range(40))
    paths = ("/left-out/1", "/left-out/2", "/new.iso", "/x/y/" * 14, "/a" * 14, f"/?{query}")
    urls = [*map(bad.site.url, paths), "http://elsewhere.example/", bad.site.url("/")]
    done = bad.anna.submit(page, place, {"selection": "", "page": urls})
    (said,) = done.page.xpath("//div[@class='said']")
    text = " ".join(said.text_content().split())
    assert text.startswith(f"Not asked for again: {explanation_of('excluded')} (2)"), text
    assert re.search(r" and \d more$", text), text
    counts = re.findall(r"(?:\(|and )(\d)(?:\)| more$)", text)
    assert sum(map(int, counts)) == len(urls), text


def test_what_cannot_be_asked_for_again_is_said_in_the_language_of_the_page(bad: Bad) -> None:
    german = bad.served.client("anna")
    german.headers["Accept-Language"] = "de"
    page = german.get(f"/report/{bad.record.id}/urls?word=excluded&kept=no")
    refused = german.submit(page, f"/snapshot/{bad.record.id}/patch", {"selection": "kept=yes"})
    (fault,) = refused.page.xpath("//div[@role='alert']")
    assert refused.status == 400 and not fault.xpath(".//*[@lang='en']")
    assert fault.text_content().split() == language.translate("None of these can be asked for again.", "de").split()


@pytest.mark.parametrize("who", ["rita", "adam"])
def test_who_may_not_capture_is_told_so(bad: Bad, who: str) -> None:
    page = bad.missing("/missing", bad.served.client(who))
    assert "Your role may not have crawls fetch anything." in page.words and "/patch" not in page.text


def test_a_crawl_that_takes_no_patch_says_why(bad: Bad) -> None:
    """And what to do: a released one is to be withdrawn, a rejected one reopened."""
    record = bad.record
    records.decide(bad.archive, record.id, Decision.REJECT, _ANNA, "a test")
    page = bad.missing("/missing")
    assert "This crawl takes no further pages now. It is rejected." in page.words and "/patch" not in page.text
    records.decide(bad.archive, record.id, Decision.REOPEN, _ANNA, "a test")
    assert "/patch" in bad.missing("/missing").text


def test_each_refusal_of_a_patch_is_said_in_both_languages() -> None:
    assert snapshots.PATCH_REFUSALS.keys() == set(PatchRefusal)
    for text in snapshots.PATCH_REFUSALS.values():
        assert language.translate(text, "de") != text


def test_a_preview_says_why_a_page_is_not_there(bad: Bad) -> None:
    first = bad.anna.get(f"/snapshot/{quote(bad.record.id)}/preview")
    note = bad.anna.get(f"{first.path.rpartition('http://')[0]}{bad.site.url('/missing')}")
    assert explanation_of("status 404") in note.words and "/patch" in note.text
    (more,) = note.page.xpath("//a[starts-with(@href, '/missing?') and contains(., 'other crawls')]/@href")
    assert "The crawl does not have it." in bad.anna.get(more).words


def test_a_trial_names_the_urls_that_would_not_be_fetched(bad: Bad) -> None:
    """Those behind each count, the first hundred of a word; the command names them as well."""
    done = crawls.run_command("publication", "try", "bad", "--archive", bad.archive.root, "--json")
    trial = json.loads(done.out)
    assert trial["refused"].keys() == trial["refused_urls"].keys() >= {"excluded", "extension", "host", "robots"}
    for word, urls in trial["refused_urls"].items():
        assert len(urls) == trial["refused"][word]
    assert trial["refused_urls"]["extension"] == [bad.site.url("/image.iso")]
    text = crawls.run_command("publication", "try", "bad", "--archive", bad.archive.root).out
    assert f"would not be, extension: {Reason.EXTENSION.sentence}\n  {bad.site.url('/image.iso')}\n" in text
    carl = bad.served.client("carl")
    place = carl.submit(carl.get("/publications/bad"), "/publications/bad", to="/publications/bad/try").path
    page = until(lambda: None if "It is being tried" in (tried := carl.get(place)).words else tried, "it was tried")
    entries = page.page.xpath("//section[contains(@class, 'trial')]/details")
    words = [" ".join(entry.text_content().split()) for entry in entries]
    assert f"Not fetched: 1. {explanation_of('extension')} {bad.site.url('/image.iso')}" in words


def test_a_trial_names_a_hundred_of_a_word_and_counts_all() -> None:
    trial = Trial()
    for at in range(NAMED_REFUSED + 50):
        trial.refuse(f"http://e.org/{at}", "robots")
    assert trial.refused == {"robots": NAMED_REFUSED + 50} and len(trial.refused_urls["robots"]) == NAMED_REFUSED
