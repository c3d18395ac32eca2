"""Pages that hang, flood, leave, lie or attack, for crawls by browser: one for each trouble, on a `ScriptSite`.

    with ScriptSite() as site:
        pages = serve_bad_pages(site)
        pages["dialogs"].path, pages["dialogs"].right

Each function makes the page of its name; its docstring says what a crawl by browser does right. For every one of them
holds: the page costs no more than its bounds, has a word where something is missing, and the next page is archived.
`GOOD` is such a next page.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tests.support import nasty
from tests.support.script_site import INSIDE, ScriptSite, html_page, json_page, picture
from tests.support.site import Everywhere, Site, redirect
from tests.support.wire import HTML, Answer, Exchange, error_page, head, page

#: A page that works, to be shown after a bad one.
GOOD: Final = "/good.html"
#: What it shows.
GOOD_WORDS: Final = "good, by script"
_JAVASCRIPT: Final = "text/javascript"
_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BadPageSizes:
    """How large or slow the bad pages are, in bytes and seconds."""

    large: int = 60 << 20
    bomb: int = 512 << 20
    dom: int = 10 << 20
    cookie: int = 100_000
    frames: int = 200
    slow: float = 10.0


@dataclass(frozen=True, slots=True)
class BadPage:
    """A page on the site, what a crawl does right with it, and what Chromium with the network shows in the end.

    `shows` is empty where it shows nothing certain.
    """

    name: str
    path: str
    right: str
    shows: str


class _Place:
    """Where a bad page is made: `/bad/NAME`, and whatever it needs below that."""

    def __init__(self, site: Site, name: str, sizes: BadPageSizes) -> None:
        self.site = site
        self.sizes = sizes
        self.path = f"/bad/{name}"
        self._name = name

    def html(self, body: str, headers: Mapping[str, str] | None = None) -> None:
        """The page itself."""
        self.page(html_page(self._name, body, headers))

    def script(self, script: str, body: str = "", headers: Mapping[str, str] | None = None) -> None:
        """The page itself, with a paragraph `out` and a script that may write there by `say`."""
        say = "const say = words => { document.getElementById('out').textContent = words; };"
        self.html(f"<p>bad</p><p id=out></p>{body}<script>{say}\n{script}</script>", headers)

    def page(self, answer: Answer) -> None:
        """Any answer at the place of the page itself."""
        self.site.add_nasty(self.path, answer)

    def below(self, name: str, answer: Answer) -> str:
        """What the page needs; returns its path."""
        path = f"{self.path}/{name}"
        self.site.add_nasty(path, answer)
        return path


_Maker = Callable[[_Place], None]
_MAKERS: dict[str, tuple[_Maker, str]] = {}


def _bad(shows: str = "") -> Callable[[_Maker], _Maker]:
    def register(make: _Maker) -> _Maker:
        _MAKERS[make.__name__.replace("_", "-")] = (make, shows)
        return make

    return register


def serve_bad_pages(site: ScriptSite, sizes: BadPageSizes | None = None) -> dict[str, BadPage]:
    """Put all of them, and the good page, on a site; returns them by name."""
    made: dict[str, BadPage] = {}
    for name, (make, shows) in _MAKERS.items():
        place = _Place(site, name, sizes or BadPageSizes())
        make(place)
        made[name] = BadPage(name, place.path, " ".join((make.__doc__ or "").split()), shows)
    site.add_nasty("/good/words.json", json_page({"words": GOOD_WORDS}))
    fetch = "fetch('/good/words.json').then(answer => answer.json())"
    show = "value => { document.getElementById('out').textContent = value.words; }"
    site.add_nasty(GOOD, html_page("good", f"<p id=out></p><script>{fetch}.then({show});</script>"))
    return made


# -- that ask somebody, or for something that nobody is there for ------------------------------------------------------


@_bad("false null left")
def dialogs(place: _Place) -> None:
    """Each dialog is dismissed; the page is captured with `false null left`, and it can be left."""
    place.script(
        "alert('first'); const words = `${confirm('second')} ${prompt('third')}`; say(`${words} left`);"
        "addEventListener('beforeunload', event => { event.preventDefault(); event.returnValue = 'stay'; });"
    )


@_bad("printed")
def prints(place: _Place) -> None:
    """Nothing is printed, and the page is captured with `printed`."""
    place.script("print(); say('printed');")


@_bad("five windows")
def popups(place: _Place) -> None:
    """No window is opened, and nothing is asked for on behalf of one: `popup` in the log."""
    for number in range(5):
        place.below(f"window-{number}", html_page("popup", "<p>popup"))
    place.script(
        f"let open = 0; for (let i = 0; i < 5; i++) {{ const other = window.open('{place.path}/window-' + i);"
        "if (other) open++; } say(`five windows, ${open} open`);"
    )


@_bad()
def password(place: _Place) -> None:
    """Nobody is asked for a password; the page is kept, its picture and its data are answers with status 401."""
    refused = error_page(401, {"WWW-Authenticate": 'Basic realm="closed"'})
    shot, data = place.below("closed.png", refused), place.below("closed.json", refused)
    place.script(f"fetch('{data}').then(answer => say(`status ${{answer.status}}`));", f"<img src={shot} alt=''>")


@_bad()
def password_page(place: _Place) -> None:
    """The page is an answer with status 401; no browser shows it."""
    place.page(error_page(401, {"WWW-Authenticate": 'Basic realm="closed"'}))


@_bad("permissions refused")
def permissions(place: _Place) -> None:
    """Place, camera, notifications and a clipboard are refused without a question."""
    place.script(
        "const asked = [new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no)),"
        "Notification.requestPermission().then(word => { if (word !== 'granted') throw word; }),"
        "Promise.resolve().then(() => navigator.mediaDevices.getUserMedia({ video: true })),"
        "Promise.resolve().then(() => navigator.clipboard.readText())];"
        "Promise.allSettled(asked).then(ends => say("
        "ends.some(end => end.status === 'fulfilled') ? 'permissions given' : 'permissions refused'));"
    )


# -- that never end ----------------------------------------------------------------------------------------------------


@_bad()
def endless_fetches(place: _Place) -> None:
    """The page is cut at the bound of requests or of time, and kept with what it showed then."""
    place.site.mount(_Numbered(json_page({"word": "more"})), at=f"{place.path}/poll")
    place.script(f"let n = 0; setInterval(() => {{ fetch('{place.path}/poll/' + ++n); say(`asked ${{n}}`); }}, 100);")


@_bad()
def endless_scroll(place: _Place) -> None:
    """The page grows with each step; scrolling ends at the bound of screens, and the page is kept."""
    place.site.mount(_Numbered(json_page({"word": "another line"})), at=f"{place.path}/part")
    place.script(
        "let n = 0; const more = new IntersectionObserver(async entries => {"
        f"if (!entries.some(entry => entry.isIntersecting)) return; await fetch('{place.path}/part/' + ++n);"
        "const line = document.createElement('p'); line.style.height = '2000px'; line.textContent = `line ${n}`;"
        "end.before(line); more.unobserve(end); more.observe(end); });"
        "const end = document.getElementById('end'); more.observe(end);",
        "<div id=end>end</div>",
    )


@_bad()
def endless_button(place: _Place) -> None:
    """Its button never goes; clicking ends at the bound of clicks, and the page is kept."""
    place.site.mount(_Numbered(json_page({"word": "more"})), at=f"{place.path}/part")
    place.script(
        f"let n = 0; more.onclick = async () => {{ await fetch('{place.path}/part/' + ++n); say(`clicked ${{n}}`); }};",
        "<button id=more>Load more</button>",
    )


@_bad()
def busy(place: _Place) -> None:
    """The script never gives way: the page ends at its time, no DOM is kept, and no process stays busy."""
    place.script("say('before'); setTimeout(() => { for (;;) {} }, 300);")


@_bad()
def busy_at_once(place: _Place) -> None:
    """The script never gives way before the page has loaded: as above."""
    place.script("for (;;) {}")


@_bad()
def hog(place: _Place) -> None:
    """The browser is killed at its bound of memory, before the machine has none left."""
    place.script(
        "const kept = []; setInterval(() => { const part = new Uint8Array(16 << 20); part.fill(kept.length + 1);"
        "kept.push(part); say(`${kept.length * 16} MiB`); }, 50);"
    )


@_bad()
def silent(place: _Place) -> None:
    """The page gets no answer: it times out, and no browser is begun for it."""
    place.page(nasty.hang())


@_bad("before")
def silent_script(place: _Place) -> None:
    """A script gets no answer: the page ends at its bound, and is kept with the word that it did not load."""
    script = place.below("silent.js", nasty.hang())
    place.html(f"<p>before</p><script src={script} defer></script>")


@_bad("after a while")
def slow_answer(place: _Place) -> None:
    """Data come late, but within the page's time: they are waited for, kept and shown."""
    late = place.below("late.json", nasty.slow(place.sizes.slow, json_page({"word": "after a while"})))
    place.script(f"fetch('{late}').then(answer => answer.json()).then(value => say(value.word));")


