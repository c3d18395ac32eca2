"""`make demo`: from a web site to an archive that is read as files, step by step, in a terminal.

Serves Python's own documentation (Debian's python3.11-doc) on loopback, crawls it, mounts the archive, lets the site
change, crawls again, shows both snapshots, has a browser show a page that scripts make (where Debian's chromium is
installed), and opens the reading room. With a URL it crawls that site instead, once and
politely. The commands that are shown are those that were run, and what they must print is checked; so the demo is a
test as well. It leaves nothing behind: no mount, no process, no file.
"""

# ruff: noqa: T201 # it is there to print
from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, ClassVar

from agent.crawl.browser_check import check_browser
from webarcfs.archive.config.settings import BrowserSettings
from webarcfs.archive.model.errors import Exit, WebarcError
from webarcfs.mount.process import mountpoint

#: The site that the demo serves, and the package that it is of.
SITE, PACKAGE = Path("/usr/share/doc/python3.11/html"), "python3.11-doc"
#: What changes between the two crawls.
EDITED, REMOVED, ADDED = "bugs.html", "about.html", "errata.html"
#: A page that is empty until the documentation's own scripts, which Sphinx built, have searched for a word.
SCRIPTED, WORD = "find.html", "lumberjack"
_SCRIPTS = ("jquery", "underscore", "_sphinx_javascript_frameworks_compat", "doctools", "sphinx_highlight",
            "searchtools", "language_data")  # fmt: skip
#: Lines of a command's output that are shown, unless more are asked for.
SHOWN = 12


class DemoFailed(Exception):
    """Something that the demo shows is not as it must be."""


def check(holds: object, what: str) -> None:
    """Raise DemoFailed unless it holds."""
    if not holds:
        raise DemoFailed(what)


class Terminal:
    """What the reader sees: headings, sentences, commands and their output; colours on a terminal only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._steps = 0
        self._running: subprocess.Popen[str] | None = None
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        self._environment = {**os.environ, "PATH": path}

    def without_proxy(self) -> None:
        """Keep a proxy that this machine may use out of what goes to loopback."""
        self._environment |= {"no_proxy": "localhost", "NO_PROXY": "localhost"}

    def heading(self, text: str) -> None:
        """Begin a step."""
        self._steps += 1
        print(f"\n{self._in('1;36', f'{self._steps}. {text}')}")

    def say(self, text: str) -> None:
        """A short explanation."""
        print(textwrap.fill(text, min(100, shutil.get_terminal_size().columns)))

    def run(self, command: str, codes: tuple[int, ...] = (0,), shown: int = SHOWN) -> str:
        """Show a shell line, run it, show the beginning of what it prints, and return the whole of that."""
        print(self._in("1", f"$ {command}"), flush=True)
        self._running = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # what it starts can then be ended as one
        )
        output, _ = self._running.communicate()
        code, self._running = self._running.returncode, None
        lines = output.splitlines()
        if code not in codes:
            shown = len(lines)
        for line in lines[:shown]:
            print(f"  {line[:400]}")
        if len(lines) > shown:
            print(self._in("2", f"  … {len(lines) - shown} more lines"))
        sys.stdout.flush()
        check(code in codes, f"`{command}` ended with exit code {code}")
        return output

    def end(self) -> None:
        """End the command that an interruption left running, with all that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._running is not None and self._running.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._running.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self._running.wait(15)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text


class Pages(SimpleHTTPRequestHandler):
    """Serves the site, with pages of the demo's own in the place of some of its files."""

    protocol_version = "HTTP/1.1"
    #: Path → the page there; None: it is gone.
    own: ClassVar[dict[str, bytes | None]] = {}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(SITE))

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Answer up to the body, which is returned."""
        if self.path not in self.own:
            return super().send_head()
        body = self.own[self.path]
        if body is None:
            self.send_error(404)
            return None
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return BytesIO(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing of requests."""


