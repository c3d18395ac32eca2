"""What browsers showed of pages, as Browsertrix and ArchiveWeb.page record it: imported, kept, found, exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.browsertrix import JPEG, SHELL, Shown, png, wacz
from tests.support.crawls import archive, check_sound, meta, read, store
from tests.support.imports import import_files, imported
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history import rendered_forms

pytestmark = pytest.mark.crawl

__all__ = ["archive"]
HOST = "www.example.org"
URL = f"http://{HOST}/"


def form(archive: Archive, arc: str) -> dict[str, bytes]:
    """The files of what a browser showed of a document: name → content."""
    repository, tree = store(archive, HOST), meta(archive, HOST, arc).rendered
    if not tree:
        return {}
    assert repository.find(repository.ref(rendered_forms.REF) or "", f"{tree[:2]}/{tree}").oid == tree  # type: ignore[union-attr]
    return {name: repository.read(blob) for name, blob in rendered_forms.blobs_of(repository, tree).items()}


def test_text_picture_and_title_of_a_page_are_kept_beside_it(archive: Archive, tmp_path: Path) -> None:
    """S-rendered-1, S-rendered-2: the document stays as it was sent; data.xml names what a browser showed."""
    page = Shown(f"{URL}app", text="Hallo Welt", view=png(), title="Die App")
    imported(archive, wacz(tmp_path / "a.wacz", page))
    assert read(archive, HOST, "app") == SHELL
    files = form(archive, "app")
    assert files["rendered.txt"] == b"Hallo Welt"
    assert files["rendered.png"] == png()
    assert json.loads(files["rendered.json"]) == {
        "picture": "urn:view", "shown": "2025-06-01T12:00:20Z", "text": "urn:text", "title": "Die App",
        "titleFrom": "pages.jsonl",
    }  # fmt: skip
    assert meta(archive, HOST, "app").title == "Die App"
    check_sound(archive)
