"""What a run of wget says of its server: whether, and for how long, it asked to be left alone.

Looked for while wget runs, so that a server that says "not now" is not asked for the rest of the batch; and once it has
ended, before the server's lock is let go, so that no other job comes in between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent.policy.politeness import asks_for_pause, pause

# An answer in the log of a wget with --server-response: its status, its fields, and all until the next attempt.
_ANSWER = re.compile(rb"awaiting response\.\.\. \n  HTTP/\S+ (\d{3})[^\n]*\n((?:  [^\n]*\n)*)")
_RETRY_AFTER = re.compile(rb"^  retry-after:\s*([^\n]*?)\s*$", re.IGNORECASE | re.MULTILINE)
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a log was judged and how long it was; how often in a row its server has asked for a pause, and for how
    many seconds now. `seconds` is None where its last answer asked for none.
    """

    position: int = 0
    size: int = 0
    in_a_row: int = 0
    seconds: float | None = None


def look(log: Path, seen: Seen, wait: float, now: float, *, ended: bool = False) -> Seen:
    """What a log says behind what was seen of it; `ended` if its wget has.

    wget holds back the line that ends an answer which is an error until it says more; so the last answer counts once
    the log did not grow from one look to the next.
    """
    try:
        with log.open("rb") as file:
            file.seek(seen.position)
            text = file.read(_MOST)
    except FileNotFoundError:
        return seen
    position, in_a_row, seconds = seen.position, seen.in_a_row, seen.seconds
    size = position + len(text)
    found = list(_ANSWER.finditer(text))
    for answer in found:
        if answer is found[-1] and size != seen.size and not ended:
            break  # it may still be on its way
        seconds, in_a_row = _judge(int(answer[1]), answer[2], in_a_row, wait, now)
        position = seen.position + answer.end()
    return Seen(position, size, in_a_row, seconds)


def _judge(status: int, fields: bytes, in_a_row: int, wait: float, now: float) -> tuple[float | None, int]:
    field = _RETRY_AFTER.search(fields)
    value = field[1].decode("latin-1") if field else ""
    if asks_for_pause(status, value, now):
        return pause(value, in_a_row, wait, now), in_a_row + 1
    return None, in_a_row if status >= 500 else 0
