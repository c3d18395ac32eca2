-- The newest records of each of these publications that readers may see, :most at most of each.
SELECT r.id, r.number, r.publication, r.state, r.closedFor, r.title, r.signature, r.provenance, r.project, r.host,
       r.occasion, r.reason, r.date, r.complete, r.documents, r.bytes, r.released, r.releases, r.held
  FROM record AS r
 WHERE r.rowid IN (
  SELECT s.rowid
    FROM json_each(:publications) AS p
    JOIN record AS s ON s.rowid IN (
         SELECT o.rowid FROM record AS o
          WHERE o.shown = 1 AND o.publication = p.value
          ORDER BY o.date DESC, o.number DESC
          LIMIT :most))
 ORDER BY r.publication, r.date DESC, r.number DESC;
