-- The snapshots of discarded records.
SELECT part.domain, part.seq FROM record JOIN part ON part.record = record.id WHERE record.state = 'discarded';
