"""Module scripts in the room with pywb: imports of every kind lead into the archive, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.sync_api import Page as Tab

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.browsers import SharedTab, Sink, can_bind, chromium, needs_chromium
from tests.support.livesites import CAPTURED
from tests.support.messy_sites import PIXEL
from tests.support.pywb_rooms import PywbRoom, pywb_room
from tests.support.rooms import Page, digits, published
from tests.support.waiting import PATIENCE
from webarcfs.web import limits

pytestmark = pytest.mark.store

_SITE, _CDN = "app.test", "cdn.test"
_AT = digits(CAPTURED)


def _script(text: str) -> Page:
    return Page(text.encode(), "text/javascript")


def _html(text: str) -> Page:
    return Page(f"<!DOCTYPE html><meta charset=utf-8><title>t</title><p id=p>no</p>{text}".encode())


_SAY = "const say = text => { document.getElementById('p').textContent = text };"
#: Path → page. Each page writes what it learned into `#p`.
_PAGES: dict[str, Page] = {
    "static.html": _html("<script type=module crossorigin src=/assets/main.js></script>"),
    "assets/main.js": _script(
        "import { one } from './one.js'; import '/assets/two.js'; import three from \"http://cdn.test/three.js\";\n"
        "export * as ns from './one.js'; export const state = { count: 0 };\n"
        f"{_SAY} Promise.all([import('./lazy.js'), import(`/assets/far.js`)]).then(([lazy, far]) =>\n"
        "say([one, globalThis.two, three, lazy.shared(state), far.default, location.pathname].join(' ')))"
    ),
    "assets/one.js": _script("export const one = 'one'"),
    "assets/two.js": _script("globalThis.two = 'two'"),
    "assets/lazy.js": _script(
        "import { state } from './main.js'; export const shared = other => other === state ? 'same' : 'twice'"
    ),
    "assets/far.js": _script("import { a } from './a.js'; export default a()"),
    "assets/a.js": _script("import { b } from './b.js'; export function a() { return b() + 'a' } export const x = 'x'"),
    "assets/b.js": _script("import { x } from './a.js'; export function b() { return 'b' + (typeof a) }"),
    "inline.html": _html(
        '<base href="/assets/"><script type=importmap>{"imports": {"lib": "./lib.js", "far/": "http://cdn.test/far/",'
        '"/old.js": "/assets/new.js", "own": "data:text/javascript,export default 5"},'
        '"scopes": {"/assets/deep/": {"lib": "/assets/other.js"}}, "integrity": {"./lib.js": "sha256-x"}}</script>'
        "<script type=module>import lib from 'lib'; import far from 'far/x.js'; import moved from '/old.js';"
        "import own from 'own'; import deep from './deep/y.js';"
        f"{_SAY} say([lib, far, moved, own, deep].join(' '))</script>"
    ),
    "assets/lib.js": _script("export default 'lib'"),
    "assets/new.js": _script("export default 'new'"),
    "assets/other.js": _script("export default 'other'"),
    "assets/deep/y.js": _script("import lib from 'lib'; export default 'deep-' + lib"),
    "classic.html": _html(
        "<script src=/assets/classic.js></script>"
        "<script>import('/assets/one.js').then(m => { window.second = m.one; done() })</script>"
    ),
    "assets/classic.js": _script(
        "var names = []; function done() { names.push(1); if (names.length == 3) "
        "document.getElementById('p').textContent = first + second + third }\n"
        "import('./one.js').then(function (m) { window.first = m.one; done() });"
        "var where = '/assets/' + 'one.js'; import(where).then(m => { window.third = m.one; done() })"
    ),
    "worker.html": _html(
        "<script type=module>const w = new Worker(new URL('/assets/w.js', location.href), {type: 'module'});"
        f"{_SAY} w.onmessage = e => say(e.data)</script>"
    ),
    "assets/w.js": _script(
        "import { one } from './one.js'; const two = (await import('/assets/lib.js')).default;"
        "const data = await (await fetch('/data.json')).json();"
        "postMessage([one, two, data.n, location.pathname].join(' '))"
    ),
    "data.json": Page(b'{"n": 7}', "application/json"),
    "meta.html": _html("<img id=i><script type=module src=assets/meta.js></script>"),
    "assets/meta.js": _script(
        "const i = document.getElementById('i'); i.onload = () => { document.getElementById('p').textContent = "
        "[i.naturalWidth, import.meta.url].join(' ') }; i.src = new URL('../dot.png', import.meta.url)"
    ),
    "dot.png": Page(PIXEL, "image/png"),
    "names.html": _html("<script type=module src=assets/names.js></script>"),
    "assets/names.js": _script(
        "import top from './lib.js'; const parent = 'p', { frames } = { frames: 'f' }; for (var opener of ['o']);\n"
        "function count() { return arguments.length } const o = { eval: () => 'e', import: 'i' };\n"
        f"{_SAY} say([top, parent, frames, opener, count(1, 2), o.eval(), o.import, (0, eval)('1+1'), "
        "\"import '/no.js'\", `import(\"/no.js\")`, /import('x')/.source.length].join(' ')) // import('/no.js')"
    ),
    "types.html": _html("<script type=module src=assets/types.js></script>"),
    "assets/types.js": _script(
        "import data from '/data.json' with { type: 'json' }; import sheet from './s.css' with { type: 'css' };"
        f"{_SAY} say(data.n + ' ' + sheet.cssRules.length)"
    ),
    "assets/s.css": Page(b"p { color: red }", "text/css"),
    "message.html": _html(
        "<iframe src=inner.html></iframe><script type=module>"
        f"{_SAY} addEventListener('message', e => say(e.data))</script>"
    ),
    "inner.html": _html("<script>parent.postMessage('it came', '*')</script>"),
    "moves.html": _html("<script type=module>setTimeout(() => { location = '/next.html' }, 300)</script>"),
    "next.html": _html("<script type=module>document.getElementById('p').textContent = location.pathname</script>"),
    "redirected.html": _html(f"<script type=module>import far from '/go.js'; {_SAY} say(far)</script>"),
    "late.html": _html("<script>const s = document.createElement('script'); s.type = 'module'; "
                       "s.src = '/assets/main.js'; document.head.append(s)</script>"),
    "bad.html": _html(
        f"<script type=module>import 'http://leak.test/x.js'</script><script type=importmap>[</script>"
        f"<script type=module>{_SAY} import('http://leak.test/y.js').catch(() => say('refused'))</script>"
    ),
}  # fmt: skip
_PAGES["bad-worker.html"] = _html(
    f"<script type=module>{_SAY} const w = new Worker('/assets/bad-w.js', {{type: 'module'}});"
    "w.onerror = () => say('refused'); w.onmessage = e => say(e.data)</script>"
)
_PAGES["assets/bad-w.js"] = _script("import 'http://leak.test/q.js'; postMessage('it ran')")
_PAGES["big.html"] = _html(f"<script type=module>{_SAY} import('/assets/big.js').catch(() => say('too big'))</script>")
_PAGES["assets/big.js"] = Page(b"export const a = 1;" * (limits.REWRITTEN_BYTES // 19 + 1), "text/javascript")
_CDN_PAGES = {"three.js": _script("export default 'three'"), "far/x.js": _script("export default 'far'")}

#: Page → what it says when all has worked.
_SAYS = {
    "static.html": "one two three same bundefineda /static.html",
    "redirected.html": "bundefineda",
    "moves.html": "/next.html",
    "late.html": "one two three same bundefineda /late.html",
    "inline.html": "lib far new 5 deep-other",
    "classic.html": "oneoneone",
    "worker.html": "one lib 7 /assets/w.js",
    "meta.html": f"1 http://{_SITE}/assets/meta.js",
    "names.html": "lib p f o 2 e i 2 import '/no.js' import(\"/no.js\") 11",
    "types.html": "7 1",
    "message.html": "it came",
    "bad.html": "refused",
    "bad-worker.html": "refused",
    "big.html": "too big",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PywbRoom]:
    archive = archives.make_archive(tmp_path_factory.mktemp("modules"))
    later = CAPTURED + timedelta(seconds=3)
    pages = {
        f"http://{_SITE}/{path}": page if path.endswith(".html") else replace(page, captured=later)
        for path, page in _PAGES.items()
    }
    published(archive, _SITE, pages, CAPTURED, redirects={f"http://{_SITE}/go.js": f"http://{_SITE}/assets/far.js"})
    published(archive, _CDN, {f"http://{_CDN}/{path}": page for path, page in _CDN_PAGES.items()},
              CAPTURED + timedelta(minutes=1), publication="cdn")  # fmt: skip
    recover(archive)
    with pywb_room(archive) as room:
        yield room


@pytest.fixture(scope="module")
def sink() -> Iterator[Sink | None]:
    """What counts that leaves; None without the right to answer for names."""
    if not can_bind(53):
        yield None
        return
    with Sink() as counting:
        yield counting


@pytest.fixture(scope="module")
def window(world: PywbRoom, sink: Sink | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedTab]:
    others = {} if sink is not None else {"*": "~NOTFOUND"}
    with chromium(tmp_path_factory.mktemp("browser"), sink=sink, names=world.names | others) as browser:
        yield SharedTab(browser.new_page())


def _shown(tab: Tab, world: PywbRoom, page: str) -> str:
    tab.goto(f"{world.origin}/web/{_AT}/http://{_SITE}/{page}")
    shown = tab.frame_locator("iframe").locator("#p")
    # A paragraph is empty before its text is parsed, and has "no" until a script has written.
    shown.filter(has_text=re.compile(r"^\s*(?!no\s*$)\S")).wait_for(timeout=1_000 * PATIENCE)
    return shown.inner_text()


@needs_chromium()
@pytest.mark.parametrize("page", _SAYS)
def test_each_import_leads_into_the_archive_and_nowhere_else(
    window: SharedTab, world: PywbRoom, sink: Sink | None, page: str
) -> None:
    """S-module-1, S-module-2, S-module-3, S-module-4, S-module-5, S-module-7."""
    tab = window.clear()
    try:
        text = _shown(tab, world, page)
    except Exception as error:
        raise AssertionError(window.errors) from error
    assert text == _SAYS[page]
    assert page == "bad.html" or window.errors == []
    assert sink is None or sink.asked == []


def test_a_module_is_answered_at_the_digits_of_its_page(world: PywbRoom) -> None:
    """S-module-1, S-module-7."""
    module = world.room.get(f"/web/{_AT}esm_/http://{_SITE}/assets/one.js", replay=True)
    assert module.status == 200
    assert module.text.startswith("import{") and module.text.endswith("export const one = 'one'")
    assert "sandbox" in module.headers["content-security-policy"]
    assert module.headers["memento-datetime"].endswith("11:00:03 GMT")
    moved = world.room.get(f"/web/{_AT}esm_/http://{_SITE}/go.js", replay=True)
    assert moved.headers["location"].endswith(f"/web/{_AT}esm_/http://{_SITE}/assets/far.js")
    big = world.room.get(f"/web/{_AT}esm_/http://{_SITE}/assets/big.js", replay=True)
    assert big.status == 413 and "16777216" in big.text
    page = world.room.get(f"/web/{_AT}esm_/http://{_SITE}/static.html", replay=True)
    assert page.headers["content-type"].startswith("text/plain")
    assert world.room.get(f"/web/{_AT}esm_/http://{_SITE}/none.js", replay=True).status == 404
    worker = world.room.get(f"/web/{_AT}wkrm_/http://{_SITE}/assets/w.js", {"Service-Worker": "script"}, replay=True)
    assert worker.status == 403
