INSERT INTO reference (id, kind, target, text) VALUES (?, ?, ?, ?);
