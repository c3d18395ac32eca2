-- Restricts the results of from, to, word or all to the state at :seq (NULL: every version).
   AND (:seq IS NULL OR version.seq_from <= :seq AND version.seq_until > :seq)
   AND (:domain IS NULL OR domain.name = :domain)
   AND (:resource IS NULL OR version.resource = :resource)
   AND (:kind IS NULL OR reference.kind = :kind)
   AND (NOT :external OR target.domain IS NOT NULL AND target.domain <> page.domain)
   AND (:publication IS NULL OR is_stored(page.path, version.seq_from))
   AND (NOT :broken OR is_broken(target.url))
 LIMIT :limit;