@_bad("first event")
def streams(place: _Place) -> None:
    """A stream by fetch and one of events are cut, and hold up neither each other nor the requests beside them."""

    def lines(exchange: Exchange) -> None:
        exchange.begin(200, {"Content-Type": "text/plain", "Transfer-Encoding": "chunked"})
        while True:
            exchange.send(b"5\r\nline\n\r\n")
            exchange.wait(0.2)

    events = place.below("lines", lines)
    beside = place.below("beside.json", json_page({"word": "first event"}))
    place.script(
        f"fetch('{events}').then(answer => answer.text()); new EventSource('/events');"
        f"setTimeout(() => fetch('{beside}').then(answer => answer.json()).then(value => say(value.word)), 300);"
    )


# -- that leave --------------------------------------------------------------------------------------------------------


@_bad("arrived")
def leaves(place: _Place) -> None:
    """The page goes elsewhere after half a second: what is kept is that of its own URL, and the other is a link."""
    other = place.below("other", html_page("other", "<p>arrived"))
    place.script(f"setTimeout(() => {{ location = '{other}'; }}, 500);")


@_bad()
def leaves_for_another_host(place: _Place) -> None:
    """The page goes to a host outside the crawl: nothing is asked of that."""
    place.script("setTimeout(() => { location = 'http://foreign.test/'; }, 300);")


