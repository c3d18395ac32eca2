"""Replay over HTTP: which state answers, where references lead, which bytes stay, what browsers are told."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Answer, Page, Served, digits, published, recorded, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET, CommitTag
from webarcfs.web import limits
from webarcfs.web.ranges import BodyRange, part

pytestmark = pytest.mark.store

DOMAIN, OTHER = "www.example.org", "img.example.org"
HOME = f"http://{DOMAIN}/"
FIRST = datetime(2020, 1, 1, 12, tzinfo=CET)
TIMES = [FIRST + timedelta(days=10 * each) for each in range(3)]
PDF = b"%PDF-1.4\n" + bytes(range(256)) * 9_000
LINKS = b"""<!DOCTYPE html><html><head><title>Home</title><base target=_blank><link rel=stylesheet href="/s.css"></head>
<body style="background:url('b.png')"><a id=own href="b.html#part">b</a> <a id=ext href='http://elsewhere.example/x?y=1&amp;z=2#f'>x</a>
<a id=mail href=mailto:a@example.org>m</a> <a id=print href="javascript:print()">p</a> <a id=view href="/print/b.html">v</a>
<a id=left href="/mirror/x">l</a> <a id=here href="#part">h</a> <a id=other href="http://img.example.org/page">o</a>
<form id=search action="/search?x=1" method=get><input name=q></form> <form id=jump action=/go><input name=to></form>
<form id=mailform action=/send method=post></form>
<img id=near src="http://img.example.org/a.png" srcset="c.png 1x, d.png 2x"> <img id=gone src=gone.png> tail</body></html>"""
SETTINGS = {
    "publication": {
        "name": "p",
        "rule": [
            {"on": "form", "match": "www.example.org/search*", "does": "search", "term": "q"},
            {"on": "form", "match": "/go", "does": "select-page", "term": "to"},
            {"on": "link", "match": "/print/", "does": "notice", "text": "the print view is not here"},
        ],
        "exclude": [{"match": "www.example.org/mirror/*", "reason": "appraised in 2020"}],
    }
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("replay"))
    png = Page(b"\x89PNG one", "image/png")
    first = {
        HOME: Page(LINKS), f"{HOME}b.html": Page(b"<p>b"), f"{HOME}s.css": Page(b"p{background:url(b.png)}", "text/css"),
        f"{HOME}b.png": png, f"{HOME}gone.png": png, f"{HOME}doc.pdf": Page(PDF, "application/pdf"),
        f"{HOME}folder/": Page(b"<p>folder"), f"{HOME}caf%C3%A9?q=%2F&r=a+b": Page(b"<p>coffee"),
    }  # fmt: skip
    published(made, DOMAIN, first, TIMES[0], state=None, redirects={f"{HOME}loop": f"{HOME}pool", f"{HOME}pool": f"{HOME}loop",
                                                                      f"{HOME}self": f"{HOME}self", f"{HOME}old": f"{HOME}b.html#x"})  # fmt: skip
    other = published(made, OTHER, {f"http://{OTHER}/a.png": png, f"http://{OTHER}/page": Page(b"<p>o")}, TIMES[0] + timedelta(hours=1),
                      state=None)  # fmt: skip
    mine = published(made, DOMAIN, {f"{HOME}b.html": Page(b"<p>second b"), f"{HOME}gone.png": None}, TIMES[1])
    assert mine
    recorded(made, "20200101T120000-p", "p", [CommitTag(TIMES[0], DOMAIN), other], RecordState.RELEASED)
    Catalogue(made).save([], "test", "settings", files={"publications/p.json": json.dumps(SETTINGS).encode()})
    recover(made)
    return made


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive, two_origins=True) as found:
        yield found


AT = [digits(each) for each in TIMES]


def page(room: Served, url: str, at: int = 0, modifier: str = "mp_") -> Answer:
    return room.get(f"/web/{AT[at]}{modifier}/{url}", replay=True)


def href(room: Served, css: str, attribute: str = "href") -> str:
    found = LexborHTMLParser(page(room, HOME).body).css_first(css)
    assert found is not None
    return found.attributes[attribute] or ""


def test_bytes_outside_of_references_stay(room: Served) -> None:
    body = page(room, HOME).body
    assert body.startswith(b"<!DOCTYPE html><html><head><title>Home</title><base target=")
    assert body.endswith(b" tail</body></html>")
    sent = page(room, HOME, modifier="id_")
    assert sent.body == LINKS
    assert sent.headers["content-disposition"] == "attachment", "a browser that opens it would follow its links"
    assert page(room, f"{HOME}b.html").body == b"<p>b"


def test_links_stay_in_their_snapshot(room: Served) -> None:
    assert href(room, "#own") == f"{room.origin}/web/{AT[0]}/{HOME}b.html#part"
    assert href(room, "#own", "target") == "_top"
    assert href(room, "#here") == "#part"
    assert page(room, f"{HOME}b.html", 0).body == b"<p>b"
    assert page(room, f"{HOME}b.html", 1).body == b"<p>second b"
    # The other host's snapshot of the same record has another time.
    later = digits(TIMES[0] + timedelta(hours=1))
    assert href(room, "#other") == f"{room.origin}/web/{later}/http://{OTHER}/page"
    assert href(room, "#near", "src") == f"/web/{later}im_/http://{OTHER}/a.png"


def test_links_out_of_the_archive_lead_to_a_notice(room: Served) -> None:
    notice = href(room, "#ext")
    assert notice.startswith(
        f"{room.origin}/notice/external?url=http%3A%2F%2Felsewhere.example%2Fx%3Fy%3D1%26z%3D2%23f"
    )
    assert href(room, "#ext", "data-webarc-href") == "http://elsewhere.example/x?y=1&z=2#f"
    shown = room.get(notice.removeprefix(room.origin))
    tree = LexborHTMLParser(shown.body)
    assert "http://elsewhere.example/x?y=1&z=2#f" in shown.text.replace("&amp;", "&")
    assert [node for node in tree.css("a") if (node.attributes.get("href") or "").startswith("http")] == []
    assert tree.css("meta[http-equiv]") == []
    assert tree.css_first(f"a[href='/web/{AT[0]}/{HOME}']") is not None
    assert "/notice/external?url=mailto%3Aa%40example.org" in href(room, "#mail")
    assert "/notice/function?url=javascript" in href(room, "#print")


def test_a_rule_leads_a_print_view_to_a_notice(room: Served) -> None:
    notice = href(room, "#view")
    assert "/notice/function" in notice
    assert "the print view is not here" in room.get(notice.removeprefix(room.origin)).text


def test_forms_send_nothing(room: Served) -> None:
    action = href(room, "#mailform", "action")
    assert action.startswith(f"{room.origin}/notice/form/")
    assert room.get(action.removeprefix(room.origin)).status == 200


def test_a_rule_makes_a_search_of_a_form(room: Served) -> None:
    action = href(room, "#search", "action").removeprefix(room.origin)
    answer = room.get(f"{action}?q=two+words")
    assert answer.status == 302
    assert answer.headers["location"] == "/search?q=two+words&from=20200101T120000-p"


def test_a_form_that_chooses_a_page_works(room: Served) -> None:
    action = href(room, "#jump", "action").removeprefix(room.origin)
    assert room.get(f"{action}?to=/b.html").headers["location"] == f"/web/{AT[0]}/{HOME}b.html"


def test_what_an_appraisal_left_out_says_why(room: Served) -> None:
    answer = room.get(href(room, "#left").removeprefix(room.origin))
    assert answer.status == 404
    assert "appraised in 2020" in answer.text


def test_a_missing_page_is_a_page_of_the_archive_with_the_versions_beside_it(room: Served) -> None:
    answer = room.get(f"/web/{AT[1]}/{HOME}gone.png")
    assert answer.status == 404
    assert f"/web/{AT[0]}/{HOME}gone.png" in answer.text


def test_what_a_page_embeds_comes_from_the_state_nearest_in_time(room: Served) -> None:
    answer = page(room, f"{HOME}gone.png", 1, "im_")
    assert answer.headers["location"] == f"/web/{AT[0]}im_/{HOME}gone.png"
    assert page(room, f"{HOME}gone.png", 1, "mp_").status == 404


def test_redirects_lead_on_in_the_archive_and_loops_end(room: Served) -> None:
    answer = room.get(f"/web/{AT[0]}/{HOME}old")
    assert (answer.status, answer.headers["location"]) == (301, f"/web/{AT[0]}/{HOME}b.html#x")
    for name in ("loop", "pool", "self"):
        assert page(room, f"{HOME}{name}").status == 404, name


def test_a_folder_without_its_slash_is_found(room: Served) -> None:
    assert room.get(f"/web/{AT[0]}/{HOME}folder").headers["location"] == f"/web/{AT[0]}/{HOME}folder/"


def test_urls_are_taken_as_they_were_sent(room: Served) -> None:
    for spelling in ("caf%C3%A9?q=%2F&r=a+b", "caf%c3%a9?q=%2F&r=a+b"):
        path = f"/web/{AT[0]}id_/{HOME}{spelling}"
        assert room.get(path, replay=True).body == b"<p>coffee", spelling
    assert room.get(f"/web/{AT[0]}id_/{HOME}caf%C3%A9?q=/&r=a+b", replay=True).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/web/", "/web/2020", "/web/2020/", "/web/20200101110000/javascript:alert(1)", "/web/20200101110000/data:,x",
        "/web/20200101110000///e.org/", "/web/20200101110000/\\\\e.org\\x", "/web/20200101110000/http://u:p@e.org/",
        "/web/20200101110000/http%3A%2F%2Fe.org%2F", "/web/20200101110000/http://e.org/\x01", "/web/20200101110000xx_/http://e.org/",
        "/web/99999999999999/http://e.org/", "/web/20200101110000123/http://e.org/", "/web/0/http://e.org/", "/web/1/http://1.2.3/",
        "/web/20200101110000/http://" + "a" * 300 + ".org/", "/web/20200101110000/http://e.org/" + "a" * 9_000, "/web/*/", "/web/**",
        "/web/20200101110000/http://bücher.example/ü", "/web/20200101110000/1.2.3.4:99999/", "/web/2020/http://[::1/", "/diff/x..y/http://e.org/",
        "/diff/2020..2021/ftp://e.org/", "/timemap/x/http://e.org/", "/timemap/link/", "/snapshot/..%2f..%2fetc", "/publication/%00", "/compare/..",
        "/compare/a", "/static/../room.css", "/static/000000000000/room.css", "/search?q=%00", "/search?q=" + "(" * 500, "/search?q=*",
        "/cdx", "/cdx?url=%00", "/cdx?url=e.org&filter=original:(a%2B)%2Bb", "/versions?url=javascript:x", "/urls?prefix=%5C", "/notice/form/", "/notice/form/%/%/%",
        "/notice/external?url=%3Cscript%3E&from=x", "/web/" + "9" * 20 + "/http://e.org/", "/web/-1/http://e.org/", "/~x/web/2020/http://e.org/", "/?" + "a=1&" * 500,
    ],
)  # fmt: skip
def test_broken_urls_get_an_answer_that_repeats_no_markup(room: Served, path: str) -> None:
    sent = path.encode("utf-8").decode("latin-1")
    for on_replay in (False, True):
        answer = room.get(sent.encode("latin-1"), replay=on_replay)
        assert answer.status in (200, 302, 400, 404, 414, 431), (path, answer.status)
        assert b"<script>" not in answer.body
        location = answer.headers.get("location", "/")
        assert location.startswith(("/", room.origin)), location
        assert not location.startswith("//"), location


def test_random_paths_never_break_it(room: Served) -> None:
    chance = random.Random(5)
    alphabet = [
        "/",
        "web",
        "2020",
        "*",
        "%",
        "%2F",
        "?",
        "#",
        "\\",
        "http:",
        "//",
        "e.org",
        "..",
        "\xff",
        "mp_",
        "&",
        "=",
        "@",
        ":",
    ]
    for _ in range(300):
        path = "/" + "".join(chance.choices(alphabet, k=chance.randrange(1, 12)))
        answer = room.get(path.replace(" ", "").encode("latin-1", "ignore"), replay=chance.random() < 0.5)
        assert answer.status < 500, path


# -- bodies ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-9", BodyRange(0, 10)), ("bytes=-5", BodyRange(95, 100)), ("bytes=90-", BodyRange(90, 100)), ("bytes=0-999", BodyRange(0, 100)),
        ("bytes=100-", None), ("bytes=-0", None), ("bytes=5-3", BodyRange(0, 100)), ("bytes=0-1,5-6", BodyRange(0, 100)),
        ("lines=1-2", BodyRange(0, 100)), ("bytes=", BodyRange(0, 100)), ("bytes=-", BodyRange(0, 100)), ("bytes=-1000", BodyRange(0, 100)),
        ("bytes=99999999999999999999-", BodyRange(0, 100)),
    ],
)  # fmt: skip
def test_ranges(asked: str, expected: BodyRange | None) -> None:
    assert part(asked, 100) == expected


def test_a_large_body_comes_in_ranges_and_is_known_by_its_blob(room: Served) -> None:
    whole = page(room, f"{HOME}doc.pdf")
    assert whole.body == PDF
    assert whole.headers["content-disposition"] == "attachment", "its viewer would follow links to the live web"
    path = f"/web/{AT[0]}mp_/{HOME}doc.pdf"
    some = room.get(path, {"Range": "bytes=1000-1999"}, replay=True)
    assert (some.status, some.body) == (206, PDF[1000:2000])
    assert some.headers["content-range"] == f"bytes 1000-1999/{len(PDF)}"
    beyond = room.get(path, {"Range": f"bytes={len(PDF)}-"}, replay=True)
    assert beyond.status == 416
    known = room.get(path, {"If-None-Match": whole.headers["etag"]}, replay=True)
    assert (known.status, known.body) == (304, b"")
    other = room.get(path, {"Range": "bytes=0-1", "If-Range": '"other"'}, replay=True)
    assert other.status == 200
    html = page(room, HOME)
    assert room.get(f"/web/{AT[0]}mp_/{HOME}", {"If-None-Match": html.headers["etag"]}, replay=True).status == 304
    assert page(room, HOME, 1).headers["etag"] != html.headers["etag"]


def test_archived_pages_may_do_nothing(room: Served) -> None:
    answer = page(room, HOME)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-forms allow-downloads allow-top-navigation-by-user-activation;")
    for rule in ("script-src 'none'", "connect-src 'none'", "object-src 'self' data:;", f"form-action {room.origin}"):
        assert rule in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-archive-orig-content-type"] == "text/html"
    worker = room.get(f"/web/{AT[0]}js_/{HOME}b.html", {"Service-Worker": "script"}, replay=True)
    assert worker.status == 403


def test_replay_answers_nothing_of_the_room(room: Served) -> None:
    for path in (
        "/",
        "/search?q=x",
        "/status.json",
        "/cdx?url=e.org",
        f"/web/*/{HOME}",
        f"/timemap/link/{HOME}",
        "/about",
    ):
        assert room.get(path, replay=True).status == 404, path
    assert room.get(f"/web/{AT[0]}/{HOME}", replay=True).headers["location"] == f"{room.origin}/web/{AT[0]}/{HOME}"
    shown = room.get(f"/web/{AT[0]}mp_/{HOME}", {"User-Agent": "Mozilla/5.0"}).headers["location"]
    assert shown.startswith(f"http://127.0.0.1:{room.replay_port}/web/")


def test_huge_and_deep_pages_are_answered(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    deep = b"<div>" * 100_000 + b"<a href=x>x</a>"
    large = b"<p>" + b"text <a href=/y>y</a> " * 1_000_000
    published(made, DOMAIN, {f"{HOME}deep": Page(deep), f"{HOME}large": Page(large)}, FIRST)
    recover(made)
    with served(made) as room:
        for name, size in (("deep", len(deep)), ("large", len(large))):
            answer = room.get(f"/web/{AT[0]}mp_/{HOME}{name}")
            assert answer.status == 200
            assert len(answer.body) >= min(size, 16 << 20)
            assert room.get(f"/web/{AT[0]}/{HOME}{name}").status == 200


def test_what_is_too_long_to_be_rewritten_is_a_download_and_the_frame_says_why(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    large = b"<a href='http://live.test/'>x</a>" + b" " * limits.REWRITTEN_BYTES
    kinds = ("text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/rss+xml", "text/xsl")
    pages = {f"{HOME}large{number}": Page(large, kind) for number, kind in enumerate(kinds)}
    pages |= {f"{HOME}small{number}": Page(large[:-99], kind) for number, kind in enumerate(kinds)}
    published(made, DOMAIN, pages, FIRST)
    recover(made)
    with served(made) as room:
        for number, kind in enumerate(kinds):
            name = f"large{number}"
            for modifier in ("mp_", "fr_", "if_", "oe_", "im_"):
                answer = room.get(f"/web/{AT[0]}{modifier}/{HOME}{name}")
                assert answer.headers["content-disposition"] == "attachment"
                assert answer.headers["content-security-policy"].startswith("sandbox allow-downloads;")
                assert answer.headers["content-type"].partition(";")[0] == kind
            assert answer.body == large
            frame = LexborHTMLParser(room.get(f"/web/{AT[0]}/{HOME}{name}").body)
            assert frame.css_first("iframe") is None
            download, main = frame.css_first("#archived-download"), frame.css_first("main")
            assert download is not None and main is not None
            assert download.attributes["href"] == f"/web/{AT[0]}mp_/{HOME}{name}"
            assert "too long" in main.text()
            small = room.get(f"/web/{AT[0]}mp_/{HOME}small{number}")
            assert "content-disposition" not in small.headers and b"'http://live.test" not in small.body
            assert LexborHTMLParser(room.get(f"/web/{AT[0]}/{HOME}small{number}").body).css_first("iframe") is not None


def test_the_time_of_an_answer_does_not_tell_hidden_from_absent(tmp_path: Path) -> None:
    """Each 404 waits for the end of its step, which takes longer than the work: a shorter one would tell of the work."""
    made = archives.make_archive(tmp_path)
    published(made, DOMAIN, {HOME: Page(b"<p>one"), f"{HOME}hidden": Page(b"<p>two")}, FIRST)
    recover(made)
    access_rules.withhold(made, f"{HOME}hidden", "test", "no", access=Access.EXCLUDE)
    with served(made) as room:
        for url in (f"{HOME}hidden", f"{HOME}absent"):
            asked = time.monotonic()
            assert room.get(f"/web/{AT[0]}/{url}").status == 404
            assert time.monotonic() - asked >= limits.ABSENT_STEP_SECONDS


#: Type → the type as which it is shown; None: it is a download.
_SHOWN_TYPES = {
    "application/pdf": None, "multipart/related": None, "message/rfc822": None, "application/x-mimearchive": None,
    "application/x-shockwave-flash": None, "application/internet-shortcut": None, "application/x-unknown": None,
    "application/zip": None, "audio/mpegurl": None, "text/vnd.wap.wml": None, "application/octet-stream": None,
    "text/plain": "text/plain", "image/png": "image/png", "video/mp4": "video/mp4", "text/css": "text/css",
    "application/json": "text/plain", "application/geo+json": "text/plain", "application/javascript": "text/plain",
}  # fmt: skip


def test_what_is_not_rewritten_and_may_have_links_is_a_download(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    pages = {f"{HOME}{number}": Page(b"%PDF http://live.test/", kind) for number, kind in enumerate(_SHOWN_TYPES)}
    published(made, DOMAIN, pages, FIRST)
    recover(made)
    with served(made) as room:
        for url, (kind, shown) in zip(pages, _SHOWN_TYPES.items(), strict=True):
            frame = LexborHTMLParser(room.get(f"/web/{AT[0]}/{url}").body)
            assert (frame.css_first("iframe") is None) is (shown is None), kind
            for modifier in ("mp_", "fr_", "if_", "oe_", "im_"):
                answer = room.get(f"/web/{AT[0]}{modifier}/{url}")
                assert answer.headers["content-type"].partition(";")[0] == (shown or kind)
                assert answer.headers.get("content-disposition") == (None if shown else "attachment"), kind
                assert answer.headers["content-security-policy"].startswith("sandbox allow-downloads;") or shown
                assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_frame_of_a_page_has_a_small_notice_in_place_of_what_is_not_there(room: Served) -> None:
    for modifier in ("fr_", "if_", "oe_"):
        answer = room.get(f"/web/{AT[0]}{modifier}/{HOME}nothing.html", {"Accept-Language": "de"}, replay=True)
        assert answer.status == 404
        notice = LexborHTMLParser(answer.body)
        assert notice.css("a, link, img, form, header, footer, nav") == []
        assert [node.text() for node in notice.css("main > *")] == [
            "Nicht in dieser Momentaufnahme",
            f"{HOME}nothing.html",
        ]
    whole = room.get(f"/web/{AT[0]}/{HOME}nothing.html")
    assert LexborHTMLParser(whole.body).css_first("footer") is not None


def test_the_archive_may_change_under_the_room(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    published(made, DOMAIN, {HOME: Page(b"<p>one")}, TIMES[0])
    recover(made)
    with served(made) as room:
        assert b"one" in room.get(f"/web/{AT[0]}mp_/{HOME}").body
        published(made, DOMAIN, {HOME: Page(b"<p>two")}, TIMES[1])
        recover(made)  # webarc.db is another file now
        assert b"two" in room.get(f"/web/{AT[1]}mp_/{HOME}").body
        store = archives.store_of(made, DOMAIN)
        subprocess.run(["git", "-C", str(store.path), "gc", "--quiet", "--prune=now"], check=True)
        assert b"one" in room.get(f"/web/{AT[0]}mp_/{HOME}").body
        made.database.unlink()
        assert room.get(f"/web/{AT[1]}mp_/{HOME}").status in (404, 503)
        recover(made)
        assert b"two" in room.get(f"/web/{AT[1]}mp_/{HOME}").body


def test_a_reader_whom_a_proxy_names_sees_more_by_a_token(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    published(made, DOMAIN, {HOME: Page(b"<p>one<img src=a.png>"), f"{HOME}b.html": Page(b"<p>b")}, TIMES[0])
    recover(made)
    access_rules.withhold(made, f"{HOME}*", "test", "no", access=Access.BLOCK)
    access_rules.withhold(made, HOME, "test", "for anna", access=Access.ALLOW, user="anna")
    made.settings.write_text('[readers]\nheader = "X-Reader"\nproxies = ["127.0.0.1"]\n')
    with served(made, two_origins=True) as room:
        frame = f"/web/{AT[0]}/{HOME}"
        assert room.get(frame).status == 451
        shown = room.get(frame, {"X-Reader": "anna"})
        assert shown.status == 200
        assert shown.headers["cache-control"] == "private, no-store"
        source = LexborHTMLParser(shown.body).css_first("iframe").attributes["src"] or ""  # type: ignore[union-attr] # it is there
        place = source.removeprefix(f"http://127.0.0.1:{room.replay_port}")
        assert place.startswith("/~")
        inside = room.get(place, replay=True)
        assert inside.status == 200
        assert b"src=/~" in inside.body
        assert room.get(place, {"X-Reader": "otto"}, replay=True).status == 200  # the token alone counts there
        assert room.get(place.replace("/~", "/~x", 1), replay=True).status == 451
        assert room.get(f"/web/{place.partition('/web/')[2]}", replay=True).status == 451
