"""Redirects: kept in git by line, removed and held as pages are, the same after an import, `recover` and `restore`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from agent.jobs.publishing import JobOutcome
from agent.maintenance import backups
from agent.maintenance.verification import verify
from tests.support import forked, warcs
from tests.support.archives import rows_of
from tests.support.crawls import arcs, count_stored, crawl, log_lines, read, store, through, tree
from tests.support.imports import imported
from tests.support.nasty import two_locations
from tests.support.readercommand import COMMAND
from tests.support.site import Site, redirect
from tests.support.wire import error_page
from webarcfs.archive.config.directory import Archive, open_archive
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.url_lists import REDIRECTS, Redirect

pytestmark = pytest.mark.crawl

HOST = "www.example.org"


def lines(archive: Archive, domain: str, commit: str | None = None) -> dict[str, tuple[int, str]]:
    """URL → status and target of the redirects in a state."""
    found = redirect_lists.every(store(archive, domain), tree(archive, domain, commit))
    return {each.url: (each.status, each.target) for each in found}


def times(archive: Archive, domain: str) -> dict[str, str]:
    """URL → the time of its line."""
    found = redirect_lists.every(store(archive, domain), tree(archive, domain))
    return {each.url: str(each).rpartition("\t")[2] for each in found}


def counts(outcome: JobOutcome) -> dict[str, int]:
    """The counts of redirects that are not 0."""
    found = outcome.summary["redirects"]
    assert isinstance(found, dict)
    return {what: number for what, number in found.items() if number}


def tag_of(outcome: JobOutcome) -> CommitTag:
    return CommitTag.parse(outcome.tags[-1])


def is_sound(archive: Archive) -> bool:
    """`verify` finds nothing; what webarc.db has is what `recover` makes."""
    assert list(verify(archive)) == []
    with Database(archive.database) as database:
        before = list(database.dump_redirects()), rows_of(archive)
    recover(archive)
    with Database(archive.database) as database:
        assert (list(database.dump_redirects()), rows_of(archive)) == before
    return True


def link(*paths: str) -> str:
    return "".join(f'<a href="{path}">x</a>' for path in paths)


@pytest.fixture
def led(site: Site) -> Iterator[Site]:
    """A home page that links to /old, which redirects to the page /new, and to /page."""
    site.add_html("/", link("/old", "/page"))
    site.add_nasty("/old", redirect("/new#part", 301))
    site.add_html("/new", "new")
    site.add_html("/page", "page")
    yield site


def test_a_redirect_is_kept_and_an_unchanged_crawl_writes_nothing(archive: Archive, led: Site) -> None:
    first = crawl(archive, led.url())
    assert lines(archive, led.host) == {led.url("/old"): (301, led.url("/new") + "#part")}
    assert counts(first) == {"added": 1}
    before, when, stored = tree(archive, led.host), times(archive, led.host), count_stored(archive, led.host)
    again = crawl(archive, led.url())
    assert counts(again) == {"unchanged": 1}
    assert (tree(archive, led.host), times(archive, led.host)) == (before, when)
    assert count_stored(archive, led.host) == stored + 2  # the commit, and when it met them
    with Database(archive.database) as database:
        assert len({row["stored"] for row in database.dump_redirects()}) == 1
    assert is_sound(archive)


def test_a_page_becomes_a_redirect_and_a_page_again(archive: Archive, led: Site) -> None:
    first = tag_of(crawl(archive, led.url()))
    led.add_nasty("/page", redirect("/new"))
    led.add_html("/old", "a page now")
    second_crawl = crawl(archive, led.url())
    second = tag_of(second_crawl)
    assert counts(second_crawl) == {"added": 1, "removed": 1}
    assert lines(archive, led.host) == {led.url("/page"): (302, led.url("/new"))}
    assert arcs(archive, led.host) == {"index.html", "new", "old"}
    led.add_html("/page", "page")
    led.add_nasty("/old", redirect("/new#part", 301))
    third = tag_of(crawl(archive, led.url()))
    assert lines(archive, led.host) == {led.url("/old"): (301, led.url("/new") + "#part")}
    assert arcs(archive, led.host) == {"index.html", "new", "page"}
    shown = webarc("log", led.url("/page"), "--json", "--archive", archive.root)
    assert [(each["tag"], each["what"], each.get("target", "")) for each in map(json.loads, shown.splitlines())] == [
        (str(third), "added", ""),
        (str(third), "redirect-ended", ""),
        (str(second), "removed", ""),
        (str(second), "redirected", led.url("/new")),
        (str(first), "added", ""),
    ]
    difference = webarc("diff", first, second, "--archive", archive.root).splitlines()
    assert difference == [
        f"+ /{led.host}/old",
        f"- /{led.host}/page  (302) -> {led.url('/new')}",
        f"- {led.url('/old')}  (301) -> {led.url('/new')}#part",
    ]
    shown = webarc("diff", first, second, "--json", "--archive", archive.root)
    assert [each["what"] for each in map(json.loads, shown.splitlines())] == ["added", "redirected", "redirect-ended"]
    with Database(archive.database) as database:
        pages = [row["commitTag"] for row in database.dump() if row["path"] == f"/{led.host}/page"]
        redirected = [row["commitTag"] for row in database.dump_redirects() if row["url"] == led.url("/page")]
    assert (pages, redirected) == ([str(first), str(third)], [str(second)])
    assert is_sound(archive)


def webarc(*arguments: object) -> str:
    """The output of a reader's command."""
    return forked.run([*COMMAND, *arguments], check=True).stdout


