"""Metrics: what is counted, what a scrape costs, who is answered. Read by Prometheus' own tool and parser."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser

from agent.crawl.job_folder import ITEM_FILE, JobState, Phase
from agent.indexing.recovery import recover
from agent.service import metrics_listener
from agent.service.agent_status import overview, problems
from agent.service.metrics import ArchiveMetrics
from agent.service.metrics_listener import MetricsListener
from tests.support import archives, crawls
from tests.support.agents import RunningAgent, agent, configure, fake_report
from tests.support.crawls import run_command
from tests.support.rooms import Page, published
from tests.support.sources import ROOT
from tests.support.waiting import until
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive, create
from webarcfs.archive.model.metadata import CET, parse_time
from webarcfs.archive.system import files
from webarcfs.web.exposition import MetricForm
from webarcfs.web.listeners import TcpAddress, UnixAddress, address

archive = crawls.archive
pytestmark = pytest.mark.store

PREFIX = "webarc_publication_"
DAY = "2026-11-{:02}T01:00:00"
BEGUN = datetime(2026, 11, 1, tzinfo=CET)


def _report(archive: Archive, publication: str, day: int, minute: int = 0, *, complete: bool = True) -> str:
    name = f"202611{day:02}T01{minute:02}00-{publication}"
    (archive.reports / name).mkdir()
    summary = {
        "job": name, "complete": complete, "started": DAY.format(day), "finished": f"2026-11-{day:02}T01:10:00",
        "documents": {"text/html": 3, "image/png": 1}, "bytes": 500,
    }  # fmt: skip
    files.write_json(archive.reports / name / "summary.json", summary)
    return name


def _save(job: Path, item: JobState) -> None:
    files.write_json(job / ITEM_FILE, item.as_json())


def _values(page: bytes, *by: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a page by their names and some labels."""
    return {
        (sample.name, *(sample.labels.get(name, "") for name in by)): sample.value
        for family in parser.text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def _of(metrics: ArchiveMetrics, publication: str) -> dict[str, float]:
    page = metrics.page(MetricForm.OPEN_METRICS)
    return {
        name.removeprefix(PREFIX) + (f":{result}" if result else ""): value
        for (name, whose, result), value in _values(page, "publication", f"{PREFIX}last_result").items()
        if whose == publication
    }


def _time(text: str) -> float:
    return parse_time(text).timestamp()


def test_each_publication_has_its_last_success_result_and_figures(archive: Archive) -> None:
    """S-monitor-4: an incomplete crawl leaves the last success; a job that failed is the result while it is open."""
    configure(archive, {"name": "town", "urls": ["http://a.example/"], "interval": "1 day"})
    metrics = ArchiveMetrics(archive)
    before = _of(metrics, "town")
    assert before["last_success_timestamp_seconds"] == 0 and "last_result:complete" not in before
    assert before["first_start_timestamp_seconds"] == before["next_due_timestamp_seconds"]
    _report(archive, "town", 2)
    for publication in ("other", "town+patch", "town+occasion", "town+0a1b2c"):  # the last one is an import
        _report(archive, publication, 3, complete=False)
    town = _of(metrics, "town")
    assert (
        town["last_success_timestamp_seconds"] == town["last_finish_timestamp_seconds"] == _time("2026-11-02T01:10:00")
    )
    assert (town["last_documents"], town["last_bytes"], town["last_duration_seconds"]) == (4, 500, 600)
    assert town["next_due_timestamp_seconds"] == _time("2026-11-03T01:00:00")
    assert (town["interval_seconds"], town["running"], town["failures"]) == (86400, 0, 0)
    assert town["first_start_timestamp_seconds"] == _time("2026-11-02T01:00:00")
    assert (town["last_result:complete"], town["last_result:incomplete"], town["last_result:failed"]) == (1, 0, 0)
    name = _report(archive, "town", 4, complete=False)
    town = _of(metrics, "town")
    assert town["last_success_timestamp_seconds"] == _time("2026-11-02T01:10:00")
    assert town["last_finish_timestamp_seconds"] == _time("2026-11-04T01:10:00")
    assert (town["last_result:complete"], town["last_result:incomplete"]) == (0, 1)
    job = archive.jobs / "20261105T010000-town"
    job.mkdir()
    _save(job, JobState(job=job.name, publication="town", state=Phase.FAILED, failures=3))
    town = _of(metrics, "town")
    assert (town["last_result:failed"], town["failures"]) == (1, 3)
    assert town["first_start_timestamp_seconds"] == _time("2026-11-02T01:00:00")
    assert town["next_due_timestamp_seconds"] == _time("2026-11-06T01:00:00")
    shutil.rmtree(job)
    shutil.rmtree(archive.reports / name)
    assert _of(metrics, "town")["last_result:complete"] == 1
    assert not _of(metrics, "other"), "it is no publication of the settings"
    configure(archive, {"name": "town", "urls": ["http://a.example/"], "retired": True})
    assert "next_due_timestamp_seconds" not in _of(metrics, "town")
    configure(archive)
    assert not _of(metrics, "town")


def test_the_last_success_is_one_of_the_last_fifty_crawls(archive: Archive) -> None:
    """S-monitor-4."""
    configure(archive, {"name": "town", "urls": ["http://a.example/"]})
    metrics = ArchiveMetrics(archive)
    _report(archive, "town", 1)
    for minute in range(49):
        _report(archive, "town", 2, minute, complete=False)
    assert _of(metrics, "town")["last_success_timestamp_seconds"] == _time("2026-11-01T01:10:00")
    _report(archive, "town", 2, 49, complete=False)
    assert _of(metrics, "town")["last_success_timestamp_seconds"] == 0


def test_a_publication_whose_time_has_not_come_is_not_late(archive: Archive) -> None:
    configure(archive, {"name": "town", "urls": ["http://a.example/"], "start": "2099-01-01T00:00:00"})
    town = _of(ArchiveMetrics(archive), "town")
    assert "last_success_timestamp_seconds" not in town and town["next_due_timestamp_seconds"] > time.time()


def test_a_report_that_cannot_be_read_or_is_of_a_time_to_come_costs_no_other(archive: Archive) -> None:
    town = {"name": "town", "urls": ["http://a.example/"], "interval": "1 day"}
    configure(archive, town, {"name": "city", "urls": ["http://b.example/"]})
    for name in ("town", "city"):
        _report(archive, name, 2)
    (archive.reports / _report(archive, "town", 3) / "summary.json").write_text("{no JSON")
    (archive.reports / "29991231T000000-city").mkdir()
    (archive.reports / "20009931T990000-city").mkdir()
    (archive.reports / "20261131T000000-city").mkdir()
    metrics = ArchiveMetrics(archive)
    assert _of(metrics, "town")["last_success_timestamp_seconds"] == _time("2026-11-02T01:10:00")
    assert _of(metrics, "town")["next_due_timestamp_seconds"] == _time(overview(archive)["publications"][0]["next"])
    assert _of(metrics, "city")["last_success_timestamp_seconds"] == _time("2026-11-02T01:10:00")


def test_the_archive_as_a_whole_is_counted(archive: Archive, tmp_path: Path) -> None:
    configure(archive, {"name": "town", "urls": ["http://a.example/"]})
    archive.settings.write_text(f'{archive.settings.read_text()}\n[backup]\nto = "{tmp_path}/backup"\n')
    for number, state in enumerate((Phase.FAILED, Phase.FAILED, Phase.INTERRUPTED), 1):
        job = archive.jobs / f"2026110{number}T010000-job{number}"
        job.mkdir()
        _save(job, JobState(job=job.name, publication=f"job{number}", state=state, held="paused"))
    values = _values(ArchiveMetrics(archive).page(MetricForm.OPEN_METRICS), "state", "part")
    assert values["webarc_agent_up", "", ""] == 0
    assert values["webarc_jobs", "failed", ""] == 2
    assert values["webarc_jobs", "interrupted", ""] == 1
    assert values["webarc_jobs_held", "", ""] == 3
    assert values["webarc_publications", "active", ""] == 1
    assert values["webarc_readable", "", "catalogue"] == 1
    assert values["webarc_backup_last_success_timestamp_seconds", "", ""] == 0
    assert values["webarc_backup_any_last_success_timestamp_seconds", "", ""] == 0
    assert 0 < values["webarc_disk_free_bytes", "", ""] <= values["webarc_disk_size_bytes", "", ""]
    assert run_command("backup", "--archive", archive.root, tmp_path / "backup").code == 0
    metrics = ArchiveMetrics(archive)
    last = _values(metrics.page(MetricForm.OPEN_METRICS))["webarc_backup_last_success_timestamp_seconds",]
    assert abs(last - time.time()) < 86400
    mark = files.read_json(tmp_path / "backup" / "backup.json") or {}
    files.write_json(tmp_path / "backup" / "backup.json", {**mark, "last": mark["finished"], "finished": None})
    assert _values(metrics.page(MetricForm.OPEN_METRICS))["webarc_backup_last_success_timestamp_seconds",] == last
    assert run_command("backup", "--archive", archive.root, tmp_path / "by hand").code == 0
    values = _values(metrics.page(MetricForm.OPEN_METRICS))
    assert values["webarc_backup_last_success_timestamp_seconds",] == last
    assert last <= values["webarc_backup_any_last_success_timestamp_seconds",] < time.time() + 3600 * 24
    archive.settings.write_text("[crawl]\ndepth = 'deep'\n")
    values = _values(metrics.page(MetricForm.OPEN_METRICS))
    assert values["webarc_settings_faults",] == 1
    assert (f"{PREFIX}interval_seconds",) in values, "the settings from before hold"


def test_crawls_that_wait_and_snapshots_that_the_index_lacks_are_counted(tmp_path: Path) -> None:
    """As the catalogue changes; a damaged one is said and hides nothing else."""
    archive = archives.make_archive(tmp_path)
    metrics = ArchiveMetrics(archive)

    def value(name: str, *labels: str) -> float:
        return _values(metrics.page(MetricForm.OPEN_METRICS), "part")[name, *(labels or ("",))]

    assert value("webarc_records_waiting_for_release") == 0
    home = "http://www.example.org/"
    published(archive, "www.example.org", {home: Page(b"<p>x")}, BEGUN, state=RecordState.CHECKED, held=True)
    recover(archive)
    assert value("webarc_records_waiting_for_release") == 1
    assert value("webarc_index_behind_snapshots") == 1
    shutil.rmtree(archive.catalogue / "objects")
    archive.catalogue_database.unlink(missing_ok=True)
    broken = _values(ArchiveMetrics(archive).page(MetricForm.OPEN_METRICS), "part")
    assert broken["webarc_readable", "catalogue"] == 0
    assert ("webarc_disk_free_bytes", "") in broken


NAMES = ("a.b", "x" * 99, "2026-11-01", "-".join("az09"), "A_B-c.D")


def test_promtool_accepts_what_is_scraped(archive: Archive, tmp_path: Path) -> None:
    """Debian's own, with its lint; also the folder's name in any script."""
    assert shutil.which("promtool"), "apt-get install prometheus"
    configure(archive, *({"name": name, "urls": ["http://a.example/"]} for name in NAMES))
    for name in NAMES:
        _report(archive, name, 2)
    root = tmp_path / 'Археіў "日本"\\\n\u202e\udcff'
    archive.root.rename(root)
    moved = Archive(root)
    page, open_page = (ArchiveMetrics(moved).page(form) for form in (MetricForm.PROMETHEUS, MetricForm.OPEN_METRICS))
    root.rename(archive.root)
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    labels = {name for _, name in _values(open_page, "publication")}
    assert labels == {"", *NAMES}


def test_a_scrape_of_ten_thousand_publications_costs_little(tmp_path: Path) -> None:
    """S-monitor-5: at most 50 ms of the processor, also the first one after a crawl; the best of several."""
    archive = create(tmp_path / "archive")
    names = [f"pub{number:05}" for number in range(10_000)]
    archive.settings.write_text(
        "".join(f'[[publication]]\nname = "{name}"\nurls = ["http://{name}.example/"]\n' for name in names)
    )
    for name in names:
        report = archive.reports / f"20261102T010000-{name}"
        report.mkdir()
        (report / "summary.json").write_text(
            json.dumps(
                {"complete": True, "started": DAY.format(2), "finished": DAY.format(3), "documents": {}, "bytes": 1}
            )
        )
    metrics = ArchiveMetrics(archive)
    assert len(_values(metrics.page(MetricForm.OPEN_METRICS), "publication")) > 100_000 - 30_000
    quiet, changed = [], []
    for number in range(7):
        quiet.append(_cost(metrics))
        _report(archive, names[number], 5 + number)
        changed.append(_cost(metrics))
        assert _value_of(metrics, names[number]) == _time(f"2026-11-{5 + number:02}T01:10:00")
    assert min(quiet) <= 0.05
    assert min(changed) <= 0.05


def test_all_reports_are_read_before_anybody_scrapes(archive: Archive) -> None:
    """S-monitor-5: a report that is gone by the first scrape is not read then."""
    configure(archive, {"name": "town", "urls": ["http://a.example/"]})
    name = _report(archive, "town", 2)
    metrics = ArchiveMetrics(archive)
    read = threading.Event()

    def page(form: MetricForm) -> bytes:
        try:
            return metrics.page(form)
        finally:
            read.set()

    with _listening(page=page) as listener:
        assert read.wait(60)
        (archive.reports / name / "summary.json").unlink()
        status, _, body = _asked(listener, Accept="application/openmetrics-text")
        assert status == 200
        assert _values(body, "publication")[f"{PREFIX}last_documents", "town"] == 4


def _cost(metrics: ArchiveMetrics) -> float:
    before = time.thread_time()
    metrics.page(MetricForm.OPEN_METRICS)
    return time.thread_time() - before


def _value_of(metrics: ArchiveMetrics, name: str) -> float:
    text = metrics.page(MetricForm.PROMETHEUS).decode()
    line = next(
        line for line in text.splitlines()
        if line.startswith(f"{PREFIX}last_success") and f'publication="{name}"' in line
    )  # fmt: skip
    return float(line.rpartition(" ")[2])


# -- alerts ------------------------------------------------------------------------------------------------------------


def _promtool(*words: str | Path) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


RESULT = f"{PREFIX}last_result"


def test_prometheus_takes_the_examples_and_alerts_after_two_intervals(tmp_path: Path) -> None:
    """Its own test of rules: nothing for a crawl that is in time, an alert for one that was not complete for long."""
    for name in ("prometheus.yml", "prometheus-rules.yml"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    _promtool("check", "config", tmp_path / "prometheus.yml")
    labels = 'archive="/srv/webarc", publication='
    series = []
    hour = 3600
    for name, success, first in (
        ("in-time", f"0x60 {60 * hour}+0x60", 1), ("late", f"{hour}x120", 1), ("never", "0x120", 1),
        ("slow", "0x120", 60 * hour), ("to-come", "_x120", 200 * hour),
    ):  # fmt: skip
        series += [(f'{PREFIX}last_success_timestamp_seconds{{{labels}"{name}"}}', success),
                   (f'{PREFIX}first_start_timestamp_seconds{{{labels}"{name}"}}', f"{first}x120"),
                   (f'{PREFIX}interval_seconds{{{labels}"{name}"}}', "86400x120")]  # fmt: skip
    series += [(f'{RESULT}{{{labels}"{name}",{RESULT}="{result}"}}', values)
               for name, result, values in (
                   ("late", "failed", "0x30 1x90"), ("late", "incomplete", "0x120"), ("late", "complete", "1x30 0x90"),
                   ("slow", "failed", "0x120"), ("slow", "incomplete", "0x30 1x20 0x70"))]  # fmt: skip
    series.append(("webarc_agent_up", "1x30 0x90"))
    series.append(('webarc_backup_last_success_timestamp_seconds{archive="/srv/webarc"}', "0x300"))
    lines = [
        "rule_files: [prometheus-rules.yml]",
        "evaluation_interval: 1h",
        "tests:",
        "- interval: 1h",
        "  input_series:",
    ]
    lines += [f"  - series: '{name}'\n    values: '{values}'" for name, values in series]
    lines += ["  alert_rule_test:"]
    alerts = [("47h", "WebarcNoSuccess", []), ("52h", "WebarcNoSuccess", ["in-time", "late", "never"]),
              ("107h", "WebarcNoSuccess", ["late", "never"]),
              ("111h", "WebarcNoSuccess", ["in-time", "late", "never", "slow"])]  # fmt: skip
    for at, alert, names in alerts:
        lines.append(f"  - eval_time: {at}\n    alertname: {alert}\n    exp_alerts: {'[]' if not names else ''}")
        for name in names:
            texts = {
                "summary": f"{name} was not crawled completely for two intervals",
                "description": "webarc-agent status --archive /srv/webarc says why.",
            }
            own = {"archive": "/srv/webarc", "publication": name}
            lines.append(f"    - exp_labels: {json.dumps(own)}\n      exp_annotations: {json.dumps(texts)}")
    for at, alert, names in (("1h", "WebarcFailed", []), ("33h", "WebarcFailed", ["late"]),
                             ("1h", "WebarcIncomplete", []), ("33h", "WebarcIncomplete", ["slow"]),
                             ("52h", "WebarcIncomplete", [])):  # fmt: skip
        lines.append(f"  - eval_time: {at}\n    alertname: {alert}\n    exp_alerts: {'[]' if not names else ''}")
        for name in names:
            texts = {"summary": f"A crawl of {name} failed"}
            if alert == "WebarcIncomplete":
                texts = {"summary": f"The newest crawl of {name} is incomplete",
                         "description": "webarc-agent status --archive /srv/webarc says why."}  # fmt: skip
            own = {"archive": "/srv/webarc", "publication": name, RESULT: alert.removeprefix("Webarc").lower()}
            lines.append(f"    - exp_labels: {json.dumps(own)}\n      exp_annotations: {json.dumps(texts)}")
    lines += ["  - eval_time: 29h\n    alertname: WebarcAgentDown\n    exp_alerts: []"]
    lines += ["  - eval_time: 33h\n    alertname: WebarcAgentDown\n    exp_alerts:\n    - exp_annotations:"
              " {summary: 'The agent of an archive does not run'}"]  # fmt: skip
    (tmp_path / "test.yml").write_text("\n".join(lines) + "\n")
    _promtool("test", "rules", tmp_path / "test.yml")


def test_an_old_backup_is_alerted_whether_the_settings_have_its_folder_or_not(tmp_path: Path) -> None:
    """Where the settings have a folder, a backup by hand to another one does not count."""
    shutil.copy(ROOT / "examples/prometheus-rules.yml", tmp_path)
    week, labels = 7 * 24 * 3600, '{archive="/srv/%s"}'
    own, last = "webarc_backup_last_success_timestamp_seconds", "webarc_backup_any_last_success_timestamp_seconds"
    series = {
        own + labels % "folder-old": "0x400", last + labels % "folder-old": f"{week}x400",
        own + labels % "folder-new": f"{week}x400", last + labels % "folder-new": f"{week}x400",
        last + labels % "hand-old": "0x400", last + labels % "hand-new": f"{week}x400",
    }  # fmt: skip
    none = [{"exp_annotations": {"summary": "No archive says when its last backup was"}}]
    names = ("folder-new", "folder-old", "hand-new", "hand-old")
    old = {
        name: {
            "exp_labels": {"archive": f"/srv/{name}"},
            "exp_annotations": {"summary": f"The backup of /srv/{name} is more than a week old, or there is none"},
        }
        for name in names
    }
    checks = [
        (series, {"168h": [], "171h": [old["folder-old"], old["hand-old"]], "339h": list(old.values())}),
        ({"webarc_agent_up": "1x400"}, {"0h": [], "3h": none}),
    ]
    tests = [
        {
            "interval": "1h",
            "input_series": [{"series": name, "values": values} for name, values in known.items()],
            "alert_rule_test": [
                {"eval_time": at, "alertname": "WebarcBackupOld", "exp_alerts": alerts} for at, alerts in times.items()
            ],
        }
        for known, times in checks
    ]
    known = {"rule_files": ["prometheus-rules.yml"], "evaluation_interval": "1h", "tests": tests}
    (tmp_path / "test.yml").write_text(json.dumps(known))
    _promtool("test", "rules", tmp_path / "test.yml")


def test_the_plugin_has_the_codes_that_nagios_takes(archive: Archive, tmp_path: Path) -> None:
    """0 is well, 1 a warning, 2 critical, 3 unknown; the first line says what it is."""

    def check(*words: str) -> tuple[int, str]:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": programs, "XDG_CONFIG_HOME": str(tmp_path)}
        done = subprocess.run(
            [ROOT / "examples/check_webarc", *words], env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.partition("\n")[0]

    root = str(archive.root)
    assert check(root) == (0, "ok")
    job = archive.jobs / "20261105T010000-town"
    job.mkdir()
    _save(job, JobState(job=job.name, publication="town", state=Phase.INTERRUPTED, held="paused"))
    assert check(root) == (1, f"warning  {job.name}: waits for an order: paused")
    _save(job, JobState(job=job.name, publication="town", state=Phase.FAILED, reason="no space"))
    assert check(root) == (2, f"FAULT    {job.name}: failed: no space")
    (tmp_path / "webarc").mkdir()
    (tmp_path / "webarc" / "archives.toml").write_text("no TOML\n")
    code, line = check("town")
    assert code == 3 and "not TOML" in line


def test_the_readme_shows_what_the_examples_have() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for line in (ROOT / "examples/prometheus-rules.yml").read_text("utf-8").splitlines()[5:10]:
        assert line.strip() in readme, line


# -- the listener ------------------------------------------------------------------------------------------------------


@contextmanager
def _listening(
    where: str = "127.0.0.1:0", body: bytes = b"x 1\n", page: Callable[[MetricForm], bytes] | None = None
) -> Iterator[MetricsListener]:
    listener = MetricsListener(address(where), page or (lambda _: body), lambda: True)
    listener.start()
    try:
        yield listener
    finally:
        listener.close()


def _asked(listener: MetricsListener, path: str = "/metrics", **headers: str) -> tuple[int, str, bytes]:
    assert isinstance(listener.address, TcpAddress)
    return _get(listener.address.port, path, headers)


def _get(port: int, path: str, headers: Mapping[str, str] = {}, method: str = "GET") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()
    finally:
        connection.close()


def test_the_listener_answers_what_it_has_and_nothing_else() -> None:
    """S-monitor-3."""
    with _listening() as listener:
        assert isinstance(listener.address, TcpAddress)
        port = listener.address.port
        assert _asked(listener)[1] == MetricForm.PROMETHEUS.content_type
        assert _asked(listener, Accept="application/openmetrics-text")[1] == MetricForm.OPEN_METRICS.content_type
        assert _asked(listener, "/metrics?x=1")[0] == 200
        assert _asked(listener, "/healthz") == (200, "text/plain; charset=utf-8", b"ok\n")
        assert _asked(listener, "/")[0] == 200
        assert [_asked(listener, path)[0] for path in ("/x", "/metrics/", "/../etc/passwd")] == [404] * 3
        assert _get(port, "/metrics", method="POST")[0] == 405
        assert _get(port, "/metrics", method="HEAD") == (200, MetricForm.PROMETHEUS.content_type, b"")
        assert _asked(listener, Host="localhost:9464")[0] == 200
        assert _asked(listener, Host="[::1]:9464")[0] == 200
        assert _asked(listener, Host="rebound.example")[0] == 421, "another site's name leads here"
        for sent in (b"\x16\x03\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000 + b"\r\n\r\n"):
            answer = b""
            # A connection that is closed before all was read is reset, whenever the client comes to know it.
            with socket.create_connection(("127.0.0.1", port), timeout=60) as client, contextlib.suppress(OSError):
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                answer = client.recv(100)
            assert answer[:10] in (b"", b"HTTP/1.1 4")
        assert _asked(listener)[2] == b"x 1\n"


@pytest.mark.parametrize("sent", [b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /metr", b""])
def test_clients_that_read_or_send_nothing_hold_nobody_up(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """S-monitor-3. As many as there is room for at a time keep others waiting no longer than until they are cut off."""
    monkeypatch.setattr(metrics_listener, "WRITE_SECONDS", 0.5)
    monkeypatch.setattr(metrics_listener, "HEAD_SECONDS", 0.5)
    with _listening(body=b"y" * (64 << 20)) as listener:
        assert isinstance(listener.address, TcpAddress)
        where = ("127.0.0.1", listener.address.port)
        deaf = [socket.create_connection(where, timeout=60) for _ in range(metrics_listener.CONNECTIONS)]
        try:
            for client in deaf:
                with contextlib.suppress(OSError):  # on a busy machine it is cut off by now
                    client.sendall(sent)
            until(lambda: _is_answered(listener), "it answers again")
        finally:
            for client in deaf:
                client.close()


def _is_answered(listener: MetricsListener) -> bool:
    try:
        return _asked(listener, "/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_a_failure_is_503_and_the_next_scrape_is_answered() -> None:
    pages: list[bytes | Exception] = [b"x 0\n", OSError("no disk"), b"x 1\n"]  # the first one is read when it starts

    def make_page(_: MetricForm) -> bytes:
        page = pages.pop(0)
        if isinstance(page, Exception):
            raise page
        return page

    listener = MetricsListener(address("127.0.0.1:0"), make_page, lambda: False)
    listener.start()
    try:
        assert _asked(listener)[0] == 503
        assert _asked(listener)[0] == 200
        assert _asked(listener, "/healthz") == (503, "text/plain; charset=utf-8", b"not ok\n")
    finally:
        listener.close()


def test_a_unix_socket_is_answered_and_removed(tmp_path: Path) -> None:
    with _listening(f"unix:{tmp_path}/m") as listener:
        assert isinstance(listener.address, UnixAddress)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(listener.address.path))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.makefile("rb").read().endswith(b"\r\n\r\nx 1\n")
    assert not (tmp_path / "m").exists()


# -- the agent ---------------------------------------------------------------------------------------------------------


def _port_of(running: RunningAgent) -> int:
    """Where an agent has said last that its figures are; 0 before."""
    ports = re.findall(r"metrics are at http://127\.0\.0\.1:(\d+)/", running.said.read_text())
    return int(ports[-1]) if ports else 0


def _up(port: int) -> float:
    try:
        return _values(_get(port, "/metrics", {"Accept": "application/openmetrics-text"})[2])["webarc_agent_up",]
    except OSError:
        return -1


def test_the_agent_answers_where_its_settings_say_also_while_they_are_reloaded(archive: Archive) -> None:
    def settings(listen: str, publications: int) -> None:
        configure(
            archive,
            *({"name": f"p{number}", "urls": ["http://a.invalid/"], "retired": True} for number in range(publications)),
            more=f"[metrics]\nlisten = {listen}\n",
        )

    settings("0", 1)
    with agent(archive) as running:
        first = until(lambda: _port_of(running), "it says where it answers")
        until(lambda: _up(first) == 1, "it answers")
        assert _get(first, "/healthz")[0] == 200
        stop = threading.Event()

        def scrape() -> int:
            """Scrape until it is stopped. Any scrape that fails is an error."""
            number = 0
            while True:
                number += 1
                status, _, page = _get(first, "/metrics", {"Accept": "application/openmetrics-text"})
                assert status == 200 and ("webarc_agent_up",) in _values(page)
                if stop.is_set():
                    return number

        with ThreadPoolExecutor(1) as other:
            scraping = other.submit(scrape)
            try:
                for number in range(2, 12):
                    settings("0", number)
                    running.signal(signal.SIGHUP)
                    until(partial(_counts, first, number), "it is reloaded")
            finally:
                stop.set()
            assert scraping.result() > 1
        settings('"127.0.0.1:0"', 1)
        second = until(lambda: (port := _port_of(running)) != first and port, "it says where it answers now")
        until(lambda: _up(second) == 1, "it answers at the new address")
        assert _up(first) == -1
        configure(archive, depth="x")
        until(lambda: _values(_page(second))["webarc_settings_faults",] == 1, "the fault is counted")
    assert _up(second) == -1


def _counts(port: int, publications: int) -> bool:
    return _values(_page(port), "state")["webarc_publications", "retired"] == publications


def _page(port: int) -> bytes:
    return _get(port, "/metrics", {"Accept": "application/openmetrics-text"})[2]


def test_an_address_in_use_costs_the_agent_nothing_and_is_said(archive: Archive) -> None:
    configure(archive)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with agent(archive, "--metrics-listen", str(port)) as running:
            until(lambda: "address in use" in running.said.read_text(), "it is said")
            assert running.process.poll() is None


def test_figures_are_printed_written_and_served_without_an_agent(archive: Archive, tmp_path: Path) -> None:
    configure(archive, {"name": "town", "urls": ["http://a.example/"]})
    printed = run_command("metrics", "--archive", archive.root, "--format", "openmetrics")
    assert printed.code == 0
    assert _values(printed.out.encode())["webarc_agent_up",] == 0
    target = tmp_path / "town.prom"
    for _ in range(2):
        assert run_command("metrics", "--archive", archive.root, "--to", target).code == 0
    assert "webarc_publication_interval_seconds{" in target.read_text()
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == ["town.prom"]
    assert run_command("metrics", "--archive", archive.root, "--to", target, "--listen", "0").code == 1
    process = crawls.start_command("metrics", "--archive", archive.root, "--listen", "0")
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2].partition("/")[0])
        assert _up(port) == 0
        assert _get(port, "/healthz")[0] == 503
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        crawls.end(process)


# -- status --check ----------------------------------------------------------------------------------------------------


def _check(archive: Archive) -> tuple[int, str]:
    done = run_command("status", "--check", "--archive", archive.root)
    return done.code, done.out


def test_status_check_exits_by_what_is_wrong(archive: Archive) -> None:
    """0: all is well; 2: something is not archived; 3: something wants a look."""
    assert _check(archive) == (0, "ok\n")
    configure(archive, {"name": "town", "urls": ["http://a.example/"], "start": "2099-01-01T00:00:00"})
    assert _check(archive) == (2, "FAULT    no agent runs\n")
    with agent(archive):
        assert _check(archive) == (0, "ok\n")
        name = fake_report(archive, "town", 60)
        files.write_json(archive.reports / name / "summary.json", {"complete": False})
        assert _check(archive) == (3, f"warning  town: its newest crawl {name} is incomplete\n")
        archive.settings.write_text("[crawl]\ndepth = 'x'\n")
        code, out = _check(archive)
        assert (code, "crawl.depth" in out) == (2, True)
        done = run_command("status", "--check", "--archive", archive.root, "--format", "json")
        assert (done.code, json.loads(done.out)["ok"]) == (2, False)
    assert _check(Archive(archive.root / "none"))[0] == 2


def test_an_overdue_publication_and_a_failed_job_are_faults() -> None:
    at = parse_time("2026-11-05T00:00:00")
    town = {"name": "town", "interval": "1 day", "jobs": [], "last": None}
    summary = {"agent": {"pid": 1}, "damage_met": None, "settings_faults": [], "refused": [], "jobs": []}

    def texts(next_: str, **more: object) -> list[str]:
        publication = {**town, "next": next_, **more}
        return [problem.text for problem in problems({**summary, "publications": [publication]}, at)]

    assert texts("2026-11-04T00:00:01") == []
    assert texts("2026-11-03T23:59:59") == ["town: due since 2026-11-03T23:59:59, longer than its interval"]
    assert texts("2026-11-03T23:59:59", jobs=["x"]) == []
    jobs = [
        {"job": "b", "state": "interrupted", "held": "paused", "reason": ""},
        {"job": "a", "state": "failed", "held": "", "reason": "disk full"},
    ]
    found = problems({**summary, "publications": [], "jobs": jobs}, at)
    assert [(problem.text, problem.is_grave) for problem in found] == [
        ("a: failed: disk full", True),
        ("b: waits for an order: paused", False),
    ]
