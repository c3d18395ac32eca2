"""Pages that attack the crawl by browser itself: its cookies, its pipe, its records and its bounds.

Whatever a page does costs that page alone, and sends nothing that a crawl does not send.
"""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from agent.crawl.browserpool import MOST_POSTS, is_mutation
from tests.support import script_site
from tests.support.browsers import needs_chromium
from tests.support.crawls import crawl, log_lines, secret_file, shown_text
from tests.support.script_site import MAIN, OTHER, ScriptSite
from tests.support.site import redirect
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.crawl, needs_chromium()]
site = script_site.site


def _script(site: ScriptSite, path: str, script: str, body: str = "", host: str | None = None) -> str:
    """Add a page with a paragraph `out`, where `say` writes; return its URL."""
    say = "const say = words => { document.getElementById('out').textContent = words; };"
    site.add_html(path, f"<p id=out></p>{body}<script>{say}\n{script}</script>", host=host)
    return site.url(path, host)


def test_cookies_with_any_letters_are_sent_as_they_were_set(site: ScriptSite, archive: Archive) -> None:
    """By a script or a server: their bytes come back, and the next page of the job has them, too."""
    site.add("/set", "{}", "application/json", headers={"Set-Cookie": "server=\u00c3\u00a4; Path=/"})
    site.add("/echo", "{}", "application/json")
    first = _script(site, "/first", "document.cookie = 'script=\u20ac'; fetch('/set').then(() => fetch('/echo?1'));")
    second = _script(site, "/second", "fetch('/echo?2');")
    site.add("/echo?1", "{}", "application/json")
    site.add("/echo?2", "{}", "application/json")
    assert crawl(archive, first, second, fetcher="browser", depth=0).complete
    sent = {request.path: request.headers.get("cookie", "").encode("latin-1") for request in site.requests}
    for path in ("/echo?1", "/echo?2"):
        assert set(sent[path].split(b"; ")) == {"script=\u20ac".encode(), "server=\u00e4".encode()}, path


#: Expressions of requests that are never sent, and the words that the page has of them.
_NOT_SENT = {
    "put": ("fetch('/never/put', {method: 'PUT', body: 'x'})", "method"),
    "patch": ("fetch('/never/patch', {method: 'PATCH', body: 'x'})", "method"),
    "delete": ("fetch('/never/delete', {method: 'DELETE'})", "method"),
    "made-up": ("fetch('/never/made-up', {method: 'CHANGE'})", "method"),
    "mutation": ("post('/never/mutation', JSON.stringify({query: 'mutation { change }'}))", "method"),
    "graphql": ("post('/never/graphql', ',,mutation { change }', 'application/graphql')", "method"),
    "form": ("post('/never/form', new URLSearchParams({query: 'mutation { change }'}))", "method"),
    "foreign": (f"post('http://{OTHER}/never/foreign', 'x')", "method"),
    "moved-307": ("post('/moved-307', 'x')", "method"),
    "moved-308": ("post('/moved-308', 'x')", "method"),
    "inside": ("post('http://10.0.0.1/never/inside', 'x')", "method"),
    "long": ("post('/never/long', 'x'.repeat(17000))", "no-key:long"),
    "very-long": ("post('/never/very-long', 'x'.repeat(3e6))", "no-key:long"),
    "file": ("post('/never/file', new Blob(['x'.repeat(1e6)]))", "no-key:long"),
    "with-file": (
        "(() => { const form = new FormData(); form.append('f', new Blob(['x'])); return post('/never/ff', form); })()",
        "no-key:",
    ),
}


def test_what_may_change_something_is_never_sent(site: ScriptSite, archive: Archive) -> None:
    """S-browser-4: PUT, PATCH, DELETE, mutations, and POST to other hosts, over 16 KB or beyond 50 a page."""
    for status in (307, 308):
        site.add_nasty(f"/moved-{status}", redirect(f"http://{OTHER}/never/moved", status))
    post = (
        "const post = (url, body, type = 'text/plain') => fetch(url, {method: 'POST', body, headers: body instanceof "
    )
    post += "FormData || body instanceof URLSearchParams ? {} : {'Content-Type': type}});"
    urls = {
        name: _script(site, f"/not-sent/{name}", f"{post} {send}.catch(() => 0).then(() => say('tried'));", host=MAIN)
        for name, (send, _) in _NOT_SENT.items()
    }
    many = f"{post} for (let n = 0; n < {MOST_POSTS + 20}; n++) post('/many', `number=${{n}}`);"
    urls["many"] = _script(site, "/not-sent/many", many, host=MAIN)
    site.add("/many", "{}", "application/json")
    outcome = crawl(archive, *urls.values(), fetcher="browser", depth=0, proxy=site.proxy)
    lines = log_lines(archive, outcome)
    for name, (_, word) in _NOT_SENT.items():
        assert any(note.startswith(word) for note in lines[urls[name]].notes), (name, lines[urls[name]].notes)
        assert "tried" in shown_text(archive, urls[name]), name
    assert not [response.path for response in site.responses if response.path.startswith("/never/")]
    assert {request.method for request in site.requests} == {"GET", "POST"}
    assert len(site.sent_to("/many")) == MOST_POSTS
    assert "browser-requests" in lines[urls["many"]].notes


