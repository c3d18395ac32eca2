-- A part of the records of :publication that readers may see, newest first.
SELECT s.id FROM record AS s
 WHERE s.shown = 1 AND s.publication = :publication
 ORDER BY s.date DESC, s.number DESC
 LIMIT :limit OFFSET :offset;
