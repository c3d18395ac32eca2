-- All of it: the view, and what the tables have beside it.
SELECT metadata.*, document.surt AS surt, lower(hex(version.blob)) AS blob, lower(hex(version.head)) AS head,
       version.size AS size, stored.commitTag AS stored
  FROM metadata
  JOIN snapshot ON snapshot.commitTag = metadata.commitTag
  JOIN document ON document.url = metadata.url AND document.path = metadata.path
  JOIN version  ON version.document = document.id
               AND version.seq_from <= snapshot.seq AND version.seq_until > snapshot.seq
  JOIN snapshot AS stored ON stored.domain = version.domain AND stored.seq = version.stored
 ORDER BY metadata.commitTag, metadata.path;
