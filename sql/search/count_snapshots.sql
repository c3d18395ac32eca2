-- The number of snapshots.
SELECT count(*) FROM snapshot
