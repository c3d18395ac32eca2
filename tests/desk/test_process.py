"""`webarc-agent desk` and `people password` as programs; a new publication from its trial to its first release."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from agent.catalogue.recording import PatchRefusal
from agent.crawl import crawl_log
from agent.desk import forms, login
from tests.support import desks
from tests.support.agents import agent
from tests.support.browsers import needs_chromium
from tests.support.crawls import COMMAND, end, run_command, start_command
from tests.support.desks import PASSWORD, Answer, Client
from tests.support.site import Site
from tests.support.sources import ROOT
from tests.support.waiting import until
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Fetcher
from webarcfs.archive.system import files
from webarcfs.web.listeners import UNIX_PREFIX

pytestmark = pytest.mark.crawl


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = directory.create(tmp_path / "archive")
    desks.with_people(made)
    return made


def test_the_desk_serves_on_its_own_address_until_it_is_ended(archive: Archive, tmp_path: Path) -> None:
    beside = archive.settings.with_name("publications.d")
    beside.mkdir(exist_ok=True)
    (beside / "x.toml").write_text("broken = [")
    desk = start_command("desk", "--archive", archive.root, "--listen", "127.0.0.1:0", "--access-log", tmp_path / "log")
    try:
        assert desk.stdout is not None
        told = desk.stdout.readline()
        port = int(told.strip().rpartition(":")[2])
        fault = desk.stdout.readline()
        assert fault.startswith("fault: ") and "x.toml" in fault, "whoever starts it reads what is amiss"
        client = Client(port)
        assert client.login("anna").status == 200
        busy = run_command("desk", "--archive", archive.root, "--listen", f"127.0.0.1:{port}")
        assert busy.code != 0 and "address in use" in busy.err
        desk.send_signal(signal.SIGTERM)
        assert desk.wait(60) == 0
        assert '"POST /login HTTP/1.1" 303' in (tmp_path / "log").read_text()
        assert PASSWORD not in (tmp_path / "log").read_text()
    finally:
        end(desk)


def test_a_unix_socket_is_served_and_removed(archive: Archive, tmp_path: Path) -> None:
    place = tmp_path / "desk"
    desk = start_command("desk", "--archive", archive.root, "--listen", f"{UNIX_PREFIX}{place}", "--origin",
                         "https://desk.example.org", "--access-log", "off")  # fmt: skip
    try:
        assert desk.stdout is not None and "https://desk.example.org" in desk.stdout.readline()
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(str(place))
            own.sendall(b"GET /login HTTP/1.1\r\nHost: desk.example.org\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in own.recv(100)
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(str(place))
            own.sendall(b"GET /login HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            assert b" 421 " in own.recv(100)
        desk.send_signal(signal.SIGINT)
        assert desk.wait(60) == 0
        assert not place.exists()
    finally:
        end(desk)


def test_a_password_is_read_from_stdin_and_only_its_hash_is_kept(archive: Archive) -> None:
    own = f'role = "administrator"\nunix = "{getpass.getuser()}"'
    archive.people.write_text(archive.people.read_text().replace('role = "administrator"', own))
    words = [*COMMAND, "people", "password", "bert", "--archive", str(archive.root)]
    done = subprocess.run(words, input="a new good password\n", text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    known = people.load(archive)
    assert known is not None and login.matches(known["bert"].password, "a new good password")
    assert "a new good password" not in archive.people.read_text()
    assert archive.people.stat().st_mode & 0o777 == 0o600
    short = subprocess.run(words, input="short\n", text=True, capture_output=True, check=False)
    assert short.returncode == 1 and "characters" in short.stderr
    for command in ("add", "password"):
        least = f"{forms.PASSWORD_SHORTEST} characters at least"
        assert least in " ".join(run_command("people", command, "--help").out.split())


def test_a_trial_says_which_start_pages_need_a_browser(archive: Archive) -> None:
    archive.settings.write_text("[crawl]\nwait = 0.0\n[index]\nsearch = false\n")
    with Site() as site, desks.served(archive) as served:
        site.add("/", b"<!DOCTYPE html><div id=root></div><script src=/app.js></script>")
        carl = served.client("carl")
        typed = {"name": "app", "urls": f"http://{site.host}/", "interval": "1 month"}
        trial = carl.submit(carl.get("/publications/+new"), "/publications/+new", typed, to="/publications/+try")
        place = trial.path
        trial = until(lambda: found if "being tried" not in (found := carl.get(place)).words else None)
        assert "These start pages hold little without their scripts" in trial.words
        assert "1 of 1 start pages hold little without their scripts" in trial.words, "beside the choice"
        (choice,) = trial.page.xpath("//select[@name='fetcher']")
        assert [option.text for option in choice] == [
            "as the archive says: no",
            "no",
            "pages that need one",
            "every page",
        ]
        carl.submit(trial, "/publications/+new", {"fetcher": "auto"})
        (publication,) = settings_files.load(archive.settings)[0].publications
        assert publication.crawl.fetcher == Fetcher.AUTO
        carl.headers["Accept-Language"] = "de"
        page = carl.get("/publications/app")
        assert "Diese Website braucht einen Browser" in page.words and "Seiten, die einen brauchen" in page.words
        (chosen,) = page.page.xpath("//select[@name='fetcher']/option[@selected]")
        assert chosen.get("value") == "auto"


@needs_chromium()
def test_a_trial_shows_start_pages_by_the_browser(archive: Archive) -> None:
    """What it showed is on the page, and beside the choice; where none can be started, why not."""
    archive.settings.write_text("[crawl]\nwait = 0.0\n[index]\nsearch = false\n")
    with Site() as site, desks.served(archive) as served:
        site.add("/", b"<!DOCTYPE html><div id=root></div><script src=/app.js></script>")
        link = "const a = document.createElement('a'); a.href = '/next'; a.append('bright words')"
        site.add("/app.js", f"{link}; document.body.append(a)", "text/javascript")
        carl = served.client("carl")
        typed = {"name": "app", "urls": f"http://{site.host}/", "interval": "1 month", "fetcher": "auto"}

        def tried() -> Answer:
            page = carl.get("/publications/+new")
            place = carl.submit(page, "/publications/+new", typed, to="/publications/+try").path
            return until(lambda: found if "being tried" not in (found := carl.get(place)).words else None)

        trial = tried()
        assert "2 words: bright words" in trial.words and "a browser showed 1 of 1 start pages" in trial.words
        assert f"http://{site.host}/next" in trial.words, "links that its scripts made would be fetched"
        assert "No browser can show pages here" not in trial.words
        archive.settings.write_text(f'{archive.settings.read_text()}[browser]\nprogram = "{archive.root}/none"\n')
        trial = tried()
        assert "No browser can show pages here" in trial.words and "correct `program`" in trial.words
        assert "browser-missing" in trial.words and "a browser showed 0 of 1 start pages" in trial.words
        carl.submit(trial, "/publications/+new")
        today = carl.get("/").words
        assert "Publications need a browser, and none can show pages" in today


def test_pages_for_the_browser_and_buttons_are_lines_of_a_form(archive: Archive) -> None:
    """What is a list of tables in the file is edited as lines, like other such lists."""
    with desks.served(archive) as served:
        carl = served.client("carl")
        typed = {"name": "app", "urls": "http://app.test/", "browser": 'match = "/map/*"', "click": 'text = "Accept"'}
        carl.submit(carl.get("/publications/+new"), "/publications/+new", typed)
        (publication,) = settings_files.load(archive.settings)[0].publications
        assert [rule.match for rule in publication.browser] == ["/map/*"]
        assert [click.text for click in publication.click] == ["Accept"]
        page = carl.get("/publications/app")
        (area,) = page.page.xpath("//textarea[@name='click']")
        assert area.text.strip() == 'text = "Accept"'


def test_a_new_publication_gets_from_its_trial_to_its_first_release(archive: Archive) -> None:
    archive.settings.write_text('release = "by-hand"\n[crawl]\nwait = 0.0\n[index]\nsearch = false\n')
    with Site() as site, desks.served(archive) as served, agent(archive):
        site.add_html("/", '<title>Start</title><a href="/a.html">a</a><a href="/b.html">b</a>')
        site.add_html("/a.html", "<p>a")
        site.add_html("/b.html", "<p>b")
        carl = served.client("carl")
        page = carl.get("/publications/+new")
        typed = {"name": "first", "urls": f"http://{site.host}/", "interval": "1 month", "note": "\u4f8b"}
        typed["start"] = "2026-01-01T00:00"  # else its first crawl would wait for a minute
        trial = carl.submit(page, "/publications/+new", typed, to="/publications/+try")
        assert trial.status == 200, trial.words
        place = trial.path
        trial = until(lambda: found if "being tried" not in (found := carl.get(place)).words else None)
        assert "Each start address leads to a document" in trial.words and f"http://{site.host}/a.html" in trial.words
        assert not archive.settings.with_name("publications.d").exists(), "a trial saves nothing"
        saved = carl.submit(trial, "/publications/+new")
        assert saved.status == 200 and "saved" in saved.words, saved.words
        record = until(lambda: next((each for each in Catalogue(archive).records() if each.parts), None))
        assert record.state is not RecordState.RELEASED
        today = carl.get("/")
        assert f"/snapshot/{record.id}" in today.text
        done = carl.submit(carl.get(f"/snapshot/{record.id}"), f"/snapshot/{record.id}/release")
        assert done.status == 200 and "Readers see it" in done.words
        assert Catalogue(archive).read(record.id)[0].state is RecordState.RELEASED


def test_what_a_crawl_did_not_get_is_asked_for_again_from_its_page_and_its_preview(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-patch-1: the agent does it; the crawl waits for its release as before."""
    with Site() as site, desks.served(archive) as served, agent(archive):
        site.add_html("/", '<title>Start</title><a href="/b.html">b</a><a href="/c.html">c</a><a href="/gone">x</a>')
        for place in ("/b.html", "/c.html"):
            site.gone(place, 501)
        archive.settings.write_text(
            f'release = "by-hand"\n[crawl]\nwait = 0.0\n[[publication]]\nname = "p"\nurls = ["{site.url("/")}"]\n'
        )
        record = until(lambda: next((each for each in Catalogue(archive).records() if each.parts), None))
        carl, place = served.client("carl"), f"/snapshot/{record.id}"
        shown = carl.get(f"{place}/preview")
        assert "Get the missing pages" in shown.words
        note = carl.get(shown.path.removesuffix("/") + "/c.html")
        assert "does not have the page" in note.words
        gone = carl.get(shown.path.removesuffix("/") + "/gone").words
        assert "does not have the page" in gone and "If it is there by now, ask again for it." in gone
        with monkeypatch.context() as patched:
            patched.setattr("agent.catalogue.recording.judge_patch", lambda *_: (PatchRefusal.EMPTY, "judged once"))
            assert "Get the missing pages" in carl.get(shown.path).words
        site.add_html("/b.html", "<p>b")
        site.add_html("/c.html", "<p>c")
        asked = carl.submit(note, f"{place}/patch")
        assert asked.status == 200 and "/c.html is asked for again. What comes becomes" in asked.words, asked.words
        patched = until(lambda: found if len((found := Catalogue(archive).read(record.id)[0]).parts) == 2 else None)
        assert (patched.events[-1].what, patched.events[-1].by) == ("patched", desks.PEOPLE["carl"][0])
        assert site.count("/c.html") == 2 and site.count("/b.html") == 1
        until(lambda: not list(archive.jobs.iterdir()), "it has ended")
        page = carl.get(place)
        assert "missing pages fetched" in page.words
        carl.submit(page, f"{place}/patch")
        until(lambda: len(Catalogue(archive).read(record.id)[0].parts) == 3, "the rest came")
        until(lambda: not list(archive.jobs.iterdir()), "it has ended")
        assert "Nothing is missing that failed" in carl.submit(carl.get(place), f"{place}/patch").words
        done = carl.submit(carl.get(place), f"{place}/release")
        assert done.status == 200 and f"{place}/patch" not in carl.get(place).text
        folder = archive.reports / f"20991231T000000-{record.publication}+patch"
        folder.mkdir()
        files.write_json(folder / "summary.json", {"patches": record.job_name})
        crawl_log.write(folder, [f"- -2 - {site.url('/gone')} L - - #1 - - - seed3:-11,dns"])
        assert "could not be looked up" in carl.get(shown.path.removesuffix("/") + "/gone").words


