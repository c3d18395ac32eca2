-- An existing snapshot stays unchanged.
INSERT INTO snapshot (domain, seq, crawlTime, commitTag, sequence, publication, complete)
SELECT :domain, :seq, :crawlTime, :commitTag, :sequence, :publication, :complete
 WHERE NOT EXISTS (SELECT 1 FROM snapshot WHERE commitTag = :commitTag);
