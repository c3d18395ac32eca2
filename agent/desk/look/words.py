"""What states, steps, events, roles and rights are called on pages: msgids, and the signs beside them. Pure.

A snapshot is called a snapshot here, whatever the code calls its record, job or capture.
"""

from __future__ import annotations

from webarcfs.archive.catalogue.record import State
from webarcfs.archive.catalogue.steps import Step


def msgid(text: str) -> str:
    """Return a text as it is, and mark it as one that is translated where it is shown."""
    return text


#: State → its word, and a sign that tells it apart without colour.
STATES: dict[str, tuple[str, str]] = {
    State.OPEN: (msgid("not fetched yet"), "○"),
    State.CANCELLED: (msgid("cancelled"), "⊘"),
    State.EMPTY: (msgid("empty"), "∅"),
    State.CAPTURED: (msgid("fetched"), "◔"),
    State.COUNTED: (msgid("counted"), "◑"),
    State.CONVERTED: (msgid("converted"), "◑"),
    State.INDEXED: (msgid("indexed"), "◕"),
    State.CHECKED: (msgid("checked"), "◕"),
    State.RELEASED: (msgid("released"), "●"),
    State.REJECTED: (msgid("rejected"), "✕"),
    State.DISCARDED: (msgid("discarded"), "⌫"),
}
#: Step → the words of its button.
STEPS: dict[str, str] = {
    Step.CANCEL: msgid("Cancel"),
    Step.CAPTURE: msgid("Fetch"),
    Step.COUNT: msgid("Count"),
    Step.CONVERT: msgid("Convert"),
    Step.INDEX: msgid("Index it"),
    Step.CHECK: msgid("Check"),
    Step.RELEASE: msgid("Release it"),
    Step.REJECT: msgid("Reject"),
    Step.REOPEN: msgid("Take the rejection back"),
    Step.WITHDRAW: msgid("Withdraw"),
    Step.DISCARD: msgid("Discard it for everybody"),
    Step.RESTORE: msgid("Restore it"),
    Step.BACKUP: msgid("Back up"),
    Step.MEASURE: msgid("Record a measure"),
}
#: Event of a record → its words.
EVENTS: dict[str, str] = {
    "new": msgid("entered"), "cancelled": msgid("cancelled"), "begun": msgid("fetching began"),
    "captured": msgid("fetched"),
    "counted": msgid("counted"), "converted": msgid("converted"), "indexed": msgid("indexed"),
    "checking": msgid("checks ran, somebody has to look"), "looked": msgid("looked at"),
    "checked": msgid("checked"), "released": msgid("released"), "rejected": msgid("rejected"),
    "reopened": msgid("rejection taken back"), "withdrawn": msgid("withdrawn"),
    "discarded": msgid("discarded"), "restored": msgid("restored"), "backup": msgid("backed up"),
    "measure": msgid("measure"), "edited": msgid("description changed"), "interrupted": msgid("interrupted"),
    "resumed": msgid("resumed"), "attached": msgid("file attached"), "replaced": msgid("file replaced"),
    "noted": msgid("note to a file changed"), "detached": msgid("file removed"),
}  # fmt: skip
#: Word of `release` in settings → what it means.
RELEASES: dict[str, str] = {
    "automatic": msgid("as soon as it is published"),
    "when-checked": msgid("by itself, if it is complete and all checks passed"),
    "by-hand": msgid("when somebody releases it"),
}
ROLES: dict[str, str] = {
    "archivist": msgid("archivist"), "administrator": msgid("administrator"), "reviewer": msgid("reviewer"),
    "curator": msgid("curator"),
}  # fmt: skip
#: Phase of a job, or why it is held → its words.
PHASES: dict[str, str] = {
    "waiting": msgid("waits"), "collecting": msgid("fetches"), "converting": msgid("publishes"),
    "archived": msgid("archived"), "failed": msgid("failed"), "interrupted": msgid("interrupted"),
    "paused": msgid("paused"), "deadline": msgid("its time is over"),
}  # fmt: skip
#: Order to a job → its words, which take a value behind them.
ORDERS: dict[str, str] = {
    "pause": msgid("Pause"), "resume": msgid("Go on"), "stop": msgid("Stop and publish"), "discard": msgid("Discard"),
    "deadline": msgid("May fetch until"), "exclude": msgid("Leave out a server"),
}  # fmt: skip
#: State of a URL in a job → what its number is called.
URLS: dict[str, str] = {
    "waiting": msgid("waiting"), "fetching": msgid("being asked for"), "done": msgid("done"), "failed": msgid("failed"),
    "refused": msgid("refused"),
}  # fmt: skip


def state(word: str) -> tuple[str, str]:
    """Return the words and the sign of a state."""
    return STATES.get(word, (word, "?"))