def test_an_incomplete_crawl_holds_the_redirect_back_and_takes_a_body_at_once(archive: Archive, led: Site) -> None:
    crawl(archive, led.url())
    led.add_nasty("/page", redirect("/new"))
    led.add_html("/old", "a page now")
    led.add_html("/huge", "x" * 50_000)
    led.add_html("/", link("/old", "/page", "/huge"))
    partly = crawl(archive, led.url(), max_total_size=20_000)
    assert not partly.complete
    assert counts(partly) == {"held": 1, "removed": 1}
    assert log_lines(archive, partly)[led.url("/page")].notes == ("redirect-held",)
    assert lines(archive, led.host) == {}
    assert arcs(archive, led.host) == {"index.html", "new", "old", "page"}
    whole = crawl(archive, led.url())
    assert counts(whole) == {"added": 1}
    assert lines(archive, led.host) == {led.url("/page"): (302, led.url("/new"))}
    assert "page" not in arcs(archive, led.host)
    assert is_sound(archive)


def test_what_is_gone_is_removed_by_a_complete_crawl_alone(archive: Archive, led: Site) -> None:
    """Not linked, or 404; a server that fails keeps its redirect."""
    led.add_html("/", link("/old", "/other", "/broken", "/page"))
    led.add_nasty("/other", redirect("/page"))
    led.add_nasty("/broken", redirect("/page"))
    crawl(archive, led.url())
    led.add_html("/", link("/other", "/broken", "/page", "/huge"))
    led.gone("/other")
    led.add_nasty("/broken", error_page(403))
    led.add_html("/huge", "x" * 50_000)
    partly = crawl(archive, led.url(), max_total_size=20_000)
    assert not partly.complete
    assert set(lines(archive, led.host)) == {led.url(path) for path in ("/old", "/other", "/broken")}
    whole = crawl(archive, led.url())
    assert counts(whole) == {"removed": 2, "unchanged": 1}
    assert set(lines(archive, led.host)) == {led.url("/broken")}
    assert is_sound(archive)


def test_a_publication_removes_only_what_no_other_has(archive: Archive, led: Site) -> None:
    one = tag_of(crawl(archive, led.url(), name="one"))
    crawl(archive, led.url("/new"), name="two", depth=0)
    crawl(archive, led.url("/old"), name="two", depth=0)
    seen = store(archive, led.host).refs("refs/publications/")
    assert redirect_lists.of_url(store(archive, led.host), seen["two"], led.url("/old")) is not None
    led.add_html("/", link("/page"))
    led.add_html("/3", "3")
    assert counts(crawl(archive, led.url(), name="one", min_share=0)) == {"unchanged": 1}
    assert set(lines(archive, led.host)) == {led.url("/old")}
    crawl(archive, led.url("/new"), name="two", depth=0)
    assert lines(archive, led.host) == {}
    assert set(lines(archive, led.host, str(store(archive, led.host).ref(one.ref)))) == {led.url("/old")}
    assert is_sound(archive)


