"""What an older version crawled is crawled as before: where a default is new, the settings get the old one in words."""

from __future__ import annotations

import json

import pytest

from agent.catalogue import recording
from agent.crawl import job_folder
from tests.support.crawls import crawl, run_command
from tests.support.site import Site
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl


def _crawled_by_an_older_version(archive: Archive, site: Site) -> None:
    """Two publications, of which an older version crawled one."""
    site.add_html("/", "a page")
    archive.settings.write_text(
        f'# ours\n[[publication]]\nname = "old"\nurls = ["{site.url()}"]\n\n[[publication.exclude]]\nmatch = "x.org"\n'
        f'\n[[publication]]\nname = "new"\nurls = ["{site.url()}"]\n'
    )
    crawl(archive, site.url(), name="old")
    text = json.loads(Catalogue(archive).file("publications/old.json") or b"")
    for key in ("page_resources", "max_page_resources", "max_resource_hosts", "robots_for", "sitemaps"):
        del text["crawl"][key]  # as a version without them wrote it
    resumed = job_folder.parsed(json.dumps(text).encode()).publication.crawl
    assert resumed.resources == "hosts" and not resumed.sitemaps
    Catalogue(archive).save([], "test", "older", files={"publications/old.json": json.dumps(text).encode()})


def test_upgrade_keeps_what_publications_did(archive: Archive, site: Site) -> None:
    _crawled_by_an_older_version(archive, site)
    before = archive.settings.read_text()
    assert recording.keep_old_defaults(archive) == ["old"]
    assert recording.keep_old_defaults(archive) == []
    after = archive.settings.read_text()
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        'page_resources = "hosts" # as before the upgrade', "sitemaps = false # as before the upgrade",
    ]  # fmt: skip
    settings, _ = settings_files.load(archive.settings)
    assert {each.name: str(each.crawl.resources) for each in settings.publications} == {"old": "hosts", "new": "any"}
    assert {each.name: each.crawl.sitemaps for each in settings.publications} == {"old": False, "new": True}


@pytest.mark.parametrize("layout", ["1", "2"])
def test_all_publications_of_an_older_layout_are_crawled_as_before(archive: Archive, site: Site, layout: str) -> None:
    """Such an archive has no copies of their settings; the first crawl of any URL raises it, and spoils none."""
    site.add_html("/", "a page")
    archive.settings.write_text(
        f'[[publication]]\nname = "old"\nurls = ["{site.url()}"]\n\n'
        f'[[publication]]\nname = "bare"\nurls = ["{site.url()}"]\npage_requisites = false\n\n'
        f'[[publication]]\nname = "said"\nurls = ["{site.url()}"]\npage_requisites = true\nsitemaps = true\n'
    )
    archive.publications.mkdir(exist_ok=True)
    (archive.publications / "broken.toml").write_text("[[publication]]\n")  # it concerns no other
    archive.format.write_text(f"{layout}\n")
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", "--no-sitemaps", site.url())
    assert done.code == 0, done.err
    settings, _ = settings_files.load(archive.settings, apart={})
    assert {each.name: str(each.crawl.resources) for each in settings.publications} == {
        "old": "hosts", "bare": "none", "said": "hosts",
    }  # fmt: skip
    assert [each.crawl.sitemaps for each in settings.publications] == [False, False, True]


def test_the_newer_word_holds_whatever_the_older_one_says_above() -> None:
    text = '[crawl]\npage_requisites = false\n[[publication]]\nname = "p"\nurls = ["http://e.org/"]\n'
    (publication,) = settings_files.parse(text + 'page_resources = "any"\n', "test").publications
    assert publication.crawl.resources == "any"
    (publication,) = settings_files.parse(text, "test").publications
    assert publication.crawl.resources == "none"


def test_the_agent_keeps_what_publications_did(archive: Archive, site: Site) -> None:
    """Also where nobody ran `upgrade`: the next crawl is as the last one."""
    _crawled_by_an_older_version(archive, site)
    done = run_command("start", "--archive", archive.root, "--once", timeout=120)
    assert "old is crawled as before" in done.err, done
    settings, _ = settings_files.load(archive.settings)
    assert {each.name: str(each.crawl.resources) for each in settings.publications} == {"old": "hosts", "new": "any"}


def test_an_upgrade_leaves_publications_as_they_were(archive: Archive) -> None:
    """New ones look for sitemaps; those that exist say otherwise, with their comments, also in files of their own."""
    archive.settings.write_text(
        '# mine\n[[publication]]\nname = "a"\nurls = ["http://e.org/"]\n\n[mount]\nsettle = 1\n'
    )
    archive.publications.mkdir(exist_ok=True)
    (archive.publications / "b.toml").write_text(
        '[[publication]]\nname = "b"\nurls = ["http://e.org/"]\nsitemaps = true\n'
    )
    archive.format.write_text("2\n")
    done = run_command("upgrade", "--archive", archive.root)
    assert done.code == 0 and "a, b: crawled as before" in done.out, done
    settings, _ = settings_files.load(archive.settings)
    assert {publication.name: publication.crawl.sitemaps for publication in settings.publications} == {
        "a": False,
        "b": True,
    }
    assert archive.settings.read_text().startswith("# mine\n") and settings.crawl.sitemaps
    assert "crawled as before" not in run_command("upgrade", "--archive", archive.root).out
