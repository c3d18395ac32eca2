-- The record of :publication next before another one that readers may see; of those that are open by the time :open alone.
SELECT r.id
  FROM record AS r
 WHERE r.shown = 1 AND r.publication = :publication AND (r.date, r.number) < (:date, :number)
   AND r.closedUntil <= :open
 ORDER BY r.date DESC, r.number DESC
 LIMIT 1;
