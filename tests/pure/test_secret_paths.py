"""What is logged has no token of a reader, no preview and no feed, however it was written."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from webarcfs.archive.model.errors import DatabaseDamaged, TookTooLong
from webarcfs.web.access_log import escaped
from webarcfs.web.answering import Answering, without_secrets

pytestmark = pytest.mark.pure

_SECRET = "InMzY3JldCI.aR-4_Q.x0"
_PATHS = (f"/~{_SECRET}/web/2020/http://e.org/", f"/s/{_SECRET}/web/2020/http://e.org/", f"/feed/{_SECRET}.atom")


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize(
    "form",
    [
        "{path}", "GET {path} HTTP/1.1", "http://room.example{path}?q=1", "/login?back={quoted}", "/login?back={twice}",
        "http://desk/login?a=b&back={quoted}&lang=de", "no such page: '{path}'", "/x?y={all}", "{all}", "{lower}",
    ],
)  # fmt: skip
def test_secrets_are_left_out_in_every_form(path: str, form: str) -> None:
    everything = "".join(f"%{byte:02X}" for byte in path.encode())
    quoted = quote(path, safe="")
    text = form.format(path=path, quoted=quoted, twice=quote(quoted), all=everything, lower=everything.lower())
    left = without_secrets(text)
    assert _SECRET not in left and _escaped(_SECRET) not in left.upper()
    assert "-" in left
    assert escaped(text) == without_secrets(text)


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


@given(st.data())
def test_any_character_may_be_escaped(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_PATHS))
    ways = ("{}", "%{:02x}", "%{:02X}", "%25{:02X}", "%2525{:02x}")
    written = "".join(
        char if (way := data.draw(st.sampled_from(ways))) == "{}" else way.format(ord(char)) for char in path
    )
    left = without_secrets(f"GET {written} HTTP/1.1")
    for _ in range(4):
        left = left.replace("%25", "%")
    assert "x0" not in left and "ecret" not in left


@pytest.mark.parametrize(
    "error", [RuntimeError(f"at {_PATHS[0]}"), DatabaseDamaged(f"at {_PATHS[2]}"), TookTooLong(_PATHS[2])]
)
def test_no_log_of_an_error_has_a_secret(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    def broken(*_: object) -> Response:
        raise ValueError(_PATHS[1])

    scope = {
        "type": "http",
        "method": "GET",
        "path": _PATHS[1],
        "server": ("r", 80),
        "scheme": "http",
        "headers": [],
        "query_string": b"",
    }
    answering = Answering(broken)
    assert answering.error_page(Request(scope), error).status_code >= 500
    asyncio.run(answering.close())
    said = [record.getMessage() + str(record.exc_text or record.exc_info or "") for record in caplog.records]
    assert len(said) == 2 and not any(_SECRET in text for text in said)
    assert "/s/-/web" in said[0] and "Traceback" in said[1]


def test_what_is_no_secret_stays() -> None:
    for text in ("/web/2020/http://e.org/a?b=%2Fc", "/snapshot/20200101T000000-p", "/feed", "/search?q=%7E", "/~/x"):
        assert without_secrets(text) == text
