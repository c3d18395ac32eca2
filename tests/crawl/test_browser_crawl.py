"""A crawl whose pages a browser shows: what scripts ask for is archived as it was sent, as politely as by wget.

Chromium has no network here. The site's log says what came to it, the archive what was kept of that.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.crawl import chromium
from agent.crawl.chromium import Chromium, family, memory_of
from tests.support.bad_pages import GOOD, GOOD_WORDS, BadPageSizes, serve_bad_pages
from tests.support.browsers import needs_chromium
from tests.support.crawls import COMMAND, arcs, crawl, log_lines, meta, read, secret_file, store, tree
from tests.support.process_trees import processes_below
from tests.support.script_site import CLICKED, LOADED, MAIN, POSTED, SCROLLED, ScriptRequest, ScriptSite, picture
from tests.support.secure import Authority, SecureHosts
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import Exchange
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.warc import job_warc, request_key

pytestmark = [pytest.mark.crawl, needs_chromium()]

WAIT = 0.3
SIZES = BadPageSizes(large=3 << 20, bomb=8 << 20, dom=1 << 20, frames=20, slow=1.0)


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with ScriptSite() as site:
        yield site


def _rendered(archive: Archive, url: str) -> tuple[str, str]:
    """Return the DOM and the text that a browser showed of a page."""
    domain, arc = split(arc_path(url))
    tree = meta(archive, domain, arc).rendered
    assert tree, url
    repository = store(archive, domain)
    html = rendered_forms.read_html(repository, tree).decode()
    return html, rendered_forms.text_of(repository, tree)


def _key(asked: ScriptRequest) -> str:
    url = f"http://{asked.host}{asked.path}"
    if asked.method == "GET":
        return url
    mime = "application/x-www-form-urlencoded" if asked.path == "/api/form" else "application/json"
    key = request_key.key_of(asked.method, url, mime, asked.body.encode())
    assert isinstance(key, request_key.RequestKey)
    return key.url


def test_all_that_scripts_ask_for_is_archived_byte_for_byte_and_politely(site: ScriptSite, archive: Archive) -> None:
    """S-browser-2, S-browser-3, S-browser-4: as sent, one request at a time, none within the pause."""
    seed = f"http://{MAIN}/"
    outcome = crawl(
        archive,
        seed,
        fetcher="browser",
        wait=WAIT,
        depth=0,
        proxy=site.proxy,
        keep_warc=True,
        keep_rendered=("html", "text"),
    )
    assert outcome.complete
    lines = log_lines(archive, outcome)
    wanted = (*LOADED, *SCROLLED, *CLICKED, *POSTED)
    assert set(wanted) <= site.asked()

    sent = {
        (response.method, response.host, response.path, response.asked.decode()): response.head + response.body
        for response in site.responses
    }
    kept: dict[str, bytes] = {}
    for path in outcome.report.glob("*.warc"):
        for response in job_warc.responses(path):
            kept[response.url] = response.head.raw + response.stream.read(1 << 30)
    for asked in wanted:
        key = _key(asked)
        assert kept[key] == sent[asked.method, asked.host, asked.path, asked.body], key
        assert {"added", "rendered"} & set(lines[key].notes) or lines[key].status == 302, key

    html, text = _rendered(archive, seed)
    assert "from the chunk" in text and "found alpha" in text and "found beta" in text
    assert "from the chunk" in html
    words = set(lines[seed].notes)
    assert {"rendered", "websocket", "stream", "scripts-forbidden"} <= words

    assert site.smallest_gap(MAIN, but=("/events",)) >= WAIT
    assert site.max_open(MAIN) == 1
    assert not site.against_robots() and not site.against_addresses()
    refused = [line for url, line in lines.items() if "/inside/" in url]
    assert len(refused) == 3 and all("private-address" in line.notes for line in refused)
    assert lines[f"http://{MAIN}/private/forbidden.js"].notes == ("robots",)
    asked_once = [(response.method, response.host, response.path, response.asked) for response in site.responses]
    assert len(asked_once) == len(set(asked_once)), "nothing is fetched twice"
    assert f"http://{MAIN}/about" in lines, "a link that only the DOM has"


def test_what_a_page_may_not_have_is_said_of_that_alone(site: ScriptSite, archive: Archive) -> None:
    """A page whose scripts are refused something is no answer to a POST, and robots.txt does not forbid it."""
    send = "fetch('/private/answer', {method: 'POST', body: 'x', headers: {'Content-Type': 'text/plain'}})"
    site.add_html("/refused", f"<p id=out></p><script>{send}.catch(() => 0).then(() => out.append('went on'))</script>")
    url = site.url("/refused", MAIN)
    outcome = crawl(archive, url, fetcher="browser", depth=0, proxy=site.proxy)
    assert "went on" in _rendered(archive, url)[1]
    lines = log_lines(archive, outcome)
    assert {note.partition(":")[0] for note in lines[url].notes} <= {
        "added", "rendered", "needs-browser", "scripts-forbidden",
    }  # fmt: skip
    (answer,) = (line for key, line in lines.items() if "/private/answer" in key)
    assert answer.notes == ("robots",)


def test_parts_of_web_components_are_scrolled_to_clicked_and_read(site: ScriptSite, archive: Archive) -> None:
    """Lazy pictures, buttons that load more and texts that a person wants clicked, in open shadow roots; no links."""
    for name in ("more", "consent", "linked"):
        site.add(f"/part/{name}", name, "text/plain")
    site.add("/part/lazy.png", picture(1), "image/png")
    script = """
      const root = document.querySelector("x-list").attachShadow({mode: "open"});
      const inner = document.createElement("x-part");
      root.append(inner);
      const part = inner.attachShadow({mode: "open"});
      const add = (to, words, path) => {
        const button = document.createElement("button");
        button.textContent = words;
        button.onclick = () => fetch(path).then(answer => answer.text()).then(text => to.append(text + " came; "));
        to.append(button);
      };
      add(part, "Load more", "/part/more");
      add(root, "I agree", "/part/consent");
      add(document.querySelector("x-link").attachShadow({mode: "open"}), "Load more", "/part/linked");
      root.append(Object.assign(document.createElement("a"), {href: "#/view", textContent: "view"}));
      part.append(Object.assign(new Image(), {loading: "lazy", style: "margin-top: 9000px", src: "/part/lazy.png"}));
    """
    # A form of that name hides the function of the document, for scripts of all worlds.
    body = "<form name=querySelectorAll></form><x-list></x-list><a href=/away><x-link></x-link></a>"
    site.add_html(
        "/parts",
        f"{body}<script>const find = Document.prototype.querySelector;document.querySelector = find;{script}</script>",
    )
    url = site.url("/parts", MAIN)
    outcome = crawl(archive, url, fetcher="browser", depth=0, proxy=site.proxy, click=("I agree",))
    assert "hash-routes:1" in log_lines(archive, outcome)[url].notes
    asked = {request.path for request in site.asked() if request.path.startswith("/part/")}
    assert asked == {"/part/more", "/part/consent", "/part/lazy.png"}
    text = _rendered(archive, url)[1]
    assert "more came" in text and "consent came" in text


@pytest.mark.parametrize("keep", [("html",), ("text",)])
def test_an_answer_with_a_length_that_is_none_is_kept_and_asked_for_once(
    site: ScriptSite, archive: Archive, keep: tuple[str, ...]
) -> None:
    """Our own client reads it as browsers do; wget would need a second request. Text is kept with the DOM as well."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"

    def say(length: bytes) -> Callable[[Exchange], None]:
        body = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nall of it\r\n0\r\n\r\n"
        whole = body if length == b"beside" else b"Content-Length: 3x\r\n\r\nall of it"

        def answer(exchange: Exchange) -> None:
            exchange.keep = False
            exchange.send(head + whole)

        return answer

    for name in (b"beside", b"letters"):
        site.add_nasty(f"/{name.decode()}", say(name))
    ask = "async (path, post) => out.append((await (await fetch(path, post)).text()) + '; ')"
    post = "{method: 'POST', body: 'x', headers: {'Content-Type': 'text/plain'}}"
    site.add_html(
        "/odd",
        f"<p id=out></p><script>const ask = {ask};"
        f"ask('/beside').then(() => ask('/beside', {post})).then(() => ask('/letters', {post}))</script>",
    )
    url = site.url("/odd", MAIN)
    outcome = crawl(archive, url, fetcher="browser", depth=0, proxy=site.proxy, keep_rendered=keep)
    lines = log_lines(archive, outcome)
    odd = [line for key, line in lines.items() if "/beside" in key or "/letters" in key]
    assert len(odd) == 3 and all({"bad-length", "added"} <= set(line.notes) for line in odd), odd
    assert len(site.sent_to("/beside")) == 2 and len(site.sent_to("/letters")) == 1
    domain, arc = split(arc_path(url))
    text = rendered_forms.text_of(store(archive, domain), meta(archive, domain, arc).rendered)
    assert text.count("all of it") == 3


