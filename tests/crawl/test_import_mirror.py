"""`import` of plain mirrors, as `wget -r` and `wget -p` leave them: names to URLs, times, and what stays outside."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.importing import mirror
from agent.importing.foreign import ForeignRecord, Report, Stated
from agent.importing.import_sources import chosen, parts_of
from tests.support import crawls, warcs
from tests.support.crawls import arcs, log_lines, meta, read, read_file
from tests.support.foreignfiles import har_entry, write_har
from tests.support.imports import command, import_files
from tests.support.readercommand import webarc
from tests.support.site import Site
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import CET, format_time
from webarcfs.archive.model.urls import canonical

pytestmark = pytest.mark.crawl

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(64)
WHEN = "2019-05-01T12:00:00"


def wget(folder: Path, url: str, *options: str) -> Path:
    """Mirror a site by wget, in a folder."""
    folder.mkdir(exist_ok=True)
    arguments = ["wget", "--no-config", "--quiet", "-e", "robots=off", "--tries=1", *options, url]
    subprocess.run(arguments, cwd=folder, check=False, timeout=120)
    return folder


@pytest.fixture
def pages(site: Site) -> Site:
    """A site with names of each kind."""
    links = ("b.html", "c?x=1&y=2", "d", "dir/", "dir/deep.html", "e.css?v=3", "caf%C3%A9.html", "a%20b.html")
    site.add_html("/", "".join(f'<a href="{link}">x</a>' for link in links) + '<img src="/i.png">', "Start")
    for path in ("/b.html", "/c?x=1&y=2", "/d", "/dir/", "/dir/deep.html", "/caf%C3%A9.html", "/a%20b.html"):
        site.add_html(path, f'<a href="/">{path}</a>', path)
    site.add("/e.css?v=3", b"p { color: red }", "text/css")
    site.add("/i.png", PIXEL, "image/png")
    return site


PLAIN = {"", "b.html", "c?x=1&y=2", "d", "dir/", "dir/deep.html", "e.css?v=3", "caf%C3%A9.html", "a%20b.html", "i.png"}


@pytest.mark.parametrize(
    "options", [(), ("--adjust-extension",), ("--adjust-extension", "--convert-links", "--backup-converted")]
)
def test_a_mirror_of_wget_gives_the_urls_that_it_was_made_of(
    archive: Archive, pages: Site, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Also where wget appended endings to names; and where it kept what it rewrote, what the server sent."""
    folder = wget(tmp_path / "made", pages.url("/"), "--recursive", "--page-requisites", *options)
    sent = pages.host
    done = command("import", "--archive", archive.root, "--captured", WHEN, folder)
    assert done.code == 0, done.err
    wanted = {canonical(f"http://{sent}/{path}") for path in PLAIN}
    assert {meta(archive, sent, arc).url for arc in arcs(archive, sent)} == wanted
    assert {meta(archive, sent, arc).source for arc in arcs(archive, sent)} == {"mirror"}
    assert {format_time(meta(archive, sent, arc).capture_time) for arc in arcs(archive, sent)} == {WHEN}
    assert b'href="c?x=1&y=2"' in read(archive, sent, "index.html"), "links are those of the server"
    assert (meta(archive, sent, "i.png").mime_type, meta(archive, sent, "b.html").title) == ("image/png", "/b.html")
    assert (read_file(archive, sent, "d/headers.http") or b"").startswith(b"HTTP/1.0 200 OK\r\n")


def test_names_that_wget_adjusted_and_links_that_it_converted(archive: Archive, pages: Site, tmp_path: Path) -> None:
    """Without what the server sent, a name is the URL to which the links of the mirror lead."""
    folder = wget(tmp_path / "made", pages.url("/"), "--recursive", "-E", "-k")
    host = pages.host
    assert command("import", "--archive", archive.root, "--captured", WHEN, folder).code == 0
    urls = {meta(archive, host, arc).url for arc in arcs(archive, host)}
    assert f"http://{host}/d.html" in urls and f"http://{host}/c?x=1&y=2" in urls
    assert read(archive, host, "index.html").count(b"d.html") == 1


