-- A page of the versions of all documents of :domain, by path and time, behind :path and :first.
SELECT document.path, document.url, version.captureTime, lower(hex(version.blob)), version.seq_from, version.seq_until,
       version.stored
  FROM domain
  JOIN document ON document.domain = domain.id
  JOIN version  ON version.document = document.id
 WHERE domain.name = :domain AND document.path >= :path
   AND (document.path, version.seq_from) > (:path, :first)
 ORDER BY document.path, version.seq_from
 LIMIT :limit;
