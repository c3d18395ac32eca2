"""The settings (/Cr-1/, /Cr-2.1/): defaults, what overrides what, and all faults at once."""

import codecs
import dataclasses
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.config import settings as config
from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.settings import CrawlSettings, Settings
from webarcfs.archive.config.settings_files import parse
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Exit, SettingsError, exit_code_of
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.system.cache import identity

pytestmark = pytest.mark.pure

FULL = """
[crawl]
depth = 3
interval = "2 weeks"
max_instances = 2
filters = ["mime", "adverts", "package.module:function"]
wait = 2
timeout = 60
unchanged = "replace"
wget_args = ["--no-check-certificate"]

[mount]
commit_interval = 0.5
strict_schema = true
query_seconds = 2.5

[index]
links = false

[describe]
signature = "5100"
project = "Sites"

[profile.html-with-images]
include = ["text/html", "image/*"]
exclude = ["image/bmp"]

[[publication]]
name = "fcul"
urls = ["HTTP://www.fc.ul.pt:80/index.html"]
start = 2026-12-01T22:00:00
interval = "1 month"
hosts = ["*.fc.ul.pt"]
exclude_hosts = ["ptmat.lmc.fc.ul.pt"]
profile = "html-with-images"
description = "The faculty"
note = "2026-11-01: without the old registers"
additions = "staff"
[publication.describe]
provenance = "Dean"
[[publication.server]]
host = "ptmat.lmc.fc.ul.pt"
depth = 3
max_documents = 500
wait = 5
[[publication.exclude]]
match = "www.fc.ul.pt/old/*"
reason = "appraised"
[[publication.rule]]
match = "www.fc.ul.pt/print*"
does = "notice"
text = "print"
from = 2005-01-01T00:00:00

[[publication]]
name = "other"
urls = ["http://e.org/"]
start = 2026-12-01T22:00:00Z
"""


def faults_of(text: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        parse(text, "webarc.toml")
    assert exit_code_of(caught.value) == Exit.USAGE
    assert all(line.startswith("webarc.toml: ") for line in str(caught.value).splitlines())
    return caught.value.faults


def test_defaults_are_those_of_the_design() -> None:
    """/Cr-1/. The man page has those of every setting, and tests/golden/ has the man page."""
    settings = parse("", "webarc.toml")
    assert settings == Settings()
    crawl, mount = settings.crawl, settings.mount
    assert (crawl.depth, crawl.interval, crawl.max_instances, crawl.filters) == (5, Interval(1, "day"), 4, ("mime",))
    assert crawl.robots and crawl.user_agent.startswith("webarcfs/")
    assert (mount.commit_interval, mount.settle, mount.strict_schema, settings.index.links) == (1.0, 60.0, False, True)


def test_every_value_is_taken() -> None:
    settings = parse(FULL, "webarc.toml")
    assert (settings.crawl.depth, settings.crawl.interval, settings.crawl.wait) == (3, Interval(2, "week"), 2.0)
    assert settings.crawl.filters == ("mime", "adverts", "package.module:function")
    assert settings.mount.strict_schema and settings.mount.query_seconds == 2.5 and not settings.index.links
    assert settings.profiles["html-with-images"].include == ("text/html", "image/*")
    fcul, other = settings.publications
    assert fcul.urls == ("http://www.fc.ul.pt/index.html",)
    assert fcul.hosts == ("*.fc.ul.pt",)
    assert fcul.exclude_hosts == ("ptmat.lmc.fc.ul.pt",)
    assert fcul.start == datetime(2026, 12, 1, 22, tzinfo=CET), "local times are CET"
    assert (fcul.description, fcul.note, fcul.additions) == (
        "The faculty", "2026-11-01: without the old registers", "staff",
    )  # fmt: skip
    assert (fcul.describe.signature, fcul.describe.provenance, other.describe.provenance) == ("5100", "Dean", "")
    assert [(each.match, each.reason) for each in fcul.exclude] == [("www.fc.ul.pt/old/*", "appraised")]
    (server,) = fcul.server
    assert (server.host, server.depth, server.max_documents, server.wait) == ("ptmat.lmc.fc.ul.pt", 3, 500, 5.0)
    (rule,) = fcul.rule
    assert (rule.on, rule.does, rule.text, rule.since) == ("link", "notice", "print", datetime(2005, 1, 1, tzinfo=CET))
    assert other.exclude == other.rule == ()
    assert other.start == datetime(2026, 12, 1, 22, tzinfo=UTC)


def test_release_and_closing_of_the_archive_hold_for_publications_that_do_not_say_it() -> None:
    said = """
release = "by-hand"
closed_for = "30 years"
[[publication]]
name = "a"
urls = ["http://e.org/"]
[[publication]]
name = "b"
urls = ["http://e.org/"]
release = "automatic"
closed_for = "1 month"
"""
    settings = parse(said, "webarc.toml")
    first, second = settings.publications
    assert (first.release, first.closed_for, first.is_held) == ("by-hand", Interval(30, "year"), True)
    assert (second.release, second.closed_for, second.is_held) == ("automatic", Interval(1, "month"), True)
    own = settings.unlisted("c", ("http://e.org/",))
    assert (own.release, own.closed_for) == ("by-hand", Interval(30, "year"))
    default = parse("", "webarc.toml").unlisted("d")
    assert (default.release, default.closed_for, default.is_held) == ("automatic", None, False)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('release = "later"', "release: .*automatic"),
        ("release = true", "release: "),
        ('closed_for = "0 days"', "closed_for: .*no interval"),
        ('closed_for = "101 years"', "closed_for: .*hundred years"),
        ("closed_for = 30", "closed_for: "),
    ],
)
def test_release_and_closing_are_checked_above_the_tables_and_in_a_publication(line: str, fault: str) -> None:
    (found,) = faults_of(line)
    assert re.search(fault, found)
    (found,) = faults_of(f'[[publication]]\nname = "a"\nurls = ["http://e.org/"]\n{line}')
    assert re.search(f"publication a.{fault}", found)


