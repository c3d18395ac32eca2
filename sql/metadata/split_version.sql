-- A snapshot :seq is put in between: the version at this path that goes on at :next, the one behind it, becomes two.
INSERT INTO version (document, domain, seq_from, seq_until, stored, mimeType, title, createTime, captureTime, status, blob,
                     head, size)
SELECT document, domain, :next, seq_until, stored, mimeType, title, createTime, captureTime, status, blob, head, size
  FROM version
 WHERE seq_from < :seq AND seq_until > :next
   AND document IN (SELECT id FROM document WHERE path = :path);
