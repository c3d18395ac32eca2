"""Logs in `log/` are rotated by size, by whichever process comes first, and lose no line."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from webarcfs.archive.system.rotating_log import RotatingLog, rotate

pytestmark = pytest.mark.store

_WRITER = """
import logging, sys
from pathlib import Path
from webarcfs.archive.system.rotating_log import RotatingLog
log = logging.getLogger("writer")
log.addHandler(RotatingLog(Path(sys.argv[1]), 20_000, 50))
for number in range(500):
    log.warning("line %s of %s, %s", number, sys.argv[2], "x" * 50)
"""


def _logger(path: Path, largest: int, kept: int) -> logging.Logger:
    logger = logging.Logger("test")
    logger.addHandler(RotatingLog(path, largest, kept))
    return logger


def test_a_log_is_moved_aside_when_it_is_large_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    logger = _logger(path, largest=1000, kept=2)
    for number in range(100):
        logger.warning("number %03d %s", number, "." * 60)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["agent.log", "agent.log.1", "agent.log.2"]
    texts = [(tmp_path / name).read_text("utf-8") for name in ("agent.log.2", "agent.log.1", "agent.log")]
    numbers = [int(line.split("number ")[1][:3]) for text in texts for line in text.splitlines()]
    assert numbers == list(range(numbers[0], 100)), "no line is lost between them"
    assert all(len(text) < 1200 for text in texts)


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    assert not rotate(path)
    path.write_text("small\n", "utf-8")
    assert not rotate(path)
    assert path.read_text("utf-8") == "small\n"


def test_several_processes_write_one_log_and_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, path, str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) > 3
    lines = [line for each in tmp_path.iterdir() for line in each.read_text("utf-8").splitlines()]
    said = {tuple(line.split("line ")[1].split(",")[0].split(" of ")) for line in lines}
    assert len(lines) == 1500
    assert said == {(str(number), str(writer)) for number in range(500) for writer in range(3)}