def test_publication_over_crawl_over_defaults_and_the_command_line_over_all() -> None:
    """/Cr-2.1/."""
    fcul, other = parse(FULL, "webarc.toml").publications
    assert (fcul.crawl.interval, other.crawl.interval) == (Interval(1, "month"), Interval(2, "week"))
    assert fcul.crawl.depth == other.crawl.depth == 3
    assert fcul.crawl.robots is True
    over = config.override(fcul.crawl, {"depth": 0, "interval": "5 minutes"}, "command line")
    assert (over.depth, over.interval, over.max_instances) == (0, Interval(5, "minute"), 2)
    assert fcul.crawl.depth == 3


def test_the_command_line_is_checked_as_the_file_is() -> None:
    with pytest.raises(SettingsError) as caught:
        config.override(CrawlSettings(), {"depth": -1, "wait": "soon", "deep": 1}, "command line")
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["depth", "wait", "deep"]


def test_all_faults_are_reported_together() -> None:
    faults = faults_of(
        """
        surprise = 1
        [crawl]
        depth = "deep"
        max_instance = 3
        filters = ["mime", 3, ""]
        robots = "yes"
        min_share = 2
        interval = "soon"
        unchanged = "perhaps"
        [mount]
        commit_interval = 0
        [index]
        links = 1
        [profile.p]
        include = ["nonsense"]
        [[publication]]
        name = "a b"
        urls = ["ftp://e.org/", "http://a b/", "http://fine.example/"]
        profile = "none"
        start = 2026-12-01
        depth = -1
        [[publication]]
        urls = []
        [nowhere]
        """
    )
    text = "\n".join(faults)
    for part in (
        "crawl.depth: 'deep'",
        "crawl.max_instance: there is no such setting; did you mean max_instances?",
        "crawl.filters: 3 is not a line of text; ''",
        "crawl.robots: 'yes'",
        "crawl.min_share: 2",
        "crawl.interval: 'soon'",
        "crawl.unchanged: 'perhaps'",
        "mount.commit_interval: 0",
        "index.links: 1",
        "profile.p.include: 'nonsense'",
        "publication a b.name: 'a b'",
        "publication a b.start",
        "publication a b.depth: -1",
        "publication number 2.name: is missing",
        "publication number 2.urls: is missing",
        "surprise: there is no such table",
        "nowhere: there is no such table",
    ):
        assert part in text, f"{part}\nis not in\n{text}"
    urls = next(fault for fault in faults if fault.startswith("publication a b.urls"))
    assert "ftp://e.org/" in urls and "'a b' is not" in urls and "fine.example" not in urls


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("exclude = 'x'", "two brackets"),
        ("[[publication.exclude]]\nreason = 'x'", "`match = …` in each"),
        ("[[publication.exclude]]\nmatch = 'http://e.org/x'", "no host or part of one"),
        ("[[publication.exclude]]\nmatch = 'e.org'\nwhy = 'x'", "why: there is no such setting"),
        ("[[publication.rule]]\nmatch = 'e.org'\ndoes = 'dance'", "does: "),
        ("[[publication.rule]]\nmatch = 'e.org'\nsince = 2005-01-01", "since: there is no such setting"),
        ("[publication.describe]\nnonsense = 'x'", "describe.nonsense: there is no such setting"),
        ("additions = 'perhaps'", "additions: "),
        ("rate_limit = 'fast'", "rate_limit: 'fast' is no number of bytes"),
        ("depth = 'deep'", "depth: 'deep' is not a whole number"),
        ("paths = ['press']", "paths: 'press' is no path"),
        ("exclude_extensions = ['*.exe']", "exclude_extensions: '*.exe' is no extension"),
        ("types = ['pdf']", "types: 'pdf' is no MIME type"),
        ("[[publication.server]]\ndepth = 2", "`host = …` in each"),
        ("[[publication.server]]\nhost = 'a'\ndepth = -1", "server: depth: -1 is not"),
        ("[[publication.server]]\nhost = 'a'\ndelay = 1", "delay: there is no such setting"),
        ("retired = 'yes'", "retired: "),
    ],
)
def test_tables_of_a_publication_are_checked(lines: str, fault: str) -> None:
    (found,) = faults_of(f"[[publication]]\nname = 'p'\nurls = ['http://e.org/']\n{lines}\n")
    assert found.startswith("publication p.") and fault in found


