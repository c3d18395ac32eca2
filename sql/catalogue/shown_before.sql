-- The record of :publication next before another one that readers may see; of those that are open by the time :open alone.
SELECT r.id, r.number, r.publication, r.state, r.closedFor, r.title, r.signature, r.provenance, r.project, r.host,
       r.occasion, r.reason, r.date, r.complete, r.documents, r.bytes, r.released, r.releases, r.held
  FROM record AS r
 WHERE r.shown = 1 AND r.publication = :publication AND (r.date, r.number) < (:date, :number)
   AND r.closedUntil <= :open
 ORDER BY r.date DESC, r.number DESC
 LIMIT 1;