@_bad()
def to_and_fro(place: _Place) -> None:
    """Two pages lead to one another for ever: cut by a bound."""
    other = place.below("other", html_page("fro", f"<p>fro<script>location = '{place.path}';</script>"))
    place.script(f"location = '{other}';")


@_bad()
def refresh(place: _Place) -> None:
    """A refresh to itself, for ever: cut by a bound; a page of errors of the browser is never kept."""
    place.html(f"<meta http-equiv=refresh content='0;url={place.path}'><p>again")


@_bad()
def download_page(place: _Place) -> None:
    """The page is a download: it is kept as the file that it is, and no browser waits for it."""
    fields = {"Content-Disposition": "attachment; filename=page.bin"}
    place.page(page(b"\0\1\2\3" * 5_000, "application/octet-stream", headers=fields))


@_bad("saved")
def download_link(place: _Place) -> None:
    """A script saves a file: nothing lands on the disk, the page is kept."""
    fields = {"Content-Disposition": "attachment; filename=x.bin"}
    file = place.below("x.bin", page(b"\0\1\2\3" * 5_000, "application/octet-stream", headers=fields))
    place.script(
        f"const link = document.createElement('a'); link.href = '{file}'; link.download = 'x.bin';"
        "document.body.append(link); setTimeout(() => { link.click(); say('saved'); }, 200);"
    )


def _to(scheme: str) -> _Maker:
    def make(place: _Place) -> None:
        targets = {"file": "file:///etc/hostname", "chrome": "chrome://version/", "about": "about:blank"}
        moved = place.below("moved", redirect(targets[scheme]))
        place.script(
            f"fetch('{moved}').then(() => say('followed'), () => say('refused'));"
            f"const frame = document.createElement('iframe'); frame.src = '{moved}'; document.body.append(frame);"
            f"setTimeout(() => {{ location = '{targets[scheme]}'; }}, 2_000);"
        )

    make.__name__ = f"redirect_{scheme}"
    make.__doc__ = f"It leads to {scheme}: by redirect, frame and script; nothing of that is shown or kept."
    return make


