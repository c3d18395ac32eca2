"""The scanner of JavaScript: which imports a script has, which names of the window it declares, where it assigns."""

from __future__ import annotations

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.model.errors import TookTooLong
from webarcfs.room.replay import javascript
from webarcfs.room.replay.javascript import GLOBALS, ModuleReference, SpecifierKind, scan

pytestmark = pytest.mark.pure

# == references =======================================================================================================

STATIC = {
    'import "a"': "a",
    "import 'a';": "a",
    'import x from "a"': "a",
    'import from from "a"': "a",
    'import source from "a"': "a",
    'import x, {y as z} from "a"': "a",
    'import {y as z, "a b" as w,} from "a"': "a",
    'import {as as as, from, default as d} from "a"': "a",
    'import x, * as ns from "a"': "a",
    'import {} from "a"': "a",
    'import{a}from"a"': "a",
    'import $é from "a"': "a",
    'import/* b */{/*}*/x//"no"\n}/**/from/**/"a"': "a",
    'import x from "a" with {type: "json"}': "a",
    'import x from "a" with {type: "json"}\n/import("no")/.test(y)': "a",
    'export * from "a"': "a",
    'export * as ns from "a"': "a",
    'export * as "a b" from "a"': "a",
    'export {a as "string name"} from "a"': "a",
    'export {default} from "a"': "a",
    "export {} from 'a'": "a",
    r'import "\x61\u0062\u{63}\n\
d"': "abc\nd",
    r'import "\ud83d\ude00"': "😀",
    "import 'it\u2028s'": "it\u2028s",
    'f()\nimport "a"': "a",
}
DYNAMIC: dict[str, str | None] = {
    'import("a")': "a",
    "import ( 'a' )": "a",
    "import(`a`)": "a",
    "import(`a\r\nb`)": "a\nb",
    r"import('a\'b')": "a'b",
    "import(/* chunk */ 'a' // end\n)": "a",
    "import/**/('a')": "a",
    'import("a", {with: {type: "json"}})': "a",
    "import(`a${b}`)": None,
    "import(a)": None,
    'import("a" + b)': None,
    'import(("a"))': None,
    "import([a, b](c, d))": None,
    'await import("a")': "a",
    '...import("a")': "a",
    'x = {...import("a")}': "a",
    'x = {y: import("a")}': "a",
    'x = {y: z * import("a")}': "a",
    'class A { x = import("a") }': "a",
    'class A { static { import("a") } }': "a",
    '`${`${import("a")}`}`': "a",
    'x = a ? import("a") : b': "a",
    'x = a ?.5 : import("a")': "a",
    'x = a?.b / import("a") / 2': "a",
    '(x) => import("a")': "a",
    'if (x) import("a")': "a",
    'a: import("a")': "a",
    'return import("a")': "a",
    'export default import("a")': "a",
    'function f() { import("a") }': "a",
    '{ import("a") }': "a",
    'switch (x) { case 1: import("a") }': "a",
    'a = 1. / import("a") / 2': "a",
    'a = 1_000n / import("a") / 2': "a",
}
META_URL = ("import.meta.url", "import . meta\n. url", "import/**/.meta?.url", "new URL('x', import.meta.url)")
NOTHING = (
    'a.import("x")',
    'a?.import("x")',
    'a . import("x")',
    'a./**/import("x")',
    'a\n.import("x")',
    "({import: 1})",
    "({import() {}})",
    "({a, import() {}})",
    "({get import() {}, set import(x) {}, async import() {}, *import() {}, async *import() {}})",
    "class A { import() {} static import() {} get import() {} *import() {} async *import() {} #import() {} }",
    "class A { x = 1\n import() {} }",
    'this.#import("x")',
    'import.source("x")',
    'import.defer("x")',
    'import source x from "y"',
    'import defer * as x from "y"',
    'reimport("x")',
    'éimport("x")',
    'important("x")',
    'importé("x")',
    '$import("x")',
    r'\u{69}mport("x")',
    "\"import('x')\"",
    '// import("x")',
    '/* import("x") */',
    '`import("x")`',
    '`\\${import("x")}`',
    '#!/usr/bin/node import("x")',
    '<!-- import("x")',
    '\n  --> import("x")',
    '/**/ --> import("x")',
    "import.meta.urls",
    "import.meta",
    "export {a, b as c}",
    "export default 1",
    'export let x = "y"',
)
#: Where a regular expression stands: what is inside is no import.
IS_EXPRESSION = (
    "if (x) {}",
    "while (x) {}",
    "for (;;) {}",
    "for (x of {}) ;",
    "with (x) {}",
    "do {} while (x)",
    "do; while (x) {}",
    "else {}",
    "{{ a }} {}",
    "if (x) {{ }} {}",
    "function f() {{ }} {}",
    "async function f() {{ }} {}",
    "class A {{ }} {}",
    "class A extends class {{}} {{ }} {}",
    "label: {{ }} {}",
    "switch (x) {{ case 1: {{ }} {} }}",
    "switch (x) {{ case y ? 1 : 2: ; default: {{ }} {} }}",
    "x = y => {{ }}\n{}",
    "x = {}",
    "x = y, {}",
    "x => {}",
    "x = [{}]",
    "x = (\n{})",
    "x ? {} : y",
    "x ? y : {}",
    "x ?? {}",
    "!{}",
    "x = `${{{}}}`",
    "return {}",
    "return\n{}",
    "typeof {}",
    "yield {}",
    "await {}",
    "x in {}",
    "#x in {}",
    "x instanceof {}",
    "case {}:",
    "throw {}",
    "void {}",
    "a;{}",
    "export default {}",
    "/* c */ {}",
    "// c\n{}",
    "x = // c\n{}",
)
IS_DIVISION = (
    "x",
    "x\n",
    "x /* c */",
    "x // c\n",
    "1",
    "1.",
    ".5",
    "a1.return",
    "a.of",
    "of",
    "this",
    '"a"',
    "`a`",
    "`a${b}`",
    "/a/",
    "(x)",
    "f(x)",
    "x[0]",
    "x = {}",
    "x = {a: {}}",
    "(x, {})",
    "x = function () {}",
    "x = async function () {}",
    "x = class {}",
    "x = class extends class {} {}",
    "x = class A { m() {} }",
    "x++",
    "x--",
    "a.if(x)",
    "a?.while(x)",
    "x ? y : {}",
    "switch (x) { case 1: y = a ? b : {} }[0]",
    "`${x = {}}`",
    "a.#b",
    "x = 0x1f",
)


