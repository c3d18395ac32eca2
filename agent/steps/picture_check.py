"""Compares pictures that a browser took of pages of a crawl with what replay shows of them: a check of a crawl.

A sample of the pages that have a picture is shown by the built-in engine of replay, in which no scripts run, in a
browser without a network. Its pictures, and those of the crawl, lie in the report of the check, with what came of each
(`pictures.json`). Which pages are in the sample depends on the crawl and their URLs alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Final

from agent.crawl.server_locks import Slots
from agent.reports import missing_urls, shown_pages
from agent.steps.context import Snapshot, StepContext
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.index.database import CaptureRow
from webarcfs.archive.model.errors import BrowserUnable, CdpFailed, Damaged
from webarcfs.archive.model.picture_kinds import picture_kind

NAME: Final = "pictures.json"
#: Names of pictures in the report of a check.
_FILE: Final = re.compile(r"[0-9]{2}-(?:crawl|replay)\.(?:png|jpg|webp)")
#: Pages of a crawl that are looked at for pictures.
_MOST_LOOKED: Final = 1_000
#: Seconds that the check waits for its turn, while other jobs have the browsers of the machine.
_LONGEST_WAIT: Final = 600.0
_POLL: Final = 0.5


@dataclass(frozen=True, slots=True)
class PictureRow:
    """A page of the sample: how like its pictures are (0 to 1), and the names of their files.

    `lacks` counts the parts that the page asks for and replay does not have. `fault` says why there is no comparison;
    then the likeness is None.
    """

    url: str
    likeness: float | None
    lacks: int = 0
    crawl: str = ""
    replay: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PictureCheck:
    """What came of a sample; `why_not` says why nothing was compared, for people."""

    rows: tuple[PictureRow, ...] = ()
    why_not: str = ""

    def unlike(self, bound: float) -> list[PictureRow]:
        """Return the pages whose pictures are less like than a bound, the least first."""
        rows = [row for row in self.rows if row.likeness is not None and row.likeness < bound]
        return sorted(rows, key=lambda row: (row.likeness, row.url))


# == comparing ========================================================================================================


def compare(step: StepContext, snapshot: Snapshot, most: int, folder: Path) -> PictureCheck:
    """Compare up to `most` pages; their pictures, and what came of them, go into `folder`.

    Raises Interrupted, OSError.
    """
    checked = _compare_if_possible(step, snapshot, most, folder)
    text = json.dumps([asdict(row) for row in checked.rows], indent=1, ensure_ascii=False)
    (folder / NAME).write_text(f"{text}\n", "utf-8")
    return checked


def _compare_if_possible(step: StepContext, snapshot: Snapshot, most: int, folder: Path) -> PictureCheck:
    import asyncio  # noqa: PLC0415 # only this needs it, and few crawls want it

    if find_spec("starlette") is None:
        return PictureCheck(why_not="replay needs more libraries: pip install 'webarcfs[room]'")
    sample = list(islice(_with_picture(step, snapshot), most))
    if not sample:
        return PictureCheck(why_not='no page has a picture of its window; `keep_rendered` with "picture" keeps them')
    slots = Slots(step.archive.root / "lock", step.settings.browser.browsers, "browser")
    try:
        slot = _take_slot(step, slots)
        if slot is None:
            return PictureCheck(why_not="other crawls had all browsers; ask for the check again")
        try:
            return asyncio.run(_compare_sample(step, snapshot, sample, folder))
        finally:
            os.close(slot)
    finally:
        slots.leave()


def _take_slot(step: StepContext, slots: Slots) -> int | None:
    """Return the descriptor of one of the machine's slots for browsers; None if there was none for long."""
    end = time.monotonic() + _LONGEST_WAIT
    while (slot := slots.take(0)) is None and time.monotonic() < end:
        step.must_go_on()
        time.sleep(_POLL)
    return slot


