INSERT OR REPLACE INTO part (domain, seq, record, seen, held) VALUES (:domain, :seq, :record, :seen, :held);
