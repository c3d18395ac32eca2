INSERT INTO snapshot (domain, seq, crawlTime, commitTag, sequence, publication, complete)
VALUES (:domain, :seq, :crawlTime, :commitTag, :sequence, :publication, :complete);