def test_publications_in_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "webarc.toml"
    path.write_text("[crawl]\ndepth = 9\n[[publication]]\nname = 'a'\nurls = ['http://a/']\n")
    folder = tmp_path / "publications.d"
    folder.mkdir()
    one = "[[publication]]\nname = '{}'\nurls = ['http://b/']\n"
    (folder / "b.toml").write_text(one.format("b"))
    before = identity(path, folder)
    settings, _ = settings_files.load(path)
    assert [(each.name, each.crawl.depth) for each in settings.publications] == [("a", 9), ("b", 9)]
    for name, text, fault in (
        ("a", one.format("a"), "webarc.toml has a publication of that name, too"),
        ("c", one.format("d"), "called d, not c as the file"),
        ("c", one.format("c") * 2, "it has 2 [[publication]]; there must be one"),
        ("c", "", "it has 0 [[publication]]"),
        ("c", "[crawl]\ndepth = 1\n" + one.format("c"), "crawl: only one [[publication]] may be here"),
        ("c", "[[publication", "not TOML"),
        ("c", one.format("c") + "nonsense = 1\n", "nonsense: there is no such setting"),
    ):
        (folder / f"{name}.toml").write_text(text)
        with pytest.raises(SettingsError) as caught:
            settings_files.load(path)
        (found,) = caught.value.faults
        assert found.startswith(f"publications.d/{name}.toml: ") and fault in found
        (folder / f"{name}.toml").unlink()
    assert identity(path, folder) == before
    path.unlink()  # they hold without webarc.toml, too
    assert [each.name for each in settings_files.load(path)[0].publications] == ["b"]
    assert identity(path, folder) != before


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("500 kB", 500_000),
        ("2 MB", 2_000_000),
        ("1.5MB", 1_500_000),
        ("64 KiB", 65_536),
        ("2 GB", 2_000_000_000),
        ("1 GiB", 1 << 30),
        (1000, 1000),
        (0, 0),
    ],
)
@pytest.mark.parametrize("key", ["rate_limit", "max_file_size", "max_total_size"])
def test_a_size_has_a_unit(key: str, said: object, value: int) -> None:
    assert getattr(config.override(CrawlSettings(), {key: said}, "test"), key) == value


@pytest.mark.parametrize("said", ["10 furlongs", "-1 MB", "1e400 MB", -1, 1.5, True, "9" * 5000 + " MB"])
def test_what_is_no_size_is_a_fault(said: object) -> None:
    with pytest.raises(SettingsError, match="is no number of bytes"):
        config.override(CrawlSettings(), {"max_file_size": said}, "test")


@pytest.mark.parametrize(
    ("key", "said", "value"),
    [
        ("proxy", "", ""),
        ("proxy", "http://proxy.example.org:3128", "http://proxy.example.org:3128"),
        ("proxy", "http://[::1]/", "http://[::1]/"),
        ("bind", "", ""),
        ("bind", "192.0.2.1", "192.0.2.1"),
        ("bind", "2001:DB8:0::1", "2001:db8::1"),
    ],
)
def test_the_way_to_the_network(key: str, said: str, value: str) -> None:
    assert getattr(config.override(CrawlSettings(), {key: said}, "test"), key) == value


