"""`webarc-agent publication`: shown, tried, added, changed, retired; and what becomes of jobs meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from agent.cli import cli
from agent.crawl import crawl_log
from agent.operations import trying
from tests.support import crawls
from tests.support.agents import agent, configure, job_of, reports, status
from tests.support.crawls import run_command
from tests.support.nasty import slow
from tests.support.site import Site, page, redirect
from tests.support.waiting import until
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import UNLIMITED, Publication
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import versions
from webarcfs.archive.model.errors import NotFound, SettingsError, UsageError, WebarcError
from webarcfs.archive.model.metadata import MetaData, format_time, now

archive = crawls.archive
pytestmark = pytest.mark.crawl

_TEXT = """# Ours since 2026.
[[publication]]
name = "own"            # as the file
urls = [
    "http://e.org/",    # the start
]

interval = "1 week"     # often enough

# The mirror is not ours.
[[publication.exclude]]
match  =  "e.org/mirror/*"
reason = 'appraised'
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def own(archive: Archive) -> Path:
    """A publication in a file of its own, with comments."""
    path = archive.root / "publications.d" / "own.toml"
    path.parent.mkdir()
    path.write_text(_TEXT)
    return path


def run(archive: Archive, *words: str, capsys: pytest.CaptureFixture[str] | None = None) -> str:
    """The command, in this process; what it said."""
    try:
        cli(["publication", words[0], "--archive", str(archive.root), *words[1:]], standalone_mode=False)
    except SystemExit as error:
        assert error.code == 3
    return capsys.readouterr().out if capsys is not None else ""


def loaded(archive: Archive, name: str) -> Publication:
    settings, _ = settings_files.load(archive.settings)
    return next(each for each in settings.publications if each.name == name)


def refused(archive: Archive, *words: str, kind: type[WebarcError] = UsageError) -> str:
    before = {path: path.read_bytes() for path in (archive.root / "publications.d").glob("*")}
    with pytest.raises(kind) as caught:
        run(archive, *words)
    assert {path: path.read_bytes() for path in (archive.root / "publications.d").glob("*")} == before
    return str(caught.value)


# -- files -------------------------------------------------------------------------------------------------------------


def test_edit_keeps_comments_and_order_byte_for_byte(archive: Archive, own: Path) -> None:
    run(archive, "edit", "own", "--set", "interval=2 weeks", "--set", 'paths=["/press/*"]', "--set", "depth=unlimited")
    text = own.read_text()
    changed = _TEXT.replace('interval = "1 week" ', 'interval = "2 weeks" ')
    assert set(text.splitlines()) - set(changed.splitlines()) == {'paths = ["/press/*"]', 'depth = "unlimited"'}
    assert "".join(line for line in text.splitlines(True) if not line.startswith(("paths", "depth"))) == changed
    found = loaded(archive, "own")
    assert (found.crawl.depth, found.crawl.paths, str(found.crawl.interval)) == (UNLIMITED, ("/press/*",), "2 weeks")
    assert [each.reason for each in found.exclude] == ["appraised"]
    run(archive, "edit", "own", "--unset", "paths", "--unset", "depth", "--set", "interval=1 week")
    assert own.read_text() == _TEXT
    assert [path.name for path in own.parent.iterdir()] == ["own.toml"]


def test_what_has_a_fault_changes_nothing(archive: Archive, own: Path) -> None:
    for words, why in (
        (("--set", "depth=deep"), "depth: 'deep'"),
        (("--set", "nonsense=1"), "there is no such setting"),
        (("--set", "name=other"), "called other, not own as the file"),
        (("--set", "profile=none"), "there is no [profile.none]"),
        (("--unset", "urls"), "urls: is missing"),
        (("--set", "exclude=[{match='http://x'}]"), "no host or part of one"),
    ):
        assert why in refused(archive, "edit", "own", *words, kind=SettingsError)
    assert "is not KEY=VALUE" in refused(archive, "edit", "own", "--set", "depth")
    assert "does not say wait" in refused(archive, "edit", "own", "--unset", "wait")
    assert "urls is no table" in refused(archive, "edit", "own", "--set", "urls.x=1")
    assert "urls is no table" in refused(archive, "edit", "own", "--unset", "urls.x")
    assert "urls is no table" in refused(archive, "add", "more", "http://e.org/", "--set", "urls.x=1")
    assert "there are: own" in refused(archive, "edit", "other", "--set", "depth=1", kind=NotFound)
    (own.parent / "faulty.toml").write_text("nonsense")
    assert "depth: 'deep'" in (told := refused(archive, "edit", "own", "--set", "depth=deep", kind=SettingsError))
    assert "faulty" not in told, "what others have is none of it"
    own.write_text("[[publication")
    assert "not TOML" in refused(archive, "edit", "own", "--set", "depth=1", kind=SettingsError)


