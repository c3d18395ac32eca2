-- The version of the document at :path in the snapshot :seq. Both schemes share a path, and one of them is there.
SELECT document.path, document.url, version.captureTime, lower(hex(version.blob)), version.seq_from, version.seq_until,
       version.stored
  FROM document
  JOIN version ON version.document = document.id
 WHERE document.path = :path AND version.seq_from <= :seq AND version.seq_until > :seq
 ORDER BY version.seq_from DESC, document.url
 LIMIT 1;
