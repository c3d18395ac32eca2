-- A snapshot that is there already stays as it is.
INSERT INTO snapshot (domain, seq, crawlTime, commitTag)
SELECT :domain, :seq, :crawlTime, :commitTag
 WHERE NOT EXISTS (SELECT 1 FROM snapshot WHERE commitTag = :commitTag);
