"""<object> and <embed> in Chromium: documents and images are shown as live, plug-ins have what the page has instead."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import SharedTab, chromium, needs_chromium, poll
from tests.support.messy_sites import PIXEL
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.archive.model.metadata import CET

pytestmark = [pytest.mark.store, needs_chromium()]

HOME = "http://objects.test/"
WHEN = datetime(2021, 5, 1, 12, tzinfo=CET)
#: Name of a document → it.
DOCUMENTS = {
    "drawing.svg": Page(b'<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>', "image/svg+xml"),
    "page.html": Page(b"<p>inside</p>"),
    "page.xhtml": Page(b'<html xmlns="http://www.w3.org/1999/xhtml"><p>x</p></html>', "application/xhtml+xml"),
    "plain.txt": Page(b"plain", "text/plain"),
    "picture.png": Page(PIXEL, "image/png"),
    "paper.pdf": Page(b"%PDF-1.4\n", "application/pdf"),
    "film.swf": Page(b"FWS", "application/x-shockwave-flash"),
    "files.zip": Page(b"PK\3\4", "application/zip"),
}
_SHOWN, _OF_PLUG_INS = list(DOCUMENTS)[:5], list(DOCUMENTS)[5:]
_INSTEAD = "<b>instead</b>"
#: Name of a page → its body, what it loads, whether the text in place of an object is shown.
CASES: dict[str, tuple[str, list[str], bool]] = {
    **{f"object-{name}": (f"<object data={name}>{_INSTEAD}</object>", [name], False) for name in _SHOWN},
    **{f"embed-{name}": (f"<embed src={name}>", [name], False) for name in _SHOWN},
    **{f"object-{name}": (f"<object data={name}>{_INSTEAD}</object>", [], True) for name in _OF_PLUG_INS},
    **{f"embed-{name}": (f"<embed src={name}>", [], False) for name in _OF_PLUG_INS},
    "typed": (f"<object type=image/svg+xml data=drawing.svg>{_INSTEAD}</object>", ["drawing.svg"], False),
    "of-a-plug-in": (f"<object type=application/pdf data=/download>{_INSTEAD}</object>", [], True),
    "absent": (f"<object data=absent.svg>{_INSTEAD}</object>", [], True),
    "elsewhere": (f"<object data=http://elsewhere.test/>{_INSTEAD}</object>", [], True),
    "in-another": (
        f"<object data=absent.svg><object data=drawing.svg>{_INSTEAD}</object></object>", ["drawing.svg"], False,
    ),
    "its-own": (f"<object data='data:text/html,<p>inside'>{_INSTEAD}</object>", [], False),
}  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    archive = archives.make_archive(tmp_path_factory.mktemp("objects"))
    pages = {f"{name}.html": Page(f"<!DOCTYPE html>{body}".encode()) for name, (body, _, _) in CASES.items()}
    published(archive, "objects.test", {HOME + name: page for name, page in {**DOCUMENTS, **pages}.items()}, WHEN)
    recover(archive)
    with served(archive, two_origins=True) as found:
        yield found


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedTab]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield SharedTab(browser.new_page())


@pytest.mark.parametrize("name", CASES)
def test_objects_show_what_is_archived_and_pages_what_they_have_for_plug_ins(
    room: Served, window: SharedTab, name: str
) -> None:
    """S-page-4."""
    _, loads, is_instead = CASES[name]
    page = f"{HOME}{name}.html"
    tab = window.clear()
    tab.goto(f"http://127.0.0.1:{room.replay_port}/web/{digits(WHEN)}mp_/{page}", wait_until="networkidle")

    def shown() -> list[str]:
        return [url.partition(HOME)[2] for url in window.loaded if HOME in url and page not in url]

    # A busy machine pauses longer than what Playwright takes for the end.
    poll(tab, lambda: len(shown()) >= len(loads) and tab.locator("b").is_visible() is is_instead)
    assert shown() == loads
    assert tab.locator("b").is_visible() is is_instead
    assert window.saved == []