@pytest.mark.parametrize(("source", "specifier"), STATIC.items())
def test_a_static_import_is_the_literal_with_its_quotes(source: str, specifier: str) -> None:
    """S-script-1."""
    script = scan(source)
    [reference] = script.references
    assert (reference.kind, reference.specifier) == (SpecifierKind.STATIC, specifier)
    literal = source[reference.start : reference.end]
    assert literal[0] == literal[-1] in "\"'"
    assert script.is_module and script.is_whole


@pytest.mark.parametrize(("source", "specifier"), DYNAMIC.items())
def test_a_dynamic_import_is_its_first_argument(source: str, specifier: str | None) -> None:
    """S-script-1."""
    script = scan(source)
    [reference] = script.references
    assert (reference.kind, reference.specifier) == (SpecifierKind.DYNAMIC, specifier)
    argument = source[reference.start : reference.end]
    assert argument == argument.strip() and not argument.startswith("/*") and "//" not in argument
    assert script.is_module == source.startswith("export")


@pytest.mark.parametrize("source", META_URL)
def test_the_url_of_a_module_is_found(source: str) -> None:
    """S-script-1."""
    script = scan(source)
    [reference] = script.references
    assert reference.kind is SpecifierKind.META_URL
    text = source[reference.start : reference.end]
    assert text.startswith("import") and text.endswith("url")
    assert script.is_module


@pytest.mark.parametrize("source", NOTHING)
def test_what_only_looks_like_an_import_is_none(source: str) -> None:
    """S-script-1."""
    script = scan(source)
    assert script.references == ()
    assert script.is_whole


