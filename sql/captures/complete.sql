-- The snapshots of :domain whose crawls were complete.
SELECT snapshot.seq
  FROM domain
  JOIN snapshot ON snapshot.domain = domain.id
 WHERE domain.name = :domain AND snapshot.complete = 1;
