-- An existing snapshot stays unchanged.
INSERT INTO snapshot (domain, seq, crawlTime, commitTag)
SELECT :domain, :seq, :crawlTime, :commitTag
 WHERE NOT EXISTS (SELECT 1 FROM snapshot WHERE commitTag = :commitTag);
