-- The snapshots of :domain with their records, oldest first; of two records of one snapshot, the newer.
SELECT part.seq AS seq, part.seen AS seen, part.held AS held, record.publication AS publication,
       record.state AS state, record.closedFor AS closedFor
  FROM part
  JOIN record ON record.id = part.record
 WHERE part.domain = :domain
 ORDER BY part.seq, record.number;