def test_a_second_crawl_of_what_did_not_change_changes_nothing(site: ScriptSite, archive: Archive) -> None:
    """S-browser-5: the crawl's own commit apart."""
    urls = [site.url(f"/small/{number}.html") for number in range(3)]
    domain = urls[0].partition("://")[2].partition("/")[0]
    crawl(archive, *urls, fetcher="browser", depth=0)
    before = tree(archive, domain)
    again = crawl(archive, *urls, fetcher="browser", depth=0)
    assert tree(archive, domain) == before
    assert all("unchanged" in line.notes for url, line in log_lines(archive, again).items() if "/small/" in url)


def test_what_only_time_or_chance_made_another_has_one_url(site: ScriptSite, archive: Archive) -> None:
    """S-session-2: the server gets the whole URL, the archive has it without the time, and the next crawl the same."""
    url = site.url(serve_bad_pages(site, SIZES)["stamps"].path)
    domain = url.partition("://")[2].partition("/")[0]
    crawl(archive, url, fetcher="browser", depth=0)
    before = arcs(archive, domain)
    asked = {response.path for response in site.responses if "?" in response.path}
    assert any("_=1" in path for path in asked), asked
    assert not any("_=1" in arc for arc in before)
    crawl(archive, url, fetcher="browser", depth=0)
    assert arcs(archive, domain) == before


