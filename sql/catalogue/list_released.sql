-- A part of the records that are open to readers by the time :open, those released last first.
SELECT r.id, r.number, r.publication, r.state, r.closedFor, r.title, r.signature, r.provenance, r.project, r.host,
       r.occasion, r.reason, r.date, r.complete, r.documents, r.bytes, r.released, r.releases, r.held
  FROM record AS r
 WHERE r.rowid IN (
  SELECT s.rowid FROM record AS s
   WHERE s.shown = 1 AND s.closedUntil <= :open
   ORDER BY s.released DESC, s.number DESC
   LIMIT :limit OFFSET :offset)
 ORDER BY r.released DESC, r.number DESC;