def _with_picture(step: StepContext, snapshot: Snapshot) -> Iterator[CaptureRow]:
    """Yield the pages with a picture of their window, in the order of the sample."""
    stores = (Repository(step.archive.repository(part.tag.domain)) for part in step.record.parts)
    if all(store.ref(rendered_forms.REF) is None for store in stores):
        return
    shown: Sequence[str] = ()
    with suppress(Damaged):
        job = step.record.job_name
        reports = [step.archive.reports / job, *missing_urls.patches_of(step.archive, job)]
        pages = chain.from_iterable(map(shown_pages.read, reports))
        shown = list(dict.fromkeys(page.url for page in pages if page.pictures))
    rows: Iterable[CaptureRow | None]
    if shown:
        rows = map(snapshot.find, _shuffle(step.record.id, shown))
    else:
        by_url = {row.url: row for row in islice(snapshot.pages(), _MOST_LOOKED)}
        rows = (by_url[url] for url in _shuffle(step.record.id, by_url))
    for row in islice(rows, _MOST_LOOKED):
        step.must_go_on()
        picture = None if row is None else snapshot.picture_of(row)
        if row is not None and picture is not None and picture.is_of_window:
            yield row


def _shuffle(record: str, urls: Iterable[str]) -> list[str]:
    """Return URLs in an order that looks like chance, and is the same for a record each time."""
    return sorted(urls, key=lambda url: hashlib.sha256(f"{record} {url}".encode("utf-8", "replace")).digest())


async def _compare_sample(
    step: StepContext, snapshot: Snapshot, sample: Sequence[CaptureRow], folder: Path
) -> PictureCheck:
    from agent.steps.replay_answers import RecordReplay  # noqa: PLC0415 # of the extra `room`
    from agent.steps.replay_camera import ReplayCamera  # noqa: PLC0415 # only this needs it
    from webarcfs.room.replay.replay_url import Modifier, digits_of, replay_path  # noqa: PLC0415

    step.scratch.mkdir(parents=True, exist_ok=True)
    replay = RecordReplay(step.archive, step.record.id)
    camera = ReplayCamera(step.settings.browser, replay.serve, step.archive.root, step.scratch / "chromium.log")
    tags = {part.tag.domain: part.tag for part in step.record.parts}
    rows: list[PictureRow] = []
    try:
        for number, page in enumerate(sample, 1):
            step.must_go_on()
            step.progress("pictures", number - 1, len(sample))
            picture = snapshot.picture_of(page)
            if picture is None:
                continue
            live, name = f"{number:02}-crawl.{picture.ending}", f"{number:02}-replay.jpg"
            digits = digits_of(int(tags[page.path[1:].partition("/")[0]].crawl_time.timestamp()))
            target = replay_path(digits, Modifier.PAGE, page.url)
            try:
                result = await camera.compare(target, picture.content, rendered_forms.mime_type_of(live))
            except BrowserUnable as error:
                if not rows:
                    return PictureCheck(why_not=str(error))
                rows.append(PictureRow(page.url, None, fault=str(error)))
                break
            except CdpFailed as error:
                rows.append(PictureRow(page.url, None, crawl=live, fault=str(error)))
            else:
                (folder / name).write_bytes(result.replay)
                rows.append(PictureRow(page.url, round(result.likeness, 3), result.lacks, live, name))
            (folder / live).write_bytes(picture.content)
    finally:
        await camera.close()
        await replay.close()
    return PictureCheck(tuple(rows))


# == the report =======================================================================================================


def read(folder: Path) -> tuple[PictureRow, ...]:
    """Return the pages of the report of a check, the least like first; nothing where it has none, or is damaged."""
    try:
        rows = [PictureRow(**row) for row in json.loads((folder / NAME).read_text("utf-8"))]
        return tuple(sorted(rows, key=lambda row: (row.likeness is not None, row.likeness or 0.0, row.url)))
    except (OSError, ValueError, TypeError):
        return ()


def picture(folder: Path, name: str) -> tuple[bytes, str] | None:
    """Return a picture of the report of a check, and its MIME type by its first bytes; None without one."""
    if _FILE.fullmatch(name) is None:
        return None
    try:
        content = (folder / name).read_bytes()
    except OSError:
        return None
    kind = picture_kind(content)
    return (content, kind.mime_type) if kind is not None else None
