-- The view `metadata` for a reader: documents of the snapshots that the reader may see, in versions that some snapshot
-- contains that the reader may see. Where the reader may not see the snapshot that stored a version, its time of capture is
-- that of the first one that the reader may see. Functions: saw (a snapshot whose publication saw less than the whole tree contains a
-- version), permitted (no rule takes a capture of a URL away), named (a rule allows it to the reader by name).
-- The LIMIT of barrier.sql, which is none, keeps SQLite from moving terms of the reader's condition into the view (its query flattener and its
-- push-down leave such a subquery alone): so no term of theirs is ever evaluated for a row that is hidden, where an error or a delay
-- would tell what is in it.
CREATE TEMP VIEW metadata AS
SELECT document.url         AS url,
       version.mimeType     AS mimeType,
       version.title        AS title,
       document.path        AS path,
       domain.name          AS domain,
       snapshot.crawlTime   AS crawlTime,
       version.createTime   AS createTime,
       snapshot.commitTag   AS commitTag,
       CASE WHEN EXISTS (SELECT 1 FROM temp.reader_snapshot AS storing
                          WHERE storing.domain = version.domain AND storing.seq = version.stored AND NOT storing.closed)
            THEN version.captureTime
            ELSE (SELECT first.crawlTime
                    FROM temp.reader_snapshot AS shown
                    JOIN main.snapshot AS first ON first.domain = shown.domain AND first.seq = shown.seq
                   WHERE shown.domain = version.domain
                     AND shown.seq >= version.seq_from AND shown.seq < version.seq_until
                     AND (shown.seen = '' OR saw(domain.name, shown.seq, shown.publication, shown.seen, document.path,
                                                 version.blob, version.stored))
                   ORDER BY shown.seq
                   LIMIT 1)
        END                 AS captureTime,
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
 WHERE EXISTS (SELECT 1 FROM temp.reader_snapshot AS shown
                WHERE shown.domain = snapshot.domain AND shown.seq = snapshot.seq
                  AND (NOT shown.closed OR named(document.url, version.captureTime)))
   AND EXISTS (SELECT 1 FROM temp.reader_snapshot AS other
                WHERE other.domain = version.domain AND other.seq >= version.seq_from AND other.seq < version.seq_until
                  AND (NOT other.closed OR named(document.url, version.captureTime))
                  AND (other.seen = '' OR saw(domain.name, other.seq, other.publication, other.seen, document.path,
                                              version.blob, version.stored)))
   AND permitted(document.url, version.captureTime)
