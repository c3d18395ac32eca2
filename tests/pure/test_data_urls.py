"""Frames whose document stands in their address: it is rewritten as a page is, and its type is read as browsers do."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.content.references import Rewritten, Use
from webarcfs.content.rewriting import data_urls
from webarcfs.export.static_site import SiteTargets as StaticTargets
from webarcfs.room.replay.rewriting import ReplayedPage, ReplayTargets

pytestmark = pytest.mark.pure

LIVE = "http://live.test/x"
LINK = f"<a href={LIVE}>x</a>"
_XML = f'<r xmlns:h="http://www.w3.org/1999/xhtml"><h:a href="{LIVE}">x</h:a></r>'
_SVG = f'<svg xmlns="http://www.w3.org/2000/svg"><a href="{LIVE}"><text>x</text></a></svg>'


def shown(raw: str) -> tuple[str, bytes] | None:
    """The type and the body of what a frame shows in place of a reference; None: the reference stays."""

    def rewrite(use: Use, written: str) -> Rewritten | None:
        return Rewritten(f"/w/{use}/{len(written)}", (("target", "_top"),) if use is Use.LINK else ())

    found = data_urls.in_a_frame(raw, rewrite, "http://room")
    if found is None:
        return None
    said, _, body = found.partition(",")
    return said, b64decode(body) if said.endswith(";base64") else unquote_to_bytes(body)


@pytest.mark.parametrize(
    "address",
    [
        "data:text/html,{}", "DATA:TEXT/HTML,{}", " \n data:text/html,{}", "da\nta:te\txt/html,{}",
        "data: text/html ,{}", "data:text/html;charset=utf-8,{}", "data:text/html ; x=y,{}", "data:text/html;,{}",
        "data:text/html;charset=\"utf-8\",{}", "data:text/html;base64;x,{}", "\x00data:text/html,{}",
    ],
)  # fmt: skip
def test_a_page_in_an_address_is_rewritten_however_its_type_is_spelled(address: str) -> None:
    for body in (LINK, quote(LINK)):
        assert shown(address.format(body)) == (
            "data:text/html;charset=utf-8;base64", b"<a href=http://room/w/link/18 target=\"_top\">x</a>"
        )  # fmt: skip


@pytest.mark.parametrize("spelling", ["base64", "BASE64", " base64 ", "charset=utf-8;base64"])
def test_a_page_in_base64_is_rewritten(spelling: str) -> None:
    coded = b64encode(LINK.encode()).decode()
    for body in (coded, coded.rstrip("="), f"{coded[:5]} {coded[5:]}", coded.replace("=", "%3D")):
        found = shown(f"data:text/html;{spelling},{body}")
        assert found is not None and b"live.test" not in found[1] and b"/w/link" in found[1]
    assert data_urls.in_a_frame(f"data:text/html;{spelling},{coded[:5]}", lambda *_: None) == data_urls.NOTHING


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/xml", _XML), ("application/xml", _XML), ("application/x+xml", _XML), ("text/xsl", _XML),
        ("image/svg+xml", _SVG), ("application/xhtml+xml", _XML), ("application/atom+xml", _XML),
    ],
)  # fmt: skip
def test_xml_in_an_address_is_rewritten(kind: str, body: str) -> None:
    found = shown(f"data:{kind},{quote(body)}")
    assert found is not None and found[0] == f"data:{kind};charset=utf-8;base64"
    assert b"live.test" not in found[1] and b"/w/link" in found[1]


def test_a_charset_of_its_own_is_read_and_leads_to_utf_8() -> None:
    page = f"<p>\u00e4</p>{LINK}".encode("utf-16-le")
    found = shown(f"data:text/html;charset=utf-16le,{quote(page)}")
    assert found is not None and "\u00e4".encode() in found[1] and b"live.test" not in found[1]
    sent = quote("<p>\u0436\u0436\u0436</p>".encode("koi8-r"))
    found = shown(f"data:text/html;charset=koi8-r,{sent}")
    assert found is not None and found[1].decode() == "<p>\u0436\u0436\u0436</p>"


@pytest.mark.parametrize(
    "address",
    [
        "data:,x", "data:text/plain,<a>", "data:text/plain;charset=utf-8;base64,PGE+", "data:image/png;base64,iVBO",
        "data:;charset=utf-8,x", "data:;base64,PGE+", "about:blank", "ABOUT:blank#x", "data:video/mp4,x",
    ],
)  # fmt: skip
def test_what_has_no_links_stays(address: str) -> None:
    assert shown(address) is None


@pytest.mark.parametrize("address", ["data:texthtml,{}", "data:text/ht ml,{}", "data:text%2Fhtml,{}", "data:/html,{}"])
def test_what_is_no_type_is_text_and_says_so(address: str) -> None:
    assert shown(address.format(LINK)) == ("data:text/plain;charset=us-ascii;base64", LINK.encode())


@pytest.mark.parametrize("kind", ["application/pdf", "multipart/related", "message/rfc822", "unknown/unknown", "a/b"])
def test_what_could_have_links_and_cannot_be_rewritten_is_a_word(kind: str) -> None:
    found = shown(f"data:{kind},{LINK}")
    assert found is not None and found[0] == "data:text/plain;charset=utf-8"
    assert kind.encode() in found[1] and b"live.test" not in found[1]


@pytest.mark.parametrize("kind", ["application/json", "application/geo+json", "application/javascript"])
def test_what_is_shown_as_text_is_sent_as_text(kind: str) -> None:
    assert shown(f"data:{kind},{LINK}") == ("data:text/plain;base64", LINK.encode())


@pytest.mark.parametrize(
    "address", ["blob:http://live.test/1", "filesystem:http://live.test/x", "about:srcdoc", "about:config", "data:x"]
)
def test_what_nothing_can_be_behind_is_nothing(address: str) -> None:
    assert data_urls.in_a_frame(address, lambda *_: None) == data_urls.NOTHING


def test_frames_in_it_show_nothing_and_relative_links_stay_dead() -> None:
    inner = quote(f"data:text/html,{quote(LINK)}")
    found = shown(f"data:text/html,<iframe src='{inner}' srcdoc='x'></iframe><a href=y>y</a><a href=%23z>z</a>")
    assert found is not None
    assert found[1] == b"<iframe src='about:blank' x-srcdoc='x'></iframe><a href=y>y</a><a href=#z>z</a>"
    based = shown("data:text/html,<base href=http://live.test/><a href=y>y</a>")
    assert based is not None and b"live.test" not in based[1] and b"href=y" not in based[1]


def test_without_an_origin_links_of_it_are_dead() -> None:
    def rewrite(use: Use, _: str) -> Rewritten:
        return Rewritten("../w", (("target", "_top"), ("was", "x")) if use is Use.LINK else ())

    found = data_urls.in_a_frame(f"data:text/html,<a target=_top href={LIVE}>x</a><img src={LIVE}>", rewrite)
    assert found is not None
    assert b64decode(found.partition(",")[2]) == b'<a target=_self href=# was="x">x</a><img src=data:,>'


def _replay(use: Use, raw: str) -> str | None:
    place = ReplayedPage(url="http://e.org/", digits="20200101000000", charset="utf-8", room="", prefix="",
                  digits_of=lambda _: None)  # fmt: skip
    found = ReplayTargets(place).of(use, raw)
    return None if found is None else found.value


def _static(use: Use, raw: str) -> str | None:
    found = StaticTargets("http://e.org/", "e.org/index.html", "utf-8", lambda _: None, "", has_attributes=True)
    new = found.of(use, raw)
    return None if new is None else new.value


@pytest.mark.parametrize("of", [_replay, _static])
@pytest.mark.parametrize("use", [Use.FRAME, Use.OBJECT])
def test_frames_and_objects_of_room_and_folder_lead_nowhere_else(of: object, use: Use) -> None:
    assert callable(of)
    found = of(use, f" Data:text/HTML ,{LINK}<meta http-equiv=refresh content='0;url={LIVE}'>")
    body = b64decode(found.partition(",")[2])
    references = re.findall(rb"""(?:href|url)="?([^ "'>]+)""", body.replace(b"data-webarc-href", b"was"))
    assert references == [b"#", b"#"]
    assert of(use, "data:image/png,x") is None
    assert of(use, "javascript:x") == of(use, "blob:http://live.test/1") == "about:blank"
    assert of(Use.IMAGE, f"data:image/svg+xml,{_SVG}") is None


@given(st.text(max_size=60), st.sampled_from(["data:text/html,", "data:text/html;base64,", "data:", "blob:", "about:"]))
def test_no_address_raises(rest: str, begin: str) -> None:
    found = data_urls.in_a_frame(begin + rest, lambda *_: None)
    assert found is None or found.startswith(("data:", "about:blank"))


def test_what_is_inert_is_no_markup() -> None:
    for kind in ("text/plain", "image/png", "video/mp4", "text/css", "font/woff2", "application/ogg"):
        assert data_urls.is_inert(kind) and not data_urls.is_markup(kind)
        assert data_urls.as_text(kind) == kind
    for kind in ("text/html", "image/svg+xml", "application/pdf", "audio/mpegurl", "message/rfc822", "", "x"):
        assert not data_urls.is_inert(kind) and data_urls.as_text(kind) is None
