-- When crawls met the ARC at :path of :domain unchanged: its number, and the rows of its block, oldest first.
SELECT arc.id, met.seq, met.base, met.times
  FROM (SELECT min(id) AS id FROM document WHERE path = :name) AS arc
  JOIN domain ON domain.name = :domain
  JOIN met    ON met.domain = domain.id AND met.kind = 0 AND met.block = arc.id / 1024
 ORDER BY met.seq;