def test_a_crawl_that_a_bound_ended_says_so_and_gets_the_rest_once_that_is_raised(archive: Archive) -> None:
    """S-patch-1: by the desk also what the end of the crawl left; what it lacks is said as it is now."""
    settings = 'release = "by-hand"\n[crawl]\nwait = 0.0\nsitemaps = false\n[[publication]]\nname = "p"\n'
    with Site() as site, desks.served(archive) as served, agent(archive):
        names = ("/a", "/b", "/c", "/d")
        site.add_html("/", "".join(f"<a href='{name}'>{name}</a>" for name in names))
        for name in names:
            site.add_html(name, name + "x" * 1_500)
        settings += f'urls = ["{site.url("/")}"]\n'
        archive.settings.write_text(f"{settings}max_total_size = 2500\n")
        record = until(lambda: next((each for each in Catalogue(archive).records() if each.parts), None))
        anna, place = served.client("anna"), f"/snapshot/{record.id}"
        shown = anna.get(place)
        assert "The crawl ended early: it had as many bytes as it may take." in shown.words
        assert "Largest crawl: 2.5 kB. It also bounds what comes" in shown.words
        assert shown.page.xpath('//a[@href="/publications/p#f-max_total_size"]')
        assert anna.get("/publications/p").page.xpath('//*[@id="f-max_total_size"]'), "it leads to the field"
        (left,) = (link for link in shown.page.xpath("//a") if "left when it ended" in link.text_content())
        assert int(left.text_content().split()[0]) >= 3
        assert "Left when the crawl ended" in shown.words and "Known and not wanted" not in shown.words
        assert [button.text_content() for button in shown.page.xpath(f'//form[@action="{place}/patch"]//button')] == [
            "Get the missing pages"
        ]
        report = anna.get(f"/report/{record.job_name}").words
        assert "The crawl ended early" in report and "Largest crawl: 2.5 kB" in report
        row = anna.get("/running").words
        assert "The crawl ended early" in row and ": max-total-size" not in row
        adam = served.client("adam").get(place).words
        assert "Get the missing pages" not in adam and "Start and control crawls" in adam, "who may is said"
        archive.settings.write_text(f"{settings}max_total_size = 100000\n")
        shown = anna.get(place)
        assert "Largest crawl: 2.5 kB when it was fetched, 100 kB now." in shown.words
        assert "It also bounds" not in shown.words
        site.gone("/d", 501)
        assert anna.submit(shown, f"{place}/patch").status == 200
        until(lambda: len(Catalogue(archive).read(record.id)[0].parts) == 2, "the rest came")
        until(lambda: not list(archive.jobs.iterdir()), "it has ended")
        shown = anna.get(place)
        assert "left when it ended" not in shown.words and "1 failed to come" in shown.words, shown.words
        assert "Missing pages were asked for since" in shown.words and "stays marked as incomplete" in shown.words
        site.back("/d")
        site.add_html("/d", "here again")
        anna.submit(shown, f"{place}/patch")
        until(lambda: len(Catalogue(archive).read(record.id)[0].parts) == 3, "the last one came")
        until(lambda: not list(archive.jobs.iterdir()), "it has ended")
        shown = anna.get(place)
        assert "Missing now: nothing that is known" in shown.words and f"{place}/patch" not in shown.text


