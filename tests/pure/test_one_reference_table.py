"""What the crawl finds in a document is what the room rewrites in it: both read one table (S-page-1)."""

from __future__ import annotations

import html

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webarcfs.content.css_references import of_css
from webarcfs.content.outlinks import Link, links_of, resolver
from webarcfs.content.reference_table import (
    LAZY,
    LAZY_TAGS,
    LINK_ATTRIBUTES,
    MOST_INNER,
    PRESENTATION,
    REQUISITE_RELS,
    SRCSETS,
    UNFOLLOWED,
    LazyTarget,
    LinkPurpose,
    may_have_background,
)
from webarcfs.content.references import Rewritten, Use
from webarcfs.content.rewriting.assembly import rewritten
from webarcfs.content.rewriting.html_references import of_html

pytestmark = pytest.mark.pure

URL = "http://e.org/a/page.html"
#: Uses that only a person's deed leads to, and no page needs.
_NO_LOADING = (Use.LINK, Use.FORM, Use.REFRESH, Use.BASE, Use.TARGET)


def crawled(body: str, mime_type: str) -> set[str]:
    """The URLs that the crawl takes for a part of the document."""
    links = links_of(body.encode(), URL, mime_type, "utf-8")
    return {link.url for link in links if link.kind is LinkPurpose.REQUISITE}


def shown(body: str, mime_type: str) -> set[str]:
    """The URLs that the room leads into itself, of what a browser loads by itself."""
    raw = body.encode()
    is_xml = mime_type != "text/html"
    references = of_css(raw, "utf-8") if mime_type == "text/css" else of_html(raw, "utf-8", is_xml=is_xml)
    base = resolver(URL, "utf-8")(references.base) if references.base else None
    resolve = resolver(base or URL, "utf-8")
    seen: set[str] = set()

    def rewrite(use: Use, text: str) -> Rewritten:
        url = resolve(text.partition("#")[0].strip())
        if use not in _NO_LOADING and url:
            seen.add(url)
        return Rewritten("/w")

    rewritten(raw, references, rewrite)
    return seen


# --- documents

NAMES = st.sampled_from(
    [f"n{number}.png" for number in range(20)] + ["/m.png", "//f.org/x", "o p.png", "q,r.png", "#s"]
)
VALUES = st.builds(html.escape, NAMES)


@st.composite
def css(draw: st.DrawFn) -> str:
    """Declarations and rules, each with references."""
    one, two = draw(NAMES), draw(NAMES)
    return draw(
        st.sampled_from(
            [
                f"a{{background:url('{one}')}}",
                f'a{{background:URL( "{one}" ), url("{two}")}}',
                f"a{{background:image-set('{one}' 1x, url('{two}') 2x)}}",
                f'a{{background:-webkit-image-set("{one}" type("image/png") 1x)}}',
                f"@import '{one}' layer(a) supports(b:c) print;",
                f"@import url('{one}');@import/**/\"{two}\";",
                f"@font-face{{src:local(x),url('{one}') format('woff2')}}",
                f"/* url({two}) */ a{{b:src('{one}')}}",
                f"@namespace url(http://n.org/);a::after{{content:'url({two})'}}",
                f"a{{--b:url('{one}');c:cross-fade(url('{two}'),red)}}",
                f"a{{b:url({one.replace(' ', chr(92) + ' ')})}}",
            ]
        )
    )


