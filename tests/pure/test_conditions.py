"""A condition in one piece: its parts, and its name in `.query/`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.archive.index.query import Condition, from_name, open_quote, parse, to_name
from webarcfs.archive.model.errors import BadCondition

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1", ("1", "", None)),
        ("title = 'x' ORDER BY path", ("title = 'x'", "path", None)),
        ("title = 'x'order  by path DESC limit 10", ("title = 'x'", "path DESC", 10)),
        ("ORDER BY crawlTime", ("", "crawlTime", None)),
        ("LIMIT 3", ("", "", 3)),
        ("title = 'x LIMIT 2 ORDER BY y' AND 1", ("title = 'x LIMIT 2 ORDER BY y' AND 1", "", None)),
        ("title = 'it''s ORDER BY' LIMIT 2", ("title = 'it''s ORDER BY'", "", 2)),
        ("1 ORDER/**/BY path -- LIMIT x", ("1", "path -- LIMIT x", None)),
        (
            "url IN (SELECT url FROM metadata ORDER BY url LIMIT x) ORDER BY length(title), path LIMIT 5",
            ("url IN (SELECT url FROM metadata ORDER BY url LIMIT x)", "length(title), path", 5),
        ),
        (") ORDER BY (1", (")", "(1", None)),
        ("borders = reorder by", ("borders = reorder by", "", None)),
        ("", ("", "", None)),
    ],
)
def test_order_and_limit_are_found_where_sql_has_them(text: str, parts: tuple[str, str, int | None]) -> None:
    assert parse(text) == Condition(*parts)


@pytest.mark.parametrize("text", ["LIMIT", "1 LIMIT -1", "1 LIMIT 2, 3", "1 LIMIT 2 OFFSET 1", "LIMIT 1 ORDER BY url"])
def test_a_limit_is_a_number(text: str) -> None:
    with pytest.raises(BadCondition, match="LIMIT"):
        parse(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mimeType = 'text%2Fhtml'", "mimeType = 'text/html'"),
        ("url = 'http:%2f%2Fe.org%2F'", "url = 'http://e.org/'"),
        ("title LIKE '%25%'", "title LIKE '%25%'"),
        ("title LIKE '%minutes%'", "title LIKE '%minutes%'"),
        ("url LIKE '%252F%'", "url LIKE '%2F%'"),
        ("url LIKE '%25252f%'", "url LIKE '%252f%'"),
        ("50 % 2", "50 % 2"),
    ],
)
def test_a_slash_is_written_percent_2f_and_nothing_else_is_escaped(name: str, text: str) -> None:
    assert from_name(name) == text


@given(st.text() | st.lists(st.sampled_from(["/", "%", "25", "2F", "2f", "a"])).map("".join))
def test_every_text_has_a_name(text: str) -> None:
    assert "/" not in to_name(text)
    assert from_name(to_name(text)) == text


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("mimeType = 'application", "'"),
        ("mimeType = 'application/pdf'", ""),
        ("title = 'it''s", "'"),
        ("title = 'it''", "'"),
        ("title = ''", ""),
        ('"url" = "x', '"'),
        ("""title = 'say "hello'""", ""),
        ("""title = "it's""", '"'),
        ("title = 'a' OR url LIKE '", "'"),
        ("1 -- it's", ""),
        ("1 /* it's", ""),
        ("title = 'a -- b", "'"),
        ("title = 'a /* b", "'"),
        ("[it's]", ""),
        ("[it's", ""),
        ("`it's", ""),
        ("", ""),
    ],
)
def test_within_which_quote_a_text_ends(text: str, quote: str) -> None:
    assert open_quote(text) == quote


@given(*[st.lists(st.sampled_from(["'", '"', "a", " ", "[", "]", "`", "--", "/*", "*/", "\n"])).map("".join)] * 2)
def test_what_follows_a_slash_is_judged_by_the_quote_alone(begun: str, more: str) -> None:
    quote = open_quote(begun)
    if quote:
        assert open_quote(f"{quote}/{more}") == open_quote(f"{begun}/{more}")


@given(st.text() | st.lists(st.sampled_from(["(", ")", "'", "ORDER BY", "LIMIT", " ", "7", "--", "/*"])).map("".join))
def test_any_text_has_its_parts(text: str) -> None:
    try:
        parts = parse(text)
    except BadCondition:
        return
    assert parts.where in text and parts.order_by in text
