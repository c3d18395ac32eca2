-- A part of the records of :publication that readers may see, newest first: those that are open by the time :open alone.
SELECT s.id FROM record AS s
 WHERE s.shown = 1 AND s.publication = :publication AND s.closedUntil <= :open
 ORDER BY s.date DESC, s.number DESC
 LIMIT :limit OFFSET :offset;