@st.composite
def elements(draw: st.DrawFn, depth: int = 0) -> str:  # noqa: PLR0911 # one for each kind
    """An element of the table, or another that has references."""
    value = draw(VALUES)
    kind = draw(st.integers(0, 9))
    if kind <= 2:
        row = draw(st.sampled_from([row for row in LINK_ATTRIBUTES if row.kind is LinkPurpose.REQUISITE]))
        return f'<{row.tag} {row.attribute}="{value}"></{row.tag}>'
    if kind == 3:
        tag, names = draw(st.sampled_from(sorted(SRCSETS.items())))
        return f'<{tag} {names[0]}="{value.replace(" ", "%20")} 1x, {draw(VALUES).replace(" ", "%20")} 2x">'
    if kind == 4:
        name, target = draw(st.sampled_from([item for item in LAZY.items() if item[1] is not LazyTarget.STYLE]))
        tag = draw(st.sampled_from(sorted(LAZY_TAGS[target] - {"input"})))
        return f'<{tag} {name}="{value.replace(" ", "%20")}">'
    if kind == 5:
        rel = draw(st.sampled_from(sorted(REQUISITE_RELS - {"modulepreload"})))
        return f'<link rel="{rel}" href="{value}">'
    if kind == 6:
        name = draw(st.sampled_from(PRESENTATION))
        declared = draw(css().filter(lambda sheet: "@" not in sheet))  # in an attribute, no rule of this kind counts
        return f'<p {name}="{html.escape(declared)}">'
    if kind == 7:
        return f"<style>{draw(css())}</style>"
    if kind == 8 and depth <= MOST_INNER:
        return f'<iframe srcdoc="{html.escape(draw(elements(depth + 1)))}"></iframe>'
    other = [
        '<input type=IMAGE src="{}">', '<object data="{}" codebase=c></object>', '<applet archive="{}"></applet>',
        '<object><param name=Movie value="{}"></object>', '<picture><source srcset="{}"></picture>', '<base href="{}">',
        '<noscript><img src="{}"></noscript>', '<template><img src="{}"></template>', '<p class="{}">x</p>',
    ]  # fmt: skip
    return draw(st.sampled_from(other)).format(value.replace(" ", "%20").replace(",", "%2C"))


@given(st.lists(elements(), max_size=6).map("".join))
@example("<style>a{background:image-set('x' 1x)}</style>")
@example("<iframe srcdoc='<base href=/c/><img src=x>'></iframe><img src=y>")
@example("<base href=/b/><iframe srcdoc='<img src=x>'></iframe>")
def test_pages(page: str) -> None:
    page = f"<!doctype html><body>{page}"
    assert crawled(page, "text/html") == shown(page, "text/html")


@given(st.lists(css(), max_size=8).map("\n".join))
def test_sheets(sheet: str) -> None:
    assert crawled(sheet, "text/css") == shown(sheet, "text/css")


@given(st.text(alphabet="url('\")image-st@por;,{}\\ /*x\n", max_size=120))
def test_any_sheet(sheet: str) -> None:
    assert crawled(sheet, "text/css") == shown(sheet, "text/css")


@given(st.lists(st.tuples(st.sampled_from(["image", "use", "feImage", "script"]), VALUES), max_size=5), css(), VALUES)
def test_drawings(drawn: list[tuple[str, str]], sheet: str, instructed: str) -> None:
    inner = "".join(f'<{tag} xlink:href="{value}"/>' for tag, value in drawn)
    page = (
        f'<?xml-stylesheet href="{html.escape(instructed)}"?><svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink"><style>{html.escape(sheet, quote=False)}</style>{inner}</svg>'
    )
    if "<" in sheet or "&" in instructed:
        return
    # The room takes xlink:href of an element that no table names for a link, and so does the crawl.
    assert crawled(page, "image/svg+xml") == shown(page, "image/svg+xml")


@pytest.mark.parametrize("name", sorted(name for name, target in LAZY.items() if target is LazyTarget.STYLE))
@pytest.mark.parametrize("value", ["/x.png", "url(/x.png)"])
def test_backgrounds(name: str, value: str) -> None:
    """A lazy background is a part of the page for the crawl, and the room shows it."""
    page = f'<!doctype html><div {name}="{value}">x</div>'
    assert crawled(page, "text/html") == shown(page, "text/html") == {"http://e.org/x.png"}


def test_no_attribute_is_both_followed_and_not() -> None:
    followed = {(row.tag, row.attribute) for row in LINK_ATTRIBUTES}
    assert not followed & {(tag, name) for tag, names in UNFOLLOWED.items() for name in names}
    assert Link("http://e.org/", LinkPurpose.LINK).named == ""


@pytest.mark.parametrize("name", [name for name, target in LAZY.items() if target is LazyTarget.STYLE])
def test_no_lazy_background_is_passed_over(name: str) -> None:
    assert may_have_background(f"<p {name}='/a.png'>".encode())
    assert not may_have_background(b"<p data-bs-toggle='has-background' style='background:red'>")