@pytest.mark.parametrize("text", IS_EXPRESSION)
@pytest.mark.parametrize("expression", ['/import("no")/', r'/[/"\]]import("no")[`]/gu', "/[[a-z]--['/]]/v", r"/\//"])
def test_a_regular_expression_is_skipped(text: str, expression: str) -> None:
    """S-script-2."""
    source = text.format(expression) + '\n;import("yes")'
    assert [reference.specifier for reference in scan(source).references] == ["yes"]


@pytest.mark.parametrize("text", IS_DIVISION)
def test_a_division_is_none(text: str) -> None:
    """S-script-2."""
    assert [reference.specifier for reference in scan(f'{text} / import("yes") / 2').references] == ["yes"]


def test_references_are_in_the_order_of_the_source() -> None:
    """S-script-1."""
    source = 'import(import("a"), import("b")); import "c"; import.meta.url; export * from "d"'
    references = scan(source).references
    assert [reference.specifier for reference in references] == [None, "a", "b", "c", None, "d"]
    assert [reference.start for reference in references] == sorted(reference.start for reference in references)
    assert source[references[0].start : references[0].end] == 'import("a")'


def test_comments_of_pages_are_comments_in_classic_scripts_alone() -> None:
    """S-script-2."""
    assert scan('a <!-- import("no")\n--> import("no")').references == ()
    assert len(scan('import "a"; x = a<!--import("yes")').references) == 2
    assert len(scan('while (n-->0) import("yes")').references) == 1
    assert [reference.specifier for reference in scan('a<!--import("b")\nimport "c"').references] == ["b", "c"]


# == names ============================================================================================================

DECLARED = {
    'import top from "a"': "top",
    'import {top} from "a"': "top",
    'import {x as top, y as self} from "a"': "top self",
    'import {top as x} from "a"': "",
    'import * as top from "a"': "top",
    'import x, {location as top} from "a"': "top",
    'import top, * as self from "a"': "top self",
    "let top, self = 1": "top self",
    "const {a: top, self, b: {window}, ...frames} = x": "top self window frames",
    "let [top, , [self], ...frames] = x": "top self frames",
    "let {top: a, [self]: b, c = window, d = {frames}} = x": "",
    "let {a: top = 1, self = 2} = x": "top self",
    "class top {}": "top",
    "function top() {}": "top",
    "function* top() {}": "top",
    "async function top() {}": "top",
    "async function* top() {}": "top",
    "export default function top() {}": "top",
    "export default class top {}": "top",
    "export const top = 1, self = 2": "top self",
    "export function top() {}": "top",
    "var a = function () {}, top": "top",
    "var a = b\nvar top": "top",
    "let a = b\nc(), top": "",
    "let a = b,\n  top": "top",
    "let a = b\n  , top": "top",
    "let a = b +\n c, top": "top",
    "let a = () => {}\n(0, top)": "",
    "let a = 1 /*\n*/ b, top": "",
    "let a = b; c, top": "",
    "let a = (b, top), c = [d, self], e = f(g, window)": "",
    "let a = b ? c : d, top": "top",
    "if (x) { var top } else { var self }": "top self",
    "for (var top of x) { var self }": "top self",
    "for (var i = 0, top; i, self;) ;": "top",
    "for (let top of x) { let self }": "",
    "try { var top } catch (self) { var window }": "top window",
    "switch (x) { case 1: var top }": "top",
    "label: { var top }": "top",
    "{ let top; const self = 1; class window {} }": "",
    "(function () { var top; function self() {} })": "",
    "x = () => { var top }": "",
    "x = {a() { var top }, get b() { var self }}": "",
    "class A { a() { var top } static { var self } top = 1; self() {} }": "",
    "x = function top() {}; y = class self {}": "",
    "(function top() {}); !function self() {}()": "",
    "function f(top, self = 1) {}": "",
    "x = {top: 1, self: 2, window() {}}": "",
    "a.top = 1; top = 2; self; window()": "",
    "let = 1; let.top; var let, top": "top",
    "let\ntop": "top",
    r"let t\u006fp, \u{73}elf": "top self",
    "let topper, $top, topé, étop": "",
    "var {top} = x": "top",
    "a1.let = 1, top": "",
}


@pytest.mark.parametrize(("source", "names"), DECLARED.items())
def test_names_of_the_window_that_the_top_level_declares_are_found(source: str, names: str) -> None:
    """S-script-3."""
    assert scan(source).declared == frozenset(names.split())


