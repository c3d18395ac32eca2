-- A snapshot :seq is inserted before :next: splits the version at this path that is valid in both, so that the second
-- part begins at :next.
INSERT INTO version (document, domain, seq_from, seq_until, stored, mimeType, title, createTime, captureTime, status, blob,
                     head, size, digest)
SELECT document, domain, :next, seq_until, stored, mimeType, title, createTime, captureTime, status, blob, head, size,
       digest
  FROM version
 WHERE seq_from < :seq AND seq_until > :next
   AND document IN (SELECT id FROM document WHERE path = :path);