@pytest.mark.parametrize(
    ("key", "said", "fault"),
    [
        ("proxy", "proxy.example.org:3128", "is no URL of a proxy"),
        ("proxy", "socks5://proxy.example.org", "is no URL of a proxy"),
        ("proxy", "http://proxy.example.org:99999", "is no URL of a proxy"),
        ("proxy", "http://me:hunter2@proxy.example.org", "environment"),
        ("proxy", 3128, "line of text"),
        ("bind", "localhost", "is no IP address"),
        ("bind", "[::1]", "is no IP address"),
        ("bind", 1, "is no IP address"),
    ],
)
def test_what_leads_to_no_network(key: str, said: object, fault: str) -> None:
    """A password of a proxy is not repeated, and settings have none: they are kept with each crawl."""
    with pytest.raises(SettingsError, match=fault) as caught:
        config.override(CrawlSettings(), {key: said}, "test")
    assert "hunter2" not in str(caught.value)


def test_what_is_unlimited_is_said_by_a_word() -> None:
    settings = parse("[crawl]\ndepth = 'unlimited'\nmax_path_depth = 'unlimited'", "webarc.toml")
    assert (settings.crawl.depth, settings.crawl.max_path_depth) == (config.UNLIMITED, 0)


def test_a_syntax_error_is_reported_with_its_line() -> None:
    (fault,) = faults_of("[crawl]\ndepth = 3\nwait = = 1\n")
    assert "line 3" in fault


@pytest.mark.parametrize(
    "text", ["crawl = 1", "mount = []", "profile = 2", "publication = {name='a'}", "profile.p = 1"]
)
def test_what_must_be_a_table(text: str) -> None:
    assert faults_of(text)


def test_names_of_publications_are_used_once_and_profiles_exist() -> None:
    two = '[[publication]]\nname="a"\nurls=["http://e.org/"]\nprofile="p"\n' * 2
    assert set(faults_of(two)) == {
        "publication a: the name is used twice",
        "publication a.profile: there is no [profile.p]",
    }


@pytest.mark.parametrize(
    "name", ["", ".hidden", "-o", "a/b", "a..b", "a.lock", "a.", "a b", "ü", "a\n", "a@{b", "x" * 101, "a:b", "a~1", 5]
)
def test_names_that_no_ref_may_have(name: Any) -> None:
    with pytest.raises(ValueError, match="is no name"):
        validators.name(name)


@given(st.from_regex(validators._NAME, fullmatch=True))
def test_names_are_safe_in_paths(name: str) -> None:
    try:
        validators.name(name)
    except ValueError:
        return
    assert "/" not in name and not name.startswith((".", "-")) and len(name) <= 100


@pytest.mark.parametrize("value", [True, "1", float("nan"), float("inf"), -1, None, []])
def test_numbers(value: object) -> None:
    with pytest.raises(SettingsError):
        config.override(CrawlSettings(), {"wait": value}, "test")


def test_a_missing_or_unreadable_file_means_defaults_and_a_warning(tmp_path: Path) -> None:
    """/Cr-1/."""
    for path in (tmp_path / "none.toml", tmp_path):
        settings, warning = settings_files.load(path)
        assert settings == Settings()
        assert warning is not None and str(path) in warning and "defaults" in warning


def test_a_file_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "webarc.toml"
    path.write_text(FULL, "utf-8")
    settings, warning = settings_files.load(path)
    assert settings.crawl.depth == 3 and warning is None
    path.write_bytes(b"[crawl]\n# \xff\n")
    with pytest.raises(SettingsError, match="not UTF-8 at byte 10"):
        settings_files.load(path)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_byte_order_mark_is_no_fault(tmp_path: Path, newline: str) -> None:
    path = tmp_path / "webarc.toml"
    path.write_bytes(f"\ufeff[crawl]{newline}depth = 7{newline}".encode())
    settings, warning = settings_files.load(path)
    assert (settings.crawl.depth, warning) == (7, None)


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf_16_is_named(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "webarc.toml"
    path.write_bytes(mark + "[crawl]\ndepth = 7\n".encode("utf-16-le" if mark[0] == 0xFF else "utf-16-be"))
    with pytest.raises(SettingsError, match="it is UTF-16"):
        settings_files.load(path)


def test_every_setting_of_a_crawl_explains_itself() -> None:
    """The options of the commands are read off the fields."""
    for field in dataclasses.fields(CrawlSettings):
        assert field.metadata["help"].endswith(".")
        field.metadata["check"](getattr(CrawlSettings(), field.name))