def test_one_page_with_what_it_needs_and_a_folder_without_a_host(archive: Archive, pages: Site, tmp_path: Path) -> None:
    """`wget -p`; `wget -nH`, where --base says the address."""
    page = wget(tmp_path / "page", pages.url("/"), "--page-requisites")
    bare = wget(tmp_path / "bare", pages.url("/dir/deep.html"), "-x", "--no-host-directories")
    host = pages.host
    assert command("import", "--archive", archive.root, "--captured", WHEN, page / host).code == 0
    assert arcs(archive, host) == {"index.html", "i.png"}
    missing = command("import", "--archive", archive.root, "--captured", WHEN, bare)
    assert (missing.code, "--base URL" in missing.err) == (1, True)
    done = command("import", "--archive", archive.root, "--captured", WHEN, "--base", "https://www.example.org/a", bare)
    assert done.code == 0, done.err
    assert meta(archive, "www.example.org", "a/dir/deep.html").url == "https://www.example.org/a/dir/deep.html"


def test_a_mirror_without_a_time_is_refused(archive: Archive, tmp_path: Path) -> None:
    """S-copy-2: the dates of its files are no times; the message names the option; one that cannot be is refused."""
    folder = tmp_path / "m" / "www.example.org"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("<title>x</title>")
    done = command("import", "--archive", archive.root, folder.parent)
    assert done.code == 1 and "--captured TIME" in done.err and not list(archive.domains())
    for time in ("yesterday", "2999-01-01", "1980-01-01", "0001-01-01"):
        done = command("import", "--archive", archive.root, "--captured", time, folder.parent)
        assert done.code == 1 and "--captured" in done.err, done.err
    done = command("import", "--archive", archive.root, "--captured", WHEN, "--complete", folder.parent)
    assert done.code == 1 and "--complete" in done.err
    done = command("import", "--archive", archive.root, "--captured", WHEN, "--try", folder.parent)
    assert done.code == 0 and "www.example.org: 1 captures in 1 snapshots" in done.out and not list(archive.domains())


def test_nothing_outside_of_a_mirror_is_read(archive: Archive, tmp_path: Path) -> None:
    """Symbolic links and pipes are left out, and it is said; names that would lead out lead nowhere."""
    (tmp_path / "secret").write_text("secret")
    host = tmp_path / "mirror" / "www.example.org"
    (host / "sub").mkdir(parents=True)
    (host / "sub" / "page.html").write_text("<title>page</title>")
    (host / "..%2F..%2Fsecret").write_text("a name")
    (host / "%2e%2e%2fx").write_text("another")
    (host / "a\nb.txt").write_text("line")
    (host / os.fsdecode(b"\xe4.txt")).write_text("latin")
    (host / "link").symlink_to(tmp_path / "secret")
    (host / "folder").symlink_to(tmp_path)
    os.mkfifo(host / "pipe")
    done = command("import", "--archive", archive.root, "--captured", WHEN, tmp_path / "mirror")
    assert done.code == 0, done.err
    assert "a symbolic link" in done.err and "neither file nor folder" in done.err
    kept = {meta(archive, "www.example.org", arc).url for arc in arcs(archive, "www.example.org")}
    assert kept == {
        "http://www.example.org/sub/page.html", "http://www.example.org/..%2F..%2Fsecret",
        "http://www.example.org/..%2Fx", "http://www.example.org/a%0Ab.txt", "http://www.example.org/%E4.txt",
    }  # fmt: skip
    assert not any(read(archive, "www.example.org", arc) == b"secret" for arc in arcs(archive, "www.example.org"))


def records_of(folder: Path, report: Report) -> Iterator[ForeignRecord]:
    """The records of a mirror, one by one."""
    stated = Stated(captured=datetime(2019, 5, 1, tzinfo=CET))
    for part in parts_of(folder, "m", report, lambda _: None, stated):
        yield from part.records


@pytest.mark.parametrize("change", ["shorter", "longer", "other bytes"])
def test_a_file_that_changes_while_it_is_read_is_a_loss(tmp_path: Path, change: str) -> None:
    """It is not archived, and the others are."""
    folder = mirror_of(tmp_path / "m", {"a.html": "x" * 1_000_000, "b.html": "b"})
    path, report, wholes = folder / "www.example.org" / "a.html", Report(), list[bool]()
    for record in records_of(folder, report):
        record.read(10)
        with path.open("r+b") as file:
            if change == "shorter":
                file.truncate(500_000)
            else:
                file.seek(0 if change == "other bytes" else 1_000_000)
                file.write(b"yy")
        wholes.append(record.whole())
    assert wholes == [False, True]
    (loss,) = report.losses.lines()
    assert "a file that changed while it was read" in loss and "a.html" in loss


