"""pywb as the engine: scripts run, head and foot stay true, nothing leaves; and what stands between it and browsers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Error
from pypdfium2 import PdfDocument
from starlette.requests import Request

from tests.support import archives
from tests.support.browsers import Sink, can_bind, chromium, needs_chromium
from tests.support.hostilepages import HOSTILE
from tests.support.livesites import CAPTURED, archived, live
from tests.support.messy_sites import PIXEL
from tests.support.pywb_rooms import PROGRAM, PywbRoom, pywb_room
from tests.support.rooms import Page, digits, published
from tests.support.waiting import PATIENCE, until
from webarcfs.room.replay.headers import is_for_window
from webarcfs.room.replay.pywb_proxy import handed_in, handed_out

pytestmark = pytest.mark.store

_HOSTILE = "hostile.test"
#: Hostile pages in CI; the soak has all of them.
_PAGES = int(os.environ.get("PYWB_HOSTILE", "12"))

#: Pages of these tests: ways that a reader or a script takes.
_OWN = {
    "ways.html": Page(
        b"<title>ways</title><a id=blank target=_blank href=next.html>b</a><a id=top target=_top href=next.html>t</a>"
        b"<a id=gone href=gone.html>g</a><a id=text href=plain.txt>p</a><a id=mail href=mailto:a@leak.test>m</a>"
        b"<form method=post action=/send><button id=post>s</button></form>"
        b"<button id=push onclick=\"history.pushState(0,'','/pushed')\">p</button><a id=place href=long.html#end>l</a>"
    ),
    "next.html": Page(b"<title>next</title>next"),
    "long.html": Page(b"<title>long</title><p style=height:3000px>x<p id=end>end"),
    "plain.txt": Page(b"plain", "text/plain"),
    "part.html": Page(b"<b>part</b>"),
    "worker.html": Page(b"<p id=p>no</p><script>new Worker('w.js').onmessage=e=>{p.textContent=e.data}</script>"),
    "w.js": Page(b"postMessage('it works')", "text/javascript"),
    "rtc.html": Page(
        b"<p id=p></p><iframe id=f></iframe><script>(async()=>{"
        b"for(const w of [self,document.getElementById('f').contentWindow])try{"
        b"const c=new w.RTCPeerConnection({iceServers:[{urls:'stun:rtc.leak.test'}]});c.createDataChannel('x');"
        b"await c.setLocalDescription(await c.createOffer());p.textContent+='open '}catch(e){p.textContent+='none '}"
        b"})()</script>"
    ),
    "within.html": Page(
        b"<iframe id=f srcdoc=\"<p id=p></p><script>document.getElementById('p').textContent=typeof RTCPeerConnection"
        b'</script>"></iframe>'
    ),
    "no-scheme.html": Page(
        b"<link rel=stylesheet href=//hostile.test/style.css><img src=//hostile.test/dot.png>"
        b"<script src=//hostile.test/w.js></script><iframe src=//hostile.test/next.html></iframe>"
    ),
    "style.css": Page(b"p { background: url(//hostile.test/dot.png) }", "text/css"),
    "dot.png": Page(PIXEL, "image/png"),
    "sent.html": Page(
        b"<title>sent</title>",
        head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Content-Type-Options: sniff\r\nAccept-CH: UA\r\n"
        b"Cross-Origin-Embedder-Policy: require-corp\r\nIntegrity-Policy: blocked-destinations=(script)\r\n\r\n",
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PywbRoom]:
    archive = archives.make_archive(tmp_path_factory.mktemp("pywb"))
    hostile = {f"http://{_HOSTILE}/{name}": Page(body, kind) for name, (kind, body) in HOSTILE.items()}
    runs = b"<title>none</title><p id=p>no</p><script>document.getElementById('p').textContent='it runs'</script>"
    hostile[f"http://{_HOSTILE}/runs.html"] = Page(runs)
    hostile |= {f"http://{_HOSTILE}/{name}": page for name, page in _OWN.items()}
    published(archive, _HOSTILE, hostile, CAPTURED + timedelta(minutes=1), publication="hostile")
    archived(archive, [f"http://python.test/{name}.html" for name in ("index", "tutorial/index", "tutorial/appetite")])
    with pywb_room(archive) as served:
        yield served


@pytest.fixture(scope="module")
def browser(world: PywbRoom, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("browser"), names=world.names | {"*": "~NOTFOUND"}) as found:
        yield found


def place_of(url: str, when: str) -> str:
    return f"/web/{when}/{url}"


_PYTHON, _AT_HOSTILE = digits(CAPTURED), digits(CAPTURED + timedelta(minutes=1))


@needs_chromium()
def test_scripts_run_and_two_clicks_keep_head_and_foot_true(world: PywbRoom, tmp_path: Path) -> None:
    with live() as hosts, chromium(tmp_path, names=world.names | hosts) as browser:
        tab = browser.new_page()
        tab.goto(world.origin + place_of(f"http://{_HOSTILE}/runs.html", _AT_HOSTILE))
        shown = tab.frame_locator("iframe").locator("#p")
        shown.filter(has_text="it runs").wait_for(timeout=1_000 * PATIENCE)
        assert shown.inner_text() == "it runs"
        tab.goto(world.origin + place_of("http://python.test/index.html", _PYTHON))
        for words, target in (
            ("Tutorial", "tutorial/index.html"),
            ("Whetting Your Appetite", "tutorial/appetite.html"),
        ):
            url = f"http://python.test/{target}"
            tab.frame_locator("iframe").locator(f"a:has-text('{words}'):visible").first.click()
            tab.wait_for_url(f"**/web/{_PYTHON}/{url}")
            assert tab.locator("#archived-url").inner_text() == url
            assert tab.locator("#archived-date").get_attribute("datetime") == CAPTURED.isoformat()
            assert "Record" in tab.locator("footer").inner_text()


@needs_chromium()
def test_a_page_is_printed_alone_without_its_scripts(browser: Browser, world: PywbRoom) -> None:
    """pywb shows a page in a frame only, so our own replay answers; isolated as where no scripts run."""
    tab = browser.new_page()
    for page, text in (("runs.html", "no"), ("long.html", "end")):
        tab.goto(world.origin + place_of(f"http://{_HOSTILE}/{page}", _AT_HOSTILE))
        alone = tab.locator("#archived-alone").get_attribute("href")
        assert alone is not None and alone.startswith(f"{world.replay}/web/{_AT_HOSTILE}oe_/")
        answer = tab.goto(alone)
        assert answer is not None and "script-src 'none'" in answer.headers["content-security-policy"]
        assert tab.url == alone and text in tab.locator("body").inner_text()
    assert len(PdfDocument(tab.pdf())) > 1


@needs_chromium()
@pytest.mark.parametrize(
    ("way", "end"),
    [
        ("blank", "/web/{at}/http://{host}/next.html"), ("top", "/web/{at}/http://{host}/next.html"),
        ("gone", "/web/{at}/http://{host}/gone.html"), ("text", "/web/{at}/http://{host}/plain.txt"),
        ("mail", "/notice/external?**"), ("post", "/notice/form?**"), ("place", "/web/{at}/http://{host}/long.html#end"),
    ],
)  # fmt: skip
def test_each_way_on_ends_at_a_head_that_tells_it(browser: Browser, world: PywbRoom, way: str, end: str) -> None:
    tab = browser.new_page()
    tab.goto(world.origin + place_of(f"http://{_HOSTILE}/ways.html", _AT_HOSTILE))
    tab.frame_locator("iframe").locator(f"#{way}").click()
    tab.wait_for_url(world.origin + end.format(at=_AT_HOSTILE, host=_HOSTILE), timeout=1_000 * PATIENCE)
    if way == "text":
        shown = tab.frame_locator("iframe").locator("body")
        shown.filter(has_text="plain").wait_for(timeout=1_000 * PATIENCE)
        assert shown.inner_text() == "plain"
    if way == "place":
        tab.frame_locator("iframe").locator("#end").wait_for()
        tab.frames[1].wait_for_function("scrollY > 1000", timeout=1_000 * PATIENCE)
    tab.close()


@needs_chromium()
def test_a_page_that_renames_itself_stays_the_page_that_was_captured(browser: Browser, world: PywbRoom) -> None:
    tab = browser.new_page()
    tab.goto(world.origin + place_of(f"http://{_HOSTILE}/ways.html", _AT_HOSTILE))
    tab.frame_locator("iframe").locator("#push").click()
    tab.wait_for_timeout(300)
    assert tab.locator("#archived-url").inner_text() == f"http://{_HOSTILE}/ways.html"
    assert tab.frame_locator("iframe").locator("#push").is_visible()
    tab.close()


@needs_chromium()
def test_workers_run_and_connections_between_browsers_do_not(browser: Browser, world: PywbRoom) -> None:
    for name, said in (("worker.html", "it works"), ("rtc.html", "none none ")):
        tab = browser.new_page()
        tab.goto(world.origin + place_of(f"http://{_HOSTILE}/{name}", _AT_HOSTILE))
        shown = tab.frame_locator("iframe").locator("#p")
        shown.filter(has_text=said.strip()).wait_for(timeout=1_000 * PATIENCE)
        assert shown.inner_text().strip() == said.strip()
        tab.close()


@needs_chromium()
def test_a_frame_with_its_page_in_an_attribute_is_guarded_too(browser: Browser, world: PywbRoom) -> None:
    tab = browser.new_page()
    tab.goto(world.origin + place_of(f"http://{_HOSTILE}/within.html", _AT_HOSTILE))
    inner = tab.frame_locator("#archived").frame_locator("#f").locator("#p")
    inner.filter(has_text="undefined").wait_for(timeout=1_000 * PATIENCE)
    tab.close()


@needs_chromium()
def test_an_archived_page_on_its_own_goes_into_the_frame_or_runs_nothing(browser: Browser, world: PywbRoom) -> None:
    for modifier in ("mp_", "if_", "im_", "id_", "oe_"):
        tab = browser.new_page()
        place = f"{world.replay}/web/{_AT_HOSTILE}{modifier}/http://{_HOSTILE}/runs.html"
        if modifier == "id_":
            with pytest.raises(Error, match="Download is starting"):
                tab.goto(place)
            tab.close()
            continue
        tab.goto(place)
        if modifier in ("mp_", "if_"):
            tab.wait_for_url(f"{world.origin}/web/{_AT_HOSTILE}/**", timeout=1_000 * PATIENCE)
        else:
            assert tab.locator("#p").inner_text() == "no", modifier
        tab.close()


@needs_chromium()
def test_nothing_leaves_where_scripts_run(world: PywbRoom, tmp_path: Path) -> None:
    if not can_bind(53):
        pytest.skip("needs the right to answer for names")
    names = [*HOSTILE][:: max(len(HOSTILE) // _PAGES, 1)]
    with Sink() as sink, chromium(tmp_path, sink=sink, names=world.names) as browser:
        context = browser.new_context()
        said: list[str] = []
        for name in names:
            tab = context.new_page()
            tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
            place = world.origin + place_of(f"http://{_HOSTILE}/{name}", _AT_HOSTILE)
            tab.goto(place, wait_until="commit", timeout=1_000 * PATIENCE)
            tab.wait_for_timeout(120)
            assert tab.url.startswith(world.origin), name
            assert "hacked" not in tab.title(), name
            tab.close()
        tab = context.new_page()
        tab.wait_for_timeout(1_000)
        assert sink.asked == []
        assert [each for each in context.cookies() if "room" in each["domain"]] == []
        context.close()


def test_replay_hands_on_archived_pages_alone(world: PywbRoom) -> None:
    others = ("/", "/web/", "/web/*/http://python.test/", "/collinfo.json", "/web/timemap/link/http://python.test/",
              "/_/x", "/live/http://python.test/", "/web/collinfo.json", "/status.json", "/search")  # fmt: skip
    for path in others:
        answer = world.room.get(path, replay=True)
        assert answer.status in (302, 404), path
        assert answer.headers.get("location", world.origin).startswith(world.origin)
    assert world.room.get(place_of("http://python.test/index.html", _PYTHON), replay=True).status == 302
    worker = world.room.get(f"/web/{_AT_HOSTILE}js_/http://{_HOSTILE}/x.js", {"Service-Worker": "script"}, replay=True)
    assert worker.status == 403
    assert world.room.get("/robots.txt", method="POST", replay=True).status == 405


def test_an_archived_page_is_told_what_it_may_do(world: PywbRoom) -> None:
    answer = world.room.get(f"/web/{_PYTHON}mp_/http://python.test/index.html", {"Host": "replay.test"}, replay=True)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'" in policy
    assert f"frame-ancestors {world.origin}" in policy
    assert "ws:" not in policy
    assert not {"set-cookie", "link", "refresh"} & answer.headers.keys()
    assert world.replay in answer.text  # pywb writes the origin that browsers see, whatever Host said


@pytest.mark.parametrize(
    "rest", ["x/../../../collinfo.json", "x/../../../", "x/../../cdx?url=http://python.test/*", "x/../../"]
)
def test_no_way_leads_out_of_archived_pages(world: PywbRoom, rest: str) -> None:
    answer = world.room.get(f"/web/2021mp_/{rest}", replay=True)
    assert answer.status in (400, 404)
    assert "pywb" not in answer.text.lower()
    assert "20210501" not in answer.text


def test_references_without_a_scheme_are_found(world: PywbRoom) -> None:
    """pywb writes them as `…cs_///host/style.css`."""
    page = world.room.get(f"/web/{_AT_HOSTILE}mp_/http://{_HOSTILE}/no-scheme.html", replay=True).text
    paths = re.findall(rf"/web/{_AT_HOSTILE}[a-z]+_/[^\"' >]*{_HOSTILE}/[a-z.]+", page.partition("<link")[2])
    assert [path.rpartition("/")[2] for path in paths] == ["style.css", "dot.png", "w.js", "next.html"]
    assert [world.room.get(path, replay=True).status for path in paths] == [200] * 4


def test_archived_fields_do_not_act_on_browsers(world: PywbRoom) -> None:
    for modifier in ("mp_", "id_", "im_", "js_"):
        place = f"/web/{_AT_HOSTILE}{modifier}/http://{_HOSTILE}/sent.html"
        answer = world.room.get(place, replay=True)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not {"accept-ch", "cross-origin-embedder-policy", "integrity-policy"} & answer.headers.keys()
        assert "memento-datetime" in answer.headers


def test_what_a_script_fetches_comes_as_it_is(world: PywbRoom) -> None:
    place = f"/web/{_AT_HOSTILE}mp_/http://{_HOSTILE}/part.html"
    for name in ("X-Requested-With", "X-Pywb-Requested-With"):
        assert world.room.get(place, {name: "XMLHttpRequest"}, replay=True).text == "<b>part</b>"
    assert "wombat" in world.room.get(place, replay=True).text


def test_pages_and_scripts_without_modules_come_byte_for_byte_as_pywb_made_them(world: PywbRoom) -> None:
    """S-module-6."""
    command = ["pgrep", "--parent", str(world.process), "-a", "-f", f"{PROGRAM} -b 127.0.0.1"]
    started = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pywb = f"http://127.0.0.1:{started.split()[-1]}"
    told = {"Host": world.replay.removeprefix("http://"), "X-Forwarded-Proto": "http", "Accept-Encoding": "identity"}
    names = ("index.html", "tutorial/index.html", "tutorial/appetite.html", "_static/doctools.js")
    for name, modifier in product(names, ("mp_", "js_")):
        path = f"/web/{_PYTHON}{modifier}/http://python.test/{name}"
        made = httpx.get(pywb + path, headers=told)
        answer = world.room.get(path, replay=True)
        assert (answer.status, answer.body) == (made.status_code, made.content), path
        assert made.status_code == 200 and len(made.content) > 1_000, path


def test_pywb_that_dies_is_started_again(world: PywbRoom) -> None:
    command = ["pgrep", "--parent", str(world.process), "-f", f"{PROGRAM} -b 127.0.0.1"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.split()
    for each in found.stdout.split():
        os.kill(int(each), signal.SIGKILL)

    def is_answered() -> bool:
        status = world.room.get(f"/web/{_PYTHON}mp_/http://python.test/index.html", replay=True).status
        assert status in (200, 503)
        return status == 200

    until(is_answered, "pywb answers again")


@pytest.mark.parametrize(
    "name", ["cookie", "authorization", "x-pywb-acl-user", "x-forwarded-for", "accept-datetime", "origin", "referer"]
)
def test_what_a_browser_brings_along_stays_outside(name: str) -> None:
    given = [(name.encode(), b"secret"), (b"user-agent", b"browser")]
    told = handed_in(given, "https://replay.example.org")
    assert (b"user-agent", b"browser") in told
    assert (b"host", b"replay.example.org") in told
    assert (b"x-forwarded-proto", b"https") in told
    assert b"secret" not in [value for _, value in told]


@pytest.mark.parametrize(
    "name",
    [
        "Set-Cookie", "Service-Worker-Allowed", "Link", "Refresh", "Content-Security-Policy", "NEL", "Report-To",
        "Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc",
    ],
)  # fmt: skip
def test_what_an_answer_would_do_to_a_browser_stays_inside(name: str) -> None:
    told = handed_out(
        [(name.encode(), b"secret"), (b"Content-Type", b"text/html")], "http://room", "http://replay", is_page=True
    )
    assert (b"content-type", b"text/html") in told
    assert b"secret" not in b" ".join(value for _, value in told)


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        ({"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, True),
        ({"sec-fetch-mode": "navigate", "sec-fetch-dest": "object"}, False),
        ({"sec-fetch-mode": "cors", "sec-fetch-dest": "empty", "accept": "text/html,*/*"}, False),
        ({"accept": "text/html,application/xhtml+xml"}, True),
        ({"accept": "text/html,*/*", "x-requested-with": "XMLHttpRequest"}, False),
        ({"accept": "*/*"}, False),
        ({}, False),
    ],
)
def test_a_window_is_told_from_a_script(fields: dict[str, str], is_one: bool) -> None:
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    assert is_for_window(Request({"type": "http", "headers": headers})) is is_one


@pytest.mark.parametrize("name", ["X-Content-Type-Options", "Accept-CH", "Document-Policy", "X-Unknown", "Vary"])
def test_a_field_that_nobody_knows_does_not_pass(name: str) -> None:
    told = handed_out([(name.encode(), b"secret")], "http://room", "http://replay", is_page=False)
    assert b"secret" not in b" ".join(value for _, value in told)


def test_a_redirect_leads_to_archived_pages_alone() -> None:
    kept = ("/web/2020mp_/http://e.org/", "http://replay/web/2020mp_/http://e.org/")
    dropped = ("http://live.example/", "//live.example/web/x", "/search")
    for place, is_kept in (*((each, True) for each in kept), *((each, False) for each in dropped)):
        told = handed_out([(b"location", place.encode())], "http://room", "http://replay", is_page=False)
        assert (b"location" in dict(told)) == is_kept, place
