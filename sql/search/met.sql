-- A page of what the crawls of some snapshots of a domain met of documents, behind a block and a snapshot.
SELECT met.block, met.seq, met.base, met.times
  FROM met
 WHERE met.domain = (SELECT id FROM domain WHERE name = :domain) AND met.kind = 0
   AND (met.block, met.seq) > (:block, :seq)
   AND met.seq IN (SELECT value FROM json_each(:seqs))
 ORDER BY met.block, met.seq
 LIMIT :limit