ASSIGNED = (
    "location@ = 1",
    "location@=1",
    "location@ /* c */ = 1",
    "a = location@ = 1",
    "if (x) location@ = 1",
    "x => location@ = 1",
    "x => { location@ = 1 }",
    "f(a, location@ = 1)",
    "(location@ = 1)",
    "[location@ = 1]",
    "a[location@ = 1] = 2",
    "x = {a: location@ = 1}",
    "x = a ? location@ = 1 : location@ = 2",
    "f(location@ = 1, {a: [location@ = 2]})",
    "for (location@ = 1;;) ;",
    "class A { x = location@ = 1 }",
    "var a = 1\nlocation@ = 2",
    "var a = location@ = 2, b",
    "case 1: location@ = 1",
    "label: location@ = 1",
    "default: { location@ = 1 }",
    "`${location@ = 1}`",
    r"l\u006fcation@ = 1",
    "a = {location: 1}; location@ = 1",
    "a.location = 1; a?.location; a.\nlocation = 1; location@ = 2",
    "location == 1; location === 1; location += 1; location ||= 1; location != 1",
    "({location = 1} = x)",
    "[location = 1] = x",
    "[{a: location = 1}] = x",
    "({a: {b: [location = 1]}} = x)",
    "for ([location = 1] of x) ;",
    "class A { location = 1; static location = 2; #location = 3 }",
    "x = {location() {}}",
    # The rest binds the name.
    "location = 1; function f(location) {}",
    "location = 1; function location() {}",
    "location = 1; (class location {})",
    "location = 1; import {location} from 'a'",
    "location = 1; var location",
    "location = 1; { let a = 1, location }",
    "(location = 1) => 1; location = 2",
    "(a, {b: location = 1}) => 1; location = 2",
    "async (location) => 1; location = 2",
    "location => 1; location = 2",
    "({m(a, location) {}}); location = 2",
    "class A { m([location]) {} }; location = 2",
    "try {} catch ({location}) {} location = 2",
    "for (const location of x) location = 2",
)


@pytest.mark.parametrize("marked", ASSIGNED)
def test_assignments_to_location_are_found_where_nothing_binds_it(marked: str) -> None:
    """S-script-4."""
    parts = marked.split("@")
    expected = [sum(map(len, parts[: number + 1])) for number in range(len(parts) - 1)]
    assert list(scan("".join(parts)).location_assignments) == expected


# == bounds ===========================================================================================================


@pytest.mark.parametrize(
    "rest", ['"a', "'a\n'", "`a", "`${", "`${a", "/* a", "(", "[", "{", ")", "(]", "import(", 'import("b"', "x = /a\n("]
)
def test_a_source_that_ends_early_gives_what_came_before(rest: str) -> None:
    """S-script-5."""
    script = scan(f'import "a"; {rest}')
    assert not script.is_whole
    assert script.references[0] == ModuleReference(SpecifierKind.STATIC, 7, 10, "a")


def test_templates_in_templates_need_no_recursion() -> None:
    depth = 10_000
    assert depth > sys.getrecursionlimit()
    source = "`${" * depth + 'import("a")' + "}`" * depth
    script = scan(source)
    assert script.is_whole
    assert [reference.specifier for reference in script.references] == ["a"]


def test_a_scan_that_takes_too_long_ends() -> None:
    """S-script-5."""
    questions = 0

    def goes_on() -> bool:
        nonlocal questions
        questions += 1
        return questions < 3

    with pytest.raises(TookTooLong):
        scan("f(a);" * 100_000, goes_on=goes_on)
    assert questions == 3


