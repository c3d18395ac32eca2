-- Versions of a domain that some of the given snapshots began or ended, a page at a time: after the key of the last one.
-- robots.txt, which imports keep, is rules for programs: no search has it.
SELECT version.mimeType    AS mimeType,
       version.seq_from    AS seq_from,
       version.seq_until   AS seq_until,
       version.document    AS document,
       document.url        AS url,
       document.path       AS path,
       version.title       AS title,
       version.status      AS status,
       version.captureTime AS captureTime,
       version.blob        AS blob,
       version.head        AS head,
       version.size        AS size,
       snapshot.publication AS publication,
       version.resource    AS resource,
       version.stored      AS stored
  FROM version INDEXED BY version_by_type
 CROSS JOIN document ON document.id = version.document
  LEFT JOIN snapshot ON snapshot.domain = version.domain AND snapshot.seq = version.stored
 WHERE version.domain = (SELECT id FROM domain WHERE name = :domain)
   AND (version.mimeType, version.seq_from, version.seq_until, version.document)
       > (:mimeType, :seq_from, :seq_until, :document)
   AND document.path <> '/' || :domain || '/robots.txt'
   AND (   version.seq_from  IN (SELECT value FROM json_each(:touched))
        OR version.seq_until IN (SELECT value FROM json_each(:touched)))
 ORDER BY version.mimeType, version.seq_from, version.seq_until, version.document
 LIMIT :limit
