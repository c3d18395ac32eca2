"""Module scripts, import maps, and the pages that have them: what is rewritten, and what stays byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.realsites import PYTHON
from webarcfs.room.replay.javascript import scan
from webarcfs.room.replay.module_scripts import (
    ModulePlace,
    PageScripts,
    rewritten_classic,
    rewritten_import_map,
    rewritten_module,
)
from webarcfs.web import limits

_PLACE = ModulePlace("20210501110000", "http://app.test/a/b.html")
_HERE = "/web/20210501110000esm_/"


def _module(source: str, place: ModulePlace = _PLACE) -> str:
    return rewritten_module(source, scan(source), place)


def _passed(body: bytes, *cuts: int, place: ModulePlace = _PLACE) -> bytes:
    scripts = PageScripts(place)
    at, pieces = 0, []
    for cut in sorted(min(cut, len(body)) for cut in cuts):
        pieces.append(scripts.feed(body[at:cut]))
        at = cut
    return b"".join([*pieces, scripts.feed(body[at:]), scripts.close()])


@pytest.mark.parametrize(
    ("specifier", "leads"),
    [
        ("./x.js", f"{_HERE}http://app.test/a/x.js"), ("../x.js?a#b", f"{_HERE}http://app.test/x.js?a#b"),
        ("/x.js", f"{_HERE}http://app.test/x.js"), ("https://cdn.test/x.js", f"{_HERE}https://cdn.test/x.js"),
        ("//cdn.test/x.js", f"{_HERE}http://cdn.test/x.js"), ("HTTP://cdn.test/x", f"{_HERE}http://cdn.test/x"),
        ("vue", "vue"), ("@scope/x", "@scope/x"), ("data:text/javascript,1", "data:text/javascript,1"),
        ("blob:http://app.test/1", "blob:http://app.test/1"), ("node:fs", "node:fs"), ("http://", "http://"),
        ("https:x", f"{_HERE}https://x/"), ("", ""), (".x", ".x"), ("http:\\\\[", "http:\\\\["),
    ],
)  # fmt: skip
def test_a_specifier_that_is_a_url_leads_into_the_archive(specifier: str, leads: str) -> None:
    """S-module-1."""
    assert f"from{json.dumps(leads)}" in _module(f"import x from{json.dumps(specifier)};").replace("from ", "from")


def test_what_a_module_declares_itself_keeps_its_meaning() -> None:
    """S-module-2."""
    head = _module("import top from './top.js'; var self; const { parent } = self").partition(";")[0]
    names = head[len("import{") : head.index("}")].split(",")
    assert names == ["document", "frames", "location", "opener", "window", "__webarc_import"]


def test_a_module_keeps_its_lines_and_its_interpreter() -> None:
    source = "#!/usr/bin/node\nimport './x.js'\nimport.meta.url\n"
    lines = _module(source).split("\n")
    assert lines[0] == "#!/usr/bin/node"
    assert lines[1].endswith(f'import "{_HERE}http://app.test/a/x.js"')
    assert lines[2:] == ['("http://app.test/a/b.html")', ""]


def test_an_import_that_runs_is_led_when_it_runs() -> None:
    """S-module-3."""
    called = _module("const x = import(a(1, ')') + b, {with: {type: 'json'}})")
    place = '"/web/20210501110000","http://app.test/a/b.html"'
    assert called.endswith(f"import(__webarc_import(a(1, ')') + b,{place}), {{with: {{type: 'json'}}}})")
    source = "x.import('/a'); import('/b')"
    own = rewritten_classic(source, scan(source), _PLACE)
    assert own == f"x.import('/a'); import((self.__webarc_import||(x=>x))('/b',{place}))"


def test_a_place_that_is_assigned_leads_on_in_the_archive() -> None:
    assert _module("if (a) location = '/b'; x.location = 1").endswith("location.href = '/b'; x.location = 1")
    assert _module("let location; location = 1").endswith("let location; location = 1")


def test_an_import_map_leads_into_the_archive() -> None:
    """S-module-4."""
    text = json.dumps(
        {
            "imports": {
                "vue": "/vue.js",
                "x/": "https://cdn.test/x/",
                "/old.js": "./new.js",
                "no": None,
                "d": "data:,",
            },
            "scopes": {"/a/": {"vue": "./other.js"}, "b": 3},
            "integrity": {"/vue.js": "sha384-x"},
        }
    )
    assert json.loads(rewritten_import_map(text, _PLACE)) == {
        "imports": {
            "vue": f"{_HERE}http://app.test/vue.js", "x/": f"{_HERE}https://cdn.test/x/",
            f"{_HERE}http://app.test/old.js": f"{_HERE}http://app.test/a/new.js", "no": None, "d": "data:,",
        },
        "scopes": {f"{_HERE}http://app.test/a/": {"vue": f"{_HERE}http://app.test/a/other.js"}, "b": 3},
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "[", "[]", "3", "[" * 100_000, '{"imports": 3, "scopes": []}'])
def test_what_is_no_import_map_stays(text: str) -> None:
    assert rewritten_import_map(text, _PLACE) == text


_MODULE = b'<script type="module">import "./x.js"</script>'


def test_modules_of_a_page_get_the_address_of_modules() -> None:
    """S-module-5: one module has one address, or it is two."""
    page = (
        b'<script type="module" src="/web/20210501110000js_/http://app.test/m.js"></script>'
        b'<script src="/web/20210501110000js_/http://app.test/c.js"></script>'
        b'<link rel="modulepreload" href="/web/20210501110000mp_/http://app.test/m.js">'
        b'<link rel="stylesheet" href="/web/20210501110000cs_/http://app.test/c.css">'
    )
    passed = _passed(page)
    assert passed.count(b"esm_/http://app.test/m.js") == 2
    assert passed.replace(b"esm_", b"js_", 1).replace(b"esm_", b"mp_") == page


def test_a_base_is_what_the_modules_of_a_page_are_relative_to() -> None:
    page = b'<base href="/web/20210501110000mp_/http://app.test/z/">' + _MODULE
    assert f'"{_HERE}http://app.test/z/x.js"'.encode() in _passed(page)
    assert f'"{_HERE}http://app.test/a/x.js"'.encode() in _passed(_MODULE)


@given(st.lists(st.integers(0, 400), max_size=6))
def test_a_page_may_come_in_any_pieces(cuts: list[int]) -> None:
    page = (
        b'<p title="<script>">a<b</p><!-- <script --><scr <base href="/web/20210501110000mp_/http://app.test/z/">'
        + _MODULE
        + b'<script>if (a<b) import("/y.js")</script><script type=importmap>{"imports":{"a":"/a.js"}}</script><lin'
    )
    assert _passed(page, *cuts) == _passed(page)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=4))
def test_a_page_without_modules_stays_byte_for_byte(text: bytes, cuts: list[int]) -> None:
    """S-module-6."""
    page = b"<script>var a = 1</script>" + text.replace(b"module", b"").replace(b"import", b"")
    assert _passed(page, *cuts) == page


def _real_pages() -> Iterator[bytes]:
    names = [name for name in sorted(PYTHON.files()) if name.endswith(".html")]
    for name in names[:150]:
        yield (PYTHON.root / name).read_bytes()


def test_real_pages_without_modules_stay_byte_for_byte() -> None:
    """S-module-6: pages of Python's documentation."""
    pages = list(_real_pages())
    assert len(pages) > 100
    for page in pages:
        assert _passed(page, *range(0, len(page), 4_096)) == page


@pytest.mark.parametrize(
    "page",
    [
        b"<script type=module>" + b"x" * (limits.INLINE_SCRIPT_BYTES + 10),
        b"<script type=module>import './x.js'",
        b"<script " + b"a" * 100_000,
        b"<script " * 10_000,
        b'<script a="' * 10_000,
        b"<link" * 50_000 + b">",
    ],
)
def test_what_has_no_end_stays(page: bytes) -> None:
    assert _passed(page, *range(0, len(page), 10_000)) == page
