-- The versions at :path, of both schemes, and at :second, oldest first.
SELECT document.url, document.path, document.surt, version.seq_from, version.seq_until, version.stored, version.captureTime,
       version.status, version.mimeType, version.title, lower(hex(version.blob)), lower(hex(version.head)), version.size,
       version.digest, '' AS target, coalesce(snapshot.publication, ''),
       version.resource
  FROM document
  JOIN version ON version.document = document.id
  LEFT JOIN snapshot ON snapshot.domain = version.domain AND snapshot.seq = version.stored
 WHERE document.path IN (:path, :second)
 ORDER BY version.seq_from, document.url;