@contextmanager
def serving() -> Iterator[int]:
    """The site on a port of loopback while the block runs; the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


# -- the two walks -----------------------------------------------------------------------------------------------------


def own_site(terminal: Terminal, folder: Path) -> None:
    """The whole walk, on a site that the demo serves itself."""
    check((SITE / "index.html").is_file(), f"the demo needs the Debian package {PACKAGE} (apt-get install {PACKAGE})")
    terminal.without_proxy()
    with serving() as port:
        domain = f"localhost:{port}"
        command = f"webarc-agent --quiet crawl --archive archive --wait 0 http://{domain}/index.html"

        terminal.heading("An archive, and a first crawl")
        terminal.say(
            f"Python's documentation is being served at http://{domain}/. An archive is a folder; the agent crawls the "
            "site into it with wget. A public site is given a second of rest between two requests, our own needs none."
        )
        terminal.run("webarc-agent init archive")
        first = crawl(terminal, folder, command)
        kinds, arcs = first["documents"], first["arcs"]
        check(first["complete"], "the crawl is not complete")
        check(kinds.get("text/html", 0) >= 500, "fewer than 500 pages were archived")
        check(kinds.get("image/png") and kinds.get("text/css"), "no images or no styles were archived")
        terminal.say(
            "It prints the commitTag of the snapshot that it stored: when the crawl began, and the domain. "
            f"{arcs['added']} documents came in {took(first)} s; {kinds['text/html']} of them are pages, the others "
            "images, styles and scripts."
        )

        mount_and_look(terminal, folder, domain, "index.html")

        terminal.heading("Any tool works on it")
        found = terminal.run(f"grep -rlw coroutine --include=data.html web/{domain} | sort", shown=5)
        check(len(found.splitlines()) > 20, "grep found too few pages")
        terminal.say("All metadata are in one SQLite database:")
        query = "select mimeType, count(*) as documents from metadata group by mimeType order by documents desc"
        terminal.run(f'sqlite-utils query archive/webarc.db --table "{query}"')

        terminal.say("Words are found in milliseconds, in other forms as well:")
        terminal.run("webarc-agent --quiet index --archive archive")
        hits = terminal.run("webarc search --archive archive --limit 3 cancelled coroutines")
        check("found" in hits and "http://" in hits, "the search found nothing")

        terminal.heading("The site changes, and is crawled again")
        terminal.say(f"One page is edited (/{EDITED}), one disappears (/{REMOVED}), one is new (/{ADDED}).")
        change()
        second = crawl(terminal, folder, command)
        expected = {"added": 1, "changed": 1, "removed": 1, "unchanged": arcs["added"] - 2}
        check(second["arcs"] == expected, f"the second crawl came to {second['arcs']}, not {expected}")
        terminal.say(f"The {expected['unchanged']} other documents are as they were: nothing is stored for them again.")

        terminal.heading("Two snapshots, side by side")
        compare(terminal, folder, domain)

        procedure(terminal, folder, domain)

        scripted_page(terminal, folder, domain)

        room(terminal, folder, domain, ("The edited page", EDITED), snapshots=2)


def given_site(terminal: Terminal, folder: Path, url: str) -> None:
    """A shorter walk, on a site of the user's: crawled once, one link deep, with the usual courtesy."""
    terminal.heading("An archive, and a crawl")
    terminal.say(
        f"{url} and what it links to on its own server, one link deep, a second between two requests, as far as "
        "robots.txt permits, for five minutes at most."
    )
    terminal.run("webarc-agent init archive")
    command = f"webarc-agent crawl --archive archive --depth 1 --max-duration '5 minutes' {shlex.quote(url)}"
    summary = crawl(terminal, folder, command, codes=(Exit.DONE, Exit.INCOMPLETE))
    check(summary["arcs"]["added"], "nothing was archived; what the crawl says above should tell why")
    if not summary["complete"]:
        terminal.say("The crawl is incomplete, for the reason above; what came is archived all the same.")
    domain, arc = shortest_page(folder)
    mount_and_look(terminal, folder, domain, arc)
    terminal.say("One line for each crawl of a domain; `tail -f` follows it:")
    changes(terminal, folder, len(summary["commit_tags"]))
    room(terminal, folder, domain, ("A page", ""), snapshots=1)


