-- The version of a page directly before the snapshot :seq.
SELECT body, seq_from, seq_until, resource FROM version WHERE page = :page AND seq_from < :seq ORDER BY seq_from DESC LIMIT 1;
