"""Style sheets get other references, and keep every other byte."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.growth import is_linear
from tests.support.loaded_references import FORBIDDEN, of_sheet
from webarcfs.content.css_references import of_css
from webarcfs.content.references import LONGEST_BODY, Rewritten, Use
from webarcfs.content.rewriting.assembly import rewritten

pytestmark = pytest.mark.pure

#: What a hostile sheet is made of.
PARTS = (
    "url(", "URL( ", ")", "(", '"', "'", "\\", "\n", "\r\n", "\f", " ", "a", "x", "1", "-", "#", "@", "@import ",
    "@\\69mport ", "@namespace ", "image-set(", "-webkit-image-set(", "src(", "type(", "var(--x)", "/*", "*/", "/",
    "{", "}", ";", ",", "\\75 rl(", "u\\72l(", "\\\n", "\\29 ", '\\"', "é", "\0", "\1", "<!--", "rl(", "set(",
    "url(e3)", "url('e4')", "@import 'e5';", "calc(",
)  # fmt: skip


def new(sheet: str | bytes, charset: str = "utf-8", to: str = "/w") -> tuple[list[str], bytes]:
    """The references as `use text`, and the sheet with each turned into `to` and its number."""
    body = sheet.encode(charset) if isinstance(sheet, str) else sheet
    seen: list[str] = []

    def rewrite(use: Use, text: str) -> Rewritten:
        seen.append(f"{use} {text}")
        return Rewritten(f"{to}{len(seen)}")

    return seen, rewritten(body, of_css(body, charset), rewrite)


@pytest.mark.parametrize(
    ("sheet", "seen", "after"),
    [
        ("a { b: url(x.png) }", ["other x.png"], "a { b: url(/w1) }"),
        ("url( 'x' ) URL(\"y\")", ["other x", "other y"], "url( '/w1' ) URL(\"/w2\")"),
        ("@import 'x'; @IMPORT/**/url(y) z;", ["style x", "style y"], "@import '/w1'; @IMPORT/**/url(/w2) z;"),
        (
            'image-set("x" 1x type("t"), url(y) 2x), "no"',
            ["image x", "image y"],
            'image-set("/w1" 1x type("t"), url(/w2) 2x), "no"',
        ),
        ("src('x')", ["other x"], "src('/w1')"),
        # a variable may be any string, which nobody sees: the set is put out of force
        ("image-set(var(--x) 1x)", [], "x-image-set(var(--x) 1x)"),
        # what is no reference
        ("/* url(x) */ 'url(x)' myurl(x) #url(x) @url(x) url() url('')", [], None),
        ("@namespace svg url(http://e.org/); @namespace 'x'; @imported 'x';", [], None),
        ("url(a b) url(a'b) url('a\nb')", [], None),
        # escapes
        (r"\75 rl(x) u\72l('y') @\69mport 'z';", ["other x", "other y", "style z"], None),
        (r"url(a\)b\ c) url('\22\27')", ["other a)b c", "other \"'"], "url(/w1) url('/w2')"),
        ("url('a\\\nb')", ["other ab"], "url('/w1')"),
        ("url('\\61\n')", ["other a"], "url('/w1')"),  # the line's end belongs to the escape
        # ends that are missing
        ("url(x", ["other x"], "url(/w1"),
        ("url('x", ["other x"], "url('/w1"),
        ("@import 'x", ["style x"], "@import '/w1"),
    ],
)
def test_references_of_sheets(sheet: str, seen: list[str], after: str | None) -> None:
    found, out = new(sheet)
    assert found == seen
    if after is not None:
        assert out.decode() == after
    elif not seen:
        assert out.decode() == sheet


@pytest.mark.parametrize("sheet", ["url(x)", "url('x')", 'url("x")', "@import 'x'"])
def test_a_new_value_stays_in_its_place(sheet: str) -> None:
    to = "/a b'c\"d(e)f\\g\nh</style>é&amp;"
    _, out = new(sheet, to=to)
    assert list(of_sheet(out.decode())) == [f"{to}1"]
    assert out.isascii()
    assert b"<" not in out


def test_what_is_left_stays_as_it_is() -> None:
    body = b"\xff url(\\61) /* \xe9 */ url('b')"
    out = rewritten(body, of_css(body, "cp1252"), lambda _, text: Rewritten("/w") if text == "b" else None)
    assert out == body.replace(b"'b'", b"'/w'")


@pytest.mark.parametrize("charset", ["cp932", "shift_jis", "gbk", "gb18030", "big5"])
def test_second_bytes_of_characters_are_no_backslashes(charset: str) -> None:
    # 表, 誠 and 功 have 0x5C as their second byte in one of these each.
    character = {"cp932": "表", "shift_jis": "表", "gbk": "誠", "gb18030": "誠", "big5": "功"}[charset]
    assert character.encode(charset)[1:] == b"\\"
    sheet = f"a {{ content: '{character}' }} b {{ c: url('{character}') }} d {{ e: url({character}f) }}"
    seen, out = new(sheet, charset)
    assert seen == [f"other {character}", f"other {character}f"]
    assert out.decode(charset) == f"a {{ content: '{character}' }} b {{ c: url('/w1') }} d {{ e: url(/w2) }}"


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-32-le", "iso2022_jp", "utf-7"])
def test_encodings_that_are_not_over_ascii_become_utf_8(charset: str) -> None:
    raw = "url(a) '日本'".encode(charset)
    references = of_css(raw, charset)
    assert references.charset_sent == "utf-8"
    assert rewritten(raw, references, lambda *_: Rewritten("/w")).decode() == "url(/w) '日本'"


def test_a_sheet_beyond_the_limit_ends_there() -> None:
    body = b" " * LONGEST_BODY + b"url(x)"
    references = of_css(body, "utf-8")
    assert references.is_cut
    assert len(rewritten(body, references, lambda *_: None)) == LONGEST_BODY


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
@example("image-set(@\\url('e4')var(--x)")
@example("src(calc(@import 'e5';")
@example("\0URL( @import'\0")
@example("@\\69mport '\\75\n")
def test_nothing_that_a_browser_reads_slips_through(sheet: str) -> None:
    _, out = new(sheet)
    assert [each for each in of_sheet(out.decode()) if not each.startswith("/w")] == []


@given(st.binary(max_size=200), st.sampled_from(["utf-8", "cp932", "gb18030", "big5", "utf-16-le", "hz", "nonsense"]))
def test_any_bytes_are_a_sheet(body: bytes, charset: str) -> None:
    references = of_css(body, charset)
    rewritten(body, references, lambda *_: Rewritten("/w"))
    if references.charset_sent != "utf-8":
        left = rewritten(body, references, lambda *_: None)
        assert left.replace(b"x-", b"") == body.replace(b"x-", b"")


@pytest.mark.large
@pytest.mark.parametrize(
    "part",
    ["url(", "url('", "\\", "\\a", "image-set(", "image-set(var(", "image-set('a'", "@import", "@import/*",
     "@namespace ", "/*", "'", "(", "a\\", "url(a ", "url(\\", "-", "\\\n"],
)  # fmt: skip
def test_hostile_sheets_take_linear_time(part: str) -> None:
    def seconds(size: int) -> float:
        body = b"a{b:" + part.encode() * (size // len(part))
        begin = time.process_time()
        rewritten(body, of_css(body, "utf-8"), lambda *_: Rewritten("/w"))
        return time.process_time() - begin

    assert is_linear(seconds, 10_000)


def test_the_forbidden_is_seen_by_the_test_itself() -> None:
    assert list(of_sheet("image-set(var(--x) 1x)")) == [FORBIDDEN]
    assert list(of_sheet("url(a) url('b') @import 'c'; \\75rl(d)")) == ["a", "b", "c", "d"]