def test_a_publication_that_watches_a_feed_is_tried_and_saved(archive: Archive) -> None:
    archive.settings.write_text("[crawl]\nwait = 0.0\n[index]\nsearch = false\n")
    with Site() as site, desks.served(archive) as served:
        feed = site.add("/feed", f"<rss><item><link>{site.url('/a')}</link></item></rss>", "text/xml")
        carl = served.client("carl")
        page = carl.get("/publications/+new")
        typed = {"name": "news", "urls": "", "watch": feed, "depth": "2"}
        refused = carl.submit(page, "/publications/+new", typed)
        assert "does not go with a feed to watch" in refused.words and refused.status >= 400
        trial = carl.submit(refused, "/publications/+new", typed | {"depth": ""}, to="/publications/+try")
        place = trial.path
        trial = until(lambda: found if "being tried" not in (found := carl.get(place)).words else None)
        assert "The address leads to a feed" in trial.words and "Items that would be captured: 1." in trial.words
        assert site.url("/a") in trial.words and site.count("/a") == 0
        saved = carl.submit(trial, "/publications/+new")
        assert saved.status == 200 and "saved" in saved.words, saved.words
        assert feed in carl.get("/publications").words


def test_the_unit_and_the_proxy_of_the_desk_are_sound(tmp_path: Path) -> None:
    copy = tmp_path / "webarc-desk.service"
    unit = (ROOT / "examples" / copy.name).read_text("utf-8").replace("/usr/local/bin/webarc-agent", "/bin/true")
    copy.write_text(unit, "utf-8")
    for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=30", "--no-pager"]):
        done = subprocess.run(
            ["systemd-analyze", *command, str(copy)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr, done.stderr


def test_behind_nginx_the_desk_works_and_believes_no_client(archive: Archive, tmp_path: Path) -> None:
    settings = '[desk]\nheader = "X-Staff"\nproxies = ["unix"]\n'
    archive.settings.write_text(settings)
    place = tmp_path / "socket"
    place.mkdir(mode=0o755)
    desk = start_command("desk", "--archive", archive.root, "--listen", f"{UNIX_PREFIX}{place}/desk", "--origin",
                         "https://desk.example.org", "--access-log", "off")  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = (ROOT / "examples/nginx-desk.conf").read_text("utf-8").replace("/run/webarc-desk/desk", f"{place}/desk")
    text = "\n".join(line for line in text.splitlines() if "ssl_" not in line).replace("443 ssl", f"127.0.0.1:{port}")
    top = f"pid {tmp_path}/pid;\ndaemon off;\nerror_log stderr;\nevents {{}}\nhttp {{ access_log off;\n{text}\n}}\n"
    if os.geteuid() == 0:
        top = f"user root;\n{top}"
    (tmp_path / "nginx.conf").write_text(top)
    proxy = None
    try:
        assert desk.stdout is not None and desk.stdout.readline()
        proxy = subprocess.Popen(["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        client = Client(port, headers={"X-Staff": "adam", "Host": "desk.example.org"})
        until(lambda: _is_up(port), "nginx is up")
        assert client.get("/").status == 403, "what a client sends is replaced"
        page = client.get("/login")
        done = client.submit(page, "/login", {"name": "anna", "password": PASSWORD}, follow=False)
        assert done.status == 303 and "Secure" in done.headers["set-cookie"]
        assert client.get("/").status == 200
        made = client.submit(client.get("/feed"), "/feed", {"word": "make"})
        (address,) = made.page.xpath('//input[@id="address"]/@value')
        anybody = Client(port, headers={"Host": "desk.example.org"})
        assert address.startswith("https://desk.example.org/feed/")
        assert anybody.get(address.removeprefix("https://desk.example.org")).status == 200
        assert anybody.get("/feed/x.atom").status == 403
    finally:
        if proxy is not None:
            proxy.terminate()
            proxy.wait(60)
        end(desk)


def _is_up(port: int) -> bool:
    with socket.socket() as own:
        return own.connect_ex(("127.0.0.1", port)) == 0


def test_the_desk_says_without_a_login_whether_it_can_answer(archive: Archive) -> None:
    """S-monitor-1: `ok` or `not ok`, and nothing about the archive or who works at it."""
    desk = start_command("desk", "--archive", archive.root, "--listen", "127.0.0.1:0", "--access-log", "off")
    try:
        assert desk.stdout is not None
        client = Client(int(desk.stdout.readline().strip().rpartition(":")[2]))
        answer = client.ask("GET", "/healthz")
        assert (answer.status, answer.body, client.cookies) == (200, b"ok\n", {})
        assert client.ask("HEAD", "/healthz").status == 200
        assert client.ask("GET", "/healthz", headers={"Host": "evil.example"}).status == 421
        assert client.ask("GET", "/healthz/").status != 200
        kept = archive.people.read_text()
        archive.people.write_text("broken = [")
        until(lambda: client.ask("GET", "/healthz").status == 503, "nobody can log in")
        assert client.ask("GET", "/healthz").body == b"not ok\n"
        archive.people.write_text(kept)
        until(lambda: client.ask("GET", "/healthz").status == 200, "it is well again")
        archive.catalogue.write_bytes(b"no catalogue")
        until(lambda: client.ask("GET", "/healthz").status == 503, "the catalogue cannot be read")
        archive.catalogue.unlink()
        until(lambda: client.ask("GET", "/healthz").status == 200, "the archive has no catalogue yet")
    finally:
        end(desk)