for _scheme in ("file", "chrome", "about"):
    _bad()(_to(_scheme))


# -- that are cut, large, or not what they say -------------------------------------------------------------------------


@_bad()
def half_body(place: _Place) -> None:
    """The page stops amid its body: `truncated` or a timeout, and what came is kept as today."""

    def half(exchange: Exchange) -> None:
        exchange.begin(200, {"Content-Type": HTML, "Content-Length": "100000"})
        exchange.send(b"<!DOCTYPE html><title>half</title><p>begun")
        exchange.wait(3_600)

    place.page(half)


@_bad("picture failed")
def cut_picture(place: _Place) -> None:
    """A picture ends amid its body: it is no whole response, is not kept as one, and the page is."""
    fields = head(200, {"Content-Type": "image/png", "Content-Length": "1000"})
    cut = place.below("cut.png", nasty.then_close(fields + picture(1)[:40]))
    place.html(f"<p id=out></p><img src={cut} alt='' onerror=\"out.textContent = 'picture failed'\">")


@_bad("data 2")
def false_lengths(place: _Place) -> None:
    """Data longer and shorter than Content-Length says: the first is kept to that length, the second is cut."""
    longer = place.below("longer.json", _with_length(b'{"data": 2}' + b" " * 50, 11))
    shorter = place.below("shorter.json", _with_length(b'{"data": 3}', 60))
    place.script(
        f"fetch('{shorter}').then(answer => answer.json()).then(() => say('believed'), () => "
        f"fetch('{longer}').then(answer => answer.json()).then(value => say(`data ${{value.data}}`)));"
    )


def _with_length(body: bytes, length: int) -> Answer:
    return nasty.then_close(head(200, {"Content-Type": "application/json", "Content-Length": str(length)}) + body)


@_bad()
def large_body(place: _Place) -> None:
    """A body of many MiB is cut at the bound of a file or of the page's bytes, in flat memory, with its word."""
    large = place.below("large.bin", nasty.big_body(place.sizes.large))
    place.script(
        f"fetch('{large}').then(answer => answer.blob()).then(value => say(`${{value.size}}`), () => say('cut'));"
    )


@_bad()
def bomb(place: _Place) -> None:
    """A small gzip body of a huge content: kept as sent; it is never unpacked beyond the bound."""
    data = place.below("bomb.txt", _packed("text/plain", place.sizes.bomb))
    place.script(
        f"fetch('{data}').then(answer => answer.text()).then(value => say(`${{value.length}}`), () => say('cut'));"
    )


@_bad()
def bomb_page(place: _Place) -> None:
    """The page itself is a gzip bomb: kept as sent; it is not shown."""
    place.page(_packed(HTML, place.sizes.bomb))


def _packed(kind: str, size: int) -> Answer:
    """A bomb that is made when it is first asked for."""

    def answer(exchange: Exchange) -> None:
        page(gzip_bomb(size), kind, headers={"Content-Encoding": "gzip"})(exchange)

    return answer


