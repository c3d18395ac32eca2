"""The archive as staff see it, or as readers would see it if one record were released. For one thread."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound
from webarcfs.gate.access_rules import AccessRules
from webarcfs.gate.gate import Reader, opened_to_staff
from webarcfs.gate.known_gate import DomainFacts, KnownGate
from webarcfs.gate.reader_records import KeptHead, ReaderRecords, RecordHead
from webarcfs.gate.visibility import Answer, Standing
from webarcfs.room.services import Services, Shared

#: No proxy can tell such a name: it has a character that does not print.
_STAFF = "\0staff"


class OpenedGate(KnownGate):
    """A gate with the snapshots of a record open, whatever its state; without a record, with all but discarded ones."""

    def __init__(self, archive: Archive, record: str | None) -> None:
        super().__init__(archive, Reader(f"{_STAFF} {record or ''}"))
        self._record = record
        self._opened: dict[str, tuple[DomainFacts, DomainFacts]] = {}

    def facts(self, domain: str) -> DomainFacts:
        """Return what is known of a domain, with the record's snapshots open."""
        own = super().facts(domain)
        kept = self._opened.get(domain)
        if kept is None or kept[0] is not own:
            kept = self._opened[domain] = (own, self._with_record(own))
        return kept[1]

    def _with_record(self, own: DomainFacts) -> DomainFacts:
        snapshots = [
            opened_to_staff(each)
            if self._record is None
            else replace(each, standing=Standing.OPEN, until=None)
            if own.records.get(each.seq) == self._record
            else each
            for each in own.snapshots
        ]
        return DomainFacts(snapshots, own.records)

    def rules(self) -> AccessRules:
        """Return the access rules that hold: none for staff, who mend a file with faults here."""
        return AccessRules() if self._record is None else super().rules()

    def with_rules(self, answer: Answer, url: str, captured: datetime) -> Answer:
        """Return an answer after the access rules, which a preview shows as readers would meet them."""
        return answer if self._record is None else super().with_rules(answer, url, captured)


class OpenedRecords(ReaderRecords):
    """Records one by one, as their pages need them; that record, or all of them, whatever their state."""

    def __init__(self, archive: Archive, record: str | None) -> None:
        super().__init__(archive)
        self._record = record

    def head(self, record_id: str) -> RecordHead | None:
        """Return the head of a record; None for one that a preview does not show. It reads that record alone."""
        try:
            return self.head_of_shown(record_id)
        except NotFound:
            return None

    def _judged(self, each: KeptHead) -> tuple[RecordHead | None, datetime | None]:
        if self._record in (None, each.head.id):
            return each.head, None
        return super()._judged(each)


class OpenedServices(Services):
    """The archive with one record open, or all of them."""

    def __init__(self, shared: Shared, record: str | None) -> None:
        gate = OpenedGate(shared.archive, record)
        super().__init__(shared, gate.reader, gate=gate, records=OpenedRecords(shared.archive, record))
