"""`webarc-agent report`: what a job did, by job, publication or commitTag."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli import cli
from agent.crawl import crawl_log
from agent.crawl.vocabulary import Figure, Status
from agent.reports import tables
from agent.reports.tables import LogLine
from tests.support import crawls
from tests.support.crawls import crawl, end, run_command, start_command, through
from tests.support.generated import Generated
from tests.support.nasty import slow
from tests.support.site import Site, page
from tests.support.waiting import until
from tests.support.wire import Exchange
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged, UsageError

pytestmark = pytest.mark.crawl


@pytest.fixture
def done(archive: Archive, site: Site) -> crawls.Outcome:
    """A crawl of two hosts on which some things are left out."""
    site.add("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain", host="a.example")
    site.add_html(
        "/",
        "".join(f'<a href="/{path}">x</a>' for path in ("1", "2", "missing", "private", "x/" * 6))
        + '<img src="http://b.example/p.png"><a href="http://c.example/">c</a>',
        host="a.example",
    )
    site.add_html("/1", "one", host="a.example")
    site.add_html("/2", "two", host="a.example")
    site.add("/p.png", b"\x89PNG\r\n\x1a\n", "image/png", host="b.example")
    (archive.filters / "mime.toml").write_text('exclude = ["image/*"]', "utf-8")
    return crawl(archive, "http://a.example/", name="two-hosts", hosts=["b.example"], wget_args=through(site.proxy))


def _report(archive: Archive, *arguments: str) -> crawls.Done:
    return run_command("report", "--archive", archive.root, *arguments)


def _in_process(archive: Archive, *arguments: str) -> str:
    done = CliRunner().invoke(cli, ["report", "--archive", str(archive.root), *arguments])
    assert done.exit_code == 0, done.exception
    return done.output


def _plain(archive: Archive, job: crawls.Outcome) -> Path:
    """Make a report one of an older version; returns its log."""
    folder = archive.reports / job.job
    plain = folder / "crawl.log"
    plain.write_text(crawls.log_text(archive, job.job), "utf-8")
    (folder / "crawl.log.gz").unlink()
    return plain


def _flipped(log: bytes) -> bytes:
    """With another checksum (RFC 1952: the first four of the last eight bytes)."""
    return log[:-8] + bytes([log[-8] ^ 0x55]) + log[-7:]


def test_the_tables(archive: Archive, done: crawls.Outcome) -> None:
    out = json.loads(_report(archive, done.job, "--json").out)
    assert out["summary"] == crawls.summary_of(archive, done)
    rows = {(row["table"], row["key"]): (row["urls"], row["archived"]) for row in out["tables"]}
    assert rows == {
        ("hosts", "a.example"): (7, 3),
        ("hosts", "b.example"): (2, 0),
        ("hosts", "c.example"): (1, 0),
        ("types", "text/html"): (3, 3),
        ("sizes", "under 1 kB"): (3, 3),
        ("states", "200"): (4, 3),
        ("states", "404"): (2, 0),
        ("states", "-3"): (1, 0),
        ("states", "-5"): (2, 0),
        ("states", "-7"): (1, 0),
        ("statuses", "200"): (5, 3),
        ("statuses", "404"): (2, 0),
        ("statuses", "-4000"): (1, 0),
        ("statuses", "-5000"): (1, 0),
        ("statuses", "-9998"): (1, 0),
        ("left_out", "robots.txt itself"): (2, 0),
        ("left_out", "status 404"): (1, 0),
        ("left_out", "filter:mime"): (1, 0),
        ("left_out", "host"): (1, 0),
        ("left_out", "robots"): (1, 0),
        ("left_out", "trap:repeats"): (1, 0),
    }
    total = sum(row["bytes"] for row in out["tables"] if row["table"] == "hosts")
    assert total == out["summary"]["bytes"] == sum(row["bytes"] for row in out["tables"] if row["table"] == "statuses")
    seed3 = {row["key"]: row["seed3"] for row in out["tables"] if row["table"] == "statuses"}
    assert (seed3["-9998"], seed3["-5000"], seed3["404"]) == (-7, -5, 404)
    meanings = {row["key"]: row["meaning"] for row in out["tables"] if row["table"] == "states"}
    assert (meanings["-3"], meanings["404"]) == ("of a type that is not kept", "Not Found")
    shares = {(row["table"], row["key"]): row["share"] for row in out["tables"]}
    assert (shares["hosts", "a.example"], shares["states", "200"], shares["types", "text/html"]) == (70.0, 40.0, 100.0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (LogLine("http://a.example/sitemap.xml", 404, 9, "M", "text/html", (f"{Figure.SEED3}404",)), "no-sitemap"),
        (LogLine("http://a.example/sitemap.xml", 503, 9, "M", "text/html", (f"{Figure.SEED3}503",)), "status 503"),
        (LogLine("https://a.example/x", 404, 9, "L", "text/html", (f"{Figure.SEED3}404", "tls:expired")), "status 404"),
        (LogLine("https://a.example/x", -2, 0, "L", "-", (f"{Figure.SEED3}-2", "tls:expired")), "tls:expired"),
    ],
)
def test_a_guess_is_no_document_and_what_came_failed_by_no_certificate(line: LogLine, reason: str) -> None:
    assert line.reason == reason
    shares = tables.Shares()
    shares.add(line)
    assert shares.lost == (reason != "no-sitemap")


def test_the_shares_of_the_site(archive: Archive, done: crawls.Outcome) -> None:
    """BT-scope-13. Archived: /, /1, /2; excluded: /private, the trap, the filtered image; in vain: /missing."""

    def told(*words: str) -> dict[str, tuple[int, float]]:
        rows = json.loads(_in_process(archive, done.job, "--shares", "--json", *words))
        return {each["what"]: (each["documents"], each["share"]) for each in rows}

    crawled = {"archived": 3, "excluded": 3, "not to be had": 1}
    assert {name: count for name, (count, _) in told().items()} == {**crawled, "known": 7}
    assert told("--on-server", "20", "--unlinked", "8") == {
        "archived": (3, 15.0), "excluded": (3, 15.0), "not to be had": (1, 5.0), "unlinked": (8, 40.0),
        "not accounted for": (5, 25.0), "on the server": (20, 100.0),
    }  # fmt: skip
    shown = _in_process(archive, done.job, "--shares", "--on-server", "20", "--unlinked", "8").splitlines()
    bars = [line.count("#") for line in shown if "#" in line]
    assert len(bars) == 6 and bars[3] == max(bars[:5]) and bars[5] == 28
    rows = list(csv.DictReader(io.StringIO(_in_process(archive, done.job, "--shares", "--csv"))))
    assert {row["what"]: int(row["documents"]) for row in rows} == {**crawled, "known": 7}
    for words in (("--shares", "--on-server", "6"), ("--unlinked", "3")):
        done_so = CliRunner().invoke(cli, ["report", "--archive", str(archive.root), done.job, *words])
        assert isinstance(done_so.exception, UsageError), words


def test_each_page_has_its_links_and_depth(archive: Archive, done: crawls.Outcome) -> None:
    log = crawls.log_lines(archive, done)
    figures = {url: line.annotations[2:] for url, line in log.items() if line.status == 200}
    assert figures["http://a.example/"] == ("links:7", "depth:0")
    assert figures["http://a.example/1"] == ("links:0", "depth:1")
    assert figures["http://a.example/robots.txt"] == ()


@pytest.mark.parametrize(
    ("size", "name"),
    [(0, "0"), (1, "under 1 kB"), (1023, "under 1 kB"), (1024, "1 kB to 2 kB"), (2047, "1 kB to 2 kB"),
     (32768, "32 kB to 64 kB"), ((1 << 20) - 1, "512 kB to 1 MB"), (1 << 20, "1 MB to 2 MB"),
     (3 << 30, "2 GB to 4 GB"), (1 << 50, "1024 GB and more")],
)  # fmt: skip
def test_documents_are_counted_by_size(size: int, name: str) -> None:
    assert tables.size_class(size) == name
    line = f"- 200 {size} http://e.org/ - - text/html #001 - - - seed3:200,added"
    assert list(tables.tables([line]).sizes) == [name]


def test_a_job_that_runs_is_reported_as_far_as_it_is(archive: Archive, site: Site) -> None:
    """Its crawl.log grows; the same tables are made of it."""
    site.add_html(
        "/", "".join(f'<a href="/{number}">x</a>' for number in range(30)) + '<a href="http://b.example/">b</a>'
    )
    image = page(bytes(3000), "image/png")
    is_paused = threading.Event()

    def held(exchange: Exchange) -> None:
        assert is_paused.wait(120)  # however long the commands take
        slow(10.0, image)(exchange)

    for number in range(30):
        site.add_nasty(f"/{number}", slow(0.1, image) if number < 15 else held)
    options = ("--wait", "0", "--no-sitemaps", "--max-duration", "1 hour", "--timeout", "120")
    crawl_ = start_command("crawl", "--archive", archive.root, *options, site.url())
    try:
        until(lambda: site.count("/15"), "it fetches")
        (job,) = archive.jobs.iterdir()
        before = (job / "crawl.log").read_text()
        assert {line.split()[3] for line in before.splitlines()} >= {site.url("/"), "http://b.example/"}
        out = json.loads(_report(archive, job.name, "--json").out)
        assert (out["summary"]["complete"], out["summary"]["state"]) == (None, "collecting")
        assert out["summary"]["latest_end"] > out["summary"]["started"]
        rows = {(row["table"], row["key"]): row["urls"] for row in out["tables"]}
        assert rows["hosts", "b.example"] == rows["states", "-5"] == rows["left_out", "host"] == 1
        assert rows["types", "text/html"] == 1
        run_command("job", "pause", job.name, "--archive", archive.root)
        is_paused.set()
        until(lambda: len((job / "crawl.log").read_text()) > len(before), "it grows")
        out = json.loads(_report(archive, job.name, "--json").out)
        rows = {(row["table"], row["key"]): row["urls"] for row in out["tables"]}
        assert (rows["types", "image/png"], rows["sizes", "2 kB to 4 kB"]) == (16, 16)  # with the one under way
        text = _report(archive, job.name).out
        assert "paused, since" in text and "ends by" in text and "50.0" in text
        with (job / "crawl.log").open("a") as log:
            log.write("half a li")
        assert json.loads(_report(archive, job.name, "--json").out)["tables"] == out["tables"]
    finally:
        is_paused.set()
        end(crawl_)


def test_csv_has_the_same(archive: Archive, done: crawls.Outcome) -> None:
    rows = list(csv.DictReader(io.StringIO(_report(archive, done.job, "--csv").out)))
    records = json.loads(_report(archive, done.job, "--json").out)["tables"]
    assert [(row["table"], row["key"], int(row["bytes"])) for row in rows] == [
        (each["table"], each["key"], each["bytes"]) for each in records
    ]


def test_for_people(archive: Archive, done: crawls.Outcome) -> None:
    text = _report(archive, "two-hosts", "--limit", "2").out
    for part in (done.job, "complete", *done.tags, "3 added", "a.example", "1 more", "404 Not Found", "filter:mime"):
        assert part in text, f"{part} is not in\n{text}"
    assert "c.example" not in text, "only two rows a table were asked for"


def test_a_tag_is_the_part_of_its_domain_and_a_publication_its_last_job(archive: Archive, done: crawls.Outcome) -> None:
    tag = next(tag for tag in done.tags if tag.endswith("@a.example"))
    rows = json.loads(_report(archive, tag, "--json").out)["tables"]
    assert [row["key"] for row in rows if row["table"] == "hosts"] == ["a.example"]
    for name in ("two-hosts", "1"):  # the number of its record
        assert json.loads(_report(archive, name, "--json").out)["summary"]["job"] == done.job


def test_a_short_name_of_a_snapshot_is_the_part_of_its_domain(archive: Archive, done: crawls.Outcome) -> None:
    tag = next(tag for tag in done.tags if tag.endswith("@a.example"))
    whole = _report(archive, tag, "--json").out
    for name in ("latest@a.example", f"{tag[:10]}@a.example", f"{tag[:4]}@a.example"):
        answer = _report(archive, name, "--json")
        assert answer.out == whole and f"{name} is {tag}" in answer.err
    answer = _report(archive, "latest~1@a.example")
    assert answer.code == 2 and f"the first is {tag}" in answer.err


def test_a_host_is_the_last_crawl_that_published_it(archive: Archive, done: crawls.Outcome) -> None:
    """Not its patch, and a report that cannot be read is not in the way of others."""
    patch, damaged = archive.reports / "20991231T000000-two-hosts+patch", archive.reports / "20991231T000001-other"
    for folder, summary in (
        (patch, {"patches": done.job, "commit_tags": ["2099-12-31T00:00:00@a.example"]}),
        (damaged, ""),
    ):
        folder.mkdir()
        (folder / "summary.json").write_text(json.dumps(summary)[:-1] if folder == damaged else json.dumps(summary))
    for name in ("a.example", next(iter(done.tags))):
        assert json.loads(_report(archive, name, "--json").out)["summary"]["job"] == done.job
    assert "published a host b.invalid" in _report(archive, "b.invalid").err


def test_what_there_is_no_report_of(archive: Archive, done: crawls.Outcome) -> None:
    for name in ("no-such", "2026-01-01T00:00:00@a.example"):
        answer = _report(archive, name)
        assert (answer.code, answer.out) == (2, "")
        assert name in answer.err and done.job in answer.err
    (archive.jobs / "20260101000000-begun").mkdir()
    assert "no report yet" in _report(archive, "begun").err
    assert _report(archive, done.job, "--csv", "--json").code == 1


def test_a_damaged_log_is_named(archive: Archive, done: crawls.Outcome) -> None:
    log = _plain(archive, done)
    log.write_text(log.read_text("utf-8") + "half a li", "utf-8")
    answer = _report(archive, done.job)
    assert answer.code == 2 and "line 11 of crawl.log" in answer.err
    with pytest.raises(Damaged):
        tables.parse("- x - http://e.org/ - - - - - - - seed3:-5", 1)


@pytest.mark.parametrize("damage", [lambda log: log[:-9], lambda _: b"no gzip", _flipped, lambda _: b""])
def test_a_compressed_log_that_is_damaged_is_named(
    archive: Archive, done: crawls.Outcome, damage: Callable[[bytes], bytes]
) -> None:
    """Cut off, something else, with other bytes, empty: one line says which file, and nothing is counted."""
    log = archive.reports / done.job / "crawl.log.gz"
    log.write_bytes(damage(log.read_bytes()))
    answer = _report(archive, done.job, "--json")
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert f"{log} is damaged" in answer.err and len(answer.err.splitlines()) == 1


def test_a_report_without_a_log(archive: Archive, done: crawls.Outcome) -> None:
    (archive.reports / done.job / "crawl.log.gz").unlink()
    answer = _report(archive, done.job)
    assert (answer.code, answer.out) == (2, "")
    assert f"{done.job} has no crawl.log" in answer.err and len(answer.err.splitlines()) == 1


def test_the_log_is_gzip_that_depends_on_its_lines_alone(tmp_path: Path) -> None:
    lines = [f"line {number} \u00fc" for number in range(1000)]
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        path = crawl_log.write(folder, iter(lines))
        assert [each.name for each in folder.iterdir()] == ["crawl.log.gz"]
        os.utime(path, (1, 1))
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert written[0][3:8] == bytes(5), "neither a name nor a time in its head"
    for program, expected in ((["zcat"], lines), (["zgrep", "-F", "line 7 "], ["line 7 \u00fc"])):
        out = subprocess.run([*program, path], check=True, capture_output=True).stdout
        assert out.decode("utf-8").splitlines() == expected


def test_plain_logs_of_older_versions_are_read(archive: Archive, done: crawls.Outcome) -> None:
    """And where both are there, whoever unpacked it, the one that was written first."""
    before = _report(archive, done.job, "--json").out
    packed = (archive.reports / done.job / "crawl.log.gz").read_bytes()
    plain = _plain(archive, done)
    assert _report(archive, done.job, "--json").out == before
    plain.with_name("crawl.log.gz").write_bytes(packed)
    plain.write_text("half a li", "utf-8")
    assert _report(archive, done.job, "--json").out == before


def test_both_forms_are_in_a_backup_as_they_are(archive: Archive, done: crawls.Outcome, tmp_path: Path) -> None:
    older = _plain(archive, done)
    newer = crawl(archive, "http://a.example/", name="newer")  # whatever became of it
    before = {job: _report(archive, job, "--json").out for job in (done.job, newer.job)}
    for _ in range(2):
        assert run_command("backup", "--archive", archive.root, tmp_path / "copy").code == 0
        copied = tmp_path / "copy" / "reports"
        logs = {path.relative_to(copied) for path in copied.rglob("crawl.log*")}
        assert logs == {Path(done.job, "crawl.log"), Path(newer.job, "crawl.log.gz")}
        assert (copied / done.job / "crawl.log").read_bytes() == older.read_bytes()
    assert run_command("restore", tmp_path / "copy", tmp_path / "again").code == 0
    for job, out in before.items():
        assert run_command("report", "--archive", tmp_path / "again", job, "--json").out == out


def test_the_report_of_an_unchanged_crawl_is_small(archive: Archive, site: Site) -> None:
    """Its whole folder takes less than a fifth of its crawl.log, which says of each page that it did not change."""
    site.mount(Generated(400), at="/")
    for _ in range(2):
        outcome = crawl(archive, site.url())
    text = crawls.log_text(archive, outcome.job)
    assert sum(",unchanged," in line for line in text.splitlines()) == crawls.count(outcome)[3] > 400
    taken = sum(path.stat().st_size for path in (archive.reports / outcome.job).iterdir())
    assert taken * 5 < len(text.encode())


def test_a_report_is_on_the_disk_before_it_has_its_name_and_before_its_job_goes(
    archive: Archive, site: Site, tmp_path: Path
) -> None:
    """By the system calls."""
    site.add_html("/", "home")
    trace = tmp_path / "trace"
    command = [sys.executable, "-c", "from agent.cli import main; main()", "crawl", "--archive", archive.root]
    traced = ["strace", "-f", "-y", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,rename,renameat2", "-o", trace]
    subprocess.run([*traced, *command, site.url()], check=True, capture_output=True)
    calls = trace.read_text().splitlines()
    reports = re.escape(str(archive.reports))

    def last(pattern: str) -> int:
        return max((number for number, call in enumerate(calls) if re.search(pattern, call)), default=-1)

    synced = [last(rf"sync\(\d+<{reports}/\.[^/]*/{name}>") for name in ("crawl.log.gz", "summary.json", "item.json")]
    folder = last(rf"sync\(\d+<{reports}/\.[^/]*>")
    named = last(rf'rename.*"{reports}/\.[^/"]*".*"{reports}/[^/."][^/"]*"')
    its_name = last(rf"sync\(\d+<{reports}>")
    gone = last(rf'rename.*"{re.escape(str(archive.jobs))}/\.[^/"]*"')
    assert min(synced) > -1 and max(synced) < folder < named < its_name < gone, calls


def test_every_status_has_words() -> None:
    assert all(tables.meaning(status) for status in Status)
    assert (tables.meaning(200), tables.meaning(999), tables.meaning(-12345)) == ("OK", "HTTP", "")
