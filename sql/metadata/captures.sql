-- All that crawls stored at a path, of both schemes: documents and redirects, by the time of the capture.
SELECT document.url AS url, version.captureTime AS captureTime, version.status AS status, version.mimeType AS mimeType,
       '' AS target, version.size AS size, lower(hex(version.blob)) AS blob, snapshot.commitTag AS commitTag
  FROM document
  JOIN version  ON version.document = document.id AND version.stored = version.seq_from
  JOIN snapshot ON snapshot.domain = version.domain AND snapshot.seq = version.seq_from
 WHERE document.path = :path
 UNION ALL
SELECT redirect.url, redirect.captureTime, redirect.status, '', redirect.target, 0, '', snapshot.commitTag
  FROM redirect
  JOIN snapshot ON snapshot.domain = redirect.domain AND snapshot.seq = redirect.seq_from
 WHERE redirect.path = :path AND redirect.stored = redirect.seq_from
 ORDER BY captureTime, url, commitTag;
