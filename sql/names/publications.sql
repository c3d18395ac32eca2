-- The publications of snapshots whose names are from :low up to :high, in order.
SELECT DISTINCT publication FROM snapshot
 WHERE publication >= :low AND publication < :high
 ORDER BY publication
 LIMIT :limit;
