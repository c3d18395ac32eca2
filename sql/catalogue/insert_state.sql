INSERT INTO state (oid) VALUES (:oid);
