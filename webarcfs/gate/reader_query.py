"""Narrows webarc.db to a reader: a view of the connection's own takes the place of `metadata`.

The filter runs inside the query, so that counts and limits are those of what the reader may see.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache

from webarcfs.archive.config.packaged_files import sql
from webarcfs.archive.index import held_versions
from webarcfs.archive.index.query import Narrowed
from webarcfs.archive.model.metadata import parse_time
from webarcfs.gate.access_rules import Access, AccessRule
from webarcfs.gate.gate import Gate
from webarcfs.gate.visibility import Saw, Snapshot, Standing, Version

#: Answers of the rules that are remembered.
_REMEMBERED = 65_536


def narrowed(gate: Gate) -> Narrowed | None:
    """Return what narrows a query to the gate's reader; None where nothing is hidden from it.

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

    def saw(*about: object) -> bool:
        domain, seq, publication, seen, path, blob, stored = about
        assert isinstance(domain, str) and isinstance(blob, bytes) and isinstance(seq, int) and isinstance(stored, int)
        if domain not in sees:
            sees[domain] = gate.saw(domain)
        snapshot = Snapshot(seq, str(publication), Standing.OPEN, str(seen))
        return sees[domain](snapshot, Version(str(path), blob.hex(), seq, seq + 1, stored))

    def prepare(connection: sqlite3.Connection) -> None:
        connection.create_function("permitted", 2, permitted)
        connection.create_function("named", 2, named)
        connection.create_function("saw", 7, saw)
        connection.execute(sql("gate/snapshots"))
        for domain, found in snapshots.items():
            for each in found:
                if each.standing is not Standing.HIDDEN:
                    values = {"domain": domain, "seq": each.seq, "publication": each.publication, "seen": each.seen}
                    closed = int(each.standing is Standing.CLOSED)
                    connection.execute(sql("gate/insert_snapshot"), values | {"closed": closed})
        connection.execute(sql("gate/view"))

    return prepare
