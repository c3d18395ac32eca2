"""The last states of provisional files: what a log of them comes to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.model.addition import AddFile, AddNodes, ArcVersion, Move, Removal
from webarcfs.archive.model.name_rules import is_lock

#: A provisional file: the ARC, and the path in it.
FileKey = tuple[ArcVersion, str]


def last_states(records: Iterable[LogRecord]) -> list[LogRecord]:
    """Return for each file that is left its last state, under its last name, in the order of their numbers.

    Locks are left out: nobody keeps them.
    """
    states: dict[FileKey, LogRecord] = {}
    for record in records:
        addition = record.addition
        match addition:
            case AddFile():
                # Git has none of the states before.
                states[addition.place, addition.path] = replace(record, addition=replace(addition, replaces=""))
            case Move():
                moved = states.pop((addition.place, addition.old), None)
                if moved is not None:
                    states[addition.place, addition.new] = renamed(moved, addition.new)
            case Removal():
                states.pop((addition.place, addition.path), None)
            case AddNodes():
                pass  # a document is never provisional
    kept = (record for (_, path), record in states.items() if not is_lock(path))
    return sorted(kept, key=lambda record: record.number)


def renamed(record: LogRecord, path: str) -> LogRecord:
    """Return the record of a file under another name."""
    assert isinstance(record.addition, AddFile)
    return replace(record, addition=replace(record.addition, path=path))
