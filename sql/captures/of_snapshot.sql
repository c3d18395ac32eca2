-- A page of the versions in the snapshot :seq of :domain, by path, behind :path.
SELECT document.url, document.path, document.surt, version.seq_from, version.seq_until, version.stored, version.captureTime,
       version.status, version.mimeType, version.title, lower(hex(version.blob)), lower(hex(version.head)), version.size,
       version.digest, '' AS target, coalesce(snapshot.publication, ''),
       version.resource
  FROM domain
  JOIN document ON document.domain = domain.id
  JOIN version  ON version.document = document.id
  LEFT JOIN snapshot ON snapshot.domain = version.domain AND snapshot.seq = version.stored
 WHERE domain.name = :domain AND document.path > :path AND version.seq_from <= :seq AND version.seq_until > :seq
 ORDER BY document.path
 LIMIT :limit;
