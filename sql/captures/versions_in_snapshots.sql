-- What snapshots have at places: of each place of :places (number, path, second path, snapshot) the version there.
-- Of a document the last version that began by then is looked at alone, however many it has.
SELECT wanted.value ->> 0, document.url, document.path, document.surt, version.seq_from, version.seq_until, version.stored,
       version.captureTime, version.status, version.mimeType, version.title, lower(hex(version.blob)),
       lower(hex(version.head)), version.size, version.digest, '' AS target, coalesce(snapshot.publication, ''),
       version.resource
  FROM json_each(:places) AS wanted
  JOIN document ON document.path IN (wanted.value ->> 1, wanted.value ->> 2)
  JOIN version ON version.document = document.id AND version.seq_from = (
       SELECT max(began.seq_from) FROM version AS began
        WHERE began.document = document.id AND began.seq_from <= wanted.value ->> 3)
  LEFT JOIN snapshot ON snapshot.domain = version.domain AND snapshot.seq = version.stored
 WHERE version.seq_until > wanted.value ->> 3
 ORDER BY document.url;