@lru_cache(maxsize=4)
def gzip_bomb(size: int) -> bytes:
    """A gzip stream of so many bytes of blanks (whole mebibytes), made of one packed mebibyte again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    blanks = b" " * _MEBIBYTE
    piece = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)
    last = packer.flush()
    checksum = 0
    for _ in range(size // _MEBIBYTE):
        checksum = zlib.crc32(blanks, checksum)
    length = size // _MEBIBYTE * _MEBIBYTE
    footer = checksum.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little")
    return b"\x1f\x8b\x08\0\0\0\0\0\2\xff" + piece * (size // _MEBIBYTE) + last + footer


@_bad("after the cookie")
def large_cookie(place: _Place) -> None:
    """A Set-Cookie field of 100 kB: the answer is kept as it is, the cookie need not be."""
    data = place.below(
        "cookie.json", json_page({"word": "after the cookie"}, **{"Set-Cookie": "x=" + "y" * place.sizes.cookie})
    )
    place.script(f"fetch('{data}').then(answer => answer.json()).then(value => say(value.word), () => say('failed'));")


@_bad("statuses 204 205 304")
def statuses(place: _Place) -> None:
    """Answers without bodies, by script: each is given to the page as it is, and none stops it."""
    names = [place.below(str(status), error_page(status)) for status in (204, 205, 304)]
    asked = ", ".join(f"fetch('{name}')" for name in names)
    place.script(
        f"Promise.all([{asked}]).then(answers => say('statuses ' + answers.map(answer => answer.status).join(' ')),"
        "error => say(`failed: ${error}`));"
    )


@_bad("status 101 refused")
def switching(place: _Place) -> None:
    """101 to a request that asked for nothing of it: no response; the page goes on."""
    fields = {"Upgrade": "other", "Connection": "Upgrade"}
    other = place.below("other", nasty.then_close(head(101, fields) + b"other words"))
    place.script(f"fetch('{other}').then(() => say('status 101 taken'), () => say('status 101 refused'));")


@_bad()
def status_204(place: _Place) -> None:
    """The page has no content: an answer of its status, as by wget; no browser shows it."""
    place.page(error_page(204))


@_bad()
def status_205(place: _Place) -> None:
    """The page has no content, and says to reset the form: as 204."""
    place.page(page(b"", None, 205))


@_bad("hinted")
def early_hints(place: _Place) -> None:
    """An interim head of 103 comes before the answer: the answer is kept, and the hint breaks nothing."""
    hint = head(103, {"Link": f"<{place.path}/hinted.css>; rel=preload; as=style"})
    place.below("hinted.css", page(b"p { color: black }", "text/css"))
    body = (
        f"<!DOCTYPE html><title>early-hints</title><link rel=stylesheet href={place.path}/hinted.css><p>hinted".encode()
    )
    place.page(nasty.raw(hint + head(200, {"Content-Type": HTML, "Content-Length": str(len(body))}) + body))


@_bad("preloaded")
def preload(place: _Place) -> None:
    """A Link field asks for a style and a script before the page does: each is asked for once, and kept."""
    style = place.below("early.css", page(b"p { color: black }", "text/css"))
    script = place.below("early.js", page(b"document.getElementById('out').textContent = 'preloaded';", _JAVASCRIPT))
    links = f"<{style}>; rel=preload; as=style, <{script}>; rel=preload; as=script"
    place.html(f"<p id=out></p><link rel=stylesheet href={style}><script src={script}></script>", {"Link": links})


# -- whose DOM is hard to take -----------------------------------------------------------------------------------------


@_bad("written late")
def writes_late(place: _Place) -> None:
    """document.write after load replaces the page: what is kept is what is shown."""
    write = "document.write('<title>late</title><p>written late'); document.close();"
    place.script(f"addEventListener('load', () => setTimeout(() => {{ {write} }}, 200));")


@_bad()
def many_frames(place: _Place) -> None:
    """Hundreds of frames: those beyond the bound of requests are refused, the page is kept."""
    place.site.mount(_Numbered(html_page("frame", "<p>frame")), at=f"{place.path}/frame")
    place.script(
        f"for (let i = 0; i < {place.sizes.frames}; i++) {{ const frame = document.createElement('iframe');"
        f"frame.src = '{place.path}/frame/' + i; document.body.append(frame); }} say('frames');"
    )


@_bad("large DOM")
def large_dom(place: _Place) -> None:
    """A DOM of some MiB: kept if the bound allows it, else left out with a word; memory stays within its bound."""
    line = "<p>0123456789 a line of the large page, with some words in it</p>"
    place.script(
        f"const box = document.createElement('div'); box.innerHTML = '{line}'.repeat({place.sizes.dom // len(line)});"
        "document.body.append(box); say('large DOM');"
    )


@_bad("NUL")
def nul_title(place: _Place) -> None:
    """A title and a text with NUL, a lone surrogate and control characters: the rendered form is valid UTF-8 text."""
    place.script("document.title = 'a\\u0000b\\ud800c\\u001bd'; say('NUL \\ud800');")


@_bad("base")
def base(place: _Place) -> None:
    """<base> of another host: links of the DOM are resolved by it, as browsers do."""
    place.html("<base href='http://other.test/below/'><p>base <a href=page>link</a>")


@_bad("true words")
def overwritten(place: _Place) -> None:
    """The page replaces what a recorder might call: what is kept is the true DOM, with `true words`."""
    place.script(
        "say('true words');"
        "Array.prototype.map = Array.prototype.push = () => 'false words'; JSON.stringify = () => 'false words';"
        "for (const [owner, name] of [[Element.prototype, 'outerHTML'], [Element.prototype, 'innerHTML'],"
        "[HTMLElement.prototype, 'innerText'], [Node.prototype, 'textContent'], [Document.prototype, 'title'],"
        "[Document.prototype, 'documentElement'], [Document.prototype, 'scrollingElement']])"
        " try { Object.defineProperty(name in document ? document : owner, name, { get: () => 'false words' });"
        " Object.defineProperty(owner, name, { get: () => 'false words' }); } catch (error) { }"
        "Promise.prototype.then = () => 'false words'; Object.defineProperty(window, 'fetch', { value: null });"
    )


@_bad("open root")
def shadow_roots(place: _Place) -> None:
    """Open, closed and declared shadow roots: the texts of the open ones and the declared one are in what is kept."""
    declared = "<div id=declared><template shadowrootmode=open><p>declared root</p></template></div>"
    place.script(
        "for (const mode of ['open', 'closed']) { const owner = document.createElement('div');"
        "document.body.append(owner);"
        "owner.attachShadow({ mode }).innerHTML = `<p>${mode} root</p>`; }",
        declared,
    )


@_bad("eval refused")
def strict_policy(place: _Place) -> None:
    """A policy forbids eval, frames and all sources but its own: it holds for the page, and not for the recorder."""
    script = place.below("own.js", page(
        b"try { eval('1'); } catch (error) { document.getElementById('out').textContent = 'eval refused'; }",
        _JAVASCRIPT,
    ))  # fmt: skip
    policy = "default-src 'none'; script-src 'self'; sandbox allow-scripts"
    place.html(f"<p id=out></p><script src={script}></script>", {"Content-Security-Policy": policy})


# -- whose requests are hard to judge ----------------------------------------------------------------------------------


@_bad("shared words")
def shared_worker(place: _Place) -> None:
    """What a SharedWorker asks for is judged, fetched and kept like a page's own."""
    words = place.below("words.json", json_page({"word": "shared words"}))
    worker = place.below("shared.js", page(
        f"onconnect = event => fetch('{words}').then(answer => answer.json())"
        ".then(value => event.ports[0].postMessage(value.word));", _JAVASCRIPT
    ))  # fmt: skip
    place.script(f"const shared = new SharedWorker('{worker}'); shared.port.onmessage = event => say(event.data);")


