-- The documents in the newest state of a domain.
SELECT document.path AS path, document.url AS url, version.mimeType AS mimeType, version.title AS title,
       version.createTime AS createTime, version.captureTime AS captureTime, CAST(version.status AS TEXT) AS status
  FROM domain
  JOIN version  ON version.domain = domain.id AND version.seq_until = 9223372036854775807
  JOIN document ON document.id = version.document
 WHERE domain.name = :name;
