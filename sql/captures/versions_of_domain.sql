-- A page of the versions of :domain, by path, document and time, behind the row that the other values name. captured is
-- in seconds since 1970: captureTime is CET, which is an hour ahead.
SELECT document.id, document.path, document.url, version.seq_from, version.seq_until, version.stored,
       CAST(strftime('%s', version.captureTime) AS INTEGER) - 3600 AS captured, version.status, version.mimeType,
       version.title, lower(hex(version.blob)), lower(hex(version.head)), version.size, lower(hex(version.digest)),
       '' AS target, version.resource
  FROM document
 CROSS JOIN version ON version.document = document.id
 WHERE document.domain = (SELECT id FROM domain WHERE name = :domain)
   AND (document.path, document.id, version.seq_from) > (:path, :number, :first)
 ORDER BY document.path, document.id, version.seq_from
 LIMIT :limit;
