"""`webarc export` of the archive behind a mount."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import archives
from tests.support.histories import DOMAIN
from tests.support.mounts import Mounted
from tests.support.readercommand import webarc
from tests.support.waiting import until
from webarcfs.archive.git.repository import Repository

pytestmark = pytest.mark.mount


def test_the_archive_behind_a_mount_is_exported(tmp_path: Path) -> None:
    archive = archives.final_at_once(archives.make_archive(tmp_path))
    archives.publish(archive, pages={"a.html": b"a"})
    mounted = Mounted(archive.root, tmp_path / "mnt")
    try:
        (mounted / f"{DOMAIN}/a.html/notes.txt").write_text("a note")
        until(lambda: _has(archives.store_of(archive), "a.html/notes.txt"))  # a mount commits a moment later
        inside = webarc("export", "--mount", str(mounted / f"{DOMAIN}/a.html"), str(tmp_path / "one.warc"))
        assert (inside.returncode, inside.stderr) == (0, "")
        public = webarc("export", "--mount", str(mounted.point), "--as-reader", str(tmp_path / "two.warc"))
        assert public.returncode == 1 and "--archive" in public.stderr
    finally:
        mounted.clear()
    outside = webarc("export", "--archive", str(archive.root), str(tmp_path / "three.warc"))
    assert outside.returncode == 0
    assert b"a note" in (tmp_path / "one.warc").read_bytes() == (tmp_path / "three.warc").read_bytes()


def _has(store: Repository, path: str) -> bool:
    head = store.head()
    return head is not None and store.find(head.tree, path) is not None
