INSERT INTO version (document, domain, seq_from, seq_until, stored, mimeType, title, createTime, captureTime, status, blob,
                     head, size, digest, resource, certificate)
SELECT id, :domain, :seq, :next, :stored, :mimeType, :title, :createTime, :captureTime, :status, :blob, :head, :size,
       :digest, :resource, :certificate
  FROM document
 WHERE url = :url AND path = :path;
