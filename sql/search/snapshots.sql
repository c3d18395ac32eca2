-- The snapshots of all domains, or of one, oldest first.
SELECT domain.name, snapshot.seq, snapshot.commitTag, snapshot.publication
  FROM snapshot
  JOIN domain ON domain.id = snapshot.domain
 WHERE :domain IS NULL OR domain.name = :domain
 ORDER BY domain.name, snapshot.seq
