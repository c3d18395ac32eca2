"""What a commit says (/Ar-8/, /Ar-8.1/)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.test_model import TAG
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CrawlMessage, parse_message

pytestmark = pytest.mark.pure


def test_the_message_of_a_crawl() -> None:
    assert str(CrawlMessage(TAG, "fcul", True, 7, ["ab", "cd"])) == (
        "2026-11-21T03:00:00@www.example.org\n"
        "\n"
        "Publication: fcul\n"
        "Complete: yes\n"
        "Sequence: 7\n"
        "Source: sha256:ab\n"
        "Source: sha256:cd\n"
    )


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,50}", fullmatch=True), st.booleans(), st.integers(1, 10**12))
def test_round_trip(publication: str, complete: bool, sequence: int) -> None:
    message = parse_message(str(CrawlMessage(TAG, publication, complete, sequence)))
    assert message.is_crawl
    assert (message.tag, message.publication, message.complete, message.sequence) == (
        TAG,
        publication,
        complete,
        sequence,
    )


def test_additions_are_under_the_tag_that_there_is() -> None:
    """/Ar-8.1/."""
    message = parse_message(f'{TAG}\n\nAdded: a/notes.txt\nAdded: "a/\\303\\251: b"\n')
    assert message.tag == TAG and not message.is_crawl and not message.complete and message.publication == ""
    assert message.all("Added") == ["a/notes.txt", '"a/\\303\\251: b"']
    with pytest.raises(Damaged, match="no Sequence"):
        _ = message.sequence


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_a_trailer_ends_at_its_newline_only(separator: str) -> None:
    """A name with another line separator must not pass for a crawl's trailers."""
    message = parse_message(f"{TAG}\n\nAdded: a/b{separator}Sequence: 5\n")
    assert not message.is_crawl


@pytest.mark.parametrize("text", ["", "\n", "Merge branch", "2026-11-21T03:00:00", f"x {TAG}"])
def test_other_messages_are_none_of_ours(text: str) -> None:
    with pytest.raises(Damaged):
        parse_message(text)


@pytest.mark.parametrize("trailers", ["Sequence: x", "Sequence: 1\nSequence: 2", "Sequence: -1", "Sequence: "])
def test_a_sequence_is_one_number(trailers: str) -> None:
    with pytest.raises(Damaged):
        _ = parse_message(f"{TAG}\n\n{trailers}\n").sequence
