-- A page of the versions of URLs whose keys are :surt or more and less than :high, by key and time, behind the row that
-- the other values name.
SELECT document.url, document.path, document.surt, version.seq_from, version.seq_until, version.stored, version.captureTime,
       version.status, version.mimeType, version.title, lower(hex(version.blob)), lower(hex(version.head)), version.size,
       version.digest, '' AS target, coalesce(snapshot.publication, ''),
       version.resource
  FROM document
  JOIN version ON version.document = document.id
  LEFT JOIN snapshot ON snapshot.domain = version.domain AND snapshot.seq = version.stored
 WHERE document.surt >= :surt AND document.surt < :high
   AND (document.surt, document.path, document.url, version.seq_from) > (:surt, :path, :url, :first)
 ORDER BY document.surt, document.path, document.url, version.seq_from
 LIMIT :limit;
