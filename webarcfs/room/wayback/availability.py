"""The Wayback Machine's availability API: the memento that is closest to a time, as JSON. Pure.

`/wayback/available?url=…&timestamp=…` is asked by many scripts and add-ons. Without a timestamp it is the newest
memento; without any memento the answer is 200 with none in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.wayback.cdx_question import CdxQuestion, parse_question
from webarcfs.room.wayback.cdx_row import CdxFault
from webarcfs.room.wayback.memento import nearest, uri_m
from webarcfs.room.wayback.replay_url import Modifier
from webarcfs.room.wayback.timestamps import LAST_SECOND, digits_of


def parse_availability(query: bytes) -> CdxQuestion | CdxFault:
    """Return what is asked, as a question of CDX: `url`, and `timestamp` as its `closest`."""
    urls = [each for each in query.split(b"&") if each.startswith(b"url=")]
    times = [b"closest=" + each[10:] for each in query.split(b"&") if each.startswith(b"timestamp=")]
    found = parse_question(b"&".join((*urls, *times, b"matchType=exact")))
    return CdxFault("timestamp", found.what) if isinstance(found, CdxFault) and found.parameter == "closest" else found


def availability(base: str, question: CdxQuestion, url: str, captures: Iterable[VisibleCapture]) -> str:
    """Return the answer. `captures` are all that a reader may see of `url`, sorted by `captured`.

    `url` is what was asked for, or the same at its host with or without `www.`.
    """
    time = LAST_SECOND if question.closest is None else question.closest
    found = nearest(captures, url, time)
    closest: dict[str, str | bool] = {}
    if found is not None:
        closest |= {"status": str(found.status), "available": True, "url": uri_m(base, found, Modifier.FRAME)}
        closest |= {"timestamp": digits_of(found.captured)}
    asked = {} if question.closest is None else {"timestamp": digits_of(question.closest)}
    snapshots = {"closest": closest} if closest else {}
    return json.dumps({"url": question.url, "archived_snapshots": snapshots, **asked}) + "\n"
