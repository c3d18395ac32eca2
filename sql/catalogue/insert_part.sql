INSERT OR REPLACE INTO part (domain, seq, record, seen, held, position, resource)
VALUES (:domain, :seq, :record, :seen, :held, :position, :resource);
