"""Which MIME types a filter or a profile keeps (/Fi-4/, seed 3)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agent.crawl.scope import is_wanted
from agent.filters.mime import keep, settings
from webarcfs.archive.config.settings import Profile

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("include", "exclude", "mime_type", "kept"),
    [
        ((), (), "image/png", True),
        (("text/html",), (), "text/html", True),
        (("text/html",), (), "TEXT/HTML", True),
        (("text/html",), (), "text/html5", False),
        (("text/html",), (), "image/png", False),
        (("text/*",), (), "text/css", True),
        (("text/*", "image/*"), ("image/png",), "image/png", False),
        (("text/*", "image/*"), ("image/png",), "image/gif", True),
        ((), ("image/*",), "image/gif", False),
        ((), ("image/*",), "text/html", True),
        (("*/*+xml",), (), "image/svg+xml", True),
        (("*/*+xml",), (), "image/svg-xml", False),
        (("application/x.y",), (), "application/xzy", False),  # a dot is a dot
        (("*",), ("*",), "text/html", False),
    ],
)
def test_wanted(include: tuple[str, ...], exclude: tuple[str, ...], mime_type: str, kept: bool) -> None:
    assert is_wanted(mime_type, Profile(include=include, exclude=exclude)) is kept


@dataclass
class _Unknown:
    @property
    def mime_type(self) -> str:
        raise LookupError("it was looked at")


def test_a_type_is_not_asked_for_where_all_are_kept() -> None:
    assert keep(_Unknown(), Profile())
    with pytest.raises(LookupError):
        keep(_Unknown(), Profile(exclude=("text/*",)))


def test_every_fault_of_its_file_is_told() -> None:
    assert settings({"include": ["text/*"]}) == Profile(include=("text/*",))
    with pytest.raises(ValueError, match="inlcude: there is no such setting") as told:
        settings({"inlcude": ["text/*"], "exclude": ["png"], "include": "text/html"})
    assert [line.partition(":")[0] for line in str(told.value).splitlines()] == ["inlcude", "include", "exclude"]