def test_auto_starts_no_browser_for_pages_that_need_none(site: ScriptSite, archive: Archive) -> None:
    """S-browser-1: and one for those that need it, whose own response is not fetched again."""
    for number in range(100):
        site.add_html(
            f"/static/{number}", f"<p>Page {number} has all of its words in its own text, none by a script.</p>"
        )
    site.add_html("/static/", "".join(f'<a href="/static/{number}">page {number}</a> ' for number in range(100)))
    outcome = crawl(archive, site.url("/static/"), fetcher="auto", depth=1)
    assert not any("rendered" in line.notes for line in log_lines(archive, outcome).values())
    assert outcome.summary["shown"] == {}

    shell = site.url("/")
    outcome = crawl(archive, shell, fetcher="auto", depth=0)
    assert "rendered" in log_lines(archive, outcome)[shell].notes
    assert len(site.sent_to("/")) == 1
    assert "from the chunk" in _rendered(archive, shell)[1]


#: Bad page → the words that crawl.log has of it, of those that a browser gives; None: no browser shows it.
BAD = {
    "dialogs": {"rendered"},
    "prints": {"rendered"},
    "popups": {"rendered", "popup"},
    "password": {"rendered"},
    "password-page": None,
    "endless-scroll": {"rendered", "browser-scroll"},
    "endless-button": {"rendered"},
    "leaves": {"rendered"},
    "refresh": {"rendered"},
    "download-page": None,
    "download-link": {"rendered", "download"},
    "redirect-file": {"rendered"},
    "redirect-chrome": {"rendered"},
    "cut-picture": {"rendered"},
    "false-lengths": {"rendered"},
    "bomb": {"rendered"},
    "large-cookie": {"rendered"},
    "statuses": {"rendered"},
    "writes-late": {"rendered"},
    "many-frames": {"rendered"},
    "nul-title": {"rendered"},
    "base": {"rendered"},
    "overwritten": {"rendered"},
    "shadow-roots": {"rendered"},
    "strict-policy": {"rendered"},
    "beacon": {"rendered"},
    "twice-at-once": {"rendered"},
    "robots-script": {"rendered", "scripts-forbidden"},
    "inside": {"rendered"},
    "methods": {"rendered", "browser-requests"},
}
#: What a crawl shows where a browser that nobody holds back shows something else: its own URL, no forbidden script.
_OTHERWISE = {"leaves": "bad", "robots-script": "script not run"}
_OF_BROWSER = {"rendered", "popup", "download", "scripts-forbidden"}


