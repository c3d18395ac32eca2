-- A page of the versions in the snapshot :seq of :domain that its crawl did not store, by path, behind :path. The number
-- is that by which the lists of what crawls met have an ARC.
SELECT document.path, version.seq_from, version.seq_until, version.stored,
       (SELECT min(other.id) FROM document AS other WHERE other.path = document.path)
  FROM domain
  JOIN document ON document.domain = domain.id
  JOIN version  ON version.document = document.id
 WHERE domain.name = :domain AND document.path > :path AND version.seq_from <= :seq AND version.seq_until > :seq
   AND (version.stored <> :seq OR version.seq_from <> :seq)
 ORDER BY document.path
 LIMIT :limit