@_bad()
def service_worker(place: _Place) -> None:
    """No service worker is registered; a page that wants one is captured as browsers without them show it.

    Browsers allow them over http on this machine's own names only, such as `localhost`.
    """
    worker = place.below("service.js", page(
        "oninstall = event => { skipWaiting(); event.waitUntil(fetch('/good/words.json')); };"
        "onactivate = event => event.waitUntil(clients.claim());"
        "onfetch = event => { if (event.request.url.endsWith('/made'))"
        " event.respondWith(new Response('made by a worker')); };",
        _JAVASCRIPT,
    ))  # fmt: skip
    place.script(
        f"if (!navigator.serviceWorker) say('without'); else navigator.serviceWorker.register('{worker}')"
        ".then(() => navigator.serviceWorker.ready).then(() => say('registered'), () => say('without'));"
    )


@_bad("leaving")
def beacon(place: _Place) -> None:
    """A beacon at the end is a POST like others: sent at most once, and never after the page has been closed."""
    sent = place.below("sent", page(b"", "text/plain"))
    place.script(f"addEventListener('pagehide', () => navigator.sendBeacon('{sent}', 'gone')); say('leaving');")


@_bad("same same")
def twice_at_once(place: _Place) -> None:
    """The same URL is asked for twice at the same time: it is fetched once, and both get the answer."""
    data = place.below("data.json", nasty.slow(0.5, json_page({"word": "same"})))
    asked = f"fetch('{data}', {{ cache: 'no-store' }}).then(answer => answer.json())"
    place.script(f"Promise.all([{asked}, {asked}]).then(([one, two]) => say(`${{one.word}} ${{two.word}}`));")


