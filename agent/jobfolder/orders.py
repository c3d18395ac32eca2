"""Orders to a job: what a person asks of it while it is open, as files `orders/<number>.json` in its folder.

An order is durable before its command answers. The process of the job takes orders by their numbers, each once
(orderbook.py); where no process works on the job, they wait there. Orders that are given at the same time get numbers
of their own.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent.jobfolder.jobstate import VERSION
from agent.system import jsonfile
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.system.fsync import sync_folder

FOLDER = "orders"
_log = logging.getLogger(__name__)


class Word(StrEnum):
    """What an order asks for."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    DISCARD = "discard"
    DEADLINE = "deadline"
    EXCLUDE = "exclude"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order. `value` is the time of a deadline (`yyyy-mm-ddThh:mm:ss`, CET) or the host to exclude.

    `reason` is a line that a person gave with it; empty in orders of older versions.
    """

    number: int
    word: Word
    value: str = ""
    by: str = ""
    at: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.value}".strip()


def give(folder: Path, word: Word, value: str = "", *, by: str = "", reason: str = "") -> Order:
    """Write an order into the folder of a job, durably. Raises NotFound if the job has ended, OSError."""
    orders = folder / FOLDER
    try:
        orders.mkdir(exist_ok=True)
        sync_folder(folder)
        content = {"word": word, "value": value, "by": by, "at": format_time(now()), "reason": reason}
        order = _numbered(orders, content)
    except (FileNotFoundError, NotADirectoryError):
        raise ended(folder.name) from None
    if not (orders / f"{order.number}.json").exists():
        raise ended(folder.name)
    return order


def ended(job: str) -> NotFound:
    """Return the error of an order to a job that is not there."""
    return NotFound(f"{job} has ended already; `webarc-agent report {job}` shows what became of it")


def after(folder: Path, number: int) -> list[Order]:
    """Return the orders of a job with a greater number than this, in order. One that cannot be read is passed over."""
    found = (_read(folder / FOLDER, each) for each in sorted(_numbers(folder)) if each > number)
    return [each for each in found if each is not None]


def told(folder: Path) -> list[dict[str, Any]]:
    """Return the orders of a job as its report tells them."""
    return [
        {"number": each.number, "order": str(each.word), "value": each.value, "by": each.by, "at": each.at,
         "reason": each.reason}
        for each in after(folder, 0)
    ]  # fmt: skip


def last(folder: Path) -> int:
    """Return the number of a job's last order; 0 without one."""
    return max(_numbers(folder), default=0)


def _numbered(orders: Path, content: dict[str, Any]) -> Order:
    scratch = orders / f".{os.getpid()}"
    scratch.unlink(missing_ok=True)  # left by a dead process with the same process id
    number = last(orders.parent) + 1
    try:
        with scratch.open("xb") as file:
            file.write(json.dumps({"version": VERSION, **content}, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        while True:
            try:
                os.link(scratch, orders / f"{number}.json")  # another name, so that no order replaces another
                break
            except FileExistsError:
                number += 1
    finally:
        scratch.unlink(missing_ok=True)
    sync_folder(orders)
    return Order(number=number, **content)


def _numbers(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder / FOLDER)  # noqa: PTH208 # names alone, and often
    except (FileNotFoundError, NotADirectoryError):
        return []
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return [int(stem) for stem in stems if stem.isascii() and stem.isdecimal()]


def _read(orders: Path, number: int) -> Order | None:
    path = orders / f"{number}.json"
    try:
        content = jsonfile.read(path) or {}
        said = {name: str(content.get(name, "")) for name in ("value", "by", "at", "reason")}
        return Order(number=number, word=Word(str(content.get("word"))), **said)
    except (Damaged, ValueError) as error:
        _log.warning("%s is no order, and is passed over: %s", path, error)
        return None