def test_what_a_publication_saw_has_its_redirects_alone(archive: Archive, led: Site) -> None:
    led.add_nasty("/other", redirect("/page"))
    crawl(archive, led.url("/other"), name="other", depth=0)
    crawl(archive, led.url(), name="home")
    crawl(archive, led.url("/other"), name="other", depth=0)
    repository = store(archive, led.host)
    saw = {
        name: {each.url for each in redirect_lists.every(repository, oid)}
        for name, oid in repository.refs("refs/publications/").items()
    }
    assert saw == {"home": {led.url("/old")}, "other": {led.url("/other")}}
    before = count_stored(archive, led.host)
    time.sleep(1.1)  # a time in seconds that no list has yet
    crawl(archive, led.url("/other"), name="other", depth=0)
    assert count_stored(archive, led.host) == before + 2  # the commit, and when it met them
    assert is_sound(archive)


def test_a_small_crawl_reads_no_lists_of_a_large_one(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_html("/", link(*(f"/{number}" for number in range(100)), "/mine"))
    for path in (*(f"/{number}" for number in range(100)), "/mine"):
        site.add_nasty(path, redirect("/page"))
    site.add_html("/page", "page")
    crawl(archive, site.url(), name="large")
    crawl(archive, site.url("/mine"), name="small", depth=0)
    read, reads = redirect_lists.read_list, []

    def counted(raw: bytes, place: str = "") -> list[Redirect]:
        reads.append(place)
        return read(raw, place)

    monkeypatch.setattr(redirect_lists, "read_list", counted)
    site.add_nasty("/mine", redirect("/other"))
    done = crawl(archive, site.url("/mine"), name="small", depth=0)
    assert counts(done) == {"changed": 1}
    assert len(reads) < 10
    assert len(lines(archive, site.host)) == 101
    assert is_sound(archive)


def test_the_maintenance_day_removes_nothing(archive: Archive, site: Site) -> None:
    pages = [f"/{number}" for number in range(20)]
    site.add_html("/", link(*pages, "/old"))
    for page in pages:
        site.add_html(page, page)
    site.add_nasty("/old", redirect("/1"))
    crawl(archive, site.url(), name="it")
    before = arcs(archive, site.host)
    for page in ("/", *pages):
        site.add_nasty(page, redirect("/maintenance"))
    site.add_html("/maintenance", "back soon")
    closed = crawl(archive, site.url(), *(site.url(page) for page in pages), name="it")
    assert not closed.complete
    assert arcs(archive, site.host) == before | {"maintenance"}
    assert set(lines(archive, site.host)) == {site.url("/old")}
    assert counts(closed)["held"] == 21
    assert is_sound(archive)


def test_redirects_that_are_strange(archive: Archive, site: Site) -> None:
    """Circles, to itself with other letters, to no URL, of a megabyte, with two Locations, relative, a chain of 30."""
    answers: dict[str, tuple[str, str | None]] = {
        "/circle": ("/circle2", "/circle2"),
        "/circle2": ("/circle", "/circle"),
        "/self": ("/self", "/self"),
        "/Case": ("/case", "/case"),
        "/case": ("/Case", "/Case"),
        "/slash": ("/slash/", "/slash/"),
        "/slash/": ("/slash", "/slash"),
        "/script": ("javascript:alert(1)", None),
        "/large": ("/" + "x" * 10_000, None),
        "/huge": ("/" + "x" * (1 << 20), None),
        "/empty": ("", None),
        "/relative/here": ("../page?a=1#b", "/page?a=1#b"),
        **{f"/chain/{number}": (f"/chain/{number + 1}", f"/chain/{number + 1}") for number in range(30)},
    }
    site.add_html("/", link(*(path for path in answers if not path.startswith("/chain/")), "/chain/0", "/two"))
    for path, (location, _) in answers.items():
        site.add_nasty(path, redirect(location))
    site.add_nasty("/two", two_locations("/page?a=1", "/page?a=2"))
    answers["/two"] = ("", "/page?a=1")
    site.add_html("/page?a=1", "page")
    site.add_html("/chain/30", "the end")
    done = crawl(archive, site.url())
    assert done.complete
    found = lines(archive, site.host)
    asked = {request.path for request in site.requests}
    assert found == {
        site.url(path): (302, site.url(target)) for path, (_, target) in answers.items() if target and path in asked
    }
    assert site.url("/chain/20") in found and site.url("/chain/29") not in found
    log = log_lines(archive, done)
    assert log[site.url("/script")].notes == ("bad-location",)
    assert log[site.url("/large")].notes == ("redirect-too-long",)
    assert log[site.url("/huge")].notes[0] == "bad-head"
    assert is_sound(archive)


def test_more_redirects_than_the_setting_allows_are_counted(
    archive: Archive, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.add_html("/", link(*(f"/{number}" for number in range(10))))
    for number in range(10):
        site.add_nasty(f"/{number}", redirect("/page"))
    site.add_html("/page", "page")
    done = crawl(archive, site.url(), max_redirects=4)
    assert (len(lines(archive, site.host)), counts(done)) == (4, {"added": 4, "dropped": 6})
    assert "6 redirects more than `max_redirects`" in caplog.text and not done.warnings
    again = crawl(archive, site.url(), max_redirects=4)
    assert counts(again)["dropped"] == 6
    assert len(lines(archive, site.host)) == 4
    assert is_sound(archive)


def test_a_link_is_broken_only_where_its_redirects_end_in_nothing(archive: Archive, site: Site) -> None:
    archive.settings.write_text("[index]\nlinks = true\n", "utf-8")
    site.add_html("/", link("/good", "/bad", "/circle", "/self", "/away", "/chain/0", "/page", "/none"))
    answers = {
        "/good": "/page#x",
        "/bad": "/none",
        "/circle": "/circle",
        "/self": "/self#y",
        "/away": "http://other.example/",
    }
    for path, target in (answers | {f"/chain/{step}": f"/chain/{step + 1}" for step in range(19)}).items():
        site.add_nasty(path, redirect(target))
    site.add_html("/chain/19", "the end")
    site.add_html("/page", "page")
    first = tag_of(crawl(archive, site.url()))
    site.add_nasty("/bad", redirect("/page"))
    crawl(archive, site.url())

    def broken(*options: object) -> list[str]:
        shown = webarc("links", "--broken", "--format", "json", *options, "--archive", archive.root)
        return sorted(each["target"] for each in json.loads(shown))

    assert broken() == [site.url(path) for path in ("/circle", "/none", "/self")]
    assert broken("--at", first) == [site.url(path) for path in ("/bad", "/circle", "/none", "/self")]


def test_a_host_that_only_redirects_has_a_repository(archive: Archive, site: Site) -> None:
    site.add_nasty("/", redirect("http://b.example/"), host="a.example")
    site.add_html("/", "here", host="b.example")
    done = crawl(archive, "http://a.example/", wget_args=through(site.proxy), private_addresses=True)
    assert lines(archive, "a.example") == {"http://a.example/": (302, "http://b.example/")}
    assert [tag.partition("@")[2] for tag in done.tags] == ["a.example", "b.example"]
    assert arcs(archive, "a.example") == set()
    assert is_sound(archive)


def test_a_site_may_have_paths_that_look_like_ours(archive: Archive, led: Site) -> None:
    led.add_html("/", link("/%25redirects/2a/7f", "/.redirects", "/old"))
    led.add_html("/%25redirects/2a/7f", "a page")
    led.add_html("/.redirects", "a page")
    crawl(archive, led.url())
    assert arcs(archive, led.host) == {"index.html", "%25redirects/2a/7f", ".redirects", "new"}
    assert set(lines(archive, led.host)) == {led.url("/old")}
    assert is_sound(archive)


def test_an_error_page_of_an_incomplete_crawl_ends_no_redirect(archive: Archive, led: Site) -> None:
    crawl(archive, led.url(), keep_errors=True)
    led.gone("/old")
    led.add_html("/huge", "x" * 50_000)
    led.add_html("/", link("/old", "/page", "/huge"))
    partly = crawl(archive, led.url(), keep_errors=True, max_total_size=20_000)
    assert not partly.complete
    assert set(lines(archive, led.host)) == {led.url("/old")}
    assert "old" not in arcs(archive, led.host)
    whole = crawl(archive, led.url(), keep_errors=True)
    assert whole.complete
    assert lines(archive, led.host) == {}
    assert "old" in arcs(archive, led.host)
    assert is_sound(archive)


# -- imports -----------------------------------------------------------------------------------------------------------


def moved(url: str, target: str, date: str, status: str = "301 Moved") -> bytes:
    """A response record of a redirect."""
    return warcs.record("response", url, warcs.http(b"moved", status=status, Location=target), date)


def test_both_schemes_of_a_path(archive: Archive, tmp_path: Path) -> None:
    """http redirects to https: the line and the ARC stand beside each other, whatever URL the ARC was stored under."""
    plain, safe = f"http://{HOST}/a", f"https://{HOST}/a"
    imported(
        archive, warcs.write(tmp_path / "1.warc", [warcs.response(plain, b"body", "2020-01-01T00:00:00Z")]), name="x"
    )
    later = [moved(plain, safe, "2021-01-01T00:00:00Z"), warcs.response(safe, b"body", "2021-01-01T00:00:01Z")]
    imported(archive, warcs.write(tmp_path / "2.warc", later), name="x", complete=True)
    assert lines(archive, HOST) == {plain: (301, safe)}
    assert read(archive, HOST, "a") == b"body"
    imported(
        archive, warcs.write(tmp_path / "3.warc", [warcs.response(plain, b"new", "2022-01-01T00:00:00Z")]), name="x"
    )
    assert lines(archive, HOST) == {}
    with Database(archive.database) as database:
        found = {(row["url"], row["target"], row["stored"]) for row in database.dump_redirects()}
    assert [(url, target) for url, target, _ in found] == [(plain, safe)]
    assert is_sound(archive)


def test_an_older_import_puts_its_redirects_in_between(archive: Archive, tmp_path: Path) -> None:
    url = f"http://{HOST}/a"
    tags = {}
    for year, target in {"2020": "/one", "2024": "/three", "2022": "/two"}.items():
        records = [
            moved(url, target, f"{year}-01-01T00:00:00Z"),
            warcs.response(f"http://{HOST}/", b"x", f"{year}-01-01T00:00:00Z"),
        ]
        tags[year] = tag_of(imported(archive, warcs.write(tmp_path / f"{year}.warc", records), name="x"))
    repository = store(archive, HOST)
    for year, target in {"2020": "/one", "2024": "/three", "2022": "/two"}.items():
        found = redirect_lists.of_url(repository, repository.snapshot_tree(tags[year]), url)
        assert found is not None and found.target == f"http://{HOST}{target}"
    with Database(archive.database) as database:
        dumped = {row["commitTag"]: row["target"] for row in database.dump_redirects()}
    assert dumped == {
        str(tags[year]): f"http://{HOST}/{name}"
        for year, name in {"2020": "one", "2022": "two", "2024": "three"}.items()
    }
    assert is_sound(archive)


def test_of_several_captures_in_an_import_each_counts_until_the_next(archive: Archive, tmp_path: Path) -> None:
    page, login = f"http://{HOST}/page", f"http://{HOST}/login"
    records = [
        warcs.response(page, b"the page", "2020-01-01T00:00:00Z"),
        moved(page, login, "2020-01-01T00:00:05Z"),
        moved(login, "/one", "2020-01-01T00:00:00Z"),
        moved(login, page, "2020-01-01T00:00:07Z", "302 Found"),
    ]
    records.append(moved(f"{page}?{'x' * 3_000}", page, "2020-01-01T00:00:00Z"))  # too long to be kept
    imported(archive, warcs.write(tmp_path / "1.warc", records), name="x")
    assert lines(archive, HOST) == {page: (301, login), login: (302, page)}
    assert arcs(archive, HOST) == set()
    (first, _) = sorted(store(archive, HOST).refs("refs/crawls/").items())
    assert read(archive, HOST, "page", first[1]) == b"the page"
    assert times(archive, HOST) == {page: "2020-01-01T00:00:05Z", login: "2020-01-01T00:00:07Z"}
    assert is_sound(archive)


def test_a_damaged_list_is_found(archive: Archive, led: Site) -> None:
    crawl(archive, led.url())
    repository = store(archive, led.host)
    head = repository.head()
    assert head is not None
    (place, entry), *_ = redirect_lists.places(repository, repository.find(head.tree, REDIRECTS))
    bad = repository.write_blob(repository.read(entry.oid) + b"nonsense\n")
    with pytest.raises(Exception, match="no list"):
        redirect_lists.lines(repository, entry._replace(oid=bad), place)


def test_backup_and_restore_keep_them(archive: Archive, led: Site, tmp_path: Path) -> None:
    crawl(archive, led.url())
    led.add_nasty("/old", redirect("/page"))
    crawl(archive, led.url())
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = open_archive(tmp_path / "restored")
    assert lines(restored, led.host) == lines(archive, led.host) == {led.url("/old"): (302, led.url("/page"))}
    assert is_sound(restored)


def answer(archive: Archive, tag: CommitTag, url: str) -> Redirect | str | None:
    """What a snapshot answers for a URL: its redirect, else the path of its ARC."""
    repository = store(archive, tag.domain)
    state = repository.snapshot_tree(tag)
    found = redirect_lists.of_url(repository, state, url)
    arc = split(arc_path(url))[1]
    return found or (arc if repository.find(state, f"{arc}/data.xml") else None)