def test_one_of_webarc_toml_is_changed_by_hand(archive: Archive, own: Path) -> None:
    archive.settings.write_text('[[publication]]\nname = "hand"\nurls = ["http://h.org/"]\n')
    assert "by hand" in refused(archive, "edit", "hand", "--set", "depth=1")
    assert "by hand" in refused(archive, "retire", "hand")
    assert "there is a publication hand already" in refused(archive, "add", "hand", "http://e.org/")
    assert "there is a publication own already" in refused(archive, "add", "own", "http://e.org/")
    assert own.exists()


def test_add_and_retire(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    run(archive, "add", "new", "www.e.org", "--set", "interval=1 month", "--set", "description=It is: new")
    found = loaded(archive, "new")
    assert (found.urls, found.description, found.crawl.interval.unit) == (
        ("http://www.e.org/",), "It is: new", "month",
    )  # fmt: skip
    assert "is no name" in refused(archive, "add", "a b", "http://e.org/", kind=SettingsError)
    run(archive, "retire", "new", "--reason", "it has moved")
    since = (held := loaded(archive, "new")).retired_since
    assert held.retired and since is not None and abs(now() - since) < timedelta(hours=1)
    capsys.readouterr()
    text = f"new (publications.d/new.toml), retired since {format_time(since)} (it has moved): It is: new"
    assert text in run(archive, "list", capsys=capsys)
    assert "  new: retired" in run_command("status", "--archive", archive.root).out
    assert "is retired" in run_command("crawl", "--archive", archive.root, "--publication", "new").err
    run(archive, "edit", "new", "--unset", "retired")
    back = loaded(archive, "new")
    assert (back.retired, back.retired_since, back.retired_reason) == (False, None, "")
    capsys.readouterr()
    assert json.loads(run(archive, "list", "--json", capsys=capsys))[0]["next"]


@pytest.mark.usefixtures("own")
def test_one_that_differs_from_another_of_its_host_says_so(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    (url,) = loaded(archive, "own").named_urls
    for words in (("add", "other", url, "--set", "release=by-hand"), ("edit", "own", "--every", "weekly")):
        told = run(archive, *words, capsys=capsys)
        assert "other (by-hand) and own (automatic) differ in release or closed_for; readers see" in told
    run(archive, "retire", "other")
    assert "differ in" not in run(archive, "edit", "own", "--every", "monthly", capsys=capsys)


def test_an_excluded_part_says_what_the_newest_crawl_knew_of_it(
    archive: Archive, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = archive.reports / "20261001T030000-own"
    report.mkdir()
    tail = "L - text/html #000 20261001030000000+5 sha1:A - -"
    names = ("a", "mirror/a", "mirror/b")
    crawl_log.write(report, [f"2026-10-01T03:00:00.000Z 200 1 http://e.org/{name} {tail}" for name in names])
    parts = "exclude=[{match='e.org/mirror/*'}, {match='e.org/mirrors/*', reason='x'}]"
    told = run(archive, "edit", "own", "--set", parts, capsys=capsys)
    assert f"e.org/mirror/* matches 2 of 3 URLs that {report.name} knew; it has no reason" in told
    assert f"e.org/mirrors/* matches 0 of 3 URLs that {report.name} knew\n" in told
    assert "e.org/mirrors/*" in own.read_text()
    assert "matches" not in run(archive, "edit", "own", "--every", "weekly", capsys=capsys)


def test_one_that_is_added_says_when_it_begins(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an agent its first crawl is due at once, so that `start --once` has something to do."""
    before = now().replace(second=0, microsecond=0)
    said = run(archive, "add", "new", "www.e.org", "--every", "monthly", capsys=capsys)
    assert "its first crawl begins as soon as an agent runs" in said and "crawls it every month" in said
    found = loaded(archive, "new")
    assert found.start is not None and before <= found.start <= now(), "months are counted from it"
    assert str(found.crawl.interval) == "1 month"
    said = run(archive, "add", "later", "www.e.org", "--start", "2040-01-31", "--set", "depth=2", capsys=capsys)
    assert "its first crawl begins at 2040-01-31T00:00:00 CET, up to 2 links from its start URLs" in said
    said = run(archive, "edit", "later", "--every", "2 weeks", capsys=capsys)
    assert "its first crawl begins at 2040-01-31T00:00:00 CET" in said
    assert "later (publications.d/later.toml), every 2 weeks, next 2040" in run(archive, "list", capsys=capsys)
    run(archive, "edit", "later", "--every", "weekly")
    assert str(loaded(archive, "later").crawl.interval) == "1 week"
    capsys.readouterr()
    assert "later (publications.d/later.toml), every week, next 2040" in run(archive, "list", capsys=capsys)
    assert "  later: every week, next 2040" in run_command("status", "--archive", archive.root).out
    assert "is no time; write now" in refused(archive, "add", "x", "www.e.org", "--start", "tomorrow")
    assert "is no interval; write for instance 'weekly'" in refused(
        archive, "add", "x", "www.e.org", "--every", "often"
    )


def test_a_running_agent_leaves_a_minute_before_the_first_crawl(archive: Archive, site: Site) -> None:
    site.add_html("/", "start")
    configure(archive)
    with agent(archive):
        before = now()
        said = run_command("publication", "add", "new", site.url(), "--set", "wait=0", "--archive", archive.root).out
        after, start = now(), loaded(archive, "new").start
        assert start is not None and before + timedelta(minutes=1) <= start <= after + timedelta(minutes=2)
        assert f"its first crawl begins at {format_time(start)} CET" in said
        words = ("publication", "add", "soon", site.url(), "--start", "now", "--set", "wait=0")
        assert "its first crawl begins now" in run_command(*words, "--archive", archive.root).out
        until(lambda: reports(archive, "soon"), "the one that begins now was crawled")
        assert reports(archive, "new") == [] or now() >= start


def test_edit_in_an_editor(archive: Archive, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program that stands for one: its text is checked like any other."""
    for text, kind in (("nonsense = 1\n" + _TEXT, SettingsError), (_TEXT.replace('"own" ', '"x" '), SettingsError)):
        monkeypatch.setattr(click, "edit", lambda *_, text=text, **__: text)
        refused(archive, "edit", "own", kind=kind)
    monkeypatch.setattr(click, "edit", lambda *_, **__: None)
    run(archive, "edit", "own")
    assert own.read_text() == _TEXT
    monkeypatch.setattr(click, "edit", lambda *_, **__: _TEXT + "# more\n")
    run(archive, "edit", "own")
    assert own.read_text() == _TEXT + "# more\n"


def test_show_tells_where_each_setting_is_said(archive: Archive, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive.settings.write_text(
        'release = "by-hand"\n[crawl]\nwait = 3\ninterval = "1 day"\n[describe]\nproject = "P"\n'
        '[profile.pages]\ninclude = ["text/html"]\ndescription = "Pages alone"\n'
    )
    own.write_text(_TEXT.replace("interval", 'profile = "pages"\ndepth = "unlimited"\ninterval'))
    told: dict[str, Any] = json.loads(run(archive, "show", "own", "--json", capsys=capsys))
    mine = "publications.d/own.toml"
    assert {key: (told[key]["value"], told[key]["source"]) for key in
            ("wait", "interval", "depth", "release", "timeout", "describe.project", "exclude")} == {
        "wait": (3.0, "webarc.toml, [crawl]"),
        "interval": ("1 week", mine),
        "depth": ("unlimited", mine),
        "release": ("by-hand", "webarc.toml, above all tables"),
        "timeout": (300.0, "default"),
        "describe.project": ("P", "webarc.toml, [describe]"),
        "exclude": ([{"match": "e.org/mirror/*", "reason": "appraised"}], mine),
    }  # fmt: skip
    text = run(archive, "show", "own", capsys=capsys)
    assert 'interval = "1 week"    # publications.d/own.toml' in text and "timeout" not in text
    assert "timeout = 300.0    # default" in run(archive, "show", "own", "--all", capsys=capsys)
    assert run(archive, "profiles", capsys=capsys) == "pages: Pages alone (text/html); used by own\n"


# -- try ---------------------------------------------------------------------------------------------------------------


def test_try_names_what_would_be_fetched_and_writes_no_archive(
    archive: Archive, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("/robots.txt", "User-agent: *\nDisallow: /in/7", "text/plain")
    site.add_nasty("/", redirect("/home"))
    links = "".join(f'<a href="/in/{number}">x</a>' for number in range(25))
    site.add_html("/home", f'{links}<a href="/private/x">x</a><a href="/out">x</a><a href="http://b.example/">b</a>'
                           '<a href="/in/a.zip">z</a><img src="/logo.png">')  # fmt: skip
    before = sorted(archive.root.rglob("*"))
    said = ("--set", 'paths=["/in/*"]', "--set", 'exclude_extensions=["zip"]', "--set", "wait=0")
    told = json.loads(run(archive, "add", "p", site.url(), *said, "--try", "--json", capsys=capsys))
    after = [path for path in sorted(archive.root.rglob("*")) if path.parent.name != "lock"]
    assert after == [path for path in before if path.parent.name != "lock"]
    assert (told["good"], told["number"], len(told["would"])) == (True, 25, 20)
    assert [[each["status"] for each in chain] for chain in told["starts"]] == [[302, 200]]
    assert [each["status"] for each in told["robots"]] == [200]
    assert told["refused"] == {"paths": 2, "host": 1, "extension": 1, "robots": 1}
    assert {request.path for request in site.requests} == {"/robots.txt", "/", "/home"}
    run(archive, "add", "p", site.url(), *said)
    text = run(archive, "try", "p", capsys=capsys)
    assert "25 URLs would be fetched next:" in text and "  and 5 more" in text and "302, Found" in text
    site.gone("/home")
    assert "404, Not Found" in run(archive, "try", "p", capsys=capsys)
    assert "there are: p" in refused(archive, "try", "q", kind=NotFound)


# -- old and new defaults ----------------------------------------------------------------------------------------------


def test_try_says_what_the_new_defaults_would_bring(
    archive: Archive, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """S-upgrade-1: of the start pages, the archived ones, and sitemaps; nothing of it is archived."""
    cdn = "http://cdn.test"
    site.add_html("/", f'<img src="{cdn}/a.png"><img src="/own.png"><a href="/deep">d</a>', host="www.test")
    site.add_html(
        "/deep",
        f'<link rel=stylesheet href="{cdn}/b.css"><img src="http://more.test/c"><a href="/s1">s</a>',
        host="www.test",
    )
    site.add_html("/s1", "s", host="www.test")
    site.add("/own.png", b"x" * 50, "image/png", host="www.test")
    site.add("/a.png", b"x" * 1000, "image/png", host="cdn.test")
    listed = "".join(f"<url><loc>http://www.test/{name}</loc></url>" for name in ("deep", "s1", "s2", "private/x"))
    site.add("/sitemap.xml", f"<urlset>{listed}</urlset>", "application/xml", host="www.test")
    how = {"wget_args": crawls.through(site.proxy), "page_resources": "hosts", "sitemaps": False}
    said = [f"--set={key}={json.dumps(value)}" for key, value in {**how, "wait": 0}.items()]
    run(archive, "add", "p", "http://www.test/", *said, "--set", 'paths=["/", "/deep", "/s?"]', capsys=capsys)
    crawls.crawl(archive, "http://www.test/", name="p", **how)
    before = {path: path.stat().st_mtime_ns for path in archive.content.rglob("*")}
    asked = len(site.requests)
    more = json.loads(run(archive, "try", "p", "--json", capsys=capsys))["more"]
    assert {path: path.stat().st_mtime_ns for path in archive.content.rglob("*")} == before
    assert more == {
        "hosts": {"cdn.test": 2, "more.test": 1}, "documents": 3, "bytes": 3000, "measured": 1, "pages": 3,
        "listed": 2, "new": 1, "is_all": True,
    }  # fmt: skip
    fetched = {(request.host, request.path) for request in site.requests[asked:]}
    assert ("cdn.test", "/a.png") in fetched and not {("www.test", "/deep"), ("www.test", "/s1")} & fetched
    text = run(archive, "try", "p", capsys=capsys)
    assert "2 further hosts, 3 documents, about 3,000 bytes" in text and "       2 cdn.test" in text
    assert "2 further pages of sitemaps, 1 of which are not archived" in text
    run(archive, "edit", "p", "--unset", "page_resources", capsys=capsys)
    asked = len(site.requests)
    more = json.loads(run(archive, "try", "p", "--json", capsys=capsys))["more"]
    assert (more["hosts"], more["listed"]) == ({}, 2)
    assert "cdn.test" not in {request.host for request in site.requests[asked:]}, "its resources are no news"
    for options in (("--set", "depth=0"), ("--unset", "depth", "--unset", "sitemaps")):
        run(archive, "edit", "p", *options, capsys=capsys)
        assert json.loads(run(archive, "try", "p", "--json", capsys=capsys))["more"] is None


def test_what_the_new_defaults_would_bring_is_read_within_bounds(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each archived document counts, and a stop holds between them; only what is cut off is said to be."""
    images = "".join(f'<img src="/{number}.png">' for number in range(6))
    for path, links in (("/", '<a href="/z">z</a>'), ("/z", '<img src="http://cdn.test/a.png">')):
        site.add_html(path, links + images, host="www.test")
    for number in range(6):
        site.add(f"/{number}.png", b"x" * number, "image/png", host="www.test")
    site.add("/a.png", b"x", "image/png", host="cdn.test")
    how = {"wget_args": crawls.through(site.proxy), "page_resources": "hosts", "sitemaps": False}
    crawls.crawl(archive, "http://www.test/", name="p", **how)
    stop, looked = threading.Event(), list[str]()

    def more(pages: int = 2, arcs: int = 9, seconds: float = 120.0, stop_after: int = 99) -> trying.MoreByDefaults:
        """`arcs` counts the host as well."""
        values = {"_MOST_PAGES": pages, "_MOST_ARCS": arcs, "_MOST_SECONDS": seconds}
        for name, value in values.items():
            monkeypatch.setattr(trying, name, value)
        looked.clear()
        stop.clear()

        def counted(store: Repository, arc: versions.ArcTree) -> MetaData:
            looked.append(arc.path)
            if len(looked) == stop_after:
                stop.set()
            return versions.described(store, arc)

        monkeypatch.setattr(trying, "described", counted)
        found = trying.attempt(archive, crawls.publish_as("http://www.test/", name="p", **how), None, 2, stop).more
        assert found is not None
        return found

    whole = more()
    assert (whole.is_all, whole.pages, len(looked), whole.hosts) == (True, 2, 8, {"cdn.test": 1})
    fewer = more(pages=1)
    assert (fewer.is_all, fewer.pages) == (False, 1)
    first = more(arcs=4)
    assert not first.is_all and len(looked) <= 4
    ended = more(stop_after=3)
    assert not ended.is_all and len(looked) == 3
    late = more(seconds=0)
    assert (late.is_all, late.pages, looked) == (False, 0, [])


#: What people write in place of [[publication]].
_NO_PUBLICATIONS = (
    '[publication]\nname = "x"\npage_resources = "hosts"',
    "publication = 5",
    'publication = "sitemaps"',
    'publication = [1, "sitemaps", ["sitemaps"]]',
)


def test_status_names_what_an_upgrade_kept_until_the_comment_goes(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    """S-upgrade-1: in one line, whatever file has it; not those whose people chose the same values."""
    run(archive, "add", "own", "http://a.test/", capsys=capsys)
    run(archive, "add", "chosen", "http://b.test/", "--set", "sitemaps=false", capsys=capsys)
    archive.settings.write_text('[[publication]]\nname = "old"\nurls = ["http://c.test/"]\n')
    names = settings_files.keep_old_defaults(
        archive, {name: set(settings_files.OLD_DEFAULTS) for name in ("own", "old")}
    )
    assert sorted(names) == ["old", "own"]
    done = run_command("status", "--archive", archive.root)
    assert done.code == 0 and done.out.count("crawled as before the upgrade: old, own\n") == 1
    told = json.loads(run_command("status", "--archive", archive.root, "--json").out)
    assert told["kept_at_old_defaults"] == ["old", "own"]
    archive.settings.write_text(archive.settings.read_text().replace("# as before the upgrade", ""))
    (archive.publications / "broken.toml").write_text("as before the upgrade = [\n")
    for number, text in enumerate(_NO_PUBLICATIONS):
        (archive.publications / f"odd{number}.toml").write_text(f"{text}  # as before the upgrade\n")
    assert settings_files.kept_at_old_defaults(archive) == ["own"]
    done = run_command("status", "--archive", archive.root)
    assert "odd0.toml" in done.out + done.err and "Traceback" not in done.err and "AttributeError" not in done.err


@pytest.mark.parametrize("text", _NO_PUBLICATIONS)
def test_what_is_no_list_of_publications_is_named(
    archive: Archive, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever stands in its place, in webarc.toml or in the publication's own file."""
    run(archive, "add", "own", "http://a.test/", capsys=capsys)
    own = archive.publications / "own.toml"
    good = own.read_text()
    own.write_text(text)
    changed = run_command("publication", "edit", "own", "--set", "depth=1", "--archive", archive.root)
    assert changed.code == 1 and "own.toml" in changed.err and "unexpected" not in changed.err
    own.write_text(good)
    archive.settings.write_text(text)
    shown = run_command("publication", "show", "x", "--archive", archive.root)
    assert shown.code == 1 and "publication" in shown.err and "unexpected" not in shown.err
    for name in ("x", "own"):
        assert settings_files.keep_old_defaults(archive, {name: set(settings_files.OLD_DEFAULTS)}) == ["own"] * (
            name == "own"
        )


# -- while jobs run ----------------------------------------------------------------------------------------------------


@pytest.fixture
def endless() -> Iterator[Site]:
    with Site() as site:
        site.add_html("/", "".join(f'<a href="/{number}">x</a>' for number in range(100)))
        for number in range(100):
            site.add_nasty(f"/{number}", slow(0.1, page("x")))
        yield site


def test_a_faulty_file_faults_its_publication_alone(archive: Archive, site: Site) -> None:
    """It goes on as it was; others come, change, and run."""
    site.add_html("/", "home")
    configure(archive)
    folder = archive.root / "publications.d"
    folder.mkdir()
    one = '[[publication]]\nname = "{}"\nurls = ["{}"]\ninterval = "{}"\n'
    (folder / "a.toml").write_text(one.format("a", site.url(), "2 seconds"))
    (folder / "b.toml").write_text("[[publication")
    with agent(archive) as running:
        until(lambda: reports(archive, "a"), "a runs")
        assert any("b.toml: not TOML" in each for each in status(archive)["settings_faults"])
        (folder / "a.toml").write_text(one.format("a", site.url(), "soon"))
        (folder / "c.toml").write_text(one.format("c", site.url(), "1 day"))
        until(lambda: reports(archive, "c"), "c runs")
        before = len(reports(archive, "a"))
        until(lambda: len(reports(archive, "a")) > before, "a goes on as it was")
        (folder / "b.toml").write_text(one.format("b", site.url(), "1 day"))
        until(lambda: reports(archive, "b"), "b is mended, and runs")
        assert running.stop() == 0
    done = run_command("crawl", "--archive", archive.root, "--publication", "c")
    assert done.code == 0 and "that publication is skipped" in done.err


@pytest.mark.parametrize("how", ["renamed", "retired", "deleted"])
def test_a_publication_that_changes_while_it_runs(archive: Archive, endless: Site, how: str) -> None:
    """Its job goes on to its end, also over a restart; then nothing more comes of it."""
    configure(archive)
    path = archive.root / "publications.d" / "p.toml"
    path.parent.mkdir()
    text = f'[[publication]]\nname = "p"\nurls = ["{endless.url()}"]\ninterval = "2 seconds"\nwait = 0.02\n'
    path.write_text(text)
    with agent(archive) as running:
        until(lambda: len(endless.requests) > 4, "it fetches")
        job = (job_of(archive, "p") or {})["job"]
        if how == "renamed":
            text = text.replace('"p"', '"q"').replace("2 seconds", "1 day")
            path.with_name("q.toml").write_text(text)
            path.unlink()
        elif how == "retired":
            done = run_command("publication", "retire", "--archive", archive.root, "p")
            assert f"its job {job} continues" in done.out
        else:
            path.unlink()
        known = {each["name"]: each for each in status(archive)["publications"]}
        assert (known.get("q") is not None) == (how == "renamed")
        running.kill()
    for number in range(100):
        endless.add_html(f"/{number}", "x")
    with agent(archive) as running:
        until(lambda: reports(archive, "p") == [job], "the job ends")
        if how == "renamed":
            until(lambda: reports(archive, "q"), "the new one runs")
        until(lambda: not list(archive.jobs.iterdir()), "nothing is left")
        assert running.stop() == 0
    assert reports(archive, "p") == [job]
    assert run_command("verify", "--archive", archive.root, "--quick").code == 0
