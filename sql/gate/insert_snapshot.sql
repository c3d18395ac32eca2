INSERT INTO temp.reader_snapshot (domain, seq, publication, seen, closed)
SELECT id, :seq, :publication, :seen, :closed FROM domain WHERE name = :domain;
