"""`/feed`: one's own address of the staff's Atom feed, and the feed: what wants a person, newest first.

Programs that read feeds cannot log in by a form. So a person has a secret address made, which is shown once, and
people.toml keeps its hash. It opens this feed alone, with what everybody sees at Today, until the person takes it back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from agent.desk import limits
from agent.desk.login import feedkeys
from agent.desk.look import words
from agent.desk.office_views import FeedPage
from agent.desk.pages import lines, today
from agent.desk.shared.visit import NO_STORE, DeskVisit
from agent.jobfolder.jobstate import Hold
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import State
from webarcfs.archive.catalogue.record_rows import RecordRow
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import now, parse_time
from webarcfs.room.pages import atom

_HELD = words.msgid("A job waits until somebody says how it goes on: %(what)s")
_WAITS = words.msgid("Waits for a release: %(what)s")
_INCOMPLETE = words.msgid("It did not get all: %(what)s")
_EMPTY = words.msgid("It got nothing: %(what)s")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that wants a person. `mark` tells it apart, as long as it lasts; `text` is a msgid with `what`.

    `command` is what helps.
    """

    mark: str
    text: str
    what: str
    href: str
    since: datetime
    command: str = ""


# -- one's own address -------------------------------------------------------------------------------------------------


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show whether there is an address, and the forms that make one and take it back."""
    return visit.page(FeedPage(bool(visit.person.feed), ""))


def change(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Make a new address, and show it this once; or take it back."""
    archive, key = visit.desk.archive, visit.person.key
    if visit.form.one("word") == "end":
        people.set_feed(archive, key, "")
        return visit.led("/feed", words.msgid("The address was taken back; it opens nothing any more."))
    secret, kept = feedkeys.made()
    people.set_feed(archive, key, kept)
    return visit.page(FeedPage(True, f"{visit.base}/feed/{secret}.atom?lang={visit.language}"))


# -- the feed ----------------------------------------------------------------------------------------------------------


def read(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Return the feed to who has an address. Raises NotFound for any other: nobody reads it by a session."""
    if not feedkeys.is_of(visit.person, said["feed"]):
        raise NotFound("there is no such page")
    base, text = visit.base, visit.desk.look_up(visit.language)
    found = sorted(_entries(visit), key=lambda each: each.since, reverse=True)[: limits.ROWS]
    title = f"{text(words.msgid('Web archive'))}: {text(words.msgid('What wants you'))}"
    feed = atom.begun(f"{base}/feed", title, found[0].since if found else visit.desk.began)
    atom.author(feed, "webarcfs")
    for each in found:
        what = f"{text(each.text).replace('%(what)s', each.what)} {each.command}".strip()
        atom.link(atom.entry(feed, f"{base}/feed#{each.mark}", what, each.since), f"{base}{each.href}", "alternate")
    return Response(atom.written(feed), headers=dict(NO_STORE), media_type=atom.KIND)


def _entries(visit: DeskVisit) -> Iterator[Entry]:
    found = today.found(visit, limits.ROWS)
    for text, rows in ((_WAITS, found.waiting), ("", found.troubled)):
        for row in rows:
            why = text or (_EMPTY if row.state is State.EMPTY else _INCOMPLETE)
            since = _changed(visit, row)
            mark = f"{row.id}/{'waits' if text else row.state}/{int(since.timestamp())}"
            yield Entry(mark, why, lines.name_of(row, visit.language), lines.href_of(row.id), since)
    for job in visit.desk.history().open:
        if job.held == Hold.DEADLINE:
            with suppress(Damaged):
                yield Entry(f"{job.job}/{job.orders}", _HELD, job.publication, "/running", parse_time(job.updated))
    amiss = {f"{each.text} {each.what}": each for each in today.attentions(visit)}
    for key, since in visit.desk.since(tuple(amiss), now()).items():
        each = amiss[key]
        mark = f"{hashlib.sha256(key.encode()).hexdigest()[:16]}/{since:%Y-%m-%d}"
        yield Entry(mark, each.text, each.what, each.href or "/", since, each.command)


def _changed(visit: DeskVisit, row: RecordRow) -> datetime:
    """Return when a snapshot came to its state."""
    with suppress(Damaged, NotFound):
        events = Catalogue(visit.desk.archive).read(row.id)[0].events
        return events[-1].at if events else row.date
    return row.date
