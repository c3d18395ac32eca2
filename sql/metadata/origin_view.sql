-- The view `metadata` of schema.sql for one connection, of what comes from the domain or publication of temp.wanted; the
-- terms follow.
CREATE TEMP VIEW metadata AS
SELECT document.url         AS url,
       version.mimeType     AS mimeType,
       version.title        AS title,
       document.path        AS path,
       domain.name          AS domain,
       snapshot.crawlTime   AS crawlTime,
       version.createTime   AS createTime,
       snapshot.commitTag   AS commitTag,
       version.captureTime  AS captureTime,
       version.status       AS status,
       iif(version.resource, 'resource', 'page') AS role,
       version.certificate  AS certificate
  FROM main.snapshot
  JOIN main.domain   ON domain.id = snapshot.domain
  JOIN main.version  ON version.domain = snapshot.domain
                    AND likelihood(version.seq_from <= snapshot.seq, 0.9)
                    AND likelihood(version.seq_until > snapshot.seq, 0.9)
  JOIN main.document ON document.id = version.document
                    AND document.domain = snapshot.domain
 WHERE 1
