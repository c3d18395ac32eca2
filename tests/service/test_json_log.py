"""Logs as JSON: each line is an object, whatever names and messages have; of agent, jobs, desk, room."""

from __future__ import annotations

import http.client
import json
import logging
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import crawls, forked, readercommand
from tests.support.agents import agent, configure, reports
from tests.support.crawls import end, start_command
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.system.json_log import LONGEST, JsonFormatter, json_line, timestamp
from webarcfs.web.access_log import AnsweredRequest, as_object

archive = crawls.archive
pytestmark = pytest.mark.store

#: Any characters, lone surrogates among them.
TEXTS = st.text(st.characters(), max_size=60)
JOB = "20261101T010000-town"


def _record(message: str, *arguments: object, **more: object) -> logging.LogRecord:
    record = logging.LogRecord("webarc", logging.WARNING, "x.py", 1, message, arguments, None)
    record.__dict__.update(more)
    return record


@given(TEXTS)
def test_a_message_comes_back_and_its_line_is_one(message: str) -> None:
    """S-monitor-6."""
    line = JsonFormatter().format(_record("%s", message))
    assert line.isascii() and line.isprintable()
    shown = json.loads(line)["message"]
    assert shown == shown.encode("utf-8").decode("utf-8")
    if message.isprintable():
        assert shown == message


def test_a_record_says_when_how_grave_and_about_which_job() -> None:
    shown = json.loads(JsonFormatter().format(_record("%s: ended with %d", JOB, 2)))
    assert (shown["level"], shown["message"]) == ("warning", f"{JOB}: ended with 2")
    assert (shown["job"], shown["publication"], shown["logger"]) == (JOB, "town", "webarc")
    assert datetime.fromisoformat(shown["time"]).tzinfo is not None
    assert json.loads(JsonFormatter().format(_record("x", job=f"{JOB}+patch")))["publication"] == "town"
    assert "job" not in json.loads(JsonFormatter().format(_record("%s", "indexer", job="indexer")))
    assert JsonFormatter({logging.WARNING: 4}).format(_record("x")).startswith("<4>{")
    assert json.loads(JsonFormatter().format(_record("%d", "no number")))["message"].startswith("%d (")
    assert len(json.loads(json_line({"message": "x" * (LONGEST + 5)}))["message"]) < LONGEST + 60


def test_a_traceback_is_a_value_of_its_line() -> None:
    try:
        raise ValueError("line\nbreak")
    except ValueError:
        record = _record("it failed")
        record.exc_info = sys.exc_info()
    assert "line\nbreak" in json.loads(JsonFormatter().format(record))["traceback"]


def test_times_are_those_of_the_machine() -> None:
    assert datetime.fromisoformat(timestamp(1793491800.25)).timestamp() == pytest.approx(1793491800.25)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_request_makes_a_line_or_leaves_a_token(target: str, agent: str, referrer: str, name: str) -> None:
    token = "s3cr3ttoken"
    access = AnsweredRequest(
        peer="192.0.2.1", at=0.0, method="GET", target=f"/~{token}/{target}", version="1.1", status=200, size=5,
        referrer=f"http://x/s/{token}/{referrer}", agent=agent, seconds=0.01, listener="room", chance=name,
    )  # fmt: skip
    line = as_object(access)
    assert line.isascii() and line.isprintable()
    assert json.loads(line)["status"] == 200
    assert token not in line


# -- the programs ------------------------------------------------------------------------------------------------------


def _objects(text: str) -> list[dict[str, Any]]:
    objects = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "message"} <= set(values) for values in objects)
    return objects


def test_the_agent_and_its_jobs_log_json(archive: Archive) -> None:
    """To agent.log and to the terminal or journal, from the first line to the last."""
    with Site() as site:
        site.add_html("/", "harbour")
        configure(archive, {"name": "town", "urls": [site.url("/")]}, {"name": "none", "urls": ["http://[::1]:9/"]},
                  private_addresses=True)  # fmt: skip
        archive.settings.write_text(f'[log]\nformat = "json"\n\n{archive.settings.read_text()}')
        with agent(archive) as running:
            until(lambda: reports(archive, "town") and reports(archive, "none"), "both have run")
            running.stop()
            said = running.said.read_text()
    for objects in (_objects(said), _objects((archive.log / "agent.log").read_text())):
        assert any(values.get("publication") == "town" for values in objects)
        assert objects[-1]["message"].endswith("has ended")


def test_an_option_says_it_for_once_and_errors_are_lines_too(archive: Archive) -> None:
    configure(archive)
    with agent(archive, "--log-format", "json") as running:
        again = crawls.run_command("start", "--archive", archive.root, "--log-format", "json")
        running.stop()
        _objects(running.said.read_text())
    assert again.code != 0
    assert "has an agent already" in _objects(again.err)[-1]["message"]
    assert crawls.run_command("start", "--archive", archive.root, "--log-format", "xml").code == 1


def _asked(port: int, target: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection._validate_path = lambda _: None  # type: ignore[attr-defined] # what clients send
    try:
        connection.request("GET", target, headers={"User-Agent": 'x"}\t{"level":"error'})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("program", ["desk", "room"])
def test_desk_and_room_log_json(archive: Archive, program: str, tmp_path: Path) -> None:
    archive.settings.write_text('[log]\nformat = "json"\n')
    log = tmp_path / "log"
    own = ("--archive", archive.root, "--listen", "127.0.0.1:0", "--access-log", log)
    if program == "desk":
        process = start_command("desk", *own)
    else:
        command = [*readercommand.COMMAND, "serve", *own, "--replay-listen", "same", "--workers", "1"]
        process = forked.Popen(command, stdout=-1, stderr=-1)
    try:
        assert process.stdout is not None
        (told,) = _objects(process.stdout.readline())
        port = int(told["message"].rpartition(":")[2])
        assert _asked(port, "/healthz") == 200
        _asked(port, '/x"%0a{"level":"error"}')
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        end(process)
    objects = _objects(log.read_text())
    assert [values["target"] for values in objects] == ["/healthz", '/x"%0a{"level":"error"}']
    assert objects[0]["status"] == 200 and {values["level"] for values in objects} == {"info"}