@_bad("script run")
def robots_script(place: _Place) -> None:
    """robots.txt forbids the script and not the page: the script is not asked for, and the page says so by its word.

    Chromium that nobody holds back runs it.
    """
    path = "/private/robots-script.js"
    place.site.add(path, b"document.getElementById('out').textContent = 'script run';", _JAVASCRIPT)
    place.html(f"<p id=out>script not run</p><script src={path}></script>")


@_bad()
def inside(place: _Place) -> None:
    """Pictures, data, frames and redirects of private addresses, in all spellings: nothing of that is asked for."""
    moved = [
        place.below(f"moved-{number}", redirect(f"http://{name}/inside/moved")) for number, name in enumerate(INSIDE)
    ]
    spellings = [*INSIDE, "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:169.254.169.254]"]
    asked = [*(f"http://{name}/inside/{number}" for number, name in enumerate(spellings)), *moved]
    tags = "".join(f"<img src='{url}' alt=''>" for url in asked)
    fetches = "".join(f"fetch('{url}', {{ mode: 'no-cors' }}).catch(() => 0);" for url in asked)
    frame = f"<iframe src='http://{INSIDE[2]}/inside/frame'></iframe>"
    place.script(f"{fetches} say('asked');", tags + frame)


@_bad()
def methods(place: _Place) -> None:
    """PUT, PATCH, DELETE, a GraphQL mutation, a POST to another host, of over 16 KB, and more than 50 of them: what is
    refused is never sent, and has its word.
    """
    data = place.below("data", json_page({"word": "sent"}))
    place.script(
        f"const send = (method, body, url = '{data}') => fetch(url, {{ method, body,"
        " headers: { 'Content-Type': 'text/plain' } }).catch(() => 0);"
        "for (const method of ['PUT', 'PATCH', 'DELETE']) send(method, 'x');"
        "send('POST', JSON.stringify({ query: 'mutation { change }' }), '/graphql');"
        "send('POST', 'for another', 'http://other.test/api/form');"
        "send('POST', 'long '.repeat(4_000)); for (let n = 0; n < 60; n++) send('POST', `number ${n}`);"
        "say('sent');"
    )


@_bad()
def token(place: _Place) -> None:
    """Forms with a token that differs each time: its answer is kept under a key without the token."""
    data = place.below("data", json_page({"word": "taken"}))
    place.script(
        f"fetch('{data}', {{ method: 'POST', body: new URLSearchParams({{ q: 'word',"
        " csrf_token: String(Math.random()) }) }).then(answer => answer.json()).then(value => say(value.word));"
    )


@_bad("stamped")
def stamps(place: _Place) -> None:
    """URLs with the time and with chance: answered, and kept under the same URLs by the next crawl of an equal site."""
    place.site.mount(Everywhere(json_page({"word": "stamped"})), at=f"{place.path}/data")
    place.script(
        f"fetch('{place.path}/data/time?_=' + Date.now()).then(() => "
        f"fetch('{place.path}/data/chance?r=' + Math.random())).then(answer => answer.json())"
        ".then(value => say(value.word));"
    )


@_bad("no network")
def other_ways(place: _Place) -> None:
    """WebRTC, WebTransport, a DNS hint and a prefetch reach nothing beside the fetcher."""
    hints = "<link rel=dns-prefetch href=//hinted.test><link rel=preconnect href=//hinted.test>"
    place.script(
        "try { new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:9' }] }).createDataChannel('x'); }"
        " catch (error) { }"
        " try { new WebTransport('https://127.0.0.1:9/').ready.catch(() => 0); } catch (error) { } say('no network');",
        hints,
    )


class _Numbered:
    """The same answer at `/NUMBER`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def find(self, path: str) -> Answer | None:
        """The answer, for a number."""
        return self._answer if path[1:].isdecimal() else None
