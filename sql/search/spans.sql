-- The spans of all versions of what is at a path.
SELECT version.seq_from, version.seq_until, version.blob, version.stored, version.captureTime, document.url
  FROM document
  JOIN version ON version.document = document.id
 WHERE document.path = :path
 ORDER BY version.seq_from