def _show_bad(site: ScriptSite, archive: Archive, names: Iterable[str], seconds: float) -> dict[str, set[str]]:
    """Crawl bad pages, each with a good one after it, which must be shown; return the browser's words by page."""
    pages = serve_bad_pages(site, SIZES)
    urls: list[str] = []
    for name in names:
        site.add_html(f"/good/{name}", f"<p id=good></p><script>good.textContent = 'good after {name}'</script>")
        urls += [site.url(pages[name].path), site.url(f"/good/{name}")]
    outcome = crawl(
        archive, *urls, fetcher="browser", depth=0, browser_page_seconds=seconds, browser_requests=100,
        browser_scroll=12, timeout=10.0,
    )  # fmt: skip
    lines = log_lines(archive, outcome)
    for name in names:
        assert f"good after {name}" in _rendered(archive, site.url(f"/good/{name}"))[1]
    assert site.against_addresses() == [] and site.against_robots() == []
    notes = {name: lines[site.url(pages[name].path)].notes for name in names}
    return {
        name: {word for word in words if word in _OF_BROWSER or word.startswith("browser-")}
        for name, words in notes.items()
    }


def test_a_bad_page_costs_itself_alone(site: ScriptSite, archive: Archive) -> None:
    """S-browser-6: each has its words and its text, and the page after it is shown."""
    assert _show_bad(site, archive, BAD, 60.0) == {name: words or set() for name, words in BAD.items()}
    pages = serve_bad_pages(site, SIZES)
    for name, words in BAD.items():
        shows = _OTHERWISE.get(name, pages[name].shows)
        if shows and words:
            assert shows in _rendered(archive, site.url(pages[name].path))[1], name


def test_a_page_that_never_ends_is_ended(site: ScriptSite, archive: Archive) -> None:
    """S-browser-6: one never gives way, and cannot be read; one asks without an end, and is kept as it is then."""
    words = _show_bad(site, archive, ("busy", "endless-fetches"), 15.0)
    assert words["busy"] == {"browser-busy", "browser-time"}
    assert "rendered" in words["endless-fetches"]
    assert words["endless-fetches"] & {"browser-time", "browser-requests"}, "whichever comes first"


def test_links_of_the_dom_lead_on(site: ScriptSite, archive: Archive) -> None:
    """S-browser-9: and so does where a script leads the page, which stays as it is."""
    site.add_html("/app/", "<p id=app></p><script>app.innerHTML = '<a href=/app/two>two</a>'</script>")
    leaves = "<p id=gone></p><script>setTimeout(() => { location.href = '/app/three' }, 100)</script>"
    site.add_html("/app/two", leaves + "<script>gone.textContent = 'still here'</script>")
    site.add_html("/app/three", "<p>the third page</p>")
    outcome = crawl(archive, site.url("/app/"), fetcher="browser", depth=2)
    lines = log_lines(archive, outcome)
    assert {"added", "rendered"} <= set(lines[site.url("/app/two")].notes)
    assert "added" in lines[site.url("/app/three")].notes
    assert "still here" in _rendered(archive, site.url("/app/two"))[1]


