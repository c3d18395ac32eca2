"""Names of jobs, and of publications that nobody named."""

import pytest

from agent.crawl.job_folder import command_line_name, kind_of, named_after, publication_of
from webarcfs.archive.config import validators

pytestmark = pytest.mark.pure


def test_what_a_folder_is_called_tells_whose_it_is() -> None:
    assert (kind_of("20261121T030000-my-news"), publication_of("20261121T030000-my-news")) == ("my-news", "my-news")
    importing = "20261121T030000-my-news+1a2b3c4d"
    assert (kind_of(importing), publication_of(importing)) == ("my-news+1a2b3c4d", "my-news")


@pytest.mark.parametrize("text", ["www.example.org/a/../b", "", "-.x", "é" * 300, "a" * 300, "a" * 59 + "..b"])
def test_every_text_gives_a_name(text: str) -> None:
    """It becomes part of refs and folders."""
    name = named_after(text, "1a2b3c4d", "import")
    assert validators.name(name) == name and name.endswith("-1a2b3c4d")


def test_start_urls_name_a_crawl_in_any_order() -> None:
    one, two = "http://www.example.org/", "http://www.example.org/b"
    assert command_line_name([one, two])[-8:] == command_line_name([two, one])[-8:]
    assert command_line_name([one]) != command_line_name([one, two])
