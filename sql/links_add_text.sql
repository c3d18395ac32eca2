INSERT INTO text (id, text) VALUES (?, ?);
