"""The links of real pages, counted by another library: selectolax, which stands on another parser (lexbor, HTML 5)."""

from __future__ import annotations

from collections import Counter
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.support.realsites import POSTGRESQL, PYTHON, RealSite
from webarcfs.archive.index.links import AskedKind, words_of
from webarcfs.archive.model.urls import canonical
from webarcfs.content.outlinks import anchors_of
from webarcfs.content.text import decode_charset

pytestmark = pytest.mark.store
_PAGES = 120


@pytest.mark.parametrize("site", [PYTHON, POSTGRESQL], ids=lambda site: site.package)
def test_links_agree_with_an_independent_count(site: RealSite) -> None:
    """Of pages taken evenly from the whole site: targets, how often, and the words that name them."""
    if not site.is_installed:
        pytest.skip(site.missing)
    pages = [path for path in site.files() if path.endswith(".html")]
    total: Counter[str] = Counter()
    for path in pages[:: max(len(pages) // _PAGES, 1)]:
        body, url = (site.root / path).read_bytes(), f"http://docs.example/{path}"
        ours: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
        for kind, target, text, _ in anchors_of([body], url, decode_charset(body, "")):
            ours[kind.name, target, words_of(text)] += 1
        theirs = _independent(body, url)
        assert ours == theirs, path
        for (kind, _, _), number in ours.items():
            total[kind] += number
    assert total["HTTP"] > 2_000


def _independent(body: bytes, url: str) -> Counter[tuple[str, str, tuple[str, ...]]]:
    """Links of <a>, <link>, <img> and <object> (these sites have no other), by selectolax and urllib alone."""
    tree = LexborHTMLParser(body.decode("utf-8"))
    found: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for node in tree.css("a[href], link[href], img[src], object[data]"):
        attributes = node.attributes
        raw = attributes.get("href") or attributes.get("src") or attributes.get("data") or ""
        if node.tag == "a":
            alts = (each.attributes.get("alt") or "" for each in node.css("img"))
            text = " ".join([node.text(), *alts])
            name = words_of(text if text.strip() else attributes.get("title") or "")
        else:
            name = words_of(attributes.get("alt") or attributes.get("title") or "")
        raw = raw.strip()
        if raw.startswith("mailto:"):
            found[AskedKind.MAIL.name, unquote(raw), name] += 1
            continue
        target = urldefrag(urljoin(url, raw)).url
        if raw.startswith("#") or not raw or not target.startswith("http"):
            continue
        rel = attributes.get("rel") or ""
        if node.tag == "link" and "stylesheet" in rel:
            continue
        image = node.tag == "img" or (node.tag == "link" and "icon" in rel)
        found[AskedKind.IMAGE.name if image else AskedKind.HTTP.name, canonical(target), name] += 1
    return found
