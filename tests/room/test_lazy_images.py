"""Lazy images are shown by the engine that runs no script; the archived bytes do not change."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import chromium, needs_chromium, poll
from tests.support.messy_sites import PIXEL
from tests.support.rooms import Page, digits, published, served
from webarcfs.archive.model.metadata import CET

pytestmark = [pytest.mark.store, needs_chromium()]

HOST = "lazy.test"
WHEN = datetime(2021, 5, 1, 12, tzinfo=CET)
_GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
PAGE = f"""<!doctype html><title>lazy</title>
<img class=lazyload data-src=/a.png>
<img src="{_GIF}" data-lazy-src=/b.png data-lazy-srcset="/c.png 1x">
<img src=/blank.gif data-original=/d.png>
<picture><source data-srcset="/e.png"><img src="{_GIF}" data-src=/no.png></picture>
<p data-bg=/f.png style="color:red">x</p>
<p data-background-image="url('/g.png')">x</p>
<video data-poster=/h.png></video>
<iframe data-src=/i.html></iframe>
<img src="{_GIF}" data-src=/j.png><noscript><img src=/j.png></noscript>
<iframe srcdoc="<iframe srcdoc='<img data-src=&amp;quot;/k.png&amp;quot;>'></iframe>"></iframe>
<p style="background:image-set('/l.png' 1x)">x</p>
"""
SHOWN = [f"/{name}.png" for name in "acdefghjkl"]


def test_lazy_images_are_shown_and_kept_as_they_came(tmp_path: Path) -> None:
    """S-page-3"""
    archive = archives.make_archive(tmp_path / "lazy")
    pages = {f"http://{HOST}{place}": Page(PIXEL, "image/png") for place in [*SHOWN, "/b.png", "/blank.gif", "/no.png"]}
    pages |= {f"http://{HOST}/": Page(PAGE.encode(), "text/html"), f"http://{HOST}/i.html": Page(b"<p>i", "text/html")}
    published(archive, HOST, pages, WHEN)
    recover(archive)
    with served(archive) as room, chromium(tmp_path) as browser:
        context = browser.new_context()
        tab = context.new_page()
        loaded: set[str] = set()
        tab.on("request", lambda request: loaded.add(request.url.rpartition(HOST)[2]))
        tab.goto(f"{room.origin}/web/{digits(WHEN)}mp_/http://{HOST}/", wait_until="networkidle")
        # A busy machine pauses longer than what Playwright takes for the end.
        poll(tab, lambda: loaded >= {*SHOWN, "/i.html"})
        images = tab.locator("img:visible").evaluate_all("all => all.map(each => each.currentSrc)")
        context.close()
        raw = room.get(f"/web/{digits(WHEN)}id_/http://{HOST}/", replay=True)
    assert loaded >= {*SHOWN, "/i.html"}
    assert not loaded & {"/no.png", "/blank.gif"}
    assert [image.rpartition(HOST)[2] for image in images if HOST in image] == [
        "/a.png",
        "/c.png",
        "/d.png",
        "/e.png",
        "/j.png",
    ]
    assert raw.body == PAGE.encode()
