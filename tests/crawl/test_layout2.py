"""An archive of layout 2, as programs made it before layout 3: it is read as it is, and the first crawl raises it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from agent.maintenance import backups
from agent.maintenance.verification import verify
from tests.support import crawls
from tests.support.crawls import count, crawl, run_command
from tests.support.site import Site, redirect
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import LAYOUT, Archive, layout_of, open_archive

pytestmark = pytest.mark.crawl

_FIXTURE = Path(__file__).parents[1] / "data" / "layout2.tar.gz"
_HOST = "old.example"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two publications, `whole` and `home`, crawled twice each: pages, an addition, a redirect."""
    with tarfile.open(_FIXTURE) as packed:
        packed.extractall(tmp_path)
    return open_archive(tmp_path / "layout2")


def _serve(site: Site) -> tuple[str, ...]:
    """The site as the last crawl of the fixture found it."""
    site.add_html("/", "".join(f'<a href="/{name}">{name}</a>' for name in ("a", "b", "moved")), host=_HOST)
    site.add_html("/a", "Page a.", title="Title a", host=_HOST)
    site.add_html("/b", "Page b, changed.", title="Title b", host=_HOST)
    site.add_nasty("/moved", redirect("/a"), host=_HOST)
    return crawls.through(site.proxy)


def test_it_is_whole_and_has_its_records_before_it_is_raised(archive: Archive) -> None:
    assert layout_of(archive.root) == 2
    assert run_command("recover", "--archive", archive.root).code == 0
    assert run_command("record", "list", "--archive", archive.root).code == 0
    assert [each.publication for each in Catalogue(archive).records()].count("whole") == 2
    assert list(verify(archive)) == [] and layout_of(archive.root) == 2


def test_its_first_crawl_raises_it(archive: Archive, site: Site) -> None:
    through, before = _serve(site), crawls.files(archive, _HOST)
    outcome = crawl(archive, f"http://{_HOST}/", name="whole", wget_args=through)
    assert outcome.complete and count(outcome) == (0, 0, 0, 3)
    assert crawls.files(archive, _HOST) == before and layout_of(archive.root) == LAYOUT
    assert list(verify(archive)) == []


def test_a_backup_of_it_is_restored(archive: Archive, tmp_path: Path) -> None:
    before = crawls.files(archive, _HOST)
    backups.backup(archive, tmp_path / "backup")
    backups.restore(tmp_path / "backup", tmp_path / "restored")
    restored = open_archive(tmp_path / "restored")
    assert crawls.files(restored, _HOST) == before and list(verify(restored)) == []