@pytest.mark.parametrize(
    "query",
    [
        "mutation { a }", "  mutation A { a }", ",\ufeff mutation { a }", "# query\nmutation { a }",
        "query B { b } mutation A { a }", 'query B { b(x: "#") } mutation A { a }', '"words" mutation { a }',
        '"""of\n"several" lines""" mutation { a }', "fragment F on T { f }\nmutation { ...F }",
    ],
)  # fmt: skip
def test_mutations_are_known_however_they_are_written(query: str) -> None:
    assert is_mutation("application/json", json.dumps({"query": query}).encode())
    assert is_mutation("application/vnd.x+json", json.dumps([{"query": "{ b }"}, {"query": query}]).encode())
    assert is_mutation("", json.dumps({"query": query}).encode())
    assert is_mutation("application/graphql", query.encode())
    assert is_mutation("application/x-www-form-urlencoded", urlencode({"query": query}).encode())


@pytest.mark.parametrize(
    "query", ["{ mutation }", "query mutation { a }", 'query { a(x: "} mutation { b }") }', "{ a } # mutation"]
)
def test_queries_are_no_mutations(query: str) -> None:
    assert not is_mutation("application/json", json.dumps({"query": query}).encode())


def test_secrets_go_to_their_host_alone(
    site: ScriptSite, archive: Archive, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """Not to hosts of resources, of redirects and of frames, nor with a POST, nor into any file of the archive."""
    secrets = tmp_path_factory.mktemp("secrets")
    origin = f"http://{MAIN}"
    shown = {
        "login": (secret_file(secrets, "user:hidden-login", origin),),
        "headers": (secret_file(secrets, "X-Hidden: hidden-field", origin),),
        "cookies": (secret_file(secrets, "pass=hidden-cookie", origin),),
    }
    site.add_nasty("/leaves", redirect(f"http://{OTHER}/foreign/moved"))
    for path in ("/foreign/moved", "/foreign/data", "/foreign/frame"):
        site.add(path, "<p>foreign", headers={"Access-Control-Allow-Origin": "*"})
    site.add("/own", "own")
    url = _script(
        site,
        "/secret",
        f"fetch('/own').then(() => fetch('/leaves')).catch(() => 0); fetch('http://{OTHER}/foreign/data');"
        "fetch('/own', {method: 'POST', body: 'x'}).catch(() => say('refused'));",
        f"<iframe src='http://{OTHER}/foreign/frame'></iframe>",
        host=MAIN,
    )
    outcome = crawl(archive, url, fetcher="browser", depth=0, proxy=site.proxy, keep_warc=True, **shown)
    base64_login = "dXNlcjpoaWRkZW4tbG9naW4="
    values = (base64_login, "hidden-login", "hidden-field", "hidden-cookie")
    foreign = [request for request in site.requests if request.host.partition(":")[0] == OTHER]
    assert {request.path for request in foreign} >= {"/foreign/moved", "/foreign/data", "/foreign/frame"}
    for request in foreign:
        assert not [value for value in values if value in str(request.headers)], request.path
    own = [request for request in site.requests if request.path == "/own"]
    assert [request.method for request in own] == ["GET"]
    assert all(value in str(own[0].headers) for value in (base64_login, "hidden-field", "hidden-cookie"))
    lines = log_lines(archive, outcome)
    assert "method" in lines[url].notes and "refused" in shown_text(archive, url)
    for path in archive.root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [value for value in values if value.encode() in content], path
    assert not [value for value in values if value in caplog.text]


def test_a_flood_costs_its_page_alone(site: ScriptSite, archive: Archive) -> None:
    """A thousand requests at once, URLs of a megabyte, frames and workers without an end, dialogs without an end."""
    site.add("/worker.js", "postMessage(1)", "text/javascript")
    pages = {
        "requests": "for (let n = 0; n < 1000; n++) fetch('/flood/' + n).catch(() => 0); say('sent');",
        "urls": "for (let n = 0; n < 30; n++) fetch('/long?' + n + 'x'.repeat(1 << 20)).catch(() => 0); say('sent');",
        "frames": "setInterval(() => { for (let n = 0; n < 50; n++) { const frame = document.createElement('iframe');"
        "frame.src = '/flood/frame'; document.body.append(frame); } }, 100); say('sent');",
        "workers": "setInterval(() => { for (const n of 'abcde') new Worker('/worker.js?' + Math.random()); }, 100);",
        "dialogs": "for (;;) alert('once more');",
    }
    urls = {name: _script(site, f"/flood-{name}", script) for name, script in pages.items()}
    good = _script(site, "/good-one", "say('good words');")
    outcome = crawl(
        archive, *urls.values(), good, fetcher="browser", depth=0, browser_page_seconds=8.0, browser_requests=50
    )
    lines = log_lines(archive, outcome)
    assert "good words" in shown_text(archive, good)
    words = {name: {word for word in lines[url].notes if word.startswith("browser-")} for name, url in urls.items()}
    assert "browser-requests" in words["requests"]
    assert words["frames"] & {"browser-time", "browser-requests", "browser-memory"}
    assert words["dialogs"] == {"browser-busy"}
    assert not [url for url in lines if len(url) > 10_000], "nothing that long has a line"
    assert len([response for response in site.responses if response.path.startswith("/flood/")]) <= 100


def test_names_of_elements_hide_nothing(site: ScriptSite, archive: Archive) -> None:
    """A form named `body` takes the place of the page's body for scripts; what is kept is what a reader sees."""
    names = ("body", "title", "documentElement", "scrollingElement", "querySelectorAll")
    forms = "".join(f"<form name={name}><input name=innerText><input name=outerHTML></form>" for name in names)
    url = _script(site, "/names", "say('seen by readers');", forms)
    outcome = crawl(archive, url, fetcher="browser", depth=0)
    assert "rendered" in log_lines(archive, outcome)[url].notes
    assert "seen by readers" in shown_text(archive, url)


def test_a_dom_beyond_the_bound_leaves_text_and_links(site: ScriptSite, archive: Archive) -> None:
    """The DOM itself is not read out of the browser then."""
    script = "document.body.append(document.createComment('\u20ac'.repeat(60e6))); say('large page');"
    url = _script(site, "/large", "out.innerHTML = '<a href=/linked>x</a>'; " + script.replace("say", "out.append"))
    site.add_html("/linked", "linked")
    outcome = crawl(archive, url, fetcher="browser", depth=1)
    lines = log_lines(archive, outcome)
    assert "browser-dom" in lines[url].notes and "large page" in shown_text(archive, url)
    assert site.url("/linked") in lines


def test_workers_have_the_clock_and_the_chance_of_their_page(site: ScriptSite, archive: Archive) -> None:
    """S-browser-5: two crawls get the same numbers; the clock is that of the page, to the minute."""
    worker = "postMessage([Math.random(), Date.now()])"
    site.add("/numbers.js", worker, "text/javascript")
    url = _script(
        site,
        "/numbers",
        "const clock = Date.now(), chance = Math.random(); new Worker('/numbers.js').onmessage = ({data}) => "
        "say(`worker ${data[0]} page ${chance} apart ${Math.abs(data[1] - clock) < 30000} "
        "minute ${clock % 60000 < 30000}`);",
    )
    texts = []
    for _ in range(2):
        crawl(archive, url, fetcher="browser", depth=0)
        texts.append(shown_text(archive, url))
    assert texts[0] == texts[1]
    assert "apart true minute true" in texts[0]


def test_what_another_page_left_in_the_browser_is_gone(site: ScriptSite, archive: Archive) -> None:
    """Storage of the page and of frames of other sites, the name of the window, workers that are shared."""
    site.add_html(
        "/keeper",
        "<p id=f></p><script>f.textContent = 'frame ' + localStorage.left; localStorage.left = 'yes';"
        "parent.postMessage(f.textContent, '*')</script>",
        host=OTHER,
    )
    script = (
        "addEventListener('message', async ({data}) => { const name = window.name, kept = localStorage.left;"
        "const folder = await navigator.storage?.getDirectory?.().catch(() => null); let files = 0;"
        "if (folder) for await (const file of folder.keys()) files++;"
        "say(`${data} name [${name}] kept ${kept} session ${sessionStorage.left} files ${files}`);"
        "window.name = 'left'; localStorage.left = sessionStorage.left = 'yes';"
        "if (folder) await folder.getFileHandle('left', {create: true}); });"
    )
    frame = f"<iframe src='http://{OTHER}/keeper'></iframe>"
    urls = [_script(site, f"/left/{number}", script, frame, host=MAIN) for number in range(2)]
    crawl(archive, *urls, fetcher="browser", depth=0, proxy=site.proxy)
    for url in urls:
        assert "frame undefined name [] kept undefined session undefined files 0" in shown_text(archive, url)
