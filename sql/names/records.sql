-- The records whose names are from :low up to :high, newest first.
SELECT id FROM record WHERE id >= :low AND id < :high AND state <> 'discarded' ORDER BY id DESC LIMIT :limit;
