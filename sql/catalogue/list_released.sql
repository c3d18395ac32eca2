-- A part of the records that are open to readers by the time :open, those released last first.
SELECT s.id FROM record AS s
 WHERE s.shown = 1 AND s.closedUntil <= :open
 ORDER BY s.released DESC, s.number DESC
 LIMIT :limit OFFSET :offset;
