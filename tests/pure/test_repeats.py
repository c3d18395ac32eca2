"""Which requests the long test of kills takes for repeated: those whose answers had come whole, and been put away."""

from __future__ import annotations

import hashlib

import pytest

from tests.soak.browser_kills import find_repeats
from tests.support.script_site import SentResponse

pytestmark = pytest.mark.pure


def sent(path: str, begin: float, end: float | None, *, body: bytes = b"", method: str = "GET") -> SentResponse:
    return SentResponse(
        method=method,
        host="spa.test",
        path=path,
        asked=body,
        agent="Chrome",
        connection=1,
        begin=begin,
        end=end,
        interim=b"",
        head=b"HTTP/1.1 200 OK\r\n\r\n",
        body=b"",
        size=0,
        digest=hashlib.sha256().hexdigest(),
    )


@pytest.mark.parametrize(
    ("responses", "killed", "repeats"),
    [
        pytest.param([sent("/a", 0, 1), sent("/b", 1, 2)], None, 0, id="no two of one URL"),
        pytest.param([sent("/a", 0, 1), sent("/a", 1, 2)], None, 1, id="twice without a kill"),
        pytest.param([sent("/a", 0, None), sent("/a", 9, 10)], 5, 0, id="cut by the kill"),
        pytest.param([sent("/a", 0, 6), sent("/a", 9, 10)], 5, 0, id="still being sent"),
        pytest.param([sent("/a", 0, 1), sent("/a", 9, 10)], 5, 0, id="the last that came whole"),
        pytest.param([sent("/a", 0, 1), sent("/b", 2, 3), sent("/a", 9, 10)], 5, 1, id="one that was put away"),
        pytest.param([sent("/a", 0, 1), sent("/a", 2, 3)], 5, 1, id="twice before the kill"),
        pytest.param([sent("/a", 5.1, 5.2), sent("/a", 8, 9)], 5, 0, id="sent before the kill, noticed after it"),
        pytest.param([sent("/a", 6, 7), sent("/a", 8, 9)], 5, 1, id="twice after the kill"),
        pytest.param([sent("/a", 0, 6), sent("/a", 7, 8), sent("/a", 9, 10)], 5, 1, id="three times"),
        pytest.param([sent("/events", 0, 1), sent("/events", 2, 3)], None, 0, id="not kept"),
        pytest.param(
            [sent("/p", 0, 1, body=b"1", method="POST"), sent("/p", 2, 3, body=b"2", method="POST")], None, 0,
            id="two bodies to one URL",
        ),
    ],
)  # fmt: skip
def test_repeats(responses: list[SentResponse], killed: float | None, repeats: int) -> None:
    assert len(find_repeats(responses, killed)) == repeats
