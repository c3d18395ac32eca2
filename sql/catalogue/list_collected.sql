-- A part of the records of a collection that readers may see, newest first: those of its publications, and its own.
SELECT s.id FROM record AS s INDEXED BY record_shown
 WHERE s.shown = 1
   AND (s.publication IN (SELECT value FROM json_each(:publications))
        OR s.number IN (SELECT value FROM json_each(:numbers)))
 ORDER BY s.date DESC, s.number DESC
 LIMIT :limit OFFSET :offset;
