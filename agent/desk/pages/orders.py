"""Orders to open jobs, from the page of what runs: each is on the disk before the page answers."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from agent.acts import ordering
from agent.desk.look import words
from agent.desk.shared.visit import DeskVisit
from agent.jobfolder import orders
from agent.jobfolder.orders import Word
from agent.service import agentlock
from webarcfs.archive.model.errors import Busy, UsageError

#: Seconds that a page waits for a job to take an order.
_SOON = 2.5
_DONE = {
    Word.PAUSE: words.msgid("It is paused."), Word.RESUME: words.msgid("It goes on."),
    Word.STOP: words.msgid("It fetches nothing more, and publishes what there is."),
    Word.DISCARD: words.msgid("It ends without publishing."), Word.DEADLINE: words.msgid("Its time is set."),
    Word.EXCLUDE: words.msgid("The server is left out."),
}  # fmt: skip


def give(visit: DeskVisit, said: Mapping[str, str]) -> Response:
    """Give an order. Raises UsageError for one that makes no sense, Busy if another came meanwhile, NotFound."""
    folder = ordering.find(visit.desk.archive, said["job"])
    word = visit.form.one("word")
    if visit.form.token.state != str(orders.last(folder)):
        late = words.msgid("Somebody gave this job an order meanwhile. Nothing was done; this is how it is now.")
        raise Busy(visit.desk.said(late, visit.language))
    if word == Word.DISCARD and visit.form.one("sure") != "yes":
        sure = words.msgid("What a discarded job fetched is lost. Tick that you want this.")
        raise UsageError(visit.desk.said(sure, visit.language))
    values = (visit.form.one(word),) if word in (Word.DEADLINE, Word.EXCLUDE) else ()
    is_run = ordering.state_of(folder).runs
    order = ordering.give(folder, word, values, visit.acting.name, visit.form.one("reason"))
    if not is_run and agentlock.running(visit.desk.archive) is None:
        return visit.led(
            "/running", words.msgid("The order was given; nobody runs the job, and it takes it when it goes on.")
        )
    taken = ordering.is_taken(folder, order, _SOON)
    if taken.startswith("given"):
        return visit.led("/running", words.msgid("The order was given; the job takes it as soon as it can."))
    return visit.led("/running", _DONE[order.word])
