"""Narrows webarc.db to a reader: a view of the connection's own takes the place of `metadata`.

The filter runs inside the query, so that counts and limits are those of what the reader may see.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index import held_versions
from webarcfs.archive.index.condition import COLUMNS
from webarcfs.archive.index.query import Narrowed
from webarcfs.archive.model.metadata import parse_time
from webarcfs.gate.access_rules import Access, AccessRule
from webarcfs.gate.gate import Gate
from webarcfs.gate.visibility import Saw, Snapshot, Standing, Version

#: Answers of the rules that are remembered.
_REMEMBERED = 65_536
#: The term of the view for a column whose value is given.
_TERMS = {
    "url": "gate/equal_url",
    "path": "gate/equal_path",
    "domain": "gate/equal_domain",
    "commitTag": "gate/equal_commitTag",
}


def narrowed(gate: Gate) -> Narrowed | None:
    """Return what narrows a query to the gate's reader; None where nothing is hidden from it.

    A question of staff is asked only of the rows that have the values which it names. A reader's is not: the work
    would tell whether a hidden row has them.

    Raises what the gate raises: SettingsError for access rules with faults, Damaged for a catalogue that is.
    """
    rules = gate.rules()
    snapshots = {domain: gate.snapshots(domain) for domain in held_versions.domains(gate.archive.database)}
    if not rules.rules and all(each.standing is Standing.OPEN for found in snapshots.values() for each in found):
        return None

    @lru_cache(maxsize=_REMEMBERED)
    def rule_of(url: str, captured: str) -> AccessRule | None:
        return rules.find(url, gate.reader.name, parse_time(captured), gate.now())

    def permitted(url: str, captured: str) -> bool:
        rule = rule_of(url, captured)
        return rule is None or rule.access is Access.ALLOW

    def named(url: str, captured: str) -> bool:
        rule = rule_of(url, captured)
        return rule is not None and rule.access is Access.ALLOW and bool(rule.user)

    sees: dict[str, Saw] = {}

    def saw(domain: str, snapshot: Snapshot, version: Version) -> bool:
        if domain not in sees:
            sees[domain] = gate.saw(domain)
        return sees[domain](snapshot, version)

    def prepare(connection: sqlite3.Connection, equal: Mapping[str, str]) -> None:
        show(connection, snapshots, saw, permitted, named)
        if gate.is_staff and equal:
            _narrow(connection, equal)

    return prepare


def show(
    connection: sqlite3.Connection,
    snapshots: Mapping[str, Sequence[Snapshot]],
    saw: Callable[[str, Snapshot, Version], bool],
    permitted: Callable[[str, str], bool],
    named: Callable[[str, str], bool],
) -> None:
    """Make the view `metadata` of a connection to webarc.db that of a reader, for as long as it is open.

    `snapshots` are those of each domain. `permitted` and `named` say of URL and time of capture whether no rule takes
    it away, and whether a rule allows it to the reader by name.
    """

    def sees(*about: Any) -> bool:
        domain, seq, publication, seen, path, blob, stored = about
        snapshot = Snapshot(seq, publication, Standing.OPEN, seen)
        return saw(domain, snapshot, Version(path, blob.hex(), seq, seq + 1, stored))

    connection.create_function("permitted", 2, permitted)
    connection.create_function("named", 2, named)
    connection.create_function("saw", 7, sees)
    connection.execute(sql("gate/snapshots"))
    for domain, found in snapshots.items():
        for each in found:
            if each.standing.is_told:
                values = {"domain": domain, "seq": each.seq, "publication": each.publication, "seen": each.seen}
                closed = int(each.standing is Standing.CLOSED)
                connection.execute(sql("gate/insert_snapshot"), values | {"closed": closed})
    connection.execute(sql("gate/view") + sql("gate/barrier"))


def _narrow(connection: sqlite3.Connection, equal: Mapping[str, str]) -> None:
    """Leave out of the view, inside the gate, rows that do not have the values of `equal`, by column."""
    connection.execute(sql("gate/wanted"))
    connection.execute(sql("gate/insert_wanted"), {column: equal.get(column) for column in COLUMNS})
    connection.execute(sql("gate/drop_view"))
    terms = (sql(_TERMS[column]) for column in equal)
    connection.execute("".join((sql("gate/view"), *terms, sql("gate/barrier"))))
