-- What crawls of :domain met of a block of ARCs (:kind is 0) or redirects (1), in the order of the snapshots.
SELECT met.seq, met.base, met.times
  FROM domain
  JOIN met ON met.domain = domain.id
 WHERE domain.name = :domain AND met.kind = :kind AND met.block = :block
 ORDER BY met.seq;
