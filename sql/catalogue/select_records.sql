-- The records of the snapshots of :domain, oldest first; of two records of one snapshot, the newer.
SELECT part.seq, part.record FROM part JOIN record ON record.id = part.record
 WHERE part.domain = :domain
 ORDER BY part.seq, record.number;
