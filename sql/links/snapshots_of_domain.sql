-- The snapshots of :domain.
SELECT snapshot.seq
  FROM domain
  JOIN snapshot ON snapshot.domain = domain.id
 WHERE domain.name = :domain;