def crawl(terminal: Terminal, folder: Path, command: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run a crawl; returns its summary.json."""
    before = set(folder.glob("archive/reports/*"))
    terminal.run(command, codes)
    reports = set(folder.glob("archive/reports/*")) - before
    check(len(reports) == 1, "the crawl left no report")
    summary: dict[str, Any] = json.loads((reports.pop() / "summary.json").read_text("utf-8"))
    return summary


def took(summary: dict[str, Any]) -> int:
    """Seconds that a crawl took, rounded up a little."""
    return int(sum(summary["seconds"].values())) + 1


def mount_and_look(terminal: Terminal, folder: Path, domain: str, arc: str) -> None:
    """Mount the archive, list it, and read one page with all that belongs to it."""
    terminal.heading("The archive as a filesystem")
    terminal.run("mkdir web && mount.webarcfs archive web")
    check(mountpoint.mounted(folder / "web"), "the archive is not mounted")
    check(domain in terminal.run("ls web").split(), f"{domain} is not in the mount")
    terminal.run(f"ls web/{domain}", shown=6)

    terminal.heading("A page, and what is known of it")
    page = shlex.quote(f"web/{domain}/{arc}")
    terminal.say("A document is a folder (ARC): the body, its metadata, and the headers of the response.")
    names = terminal.run(f"ls -l {page}")
    check("data.xml" in names and "headers.http" in names, f"{page} is no whole ARC")
    terminal.run(f"head -c 240 {page}/data.html" if "data.html" in names else f"ls {page}")
    terminal.run(f"cat {page}/data.xml")
    terminal.run(f"head -1 {page}/headers.http")
    terminal.say("The metadata are extended attributes as well:")
    attributes = terminal.run(f"getfattr -d -m - {page}")
    check(f'user.webarc.domain="{domain}"' in attributes, f"{page} has no extended attributes")


def change() -> None:
    """Edit one page so that it links to a new one, and take one away."""
    text = (SITE / EDITED).read_text("utf-8")
    note = f'<p>What is known so far stands in the <a href="{ADDED}">errata</a>.</p>\n'
    edited = text.replace("<p>Python is a mature", f"{note}<p>Python is a mature", 1)
    check(note not in text and note in edited, f"{EDITED} is not the page that it was")
    added = "<!DOCTYPE html><title>Errata</title><h1>Errata</h1><p>None is known.</p>"
    Pages.own = {f"/{EDITED}": edited.encode(), f"/{ADDED}": added.encode(), f"/{REMOVED}": None}


def compare(terminal: Terminal, folder: Path, domain: str) -> None:
    """Show the snapshots before and after the change."""
    terminal.say(
        "Each crawl of a domain has a line in .changes. The mount has followed; `tail -f` would have shown it."
    )
    old, new = (f"web/.snapshots/{tag}" for tag in changes(terminal, folder, 2))
    terminal.say("Every snapshot is a folder. This is all that differs:")
    told = terminal.run(f"diff -rq {old} {new}", codes=(1,)).splitlines()
    check(f"Only in {old}/: {REMOVED}" in told or f"Only in {old}: {REMOVED}" in told, "diff misses what was removed")
    check(f"Only in {new}/: {ADDED}" in told or f"Only in {new}: {ADDED}" in told, "diff misses what was added")
    rest = [line for line in told if not line.startswith("Only in ")]
    check(rest and all(f"/{EDITED}/" in line for line in rest) and len(told) == len(rest) + 2, "diff tells of more")
    terminal.say("The page as it was, beside the page as it is:")
    edited = f"{EDITED}/data.html"
    terminal.run(f"diff {old}/{edited} web/{domain}/{edited}", codes=(1,))
    terminal.say("Underneath lies git, a bare repository for each domain. A crawl is a commit:")
    log = terminal.run(f"git -C archive/content/{domain}.git log --format='%h %s' main")
    check(len(log.splitlines()) == 2, "git has another number of commits")


def procedure(terminal: Terminal, folder: Path, domain: str) -> None:
    """The way of one crawl to its release, each step by hand."""
    terminal.heading("From a crawl to its readers, step by step")
    terminal.say(
        "Where an archive is set up so, a crawl is counted, converted to XHTML, indexed and checked before somebody "
        "releases it. Steps run by themselves; here each one waits, and prints what comes next."
    )
    (folder / "archive" / "webarc.toml").write_text(
        f'[[publication]]\nname = "errata"\nurls = ["http://{domain}/{EDITED}"]\ndepth = 1\nwait = 0\n'
        f'paths = ["/{EDITED}", "/{ADDED}"]\nrelease = "by-hand"\nstep_by_step = true\n'
        f'[[publication.check]]\nname = "Errata"\nurl = "http://{domain}/{ADDED}"\nexpects = "text"\ntext = "None"\n'
    )
    terminal.run("webarc-agent --quiet crawl --archive archive --publication errata")
    name = terminal.run("webarc-agent record list --archive archive --limit 1 --json | python3 -c "
                        "'import json, sys; print(json.load(sys.stdin)[\"record\"])'").strip()  # fmt: skip
    for step in ("count", "convert", "index", "check"):
        told = terminal.run(f"webarc-agent record step --archive archive {name} {step}")
        check("next: webarc-agent record" in told, f"{step} does not say what comes next")
    told = terminal.run(f"webarc-agent record release --archive archive {name}")
    check(f"{name}: released" in told, "the crawl was not released")
    shown = terminal.run(f"webarc-agent record show --archive archive {name} | tail -30", shown=30)
    check("HTML Tidy" in shown and "Errata: good" in shown, "the record does not say what was done")


def scripted_page(terminal: Terminal, folder: Path, domain: str) -> None:
    """Crawl a page that needs a browser, and find what only its scripts have written."""
    terminal.heading("A page that needs a browser")
    browser = check_browser(BrowserSettings(), folder / "archive")
    if browser.word:
        terminal.say(
            f"Scripts make the text of many pages, and a crawl has a browser show them. None can here: {browser.why}. "
            "So the demo leaves this out; docs/scripted-pages.md has what a browser needs."
        )
        return
    scripts = "".join(f'<script src="_static/{name}.js"></script>' for name in _SCRIPTS)
    Pages.own[f"/{SCRIPTED}?q={WORD}"] = (
        "<!DOCTYPE html><title>Find</title>"
        '<script data-url_root="./" id="documentation_options" src="_static/documentation_options.js"></script>'
        f'{scripts}<script src="searchindex.js" defer></script><div id="search-results"></div>'
    ).encode()
    url = f"http://{domain}/{SCRIPTED}?q={WORD}"
    terminal.say(
        f"{url} is empty as it is sent. The documentation's own scripts look {WORD!r} up and write what they find. "
        "With `--fetcher auto` a browser shows such pages: Chromium without any network, for which the agent fetches."
    )
    crawling = "webarc-agent --quiet crawl --archive archive --wait 0 --depth 0 --fetcher auto"
    terminal.run(f"{crawling} {shlex.quote(url)}")
    page = f"web/{domain}/{terminal.run(f'ls web/{domain} | grep {SCRIPTED}').strip()}"
    told = terminal.run(f"tail -c 60 {shlex.quote(page)}/data.html; echo")
    check('id="search-results"></div>' in told, "the page is not archived as it was sent")
    terminal.say("What the browser showed is kept beside it, and found by its words:")
    rendered = re.search(r'rendered="([0-9a-f]+)"', terminal.run(f"grep -o 'rendered=.*' {shlex.quote(page)}/data.xml"))
    check(rendered, "data.xml does not name what the browser showed")
    tree = rendered[1] if rendered else ""
    told = terminal.run(f"git -C archive/content/{domain}.git show {tree}:rendered.txt", shown=6)
    check("Search finished" in told, "the browser did not show what the scripts found")
    terminal.run("webarc-agent --quiet index --archive archive")
    told = terminal.run("webarc search --archive archive --limit 1 'search finished' matching query")
    check(SCRIPTED in told, "the search does not find what scripts wrote")


def room(terminal: Terminal, folder: Path, domain: str, page: tuple[str, str], snapshots: int) -> None:
    """The reading room: served, looked at as a browser does, and open for a while if somebody sits at the terminal."""
    terminal.heading("The reading room: the archive in a browser")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"webarc serve --archive archive --listen 127.0.0.1:{port} --workers 1 --access-log off"
    print(f"$ {command}", flush=True)
    program, *arguments = shlex.split(command)
    program = str(Path(sys.executable).with_name(program))
    server = subprocess.Popen([program, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        told = server.stdout.readline().strip()
        check(told, "the reading room did not start")
        print(f"  {told}")
        origin = f"http://127.0.0.1:{port}"
        home = _got(f"{origin}/")
        check(home.count("/web/") >= snapshots, "the room does not list the crawls")
        url = f"http://{domain}/{page[1]}"
        shown = _got(f"{origin}/web/*/{url}")
        check("/web/2" in shown, "the room has no capture of a page that was archived")
        terminal.say(
            f"{page[0]} in all its captures: {origin}/web/*/{url} – each in a frame that says when it was archived, "
            "with its links leading into the same snapshot. Readers see what is released, and can change nothing."
        )
        _linger(f"{origin}/")
    finally:
        server.terminate()
        server.wait(30)
        if server.stdout is not None:
            server.stdout.close()


def _got(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 # an address of this function's callers
        return str(answer.read().decode("utf-8", "replace"))


def _linger(url: str) -> None:
    """Open a browser, and wait for the Enter key, where there is a terminal; five minutes at most."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
    print(f"  Look around at {url}; the Enter key ends the demo.", flush=True)
    select.select([sys.stdin], [], [], 300)


def changes(terminal: Terminal, folder: Path, count: int) -> list[str]:
    """Show `.changes`; returns its commitTags. A mount takes a publication over within a second."""
    patience = time.monotonic() + 5
    while (folder / "web/.changes").read_text("utf-8").count("\n") < count and time.monotonic() < patience:
        time.sleep(0.1)
    tags = terminal.run("cat web/.changes").split()
    check(len(tags) == count, f".changes has {len(tags)} lines, not {count}")
    return tags


def shortest_page(folder: Path) -> tuple[str, str]:
    """The domain and the ARC of the page with the shortest URL."""
    query = "SELECT domain, path FROM metadata ORDER BY mimeType <> 'text/html', length(url), url LIMIT 1"
    database = sqlite3.connect(folder / "archive/webarc.db")
    try:
        domain, path = database.execute(query).fetchone()
    finally:
        database.close()
    return domain, path[len(f"/{domain}/") :]


# -- begin and end -----------------------------------------------------------------------------------------------------


@contextmanager
def scratch() -> Iterator[tuple[Terminal, Path]]:
    """A folder for the demo; whatever happens, it is unmounted and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="webarcfs-demo-"))
    terminal = Terminal(folder)
    try:
        yield terminal, folder
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        terminal.end()
        if mountpoint.mounted(folder / "web"):
            mountpoint.unmount(folder / "web", lazy=True)
        shutil.rmtree(folder)


def interrupted(number: int, _frame: FrameType | None) -> None:
    """Leave by way of the clean-up."""
    raise SystemExit(128 + number)


def main() -> int:
    """The demo; its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    url = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        with scratch() as (terminal, folder):
            if url:
                given_site(terminal, folder, url if "://" in url else f"http://{url}")
            else:
                own_site(terminal, folder)
            terminal.heading("Leave nothing behind")
            terminal.run("umount.webarcfs web && rmdir web")
            terminal.run("rm -r archive")
        print("\nDone. README.md says how to make an archive that stays.")
    except (DemoFailed, WebarcError, OSError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
