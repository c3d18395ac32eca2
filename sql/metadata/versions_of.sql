-- The versions of all documents of :domain.
SELECT document.path, document.url, version.captureTime, lower(hex(version.blob)), version.seq_from, version.seq_until,
       version.stored
  FROM domain
  JOIN document ON document.domain = domain.id
  JOIN version  ON version.document = document.id
 WHERE domain.name = :domain;