def test_by_https_certificates_are_checked_and_secrets_stay_with_their_host(archive: Archive, tmp_path: Path) -> None:
    """As for wget: the authority of `ca`, the words for what is wrong, fields for the host that they are for alone."""
    authority = Authority(tmp_path)
    own = {
        "app.test": authority.issue("app.test"),
        "other.test": authority.issue("other.test"),
        "expired.test": authority.issue("expired.test", years=(2020, 2021)),
        "wrong.test": authority.issue("wrong.test", names="another.test"),
    }
    hosts = ("app.test", "other.test", "expired.test", "wrong.test")
    asks = "".join(f"fetch('https://{host}/data.json', {{mode: 'no-cors'}});" for host in hosts)
    page = f"<p id=app></p><script>app.textContent = 'shown ' + isSecureContext; {asks}</script>".encode()

    def answer(_: str, path: str) -> bytes:
        body, mime = (page, "text/html") if path == "/" else (b'{"n": 1}', "application/json")
        status = "404 Not Found" if path == "/robots.txt" else "200 OK"
        return f"HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    secret = secret_file(tmp_path, "X-Pass: open-sesame\n", "app.test")
    with SecureHosts(tmp_path, answer, own) as served:
        outcome = crawl(
            archive, "https://app.test/", fetcher="browser", depth=0, proxy=served.proxy, ca=str(authority.file),
            headers=(secret,), keep_warc=True,
        )  # fmt: skip
        heads = b"".join(served.heads)
    lines = log_lines(archive, outcome)
    assert "shown true" in _rendered(archive, "https://app.test/")[1]
    assert (
        "added" in lines["https://app.test/data.json"].notes and "added" in lines["https://other.test/data.json"].notes
    )
    assert "tls:expired" in lines["https://expired.test/data.json"].notes
    assert "tls:host" in lines["https://wrong.test/data.json"].notes
    by_host = {
        head.partition(b"Host: ")[2].partition(b"\r")[0] for head in heads.split(b"\r\n\r\n") if b"open-sesame" in head
    }
    assert by_host == {b"app.test"}
    kept = b"".join(path.read_bytes() for path in archive.reports.rglob("*") if path.is_file())
    assert b"open-sesame" not in kept