def test_brackets_and_references_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-script-5."""
    assert not scan("(" * (javascript.NESTED_AT_MOST + 10)).is_whole
    monkeypatch.setattr(javascript, "FOUND_AT_MOST", 1_000)
    script = scan('import("a");' * 20_000)
    assert not script.is_whole
    assert 1_000 <= len(script.references) < 20_000


#: Pieces that would make a scan quadratic if a part of it were tried again and again.
HOSTILE = (
    "/[",
    "=/[ ",
    "=/a",
    '"',
    "'\\",
    "`",
    "`${",
    "<!--",
    "-->",
    "import",
    "import{a,",
    "import a,",
    "import{}",
    "import/**/",
    "export{",
    "export*",
    "let a=\n",
    "let a\n\n",
    "[location=1,",
    "[{location=1}",
    "({a:[location=1]})",
    "location/**/",
    "a?b:{",
    "a ",
    " \n",
    "1.",
    "\\u{61}",
    "a\\",
    "class ",
    "function ",
    "=>{",
    "}",
    "]",
)


def _steps(source: str) -> int:
    """Return how many tokens a scan stops at, in thousands."""
    questions = 0

    def goes_on() -> bool:
        nonlocal questions
        questions += 1
        return True

    scan(source, goes_on=goes_on)
    return questions


@pytest.mark.large
@pytest.mark.parametrize("piece", HOSTILE)
def test_the_steps_grow_with_the_length(piece: str) -> None:
    """S-script-5."""
    once = 40_000
    assert _steps(piece * once) <= once * len(piece) / 4_096 + 1


@pytest.mark.large
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_step_goes_over_the_source_again(piece: str) -> None:
    """S-script-5."""
    scan(piece * (400_000 // len(piece)))


@pytest.mark.large
def test_memory_is_that_of_the_open_brackets() -> None:
    source = 'f(a,[b],{c:"d"},`e${g}`);' * 12_000
    tracemalloc.start()
    scan(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000 < len(source)


# == made-up sources ==================================================================================================

_LEAVES = ("a", "1", '"import(1)"', "'\\''", "/[/`]'/g", "`}`", "a.import", "b / c / d", "x++", "/* ` */ a", "a // '\n")
_IMPORTS = ('import("m")', "import(`m`)", "import('m', {with: {}})", "import.meta.url")


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions round expressions."""
    return st.one_of(
        inner.map("({})".format),
        inner.map("[{}]".format),
        inner.map("`'${{{}}}/`".format),
        inner.map("{{a: {}}}".format).map("({})".format),
        inner.map("(() => {{ if (x) /'/.test({}) }})".format),
        inner.map("(function () {{ return {} }} / 2)".format),
        inner.map("(class {{ m() {{ {}\n}} }})".format),
        st.tuples(inner, inner).map(" / ".join),
        st.tuples(inner, inner).map(", ".join).map("f({})".format),
        st.tuples(inner, inner).map(lambda two: f"(x ? {two[0]} : {two[1]})"),
    )


_SOURCES = st.recursive(st.sampled_from(_LEAVES + _IMPORTS), _wrapped, max_leaves=12)


@given(st.lists(_SOURCES, max_size=5))
def test_imports_are_found_however_literals_are_nested(expressions: list[str]) -> None:
    """S-script-2."""
    source = ";\n".join(expressions)
    script = scan(source)
    assert script.is_whole
    assert len(script.references) == sum(source.count(text) for text in _IMPORTS)
    for reference in script.references:
        text = source[reference.start : reference.end]
        assert text in ('"m"', "`m`", "'m'", "import.meta.url")
        assert reference.specifier == (None if reference.kind is SpecifierKind.META_URL else "m")


_PIECES = (
    *"(){}[]`\"'/\\?:;,.*=<>!-+#@\n\u2028 \ufeffaé1",
    *("${", "=>", "...", "/*", "*/", "//", "<!--", "-->", "++", "?.", "\\u{61}", "\\u0061", "from", "as", "of", "in"),
    *("import", "export", "let", "const", "var", "class", "function", "async", "case", "default", "for", "if", "catch"),
    *("switch", "return", "static", "get", "meta", "url", "location", "top", "extends", "yield", "await", "'a'"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=60).map("".join) | st.text(max_size=60))
def test_nothing_that_a_source_holds_is_an_error(source: str) -> None:
    """S-script-5."""
    script = scan(source)
    starts = [reference.start for reference in script.references]
    assert starts == sorted(starts)
    for reference in script.references:
        assert 0 <= reference.start < reference.end <= len(source)
    assert script.declared <= GLOBALS
    for end in script.location_assignments:
        assert source[:end].endswith("location") or "\\" in source[:end]
