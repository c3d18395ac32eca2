"""Pages that lead to views of themselves by fragments alone (`#/one`), as applications with a router do."""

from __future__ import annotations

import pytest

from tests.support import script_site
from tests.support.browsers import needs_chromium
from tests.support.crawls import crawl, log_lines, shown_text
from tests.support.script_site import ScriptSite
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.crawl, needs_chromium()]
site = script_site.site


_ROUTER = """<ul id=menu><li><a href="#/one">one</a><li><a href="#!/two">two</a><li><a href="#part">part</a></ul>
<p id=view>begin</p><script>
const show = async () => { const route = location.hash.replace(/^#[/!]+/, '');
  if (!route || route === 'part') return;
  const data = await (await fetch('/route/' + route)).json(); view.textContent = data.word;
  const next = route === 'one' ? '<a href="#/three">three</a>' : '';
  view.insertAdjacentHTML('beforeend', `<a href="/of/${route}">more</a>${next}`);
};
addEventListener('hashchange', show); show();</script>"""


@pytest.mark.parametrize("is_on", [False, True])
def test_views_by_fragment_are_shown_where_a_publication_wants_them(
    site: ScriptSite, archive: Archive, is_on: bool
) -> None:
    """What they ask for and link to is archived; the form that is kept is that of the page without a fragment."""
    for route in ("one", "two", "three"):
        site.add(f"/route/{route}", f'{{"word": "view {route}"}}', "application/json")
        site.add_html(f"/of/{route}", f"of {route}")
    site.add_html("/router", _ROUTER)
    url = site.url("/router")
    lines = log_lines(archive, crawl(archive, url, fetcher="browser", depth=1, hash_routes=is_on))
    assert "hash-routes:2" in lines[url].notes
    for route in ("one", "two", "three"):
        assert (site.url(f"/route/{route}") in lines) == is_on
        assert (site.url(f"/of/{route}") in lines) == is_on
    assert "begin" in shown_text(archive, url) and "view" not in shown_text(archive, url)