@contextmanager
def _memory_of_browsers() -> Iterator[list[int]]:
    """Yield the bytes that browsers below this process have, looked at again and again."""
    seen = [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            seen.append(memory_of(process.pid for process in processes_below(os.getpid()) if process.is_chromium))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def test_a_page_that_takes_all_memory_is_ended(site: ScriptSite, archive: Archive) -> None:
    pages = serve_bad_pages(site, SIZES)
    archive.settings.write_text("[browser]\nmemory = '700 MB'\n")
    hog, good = site.url(pages["hog"].path), site.url(GOOD)
    with _memory_of_browsers() as seen:
        outcome = crawl(archive, hog, good, fetcher="browser", depth=0, browser_page_seconds=30.0)
    assert 500_000_000 < max(seen) < 700_000_000 * 1.2
    lines = log_lines(archive, outcome)
    assert "browser-memory" in lines[hog].notes and "rendered" not in lines[hog].notes
    assert GOOD_WORDS in _rendered(archive, good)[1]
    assert not outcome.complete or any("browser" in warning for warning in outcome.warnings)


def test_without_a_browser_all_else_works_and_the_package_is_named(
    site: ScriptSite, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    archive.settings.write_text("[browser]\nprogram = '/nowhere/chromium'\n")
    url = site.url("/small/0.html")
    outcome = crawl(archive, url, fetcher="browser", depth=0)
    notes = log_lines(archive, outcome)[url].notes
    assert "browser-missing" in notes and "added" in notes
    assert "/nowhere/chromium" in caplog.text
    domain, arc = split(arc_path(url))
    assert read(archive, domain, arc) == site.sent_to("/small/0.html")[0].body


#: Runs a command in a user namespace in which no other namespace may be made, without any capability.
_NO_NAMESPACES = (
    "for kind in net mnt pid user; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; "
    'exec setpriv --bounding-set=-all --inh-caps=-all -- "$@"'
)


def test_without_namespaces_no_browser_starts(site: ScriptSite, archive: Archive) -> None:
    """S-browser-8: the word says so, and the page is archived as wget got it."""
    url = site.url("/small/0.html")
    arguments = ["crawl", "--archive", str(archive.root), url, "--fetcher", "browser", "--wait", "0", "--depth", "0"]
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", _NO_NAMESPACES, "sh", *COMMAND, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert "no browser shows pages" in done.stderr, done.stderr
    (report,) = archive.reports.iterdir()
    notes = log_lines(archive, report.name)[url].notes
    assert "browser-no-namespace" in notes and "added" in notes


def test_the_browser_has_no_network(tmp_path: Path) -> None:
    """S-browser-7: all of its processes are where there is no device but a loopback, which is down."""

    async def look() -> None:
        browser = Chromium.start("", window=(800, 600), user="nobody", archive=tmp_path, errors=tmp_path / "errors")
        try:
            await browser.send("Browser.getVersion")
            inside = [pid for pid in family(browser.pid) if "chromium" in Path(f"/proc/{pid}/cmdline").read_text()]
            spaces = {Path(f"/proc/{pid}/ns/net").readlink() for pid in inside[1:]} if os.geteuid() == 0 else set()
            assert Path("/proc/self/ns/net").readlink() not in spaces
            for pid in inside[1:]:
                devices = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
                assert [device.split(":")[0].strip() for device in devices] == ["lo"]
        finally:
            pids = family(browser.pid)
            await browser.close()
        # The kernel ends a namespace of processes once its first one has ended.
        eventually(lambda: not [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()])

    asyncio.run(look())


@pytest.mark.parametrize("user", ["nobody", None] if os.geteuid() == 0 else [None])
def test_what_runs_beside_the_browser_sees_neither_the_archive_nor_a_home(user: str | None) -> None:
    """S-browser-7: what broke out of Chromium's sandbox could not change what is archived."""
    with TemporaryDirectory(dir="/var/tmp") as folder:  # /tmp is another one there in any case
        archive = Path(folder)
        archive.chmod(0o777)
        (archive / "page").write_text("archived")
        command = chromium.command("/bin/sh", window=(800, 600), user=user, archive=archive)
        end = command.index("/bin/sh", command.index("sh"))
        look = 'ls -A "$1" "$2"; touch "$1/x" "$2/x"; ls /bin/sh'
        home = pwd.getpwuid(os.geteuid()).pw_dir
        done = subprocess.run(
            [*command[: end + 1], "-c", look, "sh", folder, home], capture_output=True, text=True, check=True
        )
        assert sorted(done.stdout.split()) == sorted([f"{folder}:", f"{home}:", "/bin/sh"])
        assert done.stderr.count("Read-only file system") + done.stderr.count("Permission denied") == 2
        assert [path.name for path in archive.iterdir()] == ["page"]


def test_no_process_and_no_profile_is_left(site: ScriptSite, archive: Archive) -> None:
    """S-browser-7."""
    crawl(archive, site.url("/small/0.html"), fetcher="browser", depth=0)
    left = [process.command for process in processes_below(os.getpid())]
    assert [command for command in left if "agent.crawl.browser" in command or "--headless=new" in command] == []
    assert list(archive.jobs.iterdir()) == []