def deep(folder: Path) -> None:
    """Folders in this folder, down to one whose path is longer than the kernel takes: not even root can read it."""
    above = os.open(folder, os.O_RDONLY)
    for _ in range(5000 // 200):
        os.mkdir("d" * 200, dir_fd=above)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = inner
    os.close(above)


def test_a_folder_that_cannot_be_read_is_a_loss(archive: Archive, tmp_path: Path) -> None:
    """Nobody knows what is in it: the import is not whole, though the rest is taken; with the parts of a page, too."""
    folder, report = mirror_of(tmp_path / "m", {"a.html": "<title>a</title>"}), Report()
    deep(folder / "www.example.org")
    assert len(list(records_of(folder, report))) == 1
    (loss,) = report.losses.lines()
    assert "a folder that cannot be read (File name too long)" in loss
    base = ("--base", "http://www.example.org/", "--captured", WHEN)
    done = command("import", "--archive", archive.root, *base, folder / "www.example.org")
    assert done.code == 3 and "a folder that cannot be read" in done.err, done.err
    assert arcs(archive, "www.example.org") == {"a.html"}

    page = tmp_path / "page.html"
    page.write_text("<!-- saved from url=(0024)https://www.example.org/b --><title>b</title>")
    (tmp_path / "page_files").mkdir()
    deep(tmp_path / "page_files")
    done = command("import", "--archive", archive.root, "--captured", WHEN, page)
    assert done.code == 3 and "a folder that cannot be read" in done.err, done.err
    with ExitStack() as stack, pytest.raises(UsageError, match="File name too long"):
        chosen([folder], tmp_path, stack)


def test_a_page_of_an_original_is_not_its_copy(tmp_path: Path) -> None:
    """`a.orig` is what the server sent for `a`, not for `a.html` beside it."""
    folder = mirror_of(tmp_path / "m", {"a": "<p>converted", "a.orig": "<p>sent", "a.html": "<p>another page"})
    bodies = {record.fields["warc-target-uri"]: record.read(99) for record in records_of(folder, Report())}
    assert bodies == {
        "http://www.example.org/a": b"<p>sent", "http://www.example.org/a.html": b"<p>another page",
    }  # fmt: skip


def test_two_sites_with_the_same_files_are_two_sources(tmp_path: Path) -> None:
    """Given by their folders; so is one folder as the copy of two addresses."""
    pages = {"index.html": "<title>under construction</title>"}
    hosts = [mirror_of(tmp_path / host, pages, host) / host for host in ("a.example", "b.example")]
    with ExitStack() as stack:
        stated = Stated(captured=datetime(2019, 5, 1, tzinfo=CET))
        of_hosts = chosen(hosts, tmp_path, stack, stated=stated).sources
        of_bases = [
            chosen([hosts[0]], tmp_path, stack, stated=dataclasses.replace(stated, base=base)).sources[0]
            for base in ("https://a.example/", "https://b.example/")
        ]
    assert [source.name for source in of_hosts] == ["a.example", "b.example"]
    assert len({source.digest for source in (*of_hosts, *of_bases)}) == 4


def test_copies_in_folders_of_hosts_are_of_their_sites(tmp_path: Path) -> None:
    """Where what a crawler recorded lies beside those folders, they are left out with them."""
    folder = mirror_of(tmp_path / "m", {"log.har": "{}", "deep/page.mhtml": "x"})
    warc_of(folder / "a.warc", "<p>sent</p>", WHEN + "Z")
    har_of(folder / "own.har", "https://www.example.org/", "x", WHEN + "Z")
    with ExitStack() as stack:
        choice = chosen([folder], tmp_path, stack)
    assert [source.name for source in choice.sources] == ["a.warc", "own.har"] and not choice.faults
    assert "folders of hosts in it are left out" in "".join(choice.remarks)


def test_what_a_mirror_lacks_is_said_and_pages_in_it_are_taken(archive: Archive, tmp_path: Path) -> None:
    """A mirror is taken whole: not where a symbolic link in it is left out. Pages that were saved say what they are."""
    saved = "<!--\n Page saved with SingleFile\n url: https://www.example.org/a\n saved date: 2019-05-01T12:00:00Z\n-->"
    folder = mirror_of(tmp_path / "m", {"saved.html": f"{saved}<title>x</title>", "plain.html": "<title>y</title>"})
    (folder / "x.har").symlink_to(tmp_path / "nothing")
    with ExitStack() as stack:
        choice = chosen([folder], tmp_path, stack)
    assert [source.name for source in choice.sources] == ["saved.html"] and not choice.faults
    link, whole = choice.remarks
    assert "x.har is left out" in link and "it is not taken as a mirror" in whole and "--base URL" in whole
    done = command("import", "--archive", archive.root, folder)
    assert done.code == 0 and "it is not taken as a mirror" in done.err, done.err
    assert {meta(archive, "www.example.org", arc).url for arc in arcs(archive, "www.example.org")} == {
        "https://www.example.org/a"
    }
    (folder / "www.example.org" / "saved.html").unlink()
    with pytest.raises(UsageError, match=r"x\.har is left out(?s:.*)it is not taken as a mirror"), ExitStack() as stack:
        chosen([folder], tmp_path, stack)


# == beside what servers sent ==========================================================================================


def mirror_of(folder: Path, pages: dict[str, str], host: str = "www.example.org") -> Path:
    """A mirror of one host with these files."""
    for name, text in pages.items():
        path = folder / host / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def warc_of(path: Path, text: str, when: str, url: str = "http://www.example.org/a.html") -> Path:
    return warcs.write(path, [warcs.response(url, text.encode(), when)])


def take(archive: Archive, path: Path, when: str = "2019-05-01T12:00:00", *options: str) -> str:
    done = command("import", "--archive", archive.root, "--captured", when, *options, path)
    assert done.code == 0, done.err
    return done.err


@pytest.mark.parametrize("text", ["other bytes", "<p>sent</p>"])
def test_a_copy_never_takes_the_place_of_a_response(archive: Archive, tmp_path: Path, text: str) -> None:
    """S-copy-1: whether its bytes are the same or not; the crawl's log says so, and no crawl met the response then."""
    import_files(archive, warc_of(tmp_path / "a.warc", "<p>sent</p>", "2019-01-01T00:00:00Z"))
    folder = mirror_of(tmp_path / "m", {"a.html": text, "new.html": "new"})
    take(archive, folder)
    assert arcs(archive, "www.example.org") == {"a.html", "new.html"}
    assert read(archive, "www.example.org", "a.html") == b"<p>sent</p>"
    assert (meta(archive, "www.example.org", "a.html").source, meta(archive, "www.example.org", "new.html").source) == (
        "",
        "mirror",
    )
    report = max(archive.reports.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    lines = log_lines(archive, report.name)
    assert "response-held" in lines["http://www.example.org/a.html"].notes
    assert "source:mirror" in lines["http://www.example.org/new.html"].notes
    out = webarc("export", "--archive", str(archive.root), str(tmp_path / "out.warc"))
    assert out.returncode == 0, out.stderr
    raw = (tmp_path / "out.warc").read_bytes()
    assert raw.count(b"WARC-Type: revisit") == 0, "no crawl met it"
    assert (raw.count(b"WARC-Type: response"), raw.count(b"WARC-Type: resource")) == (1, 1)
    assert b"Webarcfs-Source: mirror" in raw
    take(archive, folder, WHEN, "--again")
    assert len(Repository(archive.repository("www.example.org")).refs(CRAWLS)) == 2, "again adds nothing"


def test_a_response_takes_the_place_of_a_copy(archive: Archive, tmp_path: Path) -> None:
    """Also where the bytes are the same, and at the other scheme; what came before stays what it was."""
    take(archive, mirror_of(tmp_path / "m", {"a.html": "<p>x</p>", "b.html": "<p>b</p>"}), "2018-01-01T00:00:00")
    import_files(archive, warc_of(tmp_path / "a.warc", "<p>x</p>", "2019-01-01T00:00:00Z"))
    secure = warc_of(tmp_path / "b.warc", "<p>b</p>", "2019-06-01T00:00:00Z", "https://www.example.org/b.html")
    import_files(archive, secure)
    now = {arc: meta(archive, "www.example.org", arc) for arc in arcs(archive, "www.example.org")}
    assert {arc: (document.source, document.url.partition(":")[0]) for arc, document in now.items()} == {
        "a.html": ("", "http"), "b.html": ("", "https"),
    }  # fmt: skip
    older = mirror_of(tmp_path / "older", {"a.html": "<p>older</p>", "c.html": "<p>c</p>"})
    take(archive, older, "2017-01-01T00:00:00")
    assert arcs(archive, "www.example.org") == {"a.html", "b.html"}, "an older copy changes no newer state"


def test_a_resource_record_takes_the_first_name_from_a_copy(archive: Archive, tmp_path: Path) -> None:
    """Also where another copy comes with it, whatever the two were taken from."""
    take(archive, mirror_of(tmp_path / "m", {"a.html": "<p>mirror</p>"}), "2018-01-01T00:00:00")
    record = warcs.record("resource", "https://www.example.org/a.html", b"<p>resource</p>", "2019-01-01T00:00:00Z")
    warc = warcs.write(tmp_path / "a.warc", [record])
    har = har_of(tmp_path / "a.har", "http://www.example.org/a.html", "<p>har</p>", "2019-01-01T00:00:01Z")
    import_files(archive, warc, har)
    now = {arc: meta(archive, "www.example.org", arc).source for arc in arcs(archive, "www.example.org")}
    assert now == {"a.html": "resource", "a.html%http": "HAR"}


def test_a_copy_of_another_url_with_other_bytes_is_not_held_by_a_response(archive: Archive, tmp_path: Path) -> None:
    """So that `--again` takes it: it has a second name. With the same bytes it is held, and again adds nothing."""
    sent = warc_of(tmp_path / "a.warc", "<p>sent</p>", "2019-01-01T00:00:00Z", "https://www.example.org/a.html")
    same = warc_of(tmp_path / "b.warc", "<p>b</p>", "2019-01-01T00:00:00Z", "https://www.example.org/b.html")
    import_files(archive, sent, same)
    folder = mirror_of(tmp_path / "m", {"a.html": "<p>other</p>", "b.html": "<p>b</p>"})
    take(archive, folder, WHEN, "--again")
    now = {arc: meta(archive, "www.example.org", arc).source for arc in arcs(archive, "www.example.org")}
    assert now == {"a.html": "", "a.html%http": "mirror", "b.html": ""}
    commits = len(Repository(archive.repository("www.example.org")).refs(CRAWLS))
    take(archive, folder, WHEN, "--again")
    assert len(Repository(archive.repository("www.example.org")).refs(CRAWLS)) == commits


def test_a_redirect_that_a_server_sent_counts_beside_an_older_copy_of_it(archive: Archive, tmp_path: Path) -> None:
    """It replaces what the archive has; and a copy of a redirect meets none."""
    url, host = "http://www.example.org/old", "www.example.org"

    def sent(name: str, target: str, when: str) -> Path:
        answer = f"HTTP/1.1 301 Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
        return warcs.write(tmp_path / name, [warcs.record("response", url, answer, when)])

    import_files(archive, sent("a.warc", "/one", "2018-01-01T00:00:00Z"))
    copied = har_of(tmp_path / "a.har", url, "", "2019-01-01T00:00:00Z", status=301, location="/two")
    import_files(archive, copied, sent("b.warc", "/two", "2019-01-01T00:00:10Z"))
    store = Repository(archive.repository(host))
    (redirect,) = redirect_lists.every(store, crawls.tree(archive, host))
    assert redirect.target == "http://www.example.org/two"
    import_files(archive, har_of(tmp_path / "b.har", url, "x", "2020-01-01T00:00:00Z", status=301, location="/two"))
    newest = sequence.crawl_commit(store, crawls.head_of(archive, host))
    assert newest is not None and crawls.crawls_of(archive, host)[-1].startswith("2020")
    met = redirect_lists.of_crawl(store, newest)
    assert met is not None
    assert dict(redirect_lists.met_redirects(store, redirect_lists.seen_tree(newest), met)) == {url: None}


def har_of(path: Path, url: str, text: str, when: str, *, status: int = 200, location: str = "") -> Path:
    """A HAR of one answer."""
    headers = {"Content-Type": "text/html"} | ({"Location": location} if location else {})
    return write_har(path, har_entry(url, text, when=when, status=status, headers=headers))


def test_a_copy_and_a_response_of_one_import(archive: Archive, tmp_path: Path) -> None:
    """Each has its time; with the same bytes the response is a version of its own."""
    folder = mirror_of(tmp_path / "m", {"a.html": "<p>x</p>"})
    warc = warc_of(tmp_path / "a.warc", "<p>x</p>", "2019-05-01T14:00:00Z")
    done = command("import", "--archive", archive.root, "--captured", WHEN, folder, warc)
    assert done.code == 0, done.err
    held = meta(archive, "www.example.org", "a.html")
    assert (held.source, format_time(held.capture_time)) == ("", "2019-05-01T15:00:00")


def test_an_import_of_an_export_says_what_it_was_taken_from(archive: Archive, tmp_path: Path) -> None:
    """As any WARC, and as it was exported."""
    take(archive, mirror_of(tmp_path / "m", {"a.html": "<p>x</p>"}))
    out = tmp_path / "out.warc"
    assert webarc("export", "--archive", str(archive.root), str(out)).returncode == 0
    again, other = directory.create(tmp_path / "again"), directory.create(tmp_path / "other")
    assert command("import", "--archive", again.root, "--as-exported", out).code == 0
    assert meta(again, "www.example.org", "a.html") == meta(archive, "www.example.org", "a.html")
    assert (
        Repository(again.repository("www.example.org")).head()
        == Repository(archive.repository("www.example.org")).head()
    )
    assert command("import", "--archive", other.root, out).code == 0
    assert meta(other, "www.example.org", "a.html").source == "mirror"


def test_a_warc_that_wget_wrote_beside_its_mirror_is_taken_instead(
    archive: Archive, pages: Site, tmp_path: Path
) -> None:
    """What the server sent is more than its copy, and that the mirror is left out is said."""
    folder = wget(tmp_path / "made", pages.url("/b.html"), "--page-requisites", "--warc-file=made")
    host = pages.host
    done = command("import", "--archive", archive.root, folder)
    assert done.code == 0 and "left out; what a crawler recorded" in done.err
    assert meta(archive, host, "b.html").source == ""


# == names, pure =======================================================================================================


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("index.html", "http://h.example/"),
        ("a/index.html?x=1", "http://h.example/a/?x=1"),
        ("a?b=c/d", None),
        ("a?b=%2Fd", "http://h.example/a?b=%2Fd"),
        ("50%", "http://h.example/50%"),
        ("a#b", "http://h.example/a%23b"),
        ("q?x/y", "http://h.example/q%3Fx/y"),
        ("ä b", "http://h.example/%C3%A4%20b"),
    ],
)
def test_names_are_urls(path: str, url: str | None) -> None:
    if url is not None:
        assert mirror.url_of("http://h.example/", path) == url


