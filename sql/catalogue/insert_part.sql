INSERT OR REPLACE INTO part (domain, seq, record, seen, held, place, resource)
VALUES (:domain, :seq, :record, :seen, :held, :place, :resource);
