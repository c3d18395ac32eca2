-- A part of the records of :publication that readers may see, newest first: those that are open by the time :open alone.
SELECT r.id, r.number, r.publication, r.state, r.closedFor, r.title, r.signature, r.provenance, r.project, r.host,
       r.occasion, r.reason, r.date, r.complete, r.documents, r.bytes, r.released, r.releases, r.held
  FROM record AS r
 WHERE r.rowid IN (
  SELECT s.rowid FROM record AS s
   WHERE s.shown = 1 AND s.publication = :publication AND s.closedUntil <= :open
   ORDER BY s.date DESC, s.number DESC
   LIMIT :limit OFFSET :offset)
 ORDER BY r.date DESC, r.number DESC;