@given(st.text(min_size=1).filter(lambda text: "\0" not in text and not text.startswith("/")))
def test_any_name_is_a_url_of_its_host(path: str) -> None:
    """Whatever a file is called."""
    try:
        url = canonical(mirror.url_of("http://h.example/", path.encode("utf-8", "replace").decode()))
    except UsageError:
        return
    assert url.startswith("http://h.example/") and arc_path(url).startswith("h.example/")


@pytest.mark.parametrize("name", ["www.example.org", "localhost", "127.0.0.1:8080", "h.example+81", "[::1]", "a_b.de"])
def test_folders_of_hosts(name: str) -> None:
    assert mirror.is_host(name)


@pytest.mark.parametrize(
    "name", ["pages", "..", ".git", "a b.de", "x.c_", "2019-05", "a..de", "%2e.de", "host:port", "page.files"]
)
def test_other_folders(name: str) -> None:
    assert not mirror.is_host(name)


def test_folders_of_schemes(tmp_path: Path) -> None:
    """`wget --protocol-directories` says the scheme."""
    (tmp_path / "https" / "a.example").mkdir(parents=True)
    (tmp_path / "b.example").mkdir()
    assert [root.base for root in mirror.roots(tmp_path)] == ["https://a.example/", "http://b.example/"]


def test_many_files(tmp_path: Path) -> None:
    """They come one by one; the digest is of names and bytes."""
    host = tmp_path / "www.example.org"
    host.mkdir()
    for number in range(2_000):
        (host / f"{number}.html").write_bytes(b"<title>x</title>")
    stated = Stated(captured=datetime(2019, 5, 1, tzinfo=CET))
    urls = [
        record.fields["warc-target-uri"]
        for part in parts_of(tmp_path, "m", Report(), lambda _: None, stated)
        for record in part.records
    ]
    assert len(urls) == len(set(urls)) == 2_000
    before = mirror.digest_of(tmp_path, lambda _: None)
    (host / "1.html").rename(host / "1.htm")
    assert mirror.digest_of(tmp_path, lambda _: None) != before


def test_data_xml_says_it(archive: Archive, tmp_path: Path) -> None:
    """In the attribute `source`, which the schema knows."""
    take(archive, mirror_of(tmp_path / "m", {"a.html": "<p>x</p>"}))
    raw = read_file(archive, "www.example.org", "a.html/data.xml") or b""
    data_xml.validate(raw)
    assert b'source="mirror"' in raw
